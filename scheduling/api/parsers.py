"""Reading a request's body: one strict JSON parser for the whole API (reliability, 3.4)."""

import json
import re
from typing import Any, BinaryIO

from django.http import HttpRequest
from django.utils.http import parse_header_parameters
from rest_framework.parsers import BaseParser

from scheduling.api.errors import Malformed, TooLarge, UnsupportedMediaType

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_NODES = 10_000
MAX_INT_DIGITS = 20
INT_RANGE = range(-(2**63), 2**63)

BOM = b"\xef\xbb\xbf"
# A whole string literal (or its unfinished rest), or one bracket. Possessive, hence linear.
LANDMARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
SURROGATE = re.compile("[\ud800-\udfff]")


def parse_body(raw: bytes) -> Any:
    """The JSON value of a body; an empty body is `{}`.

    Raises TooLarge, or Malformed with a sentence that names the fault: no JSON, wrong encoding,
    duplicate keys, NaN, too deep, too many values, NUL or a lone surrogate (contract, section 1).
    """
    if len(raw) > MAX_BYTES:
        raise TooLarge
    if not raw:
        return {}
    text = decode_body(raw)
    check_depth(text)
    value = load_json(text)
    check_values(value, escaped="\\u" in text)
    return value


def decode_body(raw: bytes) -> str:
    if raw.startswith(BOM):
        raise Malformed("The body begins with a byte order mark.")
    if b"\0" in raw:
        raise Malformed("The body contains a NUL character.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise Malformed(f"The body is not valid UTF-8 (byte {exc.start}).") from None


def check_depth(text: str) -> None:
    """Counts brackets outside strings: json.loads itself would run out of stack."""
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
    # PostgreSQL gives a large one back as an integer, which beyond 64 bits no answer can carry.
    number = float(digits)
    if not abs(number) < 2**63:
        raise Malformed("The body has a number that is too large.")
    return number


def refuse_constant(name: str) -> Any:
    raise Malformed(f"The body contains {name}, which is not JSON.")


def check_values(value: Any, *, escaped: bool) -> None:
    """Counts values, and reads strings for what PostgreSQL and UTF-8 can't hold.

    Only escapes can bring those in, so a body without any (`escaped` false) is spared the look.
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


def check_content_type(content_type: str) -> None:
    """Raises UnsupportedMediaType unless this is JSON in UTF-8; none at all counts as that."""
    if not content_type:
        return
    try:
        media_type, parameters = parse_header_parameters(content_type)
    except ValueError:
        raise UnsupportedMediaType from None
    charset = parameters.get("charset", "utf-8").lower()
    if media_type != "application/json" or charset not in ("utf-8", "utf8"):
        raise UnsupportedMediaType


def check_content_encoding(encoding: str) -> None:
    """Raises UnsupportedMediaType for an encoded body, with the header of RFC 9110, 15.5.16."""
    if encoding.strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType(
            "The body must be sent without a Content-Encoding.",
            headers={"Accept-Encoding": "identity"},
        )


def read_body(request: HttpRequest) -> bytes:
    """The request's bytes, at most MAX_BYTES; kept, so that `request.body` gives them again.

    Raises TooLarge, also where Content-Length is absent or lies. Django alone takes a chunked
    body for an empty one; servers that mark the end of their input allow to read it.
    """
    if not hasattr(request, "_body"):
        request._body = read_at_most(body_stream(request), MAX_BYTES + 1)
    if len(request._body) > MAX_BYTES:
        raise TooLarge
    return request._body


def body_stream(request: HttpRequest) -> BinaryIO:
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdigit() and (len(length) > 10 or int(length) > MAX_BYTES):
        raise TooLarge
    if not length and request.META.get("wsgi.input_terminated"):
        return request.META["wsgi.input"]
    return request


def read_at_most(stream: BinaryIO, size: int) -> bytes:
    """Reads to the end or up to `size` bytes; one read() may give less than there is.

    Raises Malformed where the connection gives out.
    """
    pieces = []
    try:
        while size > 0 and (piece := stream.read(size)):
            pieces.append(piece)
            size -= len(piece)
    except Exception:
        # The client hung up, or its chunks are none: each server has errors of its own for that.
        raise Malformed("The body ended early.") from None
    return b"".join(pieces)


class StrictJSONParser(BaseParser):
    """`parse_body` as DRF's parser."""

    media_type = "application/json"

    def parse(
        self, stream: BinaryIO, media_type: str | None = None, parser_context: Any = None
    ) -> Any:
        check_content_type(media_type or "")
        return parse_body(read_at_most(stream, MAX_BYTES + 1))
