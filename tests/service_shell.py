"""One Python process beside a live service, with Django set up in the service's environment.

It runs what tests hand it, one piece of code after another: a management command for each would
spend a second on its start.
"""

import contextlib
import io
import json
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path


class Shell:
    """`shell.run("print(1)")` -> "1\\n"; starts with the first piece of code."""

    def __init__(self, env: Mapping[str, str], folder: Path) -> None:
        self.env, self.folder = env, folder
        self.lock = threading.Lock()
        self.process: subprocess.Popen[str] | None = None

    def run(self, code: str) -> str:
        """What the code printed. Raises AssertionError with its traceback."""
        with self.lock:
            process = self.process = self.process or self._start()
            assert process.stdin
            assert process.stdout
            process.stdin.write(json.dumps(code) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        assert answer, "the shell has ended"
        fault, printed = json.loads(answer)
        assert not fault, fault
        return printed

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.service_shell"],
            cwd=self.folder,
            env=dict(self.env) | {"DJANGO_SETTINGS_MODULE": "scheduling.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def stop(self) -> None:
        if self.process:
            self.process.communicate()  # ends with its input


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
