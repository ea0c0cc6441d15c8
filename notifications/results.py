"""How the tries went: an Attempt for each, and where each delivery goes from there.

Every write asks for the lease's token: what another worker has taken over meanwhile is its own.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, QuerySet

from notifications.breaker import SLOW_SECONDS, note_results
from notifications.models import Attempt, Delivery, Endpoint
from notifications.services import note_webhook_results
from scheduling.api.sql import among, database_now, insert_rows, raw_moment, read_id

# After the first try, as Standard Webhooks advises: 10 tries in three days. Jitter is added.
CALL_DELAYS = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
# Of a mail; the last one again and again until it expires.
MAIL_DELAYS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))
JITTER = 0.2
LEAST_PAUSE = timedelta(seconds=30)  # where the time that is left is shared out


@dataclass(slots=True)
class Outcome:
    """How one try went.

    final: no further try would help. server_failed: the endpoint is in trouble, not this one call.
    keep: writes down what the try brought, in the transaction of its result, if the lease is still
    this worker's.
    """

    ok: bool
    seconds: float = 0.0
    response_code: int | None = None
    error: str = ""
    excerpt: str = ""
    retry_after: int | None = None
    final: bool = False
    server_failed: bool = False
    keep: Callable[[], None] | None = None


class Verdict(NamedTuple):
    """What a second look says of a delivery that is not to be sent."""

    state: str
    reason: str


def give_back(rows: Sequence[Delivery]) -> None:
    """Return claimed rows that were not tried: the try is not counted."""
    mine_alone(rows).update(
        state=Delivery.SCHEDULED,
        next_at=F("due_at"),
        lease_token=None,
        tries=F("tries") - 1,
    )


def drop(verdicts: Sequence[tuple[Delivery, Verdict]]) -> None:
    """End claimed rows that are not to be sent: the try is not counted."""
    now = database_now()
    with transaction.atomic():
        for row, verdict in verdicts:
            final = _final(verdict.state, verdict.reason, now)
            mine_alone([row]).update(**final, tries=F("tries") - 1)


def finish(results: Sequence[tuple[Delivery, Outcome]]) -> None:
    """Write down a batch of tries."""
    now = database_now()
    webhooks = defaultdict(list)
    for row, outcome in results:
        if row.webhook_id and row.type == Delivery.WEBHOOK:
            webhooks[row.webhook_id].append((outcome.ok, outcome.response_code))
    with transaction.atomic():
        mine = _end_delivered([row for row, outcome in results if outcome.ok], now)
        for row, outcome in results:
            if not outcome.ok and mine_alone([row]).update(**_after_failure(row, outcome, now)):
                mine.add(row.id)
        # Under the rows' locks, where an erasure finds them; of what was taken away meanwhile
        # nothing is kept that may repeat it.
        for row, outcome in results:
            if outcome.keep and row.id in mine:
                outcome.keep()
        attempts = [_attempt(row, outcome, now, row.id in mine) for row, outcome in results]
        insert_rows(attempts)
        _note_endpoints(results, now)
        note_webhook_results(webhooks, now=now)


def mine_alone(rows: Sequence[Delivery]) -> QuerySet[Delivery]:
    """Those of the rows that are still under the lease with which they were claimed."""
    return Delivery.objects.filter(
        id__in=[row.id for row in rows],
        lease_token__in={row.lease_token for row in rows},
        state=Delivery.SENDING,
    )


# By hand, because it ends every delivery that goes well (docs/benchmarks.md, P9).
_END = """
UPDATE notifications_delivery SET state = 'delivered', reason = '', next_at = NULL,
finished_at = %s, lease_token = NULL
WHERE id {ids} AND lease_token {tokens} AND state = 'sending' RETURNING id
"""


def _end_delivered(rows: Sequence[Delivery], now: datetime) -> set[UUID]:
    """The ids of those that were still this worker's."""
    if not rows:
        return set()
    ids, id_params = among(row.id for row in rows)
    tokens, token_params = among({row.lease_token for row in rows})
    with connection.cursor() as cursor:
        cursor.execute(
            _END.format(ids=ids, tokens=tokens),
            [raw_moment(now), *id_params, *token_params],
        )
        return {read_id(found) for (found,) in cursor.fetchall()}


def _final(state: str, reason: str, now: datetime) -> dict[str, object]:
    return {
        "state": state,
        "reason": reason[:300],
        "next_at": None,
        "finished_at": now,
        "lease_token": None,
    }


def _attempt(row: Delivery, outcome: Outcome, now: datetime, is_mine: bool) -> Attempt:
    return Attempt(
        delivery=row,
        at=now - timedelta(seconds=outcome.seconds),
        response_code=outcome.response_code,
        seconds=round(outcome.seconds, 3),
        error=outcome.error[:300],
        excerpt=outcome.excerpt if is_mine else "",
    )


def _after_failure(row: Delivery, outcome: Outcome, now: datetime) -> dict[str, object]:
    """The columns of a row whose try has failed: another try, or its end."""
    delay = None if outcome.final else delay_after(row.type, row.tries, outcome.retry_after)
    if delay is None:
        return _final(Delivery.FAILED, outcome.error, now)
    delay = in_time(delay, row.expires_at - now)
    if delay is None:
        return _final(Delivery.EXPIRED, outcome.error, now)
    return {
        "state": Delivery.SCHEDULED,
        "reason": outcome.error[:300],
        "next_at": now + delay,
        "lease_token": None,
    }


def in_time(delay: timedelta, left: timedelta) -> timedelta | None:
    """The delay, or half of the time that is left where it is longer; None: no time is left.

    A reminder of a quarter of an hour would not outlive an outage of seven minutes, nor many a call
    see its last try, which jitter carries past its expiry.
    """
    if delay <= left:
        return delay
    return left / 2 if left / 2 >= LEAST_PAUSE else None


def delay_after(kind: str, tries: int, retry_after: int | None = None) -> timedelta | None:
    """How long to wait after the try of that number (from 1); None: it was the last.

    What a server asks for by Retry-After is kept between once and twice the schedule's delay.
    """
    if kind == Delivery.EMAIL:
        return MAIL_DELAYS[min(tries, len(MAIL_DELAYS)) - 1]
    if tries > len(CALL_DELAYS):
        return None
    delay = CALL_DELAYS[tries - 1]
    if retry_after is not None:
        return min(max(timedelta(seconds=retry_after), delay), 2 * delay)
    return delay * random.uniform(1 - JITTER, 1 + JITTER)


def _note_endpoints(results: Sequence[tuple[Delivery, Outcome]], now: datetime) -> None:
    """Where all is well there is no row, and none is written."""
    marks: Mapping[str, list[tuple[bool, float]]] = defaultdict(list)
    for row, outcome in results:
        if row.endpoint:
            marks[row.endpoint].append((not outcome.server_failed, outcome.seconds))
    known = Endpoint.objects.filter(address__in=marks).values_list("address", flat=True)
    troubled = set(known) if marks else set()
    for address in sorted(marks):
        is_bad = any(not good or seconds > SLOW_SECONDS for good, seconds in marks[address])
        if is_bad or address in troubled:
            note_results(address, marks[address], now)
