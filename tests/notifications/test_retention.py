"""`manage.py purge_deliveries` and beat's daily task: what was finished long ago goes, no more."""

import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper
from django.db import connection, transaction
from django.db.models import Sum
from django.utils import timezone

from apps_config.models import ListingTally
from bookings.models import Booking
from notifications import tasks
from notifications.models import Attempt, Delivery, Endpoint
from notifications.outbox import retention
from notifications.outbox.dispatcher import run_dispatcher
from notifications.outbox.redeliver import redeliver
from ops.management.commands import purge_deliveries
from tests.queries import Queries
from tests.sinks import MailSink
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

REMINDER = {
    "type": "email",
    "settings": {"recipient": "customer"},
    "when": {"type": "after", "unit": "days", "time": 90},
}


def make_booking(tenant: Tenant, **given: Any) -> Booking:
    there = tenant.get("/resources").data
    resource = there[0] if there else tenant.make_resource(email="ada@example.com")
    start = timezone.now() + timedelta(hours=30 + 2 * Booking.objects.count())
    body = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    answer = tenant.book(resource_id=resource["id"], **body, **given)
    assert answer.status == 201, answer.json
    return Booking.objects.get(id=answer.data["id"])


def age(days: int, **only: Any) -> None:
    """As if it had been finished so long ago."""
    rows = Delivery.objects.filter(finished_at__isnull=False, **only)
    rows.update(finished_at=timezone.now() - timedelta(days=days))


def cancelled_booking(tenant: Tenant, **given: Any) -> Booking:
    """One that is over and told of: two mails of its making, two of its end."""
    booking = make_booking(tenant, **given)
    assert tenant.put(f"/bookings/{booking.id}/cancel").status == 200
    run_dispatcher("email")
    run_dispatcher("email")
    return booking


def purge(**options: Any) -> list[str]:
    out = io.StringIO()
    call_command("purge_deliveries", stdout=out, **options)
    return out.getvalue().splitlines()


def test_old_deliveries_are_deleted_and_counted(tenant: Tenant, mails: MailSink) -> None:
    old, new = cancelled_booking(tenant), cancelled_booking(tenant)
    age(31, booking=old)
    age(29, booking=new)

    lines = purge()

    assert lines[-1] == "4 deliveries deleted."
    assert set(Delivery.objects.values_list("booking", "state")) == {(new.id, "delivered")}
    assert (Delivery.objects.count(), Attempt.objects.count()) == (4, 4)


@pytest.mark.postgresql
def test_batch_writes_each_tally_once(make_tenant: Callable[..., Tenant], mails: MailSink) -> None:
    """Of two apps with eight deliveries each: another version of two rows."""
    for tenant in (make_tenant(), make_tenant()):
        for _ in range(2):
            cancelled_booking(tenant)
    age(31)
    rows = list(Delivery.objects.values_list("id", flat=True))
    versions = """SELECT n_tup_ins + n_tup_upd FROM pg_stat_xact_user_tables
        WHERE relname = 'apps_config_listingtally'"""

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(versions)  # may have those of earlier transactions
        before = cursor.fetchone()[0]
        retention._delete(rows)
        cursor.execute(versions)
        written = cursor.fetchone()[0] - before

    assert (len(rows), written) == (16, 2)
    tallies = ListingTally.objects.filter(listing="deliveries").values_list("app", "part")
    assert {total for _, _, total in tallies.annotate(total=Sum("count"))} == {0}


def test_part_of_a_change_is_deleted(tenant: Tenant, mails: MailSink) -> None:
    cancelled_booking(tenant)
    age(31, kind="confirmed", recipient="owner")

    purge()

    assert sorted(Delivery.objects.values_list("kind", "recipient")) == [
        ("cancelled", "customer"),
        ("cancelled", "owner"),
        ("confirmed", "customer"),
    ]


def test_open_deliveries_are_kept(tenant: Tenant, mails: MailSink) -> None:
    booking = make_booking(tenant, event_notifications=[REMINDER])
    run_dispatcher("email")
    age(31)
    Booking.objects.update(completes_at=None)

    purge()

    assert list(Delivery.objects.values_list("booking", "kind", "state")) == [
        (booking.id, "reminder", "scheduled")
    ]


def test_deliveries_of_a_live_booking_are_kept(tenant: Tenant, mails: MailSink) -> None:
    """Reminders are counted until it has taken place."""
    booking = make_booking(tenant, event_notifications=[REMINDER])
    Delivery.objects.filter(kind="reminder").update(
        state="skipped", next_at=None, finished_at=timezone.now()
    )
    run_dispatcher("email")
    age(31)

    before = purge()
    tenant.put(f"/bookings/{booking.id}/complete")
    after = purge()

    assert (before[-1], after[-1]) == ("0 deliveries deleted.", "3 deliveries deleted.")


def test_redelivered_delivery_is_kept(tenant: Tenant, mails: MailSink) -> None:
    cancelled_booking(tenant)
    age(31)
    again = redeliver(Delivery.objects.first(), now=timezone.now())

    purge()

    assert [row.id for row in Delivery.objects.all()] == [again.id]


def test_small_batches_and_custom_age(tenant: Tenant, mails: MailSink) -> None:
    for _ in range(3):
        cancelled_booking(tenant)
    age(3)

    assert purge(days=4)[-1] == "0 deliveries deleted."
    lines = purge(days=2, batch=2)

    assert [line.split(",")[0] for line in lines] == [
        "2/12",
        "4/12",
        "6/12",
        "8/12",
        "10/12",
        "12/12",
        "12 deliveries deleted.",
    ]
    assert lines[-2].endswith("/s, 0 s left")
    assert (Delivery.objects.count(), Attempt.objects.count()) == (0, 0)


def test_progress_is_reported_every_tenth() -> None:
    out = io.StringIO()
    progress = purge_deliveries.Progress(100, OutputWrapper(out), "are removed")
    for _ in range(50):
        progress.add(2)

    shares = [line.split(",")[0] for line in out.getvalue().splitlines()]
    assert shares == [f"{share}/100" for share in range(10, 101, 10)]


def test_progress_on_a_terminal_is_one_line(tenant: Tenant, mails: MailSink) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    cancelled_booking(tenant)
    age(31)
    out = Terminal()
    call_command("purge_deliveries", stdout=out, batch=2)

    assert [piece.split(",")[0] for piece in out.getvalue().split("\r")] == ["", "2/4", "4/4"]
    assert out.getvalue().endswith("left\x1b[K\n4 deliveries deleted.\n")


def test_interrupted_run_commits_whole_batches(
    tenant: Tenant, mails: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled_booking(tenant)
    age(31)

    def interrupt(progress: Any, count: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(purge_deliveries.Progress, "add", interrupt)
        with pytest.raises(CommandError) as stopped:
            call_command("purge_deliveries", batch=3)
    half = Delivery.objects.count()

    assert (stopped.value.returncode, str(stopped.value)) == (
        130,
        "Stopped. Run the command again to continue.",
    )
    assert (half, purge()[-1]) == (1, "1 deliveries deleted.")


def test_query_count_of_a_batch_is_constant(tenant: Tenant, mails: MailSink) -> None:
    counts = []
    for bookings in (1, 3):
        for _ in range(bookings):
            cancelled_booking(tenant)
        age(31)
        with Queries(connection) as captured:
            removed = sum(retention.delete_outdated(timezone.now()))
        counts.append((removed, len(captured)))

    assert [removed for removed, _ in counts] == [4, 12]
    assert counts[0][1] == counts[1][1]


@pytest.mark.parametrize("options", [{"days": 0}, {"batch": 0}, {"batch": 10_001}])
def test_wrong_bounds_are_refused(db: None, options: dict[str, int]) -> None:
    with pytest.raises(CommandError, match=r"must be from 1 to"):
        call_command("purge_deliveries", **options)


# --- Beat's task ----------------------------------------------------------------------------------
def test_task_uses_the_setting(tenant: Tenant, mails: MailSink, settings: Any) -> None:
    settings.DELIVERY_RETENTION_DAYS = 7
    old, new = cancelled_booking(tenant), cancelled_booking(tenant)
    age(8, booking=old)
    age(6, booking=new)

    tasks.purge_deliveries()

    assert set(Delivery.objects.values_list("booking", flat=True)) == {new.id}


def test_unused_endpoints_are_deleted(tenant: Tenant) -> None:
    waiting, gone = "https://waiting.example:443", "https://gone.example:443"
    make_booking(tenant)
    Delivery.objects.filter(state="scheduled").update(type="webhook", endpoint=waiting)
    for address in (waiting, gone):
        Endpoint.objects.create(address=address, failures=10, is_slow=True)

    tasks.purge_deliveries()

    assert [endpoint.address for endpoint in Endpoint.objects.all()] == [waiting]


def test_long_task_continues_in_another_task(
    tenant: Tenant, mails: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled_booking(tenant)
    age(31)
    asked = []
    monkeypatch.setattr(retention, "BATCH", 2)
    monkeypatch.setattr(tasks, "PURGE_SECONDS", 0)
    monkeypatch.setattr(tasks.purge_deliveries, "apply_async", lambda **kwargs: asked.append(1))

    left = []
    while not left or left[-1]:
        tasks.purge_deliveries()
        left.append(Delivery.objects.count())

    assert (left, asked) == ([2, 0], [1, 1])


def test_stopping_worker_ends_task_after_its_batch(
    tenant: Tenant, mails: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled_booking(tenant)
    age(31)
    monkeypatch.setattr(retention, "BATCH", 3)
    monkeypatch.setattr(tasks, "is_stopping", lambda: True)

    tasks.purge_deliveries()

    assert Delivery.objects.count() == 1
