"""Every worker looks for itself, by its own monotonic clock: without broker, beat or wake-up.

A thread of the worker's main process sends what has been due for a while and nobody has taken. So
a beat that is dead and a Redis that is gone, flushed or mute cost some seconds, never a delivery.
"""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from celery import signals
from django.db import Error as DatabaseTrouble
from django.db import close_old_connections, connection

from notifications.lateness import oldest_late
from notifications.models import Delivery
from notifications.pump import run_pump
from notifications.queue import LEASE
from notifications.stopping import ask_to_stop, is_stopping
from scheduling.api.sql import database_now

logger = logging.getLogger(__name__)

EVERY = 5.0  # seconds
# What is due for less than this is on its way by broker and beat.
NEGLECTED = timedelta(seconds=4)

Sweep = Callable[[], None]
SWEEPS: list[tuple[str, Sweep]] = []


def sweeps(queue: str) -> Callable[[Sweep], Sweep]:
    """Have the function called every so often in workers that take the queue, in a thread of its
    own: the rooms above have tables of their own with what is due."""

    def register(function: Sweep) -> Sweep:
        SWEEPS.append((queue, function))
        return function

    return register


def sweep(kinds: list[str]) -> None:
    """Send what was neglected of these types. Raises nothing: there is no other resort."""
    for kind in kinds:
        _attempt(lambda kind=kind: _send_neglected(kind), f"{kind} deliveries")


def _send_neglected(kind: str) -> None:
    if oldest_late(kind, database_now() - NEGLECTED):
        logger.info("sweeping: %s deliveries are overdue", kind)
        run_pump(kind, stopping=is_stopping)


def _attempt(work: Sweep, what: str) -> None:
    try:
        close_old_connections()
        work()
    except DatabaseTrouble as error:
        logger.warning("sweep: the database is away (%s)", type(error).__name__)
        connection.close()
    except Exception:
        logger.exception("sweep: %s are left undone", what)


def _sweep_for_ever(work: Sweep, stopped: threading.Event) -> None:
    while not stopped.wait(EVERY):
        work()
    connection.close()


_stopped = threading.Event()
_sweepers: list[threading.Thread] = []


@signals.worker_ready.connect
def _start_sweeping(sender: Any, **_: Any) -> None:
    """Of the types whose queues this worker takes."""
    queues = {queue.name for queue in sender.task_consumer.queues}
    kinds = [kind for kind in Delivery.TYPES if kind in queues]
    works = [lambda: sweep(kinds)]
    works += [
        lambda further=further, queue=queue: _attempt(further, f"what {queue} has to do")
        for queue, further in SWEEPS
        if queue in queues
    ]
    for work in works:
        sweeper = threading.Thread(target=_sweep_for_ever, args=(work, _stopped), daemon=True)
        sweeper.start()
        _sweepers.append(sweeper)


@signals.worker_shutting_down.connect
def _stop_sweeping(**_: Any) -> None:
    _stopped.set()
    ask_to_stop()


@signals.worker_shutdown.connect
def _wait_for_sweep(**_: Any) -> None:
    """What it has under way is written down; a try takes no longer than its deadline."""
    for sweeper in _sweepers:
        sweeper.join(LEASE.total_seconds())
