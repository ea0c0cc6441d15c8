"""JSON of the API: one strict parser of request bodies, and one renderer."""

import json
import re
from typing import IO, Any

import orjson
from django.http import UnreadablePostError
from django.utils.http import parse_header_parameters
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from common.errors import Malformed, TooLarge, UnsupportedMediaType, unreadable_body

MAX_BYTES = 256 * 1024
CHUNKED_LENGTH = MAX_BYTES + 1  # enough to see that a body is too large
MAX_DEPTH = 32
MAX_NODES = 10_000
MAX_INT_DIGITS = 20
INT_RANGE = range(-(2**63), 2**63)

BOM = b"\xef\xbb\xbf"
# A whole string literal (or its unfinished rest), or one bracket. Possessive, hence linear.
LANDMARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
SURROGATE = re.compile("[\ud800-\udfff]")


def parse_body(raw: bytes) -> Any:
    """Parse a body as JSON; an empty body is `{}`.

    Raises TooLarge, or Malformed with a sentence that names the error: no JSON, wrong encoding,
    duplicate keys, NaN, too deep, too many values, NUL or a lone surrogate (api.md section 1).
    """
    if len(raw) > MAX_BYTES:
        raise TooLarge
    if not raw:
        return {}
    text = decode_utf8(raw)
    check_depth(text)
    value = load_json(text)
    check_values(value, escaped="\\u" in text)
    return value


def decode_utf8(raw: bytes) -> str:
    if raw.startswith(BOM):
        raise Malformed("The body begins with a byte order mark.")
    if b"\0" in raw:
        raise Malformed("The body contains a NUL character.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise Malformed(f"The body is not valid UTF-8 (byte {exc.start}).") from None


def check_depth(text: str) -> None:
    """Count brackets outside of strings, since json.loads would exhaust the stack."""
    depth = 0
    for landmarks, match in enumerate(LANDMARK.finditer(text), start=1):
        # A value has at most three landmarks: its key and two brackets.
        if landmarks > 3 * MAX_NODES:
            raise Malformed(f"The body has more than {MAX_NODES} values.")
        mark = text[match.start()]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Malformed(f"The body is nested deeper than {MAX_DEPTH} levels.")
        elif mark in "]}":
            depth -= 1


def load_json(text: str) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=unique_keys,
            parse_int=bounded_int,
            parse_float=bounded_float,
            parse_constant=refuse_constant,
        )
    except json.JSONDecodeError as exc:
        raise Malformed(f"The body is not valid JSON: {exc}.") from None


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed("The body has an object with a duplicate key.")
    return members


def bounded_int(digits: str) -> int:
    if len(digits) > MAX_INT_DIGITS or int(digits) not in INT_RANGE:
        raise Malformed("The body has an integer beyond 64 bits.")
    return int(digits)


def bounded_float(digits: str) -> float:
    # PostgreSQL returns a large one as an integer, which can't be rendered above 64 bits.
    number = float(digits)
    if not abs(number) < 2**63:
        raise Malformed("The body has a number that is too large.")
    return number


def refuse_constant(name: str) -> Any:
    raise Malformed(f"The body contains {name}, which is not JSON.")


def check_values(value: Any, *, escaped: bool) -> None:
    """Count values, and check strings for what PostgreSQL and UTF-8 can't store.

    Only escapes can produce such characters, so strings are not checked unless `escaped`.
    """
    nodes, waiting = 0, [value]
    while waiting:
        node = waiting.pop()
        nodes += 1
        if nodes > MAX_NODES:
            raise Malformed(f"The body has more than {MAX_NODES} values.")
        if isinstance(node, dict):
            waiting.extend(node.values())
            if escaped:
                check_text("".join(node))
        elif isinstance(node, list):
            waiting.extend(node)
        elif escaped and isinstance(node, str):
            check_text(node)


def check_text(text: str) -> None:
    if "\0" in text:
        raise Malformed("The body contains a NUL character.")
    if SURROGATE.search(text):
        raise Malformed("The body contains a lone surrogate.")


def check_content_type(content_type: str, expected: str = "application/json") -> None:
    """Raise UnsupportedMediaType for another type or charset; a missing type is accepted."""
    if not content_type:
        return
    try:
        media_type, parameters = parse_header_parameters(content_type)
    except ValueError:
        raise UnsupportedMediaType from None
    charset = parameters.get("charset", "utf-8").lower()
    if media_type != expected or charset not in ("utf-8", "utf8"):
        raise UnsupportedMediaType(f"The body must be {expected} in UTF-8.")


def check_content_encoding(encoding: str) -> None:
    """Raise UnsupportedMediaType for an encoded body, with the header of RFC 9110, 15.5.16."""
    if encoding.strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType(
            "The body must be sent without a Content-Encoding.",
            headers={"Accept-Encoding": "identity"},
        )


def read_body(request: Request, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the body's bytes, at most `max_bytes`. Raises TooLarge, RequestTimeout, Malformed.

    A chunked body comes with the length CHUNKED_LENGTH: scheduling/wsgi.py.
    """
    length = request.META.get("CONTENT_LENGTH") or ""
    is_known = length.isdigit() and length != str(CHUNKED_LENGTH)
    if is_known and (len(length) > 10 or int(length) > max_bytes):
        raise TooLarge
    try:
        body = request.body
    except (UnreadablePostError, OSError) as error:
        raise unreadable_body(error) from None
    if len(body) > max_bytes:
        raise TooLarge
    return body


class StrictJSONParser(BaseParser):
    """`parse_body` as DRF's parser. It takes every type, to refuse others in its own words, and a
    body without a type as JSON.
    """

    media_type = "*/*"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None
    ) -> Any:
        raw = stream.read()
        if raw:
            check_content_type(media_type or "")
            check_content_encoding(parser_context["request"].META.get("HTTP_CONTENT_ENCODING", ""))
        return parse_body(raw)


def render_json(data: Any) -> bytes:
    """Render plain values and UUIDs as JSON; datetimes must be formatted before, in their zone."""
    return orjson.dumps(data, option=orjson.OPT_PASSTHROUGH_DATETIME)


class JSONRenderer(BaseRenderer):
    """`render_json` as DRF's renderer; None is no body."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return b"" if data is None else render_json(data)
