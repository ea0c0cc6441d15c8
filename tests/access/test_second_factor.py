"""Second factors at POST /auth, and who must have one."""

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.core.cache import cache
from django.test import Client

from apps_config.models import Account, App, Credential, FailedLogin, Membership, SecurityEvent
from tests.sign_in import AUTHENTICATE, EMAIL, PASSWORD, SECRET, code_now, log_in, make_member
from tests.world import Answer, Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def doc(tenant: Tenant) -> Account:
    return make_member(tenant.app, "owner")


@pytest.fixture
def with_codes(doc: Account, clock: Any) -> Account:
    TOTP.activate(doc, SECRET)
    return doc


def auth(password: str = PASSWORD, **given: Any) -> Answer:
    cache.clear()  # as another process, which knows only what the tables say
    body = {"email": EMAIL, "password": password, **given}
    return Answer(Client().post("/v2/auth", body, content_type="application/json"))


def refusal(sentence: str) -> tuple[int, dict[str, str]]:
    return 401, {"error": sentence, "code": "second_factor_required"}


ASKED = refusal("Send a code of the authenticator app, or a recovery code.")
WRONG = refusal("The code is wrong or was already used.")
UNKNOWN = (401, {"error": "Valid credentials are required.", "code": "unauthenticated"})


def tokens() -> int:
    return Credential.objects.filter(kind="access").count()


def test_a_password_alone_gets_no_token(with_codes: Account) -> None:
    answers = [auth(), auth(code=""), auth(code=None)]

    assert [(answer.status, answer.error) for answer in answers] == [ASKED] * 3
    assert answers[0].headers["WWW-Authenticate"].startswith("Basic ")
    assert tokens() == 0


def test_a_code_gets_a_token(with_codes: Account) -> None:
    answer = auth(code=code_now())

    assert (answer.status, answer.data["kind"], tokens()) == (200, "access", 1)
    assert not FailedLogin.objects.filter(address=f"code {with_codes.pk}").exists()


@pytest.mark.parametrize("code", ["000000", "١٢٣٤٥٦", "\ud800", "x" * 64])
def test_wrong_code_gets_no_token(with_codes: Account, code: str) -> None:
    answer = auth(code=code)

    assert answer.status in (400, 401)
    assert tokens() == 0
    if answer.status == 401:
        assert (answer.status, answer.error) == WRONG


def test_wrong_password_does_not_reveal_second_factor(with_codes: Account) -> None:
    answers = [auth("wrong"), auth("wrong", code=code_now())]

    assert [(answer.status, answer.error) for answer in answers] == [UNKNOWN] * 2
    assert auth(code=code_now()).status == 200  # the code was not used up


@pytest.mark.parametrize("spelling", ["{0}", "{0} ", "{1}-{2}", "{1} {2}"])
def test_used_code_is_refused_in_any_spelling(with_codes: Account, spelling: str) -> None:
    code = code_now()
    auth(code=code)

    again = auth(code=spelling.format(code, code[:3], code[3:]))

    assert ((again.status, again.error), tokens()) == (WRONG, 1)


def test_used_code_is_refused_in_next_window(with_codes: Account, clock: Any) -> None:
    """It is 9:30: codes are counted by the quarter of an hour, and last for 90 seconds."""
    clock.shift(-10)
    code = code_now()
    auth(code=code)
    clock.shift(20)

    again = auth(code=code)

    assert (again.status, again.error) == WRONG


def test_code_used_in_the_back_office_is_refused(with_codes: Account) -> None:
    client, code = Client(), code_now()
    log_in(client)
    entered = client.post(AUTHENTICATE, {"code": code})

    again = auth(code=code)

    assert entered.status_code == 302
    assert (again.status, again.error) == WRONG


def test_a_recovery_code_works_once(with_codes: Account) -> None:
    code = RecoveryCodes.activate(with_codes).get_unused_codes()[0]

    answers = [auth(code=code), auth(code=code)]

    assert [answer.status for answer in answers] == [200, 401]


def test_wrong_codes_are_counted_by_account(with_codes: Account) -> None:
    answers = [auth(code="000000") for _ in range(11)]
    right = auth(code=code_now())

    assert [answer.status for answer in answers] == [401] * 10 + [429]
    assert (right.status, right.headers["Retry-After"]) == (429, "900")
    event = SecurityEvent.objects.get(kind="log_in_failed")
    assert (event.account, event.about, event.count) == (with_codes, {"factor": "code"}, 10)


def test_a_passkey_alone_gets_no_token(doc: Account) -> None:
    """Nor does a recovery code that came with it: a passkey needs a browser."""
    Authenticator.objects.create(user=doc, type=Authenticator.Type.WEBAUTHN, data={})
    code = RecoveryCodes.activate(doc).get_unused_codes()[0]

    answers = [auth(), auth(code=code)]

    sentence = "This account's second factor is a passkey, which works in the back office only."
    assert [(answer.status, answer.error) for answer in answers] == [refusal(sentence)] * 2


def test_a_resource_needs_no_code(tenant: Tenant) -> None:
    made = tenant.make_resource(email=EMAIL)
    tenant.put(f"/resources/{made['id']}", {"password": PASSWORD})

    assert auth().data["kind"] == "resource"


# --- REQUIRE_SECOND_FACTOR ------------------------------------------------------------------------
MUST = refusal("This account needs a second factor. Set one up in the back office.")


@pytest.mark.parametrize(
    ("setting", "kind", "must"),
    [
        ("off", "staff", False),
        ("off", "owner", False),
        ("staff", "staff", True),
        ("staff", "owner", False),
        ("owners", "staff", True),
        ("owners", "owner", True),
        ("owners", "editor", False),
        ("owners", "owner of an archived app", False),
    ],
)
def test_require_second_factor_setting_per_account_kind(
    tenant: Tenant, doc: Account, settings: Any, setting: str, kind: str, must: bool
) -> None:
    """Without one, the account gets no token, and sees nothing of the back office but the pages to
    set one up."""
    settings.REQUIRE_SECOND_FACTOR = setting
    if kind == "staff":
        Account.objects.update(is_staff=True, is_superuser=True)
    if kind != "owner":
        Membership.objects.update(role="editor")
    if kind == "owner of an archived app":
        archived = App.objects.create(slug="old", name="Old", archived_at="2026-01-01T00:00Z")
        archived.memberships.create(account=doc, role="owner")
    client = Client()
    log_in(client)

    answer, page = auth(), client.get("/admin/calendar/")

    assert (answer.status == 401, page.status_code == 302) == (must, must)
    if must:
        assert (answer.status, answer.error) == MUST
        assert page.url == "/admin/account/security/"
    assert client.get("/admin/account/security/").status_code == 200
