"""GET /v2/changes: each change once, in one order, and none is skipped (additions to api.md)."""

import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps_config import changes
from apps_config.changes import Position, number_all_changes, purge_changes, read_changes
from apps_config.models import Change, ChangeFeed, Credential
from apps_config.services import issue_key
from availability.models import Resource
from availability.services import change_resource
from bookings.privacy import erase_person
from tests.bookings.booking_drafts import MARTY
from tests.queries import Queries
from tests.world import Caller, Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def start_of(tenant: Tenant) -> str:
    """The cursor of the present moment."""
    return tenant.get("/changes").json["next_cursor"]


def follow(tenant: Tenant, cursor: str, query: str = "") -> list[dict[str, Any]]:
    """All changes after the cursor, over as many requests as they need."""
    found: list[dict[str, Any]] = []
    while True:
        answer = tenant.get(f"/changes?cursor={cursor}{query}")
        assert answer.status == 200, answer.json
        found += answer.json["data"]
        cursor = answer.json["next_cursor"]
        if not answer.json["has_more"]:
            return found


def named(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(row["type"], row["action"], row["object_id"]) for row in rows]


def in_days(days: int, hour: int = 9) -> dict[str, str]:
    start = (timezone.now() + timedelta(days=days)).replace(hour=hour, minute=0, second=0)
    return {
        "start": start.replace(microsecond=0).isoformat(),
        "end": (start + timedelta(minutes=30)).replace(microsecond=0).isoformat(),
    }


@pytest.fixture
def resource(tenant: Tenant) -> Any:
    return tenant.make_resource()


def book(tenant: Tenant, resource: Any, days: int = 2, hour: int = 9) -> Any:
    body = {"resource_id": resource["id"], "what": "A", "customer": MARTY, **in_days(days, hour)}
    answer = tenant.post("/bookings", body)
    assert answer.status == 201, answer.json
    return answer.data


# --- What is listed -------------------------------------------------------------------------------
def test_configuration_is_listed_as_get_shows_it(tenant: Tenant) -> None:
    before = start_of(tenant)
    resource = tenant.post("/resources", {"name": "Ada", "timezone": "UTC"}).data
    calendar = tenant.get("/calendars").data[0]
    schedule = tenant.post("/schedules", {"name": "Hours"}).data
    project = tenant.post("/projects", {"name": "Check-up", "resources": [resource["id"]]}).data
    webhook = tenant.post("/webhooks", {"url": "https://example.com/hook", "active": False}).data
    tenant.put(f"/schedules/{schedule['id']}", {"name": "Opening hours"})
    tenant.delete(f"/webhooks/{webhook['id']}")

    rows = follow(tenant, before)

    assert named(rows) == [
        ("resource", "created", resource["id"]),
        ("calendar", "created", calendar["id"]),
        ("schedule", "created", schedule["id"]),
        ("project", "created", project["id"]),
        ("project", "updated", project["id"]),
        ("webhook", "created", webhook["id"]),
        ("schedule", "updated", schedule["id"]),
        ("webhook", "deleted", webhook["id"]),
    ]
    now = {(row["type"], row["object_id"]): row["object"] for row in rows}
    for kind in ("resource", "schedule", "project", "calendar"):
        (key,) = [object_id for each, object_id in now if each == kind]
        assert now[kind, key] == tenant.get(f"/{kind}s/{key}").data
    assert now["webhook", webhook["id"]] is None
    assert {row["actor"][:10] for row in rows if row["type"] == "schedule"} == {"server key"}
    assert {row["source"] for row in rows} == {None}


def limited(tenant: Tenant, **limits: Any) -> Any:
    return Caller(issue_key(Credential.SERVER, app=tenant.app, **limits)[1])


def test_key_without_people_follows_bookings_without_them(tenant: Tenant, resource: Any) -> None:
    before = start_of(tenant)
    booking = book(tenant, resource)
    tenant.post("/webhooks", {"url": "https://example.com/hook", "active": False})
    key = limited(tenant, scopes=["bookings:read"])

    rows = follow(key, before)

    assert [row["type"] for row in rows] == ["event", "booking"]
    assert rows[1]["object"] == key.get(f"/bookings/{booking['id']}").data
    assert rows[0]["object"] == key.get(f"/events/{rows[0]['object_id']}").data
    refused = [key.get(f"/changes?types={kind}").json["error"] for kind in ("customer", "webhook")]
    assert refused == [
        "This key lacks the scope people:read.",
        "This key lacks the scope settings:read.",
    ]


def test_key_with_projects_follows_these(tenant: Tenant, resource: Any) -> None:
    terms = {"length": "30 minutes"}
    own, other = (
        tenant.make_project(resource["id"], name=name, availability=terms)["id"]
        for name in ("Own", "Other")
    )
    before = start_of(tenant)
    body = {"what": "A", "customer": MARTY}
    mine = tenant.post("/bookings", {"project_id": own, **body, **in_days(2)}).data["id"]
    tenant.post("/bookings", {"project_id": other, **body, **in_days(3)})
    tenant.post("/bookings", {"resource_id": resource["id"], **body, **in_days(4)})
    tenant.put(f"/projects/{own}", {"name": "Mine"})
    tenant.put(f"/projects/{other}", {"name": "Theirs"})
    key = limited(tenant, projects=[own])

    assert named(follow(key, before)) == [("booking", "confirm", mine), ("project", "updated", own)]
    assert key.get("/changes?types=booking,event").status == 403


def test_cursor_of_each_change_leads_to_those_after_it(tenant: Tenant) -> None:
    before = start_of(tenant)
    for name in ("Mornings", "Afternoons", "Evenings"):
        tenant.post("/schedules", {"name": name})

    rows = follow(tenant, before)

    assert [follow(tenant, row["cursor"]) for row in rows] == [rows[1:], rows[2:], []]
    assert tenant.get(f"/changes?cursor={before}").json["next_cursor"] == rows[-1]["cursor"]


def test_booking_is_listed_with_its_event_and_customer(tenant: Tenant, resource: Any) -> None:
    before = start_of(tenant)
    booking = book(tenant, resource)
    whole = tenant.get(f"/bookings/{booking['id']}").data
    tenant.put(f"/bookings/{booking['id']}/cancel")
    whole = tenant.get(f"/bookings/{booking['id']}").data

    rows = follow(tenant, before, "&types=booking,event,customer")

    event, customer = whole["event"], whole["customers"][0]
    assert sorted(named(rows)) == sorted(
        [
            ("event", "created", event["id"]),
            ("customer", "created", customer["id"]),
            ("booking", "confirm", booking["id"]),
            ("event", "updated", event["id"]),
            ("booking", "cancel", booking["id"]),
        ]
    )
    shown = {row["type"]: row["object"] for row in rows}
    assert shown["booking"] == whole
    assert shown["event"] == tenant.get(f"/events/{event['id']}").data
    assert shown["customer"] == {**customer, "booking_id": booking["id"]}
    (made,) = [row for row in rows if row["action"] == "confirm"]
    assert (made["source"], made["actor"][:10]) == ("api", "server key")
    assert [int(row["id"]) for row in rows] == sorted(int(row["id"]) for row in rows)


def test_deletion_and_erasure_are_listed(tenant: Tenant, resource: Any) -> None:
    kept, gone = book(tenant, resource, 2), book(tenant, resource, 3)
    event = tenant.get(f"/bookings/{gone['id']}").data["event"]
    customer = tenant.get(f"/bookings/{kept['id']}").data["customers"][0]
    tenant.put(f"/bookings/{gone['id']}/cancel")
    before = start_of(tenant)
    assert tenant.delete(f"/bookings/{gone['id']}").status == 204
    erase_person(app=tenant.app, email=MARTY["email"], now=timezone.now())

    rows = follow(tenant, before, "&types=booking,event,customer")

    assert named(rows)[:2] == [
        ("booking", "deleted", gone["id"]),
        ("event", "deleted", event["id"]),
    ]
    assert ("booking", "erased", kept["id"]) in named(rows)
    assert ("customer", "updated", customer["id"]) in named(rows)
    assert [row["object"] for row in rows[:2]] == [None, None]
    (emptied,) = [row["object"] for row in rows if row["object_id"] == kept["id"]]
    assert emptied["customers"][0]["email"] == ""


def test_ends_of_deliveries_are_listed(tenant: Tenant, resource: Any) -> None:
    webhook = tenant.post("/webhooks", {"url": "https://example.com/hook", "active": False}).data
    before = start_of(tenant)
    tenant.post(f"/webhooks/{webhook['id']}/test")
    tenant.delete(f"/webhooks/{webhook['id']}")

    rows = follow(tenant, before, "&types=delivery")

    (delivery,) = tenant.get("/deliveries").data
    assert named(rows) == [("delivery", "skipped", delivery["id"])]
    assert rows[0]["object"] == delivery


def test_other_apps_are_not_listed(
    tenant: Tenant, make_tenant: Callable[..., Tenant], resource: Any
) -> None:
    stranger = make_tenant()
    before = start_of(stranger)
    book(tenant, resource)

    assert follow(stranger, before) == []


# --- Cursors --------------------------------------------------------------------------------------
def test_without_cursor_the_feed_begins_now(tenant: Tenant, resource: Any) -> None:
    answer = tenant.get("/changes").json

    assert (answer["data"], answer["has_more"]) == ([], False)
    assert follow(tenant, answer["next_cursor"]) == []


def test_parts_have_the_same_order_as_the_whole(
    tenant: Tenant, resource: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = start_of(tenant)
    for day in range(2, 6):
        book(tenant, resource, day)
    whole = follow(tenant, before)

    pieces = follow(tenant, before, "&limit=1")
    monkeypatch.setattr(changes, "SCANNED", 2)
    scanned = follow(tenant, before)
    customers = follow(tenant, before, "&types=customer")

    assert pieces == scanned == whole
    assert customers == [row for row in whole if row["type"] == "customer"]
    assert len(customers) == 4


def test_unchanged_poll_is_not_modified(tenant: Tenant, resource: Any) -> None:
    cursor = start_of(tenant)
    first = tenant.get(f"/changes?cursor={cursor}")
    with Queries(connection) as queries:
        again = tenant.get(f"/changes?cursor={cursor}", **{"If-None-Match": first.headers["ETag"]})
    book(tenant, resource)
    later = tenant.get(f"/changes?cursor={cursor}", **{"If-None-Match": first.headers["ETag"]})

    assert (again.status, again.headers["ETag"]) == (304, first.headers["ETag"])
    assert len(queries) <= 4
    assert (later.status, len(later.data)) == (200, len(follow(tenant, cursor)))


@pytest.mark.parametrize("cursor", ["x", "-1-", "1" * 30, "", "1.5-a"])
def test_malformed_cursor_is_refused(tenant: Tenant, cursor: str) -> None:
    answer = tenant.get(f"/changes?cursor={cursor}")

    assert (answer.status, list(answer.json["errors"])) == (422, ["cursor"])


def test_unknown_type_is_refused(tenant: Tenant) -> None:
    answer = tenant.get("/changes?types=booking,person")

    assert (answer.status, list(answer.json["errors"])) == (422, ["types"])


@pytest.mark.parametrize("tail", ["%0A", "+", "0", "-1"])
def test_text_that_is_no_cursor_has_not_expired(tenant: Tenant, resource: Any, tail: str) -> None:
    """A line break of a file, say: to read everything anew would not help."""
    begin = start_of(tenant)

    answer = tenant.get(f"/changes?cursor={begin}{tail}")

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"cursor": ["Is no cursor of this list."]},
    )


def test_cursor_expires_with_the_changes_after_it(tenant: Tenant, resource: Any) -> None:
    begin, before = str(Position(0, "")), start_of(tenant)
    book(tenant, resource)
    read = follow(tenant, begin)
    present = start_of(tenant)
    old = timezone.now() - timedelta(days=31)
    first = Change.objects.filter(app=tenant.app, number__isnull=False).order_by("number").first()
    assert first is not None
    Change.objects.filter(app=tenant.app).update(at=old)
    kept = Change.objects.filter(app=tenant.app).order_by("-number").first()
    assert kept is not None
    Change.objects.filter(pk=kept.pk).update(at=timezone.now())

    deleted = list(purge_changes(now=timezone.now()))

    assert sum(deleted) == len(read) - 1
    assert tenant.get(f"/changes?cursor={begin}").json["code"] == "cursor_expired"
    assert tenant.get(f"/changes?cursor={before}").status == 410
    Change.objects.filter(app=tenant.app).delete()
    assert follow(tenant, f"{present.partition('-')[0]}-") == []


def test_cursor_of_a_lost_history_expires(tenant: Tenant, resource: Any) -> None:
    """A standby that was promoted, or a restored backup, gives numbers to other changes."""
    book(tenant, resource)
    lost = start_of(tenant)
    number = int(lost.partition("-")[0])
    ahead = f"{number + 5}-0123456789abcdef"
    Change.objects.filter(app=tenant.app, number=number).update(at=timezone.now())

    assert tenant.get(f"/changes?cursor={lost}").status == 410
    assert tenant.get(f"/changes?cursor={ahead}").status == 410


def test_number_of_queries_does_not_grow_with_rows(tenant: Tenant, resource: Any) -> None:
    first = start_of(tenant)
    book(tenant, resource, 2)
    follow(tenant, first)
    with Queries(connection) as one:
        tenant.get(f"/changes?cursor={first}")
    second = start_of(tenant)
    for day in range(3, 6):
        book(tenant, resource, day)
    follow(tenant, second)
    with Queries(connection) as three:
        tenant.get(f"/changes?cursor={second}")

    assert len(one) == len(three)


# --- Nothing is skipped ---------------------------------------------------------------------------
@pytest.fixture
def late_writer(tenant: Tenant, resource: Any) -> Iterator[tuple[threading.Event, threading.Event]]:
    """A transaction that has written a change and commits when the second event is set."""
    has_written, may_commit = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            # No request: others with its key would wait for the note of the key's last use.
            change_resource(Resource.objects.get(id=resource["id"]), {"first_name": "Ada"})
            has_written.set()
            may_commit.wait(20)
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    has_written.wait(20)
    yield has_written, may_commit
    may_commit.set()
    thread.join()


@pytest.mark.postgresql
def test_changes_wait_for_a_transaction_that_commits_late(
    tenant: Tenant, resource: Any, late_writer: Any, request: pytest.FixtureRequest
) -> None:
    before = start_of(tenant)
    tenant.post("/schedules", {"name": "Hours"})
    naive = Change.objects.filter(app=tenant.app).order_by("-id").first()

    held = follow(tenant, before)
    late_writer[1].set()
    deadline = time.monotonic() + 20
    while len(rows := follow(tenant, before, "&types=resource,schedule")) < 2:
        assert time.monotonic() < deadline

    assert held == []
    assert [row["type"] for row in rows][-2:] == ["resource", "schedule"]
    # The control: whoever follows the ids has read a later one before.
    late = Change.objects.filter(app=tenant.app, type="resource").order_by("-id").first()
    assert late is not None
    assert naive is not None
    assert late.id < naive.id


WRITER = """
import random, sys, time, psycopg
url, app, resource, seed, most = sys.argv[1:]
chance = random.Random(seed)
make = (
    "INSERT INTO availability_calendar (id, app_id, resource_id, name, description,"
    " backgroundcolor, foregroundcolor, provider, created_at, updated_at)"
    " SELECT gen_random_uuid(), %s, %s, 'A', '0', '', '', 'service', now(), now()"
    " FROM generate_series(1, %s) RETURNING id"
)
# The description is the number of its updates.
update = (
    "UPDATE availability_calendar SET description = (description::int + 1)::text"
    " WHERE id = ANY(%s)"
)
kept = []
with psycopg.connect(url, autocommit=True) as database:
    while True:
        own = list(kept)
        try:
            with database.transaction():
                for _ in range(chance.randint(1, 3)):
                    rows = database.execute(make, [app, resource, chance.randint(1, int(most))])
                    own += [row[0] for row in rows]
                    time.sleep(chance.choice([0, 0, 0.002, 0.02, 0.3]))
                chance.shuffle(own)
                part = len(own) // 4
                database.execute(update, [own[:part]])
                gone, own = own[part : 2 * part], own[:part] + own[2 * part :]
                database.execute("DELETE FROM availability_calendar WHERE id = ANY(%s)", [gone])
                if chance.random() < 0.2:
                    raise psycopg.Rollback
        except psycopg.Rollback:
            continue
        kept = own[-200:]
"""


def read_all(app: Any, position: Position) -> tuple[list[Change], Position]:
    found: list[Change] = []
    while True:
        part = read_changes(app, position, types=["calendar"], limit=1000)
        found, position = found + part.changes, part.end
        if not part.has_more:
            return found, position


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("writers", "most", "changes", "seconds"),
    [(6, 1, 60, 3), pytest.param(20, 40, 100_000, 60, marks=pytest.mark.deep)],
)
def test_killed_and_slow_writers_lose_and_double_nothing(
    tenant: Tenant, resource: Any, writers: int, most: int, changes: int, seconds: int
) -> None:
    """The reader asks every 10 ms while writers commit late, roll back, and are killed; until it
    has read so many changes.
    """
    settings = connection.get_connection_params()
    url = psycopg.conninfo.make_conninfo(
        **{
            name: settings[name]
            for name in ("host", "port", "dbname", "user", "password")
            if name in settings
        }
    )
    chance = random.Random(7)
    start = lambda: subprocess.Popen(  # noqa: E731
        [
            *(sys.executable, "-c", WRITER, url, str(tenant.app.id), resource["id"]),
            *(str(chance.random()), str(most)),
        ]
    )
    position = Position.read(start_of(tenant))
    first = position
    read: list[Change] = []
    naive: set[int] = set()
    naive_id = Change.objects.order_by("-id").values_list("id", flat=True).first() or 0
    processes = [start() for _ in range(writers)]
    ends = time.monotonic() + seconds
    last_kill = 0  # changes that were read before it
    try:
        # A busy machine takes seconds to start the writers: not all are killed before they write.
        while time.monotonic() < ends or len(read) <= changes:
            assert time.monotonic() < ends + 600
            part = read_changes(tenant.app, position, types=["calendar"], limit=1000)
            read, position = read + part.changes, part.end
            rows = Change.objects.filter(app=tenant.app, id__gt=naive_id).order_by("id")
            for row_id in rows.values_list("id", flat=True):
                naive.add(row_id)
                naive_id = row_id
            if len(read) - last_kill > writers * most and chance.random() < 0.05:
                last_kill = len(read)
                victim = chance.randrange(writers)
                processes[victim].kill()
                processes[victim].wait()
                processes[victim] = start()
            time.sleep(0.01)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    deadline = time.monotonic() + 60
    while Change.objects.filter(app=tenant.app, number=None).exists():
        assert time.monotonic() < deadline
        number_all_changes()
    rest, _ = read_all(tenant.app, position)
    read += rest
    again, _ = read_all(tenant.app, first)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, description::int FROM availability_calendar"
            " WHERE name = 'A' AND app_id = %s",
            [tenant.app.id],
        )
        stored = dict(cursor.fetchall())

    actions: dict[uuid.UUID, list[str]] = {}
    for change in read:
        actions.setdefault(change.object_id, []).append(change.action)
    present = {row: each for row, each in actions.items() if each[-1] != "deleted"}
    assert {row: each[1:].count("updated") for row, each in present.items()} == stored
    for each in actions.values():
        ended = each[-1:] if each[-1] == "deleted" else []
        assert each == ["created", *["updated"] * (len(each) - 1 - len(ended)), *ended]
    assert len(present) < len(actions)
    assert [row.id for row in again] == [row.id for row in read]
    assert len({row.id for row in read}) == len(read) > changes
    # The control: a reader that follows the ids skips those that commit late.
    assert {row.id for row in read} - naive


# --- Clusters -------------------------------------------------------------------------------------
@pytest.mark.postgresql
def test_restored_changes_count_as_committed(tenant: Tenant, resource: Any) -> None:
    """Their transactions are those of another cluster, which may be ahead of this one."""
    before = start_of(tenant)
    tenant.post("/schedules", {"name": "Hours"})
    Change.objects.filter(app=tenant.app, number=None).update(transaction=2**62)

    rows = follow(tenant, before)

    assert [row["type"] for row in rows] == ["schedule"]


@pytest.mark.postgresql
def test_restore_numbers_all_changes(tenant: Tenant, resource: Any, late_writer: Any) -> None:
    before = start_of(tenant)
    tenant.post("/schedules", {"name": "Hours"})
    assert follow(tenant, before) == []

    with connection.cursor() as cursor:
        cursor.execute("SELECT number_restored_changes()")

    assert [row["type"] for row in follow(tenant, before)] == ["schedule"]
    feed = ChangeFeed.objects.get(app=tenant.app)
    assert feed.last_number == Change.objects.filter(app=tenant.app).exclude(number=None).count()


@pytest.mark.postgresql
def test_transaction_in_another_database_delays_nothing(tenant: Tenant, resource: Any) -> None:
    before = start_of(tenant)
    settings = connection.get_connection_params()
    names = ("host", "port", "user", "password")
    own = {name: settings[name] for name in names if name in settings}
    with psycopg.connect(dbname="postgres", **own) as other:
        other.execute("SELECT pg_current_xact_id()")
        tenant.post("/schedules", {"name": "Hours"})
        rows = follow(tenant, before)

    assert [row["type"] for row in rows] == ["schedule"]
