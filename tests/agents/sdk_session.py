"""A session of the Python SDK's client, run by its own interpreter: `sdk_session.py URL KEY MODE`.

Prints the revision, the tools, the result of a booking, and what the person was asked.
"""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult


async def main(url: str, key: str, mode: str) -> None:
    asked: list[str] = []

    async def agree(_: Any, question: Any) -> ElicitResult:
        asked.append(question.message.splitlines()[0])
        return ElicitResult(action="accept", content={"confirm": True})

    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
    transport = streamable_http_client(url, http_client=http)
    async with Client(transport, mode=mode, elicitation_callback=agree) as client:
        tools = (await client.list_tools()).tools
        services = await client.call_tool("list_services", {})
        project_id = services.structured_content["services"][0]["project_id"]
        times = await client.call_tool("find_times", {"project_id": project_id})
        time = times.structured_content["times"][0]
        wish = {
            "project_id": project_id,
            "start": time["start"],
            "end": time["end"],
            "customer": {"name": "Marty McFly", "email": "marty@example.com"},
            "request_id": mode,
        }
        booked = await client.call_tool("book", wish)
        print(
            json.dumps(
                {
                    "version": client.protocol_version,
                    "tools": len(tools),
                    "status": booked.structured_content["status"],
                    "asked": asked,
                }
            )
        )


asyncio.run(main(*sys.argv[1:]))
