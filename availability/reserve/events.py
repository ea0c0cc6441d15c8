"""Reserve, move and release event time: lock, check, write. All writes of busy time go through
here.

Every function runs inside the caller's transaction. The lock on the resource's row serialises
concurrent bookings; the database's guard on exclusive events (`slot_taken`) is the second line.
"""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from django.db import IntegrityError, connection, transaction
from django.db.models import Q

from availability.core.busy_items import Buffers, fully_booked_items
from availability.core.explain import Reason
from availability.core.intervals import clip, normalise
from availability.core.matching import NOTHING_FIXED, WHOLE, Alternatives, FixedChoice, Stretch
from availability.core.visits import Visit
from availability.models import VISIT, Calendar, Event, Project, Resource
from availability.reserve.units import assign_units
from availability.search.availability_query import (
    AvailabilityQuery,
    ExternalBusy,
    SearchResource,
    query_of_stretch,
)
from availability.search.engine import search_first_slots
from availability.search.parameters import SlotParameters
from availability.search.queries import TimeSpan, fetch_busy_events
from common.db.sql import id_in_sql, id_param, insert_rows, to_uuid, update_rows
from common.db.updated_at import remember_start, transaction_start
from common.errors import Refusal
from common.messages import Message
from common.time.instants import LAST_YEAR, format_instant, to_datetime

CONFLICTS_NAMED = 10
ALTERNATIVES = 3
ALTERNATIVES_WITHIN = timedelta(days=14)
LAST_INSTANT = datetime(LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=UTC)


# New stretches of events by their ids: of the steps of a visit that is moved.
Stretches = Mapping[uuid.UUID, Stretch]
NO_STRETCHES: Stretches = {}


class SlotTaken(Refusal):
    """The time breaks no rule but overlaps an event or a hold of the resource."""

    code = "slot_taken"

    def __init__(self, conflicts: Sequence[tuple[datetime, datetime]] = ()) -> None:
        spans = [span_record(start, end) for start, end in conflicts]
        super().__init__(Message("The time is taken."), conflicts=spans, alternatives=[])


class NotAvailable(Refusal):
    """The rules of the resource or the project exclude the time."""

    code = "not_available"

    def __init__(self, reasons: Sequence[Reason]) -> None:
        super().__init__(Message("The time is not available."), reasons=[], alternatives=[])
        self.reasons = reasons


def span_record(start: datetime, end: datetime) -> dict[str, str]:
    return {"start": format_instant(start), "end": format_instant(end)}


@dataclass(frozen=True)
class TimeRequest:
    """The time that a booking requests of its resources.

    blocks: its event blocks the resource. exclusive: it may not overlap what blocks the resource.
    rules: the query with the project's rules, if they are enforced. ignore_all_day: all-day events
    do not conflict (a setting of the project). now: the instant at which other holds must not have
    expired. buffers: those that the booking is or was made with; None: of whoever asks. holds:
    holds that keep the time for this request. is_in_time: minimum notice, past and booking window
    were checked when its hold was made. external_busy: busy time from a live free/busy check, which
    has no rows in the database yet. quantity: the units that it takes of its resource.
    """

    start: datetime
    end: datetime
    blocks: bool
    exclusive: bool
    now: datetime
    rules: AvailabilityQuery | None = None
    buffers: Buffers | None = None
    ignore_all_day: bool = False
    holds: Collection[uuid.UUID] = ()
    is_in_time: bool = False
    external_busy: ExternalBusy = field(default_factory=dict)
    quantity: int = 1

    @cached_property
    def span(self) -> TimeSpan:
        return TimeSpan(int(self.start.timestamp()), int(self.end.timestamp()))

    def of_stretch(self, stretch: Stretch) -> "TimeRequest":
        """Return the request for a stretch of its time, with the rules that apply there."""
        if stretch == WHOLE:
            return self
        if not stretch.fits(*self.span):
            text = Message("Is too short for all that it requires.")
            raise NotAvailable([Reason("requirement", "project", (), None, text)])
        start, end = stretch.within(*self.span)
        rules = self.rules and query_of_stretch(self.rules, stretch)
        return replace(self, start=to_datetime(start), end=to_datetime(end), rules=rules)

    @property
    def stored_buffers(self) -> dict[str, int | None]:
        """The columns of its event or hold."""
        before, after = self.buffers or (None, None)
        return {"buffer_before": before, "buffer_after": after}

    @property
    def is_guarded(self) -> bool:
        """Whether the database's guard covers the event."""
        return self.blocks and self.exclusive


class Place(NamedTuple):
    """A calendar that a booking takes time in, for a requirement (None: the project has none).

    step: of a visit. Empty: the visit as a whole, which blocks nothing.
    """

    calendar: Calendar
    requirement: str | None = None
    stretch: Stretch = WHOLE
    step: str | None = None


class EventDetails(NamedTuple):
    """The fields of an event except its time."""

    what: str
    where: str = ""
    description: str = ""
    participants: list[str] = []
    invite: bool = True


_LOCK = """
SELECT id, capacity FROM availability_resource WHERE id {among} AND deleted_at IS NULL
ORDER BY id FOR NO KEY UPDATE
"""
_FIND = "SELECT id, capacity FROM availability_resource WHERE id {among} AND deleted_at IS NULL"
_FIND_CALENDARS = """
SELECT {start}, calendar.id, resource.capacity
FROM availability_resource AS resource
JOIN availability_calendar AS calendar ON calendar.resource_id = resource.id
WHERE calendar.id {among} AND calendar.deleted_at IS NULL AND resource.deleted_at IS NULL
ORDER BY resource.id
"""
# Lock the resource first, then its calendar, in the order of a deletion. Without a lock on the
# calendar, PostgreSQL would use its version from before the wait for the resource.
_LOCK_CALENDARS = _FIND_CALENDARS + "FOR NO KEY UPDATE OF resource FOR SHARE OF calendar"


def lock_resources(resource_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Lock the rows of the resources in the order of their ids, so that transactions can't
    deadlock.

    Returns the capacities of those that still exist, by id. SQLite needs no lock: its transaction
    is already exclusive.
    """
    sql, params = id_in_sql(resource_ids)
    statement = _LOCK if connection.vendor == "postgresql" else _FIND
    with connection.cursor() as cursor:
        cursor.execute(statement.format(among=sql), params)
        return {to_uuid(found): capacity for found, capacity in cursor.fetchall()}


def lock_resources_of_calendars(calendars: Collection[Calendar]) -> bool:
    """Lock the resources of the calendars, in the order of `lock_resources`, and set `capacity`.

    False if a calendar or its resource has been deleted meanwhile.
    """
    ids = {calendar.id for calendar in calendars}
    sql, params = id_in_sql(ids)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            statement, started = _LOCK_CALENDARS, "transaction_timestamp()"
        else:
            statement, started = _FIND_CALENDARS, "NULL"
        cursor.execute(statement.format(start=started, among=sql), params)
        found = cursor.fetchall()
    if found and found[0][0]:
        remember_start(found[0][0])  # every caller writes rows with this stamp
    capacities = {to_uuid(calendar_id): capacity for _, calendar_id, capacity in found}
    for calendar in calendars:
        calendar.capacity = capacities.get(calendar.id, 1)
    return len(capacities) == len(ids)


_FIND_PROJECT = "SELECT 1 FROM availability_project WHERE id = %s AND deleted_at IS NULL"


def lock_project(project_id: uuid.UUID, *, exclusive: bool = False) -> bool:
    """Block a deletion of the project until the end of the transaction; False if it is deleted
    already.

    Take it before the locks on resources. The lock is shared, so that bookings do not wait for each
    other; alone: they do, for a choice that depends on the project's bookings.
    """
    lock = " FOR NO KEY UPDATE" if exclusive else " FOR SHARE"
    lock = lock if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(_FIND_PROJECT + lock, [id_param(project_id)])
        return cursor.fetchone() is not None


def find_conflicts(
    time_request: TimeRequest, resource_ids: Collection[uuid.UUID]
) -> list[tuple[datetime, datetime]]:
    """The first events and holds that block the resources and overlap the time request.

    Of a resource with a capacity above 1, the first times at which it has too few free units. If
    there are none, `external_busy`, clipped to the time request. Rules are ignored.
    """
    items = fetch_busy_events(
        resource_ids,
        time_request.span,
        now=time_request.now,
        ignore_all_day=time_request.ignore_all_day,
        without=time_request.holds,
    )
    conflicts = sorted(
        item.span
        for found in items.values()
        for item in fully_booked_items(found, time_request.quantity)
    )
    named = [(to_datetime(start), to_datetime(end)) for start, end in conflicts[:CONFLICTS_NAMED]]
    return named or _external_conflicts(time_request, resource_ids)


def _external_conflicts(
    time_request: TimeRequest, resource_ids: Collection[uuid.UUID]
) -> list[tuple[datetime, datetime]]:
    spans = [
        span
        for resource_id in resource_ids
        for span in time_request.external_busy.get(resource_id, ())
    ]
    inside = clip(normalise(spans), *time_request.span)
    return [(to_datetime(start), to_datetime(end)) for start, end in inside[:CONFLICTS_NAMED]]


@contextmanager
def guarded_transaction() -> Iterator[None]:
    """A transaction that raises SlotTaken if the database's guard refuses an overlap."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        # The PostgreSQL constraint and the SQLite triggers have the same name.
        if "slot_taken" not in str(error):
            raise
        raise SlotTaken() from error


def write_events(
    time_requests: Sequence[TimeRequest],
    *,
    places: Sequence[Place],
    details: EventDetails,
    project: Project | None,
) -> list[Event]:
    """Write an event for each time request: in the first place, with companions in the others and
    for further units.

    The caller holds the locks on the resources and has checked the time requests under them.
    """
    placed = [(time_request, places) for time_request in time_requests]
    return write_placed_events(placed, details=details, project=project)


def write_placed_events(
    placed: Sequence[tuple[TimeRequest, Sequence[Place]]],
    *,
    details: EventDetails,
    project: Project | None,
) -> list[Event]:
    """Write events as `write_events` does, each time request with its own places."""
    events: list[Event] = []
    companions: list[Event] = []
    for time_request, places in placed:
        main, *others = [
            _new_event(place, time_request.of_stretch(place.stretch), details, project)
            for place in places
        ]
        for other in others:
            other.main = main
        events.append(main)
        companions += others
        companions += [further_unit_of(main) for _ in range(time_request.quantity - 1)]
    capacities = {
        place.calendar.resource_id: place.calendar.capacity
        for _, places in placed
        for place in places
    }
    raise_longest_buffer(capacities, [time_request for time_request, _ in placed])
    assign_units([*events, *companions], capacities)
    insert_rows([*events, *companions])
    return events


def _new_event(
    place: Place, time_request: TimeRequest, details: EventDetails, project: Project | None
) -> Event:
    return Event(
        app_id=place.calendar.app_id,
        calendar=place.calendar,
        resource=place.calendar.resource,
        project=project,
        start=time_request.start,
        end=time_request.end,
        busy=time_request.blocks and place.step != VISIT,
        exclusive=time_request.is_guarded and place.step != VISIT,
        requirement=place.requirement,
        step=place.step,
        **time_request.stored_buffers,
        **details._asdict(),
    )


# What the event of a further unit has in common with its main event.
_UNIT_FIELDS = (
    *("app_id", "calendar_id", "resource_id", "project_id", "start", "end", "busy", "exclusive"),
    *("buffer_before", "buffer_after", "what", "where", "description", "invite"),
)


def further_unit_of(event: Event) -> Event:
    """Return an unsaved event that takes one more unit of the event's resource."""
    values = {name: getattr(event, name) for name in _UNIT_FIELDS}
    return Event(main=event, is_further_unit=True, **values)


def raise_longest_buffer(
    resource_ids: Collection[uuid.UUID], time_requests: Collection[TimeRequest]
) -> None:
    """Raise the resources' longest buffer to that of the time requests; the resources are locked.

    Searches read what lies so far outside of their range.
    """
    longest = max((each.buffers.longest for each in time_requests if each.buffers), default=0)
    if longest:
        rows = Resource.objects.filter(id__in=resource_ids, longest_buffer__lt=longest)
        rows.update(longest_buffer=longest)


def write_times(
    time_requests: Sequence[tuple[Event, TimeRequest]],
    capacities: Mapping[uuid.UUID, int],
    stretches: Stretches = NO_STRETCHES,
) -> None:
    """Move events and their companions to the times of their checked time requests.

    The caller holds the locks on the old and the new resources. capacities: of the new resources.
    Several rows take two statements: the first clears `exclusive` and `unit`, since the database's
    guard would otherwise compare new times and resources with old ones.
    """
    rows = []
    for event, time_request in time_requests:
        for row, stretch in event_stretches(event, stretches):
            span = time_request.of_stretch(stretch)
            row.start, row.end = span.start, span.end
            blocks = row.step != VISIT
            row.busy = blocks and time_request.blocks
            row.exclusive = blocks and time_request.is_guarded
            row.unit = 0
            rows.append(row)
    if len(rows) > 1:
        Event.objects.filter(id__in=[row.id for row in rows]).update(exclusive=False, unit=0)
    raise_longest_buffer(
        {row.resource_id for row in rows}, [time_request for _, time_request in time_requests]
    )
    assign_units(rows, capacities)
    update_rows(
        rows,
        ["start", "end", "calendar", "resource", "busy", "exclusive", "unit", "updated_at"],
    )


def free_events(events: Sequence[Event]) -> None:
    """Release the time of the events; they stay in their calendars."""
    if not events:
        return
    ids = [event.id for event in events]
    Event.objects.filter(Q(id__in=ids) | Q(main__in=ids)).update(
        busy=False, exclusive=False, unit=0, updated_at=transaction_start()
    )
    for event in events:
        steps = event.companions.all() if event.step == VISIT else ()
        for row in (event, *steps):
            row.busy = row.exclusive = False
            row.unit = 0


# The texts of an event.
EVENT_WORDS = ("what", "where", "description")


def update_event_details(event: Event, words: Mapping[str, str]) -> None:
    """Change the texts of an event and its companions; with no texts only `updated_at` changes, so
    that their mirrored copies are rewritten.
    """
    rows = Event.objects.filter(Q(id=event.id) | Q(main=event))
    event.updated_at = transaction_start()
    rows.update(**words, updated_at=event.updated_at)
    for name, value in words.items():
        setattr(event, name, value)


def event_stretches(
    event: Event, stretches: Stretches = NO_STRETCHES
) -> list[tuple[Event, Stretch]]:
    """The event and its companions, each with its stretch of the event's time: a new one of
    `stretches`, else the one that it has.
    """
    return [
        (row, stretches.get(row.id) or _stretch_within(row, event.start, event.end))
        for row in event_with_companions(event)
    ]


def _stretch_within(row: Event, start: datetime, end: datetime) -> Stretch:
    if row.step:
        length: int | None = int((row.end - row.start).total_seconds())
    else:
        length = None if row.end == end else int((row.end - row.start).total_seconds())
    return Stretch(int((row.start - start).total_seconds()), length, is_step=bool(row.step))


def takes_time(event: Event) -> bool:
    """Whether the event blocks its resource; of a visit, whether its steps do."""
    return any(row.busy for row in event.companions.all()) if event.step == VISIT else event.busy


def event_with_companions(event: Event) -> list[Event]:
    """The event and its companions, which never conflict with each other."""
    return [event, *event.companions.all()]


def further_resource_events(event: Event) -> list[Event]:
    """The companions of the event in calendars of other resources."""
    return [row for row in event.companions.all() if not row.is_further_unit]


def find_alternatives(
    time_request: TimeRequest,
    resources: Sequence[SearchResource],
    *,
    mode: str,
    now: datetime,
    count: int = ALTERNATIVES,
    alternatives: Alternatives = (),
    visit: Visit | None = None,
    fixed: FixedChoice = NOTHING_FIXED,
) -> list[dict[str, str]]:
    """Next free spans of the request's length within 14 days, by the rules that apply.

    Called after the refusal has been rolled back. If rules are not enforced, only busy time counts.
    The search starts at the requested start, but never in the past.
    """
    length = time_request.span.end - time_request.span.start
    earliest = max(time_request.start, now)
    latest = min(earliest + ALTERNATIVES_WITHIN, LAST_INSTANT)
    terms = (
        time_request.rules.terms
        if time_request.rules
        else SlotParameters(ignore_all_day_events=time_request.ignore_all_day, ignores_buffers=True)
    )
    alternatives_request = replace(
        terms,
        length=length if terms.permits_length(length) else terms.length,
        earliest=format_instant(earliest),
        latest=format_instant(latest),
    )
    query = AvailabilityQuery(
        resources=resources
        if time_request.rules
        else [resource.without_rules() for resource in resources],
        terms=alternatives_request
        if time_request.rules
        else replace(alternatives_request, length=length),
        now=now,
        project_id=time_request.rules.project_id if time_request.rules else None,
        bounds=time_request.rules.own if time_request.rules else None,
        external_busy=time_request.external_busy,
        alternatives=alternatives,
        visit=visit,
        quantity=time_request.quantity,
        party_size=time_request.rules.party_size if time_request.rules else None,
        fixed=fixed,
    )
    # Only the times count, not which resources are free.
    mode = "mutual" if mode == "mutual" else "roundrobin_prioritized"
    slots = search_first_slots(query, mode=mode, count=count)
    return [span_record(to_datetime(start), to_datetime(end)) for start, end, _ in slots]
