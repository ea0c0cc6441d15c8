"""Sentences for people as data: each edge renders them in its language."""

from typing import Any


class Message(str):
    """A sentence in English that keeps the text of the catalogue and its values.

    >>> Message("The server returned %(status)s.", status=500)
    'The server returned 500.'

    Values may be messages, too. The API and the log write the English, the back office translates
    it (`office/base/message_translations.py`): each literal text of a call is in its catalogue.
    """

    text: str
    values: dict[str, Any]

    def __new__(cls, text: str, /, **values: Any) -> "Message":
        message = super().__new__(cls, text % values if values else text)
        message.text, message.values = text, values
        return message

    @property
    def code(self) -> "Message":
        """The message itself: DRF keeps of an error only the English and the `code`."""
        return self


def find_message(error: object) -> str:
    """Return the message of an exception or of an error detail of DRF, else its text."""
    for found in (getattr(error, "code", None), *getattr(error, "args", ())):
        if isinstance(found, Message):
            return found
    return str(error)


def join_messages(separator: str, parts: list[str]) -> Message:
    """Return the parts as one message: `join_messages(", ", ["Mondays", "Tuesdays"])`."""
    names = [f"part{number}" for number in range(len(parts))]
    text = separator.join(f"%({name})s" for name in names)
    return Message(text, **dict(zip(names, parts, strict=True)))


def cut_message(text: str, limit: int) -> str:
    """Return at most `limit` characters; a longer message becomes a plain text."""
    return text if len(text) <= limit else text[:limit]
