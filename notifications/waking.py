"""Wake a worker when something is due at once: best effort, and never in the way of a request.

A thread of its own publishes the wake-up, so that a broker that is away, or takes the connection
and says nothing, costs the caller nothing. What is not woken is found by the beat's tick and by
every worker's sweep.
"""

import logging
import os
import threading
import time
from collections.abc import Iterable
from datetime import datetime, timedelta

from celery import current_app
from django.db import transaction

from notifications.models import Delivery

logger = logging.getLogger(__name__)

PUMP = "notifications.tasks.pump"
SOON = timedelta(seconds=1)
# A pump that has run dry lingers longer than this: the wake-ups of a busy moment are one.
PAUSE = 0.1


class Waker:
    """One daemon thread per process that publishes what it was asked for since the last time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._types: set[str] = set()
        self._process = 0

    def ask(self, types: Iterable[str]) -> None:
        with self._lock:
            self._types.update(types)
            if self._process != os.getpid():  # threads do not survive a fork
                self._process = os.getpid()
                threading.Thread(target=self._publish_for_ever, daemon=True).start()
        self._asked.set()

    def _publish_for_ever(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            with self._lock:
                types, self._types = self._types, set()
            for kind in sorted(types):
                publish(kind)
            time.sleep(PAUSE)


def publish(kind: str) -> None:
    """Ask for a pump of that type. A broker that can't take it is logged, not raised."""
    try:
        current_app.send_task(PUMP, args=[kind], queue=kind, expires=60, retry=False)
    except Exception as error:  # kombu's transports raise their own, and those of their sockets
        logger.warning("no wake-up for %s: %s", kind, type(error).__name__)


waker = Waker()


def wake_after_commit(rows: Iterable[Delivery], *, now: datetime) -> None:
    """Wake the workers of those types that have something due at once, once it can be seen."""
    types = {row.type for row in rows if row.next_at is not None and row.next_at <= now + SOON}
    if types:
        transaction.on_commit(lambda: waker.ask(types))
