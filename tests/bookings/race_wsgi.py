"""The service with faults that a request asks for in its header `Fault`, a JSON object.

    unlocked: true          takes no lock: no row locks, no advisory ones, and on SQLite, whose
                            lock is the transaction, no transaction
    pause: seconds          between the check and the write of an event or a hold, or before the
                            statement of `at`
    meet: folder            at the same place, until half a dozen requests have come so far
    patience: milliseconds  how long a lock is waited for
    at: pattern             the statement at which one of these happens:
      gate: folder          before it, makes the file `reached`, waits for the file `open`
      do: meet              after it, the meeting in the folder of `meet`
      do: raise             after it, an exception
      do: kill              after it, kill -9 of every process of the service
    do: kill_at_the_end     the same after the commit, before the answer

Only the tests know this module: nothing of it is in the service, whose statements it bends.
"""

import json
import os
import re
import signal
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.core.wsgi import get_wsgi_application
from django.db import connection

TAKES_TIME = re.compile(r'(INSERT INTO|UPDATE) "availability_(event|hold)"')
LOCKS = re.compile(r"\sFOR (SHARE|NO KEY UPDATE|UPDATE).*", re.DOTALL)
TRANSACTION = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK TO")
MEETING = 6  # more than a project of these tests has resources: two of them want the same one
MEETING_SECONDS = 10
GATE_SECONDS = 30


class InjectedError(Exception):
    pass


class Faults:
    """Wraps every statement of one request."""

    def __init__(
        self,
        *,
        unlocked: bool = False,
        pause: float = 0,
        meet: str = "",
        patience: int = 0,
        at: str = "",
        gate: str = "",
        do: str = "",
    ) -> None:
        self.unlocked = unlocked
        self.pause = pause
        self.meet = meet
        self.patience = patience
        self.at = re.compile(at) if at else None
        self.gate = gate
        self.do = do

    def __call__(self, execute: Callable, sql: str, params: Any, many: bool, context: dict) -> Any:
        if self.patience:
            self.shorten_waits()
        if (self.at or TAKES_TIME).match(sql):
            time.sleep(self.pause)
            if self.meet and self.do != "meet":
                self.meet_others()
        is_here = self.at is not None and self.at.search(sql)
        if is_here and self.gate:
            self.wait_at_gate()
        result = execute(without_locks(sql) if self.unlocked else sql, params, many, context)
        if is_here:
            self.inject()
        return result

    def shorten_waits(self) -> None:
        if connection.vendor == "sqlite":
            connection.connection.execute(f"PRAGMA busy_timeout = {self.patience}")
        elif connection.in_atomic_block:
            connection.connection.execute(f"SET LOCAL lock_timeout = {self.patience}")

    def meet_others(self) -> None:
        folder = Path(self.meet)
        (folder / uuid.uuid4().hex).touch()
        deadline = time.monotonic() + MEETING_SECONDS
        while len(list(folder.iterdir())) < MEETING and time.monotonic() < deadline:
            time.sleep(0.005)

    def wait_at_gate(self) -> None:
        self.at = None
        folder = Path(self.gate)
        (folder / "reached").touch()
        deadline = time.monotonic() + GATE_SECONDS
        while not (folder / "open").exists():
            if time.monotonic() > deadline:
                raise InjectedError("nobody opened the gate")
            time.sleep(0.005)

    def inject(self) -> None:
        if self.do == "meet":
            self.meet_others()
        if self.do == "raise":
            raise InjectedError("as asked")
        if self.do == "kill":
            kill_service()


def without_locks(sql: str) -> str:
    if connection.vendor == "sqlite":
        return "SELECT 1" if sql.startswith(TRANSACTION) else sql
    return LOCKS.sub("", sql).replace("pg_advisory_xact_lock", "")


def kill_service() -> None:
    """The group is gunicorn's own: its master and workers, not the test that started them."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


service = get_wsgi_application()


def application(environ: dict[str, Any], start_response: Callable) -> Iterable[bytes]:
    asked = json.loads(environ.pop("HTTP_FAULT", "{}"))
    with connection.execute_wrapper(Faults(**asked)):
        answer = service(environ, start_response)
    if "patience" in asked:
        connection.close()  # kept open otherwise, with its short patience
    if asked.get("do") == "kill_at_the_end":
        kill_service()
    return answer
