"""What a tool is, and one call of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from agents.records import Json, refusal_record
from agents.schemas import Schema
from apps_config.authentication import Caller
from apps_config.operations import Answer, Operation, call_operation


class ToolRefusal(Exception):
    """The API refuses what the tool asked for; `record` says why."""

    def __init__(self, record: Json) -> None:
        super().__init__(record)
        self.record = record


@dataclass(frozen=True)
class Call:
    """One call of a tool. responses, state: of a repeated call, a person's answers and the
    confirmation. can_ask: the client shows questions to a person.
    """

    tool: "Tool"
    arguments: Mapping[str, Any]
    caller: Caller
    request: HttpRequest
    can_ask: bool = False
    responses: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None

    def argument(self, name: str) -> Any:
        return self.arguments.get(name)

    def chosen(self, *names: str) -> Json:
        """The arguments with these names, as far as they are given."""
        return {name: self.arguments[name] for name in names if name in self.arguments}

    @property
    def headers(self) -> dict[str, str]:
        zone = self.argument("zone")
        prefix = settings.API_HEADER_PREFIXES[0].upper().replace("-", "_")
        return {f"HTTP_{prefix}_TIMEZONE": zone} if zone else {}

    def perform(self, operation: Operation, **headers: str) -> Answer:
        """Return the response. Raises ToolRefusal."""
        answer = call_operation(
            operation, caller=self.caller, origin=self.request, **self.headers, **headers
        )
        if answer.is_refusal:
            raise ToolRefusal(refusal_record(answer.json))
        return answer


@dataclass(frozen=True)
class Tool:
    """A tool. operations: all that it does, by viewset and action, as in `permissions.ACCESS`.

    arguments: JSON Schema by name. answer: of the structured result. run: returns it.
    """

    name: str
    title: str
    description: str
    operations: tuple[tuple[str, str], ...]
    arguments: Mapping[str, Schema]
    required: tuple[str, ...]
    answer: Schema
    run: Callable[[Call], Json]
    is_write: bool = False
    is_destructive: bool = False

    @property
    def input_schema(self) -> Schema:
        return {
            "type": "object",
            "properties": dict(self.arguments),
            "required": list(self.required),
            "additionalProperties": False,
        }

    def describe(self) -> Json:
        """The tool's entry in tools/list."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.answer,
            "annotations": {
                "readOnlyHint": not self.is_write,
                "destructiveHint": self.is_destructive,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }
