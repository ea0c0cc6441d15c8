"""Convert request bodies to the arguments of services."""

import threading
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from common.errors import Invalid, flatten_errors


class Readers(threading.local):
    """One instance of each serializer class per thread.

    A new instance copies all its fields, which costs more than reading a body. The only state
    between two readings is the context, which is set each time.
    """

    def __init__(self) -> None:
        self.kept: dict[type, serializers.Serializer] = {}

    def get(self, serializer: type[serializers.Serializer]) -> serializers.Serializer:
        reader = self.kept.get(serializer)
        if reader is None:
            reader = self.kept[serializer] = serializer()
        return reader


READERS = Readers()


def read_values_as(
    serializer: type[serializers.Serializer], values: Any, **context: Any
) -> dict[str, Any]:
    """Return the validated values, without keys that were not sent. Raises Invalid."""
    reader = READERS.get(serializer)
    reader._context = context
    try:
        return reader.run_validation(values)
    except serializers.ValidationError as error:
        raise Invalid(flatten_errors(error.detail)) from error


def read_body_as(
    serializer: type[serializers.Serializer], request: Request, **context: Any
) -> dict[str, Any]:
    """Return the validated values of a request's body. Raises Invalid."""
    return read_values_as(serializer, request.data, **context)
