from celery import shared_task

from apps_config.authentication import purge_failed_logins
from apps_config.idempotency import purge_records
from scheduling.api.slices import exhausted_within
from scheduling.api.sql import database_now

PURGE_SECONDS = 10.0  # of one purge: a worker that is asked to stop waits for it


@shared_task
def purge_idempotency_records() -> None:
    """Delete answers older than a day, and failed log-ins of earlier minutes.

    A successor does what is left.
    """
    now = database_now()
    purges = (purge_records(now=now), purge_failed_logins(now=now))
    if not all(exhausted_within(PURGE_SECONDS, purge) for purge in purges):
        purge_idempotency_records.apply_async(expires=3600, retry=False)
