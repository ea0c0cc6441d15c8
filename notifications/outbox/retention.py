"""Retention: delete old finished deliveries with their attempts; plans keep the counts."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from common.batching import iterate_batches
from notifications.models import Delivery, Endpoint, Plan

BATCH = 1000


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


def delete_outdated(before: datetime, *, batch: int | None = None) -> Iterator[int]:
    """Delete outdated deliveries, one transaction per batch; yield the number of each.

    Can be interrupted after any batch and repeated; concurrent runs share the work.
    """
    rows = outdated_deliveries(before)
    while True:
        with transaction.atomic():
            # A delivery being redelivered now is no longer finished once it is locked.
            locked = rows.select_for_update(of=("self",), skip_locked=True)
            found = list(locked.values_list("id", "change", "finished_at")[: batch or BATCH])
            _remove(found)
        if not found:
            return
        # Continue in the index: deleted rows remain in it until the vacuum.
        rows = outdated_deliveries(before).filter(finished_at__gte=found[-1][2])
        yield len(found)


def _remove(found: list[tuple]) -> None:
    _count_in_plans(Counter(change for _, change, _ in found if change is not None))
    Delivery.objects.filter(id__in=[delivery for delivery, _, _ in found]).only("id").delete()


def _count_in_plans(purged: Counter[UUID]) -> None:
    """Run one statement for all plans with the same count, under locks in order of key."""
    plans = Plan.objects.filter(change__in=purged).order_by("change")
    list(plans.select_for_update().values_list("change"))
    for count in set(purged.values()):
        changes = [change for change, lost in purged.items() if lost == count]
        Plan.objects.filter(change__in=changes).update(purged=F("purged") + count)
