"""Slots (contract, section 6): what the rules open, minus what is taken, cut to length."""

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from availability.core.constraints import Rules, is_worth_keeping, open_windows
from availability.core.intervals import Intervals, Span, clip, intersect, subtract
from availability.core.zones import DAY, offset_segments


class Agenda(NamedTuple):
    """One resource: its zone, its rules (lists of resource, project, request) and what takes its
    time.

    busy: what blocks, in epoch seconds, sorted by start, none empty; may overlap and reach beyond
    the range. closed: the same for stretches that a limit closes; they get no buffer.
    """

    key: Hashable
    zone: str
    rules: tuple[Rules, ...]
    busy: Sequence[Span]
    closed: Sequence[Span] = ()


class Demand(NamedTuple):
    """What is looked for in [start, end] (epoch seconds). Durations are seconds.

    length: None for whole free intervals. increment: the distance of starts; None packs slots one
    after another. not_before: slots that begin before this instant are left out.
    """

    start: int
    end: int
    length: int | None
    buffer: int = 0
    increment: int | None = None
    not_before: int | None = None


Slot = tuple[int, int, tuple[Hashable, ...]]
Candidates = list[Any]  # starts of slots; whole intervals where the demand has no length


class TooManySlots(ValueError):
    """The answer would have more slot-resource pairs than the limit."""


def free_intervals(agenda: Agenda, demand: Demand) -> Intervals:
    """The free time of one agenda within the range, from `not_before` on: a slot is free if it lies
    inside one.
    """
    return _clip_past(_gaps(agenda, demand), demand)


def _clip_past(gaps: Intervals, demand: Demand) -> Intervals:
    return gaps if demand.not_before is None else clip(gaps, demand.not_before, demand.end)


def _gaps(agenda: Agenda, demand: Demand, *, at_least: int = 1) -> Intervals:
    """Free gaps of `at_least` seconds, the past included, because slots are packed from the start
    of a gap.
    """
    windows = clip(
        open_windows(agenda.rules, agenda.zone, *_padded(demand)), demand.start, demand.end
    )
    gaps = subtract(windows, agenda.busy, buffer=demand.buffer, at_least=at_least)
    return subtract(gaps, agenda.closed, at_least=at_least) if agenda.closed else gaps


def _padded(demand: Demand) -> Span:
    """The range with every local day that it touches whole, in UTC days: rules expanded for it
    serve the whole day.
    """
    return (demand.start // DAY - 2) * DAY, (demand.end // DAY + 3) * DAY


def find_slots(
    mode: str, agendas: Sequence[Agenda], demand: Demand, *, limit: int = 100_000
) -> list[Slot]:
    """The slots (start, end, keys of the agendas that are free) within the range, sorted by start.

    Modes: roundrobin_prioritized (and roundrobin_random, for agendas that the caller has shuffled)
    names the first free agenda, mutual all where all are free, exclusive every free one. Raises
    TooManySlots as soon as more than `limit` slot-resource pairs have been found, before slots of
    different resources are made one.
    """
    if not agendas:
        return []
    find = _MODES[mode]
    if len(agendas) == 1:
        find = _all_free  # every mode says the same of one agenda, this one soonest
    return find(agendas, demand, limit)


def _first_free(agendas: Sequence[Agenda], demand: Demand, limit: int) -> list[Slot]:
    found: dict[Any, Any] = {}
    for agenda, candidates in reversed(list(_candidates_of_each(agendas, demand, limit))):
        found.update(dict.fromkeys(candidates, (agenda.key,)))  # the first in order is written last
    return _write_slots(found, demand.length)


def _all_free(agendas: Sequence[Agenda], demand: Demand, limit: int) -> list[Slot]:
    at_least = demand.length or 1
    gaps = _gaps(agendas[0], demand, at_least=at_least)
    for agenda in agendas[1:]:
        gaps = intersect(gaps, _gaps(agenda, demand, at_least=at_least))
    candidates = _candidates(agendas, gaps, demand, limit // len(agendas))
    keys = tuple(agenda.key for agenda in agendas)
    if demand.length is None:
        return [(start, end, keys) for start, end in candidates]
    return [(start, start + demand.length, keys) for start in candidates]


def _every_free(agendas: Sequence[Agenda], demand: Demand, limit: int) -> list[Slot]:
    found: dict[Any, Any] = {}
    for agenda, candidates in _candidates_of_each(agendas, demand, limit):
        for candidate in candidates:
            if candidate in found:
                found[candidate].append(agenda.key)
            else:
                found[candidate] = [agenda.key]
    return _write_slots(
        {candidate: tuple(keys) for candidate, keys in found.items()}, demand.length
    )


def _write_slots(found: dict[Any, Any], length: int | None) -> list[Slot]:
    if length is None:
        return [(start, end, found[start, end]) for start, end in sorted(found)]
    return [(start, start + length, found[start]) for start in sorted(found)]


_MODES = {
    "roundrobin_prioritized": _first_free,
    "roundrobin_random": _first_free,
    "mutual": _all_free,
    "exclusive": _every_free,
}


def _candidates_of_each(
    agendas: Sequence[Agenda], demand: Demand, limit: int
) -> Iterator[tuple[Agenda, Candidates]]:
    for agenda in agendas:
        candidates = _candidates(
            (agenda,), _gaps(agenda, demand, at_least=demand.length or 1), demand, limit
        )
        limit -= len(candidates)
        yield agenda, candidates


def _candidates(
    agendas: Sequence[Agenda], gaps: Intervals, demand: Demand, limit: int
) -> Candidates:
    """What can be offered in the gaps that the agendas have in common. Raises TooManySlots."""
    if demand.length is None:
        return _at_most(limit, _clip_past(gaps, demand))
    runs = _runs(agendas, gaps, demand, demand.length)
    if sum(map(len, runs)) > limit:
        raise TooManySlots(limit)
    return list(chain.from_iterable(runs))


def _at_most(limit: int, intervals: Intervals) -> Intervals:
    if len(intervals) > limit:
        raise TooManySlots(limit)
    return intervals


def _runs(agendas: Sequence[Agenda], gaps: Intervals, demand: Demand, length: int) -> list[range]:
    """The starts of slots, in order, as ranges."""
    not_before = demand.start if demand.not_before is None else demand.not_before
    if demand.increment is None:
        return _packed(gaps, length, not_before)
    rules = tuple({(agenda.rules, agenda.zone): None for agenda in agendas})
    lo, hi = _padded(demand)
    grid = _grid_cached if all(is_worth_keeping(lists, lo, hi) for lists, _ in rules) else _grid
    pieces = grid(rules, agendas[0].zone, demand.increment, lo, hi)
    return _on_grid(pieces, gaps, demand.increment, length, not_before)


def _packed(gaps: Intervals, length: int, not_before: int) -> list[range]:
    return [
        range(_first_from(not_before, start, length), end - length + 1, length)
        for start, end in gaps
    ]


def _first_from(lo: int, start: int, step: int) -> int:
    """The first of start, start + step, ... that is not before lo."""
    return start if start >= lo else lo + (start - lo) % step


def _on_grid(
    pieces: Sequence[Span], gaps: Intervals, increment: int, length: int, not_before: int
) -> list[range]:
    """A slot starts on the grid and lies inside a gap, however many pieces of the grid it runs
    over.
    """
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


def _grid(
    rules: tuple[tuple[tuple[Rules, ...], str], ...], zone: str, increment: int, lo: int, hi: int
) -> tuple[Span, ...]:
    """The starts of every local day in [lo, hi), as pieces (first, stop) to be walked in steps of
    the increment.

    The stretches are those that all the rules open, the wall clock is that of `zone`. Starts are
    counted from where a stretch opens on that local day, from midnight where it is open already. A
    piece ends where its stretch, its local day or its offset from UTC does; what the clock skips is
    in none, what it shows twice in two.
    """
    stretches: Sequence[Span] = [(lo, hi)]
    for lists, rules_zone in rules:
        stretches = intersect(stretches, open_windows(lists, rules_zone, lo, hi))
    segments = offset_segments(zone, lo, hi)
    return tuple(piece for stretch in stretches for piece in _pieces(stretch, segments, increment))


_grid_cached = lru_cache(maxsize=64)(_grid)


def _pieces(
    stretch: Span, segments: Sequence[tuple[int, int, int]], increment: int
) -> Iterator[Span]:
    opening = None
    for since, until, offset in segments:
        start, end = max(stretch[0], since) + offset, min(stretch[1], until) + offset
        if start >= end:
            continue
        if opening is None:
            opening = start
        for midnight in range(start // DAY * DAY, end, DAY):
            anchor = opening if opening // DAY * DAY == midnight else midnight
            lo = max(start, midnight)
            first, stop = lo + (anchor - lo) % increment, min(end, midnight + DAY)
            if first < stop:
                yield first - offset, stop - offset
