"""Authentication: HTTP Basic with four kinds of key, one query (api.md section 3)."""

import base64
import binascii
import hmac
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection
from django.http import HttpRequest

from apps_config.models import (
    SECRET_LENGTH,
    Account,
    App,
    Credential,
    FailedLogin,
    Membership,
    digest_secret,
)
from apps_config.second_factors import OFF, has_second_factor, must_have_second_factor
from apps_config.services import LOG_IN_DESCRIPTION
from common.batching import delete_in_batches
from common.email_address import canonical_address
from common.errors import NotFound, RateLimited, Unauthenticated, ignore_database_outage
from common.instants import to_aware
from common.rate_limit import (
    CountedRequest,
    RateKey,
    RateWindow,
    RefusedKeys,
    SharedCounter,
    customer_network,
)
from common.sql import count_up

Scope = TypeVar("Scope")

MAX_HEADER = 1024
PURGE_SLICE = 5000
_NOBODY_HASH = digest_secret("")

# One row per membership of an access token's account; one row for every other key.
_LOOK_UP = """
SELECT c.id, c.kind, c.description, c.secret_hash, c.expires_at, c.revoked_at, c.last_used_at,
       account.id, account.email, account.is_active,
       resource.id, resource.email, resource.deleted_at, membership.role,
       c.projects, c.origins, page.settings, page.deleted_at,
       app.id, app.slug, app.name, app.mode, app.settings, app.archived_at,
       app.created_at, app.updated_at
FROM apps_config_credential c
LEFT JOIN apps_config_account account ON account.id = c.account_id
LEFT JOIN availability_resource resource ON resource.id = c.resource_id
LEFT JOIN availability_project page ON page.id = c.hosted_project_id
LEFT JOIN apps_config_membership membership ON membership.account_id = c.account_id
LEFT JOIN apps_config_app app ON app.id = COALESCE(c.app_id, membership.app_id)
WHERE c.prefix = %s
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated credential and its app. `app` is None only if several apps are possible.

    projects, origins: the scope of a widget key; None: no limit.
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

    @property
    def is_widget(self) -> bool:
        return self.kind == Credential.WIDGET

    def allows_origin(self, origin: str | None) -> bool:
        """Whether a request with this Origin header may use the key; None: without the header."""
        return origin is None or self.origins is None or origin.lower() in self.origins

    @property
    def source(self) -> str:
        """The name of the entry point in the log."""
        return "widget" if self.is_widget else "api"


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the look-up, in Python types on every database."""

    id: uuid.UUID
    kind: str
    description: str
    secret_hash: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    account_id: uuid.UUID | None
    account_email: str | None
    account_active: bool | None
    resource_id: uuid.UUID | None
    resource_email: str | None
    resource_deleted_at: datetime | None
    role: str | None
    projects: str | None
    origins: str | None
    page_settings: str | None  # of the project whose hosted page hands the key out
    page_deleted_at: datetime | None
    app: App | None

    @property
    def is_unpublished(self) -> bool:
        """Whether the key was handed out by a hosted page that no longer exists."""
        if self.page_settings is None or self.app is None:
            return False
        settings = json.loads(self.page_settings)
        settings = settings if isinstance(settings, dict) else {}
        return self.page_deleted_at is not None or not self.app.publishes(settings)


def read_basic(header: str | None) -> tuple[str, str]:
    """User and password of an Authorization header. Raises Unauthenticated if it is not valid
    Basic.
    """
    if not header or len(header) > MAX_HEADER:
        raise Unauthenticated()
    scheme, _, encoded = header.partition(" ")
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


def authenticate(header: str | None, app_slug: str | None, *, now: datetime) -> Caller:
    """The caller for an Authorization header and the app header.

    Every failure raises the same Unauthenticated. An app that the credential has no access to
    raises NotFound, as an unknown slug does; so does the key of a page that is not published.
    """
    user, password = read_basic(header)
    prefix, secret = password[:-SECRET_LENGTH], password[-SECRET_LENGTH:]
    rows = _look_up(prefix) if 0 < len(prefix) <= 40 else []
    # Compare even if the prefix is unknown, so that the response time reveals nothing.
    expected = rows[0].secret_hash if rows else _NOBODY_HASH
    matches = hmac.compare_digest(expected, digest_secret(secret))
    if not (rows and matches and _is_valid(rows[0], user, now)):
        raise Unauthenticated()
    if _comes_from_a_refused_log_in(rows[0]):
        raise Unauthenticated()
    if rows[0].is_unpublished:
        raise NotFound("Project")
    _touch_last_used(rows[0], now)
    return _caller(rows, app_slug)


def _look_up(prefix: str) -> list[_Row]:
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP, [prefix])
        found = cursor.fetchall()
    return [_row(values) for values in found]


def _row(values: tuple[Any, ...]) -> _Row:
    if connection.vendor == "sqlite":
        values = tuple(
            convert(value) if convert and value is not None else value
            for convert, value in zip(_SQLITE_TYPES, values, strict=True)
        )
    of_key, (app_id, *of_app) = values[:-8], values[-8:]
    return _Row(*(*of_key, _app(app_id, *of_app) if app_id else None))


def _app(
    app_id: uuid.UUID,
    slug: str,
    name: str,
    mode: str,
    app_settings: str,
    archived_at: datetime | None,
    created_at: datetime,
    updated_at: datetime,
) -> App:
    app = App(
        id=app_id,
        slug=slug,
        name=name,
        mode=mode,
        settings=json.loads(app_settings),
        archived_at=archived_at,
        created_at=created_at,
        updated_at=updated_at,
    )
    app._state.adding = False
    app._state.db = "default"
    return app


_SQLITE_TYPES = (
    uuid.UUID,
    *[None] * 3,
    *[to_aware] * 3,
    uuid.UUID,
    None,
    bool,
    uuid.UUID,
    None,
    to_aware,
    None,
    *[None] * 3,
    to_aware,
    uuid.UUID,
    *[None] * 4,
    *[to_aware] * 3,
)


def _is_valid(row: _Row, user: str, now: datetime) -> bool:
    holder = row.account_email or row.resource_email or ""
    return (
        (user == holder or canonical_address(user) == canonical_address(holder))
        and row.revoked_at is None
        and (row.expires_at is None or row.expires_at > now)
        and row.account_active is not False
        and row.resource_deleted_at is None
        and not (row.kind != Credential.ACCESS and row.app and row.app.archived_at)
    )


def _comes_from_a_refused_log_in(row: _Row) -> bool:
    """Whether the token was made with a password that would get no token today: after a change of
    PASSWORD_LOGIN, REQUIRE_SECOND_FACTOR or the account's rights.
    """
    if row.kind != Credential.ACCESS or row.description != LOG_IN_DESCRIPTION:
        return False
    if not settings.PASSWORD_LOGIN:
        return True
    if settings.REQUIRE_SECOND_FACTOR == OFF:
        return False
    account = Account.objects.get(credentials__pk=row.id)
    return must_have_second_factor(account) and not has_second_factor(account)


def _touch_last_used(row: _Row, now: datetime) -> None:
    """Record the last use by the minute: at most one write per minute and key."""
    minute = now.replace(second=0, microsecond=0)
    if row.last_used_at is None or row.last_used_at < minute:
        with ignore_database_outage():
            Credential.objects.filter(id=row.id).update(last_used_at=minute)


def _caller(rows: list[_Row], app_slug: str | None) -> Caller:
    row = rows[0]
    memberships: tuple[tuple[str, App], ...]
    if row.kind == Credential.ACCESS:
        memberships = tuple(
            (row.role or Membership.VIEWER, row.app)
            for row in rows
            if row.app and row.app.archived_at is None
        )
    else:
        memberships = ((Membership.OWNER, row.app),) if row.app else ()
    named = [pair for pair in memberships if app_slug is None or pair[1].slug == app_slug]
    if app_slug is not None and not named:
        raise NotFound("App")
    role, app = named[0] if len(named) == 1 else (Membership.VIEWER, None)
    return Caller(
        credential_id=row.id,
        kind=row.kind,
        role=role,
        app=app,
        memberships=memberships,
        account_id=row.account_id,
        resource_id=row.resource_id,
        actor=row.account_email or row.resource_email or f"{row.kind} key {str(row.id)[:8]}",
        projects=_scope(row.projects, uuid.UUID),
        origins=_scope(row.origins, str),
    )


def _scope(stored: str | None, read: Callable[[str], Scope]) -> frozenset[Scope] | None:
    values = json.loads(stored) if stored else None
    return None if values is None else frozenset(map(read, values))


# --- How often ------------------------------------------------------------------------------------
counter_of_all_processes: SharedCounter | None = None
if settings.REDIS_URL:  # without it, redis and all that it imports would take 8 MB of each process
    from common.redis_counter import RedisCounter

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
