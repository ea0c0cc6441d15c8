"""A fork of the server is to a program what a new Python process is."""

import json
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import ForkedProcess, ForkServer

REPORT = """
import json, os, sys, tempfile
print(json.dumps({
    "name": __name__,
    "arguments": sys.argv[1:],
    "folder": os.getcwd(),
    "first on the path": sys.path[0],
    "environment": dict(os.environ),
    "session": os.getsid(0) == os.getpid(),
    "input": sys.stdin.read(),
    "threads": len(sys._current_frames()),
    "temporary folder": tempfile.gettempdir(),
    "loaded": [name for name in ("django", "gunicorn", "prometheus_client") if name in sys.modules],
    "settings": sys.modules["django.conf"].settings.configured,
}))
sys.stderr.write("a complaint")
sys.exit(3)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.stop()


def start(server: ForkServer, folder: Path, code: str, *args: str) -> ForkedProcess:
    (folder / "program.py").write_text(code)
    with open(folder / "output", "wb") as output, open(folder / "errors", "wb") as errors:
        env = {"TMPDIR": str(folder), "COLOUR": "blue"}
        return server.start("program", *args, cwd=folder, env=env, output=output, errors=errors)


def test_program_runs_as_in_a_new_process(server: ForkServer, tmp_path: Path) -> None:
    process = start(server, tmp_path, REPORT, "one", "two")

    assert (process.wait(60), process.poll()) == (3, 3)
    report: dict[str, Any] = json.loads((tmp_path / "output").read_text())
    assert report == {
        "name": "__main__",
        "arguments": ["one", "two"],
        "folder": str(tmp_path),
        "first on the path": str(tmp_path),
        "environment": {"TMPDIR": str(tmp_path), "COLOUR": "blue"},
        "session": True,
        "input": "",
        "threads": 1,
        "temporary folder": str(tmp_path),
        "loaded": ["django"],
        "settings": False,
    }
    assert (tmp_path / "errors").read_text() == "a complaint"


def test_program_is_run_to_its_end(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys; print(sys.argv[1]); sys.stderr.write('a complaint'); sys.exit(3)"
    )

    done = server.run("program", "one", cwd=tmp_path, env={})

    assert (done.returncode, done.stdout, done.stderr) == (3, "one\n", "a complaint")


def test_two_forks_draw_different_numbers(server: ForkServer, tmp_path: Path) -> None:
    drawn = set()
    for _ in range(2):
        assert start(server, tmp_path, "import random; print(random.random())").wait(60) == 0
        drawn.add((tmp_path / "output").read_text())

    assert len(drawn) == 2


def test_fault_and_signal_are_exit_codes(server: ForkServer, tmp_path: Path) -> None:
    failed = start(server, tmp_path, "1 / 0")
    assert failed.wait(60) == 1
    assert "ZeroDivisionError" in (tmp_path / "errors").read_text()

    killed = start(server, tmp_path, "import time; time.sleep(600)")
    assert killed.poll() is None
    killed.send_signal(signal.SIGKILL)
    assert killed.wait(60) == -9
    killed.send_signal(signal.SIGKILL)  # to none, and no error


def test_programs_end_with_the_server(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time; time.sleep(600)")
    server = ForkServer()
    reader, writer = os.pipe()
    with open(reader, "rb") as heard:
        with open(writer, "wb") as output:
            server.start("program", cwd=tmp_path, env={}, output=output)

        server.stop()

        assert select.select([heard], [], [], 30)[0] == [heard]
        assert heard.read() == b""  # nobody can write any more
