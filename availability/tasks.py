from celery import shared_task

from availability.reserve import holds as hold_lifecycle
from common.db.batching import finish_within
from common.db.sql import database_now

PURGE_SECONDS = 20.0  # a worker that is shutting down waits for it


@shared_task
def purge_holds() -> None:
    """Delete holds that expired a day ago; a follow-up task continues if time runs out.

    They stop blocking as soon as they expire.
    """
    if not finish_within(PURGE_SECONDS, hold_lifecycle.purge_lapsed(now=database_now())):
        purge_holds.apply_async(expires=3600, retry=False)
