"""What an owner does to our events in his own calendar program, and what becomes of the booking."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from availability.models import Calendar
from availability.search import live_freebusy
from bookings.models import Booking, StateChange
from common.time.instants import format_instant
from external_calendars.models import WrittenEvent
from external_calendars.providers.base import ProviderError
from external_calendars.sync.inbound_changes import EMPTIED, apply_inbound_changes
from notifications.models import Delivery
from tests.bookings.group_world import ANN, make_group, seat_in
from tests.external_calendars.mirrored import (
    Memory,
    change,
    connect,
    copies,
    deliveries,
    look,
    shown,
    write,
)
from tests.external_calendars.test_mirror import (
    _at_home,
    act,
    ada,
    book,
    fail_at,
    memory,
    move,
    path_of,
    span_of,
    times,
    work,
)
from tests.queries import Queries
from tests.world import Tenant, at

__all__ = ["_at_home", "ada", "memory", "work"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def follows(tenant: Tenant) -> None:
    answer = tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"external_edits": "follow"}})
    assert answer.data["settings"]["external_edits"] == "follow"


def sync_and_apply(calendar: Calendar, memory: Memory) -> list[str]:
    """A look, and what comes of it; the requests that were made for it."""
    look(calendar, memory.objects)
    begin = len(memory.calls)
    apply_inbound_changes(calendar.connection, now=timezone.now())
    return memory.calls[begin:]


def written(tenant: Tenant, resource: Any, **given: Any) -> Any:
    booking = book(tenant, resource, **given)
    write()
    return booking


def drag(memory: Memory, booking: Any, given: dict[str, str]) -> None:
    """To another time, as a calendar program does it."""
    start, end = span_of(given)
    memory.set(path_of(booking), change(memory.text(path_of(booking)), dtstart=start, dtend=end))


def when(booking: Any) -> tuple[Any, Any]:
    event = Booking.objects.get(id=booking["id"]).event
    return event.start, event.end


def last_step(booking: Any) -> tuple[str, str, str, str]:
    change = StateChange.objects.filter(booking=booking["id"]).latest("id")
    return change.action, change.to_state, change.actor, change.source


# --- Nothing to do --------------------------------------------------------------------------------
def test_unchanged_event_is_not_fetched(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    written(tenant, ada)

    assert sync_and_apply(work, memory) == []
    assert copies() == [("written", "")]


def test_added_alarm_is_no_change(tenant: Tenant, ada: Any, work: Calendar, memory: Memory) -> None:
    booking = written(tenant, ada)
    text = change(memory.text(path_of(booking)), categories=["Important"])
    etag = memory.set(path_of(booking), text)

    assert sync_and_apply(work, memory) == [f"fetch {path_of(booking)}"]
    assert sync_and_apply(work, memory) == []
    assert copies() == [("written", "")]
    assert WrittenEvent.objects.get().etag == etag


def test_sync_from_before_our_write_is_ignored(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    """The look saw the old event, or none yet: what stands there now decides."""
    before = written(tenant, ada)
    seen = dict(memory.objects)
    move(tenant, before)
    after = written(tenant, ada, **times(5))
    look(work, seen)

    apply_inbound_changes(work.connection, now=timezone.now())

    assert copies() == [("written", ""), ("written", "")]
    assert (when(before), when(after)) == (span_of(times(2)), span_of(times(5)))
    assert StateChange.objects.filter(source="calendar").count() == 0


def test_edit_is_ignored_while_a_write_is_pending(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    booking = written(tenant, ada)
    move(tenant, booking)
    drag(memory, booking, times(3))

    sync_and_apply(work, memory)
    assert when(booking) == span_of(times(2))
    write()
    assert shown(memory.text(path_of(booking)))[1:3] == span_of(times(2))
    sync_and_apply(work, memory)

    assert copies() == [("written", "")]
    assert when(booking) == span_of(times(2))


def test_past_event_is_ignored(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    written(tenant, ada, **times(-3))
    memory.objects.clear()

    assert sync_and_apply(work, memory) == []
    assert copies() == [("written", "")]


def test_unreachable_server_is_retried_at_the_next_sync(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = written(tenant, ada)
    drag(memory, booking, times(3))
    memory.before = fail_at("fetch", ProviderError("unreachable"))
    sync_and_apply(work, memory)
    assert copies() == [("written", "")]

    memory.before = lambda call: None
    sync_and_apply(work, memory)
    assert [state for state, _ in copies()] == ["moved_there"]


# --- The app is told ------------------------------------------------------------------------------
def test_event_moved_at_the_provider(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    """Nothing is written over it until the booking itself changes."""
    booking = written(tenant, ada)
    drag(memory, booking, times(3))
    moved = memory.text(path_of(booking))

    sync_and_apply(work, memory)

    moved_to = format_instant(span_of(times(3))[0])
    reason = f"Moved to {moved_to} in the external calendar. The booking is unchanged."
    assert copies() == [("moved_there", reason)]
    row = WrittenEvent.objects.get()
    assert (row.start, row.end) == span_of(times(3))
    assert when(booking) == span_of(times())
    assert (sync_and_apply(work, memory), write()) == ([], 0)
    assert memory.text(path_of(booking)) == moved

    move(tenant, booking)
    write()
    assert shown(memory.text(path_of(booking)))[1:3] == span_of(times(2))
    assert copies() == [("written", "")]


def test_event_moved_and_moved_back(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = written(tenant, ada)
    drag(memory, booking, times(3))
    sync_and_apply(work, memory)
    drag(memory, booking, times())
    sync_and_apply(work, memory)

    assert copies() == [("written", "")]


def test_event_removed_at_the_provider(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = written(tenant, ada)
    kept = memory.objects.pop(path_of(booking))
    sync_and_apply(work, memory)

    assert copies() == [
        ("removed_there", "Removed in the external calendar. The booking is unchanged.")
    ]
    assert (sync_and_apply(work, memory), write(), memory.objects) == ([], 0, {})
    assert last_step(booking)[1] == "confirmed"

    memory.objects[path_of(booking)] = kept
    sync_and_apply(work, memory)
    assert copies() == [("written", "")]


def test_event_cancelled_at_the_provider(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = written(tenant, ada)
    memory.set(path_of(booking), change(memory.text(path_of(booking)), status="CANCELLED"))
    sync_and_apply(work, memory)

    assert copies() == [
        ("removed_there", "Removed in the external calendar. The booking is unchanged.")
    ]


# --- The booking goes along -----------------------------------------------------------------------
def test_booking_follows_a_moved_event(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    booking = written(tenant, ada)
    drag(memory, booking, times(3, hours=2))
    sync_and_apply(work, memory)

    assert when(booking) == span_of(times(3, hours=2))
    assert last_step(booking) == ("reschedule", "confirmed", "Work", "calendar")
    assert copies() == [("written", "")]
    logs = tenant.get(f"/bookings/{booking['id']}?include=logs").data["logs"]
    assert logs[-1]["source"] == "calendar"
    mails = Delivery.objects.filter(type="email", kind="rescheduled")
    assert sorted(mails.values_list("recipient", flat=True)) == ["customer", "owner"]

    begin = len(memory.calls)
    write()
    assert [call.split()[0] for call in memory.calls[begin:]] == ["read"]
    sync_and_apply(work, memory)
    assert StateChange.objects.filter(source="calendar").count() == 1
    assert deliveries()[-1] == ("rescheduled", "delivered", "")


def test_live_check_of_a_followed_move_is_outside_the_transaction(
    tenant: Tenant,
    ada: Any,
    work: Calendar,
    memory: Memory,
    follows: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With check_external: no lock, on SQLite not the whole database, waits for another server."""
    project = tenant.make_project(
        ada["id"], availability={"length": None}, settings={"check_external": True}
    )
    booking = written(tenant, ada, project_id=project["id"])
    drag(memory, booking, times(3, hours=2))
    in_transaction = []

    def ask(*args: Any, **kwargs: Any) -> dict[Any, Any]:
        in_transaction.append(connection.in_atomic_block)
        return {}

    monkeypatch.setattr(live_freebusy, "freebusy_sources", [ask])

    sync_and_apply(work, memory)

    assert in_transaction == [False]
    assert when(booking) == span_of(times(3, hours=2))


def test_booking_follows_a_removed_event(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    booking = written(tenant, ada)
    group = make_group(tenant, ada, **times(7))
    seat = seat_in(tenant, group, ANN)
    write()
    memory.objects.clear()
    sync_and_apply(work, memory)
    write()

    assert last_step(booking) == ("cancel", "cancelled", "Work", "calendar")
    assert last_step(group) == ("cancel", "cancelled", "Work", "calendar")
    assert last_step(seat)[1] == "cancelled_by_owner"
    assert {state for state, _ in copies()} == {"removed"}


def test_booking_follows_a_companion_event(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    ben = tenant.make_resource("Ben")
    theirs = connect(ben, "https://dav.example.com/ben/")
    project = tenant.make_project(
        ada["id"], ben["id"], availability={"mode": "mutual", "length": None}
    )
    booking = tenant.book(project_id=project["id"], **times()).data
    write()
    [path] = [memory for memory in memory.objects if memory.startswith("/ben/")]
    start, end = span_of(times(3))
    memory.set(path, change(memory.text(path), dtstart=start, dtend=end))
    look(work, {one: at for one, at in memory.objects.items() if one != path})
    look(theirs, {path: memory.objects[path]})
    apply_inbound_changes(theirs.connection, now=timezone.now())
    write()

    assert when(booking) == (start, end)
    assert [shown(text)[1:3] for _, text in memory.objects.values()] == [(start, end)] * 2


def test_move_to_a_taken_time_is_refused(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    booking = written(tenant, ada)
    written(tenant, ada, **times(3))
    drag(memory, booking, times(3))
    sync_and_apply(work, memory)

    state, reason = copies()[0]
    assert (state, reason.split(", ")[-1].startswith("but the booking can't be moved: ")) == (
        "refused",
        True,
    )
    assert when(booking) == span_of(times())
    assert sync_and_apply(work, memory) == []


@pytest.mark.parametrize(
    ("values", "state", "reason"),
    [
        (
            {"rrule": {"freq": "daily", "count": 3}},
            "moved_there",
            "The event was made recurring in the external calendar.",
        ),
        (
            {"dtstart": at("2035-05-05").date(), "dtend": at("2035-05-06").date()},
            "moved_there",
            "The event was changed to or from an all-day event in the external calendar.",
        ),
        (
            {"dtstart": at("2300-05-05"), "dtend": at("2300-05-06")},
            "refused",
            "The event's time in the external calendar can't be read.",
        ),
        (
            {"dtstart": at("2035-05-05"), "dtend": at("2035-05-05")},
            "refused",
            "The event's time in the external calendar can't be read.",
        ),
    ],
)
def test_changes_that_cannot_be_followed(
    tenant: Tenant,
    ada: Any,
    work: Calendar,
    memory: Memory,
    follows: None,
    values: dict[str, Any],
    state: str,
    reason: str,
) -> None:
    booking = written(tenant, ada)
    memory.set(path_of(booking), change(memory.text(path_of(booking)), **values))
    sync_and_apply(work, memory)

    assert copies() == [(state, reason)]
    assert when(booking) == span_of(times())
    assert sync_and_apply(work, memory) == []


def test_floating_times_are_in_the_zone_of_the_resource(
    tenant: Tenant, memory: Memory, follows: None
) -> None:
    berlin = tenant.make_resource(timezone="Europe/Berlin")
    calendar = connect(berlin)
    booking = written(tenant, berlin)
    start = at("2035-07-02 09:00").replace(tzinfo=None)
    text = change(memory.text(path_of(booking)), dtstart=start, dtend=start + timedelta(hours=1))
    memory.set(path_of(booking), text)
    sync_and_apply(calendar, memory)

    assert when(booking) == (at("2035-07-02 07:00"), at("2035-07-02 08:00"))


def test_unreadable_event_is_ignored(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    booking = written(tenant, ada)
    good = dict(memory.objects)
    etag = memory.set(path_of(booking), "garbage")
    look(work, {path_of(booking): (etag, good[path_of(booking)][1])})
    apply_inbound_changes(work.connection, now=timezone.now())

    assert last_step(booking)[1] == "confirmed"
    assert when(booking) == span_of(times())


def test_emptied_calendar_cancels_no_bookings(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    bookings = [written(tenant, ada, **times(day)) for day in range(1, EMPTIED + 1)]
    memory.objects.clear()
    sync_and_apply(work, memory)

    assert {last_step(booking)[1] for booking in bookings} == {"confirmed"}
    assert {state for state, _ in copies()} == {"removed_there"}


def test_move_of_a_completed_booking_is_refused(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, follows: None
) -> None:
    moved, gone = written(tenant, ada), written(tenant, ada, **times(2))
    for booking in (moved, gone):
        act(tenant, booking, "complete")
    drag(memory, moved, times(3))
    del memory.objects[path_of(gone)]
    sync_and_apply(work, memory)

    assert [state for state, _ in copies()] == ["refused", "removed_there"]
    assert copies()[1][1] == "Removed in the external calendar. The booking is completed."


def test_query_count_is_constant(tenant: Tenant, ada: Any, work: Calendar, memory: Memory) -> None:
    counts = []
    for day in (1, 20):
        book(tenant, ada, recurrence="FREQ=DAILY;COUNT=5", **times(day))
        write()
        look(work, memory.objects)
        with Queries(connection) as queries:
            apply_inbound_changes(work.connection, now=timezone.now())
        counts.append(len(queries))

    assert counts[0] == counts[1]
