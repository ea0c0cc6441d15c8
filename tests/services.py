"""The servers that tests run against, as a pytest plugin (`-p tests.services`, see pyproject.toml).

It has to be a plugin: a conftest.py is read after pytest-django has already read the settings.

Which PostgreSQL is used, in this order:
  1. DATABASE_URL, if set: it must answer, else the run ends at once. A database of the run's own
     is made beside the named one, which is itself never touched.
  2. a throwaway server, if PostgreSQL's programs are installed: a free port, a temporary folder
  3. the server on 127.0.0.1:5432, if it lets `postgres` in without a password
  4. none: SQLite
And which Redis: REDIS_URL (never flushed), else a throwaway server, else none.

TEST_DATABASE=postgresql or sqlite asks for one of the two, as ./test does for its two passes. The
first pass runs every test. The second, on SQLite, runs those marked `both_databases` or `sqlite`,
and imports no other module. Without PostgreSQL the first pass runs on SQLite, and the second has
nothing left to do.

Marks:   both_databases        the database's vendor matters: runs in both passes
         postgresql, sqlite    runs on that database only
         redis                 needs a Redis server
         deep, chaos           runs only with --deep, --chaos
         matrix                many cases of one rule: a run of the whole suite takes MATRIX_CASES
         every_case            the second pass takes all cases, as each has its own effect there

The second pass of the whole suite takes SECOND_PASS_CASES of each parametrised test, as the first
has taken them all. --deep takes all cases, and so does a run of chosen files or by -k.

REQUIRE_SERVICES=1 makes every skip a failure, also one inside a test.
TEST_CLOCK="2026-12-31T23:30Z" lets the run begin at that time, to find what depends on the hour: in
every Python process, on the run's own PostgreSQL and in pages.

Migrations run once a pass, while xdist's workers collect or when the first test asks for a
database: every other database is a copy.

Fixtures for tests that need real processes and not pytest-django's transaction:
  service_database_url    the address of an empty database of the test's own, of the pass's kind
  start_service           start_service(**settings) -> Service: migrated, answering
  start_shared_service    the same, running until the end of the session
  live_service            one Service, shared by all tests of the session; make your own app in it
The classes PostgreSQL and Redis are servers that a chaos test may start, kill and start again.
"""

import configparser
import contextlib
import fcntl
import gc
import glob
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import hypothesis
import psycopg
import pytest
import redis

from ops.translation_catalogues import compile_outdated
from tests.fork_server import ForkedProcess, ForkServer, end_with_parent
from tests.service_shell import Shell

ROOT = Path(__file__).resolve().parent.parent
LOCAL_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
SECOND_PASS_MARKS = ("both_databases", "sqlite")
SECRET_KEY = "the secret key of services under test"
OWN_SERVERS = pytest.StashKey[list]()
TEMPLATE_THREAD = pytest.StashKey[threading.Thread]()
LONG_FIXTURES = {"chromium", "service_database_url", "start_service", "start_shared_service"}
MARKS = ("both_databases", "postgresql", "sqlite", "redis", "deep", "chaos", "matrix", "every_case")
MATRIX_CASES = 4
SECOND_PASS_CASES = 2
SKIPS: dict[str, list[str]] = {}  # reason -> tests
FORK_SERVER = ForkServer()


# --- Servers --------------------------------------------------------------------------------------
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find_program(name: str) -> str | None:
    """On the PATH, or where Debian keeps PostgreSQL's own programs (the newest version)."""
    versions = glob.glob(f"/usr/lib/postgresql/*/bin/{name}")
    newest = max(versions, key=lambda path: float(path.split("/")[4]), default=None)
    return newest or shutil.which(name)


def unprivileged_user() -> str | None:
    """Whom to run PostgreSQL as when we are root, as which it refuses to run; else None."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


class Server(ABC):
    """A server on a free port of 127.0.0.1 with its data in a temporary folder."""

    def __init__(self) -> None:
        self.user = unprivileged_user()
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="booking-test-"))
        if self.user:
            shutil.chown(self.folder, self.user)
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def answers(self) -> bool: ...

    def start(self, seconds: float = 30) -> None:
        """Starts it (again, on the same port and data) and waits until it answers."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.user,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        deadline = time.monotonic() + seconds
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                log_text = (self.folder / "log").read_text(errors="replace")
                raise RuntimeError(f"{type(self).__name__} does not answer:\n{log_text[-2000:]}")
            time.sleep(0.02)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Ends it by a signal and waits for that. PostgreSQL: SIGQUIT is its immediate shutdown."""
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)
            self.process.wait(30)

    def stop(self) -> None:
        self.kill(signal.SIGQUIT if isinstance(self, PostgreSQL) else signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


class PostgreSQL(Server):
    options: Sequence[str] = ()  # of its configuration, besides those of every server

    def __init__(self) -> None:
        super().__init__()
        subprocess.run(
            [
                find_program("initdb"),
                *("-D", self.folder / "data", "-U", "postgres", "-A", "trust"),
                *("-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
            ],
            cwd=self.folder,
            user=self.user,
            check=True,
            capture_output=True,
        )
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    @staticmethod
    def is_installed() -> bool:
        return bool(find_program("initdb") and find_program("postgres"))

    def command(self) -> list[str]:
        # Durability is not under test, and its waits would be most of the time. A server that is to
        # be killed keeps what it acknowledged all the same: only a power cut would lose it.
        options = ["fsync=off", "full_page_writes=off", "max_connections=300"]
        options += ["listen_addresses=127.0.0.1", "unix_socket_directories="]
        options += self.options
        if "TEST_CLOCK_SHIFT" in os.environ:
            options += ["search_path=public,pg_catalog"]  # whose functions come first
        flags = [word for option in options for word in ("-c", option)]
        data = str(self.folder / "data")
        return [find_program("postgres"), "-D", data, "-p", str(self.port), *flags]

    def answers(self) -> bool:
        return postgres_problem(self.url) is None

    def start(self, seconds: float = 30) -> None:
        is_new = self.process is None
        super().start(seconds)
        shift = os.environ.get("TEST_CLOCK_SHIFT")
        if is_new and shift:
            # Every database is a copy of this one.
            url = with_database(self.url, "template1")
            with psycopg.connect(url, autocommit=True) as connection:
                if connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
                    return  # a standby has those of its primary
                for name in CLOCKS:
                    connection.execute(SHIFTED_CLOCK.format(name=name, shift=shift))
                connection.execute(SHIFTED_ACTIVITY.format(shift=shift))


class Replica(PostgreSQL):
    """A copy of a server that follows it: `pg_is_in_recovery()`."""

    # A conflicting change does not wait for the readers.
    options = ("max_standby_streaming_delay=0",)

    def __init__(self, primary: PostgreSQL) -> None:
        Server.__init__(self)
        copy = [find_program("pg_basebackup"), "--dbname", primary.url, "--write-recovery-conf"]
        copy += ["--pgdata", str(self.folder / "data"), "--checkpoint", "fast", "--no-sync"]
        subprocess.run(copy, cwd=self.folder, user=self.user, check=True, capture_output=True)
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"


class PgBouncer(Server):
    """With the configuration of deploy/, changed by `options`."""

    def __init__(self, database_url: str, **options: object) -> None:
        super().__init__()
        address = urlsplit(database_url)
        self.url = urlunsplit(address._replace(netloc=f"postgres@127.0.0.1:{self.port}"))
        config = configparser.ConfigParser(interpolation=None)
        config.read(ROOT / "deploy" / "pgbouncer" / "pgbouncer.ini")
        config["databases"]["*"] = f"host=127.0.0.1 port={address.port}"
        own = {"listen_addr": "127.0.0.1", "listen_port": self.port, "auth_type": "trust"}
        own |= {"auth_file": self.folder / "users"} | options
        config["pgbouncer"].update({name: str(value) for name, value in own.items()})
        with open(self.folder / "pgbouncer.ini", "w") as file:
            config.write(file)
        (self.folder / "users").write_text('"postgres" ""\n')

    def point_to(self, server: PostgreSQL) -> None:
        """Gives its clients another server, as after a failover."""
        file = self.folder / "pgbouncer.ini"
        config = configparser.ConfigParser(interpolation=None)
        config.read(file)
        config["databases"]["*"] = f"host=127.0.0.1 port={server.port}"
        with open(file, "w") as changed:
            config.write(changed)
        assert self.process
        self.process.send_signal(signal.SIGHUP)

    @staticmethod
    def program() -> str | None:
        """PGBOUNCER, or the one on the PATH, or Debian's."""
        given = os.environ.get("PGBOUNCER") or "pgbouncer"
        return shutil.which(given, path=f"{os.environ['PATH']}:/usr/sbin")

    def command(self) -> list[str]:
        return [self.program(), str(self.folder / "pgbouncer.ini")]

    def answers(self) -> bool:
        return postgres_problem(self.url) is None


class Redis(Server):
    def __init__(self) -> None:
        super().__init__()
        self.url = f"redis://127.0.0.1:{self.port}/0"

    @staticmethod
    def is_installed() -> bool:
        return bool(find_program("redis-server"))

    def command(self) -> list[str]:
        words = f"--port {self.port} --bind 127.0.0.1 --appendonly no --dir {self.folder}"
        return [find_program("redis-server"), *words.split(), "--save", ""]

    def answers(self) -> bool:
        return redis_problem(self.url) is None


def postgres_problem(url: str) -> str | None:
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.Error as error:
        return str(error).strip()
    return None


def redis_problem(url: str) -> str | None:
    try:
        with contextlib.closing(redis.Redis.from_url(url, socket_timeout=3)) as client:
            client.ping()
    except (redis.RedisError, OSError) as error:
        return str(error)
    return None


def with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


# --- Choosing them --------------------------------------------------------------------------------
def choose_postgres(own: list[Server]) -> tuple[str, str]:
    """(address, how it was found); an empty address when there is none."""
    given = os.environ.get("DATABASE_URL", "")
    if given.startswith("sqlite"):
        return "", "DATABASE_URL names SQLite"
    if given:
        if problem := postgres_problem(given):
            raise pytest.UsageError(f"DATABASE_URL does not answer: {problem}")
        return given, "DATABASE_URL"
    if PostgreSQL.is_installed():
        server = PostgreSQL()
        own.append(server)
        server.start()
        return server.url, "throwaway server"
    if postgres_problem(LOCAL_POSTGRES) is None:
        return LOCAL_POSTGRES, "server on 127.0.0.1:5432"
    return "", "PostgreSQL is not installed, and DATABASE_URL is not set"


def has_postgres() -> bool:
    """Whether choose_postgres() would find one."""
    given = os.environ.get("DATABASE_URL", "")
    if given:
        return not given.startswith("sqlite")
    return PostgreSQL.is_installed() or postgres_problem(LOCAL_POSTGRES) is None


SHIFTED_CLOCK = """
CREATE FUNCTION public.{name}() RETURNS timestamptz STABLE LANGUAGE sql
RETURN pg_catalog.{name}() + interval '{shift} seconds'
"""
SHIFTED_ACTIVITY = """
CREATE VIEW public.pg_stat_activity AS
SELECT datname, usename, pid, backend_type, state, wait_event_type, application_name, backend_xid,
    xact_start + interval '{shift} seconds' AS xact_start
FROM pg_catalog.pg_stat_activity
"""
CLOCKS = ("clock_timestamp", "now", "statement_timestamp", "transaction_timestamp")


def shift_clock() -> None:
    """TEST_CLOCK for all processes to come; those of Python read it in tests/shifted."""
    wanted = datetime.fromisoformat(os.environ["TEST_CLOCK"])
    os.environ["TEST_CLOCK_SHIFT"] = str((wanted - datetime.now(UTC)).total_seconds())
    os.environ["PYTHONPATH"] = str(ROOT / "tests" / "shifted")


def choose_redis(own: list[Server]) -> tuple[str, str]:
    given = os.environ.get("REDIS_URL", "")
    if given:
        if problem := redis_problem(given):
            raise pytest.UsageError(f"REDIS_URL does not answer: {problem}")
        return given, "REDIS_URL"
    if Redis.is_installed():
        server = Redis()
        own.append(server)
        server.start()
        return server.url, "throwaway server"
    return "", "redis-server is not installed, and REDIS_URL is not set"


def choose_services(config: pytest.Config) -> None:
    """Puts the addresses of the pass into the environment, where settings and xdist find them."""
    own = config.stash[OWN_SERVERS] = []
    wanted = os.environ.get("TEST_DATABASE", "")
    if wanted not in ("", "postgresql", "sqlite"):
        raise pytest.UsageError(f"TEST_DATABASE must be postgresql or sqlite, not {wanted!r}")
    sqlite_given = os.environ.get("DATABASE_URL", "").startswith("sqlite")
    asked_for_sqlite = wanted == "sqlite" or (sqlite_given and not wanted)
    address, how = ("", "asked for") if asked_for_sqlite else choose_postgres(own)
    os.environ["TEST_FIRST_ENGINE"] = "postgresql" if address or has_postgres() else "sqlite"
    missing = []
    if address:
        # Of the run's own, so that two runs on one server don't meet.
        name = f"booking_{uuid.uuid4().hex[:12]}"
        os.environ["DATABASE_URL"] = patient(with_database(address, name))
        os.environ["TEST_SERVER_URL"] = address
        os.environ["TEST_ENGINE"] = "postgresql"
        os.environ.setdefault("SECRET_KEY", SECRET_KEY)
    else:
        os.environ.pop("DATABASE_URL", None)
        os.environ["TEST_ENGINE"] = "sqlite"
        if not asked_for_sqlite:
            missing.append(f"PostgreSQL: {how}")
    redis_address, redis_how = choose_redis(own)
    os.environ["REDIS_URL"] = redis_address
    os.environ.pop("MESSAGE_BROKER_URL", None)  # Redis carries the messages of tests
    if not redis_address:
        missing.append(f"Redis: {redis_how}")
    if missing and os.environ.get("REQUIRE_SERVICES") == "1":
        raise pytest.UsageError("REQUIRE_SERVICES=1, but " + "; ".join(missing))
    os.environ["TEST_CHOICE"] = (
        f"database: {os.environ['TEST_ENGINE']} ({how}), redis: {'yes' if redis_address else 'no'}"
        f" ({redis_how})"
    )


# --- Databases ------------------------------------------------------------------------------------
def template_name() -> str:
    return urlsplit(os.environ["DATABASE_URL"]).path[1:] + "_template"


def run_sql(statement: str) -> None:
    """On the server of the pass, outside of any transaction."""
    with psycopg.connect(os.environ["TEST_SERVER_URL"], autocommit=True) as connection:
        connection.execute(statement)


def migrated_template() -> str:
    """A migrated database of the pass, made when it is first asked for: its name on the server, or
    its file. It is only ever copied: PostgreSQL copies nothing that somebody is connected to."""
    folder = Path(os.environ["VAR_DIR"])
    is_sqlite = os.environ["TEST_ENGINE"] == "sqlite"
    name = str(folder / "template.sqlite3") if is_sqlite else template_name()
    with open(folder / "template.lock", "w") as lock:
        # The first of xdist's workers makes it, the others wait.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "template.made").exists():
            if not is_sqlite:
                run_sql(f"CREATE DATABASE {name}")
            url = f"sqlite:///{name}" if is_sqlite else database_url(name)
            migrate(url)
            (folder / "template.made").touch()
    return name


def migrate(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if url.startswith("sqlite"):
        # What is in the log beside the file would not be copied with it.
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def patient(url: str) -> str:
    """With a minute for the server to take a connection: where it has to, the machine is busy."""
    if url.startswith("sqlite"):
        return url
    return f"{url}{'&' if urlsplit(url).query else '?'}connect_timeout=60"


def database_url(name: str) -> str:
    return with_database(os.environ["TEST_SERVER_URL"], name)


@contextlib.contextmanager
def own_database(folder: Path, *, migrated: bool = True) -> Iterator[str]:
    """The address of a new database of the pass's kind, migrated or empty; dropped at the end."""
    if os.environ["TEST_ENGINE"] == "sqlite":
        file = folder / "db.sqlite3"
        if migrated:
            shutil.copyfile(migrated_template(), file)
        yield f"sqlite:///{file}"
        return
    name = f"service_{uuid.uuid4().hex[:12]}"
    run_sql(f"CREATE DATABASE {name}" + (f" TEMPLATE {migrated_template()}" if migrated else ""))
    yield database_url(name)
    run_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def make_database(server: PostgreSQL, name: str, folder: Path) -> str:
    """The address of a migrated database on a server of a test's own."""
    url = with_database(server.url, name)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    with own_database(folder) as source:
        dump = [find_program("pg_dump"), "--dbname", source]
        schema = subprocess.run(dump, check=True, capture_output=True).stdout
    load = [find_program("psql"), "--quiet", "--set=ON_ERROR_STOP=1", "--dbname", url]
    subprocess.run(load, input=schema, check=True, capture_output=True)
    return url


# --- Hooks ----------------------------------------------------------------------------------------
def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("service")
    group.addoption("--deep", action="store_true", help="also the long tests, more random cases")
    group.addoption("--chaos", action="store_true", help="also tests that kill servers and workers")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before pytest-django reads the settings; in xdist's workers the environment is inherited."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if "TEST_CLOCK" in os.environ:
        shift_clock()
    chosen = early_config.known_args_namespace
    os.environ["TEST_WHOLE_SUITE"] = "" if chosen.file_or_dir or chosen.keyword else "1"
    # Nothing that a test writes may land in the data of a service that runs from this checkout.
    os.environ["VAR_DIR"] = tempfile.mkdtemp(prefix="booking-test-var-")
    try:
        choose_services(early_config)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduling.settings")
        compile_outdated()  # before anything asks which languages there are
    except BaseException:
        stop_services(early_config)
        raise


def pytest_configure(config: pytest.Config) -> None:
    for mark in MARKS:
        config.addinivalue_line("markers", f"{mark}: see tests/services.py")
    # Two shared cores: a deadline per example would only measure the neighbours.
    hypothesis.settings.register_profile("ordinary", deadline=None)
    hypothesis.settings.register_profile("deep", deadline=None, max_examples=2000)
    hypothesis.settings.load_profile("deep" if config.getoption("deep") else "ordinary")


def pytest_sessionstart(session: pytest.Session) -> None:
    """The workers take seconds to collect; then each of them asks for the template at once."""
    if session.config.getoption("numprocesses", None):
        thread = threading.Thread(target=migrated_template, name="template")
        session.config.stash[TEMPLATE_THREAD] = thread
        thread.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    FORK_SERVER.stop()
    if TEMPLATE_THREAD in config.stash:
        config.stash[TEMPLATE_THREAD].join()
    stop_services(config)


def stop_services(config: pytest.Config) -> None:
    if OWN_SERVERS in config.stash:
        if os.environ.get("TEST_ENGINE") == "postgresql":
            run_sql(f"DROP DATABASE IF EXISTS {template_name()}")
        for server in config.stash[OWN_SERVERS]:
            server.stop()
        shutil.rmtree(os.environ["VAR_DIR"], ignore_errors=True)


def pytest_report_header(config: pytest.Config) -> str:
    return os.environ["TEST_CHOICE"]


def is_second_pass() -> bool:
    return os.environ.get("TEST_DATABASE") == "sqlite"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """The second pass imports no module that has nothing for it."""
    if not is_second_pass() or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text() if os.environ["TEST_FIRST_ENGINE"] == "postgresql" else ""
    return None if any(f"mark.{mark}" in text for mark in SECOND_PASS_MARKS) else True


def pytest_collection_finish() -> None:
    """All that is imported and collected stays: no pass of the garbage collector goes over it."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    engine = os.environ["TEST_ENGINE"]
    other_engine = {"postgresql": "sqlite", "sqlite": "postgresql"}[engine]
    kept, left_out = [], []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        unasked = any(m in marks and not config.getoption(m) for m in ("deep", "chaos"))
        elsewhere = other_engine in marks and (is_second_pass() or engine == "postgresql")
        repeated = is_second_pass() and not marks & set(SECOND_PASS_MARKS)
        (left_out if unasked or elsewhere or repeated else kept).append(item)
        if other_engine in marks:
            item.add_marker(pytest.mark.skip(reason="needs PostgreSQL"))
        if "redis" in marks and not os.environ["REDIS_URL"]:
            item.add_marker(pytest.mark.skip(reason="needs Redis"))
    if os.environ["TEST_WHOLE_SUITE"] and not config.getoption("deep"):
        cases = some_cases(kept)
        left_out += [item for item in kept if item not in cases]
        kept = [item for item in kept if item in cases]
    items[:] = long_modules_first(kept)
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def some_cases(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the tests, but of a test with many cases only some, spread evenly."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen: set[pytest.Item] = set()
    for cases in tests.values():
        count = len(cases)
        if is_second_pass() and not cases[0].get_closest_marker("every_case"):
            count = min(count, SECOND_PASS_CASES)
        elif cases[0].get_closest_marker("matrix"):
            count = min(count, MATRIX_CASES)
        chosen.update(cases[number * len(cases) // count] for number in range(count))
    return chosen


def long_modules_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with modules that start processes first; pytest-django puts them last. A
    long test that begins last would keep one of xdist's workers busy while the others are idle."""
    long = {
        item.path
        for item in items
        if LONG_FIXTURES.intersection(item.fixturenames) or item.path.parent.name == "setup"
    }
    return sorted(items, key=lambda item: item.path not in long)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    return fail_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    return fail_if_skipped((yield))


def fail_if_skipped(report):
    """In CI a skip is a test that was not run; an expected failure is not a skip."""
    skipped = report.outcome == "skipped" and not hasattr(report, "wasxfail")
    if skipped and os.environ.get("REQUIRE_SERVICES") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, and REQUIRE_SERVICES=1: {skip_reason(report)}"
    return report


def skip_reason(report) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        SKIPS.setdefault(skip_reason(report), []).append(report.nodeid)


def pytest_terminal_summary(terminalreporter) -> None:
    for reason, tests in SKIPS.items():
        terminalreporter.write_line(f"skipped: {len(tests)} x {reason}")
    if not SKIPS:
        terminalreporter.write_line("skipped: nothing")
    terminalreporter.write_line(os.environ["TEST_CHOICE"])


# --- Real processes -------------------------------------------------------------------------------
class Service:
    """Web, and workers if asked for, as real processes on a real database.

    url             http://127.0.0.1:PORT
    env             the environment of every process of it
    folder          its VAR_DIR; the outbox of e-mails lies in it
    processes       name -> process, to be killed or signalled by a test
    code            where the code lies that runs: this checkout, or another release
    """

    def __init__(
        self, folder: Path, database_url: str, settings: dict[str, object], code: Path = ROOT
    ) -> None:
        self.code = code
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self.database_url = database_url
        self.processes: dict[str, ForkedProcess] = {}
        self.env = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
        self.env |= {
            "DATABASE_URL": patient(database_url),
            "VAR_DIR": str(folder),
            "SECRET_KEY": SECRET_KEY,
            "PUBLIC_URL": self.url,
            "TMPDIR": str(folder),
            "LOG_LEVEL": "WARNING",
            "PYTHONUNBUFFERED": "1",
            # Sixty-four clients from one address are the point of a race test.
            "RATE_LIMIT_PER_MINUTE": "0",
            "FAILED_LOGINS_PER_MINUTE": "0",
            "FAILED_PASSWORDS_PER_HOUR": "0",
        }
        self.env |= {name: str(value) for name, value in settings.items()}
        self.shell = Shell(FORK_SERVER, self.env, self.code)

    def run(self, code: str) -> str:
        """Runs Python in the service's environment, with Django set up; returns what it printed."""
        return self.shell.run(code)

    def manage(self, *args: str) -> str:
        """Runs a management command in the service's environment; returns what it printed."""
        done = FORK_SERVER.run("manage", *args, cwd=self.code, env=self.env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start_web(
        self, *, workers: int = 2, threads: int = 8, wsgi: str = "scheduling.wsgi"
    ) -> None:
        """Returns when /healthz answers. `wsgi`: a test's own application around the service."""
        command = ["gunicorn", wsgi, "--bind", f"127.0.0.1:{self.port}", "--preload"]
        command += ["--no-control-socket", "--graceful-timeout", "5"]
        command += ["--workers", str(workers), "--threads", str(threads), "--log-level", "warning"]
        self.start("web", *command)
        deadline = time.monotonic() + 60
        while not self.is_healthy():
            assert self.processes["web"].poll() is None, self.log("web")
            assert time.monotonic() < deadline, f"no answer from web:\n{self.log('web')}"
            time.sleep(0.05)

    def start_worker(
        self,
        name: str = "worker",
        *,
        concurrency: int = 2,
        include: str = "",
        queue: str = "",
        until: str = "ready.",
    ) -> None:
        """A Celery worker, `until` in its log when it returns; several need several names."""
        command = ["celery", "--app", "scheduling", "worker", "-O", "fair", "--loglevel", "info"]
        command += ["--without-gossip", "--without-mingle", "--hostname", f"{name}@%h"]
        command += ["--include", include] if include else []
        command += ["--queues", queue] if queue else []
        self.start(name, *command, "--concurrency", str(concurrency))
        self.wait_for_log(name, until)

    def start_beat(self) -> None:
        self.start("beat", "celery", "--app", "scheduling.beat", "beat", "--loglevel", "info")

    def start(self, name: str, module: str, *args: str) -> None:
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = FORK_SERVER.start(
                module, *args, cwd=self.code, env=self.env, output=log
            )

    def is_healthy(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/healthz", timeout=2).close()
        except (OSError, urllib.error.URLError):
            return False
        return True

    def log(self, name: str = "web") -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_for_log(self, name: str, text: str, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.log(name):
            assert self.processes[name].poll() is None, self.log(name)
            assert time.monotonic() < deadline, f"{text!r} not in:\n{self.log(name)}"
            time.sleep(0.05)

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Signals one process, not its children, and waits for its end."""
        self.processes[name].send_signal(number)
        self.processes[name].wait(30)

    def stop(self) -> None:
        """At once: how a part ends when it is asked to is a test's own matter, by kill()."""
        self.shell.stop()
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def service_database_url(tmp_path: Path) -> Iterator[str]:
    with own_database(tmp_path, migrated=False) as url:
        yield url


def service_starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Service]]:
    with contextlib.ExitStack() as cleaning:

        def start(
            *,
            workers: int = 2,
            threads: int = 8,
            wsgi: str = "scheduling.wsgi",
            code: Path = ROOT,
            **settings: object,
        ) -> Service:
            folder = tmp_path_factory.mktemp("service")
            service = Service(folder, cleaning.enter_context(own_database(folder)), settings, code)
            cleaning.callback(service.stop)
            service.start_web(workers=workers, threads=threads, wsgi=wsgi)
            return service

        yield start


@pytest.fixture(scope="module")
def start_service(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Service]]:
    """start_service(workers=2, threads=8, RATE_LIMIT_PER_MINUTE=5, ...) -> Service.

    Its database has the schema of this checkout, whatever `code` it runs.
    Words in capitals are settings in its environment. Celery's worker and beat are started by the
    test (`service.start_worker()`). All that was started is stopped at the end of the module, or
    before by `service.stop()`.
    """
    yield from service_starter(tmp_path_factory)


@pytest.fixture(scope="session")
def start_shared_service(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Service]]:
    """As `start_service`, for services that serve several modules: they run until the end."""
    yield from service_starter(tmp_path_factory)


@pytest.fixture(scope="session")
def live_service(start_shared_service: Callable[..., Service]) -> Service:
    return start_shared_service()
