import time
import uuid
from datetime import timedelta

from celery import shared_task
from django.conf import settings

from bookings import people
from notifications import (
    heartbeat,
    retention,
    sweeping,  # noqa: F401  # its signals make every worker sweep
)
from notifications.patience import patient_statements
from notifications.pump import LONGEST_RUN, run_pump
from notifications.stopping import is_stopping
from notifications.waking import publish, pump_of
from scheduling.api.sql import database_now

PURGE_SECONDS = 20.0  # of one task: a worker that is asked to stop waits for it


@shared_task(soft_time_limit=LONGEST_RUN + 10, time_limit=LONGEST_RUN + 20)
def pump(kind: str) -> None:
    """Send what is due of one type; asks for a successor where there was work."""
    if run_pump(kind, stopping=is_stopping) and not is_stopping():
        publish(pump_of(kind))


@shared_task
def mark_beat() -> None:
    heartbeat.mark_beat()


@shared_task
def purge_deliveries() -> None:
    """Remove what is older than DELIVERY_RETENTION_DAYS; a successor does what is left."""
    before = database_now() - timedelta(days=settings.DELIVERY_RETENTION_DAYS)
    ends = time.monotonic() + PURGE_SECONDS
    # The first batch may lie behind many deliveries of bookings that are still to take place.
    with patient_statements():
        retention.forget_endpoints()
        for _ in retention.purge(before):
            if is_stopping():
                return
            if time.monotonic() > ends:
                purge_deliveries.apply_async(expires=3600, retry=False)
                return


@shared_task
def purge_people(after: str | None = None) -> None:
    """Empty people's data of bookings that ended more than PEOPLE_RETENTION_DAYS ago.

    A successor goes on after the last booking that was done.
    """
    if not settings.PEOPLE_RETENTION_DAYS:
        return
    before = database_now() - timedelta(days=settings.PEOPLE_RETENTION_DAYS)
    ends = time.monotonic() + PURGE_SECONDS
    for purged in people.purge(before, after=uuid.UUID(after) if after else None):
        if is_stopping():
            return
        if time.monotonic() > ends:
            purge_people.apply_async(args=[str(purged.last)], expires=3600, retry=False)
            return
