"""The list of security events, and what log-ins add to it."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP
from allauth.usersessions.models import UserSession
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from access.invitations import invite_member
from apps_config.models import Account, Membership, SecurityEvent
from apps_config.security_events import record_event
from apps_config.services import change_role, issue_key, revoke_key
from notifications.links.invitations import invitation_url
from office.access.security_events import KIND_WORDS
from tests.office.staff import member, superuser
from tests.queries import Queries
from tests.sign_in import AUTHENTICATE, PASSWORD, SECRET, code_now, make_member
from tests.world import Tenant

pytestmark = pytest.mark.django_db
LIST = reverse("admin:apps_config_securityevent_changelist")
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
COLUMNS = ("shown_kind", "who", "details", "origin", "app")


def shown(client: Client, **query: str) -> list[tuple[str, ...]]:
    """The rows of the list, without their times."""
    page = client.get(LIST, query)
    assert page.status_code == 200
    admin = page.context["cl"].model_admin
    rows = []
    for event in page.context["cl"].result_list:
        cells = [
            getattr(admin, name)(event) if hasattr(admin, name) else getattr(event, name)
            for name in COLUMNS
        ]
        rows.append((cells[0].words, *cells[1:-1], str(event.app or "")))
    return rows


def forget() -> None:
    SecurityEvent.objects.all().delete()


def test_owners_see_events_of_app_and_members(
    tenant: Tenant, make_tenant: Callable[..., Tenant]
) -> None:
    other = make_tenant()
    owner = member(tenant.app, "owner", "ann@example.com")
    bob = member(tenant.app, "editor", "bob@example.com").account
    Membership.objects.create(app=other.app, account=bob, role="owner")
    eve = member(other.app, "editor", "eve@example.com").account
    staff = superuser()
    forget()
    issue_key("server", app=other.app)
    key, _ = issue_key("server", app=tenant.app)
    for account in (bob, eve):
        about = {"method": "totp", "is_new_device": True}
        record_event("log_in", account_id=account.pk, actor=account.email, about=about)
    record_event("log_in_locked", about={"network": "192.0.2.7"})

    rows = shown(owner)

    assert rows == [
        (
            *("Logged in", "bob@example.com"),
            *("with an authenticator app, from a new device", "", ""),
        ),
        ("Key created", "a command", f"server key {key.prefix}…", "", tenant.app.name),
    ]
    assert len(shown(staff)) == 5
    foreign = SecurityEvent.objects.get(account=eve)
    own = SecurityEvent.objects.get(account=bob)
    page = "/admin/apps_config/securityevent/{}/change/"
    answers = [owner.get(page.format(row.pk)).status_code for row in (own, foreign)]
    assert answers == [200, 404]


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_only_owners_see_the_list(tenant: Tenant, role: str) -> None:
    client = member(tenant.app, role)

    assert client.get(LIST).status_code == 403
    assert LIST not in client.get("/admin/").content.decode()
    assert LIST in member(tenant.app, "owner").get("/admin/").content.decode()


def test_events_are_read_only(tenant: Tenant) -> None:
    staff, event = superuser(), record_event("log_out")
    page = f"/admin/apps_config/securityevent/{event.pk}"

    answers = [
        staff.get(f"{LIST}add/"),
        staff.post(f"{page}/change/", {"kind": "log_in"}),
        staff.post(f"{page}/delete/", {"post": "yes"}),
    ]

    assert [answer.status_code for answer in answers] == [403] * 3
    assert SecurityEvent.objects.get(pk=event.pk).kind == "log_out"


def test_details_in_words(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner", "ann@example.com")
    bob = member(tenant.app, "viewer", "bob@example.com").account
    forget()
    change_role(Membership.objects.get(account=bob), "owner")
    revoke_key(tenant.app.credentials.get())
    record_event("tokens_ended", account_id=bob.pk, actor="ann@example.com", about={"tokens": 3})
    record_event("bookings_exported", app_id=tenant.app.id, about={"bookings": 1000})
    record_event("second_factor_added", account_id=bob.pk, about={"type": "webauthn"})
    SecurityEvent.objects.create(kind="log_in_failed", account=bob, count=7)

    prefix = tenant.app.credentials.get().prefix
    assert [row[:3] for row in shown(owner)] == [
        ("Wrong password or code", "", "bob@example.com, 7 times within an hour"),
        ("Second factor added", "a command", "bob@example.com, passkey"),
        ("Bookings exported", "a command", "bookings: 1000"),
        ("Access tokens ended", "ann@example.com", "bob@example.com, tokens: 3"),
        ("Key revoked", "a command", f"server key {prefix}…"),
        ("Owner added", "a command", "bob@example.com, owner (before: viewer)"),
    ]


def test_every_kind_has_a_label() -> None:
    kinds = {
        value
        for name, value in vars(SecurityEvent).items()
        if name.isupper() and isinstance(value, str)
    }

    assert set(KIND_WORDS) == kinds


def test_list_filters_and_constant_query_count(tenant: Tenant) -> None:
    owner = member(tenant.app, "owner")
    for _ in range(2):
        issue_key("server", app=tenant.app)
    shown(owner)
    with Queries(connection) as few:
        shown(owner)
    for _ in range(5):
        revoke_key(issue_key("server", app=tenant.app)[0])
    with Queries(connection) as many:
        shown(owner)

    assert len(many) == len(few)
    assert {row[0] for row in shown(owner, kind="key_revoked")} == {"Key revoked"}
    assert len(shown(owner, kind="key_revoked")) == 5


# --- What log-ins add -----------------------------------------------------------------------------
@pytest.fixture
def doc(tenant: Tenant, clock: Any) -> Account:
    account = make_member(tenant.app, "viewer")
    forget()
    return account


def log_in() -> Client:
    client = Client(headers={"User-Agent": FIREFOX})
    client.post("/admin/login/", {"username": "doc@example.com", "password": PASSWORD})
    return client


def kinds() -> list[tuple[str, str, dict[str, Any]]]:
    rows = SecurityEvent.objects.order_by("id")
    return [(row.kind, row.actor, row.about) for row in rows]


@pytest.mark.parametrize("path", ["/admin/logout/", "/admin/account/log-out/"])
def test_log_in_and_log_out(doc: Account, path: str) -> None:
    log_in().post(path)

    assert kinds() == [
        ("log_in", "doc@example.com", {"method": "password"}),
        ("log_out", "doc@example.com", {}),
    ]
    (row, _) = shown(superuser())[-1:] + shown(superuser("other@example.com"))[-1:]
    assert row == (
        *("Logged in", "doc@example.com", "with a password", "127.0.0.1, Firefox on Linux", ""),
    )


def test_a_log_in_with_a_code(doc: Account) -> None:
    TOTP.activate(doc, SECRET)
    forget()
    client = log_in()
    before = kinds()

    client.post(AUTHENTICATE, {"code": "000000"})
    client.post(AUTHENTICATE, {"code": code_now()})

    assert before == []  # the password alone is no log-in
    assert kinds() == [
        ("log_in_failed", "", {"factor": "code"}),
        ("log_in", "doc@example.com", {"method": "totp"}),
    ]


def test_events_of_second_factors(doc: Account) -> None:
    client, page = log_in(), "/admin/account/security/totp/activate/"
    client.post(client.get(page).url, {"password": PASSWORD})
    text = client.get(page).content.decode()
    secret = re.search(r'id="authenticator_secret"[^>]* value="([A-Z2-7]+)"', text)[1]
    forget()

    client.post(page, {"code": code_now(secret)})
    client.post("/admin/account/security/totp/deactivate/")
    Authenticator.objects.create(user=doc, type=Authenticator.Type.WEBAUTHN, data={})
    form = {"action": "remove_second_factors", "_selected_action": [str(doc.pk)]}
    superuser().post("/admin/apps_config/account/", form | {"confirmed": "yes"})

    found = [event for event in kinds() if event[0].startswith("second_factor")]
    assert found == [
        ("second_factor_added", "doc@example.com", {"type": "totp"}),
        ("second_factor_removed", "doc@example.com", {"type": "totp"}),
        ("second_factor_added", "command", {"type": "webauthn"}),
        ("second_factor_removed", "staff@example.com", {"type": "webauthn"}),
    ]


def test_events_of_platform_rights(doc: Account) -> None:
    """By the form of accounts: a name alone is no event."""
    staff, path = superuser(), f"/admin/apps_config/account/{doc.pk}/change/"
    form = {"email": doc.email, "is_active": "on"}
    forget()

    rights = [
        {"is_staff": "on"},
        {"is_staff": "on", "is_superuser": "on"},
        {"name": "Emmett", "is_staff": "on", "is_superuser": "on"},
        {"is_superuser": "on"},
        {},
    ]
    for given in rights:
        assert staff.post(path, form | given).status_code == 302

    by = "staff@example.com"
    assert kinds() == [
        ("staff_added", by, {"rights": ["is_staff"]}),
        ("staff_added", by, {"rights": ["is_superuser"]}),
        ("staff_removed", by, {"rights": ["is_staff"]}),
        ("staff_removed", by, {"rights": ["is_superuser"]}),
    ]
    assert shown(staff, kind="staff_added")[0] == (
        *("Platform staff added", by, "doc@example.com, superuser status", "127.0.0.1", ""),
    )


def test_deleted_account_records_its_second_factors(doc: Account) -> None:
    TOTP.activate(doc, SECRET)
    Membership.objects.all().delete()
    forget()

    doc.delete()

    assert kinds() == []


def test_event_of_sessions_ended_by_staff(doc: Account) -> None:
    log_in()
    forget()
    row = UserSession.objects.get(user=doc)
    form = {"action": "end_selected", "_selected_action": [str(row.pk)], "confirmed": "yes"}

    superuser().post("/admin/usersessions/usersession/", form)

    found = [event for event in kinds() if event[0] == "sessions_ended"]
    assert found == [("sessions_ended", "staff@example.com", {"sessions": 1})]


def test_a_link_to_choose_a_password(doc: Account) -> None:
    superuser().post(f"/admin/apps_config/account/{doc.pk}/password-link/")

    assert ("password_link_made", "staff@example.com", {}) in kinds()


# --- Log-in without passwords ---------------------------------------------------------------------
def test_log_in_page_without_passwords_has_no_form(doc: Account, settings: Any) -> None:
    settings.OIDC_ISSUER = "https://id.example.com"
    settings.PASSWORD_LOGIN = False

    page = Client().get("/admin/login/").content.decode()
    posted = Client().post("/admin/login/", {"username": "doc@example.com", "password": PASSWORD})
    body = {"email": "doc@example.com", "password": PASSWORD}
    api = Client().post("/v2/auth", body, content_type="application/json")

    link = f"/admin/apps_config/account/{doc.pk}/password-link/"
    assert 'type="password"' not in page
    assert ("passkey_login" in page, "/admin/oidc/" in page) == (True, True)
    assert (posted.status_code, api.status_code, api.json()["code"]) == (
        403,
        401,
        "unauthenticated",
    )
    assert superuser().post(link).status_code == 403


def test_resources_log_in_with_account_passwords_disabled(tenant: Tenant, settings: Any) -> None:
    settings.PASSWORD_LOGIN = False
    made = tenant.make_resource(email="ada@example.com")
    tenant.put(f"/resources/{made['id']}", {"password": PASSWORD})

    body = {"email": "ada@example.com", "password": PASSWORD}
    answer = Client().post("/v2/auth", body, content_type="application/json")

    assert answer.status_code == 200


def test_invitation_without_passwords_needs_none(tenant: Tenant, settings: Any) -> None:
    settings.OIDC_ISSUER = "https://id.example.com"
    settings.PASSWORD_LOGIN = False
    invitation = invite_member(
        app=tenant.app, email="bob@example.com", role="viewer", now=timezone.now()
    )
    parts = urlsplit(invitation_url(invitation))

    page = Client().get(f"{parts.path}?{parts.query}").content.decode()
    Client().post(f"{parts.path}?{parts.query}")

    assert "new_password1" not in page
    assert tenant.app.memberships.get().account.email == "bob@example.com"
