"""Pages of listings whose tables may have millions of rows.

Three ways, by what is known of the filter:

- `ListingTally` has its numbers: the total is their sum. A deep page is searched from the nearest
  period's beginning instead of the list's.
- An index has the matching rows in the list's order: count them, walk the index.
- Neither (a range of time, a customer), or few rows: count them in parts of the list, find those of
  the page's parts again and sort them, unless they are most rows of a part. Walking the index of
  the order might look at every row of the app instead.
"""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from django.db import models, transaction
from django.db.models import Count, F, Model, OrderBy, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from apps_config.listing_tally_triggers import SLOTS
from apps_config.models import App, ListingTally
from common.api.pagination import Page

Row = TypeVar("Row", bound=Model)

NARROW = 1000  # so many rows are found and sorted in no time
KEYS_AT_ONCE = 20_000  # read in less time than a bad plan for a LIMIT takes
# Where a list is divided whose matching rows no index has in its order: finely at its beginning,
# where most pages are.
FRACTIONS = (1 / 16, 1 / 4, 1 / 2, 3 / 4)
SHALLOW = 500  # below this offset a query for ids alone is not worth it
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Tally(NamedTuple):
    """The numbers of the rows of a list; `column` is that of the periods, `length` theirs."""

    numbers: QuerySet[ListingTally]
    column: str
    length: timedelta

    def total(self) -> int:
        return self.numbers.aggregate(total=Sum("count"))["total"] or 0

    def by_period(self, *, descending: bool) -> list[tuple[int, int]]:
        """Return each period's number of rows, in the order of the list."""
        sums = self.numbers.values_list("period").annotate(rows=Sum("count"))
        return list(sums.order_by("-period" if descending else "period"))


# How long a list's periods are: some ten thousand rows of a large app.
PERIODS = {
    ListingTally.BOOKINGS: timedelta(weeks=1),
    ListingTally.CUSTOMERS: timedelta(weeks=1),
    ListingTally.DELIVERIES: timedelta(days=1),
}


def tally_of(app: App, listing: str, column: str, **parts: Any) -> Tally:
    """Return the tally of the app's list, or of those parts of it."""
    numbers = ListingTally.objects.filter(app=app, listing=listing, **parts)
    return Tally(numbers, column, PERIODS[listing])


class Anchor(NamedTuple):
    """A place in the list, before its row number `position`; `key` is the column's value there,
    None at either end.
    """

    position: int
    key: Any = None


def fetch_page(
    page: Page,
    rows: QuerySet[Row],
    *,
    tally: Tally | None = None,
    has_index: bool = True,
    whole: Tally | None = None,
) -> tuple[int, list[Row]]:
    """Return the number of rows and those of the page; `rows` is filtered and ordered.

    tally: of the filter. has_index: whether an index has the matching rows in their order. whole:
    of the list without a filter.
    """
    if tally is not None:
        return _fetch_tallied(page, rows, tally)
    if has_index or whole is None:
        total = rows.count()
        return total, _fetch_rows(page, rows, [Anchor(0), Anchor(total)], has_index=has_index)
    return _fetch_in_parts(page, rows, whole)


def _fetch_tallied(page: Page, rows: QuerySet[Row], tally: Tally) -> tuple[int, list[Row]]:
    if page.start <= SHALLOW:
        total = tally.total()
        return total, _fetch_rows(page, rows, [Anchor(0), Anchor(total)])
    anchors = _period_anchors(rows, tally)
    return anchors[-1].position, _fetch_rows(page, rows, anchors)


def _period_anchors(rows: QuerySet, tally: Tally) -> list[Anchor]:
    """Return the places where periods begin, with both ends of the list; only these if `rows` have
    another order than the periods.
    """
    anchors = [Anchor(0)]
    column, descending = _first_order(rows)
    total = 0
    for period, count in tally.by_period(descending=descending):
        if total and column == tally.column:
            start = EPOCH + (period + descending) * tally.length
            anchors.append(Anchor(total, _key_at(start, rows, column)))
        total += count
    return [*anchors, Anchor(total)]


def _fetch_in_parts(page: Page, rows: QuerySet[Row], whole: Tally) -> tuple[int, list[Row]]:
    parts = _count_parts(rows, _period_anchors(rows, whole))
    total = parts[-1].after.position
    stop = min(page.stop, total)
    if page.start >= stop or total <= NARROW:
        return total, _fetch_rows(page, rows, [Anchor(0), Anchor(total)])
    keys = [
        key
        for part in _page_parts(parts, page.start, stop)
        for key in _part_keys(rows, part, page.start, stop)
    ]
    return total, _rows_of(rows, keys)


class Part(NamedTuple):
    """The rows between two anchors; `whole`: how many the list without a filter has there."""

    before: Anchor
    after: Anchor
    whole: int

    @property
    def rows(self) -> int:
        return self.after.position - self.before.position

    @property
    def is_sparse(self) -> bool:
        """Whether few of the list's rows here match, and all their keys may be read: with a LIMIT,
        PostgreSQL would expect to meet enough of them soon.
        """
        return self.rows <= KEYS_AT_ONCE and 10 * self.rows <= self.whole


def _page_parts(parts: list[Part], start: int, stop: int) -> list[Part]:
    """Return the parts with rows `start` to `stop`; sparse neighbours as one, since one statement
    finds them.
    """
    found: list[Part] = []
    for part in parts:
        if not part.rows or part.after.position <= start or part.before.position >= stop:
            continue
        if found:
            both = Part(found[-1].before, part.after, found[-1].whole + part.whole)
            if both.is_sparse:
                found[-1] = both
                continue
        found.append(part)
    return found


def _count_parts(rows: QuerySet, periods: list[Anchor]) -> list[Part]:
    """Return the parts of the list, in its order.

    One statement counts the rows of all parts, for little more than a plain count: finding the
    rows is what takes the time.
    """
    end = periods[-1].position
    places = [next(one for one in periods if one.position >= part * end) for part in FRACTIONS]
    bounds = sorted({place for place in places if 0 < place.position < end})
    column, descending = _first_order(rows)
    is_before = f"{column}__{'gte' if descending else 'lt'}"
    counts = [Count(column, filter=Q(**{is_before: bound.key})) for bound in bounds]
    named = {f"before_{number}": count for number, count in enumerate(counts)}
    *positions, total = rows.order_by().aggregate(**named, total=Count("*")).values()
    keys = [bound.key for bound in bounds]
    anchors = [Anchor(0), *map(Anchor, positions, keys), Anchor(total)]
    numbers = [0, *(bound.position for bound in bounds), end]
    return [
        Part(before, after, last - first)
        for (before, after), (first, last) in zip(pairwise(anchors), pairwise(numbers), strict=True)
    ]


def _part_keys(rows: QuerySet, part: Part, start: int, stop: int) -> list[Any]:
    """Return the keys of those rows `start` to `stop` of the list that lie in the part."""
    before, after, whole = part
    start, stop = max(start, before.position), min(stop, after.position)
    if 3 * part.rows > 2 * whole:
        # Where most rows match, the index of the order soon leads to some.
        return _page_keys(rows, [before, after], start, stop)
    column, descending = _first_order(rows)
    first, last = (after, before) if descending else (before, after)
    if first.key is not None:
        rows = rows.filter(**{f"{column}__gte": first.key})
    if last.key is not None:
        rows = rows.filter(**{f"{column}__lt": last.key})
    first_row, end = start - before.position, stop - before.position
    if part.is_sparse:
        return list(rows.prefetch_related(None).values_list("pk", flat=True))[first_row:end]
    keys = _sorted_without_index(rows).prefetch_related(None).values_list("pk", flat=True)
    return list(keys[first_row:end])


def _key_at(moment: datetime, rows: QuerySet, column: str) -> datetime | uuid.UUID:
    """Return the column's least value at that moment; ids begin with their milliseconds."""
    if isinstance(rows.model._meta.get_field(column), models.UUIDField):
        return uuid.UUID(int=(moment - EPOCH) // timedelta(milliseconds=1) << 80)
    return moment


def _first_order(rows: QuerySet) -> tuple[str, bool]:
    """Return the first column of the order, and whether it descends."""
    order = rows.query.order_by[0]
    if not (isinstance(order, OrderBy) and isinstance(order.expression, F)):
        raise TypeError("the rows have no explicit order")
    return order.expression.name, order.descending  # type: ignore[attr-defined]  # missing stub


def _fetch_rows(
    page: Page, rows: QuerySet[Row], anchors: list[Anchor], *, has_index: bool = True
) -> list[Row]:
    """Return the rows of the page; `anchors` are in the order of the list, with both its ends."""
    total = anchors[-1].position
    stop = min(page.stop, total)
    if page.start >= stop:
        return []
    if total <= NARROW:
        return list(_sorted_without_index(rows)[page.start : stop])
    if not has_index:
        keys = _sorted_without_index(rows).prefetch_related(None).values_list("pk", flat=True)
        return _rows_of(rows, list(keys[page.start : stop]))
    if page.start <= SHALLOW:
        return list(rows[page.start : stop])
    return _rows_of(rows, _page_keys(rows, anchors, page.start, stop))


def _sorted_without_index(rows: QuerySet[Row]) -> QuerySet[Row]:
    """Return the rows in the same order, but by an expression that no index has: PostgreSQL has to
    find them all first, as for the count. Otherwise it expects to meet enough of them on its way
    through the index of the order.
    """
    name, descending = _first_order(rows)
    column = Coalesce(name, name)
    others = rows.query.order_by[1:]
    return rows.order_by(column.desc() if descending else column.asc(), *others)


def _page_keys(rows: QuerySet, anchors: list[Anchor], start: int, stop: int) -> list[Any]:
    """Return the keys of rows `start` to `stop`, counted from the anchor that is nearest."""
    keys = rows.prefetch_related(None).values_list("pk", flat=True)
    column, descending = _first_order(rows)
    before = next(anchor for anchor in reversed(anchors) if anchor.position <= start)
    after = next(anchor for anchor in anchors if anchor.position >= stop)
    older, newer = f"{column}__lt", f"{column}__gte"
    if start - before.position <= after.position - stop:
        if before.key is not None:
            keys = keys.filter(**{older if descending else newer: before.key})
        skipped = start - before.position
        return list(keys[skipped : skipped + stop - start])
    if after.key is not None:
        keys = keys.filter(**{newer if descending else older: after.key})
    skipped = after.position - stop
    return list(keys.reverse()[skipped : skipped + stop - start])[::-1]


def _rows_of(rows: QuerySet[Row], keys: list[Any]) -> list[Row]:
    found = {row.pk: row for row in rows.order_by().filter(pk__in=keys)}
    return [found[key] for key in keys if key in found]


# --- Merging --------------------------------------------------------------------------------------
BATCH = 1000


def merge_rows_of_ended_periods(*, now: datetime) -> Iterator[int]:
    """Merge the slots of periods that ended long ago into one; yield the numbers of rows.

    A row that is being changed is left for the next run. No trigger writes the last slot.
    """
    for listing, length in PERIODS.items():
        ended = (now - EPOCH) // length - 4
        split = ListingTally.objects.filter(listing=listing, period__lt=ended).exclude(slot=SLOTS)
        while True:
            with transaction.atomic():
                locked = split.select_for_update(skip_locked=True).order_by("pk")[:BATCH]
                merged = _merge(list(locked))
            if not merged:
                break
            yield merged


def _merge(split: list[ListingTally]) -> int:
    sums: dict[tuple, int] = {}
    for row in split:
        key = (row.app_id, row.listing, row.part, row.period)
        sums[key] = sums.get(key, 0) + row.count
    ListingTally.objects.filter(pk__in=[row.pk for row in split]).delete()
    for app_id, listing, part, period in sorted(sums):
        count = sums[app_id, listing, part, period]
        place = {"app_id": app_id, "listing": listing, "part": part, "period": period}
        changed = ListingTally.objects.filter(slot=SLOTS, **place).update(count=F("count") + count)
        if not changed:
            ListingTally.objects.create(slot=SLOTS, count=count, **place)
    return len(split)
