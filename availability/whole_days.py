"""All-day events after a zone has changed its rules.

An all-day event keeps its dates and, for searches, the instants of their local midnights. When
tzdata changes the rules of a zone, those instants are an hour off until they are derived again.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfoNotFoundError

from django.db import transaction
from django.db.models import QuerySet

from availability.models import Calendar, Event
from availability.placement import lock_resources
from availability.services import whole_days
from scheduling.api.errors import Invalid
from scheduling.api.slices import by_slices
from scheduling.api.sql import update_rows

SLICE = 500


def all_day_events(now: datetime) -> QuerySet[Event]:
    """Those that are kept here and have not ended. What was read from a connected calendar is
    derived when it is read again."""
    return Event.objects.filter(
        all_day=True,
        end__gt=now,
        calendar__provider=Calendar.SERVICE,
        calendar__deleted_at=None,
        resource__deleted_at=None,
    ).select_related("resource")


def find_shifted(now: datetime) -> Iterator[tuple[int, list[Event]]]:
    """How many were looked at, and which of them no longer begin and end at the local midnights of
    their dates; a slice at a time."""
    for events in by_slices(all_day_events(now), SLICE):
        yield len(events), [event for event in events if _is_shifted(event)]


def derive_again(now: datetime) -> Iterator[tuple[int, list[Event]]]:
    """As `find_shifted`, and gives those events the instants of their dates.

    A transaction for each slice, under the locks of the resources. May be stopped and run again.
    """
    for count, shifted in find_shifted(now):
        yield count, _derive(shifted, now)


def _derive(events: Sequence[Event], now: datetime) -> list[Event]:
    if not events:
        return []
    with transaction.atomic():
        lock_resources({event.resource_id for event in events})
        # As they are now: whoever has changed one meanwhile has derived it.
        rows = all_day_events(now).filter(id__in=[event.id for event in events])
        changed = [event for event in rows if _is_shifted(event)]
        for event in changed:
            event.start, event.end = _instants_of(event)
        update_rows(changed, ["start", "end", "updated_at"])
    return changed


def _is_shifted(event: Event) -> bool:
    return (event.start, event.end) != _instants_of(event)


def _instants_of(event: Event) -> tuple[datetime, datetime]:
    """Its own where its zone has no such days, or is unknown by now: nothing better is known."""
    try:
        return whole_days(event.start_date, event.end_date, event.resource.timezone)
    except (Invalid, ZoneInfoNotFoundError):
        return event.start, event.end
