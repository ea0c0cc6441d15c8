from celery import shared_task
from django.utils import timezone

from bookings import services


@shared_task
def complete_ended_bookings() -> None:
    """Complete what ended an hour ago, in batches until nothing is due."""
    while services.complete_ended_bookings(now=timezone.now()) >= services.BATCH:
        pass


@shared_task
def time_out_payments() -> None:
    """Give up bookings that were not paid in time, in batches until none is due."""
    while services.time_out_payments(now=timezone.now()) >= services.BATCH:
        pass
