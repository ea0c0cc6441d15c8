from celery import shared_task

from bookings import services
from scheduling.api.sql import database_now


@shared_task
def complete_ended_bookings() -> None:
    """Complete what ended an hour ago, in batches until nothing is due."""
    while services.complete_ended_bookings(now=database_now()) >= services.BATCH:
        pass


@shared_task
def time_out_payments() -> None:
    """Give up bookings that were not paid in time, in batches until none is due."""
    while services.time_out_payments(now=database_now()) >= services.BATCH:
        pass
