"""Before keys and members are added or accounts changed, the session's person proves again who they
are.
"""

from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from django.test import Client
from django.urls import reverse

from apps_config.models import Account, Credential, Invitation, SecurityEvent
from tests.office.staff import form_of, log_in_now, member
from tests.sign_in import PASSWORD, SECRET, code_now, log_in, make_member
from tests.world import Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
ADD = reverse("admin:apps_config_credential_add")
CONFIRM = "/admin/account/confirm/"
MINUTES = 60


@pytest.fixture
def ann(tenant: Tenant) -> Account:
    return make_member(tenant.app, "owner", "ann@example.com")


@pytest.fixture
def client(ann: Account) -> Client:
    client = Client()
    log_in(client, ann.email)
    return client


def team(tenant: Tenant) -> str:
    return reverse("admin:apps_config_membership_of", args=[tenant.app.pk])


def test_new_session_adds_keys_and_members(client: Client, tenant: Tenant) -> None:
    page = client.get(ADD)
    client.post(team(tenant), {"invite": "1", "email": "bob@example.com", "role": "viewer"})

    assert (page.status_code, Invitation.objects.count()) == (200, 1)


def test_an_older_session_confirms_before_it_adds_a_key(
    client: Client, tenant: Tenant, clock: Any
) -> None:
    clock.shift(5 * MINUTES)
    path = f"{ADD}?app={tenant.app.pk}"

    asked = client.get(path)
    wrong = client.post(asked.url, {"password": "wrong"})
    confirmed = client.post(asked.url, {"password": PASSWORD})
    made = client.post(path, form_of(client, path) | {"kind": "server", "description": "Job"})

    assert (asked.status_code, asked.url.partition("?")[0]) == (302, CONFIRM)
    assert wrong.status_code == 200
    assert (confirmed.status_code, confirmed.url) == (302, path)
    assert b"The new key" in made.content
    assert Credential.objects.filter(description="Job").count() == 1


def test_form_is_applied_after_the_confirmation(client: Client, tenant: Tenant, clock: Any) -> None:
    clock.shift(5 * MINUTES)
    form = {"invite": "1", "email": "bob@example.com", "role": "editor"}

    asked = client.post(team(tenant), form)
    before = Invitation.objects.count()
    client.post(asked.url, {"password": PASSWORD})

    assert (asked.status_code, before) == (302, 0)
    assert list(Invitation.objects.values_list("email", "role")) == [("bob@example.com", "editor")]


def test_removing_access_needs_no_confirmation(client: Client, tenant: Tenant, clock: Any) -> None:
    bob = member(tenant.app, "editor", "bob@example.com")
    number = tenant.app.memberships.get(account=bob.account).pk
    key = tenant.app.credentials.get()
    clock.shift(5 * MINUTES)

    client.post(team(tenant), {"member": number, "remove": "1", "confirmed": "yes"})
    client.post(reverse("admin:apps_config_credential_revoke", args=[key.pk]))
    promoted = client.post(
        team(tenant), {"member": tenant.app.memberships.get().pk, "role": "owner"}
    )

    key.refresh_from_db()
    assert (tenant.app.memberships.count(), key.revoked_at is None) == (1, False)
    assert promoted.url.startswith(CONFIRM)


def test_code_confirms_a_session(ann: Account, client: Client, clock: Any) -> None:
    TOTP.activate(ann, SECRET)
    clock.shift(5 * MINUTES)

    asked = client.get(ADD)
    page = client.get(asked.url).content.decode()
    by_code = client.post(
        f"/admin/account/security/reauthenticate/?next={ADD}", {"code": code_now()}
    )

    assert "/admin/account/security/reauthenticate/" in page
    assert (by_code.status_code, by_code.url) == (302, ADD)
    assert client.get(ADD).status_code == 200


# --- Accounts of others ---------------------------------------------------------------------------
STRANGER = "stolen-words-9"


@pytest.fixture
def staff(client: Client, ann: Account, clock: Any) -> Client:
    """A superuser's session that logged in five minutes ago."""
    Account.objects.filter(pk=ann.pk).update(is_staff=True, is_superuser=True)
    clock.shift(5 * MINUTES)
    return client


@pytest.fixture
def bob(tenant: Tenant) -> Account:
    account = member(tenant.app, "viewer", "bob@example.com").account
    TOTP.activate(account, SECRET)
    return account


def state_of(bob: Account) -> tuple[str, bool, int]:
    bob.refresh_from_db()
    return bob.password, bob.is_superuser, bob.authenticator_set.count()


ACTS: dict[str, tuple[str, dict[str, str]]] = {
    "password link": ("{0}/password-link/", {}),
    "superuser": ("{0}/change/", {"email": "bob@example.com", "is_superuser": "on"}),
    "password": (
        "{0}/password/",
        {"password1": STRANGER, "password2": STRANGER, "usable_password": "true"},
    ),
    "second factors": (
        "",
        {"action": "remove_second_factors", "_selected_action": "{0}", "confirmed": "yes"},
    ),
}


@pytest.mark.parametrize("act", ACTS)
def test_an_older_session_confirms_before_it_changes_an_account(
    staff: Client, bob: Account, act: str
) -> None:
    path, form = ACTS[act]
    path = f"/admin/apps_config/account/{path.format(bob.pk)}"
    form = {name: value.format(bob.pk) for name, value in form.items()}
    before = state_of(bob)

    asked = staff.post(path, form)
    while asked.url == path:  # back to the empty form
        asked = staff.get(path)
    after = state_of(bob)

    assert asked.url.startswith("/admin/account/confirm/")
    assert after == before
    assert STRANGER not in str(dict(staff.session))
    assert not SecurityEvent.objects.filter(kind="password_link_made").exists()

    staff.post(asked.url, {"password": PASSWORD})
    staff.post(path, form)

    links = SecurityEvent.objects.filter(kind="password_link_made").exists()
    assert (state_of(bob) != before, links) == (act != "password link", act == "password link")


def test_an_older_session_reads_accounts(staff: Client, bob: Account) -> None:
    pages = ["", f"{bob.pk}/change/"]

    assert [staff.get(f"/admin/apps_config/account/{page}").status_code for page in pages] == [
        200,
        200,
    ]


def test_viewers_are_refused_without_confirmation(tenant: Tenant, clock: Any) -> None:
    viewer = member(tenant.app, "viewer")
    clock.shift(5 * MINUTES)

    assert viewer.get(ADD).status_code == 403


def test_oidc_accounts_confirm_at_the_provider(tenant: Tenant, settings: Any, clock: Any) -> None:
    settings.OIDC_ISSUER = "https://id.example.com"
    owner = member(tenant.app, "owner")  # has no password
    clock.shift(5 * MINUTES)

    asked = owner.get(ADD)

    assert (asked.status_code, asked.url) == (
        302,
        "/admin/oidc/?next=%2Fadmin%2Fapps_config%2Fcredential%2Fadd%2F",
    )


@pytest.mark.parametrize("setting", ["off", "owners"])
def test_oidc_session_needs_no_second_factor(ann: Account, settings: Any, setting: str) -> None:
    settings.REQUIRE_SECOND_FACTOR = setting
    client = Client()
    log_in_now(client, ann)
    session = client.session
    session["account_authentication_methods"][0]["method"] = "socialaccount"
    session.save()

    assert client.get("/admin/calendar/").status_code == 200
