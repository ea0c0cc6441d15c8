from celery import shared_task

from bookings import services
from bookings.services.verification import purge_unverified
from common.batching import finish_within
from common.sql import database_now

PURGE_SECONDS = 20.0  # a worker that is shutting down waits for it


@shared_task
def purge_unverified_bookings() -> None:
    """Delete what was typed for bookings that were never verified, with their holds; a follow-up
    task continues if time runs out.
    """
    if not finish_within(PURGE_SECONDS, purge_unverified(now=database_now())):
        purge_unverified_bookings.apply_async(expires=3600, retry=False)


@shared_task
def complete_ended_bookings() -> None:
    services.complete_ended(now=database_now())


@shared_task
def time_out_payments() -> None:
    services.time_out_unpaid(now=database_now())
