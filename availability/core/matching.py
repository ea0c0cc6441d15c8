"""Choose different resources for the requirements of a booking."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import accumulate, chain, islice
from operator import itemgetter, or_, xor
from typing import Any, NamedTuple

from availability.core.intervals import Span
from availability.core.parties import NO_RANGE, Kinds, Party, Range, find_combinations, party_rank
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

PRIORITIZED, RANDOM, FAIR = "prioritized", "random", "fair"
REQUIREMENT_MODES = (PRIORITIZED, RANDOM, FAIR)


class Stretch(NamedTuple):
    """A part of a booking's time: from `offset` seconds after its start, for `length` seconds.

    length: None for the rest of the booking. A stretch may end after the booking. is_step: it is a
    step of a visit, which keeps the rules of the project.
    """

    offset: int = 0
    length: int | None = None
    is_step: bool = False

    def within(self, start: int, end: int) -> Span:
        """Return the stretch of a booking from `start` to `end` (epoch seconds)."""
        first = start + self.offset
        return first, end if self.length is None else first + self.length

    def fits(self, start: int, end: int) -> bool:
        """Return whether a booking from `start` to `end` is long enough to have the stretch."""
        return self.length_in(end - start) > 0

    def length_in(self, length: int) -> int:
        """Return its length in a booking of `length` seconds."""
        return length - self.offset if self.length is None else self.length


WHOLE = Stretch()


class Requirement(NamedTuple):
    """A booking needs `number` of the resources `ids` for a stretch of its time.

    optional: the booking is made without, if it must. shown: the customer is told who it is.
    costs: of each of the `ids`; empty: their position. A choice has the least sum. They follow from
    mode, weights and calibrate_from (epoch seconds; None: the project's making). party: of the
    booking; what is chosen for all its requirements has to suit it together.
    """

    name: str
    ids: tuple[Any, ...]
    number: int = 1
    stretch: Stretch = WHOLE
    optional: bool = False
    shown: bool = False
    costs: tuple[int, ...] = ()
    mode: str = PRIORITIZED
    weights: tuple[tuple[Any, int], ...] = ()
    calibrate_from: int | None = None
    party: Party | None = None

    def cheapest_first(self) -> Iterable[Any]:
        if not self.costs:
            return self.ids
        return [each for each, _ in sorted(self.ranked(), key=itemgetter(1))]

    def ranked(self) -> Iterable[tuple[Any, int]]:
        """Return the ids with their costs."""
        return zip(self.ids, self.costs or range(len(self.ids)), strict=True)


# The requirements of a booking, or several such lists: the first that can be met is taken.
Alternatives = Sequence[Sequence[Requirement]]
FreeIds = Mapping[Stretch, Container[Any]]  # the resources that are free for a stretch


class FixedChoice(NamedTuple):
    """Resources that must be chosen.

    named: name of a requirement -> resources for it: as many as it needs are taken of them; if they
    are fewer, all of them. anywhere: a resource for any requirement.
    """

    named: Mapping[str, tuple[Any, ...]] = {}
    anywhere: Any = None

    def possible_ids(self, requirement: Requirement) -> tuple[Any, ...]:
        """Return what can be chosen for the requirement."""
        named = self.named.get(requirement.name, ())
        return named if len(named) >= requirement.number else requirement.ids


class Chosen(NamedTuple):
    """A resource, and the requirement that it was chosen for."""

    id: Any
    name: str
    stretch: Stretch = WHOLE


NOTHING_FIXED = FixedChoice()
# The starts of all resources of the first requirement; a million take about 0.2 s.
MAX_LEADING_STARTS = 10 * MAX_SLOTS


def choose(
    alternatives: Alternatives, free: FreeIds, fixed: FixedChoice = NOTHING_FIXED
) -> list[Chosen] | None:
    """Return different free resources for the first alternative that can be met, at the least cost.

    In the order of the requirements, `number` for each. Optional requirements are met in their
    order as far as possible; one with a fixed resource is not optional. The chosen resources suit
    the party together, also before an optional one is added. None: there is no choice.
    """
    for requirements in alternatives:
        names = {each.name for each in requirements}
        if not fixed.named.keys() <= names:
            continue
        for named in _with_anywhere(requirements, fixed):
            if chosen := _choose(requirements, free, named):
                return chosen
    return None


def _with_anywhere(
    requirements: Sequence[Requirement], fixed: FixedChoice
) -> Iterable[Mapping[str, tuple[Any, ...]]]:
    """Yield the named resources with `anywhere` among them, for each requirement that it fits."""
    if fixed.anywhere is None:
        yield fixed.named
        return
    for requirement in requirements:
        named = fixed.named.get(requirement.name, ())
        if fixed.anywhere not in requirement.ids:
            continue
        if len(named) < requirement.number:
            yield {**fixed.named, requirement.name: (*named, fixed.anywhere)}
        elif fixed.anywhere in named:
            yield {**fixed.named, requirement.name: (fixed.anywhere,)}


def _choose(
    requirements: Sequence[Requirement], free: FreeIds, named: Mapping[str, tuple[Any, ...]]
) -> list[Chosen] | None:
    left_out = [each for each in requirements if each.optional and each.name not in named]
    kept = [each for each in requirements if each not in left_out]
    chosen = _choose_for_all(kept, free, named)
    for optional in left_out if chosen else ():
        more = [each for each in requirements if each in kept or each is optional]
        if with_optional := _choose_for_all(more, free, named):
            kept, chosen = more, with_optional
    return chosen


# A place takes one resource. Its possible resources with their costs, the cheapest first.
Place = Sequence[tuple[Any, int]]


def _choose_for_all(
    requirements: Sequence[Requirement], free: FreeIds, named: Mapping[str, tuple[Any, ...]]
) -> list[Chosen] | None:
    party = requirements[0].party if requirements else None
    matching = None if named else _cheapest_if_different(requirements, free)
    if matching is None or (party and not party.is_suited_by(matching)):
        places: list[Place] = []
        for requirement in requirements:
            own = _places(requirement, free[requirement.stretch], named.get(requirement.name, ()))
            if not all(own):
                return None
            places += own
        matching = (
            find_cheapest_for_party(places, party) if party else find_cheapest_matching(places)
        )
    if matching is None:
        return None
    chosen: list[Chosen] = []
    for requirement in requirements:
        first = len(chosen)
        own_ids = matching[first : first + requirement.number]
        is_partly_named = 0 < len(named.get(requirement.name, ())) < requirement.number
        if requirement.number > 1 and not is_partly_named:
            own_ids.sort(key=dict(requirement.ranked()).__getitem__)
        chosen += [Chosen(each, requirement.name, requirement.stretch) for each in own_ids]
    return chosen


def _cheapest_if_different(requirements: Sequence[Requirement], free: FreeIds) -> list[Any] | None:
    """Return the cheapest free resources of each requirement, if they differ: nothing can cost
    less. None otherwise.
    """
    matching: list[Any] = []
    for requirement in requirements:
        is_free = free[requirement.stretch].__contains__
        matching += islice(filter(is_free, requirement.cheapest_first()), requirement.number)
    is_enough = len(matching) == sum(requirement.number for requirement in requirements)
    return matching if is_enough and len(set(matching)) == len(matching) else None


def _places(requirement: Requirement, free: Container[Any], named: tuple[Any, ...]) -> list[Place]:
    """Return the places of a requirement, those for named resources first."""
    ranked = sorted(
        (each for each in requirement.ranked() if each[0] in free), key=lambda each: each[1]
    )
    if len(named) >= requirement.number:
        ranked = [each for each in ranked if each[0] in named]
        named = ()
    fixed = [[each for each in ranked if each[0] == resource_id] for resource_id in named]
    return [*fixed, *[ranked] * (requirement.number - len(fixed))]


def find_cheapest_matching(places: Sequence[Place]) -> list[Any] | None:
    """Return a different resource for each place with the least sum of costs; None if there is no
    choice.

    The Hungarian method: each place is added by a cheapest augmenting path, with potentials that
    keep all reduced costs non-negative. O(places² x resources).
    """
    costs = [dict(place) for place in places]
    place_potential = [0] * len(places)
    id_potential = dict.fromkeys(chain.from_iterable(costs), 0)
    place_of: dict[Any, int] = {}
    for added in range(len(places)):
        distance: dict[Any, int] = {}
        came_from: dict[Any, Any] = {}
        done: dict[Any, None] = {}  # in order
        place, reached, last = added, 0, None
        while True:
            for each, cost in costs[place].items():
                if each in done:
                    continue
                through = reached + cost - place_potential[place] - id_potential[each]
                if each not in distance or through < distance[each]:
                    distance[each], came_from[each] = through, last
            open_ids = [each for each in distance if each not in done]
            if not open_ids:
                return None
            last = min(open_ids, key=distance.__getitem__)
            reached = distance[last]
            done[last] = None
            if last not in place_of:
                break
            place = place_of[last]
        place_potential[added] += reached
        for each in done:
            if each not in place_of:
                break
            place_potential[place_of[each]] += reached - distance[each]
            id_potential[each] -= reached - distance[each]
        while last is not None:
            before = came_from[last]
            place_of[last] = added if before is None else place_of[before]
            last = before
    matching = {place: each for each, place in place_of.items()}
    return [matching[place] for place in range(len(places))]


def find_cheapest_for_party(places: Sequence[Place], party: Party) -> list[Any] | None:
    """Return the cheapest matching whose resources suit the party together; None: there is none.

    Tries the combinations of their ranges, those that may be the cheapest first.
    """
    by_range = {id(place): _by_range(place, party) for place in places}
    kinds = [(by_range[key], number) for key, number in Counter(map(id, places)).items()]
    tries = []
    for combination in find_combinations(kinds, party.size):
        parts = [by_range[id(place)][each] for place, each in zip(places, combination, strict=True)]
        tries.append((sum(part[0][1] for part in parts), parts))
    best, least = None, 0
    for at_least, parts in sorted(tries, key=itemgetter(0)):
        if best is not None and at_least >= least:
            break
        matching = find_cheapest_matching(parts)
        if matching is not None:
            cost = sum(dict(part)[each] for part, each in zip(parts, matching, strict=True))
            if best is None or cost < least:
                best, least = matching, cost
    return best


def _by_range(place: Place, party: Party) -> dict[Range, list[tuple[Any, int]]]:
    found: dict[Range, list[tuple[Any, int]]] = {}
    for each, cost in place:
        found.setdefault(party.range_of(each), []).append((each, cost))
    return found


def smallest_first(requirements: Sequence[Requirement]) -> Sequence[Requirement]:
    """Return the requirements with costs by which the smallest resources for their party are
    chosen, and of these the cheapest.
    """
    party = requirements[0].party if requirements else None
    if party is None:
        return requirements
    costs = [[cost for _, cost in each.ranked()] or [0] for each in requirements]
    numbers = [each.number for each in requirements]
    spread = 1 + sum(
        number * (max(own) - min(own)) for own, number in zip(costs, numbers, strict=True)
    )
    return [
        each._replace(
            costs=tuple(
                party_rank(party.range_of(key)) * spread + cost for key, cost in each.ranked()
            )
        )
        for each in requirements
    ]


def find_suited(requirements: Sequence[Requirement]) -> set[Any]:
    """Return the resources that some choice for the requirements contains if all are free."""
    party = requirements[0].party if requirements else None
    if party is None:
        return {key for requirement in requirements for key in requirement.ids}
    kinds = kinds_of(requirements)
    usable: list[set[Range]] = [set() for _ in kinds]
    owners = [place for place, (_, number) in enumerate(kinds) for _ in range(number)]
    for combination in find_combinations(kinds, party.size):
        for place, each in zip(owners, combination, strict=True):
            usable[place].add(each)
    return {
        key
        for requirement, ranges in zip(requirements, usable, strict=True)
        for key in requirement.ids
        if party.range_of(key) in ranges
    }


def kinds_of(requirements: Sequence[Requirement]) -> Kinds:
    """Return the ranges that each requirement may take, and how many of them."""
    return [
        (
            {
                *(each.party.range_of(key) for key in each.ids if each.party),
                *([NO_RANGE] if each.optional else []),
            },
            each.number,
        )
        for each in requirements
    ]


def find_matched_slots(
    timelines: Mapping[Stretch, Sequence[ResourceTimeline]],
    slot_request: SlotRequest,
    *,
    alternatives: Alternatives,
    fixed: FixedChoice = NOTHING_FIXED,
    limit: int = MAX_SLOTS,
) -> list[Slot]:
    """Return the slots in which free resources meet the first possible of the alternatives, with
    the chosen resources.

    timelines: by stretch, those of the resources that requirements with this stretch name; their
    keys have an `id`. Slots start where a resource of a first requirement has a slot, which is for
    the whole time; only slots of its own can use such a resource there. Raises TooManySlots if the
    slots together have more than `limit` resources. The matching is computed once for each set of
    free resources.
    """
    length = slot_request.length
    if length is None:
        raise ValueError("requirements need a length")
    slots: dict[int, Slot] = {}
    left = limit
    for requirements in alternatives:
        if not fixed.named.keys() <= {each.name for each in requirements}:
            continue
        for slot in _slots_of(timelines, slot_request, length, requirements, fixed, limit):
            if slots.setdefault(slot[0], slot) is slot:
                left -= len(slot[2])
                if left < 0:
                    raise TooManySlots
    return [slots[start] for start in sorted(slots)]


def _slots_of(
    timelines: Mapping[Stretch, Sequence[ResourceTimeline]],
    slot_request: SlotRequest,
    length: int,
    requirements: Sequence[Requirement],
    fixed: FixedChoice,
    limit: int,
) -> list[Slot]:
    """Return the slots of one alternative, in order."""
    leading = set(requirements[0].ids)
    named_by: dict[Stretch, set[Any]] = {}
    for requirement in requirements:
        named_by.setdefault(requirement.stretch, set()).update(requirement.ids)
    numbers: dict[Stretch, dict[Any, int]] = {}
    keys: dict[Any, Any] = {}
    own: dict[int, Sequence[Sequence[int]]] = {}
    others: dict[int, tuple[Sequence[Span], Stretch]] = {}
    for stretch, ids in named_by.items():
        part = _request_of_stretch(slot_request, stretch, length)
        numbered = numbers.setdefault(stretch, {})
        for timeline in timelines[stretch]:
            each = timeline.key.id
            if each not in ids or stretch.length_in(length) <= 0:
                continue
            keys[each] = timeline.key
            number = numbered[each] = len(own) + len(others)
            if stretch == WHOLE and each in leading:
                own[number] = find_starts(timeline, slot_request)
            else:
                others[number] = free_intervals(timeline, part), stretch
    starts, masks = _free_at_starts(own, others, length)
    choices: dict[int, tuple[Any, ...] | None] = {}
    slots: list[Slot] = []
    for start, mask in zip(starts, masks, strict=True):
        if mask not in choices:
            free = {stretch: _FreeNumbers(numbered, mask) for stretch, numbered in numbers.items()}
            chosen = choose([requirements], free, fixed)
            choices[mask] = tuple(keys[each.id] for each in chosen) if chosen else None
        if found := choices[mask]:
            limit -= len(found)
            if limit < 0:
                raise TooManySlots
            slots.append((start, start + length, found))
    return slots


class _FreeNumbers:
    """The resources whose bit is set in a mask."""

    __slots__ = ("mask", "numbers")

    def __init__(self, numbers: Mapping[Any, int], mask: int) -> None:
        self.numbers, self.mask = numbers, mask

    def __contains__(self, resource_id: Any) -> bool:
        number = self.numbers.get(resource_id)
        return number is not None and bool(self.mask >> number & 1)


def _request_of_stretch(slot_request: SlotRequest, stretch: Stretch, length: int) -> SlotRequest:
    """Return the range that the stretch of any slot of the request lies in."""
    first = slot_request.start + stretch.offset
    last = slot_request.end - length + stretch.offset + stretch.length_in(length)
    return slot_request._replace(start=first, end=max(first, last), length=None)


def range_with_stretches(start: int, end: int, stretches: Collection[Stretch]) -> Span:
    """Return the range (epoch seconds) widened to the stretches of bookings within it."""
    beyond = max((each.offset + (each.length or 0) for each in stretches), default=0)
    return start, end + beyond


def _free_at_starts(
    own: Mapping[int, Sequence[Sequence[int]]],
    others: Mapping[int, tuple[Sequence[Span], Stretch]],
    length: int,
) -> tuple[list[int], list[int]]:
    """Return the starts in `own`, in order, and for each a mask with the bits of the free numbers.

    own: starts by number. others: free intervals by number, and the stretch of a slot that must lie
    in one of them. Raises TooManyStarts.
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
    for number, (intervals, stretch) in others.items():
        bit, needed = 1 << number, stretch.length_in(length)
        for first, last in intervals:
            if last - first >= needed:
                changes[bisect_left(starts, first - stretch.offset)] ^= bit
                changes[bisect_right(starts, last - needed - stretch.offset)] ^= bit
    return starts, list(map(or_, leading, accumulate(changes, xor)))
