"""Clients that strangers generate from the description: each books with what it was given.

docs/clients.md says how to make two of them; here the same commands run against the service.
"""

import base64
import importlib
import inspect
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveApp
from tests.node_tools import install_tools
from tests.services import Service

CUSTOMER = {"name": "Marty McFly", "email": "marty@example.com"}
TIMES = {"start": "2031-02-03T09:00:00+00:00", "end": "2031-02-03T10:00:00+00:00"}
LATER = {"start": "2031-02-03T12:00:00+00:00", "end": "2031-02-03T13:00:00+00:00"}


@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def description(app: LiveApp, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the service says of itself."""
    path = tmp_path_factory.mktemp("description") / "openapi.json"
    path.write_text(json.dumps(app.get("/v2/openapi.json").json))
    return path


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


# --- Python ---------------------------------------------------------------------------------------
@pytest.fixture
def python_client(description: Path, tmp_path: Path) -> Iterator[str]:
    """The name of the generated package, which can be imported."""
    config = tmp_path / "client.yaml"
    config.write_text("post_hooks: []\n")  # which only format the code
    said = run(
        *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
        *("--config", config),
        *("--path", description, "--output-path", tmp_path / "booking_client"),
        cwd=tmp_path,
    )
    assert "parsing" not in said, said  # nothing of the description was left out
    sys.path.insert(0, str(tmp_path))
    yield "booking_client"
    sys.path.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "booking_client"]:
        del sys.modules[name]


def test_a_generated_python_client_books(app: LiveApp, python_client: str) -> None:
    """It also moves and cancels the booking. Bodies are required arguments."""

    def load(name: str) -> Any:
        return importlib.import_module(f"{python_client}.{name}")

    def call(name: str, *args: Any, **given: Any) -> Any:
        return load(f"api.bookings.{name}").sync_detailed(*args, client=client, **given)

    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data
    basic = base64.b64encode(f":{app.key}".encode()).decode()
    client = load("client").AuthenticatedClient(base_url=app.url, token=basic, prefix="Basic")
    body = load("models.booking_body").BookingBody.from_dict(
        {"resource_id": resource["id"], "what": "Check-up", "customer": CUSTOMER, **TIMES}
    )

    times = load("models.reschedule").Reschedule.from_dict(LATER)
    cancel = load("models.apply_booking_action_action").ApplyBookingActionAction.CANCEL
    create = inspect.signature(load("api.bookings.create_booking").sync_detailed)

    with client:  # which closes its connections
        made = call("create_booking", body=body)
        id_ = made.parsed.data.id
        shown = call("retrieve_booking", id_)
        booking = app.get(f"/v2/bookings/{id_}").data
        refused = call("create_booking", body=body)
        moved = call("reschedule_booking", id_, body=times)
        later = app.get(f"/v2/bookings/{id_}").data
        cancelled = call("apply_booking_action", id_, cancel)

    entry = entry_of(booking, made.parsed.to_dict()["data"])
    answer = load("models.booking_answer").BookingAnswer
    assert create.parameters["body"].default is inspect.Parameter.empty
    assert [type(each.parsed) for each in (made, shown, moved, cancelled)] == [answer] * 4
    assert (made.status_code, made.parsed.to_dict()) == (201, {"data": entry})
    assert entry["state"] == "confirmed"
    assert (shown.status_code, shown.parsed.to_dict()) == (200, {"data": booking})
    assert (refused.status_code, refused.parsed.code) == (409, "slot_taken")
    assert (moved.status_code, moved.parsed.to_dict()) == (
        200,
        {"data": {**entry_of(later, entry), **LATER}},
    )
    assert (cancelled.status_code, cancelled.parsed.data.state) == (200, "cancelled")


def entry_of(booking: Any, names: Iterable[str]) -> dict[str, Any]:
    """What the request that made the booking answers, by what GET shows of it."""
    times = booking["attributes"]["event_info"]
    place = {"resource_id": booking["resource"]["id"], "project_id": None}
    place |= {name: times[name] for name in ("start", "end")}
    return {name: place[name] if name in place else booking[name] for name in names}


# --- TypeScript -----------------------------------------------------------------------------------
TOOLS = Path(__file__).parent / "clients"  # pinned; what they make is never committed


@pytest.fixture
def typescript_client(description: Path, tmp_path: Path) -> Path:
    """A folder with a program that books, compiled against the generated types."""
    modules = install_tools(TOOLS)
    folder = shutil.copytree(TOOLS, tmp_path / "client")
    (folder / "node_modules").symlink_to(modules)
    tools = folder / "node_modules" / ".bin"
    run(tools / "openapi-typescript", description, "--output", "schema.d.ts", cwd=folder)
    run(tools / "tsc", cwd=folder)
    return folder


def test_a_generated_typescript_client_books(app: LiveApp, typescript_client: Path) -> None:
    """It also moves and cancels the booking."""
    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data

    said = run("node", "book.js", app.url, app.key, resource["id"], cwd=typescript_client)

    told = json.loads(said)
    shown = told.pop("shown")["data"]
    updated_at = told["moved"]["data"]["updated_at"]
    entry = entry_of(shown, told["made"]["data"])
    later = {"start": "2031-02-04T12:00:00+00:00", "end": "2031-02-04T13:00:00+00:00"}
    assert told == {
        "made": {"data": entry},
        "moved": {"data": {**entry, **later, "updated_at": updated_at}},
        "state": "cancelled",
        "statuses": [201, 200, 409, 200, 200],
        "code": "slot_taken",
    }
    assert app.get(f"/v2/bookings/{shown['id']}").data["state"] == "cancelled"


# --- Other generators -----------------------------------------------------------------------------
GENERATORS = TOOLS / "generators"
ORVAL_CONFIG = """
module.exports = {{
  api: {{
    input: "openapi.json",
    output: {{ target: "made-by-orval.ts", client: "fetch", baseUrl: "{url}" }},
  }},
}};
"""


@pytest.fixture(scope="module")
def typescript_programs(
    app: LiveApp, description: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with a program for each generator's client; tsc --strict has checked them all."""
    modules = install_tools(GENERATORS)
    folder = shutil.copytree(GENERATORS, tmp_path_factory.mktemp("generators") / "programs")
    (folder / "node_modules").symlink_to(modules)
    (folder / "orval.config.cjs").write_text(ORVAL_CONFIG.format(url=app.url))
    shutil.copy(description, folder / "openapi.json")
    for command in (
        [
            "openapi-ts",
            "-i",
            "openapi.json",
            "-o",
            "made-by-hey-api",
            "-c",
            "@hey-api/client-fetch",
        ],
        ["orval", "--config", "orval.config.cjs"],
        [
            *("swagger-typescript-api", "generate", "--path", "openapi.json"),
            *("--output", "made-by-swagger-typescript-api", "--silent"),
        ],
        ["tsc"],
    ):
        run(modules / ".bin" / command[0], *command[1:], cwd=folder)
    return folder


@pytest.mark.deep
@pytest.mark.parametrize("generator", ["hey-api", "orval", "swagger-typescript-api"])
def test_another_typescript_client_books(
    app: LiveApp, typescript_programs: Path, generator: str
) -> None:
    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data
    bundler = typescript_programs / "node_modules" / ".bin" / "esbuild"
    options = ["--bundle", "--platform=node", "--format=esm", f"--outfile={generator}.mjs"]
    run(bundler, f"{generator}.ts", *options, cwd=typescript_programs)

    arguments = [app.url, app.key or "", resource["id"]]
    said = run("node", f"{generator}.mjs", *arguments, cwd=typescript_programs)

    assert json.loads(said) == [201, "confirmed", 409, "slot_taken"]


@pytest.mark.deep
def test_a_client_of_openapi_generator_books(
    app: LiveApp, description: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    install = [programs / "python", "-m", "pip", "install", "--quiet", "--requirement"]
    requirements = TOOLS / "openapi_generator.txt"
    if subprocess.run([*install, requirements], capture_output=True, check=False).returncode:
        pytest.skip("pip can't install packages here")
    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data
    run(
        *(programs / "openapi-generator-cli", "generate", "-g", "python", "-i", description),
        *("-o", tmp_path, "--additional-properties=packageName=booking_api"),
        cwd=tmp_path,
    )
    shutil.copy(TOOLS / "book.py", tmp_path)

    arguments = [app.url, app.key or "", resource["id"]]
    said = run(programs / "python", "book.py", *arguments, cwd=tmp_path)

    assert json.loads(said) == [201, "confirmed", 409, "slot_taken"]
