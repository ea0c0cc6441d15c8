"""Security events, and pages of the log-in that are seldom seen, in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest

from apps_config.models import Account, Membership, SecurityEvent
from apps_config.security_events import record_event
from apps_config.services import change_role, issue_key
from tests.accessibility import find_faults, load_axe
from tests.browser import Browser, viewports
from tests.office.conftest import Visit, member_of
from tests.world import Tenant

LIST = "/admin/apps_config/securityevent/"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture
def owner(office: Tenant) -> Account:
    """With events of many kinds, and a long address."""
    account = member_of(office, "owner", "emmett.lathrop.brown@harbour-dental.example.com")
    bob = member_of(office, "viewer", "bob@example.com")
    change_role(Membership.objects.get(account=bob), "editor")
    issue_key("widget", app=office.app)
    for actor, network in ((account, "2001:db8:1f:2c::/64"), (bob, "203.0.113.77")):
        SecurityEvent.objects.create(
            kind="log_in",
            account=actor,
            actor=actor.email,
            network=network,
            user_agent=FIREFOX,
            about={"method": "totp", "is_new_device": True},
        )
    SecurityEvent.objects.create(
        kind="log_in_failed", account=bob, network="198.51.100.23", count=10, user_agent=FIREFOX
    )
    record_event("log_in_locked", account_id=bob.pk, actor="")
    record_event("second_factor_removed", account_id=bob.pk, about={"type": "totp"})
    record_event("bookings_exported", app_id=office.app.id, about={"bookings": 1000})
    return account


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_the_list_is_readable(
    visit: Callable[..., Visit], owner: Account, width: int, scheme: str
) -> None:
    shown = visit(owner, LIST, width=width, scheme=scheme)
    shown.page.save_screenshot(f"events-{width}-{scheme}", whole=True)

    assert find_faults(shown.page, load_axe()) == []
    row = SecurityEvent.objects.filter(kind="log_in").latest("id")
    shown.go(f"{LIST}{row.pk}/change/")
    shown.page.save_screenshot(f"event-{width}-{scheme}", whole=True)
    assert find_faults(shown.page, load_axe()) == []


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_rare_log_in_pages_are_accessible(
    visit: Callable[..., Visit],
    browser: Browser,
    live_server: Any,
    owner: Account,
    settings: Any,
    width: int,
    scheme: str,
) -> None:
    """Without passwords, and for an account that must set up a second factor first."""
    settings.OIDC_ISSUER, settings.OIDC_NAME = "https://id.example.com", "Harbour ID"
    settings.PASSWORD_LOGIN = False
    page = browser.open(f"{live_server.url}/admin/login/", width=width, scheme=scheme)
    page.wait_for("document.readyState === 'complete'")
    page.save_screenshot(f"no-passwords-{width}-{scheme}", whole=True)
    found = [find_faults(page, load_axe())]
    settings.REQUIRE_SECOND_FACTOR = "owners"
    must = visit(owner, LIST, width=width, scheme=scheme)
    must.page.save_screenshot(f"second-factor-{width}-{scheme}", whole=True)
    found.append(find_faults(must.page, load_axe()))

    assert found == [[], []]
    assert must.page.evaluate("location.pathname") == "/admin/account/security/"
    assert "Your account needs a second factor." in must.page.evaluate("document.body.innerText")
