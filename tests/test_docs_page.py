"""/docs: browsable, and nothing on it comes from elsewhere."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from tests.browser import Browser, Page
from tests.live import LiveApp, LiveCaller
from tests.services import Service

ALLOWED_INSTRUCTIONS = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
}
IS_DRAWN = "document.querySelectorAll('.opblock').length > 40"


class Assets(HTMLParser):
    """The addresses that a page names, and whatever it says inline."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        places = ("src", "href", "data-document")
        self.addresses += [named[name] for name in places if name in named]
        self.inline += ["style"] if tag == "style" or "style" in named else []
        self.inline += ["script"] if tag == "script" and "src" not in named else []
        self.inline += [name for name in named if name.startswith("on")]


def test_page_names_only_what_this_service_has(live_service: Service) -> None:
    caller = LiveCaller(live_service.url)
    page = caller.get("/docs")
    assets = Assets(page.content.decode())

    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert assets.inline == []
    assert len(assets.addresses) == 7
    for address in assets.addresses:
        assert urlsplit(address).netloc == ""
        asset = caller.get(urljoin("/docs", address))
        assert (asset.status, len(asset.content) > 100) == (200, True), address
        if address.endswith(".css"):
            inside = re.findall(rb"url\(([^)]*)\)|@import", asset.content)
            assert [one for one in inside if not one.strip(b"\"'").startswith(b"data:")] == []


def test_page_lets_nothing_else_in(live_service: Service) -> None:
    page = LiveCaller(live_service.url).get("/docs")

    assert set(page.headers["Content-Security-Policy"].split("; ")) == ALLOWED_INSTRUCTIONS
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "Set-Cookie" not in page.headers


def open_docs(browser: Browser, service: Service, width: int) -> Page:
    page = browser.open(f"http://booking.localhost:{service.port}/docs", width=width)
    page.wait_for(IS_DRAWN)
    return page


def keep(page: Page, name: str) -> None:
    """A screenshot for a person to look at, if SCREENSHOTS names a folder."""
    if os.environ.get("SCREENSHOTS"):
        page.save_screenshot(Path(os.environ["SCREENSHOTS"]) / f"{name}.png")


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.deep)])
def test_page_is_drawn_without_a_complaint(
    browser: Browser, live_service: Service, width: int
) -> None:
    page = open_docs(browser, live_service, width)
    keep(page, f"docs-{width}")

    page.evaluate("document.querySelector('#operations-bookings-createBooking button').click()")
    page.wait_for("!!document.querySelector('#operations-bookings-createBooking .opblock-body')")
    page.evaluate("document.querySelector('#operations-bookings-createBooking').scrollIntoView()")
    keep(page, f"docs-{width}-open")

    hosts = {urlsplit(url).netloc for url in page.requests if not url.startswith("data:")}
    assert hosts == {f"booking.localhost:{live_service.port}"}
    assert (page.complaints, page.failures) == ([], [])
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def click(page: Page, selector: str) -> None:
    page.wait_for(f"!!document.querySelector({selector!r})")
    page.evaluate(f"document.querySelector({selector!r}).click()")


def test_page_can_try_an_operation_out(browser: Browser, live_service: Service) -> None:
    app = LiveApp(live_service)
    page = open_docs(browser, live_service, 1280)
    operation = "#operations-apps-retrieveCurrentApp"

    click(page, ".auth-wrapper .authorize")
    page.wait_for("!!document.querySelector('.auth-container input[type=password]')")
    page.evaluate("document.querySelector('.auth-container input[type=password]').focus()")
    page.send("Input.insertText", text=app.key)
    click(page, ".auth-btn-wrapper button[type=submit]")
    click(page, ".auth-btn-wrapper .btn-done")
    click(page, f"{operation} button")
    click(page, f"{operation} .try-out__btn")
    click(page, f"{operation} .execute")
    page.wait_for(f"!!document.querySelector('{operation} .live-responses-table')")

    shown = page.evaluate(f"document.querySelector('{operation} .live-responses-table').innerText")
    assert f'"slug": "{app.slug}"' in shown
    assert (page.complaints, page.failures) == ([], [])
