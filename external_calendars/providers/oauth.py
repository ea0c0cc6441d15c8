"""OAuth 2.0 of calendar providers: the consent page, and tokens (RFC 6749, PKCE by RFC 7636).

Forms are posted by the service's own HTTP; no database. The identity in an ID token is trusted
without its signature, because it comes from the token endpoint over TLS (OpenID Connect Core
3.1.3.7); issuer, audience, nonce and end are checked.
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from common.messages import Message
from external_calendars.providers.base import OAuthEndpoints, ProviderError
from external_calendars.providers.json_session import JsonAnswer, post_form, provider_url

TOKEN_SECONDS = 10.0  # of one call to a token endpoint
MAX_TOKEN = 20_000
CLOCK_SKEW = 300  # seconds


class OAuthClient(NamedTuple):
    """The client that is registered at the provider."""

    client_id: str
    client_secret: str


class Tokens(NamedTuple):
    """What a token endpoint gave. refresh_token: "" if the known one stays. lifetime: seconds."""

    access_token: str
    refresh_token: str
    lifetime: int
    claims: Mapping[str, Any]


def new_verifier() -> str:
    """Return a PKCE verifier: 64 characters."""
    return secrets.token_urlsafe(48)


def consent_url(
    endpoints: OAuthEndpoints,
    client: OAuthClient,
    *,
    callback_url: str,
    state: str,
    nonce: str,
    verifier: str,
    account: str = "",
) -> str:
    """Return the address of the consent page. account: the e-mail address to preselect."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    query = {
        "client_id": client.client_id,
        "redirect_uri": callback_url,
        "response_type": "code",
        "scope": " ".join(endpoints.scopes),
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge.decode().rstrip("="),
        "code_challenge_method": "S256",
        **endpoints.extra,
    }
    if account:
        query["login_hint"] = account
    return f"{provider_url(endpoints.authorize_url)}?{urlencode(query)}"


def exchange_code(
    endpoints: OAuthEndpoints,
    client: OAuthClient,
    *,
    code: str,
    callback_url: str,
    verifier: str,
    nonce: str,
) -> Tokens:
    """Return the tokens for a code. Raises ProviderError (not_permitted: scopes were refused)."""
    answer = post_form(
        endpoints.token_url,
        {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback_url,
            "code_verifier": verifier,
            **client._asdict(),
        },
        deadline=TOKEN_SECONDS,
    )
    tokens = _read_tokens(answer)
    granted = {_short_scope(scope) for scope in str(answer.data.get("scope", "")).split()}
    if not tokens.refresh_token or not {_short_scope(s) for s in endpoints.needed} <= granted:
        raise ProviderError("not_permitted")
    claims = _read_claims(str(answer.data.get("id_token", "")))
    _check_claims(claims, endpoints, client, nonce)
    return tokens._replace(claims=claims)


def refresh_tokens(endpoints: OAuthEndpoints, client: OAuthClient, refresh_token: str) -> Tokens:
    """Return new tokens. Raises ProviderError (grant_ended: only the person can mend it)."""
    answer = post_form(
        endpoints.token_url,
        {"grant_type": "refresh_token", "refresh_token": refresh_token, **client._asdict()},
        deadline=TOKEN_SECONDS,
    )
    return _read_tokens(answer)


def _read_tokens(answer: JsonAnswer) -> Tokens:
    if answer.status != 200:
        raise _token_error(answer)
    access, refresh = answer.data.get("access_token"), answer.data.get("refresh_token", "")
    lifetime = answer.data.get("expires_in")
    if not (
        isinstance(access, str)
        and isinstance(refresh, str)
        and isinstance(lifetime, int)
        and 0 < len(access) <= MAX_TOKEN
        and len(refresh) <= MAX_TOKEN
    ):
        raise ProviderError("bad_answer", status=answer.status)
    return Tokens(access, refresh, min(max(lifetime, 60), 86_400), {})


def _token_error(answer: JsonAnswer) -> ProviderError:
    error = str(answer.data.get("error", ""))
    detail = Message("The server returned %(status)s.", status=f"{answer.status} ({error[:40]})")
    if error == "invalid_grant":
        code = "grant_ended"
    elif error in ("invalid_client", "unauthorized_client"):
        code = "client_refused"
    elif answer.status == 429:
        code = "rate_limited"
    else:
        code = "server_error" if answer.status >= 500 else "bad_answer"
    return ProviderError(code, detail=detail, status=answer.status, retry_after=answer.retry_after)


def _short_scope(scope: str) -> str:
    """`https://graph.microsoft.com/Calendars.ReadWrite` -> `calendars.readwrite`."""
    return scope.removeprefix("https://graph.microsoft.com/").casefold()


def _read_claims(id_token: str) -> dict[str, Any]:
    try:
        payload = id_token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError) as error:
        raise ProviderError("bad_answer") from error
    if not isinstance(claims, dict):
        raise ProviderError("bad_answer")
    return claims


def _check_claims(
    claims: Mapping[str, Any], endpoints: OAuthEndpoints, client: OAuthClient, nonce: str
) -> None:
    end = claims.get("exp")
    if not (
        str(claims.get("iss", "")).startswith(endpoints.issuers)
        and claims.get("aud") == client.client_id
        and secrets.compare_digest(str(claims.get("nonce", "")), nonce)
        and isinstance(end, int | float)
        and end > time.time() - CLOCK_SKEW
        and claims.get("sub")
    ):
        raise ProviderError("bad_answer")
