"""Explain free time, and judge the time of a booking by the same rules."""

import uuid
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from availability.core.busy_items import BusyItem, blocked_times
from availability.core.constraints import ConstraintRules, Windows
from availability.core.explain import MAX_REASONS, Cause, Reason, Segment, explain, never_open
from availability.core.fairness import Turn
from availability.core.intervals import Intervals, Span, clip, complement, find_overlaps
from availability.core.matching import WHOLE, Stretch
from availability.core.pacing import Pace
from availability.core.slots import (
    ResourceTimeline,
    SlotRequest,
    TooManySlots,
    free_intervals,
    permitted_ends,
    permitted_instants,
    starts_on_grid,
)
from availability.core.visits import possible_starts
from availability.search.availability_query import AvailabilityQuery, SearchResource, is_leading
from availability.search.parameters import SlotParameters
from availability.search.preparation import (
    closed_by_booking_limits,
    closed_starts_of,
    fetch_busy_items,
    ids_by_stretch,
    ids_of,
    prepare_search,
)
from availability.search.queries import ClosedByUnit, StaleCalendar, TimeSpan, has_more_busy_events
from common.errors import Invalid
from common.messages import Message
from common.time.instants import format_instant


class Explanation(NamedTuple):
    """One resource's segments, consecutive over the whole range."""

    resource: SearchResource
    segments: list[Segment]
    never_open: bool
    turn: Turn | None = None  # of the mode roundrobin_fair


TOO_MUCH_TO_EXPLAIN = "Too much to explain: request a shorter range."


def explain_query(query: AvailabilityQuery) -> list[Explanation]:
    """Explain the whole range of the query, per resource.

    Raises Invalid as `search_slots` does, and for more than MAX_REASONS events or reasons of all
    resources together.
    """
    if not query.resources:
        return []
    whole = query.whole_span
    if has_more_busy_events(ids_of(query.resources), whole, than=MAX_REASONS):
        raise Invalid.at("to", TOO_MUCH_TO_EXPLAIN)
    obstacles = Obstacles(
        fetch_busy_items(query, whole),
        closed_by_booking_limits(query, query.resources, whole),
        closed_starts_of(query, whole),
    )
    left, found = MAX_REASONS, []
    for resource in query.resources:
        span = query.spans[resource.zone]
        try:
            segments = explain_time(
                query, resource, span, obstacles, limit=left, edges=_closed_to_edges
            )
        except TooManySlots as error:
            raise Invalid.at("to", TOO_MUCH_TO_EXPLAIN) from error
        left -= sum(len(segment.reasons) for segment in segments)
        is_never_open = never_open(resource.zone, query.rule_lists(resource), *span)
        found.append(Explanation(resource, segments, is_never_open, query.turns.get(resource.id)))
    return found


def possible_starts_of_steps(query: AvailabilityQuery) -> list[tuple[str, Intervals]]:
    """Return, for each step of the query's visit, when it could start, seen alone."""
    if query.visit is None or not query.resources:
        return []
    timelines, slot_request, _ = prepare_search(query)
    by_id = {timeline.key.id: timeline for timeline in timelines}
    return [(step.name, possible_starts(by_id, slot_request, step)) for step in query.visit.steps]


class RequirementTimes(NamedTuple):
    """When enough resources of a requirement are free, whatever the others take.

    alternative: the number of the alternative that has it, from 1 on.
    """

    alternative: int
    name: str
    free: Sequence[tuple[int, int]]


def free_times_of_requirements(
    query: AvailabilityQuery, explanations: Sequence[Explanation]
) -> list[RequirementTimes]:
    """Return, for each requirement, when enough of its resources are free, each seen alone.

    A part of a booking keeps the rules of its resource alone: its times are not those of the
    explanations. At most three queries more.
    """
    free: dict[tuple[Stretch, uuid.UUID], Sequence[tuple[int, int]]] = {
        (WHOLE, each.resource.id): [
            (part.start, part.end) for part in each.segments if part.available
        ]
        for each in explanations
    }
    if ids_by_stretch(query).keys() - {WHOLE}:
        free |= _free_times_of_parts(query)
    return [
        RequirementTimes(
            number,
            requirement.name,
            find_overlaps(
                chain.from_iterable(
                    free.get((requirement.stretch, each), ()) for each in requirement.ids
                ),
                requirement.number,
            ),
        )
        for number, requirements in enumerate(query.alternatives, start=1)
        for requirement in requirements
    ]


def _free_times_of_parts(query: AvailabilityQuery) -> dict[tuple[Stretch, uuid.UUID], Intervals]:
    prepared = prepare_search(query)
    slot_request = prepared.slot_request._replace(length=None)
    return {
        (stretch, timeline.key.id): free_intervals(timeline, slot_request)
        for stretch, timelines in prepared.stretches.items()
        if stretch != WHOLE
        for timeline in timelines
    }


class Obstacles(NamedTuple):
    """By resource id: busy events and holds, and the periods closed by a limit; for all resources,
    where the project's pace lets no booking start.
    """

    busy: dict[uuid.UUID, list[BusyItem]]
    closed: dict[uuid.UUID, ClosedByUnit]
    closed_starts: Sequence[Span] = ()


def explain_time(
    query: AvailabilityQuery,
    resource: SearchResource,
    span: TimeSpan,
    obstacles: Obstacles,
    *,
    limit: int = MAX_REASONS,
    edges: Callable[..., Sequence[Cause]] | None = None,
) -> list[Segment]:
    """Explain one resource's time; notice and booking window are not rounded, as in the check.

    edges: returns why no booking can start or end where it is free. Raises TooManySlots above
    `limit` reasons.
    """
    notice, horizon = query.bookable_spans.get(resource.zone, (None, None))
    return explain(
        zone=resource.zone,
        rules=query.rule_lists(resource),
        busy=obstacles.busy.get(resource.id, []),
        closed=obstacles.closed.get(resource.id, {}),
        start=span.start,
        end=span.end,
        buffers=query.terms.buffers,
        quantity=query.quantity,
        past_before=None if query.terms.include_past else int(query.now.timestamp()),
        notice_before=notice,
        horizon_after=horizon,
        throughout=_reasons_of_whole_range(query, resource),
        others=edges(query, resource, span, obstacles) if edges else (),
        limit=limit,
    )


def _closed_to_edges(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> list[Cause]:
    causes: list[Cause] = []
    if query.terms.pace:
        causes.append((_too_many_starts(query.terms.pace), obstacles.closed_starts))
    start, end = query.terms.windows or Windows()
    for side, rules in (("start", start), ("end", end)):
        if rules is not None:
            opened = permitted_instants(rules, resource.zone, *span)
            causes.append((_outside_window(side, rules), complement(opened, *span)))
    return causes


def _too_many_starts(pace: Pace) -> Reason:
    text = Message(
        "At most %(count)s bookings start within %(length)s.",
        count=pace.quantity,
        length=_length_text(pace.seconds),
    )
    return Reason("limit", "project", (), None, text)


_WINDOW_TEXTS = {
    "start": Message("Bookings can't start at this time."),
    "end": Message("Bookings can't end at this time."),
}


def _outside_window(side: str, rules: ConstraintRules) -> Reason:
    return Reason("constraint", "project", rules, None, _WINDOW_TEXTS[side])


def _find_window_faults(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> list[Reason]:
    """Return why no booking may start or end then, by the project's windows and pace."""
    reasons = []
    start, end = query.terms.windows or Windows()
    zone = resource.zone
    if start is not None and not permitted_instants(start, zone, span.start, span.start + 1):
        reasons.append(_outside_window("start", start))
    if end is not None and not permitted_ends(end, zone, span.end, span.end + 1):
        reasons.append(_outside_window("end", end))
    if query.terms.pace and clip(obstacles.closed_starts, span.start, span.start + 1):
        reasons.append(_too_many_starts(query.terms.pace))
    return reasons


def _reasons_of_whole_range(query: AvailabilityQuery, resource: SearchResource) -> list[Reason]:
    stale = resource.stale_calendars if resource.is_closed else ()
    unfitness = query.unfitness_of(resource)
    reasons = [_calendar_reason(calendar, resource) for calendar in stale]
    return [*reasons, unfitness] if unfitness else reasons


def _calendar_reason(calendar: StaleCalendar, resource: SearchResource) -> Reason:
    return Reason(
        "calendar",
        None,
        (),
        None,
        stale_calendar_text(calendar, resource.zone),
        calendar_id=calendar.id,
        public_text=stale_calendar_text(calendar, resource.zone, is_public=True),
    )


def stale_calendar_text(calendar: StaleCalendar, zone: str, *, is_public: bool = False) -> str:
    """Return one sentence, with the time in `zone`; the public text omits the calendar's name."""
    subject = "An external calendar" if is_public else f'The external calendar "{calendar.name}"'
    if calendar.synced_at is None:
        return f"{subject} has never synced."
    return f"{subject} has not synced since {format_instant(calendar.synced_at, zone)}."


def find_unavailability(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> list[Reason]:
    """Return the reasons why `span` can't be booked on `resource`; [] if it is entirely free.

    Uses the core of slot queries. Reasons cost more than a yes or no: computed only if not free.
    """
    if not query.terms.permits_length(span.end - span.start):
        return [_wrong_length(query.terms)]
    if query.on_grid and not _is_on_grid(query, resource, span.start):
        return [_OFF_GRID]
    if is_free(query, resource, span, obstacles):
        return []
    try:
        segments = explain_time(query, resource, span, obstacles)
    except TooManySlots:
        return [Reason("constraint", None, (), None, Message("Breaks too many rules to list."))]
    reasons = _find_window_faults(query, resource, span, obstacles)
    reasons += [reason for segment in segments for reason in segment.reasons]
    return list(dict.fromkeys(reasons))


def is_available(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> bool:
    """Return whether `find_unavailability` has no reason, without looking for the reasons."""
    is_on_grid = not query.on_grid or _is_on_grid(query, resource, span.start)
    return is_on_grid and is_free(query, resource, span, obstacles)


def is_free(
    query: AvailabilityQuery, resource: SearchResource, span: TimeSpan, obstacles: Obstacles
) -> bool:
    terms, own = query.terms, query.bookable_spans.get(resource.zone)
    if resource.is_closed or not terms.permits_length(span.end - span.start):
        return False
    if query.unfitness_of(resource) or _find_window_faults(query, resource, span, obstacles):
        return False
    if not terms.include_past and span.start < int(query.now.timestamp()):
        return False
    if own and (span.start < own.start or span.end > own.end):
        return False
    busy = obstacles.busy.get(resource.id, [])
    timeline = ResourceTimeline(
        key=resource.id,
        zone=resource.zone,
        rules=query.rule_lists(resource),
        busy=(),
        closed=sorted(
            chain(
                *obstacles.closed.get(resource.id, {}).values(),
                blocked_times(busy, terms.buffers, query.quantity),
            )
        ),
    )
    request = SlotRequest(*span, length=None)
    return free_intervals(timeline, request) == [span]


_OFF_GRID = Reason("limit", "project", (), None, Message("Must start at one of the offered times."))


def _is_on_grid(query: AvailabilityQuery, resource: SearchResource, start: int) -> bool:
    """Whether the project offers slots that start then; any start without a grid of starts."""
    increment, length = query.terms.increment, query.terms.length
    if increment is None or length is None:
        return True
    if query.alternatives and not is_leading(query.alternatives, resource.id):
        return True
    if query.terms.mode == "mutual" and not query.alternatives:
        return query.is_common_start(start)
    return starts_on_grid([query.start_rules(resource)], start, increment)


def _wrong_length(terms: SlotParameters) -> Reason:
    *others, last = [_length_text(length) for length in terms.lengths or [terms.length or 0]]
    exact = f"{', '.join(others)} or {last}" if others else f"exactly {last}"
    return Reason("limit", "project", (), None, Message("Must last %(length)s.", length=exact))


def _length_text(length: int) -> str:
    minutes, seconds = divmod(length, 60)
    return f"{minutes} minutes" + (f" {seconds} seconds" if seconds else "")
