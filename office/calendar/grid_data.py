"""Data of the calendar grid: bookings, other events, holds and closed time of several resources.

A constant number of queries, whatever the amount of data.
"""

import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext, ngettext, pgettext, pgettext_lazy

from apps_config.models import App
from availability.models import Calendar, Event, Hold, Resource
from availability.reserve.policies import DEFAULT_PARAMETERS
from availability.search.availability_query import AvailabilityQuery, load_resources
from availability.search.explaining import Explanation, explain_query
from availability.search.queries import TimeSpan
from bookings.graphs import SEATED
from bookings.models import Booking
from bookings.services.seat_counts import SEATS
from common.time.instants import to_datetime
from office.base.labels import shown_state, state_words
from office.base.local_time import (
    LocalSpan,
    days_span,
    local_pieces,
    local_span,
    skipped_pieces,
    span_text,
    validate_zone_name,
)
from office.base.message_translations import translate_message

MAX_DAYS = 42  # the weeks of a month
MAX_ROWS = 5000
# Non-blocking events are found by an index on their start: those that began more than this before
# the first day are missing. (Blocking events are found by their end.)
BEGUN_WITHIN = timedelta(days=MAX_DAYS)
# Words of entries that are no bookings.
ENTRY_WORDS = {
    # Translators: an event that is not a booking; its time is taken.
    "event": pgettext_lazy("calendar entry", "event"),
    # Translators: an event that is not a booking; its time stays free.
    "idle": pgettext_lazy("calendar entry", "shown as free"),
    # Translators: time held for a booking that is not made yet.
    "hold": pgettext_lazy("calendar entry", "hold"),
}
# Reason types that shade time as closed.
CLOSING = ("constraint", "calendar")


class CalendarRange(NamedTuple):
    """Local days (`until` exclusive) and the zone in which they are shown; None: each resource's
    own.
    """

    first: date
    until: date
    zone: str | None

    @property
    def days(self) -> int:
        return (self.until - self.first).days

    def zone_of(self, resource: Resource) -> str:
        return self.zone or resource.timezone

    def span_of(self, resource: Resource) -> TimeSpan:
        return days_span(self.first, self.until, self.zone_of(resource))


class CalendarData(NamedTuple):
    """The grid's data, in the calendar library's format. `closed_days`: days without open time of
    any of the resources. `late`: stale calendars that close their resource, with the calendar's
    URL. `cut`: there are more events than MAX_ROWS.
    """

    events: list[dict[str, Any]]
    background: list[dict[str, Any]]
    closed_days: list[str]
    late: list[dict[str, str]]
    cut: bool


def read_calendar_data(
    app: App, resources: Sequence[Resource], shown: CalendarRange, *, now: datetime, may_move: bool
) -> CalendarData:
    for resource in resources:
        validate_zone_name("timezone", resource.timezone)
    spans = [shown.span_of(resource) for resource in resources]
    whole = TimeSpan(min(span.start for span in spans), max(span.end for span in spans))
    events = read_calendar_events(app, resources, whole)
    bookings = read_event_bookings(app, events)
    seats = count_seats(bookings.values())
    holds = list(_read_holds(app, resources, whole, now))
    by_id = {resource.id: resource for resource in resources}
    taken = _count_taken(events, bookings, holds, by_id)
    records = [
        _event_record(event, bookings, seats, taken, by_id[event.resource_id], shown, may_move)
        for event in events
        if not (event.is_further_unit or _has_deleted_booking(event, bookings))
    ]
    # A hold of several units has one row for each.
    shown_holds = {(hold.main_id or hold.id, hold.resource_id): hold for hold in holds}
    records += [_hold_record(hold, by_id[hold.resource_id], shown) for hold in shown_holds.values()]
    # Computed by the core of /availability/explain.
    explained = explain_query(whole_range_query(app, resources, shown, now))
    return CalendarData(
        events=records,
        background=_background(explained, by_id, shown),
        closed_days=_closed_days(explained, by_id, shown),
        late=_stale_calendars(explained),
        cut=len(events) >= MAX_ROWS,
    )


# --- Rows -----------------------------------------------------------------------------------------
def read_calendar_events(app: App, resources: Sequence[Resource], span: TimeSpan) -> list[Event]:
    """Return the events that overlap the span; non-blocking ones by calendar and start."""
    ids = [resource.id for resource in resources]
    start, end = to_datetime(span.start), to_datetime(span.end)
    calendars = Calendar.objects.filter(resource_id__in=ids, deleted_at=None)
    rows = Event.objects.filter(calendar__deleted_at=None, of_ended_seats=False)
    rows = rows.without_whole_visits()
    rows = rows.order_by("start", "id")
    busy = rows.filter(resource_id__in=ids, busy=True).overlapping(start, end)
    idle = rows.filter(
        calendar_id__in=calendars.values("id"), busy=False, start__gte=start - BEGUN_WITHIN
    ).overlapping(start, end)
    return [*busy[:MAX_ROWS], *idle[:MAX_ROWS]]


def read_event_bookings(app: App, events: Iterable[Event]) -> dict[uuid.UUID, Booking]:
    """Return event id -> booking; of a group the group's own, of a companion the main event's."""
    ids = {event.main_id or event.id for event in events}
    rows = Booking.objects.filter(app=app, event_id__in=ids, owner_booking=None)
    return {booking.event_id: booking for booking in rows.prefetch_related("customers")}


def count_seats(bookings: Iterable[Booking]) -> dict[uuid.UUID, int]:
    groups = [booking.id for booking in bookings if booking.max_seats is not None]
    taken = Q(owner_booking_id__in=groups, state__in=SEATED, deleted_at=None)
    found = Booking.objects.filter(taken).order_by().values_list("owner_booking_id")
    return dict(found.annotate(number=SEATS))


def _count_taken(
    events: Iterable[Event],
    bookings: dict[uuid.UUID, Booking],
    holds: Iterable[Hold],
    by_id: dict[uuid.UUID, Resource],
) -> dict[uuid.UUID, int]:
    """Return event id -> how many places of its resource are taken at once during the booking, at
    most, by bookings and holds. Only for resources with a capacity above 1.
    """
    taking: list[Event | Hold] = list(holds)
    taking += [each for each in events if each.busy and (each.main_id or each.id) in bookings]
    by_resource: dict[uuid.UUID, list[Event | Hold]] = {}
    for row in taking:
        if by_id[row.resource_id].capacity > 1:
            by_resource.setdefault(row.resource_id, []).append(row)
    counts = {}
    for rows in by_resource.values():
        changes = Counter(row.start for row in rows)
        changes.subtract(row.end for row in rows)
        times = sorted(changes)
        taken = list(accumulate(changes[time] for time in times))  # from each time to the next
        for row in rows:
            span = slice(bisect_left(times, row.start), bisect_left(times, row.end))
            counts[row.id] = max(taken[span])
    return counts


def _read_holds(
    app: App, resources: Sequence[Resource], span: TimeSpan, now: datetime
) -> QuerySet[Hold]:
    return Hold.objects.filter(
        app=app,
        resource_id__in=[resource.id for resource in resources],
        used_at=None,
        expires_at__gt=now,
        end__gt=to_datetime(span.start),
        start__lt=to_datetime(span.end),
    )[:MAX_ROWS]


def _has_deleted_booking(event: Event, bookings: dict[uuid.UUID, Booking]) -> bool:
    """Return whether the event's booking is deleted."""
    booking = bookings.get(event.main_id or event.id)
    return booking is not None and booking.deleted_at is not None


# --- Records --------------------------------------------------------------------------------------
def _event_record(
    event: Event,
    bookings: dict[uuid.UUID, Booking],
    seats: dict[uuid.UUID, int],
    taken: dict[uuid.UUID, int],
    resource: Resource,
    shown: CalendarRange,
    may_move: bool,
) -> dict[str, Any]:
    booking = bookings.get(event.main_id or event.id)
    record = _record(f"event-{event.id}", resource, shown, event.start, event.end)
    if event.all_day and shown.zone_of(resource) == resource.timezone:
        first, until = event.dates
        record |= {"allDay": True, "start": first.isoformat(), "end": until.isoformat()}
    if booking is None:
        url = reverse("admin:availability_event_change", args=[event.id])
        kind = "event" if event.busy else "idle"
        return _event_json(record, title=event.what, state=kind, url=url)
    title = entry_title(event, booking, seats)
    if event.id in taken:
        title = _with_places(title, taken[event.id], resource.capacity)
    return _event_json(
        record,
        title=title,
        state=shown_state(booking),
        url=reverse("admin:bookings_booking_change", args=[booking.id]),
        booking=booking,
        may_move=may_move and event.main_id is None and not booking.completed,
    )


def _with_places(title: str, taken: int, capacity: int) -> str:
    # Translators: title: of a booking, such as "Haircut · Ann"; places: of its resource.
    words = ngettext(
        "%(title)s (%(taken)s of %(capacity)s place)",
        "%(title)s (%(taken)s of %(capacity)s places)",
        capacity,
    )
    return words % {"title": title, "taken": taken, "capacity": capacity}


def entry_title(event: Event, booking: Booking, seats: dict[uuid.UUID, int]) -> str:
    if booking.max_seats is not None:
        taken = seats.get(booking.id, 0)
        # Translators: a group session with its seats: "Yoga (1 of 8)".
        words = gettext("%(what)s (%(taken)s of %(seats)s)")
        return words % {"what": event.what, "taken": taken, "seats": booking.max_seats}
    names = [customer.name for customer in booking.customers.all() if customer.name]
    what = event.step or booking.counted(event.what)
    return " · ".join([what, *names[:1], *people_words(booking)])


def counted_words(booking: Booking) -> str:
    """Return `3 × Bike`, `Dinner · People: 6`."""
    return " · ".join([booking.counted(booking.event.what), *people_words(booking)])


def people_words(booking: Booking) -> list[str]:
    """Return `People: 6` if the size of the party is known."""
    size = booking.party_size
    return [f"{pgettext('how many come', 'People')}: {size}"] if size else []


def _hold_record(hold: Hold, resource: Resource, shown: CalendarRange) -> dict[str, Any]:
    record = _record(f"hold-{hold.id}", resource, shown, hold.start, hold.end)
    url = reverse("admin:availability_hold_change", args=[hold.id])
    return _event_json(record, title=pgettext("time", "Held"), state="hold", url=url)


def _record(
    name: str, resource: Resource, shown: CalendarRange, start: datetime, end: datetime
) -> dict[str, Any]:
    zone = shown.zone_of(resource)
    wall = local_span(start, end, zone)
    return {
        "id": name,
        "resourceIds": [str(resource.id)],
        "start": wall.start,
        "end": wall.end,
        "extendedProps": {
            "start": wall.start,
            "end": wall.end,
            "time": span_text(start, end, zone),
            "resource": resource.name,
        },
    }


def _event_json(
    record: dict[str, Any],
    *,
    title: str,
    state: str,
    url: str,
    booking: Booking | None = None,
    may_move: bool = False,
) -> dict[str, Any]:
    """Return the record. `state`: the booking's; else event (blocking), idle (not blocking) or
    hold. `words`: the state for people.
    """
    more = record["extendedProps"] | {
        "state": state,
        "words": str(ENTRY_WORDS.get(state) or state_words(state)),
        "url": url,
        "booking": str(booking.id) if booking else None,
    }
    return record | {
        "title": title,
        "classNames": [f"is-{state}"],
        "startEditable": may_move,
        "durationEditable": may_move,
        "extendedProps": more,
    }


# --- Open and closed time -------------------------------------------------------------------------
def _background(
    explained: Iterable[Explanation], by_id: dict[uuid.UUID, Resource], shown: CalendarRange
) -> list[dict[str, Any]]:
    records = []
    for explanation in explained:
        resource = by_id[explanation.resource.id]
        zone = shown.zone_of(resource)
        records += [
            _shade(resource, piece, "is-closed")
            for start, end in closed_spans(explanation)
            for piece in local_pieces(start, end, zone)
        ]
        records += [
            _shade(resource, piece, "is-skipped")
            for piece in skipped_pieces(*shown.span_of(resource), zone)
        ]
    return records


def _closed_days(
    explained: Iterable[Explanation], by_id: dict[uuid.UUID, Resource], shown: CalendarRange
) -> list[str]:
    days = [shown.first + timedelta(days=number) for number in range(shown.days)]
    for explanation in explained:
        zone = shown.zone_of(by_id[explanation.resource.id])
        spans = closed_spans(explanation)
        days = [day for day in days if _is_covered(days_span(day, _next_day(day), zone), spans)]
    return [day.isoformat() for day in days]


def _next_day(day: date) -> date:
    return day + timedelta(days=1)


def _is_covered(day: TimeSpan, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start <= day.start and day.end <= end for start, end in spans)


def _stale_calendars(explanations: Iterable[Explanation]) -> list[dict[str, str]]:
    return [
        {
            "resource": explanation.resource.name,
            "text": translate_message(reason.text),
            "url": reverse("admin:availability_calendar_change", args=[reason.calendar_id]),
        }
        for explanation in explanations
        # Such reasons apply to the whole range: the first segment has all of them.
        for reason in explanation.segments[0].reasons
        if reason.type == "calendar"
    ]


def whole_range_query(
    app: App, resources: Sequence[Resource], shown: CalendarRange, now: datetime
) -> AvailabilityQuery:
    """Return a query of each resource's whole range, including the past. Texts without an offset
    are in each resource's zone.
    """
    if shown.zone is None:
        texts = [f"{day.isoformat()}T00:00:00" for day in (shown.first, shown.until)]
    else:
        span = days_span(shown.first, shown.until, shown.zone)
        texts = [to_datetime(instant).isoformat() for instant in span]
    terms = replace(DEFAULT_PARAMETERS, earliest=texts[0], latest=texts[1], include_past=True)
    rows = load_resources(app, [resource.id for resource in resources], now=now)
    return AvailabilityQuery(resources=rows, terms=terms, now=now)


def closed_spans(explanation: Explanation) -> list[tuple[int, int]]:
    """Return the spans closed by rules, or by a stale calendar if the app wants that."""
    spans: list[tuple[int, int]] = []
    for start, end, _, reasons in explanation.segments:
        if not any(reason.type in CLOSING for reason in reasons):
            continue
        if spans and spans[-1][1] == start:
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def _shade(resource: Resource, piece: LocalSpan, name: str) -> dict[str, Any]:
    return {
        "display": "background",
        "resourceIds": [str(resource.id)],
        "start": piece.start,
        "end": piece.end,
        "classNames": [name],
    }
