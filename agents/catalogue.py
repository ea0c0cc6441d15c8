"""All tools, in the order in which they are listed, and who may call each."""

from collections.abc import Mapping

from agents.read_tools import READ_TOOLS
from agents.tools import Tool
from agents.write_tools import WRITE_TOOLS
from apps_config.authentication import Caller
from apps_config.permissions import ACCESS, may_call

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in (*READ_TOOLS, *WRITE_TOOLS)}


def tools_of(caller: Caller) -> list[Tool]:
    return [tool for tool in TOOLS.values() if may_use(caller, tool)]


def may_use(caller: Caller, tool: Tool) -> bool:
    """Whether the key may call all operations of the tool, by the API's own table."""
    return all(may_call(caller, ACCESS[viewset][action]) for viewset, action in tool.operations)


def tool_scopes() -> set[str]:
    """The scopes that all tools need together."""
    operations = {operation for tool in TOOLS.values() for operation in tool.operations}
    return {scope for viewset, action in operations for scope in ACCESS[viewset][action].scopes}
