import logging
import time
import uuid
from datetime import timedelta
from itertools import chain

from celery import shared_task
from django.conf import settings

from apps_config.changes import number_all_changes
from bookings import privacy
from bookings.services import postponed
from common.db.sql import database_now, no_statement_timeout
from notifications import overdue_periodic_tasks
from notifications.delivery_check import find_delivery_faults
from notifications.models import StoredMetrics
from notifications.outbox import heartbeats, retention
from notifications.outbox.dispatcher import MAX_RUN, run_dispatcher
from notifications.outbox.poller import Poll, polls
from notifications.outbox.sent_emails import delete_old_copies
from notifications.outbox.shutdown_flag import is_stopping
from notifications.outbox.wakeup import dispatcher_wakeup, publish_wakeup
from notifications.webhooks.object_calls import queue_object_calls

logger = logging.getLogger(__name__)

MAX_LOGGED = 20  # faults of deliveries
PURGE_SECONDS = 20.0  # of one task: a worker that is asked to stop waits for it


@shared_task(soft_time_limit=MAX_RUN + 10, time_limit=MAX_RUN + 20)
def dispatch_deliveries(kind: str) -> None:
    """Run a dispatcher for one type; request another run if there was work."""
    if run_dispatcher(kind, stopping=is_stopping) and not is_stopping():
        publish_wakeup(dispatcher_wakeup(kind))


@shared_task
def record_heartbeat() -> None:
    heartbeats.record_heartbeat()


@shared_task
def start_overdue_periodic_tasks() -> None:
    overdue_periodic_tasks.start_overdue_periodic_tasks(database_now())


@shared_task
def purge_deliveries() -> None:
    """Delete deliveries older than DELIVERY_RETENTION_DAYS, and copies of e-mails older than
    SENT_EMAIL_RETENTION_DAYS; a follow-up task continues.
    """
    now = database_now()
    copies_before = now - timedelta(days=settings.SENT_EMAIL_RETENTION_DAYS)
    before = now - timedelta(days=settings.DELIVERY_RETENTION_DAYS)
    ends = time.monotonic() + PURGE_SECONDS
    # The first batch may lie behind many deliveries of bookings that are still to take place.
    with no_statement_timeout():
        retention.delete_unused_endpoints()
        retention.delete_idle_lane_checks(now)
        for _ in chain(delete_old_copies(copies_before), retention.delete_outdated(before)):
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
    for purged in privacy.erase_due_bookings(before, after=uuid.UUID(after) if after else None):
        if is_stopping():
            return
        if time.monotonic() > ends:
            purge_people.apply_async(args=[str(purged.last)], expires=3600, retry=False)
            return


@shared_task
def check_deliveries() -> None:
    """Log missing e-mails, and missing and duplicate reminders; store their number for /metrics."""
    now = database_now()
    faults = find_delivery_faults(now)
    samples = {"delivery_faults": [[{}, len(faults)]]}
    StoredMetrics.objects.update_or_create(
        name=StoredMetrics.NIGHTLY, defaults={"samples": samples, "refreshed_at": now}
    )
    if faults:
        shown = "; ".join(faults[:MAX_LOGGED])
        logger.error("%s deliveries are missing or duplicate: %s", len(faults), shown)


def carry_out_postponed_tasks() -> None:
    """Carry out what staff decided some seconds ago (`bookings/services/postponed.py`)."""
    postponed.carry_out_due(now=database_now(), stopping=is_stopping)


polls.register(Poll("celery", carry_out_postponed_tasks))


def number_and_tell_changes() -> None:
    """Number the changes of all apps, and queue the calls of the webhooks that want them."""
    number_all_changes()
    queue_object_calls()


polls.register(Poll("celery", number_and_tell_changes))
