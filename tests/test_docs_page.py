"""/docs: browsable, and nothing on it comes from elsewhere."""

import os
import re
import subprocess
import sys
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


def test_page_loads_only_own_assets(live_service: Service) -> None:
    caller = LiveCaller(live_service.url)
    page = caller.get("/docs")
    assets = Assets(page.content.decode())

    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert assets.inline == []
    assert len(assets.addresses) == 10
    for address in assets.addresses:
        assert urlsplit(address).netloc == ""
        asset = caller.get(urljoin("/docs", address))
        assert (asset.status, len(asset.content) > 100) == (200, True), address
        if address.endswith(".css"):
            inside = re.findall(rb"url\(([^)]*)\)|@import", asset.content)
            assert [one for one in inside if not one.strip(b"\"'").startswith(b"data:")] == []


def test_page_has_a_strict_content_security_policy(live_service: Service) -> None:
    page = LiveCaller(live_service.url).get("/docs")

    assert set(page.headers["Content-Security-Policy"].split("; ")) == ALLOWED_INSTRUCTIONS
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "Set-Cookie" not in page.headers


def open_docs(browser: Browser, service: Service, width: int) -> Page:
    page = browser.open(f"{service.url}/docs", width=width)
    page.wait_for(IS_DRAWN)
    return page


def check_drawn(page: Page, service: Service, width: int) -> None:
    """Without a complaint, and with an operation that opens."""
    page.save_screenshot(f"docs-{width}")

    page.evaluate("document.querySelector('#operations-bookings-createBooking button').click()")
    page.wait_for("!!document.querySelector('#operations-bookings-createBooking .opblock-body')")
    page.evaluate("document.querySelector('#operations-bookings-createBooking').scrollIntoView()")
    page.save_screenshot(f"docs-{width}-open")

    hosts = {urlsplit(url).netloc for url in page.requests if not url.startswith("data:")}
    assert hosts == {urlsplit(service.url).netloc}
    assert (page.complaints, page.failures) == ([], [])
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def click(page: Page, selector: str) -> None:
    page.wait_for(f"!!document.querySelector({selector!r})")
    page.evaluate(f"document.querySelector({selector!r}).click()")


def try_an_operation_out(page: Page, app: LiveApp) -> None:
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


ALL_SAMPLES = """fetch("/v2/openapi.json").then((answer) => answer.json()).then((openapi) =>
  Object.entries(openapi.paths).flatMap(([path, methods]) =>
    METHODS.filter((name) => methods[name]).map((method) =>
      [`${method} ${path}`, samplesOf(openapi, path, method, location.origin)])))
  .then((found) => { window.allSamples = found; })"""


def run_sample(language: str, text: str, folder: Path, key: str) -> str:
    """What a sample prints."""
    file = folder / f"sample.{language}"
    file.write_text(text)
    command = {
        "curl": ["sh", str(file)],
        "Python": [sys.executable, str(file)],
        "JavaScript": ["node", "--input-type=module", "--eval", text],
    }[language]
    env = {**os.environ, "API_KEY": key}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_samples_run(page: Page, app: LiveApp, folder: Path) -> None:
    page.evaluate(f"{{ {ALL_SAMPLES} }}")
    page.wait_for("!!window.allSamples")
    samples = dict(page.evaluate("window.allSamples"))

    assert len(samples) > 90
    for operation, texts in samples.items():
        compile(texts["Python"], operation, "exec")
    commands = "\n".join(texts["curl"] for texts in samples.values())
    subprocess.run(["sh", "-n"], input=commands, text=True, check=True)
    made = []
    for language, text in samples["post /v2/resources"].items():
        # Each with an address of its own, which is unique in the app.
        own = re.sub(r"[\w.]+@example\.com", f"{language.lower()}@example.com", text)
        made.append(run_sample(language, own, folder, app.key))
    assert ['"name":"Dr. Ada Berg"' in text.replace(": ", ":") for text in made] == [True] * 3
    assert app.get("/v2/resources").json["total"] == 3


@pytest.mark.deep
def test_phone_shows_the_reference_first(browser: Browser, live_service: Service) -> None:
    """The list of operations is closed. The page takes seconds to be drawn: hence once."""
    page = open_docs(browser, live_service, 390)

    top = page.evaluate("document.querySelector('.opblock').getBoundingClientRect().top")
    closed = page.evaluate("document.querySelector('#docs-navigation details').open")
    page.click("#docs-navigation summary")

    assert closed is False
    assert 0 < top < 900
    assert page.evaluate("document.querySelector('#docs-search').checkVisibility()")
    check_drawn(page, live_service, 390)


def check_search(page: Page) -> None:
    """It filters the operations, and a link opens one."""
    top = page.evaluate("document.querySelector('.opblock').getBoundingClientRect().top")

    page.evaluate("document.querySelector('#docs-search').focus()")
    page.send("Input.insertText", text="reschedule booking")
    shown = page.evaluate(
        "[...document.querySelectorAll('#docs-operations li:not([hidden]) a')]"
        ".filter((link) => link.offsetParent).map((link) => link.title)"
    )
    click(page, "#docs-operations li:not([hidden]) a")
    page.wait_for("!!document.querySelector('.opblock.is-open .docs-samples pre')")
    page.save_screenshot("docs-sample-1280")

    assert 0 < top < 900  # on the first screen
    assert shown == ["/v2/bookings/{booking_id}/reschedule"] * 2  # the operation, and its page
    assert page.complaints == []


@pytest.mark.deep
def test_page_search_and_samples_work(
    browser: Browser, live_service: Service, tmp_path: Path
) -> None:
    """The page takes seconds to be drawn: hence once."""
    app = LiveApp(live_service)
    page = open_docs(browser, live_service, 1280)

    check_search(page)
    check_drawn(page, live_service, 1280)
    try_an_operation_out(page, app)
    check_samples_run(page, app, tmp_path)
