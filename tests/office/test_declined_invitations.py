"""Customers' answers to invitations in the back office: on Today, the desk and a booking's page."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.urls import reverse

from apps_config.models import Account, Membership
from bookings.models import Booking
from bookings.services import Actor, Answer, record_response
from tests.office.conftest import logged_in, member_of
from tests.office.test_desk import TODAY, TUESDAY, book, desk_of, get
from tests.office.test_desk import people as people
from tests.world import Tenant


@pytest.fixture
def viewer(tenant: Tenant) -> Account:
    return member_of(tenant, Membership.VIEWER)


def respond(
    booking: Any, response: str = "declined", *, source: str = "calendar", hours: float = 0
) -> None:
    """The customer's answer, so many hours before the present time."""
    row = Booking.objects.get(id=booking["id"])
    at = TUESDAY - timedelta(hours=hours)
    with time_machine.travel(at, tick=False):
        record_response(
            app=row.app,
            customer=row.customers.get(),
            answer=Answer(response, at),
            actor=Actor("Ada's calendar" if source == "calendar" else "customer", source),
            now=at,
        )


def page_of(account: Account, booking: Any, **headers: str) -> str:
    path = reverse("admin:bookings_booking_change", args=[booking["id"]])
    with time_machine.travel(TUESDAY, tick=False):
        return logged_in(account).get(path, headers=headers).content.decode()


def declined(account: Account) -> list[tuple[str, str]]:
    lines = get(account, TODAY).context["declined"]
    return [(line["who"], line["booking"].event.what) for line in lines]


def test_desk_marks_declined_bookings(tenant: Tenant, people: Any, viewer: Account) -> None:
    respond(people["first"])
    respond(people["asked"], "tentative")

    column = desk_of(viewer).columns[0]

    assert [(entry.title, str(entry.declined)) for entry in column.entries] == [
        ("Check-up · Una", "declined"),
        ("Check-up · Ann", ""),
        ("Lunch", ""),
    ]


def test_today_lists_declined_invitations_since_yesterday(
    tenant: Tenant, people: Any, viewer: Account, make_tenant: Any
) -> None:
    times = {"day": "08", "start": "09:00", "end": "09:30"}
    later = book(tenant, people["ada"], name="Ida", **times)
    earlier = book(tenant, people["bob"], name="Bea", **times)
    other = make_tenant()
    foreign = book(other, other.make_resource("Eve"), name="Eve", **times)
    respond(later, hours=30)
    respond(earlier, hours=40)  # the day before yesterday
    respond(people["first"])
    respond(people["asked"], "accepted")
    respond(foreign)

    before = declined(viewer)
    tenant.put(f"/bookings/{people['first']['id']}/cancel", {})

    assert before == [("Una", "Check-up"), ("Ida", "Check-up")]
    assert declined(viewer) == [("Ida", "Check-up")]


def test_page_of_a_booking_shows_the_answer(tenant: Tenant, people: Any, viewer: Account) -> None:
    unanswered = page_of(viewer, people["first"])
    respond(people["first"], source="mail")
    page = page_of(viewer, people["first"])

    assert "Answer to the invitation" not in unanswered
    assert "declined (e-mail), Tue 5 Mar 2030, 10:20 CET" in page
    assert "Invitation answered by the customer by e-mail" in page
    assert "The customer has declined the invitation." in page


def test_answer_is_in_the_language_of_the_page(
    tenant: Tenant, people: Any, viewer: Account
) -> None:
    respond(people["first"])

    page = page_of(viewer, people["first"], accept_language="de")

    assert "abgelehnt (Kalender)" in page
    assert "Der Kunde hat die Einladung abgelehnt." in page
    assert "Einladung beantwortet im verbundenen Kalender" in page
