import contextlib
import io
import json
import time
import uuid
from datetime import UTC, datetime

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.test import RequestFactory
from hypothesis import example, given
from hypothesis import strategies as st

from common.api.json import (
    CHUNKED_LENGTH,
    MAX_BYTES,
    JSONRenderer,
    StrictJSONParser,
    check_content_type,
    parse_body,
    read_body,
)
from common.errors import Malformed, Refusal, TooLarge, UnsupportedMediaType


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"", {}),
        (b"[]", []),
        (b"null", None),
        (b' {"a": [1, -2.5, true, "\xc3\xa9"]} ', {"a": [1, -2.5, True, "é"]}),
        (rb'"\ud83d\ude00 \\ \" \u0001"', '\U0001f600 \\ " \x01'),
        (b"[" * 32 + b"]" * 32, json.loads("[" * 32 + "]" * 32)),
        (b'"' + b"[" * 5000 + b'"', "[" * 5000),
        (rb'["\\", "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["]', ["\\", '"' + "[" * 36]),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"1e-400", 0.0),
        (rb'"\\u0000"', "\\u0000"),
        (json.dumps([0] * 9_999).encode(), [0] * 9_999),
    ],
)
def test_accepted_bodies(raw, value):
    assert parse_body(raw) == value


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'\xef\xbb\xbf{"a": 1}', "The body begins with a byte order mark."),
        (b'{"a": "\xff"}', "The body is not valid UTF-8 (byte 7)."),
        (b'"\xed\xa0\x80"', "The body is not valid UTF-8 (byte 1)."),
        ('{"a": 1}'.encode("utf-16-le"), "The body contains a NUL character."),
        (b"NaN", "The body contains NaN, which is not JSON."),
        (b'{"a": -Infinity}', "The body contains -Infinity, which is not JSON."),
        (b"1e400", "The body has a number that is too large."),
        (b"-1e400", "The body has a number that is too large."),
        (b"9223372036854775808", "The body has an integer beyond 64 bits."),
        (b"9" * 5000, "The body has an integer beyond 64 bits."),
        (b'{"a": 1, "a": 1}', "The body has an object with a duplicate key."),
        (b'[{"a": 1, "\\u0061": 2}]', "The body has an object with a duplicate key."),
        (b"[" * 33 + b"]" * 33, "The body is nested deeper than 32 levels."),
        (b"[" * 100_000, "The body is nested deeper than 32 levels."),
        (b'{"a":' * 7000, "The body is nested deeper than 32 levels."),
        (json.dumps([0] * 10_000).encode(), "The body has more than 10000 values."),
        (b"[" + b"[]," * 80_000 + b"0]", "The body has more than 10000 values."),
        (b'{"a": "\0"}', "The body contains a NUL character."),
        (rb'{"a": "x\u0000"}', "The body contains a NUL character."),
        (rb'{"\u0000": 1}', "The body contains a NUL character."),
        (rb'["\ud800"]', "The body contains a lone surrogate."),
        (rb'{"\udc00": 1}', "The body contains a lone surrogate."),
        (b"{", "The body is not valid JSON: Expecting property name enclosed in double quotes: "
               "line 1 column 2 (char 1)."),
        (b"]", "The body is not valid JSON: Expecting value: line 1 column 1 (char 0)."),
        (b'"a\nb"', "The body is not valid JSON: Invalid control character at: "
                    "line 1 column 3 (char 2)."),
        (b"<a/>", "The body is not valid JSON: Expecting value: line 1 column 1 (char 0)."),
    ],
)  # fmt: skip
def test_malformed_bodies_are_refused(raw, message):
    with pytest.raises(Malformed) as refusal:
        parse_body(raw)

    assert refusal.value.message == message


def test_too_large_bodies_are_refused():
    assert parse_body(b" " * (MAX_BYTES - 1) + b"1") == 1
    with pytest.raises(TooLarge):
        parse_body(b" " * MAX_BYTES + b"1")


@pytest.mark.parametrize(
    "raw",
    [
        b'"' + b"\\" * 250_000,
        b'["' + b'","' * 80_000,
        b"[1" + b",1" * 120_000 + b"]",
        b'{"a":1,' * 30,
        b'"' + rb"\u0041" * 40_000 + b'"',
        b"{" + b",".join(b'"%d":0' % n for n in range(25_000)) + b"}",
    ],
)
def test_hostile_bodies_are_read_fast(raw):
    started = time.thread_time()  # of this thread alone, whatever else the machine does
    with contextlib.suppress(Refusal):
        parse_body(raw)

    assert time.thread_time() - started < 0.5


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(-(2**63), 2**63, exclude_min=True, exclude_max=True)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('abcé[{"\\', max_size=3), inner),
    max_leaves=20,
)


@given(json_values, st.booleans())
def test_json_values_round_trip(value, ascii_only):
    assert parse_body(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary() | st.text('[]{}",:\\u0d8e1-NaInfity\0 ').map(str.encode))
@example(rb'"\ud800\udc00"')
@example(b'{"":"","":""}')
def test_any_bytes_agree_with_json_loads(raw):
    try:
        value = parse_body(raw)
    except (Malformed, TooLarge):
        return

    assert value == (json.loads(raw) if raw else {})


@pytest.mark.parametrize(
    "content_type",
    ["", "application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf8"'],
)
def test_accepted_content_types(content_type):
    check_content_type(content_type)


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-16", "text/xml", "multipart/form-data; boundary=a", "json", ";",
     "application/x-www-form-urlencoded", "application/json; charset*=x'y'utf-8"],
)  # fmt: skip
def test_wrong_content_types_are_refused(content_type):
    with pytest.raises(UnsupportedMediaType):
        check_content_type(content_type)


def test_parser_reads_a_stream():
    context = {"request": RequestFactory().post("/v2/things")}

    assert StrictJSONParser().parse(io.BytesIO(b"[1]"), "application/json", context) == [1]


def request_with(stream, **environ):
    request = RequestFactory().post("/v2/things", content_type="application/json")
    request.META.pop("CONTENT_LENGTH", None)
    return WSGIRequest({**request.META, "wsgi.input": stream, **environ})


CHUNKED = {"CONTENT_LENGTH": str(CHUNKED_LENGTH)}  # as scheduling/wsgi.py sets it


def test_chunked_body_is_read():
    request = request_with(io.BytesIO(b"[" + b"1," * 5000 + b"1]"), **CHUNKED)

    assert len(read_body(request)) == 10_003
    assert request.body == read_body(request)


class HungUp(io.BytesIO):
    def read(self, size=-1):
        raise ConnectionResetError


@pytest.mark.parametrize("environ", [{"CONTENT_LENGTH": "5"}, CHUNKED])
def test_broken_connection_is_malformed(environ):
    request = request_with(HungUp(), **environ)

    with pytest.raises(Malformed) as refusal:
        read_body(request)

    assert refusal.value.message == "The body is incomplete."


def test_endless_chunked_body_is_refused():
    stream = io.BytesIO(b" " * 10_000_000)

    with pytest.raises(TooLarge):
        read_body(request_with(stream, **CHUNKED))

    assert stream.tell() == MAX_BYTES + 1


@pytest.mark.parametrize("length", [str(MAX_BYTES + 2), "9" * 5000])
def test_too_large_content_length_is_refused_unread(length):
    stream = io.BytesIO(b"{}")

    with pytest.raises(TooLarge):
        read_body(request_with(stream, CONTENT_LENGTH=length))

    assert stream.tell() == 0


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
