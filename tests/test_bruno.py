"""The collection of requests in docs/bruno, run as a newcomer runs it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveApp
from tests.node_tools import install_tools
from tests.services import ROOT, Service

# npm installs 150 packages for one run.
pytestmark = pytest.mark.deep

COLLECTION = ROOT / "docs" / "bruno"
TOOL = Path(__file__).parent / "bruno"  # pinned


@pytest.fixture(scope="module")
def bru() -> Path:
    """Bruno's command line."""
    return install_tools(TOOL) / ".bin" / "bru"


def test_collection_runs_in_order(live_service: Service, bru: Path, tmp_path: Path) -> None:
    app, report = LiveApp(live_service), tmp_path / "report.json"

    done = subprocess.run(
        [
            *(bru, "run", "--env", "local", "--reporter-json", report),
            *("--env-var", f"address={app.url}", "--env-var", f"key={app.key}"),
        ],
        cwd=COLLECTION,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = json.loads(report.read_text())
    results: list[Any] = run["results"]
    files = sorted(path.name for path in COLLECTION.glob("[0-9]*.bru"))
    assert [Path(result["test"]["filename"]).name for result in results] == files
    assert [result["error"] for result in results] == [None] * len(files)
    for result in results:
        checks = result["assertionResults"]
        assert (result["name"], {check["status"] for check in checks}) == (result["name"], {"pass"})
