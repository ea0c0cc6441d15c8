"""Find free time: read the rows, call the core. One engine for what is offered and what holds."""

import random
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from apps_config.models import App
from availability.core.constraints import Rule, parse_constraints
from availability.core.explain import Busy, Reason, Segment, explain, never_open
from availability.core.intervals import complement
from availability.core.slots import Agenda, Demand, Slot, TooManySlots, find_slots, free_intervals
from availability.models import Constraint, Project
from availability.reading import (
    OutOfStep,
    Pairs,
    ResourceRow,
    RuleRow,
    Span,
    closed_days,
    read_busy,
    read_busy_events,
    read_day_counts,
    read_project_resources,
    read_resources,
)
from availability.terms import Terms, is_too_long
from scheduling.api.durations import DurationError
from scheduling.api.errors import Invalid
from scheduling.api.instants import InstantError, format_instant


@dataclass(frozen=True, slots=True, eq=False)
class Bookable:
    """A resource as the search needs it. Compared as an object, so that it is a cheap key.

    out_of_step: its connected calendars of which nothing new is known for too long. is_closed: they
    leave it no free time at all, as its app has chosen.
    """

    id: uuid.UUID
    name: str
    zone: str
    rules: tuple[Rule, ...]
    out_of_step: tuple[OutOfStep, ...] = ()
    is_closed: bool = False

    def without_rules(self) -> "Bookable":
        """The same where only what blocks counts."""
        return replace(self, rules=(), is_closed=False)

    def closed_in(self, span: Span) -> list[tuple[int, int]]:
        return [span] if self.is_closed else []


@lru_cache(maxsize=4096)
def rules_from_rows(rows: tuple[RuleRow, ...]) -> tuple[Rule, ...]:
    """The core's rules of constraint rows (name, day, start, end), parsed once."""
    return parse_constraints(
        [Constraint(name=n, day=day, start=start, end=end).as_json() for n, day, start, end in rows]
    )


def load_resources(app: App, ids: Sequence[uuid.UUID], *, now: datetime) -> list[Bookable]:
    """The app's resources of these ids, in the order given; unknown ones are left out."""
    return [_bookable(row, app) for row in read_resources(app.id, ids, now=now)]


def load_project_resources(app: App, project: Project, *, now: datetime) -> list[Bookable]:
    """The resources of the app's project, in its order."""
    return [_bookable(row, app) for row in read_project_resources(app.id, project.id, now=now)]


def _bookable(row: ResourceRow, app: App) -> Bookable:
    return Bookable(
        row.id,
        row.name,
        row.zone,
        rules_from_rows(row.rules),
        row.out_of_step,
        bool(row.out_of_step) and app.stale_calendars == App.BLOCK,
    )


def project_rules(project: Project) -> tuple[Rule, ...]:
    """The project's own constraints: one query."""
    return rules_from_rows(tuple(project.constraints.values_list("name", "day", "start", "end")))


Elsewhere = Mapping[uuid.UUID, Sequence[Span]]  # by resource, what another calendar says of it


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, for whom, on which terms.

    own: the project's terms, whose `from` and `to` a booking must keep (notice and horizon).
    bounds: terms whose span may only be narrowed (the project's, for a widget key).
    without: the events that don't count: those of a booking that wants to move.
    elsewhere: what takes the time of resources beside the rows that are here.
    """

    resources: Sequence[Bookable]
    terms: Terms
    now: datetime
    project_id: uuid.UUID | None = None
    own: Terms | None = None
    bounds: Terms | None = None
    without: Collection[uuid.UUID] = ()
    elsewhere: Elsewhere = field(default_factory=dict)

    def span(self, zone: str) -> Span:
        """The range for a resource in `zone`. Raises Invalid on `from` or `to`."""
        start, end = self._read_span(self.terms, zone)
        if self.bounds:
            return self._narrowed(Span(start, end), zone)
        if end <= start:
            raise Invalid.at("to", "Must lie after `from`.")
        if is_too_long(start, end, zone):
            raise Invalid.at("to", "Must lie at most 366 days after `from`.")
        return Span(self.terms.offered_from(start, end, zone), end)

    def _narrowed(self, asked: Span, zone: str) -> Span:
        """What of the asked range lies in that of the bounds; empty where nothing does."""
        least, most = self._read_span(self.bounds, zone)
        least = self.bounds.offered_from(least, most, zone)
        start = min(max(self.terms.offered_from(*asked, zone), least), most)
        return Span(start, max(start, min(asked.end, most)))

    def own_span(self, zone: str) -> Span:
        """Notice and horizon of the project's bookings. Raises Invalid on `from`."""
        return self._read_span(self.own, zone)

    def _read_span(self, terms: Terms, zone: str) -> Span:
        try:
            return Span(*terms.span(self.now, zone))
        except (DurationError, InstantError) as error:
            raise Invalid({"from": [str(error)]}) from error

    def rule_lists(self, resource: Bookable) -> tuple[tuple[Rule, ...], ...]:
        return (resource.rules, self.terms.constraints, *self.terms.extra)


class Prepared(NamedTuple):
    """A query with its rows: what the core works on."""

    agendas: list[Agenda]
    demand: Demand


def prepare(query: Query) -> Prepared:
    """Read what blocks; two queries at most, whatever the number of resources."""
    terms = query.terms
    spans = {zone: query.span(zone) for zone in {resource.zone for resource in query.resources}}
    whole = _whole(spans.values())
    wide = Span(whole.start - terms.buffer, whole.end + terms.buffer)
    ids = [resource.id for resource in query.resources]
    busy = read_busy(
        ids,
        wide,
        now=query.now,
        ignore_all_day=terms.ignore_all_day_events,
        without=query.without,
    )
    closed = _closed_days(query, whole, query.resources, query.without)
    agendas = [
        Agenda(
            key=resource,
            zone=resource.zone,
            rules=query.rule_lists(resource),
            busy=_with_elsewhere(busy.get(resource.id, []), query, resource),
            closed=sorted(
                [
                    *closed.get(resource.id, []),
                    *_outside(spans[resource.zone], whole),
                    *resource.closed_in(whole),
                ]
            ),
        )
        for resource in query.resources
    ]
    demand = Demand(
        start=whole.start,
        end=whole.end,
        length=terms.length,
        buffer=terms.buffer,
        increment=terms.increment,
        not_before=None if terms.include_past else int(query.now.timestamp()),
    )
    return Prepared(agendas, demand)


def _with_elsewhere(busy: Pairs, query: Query, resource: Bookable) -> Pairs:
    spans = query.elsewhere.get(resource.id)
    return sorted([*busy, *spans]) if spans else busy


def _closed_days(
    query: Query,
    span: Span,
    resources: Sequence[Bookable],
    without: Collection[uuid.UUID] = (),
) -> dict[uuid.UUID, list[tuple[int, int]]]:
    if query.terms.max_per_day is None or query.project_id is None:
        return {}
    zones = {resource.id: resource.zone for resource in resources}
    counts = read_day_counts(
        zones, span, project_id=query.project_id, now=query.now, without=without
    )
    return {
        resource_id: closed_days(days, zones[resource_id], query.terms.max_per_day)
        for resource_id, days in counts.items()
    }


def _whole(spans: Collection[Span]) -> Span:
    return Span(min(span.start for span in spans), max(span.end for span in spans))


def _outside(span: Span, whole: Span) -> list[tuple[int, int]]:
    """What a resource's own range leaves of the range of all: zones differ by a few hours."""
    edges = ((whole.start, span.start), (span.end, whole.end))
    return [(start, end) for start, end in edges if start < end]


def search_slots(query: Query, *, mode: str | None = None) -> list[Slot]:
    """The slots (start, end, free resources), by start. Raises Invalid on `to` for too many."""
    if not query.resources:
        return []
    prepared = prepare(query)
    mode = mode or query.terms.mode
    agendas = prepared.agendas
    if mode == "roundrobin_random":
        agendas = random.sample(agendas, len(agendas))
    try:
        return find_slots(mode, agendas, prepared.demand)
    except TooManySlots as error:
        raise Invalid.at("to", "More than 100,000 slots: ask for a shorter range.") from error


def search_first_slots(query: Query, *, mode: str, count: int) -> list[Slot]:
    """The first slots, at most `count`: looked for in a growing part of the range, because the
    whole of it may hold more than any answer should."""
    if not query.resources:
        return []
    agendas, demand = prepare(query)
    whole, known, part = demand.end - demand.start, 0, 2 * count * (query.terms.length or 1)
    while True:
        part = min(part, whole)
        try:
            slots = find_slots(mode, agendas, demand._replace(end=demand.start + part))
        except TooManySlots:
            part = (known + part) // 2
            continue
        if len(slots) >= count or part == whole:
            return slots[:count]
        known, part = part, 4 * part


def search_unavailable(query: Query) -> list[tuple[int, int, Bookable]]:
    """The complement of free time, per resource, by start."""
    if not query.resources:
        return []
    prepared = prepare(query)
    found = []
    for agenda in prepared.agendas:
        span = query.span(agenda.zone)
        taken = complement(free_intervals(agenda, prepared.demand), *span)
        found += [(start, end, agenda.key) for start, end in taken]
    return sorted(found, key=lambda row: row[:2])


class Explanation(NamedTuple):
    """Why a resource's time is open or not: consecutive segments over the whole range."""

    resource: Bookable
    segments: list[Segment]
    never_open: bool


def explain_query(query: Query) -> list[Explanation]:
    """The whole range of the request as segments, per resource. Raises as `search_slots` does."""
    if not query.resources:
        return []
    spans = {zone: query.span(zone) for zone in {resource.zone for resource in query.resources}}
    obstacles = read_obstacles(query, query.resources, _whole(spans.values()))
    try:
        return [
            Explanation(
                resource,
                explain_time(query, resource, spans[resource.zone], obstacles),
                never_open(resource.zone, query.rule_lists(resource), *spans[resource.zone]),
            )
            for resource in query.resources
        ]
    except TooManySlots as error:
        raise Invalid.at("to", "Too much to explain: ask for a shorter range.") from error


class Obstacles(NamedTuple):
    """What stands in the way of each resource: events and holds, days closed by a limit."""

    busy: dict[uuid.UUID, list[Busy]]
    closed: dict[uuid.UUID, list[tuple[int, int]]]


def read_obstacles(
    query: Query,
    resources: Sequence[Bookable],
    span: Span,
    *,
    without: Collection[uuid.UUID] = (),
    against_events: bool = True,
) -> Obstacles:
    """Two queries at most. `without`: the events and holds of the booking itself. Not
    `against_events`: a booking that may overlap asks only the rules."""
    busy: dict[uuid.UUID, list[Busy]] = {}
    if against_events:
        busy = read_busy_events(
            [resource.id for resource in resources],
            Span(span.start - query.terms.buffer, span.end + query.terms.buffer),
            now=query.now,
            ignore_all_day=query.terms.ignore_all_day_events,
            without=without,
        )
        add_elsewhere(busy, query)
    return Obstacles(busy, _closed_days(query, span, resources, without))


def add_elsewhere(busy: dict[uuid.UUID, list[Busy]], query: Query) -> None:
    """What is elsewhere stands in the way as an event does; it has no id here."""
    for resource in query.resources:
        for start, end in query.elsewhere.get(resource.id, ()):
            busy.setdefault(resource.id, []).append(Busy(start, end, "event", None))


def explain_time(
    query: Query, resource: Bookable, span: Span, obstacles: Obstacles
) -> list[Segment]:
    """One resource's time with reasons; notice and horizon unrounded, as the check takes them."""
    notice = horizon = None
    if query.own:
        notice, horizon = query.own_span(resource.zone)
    return explain(
        zone=resource.zone,
        rules=query.rule_lists(resource),
        busy=obstacles.busy.get(resource.id, []),
        closed=obstacles.closed.get(resource.id, []),
        start=span.start,
        end=span.end,
        buffer=query.terms.buffer,
        past_before=None if query.terms.include_past else int(query.now.timestamp()),
        notice_before=None if query.own is None or query.own.earliest == "now" else notice,
        horizon_after=horizon,
        throughout=[_calendar_reason(one, resource) for one in resource.out_of_step]
        if resource.is_closed
        else [],
    )


def _calendar_reason(calendar: OutOfStep, resource: Bookable) -> Reason:
    return Reason(
        "calendar",
        None,
        (),
        None,
        out_of_step_text(calendar, resource.zone),
        calendar_id=calendar.id,
        public_text=out_of_step_text(calendar, resource.zone, is_public=True),
    )


def out_of_step_text(calendar: OutOfStep, zone: str, *, is_public: bool = False) -> str:
    """One sentence, its time on the wall clock of `zone`; for the public without the name."""
    subject = "An external calendar" if is_public else f'The external calendar "{calendar.name}"'
    if calendar.synced_at is None:
        return f"{subject} has never been in step."
    return f"{subject} has not been in step since {format_instant(calendar.synced_at, zone)}."


def find_reasons(
    query: Query, resource: Bookable, span: Span, obstacles: Obstacles
) -> list[Reason]:
    """Why `span` can't be booked on `resource`; [] where it is wholly free.

    The check of a booking, by the same core as the answer of a query.
    """
    length = query.terms.length
    if length is not None and span.end - span.start != length:
        return [_wrong_length(length)]
    try:
        segments = explain_time(query, resource, span, obstacles)
    except TooManySlots:
        return [Reason("constraint", None, (), None, "Breaks more rules than can be named.")]
    return list(dict.fromkeys(reason for segment in segments for reason in segment.reasons))


def _wrong_length(length: int) -> Reason:
    minutes, seconds = divmod(length, 60)
    text = f"Must last exactly {minutes} minutes" + (f" {seconds} seconds." if seconds else ".")
    return Reason("limit", "project", (), None, text)
