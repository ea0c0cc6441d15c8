"""A new password ends the sessions and tokens of the old one, by whatever path it comes."""

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.test import Client

from apps_config.models import Account, Credential, SecurityEvent
from apps_config.services import issue_access_token, issue_key
from office.access.account_password_links import password_link
from tests.office.staff import superuser
from tests.sign_in import PASSWORD, log_in, make_member, may_enter
from tests.world import NOW, Caller, Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
OLD, NEW = PASSWORD, "lighthouse-keeper-9"


class BriefHasher(PBKDF2PasswordHasher):
    """Another algorithm than that of the tests."""

    algorithm = "brief"
    iterations = 1


@pytest.fixture
def doc(tenant: Tenant) -> Account:
    return make_member(tenant.app, "owner")


def logged_in() -> Client:
    client = Client()
    log_in(client)
    return client


def change_own(doc: Account, client: Client) -> None:
    form = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW}
    client.post("/admin/password_change/", form)


def set_by_a_superuser(doc: Account, client: Client) -> None:
    form = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    superuser().post(f"/admin/apps_config/account/{doc.pk}/password/", form)


def remove_by_a_superuser(doc: Account, client: Client) -> None:
    form = {"usable_password": "false", "unset-password": "1"}
    superuser().post(f"/admin/apps_config/account/{doc.pk}/password/", form)


def follow_a_link(doc: Account, client: Client) -> None:
    doc.refresh_from_db()  # the latest log-in is a part of the link
    stranger = Client()
    page = stranger.get(password_link(doc))
    stranger.post(page.url, {"new_password1": NEW, "new_password2": NEW})


def run_a_command(doc: Account, client: Client) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("getpass.getpass", lambda *args, **kwargs: NEW)
        call_command("changepassword", "doc@example.com", stdout=StringIO())


CHANGES: dict[str, tuple[Callable[[Account, Client], None], bool, str]] = {
    # Who changes it, whether the session that does so goes on, and the actor of the event.
    "own": (change_own, True, "doc@example.com"),
    "superuser": (set_by_a_superuser, False, "staff@example.com"),
    "removed": (remove_by_a_superuser, False, "staff@example.com"),
    "link": (follow_a_link, False, "doc@example.com"),
    "command": (run_a_command, False, "command"),
}


@pytest.mark.parametrize("path", CHANGES)
def test_a_new_password_ends_tokens_and_sessions(doc: Account, path: str) -> None:
    change, goes_on, actor = CHANGES[path]
    of_log_in = issue_access_token(Credential.ACCESS, now=NOW, account=doc)[1]
    of_command = issue_key(Credential.ACCESS, account=doc)[1]
    here, there = logged_in(), logged_in()
    callers = [Caller(text, user="doc@example.com") for text in (of_log_in, of_command)]
    before = [caller.get("/app").status for caller in callers]
    SecurityEvent.objects.all().delete()

    change(doc, here)

    assert before == [200, 200]
    assert [caller.get("/app").status for caller in callers] == [401, 401]
    assert [may_enter(here), may_enter(there)] == [goes_on, False]
    assert UserSession.objects.filter(user=doc).count() == goes_on
    rows = SecurityEvent.objects.filter(account=doc).exclude(kind="log_in").order_by("id")
    assert list(rows.values_list("kind", "actor", "about"))[:2] == [
        ("password_changed", actor, {}),
        ("tokens_ended", actor, {"tokens": 2}),
    ]


def test_current_session_stays_listed(doc: Account) -> None:
    client = logged_in()
    change_own(doc, client)

    assert [row.session_key for row in UserSession.objects.all()] == [client.session.session_key]
    assert Session.objects.count() == 1


def test_rehashing_a_password_ends_no_tokens_or_sessions(doc: Account, settings: Any) -> None:
    text = issue_key(Credential.ACCESS, account=doc)[1]
    settings.PASSWORD_HASHERS = [
        "tests.access.test_password_changes.BriefHasher",
        *settings.PASSWORD_HASHERS,
    ]
    before = doc.password
    SecurityEvent.objects.all().delete()

    client = logged_in()

    doc.refresh_from_db()
    assert (before[:3], doc.password[:5]) == ("md5", "brief")
    assert (may_enter(client), Caller(text, user=doc.email).get("/app").status) == (True, 200)
    assert not SecurityEvent.objects.filter(kind="password_changed").exists()


def test_other_account_changes_end_no_tokens(doc: Account) -> None:
    text = issue_key(Credential.ACCESS, account=doc)[1]

    doc.name = "Emmett"
    doc.save()
    superuser().post(
        f"/admin/apps_config/account/{doc.pk}/change/",
        {"email": doc.email, "name": "Doc", "is_active": "on"},
    )

    assert Caller(text, user=doc.email).get("/app").status == 200


def test_new_resource_password_ends_its_log_in_keys(tenant: Tenant) -> None:
    made = tenant.make_resource(email="ada@example.com")
    tenant.put(f"/resources/{made['id']}", {"password": OLD})
    body = {"email": "ada@example.com", "password": OLD}
    token = Client().post("/v2/auth", body, content_type="application/json").json()["data"]
    callers = [
        Caller(text, user="ada@example.com") for text in (token["api_token"], made["api_token"])
    ]

    tenant.put(f"/resources/{made['id']}", {"password": NEW})

    assert [caller.get("/resources").status for caller in callers] == [401, 200]
    event = SecurityEvent.objects.get(kind="tokens_ended")
    assert (event.app, event.about) == (tenant.app, {"tokens": 1})
