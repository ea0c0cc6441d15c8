"""Re-encrypt every stored secret with the first key, so that the other keys can be dropped.

`SECRET_COLUMNS` names every column that `encrypt_text` writes. Each secret is updated by its own
statement if it is unchanged since it was read: no lock is held longer, no deadlock is possible, and
concurrent changes stay.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from allauth.mfa.models import Authenticator
from django.db.models import BooleanField, ExpressionWrapper, Model, Q, QuerySet
from django.db.models.functions import Now

from common.db.batching import iterate_batches
from common.encryption import SecretUnreadable, decrypt_text, encrypt_text, is_under_first_key
from external_calendars.models import Connection, ConsentRequest, Grant, ProviderClient
from notifications.models import Webhook

BATCH = 500

# Under the first key; under another key; under no known key and in use; under no known key, unused.
CURRENT, OLDER, UNREADABLE, UNUSED = "current", "older", "unreadable", "unused"


class SecretColumn(NamedTuple):
    """`what`: the name of a row for operators. `in_use`: rows whose secret is still read.

    key: of the secret in a column of JSON objects; "": the column is the secret.
    """

    what: str
    model: type[Model]
    name: str
    in_use: Q
    key: str = ""

    def rows(self) -> QuerySet:
        """Return the rows with a secret, annotated with `is_in_use`."""
        is_in_use = ExpressionWrapper(self.in_use, output_field=BooleanField())
        has_secret = Q(**{f"{self.name}__has_key": self.key}) if self.key else ~Q(**{self.name: ""})
        rows = self.model._base_manager.filter(has_secret)
        return rows.only(self.name).annotate(is_in_use=is_in_use)


class StoredSecret(NamedTuple):
    column: SecretColumn
    pk: Any
    value: Any  # of the column
    state: str

    @property
    def token(self) -> str:
        return self.value[self.column.key] if self.column.key else self.value

    def value_with(self, token: str) -> Any:
        return self.value | {self.column.key: token} if self.column.key else token

    def __str__(self) -> str:
        return f"{self.column.what} {self.pk}: {self.column.name}"


_CALENDARS_IN_USE = Q(calendar__deleted_at=None, calendar__resource__deleted_at=None)
SECRET_COLUMNS = [
    SecretColumn("webhook", Webhook, "secret", Q(deleted_at=None)),
    SecretColumn(
        "webhook",
        Webhook,
        "previous_secret",
        Q(deleted_at=None, previous_until__gt=Now()),
    ),
    SecretColumn("calendar", Connection, "address", _CALENDARS_IN_USE),
    SecretColumn("calendar", Connection, "password", _CALENDARS_IN_USE),
    SecretColumn("grant", Grant, "refresh_token", Q(app__archived_at=None)),
    SecretColumn("grant", Grant, "access_token", Q(app__archived_at=None)),
    SecretColumn("request for consent", ConsentRequest, "verifier", Q(expires_at__gt=Now())),
    SecretColumn("calendar client", ProviderClient, "client_secret", Q(app__archived_at=None)),
    SecretColumn("second factor", Authenticator, "data", Q(user__is_active=True), "secret"),
    SecretColumn("recovery codes", Authenticator, "data", Q(user__is_active=True), "seed"),
]


def count_secrets() -> int:
    return sum(column.rows().count() for column in SECRET_COLUMNS)


def scan_secrets(*, batch: int = BATCH) -> Iterator[Sequence[StoredSecret]]:
    """Yield all secrets, one query per batch; changes nothing."""
    for column in SECRET_COLUMNS:
        for rows in iterate_batches(column.rows(), batch):
            yield [_read(column, row) for row in rows]


def reencrypt_secrets(*, batch: int = BATCH) -> Iterator[Sequence[StoredSecret]]:
    """Re-encrypt OLDER secrets with the first key; yield all secrets as they were before.

    May be stopped at any point and repeated.
    """
    for stored_secret in scan_secrets(batch=batch):
        yield [_reencrypt(secret) for secret in stored_secret]


def _read(column: SecretColumn, row: Model) -> StoredSecret:
    secret = StoredSecret(column, row.pk, getattr(row, column.name), CURRENT)
    try:
        state = CURRENT if is_under_first_key(secret.token) else OLDER
    except SecretUnreadable:
        state = UNREADABLE if vars(row)["is_in_use"] else UNUSED
    return secret._replace(state=state)


def _reencrypt(secret: StoredSecret) -> StoredSecret:
    """Re-encrypt an OLDER secret; one that has changed meanwhile is read and encrypted again.

    A process that does not know the first key yet may have written it.
    """
    column = secret.column
    while secret.state == OLDER:
        fresh = secret.value_with(encrypt_text(decrypt_text(secret.token)))
        # Without a join: it would become a subquery, which is not re-evaluated behind a lock.
        read = column.model._base_manager.filter(pk=secret.pk, **{column.name: secret.value})
        if read.update(**{column.name: fresh}):
            break
        row = column.rows().filter(pk=secret.pk).first()
        if row is None:
            break
        secret = _read(column, row)
    return secret
