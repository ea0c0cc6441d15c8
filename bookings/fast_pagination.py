"""Pages of bookings: exact totals without counting, deep pages without scanning all rows before.

The total of an app, or of its bookings in some states, is the sum of a few tally rows. A deep page
is located in the narrow index, from the nearer end; only its rows are read completely.
"""

import uuid
from collections.abc import Collection, Sequence

from django.db.models import OrderBy, QuerySet, Sum

from apps_config.models import App
from bookings.models import Booking, BookingTally
from common.api.pagination import Page

SHALLOW = 500  # below this offset the extra query for ids is not worth it


def tallied_total(app: App, states: Collection[str] | None) -> int:
    """Return the exact number of the app's bookings, or of those in `states`."""
    tally = BookingTally.objects.filter(app=app)
    if states is not None:
        tally = tally.filter(state__in=states)
    return tally.aggregate(total=Sum("count"))["total"] or 0


def page_ids(
    rows: QuerySet[Booking], order: Sequence[OrderBy], page: Page, total: int
) -> list[uuid.UUID]:
    """Return the ids of the page in order, counted from the nearer end."""
    stop = min(page.stop, total)
    if page.start >= stop:
        return []
    if page.start <= total // 2:
        return list(rows.order_by(*order).values_list("id", flat=True)[page.start : stop])
    backwards = rows.order_by(*order).reverse().values_list("id", flat=True)
    return list(backwards[total - stop : total - page.start])[::-1]


def page_rows(
    rows: QuerySet[Booking],
    order: Sequence[OrderBy],
    page: Page,
    total: int,
    shown: QuerySet[Booking],
) -> list[Booking]:
    """Return the bookings of the page; `shown` is `rows` with the joins of the response."""
    if page.start <= SHALLOW:
        return list(shown.order_by(*order)[page.start : page.stop])
    ids = page_ids(rows, order, page, total)
    found = {booking.id: booking for booking in shown.filter(id__in=ids)}
    return [found[identifier] for identifier in ids if identifier in found]
