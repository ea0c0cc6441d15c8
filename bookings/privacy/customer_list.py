"""The list of an app's customers: one entry per address, with counts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace

from django.db.models import Count, F, Max, Min, OrderBy, Q, QuerySet, Window
from django.db.models.functions import RowNumber, Upper

from apps_config.models import App
from bookings.models import Booking, Customer
from bookings.records import PersonRecord
from common.api.pagination import Page
from common.api.query import SearchTerm
from common.api.search_conditions import Condition, match_text
from common.openapi.records import Json

CUSTOMER_SEARCH: Mapping[str, Condition] = {
    name: match_text(name) for name in ("email", "name", "phone")
}


# Sort keys of the list -> columns.
PEOPLE_ORDERS = {
    "last_booking_at": "last",
    "first_booking_at": "first",
    "bookings": "bookings",
    "email": "address",
}


def list_people(
    app: App,
    terms: Sequence[SearchTerm],
    page: Page,
    now: datetime,
    *,
    order: OrderBy,
    changes: QuerySet[Booking] | None = None,
) -> tuple[int, list[Json]]:
    """Return the number of customers and the records of the page. Three queries.

    An entry is shown if one of its bookings matches, and counts all its bookings. changes: restrict
    to customers of these bookings.
    """
    rows = Customer.objects.filter(booking__app=app, booking__deleted_at=None)
    # Use the index on the address, which is in upper case.
    rows = rows.exclude(email="").annotate(address=Upper("email"))
    shown = rows
    for term in terms:
        matching = rows.filter(CUSTOMER_SEARCH[term.field](term))
        shown = shown.filter(address__in=matching.values("address"))
    if changes is not None:
        changed = rows.filter(booking__in=changes)
        shown = shown.filter(address__in=changed.values("address"))
    total = shown.aggregate(total=Count("address", distinct=True))["total"]
    lines = list(_counted(shown, now).order_by(order, "address")[page.start : page.stop])
    latest = _latest(rows, [line["address"] for line in lines])
    rows_of_page = (SimpleNamespace(**line, latest=latest[line["address"]]) for line in lines)
    return total, [PersonRecord.of(row) for row in rows_of_page]


def _counted(rows: QuerySet, now: datetime) -> QuerySet:
    is_upcoming = Q(booking__event__end__gt=now, booking__completed=False)
    return rows.order_by().values("address").annotate(
        bookings=Count("booking", distinct=True),
        upcoming=Count("booking", distinct=True, filter=is_upcoming),
        first=Min("booking__created_at"),
        last=Max("booking__created_at"),
    )  # fmt: skip


def _latest(rows: QuerySet, addresses: Sequence[str]) -> dict[str, Customer]:
    """Return the newest snapshot of each address."""
    newest = Window(
        RowNumber(),
        partition_by=F("address"),
        order_by=[F("booking__created_at").desc(), F("id").desc()],
    )
    found = rows.filter(address__in=addresses).annotate(target=newest).filter(target=1)
    return {customer.address: customer for customer in found}
