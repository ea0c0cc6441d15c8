"""Hostile inputs, as tables. What each must be answered with stands beside it.

Every body below is refused, so none of them may leave anything behind. The values of ODD are
strange but right: they are taken and come back as they were sent.
"""

import gzip
import json
from typing import Any, NamedTuple

from common.api.json import MAX_BYTES, MAX_NODES

MALFORMED, TOO_LARGE, WRONG_TYPE = "400 malformed", "413 too_large", "415 unsupported_media_type"
INVALID, NOT_FOUND, NOT_ACCEPTABLE = "422 invalid", "404 not_found", "406 not_acceptable"
UNKNOWN_ID = "00000000-0000-7000-8000-000000000000"


class Raw(NamedTuple):
    """A body byte for byte, whatever the endpoint."""

    name: str
    body: bytes
    answer: str
    headers: dict[str, str | bytes] = {}


def nested(depth: int) -> bytes:
    return b'{"x":' * depth + b"1" + b"}" * depth


def typed(content_type: str, body: bytes = b"{}") -> Raw:
    return Raw(content_type, body, WRONG_TYPE, {"Content-Type": content_type})


RAW = [
    Raw("NUL byte", b'{"name": "a\x00b"}', MALFORMED),
    Raw("NUL escape", b'{"name": "a\\u0000b"}', MALFORMED),
    Raw("NUL escape in a key", b'{"a\\u0000b": 1}', MALFORMED),
    Raw("lone high surrogate", b'{"name": "\\ud800"}', MALFORMED),
    Raw("lone low surrogate", b'{"name": "\\udfff"}', MALFORMED),
    Raw("surrogates in the wrong order", b'{"name": "\\udc00\\ud800"}', MALFORMED),
    Raw("lone surrogate in a key", b'{"\\ud800": 1}', MALFORMED),
    Raw("surrogate as UTF-8", b'{"name": "\xed\xa0\x80"}', MALFORMED),
    Raw("no UTF-8", b'{"name": "\xff\xfe"}', MALFORMED),
    Raw("cut UTF-8", b'{"name": "\xe2\x82"}', MALFORMED),
    Raw("overlong UTF-8", b'{"name": "\xc0\xaf"}', MALFORMED),
    Raw("beyond Unicode", b'{"name": "\xf5\x80\x80\x80"}', MALFORMED),
    Raw("byte order mark", b"\xef\xbb\xbf{}", MALFORMED),
    Raw("UTF-16", "{}".encode("utf-16"), MALFORMED),
    Raw("UTF-32", "{}".encode("utf-32"), MALFORMED),
    Raw("duplicate key", b'{"name": "a", "name": "b"}', MALFORMED),
    Raw("duplicate key by an escape", b'{"name": "a", "n\\u0061me": "b"}', MALFORMED),
    Raw("duplicate key inside", b'{"meta": {"a": 1, "a": 2}}', MALFORMED),
    Raw("NaN", b'{"meta": {"a": NaN}}', MALFORMED),
    Raw("Infinity", b'{"meta": {"a": Infinity}}', MALFORMED),
    Raw("-Infinity", b'{"meta": {"a": -Infinity}}', MALFORMED),
    Raw("1e400", b'{"meta": {"a": 1e400}}', MALFORMED),
    Raw("-1e400", b'{"meta": {"a": -1e400}}', MALFORMED),
    # PostgreSQL would give it back as an integer of 301 digits, and no listing could be written.
    Raw("1e300", b'{"meta": {"a": 1e300}}', MALFORMED),
    Raw("2.0**63", b'{"meta": {"a": 9223372036854775808.0}}', MALFORMED),
    Raw("2**63", b'{"meta": {"a": 9223372036854775808}}', MALFORMED),
    Raw("-2**63-1", b'{"meta": {"a": -9223372036854775809}}', MALFORMED),
    Raw("5,000 digits", b'{"meta": {"a": ' + b"9" * 5000 + b"}}", MALFORMED),
    Raw("leading zero", b'{"meta": {"a": 01}}', MALFORMED),
    Raw("hexadecimal", b'{"meta": {"a": 0x1}}', MALFORMED),
    Raw("depth 33", nested(33), MALFORMED),
    Raw("depth 7,000", nested(7000), MALFORMED),
    Raw("100,000 open brackets", b"[" * 100_000, MALFORMED),
    Raw("100,000 closed brackets", b"]" * 100_000, MALFORMED),
    Raw("too many values", b"[" + b"1," * MAX_NODES + b"1]", MALFORMED),
    Raw("too many keys", json.dumps(dict.fromkeys(map(str, range(MAX_NODES)))).encode(), MALFORMED),
    Raw("too many brackets", b"[" + b"[]," * MAX_NODES + b"[]]", MALFORMED),
    Raw("not JSON", b"name=x", MALFORMED),
    Raw("blank", b"   ", MALFORMED),
    Raw("unfinished", b'{"name": "a', MALFORMED),
    Raw("more after the end", b"{} {}", MALFORMED),
    Raw("trailing comma", b'{"name": "a",}', MALFORMED),
    Raw("single quotes", b"{'name': 'a'}", MALFORMED),
    Raw("comment", b'{"name": "a"} // x', MALFORMED),
    Raw("control character in a string", b'{"name": "a\nb"}', MALFORMED),
    Raw("bad escape", b'{"name": "\\x41"}', MALFORMED),
    Raw("XML", b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///x">]>', MALFORMED),
    Raw("gzip", gzip.compress(b"{}"), WRONG_TYPE, {"Content-Encoding": "gzip"}),
    Raw("gzip without the header", gzip.compress(b"{}"), MALFORMED),
    Raw("plain, said to be gzip", b"{}", WRONG_TYPE, {"Content-Encoding": "gzip"}),
    Raw("shorter than said", b'{"name": "a', MALFORMED, {"Content-Length": "5000"}),
    Raw("257 kB", b'{"x": "' + b"a" * (MAX_BYTES - 8) + b'"}', TOO_LARGE),
    Raw("10 MB", b" " * 10_000_000, TOO_LARGE),
    Raw("a terabyte is announced", b"", TOO_LARGE, {"Content-Length": str(10**12)}),
    typed("text/plain"),
    typed("text/json"),
    typed("application/xml", b"<x/>"),
    typed("application/x-www-form-urlencoded", b"name=x"),
    typed("multipart/form-data; boundary=x", b"--x--"),
    typed("application/json; charset=utf-16"),
    typed("application/json; charset=latin-1"),
    typed("application/jsonp"),
    typed("*/*"),
    typed("application/json " + "x" * 5000),
]
# No objects: 422 on the whole body (on `queries` where the body is nothing but that).
NO_OBJECTS = ["null", "true", "false", "0", "5", '"x"', '""', "[1]", "[[]]", "[{}]", "1e5"]

# --- Values that no place of a kind takes ---------------------------------------------------------
# JSON type -> a value of it, to be tried wherever that type is not asked for.
OF_TYPE: dict[str, Any] = {
    "integer": 5,
    "number": 1.5,
    "string": "\u0007",
    "boolean": True,
    "array": [1],
    "object": {"x": 1},
    "null": None,
}
NO_ONE_LINE = ["a\r\nBcc: x@evil.example", "a\nb", "a\u0085b", "a\u2028b", "a\u2029b", "\u001b[31m"]
NO_LINES = ["a\u0007b", "a\u0085b", "\u001b[31m", "a\u000bb"]
NO_ID = ["x", "", UNKNOWN_ID.replace("-", ""), f"{{{UNKNOWN_ID}}}", f"urn:uuid:{UNKNOWN_ID}"]
NO_ID += [
    f"{UNKNOWN_ID}\n",
    UNKNOWN_ID.replace("0", "\u0660"),
    f" {UNKNOWN_ID}",
    "../" + UNKNOWN_ID,
]
NO_EMAIL = [
    "x",
    "a@b",
    "a b@example.com",
    "a@example.com\n",
    "@example.com",
    "a@",
    "a@exa mple.com",
]
NO_EMAIL += ["a@example.com, b@example.com", "a\r\nBcc: x@evil.example", "<a@example.com>"]
NO_URL = ["x", "//example.com", "javascript:alert(1)", "file:///etc/hosts", "ftp://example.com"]
NO_URL += ["http://", "http:///x", "http://user:pass@example.com", "http://example.com:0"]
NO_URL += ["http://example.com:99999", "http://exa mple.com", "http://example.com\\@evil.example"]
NO_URL += ["http://[::1", "http://example.com/\r\nX: y", "data:text/html,x", "http://example.com\t"]
# Addresses in which no call may go out, however they are written.
NOT_PUBLIC = ["http://127.0.0.1", "http://localhost/x", "http://[::1]", "http://10.0.0.1:80/x"]
NOT_PUBLIC += ["http://169.254.169.254/latest/meta-data", "http://192.168.1.1", "http://0.0.0.0"]
NOT_PUBLIC += ["http://[::ffff:127.0.0.1]", "http://2130706433", "http://0x7f.1", "http://0177.1"]
NOT_PUBLIC += ["http://a.localhost", "http://[fd00::1]", "http://[fe80::1]", "http://172.16.0.1"]
NO_ZONE = ["Mars/Olympus", "../../etc/passwd", "/etc/passwd", "America", "tzdata.zi", "UTC "]
NO_ZONE += ["europe/berlin", "Europe/Berlin\n", "Factory", "posix/UTC", "right/UTC", "localtime"]
NO_ZONE += ["leapseconds", "UTC+1", "+01:00", "\u0415urope/Berlin", "Europe\\Berlin", "C:\\x"]
NO_ZONE += ["Europe//Berlin", "Europe/../UTC", "America/Argentina", ".", "x" * 65, "%2e%2e/UTC"]
NO_INSTANT = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59+00:00", "9999-12-31T23:59:59-14:00"]
NO_INSTANT += ["2200-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-02-30T10:00:00Z", "x", ""]
NO_INSTANT += ["2026-13-01T10:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T23:59:60Z", "10", "Thu"]
NO_INSTANT += ["2026-11-20T10:00:00+24:00", "2026-11-20T10:00:00+01:60", "1763632800", "1-2", "now"]
NO_INSTANT += ["\u0662\u0660\u0662\u0666-11-20T10:00:00Z", " 2026-11-20T10:00:00Z", "2026-W47-5"]
NO_INSTANT += ["2026-11-20T10:00:00Z\n", "2026-11-20T10:00:00.1234567890Z", "20261120T100000Z"]
NO_INSTANT += ["2026-11-20T10Z", "2026-11-20T10:00:00 Europe/Berlin", "-2026-11-20T10:00:00Z"]
NO_INSTANT += ["2026-11-20T10:00:00+1", "0000-00-00 00:00:00", "2027-03-28 02:30:00", "9" * 5000]
NO_DURATION = [
    "-1 hour",
    "1 month",
    "1 fortnight",
    "30",
    "1e3 minutes",
    "\u221e",
    "PT1H",
    "1 hour x",
]
NO_DURATION += [
    "hour",
    "--1 hour",
    "1.5 hours",
    "\u0661 hour",
    "1 hour;",
    "1,000 hours",
    "9" * 5000,
]
NO_DURATION += ["999999999 weeks " * 50, "367 days", "1 hour\u0000"]
NO_MOMENT = ["yesterday", "1 fortnight", "", "x", "2026-02-30T10:00:00Z", "noon"]
NO_MOMENT += ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "500 years", "999999999 weeks", "30"]
NO_MOMENT += ["2400 months", "-2400 months", "now now", "tomorrow 1 hour", "\u0661 day"]

_HOURS = {"start": 9, "end": 17}
# A wrong constraint -> where the error stands, below its place in the list.
NO_CONSTRAINT: list[tuple[Any, str]] = [
    ({}, ""),
    ({"allow_hours": _HOURS, "block_weekends": {}}, ""),
    ({"allow_nothing": {}}, ""),
    ({"__proto__": {}}, ""),
    ({"allow_hours": [9, 17]}, ".allow_hours"),
    ({"allow_hours": None}, ".allow_hours"),
    ({"allow_hours": {"start": 9}}, ".allow_hours.end"),
    ({"allow_hours": {"start": 9, "end": 25}}, ".allow_hours.end"),
    ({"allow_hours": {"start": -1, "end": 17}}, ".allow_hours.start"),
    ({"allow_hours": {"start": 24, "end": 17}}, ".allow_hours.start"),
    ({"allow_hours": {"start": 9, "end": 9}}, ".allow_hours.end"),
    ({"allow_hours": {"start": "9:60", "end": 17}}, ".allow_hours.start"),
    ({"allow_hours": {"start": 9, "end": "24:01"}}, ".allow_hours.end"),
    ({"allow_hours": {"start": 9.5, "end": 17}}, ".allow_hours.start"),
    ({"allow_hours": {"start": True, "end": 17}}, ".allow_hours.start"),
    ({"allow_hours": {"start": "\u0669", "end": 17}}, ".allow_hours.start"),
    ({"allow_hours": {"start": 9, "end": 2**62}}, ".allow_hours.end"),
    ({"allow_hours": {"start": 9, "end": "9" * 5000}}, ".allow_hours.end"),
    ({"block_day": {"day": "Funday"}}, ".block_day.day"),
    ({"block_day": {"day": 1}}, ".block_day.day"),
    ({"block_day": {"day": ""}}, ".block_day.day"),
    ({"block_day": {"day": "\u017funday"}}, ".block_day.day"),
    ({"block_day": {"day": "Monday\n"}}, ".block_day.day"),
    ({"block_day_and_time": {"day": "Monday"}}, ".block_day_and_time.start"),
    ({"allow_period": {"start": "2026-08-01", "end": "2026-07-01"}}, ".allow_period.end"),
    ({"allow_period": {"start": "2026-08-01", "end": "2026-08-01"}}, ".allow_period.end"),
    ({"allow_period": {"start": "2026-02-30", "end": "2026-07-01"}}, ".allow_period.start"),
    ({"allow_period": {"start": "0000-01-01", "end": "2026-07-01"}}, ".allow_period.start"),
    ({"allow_period": {"start": "2026-07-01", "end": "9999-12-31T23:59:59-23:59"}},
     ".allow_period.end"),
    ({"allow_period": {"start": "2026-07-01", "end": "tomorrow"}}, ".allow_period.end"),
    ({"allow_period": {"start": 20260701, "end": "2026-08-01"}}, ".allow_period.start"),
    ({"block_day": {"day": "Monday", "name": "x" * 201}}, ".block_day.name"),
    ({"block_weekends": {"name": "a\r\nb"}}, ".block_weekends.name"),
    ({"open_period": {"start": "2026-08-01", "end": "2026-08-01"}}, ".open_period.end"),
    ({"open_recurring": {"start": "2026-08-01", "duration": "1 hour", "rrule": "FREQ=SECONDLY"}},
     ".open_recurring.rrule"),
    ({"open_recurring": {"start": "2026-08-01", "duration": "9" * 5000, "rrule": "FREQ=DAILY"}},
     ".open_recurring.duration"),
    ({"block_recurring": {"start": "2026-08-01T00:00:00Z", "duration": "1 hour",
                          "rrule": "FREQ=DAILY"}}, ".block_recurring.start"),
    ({"replace_day": {"date": "2026-02-30", "windows": []}}, ".replace_day.date"),
    ({"replace_day": {"date": "2026-02-01", "windows": None}}, ".replace_day.windows"),
    ({"block_holidays": {"country": "\u0661\u0661"}}, ".block_holidays.country"),
    ({"block_holidays": {"country": "DE", "subdivision": "x" * 5000}},
     ".block_holidays.subdivision"),
]  # fmt: skip

_BEFORE = {"type": "before", "unit": "mins", "time": 10}
_MAIL = {"recipient": "customer"}


def _calls(**settings: Any) -> dict[str, Any]:
    return {"type": "webhook", "settings": settings, "when": _BEFORE}


_HOOK = "https://example.com/hook"
NO_NOTIFICATION: list[tuple[Any, str]] = [
    ({"type": "sms", "settings": {}, "when": _BEFORE}, ".type"),
    ({"type": "email", "settings": {}, "when": _BEFORE}, ".settings.recipient"),
    ({"type": "email", "settings": {"recipient": "all"}, "when": _BEFORE}, ".settings.recipient"),
    ({"type": "email", "settings": {"recipient": ["owner"]}, "when": _BEFORE},
     ".settings.recipient"),
    ({"type": "email", "settings": _MAIL | {"subject": "a\r\nBcc: x@evil.example"},
      "when": _BEFORE}, ".settings.subject"),
    ({"type": "email", "settings": _MAIL | {"subject": "x" * 201}, "when": _BEFORE},
     ".settings.subject"),
    ({"type": "email", "settings": _MAIL}, ".when"),
    ({"type": "email", "settings": _MAIL, "when": _BEFORE | {"unit": "weeks"}}, ".when.unit"),
    ({"type": "email", "settings": _MAIL, "when": _BEFORE | {"type": "during"}}, ".when.type"),
    ({"type": "email", "settings": _MAIL, "when": _BEFORE | {"time": -1}}, ".when.time"),
    ({"type": "email", "settings": _MAIL, "when": _BEFORE | {"time": 1.5}}, ".when.time"),
    ({"type": "email", "settings": _MAIL, "when": _BEFORE | {"time": "10"}}, ".when.time"),
    ({"type": "email", "settings": _MAIL, "when": _BEFORE | {"time": 2**62}}, ".when.time"),
    ({"type": "email", "settings": _MAIL, "when": {**_BEFORE, "unit": "days", "time": 366}},
     ".when.time"),
    (_calls(), ".settings.url"),
    *[(_calls(url=url), ".settings.url") for url in NO_URL],
    *[(_calls(url=_HOOK, method=method), ".settings.method")
      for method in ("TRACE", "delete", "", "GET / HTTP/1.1\r\n", 5, None, ["get"])],
    *[(_calls(url=_HOOK, expected_response_code=code), ".settings.expected_response_code")
      for code in (99, 600, "20x", "", -200, 200.0, True, "9" * 5000, "\u0662\u0660\u0660")],
]  # fmt: skip

_BASIC_CUSTOMER = {"name": "Marty McFly", "email": "marty@example.com"}


class Wrong(NamedTuple):
    """A value at a dotted place of an operation's example, and where the error stands.

    `place` "" is the whole body; {resource_id} and the like are filled in.
    """

    operation: str
    place: str
    value: Any
    error: str | None = None  # by default the place itself
    answer: str = INVALID


def everywhere(places: list[tuple[str, str]], values: list[Any]) -> list[Wrong]:
    return [Wrong(operation, place, value) for operation, place in places for value in values]


ZONE_PLACES = [
    ("POST /v2/resources", "timezone"),
    ("PUT /v2/resources/{resource_id}", "timezone"),
    ("PUT /v2/apps/{slug}", "settings.default_timezone"),
    ("POST /v2/bookings", "customer.timezone"),
    ("POST /v2/availability", "output_timezone"),
]
INSTANT_PLACES = [
    ("POST /v2/bookings", "event.start"),
    ("POST /v2/bookings", "event.end"),
    ("POST /v2/bookings/{booking_id}/reschedule", "start"),
    ("POST /v2/bookings/{booking_id}/reschedule", "end"),
    ("POST /v2/bookings/reserve", "start"),
    ("POST /v2/bookings/reserve", "end"),
    ("POST /v2/events", "start"),
    ("PUT /v2/events/{event_id}", "end"),
]
DURATION_PLACES = [
    ("POST /v2/availability", "length"),
    ("POST /v2/availability", "buffer"),
    ("POST /v2/availability", "timeslot_increments"),
    ("POST /v2/projects", "availability.length"),
    ("POST /v2/findtime", "length"),
]
MOMENT_PLACES = [
    ("POST /v2/availability", "from"),
    ("POST /v2/availability/count", "to"),
    ("POST /v2/projects", "availability.from"),
    ("POST /v2/findtime", "start"),
    ("POST /v2/findtime", "future"),
]
CONSTRAINT_PLACES = [
    ("POST /v2/resources", "availability_constraints"),
    ("PUT /v2/resources/{resource_id}", "availability_constraints"),
    ("POST /v2/projects", "availability_constraints"),
    ("POST /v2/availability", "constraints"),
    ("POST /v2/availability/explain", "constraints"),
    ("POST /v2/findtime", "constraints"),
]
NOTIFICATION_PLACES = [
    ("POST /v2/bookings", "event_notifications"),
    ("PUT /v2/apps/{slug}", "event_notifications"),
    ("PUT /v2/projects/{project_id}", "reminders"),
]
_BOOKING, _QUERY = "POST /v2/bookings", "POST /v2/availability"
_MOVE = "POST /v2/bookings/{booking_id}/reschedule"

WRONG = {
    "zones": everywhere(ZONE_PLACES, NO_ZONE),
    "instants": [
        wrong
        for wrong in everywhere(INSTANT_PLACES, NO_INSTANT)
        # A PUT may say that an event has no end.
        if (wrong.operation, wrong.value) != ("PUT /v2/events/{event_id}", "")
    ],
    "durations": [
        Wrong(*wrong[:3], answer=MALFORMED) if "\0" in wrong.value else wrong
        for wrong in everywhere(DURATION_PLACES, [*NO_DURATION, "x" * 5000, "\u0660"])
    ],
    "lengths": [
        *everywhere(
            [(_QUERY, "length"), ("POST /v2/findtime", "length")],
            ["0", 0, "59 secs", "0 minutes", "1 hour -1 hour", "-0 minutes", "", " "],
        ),
        *everywhere([(_QUERY, "timeslot_increments")], ["25 hours", "0", "30 secs"]),
    ],
    "moments": everywhere(MOMENT_PLACES, NO_MOMENT),
    "ranges": [
        Wrong(_QUERY, "to", "0 hours"),
        Wrong(_QUERY, "to", "-1 day"),
        Wrong(_QUERY, "to", "367 days"),
        Wrong(_QUERY, "to", "2199-12-31T00:00:00Z"),
        Wrong(_QUERY, "from", "60 weeks", "to"),
        Wrong(_QUERY, "to", "1970-01-01T00:00:00Z"),
        Wrong("POST /v2/availability/explain", "to", "-1 day"),
        Wrong("POST /v2/unavailable/slots", "to", "-1 day"),
        Wrong("POST /v2/projects", "availability.to", "-1 day"),
        Wrong("POST /v2/projects", "availability.to", "367 days"),
        Wrong("POST /v2/findtime", "future", "-1 day"),
        Wrong("POST /v2/findtime", "future", "367 days"),
        Wrong(_MOVE, "end", "2026-11-23T10:00:00+01:00"),
        Wrong(_MOVE, "end", "2026-11-23T09:00:00+01:00"),
        Wrong(_MOVE, "end", "2028-11-23T10:00:00+01:00"),
        Wrong(_BOOKING, "event.end", "2026-11-23T09:00:00+01:00"),
        Wrong(_BOOKING, "event.end", "2026-11-23T08:59:59+01:00"),
        Wrong(_BOOKING, "event.end", "2028-11-23T09:00:00+01:00"),
        Wrong("POST /v2/events", "end", "2026-12-01T09:00:00+01:00"),
        Wrong("POST /v2/events", "end", "2028-12-01T09:00:00+01:00"),
    ],
    "seconds of a hold": everywhere(
        [
            ("POST /v2/bookings/reserve", "reservation_time"),
            ("PUT /v2/bookings/reserve/extend", "reservation_time"),
        ],
        [0, -1, 3601, 2**62, 30.0, "30", "", True, [], {}],
    ),
    "addresses": everywhere(
        [
            ("POST /v2/customers/erase", "email"),
            ("POST /v2/resources/resetpassword", "email"),
            ("POST /v2/users/resetpassword", "email"),
        ],
        ["", None, 5, True, [], {}, "x" * 5000],
    ),
    "log-ins": everywhere(
        [("POST /v2/auth", "email"), ("POST /v2/auth", "password")],
        [None, 5, True, [], {}, "x" * 9000],
    ),
    "keys": everywhere(
        [("POST /v2/credentials", "kind")], ["", "access", "SERVER", "x", None, 5, [], {}]
    )
    + everywhere(
        [("POST /v2/credentials", "expires_at")], ["", "x", 5, [], {}, "1970-01-01T00:00:00Z"]
    )
    + everywhere([("POST /v2/credentials", "resource_id")], [*NO_ID, UNKNOWN_ID, 5, [], {}]),
    "bulk": everywhere(
        [("POST /v2/bookings/bulk", "bookings"), ("PUT /v2/bookings/bulk", "bookings")],
        [None, 5, "x", True, {}, {"0": {}}, [], [{}] * 101],
    )
    + everywhere(
        [
            ("POST /v2/bookings/bulk", "relate_bookings"),
            ("POST /v2/bookings/bulk", "stop_on_first_error"),
            ("POST /v2/bookings/bulk", "delete_all_on_error"),
            ("PUT /v2/bookings/bulk", "stop_on_first_error"),
            ("PUT /v2/bookings/bulk", "delete_all_on_error"),
        ],
        ["true", "", 0, 1, 5, [], {"x": 1}],
    ),
    "series": everywhere(
        [(_BOOKING, "recurrence")],
        [
            "", "x", 5, [], {"x": 1}, "FREQ=SECONDLY;COUNT=2", "FREQ=MINUTELY;COUNT=2",
            "FREQ=HOURLY;COUNT=2", "FREQ=DAILY", "FREQ=DAILY;COUNT=0", "FREQ=DAILY;COUNT=-1",
            "FREQ=DAILY;COUNT=367", "FREQ=DAILY;COUNT=99999999999999999999", "COUNT=2",
            "FREQ=DAILY;INTERVAL=0;COUNT=2", "FREQ=YEARLY;COUNT=12", "FREQ=DAILY;COUNT=2;X=1",
            "FREQ=DAILY;UNTIL=20260101T000000Z", "FREQ=DAILY;UNTIL=99991231T235959Z",
            "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;COUNT=2", "FREQ=DAILY;" * 2000,
            "FREQ=DAILY;COUNT=2\nRRULE:FREQ=DAILY", "FREQ=WEEKLY;BYDAY=XX;COUNT=2",
        ],
    )
    + everywhere(
        [("PUT /v2/bookings/{booking_id}/{action}", "scope"), (_MOVE, "scope")],
        ["", "x", "ALL", 5, True, [], {}, ["all"]],
    )
    + everywhere(
        [("PUT /v2/bookings/{booking_id}/{action}", "apply_to_bulked_bookings")],
        ["true", "", 0, 1, 5, [], {"x": 1}],
    ),
    "constraints": [
        Wrong(operation, place, [{"allow_weekdays": []}, value], f"{place}.1{error}")
        for operation, place in CONSTRAINT_PLACES
        for value, error in NO_CONSTRAINT
    ],
    "too many constraints": everywhere(CONSTRAINT_PLACES, [[{"block_weekends": {}}] * 201]),
    "notifications": [
        Wrong(operation, place, [value], f"{place}.0{error}")
        for operation, place in NOTIFICATION_PLACES
        for value, error in NO_NOTIFICATION
    ],
    "customers": [
        Wrong(_BOOKING, "customer", None),
        Wrong(_BOOKING, "customer", {"name": "Marty"}, "customer.email"),
        Wrong(_BOOKING, "customer", {"email": "marty@example.com"}, "customer.name"),
        *everywhere([(_BOOKING, "customer.name")], ["", *NO_ONE_LINE]),
        *everywhere([(_BOOKING, "customer.email")], ["", *NO_EMAIL]),
        Wrong(_BOOKING, "customer.meta", dict.fromkeys(map(str, range(51)), 1)),
        Wrong(_BOOKING, "customer.meta", {"x": "y" * 17_000}),
        Wrong(_BOOKING, "customer.x", "y" * 17_000, "customer"),
        Wrong(_BOOKING, "customer", {**_BASIC_CUSTOMER, **dict.fromkeys(map(str, range(51)), 1)},
              "customer.meta"),
        Wrong(_BOOKING, "customers", [_BASIC_CUSTOMER]),
        Wrong(_BOOKING, "customers", []),
        Wrong(_BOOKING, "customers", [_BASIC_CUSTOMER] * 51),
        Wrong(_BOOKING, "", {"what": "x", "event": {"what": "y"}}, "event.what"),
        Wrong(_BOOKING, "event", [1]),
        Wrong(_BOOKING, "event", {}, "event.calendar_id"),
        Wrong(_BOOKING, "event.what", ""),
        Wrong(_BOOKING, "event.calendar_id", None),
        Wrong(_BOOKING, "graph", "instant_payment", "action"),
        Wrong(_BOOKING, "graph", "__class__"),
        Wrong(_BOOKING, "action", "cancel"),
        Wrong(_BOOKING, "action", "create_booking"),
    ],
    "ids": [
        *everywhere(
            [
                (_BOOKING, "resource_id"),
                (_BOOKING, "project_id"),
                (_BOOKING, "event.calendar_id"),
                (_MOVE, "resource_id"),
                (_BOOKING, "reservation_id"),
                ("POST /v2/bookings/reserve", "resource_id"),
                ("POST /v2/bookings/reserve", "project_id"),
                ("PUT /v2/bookings/reserve/extend", "reservation_id"),
                ("POST /v2/calendars", "resource_id"),
                ("POST /v2/events", "calendar_id"),
                ("POST /v2/projects/{project_id}/resources", "resource_id"),
                (_QUERY, "project_id"),
            ],
            [*NO_ID, UNKNOWN_ID],
        ),
        *[
            Wrong(operation, place, [value], f"{place}.0")
            for operation, place in [
                (_QUERY, "resources"),
                ("POST /v2/findtime", "resource_ids"),
                ("POST /v2/findtime", "calendar_ids"),
                ("POST /v2/projects", "resources"),
                ("PUT /v2/projects/{project_id}/resources", "resources"),
            ]
            for value in [*NO_ID, UNKNOWN_ID, None, 5]
        ],
        Wrong(_QUERY, "resources", []),
        Wrong(_QUERY, "resources", [UNKNOWN_ID] * 501),
        Wrong("PUT /v2/projects/{project_id}/resources", "", [UNKNOWN_ID], "resources.0"),
        Wrong("PUT /v2/projects/{project_id}/resources", "", [[]], "resources.0"),
    ],
    "names": [
        Wrong("POST /v2/apps", "slug", slug)
        for slug in ["", "A", "a b", "a/b", "\u00e4", "a.b", "..", "a\n", "x" * 101, "\u0131"]
    ]
    + [
        Wrong("POST /v2/projects", "slug", slug)
        for slug in ["", "A", "a b", "a/b", "\u00e4", "..", "x" * 101]
    ],
    "settings": [
        *everywhere([("PUT /v2/apps/{slug}", "settings.disable_emails")], ["true", 1, [], {}]),
        *everywhere([("PUT /v2/apps/{slug}", "settings.from_name")], NO_ONE_LINE),
        *everywhere([("PUT /v2/apps/{slug}", "settings.from_email")], ["", *NO_EMAIL]),
        *everywhere([("PUT /v2/apps/{slug}", "settings.callback")], NO_URL),
        *[
            Wrong("PUT /v2/apps/{slug}", f"settings.{name}", [url], f"settings.{name}.0")
            for name in ["redirect_urls"]
            for url in NO_URL
        ],
        *everywhere([("POST /v2/resources", "image")], NO_URL),
        *everywhere([("POST /v2/projects", "settings.min_cancel_time")], ["1 month", "-1 day", 5]),
        *everywhere([("POST /v2/projects", "settings.max_per_day")], [0, -1, 1001, "5", 1.0]),
        *everywhere([("POST /v2/projects", "settings.max_reschedules")], [-1, 1001, True]),
        *everywhere([("POST /v2/projects", "booking.graph")], ["x", "group", 5]),
        *everywhere([("POST /v2/projects", "customer_fields")], [{"x": 5}, {"x": {"title": 5}}]),
    ],
    "webhooks": [
        *everywhere(
            [("POST /v2/webhooks", "url"), ("PUT /v2/webhooks/{webhook_id}", "url")],
            [*NO_URL, *NOT_PUBLIC, "", None, [_HOOK]],
        ),
        *everywhere(
            [("POST /v2/webhooks", "method"), ("PUT /v2/webhooks/{webhook_id}", "method")],
            ["get", "delete", "TRACE", "", "post ", "POST / HTTP/1.1\r\n", 5, None, ["post"]],
        ),
        *everywhere(
            [("POST /v2/webhooks", "expected_response_code")],
            [99, 600, "20x", "", -200, 200.0, True, "9" * 5000, "\u0662\u0660\u0660", [200]],
        ),
        *everywhere([("POST /v2/webhooks", "graph")], ["", "x", "INSTANT", 5, ["instant"], {}]),
        *everywhere([("POST /v2/webhooks", "states")], [None, "confirmed", {"x": 1}, ["x"] * 12]),
        *everywhere([("POST /v2/webhooks", "states.0")], ["x", "", "Confirmed", None, 5, []]),
        *everywhere([("PUT /v2/webhooks/{webhook_id}", "active")], ["true", 1, 0, None, "yes"]),
    ],
    "queries": [
        Wrong(_QUERY, "mode", "all"),
        Wrong(_QUERY, "mode", ["mutual"]),
        Wrong(_QUERY, "", {"length": "1 minute", "resources": ["{resource_id}"], "to": "366 days"},
              "to"),
        Wrong(_QUERY, "", {}, "resources"),
        Wrong("POST /v2/findtime", "", {}, "resource_ids"),
        Wrong("POST /v2/findtime", "sort", "random"),
        Wrong("POST /v2/findtime", "filters", {"or": 5}, "filters.or"),
        Wrong("POST /v2/findtime", "filters", {"and": [5]}, "filters.and.0"),
        Wrong("POST /v2/findtime", "filters", {"and": [{"x": {}}]}, "filters.and.0"),
        Wrong("POST /v2/findtime", "filters", {"and": [{"specific_day": {}}]},
              "filters.and.0.specific_day.day"),
        Wrong("POST /v2/findtime", "filters", {"and": [{"specific_time": {"start": 9, "end": 99}}]},
              "filters.and.0.specific_time.end"),
        Wrong("POST /v2/findtime", "filters", {"or": [{"daytime": {}}] * 101}, "filters.or"),
        Wrong("POST /v2/findtime", "filters", "x"),
        Wrong("POST /v2/findtime/bulk", "queries", []),
        Wrong("POST /v2/findtime/bulk", "queries", {}),
        Wrong("POST /v2/findtime/bulk", "queries", [{}] * 21),
        Wrong("POST /v2/findtime/bulk", "queries", [5], "queries.0"),
        Wrong("POST /v2/findtime/team", "queries", [{"resource_ids": ["x"]}],
              "queries.0.resource_ids.0"),
    ],
    "free objects": [
        Wrong(operation, "meta", value)
        for operation in (
            "POST /v2/resources",
            "PUT /v2/resources/{resource_id}",
            "POST /v2/projects",
            _BOOKING,
            "PUT /v2/bookings/{booking_id}",
        )
        for value in (
            dict.fromkeys(map(str, range(51)), 1),
            {"x": "y" * 17_000},
            {"x" * 17_000: 1},
            {"x": "\U0001f600" * 4100},
            [1],
            "x",
        )
    ],
}  # fmt: skip

# --- Paths, queries, headers ----------------------------------------------------------------------
PATHS = [
    "/v2//bookings",
    "/v2/%00",
    "/v2/bookings/%00",
    "/v2/bookings/%FF",
    "/v2/bookings/%ED%A0%80",
    "/v2/bookings/%C0%AF",
    "/v2/bookings/x",
    "/v2/bookings/1",
    "/v2/bookings/-1",
    "/v2/bookings/null",
    "/v2/bookings/__proto__",
    "/v2/bookings/" + UNKNOWN_ID.replace("-", ""),
    f"/v2/bookings/{{{UNKNOWN_ID}}}",
    f"/v2/bookings/{UNKNOWN_ID}%0A",
    f"/v2/bookings/{UNKNOWN_ID}%00",
    f"/v2/bookings/{UNKNOWN_ID}",
    f"/v2/bookings/{UNKNOWN_ID}/x/y",
    f"/v2/events/{UNKNOWN_ID}",
    f"/v2/calendars/{UNKNOWN_ID}",
    f"/v2/resources/{UNKNOWN_ID}",
    f"/v2/projects/{UNKNOWN_ID}",
    f"/v2/webhooks/{UNKNOWN_ID}",
    "/v2/deliveries/x",
    "/v2/apps/%00",
    "/v2/apps/%FF",
    "/v2/apps/..%2f..%2fetc%2fpasswd",
    "/v2/apps/%27%20OR%201=1--",
    "/v2/apps/" + "a" * 3000,
    "/v2/apps/%F0%9F%98%80",
    "/v2/bookings/../app",
    "/v2/./app",
    "/v2/app/x",
    "/v2/app.json",
    "/v2/app%20",
    "/v2/app;x=1",
    "/v2/admin",
    "/v2/.env",
    "/v2/static/docs/docs.js",
]
# Query of a listing -> where the error stands; None: malformed.
PAGES: list[tuple[str, str | None]] = [
    *[(f"limit={value}", "limit") for value in
      ("0", "-1", "1001", "1000000000", "nan", "", "1e3", "+5", "5.0", "%205", "0x10", "9" * 3000,
       "%D9%A1", "%EF%BC%95", "null", "1;2", "[]", "true")],
    *[(f"page={value}", "page") for value in
      ("0", "-1", "1000001", "1e30", "%D9%A1", "", "nan", "9" * 3000, "1.5", "first")],
    ("limit=1&limit=2", "limit"),
    ("page=1&page=1", "page"),
    ("x=1", "x"),
    ("Limit=5", "Limit"),
    ("limit[]=5", "limit[]"),
    ("__proto__=1", "__proto__"),
    ("%F0%9F%98%80=1", "\U0001f600"),
    ("=", ""),
    ("limit=%00", None),
    ("%00=1", None),
    ("limit=%FF", None),
    ("limit=%ED%A0%80", None),
]  # fmt: skip
LISTINGS = ["/v2/bookings", "/v2/resources", "/v2/calendars", "/v2/projects", "/v2/apps"]
LISTINGS += ["/v2/projects/{project_id}/resources", "/v2/deliveries"]
LISTINGS += ["/v2/webhooks/{webhook_id}/deliveries"]
QUERIES: list[tuple[str, str]] = [
    *[(f"/v2/bookings?state={value}", "state") for value in
      ("x", "", "Confirmed", "confirmed,x", "confirmed,", "%27", "__proto__")],
    *[(f"/v2/bookings?graph={value}", "graph") for value in ("x", "", "INSTANT")],
    *[(f"/v2/bookings?completed={value}", "completed") for value in ("", "yes", "2", "True")],
    *[(f"/v2/bookings?{name}={value}", name) for name in ("start", "end", "updated_since")
      for value in ("", "x", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "2026-02-30",
                    "yesterday", "1%20fortnight", "1763632800", "2026-11-20T24:00:00Z", "9" * 500)],
    *[(f"/v2/bookings?orderBy={value}", "orderBy") for value in
      ("", "x", "id", "event__start", "-created_at", "created_at;DROP", "?", "event.resource")],
    *[(f"/v2/bookings?sortedBy={value}", "sortedBy") for value in ("", "ASC", "random")],
    *[(f"/v2/bookings?include={value}", "include") for value in
      ("x", "attributes.x", "resource.app", "project__app", "__class__", "attributes;meta", "*",
       "resource.calendars.events", "app", "customers.email%00x"[:15])],
    *[(f"/v2/bookings?search={value}", "search") for value in
      ("x", "x:y", ":y", "id:1", "state:x", "state:confirmed*", "resource.id:x", "resource.id:*",
       "completed:maybe", "meta.:x", "meta:x", "customer:x", "customer.name__startswith:x",
       "app.slug:demo", ";;x", "state:confirmed;x", "project.id:" + UNKNOWN_ID[:-1],
       ";".join(["customer.name:x"] * 21))],
    ("/v2/resources?search=timezone:UTC", "search"),
    ("/v2/resources?search=meta.x:1", "search"),
    ("/v2/resources?include=bookings", "include"),
    ("/v2/resources?include=calendars.events", "include"),
    ("/v2/calendars?search=name:x", "search"),
    ("/v2/calendars?include=resource", "include"),
    ("/v2/projects?search=id:x", "search"),
    ("/v2/projects?include=bookings", "include"),
    ("/v2/events", "start"),
    ("/v2/events?start=2031-01-01T00:00:00Z", "end"),
    ("/v2/events?start=x&end=y", "start"),
    ("/v2/events?start=2031-01-02T00:00:00Z&end=2031-01-01T00:00:00Z", "end"),
    ("/v2/events?start=2031-01-01T00:00:00Z&end=2031-01-01T00:00:00Z", "end"),
    ("/v2/events?start=2031-01-01T00:00:00Z&end=2032-01-01T00:00:00Z&search=what:x", "search"),
    *[(f"/v2/deliveries?{name}={value}", name) for name in ("booking", "webhook")
      for value in ("", "x", UNKNOWN_ID[:-1], UNKNOWN_ID.replace("-", ""), f"{{{UNKNOWN_ID}}}",
                    f"urn:uuid:{UNKNOWN_ID}", f"{UNKNOWN_ID}%0A", "null")],
    *[(f"/v2/deliveries?type={value}", "type") for value in ("", "x", "Email", "sms")],
    *[(f"/v2/deliveries?state={value}", "state") for value in ("", "x", "confirmed", "Failed")],
    ("/v2/deliveries?search=booking.id:x", "search"),
    ("/v2/deliveries?include=payload", "include"),
    ("/v2/webhooks?limit=5", "limit"),
    ("/v2/webhooks?active=true", "active"),
    ("/v2/webhooks/{webhook_id}/deliveries?kind=test", "kind"),
    ("/v2/app?x=1", "x"),
    ("/v2/app?limit=5", "limit"),
    ("/v2/bookings/{booking_id}?include=x", "include"),
    ("/v2/bookings/{booking_id}?limit=1", "limit"),
]  # fmt: skip
# Searches that are well-formed and find nothing: their signs are text, no syntax of ours.
FRUITLESS = [
    "customer.name:%25",
    "customer.name:_",
    "customer.name:%27%20OR%20%271%27=%271",
    "customer.name:%22",
    "customer.name:%5C%5C",
    "customer.name:%E2%80%AE",
    "customer.name:" + "x" * 3000,
    "customer.email:%25@%25",
    "customer.phone:%2B",
    "meta.a%27b:1",
    "meta.%22:1",
    "meta.%5C%5C:1",
    "meta.a.b.c:1",
    "meta.$:1",
    "meta.$[0]:1",
    "meta.0:1",
    "meta.__proto__:1",
    "meta.%F0%9F%98%80:x",
    "meta.x:%7B%7D",
]
HEADERS: list[tuple[dict[str, str | bytes], str, str | None]] = [
    ({"Service-Timezone": "Mars/Olympus"}, INVALID, "Service-Timezone"),
    ({"Service-Timezone": ""}, INVALID, "Service-Timezone"),
    ({"Service-Timezone": "../../etc/passwd"}, INVALID, "Service-Timezone"),
    ({"Service-Timezone": b"Europe/Berlin\xff"}, INVALID, "Service-Timezone"),
    ({"Timekit-Timezone": "Mars/Olympus"}, INVALID, "Service-Timezone"),
    ({"Service-App": "no-such-app"}, NOT_FOUND, None),
    ({"Service-App": ""}, NOT_FOUND, None),
    ({"Service-App": "' OR 1=1--"}, NOT_FOUND, None),
    ({"Service-App": b"\xff\xfe"}, NOT_FOUND, None),
    ({"Service-App": "a" * 3000}, NOT_FOUND, None),
    ({"Timekit-App": "no-such-app"}, NOT_FOUND, None),
    ({"Accept": "text/html"}, NOT_ACCEPTABLE, None),
    ({"Accept": "x" * 3000}, NOT_ACCEPTABLE, None),
    ({"Accept": "application/xml, text/*"}, NOT_ACCEPTABLE, None),
]
KEY_HEADERS: list[dict[str, str | bytes]] = [
    {"Idempotency-Key": ""},
    {"Idempotency-Key": "x" * 256},
    {"Idempotency-Key": "a b"},
    {"Idempotency-Key": b"\xff"},
    {"Idempotency-Key": "\xe4"},
    {"Idempotency-Key": "a\tb"},
]
# Taken as they are, or passed over.
HARMLESS_HEADERS: list[dict[str, str | bytes]] = [
    {"Accept": "application/json;q=0, */*"},
    {"Accept": "application/json;q=0"},
    {"X-Request-Id": "x" * 500},
    {"X-Request-Id": "a b\tc"},
    {"X-Request-Id": b"\xff"},
    {"Service-Context": "x" * 3000},
    {"Service-Context": b"\x80\xff \xe2\x80\xae"},
    {"X-Forwarded-For": "not an address, ' OR 1=1--"},
    {"X-Forwarded-For": ","},
    {"X-HTTP-Method-Override": "DELETE"},
    {"Accept": "application/json;q=x"},
    {"Accept": "*/*;q=0.1"},
    {"Accept": ""},
    {"Cookie": "sessionid=' OR 1=1--; csrftoken=\xff"},
    {"Range": "bytes=0-1"},
    {"If-None-Match": "*"},
    {"Origin": "null"},
    {"Timestamp-Format": "x"},
    {"Content-Type": "text/html"},
]
# An Authorization header that lets nobody in; None: no header. {key} is a real server key.
NO_AUTHORIZATION: list[str | bytes | None] = [
    None,
    "",
    "Basic",
    "Basic ",
    "Basic %%%",
    "Basic Og==",
    "Basic bm9jb2xvbg==",
    "Basic //79",
    "Basic " + "A" * 7000,
    "Bearer {key}x",
    "Bearer",
    "{key}",
    "Digest username=x",
    b"Basic \xff\xfe",
    "basic AAAA",
    "Basic OgA6",
    "Negotiate oYG",
]

# --- Strange but right ----------------------------------------------------------------------------
ODD_NAMES = [
    "\u202ekcilc ton od",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "Z\u0351\u036b\u0343\u036aa\u0302\u036bl\u030d\u033bg\u0311\u0357o\u0309",
    "\u0131\u0130\u017f\u00df\ufb01",
    "\U0001f600" * 200,
    "  blanks around  ",
    "<script>alert(1)</script>",
    "'; DROP TABLE bookings_booking; --",
    "{{ 7*7 }}{% debug %}${7*7}%s%n",
    "__proto__",
    "null",
    "\ufeffname",
    "\ue000\uffff\U0010ffff",
    "a\u0300\u0301",
    "\u3164",
    "../../etc/passwd",
]
ODD_METAS: list[dict[str, Any]] = [
    {"__proto__": {"admin": True}, "constructor": 1, "toString": "x"},
    {"": "", " ": " ", "a.b": 1, "a'b": 2, 'a"b': 3, "a\\b": 4, "$": 5, "\U0001f600": 6},
    {"big": 2**63 - 1, "small": -(2**63), "float": 9e18, "tiny": 5e-324, "minus": -0.0},
    {"true": True, "none": [None], "list": [[], {}, [[[[]]]]]},
    {str(number): number for number in range(50)},
    {"long": "\u00e4" * 8000},
    json.loads(nested(29)),
]
