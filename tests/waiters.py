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
