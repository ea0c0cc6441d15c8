"""Look at all calendars that are due: several at once, each in a thread of its own.

A pass waits for its server most of the time, so each has its thread and in it its own connection to
the database, which is closed behind it. Any number of rounds may run at once, on any number of
machines: the claim decides who looks where.
"""

import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections

from external_calendars.claims import claim, release
from external_calendars.models import Connection
from external_calendars.sync import BATCH_SECONDS, LOOK_SECONDS, sync

logger = logging.getLogger(__name__)

# For so long a round takes calendars, and goes on with one; then what is left is another's.
MOST_SECONDS = 20.0
# Behind that a look and its first batch may still be under way, and the database be waited for.
LONGEST_RUN = MOST_SECONDS + LOOK_SECONDS + BATCH_SECONDS + 25.0
LOOK_AGAIN = 1.0  # seconds, while some are under way


def run_round(*, stopping: Callable[[], bool] = lambda: False) -> int:
    """Until nothing is due any more, or time is up; returns how many were looked at."""
    close_old_connections()
    ends = time.monotonic() + MOST_SECONDS
    running: set[Future[None]] = set()
    looked_at = 0

    def ending() -> bool:
        return stopping() or time.monotonic() > ends

    with ThreadPoolExecutor(settings.CALENDAR_THREADS, "calendar") as pool:
        while True:
            room = 0 if ending() else settings.CALENDAR_THREADS - len(running)
            for connection in claim(room) if room else ():
                running.add(pool.submit(_look, connection, ending))
                looked_at += 1
            if not running:
                return looked_at
            running = wait(running, timeout=LOOK_AGAIN, return_when=FIRST_COMPLETED).not_done


def _look(connection: Connection, ending: Callable[[], bool]) -> None:
    try:
        sync(connection, stopping=ending)
    except DatabaseError as error:
        logger.warning("calendar %s: the database (%s)", connection.pk, type(error).__name__)
        with contextlib.suppress(DatabaseError):
            release(connection)  # at its next turn; if that fails too, when its lease ends
    finally:
        connections.close_all()
