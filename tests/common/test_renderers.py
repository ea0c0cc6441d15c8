import uuid
from datetime import UTC, datetime

import pytest

from common.api.renderers import JSONRenderer, accepts_json


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        ({"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'.encode()),
        (uuid.UUID(int=1), b'"00000000-0000-0000-0000-000000000001"'),
        (None, b""),
    ],
)
def test_render_json(value, raw):
    assert JSONRenderer().render(value) == raw


def test_datetime_is_refused():
    with pytest.raises(TypeError):
        JSONRenderer().render({"start": datetime.now(UTC)})


@pytest.mark.parametrize(
    ("accept", "accepted"),
    [
        ("", True),
        ("*/*", True),
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/*", True),
        ("text/html, application/xhtml+xml, */*;q=0.8", True),
        ("text/html", False),
        ("text/*", False),
        ("application/xml", False),
        ("application/vnd.api+json", False),
        ("application/json;q=0", False),
        ("application/json;q=0, */*", False),
        ("*/*;q=0, application/json", True),
        ("application/json;q=nonsense", True),
        (",,,;", False),
    ],
)
def test_accept_headers_that_take_json(accept, accepted):
    assert accepts_json(accept) is accepted
