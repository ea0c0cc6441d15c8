"""A gunicorn worker for several processes whose clients keep their connections."""

import socket
import time

from gunicorn.workers.gthread import ThreadWorker

PAUSE = 0.001  # seconds, for each request that waits for a thread
LONGEST_PAUSE = 0.05


class BalancedWorker(ThreadWorker):
    """Leaves new connections to a process in which fewer requests wait.

    All processes accept from one socket, and a busy one is the first to see a new connection: its
    main thread is awake already. Without the pause, one of two processes had 31 of 32 connections.
    """

    def accept(self, listener: socket.socket) -> None:
        idle = len(self.keepalived_conns) + len(self.pending_conns)
        waiting = self.nr_conns - idle - self.cfg.threads
        if waiting > 0:
            # The threads have work until the main thread continues.
            time.sleep(min(waiting * PAUSE, LONGEST_PAUSE))
        super().accept(listener)
