"""Look-alikes of e-mail addresses are refused at each entry point, in words that say why.

The forms of the back office: tests/office.
"""

from typing import Any

import pytest
from django.test import Client

from apps_config.models import RequestCount
from apps_config.public_limits import PER_ADDRESS, PER_APP
from availability.models import Project, Resource
from bookings.models import Customer, UnverifiedBooking
from tests.bookings.booking_drafts import NINE, span
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

OTHER_LETTERS = "May have no letters except a to z before the @."
NO_DOMAIN = "Must have a valid domain after the @."
LOOK_ALIKES = {
    "vıctim@gmail.com": OTHER_LETTERS,  # dotless i
    "ſam@gmail.com": OTHER_LETTERS,  # long s
    "\u212aim@gmail.com": OTHER_LETTERS,  # the Kelvin sign
    "sam@ſpam.example": NO_DOMAIN,
    "kim@\u212aim.example": NO_DOMAIN,
    "sam@ｓam.example": NO_DOMAIN,  # full width
}
VICTIM = "victim@gmail.com"


@pytest.fixture
def booking(tenant: Tenant) -> Any:
    resource = tenant.make_resource("Ada", email="ada@example.com")["id"]
    tenant.make_project(resource, availability={"length": "1 hour"})
    customer = {"name": "Victim", "email": VICTIM}
    return tenant.book(resource_id=resource, customer=customer, **NINE).data


def requests(tenant: Tenant, booking: Any, address: str) -> dict[str, tuple[str, str, Any, str]]:
    """Entry point -> method, path, body, and the field of the error."""
    app, project = f"/apps/{tenant.app.slug}", str(Project.objects.get().id)
    resource = str(Resource.objects.get().id)
    customer, times = {"name": "Stranger", "email": address}, span("12:00", "13:00")
    both = {"customers": [{"name": "Ann", "email": "ann@b.de"}, customer]}
    of_project = {"project_id": project, "what": "Talk", "customer": customer, **times}
    of_resource = {"resource_id": resource, "what": "Talk", **span("13:00", "14:00"), **both}
    blocked = {"blocked_customers": ["*@b.de", f"*{address}"]}
    return {
        "booking": ("POST", "/bookings", of_project, "customer.email"),
        "second customer": ("POST", "/bookings", of_resource, "customers.1.email"),
        "change": (
            *("PUT", f"/bookings/{booking['id']}"),
            *({"customer": {"email": address}}, "customer.email"),
        ),
        "log-in": ("POST", "/auth", {"email": address, "password": "x" * 12}, "email"),
        "member": ("POST", f"{app}/members", {"email": address}, "email"),
        "new resource": (
            "POST",
            "/resources",
            {"name": "Bo", "timezone": "UTC", "email": address},
            "email",
        ),
        "resource": ("PUT", f"/resources/{resource}", {"email": address}, "email"),
        "password": ("POST", "/resources/resetpassword", {"email": address}, "email"),
        "sender": ("PUT", app, {"settings": {"from_email": address}}, "settings.from_email"),
        "contact": ("PUT", app, {"settings": {"contact_email": address}}, "settings.contact_email"),
        "blocked": ("PUT", app, {"settings": blocked}, "settings.blocked_customers.1"),
        "export": ("GET", f"/customers/export?email={address}", None, "email"),
        "erasure": ("POST", "/customers/erase", {"email": address}, "email"),
    }


@pytest.mark.parametrize("address", LOOK_ALIKES)
def test_lookalikes_are_refused_at_their_field(tenant: Tenant, booking: Any, address: str) -> None:
    asked = requests(tenant, booking, address)

    answers = {name: tenant.call(*request[:3]) for name, request in asked.items()}

    assert {name: (each.status, each.json.get("errors")) for name, each in answers.items()} == {
        name: (422, {request[3]: [LOOK_ALIKES[address]]}) for name, request in asked.items()
    }
    assert list(Customer.objects.values_list("email", flat=True)) == [VICTIM]


@pytest.mark.parametrize("address", LOOK_ALIKES)
def test_public_pages_refuse_lookalikes_and_store_nothing(
    tenant: Tenant, booking: Any, address: str
) -> None:
    """The limits count attempts of addresses only, and a page asks for the address again."""
    project = str(Project.objects.get().id)
    tenant.put(f"/projects/{project}", {"settings": {"verify_email": True}})
    body = {"project_id": project, "customer": {"name": "S", "email": address}}

    answer = tenant.widget().post("/bookings", body | span("12:00", "13:00"))
    page = Client().post(f"/book/{tenant.app.slug}/mine", {"email": address})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"customer.email": [LOOK_ALIKES[address]]},
    )
    assert page.status_code == 422
    assert "Please enter an e-mail address, such as name@example.com." in page.content.decode()
    assert set(RequestCount.objects.values_list("kind", flat=True)) <= {PER_ADDRESS, PER_APP}
    assert not UnverifiedBooking.objects.exists()


@pytest.mark.parametrize("address", ["VICTIM@Gmail.com", "u@müller.de", "u@xn--mller-kva.de"])
def test_addresses_are_accepted_and_shown_as_typed(
    tenant: Tenant, booking: Any, address: str
) -> None:
    asked = requests(tenant, booking, address)

    answers = {name: tenant.call(*request[:3]) for name, request in asked.items()}

    assert {name: each.status for name, each in answers.items() if each.status == 422} == {}
    assert Resource.objects.get(name="Bo").email == address
