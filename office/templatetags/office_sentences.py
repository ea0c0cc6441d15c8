"""Sentences of services on pages of the back office."""

from django import template

from office.base.service_sentences import sentence_words

register = template.Library()


@register.filter
def sentence(text: str) -> str:
    """Return the sentence in the language of the page."""
    return sentence_words(text)
