"""Many changes in one request: each for itself, or all or none."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from apps_config.models import App
from bookings.models import Booking, Bulk
from scheduling.api.beforehand import Unasked, asks_first, merged
from scheduling.api.errors import Refusal, is_outage, refusal_of

logger = logging.getLogger(__name__)

Change = Callable[[], Booking]


class NotAttempted(Refusal):
    """An earlier change of the request failed, and it was to stop there."""

    code = "not_attempted"

    def __init__(self) -> None:
        super().__init__("Not attempted: an earlier one failed.")


class NotKept(Refusal):
    """It would have gone well, but another change of the request failed."""

    code = "not_kept"

    def __init__(self) -> None:
        super().__init__("Taken back: another one failed.")


class Outcome(NamedTuple):
    """What came of one change: its booking, or why there is none."""

    booking: Booking | None
    refusal: Refusal | None


class _TakenBack(Exception):
    """Undoes the transaction around all changes."""


def change_all(
    changes: Sequence[Change], *, stop_on_first_error: bool, all_or_none: bool, is_kept: bool
) -> list[Outcome]:
    """The outcomes in order. Every change is a transaction of its own; with `all_or_none` one
    that fails takes the others back.

    A database that is busy or away fails one change like any other refusal, since those before it
    stand. Where all go together, or the answer is kept for an Idempotency-Key in a transaction
    around all (`is_kept`), it fails the request, which may be sent again.
    """
    if not all_or_none:
        return _outcomes(changes, stop_on_first_error, outage_fails_all=is_kept)
    return _all_or_none(changes, stop_on_first_error)


@asks_first
def _all_or_none(changes: Sequence[Change], stop_on_first_error: bool) -> list[Outcome]:
    outcomes: list[Outcome] = []
    try:
        with transaction.atomic():
            outcomes += _outcomes(changes, stop_on_first_error, outage_fails_all=True)
            if any(outcome.refusal for outcome in outcomes):
                raise _TakenBack
    except _TakenBack:
        return [outcome if outcome.refusal else Outcome(None, NotKept()) for outcome in outcomes]
    return outcomes


def _outcomes(
    changes: Sequence[Change], stop_on_first_error: bool, *, outage_fails_all: bool
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    questions: list[Unasked] = []
    for change in changes:
        if stop_on_first_error and any(outcome.refusal for outcome in outcomes):
            outcomes.append(Outcome(None, NotAttempted()))
            continue
        try:
            outcomes.append(_try(change, outage_fails_all))
        except Unasked as unasked:
            # The transaction around is to be undone: look on for what else there is to ask.
            questions.append(unasked)
    if questions:
        raise merged(questions)
    return outcomes


@asks_first
def _try(change: Change, outage_fails_all: bool) -> Outcome:
    try:
        with transaction.atomic():
            return Outcome(change(), None)
    except Unasked:
        raise
    except Exception as error:
        if outage_fails_all and is_outage(error):
            raise
        refusal = refusal_of(error)
        if refusal.code == "internal":
            logger.exception("UNEXPECTED_ERROR in one of many changes")
        return Outcome(None, refusal)


@contextmanager
def related(app: App, *, wanted: bool, now: datetime) -> Iterator[Bulk | None]:
    """What the bookings of one request share, if they are to be related; gone where none is."""
    bulk = Bulk.objects.create(app=app, created_at=now) if wanted else None
    try:
        yield bulk
    finally:
        if bulk:
            Bulk.objects.filter(id=bulk.id, bookings=None).delete()
