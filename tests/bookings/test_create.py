"""POST /bookings: both forms, defaults, what is needed, what is refused (section 5)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from availability.models import Event
from bookings.models import Booking, BookingNotification, Customer, StateChange
from tests.bookings.booking_drafts import (
    MARTY,
    MONDAY,
    NINE,
    answered,
    busy_times,
    entry,
    shown,
    span,
    whole,
)
from tests.world import BERLIN, STAMP, Answer, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

REQUIRED = ["This field is required."]
MODELS = (Booking, Event, Customer, StateChange, BookingNotification)


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource()


@pytest.fixture
def calendar(ada: Any) -> str:
    return ada["calendars"][0]["id"]


def attributes_of(tenant: Tenant, answer: Answer) -> Any:
    assert answer.status == 201, answer.json
    return whole(tenant, answer.data)["attributes"]


def event_info(tenant: Tenant, answer: Answer) -> Any:
    return attributes_of(tenant, answer)["event_info"]


def count_rows() -> dict[str, int]:
    return {model.__name__: model.objects.count() for model in MODELS}


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


# --- Nested, flat, mixed --------------------------------------------------------------------------
DETAILS = {
    **NINE,
    "what": "Check-up",
    "where": "Room 2",
    "description": "two\nlines",
    "invite": False,
    "participants": ["bob@example.com"],
}


def nested(details: dict[str, Any]) -> dict[str, Any]:
    return {"event": details}


def flat(details: dict[str, Any]) -> dict[str, Any]:
    return details


def mixed(details: dict[str, Any]) -> dict[str, Any]:
    keys = sorted(details)
    inside = {key: details[key] for key in keys[::2]}
    return {"event": inside, **{key: details[key] for key in keys[1::2]}}


def doubled(details: dict[str, Any]) -> dict[str, Any]:
    return {"event": details, **details}


@pytest.mark.parametrize("form", [nested, flat, mixed, doubled])
def test_flat_and_nested_forms_are_equal(
    tenant: Tenant, calendar: str, form: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    details = {**DETAILS, "calendar_id": calendar}

    answer = tenant.post("/bookings", {"customer": MARTY, **form(details)})

    assert event_info(tenant, answer) == {**details, **shown("09:00", "10:00")}


@pytest.mark.parametrize("key", [*DETAILS, "calendar_id"])
def test_contradicting_forms_are_refused(tenant: Tenant, calendar: str, key: str) -> None:
    details = {**DETAILS, "calendar_id": calendar}

    answer = tenant.post("/bookings", {"customer": MARTY, "event": details, key: "other"})

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (
        422,
        "invalid",
        {f"event.{key}": [f"Must equal the key `{key}` outside of `event`."]},
    )


@pytest.mark.parametrize("event", ["x", 5, [1]])
def test_event_that_is_no_object_is_refused(tenant: Tenant, ada: Any, event: Any) -> None:
    body = {"customer": MARTY, "resource_id": ada["id"], **DETAILS, "event": event}

    answer = tenant.post("/bookings", body)

    assert (answer.status, answer.json["errors"]) == (422, {"event": ["Must be an object."]})


@pytest.mark.parametrize("event", [None, {}, []])
def test_empty_event_is_accepted(tenant: Tenant, ada: Any, event: Any) -> None:
    """An empty array stands for an empty object."""
    body = {"customer": MARTY, "resource_id": ada["id"], **DETAILS, "event": event}

    assert tenant.post("/bookings", body).status == 201


# --- What is needed -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("missing", "errors"),
    [
        ("start", {"event.start": REQUIRED}),
        ("end", {"event.end": REQUIRED}),
        ("what", {"event.what": REQUIRED}),
        (
            "calendar_id",
            {"event.calendar_id": ["A calendar, a resource or a project is required."]},
        ),
        ("customer", {"customer": REQUIRED}),
    ],
)
@pytest.mark.parametrize("form", [nested, flat])
def test_required_fields(
    tenant: Tenant,
    calendar: str,
    form: Callable[[dict[str, Any]], dict[str, Any]],
    missing: str,
    errors: dict[str, list[str]],
) -> None:
    details = {**NINE, "what": "Check-up", "calendar_id": calendar}
    details.pop(missing, None)
    body = form(details) | ({} if missing == "customer" else {"customer": MARTY})

    answer = tenant.post("/bookings", body)

    paths = errors if form is nested else {k.removeprefix("event."): v for k, v in errors.items()}
    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", paths)
    assert count_rows() == dict.fromkeys(count_rows(), 0)


@pytest.mark.parametrize("body", [{}, [], None])
def test_empty_body_is_refused(tenant: Tenant, body: Any) -> None:
    answer = tenant.post("/bookings", body)

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"calendar_id": ["A calendar, a resource or a project is required."]},
    )


@pytest.mark.parametrize("body", ["x", 5, [1], True])
def test_body_that_is_no_object_is_refused(tenant: Tenant, body: Any) -> None:
    answer = tenant.post("/bookings", body)

    assert (answer.status, answer.json["errors"]) == (422, {"body": ["Must be an object."]})


FORM = ["Must be a date and time such as 2026-11-20T10:30:00+01:00."]
AFTER = ["Must be after the start."]
LONG = ["Ensure this field has no more than 200 characters."]
BREAK = ["May not contain control characters or line breaks."]


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"start": "tomorrow"}, {"event.start": FORM}),
        ({"start": MONDAY}, {"event.start": FORM}),
        ({"start": None}, {"event.start": ["This field may not be null."]}),
        ({"start": 5}, {"event.start": ["Must be a string."]}),
        (
            {"start": "2026-03-29 02:30:00"},
            {"event.start": ["2026-03-29 02:30:00 does not exist in Europe/Berlin."]},
        ),
        ({"start": "1969-01-01T00:00:00Z"},
         {"event.start": ["The year must be from 1970 to 2199."]}),
        ({"end": f"{MONDAY}T09:00:00Z"}, {"event.end": AFTER}),
        ({"end": f"{MONDAY}T08:59:59Z"}, {"event.end": AFTER}),
        ({"end": "2027-11-24T09:00:01Z"},
         {"event.end": ["Must be at most 366 days after the start."]}),
        ({"what": ""}, {"event.what": ["This field may not be blank."]}),
        ({"what": "x" * 201}, {"event.what": LONG}),
        ({"what": "a\r\nBcc: x"}, {"event.what": BREAK}),
        ({"what": 5}, {"event.what": ["Must be a string."]}),
        ({"where": "x" * 201}, {"event.where": LONG}),
        ({"where": "a\nb"}, {"event.where": BREAK}),
        ({"description": "x" * 8001},
         {"event.description": ["Ensure this field has no more than 8000 characters."]}),
        ({"description": "a\x07"},
         {"event.description": ["May not contain control characters."]}),
        ({"invite": "no"}, {"event.invite": ["Must be true or false."]}),
        ({"participants": "bob"}, {"event.participants": ["Must be a list."]}),
        ({"participants": [5]}, {"event.participants.0": ["Must be a string."]}),
        ({"calendar_id": "5"}, {"event.calendar_id": ["Must be a UUID."]}),
        (
            {"start": "x", "end": None, "what": ""},
            {
                "event.start": FORM,
                "event.end": ["This field may not be null."],
                "event.what": ["This field may not be blank."],
            },
        ),
    ],
)  # fmt: skip
def test_wrong_events_are_refused(
    tenant: Tenant, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    calendar = tenant.make_resource(timezone=BERLIN)["calendars"][0]["id"]
    event = {**NINE, "what": "Check-up", "calendar_id": calendar, **given}

    answer = tenant.post("/bookings", {"event": event, "customer": MARTY})

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert count_rows() == dict.fromkeys(count_rows(), 0)


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"graph": 5}, {"graph": ["Must be a string."]}),
        ({"action": "cancel"}, {"action": ["The graph instant starts with: confirm, create."]}),
        ({"action": ""}, {"action": ["This field may not be blank."]}),
        ({"settings": "x"}, {"settings": ["Must be an object."]}),
        (
            {"settings": {"allow_double_bookings": "yes", "enforce_availability": 1}},
            {
                "settings.allow_double_bookings": ["Must be true or false."],
                "settings.enforce_availability": ["Must be true or false."],
            },
        ),
        ({"meta": "x"}, {"meta": ["Must be an object."]}),
        ({"meta": {str(n): n for n in range(51)}}, {"meta": ["Must have at most 50 keys."]}),
        ({"meta": {"a": "x" * 16_384}}, {"meta": ["Must be at most 16 kB."]}),
        ({"event_notifications": {}}, {"event_notifications": ["Must be a list."]}),
        (
            {
                "event_notifications": [
                    {"type": "email", "settings": {}, "when": {"type": "at", "unit": "days"}}
                ]
            },
            {
                "event_notifications.0.when.type": ['"at" is not a valid choice.'],
                "event_notifications.0.when.time": REQUIRED,
                "event_notifications.0.settings.recipient": REQUIRED,
            },
        ),
        ({"resource_id": "5"}, {"resource_id": ["Must be a UUID."]}),
        ({"project_id": 5}, {"project_id": ["Must be a UUID."]}),
    ],
)
def test_wrong_values_are_refused(
    tenant: Tenant, calendar: str, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    answer = tenant.book(calendar_id=calendar, **NINE, **given)

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert count_rows() == dict.fromkeys(count_rows(), 0)


@pytest.mark.parametrize(
    "values",
    [
        {"what": "x" * 200, "where": "y" * 200, "description": "z" * 8000},
        {"what": "Zoë 李 🦷", "where": "", "description": "a\tb\r\nc"},
        {"start": f"{MONDAY}T09:00:00+00:00", "end": "2027-11-24T09:00:00+00:00"},
        {"participants": ["x" * 254] * 100},
    ],
)
def test_bounds_of_values_are_accepted(
    tenant: Tenant, calendar: str, values: dict[str, Any]
) -> None:
    answer = tenant.book(calendar_id=calendar, **{**NINE, **values})

    info = event_info(tenant, answer)
    assert {key: info[key] for key in values} == values


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


# --- Customers ------------------------------------------------------------------------------------
def customers_of(tenant: Tenant, answer: Answer) -> list[dict[str, Any]]:
    """Without their ids."""
    assert answer.status == 201, answer.json
    return [
        {key: value for key, value in customer.items() if key != "id"}
        for customer in whole(tenant, answer.data)["customers"]
    ]


def customer(**given: Any) -> dict[str, Any]:
    return {**MARTY, "phone": "", "voip": "", "timezone": "", "meta": {}, **given}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"phone": None, "voip": None, "timezone": None, "meta": None}, {}),
        ({"phone": "", "voip": "", "meta": []}, {}),
        (
            {"phone": "+1 555", "voip": "McFly", "timezone": "America/Los_Angeles"},
            {"phone": "+1 555", "voip": "McFly", "timezone": "America/Los_Angeles"},
        ),
        (
            {"newsletter": True, "age": "17", "tags": ["a", "b"], "gone": None, "id": "x"},
            {"meta": {"newsletter": True, "age": "17", "tags": ["a", "b"]}},
        ),
        (
            {"meta": {"age": 18}, "age": "17", "city": "Hill Valley"},
            {"meta": {"age": 18, "city": "Hill Valley"}},
        ),
        ({"name": "x" * 200}, {"name": "x" * 200}),
    ],
)
def test_fields_of_a_customer(
    tenant: Tenant, ada: Any, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    answer = tenant.book(resource_id=ada["id"], customer={**MARTY, **given}, **NINE)

    assert customers_of(tenant, answer) == [customer(**expected)]


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"name": None}, {"name": ["This field may not be null."]}),
        ({"name": ""}, {"name": ["This field may not be blank."]}),
        ({"name": "a\nb"}, {"name": BREAK}),
        ({"name": "x" * 201}, {"name": LONG}),
        ({"email": "marty"}, {"email": ["Must be an e-mail address."]}),
        ({"email": "a@example.com\nBcc: b@example.com"}, {"email": BREAK}),
        ({"email": None}, {"email": ["This field may not be null."]}),
        ({"phone": 5}, {"phone": ["Must be a string."]}),
        ({"timezone": "Hill Valley"}, {"timezone": ["Must be a time zone such as Europe/Berlin."]}),
        ({"meta": "x"}, {"meta": ["Must be an object."]}),
        (
            {f"key{n}": n for n in range(30)} | {"meta": {f"a{n}": n for n in range(21)}},
            {"meta": ["Must have at most 50 keys."]},
        ),
        ({"note": "x" * 16_384}, {"": ["Must be at most 16 kB."]}),
    ],
)
@pytest.mark.parametrize("as_list", [False, True])
def test_wrong_customers_are_refused(
    tenant: Tenant, ada: Any, as_list: bool, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    person = {**MARTY, **given}
    customers = {"customers": [MARTY, person]} if as_list else {"customer": person}
    path = "customers.1" if as_list else "customer"

    answer = tenant.post("/bookings", {"resource_id": ada["id"], "what": "A", **NINE, **customers})

    expected = {f"{path}.{key}".rstrip("."): fault for key, fault in errors.items()}
    assert (answer.status, answer.json["errors"]) == (422, expected)


def test_several_customers_keep_their_order(tenant: Tenant, ada: Any) -> None:
    people = [{"name": f"Guest {n}", "email": f"g{n}@example.com"} for n in range(50)]
    body = {"resource_id": ada["id"], "what": "A", "customers": people, **NINE}

    answer = tenant.post("/bookings", body)

    assert customers_of(tenant, answer) == [customer(**person) for person in people]
    assert attributes_of(tenant, answer)["customer"]["name"] == "Guest 0"


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"customers": []}, {"customers": ["This list may not be empty."]}),
        ({"customers": [MARTY] * 51}, {"customers": ["Must have at most 50 items."]}),
        ({"customers": MARTY}, {"customers": ["Must be a list."]}),
        ({"customers": ["x"]}, {"customers.0": ["Must be an object."]}),
        ({"customer": "x"}, {"customer": ["Must be an object."]}),
        ({"customer": None}, {"customer": ["This field may not be null."]}),
        ({"customer": {}}, {"customer.name": REQUIRED, "customer.email": REQUIRED}),
        ({"customer": []}, {"customer.name": REQUIRED, "customer.email": REQUIRED}),
        ({"customer": {"name": "A"}}, {"customer.email": REQUIRED}),
        ({"customer": {"email": "a@example.com"}}, {"customer.name": REQUIRED}),
        (
            {"customer": MARTY, "customers": [MARTY]},
            {"customers": ["Send either `customer` or `customers`."]},
        ),
    ],
)
def test_wrong_lists_of_customers_are_refused(
    tenant: Tenant, ada: Any, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    answer = tenant.post("/bookings", {"resource_id": ada["id"], "what": "A", **NINE, **given})

    assert (answer.status, answer.json["errors"]) == (422, errors)


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


# --- Meta, includes, what is ignored --------------------------------------------------------------
@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"a": 1, "b": {"c": [None, "x"]}, "gone": None}, {"a": 1, "b": {"c": [None, "x"]}}),
        ([], {}),
        (None, {}),
        ({str(n): n for n in range(50)}, {str(n): n for n in range(50)}),
    ],
)
def test_meta(tenant: Tenant, ada: Any, meta: Any, expected: dict[str, Any]) -> None:
    booking = tenant.book(resource_id=ada["id"], meta=meta, **NINE).data

    assert whole(tenant, booking)["meta"] == expected


def test_includes_of_the_answer(tenant: Tenant, ada: Any) -> None:
    body = {"resource_id": ada["id"], "what": "A", "customer": MARTY, "meta": {"a": 1}, **NINE}

    answer = tenant.post("/bookings?include=meta,available_actions", body)

    assert (answer.status, answer.json) == (
        201,
        {
            "data": answered(
                answer.data,
                "confirmed",
                meta={"a": 1},
                available_actions=["cancel", "cancel_by_customer", "complete"],
            )
        },
    )


def test_unknown_include_creates_nothing(tenant: Tenant, ada: Any) -> None:
    body = {"resource_id": ada["id"], "what": "A", "customer": MARTY, **NINE}

    answer = tenant.post("/bookings?include=everything", body)

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"include": ["everything can't be included."]},
    )
    assert count_rows() == dict.fromkeys(count_rows(), 0)


def test_unknown_keys_are_ignored(tenant: Tenant, ada: Any) -> None:
    ignored = {"state": "completed", "id": "x", "completed": True, "user": {}, "created_at": 5}

    answer = tenant.book(resource_id=ada["id"], **NINE, **ignored)

    assert answer.data == answered(answer.data, "confirmed")


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
