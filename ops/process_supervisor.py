"""Run web, worker and beat until one ends: python -m ops.process_supervisor FILE.

FILE is the number of an open file with the plan of `manage.py up`, which starts this program in its
place. It imports only the standard library: it runs as long as the service.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import IO

# Outlives a killed supervisor: its standard input then ends, and it stops the processes named on
# it. It signals the leaders first, so that the worker can finish its tasks, then whole groups.
WATCHDOG = """
trap '' INT TERM HUP
while read -r pid; do leaders="$leaders $pid"; done
alive() { for pid in $leaders; do kill -s 0 -- "-$pid" && return; done; }
for pid in $leaders; do kill -s TERM -- "$pid"; done
left=$1
while alive && [ "$left" -gt 0 ]; do sleep 1; left=$((left - 1)); done
for pid in $leaders; do kill -s KILL -- "-$pid"; done
"""


class ProcessFailed(Exception):
    """A process of the service has ended or does not answer."""


class Supervisor:
    """Starts the children, forwards their output, and makes sure that all of them end."""

    def __init__(self, *, environment: dict[str, str], grace: int, lock: int) -> None:
        self.environment = os.environ | environment
        self.grace, self.lock = grace, lock
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.readers: list[threading.Thread] = []
        self.stop_asked = False

    def run(self, listener: socket.socket, commands: dict[str, list[str]], welcome: str) -> None:
        """Run until a stop is requested (returns) or a child exits (raises ProcessFailed).

        `welcome`: the text to print when web answers.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.ask_to_stop)
        heard, told = os.pipe()
        watchdog = self.start_watchdog(heard)
        try:
            for name, command in commands.items():
                self.start(name, command, listener)
                os.write(told, b"%d\n" % self.children[name].pid)
            address = listener.getsockname()[:2]
            listener.close()
            if self.answers(address):
                print_line(welcome)
            while not self.stop_asked:
                self.raise_if_child_ended()
                time.sleep(0.2)
            print_line("Stopping ...")
        finally:
            self.stop_children()
            watchdog.kill()
            watchdog.wait()

    def ask_to_stop(self, number: int, frame: object) -> None:
        if self.stop_asked:  # a second request kills at once
            self.signal_groups(signal.SIGKILL)
        self.stop_asked = True

    def start_watchdog(self, heard: int) -> subprocess.Popen[bytes]:
        """Start the watchdog; it holds the folder's lock, so no service starts before it ends."""
        return subprocess.Popen(
            ["/bin/sh", "-c", WATCHDOG, "watchdog", str(self.grace)],
            stdin=heard,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[self.lock],
            start_new_session=True,
        )

    def start(self, name: str, command: list[str], listener: socket.socket) -> None:
        # A session of its own: Ctrl-C reaches only the supervisor, which signals only the leader.
        # Signalling the worker's pool too would lose running tasks.
        child = subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[listener.fileno()] if name == "web" else [],
            start_new_session=True,
        )
        self.children[name] = child
        reader = threading.Thread(target=forward_output, args=(name, child.stdout), daemon=True)
        reader.start()
        self.readers.append(reader)

    def answers(self, address: tuple[str, int], seconds: float = 60) -> bool:
        """Return True as soon as web answers; False if a stop is requested first."""
        deadline = time.monotonic() + seconds
        while not self.stop_asked:
            self.raise_if_child_ended()
            with contextlib.suppress(OSError, http.client.HTTPException):
                web = http.client.HTTPConnection(*address, timeout=1)
                web.request("GET", "/healthz")
                if web.getresponse().status == 200:
                    return True
            if time.monotonic() > deadline:
                raise ProcessFailed(f"/healthz did not answer 200 within {seconds:.0f} seconds")
            time.sleep(0.1)
        return False

    def raise_if_child_ended(self) -> None:
        for name, child in self.children.items():
            if child.poll() is not None:
                raise ProcessFailed(f"{name} ended by itself (exit code {child.returncode})")

    def stop_children(self) -> None:
        """Terminate the leaders; after the grace period, kill the remaining process groups."""
        self.stop_asked = True
        for child in self.children.values():
            child.terminate()  # no effect on an ended process
        deadline = time.monotonic() + self.grace
        for child in self.children.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0, deadline - time.monotonic()))
        self.signal_groups(signal.SIGKILL)
        for child in self.children.values():
            child.wait()
        for reader in self.readers:
            reader.join(1)

    def signal_groups(self, number: int) -> None:
        for child in self.children.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)


def forward_output(name: str, stream: IO[bytes]) -> None:
    for line in stream:
        print_line(f"{name:<6} | {line.decode(errors='replace').rstrip()}")


def print_line(text: str) -> None:
    """Print a line; ignore a closed terminal or a broken pipe."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def main() -> None:
    with open(int(sys.argv[1])) as file:
        plan = json.load(file)
    os.set_inheritable(plan["lock"], False)
    listener = socket.socket(fileno=plan["listener"])
    listener.set_inheritable(False)
    supervisor = Supervisor(environment=plan["environment"], grace=plan["grace"], lock=plan["lock"])
    try:
        supervisor.run(listener, plan["commands"], plan["welcome"])
    except ProcessFailed as error:
        sys.exit(f"CommandError: {error}")


if __name__ == "__main__":
    main()
