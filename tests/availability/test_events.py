"""/events: stretches of time in calendars; whole days are local days (section 4)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from availability.models import Event
from common.time.durations import NO_BOUND
from tests.bookings.booking_drafts import busy_times
from tests.world import BERLIN, NOW, STAMP, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

NOT_FOUND = {"error": "Event not found.", "code": "not_found", "model": "Event"}
NO_MIDNIGHT = "America/Santiago"  # on 2026-09-06 the clock goes from 24:00 to 01:00
NOVEMBER = "start=2026-11-01T00:00:00Z&end=2026-11-30T00:00:00Z"


def record(event_id: str, calendar_id: str, **given: Any) -> dict[str, Any]:
    return {
        "id": event_id,
        "calendar_id": calendar_id,
        "what": "Congress",
        "where": "",
        "description": "",
        "start": "2026-11-23T09:00:00+00:00",
        "end": "2026-11-23T10:00:00+00:00",
        "allDay": False,
        "rsvp": "",
        "participants": [],
        "busy": True,
        "provider_id": None,
        "created_at": STAMP,
        "updated_at": STAMP,
        **given,
    }


SPAN = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}


def make_calendar(tenant: Tenant, timezone: str = "UTC") -> str:
    return tenant.make_resource(timezone=timezone)["calendars"][0]["id"]


def post(tenant: Tenant, calendar: str, **given: Any) -> Any:
    return tenant.post("/events", {"calendar_id": calendar, "what": "Congress", **SPAN, **given})


# --- POST -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, {}),
        (
            {
                "where": "Hamburg",
                "description": "two\nlines",
                "rsvp": "accepted",
                "participants": ["a@example.com", "Bob"],
                "busy": False,
            },
            {
                "where": "Hamburg",
                "description": "two\nlines",
                "rsvp": "accepted",
                "participants": ["a@example.com", "Bob"],
                "busy": False,
            },
        ),
        ({"where": None, "description": None, "rsvp": None, "provider_id": "x", "id": "x"}, {}),
        (
            {"start": "2026-11-23T10:00:00+01:00", "end": "2026-11-23T11:00:00+0100"},
            {},
        ),
        ({"start": "2026-11-23T09:00:00.999Z"}, {}),
    ],
)
def test_a_new_event(tenant: Tenant, given: dict[str, Any], shown: dict[str, Any]) -> None:
    calendar = make_calendar(tenant)

    answer = post(tenant, calendar, **given)

    expected = record(answer.data["id"], calendar, **shown)
    assert (answer.status, answer.json) == (201, {"data": expected})
    assert tenant.get(f"/events/{answer.data['id']}").data == expected


@pytest.mark.parametrize(
    ("start", "shown"),
    [
        ("2026-11-23 09:00:00", "2026-11-23T08:00:00+00:00"),
        ("2026-11-23T09:00:00", "2026-11-23T08:00:00+00:00"),
        ("2026-11-23 09:00", "2026-11-23T08:00:00+00:00"),
        ("2026-07-01 09:00:00", "2026-07-01T07:00:00+00:00"),
        ("2026-10-25 02:30:00", "2026-10-25T00:30:00+00:00"),  # twice: the first
        ("2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00+00:00"),
    ],
)
def test_wall_times_are_in_the_zone_of_the_resource(tenant: Tenant, start: str, shown: str) -> None:
    calendar = make_calendar(tenant, BERLIN)

    answer = post(tenant, calendar, start=start, end="2026-11-24T00:00:00Z")

    assert (answer.status, answer.data["start"]) == (201, shown)


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        (None, "2026-11-23T09:00:00+00:00"),
        ("Europe/Berlin", "2026-11-23T10:00:00+01:00"),
        ("Asia/Kathmandu", "2026-11-23T14:45:00+05:45"),
        ("America/New_York", "2026-11-23T04:00:00-05:00"),
    ],
)
def test_times_are_in_the_requested_zone(tenant: Tenant, zone: str | None, start: str) -> None:
    calendar = make_calendar(tenant, "Asia/Tokyo")
    headers = {"Service-Timezone": zone} if zone else {}
    event = post(tenant, calendar).data["id"]

    shown = [
        tenant.get(f"/events/{event}", **headers).data,
        tenant.get(f"/events?{NOVEMBER}", **headers).data[0],
        tenant.put(f"/events/{event}", {}, **headers).data,
    ]

    assert [one["start"] for one in shown] == [start] * 3


def test_unknown_zone_in_the_header_is_refused(tenant: Tenant) -> None:
    answer = tenant.get(f"/events?{NOVEMBER}", **{"Service-Timezone": "Mars/Olympus"})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"Service-Timezone": ["Is not a known IANA time zone."]},
    )


END = ["Must be after the start."]
TIME = ["Must be a date and time."]
FORM = ["Must be a date and time such as 2026-11-20T10:30:00+01:00."]


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"end": "2026-11-23T09:00:00Z"}, {"end": END}),
        ({"end": "2026-11-23T08:00:00Z"}, {"end": END}),
        ({"end": "2027-11-24T09:00:01Z"}, {"end": ["Must be at most 366 days after the start."]}),
        ({"end": None}, {"end": TIME}),
        ({"start": "2026-11-23"}, {"start": TIME}),
        ({"start": "tomorrow"}, {"start": FORM}),
        ({"start": 1795424400}, {"start": ["Must be a string."]}),
        ({"start": "2026-11-31T00:00:00Z"}, {"start": ["There is no such date or time."]}),
        (
            {"start": "1969-12-31T23:59:59Z"},
            {"start": ["The year must be from 1970 to 2199."]},
        ),
        (
            {"start": "2026-03-29 02:30:00"},
            {"start": ["2026-03-29 02:30:00 does not exist in Europe/Berlin."]},
        ),
        ({"what": ""}, {"what": ["This field may not be blank."]}),
        ({"what": "a\nb"}, {"what": ["May not contain control characters or line breaks."]}),
        ({"what": "x" * 201}, {"what": ["Ensure this field has no more than 200 characters."]}),
        ({"where": "x" * 201}, {"where": ["Ensure this field has no more than 200 characters."]}),
        (
            {"description": "x" * 8001},
            {"description": ["Ensure this field has no more than 8000 characters."]},
        ),
        ({"busy": "no"}, {"busy": ["Must be true or false."]}),
        ({"all_day": 1}, {"all_day": ["Must be true or false."]}),
        ({"participants": "Bob"}, {"participants": ["Must be a list."]}),
        ({"participants": [5]}, {"participants.0": ["Must be a string."]}),
        ({"participants": ["a"] * 101}, {"participants": ["Must have at most 100 items."]}),
        (
            {"all_day": True, "start": "2026-11-23T09:00:00Z", "end": "2026-11-24"},
            {"start": ["Must be a date, or a local midnight."]},
        ),
        (
            {"all_day": True, "start": "2026-11-23", "end": "2026-11-24 00:00:01"},
            {"end": ["Must be a date, or a local midnight."]},
        ),
        (
            {"all_day": True, "start": "2026-11-23", "end": "2026-11-22"},
            {"end": ["Must be 1 to 366 days after the start."]},
        ),
        (
            {"all_day": True, "start": "2026-11-23", "end": "2027-11-25"},
            {"end": ["Must be 1 to 366 days after the start."]},
        ),
        (
            {"all_day": True, "start": "2026-02-30", "end": "2026-11-25"},
            {"start": ["There is no such date or time."]},
        ),
    ],
)
@pytest.mark.matrix
def test_wrong_values_are_refused(
    tenant: Tenant, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    calendar = make_calendar(tenant, BERLIN)

    answer = post(tenant, calendar, **given)

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"calendar_id": ["This field is required."]}),
        ({"calendar_id": "5"}, {"calendar_id": ["Must be a UUID."]}),
        (
            {"calendar_id": "{calendar}"},
            {"start": ["This field is required."], "what": ["This field is required."]},
        ),
        (
            {"calendar_id": "{calendar}", "what": "A", "start": "2026-11-23T09:00:00Z"},
            {"end": TIME},
        ),
    ],
)
def test_required_fields_of_a_new_event(
    tenant: Tenant, body: dict[str, str], errors: dict[str, list[str]]
) -> None:
    calendar = make_calendar(tenant)

    answer = tenant.post(
        "/events", {key: text.format(calendar=calendar) for key, text in body.items()}
    )

    assert (answer.status, answer.json["errors"]) == (422, errors)


def test_unknown_calendars_are_refused(tenant: Tenant, make_tenant: MakeTenant) -> None:
    ids = [make_calendar(make_tenant()), str(uuid.uuid4())]

    answers = [post(tenant, identifier) for identifier in ids]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"calendar_id": ["There is no such calendar."]})
    ] * 2


def test_events_may_overlap_anything(tenant: Tenant) -> None:
    """They are facts, not requests."""
    resource = tenant.make_resource()
    calendar = resource["calendars"][0]["id"]
    tenant.book(resource_id=resource["id"], **SPAN)

    answers = [post(tenant, calendar), post(tenant, calendar)]

    assert [(answer.status, answer.json) for answer in answers] == [
        (201, {"data": record(answer.data["id"], calendar)}) for answer in answers
    ]
    assert tenant.get(f"/events?{NOVEMBER}").json["total"] == 3


@pytest.mark.parametrize(("busy", "spans"), [(True, ["09:00-10:00"]), (False, [])])
def test_busy_event_blocks(tenant: Tenant, busy: bool, spans: list[str]) -> None:
    resource = tenant.make_resource()
    post(tenant, resource["calendars"][0]["id"], busy=busy)

    blocked = busy_times(tenant, resource["id"])
    answer = tenant.book(resource_id=resource["id"], **SPAN)

    conflicts = [{key: record("", "")[key] for key in ("start", "end")}]
    assert blocked == spans
    assert (answer.status, answer.json.get("code"), answer.json.get("conflicts")) == (
        (409, "slot_taken", conflicts) if busy else (201, None, None)
    )


# --- Whole days -----------------------------------------------------------------------------------
@pytest.mark.parametrize("key", ["all_day", "allDay"])
@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ({"start": "2026-11-23", "end": "2026-11-25"}, "2026-11-23", "2026-11-25"),
        ({"start": "2026-11-23", "end": "2026-11-23"}, "2026-11-23", "2026-11-24"),
        ({"start": "2026-11-23", "end": None}, "2026-11-23", "2026-11-24"),
        ({"start": "2026-11-23 00:00:00", "end": "2026-11-24"}, "2026-11-23", "2026-11-24"),
        (
            {"start": "2026-11-23T00:00:00+01:00", "end": "2026-11-24T23:00:00Z"},
            "2026-11-23",
            "2026-11-25",
        ),
    ],
)
def test_dates_and_midnights(
    tenant: Tenant, key: str, given: dict[str, Any], start: str, end: str
) -> None:
    calendar = make_calendar(tenant, BERLIN)

    answer = post(tenant, calendar, **{key: True}, **given)

    expected = record(
        answer.data["id"],
        calendar,
        start=f"{start}T00:00:00+01:00",
        end=f"{end}T00:00:00+01:00",
        allDay=True,
    )
    assert (answer.status, answer.data) == (201, expected)


def test_an_event_of_one_day_needs_no_end(tenant: Tenant) -> None:
    body = {
        "calendar_id": make_calendar(tenant, BERLIN),
        "what": "Holiday",
        "all_day": True,
        "start": "2026-11-23",
    }

    answer = tenant.post("/events", body)

    assert (answer.status, answer.data["start"], answer.data["end"]) == (
        201,
        "2026-11-23T00:00:00+01:00",
        "2026-11-24T00:00:00+01:00",
    )


def test_all_day_events_are_in_the_zone_of_the_resource(tenant: Tenant) -> None:
    """Whatever zone is asked for: a holiday is a day there."""
    calendar = make_calendar(tenant, BERLIN)
    event = post(tenant, calendar, all_day=True, start="2026-11-23", end=None).data

    shown = tenant.get(f"/events/{event['id']}", **{"Service-Timezone": "Asia/Tokyo"}).data

    assert (shown["start"], shown["end"]) == (
        "2026-11-23T00:00:00+01:00",
        "2026-11-24T00:00:00+01:00",
    )


@pytest.mark.parametrize(
    ("zone", "day", "start", "end"),
    [
        (BERLIN, "2026-03-29", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"),
        (BERLIN, "2026-10-25", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"),
        (NO_MIDNIGHT, "2026-09-06", "2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"),
        (NO_MIDNIGHT, "2026-09-05", "2026-09-05T00:00:00-04:00", "2026-09-06T01:00:00-03:00"),
    ],
)
def test_all_day_events_on_clock_changes(
    tenant: Tenant, zone: str, day: str, start: str, end: str
) -> None:
    calendar = make_calendar(tenant, zone)

    event = post(tenant, calendar, all_day=True, start=day, end=None).data
    again = tenant.put(f"/events/{event['id']}", {"start": start, "end": end})

    assert (event["start"], event["end"]) == (start, end)
    assert (again.status, again.json) == (200, {"data": event})


def test_new_zone_moves_only_all_day_events(tenant: Tenant, clock: Any) -> None:
    resource = tenant.make_resource(timezone=BERLIN)
    calendar = resource["calendars"][0]["id"]
    holiday = post(tenant, calendar, all_day=True, start="2026-11-23", end="2026-11-25").data
    meeting = post(tenant, calendar).data
    clock.shift(60)

    tenant.put(f"/resources/{resource['id']}", {"timezone": "Asia/Tokyo"})

    assert tenant.get(f"/events/{holiday['id']}").data == {
        **holiday,
        "start": "2026-11-23T00:00:00+09:00",
        "end": "2026-11-25T00:00:00+09:00",
        "updated_at": "2026-11-20T09:31:00+0000",
    }
    assert tenant.get(f"/events/{meeting['id']}").data == meeting


# --- The listing ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("query", "errors"),
    [
        ("", {"start": ["This field is required."], "end": ["This field is required."]}),
        ("start=2026-11-23T00:00:00Z", {"end": ["This field is required."]}),
        ("end=2026-11-23T00:00:00Z", {"start": ["This field is required."]}),
        ("start=2026-11-23T00:00:00Z&end=2026-11-23T00:00:00Z", {"end": END}),
        ("start=today&end=2026-11-23T00:00:00Z", {"start": [NO_BOUND]}),
        (f"{NOVEMBER}&search=what:a", {"search": ["what can't be searched."]}),
        (f"{NOVEMBER}&search=calendar.id:a", {"search": ["calendar.id must be a UUID."]}),
        (f"{NOVEMBER}&include=calendar", {"include": ["Is not a known query parameter."]}),
    ],
)
def test_wrong_listing_parameters_are_refused(
    tenant: Tenant, query: str, errors: dict[str, list[str]]
) -> None:
    answer = tenant.get(f"/events?{query}")

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ("2026-11-23T09:00:00Z", "2026-11-23T10:00:00Z", ["B"]),
        ("2026-11-23T08:59:59Z", "2026-11-23T09:00:01Z", ["A", "B"]),
        ("2026-11-23T09:59:59Z", "2026-11-23T10:00:01Z", ["B", "C"]),
        ("2026-11-23T08:00:00Z", "2026-11-23T11:00:00Z", ["A", "B", "C"]),
        ("2026-11-23T11:00:00Z", "2026-11-23T12:00:00Z", []),
        ("2026-11-23T09:30:00%2B01:00", "2026-11-23T10:00:00%2B01:00", ["A"]),
        ("2026-11-23T09:30:00+01:00", "2026-11-23T10:00:00+0100", ["A"]),  # plus became a blank
    ],
)
def test_events_that_overlap_the_range(
    tenant: Tenant, make_tenant: MakeTenant, start: str, end: str, found: list[str]
) -> None:
    calendar = make_calendar(tenant)
    for what, hour in (("A", 8), ("B", 9), ("C", 10)):
        span = (f"2026-11-23T{hour:02}:00:00Z", f"2026-11-23T{hour + 1:02}:00:00Z")
        tenant.make_event(calendar, *span, what=what)
    stranger = make_tenant()
    post(stranger, make_calendar(stranger))

    answer = tenant.get(f"/events?start={start}&end={end}")

    assert sorted(row["what"] for row in answer.data) == found
    assert answer.json["total"] == len(found)


@pytest.mark.parametrize(
    ("headers", "default", "found"),
    [
        ({}, None, 1),
        ({"Service-Timezone": BERLIN}, None, 0),
        ({}, BERLIN, 0),
        ({"Service-Timezone": "UTC"}, BERLIN, 1),
    ],
)
def test_wall_times_of_a_listing(
    tenant: Tenant, headers: dict[str, str], default: str | None, found: int
) -> None:
    """No single resource is asked for: the header's zone, else the app's, else UTC."""
    post(tenant, make_calendar(tenant, "Asia/Tokyo"))
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": default}})

    answer = tenant.get("/events?start=2026-11-23 09:30:00&end=2026-11-23 10:00:00", **headers)

    assert answer.json["total"] == found


def test_search(tenant: Tenant) -> None:
    first, second = tenant.make_resource("A"), tenant.make_resource("B")
    events = [post(tenant, one["calendars"][0]["id"]).data for one in (first, second)]

    answers = [
        tenant.get(f"/events?{NOVEMBER}&search={search}").data
        for search in (
            f"resource.id:{first['id']}",
            f"calendar.id:{second['calendars'][0]['id']}",
            f"resource.id:{first['id']};calendar.id:{second['calendars'][0]['id']}",
        )
    ]

    assert answers == [[events[0]], [events[1]], []]


def test_pages_newest_first(tenant: Tenant, clock: Any) -> None:
    calendar = make_calendar(tenant)
    for what in ("A", "B", "C", "D", "E"):
        clock.shift(1)
        post(tenant, calendar, what=what)

    answer = tenant.get(f"/events?{NOVEMBER}&limit=3&page=2")

    query = NOVEMBER.replace(":", "%3A")
    base = f"http://127.0.0.1:8000/v2/events?{query}&limit=3&page="
    assert [row["what"] for row in answer.data] == ["B", "A"]
    assert {key: value for key, value in answer.json.items() if key != "data"} == {
        "total": 5,
        "per_page": "3",
        "current_page": 2,
        "last_page": 2,
        "first_page_url": f"{base}1",
        "last_page_url": f"{base}2",
        "next_page_url": None,
        "prev_page_url": f"{base}1",
        "from": 4,
        "to": 5,
    }


# --- GET, PUT and DELETE of one -------------------------------------------------------------------
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_foreign_unknown_and_deleted_ids_are_not_found(
    tenant: Tenant, make_tenant: MakeTenant, method: str
) -> None:
    removed = post(tenant, make_calendar(tenant)).data["id"]
    tenant.delete(f"/events/{removed}")
    stranger = make_tenant()
    foreign = post(stranger, make_calendar(stranger)).data["id"]

    answers = [
        tenant.call(method, f"/events/{unknown_id}", {})
        for unknown_id in (foreign, uuid.uuid4(), removed)
    ]

    assert [(answer.status, answer.error) for answer in answers] == [(404, NOT_FOUND)] * 3
    assert Event.objects.count() == 1


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {}),
        ([], {}),
        ({"what": "B", "where": "Bonn"}, {"what": "B", "where": "Bonn"}),
        ({"where": None, "participants": []}, {"where": "", "participants": []}),
        ({"busy": False}, {"busy": False}),
        ({"start": "2026-11-23T09:30:00Z"}, {"start": "2026-11-23T09:30:00+00:00"}),
        ({"end": "2026-11-23 11:30:00"}, {"end": "2026-11-23T10:30:00+00:00"}),
        (
            {"start": "2026-11-25T09:00:00Z", "end": "2026-11-25T10:00:00Z"},
            {"start": "2026-11-25T09:00:00+00:00", "end": "2026-11-25T10:00:00+00:00"},
        ),
        (
            {"all_day": True, "start": "2026-11-25", "end": None},
            {
                "allDay": True,
                "start": "2026-11-25T00:00:00+01:00",
                "end": "2026-11-26T00:00:00+01:00",
            },
        ),
    ],
)
def test_update_is_partial(tenant: Tenant, clock: Any, given: Any, changed: dict[str, Any]) -> None:
    calendar = make_calendar(tenant, BERLIN)
    values = {"where": "Hamburg", "participants": ["Bob"]}
    event = post(tenant, calendar, **values).data["id"]
    clock.shift(60)

    answer = tenant.put(f"/events/{event}", given)

    stamp = {"updated_at": "2026-11-20T09:31:00+0000"}
    expected = record(event, calendar, **{**values, **changed, **stamp})
    assert (answer.status, answer.json) == (200, {"data": expected})
    assert tenant.get(f"/events/{event}").data == expected


@pytest.mark.parametrize(
    ("zone", "given", "start", "end"),
    [
        (BERLIN, {"what": "B"}, "2026-11-23T00:00:00+01:00", "2026-11-25T00:00:00+01:00"),
        (BERLIN, {"end": "2026-11-24"}, "2026-11-23T00:00:00+01:00", "2026-11-24T00:00:00+01:00"),
        (BERLIN, {"end": None}, "2026-11-23T00:00:00+01:00", "2026-11-24T00:00:00+01:00"),
        (
            BERLIN,
            {"start": "2026-11-24T00:00:00+01:00"},
            "2026-11-24T00:00:00+01:00",
            "2026-11-25T00:00:00+01:00",
        ),
        (BERLIN, {"allDay": False}, "2026-11-22T23:00:00+00:00", "2026-11-24T23:00:00+00:00"),
        (
            BERLIN,
            {"all_day": False, "start": "2026-11-23 09:00:00", "end": "2026-11-23 10:00:00"},
            "2026-11-23T08:00:00+00:00",
            "2026-11-23T09:00:00+00:00",
        ),
    ],
)
def test_update_of_an_all_day_event(
    tenant: Tenant, zone: str, given: dict[str, Any], start: str, end: str
) -> None:
    calendar = make_calendar(tenant, zone)
    event = post(tenant, calendar, all_day=True, start="2026-11-23", end="2026-11-25").data["id"]

    answer = tenant.put(f"/events/{event}", given)

    assert (answer.status, answer.data["start"], answer.data["end"]) == (200, start, end)


@pytest.mark.parametrize(
    "given", [{"end": "2026-09-08"}, {"start": "2026-09-05"}, {"all_day": True, "what": "B"}]
)
def test_update_of_an_all_day_event_without_midnight(tenant: Tenant, given: dict[str, Any]) -> None:
    calendar = make_calendar(tenant, NO_MIDNIGHT)
    event = post(tenant, calendar, all_day=True, start="2026-09-06", end="2026-09-07").data["id"]

    answer = tenant.put(f"/events/{event}", given)

    assert answer.status == 200
    row = Event.objects.get(id=event)
    assert (str(row.start_date), str(row.end_date)) == (
        given.get("start", "2026-09-06"),
        given.get("end", "2026-09-07"),
    )


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"start": "2026-11-23T10:00:00Z"}, {"end": END}),
        ({"end": "2026-11-23T09:00:00Z"}, {"end": END}),
        ({"end": None}, {"end": TIME}),
        ({"start": None}, {"start": ["This field may not be null."]}),
        ({"all_day": True}, {"start": ["Must be a date, or a local midnight."]}),
        ({"what": None}, {"what": ["This field may not be null."]}),
    ],
)
def test_wrong_changes_are_refused(
    tenant: Tenant, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    event = post(tenant, make_calendar(tenant)).data

    answer = tenant.put(f"/events/{event['id']}", given)

    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert tenant.get(f"/events/{event['id']}").data == event


def test_deleted_event_does_not_block(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    event = post(tenant, resource["calendars"][0]["id"]).data["id"]

    answer = tenant.delete(f"/events/{event}")

    assert (answer.status, answer.content) == (204, b"")
    assert tenant.book(resource_id=resource["id"], **SPAN).status == 201


# --- Events of bookings ---------------------------------------------------------------------------
@pytest.mark.parametrize("action", [None, "cancel", "complete"])
@pytest.mark.parametrize(("method", "body"), [("PUT", {"what": "Mine"}), ("DELETE", None)])
def test_an_event_of_a_booking_is_in_use(
    tenant: Tenant, method: str, body: Any, action: str | None
) -> None:
    resource = tenant.make_resource()
    booking = tenant.book(resource_id=resource["id"], **SPAN).data["id"]
    if action:
        tenant.put(f"/bookings/{booking}/{action}")
    event = tenant.get(f"/events?{NOVEMBER}").data[0]

    answer = tenant.call(method, f"/events/{event['id']}", body)

    assert (answer.status, answer.error) == (
        409,
        {
            "error": f"The event belongs to booking {booking}.",
            "code": "in_use",
            "booking_id": booking,
        },
    )
    assert tenant.get(f"/events/{event['id']}").data == event


def test_a_companion_event_is_in_use(tenant: Tenant) -> None:
    first, second = tenant.make_resource("A"), tenant.make_resource("B")
    project = tenant.make_project(first["id"], second["id"], availability={"mode": "mutual"})
    booking = tenant.book(project_id=project["id"], **SPAN).data["id"]
    companion = tenant.get(f"/events?{NOVEMBER}&search=resource.id:{second['id']}").data[0]

    answer = tenant.delete(f"/events/{companion['id']}")

    assert (answer.status, answer.json["booking_id"]) == (409, booking)


def test_the_event_of_a_removed_booking_is_hidden_with_it(tenant: Tenant) -> None:
    """A removed booking is hidden everywhere, its rows stay."""
    resource = tenant.make_resource()
    booking = tenant.book(resource_id=resource["id"], **SPAN).data["id"]
    event = tenant.get(f"/events?{NOVEMBER}").data[0]["id"]
    tenant.put(f"/bookings/{booking}/cancel")

    tenant.delete(f"/bookings/{booking}")

    assert tenant.get(f"/events?{NOVEMBER}").json["total"] == 0
    answers = [tenant.call(method, f"/events/{event}", {}) for method in ("GET", "PUT", "DELETE")]
    assert [(answer.status, answer.error) for answer in answers] == [(404, NOT_FOUND)] * 3
    assert Event.objects.filter(id=event, start__gt=NOW).exists()


def test_companions_are_hidden_with_their_booking(tenant: Tenant) -> None:
    first, second = tenant.make_resource("A"), tenant.make_resource("B")
    project = tenant.make_project(first["id"], second["id"], availability={"mode": "mutual"})
    booking = tenant.book(project_id=project["id"], **SPAN).data["id"]
    tenant.put(f"/bookings/{booking}/cancel")

    before = tenant.get(f"/events?{NOVEMBER}").json["total"]
    tenant.delete(f"/bookings/{booking}")
    after = tenant.get(f"/events?{NOVEMBER}").json["total"]

    assert (before, after) == (2, 0)
