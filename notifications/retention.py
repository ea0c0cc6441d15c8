"""What was finished long ago goes, its tries with it; the plans remember how many there were."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from notifications.models import Delivery, Endpoint, Plan
from scheduling.api.slices import by_slices

BATCH = 1000


def outdated(before: datetime) -> QuerySet[Delivery]:
    """Finished before, the oldest first; but of a live booking everything is kept.

    So whoever counts a booking's reminders finds all of them until it has taken place.
    """
    rows = Delivery.objects.filter(finished_at__lt=before, booking__completes_at=None)
    return rows.order_by("finished_at")


def forget_endpoints() -> None:
    """Remove the breakers of servers that nothing waits for: nobody would ever close them."""
    open_rows = Delivery.objects.open().exclude(endpoint="").order_by()
    awaited = set(open_rows.values_list("endpoint", flat=True).distinct())
    for endpoints in by_slices(Endpoint.objects.all(), BATCH):
        idle = [one.address for one in endpoints if one.address not in awaited]
        Endpoint.objects.filter(address__in=idle).delete()


def purge(before: datetime, *, batch: int | None = None) -> Iterator[int]:
    """Remove what is outdated, a transaction at a time; yields how many went in each.

    May be left off after any of them and begun anew; two at once share the work.
    """
    rows = outdated(before)
    while True:
        with transaction.atomic():
            # One that is being sent again this moment is finished no more once it is locked.
            locked = rows.select_for_update(of=("self",), skip_locked=True)
            found = list(locked.values_list("id", "change", "finished_at")[: batch or BATCH])
            _remove(found)
        if not found:
            return
        # Where the index was left: what was removed still lies before it until it is vacuumed.
        rows = outdated(before).filter(finished_at__gte=found[-1][2])
        yield len(found)


def _remove(found: list[tuple]) -> None:
    _count_in_plans(Counter(change for _, change, _ in found if change is not None))
    Delivery.objects.filter(id__in=[delivery for delivery, _, _ in found]).only("id").delete()


def _count_in_plans(purged: Counter[int]) -> None:
    """One statement for all plans that lose as many, under locks in the order of their keys."""
    plans = Plan.objects.filter(change__in=purged).order_by("change")
    list(plans.select_for_update().values_list("change"))
    for count in set(purged.values()):
        changes = [change for change, lost in purged.items() if lost == count]
        Plan.objects.filter(change__in=changes).update(purged=F("purged") + count)
