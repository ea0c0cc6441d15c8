"""Keys of a body that its endpoint does not know: a typing error must not pass unseen."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from rest_framework import serializers

from common.api.fields import ListOf, array_as_object
from common.api.serializers import ObjectSerializer
from common.errors import Invalid

MAX_KEYS = 100
MAX_HEADER = 1024
MISSING = object()

# Paths in the body. In a viewset, `list` is a method.
UnknownKeys = list[str]


def find_unknown_keys(serializer: serializers.Serializer, body: Any) -> UnknownKeys:
    """Return the paths of the first unknown keys: `["availability.lenght", "lengt"]`.

    Open objects, such as `meta` and a customer, have none.
    """
    return list(islice(_unknown_keys(serializer, body, ""), MAX_KEYS))


def _unknown_keys(serializer: serializers.Serializer, body: Any, path: str) -> Iterator[str]:
    body = array_as_object(body)
    if not isinstance(body, Mapping):
        return
    for key, value in body.items():
        field = serializer.fields.get(key)
        if field is None or field.read_only:
            if not getattr(serializer, "is_open", False):
                yield f"{path}{key}"
            continue
        yield from _keys_inside(field, value, f"{path}{key}.")


def _keys_inside(field: serializers.Field, value: Any, path: str) -> Iterator[str]:
    """A field that is no serializer may name the one that reads its object: `serializer`; or each
    value of its object: `value_serializer`.
    """
    if isinstance(field, ObjectSerializer):
        yield from _unknown_keys(field, value, path)
    elif isinstance(field, ListOf) and isinstance(value, list):
        for position, element in enumerate(value):
            yield from _keys_inside(field.child, element, f"{path}{position}.")
    elif serializer := getattr(field, "serializer", None):
        yield from _unknown_keys(serializer(), value, path)
    elif (serializer := getattr(field, "value_serializer", None)) and isinstance(value, Mapping):
        shape = serializer()
        for key, element in value.items():
            yield from _unknown_keys(shape, element, f"{path}{key}.")


def without_equal_keys(paths: Sequence[str], body: Any, shown: Any) -> list[str]:
    """Return the paths without those that GET shows with the same value.

    Raises Invalid if GET shows another value, which the endpoint can't change. `updated_at` differs
    whenever somebody else has changed the object since.
    """
    pairs = {path: (_value_at(body, path), _value_at(shown, path)) for path in paths}
    changed = [
        path
        for path, (given, kept) in pairs.items()
        if kept is not MISSING and given != kept and path != "updated_at"
    ]
    if changed:
        raise Invalid({path: ["Can't be changed here."] for path in changed})
    return [path for path, (_, kept) in pairs.items() if kept is MISSING]


def _value_at(value: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, Mapping) and step in value:
            value = value[step]
        else:
            return MISSING
    return value


def unknown_keys_refused(paths: Sequence[str]) -> Invalid:
    return Invalid({path: ["Is not a known key."] for path in paths})


def prefers_strict_handling(prefer: str) -> bool:
    """Whether a Prefer header asks for it (RFC 7240, section 4.4).

    >>> prefers_strict_handling('respond-async, Handling="strict"; x=1')
    True
    """
    preferences = (preference.partition(";")[0] for preference in prefer.split(","))
    pairs = (preference.partition("=") for preference in preferences)
    return any(
        name.strip().lower() == "handling" and value.strip().strip('"').lower() == "strict"
        for name, _, value in pairs
    )


def ignored_header(paths: Sequence[str]) -> str:
    r"""Return the value of Service-Ignored, at most 1 kB; characters beyond ASCII are escaped. A
    name without room is cut.

    >>> ignored_header(["lenght", "a\nb"])
    'lenght, a\\nb'
    """
    value = ""
    for path in paths:
        name = path.encode("unicode_escape").decode()
        value += f", {name}" if value else name
        if len(value) > MAX_HEADER:
            return f"{value[: MAX_HEADER - 3]}..."
    return value
