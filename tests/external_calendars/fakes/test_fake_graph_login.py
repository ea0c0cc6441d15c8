"""The fake of the Microsoft identity platform: consent page, codes, tokens, rotation."""

import base64
import hashlib
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
import requests

from tests.external_calendars.fakes.graph import FakeGraph
from tests.external_calendars.fakes.graph_client import ADA, CALLBACK, GraphClient
from tests.external_calendars.fakes.server import Gateway

AUTHORIZE = "https://login.microsoftonline.com/common/oauth2/v2.0/authorize"
TOKEN = "https://login.microsoftonline.com/common/oauth2/v2.0/token"
VERIFIER = "v" * 43
SCOPE = "openid profile email offline_access https://graph.microsoft.com/Calendars.ReadWrite"


def authorize_url(gateway: Gateway, tenant: str = "common", **more: str) -> str:
    digest = hashlib.sha256(VERIFIER.encode()).digest()
    asked = {
        "client_id": "demo-microsoft",
        "response_type": "code",
        "redirect_uri": CALLBACK,
        "response_mode": "query",
        "scope": SCOPE,
        "state": "s1",
        "nonce": "n1",
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    url = AUTHORIZE.replace("common", tenant)
    return f"{gateway.address(url)}?{urlencode(asked | more)}"


def answer_of(url: str) -> dict[str, str]:
    assert url.startswith(f"{CALLBACK}?")
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def redeem(gateway: Gateway, **more: str) -> requests.Response:
    form = {"client_id": "demo-microsoft", "client_secret": "demo-secret"}
    return requests.post(gateway.address(TOKEN), form | more, timeout=10)


def redeem_code(gateway: Gateway, code: str, **more: str) -> requests.Response:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
    return redeem(gateway, **(form | {"code_verifier": VERIFIER} | more))


def refresh(gateway: Gateway, token: str, **more: str) -> requests.Response:
    return redeem(gateway, grant_type="refresh_token", refresh_token=token, **more)


def aadsts(answer: requests.Response) -> tuple[int, str, int]:
    [number] = answer.json()["error_codes"]
    assert f"AADSTS{number}: " in answer.json()["error_description"]
    return answer.status_code, answer.json()["error"], number


def test_consent_gives_a_code_for_tokens(gateway: Gateway, graph: FakeGraph) -> None:
    graph.clock.set(datetime.now(UTC))
    url = authorize_url(gateway)

    page = requests.get(url, timeout=10)
    back = answer_of(graph.consent(url, ADA))
    tokens = redeem_code(gateway, back["code"]).json()
    keys = requests.get(
        gateway.address("https://login.microsoftonline.com/common/discovery/v2.0/keys"), timeout=10
    ).json()

    assert f'value="{ADA}"' in page.text
    assert "Accept" in page.text
    assert back["state"] == "s1"
    assert tokens["scope"] == "openid profile email Calendars.ReadWrite"
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3599)
    key = jwt.PyJWK(keys["keys"][0])
    claims = jwt.decode(tokens["id_token"], key, ["RS256"], audience="demo-microsoft")
    mailbox = graph.mailboxes[ADA]
    assert claims["iss"] == f"https://login.microsoftonline.com/{mailbox.tenant_id}/v2.0"
    named = ("nonce", "oid", "tid", "preferred_username", "email", "name")
    assert [claims[name] for name in named] == [
        "n1",
        mailbox.id,
        mailbox.tenant_id,
        ADA,
        ADA,
        "Ada Lovelace",
    ]
    assert GraphClient(gateway, tokens["access_token"]).get("/me/calendars")["value"]


def test_code_is_good_once_with_verifier_secret_and_address(
    gateway: Gateway, graph: FakeGraph
) -> None:
    def code() -> str:
        return answer_of(graph.consent(authorize_url(gateway), ADA))["code"]

    used = code()
    old = code()
    assert redeem_code(gateway, used).status_code == 200
    graph.clock.advance(minutes=10)

    refusals = [
        redeem_code(gateway, used),
        redeem_code(gateway, old),
        redeem_code(gateway, code(), code_verifier="w" * 43),
        redeem_code(gateway, code(), redirect_uri="https://evil.example"),
        redeem_code(gateway, code(), client_secret="wrong"),
        redeem_code(gateway, code(), client_id="unknown"),
        redeem_code(gateway, "no code"),
    ]

    assert [aadsts(refusal) for refusal in refusals] == [
        (400, "invalid_grant", 54005),
        (400, "invalid_grant", 70008),
        (400, "invalid_grant", 501481),
        (400, "invalid_grant", 500112),
        (401, "invalid_client", 7000215),
        (400, "unauthorized_client", 700016),
        (400, "invalid_grant", 9002313),
    ]


def test_page_answers_refusals_to_the_client_or_to_the_person(
    gateway: Gateway, graph: FakeGraph
) -> None:
    graph.add_account("eve@outlook.example", "Eve", is_personal=True)
    url = authorize_url(gateway)

    cancelled = answer_of(graph.consent(url, ADA, allow=False))
    wrong_tenant = answer_of(
        graph.consent(authorize_url(gateway, "organizations"), "eve@outlook.example")
    )
    silent = requests.get(f"{url}&prompt=none", timeout=10, allow_redirects=False)
    graph.login.needs_admin_approval = True
    unapproved = answer_of(graph.consent(url, ADA))
    foreign = requests.get(authorize_url(gateway, redirect_uri="https://evil.example"), timeout=10)

    assert (cancelled["error"], cancelled["error_subcode"]) == ("access_denied", "cancel")
    assert "AADSTS65004" in cancelled["error_description"]
    assert "AADSTS50020" in wrong_tenant["error_description"]
    assert answer_of(silent.headers["Location"])["error"] == "login_required"
    assert unapproved["error"] == "access_denied"
    assert "AADSTS90094" in unapproved["error_description"]
    assert (foreign.status_code, "AADSTS50011" in foreign.text) == (400, True)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"code_challenge_method": "plain"}, "code_challenge is no S256"),
        ({"state": ""}, "authorize lacks state."),
        ({"nonce": ""}, "authorize lacks nonce"),
        ({"prompt": "always"}, "authorize has no prompt 'always'."),
        ({"scope": "openid Calendar.Write"}, "authorize has no scope Calendar.Write."),
        ({"access_type": "offline"}, "authorize has no parameter access_type."),
    ],
)
def test_authorize_request_that_the_platform_does_not_have_is_a_violation(
    gateway: Gateway, graph: FakeGraph, more: dict[str, str], sentence: str
) -> None:
    answer = requests.get(authorize_url(gateway, **more), timeout=10)

    assert answer.status_code == 400
    [violation] = gateway.violations
    assert sentence in violation
    gateway.violations.clear()


def test_refresh_tokens_rotate_and_old_ones_live_for_the_grace(
    gateway: Gateway, graph: FakeGraph
) -> None:
    first = graph.allow(ADA).refresh_token

    second = refresh(gateway, first).json()["refresh_token"]
    again = refresh(gateway, first)
    graph.login.old_token_grace = timedelta(minutes=5)
    within = refresh(gateway, first)
    graph.clock.advance(minutes=5)
    after = refresh(gateway, first)
    graph.retire_old_refresh_tokens()
    newest = refresh(gateway, second)
    used = refresh(gateway, second)

    assert second != first
    assert [answer.status_code for answer in (again, within, newest)] == [200, 200, 200]
    assert len({answer.json()["refresh_token"] for answer in (again, within, newest)}) == 3
    assert aadsts(after) == aadsts(used) == (400, "invalid_grant", 70008)
    assert graph.login.refreshes == 4


def test_revoked_grant_ends_all_its_tokens(
    gateway: Gateway, graph: FakeGraph, client: GraphClient
) -> None:
    token = graph.allow(ADA).refresh_token

    graph.revoke(ADA)
    revoked = refresh(gateway, token)
    graph.revoke(ADA, 65001)
    withdrawn = refresh(gateway, token)

    assert aadsts(revoked) == (400, "invalid_grant", 50173)
    assert aadsts(withdrawn) == (400, "invalid_grant", 65001)
    assert withdrawn.json()["suberror"] == "consent_required"
    assert client.error("GET", "/me") == (401, "InvalidAuthenticationToken")
    assert refresh(gateway, graph.allow(ADA).refresh_token).status_code == 200
