"""One Python process beside a live service, with Django set up in the service's environment.

It runs what tests hand it, one piece of code after another: a management command for each would
spend a second on its start.
"""

import contextlib
import io
import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path

from tests.fork_server import ForkedProcess, ForkServer


class Shell:
    """`shell.run("print(1)")` -> "1\\n"; starts with the first piece of code."""

    def __init__(self, server: ForkServer, env: Mapping[str, str], folder: Path) -> None:
        self.server, self.env, self.folder = server, env, folder
        self.lock = threading.Lock()
        self.process: ForkedProcess | None = None

    def run(self, code: str) -> str:
        """What the code printed. Raises AssertionError with its traceback."""
        with self.lock:
            if self.process is None:
                self._start()
            self.questions.write(json.dumps(code) + "\n")
            answer = self.answers.readline()
        assert answer, "the shell has ended"
        fault, printed = json.loads(answer)
        assert not fault, fault
        return printed

    def _start(self) -> None:
        (asked, ask), (answered, answer) = os.pipe(), os.pipe()
        self.questions, self.answers = os.fdopen(ask, "w", buffering=1), os.fdopen(answered)
        with os.fdopen(asked) as input, os.fdopen(answer, "w") as output:
            self.process = self.server.start(
                "tests.service_shell",
                cwd=self.folder,
                env={**self.env, "DJANGO_SETTINGS_MODULE": "scheduling.settings"},
                input=input,
                output=output,
                errors=sys.__stderr__,
            )

    def stop(self) -> None:
        if self.process:
            self.questions.close()  # it ends with its input
            self.process.wait(30)
            self.answers.close()
            self.process = None


def main() -> None:
    import django

    django.setup()
    from django.db import connections

    for line in sys.stdin:
        printed, fault = io.StringIO(), ""
        try:
            with contextlib.redirect_stdout(printed):
                exec(json.loads(line), {})  # the tests' own code
        except Exception:
            fault = traceback.format_exc()
        # The next piece may find a database that was restarted meanwhile.
        connections.close_all()
        sys.stdout.write(json.dumps([fault, printed.getvalue()]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
