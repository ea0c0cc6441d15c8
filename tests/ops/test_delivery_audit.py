"""`manage.py verify_deliveries`: rows are taken away and forged by hand, and each is found."""

import io
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from bookings.models import Booking, BookingNotification
from common.instants import format_instant
from notifications.models import Attempt, Delivery, Endpoint, Plan, TaskRun
from notifications.outbox import dispatcher
from notifications.outbox.dispatcher import run_dispatcher
from notifications.webhooks.services import create_webhook, send_test
from ops.management.commands import verify_deliveries
from tests.queries import Queries
from tests.sinks import HookSink, MailSink
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

REMINDERS = [
    {
        "type": "email",
        "settings": {"recipient": "customer"},
        "when": {"type": "before", "unit": "mins", "time": 60},
    },
    {
        "type": "email",
        "settings": {"recipient": "owner"},
        "when": {"type": "after", "unit": "mins", "time": 10},
    },
    {
        "type": "webhook",
        "settings": {"url": "https://example.com/reminder"},
        "when": {"type": "before", "unit": "mins", "time": 30},
    },
]


@pytest.fixture(autouse=True)
def _ends_when_dry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "LINGER", 0)


@pytest.fixture
def booking(tenant: Tenant, mails: MailSink, hooks: HookSink) -> Booking:
    """Confirmed and told (two mails, a call), with three reminders that wait; and a test call."""
    resource = tenant.make_resource(email="ada@example.com")
    webhook, _ = create_webhook(app=tenant.app, given={"url": hooks.url()})
    start = (timezone.now() + timedelta(hours=30)).replace(microsecond=0)
    answer = tenant.book(
        resource_id=resource["id"],
        start=start.isoformat(),
        end=(start + timedelta(hours=1)).isoformat(),
        event_notifications=REMINDERS,
    )
    assert answer.status == 201, answer.json
    send_test(webhook, now=timezone.now())
    run_dispatcher("email")
    run_dispatcher("webhook")
    return Booking.objects.get()


def verify(**options: Any) -> tuple[bool, list[str]]:
    """(is it in order, the lines after the counts)."""
    out = io.StringIO()
    try:
        call_command("verify_deliveries", stdout=out, **options)
        in_order = True
    except CommandError as error:
        in_order = error.returncode != 1
    lines = out.getvalue().splitlines()
    return in_order, lines[1 + [line[:3] for line in lines].index("sum") :]


def faults() -> list[str]:
    in_order, lines = verify()
    assert not in_order
    return lines


@contextmanager
def unchecked() -> Iterator[None]:
    """Rows may be written that the database's own checks refuse."""
    check = next(
        constraint
        for constraint in Delivery._meta.constraints
        if constraint.name == "delivery_is_open_or_final"
    )
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA ignore_check_constraints = ON")
            yield
            cursor.execute("PRAGMA ignore_check_constraints = OFF")
        return
    with connection.schema_editor() as editor:
        editor.remove_constraint(Delivery, check)
    yield
    Delivery.objects.all().delete()
    with connection.schema_editor() as editor:
        editor.add_constraint(Delivery, check)


def ago(**span: float) -> datetime:
    return (timezone.now() - timedelta(**span)).replace(microsecond=0)


# --- In order -------------------------------------------------------------------------------------
def test_counts_are_told(booking: Booking) -> None:
    Delivery.objects.filter(kind="reminder", type="webhook").update(
        state="skipped", next_at=None, finished_at=timezone.now()
    )
    out = io.StringIO()

    call_command("verify_deliveries", stdout=out)

    assert out.getvalue().splitlines() == [
        "scheduled             2",
        "sending               0",
        "delivered             4",
        "failed                0",
        "cancelled             0",
        "skipped               1",
        "expired               0",
        "purged                0",
        "sum                   7 of 7 created (6 by changes, 1 others)",
        "All deliveries are accounted for.",
    ]


def test_an_empty_service_is_in_order(db: None) -> None:
    assert verify() == (True, ["All deliveries are accounted for."])


@pytest.mark.parametrize("step", ["reschedule", "cancel", "complete"])
def test_a_booking_that_goes_on_is_in_order(tenant: Tenant, booking: Booking, step: str) -> None:
    start = timezone.now() + timedelta(hours=60)
    body = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    if step == "reschedule":
        answer = tenant.post(f"/bookings/{booking.id}/reschedule", body)
    else:
        answer = tenant.put(f"/bookings/{booking.id}/{step}")

    assert answer.status == 200
    assert verify() == (True, ["All deliveries are accounted for."])


def test_queries_and_time_do_not_grow(booking: Booking) -> None:
    with Queries(connection) as healthy:
        verify()
    Delivery.objects.filter(kind="reminder").delete()
    with Queries(connection) as broken:
        verify()

    assert len(broken) < len(healthy) <= 23  # the time of the audit is stored if it finds no fault


# --- Since the last audit -------------------------------------------------------------------------
def had_audit(**ago_span: float) -> None:
    TaskRun.objects.update_or_create(
        task="verify_deliveries", defaults={"succeeded_at": ago(**ago_span)}
    )


def test_only_what_changed_since_the_last_audit_is_counted(booking: Booking) -> None:
    had_audit(days=-1)
    since = TaskRun.objects.get(task="verify_deliveries").succeeded_at - timedelta(hours=1)
    out = io.StringIO()

    call_command("verify_deliveries", stdout=out)

    assert out.getvalue().splitlines()[0] == f"Changes since {format_instant(since)}:"
    assert out.getvalue().splitlines()[-2:] == [
        "sum                   0 of 0 created (0 by changes, 0 others)",
        "All deliveries are accounted for.",
    ]


def test_an_older_fault_is_found_in_all_rows(booking: Booking) -> None:
    Delivery.objects.get(kind="confirmed", recipient="owner").delete()
    had_audit(days=-1)

    assert [verify()[0], verify(all=True)[0]] == [True, False]


def test_open_deliveries_are_audited_however_old(booking: Booking) -> None:
    row = Delivery.objects.get(kind="reminder", recipient="owner")
    Delivery.objects.filter(id=row.id).update(lease_token=uuid.uuid4())
    had_audit(days=-1)

    assert [line.partition(":")[0] for line in faults()] == ["open, but without a next attempt"]


def test_a_fault_is_reported_until_it_is_mended(booking: Booking) -> None:
    verify()
    mended = Delivery.objects.get(kind="confirmed", recipient="owner")
    mended.delete()
    reported = [verify()[0], verify()[0]]
    before = TaskRun.objects.get(task="verify_deliveries").succeeded_at
    Plan.objects.update(purged=1)

    assert (reported, verify()[0]) == ([False, False], True)
    assert TaskRun.objects.get(task="verify_deliveries").succeeded_at > before


# --- Out of order ---------------------------------------------------------------------------------
def test_a_delivery_that_is_gone_is_missed(booking: Booking) -> None:
    Delivery.objects.get(kind="confirmed", recipient="owner").delete()
    plan = Plan.objects.get()

    assert faults() == [
        f"wrong number of deliveries: change {plan.change_id}, planned 6, purged 0, there 5"
    ]


def test_a_delivery_too_many_is_noticed(booking: Booking) -> None:
    row = Delivery.objects.get(kind="confirmed", recipient="owner")
    Attempt.objects.create(
        app_id=row.app_id,
        delivery=Delivery.objects.create(
            **{
                field.name: getattr(row, field.name)
                for field in Delivery._meta.fields
                if field.name not in ("id", "number")
            },
            number=99,
        ),
        at=timezone.now(),
        seconds=1,
    )

    assert faults() == [
        f"wrong number of deliveries: change {row.change_id}, planned 6, purged 0, there 7"
    ]


def test_a_plan_that_is_gone_is_missed(booking: Booking) -> None:
    Plan.objects.all().delete()
    rows = Delivery.objects.filter(change__isnull=False)

    assert sorted(faults()) == sorted(
        f"delivery of a change without a plan: id {row.id}, change {row.change_id},"
        f" state {row.state}"
        for row in rows
    )


FORGED: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "unknown state": (lambda: {"state": "lost"}, "unknown state or type: id {id}, state lost"),
    "unknown type": (lambda: {"type": "fax"}, "unknown state or type: id {id}, state scheduled"),
    "final without its end": (
        lambda: {"state": "failed", "next_at": None},
        "final, but without an end: id {id}, state failed, next_at None, finished_at None",
    ),
    "final with a lease": (
        lambda: {
            "state": "failed",
            "next_at": None,
            "finished_at": timezone.now(),
            "lease_token": uuid.uuid4(),
        },
        "final, but without an end: id {id}, state failed, next_at None",
    ),
    "open without a time": (
        lambda: {"next_at": None},
        "open, but without a next attempt: id {id}, state scheduled, next_at None",
    ),
    "scheduled with a lease": (
        lambda: {"lease_token": uuid.uuid4()},
        "open, but without a next attempt: id {id}, state scheduled",
    ),
    "delivered by nobody": (
        lambda: {"state": "delivered", "next_at": None, "finished_at": timezone.now()},
        "delivered without a successful attempt: id {id}",
    ),
    "lost": (
        lambda: {"state": "sending", "next_at": ago(minutes=11), "lease_token": uuid.uuid4()},
        "lost while sending: id {id}, type email",
    ),
    "overdue": (lambda: {"next_at": ago(minutes=11)}, "overdue: id {id}, type email"),
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_row_is_found(booking: Booking, name: str) -> None:
    values, line = FORGED[name]
    row = Delivery.objects.get(kind="reminder", recipient="owner")
    with unchecked():
        Delivery.objects.filter(id=row.id).update(**values())
        found = [fault for fault in faults() if "exactly once" not in fault]

    assert [fault[: len(line.format(id=row.id))] for fault in found] == [line.format(id=row.id)]


def test_a_failed_try_is_no_success(booking: Booking) -> None:
    Attempt.objects.filter(delivery__kind="test").update(outcome="failed")
    row = Delivery.objects.get(kind="test")

    assert faults() == [f"delivered without a successful attempt: id {row.id}"]


def test_how_late_is_late(booking: Booking) -> None:
    late = ago(seconds=100)
    row = Delivery.objects.get(kind="reminder", recipient="owner")
    Delivery.objects.filter(id=row.id).update(next_at=late)

    assert [verify(overdue=0)[0], verify(overdue=110)[0]] == [True, True]
    assert verify(overdue=90) == (
        False,
        [f"overdue: id {row.id}, type email, next_at {format_instant(late)}, tries 0"],
    )


def test_what_is_held_back_is_not_late(booking: Booking) -> None:
    """A server in trouble, and a mail that waits for an earlier one's next try."""
    Delivery.objects.filter(kind="test").update(
        state="scheduled", next_at=ago(hours=1), finished_at=None
    )
    row = Delivery.objects.get(kind="test")
    Endpoint.objects.create(
        address=row.endpoint, failures=10, open_until=timezone.now() + timedelta(minutes=5)
    )
    Delivery.objects.filter(kind="confirmed", recipient="owner").update(
        state="scheduled", next_at=timezone.now() + timedelta(hours=1), finished_at=None
    )
    booking_change = booking.logs.create(
        app_id=booking.app_id,
        from_state="confirmed",
        to_state="cancelled",
        action="cancel",
        source="api",
        created_at=timezone.now(),
    )
    Plan.objects.create(change=booking_change, planned=1)
    first = Delivery.objects.get(kind="confirmed", recipient="owner")
    Delivery.objects.create(
        app=first.app,
        booking=booking,
        change=booking_change,
        type="email",
        kind="cancelled",
        recipient="owner",
        due_at=ago(hours=1),
        next_at=ago(hours=1),
        expires_at=timezone.now(),
        created_at=ago(hours=1),
    )
    held = verify()
    Endpoint.objects.update(open_until=ago(minutes=2))
    Delivery.objects.filter(id=first.id).update(
        state="delivered", next_at=None, finished_at=timezone.now()
    )
    free = verify()

    assert held == (True, ["All deliveries are accounted for."])
    assert (free[0], sorted(line.split(":")[0] for line in free[1])) == (False, ["overdue"] * 2)


# --- Reminders exactly once -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            lambda row: {"type": "webhook"},
            "calls not exactly once: id {booking.id}, reschedules 0, wanted 2, there 1",
        ),
        (
            lambda row: {"type": "email", "recipient": "owner"},
            "reminders of the owner not exactly once:"
            " id {booking.id}, reschedules 0, wanted 2, there 1",
        ),
        (
            lambda row: {"type": "email", "recipient": "customer"},
            "reminders of a customer not exactly once:"
            " id {customer.id}, booking {booking.id}, wanted 2, there 1",
        ),
    ],
)
def test_a_reminder_that_was_never_planned_is_missed(
    booking: Booking, change: Callable[[Any], dict[str, str]], fault: str
) -> None:
    BookingNotification.objects.create(
        booking=booking, when_type="before", when_unit="mins", when_time=5, **change(booking)
    )

    assert faults() == [fault.format(booking=booking, customer=booking.customers.get())]


def test_reminders_of_an_earlier_version_do_not_count(booking: Booking) -> None:
    Booking.objects.update(reschedules=1)

    assert [line.split(":")[0] for line in faults()] == [
        "calls not exactly once",
        "reminders of the owner not exactly once",
        "reminders of a customer not exactly once",
    ]


def test_a_deleted_booking_needs_no_reminders(booking: Booking) -> None:
    Booking.objects.update(reschedules=1, deleted_at=timezone.now())

    assert verify() == (True, ["All deliveries are accounted for."])


# --- Telling --------------------------------------------------------------------------------------
def test_of_many_faults_some_are_shown_and_all_are_counted(
    booking: Booking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_deliveries, "MAX_SHOWN", 2)
    Attempt.objects.all().delete()

    lines = faults()

    assert Delivery.objects.filter(state="delivered").count() == 4
    assert [line.split(":")[0] for line in lines] == ["delivered without a successful attempt"] * 3
    assert lines[-1] == "delivered without a successful attempt: and 2 more"


@pytest.mark.parametrize("seconds", [-1, 10**9 + 1])
def test_a_senseless_bound_is_refused(db: None, seconds: int) -> None:
    with pytest.raises(CommandError, match="--overdue must be from"):
        call_command("verify_deliveries", overdue=seconds)
