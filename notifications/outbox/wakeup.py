"""Wake-ups: best-effort tasks that start a dispatcher at once.

A background thread publishes them, so that a broken or slow broker does not delay the caller.
Beat's schedule and every worker's poller make up for lost wake-ups.
"""

import logging
import os
import threading
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from celery import current_app
from django.db import transaction

from common.db.updated_at import transaction_start
from notifications.models import Delivery

logger = logging.getLogger(__name__)

SOON = timedelta(seconds=1)
# Shorter than a dispatcher lingers: wake-ups in this interval are merged.
PAUSE = 0.1


class WakeUp(NamedTuple):
    """A task that processes what is due; it can expire after `expires` seconds in its queue."""

    task: str
    queue: str
    args: tuple[str, ...] = ()
    expires: int = 60


def dispatcher_wakeup(kind: str) -> WakeUp:
    return WakeUp("notifications.tasks.dispatch_deliveries", kind, (kind,))


class WakeUpThread:
    """One daemon thread per process that publishes the requested wake-ups."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._wanted: set[WakeUp] = set()
        self._process = 0

    def enqueue(self, wake_ups: Iterable[WakeUp]) -> None:
        with self._lock:
            self._wanted.update(wake_ups)
            if self._process != os.getpid():  # threads do not survive a fork
                self._process = os.getpid()
                threading.Thread(target=self._publish_wakeups, daemon=True).start()
        self._asked.set()

    def _publish_wakeups(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            with self._lock:
                wanted, self._wanted = self._wanted, set()
            for wake_up in sorted(wanted):
                publish_wakeup(wake_up)
            time.sleep(PAUSE)


def publish_wakeup(wake_up: WakeUp) -> None:
    """Publish the wake-up now. A failure of the broker is logged, not raised."""
    task, queue, args, expires = wake_up
    try:
        current_app.send_task(task, args=args, queue=queue, expires=expires, retry=False)
    except Exception as error:  # kombu raises errors of its transports and sockets
        logger.warning("no wake-up for %s: %s", queue, type(error).__name__)


wake_up_thread = WakeUpThread()


def wake_up_after_commit(*wake_ups: WakeUp) -> None:
    transaction.on_commit(lambda: wake_up_thread.enqueue(wake_ups))


def wake_dispatchers_after_commit(rows: Iterable[Delivery], types: Iterable[str] = ()) -> None:
    """Wake the dispatchers of these types and of types with rows due at once, after the commit."""
    soon = transaction_start() + SOON
    due = {row.type for row in rows if row.next_at is not None and row.next_at <= soon}
    types = due.union(types)
    if types:
        wake_up_after_commit(*map(dispatcher_wakeup, types))
