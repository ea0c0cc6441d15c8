"""Addresses of older releases in their canonical form; look-alikes of then are nobody's address."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from apps_config.listing_tally_triggers import AddListingTally
from apps_config.models import Account, Invitation, ListingTally
from availability.models import Resource
from bookings.models import AppCustomer, Booking, Customer, UnverifiedBooking
from notifications.models import Suppression
from tests.bookings.booking_drafts import NINE
from tests.world import NOW, Tenant

pytestmark = [
    pytest.mark.usefixtures("clock"),
    pytest.mark.both_databases,
    pytest.mark.django_db(transaction=True),
]

CUSTOMERS = import_module("bookings.migrations.0023a_fill_customer_address")
RESOURCES = import_module("availability.migrations.0024_resource_address")
SUPPRESSIONS = import_module("notifications.migrations.0024_suppression_address")
ACCOUNTS = import_module("apps_config.migrations.0014_canonical_accounts")


def apps_after(label: str, name: str) -> Any:
    """The models as this migration sees them."""
    return MigrationLoader(connection).project_state((label, name)).apps


def test_customers_of_older_releases(tenant: Tenant) -> None:
    typed = {
        "Ann+x@Example.com": ("ann+x@example.com", "ann@example.com"),
        "ann+X@example.COM": ("ann+x@example.com", "ann@example.com"),
        "u@müller.de": ("u@xn--mller-kva.de", "u@xn--mller-kva.de"),
        "U@XN--mller-kva.de": ("u@xn--mller-kva.de", "u@xn--mller-kva.de"),
        "victim@gmail.com": ("victim@gmail.com", "victim@gmail.com"),
        "victim@gmaıl.com": ("victim@xn--gmal-nza.com", "victim@xn--gmal-nza.com"),
        # The older release took these for somebody else's, and the new one refuses them.
        "vıctim@gmail.com": ("vıctim@gmail.com", "vıctim@gmail.com"),
        "Sam@ſpam.example": ("Sam@ſpam.example", "Sam@ſpam.example"),
        "": ("", ""),
    }
    resources = [tenant.make_resource(email or "erased")["id"] for email in typed]
    for email, resource in zip(typed, resources, strict=True):
        booking = tenant.book(resource_id=resource, **NINE).data["id"]
        Customer.objects.filter(booking=booking).update(email=email, address="", limit_key="")
    UnverifiedBooking.objects.create(
        **{"app": tenant.app, "email": "Ann+x@Example.com", "zone": "UTC", "expires_at": NOW},
        project_id=tenant.make_project(*resources)["id"],
        created_at=NOW,
    )
    UnverifiedBooking.objects.update(limit_key="")
    Booking.objects.filter(customers__email="victim@gmail.com").update(deleted_at=NOW)

    for _ in range(2):  # it can be run again
        with connection.schema_editor(atomic=False) as editor:
            CUSTOMERS.fill_addresses(apps, editor)
            CUSTOMERS.count_customers(None, editor)
            AddListingTally(CUSTOMERS.CUSTOMERS).add(None, editor)

    rows = Customer.objects.values_list("email", "address", "limit_key")
    assert {email: tuple(forms) for email, *forms in rows} == typed
    assert UnverifiedBooking.objects.get().limit_key == "ann@example.com"
    people = dict(AppCustomer.objects.values_list("address", "bookings"))
    assert people == {
        "ann+x@example.com": 2,
        "u@xn--mller-kva.de": 2,
        "victim@xn--gmal-nza.com": 1,
        "vıctim@gmail.com": 1,
        "Sam@ſpam.example": 1,
    }
    tally = ListingTally.objects.filter(listing=ListingTally.CUSTOMERS)
    assert sum(tally.values_list("count", flat=True)) == len(people)


def test_resources_of_older_releases(tenant: Tenant) -> None:
    typed = {"Ada": "Ada@Example.com", "Ben": "u@müller.de", "Cleo": "c@example.com", "Dan": None}
    for name, email in typed.items():
        tenant.make_resource(name, email=email)
    # What the old constraint allowed: two spellings.
    Resource.objects.filter(name="Cleo").update(email="u@xn--mller-kva.de")
    Resource.objects.update(address=None)

    RESOURCES.fill_addresses(apps_after("availability", "0024_resource_address"), None)

    cleo = Resource.objects.get(name="Cleo")
    assert dict(Resource.objects.values_list("name", "address")) == {
        "Ada": "ada@example.com",
        "Ben": "u@xn--mller-kva.de",
        "Cleo": f"{cleo.id} u@xn--mller-kva.de",
        "Dan": None,
    }
    assert cleo.email == "u@xn--mller-kva.de"


def test_suppressions_of_older_releases(tenant: Tenant) -> None:
    def suppress(address: str, reason: str = "bounced") -> Any:
        return Suppression.objects.create(
            app=tenant.app, address=address, reason=reason, created_at=NOW
        )

    suppress("u@müller.de")
    second = suppress("u@müller.de", "unsubscribed")
    first = suppress("u@xn--mller-kva.de")
    other = suppress("a@ſpam.example")
    SUPPRESSIONS.make_canonical(apps, None)

    assert dict(Suppression.objects.values_list("id", "address")) == {
        first.id: "u@xn--mller-kva.de",
        second.id: "u@xn--mller-kva.de",
        other.id: "a@ſpam.example",
    }


def test_accounts_and_invitations_of_older_releases(tenant: Tenant) -> None:
    for email in ("Ann@Example.com", "u@müller.de", "ı@example.com"):
        Account.objects.create(email=email)
        Invitation.objects.create(
            app=tenant.app, email=email, role="viewer", sent_at=NOW, expires_at=NOW
        )
    Account.objects.create(email="U@MÜLLER.de")

    ACCOUNTS.make_canonical(apps, None)

    forms = {"ann@example.com", "u@xn--mller-kva.de", "ı@example.com"}
    assert set(Account.objects.values_list("email", flat=True)) == {*forms, "U@MÜLLER.de"}
    assert set(Invitation.objects.values_list("email", flat=True)) == forms
