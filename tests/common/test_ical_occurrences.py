"""iCalendar text into stretches of time: every way in which others write them."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.ical.occurrences import (
    CalendarOccurrence,
    UnreadableCalendar,
    read_object,
    read_occurrences,
)
from tests.external_calendars.icalendars import OWN_ZONE, calendar, event, one

BERLIN = "Europe/Berlin"
YEAR = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))


def read(
    text: str, *, zone: str = BERLIN, window: Any = YEAR, **given: Any
) -> list[CalendarOccurrence]:
    return read_occurrences(text, zone=zone, window=window, **given)


def spans(text: str, *, zone: str = BERLIN, window: Any = YEAR) -> list[str]:
    """`2026-01-05 09:00/10:00` in UTC, with the date of the end where it is another."""
    return [span(one) for one in read(text, zone=zone, window=window)]


def span(one: CalendarOccurrence) -> str:
    end = f"{one.end:%H:%M}" if one.end.date() == one.start.date() else f"{one.end:%m-%d %H:%M}"
    return f"{one.start:%Y-%m-%d %H:%M}/{end}"


def days(text: str, **given: Any) -> list[tuple[str, str, str]]:
    """Of events of whole days: first date, end date (exclusive), the span."""
    return [(str(one.start_date), str(one.end_date), span(one)) for one in read(text, **given)]


def test_event_with_every_property() -> None:
    text = one(
        "DTSTART;TZID=Europe/Berlin:20260302T100000",
        "DTEND;TZID=Europe/Berlin:20260302T113000",
        "SUMMARY:Budget\\, first\\nround",
        "LOCATION:Room 4\\; upstairs",
        "DESCRIPTION:Bring:\\n- figures\\n- ",
        "  coffee",
        "ATTENDEE;CN=Ada;PARTSTAT=ACCEPTED:mailto:ada@example.com",
        "ATTENDEE;CN=Ada again:MAILTO:Ada@example.com",
        "ATTENDEE;EMAIL=bob@example.com:urn:uuid:4711",
        "ATTENDEE:mailto:nobody",
        "BEGIN:VALARM",
        "TRIGGER:-PT15M",
        "DESCRIPTION:Wake up",
        "END:VALARM",
    )

    assert read_object(text, zone="UTC", window=YEAR) == (
        "one@test",
        False,
        [
            CalendarOccurrence(
                uid="one@test",
                start=datetime(2026, 3, 2, 9, tzinfo=UTC),
                end=datetime(2026, 3, 2, 10, 30, tzinfo=UTC),
                all_day=False,
                start_date=None,
                end_date=None,
                busy=True,
                what="Budget, first round",
                where="Room 4; upstairs",
                description="Bring:\n- figures\n-  coffee",
                participants=("ada@example.com", "bob@example.com"),
            )
        ],
    )


@pytest.mark.parametrize(
    ("times", "found"),
    [
        (["DTSTART:20260302T090000Z", "DTEND:20260302T100000Z"], ["2026-03-02 09:00/10:00"]),
        (["DTSTART:20260302T090000", "DTEND:20260302T100000"], ["2026-03-02 08:00/09:00"]),
        (["DTSTART:20260302T090000Z", "DURATION:PT90M"], ["2026-03-02 09:00/10:30"]),
        # Without a length it takes no time; nor does one that ends before it begins.
        (["DTSTART:20260302T090000Z"], []),
        (["DTSTART:20260302T090000Z", "DTEND:20260302T090000Z"], []),
        (["DTSTART:20260302T090000Z", "DTEND:20260302T080000Z"], []),
        (["DTSTART:20260302T090000Z", "DURATION:-PT1H"], []),
        (["DTEND:20260302T080000Z"], []),
        # An end on another clock than the start, and one that is a date.
        (
            [
                "DTSTART;TZID=Europe/Berlin:20260302T100000",
                "DTEND;TZID=America/New_York:20260302T100000",
            ],
            ["2026-03-02 09:00/15:00"],
        ),
        (
            ["DTSTART:20260302T220000", "DTEND;VALUE=DATE:20260303"],
            ["2026-03-02 21:00/23:00"],
        ),
        # The window is half-open.
        (["DTSTART:20251231T230000Z", "DTEND:20260101T000000Z"], []),
        (["DTSTART:20270101T000000Z", "DTEND:20270101T010000Z"], []),
        (["DTSTART:20251231T230000Z", "DTEND:20260101T000001Z"], ["2025-12-31 23:00/01-01 00:00"]),
    ],
)
def test_span_of_one_event(times: list[str], found: list[str]) -> None:
    assert spans(one(*times)) == found


@pytest.mark.parametrize(
    ("tzid", "found"),
    [
        ("Europe/Berlin", "2026-07-01 08:00/09:00"),
        ("europe/berlin", "2026-07-01 08:00/09:00"),
        ("/Europe/Berlin", "2026-07-01 08:00/09:00"),
        ("/freeassociation.sourceforge.net/America/Argentina/Ushuaia", "2026-07-01 13:00/14:00"),
        ("W. Europe Standard Time", "2026-07-01 08:00/09:00"),
        ("Pacific Standard Time", "2026-07-01 17:00/18:00"),
        ("UTC", "2026-07-01 10:00/11:00"),
        ("Our Own", "2026-07-01 03:00/04:00"),
        # Defined nowhere: the wall clock of the resource.
        ("Customized Time Zone", "2026-07-01 14:00/15:00"),
        ("../../etc/passwd", "2026-07-01 14:00/15:00"),
    ],
)
def test_zones_of_an_event(tzid: str, found: str) -> None:
    when = [f"DTSTART;TZID={tzid}:20260701T100000", f"DTEND;TZID={tzid}:20260701T110000"]

    assert spans(calendar(OWN_ZONE, event(*when)), zone="America/New_York") == [found]


def test_defined_zone_is_scoped_to_its_text() -> None:
    other = OWN_ZONE.replace("+0600", "+0300").replace("+0700", "+0400")
    when = event("DTSTART;TZID=Our Own:20260701T100000", "DURATION:PT1H")

    assert spans(calendar(OWN_ZONE, when)) == ["2026-07-01 03:00/04:00"]
    assert spans(calendar(when, other)) == ["2026-07-01 06:00/07:00"]
    assert spans(calendar(when)) == ["2026-07-01 08:00/09:00"]


def test_clock_changes_of_a_defined_zone() -> None:
    """Gap 3 May 2:00 to 3:00, fold 11 October 1:00 to 2:00."""
    walls = ["20260503T013000", "20260503T023000", "20260503T033000"]
    walls += ["20261011T003000", "20261011T013000", "20261011T023000"]
    events = [event(f"DTSTART;TZID=Our Own:{wall}", "DURATION:PT10M", uid="one") for wall in walls]

    # Each in a text of its own: in one they would be taken for the same event.
    assert [spans(calendar(OWN_ZONE, each_event))[0] for each_event in events] == [
        "2026-05-02 19:30/19:40",
        "2026-05-02 20:00/20:10",
        "2026-05-02 20:30/20:40",
        "2026-10-10 17:30/17:40",
        "2026-10-10 18:30/18:40",
        "2026-10-10 20:30/20:40",
    ]


ABOLISHED = """\
BEGIN:VTIMEZONE\r
TZID:Elsewhere\r
BEGIN:DAYLIGHT\r
DTSTART:20000402T020000\r
TZOFFSETFROM:+0100\r
TZOFFSETTO:+0200\r
RRULE:FREQ=YEARLY;BYMONTH=4;BYDAY=1SU;UNTIL=20100404T010000Z\r
END:DAYLIGHT\r
BEGIN:STANDARD\r
DTSTART:20001001T030000\r
TZOFFSETFROM:+0200\r
TZOFFSETTO:+0100\r
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=1SU;UNTIL=20091004T010000Z\r
END:STANDARD\r
BEGIN:STANDARD\r
DTSTART:20100901T000000\r
TZOFFSETFROM:+0200\r
TZOFFSETTO:+0530\r
END:STANDARD\r
END:VTIMEZONE"""


def test_defined_zone_without_further_changes() -> None:
    when = event("DTSTART;TZID=Elsewhere:20260701T103000", "DURATION:PT1H")

    assert spans(calendar(ABOLISHED, when)) == ["2026-07-01 05:00/06:00"]


@pytest.mark.parametrize("rule", ["FREQ=SECONDLY", "FREQ=MINUTELY;INTERVAL=5", "FREQ=NEVER"])
def test_implausible_defined_zone_is_ignored(rule: str) -> None:
    bad = OWN_ZONE.replace("FREQ=YEARLY;BYMONTH=5;BYDAY=1SU", rule)

    with pytest.raises(UnreadableCalendar):
        read(calendar(bad, event("DTSTART;TZID=Our Own:20260701T100000", "DURATION:PT1H")))


def test_zone_of_the_calendar() -> None:
    """X-WR-TIMEZONE says on which clock floating times are; days stay those of the resource."""
    text = calendar(
        event("DTSTART:20260701T100000", "DURATION:PT1H", uid="floating"),
        event("DTSTART:20260702T100000Z", "DURATION:PT1H", uid="utc"),
        event("DTSTART;VALUE=DATE:20260703", uid="day"),
        head=["X-WR-TIMEZONE:America/New_York"],
    )

    assert spans(text) == [
        "2026-07-01 14:00/15:00",
        "2026-07-02 10:00/11:00",
        "2026-07-02 22:00/07-03 22:00",
    ]


@pytest.mark.parametrize(
    ("zone", "wall", "found"),
    [
        # Spring: what lies in the gap begins at its end and lasts as long.
        (BERLIN, "20260329T013000", "2026-03-29 00:30/01:15"),
        (BERLIN, "20260329T021000", "2026-03-29 01:00/01:45"),
        (BERLIN, "20260329T030000", "2026-03-29 01:00/01:45"),
        # Autumn: the first of the two.
        (BERLIN, "20261025T020000", "2026-10-25 00:00/00:45"),
        (BERLIN, "20261025T030000", "2026-10-25 02:00/02:45"),
        ("America/New_York", "20260308T021000", "2026-03-08 07:00/07:45"),
        ("America/New_York", "20261101T010000", "2026-11-01 05:00/05:45"),
    ],
)
def test_events_around_clock_changes(zone: str, wall: str, found: str) -> None:
    assert spans(one(f"DTSTART:{wall}", "DURATION:PT45M"), zone=zone) == [found]


def test_events_in_a_skipped_hour() -> None:
    early = one("DTSTART:20260329T013000", "DTEND:20260329T021500")
    within = one("DTSTART:20260329T021500", "DTEND:20260329T024500")

    assert spans(early) == ["2026-03-29 00:30/01:00"]
    assert spans(within) == ["2026-03-29 01:00/01:30"]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        # By readings the night is an hour shorter, by length it ends an hour later.
        (["DTEND:20260329T060000"], "2026-03-28 21:00/03-29 04:00"),
        (["DURATION:PT8H"], "2026-03-28 21:00/03-29 05:00"),
        (["DURATION:P1D"], "2026-03-28 21:00/03-29 20:00"),
    ],
)
def test_lengths_over_a_clock_change(lines: list[str], found: str) -> None:
    assert spans(one("DTSTART:20260328T220000", *lines)) == [found]


# --- Whole days -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], ("2026-03-28", "2026-03-29", "2026-03-27 23:00/03-28 23:00")),
        (
            ["DTEND;VALUE=DATE:20260330"],
            ("2026-03-28", "2026-03-30", "2026-03-27 23:00/03-29 22:00"),
        ),
        (
            ["DTEND;VALUE=DATE:20260328"],
            ("2026-03-28", "2026-03-29", "2026-03-27 23:00/03-28 23:00"),
        ),
        (["DURATION:P2D"], ("2026-03-28", "2026-03-30", "2026-03-27 23:00/03-29 22:00")),
        (["DURATION:PT12H"], ("2026-03-28", "2026-03-29", "2026-03-27 23:00/03-28 23:00")),
        (
            ["DTEND:20260329T120000"],
            ("2026-03-28", "2026-03-30", "2026-03-27 23:00/03-29 22:00"),
        ),
    ],
)
def test_all_day_events(lines: list[str], found: tuple[str, str, str]) -> None:
    assert days(one("DTSTART;VALUE=DATE:20260328", *lines)) == [found]


def test_days_ending_before_their_start_are_skipped() -> None:
    text = one("DTSTART;VALUE=DATE:20260328", "DTEND;VALUE=DATE:20260320")

    assert days(text) == []


def test_all_day_event_without_midnight() -> None:
    """Santiago's clocks go from 24:00 to 1:00."""
    text = one("DTSTART;VALUE=DATE:20260906", "RRULE:FREQ=DAILY;COUNT=2")

    assert days(text, zone="America/Santiago") == [
        ("2026-09-06", "2026-09-07", "2026-09-06 04:00/09-07 03:00"),
        ("2026-09-07", "2026-09-08", "2026-09-07 03:00/09-08 03:00"),
    ]


def test_all_day_event_on_a_skipped_day() -> None:
    """Apia had no 30 December 2011: a day there takes no time, one hour there begins after it."""
    window = (datetime(2011, 12, 1, tzinfo=UTC), datetime(2012, 2, 1, tzinfo=UTC))
    whole = one("DTSTART;VALUE=DATE:20111229", "RRULE:FREQ=DAILY;COUNT=3")
    hour = one("DTSTART:20111229T090000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=3")

    assert days(whole, zone="Pacific/Apia", window=window) == [
        ("2011-12-29", "2011-12-30", "2011-12-29 10:00/12-30 10:00"),
        ("2011-12-31", "2012-01-01", "2011-12-30 10:00/12-31 10:00"),
    ]
    assert spans(hour, zone="Pacific/Apia", window=window) == [
        "2011-12-29 19:00/20:00",
        "2011-12-30 10:00/11:00",
        "2011-12-30 19:00/20:00",
    ]


# --- What blocks ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("lines", "busy"),
    [
        ([], True),
        (["TRANSP:OPAQUE"], True),
        (["TRANSP:transparent"], False),
        (["STATUS:TENTATIVE"], True),
        (["X-MICROSOFT-CDO-BUSYSTATUS:FREE"], False),
        (["X-MICROSOFT-CDO-BUSYSTATUS:TENTATIVE"], True),
        (["ATTENDEE;PARTSTAT=DECLINED:mailto:Ada@Example.com"], False),
        (["ATTENDEE;PARTSTAT=DECLINED;EMAIL=ada@example.com:urn:uuid:1"], False),
        (["ATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@example.com"], True),
        (["ATTENDEE;PARTSTAT=DECLINED:mailto:bob@example.com"], True),
        (["ATTENDEE;PARTSTAT=DECLINED:mailto:ada@example.com\u212a"], True),
    ],
)
def test_properties_that_make_an_event_busy(lines: list[str], busy: bool) -> None:
    text = one("DTSTART:20260302T090000Z", "DTEND:20260302T100000Z", *lines)

    assert [one.busy for one in read(text, address="ada@example.com")] == [busy]


def test_declined_attendee_is_ignored_without_an_address() -> None:
    text = one("DTSTART:20260302T090000Z", "DURATION:PT1H", "ATTENDEE;PARTSTAT=DECLINED:urn:uuid:1")

    assert [occurrence.busy for occurrence in read(text)] == [True]


def test_cancelled_events_are_skipped() -> None:
    text = one("DTSTART:20260302T090000Z", "DTEND:20260302T100000Z", "STATUS:CANCELLED")

    assert read(text) == []


@pytest.mark.parametrize("kind", ["PRIVATE", "CONFIDENTIAL", "private"])
def test_private_events_have_only_their_time(kind: str) -> None:
    text = one(
        "DTSTART:20260302T090000Z",
        "DTEND:20260302T100000Z",
        f"CLASS:{kind}",
        "SUMMARY:Doctor",
        "LOCATION:Clinic",
        "DESCRIPTION:Tests",
        "ATTENDEE:mailto:doc@example.com",
    )

    found = [occurrence[-4:] for occurrence in read(text)]

    assert found == [("Busy", "", "", ())]


def test_texts_are_cleaned_and_truncated() -> None:
    text = one(
        "DTSTART:20260302T090000Z",
        "DTEND:20260302T100000Z",
        "SUMMARY: a\x00\x07\u0085b\ud800  \\n " + "x" * 300,
        "LOCATION:" + "\x1b" * 5,
        "DESCRIPTION:" + "y" * 30_000,
        *(f"ATTENDEE:mailto:p{number}@example.com" for number in range(150)),
        f"ATTENDEE:mailto:{'z' * 300}@example.com",
        uid="u" * 400,
    )

    (found,) = read(text)

    assert found.uid == "u" * 300
    assert found[-4:] == (
        "ab " + "x" * 197,
        "",
        "y" * 8000,
        tuple(f"p{number}@example.com" for number in range(100)),
    )


# --- What recurs ----------------------------------------------------------------------------------
WEEKLY = ["DTSTART;TZID=Europe/Berlin:20261012T100000", "DTEND;TZID=Europe/Berlin:20261012T110000"]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        # The reading is kept over the clock change of 25 October.
        (
            ["RRULE:FREQ=WEEKLY;COUNT=3"],
            ["2026-10-12 08:00/09:00", "2026-10-19 08:00/09:00", "2026-10-26 09:00/10:00"],
        ),
        (
            ["RRULE:FREQ=WEEKLY;UNTIL=20261026T090000Z"],
            ["2026-10-12 08:00/09:00", "2026-10-19 08:00/09:00", "2026-10-26 09:00/10:00"],
        ),
        (
            ["RRULE:FREQ=WEEKLY;UNTIL=20261026T085959Z"],
            ["2026-10-12 08:00/09:00", "2026-10-19 08:00/09:00"],
        ),
        (
            ["RRULE:FREQ=WEEKLY;UNTIL=20261019"],
            ["2026-10-12 08:00/09:00", "2026-10-19 08:00/09:00"],
        ),
        # Exceptions on the same clock, in UTC, on another one, and as a day.
        (
            ["RRULE:FREQ=WEEKLY;COUNT=3", "EXDATE;TZID=Europe/Berlin:20261019T100000"],
            ["2026-10-12 08:00/09:00", "2026-10-26 09:00/10:00"],
        ),
        (
            ["RRULE:FREQ=WEEKLY;COUNT=3", "EXDATE:20261012T080000Z,20261026T090000Z"],
            ["2026-10-19 08:00/09:00"],
        ),
        (
            ["RRULE:FREQ=WEEKLY;COUNT=3", "EXDATE;TZID=America/New_York:20261019T040000"],
            ["2026-10-12 08:00/09:00", "2026-10-26 09:00/10:00"],
        ),
        (
            ["RRULE:FREQ=WEEKLY;COUNT=3", "EXDATE;VALUE=DATE:20261019"],
            ["2026-10-12 08:00/09:00", "2026-10-26 09:00/10:00"],
        ),
        # Further dates, also as periods, and twice the same.
        (
            [
                "RDATE;TZID=Europe/Berlin:20261026T150000,20261012T100000",
                "RDATE;VALUE=PERIOD:20261027T100000Z/PT30M,20261028T100000Z/20261028T130000Z",
            ],
            [
                "2026-10-12 08:00/09:00",
                "2026-10-26 14:00/15:00",
                "2026-10-27 10:00/10:30",
                "2026-10-28 10:00/13:00",
            ],
        ),
        # Two rules: what both name is there once.
        (
            ["RRULE:FREQ=WEEKLY;COUNT=2", "RRULE:FREQ=DAILY;COUNT=2"],
            ["2026-10-12 08:00/09:00", "2026-10-13 08:00/09:00", "2026-10-19 08:00/09:00"],
        ),
        (
            ["RRULE:FREQ=HOURLY;INTERVAL=8;COUNT=3"],
            ["2026-10-12 08:00/09:00", "2026-10-12 16:00/17:00", "2026-10-13 00:00/01:00"],
        ),
        (
            ["RRULE:FREQ=DAILY;BYHOUR=9,15;BYMINUTE=30;COUNT=3"],
            [
                "2026-10-12 08:00/09:00",
                "2026-10-12 13:30/14:30",
                "2026-10-13 07:30/08:30",
                "2026-10-13 13:30/14:30",
            ],
        ),
    ],
)
def test_recurring_events(lines: list[str], found: list[str]) -> None:
    assert spans(one(*WEEKLY, *lines)) == found


def test_old_and_infinite_rules() -> None:
    """In UTC, as whole days since 1604 (a birthday without a year), and as a rule that counts."""
    window = (datetime(2026, 2, 20, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
    long_ago = one("DTSTART:19710111T120000Z", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;INTERVAL=2")
    birthday = one("DTSTART;VALUE=DATE:16040225", "RRULE:FREQ=YEARLY")
    counted = one(
        "DTSTART:19710101T120000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=20144;INTERVAL=1"
    )

    assert spans(long_ago, window=window) == ["2026-02-23 12:00/13:00"]
    assert days(birthday, window=window) == [
        ("2026-02-25", "2026-02-26", "2026-02-24 23:00/02-25 23:00")
    ]
    assert spans(counted, window=window)[-1] == "2026-02-24 12:00/13:00"


def test_occurrence_that_started_before_the_window() -> None:
    window = (datetime(2026, 3, 4, tzinfo=UTC), datetime(2026, 3, 5, tzinfo=UTC))
    text = one("DTSTART:20260105T000000Z", "DURATION:P3D", "RRULE:FREQ=WEEKLY")

    assert spans(text, window=window) == ["2026-03-02 00:00/03-05 00:00"]


def changed(*lines: str, at: str = "20261019T100000", scope: str = "") -> str:
    return event(f"RECURRENCE-ID{scope};TZID=Europe/Berlin:{at}", *lines)


SERIES = event(*WEEKLY, "RRULE:FREQ=WEEKLY;COUNT=4", "SUMMARY:Old")


@pytest.mark.parametrize(
    ("overrides", "found"),
    [
        (
            [changed("DTSTART:20261020T120000Z", "DURATION:PT2H", "SUMMARY:New")],
            [
                "2026-10-12 08:00/09:00 Old",
                "2026-10-20 12:00/14:00 New",
                "2026-10-26 09:00/10:00 Old",
                "2026-11-02 09:00/10:00 Old",
            ],
        ),
        # Called off once.
        (
            [changed("DTSTART:20261019T080000Z", "DURATION:PT1H", "STATUS:CANCELLED")],
            [
                "2026-10-12 08:00/09:00 Old",
                "2026-10-26 09:00/10:00 Old",
                "2026-11-02 09:00/10:00 Old",
            ],
        ),
        # Named in UTC, and as a day.
        (
            [
                event(
                    "RECURRENCE-ID:20261026T090000Z", "DTSTART:20261026T150000Z", "DURATION:PT1H"
                ),
                event(
                    "RECURRENCE-ID;VALUE=DATE:20261102", "DTSTART:20261102T150000Z", "DURATION:PT1H"
                ),
            ],
            [
                "2026-10-12 08:00/09:00 Old",
                "2026-10-19 08:00/09:00 Old",
                "2026-10-26 15:00/16:00 Busy",
                "2026-11-02 15:00/16:00 Busy",
            ],
        ),
        # This and all that follow: two hours later, half as long, by readings.
        (
            [
                changed(
                    "DTSTART;TZID=Europe/Berlin:20261019T120000",
                    "DTEND;TZID=Europe/Berlin:20261019T123000",
                    "SUMMARY:New",
                    scope=";RANGE=THISANDFUTURE",
                )
            ],
            [
                "2026-10-12 08:00/09:00 Old",
                "2026-10-19 10:00/10:30 New",
                "2026-10-26 11:00/11:30 New",
                "2026-11-02 11:00/11:30 New",
            ],
        ),
        # The higher SEQUENCE counts.
        (
            [
                changed("DTSTART:20261020T120000Z", "DURATION:PT2H", "SEQUENCE:2", "SUMMARY:Two"),
                changed("DTSTART:20261021T120000Z", "DURATION:PT2H", "SEQUENCE:1", "SUMMARY:One"),
            ],
            [
                "2026-10-12 08:00/09:00 Old",
                "2026-10-20 12:00/14:00 Two",
                "2026-10-26 09:00/10:00 Old",
                "2026-11-02 09:00/10:00 Old",
            ],
        ),
    ],
)
def test_overrides_of_occurrences(overrides: list[str], found: list[str]) -> None:
    for parts in ([SERIES, *overrides], [*overrides, SERIES]):
        seen = read(calendar(*parts))
        assert [f"{span(one)} {one.what}" for one in seen] == found


def test_an_override_moved_into_the_window_from_far_away() -> None:
    window = (datetime(2026, 3, 4, tzinfo=UTC), datetime(2026, 3, 5, tzinfo=UTC))
    master = event("DTSTART:20250101T090000Z", "DURATION:PT1H", "RRULE:FREQ=WEEKLY")
    moved = event("RECURRENCE-ID:20250702T090000Z", "DTSTART:20260304T200000Z", "DURATION:PT1H")

    assert spans(calendar(master, moved), window=window) == [
        "2026-03-04 09:00/10:00",
        "2026-03-04 20:00/21:00",
    ]


def test_overrides_without_their_series() -> None:
    """An invitation to some dates of a series."""
    text = calendar(
        changed("DTSTART:20261020T120000Z", "DURATION:PT2H"),
        changed("DTSTART:20261028T120000Z", "DURATION:PT2H", at="20261026T100000"),
        changed("DTSTART:20261104T120000Z", "DURATION:PT2H", "STATUS:CANCELLED", at="20261102T10"),
    )

    assert spans(text.replace("20261102T10\r", "20261102T100000\r")) == [
        "2026-10-20 12:00/14:00",
        "2026-10-28 12:00/14:00",
    ]


def test_several_events_with_one_uid() -> None:
    """Of versions the newest counts; of one version they are different events."""
    versions = calendar(
        event("DTSTART:20260302T090000Z", "DURATION:PT1H", "SEQUENCE:1", "RRULE:FREQ=DAILY"),
        event("DTSTART:20260303T090000Z", "DURATION:PT1H", "SEQUENCE:2"),
    )
    events = calendar(
        event("DTSTART:20260302T090000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=2"),
        event("DTSTART:20260302T150000Z", "DURATION:PT1H"),
    )

    assert spans(versions) == ["2026-03-03 09:00/10:00"]
    assert spans(events) == [
        "2026-03-02 09:00/10:00",
        "2026-03-02 15:00/16:00",
        "2026-03-03 09:00/10:00",
    ]


def test_rule_until_the_last_date() -> None:
    lines = ["DTSTART;TZID=Asia/Tokyo:20261230T090000", "DURATION:PT1H"]

    assert spans(one(*lines, "RRULE:FREQ=DAILY;UNTIL=99991231T235959Z")) == [
        "2026-12-30 00:00/01:00",
        "2026-12-31 00:00/01:00",
    ]


def test_all_day_occurrence_overridden_by_an_hour() -> None:
    text = calendar(
        event("DTSTART;VALUE=DATE:20261012", "RRULE:FREQ=WEEKLY;COUNT=2"),
        event("RECURRENCE-ID;VALUE=DATE:20261019", "DTSTART:20261019T090000Z", "DURATION:PT1H"),
    )

    assert [(occurrence.all_day, span(occurrence)) for occurrence in read(text)] == [
        (True, "2026-10-11 22:00/10-12 22:00"),
        (False, "2026-10-19 09:00/10:00"),
    ]


# --- Bounds ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY",
        "FREQ=MINUTELY;INTERVAL=10",
        "FREQ=HOURLY;BYMINUTE=0,1",
        "FREQ=DAILY;BYHOUR=0,6,12,18;BYMINUTE=0,5,10,15,20,25,30",
        "FREQ=HOURLY",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;BYDAY=XX",
        "FREQ=FORTNIGHTLY",
        "INTERVAL=2",
        "FREQ=DAILY;UNTIL=2026",
        "FREQ=DAILY;COUNT=two",
        "FREQ=MONTHLY;SKIP=FORWARD;RSCALE=GREGORIAN",
    ],
)
def test_wrong_rules_are_refused(rule: str) -> None:
    with pytest.raises(UnreadableCalendar):
        read(one("DTSTART:20260101T000000Z", "DURATION:PT1M", f"RRULE:{rule}"))


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31;COUNT=1000000",
        "FREQ=MONTHLY;BYDAY=5MO;BYMONTHDAY=1",
        "FREQ=YEARLY;INTERVAL=9999",
    ],
)
def test_rules_without_occurrences_end_soon(rule: str) -> None:
    text = one("DTSTART:19750105T000000Z", "DURATION:PT1H", f"RRULE:{rule}")

    assert read(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT",
        "END:VCALENDAR",
        "BEGIN:VCARD\r\nEND:VCARD\r\n",
        "SUMMARY:x\r\nBEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n",
        "BEGIN:VEVENT\r\nEND:VEVENT\r\n" * 500_000,
        "\n" * 1_000_000,
        "x" * 11_000_000,
        "BEGIN:VCALENDAR\r\n" * 100_000,
        "BEGIN:VCALENDAR\r\n" + "SUMMARY:x\r\n" * 150_000,
        one("DTSTART:20260101T000000Z", "EXDATE:" + "20260101T000000Z," * 10_000),
        one(
            "DTSTART:20260101T000000Z",
            *["RDATE:20270101T000000Z" + ",20270101T000000Z" * 5000] * 30,
        ),
        one("DTSTART:20260101T000000Z", *["ATTENDEE;" + "A=b;" * 4000 + "C=d:mailto:a@b.c"] * 200),
        calendar(*[event("DTSTART:19700101T000000Z", "RRULE:FREQ=DAILY;COUNT=9")] * 101),
        one("DTSTART:20260230T000000Z", "DURATION:PT1H"),
        one("DTSTART:20260101T000000Z", "DTEND:tomorrow"),
        one("DTSTART:20260101T000000Z", "DURATION:1 hour"),
        one("DTSTART:99991231T235959Z", "DURATION:P9999999D"),
    ],
    ids=range(19),
)
def test_malformed_texts_are_refused(text: str) -> None:
    with pytest.raises(UnreadableCalendar):
        read(text)


def test_large_inline_attachment_is_ignored() -> None:
    attachment = "ATTACH;ENCODING=BASE64;VALUE=BINARY:" + "\r\n ".join(["QUJD" * 18] * 50_000)
    text = one("DTSTART:20260302T090000Z", "DURATION:PT1H", attachment)

    assert spans(text) == ["2026-03-02 09:00/10:00"]


def test_events_outside_the_supported_years() -> None:
    everything = (datetime(1970, 1, 1, tzinfo=UTC), datetime(2199, 12, 31, tzinfo=UTC))
    text = one("DTSTART;VALUE=DATE:16000101", "DTEND;VALUE=DATE:30000101")

    (found,) = read(text, window=everything, zone="UTC")

    assert (found.start, found.end, found.start_date, found.end_date) == (
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2199, 12, 31, 23, 59, 59, tzinfo=UTC),
        date(1970, 1, 1),
        date(2199, 12, 31),
    )


def test_texts_without_uid_and_with_two() -> None:
    nameless = calendar("BEGIN:VEVENT\r\nDTSTART:20260302T090000Z\r\nDURATION:PT1H\r\nEND:VEVENT")
    two = calendar(
        event("DTSTART:20260302T090000Z", "DURATION:PT1H", uid="a"),
        event("DTSTART:20260303T090000Z", "DURATION:PT1H", uid="b"),
    )

    assert [one.uid for one in read(nameless)] == [""]
    assert [(one.uid, span(one)) for one in read(two)] == [
        ("a", "2026-03-02 09:00/10:00"),
        ("a", "2026-03-03 09:00/10:00"),
    ]


@given(
    zone=st.sampled_from([BERLIN, "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]),
    start=st.datetimes(datetime(2020, 1, 1), datetime(2026, 12, 31)).map(
        lambda moment: moment.replace(microsecond=0, fold=0)
    ),
    minutes=st.integers(1, 3000),
    interval=st.integers(1, 5),
    left_out=st.sets(st.integers(0, 50), max_size=4),
)
def test_daily_series_against_counting(
    zone: str, start: datetime, minutes: int, interval: int, left_out: set[int]
) -> None:
    """Each reading on its own: kept by the wall clock, a gap's end where it does not exist."""
    window = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 10, tzinfo=UTC))
    walls = [start + timedelta(days=interval * number) for number in range(2600)]
    skipped = {walls[number] for number in left_out}
    text = one(
        f"DTSTART;TZID={zone}:{start:%Y%m%dT%H%M%S}",
        f"DTEND;TZID={zone}:{start + timedelta(minutes=minutes):%Y%m%dT%H%M%S}",
        f"RRULE:FREQ=DAILY;INTERVAL={interval}",
        *(f"EXDATE;TZID={zone}:{wall:%Y%m%dT%H%M%S}" for wall in sorted(skipped)),
    )

    expected = []
    for wall in walls:
        begins = instant(wall, zone)
        ends = instant(wall + timedelta(minutes=minutes), zone)
        ends = ends if ends > begins else begins + timedelta(minutes=minutes)
        if wall not in skipped and begins < window[1] and ends > window[0]:
            expected.append((begins, ends))

    found: Sequence[CalendarOccurrence] = read(text, window=window)
    assert [(one.start, one.end) for one in found] == sorted(expected)


def instant(wall: datetime, zone: str) -> datetime:
    """Second by second: the first instant at which the clock shows the reading or a later one."""
    place = ZoneInfo(zone)
    guess = wall.replace(tzinfo=place, fold=0).astimezone(UTC)
    if guess.astimezone(place).replace(tzinfo=None, fold=0) == wall:
        return guess
    while guess.astimezone(place).replace(tzinfo=None, fold=0) >= wall:
        guess -= timedelta(minutes=1)
    while guess.astimezone(place).replace(tzinfo=None, fold=0) < wall:
        guess += timedelta(seconds=1)
    return guess
