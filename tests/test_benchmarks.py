"""The benchmarks fit the service of today; what they measure is not asserted."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.stage import Stage
from tests.services import own_database


@pytest.mark.postgresql
def test_null_endpoints_answer_like_the_others(tmp_path: Path) -> None:
    with own_database(tmp_path) as url:
        stage = Stage(url, tmp_path)
        try:
            filled = stage.script("benchmarks.fill", "load")
            stage.start()
            client = stage.client(filled["key"])
            with closing(client.connection):
                read = client.call("GET", "/null/20")
                written = client.call("POST", "/null/20", {})
        finally:
            stage.stop()

    assert (json.loads(read), written) == ("x" * 18, read)
