"""Bookings that wait for their payment (section 5, graph instant_payment)."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from bookings import tasks
from bookings.models import Booking
from bookings.services import complete_ended, expire_bookings
from notifications.models import Delivery
from notifications.outbox.expansion import expand_changes
from tests.bookings.booking_drafts import (
    MONDAY,
    NINE,
    act,
    answered,
    busy_times,
    span,
    steps,
    whole,
)
from tests.world import NOW, Tenant, at

pytestmark = pytest.mark.usefixtures("clock")

WAIT = timedelta(minutes=5)
SECOND = timedelta(seconds=1)
REMINDER = {
    "type": "email",
    "settings": {"recipient": "customer"},
    "when": {"type": "before", "unit": "hours", "time": 1},
}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


@pytest.fixture
def booking(tenant: Tenant, ada: Any) -> Any:
    return tenant.book(graph="instant_payment", resource_id=ada["id"], **NINE).data


def row(booking: Any) -> Booking:
    return Booking.objects.get(id=booking["id"])


def deliveries(**only: Any) -> list[tuple[str, str, str]]:
    """(kind, recipient, state) of each, in the order of planning."""
    rows = Delivery.objects.filter(**only).order_by("change", "number")
    return [(each_row.kind, each_row.recipient, each_row.state) for each_row in rows]


def test_unpaid_booking_blocks_its_time(tenant: Tenant, ada: Any, booking: Any) -> None:
    found = whole(tenant, booking)

    assert booking == answered(booking, "tentative", "instant_payment")
    assert (row(booking).expires_at, row(booking).completes_at) == (NOW + WAIT, None)
    assert (found["available_actions"], found["customer_action_links"]) == (
        *(["pay", "timeout", "cancel"], {}),
    )
    assert busy_times(tenant, ada["id"]) == ["09:00-10:00"]
    assert tenant.book(resource_id=ada["id"], **NINE).status == 409


def test_paid_booking_does_not_expire(tenant: Tenant, ada: Any, booking: Any) -> None:
    answer = act(tenant, booking, "pay")

    assert (answer.status, answer.json) == (
        *(200, {"data": answered(booking, "paid", "instant_payment")}),
    )
    assert (row(booking).expires_at, row(booking).completes_at) == (*(None, at(f"{MONDAY} 11:00")),)
    assert expire_bookings(now=NOW + timedelta(days=1)) == 0
    assert busy_times(tenant, ada["id"]) == ["09:00-10:00"]
    assert complete_ended(now=at(f"{MONDAY} 11:00")) == 1
    assert steps(tenant, booking) == [
        ("initialized", "create", "tentative"),
        ("tentative", "pay", "paid"),
        ("paid", "complete", "completed"),
    ]


def test_unpaid_booking_times_out_and_frees_its_time(
    tenant: Tenant, ada: Any, booking: Any
) -> None:
    done = [expire_bookings(now=NOW + WAIT + late) for late in (-SECOND, 0 * SECOND, SECOND)]

    found = whole(tenant, booking)
    assert (done, found["state"], found["completed"]) == ([0, 1, 0], "unpaid", True)
    assert found["logs"][1] == {
        "from_state": "tentative",
        "to_state": "unpaid",
        "action": "timeout",
        "actor": "",
        "source": "timer",
        "message": "",
        "created_at": "2026-11-20T09:35:00+0000",
    }
    assert row(booking).expires_at is None
    assert busy_times(tenant, ada["id"]) == []
    assert tenant.book(resource_id=ada["id"], **NINE).status == 201
    paid = act(tenant, booking, "pay")
    assert (paid.status, paid.json["code"], paid.json["state"]) == (
        *(409, "action_not_allowed", "unpaid"),
    )


def test_task_times_out_payments(booking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "database_now", lambda: NOW + WAIT)

    tasks.time_out_payments()

    assert row(booking).state == "unpaid"


def test_payment_timeout_setting(tenant: Tenant, ada: Any, settings: Any) -> None:
    settings.PAYMENT_TIMEOUT = 60

    booking = tenant.book(graph="instant_payment", resource_id=ada["id"], **NINE).data

    assert row(booking).expires_at == NOW + timedelta(minutes=1)


def test_late_payment_before_timeout_task_is_accepted(
    tenant: Tenant, booking: Any, clock: Any
) -> None:
    clock.move_to(NOW + WAIT + timedelta(minutes=1))

    answer = act(tenant, booking, "pay")

    assert (answer.status, answer.data["state"]) == (200, "paid")
    assert expire_bookings(now=NOW + timedelta(hours=1)) == 0


def test_reschedule_keeps_the_payment_deadline(tenant: Tenant, ada: Any, booking: Any) -> None:
    tenant.post(f"/bookings/{booking['id']}/reschedule", span("12:00", "13:00"))

    assert row(booking).expires_at == NOW + WAIT
    assert expire_bookings(now=NOW + WAIT) == 1
    assert busy_times(tenant, ada["id"]) == []


@pytest.mark.parametrize("action", ["cancel", "timeout"])
def test_cancelled_or_timed_out_booking_frees_its_time(
    tenant: Tenant, ada: Any, booking: Any, action: str
) -> None:
    state = {"cancel": "cancelled", "timeout": "unpaid"}[action]

    answer = act(tenant, booking, action)

    assert (answer.status, answer.data["state"]) == (200, state)
    assert busy_times(tenant, ada["id"]) == []
    assert expire_bookings(now=NOW + WAIT) == 0


def test_timeout_keeps_other_bookings(tenant: Tenant, ada: Any) -> None:
    kept = tenant.book(resource_id=ada["id"], **span("12:00", "13:00")).data
    request = tenant.book(
        graph="confirm_decline", resource_id=ada["id"], **span("13:00", "14:00")
    ).data

    assert expire_bookings(now=NOW + timedelta(days=2)) == 0
    assert [row(one).state for one in (kept, request)] == ["confirmed", "tentative"]


def test_many_bookings_time_out_together(tenant: Tenant, ada: Any) -> None:
    """A series waits for one payment each."""
    tenant.book(
        graph="instant_payment", resource_id=ada["id"], recurrence="FREQ=DAILY;COUNT=3", **NINE
    )

    assert expire_bookings(now=NOW + WAIT) == 3
    assert set(Booking.objects.values_list("state", flat=True)) == {"unpaid"}


# --- What is told ---------------------------------------------------------------------------------
def test_no_mails_or_reminders_before_payment(tenant: Tenant, ada: Any) -> None:
    booking = tenant.book(
        graph="instant_payment", resource_id=ada["id"], event_notifications=[REMINDER], **NINE
    ).data
    before = deliveries()

    act(tenant, booking, "pay")

    assert before == []
    assert deliveries() == [
        ("paid", "customer", "scheduled"),
        ("paid", "owner", "scheduled"),
        ("reminder", "customer", "scheduled"),
    ]
    assert [delivery.due_at for delivery in Delivery.objects.filter(kind="reminder")] == [
        at(f"{MONDAY} 08:00")
    ]


def test_timeout_mails_the_customer(tenant: Tenant, ada: Any) -> None:
    tenant.book(
        graph="instant_payment", resource_id=ada["id"], event_notifications=[REMINDER], **NINE
    )

    expire_bookings(now=NOW + WAIT)

    assert deliveries() == [("unpaid", "customer", "scheduled")]


def test_cancelled_paid_booking_has_no_reminders(tenant: Tenant, ada: Any) -> None:
    booking = tenant.book(
        graph="instant_payment", resource_id=ada["id"], event_notifications=[REMINDER], **NINE
    ).data
    act(tenant, booking, "pay")

    act(tenant, booking, "cancel_by_customer")

    assert deliveries(kind="reminder") == [("reminder", "customer", "cancelled")]
    assert deliveries(kind="cancelled_by_customer") == [
        ("cancelled_by_customer", "owner", "scheduled"),
        ("cancelled_by_customer", "customer", "scheduled"),
    ]


def test_webhooks_get_each_state(tenant: Tenant, ada: Any) -> None:
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    booking = tenant.book(graph="instant_payment", resource_id=ada["id"], **NINE).data
    expire_bookings(now=NOW + WAIT)
    expand_changes()

    assert deliveries(type="webhook", booking=booking["id"]) == [
        ("tentative", "", "scheduled"),
        ("unpaid", "", "scheduled"),
    ]


# --- Requests without an answer -------------------------------------------------------------------
def test_unanswered_request_is_declined_automatically(tenant: Tenant, ada: Any, clock: Any) -> None:
    project = tenant.make_project(
        ada["id"], booking={"graph": "confirm_decline"}, settings={"pending_expires": "2 days"}
    )["id"]
    day = "2026-11-30"
    late, answered_in_time = (
        tenant.book(project_id=project, **span(f"{hour}:00", f"{hour + 1}:00", day)).data
        for hour in (10, 12)
    )
    patient = tenant.book(resource_id=ada["id"], graph="confirm_decline", **span("14:00", "15:00"))
    tenant.put(f"/bookings/{answered_in_time['id']}/confirm")

    clock.shift(timedelta(days=2, seconds=-1))
    early = expire_bookings(now=timezone.now())
    clock.shift(1)
    done = expire_bookings(now=timezone.now())

    assert (early, done) == (0, 1)
    found = [whole(tenant, booking) for booking in (late, answered_in_time, patient.data)]
    assert [booking["state"] for booking in found] == ["declined", "confirmed", "tentative"]
    log = found[0]["logs"][-1]
    assert (log["action"], log["source"], log["message"]) == ("decline", "timer", "")
    mails = Delivery.objects.filter(booking=late["id"], kind__startswith="declined")
    assert sorted(mails.values_list("recipient", flat=True)) == ["customer"]
