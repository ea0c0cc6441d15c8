"""Health of the connected calendars, for operators."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from availability.models import Calendar
from availability.search.staleness import stale_before
from external_calendars.models import PushChannel
from external_calendars.providers import OAUTH_PROVIDERS
from external_calendars.push import DEAD_AFTER, push_address
from notifications.outbox.overdue import seconds_since

# When a calendar was last synced; if never, when it was connected.
SYNCED_AT = Coalesce("synced_at", "connection__created_at")


def connected_calendars() -> QuerySet[Calendar]:
    """Return connected calendars, without deleted calendars and resources and archived apps."""
    return Calendar.objects.filter(
        connection__isnull=False,
        deleted_at=None,
        resource__deleted_at=None,
        resource__app__archived_at=None,
    )


def in_first_sync(now: datetime) -> Q:
    """Match calendars in their first sync: not synced yet, but not faulty.

    If the first sync takes so long that the calendar is stale, the calendar is excluded.
    """
    return Q(
        synced_at=None,
        connection__problem="",
        connection__next_at__isnull=False,
        connection__created_at__gte=stale_before(now),
    )


def without_push(now: datetime) -> Q:
    """Match calendars that are synced, but whose provider has told nothing for DEAD_AFTER, although
    it could: it has no channel that works.
    """
    before = now - DEAD_AFTER
    pushing: Iterable[str] = [name for name in OAUTH_PROVIDERS if push_address(name)]
    channels = PushChannel.objects.working(before).filter(connection=OuterRef("pk"))
    return Q(
        ~Exists(channels),
        provider__in=pushing,
        connection__next_at__isnull=False,
        connection__created_at__lte=before,
    )


def count_problems() -> dict[str, int]:
    """Return problem -> number of calendars; "": no problem."""
    name = "connection__problem"
    return dict(connected_calendars().order_by(name).values_list(name).annotate(Count("pk")))


def max_seconds_stale(now: datetime) -> float:
    """Return the seconds since the least recent sync; 0 without calendars.

    Calendars that only a person can fix are left out: they would hide the others.
    """
    return seconds_since(least_synced(connected_calendars().exclude(connection__next_at=None)), now)


def least_synced(rows: QuerySet[Calendar]) -> datetime | None:
    return rows.aggregate(at=Min(SYNCED_AT))["at"]
