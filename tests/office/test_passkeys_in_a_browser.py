"""Passkeys with Chromium's virtual authenticator: added after the password, used instead of it and
as second factor.
"""

from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator

from apps_config.models import Account, Membership
from tests.browser import Browser, Page
from tests.world import Tenant

PASSWORD = "harbour-lights-7"
SECURITY = "/admin/account/security/"
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def doc(office: Tenant) -> Account:
    account = Account.objects.create_user("doc@example.com", PASSWORD)
    Membership.objects.create(app=office.app, account=account, role="viewer")
    return account


@pytest.fixture
def open_page(
    browser: Browser, brief_connections: None, live_server: Any
) -> Callable[[], tuple[Page, str]]:
    """The page of log-in, and its virtual authenticator."""

    def open_log_in() -> tuple[Page, str]:
        page = browser.open(f"{live_server.url}/admin/login/")
        page.wait_for("document.readyState === 'complete'")
        page.send("WebAuthn.enable")
        added = page.send("WebAuthn.addVirtualAuthenticator", options=AUTHENTICATOR)
        return page, added["authenticatorId"]

    return open_log_in


def go(page: Page, path: str) -> None:
    page.evaluate(f"location.assign({path!r})")
    page.wait_for(f"location.pathname === {path!r} && document.readyState === 'complete'")


def log_in(page: Page) -> None:
    page.type_into("#id_username", "doc@example.com")
    page.type_into("#id_password", PASSWORD)
    page.press("Enter")


def log_out(page: Page) -> None:
    page.evaluate("document.querySelector('#logout-form').submit()")
    page.wait_for("!document.querySelector('#logout-form') && document.readyState === 'complete'")
    go(page, "/admin/login/")


def add_passkey(page: Page) -> None:
    """Of the account that has just logged in with its password."""
    page.wait_for("location.pathname === '/admin/' && document.readyState === 'complete'")
    page.evaluate(f"location.assign('{SECURITY}webauthn/add/')")
    page.wait_for("location.pathname === '/admin/account/confirm/'")  # asks for the password again
    page.type_into("#id_password", PASSWORD)
    page.press("Enter")
    page.type_into("#id_name", "Laptop")
    page.click("#mfa_webauthn_add")
    page.wait_for("!location.pathname.endsWith('/add/') && document.readyState === 'complete'")


def test_a_passkey_logs_in_without_a_password(doc: Account, open_page: Any) -> None:
    page, authenticator = open_page()
    log_in(page)
    add_passkey(page)
    stored = page.send("WebAuthn.getCredentials", authenticatorId=authenticator)["credentials"]
    log_out(page)

    page.click("#passkey_login")
    page.wait_for("location.pathname === '/admin/' && !!document.querySelector('#logout-form')")

    rows = Authenticator.objects.filter(user=doc, type="webauthn")
    assert [row.wrap().name for row in rows] == ["Laptop"]
    assert [(one["rpId"], one["isResidentCredential"]) for one in stored] == [("localhost", True)]
    assert page.complaints == []


def test_a_passkey_is_asked_for_after_the_password(doc: Account, open_page: Any) -> None:
    page, _ = open_page()
    log_in(page)
    add_passkey(page)
    log_out(page)

    log_in(page)
    page.wait_for(f"location.pathname === '{SECURITY}authenticate/'")
    page.click("#mfa_webauthn_authenticate")
    page.wait_for("location.pathname === '/admin/' && !!document.querySelector('#logout-form')")

    assert page.complaints == []


def remove_passkey(account: Account) -> None:
    Authenticator.objects.filter(user=account).delete()


def deactivate(account: Account) -> None:
    account.is_active = False
    account.save()


@pytest.mark.parametrize(
    "refuse", [pytest.param(remove_passkey, marks=pytest.mark.deep), deactivate]
)
def test_unknown_passkey_is_refused(
    doc: Account, open_page: Any, refuse: Callable[[Account], None]
) -> None:
    """The device still has the passkey; the page says what to do."""
    page, _ = open_page()
    log_in(page)
    add_passkey(page)
    log_out(page)
    refuse(doc)

    page.click("#passkey_login")
    page.wait_for("document.body.innerText.includes('This passkey was not accepted')")

    assert page.evaluate("location.pathname") == "/admin/login/"
    assert page.evaluate("document.body.innerText.match(/This passkey.*/g)") == [
        "This passkey was not accepted. Log in with your password, or use another passkey."
    ]
    assert page.evaluate("!!document.querySelector('#logout-form')") is False
    assert page.complaints == []
