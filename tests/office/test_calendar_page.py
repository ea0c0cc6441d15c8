"""The calendar in a real browser: drawn, dragged, typed into, at both widths."""

import base64
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps_config.models import Account
from availability.models import Calendar
from bookings.models import Booking
from office.base.local_time import local_text
from tests.accessibility import find_faults, load_axe
from tests.browser import viewports
from tests.office.conftest import Visit
from tests.world import Tenant

Open = Callable[..., Visit]
DRAWN = "document.querySelector('#cal-grid').dataset.drawn >= 1"
MONDAY = "2030-01-07"


def book(office: Tenant, resource: Any, start: str, end: str, **given: Any) -> Any:
    answer = office.book(resource_id=resource["id"], start=start, end=end, **given)
    assert answer.status == 201, answer.json
    return answer.data


def open_calendar(
    visit: Open, account: Account, *resources: Any, more: str = "", **kind: Any
) -> Visit:
    ids = ",".join(resource["id"] for resource in resources)
    found = visit(account, f"/admin/calendar/?resources={ids}&date={MONDAY}{more}", **kind)
    found.page.wait_for(DRAWN)
    # Where the calendar is scrolled to seven o'clock, the morning can be seen.
    found.page.wait_for("document.querySelector('.ec-main').scrollTop > 0")
    return found


def names(page: Any) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('.ec-event[aria-label]')].map(one => one.ariaLabel)"
    )


def place(page: Any, day: int, hour: float) -> tuple[float, float]:
    """Where an hour of the week's day (0 = Monday) is drawn: by the columns and the slots."""
    box = page.evaluate(
        "(() => { const days = [...document.querySelectorAll('.ec-body .ec-day')];"
        f" const {{x, y, width, height}} = days[{day}].getBoundingClientRect();"
        " return {x, y, width, height}; })()"
    )
    return box["x"] + box["width"] / 2, box["y"] + box["height"] * hour / 24


def event_place(page: Any, label: str) -> tuple[float, float]:
    box = page.evaluate(
        f"document.querySelector(\".ec-event[aria-label*='{label}']\")"
        ".getBoundingClientRect().toJSON()"
    )
    return box["x"] + box["width"] / 2, box["y"] + 6


def scroll(page: Any, top: int) -> None:
    """The grid as far from midnight as so many pixels, of which an hour has 64."""
    page.wait_for("document.querySelector('.ec-main').scrollTop > 0")
    page.evaluate(f"document.querySelector('.ec-main').scrollTop = {top}")


def times(booking: Any) -> tuple[str, str]:
    event = Booking.objects.get(id=booking["id"]).event
    return event.start.isoformat()[:16], event.end.isoformat()[:16]


def fill_week(office: Tenant, ada: Any) -> Any:
    first = book(office, ada, f"{MONDAY} 09:00:00", f"{MONDAY} 09:30:00", what="Check-up")
    book(office, ada, "2030-01-08 10:00:00", "2030-01-08 11:00:00", what="Advice")
    asked = {"graph": "confirm_decline", "what": "First visit"}
    book(office, ada, "2030-01-09 13:00:00", "2030-01-09 14:30:00", **asked)
    gone = book(office, ada, "2030-01-10 15:00:00", "2030-01-10 16:00:00", what="Gone")
    office.put(f"/bookings/{gone['id']}/cancel")
    calendar = ada["calendars"][0]["id"]
    office.make_event(calendar, "2030-01-10 09:00:00", "2030-01-10 12:00:00", what="Congress")
    hold = {"start": "2030-01-11 10:00:00", "end": "2030-01-11 11:00:00", "reservation_time": 3600}
    assert office.post("/bookings/reserve", {**hold, "resource_id": ada["id"]}).status == 201
    return first


WEEK_NAMES = [
    "09:00 Check-up · Marty McFly, confirmed, Mon 7 Jan 2030, 09:00 to 09:30, Ada",
    "10:00–11:00 Advice · Marty McFly, confirmed, Tue 8 Jan 2030, 10:00 to 11:00, Ada",
    "13:00–14:30 First visit · Marty McFly, pending, Wed 9 Jan 2030, 13:00 to 14:30, Ada",
    "09:00–12:00 Congress, event, Thu 10 Jan 2030, 09:00 to 12:00, Ada",
    "10:00–11:00 Held, hold, Fri 11 Jan 2030, 10:00 to 11:00, Ada",
]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.deep)])
def test_week_view(visit: Open, office: Tenant, ada: Any, editor: Account, scheme: str) -> None:
    fill_week(office, ada)

    found = open_calendar(visit, editor, ada, scheme=scheme)

    assert names(found.page) == WEEK_NAMES
    assert found.page.evaluate("document.querySelectorAll('.ec-bg-event.is-closed').length") > 7
    assert found.page.evaluate("document.documentElement.classList.contains('dark')") is (
        scheme == "dark"
    )
    assert found.page.texts("#cal-zones") == ["Times in the time zone Europe/Berlin."]
    found.page.save_screenshot(f"calendar-1280-{scheme}")


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_reason_of_a_closed_week(
    visit: Open, office: Tenant, ada: Any, editor: Account, width: int, scheme: str
) -> None:
    fill_week(office, ada)
    calendar = Calendar.objects.create(
        app=office.app, resource_id=ada["id"], name="Work", provider="caldav"
    )
    office.put(f"/apps/{office.app.slug}", {"settings": {"stale_calendars": "block"}})

    found = open_calendar(visit, editor, ada, width=width, scheme=scheme)

    words = 'Ada is closed: The external calendar "Work" has never synced. Calendar'
    assert found.page.texts("#cal-late li") == [words]
    assert found.page.evaluate("document.querySelector('#cal-late a').getAttribute('href')") == (
        f"/admin/availability/calendar/{calendar.pk}/change/"
    )
    found.page.save_screenshot(f"calendar-closed-{width}-{scheme}")
    Calendar.objects.filter(id=calendar.id).update(synced_at=timezone.now())
    found.page.click(".ec-next")
    found.page.wait_for("document.getElementById('cal-late').hidden")


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.deep), "dark"])
def test_phone_shows_the_day_view(
    visit: Open, office: Tenant, ada: Any, editor: Account, scheme: str
) -> None:
    fill_week(office, ada)

    found = open_calendar(visit, editor, ada, width=390, scheme=scheme)

    assert names(found.page) == WEEK_NAMES[:1]
    found.page.click(".ec-next")
    found.page.wait_for("document.querySelector('.ec-event[aria-label*=Advice]')")
    assert names(found.page) == WEEK_NAMES[1:2]
    found.page.save_screenshot(f"calendar-390-{scheme}")


def test_several_resources_side_by_side(
    visit: Open, office: Tenant, ada: Any, bob: Any, editor: Account
) -> None:
    fill_week(office, ada)
    book(office, bob, f"{MONDAY} 09:15:00", f"{MONDAY} 10:15:00", what="Advice")

    found = open_calendar(visit, editor, ada, bob, more="&view=day")

    assert names(found.page) == [
        "09:00 Check-up · Marty McFly, confirmed, Mon 7 Jan 2030, 09:00 to 09:30, Ada",
        "09:15–10:15 Advice · Marty McFly, confirmed, Mon 7 Jan 2030, 09:15 to 10:15, Bob",
    ]
    found.page.save_screenshot("calendar-side-by-side")


def test_several_resources_open_on_the_day_view(
    visit: Open, office: Tenant, ada: Any, bob: Any, editor: Account
) -> None:
    cleo = office.make_resource("Cleo", timezone="Europe/Berlin", availability_constraints=[])
    first = open_calendar(visit, editor, ada, bob, cleo)
    heads = first.page.texts(".ec-header .ec-col-head")
    week = open_calendar(visit, editor, ada, bob, cleo, more="&view=week")

    week.page.evaluate("document.querySelector('.ec-main').scrollLeft = 9999")
    week.page.click(".ec-next")
    week.page.wait_for("document.querySelector('.ec-title').textContent.startsWith('14')")

    assert heads == ["Ada", "Bob", "Cleo"]
    week.page.wait_for("document.querySelector('.ec-main').scrollLeft === 0")
    assert week.page.texts(".ec-title") == ["14 – 20 Jan 2030"]
    assert week.page.evaluate("new URLSearchParams(location.search).get('date')") == "2030-01-14"


@pytest.mark.parametrize(("width", "scheme"), viewports(only="wide"))
def test_month_view_links_to_days(
    visit: Open, office: Tenant, ada: Any, bob: Any, editor: Account, width: int, scheme: str
) -> None:
    fill_week(office, ada)
    path = f"/admin/calendar/?resources={ada['id']},{bob['id']}&date={MONDAY}&view=month"
    found = visit(editor, path, width=width, scheme=scheme)
    page = found.page
    page.wait_for(DRAWN + " && document.querySelectorAll('.ec-event.is-confirmed').length === 2")

    found.page.save_screenshot(f"calendar-month-{width}-{scheme}")
    title, shown = page.texts(".ec-title"), names(page)
    weekends = page.evaluate("document.querySelectorAll('.ec-bg-event.is-closed').length")
    faults = find_faults(page, load_axe(), "document.querySelector('.cal')")
    page.click(".ec-day-grid .ec-day:nth-child(9)")
    page.wait_for("document.querySelector('.ec-event[aria-label*=Advice]')?.ariaLabel[5] === '–'")

    assert (title, weekends, faults) == (["January 2030"], 10, [])
    assert [name[6:] for name in shown] == [name.split(" ", 1)[1] for name in WEEK_NAMES]
    assert page.texts(".ec-title") == ["Tue, 8 Jan 2030"]
    assert page.evaluate("new URLSearchParams(location.search).get('view')") == "day"


def test_a_booking_is_dragged_to_another_day_of_the_month(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    booking = book(office, ada, f"{MONDAY} 09:00:00", f"{MONDAY} 10:00:00", what="Check-up")
    path = f"/admin/calendar/?resources={ada['id']}&date={MONDAY}&view=month"
    page = visit(editor, path).page
    page.wait_for("!!document.querySelector('.ec-event')")

    page.drag(event_place(page, "Check-up"), middle_of(page, ".ec-day-grid .ec-day:nth-child(10)"))
    page.wait_for("!document.querySelector('#cal-said').hidden")

    assert times(booking) == ("2030-01-09T08:00", "2030-01-09T09:00")


def middle_of(page: Any, selector: str) -> tuple[float, float]:
    box = page.box(selector)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_booking_that_is_dragged_to_a_person_names_the_person(
    visit: Open, office: Tenant, ada: Any, bob: Any, editor: Account
) -> None:
    book(office, ada, f"{MONDAY} 09:00:00", f"{MONDAY} 09:30:00", what="Check-up")
    path = f"/admin/calendar/?resources={ada['id']},{bob['id']}&date={MONDAY}&view=day"
    page = visit(editor, path).page
    page.wait_for(DRAWN + " && !!document.querySelector('.ec-event')")

    x, y = event_place(page, "Check-up")
    page.drag((x, y), (x + page.box(".ec-event")["width"], y))
    page.wait_for("!document.querySelector('#cal-said').hidden")

    said = "Check-up · Marty McFly is now Mon 7 Jan 2030, 09:00 to 09:30, Bob."
    assert page.texts("#cal-said") == [f"{said} Undo"]


@pytest.mark.parametrize(
    ("language", "title", "clock"),
    [("en-US", "Mon, Jan 7, 2030", "9:00 AM"), ("en-GB", "Mon, 7 Jan 2030", "09:00")],
)
def test_english_dates_follow_the_region(
    visit: Open, office: Tenant, ada: Any, editor: Account, language: str, title: str, clock: str
) -> None:
    book(office, ada, f"{MONDAY} 09:00:00", f"{MONDAY} 09:30:00", what="Check-up")
    path = f"/admin/calendar/?resources={ada['id']}&date={MONDAY}&view=day"
    page = visit(editor, path, language=language).page
    page.wait_for("!!document.querySelector('.ec-event .cal-time')")

    assert page.texts(".ec-title") == [title]
    assert [text.replace("\u202f", " ") for text in page.texts(".ec-event .cal-time")] == [clock]


def test_now_line_is_in_the_zone_of_the_resource(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    path = f"/admin/calendar/?resources={ada['id']}&view=day&date=2026-11-24"
    found = visit(editor, path, zone="America/New_York", now="2026-11-24T11:00Z")
    page = found.page
    page.wait_for(DRAWN + " && !!document.querySelector('.ec-now-indicator')")

    line = page.evaluate("document.querySelector('.ec-now-indicator').getBoundingClientRect().y")

    assert abs(line - place(page, 0, 12)[1]) < 8


@pytest.mark.parametrize(("width", "scheme"), viewports(only="wide"))
def test_day_view_prints_on_one_page(
    visit: Open, office: Tenant, ada: Any, bob: Any, editor: Account, width: int, scheme: str
) -> None:
    fill_week(office, ada)
    book(office, bob, f"{MONDAY} 18:30:00", f"{MONDAY} 19:15:00", what="Late")
    found = open_calendar(visit, editor, ada, bob, more="&view=day", width=width, scheme=scheme)
    page = found.page

    given = {"preferCSSPageSize": True, "printBackground": True}
    sheets = base64.b64decode(page.send("Page.printToPDF", **given)["data"])
    page.send("Emulation.setEmulatedMedia", media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for("document.querySelectorAll('.ec-slot').length < 48")
    printed = page.evaluate("document.body.innerText")
    found.page.save_screenshot(f"calendar-print-{width}-{scheme}")
    page.send("Emulation.setEmulatedMedia", media="")
    page.evaluate("dispatchEvent(new Event('afterprint'))")

    assert re.findall(rb"/Type /Page\b", sheets) == [b"/Type /Page"]
    expected = ("Check-up", "Late", "Ada", "Bob", "09:00", "19:00")
    assert [word for word in expected if word not in printed] == []
    assert [word for word in ("Today", "New booking", "Resources and") if word in printed] == []
    assert "06:00" not in printed


def test_cancelled_bookings_are_shown_on_request(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    fill_week(office, ada)
    found = open_calendar(visit, editor, ada)

    found.page.click("#cal-gone")
    found.page.wait_for("document.querySelector('.ec-event.is-cancelled')")

    assert len(names(found.page)) == len(WEEK_NAMES) + 1


def test_click_and_key_open_the_booking(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    booking = fill_week(office, ada)
    address = f"/admin/bookings/booking/{booking['id']}/change/"

    by_mouse = open_calendar(visit, editor, ada)
    by_mouse.page.click(".ec-event[aria-label*='Check-up']")
    by_mouse.page.wait_for(f"location.pathname === {address!r}")
    by_key = open_calendar(visit, editor, ada)
    by_key.page.evaluate("document.querySelector('.ec-toolbar button').focus()")
    by_key.page.tab_to(".ec-event[aria-label*='Check-up']")
    by_key.page.press("Enter")
    by_key.page.wait_for(f"location.pathname === {address!r}")

    for one in (by_mouse, by_key):
        one.page.wait_for("document.readyState === 'complete'")


def test_list_below_equals_the_grid(visit: Open, office: Tenant, ada: Any, editor: Account) -> None:
    fill_week(office, ada)
    found = open_calendar(visit, editor, ada)

    found.page.click(".cal-list summary")

    assert found.page.texts("#cal-list li")[0] == (
        "Mon 7 Jan 2030, 09:00 to 09:30: Check-up · Marty McFly confirmed, Ada"
    )


def test_a_booking_is_dragged_to_another_time_and_back(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    booking = book(office, ada, f"{MONDAY} 09:00:00", f"{MONDAY} 09:30:00", what="Check-up")
    found = open_calendar(visit, editor, ada)
    page = found.page

    x, y = event_place(page, "Check-up")
    to_x, to_y = place(page, 2, 11)
    page.drag((x, y), (to_x, to_y + 6))
    page.wait_for("!document.querySelector('#cal-said').hidden")

    said = "Check-up · Marty McFly is now Wed 9 Jan 2030, 11:00 to 11:30."
    assert page.texts("#cal-said") == [f"{said} Undo"]
    assert times(booking) == ("2030-01-09T10:00", "2030-01-09T10:30")
    step = Booking.objects.get().logs.last()
    assert (step.action, step.actor, step.source) == ("reschedule", editor.email, "admin")
    page.click("#cal-said button")
    page.wait_for("document.querySelector('#cal-said').innerText.includes('Mon 7 Jan')")
    assert times(booking) == ("2030-01-07T08:00", "2030-01-07T08:30")


def test_drag_to_a_taken_time_offers_other_times(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    booking = book(office, ada, f"{MONDAY} 09:00:00", f"{MONDAY} 10:00:00", what="Check-up")
    book(office, ada, "2030-01-09 11:00:00", "2030-01-09 12:00:00", what="Other")
    found = open_calendar(visit, editor, ada)
    found.expected = ["409"]
    page = found.page

    x, y = event_place(page, "Check-up")
    to_x, to_y = place(page, 2, 11.5)
    page.drag((x, y), (to_x, to_y + 6))
    page.wait_for("document.querySelector('#cal-refused').open")

    assert times(booking) == ("2030-01-07T08:00", "2030-01-07T09:00")
    assert names(page)[0].startswith(
        "09:00–10:00 Check-up · Marty McFly, confirmed, Mon 7 Jan 2030, 09:00"
    )
    assert page.texts(".cal-refused-words") == ["The time is taken."]
    assert page.texts(".cal-refused-reasons li") == ["Taken: Wed 9 Jan 2030, 11:00 to 12:00"]
    assert page.texts("#cal-refused .cal-choices strong") == ["Wednesday, 9 January 2030"]
    assert page.texts("#cal-refused .cal-choices button") == ["12:00", "13:00", "14:00"]
    found.page.save_screenshot("calendar-refused")
    page.click("#cal-refused .cal-choices button:nth-of-type(2)")
    page.wait_for("!document.querySelector('#cal-refused').open")
    page.wait_for("document.querySelector('.ec-event[aria-label*=\"9 Jan 2030, 13:00 to 14:00\"]')")
    assert times(booking) == ("2030-01-09T12:00", "2030-01-09T13:00")


def test_a_drag_to_another_resource(
    visit: Open, office: Tenant, ada: Any, bob: Any, editor: Account
) -> None:
    booking = book(office, ada, f"{MONDAY} 09:00:00", f"{MONDAY} 09:30:00", what="Check-up")
    found = open_calendar(visit, editor, ada, bob, more="&view=day")
    page = found.page

    x, y = event_place(page, "Check-up")
    to_x, to_y = place(page, 1, 10)
    page.drag((x, y), (to_x, to_y + 6))
    page.wait_for("!document.querySelector('#cal-said').hidden")

    assert times(booking) == ("2030-01-07T09:00", "2030-01-07T09:30")
    assert str(Booking.objects.get().resource_id) == bob["id"]


def test_end_is_dragged(visit: Open, office: Tenant, ada: Any, editor: Account) -> None:
    booking = book(office, ada, f"{MONDAY} 09:00:00", f"{MONDAY} 10:00:00", what="Check-up")
    found = open_calendar(visit, editor, ada)
    page = found.page

    box = page.box(".ec-event[aria-label*='Check-up']")
    x = box["x"] + box["width"] / 2
    page.drag((x, box["y"] + box["height"] - 2), (x, place(page, 0, 11)[1] - 2))
    page.wait_for("!document.querySelector('#cal-said').hidden")

    assert times(booking) == ("2030-01-07T08:00", "2030-01-07T10:00")


def test_viewer_cannot_drag(visit: Open, office: Tenant, ada: Any, viewer: Account) -> None:
    booking = book(office, ada, f"{MONDAY} 09:00:00", f"{MONDAY} 09:30:00", what="Check-up")
    found = open_calendar(visit, viewer, ada)
    page = found.page

    page.drag(place(page, 1, 10), place(page, 1, 12))
    page.drag(event_place(page, "Check-up"), place(page, 2, 11))

    assert page.evaluate("document.querySelectorAll('.ec-draggable').length") == 0
    assert page.evaluate("document.querySelector('#cal-book').open") is False
    assert times(booking) == ("2030-01-07T08:00", "2030-01-07T08:30")


def test_drag_over_free_time_opens_a_booking(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    office.make_project(ada["id"], name="Check-ups")
    found = open_calendar(visit, editor, ada)
    found.expected = ["422"]
    page = found.page

    page.drag(place(page, 1, 10.02), place(page, 1, 10.9))
    page.wait_for("document.querySelector('#cal-book').open")
    filled = page.evaluate(
        "['start', 'end'].map(name => document.querySelector(`#cal-book [name=${name}]`).value)"
    )
    assert filled == ["2030-01-08T10:00", "2030-01-08T11:00"]
    assert page.evaluate("document.activeElement.name") == "what"
    found.page.save_screenshot("calendar-book")
    page.type("Check-up")
    page.click("#cal-book [type=submit]")
    page.wait_for("!document.querySelector('[data-error*=\"customer.name\"]').hidden")
    assert (
        page.evaluate("document.querySelector('[data-error=\"customer.email\"]').hidden") is False
    )
    page.click("#cal-book [name=name]")
    page.type("Emmett Brown")
    page.click("#cal-book [name=email]")
    page.type("doc@example.com")
    page.press("Enter")
    page.wait_for("!document.querySelector('#cal-book').open")
    page.wait_for("document.querySelector('.ec-event[aria-label*=\"Emmett Brown\"]')")

    booking = Booking.objects.get()
    assert (booking.state, booking.logs.get().source) == ("confirmed", "admin")
    assert times({"id": booking.id}) == ("2030-01-08T09:00", "2030-01-08T10:00")
    assert page.texts("#cal-said") == ["Booked: Tue 8 Jan 2030, 10:00 to 11:00. Open"]


def test_booking_of_a_resource_that_is_not_shown(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    bob = office.make_resource("Bob", timezone="Europe/Berlin")
    Tenant("other").make_resource("Eve")
    page = open_calendar(visit, editor, ada).page

    page.click("#cal-new")
    names = page.texts("#cal-book [name=resource_id] option")
    wanted = {"start": "2030-01-08T10:00", "end": "2030-01-08T11:00", "what": "Visit"}
    fill(page, resource_id=bob["id"], name="Doc", email="doc@example.com", **wanted)
    page.click("#cal-book [type=submit]")
    page.wait_for("!document.querySelector('#cal-said').hidden")

    assert names == ["Ada", "Bob"]
    assert Booking.objects.get().resource.name == "Bob"


def test_a_new_booking_shows_free_times(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    today = timezone.now().date()
    monday = today + timedelta(days=7 - today.weekday())
    book(office, ada, f"{monday} 09:00:00", f"{monday} 09:30:00", what="Other")
    half = {"length": "30 minutes"}
    project = office.make_project(ada["id"], name="Check-ups", availability=half)
    found = visit(editor, f"/admin/calendar/?resources={ada['id']}&date={monday}&view=day")
    page = found.page
    page.wait_for(DRAWN)
    choices = "#cal-book .cal-choices button"
    values = (
        "['start', 'end'].map(name => document.querySelector(`#cal-book [name=${name}]`).value)"
    )

    page.click("#cal-new")
    page.wait_for(f"document.querySelectorAll('{choices}').length === 8")
    first = (page.texts(choices)[:2], page.evaluate(values))
    found.page.save_screenshot("calendar-free-times")
    heading = page.texts("#cal-book .cal-choices .office-day strong")
    page.click(f"{choices}:nth-of-type(2)")
    fill(page, what="Check-up", name="Doc", email="doc@example.com")
    page.click("#cal-book [type=submit]")
    page.wait_for("!document.querySelector('#cal-said').hidden")

    assert heading == [f"{monday:%A}, {monday.day} {monday:%B %Y}"]
    assert first == (["09:30", "10:00"], [f"{monday}T09:30", f"{monday}T10:00"])
    made = Booking.objects.get(project_id=project["id"]).event
    spans = [local_text(moment, "Europe/Berlin") for moment in (made.start, made.end)]
    assert spans == [f"{monday}T10:00:00", f"{monday}T10:30:00"]


def test_new_booking_preselects_a_project(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    bob = office.make_resource("Bob", timezone="Europe/Berlin")
    eve = office.make_resource("Eve", timezone="Europe/Berlin")
    for resource, name in ((ada, "Check-ups"), (bob, "Surgery")):
        office.make_project(resource["id"], name=name)
    page = open_calendar(visit, editor, ada).page
    selected = "document.querySelector('#cal-book [name=through]').selectedOptions[0].text"

    page.click("#cal-new")
    names = [page.evaluate(selected)]
    for resource in (bob, eve, ada):
        page.evaluate(
            "(() => { const one = document.querySelector('#cal-book [name=resource_id]');"
            f" one.value = '{resource['id']}'; one.dispatchEvent(new Event('change')); }})()"
        )
        names.append(page.evaluate(selected))

    kept = "None (confirmed at once)"
    assert names == ["Check-ups", "Surgery", kept, kept]


def fill(page: Any, **values: str) -> None:
    """Fields of the dialog, as though they had been typed."""
    page.evaluate(
        "((values) => { const fields = document.querySelector('#cal-book form').elements;"
        " for (const [name, value] of Object.entries(values)) { fields[name].value = value;"
        " fields[name].dispatchEvent(new Event('input', {bubbles: true})); } })"
        f"({json.dumps(values)})"
    )


def test_confirmed_booking_takes_three_clicks(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    found = visit(editor, "/admin/")
    page = found.page

    page.click("a[href='/admin/calendar/']")
    page.wait_for("!!document.querySelector('#cal-grid') && " + DRAWN)
    page.click("#cal-new")
    wanted = {"start": "2030-01-08T10:00", "end": "2030-01-08T11:00"}
    fill(page, what="Check-up", name="Doc", email="doc@example.com", **wanted)
    page.click("#cal-book [type=submit]")
    page.wait_for("!document.querySelector('#cal-said').hidden")

    assert [(booking.state, booking.resource.name) for booking in Booking.objects.all()] == [
        ("confirmed", "Ada")
    ]


def test_taken_time_offers_other_resources(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    book(office, ada, "2030-01-08 10:00:00", "2030-01-08 11:00:00", what="Other")
    found = open_calendar(visit, editor, ada)
    found.expected = ["409"]
    page = found.page

    page.click("#cal-new")
    wanted = {"start": "2030-01-08T10:30", "end": "2030-01-08T11:30"}
    fill(page, what="Check-up", name="Doc", email="doc@example.com", **wanted)
    page.click("#cal-book [type=submit]")
    page.wait_for("!document.querySelector('#cal-book [data-error=\"\"]').hidden")
    page.click("#cal-book .cal-choices button")
    page.wait_for("!document.querySelector('#cal-book').open")

    assert list(Booking.objects.order_by("event__start").values_list("event__what", flat=True)) == [
        "Other",
        "Check-up",
    ]
    assert times({"id": Booking.objects.latest("created_at").id}) == (
        "2030-01-08T10:00",
        "2030-01-08T11:00",
    )


HELD_FETCH = """(() => {
  const real = window.fetch;
  const held = new Promise((resolve) => { window.letFetch = resolve; });
  window.fetch = async (...given) => { await held; return real(...given); };
})()"""


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.deep)])
def test_layout_is_stable_while_free_times_load(
    visit: Open, office: Tenant, ada: Any, editor: Account, width: int
) -> None:
    page = open_calendar(visit, editor, ada, width=width).page
    page.evaluate(HELD_FETCH)
    page.click("#cal-new")
    before = page.box("#cal-book [type=submit]")
    page.evaluate("window.letFetch()")
    page.wait_for("!!document.querySelector('#cal-book .cal-choices button')")

    assert page.box("#cal-book [type=submit]") == before


# --- Zones ----------------------------------------------------------------------------------------
AUTUMN = "2030-10-27"


@pytest.mark.parametrize(
    "now",
    [
        "2026-11-22T23:30Z",
        *(
            pytest.param(f"2026-11-22T{hour}Z", marks=pytest.mark.deep)
            for hour in ("00:30", "05:30", "12:00")
        ),
        "2026-11-30T02:30Z",  # Monday in Berlin, Sunday in New York; and the last day of a month
    ],
)
def test_device_in_another_zone(
    visit: Open, office: Tenant, ada: Any, editor: Account, now: str
) -> None:
    """On the day on which Berlin sets its clock back, New York has not done so yet. The page stays
    on that day, whatever the hour is in which it is looked at."""
    booking = book(office, ada, f"{AUTUMN} 10:00:00", f"{AUTUMN} 11:00:00", what="Check-up")
    ids = ada["id"]
    path = f"/admin/calendar/?resources={ids}&date={AUTUMN}&view=day"
    found = visit(editor, path, zone="America/New_York", now=now)
    page = found.page
    page.wait_for("document.querySelector('.ec-event[aria-label*=\"10:00 to 11:00\"]')")

    page.evaluate(
        "(() => { const zone = document.querySelector('#cal-zone'); zone.value = 'viewer';"
        " zone.dispatchEvent(new Event('change')); })()"
    )
    page.wait_for("document.querySelector('.ec-event[aria-label*=\"05:00 to 06:00\"]')")
    assert page.texts("#cal-zones") == ["Times in this device's time zone (America/New_York)."]
    scroll(page, 100)
    x, y = event_place(page, "Check-up")
    page.drag((x, y), (x, place(page, 0, 7)[1] + 6))
    page.wait_for("!document.querySelector('#cal-said').hidden")

    assert times(booking) == ("2030-10-27T11:00", "2030-10-27T12:00")  # 07:00 in New York


@pytest.mark.parametrize(
    "zone",
    [
        pytest.param("UTC", marks=pytest.mark.deep),
        pytest.param("Europe/Berlin", marks=pytest.mark.deep),
        "America/New_York",
        pytest.param("Asia/Kolkata", marks=pytest.mark.deep),
    ],
)
def test_times_are_in_the_zone_of_the_resource_on_any_device(
    visit: Open, office: Tenant, ada: Any, editor: Account, zone: str
) -> None:
    """On a day of 25 hours a drag over the change keeps the length in real time."""
    booking = book(office, ada, "2030-10-26 10:00:00", "2030-10-26 12:00:00", what="Check-up")
    path = f"/admin/calendar/?resources={ada['id']}&date=2030-10-21"
    found = visit(editor, path, zone=zone)
    page = found.page
    page.wait_for("document.querySelector('.ec-event[aria-label*=\"10:00 to 12:00\"]')")
    scroll(page, 110)
    page.drag(event_place(page, "Check-up"), (place(page, 6, 2)[0], place(page, 6, 2)[1] + 6))
    page.wait_for("!document.querySelector('#cal-said').hidden")

    assert times(booking) == ("2030-10-27T00:00", "2030-10-27T02:00")
    said = "Sun 27 Oct 2030, 02:00 UTC+02:00 to 03:00"
    assert page.texts("#cal-said") == [f"Check-up · Marty McFly is now {said}. Undo"]


def test_drag_into_a_skipped_hour_is_refused(
    visit: Open, office: Tenant, ada: Any, editor: Account
) -> None:
    booking = book(office, ada, "2030-03-31 04:00:00", "2030-03-31 04:30:00", what="Check-up")
    path = f"/admin/calendar/?resources={ada['id']}&date=2030-03-31&view=day"
    found = visit(editor, path)
    found.expected = ["422"]
    page = found.page
    page.wait_for("document.querySelector('.ec-event[aria-label*=\"04:00 to 04:30\"]')")
    scroll(page, 40)
    assert page.evaluate("document.querySelectorAll('.ec-bg-event.is-skipped').length") == 1

    x, y = event_place(page, "Check-up")
    page.drag((x, y), (x, place(page, 0, 2)[1] + 6))
    page.wait_for("document.querySelector('#cal-refused').open")

    assert page.texts(".cal-refused-words") == [
        "2030-03-31 02:00:00 does not exist in Europe/Berlin."
    ]
    assert times(booking) == ("2030-03-31T02:00", "2030-03-31T02:30")
