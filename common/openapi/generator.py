"""Generate the OpenAPI document: a view declares the requests and responses of its handlers.

A package defines its responses once (`records.Record`) and refers to them:

    class BookingList(ApiView):
        paginated = True            # documents limit and page
        # query_like = True         # a POST that changes nothing: no Idempotency-Key, no 409
        # public = True             # needs no credentials
        # errors = (404, 429)       # further error statuses of a public view
        # operation_ids = {"POST": "searchAvailability"}  # instead of the names from the path

        @describe_endpoint(summary="List bookings", response=page_of(BookingRecord))
        def get(self, request): ...

        @describe_endpoint(
            summary="Make a booking",
            request=BookingBodySerializer,
            response=data_object(BookingRecord),
            status=201,
        )
        def post(self, request): ...

Without `examples`, the example of a response is composed of the examples of its components.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from common.api.fields import ListOf, ObjectSerializer
from common.api.response_records import COMPONENTS, Json, Record, find_component, register_component
from common.openapi.components import (
    ANSWER_HEADERS,
    ERROR_RESPONSES,
    IDEMPOTENCY_KEY,
    LIMIT,
    PAGE_NUMBER,
    REPLAYED,
    REQUEST_ID,
    RETRY_AFTER,
    SECURITY,
    SERVICE_APP,
    SERVICE_TIMEZONE,
    WEBHOOKS,
    PageRecord,
)


# A response is a component of its own, because generated clients name their types after components:
# `BookingAnswer`, not `CreateBooking201Response`.
def data_object(kind: type[Record]) -> Json:
    """Return the response `{"data": {...}}`: `BookingAnswer` of `BookingRecord`."""
    return envelope(f"{component_name(kind)}Answer", {"data": kind.schema})


def data_list(kind: type[Record], optional: Json | None = None) -> Json:
    """Return the response `{"data": [...]}`, without pages: `WebhookList` of `WebhookRecord`.

    optional: further members, name -> schema.
    """
    return envelope(f"{component_name(kind)}List", {"data": list_of(kind.schema)}, optional)


def data_lists(kind: type[Record]) -> Json:
    """Return the response `{"data": [[...]]}`: `SpanLists` of `SpanRecord`."""
    return envelope(f"{component_name(kind)}Lists", {"data": list_of(list_of(kind.schema))})


def page_of(kind: type[Record]) -> Json:
    """Return the response of a page: `BookingPage` of `BookingRecord`."""
    properties = find_component(PageRecord.schema)["properties"]
    return envelope(f"{component_name(kind)}Page", properties | {"data": list_of(kind.schema)})


def list_of(schema: Json) -> Json:
    return {"type": "array", "items": schema}


def component_name(kind: type[Record]) -> str:
    return kind.schema["$ref"].rpartition("/")[2]


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


def describe_endpoint(
    *,
    summary: str,
    request: Any = None,
    body: type[ObjectSerializer] | None = None,
    request_type: str = "application/json",
    optional_body: bool = False,
    response: Json | None = None,
    status: int = 200,
    examples: Mapping[str, Any] | None = None,
    request_examples: Mapping[str, Any] | None = None,
    query: Mapping[str, Json] | None = None,
    path: Mapping[str, Json] | None = None,
    headers: Mapping[str, Json] | None = None,
    others: Mapping[int, OpenApiResponse] | None = None,
    **options: Any,
) -> Callable[[Any], Any]:
    """Describe one handler: the schemas of its body and its response (None: no body).

    body: the serializer that knows all keys of the body, if `request` is a schema. optional_body: a
    request without a body is as useful as one with it. `examples` and `request_examples` map a name
    to a whole value; `query`, `path` and `headers` (of the response) a name to a schema; `others`
    further statuses to their responses. `options` (description, deprecated) are passed to
    drf-spectacular's extend_schema. The view refuses query
    parameters that are not in `query`.
    """
    if examples is None and response is not None:
        examples = examples_of(response)
    describe = extend_schema(
        summary=summary,
        request={request_type: request} if request else None,
        responses={status: response, **(others or {})},
        examples=[
            *answer_examples(examples or {}, status),
            *body_examples(request_examples or {}, request_type),
        ],
        parameters=[
            *parameters_of(query or {}, OpenApiParameter.QUERY),
            *parameters_of(path or {}, OpenApiParameter.PATH),
            *parameters_of(headers or {}, OpenApiParameter.HEADER, response=[status]),
        ],
        **options,
    )

    def decorate(handler: Any) -> Any:
        handler.query_names = tuple(query or ())
        is_serializer = isinstance(request, type) and issubclass(request, ObjectSerializer)
        handler.body_serializer = body or (request if is_serializer else None)
        handler.has_optional_body = optional_body
        return describe(handler)

    return decorate


ParameterPlace = Literal["query", "path", "header"]


def parameters_of(
    schemas: Mapping[str, Json], place: ParameterPlace, **options: Any
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


def include_of(names: Iterable[str], *, note: str = "") -> Json:
    """Return the schema of an `include` with these names; note: a sentence for the description."""
    known = list(names)
    choice = "|".join(map(re.escape, known))
    return {
        "type": "string",
        "description": f"What to add, separated by commas: {', '.join(known)}. {note}".rstrip(),
        "pattern": f"^ *(({choice}) *)?(, *(({choice}) *)?)*$",
        "examples": [known[0]],
    }


def search_of(fields: Collection[str], example: str) -> Json:
    """Return the schema of a `search` with these fields; `meta.` stands for every key of meta."""
    known = ", ".join(f"{field}<key>" if field.endswith(".") else field for field in fields)
    return {
        "type": "string",
        "description": "`field:value;field:value`: all terms must match. `*` at the beginning or"
        " end of a text is a wildcard. A backslash escapes `;`, `*` and itself."
        f" Fields: {known}.",
        "examples": [example],
    }


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


def answer_examples(examples: Mapping[str, Any], status: int) -> list[OpenApiExample]:
    return [
        OpenApiExample(name, value=value, response_only=True, status_codes=[str(status)])
        for name, value in examples.items()
    ]


def body_examples(examples: Mapping[str, Any], media_type: str) -> list[OpenApiExample]:
    return [
        OpenApiExample(name, value=value, request_only=True, media_type=media_type)
        for name, value in examples.items()
    ]


class Schema(AutoSchema):
    """Add the shared responses and parameters to each operation."""

    def get_operation(self, *args: Any, **kwargs: Any) -> Json | None:
        operation = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        operation["security"] = self.get_auth()  # [] says that an operation needs no key
        if hasattr(self.view, "who_may"):
            paragraphs = [operation.get("description"), f"Keys: {self.view.who_may(self.method)}."]
            operation["description"] = "\n\n".join(filter(None, paragraphs))
        if "requestBody" in operation:
            operation["requestBody"]["required"] = not self.has_optional_body
        parameters = operation.setdefault("parameters", [])
        for parameter in parameters:
            parameter.setdefault("description", path_parameter_description(parameter["name"]))
        parameters.extend(self.shared_parameters())
        for status, answer in operation["responses"].items():
            answer["description"] = answer["description"] or ANSWERS[status]
            later = RETRY_AFTER if status == "503" else {}
            answer["headers"] = self.answer_headers() | later | answer.get("headers", {})
        for error in self.error_statuses():
            operation["responses"].setdefault(str(error), ERROR_RESPONSES[error])
        if not operation["parameters"]:
            del operation["parameters"]
        return operation

    @property
    def is_public_view(self) -> bool:
        return getattr(self.view, "public", False)

    @property
    def has_optional_body(self) -> bool:
        handler = getattr(self.view, self.method.lower(), None)
        return getattr(handler, "has_optional_body", False)

    @property
    def has_side_effects(self) -> bool:
        return self.method != "GET" and not getattr(self.view, "query_like", False)

    @property
    def honours_idempotency_key(self) -> bool:
        secret = self.method in getattr(self.view, "secret_methods", ())
        return self.has_side_effects and self.method != "DELETE" and not secret

    def shared_parameters(self) -> list[Json]:
        if self.is_public_view:
            return []
        shared = [SERVICE_APP, SERVICE_TIMEZONE]
        if self.honours_idempotency_key:
            shared.append(IDEMPOTENCY_KEY)
        if self.method == "GET" and getattr(self.view, "paginated", False):
            shared += [LIMIT, PAGE_NUMBER]
        return shared

    def answer_headers(self) -> Json:
        if self.is_public_view:
            return REQUEST_ID
        return ANSWER_HEADERS | (REPLAYED if self.honours_idempotency_key else {})

    def error_statuses(self) -> list[int]:
        statuses = PUBLIC if self.is_public_view else ALWAYS
        statuses += getattr(self.view, "errors", ())
        if self.has_side_effects:
            statuses += WITH_EFFECT
        if self.method in ("POST", "PUT") and not self.is_public_view:
            statuses += WITH_BODY
        return sorted(set(statuses))

    def get_operation_id(self) -> str:
        """Return the view's `operation_ids` of the method, else a name from method and path.

        /v2/users is an alias of /v2/resources with the same operations, named after users.
        """
        given = getattr(self.view, "operation_ids", {}).get(self.method)
        if given and self.path.startswith("/v2/users"):
            given = given.replace("Resource", "User")
        return given or operation_name(self.method, self.path.removeprefix("/v2"))

    def get_tags(self) -> list[str]:
        """Return the view's `tag`, else the first word of the path."""
        words = re.findall(r"[\w-]+", self.path.removeprefix("/v2"))
        return [getattr(self.view, "tag", words[0])]

    def get_auth(self) -> list[Json]:
        return [] if self.is_public_view else [{SECURITY: []}]

    def get_request_serializer(self) -> Any:
        """Return None: a handler without `describe_endpoint` has no described body."""

    def get_response_serializers(self) -> Any:
        return {200: {"type": "object"}}

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        """Return the class's name; `BookingInput` if a response has that name already."""
        name = type(serializer).__name__.removesuffix("Serializer")
        return f"{name}Input" if ("schemas", name) in COMPONENTS else name

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


ANSWERS = {"200": "Done.", "201": "Made.", "204": "Success, without a body."}


VERBS = {"POST": "create", "PUT": "update", "DELETE": "delete"}


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
    result |= {"webhooks": WEBHOOKS} if WEBHOOKS else {}
    components = result["components"]
    waiting = [result]
    while waiting:
        for kind, name in set(find_references(waiting.pop())):
            if name in components.setdefault(kind, {}):
                continue
            components[kind][name] = COMPONENTS[kind, name]
            waiting.append(COMPONENTS[kind, name])
    components["securitySchemes"] = {SECURITY: COMPONENTS["securitySchemes", SECURITY]}
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
