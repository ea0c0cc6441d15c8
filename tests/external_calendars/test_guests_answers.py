"""Guests' answers in connected calendars: the PARTSTAT of attendees, read by each sync."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from availability.models import Calendar
from bookings.models import Booking, Customer
from common.ical.writing import Guest
from external_calendars.event_formats import google_json, graph_json, ical
from external_calendars.event_formats.base import AttendeeAnswer, EventFormat, MirroredEvent
from external_calendars.models import WrittenEvent
from external_calendars.sync.inbound_changes import apply_inbound_changes
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.external_calendars.mirrored import Memory, change, copies, look, write
from tests.external_calendars.test_inbound_changes import drag, sync_and_apply, when, written
from tests.external_calendars.test_mirror import (
    _at_home,
    act,
    ada,
    memory,
    move,
    path_of,
    span_of,
    times,
    work,
)
from tests.world import Tenant, at

__all__ = ["_at_home", "ada", "memory", "work"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
MARTY = "marty@example.com"


def answer(memory: Memory, booking: Any, partstat: str, address: str = MARTY) -> None:
    """As the calendar's server notes the answer of a guest."""
    path = path_of(booking)
    before, attendee, after = memory.text(path).replace("\r\n ", "").partition(f"mailto:{address}")
    head, _, line = before.rpartition("\r\n")
    assert "PARTSTAT=" in line, line
    name, _, rest = line.partition("PARTSTAT=")
    others = rest.removeprefix(rest.split(";")[0].split(":")[0])
    memory.set(path, f"{head}\r\n{name}PARTSTAT={partstat}{others}{attendee}{after}")


def responses() -> dict[str, str | None]:
    return dict(Customer.objects.order_by("email").values_list("email", "response"))


def log_of(booking: Any) -> list[tuple[str, str, str]]:
    logs = Booking.objects.get(id=booking["id"]).logs
    return list(logs.values_list("action", "actor", "source"))[1:]


def decline_cancels(tenant: Tenant, resource: Any) -> str:
    settings = {"guest_declines": "cancel", "enforce_availability": False}
    return tenant.make_project(resource["id"], settings=settings)["id"]


@pytest.fixture(params=["warn", "follow"])
def edits(request: pytest.FixtureRequest, tenant: Tenant) -> str:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"external_edits": request.param}})
    return request.param


@pytest.mark.parametrize(
    ("partstat", "response"),
    [
        ("ACCEPTED", "accepted"),
        ("tentative", "tentative"),
        ("DECLINED", "declined"),
        ("NEEDS-ACTION", None),
        ("DELEGATED", None),
    ],
)
def test_answer_is_found_in_the_next_sync(
    tenant: Tenant,
    ada: Any,
    work: Calendar,
    memory: Memory,
    edits: str,
    partstat: str,
    response: str | None,
) -> None:
    booking = written(tenant, ada)
    answer(memory, booking, partstat)

    calls = [sync_and_apply(work, memory) for _ in range(2)]

    assert calls == [[f"fetch {path_of(booking)}"], []]
    assert responses() == {MARTY: response}
    assert copies() == [("written", "")]
    assert log_of(booking) == ([("response", "Work", "calendar")] if response else [])


def test_unchanged_answer_is_recorded_once(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    """The guest has declined by e-mail since: the old answer in the calendar is no news."""
    booking = written(tenant, ada)
    answer(memory, booking, "ACCEPTED")
    sync_and_apply(work, memory)
    Customer.objects.update(response="declined", response_source="mail")

    memory.set(path_of(booking), change(memory.text(path_of(booking)), categories=["Important"]))
    sync_and_apply(work, memory)

    assert responses() == {MARTY: "declined"}


def test_answer_that_our_write_has_kept_is_found(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    """It arrived after the last sync, and the object's etag is that of our own write."""
    booking = written(tenant, ada)
    look(work, memory.objects)
    answer(memory, booking, "DECLINED")
    tenant.put(f"/bookings/{booking['id']}", {"where": "Room 2"})
    write()

    calls = [sync_and_apply(work, memory) for _ in range(2)]

    assert responses() == {MARTY: "declined"}
    assert calls == [[f"fetch {path_of(booking)}"], []]


def test_move_asks_the_guest_again(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = written(tenant, ada)
    answer(memory, booking, "ACCEPTED")
    sync_and_apply(work, memory)

    move(tenant, booking)
    write()
    sync_and_apply(work, memory)
    moved = responses(), memory.text(path_of(booking)).count("PARTSTAT=NEEDS-ACTION")
    answer(memory, booking, "ACCEPTED")
    sync_and_apply(work, memory)

    assert moved == ({MARTY: None}, 1)
    assert responses() == {MARTY: "accepted"}


def test_answer_and_move_in_the_calendar_together(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, edits: str
) -> None:
    """An app that follows moves the booking, so that the answer is about another time."""
    booking = written(tenant, ada)
    answer(memory, booking, "ACCEPTED")
    drag(memory, booking, times(3))

    sync_and_apply(work, memory)

    follows = edits == "follow"
    assert when(booking) == span_of(times(3) if follows else times())
    assert responses() == {MARTY: None if follows else "accepted"}
    assert log_of(booking)[0] == ("response", "Work", "calendar")


def test_declined_event_cancels_once(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, edits: str
) -> None:
    booking = written(tenant, ada, project_id=decline_cancels(tenant, ada))
    answer(memory, booking, "DECLINED")

    for _ in range(2):
        sync_and_apply(work, memory)
    write()
    sync_and_apply(work, memory)

    assert log_of(booking) == [
        ("response", "Work", "calendar"),
        ("cancel_by_customer", "Work", "calendar"),
    ]
    assert memory.objects == {}
    assert copies() == [("removed", "")]


def test_answers_for_seats_of_a_group(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, edits: str
) -> None:
    project_id = decline_cancels(tenant, ada)
    group = make_group(tenant, ada, project_id=project_id, **times())
    seats = [seat_in(tenant, group, who) for who in (ANN, BOB)]
    write()
    answer(memory, group, "ACCEPTED", ANN["email"])
    answer(memory, group, "DECLINED", BOB["email"])

    sync_and_apply(work, memory)
    write()

    states = [Booking.objects.get(id=row["id"]).state for row in (group, *seats)]
    assert states == ["tentative", "confirmed", "cancelled_by_customer"]
    assert responses() == {ANN["email"]: "accepted", BOB["email"]: "declined"}
    assert "bob@example.com" not in memory.text(path_of(group))
    assert copies() == [("written", "")]


def test_other_attendees_and_cancelled_bookings_have_no_answer(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = written(tenant, ada)
    answer(memory, booking, "DECLINED")
    text = memory.text(path_of(booking)).replace(f"mailto:{MARTY}", "mailto:eve@example.com")
    memory.set(path_of(booking), text)
    sync_and_apply(work, memory)
    assert WrittenEvent.objects.get().answers == {}

    answer(memory, booking, "ACCEPTED", "eve@example.com")
    act(tenant, booking, "cancel")
    sync_and_apply(work, memory)

    assert responses() == {MARTY: None}


def test_answer_during_a_write_waits_for_the_next_sync(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = written(tenant, ada)
    answer(memory, booking, "DECLINED")
    look(work, memory.objects)
    tenant.put(f"/bookings/{booking['id']}", {"where": "Room 2"})

    apply_inbound_changes(work.connection, now=timezone.now())
    during = responses()
    write()
    sync_and_apply(work, memory)

    assert (during, responses()) == ({MARTY: None}, {MARTY: "declined"})


def test_erasure_removes_the_addresses_of_answers(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = written(tenant, ada)
    answer(memory, booking, "ACCEPTED")
    sync_and_apply(work, memory)
    before = WrittenEvent.objects.get().answers

    tenant.post("/customers/erase", {"email": MARTY})

    assert (before, WrittenEvent.objects.get().answers) == ({MARTY: "accepted"}, None)


# --- Formats --------------------------------------------------------------------------------------
EMPTY = "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
FORMATS: list[EventFormat] = [ical, google_json, graph_json]


@pytest.mark.parametrize("text", ["", "nonsense", "{}", "[1]", EMPTY])
@pytest.mark.parametrize("event_format", FORMATS)
def test_unreadable_object_has_no_answers(event_format: EventFormat, text: str) -> None:
    assert event_format.read_answers(text, "a", [MARTY]) == {}


ENTRY = MirroredEvent(
    uid="a@bookings.example.com",
    sequence=0,
    stamp=at("2026-11-20 08:00"),
    start=at("2026-11-23 08:00"),
    end=at("2026-11-23 09:00"),
    what="Check-up",
    where="",
    description="",
    organizer=None,
    guests=[Guest("Marty", "Marty@example.com"), Guest("Doc", "doc@example.com")],
    known=[],
)


AT_GOOGLE = replace(ENTRY, uid=google_json.google_uid(ENTRY.uid))


def answered_at_google(*responses: str) -> str:
    event = json.loads(google_json.compose_event(AT_GOOGLE))
    event["id"] = google_json.event_id(AT_GOOGLE.uid)
    for attendee, response in zip(event["attendees"], responses, strict=True):
        attendee["responseStatus"] = response
    return json.dumps(event)


def test_answers_at_google() -> None:
    addresses = [MARTY, "doc@example.com"]

    found = [
        google_json.read_answers(answered_at_google(*responses), AT_GOOGLE.uid, addresses)
        for responses in [("needsAction", "declined"), ("accepted", "tentative"), ("other", "")]
    ]

    assert found == [
        {"doc@example.com": AttendeeAnswer("declined")},
        {MARTY: AttendeeAnswer("accepted"), "doc@example.com": AttendeeAnswer("tentative")},
        {},
    ]


def test_moved_event_at_google_has_no_answers() -> None:
    text = answered_at_google("accepted", "declined")
    renamed = google_json.update_event(text, replace(AT_GOOGLE, what="Other"))
    moved = google_json.update_event(text, replace(AT_GOOGLE, end=at("2026-11-23 10:00")))

    assert renamed is not None and moved is not None
    responses = [
        [attendee["responseStatus"] for attendee in json.loads(each)["attendees"]]
        for each in (renamed, moved)
    ]
    assert responses == [["accepted", "declined"], ["needsAction", "needsAction"]]


def test_answers_at_microsoft() -> None:
    event = json.loads(graph_json.compose_event(ENTRY))
    statuses = [
        {"response": "tentativelyAccepted", "time": "2026-11-21T08:00:00.1234567Z"},
        {"response": "declined", "time": "0001-01-01T00:00:00Z"},
    ]
    for attendee, status in zip(event["attendees"], statuses, strict=True):
        attendee["status"] = status
    others = [{"response": response} for response in ("none", "organizer", "notResponded")]
    event["attendees"] += [
        {"emailAddress": {"address": "eve@example.com"}, "status": status}
        for status in [*others, None]
    ]

    found = graph_json.read_answers(
        json.dumps(event), ENTRY.uid, [MARTY, "doc@example.com", "eve@example.com"]
    )

    assert found == {
        MARTY: AttendeeAnswer("tentative", at("2026-11-21 08:00")),
        "doc@example.com": AttendeeAnswer("declined"),
    }


def test_answers_of_the_asked_addresses() -> None:
    lines = [
        *("BEGIN:VCALENDAR", "BEGIN:VEVENT", "UID:a"),
        "ATTENDEE;PARTSTAT=ACCEPTED:MAILTO:Marty@Example.com",
        "ATTENDEE;PARTSTAT=DECLINED:mailto:eve@example.com",
        "ATTENDEE:mailto:doc@example.com",
        *("END:VEVENT", "END:VCALENDAR", ""),
    ]

    found = ical.read_answers("\r\n".join(lines), "a", [MARTY, "doc@example.com"])

    assert found == {MARTY: AttendeeAnswer("accepted")}
