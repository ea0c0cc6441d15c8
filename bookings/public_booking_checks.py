"""Checks of public requests before their transaction: limits, blocked customers, proof of work."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count
from django.utils.crypto import salted_hmac

from apps_config.models import App
from apps_config.public_limits import (
    BLOCKED_CUSTOMERS,
    CHALLENGE,
    CODES,
    HOUR,
    LIMITS,
    OPEN_PER_EMAIL,
    CustomerBlocked,
    LimitReached,
    check_not_blocked,
    count_attempt,
    count_first_use,
    count_refusal,
    count_unknown_proxy,
    limit_of,
)
from bookings.models import Customer, UnverifiedBooking
from common.altcha import make_challenge, read_solution
from common.api.fields import array_as_object
from common.email_address import canonical_address, is_address, limit_key
from common.errors import Invalid, Refusal

MAX_EMAILS = 5  # more customers are refused anyway
MAX_HELD = LIMITS[CODES].default  # bookings of one address that wait for a code
CHALLENGE_LASTS = timedelta(minutes=10)
ALTCHA = "altcha"


class ChallengeUnsolved(Invalid):
    """The body has no solution of a challenge, or one that has expired or was used."""


def admit_public_booking(
    app: App, body: Any, *, network: str, is_proxy_unknown: bool, now: datetime
) -> None:
    """Count an attempt of a public page to make or move a booking.

    `network`: of the client; "" = unknown. Raises LimitReached, CustomerBlocked.
    """
    if is_proxy_unknown:
        count_unknown_proxy(app, now=now)
    emails = read_emails(body)
    count_attempt(app, network=network, emails=emails, now=now)
    check_not_blocked(app, emails)
    check_open_bookings(app, emails, now=now)


def read_emails(body: Any) -> set[str]:
    """The customers' valid addresses in canonical form, in a body that is not yet validated."""
    body = array_as_object(body)
    given = body if isinstance(body, Mapping) else {}
    customers = given.get("customers")
    people = [given.get("customer"), *(customers if isinstance(customers, list) else ())]
    texts = [person.get("email") for person in people if isinstance(person, Mapping)]
    return {canonical_address(text) for text in texts[:MAX_EMAILS] if is_address(text)}


def check_open_bookings(app: App, emails: Collection[str], *, now: datetime) -> None:
    """Raise LimitReached if an address has too many upcoming bookings.

    Retry-After does not depend on them: a stranger must not learn when somebody has a booking.
    """
    limit = limit_of(app, OPEN_PER_EMAIL)
    for key in set(map(limit_key, emails)) if limit else ():
        # By the index on the limit key; the app of a customer has no index.
        rows = Customer.objects.filter(app=app, limit_key=key, booking__deleted_at=None)
        rows = rows.filter(booking__completed=False, booking__event__end__gt=now)
        number = rows.aggregate(bookings=Count("booking", distinct=True))["bookings"]
        if number + MAX_HELD >= limit:
            held = UnverifiedBooking.objects.filter(app=app, limit_key=key, ended_at=None)
            number += held.filter(expires_at__gt=now).count()
        if number >= limit:
            raise LimitReached(OPEN_PER_EMAIL, HOUR)


# --- Proof of work --------------------------------------------------------------------------------
def needs_challenge(app: App) -> bool:
    return app.settings.get(CHALLENGE) == ALTCHA


def new_challenge(app: App, *, now: datetime) -> dict[str, Any]:
    return make_challenge(_challenge_key(app), now + CHALLENGE_LASTS)


def use_challenge(app: App, body: Any, *, now: datetime) -> None:
    """Use up the body's solved challenge, if the app needs one. Raises ChallengeUnsolved."""
    if not needs_challenge(app):
        return
    body = array_as_object(body)
    payload = body.get("challenge") if isinstance(body, Mapping) else None
    if not isinstance(payload, str):
        raise ChallengeUnsolved.at("challenge", "Required: a solved challenge (GET /v2/challenge).")
    solution = read_solution(_challenge_key(app), payload)
    if solution is None:
        raise ChallengeUnsolved.at("challenge", "Is not a solved challenge.")
    if solution.expires_at <= now:
        raise ChallengeUnsolved.at("challenge", "The challenge has expired.")
    if not count_first_use(app, CHALLENGE, solution.challenge, solution.expires_at):
        raise ChallengeUnsolved.at("challenge", "The challenge was already used.")


def _challenge_key(app: App) -> bytes:
    return salted_hmac("bookings.challenge", str(app.id), algorithm="sha256").digest()


# --- What is counted for the dashboard ------------------------------------------------------------
def refusal_reason(refusal: Refusal) -> str:
    """The reason to count for the dashboard; "" for other errors."""
    if isinstance(refusal, LimitReached):
        return refusal.kind
    if isinstance(refusal, CustomerBlocked):
        return BLOCKED_CUSTOMERS
    return CHALLENGE if isinstance(refusal, ChallengeUnsolved) else ""


def count_public_refusal(app: App, refusal: Refusal, *, now: datetime) -> None:
    if reason := refusal_reason(refusal):
        count_refusal(app, reason, now=now)
