"""Retention: delete old finished deliveries with their attempts."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from common.db.batching import iterate_batches
from common.db.sql import id_in_sql
from notifications.models import ChangeCalls, Delivery, Endpoint, LaneCheck
from notifications.outbox.lanes import delete_checks_of_empty_lanes

BATCH = 1000


class _Deleted(NamedTuple):
    id: UUID
    change_id: UUID | None
    finished_at: datetime | None


def outdated_deliveries(before: datetime) -> QuerySet[Delivery]:
    """Return deliveries finished before `before`, oldest first, except those of live bookings.

    So all reminders of a booking can be counted until it has taken place.
    """
    rows = Delivery.objects.filter(finished_at__lt=before, booking__completes_at=None)
    return rows.order_by("finished_at")


def delete_unused_endpoints() -> None:
    """Delete breakers of endpoints without open deliveries: no result would close them."""
    open_rows = Delivery.objects.open().exclude(endpoint="").order_by()
    awaited = set(open_rows.values_list("endpoint", flat=True).distinct())
    for endpoints in iterate_batches(Endpoint.objects.all(), BATCH):
        idle = [endpoint.address for endpoint in endpoints if endpoint.address not in awaited]
        Endpoint.objects.filter(address__in=idle).delete()


def delete_idle_lane_checks(now: datetime) -> None:
    """Delete future checks of lanes without open deliveries; claims delete the due ones."""
    for checks in iterate_batches(LaneCheck.objects.filter(next_at__gt=now), BATCH):
        batch = LaneCheck.objects.filter(pk__in=[check.pk for check in checks])
        delete_checks_of_empty_lanes(batch)


def delete_outdated(before: datetime, *, batch: int | None = None) -> Iterator[int]:
    """Delete outdated deliveries, one transaction per batch; yield the number of each.

    Can be interrupted after any batch and repeated; concurrent runs share the work.
    """
    rows = outdated_deliveries(before)
    while batch_of_deleted := _delete_batch(rows[: batch or BATCH]):
        # Continue in the index: deleted rows remain in it until the vacuum.
        rows = outdated_deliveries(before).filter(finished_at__gte=batch_of_deleted[-1].finished_at)
        yield len(batch_of_deleted)


def _delete_batch(rows: QuerySet[Delivery]) -> list[_Deleted]:
    with transaction.atomic():
        # A delivery being redelivered now is no longer finished once it is locked.
        locked = rows.select_for_update(of=("self",), skip_locked=True)
        deleted = [_Deleted(*row) for row in locked.values_list("id", "change", "finished_at")]
        if deleted:
            changes = {row.change_id for row in deleted if row.change_id}
            expanded = ChangeCalls.objects.filter(change__in=changes, waiting_since=None)
            # Locked, so that the later of two concurrent runs sees the deletions of the first.
            list(expanded.select_for_update().order_by("change").values_list("change"))
            _delete([row.id for row in deleted])
            calls = Delivery.objects.filter(change=OuterRef("change"), webhook__isnull=False)
            expanded.filter(~Exists(calls)).delete()
        return deleted


def _delete(ids: Sequence[UUID]) -> None:
    """Delete deliveries and all that refers to them: their attempts, and copies of e-mails.

    The ORM's own deletion takes a statement per hundred rows.
    """
    condition, params = id_in_sql(ids)
    with connection.cursor() as cursor:
        for column in (
            "notifications_attempt WHERE delivery_id",
            "notifications_sentemail WHERE delivery_id",
            "notifications_delivery WHERE id",
        ):
            cursor.execute(f"DELETE FROM {column} {condition}", params)  # noqa: S608 # nosec B608
