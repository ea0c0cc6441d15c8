"""deploy/backup: a server as it was at a time, and the way to a newer PostgreSQL."""

import gzip
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.services import ROOT, PostgreSQL, Server, find_program, free_port, with_database
from tests.setup.test_backup import real_clock

pytestmark = [pytest.mark.postgresql, real_clock]

SCRIPTS = ROOT / "deploy" / "backup"
SCHEMA = """
CREATE TABLE notifications_taskrun (
    task varchar(100) PRIMARY KEY, started_at timestamptz, succeeded_at timestamptz
);
CREATE TABLE booking (id int PRIMARY KEY, name text NOT NULL);
"""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Archiving(PostgreSQL):
    """A server with the settings that archive_wal.sh names."""

    def __init__(self) -> None:
        super().__init__()
        self.archive, self.backups = self.folder / "archive", self.folder / "backups"
        for folder in (self.archive, self.backups):
            folder.mkdir()
            if self.user:
                shutil.chown(folder, self.user)
        command = f'sh {SCRIPTS}/archive_wal.sh "%p" "%f" {self.archive}'
        self.options = ("archive_mode=on", f"archive_command={command}", "archive_timeout=300")


class Restored(PostgreSQL):
    """What restore_to_time.sh has prepared."""

    def __init__(self) -> None:
        Server.__init__(self)
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"


def run(name: str, *arguments: object, user: str | None = None, **env: str) -> str:
    """Run a script and return its output; raises with its errors."""
    done = attempt(name, *arguments, user=user, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def attempt(
    name: str, *arguments: object, user: str | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    pg_dump = find_program("pg_dump")
    assert pg_dump, "PostgreSQL's programs are not installed"
    programs = Path(pg_dump).parent
    return subprocess.run(
        ["sh", str(SCRIPTS / name), *map(str, arguments)],
        env={"PATH": f"{programs}:{os.environ['PATH']}", **env},
        cwd="/",
        user=user,
        capture_output=True,
        text=True,
        check=False,
    )


def ask(url: str, statement: str) -> list[tuple]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def wait_until_archived(server: Archiving) -> None:
    """The present segment is in the archive."""
    ((segment,),) = ask(server.url, "SELECT pg_walfile_name(pg_switch_wal())")
    deadline = time.monotonic() + 60
    while not (server.archive / f"{segment}.gz").exists():
        assert time.monotonic() < deadline, (server.folder / "log").read_text()
        time.sleep(0.05)


def test_rows_deleted_by_mistake_are_there_as_of_the_moment_before(stack: ExitStack) -> None:
    server = Archiving()
    stack.callback(server.stop)
    server.start()
    ask(server.url, SCHEMA)
    ask(server.url, "INSERT INTO booking SELECT n, 'before the copy' FROM generate_series(1, 5) n")
    copy = run(
        *("base_backup.sh", server.backups, server.archive),
        user=server.user,
        DATABASE_URL=server.url,
    ).strip()
    ask(server.url, "INSERT INTO booking VALUES (6, 'after the copy')")
    ((moment,),) = ask(server.url, "SELECT clock_timestamp()::text")
    ask(server.url, "TRUNCATE booking")
    ask(server.url, "INSERT INTO booking VALUES (7, 'after the mistake')")
    wait_until_archived(server)

    restored = Restored()
    stack.callback(restored.stop)
    arguments = (copy, server.archive, restored.folder / "data", moment)
    said = run("restore_to_time.sh", *arguments, user=server.user)
    again = attempt("restore_to_time.sh", *arguments, user=server.user)
    restored.start(60)
    deadline = time.monotonic() + 60
    while ask(restored.url, "SELECT pg_is_in_recovery()") == [(True,)]:
        assert time.monotonic() < deadline, (restored.folder / "log").read_text()
        time.sleep(0.05)

    assert "pg_ctl start" in said
    assert (again.returncode, "is not empty" in again.stderr) == (1, True)
    assert ask(restored.url, "SELECT id, name FROM booking ORDER BY 1") == [
        *((number, "before the copy") for number in range(1, 6)),
        (6, "after the copy"),
    ]
    ask(restored.url, "INSERT INTO booking VALUES (8, 'goes on')")
    assert ask(server.url, "SELECT id FROM booking") == [(7,)]
    assert ask(server.url, "SELECT task FROM notifications_taskrun") == [("base_backup",)]


def test_old_copies_go_with_the_segments_that_only_they_need(stack: ExitStack) -> None:
    server = Archiving()
    stack.callback(server.stop)
    server.start()
    ask(server.url, SCHEMA)
    given = {"user": server.user, "DATABASE_URL": server.url}
    first = Path(run("base_backup.sh", server.backups, server.archive, **given).strip())
    wait_until_archived(server)
    needed_by_first = {file.name for file in server.archive.iterdir()}
    old = first.with_name("base-20200101T000000Z")
    first.rename(old)
    ask(server.url, "INSERT INTO booking VALUES (1, 'a')")

    second = Path(run("base_backup.sh", server.backups, server.archive, **given).strip())
    failed = attempt(
        *("base_backup.sh", server.backups, server.archive),
        user=server.user,
        DATABASE_URL=f"postgres://postgres@127.0.0.1:{free_port()}/postgres",
    )

    assert failed.returncode != 0
    assert [file.name for file in server.backups.iterdir()] == [second.name]
    left = {file.name for file in server.archive.iterdir()}
    segments = {name for name in needed_by_first if name.count(".") == 1}
    assert segments and segments & left == set()


def test_segment_is_archived_once_and_never_replaced(tmp_path: Path) -> None:
    segment, archive = tmp_path / "segment", tmp_path / "archive"
    archive.mkdir()
    segment.write_text("first")

    run("archive_wal.sh", segment, "0001", archive)
    run("archive_wal.sh", segment, "0001", archive)
    segment.write_text("other")
    refused = attempt("archive_wal.sh", segment, "0001", archive)
    missing = attempt("archive_wal.sh", tmp_path / "none", "0002", archive)

    assert (refused.returncode, missing.returncode) == (1, 1)
    files = {file.name: gzip.decompress(file.read_bytes()) for file in archive.iterdir()}
    assert files == {"0001.gz": b"first", "0002.gz.part": b""}


def test_restore_needs_a_time_with_a_zone(tmp_path: Path) -> None:
    done = attempt(
        "restore_to_time.sh", tmp_path, tmp_path, tmp_path / "new", "2026-11-28 03:10:00"
    )

    assert (done.returncode, done.stderr) == (
        1,
        "TIME needs a zone: '2026-11-28 03:10:00+00' is UTC.\n",
    )
    assert not (tmp_path / "new").exists()


def test_database_moves_to_a_newer_server(
    stack: ExitStack, service_database_url: str, tmp_path: Path
) -> None:
    """The new server has the same version here; the script does not know more of it."""
    old = service_database_url
    ask(old, SCHEMA)
    ask(old, "INSERT INTO booking SELECT n, 'a' FROM generate_series(1, 500) n")
    server = PostgreSQL()
    stack.callback(server.stop)
    server.start()
    ask(server.url, "CREATE DATABASE scheduling")
    new = with_database(server.url, "scheduling")

    with psycopg.connect(old):
        used = attempt("upgrade_postgresql.sh", old, new, tmp_path)
    moved = run("upgrade_postgresql.sh", old, new, tmp_path)
    again = attempt("upgrade_postgresql.sh", old, new, tmp_path)

    assert (used.returncode, "1 connections use the old database" in used.stderr) == (1, True)
    assert moved.splitlines()[-1].startswith("Equal tables: 1.")
    assert (again.returncode, "Restore into an empty one" in again.stderr) == (1, True)
    assert ask(new, "SELECT count(*) FROM booking") == [(500,)]
    assert ask(old, "SELECT count(*) FROM booking") == [(500,)]
