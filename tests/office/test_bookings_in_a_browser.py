"""Today's page, the list of bookings, a booking and the export, as a person uses them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps_config.models import Account
from bookings.models import Booking
from bookings.services.postponed import carry_out_due
from notifications.models import Delivery
from tests.accessibility import find_faults, load_axe
from tests.browser import viewports
from tests.office.conftest import Visit
from tests.world import Tenant

LOOKS = viewports(only="wide")
OPEN = [{"allow_hours": {"start": 0, "end": 24}}]


@pytest.fixture
def day(office: Tenant) -> Any:
    """A request for in three hours, and two bookings: one soon, one cancelled."""
    grace = office.make_resource("Grace", timezone="UTC", availability_constraints=OPEN)
    start = timezone.now().replace(minute=0, second=0, microsecond=0)

    def book(hours: int, name: str, **given: Any) -> Any:
        begin = start + timedelta(hours=hours)
        times = {"start": begin.isoformat(), "end": (begin + timedelta(minutes=30)).isoformat()}
        customer = {"name": name, "email": "marty@example.com", "phone": "+49 40 12345"}
        return office.book(resource_id=grace["id"], customer=customer, **times, **given).data

    book(2, "Doc Brown")
    office.put(f"/bookings/{book(4, 'Biff')['id']}/cancel")
    return book(3, "Marty McFly", graph="confirm_decline")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_are_accessible(
    visit: Callable[..., Visit], office: Tenant, day: Any, editor: Account, width: int, scheme: str
) -> None:
    axe = load_axe()
    pages = {
        "today": ("/admin/", ".office-figure"),
        "bookings": ("/admin/bookings/booking/", "#result_list"),
        "booking": (f"/admin/bookings/booking/{day['id']}/change/", ".office-timeline"),
        "export": ("/admin/bookings/booking/export/", "#export-start"),
    }

    found = {}
    shown = visit(editor, "/admin/", width=width, scheme=scheme)
    for name, (path, sign) in pages.items():
        shown.go(path)
        shown.page.wait_for(f"!!document.querySelector({sign!r})")
        shown.page.save_screenshot(f"{name}-{width}-{scheme}")
        found[name] = find_faults(shown.page, axe)
        shown.check()

    assert found == {"today": [], "bookings": [], "booking": [], "export": []}


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.deep), 390])
def test_a_request_is_confirmed_in_two_clicks(
    visit: Callable[..., Visit], day: Any, editor: Account, width: int
) -> None:
    page = visit(editor, "/admin/", width=width).page

    page.click(f"#requests ~ ul a[href*='{day['id']}'], section a[href*='{day['id']}']")
    page.wait_for("!!document.querySelector('[name=action][value=confirm]')")
    page.evaluate("document.querySelector('#message').value = 'Welcome'")
    page.click("[name=action][value=confirm]")
    page.wait_for("document.body?.innerText.includes('The booking is confirmed.')")

    booking = Booking.objects.get(id=day["id"])
    step = booking.logs.last()
    assert (booking.state, step.actor, step.source, step.message) == (
        "confirmed",
        editor.email,
        "admin",
        "Welcome",
    )


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.deep), 390])
def test_an_outcome_is_noted_with_one_click(
    visit: Callable[..., Visit], day: Any, editor: Account, width: int
) -> None:
    axe = load_axe()
    begun = Booking.objects.exclude(id=day["id"]).get(completed=False)
    begun.event.start = timezone.now() - timedelta(minutes=5)
    begun.event.save()
    shown = visit(editor, f"/admin/bookings/booking/{begun.id}/change/", width=width)

    shown.page.click("[name=outcome][value=no_show]")
    shown.page.wait_for("document.body?.innerText.includes('Outcome noted: no show.')")
    shown.page.save_screenshot(f"outcome-{width}")
    offered = "[...document.querySelectorAll('[name=outcome]')].map(one => one.innerText)"

    assert shown.page.evaluate(offered) == ["Attended", "Clear"]
    assert find_faults(shown.page, axe) == []
    assert Booking.objects.get(id=begun.id).outcome == "no_show"


def test_changed_start_updates_end_and_free_times(
    visit: Callable[..., Visit], day: Any, editor: Account
) -> None:
    page = visit(editor, f"/admin/bookings/booking/{day['id']}/change/").page
    chips = "[...document.querySelectorAll('#free-times button')].map(one => one.innerText)"

    page.evaluate(
        "document.getElementById('start').value = '2030-03-31T23:45';"
        "document.getElementById('start').dispatchEvent(new Event('change'))"
    )
    page.wait_for(f"{chips}.length === 12")

    assert page.evaluate("document.getElementById('end').value") == "2030-04-01T00:15"
    assert page.evaluate(f"{chips}[0]") == "00:00"
    assert page.texts("#free-times .office-day strong") == ["Sunday, 31 March 2030"]


def test_form_is_sent_by_keyboard(visit: Callable[..., Visit], day: Any, editor: Account) -> None:
    page = visit(editor, f"/admin/bookings/booking/{day['id']}/change/").page
    page.wait_for("!!document.querySelector('[name=action][value=decline]')")

    page.evaluate("document.querySelector('#message').focus()")
    page.type("We are closed.")
    page.tab_to("[name=action][value=decline]")
    ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    page.press("Enter")
    page.wait_for("!!document.querySelector('#ask')")
    page.tab_to("main .office-danger, .office-page .office-danger")
    page.press("Enter")
    page.wait_for("document.body?.innerText.includes('This booking is about to be changed.')")
    carry_out_due(now=timezone.now() + timedelta(seconds=11))

    assert ring == "solid"
    assert Booking.objects.get(id=day["id"]).logs.last().message == "We are closed."


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_confirmation_pages_are_accessible(
    visit: Callable[..., Visit], office: Tenant, day: Any, editor: Account, width: int, scheme: str
) -> None:
    axe = load_axe()
    Delivery.objects.update(state="delivered", next_at=None, finished_at=timezone.now())
    mail = Delivery.objects.get(booking=day["id"], recipient="customer")
    shown = visit(
        editor, f"/admin/bookings/booking/{day['id']}/change/", width=width, scheme=scheme
    )
    shown.page.click("[name=action][value=decline]")
    shown.page.wait_for("!!document.querySelector('#ask')")
    shown.page.save_screenshot(f"ask-decline-{width}-{scheme}")
    faults = [find_faults(shown.page, axe)]
    shown = visit(
        editor, f"/admin/notifications/delivery/{mail.pk}/again/", width=width, scheme=scheme
    )
    shown.page.save_screenshot(f"ask-again-{width}-{scheme}")
    faults.append(find_faults(shown.page, axe))

    assert faults == [[], []]
    assert Booking.objects.get(id=day["id"]).state == "tentative"


def test_export_opened_from_a_filtered_list_has_its_filters(
    visit: Callable[..., Visit], day: Any, editor: Account
) -> None:
    tentative = "/admin/bookings/booking/?state=tentative&q=marty"
    page = visit(editor, tentative).page
    shown = page.evaluate("document.querySelectorAll('#result_list tbody tr').length")

    page.click("a[href*='/booking/export/']")
    page.wait_for("!!document.querySelector('#export-start')")
    page.wait_for("document.readyState === 'complete'")  # the style sheet parts the words
    filters = page.evaluate(
        "[...document.querySelectorAll('#export-filters > div')].map(each => each.innerText)"
    )
    page.click("#export-start")
    page.wait_for("!document.querySelector('#export-file').hidden")
    said = page.evaluate("document.querySelector('#export-words').innerText")

    assert Booking.objects.count() > shown
    assert said == f"Ready: {shown} of {shown}."
    assert [" ".join(each.split()) for each in filters] == ["Search marty", "State pending"]


def test_export_shows_progress_and_downloads_a_file(
    visit: Callable[..., Visit], day: Any, editor: Account
) -> None:
    page = visit(editor, "/admin/bookings/booking/export/?state=confirmed").page

    page.click("#export-start")
    page.wait_for("!document.querySelector('#export-file').hidden")
    said = page.evaluate("document.querySelector('#export-words').innerText")

    assert said == "Ready: 1 of 1."
    assert page.evaluate("document.querySelector('#export-file').download") == "bookings.csv"
    assert page.evaluate("document.querySelector('progress').value") == 1
