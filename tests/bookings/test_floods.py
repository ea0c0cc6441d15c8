"""Floods of public bookings: two web processes, and customers who still want to book."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps_config.public_limits import LIMITS, PER_ADDRESS, PER_APP
from tests.live import LiveAnswer, LiveApp, Rows
from tests.services import Service
from tests.world import Caller, Tenant

pytestmark = pytest.mark.both_databases

CLIENTS = 8
GOOD = "198.51.100.7"
FLOOD = "203.0.113.9"
HALF_AN_HOUR = timedelta(minutes=30)
WINDOWS = "SELECT kind, count(DISTINCT expires_at) FROM apps_config_requestcount GROUP BY kind"
COUNTS = (
    "SELECT count FROM apps_config_requestcount WHERE kind = 'public_bookings_per_app_per_minute'"
    " AND app_id = (SELECT id FROM apps_config_app WHERE slug = '{}') ORDER BY expires_at"
)
MAILS = "SELECT count(*) FROM notifications_delivery WHERE type = 'email'"


class FloodedApp(LiveApp):
    """An app with a project whose slots are free at any half hour, and its public key."""

    def __init__(self, service: Service, **settings: Any) -> None:
        super().__init__(service)
        limits = {name: None for name in LIMITS if name.startswith("public_")}  # by default
        self.call("PUT", f"/v2/apps/{self.slug}", {"settings": limits | settings})
        resource = self.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data["id"]
        project = {
            "name": "Check-up",
            "resources": [resource],
            "booking": {"what": "Check-up"},
            "availability": {"length": "30 minutes"},
        }
        self.project = self.post("/v2/projects", project).data["id"]
        self.first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        self.first += timedelta(days=2)
        self.numbers = itertools.count()

    def attempt(self, address: str) -> LiveAnswer:
        """A booking of the next half hour by a new customer from the address."""
        number = next(self.numbers)
        start = self.first + HALF_AN_HOUR * (number % 1000)
        body = {
            "project_id": self.project,
            "start": start.isoformat(),
            "end": (start + HALF_AN_HOUR).isoformat(),
            "customer": {"name": "Marty", "email": f"marty{number}@example.com"},
        }
        headers = {"X-Forwarded-For": address}
        return self.widget().call("POST", "/v2/bookings", body, headers)

    def flood(self, addresses: Sequence[str]) -> Counter[str]:
        with ThreadPoolExecutor(CLIENTS) as pool:
            return Counter(answer.code for answer in pool.map(self.attempt, addresses))


@pytest.fixture(scope="module")
def service(start_service: Callable[..., Service]) -> Service:
    return start_service(workers=2, TRUSTED_PROXIES=1)


def count_windows(service: Service, kind: str) -> int:
    """How many windows of the limit the test has met: the clock goes on."""
    return dict(Rows(service).read(WINDOWS)).get(kind, 0)


def test_flood_from_one_address_is_limited(service: Service) -> None:
    app = FloodedApp(service)
    mails = Rows(service).read(MAILS)[0][0]

    outcomes = app.flood([FLOOD] * 60)
    good = app.attempt(GOOD)

    made = app.get("/v2/bookings").json["total"]
    assert outcomes == {"201": made - 1, "429 rate_limited": 61 - made}
    assert 20 < made <= 20 * count_windows(service, PER_ADDRESS) + 1
    assert good.code == "201"
    # Customer and owner.
    assert Rows(service).read(MAILS)[0][0] - mails == 2 * made


def test_control_without_limit_flood_books_everything(service: Service) -> None:
    """The control."""
    app = FloodedApp(service, **{PER_ADDRESS: 0, PER_APP: 0})

    assert app.flood([FLOOD] * 40) == {"201": 40}


def counts_of(app: FloodedApp) -> list[int]:
    """What the app's own limit has counted in each window, the present one last."""
    return [count for (count,) in Rows(app.service).read(COUNTS.format(app.slug))]


def flood_from_many(service: Service, per_minute: int, addresses: int) -> None:
    app = FloodedApp(service, **{PER_APP: per_minute})
    outcomes = app.flood([f"10.{n // 65536}.{n // 256 % 256}.{n % 256}" for n in range(addresses)])
    counts = counts_of(app)
    refused = app.attempt(GOOD)

    # A booking counts after its commit: requests at the same time may exceed the limit.
    assert outcomes["201"] < len(counts) * (per_minute + CLIENTS)
    assert outcomes["201"] + outcomes["429 rate_limited"] + outcomes["409 slot_taken"] == addresses
    if counts[-1] < per_minute or len(counts_of(app)) > len(counts):
        return  # a minute has ended during the flood or after it
    assert refused.code == "429 rate_limited"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60


def test_flood_from_many_addresses_is_limited(service: Service) -> None:
    flood_from_many(service, 30, 60)


@pytest.mark.deep
def test_flood_from_ten_thousand_addresses_is_limited(service: Service) -> None:
    flood_from_many(service, 60, 10_000)


def test_honest_customer_books_a_minute_later(tenant: Tenant, clock: Any, settings: Any) -> None:
    settings.TRUSTED_PROXIES = 1
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {PER_APP: 5}})
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(ada["id"], booking={"what": "Check-up"})["id"]
    widget = tenant.widget()

    flood = [attempt(widget, project, f"10.0.0.{number}", number) for number in range(12)]
    refused = attempt(widget, project, GOOD, 20)
    clock.shift(int(refused.headers["Retry-After"]))

    assert [answer.status for answer in flood] == [201] * 5 + [429] * 7
    assert (refused.status, refused.headers["Retry-After"]) == (429, "60")
    assert attempt(widget, project, GOOD, 20).status == 201


def attempt(widget: Caller, project: str, address: str, hour: int) -> Any:
    start = datetime(2026, 11, 23, tzinfo=UTC) + timedelta(hours=hour)
    body = {
        "project_id": project,
        "start": start.isoformat(),
        "end": (start + timedelta(hours=1)).isoformat(),
        "customer": {"name": "Marty", "email": f"{hour}@example.com"},
    }
    return widget.post("/bookings", body, **{"X-Forwarded-For": address})
