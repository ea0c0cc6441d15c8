"""How the connected calendars are: for operators."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min, QuerySet
from django.db.models.functions import Coalesce

from external_calendars.models import Connection
from notifications.doctor import OK, WARN, Check, Finding, adds_check, readable
from notifications.lateness import seconds_since
from notifications.queue import database_now

NAMED = 3


def in_use() -> QuerySet[Connection]:
    """Those of calendars, resources and apps that are there."""
    return Connection.objects.filter(
        calendar__deleted_at=None,
        calendar__resource__deleted_at=None,
        calendar__resource__app__archived_at=None,
    )


def problems() -> dict[str, int]:
    """How many have which problem; "": none. One that nobody has is left out."""
    counts = in_use().order_by("problem").values_list("problem").annotate(Count("pk"))
    return dict(counts)


def max_seconds_behind(now: datetime) -> float:
    """For how long the oldest has not been in step, or was never; 0 where there is none.

    Without those that only a person gets going again: they would hide the others.
    """
    return seconds_since(_least_synced(in_use().exclude(next_at=None)), now)


def _least_synced(rows: QuerySet[Connection]) -> datetime | None:
    found = rows.aggregate(at=Min(Coalesce("calendar__synced_at", "created_at")))
    return found["at"]


def look_at_calendars() -> Finding:
    now = database_now()
    behind = (
        in_use()
        .annotate(at=Coalesce("calendar__synced_at", "created_at"))
        .filter(at__lt=now - timedelta(seconds=settings.CALENDAR_STALE_SECONDS))
    )
    count = behind.count()
    if not count:
        found = sum(problems().values())
        return Finding(OK, f"{found} connected, all in step" if found else "none is connected")
    names = behind.order_by("at", "pk").values_list("problem", flat=True)[:NAMED]
    causes = ", ".join(sorted({problem or "not looked at" for problem in names}))
    oldest = readable(seconds_since(_least_synced(behind), now))
    seen = f"{count} out of step, the oldest for {oldest} ({causes})"
    fix = "See that workers take the queue calendar; what only their owners can mend says so in the"
    return Finding(WARN, seen, f"{fix} admin and in GET /calendars.")


adds_check(
    Check(
        "calendars",
        look_at_calendars,
        "Look at the database: this question takes it too long.",
    )
)
