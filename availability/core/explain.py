"""Explain availability: segments of a range, each free or with all reasons why it is not."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from availability.core.busy_items import (
    NO_BUFFERS,
    Buffers,
    BusyItem,
    capacity_of,
    full_times,
    full_times_with_buffers,
    have_equal_buffers,
)
from availability.core.constraints import (
    EVERY_DAY,
    OPENING_KINDS,
    SCHEDULE,
    WEEKDAYS,
    WEEKENDS,
    WEEKLY_KINDS,
    ConstraintRule,
    ConstraintRules,
    PeriodBound,
    Schedule,
    allow_rules_by_kind,
    allowed_days,
    blocked_week,
    details_of,
    is_closed_but_for_openings,
    open_windows,
    period_readings,
    render_day,
    render_period_bound,
    repeat_week,
    rules_of,
    split_schedule,
    windows_of_week,
    windows_starting_on,
)
from availability.core.date_rules import (
    DayHours,
    HolidayCalendar,
    Recurrence,
    holidays_between,
    recurring_readings,
    replaced_day_readings,
    replacement_hours_readings,
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
from common.messages import Message, join_messages
from common.time.durations import duration_in_words

SOURCES = ("resource", "project", "request")
_WEEK = 7 * DAY
# In one explanation, each counted in every segment that it closes.
MAX_REASONS = 20_000


class Reason(NamedTuple):
    """Why a segment is not free. type: constraint, event, hold, capacity, buffer, notice,
    past, limit or calendar.

    Constraints have a source (schedule, resource, project, request) and rules. A reason of type
    event, hold or buffer has an event_id or a reservation_id, one of type calendar a calendar_id.
    text: one sentence that never tells what an event is about. public_text: replaces it for the
    public, unless empty.
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
    closed: Mapping[str, Sequence[Span]] = MappingProxyType({}),
    start: int,
    end: int,
    buffers: Buffers = NO_BUFFERS,
    quantity: int = 1,
    past_before: int | None = None,
    notice_before: int | None = None,
    horizon_after: int | None = None,
    throughout: Sequence[Reason] = (),
    others: Sequence[Cause] = (),
    limit: int = MAX_REASONS,
) -> list[Segment]:
    """Return segments that cover [start, end) (epoch seconds); neighbours differ in their reasons.

    rules: the lists of resource, project and request. buffers: of the project that asks. quantity:
    the units that a booking needs. closed: by unit (day, week, month), the periods that a limit
    closes. past_before, notice_before,
    horizon_after: instants before or after which nothing is free. throughout: reasons for the whole
    range. others: further reasons, with sorted spans that do not touch. limit: of reasons. Without
    `others`, the available segments equal the result of free_intervals for the same input. Raises
    TooManySegments.

    free_intervals loses the reasons. Here each rule and busy item stays a separate cause with its
    spans, and one sweep over all their ends finds which apply together. That is slower: call
    free_intervals first if a yes or no is enough.
    """
    causes = [
        *_constraint_causes(rules, zone, start, end),
        *_busy_causes(busy, buffers, quantity),
        (
            Reason("notice", None, (), None, Message("Starts within the minimum notice.")),
            _before(notice_before, start),
        ),
        (Reason("past", None, (), None, Message("Is in the past.")), _before(past_before, start)),
        *(
            (Reason("limit", None, (), None, _LIMIT_TEXTS[unit]), normalise(spans))
            for unit, spans in closed.items()
        ),
        (
            Reason("limit", None, (), None, Message("Beyond the booking window.")),
            _span_from(horizon_after, end),
        ),
        *((reason, [(start, end)]) for reason in throughout),
        *others,
    ]
    return _cut_into_segments(causes, start, end, limit)


def _before(instant: int | None, start: int) -> Intervals:
    return [] if instant is None else join([(start, instant)])


def _span_from(instant: int | None, end: int) -> Intervals:
    return [] if instant is None else join([(instant, end)])


def never_open(zone: str, rules: tuple[ConstraintRules, ...], start: int, end: int) -> bool:
    """Return whether no time in [start, end) (epoch seconds) satisfies all rules."""
    return not open_windows(rules, zone, start, end)


def _cut_into_segments(causes: Sequence[Cause], start: int, end: int, limit: int) -> list[Segment]:
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


def _busy_causes(busy: Sequence[BusyItem], buffers: Buffers, quantity: int) -> Iterator[Cause]:
    yield from _capacity_causes(busy, buffers, quantity)
    for item in busy:
        if item.capacity > 1:
            continue
        yield _busy_reason(item, item.type, _BUSY_TEXTS[item.type]), [(item.start, item.end)]
        since, until = item.blocked_span(buffers)
        before, after = (since, item.start), (item.end, until)
        sides = (
            [("around", [before, after])]
            if item.start - since == until - item.end
            else [("before", [before]), ("after", [after])]
        )
        for side, spans in sides:
            if length := spans[0][1] - spans[0][0]:
                text = Message(_BUFFER_TEXTS[item.type, side].text, length=_duration_text(length))
                yield _busy_reason(item, "buffer", text), spans


def _capacity_causes(busy: Sequence[BusyItem], buffers: Buffers, quantity: int) -> Iterator[Cause]:
    capacity = capacity_of(busy)
    if capacity == 1:
        return
    all_taken = full_times(busy)
    text = Message("All %(count)s places are taken.", count=capacity)
    yield Reason("capacity", None, (), None, text), all_taken
    full = full_times(busy, quantity)
    if quantity > 1:
        text = Message("Fewer than %(count)s places are free.", count=quantity)
        yield Reason("capacity", None, (), None, text), subtract(full, all_taken)
    beside = subtract(full_times_with_buffers(busy, buffers, quantity), full)
    if beside and quantity > 1:
        text = Message(
            "Within the buffers of bookings that leave fewer than %(count)s places.",
            count=quantity,
        )
        yield Reason("buffer", None, (), None, text), beside
    elif beside:
        units = [item for item in busy if item.capacity > 1]
        is_equal = have_equal_buffers(units, buffers)
        text = (
            Message(
                "Within the buffer of %(length)s around bookings that take all %(count)s places.",
                length=_duration_text(buffers.longest),
                count=capacity,
            )
            if is_equal
            else Message(
                "Within the buffers of bookings that take all %(count)s places.", count=capacity
            )
        )
        yield Reason("buffer", None, (), None, text), beside


def _busy_reason(item: BusyItem, type_: str, text: str) -> Reason:
    if item.type == "hold":
        return Reason(type_, None, (), None, text, item.id)
    return Reason(type_, None, (), item.id, text)


_LIMIT_TEXTS = {
    "day": Message("Daily limit reached."),
    "week": Message("Weekly limit reached."),
    "month": Message("Monthly limit reached."),
}
_BUSY_TEXTS = {"event": Message("Overlaps an event."), "hold": Message("Held for another booking.")}
_BUFFER_TEXTS = {
    ("event", "around"): Message("Within the buffer of %(length)s around an event."),
    ("event", "before"): Message("Within the buffer of %(length)s before an event."),
    ("event", "after"): Message("Within the buffer of %(length)s after an event."),
    ("hold", "around"): Message("Within the buffer of %(length)s around a hold."),
    ("hold", "before"): Message("Within the buffer of %(length)s before a hold."),
    ("hold", "after"): Message("Within the buffer of %(length)s after a hold."),
}
_BLOCK_TEXTS = {
    "resource": Message("Blocked by the resource's rule: %(rule)s."),
    "schedule": Message("Blocked by the schedule's rule: %(rule)s."),
    "project": Message("Blocked by the project's rule: %(rule)s."),
    "request": Message("Blocked by the request's rule: %(rule)s."),
}


def _constraint_causes(
    lists: tuple[ConstraintRules, ...], zone: str, start: int, end: int
) -> Iterator[Cause]:
    segments = offset_segments(zone, start, end)
    for source, rules in zip(SOURCES, lists, strict=False):
        schedule, own = split_schedule(rules)
        times = _RuleListTimes(own, zone, segments)
        if schedule is not None:
            under = _RuleListTimes(schedule, zone, segments)
            for reason, spans in _list_causes(SCHEDULE, schedule, under, start, end):
                yield reason, subtract(spans, times.beside_week)
        has_base = schedule is not None
        yield from _list_causes(source, own, times, start, end, has_base=has_base)


def _list_causes(
    source: str,
    rules: ConstraintRules,
    times: "_RuleListTimes",
    start: int,
    end: int,
    *,
    has_base: bool = False,
) -> Iterator[Cause]:
    """Yield the causes of one list.

    has_base: the list is combined with a schedule, so its rules that open time close no other time.
    """
    yield from _weekly_causes(source, rules, times)
    if not has_base and is_closed_but_for_openings(rules):
        opening = tuple(rule for rule in rules if rule.kind in OPENING_KINDS)
        spans = complement(times.beside_week, start, end)
        yield _rules_reason(source, opening, f"Outside the {source}'s extra hours"), spans
    yield from _date_causes(source, rules, times, start, end)


class _RuleListTimes:
    """When the rules of one list apply, in instants.

    opened: by open_period. replaced: dates with their own hours. beside_week: where the weekly
    rules do not count, because a rule that comes after them opens the time or replaces the date.
    """

    def __init__(self, rules: ConstraintRules, zone: str, segments: "Segments") -> None:
        self.zone, self.segments = zone, segments
        self.days: tuple[DayHours, ...] = details_of(rules, "replace_day")
        self.opened = self.of_periods(rules_of(rules, "open_period", allow=True))
        self.replaced = self.of_spans(replaced_day_readings(self.days))
        recurring = self.of_recurrences(details_of(rules, "open_recurring"))
        self.beside_dates = unite(self.opened, self.replaced)
        self.beside_week = unite(self.beside_dates, recurring)

    def instants_of_readings(self, readings_of: Callable[[int, int], Intervals]) -> Intervals:
        """Convert the readings in each stretch of constant offset, given (lo, hi), to instants."""
        return join(
            (lo - offset, hi - offset)
            for since, until, offset in self.segments
            for lo, hi in clip(
                readings_of(since + offset, until + offset), since + offset, until + offset
            )
        )

    def of_spans(self, readings: Intervals) -> Intervals:
        return self.instants_of_readings(lambda lo, hi: readings)

    def of_week(self, week: Intervals) -> Intervals:
        return self.instants_of_readings(lambda lo, hi: repeat_week(week, lo, hi))

    def of_periods(self, rules: ConstraintRules) -> Intervals:
        return join(
            (lo - offset, hi - offset)
            for since, until, offset in self.segments
            for lo, hi in clip(period_readings(rules, offset), since + offset, until + offset)
        )

    def of_recurrences(self, recurrences: tuple[Recurrence, ...]) -> Intervals:
        if not recurrences:
            return []
        return self.instants_of_readings(
            lambda lo, hi: recurring_readings(recurrences, self.zone, lo, hi)
        )

    def holidays(self, calendar: HolidayCalendar) -> dict[str, Intervals]:
        """Return the whole local days of each holiday, by its name."""
        if not self.segments:
            return {}
        first, last = self.segments[0], self.segments[-1]
        span = first[0] + first[2] - DAY, last[1] + last[2] + DAY
        days: dict[str, list[Span]] = {}
        for holiday in holidays_between(calendar, *span):
            days.setdefault(holiday.name, []).append((holiday.day, holiday.day + DAY))
        return {name: self.of_spans(normalise(spans)) for name, spans in days.items()}


def _weekly_causes(source: str, rules: ConstraintRules, times: _RuleListTimes) -> Iterator[Cause]:
    by_kind = allow_rules_by_kind(rules)
    for kind, unread in _closed_weeks(by_kind).items():
        text = f"Outside the {source}'s {_KIND_TEXTS[kind]}"
        spans = subtract(times.of_week(unread), times.beside_week)
        yield _rules_reason(source, by_kind[kind], text), spans
    for rule in rules:
        if not rule.allow and rule.kind in WEEKLY_KINDS:
            spans = subtract(times.of_week(blocked_week(rule)), times.beside_week)
            yield _block_rule_reason(source, rule), spans


def _date_causes(
    source: str, rules: ConstraintRules, times: _RuleListTimes, start: int, end: int
) -> Iterator[Cause]:
    for rule in rules:
        if isinstance(rule.details, HolidayCalendar):
            for name, spans in times.holidays(rule.details).items():
                reason = _block_rule_reason(source, rule, f"public holiday: {name}")
                yield reason, subtract(spans, times.beside_dates)
        elif isinstance(rule.details, DayHours):
            spans = times.of_spans(_hours_closed_on_day(rule.details))
            text = f"Outside the {source}'s hours of the day"
            yield _rules_reason(source, (rule,), text), subtract(spans, times.opened)
    periods = rules_of(rules, "period", allow=True)
    if periods:
        spans = complement(times.of_periods(periods), start, end)
        text = f"Outside the {source}'s {_KIND_TEXTS['period']}"
        yield _rules_reason(source, periods, text), subtract(spans, times.opened)
    for rule in rules:
        if not rule.allow and rule.kind == "period":
            yield _block_rule_reason(source, rule), times.of_periods((rule,))
        elif rule.kind == "recurring":
            yield (
                _block_rule_reason(source, rule),
                times.of_recurrences(details_of((rule,), rule.kind)),
            )


def _hours_closed_on_day(day: DayHours) -> Intervals:
    return subtract(replaced_day_readings((day,)), replacement_hours_readings((day,)))


def _rules_reason(source: str, rules: ConstraintRules, text: str) -> Reason:
    """Return the reason that none of the rules opens the time."""
    return _reason_with_public_text(
        "constraint", source, rules, lambda shown: f"{text}: {_list_text(shown)}."
    )


def _block_rule_reason(source: str, rule: ConstraintRule, what: str = "") -> Reason:
    def text(shown: ConstraintRules) -> str:
        words = _rule_text(shown[0])
        return Message(
            _BLOCK_TEXTS[source].text, rule=join_messages(", ", [words, what]) if what else words
        )

    return _reason_with_public_text("constraint", source, (rule,), text)


def _reason_with_public_text(
    type_: str, source: str, rules: ConstraintRules, text: Callable[[ConstraintRules], str]
) -> Reason:
    """Return a reason whose public text omits the names of rules: the owner wrote them."""
    plain = tuple(rule._replace(label="") for rule in rules)
    public_text = text(plain) if plain != rules else ""
    return Reason(type_, source, rules, None, text(rules), public_text=public_text)


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
    """Return a text such as "12:00 to 13:00 every day" or "Monday to Friday".

    The name of the rule comes first: "Renovation (2026-08-01 00:00:00 to 2026-08-08 00:00:00)".
    """
    words = _when_text(rule, allowing=allowing)
    return Message(_NAMED_RULE, name=rule.label, rule=words) if rule.label else words


_NAMED_RULE = "%(name)s (%(rule)s)"


def _when_text(rule: ConstraintRule, *, allowing: bool) -> str:
    if rule.details is not None and not isinstance(rule.details, Schedule):
        return _details_text(rule.details)
    if rule.kind in ("period", "open_period"):
        return _span_text(rule.start, rule.end)
    if rule.kind == "day":
        return _days_text(rule.days)
    times = _span_text(rule.start, rule.end)
    if rule.kind == "hours":
        return times if allowing else Message("%(start)s to %(end)s every day", **times.values)
    return join_messages(" ", [_days_text(rule.days), times])


def _span_text(start: int | PeriodBound | None, end: int | PeriodBound | None) -> Message:
    return Message("%(start)s to %(end)s", start=_time_text(start), end=_time_text(end))


def _details_text(details: Recurrence | DayHours | HolidayCalendar) -> str:
    if isinstance(details, Recurrence):
        first = render_period_bound(PeriodBound(details.start))
        return f"{duration_in_words(details.duration)} from {first}, repeated: {details.rrule}"
    if isinstance(details, DayHours):
        windows = [f"{_time_text(start)} to {_time_text(end)}" for start, end in details.windows]
        return f"{render_day(details.day)} {', '.join(windows) or 'closed'}"
    words = [details.country, details.subdivision, *details.categories]
    return Message("holidays of %(place)s", place=" ".join(filter(None, words)))


def _days_text(days: tuple[int, ...]) -> str:
    return _DAYS_TEXTS.get(days) or join_messages(", ", [_DAY_TEXTS[day] for day in days])


_DAY_TEXTS = (
    *(Message("Mondays"), Message("Tuesdays"), Message("Wednesdays"), Message("Thursdays")),
    *(Message("Fridays"), Message("Saturdays"), Message("Sundays")),
)
_DAYS_TEXTS = {WEEKDAYS: Message("Monday to Friday"), WEEKENDS: Message("Saturday and Sunday")}


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
