"""sdk/python as its users have it: installed into an empty environment, with its README."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from notifications.webhooks.signing import new_secret
from tests.live import LiveApp
from tests.sdk.python_package import (
    SOURCE,
    blocks_of_readme,
    build,
    install,
    plain_environment,
    run,
)
from tests.services import Service

MAX_WHEEL = 300_000
README = blocks_of_readme()
SLUG = "check-up-of-readme"  # a service has each slug once
CHECK_UP = {
    "name": "Check-up",
    "slug": SLUG,
    "availability": {"length": "30 minutes", "timeslot_increments": "30 minutes"},
    "booking": {"graph": "instant", "what": "Check-up"},
}
RECEIVE = """
import time
from scheduling_client import webhooks
body, at = b'{"kind": "booking.confirmed", "id": "1", "cursor": "7-a"}', int(time.time())
headers = {"Service-Event": "booking.confirmed", "webhook-id": "1", "webhook-timestamp": str(at)}
headers["webhook-signature"] = webhooks.sign(b"1.%d." % at + body, SECRETS[0])
print(receive(body, headers), receive(body + b" ", headers))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with the wheel and what it needs."""
    return install(str(wheel), tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    app = LiveApp(live_service)
    ada = app.post("/v2/resources", {"name": "Ada", "timezone": "Europe/Berlin"}).data
    app.post("/v2/projects", CHECK_UP | {"resources": [ada["id"]]})
    return app


def example(app: LiveApp, name: str) -> str:
    code = README[name].replace("http://127.0.0.1:8000", app.url).replace("check-up", SLUG)
    return code.replace("live_api_key_...", str(app.key)).replace("whsec_...", new_secret())


# --- The files ------------------------------------------------------------------------------------
def test_wheel_has_the_package_alone(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = SOURCE.glob("scheduling_client/**/*.py")
    modules = {path.relative_to(SOURCE).as_posix() for path in files}

    assert {name for name in names if "dist-info" not in name} == {
        *modules,
        "scheduling_client/py.typed",
    }
    assert wheel.stat().st_size < MAX_WHEEL


def test_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    archive = build("sdist", tmp_path)
    run("tar", "-xzf", archive, cwd=tmp_path)
    source = tmp_path / archive.name.removesuffix(".tar.gz")
    code = f"from flit_core import buildapi; print(buildapi.build_wheel({str(tmp_path)!r}))"
    again = tmp_path / run(sys.executable, "-c", code, cwd=source).strip()

    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, str]:
    archive = zipfile.ZipFile(wheel)
    return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


# --- Installed ------------------------------------------------------------------------------------
def test_environment_has_only_what_the_package_needs(python: Path, tmp_path: Path) -> None:
    code = "from importlib.metadata import distributions; print(*[d.name for d in distributions()])"

    names = set(run(python, "-c", code, cwd=tmp_path).split())

    assert names - {"typing_extensions"} == {  # of anyio, before Python 3.13
        *("anyio", "certifi", "h11", "httpcore", "httpx", "idna", "scheduling-client"),
    }


def test_import_loads_no_types_of_bodies_and_no_command(python: Path, tmp_path: Path) -> None:
    """The import takes less than 0.3 seconds; most of it is httpx."""
    code = "import sys, scheduling_client; print(*sorted(sys.modules))"

    loaded = set(run(python, "-c", code, cwd=tmp_path).split())

    assert {"scheduling_client.client", "httpx"} <= loaded
    assert loaded & {"scheduling_client.inputs", "argparse", "yaml", "anyio", "rich"} == set()


def test_quick_start_of_the_readme(app: LiveApp, python: Path, tmp_path: Path) -> None:
    said = run(python, "-c", example(app, "quick-start"), cwd=tmp_path)

    (booking,) = app.get("/v2/bookings?customer_email=marty@example.com").data
    assert [line.split()[0] for line in said.splitlines()] == ["confirmed"]
    assert booking["state"] == "cancelled"


def test_asynchronous_example_of_the_readme(app: LiveApp, python: Path, tmp_path: Path) -> None:
    ada = app.get("/v2/resources").data[0]["id"]
    times = {"start": "2031-02-03T09:00:00+00:00", "end": "2031-02-03T10:00:00+00:00"}
    customer = {"name": "Grace Hopper", "email": "grace@example.com"}
    body = {"resource_id": ada, "what": "Check-up", "customer": customer, **times}
    made = app.post("/v2/bookings", body).data

    said = run(python, "-c", example(app, "asynchronous"), cwd=tmp_path)

    assert f"{made['id']} {made['created_at'][:10]}" in said.splitlines()


def test_error_example_of_the_readme(app: LiveApp, python: Path, tmp_path: Path) -> None:
    said = run(python, "-c", example(app, "errors"), cwd=tmp_path)

    assert said.startswith("slot_taken [datetime.datetime(")


def test_changes_example_of_the_readme(app: LiveApp, python: Path, tmp_path: Path) -> None:
    """It follows without end, so it is ended after the first change; the second run goes on."""
    # As the command `scheduling changes` writes it.
    (tmp_path / "cursor.txt").write_text(f"{app.get('/v2/changes').json['next_cursor']}\n")
    ids = []
    for hour in (9, 10):
        ada = app.get("/v2/resources").data[0]["id"]
        times = {"start": f"2031-03-03T{hour:02}:00:00Z", "end": f"2031-03-03T{hour:02}:30:00Z"}
        body = {"resource_id": ada, "what": "Check-up", **times}
        body["customer"] = {"name": "Grace Hopper", "email": "grace@example.com"}
        ids.append(app.post("/v2/bookings", body).data["id"])

    lines = [first_line(python, example(app, "changes"), tmp_path) for _ in range(4)]

    booked = [line for line in lines if line.startswith("booking ")]
    assert len(set(lines)) == 4
    assert booked == [f"booking confirm {id_}" for id_ in ids]


def first_line(python: Path, code: str, folder: Path) -> str:
    """Of a program that would run on; what it stores after the line is stored."""
    program = f"{code}    raise SystemExit\n"
    return run(python, "-u", "-c", program, cwd=folder).splitlines()[0]


def test_receiver_of_the_readme(app: LiveApp, python: Path, tmp_path: Path) -> None:
    said = run(python, "-c", example(app, "webhooks") + RECEIVE, cwd=tmp_path)

    assert said.splitlines() == ["1 booking.confirmed None", "204 400"]


# --- Types ----------------------------------------------------------------------------------------
WRONG = """
from datetime import datetime
from scheduling_client import Client
client = Client("http://127.0.0.1:8000", 1)  # the key is a text
booking = client.bookings.create(project_id="1", start=9)  # no time
client.resources.create(timezone="UTC")  # the name is missing
client.bookings.create(projekt_id="1")  # misspelt
booking.state == "confirm"  # misspelt
late: datetime = booking.created_at
late = booking.start  # may be left out
booking.colour  # there is none
"""
FOUND = ["arg-type", "arg-type", "call-arg", "call-arg", "comparison-overlap", "assignment"]


def type_check(python: Path, folder: Path, code: str) -> list[str]:
    """The codes of mypy's errors in a program of a caller who uses `mypy --strict`."""
    (folder / "caller.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable"]
    done = subprocess.run(
        [*command, python, "--output=json", "caller.py"],
        cwd=folder,
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [json.loads(line)["code"] for line in done.stdout.splitlines() if line]


def test_readme_is_typed(python: Path, tmp_path: Path) -> None:
    code = "\n".join(README[name] for name in sorted(README))

    assert type_check(python, tmp_path, code) == []


def test_mistakes_of_a_caller_are_found(python: Path, tmp_path: Path) -> None:
    assert type_check(python, tmp_path, WRONG) == [*FOUND, "attr-defined"]


def test_package_itself_is_typed_strictly() -> None:
    """Its pyproject.toml asks for `strict`."""
    run(sys.executable, "-m", "mypy", cwd=SOURCE)


# --- The command ----------------------------------------------------------------------------------
def test_command_is_installed(app: LiveApp, python: Path, tmp_path: Path) -> None:
    command = python.with_name("scheduling")
    env = {"SCHEDULING_URL": app.url, "SCHEDULING_KEY": str(app.key)}

    said = run(command, "slots", SLUG, "--to", "3 days", cwd=tmp_path, **env)
    done = subprocess.run(
        [command, "app", "export"],
        env=plain_environment(**env),
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.splitlines()[0].endswith("\tAda")
    # PyYAML comes with the extra alone.
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "scheduling: Files need PyYAML: pip install pyyaml\n",
    )
