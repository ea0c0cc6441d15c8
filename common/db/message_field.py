"""A column for a message."""

from typing import Any

import orjson
from django.db import models

from common.messages import Message


class MessageField(models.TextField):
    """A message, or a text of a stranger; read as a message.

    The column has the text, or text and values as JSON if there are values:
    `["The server returned %(status)s.",{"status":500}]`.
    """

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> str | None:
        if not value or not value.startswith("["):
            return value and Message(value)
        try:
            return _read(orjson.loads(value))
        except (ValueError, TypeError, KeyError, AttributeError):
            return Message(value)  # written by hand: no list may fail because of it

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        if not value:
            return value
        message = value if isinstance(value, Message) else Message(value)
        if message.values or message.startswith("["):
            return orjson.dumps(_data_of(message)).decode()
        return str(value)


def _data_of(value: Any) -> Any:
    if not isinstance(value, Message):
        return value
    return [value.text, {name: _data_of(part) for name, part in value.values.items()}]


def _read(data: Any) -> Any:
    if not isinstance(data, list):
        return data
    text, values = data
    return Message(text, **{name: _read(part) for name, part in values.items()})
