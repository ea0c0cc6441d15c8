"""Due times and leases of calendar syncs, like those of deliveries.

Both use the database's clock. The lease of a dead worker expires; its late writes find another
token and are dropped.
"""

import random
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, QuerySet, Value, When

from availability.models import Calendar
from availability.reserve.events import lock_resources
from common.db.sql import database_now
from external_calendars.models import Connection
from external_calendars.providers.base import FINAL_ERRORS, NO_WRITE_ACCESS, ProviderError
from external_calendars.stop_announcements import announce_stops
from notifications.outbox.wakeup import WakeUp

# Longer than any single call to a provider; each batch extends it.
LEASE = timedelta(seconds=120)
# Minutes until the next sync after 1, 2, ... failures in a row; the last value repeats.
PAUSES = (1, 5, 15, 60)
# A final error may pass all the same: a server that loses its users for an hour. Syncs stop after
# this many attempts, which the pauses spread over 81 minutes.
FINAL_TRIES = 5
MAX_RETRY_AFTER = 86_400
# Relative spread, so that calendars connected together are not synced together for ever.
JITTER = 0.1
# Until the next sync of a calendar whose provider says when it has changed; at most half of
# CALENDAR_STALE_SECONDS.
PUSHED_SYNC_SECONDS = 1800
# Has a worker sync the due calendars; beat sends it as often as it expires.
SYNC_WAKEUP = WakeUp("external_calendars.tasks.sync_calendars", "calendar", expires=5)


class LeaseLost(Exception):
    """Another worker has the lease, or the calendar was disconnected or deleted."""


def due_connections(now: datetime) -> QuerySet[Connection]:
    """Return the due connections of calendars, resources and apps that are in use.

    Without those whose access token has ended: its renewal comes first.
    """
    return Connection.objects.filter(
        next_at__lte=now,
        calendar__deleted_at=None,
        calendar__resource__deleted_at=None,
        calendar__resource__app__archived_at=None,
    ).exclude(grant__access_ends_at__lte=now)


def claim_connections(limit: int, *, calendar_id: uuid.UUID | None = None) -> list[Connection]:
    """Claim up to `limit` due connections, the longest due first, each with its own lease.

    With `calendar_id`: only this connection, due or not, unless a worker holds its lease.
    """
    with transaction.atomic():
        now = database_now()
        if calendar_id is not None:
            unleased = Connection.objects.filter(calendar=calendar_id, lease_token=None)
            unleased.update(next_at=now)
        rows = due_connections(now).select_related("calendar__resource", "grant")
        if calendar_id is not None:
            rows = rows.filter(calendar=calendar_id)
        # One calendar of an account at a time: its provider limits the requests of the account.
        busy = Connection.objects.filter(grant__isnull=False, lease_token__isnull=False)
        rows = rows.exclude(grant__in=busy.filter(next_at__gt=now).values("grant"))
        rows = rows.select_for_update(skip_locked=True, of=("self",)).order_by("next_at", "pk")
        claimed = _one_per_grant(rows[:limit])
        for connection in claimed:
            connection.lease_token, connection.next_at = uuid.uuid4(), now + LEASE
        Connection.objects.bulk_update(claimed, ["lease_token", "next_at"])
    return claimed


def _one_per_grant(connections: Iterable[Connection]) -> list[Connection]:
    """Return the longest due connection of each grant, and all that have none."""
    found: dict[uuid.UUID, Connection] = {}
    for connection in connections:
        found.setdefault(connection.grant_id or connection.pk, connection)
    return list(found.values())


@contextmanager
def locked_connection(connection: Connection) -> Iterator[datetime]:
    """Open a short transaction that locks the resource's timeline and the connection.

    Yields the database's time; extends the lease at the end. Raises LeaseLost. Resources are locked
    before connections, as everywhere.
    """
    with transaction.atomic():
        locked_resources = lock_resources([connection.calendar.resource_id])
        if not locked_resources or _leased_row(connection).select_for_update().first() is None:
            raise LeaseLost
        now = database_now()
        yield now
        _leased_row(connection).update(next_at=now + LEASE)


def _leased_row(connection: Connection) -> QuerySet[Connection]:
    return Connection.objects.filter(pk=connection.pk, lease_token=connection.lease_token)


def record_progress(connection: Connection, done: int, total: int) -> None:
    """Store the progress, which is shown during the first sync. Raises LeaseLost."""
    if not _leased_row(connection).update(done=done, total=total, next_at=database_now() + LEASE):
        raise LeaseLost
    connection.done, connection.total = done, total


def record_synced(connection: Connection, *, begun: datetime) -> None:
    """Record, within `locked_connection`, that everything at the provider at `begun` is stored."""
    stays = When(problem=NO_WRITE_ACCESS, then=F("problem"))
    _leased_row(connection).update(
        mark=connection.mark,
        done=connection.total,
        unread=connection.remote_objects.exclude(problem="").count(),
        problem=Case(stays, default=Value("")),
        problem_since=Case(When(problem=NO_WRITE_ACCESS, then=F("problem_since")), default=None),
        failures=0,
        checked_at=begun,
    )
    Calendar.objects.filter(id=connection.pk).update(synced_at=begun)


def release_lease(connection: Connection, *, at_once: bool = False) -> None:
    """Release the lease until the next due time."""
    now = database_now()
    pause = timedelta() if at_once else _spread(settings.CALENDAR_SYNC_SECONDS)
    _leased_row(connection).update(next_at=now + pause, lease_token=None)


def release_synced(connection: Connection, *, begun: datetime) -> None:
    """Release the lease after a sync that began at `begun` until the next due time.

    A calendar whose provider has said since then that it has changed is due at once.
    """
    now = database_now()
    has_changed = When(notified_at__gt=begun, then=Value(now))
    next_at = Case(has_changed, default=Value(now + _sync_interval(connection, now)))
    _leased_row(connection).update(next_at=next_at, lease_token=None)


def _sync_interval(connection: Connection, now: datetime) -> timedelta:
    """Return the time until the next sync; longer if a push channel lives until then."""
    pushed = _spread(
        max(
            settings.CALENDAR_SYNC_SECONDS,
            min(PUSHED_SYNC_SECONDS, settings.CALENDAR_STALE_SECONDS / 2),
        )
    )
    is_pushed = connection.grant_id and connection.channels.working(now + pushed).exists()
    return pushed if is_pushed else _spread(settings.CALENDAR_SYNC_SECONDS)


def _spread(seconds: float) -> timedelta:
    return timedelta(seconds=seconds * random.uniform(1 - JITTER, 1 + JITTER))  # nosec B311


def record_problem(connection: Connection, provider_error: ProviderError) -> None:
    """Record why the sync failed, and release the lease until the next attempt."""
    now = database_now()
    minutes = PAUSES[min(connection.failures, len(PAUSES) - 1)]
    asked_for = min(provider_error.retry_after or 0, MAX_RETRY_AFTER)
    pause = timedelta(seconds=max(minutes * 60, asked_for))
    is_met_again = provider_error.code in FINAL_ERRORS and connection.problem == provider_error.code
    is_final = is_met_again and connection.failures + 1 >= FINAL_TRIES
    with transaction.atomic():
        is_stored = _leased_row(connection).update(
            problem=provider_error.code,
            problem_since=Case(When(problem="", then=Value(now)), default=F("problem_since")),
            failures=F("failures") + 1,
            next_at=None if is_final else now + pause,
            lease_token=None,
            checked_at=now,
        )
        if is_stored and is_final:
            announce_stops([connection.pk], now=now)
