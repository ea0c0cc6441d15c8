"""Clients that strangers generate from the description: each books with what it was given.

docs/clients.md says how to make them; here the same commands run against the running service.
"""

import base64
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveApp
from tests.node_tools import install_tools
from tests.services import Service

CUSTOMER = {"name": "Marty McFly", "email": "marty@example.com"}
TIMES = {"start": "2031-02-03T09:00:00+00:00", "end": "2031-02-03T10:00:00+00:00"}


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
    config.write_text("content_type_overrides:\n  text/calendar: application/octet-stream\n")
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


@pytest.mark.deep
def test_a_generated_python_client_books(app: LiveApp, python_client: str) -> None:
    def load(name: str) -> Any:
        return importlib.import_module(f"{python_client}.{name}")

    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data
    basic = base64.b64encode(f":{app.key}".encode()).decode()
    client = load("client").AuthenticatedClient(base_url=app.url, token=basic, prefix="Basic")
    body = load("models.booking_body").BookingBody.from_dict(
        {"resource_id": resource["id"], "what": "Check-up", "customer": CUSTOMER, **TIMES}
    )

    with client:  # which closes its connections
        made = load("api.bookings.create_booking").sync_detailed(client=client, body=body)
        shown = load("api.bookings.retrieve_booking").sync_detailed(
            booking_id=made.parsed.data.id, client=client
        )
        refused = load("api.bookings.create_booking").sync_detailed(client=client, body=body)

    booking = app.get(f"/v2/bookings/{made.parsed.data.id}").data
    entry = entry_of(booking, made.parsed.to_dict()["data"])
    assert (made.status_code, made.parsed.to_dict()) == (201, {"data": entry})
    assert entry["state"] == "confirmed"
    assert (shown.status_code, shown.parsed.to_dict()) == (200, {"data": booking})
    assert (refused.status_code, refused.parsed.code) == (409, "slot_taken")


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


@pytest.mark.deep
def test_a_generated_typescript_client_books(app: LiveApp, typescript_client: Path) -> None:
    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data

    said = run("node", "book.js", app.url, app.key, resource["id"], cwd=typescript_client)

    told = json.loads(said)
    booking = app.get(f"/v2/bookings/{told['made']['data']['id']}").data
    entry = entry_of(booking, told["made"]["data"])
    assert told == {
        "made": {"data": entry},
        "shown": {"data": booking},
        "statuses": [201, 200, 409],
        "code": "slot_taken",
    }
