"""The desk of a large practice: pages of the back office beside those of a small one."""

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from benchmarks.cpu_time import cpu_per_call
from benchmarks.many_apps import read_page
from benchmarks.stage import Goal, Stage, is_small, milliseconds, own_postgres
from tests.browser import Browser, find_browser

# (resources, customers, bookings)
SMALL, LARGE = (4, 30, 2_000), (40, 300, 20_000)
TEN, MANY = (10, 20, 100), (200, 300, 2_000)
PAINTS = 5
# Milliseconds from the request to the first paint, and until the bookings are in the rows.
DRAWN = """new Promise((resolve) => {
  const check = () => {
    const isDrawn = document.querySelector("#cal-grid")?.dataset.drawn >= 1;
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    if (isDrawn && paint && document.querySelector(".ec-event")) {
      requestAnimationFrame(() => setTimeout(() => resolve([paint.startTime, performance.now()])));
    } else setTimeout(check, 5);
  };
  check();
})"""


def measure_pages(counts: tuple[int, int, int]) -> dict[str, float]:
    """Return the CPU seconds of web and PostgreSQL of each page."""
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        try:
            filled = stage.script("benchmarks.fill", "desk", *map(str, counts))
            stage.start()
            runs = {
                name: partial(_read_pages, stage.service.url, paths, filled["session"])
                for name, paths in filled["pages"].items()
            }
            spent = cpu_per_call(stage, url, runs, rounds=3, per_round=5)
            return {name: sum(times) for name, times in spent.items()}
        finally:
            stage.stop()


def _read_pages(url: str, paths: Sequence[str], session: str) -> bytes:
    return b"".join(read_page(url + path, session) for path in paths)


def measure_paint(counts: tuple[int, int, int]) -> tuple[float, float]:
    """Return the median seconds until the first paint of the timeline in Chromium, and until its
    bookings are drawn.
    """
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        browser = Browser(find_browser() or "chromium")
        try:
            filled = stage.script("benchmarks.fill", "desk", *map(str, counts))
            stage.start()
            address = stage.service.url + filled["timeline"]
            with browser.context():
                times = [_paint(browser, address, filled["session"]) for _ in range(PAINTS + 1)]
        finally:
            browser.stop()
            stage.stop()
    paints, drawn = zip(*times[1:], strict=True)  # the first one fills the browser's cache
    return median(paints) / 1000, median(drawn) / 1000


def _paint(browser: Browser, address: str, session: str) -> tuple[float, float]:
    page = browser.open(address, cookies={"sessionid": session})
    page.wait_for(f"location.host === '{urlsplit(address).netloc}' && !!document.body")
    paint, drawn = page.evaluate_promise(DRAWN)
    return paint, drawn


def measure() -> Iterator[Goal]:
    """Yield each page, and the first paint of the timeline."""
    large_counts = (40, 300, 4_000) if is_small() else LARGE
    small, large = measure_pages(SMALL), measure_pages(large_counts)
    for name, seconds in large.items():
        ratio = seconds / small[name]
        yield Goal(
            f"Desk: {name}, {large_counts[0]} resources and {large_counts[2]:,} bookings",
            f"at most 3x with {SMALL[0]} resources",
            ratio,
            f"CPU {milliseconds(seconds)} and {milliseconds(small[name])}",
            ratio <= 3,
        )
    if find_browser():
        few, many = measure_paint(TEN), measure_paint(MANY)
        yield Goal(
            f"Desk: first paint of the timeline of {MANY[0]} resources in Chromium",
            f"at most 2x with {TEN[0]}",
            many[0] / few[0],
            f"{milliseconds(many[0])} and {milliseconds(few[0])}",
            many[0] <= 2 * few[0],
        )
        yield Goal(
            f"Desk: until the bookings of {MANY[0]} resources are drawn",
            "",
            many[1] / few[1],
            f"{milliseconds(many[1])} and {milliseconds(few[1])}",
        )
