"""./run and the commands of README.md as a stranger meets them: a clean copy of the tree, a folder
with a space, no settings."""

import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.management import CommandError, call_command

from ops.management.commands.up import bound_socket, served_hosts
from tests.guide import block_of_guide
from tests.services import ROOT, free_port

BLOCK = re.compile(r"^```sh ([\w-]+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROCESSES = 8  # of a whole ./run, at least
NOT_IN_A_CLONE = ("var", ".*cache", ".venv", ".git", ".hypothesis", "staticfiles", "*.mo")


def copy_tree(to: Path, *, compiled: bool = True) -> Path:
    """A clone of the tree; `compiled`: what Python has compiled already is copied, too."""
    left_out = (*NOT_IN_A_CLONE, *(() if compiled else ("__pycache__",)))
    return shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns(*left_out))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    return copy_tree(tmp_path_factory.mktemp("run") / "a clean copy")


def plain_environment(**more: str) -> dict[str, str]:
    """What a fresh login has; the packages are those of this very test run, to save the minute."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return kept | {"RUN_VENV": sys.prefix} | more


class Run:
    """A ./run that is started, and all processes that it makes."""

    def __init__(self, checkout: Path, *args: str, log: Path, **options) -> None:
        options = {"env": plain_environment(), "cwd": "/"} | options
        self.log_file = log
        with open(log, "wb") as file:
            self.process = subprocess.Popen(
                [checkout / "run", *args],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                **options,
            )

    def wait_until_ready(self) -> None:
        self.wait_until_logged("Ready: ")

    def wait_until_logged(self, text: str, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.log():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def family(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def whole_family(self, seconds: float = 30) -> list[psutil.Process]:
        """With the pools, whose processes may come up after the first answer of the web."""
        deadline = time.monotonic() + seconds
        while len(self.family()) < PROCESSES and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.family()


@contextlib.contextmanager
def running(checkout: Path, *args: str, log: Path, **options) -> Iterator[Run]:
    run = Run(checkout, *args, log=log, **options)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            for one in reversed(run.family()):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            run.process.wait()


def alive(processes: list[psutil.Process], seconds: float = 0) -> list[str]:
    """Those that still run after so many seconds; one that only waits to be collected does not."""
    deadline = time.monotonic() + seconds
    while True:
        left = []
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(" ".join(process.cmdline()))
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def refused(checkout: Path, *args: str, **env: str) -> str:
    """What a ./run says that refuses to start."""
    done = subprocess.run(
        [checkout / "run", *args],
        cwd="/",
        env=plain_environment(**env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def commands(name: str) -> str:
    """All blocks of that name, one after the other, as a newcomer types them."""
    blocks = [
        text for found, text in BLOCK.findall((ROOT / "README.md").read_text()) if found == name
    ]
    assert blocks, name
    return "".join(f"echo; echo '--- {number}'\n{text}" for number, text in enumerate(blocks))


def run_commands(text: str, folder: Path) -> list[str]:
    """What each block printed. A command that fails ends the test."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return re.split(r"^--- \d+\n", done.stdout, flags=re.MULTILINE)[1:]


def files_in(folder: Path) -> set[str]:
    """Files that a newcomer sees: not those of the service in var/."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith("var/") and "__pycache__" not in name}


def run_until(wanted: Sequence[str], text: str, folder: Path) -> str:
    """What commands that leave something running print, until all of these are there."""
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", f"{text}\necho\nwait"],
        cwd=folder,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as started:
        end = threading.Timer(300, os.killpg, (started.pid, signal.SIGKILL))
        end.start()
        try:
            printed = ""
            while not all(word in printed for word in wanted):
                line = started.stdout.readline()
                assert line, printed
                printed += line
            return printed
        finally:
            end.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def demo(checkout: Path) -> Iterator[tuple[Run, int]]:
    """./run with its demo data, and its port."""
    port = free_port()
    with running(checkout, "--port", str(port), log=checkout.parent / "log") as run:
        run.wait_until_ready()
        yield run, port


def test_run_shows_calls_and_pages_that_work(checkout: Path, demo: tuple[Run, int]) -> None:
    run, port = demo  # the first of its tests: the call books what was free at the start
    calls = [line.strip() for line in run.log().splitlines() if line.strip().startswith("curl")]

    answers = [
        json.loads(subprocess.run(["/bin/sh", "-c", call], capture_output=True).stdout)
        for call in calls
    ]
    page = re.search(r"Book +(http://\S+/book/\S+)", run.log())[1]
    with urllib.request.urlopen(page) as shown:
        heading = re.search(r"<h1[^>]*>(.*)</h1>", shown.read().decode())[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as shown:
        home = shown.read().decode()

    (booking,) = answers
    assert (booking["data"]["graph"], booking["data"]["state"]) == ("instant", "confirmed")
    assert heading == "Check-up"
    assert re.search(r"User +\S+@\S+\n +Password +\S+\n", run.log())
    api_key = json.loads((checkout / "var" / "demo.json").read_text())["api_key"]
    assert ('data-booking-inline="check-up"' in home, api_key in home) == (True, False)


def test_run_compiles_the_translations_of_a_clone(demo: tuple[Run, int]) -> None:
    run, _ = demo
    page = re.search(r"Book +(http://\S+/book/\S+)", run.log())[1]

    request = urllib.request.Request(page, headers={"Accept-Language": "de"})
    with urllib.request.urlopen(request) as shown:
        language = re.search(r'<html lang="(\w+)"', shown.read().decode())[1]

    assert language == "de"


def test_readme_first_booking(checkout: Path, demo: tuple[Run, int]) -> None:
    _, port = demo
    text = commands("first-booking").replace("127.0.0.1:8000", f"127.0.0.1:{port}")

    before = files_in(checkout)
    _, slot, made, refused, looked = run_commands(text, checkout)

    assert files_in(checkout) == before
    offered = json.loads(slot)
    assert set(offered) == {"start", "end", "resources"}
    booking = json.loads(made)["data"]
    assert (booking["state"], booking["graph"], booking["completed"]) == (
        "confirmed",
        "instant",
        False,
    )
    assert json.loads(refused)["code"] == "slot_taken"
    assert len(json.loads(refused)["alternatives"]) == 3
    listing, end = json.JSONDecoder().raw_decode(looked)
    explained = json.loads(looked[end:])
    assert [one["id"] for one in listing["data"]] == [booking["id"]]
    assert {segment["available"] for segment in explained["data"][0]["segments"]} == {False}


def test_readme_webhook(checkout: Path, demo: tuple[Run, int]) -> None:
    _, port = demo
    receiver = free_port()
    python = f"{plain_environment()['RUN_VENV']}/bin/python"
    text = commands("first-booking") + commands("webhook")
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{port}").replace(".venv/bin/python", python)

    text = text.replace("127.0.0.1:9000", f"127.0.0.1:{receiver}")
    text = text.replace("--port 9000", f"--port {receiver}")
    listing = 'curl -s -u ":$KEY" "$API/deliveries?booking=$BOOKING"'
    logged = f"""{listing} | grep '"type":"webhook"' >/dev/null"""  # a worker logs the call
    assert listing in text
    text = text.replace(listing, f"until {logged}; do sleep 0.1; done\n{listing}")

    printed = run_until(["signature ", '"kind":"cancelled"'], text, checkout)

    assert re.findall(r"^(event|signature) +(.+)$", printed, re.MULTILINE) == [
        ("event", "booking.cancelled"),
        ("signature", "verified"),
    ]
    cancelled, deliveries = (
        json.loads(one) for one in re.findall(r"^\{.*\}$", printed, re.MULTILINE)[-2:]
    )
    assert cancelled["data"]["state"] == "cancelled"
    kinds = {(delivery["type"], delivery["kind"]) for delivery in deliveries["data"]}
    assert kinds == {
        ("email", "confirmed"),
        ("email", "cancelled"),
        ("webhook", "cancelled"),
    }


def test_readme_own_app(checkout: Path, demo: tuple[Run, int]) -> None:
    python = f"{plain_environment()['RUN_VENV']}/bin/python"
    text = commands("own-app").replace(".venv/bin/python", python) + 'echo "$KEY"\n'

    (printed,) = run_commands(text, checkout)

    assert re.fullmatch(r"live_api_key_00[0-9a-f]{8}_[\w-]{43}", printed.splitlines()[-1])


def test_guide_client_works_end_to_end(checkout: Path, demo: tuple[Run, int]) -> None:
    _, port = demo
    key = json.loads((checkout / "var" / "demo.json").read_text())["api_key"]
    env = plain_environment(API=f"http://127.0.0.1:{port}/v2", KEY=key)

    done = subprocess.run(
        [sys.executable, "-c", block_of_guide("python client")],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, block_of_guide("text client-prints")), done.stderr


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        ("127.0.0.2", "127.0.0.2,bookings.example"),
        ("::1", "[::1],bookings.example"),
        ("0.0.0.0", "*"),
        ("::", "*"),
    ],
)
def test_run_allows_the_host_it_listens_on(settings: Any, address: str, hosts: str) -> None:
    settings.ALLOWED_HOSTS = ["bookings.example"]

    with bound_socket(address, 0) as listener:
        assert served_hosts(listener) == hosts


def test_second_run_is_refused_and_interrupt_ends_all_processes(
    checkout: Path, tmp_path: Path
) -> None:
    """A run of its own: the demo's other tests may still follow."""
    port, folder = free_port(), {"VAR_DIR": str(tmp_path / "var")}
    env = plain_environment(**folder)
    with running(checkout, "--port", str(port), log=tmp_path / "log", env=env) as run:
        run.wait_until_ready()
        family = run.whole_family()

        same_port = refused(checkout, "--port", str(port), VAR_DIR=str(tmp_path / "other"))
        same_folder = refused(checkout, "--port", str(free_port()), **folder)
        still_there = alive(family)
        run.process.send_signal(signal.SIGINT)
        code = run.process.wait(30)

    assert f"Cannot listen on 127.0.0.1:{port}" in same_port
    assert "Another service uses" in same_folder
    assert len(still_there) == len(family) >= PROCESSES
    assert (code, alive(family)) == (0, [])
    assert "Traceback" not in run.log()
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_killed_run_leaves_no_process(checkout, tmp_path):
    env = plain_environment(VAR_DIR=str(tmp_path / "var"))
    queue = tmp_path / "var" / "queue" / "messages"
    queue.mkdir(parents=True, exist_ok=True)
    (queue / "1_left-over.celery.msg").write_text("not even JSON")
    first = tmp_path / "first"
    with running(checkout, "--port", str(free_port()), log=first, env=env) as run:
        run.wait_until_ready()
        family = run.whole_family()
        run.process.kill()
        left = alive(family, seconds=30)

    port = str(free_port())
    second = tmp_path / "second"
    with running(checkout, "--no-demo", "--port", port, log=second, env=env) as again:
        again.wait_until_ready()
        family = again.whole_family()
        next(one for one in family if "scheduling.beat" in " ".join(one.cmdline())).kill()
        code = again.process.wait(30)

    assert left == []
    assert (code, alive(family)) == (1, [])
    assert "beat ended by itself (exit code -9)" in again.log()
    assert "Traceback" not in run.log() + again.log()


@pytest.mark.deep
def test_second_interrupt_does_not_wait(checkout, tmp_path):
    with running(checkout, "--no-demo", "--port", str(free_port()), log=tmp_path / "log") as run:
        run.wait_until_ready()
        family = run.family()
        run.process.send_signal(signal.SIGINT)
        run.wait_until_logged("Stopping ...")
        run.process.send_signal(signal.SIGINT)
        run.process.wait(5)

    assert alive(family) == []
    assert "Traceback" not in run.log()


def test_run_with_fake_providers_is_their_client(checkout: Path, tmp_path: Path) -> None:
    port = str(free_port())
    env = plain_environment(VAR_DIR=str(tmp_path / "var"))
    args = ("--no-demo", "--fake-providers", "--port", port)
    with running(checkout, *args, log=tmp_path / "log", env=env) as run:
        run.wait_until_ready()
        run.wait_until_logged("Fake calendar providers: ")
        gateway = re.search(r"Fake calendar providers: (\S+)", run.log())[1]
        web = next(one for one in run.family() if "gunicorn" in " ".join(one.cmdline()))
        service = web.environ()
        query = {
            "client_id": service["GOOGLE_CLIENT_ID"],
            "redirect_uri": f"http://127.0.0.1:{port}/v2/calendars/callback",
            "response_type": "code",
            "scope": "https://www.googleapis.com/auth/calendar.events",
            "access_type": "offline",
            "state": "x",
            "code_challenge": "x" * 43,
            "code_challenge_method": "S256",
        }
        page = f"{gateway}/accounts.google.com/o/oauth2/v2/auth?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(page) as shown:
            text = shown.read().decode()
        run.process.send_signal(signal.SIGINT)
        code = run.process.wait(30)

    assert {name: service[name] for name in service if "_CLIENT_" in name or "GATEWAY" in name} == {
        "CALENDAR_PROVIDER_GATEWAY": gateway,
        "GOOGLE_CLIENT_ID": "demo-google",
        "GOOGLE_CLIENT_SECRET": "demo-secret",
        "MICROSOFT_CLIENT_ID": "demo-microsoft",
        "MICROSOFT_CLIENT_SECRET": "demo-secret",
    }
    assert re.findall(r'name="account" value="([^"]+)"', text) == [
        "ada.berg@example.com",
        "linus.holm@example.com",
    ]
    assert (code, "Traceback" in run.log()) == (0, False)


@pytest.mark.parametrize("port", ["0", "65536", "-1", "8000x", "٨٠٠٠", "999999999999"])
def test_port_must_be_a_port(port):
    with pytest.raises(CommandError) as refusal:
        call_command("up", f"--port={port}")

    assert str(refusal.value) == f"--port must be a number from 1 to 65535, not {port!r}"


def test_port_of_the_environment_is_used(checkout, tmp_path):
    said = refused(checkout, VAR_DIR=str(tmp_path), PORT="nine")

    assert said == "CommandError: --port must be a number from 1 to 65535, not 'nine'"


def other_user() -> str | None:
    """A user without rights, when the tests run as root."""
    return "nobody" if os.geteuid() == 0 else None


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter, which pytest's own folders are not."""
    folder = Path(tempfile.mkdtemp(prefix="booking-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_data_of_another_user_is_refused(open_folder):
    copy = copy_tree(open_folder / "copy")
    (copy / "var").mkdir(mode=0o555)

    done = subprocess.run(
        [copy / "run"],
        cwd="/",
        user=other_user(),
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Cannot write to var: it belongs to another user.")
    assert done.stderr.count("\n") == 1


@pytest.mark.deep
def test_cold_start_as_an_ordinary_user(open_folder, record_property):
    """Nothing is there but the tree and Python: environment, packages, database, demo data."""
    user = other_user()
    copy = copy_tree(open_folder / "a clean copy", compiled=False)
    home = open_folder / "home"
    home.mkdir()
    if user:
        for path in (open_folder, *open_folder.rglob("*")):
            os.chown(path, pwd.getpwnam(user).pw_uid, -1)
    kept = {name: text for name, text in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    env = kept | {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)}
    began = time.monotonic()

    with running(
        copy, "--port", str(free_port()), log=open_folder / "log", user=user, env=env
    ) as run:
        run.wait_until_ready()
        record_property("seconds", round(time.monotonic() - began, 1))
        family = run.family()
        owners = {one.username() for one in family}
        run.process.terminate()
        code = run.process.wait(40)

    assert (code, alive(family)) == (0, [])
    assert owners == {user or pwd.getpwuid(os.getuid()).pw_name}
    assert "Traceback" not in run.log()
