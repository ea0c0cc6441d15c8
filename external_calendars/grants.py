"""Grants of persons at providers with OAuth: consent, and access tokens that stay fresh.

Network requests never happen inside a transaction. New tokens are stored before anybody uses them:
a provider may end the former refresh token with the first use of the new one.
"""

import hashlib
import logging
import secrets
import uuid
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Value, When

from apps_config.models import Account
from availability.models import Calendar, Resource
from common.db.sql import database_now
from common.encryption import SecretUnreadable, decrypt_text, encrypt_text
from common.errors import Invalid
from common.messages import Message
from external_calendars.mirror.backfill import retry_now
from external_calendars.models import Connection, ConsentRequest, Grant, ProviderClient
from external_calendars.providers import OAUTH_PROVIDERS
from external_calendars.providers.base import FINAL_ERRORS, OAuthProvider, ProviderError
from external_calendars.providers.oauth import (
    OAuthClient,
    Tokens,
    consent_url,
    exchange_code,
    new_verifier,
    refresh_tokens,
)
from external_calendars.stop_announcements import announce_stops

logger = logging.getLogger(__name__)

CONSENT_LIFETIME = timedelta(minutes=10)
# Tokens are renewed this long before they end, so that no write and no sync waits for it.
RENEWED_BEFORE = timedelta(minutes=15)
RENEWAL_LEASE = timedelta(seconds=60)
# Minutes until the next try after 1, 2, ... failures in a row; the last value repeats.
RENEWAL_PAUSES = (1, 2, 5, 15, 60)
ABANDONED_AFTER = timedelta(days=1)
CALLBACK_PATH = "/v2/calendars/callback"


class ConsentEnded(Exception):
    """There is no such request for consent: it is older than ten minutes, or was used."""


class WrongAccount(Exception):
    """The person chose another account at the provider than that of the calendar."""

    def __init__(self, chosen: str, expected: str) -> None:
        super().__init__(chosen, expected)
        self.chosen, self.expected = chosen, expected


class Consent(NamedTuple):
    """A person's consent: the request that led to it, and the grant."""

    request: ConsentRequest
    grant: Grant


# --- Clients --------------------------------------------------------------------------------------
def client_of(app_id: uuid.UUID, provider: str) -> OAuthClient | None:
    """Return the app's own client at the provider, or that of the settings; None without any.

    Raises ProviderError (secret_unreadable).
    """
    own = ProviderClient.objects.filter(app=app_id, provider=provider).first()
    if own is not None:
        return OAuthClient(own.client_id, _decrypted(own.client_secret))
    return settings_client(provider)


def settings_client(provider: str) -> OAuthClient | None:
    """Return the client of the settings, which apps without one of their own use."""
    found = {
        "google": (settings.GOOGLE_CLIENT_ID, settings.GOOGLE_CLIENT_SECRET),
        "microsoft": (settings.MICROSOFT_CLIENT_ID, settings.MICROSOFT_CLIENT_SECRET),
    }[provider]
    return OAuthClient(*found) if all(found) else None


def _required_client(app_id: uuid.UUID, provider: str) -> OAuthClient:
    label = OAUTH_PROVIDERS[provider].label
    try:
        client = client_of(app_id, provider)
    except ProviderError as error:
        text = Message(
            "The secret of the app's client at %(provider)s can't be read: enter it again.",
            provider=label,
        )
        raise Invalid.at("provider", text) from error
    if client is None:
        text = Message("No client is registered at %(provider)s for this service.", provider=label)
        raise Invalid.at("provider", text)
    return client


def is_client_registered(app_id: uuid.UUID, provider: str) -> bool:
    try:
        return client_of(app_id, provider) is not None
    except ProviderError:
        return True  # with a secret that can't be read: the request says so


def callback_url() -> str:
    """Return the address to register at the provider."""
    return f"{settings.PUBLIC_URL}{CALLBACK_PATH}"


# --- Consent --------------------------------------------------------------------------------------
def request_consent(
    *,
    resource: Resource,
    provider: str,
    redirect_url: str,
    calendar: Calendar | None = None,
    account: Account | None = None,
    wanted: str = "",
    is_primary: bool | None = None,
    now: datetime,
) -> str:
    """Store the request and return the address of the consent page. Raises Invalid.

    calendar: to be connected anew, by the account that it belongs to.
    """
    client = _required_client(resource.app_id, provider)
    state, verifier, nonce = secrets.token_urlsafe(32), new_verifier(), secrets.token_urlsafe(16)
    ConsentRequest.objects.filter(expires_at__lte=now).delete()
    ConsentRequest.objects.create(
        app_id=resource.app_id,
        resource=resource,
        calendar=calendar,
        account=account,
        provider=provider,
        state_hash=_state_hash(state),
        verifier=encrypt_text(verifier),
        nonce=nonce,
        redirect_url=redirect_url,
        wanted=wanted,
        is_primary=is_primary,
        expires_at=now + CONSENT_LIFETIME,
    )
    return consent_url(
        OAUTH_PROVIDERS[provider].oauth,
        client,
        callback_url=callback_url(),
        state=state,
        nonce=nonce,
        verifier=verifier,
        account=_grant_email(calendar),
    )


def find_consent_request(state: str, *, now: datetime) -> ConsentRequest:
    """Return the request of a state, which stays. Raises ConsentEnded."""
    rows = ConsentRequest.objects.select_related("resource", "app", "calendar")
    found = rows.filter(state_hash=_state_hash(state), expires_at__gt=now).first()
    if found is None:
        raise ConsentEnded
    return found


def grant_of_consent(request: ConsentRequest, code: str, *, now: datetime) -> Consent:
    """Exchange the code once, and store the grant.

    Raises ConsentEnded, WrongAccount, ProviderError, Invalid.
    """
    if not ConsentRequest.objects.filter(pk=request.pk).delete()[0]:
        raise ConsentEnded
    provider = OAUTH_PROVIDERS[request.provider]
    client = _required_client(request.app_id, request.provider)
    tokens = exchange_code(
        provider.oauth,
        client,
        code=code,
        callback_url=callback_url(),
        verifier=_decrypted(request.verifier),
        nonce=request.nonce,
    )
    return Consent(request, _store_grant(request, provider, client, tokens, now))


def refuse_consent(request: ConsentRequest) -> None:
    """The person did not agree: the request can't be used any more."""
    ConsentRequest.objects.filter(pk=request.pk).delete()


def result_url(redirect_url: str, **values: str) -> str:
    """Return the address to go back to, with the result in its query."""
    return f"{redirect_url}{'&' if urlsplit(redirect_url).query else '?'}{urlencode(values)}"


def _store_grant(
    request: ConsentRequest,
    provider: OAuthProvider,
    client: OAuthClient,
    tokens: Tokens,
    now: datetime,
) -> Grant:
    """Store the grant. One person has one grant per app, which several calendars use."""
    subject, email = provider.account_of(tokens.claims)
    if request.calendar is not None:
        former = request.calendar.connection.grant
        if former is not None and former.subject != subject:
            raise WrongAccount(email, former.email)
    with transaction.atomic():
        grant, _ = Grant.objects.update_or_create(
            app_id=request.app_id,
            provider=request.provider,
            subject=subject[:255],
            defaults={
                "email": email[:300],
                "client_id": client.client_id,
                "refresh_token": encrypt_text(tokens.refresh_token),
                **_token_values(tokens, now),
            },
        )
        restart_connections(grant, now=now)
    return grant


def restart_connections(grant: Grant, *, now: datetime) -> None:
    """Make the grant's calendars due that a problem of the grant has stopped."""
    Connection.objects.filter(grant=grant, problem__in=GRANT_ERRORS).update(
        problem="", problem_since=None, failures=0, next_at=now
    )


def _grant_email(calendar: Calendar | None) -> str:
    if calendar is None or calendar.connection.grant is None:
        return ""
    return calendar.connection.grant.email


def _state_hash(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()


# --- Access tokens --------------------------------------------------------------------------------
# Errors of a grant as a whole, which all its calendars show.
GRANT_ERRORS = frozenset({"grant_ended", "client_refused", "token_refused", "not_permitted"})


def request_renewal(calendar_id: uuid.UUID) -> None:
    """The provider refuses the calendar's access token: have a worker get a new one at once."""
    waiting = Grant.objects.filter(lease_token=None, renew_at__isnull=False)
    waiting.filter(connections=calendar_id).update(renew_at=database_now())


def request_another_renewal(connection: Connection) -> bool:
    """If the calendar's permission has ended, have a worker try once more to get a token: the
    provider may allow it again. Return whether it has ended.
    """
    if connection.problem not in GRANT_ERRORS or not connection.is_stopped:
        return False
    own = Grant.objects.filter(connections=connection.pk)
    ended = own.filter(Q(renew_at=None) | Q(failures__gt=0))
    has_ended = ended.exists()
    ended.filter(renew_at=None).update(renew_at=database_now())
    return has_ended


def due_renewals(now: datetime) -> QuerySet[Grant]:
    return Grant.objects.filter(renew_at__lte=now)


def claim_renewals(limit: int) -> list[Grant]:
    """Claim up to `limit` grants whose tokens are to be renewed, each with its own lease."""
    if limit < 1:
        return []
    with transaction.atomic():
        now = database_now()
        rows = due_renewals(now).order_by("renew_at", "pk")
        claimed = list(rows.select_for_update(skip_locked=True)[:limit])
        for grant in claimed:
            grant.lease_token, grant.renew_at = uuid.uuid4(), now + RENEWAL_LEASE
        Grant.objects.bulk_update(claimed, ["lease_token", "renew_at"])
    return claimed


def renew_grant(grant: Grant) -> None:
    """Get new tokens for a claimed grant and store them, or store why there are none."""
    try:
        client = client_of(grant.app_id, grant.provider)
        if client is None or client.client_id != grant.client_id:
            # Tokens belong to the client that they were given to.
            raise ProviderError("client_refused")
        tokens = refresh_tokens(
            OAUTH_PROVIDERS[grant.provider].oauth, client, _decrypted(grant.refresh_token)
        )
    except ProviderError as error:
        logger.info("grant %s: %s (%s)", grant.pk, error.code, error)
        _record_failure(grant, error)
        return
    now = database_now()
    values = _token_values(tokens, now)
    if tokens.refresh_token:
        values["refresh_token"] = encrypt_text(tokens.refresh_token)
    with transaction.atomic():
        if not _leased(grant).update(**values):
            return
        restart_connections(grant, now=now)
    for connection in grant.connections.select_related("calendar"):
        retry_now(connection, now=now)


def _token_values(tokens: Tokens, now: datetime) -> dict[str, object]:
    lifetime = timedelta(seconds=tokens.lifetime)
    return {
        "access_token": encrypt_text(tokens.access_token),
        "access_ends_at": now + lifetime,
        "renew_at": now + max(lifetime - RENEWED_BEFORE, lifetime / 2),
        "lease_token": None,
        "failures": 0,
    }


def _record_failure(grant: Grant, error: ProviderError) -> None:
    """Store when to try again; only a person can mend an ended grant, and its calendars say so."""
    now = database_now()
    is_final = error.code in FINAL_ERRORS
    minutes = RENEWAL_PAUSES[min(grant.failures, len(RENEWAL_PAUSES) - 1)]
    pause = timedelta(seconds=max(minutes * 60, min(error.retry_after or 0, 3600)))
    with transaction.atomic():
        stored = _leased(grant).update(
            renew_at=None if is_final else now + pause,
            lease_token=None,
            failures=grant.failures + 1,
        )
        if not stored:
            return
        connections = Connection.objects.filter(grant=grant)
        if is_final:
            _stop_connections(connections, error.code, now)
        elif grant.access_ends_at <= now:
            connections.exclude(problem=error.code).update(problem=error.code, problem_since=now)


def _stop_connections(connections: QuerySet[Connection], problem: str, now: datetime) -> None:
    """Stop the syncs, except those that another problem has stopped, and announce it."""
    waiting = connections.filter(next_at__isnull=False).order_by("pk").select_for_update()
    ids = list(waiting.values_list("pk", flat=True))
    Connection.objects.filter(pk__in=ids).update(
        problem=problem,
        problem_since=Case(When(problem=problem, then=F("problem_since")), default=Value(now)),
        next_at=None,
        lease_token=None,
    )
    announce_stops(ids, now=now)


def _leased(grant: Grant) -> QuerySet[Grant]:
    return Grant.objects.filter(pk=grant.pk, lease_token=grant.lease_token)


def _decrypted(token: str) -> str:
    try:
        return decrypt_text(token)
    except SecretUnreadable as error:
        raise ProviderError("secret_unreadable") from error


def access_token(grant: Grant) -> str:
    """Return the decrypted access token. Raises ProviderError (secret_unreadable)."""
    return _decrypted(grant.access_token)


# --- The end --------------------------------------------------------------------------------------
def delete_unused_grant(grant_id: uuid.UUID | None) -> None:
    """Delete the grant if it has no calendar any more, in the transaction of the caller."""
    if grant_id is not None:
        Grant.objects.filter(pk=grant_id, connections=None).delete()


def delete_abandoned_grants(now: datetime) -> None:
    """Delete grants of people who agreed and then chose no calendar."""
    Grant.objects.filter(connections=None, created_at__lt=now - ABANDONED_AFTER).delete()
