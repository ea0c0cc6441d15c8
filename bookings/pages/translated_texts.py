"""The texts of a booking in the language of the customer who reads them.

A booking's event stores the texts of its project as they were. Where one is still the project's
own, customers read its translation; what somebody wrote for this booking stays as it is.
"""

from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import get_language

from availability.models import Project
from availability.project_texts import original_texts, project_texts
from bookings.models import Booking
from bookings.pages.trusted_texts import trusted_text
from bookings.services.where_placeholders import fill_placeholders
from common.errors import Invalid


def customer_text(booking: Booking, name: str) -> str:
    """Return `what`, `where` or `description` of the booking's event as a customer reads it, in the
    active language. Reads event, project and app.
    """
    event = booking.event
    return translated_text(booking, name, trusted_text(booking, name), event.start, event.end)


def translated_text(booking: Booking, name: str, text: str, start: datetime, end: datetime) -> str:
    """Return the translation into the active language of an event's text that is the project's own;
    any other text as it is. start, end: those of the event with this text.
    """
    project = booking.project
    if project is None or not project.translations or not text:
        return text
    for own, translation in _translations(project, name):
        if text == own:
            return translation
        if name == "where" and text == _filled(own, booking, start, end):
            return _filled(translation, booking, start, end) or text
    return text


def _translations(project: Project, name: str) -> Iterator[tuple[str, str]]:
    """Yield own texts and their translations; a title can be the project's name too."""
    own, texts = original_texts(project), project_texts(project, get_language())
    for field in (name, "name") if name == "what" else (name,):
        if field in texts.translated:
            yield own[field], getattr(texts, field)


def _filled(where: str, booking: Booking, start: datetime, end: datetime) -> str:
    """Return the place with its placeholders filled in; "" if it is too long."""
    event_booking_id = booking.owner_booking_id or booking.id
    try:
        return fill_placeholders(where, event_booking_id, start, end)
    except Invalid:
        return ""
