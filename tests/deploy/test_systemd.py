"""deploy/systemd: the units are valid, and together they are the whole service."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

from tests.services import ROOT

FOLDER = ROOT / "deploy" / "systemd"
UNITS = {file.name: file.read_text() for file in FOLDER.glob("scheduling*.*") if file.is_file()}
SERVICES = (
    "scheduling-web.service",
    "scheduling-worker@.service",
    "scheduling-beat.service",
    "scheduling-migrate.service",
)

needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed (Debian: systemd)"
)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units in a folder; their programs are replaced by one that exists here."""
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    for name, text in UNITS.items():
        here = re.sub(r"/srv/scheduling/\.venv/bin/\w+", "/bin/true", text)
        here = here.replace("WorkingDirectory=/srv/scheduling", "WorkingDirectory=/")
        (tmp_path / name).unlink()
        (tmp_path / name.replace("@.", "@email.")).write_text(here)
    return tmp_path


def analyze(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *args], cwd=folder, capture_output=True, text=True, check=False
    )


@needs_systemd
def test_units_are_valid(installed: Path) -> None:
    units = [f"./{file.name}" for file in installed.iterdir() if file.is_file()]

    done = analyze(installed, "verify", "--man=no", *units)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
@pytest.mark.parametrize("name", ["web", "worker@email", "beat", "migrate", "backup"])
def test_services_are_confined(installed: Path, name: str) -> None:
    """Exposure of 10 is a service without limits; beyond 2.0 the command fails."""
    unit = f"./scheduling-{name}.service"

    done = analyze(installed, "security", "--offline=yes", "--threshold=20", "--no-pager", unit)

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Overall exposure level .*: 1\.\d OK", done.stdout), done.stdout


def test_target_starts_web_beat_and_a_worker_per_queue() -> None:
    wanted = re.findall(r"scheduling-[\w@]+\.service", UNITS["scheduling.target"])
    workers = {f"scheduling-worker@{queue}.service" for queue in settings.CELERY_TASK_QUEUES}

    others = {f"scheduling-{name}.service" for name in ("migrate", "web", "beat")}
    assert set(wanted) == workers | others


def test_units_have_a_limit_of_memory_and_wait_for_migrations() -> None:
    limits = {
        name: limit
        for name, text in UNITS.items()
        for limit in re.findall(r"^MemoryMax=(\w+)$", text, re.MULTILINE)
    }
    later = {name for name, text in UNITS.items() if re.search("After=.*-migrate.service", text)}

    assert limits == {
        "scheduling-web.service": "2G",
        "scheduling-worker@.service": "1G",
        "scheduling-beat.service": "512M",
        "scheduling-migrate.service": "1G",
        "scheduling-backup.service": "512M",
    }
    assert later == set(SERVICES) - {"scheduling-migrate.service"}
    assert "--skip-checks" in UNITS["scheduling-worker@.service"]


def test_secrets_are_files_and_only_the_main_process_is_signalled() -> None:
    for name in SERVICES:
        loaded = set(re.findall(r"^LoadCredential=(\w+):", UNITS[name], re.MULTILINE))
        given = dict(re.findall(r"(\w+)_FILE=%d/(\w+)", UNITS[name]))
        assert (name, given) == (name, {secret.upper(): secret for secret in loaded})
        assert (name, "KillMode=mixed" in UNITS[name]) == (name, True)
    assert int(re.search(r"TimeoutStopSec=(\d+)", UNITS[SERVICES[1]])[1]) >= 40
