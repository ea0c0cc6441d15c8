"""Many bookings made or changed in one request (section 5, /bookings/bulk)."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection

from bookings.models import Booking, Bulk, StateChange
from notifications.models import Delivery
from tests.bookings.booking_drafts import (
    ACTIONS_OF,
    MARTY,
    NINE,
    act,
    answered,
    entry,
    shown,
    span,
    steps,
)
from tests.bookings.group_world import make_group
from tests.world import Answer, Caller, Tenant

MakeTenant = Callable[..., Tenant]
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

NOT_KEPT = {
    "status": 424,
    "error": {"error": "Rolled back because another booking failed.", "code": "not_kept"},
}
NOT_ATTEMPTED = {
    "status": 424,
    "error": {"error": "Not attempted because an earlier booking failed.", "code": "not_attempted"},
}
NOT_FOUND = {
    "status": 404,
    "error": {"error": "Booking not found.", "code": "not_found", "model": "Booking"},
}

TAKEN = {
    "status": 409,
    "error": {
        "error": "The time is taken.",
        "code": "slot_taken",
        "conflicts": [shown("09:00", "09:30")],
        "alternatives": [
            shown("09:30", "10:00"),
            shown("10:00", "10:30"),
            shown("10:30", "11:00"),
        ],
    },
}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


@pytest.fixture
def bob(tenant: Tenant) -> Any:
    return tenant.make_resource("Bob", email="bob@example.com")


def body(resource: Any, hour: int, **given: Any) -> dict[str, Any]:
    """A booking of that hour, for half an hour."""
    times = span(f"{hour:02}:00", f"{hour:02}:30")
    return {"what": "Check-up", "customer": MARTY, "resource_id": resource["id"], **times, **given}


def make(tenant: Caller, *bodies: Any, query: str = "", **given: Any) -> Answer:
    return tenant.post(f"/bookings/bulk{query}", {"bookings": list(bodies), **given})


def change(tenant: Caller, *changes: Any, query: str = "", **given: Any) -> Answer:
    return tenant.put(f"/bookings/bulk{query}", {"bookings": list(changes), **given})


def made(*items: Any, state: str = "confirmed", status: int = 201) -> list[Any]:
    """What is answered of bookings that went well."""
    return [{"status": status, "booking": answered(item["booking"], state)} for item in items]


def invalid(place: str, path: str, text: str) -> dict[str, Any]:
    """A refusal of one value of the body at that place."""
    error = {"error": f"{path}: {text}", "code": "invalid", "errors": {f"{place}{path}": [text]}}
    return {"status": 422, "error": error}


def make_three(tenant: Tenant, ada: Any, **given: Any) -> list[Any]:
    """The records of three bookings, at 9, 10 and 11."""
    answer = make(tenant, *(body(ada, hour) for hour in (9, 10, 11)), **given)
    assert (answer.status, [item["status"] for item in answer.data]) == (200, [201] * 3)
    return [item["booking"] for item in answer.data]


def states() -> list[str]:
    return list(Booking.objects.order_by("event__start", "id").values_list("state", flat=True))


# --- Making ---------------------------------------------------------------------------------------
def test_items_are_created_independently(tenant: Tenant, ada: Any) -> None:
    answer = make(
        tenant,
        body(ada, 9),
        body(ada, 9, what="Too late"),
        body(ada, 10, customer={"name": "No address"}),
        {"event": {"start": "soon"}, "resource_id": str(uuid.uuid4())},
        body(ada, 11, graph="confirm_decline"),
    )

    first, *_, last = answer.data
    assert (answer.status, answer.json) == (
        200,
        {
            "data": [
                *made(first),
                TAKEN,
                invalid("bookings.2.", "customer.email", "This field is required."),
                invalid("bookings.3.", "resource_id", "There is no such resource."),
                {
                    "status": 201,
                    "booking": answered(last["booking"], "tentative", "confirm_decline"),
                },
            ]
        },
    )
    assert states() == ["confirmed", "tentative"]


def test_stop_on_first_error(tenant: Tenant, ada: Any) -> None:
    answer = make(
        tenant, body(ada, 9), body(ada, 9), body(ada, 10), body(ada, 11), stop_on_first_error=True
    )

    expected = [*made(answer.data[0]), TAKEN, NOT_ATTEMPTED, NOT_ATTEMPTED]
    assert (answer.status, answer.json) == (200, {"data": expected})
    assert states() == ["confirmed"]


def test_delete_all_on_error(tenant: Tenant, ada: Any) -> None:
    answer = make(
        tenant,
        body(ada, 9),
        body(ada, 9),
        body(ada, 10),
        delete_all_on_error=True,
        relate_bookings=True,
    )

    assert (answer.status, answer.json) == (200, {"data": [NOT_KEPT, TAKEN, NOT_KEPT]})
    assert (states(), Bulk.objects.count()) == ([], 0)


def test_delete_all_and_stop_on_first_error(tenant: Tenant, ada: Any) -> None:
    answer = make(
        tenant,
        body(ada, 9),
        body(ada, 9),
        body(ada, 10),
        delete_all_on_error=True,
        stop_on_first_error=True,
    )

    assert (answer.status, answer.json) == (200, {"data": [NOT_KEPT, TAKEN, NOT_ATTEMPTED]})
    assert states() == []


def test_delete_all_on_error_without_errors(tenant: Tenant, ada: Any) -> None:
    answer = make(tenant, body(ada, 9), body(ada, 10), delete_all_on_error=True)

    assert (answer.status, answer.json) == (200, {"data": made(*answer.data)})
    assert states() == ["confirmed"] * 2


def test_includes_apply_to_each_item(tenant: Tenant, ada: Any) -> None:
    answer = make(tenant, body(ada, 9), body(ada, 10), query="?include=event")

    records = [
        tenant.get(f"/bookings/{item['booking']['id']}").data["event"] for item in answer.data
    ]
    assert answer.data == [
        {"status": 201, "booking": answered(item["booking"], "confirmed", event=event)}
        for item, event in zip(answer.data, records, strict=True)
    ]
    assert [event["start"] for event in records] == [
        shown(f"{hour}:00", "")["start"] for hour in ("09", "10")
    ]


def test_items_with_a_group_and_a_series(tenant: Tenant, ada: Any, bob: Any) -> None:
    group = make_group(tenant, bob, max_seats=1)
    seat = {
        "graph": "group_customer",
        "related": {"owner_booking_id": group["id"]},
        "customer": MARTY,
    }

    answer = make(tenant, seat, seat, body(ada, 9, recurrence="FREQ=DAILY;COUNT=3"))

    taken_seat, _, first = answer.data
    assert answer.data == [
        {"status": 201, "booking": answered(taken_seat["booking"], "confirmed", "group_customer")},
        {
            "status": 409,
            "error": {"error": "Every seat of the group is taken.", "code": "group_full"},
        },
        {
            "status": 201,
            "booking": answered(first["booking"], "confirmed", series=first["booking"]["series"]),
        },
    ]
    assert first["booking"]["series"] == {
        "id": first["booking"]["series"]["id"],
        "rrule": "FREQ=DAILY;COUNT=3",
        "occurrences": [
            {**shown("09:00", "09:30", str(row.event.start.date())), "booking_id": str(row.id)}
            for row in Booking.objects.filter(graph="instant").order_by("event__start")
        ],
    }
    assert Booking.objects.count() == 5


TOO_MANY_OR_FEW = {
    "none": ([], "bookings"),
    "101": ([{}] * 101, "bookings"),
    "no list": ({}, "bookings"),
    "null": (None, "bookings"),
}


@pytest.mark.parametrize(("bookings", "path"), TOO_MANY_OR_FEW.values(), ids=TOO_MANY_OR_FEW)
def test_one_to_a_hundred_items_are_allowed(tenant: Tenant, bookings: Any, path: str) -> None:
    answers = [
        tenant.call(method, "/bookings/bulk", {"bookings": bookings}) for method in ("POST", "PUT")
    ]

    assert [(answer.status, list(answer.json["errors"])) for answer in answers] == [
        (422, [path])
    ] * 2
    assert tenant.post("/bookings/bulk", {}).status == 422


def test_a_hundred_items(tenant: Tenant, ada: Any) -> None:
    answer = make(tenant, *[body(ada, 9, settings={"allow_double_bookings": True})] * 100)

    assert [item["status"] for item in answer.data] == [201] * 100


@pytest.mark.parametrize("item", [None, 1, "x", [1], True])
def test_item_that_is_no_object_fails_alone(tenant: Tenant, ada: Any, item: Any) -> None:
    answer = make(tenant, body(ada, 9), item)
    changed = change(tenant, {"id": answer.data[0]["booking"]["id"], "meta": {"a": 1}}, item)

    for data in (answer.data, changed.data):
        assert (data[0]["status"] < 400, data[1]["status"]) == (True, 422)
        assert all(path.startswith("bookings.1") for path in data[1]["error"]["errors"])


# --- Related --------------------------------------------------------------------------------------
def test_related_bookings_are_included(tenant: Tenant, ada: Any) -> None:
    first, second, third = make_three(tenant, ada, relate_bookings=True)
    alone = tenant.book(resource_id=ada["id"], **span("15:00", "16:00")).data

    def others(booking: Any) -> Any:
        return tenant.get(f"/bookings/{booking['id']}?include=bulked_bookings").data[
            "bulked_bookings"
        ]

    assert others(first) == [entry(one, "confirmed") for one in (second, third)]
    assert others(second) == [entry(one, "confirmed") for one in (first, third)]
    assert others(alone) == []


def test_action_applies_to_related_bookings(tenant: Tenant, ada: Any) -> None:
    first, second, third = make_three(tenant, ada, relate_bookings=True)
    act(tenant, third, "cancel_by_customer", {"apply_to_bulked_bookings": False})

    answer = act(tenant, first, "cancel", {"cancel": {"message": "Ill."}})

    assert (answer.status, answer.json) == (200, {"data": answered(first, "cancelled")})
    assert tenant.get("/bookings?orderBy=event.start&sortedBy=asc").data == [
        entry(first, "cancelled"),
        entry(second, "cancelled"),
        entry(third, "cancelled_by_customer"),
    ]
    assert [
        (log["action"], log["to_state"], log["message"])
        for one in (first, second)
        for log in tenant.get(f"/bookings/{one['id']}?include=logs").data["logs"][1:]
    ] == [("cancel", "cancelled", "Ill.")] * 2


def test_action_fails_if_one_related_booking_refuses(tenant: Tenant, ada: Any) -> None:
    answer = make(
        tenant,
        body(ada, 9, graph="confirm_decline"),
        body(ada, 10),
        relate_bookings=True,
    )
    request, confirmed = (item["booking"] for item in answer.data)

    refused = act(tenant, request, "confirm")
    alone = act(tenant, request, "confirm", {"apply_to_bulked_bookings": False})

    assert (refused.status, refused.error) == (
        409,
        {
            "error": "Cannot apply action 'confirm' to current state 'confirmed'",
            "code": "action_not_allowed",
            "state": "confirmed",
            "available_actions": ACTIONS_OF["instant", "confirmed"],
        },
    )
    assert (alone.status, alone.json) == (
        200,
        {"data": answered(request, "confirmed", "confirm_decline")},
    )
    assert states() == ["confirmed", "confirmed"]
    assert steps(tenant, request) == [
        ("initialized", "create", "tentative"),
        ("tentative", "confirm", "confirmed"),
    ]
    assert steps(tenant, confirmed) == [("initialized", "confirm", "confirmed")]


def test_action_leaves_unrelated_bookings(tenant: Tenant, ada: Any) -> None:
    first, *_ = make_three(tenant, ada)

    act(tenant, first, "cancel")

    assert (states(), Bulk.objects.count()) == (["cancelled", "confirmed", "confirmed"], 0)
    assert (
        tenant.get(f"/bookings/{first['id']}?include=bulked_bookings").data["bulked_bookings"] == []
    )


def test_resource_key_changes_only_its_own_related_bookings(
    tenant: Tenant, ada: Any, bob: Any
) -> None:
    answer = make(tenant, body(ada, 9), body(bob, 10), relate_bookings=True)
    own = Caller(ada["api_token"], user="ada@example.com")

    done = act(own, answer.data[0]["booking"], "cancel")

    assert (done.status, states()) == (200, ["cancelled", "confirmed"])


# --- Changing -------------------------------------------------------------------------------------
def test_items_are_updated_independently(tenant: Tenant, make_tenant: MakeTenant, ada: Any) -> None:
    other = make_tenant()
    foreign = other.book(resource_id=other.make_resource()["id"], **NINE).data
    first, second, third = make_three(tenant, ada)

    answer = change(
        tenant,
        {"id": first["id"], "meta": {"invoice": "4711"}},
        {"id": second["id"], "action": "cancel", "cancel": {"message": "Ill."}},
        {"id": second["id"], "action": "complete"},
        {"id": foreign["id"], "meta": {}},
        {"id": str(uuid.uuid4()), "action": "cancel"},
        {"id": third["id"], "action": "complete"},
    )

    assert answer.data == [
        {"status": 200, "booking": answered(first, "confirmed")},
        {"status": 200, "booking": answered(second, "cancelled")},
        {
            "status": 409,
            "error": {
                "error": "Cannot apply action 'complete' to current state 'cancelled'",
                "code": "action_not_allowed",
                "state": "cancelled",
                "available_actions": [],
            },
        },
        NOT_FOUND,
        NOT_FOUND,
        {"status": 200, "booking": answered(third, "completed")},
    ]
    assert tenant.get(f"/bookings/{first['id']}").data["meta"] == {"invoice": "4711"}
    logs = tenant.get(f"/bookings/{second['id']}?include=logs").data["logs"]
    assert [log["message"] for log in logs] == ["", "Ill."]


def messages_of(*items: Any) -> list[tuple[str, list[str]]]:
    """The message of each booking's last log entry, and those of the e-mails about it."""
    found = []
    for item in items:
        logs = StateChange.objects.filter(booking=item["id"]).order_by("id")
        last = logs.values("id", "message").last()
        mails = Delivery.objects.filter(change=last["id"], type="email").order_by("id")
        texts = [content["message"] for content in mails.values_list("content", flat=True)]
        found.append((last["message"], texts))
    return found


def test_message_of_all_changes_yields_to_an_actions_own(tenant: Tenant, ada: Any) -> None:
    first, second, third = make_three(tenant, ada)

    answer = change(
        tenant,
        {"id": first["id"], "action": "cancel"},
        {"id": second["id"], "action": "cancel", "cancel": {"message": "Your form is missing."}},
        {"id": third["id"], "meta": {"invoice": "4711"}},
        message="Ada is ill.",
    )

    own = "Your form is missing."
    assert [item["status"] for item in answer.data] == [200, 200, 200]
    assert messages_of(first, second) == [
        ("Ada is ill.", ["Ada is ill.", "Ada is ill."]),
        (own, [own, own]),
    ]
    assert "Ada is ill." not in StateChange.objects.filter(booking=third["id"]).values_list(
        "message", flat=True
    )


def test_message_of_all_new_bookings(tenant: Tenant, ada: Any) -> None:
    answer = make(tenant, body(ada, 9), body(ada, 10), message="Bring your card.")

    first, second = (item["booking"] for item in answer.data)
    # The e-mails about the first booking carry the second.
    mails = ["Bring your card.", "Bring your card."]
    assert messages_of(first, second) == [("Bring your card.", mails), ("Bring your card.", [])]


@pytest.mark.parametrize("message", [5, "x" * 8001], ids=["no text", "too long"])
def test_wrong_message_changes_nothing(tenant: Tenant, ada: Any, message: Any) -> None:
    booking = tenant.book(resource_id=ada["id"], **NINE).data

    answers = [
        make(tenant, body(ada, 10), message=message),
        change(tenant, {"id": booking["id"], "action": "cancel"}, message=message),
    ]

    assert [(answer.status, list(answer.error["errors"])) for answer in answers] == [
        (422, ["message"])
    ] * 2
    assert states() == ["confirmed"]


BAD_CHANGES = {
    "neither": ({}, ["action"]),
    "both": ({"meta": {}, "action": "cancel"}, ["action"]),
    "no id": ({"id": None, "meta": {}}, ["id"]),
    "bad id": ({"id": "x", "meta": {}}, ["id"]),
    "unknown action": ({"action": "dance"}, ["action"]),
    "action of no graph": ({"action": "reschedule"}, ["action"]),
    "bad inputs": ({"action": "cancel", "cancel": {"message": 5}}, ["cancel.message"]),
    "inputs no object": ({"action": "cancel", "cancel": "x"}, ["cancel"]),
    "meta no object": ({"meta": 5}, ["meta"]),
    "null action": ({"action": None}, ["action"]),
    "no scope": ({"action": "cancel", "scope": "some"}, ["scope"]),
}


@pytest.mark.parametrize(("given", "paths"), BAD_CHANGES.values(), ids=BAD_CHANGES)
def test_update_errors_are_named_by_their_path(
    tenant: Tenant, ada: Any, given: Any, paths: list[str]
) -> None:
    booking = tenant.book(resource_id=ada["id"], **NINE).data

    answer = change(tenant, {"id": booking["id"], "meta": {"a": 1}}, {"id": booking["id"], **given})

    well, bad = answer.data
    assert well == {"status": 200, "booking": answered(booking, "confirmed")}
    assert (bad["status"], list(bad["error"]["errors"])) == (
        *(422, [f"bookings.1.{path}" for path in paths]),
    )
    assert states() == ["confirmed"]


def test_updates_with_stop_and_delete_all_on_error(tenant: Tenant, ada: Any) -> None:
    first, second, _ = make_three(tenant, ada)
    changes = [
        {"id": first["id"], "action": "cancel"},
        {"id": first["id"], "action": "cancel"},
        {"id": second["id"], "action": "cancel"},
    ]

    back = change(tenant, *changes, delete_all_on_error=True)
    after_back = states()
    stopped = change(tenant, *changes, stop_on_first_error=True)

    refused = {
        "status": 409,
        "error": {
            "error": "Cannot apply action 'cancel' to current state 'cancelled'",
            "code": "action_not_allowed",
            "state": "cancelled",
            "available_actions": [],
        },
    }
    cancelled = {"status": 200, "booking": answered(first, "cancelled")}
    assert (back.status, back.json) == (200, {"data": [NOT_KEPT, refused, NOT_KEPT]})
    assert after_back == ["confirmed"] * 3
    assert (stopped.status, stopped.json) == (200, {"data": [cancelled, refused, NOT_ATTEMPTED]})
    assert states() == ["cancelled", "confirmed", "confirmed"]


def test_update_of_related_bookings_is_optional(tenant: Tenant, ada: Any) -> None:
    first, *_ = make_three(tenant, ada, relate_bookings=True)

    alone = change(tenant, {"id": first["id"], "action": "cancel_by_customer"})
    after = states()
    second = tenant.get(f"/bookings/{first['id']}?include=bulked_bookings").data["bulked_bookings"][
        0
    ]
    together = change(
        tenant, {"id": second["id"], "action": "cancel", "apply_to_bulked_bookings": True}
    )

    assert [alone.json, together.json] == [
        {"data": [{"status": 200, "booking": answered(first, "cancelled_by_customer")}]},
        {"data": [{"status": 200, "booking": answered(second, "cancelled")}]},
    ]
    assert after == ["cancelled_by_customer", "confirmed", "confirmed"]
    assert states() == ["cancelled_by_customer", "cancelled", "cancelled"]


def test_update_scope_within_a_series(tenant: Tenant, ada: Any) -> None:
    first = tenant.book(
        resource_id=ada["id"], recurrence="FREQ=DAILY;COUNT=4", **span("09:00", "09:30")
    ).data
    _, second, third, _ = ({"id": one["booking_id"]} for one in first["series"]["occurrences"])

    alone = change(tenant, {"id": third["id"], "action": "cancel_by_customer"})
    rest = change(tenant, {"id": second["id"], "action": "cancel", "scope": "following"})

    assert [alone.json, rest.json] == [
        {"data": [{"status": 200, "booking": answered(third, "cancelled_by_customer")}]},
        {"data": [{"status": 200, "booking": answered(second, "cancelled")}]},
    ]
    assert states() == ["confirmed", "cancelled", "cancelled_by_customer", "cancelled"]


def test_resource_key_updates_only_its_own_bookings(tenant: Tenant, ada: Any, bob: Any) -> None:
    own = tenant.book(resource_id=ada["id"], **NINE).data
    others = tenant.book(resource_id=bob["id"], **NINE).data
    key = Caller(ada["api_token"], user="ada@example.com")

    changed = change(key, *({"id": one["id"], "action": "cancel"} for one in (others, own)))
    added = make(key, body(bob, 12), body(ada, 12))

    assert changed.data == [NOT_FOUND, {"status": 200, "booking": answered(own, "cancelled")}]
    assert added.data == [
        invalid("bookings.0.", "resource_id", "There is no such resource."),
        *made(added.data[1]),
    ]


def test_widget_key_is_refused(tenant: Tenant, ada: Any) -> None:
    widget = tenant.widget()

    answers = [make(widget, body(ada, 9)), change(widget, {})]

    assert [(answer.status, answer.json["code"]) for answer in answers] == [(403, "forbidden")] * 2


# --- Twice ----------------------------------------------------------------------------------------
def test_repeated_request_is_replayed(tenant: Tenant, ada: Any) -> None:
    request = {"bookings": [body(ada, 9), body(ada, 9)]}
    key = {"Idempotency-Key": "once"}

    first, again = (tenant.post("/bookings/bulk", request, **key) for _ in range(2))

    assert [item["status"] for item in first.data] == [201, 409]
    assert (again.status, again.content) == (first.status, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert states() == ["confirmed"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", ["canceling statement due to lock timeout", "deadlock detected"])
def test_response_with_a_temporary_failure_is_not_stored(
    tenant: Tenant, ada: Any, bob: Any, error: str
) -> None:
    """All of it is undone, so that sending it again makes each booking once."""
    request = {"bookings": [body(ada, 9), body(bob, 9)]}
    key = {"Idempotency-Key": "once"}

    with locked_by_another(bob, error):
        first = tenant.post("/bookings/bulk", request, **key)
    kept = states()
    second, third = (tenant.post("/bookings/bulk", request, **key) for _ in range(2))

    assert (first.status, first.error, first.headers["Retry-After"]) == (
        503,
        {"error": "The service is busy, try again.", "code": "unavailable"},
        "1",
    )
    assert kept == []
    assert [item["status"] for item in second.data] == [201, 201]
    assert "Idempotent-Replayed" not in second.headers
    assert third.headers["Idempotent-Replayed"] == "true"
    assert states() == ["confirmed"] * 2


@pytest.mark.django_db(transaction=True)
def test_update_response_with_a_temporary_failure_is_not_stored(tenant: Tenant, ada: Any) -> None:
    booking = make(tenant, body(ada, 9)).data[0]["booking"]
    request = {"bookings": [{"id": booking["id"], "action": "cancel"}]}
    key = {"Idempotency-Key": "once"}

    with locked_by_another(booking, "deadlock detected"):
        first = tenant.put("/bookings/bulk", request, **key)
    second = tenant.put("/bookings/bulk", request, **key)

    assert (first.status, second.data[0]["status"]) == (503, 200)


def test_temporary_failure_without_idempotency_key_fails_one_item(
    tenant: Tenant, ada: Any, bob: Any
) -> None:
    with locked_by_another(bob, "deadlock detected"):
        answer = make(tenant, body(ada, 9), body(bob, 9))

    assert [item["status"] for item in answer.data] == [201, 503]
    assert states() == ["confirmed"]


@contextmanager
def locked_by_another(row: Any, error: str) -> Iterator[None]:
    """The database refuses statements on that booking or on calendars of that resource."""
    own = {row["id"], *(calendar["id"] for calendar in row.get("calendars", ()))}
    names = own | {uuid.UUID(one).hex for one in own}

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        locks = "FOR NO KEY UPDATE" in sql or (connection.vendor == "sqlite" and "WHERE" in sql)
        if locks and any(name in str(params) for name in names):
            raise OperationalError(error)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        yield


def test_an_unknown_parameter_is_refused(tenant: Tenant) -> None:
    assert [make(tenant, {}, query="?x=1").status, change(tenant, {}, query="?x=1").status] == [
        *(422, 422)
    ]
    assert tenant.get("/bookings/bulk").status == 405
