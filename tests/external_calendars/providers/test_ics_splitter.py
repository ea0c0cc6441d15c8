"""A feed, split by its lines into one text for each UID."""

from datetime import UTC, datetime, timedelta

import pytest
from icalendar import Calendar

from external_calendars.providers import ics_splitter
from external_calendars.providers.ics_splitter import (
    FeedTooLarge,
    FeedTruncated,
    calendar_name,
    hash_text,
    split_feed,
)
from tests.external_calendars.texts import NINE, calendar_text, event_lines

ZONE = (
    "BEGIN:VTIMEZONE",
    "TZID:Our/Zone",
    "BEGIN:STANDARD",
    "DTSTART:16010101T000000",
    "TZOFFSETFROM:+0100",
    "TZOFFSETTO:+0100",
    "END:STANDARD",
    "END:VTIMEZONE",
)
OTHER_ZONE = tuple(line.replace("Our", "Other") for line in ZONE)


def in_zone(uid: str, zone: str) -> tuple[str, ...]:
    lines = event_lines(uid)
    return (*lines[:3], f"DTSTART;TZID={zone}:20261123T090000", *lines[5:])


def test_feed_is_split_by_uid_with_its_zones():
    override = event_lines("a", lines=("RECURRENCE-ID:20261123T090000Z",))
    feed = calendar_text(
        ("METHOD:PUBLISH", "X-WR-CALNAME:Ada", "X-WR-TIMEZONE:Europe/Berlin"),
        ZONE,
        OTHER_ZONE,
        event_lines("a"),
        in_zone("b", "Our/Zone"),
        ("BEGIN:VTODO", "UID:t", "END:VTODO"),
        in_zone("c", '"Other/Zone"'),
        override,
        in_zone("d", "Europe/Berlin"),
    )
    zone = ("X-WR-TIMEZONE:Europe/Berlin",)

    entries = split_feed(feed.encode())

    assert {entry.href: entry.text for entry in entries} == {
        "a": calendar_text(zone, event_lines("a"), override),
        "b": calendar_text(zone, ZONE, in_zone("b", "Our/Zone")),
        "c": calendar_text(zone, OTHER_ZONE, in_zone("c", '"Other/Zone"')),
        "d": calendar_text(zone, in_zone("d", "Europe/Berlin")),
    }
    assert calendar_name(feed.encode()) == "Ada"


PLAIN = calendar_text(event_lines("ünï", what="Grüße aus der Ferne"))


@pytest.mark.parametrize(
    "feed",
    [
        PLAIN.encode(),
        PLAIN.replace("\r\n", "\n").encode(),
        PLAIN.replace("\r\n", "\r").encode(),
        PLAIN.replace("\r\n", "\r\n\r\n").encode(),
        PLAIN.rstrip().encode(),
        PLAIN.encode("utf-8-sig"),
        PLAIN.replace("UID:ünï", "U\r\n ID:ü\r\n\tnï").encode(),
        PLAIN.replace("Grüße", "Gr\r\n üße").encode(),
        PLAIN.encode().replace(b"Gr\xc3\xbc", b"Gr\xc3\n \xbc"),
        PLAIN.replace("BEGIN:VEVENT", "begin:vevent ").encode().replace(b"begin", b"Begin"),
        PLAIN.replace("BEGIN:VEVENT", "\0BEGIN:VEVENT").encode(),
    ],
)
def test_folded_lines(feed):
    entries = split_feed(feed)

    assert [entry.href for entry in entries] == ["ünï"]
    event = Calendar.from_ical(entries[0].text).events[0]
    assert (event["UID"], event["SUMMARY"]) == ("ünï", "Grüße aus der Ferne")


def test_uid_is_that_of_the_event():
    alarm = ("BEGIN:VALARM", "UID:alarm", "END:VALARM")
    lines = event_lines("a")
    feed = calendar_text((lines[0], *alarm, "UID;X=y:a:b ", *lines[2:]))

    assert [entry.href for entry in split_feed(feed.encode())] == ["a:b"]


def test_too_long_uid_is_hashed():
    feed = calendar_text(event_lines("x" * 300), event_lines("x" * 301))

    assert [entry.href for entry in split_feed(feed.encode())] == ["x" * 300, hash_text("x" * 301)]


def test_event_without_uid_gets_a_stable_uid():
    lines = [line for line in event_lines("a") if not line.startswith("UID")]
    later = [line.replace("20261101T", "20261102T") for line in lines]

    first, second = (split_feed(calendar_text(tuple(part)).encode())[0] for part in (lines, later))

    assert first.href == second.href
    assert Calendar.from_ical(first.text).events[0]["UID"] == first.href


def test_etag_ignores_dtstamp():
    def etag(**changed: str) -> str:
        text = calendar_text(event_lines("a"), event_lines("b"))
        for old, new in changed.items():
            text = text.replace(old, new)
        return {entry.href: entry.etag for entry in split_feed(text.encode())}["a"]

    assert etag(DTSTAMP="DTSTAMP;X=y") == etag() != etag(Meeting="Other")
    assert etag() == etag(**{"20261101T": "20261102T"})


def test_concatenated_calendars():
    feed = calendar_text(event_lines("a")) + calendar_text(event_lines("b"), event_lines("a"))

    entries = split_feed(feed.encode())

    assert [(entry.href, len(entry.events)) for entry in entries] == [("a", 2), ("b", 1)]


@pytest.mark.parametrize(
    "feed",
    [
        "",
        " \r\n",
        "<!doctype html><html>",
        "BEGIN:VCARD\r\nEND:VCARD",
        "BEGIN:VCALENDAR",
        PLAIN.replace("END:VCALENDAR", ""),
        PLAIN.replace("END:VEVENT", ""),
        PLAIN.replace("END:VEVENT", "END:VTODO"),
        PLAIN + "<!-- served in 3 ms -->",
        PLAIN[: len(PLAIN) // 2],
        "BEGIN:VCALENDAR\r\n" * 100,
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n" + "BEGIN:X\r\n" * 100_000,
    ],
)
def test_truncated_calendar_is_refused(feed):
    with pytest.raises(FeedTruncated):
        split_feed(feed.encode())


def test_calendar_without_events():
    assert split_feed(calendar_text().encode()) == []
    assert calendar_name(calendar_text().encode()) == ""


def test_copies_of_a_large_zone_are_limited(monkeypatch):
    monkeypatch.setattr(ics_splitter, "MAX_LETTERS", 100_000)
    large = (*ZONE[:2], *(f"X-A:{'x' * 1000}" for _ in range(20)), *ZONE[2:])
    events = [in_zone(f"u{number}", "Our/Zone") for number in range(5)]

    assert len(split_feed(calendar_text(large, *events[:4]).encode())) == 4
    with pytest.raises(FeedTooLarge):
        split_feed(calendar_text(large, *events).encode())


@pytest.mark.parametrize(
    ("lines", "is_far"),
    [
        (event_lines("a"), False),
        (event_lines("a", NINE + timedelta(days=1)), False),
        (event_lines("a", NINE + timedelta(days=4)), True),
        (event_lines("a", NINE - timedelta(days=4)), True),
        (event_lines("a", NINE - timedelta(days=30), 31 * 24 * 60), False),
        (event_lines("a", NINE - timedelta(days=30), lines=("RRULE:FREQ=DAILY",)), False),
        (event_lines("a", NINE - timedelta(days=30), lines=("RDATE:20261123T090000Z",)), False),
        ((*event_lines("a", NINE - timedelta(days=30))[:4], "DURATION:P31D", "END:VEVENT"), False),
        (("BEGIN:VEVENT", "UID:a", "DTSTART;VALUE=DATE:20261101", "END:VEVENT"), True),
        (("BEGIN:VEVENT", "UID:a", "END:VEVENT"), False),
    ],
)
def test_may_touch_excludes_distant_events(lines, is_far):
    feed = calendar_text(ZONE, lines)

    (entry,) = split_feed(feed.encode())

    assert entry.may_touch(NINE, NINE + timedelta(hours=1)) != is_far
    assert entry.may_touch(datetime(1990, 1, 1, tzinfo=UTC), datetime(2090, 1, 1, tzinfo=UTC))
