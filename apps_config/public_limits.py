"""Limits of what public pages may book, counted in the database for all processes.

- Attempts per client network are counted before the transaction of the booking, in a statement of
  its own: a rollback does not undo the count.
- Bookings per e-mail address and holds per minute are counted in the transaction that makes them:
  the limits are exact, and what is refused is not counted. Few requests count in the same row.
- Bookings, moves and holds of an app are counted after the commit. In the transaction, one row
  would make all public requests of an app wait for each other. Requests at the same time may exceed
  this limit, after which the app only asks for challenges.

Addresses are stored as keyed digests.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.db.models import Sum
from django.http import HttpRequest

from apps_config.models import App, RequestCount
from common.db.batching import delete_in_batches
from common.db.sql import count_up
from common.email_address import canonical_address, canonical_pattern, limit_key
from common.errors import Forbidden, RateLimited, ignore_database_outage
from common.limits.rate_limit import RefusedKeys, digest_key, forwarded_by_unknown_proxy
from common.time.instants import to_datetime

PER_ADDRESS = "public_bookings_per_address_per_hour"
PER_EMAIL = "public_bookings_per_email_per_day"
PER_APP = "public_bookings_per_app_per_minute"
OPEN_PER_EMAIL = "public_open_bookings_per_email"
HOLDS = "holds_per_minute"
HELD_SHARE = "held_share"
BLOCKED_CUSTOMERS = "blocked_customers"
CODES = "verification_codes"
BOOKING_LINKS = "own_bookings_links"
CHALLENGE = "public_challenge"
MAX_LIMIT = 1_000_000
PURGE_SLICE = 5000

MINUTE, HOUR, DAY = 60, 3600, 86_400


class PublicLimit(NamedTuple):
    """A limit by default, its window in seconds, and the error above it.

    is_lifted: a request with a solved challenge passes, however much was counted.
    """

    default: int
    seconds: int
    sentence: str
    is_lifted: bool = False


LIMITS: Mapping[str, PublicLimit] = {
    PER_ADDRESS: PublicLimit(20, HOUR, "Too many booking attempts from this network address."),
    PER_EMAIL: PublicLimit(10, DAY, "Too many bookings for this e-mail address.", is_lifted=True),
    OPEN_PER_EMAIL: PublicLimit(20, DAY, "This e-mail address has too many upcoming bookings."),
    PER_APP: PublicLimit(120, MINUTE, "Too many bookings at the moment.", is_lifted=True),
    HOLDS: PublicLimit(60, MINUTE, "Too many holds at the moment.", is_lifted=True),
    # Per cent of the free time of a day.
    HELD_SHARE: PublicLimit(20, DAY, "Too much of this day is being held at the moment."),
    CODES: PublicLimit(3, HOUR, "Too many codes were sent to this e-mail address."),
    BOOKING_LINKS: PublicLimit(3, HOUR, "Too many links were requested for this e-mail address."),
}
NEEDS_CHALLENGE = "Required: a solved challenge (GET /v2/challenge)."
SOLVE = "Send a solved challenge (GET /v2/challenge), or try again later."
# The reasons of refusals; the others are in LIMITS.
REASONS = (*LIMITS, BLOCKED_CUSTOMERS, CHALLENGE)
UNKNOWN_PROXY = "unknown_proxy"
FORWARDED = "forwarded_for"
REFUSAL_PREFIX = "refused:"
refused_keys = RefusedKeys()


class LimitReached(RateLimited):
    """A public limit is reached; `kind` is its key in LIMITS.

    Where a solved challenge lifts the limit, `errors` says so, as for an app that always needs one.
    """

    def __init__(self, kind: str, retry_after: float) -> None:
        limit = LIMITS[kind]
        self.kind = kind
        if limit.is_lifted:
            super().__init__(retry_after, f"{limit.sentence} {SOLVE}")
            self.fields["errors"] = {"challenge": [NEEDS_CHALLENGE]}
        else:
            super().__init__(retry_after, limit.sentence)


class CustomerBlocked(Forbidden):
    """The address matches one of the app's `blocked_customers`."""

    def __init__(self) -> None:
        super().__init__("This e-mail address can't be used to book here.")


def limit_of(app: App, kind: str) -> int:
    """The app's limit, else the default; 0 = off."""
    value = app.settings.get(kind)
    return value if type(value) is int and 0 <= value <= MAX_LIMIT else LIMITS[kind].default


def count_booking_attempt(app: App, *, network: str, now: datetime) -> None:
    """Count an attempt to book by client network. Raises LimitReached."""
    count_subjects(app, [(PER_ADDRESS, network)], now)


def count_public_success(app: App, *, quantity: int = 1, now: datetime) -> None:
    """Count what a public caller has made, after its commit: bookings, holds or a move."""
    with suppress(LimitReached), ignore_database_outage():
        count_subjects(app, [(PER_APP, "")], now, times=quantity)


def count_subjects(
    app: App, subjects: Sequence[tuple[str, str]], now: datetime, *, times: int = 1
) -> None:
    """Count `times` requests for each (limit, subject), in one statement. Raises LimitReached.

    In a transaction: the counted rows are locked until it ends, so no more than the limit commit.
    """
    keys = _keys_of(app, subjects, now)
    _raise_if_cached(keys, now)
    rows = [
        {"app": app.id, "kind": key.kind, "subject": key.subject, "expires_at": key.ends}
        for key in keys
    ]
    counts = count_up(RequestCount, rows, by="subject", times=times) if rows else {}
    for key in keys:
        if counts[key.subject] > key.limit:
            raise _refusal(key, now)


def check_subjects(app: App, subjects: Sequence[tuple[str, str]], now: datetime) -> None:
    """Raise LimitReached if a (limit, subject) is used up; counts nothing. One query."""
    keys = _keys_of(app, subjects, now)
    _raise_if_cached(keys, now)
    kinds, found = {key.kind for key in keys}, [key.subject for key in keys]
    rows = RequestCount.objects.filter(app=app, kind__in=kinds, subject__in=found)
    counts = dict(rows.filter(expires_at__gt=now).values_list("subject", "count"))
    for key in keys:
        if counts.get(key.subject, 0) >= key.limit:
            raise _refusal(key, now)


def _raise_if_cached(keys: Sequence["_Key"], now: datetime) -> None:
    for key in keys:
        left = refused_keys.seconds_left(key.memo, now.timestamp())
        if left:
            raise LimitReached(key.kind, left)


def _refusal(key: "_Key", now: datetime) -> LimitReached:
    refused_keys.add(key.memo, key.ends.timestamp())
    return LimitReached(key.kind, (key.ends - now).total_seconds())


def _keys_of(app: App, subjects: Sequence[tuple[str, str]], now: datetime) -> list["_Key"]:
    """The keys of the subjects whose limit is on."""
    return [
        _Key(kind, digest_key(f"{app.id} {kind} {text}"), limit, _window_end(kind, now))
        for kind, text in subjects
        if (limit := limit_of(app, kind))
    ]


class _Key(NamedTuple):
    kind: str
    subject: str
    limit: int
    ends: datetime

    @property
    def memo(self) -> str:
        """Another limit is another key, so that a raised limit takes effect at once."""
        return f"{self.subject} {self.limit}"


def _window_end(kind: str, now: datetime) -> datetime:
    seconds = LIMITS[kind].seconds
    return to_datetime((int(now.timestamp()) // seconds + 1) * seconds)


def count_first_use(app: App, kind: str, subject: str, expires_at: datetime) -> bool:
    """Count a use of `subject`; return whether it is the first one, in any process.

    expires_at: until when the subject can be used; the count is stored that long.
    """
    row = _count_values(app, kind, subject, expires_at)
    return count_up(RequestCount, [row], by="subject")[row["subject"]] == 1


def was_used(app: App, kind: str, subject: str, expires_at: datetime) -> bool:
    """Whether a use was counted by `count_first_use`."""
    return RequestCount.objects.filter(**_count_values(app, kind, subject, expires_at)).exists()


def _count_values(app: App, kind: str, subject: str, expires_at: datetime) -> dict[str, Any]:
    digest = digest_key(f"{app.id} {kind} {subject}")
    return {"app": app.id, "kind": kind, "subject": digest, "expires_at": expires_at}


# --- Blocked customers ----------------------------------------------------------------------------
def check_not_blocked(app: App, emails: Collection[str]) -> None:
    """Raise CustomerBlocked if an address, with or without its `+tag`, matches a pattern such as
    `*@spam.example`. A pattern without `*` is an address: it blocks its mailbox.
    """
    patterns = app.settings.get(BLOCKED_CUSTOMERS)
    forms = {form for email in emails for form in (canonical_address(email), limit_key(email))}
    for pattern in patterns if isinstance(patterns, list) else ():
        if isinstance(pattern, str) and _matches_any(forms, pattern):
            raise CustomerBlocked


def _matches_any(forms: Collection[str], pattern: str) -> bool:
    """`*` stands for any text; nothing else is special."""
    if "*" not in pattern:
        return limit_key(pattern) in forms
    try:
        escaped = canonical_pattern(pattern).replace("[", "[[]").replace("?", "[?]")
    except ValidationError:  # written without the services
        return False
    return any(fnmatchcase(form, escaped) for form in forms)


# --- What the dashboard shows ---------------------------------------------------------------------
def count_refusal(app: App, reason: str, *, now: datetime) -> None:
    """Count a refused public request for the dashboard."""
    _count_for_dashboard(app, f"{REFUSAL_PREFIX}{reason}", now)


def record_unknown_proxy(app: App, request: HttpRequest, *, now: datetime) -> None:
    """Count a request that came through a proxy which TRUSTED_PROXIES does not count.

    A peer in a private network is such a proxy once it has sent two X-Forwarded-For within an hour:
    a client there may send one of its own. At most two rows for each peer.
    """
    forwarded = forwarded_by_unknown_proxy(request)
    if not forwarded:
        return
    peer = digest_key(f"{app.id} peer {request.META.get('REMOTE_ADDR')}")
    subject = peer + digest_key(f"{peer} {forwarded}")
    with ignore_database_outage():
        rows = RequestCount.objects.filter(app=app, kind=FORWARDED, expires_at__gt=now)
        known_subjects = {
            *rows.filter(subject__startswith=peer).values_list("subject", flat=True)[:2]
        }
        if len(known_subjects) < 2 and subject not in known_subjects:
            ends = now + timedelta(seconds=HOUR)
            row = {"app": app.id, "kind": FORWARDED, "subject": subject, "expires_at": ends}
            count_up(RequestCount, [row], by="subject")
            known_subjects.add(subject)
        if len(known_subjects) > 1:
            _count_for_dashboard(app, UNKNOWN_PROXY, now)


def _count_for_dashboard(app: App, kind: str, now: datetime) -> None:
    ends = to_datetime((int(now.timestamp()) // HOUR + 1) * HOUR) + timedelta(days=1)
    row = {"app": app.id, "kind": kind, "subject": kind, "expires_at": ends}
    with ignore_database_outage():
        count_up(RequestCount, [row], by="subject")


def refusals_of_a_day(apps: Any, now: datetime) -> dict[str, int]:
    """Refused public requests of the last 24 hours by reason. `apps`: a condition on the rows."""
    rows = RequestCount.objects.filter(
        apps, kind__in=[REFUSAL_PREFIX + reason for reason in REASONS], expires_at__gt=now
    )
    counts = dict(rows.order_by().values_list("kind").annotate(Sum("count")))
    return {
        reason: counts[REFUSAL_PREFIX + reason]
        for reason in REASONS
        if REFUSAL_PREFIX + reason in counts
    }


def saw_unknown_proxy(apps: Any, now: datetime) -> bool:
    """Whether a request of the last 24 hours came through a proxy that is not configured."""
    return RequestCount.objects.filter(apps, kind=UNKNOWN_PROXY, expires_at__gt=now).exists()


def purge_request_counts(*, now: datetime) -> Iterator[int]:
    """Delete expired counts; yields the size of each batch."""
    expired = RequestCount.objects.filter(expires_at__lte=now)
    yield from delete_in_batches(expired, "expires_at", PURGE_SLICE)
