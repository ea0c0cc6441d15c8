"""A client of /mcp for tests: one message, one answer."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

from django.test import Client

from tests.world import Answer

MODERN, META = "2026-07-28", "io.modelcontextprotocol/"
_ids = itertools.count(1)


class Agent:
    """Calls tools with a key. capabilities: what the client can do."""

    def __init__(self, key: str, capabilities: Mapping[str, Any] | None = None, **headers: str):
        self.client = Client()
        self.headers = {"Authorization": f"Bearer {key}", **headers}
        self.capabilities = dict(capabilities or {})

    def post(self, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a body as it is: a value, or bytes."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Answer(
            self.client.generic(
                "POST",
                "/mcp",
                content,
                content_type="application/json",
                headers={**self.headers, **(headers or {})},
            )
        )

    def request(self, method: str, **params: Any) -> Answer:
        """A well-formed request of the newest revision."""
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method == "tools/call":
            headers["Mcp-Name"] = params["name"]
        return self.post(modern(method, self.capabilities, **params), headers)

    def call(self, tool: str, /, *, inputs: Any = None, state: Any = None, **arguments: Any) -> Any:
        """The result of a tool; `from_` is the argument `from`."""
        given = {name.rstrip("_"): value for name, value in arguments.items()}
        more = {"inputResponses": inputs} if inputs is not None else {}
        more |= {"requestState": state} if state is not None else {}
        answer = self.request("tools/call", name=tool, arguments=given, **more)
        assert answer.status == 200, (answer.status, answer.json)
        return answer.json["result"]

    def use(self, tool: str, /, **arguments: Any) -> Any:
        """The structured result of a tool that does not refuse."""
        result = self.call(tool, **arguments)
        assert not result["isError"], result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    def refused(self, tool: str, /, **arguments: Any) -> Any:
        """Why a tool refuses."""
        result = self.call(tool, **arguments)
        assert result["isError"], result
        assert "structuredContent" not in result
        return json.loads(result["content"][0]["text"])


def modern(method: str, capabilities: Mapping[str, Any] | None = None, **params: Any) -> Any:
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": dict(capabilities or {})}
    return {
        "jsonrpc": "2.0",
        "id": next(_ids),
        "method": method,
        "params": {**params, "_meta": meta},
    }
