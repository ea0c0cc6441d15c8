"""Second factors of passwords, sessions, and the page behind an invitation's link."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.test import Client
from django.utils import timezone

from access.invitations import invite_member
from apps_config.models import Account, FailedLogin, Invitation
from notifications.links.invitations import invitation_url
from tests import sign_in
from tests.office.staff import member, superuser
from tests.sign_in import AUTHENTICATE, PASSWORD, SECRET, code_now, make_member, may_enter
from tests.world import Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def doc(tenant: Tenant) -> Account:
    return make_member(tenant.app, "viewer")


def log_in(client: Client, agent: str = "Firefox/140.0 (Linux)") -> Any:
    client.defaults["HTTP_USER_AGENT"] = agent
    return sign_in.log_in(client, next="/admin/calendar/")


# --- Second factors -------------------------------------------------------------------------------
def test_a_password_alone_enters_without_a_second_factor(doc: Account) -> None:
    client = Client()

    answer = log_in(client)

    assert (answer.status_code, answer.url, may_enter(client)) == (302, "/admin/calendar/", True)


def test_a_code_is_asked_for_after_the_password(doc: Account) -> None:
    TOTP.activate(doc, SECRET)
    client = Client()

    first = log_in(client)
    before = may_enter(client)
    form = client.get(AUTHENTICATE)
    wrong = client.post(AUTHENTICATE, {"code": "000000"})
    right = client.post(AUTHENTICATE, {"code": code_now()})

    assert (first.url, before, form.status_code) == (AUTHENTICATE, False, 200)
    assert b"Incorrect code." in wrong.content
    assert (right.status_code, right.url, may_enter(client)) == (302, "/admin/calendar/", True)
    assert not FailedLogin.objects.filter(address=f"code {doc.pk}").exists()


def test_a_code_works_once(doc: Account) -> None:
    TOTP.activate(doc, SECRET)
    clients, code = [Client(), Client()], code_now()
    for client in clients:
        log_in(client)
        client.post(AUTHENTICATE, {"code": code})

    assert [may_enter(client) for client in clients] == [True, False]


def test_wrong_codes_are_counted_by_account(doc: Account) -> None:
    TOTP.activate(doc, SECRET)
    client = Client()
    log_in(client)
    for _ in range(10):
        client.post(AUTHENTICATE, {"code": "000000"})

    answer = client.post(AUTHENTICATE, {"code": code_now()})
    FailedLogin.objects.filter(address=f"code {doc.pk}").update(minute=1)  # the window has passed
    later = client.post(AUTHENTICATE, {"code": code_now()})

    assert b"Too many wrong codes." in answer.content
    assert (later.status_code, may_enter(client)) == (302, True)


def test_a_recovery_code_works_once(doc: Account) -> None:
    TOTP.activate(doc, SECRET)
    code = RecoveryCodes.activate(doc).get_unused_codes()[0]
    entered = []
    for _ in range(2):
        client = Client()
        log_in(client)
        client.post(AUTHENTICATE, {"code": code})
        entered.append(may_enter(client))

    assert entered == [True, False]


@pytest.mark.parametrize(
    "credential",
    [
        "1",
        "[]",
        "{}",
        '{"id": 1}',
        '{"id": "\\u0000"}',
        '{"id": "\\ud800", "response": {"userHandle": "\\ud800"}}',
        '{"id": "YQ", "rawId": "YQ", "type": "public-key", "response": []}',
    ],
)
def test_a_malformed_passkey_is_refused(doc: Account, credential: str) -> None:
    """A stranger's, and one in place of a code."""
    stranger, client = Client(), Client()
    log_in_page = "/admin/account/security/webauthn/login/"
    stranger.get(log_in_page, headers={"X-Requested-With": "XMLHttpRequest"})
    TOTP.activate(doc, SECRET)
    log_in(client)

    answer = stranger.post(log_in_page, {"credential": credential}, follow=True)
    second = client.post(AUTHENTICATE, {"credential": credential})

    refusal = "This passkey was not accepted. Log in with your password, or use another passkey."
    assert [str(message) for message in answer.context["messages"]] == [refusal]
    assert refusal in answer.content.decode()
    assert second.context["webauthn_form"].errors == {
        "credential": ["This passkey was not accepted. Use another one, or a code."]
    }
    assert (may_enter(stranger), may_enter(client)) == (False, False)


def test_an_authenticator_app_is_set_up_with_the_password(doc: Account) -> None:
    client = Client()
    log_in(client)
    page = "/admin/account/security/totp/activate/"

    asked = client.get(page)
    client.post(asked.url, {"password": PASSWORD})
    shown = client.get(page)
    secret = re.search(
        r'id="authenticator_secret"[^>]* value="([A-Z2-7]+)"', shown.content.decode()
    )
    done = client.post(page, {"code": code_now(secret[1])})

    assert asked.url.startswith("/admin/account/confirm/?next=")
    assert (done.status_code, done.url) == (302, "/admin/account/security/recovery-codes/")
    stored = {row.type: str(row.data) for row in Authenticator.objects.filter(user=doc)}
    assert stored.keys() == {"totp", "recovery_codes"}
    assert secret[1] not in stored["totp"]  # encrypted
    assert client.get(done.url).content.decode().count("\n") > 10


@pytest.mark.parametrize("path", ["", "totp/activate/", "webauthn/", "webauthn/add/"])
def test_security_pages_need_a_log_in(path: str) -> None:
    answer = Client().get(f"/admin/account/security/{path}")

    assert answer.status_code == 302
    assert urlsplit(answer.url).path in ("/admin/login/", "/admin/account/log-in/")


# --- Sessions -------------------------------------------------------------------------------------
def test_sessions_are_listed_and_ended(doc: Account, tenant: Tenant) -> None:
    here, there, third = Client(), Client(), Client()
    log_in(here)
    log_in(there, "Mozilla/5.0 (iPhone) Version/18.0 Safari/604.1")
    log_in(third)
    stranger = member(tenant.app, "viewer", "bob@example.com")

    page = here.get("/admin/account/sessions/").content.decode()
    number = re.search(r"Safari on iPhone.*?name=\"session\" value=\"(\d+)\"", page, re.DOTALL)[1]
    foreign = stranger.post("/admin/account/sessions/", {"session": number})
    here.post("/admin/account/sessions/", {"session": number})
    after_one = [may_enter(client) for client in (here, there, third)]
    asked = here.post("/admin/account/sessions/", {"others": "1"})
    after_question = [may_enter(client) for client in (here, there, third)]
    here.post("/admin/account/sessions/", dict(asked.context["fields"]))
    after_all = [may_enter(client) for client in (here, there, third)]

    assert page.count("Firefox on Linux") == 3  # two sessions, and the label of one button
    assert "127.0.0.1, since" in page
    assert foreign.status_code == 404
    assert asked.context["lines"] == ["Sessions to end: 1"]
    assert after_question == after_one
    assert (after_one, after_all) == ([True, False, True], [True, False, False])


def test_a_superuser_ends_sessions_after_a_question(doc: Account) -> None:
    theirs, staff = Client(), superuser()
    log_in(theirs)
    path = "/admin/usersessions/usersession/"
    row = UserSession.objects.get(user=doc)
    form = {"action": "end_selected", "_selected_action": [str(row.pk)]}

    asked = staff.post(path, form)
    before = may_enter(theirs)
    staff.post(path, form | {"confirmed": "yes"})

    assert asked.context["lines"] == [f"{doc}, Firefox on Linux"]
    assert (before, may_enter(theirs)) == (True, False)


def test_second_factors_are_removed_after_a_question(doc: Account) -> None:
    Authenticator.objects.create(user=doc, type=Authenticator.Type.TOTP, data={})
    staff, path = superuser(), "/admin/apps_config/account/"
    form = {"action": "remove_second_factors", "_selected_action": [str(doc.pk)]}

    asked = staff.post(path, form)
    before = Authenticator.objects.count()
    staff.post(path, form | {"confirmed": "yes"})

    assert asked.context["lines"] == [str(doc)]
    assert (before, Authenticator.objects.count()) == (1, 0)


# --- Invitations ----------------------------------------------------------------------------------
@pytest.fixture
def link_of(tenant: Tenant) -> Callable[[str], str]:
    def make(email: str) -> str:
        now = timezone.now()
        invitation = invite_member(app=tenant.app, email=email, role="editor", now=now)
        parts = urlsplit(invitation_url(invitation))
        return f"{parts.path}?{parts.query}"

    return make


def members(tenant: Tenant) -> dict[str, str]:
    return dict(tenant.app.memberships.values_list("account__email", "role"))


def test_new_account_chooses_a_password_and_joins(
    tenant: Tenant, link_of: Callable[[str], str]
) -> None:
    link, client = link_of("doc@example.com"), Client()
    passwords = {"new_password1": PASSWORD, "new_password2": PASSWORD}

    form = client.get(link)
    looked = members(tenant)
    bad = client.post(link, {"new_password1": "short", "new_password2": "short"})
    none = client.post(link)
    joined = client.post(link, passwords)
    again = client.post(link, passwords)

    assert b"new_password1" in form.content and looked == {}
    assert b"too short" in bad.content and b"This field is required." in none.content
    assert b"You have joined" in joined.content
    assert (again.status_code, b"no longer valid" in again.content) == (403, True)
    assert members(tenant) == {"doc@example.com": "editor"}
    assert may_enter(client) is False
    assert log_in(client).status_code == 302


@pytest.mark.parametrize("kind", ["password", "staff", "provider"])
def test_existing_account_accepts_without_a_new_password(
    tenant: Tenant, link_of: Callable[[str], str], kind: str
) -> None:
    account = Account.objects.create_user(
        "doc@example.com", PASSWORD if kind == "password" else None, is_staff=kind == "staff"
    )
    if kind == "provider":
        SocialAccount.objects.create(user=account, provider="oidc", uid="1")
    link = link_of("doc@example.com")
    stolen = {"new_password1": "stolen-words-9", "new_password2": "stolen-words-9"}

    page = Client().get(link).content
    Client().post(link, stolen)

    account.refresh_from_db()
    assert b"new_password1" not in page
    assert account.check_password("stolen-words-9") is False
    assert members(tenant) == {"doc@example.com": "editor"}


def test_a_disabled_account_can_not_join(tenant: Tenant, link_of: Callable[[str], str]) -> None:
    Account.objects.create_user("doc@example.com", PASSWORD, is_active=False)

    answer = Client().post(link_of("doc@example.com"))

    assert (answer.status_code, members(tenant)) == (403, {})


def test_damaged_and_expired_links_are_refused(
    tenant: Tenant, link_of: Callable[[str], str]
) -> None:
    link = link_of("doc@example.com")
    answers = [Client().get(link + "x"), Client().get(link.partition("?")[0])]
    answers.append(Client().get(link.partition("?")[0] + "?signature=%00"))
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    answers.append(Client().get(link))

    assert [answer.status_code for answer in answers] == [403] * 4
