"""Log lines: both formats, and the fields of their context."""

import json
import logging
import sys

import pytest

from common.observability import log_format
from common.observability.log_format import add_log_fields, log_fields


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("access", logging.INFO, "x.py", 1, message, args, None)
    made.process = 7
    made.created, made.msecs = 1_798_759_800.1239, 123.9  # 2026-12-31T23:30:00Z
    vars(made).update(extra)
    return made


def plain(made: logging.LogRecord) -> str:
    return log_format.PlainFormatter("%(levelname)s %(name)s %(message)s").format(made)


def test_json_line_has_message_context_and_own_fields():
    made = record("sent %d", 3, fields={"status": 200, "delivery": object})

    with log_fields(request_id="r1"), log_fields(type="email"):
        line = json.loads(log_format.JsonFormatter().format(made))

    assert line == {
        "request_id": "r1",
        "type": "email",
        "status": 200,
        "delivery": "<class 'object'>",
        "time": "2026-12-31T23:30:00.123Z",
        "level": "INFO",
        "logger": "access",
        "process": 7,
        "message": "sent 3",
    }


def test_json_line_with_a_lone_surrogate():
    line = log_format.JsonFormatter().format(record("a\ud800b", fields={"big": 2**70}))

    assert json.loads(line)["message"] == "a\ud800b"
    assert json.loads(line)["big"] == 2**70


def test_json_line_with_an_exception_is_one_line():
    try:
        raise ValueError("a\nb")
    except ValueError:
        made = record("broken", exc_info=sys.exc_info())

    text = log_format.JsonFormatter().format(made)

    assert text.count("\n") == 0
    assert json.loads(text)["exception"].endswith("ValueError: a\nb")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("/v2/bookings", "/v2/bookings"),
        (3.5, "3.5"),
        ("", '""'),
        ("a b", '"a b"'),
        ('say "x"', r'"say \"x\""'),
        ("a\nERROR access forged", r'"a\nERROR access forged"'),
        ("a=b", '"a=b"'),
        ("a\u2028b", r'"a\u2028b"'),
    ],
)
def test_plain_fields_stay_on_one_line(value, written):
    assert plain(record("m", fields={"path": value})) == f"INFO access m path={written}"


def test_fields_end_with_their_block():
    with log_fields(request_id="r1"):
        add_log_fields(app="a1")
        inside = plain(record("m"))
    add_log_fields(app="a2")

    assert (inside, plain(record("m"))) == (
        "INFO access m request_id=r1 app=a1",
        "INFO access m",
    )
