"""Who waits for a lock, as PostgreSQL tells it."""

import time

from django.db import connection


def wait_for_a_waiter() -> None:
    """Until a statement waits for a lock of this transaction."""
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks"
                " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            if cursor.fetchone() != (0,):
                return
        time.sleep(0.02)
    raise AssertionError("nobody waits")


def wait_for_waiters(number: int) -> None:
    """Until so many sessions of this database wait for a lock, whoever has it."""
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid)"
                " WHERE NOT granted AND datname = current_database()"
            )
            if cursor.fetchone() == (number,):
                return
        time.sleep(0.02)
    raise AssertionError(f"there are never {number} waiters")
