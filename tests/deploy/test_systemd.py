"""deploy/systemd: the units are valid, and together they are the whole service."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

from tests.services import ROOT

UNITS = {file.name: file.read_text() for file in (ROOT / "deploy" / "systemd").iterdir()}
SERVICES = ("scheduling-web.service", "scheduling-worker@.service", "scheduling-beat.service")


@pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed (Debian: systemd)"
)
def test_units_are_valid(tmp_path: Path) -> None:
    """The programs are replaced by one that exists here."""
    for name, text in UNITS.items():
        here = re.sub(r"/srv/scheduling/\.venv/bin/\w+", "/bin/true", text)
        here = here.replace("WorkingDirectory=/srv/scheduling", "WorkingDirectory=/")
        (tmp_path / name.replace("@.", "@email.")).write_text(here)

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(f"./{f.name}" for f in tmp_path.iterdir())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_target_starts_web_beat_and_a_worker_per_queue() -> None:
    wanted = re.findall(r"scheduling-[\w@]+\.service", UNITS["scheduling.target"])
    workers = {f"scheduling-worker@{queue}.service" for queue in settings.CELERY_TASK_QUEUES}

    assert set(wanted) == workers | {"scheduling-web.service", "scheduling-beat.service"}


def test_secrets_are_files_and_only_the_main_process_is_signalled() -> None:
    for name in SERVICES:
        loaded = set(re.findall(r"^LoadCredential=(\w+):", UNITS[name], re.MULTILINE))
        given = dict(re.findall(r"(\w+)_FILE=%d/(\w+)", UNITS[name]))
        assert (name, given) == (name, {secret.upper(): secret for secret in loaded})
        assert (name, "KillMode=mixed" in UNITS[name]) == (name, True)
    assert int(re.search(r"TimeoutStopSec=(\d+)", UNITS[SERVICES[1]])[1]) >= 40
