"""`import ics`, and the times and opening hours of all sources."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from scheduling_client.importing.hours import make_rules, without_breaks
from scheduling_client.importing.records import Unusable
from scheduling_client.importing.times import instant

from tests.live import LiveApp
from tests.sdk.importing import import_rows, imported, row
from tests.services import Service

CALENDAR = """\
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Example//EN
BEGIN:VEVENT
UID:staff
DTSTART;TZID=Europe/Berlin:20301230T090000
DTEND;TZID=Europe/Berlin:20301230T100000
RRULE:FREQ=WEEKLY;UNTIL=20310120T080000Z
EXDATE;TZID=Europe/Berlin:20310106T090000
SUMMARY:Staff
END:VEVENT
BEGIN:VEVENT
UID:staff
RECURRENCE-ID;TZID=Europe/Berlin:20310113T090000
DTSTART;TZID=Europe/Berlin:20310113T110000
DURATION:PT30M
SUMMARY:Staff\\, later
END:VEVENT
BEGIN:VEVENT
UID:night
DTSTART;TZID=Europe/Berlin:20311025T023000
DTEND;TZID=Europe/Berlin:20311025T033000
RRULE:FREQ=DAILY;COUNT=2
SUMMARY:Night
END:VEVENT
BEGIN:VEVENT
UID:free
DTSTART:20310107T090000Z
DTEND:20310107T100000Z
TRANSP:TRANSPARENT
END:VEVENT
BEGIN:VEVENT
UID:holiday
DTSTART;VALUE=DATE:20310108
SUMMARY:Holiday
END:VEVENT
BEGIN:VEVENT
UID:strange
DTSTART;TZID=Customized Time Zone:20310107T090000
DTEND;TZID=Customized Time Zone:20310107T100000
END:VEVENT
END:VCALENDAR
"""
MEETING = """\
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Example//EN
BEGIN:VEVENT
UID:meeting;1@example.com
DTSTART:20310107T090000Z
DTEND:20310107T100000Z
SUMMARY:Check-up
LOCATION:Room 2
ORGANIZER:mailto:ada@example.com
ATTENDEE;CN=Ada:mailto:Ada@example.com
ATTENDEE;CN=Marty McFly:mailto:marty@example.com
ATTENDEE;CUTYPE=ROOM;CN=Room:mailto:room@example.com
END:VEVENT
BEGIN:VEVENT
UID:alone
DTSTART:20310108T090000Z
DTEND:20310108T100000Z
END:VEVENT
END:VCALENDAR
"""


HOLIDAY = """\
BEGIN:VCALENDAR
BEGIN:VEVENT
UID:day
DTSTART;VALUE=DATE:20310106
SUMMARY:Holiday
END:VEVENT
END:VCALENDAR
"""


@pytest.fixture
def app(live_service: Service) -> LiveApp:
    app = LiveApp(live_service)
    app.post("/v2/resources", {"name": "Ada", "timezone": "Europe/Berlin"})
    return app


def write(folder: Path, text: str) -> list[str]:
    path = folder / "calendar.ics"
    path.write_text(text.replace("\n", "\r\n"))
    return ["ics", str(path), "--resource", "Ada"]


def listed_events(app: LiveApp) -> list[tuple[Any, ...]]:
    events = app.get("/v2/events?start=2030-12-01&end=2031-12-01&orderBy=start&sortedBy=asc").data
    return [(each["what"], each["start"], each["end"]) for each in events]


def test_calendar_file_blocks_time(app: LiveApp, tmp_path: Path) -> None:
    arguments = [*write(tmp_path, CALENDAR), "--until", "2032-01-01"]

    first = import_rows(app, tmp_path, *arguments)
    second = import_rows(app, tmp_path, *arguments)

    def rows(outcome: str) -> list[dict[str, str]]:
        keys = ("staff/20301230T090000", "staff/20310120T090000", "staff/20310113T090000")
        starts = ("2030-12-30T08", "2031-01-20T08", "2031-01-13T10")
        return [
            *(
                row("event", f"ics:{key}", outcome, f"{start}:00:00+00:00")
                for key, start in zip(keys, starts, strict=True)
            ),
            row("event", "ics:night/20311025T023000", outcome, "2031-10-25T00:30:00+00:00"),
            row(
                "event",
                "ics:night/20311026T023000",
                "failed",
                reason="2031-10-26 02:30 occurs twice in Europe/Berlin: the clocks change.",
            ),
            row("event", "ics:free", "skipped", reason="It takes no time (TRANSPARENT)."),
            row("event", "ics:holiday", outcome, "2031-01-07T23:00:00+00:00"),
            row(
                "event",
                "ics:strange",
                "failed",
                reason="'Customized Time Zone' is no time zone of the IANA database.",
            ),
        ]

    assert first == (1, rows("created"))
    assert second == (1, rows("unchanged"))
    assert listed_events(app) == [
        ("Staff", "2030-12-30T08:00:00+00:00", "2030-12-30T09:00:00+00:00"),
        ("Holiday", "2031-01-07T23:00:00+00:00", "2031-01-08T23:00:00+00:00"),
        ("Staff, later", "2031-01-13T10:00:00+00:00", "2031-01-13T10:30:00+00:00"),
        ("Staff", "2031-01-20T08:00:00+00:00", "2031-01-20T09:00:00+00:00"),
        ("Night", "2031-10-25T00:30:00+00:00", "2031-10-25T01:30:00+00:00"),
    ]


def test_calendar_file_as_bookings(app: LiveApp, tmp_path: Path) -> None:
    arguments = [*write(tmp_path, MEETING), "--as", "bookings"]

    first = import_rows(app, tmp_path, *arguments)
    second = import_rows(app, tmp_path, *arguments)

    uid = "ics:meeting;1@example.com"

    def rows(outcome: str) -> list[dict[str, str]]:
        return [
            row("booking", uid, outcome, "2031-01-07T09:00:00+00:00"),
            row("booking", "ics:alone", "skipped", reason="It has no attendee."),
        ]

    assert (first, second) == ((0, rows("created")), (0, rows("unchanged")))
    assert imported(app)["bookings"] == [
        {
            "external_id": uid,
            "resource": "Ada",
            "project": None,
            "state": "confirmed",
            "start": "2031-01-07T09:00:00+00:00",
            "end": "2031-01-07T10:00:00+00:00",
            "what": "Check-up",
            "where": "Room 2",
            "description": "",
            "note": None,
            "customers": [
                {"name": "Marty McFly", "email": "marty@example.com", "phone": "", "timezone": ""}
            ],
        }
    ]


def test_file_that_is_no_calendar(
    app: LiveApp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, rows = import_rows(app, tmp_path, *write(tmp_path, "Hello\n"))

    assert (code, rows) == (2, [])
    assert "calendar.ics is no calendar file" in capsys.readouterr().err


def test_calendar_file_of_another_zone_than_the_resource(app: LiveApp, tmp_path: Path) -> None:
    arguments = [*write(tmp_path, HOLIDAY), "--timezone", "America/New_York"]

    result = import_rows(app, tmp_path, *arguments)

    assert result == (0, [row("event", "ics:day", "created", "2031-01-06T05:00:00+00:00")])


def test_calendar_file_of_an_unknown_resource(
    app: LiveApp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ics", write(tmp_path, CALENDAR)[1], "--resource", "Ada Berg"]

    assert import_rows(app, tmp_path, *words) == (2, [])
    assert capsys.readouterr().err == "import: No resource has the id or name 'Ada Berg'.\n"


# --- Times and opening hours ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2031-01-06T09:00:00+01:00", None, "2031-01-06T08:00:00+00:00"),
        ("2031-01-06T09:00:00.123Z", None, "2031-01-06T09:00:00+00:00"),
        ("2031-01-06 09:00", "Europe/Berlin", "2031-01-06T08:00:00+00:00"),
        ("2031-07-06 09:00", "Europe/Berlin", "2031-07-06T07:00:00+00:00"),
        ("2031-10-26 03:00", "Europe/Berlin", "2031-10-26T02:00:00+00:00"),
        ("2031-10-26T02:30:00+01:00", "Europe/Berlin", "2031-10-26T01:30:00+00:00"),
    ],
)
def test_time_of_a_source(text: str, zone: str | None, expected: str) -> None:
    assert instant(text, zone).isoformat() == expected


@pytest.mark.parametrize(
    ("text", "zone", "reason"),
    [
        ("2031-10-26 02:00", "Europe/Berlin", "2031-10-26 02:00 occurs twice in Europe/Berlin"),
        ("2031-03-30 02:30", "Europe/Berlin", "2031-03-30 02:30 occurs never in Europe/Berlin"),
        ("2031-03-30 02:30", None, "'2031-03-30 02:30' has no offset, and its time zone"),
        ("2031-03-30 02:30", "Berlin", "'Berlin' is no time zone"),
        ("soon", None, "'soon' is no time"),
    ],
)
def test_time_of_a_source_that_is_refused(text: str, zone: str | None, reason: str) -> None:
    with pytest.raises(Unusable) as refused:
        instant(text, zone)

    assert str(refused.value).startswith(reason)


def test_hours_become_rules() -> None:
    weekly = {"Friday": [("13:00", "17:00"), ("09:00", "12:00"), ("11:00", "12:30")]}
    dates = {"2030-01-01": [], "2031-01-01": [("10:00", "24:00")]}

    assert make_rules(weekly, dates, since=date(2030, 6, 1)) == (
        {"allow_day_and_time": {"day": "Friday", "start": "09:00", "end": "12:30"}},
        {"allow_day_and_time": {"day": "Friday", "start": "13:00", "end": "17:00"}},
        {"replace_day": {"date": "2031-01-01", "windows": [{"start": "10:00", "end": "24:00"}]}},
    )
    # Without any hours, closed: an empty list would be open at all times.
    assert make_rules({}, {}, since=date(2030, 6, 1)) == (
        {"block_weekdays": {}},
        {"block_weekends": {}},
    )


def test_breaks_are_cut_out_of_a_day() -> None:
    day = (("09:00", "17:00"),)

    assert without_breaks(day, [("12:00", "13:00"), ("12:30", "13:30"), ("16:00", "18:00")]) == (
        ("09:00", "12:00"),
        ("13:30", "16:00"),
    )
    assert without_breaks(day, [("08:00", "18:00")]) == ()
