"""The group sessions that a booking page shows, with their free seats."""

from datetime import datetime
from typing import NamedTuple

from django.db.models import F, Q, QuerySet

from availability.models import Project
from booking_pages.slots import OfferedSlots
from bookings.models import Booking
from bookings.serializers.responses import CURRENT_SEATS
from bookings.services import held_seats_column

MAX_SESSIONS = 1000


class GroupSession(NamedTuple):
    """Start and end in epoch seconds, the id of the group's booking, its free seats and the names
    of their places; None without places.
    """

    start: int
    end: int
    id: str
    seats: int
    places: list[str] | None = None


def find_group_sessions(project: Project, *, now: datetime) -> OfferedSlots:
    """Return the project's groups that have free seats and have not begun. One query."""
    rows: QuerySet[Booking] = Booking.objects.for_app(project.app_id).filter(
        project=project, max_seats__isnull=False, completed=False, event__start__gt=now
    )
    rows = rows.annotate(**CURRENT_SEATS, held_seats=held_seats_column(now))
    rows = rows.filter(Q(current_seats__lt=F("max_seats") - F("held_seats")))
    rows = rows.select_related("event").order_by("event__start", "id")
    sessions = [group_session_of(group) for group in rows[:MAX_SESSIONS]]
    began = int(now.timestamp())
    end = max((session.end for session in sessions), default=began)
    return OfferedSlots(sessions, until=end, horizon=end, since=began, earliest=began)


def group_session_of(group: Booking) -> GroupSession:
    seats = group.max_seats - group.current_seats - group.held_seats  # type: ignore[attr-defined,operator]  # annotated
    event = group.event
    start, end = int(event.start.timestamp()), int(event.end.timestamp())
    places = None if group.places is None else list(group.places)
    return GroupSession(start, end, str(group.id), seats, places)
