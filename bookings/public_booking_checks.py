"""Checks of public requests: limits, blocked customers, proof of work."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from apps_config.models import App
from apps_config.public_limits import (
    BLOCKED_CUSTOMERS,
    CHALLENGE,
    HOLDS,
    HOUR,
    NEEDS_CHALLENGE,
    OPEN_PER_EMAIL,
    PER_APP,
    PER_EMAIL,
    CustomerBlocked,
    LimitReached,
    check_not_blocked,
    check_subjects,
    count_first_use,
    count_refusal,
    count_subjects,
    limit_of,
)
from bookings.models import Customer, UnverifiedBooking
from common.api.fields import array_as_object
from common.db.sql import wait_for_turn
from common.email_address import canonical_address, is_address, limit_key
from common.errors import Invalid, Refusal
from common.keyed_digests import keyed_digest
from common.limits.altcha import make_challenge, read_solution

MAX_EMAILS = 5  # more customers are refused anyway
CHALLENGE_LASTS = timedelta(minutes=10)
ALTCHA = "altcha"


class ChallengeUnsolved(Invalid):
    """The body has no solution of a challenge, or one that has expired or was used."""


class PublicRequest(NamedTuple):
    """What the limits know of a public caller's request, whose body is valid.

    emails: of the customers; a solved challenge lifts some of the limits.
    """

    emails: Collection[str]
    has_solved_challenge: bool


def check_public_request(
    app: App, request: PublicRequest, *, holds: bool = False, now: datetime
) -> None:
    """Check a public request before its transaction; `holds`: it holds a time.

    Counts nothing: `count_public_booking` and `count_public_hold` count, in the transaction. Raises
    CustomerBlocked, LimitReached.
    """
    check_not_blocked(app, request.emails)
    if not request.has_solved_challenge:
        subjects = [(PER_APP, ""), *((PER_EMAIL, key) for key in _limit_keys(request))]
        check_subjects(app, [*subjects, (HOLDS, "")] if holds else subjects, now)


def count_public_booking(
    app: App, request: PublicRequest, *, quantity: int = 1, now: datetime
) -> None:
    """Count a booking of `quantity` units, or one that waits for its code, that was written in this
    transaction.

    Call it last, since it locks the addresses: a transaction that then waited for a row could meet
    one that holds the row and waits for an address. Raises LimitReached.
    """
    keys = _limit_keys(request)
    for key in keys:
        wait_for_turn(f"bookings {app.id} {key}")
    if not request.has_solved_challenge:
        count_subjects(app, [(PER_EMAIL, key) for key in keys], now, times=quantity)
    check_open_bookings(app, keys, now=now)


def _limit_keys(request: PublicRequest) -> list[str]:
    return sorted(set(map(limit_key, request.emails)))


def count_public_hold(
    app: App, request: PublicRequest, *, quantity: int = 1, now: datetime
) -> None:
    """Count `quantity` holds that were written in this transaction. Raises LimitReached."""
    if not request.has_solved_challenge:
        count_subjects(app, [(HOLDS, "")], now, times=quantity)


def read_emails(body: Any) -> set[str]:
    """The customers' valid addresses in canonical form, in a body that is not yet validated."""
    body = array_as_object(body)
    given = body if isinstance(body, Mapping) else {}
    customers = given.get("customers")
    people = [given.get("customer"), *(customers if isinstance(customers, list) else ())]
    texts = [person.get("email") for person in people if isinstance(person, Mapping)]
    return {canonical_address(text) for text in texts[:MAX_EMAILS] if is_address(text)}


def check_open_bookings(app: App, limit_keys: Collection[str], *, now: datetime) -> None:
    """Raise LimitReached if a customer has too many upcoming bookings, with the one just written.

    Retry-After does not depend on them: a stranger must not learn when somebody has a booking.
    """
    limit = limit_of(app, OPEN_PER_EMAIL)
    for key in limit_keys if limit else ():
        # By the index on the limit key; the app of a customer has no index.
        rows = Customer.objects.filter(app=app, limit_key=key, booking__deleted_at=None)
        rows = rows.filter(booking__completed=False, booking__event__end__gt=now)
        columns = ("booking", "booking__quantity")
        open_bookings = rows.order_by().values_list(*columns).distinct()
        number = sum(quantity or 1 for _, quantity in open_bookings)
        held = UnverifiedBooking.objects.filter(app=app, limit_key=key, ended_at=None)
        held = held.filter(expires_at__gt=now)
        number += sum(quantity or 1 for quantity in held.values_list("quantity", flat=True))
        if number > limit:
            raise LimitReached(OPEN_PER_EMAIL, HOUR)


# --- Proof of work --------------------------------------------------------------------------------
def needs_challenge(app: App) -> bool:
    return app.settings.get(CHALLENGE) == ALTCHA


def new_challenge(app: App, *, now: datetime) -> dict[str, Any]:
    return make_challenge(_challenge_key(app), now + CHALLENGE_LASTS)


def use_challenge(app: App, body: Any, *, now: datetime) -> bool:
    """Use up the body's solved challenge; return whether there is one.

    Raises ChallengeUnsolved if the app needs one, and for one that is not valid.
    """
    body = array_as_object(body)
    payload = body.get("challenge") if isinstance(body, Mapping) else None
    if payload is None and not needs_challenge(app):
        return False
    if not isinstance(payload, str):
        raise ChallengeUnsolved.at("challenge", NEEDS_CHALLENGE)
    solution = read_solution(_challenge_key(app), payload)
    if solution is None:
        raise ChallengeUnsolved.at("challenge", "Is not a solved challenge.")
    if solution.expires_at <= now:
        raise ChallengeUnsolved.at("challenge", "The challenge has expired.")
    if not count_first_use(app, CHALLENGE, solution.challenge, solution.expires_at):
        raise ChallengeUnsolved.at("challenge", "The challenge was already used.")
    return True


def _challenge_key(app: App) -> bytes:
    return keyed_digest("bookings.challenge", str(app.id))


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
