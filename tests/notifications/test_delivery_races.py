"""Bookings that change while their reminders are in a worker's hands, servers that hang, outages,
clocks that jump (R16, R18, R26, R27)."""

import socketserver
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from common.db.ids import new_tenant_id
from common.db.sql import database_now
from notifications import mails_and_calls
from notifications.models import Attempt, Delivery
from notifications.outbox import dispatcher, lanes, senders
from notifications.outbox.circuit_breaker import endpoint_of
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.lanes import FULL_PAUSE, next_check
from notifications.outbox.leases import claim_due
from notifications.webhooks import call
from tests.notifications.test_dispatcher import book, hook, make_due, reminder, soon
from tests.sinks import Answer, HookSink, Mail, MailSink, hook_sink
from tests.world import Tenant

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.both_databases,
    pytest.mark.usefixtures("expanded_calls"),
]
# In SQLite's memory, which the tests share between threads, one who meets a writer is refused
# instead of queued.
in_threads = pytest.mark.postgresql


@pytest.fixture
def rounds(pytestconfig: pytest.Config) -> int:
    return 500 if pytestconfig.getoption("deep") else 12


def in_thread(work: Any) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


# --- R27: moved while it is claimed ---------------------------------------------------------------
@pytest.fixture
def slow_look(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The worker pauses between its claim and its second look, until the event is set."""
    go_on = threading.Event()
    prepare = senders.prepare_batch

    def wait_and_prepare(rows: Any, **options: Any) -> Any:
        if any(row.kind == Delivery.REMINDER for row in rows):
            go_on.wait(5)
        return prepare(rows, **options)

    monkeypatch.setattr(dispatcher, "prepare_batch", wait_and_prepare)
    return go_on


def move_while_claimed(tenant: Tenant, go_on: threading.Event, booking: Any, start: Any) -> float:
    """Its reminder is claimed, the booking is moved, the worker goes on; when the move was done."""
    go_on.clear()
    make_due(kind="reminder", booking=booking["id"])
    worker = in_thread(lambda: run_dispatcher("email"))
    while not Delivery.objects.filter(kind="reminder", state="sending").exists():
        time.sleep(0.002)
    answer = tenant.post(
        f"/bookings/{booking['id']}/reschedule",
        {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()},
    )
    moved_at = time.time()
    go_on.set()
    worker.join()
    assert answer.status == 200, answer.json
    return moved_at


def reminders_of(mails: MailSink, booking: Any) -> list[Mail]:
    rows = Delivery.objects.filter(kind="reminder", booking=booking["id"])
    ids = {f"<{row.id}@localhost>" for row in rows}
    return [mail for mail in mails.mails if mail.id in ids]


@in_threads
def test_reminder_of_a_booking_moved_while_claimed(
    tenant: Tenant, mails: MailSink, slow_look: threading.Event, rounds: int
) -> None:
    """Nothing is sent for the old time, and one mail for the new."""
    seen = []
    for number in range(rounds):
        old, new = soon(hours=30 + 4 * number), soon(hours=32 + 4 * number)
        booking = book(tenant, old, event_notifications=[reminder()])
        move_while_claimed(tenant, slow_look, booking, new)
        early = len(reminders_of(mails, booking))
        make_due(kind="reminder", booking=booking["id"])
        run_dispatcher("email")
        rows = Delivery.objects.filter(kind="reminder", booking=booking["id"]).order_by("change")
        seen.append((early, len(reminders_of(mails, booking)), [row.state for row in rows]))

    assert seen == [(0, 1, ["cancelled", "delivered"])] * rounds


@in_threads
def test_control_without_recheck_old_time_is_mailed(
    tenant: Tenant,
    mails: MailSink,
    slow_look: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mails_and_calls, "check_reminder_is_current", lambda row, booking: None)
    booking = book(tenant, soon(hours=30), event_notifications=[reminder()])
    moved_at = move_while_claimed(tenant, slow_look, booking, soon(hours=40))

    assert [mail.at > moved_at for mail in reminders_of(mails, booking)] == [True]


@in_threads
@pytest.mark.parametrize("action", ["cancel", "cancel_by_customer"])
def test_reminder_of_a_booking_cancelled_while_claimed(
    tenant: Tenant, mails: MailSink, slow_look: threading.Event, action: str
) -> None:
    booking = book(tenant, event_notifications=[reminder()])
    make_due(kind="reminder")
    worker = in_thread(lambda: run_dispatcher("email"))
    while not Delivery.objects.filter(kind="reminder", state="sending").exists():
        time.sleep(0.002)
    tenant.put(f"/bookings/{booking['id']}/{action}")
    slow_look.set()
    worker.join()

    assert [row.state for row in Delivery.objects.filter(kind="reminder")] == ["cancelled"]
    assert reminders_of(mails, booking) == []


@in_threads
def test_moves_and_dispatchers_at_random_moments(
    tenant: Tenant, mails: MailSink, rounds: int
) -> None:
    """Whoever comes first: one reminder for the new time, none for the old after the move."""
    for number in range(rounds):
        old, new = soon(hours=30 + 4 * number), soon(hours=32 + 4 * number)
        booking = book(tenant, old, event_notifications=[reminder()])
        make_due(kind="reminder")
        workers = [in_thread(lambda: run_dispatcher("email")) for _ in range(2)]
        time.sleep(0.003 * (number % 12))
        answer = tenant.post(
            f"/bookings/{booking['id']}/reschedule",
            {"start": new.isoformat(), "end": (new + timedelta(hours=1)).isoformat()},
        )
        moved_at = time.time()
        assert answer.status == 200, answer.json
        for worker in workers:
            worker.join()
        make_due(kind="reminder")
        run_dispatcher("email")
        mine = reminders_of(mails, booking)
        old_ones = [mail for mail in mine if f"{old:%H:%M}" in mail.subject]
        new_ones = [mail for mail in mine if f"{new:%H:%M}" in mail.subject]

        # What was handed over before the move could not be called back.
        assert len(old_ones) <= 1
        assert all(mail.at < moved_at + 1 for mail in old_ones)
        assert len(new_ones) == 1


# --- R18: a server that hangs ---------------------------------------------------------------------
@in_threads
@pytest.mark.parametrize(
    ("cap", "arrived"), [(4, 20), pytest.param(8, 0, id="control: without a cap")]
)
def test_hanging_server_does_not_delay_others(
    tenant: Tenant,
    hooks: HookSink,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    cap: int,
    arrived: int,
) -> None:
    """Rows to it stand ahead of all others, and a dispatcher has eight threads."""
    settings.DELIVERY_THREADS, settings.DELIVERY_ENDPOINT_CAP = 8, cap
    settings.DELIVERY_APP_CAP = 1000
    monkeypatch.setattr(call, "CALL_DEADLINE", 100.0)
    monkeypatch.setattr(dispatcher, "START_WITHIN", 100.0)
    released = threading.Event()
    with hook_sink() as hanging:
        hanging.answers["/hang"] = Answer(until=released)
        bad = hook(tenant, hanging, "/hang")
        good = hook(tenant, hooks, "/good")
        book(tenant)
        template = Delivery.objects.filter(type="webhook").first()
        Delivery.objects.all().delete()
        now = timezone.now()
        for webhook, count, age in ((bad, 50, 60), (good, 20, 30)):
            for number in range(count):
                template.pk = None
                template.id = new_tenant_id(template.app_id)
                template.change, template.number, template.webhook = None, number, webhook
                template.endpoint = endpoint_of(webhook.url)
                template.next_at = template.due_at = now - timedelta(seconds=age)
                template.save(force_insert=True)
        worker = in_thread(lambda: run_dispatcher("webhook"))
        try:
            ends = time.monotonic() + 60
            while (len(hanging.calls), len(hooks.calls)) != (cap, arrived):
                assert time.monotonic() < ends, (len(hanging.calls), len(hooks.calls))
                time.sleep(0.01)
        finally:
            released.set()
            worker.join()


# --- R16: an outage -------------------------------------------------------------------------------
def test_mail_server_outage_sends_no_late_reminders(tenant: Tenant, mails: MailSink) -> None:
    """Ten minutes without it: half of the meetings begin meanwhile."""
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"disable_emails": False}})
    for number in range(6):
        book(tenant, soon(hours=30 + 2 * number), event_notifications=[reminder()])
    run_dispatcher("email")
    mails.mails.clear()
    rows = list(Delivery.objects.filter(kind="reminder").order_by("due_at"))
    missed = {row.id for row in rows[:3]}
    Delivery.objects.filter(id__in=missed).update(expires_at=timezone.now() + timedelta(minutes=5))
    mails.answer = lambda to: "421 not now"
    make_due(kind="reminder")
    run_dispatcher("email")
    during = Counter(row.state for row in Delivery.objects.filter(kind="reminder"))

    for row in Delivery.objects.filter(kind="reminder"):  # ten minutes later
        row.next_at -= timedelta(minutes=10)
        row.expires_at -= timedelta(minutes=10)
        row.save()
    mails.answer = lambda to: None
    run_dispatcher("email")

    after = {row.id: row.state for row in Delivery.objects.filter(kind="reminder")}
    assert during == {"scheduled": 6}
    assert after == {row.id: "expired" if row.id in missed else "delivered" for row in rows}
    assert len(mails.mails) == 3


class DrippingSmtp(socketserver.StreamRequestHandler):
    """Greets, takes everything, and answers the mail itself one byte at a time, for ever."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            if line.upper().startswith(b"DATA"):
                while not self.server.is_over.wait(0.1):
                    self.wfile.write(b"5")
                return
            self.wfile.write(b"250 ok\r\n")


def test_slow_mail_server_is_cut_off(tenant: Tenant, mails: MailSink, settings: Any) -> None:
    settings.EMAIL_DEADLINE = 1.0
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), DrippingSmtp) as server:
        server.daemon_threads, server.is_over = True, threading.Event()
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        settings.EMAIL_PORT = server.server_address[1]
        book(tenant)
        run_dispatcher("email")
        server.is_over.set()
        server.shutdown()
        serving.join()

    assert {row.state for row in Delivery.objects.all()} == {"scheduled"}
    assert set(Attempt.objects.values_list("error", flat=True)) == {
        "The mail server took too long."
    }
    assert all(attempt.seconds < 5 for attempt in Attempt.objects.all())


# --- R26: clocks ----------------------------------------------------------------------------------
@pytest.mark.postgresql
@pytest.mark.parametrize("jump", [3600, -3600, 10 * 86_400])
def test_worker_with_a_wrong_clock(
    tenant: Tenant, hooks: HookSink, time_machine: Any, jump: int
) -> None:
    """What is due is said by the database: nothing early, nothing late, nothing twice."""
    hook(tenant, hooks)
    book(tenant, event_notifications=[reminder("webhook", url=hooks.url("/reminder"))])
    Delivery.objects.filter(kind="reminder").update(next_at=timezone.now() + timedelta(minutes=30))
    time_machine.move_to(timezone.now() + timedelta(seconds=jump))
    run_dispatcher("webhook")
    time_machine.move_to(timezone.now() - timedelta(seconds=2 * jump))
    run_dispatcher("webhook")

    assert [call.path for call in hooks.calls] == ["/hook"]
    assert Attempt.objects.count() == 1
    assert Delivery.objects.get(kind="reminder").state == "scheduled"


# --- Two claims at once ---------------------------------------------------------------------------
@in_threads
@pytest.mark.parametrize(("in_turn", "taken"), [(True, (2, 0)), (False, (2, 2))])
def test_concurrent_claims_respect_the_endpoint_cap(
    tenant: Tenant,
    hooks: HookSink,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    in_turn: bool,
    taken: tuple[int, int],
) -> None:
    """The control: out of turn the second does not see what the first has taken."""
    settings.DELIVERY_ENDPOINT_CAP = 2
    for number in range(4):
        hook(tenant, hooks, f"/{number}")
    book(tenant)
    if not in_turn:
        read = lanes._due_checks
        monkeypatch.setattr(lanes, "_try_lock_lanes", lambda kind, due, limit: due)
        monkeypatch.setattr(  # not the check that the first one has locked
            lanes, "_due_checks", lambda *due: {lane: pks[::-1] for lane, pks in read(*due).items()}
        )
    found: list[Delivery] = []
    with transaction.atomic():
        first = claim_due("webhook", 2)
        in_thread(lambda: book(tenant, soon(hours=80))).join()
        in_thread(lambda: found.extend(claim_due("webhook", 9) or [])).join()

    assert (len(first), len(found)) == taken
    assert next_check("webhook") <= database_now() + FULL_PAUSE
