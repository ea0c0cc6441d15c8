"""Merge rules of a partial PUT (api.md section 1)."""

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ValidationError

from common.api.fields import MetaField
from common.errors import Invalid
from common.messages import find_message


def merge_keys(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `kept` with the keys of `given`; null removes a key, objects are merged likewise.

    >>> merge_keys({"a": 1, "b": {"x": 1}}, {"a": None, "b": {"y": 2}})
    {'b': {'x': 1, 'y': 2}}
    """
    merged = dict(kept)
    for key, value in given.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge_keys(merged[key], value)
        else:
            merged[key] = value
    return merged


def merge_free(kept: Mapping[str, Any], given: Mapping[str, Any], *, path: str) -> dict[str, Any]:
    """Merge a free object like `merge_keys`. Raises Invalid at `path`.

    The bounds are checked on the result, because many small changes could exceed them.
    """
    try:
        return MetaField().run_validation(merge_keys(kept, given))
    except ValidationError as error:
        raise Invalid({path: [find_message(fault) for fault in error.detail]}) from error


def without_empty(value: Any) -> Any:
    """Remove keys with empty values from objects, at any depth; false and 0 are not empty."""
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty(element) for key, element in value.items()}
    return {key: element for key, element in kept.items() if element not in (None, "", [], {})}
