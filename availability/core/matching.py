"""Choose different resources for the requirements of a booking."""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Mapping, Sequence
from itertools import accumulate, chain
from operator import or_, xor
from typing import Any, NamedTuple

from availability.core.intervals import Span
from availability.core.slots import (
    MAX_SLOTS,
    ResourceTimeline,
    Slot,
    SlotRequest,
    TooManySlots,
    TooManyStarts,
    find_starts,
    free_intervals,
)


class Requirement(NamedTuple):
    """A booking needs `number` of the resources `ids`, best first."""

    name: str
    ids: tuple[Any, ...]
    number: int = 1


class FixedChoice(NamedTuple):
    """Resources that must be chosen.

    named: name of a requirement -> a resource for it. anywhere: a resource for any requirement.
    """

    named: Mapping[str, Any] = {}
    anywhere: Any = None


NOTHING_FIXED = FixedChoice()
# The starts of all resources of the first requirement; a million take about 0.2 s.
MAX_LEADING_STARTS = 10 * MAX_SLOTS


def choose(
    requirements: Sequence[Requirement],
    free: Container[Any],
    fixed: FixedChoice = NOTHING_FIXED,
) -> list[Any] | None:
    """Return different free resources, `number` for each requirement, in the requirements' order.

    None if no such choice exists. A bipartite matching by augmenting paths (Kuhn).
    """
    places = _required_places(requirements, fixed.named)
    if fixed.anywhere is None:
        return _find_matching(places, free)
    for number, place in enumerate(places):
        if fixed.anywhere in place:
            narrowed = [*places[:number], (fixed.anywhere,), *places[number + 1 :]]
            matching = _find_matching(narrowed, free)
            if matching:
                return matching
    return None


def _required_places(
    requirements: Sequence[Requirement], named: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Return the possible resources of each place; `named` fixes a requirement's first place."""
    places: list[tuple[Any, ...]] = []
    for requirement in requirements:
        first = requirement.ids
        if requirement.name in named:
            named_id = named[requirement.name]
            first = (named_id,) if named_id in requirement.ids else ()
        places += [first, *[requirement.ids] * (requirement.number - 1)]
    return places


def _find_matching(places: Sequence[Sequence[Any]], free: Container[Any]) -> list[Any] | None:
    place_of: dict[Any, int] = {}

    def find(place: int, seen: set[Any]) -> bool:
        for each in places[place]:
            if each in seen or each not in free:
                continue
            seen.add(each)
            if each not in place_of or find(place_of[each], seen):
                place_of[each] = place
                return True
        return False

    if not all(find(place, set()) for place in range(len(places))):
        return None
    chosen = {place: each for each, place in place_of.items()}
    matching = [chosen[place] for place in range(len(places))]
    # Places of one requirement are alike: their resources stand in its order.
    for place in range(1, len(places)):
        for other in range(place, 0, -1):
            if places[other] != places[other - 1]:
                break
            first, second = matching[other - 1 : other + 1]
            if places[other].index(second) < places[other].index(first):
                matching[other - 1 : other + 1] = second, first
    return matching


def find_matched_slots(
    timelines: Sequence[ResourceTimeline],
    slot_request: SlotRequest,
    *,
    requirements: Sequence[Requirement],
    fixed: FixedChoice = NOTHING_FIXED,
    limit: int = MAX_SLOTS,
) -> list[Slot]:
    """Return the slots in which free resources meet all requirements, with the chosen resources.

    Timeline keys have an `id`. Slots start where a resource of the first requirement has a slot;
    only slots of its own can use such a resource. Raises TooManySlots if the slots together have
    more than `limit` resources. The matching is computed once for each set of free resources.
    """
    length = slot_request.length
    if length is None:
        raise ValueError("requirements need a length")
    numbers = {timeline.key.id: number for number, timeline in enumerate(timelines)}
    leading = set(requirements[0].ids)
    own: dict[int, Sequence[Sequence[int]]] = {}
    others: dict[int, Sequence[Span]] = {}
    for number, timeline in enumerate(timelines):
        if timeline.key.id in leading:
            own[number] = find_starts(timeline, slot_request)
        else:
            others[number] = free_intervals(timeline, slot_request)
    starts, masks = _free_at_starts(own, others, length)
    requirements, fixed = _by_number(requirements, fixed, numbers)
    choices: dict[int, tuple[Any, ...] | None] = {}
    slots: list[Slot] = []
    for start, mask in zip(starts, masks, strict=True):
        if mask not in choices:
            chosen = choose(requirements, _FreeNumbers(mask), fixed)
            choices[mask] = tuple(timelines[each].key for each in chosen) if chosen else None
        if found := choices[mask]:
            limit -= len(found)
            if limit < 0:
                raise TooManySlots
            slots.append((start, start + length, found))
    return slots


class _FreeNumbers:
    """The numbers whose bit is set in a mask."""

    __slots__ = ("mask",)

    def __init__(self, mask: int) -> None:
        self.mask = mask

    def __contains__(self, number: Any) -> bool:
        return bool(self.mask >> number & 1)


def _by_number(
    requirements: Sequence[Requirement], fixed: FixedChoice, numbers: Mapping[Any, int]
) -> tuple[Sequence[Requirement], FixedChoice]:
    """Return the same with numbers instead of ids; -1 for a fixed resource without a number."""
    numbered = [
        each._replace(ids=tuple(numbers[id_] for id_ in each.ids if id_ in numbers))
        for each in requirements
    ]
    named = {name: numbers.get(id_, -1) for name, id_ in fixed.named.items()}
    anywhere = None if fixed.anywhere is None else numbers.get(fixed.anywhere, -1)
    return numbered, FixedChoice(named, anywhere)


def _free_at_starts(
    own: Mapping[int, Sequence[Sequence[int]]],
    others: Mapping[int, Sequence[Span]],
    length: int,
) -> tuple[list[int], list[int]]:
    """Return the starts in `own`, in order, and for each a mask with the bits of the free numbers.

    own: starts by number. others: free intervals by number. Raises TooManyStarts.
    """
    if sum(len(run) for runs in own.values() for run in runs) > MAX_LEADING_STARTS:
        raise TooManyStarts
    starts = sorted(set().union(*chain.from_iterable(own.values())))
    position = {start: place for place, start in enumerate(starts)}
    leading = [0] * len(starts)
    for number, runs in own.items():
        bit = 1 << number
        for place in map(position.__getitem__, chain.from_iterable(runs)):
            leading[place] |= bit
    changes = [0] * (len(starts) + 1)  # where an interval begins or ends
    for number, intervals in others.items():
        bit = 1 << number
        for first, last in intervals:
            if last - first >= length:
                changes[bisect_left(starts, first)] ^= bit
                changes[bisect_right(starts, last - length)] ^= bit
    return starts, list(map(or_, leading, accumulate(changes, xor)))
