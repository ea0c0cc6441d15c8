"""A form that is sent several times at once, as an impatient finger does."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlsplit

import pytest

from tests.booking_pages.shop import MONDAY, Shop
from tests.live import LiveApp
from tests.services import Service

pytestmark = pytest.mark.both_databases

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_concurrent_forms_move_once(live_service: Service) -> None:
    shop = Shop(LiveApp(live_service))
    booking = shop.book()
    link = urlsplit(shop.link(booking))
    body = f"time={quote(f'{MONDAY}T09:00:00+00:00/{MONDAY}T09:30:00+00:00')}".encode()

    def press(number: int) -> int:
        return shop.app.call("POST", f"{link.path}?{link.query}", body, FORM).status

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(press, range(8)))

    logs = shop.app.get(f"/v2/bookings/{booking['id']}?include=logs").data["logs"]
    assert statuses == [200] * 8
    assert [log["action"] for log in logs] == ["confirm", "reschedule"]


def test_control_concurrent_api_calls_each_move(live_service: Service) -> None:
    """The same through the API, where a client that asks for a move gets one."""
    shop = Shop(LiveApp(live_service))
    booking = shop.book()
    body = {"start": f"{MONDAY}T09:00:00Z", "end": f"{MONDAY}T09:30:00Z"}

    def press(number: int) -> int:
        return shop.app.post(f"/v2/bookings/{booking['id']}/reschedule", body).status

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(press, range(8)))

    logs = shop.app.get(f"/v2/bookings/{booking['id']}?include=logs").data["logs"]
    assert statuses == [200] * 8
    assert [log["action"] for log in logs] == ["confirm"] + ["reschedule"] * 8
