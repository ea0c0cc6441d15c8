from celery import shared_task

from availability import holds
from scheduling.api.slices import exhausted_within
from scheduling.api.sql import database_now

PURGE_SECONDS = 20.0  # a worker that is asked to stop waits for it


@shared_task
def purge_holds() -> None:
    """Delete holds that lapsed a day ago; a successor does what is left.

    They block no more from the moment of their end.
    """
    if not exhausted_within(PURGE_SECONDS, holds.purge_lapsed(now=database_now())):
        purge_holds.apply_async(expires=3600, retry=False)
