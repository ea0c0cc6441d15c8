"""Choices of resources for requirements, against all assignments tried one by one."""

from collections.abc import Iterator
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from availability.core.matching import (
    WHOLE,
    Chosen,
    FixedChoice,
    Place,
    Requirement,
    Stretch,
    choose,
    find_cheapest_matching,
    find_suited,
    smallest_first,
)
from availability.core.parties import Party

SECOND_HALF = Stretch(1800)
COUNTS = st.integers(1, 3)


def places_of_any_size() -> st.SearchStrategy[list[list[tuple[int, int]]]]:
    place = st.dictionaries(st.integers(0, 5), st.integers(0, 9), max_size=6)
    return st.lists(place.map(lambda costs: sorted(costs.items())), min_size=1, max_size=4)


def all_matchings(places: list[Place]) -> Iterator[tuple[int, list[int]]]:
    for ids in permutations(range(6), len(places)):
        costs = [dict(place).get(each) for place, each in zip(places, ids, strict=True)]
        if None not in costs:
            yield sum(cost for cost in costs if cost is not None), list(ids)


@given(places=places_of_any_size())
@settings(max_examples=500, deadline=None)
def test_cheapest_matching_equals_the_best_of_all(places: list[Place]) -> None:
    found = find_cheapest_matching(places)

    least = min((cost for cost, _ in all_matchings(places)), default=None)
    if found is None:
        assert least is None
    else:
        assert len(set(found)) == len(found)
        assert sum(dict(place)[each] for place, each in zip(places, found, strict=True)) == least


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_choice_equals_the_best_of_all_assignments(data: st.DataObject) -> None:
    ids = st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True).map(tuple)
    requirements = [
        Requirement(str(number), data.draw(ids), data.draw(st.integers(1, 2)), stretch)
        for number, stretch in enumerate([WHOLE, SECOND_HALF, WHOLE][: data.draw(COUNTS)])
    ]
    free = {stretch: data.draw(st.sets(st.integers(0, 5))) for stretch in (WHOLE, SECOND_HALF)}

    chosen = choose([requirements], free)

    places: list[Place] = [
        [pair for pair in requirement.ranked() if pair[0] in free[requirement.stretch]]
        for requirement in requirements
        for _ in range(requirement.number)
    ]
    least = min((cost for cost, _ in all_matchings(places)), default=None)
    if chosen is None:
        assert least is None
    else:
        names = [each.name for each in requirements for _ in range(each.number)]
        assert [each.name for each in chosen] == names
        costs = [dict(place)[each.id] for place, each in zip(places, chosen, strict=True)]
        assert sum(costs) == least


RANGES = {0: (1, 2), 1: (2, 2), 2: (1, 4), 3: (3, 6), 4: (4, 8)}


@given(data=st.data())
@settings(max_examples=500, deadline=None)
def test_choice_for_a_party_equals_the_smallest_of_all(data: st.DataObject) -> None:
    ids = st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True).map(tuple)
    party = Party(data.draw(st.integers(1, 16)), RANGES)
    requirements = smallest_first(
        [
            Requirement(str(number), data.draw(ids), data.draw(st.integers(1, 2)), party=party)
            for number in range(data.draw(COUNTS))
        ]
    )
    free = data.draw(st.sets(st.integers(0, 5)))

    chosen = choose([requirements], {WHOLE: free})

    places: list[Place] = [
        [pair for pair in requirement.ranked() if pair[0] in free]
        for requirement in requirements
        for _ in range(requirement.number)
    ]
    possible = [
        (cost, found) for cost, found in all_matchings(places) if suits_together(party.size, found)
    ]
    if chosen is None:
        assert not possible
    else:
        costs = [dict(place)[each.id] for place, each in zip(places, chosen, strict=True)]
        assert (sum(costs), [each.id for each in chosen]) in possible
        assert sum(costs) == min(cost for cost, _ in possible)
        found = [each.id for each in chosen]
        assert size_of(found) == min(size_of(ids) for _, ids in possible)
    assert find_suited(requirements) >= {each for _, found in possible for each in found}


def suits_together(size: int, ids: list[int]) -> bool:
    ranges = [RANGES[each] for each in ids if each in RANGES]
    least, most = sum(each[0] for each in ranges), sum(each[1] for each in ranges)
    return not ranges or least <= size <= most


def size_of(ids: list[int]) -> int:
    """How many people they suit together at most; 5 suits any number."""
    return sum(RANGES[each][1] if each in RANGES else 10_001 for each in ids)


def test_only_resources_of_a_suiting_choice_are_suited() -> None:
    party = Party(7, {"two": (1, 2), "four": (1, 4), "six": (1, 6)})
    joined = [
        Requirement("first", ("two", "four"), party=party),
        Requirement("second", ("two", "four"), party=party),
        Requirement("waiter", ("tom",), party=party),
    ]
    alone = [Requirement("table", ("two", "four", "six"), party=party)]

    assert find_suited(joined) == {"four", "tom"}
    assert find_suited(alone) == set()


def test_first_alternative_that_can_be_met_is_taken() -> None:
    six = [Requirement("table", ("six",))]
    joined = [Requirement("table", ("four",)), Requirement("second table", ("two",))]

    def chosen(*free: str) -> list[str] | None:
        found = choose([six, joined], {WHOLE: free})
        return found and [each.id for each in found]

    assert chosen("six", "four", "two") == ["six"]
    assert chosen("four", "two") == ["four", "two"]
    assert chosen("four") is None


def test_optional_requirement_is_left_out_where_it_must() -> None:
    requirements = [
        Requirement("dentist", ("ada",)),
        Requirement("trainee", ("tom", "ada"), optional=True),
    ]

    assert choose([requirements], {WHOLE: ["ada", "tom"]}) == [
        Chosen("ada", "dentist"),
        Chosen("tom", "trainee"),
    ]
    assert choose([requirements], {WHOLE: ["ada"]}) == [Chosen("ada", "dentist")]
    named = FixedChoice({"trainee": ("tom",)})
    assert choose([requirements], {WHOLE: ["ada"]}, named) is None


def test_named_resources_are_chosen() -> None:
    engineers = [Requirement("engineer", ("a", "b", "c", "d"), 2)]

    def chosen(*ids: str, anywhere: str | None = None) -> list[str] | None:
        found = choose([engineers], {WHOLE: "abcd"}, FixedChoice({"engineer": ids}, anywhere))
        return found and [each.id for each in found]

    assert chosen("d") == ["d", "a"]
    assert chosen("d", "c") == ["c", "d"]
    assert chosen("d", "c", "b") == ["b", "c"]
    assert chosen("x") is None
    assert chosen("d", anywhere="c") == ["c", "d"]
    assert choose([engineers], {WHOLE: "abcd"}, FixedChoice(anywhere="d")) == [
        Chosen("d", "engineer"),
        Chosen("a", "engineer"),
    ]
    assert choose([engineers], {WHOLE: "abcd"}, FixedChoice({"room": ("a",)})) is None
