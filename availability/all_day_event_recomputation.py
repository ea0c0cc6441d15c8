"""Recompute the instants of all-day events after a change of a zone's rules.

An all-day event stores its dates and, for searches, the instants of their local midnights. When
tzdata changes the rules of a zone, those instants are wrong until they are recomputed.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfoNotFoundError

from django.db import transaction
from django.db.models import QuerySet

from availability.models import Calendar, Event
from availability.reserve.events import lock_resources
from availability.services import local_midnights
from common.db.batching import iterate_batches
from common.db.sql import update_rows
from common.errors import Invalid

SLICE = 500


def all_day_events(now: datetime) -> QuerySet[Event]:
    """Return the all-day events of own calendars that have not ended.

    The next sync recomputes the all-day events of connected calendars.
    """
    return Event.objects.filter(
        all_day=True,
        end__gt=now,
        calendar__provider=Calendar.SERVICE,
        calendar__deleted_at=None,
        resource__deleted_at=None,
    ).select_related("resource")


def find_shifted(now: datetime) -> Iterator[tuple[int, list[Event]]]:
    """Yield, for each batch, the number of events read and the events whose instants are not the
    local midnights of their dates.
    """
    for events in iterate_batches(all_day_events(now), SLICE):
        yield len(events), [event for event in events if _is_shifted(event)]


def recompute_events(now: datetime) -> Iterator[tuple[int, list[Event]]]:
    """Set events to the local midnights of their dates; yield like `find_shifted`.

    One transaction per batch, under the locks of the resources. Can be interrupted and run again.
    """
    for count, shifted in find_shifted(now):
        yield count, _recompute(shifted, now)


def _recompute(events: Sequence[Event], now: datetime) -> list[Event]:
    if not events:
        return []
    with transaction.atomic():
        lock_resources({event.resource_id for event in events})
        # Read the events again under the lock: a concurrent change may have recomputed its event.
        rows = all_day_events(now).filter(id__in=[event.id for event in events])
        changed = [event for event in rows if _is_shifted(event)]
        for event in changed:
            event.start, event.end = _instants_of(event)
        update_rows(changed, ["start", "end", "updated_at"])
    return changed


def _is_shifted(event: Event) -> bool:
    return (event.start, event.end) != _instants_of(event)


def _instants_of(event: Event) -> tuple[datetime, datetime]:
    """Return the local midnights of the event's dates; its present instants if the zone skips the
    days or is unknown.
    """
    try:
        return local_midnights(*event.dates, event.resource.timezone)
    except (Invalid, ZoneInfoNotFoundError):
        return event.start, event.end
