"""How the connected calendars are: for operators."""

from datetime import datetime

from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Coalesce

from availability.models import Calendar
from availability.out_of_step import out_of_step, stale_before
from notifications.doctor import OK, WARN, Check, Finding, adds_check, readable
from notifications.lateness import seconds_since
from scheduling.api.sql import database_now

NAMED = 3
# When each was last in step; of one that never was, since when it is connected.
_IN_STEP_AT = Coalesce("synced_at", "connection__created_at")


def in_use() -> QuerySet[Calendar]:
    """The connected ones that are there, of resources and apps that are."""
    return Calendar.objects.filter(
        connection__isnull=False,
        deleted_at=None,
        resource__deleted_at=None,
        resource__app__archived_at=None,
    )


def being_read_first(now: datetime) -> Q:
    """Of calendars those whose first look is under way: out of step still, but by no fault. One
    that takes longer than a calendar may be out of step is one."""
    return Q(
        synced_at=None,
        connection__problem="",
        connection__next_at__isnull=False,
        connection__created_at__gte=stale_before(now),
    )


def problems() -> dict[str, int]:
    """How many have which problem; "": none. One that nobody has is left out."""
    name = "connection__problem"
    return dict(in_use().order_by(name).values_list(name).annotate(Count("pk")))


def max_seconds_behind(now: datetime) -> float:
    """For how long the oldest has not been in step, or was never; 0 where there is none.

    Without those that only a person gets going again: they would hide the others.
    """
    return seconds_since(_least_synced(in_use().exclude(connection__next_at=None)), now)


def _least_synced(rows: QuerySet[Calendar]) -> datetime | None:
    return rows.aggregate(at=Min(_IN_STEP_AT))["at"]


def look_at_calendars() -> Finding:
    now = database_now()
    behind = in_use().filter(out_of_step(now)).exclude(being_read_first(now))
    count = behind.count()
    if not count:
        return Finding(OK, _how_many(now))
    rows = behind.annotate(at=_IN_STEP_AT).order_by("at", "pk")
    names = rows.values_list("connection__problem", flat=True)[:NAMED]
    causes = ", ".join(sorted({problem or "not looked at" for problem in names}))
    oldest = readable(seconds_since(_least_synced(behind), now))
    seen = f"{count} out of step, the oldest for {oldest} ({causes})"
    fix = "See that workers take the queue calendar; what only their owners can mend says so in the"
    return Finding(WARN, seen, f"{fix} admin and in GET /calendars.")


def _how_many(now: datetime) -> str:
    """Where none is out of step by a fault."""
    found, first = in_use().count(), in_use().filter(being_read_first(now)).count()
    if not found:
        return "none is connected"
    if first:
        return f"{found} connected, {first} being read for the first time, the others in step"
    return f"{found} connected, all in step"


adds_check(
    Check(
        "calendars",
        look_at_calendars,
        "Look at the database: this question takes it too long.",
    )
)
