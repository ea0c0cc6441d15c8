"""Explain availability: segments of a range, each free or with all reasons why it is not."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from availability.core.constraints import (
    DAY_NAMES,
    EVERY_DAY,
    WEEKDAYS,
    WEEKENDS,
    ConstraintRule,
    ConstraintRules,
    PeriodBound,
    allow_rules_by_kind,
    allowed_days,
    blocked_week,
    open_windows,
    period_readings,
    render_period_bound,
    repeat_week,
    windows_of_week,
    windows_starting_on,
)
from availability.core.intervals import (
    Intervals,
    Span,
    clip,
    complement,
    join,
    normalise,
    subtract,
    unite,
)
from availability.core.slots import TooManySlots
from availability.core.zones import DAY, offset_segments

SOURCES = ("resource", "project", "request")
_WEEK = 7 * DAY


class BusyItem(NamedTuple):
    """Busy time in epoch seconds; type: "event" or "hold"."""

    start: int
    end: int
    type: str
    id: uuid.UUID | None


class Reason(NamedTuple):
    """Why a segment is not free. type: constraint, event, hold, buffer, notice, past, limit or
    calendar.

    Constraints have a source (resource, project, request) and rules. A reason of type event, hold
    or buffer has an event_id or a reservation_id, one of type calendar a calendar_id. text: one
    sentence that never tells what an event is about. public_text: replaces it for the public,
    unless empty.
    """

    type: str
    source: str | None
    rules: ConstraintRules
    event_id: uuid.UUID | None
    text: str
    reservation_id: uuid.UUID | None = None
    calendar_id: uuid.UUID | None = None
    public_text: str = ""


class Segment(NamedTuple):
    """[start, end) in epoch seconds; available if and only if there are no reasons."""

    start: int
    end: int
    available: bool
    reasons: tuple[Reason, ...]


class TooManySegments(TooManySlots):
    """The explanation would have more reasons, each counted once per segment, than the limit."""


Cause = tuple[Reason, Sequence[Span]]  # a reason and the spans in which it applies


def explain(
    *,
    zone: str,
    rules: tuple[ConstraintRules, ...],
    busy: Sequence[BusyItem],
    closed: Sequence[Span] = (),
    start: int,
    end: int,
    buffer: int = 0,
    past_before: int | None = None,
    notice_before: int | None = None,
    horizon_after: int | None = None,
    throughout: Sequence[Reason] = (),
    limit: int = 100_000,
) -> list[Segment]:
    """Return segments that cover [start, end) (epoch seconds); neighbours differ in their reasons.

    rules: the lists of resource, project and request. buffer: seconds around each busy item.
    closed: spans closed by a limit. past_before, notice_before, horizon_after: instants before or
    after which nothing is free. throughout: reasons for the whole range. The available segments
    equal the result of free_intervals for the same input. Raises TooManySegments.

    free_intervals loses the reasons. Here each rule and busy item stays a separate cause with its
    spans, and one sweep over all their ends finds which apply together. That is slower: call
    free_intervals first if a yes or no is enough.
    """
    causes = [
        *_constraint_causes(rules, zone, start, end),
        *_busy_causes(busy, buffer),
        (
            Reason("notice", None, (), None, "Starts within the minimum notice."),
            _before(notice_before, start),
        ),
        (Reason("past", None, (), None, "Is in the past."), _before(past_before, start)),
        (Reason("limit", None, (), None, "Daily limit reached."), normalise(closed)),
        (
            Reason("limit", None, (), None, "Beyond the booking window."),
            _span_from(horizon_after, end),
        ),
        *((reason, [(start, end)]) for reason in throughout),
    ]
    return _sweep(causes, start, end, limit)


def _before(instant: int | None, start: int) -> Intervals:
    return [] if instant is None else join([(start, instant)])


def _span_from(instant: int | None, end: int) -> Intervals:
    return [] if instant is None else join([(instant, end)])


def never_open(zone: str, rules: tuple[ConstraintRules, ...], start: int, end: int) -> bool:
    """Return whether no time in [start, end) (epoch seconds) satisfies all rules."""
    return not open_windows(rules, zone, start, end)


def _sweep(causes: Sequence[Cause], start: int, end: int, limit: int) -> list[Segment]:
    """Cut the range wherever a reason starts or stops applying.

    Sorting the ends costs n log n, but a thousand overlapping events give n squared reasons in the
    result, since each segment lists all of its own. So the limit counts the reasons of all
    segments.
    """
    changes: dict[int, list[int]] = {start: []}
    for index, (_, spans) in enumerate(causes):
        for lo, hi in clip(spans, start, end):
            changes.setdefault(lo, []).append(index)
            changes.setdefault(hi, []).append(index)
    holding: set[int] = set()
    segments: list[Segment] = []
    instants = sorted(changes)
    for instant, until in zip(instants, [*instants[1:], end], strict=True):
        # The spans of one cause never touch, so at an instant a cause starts or ends, never both.
        holding.symmetric_difference_update(changes[instant])
        limit -= len(holding)
        if limit < 0:
            raise TooManySegments
        if instant < until:
            reasons = tuple(causes[index][0] for index in sorted(holding))
            _append(segments, Segment(instant, until, not reasons, reasons))
    return segments


def _append(segments: list[Segment], segment: Segment) -> None:
    if segments and segments[-1].reasons == segment.reasons:
        segment = segment._replace(start=segments.pop().start)
    segments.append(segment)


def _busy_causes(busy: Sequence[BusyItem], buffer: int) -> Iterator[Cause]:
    within = f"Within the buffer of {_duration_text(buffer)} around"
    for item in busy:
        yield _busy_reason(item, item.type, _BUSY_TEXTS[item.type]), [(item.start, item.end)]
        if buffer:
            beside = [(item.start - buffer, item.start), (item.end, item.end + buffer)]
            yield _busy_reason(item, "buffer", f"{within} {_BUSY_WORDS[item.type]}."), beside


def _busy_reason(item: BusyItem, type_: str, text: str) -> Reason:
    if item.type == "hold":
        return Reason(type_, None, (), None, text, item.id)
    return Reason(type_, None, (), item.id, text)


_BUSY_TEXTS = {"event": "Overlaps an event.", "hold": "Held for another booking."}
_BUSY_WORDS = {"event": "an event", "hold": "a hold"}


def _constraint_causes(
    lists: tuple[ConstraintRules, ...], zone: str, start: int, end: int
) -> Iterator[Cause]:
    segments = offset_segments(zone, start, end)
    for source, rules in zip(SOURCES, lists, strict=False):
        for kind, unread in _closed_weeks(allow_rules_by_kind(rules)).items():
            allowing = allow_rules_by_kind(rules)[kind]
            text = f"Outside the {source}'s {_KIND_TEXTS[kind]}: {_list_text(allowing)}."
            yield (
                Reason("constraint", source, allowing, None, text),
                _instants_of_week(unread, segments),
            )
        periods = allow_rules_by_kind(rules).get("period")
        if periods:
            text = f"Outside the {source}'s {_KIND_TEXTS['period']}: {_list_text(periods)}."
            spans = complement(_instants_of_periods(periods, segments), start, end)
            yield Reason("constraint", source, periods, None, text), spans
        for rule in rules:
            if not rule.allow:
                text = f"Blocked by the {source}'s rule: {_rule_text(rule)}."
                yield (
                    Reason("constraint", source, (rule,), None, text),
                    _blocked_instants(rule, segments),
                )


def _closed_weeks(by_kind: dict[str, ConstraintRules]) -> dict[str, Intervals]:
    """Return the readings of a week that each kind (day, hours, day_and_time) of one list closes.

    A window over midnight belongs to the day on which it starts. So day rules close the windows
    that start on a day that is not allowed and, outside all windows, the days that are not allowed.
    """
    days = allowed_days(by_kind.get("day", ()))
    closed: dict[str, Intervals] = {}
    day_closed: Intervals = []
    day_open = windows_of_week((day, 0, 1440) for day in days)
    for kind in ("hours", "day_and_time"):
        if kind in by_kind:
            windows = windows_starting_on(EVERY_DAY, by_kind[kind])
            kept = windows_starting_on(days, by_kind[kind])
            closed[kind] = complement(windows, 0, _WEEK)
            day_closed = unite(day_closed, subtract(windows, kept))
            day_open = unite(day_open, kept)
    if "day" in by_kind:
        closed = {"day": unite(day_closed, complement(day_open, 0, _WEEK)), **closed}
    return closed


Segments = Sequence[tuple[int, int, int]]


def _instants_of_week(week: Intervals, segments: Segments) -> Intervals:
    return join(
        (lo - offset, hi - offset)
        for since, until, offset in segments
        for lo, hi in repeat_week(week, since + offset, until + offset)
    )


def _instants_of_periods(rules: ConstraintRules, segments: Segments) -> Intervals:
    return join(
        (lo - offset, hi - offset)
        for since, until, offset in segments
        for lo, hi in clip(period_readings(rules, offset), since + offset, until + offset)
    )


def _blocked_instants(rule: ConstraintRule, segments: Segments) -> Intervals:
    if rule.kind == "period":
        return _instants_of_periods((rule,), segments)
    return _instants_of_week(blocked_week(rule), segments)


_KIND_TEXTS = {
    "day": "days",
    "hours": "opening hours",
    "day_and_time": "opening hours",
    "period": "period",
}


def _list_text(rules: Iterable[ConstraintRule]) -> str:
    """Describe all rules of one kind; long lists are cut."""
    texts = list(dict.fromkeys(_rule_text(rule, allowing=True) for rule in rules))
    if len(texts) > _LISTED:
        texts[_LISTED:] = [f"{len(texts) - _LISTED} more"]
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


_LISTED = 5


def _rule_text(rule: ConstraintRule, *, allowing: bool = False) -> str:
    """Return such as "12:00 to 13:00 every day", "Mondays 10:00 to 12:00" or "Monday to Friday"."""
    if rule.kind == "period":
        return f"{_time_text(rule.start)} to {_time_text(rule.end)}"
    times = "" if rule.kind == "day" else f"{_time_text(rule.start)} to {_time_text(rule.end)}"
    if rule.kind == "hours":
        return times if allowing else f"{times} every day"
    return f"{_days_text(rule.days)} {times}".strip()


def _days_text(days: tuple[int, ...]) -> str:
    return _DAYS_TEXTS.get(days) or ", ".join(f"{DAY_NAMES[day]}s" for day in days)


_DAYS_TEXTS = {WEEKDAYS: "Monday to Friday", WEEKENDS: "Saturday and Sunday"}


def _time_text(bound: int | PeriodBound | None) -> str:
    if isinstance(bound, PeriodBound):
        return render_period_bound(bound)
    return f"{bound // 60:02}:{bound % 60:02}"  # type: ignore[operator]  # asked only where there are times


def _duration_text(seconds: int) -> str:
    for unit, size in (("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}{'s' if count != 1 else ''}"
    raise AssertionError(seconds)
