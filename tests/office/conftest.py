"""People in front of the back office, and a browser that is logged in there."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.servers.basehttp import WSGIRequestHandler
from django.test import Client

from apps_config.models import Account, Membership
from tests.browser import Browser, Page
from tests.office.staff import log_in_now
from tests.world import BERLIN, Tenant

Enter = Callable[..., Client]

WORKDAYS = [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 17}}]


def member_of(tenant: Tenant, role: str, email: str | None = None) -> Account:
    account = Account.objects.create_user(
        email or f"{role}@{tenant.app.slug}.example.com", "x" * 12
    )
    Membership.objects.create(account=account, app=tenant.app, role=role)
    return account


def logged_in(account: Account) -> Client:
    client = Client()
    log_in_now(client, account)
    return client


class Visit:
    """A page of the live office: whatever goes wrong on it is found at the end of the test."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.expected: list[str] = []  # refusals that the test brings about

    def go(self, path: str) -> None:
        """Open another page in the same window, which is less work than a window of its own."""
        self.expected.append("net::ERR_ABORTED")  # what the page before still asked for
        self.page.evaluate("window.isOld = true")
        self.page.send("Page.navigate", url=f"{self.url}{path}")
        self.page.wait_for("window.isOld === undefined && document.readyState === 'complete'")

    def check(self) -> None:
        hosts = {urlsplit(url).netloc for url in self.page.requests if url.startswith("http")}
        assert hosts == {urlsplit(self.url).netloc}
        # What the browser says of an answer of 4xx is no fault of the page.
        complaints = [
            words
            for words in self.page.complaints
            if not any(one in words for one in self.expected)
        ]
        failures = [
            words for words in self.page.failures if not any(one in words for one in self.expected)
        ]
        assert (complaints, failures) == ([], [])
        # A phone's window grows with a page that is too wide; `clientWidth` does not.
        assert self.page.evaluate(
            "(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)(document.documentElement)"
        )


@pytest.fixture
def brief_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser would keep its sockets, hence the server its threads and each of them a
    connection to the database, which goes when the tests have ended."""
    monkeypatch.setattr(WSGIRequestHandler, "protocol_version", "HTTP/1.0")


@pytest.fixture
def visit(
    browser: Browser, brief_connections: None, live_server: Any
) -> Iterator[Callable[..., Visit]]:
    """`visit(account, "/admin/calendar/", width=390, scheme="dark", zone="America/New_York")`"""
    visits = []

    def open_page(account: Account, path: str, **kind: Any) -> Visit:
        session = logged_in(account).cookies[settings.SESSION_COOKIE_NAME].value
        cookies = {settings.SESSION_COOKIE_NAME: session}
        page = browser.open(f"{live_server.url}{path}", cookies=cookies, **kind)
        page.wait_for("document.readyState === 'complete'")
        visits.append(Visit(page, live_server.url))
        return visits[-1]

    yield open_page
    for each_visit in visits:
        each_visit.check()


@pytest.fixture
def office(transactional_db: None) -> Tenant:
    """An app of its own, whose rows a live server sees."""
    return Tenant("clinic", name="Clinic")


@pytest.fixture
def ada(office: Tenant) -> Any:
    return office.make_resource("Ada", timezone=BERLIN, availability_constraints=WORKDAYS)


@pytest.fixture
def bob(office: Tenant) -> Any:
    return office.make_resource("Bob", timezone=BERLIN, availability_constraints=WORKDAYS)


@pytest.fixture
def editor(office: Tenant) -> Account:
    return member_of(office, "editor")


@pytest.fixture
def viewer(office: Tenant) -> Account:
    return member_of(office, "viewer")


@pytest.fixture
def enter() -> Enter:
    """enter() is a superuser's browser; enter(tenant, role) that of a member of its app."""

    def log_in(tenant: Tenant | None = None, role: str = Membership.EDITOR) -> Client:
        client = Client()
        if tenant is None:
            account = Account.objects.filter(email="staff@example.com").first()
            account = account or Account.objects.create_superuser("staff@example.com", "x" * 12)
        else:
            account = Account.objects.create_user(f"{role}@{tenant.app.slug}.example.com")
            Membership.objects.create(account=account, app=tenant.app, role=role)
        log_in_now(client, account)
        return client

    return log_in
