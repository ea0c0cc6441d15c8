"""The Host header: which ones the service answers to, and that no link is made from it."""

import logging
from typing import Any

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse

from access.provider import OidcAdapter
from apps_config.models import Account
from tests.office.staff import secret_on, superuser
from tests.world import Tenant

BAD_HOSTS = ["evil.example", "127.0.0.1.evil.example", "a b", "evil.example:80:80", "x" * 5000]
REFUSED = {
    "error": "The service does not answer to this Host.",
    "code": "malformed",
    "request_id": "r1",
}


@pytest.fixture(autouse=True)
def _hosts(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["bookings.example", "localhost"]
    settings.PUBLIC_URL = "https://bookings.example"


@pytest.mark.parametrize("path", ["/v2/app", "/", "/admin/login/", "/book/x", "/nowhere"])
@pytest.mark.parametrize("host", BAD_HOSTS)
def test_unknown_host_is_refused_and_logged_once(
    caplog: pytest.LogCaptureFixture, path: str, host: str
) -> None:
    caplog.set_level(logging.WARNING)

    answer = Client().get(path, headers={"Host": host, "X-Request-Id": "r1"})

    assert (answer.status_code, answer.json()) == (400, REFUSED)
    lines = [(record.levelname, record.exc_info, record.getMessage()) for record in caplog.records]
    assert lines == [("WARNING", None, f"host not in ALLOWED_HOSTS: {host[:200]!r}")]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
@pytest.mark.parametrize("host", ["10.1.2.3:8000", *BAD_HOSTS])
def test_probes_may_send_any_host(db: None, path: str, host: str) -> None:
    assert Client().get(path, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["bookings.example", "bookings.example:8000", "localhost:8000"])
def test_pages_of_listings_have_the_public_address(tenant: Tenant, host: str) -> None:
    page = tenant.get("/bookings?page=2&limit=3", Host=host).json

    assert {name: url for name, url in page.items() if name.endswith("_url")} == {
        "first_page_url": "https://bookings.example/v2/bookings?limit=3&page=1",
        "last_page_url": "https://bookings.example/v2/bookings?limit=3&page=1",
        "next_page_url": None,
        "prev_page_url": "https://bookings.example/v2/bookings?limit=3&page=1",
    }


def test_password_link_has_the_public_address(db: None) -> None:
    person = Account.objects.create_user("new@example.com", "correct horse battery")
    path = reverse("admin:apps_config_account_link", args=[person.pk])

    page = superuser().post(path, headers={"Host": "localhost"}, secure=True)

    assert secret_on(page).startswith("https://bookings.example/admin/password/")


def test_callback_of_the_identity_provider_has_the_public_address() -> None:
    request = RequestFactory().get("/admin/login/", headers={"Host": "localhost"})

    url = OidcAdapter(request).get_callback_url(request, app=None)

    assert url == "https://bookings.example/admin/oidc/callback/"
