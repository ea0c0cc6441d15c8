"""Find visits: several steps one after another, with gaps between them, in one booking."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, product
from operator import attrgetter
from typing import Any, NamedTuple

from availability.core.intervals import Intervals, Span, clip, intersect, normalise
from availability.core.matching import (
    NOTHING_FIXED,
    WHOLE,
    Alternatives,
    Chosen,
    FixedChoice,
    Requirement,
    choose,
)
from availability.core.slots import (
    MAX_SLOTS,
    ResourceTimeline,
    SlotRequest,
    TooManySlots,
    find_starts,
    free_intervals,
)


class Step(NamedTuple):
    """A step of a visit. Durations are seconds.

    min_gap, max_gap: between the end of the step before and its start; the first step of a visit
    has none. same_as: the name of a step whose first resource its own first resource is.
    """

    name: str
    requirements: Sequence[Requirement]
    length: int
    min_gap: int = 0
    max_gap: int = 0
    same_as: str | None = None


class Visit(NamedTuple):
    """What a booking consists of. is_ordered: its steps follow each other as given, else in any
    order.
    """

    steps: Sequence[Step]
    is_ordered: bool = True

    @property
    def longest(self) -> int:
        """The time from its start to its end at most."""
        return sum(step.length + step.max_gap for step in self.steps)

    @property
    def requirements(self) -> list[Sequence[Requirement]]:
        """The requirements of each step."""
        return [step.requirements for step in self.steps]

    def preferring(self, present: Collection[tuple[str | None, str | None, Any]]) -> "Visit":
        """Return the visit with costs that make any other resource dearer than a present one.

        present: step, requirement and resource.
        """

        def preferring(step: Step) -> Step:
            dearer = 1 + sum(abs(cost) for each in step.requirements for _, cost in each.ranked())
            return step._replace(
                requirements=[
                    each._replace(
                        costs=tuple(
                            cost if (step.name, each.name, key) in present else cost + dearer
                            for key, cost in each.ranked()
                        )
                    )
                    for each in step.requirements
                ]
            )

        return self._replace(steps=[preferring(step) for step in self.steps])

    def with_requirements(self, requirements: Alternatives) -> "Visit":
        """Return the visit with other requirements, one list for each step."""
        pairs = zip(self.steps, requirements, strict=True)
        return self._replace(steps=[step._replace(requirements=own) for step, own in pairs])


class PlacedStep(NamedTuple):
    """A step at a time (epoch seconds), with what its resources were chosen for."""

    name: str
    start: int
    end: int
    chosen: Sequence[Chosen]


Placement = tuple[PlacedStep, ...]  # the steps of a visit, in the order of their times


class _Piece(NamedTuple):
    """Starts of a step in [start, end) with the same choice of resources."""

    start: int
    end: int
    chosen: Sequence[Chosen]


# Combinations of resources for the steps with `same_as` that are tried.
MAX_COMBINATIONS = 500


def count_combinations(visit: Visit) -> int:
    """Return how many combinations of resources the steps with `same_as` have together."""
    number = 1
    for names in _groups(visit):
        number *= len(_common_ids(visit, names))
    return number


def find_visits(
    timelines: Mapping[Any, ResourceTimeline],
    slot_request: SlotRequest,
    visit: Visit,
    *,
    fixed: FixedChoice = NOTHING_FIXED,
    limit: int = MAX_SLOTS,
) -> list[Placement]:
    """Return the visits in the range, one for each possible start, in order.

    timelines: by the id of the resource. A visit starts where a resource of its first step has a
    slot of the step's length. Each step takes place as early as it can such that the others can
    follow; the steps with `same_as` take the first resource that can do all of them. fixed: named
    resources count in every step that has a requirement of that name. Raises TooManySlots for more
    than `limit` steps.
    """
    placements: dict[int, Placement] = {}
    for plan in _plans(_Times(timelines, slot_request), visit, fixed):
        for start in plan.starts():
            if start not in placements:
                placements[start] = plan.place(start)
                if len(placements) * len(visit.steps) > limit:
                    raise TooManySlots
    return [placements[start] for start in sorted(placements)]


def placements_at(
    timelines: Mapping[Any, ResourceTimeline],
    slot_request: SlotRequest,
    visit: Visit,
    start: int,
    *,
    end: int | None = None,
    fixed: FixedChoice = NOTHING_FIXED,
) -> Iterator[Placement]:
    """Yield the visits that may begin at the start, on any grid: one for each combination of
    resources for the steps with `same_as`. `find_visits` has the first one.

    end: of the visit; the steps then take place as early as they can for this end. None: any.
    """
    for plan in _plans(_Times(timelines, slot_request), visit, fixed, end):
        if plan.can_start(start):
            yield plan.place(start)


def possible_starts(
    timelines: Mapping[Any, ResourceTimeline], slot_request: SlotRequest, step: Step
) -> Intervals:
    """Return when a step could start, whatever the others need."""
    pieces = _find_pieces(_Times(timelines, slot_request), step, NOTHING_FIXED)
    return normalise((piece.start, piece.end) for piece in pieces)


class _Times:
    """When each resource is free in the range, and where its slots begin. Computed once for all
    steps, and for all combinations of resources.
    """

    def __init__(
        self, timelines: Mapping[Any, ResourceTimeline], slot_request: SlotRequest
    ) -> None:
        self._timelines = timelines
        self._request = slot_request
        self.free = cache(self._free)
        self.starts = cache(self._starts)

    def _free(self, key: Any) -> Intervals:
        if key not in self._timelines:
            return []
        return free_intervals(self._timelines[key], self._request._replace(length=None))

    def _starts(self, key: Any, length: int) -> Sequence[Sequence[int]]:
        if key not in self._timelines:
            return []
        return find_starts(self._timelines[key], self._request._replace(length=length))


def _plans(
    times: _Times, visit: Visit, fixed: FixedChoice, end: int | None = None
) -> Iterator["_Plan"]:
    """Yield a plan for each combination of resources for the steps with `same_as`, best first.

    end: that of the visits; None: any.
    """
    groups = _groups(visit)
    known: dict[tuple[str, Any], list[_Piece]] = {}
    for ids in product(*(_common_ids(visit, names) for names in groups)):
        same = {name: each for names, each in zip(groups, ids, strict=True) for name in names}
        pieces = {}
        for step in visit.steps:
            key = step.name, same.get(step.name)
            if key not in known:
                own = _fixed_in(step, fixed, same.get(step.name))
                known[key] = [] if own is None else _find_pieces(times, step, own)
            pieces[step.name] = known[key]
        if all(pieces.values()):
            yield _Plan(times, visit, pieces, end)


def _groups(visit: Visit) -> list[list[str]]:
    """Return the names of the steps that share a resource, in the order of the steps."""
    group_of: dict[str, list[str]] = {step.name: [step.name] for step in visit.steps}
    for step in visit.steps:
        if step.same_as is not None and group_of[step.same_as] is not group_of[step.name]:
            joined = [*group_of[step.same_as], *group_of[step.name]]
            for name in joined:
                group_of[name] = joined
    unique = {id(names): names for names in group_of.values() if len(names) > 1}
    return list(unique.values())


def _common_ids(visit: Visit, names: Sequence[str]) -> list[Any]:
    """Return the resources that can be the first one of all these steps, the cheapest first."""
    firsts = [step.requirements[0] for step in visit.steps if step.name in names]
    ranked = sorted(firsts[0].ranked(), key=lambda each: each[1])
    return [each for each, _ in ranked if all(each in first.ids for first in firsts)]


def _fixed_in(step: Step, fixed: FixedChoice, same: Any) -> FixedChoice | None:
    """Return what is fixed of a step; None if its shared resource is not among the named ones."""
    names = {requirement.name for requirement in step.requirements}
    named = {name: ids for name, ids in fixed.named.items() if name in names}
    if same is None:
        return FixedChoice(named)
    first = step.requirements[0].name
    if first in named and same not in named[first]:
        return None
    return FixedChoice({**named, first: (same,)})


def _find_pieces(times: _Times, step: Step, fixed: FixedChoice) -> list[_Piece]:
    """Return when the step may start, with the resources that it takes then."""
    changes: dict[int, set[Any]] = {}  # where resources begin or cease to be free
    for each in {each for one in step.requirements for each in fixed.possible_ids(one)}:
        for start, end in times.free(each):
            if end - start >= step.length:
                changes.setdefault(start, set()).symmetric_difference_update({each})
                last = end - step.length + 1
                changes.setdefault(last, set()).symmetric_difference_update({each})
    pieces: list[_Piece] = []
    free: frozenset[Any] = frozenset()
    choices: dict[frozenset[Any], list[Chosen] | None] = {}
    instants = sorted(changes)
    for start, end in pairwise(instants):
        free ^= changes[start]
        if free not in choices:
            choices[free] = choose([step.requirements], {WHOLE: free}, fixed)
        if chosen := choices[free]:
            pieces.append(_Piece(start, end, chosen))
    return pieces


class _Plan:
    """When each step may take place, and what must be left for those after it."""

    def __init__(
        self,
        times: _Times,
        visit: Visit,
        pieces: Mapping[str, Sequence[_Piece]],
        end: int | None,
    ) -> None:
        self.times = times
        self.visit = visit
        self.pieces = pieces
        self.end = end
        self._spans = {
            name: normalise((piece.start, piece.end) for piece in found)
            for name, found in pieces.items()
        }
        self._known: dict[frozenset[int], Intervals] = {}
        self._known_starts: dict[tuple[int, frozenset[int]], Intervals] = {}

    def starts(self) -> list[int]:
        """Return the possible starts on the grids of the resources of the first step."""
        found: set[int] = set()
        for number, rest in self._next(frozenset(range(len(self.visit.steps)))):
            step = self.visit.steps[number]
            possible = self._starts_of(number, rest)
            for each in step.requirements[0].ids if possible else ():
                found.update(_inside(self.times.starts(each, step.length), possible))
        return [start for start in found if self.can_start(start)]

    def can_start(self, start: int) -> bool:
        return self._first(start) is not None

    def _first(self, start: int) -> tuple[int, frozenset[int]] | None:
        every = frozenset(range(len(self.visit.steps)))
        for number, rest in self._next(every):
            if _contains(self._starts_of(number, rest), start):
                return number, rest
        return None

    def place(self, start: int) -> Placement:
        """Place the steps of a visit that can start then, each as early as it can."""
        first = self._first(start)
        if first is None:
            raise ValueError("the visit can't start then")
        number, rest = first
        placed = [self._at(number, start)]
        while rest:
            end = placed[-1].end
            earliest = []
            for number, after in self._next(rest):
                step = self.visit.steps[number]
                window = clip(
                    self._starts_of(number, after), end + step.min_gap, end + step.max_gap + 1
                )
                if window:
                    earliest.append((window[0][0], number, after))
            begin, number, rest = min(earliest, key=lambda each: each[:2])
            placed.append(self._at(number, begin))
        return tuple(placed)

    def _at(self, number: int, start: int) -> PlacedStep:
        step = self.visit.steps[number]
        pieces = self.pieces[step.name]
        piece = pieces[bisect_right(pieces, start, key=attrgetter("start")) - 1]
        return PlacedStep(step.name, start, start + step.length, piece.chosen)

    def _next(self, steps: frozenset[int]) -> Iterable[tuple[int, frozenset[int]]]:
        """Return the steps that may come first of these, each with those after it."""
        numbers = sorted(steps)
        return [
            (each, steps - {each}) for each in (numbers[:1] if self.visit.is_ordered else numbers)
        ]

    def _starts_of(self, number: int, rest: frozenset[int]) -> Intervals:
        """Return when the step may start such that the steps of `rest` can follow."""
        step = self.visit.steps[number]
        if not rest and self.end is not None:
            last = self.end - step.length
            return clip(self._spans[step.name], last, last + 1)
        if not rest:
            return self._spans[step.name]
        if (number, rest) not in self._known_starts:
            ends = self._ends_before(rest)
            self._known_starts[number, rest] = intersect(
                self._spans[step.name], [(lo - step.length, hi - step.length) for lo, hi in ends]
            )
        return self._known_starts[number, rest]

    def _ends_before(self, steps: frozenset[int]) -> Intervals:
        """Return the instants at which the step before may end such that `steps` can follow.

        Computed from the last step to the first, once for all starts: with gaps that have a
        maximum, the earliest time of a step need not leave one for the next.
        """
        if steps not in self._known:
            spans: list[Span] = []
            for number, rest in self._next(steps):
                step = self.visit.steps[number]
                spans += [
                    (lo - step.max_gap, hi - step.min_gap)
                    for lo, hi in self._starts_of(number, rest)
                ]
            self._known[steps] = normalise(spans)
        return self._known[steps]


def _contains(spans: Intervals, instant: int) -> bool:
    return bool(clip(spans, instant, instant + 1))


def _inside(runs: Sequence[Sequence[int]], spans: Intervals) -> Iterator[int]:
    """Yield the starts that lie in one of the spans; both are in order."""
    position = 0
    for run in runs:
        for start in run:
            while position < len(spans) and spans[position][1] <= start:
                position += 1
            if position == len(spans):
                return
            if spans[position][0] <= start:
                yield start
