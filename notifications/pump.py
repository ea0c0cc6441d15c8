"""Work off what is due of one type: claim, look again, send in threads, write down how it went.

The pump's own thread has the database, its pool has the network. Any number of pumps may run at
once, on any number of machines: the claim decides who sends what.
"""

import contextlib
import logging
import queue
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)

from notifications.models import Delivery
from notifications.queue import LEASE, claim, database_now, next_due
from notifications.results import Outcome, drop, finish, give_back
from notifications.transports import Send, prepare

logger = logging.getLogger(__name__)

# How long a pump goes on while there is work, and how long it stays when there is none.
MOST_SECONDS = 20.0
LINGER = 0.5
SHORTEST_SLEEP, LONGEST_SLEEP = 0.02, 1.0
# A send begins only while so much of its lease is left: more than any one try takes.
SEND_NEEDS = 26.0
AHEAD = 4  # rows claimed for each thread, so that none waits for the database
# Results are awaited for so long, and gathered for so long after the first, in seconds.
FIRST_RESULT, FURTHER_RESULTS = 0.05, 0.02

DatabaseAway = (OperationalError, InterfaceError)


class Job:
    """One claimed delivery on its way through the pool."""

    __slots__ = ("lease_ends", "row", "send", "token")

    def __init__(self, row: Delivery, send: Send, token: uuid.UUID, lease_ends: float) -> None:
        self.row, self.send, self.token, self.lease_ends = row, send, token, lease_ends


class Pump:
    """`Pump("webhook", stopping=...).run()`; `stopping()` asks it to end as soon as it can."""

    def __init__(self, kind: str, *, stopping: Callable[[], bool] = lambda: False) -> None:
        self.kind = kind
        self.stopping = stopping
        self.threads = settings.DELIVERY_THREADS
        self.done: queue.SimpleQueue[tuple[Job, Outcome | None]] = queue.SimpleQueue()
        self.in_hand = 0
        self.sent = 0
        self.away_since: float | None = None

    def run(self) -> int:
        """Until nothing is due any more; returns how many tries were made.

        Raises the database's error where it stays away for longer than a lease.
        """
        ends = time.monotonic() + MOST_SECONDS
        working_at = time.monotonic()
        with ThreadPoolExecutor(self.threads, thread_name_prefix=self.kind) as pool:
            while True:
                is_ending = self.stopping() or time.monotonic() > ends
                try:
                    taken = 0 if is_ending else self._take(pool)
                    self._write_down()
                    idle = not (self.in_hand or taken)
                    pause = self._pause(working_at) if idle and not is_ending else None
                except DatabaseAway as error:
                    self._wait_for_database(error)
                    continue
                if idle and pause is None:
                    return self.sent
                if idle:
                    time.sleep(pause)
                else:
                    working_at = time.monotonic()

    def _pause(self, working_at: float) -> float | None:
        """How long to sleep until something may be due; None: too long to stay for."""
        due = next_due(self.kind)
        left = (due - database_now()).total_seconds() if due else LONGEST_SLEEP + 1
        if 0 < left <= LONGEST_SLEEP:
            return max(left, SHORTEST_SLEEP)
        # Where it is due already, its endpoint is busy or another pump has it.
        return LINGER / 10 if time.monotonic() - working_at < LINGER else None

    def _wait_for_database(self, error: Exception) -> None:
        """What was sent meanwhile is still to be written down: come back with a new connection."""
        connection.close()
        self.away_since = self.away_since or time.monotonic()
        if time.monotonic() - self.away_since > LEASE.total_seconds():
            raise error
        logger.warning("%s pump: the database is away (%s)", self.kind, type(error).__name__)
        time.sleep(1)

    def _take(self, pool: ThreadPoolExecutor) -> int:
        """Claim as much as the threads can soon begin with; returns how many rows that were."""
        room = self.threads * AHEAD - self.in_hand
        if room < self.threads and self.in_hand:
            return 0
        lease_ends = time.monotonic() + LEASE.total_seconds()
        rows, token = claim(self.kind, room)
        if not rows:
            return 0
        sends, verdicts = prepare(rows, now=database_now())
        if verdicts:
            drop(verdicts, token)
        for row, send in sends:
            self.in_hand += 1
            pool.submit(self._carry_out, Job(row, send, token, lease_ends))
        return len(rows)

    def _carry_out(self, job: Job) -> None:
        """In a thread of the pool: no database here."""
        if self.stopping() or job.lease_ends - time.monotonic() < SEND_NEEDS:
            self.done.put((job, None))
            return
        try:
            outcome = job.send()
        except Exception as error:
            logger.exception("delivery %s can't be sent", job.row.id)
            outcome = Outcome(ok=False, error=f"Internal error ({type(error).__name__}).")
        self.done.put((job, outcome))

    def _write_down(self) -> None:
        """The results that are there; while some are awaited, those of the next moment."""
        batch = self._collect()
        if not batch:
            return
        try:
            with transaction.atomic():
                for token in {job.token for job, _ in batch}:
                    self._write_batch([one for one in batch if one[0].token == token], token)
        except DatabaseAway:
            for one in batch:
                self.done.put(one)
            raise
        self.away_since = None
        self.in_hand -= len(batch)
        self.sent += sum(outcome is not None for _, outcome in batch)

    def _collect(self) -> list[tuple[Job, Outcome | None]]:
        batch = []
        until = time.monotonic() + (FIRST_RESULT if self.in_hand else 0)
        with contextlib.suppress(queue.Empty):
            while len(batch) < self.in_hand:
                batch.append(self.done.get(timeout=max(0, until - time.monotonic())))
                until = min(until, time.monotonic() + FURTHER_RESULTS) if len(batch) == 1 else until
        return batch

    def _write_batch(self, batch: list[tuple[Job, Outcome | None]], token: uuid.UUID) -> None:
        results = [(job.row, outcome) for job, outcome in batch if outcome is not None]
        unsent = [job.row for job, outcome in batch if outcome is None]
        if results:
            finish(results, token)
        if unsent:
            give_back(unsent, token)


def run_pump(kind: str, *, stopping: Callable[[], bool] = lambda: False) -> int:
    """A pump on a healthy connection; returns how many tries it made."""
    close_old_connections()
    return Pump(kind, stopping=stopping).run()
