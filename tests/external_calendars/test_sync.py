"""A calendar elsewhere and its events here: every pass, every way in which one can end early."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection as database
from django.utils import timezone

from availability.models import Calendar, Event
from external_calendars.models import Connection, ExternalObject, WrittenEvent
from external_calendars.providers.base import FINAL_ERRORS, PROVIDER_ERRORS, ProviderError
from external_calendars.sync import run, store
from external_calendars.sync.advance_window import delete_old_events, expand_further
from external_calendars.sync.leases import LEASE, claim_connections
from tests.external_calendars.icalendars import calendar, one
from tests.external_calendars.memory import (
    Memory,
    connect,
    events_of,
    frozen_clock,
    look,
    memory,
    spans_of,
)
from tests.queries import Queries
from tests.world import NOW, Tenant, at

__all__ = ["frozen_clock", "memory"]

pytestmark = [pytest.mark.usefixtures("frozen_clock"), pytest.mark.both_databases]


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource(email="ada@example.com")


@pytest.fixture
def connection(ada: Any, memory: Memory) -> Connection:
    """Ada's calendar elsewhere, never looked at."""
    return connect(ada["id"])


def meeting(name: str, day: int = 23, hour: int = 9, **given: Any) -> str:
    """An hour of November 2026, in UTC."""
    when = f"202611{day:02}T{hour:02}0000Z"
    return one(f"DTSTART:{when}", "DURATION:PT1H", f"SUMMARY:{name}", **{"uid": name, **given})


def weekly(name: str, *lines: str) -> str:
    return one(
        "DTSTART:20261123T090000Z",
        "DURATION:PT1H",
        "RRULE:FREQ=WEEKLY",
        f"SUMMARY:{name}",
        *lines,
        uid=name,
    )


def test_first_sync(connection: Connection, memory: Memory, ada: Any) -> None:
    memory.put("/a", meeting("Lunch", uid="uid-a"))
    memory.put("/b", one("DTSTART;VALUE=DATE:20261225", "TRANSP:TRANSPARENT", uid="uid-b"))
    memory.put("/c", calendar("BEGIN:VTODO\r\nUID:todo\r\nEND:VTODO"))

    assert look(connection) == run.SYNCED

    assert memory.asked() == ["look", "fetch 3"]
    rows = Event.objects.filter(calendar=connection.pk).order_by("start")
    fields = ["resource_id", "provider_id", "start", "end", "all_day", "start_date", "end_date"]
    assert list(rows.values_list(*fields, "what", "busy", "exclusive")) == [
        (
            uuid.UUID(ada["id"]),
            "uid-a",
            at("2026-11-23 09:00"),
            at("2026-11-23 10:00"),
            False,
            None,
            None,
            "Lunch",
            True,
            False,
        ),
        (
            uuid.UUID(ada["id"]),
            "uid-b",
            at("2026-12-25 00:00"),
            at("2026-12-26 00:00"),
            True,
            at("2026-12-25").date(),
            at("2026-12-26").date(),
            "Busy",
            False,
            False,
        ),
    ]
    assert sorted(connection.remote_objects.values_list("href", "etag", "text")) == [
        ("/a", '"1"', ""),
        ("/b", '"2"', ""),
        ("/c", '"3"', ""),
    ]
    assert (connection.mark, connection.done, connection.total, connection.unread) == (
        {"seen": 3},
        3,
        3,
        0,
    )
    assert (connection.problem, connection.failures, connection.lease_token) == ("", 0, None)
    assert connection.checked_at == NOW
    assert timedelta(seconds=270) <= connection.next_at - NOW <= timedelta(seconds=330)
    assert Calendar.objects.get(id=connection.pk).synced_at == NOW


def test_sync_without_changes_takes_one_request(connection: Connection, memory: Memory) -> None:
    for number in range(3):
        memory.put(f"/{number}", weekly(f"w{number}"))
    look(connection)
    memory.asked()
    before = [list(Event.objects.values()), list(ExternalObject.objects.values())]

    with Queries(database) as queries:
        assert look(connection) == run.SYNCED

    assert memory.asked() == ["look"]
    assert [list(Event.objects.values()), list(ExternalObject.objects.values())] == before
    assert not [q for q in queries if "remote_objects" in q["sql"] and "UPDATE" in q["sql"]]


def test_sync_of_changed_added_and_removed_objects(
    connection: Connection, memory: Memory, frozen_clock: Any
) -> None:
    memory.put("/kept", meeting("Kept"))
    memory.put("/moved", meeting("Moved", hour=11))
    memory.put("/gone", meeting("Gone", hour=13))
    look(connection)
    kept, moved, _ = events_of(connection)
    memory.asked()
    frozen_clock.shift(600)

    memory.put("/moved", meeting("Moved", hour=15))
    memory.remove("/gone")
    memory.put("/new", meeting("New", hour=17))
    assert look(connection) == run.SYNCED

    assert memory.asked() == ["look", "fetch 2"]
    assert spans_of(connection) == [
        "Kept 11-23 09:00/10:00",
        "Moved 11-23 15:00/16:00",
        "New 11-23 17:00/18:00",
    ]
    ids = [(row.id, row.updated_at == NOW) for row in events_of(connection)]
    assert ids[:2] == [(kept.id, True), (moved.id, False)]
    assert sorted(connection.remote_objects.values_list("href", flat=True)) == [
        "/kept",
        "/moved",
        "/new",
    ]


def test_full_sync_removes_unlisted_objects(connection: Connection, memory: Memory) -> None:
    memory.put("/a", meeting("A"))
    memory.put("/b", meeting("B"))
    look(connection)
    memory.remove("/a")
    Connection.objects.update(mark={})
    memory.asked()

    assert look(connection) == run.SYNCED

    assert memory.asked() == ["look"]
    assert spans_of(connection) == ["B 11-23 09:00/10:00"]


def test_object_moved_to_another_path_keeps_its_events(
    connection: Connection, memory: Memory
) -> None:
    memory.put("/old", weekly("W"))
    look(connection)
    before = [row.id for row in events_of(connection)]
    memory.put("/new", weekly("W"))
    memory.remove("/old")

    look(connection)

    assert [row.id for row in events_of(connection)] == before
    assert len(before) > 50


def test_object_with_a_new_uid(connection: Connection, memory: Memory) -> None:
    memory.put("/a", meeting("First"))
    look(connection)
    memory.put("/a", meeting("Second"))

    look(connection)

    assert [(row.what, row.provider_id) for row in events_of(connection)] == [("Second", "Second")]


def test_change_of_one_occurrence(connection: Connection, memory: Memory) -> None:
    memory.put("/a", weekly("W"))
    look(connection)
    before = {row.start: row.id for row in events_of(connection)}
    memory.put("/a", weekly("W", "EXDATE:20261130T090000Z"))

    look(connection)

    after = {row.start: row.id for row in events_of(connection)}
    assert after == {
        start: row_id for start, row_id in before.items() if start != at("2026-11-30 09:00")
    }


def test_unreadable_object_does_not_stop_others(connection: Connection, memory: Memory) -> None:
    memory.put("/good", meeting("Good"))
    memory.put("/bad", one("DTSTART:20261123T090000Z", "RRULE:FREQ=SECONDLY"))
    memory.put("/worse", "")

    assert look(connection) == run.SYNCED

    assert spans_of(connection) == ["Good 11-23 09:00/10:00"]
    assert connection.unread == 2
    assert dict(connection.remote_objects.exclude(problem="").values_list("href", "problem")) == {
        "/bad": "Its times can't be read (RecurrenceRuleError: FREQ can't be SECONDLY.).",
        "/worse": "The text is not a calendar.",
    }


def test_unreadable_since(
    connection: Connection, memory: Memory, frozen_clock: Any, ada: Any
) -> None:
    """Since it was first found so; once it is read, it may begin anew."""

    def found() -> dict[str, Any]:
        return dict(connection.remote_objects.values_list("href", "problem_since"))

    memory.put("/a", "garbage")
    memory.put("/b", meeting("B"))
    look(connection)
    first = found()
    frozen_clock.shift(600)
    memory.put("/a", "other garbage")
    memory.put("/b", "garbage")
    look(connection)
    second = found()
    memory.put("/a", meeting("A"))
    look(connection)
    third = found()
    frozen_clock.shift(600)
    memory.put("/a", "garbage")
    look(connection)

    ten, twenty = NOW + timedelta(minutes=10), NOW + timedelta(minutes=20)
    assert first == {"/a": NOW, "/b": None}
    assert second == {"/a": NOW, "/b": ten}
    assert third == {"/a": None, "/b": ten}
    assert found() == {"/a": twenty, "/b": ten}


def test_object_that_becomes_unreadable_keeps_its_event(
    connection: Connection, memory: Memory
) -> None:
    memory.put("/a", meeting("Known"))
    look(connection)
    memory.put("/a", "garbage")
    look(connection)
    assert (spans_of(connection), connection.unread) == (["Known 11-23 09:00/10:00"], 1)

    memory.put("/a", meeting("Known", hour=12))
    look(connection)

    assert (spans_of(connection), connection.unread) == (["Known 11-23 12:00/13:00"], 0)


def test_mirrored_events_are_not_imported(
    connection: Connection, memory: Memory, tenant: Tenant, ada: Any
) -> None:
    booking = tenant.book(
        resource_id=ada["id"],
        calendar_id=str(connection.pk),
        graph="instant",
        start="2026-11-23T09:00:00Z",
        end="2026-11-23T10:00:00Z",
    ).data
    own = Event.objects.get(bookings=booking["id"])
    uid = WrittenEvent.objects.get(event=own, calendar=connection.pk).uid
    text = meeting("Meeting", uid=uid)
    memory.put("/ours", text)
    memory.put("/theirs", meeting("Theirs", hour=14))

    look(connection)

    assert spans_of(connection) == ["Meeting 11-23 09:00/10:00", "Theirs 11-23 14:00/15:00"]
    assert events_of(connection)[0] == own
    assert connection.remote_objects.get(uid=uid).text == text


def test_inbound_changes_are_applied_after_a_full_sync(
    connection: Connection, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = []

    def follow(connection: Connection, *, now: Any) -> None:
        followed.append((connection.pk, now, Calendar.objects.get(id=connection.pk).synced_at))
        raise RuntimeError("no")

    monkeypatch.setattr(run, "apply_inbound_changes", follow)
    memory.put("/a", meeting("A"))

    assert look(connection) == run.SYNCED

    assert followed == [(connection.pk, NOW, NOW)]
    assert connection.lease_token is None


# --- Time that passes -----------------------------------------------------------------------------
def test_single_events_are_stored_at_any_date(connection: Connection, memory: Memory) -> None:
    far = one("DTSTART:20500101T090000Z", "DURATION:PT1H", "SUMMARY:Far", uid="far")
    past = one("DTSTART:20260901T090000Z", "DURATION:PT1H", "SUMMARY:Past", uid="past")
    memory.put("/far", far)
    memory.put("/past", past)

    look(connection)

    assert spans_of(connection) == ["Far 01-01 09:00/10:00"]


def test_recurring_events_are_expanded_without_a_request(
    connection: Connection, memory: Memory, frozen_clock: Any
) -> None:
    memory.put("/w", weekly("W"))
    memory.put("/single", meeting("S", day=20))
    look(connection)
    memory.asked()
    first, last = events_of(connection)[1], events_of(connection)[-1]
    assert last.start == at("2027-12-20 09:00")
    frozen_clock.shift(40 * 86_400)
    now = timezone.now()

    assert list(expand_further(now)) == [1]
    assert list(expand_further(now)) == []
    assert list(delete_old_events(now)) == [1]

    assert memory.asked() == []
    rows = events_of(connection)
    assert (rows[0].start, rows[-1].start) == (at("2026-11-30 09:00"), at("2028-01-31 09:00"))
    assert last.id in {row.id for row in rows}
    assert first.id not in {row.id for row in rows}


def test_zone_change_of_the_resource(
    connection: Connection, memory: Memory, tenant: Tenant
) -> None:
    memory.put("/day", one("DTSTART;VALUE=DATE:20261123", uid="day"))
    look(connection)
    assert [row.start for row in events_of(connection)] == [at("2026-11-23 00:00")]

    tenant.put(f"/resources/{connection.calendar.resource_id}", {"timezone": "Asia/Tokyo"})
    look(connection)

    assert [row.start for row in events_of(connection)] == [at("2026-11-22 15:00")]


# --- Passes that end early ------------------------------------------------------------------------
def fill(memory: Memory, count: int) -> None:
    for number in range(count):
        memory.put(f"/{number}", meeting(f"m{number}", day=1 + number % 28, hour=number % 24))


def test_worker_killed_between_batches(
    connection: Connection, memory: Memory, frozen_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(memory, 50)
    memory.batch = 10
    (claimed,) = claim_connections(1)

    class Killed(BaseException):
        pass

    def die() -> None:
        if len(memory.calls) == 3:
            raise Killed

    memory.before_batch = die
    with pytest.raises(Killed):
        run.sync_calendar(claimed)
    memory.before_batch = lambda: None

    connection.refresh_from_db()
    assert (connection.done, connection.total, connection.mark) == (20, 50, {})
    assert Calendar.objects.get(id=connection.pk).synced_at is None
    assert len(events_of(connection)) == 20
    assert claim_connections(1) == []

    frozen_clock.shift(LEASE.total_seconds())
    memory.asked()
    (again,) = claim_connections(1)
    assert run.sync_calendar(again) == run.SYNCED
    assert memory.asked() == ["look", "fetch 10", "fetch 10", "fetch 10"]
    assert len(events_of(connection)) == 50


def test_stopping_worker_ends_after_a_batch(connection: Connection, memory: Memory) -> None:
    fill(memory, 30)
    memory.batch = 10
    told: list[tuple[int, int]] = []

    assert (
        look(connection, stopping=lambda: True, report_progress=lambda *far: told.append(far))
        == run.UNFINISHED
    )
    assert (told, connection.lease_token, connection.next_at) == ([(10, 30)], None, NOW)
    memory.asked()

    assert look(connection, report_progress=lambda *far: told.append(far)) == run.SYNCED
    assert memory.asked() == ["look", "fetch 10", "fetch 10"]
    assert told == [(10, 30), (10, 20), (20, 20)]


def test_claimed_calendar_is_not_claimed_again(connection: Connection, memory: Memory) -> None:
    assert [row.pk for row in claim_connections(5)] == [connection.pk]
    assert claim_connections(5) == []
    assert claim_connections(5, calendar_id=connection.pk) == []


def test_worker_with_a_lost_lease_writes_nothing(
    connection: Connection, memory: Memory, frozen_clock: Any
) -> None:
    fill(memory, 20)
    memory.batch = 10
    (slow,) = claim_connections(1)
    frozen_clock.shift(LEASE.total_seconds())
    (quick,) = claim_connections(1)

    assert run.sync_calendar(slow) == run.LEASE_LOST
    connection.refresh_from_db()
    assert (connection.lease_token, events_of(connection)) == (quick.lease_token, [])

    assert run.sync_calendar(quick) == run.SYNCED
    assert len(events_of(connection)) == 20


def test_calendar_disconnected_during_the_sync(
    connection: Connection, memory: Memory, tenant: Tenant
) -> None:
    fill(memory, 30)
    memory.batch = 10

    def let_go() -> None:
        if len(memory.calls) == 2:
            assert tenant.post(f"/calendars/{connection.pk}/disconnect").status == 200

    memory.before_batch = let_go

    assert look(connection) == run.LEASE_LOST

    assert not Connection.objects.exists()
    assert not ExternalObject.objects.exists()
    assert not Event.objects.exists()


def test_resource_deleted_during_the_sync(
    connection: Connection, memory: Memory, tenant: Tenant
) -> None:
    fill(memory, 30)
    memory.batch = 10

    def delete() -> None:
        if len(memory.calls) == 2:
            assert tenant.delete(f"/resources/{connection.calendar.resource_id}").status == 204

    memory.before_batch = delete

    assert look(connection) == run.LEASE_LOST
    assert claim_connections(5) == []


# --- Trouble --------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", PROVIDER_ERRORS)
def test_provider_error_is_stored_and_retried(
    code: str, connection: Connection, memory: Memory
) -> None:
    memory.put("/a", meeting("A"))
    look(connection)
    memory.trouble = ProviderError(code)

    assert look(connection) == run.FAILED

    assert (connection.problem, connection.problem_since, connection.failures) == (code, NOW, 1)
    soon = NOW + timedelta(minutes=1)
    assert (connection.next_at, connection.lease_token, connection.mark) == (
        soon,
        None,
        {"seen": 1},
    )
    assert spans_of(connection) == ["A 11-23 09:00/10:00"]
    assert Calendar.objects.get(id=connection.pk).synced_at == NOW


def test_pauses_grow_until_a_success(
    connection: Connection, memory: Memory, frozen_clock: Any
) -> None:
    memory.trouble = ProviderError("unreachable")
    pauses = []
    for _ in range(5):
        look(connection)
        pauses.append((connection.next_at - timezone.now()) // timedelta(minutes=1))
        frozen_clock.shift(60)
    assert pauses == [1, 5, 15, 60, 60]
    assert (connection.problem_since, connection.failures) == (NOW, 5)

    memory.trouble = None
    look(connection)

    assert (connection.problem, connection.problem_since, connection.failures) == ("", None, 0)


@pytest.mark.parametrize("code", sorted(FINAL_ERRORS))
def test_permanent_error_stops_the_sync(
    code: str, connection: Connection, memory: Memory, frozen_clock: Any
) -> None:
    """It may be over by itself within the hour; then nobody looks until somebody has mended it."""
    memory.trouble = ProviderError("server_error")
    for _ in range(5):
        look(connection)
    memory.trouble = ProviderError(code)
    look(connection)
    assert (connection.problem, connection.is_stopped) == (
        code,
        False,
    )  # met once: it may be a moment's

    look(connection)

    assert (connection.problem, connection.is_stopped) == (code, True)
    Connection.objects.update(problem="", failures=0, next_at=NOW)
    pauses = []
    connection.refresh_from_db()
    while not connection.is_stopped:
        look(connection)
        if connection.next_at is not None:
            pauses.append((connection.next_at - timezone.now()) // timedelta(minutes=1))
            frozen_clock.move_to(connection.next_at)
    assert pauses == [1, 5, 15, 60]
    assert claim_connections(1) == []


@pytest.mark.parametrize(("asked", "pause"), [(7, 60), (900, 900), (10**9, 86_400)])
def test_retry_after_of_the_server(
    asked: int, pause: int, connection: Connection, memory: Memory
) -> None:
    memory.trouble = ProviderError("rate_limited", status=429, retry_after=asked)

    look(connection)

    assert connection.next_at == NOW + timedelta(seconds=pause)


def test_error_between_batches_keeps_finished_batches(
    connection: Connection, memory: Memory
) -> None:
    fill(memory, 30)
    memory.batch = 10

    def fail() -> None:
        if len(memory.calls) == 2:
            memory.trouble = ProviderError("server_error")

    memory.before_batch = fail
    assert look(connection) == run.FAILED
    assert (len(events_of(connection)), connection.mark) == (10, {})
    memory.trouble, memory.before_batch = None, lambda: None
    memory.asked()

    assert look(connection) == run.SYNCED

    assert memory.asked() == ["look", "fetch 10", "fetch 10"]


def test_unexpected_error_is_logged_and_retried(
    connection: Connection, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    memory.trouble = ZeroDivisionError("oops")

    assert look(connection) == run.FAILED

    assert (connection.problem, connection.next_at) == ("bad_answer", NOW + timedelta(minutes=1))
    assert "oops" in caplog.text


def test_unreadable_password(connection: Connection, memory: Memory, settings: Any) -> None:
    settings.ENCRYPTION_KEYS = ["another"]

    look(connection)

    assert (connection.problem, connection.failures) == ("secret_unreadable", 1)
    assert memory.asked() == []


# --- Bounds ---------------------------------------------------------------------------------------
# SQLite's statements take 999 parameters: there it is some for each forty rows.
@pytest.mark.postgresql
def test_query_count_of_a_batch_is_constant(ada: Any, memory: Memory) -> None:
    counts = []
    for many in (1, 15):
        connection = connect(ada["id"])
        memory.objects.clear()
        memory.changes.clear()
        for number in range(many):
            memory.put(f"/{number}", weekly(f"{many}-{number}"))
        counts.append([])
        for lines in ((), ("LOCATION:Elsewhere",), ("EXDATE:20261130T090000Z",)):
            for number in range(many):
                memory.put(f"/{number}", weekly(f"{many}-{number}", *lines))
            with Queries(database) as queries:
                assert look(connection) == run.SYNCED
            counts[-1].append(len(queries))
        Connection.objects.all().delete()

    assert counts[0] == counts[1]


def test_a_provider_without_etags_is_read_each_time(connection: Connection, memory: Memory) -> None:
    memory.tells_etags = False
    memory.put("/a", meeting("A"))
    look(connection)
    before = list(Event.objects.values())
    Connection.objects.update(mark={})
    memory.asked()

    look(connection)

    assert memory.asked() == ["look", "fetch 1"]
    assert list(Event.objects.values()) == before


def test_paths_and_etags_beyond_their_columns(connection: Connection, memory: Memory) -> None:
    memory.put("/" + "x" * 1000, meeting("Long"))
    memory.put("/a", meeting("A"))
    memory.objects["/a"] = ("e" * 400, memory.objects["/a"][1])

    assert look(connection) == run.SYNCED
    assert connection.remote_objects.get().etag == "e" * 300
    Connection.objects.update(mark={})
    memory.asked()
    look(connection)

    assert memory.asked() == ["look"]


# --- By hand --------------------------------------------------------------------------------------
def test_sync_calendars_command(connection: Connection, memory: Memory, capsys: Any) -> None:
    fill(memory, 150)
    memory.put("/bad", "garbage")

    call_command("sync_calendars", f"--calendar={connection.pk}")

    assert capsys.readouterr().out.splitlines() == [
        "Elsewhere: 100 of 151",
        "Elsewhere: 151 of 151",
        "Elsewhere: synced, unreadable objects: 1",
    ]

    memory.trouble = ProviderError("unauthorized")
    with pytest.raises(CommandError, match="Failed syncs: 1"):
        call_command("sync_calendars")
    assert capsys.readouterr().out == f"Elsewhere: {PROVIDER_ERRORS['unauthorized']}\n"

    with pytest.raises(CommandError, match="no such connected calendar"):
        call_command("sync_calendars", f"--calendar={uuid.uuid4()}")


def test_calendars_of_archived_apps_are_not_synced(
    connection: Connection, memory: Memory, tenant: Tenant
) -> None:
    tenant.app.archived_at = NOW
    tenant.app.save()

    assert claim_connections(5) == []


def test_sync_window_matches_the_docs() -> None:
    assert store.sync_window(NOW) == (at("2026-10-20 09:30"), at("2027-12-25 09:30"))
