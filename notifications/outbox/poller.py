"""The poller: every worker checks for due deliveries, without broker, beat or wake-up.

Threads of the worker's main process do overdue work that nobody has claimed. So an outage of beat
or of the broker costs some seconds, never a delivery. Their rounds show that the worker is alive.
"""

import contextlib
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from celery import bootsteps, signals
from django.conf import settings
from django.db import Error as DatabaseTrouble
from django.db import close_old_connections, connection

from common.db.sql import database_now
from common.hooks import Hook
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.heartbeats import record_workers
from notifications.outbox.lanes import next_check
from notifications.outbox.leases import LEASES
from notifications.outbox.shutdown_flag import is_stopping, request_shutdown

logger = logging.getLogger(__name__)

EVERY = 5.0  # seconds
HEARTBEAT = 30.0  # seconds
# Deliveries due for less time are left to broker and beat.
NEGLECTED = timedelta(seconds=4)

Work = Callable[[], None]


class Poll(NamedTuple):
    """Periodic work of the workers that consume `queue`, each in a thread of its own."""

    queue: str
    work: Work


# Polls of the layers above, for due rows in their own tables.
polls = Hook[Poll]()


def send_neglected_deliveries(delivery_types: list[str]) -> None:
    """Send overdue deliveries of these types. Logs all errors: there is no other fallback."""
    for kind in delivery_types:
        _attempt(partial(_send_neglected, kind), f"{kind} deliveries")


def _send_neglected(kind: str) -> None:
    due = next_check(kind)
    if due and due <= database_now() - NEGLECTED:
        logger.info("polling: %s deliveries are overdue", kind)
        run_dispatcher(kind, stopping=is_stopping)


def _attempt(work: Work, what: str) -> None:
    try:
        close_old_connections()
        work()
    except DatabaseTrouble as error:
        logger.warning("poll: the database is away (%s)", type(error).__name__)
        connection.close()
    except Exception:
        logger.exception("poll: %s are left undone", what)


def _poll_until_stopped(work: Work, report_round: Work) -> None:
    while not _stopped.wait(EVERY):
        work()
        report_round()
    connection.close()


class WorkerHeartbeat:
    """Records every HEARTBEAT seconds that a worker consumes these queues.

    In a thread of its own, because other polls may send e-mails for minutes. Keeps no connection.
    """

    def __init__(self, queues: set[str]) -> None:
        self._queues = queues
        self._recorded_at = -math.inf

    def __call__(self) -> None:
        if time.monotonic() - self._recorded_at >= HEARTBEAT:
            record_workers(self._queues)
            self._recorded_at = time.monotonic()
            connection.close()


class LivenessFile:
    """A file as old as the last round of the slowest poll thread: probes check its age."""

    def __init__(self, node: str, threads: int) -> None:
        self.path = Path(settings.VAR_DIR, f"worker-{node}.alive")
        self._rounds = [time.time()] * threads
        self._write()

    def report_round(self, thread: int) -> None:
        self._rounds[thread] = time.time()
        self._write()

    def _write(self) -> None:
        slowest = min(self._rounds)
        with contextlib.suppress(OSError):  # the probe tells, and the work goes on
            self.path.touch()
            os.utime(self.path, (slowest, slowest))


_stopped = threading.Event()
_poll_threads: list[threading.Thread] = []


class PollStep(bootsteps.StartStopStep):
    """Starts the poll threads of a worker between the fork of its pool and its first connection.

    Celery's signals fit neither: a worker without a broker never sends `worker_ready`, and those
    before it come before the fork, which would copy locks that the threads hold.
    """

    requires = ("celery.worker.components:Pool",)

    def start(self, worker: Any) -> None:
        start_poll_threads(worker.hostname, set(worker.app.amqp.queues.consume_from))


def start_poll_threads(node: str, queues: set[str]) -> None:
    """Start polling for the types and the work whose queues this worker consumes."""
    delivery_types = [kind for kind in Delivery.TYPES if kind in queues]
    works: list[Work] = [
        partial(send_neglected_deliveries, delivery_types),
        partial(_attempt, WorkerHeartbeat(queues), "the heartbeat"),
    ]
    works += [
        partial(_attempt, poll.work, f"what {poll.queue} has to do")
        for poll in polls
        if poll.queue in queues
    ]
    liveness = LivenessFile(node, len(works))
    for number, work in enumerate(works):
        report = partial(liveness.report_round, number)
        thread = threading.Thread(target=_poll_until_stopped, args=(work, report), daemon=True)
        thread.start()
        _poll_threads.append(thread)


@signals.worker_shutting_down.connect
def _stop_polling(**_: Any) -> None:
    _stopped.set()
    request_shutdown()


@signals.worker_shutdown.connect
def _join_poll_threads(**_: Any) -> None:
    """Wait until running work is recorded; an attempt takes no longer than its lease."""
    for thread in _poll_threads:
        thread.join(max(LEASES.values()).total_seconds())
