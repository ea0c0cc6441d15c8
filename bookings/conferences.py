"""The link of a booking's video call: who may see it, and which calendar still has to make it.

The link is a column of the event, so the seats of a group share one. It is shown only while the
booking takes place or has taken place: not to requests, and no longer once it is cancelled.
"""

from collections.abc import Iterable

from availability.conferences import CALENDAR_PROVIDERS
from availability.models import Calendar, Event
from availability.reserve.destination_calendar import DestinationCalendars
from availability.serializers.calendars import connection_of
from bookings.graphs import GRAPHS
from bookings.models import Booking

# Why no calendar makes the link: there is none of the provider, it has a problem, or its account
# has no video calls.
NO_CALENDAR, CALENDAR_PROBLEM, NOT_OFFERED = "no_calendar", "calendar_problem", "not_offered"
PROBLEMS = (NO_CALENDAR, CALENDAR_PROBLEM, NOT_OFFERED)


def has_conference(booking: Booking) -> bool:
    """Whether the booking takes place, or took place, with a video call."""
    takes_place = GRAPHS[booking.graph].takes_place(booking.state)
    return takes_place and bool(booking.event.conference_provider)


def conference_url(booking: Booking) -> str:
    """Return the link for everybody who may see the booking; "" without one."""
    return (booking.event.conference_url or "") if has_conference(booking) else ""


def wanted_conference(booking: Booking) -> str:
    """Return the kind of link that a connected calendar makes: "meet" or "teams"; else ""."""
    provider = booking.event.conference_provider or ""
    return provider if provider in CALENDAR_PROVIDERS and has_conference(booking) else ""


def lacks_link(booking: Booking) -> bool:
    """Whether a connected calendar should have made the link, but has not yet."""
    return bool(wanted_conference(booking)) and not booking.event.conference_url


def is_made_by(calendar: Calendar, event: Event) -> bool:
    """Whether the calendar's provider makes the event's link, and so has it already. The companion
    of a main event has no link of its own.
    """
    made_by = CALENDAR_PROVIDERS.get(event.conference_provider or "")
    return calendar.provider == made_by and event.main_id is None


class MissingLinks:
    """Why the links that some bookings lack are not there yet. Queries only for such bookings."""

    def __init__(self, bookings: Iterable[Booking]) -> None:
        lacking = [booking for booking in bookings if lacks_link(booking)]
        events = {booking.event_id: booking.event for booking in lacking}
        targets = DestinationCalendars(events.values())
        self.problems = {
            event.id: _problem_of(event, targets.of(event)) for event in events.values()
        }

    def is_coming(self, booking: Booking) -> bool:
        """Whether a connected calendar without a problem is about to make the link."""
        return self.problems.get(booking.event_id) == ""

    def problem(self, booking: Booking) -> str:
        """Return one of PROBLEMS; "" if the link is there, is coming, or is not wanted."""
        return self.problems.get(booking.event_id, "")


def _problem_of(event: Event, calendar: Calendar | None) -> str:
    if calendar is None or not is_made_by(calendar, event):
        return NO_CALENDAR
    connection = connection_of(calendar)
    if connection is None or connection.problem:
        return CALENDAR_PROBLEM
    return NOT_OFFERED if connection.makes_links is False else ""
