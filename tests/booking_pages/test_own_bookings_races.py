"""Requests for links, and one link opened several times at once, over several processes."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlsplit

import pytest

from tests.booking_pages.shop import Shop
from tests.booking_pages.test_own_bookings_browser import links
from tests.live import LiveApp
from tests.services import Service

pytestmark = pytest.mark.both_databases

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
CLIENTS = 8


@pytest.fixture
def app(live_service: Service) -> LiveApp:
    app = LiveApp(live_service)
    Shop(app)
    return app


def open_all(app: LiveApp, urls: list[str]) -> Counter[int]:
    def press(url: str) -> int:
        parts = urlsplit(url)
        return app.call("POST", f"{parts.path}?{parts.query}", b"", FORM).status

    with ThreadPoolExecutor(CLIENTS) as threads:
        return Counter(threads.map(press, urls))


def ask_all(app: LiveApp, emails: list[str]) -> Counter[int]:
    def ask(email: str) -> int:
        body = f"email={quote(email)}".encode()
        return app.call("POST", f"/book/{app.slug}/mine", body, FORM).status

    with ThreadPoolExecutor(CLIENTS) as threads:
        return Counter(threads.map(ask, emails))


def test_a_link_opens_once(app: LiveApp) -> None:
    assert open_all(app, links(app) * CLIENTS) == {303: 1, 403: CLIENTS - 1}


def test_control_each_link_opens(app: LiveApp) -> None:
    assert open_all(app, links(app, CLIENTS)) == {303: CLIENTS}


def test_an_address_gets_three_links_an_hour(app: LiveApp) -> None:
    assert ask_all(app, ["doc@example.com"] * CLIENTS) == {200: 3, 429: CLIENTS - 3}


def test_control_each_address_gets_a_link(app: LiveApp) -> None:
    emails = [f"doc{number}@example.com" for number in range(CLIENTS)]

    assert ask_all(app, emails) == {200: CLIENTS}
