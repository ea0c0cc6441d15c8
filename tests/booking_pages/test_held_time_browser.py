"""The page of a held time in a real browser, without any script of ours: everybody can use it."""

from urllib.parse import urlsplit

import pytest

from tests.accessibility import load_axe
from tests.booking_pages.shop import FIELDS, MONDAY, Shop, check_access, check_quiet
from tests.booking_pages.test_links_browser import heading_becomes, open_page
from tests.browser import Browser, viewports
from tests.live import LiveApp
from tests.services import Service

LINK = """
from booking_pages.hold_links import booking_link
from availability.models import Hold
print(booking_link(Hold.objects.select_related("project__app").get(id="{hold_id}")))
"""


@pytest.fixture
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def axe() -> str:
    return load_axe()


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_a_person_books_by_keyboard(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    shop = Shop(app, customer_fields=FIELDS)
    span = {"start": f"{MONDAY} 09:00:00", "end": f"{MONDAY} 09:30:00"}
    wish = {"project_id": shop.project["id"], "reservation_time": 600, **span}
    hold = app.post("/v2/bookings/reserve", wish).data
    printed = app.service.run(LINK.format(hold_id=hold["reservation_id"]))
    link = urlsplit(printed.split()[-1])
    page = open_page(browser, f"{app.url}{link.path}?{link.query}", width, scheme)

    def check_page(name: str) -> None:
        page.save_screenshot(f"held-{name}-{width}-{scheme}", whole=True)
        check_access(page, axe, width)

    check_page("form")
    page.tab_to("#field-1")
    page.type("Marty McFly")
    page.tab_to("#field-2")
    page.type("marty@example")
    page.evaluate("document.querySelector('#field-5').value = 'Public'")
    page.tab_to("#field-6")
    page.press(" ")
    page.tab_to("button[type=submit]")
    page.press("Enter")
    page.wait_for("!!document.querySelector('[aria-invalid]')")
    check_page("refused")
    page.type_into("#field-2", "marty@example.com")
    page.click("button[type=submit]")
    heading_becomes(page, "Your booking is confirmed")
    check_page("booked")

    [booking] = shop.bookings()
    assert [each["email"] for each in booking["customers"]] == ["marty@example.com"]
    page.send("Page.navigate", url=f"{app.url}{link.path}?{link.query}")
    heading_becomes(page, "This link no longer works")
    check_page("ended")
    check_quiet(page, app, "409", "422")
