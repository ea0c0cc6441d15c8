"""Calendar servers: `radicale`, `xandikos`, `cyrus`, `server` (the test runs on each of them),
`fake`.

Of the large providers: `gateway`, the server of their fakes, `google` and `microsoft`.
"""

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from typing import Any

import pytest

from tests.external_calendars.accounts import ACCOUNTS, AccountHome
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.fakes.graph import MAX_CONCURRENT, FakeGraph
from tests.external_calendars.fakes.server import Gateway
from tests.external_calendars.front import Front
from tests.external_calendars.servers import SERVERS, CalendarServer


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(...): see test_every_server.py")


@pytest.fixture(autouse=True)
def _loopback_allowed(settings: Any) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.WEBHOOK_HTTPS_ONLY = False


@pytest.fixture(scope="session")
def calendar_server() -> Iterator[Callable[[str], CalendarServer]]:
    """calendar_server("radicale") -> the one of this run, started when it is first asked for."""
    started: dict[str, CalendarServer] = {}

    def get(name: str) -> CalendarServer:
        if name not in started:
            started[name] = SERVERS[name]()
            started[name].start()
        return started[name]

    yield get
    for server in started.values():
        server.stop()


@pytest.fixture
def radicale(calendar_server: Callable[[str], CalendarServer]) -> CalendarServer:
    server = calendar_server("radicale")
    server.front.forget()
    return server


@pytest.fixture
def xandikos(calendar_server: Callable[[str], CalendarServer]) -> CalendarServer:
    server = calendar_server("xandikos")
    server.front.forget()
    return server


@pytest.fixture
def cyrus(calendar_server: Callable[[str], CalendarServer]) -> CalendarServer:
    server = calendar_server("cyrus")
    server.front.forget()
    return server


@pytest.fixture(params=["radicale", "xandikos", "cyrus"])
def server(request: pytest.FixtureRequest) -> CalendarServer:
    """Each of the three."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def fake() -> Iterator[Front]:
    """A server that says what the test says: `fake.answer = lambda call: Answer(500)`."""
    front = Front()
    yield front
    front.stop()


@pytest.fixture
def gateway(settings: Any) -> Iterator[Gateway]:
    """In the place of Google's and Microsoft's servers. What these do not have fails the test."""
    with Gateway() as gateway:
        settings.CALENDAR_PROVIDER_GATEWAY = gateway.url
        yield gateway
    assert gateway.violations == []


@pytest.fixture
def google(gateway: Gateway, settings: Any) -> FakeGoogle:
    """Google without accounts, with this service as a registered client."""
    settings.GOOGLE_CLIENT_ID, settings.GOOGLE_CLIENT_SECRET = "demo-google", "demo-secret"
    google = FakeGoogle(gateway)
    google.add_client(f"{settings.PUBLIC_URL}/v2/calendars/callback")
    return google


@pytest.fixture
def microsoft(gateway: Gateway, settings: Any) -> FakeGraph:
    """Microsoft Graph without accounts, with this service as a registered client."""
    settings.MICROSOFT_CLIENT_ID = "demo-microsoft"
    settings.MICROSOFT_CLIENT_SECRET = "demo-secret"
    graph = FakeGraph(gateway)
    graph.add_client(f"{settings.PUBLIC_URL}/v2/calendars/callback")
    return graph


@pytest.fixture(params=["google", "microsoft"])
def account(request: pytest.FixtureRequest, gateway: Gateway) -> Iterator[AccountHome]:
    """An account at each provider with OAuth. More requests at a time than Microsoft allows for a
    mailbox fail the test."""
    yield ACCOUNTS[request.param](request.getfixturevalue(request.param))
    assert max(gateway.most_concurrent.values(), default=0) <= MAX_CONCURRENT
