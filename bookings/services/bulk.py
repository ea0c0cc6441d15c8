"""Run many changes in one request: independently, or all or none."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction

from apps_config.models import App
from bookings.models import Booking, Bulk
from bookings.services.bulk_locks import lock_named_rows
from bookings.services.bulk_request import bulk_request
from common.db.calls_outside_transaction import (
    NeedsAnswer,
    merge_questions,
    with_calls_outside_transaction,
)
from common.errors import Refusal, is_outage, refusal_of

logger = logging.getLogger(__name__)

BulkChange = Callable[[], Booking]


class NotAttempted(Refusal):
    """Not attempted: an earlier change failed with `stop_on_first_error`."""

    code = "not_attempted"

    def __init__(self) -> None:
        super().__init__("Not attempted because an earlier booking failed.")


class NotKept(Refusal):
    """Rolled back: another change of the request failed."""

    code = "not_kept"

    def __init__(self) -> None:
        super().__init__("Rolled back because another booking failed.")


class BulkResult(NamedTuple):
    """The result of one change: its booking, or its refusal."""

    booking: Booking | None
    refusal: Refusal | None


class _RolledBack(Exception):
    """Rolls back the transaction of all changes."""


def run_bulk(
    changes: Sequence[BulkChange],
    *,
    app: App,
    bodies: Any,
    stop_on_first_error: bool,
    all_or_none: bool,
    honours_idempotency_key: bool,
) -> list[BulkResult]:
    """Run the changes; return their results in order. `bodies`: theirs, as sent.

    Each change is a transaction of its own; with `all_or_none` one failure rolls back all. A
    database outage is a refusal of the change like any other, since earlier changes are committed.
    With `all_or_none`, or if an enclosing transaction stores the answer for an Idempotency-Key
    (`honours_idempotency_key`), an outage fails the whole request, which can be retried.
    """
    with bulk_request():
        if all_or_none:
            return _all_or_none(changes, app, bodies, stop_on_first_error)
        if honours_idempotency_key:
            lock_named_rows(app, bodies)
        return _run_changes(changes, stop_on_first_error, outage_fails_all=honours_idempotency_key)


@with_calls_outside_transaction
def _all_or_none(
    changes: Sequence[BulkChange], app: App, bodies: Any, stop_on_first_error: bool
) -> list[BulkResult]:
    outcomes: list[BulkResult] = []
    try:
        with transaction.atomic():
            lock_named_rows(app, bodies)
            outcomes += _run_changes(changes, stop_on_first_error, outage_fails_all=True)
            if any(outcome.refusal for outcome in outcomes):
                raise _RolledBack
    except _RolledBack:
        return [outcome if outcome.refusal else BulkResult(None, NotKept()) for outcome in outcomes]
    return outcomes


def _run_changes(
    changes: Sequence[BulkChange], stop_on_first_error: bool, *, outage_fails_all: bool
) -> list[BulkResult]:
    outcomes: list[BulkResult] = []
    questions: list[NeedsAnswer] = []
    for change in changes:
        if stop_on_first_error and any(outcome.refusal for outcome in outcomes):
            outcomes.append(BulkResult(None, NotAttempted()))
            continue
        try:
            outcomes.append(_try(change, outage_fails_all))
        except NeedsAnswer as unasked:
            # The enclosing transaction will be rolled back: continue, to collect all questions.
            questions.append(unasked)
    if questions:
        raise merge_questions(questions)
    return outcomes


@with_calls_outside_transaction
def _try(change: BulkChange, outage_fails_all: bool) -> BulkResult:
    try:
        with transaction.atomic():
            return BulkResult(change(), None)
    except NeedsAnswer:
        raise
    except Exception as error:
        if outage_fails_all and is_outage(error):
            raise
        refusal = refusal_of(error)
        if refusal.code == "internal":
            logger.exception("UNEXPECTED_ERROR in one of many changes")
        return BulkResult(None, refusal)


@contextmanager
def create_bulk(app: App, *, wanted: bool, now: datetime) -> Iterator[Bulk | None]:
    """If `wanted`, yield a Bulk for the bookings of a request; delete it if it stays unused."""
    bulk = Bulk.objects.create(app=app, created_at=now) if wanted else None
    try:
        yield bulk
    finally:
        if bulk:
            Bulk.objects.filter(id=bulk.id, bookings=None).delete()
