"""Deadlines for the head and the body of a request, for gunicorn.

A thread reads its request from the socket, and gunicorn sets no time-out: a client that sends a
byte every two seconds would keep the thread for ever. A proxy should collect whole requests before
it passes them on (deploy/). With these deadlines, web also recovers without a proxy.
"""

import math
import socket
import time
from contextlib import suppress
from typing import Any

from gunicorn import http
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import SocketUnreader

HEAD_SECONDS = 10.0  # from its first byte to its last
BODY_SECONDS = 10.0  # from the end of the head


def install() -> None:
    """Let gunicorn parse the requests of this process with deadlines."""
    http.RequestParser = TimedParser


class TimedUnreader(SocketUnreader):
    """Reads from a client until `ends`, on the monotonic clock; what has arrived is never late."""

    ends = math.inf

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.request: Any = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return the next bytes, b"" at their end. Raises TimeoutError at the deadline."""
        timeout = self.sock.gettimeout()
        left = max(0.0, self.ends - time.monotonic())
        self.sock.settimeout(left if timeout is None else min(left, timeout))
        try:
            return super().chunk(size_hint)
        except (TimeoutError, BlockingIOError):
            self._refuse_more()
            raise TimeoutError from None
        finally:
            self.sock.settimeout(timeout)

    def _refuse_more(self) -> None:
        """End what the client may send; the service can still answer."""
        if self.request:
            self.request.force_close()
        # Else gunicorn's main thread would wait two seconds for the client before it closes.
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RD)


class TimedParser(RequestParser):
    """The requests of one connection. A late head ends it, a late body raises TimeoutError."""

    def __init__(self, cfg: Any, source: socket.socket, source_addr: Any) -> None:
        super().__init__(cfg, source, source_addr)
        self.unreader = TimedUnreader(source)

    def __next__(self) -> Any:
        self.unreader.request = None
        self.unreader.ends = time.monotonic() + HEAD_SECONDS
        try:
            request = super().__next__()
        except TimeoutError:
            raise StopIteration from None  # gunicorn closes the connection
        self.unreader.request = request
        self.unreader.ends = time.monotonic() + BODY_SECONDS
        return request
