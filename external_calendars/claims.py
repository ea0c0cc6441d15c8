"""Which calendars are due for a look, and who is at it: a lease, as deliveries have one.

Due times and leases are read by the database's clock. A worker that dies gives its calendar back by
doing nothing; what it should write late finds another token, and is dropped.
"""

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, QuerySet, Value, When

from availability.models import Calendar
from availability.placement import lock_resources
from external_calendars.models import Connection
from external_calendars.providers.base import FINAL_TROUBLES, NO_WRITE_ACCESS, Trouble
from notifications.waking import WakeUp
from scheduling.api.sql import database_now

# Longer than any one call to a provider; each batch extends it.
LEASE = timedelta(seconds=120)
# After so many failures in a row, in minutes; then the last.
PAUSES = (1, 5, 15, 60)
# What only a person mends may be over all the same: a server that forgot everybody for an hour. It
# is met for so many tries, which the pauses spread over 81 minutes, before nobody looks any more.
FINAL_TRIES = 5
LONGEST_RETRY_AFTER = 86_400
# So that calendars that were connected at once are not asked at once for ever.
JITTER = 0.1
# Has a worker look at those that are due; beat asks as often as this expires.
LOOK = WakeUp("external_calendars.tasks.look_at_calendars", "calendar", expires=5)


class LeaseLost(Exception):
    """Somebody else has the calendar by now, or nobody: it was let go, or deleted."""


def due(now: datetime) -> QuerySet[Connection]:
    """Those that a worker may look at, of calendars, resources and apps that are still in use."""
    return Connection.objects.filter(
        next_at__lte=now,
        calendar__deleted_at=None,
        calendar__resource__deleted_at=None,
        calendar__resource__app__archived_at=None,
    )


def claim(limit: int, *, calendar_id: uuid.UUID | None = None) -> list[Connection]:
    """Up to `limit` due ones, those that wait longest first, each under a lease of its own.

    With `calendar_id` that one only, due or not, unless somebody is at it.
    """
    with transaction.atomic():
        now = database_now()
        if calendar_id is not None:
            asked = Connection.objects.filter(calendar=calendar_id, lease_token=None)
            asked.update(next_at=now)
        rows = due(now).select_related("calendar__resource")
        if calendar_id is not None:
            rows = rows.filter(calendar=calendar_id)
        rows = rows.select_for_update(skip_locked=True, of=("self",)).order_by("next_at", "pk")
        claimed = list(rows[:limit])
        for connection in claimed:
            connection.lease_token, connection.next_at = uuid.uuid4(), now + LEASE
        Connection.objects.bulk_update(claimed, ["lease_token", "next_at"])
    return claimed


@contextmanager
def held(connection: Connection) -> Iterator[datetime]:
    """A short transaction in which nobody else writes to the resource's time or takes the lease.

    Gives the database's time; the lease is extended at its end. Raises LeaseLost. Resources are
    locked first, as by everybody: then connections.
    """
    with transaction.atomic():
        found = lock_resources([connection.calendar.resource_id])
        if not found or _mine(connection).select_for_update().first() is None:
            raise LeaseLost
        now = database_now()
        yield now
        _mine(connection).update(next_at=now + LEASE)


def _mine(connection: Connection) -> QuerySet[Connection]:
    return Connection.objects.filter(pk=connection.pk, lease_token=connection.lease_token)


def note_progress(connection: Connection, done: int, total: int) -> None:
    """Shown to whoever waits for the first look. Raises LeaseLost."""
    if not _mine(connection).update(done=done, total=total, next_at=database_now() + LEASE):
        raise LeaseLost
    connection.done, connection.total = done, total


def note_in_step(connection: Connection, *, begun: datetime) -> None:
    """Everything that stood there when the look began is here. Within `held`."""
    stays = When(problem=NO_WRITE_ACCESS, then=F("problem"))
    _mine(connection).update(
        mark=connection.mark,
        done=connection.total,
        unread=connection.remote_objects.exclude(problem="").count(),
        problem=Case(stays, default=Value("")),
        problem_since=Case(When(problem=NO_WRITE_ACCESS, then=F("problem_since")), default=None),
        failures=0,
        looked_at=begun,
    )
    Calendar.objects.filter(id=connection.pk).update(synced_at=begun)


def release(connection: Connection, *, at_once: bool = False) -> None:
    """Give it back until its next turn."""
    now = database_now()
    pause = timedelta() if at_once else _turn()
    _mine(connection).update(next_at=now + pause, lease_token=None)


def _turn() -> timedelta:
    spread = random.uniform(1 - JITTER, 1 + JITTER)  # nosec B311
    return timedelta(seconds=settings.CALENDAR_SYNC_SECONDS * spread)


def note_trouble(connection: Connection, trouble: Trouble) -> None:
    """Say why it is not in step, and give it back until it is worth another try."""
    now = database_now()
    minutes = PAUSES[min(connection.failures, len(PAUSES) - 1)]
    asked_for = min(trouble.retry_after or 0, LONGEST_RETRY_AFTER)
    pause = timedelta(seconds=max(minutes * 60, asked_for))
    is_met_again = trouble.code in FINAL_TROUBLES and connection.problem == trouble.code
    is_final = is_met_again and connection.failures + 1 >= FINAL_TRIES
    _mine(connection).update(
        problem=trouble.code,
        problem_since=Case(When(problem="", then=Value(now)), default=F("problem_since")),
        failures=F("failures") + 1,
        next_at=None if is_final else now + pause,
        lease_token=None,
        looked_at=now,
    )
