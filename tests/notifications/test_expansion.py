"""A change of a booking writes one row for all webhooks; a worker expands it to deliveries."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from bookings.models import Booking, StateChange
from bookings.privacy import erase_person
from bookings.serializers.responses import ALL_INCLUDES, with_includes
from notifications.models import CALL_BODY, ChangeCalls, Delivery
from notifications.outbox import dispatcher, expansion, poller
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.expansion import expand_changes
from notifications.outbox.overdue import oldest_overdue
from notifications.planning import CALL_EXPIRES_AFTER
from notifications.webhooks.bodies import WHOLE_BOOKING, Change, render_call
from notifications.webhooks.services import change_webhook, delete_webhook, disable_webhook
from ops.doctor import check_deliveries
from ops.metrics import read_gauges
from ops.stored_metrics import refresh_stored_metrics
from tests.bookings.group_world import make_group, take_seat
from tests.delivery_faults import delivery_faults
from tests.notifications.test_delivery_races import in_thread
from tests.notifications.test_dispatcher import book, hook, reminder, soon
from tests.notifications.test_retention import age, purge
from tests.sinks import HookSink
from tests.world import Tenant, call_body

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
in_threads = pytest.mark.postgresql


def calls(**only: Any) -> list[tuple[str, str, str, str]]:
    """(webhook's path, kind, state, reason) of each call of a change, in the order of the log."""
    rows = Delivery.objects.filter(type="webhook", **only).select_related("webhook").order_by("id")
    return [
        (f"/{row.webhook.url.rpartition('/')[2]}", row.kind, row.state, row.reason)
        for row in rows
        if row.webhook
    ]


def whole(tenant: Tenant, booking: Any) -> Any:
    """The booking with all that a call contains."""
    return tenant.get(f"/bookings/{booking['id']}?include={','.join(ALL_INCLUDES)}").data


def cancel(tenant: Tenant, booking: Any) -> None:
    assert tenant.put(f"/bookings/{booking['id']}/cancel").status == 200


# --- What is written ------------------------------------------------------------------------------
def test_change_writes_one_row_expanded_per_webhook(tenant: Tenant, hooks: HookSink) -> None:
    webhooks = [hook(tenant, hooks, f"/{number}") for number in range(3)]

    booking = book(tenant)

    record = call_body(tenant, booking["id"], "booking.confirmed")
    change, row = StateChange.objects.get(), ChangeCalls.objects.get()
    assert calls() == []
    assert tenant.get("/deliveries?type=webhook").data == []
    assert (row.change_id, row.webhooks) == (change.id, [str(one.id) for one in webhooks])
    assert json.loads(row.body) == record
    due_at = row.waiting_since
    assert delivery_faults() == []

    assert expand_changes()
    assert not expand_changes()

    row = ChangeCalls.objects.get()
    assert (row.waiting_since, row.webhooks) == (None, [])
    mail = Delivery.objects.filter(type="email").earliest("id")
    found = Delivery.objects.filter(type="webhook").order_by("id").annotate(call_body=CALL_BODY)
    assert [
        {
            **{"webhook": one.webhook, "change": one.change, "number": one.number},
            **{"app": one.app_id, "booking": str(one.booking_id), "kind": one.kind},
            **{"version": one.version, "state": one.state, "endpoint": one.endpoint},
            **{"due_at": one.due_at, "next_at": one.next_at, "expires_at": one.expires_at},
            **{"created_at": one.created_at, "request_id": one.request_id},
            **{"body": one.body, "call_body": json.loads(one.call_body)},
        }
        for one in found
    ] == [
        {
            **{"webhook": webhook, "change": change, "number": number},
            **{"app": tenant.app.id, "booking": booking["id"], "kind": "confirmed"},
            **{"version": 0, "state": "scheduled", "endpoint": f"http://127.0.0.1:{hooks.port}"},
            **{"due_at": due_at, "next_at": due_at},
            **{"expires_at": change.created_at + CALL_EXPIRES_AFTER},
            **{"created_at": change.created_at, "request_id": mail.request_id},
            **{"body": "", "call_body": record},
        }
        for number, webhook in enumerate(webhooks, start=2)
    ]
    assert delivery_faults() == []


def test_change_without_a_webhook_writes_no_row(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks, states=["cancelled"])

    book(tenant)

    assert not ChangeCalls.objects.exists()
    assert not expand_changes()


def test_call_names_the_service_and_its_version(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    book(tenant)

    run_dispatcher("webhook")

    (call,) = hooks.calls
    assert call.headers["user-agent"] == f"scheduling-webhooks/{settings.VERSION}"


def test_call_carries_the_booking_as_it_was_at_the_change(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    booking = book(tenant)
    created = call_body(tenant, booking["id"], "booking.confirmed")
    cancel(tenant, booking)
    cancelled = call_body(tenant, booking["id"], "booking.cancelled")

    run_dispatcher("webhook")

    assert {(call.id, call.headers["service-event"]): call.json for call in hooks.calls} == {
        (str(row.id), f"booking.{row.kind}"): record
        for row, record in zip(
            Delivery.objects.filter(type="webhook").order_by("id"),
            (created, cancelled),
            strict=True,
        )
    }


def test_rolled_back_change_causes_no_calls(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    with transaction.atomic():
        book(tenant)
        transaction.set_rollback(True)

    assert not ChangeCalls.objects.exists()


# --- Webhooks that change before the expansion ----------------------------------------------------
def test_later_webhook_is_not_called(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks, "/early")
    book(tenant)
    hook(tenant, hooks, "/late")

    run_dispatcher("webhook")

    assert calls() == [("/early", "confirmed", "delivered", "")]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda webhook, now: delete_webhook(webhook, now=now), "The webhook was deleted."),
        (
            lambda webhook, now: disable_webhook(webhook, "Gone.", now=now),
            "The webhook is disabled.",
        ),
    ],
)
def test_webhook_that_ended_before_the_expansion_is_not_called(
    tenant: Tenant, hooks: HookSink, end: Callable[..., None], reason: str
) -> None:
    webhook = hook(tenant, hooks)
    book(tenant)

    end(webhook, timezone.now())
    run_dispatcher("webhook")

    assert calls() == [("/hook", "confirmed", "skipped", reason)]
    assert hooks.calls == []


def test_webhook_is_called_at_its_new_url(tenant: Tenant, hooks: HookSink) -> None:
    webhook = hook(tenant, hooks)
    book(tenant)

    change_webhook(webhook, {"url": hooks.url("/new"), "states": ["cancelled"]})
    run_dispatcher("webhook")

    assert calls() == [("/new", "confirmed", "delivered", "")]
    assert [call.path for call in hooks.calls] == ["/new"]


# --- Order, turns and limits ----------------------------------------------------------------------
def test_calls_to_a_webhook_are_in_the_order_of_the_changes(
    tenant: Tenant, hooks: HookSink
) -> None:
    for path in ("/a", "/b"):
        hook(tenant, hooks, path)
    first = book(tenant)
    second = book(tenant, soon(hours=40))
    cancel(tenant, first)

    expand_changes()

    found = Delivery.objects.filter(type="webhook").order_by("next_at", "id")
    of_each = {
        path: [
            (str(row.booking_id), row.kind)
            for row in found.filter(webhook__url=hooks.url(path)).order_by("next_at", "id")
        ]
        for path in ("/a", "/b")
    }
    in_order = [
        (first["id"], "confirmed"),
        (second["id"], "confirmed"),
        (first["id"], "cancelled"),
    ]
    assert of_each == {"/a": in_order, "/b": in_order}
    assert list(found) == list(found.order_by("id"))


@pytest.mark.parametrize(
    ("read", "limit"),
    [
        (1, {"MAX_CHANGES": 2}),
        (2, {"MAX_CHANGES": 2}),
        (1000, {"MAX_CHANGES": 2}),
        (1000, {"MAX_CALLS": 2}),
    ],
)
def test_apps_take_turns(
    make_tenant: Callable[..., Tenant],
    hooks: HookSink,
    monkeypatch: pytest.MonkeyPatch,
    read: int,
    limit: dict[str, int],
) -> None:
    for name, value in {"MAX_PENDING": read, **limit}.items():
        monkeypatch.setattr(expansion, name, value)
    busy, other = make_tenant(), make_tenant()
    for tenant, count in ((busy, 3), (other, 1)):
        hook(tenant, hooks)
        for number in range(count):
            book(tenant, soon(hours=30 + number))

    expand_changes()

    assert [
        Delivery.objects.filter(app=tenant.app, type="webhook").count() for tenant in (busy, other)
    ] == [1, 1]


def test_expansion_limit_counts_whole_changes(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "MAX_CALLS", 5)
    for number in range(2):
        hook(tenant, hooks, f"/{number}")
    for number in range(3):
        book(tenant, soon(hours=30 + number))
    counts = []

    while expand_changes():
        counts.append(len(calls()))

    assert counts == [4, 6]


def test_dispatcher_expands_in_several_steps(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "MAX_CALLS", 1)
    hook(tenant, hooks)
    for number in range(5):
        book(tenant, soon(hours=30 + number))

    run_dispatcher("webhook")

    assert calls() == [("/hook", "confirmed", "delivered", "")] * 5
    assert len(hooks.calls) == 5


# --- Workers that meet or die ---------------------------------------------------------------------
def expand_in_two_workers(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Both have chosen the same change before either expands it; return their errors."""
    chosen = threading.Barrier(2)
    choose = expansion._next_changes
    errors: list[Exception] = []

    def choose_together() -> Any:
        changes = choose()
        chosen.wait(10)
        return changes

    def expand() -> None:
        try:
            expand_changes()
        except IntegrityError as error:
            errors.append(error)

    monkeypatch.setattr(expansion, "_next_changes", choose_together)
    workers = [in_thread(expand) for _ in range(2)]
    for worker in workers:
        worker.join()
    return errors


@in_threads
def test_two_workers_expand_a_change_once(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(tenant, hooks)
    book(tenant)

    assert expand_in_two_workers(monkeypatch) == []
    assert calls() == [("/hook", "confirmed", "scheduled", "")]
    assert delivery_faults() == []


@in_threads
def test_control_without_the_lock_the_database_refuses_the_second(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(tenant, hooks)
    book(tenant)
    read = threading.Barrier(2)

    def read_unlocked(changes: Any, *, skip_locked: bool) -> list[ChangeCalls]:
        rows = list(changes.pending().select_related("change"))
        read.wait(10)
        return rows

    monkeypatch.setattr(expansion, "_lock", read_unlocked)

    assert len(expand_in_two_workers(monkeypatch)) == 1
    assert calls() == [("/hook", "confirmed", "scheduled", "")]


class Killed(BaseException):
    """The process of a worker ends."""


def raise_killed(*_: Any, **__: Any) -> Any:
    raise Killed


@pytest.mark.parametrize(
    ("module", "name"),
    [(expansion, "insert_rows"), (dispatcher, "claim_due"), (dispatcher, "prepare_batch")],
    ids=["while it expands", "between expansion and claim", "between claim and sending"],
)
def test_change_is_expanded_after_a_lost_worker(
    tenant: Tenant, hooks: HookSink, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    hook(tenant, hooks)
    book(tenant)
    with monkeypatch.context() as patched:
        patched.setattr(module, name, raise_killed)
        with pytest.raises(Killed):
            run_dispatcher("webhook")
    Delivery.objects.filter(state="sending").update(next_at=timezone.now())  # the lease has ended

    run_dispatcher("webhook")

    assert calls() == [("/hook", "confirmed", "delivered", "")]
    assert len(hooks.calls) == 1
    assert delivery_faults() == []


# --- Late changes ---------------------------------------------------------------------------------
def make_late(**ago: float) -> None:
    ChangeCalls.objects.pending().update(waiting_since=timezone.now() - timedelta(**ago))


def test_poller_expands_without_a_broker(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    book(tenant)
    make_late(seconds=10)

    poller.send_neglected_deliveries(["webhook"])

    assert calls() == [("/hook", "confirmed", "delivered", "")]


def test_late_change_is_reported_to_operators(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    book(tenant)
    make_late(minutes=20)
    now = timezone.now()
    refresh_stored_metrics()

    gauges = {
        sample.name: sample.value
        for gauge in read_gauges(now)
        for sample in gauge.samples
        if sample.labels == {"type": "webhook"}
    }

    row = ChangeCalls.objects.get()
    assert oldest_overdue("webhook", now) == row.waiting_since
    assert {name: round(value) for name, value in gauges.items() if "lag" not in name} == {
        "deliveries_open": 1,
        "deliveries_due": 1,
        "deliveries_ready": 1,
        "deliveries_oldest_due_seconds": 1200,
    }
    finding = check_deliveries("webhook")
    assert (finding.level, finding.seen) == ("FAIL", "the oldest is overdue by 20 min")


def test_change_that_waited_too_long_expires(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    book(tenant)
    expand_changes()
    Delivery.objects.filter(type="webhook").update(expires_at=timezone.now())

    run_dispatcher("webhook")

    assert calls() == [("/hook", "confirmed", "expired", "It could not be sent in time.")]


# --- Personal data and retention ------------------------------------------------------------------
def test_erasure_before_the_expansion_cancels_the_calls(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    book(tenant)

    erase_person(app=tenant.app, email="marty@example.com", now=timezone.now())
    run_dispatcher("webhook")

    assert calls() == [("/hook", "confirmed", "cancelled", "The customer's data was erased.")]
    assert list(ChangeCalls.objects.values_list("body", "waiting_since")) == [("", None)]
    assert hooks.calls == []
    assert delivery_faults() == []


def test_erasure_empties_the_common_body(tenant: Tenant, hooks: HookSink) -> None:
    for path in ("/a", "/b"):
        hook(tenant, hooks, path)
    book(tenant)
    other = book(tenant, soon(hours=40), customer={"name": "Ann", "email": "ann@example.com"})
    run_dispatcher("webhook")

    counts = erase_person(app=tenant.app, email="marty@example.com", now=timezone.now())

    bodies = ChangeCalls.objects.order_by("change").values_list("body", flat=True)
    assert [json.loads(body)["id"] if body else "" for body in bodies] == ["", other["id"]]
    assert counts["deliveries"] == 3  # two calls, and the e-mail to the customer


def test_redelivery_has_the_same_body_and_id(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    booking = book(tenant)
    run_dispatcher("webhook")
    cancel(tenant, booking)
    row = Delivery.objects.get(kind="confirmed", type="webhook")

    assert tenant.post(f"/deliveries/{row.id}/redeliver").status == 200
    run_dispatcher("webhook")

    sent = [(call.id, call.json) for call in hooks.calls if call.id == str(row.id)]
    payload = tenant.get(f"/deliveries/{row.id}").data["payload"]
    assert sent == [(str(row.id), payload)] * 2
    assert payload["state"] == "confirmed"


def test_retention_deletes_the_body_with_the_last_call(tenant: Tenant, hooks: HookSink) -> None:
    for path in ("/a", "/b"):
        hook(tenant, hooks, path)
    cancel(tenant, book(tenant))
    run_dispatcher("webhook")
    age(40, webhook__url=hooks.url("/a"))
    purge()
    kept = ChangeCalls.objects.count()

    age(40, webhook__url=hooks.url("/b"))
    purge()

    assert (kept, ChangeCalls.objects.count(), calls()) == (2, 0, [])


def test_pending_change_survives_the_purge_of_its_mails(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    booking = book(tenant)
    cancel(tenant, booking)
    Delivery.objects.update(
        state="skipped", next_at=None, finished_at=timezone.now() - timedelta(days=40)
    )

    purge(days=30)
    run_dispatcher("webhook")

    assert [kind for _, kind, *_ in calls()] == ["confirmed", "cancelled"]


# --- The body of a new booking is rendered without a query ----------------------------------------
NEW_BOOKINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "request": {"graph": "confirm_decline"},
    "draft": {"action": "create"},
    "details": {
        "description": "My back",
        "where": "Room 2",
        "participants": ["ann@example.com"],
        "meta": {"zulu": 1, "b": [1.0, 1e3, None], "alpha": {"y": "Ü", "x": True}},
        "customers": [
            {"name": "Marty", "email": "Marty@Example.com", "phone": "+1 555 0100", "shoe": 43.0},
            {"name": "Ann", "email": "ann@example.com", "timezone": "Europe/Berlin"},
        ],
        "event_notifications": [reminder(), reminder("webhook", url="https://example.com/door")],
    },
    "series": {"recurrence": "FREQ=WEEKLY;COUNT=3"},
    "fractions": {"start": "2077-03-01T10:00:00.250+01:00", "end": "2077-03-01T11:30:00+01:00"},
}


def bodies_and_records() -> tuple[list[Any], list[Any]]:
    """The body of each change, and what the ORM reads of its booking now."""
    rows = ChangeCalls.objects.order_by("change").select_related("change")
    found = with_includes(Booking.objects.all(), WHOLE_BOOKING).in_bulk()
    records = [
        json.loads(
            render_call(
                found[row.change.booking_id], Change.of(row.change, f"booking.{row.kind}"), "0-"
            )
        )
        for row in rows
    ]
    return [json.loads(row.body) for row in rows], records


@pytest.mark.parametrize("given", NEW_BOOKINGS.values(), ids=NEW_BOOKINGS)
def test_body_of_a_new_booking_is_its_record(
    tenant: Tenant, hooks: HookSink, given: dict[str, Any]
) -> None:
    hook(tenant, hooks)
    customer = {} if "customers" not in given else {"customer": None}
    resource = tenant.make_resource(email="ada@example.com", timezone="Europe/Berlin")
    span = {"start": soon().isoformat(), "end": soon(hours=31).isoformat()}
    body = {"what": "Meeting", "customer": {"name": "Marty", "email": "marty@example.com"}}
    body = {key: value for key, value in body.items() if key not in customer}

    answer = tenant.post("/bookings", {**body, "resource_id": resource["id"], **span, **given})

    assert answer.status == 201, answer.json
    bodies, records = bodies_and_records()
    assert bodies == records
    assert len(bodies) == (3 if "recurrence" in given else 1)


def test_body_of_a_new_booking_of_a_project_is_its_record(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    resources = [tenant.make_resource(name)["id"] for name in ("Ada", "Bob")]
    project = tenant.make_project(
        *resources,
        booking={"where": "Room {{ resource }}"},
        settings={"buffers": {"before": "5 minutes", "after": "15 minutes"}},
    )
    span = {"start": soon().isoformat(), "end": soon(hours=31).isoformat()}

    answer = tenant.book(project_id=project["id"], **span)

    assert answer.status == 201, answer.json
    bodies, records = bodies_and_records()
    assert bodies == records
    assert len(bodies) == 1


def test_bodies_of_a_group_and_its_seats_are_their_records(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    resource = tenant.make_resource()
    span = {"start": soon().isoformat(), "end": soon(hours=31).isoformat()}
    group = make_group(tenant, resource, **span)
    of_group = bodies_and_records()
    take_seat(tenant, group)
    bodies, records = bodies_and_records()

    assert of_group[0] == of_group[1]
    assert bodies[1:] == records[1:]
    assert [body["id"] for body in bodies[:1]] == [group["id"]]
    assert len(bodies) > 1
