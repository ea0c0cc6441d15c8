"""The hosted page in a real browser: the person, and seats in a group session."""

from typing import Any

import pytest

from tests.accessibility import load_axe
from tests.booking_pages.shop import (
    IS_READY,
    MARTY,
    MONDAY,
    NINE_TO_NOON,
    WIDTHS,
    Shop,
    check_access,
    check_quiet,
    choose,
    done,
    fill_in,
    submit,
)
from tests.browser import Browser, viewports
from tests.live import LiveApp
from tests.services import Service

# A PNG of 68 x 68 pixels: head and shoulders.
PORTRAIT = (
    "iVBORw0KGgoAAAANSUhEUgAAAEQAAABEAgMAAABFfXshAAAACVBMVEV/sNgnO1fwyKQffbwkAAAAh0lEQVR42u3R"
    "sRGAIAxAUcKdjb1LOIUjUJh9HIXSy5SiQoCEgkbPQsp35HtEY/7Tc0bahRDRVoEN4sUQibE5CMmMCCmxl/gPS88r"
    "Gm/X+9E71Htu/Is3DyIuFUxBsAQ4AZ28Ul26oShBlDw2RFllpggl4BCwOJHJIS0c5rSWDOljHQKFuCflAHDKk7SP"
    "W8GPAAAAAElFTkSuQmCC"
)
STORE_PICTURE = f"""
import base64
from availability.models import Resource
from availability.services import store_picture
from common.images import square_picture
resource = Resource.objects.get(id="{{resource_id}}")
picture = square_picture(base64.b64decode("{PORTRAIT}"), path="picture")
store_picture(resource, picture)
"""


@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def axe() -> str:
    return load_axe()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_chosen_person_is_booked(browser: Browser, app: LiveApp, axe: str, width: int) -> None:
    bo = {"name": "Bo Lind", "timezone": "Europe/Berlin", "availability_constraints": NINE_TO_NOON}
    second = app.post("/v2/resources", bo).data
    shop = Shop(app, settings={"choose_resource": True}, reservation_time=300)
    resources = [shop.resource["id"], second["id"]]
    app.call("PUT", f"/v2/projects/{shop.project['id']}", {"resources": resources})
    app.service.run(STORE_PICTURE.format(resource_id=second["id"]))
    page = shop.open(browser, width)

    check_access(page, axe, width)
    page.wait_for("document.querySelector('.people li:nth-child(3) img').naturalWidth === 136")
    assert page.texts(".people li .initials") == ["", "AB"]
    page.click(".people li:nth-child(3) a")
    page.wait_for(f"location.search.includes('{second['id']}') && {IS_READY}")
    page.save_screenshot(f"book-person-{width}", whole=True)
    is_said = "document.querySelector('.facts .chosen-person').checkVisibility()"
    assert not page.evaluate(is_said)  # the choice says it
    choose(page, "09:00")
    page.wait_for("!!document.querySelector('#held').innerText")
    assert page.evaluate(is_said)
    fill_in(page, **MARTY)
    submit(page)

    assert "With: Bo Lind" in done(page)
    [booking] = app.get(f"/v2/bookings?resource_id={second['id']}&include=project").data
    assert booking["project"]["id"] == shop.project["id"]
    check_quiet(page, app)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_chosen_person_of_a_requirement_is_booked(
    browser: Browser, app: LiveApp, axe: str, width: int
) -> None:
    given = {"timezone": "Europe/Berlin", "availability_constraints": NINE_TO_NOON}
    bo, room = (
        app.post("/v2/resources", {"name": name, **given}).data for name in ("Bo Lind", "Room 1")
    )
    shop = Shop(app, settings={"choose_resource": "dentist"}, reservation_time=300)
    requires = [
        {"name": "room", "any_of": [room["id"]]},
        {"name": "dentist", "any_of": [shop.resource["id"], bo["id"]]},
    ]
    path = f"/v2/projects/{shop.project['id']}"
    assert app.call("PUT", path, {"requires": requires}).status == 200
    page = shop.open(browser, width)

    check_access(page, axe, width)
    page.click(".people li:nth-child(3) a")
    page.wait_for(f"location.search.includes('{bo['id']}') && {IS_READY}")
    page.save_screenshot(f"book-requirement-{width}", whole=True)
    choose(page, "09:00")
    page.wait_for("!!document.querySelector('#held').innerText")
    fill_in(page, **MARTY)
    submit(page)
    done(page)

    [booking] = app.get(f"/v2/bookings?project_id={shop.project['id']}&include=resources").data
    assert [each["id"] for each in booking["resources"]] == [room["id"], bo["id"]]
    check_quiet(page, app)


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_the_chosen_length_is_booked(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    lengths = {"length": "30 minutes", "lengths": ["30 minutes", "1 hour"]}
    shop = Shop(app, availability=lengths, reservation_time=300)
    page = shop.open(browser, width, scheme=scheme)
    page.click("[data-date='2031-03-04']")

    page.click(".lengths li:nth-child(2) a")
    page.wait_for(f"location.search.includes('length=1+hour') && {IS_READY}")
    page.save_screenshot(f"book-length-{width}-{scheme}", whole=True)
    check_access(page, axe, width)
    address, times = page.evaluate("location.search"), page.texts("#times li")
    choose(page, "10:00")
    page.wait_for("!!document.querySelector('#held').innerText")
    held = page.evaluate("location.search")
    page.send("Page.reload")
    page.wait_for("document.querySelector('#held')?.innerText?.includes('holding this time')")
    fill_in(page, name="Marty McFly", email=f"marty-{width}-{scheme}@example.com")
    submit(page)

    assert done(page).splitlines()[2] == "Tuesday, 4 March 2031, 10:00 – 11:00 (Europe/Berlin)"
    assert (address, times) == ("?length=1+hour&date=2031-03-04", ["09:00", "10:00", "11:00"])
    assert held == "?length=1+hour&date=2031-03-04&time=2031-03-04T09:00:00Z"
    [booking] = shop.bookings()
    assert (booking["event"]["start"], booking["event"]["end"]) == (
        "2031-03-04T09:00:00+00:00",
        "2031-03-04T10:00:00+00:00",
    )


def open_yoga(app: LiveApp, **settings: Any) -> tuple[Shop, Any]:
    """A page that sells seats of one group, whose settings are given, and the group."""
    given = {"what": "Yoga", "graph": "group_customer"}
    shop = Shop(app, booking=given, settings={"published": True, "max_quantity": 3})
    group = {
        "project_id": shop.project["id"],
        "graph": "group_owner",
        "start": f"{MONDAY} 09:00:00",
        "end": f"{MONDAY} 09:30:00",
        "what": "Yoga",
        "settings": settings,
    }
    return shop, app.post("/v2/bookings", group).data


@pytest.mark.parametrize("width", WIDTHS)
def test_several_seats_are_one_booking(
    browser: Browser, app: LiveApp, axe: str, width: int
) -> None:
    shop, owner = open_yoga(app, places={"Front": 2, "Back": 3})
    page = shop.open(browser, width)

    times = page.texts("#times li")
    check_access(page, axe, width)
    page.evaluate("document.querySelector('#times button').click()")
    offered = page.texts("#seats option")
    page.evaluate("document.querySelector('#seats').value = '2'")
    page.evaluate("document.querySelector('#place').value = 'Back'")
    fill_in(page, **MARTY)
    page.save_screenshot(f"book-seats-{width}", whole=True)
    check_access(page, axe, width)
    submit(page)

    said = done(page)
    page.save_screenshot(f"done-seats-{width}", whole=True)
    assert [" ".join(time.split()) for time in times] == ["09:00 5 seats left"]
    assert offered == ["1", "2", "3"]
    assert "\nSeats: 2\n\nPlace: Back\n" in said
    assert "\nCancel the booking\n" in said
    query = f"owner_booking_id={owner['id']}&include=customers,quantity,place"
    seats = app.get(f"/v2/bookings?{query}").data
    assert [(seat["customers"][0]["email"], seat["quantity"], seat["place"]) for seat in seats] == [
        (MARTY["email"], 2, "Back")
    ]
    check_quiet(page, app)


def test_fewer_seats_than_requested_are_reported(browser: Browser, app: LiveApp) -> None:
    """Nothing is booked, and the form offers those that are left."""
    shop, owner = open_yoga(app, max_seats=4)
    page = shop.open(browser)
    page.evaluate("document.querySelector('#times button').click()")
    page.evaluate("document.querySelector('#seats').value = '3'")
    seat = {"project_id": shop.project["id"], "related": {"owner_booking_id": owner["id"]}}
    customer = {"name": "Doc", "email": "doc@example.com"}
    app.post("/v2/bookings", seat | {"quantity": 2, "customer": customer})

    fill_in(page, **MARTY)
    submit(page)
    page.wait_for("!!document.querySelector('#notice p')")
    said, offered = page.texts("#notice p")[0], page.texts("#seats option")
    page.evaluate("document.querySelector('#seats').value = '2'")
    submit(page)

    assert said == "Fewer seats are free by now. Choose fewer, or another place or time."
    assert offered == ["1", "2"]
    assert "\nSeats: 2\n" in done(page)
    check_quiet(page, app, "409")


def test_session_filled_before_submit_is_reported(browser: Browser, app: LiveApp) -> None:
    shop, owner = open_yoga(app, max_seats=1)
    page = shop.open(browser)
    page.evaluate("document.querySelector('#times button').click()")
    seat = {"project_id": shop.project["id"], "related": {"owner_booking_id": owner["id"]}}
    app.post("/v2/bookings", seat | {"customer": {"name": "Doc", "email": "doc@example.com"}})

    fill_in(page, **MARTY)
    submit(page)
    page.wait_for("!!document.querySelector('#notice p')")

    assert page.texts("#notice p")[0] == "This session has no free seat any more."
    check_quiet(page, app, "409")


# --- After the booking ----------------------------------------------------------------------------
def test_success_page_links_work(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app)
    page = shop.open(browser)
    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    done(page)

    links = page.evaluate(LINKS)
    entry = page.evaluate_promise(f"fetch({links['Add to calendar']!r}).then(r => r.text())")
    page.click("#done a[href*='reschedule']")
    page.wait_for("document.querySelector('h1')?.innerText == 'Choose another time'")

    [booking] = shop.bookings()
    assert links["Show on a map"] == (
        "https://www.openstreetmap.org/search?query=Harbour+Dental%2C+Quay+5"
    )
    assert links["Google Calendar"] == (
        "https://calendar.google.com/calendar/render?action=TEMPLATE&text=Check-up"
        "&dates=20310303T080000Z%2F20310303T083000Z&location=Harbour+Dental%2C+Quay+5"
    )
    outlook = "https://outlook.live.com/calendar/0/deeplink/compose?"
    assert links["Outlook"].startswith(outlook)
    assert links["Microsoft 365"] == links["Outlook"].replace("live.com", "office.com")
    assert (
        f"/v2/bookings/{booking['id']}/external_action/cancel_by_customer?"
        in (links["Cancel the booking"])
    )
    lines = entry.split("\r\n")
    assert {"METHOD:PUBLISH", "SUMMARY:Check-up", "DTSTART:20310303T080000Z"} <= set(lines)
    assert "LOCATION:Harbour Dental\\, Quay 5" in lines
    check_quiet(page, app)


LINKS = """
Object.fromEntries([...document.querySelectorAll("#done a")].map(one => [one.innerText, one.href]))
"""


def test_redirect_to_the_page_of_the_project(browser: Browser, app: LiveApp) -> None:
    address = f"{app.url}/book/nowhere?shop=7"
    shop = Shop(app, settings={"redirect_url": address})
    page = shop.open(browser)

    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    page.wait_for("location.pathname == '/book/nowhere'")

    [booking] = shop.bookings()
    assert page.evaluate("location.href") == f"{address}&booking_id={booking['id']}"


def test_no_mail_is_announced_if_emails_are_disabled(browser: Browser, app: LiveApp) -> None:
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": {"disable_emails": True}})
    shop = Shop(app, booking={"what": "Check-up", "graph": "confirm_decline"})
    page = shop.open(browser)

    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    said = done(page)
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": {"disable_emails": None}})

    assert said == (
        "Your request has been sent\n\n"
        "Monday, 3 March 2031, 09:00 – 09:30 (Europe/Berlin)\n\n"
        "With: Dr. Ada Berg\n\n"
        "Your request is not confirmed yet.\n\n"
        "Choose another time\nCancel the booking\n\n"
        "Make another booking"
    )


# --- The look -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("width", "scheme"), viewports(only="wide"))
def test_branded_pages_are_accessible(
    browser: Browser, live_service: Service, axe: str, width: int, scheme: str
) -> None:
    app = LiveApp(live_service)
    look = {
        "accent_color": "#ff7700",
        "cover_text": "Welcome to the harbour.",
        "address": "Harbour Dental\nQuay 5",
        "imprint_url": "https://example.com/imprint",
        "privacy_url": "https://example.com/privacy",
    }
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": look})
    shop = Shop(app)

    page = browser.open(f"{app.url}/book/{app.slug}", width=width, scheme=scheme)
    page.wait_for("!!document.querySelector('.service')")
    page.save_screenshot(f"app-{width}-{scheme}", whole=True)
    check_access(page, axe, width)
    check_quiet(page, app)
    page.click(".service")
    page.wait_for(IS_READY)
    page.save_screenshot(f"book-look-{width}-{scheme}", whole=True)
    check_access(page, axe, width)

    assert page.evaluate("location.pathname") == f"/book/{shop.project['slug']}"
    check_quiet(page, app)


@pytest.mark.parametrize("width", WIDTHS)
def test_several_units_are_booked_together(
    browser: Browser, app: LiveApp, axe: str, width: int
) -> None:
    shop = Shop(app, settings={"max_quantity": 3, "show_remaining": True}, reservation_time=300)
    app.call("PUT", f"/v2/resources/{shop.resource['id']}", {"capacity": 4})
    shop.book()
    page = shop.open(browser, width)

    check_access(page, axe, width)
    assert page.texts(".lengths a") == ["1", "2", "3"]
    page.click(".lengths li:nth-child(3) a")
    page.wait_for(f"location.search.includes('quantity=3') && {IS_READY}")
    page.save_screenshot(f"book-number-{width}", whole=True)
    times = page.evaluate("[...document.querySelectorAll('#times button')].map(b => b.innerText)")
    assert [" ".join(time.split()) for time in times][:2] == ["09:00 3 left", "09:30 4 left"]
    choose(page, times[0])
    fill_in(page, **MARTY)
    submit(page)
    done(page)

    whole = app.get(f"/v2/bookings/{shop.bookings()[-1]['id']}").data
    assert whole["quantity"] == 3
    check_quiet(page, app)
