"""Bookings as entries of a calendar elsewhere: what is written, and what of others is kept."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from common.ical.occurrences import UnreadableCalendar
from common.ical.writing import Guest
from external_calendars.event_formats.base import ForeignObject, MirroredEvent, RemoteEvent
from external_calendars.event_formats.ical import (
    compose_event,
    has_uid,
    read_remote_event,
    replace_event,
    update_event,
)
from tests.external_calendars.mirrored import change, shown
from tests.world import at

UID = "0193a4c2-0000-7000-8000-000000000030@bookings.example.com"
ADA, MARTY, ANN = (
    Guest(name, f"{name.split()[0].lower()}@example.com")
    for name in ("Ada Lovelace", "Marty McFly", "Ann Lee")
)
ENTRY = MirroredEvent(
    uid=UID,
    sequence=0,
    stamp=at("2026-11-20 09:30"),
    start=at("2026-11-23 08:00"),
    end=at("2026-11-23 08:30"),
    what="Check-up; yearly",
    where="Harbour Street 5",
    description="Bring your card.\n\nMarty McFly\n+1 555 0100",
    organizer=ADA,
    guests=[MARTY],
    known=frozenset({"marty@example.com"}),
)
TEXT = """\
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Scheduling and booking service//EN
CALSCALE:GREGORIAN
BEGIN:VEVENT
SUMMARY:Check-up\\; yearly
DTSTART:20261123T080000Z
DTEND:20261123T083000Z
DTSTAMP:20261120T093000Z
UID:0193a4c2-0000-7000-8000-000000000030@bookings.example.com
SEQUENCE:0
ATTENDEE;CN="Marty McFly";CUTYPE=INDIVIDUAL;PARTSTAT=NEEDS-ACTION;ROLE=REQ
 -PARTICIPANT;RSVP=TRUE:mailto:marty@example.com
DESCRIPTION:Bring your card.\\n\\nMarty McFly\\n+1 555 0100
LOCATION:Harbour Street 5
ORGANIZER;CN="Ada Lovelace":mailto:ada@example.com
STATUS:CONFIRMED
TRANSP:OPAQUE
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")
ALARM = "BEGIN:VALARM\r\nACTION:DISPLAY\r\nDESCRIPTION:Now\r\nTRIGGER:-PT15M\r\nEND:VALARM\r\n"


def entry(**given: Any) -> MirroredEvent:
    return replace(ENTRY, **given)


def test_compose_event() -> None:
    assert compose_event(ENTRY) == TEXT


def test_compose_whole_days_without_guests() -> None:
    text = compose_event(
        entry(
            start=date(2026, 11, 23),
            end=date(2026, 11, 25),
            where="",
            description="",
            guests=[],
            organizer=None,
        )
    )

    lines = text.splitlines()
    assert lines[4:-2] == [
        "BEGIN:VEVENT",
        "SUMMARY:Check-up\\; yearly",
        "DTSTART;VALUE=DATE:20261123",
        "DTEND;VALUE=DATE:20261125",
        "DTSTAMP:20261120T093000Z",
        f"UID:{UID}",
        "SEQUENCE:0",
        "STATUS:CONFIRMED",
        "TRANSP:OPAQUE",
    ]


def test_unchanged_event_needs_no_update() -> None:
    later = entry(stamp=at("2026-11-21 10:00"), sequence=4)

    assert update_event(TEXT, later) is None


def test_equal_times_in_another_zone_need_no_update() -> None:
    text = TEXT.replace("DTSTART:20261123T080000Z", "DTSTART;TZID=Europe/Berlin:20261123T090000")
    text = text.replace("DTEND:20261123T083000Z", "DURATION:PT30M")

    assert update_event(text, ENTRY) is None


def test_update_keeps_properties_of_other_clients() -> None:
    """An alarm, a category, a guest of the owner's own; the customer's answer was about another
    time.
    """
    text = TEXT.replace("PARTSTAT=NEEDS-ACTION", "PARTSTAT=ACCEPTED")
    text = text.replace(
        "END:VEVENT",
        "CATEGORIES:Work\r\nATTENDEE;PARTSTAT=DECLINED:mailto:bob@example.com\r\n"
        f"X-COLOR:red\r\n{ALARM}END:VEVENT",
    )

    new = update_event(
        text, entry(start=at("2026-11-24 08:00"), end=at("2026-11-24 08:30"), sequence=1)
    )

    assert new is not None
    assert shown(new) == (
        UID,
        at("2026-11-24 08:00"),
        at("2026-11-24 08:30"),
        "Check-up; yearly",
        ["bob@example.com", "marty@example.com"],
    )
    assert ALARM in new
    assert {"CATEGORIES:Work", "X-COLOR:red", "SEQUENCE:1"} <= set(new.splitlines())
    lines = new.replace("\r\n ", "")
    assert "PARTSTAT=ACCEPTED" not in lines
    assert "PARTSTAT=DECLINED:mailto:bob@example.com" in lines


def test_update_of_texts_keeps_the_answers() -> None:
    text = TEXT.replace("PARTSTAT=NEEDS-ACTION", "PARTSTAT=ACCEPTED")

    new = update_event(text, entry(what="Other"))

    assert new is not None
    assert "PARTSTAT=ACCEPTED" in new.replace("\r\n ", "")


@pytest.mark.parametrize(
    ("there", "own", "move", "expected"),
    [(0, 1, True, 1), (5, 1, True, 6), (5, 1, False, 5), (5, 9, False, 9)],
)
def test_update_increments_the_sequence(there: int, own: int, move: bool, expected: int) -> None:
    text = TEXT.replace("SEQUENCE:0", f"SEQUENCE:{there}")
    changes = {"start": at("2026-11-23 07:00")} if move else {"what": "Other"}

    new = update_event(text, entry(sequence=own, **changes))

    assert new is not None
    assert f"SEQUENCE:{expected}\r\n" in new


def test_update_changes_guests() -> None:
    known = frozenset({"marty@example.com", "ann@example.com"})

    new = update_event(TEXT, entry(guests=[ANN], known=known))
    none = update_event(TEXT, entry(guests=[], organizer=None))

    assert new is not None and none is not None
    assert shown(new).guests == ["ann@example.com"]
    assert shown(none).guests == []


def test_guests_are_compared_by_canonical_address() -> None:
    """A provider that maps domains by IDNA 2003 would invite somebody at strasse.de."""
    guest, known = Guest("U", "u@straße.de"), frozenset({"u@xn--strae-oqa.de"})
    made = compose_event(entry(guests=[guest], known=known))
    there = made.replace("u@xn--strae-oqa.de", "U@STRAßE.de")

    again = update_event(there, entry(guests=[guest], known=known))
    gone = update_event(there, entry(guests=[], known=known))

    assert shown(made).guests == ["u@xn--strae-oqa.de"]
    assert (again, gone is not None and shown(gone).guests) == (None, [])


def test_update_removes_a_recurrence() -> None:
    exception = "BEGIN:VEVENT\r\nUID:{}\r\nRECURRENCE-ID:20261124T080000Z\r\nSUMMARY:Else\r\n"
    exception += "DTSTART:20261124T090000Z\r\nEND:VEVENT\r\n"
    text = TEXT.replace("STATUS", "RRULE:FREQ=DAILY;COUNT=3\r\nEXDATE:20261125T080000Z\r\nSTATUS")
    text = text.replace("END:VCALENDAR", exception.format(UID) + "END:VCALENDAR")

    new = update_event(text, ENTRY)

    assert new is not None
    assert shown(new) == shown(TEXT)
    assert "RRULE" not in new and "EXDATE" not in new


def test_replace_keeps_only_the_sequence() -> None:
    text = TEXT.replace("SEQUENCE:0", "SEQUENCE:7").replace(
        "END:VEVENT", f"ATTENDEE:mailto:gone@example.com\r\n{ALARM}END:VEVENT"
    )

    assert replace_event(text, entry(sequence=2)) == TEXT.replace("SEQUENCE:0", "SEQUENCE:7")


@pytest.mark.parametrize("text", ["", "hello", "BEGIN:VCALENDAR", "BEGIN:VEVENT\r\nEND:VCALENDAR"])
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(UnreadableCalendar):
        update_event(text, ENTRY)
    assert has_uid(text, UID) is False


def test_event_with_another_uid_is_refused() -> None:
    with pytest.raises(ForeignObject):
        update_event(TEXT, entry(uid="other"))
    assert (has_uid(TEXT, "other"), has_uid(TEXT, UID)) == (False, True)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, RemoteEvent(at("2026-11-23 08:00"), at("2026-11-23 08:30"), False, False)),
        (
            {"dtstart": date(2026, 11, 24), "dtend": date(2026, 11, 25)},
            RemoteEvent(date(2026, 11, 24), date(2026, 11, 25), False, False),
        ),
        (
            {"dtstart": datetime(2026, 11, 24, 9), "dtend": datetime(2026, 11, 24, 10)},
            RemoteEvent(datetime(2026, 11, 24, 9), datetime(2026, 11, 24, 10), False, False),
        ),
        (
            {"rrule": {"freq": "daily", "count": 2}},
            RemoteEvent(at("2026-11-23 08:00"), at("2026-11-23 08:30"), True, False),
        ),
        (
            {"status": "CANCELLED"},
            RemoteEvent(at("2026-11-23 08:00"), at("2026-11-23 08:30"), False, True),
        ),
    ],
)
def test_read_remote_event(values: dict[str, Any], expected: RemoteEvent) -> None:
    assert read_remote_event(change(TEXT, **values), UID) == expected


def test_read_remote_event_with_a_defined_zone() -> None:
    """Outlook names its zones, and says what it means by them."""
    zone = """\
BEGIN:VTIMEZONE
TZID:Harbour Time
BEGIN:STANDARD
DTSTART:16010101T000000
TZOFFSETFROM:+0200
TZOFFSETTO:+0200
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT""".replace("\n", "\r\n")
    text = TEXT.replace("BEGIN:VEVENT", zone)
    text = text.replace("DTSTART:20261123T080000Z", "DTSTART;TZID=Harbour Time:20261123T100000")

    assert read_remote_event(text, UID).start == datetime(2026, 11, 23, 8, tzinfo=UTC)
