"""A gunicorn worker for several processes whose clients keep their connections."""

import socket
import time

from gunicorn.workers.gthread import ThreadWorker

PAUSE = 0.001  # seconds, for each waiting request but one for each thread
LONGEST_PAUSE = 0.05


class BalancedWorker(ThreadWorker):
    """Leaves new connections to another process, if fewer requests wait there.

    All processes accept from one socket, and a busy one is the first to see a new connection: its
    main thread is awake already. Without the pause, one of two processes had 31 of 32 connections.
    """

    def accept(self, listener: socket.socket) -> None:
        idle = len(self.keepalived_conns) + len(self.pending_conns)
        # Besides the requests that are served, one for each thread, which then has work until the
        # main thread continues.
        waiting = self.nr_conns - idle - 2 * self.cfg.threads
        if waiting > 0 and self.cfg.workers > 1:
            time.sleep(min(waiting * PAUSE, LONGEST_PAUSE))
        super().accept(listener)
