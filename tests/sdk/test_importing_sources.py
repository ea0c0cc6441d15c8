"""`import` from Cal.com, Calendly, Easy!Appointments and Timekit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scheduling_client import Client

from tests.live import LiveApp
from tests.sdk.importing import FakeSource, import_rows, imported, row
from tests.services import Service

KEY = "source_key_that_no_report_shows"


@pytest.fixture
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture
def source() -> Iterator[FakeSource]:
    source = FakeSource()
    source.start()
    yield source
    source.stop()


# --- What is expected -----------------------------------------------------------------------------
MARTY = {
    "name": "Marty McFly",
    "email": "marty@example.com",
    "phone": "",
    "timezone": "America/Los_Angeles",
}
TERMS = {
    "length": "30 minutes",
    "buffer_before": "0 minutes",
    "buffer_after": "0 minutes",
    "from": "now",
    "round_to_nearest_hour": False,
}


def open_on(day: str, start: int, end: int) -> dict[str, Any]:
    return {"allow_day_and_time": {"day": day, "start": start, "end": end}}


def resource_record(
    external_id: str, name: str, email: str, *rules: dict[str, Any]
) -> dict[str, Any]:
    return {
        "external_id": external_id,
        "name": name,
        "timezone": "Europe/Berlin",
        "email": email,
        "tags": [],
        "capacity": 1,
        "rules": list(rules),
    }


def project_record(
    external_id: str, name: str, resource: str, terms: dict[str, Any], booking: dict[str, Any]
) -> dict[str, Any]:
    return {
        "external_id": external_id,
        "name": name,
        "resources": [resource],
        "availability": terms,
        "rules": [],
        "booking": booking,
        "published": False,
    }


# --- Easy!Appointments ----------------------------------------------------------------------------
DAY = {"start": "09:00", "end": "17:00", "breaks": [{"start": "12:00", "end": "13:00"}]}
PLAN = {**dict.fromkeys(("sunday", "tuesday", "wednesday", "thursday", "friday", "saturday"))}
PROVIDER = {
    "id": 2,
    "firstName": "Chris",
    "lastName": "Doe",
    "email": "chris@example.org",
    "timezone": "Europe/Berlin",
    "services": [6],
    "settings": {
        "username": "chrisdoe",
        "workingPlan": {**PLAN, "monday": DAY},
        "workingPlanExceptions": [
            {
                "startDate": "2031-01-07",
                "endDate": "2031-01-08",
                "startTime": "10:00",
                "endTime": "12:00",
                "breaks": [],
            },
            {
                "startDate": "2031-01-06",
                "endDate": "2031-01-06",
                "startTime": None,
                "endTime": None,
            },
        ],
    },
}
SERVICE = {
    "id": 6,
    "name": "Check-up",
    "duration": 30,
    "price": 10,
    "location": "Room 2",
    "description": "",
    "slotInterval": 15,
    "attendantsNumber": 1,
}
CUSTOMER = {
    "id": 5,
    "firstName": "Marty",
    "lastName": "McFly",
    "email": "marty@example.com",
    "phone": "+1 555 0100",
    "timezone": "America/Los_Angeles",
}


def appointment(id: int, start: str, end: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "start": f"2031-01-{start}:00",
        "end": f"2031-01-{end}:00",
        "hash": "x",
        "status": "Booked",
        "notes": "Allergic",
        "location": None,
        "customerId": 5,
        "providerId": 2,
        "serviceId": 6,
        **more,
    }


def easyappointments(source: FakeSource) -> list[str]:
    def says(name: str, *rows: Any) -> None:
        source.says(f"/index.php/api/v1/{name}", list(rows), page=1, length=100, sort="+id")

    says("providers", PROVIDER, {**PROVIDER, "id": 3, "timezone": "Mars", "services": []})
    says("services", SERVICE, {**SERVICE, "id": 7, "duration": None})
    says("customers", CUSTOMER, {**CUSTOMER, "id": 8, "email": ""})
    says(
        "appointments",
        appointment(1, "13 09:00", "13 09:30"),
        appointment(2, "13 10:00", "13 10:30", status="Cancelled"),
        appointment(3, "13 11:00", "13 11:30", customerId=8),
        appointment(4, "13 11:00", "nonsense"),
        appointment(5, "13 13:00", "13 13:30", serviceId=7),
    )
    says(
        "unavailabilities",
        {
            "id": 9,
            "start": "2031-01-14 09:00:00",
            "end": "2031-01-14 10:00:00",
            "notes": "Doctor",
            "providerId": 2,
        },
    )
    says(
        "blocked_periods",
        {
            "id": 1,
            "name": "Works",
            "start": "2031-01-20 00:00:00",
            "end": "2031-01-21 00:00:00",
            "notes": "",
        },
    )
    return ["easyappointments", "--from", source.url("/index.php/api/v1")]


def test_easyappointments_are_imported(
    app: LiveApp, source: FakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EASYAPPOINTMENTS_TOKEN", KEY)

    code, rows = import_rows(app, tmp_path, *easyappointments(source))

    mars = "'Mars' is no time zone of the IANA database."
    assert code == 1
    assert rows == [
        row("resource", "easyappointments:2", "created", "Chris Doe"),
        row("resource", "easyappointments:3", "failed", reason=mars),
        row("service", "easyappointments:6", "created", "Check-up"),
        row("service", "easyappointments:7", "failed", reason="No provider offers it."),
        row("booking", "easyappointments:1", "created", "2031-01-13T08:00:00+00:00"),
        row(
            "booking",
            "easyappointments:2",
            "skipped",
            "2031-01-13T09:00:00+00:00",
            reason="It is cancelled.",
        ),
        row("booking", "easyappointments:3", "failed", reason="`email` is missing."),
        row(
            "booking",
            "easyappointments:4",
            "failed",
            reason="'2031-01-nonsense:00' is no time such as 2026-11-23 09:00:00.",
        ),
        row(
            "booking",
            "easyappointments:5",
            "skipped",
            "2031-01-13T12:00:00+00:00",
            reason="The service 7 was not imported.",
        ),
        row("event", "easyappointments:unavailability-9", "created", "2031-01-14T08:00:00+00:00"),
        row("event", "easyappointments:blocked-1-2", "created", "2031-01-19T23:00:00+00:00"),
        row("event", "easyappointments:1", "failed", reason=mars),
    ]
    assert imported(app) == {
        "resources": [
            resource_record(
                "easyappointments:2",
                "Chris Doe",
                "chris@example.org",
                open_on("Monday", 9, 12),
                open_on("Monday", 13, 17),
                {"replace_day": {"date": "2031-01-06", "windows": []}},
                {"replace_day": {"date": "2031-01-07", "windows": [{"start": 10, "end": 12}]}},
                {"replace_day": {"date": "2031-01-08", "windows": [{"start": 10, "end": 12}]}},
            )
        ],
        "projects": [
            project_record(
                "easyappointments:6",
                "Check-up",
                "easyappointments:2",
                {**TERMS, "timeslot_increments": "15 minutes"},
                {"graph": "instant", "what": "Check-up", "where": "Room 2"},
            )
        ],
        "bookings": [
            {
                "external_id": "easyappointments:1",
                "resource": "easyappointments:2",
                "project": "Check-up",
                "state": "confirmed",
                "start": "2031-01-13T08:00:00+00:00",
                "end": "2031-01-13T08:30:00+00:00",
                "what": "Check-up",
                "where": "Room 2",
                "description": "",
                "note": "Allergic",
                "customers": [{**MARTY, "phone": "+1 555 0100"}],
            }
        ],
    }
    assert {call.headers["authorization"] for call in source.calls} == {f"Bearer {KEY}"}


# --- Cal.com --------------------------------------------------------------------------------------
ME = {
    "id": 123,
    "username": "ada",
    "email": "ada@example.com",
    "name": "Ada Berg",
    "timeZone": "Europe/Berlin",
    "defaultScheduleId": 1,
}
WORKING_HOURS = {
    "id": 1,
    "ownerId": 123,
    "name": "Working hours",
    "timeZone": "Europe/Berlin",
    "availability": [{"days": ["Monday", "Tuesday"], "startTime": "09:00", "endTime": "17:00"}],
    "isDefault": True,
    "overrides": [
        {"date": "2031-01-06", "startTime": "00:00", "endTime": "00:00"},
        {"date": "2020-01-06", "startTime": "00:00", "endTime": "00:00"},
    ],
}
EVENT_TYPE = {
    "id": 30,
    "title": "Intro",
    "slug": "intro",
    "lengthInMinutes": 30,
    "description": "Hello",
    "locations": [
        {"type": "integration", "integration": "cal-video"},
        {"type": "address", "address": "Harbour 1", "public": True},
    ],
    "bookingFields": [{"slug": "name", "type": "name"}, {"slug": "size", "type": "number"}],
    "recurrence": None,
    "disableGuests": False,
    "slotInterval": 15,
    "minimumBookingNotice": 120,
    "beforeEventBuffer": 5,
    "afterEventBuffer": 10,
    "scheduleId": None,
    "hidden": False,
    "bookingWindow": {"type": "calendarDays", "value": 30, "rolling": True},
    "confirmationPolicy": {"disabled": True},
    "seats": {"disabled": True},
    "price": 0,
}


def cal_booking(uid: str, hour: int, **more: Any) -> dict[str, Any]:
    person = {
        "name": "Marty McFly",
        "email": "marty@example.com",
        "language": "en",
        "timeZone": "America/Los_Angeles",
        "absent": False,
    }
    return {
        "id": hour,
        "uid": uid,
        "title": "Intro between Ada and Marty",
        "description": "",
        "hosts": [
            {
                "id": 123,
                "name": "Ada Berg",
                "email": "ada@example.com",
                "username": "ada",
                "timeZone": "Europe/Berlin",
            }
        ],
        "status": "accepted",
        "start": f"2031-01-13T{hour:02}:00:00.000Z",
        "end": f"2031-01-13T{hour:02}:30:00.000Z",
        "duration": 30,
        "eventTypeId": 30,
        "eventType": {"id": 30, "slug": "intro"},
        "location": "https://cal.example/x",
        "absentHost": False,
        "attendees": [person],
        **more,
    }


def calcom(source: FakeSource) -> list[str]:
    def says(name: str, data: Any, **query: Any) -> None:
        source.says(f"/v2/{name}", {"status": "success", "data": data}, **query)

    says("me", ME)
    says("schedules", [WORKING_HOURS])
    says("event-types", [EVENT_TYPE, {**EVENT_TYPE, "id": 31, "lengthInMinutes": "long"}])
    bookings = [
        cal_booking("b1", 9),
        cal_booking("b2", 10, status="pending"),
        cal_booking("b3", 11, status="cancelled"),
        cal_booking("b4", 12, attendees=[]),
        cal_booking("b5", 13, hosts=[{"id": 124}]),
        cal_booking("b6", 14, status="odd"),
        cal_booking("b7", 15, eventTypeId=31, eventType={"id": 31, "slug": "long"}),
    ]
    for skip in range(0, len(bookings) + 1, 2):
        says("bookings", bookings[skip : skip + 2], take=2, skip=skip)
    return ["calcom", "--from", source.url("")]


def test_calcom_is_imported(
    app: LiveApp, source: FakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALCOM_API_KEY", KEY)
    monkeypatch.setattr("scheduling_client.importing.calcom.TAKE", 2)

    code, rows = import_rows(app, tmp_path, *calcom(source))

    assert code == 1
    assert rows == [
        row("resource", "calcom:123", "created", "Ada Berg"),
        row("service", "calcom:30", "created", "Intro", reason="Left out: questions (size)."),
        row("service", "calcom:31", "failed", reason="`lengthInMinutes` is no whole number."),
        row("booking", "calcom:b1", "created", "2031-01-13T09:00:00+00:00"),
        row("booking", "calcom:b2", "created", "2031-01-13T10:00:00+00:00"),
        row(
            "booking",
            "calcom:b3",
            "skipped",
            "2031-01-13T11:00:00+00:00",
            reason="It is cancelled.",
        ),
        row("booking", "calcom:b4", "failed", reason="`attendees` is missing."),
        row("booking", "calcom:b5", "skipped", reason="It is of another person."),
        row("booking", "calcom:b6", "failed", reason="Its `status` odd is unknown."),
        row(
            "booking",
            "calcom:b7",
            "skipped",
            "2031-01-13T15:00:00+00:00",
            reason="The service 31 was not imported.",
        ),
    ]
    booked = {
        "external_id": "calcom:b1",
        "resource": "calcom:123",
        "project": "Intro",
        "state": "confirmed",
        "start": "2031-01-13T09:00:00+00:00",
        "end": "2031-01-13T09:30:00+00:00",
        "what": "Intro between Ada and Marty",
        "where": "https://cal.example/x",
        "description": "Hello",
        "note": None,
        "customers": [MARTY],
    }
    assert imported(app) == {
        "resources": [
            resource_record(
                "calcom:123",
                "Ada Berg",
                "ada@example.com",
                open_on("Monday", 9, 17),
                open_on("Tuesday", 9, 17),
                {"replace_day": {"date": "2031-01-06", "windows": []}},
            )
        ],
        "projects": [
            project_record(
                "calcom:30",
                "Intro",
                "calcom:123",
                TERMS
                | {"buffer_before": "5 minutes", "buffer_after": "10 minutes"}
                | {"from": "120 minutes", "to": "43200 minutes"}
                | {"timeslot_increments": "15 minutes"},
                {"graph": "instant", "what": "Intro", "where": "Harbour 1", "description": "Hello"},
            )
        ],
        "bookings": [
            booked,
            {
                **booked,
                "external_id": "calcom:b2",
                "state": "tentative",
                "start": "2031-01-13T10:00:00+00:00",
                "end": "2031-01-13T10:30:00+00:00",
            },
        ],
    }
    versions = {
        call.path.partition("?")[0]: call.headers.get("cal-api-version") for call in source.calls
    }
    assert versions == {
        "/v2/me": None,
        "/v2/schedules": "2024-06-11",
        "/v2/event-types": "2024-06-14",
        "/v2/bookings": "2024-08-13",
    }


def test_calcom_hours_of_several_schedules_are_those_of_the_projects(
    app: LiveApp, source: FakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALCOM_API_KEY", KEY)
    arguments = calcom(source)
    evening = {"days": ["Friday"], "startTime": "18:00", "endTime": "00:00"}
    late = {**WORKING_HOURS, "id": 2, "isDefault": False, "availability": [evening]}
    late["overrides"] = []
    types = [EVENT_TYPE, {**EVENT_TYPE, "id": 32, "scheduleId": 2}]
    moved = {**EVENT_TYPE, "id": 33, "scheduleId": 3}
    for path, rows in (
        ("schedules", [WORKING_HOURS, late, {**late, "id": 3, "timeZone": "Asia/Tokyo"}]),
        ("event-types", [*types, moved]),
    ):
        source.says(f"/v2/{path}", {"data": rows})
    source.says("/v2/bookings", {"data": []}, take=100, skip=0)

    _, rows = import_rows(app, tmp_path, *arguments)

    found = imported(app)
    assert [(each["external_id"], each["rules"]) for each in found["resources"]] == [
        ("calcom:123", [])
    ]
    assert [(each["external_id"], each["rules"]) for each in found["projects"]] == [
        (
            "calcom:30",
            [
                open_on("Monday", 9, 17),
                open_on("Tuesday", 9, 17),
                {"replace_day": {"date": "2031-01-06", "windows": []}},
            ],
        ),
        ("calcom:32", [open_on("Friday", 18, 24)]),
    ]
    assert rows[-1] == row(
        "service",
        "calcom:33",
        "failed",
        reason="Its schedule has another time zone than the default schedule.",
    )


# --- Calendly -------------------------------------------------------------------------------------
USER = "https://api.calendly.com/users/ADA"
WEEK = [
    {"type": "wday", "wday": day, "intervals": []}
    for day in ("sunday", "tuesday", "wednesday", "thursday", "friday", "saturday")
]
HOURS = {
    "uri": "https://api.calendly.com/user_availability_schedules/S1",
    "default": True,
    "name": "Working hours",
    "user": USER,
    "timezone": "Europe/Berlin",
    "rules": [
        *WEEK,
        {"type": "wday", "wday": "monday", "intervals": [{"from": "09:00", "to": "17:00"}]},
        {"type": "date", "date": "2031-01-07", "intervals": [{"from": "10:00", "to": "12:00"}]},
    ],
}
CALENDLY_TYPE = {
    "uri": "https://api.calendly.com/event_types/T1",
    "name": "Intro",
    "active": True,
    "duration": 30,
    "duration_options": None,
    "slug": "intro",
    "kind": "solo",
    "pooling_type": None,
    "type": "StandardEventType",
    "description_plain": "Hello",
    "start_time_increment": 15,
    "before_buffer": 5,
    "after_buffer": 10,
}


def scheduled(id: str, hour: int, **more: Any) -> dict[str, Any]:
    return {
        "uri": f"https://api.calendly.com/scheduled_events/{id}",
        "name": "Intro",
        "status": "active",
        "start_time": f"2031-01-13T{hour:02}:00:00.000000Z",
        "end_time": f"2031-01-13T{hour:02}:30:00.000000Z",
        "event_type": "https://api.calendly.com/event_types/T1",
        "location": {"type": "physical", "location": "Harbour 1"},
        "invitees_counter": {"total": 1, "active": 1, "limit": 1},
        **more,
    }


def invitee(name: str) -> dict[str, Any]:
    return {
        "uri": f"https://api.calendly.com/scheduled_events/x/invitees/{name}",
        "name": name,
        "email": f"{name.lower()}@example.com",
        "status": "active",
        "timezone": "America/Los_Angeles",
        "text_reminder_number": None,
        "questions_and_answers": [{"question": "Why?", "answer": "Teeth", "position": 0}],
    }


def calendly(source: FakeSource) -> list[str]:
    def says(path: str, *rows: Any, next: str | None = None, **query: Any) -> None:
        page = {"count": len(rows), "next_page_token": next, "next_page": "https://evil.example"}
        answer = {"collection": list(rows), "pagination": page}
        source.says(path, answer, **query)

    source.says(
        "/users/me",
        {
            "resource": {
                "uri": USER,
                "name": "Ada Berg",
                "slug": "ada",
                "email": "ada@example.com",
                "timezone": "Europe/Berlin",
            }
        },
    )
    mine = {"user": USER, "count": 100}
    says("/user_availability_schedules", HOURS, **mine)
    says(
        "/event_types",
        CALENDLY_TYPE,
        {**CALENDLY_TYPE, "active": False, "uri": "https://api.calendly.com/event_types/T2"},
        **mine,
    )
    says("/scheduled_events", scheduled("E1", 9), next="more", **mine)
    says(
        "/scheduled_events",
        scheduled("E2", 10, status="canceled"),
        scheduled("E3", 11),
        scheduled("E4", 12, end_time="soon"),
        **mine,
        page_token="more",
    )
    for id, people in (("E1", [invitee("Marty")]), ("E3", []), ("E4", [invitee("Biff")])):
        says(f"/scheduled_events/{id}/invitees", *people, status="active", count=100)
    return ["calendly", "--from", source.url(""), "--past"]


def test_calendly_is_imported(
    app: LiveApp, source: FakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALENDLY_TOKEN", KEY)

    code, rows = import_rows(app, tmp_path, *calendly(source))

    assert code == 1
    assert rows == [
        row("resource", "calendly:ADA", "created", "Ada Berg"),
        row("service", "calendly:T1", "created", "Intro"),
        row("service", "calendly:T2", "skipped", reason="It is not active."),
        row("booking", "calendly:E1", "created", "2031-01-13T09:00:00+00:00"),
        row(
            "booking",
            "calendly:E2",
            "skipped",
            "2031-01-13T10:00:00+00:00",
            reason="It is cancelled.",
        ),
        row("booking", "calendly:E3", "failed", reason="`invitees` is missing."),
        row(
            "booking",
            "calendly:E4",
            "failed",
            reason="'soon' is no time such as 2026-11-23T09:00:00+01:00.",
        ),
    ]
    assert imported(app) == {
        "resources": [
            resource_record(
                "calendly:ADA",
                "Ada Berg",
                "ada@example.com",
                open_on("Monday", 9, 17),
                {"replace_day": {"date": "2031-01-07", "windows": [{"start": 10, "end": 12}]}},
            )
        ],
        "projects": [
            project_record(
                "calendly:T1",
                "Intro",
                "calendly:ADA",
                TERMS
                | {"buffer_before": "5 minutes", "buffer_after": "10 minutes"}
                | {"timeslot_increments": "15 minutes"},
                {"graph": "instant", "what": "Intro", "description": "Hello"},
            )
        ],
        "bookings": [
            {
                "external_id": "calendly:E1",
                "resource": "calendly:ADA",
                "project": "Intro",
                "state": "confirmed",
                "start": "2031-01-13T09:00:00+00:00",
                "end": "2031-01-13T09:30:00+00:00",
                "what": "Intro",
                "where": "Harbour 1",
                "description": "Hello",
                "note": "Why?: Teeth",
                "customers": [{**MARTY, "name": "Marty"}],
            }
        ],
    }


# --- Timekit --------------------------------------------------------------------------------------
def test_timekit_is_imported(
    app: LiveApp, live_service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This service speaks Timekit's wire format: one app is the source of another one.
    other = LiveApp(live_service)
    rules = [open_on("Monday", 9, 17), {"block_holidays": {"country": "DE"}}]
    ada = {"name": "Ada", "timezone": "Europe/Berlin", "email": "ada@example.com"}
    ada = other.post("/v2/resources", {**ada, "availability_constraints": rules}).data
    terms = {"length": "1 hour", "mode": "roundrobin_prioritized", "from": "2 hours"}
    wanted = {"name": "Check-up", "resources": [ada["id"]], "availability": terms}
    project = other.post("/v2/projects", {**wanted, "booking": {"what": "Teeth"}}).data
    mutual = {**wanted, "name": "Both", "availability": {"mode": "mutual"}}
    mutual = other.post("/v2/projects", mutual).data
    booking = {"project_id": project["id"], "customer": {**MARTY, "phone": "+1 555 0100"}}
    booking["settings"] = {"enforce_availability": False}
    times = {"start": "2031-01-13T09:00:00+01:00", "end": "2031-01-13T10:00:00+01:00"}
    made = other.post("/v2/bookings", {**booking, **times}).data
    gone = other.post("/v2/resources", {"name": "Gone", "timezone": "UTC"}).data
    gone_times = {"start": "2031-01-14T09:00:00Z", "end": "2031-01-14T10:00:00Z"}
    gone_booking = {"resource_id": gone["id"], "what": "Teeth", "customer": MARTY}
    cancelled = other.post("/v2/bookings", {**gone_booking, **gone_times}).data
    with Client(other.url, other.key) as client:
        client.bookings.cancel(cancelled["id"])
        client.resources.delete(gone["id"])
    monkeypatch.setenv("TIMEKIT_API_KEY", str(other.key))

    code, rows = import_rows(app, tmp_path, "timekit", "--from", f"{other.url}/v2")

    assert code == 1
    assert sorted(rows, key=lambda each: each["kind"]) == [
        row(
            "booking",
            f"timekit:{cancelled['id']}",
            "skipped",
            "2031-01-14T09:00:00+00:00",
            reason="It is cancelled.",
        ),
        row("booking", f"timekit:{made['id']}", "created", "2031-01-13T08:00:00+00:00"),
        row("resource", f"timekit:{ada['id']}", "created", "Ada"),
        *sorted(
            (
                row("service", f"timekit:{project['id']}", "created", "Check-up"),
                row(
                    "service",
                    f"timekit:{mutual['id']}",
                    "failed",
                    reason="The mode mutual is not imported.",
                ),
            ),
            key=lambda each: rows.index(each),
        ),
    ]
    assert imported(app) == {
        "resources": [resource_record(f"timekit:{ada['id']}", "Ada", "ada@example.com", *rules)],
        "projects": [
            project_record(
                f"timekit:{project['id']}",
                "Check-up",
                f"timekit:{ada['id']}",
                terms,
                {"graph": "instant", "what": "Teeth"},
            )
        ],
        "bookings": [
            {
                "external_id": f"timekit:{made['id']}",
                "resource": f"timekit:{ada['id']}",
                "project": "Check-up",
                "state": "confirmed",
                "start": "2031-01-13T08:00:00+00:00",
                "end": "2031-01-13T09:00:00+00:00",
                "what": "Teeth",
                "where": "",
                "description": "",
                "note": None,
                "customers": [{**MARTY, "phone": "+1 555 0100"}],
            }
        ],
    }


# --- All servers ----------------------------------------------------------------------------------
def test_source_that_refuses_the_key_changes_nothing(
    app: LiveApp,
    source: FakeSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CALCOM_API_KEY", KEY)
    arguments = calcom(source)
    source.answers["/v2/schedules"].status = 401

    code, rows = import_rows(app, tmp_path, *arguments)

    printed = capsys.readouterr()
    assert (code, rows) == (2, [])
    address = source.url("/v2/schedules")
    assert printed.err == f"import: The source answered GET {address} with 401.\n"
    assert KEY not in printed.out + printed.err
    assert imported(app) == {"resources": [], "projects": [], "bookings": []}


def test_key_is_not_sent_without_tls(
    app: LiveApp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CALCOM_API_KEY", KEY)

    code, rows = import_rows(app, tmp_path, "calcom", "--from", "http://cal.example.com")

    assert (code, rows) == (2, [])
    assert capsys.readouterr().err == "import: The address of the source begins with https://.\n"
