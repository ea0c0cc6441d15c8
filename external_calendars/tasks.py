import time

from celery import shared_task

from common.db.sql import database_now
from external_calendars.grants import delete_abandoned_grants, due_renewals
from external_calendars.sync.advance_window import delete_old_events, expand_further
from external_calendars.sync.leases import SYNC_WAKEUP, due_connections
from external_calendars.sync.run_all_due import MAX_RUN, sync_due_calendars
from notifications.outbox.poller import NEGLECTED, Poll, polls
from notifications.outbox.shutdown_flag import is_stopping
from notifications.outbox.wakeup import publish_wakeup

EXPAND_SECONDS = 20.0  # of one task


@shared_task(soft_time_limit=MAX_RUN + 10, time_limit=MAX_RUN + 20)
def sync_calendars() -> None:
    """Sync the due calendars; publish a wake-up for the rest."""
    if sync_due_calendars(stopping=is_stopping) and not is_stopping():
        publish_wakeup(SYNC_WAKEUP)


@shared_task
def advance_sync_windows() -> None:
    """Expand recurring events further, and delete old events: once a day."""
    now = database_now()
    delete_abandoned_grants(now)
    ends = time.monotonic() + EXPAND_SECONDS
    for work in (expand_further, delete_old_events):
        for _ in work(now):
            if is_stopping():
                return
            if time.monotonic() > ends:
                advance_sync_windows.apply_async(queue="calendar", expires=3600, retry=False)
                return


def sync_neglected_calendars() -> None:
    """Sync calendars that have been due for a while without a task claiming them."""
    before = database_now() - NEGLECTED
    if due_connections(before).exists() or due_renewals(before).exists():
        sync_due_calendars(stopping=is_stopping)


polls.register(Poll("calendar", sync_neglected_calendars))
