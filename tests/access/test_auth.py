"""POST /auth: a password for a key (section 3)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import hashers
from django.contrib.auth.hashers import make_password
from django.db import DatabaseError
from django.test import Client

from apps_config.models import Account, Credential, FailedLogin, Membership
from apps_config.services import LOG_IN_DESCRIPTION, archive_app, issue_key
from availability.models import Resource
from tests.world import NOW, Answer, Caller, Tenant

MakeTenant = Callable[..., Tenant]
PASSWORD = "correct horse battery"
EXPIRES = "2026-12-20T09:30:00+0000"
REFUSED = (401, {"error": "Valid credentials are required.", "code": "unauthenticated"})


@pytest.fixture(autouse=True)
def _frozen_clock(clock: Any) -> None:
    """The clock stands still."""


def auth(email: str, password: str = PASSWORD, *, scopes: Any = None, **headers: str) -> Answer:
    """POST /auth without any key."""
    body = {"email": email, "password": password, **({"scopes": scopes} if scopes else {})}
    response = Client().post("/v2/auth", body, content_type="application/json", headers=headers)
    return Answer(response)


def make_owner(tenant: Tenant, email: str = "owner@example.com") -> Account:
    account = Account.objects.create_user(email, PASSWORD, name="Olga")
    Membership.objects.create(account=account, app=tenant.app, role=Membership.OWNER)
    return account


def make_ada(tenant: Tenant, password: str = PASSWORD) -> Resource:
    """A resource that can log in."""
    made = tenant.make_resource(email="Ada@example.com")
    row = Resource.objects.get(id=made["id"])
    row.password = make_password(password)
    row.save()
    return row


# --- Who gets in ----------------------------------------------------------------------------------
def test_an_account_gets_an_access_token(tenant: Tenant) -> None:
    account = make_owner(tenant)

    answer = auth("Owner@Example.com")

    token = answer.data["api_token"]
    assert (answer.status, answer.json) == (
        200,
        {
            "data": {
                "kind": "access",
                "id": str(account.id),
                "name": "Olga",
                "email": "owner@example.com",
                "api_token": token,
                "expires_at": EXPIRES,
            }
        },
    )
    assert Caller(token, user="owner@example.com").get("/app").data["slug"] == tenant.app.slug


def test_log_in_is_not_repeated_on_a_stale_plan(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt has used the code of a second factor."""
    make_owner(tenant)
    attempts = []

    def fail(*_: Any, **__: Any) -> Any:
        attempts.append(1)
        raise DatabaseError

    monkeypatch.setattr("access.views.credentials.issue_token", fail)
    monkeypatch.setattr("common.api.views.is_stale_plan", lambda error: True)

    with pytest.raises(DatabaseError):
        auth("owner@example.com")

    assert attempts == [1]


@pytest.mark.parametrize("is_named", [False, True])
def test_a_resource_gets_its_key(tenant: Tenant, is_named: bool) -> None:
    ada = make_ada(tenant)

    answer = auth("ada@example.com", **({"Service-App": tenant.app.slug} if is_named else {}))

    token = answer.data["api_token"]
    assert (answer.status, answer.json) == (
        200,
        {
            "data": {
                "kind": "resource",
                "id": str(ada.id),
                "name": "Ada",
                "email": "Ada@example.com",
                "api_token": token,
                "expires_at": EXPIRES,
            }
        },
    )
    assert [one["id"] for one in Caller(token, user="ada@example.com").get("/resources").data] == [
        str(ada.id)
    ]


def test_the_key_lasts_thirty_days(tenant: Tenant, clock: Any) -> None:
    make_owner(tenant)
    caller = Caller(auth("owner@example.com").data["api_token"], user="owner@example.com")

    clock.shift(30 * 86_400 - 1)
    before = caller.get("/app").status
    clock.shift(1)

    assert (before, caller.get("/app").status) == (200, 401)


@pytest.mark.parametrize("who", ["account", "resource"])
def test_only_newest_ten_log_in_keys_stay_valid(tenant: Tenant, clock: Any, who: str) -> None:
    account, ada = make_owner(tenant), make_ada(tenant)
    other = issue_key(Credential.ACCESS, account=account, description="Script")[0]
    email = "owner@example.com" if who == "account" else "ada@example.com"

    tokens = []
    for _ in range(12):
        clock.shift(1)
        tokens.append(auth(email).data["api_token"])

    path = "/app" if who == "account" else "/resources"
    statuses = [Caller(token, user=email).get(path).status for token in tokens]
    assert statuses == [401] * 2 + [200] * 10
    assert Credential.objects.filter(description=LOG_IN_DESCRIPTION).count() == 10
    assert Credential.objects.filter(id=other.id).exists()
    assert ada.credentials.exclude(description=LOG_IN_DESCRIPTION).count() == 1


def test_test_mode_is_shown(make_tenant: MakeTenant) -> None:
    make_ada(make_tenant(mode="test"))

    answer = auth("ada@example.com")

    assert (answer.headers["Service-TestMode"], answer.headers["Timekit-TestMode"]) == ("true",) * 2


# --- Several apps ---------------------------------------------------------------------------------
def test_password_selects_among_resources_with_one_address(make_tenant: MakeTenant) -> None:
    mine = make_ada(make_tenant())
    make_ada(make_tenant(), password="another one")

    assert auth("ada@example.com").data["id"] == str(mine.id)


def test_app_is_required_if_password_fits_several_resources(make_tenant: MakeTenant) -> None:
    tenants = [make_tenant(), make_tenant()]
    rows = [make_ada(tenant) for tenant in tenants]

    unnamed = auth("ada@example.com")
    wrong = auth("ada@example.com", "wrong password")
    named = [auth("ada@example.com", **{"Service-App": tenant.app.slug}) for tenant in tenants]

    assert (unnamed.status, unnamed.json["errors"]) == (
        422,
        {"Service-App": ["Required: the log-in matches several apps."]},
    )
    assert (wrong.status, wrong.error) == REFUSED
    assert [answer.data["id"] for answer in named] == [str(row.id) for row in rows]
    assert {row.count for row in FailedLogin.objects.all()} == {1}  # the wrong one


# --- Who does not ---------------------------------------------------------------------------------
def strangers(tenant: Tenant, other: Tenant) -> dict[str, tuple[str, str, str | None]]:
    """name -> address, password and app of a log-in that is refused."""
    make_owner(tenant)
    make_ada(tenant)
    gone = tenant.make_resource(email="gone@example.com")
    Resource.objects.filter(id=gone["id"]).update(password=make_password(PASSWORD))
    tenant.delete(f"/resources/{gone['id']}")
    tenant.make_resource(email="none@example.com")
    off = make_owner(tenant, "off@example.com")
    Account.objects.filter(id=off.id).update(is_active=False)
    Account.objects.create_user("alone@example.com", PASSWORD)
    make_owner(other, "archived@example.com")
    bob = other.make_resource(email="bob@example.com")
    Resource.objects.filter(id=bob["id"]).update(password=make_password(PASSWORD))
    archive_app(other.app, now=NOW)
    slug = tenant.app.slug
    return {
        "wrong password": ("owner@example.com", "wrong", None),
        "wrong password of a resource": ("ada@example.com", "wrong", None),
        "unknown": ("nobody@example.com", PASSWORD, None),
        "inactive": ("off@example.com", PASSWORD, None),
        "without an app": ("alone@example.com", PASSWORD, None),
        "of an archived app": ("archived@example.com", PASSWORD, None),
        "resource of an archived app": ("bob@example.com", PASSWORD, None),
        "deleted": ("gone@example.com", PASSWORD, None),
        "without a password": ("none@example.com", PASSWORD, None),
        "in another app": ("ada@example.com", PASSWORD, other.app.slug),
        "in an unknown app": ("owner@example.com", PASSWORD, "no-such-app"),
        "named archived app": ("bob@example.com", PASSWORD, other.app.slug),
        "hash for a password": ("owner@example.com", "md5$", slug),
    }


def test_refusals_are_equal_and_cost_one_hash(
    make_tenant: MakeTenant, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FAILED_PASSWORDS_PER_HOUR = 0
    cases = strangers(make_tenant(), make_tenant())
    hashed = []
    encode = hashers.MD5PasswordHasher.encode

    def counted(self: Any, password: str, salt: str) -> str:
        hashed.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(hashers.MD5PasswordHasher, "encode", counted)
    answers, costs = {}, {}
    for name, (email, password, slug) in cases.items():
        hashed.clear()
        answer = auth(email, password, **({"Service-App": slug} if slug else {}))
        counted = ("Service-Request-Id", "X-RateLimit-Remaining", "RateLimit")
        shown = {k: v for k, v in answer.headers.items() if k not in counted}
        answers[name] = (answer.status, answer.error, shown)
        costs[name] = len(hashed)

    assert {(status, str(error), str(shown)) for status, error, shown in answers.values()} == {
        (*map(str_of, REFUSED), str(answers["unknown"][2]))
    }
    assert answers["unknown"][2]["WWW-Authenticate"].startswith("Basic ")
    assert costs == dict.fromkeys(cases, 1)
    assert not Credential.objects.filter(description=LOG_IN_DESCRIPTION).exists()


def str_of(value: Any) -> Any:
    return value if isinstance(value, int) else str(value)


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"email": ["This field is required."], "password": ["This field is required."]}),
        (
            {"email": "ada", "password": 5},
            {"email": ["Must be an e-mail address."], "password": ["Must be a string."]},
        ),
        (
            {"email": "ada@example.com", "password": "x" * 4097},
            {"password": ["Ensure this field has no more than 4096 characters."]},
        ),
    ],
)
def test_wrong_bodies_are_refused(db: None, body: Any, errors: dict[str, list[str]]) -> None:
    answer = Answer(Client().post("/v2/auth", body, content_type="application/json"))

    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert not FailedLogin.objects.exists()


def test_unknown_query_parameters_and_methods_are_refused(db: None) -> None:
    answers = [
        Answer(Client().post("/v2/auth?x=1", {}, content_type="application/json")),
        Answer(Client().get("/v2/auth")),
    ]

    assert [(answer.status, answer.json["code"]) for answer in answers] == [
        (422, "invalid"),
        (405, "method_not_allowed"),
    ]


# --- How often (wrong passwords: test_log_in_limits.py) -------------------------------------------
def test_failures_are_counted_per_network(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    make_owner(tenant)
    monkeypatch.setattr("apps_config.authentication.request_rates.limit", 2)

    answers = [auth("owner@example.com") for _ in range(3)]

    shown = [(answer.status, answer.headers["X-RateLimit-Remaining"]) for answer in answers]
    assert shown == [(200, "1"), (200, "0"), (429, "0")]


# --- Scopes ---------------------------------------------------------------------------------------
def test_access_token_has_the_scopes_of_the_log_in(tenant: Tenant) -> None:
    make_owner(tenant)

    token = auth("owner@example.com", scopes=["bookings:read", "keys:write"]).data["api_token"]

    caller = Caller(token, user="owner@example.com")
    answers = [
        caller.get("/bookings"),
        caller.get("/customers"),
        caller.post("/credentials", {"kind": "server"}),
    ]
    assert [(answer.status, answer.json.get("error")) for answer in answers] == [
        (200, None),
        (403, "This key lacks the scope people:read."),
        (403, "A key can't make or revoke a key that may do more than itself."),
    ]


def test_key_of_a_resource_has_no_scopes(tenant: Tenant) -> None:
    make_ada(tenant)

    answer = auth("Ada@example.com", scopes=["bookings:read"])

    errors = {"scopes": ["Only access tokens of accounts have scopes."]}
    assert (answer.status, answer.json["errors"]) == (422, errors)
