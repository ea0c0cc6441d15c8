"""One line for each address of an app's customers, with counts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Min, OrderBy, Q, QuerySet, Window
from django.db.models.functions import RowNumber, Upper

from apps_config.models import App
from availability.filters import Condition, by_text
from bookings.models import Booking, Customer
from scheduling.api.instants import format_stamp
from scheduling.api.pagination import Page
from scheduling.api.query import SearchTerm

Record = dict[str, Any]

CUSTOMER_SEARCH: Mapping[str, Condition] = {
    name: by_text(name) for name in ("email", "name", "phone")
}


# By what the lines can be sorted: their columns.
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
) -> tuple[int, list[Record]]:
    """How many there are, and those of the page. Three queries.

    A line is shown where one of its bookings matches, and counts all of them. changes: bookings
    of which one has to be theirs.
    """
    rows = Customer.objects.filter(booking__app=app, booking__deleted_at=None)
    # By the address's index; in it only upper case is known.
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
    return total, [_record(line, latest[line["address"]]) for line in lines]


def _counted(rows: QuerySet[Customer], now: datetime) -> QuerySet:
    is_upcoming = Q(booking__event__end__gt=now, booking__completed=False)
    return rows.order_by().values("address").annotate(
        bookings=Count("booking", distinct=True),
        upcoming=Count("booking", distinct=True, filter=is_upcoming),
        first=Min("booking__created_at"),
        last=Max("booking__created_at"),
    )  # fmt: skip


def _latest(rows: QuerySet[Customer], addresses: Sequence[str]) -> dict[str, Customer]:
    """Each address's newest snapshot."""
    newest = Window(
        RowNumber(),
        partition_by=F("address"),
        order_by=[F("booking__created_at").desc(), F("id").desc()],
    )
    found = rows.filter(address__in=addresses).annotate(place=newest).filter(place=1)
    return {customer.address: customer for customer in found}


def _record(line: Mapping[str, Any], latest: Customer) -> Record:
    return {
        "email": latest.email,
        "name": latest.name,
        "phone": latest.phone,
        "timezone": latest.timezone,
        "bookings": line["bookings"],
        "upcoming": line["upcoming"],
        "first_booking_at": format_stamp(line["first"]),
        "last_booking_at": format_stamp(line["last"]),
    }
