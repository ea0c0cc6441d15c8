"""Own bookings in a real browser, without any script of ours: everybody can use each page."""

from urllib.parse import urlsplit

import pytest

from tests.accessibility import load_axe
from tests.booking_pages.shop import Shop, check_access, check_quiet
from tests.booking_pages.test_links_browser import heading_becomes, open_page
from tests.browser import Browser, viewports
from tests.live import LiveApp
from tests.services import Service

# As in the e-mail.
LINK = """
import uuid
from datetime import timedelta
from django.utils import timezone
from apps_config.models import App
from notifications.links.own_bookings import own_bookings_url
app = App.objects.get(slug="{slug}")
ends = timezone.now() + timedelta(minutes=15)
for _ in range({count}):
    print(own_bookings_url(app, "doc@example.com", nonce=uuid.uuid4(), expires_at=ends))
"""


@pytest.fixture
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def axe() -> str:
    return load_axe()


def links(app: LiveApp, count: int = 1) -> list[str]:
    printed = app.service.run(LINK.format(slug=app.slug, count=count))
    parts = [urlsplit(line) for line in printed.split() if "token=" in line]
    return [f"{app.url}{part.path}?{part.query}" for part in parts]


@pytest.mark.parametrize(("width", "scheme"), viewports(only="narrow"))
def test_own_bookings_pages_are_accessible(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    shop = Shop(app)
    booking = shop.book()
    home = f"{app.url}/book/{app.slug}/mine"
    page = open_page(browser, home, width, scheme)

    def look(name: str) -> None:
        page.save_screenshot(f"own-{name}-{width}-{scheme}", whole=True)
        check_access(page, axe, width)

    look("ask")
    page.tab_to("#email")
    page.type("doc@example.com")
    page.press("Enter")
    heading_becomes(page, "Check your inbox")
    look("sent")

    page.send("Page.navigate", url=links(app)[0])
    page.wait_for("document.querySelector('button')?.innerText == 'Show my bookings'")
    look("open")
    page.click("button[type=submit]")
    page.wait_for("!!document.querySelector('#upcoming')")
    look("list")
    assert page.evaluate("location.href") == home

    correct = f"a[href$='/mine/bookings/{booking['id']}']"
    page.click(correct)
    heading_becomes(page, "Correct name or phone")
    look("details")
    page.type_into("#name", "Emmett Brown")
    page.click("button[type=submit]")
    page.wait_for("document.querySelector('[role=status]')?.innerText == 'Your details are saved.'")

    page.click("a[href$='/mine/erase']")
    heading_becomes(page, "Erase my data?")
    look("refused")
    page.click("main p a")
    page.wait_for(f"!!document.querySelector({correct!r})")
    page.click(f"li:has({correct}) a[href*=cancel_by_customer]")
    heading_becomes(page, "Cancel this booking?")
    page.click("button.danger")
    heading_becomes(page, "The booking is cancelled")

    [row] = shop.bookings()
    assert (row["state"], row["customers"][0]["name"]) == ("cancelled_by_customer", "Emmett Brown")
    check_quiet(page, app, "409")
