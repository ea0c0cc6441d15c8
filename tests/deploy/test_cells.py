"""deploy/cells: a home moves to its standby, and is split into two, while clients book (--deep)."""

import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.deploy.cells import (
    HOMES,
    NOT_SPLIT,
    SMALL,
    Client,
    Router,
    cell_settings,
    host_of,
    routing,
    run_script,
)
from tests.live import SIGNED_LINK
from tests.services import PostgreSQL, Replica, Service, free_port, make_database, with_database
from tests.setup.test_backup import real_clock
from tests.sinks import MailSink, hook_sink, mail_sink

pytestmark = [pytest.mark.postgresql, real_clock]

MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
START = MIDNIGHT + timedelta(days=30)
SLOT = timedelta(minutes=30)
REMINDER = {
    "type": "email",
    "settings": {"recipient": "customer", "subject": "See you soon"},
    "when": {"type": "before", "unit": "days", "time": 1},
}
APP = """
from apps_config.services import create_app, issue_key
owner = {{"contact_email": "{slug}@example.com"}}
app = create_app(slug="{slug}", name="Demo", mode="live", settings=owner)
print(issue_key("server", mode=app.mode, app=app)[1])
"""
OPEN = """
SELECT count(*) FROM notifications_delivery AS delivery
JOIN apps_config_app AS app ON app.id = delivery.app_id
WHERE delivery.next_at IS NOT NULL AND delivery.due_at <= now() AND app.archived_at IS NULL
"""
REMIND = """
UPDATE notifications_delivery SET due_at = now(), next_at = now()
WHERE kind = 'reminder' AND state = 'scheduled'
RETURNING booking_id::text
"""
BOOKINGS = """
SELECT booking.id::text FROM bookings_booking AS booking
JOIN apps_config_app AS app ON app.id = booking.app_id WHERE app.slug = %s
"""


# Ends its whole process group, with the script, at the call after so many.
DEADLY = """#!/bin/sh
calls=$(($(cat {folder}/calls) + 1))
echo $calls > {folder}/calls
if [ $calls -gt $(cat {folder}/limit) ]; then kill -9 0; fi
exec {program} "$@"
"""


def run_killed_at_each_step(name: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Run the script again and again, killed at its first program, its second, and so on, until it
    ends."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for program in ("psql", "socat"):
            wrapped = DEADLY.format(folder=folder, program=shutil.which(program))
            (folder / program).write_text(wrapped)
            (folder / program).chmod(0o755)
        for limit in range(60):
            (folder / "limit").write_text(str(limit))
            (folder / "calls").write_text("0")
            done = run_script(name, *args, path=text)
            if done.returncode == 0:
                assert limit > 5
                return done
            assert done.returncode == -9, done.stderr
    raise AssertionError("the script never ended")


RunScript = Callable[..., subprocess.CompletedProcess[str]]
RUNS = {"once": run_script, "killed at each step": run_killed_at_each_step}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


# --- A cell with a server of its own --------------------------------------------------------------
class Cell:
    """Web and a worker on a database of a server."""

    def __init__(
        self, stack: ExitStack, folder: Path, server: PostgreSQL, home: int, mails: MailSink
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.url = with_database(server.url, "cell")
        settings = cell_settings(home) | {"EMAIL_URL": mails.url}
        self.service = Service(folder, self.url, settings)
        stack.callback(self.service.stop)

    def start_web(self) -> Self:
        self.service.start_web(**SMALL)
        return self

    def start_worker(self) -> None:
        self.service.start_worker(queue="email", concurrency=1)

    def stop_worker(self) -> None:
        self.service.kill("worker", signal.SIGTERM)

    def wait_for_mails(self) -> None:
        """Until no delivery of an open app is due or being sent."""
        deadline = time.monotonic() + 120
        while self.read(OPEN) != [0]:
            assert time.monotonic() < deadline, self.service.log("worker")
            time.sleep(0.05)

    def make_reminders_due(self) -> set[str]:
        """Return the ids of their bookings."""
        return set(self.read(REMIND))

    def make_app(self, slug: str) -> str:
        return self.service.run(APP.format(slug=slug)).splitlines()[-1]

    def read(self, sql: str, *values: object) -> list[Any]:
        with psycopg.connect(self.url) as connection:
            return [row[0] for row in connection.execute(sql, values)]

    def counts(self, apps: Path) -> str:
        return self.service.manage("count_app_rows", str(apps))


class Bookers:
    """A client per key that books one time after the other, within the block.

    A request without an answer or with 503 is repeated with its Idempotency-Key.
    """

    def __init__(self, router: Router, keys: dict[str, str]) -> None:
        self.router = router
        self.booked: dict[str, list[str]] = {slug: [] for slug in keys}
        self.codes: list[tuple[float, int]] = []
        self.faults: list[Any] = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.book, args=pair) for pair in keys.items()]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def book(self, slug: str, key: str) -> None:
        with closing(Client(self.router.port)) as client:
            made = client.call("POST", "/v2/resources", {"name": "Ada", "timezone": "UTC"}, key=key)
            resource, number = made.data["id"], 0
            while not self.stopping.is_set():
                name = f"{slug}-{number}"
                body = new_booking(resource, START + number * SLOT, name)
                while not (booked := self.try_once(client, key, body, name)):
                    if self.stopping.wait(0.05):
                        return
                self.booked[slug].append(booked)
                number += 1

    def try_once(self, client: Client, key: str, body: Any, name: str) -> str | None:
        headers = {"Idempotency-Key": name}
        try:
            answer = client.call("POST", "/v2/bookings", body, key=key, headers=headers)
        except (OSError, HTTPException) as error:
            self.faults.append(error)
            return None
        self.codes.append((time.monotonic(), answer.status))
        if answer.status == 201:
            return answer.json["data"]["id"]
        if answer.status != 503 or "Retry-After" not in answer.headers:
            self.faults.append((answer.status, answer.content))
        return None

    def wait_for_more(self, count: int = 10) -> None:
        """Until each client has booked so many more times."""
        wanted = {slug: len(ids) + count for slug, ids in self.booked.items()}
        self.wait_until(
            lambda: all(len(self.booked[slug]) >= number for slug, number in wanted.items())
        )

    def wait_until(self, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not is_done():
            assert time.monotonic() < deadline, (self.faults[-3:], self.codes[-3:])
            time.sleep(0.02)

    def describe(self) -> str:
        """For the log of the test: how long there were only refusals."""
        refused = [at for at, status in self.codes if status == 503]
        span = refused[-1] - refused[0] if refused else 0
        return f"{len(self.codes)} requests, {len(refused)} of them 503, within {span:.1f} s"


def address_of(name: str) -> str:
    return f"{name}@example.com"


def new_booking(resource: str, start: datetime, name: str) -> dict[str, Any]:
    return {
        "resource_id": resource,
        "what": "Check-up",
        "customer": {"name": "Ada", "email": address_of(name)},
        "start": f"{start:%Y-%m-%d %H:%M:%S}",
        "end": f"{start + SLOT:%Y-%m-%d %H:%M:%S}",
        "event_notifications": [REMINDER],
    }


@pytest.fixture
def primary(stack: ExitStack, tmp_path: Path) -> PostgreSQL:
    """With a migrated database named `cell`."""
    server = PostgreSQL()
    stack.callback(server.stop)
    server.start()
    make_database(server, "cell", tmp_path)
    return server


@pytest.fixture
def mails(stack: ExitStack) -> MailSink:
    return stack.enter_context(mail_sink())


def book_until_worker_stops(bookers: Bookers, cell: Cell, mails: MailSink) -> set[str]:
    """Confirmations and reminders were sent, and others are due, when this returns.

    Returns the ids of the bookings whose reminders were sent or are due.
    """
    bookers.wait_for_more()
    reminded = cell.make_reminders_due()
    bookers.wait_until(lambda: any(reminder for _, reminder in received(mails)))
    cell.stop_worker()
    bookers.wait_for_more(3)
    late = cell.make_reminders_due()
    assert reminded and late
    return reminded | late


def received(mails: MailSink) -> list[tuple[str, bool]]:
    """(recipient, whether it is a reminder), sorted."""
    subject = REMINDER["settings"]["subject"]
    return sorted((mail.to[0], mail.subject == subject) for mail in mails.mails)


def due(bookers: Bookers, reminded: set[str]) -> list[tuple[str, bool]]:
    """What customers and owners must have received, as `received` has it."""
    found = []
    for slug, ids in bookers.booked.items():
        for number, booking in enumerate(ids):
            customer = address_of(f"{slug}-{number}")
            found += [(customer, False), (address_of(slug), False)]
            found += [(customer, True)] if booking in reminded else []
    return sorted(found)


def follow(stack: ExitStack, server: PostgreSQL) -> Replica:
    standby = Replica(server)
    stack.callback(standby.stop)
    standby.start()
    return standby


def ports(**given: int) -> dict[int, int]:
    """Of the homes; nobody listens on those that are not given."""
    return {home: given.get(f"home_{home}") or free_port() for home in HOMES}


@pytest.mark.deep
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_home_moves_to_its_standby_while_clients_book(
    stack: ExitStack, primary: PostgreSQL, mails: MailSink, tmp_path: Path, run: RunScript
) -> None:
    """No booking and no e-mail is lost or there twice."""
    old = Cell(stack, tmp_path / "old", primary, 0, mails)
    key = old.make_app("harbour")
    old.start_web().start_worker()
    standby = follow(stack, primary)
    new = Cell(stack, tmp_path / "new", standby, 0, mails).start_web()
    server = "\tserver web1 10.0.0.1:8000\n"
    coming = f"\tserver new1 127.0.0.1:{new.service.port} disabled\n"
    changes = NOT_SPLIT | {server: server + coming}
    router = stack.enter_context(
        routing(tmp_path / "router", ports(home_0=old.service.port), changes)
    )

    with Bookers(router, {"harbour": key}) as bookers:
        reminded = book_until_worker_stops(bookers, old, mails)
        done = run("move.sh", old.url, new.url, router.socket, "home_0/web1", "home_0/new1")
        new.start_worker()
        bookers.wait_for_more()
    print(bookers.describe())
    new.wait_for_mails()

    assert (done.returncode, done.stdout, done.stderr) == (0, "NEW is the primary.\n", "")
    assert bookers.faults == []
    assert sorted(new.read(BOOKINGS, "harbour")) == sorted(bookers.booked["harbour"])
    assert set(old.read(BOOKINGS, "harbour")) < set(bookers.booked["harbour"])
    assert received(mails) == due(bookers, reminded)
    assert len({mail.id for mail in mails.mails}) == len(mails.mails)


@pytest.mark.deep
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_home_is_split_while_clients_book(
    stack: ExitStack, primary: PostgreSQL, mails: MailSink, tmp_path: Path, run: RunScript
) -> None:
    """No booking and no e-mail is lost or there twice; old links lead to the new cell."""
    old = Cell(stack, tmp_path / "old", primary, 0, mails)
    keys = {slug: old.make_app(slug) for slug in ("harbour", "station")}
    old.start_web().start_worker()
    moved, stayed = tmp_path / "moved.txt", tmp_path / "stayed.txt"
    moved.write_text("station\n")
    stayed.write_text("harbour\n")
    with psycopg.connect(old.url, autocommit=True) as connection:
        connection.execute("INSERT INTO apps_config_databasehome VALUES (2)")
    standby = follow(stack, primary)
    new = Cell(stack, tmp_path / "new", standby, 2, mails).start_web()
    maps = tmp_path / "maps"
    maps.mkdir()
    new.service.manage("write_router_maps", str(maps), "--apps", str(moved))
    router = stack.enter_context(
        routing(tmp_path / "router", ports(home_0=old.service.port, home_2=new.service.port))
    )

    with Bookers(router, keys) as bookers:
        reminded = book_until_worker_stops(bookers, old, mails)
        before = {slug: ids[0] for slug, ids in bookers.booked.items()}
        links = {
            slug: old.service.run(SIGNED_LINK.format(booking_id=first)).splitlines()[-1]
            for slug, first in before.items()
        }
        router.send_command("disable server home_0/web1")
        done = run("split.sh", old.url, new.url, 0, 2, moved)
        for line in (maps / "moved-2.map").read_text().splitlines():
            router.send_command(f"add map {router.folder}/moved.map {line}")
        router.send_command("enable server home_0/web1")
        for cell in (old, new):
            cell.start_worker()
        bookers.wait_for_more()
    print(bookers.describe())
    for cell in (old, new):
        cell.wait_for_mails()
    answers = {slug: open_link(router, link) for slug, link in links.items()}
    unpruned = (old.counts(stayed), new.counts(moved))
    old.service.manage("prune_apps", "--delete", str(moved), "--home", "0")
    new.service.manage("prune_apps", "--keep", str(moved), "--home", "2")

    assert (done.returncode, done.stderr) == (0, "")
    assert bookers.faults == []
    assert sorted(old.read(BOOKINGS, "harbour")) == sorted(bookers.booked["harbour"])
    assert sorted(new.read(BOOKINGS, "station")) == sorted(bookers.booked["station"])
    assert received(mails) == due(bookers, reminded)
    assert len({mail.id for mail in mails.mails}) == len(mails.mails)
    # The link of a moved app leads to its new place, and its query with it.
    assert answers == {
        "harbour": [(host_of(0), 200)],
        "station": [(host_of(0), 308), (host_of(2), 200)],
    }
    assert (old.counts(stayed), new.counts(moved)) == unpruned
    assert (old.counts(moved), new.counts(stayed)) == ("", "")
    for cell, slug, home in ((old, "harbour", 0), (new, "station", 2)):
        assert cell.read("SELECT slug FROM apps_config_app WHERE archived_at IS NULL") == [slug]
        assert cell.read("SELECT slug FROM apps_config_app") == [slug]
        assert cell.read("SELECT number FROM apps_config_databasehome") == [home]


def open_link(router: Router, link: str) -> list[tuple[str, int]]:
    """(host, status) of each answer on the way."""
    visited = []
    with closing(Client(router.port)) as client:
        while link:
            parts = urlsplit(link)
            answer = client.call("GET", f"{parts.path}?{parts.query}", host=parts.netloc)
            visited.append((parts.netloc, answer.status))
            link = answer.headers.get("Location", "")
    return visited


# --- Scripts that are killed ----------------------------------------------------------------------
SCHEMA = """
CREATE TABLE apps_config_app (slug text PRIMARY KEY, archived_at timestamptz);
CREATE TABLE apps_config_databasehome (number smallint PRIMARY KEY);
INSERT INTO apps_config_app VALUES
    ('harbour', NULL), ('station', NULL), ('closed', '2026-01-01Z');
INSERT INTO apps_config_databasehome VALUES (0), (2);
"""


@pytest.fixture
def pair(stack: ExitStack) -> tuple[PostgreSQL, Replica]:
    server = PostgreSQL()
    stack.callback(server.stop)
    server.start()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(SCHEMA)
    return server, follow(stack, server)


def apps_of(server: PostgreSQL) -> tuple[list[str], list[int]]:
    """(open apps, homes). Fails unless the server accepts writes."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE written (id int)")
        apps = "SELECT slug FROM apps_config_app WHERE archived_at IS NULL ORDER BY slug"
        homes = "SELECT number FROM apps_config_databasehome ORDER BY number"
        return tuple([row[0] for row in connection.execute(sql)] for sql in (apps, homes))


def test_split_that_is_killed_at_each_step_can_be_repeated(
    pair: tuple[PostgreSQL, Replica], tmp_path: Path
) -> None:
    old, new = pair
    apps = tmp_path / "moved.txt"
    apps.write_text("station\n")

    run_killed_at_each_step("split.sh", old.url, new.url, 0, 2, apps)

    assert apps_of(old) == (["harbour"], [0])
    assert apps_of(new) == (["station"], [2])


def test_promotion_that_is_killed_at_each_step_can_be_repeated(
    pair: tuple[PostgreSQL, Replica],
) -> None:
    old, new = pair

    run_killed_at_each_step("promote.sh", old.url, new.url)

    assert apps_of(new) == (["harbour", "station"], [0, 2])
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        apps_of(old)


def test_move_that_is_killed_at_each_step_can_be_repeated(
    pair: tuple[PostgreSQL, Replica], stack: ExitStack, tmp_path: Path
) -> None:
    """The router's steps too: afterwards, all requests go to the new place."""
    old, new = pair
    web1, new1, new2 = (stack.enter_context(hook_sink()) for _ in range(3))
    server = "\tserver web1 10.0.0.1:8000\n"
    coming = "".join(
        f"\tserver {name} 127.0.0.1:{sink.port} disabled\n"
        for name, sink in (("new1", new1), ("new2", new2))
    )
    changes = NOT_SPLIT | {server: server + coming}
    router = stack.enter_context(routing(tmp_path / "router", ports(home_0=web1.port), changes))
    with closing(Client(router.port)) as client:
        before = [client.call("GET", "/before", host=host_of(0)).status for _ in range(4)]

        servers = (router.socket, "home_0/web1", "home_0/new1 home_0/new2")
        run_killed_at_each_step("move.sh", old.url, new.url, *servers)

        after = [client.call("GET", "/after", host=host_of(0)).status for _ in range(4)]
    asked = [{call.path for call in sink.calls} - {"/healthz"} for sink in (web1, new1, new2)]
    assert (before, after) == ([200] * 4, [200] * 4)
    assert asked == [{"/before"}, {"/after"}, {"/after"}]
    assert apps_of(new) == (["harbour", "station"], [0, 2])
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        apps_of(old)


def test_promotion_refuses_a_server_that_does_not_follow(
    pair: tuple[PostgreSQL, Replica], stack: ExitStack
) -> None:
    """Nothing has changed: both accept writes as before."""
    old, new = pair
    other = PostgreSQL()
    stack.callback(other.stop)
    other.start()

    strange = run_script("promote.sh", old.url, other.url)
    itself = run_script("promote.sh", old.url, old.url)
    unrelated = run_script("promote.sh", other.url, new.url)

    refused = (1, "", "NEW does not follow OLD.\n")
    for done in (strange, itself, unrelated):
        assert (done.returncode, done.stdout, done.stderr) == refused
    assert apps_of(old) == (["harbour", "station"], [0, 2])


def test_split_refuses_an_app_that_is_not_there(
    pair: tuple[PostgreSQL, Replica], tmp_path: Path
) -> None:
    old, new = pair
    apps = tmp_path / "moved.txt"
    apps.write_text("station\nstaton\n")

    done = run_script("split.sh", old.url, new.url, 0, 2, apps)

    assert (done.returncode, done.stderr) == (1, "There is no app staton.\n")
    assert apps_of(old) == (["harbour", "station"], [0, 2])
