"""POST /bookings: where a booking goes, its defaults, and taken times (section 5)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from bookings.models import Customer
from tests.bookings.booking_drafts import (
    MARTY,
    MONDAY,
    NINE,
    answered,
    attributes_of,
    busy_times,
    count_rows,
    entry,
    event_info,
    shown,
    span,
    whole,
)
from tests.world import BERLIN, STAMP, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")


# --- The brief's payloads -------------------------------------------------------------------------
def brief_payload(calendar: str, **given: Any) -> dict[str, Any]:
    """A booking as the brief writes one: everything nested, a time without offset."""
    return {
        "graph": "confirm_decline",
        "action": "create",
        "event": {
            "start": f"{MONDAY} 09:00:00",
            "end": f"{MONDAY} 10:00:00",
            "what": "Mens haircut",
            "where": "Sesame St, Middleburg, FL 32068, USA",
            "calendar_id": calendar,
            "description": "Please arrive 10 minutes before your time to begin",
        },
        "customer": {
            "name": "Marty McFly",
            "email": "marty.mcfly@example.com",
            "phone": "(916) 555-4385",
            "voip": "McFly",
            "timezone": "America/Los_Angeles",
        },
        **given,
    }


def test_booking_by_project_and_resource(tenant: Tenant, calendar: str) -> None:
    body = brief_payload(calendar)

    answer = tenant.post("/bookings", body)

    expected = answered(answer.data, "tentative", "confirm_decline")
    assert (answer.status, answer.json) == (201, {"data": expected})
    customer = {"id": str(Customer.objects.get().id), **body["customer"], "meta": {}}
    customer |= {
        "external_id": None,
        "response": "needs_action",
        "responded_at": None,
        "source": None,
    }
    assert attributes_of(tenant, answer) == {
        "event_info": {
            **body["event"],
            **shown("09:00", "10:00"),
            "invite": True,
            "participants": [],
        },
        "customer": customer,
        "settings": {"allow_double_bookings": False, "enforce_availability": False},
        "group_booking": None,
    }


def test_booking_with_its_own_reminders(tenant: Tenant, calendar: str) -> None:
    """An instant booking that may overlap, reminds both sides and calls a day later."""
    reminders = [
        *(
            {
                "type": "email",
                "settings": {"recipient": recipient, "subject": "Reminder for your booking"},
                "when": {"type": "before", "unit": "mins", "time": 60},
            }
            for recipient in ("customer", "owner")
        ),
        {
            "type": "webhook",
            "settings": {
                "url": "https://example.com/called",
                "method": "post",
                "expected_response_code": 200,
            },
            "when": {"type": "after", "unit": "hours", "time": 24},
        },
    ]
    given = {
        "graph": "instant",
        "action": "confirm",
        "settings": {"allow_double_bookings": True},
        "event_notifications": reminders,
    }

    answer = tenant.post("/bookings", brief_payload(calendar, **given))

    found = whole(tenant, answer.data)
    assert (found["state"], found["event_notifications"]) == ("confirmed", reminders)
    assert found["attributes"]["settings"] == {
        "allow_double_bookings": True,
        "enforce_availability": False,
    }


# --- Where it goes --------------------------------------------------------------------------------
def test_booking_in_a_named_calendar(tenant: Tenant, ada: Any, clock: Any) -> None:
    clock.shift(1)
    second = tenant.post("/calendars", {"name": "B", "resource_id": ada["id"]}).data["id"]

    ids = [
        event_info(tenant, tenant.book(**target, **times))["calendar_id"]
        for target, times in (
            ({"calendar_id": second}, NINE),
            ({"calendar_id": second, "resource_id": ada["id"]}, moved(1)),
            ({"resource_id": ada["id"]}, moved(2)),
            ({"event": {"calendar_id": second}}, moved(3)),
        )
    ]

    assert ids == [second, second, ada["calendars"][0]["id"], second]


def moved(hours: int) -> dict[str, str]:
    return {
        "start": f"{MONDAY}T{9 + hours:02}:00:00Z",
        "end": f"{MONDAY}T{10 + hours:02}:00:00Z",
    }


def test_calendar_of_another_resource_is_refused(tenant: Tenant, calendar: str) -> None:
    other = tenant.make_resource("Bob")["id"]

    answer = tenant.book(resource_id=other, event={"calendar_id": calendar, **NINE})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"event.calendar_id": ["Belongs to another resource."]},
    )


@pytest.mark.parametrize("kind", ["foreign", "unknown", "removed"])
@pytest.mark.parametrize("name", ["resource", "calendar", "project"])
def test_unknown_ids_are_refused(
    tenant: Tenant, make_tenant: MakeTenant, name: str, kind: str
) -> None:
    other = make_tenant() if kind == "foreign" else tenant
    resource = other.make_resource()
    ids = {
        "resource": resource["id"],
        "calendar": resource["calendars"][0]["id"],
        "project": other.make_project(resource["id"])["id"],
    }
    if kind == "removed":
        other.post("/calendars", {"name": "B", "resource_id": resource["id"]})
        other.delete(f"/{name}s/{ids[name]}")
    wanted = str(uuid.uuid4()) if kind == "unknown" else ids[name]

    answer = tenant.book(**{f"{name}_id": wanted}, **NINE)

    assert (answer.status, answer.json["errors"]) == (
        422,
        {f"{name}_id": [f"There is no such {name}."]},
    )


@pytest.mark.parametrize(
    ("start", "headers", "expected"),
    [
        ("2026-11-23 09:00:00", {}, "2026-11-23T08:00:00+00:00"),
        ("2026-11-23T09:00:00", {}, "2026-11-23T08:00:00+00:00"),
        ("2026-07-01 09:00:00", {}, "2026-07-01T07:00:00+00:00"),
        ("2026-10-25 02:30:00", {}, "2026-10-25T00:30:00+00:00"),
        ("2026-11-23 09:00:00", {"Service-Timezone": "Asia/Tokyo"}, "2026-11-23T17:00:00+09:00"),
        ("2026-11-23T09:00:00-05:00", {}, "2026-11-23T14:00:00+00:00"),
        ("2026-11-23T09:00:00.123456Z", {}, "2026-11-23T09:00:00+00:00"),
    ],
)
def test_wall_times_are_in_the_zone_of_the_resource(
    tenant: Tenant, start: str, headers: dict[str, str], expected: str
) -> None:
    resource = tenant.make_resource(timezone=BERLIN)["id"]
    body = {
        "resource_id": resource,
        "start": start,
        "end": "2026-12-01T00:00:00Z",
        "what": "A",
        "customer": MARTY,
    }

    answer = tenant.post("/bookings?include=attributes", body, **headers)

    assert answer.data["attributes"]["event_info"]["start"] == expected


@pytest.mark.parametrize(
    ("zones", "headers", "default", "expected"),
    [
        ((BERLIN, BERLIN), {}, "Asia/Tokyo", "08:00"),
        ((BERLIN, "Asia/Tokyo"), {}, None, "09:00"),
        ((BERLIN, "Asia/Tokyo"), {}, "America/New_York", "14:00"),
        ((BERLIN, "Asia/Tokyo"), {"Service-Timezone": BERLIN}, "America/New_York", "08:00"),
    ],
)
def test_wall_times_without_a_named_resource(
    tenant: Tenant,
    zones: tuple[str, str],
    headers: dict[str, str],
    default: str | None,
    expected: str,
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": default}})
    project = tenant.make_project(*(tenant.make_resource(zone, zone)["id"] for zone in zones))
    body = {
        "project_id": project["id"],
        "start": f"{MONDAY} 09:00:00",
        "end": f"{MONDAY} 10:00:00",
        "what": "A",
        "customer": MARTY,
    }

    booking = tenant.post("/bookings", body, **headers).data

    info = whole(tenant, booking)["attributes"]["event_info"]
    assert info["start"] == f"{MONDAY}T{expected}:00+00:00"


# --- Defaults -------------------------------------------------------------------------------------
def test_defaults_without_a_project(tenant: Tenant, ada: Any) -> None:
    answer = tenant.book(resource_id=ada["id"], **NINE)

    booking = whole(tenant, answer.data)
    assert answer.data == answered(answer.data, "confirmed")
    assert booking["attributes"]["event_info"] == {
        **shown("09:00", "10:00"),
        "what": "Meeting",
        "where": "",
        "description": "",
        "calendar_id": ada["calendars"][0]["id"],
        "invite": True,
        "participants": [],
    }
    assert (booking["meta"], booking["project"], booking["event_notifications"]) == ({}, None, [])


DEFAULTS = {
    "graph": "confirm_decline",
    "what": "Default",
    "where": "There",
    "description": "Words",
    "rescheduling_url": "https://example.com",
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("confirm_decline", "tentative", "Default", "There", "Words")),
        (
            {"graph": "instant", "what": "Own", "where": "Here", "description": "Mine"},
            ("instant", "confirmed", "Own", "Here", "Mine"),
        ),
        (
            {"graph": None, "where": None, "description": None},
            ("confirm_decline", "tentative", "Default", "There", "Words"),
        ),
        (
            {"where": "", "description": ""},
            ("confirm_decline", "tentative", "Default", "", ""),
        ),
        (
            {"event": {"what": "Own"}},
            ("confirm_decline", "tentative", "Own", "There", "Words"),
        ),
    ],
)
def test_defaults_of_the_project(
    tenant: Tenant, ada: Any, given: dict[str, Any], expected: tuple[str, ...]
) -> None:
    project = tenant.make_project(ada["id"], booking=DEFAULTS)

    answer = tenant.post(
        "/bookings", {"project_id": project["id"], "customer": MARTY, **NINE, **given}
    )

    booking = whole(tenant, answer.data)
    info = booking["attributes"]["event_info"]
    graph, state, what, where, description = expected
    assert answer.data == answered(answer.data, state, graph)
    assert info == {
        **shown("09:00", "10:00"),
        **{"what": what, "where": where, "description": description},
        **{"calendar_id": ada["calendars"][0]["id"], "invite": True, "participants": []},
    }
    assert booking["project"]["id"] == project["id"]


@pytest.mark.parametrize(
    ("own", "asked", "expected"),
    [
        (None, None, (False, False)),
        (None, {}, (False, False)),
        (None, [], (False, False)),
        (None, {"allow_double_bookings": True}, (True, False)),
        (None, {"enforce_availability": True}, (False, True)),
        (None, {"allow_double_bookings": None, "enforce_availability": None}, (False, False)),
        ({}, {}, (False, True)),
        ({}, {"enforce_availability": False}, (False, False)),
        ({"enforce_availability": False}, {}, (False, False)),
        ({"enforce_availability": False}, {"enforce_availability": True}, (False, True)),
        ({"allow_double_bookings": True}, {}, (True, True)),
        ({"allow_double_bookings": True}, {"allow_double_bookings": False}, (False, True)),
        ({"allow_double_bookings": True}, {"allow_double_bookings": None}, (True, True)),
    ],
)
def test_settings_and_their_defaults(
    tenant: Tenant,
    ada: Any,
    own: dict[str, bool] | None,
    asked: Any,
    expected: tuple[bool, bool],
) -> None:
    """Of the request, else of the project; enforced by default where a project is named."""
    target = {"resource_id": ada["id"]}
    if own is not None:
        target = {"project_id": tenant.make_project(ada["id"], settings=own)["id"]}

    answer = tenant.book(settings=asked, **target, **NINE)

    assert attributes_of(tenant, answer)["settings"] == dict(
        zip(("allow_double_bookings", "enforce_availability"), expected, strict=True)
    )


# --- Event notifications --------------------------------------------------------------------------
def reminder(minutes: int) -> dict[str, Any]:
    return {
        "type": "email",
        "settings": {"recipient": "customer"},
        "when": {"type": "before", "unit": "mins", "time": minutes},
    }


APP, PROJECT, OWN = [reminder(1)], [reminder(2), reminder(3)], [reminder(4)]


@pytest.mark.parametrize(
    ("project", "given", "expected"),
    [
        (None, {}, APP),
        (None, {"event_notifications": None}, APP),
        (None, {"event_notifications": OWN}, OWN),
        (None, {"event_notifications": []}, []),
        ({}, {}, APP),
        ({"event_notifications": None}, {}, APP),
        ({"event_notifications": PROJECT}, {}, PROJECT),
        ({"event_notifications": PROJECT}, {"event_notifications": OWN}, OWN),
        ({"event_notifications": PROJECT}, {"event_notifications": []}, []),
        ({"event_notifications": []}, {}, []),
        ({"event_notifications": []}, {"event_notifications": OWN}, OWN),
        ({"reminders": PROJECT}, {}, PROJECT),
    ],
)
def test_notifications_of_booking_project_and_app_precedence(
    tenant: Tenant,
    ada: Any,
    project: dict[str, Any] | None,
    given: dict[str, Any],
    expected: list[Any],
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"event_notifications": APP})
    target = {"resource_id": ada["id"]}
    if project is not None:
        target = {"project_id": tenant.make_project(ada["id"], **project)["id"]}

    booking = tenant.book(**target, **NINE, **given).data

    assert whole(tenant, booking)["event_notifications"] == expected


def test_notifications_are_copied_at_creation(tenant: Tenant, ada: Any) -> None:
    """The app's are made for every booking made afterwards, and for none made before."""
    path = f"/apps/{tenant.app.slug}"
    made = [tenant.book(resource_id=ada["id"], **NINE).data]
    tenant.put(path, {"event_notifications": APP})
    made.append(tenant.book(resource_id=ada["id"], **moved(1)).data)
    tenant.put(path, {"event_notifications": []})
    made.append(tenant.book(resource_id=ada["id"], **moved(2)).data)

    found = [whole(tenant, booking)["event_notifications"] for booking in made]

    assert found == [[], APP, []]


# --- Overlaps, where nothing is enforced ----------------------------------------------------------
@pytest.mark.parametrize(
    ("start", "end", "status"),
    [
        ("08:00", "09:00", 201),
        ("10:00", "11:00", 201),
        ("08:00", "09:01", 409),
        ("09:59", "11:00", 409),
        ("09:00", "10:00", 409),
        ("09:15", "09:45", 409),
        ("08:00", "11:00", 409),
    ],
)
@pytest.mark.parametrize("by", ["booking", "event"])
def test_touching_bookings_are_allowed_and_overlaps_refused(
    tenant: Tenant, ada: Any, calendar: str, by: str, start: str, end: str, status: int
) -> None:
    if by == "booking":
        tenant.book(resource_id=ada["id"], **NINE)
    else:
        tenant.make_event(calendar, **NINE)
    rows = count_rows()

    answer = tenant.book(
        resource_id=ada["id"], start=f"{MONDAY}T{start}:00Z", end=f"{MONDAY}T{end}:00Z"
    )

    assert answer.status == status
    if status == 409:
        assert (answer.json["code"], answer.json["conflicts"]) == (
            "slot_taken",
            [shown("09:00", "10:00")],
        )
        assert count_rows() == rows


def test_whole_refusal_of_a_taken_slot(tenant: Tenant, ada: Any, calendar: str) -> None:
    tenant.book(resource_id=ada["id"], **NINE)
    tenant.make_event(calendar, **moved(2))

    answer = tenant.book(
        resource_id=ada["id"], start=f"{MONDAY}T09:30:00Z", end=f"{MONDAY}T11:30:00Z"
    )

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:00", "10:00"), shown("11:00", "12:00")],
            "alternatives": [
                shown("12:00", "14:00"),
                shown("14:00", "16:00"),
                shown("16:00", "18:00"),
            ],
        },
    )


def test_alternatives_of_a_full_fortnight(tenant: Tenant, ada: Any, calendar: str) -> None:
    tenant.make_event(calendar, "2026-11-20T00:00:00Z", "2026-12-08T00:00:00Z")

    answer = tenant.book(resource_id=ada["id"], **NINE)

    assert (answer.status, answer.json["alternatives"]) == (409, [])


def test_alternatives_are_never_in_the_past(tenant: Tenant, ada: Any) -> None:
    """A booking may be written down afterwards; what is offered instead lies ahead."""
    past = {"start": "2026-11-20T08:00:00Z", "end": "2026-11-20T09:00:00Z"}
    tenant.book(resource_id=ada["id"], **past)

    answer = tenant.book(resource_id=ada["id"], **past)

    assert (answer.status, answer.json["alternatives"][0]) == (
        409,
        {"start": "2026-11-20T09:30:00+00:00", "end": "2026-11-20T10:30:00+00:00"},
    )


def test_alternatives_at_the_last_date(tenant: Tenant, ada: Any) -> None:
    """The fortnight to look through reaches beyond 2199."""
    late = {"start": "2199-12-30T09:00:00Z", "end": "2199-12-30T10:00:00Z"}
    tenant.book(resource_id=ada["id"], **late)

    answer = tenant.book(resource_id=ada["id"], **late)

    assert (answer.status, answer.json["code"], answer.json["alternatives"][0]) == (
        409,
        "slot_taken",
        {"start": "2199-12-30T10:00:00+00:00", "end": "2199-12-30T11:00:00+00:00"},
    )


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [(False, False, 409), (True, False, 409), (False, True, 201), (True, True, 201)],
)
def test_double_booking_still_blocks_others(
    tenant: Tenant, ada: Any, first: bool, second: bool, status: int
) -> None:
    """allow_double_bookings leaves out the booking's own check, and nobody else's."""
    answers = [
        tenant.book(resource_id=ada["id"], settings={"allow_double_bookings": allowed}, **NINE)
        for allowed in (first, second)
    ]

    assert [answer.status for answer in answers] == [201, status]
    if status == 201:
        assert answers[1].json == {"data": answered(answers[1].data, "confirmed")}
    else:
        assert answers[1].error == {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:00", "10:00")],
            "alternatives": [
                shown("10:00", "11:00"),
                shown("11:00", "12:00"),
                shown("12:00", "13:00"),
            ],
        }


def test_drafts_do_not_block(tenant: Tenant, ada: Any) -> None:
    draft = tenant.book(resource_id=ada["id"], action="create", **NINE)
    over_it = tenant.book(resource_id=ada["id"], **NINE)
    over_a_booking = tenant.book(resource_id=ada["id"], action="create", **NINE)

    assert [answer.status for answer in (draft, over_it, over_a_booking)] == [201, 201, 201]
    assert busy_times(tenant, ada["id"]) == ["09:00-10:00"]


def test_rules_of_a_resource_are_not_enforced_by_default(tenant: Tenant) -> None:
    closed = tenant.make_resource(availability_constraints=[{"block_weekdays": {}}])["id"]

    free, enforced = (
        tenant.book(resource_id=closed, settings={"enforce_availability": value}, **NINE)
        for value in (None, True)
    )

    assert (free.status, enforced.status) == (201, 409)


def test_bookings_of_other_resources_do_not_conflict(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob")["id"]
    tenant.book(resource_id=ada["id"], **NINE)

    assert tenant.book(resource_id=bob, **NINE).status == 201


# --- The log --------------------------------------------------------------------------------------
def test_creation_is_the_first_log_entry(tenant: Tenant, ada: Any) -> None:
    member = tenant.member("owner@example.com")
    project = tenant.make_project(ada["id"])["id"]
    body = {"what": "A", "customer": MARTY, "project_id": project}

    made = [
        member.post("/bookings", {**body, **NINE}).data,
        tenant.widget().post("/bookings", {**body, **moved(1)}).data,
    ]

    found = [whole(tenant, booking)["logs"] for booking in made]
    line = {
        "from_state": "initialized",
        "to_state": "confirmed",
        "action": "confirm",
        "message": "",
        "created_at": STAMP,
    }
    assert found[0] == [{**line, "actor": "owner@example.com", "source": "api"}]
    assert found[1] == [{**line, "actor": found[1][0]["actor"], "source": "widget"}]
    assert found[1][0]["actor"].startswith("widget key ")


def test_response_has_place_and_time(tenant: Tenant, ada: Any) -> None:
    project = tenant.make_project(ada["id"])["id"]
    headers = {"Service-Timezone": BERLIN}
    body = {"what": "Check-up", "customer": MARTY, "project_id": project, **NINE}
    place = {"resource_id": ada["id"], "project_id": project}
    times = {"start": f"{MONDAY}T10:00:00+01:00", "end": f"{MONDAY}T11:00:00+01:00"}

    answer = tenant.post("/bookings", body, **headers)
    path = f"/bookings/{answer.data['id']}"
    moved = tenant.post(f"{path}/reschedule", span("11:00", "12:00"))
    cancelled = tenant.put(f"{path}/cancel", **headers)

    assert (answer.status, answer.data) == (
        201,
        {**entry(answer.data, "confirmed"), **place, **times},
    )
    new = shown("11:00", "12:00")
    assert moved.data == {**entry(answer.data, "confirmed"), **place, **new}
    later = {"start": f"{MONDAY}T12:00:00+01:00", "end": f"{MONDAY}T13:00:00+01:00"}
    assert cancelled.data == {**entry(answer.data, "cancelled"), **place, **later}
