"""Today's list for a device without a connection: first names and times of an app's bookings."""

from typing import Any
from unicodedata import east_asian_width

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from bookings.models import Booking
from bookings.pages.formatting import date_words
from common.time.instants import local_date
from office.access.session_age import session_end
from office.base.dates import days_span_in_zone, office_zone
from office.base.local_time import time_text
from office.base.model_admin_pages import find_row
from office.base.permissions import SEE, json_view, require
from office.base.scope import scope_of
from office.bookings.tabs import open_requests
from office.desk.columns import bookings_between
from office.desk.day_sheet import Participants, read_participants

MAX_BOOKINGS = 500
MAX_PENDING = 100  # on the badge


@json_view("GET")
def read_today_list(request: HttpRequest) -> dict[str, Any]:
    """?app=id: return the list in words, how many `pending` requests the app has, and for how many
    `seconds` a device may store the list: until the end of the session or of the day.
    """
    app = find_row(scope_of(request).apps(), request.GET.get("app"))
    require(request, app.id, SEE)
    now, zone = timezone.now(), office_zone(request)
    day = local_date(now, zone)
    start, end = days_span_in_zone(day, day, zone)
    rows = bookings_between(app, start, end).order_by("event__start", "id")
    rows = rows.select_related("event").prefetch_related("customers")
    bookings = list(rows[:MAX_BOOKINGS])
    participants = read_participants(bookings)
    pending = open_requests(Booking.objects.filter(app=app, deleted_at=None))
    until = min(end, session_end(request.session))
    return {
        "day": date_words(day),
        "as_of": _("As of %(time)s.") % {"time": time_text(now, zone)},
        "zone": _("All times in %(office_zone)s.") % {"office_zone": zone},
        "entries": [_entry(booking, participants, zone) for booking in bookings],
        "pending": pending[:MAX_PENDING].count(),
        "seconds": int((until - now).total_seconds()),
    }


def _entry(booking: Booking, participants: Participants, zone: str) -> dict[str, str]:
    event = booking.event
    time = f"{time_text(event.start, zone)} – {time_text(event.end, zone)}"
    seats = [booking] if booking.max_seats is None else participants.get(booking.id, [])
    names = [first_name(customer.name) for seat in seats for customer in seat.customers.all()]
    return {
        "time": _("All day") if event.all_day else time,
        "names": ", ".join(name for name in names if name),
    }


def first_name(name: str) -> str:
    """Return "Marty" of "Marty McFly", "McFly, Marty" and "Dr. Marty McFly", and "太郎" of
    "山田 太郎"; "" of an address or a number. A name that is one word stays.
    """
    words = [
        word
        for word in name.rpartition(",")[2].split()
        if "@" not in word and not any(letter.isdigit() for letter in word)
    ]
    if not words:
        return ""
    without_titles = [word for word in words if not word.endswith(".")]
    if len(without_titles) > 1:
        words = without_titles
    is_surname_first = east_asian_width(words[0][0]) == "W"
    return words[-1] if is_surname_first else words[0]
