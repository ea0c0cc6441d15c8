"""PUT (alias POST) /bookings/:id/:action, PUT and DELETE /bookings/:id (section 5)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from availability.models import Resource
from bookings.models import Booking, StateChange
from tests.bookings.booking_drafts import (
    ACTIONS_OF,
    MONDAY,
    NINE,
    act,
    answered,
    busy_times,
    shown,
    span,
    steps,
    whole,
)
from tests.world import STAMP, Caller, Tenant, at

MakeTenant = Callable[..., Tenant]
pytestmark = pytest.mark.usefixtures("clock")

NOT_FOUND = {"error": "Booking not found.", "code": "not_found", "model": "Booking"}
LATER = "2026-11-20T09:31:00+0000"
TAKEN = {
    "error": "The time is taken.",
    "code": "slot_taken",
    "conflicts": [shown("09:00", "10:00")],
    "alternatives": [shown("10:00", "11:00"), shown("11:00", "12:00"), shown("12:00", "13:00")],
}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


@pytest.fixture
def booking(tenant: Tenant, ada: Any) -> Any:
    return tenant.book(resource_id=ada["id"], **NINE).data


# --- Inputs ---------------------------------------------------------------------------------------
@pytest.mark.matrix
@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, ""),
        (b"", ""),
        ({}, ""),
        ([], ""),
        ({"cancel": {}}, ""),
        ({"cancel": []}, ""),
        ({"cancel": None}, ""),
        ({"cancel": {"message": None}}, ""),
        ({"cancel": {"message": ""}}, ""),
        ({"cancel": {"message": "Sorry,\nwe are ill."}}, "Sorry,\nwe are ill."),
        ({"cancel": {"message": "x" * 8000}}, "x" * 8000),
        ({"cancel": {"message": "Sorry", "unknown": 1}, "decline": {"message": "No"}}, "Sorry"),
        ({"message": "nowhere"}, ""),
        ({"apply_to_bulked_bookings": True}, ""),
    ],
)
def test_input_is_read_under_the_name_of_the_action(
    tenant: Tenant, booking: Any, clock: Any, method: str, body: Any, message: str
) -> None:
    clock.shift(60)

    answer = tenant.call(method, f"/bookings/{booking['id']}/cancel", body)

    expected = answered(booking, "cancelled", updated_at=LATER)
    assert (answer.status, answer.json) == (200, {"data": expected})
    made, cancelled = whole(tenant, booking)["logs"]
    assert made["created_at"] == STAMP
    assert cancelled == {
        "from_state": "confirmed",
        "to_state": "cancelled",
        "action": "cancel",
        "actor": made["actor"],
        "source": "api",
        "message": message,
        "created_at": LATER,
    }


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ("x", {"body": ["Must be an object."]}),
        ([1], {"body": ["Must be an object."]}),
        ({"cancel": "x"}, {"cancel": ["Must be an object."]}),
        ({"cancel": [1]}, {"cancel": ["Must be an object."]}),
        ({"cancel": {"message": 5}}, {"cancel.message": ["Must be a string."]}),
        (
            {"cancel": {"message": "x" * 8001}},
            {"cancel.message": ["Ensure this field has no more than 8000 characters."]},
        ),
        (
            {"cancel": {"message": "a\x07"}},
            {"cancel.message": ["May not contain control characters."]},
        ),
    ],
)
def test_wrong_inputs_are_refused(
    tenant: Tenant, booking: Any, body: Any, errors: dict[str, list[str]]
) -> None:
    answer = act(tenant, booking, "cancel", body)

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (422, "invalid", errors)
    assert steps(tenant, booking) == [("initialized", "confirm", "confirmed")]


def test_includes_of_the_answer(tenant: Tenant, booking: Any) -> None:
    answer = tenant.put(f"/bookings/{booking['id']}/cancel?include=available_actions,meta")

    assert answer.json == {"data": answered(booking, "cancelled", available_actions=[], meta={})}


@pytest.mark.parametrize("query", ["include=all", "includes=meta"])
def test_wrong_query_parameters_are_refused(tenant: Tenant, booking: Any, query: str) -> None:
    answer = tenant.put(f"/bookings/{booking['id']}/cancel?{query}")

    assert answer.status == 422
    assert whole(tenant, booking)["state"] == "confirmed"


# --- Which booking, which action ------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "below"),
    [
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("PUT", "/cancel"),
        ("POST", "/cancel"),
        ("POST", "/reschedule"),
    ],
)
def test_foreign_unknown_and_deleted_ids_are_not_found(
    tenant: Tenant, make_tenant: MakeTenant, booking: Any, method: str, below: str
) -> None:
    act(tenant, booking, "cancel")
    tenant.delete(f"/bookings/{booking['id']}")
    stranger = make_tenant()
    foreign = stranger.book(resource_id=stranger.make_resource()["id"], **NINE).data["id"]

    answers = [
        tenant.call(method, f"/bookings/{one}{below}", NINE if below else {})
        for one in (foreign, uuid.uuid4(), booking["id"])
    ]

    assert [(answer.status, answer.error) for answer in answers] == [(404, NOT_FOUND)] * 3
    assert stranger.get(f"/bookings/{foreign}").data["state"] == "confirmed"


@pytest.mark.parametrize("action", ["explode", "delete", "CANCEL", "complete_by_customer"])
def test_unknown_actions_are_not_found(tenant: Tenant, booking: Any, action: str) -> None:
    answer = act(tenant, booking, action)

    assert (answer.status, answer.error) == (
        404,
        {"error": "Action not found.", "code": "not_found", "model": "Action"},
    )


def test_other_methods_are_refused(tenant: Tenant, booking: Any) -> None:
    answers = [
        tenant.call(method, f"/bookings/{booking['id']}{below}")
        for method, below in (("GET", "/cancel"), ("DELETE", "/cancel"), ("POST", ""))
    ]

    assert [(answer.status, answer.headers["Allow"]) for answer in answers] == [
        (405, "POST, PUT, OPTIONS"),
        (405, "POST, PUT, OPTIONS"),
        (405, "GET, PUT, PATCH, DELETE, HEAD, OPTIONS"),
    ]


# --- Who did it -----------------------------------------------------------------------------------
def test_history_names_the_actor(tenant: Tenant, ada: Any, booking: Any, clock: Any) -> None:
    member = tenant.member("owner@example.com")
    resource = Caller(ada["api_token"], user="ada@example.com")
    second = tenant.book(resource_id=ada["id"], action="create", **NINE).data
    clock.shift(60)

    member.put(f"/bookings/{booking['id']}/cancel")
    resource.put(f"/bookings/{second['id']}/confirm")

    found = [
        [(log["action"], log["actor"], log["source"]) for log in whole(tenant, one)["logs"]]
        for one in (booking, second)
    ]
    key = found[0][0][1]
    assert key.startswith("server key ")
    assert found == [
        [("confirm", key, "api"), ("cancel", "owner@example.com", "api")],
        [("create", key, "api"), ("confirm", "ada@example.com", "api")],
    ]


# --- What blocks, what is freed -------------------------------------------------------------------
@pytest.mark.parametrize("action", ["cancel", "cancel_by_customer", "complete"])
def test_ended_booking_frees_its_time(tenant: Tenant, ada: Any, booking: Any, action: str) -> None:
    before = busy_times(tenant, ada["id"])

    act(tenant, booking, action)

    assert (before, busy_times(tenant, ada["id"])) == (["09:00-10:00"], [])
    assert tenant.book(resource_id=ada["id"], **NINE).status == 201


def test_event_follows_the_state_of_its_booking(tenant: Tenant, ada: Any, clock: Any) -> None:
    draft = tenant.book(resource_id=ada["id"], action="create", **NINE).data
    found = []

    for action in ("create", "confirm", "cancel"):
        clock.shift(60)
        act(tenant, draft, action)
        event = whole(tenant, draft)["event"]
        found.append((event["busy"], event["updated_at"]))

    assert found == [
        (False, STAMP),
        (True, "2026-11-20T09:32:00+0000"),
        (False, "2026-11-20T09:33:00+0000"),
    ]


def test_only_one_of_two_overlapping_drafts_is_confirmed(tenant: Tenant, ada: Any) -> None:
    drafts = [tenant.book(resource_id=ada["id"], action="create", **NINE).data for _ in range(2)]

    answers = [act(tenant, draft, "confirm") for draft in drafts]

    assert (answers[0].status, answers[0].json) == (200, {"data": answered(drafts[0], "confirmed")})
    assert (answers[1].status, answers[1].error) == (409, TAKEN)
    assert whole(tenant, drafts[1])["state"] == "initialized"
    assert steps(tenant, drafts[1]) == [("initialized", "create", "initialized")]


def test_confirmed_double_booking_blocks_others(tenant: Tenant, ada: Any) -> None:
    tenant.make_event(ada["calendars"][0]["id"], **NINE)
    settings = {"allow_double_bookings": True}
    draft = tenant.book(resource_id=ada["id"], action="create", settings=settings, **NINE).data
    other = tenant.book(resource_id=ada["id"], action="create", **NINE).data

    done, refused = (act(tenant, one, "confirm") for one in (draft, other))

    assert (done.status, done.json) == (200, {"data": answered(draft, "confirmed")})
    both = {"conflicts": [shown("09:00", "10:00")] * 2}  # the event and the booking
    assert (refused.status, refused.error) == (409, TAKEN | both)


def test_draft_can_be_saved_again(tenant: Tenant, ada: Any) -> None:
    draft = tenant.book(resource_id=ada["id"], action="create", **NINE).data

    answer = act(tenant, draft, "create")

    assert (answer.status, answer.json) == (200, {"data": answered(draft, "initialized")})


# --- PUT /bookings/:id ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "meta"),
    [
        ({}, {"a": 1, "b": {"c": 2}}),
        ([], {"a": 1, "b": {"c": 2}}),
        (None, {"a": 1, "b": {"c": 2}}),
        ({"meta": {}}, {"a": 1, "b": {"c": 2}}),
        ({"meta": []}, {"a": 1, "b": {"c": 2}}),
        ({"meta": {"a": None, "d": [1]}}, {"b": {"c": 2}, "d": [1]}),
        ({"meta": {"b": {"c": None, "e": 3}}}, {"a": 1, "b": {"e": 3}}),
        ({"meta": {"x": "y"}, "state": "confirmed", "graph": "instant"},
         {"a": 1, "b": {"c": 2}, "x": "y"}),
    ],
)  # fmt: skip
def test_meta_is_merged(
    tenant: Tenant, ada: Any, clock: Any, body: Any, meta: dict[str, Any]
) -> None:
    booking = tenant.book(resource_id=ada["id"], meta={"a": 1, "b": {"c": 2}}, **NINE).data
    clock.shift(60)

    answer = tenant.put(f"/bookings/{booking['id']}?include=meta", body)

    expected = answered(booking, "confirmed", updated_at=LATER, meta=meta)
    assert (answer.status, answer.json) == (200, {"data": expected})
    found = whole(tenant, booking)
    assert found["meta"] == meta
    is_changed = meta != {"a": 1, "b": {"c": 2}}
    assert [log["action"] for log in found["logs"][1:]] == ["update"] * is_changed


@pytest.mark.parametrize(
    ("meta", "errors"),
    [
        ("x", {"meta": ["Must be an object."]}),
        (None, {"meta": ["This field may not be null."]}),
        ({f"b{n}": n for n in range(30)}, {"meta": ["Must have at most 50 keys."]}),
        ({"b": "x" * 16_384}, {"meta": ["Must be at most 16 kB."]}),
    ],
)
def test_wrong_meta_is_refused(
    tenant: Tenant, ada: Any, meta: Any, errors: dict[str, list[str]]
) -> None:
    own = {f"a{n}": n for n in range(30)}
    booking = tenant.book(resource_id=ada["id"], meta=own, **NINE).data

    answer = tenant.put(f"/bookings/{booking['id']}", {"meta": meta})

    assert (answer.status, answer.json["errors"]) == (422, errors)
    assert whole(tenant, booking)["meta"] == own


def test_meta_of_a_completed_booking_can_be_updated(tenant: Tenant, booking: Any) -> None:
    act(tenant, booking, "complete")

    answer = tenant.put(f"/bookings/{booking['id']}?include=meta", {"meta": {"invoice": "4711"}})

    assert (answer.status, answer.data["meta"]) == (200, {"invoice": "4711"})


# --- DELETE /bookings/:id -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "state", "actions"),
    [
        ({}, "confirmed", ["cancel", "cancel_by_customer", "complete"]),
        ({"action": "create"}, "initialized", ["confirm", "create"]),
        (
            {"graph": "confirm_decline"},
            "tentative",
            ["confirm", "decline", "cancel", "cancel_by_customer"],
        ),
    ],
)
def test_uncompleted_booking_cannot_be_deleted(
    tenant: Tenant, ada: Any, given: dict[str, Any], state: str, actions: list[str]
) -> None:
    booking = tenant.book(resource_id=ada["id"], **NINE, **given).data

    answer = tenant.delete(f"/bookings/{booking['id']}")

    assert (answer.status, answer.error) == (
        409,
        {
            "error": f"Cannot apply action 'delete' to current state '{state}'",
            "code": "action_not_allowed",
            "state": state,
            "available_actions": actions,
        },
    )
    assert whole(tenant, booking)["state"] == state


@pytest.mark.parametrize("action", ["cancel", "cancel_by_customer", "complete"])
def test_deleted_booking_is_hidden_and_its_rows_stay(
    tenant: Tenant, booking: Any, action: str
) -> None:
    act(tenant, booking, action)

    answer = tenant.delete(f"/bookings/{booking['id']}")

    assert (answer.status, answer.content) == (204, b"")
    for query in ("", "?completed=true", "?search=customer.name:Marty*"):
        listing = tenant.get(f"/bookings{query}").json
        assert (listing["total"], listing["data"]) == (0, [])
    row = Booking.objects.get()
    assert (str(row.id), row.event.what, StateChange.objects.count()) == (
        booking["id"],
        "Meeting",
        2,
    )


# --- outcome --------------------------------------------------------------------------------------
def listed(tenant: Tenant, outcome: str) -> list[str]:
    answer = tenant.get(f"/bookings?outcome={outcome}")
    assert answer.json["total"] == len(answer.data)
    return [row["id"] for row in answer.data]


@pytest.mark.parametrize("completed", [False, True])
def test_outcome_of_a_booking_after_its_start(
    tenant: Tenant, booking: Any, clock: Any, completed: bool
) -> None:
    path = f"/bookings/{booking['id']}"
    if completed:
        act(tenant, booking, "complete")
    clock.move_to(at(f"{MONDAY} 09:00"))
    before = whole(tenant, booking)
    answers, lists = [], []

    for outcome in ("no_show", "attended", None):
        answers.append(tenant.put(f"{path}?include=outcome", {"outcome": outcome}))
        lists.append([listed(tenant, one) for one in ("no_show", "attended")])

    stamp = {"updated_at": f"{MONDAY}T09:00:00+0000"}
    state = "completed" if completed else "confirmed"
    assert before["outcome"] is None
    assert [(answer.status, answer.data) for answer in answers] == [
        (200, answered(booking, state, outcome=outcome, **stamp))
        for outcome in ("no_show", "attended", None)
    ]
    assert lists == [[[booking["id"]], []], [[], [booking["id"]]], [[], []]]
    after = whole(tenant, booking)
    assert (after["state"], after["available_actions"]) == (
        before["state"],
        before["available_actions"],
    )


def test_outcome_can_be_set_from_one_hour_before_the_start(
    tenant: Tenant, booking: Any, clock: Any
) -> None:
    clock.move_to(at(f"{MONDAY} 08:00"))

    answer = tenant.put(f"/bookings/{booking['id']}", {"outcome": "attended"})

    assert (answer.status, whole(tenant, booking)["outcome"]) == (200, "attended")


def test_outcome_before_the_start_is_refused(tenant: Tenant, booking: Any, clock: Any) -> None:
    clock.move_to(at(f"{MONDAY} 07:59:59"))

    answer = tenant.put(f"/bookings/{booking['id']}", {"outcome": "attended", "meta": {"a": 1}})

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (
        *(422, "invalid"),
        {"outcome": ["The booking has not begun yet."]},
    )
    found = whole(tenant, booking)
    assert (found["outcome"], found["meta"]) == (None, {})


def test_outcome_of_a_cancelled_booking_is_refused(
    tenant: Tenant, booking: Any, clock: Any
) -> None:
    act(tenant, booking, "cancel")
    clock.move_to(at(f"{MONDAY} 10:00"))

    answer = tenant.put(f"/bookings/{booking['id']}", {"outcome": "no_show"})

    assert answer.json["errors"] == {
        "outcome": ["A booking in the state cancelled has no outcome."]
    }
    assert whole(tenant, booking)["outcome"] is None


@pytest.mark.parametrize("outcome", ["late", "", 1, ["attended"]])
def test_unknown_outcome_is_refused(tenant: Tenant, booking: Any, clock: Any, outcome: Any) -> None:
    clock.move_to(at(f"{MONDAY} 10:00"))

    answer = tenant.put(f"/bookings/{booking['id']}", {"outcome": outcome})

    assert (answer.status, list(answer.json["errors"])) == (422, ["outcome"])
    assert tenant.get("/bookings?outcome=late").json["errors"].keys() == {"outcome"}
    assert whole(tenant, booking)["outcome"] is None


def test_reschedule_into_the_future_clears_the_outcome(
    tenant: Tenant, booking: Any, clock: Any
) -> None:
    clock.move_to(at(f"{MONDAY} 10:00"))
    tenant.put(f"/bookings/{booking['id']}", {"outcome": "no_show"})

    tenant.post(f"/bookings/{booking['id']}/reschedule", span("11:00", "12:00"))

    assert whole(tenant, booking)["outcome"] is None


def test_log_order_ignores_a_slow_clock(tenant: Tenant, clock: Any) -> None:
    """The ids of the log, by which mails are ordered too, begin with the time."""
    resource = tenant.make_resource()
    booking = tenant.book(resource_id=resource["id"], graph="confirm_decline", **NINE).data
    for hour in (10, 11):
        clock.shift(-60)
        tenant.post(f"/bookings/{booking['id']}/reschedule", span(f"{hour}:00", f"{hour + 1}:00"))
    clock.shift(-60)
    tenant.put(f"/bookings/{booking['id']}/confirm")

    logs = tenant.get(f"/bookings/{booking['id']}?include=logs").data["logs"]
    assert [log["action"] for log in logs] == ["create", "reschedule", "reschedule", "confirm"]


@pytest.mark.parametrize("graph", ["confirm_decline", "instant"])
def test_confirmation_of_a_past_request_of_a_deleted_resource_is_refused(
    tenant: Tenant, ada: Any, clock: Any, graph: str
) -> None:
    request = tenant.book(resource_id=ada["id"], graph=graph, action="create", **NINE).data
    clock.move_to(at(f"{MONDAY} 12:00"))
    Resource.objects.filter(id=ada["id"]).update(deleted_at=at(f"{MONDAY} 11:00"))

    answer = act(tenant, request, "confirm")

    assert (answer.status, answer.error) == (
        409,
        {
            "error": "The resource no longer exists.",
            "code": "action_not_allowed",
            "state": request["state"],
            "available_actions": ACTIONS_OF[graph, request["state"]],
        },
    )
    assert whole(tenant, request)["state"] == request["state"]
