"""Dates on pages of the back office, in the language of the page."""

from datetime import date, datetime

from django import template

from bookings.pages.formatting import date_words, short_date_words, short_day_words
from office.base import dates

register = template.Library()


@register.filter
def long_date(day: date) -> str:
    """Return `Monday, 23 November 2026`."""
    return date_words(day)


@register.filter
def short_date(day: date) -> str:
    """Return `Mon 23 Nov 2026`."""
    return short_date_words(day)


@register.filter
def short_day(day: date) -> str:
    """Return `Mon 23 Nov`."""
    return short_day_words(day)


@register.filter
def moment(instant: datetime | None) -> str:
    """Return `Mon 23 Nov 2026, 09:00 CET`."""
    return dates.moment_words(instant)


@register.filter
def exact_moment(instant: datetime | None) -> str:
    """Return `Mon 23 Nov 2026, 09:00:00 CET`."""
    return dates.exact_moment_words(instant)
