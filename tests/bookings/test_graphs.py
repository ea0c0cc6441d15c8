"""The workflows: every state with every action, as the table of section 5 has them."""

from typing import Any

import pytest

from bookings.graphs import GRAPHS, STATES
from tests.bookings.booking_drafts import ACTIONS_OF, NINE, act, answered, busy_times, steps, whole
from tests.bookings.group_world import make_group, seat_in
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

# graph -> its start action, then (state, action) -> next state in the order of the contract
TABLE: dict[str, tuple[str, dict[tuple[str, str], str]]] = {
    "instant": (
        "confirm",
        {
            ("initialized", "confirm"): "confirmed",
            ("initialized", "create"): "initialized",
            ("confirmed", "cancel"): "cancelled",
            ("confirmed", "cancel_by_customer"): "cancelled_by_customer",
            ("confirmed", "complete"): "completed",
        },
    ),
    "confirm_decline": (
        "create",
        {
            ("initialized", "create"): "tentative",
            ("tentative", "confirm"): "confirmed",
            ("tentative", "decline"): "declined",
            ("tentative", "cancel"): "cancelled",
            ("tentative", "cancel_by_customer"): "cancelled_by_customer",
            ("confirmed", "cancel"): "cancelled",
            ("confirmed", "cancel_by_customer"): "cancelled_by_customer",
            ("confirmed", "complete"): "completed",
        },
    ),
    "instant_payment": (
        "create",
        {
            ("initialized", "create"): "tentative",
            ("tentative", "pay"): "paid",
            ("tentative", "timeout"): "unpaid",
            ("tentative", "cancel"): "cancelled",
            ("paid", "cancel"): "cancelled",
            ("paid", "cancel_by_customer"): "cancelled_by_customer",
            ("paid", "complete"): "completed",
        },
    ),
    "group_owner": (
        "create",
        {
            ("initialized", "create"): "tentative",
            ("tentative", "cancel"): "cancelled",
            ("tentative", "complete"): "completed",
        },
    ),
    "group_customer": (
        "create",
        {
            ("initialized", "create"): "confirmed",
            ("confirmed", "cancel_by_customer"): "cancelled_by_customer",
            ("confirmed", "cancel_by_owner"): "cancelled_by_owner",
            ("confirmed", "complete"): "completed",
        },
    ),
    "group_customer_payment": (
        "create",
        {
            ("initialized", "create"): "tentative",
            ("tentative", "pay"): "paid",
            ("tentative", "timeout"): "unpaid",
            ("tentative", "cancel"): "cancelled",
            ("paid", "cancel"): "cancelled",
            ("paid", "cancel_by_customer"): "cancelled_by_customer",
            ("paid", "complete"): "completed",
            ("tentative", "cancel_by_owner"): "cancelled_by_owner",
            ("paid", "cancel_by_owner"): "cancelled_by_owner",
        },
    ),
}
BLOCKING = {
    "instant": ({"confirmed"}, {"confirmed"}),
    "confirm_decline": ({"confirmed"}, {"confirmed", "tentative"}),
    "instant_payment": ({"tentative", "paid"}, {"tentative", "paid"}),
    "group_owner": ({"tentative"}, {"tentative"}),
    "group_customer": (set(), set()),
    "group_customer_payment": (set(), set()),
}
LIVE = {
    "instant": {"confirmed"},
    "confirm_decline": {"confirmed"},
    "instant_payment": {"paid"},
    "group_owner": {"tentative"},
    "group_customer": {"confirmed"},
    "group_customer_payment": {"paid"},
}
ALIASES = {("group_customer", "confirmed", "cancel"): "cancelled_by_owner"}
ACTIONS = tuple(dict.fromkeys(action for _, rows in TABLE.values() for _, action in rows))


def states_of(graph: str) -> list[str]:
    rows = TABLE[graph][1]
    return list(dict.fromkeys([*(state for state, _ in rows), *rows.values()]))


# --- The table itself -----------------------------------------------------------------------------
def test_graphs_match_the_contract() -> None:
    found = {name: (graph.start, dict(graph.steps)) for name, graph in GRAPHS.items()}

    assert found == TABLE
    assert set(STATES) == {state for name in TABLE for state in states_of(name)}


@pytest.mark.parametrize("graph", TABLE)
def test_actions_of_every_state(graph: str) -> None:
    rows = TABLE[graph][1]

    found = {
        (state, action): GRAPHS[graph].next_state(state, action)
        for state in STATES
        for action in ACTIONS
    }

    aliases = {pair: ALIASES.get((graph, *pair)) for pair in found}
    assert found == {pair: rows.get(pair) or aliases[pair] for pair in found}


@pytest.mark.parametrize("graph", TABLE)
def test_properties_of_each_state(graph: str) -> None:
    always, if_pending = BLOCKING[graph]

    found = {
        state: (
            GRAPHS[graph].actions(state),
            GRAPHS[graph].is_completed(state),
            GRAPHS[graph].is_live(state),
            GRAPHS[graph].blocks(state, pending_blocks=False),
            GRAPHS[graph].blocks(state, pending_blocks=True),
        )
        for state in STATES
    }

    for state, values in found.items():
        actions = [action for from_state, action in TABLE[graph][1] if from_state == state]
        expected = (
            actions,
            not actions,
            state in LIVE[graph],
            state in always,
            state in if_pending,
        )
        assert values == expected


# --- Through the API ------------------------------------------------------------------------------
# How a booking gets into a state: its start action, then the others.
WAYS = {
    "instant": {
        "initialized": ["create"],
        "confirmed": ["confirm"],
        "cancelled": ["confirm", "cancel"],
        "cancelled_by_customer": ["confirm", "cancel_by_customer"],
        "completed": ["confirm", "complete"],
    },
    "confirm_decline": {
        "tentative": ["create"],
        "confirmed": ["create", "confirm"],
        "declined": ["create", "decline"],
        "cancelled": ["create", "cancel"],
        "cancelled_by_customer": ["create", "confirm", "cancel_by_customer"],
        "completed": ["create", "confirm", "complete"],
    },
    "instant_payment": {
        "tentative": ["create"],
        "paid": ["create", "pay"],
        "unpaid": ["create", "timeout"],
        "cancelled": ["create", "cancel"],
        "cancelled_by_customer": ["create", "pay", "cancel_by_customer"],
        "completed": ["create", "pay", "complete"],
    },
    "group_owner": {
        "tentative": ["create"],
        "cancelled": ["create", "cancel"],
        "completed": ["create", "complete"],
    },
    "group_customer": {
        "confirmed": ["create"],
        "cancelled_by_customer": ["create", "cancel_by_customer"],
        "cancelled_by_owner": ["create", "cancel_by_owner"],
        "completed": ["create", "complete"],
    },
    "group_customer_payment": {
        "tentative": ["create"],
        "paid": ["create", "pay"],
        "unpaid": ["create", "timeout"],
        "cancelled": ["create", "cancel"],
        "cancelled_by_customer": ["create", "pay", "cancel_by_customer"],
        "cancelled_by_owner": ["create", "cancel_by_owner"],
        "completed": ["create", "pay", "complete"],
    },
}
PLACES = [(graph, state) for graph, ways in WAYS.items() for state in ways]
TRANSITIONS = [
    (graph, state, action, following)
    for graph, (_, rows) in TABLE.items()
    for (state, action), following in rows.items()
    if state in WAYS[graph]
]


def make_booking_in_state(tenant: Tenant, graph: str, state: str) -> tuple[str, Any]:
    """A booking of a fresh resource in that state."""
    resource = tenant.make_resource()["id"]
    start, *others = WAYS[graph][state]
    given = {"graph": graph, "action": start}
    if graph.startswith("group_customer"):
        booking = seat_in(tenant, make_group(tenant, {"id": resource}), **given)
    else:
        seats = {"settings": {"max_seats": 2}} if graph == "group_owner" else {}
        booking = tenant.book(resource_id=resource, **given, **seats, **NINE).data
    for action in others:
        act(tenant, booking, action)
    return resource, booking


def found(tenant: Tenant, resource: str, booking: Any) -> tuple[Any, ...]:
    """Its state, the actions that it offers, its history, and the time that is taken."""
    now = whole(tenant, booking)
    logs = [(log["from_state"], log["action"], log["to_state"]) for log in now["logs"]]
    return now["state"], now["available_actions"], logs, busy_times(tenant, resource)


def spans_of(graph: str, state: str) -> list[str]:
    # A seat takes no time of its own: its owner's stays taken.
    blocks = graph.startswith("group_customer") or state in BLOCKING[graph][0]
    return ["09:00-10:00"] if blocks else []


@pytest.mark.parametrize(("graph", "state", "action", "following"), TRANSITIONS)
def test_every_allowed_action_is_applied(
    tenant: Tenant, graph: str, state: str, action: str, following: str
) -> None:
    resource, booking = make_booking_in_state(tenant, graph, state)
    before = steps(tenant, booking)

    answer = act(tenant, booking, action)

    assert (answer.status, answer.json) == (200, {"data": answered(booking, following, graph)})
    assert found(tenant, resource, booking) == (
        following,
        ACTIONS_OF.get((graph, following), []),
        [*before, (state, action, following)],
        spans_of(graph, following),
    )


@pytest.mark.parametrize(("graph", "state"), PLACES)
@pytest.mark.matrix
def test_every_other_action_is_refused_and_changes_nothing(
    tenant: Tenant, graph: str, state: str
) -> None:
    resource, booking = make_booking_in_state(tenant, graph, state)
    before = steps(tenant, booking)
    known = {action for place, action in TABLE[graph][1] if place == state}
    known |= {action for *place, action in ALIASES if place == [graph, state]}
    others = [action for action in ACTIONS if action not in known]

    answers = {action: act(tenant, booking, action) for action in others}

    assert {action: (answer.status, answer.error) for action, answer in answers.items()} == {
        action: (
            409,
            {
                "error": f"Cannot apply action '{action}' to current state '{state}'",
                "code": "action_not_allowed",
                "state": state,
                "available_actions": ACTIONS_OF.get((graph, state), []),
            },
        )
        for action in others
    }
    assert found(tenant, resource, booking) == (
        state,
        ACTIONS_OF.get((graph, state), []),
        before,
        spans_of(graph, state),
    )


@pytest.mark.parametrize("graph", ["instant", "confirm_decline"])
@pytest.mark.parametrize("action", [None, *ACTIONS])
def test_every_action_at_creation(tenant: Tenant, graph: str, action: str | None) -> None:
    start, rows = TABLE[graph]
    resource = tenant.make_resource()["id"]

    answer = tenant.book(resource_id=resource, graph=graph, action=action, **NINE)

    state = rows.get(("initialized", action or start))
    if state:
        assert (answer.status, answer.json) == (201, {"data": answered(answer.data, state, graph)})
        assert steps(tenant, answer.data) == [("initialized", action or start, state)]
        assert busy_times(tenant, resource) == (
            ["09:00-10:00"] if state in BLOCKING[graph][0] else []
        )
    else:
        starts = {"instant": "confirm, create", "confirm_decline": "create"}[graph]
        assert (answer.status, answer.json["errors"]) == (
            422,
            {"action": [f"The graph {graph} starts with: {starts}."]},
        )
        assert tenant.get("/bookings").json["total"] == 0


@pytest.mark.parametrize("graph", ["nonsense", ""])
def test_unknown_graphs_are_refused(tenant: Tenant, graph: str) -> None:
    resource = tenant.make_resource()["id"]

    answer = tenant.book(resource_id=resource, graph=graph, **NINE)

    errors = [f"Must be one of {', '.join(TABLE)}."] if graph else ["This field may not be blank."]
    assert (answer.status, answer.json["errors"]) == (422, {"graph": errors})
    assert tenant.get("/bookings").json["total"] == 0


@pytest.mark.parametrize(("pending_blocks", "spans"), [(True, ["09:00-10:00"]), (False, [])])
def test_pending_blocks_setting(tenant: Tenant, pending_blocks: bool, spans: list[str]) -> None:
    resource = tenant.make_resource()["id"]
    project = tenant.make_project(resource, settings={"pending_blocks": pending_blocks})

    booking = tenant.book(project_id=project["id"], graph="confirm_decline", **NINE).data

    assert busy_times(tenant, resource) == spans
    act(tenant, booking, "confirm")
    assert busy_times(tenant, resource) == ["09:00-10:00"]


@pytest.mark.parametrize("action", ["decline", "cancel", "cancel_by_customer"])
def test_ended_request_frees_its_time(tenant: Tenant, action: str) -> None:
    resource = tenant.make_resource()["id"]
    project = tenant.make_project(resource, settings={"pending_blocks": True})
    booking = tenant.book(project_id=project["id"], graph="confirm_decline", **NINE).data

    act(tenant, booking, action)

    assert busy_times(tenant, resource) == []
