"""The body of POST /bookings: both forms, customers, what is refused or ignored (section 5)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.bookings.booking_drafts import (
    MARTY,
    MONDAY,
    NINE,
    answered,
    attributes_of,
    count_rows,
    event_info,
    shown,
    whole,
)
from tests.world import BERLIN, Answer, Tenant

pytestmark = pytest.mark.usefixtures("clock")

REQUIRED = ["This field is required."]


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
                "event_notifications.0.when.type": ["Must be one of before, after."],
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


# --- Customers ------------------------------------------------------------------------------------
def customers_of(tenant: Tenant, answer: Answer) -> list[dict[str, Any]]:
    """Without their ids."""
    assert answer.status == 201, answer.json
    return [
        {key: value for key, value in customer.items() if key != "id"}
        for customer in whole(tenant, answer.data)["customers"]
    ]


def customer(**given: Any) -> dict[str, Any]:
    unset = {"external_id": None, "phone": "", "voip": "", "timezone": "", "meta": {}}
    unset |= {"response": "needs_action", "responded_at": None, "source": None}
    return {**MARTY, **unset, **given}


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
