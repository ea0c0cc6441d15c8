"""Log-in with OpenID Connect, against an issuer that speaks the protocol."""

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from apps_config.models import Account, SecurityEvent
from tests.office.oidc_issuer import CLIENT_ID, CLIENT_SECRET, Issuer, make_key, running_issuer
from tests.office.staff import member
from tests.world import Tenant

pytestmark = pytest.mark.django_db

DOC = {"sub": "248289", "email": "Doc@example.com", "email_verified": True, "name": "Emmett Brown"}


@pytest.fixture(scope="module")
def running() -> Iterator[Issuer]:
    with running_issuer() as issuer:
        yield issuer


@pytest.fixture
def issuer(running: Issuer, tenant: Tenant, settings: Any) -> Issuer:
    running.claims, running.changes, running.userinfo = dict(DOC), {}, {}
    running.signing_key = None
    running.asked.clear()
    settings.OIDC_ISSUER = running.url
    settings.OIDC_ROLES = [
        ("dentists", tenant.app.slug, "editor"),
        ("partners", tenant.app.slug, "owner"),
    ]
    provider = settings.SOCIALACCOUNT_PROVIDERS["oidc"]
    app = provider["APPS"][0] | {
        "client_id": CLIENT_ID,
        "secret": CLIENT_SECRET,
        "settings": {"server_url": running.url},
    }
    settings.SOCIALACCOUNT_PROVIDERS = {"oidc": provider | {"APPS": [app]}}
    return running


def log_in(issuer: Issuer, client: Client | None = None) -> Any:
    """Follow the browser's way to the issuer and back."""
    client = client or Client()
    there = client.get("/admin/oidc/?next=/admin/calendar/")
    assert there.url.startswith(f"{issuer.url}/authorize?")
    return client.get(issuer.authorize(there.url))


def roles(tenant: Tenant) -> dict[str, str]:
    return dict(tenant.app.memberships.values_list("account__email", "role"))


def test_groups_create_account_and_role(tenant: Tenant, issuer: Issuer) -> None:
    issuer.claims["groups"] = ["dentists", "unknown"]

    client = Client()
    answer = log_in(issuer, client)

    account = Account.objects.get(email="doc@example.com")
    assert (answer.status_code, answer.url) == (302, "/admin/calendar/")
    assert client.get("/admin/").status_code == 200
    assert (account.name, account.has_usable_password()) == ("Emmett Brown", False)
    assert roles(tenant) == {"doc@example.com": "editor"}
    assert {"/token", "/keys", "/userinfo"} <= set(issuer.asked)


def test_roles_follow_groups_at_each_log_in(tenant: Tenant, issuer: Issuer) -> None:
    member(tenant.app, "owner", "ann@example.com")
    found = []
    for groups in (["dentists"], ["dentists", "partners"], "dentists", []):
        issuer.claims["groups"] = groups
        found.append((log_in(issuer).status_code, roles(tenant).get("doc@example.com")))

    assert found == [(302, "editor"), (302, "owner"), (302, "editor"), (403, None)]
    assert SocialAccount.objects.count() == 1


def test_last_owner_is_kept_regardless_of_groups(tenant: Tenant, issuer: Issuer) -> None:
    member(tenant.app, "owner", "doc@example.com")

    answer = log_in(issuer)

    assert (answer.status_code, roles(tenant)) == (302, {"doc@example.com": "owner"})


def test_lookalike_address_matches_no_account(tenant: Tenant, issuer: Issuer) -> None:
    """In Python, the lower case of the Kelvin sign is k."""
    Account.objects.create_user("kim@example.com")
    issuer.claims |= {"groups": ["partners"], "email": "\u212aim@example.com"}

    answer = log_in(issuer)

    assert (answer.status_code, roles(tenant)) == (403, {})


def test_only_configured_groups_make_staff(issuer: Issuer, settings: Any) -> None:
    settings.OIDC_ROLES = [("operators", "", "superuser")]
    issuer.claims["groups"] = ["operators"]

    entered = log_in(issuer).status_code
    was_staff = Account.objects.get().is_superuser
    issuer.claims["groups"] = []
    refused = log_in(issuer).status_code

    assert (entered, was_staff, refused) == (302, True, 403)
    assert not Account.objects.get().is_superuser
    events = SecurityEvent.objects.filter(account=Account.objects.get()).order_by("id")
    rights = {"rights": ["is_staff", "is_superuser"]}
    assert list(events.exclude(kind="log_in").values_list("kind", "about")) == [
        ("staff_added", rights),
        ("staff_removed", rights),
    ]


def test_unchanged_rights_are_recorded_once(issuer: Issuer, settings: Any) -> None:
    settings.OIDC_ROLES = [("operators", "", "superuser")]
    issuer.claims["groups"] = ["operators"]

    for _ in range(2):
        log_in(issuer)

    assert SecurityEvent.objects.filter(kind="staff_added").count() == 1


def test_a_known_account_is_found_by_its_verified_address(tenant: Tenant, issuer: Issuer) -> None:
    issuer.claims["groups"] = ["dentists"]
    Account.objects.create_user("doc@example.com", "harbour-lights-7")

    answers = [log_in(issuer).status_code]
    issuer.claims |= {"email": "emmett@example.com"}  # the subject counts from now on
    answers.append(log_in(issuer).status_code)

    assert answers == [302, 302]
    account = Account.objects.get()
    assert (account.email, account.check_password("harbour-lights-7")) == ("doc@example.com", True)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"email_verified": False}, "did not confirm your e-mail address"),
        ({"email_verified": "true"}, "did not confirm your e-mail address"),
        ({"email": None}, "did not confirm your e-mail address"),
        ({"email": "doc@e\u212aample.com"}, "did not confirm your e-mail address"),
        ({"groups": []}, "There is no account for you yet"),
        ({"groups": {"dentists": 1}}, "There is no account for you yet"),
    ],
)
def test_accounts_without_access_are_refused(issuer: Issuer, claims: Any, words: str) -> None:
    issuer.claims |= {"groups": ["dentists"]} | claims

    client = Client()
    answer = log_in(issuer, client)

    assert (answer.status_code, words in answer.content.decode()) == (403, True)
    assert not Account.objects.exists()
    assert client.get("/admin/").status_code == 302


def test_another_subject_with_the_same_address_is_refused(tenant: Tenant, issuer: Issuer) -> None:
    issuer.claims["groups"] = ["dentists"]
    log_in(issuer)
    issuer.claims["sub"] = "another"

    answer = log_in(issuer)

    assert (answer.status_code, SocialAccount.objects.count()) == (403, 1)


def test_a_disabled_account_is_refused(tenant: Tenant, issuer: Issuer) -> None:
    issuer.claims["groups"] = ["dentists"]
    log_in(issuer)
    Account.objects.update(is_active=False)

    answer = log_in(issuer)

    assert (answer.status_code, b"Your account is disabled." in answer.content) == (403, True)


@pytest.mark.parametrize(
    "fault",
    ["signature", "issuer", "audience", "expired", "subject", "no subject", "user information"],
)
def test_wrong_id_token_is_refused(issuer: Issuer, fault: str) -> None:
    issuer.claims["groups"] = ["dentists"]
    if fault == "signature":
        issuer.signing_key = make_key()
    issuer.changes = {
        "issuer": {"iss": "https://other.example"},
        "audience": {"aud": "other"},
        "expired": {"exp": 1_700_000_000},
        "subject": {"sub": "x" * 192},
        "no subject": {"sub": ""},
    }.get(fault, {})
    issuer.userinfo = {"sub": "other"} if fault == "user information" else {}

    client = Client()
    answer = log_in(issuer, client)

    assert (answer.status_code, Account.objects.exists()) == (400, False)
    assert client.get("/admin/").status_code == 302


def test_code_of_another_browser_is_refused(issuer: Issuer) -> None:
    issuer.claims["groups"] = ["dentists"]
    back = issuer.authorize(Client().get("/admin/oidc/").url)

    answers = [Client().get(back), Client().get("/admin/oidc/callback/?error=access_denied")]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert not Account.objects.exists()


def test_unreachable_issuer_is_an_error_page(issuer: Issuer, settings: Any) -> None:
    app = settings.SOCIALACCOUNT_PROVIDERS["oidc"]["APPS"][0]
    app["settings"]["server_url"] = "http://127.0.0.1:9"

    answer = Client().get("/admin/oidc/")

    assert (answer.status_code, b"can&#x27;t be reached" in answer.content) == (502, True)


def test_pages_are_404_without_an_issuer(settings: Any) -> None:
    settings.OIDC_ISSUER = ""

    answers = [Client().get("/admin/oidc/"), Client().get("/admin/oidc/callback/?code=1&state=1")]
    page = Client().get("/admin/login/").content.decode()

    assert [answer.status_code for answer in answers] == [404, 404]
    assert "/admin/oidc/" not in page
