"""The fake's consent page and tokens, as Google's guide to OAuth 2.0 for web servers has them."""

import base64
import hashlib
import urllib.parse
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
import requests

from tests.browser import Browser
from tests.external_calendars.fakes.google import SCOPE, FakeGoogle
from tests.external_calendars.fakes.test_fake_google import take_violations
from tests.sinks import hook_sink

CALLBACK = "https://booking.example/v2/calendars/callback"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=")
ASKED = {
    "client_id": "demo-google",
    "redirect_uri": CALLBACK,
    "response_type": "code",
    "scope": f"openid email {SCOPE}.events {SCOPE}.calendarlist.readonly",
    "access_type": "offline",
    "prompt": "consent",
    "state": "state-1",
    "nonce": "nonce-1",
    "code_challenge": CHALLENGE.decode(),
    "code_challenge_method": "S256",
}
GRANTED = " ".join(
    sorted(
        [
            "openid",
            "https://www.googleapis.com/auth/userinfo.email",
            f"{SCOPE}.events",
            f"{SCOPE}.calendarlist.readonly",
        ]
    )
)


@pytest.fixture(autouse=True)
def _people(google: FakeGoogle) -> None:
    google.clock.set(datetime(2026, 12, 1, 8, tzinfo=UTC))
    google.add_client(CALLBACK)
    google.add_account("ada@example.com", "Ada Lovelace")
    google.add_account("bob@example.com")


def page_url(google: FakeGoogle, **changes: str) -> str:
    """The address of the consent page; a changed parameter with "" is left out."""
    asked = {name: value for name, value in (ASKED | changes).items() if value}
    page = google.gateway.address("https://accounts.google.com/o/oauth2/v2/auth")
    return f"{page}?{urllib.parse.urlencode(asked)}"


def values_of(location: str) -> dict[str, str]:
    assert location.startswith(f"{CALLBACK}?")
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))


def code_for(google: FakeGoogle, email: str = "ada@example.com", **changes: str) -> str:
    return values_of(google.consent(page_url(google, **changes), email))["code"]


def ask_tokens(google: FakeGoogle, **form: str) -> tuple[int, Any]:
    client = {"client_id": "demo-google", "client_secret": "demo-secret"}
    url = google.gateway.address("https://oauth2.googleapis.com/token")
    answer = requests.post(url, client | form, timeout=5)
    return answer.status_code, answer.json()


def redeem(google: FakeGoogle, code: str, **changes: str) -> tuple[int, Any]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
    }
    return ask_tokens(google, **(form | changes))


def refresh(google: FakeGoogle, token: str) -> tuple[int, Any]:
    return ask_tokens(google, grant_type="refresh_token", refresh_token=token)


def test_page_offers_accounts_scopes_and_two_buttons(google: FakeGoogle) -> None:
    page = requests.get(page_url(google, login_hint="bob@example.com"), timeout=5)

    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html; charset=UTF-8")
    assert 'value="ada@example.com">' in page.text
    assert 'value="bob@example.com" checked>' in page.text
    assert f'name="scope" value="{SCOPE}.events" checked' in page.text
    assert 'value="openid"' not in page.text
    assert 'name="decision" value="allow"' in page.text
    assert 'name="decision" value="cancel"' in page.text


def test_form_of_the_page_redirects_with_a_code(google: FakeGoogle) -> None:
    answer = requests.post(
        page_url(google),
        {"account": "ada@example.com", "scope": [f"{SCOPE}.events"], "decision": "allow"},
        allow_redirects=False,
        timeout=5,
    )

    assert answer.status_code == 302
    values = values_of(answer.headers["Location"])
    assert (values["state"], values["iss"]) == ("state-1", "https://accounts.google.com")
    assert redeem(google, values["code"])[0] == 200


def test_page_works_in_a_browser(google: FakeGoogle, browser: Browser) -> None:
    with hook_sink() as service:
        google.add_client(service.url("/callback"))
        page = browser.open(page_url(google, redirect_uri=service.url("/callback")))
        page.click("input[value='bob@example.com']")
        page.click(f"input[value='{SCOPE}.events']")
        page.click("button[value='allow']")
        page.wait_for("location.pathname === '/callback'")

    [grant] = google.oauth.grants
    assert grant.account.email == "bob@example.com"
    assert sorted(grant.scopes) == [
        scope for scope in GRANTED.split() if scope != f"{SCOPE}.events"
    ]


def test_cancel_redirects_with_an_error(google: FakeGoogle) -> None:
    location = google.consent(page_url(google), "ada@example.com", allow=False)

    assert values_of(location) == {"error": "access_denied", "state": "state-1"}


def test_code_is_redeemed_for_tokens(google: FakeGoogle) -> None:
    status, tokens = redeem(google, code_for(google))

    assert status == 200
    keys = requests.get(
        google.gateway.address("https://www.googleapis.com/oauth2/v3/certs"), timeout=5
    ).json()
    [key] = jwt.PyJWKSet.from_dict(keys).keys
    claims = jwt.decode(
        tokens["id_token"],
        key,
        algorithms=["RS256"],
        audience="demo-google",
        options={"verify_exp": False, "verify_iat": False},
    )
    assert jwt.get_unverified_header(tokens["id_token"])["kid"] == keys["keys"][0]["kid"]
    at_hash = claims.pop("at_hash")
    digest = hashlib.sha256(tokens["access_token"].encode()).digest()[:16]
    assert at_hash == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    issued = int(datetime(2026, 12, 1, 8, tzinfo=UTC).timestamp())
    assert claims == {
        "iss": "https://accounts.google.com",
        "azp": "demo-google",
        "aud": "demo-google",
        "sub": google.accounts["ada@example.com"].subject,
        "email": "ada@example.com",
        "email_verified": True,
        "nonce": "nonce-1",
        "iat": issued,
        "exp": issued + 3600,
    }
    assert tokens == {
        "access_token": tokens["access_token"],
        "refresh_token": tokens["refresh_token"],
        "id_token": tokens["id_token"],
        "expires_in": 3599,
        "scope": GRANTED,
        "token_type": "Bearer",
    }
    status, refreshed = refresh(google, tokens["refresh_token"])
    assert (status, sorted(refreshed)) == (
        200,
        ["access_token", "expires_in", "id_token", "scope", "token_type"],
    )


def test_unticked_scope_is_not_granted(google: FakeGoogle) -> None:
    location = google.consent(page_url(google), "ada@example.com", without=[f"{SCOPE}.events"])

    tokens = redeem(google, values_of(location)["code"])[1]

    assert tokens["scope"].split() == [scope for scope in GRANTED.split() if ".events" not in scope]


@pytest.mark.parametrize(
    ("changes", "error", "description"),
    [
        ({"code": "4/0Aunknown"}, "invalid_grant", "Malformed auth code."),
        ({"code_verifier": "w" * 43}, "invalid_grant", "Invalid code verifier."),
        ({"redirect_uri": "https://booking.example/"}, "redirect_uri_mismatch", "Bad Request"),
        (
            {"client_secret": "guess"},
            "invalid_client",
            "The provided client secret is invalid.",
        ),
        ({"client_id": "other"}, "invalid_client", "The OAuth client was not found."),
    ],
)
def test_code_with_something_wrong_is_refused(
    google: FakeGoogle, changes: dict[str, str], error: str, description: str
) -> None:
    code = code_for(google)

    status, answer = redeem(google, **({"code": code} | changes))

    assert status == (401 if error == "invalid_client" else 400)
    assert answer == {"error": error, "error_description": description}
    assert redeem(google, code)[0] == 200


def test_code_is_good_once_and_for_ten_minutes(google: FakeGoogle) -> None:
    used, late = code_for(google), code_for(google)
    refused = {"error": "invalid_grant", "error_description": "Bad Request"}

    assert redeem(google, used)[0] == 200
    assert redeem(google, used) == (400, refused)
    google.clock.advance(minutes=10)
    assert redeem(google, late) == (400, refused)


def test_second_consent_has_a_refresh_token_only_if_asked_for(google: FakeGoogle) -> None:
    first = redeem(google, code_for(google, prompt=""))[1]
    second = redeem(google, code_for(google, prompt="select_account"))[1]
    third = redeem(google, code_for(google, prompt="consent"))[1]

    assert ["refresh_token" in tokens for tokens in (first, second, third)] == [True, False, True]


def test_refresh_token_ends_after_seven_days_in_test_mode(google: FakeGoogle) -> None:
    google.oauth.grant_days = 7
    tokens = redeem(google, code_for(google))[1]
    assert tokens["refresh_token_expires_in"] == 604_800
    google.clock.advance(days=7, seconds=-1)
    assert refresh(google, tokens["refresh_token"])[0] == 200
    google.clock.advance(seconds=1)

    assert refresh(google, tokens["refresh_token"]) == (
        400,
        {"error": "invalid_grant", "error_description": "Token has been expired or revoked."},
    )


def test_revoked_grant_is_invalid(google: FakeGoogle) -> None:
    by_person, by_client = (google.allow(f"{name}@example.com") for name in ("ada", "bob"))
    access = google.oauth.make_access_token(by_client)
    google.oauth.revoke("ada@example.com")
    revoke = google.gateway.address("https://oauth2.googleapis.com/revoke")
    assert requests.post(revoke, {"token": by_client.refresh_token}, timeout=5).json() == {}

    again = requests.post(revoke, {"token": by_client.refresh_token}, timeout=5)

    assert (again.status_code, again.json()["error"]) == (400, "invalid_token")
    assert refresh(google, by_person.refresh_token)[1]["error"] == "invalid_grant"
    assert refresh(google, by_client.refresh_token)[1]["error"] == "invalid_grant"
    events = google.gateway.address(
        "https://www.googleapis.com/calendar/v3/calendars/primary/events"
    )
    headers = {"Authorization": f"Bearer {access}"}
    assert requests.get(events, headers=headers, timeout=5).status_code == 401


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"state": ""}, "the consent page needs ['state']."),
        ({"code_challenge": ""}, "the consent page needs ['code_challenge']."),
        ({"nonce": ""}, "the consent page needs ['nonce']."),
        ({"code_challenge_method": "plain"}, "the parameter code_challenge_method of the"),
        ({"access_type": "online"}, "the parameter access_type of the consent page is online."),
        ({"response_type": "token"}, "the parameter response_type of the consent page is token."),
        ({"prompt": "login"}, "the consent page has no prompt ['login']."),
        ({"audience": "x"}, "the consent page has no parameter audience"),
    ],
)
def test_page_with_something_missing_or_unknown_is_a_violation(
    google: FakeGoogle, changes: dict[str, str], sentence: str
) -> None:
    page = requests.get(page_url(google, **changes), timeout=5)

    assert (page.status_code, "Error 400: invalid_request" in page.text) == (400, True)
    [violation] = take_violations(google)
    assert violation.startswith(sentence)


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"client_id": "other"}, 401, "invalid_client"),
        ({"redirect_uri": "https://evil.example/"}, 400, "redirect_uri_mismatch"),
        ({"scope": f"{SCOPE}.everything"}, 400, "invalid_scope"),
    ],
)
def test_page_for_a_wrong_client_or_scope_redirects_nowhere(
    google: FakeGoogle, changes: dict[str, str], status: int, error: str
) -> None:
    page = requests.get(page_url(google, **changes), timeout=5)

    assert (page.status_code, f"Error {status}: {error}" in page.text) == (status, True)


def test_token_request_with_an_unknown_field_or_type_is_a_violation(google: FakeGoogle) -> None:
    url = google.gateway.address("https://oauth2.googleapis.com/token")
    answer = requests.post(url, json={"grant_type": "refresh_token"}, timeout=5)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    ask_tokens(google, grant_type="refresh_token", refresh_token="x", audience="y")

    assert take_violations(google) == [
        "the body's Content-Type is not application/x-www-form-urlencoded.",
        "the token endpoint has no fields ['audience'].",
    ]


def test_paths_that_google_does_not_have_are_violations(google: FakeGoogle) -> None:
    for url in ("https://oauth2.googleapis.com/tokens", "https://www.googleapis.com/calendar"):
        assert requests.get(google.gateway.address(url), timeout=5).status_code == 400

    assert take_violations(google) == ["Google has no such path, or not with this method."] * 2
