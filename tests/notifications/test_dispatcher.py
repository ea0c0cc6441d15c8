"""The whole way of a delivery: planned with its booking, claimed, sent, written down."""

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import icalendar
import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from apps_config.models import Account, Membership
from bookings.models import Booking
from common.errors import NotFound
from external_calendars.mirror.writer import TRY_DEADLINE
from notifications import tasks
from notifications.models import CALL_BODY, Attempt, Delivery, Endpoint, LaneCheck, Webhook
from notifications.outbox import dispatcher
from notifications.outbox.circuit_breaker import endpoint_of
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.leases import LEASES, claim_due
from notifications.outbox.redeliver import redeliver
from notifications.outbox.results import (
    FinalState,
    SendResult,
    finish_unsent,
    record_results,
    release_unsent,
)
from notifications.planning import REMINDER_GRACE
from notifications.webhooks.call import CALL_DEADLINE
from notifications.webhooks.services import create_webhook, record_webhook_results
from tests.queries import Queries
from tests.sinks import Answer, HookSink, Mail, MailSink
from tests.world import Tenant, call_body

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.both_databases,
    pytest.mark.usefixtures("expanded_calls"),
]


def soon(**ahead: float) -> datetime:
    return (timezone.now() + timedelta(**(ahead or {"hours": 30}))).replace(
        minute=0, second=0, microsecond=0
    )


def first_resource(tenant: Tenant) -> Any:
    there = tenant.get("/resources").data
    return there[0] if there else tenant.make_resource(email="ada@example.com")


def book(tenant: Tenant, start: datetime | None = None, **given: Any) -> Any:
    start = start or soon()
    resource = given.pop("resource", None) or first_resource(tenant)
    body = {
        "resource_id": resource["id"],
        "start": start.isoformat(),
        "end": (start + timedelta(hours=1)).isoformat(),
        **given,
    }
    answer = tenant.book(**body)
    assert answer.status == 201, answer.json
    return answer.data


def hook(tenant: Tenant, sink: HookSink, path: str = "/hook", **given: Any) -> Webhook:
    return create_webhook(app=tenant.app, given={"url": sink.url(path), **given})[0]


def states(**only: Any) -> list[tuple[str, str, str, str]]:
    """(type, kind, recipient, state) of each delivery, in the order of planning."""
    rows = Delivery.objects.filter(**only).order_by("change", "number", "id")
    return [(row.type, row.kind, row.recipient, row.state) for row in rows]


def reminder(kind: str = "email", *, when: str = "before", mins: int = 60, **settings: Any) -> Any:
    chosen = {"recipient": "customer"} if kind == "email" else {}
    return {
        "type": kind,
        "settings": {**chosen, **settings},
        "when": {"type": when, "unit": "mins", "time": mins},
    }


def make_due(**only: Any) -> None:
    """As if their time had come."""
    Delivery.objects.filter(state="scheduled", **only).update(
        next_at=timezone.now() - timedelta(seconds=1)
    )


# --- Mails ----------------------------------------------------------------------------------------
def test_mails_of_a_request_and_its_confirmation(tenant: Tenant, mails: MailSink) -> None:
    booking = book(tenant, graph="confirm_decline")
    run_dispatcher("email")
    tenant.put(f"/bookings/{booking['id']}/confirm")
    run_dispatcher("email")

    assert sorted((mail.to[0], mail.id) for mail in mails.mails) == sorted(
        (
            {"customer": "marty@example.com", "owner": "ada@example.com"}[row.recipient],
            f"<{row.id}@localhost>",
        )
        for row in Delivery.objects.all()
    )
    assert states() == [
        ("email", "tentative", "owner", "delivered"),
        ("email", "tentative", "customer", "delivered"),
        ("email", "confirmed", "customer", "delivered"),
        ("email", "confirmed", "owner", "delivered"),
    ]
    assert list(Attempt.objects.values_list("response_code", "error")) == [(None, "")] * 4


def test_mails_of_one_booking_are_sent_in_order(tenant: Tenant, mails: MailSink) -> None:
    """The second waits while the first is refused, and another booking's does not."""
    resource = tenant.make_resource(email="ada@example.com")
    booking = book(tenant, graph="confirm_decline", resource=resource)
    mails.answer = lambda to: "451 later" if to == "marty@example.com" else None
    run_dispatcher("email")
    tenant.put(f"/bookings/{booking['id']}/decline", {"decline": {"message": "Sorry"}})
    mails.answer = lambda to: None
    other = book(tenant, soon(hours=50), resource=resource)
    run_dispatcher("email")

    assert states(booking=booking["id"]) == [
        ("email", "tentative", "owner", "delivered"),
        ("email", "tentative", "customer", "scheduled"),
        ("email", "declined", "customer", "scheduled"),
    ]
    assert {state for *_, state in states(booking=other["id"])} == {"delivered"}

    make_due(kind="tentative")
    run_dispatcher("email")
    run_dispatcher("email")

    mine = [mail for mail in mails.mails if str(booking["id"]) in mail.message.as_string()]
    assert states(booking=booking["id"], recipient="customer") == [
        ("email", "tentative", "customer", "delivered"),
        ("email", "declined", "customer", "delivered"),
    ]
    assert [mail.at for mail in mine] == sorted(mail.at for mail in mine)


def test_disabled_emails_are_skipped(tenant: Tenant, mails: MailSink) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"disableEmail": True}})
    book(tenant, event_notifications=[reminder()])
    make_due()
    run_dispatcher("email")

    assert mails.mails == []
    assert {(row.state, row.reason, row.tries) for row in Delivery.objects.all()} == {
        ("skipped", "The app's e-mails are disabled.", 0)
    }


def test_mail_disabled_at_creation_is_skipped(tenant: Tenant, mails: MailSink) -> None:
    booking = book(tenant, notify_customer_by_email={"enabled": False})
    run_dispatcher("email")
    tenant.put(f"/bookings/{booking['id']}/cancel")
    run_dispatcher("email")

    assert states() == [
        ("email", "confirmed", "customer", "skipped"),
        ("email", "confirmed", "owner", "delivered"),
        ("email", "cancelled", "customer", "delivered"),
        ("email", "cancelled", "owner", "delivered"),
    ]


def test_draft_sends_no_mails(tenant: Tenant, mails: MailSink) -> None:
    book(tenant, action="create")

    assert states() == []


def test_address_of_the_owner(tenant: Tenant, mails: MailSink) -> None:
    account = Account.objects.create_user("boss@example.com")
    Membership.objects.create(account=account, app=tenant.app, role=Membership.OWNER)
    resource = tenant.make_resource()
    book(tenant, resource=resource)
    run_dispatcher("email")
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"contact_email": "desk@example.com"}})
    book(tenant, soon(hours=40), resource=resource)
    run_dispatcher("email")

    assert sorted(mail.to for mail in mails.mails) == [
        ["boss@example.com"],
        ["desk@example.com"],
        ["marty@example.com"],
        ["marty@example.com"],
    ]


def test_mails_without_address_or_in_test_mode_are_skipped(
    make_tenant: Any, mails: MailSink
) -> None:
    tenant = make_tenant(mode="test")
    account = Account.objects.create_user("Boss@Example.com")
    Membership.objects.create(account=account, app=tenant.app, role=Membership.EDITOR)
    resource = tenant.make_resource()
    start = soon()
    answer = tenant.post(
        "/bookings",
        {
            "resource_id": resource["id"],
            "what": "Meeting",
            "start": start.isoformat(),
            "end": (start + timedelta(hours=1)).isoformat(),
            "customers": [
                {"name": "Boss", "email": "boss@example.com"},
                {"name": "Marty", "email": "marty@example.com"},
            ],
        },
    )
    run_dispatcher("email")

    assert answer.status == 201
    assert [mail.to for mail in mails.mails] == [["boss@example.com"]]
    assert [
        (row.recipient, row.state, row.reason) for row in Delivery.objects.order_by("number")
    ] == [
        ("customer", "delivered", ""),
        ("customer", "skipped", "A test app sends e-mails only to its members."),
        ("owner", "skipped", "The recipient has no e-mail address."),
    ]


def test_mail_server_refusals(tenant: Tenant, mails: MailSink) -> None:
    """550 is final, 451 is tried again, others are not touched."""
    book(tenant)
    mails.answer = {"marty@example.com": "550 no such user", "ada@example.com": "451 later"}.get
    run_dispatcher("email")

    customer, owner = Delivery.objects.order_by("number")
    assert (customer.state, customer.tries, customer.reason) == (
        "failed",
        1,
        "The server refused the address (550).",
    )
    assert (owner.state, owner.tries) == ("scheduled", 1)
    assert timedelta(seconds=50) < owner.next_at - timezone.now() <= timedelta(minutes=1)

    make_due()
    run_dispatcher("email")
    mails.answer = lambda to: None
    make_due()
    run_dispatcher("email")

    owner.refresh_from_db()
    assert (owner.state, owner.tries) == ("delivered", 3)
    assert [mail.to for mail in mails.mails] == [["ada@example.com"]]
    assert list(owner.attempts.values_list("response_code", "error")) == [
        *[(451, "The server accepts no e-mail for the address at the moment (451).")] * 2,
        (None, ""),
    ]


def test_unreachable_mail_server(tenant: Tenant, mails: MailSink) -> None:
    mails.stop()
    book(tenant)
    run_dispatcher("email")

    assert states() == [
        ("email", "confirmed", "customer", "scheduled"),
        ("email", "confirmed", "owner", "scheduled"),
    ]
    assert set(Attempt.objects.values_list("error", flat=True)) == {
        "The mail server could not be reached (ConnectionRefusedError)."
    }


# --- Reminders ------------------------------------------------------------------------------------
def test_reminders_are_planned_when_the_booking_is_live(tenant: Tenant, mails: MailSink) -> None:
    start = soon()
    notifications = [
        reminder(),
        reminder(when="after", mins=10, recipient="owner"),
        reminder(mins=60 * 24 * 30),
        reminder(mins=0),
    ]
    booking = book(tenant, start, graph="confirm_decline", event_notifications=notifications)
    before = list(Delivery.objects.filter(kind="reminder"))
    tenant.put(f"/bookings/{booking['id']}/confirm")

    rows = Delivery.objects.filter(kind="reminder").order_by("number")
    assert before == []
    assert [(row.recipient, row.due_at, row.state, row.reason) for row in rows] == [
        ("customer", start - timedelta(hours=1), "scheduled", ""),
        ("owner", start + timedelta(minutes=10), "scheduled", ""),
        ("customer", start - timedelta(days=30), "skipped", "The planned time was already past."),
        ("customer", start, "scheduled", ""),
    ]
    assert [row.expires_at for row in rows if row.state == "scheduled"] == [
        start,
        start + timedelta(minutes=10, hours=72),
        start + REMINDER_GRACE,
    ]


def test_moved_reminder_is_sent_once(tenant: Tenant, mails: MailSink) -> None:
    start, later = soon(), soon(hours=60)
    booking = book(tenant, start, event_notifications=[reminder()])
    answer = tenant.post(
        f"/bookings/{booking['id']}/reschedule",
        {"start": later.isoformat(), "end": (later + timedelta(hours=1)).isoformat()},
    )
    make_due(kind="reminder")
    run_dispatcher("email")

    rows = Delivery.objects.filter(kind="reminder").order_by("change")
    assert answer.status == 200
    assert [(row.due_at, row.state, row.reason) for row in rows] == [
        (start - timedelta(hours=1), "cancelled", "The booking was moved."),
        (later - timedelta(hours=1), "delivered", ""),
    ]
    assert len([mail for mail in mails.mails if mail.subject.startswith("Reminder")]) == 1


@pytest.mark.parametrize("action", ["cancel", "cancel_by_customer"])
def test_cancelled_booking_sends_no_reminders(tenant: Tenant, mails: MailSink, action: str) -> None:
    booking = book(tenant, event_notifications=[reminder(), reminder(when="after")])
    tenant.put(f"/bookings/{booking['id']}/{action}")

    assert {(row.state, row.reason) for row in Delivery.objects.filter(kind="reminder")} == {
        ("cancelled", f"The booking is {Booking.objects.get().state}.")
    }


def test_claimed_reminder_is_checked_before_sending(tenant: Tenant, mails: MailSink) -> None:
    """Claimed before the cancellation, its worker lost, claimed anew after it."""
    booking = book(tenant, event_notifications=[reminder()])
    run_dispatcher("email")
    make_due(kind="reminder")
    claimed = claim_due("email", 10)
    tenant.put(f"/bookings/{booking['id']}/cancel")
    Delivery.objects.filter(id=claimed[0].id).update(next_at=timezone.now() - timedelta(seconds=1))
    run_dispatcher("email")

    row = Delivery.objects.get(kind="reminder")
    assert (row.state, row.reason, row.lapses) == ("cancelled", "The booking is cancelled.", 1)
    assert not [mail for mail in mails.mails if mail.subject.startswith("Reminder")]


def test_completed_booking_sends_later_reminders(tenant: Tenant, mails: MailSink) -> None:
    booking = book(tenant, event_notifications=[reminder(when="after", recipient="customer")])
    tenant.put(f"/bookings/{booking['id']}/complete")
    make_due(kind="reminder")
    run_dispatcher("email")

    assert states(kind="reminder") == [("email", "reminder", "customer", "delivered")]


def test_late_reminder_expires(tenant: Tenant, mails: MailSink) -> None:
    book(tenant, event_notifications=[reminder()])
    past = timezone.now() - timedelta(seconds=5)
    Delivery.objects.filter(kind="reminder").update(next_at=past, expires_at=past)
    run_dispatcher("email")

    row = Delivery.objects.get(kind="reminder")
    assert (row.state, row.reason, row.tries) == ("expired", "It could not be sent in time.", 0)


def later(**ahead: float) -> None:
    """The reminder as it stands after that time."""
    for row in Delivery.objects.filter(kind="reminder"):
        row.next_at = row.next_at and row.next_at - timedelta(**ahead)
        row.expires_at -= timedelta(**ahead)
        row.save()


def test_reminder_is_retried_until_the_start(tenant: Tenant, mails: MailSink) -> None:
    """The third pause, of a quarter of an hour, would end after it."""
    book(tenant, event_notifications=[reminder(mins=15)])
    Delivery.objects.filter(kind="reminder").update(
        next_at=timezone.now(), expires_at=timezone.now() + timedelta(minutes=15)
    )
    mails.answer = lambda to: "451 later"
    for minutes in (1, 5, 5):
        run_dispatcher("email")
        later(minutes=minutes)
    mails.answer = lambda to: None
    run_dispatcher("email")

    row = Delivery.objects.get(kind="reminder")
    assert (row.state, row.tries) == ("delivered", 4)


def test_retries_end_at_expiry(tenant: Tenant, mails: MailSink) -> None:
    book(tenant, event_notifications=[reminder()])
    Delivery.objects.filter(kind="reminder").update(
        next_at=timezone.now(), expires_at=timezone.now() + timedelta(seconds=59)
    )
    mails.answer = lambda to: "451 later"
    run_dispatcher("email")

    row = Delivery.objects.get(kind="reminder")
    assert (row.state, row.tries, row.reason) == (
        "expired",
        1,
        "The server accepts no e-mail for the address at the moment (451).",
    )


def test_redelivered_reminder_expires_at_the_start(tenant: Tenant, mails: MailSink) -> None:
    """By hand in an outage; where the start is over already, somebody wants it all the same."""
    now, start = timezone.now(), soon(hours=30)
    book(tenant, start, event_notifications=[reminder()])
    over = book(tenant, soon(hours=40), event_notifications=[reminder()])
    Delivery.objects.filter(kind="reminder", booking=over["id"]).update(
        expires_at=now - timedelta(days=1)
    )

    expiries = [
        redeliver(row, now=now).expires_at
        for row in Delivery.objects.filter(kind="reminder").order_by("change")
    ]

    assert expiries == [start, now + REMINDER_GRACE]


def test_purged_delivery_cannot_be_redelivered(tenant: Tenant, mails: MailSink) -> None:
    book(tenant)
    stale = Delivery.objects.first()
    Delivery.objects.all().delete()

    with pytest.raises(NotFound):
        redeliver(stale, now=timezone.now())


# --- Calls ----------------------------------------------------------------------------------------
def test_webhook_gets_each_change(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    booking = book(tenant)
    path = f"/bookings/{booking['id']}"
    confirmed = call_body(tenant, booking["id"], "booking.confirmed")
    run_dispatcher("webhook")
    later = soon(hours=60)
    tenant.post(
        f"{path}/reschedule",
        {"start": later.isoformat(), "end": (later + timedelta(hours=1)).isoformat()},
    )
    before = {"start": confirmed["event"]["start"], "end": confirmed["event"]["end"]}
    before |= {"resource_id": confirmed["resource"]["id"], "resources": None}
    moved = call_body(tenant, booking["id"], "booking.rescheduled", before)
    tenant.put(f"{path}/cancel")
    cancelled = call_body(tenant, booking["id"], "booking.cancelled")
    run_dispatcher("webhook")

    assert {call.event: (call.method, call.path, call.json) for call in hooks.calls} == {
        "booking.confirmed": ("POST", "/hook", confirmed),
        "booking.rescheduled": ("POST", "/hook", moved),
        "booking.cancelled": ("POST", "/hook", cancelled),
    }
    assert len(hooks.calls) == 3
    assert {call.id for call in hooks.calls} == {
        str(row.id) for row in Delivery.objects.filter(type="webhook")
    }


@pytest.mark.parametrize(
    ("wants", "told"),
    [
        ({}, ["tentative", "confirmed", "rescheduled", "cancelled"]),
        ({"graph": "confirm_decline"}, ["tentative", "confirmed", "rescheduled", "cancelled"]),
        ({"graph": "instant"}, []),
        ({"states": ["cancelled"]}, ["cancelled"]),
        ({"states": ["confirmed"]}, ["confirmed", "rescheduled"]),
        ({"states": ["rescheduled"]}, ["rescheduled"]),
        ({"active": False}, []),
    ],
)
def test_webhook_filters(
    tenant: Tenant, hooks: HookSink, wants: dict[str, Any], told: list[str]
) -> None:
    hook(tenant, hooks, **wants)
    booking = book(tenant, graph="confirm_decline")
    later = soon(hours=60)
    tenant.put(f"/bookings/{booking['id']}/confirm")
    tenant.post(
        f"/bookings/{booking['id']}/reschedule",
        {"start": later.isoformat(), "end": (later + timedelta(hours=1)).isoformat()},
    )
    tenant.put(f"/bookings/{booking['id']}/cancel")

    rows = Delivery.objects.filter(type="webhook").order_by("change")
    assert [row.kind for row in rows] == told


def test_event_notification_as_a_call(tenant: Tenant, hooks: HookSink) -> None:
    book(
        tenant,
        event_notifications=[
            reminder("webhook", url=hooks.url("/before"), method="PUT"),
            reminder("webhook", url=hooks.url("/get"), method="get", expected_response_code=202),
        ],
    )
    hooks.answers["/get"] = Answer(202)
    make_due(kind="reminder")
    run_dispatcher("webhook")

    calls = {call.path: call for call in hooks.calls}
    assert (calls["/before"].method, calls["/get"].method) == ("PUT", "GET")
    assert calls["/before"].json == tenant.get(f"/bookings/{Booking.objects.get().id}").data
    assert calls["/get"].body == b""
    assert {row.state for row in Delivery.objects.filter(type="webhook")} == {"delivered"}


@pytest.mark.parametrize(
    ("answer", "expected", "state", "reason"),
    [
        (Answer(200), None, "delivered", ""),
        (Answer(201), None, "delivered", ""),
        (Answer(204, body=b""), None, "delivered", ""),
        (Answer(200), 200, "delivered", ""),
        (Answer(202), 202, "delivered", ""),
        (Answer(200), 202, "scheduled", "The server returned 200."),
        (Answer(202), 200, "scheduled", "The server returned 202."),
        (Answer(400), None, "scheduled", "The server returned 400."),
        (Answer(404), None, "scheduled", "The server returned 404."),
        (Answer(500), None, "scheduled", "The server returned 500."),
        (Answer(503), None, "scheduled", "The server returned 503."),
        (Answer(410), None, "failed", "The server returned 410."),
    ],
)
def test_responses_of_a_webhook(
    tenant: Tenant,
    hooks: HookSink,
    answer: Answer,
    expected: int | None,
    state: str,
    reason: str,
) -> None:
    hook(tenant, hooks, expected_response_code=expected)
    hooks.answers["/hook"] = answer
    book(tenant)
    run_dispatcher("webhook")

    row = Delivery.objects.get(type="webhook")
    attempt = row.attempts.get()
    assert (row.state, row.reason, row.tries) == (state, reason, 1)
    assert (attempt.response_code, attempt.error) == (answer.status, reason)
    assert attempt.excerpt == answer.body.decode()


def test_gone_disables_the_webhook_and_mails_the_owner(
    tenant: Tenant, hooks: HookSink, mails: MailSink
) -> None:
    """Also where the app's other mails are switched off."""
    settings = {"contact_email": "desk@example.com", "disable_emails": True}
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": settings})
    account = Account.objects.create_user("boss@example.com")
    Membership.objects.create(account=account, app=tenant.app, role=Membership.OWNER)
    webhook = hook(tenant, hooks)
    hooks.answers["/hook"] = Answer(410)
    book(tenant)
    run_dispatcher("webhook")
    run_dispatcher("email")

    webhook.refresh_from_db()
    assert (webhook.active, webhook.disabled_reason) == (False, "The receiver returned 410 Gone.")
    assert [mail.to for mail in mails.mails] == [["boss@example.com"]]
    assert hooks.url() in mails.mails[0].text
    assert states(kind="webhook_disabled") == [("email", "webhook_disabled", "owner", "delivered")]


def test_days_of_failure_disable_the_webhook(tenant: Tenant, hooks: HookSink) -> None:
    webhook = hook(tenant, hooks)
    hooks.answers["/hook"] = Answer(500)
    book(tenant)
    Webhook.objects.update(failures=18, failing_since=timezone.now() - timedelta(days=6))
    run_dispatcher("webhook")
    webhook.refresh_from_db()
    still_active = webhook.active
    make_due(type="webhook")
    run_dispatcher("webhook")
    webhook.refresh_from_db()

    assert (still_active, webhook.active, webhook.failures) == (True, False, 20)
    assert webhook.disabled_reason == "No call has succeeded for five days."


@pytest.mark.parametrize(
    ("successes", "failures", "since"),
    [
        ([False, False], 5, "before"),
        ([True, False], 1, "now"),
        ([False, True], 0, None),
        ([False, True, False, False], 2, "now"),
    ],
)
def test_failure_count_restarts_after_a_success(
    tenant: Tenant, hooks: HookSink, successes: list[bool], failures: int, since: str | None
) -> None:
    webhook, now = hook(tenant, hooks), timezone.now()
    moments = {"before": now - timedelta(hours=1), "now": now, None: None}
    Webhook.objects.update(failures=3, failing_since=moments["before"])

    record_webhook_results({webhook.id: [(ok, None) for ok in successes]}, now=now)

    webhook.refresh_from_db()
    assert (webhook.failures, webhook.failing_since) == (failures, moments[since])


def test_retry_schedule(tenant: Tenant, hooks: HookSink) -> None:
    """Ten tries, each after its delay with some jitter; the body and the id stay the same."""
    hook(tenant, hooks)
    hooks.answers["/hook"] = Answer(404)
    booking = book(tenant)
    waits = []
    for _ in range(10):
        make_due(type="webhook")
        run_dispatcher("webhook")
        row = Delivery.objects.get(type="webhook")
        waits.append((row.next_at - timezone.now()).total_seconds() if row.next_at else None)
        tenant.put(f"/bookings/{booking['id']}", {"meta": {"changed": True}})

    delays = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
    assert waits[-1] is None
    assert [
        delay * 0.8 - 2 <= wait <= delay * 1.2 + 2
        for delay, wait in zip(delays, waits[:-1], strict=True)
    ] == [True] * 9
    assert (row.state, row.tries, row.attempts.count()) == ("failed", 10, 10)
    assert {call.body for call in hooks.calls} == {hooks.calls[0].body}
    assert {call.id for call in hooks.calls} == {str(row.id)}


def test_last_retry_is_before_expiry(tenant: Tenant, hooks: HookSink) -> None:
    """Jitter may have used up more time than the pauses have."""
    hook(tenant, hooks)
    hooks.answers["/hook"] = Answer(404)
    book(tenant)
    Delivery.objects.filter(type="webhook").update(
        tries=8, expires_at=timezone.now() + timedelta(hours=19)
    )
    run_dispatcher("webhook")

    row = Delivery.objects.get(type="webhook")
    wait = (row.next_at - timezone.now()) / timedelta(hours=1)
    assert (row.state, row.tries, round(wait, 1)) == ("scheduled", 9, 9.5)


@pytest.mark.parametrize(
    ("retry_after", "least", "most"), [("1", 4, 6), ("7", 6, 8), ("99999", 9, 11)]
)
def test_retry_after_is_kept_within_bounds(
    tenant: Tenant, hooks: HookSink, retry_after: str, least: int, most: int
) -> None:
    hook(tenant, hooks)
    hooks.answers["/hook"] = Answer(429, {"Retry-After": retry_after})
    book(tenant)
    run_dispatcher("webhook")

    row = Delivery.objects.get(type="webhook")
    assert least < (row.next_at - timezone.now()).total_seconds() + 1 < most + 1


def test_a_disabled_webhook_is_not_called(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    book(tenant)
    Webhook.objects.update(active=False)
    run_dispatcher("webhook")

    row = Delivery.objects.get(type="webhook")
    assert (row.state, row.reason) == ("skipped", "The webhook is disabled.")
    assert hooks.calls == []


def test_an_archived_app_sends_nothing(tenant: Tenant, hooks: HookSink, mails: MailSink) -> None:
    hook(tenant, hooks)
    book(tenant)
    tenant.app.archived_at = timezone.now()
    tenant.app.save()
    run_dispatcher("webhook")
    run_dispatcher("email")

    assert {(row.state, row.reason) for row in Delivery.objects.all()} == {
        ("skipped", "The app is archived.")
    }
    assert (hooks.calls, mails.mails) == ([], [])


# --- Leases, caps, breaker ------------------------------------------------------------------------
def test_two_claims_take_different_deliveries(tenant: Tenant, hooks: HookSink) -> None:
    for number in range(6):
        hook(tenant, hooks, f"/{number}")
    book(tenant)

    first, second = claim_due("webhook", 4), claim_due("webhook", 4)

    assert (len(first), len(second)) == (4, 2)
    assert len({row.lease_token for row in [*first, *second]}) == 2
    assert not {row.id for row in first} & {row.id for row in second}


def test_a_lapsed_lease_is_taken_over(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    book(tenant)
    claim_due("webhook", 1)
    row = Delivery.objects.get(type="webhook")
    taken_until = row.next_at
    Delivery.objects.filter(id=row.id).update(next_at=timezone.now() - timedelta(seconds=1))
    run_dispatcher("webhook")

    row.refresh_from_db()
    assert taken_until - timezone.now() > LEASES["webhook"] - timedelta(seconds=10)
    assert (row.state, row.tries, row.lapses) == ("delivered", 2, 1)
    assert list(row.attempts.values_list("error", flat=True)) == [
        "The worker was lost. The message may have been sent.",
        "",
    ]


LATE_RESULTS: dict[str, Callable[[Delivery], None]] = {
    "delivered": lambda row: record_results([(row, SendResult(ok=True))]),
    "failed": lambda row: record_results([(row, SendResult(ok=False, error="No answer."))]),
    "given back": lambda row: release_unsent([row]),
    "dropped": lambda row: finish_unsent(
        [(row, FinalState(Delivery.SKIPPED, "The app is archived."))]
    ),
}


@pytest.mark.parametrize("late", LATE_RESULTS)
def test_late_result_of_a_lost_lease_is_ignored(tenant: Tenant, hooks: HookSink, late: str) -> None:
    hook(tenant, hooks)
    book(tenant)
    (first,) = claim_due("webhook", 1)
    row = Delivery.objects.filter(id=first.id)
    row.update(next_at=timezone.now() - timedelta(seconds=1))
    (second,) = claim_due("webhook", 1)
    columns = ("state", "reason", "next_at", "finished_at", "lease_token", "tries")
    before = row.values(*columns).get()

    LATE_RESULTS[late](first)

    assert (second.id, before["lease_token"]) == (first.id, second.lease_token)
    assert row.values(*columns).get() == before


def test_delivery_that_kills_its_worker_fails(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    book(tenant)
    for _ in range(6):
        claim_due("webhook", 1)
        Delivery.objects.filter(type="webhook", state="sending").update(
            next_at=timezone.now() - timedelta(seconds=1)
        )

    row = Delivery.objects.get(type="webhook")
    assert (row.state, row.reason, row.lapses) == (
        "failed",
        "The worker was lost in every attempt.",
        5,
    )
    assert (row.attempts.count(), hooks.calls) == (5, [])


def test_caps_of_endpoint_and_app(tenant: Tenant, hooks: HookSink, settings: Any) -> None:
    settings.DELIVERY_ENDPOINT_CAP = 2
    settings.DELIVERY_APP_CAP = 3
    for number in range(3):
        hook(tenant, hooks, f"/{number}")
    for port in (9001, 9002):
        create_webhook(app=tenant.app, given={"url": f"http://127.0.0.1:{port}/"})
    book(tenant)

    claims = [[row.endpoint for row in claim_due("webhook", 10) or []] for _ in range(3)]

    assert claims == [
        [endpoint_of(hooks.url())] * 2 + ["http://127.0.0.1:9001"],
        [],
        [],
    ]


def test_breaker_opens_and_probes(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    hooks.answers["/hook"] = Answer(500)
    book(tenant)
    for _ in range(10):
        make_due(type="webhook")
        run_dispatcher("webhook")
    endpoint = Endpoint.objects.get()
    pause = endpoint.open_until - timezone.now()
    book(tenant, soon(hours=80))
    run_dispatcher("webhook")
    while_open = len(hooks.calls)
    Endpoint.objects.update(open_until=timezone.now())
    LaneCheck.objects.update(next_at=timezone.now())
    hooks.answers["/hook"] = Answer(200)
    run_dispatcher("webhook")

    assert (endpoint.address, endpoint.failures) == (endpoint_of(hooks.url()), 10)
    assert timedelta(seconds=50) < pause <= timedelta(seconds=60)
    assert (while_open, len(hooks.calls)) == (10, 11)
    assert Endpoint.objects.count() == 0
    assert states(type="webhook")[-1] == ("webhook", "confirmed", "", "delivered")


@pytest.mark.parametrize(
    ("failures", "open_for", "taken"),
    [
        pytest.param(1, None, 2, id="slow"),
        pytest.param(10, timedelta(minutes=1), 0, id="its breaker is open"),
        pytest.param(10, timedelta(minutes=-1), 1, id="to be probed"),
    ],
)
def test_failing_endpoint_gets_few_concurrent_calls(
    tenant: Tenant, hooks: HookSink, failures: int, open_for: timedelta | None, taken: int
) -> None:
    Endpoint.objects.create(
        address=endpoint_of(hooks.url()),
        failures=failures,
        is_slow=True,
        open_until=open_for and timezone.now() + open_for,
    )
    for number in range(5):
        hook(tenant, hooks, f"/{number}")
    book(tenant)

    assert [len(claim_due("webhook", 10) or []) for _ in range(2)] == [taken, 0]


def test_stopping_dispatcher_releases_unsent_deliveries(
    tenant: Tenant, hooks: HookSink, settings: Any
) -> None:
    settings.DELIVERY_THREADS = 1
    settings.DELIVERY_ENDPOINT_CAP = 4
    for number in range(4):
        hook(tenant, hooks, f"/{number}")
        hooks.answers[f"/{number}"] = Answer(delay=0.2)
    book(tenant)
    run_dispatcher("webhook", stopping=lambda: len(hooks.calls) >= 1)

    counts = sorted((row.state, row.tries) for row in Delivery.objects.filter(type="webhook"))
    assert len(hooks.calls) == 1
    assert counts == [("delivered", 1)] + [("scheduled", 0)] * 3


COPY_CHECK = 'SELECT "bookings_booking"."id" AS "id", "bookings_booking"."updated_at"'


def test_query_count_of_a_batch_is_constant(tenant: Tenant, mails: MailSink) -> None:
    resource = tenant.make_resource(email="ada@example.com")
    counts = []
    for bookings in (1, 4):
        for number in range(bookings):
            book(tenant, soon(hours=30 + 20 * bookings + 2 * number), resource=resource)
        with Queries(connection) as captured:
            run_dispatcher("email")
        # Not the check of a copy, one for each transaction with results.
        selects = [query["sql"] for query in captured if query["sql"].startswith("SELECT")]
        selects = [sql for sql in selects if not sql.startswith(COPY_CHECK)]
        counts.append(len([sql for sql in selects if "bookings_" in sql]))

    assert len(mails.mails) == 10
    assert counts[0] == counts[1]


def test_unreadable_secret_does_not_delay_others(tenant: Tenant, hooks: HookSink) -> None:
    """It is tried again: the operator may have forgotten a key."""
    hook(tenant, hooks, "/bad")
    hook(tenant, hooks, "/good")
    book(tenant)
    Webhook.objects.filter(url__endswith="/bad").update(secret="spoilt")
    run_dispatcher("webhook")

    assert [call.path for call in hooks.calls] == ["/good"]
    assert {(row.state, row.reason) for row in Delivery.objects.filter(type="webhook")} == {
        ("delivered", ""),
        ("scheduled", "The webhook's secret can't be read."),
    }


DEADLINES = {
    "email": settings.EMAIL_DEADLINE,
    "webhook": CALL_DEADLINE,
    "calendar": TRY_DEADLINE,
}


@pytest.mark.parametrize("kind", Delivery.TYPES)
def test_dispatcher_time_limits_cover_a_send(kind: str) -> None:
    """Claimed at the very end, begun as late as it may be, as slow as a try may be."""
    lease = LEASES[kind].total_seconds()
    latest_end = dispatcher.START_WITHIN + DEADLINES[kind]

    assert latest_end < lease
    assert tasks.dispatch_deliveries.soft_time_limit > dispatcher.MAX_SECONDS + latest_end + lease
    assert tasks.dispatch_deliveries.time_limit > tasks.dispatch_deliveries.soft_time_limit


def test_message_ids_are_those_of_the_deliveries(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    book(tenant)
    run_dispatcher("webhook")

    delivery = Delivery.objects.annotate(call_body=CALL_BODY).get(type="webhook")
    assert uuid.UUID(hooks.calls[0].id) == delivery.id
    assert json.loads(delivery.call_body) == hooks.calls[0].json
    assert datetime.fromtimestamp(int(hooks.calls[0].headers["webhook-timestamp"]), UTC) > (
        timezone.now() - timedelta(minutes=1)
    )


def sequence(mail: Mail) -> tuple[str, int, str]:
    """Method, SEQUENCE and LOCATION of the calendar entry that a mail carries."""
    part = next(one for one in mail.message.walk() if one.get_content_type() == "text/calendar")
    event = icalendar.Calendar.from_ical(part.get_payload(decode=True)).walk("VEVENT")[0]
    return part.get_param("method"), int(event["SEQUENCE"]), str(event.get("LOCATION", ""))


def test_update_sends_one_mail_with_a_higher_sequence(tenant: Tenant, mails: MailSink) -> None:
    booking = book(tenant, event_notifications=[reminder(mins=60)])
    run_dispatcher("email")
    before = list(mails.mails)
    mails.mails.clear()

    body = {"where": "Room 2", "customer": {"email": "new@example.com"}, "description": "Words"}
    tenant.put(f"/bookings/{booking['id']}", body)
    run_dispatcher("email")
    after = list(mails.mails)
    mails.mails.clear()
    make_due(kind="reminder")
    run_dispatcher("email")

    assert [sequence(mail) for mail in before] == [("REQUEST", 0, "")] * 2
    assert sorted((mail.to, mail.subject.partition(":")[0]) for mail in after) == [
        (["ada@example.com"], "Updated"),
        (["new@example.com"], "Updated"),
    ]
    assert [sequence(mail) for mail in after] == [("REQUEST", 1, "Room 2")] * 2
    assert [mail.to for mail in mails.mails] == [["new@example.com"]]
    assert "Room 2" in mails.mails[0].text
    assert states(kind="reminder") == [("email", "reminder", "customer", "delivered")]
