"""Rules as iCalendar (RFC 7953): what is written, what is read, and that both agree."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from apps_config.models import Membership
from availability.core.constraints import open_windows, parse_constraints
from availability.ical_availability import availability_text, read_availability
from common.ical.components import UnreadableCalendar
from tests.world import BERLIN, Answer, Caller, Tenant

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)
ID = uuid.UUID("01a208b2-6047-8000-802b-a6b6b5628c6d")
WEEK = [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 17}}]
PERIOD = {"start": "2026-12-24 00:00:00", "end": "2026-12-27 00:00:00"}
SATURDAY = {"start": "2026-11-28 10:00:00", "end": "2026-11-28 14:00:00", "name": "Fair"}
TUESDAYS = {
    "start": "2026-11-24 17:00:00",
    "duration": "3 hours",
    "rrule": "FREQ=WEEKLY;INTERVAL=2",
}
DAY = {"date": "2026-12-23", "windows": [{"start": 9, "end": 12}, {"start": "13:30", "end": 24}]}
LISTS: list[list[dict[str, Any]]] = [
    [],
    WEEK,
    [{"allow_weekends": {}}],
    [{"block_weekdays": {}}, {"block_weekends": {}}],
    [{"allow_hours": {"start": 0, "end": 24}}],
    [{"allow_day_and_time": {"day": "Friday", "start": 18, "end": 2}}],
    [{"allow_day_and_time": {"day": "Sunday", "start": 18, "end": 2}}],
    [*WEEK, {"block_hours": {"start": 12, "end": 13}}],
    [*WEEK, {"block_period": {**PERIOD, "name": "Holidays, with; signs\\"}}],
    [
        *WEEK,
        {"block_period": {"start": "2026-12-01T00:00:00+05:00", "end": "2026-12-02T10:00:00Z"}},
    ],
    [*WEEK, {"open_period": SATURDAY}],
    [{"open_period": SATURDAY}],
    [{"open_recurring": TUESDAYS}],
    [*WEEK, {"open_recurring": TUESDAYS}, {"open_period": SATURDAY}, {"block_period": PERIOD}],
    [*WEEK, {"open_recurring": {**TUESDAYS, "rrule": "FREQ=WEEKLY;UNTIL=20261210"}}],
    [*WEEK, {"open_recurring": {**TUESDAYS, "rrule": "FREQ=WEEKLY;COUNT=3"}}],
    [*WEEK, {"replace_day": DAY}, {"replace_day": {"date": "2026-12-24", "windows": []}}],
    [{"replace_day": DAY}],
    [*WEEK, {"allow_period": {"start": "2026-12-01", "end": "2027-01-01"}}],
    [
        *WEEK,
        {"allow_period": {"start": "2026-12-01", "end": "2026-12-10"}},
        {"allow_period": {"start": "2026-12-15", "end": "2027-01-01T00:00:00Z"}},
        {"replace_day": {"date": "2026-12-05", "windows": [{"start": 9, "end": 12}]}},
    ],
]


def write(rules: list[dict[str, Any]], zone: str = BERLIN) -> str:
    return availability_text(parse_constraints(rules), zone, id=ID, updated_at=NOW)


def windows(rules: list[dict[str, Any]], zone: str) -> Any:
    start, end = (int(datetime(2026, month, 15, tzinfo=UTC).timestamp()) for month in (11, 12))
    lists = (parse_constraints(rules),)
    return open_windows(lists, zone, start, end + 30 * 86400)


@pytest.mark.parametrize("zone", [BERLIN, "UTC", "America/New_York"])
@pytest.mark.parametrize("rules", LISTS)
@pytest.mark.matrix
def test_what_is_written_is_read_as_the_same_time(rules: Any, zone: str) -> None:
    text = write(rules, zone)

    found = read_availability(text, zone, now=NOW)

    assert found.not_read == []
    assert windows(found.constraints, zone) == windows(rules, zone)
    again = read_availability(write(found.constraints, zone), zone, now=NOW)
    assert again == found


def test_the_text() -> None:
    rules = [*WEEK, {"block_period": PERIOD}, {"block_holidays": {"country": "DE"}}]

    lines = write(rules, "UTC").split("\r\n")

    assert lines == [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Scheduling and booking//Availability//EN",
        "BEGIN:VAVAILABILITY",
        "DTSTAMP:20261120T090000Z",
        f"UID:{ID}-1",
        "COMMENT:Not included: block_holidays country=DE",
        "PRIORITY:9",
        "BEGIN:AVAILABLE",
        "DTEND:19700105T170000Z",
        "DTSTAMP:20261120T090000Z",
        "DTSTART:19700105T090000Z",
        "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
        f"UID:{ID}-2",
        "END:AVAILABLE",
        "END:VAVAILABILITY",
        "BEGIN:VAVAILABILITY",
        "DTSTART:20261224T000000Z",
        "DTEND:20261227T000000Z",
        "DTSTAMP:20261120T090000Z",
        f"UID:{ID}-3",
        "PRIORITY:1",
        "END:VAVAILABILITY",
        "END:VCALENDAR",
        "",
    ]


def calendar(*lines: str) -> str:
    return "\r\n".join(["BEGIN:VCALENDAR", *lines, "END:VCALENDAR", ""])


def base(*lines: str, more: str = "") -> list[str]:
    part = ["BEGIN:AVAILABLE", *lines, "END:AVAILABLE"]
    return ["BEGIN:VAVAILABILITY", *filter(None, [more]), *part, "END:VAVAILABILITY"]


NINE = ("DTSTART:20260105T090000", "DTEND:20260105T170000")


@pytest.mark.parametrize(
    ("lines", "constraints", "not_read"),
    [
        (
            base(*NINE, "RRULE:FREQ=WEEKLY;BYDAY=MO,WE"),
            [
                {"allow_day_and_time": {"day": day, "start": "09:00", "end": "17:00"}}
                for day in ("Monday", "Wednesday")
            ],
            [],
        ),
        (
            base("DTSTART:20260105T090000", "DURATION:PT1H30M", "RRULE:FREQ=DAILY"),
            [
                {"allow_day_and_time": {"day": day, "start": "09:00", "end": "10:30"}}
                for day in (
                    *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
                    *("Saturday", "Sunday"),
                )
            ],
            [],
        ),
        (
            base("DTSTART:20270104T090000", "DTEND:20270104T170000", "RRULE:FREQ=WEEKLY"),
            [
                {
                    "open_recurring": {
                        "start": "2027-01-04 09:00:00",
                        "duration": "480 minutes",
                        "rrule": "FREQ=WEEKLY",
                    }
                }
            ],
            [],
        ),
        (
            base(*NINE, "RRULE:FREQ=WEEKLY", "EXDATE:20261221T090000", "RDATE:20261222T090000"),
            [
                {"allow_day_and_time": {"day": "Monday", "start": "09:00", "end": "17:00"}},
                {"open_period": {"start": "2026-12-22 09:00:00", "end": "2026-12-22 17:00:00"}},
                {"block_period": {"start": "2026-12-21 09:00:00", "end": "2026-12-21 17:00:00"}},
            ],
            [],
        ),
        (
            base(*NINE, "RRULE:FREQ=HOURLY"),
            [{"block_weekdays": {}}, {"block_weekends": {}}],
            ["VAVAILABILITY 1, AVAILABLE 1: FREQ can't be HOURLY."],
        ),
        (
            base("DTSTART:20260105T090000Z", "DURATION:PT1H", "RRULE:FREQ=WEEKLY"),
            [{"block_weekdays": {}}, {"block_weekends": {}}],
            ["VAVAILABILITY 1, AVAILABLE 1: repeated time must be in Europe/Berlin."],
        ),
        (
            base("DTSTART;TZID=Asia/Tokyo:20260105T090000", "DURATION:PT1H"),
            [{"block_weekdays": {}}, {"block_weekends": {}}],
            [
                "VAVAILABILITY 1, AVAILABLE 1: the time zone Asia/Tokyo is not Europe/Berlin.",
            ],
        ),
        (
            [
                *base(*NINE, "RRULE:FREQ=WEEKLY", more="PRIORITY:1"),
                "BEGIN:VAVAILABILITY",
                "DTSTART:20261224T000000",
                "DTEND:20261225T000000",
                "END:VAVAILABILITY",
            ],
            [{"allow_day_and_time": {"day": "Monday", "start": "09:00", "end": "17:00"}}],
            ["VAVAILABILITY 2: its PRIORITY is lower than that of VAVAILABILITY 1."],
        ),
        (
            [
                "BEGIN:VAVAILABILITY",
                "DTSTART;VALUE=DATE:20261224",
                "DTEND;VALUE=DATE:20261225",
                "SUMMARY:Christmas",
                "END:VAVAILABILITY",
            ],
            [
                {
                    "block_period": {
                        "start": "2026-12-24 00:00:00",
                        "end": "2026-12-25 00:00:00",
                        "name": "Christmas",
                    }
                }
            ],
            [],
        ),
        (
            [
                "BEGIN:VAVAILABILITY",
                "DTSTART:20261201T000000",
                "DTEND:20261231T000000",
                "BEGIN:AVAILABLE",
                *NINE,
                "RRULE:FREQ=WEEKLY",
                "END:AVAILABLE",
                "END:VAVAILABILITY",
            ],
            [],
            ["VAVAILABILITY 1: it has a start, an end and repeated time."],
        ),
        (
            base(*NINE, "RRULE:FREQ=WEEKLY", more="DTSTART:20260101T000000"),
            [{"allow_day_and_time": {"day": "Monday", "start": "09:00", "end": "17:00"}}],
            ["VAVAILABILITY 1: its start or end; it applies at any time."],
        ),
    ],
)
def test_what_is_read(lines: list[str], constraints: Any, not_read: list[str]) -> None:
    found = read_availability(calendar(*lines), BERLIN, now=NOW)

    assert (found.constraints, found.not_read) == (constraints, not_read)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n",
        calendar("BEGIN:VAVAILABILITY", "DTSTART:soon", "END:VAVAILABILITY"),
        calendar(*base("DTSTART:20261301T000000", "RRULE:FREQ=WEEKLY")),
        calendar(*base(*NINE, "RRULE:FREQ=OFTEN")),
    ],
)
def test_what_is_no_availability(text: str) -> None:
    with pytest.raises(UnreadableCalendar):
        read_availability(text, BERLIN, now=NOW)


# --- The endpoint ---------------------------------------------------------------------------------
@pytest.fixture
def ada(tenant: Tenant) -> Any:
    rules = [*WEEK, {"block_holidays": {"country": "DE"}}]
    return tenant.make_resource("Ada", BERLIN, availability_constraints=rules)


def put(caller: Caller, path: str, body: str | bytes, kind: str = "text/calendar") -> Answer:
    raw = body if isinstance(body, bytes) else body.encode()
    return caller.call("PUT", path, raw, {"Content-Type": kind})


def path_of(resource: Any) -> str:
    return f"/resources/{resource['id']}/availability.ics"


def rules_of(tenant: Tenant, resource: Any) -> Any:
    found = tenant.get(f"/resources/{resource['id']}?include=availability_constraints").data
    return found["availability_constraints"]


HOLIDAYS = {"block_holidays": {"country": "DE"}}
MONDAYS = calendar(*base(*NINE, "RRULE:FREQ=WEEKLY"))


@pytest.mark.both_databases
def test_a_text_replaces_the_rules_but_those_that_it_cant_contain(tenant: Tenant, ada: Any) -> None:
    written = tenant.get(path_of(ada))

    same = put(tenant, path_of(ada), written.content)
    other = put(tenant, path_of(ada), MONDAYS, "text/calendar; charset=utf-8")

    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
    assert written.headers["Content-Type"] == "text/calendar; charset=utf-8"
    assert same.data == {
        "availability_constraints": [
            *({"allow_day_and_time": {"day": day, "start": 9, "end": 17}} for day in days),
            HOLIDAYS,
        ],
        "not_read": [],
        "kept": [HOLIDAYS],
    }
    monday = {"allow_day_and_time": {"day": "Monday", "start": 9, "end": 17}}
    assert other.data["availability_constraints"] == [monday, HOLIDAYS]
    assert rules_of(tenant, ada) == [monday, HOLIDAYS]


def test_the_schedule_is_named(tenant: Tenant) -> None:
    schedule = tenant.post("/schedules", {"name": "Practice hours"}).data
    ada = tenant.make_resource("Ada", BERLIN, schedule_id=schedule["id"])

    text = tenant.get(path_of(ada)).content.decode()

    assert "\r\nCOMMENT:Not included: the schedule Practice hours\r\n" in text


MANY = calendar(
    *(
        line
        for number in range(201)
        for line in (
            "BEGIN:VAVAILABILITY",
            f"DTSTART:20261224T00{number // 60:02}{number % 60:02}",
            "DTEND:20261225T000000",
            "END:VAVAILABILITY",
        )
    )
)


@pytest.mark.parametrize(
    ("body", "kind", "status", "message"),
    [
        (MONDAYS, "application/json", 415, "The body must be text/calendar in UTF-8."),
        (
            MONDAYS,
            "text/calendar; charset=latin-1",
            415,
            "The body must be text/calendar in UTF-8.",
        ),
        (b"BEGIN:VCALENDAR\r\n\0", "text/calendar", 400, "The body contains a NUL character."),
        (b"\xed\xa0\x80", "text/calendar", 400, "The body is not valid UTF-8 (byte 0)."),
        ("x", "text/calendar", 400, "The text is not a calendar."),
        (calendar(), "text/calendar", 400, "The text has no VAVAILABILITY."),
        ("x" * 1_000_000, "text/calendar", 413, "The body is larger than 256 kB."),
        (MANY, "text/calendar", 422, "availability_constraints: At most 200 constraints."),
    ],
)
def test_a_wrong_body_changes_nothing(
    tenant: Tenant, ada: Any, body: Any, kind: str, status: int, message: str
) -> None:
    answer = put(tenant, path_of(ada), body, kind)

    assert (answer.status, answer.error["error"]) == (status, message)
    assert rules_of(tenant, ada) == [*WEEK, HOLIDAYS]


def test_who_may(tenant: Tenant, make_tenant: Any, ada: Any) -> None:
    foreign = make_tenant().make_resource("Eve")
    viewer = tenant.member("viewer@example.com", Membership.VIEWER)
    created = tenant.post("/resources", {"name": "Bob", "timezone": "UTC"}).data
    own = Caller(created["api_token"])

    def statuses(caller: Caller, resource: Any) -> tuple[int, int]:
        path = path_of(resource)
        return caller.get(path).status, put(caller, path, MONDAYS).status

    assert statuses(tenant.widget(), ada) == (403, 403)
    assert statuses(tenant, foreign) == (404, 404)
    assert statuses(viewer, ada) == (200, 403)
    assert statuses(own, created) == (200, 200)
    assert statuses(own, ada) == (404, 404)
    assert rules_of(tenant, ada) == [*WEEK, HOLIDAYS]
