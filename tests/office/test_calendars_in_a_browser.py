"""Calendars that are kept elsewhere, in a real browser: wide and narrow, light and dark."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account
from availability.models import Calendar
from external_calendars.models import Connection, WrittenEvent
from external_calendars.providers.base import PROVIDER_ERRORS, ProviderError
from tests.accessibility import find_faults, load_axe
from tests.browser import Page, viewports
from tests.external_calendars.fake_provider import FakeCalendarServer, fake_caldav, feeds
from tests.office.calendar_pages import leave_unread
from tests.office.conftest import Visit
from tests.office.test_set_up_in_a_browser import (
    OURS,
    _tolerate_closed_threads,
    low_contrast,
    set_value,
    submit,
)
from tests.world import Tenant

__all__ = ["_tolerate_closed_threads", "fake_caldav", "feeds"]

pytestmark = pytest.mark.django_db(transaction=True)

LOOKS = viewports(only="narrow")
# What the docs show.
SHOWN = [(1280, "light"), (390, "dark")]
PICTURES = ("calendars", "calendar-stopped", "calendar-unread")
AT = "https://dav.example.com/calendars/ada/"
CONNECT = reverse("admin:availability_calendar_connect")


@pytest.fixture
def calendars(
    office: Tenant, ada: Any, fake_caldav: FakeCalendarServer, feeds: FakeCalendarServer
) -> dict[str, Calendar]:
    """By name: one at work, stopped; one at home, whose first look is running; a feed."""
    fake_caldav.label, feeds.label = "CalDAV", "ICS feed"
    now = timezone.now()
    fake_caldav.put(f"{AT}work/")
    fake_caldav.put(f"{AT}home/", "Home")
    feeds.put("https://feeds.example.com/5ecret.ics", "School holidays")
    given = {"resource_id": ada["id"], "username": "ada@example.com", "password": "x"}
    for name in ("work", "home"):
        answer = office.post(
            "/calendars", {"provider": "caldav", "address": f"{AT}{name}/"} | given
        )
        assert answer.status == 201
    feed = {"provider": "ics", "address": "https://feeds.example.com/5ecret.ics"}
    assert office.post("/calendars", feed | {"resource_id": ada["id"]}).status == 201
    found = {calendar.name: calendar for calendar in Calendar.objects.exclude(provider="service")}
    Calendar.objects.filter(name="Work").update(synced_at=now - timedelta(hours=30))
    Connection.objects.filter(calendar__name="Work").update(
        problem="unauthorized", problem_since=now - timedelta(hours=29), next_at=None, failures=9
    )
    Connection.objects.filter(calendar__name="Home").update(
        lease_token=office.app.pk, done=1200, total=5000
    )
    Calendar.objects.filter(name="School holidays").update(synced_at=now)
    leave_unread(
        found["School holidays"],
        *(f"holiday-{number}@example.com" for number in range(9)),
        "<b>" + "long-" * 180,
        "holiday-10@example.com",
        "holiday-11@example.com",
        problem_since=now,
    )
    return found


def page_of(calendar: Calendar, part: str = "change") -> str:
    return reverse(f"admin:availability_calendar_{part}", args=[calendar.pk])


def pages(ada: Any, calendars: dict[str, Calendar]) -> dict[str, str]:
    return {
        "calendars": reverse("admin:availability_calendar_changelist"),
        "calendar-stopped": page_of(calendars["Work"]),
        "calendar-looking": page_of(calendars["Home"]),
        "calendar-unread": page_of(calendars["School holidays"]),
        "calendar-reconnect": page_of(calendars["Work"], "reconnect"),
        "calendar-disconnect": page_of(calendars["Work"], "disconnect"),
        "calendar-whose": CONNECT,
        "calendar-kinds": f"{CONNECT}?resource={ada['id']}",
        "calendar-connect": f"{CONNECT}?resource={ada['id']}&provider=caldav",
    }


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_are_accessible(
    ada: Any,
    calendars: dict[str, Calendar],
    editor: Account,
    visit: Callable[..., Visit],
    width: int,
    scheme: str,
) -> None:
    axe, found = load_axe(), {}
    shown = pages(ada, calendars)

    seen = visit(editor, "/admin/", width=width, scheme=scheme)
    for name, path in shown.items():
        seen.go(path)
        if scheme == "dark":
            seen.page.wait_for("document.documentElement.classList.contains('dark')")
        if (width, scheme) in SHOWN and name in PICTURES:
            seen.page.save_screenshot(f"setup-{name}-{width}-{scheme}")
        found[name] = (low_contrast(seen.page), find_faults(seen.page, axe, OURS))
        seen.check()

    assert found == {name: ([], []) for name in shown}


def fill_in(page: Page, **fields: str) -> None:
    for name, value in fields.items():
        set_value(page, f"#id_{name}", value)


@pytest.mark.parametrize(("width", "scheme"), viewports(only="wide"))
def test_a_calendar_is_connected(
    ada: Any,
    fake_caldav: FakeCalendarServer,
    feeds: FakeCalendarServer,
    editor: Account,
    visit: Callable[..., Visit],
    width: int,
    scheme: str,
) -> None:
    """From the resource's page, with a wrong password first."""
    fake_caldav.label, feeds.label = "CalDAV", "ICS feed"
    fake_caldav.calendars["https://dav.example.com/"] = ProviderError("unauthorized")
    resource = reverse("admin:availability_resource_change", args=[ada["id"]])
    seen = visit(editor, resource, width=width, scheme=scheme)
    page = seen.page

    page.evaluate(
        "location.assign([...document.querySelectorAll('a')]"
        ".find(one => one.textContent.includes('Connect a calendar')).href)"
    )
    page.wait_for("!!document.querySelector('.office-kinds')")
    page.evaluate("document.querySelector(\".office-kinds a[href*='caldav']\").click()")
    page.wait_for("!!document.getElementById('id_password')")
    fill_in(page, address="dav.example.com", username="ada@example.com", password="wrong")
    submit(page, ".office-form .office-primary")
    fault = page.texts(".office-fault")
    described = page.evaluate(
        "document.getElementById('id_password').getAttribute('aria-describedby')"
    )
    typed = page.evaluate("[...document.querySelectorAll('.office-form input')].map(o => o.value)")
    seen.page.save_screenshot(f"setup-calendar-refused-{width}-{scheme}")
    fake_caldav.put("https://dav.example.com/", at=f"{AT}work/")
    fill_in(page, password="right")
    submit(page, ".office-form .office-primary")
    seen.page.save_screenshot(f"setup-calendar-connected-{width}-{scheme}")

    assert fault == [PROVIDER_ERRORS["unauthorized"]]
    assert "id_password_error" in described.split()
    assert typed[-4:] == ["dav.example.com", "ada@example.com", "", ""]
    calendar = Calendar.objects.get(provider="caldav")
    assert page.evaluate("location.pathname") == page_of(calendar)
    assert page.texts("#kept") == ["Connected calendar"]


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.deep), 390])
def test_buttons_work_by_keyboard(
    calendars: dict[str, Calendar], editor: Account, visit: Callable[..., Visit], width: int
) -> None:
    seen = visit(editor, page_of(calendars["Home"]), width=width)
    seen.expected = ["ERR_ABORTED"]  # it follows a look, and is left while it asks
    page = seen.page

    page.evaluate("window.isOld = true")
    page.tab_to(f"form[action='{page_of(calendars['Home'], 'primary')}'] button")
    page.press("Enter")
    page.wait_for("window.isOld === undefined && document.readyState === 'complete'")
    submit(page, f"form[action='{page_of(calendars['Home'], 'feed')}'] button")
    address = page.evaluate("document.getElementById('secret').value")

    assert Calendar.objects.get(provider_primary=True).name == "Home"
    assert f"/v2/calendars/{calendars['Home'].pk}/feed.ics?token=" in address


@pytest.mark.deep
def test_progress_of_a_sync_is_shown(
    calendars: dict[str, Calendar], editor: Account, visit: Callable[..., Visit]
) -> None:
    page = visit(editor, page_of(calendars["Home"])).page
    mine = Connection.objects.filter(calendar=calendars["Home"])

    page.send("Page.bringToFront")  # one that is hidden asks nothing
    first = page.texts("label[for=progress]")
    mine.update(done=4000)
    page.wait_for("document.querySelector('label[for=progress]').textContent.startsWith('4,000')")
    Calendar.objects.filter(pk=calendars["Home"].pk).update(synced_at=timezone.now())
    mine.update(lease_token=None)
    page.wait_for("!document.getElementById('standing').dataset.live")

    assert first == ["1,200 of 5,000 objects"]
    assert [text.lower() for text in page.texts("#standing .office-state")] == ["synced"]


def test_dashboard_and_booking_show_the_calendar(
    office: Tenant,
    ada: Any,
    calendars: dict[str, Calendar],
    editor: Account,
    visit: Callable[..., Visit],
) -> None:
    booked = office.book(
        resource_id=ada["id"], start="2030-01-02 10:00:00", end="2030-01-02 11:00:00"
    ).data
    WrittenEvent.objects.update(state="written", written_at="2030-01-01T12:00:00Z")
    for width, scheme in SHOWN:
        today = visit(editor, "/admin/", width=width, scheme=scheme)
        today.page.save_screenshot(f"setup-calendars-today-{width}-{scheme}")
        booking = visit(
            editor,
            reverse("admin:bookings_booking_change", args=[booked["id"]]),
            width=width,
            scheme=scheme,
        )
        booking.page.save_screenshot(f"setup-calendar-booking-{width}-{scheme}")

        [line] = today.page.texts("#calendars + ul li")
        assert ("Work" in line, PROVIDER_ERRORS["unauthorized"] in line) == (True, True)
        assert (low_contrast(today.page), low_contrast(booking.page)) == ([], [])
        facts = booking.page.texts(".office-head dd")
        assert "Written to Work, Tue 1 Jan 2030, 13:00 CET" in [
            " ".join(fact.split()) for fact in facts
        ]
