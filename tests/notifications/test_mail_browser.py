"""Mails and the page behind their links in a real browser: narrow and wide, light and dark."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from notifications.mail import SLUGS, compose_mail, compose_password_mail, compose_webhook_notice
from tests.browser import Browser, Page, viewports
from tests.live import PASSWORD_LINK, SIGNED_LINK, LiveApp
from tests.notifications.mails import DELIVERY_ID, html_of, make_app, make_letter
from tests.services import Service

LOOKS = viewports(wide=700, only="narrow")
GROUNDS = {"light": "rgb(242, 244, 247)", "dark": "rgb(18, 22, 27)"}
# The lowest contrast between a text and what lies behind it, by WCAG 2.
LOWEST_CONTRAST = """
(() => {
  const parts = color => color.match(/[\\d.]+/g).map(Number);
  const light = color => {
    const [r, g, b] = parts(color).slice(0, 3).map(value => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    const color = getComputedStyle(element).backgroundColor;
    const [, , , alpha = 1] = parts(color);
    return alpha > 0 || !element.parentElement ? color : ground(element.parentElement);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let lowest = 21;
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.getClientRects().length) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(ground(element))];
    lowest = Math.min(lowest, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return lowest;
})()
"""


def open_page(browser: Browser, url: str, width: int, scheme: str) -> Page:
    page = browser.open("about:blank", width=width)
    media = {"name": "prefers-color-scheme", "value": scheme}
    page.send("Emulation.setEmulatedMedia", features=[media])
    page.requests.clear()
    page.send("Page.navigate", url=url)
    page.wait_for("location.href != 'about:blank' && document.readyState == 'complete'")
    return page


def check_looks(page: Page, width: int, scheme: str) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == GROUNDS[scheme]
    assert page.evaluate(LOWEST_CONTRAST) >= 4.5
    assert (page.complaints, page.failures) == ([], [])


# --- Mails ----------------------------------------------------------------------------------------
def show_mail(
    browser: Browser, html: str, folder: Path, name: str, width: int, scheme: str
) -> None:
    file = folder / f"{name}.html"
    file.write_text(html, "utf-8")

    page = open_page(browser, file.as_uri(), width, scheme)

    page.save_screenshot(f"{name}-{width}-{scheme}")
    assert page.requests == [file.as_uri()]
    check_looks(page, width, scheme)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_mails_are_accessible(
    browser: Browser, clock: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    moved = {"old_start": "2026-11-20T14:00:00+00:00", "old_end": "2026-11-20T14:30:00+00:00"}
    for slug in SLUGS:
        facts = moved if slug.startswith("rescheduled") else {}
        letter = make_letter(slug, message="We are ill.\n\nSorry!", **facts)
        show_mail(browser, html_of(compose_mail(letter)), tmp_path, slug, width, scheme)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("accent", ["#ff7700", "#111111", "#fafafa"])
def test_branded_mails_are_accessible(
    browser: Browser, clock: Any, tmp_path: Path, width: int, scheme: str, accent: str
) -> None:
    """Of any colour: its button can be read in light and dark."""
    app = make_app(
        accent_color=accent,
        address="Harbour Dental\nQuay 5",
        imprint_url="https://example.com/imprint",
        privacy_url="https://example.com/privacy",
        contact_email="desk@example.com",
    )
    mails = {
        "request": compose_mail(make_letter("tentative_owner", app=app)),
        "confirmed": compose_mail(make_letter("confirmed_customer", app=app, project="Check-up")),
        "password": compose_password_mail(
            app=app, delivery_id=DELIVERY_ID, to=["ada@example.com"], url="https://example.com/"
        ),
    }
    for name, mail in mails.items():
        show_mail(browser, html_of(mail), tmp_path, f"{name}-{accent[1:]}", width, scheme)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_webhook_notice_is_accessible(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    notice = compose_webhook_notice(
        app=make_app(),
        delivery_id=DELIVERY_ID,
        to=["owner@example.com"],
        url=f"https://example.com/hook?{'x' * 500}",
        reason="It answered 410 Gone.",
    )

    show_mail(browser, html_of(notice), tmp_path, "notice", width, scheme)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_password_mail_is_accessible(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    mail = compose_password_mail(
        app=make_app(),
        delivery_id=DELIVERY_ID,
        to=["ada@example.com"],
        url="https://example.com/v2/resources/0193a4c2-0000-7000-8000-000000000011/password?signature=x",
    )

    show_mail(browser, html_of(mail), tmp_path, "password-mail", width, scheme)


def test_long_words_do_not_break_the_page(browser: Browser, clock: Any, tmp_path: Path) -> None:
    letter = make_letter(
        "tentative_owner",
        app=make_app(name="W" * 200),
        resource="W" * 200,
        customer={"name": "W" * 200, "email": f"{'w' * 60}@example.com", "phone": "5" * 200},
        what="<b>" + "W" * 197,
        where="W" * 200,
        description="W" * 8000,
        message="W" * 8000,
    )

    show_mail(browser, html_of(compose_mail(letter)), tmp_path, "long", 390, "dark")


# --- The page behind a link -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


def link_of(app: LiveApp) -> str:
    """A fresh booking's link that cancels it."""
    code = SIGNED_LINK.format(booking_id=app.make_ids()["booking_id"])
    printed = app.service.run(code)
    parts = urlsplit(printed.splitlines()[-1])
    return f"{app.url}{parts.path}?{parts.query}"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_action_link_and_button_work(
    browser: Browser, app: LiveApp, width: int, scheme: str
) -> None:
    link = link_of(app)

    page = open_page(browser, link, width, scheme)

    page.save_screenshot(f"link-{width}-{scheme}")
    check_looks(page, width, scheme)
    assert page.evaluate("document.querySelector('h1').innerText") == "Cancel this booking?"

    page.evaluate("document.querySelector('button').click()")
    page.wait_for("document.querySelector('h1').innerText == 'The booking is cancelled'")

    page.save_screenshot(f"link-done-{width}-{scheme}")
    check_looks(page, width, scheme)
    hosts = {urlsplit(url).netloc for url in page.requests if not url.startswith("data:")}
    assert hosts == {urlsplit(app.url).netloc}

    again = open_page(browser, link, width, scheme)

    again.save_screenshot(f"link-again-{width}-{scheme}")
    assert again.evaluate("document.querySelector('h1').innerText") == "This is already done"
    assert again.evaluate("document.documentElement.scrollWidth") <= width


def password_link_of(app: LiveApp) -> str:
    code = PASSWORD_LINK.format(resource_id=app.make_ids()["resource_id"])
    printed = app.service.run(code)
    parts = urlsplit(printed.splitlines()[-1])
    return f"{app.url}{parts.path}?{parts.query}"


FILL = "document.querySelectorAll('[type=password]').forEach(one => one.value = '{}')"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_password_link_sets_a_password(
    browser: Browser, app: LiveApp, width: int, scheme: str
) -> None:
    page = open_page(browser, password_link_of(app), width, scheme)

    page.save_screenshot(f"password-{width}-{scheme}")
    check_looks(page, width, scheme)
    assert page.evaluate("document.querySelector('h1').innerText") == "Choose a new password"
    assert page.evaluate("document.forms[0].noValidate = true")

    page.evaluate(FILL.format("short"))
    page.evaluate("document.querySelector('button').click()")
    page.wait_for("document.querySelector('p') && document.readyState == 'complete'")
    page.wait_for(
        "document.querySelector('main > p')?.innerText == 'The password was too short or too long.'"
    )
    page.save_screenshot(f"password-short-{width}-{scheme}")

    page.evaluate(FILL.format("correct horse battery"))
    page.evaluate("document.querySelector('button').click()")
    page.wait_for("document.querySelector('h1')?.innerText == 'Your password is set'")
    page.save_screenshot(f"password-set-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_action_redirects_to_the_page_of_the_app(browser: Browser, app: LiveApp) -> None:
    """The page's policy holds for where a form is redirected to as well."""
    target = f"http://localhost:{app.service.port}/docs"
    app.call("PUT", f"/v2/apps/{app.slug}", {"settings": {"redirect_urls": [target]}})
    page = open_page(browser, f"{link_of(app)}&redirect={target}?from=mail", 390, "light")

    page.evaluate("document.querySelector('button').click()")
    page.wait_for(f"location.href == '{target}?from=mail'")

    assert page.complaints == []
