"""What customers read of bookings of several units, people or steps; the move of a visit."""

from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.test import Client

from bookings.models import Booking
from bookings.pages.action_links import action_url
from bookings.pages.email_links import booking_facts
from notifications.mail import render_mail
from notifications.mail.template_editing import letter_for_booking
from notifications.models import EmailTemplate
from tests.booking_pages.test_book_page import Shown
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

MARTY = {"name": "Marty", "email": "marty@example.com"}
NINE = {"start": "2026-11-24T09:00:00Z", "end": "2026-11-24T10:30:00Z"}
STEPS = "09:00 – 09:30 cleaning (Hanna)\n09:30 – 10:30 check-up (Ben)"


@pytest.fixture
def visit(tenant: Tenant) -> Booking:
    """A cleaning by Hanna, then a check-up by Ben, who is not the first dentist."""
    hanna, ada, ben = (tenant.make_resource(name)["id"] for name in ("Hanna", "Ada", "Ben"))
    steps = [
        {"name": "cleaning", "length": "30 mins", "resources": [hanna]},
        {"name": "check-up", "length": "1 hour", "resources": [ada, ben]},
    ]
    terms = {"timeslot_increments": "30 mins", "to": "2 weeks"}
    project = tenant.post(
        "/projects", {"name": "Visit", "steps": steps, "availability": terms}
    ).data
    chosen = {"resources": {"check-up": ben}, "customer": MARTY}
    answer = tenant.book(project_id=project["id"], **NINE, **chosen)
    assert answer.status == 201
    return Booking.objects.get(id=answer.data["id"])


def test_a_visit_moves_with_its_people(visit: Booking) -> None:
    parts = urlsplit(action_url(visit, "reschedule", visit.event.end))
    link, client = f"{parts.path}?{parts.query}", Client()
    later = "2026-11-25T13:00:00+00:00/2026-11-25T14:30:00+00:00"

    page = Shown.of(client.get(f"{link}&day=2026-11-25"))
    moved = client.post(link, urlencode({"time": later}), "application/x-www-form-urlencoded")

    assert STEPS in page.html
    assert f'value="{later}"' in page.html
    assert moved.status_code == 200
    now = Booking.objects.get(id=visit.id)
    assert [(step.name, step.start.hour, step.resources[0].name) for step in now.steps()] == [
        ("cleaning", 13, "Hanna"),
        ("check-up", 13, "Ben"),
    ]


def test_mails_have_the_steps(visit: Booking) -> None:
    rows = Booking.objects.select_related("app", "event", "resource", "project")
    letter = letter_for_booking(rows.get(id=visit.id), "confirmed_customer", EmailTemplate())

    text = render_mail(letter, language="en").text

    lines = [line.strip() for line in text.splitlines()]
    steps = [line for line in lines if line.endswith(("(Hanna)", "(Ben)"))]
    assert [step.removeprefix("Steps:").strip() for step in steps] == STEPS.split("\n")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"quantity": 3}, {"What": "3 × Bike"}),
        ({"party_size": 6}, {"What": "Bike", "People": "6"}),
    ],
)
def test_numbers_of_a_booking(tenant: Tenant, given: Any, expected: dict[str, str]) -> None:
    bikes = tenant.make_resource("Bikes", capacity=4, party={"min": 1, "max": 6})
    booked = tenant.book(resource_id=bikes["id"], what="Bike", customer=MARTY, **NINE, **given)

    facts = dict(booking_facts(Booking.objects.get(id=booked.data["id"]), "customer"))

    assert {label: facts[label] for label in expected} == expected
    assert {"What", "When", "With", *expected} == facts.keys()
