"""The search of every page (Ctrl+K): what is found, for whom, and at which cost."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps_config.models import Account, Membership
from availability.models import Event
from tests.accessibility import find_faults, load_axe
from tests.office.conftest import Enter, Visit
from tests.queries import Queries
from tests.world import Tenant


def results(client: Client, term: str) -> list[tuple[str, str]]:
    """(title, kind) of what is found."""
    answer = client.get("/admin/search/", {"s": term, "extended": "1"})
    assert answer.status_code == 200
    found = answer.context["results"] if answer.context else []
    return [(result.title, result.description) for result in found]


@pytest.fixture
def booking(tenant: Tenant) -> Any:
    ada = tenant.make_resource("Dr. Ada Lovelace", timezone="Europe/Berlin")
    tenant.make_project(ada["id"], name="Lovely check-up")
    times = {"start": "2030-03-05 09:00:00", "end": "2030-03-05 09:30:00"}
    customer = {"name": "Marty McFly", "email": "marty@example.com", "phone": "+49 40 12345"}
    return tenant.book(resource_id=ada["id"], customer=customer, what="Visit", **times).data


BOOKED = ("Marty McFly – Visit, Tue 5 Mar 2030, 09:00 CET", "Booking, confirmed")
PERSON = ("Marty McFly", "Customer, marty@example.com")


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("mcfly marty", [BOOKED, PERSON]),
        ("MARTY@", [BOOKED, PERSON]),
        ("40 123 45", [BOOKED, PERSON]),
        ("lovel", [("Dr. Ada Lovelace", "Resource"), ("Lovely check-up", "Project")]),
        ("webhooks", [("Webhooks", "Page")]),
        ("time zone", [("Time zone", "Setting")]),
        (
            "remind",
            [
                ("Projects", "Page"),
                ("Deliveries", "Page"),
                ("E-mail templates", "Page"),
                ("Apps", "Page"),
                ("Reminders", "Setting"),
            ],
        ),
        ("opening hours", [("Resources", "Page"), ("Schedules", "Page")]),
        ("staff", [("Resources", "Page")]),
        ("ma", []),
        ("nobody", []),
        (" ", []),
        ("\0", []),
        ("%", []),
    ],
)
@pytest.mark.matrix
def test_results_of_each_term(
    tenant: Tenant, booking: Any, enter: Enter, term: str, found: list[tuple[str, str]]
) -> None:
    shown = results(enter(tenant, Membership.VIEWER), term)

    own = [result for result in shown if result[1] != "Page" or result in found]
    assert [result for result in own if result[1] != "Setting" or result in found] == found


def test_upcoming_booking_comes_first(tenant: Tenant, booking: Any, enter: Enter) -> None:
    """Also before a later one that was made afterwards, and before past and cancelled ones."""
    person = {"name": "Marty McFly", "email": "marty@example.com"}
    resource = str(tenant.app.resources.get().pk)

    def book(day: str, what: str) -> Any:
        times = {"start": f"{day} 09:00:00", "end": f"{day} 09:30:00"}
        return tenant.book(resource_id=resource, customer=person, what=what, **times).data

    book("2031-03-05", "Later")
    cancelled = book("2030-03-04", "Cancelled")
    tenant.put(f"/bookings/{cancelled['id']}/cancel")
    past = book("2030-03-03", "Past")
    Event.objects.filter(bookings=past["id"]).update(
        start=timezone.now() - timedelta(days=2), end=timezone.now() - timedelta(days=1)
    )

    found = [title for title, kind in results(enter(tenant), "mcfly") if "Booking" in kind]

    names = [title.partition(",")[0].partition(" – ")[2] for title in found]
    assert names == ["Visit", "Later", "Cancelled", "Past"]


def test_a_booking_is_found_by_its_id(tenant: Tenant, booking: Any, enter: Enter) -> None:
    client = enter(tenant, Membership.VIEWER)

    assert results(client, booking["id"]) == [BOOKED]
    assert results(client, str(uuid.uuid4())) == []


def test_another_app_is_not_searched(tenant: Tenant, booking: Any, enter: Enter) -> None:
    other = Tenant("other")
    client = enter(other, Membership.OWNER)

    terms = ("mcfly", "lovel", "marty@example.com", booking["id"])
    assert [results(client, term) for term in terms] == [[]] * 4


def test_removed_membership_applies_at_once(tenant: Tenant, booking: Any, enter: Enter) -> None:
    second = Tenant("second")
    client = enter(tenant, Membership.VIEWER)
    account = Account.objects.get(memberships__app=tenant.app)
    Membership.objects.create(account=account, app=second.app, role=Membership.VIEWER)
    before = results(client, "mcfly")

    Membership.objects.filter(account=account, app=tenant.app).delete()

    assert (len(before), results(client, "mcfly")) == (2, [])


def test_query_count_is_constant(tenant: Tenant, booking: Any, enter: Enter) -> None:
    client, counts = enter(tenant, Membership.VIEWER), []
    results(client, "mcfly")
    for number in (0, 3):
        for day in range(number):
            times = {"start": f"2030-04-0{day + 1} 09:00:00", "end": f"2030-04-0{day + 1} 09:30:00"}
            customer = {"name": "Ann McFly", "email": f"ann-{day}@example.com"}
            resource = str(tenant.app.resources.get().pk)
            assert tenant.book(resource_id=resource, customer=customer, **times).status == 201
        with Queries(connection) as queries:
            found = results(client, "mcfly")
        counts.append((len(queries), len(found)))

    assert counts == [(counts[0][0], 2), (counts[0][0], 8)]


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.deep)])
def test_dialog_opens_the_next_booking_by_keyboard(
    visit: Callable[..., Visit], office: Tenant, ada: Any, viewer: Account, width: int
) -> None:
    start = timezone.now() + timedelta(days=1)
    times = {"start": start.isoformat(), "end": (start + timedelta(minutes=30)).isoformat()}
    booking = office.book(resource_id=ada["id"], **times).data
    shown = visit(viewer, "/admin/", width=width)
    page = shown.page

    # Alpine has bound its listeners once the dialog has data.
    page.wait_for(
        "!!document.querySelector('#search-input-command')?.closest('[x-data]')._x_dataStack"
    )
    page.evaluate(
        "dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, bubbles: true}))"
    )
    page.wait_for("document.activeElement.id === 'search-input-command'")
    page.type("mcfly")
    page.press("ArrowDown")
    page.wait_for("!!document.querySelector('#command-results-list a')")
    found = page.texts("#command-results-list a")
    shown.page.save_screenshot(f"search-{width}")
    faults = find_faults(page, load_axe())
    page.press("Enter")
    page.wait_for(f"location.pathname === '/admin/bookings/booking/{booking['id']}/change/'")

    assert len(found) == 2
    assert ["Booking, confirmed" in found[0], "marty@example.com" in found[1]] == [True, True]
    assert faults == []
