"""Customers' answers to invitations: what is stored, what cancels, who is told."""

import json
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from bookings.models import Booking, Customer
from bookings.services import Actor, Answer, record_response
from bookings.services.responses import Invitation
from notifications.models import CALL_BODY, Delivery
from notifications.outbox.expansion import expand_changes
from tests.bookings.booking_drafts import MARTY, NINE, act
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.bookings.test_privacy import erase, export
from tests.world import NOW, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

IN_CALENDAR = Actor("Ada's calendar", Customer.CALENDAR)
BY_MAIL = Actor("customer", Customer.MAIL)
NO_ANSWER = {"response": "needs_action", "responded_at": None, "source": None}
NINE_NEXT_DAY = {"start": "2026-11-24T09:00:00Z", "end": "2026-11-24T09:30:00Z"}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


def make_project(tenant: Tenant, ada: Any, **settings: Any) -> Any:
    return tenant.make_project(ada["id"], settings={"guest_declines": "cancel", **settings})


def book(tenant: Tenant, ada: Any, **given: Any) -> Any:
    who = {} if "customers" in given else {"customer": MARTY}
    body = {"what": "Meeting", "resource_id": ada["id"], "graph": "instant", **who, **NINE, **given}
    answer = tenant.post("/bookings", body)
    assert answer.status == 201, answer.json
    return answer.data


def respond(
    booking: Any,
    response: str = "declined",
    *,
    at: datetime = NOW,
    position: int = 0,
    actor: Actor = IN_CALENDAR,
    **given: Any,
) -> str:
    """Record the answer of the booking's customer at a position."""
    row = Booking.objects.get(id=booking["id"])
    may_cancel = given.pop("may_cancel", True)
    return record_response(
        app=row.app,
        customer=row.customers.all()[position],
        answer=Answer(response, at, may_cancel),
        actor=actor,
        now=max(at, NOW),
        **given,
    )


def answers_of(tenant: Tenant, booking: Any) -> list[Any]:
    customers = tenant.get(f"/bookings/{booking['id']}").data["customers"]
    return [{name: customer[name] for name in NO_ANSWER} for customer in customers]


def state_of(booking: Any) -> str:
    return Booking.objects.get(id=booking["id"]).state


def log_of(tenant: Tenant, booking: Any) -> list[tuple[str, str, str, str]]:
    logs = tenant.get(f"/bookings/{booking['id']}?include=logs").data["logs"]
    return [(log["action"], log["actor"], log["source"], log["message"]) for log in logs[1:]]


# --- What is stored -------------------------------------------------------------------------------
def test_answer_is_stored_with_time_and_source(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    before = answers_of(tenant, booking)

    result = respond(booking, "tentative", at=NOW + timedelta(minutes=1))

    assert (before, result) == ([NO_ANSWER], "noted")
    assert answers_of(tenant, booking) == [
        {
            "response": "tentative",
            "responded_at": "2026-11-20T09:31:00+0000",
            "source": "calendar",
        }
    ]
    assert log_of(tenant, booking) == [
        (
            *("response", "Ada's calendar", "calendar"),
            "The customer has tentatively accepted the invitation.",
        )
    ]
    assert state_of(booking) == "confirmed"


def test_repeated_and_older_answers_change_nothing(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    respond(booking, "accepted", at=NOW)

    results = [
        respond(booking, "accepted", at=NOW + timedelta(minutes=5)),
        respond(booking, "declined", at=NOW - timedelta(seconds=1)),
    ]

    assert results == ["unchanged", "older"]
    assert answers_of(tenant, booking)[0]["response"] == "accepted"
    assert len(log_of(tenant, booking)) == 1


def test_answer_to_a_finished_booking_is_ignored(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    act(tenant, booking, "cancel")

    result = respond(booking, "declined")

    assert (result, answers_of(tenant, booking)) == ("ended", [NO_ANSWER])


def test_answer_to_the_former_time_is_ignored(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    tenant.put(f"/bookings/{booking['id']}", {"what": "Other"})
    tenant.post(f"/bookings/{booking['id']}/reschedule", NINE_NEXT_DAY)
    booking_id = uuid.UUID(booking["id"])

    # The log: created 0, changed 1, moved 2.
    results = [
        respond(booking, response, invitation=Invitation(booking_id, sequence))
        for sequence, response in [(1, "declined"), (2, "accepted"), (7, "declined")]
    ]

    assert results == ["older", "noted", "noted"]


def test_answer_that_was_given_before_the_move_is_ignored(tenant: Tenant, ada: Any) -> None:
    """Found in a calendar that has the times of answers."""
    booking = book(tenant, ada)
    tenant.post(f"/bookings/{booking['id']}/reschedule", NINE_NEXT_DAY)

    results = [respond(booking, at=NOW - timedelta(seconds=1)), respond(booking, at=NOW)]

    assert results == ["older", "noted"]


def test_move_to_another_time_forgets_the_answers(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob")
    booking = book(tenant, ada)
    respond(booking, "accepted")
    calendar = tenant.get(f"/resources/{bob['id']}?include=calendars").data["calendars"][0]

    path = f"/bookings/{booking['id']}/reschedule"
    moved = tenant.post(path, {**NINE, "calendar_id": calendar["id"]})
    with_bob = answers_of(tenant, booking)
    tenant.post(path, NINE_NEXT_DAY)

    assert moved.status == 200, moved.json
    assert (with_bob[0]["response"], answers_of(tenant, booking)) == ("accepted", [NO_ANSWER])


def test_move_of_a_group_forgets_the_answers_of_its_seats(tenant: Tenant, ada: Any) -> None:
    group = make_group(tenant, ada)
    seat = seat_in(tenant, group)
    respond(seat, "accepted")

    tenant.post(f"/bookings/{group['id']}/reschedule", NINE_NEXT_DAY)

    assert answers_of(tenant, seat) == [NO_ANSWER]


def test_new_address_forgets_the_answer(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    respond(booking, "accepted")
    path = f"/bookings/{booking['id']}"

    tenant.put(path, {"customer": {"name": "Martin"}})
    renamed = answers_of(tenant, booking)
    tenant.put(path, {"customer": {"email": "martin@example.com"}})

    assert (renamed[0]["response"], answers_of(tenant, booking)) == ("accepted", [NO_ANSWER])


# --- In requests ----------------------------------------------------------------------------------
def test_customer_as_in_the_response_is_accepted_and_other_values_are_free(
    tenant: Tenant, ada: Any
) -> None:
    """Keys of questions may be "source" or "response": such answers are in `meta`, as before."""
    given = {**MARTY, "source": "a friend", "response": "Yes"}
    booking = book(tenant, ada, customer=given)
    path = f"/bookings/{booking['id']}"
    shown = tenant.get(path).data["customers"]

    echoed = tenant.put(path, {"customers": shown})
    changed = tenant.put(path, {"customer": {"response": "declined", "source": "the press"}})

    assert shown[0]["meta"] == {"source": "a friend", "response": "Yes"}
    assert (echoed.status, changed.status) == (200, 200)
    customers = tenant.get(path).data["customers"]
    assert customers[0]["meta"] == {"source": "the press", "response": "Yes"}
    assert {name: customers[0][name] for name in NO_ANSWER} == NO_ANSWER


def test_guest_declines_has_two_values(tenant: Tenant, ada: Any) -> None:
    body = {"name": "Check-up", "resources": [ada["id"]], "settings": {"guest_declines": "never"}}

    refused = tenant.post("/projects", body)

    assert (refused.status, list(refused.json["errors"])) == (422, ["settings.guest_declines"])


# --- What cancels ---------------------------------------------------------------------------------
def test_declined_invitation_cancels_if_the_project_says_so(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada)
    booking = book(tenant, ada, project_id=project["id"])

    result = respond(booking)
    again = respond(booking)

    assert (result, again, state_of(booking)) == ("cancelled", "ended", "cancelled_by_customer")
    assert log_of(tenant, booking) == [
        (
            *("response", "Ada's calendar", "calendar"),
            "The customer has declined the invitation.",
        ),
        ("cancel_by_customer", "Ada's calendar", "calendar", ""),
    ]
    mails = Delivery.objects.filter(kind="cancelled_by_customer").order_by("recipient")
    assert list(mails.values_list("recipient", flat=True)) == ["customer", "owner"]


@pytest.mark.parametrize("settings", [{}, {"guest_declines": "note"}])
def test_declined_invitation_is_noted_by_default(
    tenant: Tenant, ada: Any, settings: dict[str, str]
) -> None:
    project = tenant.make_project(ada["id"], settings=settings)
    booking = book(tenant, ada, project_id=project["id"])

    assert (respond(booking), state_of(booking)) == ("noted", "confirmed")


def test_other_answers_cancel_nothing(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada)
    booking = book(tenant, ada, project_id=project["id"])

    results = [respond(booking, response) for response in ("accepted", "tentative")]

    assert (results, state_of(booking)) == (["noted", "noted"], "confirmed")


def test_uncertain_answer_cancels_nothing(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada)
    booking = book(tenant, ada, project_id=project["id"])

    result = respond(booking, actor=BY_MAIL, may_cancel=False)

    assert (result, state_of(booking)) == ("noted", "confirmed")
    assert answers_of(tenant, booking)[0]["source"] == "mail"


def test_answer_that_is_certain_later_cancels(tenant: Tenant, ada: Any) -> None:
    """By e-mail from an unverified sender, then found in the calendar."""
    project = make_project(tenant, ada)
    booking = book(tenant, ada, project_id=project["id"])

    results = [respond(booking, actor=BY_MAIL, may_cancel=False), respond(booking)]

    assert (results, state_of(booking)) == (["noted", "cancelled"], "cancelled_by_customer")
    assert [line[::2] for line in log_of(tenant, booking)] == [
        ("response", "mail"),
        ("cancel_by_customer", "calendar"),
    ]
    assert answers_of(tenant, booking)[0]["source"] == "mail"


def test_one_of_several_customers_cancels_nothing(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada)
    booking = book(tenant, ada, project_id=project["id"], customers=[ANN, BOB])

    result = respond(booking, position=1)

    assert (result, state_of(booking)) == ("noted", "confirmed")
    assert [answer["response"] for answer in answers_of(tenant, booking)] == [
        "needs_action",
        "declined",
    ]
    assert log_of(tenant, booking)[0][3] == "One of the customers has declined the invitation."


def test_seat_is_cancelled_alone(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada)
    group = make_group(tenant, ada, project_id=project["id"])
    seats = [seat_in(tenant, group, who) for who in (ANN, BOB)]

    assert respond(seats[0]) == "cancelled"
    assert [state_of(each) for each in (group, *seats)] == [
        "tentative",
        "cancelled_by_customer",
        "confirmed",
    ]


def test_declined_too_late_is_noted_with_the_reason(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada, min_cancel_time="1 day")
    booking = book(tenant, ada, project_id=project["id"])

    with time_machine.travel("2026-11-23T08:00:00Z", tick=False):
        result = respond(booking, at=datetime.fromisoformat("2026-11-23T08:00:00+00:00"))

    assert (result, state_of(booking)) == ("noted", "confirmed")
    assert log_of(tenant, booking)[0][3] == (
        "The customer has declined the invitation. It is too late to cancel the booking."
    )


def test_unpaid_booking_is_not_cancelled_by_an_answer(tenant: Tenant, ada: Any) -> None:
    project = make_project(tenant, ada)
    booking = book(tenant, ada, project_id=project["id"], graph="instant_payment")

    assert (respond(booking), state_of(booking)) == ("noted", "tentative")
    assert log_of(tenant, booking)[0][3] == (
        "The customer has declined the invitation. Customers can't cancel the booking in this"
        " state."
    )


# --- Who is told ----------------------------------------------------------------------------------
def test_only_subscribed_webhooks_get_answers(tenant: Tenant, ada: Any) -> None:
    kinds: dict[str, list[str]] = {
        "any": [],
        "answers": ["booking.response"],
        "both": ["booking.response", "booking.cancelled_by_customer"],
    }
    for name, of_hook in kinds.items():
        tenant.post("/webhooks", {"url": f"https://example.com/{name}", "kinds": of_hook})
    project = make_project(tenant, ada)
    booking = book(tenant, ada, project_id=project["id"])
    expand_changes()
    Delivery.objects.all().delete()

    respond(booking)
    expand_changes()

    calls = Delivery.objects.filter(type="webhook").order_by("id")
    assert sorted((call.kind, call.webhook.url.rpartition("/")[2]) for call in calls) == [
        ("cancelled_by_customer", "any"),
        ("cancelled_by_customer", "both"),
        ("response", "answers"),
        ("response", "both"),
    ]
    body = json.loads(calls.filter(kind="response").values_list(CALL_BODY, flat=True)[0])
    assert (body["state"], body["customers"][0]["response"]) == ("confirmed", "declined")
    assert body["change"] == {
        "kind": "booking.response",
        "at": "2026-11-20T09:30:00+00:00",
        "action": "response",
        "from_state": "confirmed",
        "actor": "Ada's calendar",
        "source": "calendar",
        "message": "The customer has declined the invitation.",
        "previous": None,
    }


def test_answer_alone_sends_no_mail(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    before = Delivery.objects.count()

    respond(booking)

    assert Delivery.objects.count() == before


# --- Personal data --------------------------------------------------------------------------------
def test_answer_is_exported_and_gone_with_the_customer(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    respond(booking, actor=BY_MAIL)

    exported = export(tenant)[1]["data"]["bookings"][0]["customers"][0]
    erase(tenant)

    assert {name: exported[name] for name in NO_ANSWER} == {
        "response": "declined",
        "responded_at": "2026-11-20T09:30:00+0000",
        "source": "mail",
    }
    row = Customer.objects.get()
    assert (row.name, row.email) == ("", "")
