"""The pages behind the links of mails in a real browser: one look, and everybody can use them."""

from urllib.parse import urlsplit

import pytest

from tests.accessibility import load_axe
from tests.booking_pages.shop import MONDAY, WIDTHS, Shop, check_access, check_quiet
from tests.browser import Browser, Page, viewports
from tests.live import PASSWORD_LINK, UNSUBSCRIBE_LINK, LiveApp
from tests.services import Service

LOOKS = viewports(only="narrow")
# Of the button that ends a booking, and of the one that confirms it.
DANGER = {"light": "rgb(155, 28, 28)", "dark": "rgb(255, 180, 174)"}
USUAL = {"light": "rgb(31, 79, 153)", "dark": "rgb(156, 194, 255)"}
GROUNDS = {"light": "rgb(242, 244, 247)", "dark": "rgb(18, 22, 27)"}


@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def axe() -> str:
    return load_axe()


def open_page(browser: Browser, url: str, width: int = 1280, scheme: str = "light") -> Page:
    page = browser.open(url, width=width, scheme=scheme)
    page.wait_for("document.readyState == 'complete' && !!document.querySelector('h1')")
    return page


def heading_becomes(page: Page, heading: str) -> None:
    page.wait_for(f"document.querySelector('h1')?.innerText == {heading!r}")
    page.wait_for("document.readyState == 'complete'")


@pytest.mark.parametrize("width", WIDTHS)
def test_reschedule_by_keyboard(browser: Browser, app: LiveApp, width: int) -> None:
    shop = Shop(app)
    booking = shop.book()
    page = open_page(browser, shop.link(booking), width)

    page.tab_to(".days li:nth-child(2) a")
    page.press("Enter")
    page.wait_for("document.querySelector('legend h3')?.innerText == 'Tuesday, 4 March 2031'")
    page.tab_to("input[type=radio]")
    page.press("ArrowDown")
    page.press("ArrowDown")
    page.tab_to("button[type=submit]")
    page.press("Enter")
    heading_becomes(page, "Your booking has been moved")

    assert page.texts("dd")[1] == "Tuesday, 4 March 2031, 10:00 – 10:30 (Europe/Berlin)"
    assert [booking["event"]["start"] for booking in shop.bookings()] == [
        "2031-03-04T09:00:00+00:00"
    ]
    check_quiet(page, app)


def test_zone_search_and_button_after_a_choice(browser: Browser, app: LiveApp, axe: str) -> None:
    shop = Shop(app)
    page = open_page(browser, shop.link(shop.book()), 390)
    button = "document.querySelector('#times button').checkVisibility()"

    assert page.evaluate("document.querySelector('#change-zone').checkVisibility()") is False
    assert page.evaluate(button) is False
    page.click("#zone")
    page.wait_for("!document.querySelector('#zones').hidden")
    page.type("kolkata")
    page.wait_for("document.querySelectorAll('#zones li').length == 1")
    page.save_screenshot("reschedule-zone-390", whole=True)
    page.press("Enter")
    page.wait_for("location.search.includes('timezone=Asia%2FKolkata')")
    page.wait_for("document.querySelector('#zone')?.value == 'Asia/Kolkata'")
    page.click("#times label.time")

    assert page.texts("#times label.time")[0] == "14:00"
    assert page.evaluate(button) is True
    check_access(page, axe, 390)
    check_quiet(page, app)


def test_injected_script_is_not_run(browser: Browser, app: LiveApp) -> None:
    attack = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
    shop = Shop(app, name=attack, booking={"what": attack, "where": attack})
    page = open_page(browser, shop.link(shop.book()))

    assert page.texts("dd")[0] == attack
    assert page.evaluate("window.hit") is None
    check_quiet(page, app)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_reschedule_pages_are_accessible(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    shop = Shop(app)
    link = shop.link(shop.book())
    page = open_page(browser, link, width, scheme)

    def look(name: str) -> None:
        page.save_screenshot(f"reschedule-{name}-{width}-{scheme}", whole=True)
        check_access(page, axe, width)

    look("times")
    shop.book(f"{MONDAY} 10:00:00", f"{MONDAY} 10:30:00")
    page.click("li:nth-child(2) > label.time")
    page.click(".moving button")
    page.wait_for("!!document.querySelector('[role=alert]')")
    look("taken")
    page.click("li:nth-child(1) > label.time")
    page.click(".moving button")
    heading_becomes(page, "Your booking has been moved")
    look("done")
    check_quiet(page, app, "409")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_refused_reschedule_page_is_accessible(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    shop = Shop(app, settings={"max_reschedules": 0})
    page = open_page(browser, shop.link(shop.book()), width, scheme)

    page.save_screenshot(f"reschedule-refused-{width}-{scheme}", whole=True)
    assert page.texts("h1") == ["The booking can't be moved again"]
    check_access(page, axe, width)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_action_pages_are_accessible(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    shop = Shop(app, booking={"graph": "confirm_decline", "what": "Check-up"})
    links = shop.links(shop.book())
    questions = {
        "confirm": "Confirm this booking?",
        "decline": "Decline this booking?",
        "cancel_by_customer": "Cancel this booking?",
    }
    for action, question in questions.items():
        page = open_page(browser, links[action], width, scheme)

        page.save_screenshot(f"{action}-{width}-{scheme}", whole=True)
        assert page.texts("h1") == [question]
        color = (USUAL if action == "confirm" else DANGER)[scheme]
        button = "document.querySelector('button[type=submit]')"
        assert page.evaluate(f"getComputedStyle({button}).backgroundColor") == color
        check_looks(page, app, axe, width, scheme)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_password_page_is_accessible(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    code = PASSWORD_LINK.format(resource_id=app.make_ids()["resource_id"])
    parts = urlsplit(app.service.run(code).split()[-1])
    page = open_page(browser, f"{app.url}{parts.path}?{parts.query}", width, scheme)

    page.save_screenshot(f"password-{width}-{scheme}", whole=True)
    assert page.texts("h1") == ["Choose a new password"]
    check_looks(page, app, axe, width, scheme)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_unsubscribe_page_is_accessible(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    code = UNSUBSCRIBE_LINK.format(booking_id=Shop(app).book()["id"])
    parts = urlsplit(app.service.run(code).split()[-1])
    page = open_page(browser, f"{app.url}{parts.path}?{parts.query}", width, scheme)

    page.save_screenshot(f"unsubscribe-{width}-{scheme}", whole=True)
    assert page.texts("h1") == ["Stop reminders?"]
    check_looks(page, app, axe, width, scheme)
    page.click("button[type=submit]")
    heading_becomes(page, "You will get no more reminders")
    page.save_screenshot(f"unsubscribed-{width}-{scheme}", whole=True)
    check_looks(page, app, axe, width, scheme)


def check_looks(page: Page, app: LiveApp, axe: str, width: int, scheme: str) -> None:
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == GROUNDS[scheme]
    check_access(page, axe, width)
    check_quiet(page, app)
