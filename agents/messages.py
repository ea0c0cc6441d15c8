"""JSON-RPC messages of the Model Context Protocol: which revision a request speaks, and whether it
is well-formed. Without HTTP views and tools.

The revision 2026-07-28 has no session: each request says in `_meta` which revision it speaks and
what the client can do, and repeats method and name in headers. The two revisions before begin with
`initialize`, whose result we do not need to remember.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18")
META = "io.modelcontextprotocol/"
INITIALIZE, CALL_TOOL = "initialize", "tools/call"

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
# A header's value that is not plain ASCII.
ENCODED = re.compile(r"=\?base64\?(.*)\?=")


class BadMessage(Exception):
    """An error response of JSON-RPC. status: of HTTP."""

    def __init__(self, code: int, message: str, *, status: int = 400, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.data = data


@dataclass(frozen=True)
class Message:
    """A request, or a notification, whose `id` is None. version: the revision that it speaks."""

    id: str | int | None
    method: str
    params: Mapping[str, Any]
    version: str

    @property
    def is_modern(self) -> bool:
        return self.version == MODERN

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client can do. Older clients are asked on a stream, which is not served."""
        declared = _object(self.params.get("_meta")).get(f"{META}clientCapabilities")
        return _object(declared) if self.is_modern else {}

    @property
    def can_ask(self) -> bool:
        """Whether the client shows a form to a person. An empty object means forms."""
        if "elicitation" not in self.capabilities:
            return False
        modes = _object(self.capabilities["elicitation"])
        return not modes or "form" in modes


def read_id(body: Any) -> str | int | None:
    """Return the id of a request, for an error response too; None for a notification, or if it is
    neither a text nor an integer.
    """
    message_id = body.get("id") if isinstance(body, dict) else None
    is_valid = isinstance(message_id, str | int) and not isinstance(message_id, bool)
    return message_id if is_valid else None


def read_message(body: Any, headers: Mapping[str, str]) -> Message:
    """Return the message of a body. headers: of the request. Raises BadMessage."""
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise BadMessage(INVALID_REQUEST, "The body must be one JSON-RPC request.")
    method, params, message_id = body.get("method"), body.get("params", {}), read_id(body)
    if not isinstance(method, str) or not isinstance(params, dict):
        raise BadMessage(INVALID_REQUEST, "`method` must be a text, `params` an object.")
    if "id" in body and message_id is None:
        raise BadMessage(INVALID_REQUEST, "`id` must be a text or an integer.")
    version = _version(method, params, headers)
    message = Message(message_id, method, params, version)
    if message.is_modern and "id" in body:
        _check_modern(message, headers)
    return message


def _version(method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Return the revision of a message. Raises BadMessage for one that we do not speak."""
    named = _object(params.get("_meta")).get(f"{META}protocolVersion")
    if method == INITIALIZE and named is None:
        asked = params.get("protocolVersion")
        return asked if asked in LEGACY else LEGACY[0]
    version = headers.get("MCP-Protocol-Version", named)
    if version is None:
        revisions = f"{', '.join([MODERN, *LEGACY[:-1]])} or {LEGACY[-1]}"
        text = f"The header MCP-Protocol-Version is required: {revisions}."
        raise BadMessage(HEADER_MISMATCH, text)
    if named is not None and named != version:
        raise BadMessage(HEADER_MISMATCH, "The header MCP-Protocol-Version differs from the body.")
    if version not in (MODERN, *LEGACY):
        supported = {"supported": [MODERN, *LEGACY], "requested": version}
        raise BadMessage(UNSUPPORTED_VERSION, "Unsupported protocol version", data=supported)
    return version


def _check_modern(message: Message, headers: Mapping[str, str]) -> None:
    """Check that headers and body say the same. Raises BadMessage."""
    meta = _object(message.params.get("_meta"))
    for name in ("protocolVersion", "clientCapabilities"):
        if f"{META}{name}" not in meta:
            raise BadMessage(INVALID_PARAMS, f"`params._meta` lacks `{META}{name}`.")
    expected = {
        "MCP-Protocol-Version": meta[f"{META}protocolVersion"],
        "Mcp-Method": message.method,
    }
    if message.method == CALL_TOOL:
        expected["Mcp-Name"] = message.params.get("name")
    for name, value in expected.items():
        if name not in headers or _decoded(headers[name]) != value:
            raise BadMessage(HEADER_MISMATCH, f"The header {name} differs from the body.")


def _decoded(value: str) -> str | None:
    """Return the value of a header; None if its encoding is broken."""
    encoded = ENCODED.fullmatch(value)
    if not encoded:
        return value
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
