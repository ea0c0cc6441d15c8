"""Django's PostgreSQL backend, with a check of idle connections that asks the server less often."""

import select
import time

from django.db.backends.postgresql import base

CHECKED_FOR = 30.0  # seconds


class DatabaseWrapper(base.DatabaseWrapper):
    """Django would send SELECT 1 before the first statement of each request."""

    _checked_at = 0.0
    replayed_position = 0  # of a replica's log, as far as this connection knows

    def connect(self) -> None:
        self.replayed_position = 0  # it may be another server
        super().connect()

    def is_usable(self) -> bool:
        """Whether the connection works.

        A server that has ended a connection has closed its socket, which can be seen here. What
        can't be seen, such as a router that has dropped an idle connection, is asked of the server
        once in 30 seconds.
        """
        now = time.monotonic()
        if now - self._checked_at < CHECKED_FOR and self._has_nothing_to_read():
            return True
        self._checked_at = now
        return bool(super().is_usable())

    def _has_nothing_to_read(self) -> bool:
        """Whether nothing has arrived: neither the end of the connection nor a last message."""
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0)
