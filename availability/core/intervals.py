"""Operations on half-open intervals of time.

`Intervals` are lists of (start, end) in epoch seconds with start < end, sorted and disjoint;
touching spans are merged. Each function returns such a list.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain

Span = tuple[int, int]
Intervals = list[Span]


def normalise(spans: Iterable[Span]) -> Intervals:
    """Sort and merge spans, dropping empty ones: [(3, 5), (1, 3), (9, 9)] -> [(1, 5)]."""
    return join(sorted(spans))


def join(spans: Iterable[Span]) -> Intervals:
    """Merge spans that are sorted by start, in one linear sweep."""
    joined: Intervals = []
    for start, end in spans:
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            if end > joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def unite(left: Sequence[Span], right: Sequence[Span]) -> Intervals:
    return normalise([*left, *right])


def intersect(left: Sequence[Span], right: Sequence[Span]) -> Intervals:
    """Return the intersection: [(1, 5), (7, 9)], [(4, 8)] -> [(4, 5), (7, 8)]."""
    common: Intervals = []
    i = j = 0
    while i < len(left) and j < len(right):
        start = max(left[i][0], right[j][0])
        end = min(left[i][1], right[j][1])
        if start < end:
            common.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return common


def subtract(
    intervals: Sequence[Span], blocks: Sequence[Span], *, buffer: int = 0, at_least: int = 1
) -> Intervals:
    """Return the intervals without the blocks, each widened by `buffer` seconds on both sides.

    The blocks must be sorted by start and not empty, but may overlap, as events do. Remainders
    shorter than `at_least` seconds are dropped: [(0, 10)], [(2, 5), (3, 4)], buffer=1 -> [(0, 1),
    (6, 10)].
    """
    # One pass widens, joins and subtracts: most of a request's time is spent here.
    left: Intervals = []
    upcoming = iter(intervals)
    start, end = next(upcoming, _PAST_ALL)
    reached = -_FOREVER  # the latest end of the blocks so far, not widened
    least_distance = buffer + at_least + buffer
    for block_start, block_end in chain(blocks, [(_FOREVER, _FOREVER)]):
        if block_start - reached >= least_distance:
            lo, hi = reached + buffer, block_start - buffer
            while end <= hi:
                if end - (start if start > lo else lo) >= at_least:
                    left.append((start if start > lo else lo, end))
                start, end = next(upcoming, _PAST_ALL)
            if hi - (start if start > lo else lo) >= at_least:
                left.append((start if start > lo else lo, hi))
        if block_end > reached:
            reached = block_end
    return left


_FOREVER = 1 << 60
_PAST_ALL = (_FOREVER << 1, _FOREVER << 1)


def find_overlaps(spans: Iterable[Span], count: int) -> Intervals:
    """Return where at least `count` of the spans overlap: [(0, 5), (3, 9)], 2 -> [(3, 5)]."""
    changes = [change for start, end in spans for change in ((start, 1), (end, -1))]
    overlaps: list[Span] = []
    depth = since = 0
    for instant, change in sorted(changes):  # ends before starts: the spans are half-open
        depth += change
        if change == 1 and depth == count:
            since = instant
        elif change == -1 and depth == count - 1:
            overlaps.append((since, instant))
    return join(overlaps)


def complement(intervals: Sequence[Span], lo: int, hi: int) -> Intervals:
    """Return the part of [lo, hi) outside the intervals: [(2, 3)], 0, 9 -> [(0, 2), (3, 9)]."""
    return subtract(join([(lo, hi)]), intervals)


def widen(spans: Iterable[Span], by: int) -> Intervals:
    """Return the spans with `by` seconds added on both sides, as intervals."""
    return normalise((start - by, end + by) for start, end in spans)


def clip(intervals: Sequence[Span], lo: int, hi: int) -> Intervals:
    first = bisect_right(intervals, lo, key=_end)
    last = bisect_left(intervals, hi, lo=first, key=_start)
    clipped = list(intervals[first:last])
    if lo >= hi or not clipped:
        return []
    clipped[0] = (max(clipped[0][0], lo), clipped[0][1])
    clipped[-1] = (clipped[-1][0], min(clipped[-1][1], hi))
    return clipped


def _start(span: Span) -> int:
    return span[0]


def _end(span: Span) -> int:
    return span[1]
