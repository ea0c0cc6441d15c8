"""From a request's body to a service's arguments."""

import threading
from typing import Any

from rest_framework import serializers

from scheduling.api.errors import Invalid, flatten_errors


class Readers(threading.local):
    """One instance of each serializer class per thread.

    A new instance copies all its fields, which costs more than reading a body with them; its only
    state between two readings is the context, set anew each time.
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
    """The valid values; keys that were not sent stay away. Raises Invalid."""
    reader = READERS.get(serializer)
    reader._context = context
    try:
        return reader.run_validation(values)
    except serializers.ValidationError as error:
        raise Invalid(flatten_errors(error.detail)) from error


def read_body_as(
    serializer: type[serializers.Serializer], request: Any, **context: Any
) -> dict[str, Any]:
    """The same of a request's body."""
    return read_values_as(serializer, request.data, **context)
