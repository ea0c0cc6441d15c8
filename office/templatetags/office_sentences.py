"""Sentences of services on pages of the back office."""

from typing import Any

from django import template
from django.utils.text import capfirst

from office.base.service_sentences import sentence_words

register = template.Library()


@register.filter
def sentence(text: str) -> str:
    """Return the sentence in the language of the page."""
    return sentence_words(text)


@register.filter
def heading(title: Any) -> str:
    """Return the title with a capital letter, unless it is an address."""
    text = str(title)
    return text if "@" in text or "://" in text else capfirst(text)
