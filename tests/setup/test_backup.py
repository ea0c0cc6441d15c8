"""deploy/backup: a backup of a live service is restored, and the service runs on it."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.delivery_faults import live_delivery_faults
from tests.live import CUSTOMER, LiveApp, LiveCaller
from tests.services import ROOT, Service, find_program

pytestmark = pytest.mark.postgresql

SPAN = {"start": "2027-03-23 10:00:00", "end": "2027-03-23 11:00:00"}
NAMES = """
SELECT conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT indexname FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1
"""
RECENT_BACKUP = """
SELECT now() - succeeded_at < interval '1 hour' FROM notifications_taskrun WHERE task = 'backup'
"""

real_clock = pytest.mark.skipif(
    "TEST_CLOCK" in os.environ, reason="pg_restore and find know the real clock alone"
)


def run_script(name: str, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    pg_dump = find_program("pg_dump")
    assert pg_dump, "PostgreSQL's programs are not installed"
    programs = Path(pg_dump).parent
    return subprocess.run(
        ["sh", str(ROOT / "deploy" / "backup" / name), *map(str, arguments)],
        env={"PATH": f"{programs}:{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        check=False,
    )


@real_clock
def test_service_runs_on_a_restored_backup(
    start_service: Callable[..., Service], service_database_url: str, tmp_path: Path
) -> None:
    service = start_service()
    app = LiveApp(service)
    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data
    booking = {"resource_id": resource["id"], **SPAN, "what": "Visit", "customer": CUSTOMER}
    assert app.post("/v2/bookings", booking).status == 201
    before = app.get("/v2/bookings").data
    cursor = app.get("/v2/changes").json["next_cursor"]
    with psycopg.connect(service.database_url) as other:
        # While it is open, changes get no number: the backup has some without.
        other.execute("SELECT pg_current_xact_id()")
        changed = app.call("PUT", f"/v2/bookings/{before[0]['id']}", {"meta": {"invoice": 1}})
        assert changed.status == 200
        before = app.get("/v2/bookings").data
        backup = run_script("backup.sh", tmp_path, DATABASE_URL=service.database_url)
    assert app.post("/v2/resources", {"name": "Late", "timezone": "UTC"}).status == 201
    restored = run_script("restore.sh", backup.stdout.strip(), DATABASE_URL=service_database_url)
    again = run_script("restore.sh", backup.stdout.strip(), DATABASE_URL=service_database_url)

    assert (backup.returncode, restored.returncode) == (0, 0), backup.stderr + restored.stderr
    with psycopg.connect(service.database_url) as connection:
        assert connection.execute(RECENT_BACKUP).fetchall() == [(True,)]
    assert again.returncode == 1
    assert "Restore into an empty one" in again.stderr
    assert structure(service_database_url) == structure(service.database_url)
    with psycopg.connect(service_database_url) as connection:
        unnumbered = "SELECT count(*) FROM apps_config_change WHERE number IS NULL"
        assert connection.execute(unnumbered).fetchone() == (0,)

    successor = Service(tmp_path, service_database_url, {})
    try:
        successor.start_web()
        caller = LiveCaller(successor.url, app.key)
        assert caller.get("/v2/bookings").data == before
        assert len(caller.get("/v2/resources").data) == 1
        changes = caller.get(f"/v2/changes?cursor={cursor}&types=booking").json["data"]
        assert [(row["action"], row["object_id"]) for row in changes] == [
            ("update", before[0]["id"])
        ]
        assert caller.post("/v2/bookings", booking).json["code"] == "slot_taken"
        assert successor.manage("migrate", "--check") == ""
        assert live_delivery_faults(successor) == "[]"
    finally:
        successor.stop()


def structure(url: str) -> list[tuple[str]]:
    """The names of constraints, indexes, triggers and functions: the dump rewords their text."""
    with psycopg.connect(url) as connection:
        return connection.execute(NAMES).fetchall()


@real_clock
def test_backup_deletes_old_files_and_leaves_no_partial_file(
    service_database_url: str, tmp_path: Path
) -> None:
    old, recent = tmp_path / "scheduling-old.dump", tmp_path / "scheduling-recent.dump"
    for file, days in ((old, 16), (recent, 13)):
        file.touch()
        os.utime(file, (time.time() - days * 86400,) * 2)

    made = run_script("backup.sh", tmp_path, DATABASE_URL=service_database_url)
    failed = run_script("backup.sh", tmp_path, DATABASE_URL=f"{service_database_url}_nowhere")

    assert (made.returncode, failed.returncode) == (0, 1)
    assert {file.name for file in tmp_path.glob("*.dump*")} == {
        recent.name,
        Path(made.stdout.strip()).name,
    }


def test_password_comes_from_a_file(tmp_path: Path, service_database_url: str) -> None:
    """As in compose: libpq's variables instead of a URL."""
    password = tmp_path / "password"
    password.write_text("any\n")
    server = psycopg.conninfo.conninfo_to_dict(service_database_url)

    made = run_script(
        "backup.sh",
        tmp_path,
        PGHOST=str(server["host"]),
        PGPORT=str(server["port"]),
        PGUSER=str(server["user"]),
        PGDATABASE=str(server["dbname"]),
        PGPASSWORD_FILE=str(password),
    )

    url = tmp_path / "url"
    url.write_text(f"{service_database_url}\n")
    by_file = run_script("backup.sh", tmp_path, DATABASE_URL_FILE=str(url))

    assert made.returncode == 0, made.stderr
    assert by_file.returncode == 0, by_file.stderr
