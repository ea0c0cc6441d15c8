"""Convert request bodies to the arguments of services."""

import threading
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from common.api.serializers import ObjectSerializer
from common.errors import Invalid, flatten_errors


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
