"""Starts Python programs for tests as forks of a process that has imported the libraries already.

To start a process of the service takes more than a second of CPU time, three fifths of it for the
imports of libraries. A fork does not repeat them. The program itself (settings, models, views) is
imported after the fork, in the program's own folder and environment.

    server = ForkServer()
    process = server.start("celery", "--version", cwd=folder, env=env, output=log)
    process.wait(30)
    server.stop()
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

# Not gunicorn and prometheus_client: they read the environment when they are imported. Not what
# needs Django's settings: these libraries are imported by the program.
LIBRARIES = (
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "django.contrib.admin.options",
    "django.core.handlers.wsgi",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django_filters.rest_framework",
    "fido2.server",
    "holidays",
    "icalendar",
    "jinja2",
    "kombu.transport.redis",
    "rest_framework.serializers",
)


def end_with_parent() -> None:
    """In the child on Linux: a killed test run leaves no server behind (1 = PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        # A shell ignores it in its background jobs, and so do their children.
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


# --- In the test's process ------------------------------------------------------------------------
class ForkServer:
    """Starts with the first program, and ends with the process that made it at the latest: then
    its socket is closed. A death signal would come with the end of a thread already.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        module: str,
        *args: str,
        cwd: Path,
        env: Mapping[str, str],
        output: IO[Any],
        input: IO[Any] | None = None,
        errors: IO[Any] | None = None,
    ) -> "ForkedProcess":
        """Run `python -m module args` as the leader of a session of its own."""
        program = {"module": module, "args": args, "cwd": str(cwd), "env": dict(env)}
        with open(os.devnull) as nothing:
            files = [(input or nothing).fileno(), output.fileno(), (errors or output).fileno()]
            return ForkedProcess(self, self.ask(program, files))

    def run(
        self, module: str, *args: str, cwd: Path, env: Mapping[str, str], timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run the program to its end, as `subprocess.run` does with the output captured."""
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            process = self.start(module, *args, cwd=cwd, env=env, output=output, errors=errors)
            code = process.wait(timeout)
            for file in (output, errors):
                file.seek(0)
            return subprocess.CompletedProcess([module, *args], code, output.read(), errors.read())

    def ask(self, question: dict[str, Any], files: list[int]) -> Any:
        with self.lock:
            if self.process is None:
                self.launch()
            send(self.connection, question, files)
            return receive(self.connection)[0]

    def launch(self) -> None:
        self.connection, far_end = socket.socketpair()
        with far_end:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(far_end.fileno())],
                pass_fds=[far_end.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def stop(self) -> None:
        """End the server, and with it what it has started and what still runs."""
        if self.process:
            self.connection.close()
            self.process.wait(30)


class ForkedProcess:
    """What `subprocess.Popen` is for a child; this process is a child of the server."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.server, self.pid = server, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self.server.ask({"exit code of": self.pid}, [])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


# --- Between them ---------------------------------------------------------------------------------
def send(connection: socket.socket, message: object, files: list[int]) -> None:
    content = json.dumps(message).encode() + b"\n"
    sent = socket.send_fds(connection, [content], files)
    if sent < len(content):  # the other side may have gone after it had all of it
        connection.sendall(content[sent:])


def receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """Return the next message and its open files. Raises EOFError if the other side has ended."""
    content, files, *_ = socket.recv_fds(connection, 1 << 16, 3)
    while not content.endswith(b"\n"):
        more = connection.recv(1 << 16)
        if not more:
            raise EOFError
        content += more
    return json.loads(content), files


# --- In the server --------------------------------------------------------------------------------
def main(connection: socket.socket) -> None:
    for library in LIBRARIES:
        importlib.import_module(library)
    # A pass of the collector over the libraries would copy their memory in each fork.
    gc.collect()
    gc.freeze()
    if forked := serve(connection):
        run_program(*forked, connection)


def serve(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return in each fork, with the program and its files; in the server at the end: None."""
    while True:
        try:
            message, files = receive(connection)
        except EOFError:
            return None
        if "module" not in message:
            send(connection, exit_code(message["exit code of"]), [])
        elif os.fork() == 0:
            return message, files
        for file in files:
            os.close(file)


def exit_code(pid: int) -> int | None:
    """Return None while the process runs, and the negative number of a signal that ended it."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def run_program(program: dict[str, Any], files: list[int], connection: socket.socket) -> None:
    """In the fork: run the program as a new Python would."""
    os.setsid()
    end_with_parent()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.environ.clear()
    os.environ.update(program["env"])
    os.chdir(program["cwd"])
    sys.path[0] = program["cwd"]
    sys.argv = [program["module"], *program["args"]]
    send(connection, os.getpid(), [])
    connection.close()
    runpy.run_module(program["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
