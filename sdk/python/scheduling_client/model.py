"""Answers as objects: JSON read by the annotations of a class, and values written as JSON."""

from __future__ import annotations

import keyword
import types
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

Reader = Callable[[Any], Any]
# Left out of logs and tracebacks.
SECRETS = frozenset({"api_token", "app_key", "key", "payment_key", "secret", "signing_secret"})


class Model:
    """An object of the service. Fields that an answer leaves out are None.

    Times are aware datetimes; `to_dict()` is the JSON as it came, with fields that this version of
    the package does not know.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer
        kind: Any = type(self)
        for name, (key, read) in readers_of(kind).items():
            setattr(self, name, read(answer.get(key)))

    def to_dict(self) -> dict[str, Any]:
        return dict(self._answer)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}={'...' if name in SECRETS else value!r}"
            for name, value in vars(self).items()
            if name != "_answer" and value is not None
        )
        return f"{type(self).__name__}({fields})"


@cache
def readers_of(model: type) -> dict[str, tuple[str, Reader]]:
    """Return each attribute with its key in the JSON, and the function that reads its value."""
    return {
        name: (key_of(name), reader_of(hint))
        for name, hint in get_type_hints(model).items()
        if not name.startswith("_")
    }


def key_of(name: str) -> str:
    """`from_` is the key `from`, a word that Python reserves."""
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def reader_of(hint: Any) -> Reader:
    """Return the function that makes a value of this type of JSON; null is None everywhere."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        return union_reader([each for each in inner if each is not type(None)])
    if origin is list:
        read = reader_of(inner[0])
        return lambda value: [read(each) for each in value] if isinstance(value, list) else value
    if origin is dict:
        read = reader_of(inner[1])
        return lambda value: (
            {key: read(each) for key, each in value.items()} if isinstance(value, dict) else value
        )
    if hint in (datetime, date):
        return lambda value: hint.fromisoformat(value) if isinstance(value, str) else value
    if isinstance(hint, type) and issubclass(hint, Model):
        return lambda value: hint(value) if isinstance(value, dict) else value
    return lambda value: value


def union_reader(hints: list[Any]) -> Reader:
    models = [hint for hint in hints if isinstance(hint, type) and issubclass(hint, Model)]
    if len(models) < 2:
        readers = [reader_of(hint) for hint in hints]
        return lambda value: first_change(readers, value)
    return lambda value: fitting(models, value)(value) if isinstance(value, dict) else value


def first_change(readers: list[Reader], value: Any) -> Any:
    """What the first reader makes of it that knows this kind of value."""
    return next((made for read in readers if (made := read(value)) is not value), value)


def fitting(models: list[type], answer: Mapping[str, Any]) -> type:
    """The first of the models whose required fields are all there, else the one with most."""
    return max(models, key=lambda model: share_of_required(model, answer))


@cache
def required_keys(model: type) -> frozenset[str]:
    hints = get_type_hints(model).items()
    return frozenset(
        key_of(name)
        for name, hint in hints
        if not name.startswith("_") and type(None) not in get_args(hint)
    )


def share_of_required(model: type, answer: Mapping[str, Any]) -> float:
    required = required_keys(model)
    return len(required & answer.keys()) / len(required)


def as_json(value: Any) -> Any:
    """Return the value as JSON: instants with their offset, datetimes without zone as wall time.

    A datetime without a zone is a time on the clock of the resource, as the service reads it.
    """
    if isinstance(value, Model):
        return value.to_dict()
    if isinstance(value, datetime):
        return value.isoformat(sep="T" if value.tzinfo else " ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(each) for each in value]
    return value


def as_body(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a method's arguments with their values as JSON."""
    return {key_of(name): as_json(value) for name, value in values.items()}


def as_query(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a URL, without those that are None; lists are joined by commas."""
    return {key_of(name): as_text(value) for name, value in values.items() if value is not None}


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(as_text(each) for each in value)
    return str(as_json(value))
