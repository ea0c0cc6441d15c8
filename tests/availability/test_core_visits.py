"""Visits against all arrangements of steps and resources, tried second by second."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, permutations, product
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from availability.core.matching import FixedChoice, Requirement
from availability.core.slots import ResourceTimeline, SlotRequest
from availability.core.visits import (
    PlacedStep,
    Placement,
    Step,
    Visit,
    count_combinations,
    find_visits,
    placements_at,
    possible_starts,
)

END = 24
REQUEST = SlotRequest(0, END, length=None, increment=1)
Busy = Sequence[tuple[int, int]]


def timelines(busy: Mapping[str, Busy]) -> dict[str, ResourceTimeline]:
    return {
        name: ResourceTimeline(SimpleNamespace(id=name), "UTC", ((),), sorted(spans))
        for name, spans in busy.items()
    }


def is_free(busy: Busy, start: int, end: int) -> bool:
    return start >= 0 and end <= END and all(last <= start or first >= end for first, last in busy)


def resources_of(step: Step, busy: Mapping[str, Busy], start: int) -> Iterator[tuple[str, ...]]:
    """All ways to meet the requirements of a step at a time."""
    pools = [
        [each for each in one.ids if is_free(busy[each], start, start + step.length)]
        for one in step.requirements
        for _ in range(one.number)
    ]
    return (each for each in product(*pools) if len(set(each)) == len(each))


def can_follow(
    steps: Sequence[Step],
    busy: Mapping[str, Busy],
    starts: Sequence[int],
    firsts: Mapping[str, str],
    last: int | None = None,
) -> bool:
    """Whether the visit can go on: `steps` are left, the first at one of the starts. last: its end;
    None: any.
    """
    if not steps:
        return True
    step, *rest = steps
    for start in starts:
        if not rest and last not in (None, start + step.length):
            continue
        for chosen in resources_of(step, busy, start):
            same = firsts.get(step.same_as or "", chosen[0])
            if same != chosen[0]:
                continue
            end = start + step.length
            after = range(end + rest[0].min_gap, end + rest[0].max_gap + 1) if rest else ()
            if can_follow(rest, busy, after, {**firsts, step.name: chosen[0]}, last):
                return True
    return False


def possible_by_brute_force(visit: Visit, busy: Mapping[str, Busy]) -> list[int]:
    orders = [visit.steps] if visit.is_ordered else list(permutations(visit.steps))
    return [
        start
        for start in range(END)
        if any(can_follow(order, busy, [start], {}) for order in orders)
    ]


def assert_is_possible(placement: Placement, visit: Visit, busy: Mapping[str, Busy]) -> None:
    steps = {step.name: step for step in visit.steps}
    assert sorted(each.name for each in placement) == sorted(steps)
    if visit.is_ordered:
        assert [each.name for each in placement] == [step.name for step in visit.steps]
    for before, after in pairwise(placement):
        step = steps[after.name]
        assert step.min_gap <= after.start - before.end <= step.max_gap
    firsts = {each.name: each.chosen[0].id for each in placement}
    for placed in placement:
        step = steps[placed.name]
        ids = tuple(each.id for each in placed.chosen)
        assert ids in resources_of(step, busy, placed.start)
        assert placed.end - placed.start == step.length
        assert step.same_as is None or firsts[step.name] == firsts[step.same_as]


BUSY = st.lists(
    st.tuples(st.integers(0, END - 1), st.integers(1, 6)).map(lambda pair: (pair[0], sum(pair))),
    max_size=4,
)
IDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def visits(draw: st.DrawFn) -> Visit:
    is_ordered = draw(st.booleans())
    steps = []
    for number in range(draw(st.integers(2, 3))):
        gap = draw(st.integers(0, 3))
        requirements = [
            Requirement(f"{number}{kind}", draw(IDS)) for kind in range(draw(st.integers(1, 2)))
        ]
        may_be_same = number and is_ordered and draw(st.booleans())
        steps.append(
            Step(
                name=str(number),
                requirements=requirements,
                length=draw(st.integers(1, 4)),
                min_gap=gap,
                max_gap=gap + draw(st.integers(0, 4)),
                same_as=str(draw(st.integers(0, number - 1))) if may_be_same else None,
            )
        )
    return Visit(steps, is_ordered)


@given(visit=visits(), busy=st.fixed_dictionaries(dict.fromkeys("abc", BUSY)))
@settings(max_examples=300, deadline=None)
def test_visits_start_whenever_some_arrangement_exists(
    visit: Visit, busy: Mapping[str, Busy]
) -> None:
    found = find_visits(timelines(busy), REQUEST, visit)

    assert [placement[0].start for placement in found] == possible_by_brute_force(visit, busy)
    for placement in found:
        assert_is_possible(placement, visit, busy)
        assert first_at(timelines(busy), REQUEST, visit, placement[0].start) == placement


@given(
    visit=visits(),
    busy=st.fixed_dictionaries(dict.fromkeys("abc", BUSY)),
    start=st.integers(0, 8),
    length=st.integers(2, 16),
)
@settings(max_examples=300, deadline=None)
def test_visit_has_exactly_the_wanted_end(
    visit: Visit, busy: Mapping[str, Busy], start: int, length: int
) -> None:
    end = start + length

    found = first_at(timelines(busy), REQUEST, visit, start, end=end)

    orders = [visit.steps] if visit.is_ordered else list(permutations(visit.steps))
    is_possible = any(can_follow(order, busy, [start], {}, end) for order in orders)
    assert (found is not None) == is_possible
    if found:
        assert (found[0].start, found[-1].end) == (start, end)
        assert_is_possible(found, visit, busy)


def first_at(*given: Any, **more: Any) -> Placement | None:
    return next(placements_at(*given, **more), None)


def step(name: str, ids: str, length: int = 2, **given: object) -> Step:
    return Step(name, [Requirement(name, tuple(ids))], length, **given)  # type: ignore[arg-type]


def shown(placement: Placement | None) -> list[tuple[str, int, int, str]] | None:
    def line(placed: PlacedStep) -> tuple[str, int, int, str]:
        ids = "".join(each.id for each in placed.chosen)
        return placed.name, placed.start, placed.end, ids

    return placement and [line(each) for each in placement]


def test_a_step_waits_where_the_next_one_could_not_follow_in_time() -> None:
    visit = Visit([step("clean", "a"), step("check", "b", max_gap=10), step("x-ray", "c")])
    busy = {"a": [], "b": [], "c": [(0, 8)]}

    assert shown(first_at(timelines(busy), REQUEST, visit, 0)) == [
        ("clean", 0, 2, "a"),
        ("check", 6, 8, "b"),
        ("x-ray", 8, 10, "c"),
    ]


def test_steps_in_any_order_begin_with_the_first_that_can() -> None:
    steps = [step("clean", "a"), step("check", "b")]
    busy = {"a": [(0, 2)], "b": []}

    assert first_at(timelines(busy), REQUEST, Visit(steps), 0) is None
    assert shown(first_at(timelines(busy), REQUEST, Visit(steps, is_ordered=False), 0)) == [
        ("check", 0, 2, "b"),
        ("clean", 2, 4, "a"),
    ]


def test_same_resource_and_named_ones() -> None:
    visit = Visit([step("cut", "ab"), step("wash", "ab"), step("dry", "ba", same_as="cut")])
    busy = {"a": [(4, 5)], "b": []}

    assert shown(first_at(timelines(busy), REQUEST, visit, 0)) == [
        ("cut", 0, 2, "b"),
        ("wash", 2, 4, "a"),
        ("dry", 4, 6, "b"),
    ]
    named = FixedChoice({"dry": ("a",)})
    assert first_at(timelines(busy), REQUEST, visit, 0, fixed=named) is None
    assert shown(first_at(timelines(busy), REQUEST, visit, 5, fixed=named)) == [
        ("cut", 5, 7, "a"),
        ("wash", 7, 9, "a"),
        ("dry", 9, 11, "a"),
    ]
    assert count_combinations(visit) == 2
    assert possible_starts(timelines(busy), REQUEST, visit.steps[0]) == [(0, END - 1)]
