"""The collection of requests in docs/bruno, run as a newcomer runs it."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveApp
from tests.services import ROOT, Service

COLLECTION = ROOT / "docs" / "bruno"
TOOL = Path(__file__).parent / "bruno"  # pinned


@pytest.fixture(scope="module")
def bru() -> Path:
    """Bruno's command line; kept in var/, since it takes most of a minute to install."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("Node.js and npm are needed")
    lock = (TOOL / "package-lock.json").read_bytes()
    folder = ROOT / "var" / f"bruno-{hashlib.sha256(lock).hexdigest()[:12]}"
    program = folder / "node_modules" / ".bin" / "bru"
    if not program.exists():
        shutil.copytree(TOOL, folder, dirs_exist_ok=True)
        install = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        if subprocess.run(install, cwd=folder, capture_output=True, check=False).returncode:
            pytest.skip("npm can't install packages here")
    return program


def test_the_collection_runs_from_the_top(live_service: Service, bru: Path, tmp_path: Path) -> None:
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
