"""Authentication: HTTP Basic, or Bearer, with four kinds of key (api.md section 3)."""

import base64
import binascii
import hmac
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import ip_network
from typing import Any, TypeVar

from django.conf import settings
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from apps_config.client_access import (
    AGENTS_AUDIENCE,
    API_AUDIENCE,
    CLIENT_TOKEN_LENGTH,
    find_client_token,
)
from apps_config.models import (
    SECRET_LENGTH,
    Account,
    App,
    Credential,
    EventNotification,
    FailedLogin,
    Membership,
    digest_secret,
)
from apps_config.second_factors import OFF, has_second_factor, must_have_second_factor
from apps_config.services import LOG_IN_DESCRIPTION
from common.api.query import service_header
from common.db.batching import delete_in_batches
from common.db.compiled_query import FixedQuery
from common.db.sql import count_up
from common.email_address import canonical_address
from common.errors import (
    AGENTS,
    BASIC_CHALLENGE,
    Forbidden,
    Invalid,
    NotFound,
    RateLimited,
    Unauthenticated,
    ignore_database_outage,
)
from common.limits.rate_limit import (
    Address,
    CountedRequest,
    Network,
    RateKey,
    RateWindow,
    RefusedKeys,
    SharedCounter,
    customer_network,
)
from common.observability.log_format import add_log_fields

Value = TypeVar("Value")

MAX_HEADER, MAX_PREFIX = 1024, 40
PURGE_SLICE = 5000
# What somebody sees who chooses where bookings are sent: to a webhook, a calendar, an address.
# Calls and mails have links that act for customers.
WHOLE_BOOKINGS = (Credential.BOOKINGS_READ, Credential.BOOKINGS_WRITE, Credential.PEOPLE_READ)
_NOBODY_HASH = digest_secret("")

_CREDENTIAL = FixedQuery(
    lambda prefix: (
        Credential.objects.filter(prefix=prefix)
        .select_related("app", "account", "resource", "hosted_project")
        .order_by()
    )
)


class KeyAuthentication(BaseAuthentication):
    """A key by Basic or Bearer: `request.user` is the Caller, `request.auth` the id of the key.

    Raises Unauthenticated, RateLimited for too many wrong keys, and NotFound for the header of an
    app that the key has no access to.
    """

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        if caller := authenticated_caller(request):
            return caller, caller.credential_id
        header = request.META.get("HTTP_AUTHORIZATION")
        if not header or request.method == "OPTIONS":
            return None
        now = request.parser_context["view"].now
        try:
            caller = authenticate(
                header,
                service_header(request, "App"),
                audience=AGENTS_AUDIENCE if request.path_info == AGENTS else API_AUDIENCE,
                now=now,
            )
        except Unauthenticated:
            with ignore_database_outage():
                count_failed_login(customer_network(request), now=now)
            raise
        if caller.app:
            add_log_fields(app=caller.app.id)
        return caller, caller.credential_id

    def authenticate_header(self, request: Request) -> str:
        return BASIC_CHALLENGE


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated credential and its app. `app` is None only if several apps are possible.

    projects, origins, scopes, addresses: the limits of the key; None: no limit.
    """

    credential_id: uuid.UUID
    kind: str
    role: str
    app: App | None
    memberships: tuple[tuple[str, App], ...]
    account_id: uuid.UUID | None
    resource_id: uuid.UUID | None
    actor: str
    projects: frozenset[uuid.UUID] | None = None
    origins: frozenset[str] | None = None
    scopes: frozenset[str] | None = None
    addresses: frozenset[Network] | None = None
    is_agent: bool = False  # calls tools at /mcp

    @property
    def is_widget(self) -> bool:
        return self.kind == Credential.WIDGET

    @property
    def is_bound_to_projects(self) -> bool:
        """Whether it uses a project's resources only as the project has them."""
        return self.is_widget or self.projects is not None

    @property
    def is_restricted(self) -> bool:
        """Whether it may do less than the other keys of its kind and role."""
        return (self.scopes, self.projects, self.addresses) != (None, None, None)

    @property
    def reads_people(self) -> bool:
        """Whether it may read what customers typed and how to reach them."""
        return self.has_scopes(Credential.PEOPLE_READ)

    @property
    def gets_customer_links(self) -> bool:
        """Whether it may have the links on which whoever opens them acts as the customer."""
        may_act = self.has_scopes(Credential.BOOKINGS_WRITE, Credential.PEOPLE_READ)
        return may_act and self.role != Membership.VIEWER

    def has_scopes(self, *scopes: str) -> bool:
        return self.scopes is None or self.scopes.issuperset(scopes)

    def check_scopes(self, *scopes: str) -> None:
        """Raise Forbidden for the first scope that the key lacks."""
        for scope in scopes:
            if not self.has_scopes(scope):
                raise Forbidden(f"This key lacks the scope {scope}.")

    @property
    def only_app(self) -> App:
        """The app of the request. Raises Forbidden without one, Invalid if several are possible."""
        if not self.memberships:
            raise Forbidden("This account has no app.")
        if self.app is None:
            raise Invalid.at("Service-App", "Required: this account has several apps.")
        return self.app

    def check_receivers(self, notifications: Iterable[Mapping[str, Any]] | None) -> None:
        """Raise Forbidden for a webhook call about bookings that the key may not read."""
        if any(each["type"] == EventNotification.WEBHOOK for each in notifications or ()):
            self.check_scopes(*WHOLE_BOOKINGS)

    def allows_origin(self, origin: str | None) -> bool:
        """Whether a request with this Origin header may use the key; None: without the header."""
        return origin is None or self.origins is None or origin.lower() in self.origins

    def allows_address(self, address: Address | None) -> bool:
        """Whether a client with the address may use the key. None: the address is not known."""
        if self.addresses is None:
            return True
        return address is not None and any(address in network for network in self.addresses)

    @property
    def source(self) -> str:
        """The name of the entry point in the log."""
        if self.is_widget:
            return "widget"  # the rules for public callers go by it
        return "mcp" if self.is_agent else "api"


def set_authenticated_caller(request: HttpRequest, caller: Caller) -> None:
    """Let a request that the service itself makes act for a caller whose key was checked."""
    vars(request)["authenticated_caller"] = caller


def authenticated_caller(request: Request) -> Caller | None:
    return getattr(request, "authenticated_caller", None)


def read_key(header: str | None) -> tuple[str | None, str]:
    """Return the user and the key of an Authorization header; no user for Bearer.

    Raises Unauthenticated if it is neither valid Basic nor Bearer.
    """
    if not header or len(header) > MAX_HEADER:
        raise Unauthenticated()
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() == "bearer":
        return None, encoded.strip()
    if scheme.lower() != "basic":
        raise Unauthenticated()
    try:
        user, colon, password = (
            base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        )
    except (binascii.Error, ValueError):
        raise Unauthenticated() from None
    if not colon or "\0" in user + password:
        raise Unauthenticated()
    return user, password


def authenticate(
    header: str | None, app_slug: str | None, *, audience: str = API_AUDIENCE, now: datetime
) -> Caller:
    """The caller for an Authorization header and the app header. audience: of OAuth tokens.

    Every failure raises the same Unauthenticated. An app that the credential has no access to
    raises NotFound, as an unknown slug does; so does the key of a page that is not published.
    """
    user, password = read_key(header)
    if user is None and len(password) == CLIENT_TOKEN_LENGTH:
        return _authenticate_client(password, app_slug, audience=audience, now=now)
    credential = _find_credential(password[:-SECRET_LENGTH])
    # Compare even if the prefix is unknown, so that the response time reveals nothing.
    expected = credential.secret_hash if credential else _NOBODY_HASH
    matches = hmac.compare_digest(expected, digest_secret(password[-SECRET_LENGTH:]))
    if not (credential and matches and _is_valid(credential, user, now)):
        raise Unauthenticated()
    if _is_token_of_refused_log_in(credential):
        raise Unauthenticated()
    if _is_unpublished(credential):
        raise NotFound("Project")
    _touch_last_used(credential, now)
    return _caller(credential, app_slug)


def _authenticate_client(
    text: str, app_slug: str | None, *, audience: str, now: datetime
) -> Caller:
    """The caller for the OAuth token of a program."""
    token = find_client_token(text, audience=audience, now=now)
    if token is None or not _is_valid(token.credential, None, now):
        raise Unauthenticated()
    caller = _caller(token.credential, app_slug)
    if caller.scopes is None or not caller.memberships:
        raise Unauthenticated()
    _touch_last_used(token.credential, now)
    return replace(caller, scopes=caller.scopes & token.scopes)


def _find_credential(prefix: str) -> Credential | None:
    found = _CREDENTIAL(prefix) if 0 < len(prefix) <= MAX_PREFIX else []
    return found[0] if found else None


def _holder(credential: Credential) -> str:
    """Return the address of the account or resource; "" for keys of an app."""
    holder = credential.account or credential.resource
    return (holder.email or "") if holder else ""


def _is_valid(credential: Credential, user: str | None, now: datetime) -> bool:
    holder, app = _holder(credential), credential.app
    return (
        (user is None or user == holder or canonical_address(user) == canonical_address(holder))
        and credential.revoked_at is None
        and (credential.expires_at is None or credential.expires_at > now)
        and (credential.account is None or credential.account.is_active)
        and (credential.resource is None or credential.resource.deleted_at is None)
        and (app is None or app.archived_at is None)
    )


def _is_unpublished(credential: Credential) -> bool:
    """Whether the key was handed out by a hosted page that no longer exists."""
    page, app = credential.hosted_project, credential.app
    if page is None or app is None:
        return False
    return page.deleted_at is not None or not app.publishes(page.settings)


def _is_token_of_refused_log_in(credential: Credential) -> bool:
    """Whether the token was made with a password that would get no token today: after a change of
    PASSWORD_LOGIN, REQUIRE_SECOND_FACTOR or the account's rights.
    """
    account = credential.account
    if account is None or credential.description != LOG_IN_DESCRIPTION:
        return False
    if not settings.PASSWORD_LOGIN:
        return True
    if settings.REQUIRE_SECOND_FACTOR == OFF:
        return False
    return must_have_second_factor(account) and not has_second_factor(account)


def _touch_last_used(credential: Credential, now: datetime) -> None:
    """Record the last use by the minute: at most one write per minute and key."""
    minute = now.replace(second=0, microsecond=0)
    if credential.last_used_at is None or credential.last_used_at < minute:
        with ignore_database_outage():
            Credential.objects.filter(id=credential.id).update(last_used_at=minute)


def _caller(credential: Credential, app_slug: str | None) -> Caller:
    memberships = tuple(_memberships(credential))
    named = [pair for pair in memberships if app_slug is None or pair[1].slug == app_slug]
    if app_slug is not None and not named:
        raise NotFound("App")
    role, app = named[0] if len(named) == 1 else (Membership.VIEWER, None)
    return Caller(
        credential_id=credential.id,
        kind=credential.kind,
        role=role,
        app=app,
        memberships=memberships,
        account_id=credential.account_id,
        resource_id=credential.resource_id,
        actor=_holder(credential) or f"{credential.kind} key {str(credential.id)[:8]}",
        projects=_limit(credential.projects, uuid.UUID),
        origins=_limit(credential.origins, str),
        scopes=_limit(credential.scopes, str),
        addresses=_limit(credential.addresses, ip_network),
    )


def _memberships(credential: Credential) -> Iterator[tuple[str, App]]:
    """Yield the apps that the key has access to, with its role in each."""
    if credential.app:
        yield Membership.OWNER, credential.app
    elif credential.account:
        rows = Membership.objects.filter(account=credential.account, app__archived_at=None)
        if credential.only_app_id:
            rows = rows.filter(app=credential.only_app_id)
        for membership in rows.select_related("app"):
            yield membership.role, membership.app


def _limit(stored: list[str] | None, read: Callable[[str], Value]) -> frozenset[Value] | None:
    return None if stored is None else frozenset(map(read, stored))


# --- How often ------------------------------------------------------------------------------------
counter_of_all_processes: SharedCounter | None = None
if settings.REDIS_URL:  # without it, redis and all that it imports would take 8 MB of each process
    from common.limits.redis_counter import RedisCounter

    counter_of_all_processes = RedisCounter(settings.REDIS_URL)
request_rates = RateWindow(settings.RATE_LIMIT_PER_MINUTE, counter_of_all_processes)
refused_logins = RefusedKeys()


def count_failed_login(address: str, *, now: datetime) -> None:
    """Count a wrong key of this minute across all processes. Raises RateLimited above the limit.

    address: of the client, or its network.

    A valid key still passes: failures of others behind a shared address lock nobody out, and 256
    random bits can't be guessed.
    """
    limit = settings.FAILED_LOGINS_PER_MINUTE
    if not limit:
        return
    minute, second = divmod(int(now.timestamp()), 60)
    if refused_logins.seconds_left(address, now.timestamp()):
        raise RateLimited(retry_after=60 - second)
    counts = count_up(FailedLogin, [{"address": address, "minute": minute}], by="address")
    if counts[address] > limit:
        refused_logins.add(address, 60 * (minute + 1))
        raise RateLimited(retry_after=60 - second)


CODE_WINDOW = 15  # minutes
MAX_FAILED_CODES = 10  # per account and window: one guess of six digits in a million succeeds


def count_failed_code(account: Account, *, now: datetime) -> None:
    """Count an attempt at a second factor before it is checked. Raises RateLimited above the limit.

    Attempts are counted by account, not by client address: an attacker who guesses codes knows the
    password and can change addresses.
    """
    key = _code_key(account, now)
    if count_up(FailedLogin, [key], by="address")[key["address"]] > MAX_FAILED_CODES:
        raise RateLimited(retry_after=60 * CODE_WINDOW)


def clear_failed_codes(account: Account, *, now: datetime) -> None:
    FailedLogin.objects.filter(**_code_key(account, now)).delete()


def mark_code_used(account: Account, code: str, *, now: datetime) -> bool:
    """Count a use of a correct code, in any spelling; return whether it is the first one, in any
    process.

    Counted in the next window as well: a code is valid for longer than its window may last. Not by
    `count_first_use`, whose counts belong to an app.
    """
    characters = "".join(filter(str.isalnum, code)).lower()
    digest = digest_secret(f"{account.pk} {characters}")[:32]
    this = _code_window_end(now)
    counts = [
        count_up(FailedLogin, [{"address": f"used code {digest}", "minute": minute}], by="minute")
        for minute in (this, this + CODE_WINDOW)
    ]
    return counts[0][this] == 1


def _code_key(account: Account, now: datetime) -> dict[str, Any]:
    """Return the key of the row of the account's wrong codes in this window."""
    return {"address": f"code {account.pk}", "minute": _code_window_end(now)}


def _code_window_end(now: datetime) -> int:
    """Return the end of the window, in minutes since 1970: no purge deletes its rows before."""
    return (int(now.timestamp()) // (60 * CODE_WINDOW) + 1) * CODE_WINDOW


def purge_failed_logins(*, now: datetime) -> Iterator[int]:
    """Delete the counts whose `minute` is over; yields the size of each batch."""
    this_minute = int(now.timestamp()) // 60
    old = FailedLogin.objects.filter(minute__lt=this_minute - 1)
    yield from delete_in_batches(old, "id", PURGE_SLICE)


def count_request_with_key(caller: Caller, request: HttpRequest) -> CountedRequest | None:
    """Count a request by credential; for widget keys also by client network. None: no limit."""
    network = customer_network(request) if caller.is_widget else ""
    return _count_request(RateKey(str(caller.credential_id), network))


def count_request_without_key(request: HttpRequest) -> CountedRequest | None:
    """Count a request without a key by client network. None: no limit."""
    return _count_request(RateKey(network=customer_network(request)))


def _count_request(key: RateKey) -> CountedRequest | None:
    return CountedRequest(request_rates, key) if request_rates.limit else None
