import pytest
from hypothesis import given
from hypothesis import strategies as st

from availability.core.intervals import (
    clip,
    complement,
    find_overlaps,
    intersect,
    join,
    normalise,
    subtract,
    unite,
    widen,
)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], []),
        ([(3, 3)], []),
        ([(5, 3)], []),
        ([(1, 3), (3, 5)], [(1, 5)]),
        ([(3, 5), (1, 3), (9, 9)], [(1, 5)]),
        ([(1, 9), (2, 3)], [(1, 9)]),
        ([(1, 2), (3, 4)], [(1, 2), (3, 4)]),
    ],
)
def test_normalise_sorts_and_joins(spans, expected):
    assert normalise(spans) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([], [(1, 2)], []),
        ([(1, 3)], [(3, 5)], []),
        ([(1, 5), (7, 9)], [(4, 8)], [(4, 5), (7, 8)]),
        ([(1, 9)], [(2, 3), (4, 5)], [(2, 3), (4, 5)]),
    ],
)
def test_intersect_is_symmetric(left, right, expected):
    assert (intersect(left, right), intersect(right, left)) == (expected, expected)


@pytest.mark.parametrize(
    ("intervals", "blocks", "options", "expected"),
    [
        ([], [(1, 2)], {}, []),
        ([(1, 2)], [], {}, [(1, 2)]),
        ([(0, 10)], [(2, 5), (3, 4)], {}, [(0, 2), (5, 10)]),
        ([(0, 10)], [(-9, 30)], {}, []),
        ([(0, 10)], [(-9, 0), (10, 12)], {}, [(0, 10)]),
        ([(0, 4), (6, 10)], [(3, 7)], {}, [(0, 3), (7, 10)]),
        ([(0, 4), (6, 10)], [(-9, 1), (-8, 8)], {}, [(8, 10)]),
        ([(0, 10)], [(2, 5), (3, 4)], {"buffer": 1}, [(0, 1), (6, 10)]),
        ([(0, 10)], [(2, 3), (5, 6)], {"buffer": 1}, [(0, 1), (7, 10)]),
        ([(0, 10)], [(2, 3), (6, 7)], {"buffer": 1}, [(0, 1), (4, 5), (8, 10)]),
        ([(0, 10)], [(-3, -1), (11, 12)], {"buffer": 2}, [(1, 9)]),
        ([(0, 10)], [(2, 3), (6, 7)], {"at_least": 3}, [(3, 6), (7, 10)]),
        ([(0, 10), (12, 14)], [(2, 3)], {"at_least": 2, "buffer": 1}, [(4, 10), (12, 14)]),
    ],
)
def test_subtract_removes_widened_blocks(intervals, blocks, options, expected):
    assert subtract(intervals, blocks, **options) == expected


@pytest.mark.parametrize(
    ("lo", "hi", "expected"),
    [
        (0, 9, [(1, 3), (5, 8)]),
        (2, 6, [(2, 3), (5, 6)]),
        (3, 5, []),
        (6, 7, [(6, 7)]),
        (8, 1, []),
        (4, 4, []),
        (6, 6, []),
    ],
)
def test_clip_cuts_at_both_ends(lo, hi, expected):
    assert clip([(1, 3), (5, 8)], lo, hi) == expected


def test_widen_joins_touching_intervals():
    assert widen([(1, 2), (4, 5), (20, 21)], 1) == [(0, 6), (19, 22)]


spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)
intervals = spans.map(normalise)


def points(spans):
    return {point for start, end in spans for point in range(start, end)}


@given(intervals, intervals)
def test_algebra_agrees_with_sets_of_points(left, right):
    assert points(unite(left, right)) == points(left) | points(right)
    assert points(intersect(left, right)) == points(left) & points(right)
    assert points(subtract(left, right)) == points(left) - points(right)
    assert points(complement(left, 5, 30)) == set(range(5, 30)) - points(left)
    assert points(clip(left, 5, 30)) == points(left) & set(range(5, 30))


@given(intervals, intervals)
def test_results_are_normalised(left, right):
    for result in (
        unite(left, right),
        intersect(left, right),
        subtract(left, right),
        complement(left, 5, 30),
        clip(left, 5, 30),
        join(sorted(left)),
    ):
        assert result == normalise(result)


@given(intervals, intervals)
def test_de_morgan_holds(left, right):
    without_either = intersect(complement(left, 0, 40), complement(right, 0, 40))

    assert complement(unite(left, right), 0, 40) == without_either
    assert complement(complement(left, 0, 40), 0, 40) == left


@given(intervals, spans, st.integers(0, 5), st.integers(1, 6))
def test_subtract_widens_like_widen(left, blocks, buffer, at_least):
    blocks = sorted((start, end) for start, end in blocks if start < end)

    result = subtract(left, blocks, buffer=buffer, at_least=at_least)

    plain = subtract(left, widen(blocks, buffer))
    assert result == [span for span in plain if span[1] - span[0] >= at_least]


few_spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda span: (span[0], sum(span))),
    max_size=12,
)


@given(few_spans, st.integers(1, 5))
def test_find_overlaps_counts_the_spans_of_each_instant(spans, count):
    found = find_overlaps(spans, count)

    depths = [sum(start <= instant < end for start, end in spans) for instant in range(50)]
    inside = [any(start <= instant < end for start, end in found) for instant in range(50)]
    assert inside == [depth >= count for depth in depths]
    assert found == normalise(found)
