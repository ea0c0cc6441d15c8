"""Sentences of services on pages of the back office, in the language of the page."""

from django import template

from office.base.service_sentence_translations import translate_sentence

register = template.Library()

register.filter(translate_sentence)
