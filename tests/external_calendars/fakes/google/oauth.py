"""Google's OAuth 2.0 and OpenID Connect: consent page, tokens, revocation, keys."""

import base64
import functools
import hashlib
import html
import json
import secrets
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.external_calendars.fakes.google.discovery import known_scopes
from tests.external_calendars.fakes.server import Clock, Request, Response, Violation

ISSUER = "https://accounts.google.com"
ACCESS_SECONDS = 3599
CODE_SECONDS = 600
KEY_ID = "fake-1"
IDENTITY_SCOPES = {
    "openid": "openid",
    "email": "https://www.googleapis.com/auth/userinfo.email",
    "profile": "https://www.googleapis.com/auth/userinfo.profile",
}
PAGE_PARAMETERS = {
    "access_type": {"offline"},
    "response_type": {"code"},
    "code_challenge_method": {"S256"},
    "include_granted_scopes": {"true", "false"},
    "enable_granular_consent": {"true", "false"},
}
FREE_PARAMETERS = {
    *("client_id", "redirect_uri", "scope", "state", "code_challenge", "nonce", "prompt"),
    *("login_hint", "hd", "hl"),
}
# Google itself would do without some of these; a client that knows its trade does not.
NEEDED = (
    *("client_id", "redirect_uri", "response_type", "scope", "access_type", "state"),
    *("code_challenge", "code_challenge_method"),
)
PROMPTS = {"none", "consent", "select_account"}
TOKEN_FIELDS = {
    "authorization_code": {"code", "redirect_uri", "code_verifier"},
    "refresh_token": {"refresh_token"},
}
CLIENT_FIELDS = {"grant_type", "client_id", "client_secret"}


@dataclass
class Client:
    id: str
    secret: str
    redirect_uris: list[str]


@dataclass
class Account:
    """email, subject: of the person; subject never changes."""

    email: str
    subject: str
    name: str


@dataclass
class Grant:
    """What a person has allowed a client. ends_at: None: until somebody revokes it."""

    client: Client
    account: Account
    scopes: frozenset[str]
    refresh_token: str
    ends_at: datetime | None = None
    is_revoked: bool = False
    nonce: str = ""

    def is_live(self, now: datetime) -> bool:
        return not self.is_revoked and (self.ends_at is None or now < self.ends_at)


@dataclass
class Code:
    grant: Grant
    redirect_uri: str
    challenge: str
    ends_at: datetime
    has_refresh_token: bool
    is_used: bool = False


@dataclass
class AccessToken:
    grant: Grant
    ends_at: datetime


class TokenError(Exception):
    """An error answer of the token endpoint."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.response = Response(status, {"error": error, "error_description": description})


@dataclass
class OAuth:
    """grant_days: after which grants end, as of a client in test mode (7); None: never."""

    clock: Clock
    accounts: dict[str, Account] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)
    grant_days: int | None = None
    codes: dict[str, Code] = field(default_factory=dict)
    access_tokens: dict[str, AccessToken] = field(default_factory=dict)

    # --- The page ---------------------------------------------------------------------------------
    def respond_to_page(self, request: Request) -> Response:
        """GET shows the page; POST is one of its buttons."""
        asked = self._read_page_request(request)
        client = self.clients.get(asked["client_id"])
        if client is None:
            return error_page(401, "invalid_client", "The OAuth client was not found.")
        if asked["redirect_uri"] not in client.redirect_uris:
            return error_page(400, "redirect_uri_mismatch", asked["redirect_uri"])
        scopes = asked["scope"].split()
        unknown = set(scopes) - known_scopes() - IDENTITY_SCOPES.keys()
        unknown -= set(IDENTITY_SCOPES.values())
        if unknown:
            return error_page(400, "invalid_scope", " ".join(sorted(unknown)))
        if asked.get("prompt") == "none":
            return _redirect(asked, error="interaction_required")
        if request.method == "GET":
            return Response(200, self._page(asked, scopes))
        return self._decide(asked, client, scopes, request)

    def _read_page_request(self, request: Request) -> dict[str, str]:
        asked = {}
        for name, values in request.query.items():
            if name not in PAGE_PARAMETERS.keys() | FREE_PARAMETERS or len(values) > 1:
                raise Violation(f"the consent page has no parameter {name}, or not twice.")
            if values[0] not in PAGE_PARAMETERS.get(name, {values[0]}):
                raise Violation(f"the parameter {name} of the consent page is {values[0]}.")
            asked[name] = values[0]
        needed = {*NEEDED} | ({"nonce"} if "openid" in asked.get("scope", "").split() else set())
        if missing := needed - {name for name, value in asked.items() if value}:
            raise Violation(f"the consent page needs {sorted(missing)}.")
        if unknown := set(asked.get("prompt", "").split()) - PROMPTS:
            raise Violation(f"the consent page has no prompt {sorted(unknown)}.")
        if len(asked["code_challenge"]) != 43:
            raise Violation("code_challenge is no SHA-256 in base64url.")
        return asked

    def _decide(
        self, asked: Mapping[str, str], client: Client, scopes: list[str], request: Request
    ) -> Response:
        form = urllib.parse.parse_qs(request.body.decode())
        if form.get("decision") != ["allow"]:
            return _redirect(asked, error="access_denied")
        account = self.accounts[form["account"][0]]
        ticked = {scope for scope in scopes if not _can_untick(scope)} | {*form.get("scope", ())}
        granted = frozenset(IDENTITY_SCOPES.get(scope, scope) for scope in ticked)
        is_first = not any(
            (grant.client, grant.account) == (client, account) and grant.is_live(self.clock.now())
            for grant in self.grants
        )
        grant = self._add_grant(client, account, granted)
        grant.nonce = asked.get("nonce", "")
        code = f"4/0A{secrets.token_urlsafe(40)}"
        self.codes[code] = Code(
            grant,
            asked["redirect_uri"],
            asked["code_challenge"],
            self.clock.now() + timedelta(seconds=CODE_SECONDS),
            # Only with the first consent, or with consent asked for anew.
            has_refresh_token=is_first or "consent" in asked.get("prompt", "").split(),
        )
        scope = " ".join(sorted(granted))
        return _redirect(asked, iss=ISSUER, code=code, scope=scope, authuser="0", prompt="consent")

    def _page(self, asked: Mapping[str, str], scopes: list[str]) -> str:
        hint = asked.get("login_hint", "")
        people = "".join(
            f'<p><label><input type="radio" name="account" value="{html.escape(email)}"'
            f"{' checked' if email == (hint or next(iter(self.accounts))) else ''}>"
            f" {html.escape(account.name)} ({html.escape(email)})</label></p>"
            for email, account in self.accounts.items()
        )
        boxes = "".join(
            f'<p><label><input type="checkbox" name="scope" value="{html.escape(scope)}" checked>'
            f" {html.escape(scope)}</label></p>"
            for scope in scopes
            if _can_untick(scope)
        )
        return (
            '<!doctype html><html lang="en"><title>Sign in (fake Google)</title>'
            "<h1>Sign in (fake Google)</h1>"
            f"<p>{html.escape(asked['client_id'])} wants access to your account.</p>"
            f'<form method="post"><fieldset><legend>Account</legend>{people}</fieldset>'
            f"<fieldset><legend>Access</legend>{boxes}</fieldset>"
            '<button name="decision" value="allow">Allow</button> '
            '<button name="decision" value="cancel">Cancel</button></form></html>'
        )

    # --- Tokens -----------------------------------------------------------------------------------
    def respond_to_token_request(self, request: Request) -> Response:
        try:
            return Response(
                200, self._token_answer(_read_form(request)), {"Cache-Control": "no-store"}
            )
        except TokenError as error:
            return error.response

    def _token_answer(self, form: Mapping[str, str]) -> dict[str, Any]:
        grant_type = form.get("grant_type", "")
        if grant_type not in TOKEN_FIELDS:
            raise TokenError("unsupported_grant_type", f"Invalid grant_type: {grant_type}")
        if unknown := form.keys() - TOKEN_FIELDS[grant_type] - CLIENT_FIELDS:
            raise Violation(f"the token endpoint has no fields {sorted(unknown)}.")
        client = self.clients.get(form.get("client_id", ""))
        if client is None:
            raise TokenError("invalid_client", "The OAuth client was not found.", 401)
        if form.get("client_secret") != client.secret:
            raise TokenError("invalid_client", "The provided client secret is invalid.", 401)
        if grant_type == "authorization_code":
            return self._redeem_code(client, form)
        return self._refresh(client, form)

    def _redeem_code(self, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
        code = self.codes.get(form.get("code", ""))
        if code is None or code.grant.client is not client:
            raise TokenError("invalid_grant", "Malformed auth code.")
        if code.is_used or self.clock.now() >= code.ends_at or code.grant.is_revoked:
            raise TokenError("invalid_grant", "Bad Request")
        if form.get("redirect_uri") != code.redirect_uri:
            raise TokenError("redirect_uri_mismatch", "Bad Request")
        if "code_verifier" not in form:
            raise TokenError("invalid_grant", "Missing code verifier.")
        if _challenge(form["code_verifier"]) != code.challenge:
            raise TokenError("invalid_grant", "Invalid code verifier.")
        code.is_used = True
        answer = self._access_answer(code.grant)
        if code.has_refresh_token:
            answer["refresh_token"] = code.grant.refresh_token
            if code.grant.ends_at:
                left = code.grant.ends_at - self.clock.now()
                answer["refresh_token_expires_in"] = int(left.total_seconds())
        return answer

    def _refresh(self, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
        for grant in self.grants:
            if grant.refresh_token == form.get("refresh_token") and grant.client is client:
                if not grant.is_live(self.clock.now()):
                    raise TokenError("invalid_grant", "Token has been expired or revoked.")
                return self._access_answer(grant)
        raise TokenError("invalid_grant", "Bad Request")

    def _access_answer(self, grant: Grant) -> dict[str, Any]:
        token = self.make_access_token(grant)
        answer = {
            "access_token": token,
            "expires_in": ACCESS_SECONDS,
            "scope": " ".join(sorted(grant.scopes)),
            "token_type": "Bearer",
        }
        if "openid" in grant.scopes:
            answer["id_token"] = self._id_token(grant, token)
        return answer

    def _id_token(self, grant: Grant, access_token: str) -> str:
        now = int(self.clock.now().timestamp())
        digest = hashlib.sha256(access_token.encode()).digest()
        claims = {
            "iss": ISSUER,
            "azp": grant.client.id,
            "aud": grant.client.id,
            "sub": grant.account.subject,
            "at_hash": _base64url(digest[:16]),
            "iat": now,
            "exp": now + 3600,
        }
        if IDENTITY_SCOPES["email"] in grant.scopes:
            claims |= {"email": grant.account.email, "email_verified": True}
        if IDENTITY_SCOPES["profile"] in grant.scopes:
            claims["name"] = grant.account.name
        if grant.nonce:
            claims["nonce"] = grant.nonce
        return jwt.encode(claims, signing_key(), algorithm="RS256", headers={"kid": KEY_ID})

    def respond_to_revocation(self, request: Request) -> Response:
        token = request.query.get("token", [""])[0] or _read_form(request).get("token", "")
        if unknown := request.query.keys() - {"token"}:
            raise Violation(f"the revocation endpoint has no parameters {sorted(unknown)}.")
        grant = next((grant for grant in self.grants if grant.refresh_token == token), None)
        if grant is None and token in self.access_tokens:
            grant = self.access_tokens[token].grant
        if grant is None or not grant.is_live(self.clock.now()):
            body = {"error": "invalid_token", "error_description": "Token expired or revoked"}
            return Response(400, body)
        self.revoke(grant.account.email, grant.client.id)
        return Response(200, {})

    # --- For the API, and for tests ---------------------------------------------------------------
    def _add_grant(self, client: Client, account: Account, scopes: frozenset[str]) -> Grant:
        ends_at = None
        if self.grant_days is not None:
            ends_at = self.clock.now() + timedelta(days=self.grant_days)
        token = f"1//0{secrets.token_urlsafe(48)}"
        self.grants.append(Grant(client, account, scopes, token, ends_at))
        return self.grants[-1]

    def allow(self, email: str, scopes: frozenset[str], client_id: str) -> Grant:
        """Return a new grant, without the page."""
        granted = frozenset(IDENTITY_SCOPES.get(scope, scope) for scope in scopes)
        return self._add_grant(self.clients[client_id], self.accounts[email], granted)

    def make_access_token(self, grant: Grant) -> str:
        token = f"ya29.{secrets.token_urlsafe(60)}"
        ends_at = self.clock.now() + timedelta(seconds=ACCESS_SECONDS)
        self.access_tokens[token] = AccessToken(grant, ends_at)
        return token

    def find_grant(self, access_token: str) -> Grant | None:
        """Return the grant of an access token that is valid now."""
        token = self.access_tokens.get(access_token)
        now = self.clock.now()
        if token and now < token.ends_at and token.grant.is_live(now):
            return token.grant
        return None

    def revoke(self, email: str, client_id: str = "") -> None:
        """End the grants of an account for a client, or for all."""
        for grant in self.grants:
            if grant.account.email == email and client_id in ("", grant.client.id):
                grant.is_revoked = True

    def expire_access_tokens(self) -> None:
        self.access_tokens.clear()


def _can_untick(scope: str) -> bool:
    return scope not in IDENTITY_SCOPES and scope not in IDENTITY_SCOPES.values()


def _read_form(request: Request) -> dict[str, str]:
    if not request.body:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise Violation("the body's Content-Type is not application/x-www-form-urlencoded.")
    return request.form


def _redirect(asked: Mapping[str, str], **values: str) -> Response:
    query = urllib.parse.urlencode({"state": asked["state"], **values})
    separator = "&" if "?" in asked["redirect_uri"] else "?"
    return Response(302, None, {"Location": f"{asked['redirect_uri']}{separator}{query}"})


def error_page(status: int, error: str, detail: str) -> Response:
    """Return what a person sees where the request itself is wrong: it redirects nowhere."""
    text = f"Error {status}: {error}"
    return Response(
        status,
        f"<!doctype html><html lang='en'><title>{text}</title><h1>Access blocked</h1>"
        f"<p>{text}</p><p>{html.escape(detail)}</p></html>",
    )


def _challenge(verifier: str) -> str:
    return _base64url(hashlib.sha256(verifier.encode()).digest())


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@functools.cache
def signing_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_set() -> dict[str, Any]:
    """Return the public keys, as at /oauth2/v3/certs."""
    key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(signing_key().public_key()))
    key.pop("key_ops", None)
    return {"keys": [key | {"kid": KEY_ID, "use": "sig", "alg": "RS256"}]}
