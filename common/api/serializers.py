"""Objects of the API. A serializer declares an object's fields once: for the bodies of requests,
for responses, and for the OpenAPI document.

    class ScheduleSerializer(ObjectSerializer):
        "Rules that several resources share."

        examples = {"name": "Practice hours"}

        id = IdField(read_only=True)
        name = OneLineField(200)
        availability_constraints = ConstraintsField(required=False)
        created_at = StampField()

    read_body_as(ScheduleSerializer, request)                 # POST: what is required must be there
    read_body_as(ScheduleSerializer, request, partial=True)   # PUT: only what is sent
    ScheduleSerializer.render(schedule)                       # {"id": "0193...", "name": ...}

A response has the row's attribute of the field's name or `source`, or what the serializer's method
`get_<name>` returns for the row. An empty text is null if the field allows null and no blank text.
Times of an InstantField are in the zone of the request, those of a StampField in UTC.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request

from common.api.fields import IdField, InstantField, OneOfField, StampField, array_as_object
from common.api.response_schemas import example_of, is_nullable, schema_of
from common.errors import Invalid, flatten_errors
from common.messages import Message
from common.openapi.component_registry import Json, register_component
from common.time.instants import format_instant, format_stamp

Write = Callable[[Any, str], Any]  # (value or row, zone of times) -> the value in the response
ALL = ("*",)  # of `on_request`: every field that the class itself declares


class ObjectSerializer(serializers.Serializer):
    """The base of every object. The docstring is its description in the document, the class name
    that of its component.

    A field whose name is a Python keyword ends with `_` (`from_`).
    """

    default_error_messages = {"invalid": Message("Must be an object.")}

    # --- Bodies ---
    # Whether it keeps keys that it does not name, so that none is unknown.
    is_open: ClassVar[bool] = False
    # The fields that only the body of POST has.
    only_at_creation: ClassVar[Collection[str]] = ()
    # The schema of bodies, if it is not that of the fields.
    body_schema: ClassVar[Json | None] = None
    # Whether a body needs some field, although it needs none in particular.
    never_empty: ClassVar[bool] = False

    # --- Responses ---
    # Name -> example; the others derive from their fields. None: the object is in no response.
    examples: ClassVar[Mapping[str, Any] | None] = None
    # The fields that a response has only if they are asked for, or set.
    on_request: ClassVar[Collection[str]] = ()
    # Of those: the ones that `render` writes by default, and those that the example shows.
    by_default: ClassVar[Collection[str]] = ()
    in_example: ClassVar[Collection[str]] = ()
    # The fields that are null in bodies only.
    never_null: ClassVar[Collection[str]] = ()
    # Further keywords of the schema, such as `title`.
    keywords: ClassVar[Json] = {}

    schema: ClassVar[Json]  # the reference to the component of responses

    def __init__(self, *args: Any, partial: bool = False, **kwargs: Any) -> None:
        # DRF's `partial` would reach nested objects, which are always whole.
        self.is_change = partial
        super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        base: Any = super(cls, cls)
        if "on_request" in own:
            further = cls._added_field_names() if cls.on_request == ALL else own["on_request"]
            cls.on_request = (*base.on_request, *further)
        for name in ("by_default", "in_example"):
            if name in own:
                setattr(cls, name, (*getattr(base, name), *own[name]))
        if "examples" in own and cls.examples is not None:
            cls.examples = {**(base.examples or {}), **cls.examples}
        if cls.examples is not None:
            cls.schema = register_component("schemas", cls.component_name(), cls._schema())

    @classmethod
    def _added_field_names(cls) -> Collection[str]:
        """Return the names of the fields that no base class has."""
        bases = [base for base in cls.__bases__ if issubclass(base, ObjectSerializer)]
        inherited = {name for base in bases for name in base().fields}
        return cls().fields.keys() - inherited

    def get_fields(self) -> dict[str, serializers.Field]:
        fields = {name.rstrip("_"): field for name, field in super().get_fields().items()}
        if self.is_change:
            for name, field in fields.items():
                field.read_only |= name in self.only_at_creation
                field.required, field.default = False, serializers.empty
        return fields

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return super().to_internal_value(array_as_object(data))

    def to_representation(self, row: Any) -> Json:
        """`data` of a serializer: its context has `zone` and `include`."""
        return self.render(row, self.context.get("zone") or "UTC", self.context.get("include"))

    @classmethod
    def component_name(cls) -> str:
        return cls.__name__.removesuffix("Serializer")

    @classmethod
    def response_fields(cls) -> dict[str, serializers.Field]:
        """Return the fields of responses by name."""
        fields = {name: field for name, field in cls().fields.items() if not field.write_only}
        for name in cls.never_null:
            fields[name].allow_null = False
        return fields

    @classmethod
    def render(cls, row: Any, zone: str = "UTC", include: Collection[str] | None = None) -> Json:
        """Return the response for a row: times in `zone`, and of `on_request` the fields in
        `include`. A dict is kept as it is.
        """
        names = tuple(cls.by_default if include is None else include)
        return writer_of(cls, names)(row, zone)

    @classmethod
    def example(cls, *include: str, **values: Any) -> Json:
        """Return the example, with further fields of `on_request`, and other values if given."""
        examples = cls.examples or {}
        return {
            name: examples[name] if name in examples else example_of(field)
            for name, field in cls.response_fields().items()
            if name not in cls.on_request or name in cls.in_example or name in include
        } | values

    @classmethod
    def _schema(cls) -> Json:
        fields = cls.response_fields()
        required = [name for name in fields if name not in cls.on_request]
        return {
            "type": "object",
            **({"description": " ".join(cls.__doc__.split())} if cls.__doc__ else {}),
            **({"required": required} if required else {}),
            "properties": {name: schema_of(field) for name, field in fields.items()},
            **({"examples": [example]} if (example := cls.example()) else {}),
            **cls.keywords,
        }


class SettingsSerializer(ObjectSerializer):
    """An object of settings: `initial` of a field counts while it is not set, and null removes it.
    A response has the settings that are set.
    """

    always: ClassVar[Collection[str]] = ()  # the settings that every response has
    null_is_a_value: ClassVar[Collection[str]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "examples" not in vars(cls):
            cls.examples = {}
        names = cls().fields.keys()
        cls.on_request = tuple(name for name in names if name not in cls.always)
        cls.never_null = tuple(name for name in names if name not in cls.null_is_a_value)
        cls.in_example = tuple(cls.examples or ())
        super().__init_subclass__(**kwargs)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return name -> the value of a setting that is not set."""
        return {name: field.initial for name, field in cls().fields.items()}


# --- How rows are written -------------------------------------------------------------------------
@lru_cache(maxsize=1024)
def writer_of(kind: type[ObjectSerializer], include: tuple[str, ...]) -> Write:
    """Return a function that renders a row: all fields but those of `on_request`, unless they are
    in `include`.

    What each field needs is determined once: a page has hundreds of rows.
    """
    fields = [
        (name, reader_of(field), conversion_of(field))
        for name, field in kind.response_fields().items()
        if name not in kind.on_request or name in include
    ]

    def write(row: Any, zone: str) -> Json:
        if isinstance(row, dict):
            return row
        return {
            name: convert(read(row), zone) if convert else read(row)
            for name, read, convert in fields
        }

    return write


def reader_of(field: Any) -> Callable[[Any], Any]:
    """Return the function that reads the field's value from a row."""
    if read := getattr(field.parent, f"get_{field.field_name}", None):
        return read
    if field.source == "*":
        return lambda row: row
    return attrgetter(field.source)


def conversion_of(field: Any) -> Write | None:
    """Return the function that converts a row's value for the response; None: it is kept."""
    is_text = isinstance(field, (serializers.CharField, serializers.ChoiceField))
    if is_text and is_nullable(field):
        return lambda value, zone: value or None
    convert = _conversion_of_value(field)
    if convert is None or not is_nullable(field):
        return convert
    return lambda value, zone: None if value is None else convert(value, zone)


def _conversion_of_value(field: Any) -> Write | None:
    if isinstance(field, OneOfField):
        return _conversion_of_value(field.kinds[0])
    if isinstance(field, ObjectSerializer):
        kind = type(field)
        own = next(base for base in kind.__mro__ if "render" in vars(base))
        return writer_of(kind, tuple(kind.by_default)) if own is ObjectSerializer else kind.render
    if isinstance(field, (serializers.ListSerializer, serializers.ListField)):
        convert = _conversion_of_value(field.child)
        return convert and (lambda rows, zone: [convert(row, zone) for row in rows_of(rows)])
    if isinstance(field, StampField):
        return lambda value, zone: format_stamp(value)
    if isinstance(field, InstantField):
        return format_instant
    if isinstance(field, IdField):
        return lambda value, zone: str(value)
    return None


def rows_of(rows: Any) -> Collection[Any]:
    return rows.all() if hasattr(rows, "all") else rows


class Readers(threading.local):
    """One instance of each serializer class per thread.

    A new instance copies all its fields, which costs more than reading a body (a query of
    availability takes 1.5 to 1.9 times the CPU). The only state between two readings is the
    context, which is set each time.
    """

    def __init__(self) -> None:
        self.kept: dict[tuple[type, bool], tuple[ObjectSerializer, dict[str, Any]]] = {}

    def get(
        self, serializer: type[ObjectSerializer], *, partial: bool = False, **context: Any
    ) -> ObjectSerializer:
        key = serializer, partial
        if key not in self.kept:
            own: dict[str, Any] = {}
            self.kept[key] = serializer(partial=partial, context=own), own
        reader, own = self.kept[key]
        own.clear()
        own.update(context)
        return reader


READERS = Readers()


def read_values_as(
    serializer: type[ObjectSerializer], values: Any, *, partial: bool = False, **context: Any
) -> dict[str, Any]:
    """Return the validated values, without keys that were not sent. `partial`: of a change, which
    need not have what a new object must have. Raises Invalid.
    """
    try:
        return READERS.get(serializer, partial=partial, **context).run_validation(values)
    except serializers.ValidationError as error:
        raise Invalid(flatten_errors(error.detail)) from error


def read_body_as(
    serializer: type[ObjectSerializer],
    request: Request,
    *,
    partial: bool = False,
    **context: Any,
) -> dict[str, Any]:
    """Return the validated values of a request's body. Raises Invalid."""
    return read_values_as(serializer, request.data, partial=partial, **context)
