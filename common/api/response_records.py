"""Response objects: one class names an object's fields; values, schema and example derive from it.

    class CustomerRecord(Record):
        "Who booked: a snapshot of that moment."

        id: Id
        name: str = field(example="Marty McFly")
        note: str | None = field("Null: none was left.", of="message")

    CustomerRecord.of(customer)    # the response: {"id": "0193...", "name": "Ada", "note": None}
    CustomerRecord.schema          # {"$ref": "#/components/schemas/Customer"}
    CustomerRecord.example()       # {"id": "0193...", "name": "Marty McFly", "note": None}

A value is the row's attribute of the same name, or what `of` names: another attribute (dots follow
relations) or a function of the row. The type determines the format: `Id` and `Stamp` are text,
`Time` is in the requested zone, related rows (one or a list) use their own class, and an empty text
becomes null if null is allowed.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, ClassVar, NamedTuple, NewType, Union, get_args, get_origin

from common.time.instants import format_instant, format_stamp

Json = dict[str, Any]
Id = NewType("Id", str)
Stamp = NewType("Stamp", str)
Time = NewType("Time", str)

# (kind, name) -> component; the document contains those that it refers to.
COMPONENTS: dict[tuple[str, str], Json] = {}


def register_component(kind: str, name: str, content: Json) -> Json:
    """Store a component under its kind and name; return the reference to it."""
    COMPONENTS[kind, name] = content
    return {"$ref": f"#/components/{kind}/{name}"}


def find_component(reference: Json) -> Json:
    """Return the component of a reference from `register_component`."""
    kind, name = reference["$ref"].split("/")[-2:]
    return COMPONENTS[kind, name]


# --- Types of fields ------------------------------------------------------------------------------
def example_id(number: int) -> str:
    return f"0193a4c2-0000-7000-8000-{number:012}"


STAMP_EXAMPLE = "2026-11-20T09:30:00+0000"
START_EXAMPLE, END_EXAMPLE = "2026-11-23T09:00:00+01:00", "2026-11-23T09:30:00+01:00"
SCHEMAS: Mapping[Any, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Any: {},
    Json: {"type": "object", "additionalProperties": True},
    Id: {"type": "string", "format": "uuid"},
    # RFC 3339 for events and slots; stamps such as created_at have no colon in the offset.
    Time: {"type": "string", "format": "date-time"},
    Stamp: {
        "type": "string",
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+0000$",
        "examples": [STAMP_EXAMPLE],
    },
}
EXAMPLES: Mapping[Any, Any] = {
    str: "", bool: False, int: 0, float: 0, Id: example_id(0), Stamp: STAMP_EXAMPLE,
    Time: START_EXAMPLE,
}  # fmt: skip


def is_record(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Record)


def alternatives(hint: Any) -> tuple[list[Any], bool]:
    """Return the types of a hint, and whether it includes None."""
    types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return [each for each in types if each is not NoneType], NoneType in types


def first_type(hint: Any) -> Any:
    """Return the type that determines the conversion and the example."""
    return alternatives(hint)[0][0]


def schema_of(hint: Any) -> Json:
    """Return the JSON schema of a type; a schema is returned unchanged.

    >>> schema_of(list[str] | None)
    {'type': ['array', 'null'], 'items': {'type': 'string'}}
    """
    if isinstance(hint, dict):
        return hint
    types, is_nullable = alternatives(hint)
    if len(types) == 1 and not is_nullable:
        return _schema_of_type(hint)
    schemas = [_schema_of_type(each) for each in types]
    if len(schemas) == 1 and "type" in schemas[0]:
        return nullable(schemas[0])
    if all(each.keys() == {"type"} for each in schemas) and not is_nullable:
        return {"type": [each["type"] for each in schemas]}
    return {"anyOf": [*schemas, {"type": "null"}] if is_nullable else schemas}


def _schema_of_type(hint: Any) -> Json:
    if is_record(hint):
        return hint.schema
    if hint in SCHEMAS:
        return SCHEMAS[hint]
    inner = schema_of(get_args(hint)[-1])
    if get_origin(hint) is list:
        return {"type": "array", "items": inner}
    return {"type": "object", "additionalProperties": inner}


def nullable(schema: Json) -> Json:
    return schema | {"type": [schema["type"], "null"]}


def example_of_type(hint: Any) -> Any:
    types, is_nullable = alternatives(hint)
    if is_nullable:
        return None
    if is_record(types[0]):
        return types[0].example()
    if get_origin(types[0]) is list:
        inner = first_type(get_args(types[0])[0])
        return [example_of_type(inner)] if is_record(inner) else []
    return EXAMPLES.get(types[0], {})


# --- How values are written -----------------------------------------------------------------------
Write = Callable[[Any, str], Any]  # (value or row, zone of times) -> the value in the response
CONVERSIONS: Mapping[Any, Write] = {
    Id: lambda value, zone: str(value),
    Stamp: lambda value, zone: format_stamp(value),
    Time: format_instant,
}


def conversion_of(hint: Any) -> Write | None:
    """Return the function that converts a row's value for the response; None: it is kept.

    Of several types, the first one determines the conversion.
    """
    types, is_nullable = alternatives(hint)
    if is_nullable and types[0] is str:
        return lambda value, zone: value or None
    convert = _conversion_of_type(types[0])
    if not is_nullable or convert is None:
        return convert
    return lambda value, zone: None if value is None else convert(value, zone)


def _conversion_of_type(hint: Any) -> Write | None:
    if is_record(hint):
        return _nested_writer_of(hint)
    if get_origin(hint) is not list:
        return CONVERSIONS.get(hint)
    inner = first_type(get_args(hint)[0])
    if not is_record(inner):
        return None
    write = _nested_writer_of(inner)
    return lambda value, zone: [write(each, zone) for each in rows_of(value)]


def _nested_writer_of(kind: type["Record"]) -> Write:
    return kind.of if kind.overrides_of else writer_of(kind, kind.writes)  # type: ignore[arg-type]


def rows_of(rows: Any) -> Collection[Any]:
    return rows if isinstance(rows, list) else rows.all()


@lru_cache(maxsize=1024)
def writer_of(kind: type["Record"], include: tuple[str, ...]) -> Write:
    """Return a function that renders the record's fields: the required ones and those in `include`.

    A dict is kept as it is. What each field needs is determined once: a page has hundreds of
    records.
    """
    fields = [
        (name, each.reader(name), conversion_of(hint))
        for name, (hint, each) in kind.fields.items()
        if not each.optional or name in include
    ]

    def write(row: Any, zone: str) -> Json:
        if isinstance(row, dict):
            return row
        return {
            name: convert(read(row), zone) if convert else read(row)
            for name, read, convert in fields
        }

    return write


# --- Records --------------------------------------------------------------------------------------
NO_EXAMPLE = object()


class Field(NamedTuple):
    """The options of a record's field; `keywords` are those of JSON schema."""

    description: str = ""
    example: Any = NO_EXAMPLE
    of: str | Callable[[Any], Any] | None = None
    optional: bool = False
    keywords: Json = {}

    def schema(self, hint: Any) -> Json:
        schema = schema_of(hint)
        described: Json = {"description": self.description} if self.description else {}
        if "enum" in self.keywords:
            null = [None] if alternatives(hint)[1] else []
            described["enum"] = [*self.keywords["enum"], *null]
        return {**schema, **self.keywords, **described}

    def example_value(self, hint: Any) -> Any:
        if self.example is not NO_EXAMPLE:
            return self.example
        if "examples" in self.keywords:
            return self.keywords["examples"][0]
        if "enum" in self.keywords and not alternatives(hint)[1]:
            return self.keywords["enum"][0]
        return example_of_type(hint)

    def reader(self, name: str) -> Callable[[Any], Any]:
        """Return the function that reads the value of the field `name` from a row."""
        return self.of if callable(self.of) else attrgetter(self.of or name)


def field(
    description: str = "",
    *,
    example: Any = NO_EXAMPLE,
    of: str | Callable[[Any], Any] | None = None,
    optional: bool = False,
    **keywords: Any,
) -> Any:
    """Add options to a record's field. `optional`: only included on request."""
    return Field(description, example, of, optional, keywords)


class Record:
    """A response object. The docstring is its description, the class name that of its component.

    `total=False` makes all fields optional. Optional fields: `writes` are in `of` by default,
    `shows` in the example. Other keywords of the class are added to its schema. A field whose name
    is a Python keyword ends with `_` (`from_`).
    """

    schema: ClassVar[Json]
    fields: ClassVar[Mapping[str, tuple[Any, Field]]] = {}
    writes: ClassVar[tuple[str, ...]] = ()
    overrides_of: ClassVar[bool] = False
    shows: ClassVar[Collection[str]] = ()

    def __init_subclass__(
        cls,
        *,
        total: bool = True,
        writes: Collection[str] = (),
        shows: Collection[str] = (),
        **keywords: Any,
    ) -> None:
        own = {
            name.rstrip("_"): (hint, _field_of(cls, name, optional=not total))
            for name, hint in inspect.get_annotations(cls).items()
        }
        cls.fields, cls.writes = {**cls.fields, **own}, (*cls.writes, *writes)
        cls.shows = {*cls.shows, *shows}
        cls.overrides_of = cls.overrides_of or "of" in vars(cls)
        required = [name for name, (_, each) in cls.fields.items() if not each.optional]
        schema = {
            "type": "object",
            **({"description": " ".join(cls.__doc__.split())} if cls.__doc__ else {}),
            **({"required": required} if required else {}),
            "properties": {name: each.schema(hint) for name, (hint, each) in cls.fields.items()},
            **({"examples": [example]} if (example := cls.example()) else {}),
        }
        name = cls.__name__.removesuffix("Record")
        cls.schema = register_component("schemas", name, schema | keywords)

    @classmethod
    def of(cls, row: Any, zone: str = "UTC", include: Collection[str] | None = None) -> Json:
        """Render a row: times in `zone`, optional fields of `include`. A dict is kept as it is."""
        names = cls.writes if include is None else tuple(include)
        # mypy considers a class unhashable.
        return writer_of(cls, names)(row, zone)  # type: ignore[arg-type]

    @classmethod
    def example(cls, *optional: str, **values: Any) -> Json:
        """Return the example, with the optional fields named and other values if given."""
        return {
            name: each.example_value(hint)
            for name, (hint, each) in cls.fields.items()
            if not each.optional or name in cls.shows or name in optional
        } | values


def _field_of(cls: type, name: str, *, optional: bool) -> Field:
    each = vars(cls).get(name, Field())
    return each._replace(optional=optional or each.optional)
