"""Who changed what: each change of what an app is set up with leaves a row of history.

The rows are django-simple-history's. Who acts is known at the door (the API's key, the back
office's account) and kept for as long as the request lasts.
"""

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils import timezone
from simple_history.models import HistoricalRecords


@dataclass(frozen=True, slots=True)
class Acting:
    """Who is at work: an account where there is one, and the words for the log."""

    account_id: uuid.UUID | None
    words: str


_acting: ContextVar[Acting | None] = ContextVar("acting", default=None)


@contextmanager
def acting_as(account_id: uuid.UUID | None, words: str) -> Iterator[None]:
    """Changes made inside are written down as those of this account or key."""
    token = _acting.set(Acting(account_id, words))
    try:
        yield
    finally:
        _acting.reset(token)


class History(HistoricalRecords):
    """A model's history. Stamps and what nobody may read stay out of it."""

    def __init__(self, *, leave_out: Sequence[str] = ("updated_at",)) -> None:
        super().__init__(
            excluded_fields=list(leave_out),
            user_db_constraint=False,  # an account may go; what it did has been done
        )

    def create_historical_record(
        self, instance: models.Model, history_type: str, using: str | None = None
    ) -> None:
        record_changes([instance], history_type)


def record_changes(rows: Collection[Any], history_type: str) -> None:
    """History of rows of one model that were written together: `+` made, `~` changed, `-` removed.

    One statement however many rows there are.
    """
    if not rows:
        return
    history = type(next(iter(rows))).history.model
    acting = _acting.get()
    history.objects.bulk_create(
        history(
            history_date=timezone.now(),
            history_type=history_type,
            history_user_id=acting.account_id if acting else None,
            history_change_reason=acting.words if acting else "",
            **{field.attname: getattr(row, field.attname) for field in history.tracked_fields},
        )
        for row in rows
    )
