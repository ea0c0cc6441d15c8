"""Keys without Ctrl: what they do, when they do nothing, and how they are switched off."""

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
from tests.world import Tenant

LIST = "/admin/bookings/booking/?tab=upcoming"
OPEN = [{"allow_hours": {"start": 0, "end": 24}}]
DIALOG = "document.getElementById('office-keys').open"


@pytest.fixture
def bookings(office: Tenant) -> list[Any]:
    """A confirmed booking, then two requests, a day later each."""
    ada = office.make_resource("Ada", timezone="UTC", availability_constraints=OPEN)
    start = timezone.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=30)
    made = []
    for number, graph in enumerate(("instant", "confirm_decline", "confirm_decline")):
        begin = start + timedelta(days=number)
        times = {"start": begin.isoformat(), "end": (begin + timedelta(minutes=30)).isoformat()}
        answer = office.book(resource_id=ada["id"], graph=graph, **times)
        assert answer.status == 201, answer.json
        made.append(answer.data)
    return made


@pytest.fixture
def listed(visit: Callable[..., Visit], bookings: list[Any], editor: Account) -> Page:
    return visit(editor, LIST).page


def row_of(page: Page) -> int:
    """The number of the row with the focus, from 0 on; -1 without."""
    return page.evaluate(
        "[...document.querySelectorAll('#result_list tr.data-row')]"
        ".indexOf(document.activeElement.closest('tr.data-row'))"
    )


def states() -> list[str]:
    return list(Booking.objects.order_by("event__start").values_list("state", flat=True))


def test_rows_are_chosen_and_opened(listed: Page, bookings: list[Any]) -> None:
    chosen = []
    for key in ("j", "j", "j", "j", "k"):
        listed.press(key)
        chosen.append(row_of(listed))
    listed.press("Enter")
    path = f"/admin/bookings/booking/{bookings[1]['id']}/change/"
    listed.wait_for(f"location.pathname === {path!r}")

    assert chosen == [0, 1, 2, 2, 1]


def test_a_accepts_the_chosen_request_alone(listed: Page) -> None:
    listed.press("j")
    listed.press("a")  # confirmed already
    listed.press("j")
    listed.evaluate("window.isOld = true")
    listed.press("a")
    listed.wait_for("window.isOld === undefined && document.readyState === 'complete'")

    assert states() == ["confirmed", "confirmed", "tentative"]


def test_a_accepts_on_the_page_of_a_request(
    visit: Callable[..., Visit], bookings: list[Any], editor: Account
) -> None:
    page = visit(editor, f"/admin/bookings/booking/{bookings[2]['id']}/change/").page

    page.evaluate("window.isOld = true")
    page.press("a")
    page.wait_for("window.isOld === undefined && document.readyState === 'complete'")

    assert states() == ["confirmed", "tentative", "confirmed"]


def test_pages_are_opened(listed: Page) -> None:
    listed.press("n")
    listed.wait_for("location.pathname === '/admin/calendar/'")
    listed.wait_for(
        "document.readyState === 'complete' && document.getElementById('cal-book').open"
    )
    listed.press("Escape")
    listed.wait_for("!document.getElementById('cal-book').open")
    listed.press("t")
    listed.wait_for("location.pathname === '/admin/'")


def test_slash_goes_to_the_search(listed: Page) -> None:
    listed.press("/")

    assert listed.evaluate("document.activeElement.id") == "searchbar"


def test_keys_are_text_in_fields(listed: Page) -> None:
    listed.press("/")
    for key in ("j", "t", "?"):
        listed.press(key)

    assert listed.evaluate("document.activeElement.value") == "jt?"
    assert (listed.evaluate(DIALOG), listed.evaluate("location.pathname")) == (
        False,
        "/admin/bookings/booking/",
    )


def test_keys_are_listed_and_switched_off(listed: Page) -> None:
    listed.press("?")
    listed.wait_for(DIALOG)
    faults = find_faults(listed, load_axe())
    listed.click("#office-keys-on")
    listed.press("Escape")
    listed.wait_for(f"!{DIALOG}")
    listed.evaluate("document.activeElement.blur()")
    for key in ("j", "?", "/"):
        listed.press(key)
    off = (row_of(listed), listed.evaluate(DIALOG), listed.evaluate("document.activeElement.id"))
    listed.evaluate("document.querySelector('a[href=\"#office-keys\"]').click()")
    listed.wait_for(DIALOG)
    listed.click("#office-keys-on")
    listed.press("Escape")
    listed.press("j")

    assert faults == []
    assert off == (-1, False, "")
    assert row_of(listed) == 0


def test_viewers_have_no_keys_that_change(
    visit: Callable[..., Visit], bookings: list[Any], viewer: Account
) -> None:
    page = visit(viewer, LIST).page

    page.press("?")
    page.wait_for(DIALOG)

    assert page.evaluate(
        "[...document.querySelectorAll('[data-key]')].map(a => a.dataset.key)"
    ) == ["t"]
