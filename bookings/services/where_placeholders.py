"""Placeholders in the place of a booking: `https://video.example/{booking_id}`."""

import re
import uuid
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from availability.reserve.events import update_event_details
from bookings.models import Booking
from common.api.fields import is_web_address
from common.errors import Invalid
from common.time.instants import format_instant

PLACEHOLDER = re.compile(r"\{(booking_id|start|end)\}")
MAX_LENGTH = 200


def fill_placeholders(where: str, booking_id: uuid.UUID, start: datetime, end: datetime) -> str:
    """Return the text with the booking's values; in a web address they are quoted.

    Raises Invalid if it becomes longer than a place can be.
    """
    values = {
        "booking_id": str(booking_id),
        "start": format_instant(start, "UTC"),
        "end": format_instant(end, "UTC"),
    }
    is_address = is_web_address(PLACEHOLDER.sub("x", where))
    filled = PLACEHOLDER.sub(
        lambda found: quote(values[found[1]], safe="") if is_address else values[found[1]], where
    )
    if len(filled) > MAX_LENGTH:
        text = f"Must have at most {MAX_LENGTH} characters with its placeholders filled in."
        raise Invalid.at("where", text)
    return filled


def fill_places(bookings: Sequence[Booking]) -> None:
    """Fill in the places of new bookings, whose events are written; seats have their group's."""
    for booking in bookings:
        if booking.owner_booking_id is None:
            _set_place(booking, booking.event.where)


def refill_place(booking: Booking, was: tuple[datetime, datetime]) -> None:
    """Fill in the place of a moved booking again, if it is still that of its project.

    was: its former start and end.
    """
    template = booking.project.booking.get("where") if booking.project else None
    if not isinstance(template, str) or not PLACEHOLDER.search(template):
        return
    if booking.event.where == fill_placeholders(template, booking.id, *was):
        _set_place(booking, template)


def _set_place(booking: Booking, template: str) -> None:
    event = booking.event
    where = fill_placeholders(template, booking.id, event.start, event.end)
    if where != event.where:
        update_event_details(event, {"where": where})
