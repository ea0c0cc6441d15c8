"""What the API adds to drf-spectacular: envelopes, shared responses, parameters, examples.

A viewset names its serializer; `@extend_schema` says the rest:

    class ScheduleViewSet(TenantViewSet):
        serializer_class = ScheduleSerializer

        @extend_schema(summary="List schedules")
        def list(self, request): ...

        @extend_schema(
            summary="Create a schedule",
            examples=named_examples(request={"practice hours": {"name": "Practice hours"}}),
        )
        def create(self, request): ...

A serializer as the response is put into the envelope of its action: `ScheduleAnswer`, or for lists
`SchedulePage` or `ScheduleList`. Any other response is a schema as it is. A view without a key has
`public = True`, and in `errors` further error statuses.

Without an example of its own, that of a response is composed of the examples of its components.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from drf_spectacular.drainage import set_override
from drf_spectacular.extensions import OpenApiFilterExtension, OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import build_examples_list
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework.serializers import ListSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSetMixin

from common.api.fields import ListOf, ObjectOf
from common.api.response_schemas import nullable
from common.api.serializers import ObjectSerializer
from common.openapi.component_registry import COMPONENTS, Json, find_component, register_component
from common.openapi.components import (
    ANSWER_HEADERS,
    BEARER,
    CURSOR,
    CURSOR_PROPERTIES,
    ERROR_RESPONSES,
    ETAG,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    IF_NONE_MATCH,
    LIMIT,
    PAGE_NUMBER,
    PAGE_PROPERTIES,
    REPLAYED,
    REQUEST_ID,
    RETRY_AFTER,
    SECURITY,
    SERVICE_APP,
    SERVICE_TIMEZONE,
    list_of,
)
from common.openapi.parameters import parameter_objects


# A response is a component of its own, because generated clients name their types after components:
# `BookingAnswer`, not `CreateBooking201Response`.
def data_object(kind: type[ObjectSerializer]) -> Json:
    """Return the response `{"data": {...}}`: `BookingAnswer` of `BookingSerializer`."""
    return envelope(f"{kind.component_name()}Answer", {"data": kind.schema})


def data_list(kind: type[ObjectSerializer], optional: Json | None = None) -> Json:
    """Return the response `{"data": [...]}`, without pages: `WebhookList` of `WebhookSerializer`.

    optional: further members, name -> schema.
    """
    return envelope(f"{kind.component_name()}List", {"data": list_of(kind.schema)}, optional)


def data_lists(kind: type[ObjectSerializer]) -> Json:
    """Return the response `{"data": [[...]]}`: `SpanLists` of `SpanSerializer`."""
    return envelope(f"{kind.component_name()}Lists", {"data": list_of(list_of(kind.schema))})


def page_of(kind: type[ObjectSerializer]) -> Json:
    """Return the response of a page: `BookingPage` of `BookingSerializer`."""
    page = {**PAGE_PROPERTIES, "data": list_of(kind.schema)}
    return envelope(f"{kind.component_name()}Page", page, {**CURSOR_PROPERTIES})


def envelope(name: str, properties: Json, optional: Json | None = None) -> Json:
    """Register the schema of a response; return the reference to it."""
    schema = {
        "type": "object",
        "properties": properties | (optional or {}),
        "required": list(properties),
    }
    if COMPONENTS.get(("schemas", name), schema) != schema:
        raise ValueError(f"There are two schemas called {name}.")
    return register_component("schemas", name, schema)


PUBLIC: tuple[int, ...] = (405, 500, 503)
ALWAYS: tuple[int, ...] = (400, 401, 403, 404, 405, 406, 422, 429, 500, 503)
WITH_EFFECT = (409,)
WITH_BODY = (408, 413, 415)


def parameters(
    *,
    query: Mapping[str, Json] | None = None,
    path: Mapping[str, Json] | None = None,
    headers: Mapping[str, Json] | None = None,
) -> Sequence[OpenApiParameter]:
    """Return parameters by name, each with its schema; `headers` are those of the response.

    A view refuses query parameters that are not among them.
    """
    return [
        *_parameters_in(OpenApiParameter.QUERY, query or {}),
        *_parameters_in(OpenApiParameter.PATH, path or {}),
        *_parameters_in(OpenApiParameter.HEADER, headers or {}, response=[200]),
    ]


ParameterPlace = Literal["query", "path", "header"]


def _parameters_in(
    place: ParameterPlace, schemas: Mapping[str, Json], **options: Any
) -> Iterator[OpenApiParameter]:
    """Yield the parameters; `required` and `description` of a schema become the parameter's own."""
    for name, schema in schemas.items():
        own = {"required", "description"}
        yield OpenApiParameter(
            name,
            {key: value for key, value in schema.items() if key not in own},
            place,
            required=place == OpenApiParameter.PATH or schema.get("required", False),
            description=schema.get("description", ""),
            **options,
        )


def examples_of(schema: Json) -> Mapping[str, Any]:
    """Return the example composed of the schema's parts; {} if a part has none."""
    try:
        return {"example": example_of(schema)}
    except KeyError:
        return {}


def example_of(schema: Json) -> Any:
    """Return the schema's own example, its component's, or one composed of its required parts.

    Raises KeyError if a part has none.
    """
    if "$ref" in schema:
        return example_of(find_component(schema))
    if "examples" in schema:
        return schema["examples"][0]
    if "items" in schema:
        return [example_of(schema["items"])]
    properties = schema["properties"]
    return {name: example_of(properties[name]) for name in schema["required"]}


def named_examples(
    *,
    request: Mapping[str, Any] | None = None,
    response: Mapping[str, Any] | None = None,
    media_type: str = "application/json",
) -> Sequence[OpenApiExample]:
    """Return examples by name, each a whole value; `media_type`: of the request."""
    bodies = (request or {}).items()
    return [
        *answer_examples(response or {}),
        *[
            OpenApiExample(name, value=value, request_only=True, media_type=media_type)
            for name, value in bodies
        ],
    ]


def answer_examples(examples: Mapping[str, Any]) -> Sequence[OpenApiExample]:
    return [
        OpenApiExample(name, value=value, response_only=True) for name, value in examples.items()
    ]


@cache
def described(view: type[APIView], name: str) -> AutoSchema:
    """Return the description of a view's method: what `@extend_schema` says of it, and what derives
    from the view.
    """
    handler = getattr(view, name)
    schema = getattr(handler, "kwargs", {}).get("schema", Schema)()
    action = {"action": name} if issubclass(view, ViewSetMixin) else {}
    schema.view, schema.method = view(request=None, kwargs={}, **action), ""
    return schema


@cache
def body_of(view: Any, name: str) -> tuple[type[ObjectSerializer], bool] | None:
    """Return the serializer of the body of a view's method, and whether the body is that of a
    change; None without a body, or for one that is described by a schema.
    """
    serializer: Any = described(view, name).get_request_serializer()
    if isinstance(serializer, ObjectSerializer):
        return type(serializer), serializer.is_change
    is_object = isinstance(serializer, type) and issubclass(serializer, ObjectSerializer)
    return (serializer, False) if is_object else None


@cache
def query_names_of(view: Any, name: str) -> Collection[str]:
    """Return the query parameters that are described for a view's method."""
    given: Any = described(view, name).get_override_parameters()
    return tuple(each.name for each in given if each.location == OpenApiParameter.QUERY)


class FilterSetSchema(OpenApiFilterExtension):
    """Describe our filters by their own schemas, before drf-spectacular's guess from the model."""

    target_class = "common.api.filter_backends.FilterSetBackend"
    priority = 1

    def get_schema_operation_parameters(
        self, auto_schema: AutoSchema, *args: Any, **kwargs: Any
    ) -> list[Json]:
        return parameter_objects(self.target.parameters(auto_schema.view))


class BodySchema(OpenApiSerializerExtension):
    """The schema of a body: without the fields that only responses have."""

    target_class = "common.api.serializers.ObjectSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> Json:
        if schema := self.target.body_schema:
            return schema
        in_responses = [name for name, field in self.target.fields.items() if field.read_only]
        set_override(self.target, "exclude_fields", in_responses)
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return schema | ({"minProperties": 1} if self.target.never_empty else {})


class Schema(AutoSchema):
    """Add the shared responses and parameters to each operation."""

    view: Any

    def get_operation(self, *args: Any, **kwargs: Any) -> Json | None:
        operation = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        operation["security"] = self.get_auth()  # [] says that an operation needs no key
        if self.path.startswith("/v2/users"):  # an alias, with names of its own
            operation["operationId"] = operation["operationId"].replace("Resource", "User")
        if self.method == "PATCH":  # another name of PUT
            noun = re.sub("^(update|put|patch)", "", operation["operationId"])
            operation["operationId"] = f"patch{noun}"
        if hasattr(self.view, "access"):
            access = self.view.access
            scopes = " and ".join(f"`{scope}`" for scope in access.scopes)
            paragraphs = [operation.get("description"), f"Keys: {access}. Scope: {scopes}."]
            operation["description"] = "\n\n".join(filter(None, paragraphs))
            operation["x-scope"] = access.scope
        if "requestBody" in operation:
            optional = getattr(self.view, "optional_bodies", ())
            operation["requestBody"]["required"] = self.action not in optional
        parameters = operation.setdefault("parameters", [])
        for parameter in parameters:
            parameter.setdefault("description", path_parameter_description(parameter["name"]))
        parameters.extend(self.shared_parameters())
        for status, answer in operation["responses"].items():
            answer["description"] = answer["description"] or ANSWERS[status]
            later = RETRY_AFTER if status == "503" else {}
            answer["headers"] = self.answer_headers() | later | answer.get("headers", {})
        if getattr(self.view, "has_etag", False):
            operation["responses"]["304"] = {
                "description": "If-None-Match has the ETag of the response.",
                "headers": self.answer_headers(),
            }
        for error in self.error_statuses():
            operation["responses"].setdefault(str(error), ERROR_RESPONSES[error])
        if not operation["parameters"]:
            del operation["parameters"]
        return operation

    @property
    def is_public_view(self) -> bool:
        return getattr(self.view, "public", False)

    @property
    def action(self) -> str | None:
        return getattr(self.view, "action", None)

    @property
    def has_side_effects(self) -> bool:
        return self.method != "GET" and not getattr(self.view, "is_query", False)

    @property
    def honours_idempotency_key(self) -> bool:
        is_repeatable = not (self.is_public_view or getattr(self.view, "is_unrepeatable", False))
        return self.has_side_effects and self.method != "DELETE" and is_repeatable

    @property
    def is_conditional(self) -> bool:
        return self.method != "GET" and getattr(self.view, "is_conditional", False)

    def shared_parameters(self) -> list[Json]:
        shared = [] if self.is_public_view else [SERVICE_APP, SERVICE_TIMEZONE]
        if self.honours_idempotency_key:
            shared.append(IDEMPOTENCY_KEY)
        if self.is_conditional:
            shared.append(IF_MATCH)
        if getattr(self.view, "has_etag", False):
            shared.append(IF_NONE_MATCH)
        if getattr(self.view, "is_page", False):
            shared += [LIMIT, PAGE_NUMBER, CURSOR]
        return shared

    def answer_headers(self) -> Json:
        shared = REQUEST_ID if self.is_public_view else ANSWER_HEADERS
        etag = ETAG if getattr(self.view, "has_etag", False) else {}
        return shared | etag | (REPLAYED if self.honours_idempotency_key else {})

    def error_statuses(self) -> list[int]:
        statuses = PUBLIC if self.is_public_view else ALWAYS
        statuses += getattr(self.view, "errors", ())
        if self.has_side_effects:
            statuses += WITH_EFFECT
        if self.method in ("POST", "PUT", "PATCH") and not self.is_public_view:
            statuses += WITH_BODY
        if self.is_conditional:
            statuses += (412,)
        return sorted(set(statuses))

    def get_operation_id(self) -> str:
        """Return the `operation_ids` of a view without actions, else a name from method and path.
        `@extend_schema(operation_id=...)` overrides it.
        """
        given = getattr(self.view, "operation_ids", {}).get(self.method)
        return given or operation_name(self.method, self.path.removeprefix("/v2"))

    def get_filter_backends(self) -> list[Any]:
        return self.view.filter_backends if getattr(self.view, "is_list", False) else []

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False  # the declared response of a list is its whole envelope

    def get_tags(self) -> list[str]:
        """Return the view's `tag`, else the first word of the path."""
        words = re.findall(r"[\w-]+", self.path.removeprefix("/v2"))
        return [getattr(self.view, "tag", None) or words[0]]

    def get_auth(self) -> list[Json]:
        return [] if self.is_public_view else [{SECURITY: []}, {BEARER: []}]

    def map_parsers(self) -> list[str]:
        """Return the type of bodies: the parser takes any, to refuse others itself."""
        return ["application/json"]

    def get_request_serializer(self) -> Any:
        """Return the serializer of the viewset for the bodies of `create` and `update`."""
        serializer = getattr(self.view, "serializer_class", None)
        if serializer is None or self.action not in ("create", "update"):
            return None
        return serializer(partial=self.action == "update")

    def get_response_serializers(self) -> Any:
        if self.action == "destroy":
            return {204: None}
        serializer = getattr(self.view, "serializer_class", None) or {"type": "object"}
        return {201 if self.action == "create" else 200: serializer}

    def _get_response_for_code(
        self, serializer: Any, status_code: str, *args: Any, **kwargs: Any
    ) -> Json:
        """Put an object into its envelope; add the composed example to a response without one."""
        schema = self.in_envelope(serializer)
        response = super()._get_response_for_code(schema, status_code, *args, **kwargs)
        for content in response.get("content", {}).values() if isinstance(schema, dict) else ():
            if "examples" not in content:
                examples = build_examples_list(answer_examples(examples_of(schema)))
                content |= {"examples": examples} if examples else {}
        return response

    def in_envelope(self, serializer: Any) -> Any:
        """Return the schema of a serializer in its envelope, and anything else as it is."""
        if isinstance(serializer, ListSerializer):
            child: Any = type(serializer.child)
            return data_list(child)
        if not (isinstance(serializer, type) and issubclass(serializer, ObjectSerializer)):
            return serializer
        if getattr(self.view, "is_page", False):
            return page_of(serializer)
        return (
            data_list(serializer)
            if getattr(self.view, "is_list", False)
            else data_object(serializer)
        )

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        """Return the class's name. A response has that name if the object is in one: then the body
        of POST is `NewSchedule`, and any other `ScheduleInput`.
        """
        name = serializer.component_name()
        if serializer.examples is None:
            return name
        is_new = self.method == "POST" and serializer.parent is None
        return f"New{name}" if is_new else f"{name}Input"

    def _insert_field_validators(self, field: Any, schema: Json) -> None:
        # The base class describes a text that may be blank as two alternatives; one is enough if
        # the pattern matches blank texts.
        pattern = schema.get("pattern")
        takes_blank = pattern is not None and re.search(pattern, "") is not None
        if takes_blank:
            del schema["pattern"]
        super()._insert_field_validators(field, schema)
        if takes_blank:
            schema["pattern"] = pattern
        if isinstance(field, ListOf):
            schema["maxItems"] = field.max_items
            schema |= {} if field.allow_empty else {"minItems": 1}
        if isinstance(field, ObjectOf):
            schema["maxProperties"] = field.max_keys
            schema["additionalProperties"] = nullable(schema["additionalProperties"])
            if field.key:
                names = dict(self._map_serializer_field(field.key, "request"))
                self._insert_field_validators(field.key, names)
                schema["propertyNames"] = names


ANSWERS = {
    "200": "Done.",
    "201": "Made.",
    "202": "Accepted.",
    "204": "Success, without a body.",
}


VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def operation_name(method: str, path: str) -> str:
    """Return a verb and a noun.

    >>> operation_name("GET", "/bookings"), operation_name("GET", "/bookings/{booking_id}")
    ('listBookings', 'retrieveBooking')
    >>> operation_name("GET", "/webhooks/{webhook_id}/deliveries")
    'listWebhookDeliveries'
    >>> operation_name("POST", "/calendars/{calendar_id}/sync")
    'syncCalendar'
    """
    words = path.strip("/").split("/")
    *owners, last = [word for word in words if not word.startswith("{")]
    owner = singular(owners[-1]) if owners else ""
    if words[-1].startswith("{"):
        return VERBS.get(method, "retrieve") + singular(last)
    if not last.endswith("s"):
        return last + owner + ("ByPut" if method == "PUT" else "")
    owner = owner if len(words) > 2 else ""  # not of /bookings/groups
    return (
        f"list{owner}{last.title()}" if method == "GET" else VERBS[method] + owner + singular(last)
    )


def singular(noun: str) -> str:
    """`deliveries` -> `Delivery`."""
    return re.sub("ies$", "y", noun).removesuffix("s").title()


def path_parameter_description(name: str) -> str:
    """Return "Id of the booking." for `booking_id`; "" for other names."""
    words = name.replace("_", " ")
    return f"Id of the {words.removesuffix(' id')}." if words.endswith(" id") else ""


def complete_document(result: Json, generator: Any, request: Any, public: bool) -> Json:
    """Add all referenced components and remove drf-spectacular's marks: one of its hooks."""
    drop_marks(result)
    components = result["components"]
    waiting = [result]
    while waiting:
        for kind, name in set(find_references(waiting.pop())):
            if name in components.setdefault(kind, {}):
                continue
            components[kind][name] = COMPONENTS[kind, name]
            waiting.append(COMPONENTS[kind, name])
    components["securitySchemes"] = {
        name: COMPONENTS["securitySchemes", name] for name in (SECURITY, BEARER)
    }
    result["components"] = {
        kind: dict(sorted(components[kind].items())) for kind in sorted(components)
    }
    return result


def find_references(node: Any) -> Iterator[tuple[str, str]]:
    """Yield (kind, name) of every `$ref` in the node."""
    if isinstance(node, dict):
        if "$ref" in node:
            kind, name = node["$ref"].split("/")[-2:]
            yield kind, name
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from find_references(value)


def drop_marks(node: Any) -> None:
    """Remove drf-spectacular's marks for its own hook, which names enumerations."""
    if isinstance(node, dict):
        node.pop("x-spec-enum-id", None)
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            drop_marks(value)
