"""The desk and its day sheet in a browser, with the clicks counted from Today."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account
from bookings.models import Booking
from common.time.instants import find_zone, local_date
from tests.accessibility import find_faults, load_axe
from tests.browser import viewports
from tests.office.conftest import Visit
from tests.office.test_tasks_in_a_browser import KeyboardPerson, Person
from tests.world import BERLIN, Tenant

TODAY = "/admin/"
MANY = 12  # entries on the pages that are checked


@pytest.fixture
def zone(office: Tenant) -> None:
    office.put(f"/apps/{office.app.slug}", {"settings": {"default_timezone": BERLIN}})
    office.app.refresh_from_db()


def book_from_now(office: Tenant, resource: Any, name: str, **more: Any) -> Any:
    """A booking that has begun and has not ended, at any hour of the day."""
    now = timezone.now().replace(microsecond=0)
    times = {"start": now - timedelta(minutes=10), "end": now + timedelta(minutes=50)}
    customer = {"name": name, "email": "marty@example.com", "phone": "+49 30 1"}
    return office.book(
        resource_id=resource["id"],
        customer=customer,
        **{key: value.isoformat() for key, value in times.items()},
        **more,
    ).data


@pytest.mark.parametrize("kind", [Person, KeyboardPerson])
def test_request_is_confirmed_in_one_click(
    visit: Callable[..., Visit],
    office: Tenant,
    zone: None,
    editor: Account,
    ada: Any,
    kind: type[Person],
) -> None:
    asked = book_from_now(office, ada, "Marty", graph="confirm_decline")
    person = kind(visit(editor, TODAY, width=1280))

    person.go(f"#request-{asked['id']} button[value=confirm]")

    assert person.actions == 1
    assert person.page.evaluate("location.pathname") == TODAY
    assert Booking.objects.get(id=asked["id"]).state == "confirmed"


def test_arrival_is_noted_in_one_click(
    visit: Callable[..., Visit], office: Tenant, zone: None, editor: Account, ada: Any
) -> None:
    booking = book_from_now(office, ada, "Marty")
    person = Person(visit(editor, TODAY, width=390))

    person.go(f"#booking-{booking['id']}-{ada['id']} button[value=attended]")

    assert person.actions == 1
    assert person.page.evaluate("location.pathname") == TODAY
    assert Booking.objects.get(id=booking["id"]).outcome == "attended"


@pytest.mark.parametrize("kind", [Person, KeyboardPerson])
def test_tomorrow_of_a_person_takes_two_clicks(
    visit: Callable[..., Visit],
    office: Tenant,
    zone: None,
    editor: Account,
    ada: Any,
    bob: Any,
    kind: type[Person],
) -> None:
    book_from_now(office, bob, "Marty")
    day = local_date(timezone.now(), BERLIN) + timedelta(days=1)
    office.book(resource_id=ada["id"], start=f"{day}T09:00:00", end=f"{day}T10:00:00")
    person = kind(visit(editor, TODAY, width=1280))

    person.go(f"a[href='?day={day}']")
    columns = person.page.evaluate(
        "[...document.querySelectorAll('.desk-column')].map((one) => one.querySelector('h2')"
        ".textContent.trim() + ': ' + (one.querySelector('.desk-time')?.textContent ?? ''))"
    )
    person.go(f"#column-{ada['id']} a")

    assert columns[0] == "Ada: 09:00 – 10:00"
    assert person.actions == 2
    assert person.page.evaluate("location.search") == f"?resources={ada['id']}&view=day&date={day}"


@pytest.mark.parametrize("kind", [Person, KeyboardPerson])
def test_day_sheet_is_printed_in_two_clicks(
    visit: Callable[..., Visit],
    office: Tenant,
    zone: None,
    editor: Account,
    ada: Any,
    kind: type[Person],
) -> None:
    book_from_now(office, ada, "Marty")
    person = kind(visit(editor, TODAY, width=1280))

    person.go(f"a[href*='{reverse('admin:day_sheet')}']")
    person.page.evaluate("window.print = () => { window.printed = true; }")
    person.click("[data-print]")

    assert (person.actions, person.page.evaluate("window.printed")) == (2, True)
    assert "Marty" in person.page.evaluate("document.querySelector('.sheet').textContent")


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_pages_are_accessible(
    visit: Callable[..., Visit],
    office: Tenant,
    zone: None,
    editor: Account,
    ada: Any,
    bob: Any,
    width: int,
    scheme: str,
) -> None:
    now = timezone.now().astimezone(find_zone(BERLIN))
    book_from_now(office, ada, "Marty", graph="confirm_decline")
    for number in range(1, MANY):
        start = now.replace(hour=9, minute=0, second=0, microsecond=0) + timedelta(hours=number)
        name = "Una Isabella von Hohenstein-Wolfenbüttel"[: 3 * number]
        office.book(
            resource_id=(ada, bob)[number % 2]["id"],
            start=start.isoformat(),
            end=(start + timedelta(minutes=30)).isoformat(),
            customer={"name": name, "email": "una@example.com", "phone": "+49 30 1234567"},
            allow_double_bookings=True,
        )
    axe, found = load_axe(), {}
    shown = visit(editor, TODAY, width=width, height=1600, scheme=scheme)
    for name, path in {"today": TODAY, "sheet": reverse("admin:day_sheet")}.items():
        shown.go(path)
        shown.page.save_screenshot(f"desk-{name}-{width}-{scheme}")
        found[name] = find_faults(shown.page, axe, "document.getElementById('content')")
        shown.check()

    assert found == {"today": [], "sheet": []}
