"""POST /mcp: the protocol's revisions, headers and errors, as whole responses."""

from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from tests.agents.client import META, MODERN, Agent, modern
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

SERVER = {"name": "scheduling", "title": "Scheduling", "version": settings.VERSION}
SUPPORTED = ["2026-07-28", "2025-11-25", "2025-06-18"]
READ = [
    *("list_services", "find_times", "explain_time"),
    *("list_bookings", "get_booking", "list_resources"),
]
WRITE = [
    *("hold_time", "book", "reschedule_booking"),
    *("cancel_booking", "answer_request", "set_outcome"),
]
METADATA = f"{settings.PUBLIC_URL}/.well-known/oauth-protected-resource/mcp"


def headers(method: str, **others: str) -> dict[str, str]:
    return {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, **others}


def error(code: int, message: str, message_id: Any = None, data: Any = None) -> Any:
    body = {"code": code, "message": message} | ({"data": data} if data else {})
    return {"jsonrpc": "2.0", "id": message_id, "error": body}


def test_discover(agent: Agent) -> None:
    answer = agent.request("server/discover")

    result = answer.json["result"]
    assert answer.status == 200
    assert result.pop("instructions").startswith("Find what can be booked with list_services")
    assert result == {
        "resultType": "complete",
        "supportedVersions": SUPPORTED,
        "capabilities": {"tools": {}},
        "ttlMs": 300000,
        "cacheScope": "private",
        "_meta": {f"{META}serverInfo": SERVER},
    }


def test_tools_have_a_fixed_order_schemas_and_annotations(agent: Agent) -> None:
    result = agent.request("tools/list").json["result"]

    assert result == agent.request("tools/list").json["result"]
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == (
        "complete",
        300000,
        "private",
    )
    assert [tool["name"] for tool in result["tools"]] == READ + WRITE
    destroying = {"reschedule_booking", "cancel_booking", "answer_request"}
    for tool in result["tools"]:
        assert tool["annotations"] == {
            "readOnlyHint": tool["name"] in READ,
            "destructiveHint": tool["name"] in destroying,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        assert ("request_id" in tool["inputSchema"]["required"]) == (tool["name"] in WRITE)
        assert ("dry_run" in tool["inputSchema"]["properties"]) == (tool["name"] in WRITE)


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_an_older_client_begins_with_initialize(agent: Agent, version: str) -> None:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c"}}
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    named = {"MCP-Protocol-Version": version}

    begun = agent.post(begin)
    noted = agent.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, named)
    pinged = agent.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, named)
    listed = agent.post({"jsonrpc": "2.0", "id": "two", "method": "tools/list"}, named)
    unknown = agent.post({"jsonrpc": "2.0", "id": 3, "method": "prompts/list"}, named)

    result = begun.json["result"]
    assert result.pop("instructions")
    assert result == {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": SERVER,
    }
    assert "Mcp-Session-Id" not in begun.headers
    assert (noted.status, noted.content) == (202, b"")
    assert pinged.json == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert list(listed.json["result"]) == ["tools"]
    assert (unknown.status, unknown.json) == (200, error(-32601, "Method not found", 3))


def test_initialize_with_another_version_offers_the_newest_with_a_handshake(agent: Agent) -> None:
    params = {"protocolVersion": "2024-11-05", "capabilities": {}}

    begun = agent.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})

    assert begun.json["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("method", ["initialize", "ping", "resources/list", "nothing"])
def test_a_method_that_the_newest_revision_lacks_is_404(agent: Agent, method: str) -> None:
    body = modern(method)

    answer = agent.post(body, headers(method))

    assert (answer.status, answer.json) == (404, error(-32601, "Method not found", body["id"]))


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ({"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}, "Mcp-Method"),
        ({"MCP-Protocol-Version": MODERN, "Mcp-Name": "book"}, "Mcp-Method"),
        (headers("tools/call"), "Mcp-Name"),
        (headers("tools/call", **{"Mcp-Name": "cancel_booking"}), "Mcp-Name"),
        (headers("tools/call", **{"Mcp-Name": "=?base64?Ym9vaw==?="}), None),
        (headers("tools/call", **{"Mcp-Name": "=?base64?%%?="}), "Mcp-Name"),
        ({**headers("tools/call"), "MCP-Protocol-Version": "2025-11-25"}, "MCP-Protocol-Version"),
    ],
)
def test_headers_that_differ_from_the_body(
    agent: Agent, sent: dict[str, str], name: str | None
) -> None:
    body = modern("tools/call", name="book", arguments={})

    answer = agent.post(body, sent)

    if name is None:
        assert answer.status == 200
        assert answer.json["result"]["isError"]
    else:
        refused = error(-32020, f"The header {name} differs from the body.", body["id"])
        assert (answer.status, answer.json) == (400, refused)


def test_a_body_of_another_revision_than_the_header(agent: Agent) -> None:
    body = modern("tools/list")
    body["params"]["_meta"][f"{META}protocolVersion"] = "2025-11-25"

    answer = agent.post(body, headers("tools/list"))

    words = "The header MCP-Protocol-Version differs from the body."
    assert (answer.status, answer.json) == (400, error(-32020, words, body["id"]))


def test_a_revision_that_is_not_spoken(agent: Agent) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    answer = agent.post(body, {"MCP-Protocol-Version": "1900-01-01"})

    data = {"supported": SUPPORTED, "requested": "1900-01-01"}
    refused = error(-32022, "Unsupported protocol version", 1, data)
    assert (answer.status, answer.json) == (400, refused)


def test_a_message_without_a_revision_is_told_which_there_are(agent: Agent) -> None:
    answer = agent.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {})

    words = "The header MCP-Protocol-Version is required: 2026-07-28, 2025-11-25 or 2025-06-18."
    assert (answer.status, answer.json) == (400, error(-32020, words, 1))


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ([], -32600, "The body must be one JSON-RPC request."),
        ([modern("tools/list")], -32600, "The body must be one JSON-RPC request."),
        ({"method": "ping"}, -32600, "The body must be one JSON-RPC request."),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, -32600, None),
        (
            {"jsonrpc": "2.0", "result": {}},
            -32600,
            "`method` must be a text, `params` an object.",
        ),
    ],
)
def test_a_body_that_is_no_message(agent: Agent, body: Any, code: int, words: str | None) -> None:
    answer = agent.post(body, headers("tools/list"))

    words = words or "`id` must be a text or an integer."
    assert (answer.status, answer.json) == (400, error(code, words))


def test_a_body_that_is_no_json(agent: Agent) -> None:
    answer = agent.post(b"{", headers("tools/list"))

    assert answer.status == 400
    assert answer.json["error"]["code"] == -32700


def test_a_body_that_is_too_large(agent: Agent) -> None:
    answer = agent.post(b" " * (256 * 1024 + 1), headers("tools/list"))

    assert answer.status == answer.json["error"]["code"] == 413


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_other_methods_are_405(agent: Agent, method: str) -> None:
    streams = {**agent.headers, "Accept": "text/event-stream"}
    answer = agent.client.generic(method, "/mcp", headers=streams)

    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST, OPTIONS")


def test_no_tool_of_that_name(agent: Agent) -> None:
    answer = agent.request("tools/call", name="erase_everything", arguments={})

    assert answer.status == 400
    assert answer.json["error"] == {"code": -32602, "message": "There is no such tool."}


@pytest.mark.parametrize("key", ["", "server_nothing"])
def test_401_says_where_to_get_a_token(transactional_db: None, key: str) -> None:
    answer = Agent(key).request("tools/list")

    assert (answer.status, answer.json["error"]["code"]) == (401, 401)
    assert answer.headers["WWW-Authenticate"] == (
        f'Bearer error="invalid_token", resource_metadata="{METADATA}"'
    )


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (settings.PUBLIC_URL, 200),
        ("https://evil.example", 403),
        ("null", 403),
        (f"{settings.PUBLIC_URL}.evil.example", 403),
    ],
)
def test_other_web_sites_are_refused(tenant: Tenant, origin: str, status: int) -> None:
    answer = Agent(tenant.key, Origin=origin).request("tools/list")

    assert answer.status == status
    if status == 403:
        assert answer.json["error"]["message"] == "Other web sites can't call tools."


def test_a_key_calls_sixty_times_a_minute(agent: Agent) -> None:
    statuses = [agent.request("server/discover").status for _ in range(61)]

    assert statuses == [200] * 60 + [429]


def test_a_key_changes_ten_things_a_minute(agent: Agent, booking: Any) -> None:
    def set_outcome(number: int) -> Any:
        return agent.call(
            "set_outcome", booking_id=booking["id"], outcome=None, request_id=f"r{number}"
        )

    results = [set_outcome(number) for number in range(11)]

    assert [result["isError"] for result in results] == [False] * 10 + [True]
    assert "At most 10 changes a minute." in results[-1]["content"][0]["text"]


@override_settings(PUBLIC_URL="https://book.example.com")
def test_the_metadata_of_the_protected_resource(agent: Agent) -> None:
    answer = agent.client.get("/.well-known/oauth-protected-resource/mcp")

    assert answer.json() == {
        "resource": "https://book.example.com/mcp",
        "bearer_methods_supported": ["header"],
        "resource_name": "Scheduling",
    }
