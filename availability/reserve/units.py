"""Units of resources that several bookings use at once.

Each event of a normal booking has a unit below the capacity of its resource. The database refuses
two of one unit that overlap (migrations 0002 and 0016): an event of unit 0 is `exclusive`, one of
another unit is not. Every function runs under the lock on the resources. A cancellation does not
take that lock: events that get another unit are locked themselves.
"""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from django.db import IntegrityError
from django.db.models import Q, QuerySet

from availability.models import Event
from common.db.sql import update_rows

GUARDED = Q(busy=True) & (Q(exclusive=True) | Q(unit__gt=0))


def assign_units(events: Sequence[Event], capacities: Mapping[uuid.UUID, int]) -> None:
    """Give events that are about to be written, `exclusive` if they are guarded, a free unit each.

    One query for all resources with a capacity above 1, none without. If no unit is free for the
    whole time of an event, the events that overlap it get other units, which are saved. Raises
    IntegrityError `slot_taken`, like the database, if more than the capacity overlap.
    """
    shared = [event for event in events if event.exclusive and capacities[event.resource_id] > 1]
    if not shared:
        return
    own = {event.id for event in events}
    events_with_unit = _events_with_unit(
        {event.resource_id for event in shared}, *_time_range(shared), without=own
    )
    for resource_id in {event.resource_id for event in shared}:
        capacity = capacities[resource_id]
        new_events = [event for event in shared if event.resource_id == resource_id]
        others = [event for event in events_with_unit if event.resource_id == resource_id]
        if not _assign_free_units(
            [*others, *new_events], capacity, keeps=lambda event: event.id not in own
        ):
            _reassign(new_events, capacity, without=own)


def lower_units(resource_id: uuid.UUID, capacity: int, *, now: datetime) -> None:
    """Give the events of a resource that begin after `now` units below a lower capacity.

    At no time after `now` more than `capacity` of them overlap. Running events keep their units.
    """
    rows = Event.objects.filter(GUARDED, resource_id=resource_id, end__gt=now)
    events = list(_locked(rows))
    before = {event.id: event.unit for event in events}
    if not _assign_free_units(events, capacity, keeps=lambda event: event.start <= now):
        raise IntegrityError("slot_taken: more events overlap than the capacity allows")
    _save_units([event for event in events if event.unit != before[event.id]])


def _events_with_unit(
    resource_ids: Collection[uuid.UUID],
    start: datetime,
    end: datetime,
    *,
    without: Collection[uuid.UUID],
) -> QuerySet[Event]:
    rows = Event.objects.filter(GUARDED, resource_id__in=resource_ids)
    return rows.overlapping(start, end).exclude(id__in=without).order_by()


def _locked(events: QuerySet[Event]) -> QuerySet[Event]:
    """Lock the events. PostgreSQL leaves out those that were cancelled while it waited."""
    return events.order_by("id").select_for_update(no_key=True)


def _time_range(events: Collection[Event]) -> tuple[datetime, datetime]:
    return min(event.start for event in events), max(event.end for event in events)


def _assign_free_units(
    events: Sequence[Event], capacity: int, *, keeps: Callable[[Event], bool]
) -> bool:
    """Give each event a unit that no overlapping event has; False if there is none.

    keeps: whether an event keeps its unit. If none below the capacity does, any free unit is right
    in order of start: the number of units is then the greatest number of events that overlap.
    """
    kept = [event for event in events if keeps(event)]
    running: list[tuple[Event, int]] = []
    assigned: list[tuple[Event, int]] = []
    for event in sorted(events, key=lambda event: event.start):
        if keeps(event):
            continue
        running = [(other, unit) for other, unit in running if other.end > event.start]
        used = {unit for _, unit in running}
        used |= {
            other.unit for other in kept if other.start < event.end and other.end > event.start
        }
        unit = next(
            (
                unit
                for unit in (event.unit, *range(capacity))
                if unit < capacity and unit not in used
            ),
            None,
        )
        if unit is None:
            return False
        running.append((event, unit))
        assigned.append((event, unit))
    for event, unit in assigned:
        event.unit, event.exclusive = unit, unit == 0
    return True


def _reassign(
    new_events: Sequence[Event], capacity: int, *, without: Collection[uuid.UUID]
) -> None:
    """Give the events and all that overlap them, directly or through others, new units."""
    start, end = _time_range(new_events)
    resource_ids = {new_events[0].resource_id}
    while True:
        others = list(_locked(_events_with_unit(resource_ids, start, end, without=without)))
        chain = _overlapping_group(new_events, others)
        lo, hi = _time_range([*new_events, *chain])
        if start <= lo and hi <= end:
            break
        start, end = min(start, lo - (end - start)), max(end, hi + (end - start))
    before = {event.id: event.unit for event in chain}
    # An event may have a unit above a capacity that has been lowered since: it keeps it.
    if not _assign_free_units(
        [*chain, *new_events], capacity, keeps=lambda event: event.unit >= capacity
    ):
        raise IntegrityError("slot_taken: more events overlap than the capacity allows")
    # Events that move stand at their old times until they are written.
    Event.objects.filter(id__in=without).update(exclusive=False, unit=0)
    _save_units([event for event in chain if event.unit != before[event.id]])


def _overlapping_group(new_events: Sequence[Event], others: Sequence[Event]) -> list[Event]:
    """Return those of the others that overlap a wanted event, directly or through others."""
    ids = {event.id for event in new_events}
    groups: list[list[Event]] = []
    until: datetime | None = None
    for event in sorted([*new_events, *others], key=lambda event: event.start):
        if until is None or event.start >= until:
            groups.append([])
            until = event.end
        groups[-1].append(event)
        until = max(until, event.end)
    linked = (group for group in groups if any(event.id in ids for event in group))
    return [event for group in linked for event in group if event.id not in ids]


def _save_units(events: Sequence[Event]) -> None:
    """Save changed units. The events first give up their old ones, which the database guards."""
    if not events:
        return
    Event.objects.filter(id__in=[event.id for event in events]).update(exclusive=False, unit=0)
    update_rows(events, ["unit", "exclusive"])
