"""Messages of the services in the language of the page."""

from django.utils.translation import gettext

from common.messages import Message, find_message


def translate_message(error: object) -> str:
    """Return a message in the active language; other texts unchanged.

    error: a text, an exception or an error detail of DRF.
    """
    message = find_message(error)
    if not isinstance(message, Message) or not message.text:
        return message
    text = gettext(message.text)
    if not message.values:
        return text
    return text % {name: _translate_value(value) for name, value in message.values.items()}


def _translate_value(value: object) -> object:
    return translate_message(value) if isinstance(value, Message) else value
