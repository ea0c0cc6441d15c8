"""Reads from a replica (`DATABASE_REPLICA_URL`), for responses that may be a second old.

Positions in the write-ahead log (bytes) say what a replica has; no clocks are compared. A replica
serves a read only if it has replayed
- the position at which the primary was a second ago at most, and
- the position after the reader's own last write, which Redis has for all processes.

A reader is a credential, or an account of the back office. Without Redis, the primary is read.
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection, connections

from common.db.connections import REPLICA, use_connection
from common.errors import sqlstate_of

Result = TypeVar("Result")

MAX_LAG = 1.0  # seconds
SAMPLE_SECONDS = 0.25  # how often a process asks the primary for its position
PAUSE = 10.0  # seconds without the replica after a failure
WAIT_STEP = 0.005
UNKNOWN = sys.maxsize  # a position that no replica has

CONFLICT = "40001"  # with the replay of changes, on the replica
TIMED_OUT = "57014"

_POSITION = """
SELECT CASE WHEN pg_is_in_recovery() THEN NULL
ELSE pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint END
"""
_REPLAYED = """
SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint WHERE pg_is_in_recovery()
"""
_REPLAYED_AT = "SELECT coalesce(extract(epoch FROM pg_last_xact_replay_timestamp()), 0)::float"
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float"


class NotReplica(OperationalError):
    """DATABASE_REPLICA_URL leads to a server that is no standby: it may have other rows."""


class PrimaryPositions:
    """Where the primary's log was within the last second, for all threads of the process."""

    def __init__(self) -> None:
        self.samples: deque[tuple[float, int]] = deque()
        self.lock = threading.Lock()

    def position_max_lag_ago(self) -> int:
        """Return a position that has everything that was committed MAX_LAG ago."""
        now = time.monotonic()  # before the statement: it sees what was committed until now
        with self.lock:
            while self.samples and now - self.samples[0][0] > MAX_LAG:
                self.samples.popleft()
            if self.samples and now - self.samples[-1][0] < SAMPLE_SECONDS:
                return self.samples[0][1]
        position = read_position()
        with self.lock:
            self.samples.append((now, position))
            return self.samples[0][1]


class LastPositions(Protocol):
    """The position after each reader's last write, for all processes."""

    def store(self, reader: str, position: int) -> bool:
        """Store the position unless a later one is known. False: it could not be stored."""

    def find(self, reader: str) -> int | None:
        """Return the position, 0 if there was no write, or None if nobody knows."""


class Replica:
    """Decides which reads the replica serves. After a failure it serves none for a while."""

    def __init__(self, last_writes: LastPositions) -> None:
        self.last_writes = last_writes
        self.primary = PrimaryPositions()
        self.paused_until = 0.0

    def read(self, read: Callable[[], Result], reader: str) -> Result:
        if not self.may_serve(reader):
            return read()
        try:
            with use_connection(REPLICA):
                return read()
        except (DatabaseError, InterfaceError) as error:
            if sqlstate_of(error) == TIMED_OUT:
                raise
            self.note_failure(error)
            return read()

    def may_serve(self, reader: str) -> bool:
        """Whether the replica has what the reader wrote, and is less than a second behind."""
        written = self.last_writes.find(reader) if reader else 0
        if written is None or not self.may_try():
            return False
        try:
            needed = max(written, self.primary.position_max_lag_ago())
            has_replayed = self.replayed_position(needed) >= needed
        except (DatabaseError, InterfaceError) as error:
            self.note_failure(error)
            return False
        self.paused_until = 0.0
        return has_replayed

    def may_try(self) -> bool:
        """Whether no failure was seen lately. At the end of a pause one thread tries first."""
        now = time.monotonic()
        if now < self.paused_until:
            return False
        if self.paused_until:
            self.paused_until = now + PAUSE
        return True

    def replayed_position(self, needed: int) -> int:
        """Return what this thread's replica has; it is asked only if it was behind `needed`.

        A pooler may lead the next statement to another replica.
        """
        server: Any = connections[REPLICA]
        if server.replayed_position < needed or settings.DB_POOLED:
            server.replayed_position = _read_replica(_REPLAYED)
        return server.replayed_position

    def note_failure(self, error: DatabaseError | InterfaceError) -> None:
        """Use a new connection next time; later, unless only this read was in the way."""
        connections[REPLICA].close()
        is_outage = isinstance(error, (OperationalError, InterfaceError))
        if is_outage and sqlstate_of(error) != CONFLICT:
            self.paused_until = time.monotonic() + PAUSE

    def note_write(self, reader: str) -> None:
        """Remember that the reader has written. Call it after the commit, before the response."""
        position = position_or_unknown()
        if position == UNKNOWN or not self.last_writes.store(reader, position):
            self.wait_for(position)

    def wait_for(self, position: int) -> None:
        """Let no process miss a write that Redis does not know: wait for the replica."""
        ends = time.monotonic() + MAX_LAG
        while time.monotonic() < min(ends, self.paused_until or ends):
            try:
                if self.replayed_position(position) >= position:
                    return
            except (DatabaseError, InterfaceError) as error:
                self.note_failure(error)
                return
            time.sleep(WAIT_STEP)


def read_position() -> int:
    """Return the end of the primary's log; UNKNOWN if the default connection leads to a standby."""
    with connection.cursor() as cursor:
        cursor.execute(_POSITION)
        (position,) = cursor.fetchone()
    return UNKNOWN if position is None else position


def position_or_unknown() -> int:
    """Return the end of the primary's log. What was committed stays so if it can't be asked."""
    try:
        return read_position()
    except (DatabaseError, InterfaceError):
        return UNKNOWN


replica: Replica | None = None
# Without Redis, no process can know the writes of the others.
if REPLICA in settings.DATABASES and settings.REDIS_URL:
    from common.db.last_writes import LastWrites

    replica = Replica(LastWrites(settings.REDIS_URL))


def read_on_replica(read: Callable[[], Result], reader: str = "") -> Result:
    """Return `read()`, run on the replica if it may serve the reader, else on the primary.

    `read` changes nothing, needs no open transaction, and may run twice: a read that the replica
    ends (it is away, or replays a conflicting change) is repeated on the primary. "": nobody who
    writes.
    """
    return replica.read(read, reader) if replica else read()


def note_write(reader: str) -> None:
    """Let later reads of this reader see what it has just committed, in all processes."""
    if replica:
        replica.note_write(reader)


def replica_lag() -> float:
    """Return by how many seconds at most the replica is behind; inf: no answer, or no replica.

    The replica knows only when its last transaction was committed, which may be long ago on an
    idle primary. So it gets a moment to replay the primary's present position.
    """
    position, began = position_or_unknown(), time.monotonic()
    try:
        while time.monotonic() - began < SAMPLE_SECONDS:
            if _read_replica(_REPLAYED) >= position:
                return time.monotonic() - began
            time.sleep(WAIT_STEP)
        last = _read_replica(_REPLAYED_AT)
    except (DatabaseError, InterfaceError):
        connections[REPLICA].close()
        return float("inf")
    with connection.cursor() as cursor:
        cursor.execute(_NOW)
        return max(SAMPLE_SECONDS, cursor.fetchone()[0] - last)


def _read_replica(statement: str) -> Any:
    """Return the statement's value on the replica. Raises NotReplica if there is no row."""
    with connections[REPLICA].cursor() as cursor:
        cursor.execute(statement)
        found = cursor.fetchone()
    if found is None:
        raise NotReplica("DATABASE_REPLICA_URL leads to no replica")
    return found[0]
