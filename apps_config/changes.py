"""The feed of an app's changes (GET /v2/changes): their numbers, cursors and retention.

Triggers write a row of `Change` in the transaction of each change. Transactions commit in another
order than they write, so a reader of the ids would skip the rows that commit late. Rows are
therefore numbered once no row can come before them: on PostgreSQL those whose transaction is older
than every open one of the database (`number_changes` in migrations/0005_changes.postgresql.sql).
SQLite writes one transaction at a time. The numbers of an app have no gaps and never change.
"""

import hashlib
import re
import uuid
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection, models, transaction
from django.db.models import Min, Q, QuerySet

from apps_config.models import App, Change, ChangeFeed
from common.db.updated_at import TransactionStart
from common.errors import CursorExpired, Invalid
from common.messages import Message

KEPT_FOR = timedelta(days=30)
AT_ONCE = 5000  # changes of an app that are numbered in one transaction
SCANNED = 10_000  # changes that one request reads at most, whatever their types
BATCH = 1000
MARK_LENGTH = 16
CURSOR = re.compile(rf"(?P<number>[0-9]{{1,18}})-(?P<mark>(?:[0-9a-f]{{{MARK_LENGTH}}})?)")


class Position(NamedTuple):
    """A place in the feed of an app, between two changes; the text is a cursor.

    mark: tells the change with the number from another one that got the same number in a restored
    backup or on a standby that was promoted. Empty: no change.
    """

    number: int
    mark: str

    @classmethod
    def after(cls, change: Change) -> "Position":
        content = f"{change.object_id} {change.action} {change.at.isoformat()}"
        return cls(change.number or 0, hashlib.sha256(content.encode()).hexdigest()[:MARK_LENGTH])

    @classmethod
    def read(cls, text: str) -> "Position":
        """Raises Invalid at `cursor`."""
        read = CURSOR.fullmatch(text)
        if read is None:
            raise Invalid.at("cursor", Message("Is no cursor of this list."))
        return cls(int(read["number"]), read["mark"])

    def __str__(self) -> str:
        return f"{self.number}-{self.mark}"


class Part(NamedTuple):
    """What one request reads: changes, the place after them, and whether there are more."""

    changes: list[Change]
    end: Position
    has_more: bool


def number_changes(app_id: uuid.UUID) -> int:
    """Number the app's changes that are ready; return how many. A transaction of its own."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            return _number_on_postgresql(app_id)
        return _number_on_sqlite(app_id)


def _number_on_postgresql(app_id: uuid.UUID) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT number_changes(%s, %s)", [app_id, AT_ONCE])
        return cursor.fetchone()[0]


def _number_on_sqlite(app_id: uuid.UUID) -> int:
    feed, _ = ChangeFeed.objects.get_or_create(app_id=app_id)
    rows = list(_pending(app_id).order_by("id")[:AT_ONCE])
    for number, row in enumerate(rows, feed.last_number + 1):
        row.number = number
    Change.objects.bulk_update(rows, ["number"])
    feed.last_number += len(rows)
    feed.save()
    return len(rows)


def _pending(app_id: uuid.UUID) -> QuerySet[Change]:
    return Change.objects.filter(app=app_id, number=None)


def number_all_changes() -> None:
    """Number the changes of all apps, so that their readers find few left."""
    rows = Change.objects.filter(number=None).order_by()
    for app_id in list(rows.values_list("app", flat=True).distinct()):
        while number_changes(app_id) == AT_ONCE:
            pass


def oldest_unnumbered() -> datetime | None:
    """Return when the oldest change without a number was made; None: there is none."""
    return Change.objects.filter(number=None).aggregate(oldest=Min("at"))["oldest"]


def read_changes(
    app: App,
    after: Position | None,
    *,
    types: Collection[str],
    visible: Q | None = None,
    limit: int,
) -> Part:
    """Return the changes of these types after the position; None: the present one, without any.
    visible: those that the reader may see; None: all.

    A part may be empty although more follow: a request reads at most SCANNED changes. Raises
    CursorExpired if a change after the position was deleted, or if it is of a history that was
    lost with a restore or a failover.
    """
    last = _last_number(app)
    if after is None:
        return Part([], _position_at(app, last), has_more=False)
    if after.number > last:
        raise CursorExpired
    until = min(after.number + SCANNED, last)
    rows = Change.objects.filter(app=app, number__range=(after.number, until))
    asked = Q(type__in=types) & (visible or Q())
    rows = rows.filter(asked | Q(number=after.number)).order_by("number")
    found = list(rows[: limit + 2])
    if found and found[0].number == after.number:
        if Position.after(found.pop(0)) != after:
            raise CursorExpired
    elif after.number < last:
        _check_is_kept(app, after.number + 1)
    changes = found[:limit]
    if len(found) > limit:
        return Part(changes, Position.after(changes[-1]), has_more=True)
    end = _position_at(app, until) if until > after.number else after
    return Part(changes, end, has_more=until < last)


def present_cursor(app_id: uuid.UUID) -> str:
    """Return the cursor before every change of the present transaction. Two queries."""
    feed = ChangeFeed.objects.filter(app=app_id).first()
    return str(_position_at(app_id, feed.last_number if feed else 0))


def _last_number(app: App) -> int:
    """Return the number of the last change, after those that are ready are numbered."""
    if _pending(app.id).exists():
        number_changes(app.id)
    feed = ChangeFeed.objects.filter(app=app).first()
    return feed.last_number if feed else 0


def _position_at(app: App | uuid.UUID, number: int) -> Position:
    change = Change.objects.filter(app=app, number=number).first()
    return Position.after(change) if change else Position(number, "")


def _check_is_kept(app: App, number: int) -> None:
    """Raise CursorExpired if the change with the number was deleted."""
    if not Change.objects.filter(app=app, number=number).exists():
        raise CursorExpired


class TransactionId(models.Func):
    """The id of the transaction, as in the column `transaction`; 0 on SQLite."""

    output_field = models.BigIntegerField()
    template = "0"

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        sql = "pg_current_xact_id()::text::bigint"
        return self.as_sql(compiler, connection, template=sql, **context)


def record_erasures(type: str, apps: Mapping[uuid.UUID, uuid.UUID]) -> None:
    """Write a change of each object, id -> app, from which personal data was erased."""
    Change.objects.bulk_create(
        Change(
            app_id=app_id,
            type=type,
            action=Change.ERASED,
            at=TransactionStart(),
            object_id=object_id,
            transaction=TransactionId(),
        )
        for object_id, app_id in apps.items()
    )


def purge_changes(*, now: datetime) -> Iterator[int]:
    """Delete changes after KEPT_FOR, one transaction per batch; yield the number of each."""
    last = 0
    while True:
        # Ids are about in the order of time: the first young one ends the search.
        rows = Change.objects.filter(id__gt=last).order_by("id")
        oldest = list(rows.values_list("id", "at", "number")[:BATCH])
        old = [id for id, at, number in oldest if at < now - KEPT_FOR and number is not None]
        if not old:
            return
        Change.objects.filter(id__in=old).delete()
        last = old[-1]
        yield len(old)
