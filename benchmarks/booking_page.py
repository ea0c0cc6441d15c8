"""The booking page in a browser on a slow connection: seconds until the first free time is seen."""

import tempfile
from pathlib import Path
from statistics import median

from benchmarks.stage import Goal, Stage, own_postgres
from tests.browser import Browser, Page, find_browser

TARGET = 2.0
# "3G" of WebPageTest: 1.6 Mbit/s down, 768 kbit/s up, 300 ms for a round trip.
SLOW = {
    "offline": False,
    "latency": 300,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 768_000 / 8,
}
VIEWS = {"1280 px": (1280, "#times .time"), "390 px": (390, "#soonest .quiet")}
# In milliseconds: when the element was first painted, and when the page's script had it.
WATCH = """
(() => {
  const isPainted = () => performance.getEntriesByName("first-contentful-paint").length > 0;
  const check = () => {
    const found = document.querySelector(%r);
    if (found?.getClientRects().length && isPainted()) window.seenAfter ??= performance.now();
    if (found?.matches("button")) window.usableAfter ??= performance.now();
    if (!window.seenAfter || !window.usableAfter) requestAnimationFrame(check);
  };
  requestAnimationFrame(check);
})();
"""
LOADED = """
[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, one) => sum + one.transferSize, 0)
"""


def make_page(stage: Stage) -> str:
    """Return the address of the page of a usual project: half hours of one resource."""
    filled = stage.script("benchmarks.fill", "page")
    project = {
        "name": "Check-up",
        "slug": "check-up",
        "resources": filled["resources"],
        "settings": {"published": True},
        "availability": {"length": "30 minutes", "to": "90 days"},
    }
    stage.client(filled["key"]).call("POST", "/projects", project, status=201)
    return f"http://127.0.0.1:{stage.service.port}/book/check-up"


def open_slowly(browser: Browser, url: str, width: int, selector: str) -> Page:
    page = browser.open("about:blank", width=width)
    page.send("Network.emulateNetworkConditions", **SLOW)
    page.send("Network.setCacheDisabled", cacheDisabled=True)
    page.send("Page.addScriptToEvaluateOnNewDocument", source=WATCH % selector)
    page.send("Page.navigate", url=url)
    page.wait_for("!!window.seenAfter && !!window.usableAfter")
    return page


def measure() -> list[Goal]:
    program = find_browser()
    if program is None:
        return []
    browser = Browser(program)
    goals = []
    try:
        with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
            stage = Stage(url, Path(folder))
            try:
                stage.start()
                address = make_page(stage)
                for name, (width, selector) in VIEWS.items():
                    goals.append(measure_view(browser, address, name, width, selector))
            finally:
                stage.stop()
    finally:
        browser.stop()
    return goals


def measure_view(browser: Browser, url: str, name: str, width: int, selector: str) -> Goal:
    seen, usable, loaded = [], [], 0
    for _ in range(5):
        with browser.context():
            page = open_slowly(browser, url, width, selector)
            seen.append(page.evaluate("window.seenAfter") / 1000)
            usable.append(page.evaluate("window.usableAfter") / 1000)
            loaded = page.evaluate(LOADED)
    value = median(seen)
    return Goal(
        f"Booking page on 3G, first free time seen at {name}",
        f"at most {TARGET:.0f} s",
        value,
        f"s; can be chosen after {median(usable):.2f} s; {loaded / 1000:.0f} kB",
        value <= TARGET,
    )
