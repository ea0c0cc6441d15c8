"""Work off what is due of one type: claim, look again, send in threads, write down how it went.

The pump's own thread has the database, its pool has the network. Any number of pumps may run at
once, on any number of machines: the claim decides who sends what.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.utils import timezone

from notifications.models import Delivery
from notifications.queue import LEASE, claim, next_due
from notifications.results import Outcome, drop, finish, give_back
from notifications.transports import Send, prepare
from scheduling.api.errors import is_outage
from scheduling.api.sql import database_now

logger = logging.getLogger(__name__)

# How long a pump goes on while there is work, and how long it stays when that is done.
MOST_SECONDS = 20.0
LINGER = 0.5
SHORTEST_SLEEP, LONGEST_SLEEP = 0.02, 1.0
# A send begins only while so much of its lease is left: more than any one try takes.
SEND_NEEDS = 26.0
# The last claim's sends end within its lease, and the database is waited for as long again. Cut off
# before, a pump leaves mails as lost that were sent: they would go out twice.
LONGEST_RUN = MOST_SECONDS + 2 * LEASE.total_seconds()
AHEAD = 4  # rows claimed for each thread, so that none waits for the database
# Results are awaited for so long, and gathered for so long after the first, in seconds.
FIRST_RESULT, FURTHER_RESULTS = 0.05, 0.02

DATABASE_ERRORS = (DatabaseError, InterfaceError)


class Job:
    """One claimed delivery on its way through the pool."""

    __slots__ = ("lease_ends", "row", "send")

    def __init__(self, row: Delivery, send: Send, lease_ends: float) -> None:
        self.row, self.send, self.lease_ends = row, send, lease_ends


class Pump:
    """`Pump("webhook", stopping=...).run()`; `stopping()` asks it to end as soon as it can."""

    def __init__(self, kind: str, *, stopping: Callable[[], bool] = lambda: False) -> None:
        self.kind = kind
        self.stopping = stopping
        self.threads = settings.DELIVERY_THREADS
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[tuple[Job, Outcome | None]] = queue.SimpleQueue()
        self.workers: list[threading.Thread] = []
        self.in_hand = 0
        self.sent = 0
        self.away_since: float | None = None

    def run(self) -> int:
        """Until nothing is due any more; returns how many tries were made.

        Raises the database's error where it stays away for longer than a lease.
        """
        try:
            self._run_until_dry()
        finally:
            self._dismiss()
        return self.sent

    def _run_until_dry(self) -> None:
        ends = time.monotonic() + MOST_SECONDS
        working_at = -LINGER  # it stays only after work
        while True:
            is_ending = self.stopping() or time.monotonic() > ends
            try:
                found = None if is_ending else self._take()
                self._write_down()
                idle = not self.in_hand and (is_ending or found == 0)
                pause = self._pause(working_at) if idle and not is_ending else None
            except DATABASE_ERRORS as error:
                if not is_outage(error):
                    raise
                self._wait_for_database(error)
                continue
            if idle and pause is None:
                return
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

    def _take(self) -> int | None:
        """Claim what the threads can soon begin with; returns how many rows, None: not looked."""
        room = self.threads * AHEAD - self.in_hand
        if room < self.threads and self.in_hand:
            return None
        lease_ends = time.monotonic() + LEASE.total_seconds()
        rows = claim(self.kind, room)
        if not rows:
            return 0
        sends, verdicts = prepare(rows, now=timezone.now())
        if verdicts:
            drop(verdicts)
        self._hire()
        for row, send in sends:
            self.in_hand += 1
            self.jobs.put(Job(row, send, lease_ends))
        return len(rows)

    def _hire(self) -> None:
        """Start the threads, at the first job: most pumps find nothing due."""
        if not self.workers:
            self.workers = [
                threading.Thread(target=self._work, name=f"{self.kind}-{number}")
                for number in range(self.threads)
            ]
            for worker in self.workers:
                worker.start()

    def _dismiss(self) -> None:
        """They end when all that they were given is done."""
        for _ in self.workers:
            self.jobs.put(None)
        for worker in self.workers:
            worker.join()

    def _work(self) -> None:
        while job := self.jobs.get():
            self._carry_out(job)

    def _carry_out(self, job: Job) -> None:
        """In a thread: no database here."""
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
        tried = [one for one in batch if one[1] is not None]
        unsent = [one for one in batch if one[1] is None]
        try:
            if tried:
                self._finish([(job.row, outcome) for job, outcome in tried])
                self._forget(tried)
                tried = []
            if unsent:
                give_back([job.row for job, _ in unsent])
                self._forget(unsent)
        except DATABASE_ERRORS:
            for one in (*tried, *unsent):
                self.done.put(one)
            raise

    def _finish(self, results: list[tuple[Delivery, Outcome]]) -> None:
        """One that can't be written down must not take the others along: they would go out again.

        Its own row may be gone, with its app or by hand.
        """
        try:
            finish(results)
        except Exception as error:
            if is_outage(error):
                raise
            if len(results) == 1:
                logger.exception("the result of delivery %s can't be kept", results[0][0].id)
                return
            logger.warning("results are written one by one (%s)", type(error).__name__)
            for result in results:
                self._finish([result])

    def _forget(self, written: list[tuple[Job, Outcome | None]]) -> None:
        self.away_since = None
        self.in_hand -= len(written)
        self.sent += sum(outcome is not None for _, outcome in written)

    def _collect(self) -> list[tuple[Job, Outcome | None]]:
        batch = []
        until = time.monotonic() + (FIRST_RESULT if self.in_hand else 0)
        with contextlib.suppress(queue.Empty):
            while len(batch) < self.in_hand:
                batch.append(self.done.get(timeout=max(0, until - time.monotonic())))
                until = min(until, time.monotonic() + FURTHER_RESULTS) if len(batch) == 1 else until
        return batch


def run_pump(kind: str, *, stopping: Callable[[], bool] = lambda: False) -> int:
    """A pump on a healthy connection; returns how many tries it made."""
    close_old_connections()
    return Pump(kind, stopping=stopping).run()
