"""Messages of services on pages of the back office, in the language of the page."""

from typing import Any

from django import template
from django.utils.text import capfirst

from office.base.message_translations import translate_message

register = template.Library()

register.filter(translate_message)


@register.filter
def heading(title: Any) -> str:
    """Return the title with a capital letter, unless it is an address."""
    text = str(title)
    return text if "@" in text or "://" in text else capfirst(text)
