"""The broker that needs no server: no message is seen before it is whole."""

import subprocess
import sys
from collections.abc import Callable
from json import JSONDecodeError
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection
from kombu.transport import filesystem

from common import file_broker
from scheduling import celery

COUNT = 2000
PUT = """
import sys
from scheduling.celery import app
channel = app.connection_for_write(
    "filesystem://", transport_options={{"data_folder_in": "{0}", "data_folder_out": "{0}"}}
).channel()
for number in range({1}):
    channel._put("email", {{"number": number, "text": "x" * 800}})
"""


def open_channel(folder: Path, transport: Any) -> Any:
    options = {
        "data_folder_in": str(folder),
        "data_folder_out": str(folder),
        "control_folder": str(folder / "control"),
    }
    return Connection(transport=transport, transport_options=options).channel()


@pytest.mark.parametrize(
    ("transport", "found"),
    [
        (f"{file_broker.__name__}:Transport", Empty),
        (filesystem.Transport, JSONDecodeError),  # the control: kombu's own
    ],
)
def test_partially_written_message_is_not_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: Any, found: type[Exception]
) -> None:
    writer, reader = open_channel(tmp_path, transport), open_channel(tmp_path, transport)
    seen: list[type[Exception]] = []

    def look_while_writing(dump: Callable[[Any], str]) -> Callable[[Any], str]:
        def look(payload: Any) -> str:
            try:
                reader._get("email")
            except (Empty, JSONDecodeError) as error:
                seen.append(type(error))
            return dump(payload)

        return look

    module = file_broker if found is Empty else filesystem
    monkeypatch.setattr(module, "dumps", look_while_writing(module.dumps))
    writer._put("email", {"number": 1})

    assert seen == [found]


def test_many_concurrently_written_messages(tmp_path: Path) -> None:
    reader = open_channel(tmp_path, "filesystem")
    code = PUT.format(tmp_path, COUNT)
    numbers = []
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL) as writer:
        while writer.poll() is None or any(tmp_path.glob("*.msg")):
            try:
                numbers.append(reader._get("email")["number"])
            except Empty:
                continue

    assert isinstance(reader, file_broker.Channel)
    assert celery.app.conf.broker_url
    assert sorted(numbers) == list(range(COUNT))
    assert list(tmp_path.glob("*.part")) == []
