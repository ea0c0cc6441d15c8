"""A fake of the Microsoft identity platform: consent page, codes, tokens (OAuth 2.0, OpenID).

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-auth-code-flow; the AADSTS numbers are
from .../reference-error-codes. An error has one number in `error_description`.
"""

import base64
import functools
import hashlib
import html
import json
import secrets
import urllib.parse
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.external_calendars.fakes.microsoft.events import CONSUMERS, Mailbox
from tests.external_calendars.fakes.server import Clock, Request, Response, Violation

HOST = "login.microsoftonline.com"
CODE_LIFE = timedelta(minutes=10)
TOKEN_LIFE = timedelta(seconds=3599)
SCOPES = {
    "openid",
    "profile",
    "email",
    "offline_access",
    "User.Read",
    "Calendars.Read",
    "Calendars.ReadWrite",
    "Calendars.Read.Shared",
    "Calendars.ReadWrite.Shared",
    "OnlineMeetings.ReadWrite",
}
GRAPH = "https://graph.microsoft.com/"
AUTHORIZE_PARAMETERS = {
    "client_id",
    "response_type",
    "redirect_uri",
    "response_mode",
    "scope",
    "state",
    "nonce",
    "prompt",
    "login_hint",
    "domain_hint",
    "code_challenge",
    "code_challenge_method",
}
REQUIRED_PARAMETERS = {
    "client_id",
    "response_type",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
}
PROMPTS = {"login", "none", "consent", "select_account"}
TOKEN_FIELDS = {
    "authorization_code": {"code", "redirect_uri", "code_verifier"},
    "refresh_token": {"refresh_token"},
}
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Fake Microsoft sign-in</title></head>
<body><main><h1>Fake Microsoft sign-in</h1>{content}</main></body></html>"""


class LoginError(Exception):
    """An answer of the token endpoint: error, number of AADSTS, and its sentence."""

    def __init__(self, error: str, number: int, sentence: str, status: int = 400) -> None:
        super().__init__(f"{error}: AADSTS{number}: {sentence}")
        self.error, self.number, self.sentence, self.status = error, number, sentence, status


@dataclass
class Client:
    """A registration of an app."""

    id: str
    secret: str
    redirect_uris: list[str]


@dataclass
class Grant:
    """What a person allowed a client. refresh_token: the newest. ended: number and sentence of the
    error, once it ended."""

    client: Client
    mailbox: Mailbox
    scopes: tuple[str, ...]
    refresh_token: str = ""
    ended: tuple[int, str] | None = None


@dataclass
class RefreshToken:
    """replaced_at: when it was used, which gave out its successor."""

    grant: Grant
    replaced_at: datetime | None = None


@dataclass
class Code:
    client: Client
    mailbox: Mailbox
    asked: dict[str, str]
    at: datetime
    is_used: bool = False


@dataclass
class MicrosoftLogin:
    """The clients, and all that was given out.

    old_token_grace: how long a refresh token that was used stays valid; None: always, as Microsoft
    documents. withheld: scopes that nobody gets. needs_admin_approval: nobody may consent without
    an administrator. refreshes: how many succeeded.
    """

    clock: Clock
    mailboxes: dict[str, Mailbox]
    clients: dict[str, Client] = field(default_factory=dict)
    old_token_grace: timedelta | None = None
    withheld: set[str] = field(default_factory=set)
    needs_admin_approval: bool = False
    grants: list[Grant] = field(default_factory=list)
    codes: dict[str, Code] = field(default_factory=dict)
    refresh_tokens: dict[str, RefreshToken] = field(default_factory=dict)
    access_tokens: dict[str, tuple[Grant, datetime]] = field(default_factory=dict)
    refreshes: int = 0

    # --- For the tests ----------------------------------------------------------------------------
    def allow(self, email: str, scopes: Iterable[str], client_id: str) -> Grant:
        """Return a new grant with a refresh token, without the page."""
        grant = Grant(self.clients[client_id], self.mailboxes[email], tuple(scopes))
        self.grants.append(grant)
        self._add_refresh_token(grant)
        return grant

    def make_access_token(self, grant: Grant) -> str:
        token = f"EwB{secrets.token_urlsafe(48)}"
        self.access_tokens[token] = (grant, self.clock.now() + TOKEN_LIFE)
        return token

    def revoke(self, address: str, number: int = 50173) -> None:
        """End all grants of the account: access tokens at once, refresh tokens with this error.

        50173: revoked, as after a new password; 70008: expired; 65001: consent withdrawn.
        """
        for grant in self.grants:
            if grant.mailbox.address == address:
                grant.ended = (number, REVOKED[number])

    def expire_access_tokens(self) -> None:
        """Let them end now, before their time."""
        self.access_tokens.clear()

    def retire_old_refresh_tokens(self) -> None:
        """Refuse from now on each refresh token that was used."""
        self.old_token_grace = timedelta()

    # --- For the fake of Graph --------------------------------------------------------------------
    def grant_of(self, access_token: str) -> Grant | None:
        """Return the grant of a token that is valid."""
        grant, ends = self.access_tokens.get(access_token, (None, None))
        if grant is None or ends is None or grant.ended or self.clock.now() >= ends:
            return None
        return grant

    # --- Requests ---------------------------------------------------------------------------------
    def respond(self, request: Request) -> Response:
        tenant, _, path = request.path.removeprefix("/").partition("/")
        match (request.method, path):
            case ("GET" | "POST", "oauth2/v2.0/authorize"):
                return self._respond_to_page(tenant, request)
            case ("POST", "oauth2/v2.0/token"):
                return self._token(request)
            case ("GET", "discovery/v2.0/keys"):
                return Response(200, {"keys": [public_key()]})
            case ("GET", "v2.0/.well-known/openid-configuration"):
                return Response(200, configuration(tenant))
        raise Violation("Unknown path or method.")

    def refuse(self, sentence: str) -> Response:
        return Response(400, self._error("invalid_request", 90014, sentence))

    def _error(self, error: str, number: int, sentence: str, suberror: str = "") -> dict[str, Any]:
        trace = str(uuid.uuid4())
        at = self.clock.now().strftime("%Y-%m-%d %H:%M:%SZ")
        answer = {
            "error": error,
            "error_description": (
                f"AADSTS{number}: {sentence} Trace ID: {trace} Correlation ID: {trace} "
                f"Timestamp: {at}"
            ),
            "error_codes": [number],
            "timestamp": at,
            "trace_id": trace,
            "correlation_id": trace,
            "error_uri": f"https://{HOST}/error?code={number}",
        }
        return answer | ({"suberror": suberror} if suberror else {})

    # --- Consent ----------------------------------------------------------------------------------
    def _check_authorize(self, asked: dict[str, str]) -> None:
        if unknown := sorted(asked.keys() - AUTHORIZE_PARAMETERS):
            raise Violation(f"authorize has no parameter {', '.join(unknown)}.")
        if missing := sorted(name for name in REQUIRED_PARAMETERS if not asked.get(name)):
            raise Violation(f"authorize lacks {', '.join(missing)}.")
        if asked["response_type"] != "code" or asked.get("response_mode", "query") != "query":
            raise Violation("authorize: the service takes a code in the query.")
        if asked["code_challenge_method"] != "S256" or len(asked["code_challenge"]) != 43:
            raise Violation("authorize: code_challenge is no S256.")
        if not set(asked.get("prompt", "").split()) <= PROMPTS:
            raise Violation(f"authorize has no prompt {asked['prompt']!r}.")
        scopes = scopes_of(asked["scope"])
        if unknown := sorted(set(scopes) - SCOPES):
            raise Violation(f"authorize has no scope {', '.join(unknown)}.")
        if "openid" in scopes and not asked.get("nonce"):
            raise Violation("authorize lacks nonce, which an ID token needs.")

    def _respond_to_page(self, tenant: str, request: Request) -> Response:
        """GET shows the page; POST is one of its buttons."""
        asked = {name: values[-1] for name, values in request.query.items()}
        self._check_authorize(asked)
        if (refusal := self._client_refusal(asked)) is not None:
            return refusal
        if asked.get("prompt") == "none":
            sentence = "Either multiple user identities are available or none is signed in."
            return redirect(self._back(asked, "login_required", 50058, sentence))
        if request.method == "POST":
            form = request.form
            if form.get("decision") != "allow":
                return redirect(self._declined(asked))
            return redirect(self._accepted(tenant, asked, self.mailboxes[form["account"]]))
        return Response(200, self._page(tenant, asked))

    def _page(self, tenant: str, asked: dict[str, str]) -> str:
        accounts = [box for box in self.mailboxes.values() if is_of_tenant(box, tenant)]
        # A stable order, with the hinted account first.
        accounts.sort(key=lambda box: box.address != asked.get("login_hint"))
        choices = "".join(
            f'<p><label><input type="radio" name="account" value="{html.escape(box.address)}"'
            f"{' checked' if index == 0 else ''}> {html.escape(box.name)} "
            f"&lt;{html.escape(box.address)}&gt;</label></p>"
            for index, box in enumerate(accounts)
        )
        rights = "".join(f"<li>{html.escape(scope)}</li>" for scope in scopes_of(asked["scope"]))
        buttons = (
            '<button name="decision" value="allow">Accept</button> '
            '<button name="decision" value="cancel">Cancel</button>'
        )
        words = f"<p>{html.escape(asked['client_id'])} would like to:</p><ul>{rights}</ul>"
        return PAGE.format(content=f'{words}<form method="post">{choices}{buttons}</form>')

    def _client_refusal(self, asked: dict[str, str]) -> Response | None:
        """Return the page of an error of which the client must not hear."""
        client = self.clients.get(asked["client_id"])
        if client is None:
            sentence = f"AADSTS700016: Application '{asked['client_id']}' was not found."
        elif asked["redirect_uri"] not in client.redirect_uris:
            sentence = f"AADSTS50011: The redirect URI '{asked['redirect_uri']}' does not match."
        else:
            return None
        return Response(400, PAGE.format(content=f"<p>{html.escape(sentence)}</p>"))

    def _accepted(self, tenant: str, asked: dict[str, str], mailbox: Mailbox) -> str:
        if not is_of_tenant(mailbox, tenant):
            sentence = f"User account '{mailbox.address}' does not exist in tenant '{tenant}'."
            return self._back(asked, "invalid_request", 50020, sentence)
        if self.needs_admin_approval:
            sentence = "An admin has to grant permission to this app before you can use it."
            return self._back(asked, "access_denied", 90094, sentence)
        code = f"M.C5{secrets.token_urlsafe(32)}"
        client = self.clients[asked["client_id"]]
        self.codes[code] = Code(client, mailbox, asked, self.clock.now())
        values = {"code": code, "state": asked["state"], "session_state": str(uuid.uuid4())}
        return with_query(asked["redirect_uri"], values)

    def _declined(self, asked: dict[str, str]) -> str:
        return self._back(
            asked, "access_denied", 65004, "User declined to consent to access the app."
        )

    def _back(self, asked: dict[str, str], error: str, number: int, sentence: str) -> str:
        answer = self._error(error, number, sentence)
        values = {name: answer[name] for name in ("error", "error_description", "error_uri")}
        subcode = {"error_subcode": "cancel"} if number == 65004 else {}
        return with_query(asked["redirect_uri"], values | subcode | {"state": asked["state"]})

    # --- Tokens -----------------------------------------------------------------------------------
    def _token(self, request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind != "application/x-www-form-urlencoded":
            raise Violation("token: the body is no form.")
        form = request.form
        grant_type = form.get("grant_type", "")
        fields = TOKEN_FIELDS.get(grant_type)
        if fields is None:
            raise Violation(f"token has no grant_type {grant_type!r}.")
        allowed = fields | {"grant_type", "client_id", "client_secret", "scope"}
        if unknown := sorted(form.keys() - allowed):
            raise Violation(f"token has no field {', '.join(unknown)}.")
        if missing := sorted(name for name in allowed - {"scope"} if not form.get(name)):
            raise Violation(f"token lacks {', '.join(missing)}.")
        try:
            client = self._find_client(form)
            if grant_type == "refresh_token":
                return Response(200, self._refresh(client, form), NO_STORE)
            return Response(200, self._redeem(client, form), NO_STORE)
        except LoginError as error:
            suberror = {65001: "consent_required", 50173: "bad_token"}.get(error.number, "")
            answer = self._error(error.error, error.number, error.sentence, suberror)
            return Response(error.status, answer, NO_STORE)

    def _find_client(self, form: dict[str, str]) -> Client:
        client = self.clients.get(form["client_id"])
        if client is None:
            sentence = f"Application with identifier '{form['client_id']}' was not found."
            raise LoginError("unauthorized_client", 700016, sentence)
        if form["client_secret"] != client.secret:
            raise LoginError("invalid_client", 7000215, "Invalid client secret provided.", 401)
        return client

    def _redeem(self, client: Client, form: dict[str, str]) -> dict[str, Any]:
        code = self.codes.get(form["code"])
        if code is None or code.client is not client:
            raise LoginError("invalid_grant", 9002313, "Invalid request. Request is malformed.")
        if code.is_used:
            sentence = "OAuth2 Authorization code was already redeemed."
            raise LoginError("invalid_grant", 54005, sentence)
        if self.clock.now() >= code.at + CODE_LIFE:
            raise LoginError("invalid_grant", 70008, REVOKED[70008])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if challenge != code.asked["code_challenge"]:
            sentence = "The Code_Verifier does not match the code_challenge of the request."
            raise LoginError("invalid_grant", 501481, sentence)
        if form["redirect_uri"] != code.asked["redirect_uri"]:
            sentence = "The reply URL does not match the one of the request for the code."
            raise LoginError("invalid_grant", 500112, sentence)
        code.is_used = True
        scopes = [name for name in scopes_of(code.asked["scope"]) if name not in self.withheld]
        grant = Grant(client, code.mailbox, tuple(scopes))
        self.grants.append(grant)
        return self._tokens(grant, code.asked.get("nonce", ""))

    def _refresh(self, client: Client, form: dict[str, str]) -> dict[str, Any]:
        token = self.refresh_tokens.get(form["refresh_token"])
        if token is None or token.grant.client is not client:
            raise LoginError("invalid_grant", 9002313, "Invalid request. Request is malformed.")
        if token.grant.ended:
            raise LoginError("invalid_grant", *token.grant.ended)
        now = self.clock.now()
        grace = self.old_token_grace
        if token.replaced_at and grace is not None and now >= token.replaced_at + grace:
            raise LoginError("invalid_grant", 70008, REVOKED[70008])
        token.replaced_at = token.replaced_at or now
        self.refreshes += 1
        if missing := set(scopes_of(form.get("scope", ""))) - set(token.grant.scopes):
            sentence = f"The user has not consented to {', '.join(sorted(missing))}."
            raise LoginError("invalid_grant", 65001, sentence)
        return self._tokens(token.grant, nonce="")

    def _tokens(self, grant: Grant, nonce: str) -> dict[str, Any]:
        """Return new tokens; `scope` names what was granted, never offline_access."""
        seconds = int(TOKEN_LIFE.total_seconds())
        answer = {
            "token_type": "Bearer",
            "scope": " ".join(name for name in grant.scopes if name != "offline_access"),
            "expires_in": seconds,
            "ext_expires_in": seconds,
            "access_token": self.make_access_token(grant),
        }
        if "offline_access" in grant.scopes:
            answer["refresh_token"] = self._add_refresh_token(grant)
        if "openid" in grant.scopes:
            claims = id_claims(grant, self.clock.now())
            if nonce:
                claims["nonce"] = nonce
            answer["id_token"] = jwt.encode(claims, key(), "RS256", headers={"kid": KEY_ID})
        return answer

    def _add_refresh_token(self, grant: Grant) -> str:
        """Give out the next refresh token; earlier ones stay valid for the grace."""
        grant.refresh_token = f"0.A{secrets.token_urlsafe(64)}"
        self.refresh_tokens[grant.refresh_token] = RefreshToken(grant)
        return grant.refresh_token


NO_STORE = {"Cache-Control": "no-store, no-cache", "Pragma": "no-cache"}
REVOKED = {
    50173: "The provided grant has expired due to it being revoked, a fresh auth token is needed.",
    65001: "The user or administrator has not consented to use the application.",
    70008: "The provided authorization code or refresh token has expired due to inactivity.",
    700082: "The refresh token has expired due to inactivity.",
}
KEY_ID = "fake-key-1"


@functools.cache
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_key() -> dict[str, Any]:
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key().public_key()))
    return public | {"kid": KEY_ID, "use": "sig", "alg": "RS256"}


def id_claims(grant: Grant, now: datetime) -> dict[str, Any]:
    mailbox, client_id, at = grant.mailbox, grant.client.id, int(now.timestamp())
    claims = {
        "aud": client_id,
        "iss": f"https://{HOST}/{mailbox.tenant_id}/v2.0",
        "iat": at,
        "nbf": at,
        "exp": at + int(TOKEN_LIFE.total_seconds()),
        "oid": mailbox.id if not mailbox.is_personal else f"00000000-0000-0000-{mailbox.id}",
        "sub": hashlib.sha256(f"{mailbox.id} {client_id}".encode()).hexdigest()[:43],
        "tid": mailbox.tenant_id,
        "ver": "2.0",
    }
    if "profile" in grant.scopes:
        claims |= {"name": mailbox.name, "preferred_username": mailbox.address}
    if "email" in grant.scopes and mailbox.mail:
        claims["email"] = mailbox.mail
    return claims


def scopes_of(text: str) -> list[str]:
    """Return the names, those of Graph without its address."""
    return [name.removeprefix(GRAPH) for name in text.split()]


def is_of_tenant(mailbox: Mailbox, tenant: str) -> bool:
    """Whether the account may sign in under this segment of the path."""
    if tenant == "common":
        return True
    if tenant in ("consumers", CONSUMERS):
        return mailbox.is_personal
    return not mailbox.is_personal and tenant in ("organizations", mailbox.tenant_id)


def with_query(url: str, values: dict[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urllib.parse.urlencode(values)}"


def redirect(url: str) -> Response:
    return Response(302, "", {"Location": url})


def configuration(tenant: str) -> dict[str, Any]:
    base = f"https://{HOST}/{tenant}"
    return {
        "issuer": f"https://{HOST}/{{tenantid}}/v2.0" if tenant == "common" else f"{base}/v2.0",
        "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
        "token_endpoint": f"{base}/oauth2/v2.0/token",
        "jwks_uri": f"{base}/discovery/v2.0/keys",
        "response_modes_supported": ["query", "fragment", "form_post"],
        "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
        "scopes_supported": ["openid", "profile", "email", "offline_access"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
    }
