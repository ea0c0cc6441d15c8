"""A page of bookings: exact totals without counting, deep pages without walking there.

The total of an app, or of one state in it, is the sum of a few tally rows. A page far into the
list is found in the narrow index, from the nearer end, and only its rows are read whole.
"""

import uuid
from collections.abc import Collection, Sequence

from django.db.models import OrderBy, QuerySet, Sum

from apps_config.models import App
from bookings.models import Booking, BookingTally
from scheduling.api.pagination import Page

SHALLOW = 500  # up to here the ids cost more than they save


def tallied_total(app: App, states: Collection[str] | None) -> int:
    """How many bookings the app has, or has in these states: exact."""
    tally = BookingTally.objects.filter(app=app)
    if states is not None:
        tally = tally.filter(state__in=states)
    return tally.aggregate(total=Sum("count"))["total"] or 0


def page_ids(
    rows: QuerySet[Booking], order: Sequence[OrderBy], page: Page, total: int
) -> list[uuid.UUID]:
    """The ids of the page, in order, counted from whichever end is nearer."""
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
    """The bookings of the page; `shown` is `rows` with what the answer needs of them."""
    if page.start <= SHALLOW:
        return list(shown.order_by(*order)[page.start : page.stop])
    ids = page_ids(rows, order, page, total)
    found = {booking.id: booking for booking in shown.filter(id__in=ids)}
    return [found[one] for one in ids if one in found]
