"""Schemathesis against the running service: what the description allows and what it does not.

One worker: with two, its threads meet in Python 3.11's ast.parse, which then fails (gh-106905).
All of its phases; tests/schemathesis.toml names the checks that are left out.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.description import description
from tests.live import LiveApp, LiveCaller
from tests.services import ROOT, Service

THINGS = 10
LISTINGS = (
    "/v2/apps",
    "/v2/resources?include=calendars,availability_constraints&limit=1000",
    "/v2/calendars?limit=1000",
    "/v2/events?start=1970-01-01T00:00:00Z&end=2199-12-31T00:00:00Z&limit=1000",
    "/v2/projects?include=resources&limit=1000",
    "/v2/bookings?include=attributes,event,customers,project,meta,logs&limit=1000",
    "/v2/webhooks",
    "/v2/deliveries?limit=1000",
)
TAGS = sorted({tag for operation in description().operations for tag in operation.content["tags"]})


def run_schemathesis(
    caller: LiveCaller, world: dict[str, list[str]], folder: Path, *args: str
) -> dict[str, Any]:
    """Runs its command line and returns its report; fails with what it says."""
    report = folder / "report.json"
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--no-color"),
        *("--config-file", str(ROOT / "tests" / "schemathesis.toml"), "run"),
        f"{caller.url}/v2/openapi.json",
        *("--header", f"Authorization: {caller.headers['Authorization']!s}"),
        "--continue-on-failure",
        *("--suppress-health-check", "all", "--warnings", "off"),
        *("--report", "json", "--report-json-path", str(report)),
    ]
    done = subprocess.run(
        [*command, *args],
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "SCHEMATHESIS_HOOKS": "tests.schemathesis_hooks",
            "SCHEMATHESIS_WORLD": json.dumps(world),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    print(done.stdout[-2500:])
    return json.loads(report.read_text())


def make_world(app: LiveApp) -> dict[str, list[str]]:
    made = [app.make_ids() for _ in range(THINGS)]
    return {name: [ids[name] for ids in made] for name in made[0]} | {"slug": [app.slug]}


@pytest.fixture
def app(start_service: Callable[..., Service]) -> LiveApp:
    return LiveApp(start_service())


# Each run: tests/test_openapi.py sends the examples, tests/test_hostile_bodies.py the values that
# the description excludes.
pytestmark = pytest.mark.deep
PHASES = ["examples", "coverage", "fuzzing,stateful"]


def check_service(app: LiveApp) -> None:
    log = app.service.log("web")
    assert "UNEXPECTED" not in log, log[-3000:]
    assert "Traceback" not in log, log[-3000:]
    for listing in LISTINGS:
        assert app.get(listing).status == 200


@pytest.mark.parametrize("phases", PHASES)
def test_a_few_examples_of_every_operation(app: LiveApp, tmp_path: Path, phases: str) -> None:
    """The examples of the description, every boundary of it, and two of what chance finds."""
    run_schemathesis(
        app,
        make_world(app),
        tmp_path,
        *("--phases", phases, "--max-examples", "2", "--generation-deterministic"),
        # A server key archives the app that it belongs to.
        *("--exclude-operation-id", "deleteApp"),
    )

    check_service(app)


@pytest.mark.parametrize("phases", PHASES)
def test_operations_of_apps_by_their_owner(app: LiveApp, tmp_path: Path, phases: str) -> None:
    made = [f"{app.slug}-{number}" for number in range(THINGS)]
    for slug in made:
        assert app.owner().post("/v2/apps", {"slug": slug, "name": "Demo"}).status == 201

    run_schemathesis(
        app.owner(),
        {"slug": made},
        tmp_path,
        *("--max-examples", "2", "--generation-deterministic", "--include-tag", "apps"),
        *("--phases", phases),
    )

    log = app.service.log("web")
    assert ("UNEXPECTED" in log, "Traceback" in log) == (False, False), log[-3000:]


@pytest.mark.parametrize("tag", TAGS)
def test_a_thousand_examples_of_every_operation(app: LiveApp, tmp_path: Path, tag: str) -> None:
    """In pieces, each with a service of its own, so that several run side by side."""
    run_schemathesis(
        app,
        make_world(app),
        tmp_path,
        *("--max-examples", os.environ.get("SCHEMATHESIS_EXAMPLES", "1000")),
        *("--generation-database", "none"),
        *("--include-tag", tag),
        *("--exclude-operation-id", "deleteApp"),
    )

    check_service(app)
