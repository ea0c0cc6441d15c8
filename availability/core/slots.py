"""Find slots (api.md section 6): open windows minus busy time, cut to length."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import chain, filterfalse
from typing import Any, NamedTuple

from availability.core.constraints import (
    ConstraintRules,
    Windows,
    is_small_enough_to_cache,
    open_windows,
)
from availability.core.intervals import (
    Intervals,
    Span,
    clip,
    complement,
    intersect,
    normalise,
    subtract,
)
from availability.core.zones import DAY, offset_segments


class ResourceTimeline(NamedTuple):
    """One resource: its zone, its rules (lists of resource, project and request) and its busy time.

    busy: non-empty spans in epoch seconds, sorted by start; they may overlap and exceed the range.
    closed: the same for spans closed by a limit, which get no buffer. windows: where slots may
    start and end.
    """

    key: Any  # hashable; returned in slots
    zone: str
    rules: tuple[ConstraintRules, ...]
    busy: Sequence[Span]
    closed: Sequence[Span] = ()
    windows: Windows | None = None


class SlotRequest(NamedTuple):
    """What to find in [start, end] (epoch seconds). Durations are seconds.

    length: None for whole free intervals. increment: the distance of starts; None packs slots one
    after another. not_before: slots that start before this instant are left out. closed_starts:
    intervals in which no slot starts.
    """

    start: int
    end: int
    length: int | None
    buffer: int = 0
    increment: int | None = None
    not_before: int | None = None
    closed_starts: tuple[Span, ...] = ()


ZoneRules = tuple[tuple[ConstraintRules, ...], str]  # lists of rules, and their time zone
Slot = tuple[int, int, tuple[Any, ...]]  # start, end, the keys of timelines
# Starts of slots, in order, as ranges; if the slot request has no length, one list of intervals.
CandidateRuns = Sequence[Sequence[Any]]


# The keys in the slots of one result, counted in every slot.
MAX_SLOTS = 100_000
# The starts of all timelines before equal ones are merged, per slot of the limit. Three million
# starts take about 0.1 s.
MAX_STARTS_PER_SLOT = 30


class TooManySlots(ValueError):
    """The result would have more keys than the limit."""


class TooManyStarts(TooManySlots):
    """The result may be within the limit, but too many equal slots must be merged for it."""


def find_starts(
    timeline: ResourceTimeline, slot_request: SlotRequest, *, limit: int = MAX_SLOTS
) -> Sequence[Sequence[int]]:
    """Return the starts of one timeline's slots, in order, as ranges. Raises TooManySlots."""
    runs = _candidates_of(timeline, slot_request, limit)
    if slot_request.length is None:
        return [[start for start, _ in intervals] for intervals in runs]
    return runs


def free_intervals(timeline: ResourceTimeline, slot_request: SlotRequest) -> Intervals:
    """Return the free time in the range, from `not_before` on; a slot inside it is free."""
    return _clip_past(_gaps(timeline, slot_request), slot_request)


def _clip_past(gaps: Intervals, slot_request: SlotRequest) -> Intervals:
    return (
        gaps
        if slot_request.not_before is None
        else clip(gaps, slot_request.not_before, slot_request.end)
    )


def _gaps(timeline: ResourceTimeline, slot_request: SlotRequest, *, at_least: int = 1) -> Intervals:
    """Return gaps of at least `at_least` seconds.

    Past gaps are included, because slots count from the start of their gap.
    """
    return _subtract_busy(_open_to_all((timeline,), slot_request), timeline, slot_request, at_least)


def _open_to_all(timelines: Sequence[ResourceTimeline], slot_request: SlotRequest) -> Intervals:
    """Return the time in the range that the rules of all timelines leave open."""
    windows = _open_by_all(_rules_of(timelines), *_widen_to_whole_days(slot_request))
    return clip(windows, slot_request.start, slot_request.end)


def _subtract_busy(
    gaps: Sequence[Span], timeline: ResourceTimeline, slot_request: SlotRequest, at_least: int
) -> Intervals:
    left = subtract(gaps, timeline.busy, buffer=slot_request.buffer, at_least=at_least)
    return subtract(left, timeline.closed, at_least=at_least) if timeline.closed else left


def _widen_to_whole_days(slot_request: SlotRequest) -> Span:
    """Widen the range to UTC days around its local days: expanded rules are cached for the day."""
    return (slot_request.start // DAY - 2) * DAY, (slot_request.end // DAY + 3) * DAY


def find_slots(
    mode: str,
    timelines: Sequence[ResourceTimeline],
    slot_request: SlotRequest,
    *,
    limit: int = MAX_SLOTS,
) -> list[Slot]:
    """Return the slots (start, end, keys of the free timelines) within the range, sorted by start.

    Modes: roundrobin_prioritized (and roundrobin_random and roundrobin_fair, for timelines that the
    caller has ordered) returns the first free timeline, mutual requires all to be free, exclusive
    returns every free one. Raises TooManySlots as soon as the result has more than `limit` keys,
    counted in every slot; TooManyStarts.
    """
    if not timelines:
        return []
    find = _MODES[mode]
    if len(timelines) == 1:
        find = _all_free  # all modes give the same result for one timeline; this one is the fastest
    return find(timelines, slot_request, limit)


class FirstFreeSlots:
    """Find slots with the first free timeline; timelines are added in order of preference.

    `can_add` needs no busy time. Resources with the same opening hours share their starts, so a few
    of them usually offer every start: then the busy time of the others is not read.
    """

    def __init__(self, slot_request: SlotRequest, limit: int = MAX_SLOTS) -> None:
        self._request = slot_request
        self._limit = limit
        self._starts_left = MAX_STARTS_PER_SLOT * limit
        self._keys: dict[Any, tuple[Any]] = {}
        # By rules, zone and closed time: the first possible start without a slot (None: there is
        # none), and the later ones.
        self._missing: dict[Any, tuple[int | None, Iterator[int]]] = {}
        self._complete: set[range] = set()  # runs whose starts all have a slot

    @property
    def has_fixed_starts(self) -> bool:
        """Return whether slots start on a grid.

        Without increments, their starts depend on busy time.
        """
        return None not in (self._request.length, self._request.increment)

    def can_add(self, timeline: ResourceTimeline) -> bool:
        """Return whether the timeline could add a slot if it had no busy time.

        Raises TooManyStarts.
        """
        length = self._request.length
        if length is None or not self.has_fixed_starts:
            return True
        kind = timeline.rules, timeline.zone, tuple(timeline.closed)
        if kind not in self._missing:
            starts = self._starts_without_slot(timeline, length)
            self._missing[kind] = next(starts, None), starts
        missing, starts = self._missing[kind]
        if missing in self._keys:
            missing = next(starts, None)
            self._missing[kind] = missing, starts
        return missing is not None

    def add(self, timeline: ResourceTimeline) -> None:
        """Add the slots that no earlier timeline has. Raises TooManySlots or TooManyStarts."""
        if self._starts_left < 0:
            raise TooManyStarts
        runs = _candidates_of(timeline, self._request, self._limit)
        self._starts_left -= sum(map(len, runs))
        new = filterfalse(self._keys.__contains__, chain.from_iterable(runs))
        self._keys.update(dict.fromkeys(new, (timeline.key,)))
        if len(self._keys) > self._limit:
            raise TooManySlots

    def slots(self) -> list[Slot]:
        return _write_slots(self._keys, self._request.length)

    def _starts_without_slot(self, timeline: ResourceTimeline, length: int) -> Iterator[int]:
        """Yield the starts that the timeline would have without busy time, but for those that have
        a slot when they are reached.

        Raises TooManyStarts. Resources with different opening hours share most of their days' runs.
        """
        gaps = _gaps(timeline._replace(busy=()), self._request, at_least=length)
        runs = _start_ranges_of_gaps((timeline,), gaps, self._request, length)
        self._starts_left -= sum(map(len, runs))
        if self._starts_left < 0:
            raise TooManyStarts
        for run in runs:
            if run not in self._complete:
                yield from filterfalse(self._keys.__contains__, run)
                self._complete.add(run)


def _first_free(
    timelines: Sequence[ResourceTimeline], slot_request: SlotRequest, limit: int
) -> list[Slot]:
    slots = FirstFreeSlots(slot_request, limit)
    for timeline in timelines:
        if slots.can_add(timeline):
            slots.add(timeline)
    return slots.slots()


def _all_free(
    timelines: Sequence[ResourceTimeline], slot_request: SlotRequest, limit: int
) -> list[Slot]:
    at_least = slot_request.length or 1
    gaps = _open_to_all(timelines, slot_request)
    for timeline in timelines:
        if not gaps:
            return []
        gaps = _subtract_busy(gaps, timeline, slot_request, at_least)
    runs = _candidates(timelines, gaps, slot_request, limit // len(timelines))
    candidates = chain.from_iterable(runs)
    keys = tuple(timeline.key for timeline in timelines)
    if slot_request.length is None:
        return [(start, end, keys) for start, end in candidates]
    return [(start, start + slot_request.length, keys) for start in candidates]


def _any_free(
    timelines: Sequence[ResourceTimeline], slot_request: SlotRequest, limit: int
) -> list[Slot]:
    slots_by_span: dict[Any, list[Any]] = defaultdict(list)
    for timeline in timelines:
        runs = _candidates_of(timeline, slot_request, limit)
        limit -= sum(map(len, runs))
        for candidate in chain.from_iterable(runs):
            slots_by_span[candidate].append(timeline.key)
    return _write_slots(
        {candidate: tuple(keys) for candidate, keys in slots_by_span.items()}, slot_request.length
    )


def _write_slots(slots_by_span: dict[Any, Any], length: int | None) -> list[Slot]:
    if length is None:
        return [(start, end, slots_by_span[start, end]) for start, end in sorted(slots_by_span)]
    return [(start, start + length, slots_by_span[start]) for start in sorted(slots_by_span)]


_MODES = {
    "roundrobin_prioritized": _first_free,
    "roundrobin_random": _first_free,
    "roundrobin_fair": _first_free,
    "mutual": _all_free,
    "exclusive": _any_free,
}


def _candidates_of(
    timeline: ResourceTimeline, slot_request: SlotRequest, limit: int
) -> CandidateRuns:
    gaps = _gaps(timeline, slot_request, at_least=slot_request.length or 1)
    return _candidates((timeline,), gaps, slot_request, limit)


def _candidates(
    timelines: Sequence[ResourceTimeline], gaps: Intervals, slot_request: SlotRequest, limit: int
) -> CandidateRuns:
    """Return the candidates in the common gaps of the timelines. Raises TooManySlots."""
    runs: CandidateRuns
    if slot_request.length is None:
        gaps = _clip_past(gaps, slot_request)
        runs = [_with_permitted_ends(timelines, gaps, slot_request)]
    else:
        runs = _start_ranges_of_gaps(timelines, gaps, slot_request, slot_request.length)
    if sum(map(len, runs)) > limit:
        raise TooManySlots
    return runs


def _start_ranges_of_gaps(
    timelines: Sequence[ResourceTimeline], gaps: Intervals, slot_request: SlotRequest, length: int
) -> list[range]:
    """Return the starts of slots, in order, as ranges."""
    not_before = slot_request.start if slot_request.not_before is None else slot_request.not_before
    permitted = _permitted_starts(timelines, slot_request, length)
    if slot_request.increment is None:
        if any(timeline.windows for timeline in timelines):
            gaps = _start_gaps(gaps, permitted or (), length)
        runs = _adjacent_starts(gaps, length, not_before)
        return runs if permitted is None else _within(runs, permitted)
    rules = _rules_of_starts(timelines)
    lo, hi = _widen_to_whole_days(slot_request)
    grid = (
        _grid_cached
        if all(is_small_enough_to_cache(lists, lo, hi) for lists, _ in rules)
        else _start_ranges
    )
    pieces = grid(rules, timelines[0].zone, slot_request.increment, lo, hi)
    runs = _on_grid(pieces, gaps, slot_request.increment, length, not_before)
    return runs if permitted is None else _within(runs, permitted)


def _permitted_starts(
    timelines: Sequence[ResourceTimeline], slot_request: SlotRequest, length: int
) -> Intervals | None:
    """Return where slots of this length may start, by windows and `closed_starts`; None:
    anywhere.
    """
    lo, hi = slot_request.start, slot_request.end + 1
    permitted: Intervals | None = None
    for timeline in timelines:
        if timeline.windows:
            starts = permitted_starts(timeline.windows, timeline.zone, lo, hi, length)
            permitted = starts if permitted is None else intersect(permitted, starts)
    if slot_request.closed_starts:
        left = complement(slot_request.closed_starts, lo, hi)
        permitted = left if permitted is None else intersect(permitted, left)
    return permitted


def permitted_starts(windows: Windows, zone: str, lo: int, hi: int, length: int) -> Intervals:
    """Return the instants in [lo, hi) at which a booking of `length` may start.

    It may end at the end of a window, and at its beginning.
    """
    starts: Intervals = [(lo, hi)]
    if windows.start is not None:
        starts = intersect(starts, permitted_instants(windows.start, zone, lo, hi))
    if windows.end is not None:
        ends = permitted_ends(windows.end, zone, lo + length, hi + length)
        starts = intersect(starts, [(first - length, last - length) for first, last in ends])
    return starts


def permitted_instants(rules: ConstraintRules, zone: str, lo: int, hi: int) -> Intervals:
    """Return the instants in [lo, hi) that the rules of a window open."""
    since, until = (lo // DAY - 2) * DAY, (hi // DAY + 3) * DAY
    return clip(open_windows((rules,), zone, since, until), lo, hi)


def permitted_ends(rules: ConstraintRules, zone: str, lo: int, hi: int) -> Intervals:
    """Return the instants in [lo, hi) at which a booking may end: in a window or at its end."""
    opened = permitted_instants(rules, zone, lo - DAY, hi)
    return clip(normalise((first, last + 1) for first, last in opened), lo, hi)


def _with_permitted_ends(
    timelines: Sequence[ResourceTimeline], gaps: Intervals, slot_request: SlotRequest
) -> Intervals:
    """Return the longest part of each gap that may be booked as a whole, by windows and
    `closed_starts`.
    """
    lo, hi = slot_request.start, slot_request.end + 1
    starts: Intervals = complement(slot_request.closed_starts, lo, hi)
    ends: Intervals = [(lo, hi)]
    for timeline in timelines:
        own = timeline.windows or Windows()
        if own.start is not None:
            starts = intersect(starts, permitted_instants(own.start, timeline.zone, lo, hi))
        if own.end is not None:
            ends = intersect(ends, permitted_ends(own.end, timeline.zone, lo, hi))
    longest = []
    for start, end in gaps:
        first, last = clip(starts, start, end), clip(ends, start, end + 1)
        if first and last and first[0][0] < last[-1][1] - 1:
            longest.append((first[0][0], last[-1][1] - 1))
    return longest


def _start_gaps(gaps: Intervals, permitted: Sequence[Span], length: int) -> Intervals:
    """Return the gaps from which slots are packed: each begins where a slot may start.

    The last slot of a stretch of permitted starts may end after it.
    """
    return [
        (first, last - 1 + length)
        for start, end in gaps
        for first, last in clip(permitted, start, end - length + 1)
    ]


def _within(runs: Sequence[range], permitted: Sequence[Span]) -> list[range]:
    """Return the starts that are permitted. The runs are in order."""
    kept = []
    for run in runs:
        for lo, hi in clip(permitted, run.start, run[-1] + 1) if run else ():
            first = _first_from(lo, run.start, run.step)
            if first < min(hi, run.stop):
                kept.append(range(first, min(hi, run.stop), run.step))
    return kept


def _adjacent_starts(gaps: Intervals, length: int, not_before: int) -> list[range]:
    return [
        range(_first_from(not_before, start, length), end - length + 1, length)
        for start, end in gaps
    ]


def _first_from(lo: int, start: int, step: int) -> int:
    """Return the first of start, start + step, ... that is not before lo."""
    return start if start >= lo else lo + (start - lo) % step


def _rules_of(timelines: Sequence[ResourceTimeline]) -> tuple[ZoneRules, ...]:
    return tuple((timeline.rules, timeline.zone) for timeline in timelines)


def _rules_of_starts(timelines: Sequence[ResourceTimeline]) -> tuple[ZoneRules, ...]:
    """Return the rules from whose openings the grid of starts counts."""
    return tuple(
        (starts_rules(timeline.rules, timeline.windows), timeline.zone) for timeline in timelines
    )


def starts_rules(
    rules: tuple[ConstraintRules, ...], windows: Windows | None
) -> tuple[ConstraintRules, ...]:
    """Return the lists of rules from whose openings the grid of starts counts."""
    return rules if windows is None else (windows.start or (),)


def _on_grid(
    pieces: Sequence[Span], gaps: Intervals, increment: int, length: int, not_before: int
) -> list[range]:
    """Return the starts on the grid whose slot lies inside a gap, even across several pieces."""
    runs = []
    index, count = 0, len(pieces)
    for start, end in gaps:
        lo = start if start > not_before else not_before
        last = end - length
        while index < count and pieces[index][1] <= lo:
            index += 1
        piece = index
        while piece < count:
            first, stop = pieces[piece]
            if first > last:
                break
            if first < lo:
                first = lo + (first - lo) % increment
            runs.append(range(first, stop if stop <= last else last + 1, increment))
            piece += 1
    return runs


def starts_on_grid(rules: Sequence[ZoneRules], start: int, increment: int) -> bool:
    """Return whether `find_slots` may start slots of these timelines (rules, zone) at `start`."""
    lo, hi = (start // DAY - 2) * DAY, (start // DAY + 3) * DAY
    pieces = _start_ranges(rules, rules[0][1], increment, lo, hi)
    return any(start in range(first, stop, increment) for first, stop in pieces)


def _start_ranges(
    rules: Sequence[ZoneRules], zone: str, increment: int, lo: int, hi: int
) -> tuple[Span, ...]:
    """Return the starts of every local day in [lo, hi), as pieces (first, stop) in increments.

    A stretch is an interval that all rules leave open; the wall clock is that of `zone`. Starts
    count from the opening of a stretch on that local day, or from midnight if it opened before. A
    piece ends with its stretch, its local day or its UTC offset; skipped wall time is in no piece,
    repeated wall time in two.
    """
    return tuple(_pieces(_open_by_all(rules, lo, hi), offset_segments(zone, lo, hi), increment))


_grid_cached = lru_cache(maxsize=64)(_start_ranges)


def _open_by_all(rules: Sequence[ZoneRules], lo: int, hi: int) -> Sequence[Span]:
    """Return the intervals within [lo, hi) that all rules leave open; those of a zone are expanded
    together.
    """
    by_zone: dict[str, dict[ConstraintRules, None]] = {}
    for lists, zone in rules:
        by_zone.setdefault(zone, {}).update(dict.fromkeys(lists))
    open_in_each = (open_windows(tuple(lists), zone, lo, hi) for zone, lists in by_zone.items())
    return reduce(intersect, open_in_each)


def _pieces(
    stretches: Sequence[Span], segments: Sequence[tuple[int, int, int]], increment: int
) -> Iterator[Span]:
    opening, reached = 0, None
    for since, until, offset in segments:
        for instant, last in clip(stretches, since, until):
            start, end = instant + offset, last + offset
            if instant != reached:  # the start of a stretch, not the rest of one
                opening = start
            reached = last
            for midnight in range(start // DAY * DAY, end, DAY):
                anchor = opening if opening // DAY * DAY == midnight else midnight
                lo = max(start, midnight)
                first, stop = lo + (anchor - lo) % increment, min(end, midnight + DAY)
                if first < stop:
                    yield first - offset, stop - offset
