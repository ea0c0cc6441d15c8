"""The README's commands, run as they stand there, against a ./run of a clean copy."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import ROOT, free_port
from tests.setup.test_run import copy_tree, plain_environment, running

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
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return re.split(r"^--- \d+\n", done.stdout, flags=re.MULTILINE)[1:]


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

    _, slot, made, refused, looked = run_commands(text, folder)

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


def test_an_app_of_your_own_gets_a_key(service: tuple[Path, int]) -> None:
    folder, _ = service
    python = f"{plain_environment()['RUN_VENV']}/bin/python"
    text = commands("own-app").replace(".venv/bin/python", python) + 'echo "$KEY"\n'

    (printed,) = run_commands(text, folder)

    assert re.fullmatch(r"live_api_key_[0-9a-f]{8}_[\w-]{43}", printed.splitlines()[-1])
