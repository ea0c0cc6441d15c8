"""`external_id` of bookings and customers: their ids in the client's own system."""

from typing import Any

import pytest

from bookings.models import Booking, Customer
from tests.bookings.booking_drafts import MARTY, NINE
from tests.bookings.test_privacy import erase, export
from tests.world import Caller, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

TEN = {"start": "2026-11-23T10:00:00Z", "end": "2026-11-23T10:30:00Z"}
TAKEN = {"error": "Another booking has this external_id.", "code": "already_exists"}
KNOWN = {**MARTY, "external_id": "crm:7"}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada")


def book(caller: Tenant, ada: Any, **given: Any) -> Any:
    answer = caller.book(**{"resource_id": ada["id"], "customer": MARTY, **NINE, **given})
    assert answer.status == 201, answer.json
    return answer.data


def found(tenant: Caller, query: str) -> list[str]:
    return [row["id"] for row in tenant.get(f"/bookings?{query}").data]


def test_booking_with_a_taken_id_is_refused(tenant: Tenant, ada: Any) -> None:
    first = book(tenant, ada, external_id="A-1")
    other = {"resource_id": ada["id"], "customer": MARTY, **TEN}

    refused = tenant.book(**other, external_id="A-1")
    second = tenant.book(**other).data
    changed = tenant.put(f"/bookings/{second['id']}", {"external_id": "A-1"})

    answers = [(answer.status, answer.error) for answer in (refused, changed)]
    assert answers == [(409, TAKEN)] * 2
    assert (first["external_id"], second["external_id"]) == ("A-1", None)
    assert found(tenant, "sortedBy=asc") == [first["id"], second["id"]]


def test_id_of_a_deleted_booking_is_free(tenant: Tenant, ada: Any) -> None:
    first = book(tenant, ada, external_id="A-1")
    tenant.put(f"/bookings/{first['id']}/cancel")
    tenant.delete(f"/bookings/{first['id']}")

    assert book(tenant, ada, external_id="A-1")["external_id"] == "A-1"


def test_changed_id_is_logged(tenant: Tenant, ada: Any) -> None:
    path = f"/bookings/{book(tenant, ada)['id']}"

    changed = tenant.put(path, {"external_id": "A-1", "customer": {"external_id": "crm:7"}})

    shown = tenant.get(f"{path}?include=logs").data
    assert (changed.status, shown["external_id"]) == (200, "A-1")
    assert [customer["external_id"] for customer in shown["customers"]] == ["crm:7"]
    messages = [log["message"] for log in shown["logs"]]
    assert messages == ["", "Changed: customer external_id, external_id."]


def test_series_has_no_id(tenant: Tenant, ada: Any) -> None:
    rule = {"recurrence": "FREQ=WEEKLY;COUNT=2", "external_id": "A-1"}

    answer = tenant.book(resource_id=ada["id"], **NINE, **rule)

    text = "A series can't have an external id: its bookings can."
    assert (answer.status, answer.error["errors"]) == (422, {"external_id": [text]})


def test_bookings_are_found_by_their_and_their_customers_ids(tenant: Tenant, ada: Any) -> None:
    first = book(tenant, ada, external_id="A-1", customer=KNOWN)
    second = book(tenant, ada, customer=KNOWN, **TEN)
    book(tenant, ada, start="2026-11-23T12:00:00Z", end="2026-11-23T13:00:00Z")
    both = [first["id"], second["id"]]

    assert found(tenant, "external_id=A-1") == found(tenant, "search=external_id:A-1")
    assert found(tenant, "external_id=A-1") == [first["id"]]
    assert found(tenant, "customer_external_id=crm:7&sortedBy=asc") == both
    assert found(tenant, "search=customer.external_id:crm:7&sortedBy=asc") == both


def test_customers_are_found_by_their_ids(tenant: Tenant, ada: Any) -> None:
    """Also by that of an earlier booking; shown is that of the newest."""
    book(tenant, ada, customer=KNOWN)
    book(tenant, ada, customer={**KNOWN, "external_id": "crm:8"}, **TEN)
    later = {"start": "2026-11-23T12:00:00Z", "end": "2026-11-23T13:00:00Z"}
    book(tenant, ada, customer={"name": "Ann", "email": "ann@example.com"}, **later)

    def shown(query: str) -> list[tuple[str, str | None]]:
        return [(row["email"], row["external_id"]) for row in tenant.get(f"/customers{query}").data]

    known = [(KNOWN["email"], "crm:8")]
    assert sorted(shown("")) == [("ann@example.com", None), *known]
    assert shown("?external_id=crm:7") == shown("?external_id=crm:8") == known
    assert shown("?search=external_id:crm:7") == known
    assert shown("?external_id=crm") == []
    assert tenant.get("/customers?search=external_id:crm*").status == 422
    blank = [tenant.get(f"/{path}?external_id=") for path in ("customers", "bookings")]
    assert [(each.status, each.error["errors"]) for each in blank] == [
        (422, {"external_id": ["May not be empty."]})
    ] * 2


@pytest.mark.parametrize("value", ["crm:7", 7, None])
def test_widget_key_sets_no_id(tenant: Tenant, ada: Any, value: Any) -> None:
    customer = {**MARTY, "external_id": value}
    project = tenant.make_project(ada["id"], settings={"enforce_availability": False})

    answer = tenant.widget().post(
        "/bookings",
        {"project_id": project["id"], "external_id": "A-1", "customer": customer, **NINE},
    )

    assert answer.status == 201, answer.json
    meta = {} if value is None else {"external_id": value}
    assert Booking.objects.get().external_id is None
    assert list(Customer.objects.values_list("external_id", "meta")) == [(None, meta)]


def test_id_of_a_customer_is_exported_and_erased(tenant: Tenant, ada: Any) -> None:
    book(tenant, ada, external_id="A-1", customer=KNOWN)

    (exported,) = export(tenant)[1]["data"]["bookings"]
    erase(tenant)

    assert [customer["external_id"] for customer in exported["customers"]] == ["crm:7"]
    assert list(Customer.objects.values_list("external_id", flat=True)) == [None]
    assert Booking.objects.get().external_id == "A-1"
