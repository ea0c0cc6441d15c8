"""A worker's process that ends by SIGKILL."""

import os
import signal
from collections.abc import Callable

from django.db import connection


class Worker:
    """A process that does one thing."""

    def __init__(self, run: Callable[[], object]) -> None:
        connection.close()
        self.pid = os.fork()
        if not self.pid:
            try:
                run()
            finally:
                os._exit(0)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """What ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
