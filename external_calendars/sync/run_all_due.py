"""Sync all due calendars, several at once in threads.

Each sync has its own thread and database connection, because it mostly waits for its server. Any
number of rounds may run at once on any number of machines: a calendar's lease decides which worker
syncs it.
"""

import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections

from common.db.sql import database_now
from external_calendars.grants import claim_renewals, renew_grant
from external_calendars.models import Connection, Grant
from external_calendars.sync.leases import claim_connections, release_lease
from external_calendars.sync.run import BATCH_SECONDS, SYNC_SECONDS, sync_calendar
from notifications.models import Delivery
from notifications.outbox import dispatcher
from notifications.outbox.lanes import next_check

logger = logging.getLogger(__name__)

# A round claims calendars, and continues with one, for this long; others take the rest.
MAX_SECONDS = 20.0
# Limit of a round: then the change set and first batch of a sync may still be pending, and writes
# of bookings, plus time for the database.
MAX_RUN = MAX_SECONDS + SYNC_SECONDS + BATCH_SECONDS + dispatcher.MAX_RUN + 25.0
RECHECK_SECONDS = 1.0  # while syncs are running


def sync_due_calendars(*, stopping: Callable[[], bool] = lambda: False) -> int:
    """Sync calendars until none is due or time is up; return how many were claimed."""
    close_old_connections()
    ends = time.monotonic() + MAX_SECONDS
    running: set[Future[None]] = set()
    looked_at = 0

    def ending() -> bool:
        return stopping() or time.monotonic() > ends

    with ThreadPoolExecutor(settings.CALENDAR_THREADS, "calendar") as pool:
        while True:
            if not ending():
                _send_due_writes(ending)
            room = 0 if ending() else settings.CALENDAR_THREADS - len(running)
            grants = claim_renewals(room)
            running |= {pool.submit(_renew_one, grant) for grant in grants}
            room -= len(grants)
            for connection in claim_connections(room) if room else ():
                running.add(pool.submit(_sync_one, connection, ending))
                looked_at += 1
            if not running:
                return looked_at
            running = wait(running, timeout=RECHECK_SECONDS, return_when=FIRST_COMPLETED).not_done


def _send_due_writes(ending: Callable[[], bool]) -> None:
    """Write bookings before further calendars are read: all workers may be busy with syncs."""
    due = next_check(Delivery.CALENDAR)
    if due is not None and due <= database_now():
        dispatcher.run_dispatcher(Delivery.CALENDAR, stopping=ending)


def _renew_one(grant: Grant) -> None:
    try:
        renew_grant(grant)
    except DatabaseError as error:
        logger.warning("grant %s: the database (%s)", grant.pk, type(error).__name__)
    except Exception:
        logger.exception("grant %s can't be renewed", grant.pk)  # the lease ends by itself
    finally:
        connections.close_all()


def _sync_one(connection: Connection, ending: Callable[[], bool]) -> None:
    try:
        sync_calendar(connection, stopping=ending)
    except DatabaseError as error:
        logger.warning("calendar %s: the database (%s)", connection.pk, type(error).__name__)
        with contextlib.suppress(DatabaseError):
            release_lease(connection)  # if this fails too, the lease expires
    finally:
        connections.close_all()
