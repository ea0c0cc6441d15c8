"""The desk: one day of an app, with a column for each person who works or is booked.

A constant number of queries, whatever the amount of data.
"""

import uuid
from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from django.db.models import Case, QuerySet, Value, When
from django.utils.translation import gettext as _

from apps_config.models import App
from availability.models import Event, Resource
from availability.search.explaining import Explanation, explain_query
from availability.search.queries import TimeSpan
from bookings.graphs import GRAPHS
from bookings.models import Booking, Customer
from bookings.pages.formatting import first_known_zone
from common.errors import Invalid
from common.time.instants import ZONES, local_date, to_datetime
from office.base.dates import DAY, days_span_in_zone
from office.base.labels import ACTION_WORDS, RESPONSE_WORDS, STATE_COLOURS, shown_state, state_words
from office.base.lazy_text import LazyText
from office.base.local_time import days_span, time_text
from office.bookings.buttons import BUTTONS, outcome_buttons
from office.bookings.tabs import CALLED_OFF
from office.calendar.grid_data import (
    CalendarRange,
    closed_spans,
    count_seats,
    entry_title,
    read_calendar_events,
    read_event_bookings,
    whole_range_query,
)

MAX_COLUMNS = 12
MAX_CONSIDERED = 48  # resources of which the open time is computed
DAYS_AHEAD = 14
TO_NOTE_OUTCOMES = timedelta(hours=2)  # after the last booking of a day
SHORTEST_GAP = timedelta(minutes=15)
ANY_ZONE = timedelta(hours=14)  # a local day begins and ends within this of the day in UTC
# The actions with a button; the others are on the booking's page.
DESK_ACTIONS = ("confirm", "decline", "pay")

Row = tuple[Event, Booking | None, str]  # an event, its booking, and a title


class DeskRequest(NamedTuple):
    """`zone`: the page's. `only`: the resources that have a column, also without open time; empty:
    those that work or are booked.
    """

    app: App
    day: date
    zone: str
    now: datetime
    may_act: bool = False
    only: Collection[uuid.UUID] = ()


class Button(NamedTuple):
    """A button of an entry: it sends `value` as `name`."""

    name: str
    value: str
    words: LazyText
    style: str


class Entry(NamedTuple):
    """A booking, or another event that takes the time (without a booking). declined: words if a
    customer has declined the invitation.
    """

    time: str
    title: str
    what: str
    booking: Booking | None
    is_over: bool
    state: str = ""
    colour: str = ""
    actions: Sequence[Button] = ()
    outcomes: Sequence[Button] = ()
    declined: LazyText = ""


class Column(NamedTuple):
    """A resource's day. `zone`: "" if it is the page's. `past`: what began before `now`, the time
    on the resource's clock; `now` is "" on other days. `next_free`: the start of the next gap; "":
    none.
    """

    resource: Resource
    zone: str
    past: Sequence[Entry]
    now: str
    coming: Sequence[Entry]
    next_free: str

    @property
    def entries(self) -> Sequence[Entry]:
        return [*self.past, *self.coming]


class Desk(NamedTuple):
    """`more`: how many resources with bookings or open time have no column."""

    day: date
    columns: Sequence[Column]
    more: int


def desk_day(app: App, today: date, zone: str, now: datetime) -> date:
    """Return today, or the next day with bookings if the last ones of today ended a while ago."""
    start, end = days_span_in_zone(today, today + DAYS_AHEAD * DAY, zone)
    rows = bookings_between(app, start, end).filter(event__end__gt=now - TO_NOTE_OUTCOMES)
    first = rows.order_by("event__start", "id").values_list("event__start", flat=True).first()
    return today if first is None else max(local_date(first, zone), today)


def read_desk(desk: DeskRequest) -> Desk:
    """Return the columns of the local day, each on its resource's clock."""
    resources = _resources(desk)
    explained = _explain(desk, [row for row in resources if row.timezone in ZONES])
    rows = _read_rows(desk, resources)
    shown = [
        row
        for row in resources
        if desk.only or row.id in rows or _has_open_time(explained.get(row.id), desk.day)
    ]
    # Those with bookings have a column first; a column's place is that of its name.
    columns = sorted(shown[:MAX_COLUMNS], key=lambda row: (row.name.casefold(), row.id))
    return Desk(
        desk.day,
        [_column(desk, row, rows.get(row.id, ()), explained.get(row.id)) for row in columns],
        more=len(shown) - len(columns),
    )


# --- Rows -----------------------------------------------------------------------------------------
def bookings_between(app: App, start: datetime, end: datetime) -> QuerySet[Booking]:
    rows = Booking.objects.filter(app=app, deleted_at=None, owner_booking=None)
    rows = rows.filter(event__end__gt=start, event__start__gt=start - DAY, event__start__lt=end)
    return rows.exclude(state__in=CALLED_OFF)


def _resources(desk: DeskRequest) -> list[Resource]:
    """Return those with bookings around the day, then the others by name."""
    rows = Resource.objects.for_app(desk.app)
    if desk.only:
        rows = rows.filter(id__in=desk.only)
    start, end = days_span_in_zone(desk.day, desk.day, "UTC")
    booked = bookings_between(desk.app, start - ANY_ZONE, end + ANY_ZONE)
    place = Case(When(id__in=booked.values("resource_id"), then=Value(0)), default=Value(1))
    return list(rows.order_by(place, "name", "id")[:MAX_CONSIDERED])


def _explain(desk: DeskRequest, resources: Sequence[Resource]) -> dict[uuid.UUID, Explanation]:
    """Return the open time by resource; {} if there is too much to compute."""
    shown = CalendarRange(desk.day, desk.day + DAY, zone=None)
    try:
        explained = explain_query(whole_range_query(desk.app, resources, shown, desk.now))
    except Invalid:
        return {}
    return {row.resource.id: row for row in explained}


def _read_rows(desk: DeskRequest, resources: Sequence[Resource]) -> dict[uuid.UUID, list[Row]]:
    """Return what takes the time of each resource on the day, by start."""
    spans = {row.id: _day_of(desk.day, row) for row in resources}
    if not spans:
        return {}
    starts, ends = zip(*spans.values(), strict=True)
    whole = TimeSpan(min(starts), max(ends))
    events = read_calendar_events(desk.app, resources, whole)
    bookings = read_event_bookings(desk.app, events)
    seats = count_seats(bookings.values())
    found: dict[uuid.UUID, list[Row]] = {}
    for event in events:
        start, end = map(to_datetime, spans[event.resource_id])
        booking = bookings.get(event.main_id or event.id)
        is_shown = event.start < end and event.end > start and not event.is_further_unit
        if is_shown and _takes_place(event, booking):
            title = entry_title(event, booking, seats) if booking else event.what
            found.setdefault(event.resource_id, []).append((event, booking, title))
    for rows in found.values():
        rows.sort(key=lambda row: (row[0].start, row[0].id))
    return found


def _takes_place(event: Event, booking: Booking | None) -> bool:
    """Return whether the event has a booking that takes place, or takes the time without one."""
    if booking is None:
        return event.busy
    return booking.deleted_at is None and booking.state not in CALLED_OFF


def _day_of(day: date, resource: Resource) -> TimeSpan:
    return days_span(day, day + DAY, first_known_zone(resource.timezone))


# --- Columns --------------------------------------------------------------------------------------
def _column(
    desk: DeskRequest, resource: Resource, rows: Sequence[Row], explained: Explanation | None
) -> Column:
    zone = first_known_zone(resource.timezone)
    today = local_date(desk.now, zone)
    gap = _next_gap(explained, desk.now) if explained and desk.day >= today else None
    begun = [row for row in rows if row[0].start <= desk.now]
    coming = [row for row in rows if row[0].start > desk.now]
    return Column(
        resource=resource,
        zone="" if zone == desk.zone else zone,
        past=[_entry(desk, *row, zone) for row in begun],
        now=time_text(desk.now, zone) if desk.day == today else "",
        coming=[_entry(desk, *row, zone) for row in coming],
        next_free=time_text(gap, zone) if gap else "",
    )


def _entry(
    desk: DeskRequest, event: Event, booking: Booking | None, title: str, zone: str
) -> Entry:
    time = f"{time_text(event.start, zone)} – {time_text(event.end, zone)}"
    entry = Entry(
        time=_("All day") if event.all_day else time,
        title=title,
        what=event.step or event.what,
        booking=booking,
        is_over=event.end <= desk.now,
    )
    if booking is None:
        return entry
    state = booking.outcome or shown_state(booking)
    return entry._replace(
        state=state_words(state),
        colour=STATE_COLOURS.get(state, "info"),
        actions=action_buttons(booking) if desk.may_act else (),
        outcomes=_outcomes(event, booking) if desk.may_act else (),
        declined=_declined_words(booking),
    )


def _declined_words(booking: Booking) -> LazyText:
    """Return words if a customer has declined the invitation, else ""."""
    responses = {customer.response for customer in booking.customers.all()}
    return RESPONSE_WORDS[Customer.DECLINED] if Customer.DECLINED in responses else ""


def action_buttons(booking: Booking) -> list[Button]:
    possible = GRAPHS[booking.graph].actions(booking.state)
    return [
        Button("action", name, ACTION_WORDS[name], BUTTONS[name])
        for name in DESK_ACTIONS
        if name in possible
    ]


def _outcomes(event: Event, booking: Booking) -> list[Button]:
    return [
        Button("outcome", value, words, "default")
        for value, words in outcome_buttons(booking, event)
    ]


def _has_open_time(explained: Explanation | None, day: date) -> bool:
    if explained is None or explained.never_open:
        return False
    first, last = days_span(day, day + DAY, explained.resource.zone)
    return not any(start <= first and last <= end for start, end in closed_spans(explained))


def _next_gap(explained: Explanation, now: datetime) -> datetime | None:
    """Return from when on the resource is free on the day; None: not any more."""
    for start, end, is_available, _reasons in explained.segments:
        first, last = max(to_datetime(start), now), to_datetime(end)
        if is_available and last - first >= SHORTEST_GAP:
            return first
    return None
