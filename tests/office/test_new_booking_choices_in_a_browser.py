"""How many are booked, and whom a booking takes: the form of a new booking in a real browser."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps_config.models import Account
from bookings.models import Booking
from tests.accessibility import find_faults, load_axe
from tests.browser import Page
from tests.office.conftest import Visit
from tests.office.test_tasks_in_a_browser import Person
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)

DAY = f"{timezone.now().date() + timedelta(days=14)}"
FREE = "document.querySelectorAll('.cal-choices .time-button').length"
SAID = "!document.querySelector('#cal-said').hidden"
SHOWN = (
    "[...document.querySelectorAll('#cal-book [name], #cal-book [data-named]')]"
    ".filter((one) => one.offsetParent && one.closest('#cal-numbers, #cal-any, #cal-named'))"
    ".map((one) => one.dataset.named ?? one.name)"
)


def open_form(
    visit: Callable[..., Visit], editor: Account, resource: Any, project: Any, width: int
) -> Person:
    """The form for ten o'clock, with the project chosen."""
    path = f"/admin/calendar/?resources={resource['id']}&date={DAY}&new=1&start={DAY}T10:00"
    person = Person(visit(editor, path, width=width, height=1100))
    person.page.wait_for(FREE)
    change(person, "#cal-book [name=through]", f"project:{project['id']}")
    return person


def fill_in(person: Person) -> None:
    person.fill("#cal-book [name=name]", "Grace Hopper")
    person.fill("#cal-book [name=email]", "grace@example.com")


def book(person: Person, page: Page, name: str) -> None:
    """Book, and look at the form before it."""
    page.evaluate("document.querySelector('#cal-book [name=through]').scrollIntoView()")
    page.save_screenshot(name)
    assert find_faults(page, load_axe(), "document.getElementById('cal-book')") == []
    person.click("#cal-book [type=submit]")
    page.wait_for(SAID)


def change(person: Person, selector: str, value: str) -> None:
    """Enter a value, and wait for the free times that it leads to."""
    person.page.evaluate(
        f"(() => {{ const field = document.querySelector({selector!r});"
        f" field.value = {value!r};"
        " field.dispatchEvent(new Event('input', {bubbles: true}));"
        " field.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_three_bikes(
    visit: Callable[..., Visit], office: Tenant, editor: Account, width: int
) -> None:
    bikes = office.make_resource("Bikes", capacity=4)
    project = office.make_project(bikes["id"], name="Rental", availability={"to": "366 days"})
    taken = {"start": f"{DAY}T10:00:00Z", "end": f"{DAY}T11:00:00Z", "quantity": 2}
    assert office.book(resource_id=bikes["id"], **taken).status == 201
    person = open_form(visit, editor, bikes, project, width)
    page = person.page
    page.wait_for(f"{FREE} && !document.querySelector('#cal-numbers').hidden")

    shown = page.evaluate(SHOWN)
    change(person, "#cal-book [name=quantity]", "3")
    page.wait_for("document.querySelector('.cal-choices .time-button').textContent !== '10:00'")
    page.evaluate("document.querySelector('.cal-choices .time-button').click()")
    fill_in(person)
    book(person, page, f"new-booking-bikes-{width}")

    made = Booking.objects.get(project__isnull=False)
    assert shown == ["quantity"]
    assert (made.units, made.event.start.hour, made.customers.get().name) == (
        3,
        11,
        "Grace Hopper",
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_a_table_for_six(
    visit: Callable[..., Visit], office: Tenant, editor: Account, width: int
) -> None:
    tables = [
        office.make_resource(f"Table for {size}", party={"min": 1, "max": size})
        for size in (2, 4, 6)
    ]
    ids = [table["id"] for table in tables]
    project = office.make_project(*ids, name="Dinner", availability={"to": "366 days"})
    person = open_form(visit, editor, tables[0], project, width)
    page = person.page
    page.wait_for(f"{FREE} && !document.querySelector('#cal-numbers').hidden")

    shown = page.evaluate(SHOWN)
    change(person, "#cal-book [name=party_size]", "6")
    page.evaluate("document.querySelector('#cal-book [name=any_resource]').click()")
    fill_in(person)
    book(person, page, f"new-booking-table-{width}")

    made = Booking.objects.get()
    assert shown == ["party_size", "any_resource"]
    assert (made.party_size, made.resource.name) == (6, "Table for 6")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_visit_of_four_steps(
    visit: Callable[..., Visit], office: Tenant, editor: Account, width: int
) -> None:
    hanna, ada, ben = (office.make_resource(name) for name in ("Hanna", "Ada", "Ben"))
    steps = [
        {"name": name, "length": "30 mins", "resources": ids}
        for name, ids in (
            ("cleaning", [hanna["id"]]),
            ("x-ray", [hanna["id"]]),
            ("check-up", [ada["id"], ben["id"]]),
            ("talk", [ada["id"], ben["id"]]),
        )
    ]
    terms = {"to": "366 days", "timeslot_increments": "30 mins"}
    given = {"name": "Visit", "steps": steps, "availability": terms}
    project = office.post("/projects", given).data
    person = open_form(visit, editor, hanna, project, width)
    page = person.page
    page.wait_for(f"{FREE} && !document.querySelector('#cal-named').hidden")

    shown = page.evaluate(SHOWN)
    preset = page.evaluate(
        "[...document.querySelectorAll('[data-named]')].map((one) => one.selectedOptions[0].text)"
    )
    change(person, "#cal-named [data-named=check-up]", ben["id"])
    # The second time of the visit; without the project there were full hours.
    page.wait_for(
        "document.querySelectorAll('.cal-choices .time-button')[1]?.textContent === '10:30'"
    )
    page.evaluate("document.querySelectorAll('.cal-choices .time-button')[1].click()")
    fill_in(person)
    book(person, page, f"new-booking-visit-{width}")

    made = Booking.objects.get()
    assert shown == ["cleaning", "x-ray", "check-up", "talk"]
    assert preset == ["Hanna", "Anyone who is free", "Anyone who is free", "Anyone who is free"]
    length = made.event.end - made.event.start
    assert length.total_seconds() == 2 * 3600
    found = office.get(f"/bookings/{made.id}?include=steps").data["steps"]
    assert [(step["name"], step["resources"][0]["name"]) for step in found][:3] == [
        ("cleaning", "Hanna"),
        ("x-ray", "Hanna"),
        ("check-up", "Ben"),
    ]
