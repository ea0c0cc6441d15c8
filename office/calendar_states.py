"""How calendars stand that are kept elsewhere: the same words on every page."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q, QuerySet

from availability.models import Calendar
from external_calendars.models import Connection
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import TROUBLES

IN_STEP, FIRST_LOOK, TROUBLED = "in_step", "first_look", "troubled"
OUT_OF_STEP, STOPPED, HERE, DELETED = "out_of_step", "stopped", "here", "deleted"
TROUBLE = "trouble"  # in addresses: those that need somebody
# Each is exactly one of these: words, and the theme's colour of the label (`default`: grey).
STATES: Mapping[str, tuple[str, str]] = {
    IN_STEP: ("in step", "success"),
    FIRST_LOOK: ("first look", "info"),
    TROUBLED: ("in trouble", "warning"),
    OUT_OF_STEP: ("out of step", "danger"),
    STOPPED: ("stopped", "danger"),
    HERE: ("kept here", "default"),
    DELETED: ("deleted", "default"),
}


def out_since(now: datetime) -> datetime:
    """What was last in step before that is out of step."""
    return now - timedelta(seconds=settings.CALENDAR_STALE_SECONDS)


def state_of(calendar: Calendar, now: datetime) -> str:
    """A key of STATES. The calendar is read with its `connection`."""
    if calendar.deleted_at:
        return DELETED
    connection: Connection | None = getattr(calendar, "connection", None)
    if connection is None:
        return HERE
    if connection.is_stopped:
        return STOPPED
    if (calendar.synced_at or connection.created_at) < out_since(now):
        return OUT_OF_STEP
    if connection.problem:
        return TROUBLED
    return IN_STEP if calendar.synced_at else FIRST_LOOK


def those_in(state: str, now: datetime) -> Q:
    """The calendars of which `state_of` says so."""
    if state == DELETED:
        return Q(deleted_at__isnull=False)
    if state == HERE:
        return Q(deleted_at=None, connection=None)
    connected = Q(deleted_at=None, connection__isnull=False)
    if state == STOPPED:
        return connected & Q(connection__next_at=None)
    since = out_since(now)
    late = Q(synced_at__lt=since) | Q(synced_at=None, connection__created_at__lt=since)
    looked_at = connected & Q(connection__next_at__isnull=False)
    if state == OUT_OF_STEP:
        return looked_at & late
    timely = looked_at & (
        Q(synced_at__gte=since) | Q(synced_at=None, connection__created_at__gte=since)
    )
    if state == TROUBLED:
        return timely & ~Q(connection__problem="")
    return timely & Q(connection__problem="", synced_at__isnull=state == FIRST_LOOK)


def need_somebody(calendars: QuerySet[Calendar], now: datetime) -> QuerySet[Calendar]:
    """Those out of step for longer than the setting says, and those that a problem has stopped;
    what belongs to nobody any more is left out."""
    rows = calendars.filter(resource__deleted_at=None, resource__app__archived_at=None)
    return rows.filter(those_in(OUT_OF_STEP, now) | those_in(STOPPED, now))


def provider_words(name: str) -> str:
    """`CalDAV`; of one that the table has no more, its name."""
    if name == Calendar.SERVICE:
        return "this service"
    provider = PROVIDERS.get(name)
    return provider.label if provider else name


def problem_words(connection: Connection | None) -> str:
    """Why it is not in step, as a sentence; "" where nothing is wrong."""
    return TROUBLES[connection.problem] if connection and connection.problem else ""
