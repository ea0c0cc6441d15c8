"""What became of bookings that do not take place any more, for a search without upcoming ones."""

import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.timezone import localtime
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from bookings.models import Booking, StateChange
from bookings.pages.formatting import day_and_time, short_date_words, short_day_words, time_words
from office.base.dates import DAY
from office.base.labels import state_words, with_customers
from office.base.permissions import actor_of
from office.bookings.tabs import CALLED_OFF, PAST, TABS, next_first

MAX_FORMER = 3
# Who ended a booking, by the source of the change.
BY_SOURCE = {
    # Translators: this and the next ones: who cancelled a booking, in "by you, yesterday".
    "widget": _("by the customer"),
    "timer": _("automatically"),
    "calendar": _("in a connected calendar"),
    "mail": _("by the customer"),
    "api": _("via API"),
    "mcp": _("by an agent"),
}
BY_LINK = {"customer": _("by the customer"), "owner": _("by the owner")}
TODAY, YESTERDAY = pgettext_lazy("when", "today"), pgettext_lazy("when", "yesterday")


class FormerBooking(NamedTuple):
    link: str
    words: str


def former_bookings(request: HttpRequest, found: QuerySet[Booking]) -> list[FormerBooking]:
    """Return the latest of the bookings as `Cancelled: Marty McFly – Check-up, Fri 27 Nov, 09:00
    (by you, yesterday)`. Two queries and that of the customers.
    """
    bookings = list(next_first(found.select_related("event"))[:MAX_FORMER])
    endings = ending_words(request, bookings)
    return [
        FormerBooking(
            reverse("admin:bookings_booking_change", args=[booking.pk]),
            _former_words(booking, endings.get(booking.pk, "")),
        )
        for booking in bookings
    ]


def _former_words(booking: Booking, ending: str) -> str:
    is_past = booking.state not in CALLED_OFF
    given = {
        "state": TABS[PAST] if is_past else capfirst(state_words(booking.state)),
        "booking": with_customers(booking, booking.counted(booking.event.what)),
        "time": _start_words(booking),
        "ending": ending,
    }
    if ending:
        # Translators: "Cancelled: Ann – Haircut, Fri 27 Nov, 09:00 (by you, yesterday)".
        return gettext("%(state)s: %(booking)s, %(time)s (%(ending)s)") % given
    return gettext("%(state)s: %(booking)s, %(time)s") % given


def ending_words(request: HttpRequest, bookings: Iterable[Booking]) -> Mapping[uuid.UUID, str]:
    """Return `by you, yesterday` for each booking that was called off. One query."""
    states = {row.pk: row.state for row in bookings if row.state in CALLED_OFF}
    changes = StateChange.objects.filter(booking__in=states).order_by("id") if states else ()
    return {
        # Translators: who and when, in "Cancelled: … (by you, yesterday)".
        change.booking_id: gettext("%(who)s, %(day)s")
        % {"who": _who(request, change), "day": _day_words(change)}
        for change in changes
        if change.to_state == states[change.booking_id] != change.from_state
    }


def _who(request: HttpRequest, change: StateChange) -> str:
    if change.source == "admin":
        if change.actor == actor_of(request).name:
            return gettext("by you")
        return gettext("by %(person)s") % {"person": change.actor}
    if change.source == "link":
        return str(BY_LINK.get(change.actor, BY_SOURCE["widget"]))
    return str(BY_SOURCE.get(change.source, BY_SOURCE["api"]))


def _day_words(change: StateChange) -> str:
    day, today = localtime(change.created_at).date(), localtime(timezone.now()).date()
    if day == today:
        return str(TODAY)
    return str(YESTERDAY) if day == today - DAY else short_date_words(day)


def _start_words(booking: Booking) -> str:
    """Return `Fri 27 Nov, 09:00`, with the year if it is another one."""
    start, now = localtime(booking.event.start), localtime(timezone.now())
    day = short_day_words(start) if start.year == now.year else short_date_words(start)
    return day_and_time(day, time_words(start))
