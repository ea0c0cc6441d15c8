"""The numbers of rows that were there before the triggers, counted while clients write."""

from importlib import import_module
from typing import Any

import pytest
from django.db import connection

from apps_config.listing_tally_triggers import AddListingTally
from apps_config.models import ListingTally
from bookings.models import AppCustomer, Booking, Customer
from tests.bookings.booking_drafts import NINE
from tests.world import NOW, Tenant

pytestmark = [
    pytest.mark.usefixtures("clock"),
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
]

LISTS = import_module("bookings.migrations.0016_listing_tallies")
PEOPLE = import_module("bookings.migrations.0023a_fill_customer_address")


def numbers() -> tuple[list[Any], list[Any]]:
    """Tallies of the bookings without zeros, and the customers; both as the database has them."""
    tallies = ListingTally.objects.filter(listing=ListingTally.BOOKINGS).exclude(count=0)
    columns = ("app_id", "address", "bookings", "first_booking_at", "last_booking_at")
    return (
        sorted(tallies.values_list("app_id", "part", "period", "count")),
        sorted(AppCustomer.objects.values_list(*columns)),
    )


def run_migration() -> None:
    with connection.schema_editor(atomic=False) as editor:
        added = AddListingTally(LISTS.BOOKINGS)
        added.remove(None, editor)
        added.add(None, editor)
        PEOPLE.count_customers(None, editor)
        AddListingTally(PEOPLE.CUSTOMERS).add(None, editor)


def book(tenant: Tenant, resource: Any, email: str) -> Any:
    customer = {"name": "Ann", "email": email}
    answer = tenant.book(resource_id=resource["id"], customer=customer, **NINE)
    assert answer.status == 201, answer.json
    return answer.data


def test_the_rows_from_before_are_counted(tenant: Tenant) -> None:
    resources = [tenant.make_resource(name) for name in "ABC"]
    emails = ("ann@example.com", "Ann@Example.com", "bob@example.com")
    made = [book(tenant, *pair) for pair in zip(resources, emails, strict=True)]
    Booking.objects.filter(id=made[2]["id"]).update(deleted_at=NOW)
    before = numbers()
    # As if the previous release had written them, and a trigger had counted one of the bookings.
    AppCustomer.objects.filter(address="ann@example.com").update(bookings=1)
    ListingTally.objects.filter(listing=ListingTally.BOOKINGS).update(count=7)

    run_migration()

    assert [row[2] for row in before[1]] == [2]
    assert numbers() == before


@pytest.mark.postgresql
def test_rows_that_are_written_meanwhile_are_counted_once(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the triggers and the count, a client books, changes a state and deletes."""
    resources = [tenant.make_resource(name) for name in "ABCD"]
    made = [book(tenant, resource, "ann@example.com") for resource in resources[:3]]
    count = LISTS.BOOKINGS.__class__.count_rows

    def count_after_writes(self: Any, vendor: str) -> str:
        if self != LISTS.BOOKINGS:
            return count(self, vendor)
        book(tenant, resources[3], "bob@example.com")
        Booking.objects.filter(id=made[0]["id"]).update(state="cancelled")
        Booking.objects.filter(id=made[1]["id"]).update(deleted_at=NOW)
        Customer.objects.filter(booking=made[2]["id"]).update(address="cyd@example.com")
        return count(self, vendor)

    monkeypatch.setattr(LISTS.BOOKINGS.__class__, "count_rows", count_after_writes)
    run_migration()

    tallies = ListingTally.objects.filter(listing=ListingTally.BOOKINGS)
    sums: dict[str, int] = {}
    for state, number in tallies.values_list("part", "count"):
        sums[state] = sums.get(state, 0) + number
    assert {state: number for state, number in sums.items() if number} == {
        "cancelled": 1,
        "confirmed": 2,
    }
    people = AppCustomer.objects.order_by("address").values_list("address", "bookings")
    assert list(people) == [("ann@example.com", 1), ("bob@example.com", 1), ("cyd@example.com", 1)]
