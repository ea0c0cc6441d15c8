"""/calendars: lists of events, at least one for each resource (section 4)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from availability.models import Calendar
from tests.world import STAMP, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

NOT_FOUND = {"error": "Calendar not found.", "code": "not_found", "model": "Calendar"}
SPAN = {"start": "2026-11-23T09:00:00Z", "end": "2026-11-23T10:00:00Z"}


def record(calendar_id: str, resource_id: str, **given: Any) -> dict[str, Any]:
    return {
        "id": calendar_id,
        "resource_id": resource_id,
        "name": "Private",
        "description": "",
        "backgroundcolor": "",
        "foregroundcolor": "",
        "provider": "service",
        "provider_id": None,
        "provider_access": None,
        "provider_primary": False,
        "provider_sync": False,
        "grant_id": None,
        "account": None,
        "synced_at": None,
        "problem": None,
        "progress": None,
        "unread": 0,
        "created_at": STAMP,
        "updated_at": STAMP,
        **given,
    }


def make_calendar(tenant: Tenant, resource: Any, name: str = "Private", **given: Any) -> Any:
    body = {"name": name, "resource_id": resource["id"], **given}
    return tenant.post("/calendars", body).data


# --- POST -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, {}),
        (
            {
                "name": "x" * 200,
                "description": "two\nlines",
                "backgroundcolor": "#1f6feb",
                "foregroundcolor": "white",
            },
            {
                "name": "x" * 200,
                "description": "two\nlines",
                "backgroundcolor": "#1f6feb",
                "foregroundcolor": "white",
            },
        ),
        ({"description": None, "backgroundcolor": None, "foregroundcolor": ""}, {}),
        ({"provider": "service", "provider_sync": True, "unknown": 1}, {}),
    ],
)
def test_a_new_calendar(tenant: Tenant, given: dict[str, Any], shown: dict[str, Any]) -> None:
    resource = tenant.post_resource()

    answer = tenant.post("/calendars", {"name": "Private", "resource_id": resource["id"], **given})

    expected = record(answer.data["id"], resource["id"], **shown)
    assert (answer.status, answer.json) == (201, {"data": expected})
    assert tenant.get(f"/calendars/{answer.data['id']}").data == expected


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"name": None}, {"name": ["This field may not be null."]}),
        ({"name": ""}, {"name": ["This field may not be blank."]}),
        ({"name": "a\nb"}, {"name": ["May not contain control characters or line breaks."]}),
        (
            {"description": "x" * 8001},
            {"description": ["Ensure this field has no more than 8000 characters."]},
        ),
        (
            {"backgroundcolor": "x" * 33},
            {"backgroundcolor": ["Ensure this field has no more than 32 characters."]},
        ),
        ({"resource_id": "5"}, {"resource_id": ["Must be a UUID."]}),
        ({"resource_id": None}, {"resource_id": ["This field may not be null."]}),
        ({"provider": None}, {"provider": ["This field may not be null."]}),
    ],
)
def test_wrong_values_are_refused(
    tenant: Tenant, given: dict[str, Any], errors: dict[str, list[str]]
) -> None:
    resource = tenant.post_resource()

    answer = tenant.post("/calendars", {"name": "Private", "resource_id": resource["id"], **given})

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert Calendar.objects.count() == 1


def test_required_fields_of_a_new_calendar(tenant: Tenant) -> None:
    answer = tenant.post("/calendars", {})

    required = ["This field is required."]
    assert (answer.status, answer.json["errors"]) == (
        422,
        {"name": required, "resource_id": required},
    )


def test_unknown_resources_are_refused(tenant: Tenant, make_tenant: MakeTenant) -> None:
    removed = tenant.post_resource()["id"]
    tenant.delete(f"/resources/{removed}")
    ids = [make_tenant().post_resource()["id"], str(uuid.uuid4()), removed]

    answers = [
        tenant.post("/calendars", {"name": "A", "resource_id": identifier}) for identifier in ids
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [
        (422, {"resource_id": ["There is no such resource."]})
    ] * 3


# --- GET ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_foreign_unknown_and_deleted_ids_are_not_found(
    tenant: Tenant, make_tenant: MakeTenant, method: str
) -> None:
    removed = make_calendar(tenant, tenant.post_resource())["id"]
    tenant.delete(f"/calendars/{removed}")
    foreign = make_tenant().post_resource()["calendars"][0]["id"]

    answers = [
        tenant.call(method, f"/calendars/{unknown_id}", {})
        for unknown_id in (foreign, uuid.uuid4(), removed)
    ]

    assert [(answer.status, answer.error) for answer in answers] == [(404, NOT_FOUND)] * 3


def test_the_listing_newest_first(tenant: Tenant, make_tenant: MakeTenant, clock: Any) -> None:
    make_tenant().post_resource()
    resource = tenant.post_resource()
    for name in ("A", "B", "C", "D"):
        clock.shift(1)
        make_calendar(tenant, resource, name)

    first, second = tenant.get("/calendars?limit=3"), tenant.get("/calendars?limit=3&page=2")

    assert [row["name"] for row in first.data] == ["D", "C", "B"]
    assert [row["name"] for row in second.data] == ["A", "Bookings"]
    base = "http://127.0.0.1:8000/v2/calendars?limit=3&page="
    assert {key: value for key, value in second.json.items() if key != "data"} == {
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


def test_search_by_resource(tenant: Tenant) -> None:
    first, second = tenant.post_resource("A"), tenant.post_resource("B")

    answers = [
        tenant.get(f"/calendars?search=resource.id:{one}")
        for one in (first["id"], second["id"].upper(), uuid.uuid4())
    ]

    assert [answer.data for answer in answers] == [first["calendars"], second["calendars"], []]
    assert [answer.json["total"] for answer in answers] == [1, 1, 0]


@pytest.mark.parametrize(
    ("query", "errors"),
    [
        ("search=resource.id:abc", {"search": ["resource.id must be a UUID."]}),
        ("search=resource.id:*", {"search": ["resource.id must be a UUID."]}),
        ("search=name:a", {"search": ["name can't be searched."]}),
        ("include=resource", {"include": ["Is not a known query parameter."]}),
    ],
)
def test_wrong_query_parameters_are_refused(
    tenant: Tenant, query: str, errors: dict[str, list[str]]
) -> None:
    answer = tenant.get(f"/calendars?{query}")

    assert (answer.status, answer.json["errors"]) == (422, errors)


# --- PUT ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {}),
        ([], {}),
        ({"name": "B"}, {"name": "B"}),
        ({"description": None}, {"description": ""}),
        ({"backgroundcolor": "red"}, {"backgroundcolor": "red"}),
    ],
)
def test_update_is_partial(tenant: Tenant, clock: Any, given: Any, changed: dict[str, Any]) -> None:
    resource = tenant.post_resource()
    made = make_calendar(tenant, resource, description="Mine")
    clock.shift(60)

    answer = tenant.put(f"/calendars/{made['id']}", given)

    values = {"description": "Mine", "updated_at": "2026-11-20T09:31:00+0000", **changed}
    expected = record(made["id"], resource["id"], **values)
    assert (answer.status, answer.json) == (200, {"data": expected})


# --- DELETE ---------------------------------------------------------------------------------------
def test_last_calendar_of_a_resource_cannot_be_deleted(tenant: Tenant) -> None:
    resource = tenant.post_resource()
    first = resource["calendars"][0]["id"]
    second = make_calendar(tenant, resource)["id"]

    answers = [tenant.delete(f"/calendars/{one}") for one in (first, second)]

    assert (answers[0].status, answers[0].content) == (204, b"")
    assert (answers[1].status, answers[1].error) == (
        409,
        {"error": "A resource must have at least one calendar.", "code": "in_use"},
    )
    assert [row["id"] for row in tenant.get("/calendars").data] == [second]


def test_calendar_with_uncompleted_bookings_cannot_be_deleted(tenant: Tenant, clock: Any) -> None:
    resource = tenant.post_resource()
    clock.shift(1)
    make_calendar(tenant, resource)
    path = f"/calendars/{resource['calendars'][0]['id']}"
    booking = tenant.book(resource_id=resource["id"], **SPAN).data

    before = tenant.delete(path)
    tenant.put(f"/bookings/{booking['id']}/cancel")
    after = tenant.delete(path)

    assert (before.status, before.error) == (
        409,
        {"error": "The calendar has bookings that are not completed.", "code": "in_use"},
    )
    assert after.status == 204


def test_events_of_a_deleted_calendar_do_not_block(tenant: Tenant) -> None:
    resource = tenant.post_resource()
    second = make_calendar(tenant, resource)["id"]
    event = tenant.make_event(second, **SPAN)
    taken = tenant.book(resource_id=resource["id"], **SPAN)

    tenant.delete(f"/calendars/{second}")

    assert taken.status == 409
    assert tenant.get(f"/events/{event['id']}").status == 404
    assert tenant.book(resource_id=resource["id"], **SPAN).status == 201


def test_bookings_use_the_first_remaining_calendar(tenant: Tenant, clock: Any) -> None:
    resource = tenant.post_resource()
    clock.shift(1)
    second = make_calendar(tenant, resource)["id"]
    tenant.delete(f"/calendars/{resource['calendars'][0]['id']}")

    booking = tenant.book(resource_id=resource["id"], **SPAN).data

    shown = tenant.get(f"/bookings/{booking['id']}").data
    assert shown["calendar"]["id"] == second


def test_events_of_every_calendar_block_the_resource(tenant: Tenant) -> None:
    resource = tenant.post_resource()
    second = make_calendar(tenant, resource)["id"]
    tenant.make_event(second, **SPAN)

    answer = tenant.book(calendar_id=resource["calendars"][0]["id"], **SPAN)

    assert (answer.status, answer.json["code"]) == (409, "slot_taken")
