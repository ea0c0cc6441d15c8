"""Booking pages in a web site of another origin, in a real browser."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.accessibility import load_axe
from tests.booking_pages.shop import IS_READY, MARTY, Shop, check_access, check_quiet
from tests.booking_pages.test_links_browser import open_page
from tests.browser import LEFT, WAIT, Browser, BrowserError, Page, viewports
from tests.live import LiveApp
from tests.services import Service

LOOKS = viewports(only="narrow")
NOTES = """
window.heard = [];
for (const name of ["height", "booked", "cancelled"]) {
  document.addEventListener(`booking:${name}`, ({target, detail}) => {
    heard.push([name, target.id, detail]);
  });
}
window.messages = [];
addEventListener("message", ({data}) => messages.push(data));
"""


class HostSite:
    """A web site on a port of its own that serves one page."""

    def __init__(self) -> None:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = site.body.encode() if self.path == "/" else b""
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *given: Any) -> None:
                pass

        self.body = ""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def show(self, app: LiveApp, content: str, script: bool = True) -> None:
        tag = f'<script src="{app.url}/book/embed.js" async></script>' if script else ""
        self.body = (
            '<!DOCTYPE html><html lang="en"><head><title>Shop</title>'
            '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
            f"<script>{NOTES}</script>{tag}</head><body><h1>Shop</h1>{content}</body></html>"
        )

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def make_site() -> Iterator[Callable[[], HostSite]]:
    sites: list[HostSite] = []

    def make() -> HostSite:
        sites.append(HostSite())
        return sites[-1]

    yield make
    for site in sites:
        site.stop()


@pytest.fixture
def site(make_site: Callable[[], HostSite]) -> HostSite:
    return make_site()


@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def axe() -> str:
    return load_axe()


class Frame:
    """The booking page inside a host page, from within."""

    def __init__(self, page: Page, address: str) -> None:
        page.wait_for(f"[...document.querySelectorAll('iframe')].some(f => f.src == {address!r})")
        self.page = page
        tree = page.send("Page.getFrameTree")["frameTree"]
        [child] = tree["childFrames"]
        world = page.send("Page.createIsolatedWorld", frameId=child["frame"]["id"])
        self.context = world["executionContextId"]

    def run(self, script: str) -> Any:
        found = self.page.send(
            "Runtime.evaluate",
            expression=script,
            contextId=self.context,
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, script: str) -> None:
        assert not self.run(WAIT.format(script=script, milliseconds=60_000))

    def click(self, selector: str) -> None:
        self.wait_for(f"!!document.querySelector({selector!r})")
        self.run(f"document.querySelector({selector!r}).click()")

    def book(self) -> None:
        self.fill_in()
        self.click("#submit")
        self.wait_for("!!document.querySelector('#done h2')")

    def fill_in(self) -> None:
        self.click("#times button")
        self.wait_for("!document.querySelector('#form').hidden")
        for key, answer in MARTY.items():
            field = f"document.querySelector('[data-key={key}] input')"
            self.run(f"{field}.value = {answer!r}; void 0")

    @property
    def height(self) -> int:
        return self.run("Math.ceil(document.body.getBoundingClientRect().height)")


def open_frame(page: Page, shop: Shop, path: str = "") -> Frame:
    """The frame once its page is there: until then it has the blank page's address."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            frame = Frame(page, shop.url + path)
            if frame.run("location.href") != "about:blank":
                frame.wait_for(IS_READY)
                return frame
        except BrowserError as error:  # the page has replaced the blank one meanwhile
            if not any(words in str(error) for words in LEFT):
                raise
    raise AssertionError(page.complaints)


def heard(page: Page, name: str) -> list[Any]:
    return [
        [target, detail]
        for kind, target, detail in json.loads(page.evaluate("JSON.stringify(heard)"))
        if kind == name
    ]


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.deep)])
def test_inline_frame_reports_height_and_bookings(
    browser: Browser, app: LiveApp, site: HostSite, width: int
) -> None:
    shop = Shop(app, settings={"embed_origins": [site.url]})
    site.show(app, f'<div id="book" data-booking-inline="{shop.project["slug"]}"></div>')
    page = open_page(browser, site.url, width)
    frame = open_frame(page, shop)
    own_height = "document.querySelector('iframe').getBoundingClientRect().height"

    page.wait_for(f"{own_height} == {frame.height}")
    before = frame.height
    frame.book()
    page.wait_for("heard.some(([name]) => name == 'booked')")
    page.wait_for(f"{own_height} != {before}")
    page.save_screenshot(f"embed-inline-{width}", whole=True)

    [booking] = shop.bookings()
    assert heard(page, "booked") == [
        [
            "book",
            {
                "id": booking["id"],
                "start": booking["event"]["start"],
                "end": booking["event"]["end"],
            },
        ]
    ]
    page.wait_for(f"{own_height} == {frame.height}")
    assert frame.run("document.documentElement.scrollWidth <= innerWidth")

    frame.click("#done a[href*=cancel_by_customer]")
    frame.click("#done .danger")
    page.wait_for("heard.some(([name]) => name == 'cancelled')")
    assert heard(page, "cancelled") == [["book", {"id": booking["id"]}]]
    assert [row["state"] for row in shop.bookings()] == ["cancelled_by_customer"]
    assert page.complaints == []


@pytest.mark.parametrize("kind", [pytest.param("popup", marks=pytest.mark.deep), "button"])
def test_a_pop_up_closes_by_escape_and_gives_the_focus_back(
    browser: Browser, app: LiveApp, site: HostSite, kind: str
) -> None:
    shop = Shop(app)
    slug = shop.project["slug"]
    attributes = f'data-booking-{kind}="{slug}" data-booking-query="name=Marty"'
    site.show(app, f'<a id="opener" href="{shop.url}" {attributes}>Book now</a>')
    page = open_page(browser, site.url)
    page.wait_for("!!window.Booking")
    page.tab_to("#opener")
    page.press("Enter")
    frame = open_frame(page, shop, "?name=Marty")

    assert page.evaluate("document.querySelector('dialog').matches(':modal')")
    assert page.texts("dialog button") == ["×"]
    assert page.evaluate("document.querySelector('dialog button').ariaLabel") == "Close"
    assert frame.run("document.querySelector('[data-key=name] input').value") == "Marty"
    page.save_screenshot(f"embed-{kind}", whole=True)
    # With the focus on the page around the frame, then within the frame.
    for is_within in (False, True):
        if is_within:
            page.press("Enter")
            frame = open_frame(page, shop, "?name=Marty")
            frame.run("document.querySelector('#times button').focus()")
            page.evaluate("document.querySelector('iframe').focus()")
        page.press("Escape")
        page.wait_for("!document.querySelector('dialog')")
        assert page.evaluate("document.activeElement.id") == "opener"
        assert page.evaluate("location.href") == f"{site.url}/"


def test_foreign_origin_receives_no_messages(
    browser: Browser, app: LiveApp, make_site: Callable[[], HostSite]
) -> None:
    shop, site, foreign = Shop(app), make_site(), make_site()
    for name in (f"booking-embed {site.url}", "booking-embed *", "booking-embed x", ""):
        foreign.show(app, f'<iframe name="{name}" src="{shop.url}" title="Book"></iframe>', False)
        page = open_page(browser, foreign.url)
        frame = open_frame(page, shop)
        frame.run("document.querySelector('#times button').click()")
        frame.run("new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))")

        assert page.evaluate("JSON.stringify(messages)") == "[]"


def test_control_embedding_origin_receives_messages(
    browser: Browser, app: LiveApp, site: HostSite
) -> None:
    shop = Shop(app)
    name = f"booking-embed {site.url}"
    site.show(app, f'<iframe name="{name}" src="{shop.url}" title="Book"></iframe>', False)
    page = open_page(browser, site.url)

    page.wait_for("messages.some(({booking}) => booking == 'height')")


def test_messages_of_others_are_ignored(browser: Browser, app: LiveApp, site: HostSite) -> None:
    shop = Shop(app)
    site.show(app, f'<div id="book" data-booking-inline="{shop.project["slug"]}"></div>')
    page = open_page(browser, site.url)
    open_frame(page, shop)
    page.wait_for("heard.some(([name]) => name == 'height')")

    page.evaluate("postMessage({booking: 'booked', id: 'x'}, '*')")
    page.wait_for("messages.some(({id}) => id == 'x')")

    assert heard(page, "booked") == []


def test_redirect_replaces_the_whole_window(browser: Browser, app: LiveApp, site: HostSite) -> None:
    """Own pages seldom allow a frame, and people expect them in the window."""
    shop = Shop(app, settings={"redirect_url": f"{app.url}/book/nowhere"})
    site.show(app, f'<div id="book" data-booking-inline="{shop.project["slug"]}"></div>')
    page = open_page(browser, site.url)
    frame = open_frame(page, shop)

    frame.fill_in()
    page.evaluate("document.querySelector('iframe').scrollIntoView()")
    box = page.box("iframe")
    place = frame.run("document.querySelector('#submit').getBoundingClientRect().toJSON()")
    click_at(page, box["x"] + place["x"] + 20, box["y"] + place["y"] + 20)
    page.wait_for("location.pathname == '/book/nowhere'")

    [booking] = shop.bookings()
    assert page.evaluate("location.href") == f"{app.url}/book/nowhere?booking_id={booking['id']}"


def click_at(page: Page, x: float, y: float) -> None:
    """As a person does: only then may a frame lead the window elsewhere."""
    event = {"x": x, "y": y, "button": "left", "clickCount": 1}
    page.send("Input.dispatchMouseEvent", type="mousePressed", **event)
    page.send("Input.dispatchMouseEvent", type="mouseReleased", **event)


def test_origins_of_other_keys_are_ignored(browser: Browser, app: LiveApp, site: HostSite) -> None:
    shop = Shop(app)
    origins = {"origins": ["https://elsewhere.example"]}
    made = app.post("/v2/credentials", {"kind": "widget", **origins})
    site.show(app, f'<div id="book" data-booking-inline="{shop.project["slug"]}"></div>')
    page = open_page(browser, site.url)

    open_frame(page, shop).book()

    assert made.data["origins"] == origins["origins"]
    assert [row["state"] for row in shop.bookings()] == ["confirmed"]


def test_site_outside_embed_origins_shows_nothing(
    browser: Browser, app: LiveApp, site: HostSite
) -> None:
    shop = Shop(app, settings={"embed_origins": ["https://shop.example"]})
    site.show(app, f'<div data-booking-inline="{shop.project["slug"]}"></div>')
    page = open_page(browser, site.url)

    page.wait_for("!!document.querySelector('iframe')")
    deadline = time.monotonic() + 60
    while not any("frame-ancestors" in complaint for complaint in page.complaints):
        assert time.monotonic() < deadline, page.complaints
        page.evaluate_promise("new Promise(go => requestAnimationFrame(go))")

    assert page.evaluate("JSON.stringify(messages)") == "[]"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_snippets_page_is_accessible(
    browser: Browser, app: LiveApp, axe: str, width: int, scheme: str
) -> None:
    shop = Shop(app)
    page = open_page(browser, f"{shop.url}/embed", width, scheme)
    open_frame(page, shop)

    page.save_screenshot(f"embed-page-{width}-{scheme}", whole=True)
    check_access(page, axe, width)
    page.click(".snippet + button")
    page.wait_for("document.querySelector('.snippet + button').innerText == 'Copied'")
    page.click("[data-booking-popup]")
    page.wait_for("!!document.querySelector('dialog')")
    check_access(page, axe, width)
    check_quiet(page, app)
