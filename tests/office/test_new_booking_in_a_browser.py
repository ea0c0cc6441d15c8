"""A series for a known customer, from Today: counted, by mouse and by keyboard."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps_config.models import Account
from bookings.models import AppCustomer, Booking
from notifications.models import Delivery
from tests.accessibility import find_faults, load_axe
from tests.office.conftest import Visit
from tests.office.test_tasks_in_a_browser import KeyboardPerson, Person
from tests.world import BERLIN, Tenant

OPEN = [{"allow_hours": {"start": 0, "end": 24}}]
GRACE = {"name": "Grace Hopper", "email": "grace@example.com", "phone": "+1 555 0199"}
READY = (
    "document.querySelector('#cal-book')?.open"
    " && !!document.querySelector('.cal-choices .office-day')"
    " && !document.querySelector('#cal-questions').hidden"
)
LIST = "document.querySelector('#cal-known')"
NEW = ".desk-find a[href$='new=1']"
BOOK = "#cal-book [type=submit]"
SAID = "!document.querySelector('#cal-said').hidden"


@pytest.fixture
def ada(office: Tenant) -> Any:
    ada = office.make_resource("Ada", timezone=BERLIN, availability_constraints=OPEN)
    questions = {"comment": {"title": "What is it about?", "format": "textarea"}}
    window = {"to": "366 days"}
    office.make_project(ada["id"], customer_fields=questions, availability=window)
    times = {"start": "2030-01-08T10:00:00Z", "end": "2030-01-08T11:00:00Z"}
    assert office.book(resource_id=ada["id"], customer=GRACE, **times).status == 201
    return ada


def choose_grace(person: Person) -> None:
    """Type a part of the name and choose the customer that is suggested."""
    person.fill("#cal-book [name=name]", "hopp")
    person.page.wait_for(f"!{LIST}.hidden")
    person.page.press("ArrowDown")
    assert person.page.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
        ".innerText"
    ).startswith("Grace Hopper")
    person.page.press("Enter")
    assert person.page.evaluate(f"{LIST}.hidden") is True


def made() -> list[tuple[str, str, str]]:
    rows = Booking.objects.filter(series__isnull=False).order_by("event__start")
    return [
        (row.state, person.name, f"{person.email} {person.phone}")
        for row in rows
        for person in row.customers.all()
    ]


SIX = [("confirmed", "Grace Hopper", "grace@example.com +1 555 0199")] * 6


def test_series_of_six_from_today(
    visit: Callable[..., Visit], office: Tenant, ada: Any, editor: Account
) -> None:
    """Two clicks, two fields and the suggestion: `choose` counts as a field."""
    person = Person(visit(editor, "/admin/", width=1280))

    person.go(NEW)
    person.page.wait_for(READY)
    choose_grace(person)
    person.choose("#cal-book [name=repeat]", "weekly")
    person.click(BOOK)
    person.page.wait_for(SAID)

    assert (person.actions, made()) == (4, SIX)
    assert person.page.texts("#cal-said")[0].startswith("6 bookings were made. The first: ")


def test_series_of_six_by_keyboard(
    visit: Callable[..., Visit], office: Tenant, ada: Any, editor: Account
) -> None:
    person = KeyboardPerson(visit(editor, "/admin/", width=1280))

    person.go(NEW)
    person.page.wait_for(READY)
    choose_grace(person)
    person.choose_next("#cal-book [name=repeat]")
    person.page.press("ArrowDown")
    person.click(BOOK)
    person.page.wait_for(SAID)

    assert (person.actions, made()) == (4, SIX)


def test_conflicts_leave_the_choice(
    visit: Callable[..., Visit], office: Tenant, ada: Any, editor: Account
) -> None:
    """Escape closes the list of customers, not the form."""
    first = timezone.now().date() + timedelta(days=14)
    days = [first + timedelta(days=number) for number in range(4)]
    taken = {"start": f"{days[2]} 09:30:00", "end": f"{days[2]} 10:30:00"}
    office.book(resource_id=ada["id"], **taken)
    path = f"/admin/calendar/?resources={ada['id']}&date={first}&new=1"
    found = visit(editor, path, width=390)
    found.expected = ["409"]
    page = found.page
    page.wait_for(READY)
    axe = load_axe()

    page.type("hopp")
    page.wait_for(f"!{LIST}.hidden")
    faults = find_faults(page, axe)
    page.press("Escape")
    closed = page.evaluate(f"[{LIST}.hidden, document.querySelector('#cal-book').open]")
    page.type("er")
    page.wait_for(f"!{LIST}.hidden")
    page.click("#cal-known-0")
    page.evaluate(
        "(() => { const { elements } = document.querySelector('#cal-book form');"
        f" elements.start.value = '{first}T10:00'; elements.end.value = '{first}T11:00';"
        " elements.start.dispatchEvent(new Event('input', { bubbles: true }));"
        " elements.repeat.value = 'daily';"
        " elements.repeat.dispatchEvent(new Event('change', { bubbles: true }));"
        " elements.times.value = '4'; elements.notify.checked = false;"
        " elements.note.value = 'Afraid of needles'; })()"
    )
    page.click(BOOK)
    page.wait_for("!document.querySelector('#cal-conflicts').hidden")
    words = page.texts("#cal-conflicts li")
    faults += find_faults(page, axe)
    page.click("#cal-conflicts .time-button:not(.is-main)")
    back = page.evaluate("document.activeElement.name")
    page.click(BOOK)
    page.wait_for("!document.querySelector('#cal-conflicts').hidden")
    page.click("#cal-conflicts .is-main")
    page.wait_for(SAID)

    assert (closed, back, faults) == ([True, True], "repeat", [])
    spans = [f"{day:%a} {day.day} {day:%b %Y}, 10:00 to 11:00" for day in days]
    assert words == [f"{spans[2]}: taken"]
    rows = Booking.objects.filter(series__isnull=False).order_by("event__start")
    assert [(row.event.start.date(), row.note) for row in rows] == [
        (day, "Afraid of needles") for day in (*days[:2], days[3])
    ]
    assert set(
        Delivery.objects.filter(booking__in=rows, type="email").values_list("state", flat=True)
    ) == {"skipped"}
    assert page.texts("#cal-said") == [
        f"3 bookings were made. The first: {spans[0]}. Not booked: {spans[2]}. Open"
    ]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_details_and_notes_are_accessible(
    visit: Callable[..., Visit],
    office: Tenant,
    ada: Any,
    editor: Account,
    width: int,
    scheme: str,
) -> None:
    booking = Booking.objects.get()
    found = visit(
        editor, f"/admin/bookings/booking/{booking.id}/change/", width=width, scheme=scheme
    )
    person, axe = Person(found), load_axe()

    person.fill("#note", "Afraid of needles")
    person.go("#note-form [type=submit]")
    faults = find_faults(person.page, axe)
    person.go("a[href$='/details/']")
    faults += find_faults(person.page, axe)
    person.fill("#details [name$=phone]", "+1 555 0200")
    person.go("#details [type=submit]")

    booking.refresh_from_db()
    assert (person.actions, faults) == (5, [])
    assert (booking.note, booking.customers.get().phone) == ("Afraid of needles", "+1 555 0200")


def test_the_end_follows_the_start(
    visit: Callable[..., Visit], office: Tenant, ada: Any, editor: Account
) -> None:
    day = timezone.now().date() + timedelta(days=14)
    page = visit(editor, f"/admin/calendar/?resources={ada['id']}&date={day}&new=1").page
    page.wait_for(READY)
    form = "document.querySelector('#cal-book form').elements"
    first = page.evaluate(f"[{form}.start.value, {form}.end.value]")

    page.evaluate(
        f"{form}.start.focus(), {form}.start.value = '{day}T15:30',"
        f" {form}.start.dispatchEvent(new Event('input', {{ bubbles: true }}))"
    )
    found = page.evaluate(f"[{form}.start.value, {form}.end.value]")

    assert first == [f"{day}T00:00", f"{day}T01:00"]
    assert found == [f"{day}T15:30", f"{day}T16:30"]


def test_a_refusal_says_how_to_book_anyway(
    visit: Callable[..., Visit], office: Tenant, ada: Any, editor: Account
) -> None:
    day = timezone.now().date() + timedelta(days=14)
    closed = [{"block_period": {"start": f"{day} 10:00:00", "end": f"{day} 12:00:00"}}]
    rules = {"availability_constraints": OPEN + closed}
    assert office.put(f"/resources/{ada['id']}", rules).status == 200
    found = visit(editor, f"/admin/calendar/?resources={ada['id']}&date={day}&new=1")
    found.expected = ["409"]
    page = found.page
    page.wait_for(READY)

    page.evaluate(
        "(() => { const { start, end } = document.querySelector('#cal-book form').elements;"
        f" start.value = '{day}T10:00'; end.value = '{day}T11:00';"
        " start.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    page.type_into("#cal-book [name=name]", "Una")
    page.type_into("#cal-book [name=email]", "una@example.com")
    page.click(BOOK)
    page.wait_for("!document.querySelector('#cal-book [role=alert]').hidden")
    words = page.texts("#cal-book [role=alert]")[0]
    page.click("#cal-book [name=anyway]")
    page.click(BOOK)
    page.wait_for(SAID)

    assert words.endswith("To book anyway, select “Ignore opening hours and limits”.")
    assert Booking.objects.filter(customers__name="Una").count() == 1


def test_the_page_of_a_customer_leads_to_a_new_booking(
    visit: Callable[..., Visit], office: Tenant, ada: Any, editor: Account
) -> None:
    person = AppCustomer.objects.get(address="grace@example.com")
    found = Person(visit(editor, f"/admin/bookings/appcustomer/{person.pk}/change/"))

    found.go("#customer .office-primary")
    found.page.wait_for(READY)
    form = "document.querySelector('#cal-book form').elements"
    found.page.wait_for(f"{form}.email.value !== ''")
    values = f"[{form}.name.value, {form}.email.value, {form}.phone.value]"

    assert found.page.evaluate(values) == [*GRACE.values()]
