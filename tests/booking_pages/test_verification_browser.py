"""The hosted page in a real browser: the code of an e-mail, and proof of work."""

import pytest

from tests.accessibility import load_axe
from tests.booking_pages.shop import (
    IS_READY,
    MARTY,
    WIDTHS,
    Shop,
    check_access,
    check_quiet,
    choose,
    done,
    fill_in,
    submit,
)
from tests.browser import Browser, Page
from tests.live import LiveApp
from tests.services import Service

READ_HELD = """
from bookings.models import UnverifiedBooking
rows = UnverifiedBooking.objects.filter(project="{project}").order_by("created_at")
print(" ".join(f"{{row.id}}={{'open' if row.ended_at is None else 'ended'}}" for row in rows))
"""
READ_CODE = """
import uuid
from bookings.services import code_of
print(code_of(uuid.UUID("{reservation}")))
"""
READ_SECOND_CODE = READ_CODE.replace('")))', '"), 2))')
EXPIRE = """
from datetime import timedelta
from django.utils import timezone
from availability.models import Hold
from bookings.models import UnverifiedBooking
past = timezone.now() - timedelta(seconds=1)
Hold.objects.filter(id="{reservation}").update(expires_at=past)
UnverifiedBooking.objects.filter(id="{reservation}").update(expires_at=past)
"""
MAILS = """
from notifications.models import Delivery
rows = Delivery.objects.filter(app__slug="{slug}", type="email").order_by("id")
rows = rows.exclude(kind__startswith="new_")
print(" ".join(row.kind for row in rows))
"""

SAYS_SOMETHING = "[...document.querySelectorAll('#code-error, #notice')].some(one => one.innerText)"


@pytest.fixture(scope="module")
def axe() -> str:
    return load_axe()


@pytest.fixture
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture
def shop(app: LiveApp) -> Shop:
    return Shop(app, settings={"verify_email": True}, reservation_time=300)


def run(app: LiveApp, code: str, **values: str) -> str:
    return app.service.run(code.format(**values)).strip()


def held(shop: Shop) -> dict[str, str]:
    """reservation id -> open or ended."""
    words = run(shop.app, READ_HELD, project=shop.project["id"]).split()
    return dict(word.split("=") for word in words)


def mails(app: LiveApp) -> list[str]:
    return run(app, MAILS, slug=app.slug).split()


def ask_for_a_code(browser: Browser, shop: Shop, width: int = 1280) -> tuple[Page, str]:
    """The page with the code step, and its reservation."""
    page = shop.open(browser, width)
    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    page.wait_for("document.querySelector('#verify')?.hidden === false")
    return page, list(held(shop))[-1]


def type_code(page: Page, code: str) -> None:
    page.evaluate("document.querySelector('#code').select()")
    page.type(code)
    page.click("#complete")


def code_error(page: Page) -> str:
    page.wait_for("!!document.querySelector('#code-error').innerText")
    return page.evaluate("document.querySelector('#code-error').innerText")


def notice(page: Page) -> str:
    page.wait_for("!!document.querySelector('#notice').innerText")
    return page.evaluate("document.querySelector('#notice').innerText")


def wrong(app: LiveApp, reservation: str) -> str:
    right = run(app, READ_CODE, reservation=reservation)
    return "000000" if right != "000000" else "111111"


@pytest.mark.parametrize("width", WIDTHS)
def test_booking_with_a_code(
    browser: Browser, app: LiveApp, shop: Shop, axe: str, width: int
) -> None:
    page, reservation = ask_for_a_code(browser, shop, width)

    assert page.texts("#verify h2, #verify-hint") == [
        "Confirm your e-mail address",
        "We sent a six-digit code to marty@example.com. Enter it within 15 minutes to complete"
        " your booking.",
    ]
    assert page.evaluate("document.activeElement.id") == "verify-title"
    assert (shop.bookings(), mails(app)) == ([], ["verification_code"])
    page.save_screenshot(f"code-{width}", whole=True)
    check_access(page, axe, width)

    type_code(page, run(app, READ_CODE, reservation=reservation))

    assert done(page).startswith("Your booking is confirmed\n\nMonday, 3 March 2031, 09:00 – 09:30")
    assert [booking["state"] for booking in shop.bookings()] == ["confirmed"]
    assert mails(app) == ["verification_code", "confirmed", "confirmed"]
    check_quiet(page, app)


FAST_HALF_MINUTES = """
const real = window.setTimeout;
window.setTimeout = (act, ms, ...rest) => real(act, ms === 30000 ? 300 : ms, ...rest);
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_another_code_can_be_sent(browser: Browser, app: LiveApp, shop: Shop, width: int) -> None:
    """Half a minute after the one before, of which this test waits a part."""
    page = browser.open("about:blank", width=width, zone="Europe/Berlin")
    page.send("Page.addScriptToEvaluateOnNewDocument", source=FAST_HALF_MINUTES)
    page.send("Page.navigate", url=shop.url)
    page.wait_for(IS_READY)
    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    page.wait_for("document.querySelector('#verify')?.hidden === false")
    is_waiting = page.evaluate("document.querySelector('#resend').disabled")
    page.wait_for("!document.querySelector('#resend').disabled")

    page.click("#resend")
    page.wait_for("document.querySelector('#verify-hint').innerText.startsWith('We sent a new')")

    (reservation,) = held(shop)
    sent = page.texts("#verify-hint"), page.evaluate("document.activeElement.id")
    type_code(page, run(app, READ_SECOND_CODE, reservation=reservation))
    assert (is_waiting, sent) == (
        True,
        (["We sent a new code. The earlier one no longer works."], "code"),
    )
    assert done(page).startswith("Your booking is confirmed")
    assert mails(app)[:2] == ["verification_code", "verification_code"]
    check_quiet(page, app)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_mistyped_address_is_corrected_on_the_page(
    browser: Browser, app: LiveApp, shop: Shop, axe: str, width: int
) -> None:
    """The time stays held meanwhile."""
    page = shop.open(browser, width)
    choose(page, "09:00")
    fill_in(page, name="Marty McFly", email="mraty@example.com")
    submit(page)
    page.wait_for("document.querySelector('#verify')?.hidden === false")

    page.click("#change-email")
    page.wait_for("!document.querySelector('#form').hidden")
    chosen = page.texts("#chosen"), page.evaluate("document.activeElement.value")
    check_access(page, axe, width)
    page.type(MARTY["email"])
    submit(page)
    page.wait_for("document.querySelector('#verify')?.hidden === false")

    ((reservation, state),) = held(shop).items()
    hint = page.texts("#verify-hint")
    type_code(page, run(app, READ_SECOND_CODE, reservation=reservation))
    assert chosen == (["Monday, 3 March 2031, 09:00 – 09:30"], "mraty@example.com")
    assert (state, hint[0].split(".")[0]) == ("open", "We sent a six-digit code to marty@example")
    assert done(page).startswith("Your booking is confirmed")
    assert shop.bookings()[0]["customers"][0]["email"] == MARTY["email"]
    check_quiet(page, app)


@pytest.mark.parametrize("width", WIDTHS)
def test_wrong_and_missing_codes_show_an_error(
    browser: Browser, app: LiveApp, shop: Shop, axe: str, width: int
) -> None:
    page, reservation = ask_for_a_code(browser, shop, width)

    type_code(page, "12")
    form = code_error(page)
    type_code(page, wrong(app, reservation))
    page.wait_for(f"document.querySelector('#code-error').innerText != {form!r}")

    assert form == "Please enter the six digits of the code."
    assert code_error(page) == "This code is wrong. Please check the e-mail."
    assert page.evaluate("document.activeElement.id") == "code"
    check_access(page, axe, width)
    type_code(page, run(app, READ_CODE, reservation=reservation))
    assert done(page).startswith("Your booking is confirmed")
    check_quiet(page, app, "422")


@pytest.mark.parametrize("width", WIDTHS)
def test_five_wrong_codes_end_the_hold(
    browser: Browser, app: LiveApp, shop: Shop, width: int
) -> None:
    page, reservation = ask_for_a_code(browser, shop, width)
    code = wrong(app, reservation)

    for _ in range(5):
        page.evaluate("document.querySelector('#code-error').textContent = ''")
        type_code(page, code)
        page.wait_for(SAYS_SOMETHING)

    assert notice(page) == (
        "The code was wrong too often. Please choose a time again.\n\nShow all free times"
    )
    assert held(shop) == {reservation: "ended"}
    page.click("#notice button")
    choose(page, "09:00")
    assert mails(app) == ["verification_code"]
    check_quiet(page, app, "422")


@pytest.mark.parametrize("width", WIDTHS)
def test_expired_code_is_refused(browser: Browser, app: LiveApp, shop: Shop, width: int) -> None:
    page, reservation = ask_for_a_code(browser, shop, width)
    run(app, EXPIRE, reservation=reservation)

    type_code(page, run(app, READ_CODE, reservation=reservation))

    assert notice(page) == (
        "The code has expired. Please choose a time again.\n\nShow all free times"
    )
    page.click("#notice button")
    choose(page, "09:00")
    assert shop.bookings() == []
    check_quiet(page, app, "409")


@pytest.mark.parametrize("width", WIDTHS)
def test_back_button_returns_to_the_times(
    browser: Browser, app: LiveApp, shop: Shop, width: int
) -> None:
    page, reservation = ask_for_a_code(browser, shop, width)

    page.click("#verify-back")
    choose(page, "09:00")
    page.wait_for("!!document.querySelector('#held').innerText")

    assert held(shop) == {reservation: "ended"}
    assert page.evaluate("document.querySelector('[data-key=email] input').value") == MARTY["email"]
    assert mails(app) == ["verification_code"]
    check_quiet(page, app)


@pytest.mark.parametrize("width", WIDTHS)
def test_mail_link_opens_the_code_form(
    browser: Browser, app: LiveApp, shop: Shop, width: int
) -> None:
    _, reservation = ask_for_a_code(browser, shop, width)

    page = browser.open(f"{shop.url}?reservation={reservation}", width=width)
    page.wait_for(IS_READY)
    hint = page.texts("#verify-hint")
    type_code(page, run(app, READ_CODE, reservation=reservation))

    assert hint == ["Enter the six-digit code from the e-mail to complete your booking."]
    assert done(page).startswith("Your booking is confirmed")
    check_quiet(page, app)


# --- Proof of work --------------------------------------------------------------------------------
def test_page_solves_challenges(browser: Browser, app: LiveApp, axe: str) -> None:
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": {"public_challenge": "altcha"}})
    shop = Shop(app, reservation_time=300)
    page = shop.open(browser)

    choose(page, "09:00")
    page.wait_for("!!document.querySelector('#held').innerText")
    fill_in(page, **MARTY)
    submit(page)

    assert done(page).startswith("Your booking is confirmed")
    assert [booking["state"] for booking in shop.bookings()] == ["confirmed"]
    assert any(url.endswith("/solve.js") for url in page.requests)
    check_quiet(page, app)


def test_page_solves_a_challenge_above_a_limit(browser: Browser, app: LiveApp) -> None:
    limits = {"public_challenge": "off", "public_bookings_per_email_per_day": 1}
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": limits})
    shop = Shop(app)

    def book(time: str) -> tuple[str, bool]:
        """What the page says, and whether it has solved a challenge."""
        page = shop.open(browser)
        choose(page, time)
        fill_in(page, **MARTY)
        submit(page)
        return done(page).split("\n")[0], any(url.endswith("/solve.js") for url in page.requests)

    found = [book("09:00"), book("10:00")]

    confirmed = "Your booking is confirmed"
    assert found == [(confirmed, False), (confirmed, True)]


def test_without_the_setting_no_challenge_is_loaded(browser: Browser, app: LiveApp) -> None:
    shop = Shop(app)
    page = shop.open(browser)

    choose(page, "09:00")
    fill_in(page, **MARTY)
    submit(page)
    done(page)

    assert [url for url in page.requests if "challenge" in url or "solve" in url] == []
