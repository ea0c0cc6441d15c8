"""Record results: an Attempt for each, and the next state of each delivery.

Every state change requires the lease token: a row claimed by another worker is not changed.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, QuerySet

from common.db.sql import database_now, datetime_param, id_in_sql, insert_rows, to_uuid
from common.db.updated_at import transaction_start_sql
from common.messages import cut_message
from notifications.models import Attempt, Delivery, Endpoint
from notifications.outbox.circuit_breaker import (
    SLOW_SECONDS,
    TOO_MANY_FAILING,
    has_max_failing_servers,
    record_endpoint_results,
)
from notifications.outbox.lanes import recheck_lanes
from notifications.outbox.sent_emails import SentCopy, lock_further_bookings, store_copies
from notifications.webhooks.services import record_webhook_results

# Delays after the first attempts, as in Standard Webhooks: 10 attempts in three days, plus jitter.
CALL_DELAYS = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
# Delays of mails; the last one repeats until the mail expires.
MAIL_DELAYS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))
# After an e-mail that may have been delivered, and only once.
UNCONFIRMED_DELAY = timedelta(minutes=30)
JITTER = 0.2
MIN_PAUSE = timedelta(seconds=30)  # the shortest delay before expiry


@dataclass(slots=True)
class SendResult:
    """The result of one attempt.

    ok: sent; for an e-mail, to at least one recipient. is_unconfirmed: it may have been sent.
    final: no retry can help. server_failed: the endpoint failed, not only this call. keep: stores
    data from the attempt, in the transaction of its result, if this worker still holds the lease;
    so is sent_copy, what an e-mail said.
    """

    ok: bool
    seconds: float = 0.0
    response_code: int | None = None
    error: str = ""
    excerpt: str = ""
    retry_after: int | None = None
    final: bool = False
    server_failed: bool = False
    is_unconfirmed: bool = False
    keep: Callable[[], None] | None = None
    sent_copy: SentCopy | None = None


class FinalState(NamedTuple):
    """The final state of a delivery that is not sent, and the reason."""

    state: str
    reason: str


def release_unsent(rows: Sequence[Delivery]) -> None:
    """Release claimed rows that were not sent, and do not count the attempt."""
    with_lease(rows).update(
        state=Delivery.SCHEDULED,
        next_at=F("due_at"),
        lease_token=None,
        tries=F("tries") - 1,
    )


def finish_unsent(unsent: Sequence[tuple[Delivery, FinalState]]) -> None:
    """End claimed rows that are not to be sent, and do not count the attempt."""
    now = database_now()
    with transaction.atomic():
        for row, final_state in unsent:
            final = _final(final_state.state, final_state.reason, now)
            with_lease([row]).update(**final, tries=F("tries") - 1)
        recheck_lanes([row for row, _ in unsent], now)


def record_results(results: Sequence[tuple[Delivery, SendResult]]) -> None:
    """Record the results of a batch in one transaction; attempts after a lost lease separately."""
    now = database_now()
    webhooks = defaultdict(list)
    for row, outcome in results:
        if row.webhook_id and row.type == Delivery.WEBHOOK:
            webhooks[row.webhook_id].append((outcome.ok, outcome.response_code))
    copies = [(row, outcome.sent_copy) for row, outcome in results if outcome.sent_copy]
    with transaction.atomic():
        lock_further_bookings(copies)
        ended_ids = _end_delivered([row for row, outcome in results if outcome.ok], now)
        refused = _refused_retries(results)
        for row, outcome in results:
            if outcome.ok:
                continue
            values = (
                _final(Delivery.SKIPPED, TOO_MANY_FAILING, now)
                if row.id in refused
                else _after_failure(row, outcome, now)
            )
            if with_lease([row]).update(**values):
                ended_ids.add(row.id)
        # Under the rows' locks, so that an erasure finds the data; after a lost lease nothing is
        # stored that could repeat erased data.
        for row, outcome in results:
            if outcome.keep and row.id in ended_ids:
                outcome.keep()
        store_copies([copied for copied in copies if copied[0].id in ended_ids], now)
        insert_rows([_attempt(*result, now) for result in results if result[0].id in ended_ids])
        _update_circuit_breakers([result for result in results if result[0].id not in refused], now)
        record_webhook_results(webhooks, now=now)
        recheck_lanes([row for row, _ in results], now)
    for row, outcome in results:
        if row.id not in ended_ids:
            _record_lost_attempt(row, outcome, now)


def _record_lost_attempt(row: Delivery, outcome: SendResult, now: datetime) -> None:
    """Record an attempt after a lost lease, without its answer; locks no other row."""
    with transaction.atomic():
        if Delivery.objects.filter(id=row.id).update():  # else the row is deleted
            insert_rows([_attempt(row, replace(outcome, excerpt=""), now)])


def with_lease(rows: Sequence[Delivery]) -> QuerySet[Delivery]:
    """Return the rows whose lease is still the one of their claim."""
    return Delivery.objects.filter(
        id__in=[row.id for row in rows],
        lease_token__in={row.lease_token for row in rows},
        state=Delivery.SENDING,
    )


# Raw SQL because every successful delivery ends with it (docs/benchmarks.md, P9).
_END = """
UPDATE notifications_delivery SET state = 'delivered', reason = '', next_at = NULL,
finished_at = %s, lease_token = NULL, updated_at = {start}
WHERE id {ids} AND lease_token {tokens} AND state = 'sending' RETURNING id
"""


def _end_delivered(rows: Sequence[Delivery], now: datetime) -> set[UUID]:
    """Mark rows as delivered; return the ids of those whose lease was still held."""
    if not rows:
        return set()
    start, start_params = transaction_start_sql()
    ids, id_params = id_in_sql(row.id for row in rows)
    tokens, token_params = id_in_sql({row.lease_token for row in rows if row.lease_token})
    with connection.cursor() as cursor:
        cursor.execute(
            _END.format(start=start, ids=ids, tokens=tokens),
            [datetime_param(now), *start_params, *id_params, *token_params],
        )
        return {to_uuid(found) for (found,) in cursor.fetchall()}


def _final(state: str, reason: str, now: datetime) -> dict[str, object]:
    return {
        "state": state,
        "reason": cut_message(reason, 300),
        "next_at": None,
        "finished_at": now,
        "lease_token": None,
    }


def _refused_retries(results: Sequence[tuple[Delivery, SendResult]]) -> set[UUID]:
    """Return the ids of failed calls that get no retry.

    These are calls to a new server if MAX_FAILING_SERVERS servers of the app fail already.
    Otherwise an app could fill the queue and the breakers with servers that do not exist.
    """
    failed = [row for row, outcome in results if outcome.server_failed and row.endpoint]
    if not failed:
        return set()
    addresses = {row.endpoint for row in failed}
    failing_addresses = set(
        Endpoint.objects.filter(address__in=addresses).values_list("address", flat=True)
    )
    new = [row for row in failed if row.endpoint not in failing_addresses]
    full = {app_id for app_id in {row.app_id for row in new} if has_max_failing_servers(app_id)}
    return {row.id for row in new if row.app_id in full}


def _attempt(row: Delivery, outcome: SendResult, now: datetime) -> Attempt:
    return Attempt(
        app_id=row.app_id,
        delivery=row,
        at=now - timedelta(seconds=outcome.seconds),
        outcome=_attempt_outcome(outcome),
        response_code=outcome.response_code,
        seconds=round(outcome.seconds, 3),
        error=cut_message(outcome.error, 300),
        excerpt=outcome.excerpt,
    )


def _attempt_outcome(outcome: SendResult) -> str:
    if outcome.ok:
        return Attempt.OK
    return Attempt.UNCONFIRMED if outcome.is_unconfirmed else Attempt.FAILED


def _after_failure(row: Delivery, outcome: SendResult, now: datetime) -> dict[str, object]:
    """Return the columns of a row after a failed attempt: its retry or its end."""
    delay = None
    if outcome.is_unconfirmed:
        delay = None if _was_unconfirmed(row) else UNCONFIRMED_DELAY
    elif not outcome.final:
        delay = retry_delay(row.type, row.tries, outcome.retry_after)
    if delay is None:
        return _final(Delivery.FAILED, outcome.error, now)
    delay = fit_delay(delay, row.expires_at - now)
    if delay is None:
        return _final(Delivery.EXPIRED, outcome.error, now)
    return {
        "state": Delivery.SCHEDULED,
        "reason": cut_message(outcome.error, 300),
        "next_at": now + delay,
        "lease_token": None,
    }


def _was_unconfirmed(row: Delivery) -> bool:
    """Return whether an attempt may have sent it since it was scheduled (again)."""
    since = Attempt.objects.filter(delivery=row.id, at__gte=row.due_at)
    return since.filter(outcome=Attempt.UNCONFIRMED).exists()


def fit_delay(delay: timedelta, left: timedelta) -> timedelta | None:
    """Return the delay, at most half of the time left if it is longer; None: too little time.

    Otherwise a reminder 15 minutes ahead would not survive an outage of seven minutes, and jitter
    would move many a last attempt past the expiry.
    """
    if delay <= left:
        return delay
    return left / 2 if left / 2 >= MIN_PAUSE else None


def retry_delay(kind: str, tries: int, retry_after: int | None = None) -> timedelta | None:
    """Return the delay after attempt number `tries` (from 1); None: it was the last.

    A Retry-After is limited to between once and twice the scheduled delay.
    """
    if kind == Delivery.EMAIL:
        return MAIL_DELAYS[min(tries, len(MAIL_DELAYS)) - 1]
    if tries > len(CALL_DELAYS):
        return None
    delay = CALL_DELAYS[tries - 1]
    if retry_after is not None:
        return min(max(timedelta(seconds=retry_after), delay), 2 * delay)
    return delay * random.uniform(1 - JITTER, 1 + JITTER)


def _update_circuit_breakers(results: Sequence[tuple[Delivery, SendResult]], now: datetime) -> None:
    """Update the circuit breakers; a healthy endpoint has no row and causes no write."""
    marks: Mapping[str, list[tuple[bool, float]]] = defaultdict(list)
    for row, outcome in results:
        if row.endpoint:
            marks[row.endpoint].append((not outcome.server_failed, outcome.seconds))
    failing_addresses = Endpoint.objects.filter(address__in=marks).values_list("address", flat=True)
    failing = set(failing_addresses) if marks else set()
    for address in sorted(marks):
        is_bad = any(not good or seconds > SLOW_SECONDS for good, seconds in marks[address])
        if is_bad or address in failing:
            record_endpoint_results(address, marks[address], now)
