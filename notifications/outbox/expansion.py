"""Expand the calls of changes to deliveries, one per webhook.

The transaction of a change holds the lock of the resource, so it writes one `ChangeCalls` row,
however many webhooks the app has. A worker writes the deliveries before it claims.
"""

from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter, itemgetter
from uuid import UUID

from django.db import transaction

from common.db.ids import new_tenant_id
from common.db.sql import insert_rows
from notifications.models import ChangeCalls, ChangeCallsQuerySet, Delivery, Webhook
from notifications.outbox.circuit_breaker import endpoint_of
from notifications.outbox.lanes import in_turns
from notifications.planning import CALL_EXPIRES_AFTER, REASSIGNED, is_told_as_reassigned

MAX_PENDING = 1000  # changes of which an expansion chooses
MAX_CHANGES = 100  # that an expansion locks
MAX_CALLS = 1000  # deliveries that it writes, unless one change has more


def expand_changes() -> bool:
    """Expand the changes that are pending longest; return whether there were any.

    An expansion locks its changes and never waits for those of another one.
    """
    changes = _next_changes()
    if not changes:
        return False
    with transaction.atomic():
        rows = _lock(ChangeCalls.objects.filter(change__in=changes), skip_locked=True)
        _expand(_first_calls(sorted(rows, key=lambda row: changes.index(row.change_id))))
    return bool(rows)


def expand_changes_of(bookings: Collection[UUID]) -> None:
    """Expand all pending changes of the bookings, in the caller's transaction."""
    _expand(_lock(ChangeCalls.objects.filter(change__booking__in=bookings), skip_locked=False))


def _next_changes() -> list[UUID]:
    """Return the ids of changes to expand. Apps take turns, so that none delays the others."""
    changes: list[tuple[UUID, UUID]] = []
    while True:
        # Of an app with more changes than are read, the next read leaves out all.
        pending = ChangeCalls.objects.pending().exclude(change__app__in={app for app, _ in changes})
        oldest = pending.order_by("waiting_since", "change").values_list("change__app", "change")
        read = list(oldest[:MAX_PENDING])
        changes += read
        if len(read) < MAX_PENDING:
            return [change for _, change in in_turns(changes, app_of=itemgetter(0))][:MAX_CHANGES]


def _lock(changes: ChangeCallsQuerySet, *, skip_locked: bool) -> list[ChangeCalls]:
    """Lock and return those of the changes that are still pending, the oldest first."""
    rows = changes.pending().select_related("change").defer("body")
    rows = rows.select_for_update(of=("self",), no_key=True, skip_locked=skip_locked)
    return list(rows.order_by("waiting_since", "change"))


def _first_calls(rows: Sequence[ChangeCalls]) -> list[ChangeCalls]:
    """Return the first rows that have MAX_CALLS calls together."""
    chosen: list[ChangeCalls] = []
    count = 0
    for row in rows:
        count += len(row.webhooks)
        if chosen and count > MAX_CALLS:
            break
        chosen.append(row)
    return chosen


def _expand(rows: Sequence[ChangeCalls]) -> None:
    if not rows:
        return
    webhooks = Webhook.objects.in_bulk({UUID(each) for row in rows for each in row.webhooks})
    deliveries = [delivery for row in rows for delivery in _deliveries(row, webhooks)]
    # In one order, so that no two expansions deadlock at the counts of the delivery log.
    insert_rows(sorted(deliveries, key=attrgetter("app_id", "webhook_id")))
    ChangeCalls.objects.filter(change__in=[row.change_id for row in rows]).update(
        waiting_since=None, webhooks=[]
    )


def _deliveries(row: ChangeCalls, webhooks: dict[UUID, Webhook]) -> Iterator[Delivery]:
    change = row.change
    called = [webhooks[id] for each in row.webhooks if (id := UUID(each)) in webhooks]
    due_at = row.waiting_since or change.created_at
    for number, webhook in enumerate(called, row.first_number):
        yield Delivery(
            id=new_tenant_id(change.app_id),
            app_id=change.app_id,
            booking_id=change.booking_id,
            change=change,
            number=number,
            webhook=webhook,
            type=Delivery.WEBHOOK,
            kind=REASSIGNED if is_told_as_reassigned(change, webhook.kinds) else row.kind,
            version=row.version,
            endpoint=endpoint_of(webhook.url),
            due_at=due_at,
            next_at=due_at,
            expires_at=change.created_at + CALL_EXPIRES_AFTER,
            created_at=change.created_at,
            request_id=row.request_id,
            trace_parent=row.trace_parent,
        )
