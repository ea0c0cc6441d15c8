from celery import shared_task

from bookings import services
from common.sql import database_now


@shared_task
def complete_ended_bookings() -> None:
    services.complete_ended(now=database_now())


@shared_task
def time_out_payments() -> None:
    services.time_out_unpaid(now=database_now())
