"""The list of an app's customers: one entry per address, with counts."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import SimpleNamespace

from django.core.exceptions import ValidationError
from django.db.models import Count, F, Q, QuerySet

from apps_config.models import App
from bookings.models import AppCustomer, Booking, Customer
from bookings.serializers.customers import PersonSerializer
from bookings.services.customer_notes import notes_of
from common.api.query import SearchTerm
from common.api.search_conditions import (
    Condition,
    address_with_wildcards,
    exact_text,
    text_with_wildcards,
)
from common.email_address import canonical_pattern
from common.openapi.component_registry import Json


def _by_address(term: SearchTerm) -> Q:
    """Match the canonical address; the text of a wildcard is compared with it in that form too."""
    with suppress(ValidationError):
        term = term._replace(value=canonical_pattern(term.value))
    return address_with_wildcards("address")(term)


CUSTOMER_SEARCH: Mapping[str, Condition] = {
    "email": _by_address,
    "external_id": exact_text("external_id"),
    "name": text_with_wildcards("name"),
    "phone": text_with_wildcards("phone"),
}


# Sort keys of the list -> columns.
PEOPLE_ORDERS = {
    "last_booking_at": "last_booking_at",
    "first_booking_at": "first_booking_at",
    "bookings": "bookings",
    "email": "address",
}


def search_customers(
    app: App, terms: Sequence[SearchTerm], changes: QuerySet[Booking] | None = None
) -> QuerySet[AppCustomer]:
    """Return the app's customers one of whose bookings matches, for each term.

    changes: restrict to customers of these bookings.
    """
    people = AppCustomer.objects.filter(app=app)
    snapshots = _all_snapshots(app)
    for term in terms:
        if term.field == "email":
            people = people.filter(CUSTOMER_SEARCH[term.field](term))
            continue
        matching = snapshots.filter(CUSTOMER_SEARCH[term.field](term))
        people = people.filter(address__in=matching.values("address"))
    if changes is not None:
        changed = snapshots.filter(booking__in=changes)
        people = people.filter(address__in=changed.values("address"))
    return people


def customer_records(people: Sequence[AppCustomer], now: datetime) -> list[Json]:
    """Return the records of customers of one app. Two queries."""
    if not people:
        return []
    snapshots = _snapshots_of(people)
    latest = _latest(snapshots, people)
    upcoming = _upcoming(snapshots, now)
    notes = notes_of(people)
    return [
        PersonSerializer.render(
            SimpleNamespace(
                bookings=person.bookings,
                upcoming=upcoming.get(person.address, 0),
                first=person.first_booking_at,
                last=person.last_booking_at,
                latest=latest[person.address],
                note=notes.get((person.app_id, person.address)),
            )
        )
        for person in people
        if person.address in latest
    ]


def _all_snapshots(app: App) -> QuerySet:
    rows = Customer.objects.filter(booking__app=app, booking__deleted_at=None)
    return rows.exclude(address="").order_by()


def _snapshots_of(people: Sequence[AppCustomer]) -> QuerySet:
    """Return the snapshots of people of one app.

    Compares the app of the snapshots: they have no index by app. With the app of the bookings,
    PostgreSQL reads all bookings of an app that has grown since the last ANALYZE.
    """
    return Customer.objects.order_by().filter(
        app=people[0].app_id,
        address__in=[person.address for person in people],
        booking__deleted_at=None,
    )


def _latest(snapshots: QuerySet, people: Sequence[AppCustomer]) -> dict[str, Customer]:
    """Return the newest snapshot of each address: one made with the last booking."""
    moments = {person.last_booking_at for person in people}
    rows = snapshots.filter(booking__created_at__in=moments)
    rows = rows.annotate(made_at=F("booking__created_at")).order_by("made_at", "id")
    return {row.address: row for row in rows}


def _upcoming(snapshots: QuerySet, now: datetime) -> dict[str, int]:
    """Return the number of open bookings that have not ended, of addresses that have any."""
    rows = snapshots.filter(booking__event__end__gt=now, booking__completed=False)
    counts = rows.values_list("address").annotate(count=Count("booking", distinct=True))
    return dict(counts)
