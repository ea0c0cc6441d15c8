"""The dispatcher: claim due deliveries of one type, prepare, send in threads, record the results.

The main thread uses the database, the threads use the network. Any number of dispatchers may run
concurrently, on any number of machines: the claim decides which one sends a delivery.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.utils import timezone

from common.db.sql import database_now
from common.errors import is_outage
from notifications.mail.smtp_session import kept_mail_session
from notifications.models import Delivery
from notifications.outbox.attempt import send_and_log
from notifications.outbox.expansion import expand_changes
from notifications.outbox.lanes import next_check
from notifications.outbox.leases import LEASES, claim_due
from notifications.outbox.results import SendResult, finish_unsent, record_results, release_unsent
from notifications.outbox.senders import SendCall, prepare_batch

logger = logging.getLogger(__name__)

# Seconds: the limit of a run, and how long it stays idle before it ends.
MAX_SECONDS = 20.0
LINGER = 0.5
MIN_SLEEP, MAX_SLEEP = 0.02, 1.0
# A send starts at most so long after its claim: no attempt takes the rest of the lease.
START_WITHIN = 14.0
# The last sends end within their lease, plus as long for an outage of the database. If killed
# earlier, mails already sent would count as lost and be sent twice.
MAX_RUN = MAX_SECONDS + 2 * max(LEASES.values()).total_seconds()
AHEAD = 4  # rows claimed per thread, so that no thread waits for the database
# Seconds to wait for the first result, and to collect further ones.
FIRST_RESULT, FURTHER_RESULTS = 0.05, 0.02

DATABASE_ERRORS = (DatabaseError, InterfaceError)


class DispatchJob:
    """A claimed delivery on its way through the thread pool."""

    __slots__ = ("row", "send", "starts_until")

    def __init__(self, row: Delivery, send: SendCall, starts_until: float) -> None:
        self.row, self.send, self.starts_until = row, send, starts_until


class Dispatcher:
    """`Dispatcher("webhook", stopping=...).run()`; `stopping()` requests an early end."""

    def __init__(self, kind: str, *, stopping: Callable[[], bool] = lambda: False) -> None:
        self.kind = kind
        self.stopping = stopping
        self.threads = settings.DELIVERY_THREADS
        self.jobs: queue.SimpleQueue[DispatchJob | None] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[tuple[DispatchJob, SendResult | None]] = queue.SimpleQueue()
        self.workers: list[threading.Thread] = []
        self.in_progress = 0
        self.sent = 0
        self.away_since: float | None = None

    def run(self) -> int:
        """Send until nothing is due; return the number of attempts.

        1. Expand changes to their webhook calls (`expansion`). Claim due rows, a few for each
           thread, under a lease (`leases.LEASES`) and within the caps of server and app
           (`leases.claim_due`).
        2. Prepare each: is it still relevant, who is the recipient, what is the content? Irrelevant
           ones end unsent (`prepare_batch`, `results.finish_unsent`).
        3. Pass the others to threads, which use the network and no database. A thread sends only
           while enough of the lease is left; otherwise the row is released without an attempt.
        4. Record the results under the rows' leases (`results.record_results`). A row with a lost
           lease has a new token: its state is left to its new worker.
        5. Repeat for at most 20 seconds; the next wake-up starts another run. If nothing is due,
           wait for half a second after the last work, and for rows due within a second.

        If the worker dies in 1 to 3, its rows are due again when their leases end. If it dies
        between the server's answer and 4, the row is sent twice, under the same id. Raises the
        database's error if an outage outlasts a lease.
        """
        try:
            self._run_until_dry()
        finally:
            self._join_threads()
        return self.sent

    def _run_until_dry(self) -> None:
        ends = time.monotonic() + MAX_SECONDS
        working_at = -LINGER  # lingers only after work
        while True:
            is_ending = self.stopping() or time.monotonic() > ends
            try:
                has_claimed = not is_ending and self._claim()
                # A result may free deliveries that it held back: the claim above came too early.
                has_results = self.in_progress > 0
                self._record_finished()
                idle = not has_results and not has_claimed
                pause = self._seconds_to_sleep(working_at) if idle and not is_ending else None
            except DATABASE_ERRORS as error:
                if not is_outage(error):
                    raise
                self._wait_for_database(error)
                continue
            if not idle:
                working_at = time.monotonic()
            elif pause is None:
                return
            else:
                time.sleep(pause)

    def _seconds_to_sleep(self, working_at: float) -> float | None:
        """Return how long to sleep until something may be due; None: end the run."""
        due = next_check(self.kind)
        left = (due - database_now()).total_seconds() if due else MAX_SLEEP + 1
        if 0 < left <= MAX_SLEEP:
            return max(left, MIN_SLEEP)
        # Already due: its endpoint is at its cap, or another dispatcher has it.
        return LINGER / 10 if time.monotonic() - working_at < LINGER else None

    def _wait_for_database(self, error: Exception) -> None:
        """Wait and reconnect: results of finished sends are still to be recorded."""
        connection.close()
        self.away_since = self.away_since or time.monotonic()
        if time.monotonic() - self.away_since > LEASES[self.kind].total_seconds():
            raise error
        logger.warning("%s dispatcher: the database is away (%s)", self.kind, type(error).__name__)
        time.sleep(1)

    def _claim(self) -> bool:
        """Claim rows for the threads; return whether changes were expanded or lanes due, so that
        more may be due.
        """
        most = self.threads * AHEAD
        room = most - self.in_progress
        if room < most // 2 and self.in_progress:  # a claim costs as much for a few rows
            return False
        has_expanded = self.kind == Delivery.WEBHOOK and expand_changes()
        starts_until = time.monotonic() + START_WITHIN
        rows = claim_due(self.kind, room)
        if not rows:
            return has_expanded or rows is not None
        sends, unsent = prepare_batch(rows, now=timezone.now())
        if unsent:
            finish_unsent(unsent)
        self._start_threads()
        for row, send in sends:
            self.in_progress += 1
            self.jobs.put(DispatchJob(row, send, starts_until))
        return True

    def _start_threads(self) -> None:
        """Start the threads at the first job: most runs find nothing due."""
        if not self.workers:
            self.workers = [
                threading.Thread(target=self._work, name=f"{self.kind}-{number}")
                for number in range(self.threads)
            ]
            for worker in self.workers:
                worker.start()

    def _join_threads(self) -> None:
        """Let the threads finish their jobs, and join them."""
        for _ in self.workers:
            self.jobs.put(None)
        for worker in self.workers:
            worker.join()

    def _work(self) -> None:
        with kept_mail_session():
            while job := self.jobs.get():
                self._send_job(job)

    def _send_job(self, job: DispatchJob) -> None:
        """Send one job. Runs in a thread: no database."""
        if self.stopping() or time.monotonic() > job.starts_until:
            self.done.put((job, None))
            return
        self.done.put((job, send_and_log(job.row, job.send)))

    def _record_finished(self) -> None:
        """Record the finished results; wait briefly if some are pending."""
        batch = self._collect()
        tried = [(job, outcome) for job, outcome in batch if outcome is not None]
        unsent = [job for job in batch if job[1] is None]
        try:
            if tried:
                self._finish([(job.row, outcome) for job, outcome in tried])
                self._count_written(tried)
                tried = []
            if unsent:
                release_unsent([job.row for job, _ in unsent])
                self._count_written(unsent)
        except DATABASE_ERRORS:
            for each_job in (*tried, *unsent):
                self.done.put(each_job)
            raise

    def _finish(self, results: list[tuple[Delivery, SendResult]]) -> None:
        """Record results; if that fails, one by one: one bad row must not get others sent again.

        A row may be missing: deleted by hand or with its app.
        """
        try:
            record_results(results)
        except Exception as error:
            if is_outage(error):
                raise
            if len(results) == 1:
                logger.exception("the result of delivery %s can't be kept", results[0][0].id)
                return
            logger.warning("results are written one by one (%s)", type(error).__name__)
            for result in results:
                self._finish([result])

    def _count_written(self, written: Sequence[tuple[DispatchJob, SendResult | None]]) -> None:
        self.away_since = None
        self.in_progress -= len(written)
        self.sent += sum(outcome is not None for _, outcome in written)

    def _collect(self) -> list[tuple[DispatchJob, SendResult | None]]:
        batch: list[tuple[DispatchJob, SendResult | None]] = []
        until = time.monotonic() + (FIRST_RESULT if self.in_progress else 0)
        with contextlib.suppress(queue.Empty):
            while len(batch) < self.in_progress:
                batch.append(self.done.get(timeout=max(0, until - time.monotonic())))
                until = min(until, time.monotonic() + FURTHER_RESULTS) if len(batch) == 1 else until
        return batch


def run_dispatcher(kind: str, *, stopping: Callable[[], bool] = lambda: False) -> int:
    """Run a dispatcher on a healthy connection; return the number of attempts."""
    close_old_connections()
    return Dispatcher(kind, stopping=stopping).run()
