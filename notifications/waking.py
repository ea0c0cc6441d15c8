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
from typing import NamedTuple

from celery import current_app
from django.db import transaction

from notifications.models import Delivery

logger = logging.getLogger(__name__)

SOON = timedelta(seconds=1)
# A pump that has run dry lingers longer than this: the wake-ups of a busy moment are one.
PAUSE = 0.1


class WakeUp(NamedTuple):
    """A task that looks for what is due; after `expires` seconds in its queue nobody misses it."""

    task: str
    queue: str
    args: tuple[str, ...] = ()
    expires: int = 60


def pump_of(kind: str) -> WakeUp:
    return WakeUp("notifications.tasks.pump", kind, (kind,))


class Waker:
    """One daemon thread per process that publishes what it was asked for since the last time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._wanted: set[WakeUp] = set()
        self._process = 0

    def ask(self, wake_ups: Iterable[WakeUp]) -> None:
        with self._lock:
            self._wanted.update(wake_ups)
            if self._process != os.getpid():  # threads do not survive a fork
                self._process = os.getpid()
                threading.Thread(target=self._publish_for_ever, daemon=True).start()
        self._asked.set()

    def _publish_for_ever(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            with self._lock:
                wanted, self._wanted = self._wanted, set()
            for wake_up in sorted(wanted):
                publish(wake_up)
            time.sleep(PAUSE)


def publish(wake_up: WakeUp) -> None:
    """Ask for it now. A broker that can't take it is logged, not raised."""
    task, queue, args, expires = wake_up
    try:
        current_app.send_task(task, args=args, queue=queue, expires=expires, retry=False)
    except Exception as error:  # kombu's transports raise their own, and those of their sockets
        logger.warning("no wake-up for %s: %s", queue, type(error).__name__)


waker = Waker()


def ask_after_commit(*wake_ups: WakeUp) -> None:
    """Once what they look for can be seen."""
    transaction.on_commit(lambda: waker.ask(wake_ups))


def wake_after_commit(rows: Iterable[Delivery], *, now: datetime) -> None:
    """Wake the workers of those types that have something due at once, once it can be seen."""
    types = {row.type for row in rows if row.next_at is not None and row.next_at <= now + SOON}
    if types:
        ask_after_commit(*map(pump_of, types))
