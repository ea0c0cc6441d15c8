from contextlib import suppress
from functools import partial
from itertools import chain

from celery import Task, shared_task
from kombu.exceptions import OperationalError

from bookings import services
from bookings.reports.counting import count_reports
from bookings.services.postponed import purge_postponed
from bookings.services.seat_holds import purge_seat_holds
from bookings.services.verification import purge_unverified
from common.db.batching import finish_within
from common.db.sql import database_now

PURGE_SECONDS = 20.0  # a worker that is shutting down waits for it
COUNT_SECONDS = 20.0


@shared_task
def purge_unverified_bookings() -> None:
    """Delete what was typed for bookings that were never verified, and lapsed holds of seats; a
    follow-up task continues if time runs out.
    """
    now = database_now()
    if not finish_within(
        PURGE_SECONDS, chain(purge_unverified(now=now), purge_seat_holds(now=now))
    ):
        purge_unverified_bookings.apply_async(expires=3600, retry=False)


@shared_task
def purge_postponed_tasks() -> None:
    """Delete the tasks of the back office that ended a month ago; a follow-up task continues if
    time runs out.
    """
    if not finish_within(PURGE_SECONDS, purge_postponed(now=database_now())):
        purge_postponed_tasks.apply_async(expires=3600, retry=False)


@shared_task
def count_bookings_per_day() -> None:
    """Count the changed bookings of all apps for reports; a follow-up task continues if time runs
    out.
    """
    if not finish_within(COUNT_SECONDS, count_reports(now=database_now())):
        count_bookings_per_day.apply_async(expires=3600, retry=False)


@shared_task
def complete_ended_bookings() -> None:
    """Complete bookings; if many are due, ask another worker to share them."""
    services.complete_ended(
        now=database_now(),
        on_full_batch=partial(_request_another_task, complete_ended_bookings, expires=30),
    )


@shared_task
def time_out_payments() -> None:
    """Time out unpaid bookings; if many are due, ask another worker to share them."""
    services.expire_bookings(
        now=database_now(),
        on_full_batch=partial(_request_another_task, time_out_payments, expires=5),
    )


def _request_another_task(task: Task, *, expires: float) -> None:
    with suppress(OperationalError):  # the broker is down: this worker goes on alone
        task.apply_async(expires=expires, retry=False)
