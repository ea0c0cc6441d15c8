"""Pages of listings, and the numbers of rows of the longest lists (`ListingTally`)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import F, Model, QuerySet, Sum

from apps_config.listing_tally_triggers import SLOTS
from apps_config.models import App, ListingTally
from common.api.pagination import Page

Row = TypeVar("Row", bound=Model)

# Up to so many keys are read without a LIMIT. For a LIMIT, PostgreSQL may follow the index of the
# order, and read most rows of the app until it has met those that match.
FEW = 20_000
# From this row on, the rows that OFFSET skips are read in the index alone.
DEEP = 1000


def tally_of(app: App, listing: str, **parts: Any) -> QuerySet[ListingTally]:
    """Return the tally of the app's list, or of those parts of it."""
    return ListingTally.objects.filter(app=app, listing=listing, **parts)


def fetch_page(
    page: Page, rows: QuerySet[Row], *, tally: QuerySet[ListingTally] | None = None
) -> tuple[int, list[Row]]:
    """Return the number of rows and those of the page; `rows` is filtered and ordered.

    tally: counts `rows`; without it, the database counts them.
    """
    total = rows.count() if tally is None else tally.aggregate(total=Sum("count"))["total"] or 0
    stop = min(page.stop, total)
    if page.start >= stop:
        return total, []
    if total <= page.limit:
        return total, list(rows)[:total]
    keys = rows.prefetch_related(None).values_list("pk", flat=True)
    if tally is None and total <= FEW:
        found = rows.filter(pk__in=list(keys)[page.start : stop])
    elif page.start >= DEEP:
        found = rows.filter(pk__in=list(keys[page.start : stop]))
    else:
        found = rows[page.start : stop]
    return total, list(found)


# --- Merging --------------------------------------------------------------------------------------
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# How long a list's periods are: some ten thousand rows of a large app.
PERIODS = {
    ListingTally.BOOKINGS: timedelta(weeks=1),
    ListingTally.CUSTOMERS: timedelta(weeks=1),
    ListingTally.DELIVERIES: timedelta(days=1),
}
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
