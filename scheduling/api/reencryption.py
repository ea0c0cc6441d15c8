"""Bring every secret at rest under the first key, so that the others can be dropped.

Each room names its columns (`keeps_secrets`), beside their model. A secret is written by itself, in
one statement that asks for what was read: so no lock is held for longer, nobody waits in a circle,
and what somebody else has written meanwhile stays.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import BooleanField, ExpressionWrapper, Model, Q, QuerySet

from scheduling.api.secrets import (
    SecretUnreadable,
    decrypt_text,
    encrypt_text,
    is_under_first_key,
)
from scheduling.api.slices import by_slices

BATCH = 500

# Under the first key; under another; under none, and read by somebody; under none, and by nobody.
CURRENT, OLDER, UNREADABLE, UNUSED = "current", "older", "unreadable", "unused"


class Column(NamedTuple):
    """`what`: as operators call a row. `in_use`: of which rows the secret is still read."""

    what: str
    model: type[Model]
    name: str
    in_use: Q

    def rows(self) -> QuerySet:
        """Those with a secret; each knows whether it `is_in_use`."""
        is_in_use = ExpressionWrapper(self.in_use, output_field=BooleanField())
        rows = self.model._base_manager.exclude(**{self.name: ""})
        return rows.only(self.name).annotate(is_in_use=is_in_use)


class Secret(NamedTuple):
    """One row's, as it was read."""

    column: Column
    pk: Any
    token: str
    state: str

    def __str__(self) -> str:
        return f"{self.column.what} {self.pk}: {self.column.name}"


COLUMNS: list[Column] = []


def keeps_secrets(what: str, model: type[Model], *names: str, in_use: Q) -> None:
    """Have these columns, written by `encrypt_text` or empty, looked after.

    keeps_secrets("webhook", Webhook, "secret", in_use=Q(deleted_at=None))
    """
    COLUMNS.extend(Column(what, model, name, in_use) for name in names)


def count_secrets() -> int:
    return sum(column.rows().count() for column in COLUMNS)


def look_at_secrets(*, batch: int = BATCH) -> Iterator[Sequence[Secret]]:
    """All of them, a query at a time; changes nothing."""
    for column in COLUMNS:
        for rows in by_slices(column.rows(), batch):
            yield [_read(column, row) for row in rows]


def reencrypt_secrets(*, batch: int = BATCH) -> Iterator[Sequence[Secret]]:
    """As they were; those that were OLDER are under the first key now.

    May be left off anywhere and begun anew.
    """
    for found in look_at_secrets(batch=batch):
        yield [_reencrypt(secret) for secret in found]


def _read(column: Column, row: Any) -> Secret:
    token = getattr(row, column.name)
    try:
        state = CURRENT if is_under_first_key(token) else OLDER
    except SecretUnreadable:
        state = UNREADABLE if row.is_in_use else UNUSED
    return Secret(column, row.pk, token, state)


def _reencrypt(secret: Secret) -> Secret:
    """What was changed since it was read is read again: it may be by a process that does not know
    the first key yet."""
    column = secret.column
    while secret.state == OLDER:
        fresh = encrypt_text(decrypt_text(secret.token))
        # Without a join: then it would be a subquery, which is not asked again behind a lock.
        read = column.model._base_manager.filter(pk=secret.pk, **{column.name: secret.token})
        if read.update(**{column.name: fresh}):
            break
        row = column.rows().filter(pk=secret.pk).first()
        if row is None:
            break
        secret = _read(column, row)
    return secret
