"""A member lets a program in, in a real browser, and ends its access."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from access.oauth_clients import register_client
from apps_config.models import Credential, Membership
from tests.accessibility import find_faults, load_axe
from tests.browser import viewports
from tests.office.conftest import Visit, member_of
from tests.world import Tenant

SESSIONS = "/admin/account/sessions/"


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_a_member_allows_a_program_and_ends_its_access(
    visit: Callable[..., Visit],
    office: Tenant,
    live_server: Any,
    settings: Any,
    width: int,
    scheme: str,
) -> None:
    settings.OAUTH_SERVER = True
    axe, returns_to = load_axe(), f"{live_server.url}/healthz"
    program = register_client("Assistant", [returns_to])
    member = member_of(office, "editor")
    Membership.objects.create(account=member, app=Tenant("gym", name="Gym").app, role="viewer")
    office.make_project(office.make_resource()["id"])
    asked = {
        "client_id": program.pk,
        "redirect_uri": returns_to,
        "response_type": "code",
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
        "scope": "bookings:read bookings:write",
    }
    seen = visit(
        member, f"/admin/account/programs/authorize?{urlencode(asked)}", width=width, scheme=scheme
    )
    page = seen.page

    def check_page(name: str) -> None:
        page.save_screenshot(f"programs-{name}-{width}-{scheme}", whole=True)
        assert find_faults(page, axe) == []

    assert page.texts(".office-rows a") == ["Clinic", "Gym"]
    check_page("app")
    page.click(".office-rows a")
    page.wait_for("!!document.querySelector('[value=grant]')")
    check_page("consent")
    page.click("[value='bookings:write']")
    page.click("[value='bookings:read']")
    page.click("[value=grant]")
    page.wait_for("!!document.querySelector('.office-fault')")
    assert page.texts(".office-fault") == ["Select at least one."]
    check_page("none")
    page.click("[value='bookings:read']")
    page.click("[value=grant]")
    page.wait_for("location.pathname === '/healthz'")
    assert set(parse_qs(urlsplit(page.evaluate("location.href")).query)) == {"code", "iss"}

    seen.go(SESSIONS)
    row = Credential.objects.get(client_id=program.pk)
    assert (row.account, row.only_app_id) == (member, office.app.id)
    assert row.scopes == ["bookings:read"]
    check_page("sessions")
    page.click("[name=program]")
    page.wait_for("!document.querySelector('#programs')")
    row.refresh_from_db()
    assert row.revoked_at is not None
