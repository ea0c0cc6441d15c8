"""Choose different resources for the requirements of a booking."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from availability.core.slots import (
    MAX_SLOTS,
    ResourceTimeline,
    Slot,
    SlotRequest,
    TooManySlots,
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


def choose(
    requirements: Sequence[Requirement],
    free: Collection[Hashable],
    fixed: FixedChoice = NOTHING_FIXED,
) -> list[Any] | None:
    """Return different free resources, `number` for each requirement, in the requirements' order.

    None if no such choice exists. A bipartite matching by augmenting paths (Kuhn).
    """
    free = set(free)
    places = _required_places(requirements, fixed.named)
    if fixed.anywhere is None:
        return _find_matching([[each for each in place if each in free] for place in places])
    for number, place in enumerate(places):
        if fixed.anywhere in place:
            narrowed = [*places[:number], (fixed.anywhere,), *places[number + 1 :]]
            found = _find_matching([[each for each in one if each in free] for one in narrowed])
            if found:
                return found
    return None


def _required_places(
    requirements: Sequence[Requirement], named: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Return the possible resources of each place; `named` fixes a requirement's first place."""
    places: list[tuple[Any, ...]] = []
    for requirement in requirements:
        first = requirement.ids
        if requirement.name in named:
            wanted = named[requirement.name]
            first = (wanted,) if wanted in requirement.ids else ()
        places += [first, *[requirement.ids] * (requirement.number - 1)]
    return places


def _find_matching(places: Sequence[Sequence[Any]]) -> list[Any] | None:
    place_of: dict[Any, int] = {}

    def find(place: int, seen: set[Any]) -> bool:
        for each in places[place]:
            if each in seen:
                continue
            seen.add(each)
            if each not in place_of or find(place_of[each], seen):
                place_of[each] = place
                return True
        return False

    if not all(find(place, set()) for place in range(len(places))):
        return None
    chosen = {place: each for each, place in place_of.items()}
    found = [chosen[place] for place in range(len(places))]
    # Places of one requirement are alike: their resources stand in its order.
    for place in range(1, len(places)):
        for other in range(place, 0, -1):
            if places[other] != places[other - 1]:
                break
            first, second = found[other - 1 : other + 1]
            if places[other].index(second) < places[other].index(first):
                found[other - 1 : other + 1] = second, first
    return found


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
    leading = set(requirements[0].ids)
    own = {
        timeline.key: find_starts(timeline, slot_request)
        for timeline in timelines
        if timeline.key.id in leading
    }
    starts = sorted(set().union(*own.values()))
    position = {start: number for number, start in enumerate(starts)}
    masks = [0] * len(starts)
    for number, timeline in enumerate(timelines):
        bit = 1 << number
        if timeline.key in own:
            for start in own[timeline.key]:
                masks[position[start]] |= bit
            continue
        for first, last in free_intervals(timeline, slot_request):
            for place in range(bisect_left(starts, first), bisect_right(starts, last - length)):
                masks[place] |= bit
    keys = {timeline.key.id: timeline.key for timeline in timelines}
    ids = [timeline.key.id for timeline in timelines]
    choices: dict[int, tuple[Any, ...] | None] = {}
    slots: list[Slot] = []
    for start, mask in zip(starts, masks, strict=True):
        if mask not in choices:
            free = [each for number, each in enumerate(ids) if mask >> number & 1]
            chosen = choose(requirements, free, fixed)
            choices[mask] = tuple(keys[each] for each in chosen) if chosen else None
        if found := choices[mask]:
            limit -= len(found)
            if limit < 0:
                raise TooManySlots
            slots.append((start, start + length, found))
    return slots
