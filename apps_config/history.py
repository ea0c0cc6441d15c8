"""Change history of an app's configuration: who changed what.

The rows are django-simple-history's. The entry point (API key or back-office account) sets the
actor for the duration of the request.
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
class ChangeActor:
    """The actor of a change: an account, if there is one, and a text for the log."""

    account_id: uuid.UUID | None
    words: str


_change_actor: ContextVar[ChangeActor | None] = ContextVar("acting", default=None)


@contextmanager
def change_actor(account_id: uuid.UUID | None, words: str) -> Iterator[None]:
    """Attribute the changes made inside the context to this account or key."""
    token = _change_actor.set(ChangeActor(account_id, words))
    try:
        yield
    finally:
        _change_actor.reset(token)


def current_actor() -> str:
    """Return the actor of the present request or command; "" if nobody is named."""
    acting = _change_actor.get()
    return acting.words if acting else ""


class ChangeHistory(HistoricalRecords):
    """A model's history, without stamps and secret fields."""

    def __init__(self, *, leave_out: Sequence[str] = ("updated_at",)) -> None:
        super().__init__(
            excluded_fields=list(leave_out),
            user_db_constraint=False,  # an account may be deleted; its history stays
        )

    def create_historical_record(
        self, instance: models.Model, history_type: str, using: str | None = None
    ) -> None:
        record_history([instance], history_type)


def record_history(rows: Collection[Any], history_type: str) -> None:
    """Record the history of rows of one model that were written together: `+` created, `~` changed,
    `-` deleted.

    One statement, however many rows there are.
    """
    if not rows:
        return
    # Not `.history`: the descriptor makes a manager class each time it is read.
    history = vars(type(next(iter(rows))))["history"].model
    acting = _change_actor.get()
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
