"""The servers under the tests, and the brokers: real messages through real workers."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psycopg
import pytest
import redis
from django.db import connection

from tests.services import ROOT, PostgreSQL, Redis, Service, find_program, free_port, template_name


def round_trip(folder: Path, **settings: str) -> Service:
    """Sends one task and waits until a worker has run it."""
    service = Service(folder, f"sqlite:///{folder / 'db.sqlite3'}", settings)
    # The run's Redis is shared, and others leave in it what wakes workers that they don't have.
    queue = f"echo-{uuid.uuid4().hex}"
    task = f"write.apply_async([{str(folder / 'result')!r}], queue={queue!r})"
    send = f"from tests.setup.echo_task import write; {task}"
    try:
        service.start_worker(include="tests.setup.echo_task", concurrency=1, queue=queue)
        subprocess.run([sys.executable, "-c", send], cwd=ROOT, env=service.env, check=True)
        deadline = time.monotonic() + 20
        while not (folder / "result").exists():
            assert time.monotonic() < deadline, service.log("worker")
            time.sleep(0.05)
    finally:
        service.stop()
    return service


@pytest.mark.redis
def test_redis_broker_carries_a_task(tmp_path):
    client = redis.Redis.from_url(os.environ["REDIS_URL"])

    service = round_trip(tmp_path)

    assert client.ping() is True
    assert (tmp_path / "result").read_text() == "shared"
    assert "Traceback" not in service.log("worker")
    client.close()


class Sentinel(Redis):
    """Watches a server as the master `wakeups`."""

    def __init__(self, master: Redis) -> None:
        super().__init__()
        self.config = self.folder / "sentinel.conf"  # it writes what it learns there
        self.config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor wakeups 127.0.0.1 {master.port} 1\n"
        )
        if self.user:
            shutil.chown(self.config, self.user)

    def command(self) -> list[str]:
        return [find_program("redis-server"), str(self.config), "--sentinel"]


@pytest.mark.redis
def test_redis_sentinel_broker_carries_a_task(tmp_path):
    with contextlib.ExitStack() as stack:
        master = Redis()
        stack.callback(master.stop)
        master.start()
        sentinel = Sentinel(master)
        stack.callback(sentinel.stop)
        sentinel.start()
        gone = free_port()
        hosts = f"127.0.0.1:{gone},127.0.0.1:{sentinel.port}"
        url = f"sentinel://{hosts}/0?master_name=wakeups"

        service = round_trip(tmp_path, REDIS_URL="", MESSAGE_BROKER_URL=url)

        assert (tmp_path / "result").read_text() == "shared"
        assert "Connected to sentinel://" in service.log("worker")
        assert "Traceback" not in service.log("worker")


def test_broker_in_files_carries_a_task(tmp_path):
    service = round_trip(tmp_path, REDIS_URL="")

    assert (tmp_path / "result").read_text() == "shared"
    assert list((tmp_path / "queue" / "messages").iterdir()) == []
    assert "Traceback" not in service.log("worker")


@pytest.mark.both_databases
def test_live_service_uses_the_test_database(live_service):
    kinds = {"postgresql": "postgres", "sqlite": "sqlite"}

    migrations = live_service.manage("showmigrations", "--plan")

    assert live_service.is_healthy()
    assert live_service.database_url.startswith(kinds[os.environ["TEST_ENGINE"]])
    assert "[X]" in migrations
    assert "[ ]" not in migrations


@pytest.mark.both_databases
@pytest.mark.django_db
def test_database_of_the_tests_is_a_copy(django_db_keepdb):
    """Each process would otherwise run all migrations."""
    given = connection.settings_dict["TEST"]

    if connection.vendor == "postgresql":
        assert given["TEMPLATE"] == template_name()
    else:
        assert (Path(given["NAME"]).parent, django_db_keepdb) == (
            Path(os.environ["VAR_DIR"]),
            True,
        )


@pytest.mark.postgresql
@pytest.mark.skipif(not PostgreSQL.is_installed(), reason="PostgreSQL is not installed")
def test_own_postgresql_survives_an_immediate_shutdown():
    server = PostgreSQL()
    server.start()
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")

    server.kill(3)
    down = server.answers()
    server.start()

    with psycopg.connect(server.url) as connection:
        rows = connection.execute("SELECT one FROM kept").fetchall()
    server.stop()
    assert (down, rows) == (False, [(1,)])


@pytest.mark.skipif(not Redis.is_installed(), reason="redis-server is not installed")
def test_own_redis_forgets_when_killed():
    server = Redis()
    server.start()
    client = redis.Redis.from_url(server.url)
    client.set("key", "value")

    server.kill()
    server.start()

    assert client.get("key") is None
    client.close()
    server.stop()


TESTS_OF_A_TEST = """
import pytest

def test_runs():
    pass

def test_skips():
    pytest.skip("no moon")

@pytest.mark.both_databases
def test_depends_on_the_database():
    pass

@pytest.mark.deep
def test_deep():
    pass

@pytest.mark.chaos
def test_chaos():
    pass
"""


@pytest.mark.parametrize(
    ("arguments", "required", "code", "summary"),
    [
        ([], "", 0, "2 passed, 1 skipped, 2 deselected"),
        pytest.param(*([], "1", 1, "1 failed, 2 passed, 2 deselected"), marks=pytest.mark.redis),
        pytest.param(
            *(["--deep"], "", 0, "3 passed, 1 skipped, 1 deselected"), marks=pytest.mark.deep
        ),
        pytest.param(
            *(["--deep", "--chaos"], "", 0, "4 passed, 1 skipped"), marks=pytest.mark.deep
        ),
    ],
)
def test_plugin_selects_and_counts(tmp_path, arguments, required, code, summary):
    (tmp_path / "test_it.py").write_text(TESTS_OF_A_TEST)

    done = run_pytest(tmp_path, *arguments, DATABASE_URL="sqlite://", REQUIRE_SERVICES=required)

    assert (done.returncode, summary in done.stdout) == (code, True), done.stdout + done.stderr
    assert "no moon" in done.stdout


@pytest.mark.parametrize(
    ("database", "code", "summary"),
    [
        pytest.param("", 0, "1 passed, 4 deselected", marks=pytest.mark.postgresql),
        pytest.param("sqlite://", 5, "no tests ran", marks=pytest.mark.deep),
    ],
)
def test_second_pass_repeats_what_depends_on_the_database(tmp_path, database, code, summary):
    """And nothing where the first pass was on SQLite, too. It imports no other module."""
    (tmp_path / "test_it.py").write_text(TESTS_OF_A_TEST)
    (tmp_path / "test_other.py").write_text("raise AssertionError('imported')")

    done = run_pytest(tmp_path, TEST_DATABASE="sqlite", DATABASE_URL=database)

    assert (done.returncode, summary in done.stdout) == (code, True), done.stdout + done.stderr


MATRICES = """
import pytest

twenty_times = pytest.mark.parametrize("number", range(20))

@pytest.mark.matrix
@twenty_times
def test_of_a_matrix(number):
    print("of a matrix", number)

@pytest.mark.both_databases
@twenty_times
def test_of_both(number):
    print("of both", number)

@pytest.mark.both_databases
@pytest.mark.every_case
@twenty_times
def test_of_every_case(number):
    print("of every case", number)
"""
FOUR = [0, 5, 10, 15]
TWO = [0, 10]


@pytest.mark.parametrize(
    ("database", "arguments", "of_a_matrix", "of_both"),
    [
        ("", ["--override-ini=testpaths={folder}"], FOUR, range(20)),
        pytest.param(
            *("sqlite", ["--override-ini=testpaths={folder}"], [], TWO),
            marks=(pytest.mark.postgresql, pytest.mark.deep),
        ),
        pytest.param("", ["{folder}"], range(20), range(20), marks=pytest.mark.deep),
        pytest.param(
            *("", ["--override-ini=testpaths={folder}", "--deep"], range(20), range(20)),
            marks=pytest.mark.deep,
        ),
    ],
)
def test_whole_suite_samples_matrix_cases(tmp_path, database, arguments, of_a_matrix, of_both):
    (tmp_path / "test_it.py").write_text(MATRICES)
    words = [word.format(folder=tmp_path) for word in arguments]
    given = {"DATABASE_URL": "" if database else "sqlite://"}

    done = run_pytest(None, "-s", *words, TEST_DATABASE=database, **given)

    expected = {"of a matrix": of_a_matrix, "of both": of_both, "of every case": range(20)}
    lines = [line.lstrip(".") for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in lines if line.startswith("of ")] == [
        f"{name} {number}" for name, numbers in expected.items() for number in numbers
    ]


def run_pytest(
    folder: Path | None, *arguments: str, TEST_DATABASE: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    given = [str(folder)] if folder else []
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-q", *arguments, *given],
        cwd=ROOT,
        env=ours | {"TEST_DATABASE": TEST_DATABASE, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_unreachable_given_server_ends_the_run():
    env = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    env |= {"TEST_DATABASE": "postgresql", "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "tests/setup"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 4
    assert "DATABASE_URL does not answer" in done.stderr
