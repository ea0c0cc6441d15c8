"""Clients of others, unmodified: the protocol's Python SDK, and its inspector."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveApp
from tests.node_tools import install_tools
from tests.services import Service

pytestmark = pytest.mark.deep

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    app = LiveApp(live_service)
    ada = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data
    terms = {"length": "30 minutes"}
    project = {"name": "Check-up", "resources": [ada["id"]], "availability": terms}
    app.post("/v2/projects", project | {"booking": {"what": "Check-up"}})
    return app


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the SDK; skips where it can't be installed."""
    folder = tmp_path_factory.mktemp("sdk")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "-r", HERE / "sdk.txt"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip("pip can't install packages here")
    return python


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("auto", {"version": "2026-07-28", "status": "done", "asked": ["Book a time?"]}),
        ("legacy", {"version": "2025-11-25", "status": "confirmation_required", "asked": []}),
    ],
)
def test_the_sdks_client_books(app: LiveApp, sdk: Path, mode: str, expected: Any) -> None:
    session = [sdk, HERE / "sdk_session.py", f"{app.url}/mcp", app.key or "", mode]

    done = subprocess.run(session, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"tools": 12, **expected}


def test_the_inspector_lists_the_tools(app: LiveApp) -> None:
    programs = install_tools(HERE / "inspector") / ".bin"
    command = [
        *(programs / "mcp-inspector", "--cli", "--server-url", f"{app.url}/mcp"),
        *("--transport", "http", "--header", f"Authorization: Bearer {app.key}"),
        *("--method", "tools/list"),
    ]

    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)

    assert done.returncode == 0, done.stderr
    names = [tool["name"] for tool in json.loads(done.stdout)["tools"]]
    assert (len(names), names[0], names[-1]) == (12, "list_services", "set_outcome")
