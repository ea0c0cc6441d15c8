"""People's data in what leaves the house; an erasure beside workers; what goes by itself."""

import io
import threading
import time
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from bookings.models import Booking, Customer
from bookings.privacy import Redactor, erase_person, retention
from bookings.privacy import erase as erasing
from common.time.instants import format_stamp
from notifications import mails_and_calls, tasks
from notifications.mail import EmailCopy
from notifications.models import CALL_BODY, Attempt, Delivery
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.redeliver import redeliver
from ops.command_progress import Progress
from ops.management.commands import purge_people
from tests.bookings.booking_drafts import MARTY, whole
from tests.bookings.test_privacy import ANN, NOTHING, erase, export, rows_containing
from tests.delivery_faults import delivery_faults
from tests.notifications.test_delivery_races import in_thread, in_threads
from tests.notifications.test_dispatcher import book, first_resource, hook, make_due, reminder, soon
from tests.notifications.test_dispatcher import states as delivery_states
from tests.queries import Queries
from tests.sinks import Answer, HookSink, MailSink
from tests.world import Tenant

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.both_databases,
    pytest.mark.usefixtures("expanded_calls"),
]

ERASED = "The customer's data was erased."
OTHERS = {"unverified_bookings": 0, "suppressions": 0}


def ends() -> list[tuple[str, str, str, str, str]]:
    """(type, kind, recipient, state, reason) of every delivery, in the order of planning."""
    rows = Delivery.objects.order_by("change", "number", "id")
    return [(row.type, row.kind, row.recipient, row.state, row.reason) for row in rows]


# --- The export -----------------------------------------------------------------------------------
def test_deliveries_are_exported(tenant: Tenant, mails: MailSink, hooks: HookSink) -> None:
    """Those to the person and the owner, and calls: without what others gave of themselves."""
    hook(tenant, hooks)
    first_resource(tenant)
    times = {"start": soon().isoformat(), "end": (soon() + timedelta(hours=1)).isoformat()}
    answer = tenant.post(
        "/bookings",
        {
            "what": "Meeting",
            "resource_id": first_resource(tenant)["id"],
            "customers": [ANN, MARTY],
            **times,
        },
    )
    booking = answer.data
    for kind in ("email", "webhook"):
        run_dispatcher(kind)

    found = export(tenant)[1]["data"]["deliveries"]

    rows = Delivery.objects.exclude(customer__name=ANN["name"]).order_by("id")
    expected = [tenant.get(f"/deliveries/{row.id}").data | {"content": row.content} for row in rows]
    marty = whole(tenant, booking)["customers"][1]
    copies = [copy for row in rows if row.customer_id for copy in row.sent_emails.all()]
    [sent] = [EmailCopy.read(copy.content)._asdict() for copy in copies]
    without_ann = Redactor(ANN.values()).cut(sent)
    assert (sent == without_ann, ANN["email"] in sent["calendar"]) == (False, True)
    expected[0]["sent"] = [{"at": format_stamp(copies[0].sent_at), **without_ann}]
    expected[-1]["payload"]["customers"] = [marty]
    expected[-1]["payload"]["attributes"]["customer"] = marty
    expected[-1]["payload"]["customer_action_links"] = {"cancel_by_customer": "[link]"}
    assert found == expected
    assert [(one["type"], one["recipient"], len(one["attempts"])) for one in found] == [
        ("email", "customer", 1),
        ("email", "owner", 1),
        ("webhook", None, 1),
    ]
    assert ANN["email"] not in str(found)


# --- Erasure --------------------------------------------------------------------------------------
def test_erasure_empties_sent_deliveries(tenant: Tenant, mails: MailSink, hooks: HookSink) -> None:
    hooks.answers["/hook"] = Answer(500, body=b"Who is Marty?")
    hook(tenant, hooks)
    booking = book(tenant)
    tenant.put(f"/bookings/{booking['id']}/cancel", {"cancel": {"message": "I am ill"}})
    for kind in ("email", "email", "webhook"):
        run_dispatcher(kind)
    sent = len(mails.mails)

    counts = erase(tenant)

    assert counts == OTHERS | {"bookings": 1, "log_entries": 1, "deliveries": 6}
    assert ends() == [
        ("email", "confirmed", "customer", "delivered", ""),
        ("email", "confirmed", "owner", "delivered", ""),
        ("webhook", "confirmed", "", "cancelled", ERASED),
        ("email", "cancelled", "customer", "delivered", ""),
        ("email", "cancelled", "owner", "delivered", ""),
        ("webhook", "cancelled", "", "cancelled", ERASED),
    ]
    assert rows_containing("marty", "I am ill") == []
    assert list(Delivery.objects.annotate(stored=CALL_BODY).exclude(stored="")) == []
    assert delivery_faults() == []
    run_dispatcher("webhook")
    assert (len(mails.mails), len(hooks.calls), erase(tenant)) == (sent, 2, NOTHING)


def test_erasure_cancels_open_deliveries(tenant: Tenant, mails: MailSink, hooks: HookSink) -> None:
    """But for the owner's mails, and calls that are not written yet: they find nobody in it."""
    hook(tenant, hooks)
    call = reminder("webhook", url=hooks.url("/door"))
    booking = book(tenant, event_notifications=[reminder(), reminder(recipient="owner"), call])

    erase(tenant)

    assert ends() == [
        ("email", "confirmed", "customer", "cancelled", ERASED),
        ("email", "confirmed", "owner", "scheduled", ""),
        ("email", "reminder", "customer", "cancelled", ERASED),
        ("email", "reminder", "owner", "scheduled", ""),
        ("webhook", "reminder", "", "scheduled", ""),
        ("webhook", "confirmed", "", "cancelled", ERASED),
    ]
    assert delivery_faults() == []
    make_due()
    for kind in ("email", "webhook"):
        run_dispatcher(kind)
    assert [mail.to for mail in mails.mails] == [["ada@example.com"]] * 2
    assert all("mailto:\r\n" not in mail.text for mail in mails.mails)
    assert [call.path for call in hooks.calls] == ["/door"]
    assert rows_containing("marty@") == []
    assert whole(tenant, booking)["state"] == "confirmed"


def test_later_mails_after_erasure_are_skipped(tenant: Tenant, mails: MailSink) -> None:
    booking = book(tenant)
    run_dispatcher("email")
    mails.mails.clear()
    erase(tenant)

    tenant.put(f"/bookings/{booking['id']}/cancel")
    run_dispatcher("email")

    assert [mail.to for mail in mails.mails] == [["ada@example.com"]]
    assert delivery_states()[2:] == [
        ("email", "cancelled", "customer", "skipped"),
        ("email", "cancelled", "owner", "delivered"),
    ]


def test_redelivery_after_erasure_has_no_personal_data(
    tenant: Tenant, mails: MailSink, hooks: HookSink
) -> None:
    hook(tenant, hooks)
    book(tenant)
    for kind in ("email", "webhook"):
        run_dispatcher(kind)
    erase(tenant)
    mails.mails.clear()
    hooks.calls.clear()

    for row in Delivery.objects.all():
        redeliver(row, now=timezone.now())
    for kind in ("email", "webhook"):
        run_dispatcher(kind)

    assert [mail.to for mail in mails.mails] == [["ada@example.com"]]
    assert [b"marty" in call.body.lower() for call in hooks.calls] == [False]
    assert rows_containing("marty") == []


def test_erasure_keeps_mails_of_other_customers(tenant: Tenant, mails: MailSink) -> None:
    resource = first_resource(tenant)
    times = {"start": soon().isoformat(), "end": (soon() + timedelta(hours=1)).isoformat()}
    body = {"what": "Meeting", "resource_id": resource["id"], "customers": [MARTY, ANN], **times}
    assert tenant.post("/bookings", body).status == 201

    erase(tenant)
    run_dispatcher("email")
    run_dispatcher("email")

    assert sorted(mail.to[0] for mail in mails.mails) == ["ada@example.com", "ann@example.com"]
    assert not any("McFly" in mail.text for mail in mails.mails)


def test_query_count_of_erasure_is_constant(tenant: Tenant, hooks: HookSink) -> None:
    counts = []
    for number in (1, 6):
        Delivery.objects.all().delete()
        booking = book(tenant, soon(hours=30 + number))
        hook(tenant, hooks)
        for _ in range(number):
            tenant.put(f"/bookings/{booking['id']}/cancel")
        with Queries(connection) as queries:
            erase(tenant)
        counts.append(len(queries))

    assert counts[0] == counts[1]


# --- Races ----------------------------------------------------------------------------------------
class Gate:
    """A worker waits here until the test lets it go on."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.open.wait(10)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@in_threads
def test_erasure_during_the_sending_of_a_mail(tenant: Tenant, mails: MailSink, gate: Gate) -> None:
    """What has been handed over has left; nothing of it comes back, and it is not tried again."""
    book(tenant)

    def refuse(to: str) -> str | None:
        if to != MARTY["email"]:
            return None
        gate.wait()
        return "451 later"

    mails.answer = refuse
    worker = in_thread(lambda: run_dispatcher("email"))
    assert gate.reached.wait(10)
    counts = erase(tenant)
    gate.open.set()
    worker.join()

    rows = ends()
    assert (counts["bookings"], counts["log_entries"]) == (1, 0)
    assert ("email", "confirmed", "customer", "cancelled", ERASED) in rows
    assert rows_containing("marty") == []
    assert delivery_faults() == []
    mails.answer = lambda to: None
    make_due()
    run_dispatcher("email")
    assert {mail.to[0] for mail in mails.mails} <= {"ada@example.com"}


@in_threads
def test_erasure_during_the_response_of_a_call(tenant: Tenant, hooks: HookSink) -> None:
    """The receiver repeats what it was sent: its answer is not kept."""
    hooks.answers["/hook"] = Answer(body=b"Welcome, marty@example.com", delay=1.0)
    hook(tenant, hooks)
    book(tenant)
    worker = in_thread(lambda: run_dispatcher("webhook"))
    while not hooks.calls:
        time.sleep(0.002)
    erase(tenant)
    worker.join()

    assert (b"marty@example.com" in hooks.calls[0].body, rows_containing("marty")) == (True, [])
    attempts = list(Attempt.objects.values_list("response_code", "excerpt"))
    assert (ends()[-1][3:], attempts) == (("cancelled", ERASED), [(200, "")])


@in_threads
@pytest.mark.parametrize("guarded", [True, False])
def test_erasure_during_the_rendering_of_a_call(
    tenant: Tenant, hooks: HookSink, gate: Gate, monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    """The worker has read the booking, and keeps the body after the erasure. The control: without
    its lease being asked for, the data is back."""
    book(tenant, event_notifications=[reminder("webhook", url=hooks.url("/door"))])
    Delivery.objects.exclude(type="webhook").delete()
    make_due()
    render = mails_and_calls.render_body

    def render_and_wait(*args: Any) -> str:
        body = render(*args)
        gate.wait()
        return body

    monkeypatch.setattr(mails_and_calls, "render_body", render_and_wait)
    if not guarded:
        rows = Delivery.objects.all()
        monkeypatch.setattr(mails_and_calls, "with_lease", lambda deliveries: rows)
    worker = in_thread(lambda: run_dispatcher("webhook"))
    assert gate.reached.wait(10)
    erase(tenant)
    gate.open.set()
    worker.join()

    assert ends()[-1][3:] == ("cancelled", ERASED)
    assert bool(rows_containing("marty")) == (not guarded)


@in_threads
def test_erasure_during_a_booking_update(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that holds the booking comes first: what it wrote is emptied with the rest."""
    booking = book(tenant)
    lock = erasing.lock_for_erasure
    arrived = threading.Event()

    def arrive(ids: Any) -> None:
        arrived.set()
        lock(ids)

    monkeypatch.setattr(erasing, "lock_for_erasure", arrive)
    counts = []

    def run() -> None:
        counts.append(erase_person(app=tenant.app, email=MARTY["email"], now=timezone.now()))

    with transaction.atomic():
        answer = tenant.put(
            f"/bookings/{booking['id']}/cancel", {"cancel": {"message": "Marty is ill"}}
        )
        eraser = in_thread(run)
        assert arrived.wait(10)
    eraser.join()

    assert answer.status == 200
    assert counts == [OTHERS | {"bookings": 1, "log_entries": 1, "deliveries": 3}]
    assert rows_containing("marty") == []


@in_threads
def test_erasure_during_new_bookings(tenant: Tenant) -> None:
    """Each booking is emptied whole or stands whole: none is half there."""
    resource = first_resource(tenant)
    stop = threading.Event()

    def keep_erasing() -> None:
        while not stop.is_set():
            erase_person(app=tenant.app, email=MARTY["email"], now=timezone.now())

    eraser = in_thread(keep_erasing)
    try:
        for hour in range(12):
            book(tenant, soon(hours=30 + 2 * hour), resource=resource, meta={"of": "Marty"})
    finally:
        stop.set()
        eraser.join()

    seen = {
        (bool(customer.email), bool(customer.name), bool(customer.booking.meta), one_open)
        for customer in Customer.objects.select_related("booking")
        for one_open in [Delivery.objects.filter(customer=customer, next_at__isnull=False).exists()]
    }
    assert seen <= {(True, True, True, True), (False, False, False, False)}
    erase(tenant)
    assert rows_containing("marty") == []


# --- What goes by itself --------------------------------------------------------------------------
def age(days: int, *bookings: Any) -> None:
    """As if the bookings had taken place so long ago."""
    rows = Booking.objects.filter(id__in=[booking["id"] for booking in bookings])
    for booking in rows.select_related("event"):
        end = timezone.now() - timedelta(days=days)
        booking.event.start, booking.event.end = end - timedelta(hours=1), end
        booking.event.exclusive = False
        booking.event.save()


def books(tenant: Tenant, count: int, first: int = 0) -> list[Any]:
    return [book(tenant, soon(hours=30 + 2 * (first + number))) for number in range(count)]


def purge(**options: Any) -> list[str]:
    out = io.StringIO()
    call_command("purge_people", stdout=out, **options)
    return out.getvalue().splitlines()


def names() -> list[str]:
    return list(Customer.objects.order_by("booking__created_at").values_list("name", flat=True))


def test_retention_erases_people_of_old_bookings(tenant: Tenant, hooks: HookSink) -> None:
    hook(tenant, hooks)
    old, new = books(tenant, 2)
    age(400, old)
    age(300, new)

    lines = purge(older_than="365d")

    assert lines[-1] == "1 bookings erased."
    assert names() == ["", MARTY["name"]]
    calls = Delivery.objects.filter(type="webhook").order_by("id")
    assert [(state, "marty" in body) for state, body in calls.values_list("state", CALL_BODY)] == [
        ("cancelled", False),
        ("scheduled", True),
    ]
    assert whole(tenant, old)["state"] == "confirmed"
    assert purge(older_than="365d")[-1] == "0 bookings erased."


def test_a_dry_run_only_counts(tenant: Tenant) -> None:
    old = books(tenant, 2)
    age(400, *old)

    assert purge(older_than="365d", dry_run=True) == ["2 bookings would be erased."]
    assert names() == [MARTY["name"]] * 2


def test_progress_of_small_batches(tenant: Tenant) -> None:
    age(10, *books(tenant, 4))

    lines = purge(older_than="5d", batch=2)

    assert [line.split(",")[0] for line in lines] == ["2/4", "4/4", "4 bookings erased."]
    assert lines[1].endswith("/s, 0 s left")


def test_interrupted_run_can_be_continued(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    age(10, *books(tenant, 3))

    def interrupt(progress: Any, count: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Progress, "add", interrupt)
        with pytest.raises(CommandError) as stopped:
            purge(older_than="5d", batch=2)
    half = sorted(names())

    assert (stopped.value.returncode, str(stopped.value)) == (
        130,
        "Stopped. Run the command again to continue.",
    )
    assert (half, purge(older_than="5d")[-1]) == (
        ["", "", MARTY["name"]],
        "1 bookings erased.",
    )


def test_booking_moved_before_its_lock_is_kept(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again under the lock."""
    (booking,) = books(tenant, 1)
    age(10, booking)
    lock = retention.lock_for_erasure

    def move_and_lock(ids: Any) -> None:
        event = Booking.objects.select_related("event").get(id=booking["id"]).event
        event.start, event.end = soon(), soon() + timedelta(hours=1)
        event.save()
        lock(ids)

    monkeypatch.setattr(retention, "lock_for_erasure", move_and_lock)

    assert purge(older_than="5d")[-1] == "0 bookings erased."
    assert names() == [MARTY["name"]]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"older_than": "365"},
        {"older_than": "0d"},
        {"older_than": "40000d"},
        {"older_than": "-1d"},
        {"older_than": "1d", "batch": 0},
        {"older_than": "1d", "batch": 1001},
    ],
)
def test_wrong_bounds_are_refused(db: None, options: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match=r"must be from 1"):
        call_command("purge_people", **options)


@pytest.mark.parametrize(("days", "left"), [(0, ["Marty McFly"] * 2), (7, ["", "Marty McFly"])])
def test_task_uses_the_setting(tenant: Tenant, settings: Any, days: int, left: list[str]) -> None:
    settings.PEOPLE_RETENTION_DAYS = days
    old, new = books(tenant, 2)
    age(8, old)
    age(6, new)

    tasks.purge_people()

    assert names() == left


def test_command_defaults_to_the_setting(tenant: Tenant, settings: Any) -> None:
    settings.PEOPLE_RETENTION_DAYS = 7
    age(8, *books(tenant, 1))

    assert purge()[-1] == "1 bookings erased."
    assert purge_people.days_of("30d") == 30


def test_long_task_continues_in_another_task(
    tenant: Tenant, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PEOPLE_RETENTION_DAYS = 7
    age(8, *books(tenant, 3))
    asked: list[str] = []
    monkeypatch.setattr(retention, "BATCH", 2)
    monkeypatch.setattr(tasks, "PURGE_SECONDS", 0)
    monkeypatch.setattr(
        tasks.purge_people, "apply_async", lambda args, **options: asked.extend(args)
    )

    tasks.purge_people()
    half = sorted(names())
    tasks.purge_people(asked[0])

    assert (half, names()) == (["", "", MARTY["name"]], ["", "", ""])
    assert [uuid.UUID(one) for one in asked] == sorted(uuid.UUID(one) for one in asked)


def test_undue_bookings_are_skipped_in_batches(
    tenant: Tenant, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement over all of them would be cut off by its time-out, every night."""
    monkeypatch.setattr(retention, "SCAN_BATCH", 2)
    _, _, _, old, *_ = everything = books(tenant, 5)
    age(400, old)
    before = timezone.now() - timedelta(days=365)

    batches = list(retention.erase_due_bookings(before))
    again = list(retention.erase_due_bookings(before, after=batches[0].last))

    assert [batch.bookings for batch in batches] == [0, 1, 0]
    assert [batch.bookings for batch in again] == [0, 0]
    assert sorted(names()) == ["", *[MARTY["name"]] * (len(everything) - 1)]


def test_stopping_worker_ends_task_after_its_batch(
    tenant: Tenant, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PEOPLE_RETENTION_DAYS = 7
    age(8, *books(tenant, 3))
    monkeypatch.setattr(retention, "BATCH", 2)
    monkeypatch.setattr(tasks, "is_stopping", lambda: True)

    tasks.purge_people()

    assert sorted(names()) == ["", "", MARTY["name"]]
