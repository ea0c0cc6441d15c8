"""What ends the access tokens of an account, and what makes them useless (a new password:
test_password_changes.py).
"""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.db import connection, transaction
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from access.invitations import accept_invitation, invite_member
from access.oidc_accounts_and_roles import apply_groups
from access.password_login import Proof, issue_token, log_in_with_password
from apps_config.models import Account, App, Credential, Membership, SecurityEvent
from apps_config.services import change_role, issue_access_token, issue_key
from common.errors import Unauthenticated
from tests.sign_in import PASSWORD, SECRET, make_member
from tests.world import NOW, Caller, Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def doc(tenant: Tenant, clock: Any) -> Account:
    return make_member(tenant.app, "viewer")


def caller_of(doc: Account) -> Caller:
    return Caller(issue_access_token(Credential.ACCESS, now=NOW, account=doc)[1], user=doc.email)


def events(doc: Account) -> list[tuple[str, dict[str, Any]]]:
    rows = SecurityEvent.objects.filter(account=doc, kind="tokens_ended")
    return list(rows.values_list("kind", "about"))


# --- A first second factor ------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["totp", "webauthn"])
def test_adding_a_first_second_factor_ends_all_tokens(doc: Account, kind: str) -> None:
    callers = [caller_of(doc), Caller(issue_key(Credential.ACCESS, account=doc)[1], user=doc.email)]

    Authenticator.objects.create(user=doc, type=kind, data={})

    assert [caller.get("/app").status for caller in callers] == [401, 401]
    assert events(doc) == [("tokens_ended", {"tokens": 2})]


def test_further_factors_and_recovery_codes_end_no_tokens(doc: Account) -> None:
    """The control: a token that was made with a code."""
    TOTP.activate(doc, SECRET)
    caller = caller_of(doc)

    Authenticator.objects.create(user=doc, type="webauthn", data={})
    RecoveryCodes.activate(doc)

    assert caller.get("/app").status == 200


def prove(doc: Account) -> Proof:
    return log_in_with_password(
        email=doc.email, password=PASSWORD, code="", app_slug=None, network="", now=NOW
    )


def test_log_in_without_code_gets_no_token_once_a_factor_is_added(doc: Account) -> None:
    """The password is checked before the factor is added, the token created after it."""
    early, late = prove(doc), prove(doc)
    issue_token(early, "", now=NOW)

    TOTP.activate(doc, SECRET)
    with pytest.raises(Unauthenticated):
        issue_token(late, "", now=NOW)

    assert not Credential.objects.filter(account=doc).exists()


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("locks", "tokens"), [(True, 0), (False, 1)])
def test_adding_a_factor_waits_for_concurrent_token_creation(
    doc: Account, monkeypatch: pytest.MonkeyPatch, locks: bool, tokens: int
) -> None:
    """The control: without the lock, the token is created unseen."""
    if not locks:
        monkeypatch.setattr(QuerySet, "select_for_update", lambda rows, **options: rows)
    proof, is_done = prove(doc), threading.Event()

    def add_factor() -> None:
        try:
            TOTP.activate(doc, SECRET)
        finally:
            is_done.set()
            connection.close()

    thread = threading.Thread(target=add_factor)
    with transaction.atomic():
        issue_token(proof, "", now=NOW)
        thread.start()
        while not (is_done.is_set() or someone_waits_for_a_lock()):
            is_done.wait(0.01)
    thread.join(60)

    assert Credential.objects.filter(account=doc).count() == tokens


def someone_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone() is not None


# --- The role of an owner -------------------------------------------------------------------------
def by_another_owner(doc: Account, app: App, role: str) -> None:
    change_role(Membership.objects.get(account=doc, app=app), role)


def by_an_invitation(doc: Account, app: App, role: str) -> None:
    Membership.objects.filter(account=doc, app=app).delete()
    invitation = invite_member(app=app, email=doc.email, role=role, now=timezone.now())
    accept_invitation(invitation, password=None, now=timezone.now())


def by_a_new_group(doc: Account, app: App, role: str) -> None:
    Membership.objects.filter(account=doc, app=app).delete()
    apply_groups(doc, [role])


def by_another_group(doc: Account, app: App, role: str) -> None:
    apply_groups(doc, [role])


@pytest.mark.parametrize(("role", "status"), [("owner", 401), ("editor", 200)])
@pytest.mark.parametrize(
    "change", [by_another_owner, by_an_invitation, by_a_new_group, by_another_group]
)
def test_becoming_an_owner_ends_earlier_tokens(
    doc: Account,
    tenant: Tenant,
    settings: Any,
    change: Callable[[Account, App, str], None],
    role: str,
    status: int,
) -> None:
    """The control: an editor's token goes on."""
    settings.OIDC_ROLES = [(name, tenant.app.slug, name) for name in ("owner", "editor")]
    caller = caller_of(doc)

    change(doc, tenant.app, role)

    assert Membership.objects.get(account=doc).role == role
    assert caller.get("/app").status == status
    assert events(doc) == [("tokens_ended", {"tokens": 1})] * (role == "owner")


def test_an_owner_who_creates_an_app_keeps_the_token(doc: Account) -> None:
    Membership.objects.update(role="owner")
    caller = caller_of(doc)

    made = caller.post("/apps", {"slug": "second", "name": "Second"})

    assert (made.status, caller.get("/apps").status) == (201, 200)


# --- Settings -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("setting", "kind", "status"),
    [
        ("off", "owner", 200),
        ("staff", "owner", 200),
        ("staff", "staff", 401),
        ("owners", "owner", 401),
        ("owners", "viewer", 200),
    ],
)
def test_required_second_factor_refuses_tokens_created_without_one(
    doc: Account, settings: Any, setting: str, kind: str, status: int
) -> None:
    if kind == "staff":
        Account.objects.filter(pk=doc.pk).update(is_staff=True)
    if kind == "owner":
        Membership.objects.update(role="owner")
    of_password = caller_of(doc)
    of_command = Caller(issue_key(Credential.ACCESS, account=doc)[1], user=doc.email)

    settings.REQUIRE_SECOND_FACTOR = setting

    assert (of_password.get("/app").status, of_command.get("/app").status) == (status, 200)


def test_token_created_with_a_code_stays_valid(doc: Account, settings: Any) -> None:
    Membership.objects.update(role="owner")
    TOTP.activate(doc, SECRET)
    caller = caller_of(doc)

    settings.REQUIRE_SECOND_FACTOR = "owners"

    assert caller.get("/app").status == 200


def test_disabling_passwords_refuses_tokens_of_passwords(
    doc: Account, tenant: Tenant, settings: Any
) -> None:
    """Not those of commands, nor those of resources, whose passwords still work."""
    of_password = caller_of(doc)
    of_command = Caller(issue_key(Credential.ACCESS, account=doc)[1], user=doc.email)
    made = tenant.make_resource(email="ada@example.com")
    tenant.put(f"/resources/{made['id']}", {"password": PASSWORD})
    body = {"email": "ada@example.com", "password": PASSWORD}
    token = Client().post("/v2/auth", body, content_type="application/json").json()["data"]
    of_resource = Caller(token["api_token"], user="ada@example.com")

    settings.PASSWORD_LOGIN = False

    calls = [(of_password, "/app"), (of_command, "/app"), (of_resource, "/resources")]
    assert [caller.get(path).status for caller, path in calls] == [401, 200, 200]
