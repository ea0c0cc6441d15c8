"""POST /bookings/:id/reschedule: another time, perhaps another resource (section 5)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.bookings.booking_drafts import (
    ACTIONS_OF,
    MONDAY,
    NINE,
    act,
    answered,
    busy_times,
    links,
    shown,
    span,
    steps,
    whole,
)
from tests.world import BERLIN, STAMP, Answer, Tenant, at

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

LATER = "2026-11-20T09:31:00+0000"
ELEVEN = span("11:00", "12:00")


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada")


@pytest.fixture
def booking(tenant: Tenant, ada: Any) -> Any:
    return tenant.book(resource_id=ada["id"], **NINE).data


def move(tenant: Tenant, booking: Any, times: dict[str, str], **given: Any) -> Answer:
    return tenant.post(f"/bookings/{booking['id']}/reschedule", {**times, **given})


def times_of(tenant: Tenant, booking: Any) -> dict[str, str]:
    info = whole(tenant, booking)["attributes"]["event_info"]
    return {"start": info["start"], "end": info["end"]}


def make_project(tenant: Tenant, *resources: Any, **given: Any) -> str:
    return tenant.make_project(*(resource["id"] for resource in resources), **given)["id"]


# --- The move -------------------------------------------------------------------------------------
def test_a_move_keeps_the_booking(tenant: Tenant, ada: Any, booking: Any, clock: Any) -> None:
    before = whole(tenant, booking)
    clock.shift(60)

    answer = move(tenant, booking, ELEVEN, message="We are\nlate.")

    assert (answer.status, answer.json) == (
        200,
        {"data": answered(booking, "confirmed", updated_at=LATER)},
    )
    after = whole(tenant, booking)
    made, moved = after["logs"]
    assert moved == {
        "from_state": "confirmed",
        "to_state": "confirmed",
        "action": "reschedule",
        "actor": made["actor"],
        "source": "api",
        "message": "We are\nlate.",
        "created_at": LATER,
    }
    event, info = before["event"], before["attributes"]["event_info"]
    assert after == {
        **before,
        "updated_at": LATER,
        "event": {**event, **shown("11:00", "12:00"), "updated_at": LATER},
        "attributes": {
            **before["attributes"],
            "event_info": {**info, **shown("11:00", "12:00")},
        },
        "customer_action_links": links(booking),
        "logs": [made, moved],
    }
    assert busy_times(tenant, ada["id"]) == ["11:00-12:00"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (NINE, shown("09:00", "10:00")),
        (span("09:30", "10:30"), shown("09:30", "10:30")),
        (span("08:30", "09:30"), shown("08:30", "09:30")),
        (span("09:15", "09:45"), shown("09:15", "09:45")),
        (span("08:00", "11:00"), shown("08:00", "11:00")),
    ],
)
def test_reschedule_does_not_conflict_with_itself(
    tenant: Tenant, booking: Any, times: dict[str, str], expected: dict[str, str]
) -> None:
    answer = move(tenant, booking, times)

    assert (answer.status, times_of(tenant, booking)) == (200, expected)


def test_a_booking_is_moved_again_and_back(tenant: Tenant, ada: Any, booking: Any) -> None:
    statuses = [move(tenant, booking, times).status for times in (ELEVEN, NINE, ELEVEN)]

    assert statuses == [200] * 3
    assert steps(tenant, booking)[1:] == [("confirmed", "reschedule", "confirmed")] * 3
    assert busy_times(tenant, ada["id"]) == ["11:00-12:00"]


def test_reschedule_frees_the_old_time(tenant: Tenant, ada: Any, booking: Any) -> None:
    move(tenant, booking, ELEVEN)

    answers = [tenant.book(resource_id=ada["id"], **times) for times in (NINE, ELEVEN)]

    assert [answer.status for answer in answers] == [201, 409]


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("message", [None, ""])
def test_message_is_optional(
    tenant: Tenant, booking: Any, method: str, message: str | None
) -> None:
    path = f"/bookings/{booking['id']}/reschedule"

    answer = tenant.call(method, path, {**ELEVEN, "message": message, "resource_id": None})

    assert (answer.status, answer.json) == (200, {"data": answered(booking, "confirmed")})
    assert whole(tenant, booking)["logs"][1]["message"] == ""


def test_includes_of_the_answer(tenant: Tenant, booking: Any) -> None:
    path = f"/bookings/{booking['id']}/reschedule"

    answers = [tenant.post(f"{path}?include={one}", ELEVEN) for one in ("nothing", "attributes")]

    assert [answer.status for answer in answers] == [422, 200]
    info = answers[1].data["attributes"]["event_info"]
    assert {"start": info["start"], "end": info["end"]} == shown("11:00", "12:00")
    assert len(steps(tenant, booking)) == 2


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"start": ["This field is required."], "end": ["This field is required."]}),
        (None, {"start": ["This field is required."], "end": ["This field is required."]}),
        ({"start": ELEVEN["start"]}, {"end": ["This field is required."]}),
        ({**ELEVEN, "end": ELEVEN["start"]}, {"end": ["Must be after the start."]}),
        (
            {**ELEVEN, "end": "2027-11-25T00:00:00Z"},
            {"end": ["Must be at most 366 days after the start."]},
        ),
        ({**ELEVEN, "start": "soon"},
         {"start": ["Must be a date and time such as 2026-11-20T10:30:00+01:00."]}),
        ({**ELEVEN, "resource_id": "5"}, {"resource_id": ["Must be a UUID."]}),
        (
            {**ELEVEN, "message": "x" * 8001},
            {"message": ["Ensure this field has no more than 8000 characters."]},
        ),
        ("x", {"body": ["Must be an object."]}),
    ],
)  # fmt: skip
def test_wrong_moves_are_refused(
    tenant: Tenant, booking: Any, body: Any, errors: dict[str, list[str]]
) -> None:
    answer = tenant.post(f"/bookings/{booking['id']}/reschedule", body)

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert times_of(tenant, booking) == shown("09:00", "10:00")


def test_wall_times_are_in_the_zone_of_the_new_resource(tenant: Tenant, booking: Any) -> None:
    bob = tenant.make_resource("Bob", BERLIN)
    wall = {"start": f"{MONDAY} 12:00:00", "end": f"{MONDAY} 13:00:00"}

    found = []
    for target in ({}, {"resource_id": bob["id"]}, {}):
        move(tenant, booking, wall, **target)
        found.append(times_of(tenant, booking))

    assert found == [shown("12:00", "13:00"), *[shown("11:00", "12:00")] * 2]


# --- States ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "actions", "state"),
    [
        ({"action": "create"}, [], "initialized"),
        ({}, [], "confirmed"),
        ({"graph": "confirm_decline"}, [], "tentative"),
        ({"graph": "confirm_decline"}, ["confirm"], "confirmed"),
    ],
)
def test_reschedule_of_uncompleted_bookings(
    tenant: Tenant, ada: Any, given: dict[str, Any], actions: list[str], state: str
) -> None:
    booking = tenant.book(resource_id=ada["id"], **NINE, **given).data
    for action in actions:
        act(tenant, booking, action)
    before = busy_times(tenant, ada["id"])

    answer = move(tenant, booking, ELEVEN)

    assert (answer.status, answer.data["state"]) == (200, state)
    assert times_of(tenant, booking) == shown("11:00", "12:00")
    assert busy_times(tenant, ada["id"]) == (["11:00-12:00"] if before else [])


@pytest.mark.parametrize("action", ["cancel", "cancel_by_customer", "complete"])
def test_reschedule_of_a_completed_booking_is_refused(
    tenant: Tenant, booking: Any, action: str
) -> None:
    state = act(tenant, booking, action).data["state"]

    answer = move(tenant, booking, ELEVEN)

    assert (answer.status, answer.error) == (
        409,
        {
            "error": f"Cannot apply action 'reschedule' to current state '{state}'",
            "code": "action_not_allowed",
            "state": state,
            "available_actions": ACTIONS_OF.get(("instant", state), []),
        },
    )
    assert times_of(tenant, booking) == shown("09:00", "10:00")


# --- Another resource -----------------------------------------------------------------------------
def test_reschedule_to_another_resource(tenant: Tenant, ada: Any, booking: Any) -> None:
    bob = tenant.post_resource("Bob")
    before = whole(tenant, booking)

    answer = move(tenant, booking, NINE, resource_id=bob["id"])

    found = whole(tenant, booking)
    calendar = {"calendar_id": bob["calendars"][0]["id"]}
    assert (answer.status, answer.json) == (200, {"data": answered(booking, "confirmed")})
    assert found == {
        **before,
        "resource": tenant.get(f"/resources/{bob['id']}").data,
        "calendar": bob["calendars"][0],
        "event": {**before["event"], **calendar},
        "attributes": {
            **before["attributes"],
            "event_info": {**before["attributes"]["event_info"], **calendar},
        },
        "logs": found["logs"],
    }
    assert steps(tenant, booking)[1:] == [("confirmed", "reassign", "confirmed")]
    assert [busy_times(tenant, resource["id"]) for resource in (ada, bob)] == [[], ["09:00-10:00"]]


def test_the_same_resource_keeps_the_calendar(tenant: Tenant, ada: Any, clock: Any) -> None:
    clock.shift(1)
    second = tenant.post("/calendars", {"name": "B", "resource_id": ada["id"]}).data["id"]
    booking = tenant.book(calendar_id=second, **NINE).data

    for target in ({}, {"resource_id": ada["id"]}):
        assert move(tenant, booking, ELEVEN, **target).status == 200

    assert whole(tenant, booking)["calendar"]["id"] == second


def test_reschedule_moves_a_past_booking_out_of_a_deleted_calendar(
    tenant: Tenant, ada: Any, booking: Any, clock: Any
) -> None:
    new = tenant.post("/calendars", {"name": "New", "resource_id": ada["id"]}).data
    clock.move_to(at(f"{MONDAY} 10:10"))
    tenant.delete(f"/calendars/{ada['calendars'][0]['id']}")

    answer = tenant.post(f"/bookings/{booking['id']}/reschedule", span("14:00", "15:00"))

    assert answer.status == 200
    shown_events = tenant.get(f"/events?start={MONDAY}T00:00:00Z&end={MONDAY}T23:00:00Z").data
    assert [(event["calendar_id"], event["start"]) for event in shown_events] == [
        (new["id"], f"{MONDAY}T14:00:00+00:00")
    ]


def test_reschedule_to_a_taken_resource_is_refused(tenant: Tenant, ada: Any, booking: Any) -> None:
    bob = tenant.make_resource("Bob")
    tenant.make_event(bob["calendars"][0]["id"], **span("09:30", "10:30"))

    answer = move(tenant, booking, NINE, resource_id=bob["id"])

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("09:30", "10:30")],
            "alternatives": [
                shown("10:30", "11:30"),
                shown("11:30", "12:30"),
                shown("12:30", "13:30"),
            ],
        },
    )
    assert whole(tenant, booking)["resource"]["name"] == "Ada"
    assert [busy_times(tenant, resource["id"]) for resource in (ada, bob)] == [
        ["09:00-10:00"],
        ["09:30-10:30"],
    ]


@pytest.mark.parametrize("kind", ["foreign", "unknown", "removed"])
def test_unknown_resources_are_refused(
    tenant: Tenant, make_tenant: MakeTenant, booking: Any, kind: str
) -> None:
    removed = tenant.make_resource("Bob")["id"]
    tenant.delete(f"/resources/{removed}")
    ids = {
        "foreign": make_tenant().make_resource()["id"],
        "unknown": str(uuid.uuid4()),
        "removed": removed,
    }

    answer = move(tenant, booking, NINE, resource_id=ids[kind])

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"resource_id": ["There is no such resource."]},
    )


def test_staff_reschedule_to_any_resource(tenant: Tenant, ada: Any) -> None:
    """Also one that is not the project's; the project's rules hold there too."""
    project = make_project(tenant, ada, availability={"length": "1 hour"})
    rules = [{"block_hours": {"start": 9, "end": 10}}]
    bob = tenant.make_resource("Bob", availability_constraints=rules)
    booking = tenant.book(project_id=project, **NINE).data

    answers = [move(tenant, booking, times, resource_id=bob["id"]) for times in (NINE, ELEVEN)]

    assert [answer.status for answer in answers] == [409, 200]
    assert whole(tenant, booking)["resource"]["name"] == "Bob"


# --- Refused: the old time is kept ----------------------------------------------------------------
def test_reschedule_to_a_taken_time_is_refused(tenant: Tenant, ada: Any, booking: Any) -> None:
    tenant.book(resource_id=ada["id"], **ELEVEN)

    answer = move(tenant, booking, span("10:30", "11:30"))

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [shown("11:00", "12:00")],
            "alternatives": [
                shown("12:00", "13:00"),
                shown("13:00", "14:00"),
                shown("14:00", "15:00"),
            ],
        },
    )
    found = whole(tenant, booking)
    assert times_of(tenant, booking) == shown("09:00", "10:00")
    assert (len(found["logs"]), found["updated_at"]) == (1, STAMP)
    assert busy_times(tenant, ada["id"]) == ["09:00-10:00", "11:00-12:00"]


def test_double_booking_may_move_over_others(tenant: Tenant, ada: Any) -> None:
    """The setting stays with the booking."""
    settings = {"allow_double_bookings": True}
    booking = tenant.book(resource_id=ada["id"], settings=settings, **NINE).data
    other = tenant.book(resource_id=ada["id"], **ELEVEN).data

    done, refused = move(tenant, booking, ELEVEN), move(tenant, other, span("11:30", "12:30"))

    assert (done.status, done.json) == (200, {"data": answered(booking, "confirmed")})
    assert (refused.status, refused.json["code"], refused.json["conflicts"]) == (
        409,
        "slot_taken",
        [shown("11:00", "12:00")],
    )
    assert times_of(tenant, booking) == times_of(tenant, other) == shown("11:00", "12:00")


def test_rules_apply_if_the_booking_enforces_them(tenant: Tenant, ada: Any) -> None:
    """The booking's own setting, not the project's of today."""
    project = make_project(
        tenant, ada, availability_constraints=[{"allow_hours": {"start": 8, "end": 12}}]
    )
    enforced = tenant.book(project_id=project, **NINE).data
    free = tenant.book(
        project_id=project, settings={"enforce_availability": False}, **span("10:00", "11:00")
    ).data
    tenant.put(f"/projects/{project}", {"settings": {"enforce_availability": False}})

    answers = [
        move(tenant, enforced, span("11:30", "12:30")),
        move(tenant, enforced, span("11:00", "11:30")),
        move(tenant, enforced, ELEVEN),
        move(tenant, free, span("14:00", "14:10")),
    ]

    assert [answer.status for answer in answers] == [409, 409, 200, 200]
    assert [[reason["type"] for reason in answer.json["reasons"]] for answer in answers[:2]] == [
        ["constraint"],
        ["limit"],
    ]


@pytest.mark.parametrize(
    ("availability", "settings", "times"),
    [
        ({"buffer": "30 minutes"}, {}, span("09:15", "10:15")),
        ({"buffer": "30 minutes"}, {}, span("10:15", "11:15")),
        ({}, {"max_per_day": 1}, span("09:30", "10:30")),
        ({}, {"max_per_day": 1}, ELEVEN),
    ],
)
def test_own_buffer_and_limit_do_not_conflict(
    tenant: Tenant,
    ada: Any,
    availability: dict[str, str],
    settings: dict[str, int],
    times: dict[str, str],
) -> None:
    project = make_project(tenant, ada, availability=availability, settings=settings)
    booking = tenant.book(project_id=project, **NINE).data

    assert move(tenant, booking, times).status == 200


def test_limit_of_the_new_day_applies(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, settings={"max_per_day": 1})
    booking = tenant.book(project_id=project, **NINE).data
    tenant.book(project_id=project, **span("09:00", "10:00", "2026-11-24"))

    answer = move(tenant, booking, span("12:00", "13:00", "2026-11-24"))

    assert (answer.status, [reason["text"] for reason in answer.json["reasons"]]) == (
        409,
        ["Daily limit reached."],
    )


def test_notice_and_past_apply_to_a_reschedule(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, availability={"from": "1 day"})
    booking = tenant.book(project_id=project, **NINE).data

    answers = [
        move(tenant, booking, span("10:00", "11:00", day)) for day in ("2026-11-20", "2026-11-19")
    ]

    assert [[reason["type"] for reason in answer.json["reasons"]] for answer in answers] == [
        ["notice"],
        ["notice", "past"],
    ]
    assert times_of(tenant, booking) == shown("09:00", "10:00")
