"""The commands of README.md, run against a ./run of a clean copy, and the code of docs/guide.md."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from notifications.webhooks.signing import new_secret, signature_headers
from tests.services import ROOT, free_port
from tests.setup.test_run import copy_tree, plain_environment, running

GUIDE = (ROOT / "docs" / "guide.md").read_text()
BLOCK = re.compile(r"^```sh ([\w-]+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


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
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    folder = copy_tree(tmp_path_factory.mktemp("readme") / "scheduling")
    port = free_port()
    with running(folder, "--port", str(port), log=folder.parent / "run.log") as run:
        run.wait_until_ready()
        yield folder, port


def test_a_newcomer_gets_to_the_first_booking(service: tuple[Path, int]) -> None:
    folder, port = service
    text = commands("first-booking").replace("127.0.0.1:8000", f"127.0.0.1:{port}")

    before = files_in(folder)
    _, slot, made, refused, looked = run_commands(text, folder)

    assert files_in(folder) == before
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


def test_a_webhook_tells_of_a_cancellation(service: tuple[Path, int]) -> None:
    folder, port = service
    receiver = free_port()
    python = f"{plain_environment()['RUN_VENV']}/bin/python"
    text = commands("first-booking") + commands("webhook")
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{port}").replace(".venv/bin/python", python)

    text = text.replace("127.0.0.1:9000", f"127.0.0.1:{receiver}")
    text = text.replace("--port 9000", f"--port {receiver}")

    printed = run_until(["signature ", '"kind":"cancelled"'], text, folder)

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


def test_an_app_of_your_own_gets_a_key(service: tuple[Path, int]) -> None:
    folder, _ = service
    python = f"{plain_environment()['RUN_VENV']}/bin/python"
    text = commands("own-app").replace(".venv/bin/python", python) + 'echo "$KEY"\n'

    (printed,) = run_commands(text, folder)

    assert re.fullmatch(r"live_api_key_00[0-9a-f]{8}_[\w-]{43}", printed.splitlines()[-1])


def block_of_guide(name: str) -> str:
    (code,) = re.findall(rf"^```{name}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    return code


def test_the_guides_client_works_from_end_to_end(service: tuple[Path, int]) -> None:
    folder, port = service
    key = json.loads((folder / "var" / "demo.json").read_text())["api_key"]
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


def test_the_guides_contents_are_its_headings() -> None:
    headings = re.findall(r"^## (.+)$", GUIDE, re.MULTILINE)
    listed = re.findall(
        r"^- \[(.+)\]\(#([\w-]+)\)$", GUIDE.partition("## A client")[0], re.MULTILINE
    )

    assert [title for title, _ in listed] == [title for title in headings if title != "Contents"]
    assert [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title, _ in listed] == [
        anchor for _, anchor in listed
    ]


@pytest.mark.parametrize(
    ("name", "function", "answers"),
    [
        ("with-the-package", "receive", [204, 400, 400]),
        ("by-hand", "is_genuine", [True, False, False]),
    ],
)
def test_the_guides_receivers_know_a_genuine_call(name, function, answers) -> None:
    code = block_of_guide(f"python {name}")
    secret, body = new_secret(), '{"what": "Prüfung"}'.encode()
    headers = {"service-event": "booking.confirmed"} | signature_headers(
        message_id="1", timestamp=int(time.time()), body=body, secrets=[new_secret(), secret]
    )
    names = {"keep_for_later": lambda *given: None}

    exec(code.replace("whsec_...", secret), names)
    answered = [
        names[function](body, headers),
        names[function](body + b" ", headers),
        names[function](body, headers | {"webhook-timestamp": "1795167000"}),
    ]

    assert answered == answers
