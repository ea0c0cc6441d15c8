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
    look,
    memory,
    spans_of,
    still,
)
from tests.queries import Queries
from tests.world import NOW, Tenant, at

__all__ = ["memory", "still"]

pytestmark = [pytest.mark.usefixtures("still"), pytest.mark.both_databases]


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource(email="ada@example.com")


@pytest.fixture
def there(ada: Any, memory: Memory) -> Connection:
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


def test_the_first_sync(there: Connection, memory: Memory, ada: Any) -> None:
    memory.put("/a", meeting("Lunch", uid="uid-a"))
    memory.put("/b", one("DTSTART;VALUE=DATE:20261225", "TRANSP:TRANSPARENT", uid="uid-b"))
    memory.put("/c", calendar("BEGIN:VTODO\r\nUID:todo\r\nEND:VTODO"))

    assert look(there) == run.SYNCED

    assert memory.asked() == ["look", "fetch 3"]
    rows = Event.objects.filter(calendar=there.pk).order_by("start")
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
    assert sorted(there.remote_objects.values_list("href", "etag", "text")) == [
        ("/a", '"1"', ""),
        ("/b", '"2"', ""),
        ("/c", '"3"', ""),
    ]
    assert (there.mark, there.done, there.total, there.unread) == ({"seen": 3}, 3, 3, 0)
    assert (there.problem, there.failures, there.lease_token) == ("", 0, None)
    assert there.checked_at == NOW
    assert timedelta(seconds=270) <= there.next_at - NOW <= timedelta(seconds=330)
    assert Calendar.objects.get(id=there.pk).synced_at == NOW


def test_nothing_new_is_one_request_and_changes_no_row(there: Connection, memory: Memory) -> None:
    for number in range(3):
        memory.put(f"/{number}", weekly(f"w{number}"))
    look(there)
    memory.asked()
    before = [list(Event.objects.values()), list(ExternalObject.objects.values())]

    with Queries(database) as queries:
        assert look(there) == run.SYNCED

    assert memory.asked() == ["look"]
    assert [list(Event.objects.values()), list(ExternalObject.objects.values())] == before
    assert not [q for q in queries if "remote_objects" in q["sql"] and "UPDATE" in q["sql"]]


def test_changed_added_and_removed(there: Connection, memory: Memory, still: Any) -> None:
    memory.put("/kept", meeting("Kept"))
    memory.put("/moved", meeting("Moved", hour=11))
    memory.put("/gone", meeting("Gone", hour=13))
    look(there)
    kept, moved, _ = events_of(there)
    memory.asked()
    still.shift(600)

    memory.put("/moved", meeting("Moved", hour=15))
    memory.remove("/gone")
    memory.put("/new", meeting("New", hour=17))
    assert look(there) == run.SYNCED

    assert memory.asked() == ["look", "fetch 2"]
    assert spans_of(there) == [
        "Kept 11-23 09:00/10:00",
        "Moved 11-23 15:00/16:00",
        "New 11-23 17:00/18:00",
    ]
    ids = [(row.id, row.updated_at == NOW) for row in events_of(there)]
    assert ids[:2] == [(kept.id, True), (moved.id, False)]
    assert sorted(there.remote_objects.values_list("href", flat=True)) == [
        "/kept",
        "/moved",
        "/new",
    ]


def test_a_whole_look_removes_what_it_does_not_name(there: Connection, memory: Memory) -> None:
    memory.put("/a", meeting("A"))
    memory.put("/b", meeting("B"))
    look(there)
    memory.remove("/a")
    Connection.objects.update(mark={})
    memory.asked()

    assert look(there) == run.SYNCED

    assert memory.asked() == ["look"]
    assert spans_of(there) == ["B 11-23 09:00/10:00"]


def test_an_object_that_moved_to_another_path_keeps_its_events(
    there: Connection, memory: Memory
) -> None:
    memory.put("/old", weekly("W"))
    look(there)
    before = [row.id for row in events_of(there)]
    memory.put("/new", weekly("W"))
    memory.remove("/old")

    look(there)

    assert [row.id for row in events_of(there)] == before
    assert len(before) > 50


def test_an_object_that_becomes_another(there: Connection, memory: Memory) -> None:
    memory.put("/a", meeting("First"))
    look(there)
    memory.put("/a", meeting("Second"))

    look(there)

    assert [(row.what, row.provider_id) for row in events_of(there)] == [("Second", "Second")]


def test_one_occurrence_of_many_changes(there: Connection, memory: Memory) -> None:
    memory.put("/a", weekly("W"))
    look(there)
    before = {row.start: row.id for row in events_of(there)}
    memory.put("/a", weekly("W", "EXDATE:20261130T090000Z"))

    look(there)

    after = {row.start: row.id for row in events_of(there)}
    assert after == {
        start: row_id for start, row_id in before.items() if start != at("2026-11-30 09:00")
    }


def test_one_that_can_not_be_read_stops_no_other(there: Connection, memory: Memory) -> None:
    memory.put("/good", meeting("Good"))
    memory.put("/bad", one("DTSTART:20261123T090000Z", "RRULE:FREQ=SECONDLY"))
    memory.put("/worse", "")

    assert look(there) == run.SYNCED

    assert spans_of(there) == ["Good 11-23 09:00/10:00"]
    assert there.unread == 2
    assert dict(there.remote_objects.exclude(problem="").values_list("href", "problem")) == {
        "/bad": "Its times can't be read (RecurrenceRuleError: FREQ can't be SECONDLY.).",
        "/worse": "The text is not a calendar.",
    }


def test_since_when_one_can_not_be_read(
    there: Connection, memory: Memory, still: Any, ada: Any
) -> None:
    """Since it was first found so; once it is read, it may begin anew."""

    def found() -> dict[str, Any]:
        return dict(there.remote_objects.values_list("href", "problem_since"))

    memory.put("/a", "garbage")
    memory.put("/b", meeting("B"))
    look(there)
    first = found()
    still.shift(600)
    memory.put("/a", "other garbage")
    memory.put("/b", "garbage")
    look(there)
    second = found()
    memory.put("/a", meeting("A"))
    look(there)
    third = found()
    still.shift(600)
    memory.put("/a", "garbage")
    look(there)

    ten, twenty = NOW + timedelta(minutes=10), NOW + timedelta(minutes=20)
    assert first == {"/a": NOW, "/b": None}
    assert second == {"/a": NOW, "/b": ten}
    assert third == {"/a": None, "/b": ten}
    assert found() == {"/a": twenty, "/b": ten}


def test_one_that_can_not_be_read_any_more_keeps_its_time(
    there: Connection, memory: Memory
) -> None:
    memory.put("/a", meeting("Known"))
    look(there)
    memory.put("/a", "garbage")
    look(there)
    assert (spans_of(there), there.unread) == (["Known 11-23 09:00/10:00"], 1)

    memory.put("/a", meeting("Known", hour=12))
    look(there)

    assert (spans_of(there), there.unread) == (["Known 11-23 12:00/13:00"], 0)


def test_what_we_wrote_there_is_not_doubled(
    there: Connection, memory: Memory, tenant: Tenant, ada: Any
) -> None:
    booking = tenant.book(
        resource_id=ada["id"],
        calendar_id=str(there.pk),
        graph="instant",
        start="2026-11-23T09:00:00Z",
        end="2026-11-23T10:00:00Z",
    ).data
    own = Event.objects.get(bookings=booking["id"])
    uid = WrittenEvent.objects.get(event=own, calendar=there.pk).uid
    text = meeting("Meeting", uid=uid)
    memory.put("/ours", text)
    memory.put("/theirs", meeting("Theirs", hour=14))

    look(there)

    assert spans_of(there) == ["Meeting 11-23 09:00/10:00", "Theirs 11-23 14:00/15:00"]
    assert events_of(there)[0] == own
    assert there.remote_objects.get(uid=uid).text == text


def test_edits_are_followed_after_a_whole_pass_and_may_fail(
    there: Connection, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = []

    def follow(connection: Connection, *, now: Any) -> None:
        followed.append((connection.pk, now, Calendar.objects.get(id=there.pk).synced_at))
        raise RuntimeError("no")

    monkeypatch.setattr(run, "apply_inbound_changes", follow)
    memory.put("/a", meeting("A"))

    assert look(there) == run.SYNCED

    assert followed == [(there.pk, NOW, NOW)]
    assert there.lease_token is None


# --- Time that passes -----------------------------------------------------------------------------
def test_what_does_not_repeat_is_kept_however_far_ahead(there: Connection, memory: Memory) -> None:
    far = one("DTSTART:20500101T090000Z", "DURATION:PT1H", "SUMMARY:Far", uid="far")
    past = one("DTSTART:20260901T090000Z", "DURATION:PT1H", "SUMMARY:Past", uid="past")
    memory.put("/far", far)
    memory.put("/past", past)

    look(there)

    assert spans_of(there) == ["Far 01-01 09:00/10:00"]


def test_what_recurs_is_laid_out_further_without_a_call(
    there: Connection, memory: Memory, still: Any
) -> None:
    memory.put("/w", weekly("W"))
    memory.put("/single", meeting("S", day=20))
    look(there)
    memory.asked()
    first, last = events_of(there)[1], events_of(there)[-1]
    assert last.start == at("2027-12-20 09:00")
    still.shift(40 * 86_400)
    now = timezone.now()

    assert list(expand_further(now)) == [1]
    assert list(expand_further(now)) == []
    assert list(delete_old_events(now)) == [1]

    assert memory.asked() == []
    rows = events_of(there)
    assert (rows[0].start, rows[-1].start) == (at("2026-11-30 09:00"), at("2028-01-31 09:00"))
    assert last.id in {row.id for row in rows}
    assert first.id not in {row.id for row in rows}


def test_the_owner_moves_to_another_zone(there: Connection, memory: Memory, tenant: Tenant) -> None:
    memory.put("/day", one("DTSTART;VALUE=DATE:20261123", uid="day"))
    look(there)
    assert [row.start for row in events_of(there)] == [at("2026-11-23 00:00")]

    tenant.put(f"/resources/{there.calendar.resource_id}", {"timezone": "Asia/Tokyo"})
    look(there)

    assert [row.start for row in events_of(there)] == [at("2026-11-22 15:00")]


# --- Passes that end early ------------------------------------------------------------------------
def fill(memory: Memory, count: int) -> None:
    for number in range(count):
        memory.put(f"/{number}", meeting(f"m{number}", day=1 + number % 28, hour=number % 24))


def test_a_worker_that_dies_between_batches(
    there: Connection, memory: Memory, still: Any, monkeypatch: pytest.MonkeyPatch
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

    there.refresh_from_db()
    assert (there.done, there.total, there.mark) == (20, 50, {})
    assert Calendar.objects.get(id=there.pk).synced_at is None
    assert len(events_of(there)) == 20
    assert claim_connections(1) == []

    still.shift(LEASE.total_seconds())
    memory.asked()
    (again,) = claim_connections(1)
    assert run.sync_calendar(again) == run.SYNCED
    assert memory.asked() == ["look", "fetch 10", "fetch 10", "fetch 10"]
    assert len(events_of(there)) == 50


def test_a_worker_that_is_asked_to_stop(there: Connection, memory: Memory) -> None:
    fill(memory, 30)
    memory.batch = 10
    told: list[tuple[int, int]] = []

    assert (
        look(there, stopping=lambda: True, report_progress=lambda *far: told.append(far))
        == run.UNFINISHED
    )
    assert (told, there.lease_token, there.next_at) == ([(10, 30)], None, NOW)
    memory.asked()

    assert look(there, report_progress=lambda *far: told.append(far)) == run.SYNCED
    assert memory.asked() == ["look", "fetch 10", "fetch 10"]
    assert told == [(10, 30), (10, 20), (20, 20)]


def test_a_second_worker_finds_nothing(there: Connection, memory: Memory) -> None:
    assert [row.pk for row in claim_connections(5)] == [there.pk]
    assert claim_connections(5) == []
    assert claim_connections(5, calendar_id=there.pk) == []


def test_one_that_comes_late_writes_nothing(there: Connection, memory: Memory, still: Any) -> None:
    fill(memory, 20)
    memory.batch = 10
    (slow,) = claim_connections(1)
    still.shift(LEASE.total_seconds())
    (quick,) = claim_connections(1)

    assert run.sync_calendar(slow) == run.LEASE_LOST
    there.refresh_from_db()
    assert (there.lease_token, events_of(there)) == (quick.lease_token, [])

    assert run.sync_calendar(quick) == run.SYNCED
    assert len(events_of(there)) == 20


def test_it_is_disconnected_in_the_middle(
    there: Connection, memory: Memory, tenant: Tenant
) -> None:
    fill(memory, 30)
    memory.batch = 10

    def let_go() -> None:
        if len(memory.calls) == 2:
            assert tenant.post(f"/calendars/{there.pk}/disconnect").status == 200

    memory.before_batch = let_go

    assert look(there) == run.LEASE_LOST

    assert not Connection.objects.exists()
    assert not ExternalObject.objects.exists()
    assert not Event.objects.exists()


def test_the_resource_is_deleted_in_the_middle(
    there: Connection, memory: Memory, tenant: Tenant
) -> None:
    fill(memory, 30)
    memory.batch = 10

    def delete() -> None:
        if len(memory.calls) == 2:
            assert tenant.delete(f"/resources/{there.calendar.resource_id}").status == 204

    memory.before_batch = delete

    assert look(there) == run.LEASE_LOST
    assert claim_connections(5) == []


# --- Trouble --------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", PROVIDER_ERRORS)
def test_trouble(code: str, there: Connection, memory: Memory) -> None:
    memory.put("/a", meeting("A"))
    look(there)
    memory.trouble = ProviderError(code)

    assert look(there) == run.FAILED

    assert (there.problem, there.problem_since, there.failures) == (code, NOW, 1)
    soon = NOW + timedelta(minutes=1)
    assert (there.next_at, there.lease_token, there.mark) == (soon, None, {"seen": 1})
    assert spans_of(there) == ["A 11-23 09:00/10:00"]
    assert Calendar.objects.get(id=there.pk).synced_at == NOW


def test_the_pauses_grow_and_end_with_the_trouble(
    there: Connection, memory: Memory, still: Any
) -> None:
    memory.trouble = ProviderError("unreachable")
    pauses = []
    for _ in range(5):
        look(there)
        pauses.append((there.next_at - timezone.now()) // timedelta(minutes=1))
        still.shift(60)
    assert pauses == [1, 5, 15, 60, 60]
    assert (there.problem_since, there.failures) == (NOW, 5)

    memory.trouble = None
    look(there)

    assert (there.problem, there.problem_since, there.failures) == ("", None, 0)


@pytest.mark.parametrize("code", sorted(FINAL_ERRORS))
def test_what_only_a_person_mends(code: str, there: Connection, memory: Memory, still: Any) -> None:
    """It may be over by itself within the hour; then nobody looks until somebody has mended it."""
    memory.trouble = ProviderError("server_error")
    for _ in range(5):
        look(there)
    memory.trouble = ProviderError(code)
    look(there)
    assert (there.problem, there.is_stopped) == (code, False)  # met once: it may be a moment's

    look(there)

    assert (there.problem, there.is_stopped) == (code, True)
    Connection.objects.update(problem="", failures=0, next_at=NOW)
    pauses = []
    there.refresh_from_db()
    while not there.is_stopped:
        look(there)
        if there.next_at is not None:
            pauses.append((there.next_at - timezone.now()) // timedelta(minutes=1))
            still.move_to(there.next_at)
    assert pauses == [1, 5, 15, 60]
    assert claim_connections(1) == []


@pytest.mark.parametrize(("asked", "pause"), [(7, 60), (900, 900), (10**9, 86_400)])
def test_a_server_that_asks_for_time(
    asked: int, pause: int, there: Connection, memory: Memory
) -> None:
    memory.trouble = ProviderError("rate_limited", status=429, retry_after=asked)

    look(there)

    assert there.next_at == NOW + timedelta(seconds=pause)


def test_trouble_in_the_middle_keeps_what_is_in(there: Connection, memory: Memory) -> None:
    fill(memory, 30)
    memory.batch = 10

    def fail() -> None:
        if len(memory.calls) == 2:
            memory.trouble = ProviderError("server_error")

    memory.before_batch = fail
    assert look(there) == run.FAILED
    assert (len(events_of(there)), there.mark) == (10, {})
    memory.trouble, memory.before_batch = None, lambda: None
    memory.asked()

    assert look(there) == run.SYNCED

    assert memory.asked() == ["look", "fetch 10", "fetch 10"]


def test_an_error_that_nobody_foresaw(
    there: Connection, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    memory.trouble = ZeroDivisionError("oops")

    assert look(there) == run.FAILED

    assert (there.problem, there.next_at) == ("bad_answer", NOW + timedelta(minutes=1))
    assert "oops" in caplog.text


def test_a_password_that_can_not_be_read_any_more(
    there: Connection, memory: Memory, settings: Any
) -> None:
    settings.ENCRYPTION_KEYS = ["another"]

    look(there)

    assert (there.problem, there.failures) == ("secret_unreadable", 1)
    assert memory.asked() == []


# --- Bounds ---------------------------------------------------------------------------------------
# SQLite's statements take 999 parameters: there it is some for each forty rows.
@pytest.mark.postgresql
def test_a_batch_takes_as_many_statements_for_one_as_for_many(ada: Any, memory: Memory) -> None:
    counts = []
    for many in (1, 15):
        there = connect(ada["id"])
        memory.objects.clear()
        memory.changes.clear()
        for number in range(many):
            memory.put(f"/{number}", weekly(f"{many}-{number}"))
        counts.append([])
        for lines in ((), ("LOCATION:Elsewhere",), ("EXDATE:20261130T090000Z",)):
            for number in range(many):
                memory.put(f"/{number}", weekly(f"{many}-{number}", *lines))
            with Queries(database) as queries:
                assert look(there) == run.SYNCED
            counts[-1].append(len(queries))
        Connection.objects.all().delete()

    assert counts[0] == counts[1]


def test_a_provider_without_etags_is_read_each_time(there: Connection, memory: Memory) -> None:
    memory.tells_etags = False
    memory.put("/a", meeting("A"))
    look(there)
    before = list(Event.objects.values())
    Connection.objects.update(mark={})
    memory.asked()

    look(there)

    assert memory.asked() == ["look", "fetch 1"]
    assert list(Event.objects.values()) == before


def test_paths_and_etags_beyond_their_columns(there: Connection, memory: Memory) -> None:
    memory.put("/" + "x" * 1000, meeting("Long"))
    memory.put("/a", meeting("A"))
    memory.objects["/a"] = ("e" * 400, memory.objects["/a"][1])

    assert look(there) == run.SYNCED
    assert there.remote_objects.get().etag == "e" * 300
    Connection.objects.update(mark={})
    memory.asked()
    look(there)

    assert memory.asked() == ["look"]


# --- By hand --------------------------------------------------------------------------------------
def test_the_command(there: Connection, memory: Memory, capsys: Any) -> None:
    fill(memory, 150)
    memory.put("/bad", "garbage")

    call_command("sync_calendars", f"--calendar={there.pk}")

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


def test_calendars_of_what_is_gone_are_not_looked_at(
    there: Connection, memory: Memory, tenant: Tenant
) -> None:
    tenant.app.archived_at = NOW
    tenant.app.save()

    assert claim_connections(5) == []


def test_the_window_is_what_the_docs_say() -> None:
    assert store.sync_window(NOW) == (at("2026-10-20 09:30"), at("2027-12-25 09:30"))
