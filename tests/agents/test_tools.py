"""What each tool returns, with the keys that may call it."""

import uuid
from typing import Any

import jsonschema
import pytest
from django.db import connection

from apps_config.models import Membership
from availability.search import live_freebusy
from bookings.services import code_of
from tests.agents.client import Agent
from tests.agents.conftest import END, LATER, LATER_END, START
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

CUSTOMER = {"name": "Doc Brown", "email": "doc@example.com"}


@pytest.fixture(autouse=True)
def _answers_match_their_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every structured result is of the tool's output schema."""
    schemas: dict[tuple[int, str], Any] = {}
    call = Agent.call

    def checked(agent: Agent, tool: str, /, **given: Any) -> Any:
        if (id(agent), tool) not in schemas:
            for each in agent.request("tools/list").json["result"]["tools"]:
                schemas[id(agent), each["name"]] = each["outputSchema"]
        result = call(agent, tool, **given)
        if "structuredContent" in result:
            jsonschema.validate(result["structuredContent"], schemas[id(agent), tool])
        return result

    monkeypatch.setattr(Agent, "call", checked)


def test_services_and_resources(agent: Agent, service: Any) -> None:
    services, resources = agent.use("list_services"), agent.use("list_resources")

    [resource] = resources.pop("resources")
    assert services == {
        "services": [
            {
                "project_id": service["id"],
                "slug": "check-up",
                "name": "Check-up",
                "length": "30 minutes",
                "lengths": None,
                "mode": None,
                "graph": None,
                "where": None,
                "description": None,
                "customer_fields": {},
            }
        ],
        "more": False,
    }
    assert resources == {"more": False}
    assert resource.pop("resource_id")
    assert resource == {"name": "Ada", "timezone": "UTC"}


def test_times_are_fifty_and_more(agent: Agent, service: Any) -> None:
    found = agent.use("find_times", project_id=service["id"], to="1 week", zone="Europe/Berlin")

    assert (len(found["times"]), found["more"]) == (50, True)
    assert found["times"][0]["start"] == "2026-11-20T11:00:00+01:00"
    few = agent.use("find_times", project_id=service["id"], from_=START, to=LATER)
    assert [time["start"][11:16] for time in few["times"]] == ["09:00", "09:30", "10:00", "10:30"]
    assert few["more"] is False


def test_a_taken_time_is_explained_without_its_text(
    agent: Agent, service: Any, booking: Any
) -> None:
    found = agent.use("explain_time", project_id=service["id"], from_=START, to=END)

    [explanation] = found["explanations"]
    [segment] = explanation["segments"]
    assert segment["available"] is False
    assert segment["reasons"][0]["type"] == "event"
    assert "Check-up" not in str(segment)


def test_bookings(agent: Agent, service: Any, booking: Any) -> None:
    listed = agent.use("list_bookings", from_=START, to=END, project_id=service["id"])
    elsewhere = agent.use("list_bookings", from_=LATER, to=LATER_END)
    one = agent.use("get_booking", booking_id=booking["id"])

    assert elsewhere == {"bookings": [], "more": False}
    assert listed == {"bookings": [one["booking"]], "more": False}
    found = one["booking"]
    assert found.pop("resource")["name"] == "Ada"
    assert found == {
        "booking_id": booking["id"],
        "state": "confirmed",
        "graph": "instant",
        "start": START,
        "end": END,
        "project": {"project_id": service["id"], "name": "Check-up"},
        "outcome": None,
        "available_actions": ["cancel", "cancel_by_customer", "complete"],
        "customers": [{"email": "marty@example.com", "phone": ""}],
        "untrusted_text": {
            "what": "Meeting",
            "customers": [{"name": "Marty McFly", "answers": {}}],
        },
    }


def test_a_held_time_is_booked_once_confirmed(agent: Agent, service: Any, tenant: Tenant) -> None:
    time = {"project_id": service["id"], "start": START, "end": END}
    hold = agent.use("hold_time", **time, request_id="h")["hold"]
    wish = {**time, "customer": CUSTOMER, "reservation_id": hold["reservation_id"]}

    asked = agent.use("book", **wish, request_id="b")
    done = agent.use("book", **wish, request_id="b", confirm=asked["confirm"])

    assert asked["status"] == "confirmation_required"
    assert asked["expires_in"] == 300
    assert asked["preview"]["before"] is None
    assert asked["preview"]["after"]["booking_id"] is None
    assert asked["preview"]["emails"] == [
        {"to": "customer", "kind": "confirmed", "address": "d***@example.com"},
        {"to": "owner", "kind": "confirmed", "address": None},
    ]
    assert done["status"] == "done"
    [entry] = tenant.get("/bookings?include=logs,event").data
    assert entry["id"] == done["booking"]["booking_id"]
    assert entry["event"]["start"] == START
    [log] = entry["logs"]
    assert log["source"] == "mcp"
    assert log["actor"].startswith("mcp:server key ")


def test_a_preview_asks_other_calendars_outside_of_its_transaction(
    agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    depths: list[int] = []

    def ask(resource_ids: Any, span: Any, **_: Any) -> Any:
        depths.append(len(connection.savepoint_ids))
        return {resource_id: [] for resource_id in resource_ids}

    monkeypatch.setattr(live_freebusy, "freebusy_sources", [ask])
    ada = tenant.make_resource()
    project = tenant.make_project(
        ada["id"], availability={"length": "30 minutes"}, settings={"check_external": True}
    )
    wish = {"project_id": project["id"], "start": START, "end": END, "customer": CUSTOMER}
    own_depth = len(connection.savepoint_ids)

    asked = agent.use("book", **wish, what="Check-up", request_id="b")
    done = agent.use("book", **wish, what="Check-up", request_id="b", confirm=asked["confirm"])

    assert (asked["preview"]["after"]["state"], done["status"]) == ("confirmed", "done")
    assert depths == [own_depth, own_depth]


def test_move_cancel_and_outcome(agent: Agent, booking: Any, tenant: Tenant, clock: Any) -> None:
    named = {"booking_id": booking["id"]}
    move = {**named, "start": LATER, "end": LATER_END, "request_id": "m"}
    asked = agent.use("reschedule_booking", **move)
    moved = agent.use("reschedule_booking", **move, confirm=asked["confirm"])
    clock.move_to("2026-11-23T12:00:00Z")
    came = agent.use("set_outcome", **named, outcome="attended", request_id="o")
    asked = agent.use("cancel_booking", **named, request_id="c", message="Sorry")
    ended = agent.use(
        "cancel_booking", **named, request_id="c", message="Sorry", confirm=asked["confirm"]
    )

    assert (moved["booking"]["start"], moved["booking"]["end"]) == (LATER, LATER_END)
    assert came["booking"]["outcome"] == "attended"
    assert asked["preview"]["policy"]["min_cancel_time"] == "1 day"
    assert ended["booking"]["state"] == "cancelled"
    logs = tenant.get(f"/bookings/{booking['id']}?include=logs").data["logs"]
    assert [(log["action"], log["source"], log["message"]) for log in logs] == [
        ("confirm", "api", ""),
        ("reschedule", "mcp", ""),
        ("update", "mcp", "Changed: outcome."),
        ("cancel", "mcp", "Sorry"),
    ]


@pytest.mark.parametrize(("answer", "state"), [("confirm", "confirmed"), ("decline", "declined")])
def test_requests_are_answered(
    agent: Agent, service: Any, tenant: Tenant, answer: str, state: str
) -> None:
    request = tenant.book(
        project_id=service["id"], start=START, end=END, graph="confirm_decline"
    ).data
    wish = {"booking_id": request["id"], "answer": answer, "request_id": "a"}

    asked = agent.use("answer_request", **wish)
    done = agent.use("answer_request", **wish, confirm=asked["confirm"])

    assert {mail["to"] for mail in asked["preview"]["emails"]} >= {"customer"}
    assert done["booking"]["state"] == state


@pytest.mark.parametrize(
    ("tool", "arguments", "errors"),
    [
        ("get_booking", {}, {"booking_id": "Is required."}),
        ("get_booking", {"booking_id": "../resources"}, {"booking_id": "Must be an id."}),
        ("get_booking", {"booking_id": 5}, {"booking_id": "Must be of type string."}),
        ("list_services", {"page": True}, {"page": "Must be of type integer."}),
        ("list_services", {"secret": "x"}, {"secret": "Is not an argument of this tool."}),
        (
            "answer_request",
            {
                "booking_id": "0" * 8 + "-0000" * 3 + "-" + "0" * 12,
                "answer": "x",
                "request_id": "r",
            },
            {"answer": "Must be one of confirm, decline."},
        ),
    ],
)
def test_arguments_that_the_tool_does_not_take(
    agent: Agent, tool: str, arguments: Any, errors: Any
) -> None:
    assert agent.refused(tool, **arguments) == {"code": "invalid", "errors": errors}


def test_a_refusal_of_the_api_is_the_tools(agent: Agent, service: Any, booking: Any) -> None:
    wish = {"project_id": service["id"], "start": START, "end": END, "customer": CUSTOMER}

    refused = agent.refused("book", **wish, request_id="b")
    zone = agent.refused("list_bookings", zone="Mars")

    assert refused.pop("alternatives")
    assert refused == {"code": "slot_taken", "error": "The time is taken."}
    assert zone["errors"] == {"Service-Timezone": ["Is not a known IANA time zone."]}


def test_a_widget_key_reaches_three_tools(
    public_agent: Agent, service: Any, booking: Any, tenant: Tenant
) -> None:
    tenant.set_public_limits()
    names = [tool["name"] for tool in public_agent.request("tools/list").json["result"]["tools"]]
    refused = public_agent.request(
        "tools/call", name="get_booking", arguments={"booking_id": booking["id"]}
    )
    time = {"project_id": service["id"], "start": LATER, "end": LATER_END}
    found = public_agent.use("find_times", project_id=service["id"], from_=LATER, to=LATER_END)
    hold = public_agent.use("hold_time", **time, request_id="h")["hold"]
    wish = {**time, "customer": CUSTOMER, "reservation_id": hold["reservation_id"]}
    asked = public_agent.use("book", **wish, request_id="b")
    done = public_agent.use("book", **wish, request_id="b", confirm=asked["confirm"])

    assert names == ["find_times", "hold_time", "book"]
    assert (refused.status, refused.json["error"]["message"]) == (
        403,
        "This key can't use this tool.",
    )
    assert [time["start"] for time in found["times"]] == [LATER]
    assert done["booking"]["customers"] == []
    [log] = tenant.get(f"/bookings/{done['booking']['booking_id']}?include=logs").data["logs"]
    # The rules for texts of strangers go by this source.
    assert log["source"] == "widget"
    assert log["actor"].startswith("mcp:widget key ")


def test_a_public_preview_counts_as_an_attempt(
    public_agent: Agent, service: Any, tenant: Tenant
) -> None:
    tenant.set_public_limits(public_bookings_per_address_per_hour=2)
    wish = {"project_id": service["id"], "start": START, "end": END, "customer": CUSTOMER}

    statuses = [
        public_agent.call("book", **wish, request_id=f"b{number}")["isError"] for number in range(3)
    ]

    assert statuses == [False, False, True]


def test_a_customer_tells_the_code_of_the_email(
    public_agent: Agent, service: Any, tenant: Tenant
) -> None:
    tenant.put(f"/projects/{service['id']}", {"settings": {"verify_email": True}})
    wish = {"project_id": service["id"], "start": START, "end": END, "customer": CUSTOMER}
    asked = public_agent.use("book", **wish, request_id="b")
    waits = public_agent.use("book", **wish, request_id="b", confirm=asked["confirm"])
    reservation_id = waits["hold"]["reservation_id"]
    code = code_of(uuid.UUID(reservation_id))
    told = {**wish, "reservation_id": reservation_id, "request_id": "c"}

    wrong = public_agent.refused("book", **told, code="12345")
    done = public_agent.use("book", **told, code=code)
    again = public_agent.use("book", **told, code=code)
    late = public_agent.refused("book", **{**told, "request_id": "d"}, code=code)

    assert [mail["kind"] for mail in asked["preview"]["emails"]] == ["verification_code"]
    assert waits["status"] == "waiting_for_code"
    assert wrong == {
        "code": "invalid",
        "error": "code: This code is wrong.",
        "errors": {"code": ["This code is wrong."]},
    }
    assert (done["status"], done["booking"]["state"]) == ("done", "confirmed")
    assert again == done
    assert late["code"] == "hold_expired"
    [entry] = tenant.get("/bookings").data
    assert entry["id"] == done["booking"]["booking_id"]


def test_a_code_is_never_tried_in_a_rehearsal(public_agent: Agent, service: Any) -> None:
    wish = {"project_id": service["id"], "start": START, "end": END, "customer": CUSTOMER}

    refused = public_agent.refused("book", **wish, code="123456", dry_run=True, request_id="b")

    assert refused == {
        "code": "invalid",
        "errors": {
            "reservation_id": "Is required with `code`.",
            "dry_run": "Can't be used with `code`.",
        },
    }


def test_a_viewers_token_only_reads(tenant: Tenant, service: Any) -> None:
    viewer = tenant.member("viewer@example.com", Membership.VIEWER)
    agent = Agent("")
    agent.headers = viewer.headers

    names = [tool["name"] for tool in agent.request("tools/list").json["result"]["tools"]]

    assert names == [
        *("list_services", "find_times", "explain_time"),
        *("list_bookings", "get_booking", "list_resources"),
    ]
