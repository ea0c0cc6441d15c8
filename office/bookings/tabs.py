"""The tabs of the list of bookings."""

from typing import Any

from django.db.models import Case, Q, QuerySet, When
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import pgettext_lazy

from bookings.models import Booking
from office.bookings.saved_filters import filter_state, saved_filters

UPCOMING, PAST, PENDING = "upcoming", "past", "pending"
TABS = {
    UPCOMING: pgettext_lazy("bookings", "Upcoming"),
    PAST: pgettext_lazy("bookings", "Past"),
    PENDING: pgettext_lazy("bookings", "Pending"),
}
ALL = pgettext_lazy("bookings", "All")
# States of bookings that do not take place.
CALLED_OFF = ("declined", "unpaid", "cancelled", "cancelled_by_customer", "cancelled_by_owner")


def is_upcoming(booking: Booking) -> bool:
    """Return whether the booking is still to take place. Reads the event."""
    has_ended = booking.event.end <= timezone.now()
    return not has_ended and not booking.completed and booking.state not in CALLED_OFF


def next_first(bookings: QuerySet[Booking]) -> QuerySet[Booking]:
    """Order a few bookings: upcoming ones by start, then the others, the latest first."""
    upcoming = Q(event__end__gt=timezone.now(), completed=False) & ~Q(state__in=CALLED_OFF)
    until = Case(When(upcoming, then="event__start"))
    return bookings.order_by(until.asc(nulls_last=True), "-event__start", "-id")


def open_requests(bookings: QuerySet[Booking]) -> QuerySet[Booking]:
    """Return the requests that an owner has to answer."""
    return bookings.filter(state="tentative", graph="confirm_decline")


def booking_tabs(request: HttpRequest) -> dict[str, Any]:
    """Return the tabs in the theme's format."""
    path = reverse("admin:bookings_booking_changelist")
    is_list = request.path == path
    state = filter_state(request) if is_list else None
    saved = state and state.saved
    chosen = request.GET.get("tab", "")
    return {
        "models": ["bookings.booking"],
        "items": [
            {
                "title": words,
                "link": f"{path}?tab={tab}" if tab else path,
                "active": is_list and not saved and chosen == tab,
                "has_permission": True,
            }
            for tab, words in (*TABS.items(), ("", ALL))
        ]
        + [
            {
                "title": row.name,
                "link": f"{path}?{row.query}",
                "active": row == saved,
                "has_permission": True,
            }
            for row in (saved_filters(request) if is_list else ())
        ],
    }
