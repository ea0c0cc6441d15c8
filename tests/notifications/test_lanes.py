"""Lanes of the outbox: what a claim takes from which lane, and when a lane is checked next."""

import queue
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps_config.models import App
from common.db.sql import database_now, insert_rows
from notifications.models import Delivery, Endpoint, LaneCheck
from notifications.outbox import circuit_breaker, dispatcher, lanes
from notifications.outbox.dispatcher import Dispatcher, run_dispatcher
from notifications.outbox.lanes import FULL_PAUSE, HELD_PAUSE, LOCKED_PAUSE, next_check, take_lanes
from notifications.outbox.leases import _BEGIN_CLAIM, LEASES, claim_due
from notifications.outbox.results import SendResult, record_results
from notifications.outbox.senders import NOT_RENDERED
from notifications.tasks import purge_deliveries
from tests.queries import Queries
from tests.query_plans import explain, nodes_of
from tests.sinks import MailSink
from tests.world import Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
LEASE = LEASES[Delivery.WEBHOOK]
GOOD, BAD = "https://good.example:443", "https://bad.example:443"


def queue_calls(app: App, count: int, endpoint: str = GOOD, *, age: float = 60) -> list[Delivery]:
    """`count` due calls of the app to the server."""
    now = database_now()
    rows = [
        Delivery(
            app=app,
            type=Delivery.WEBHOOK,
            kind="confirmed",
            endpoint=endpoint,
            due_at=now - timedelta(seconds=age),
            next_at=now - timedelta(seconds=age),
            expires_at=now + timedelta(days=3),
            created_at=now,
        )
        for _ in range(count)
    ]
    with transaction.atomic():
        insert_rows(rows)
    return rows


def checks() -> list[tuple[str, str, int, bool, bool]]:
    """(app, endpoint, seconds until the check, does something wait, is it held) of each lane."""
    now = database_now()
    return [
        (
            row.app.slug,
            row.endpoint,
            max(0, round((row.next_at - now).total_seconds())),
            row.waiting_since is not None,
            row.is_held,
        )
        for row in LaneCheck.objects.order_by("app__slug", "endpoint", "next_at")
    ]


def claimed(limit: int = 10) -> Counter[tuple[str, str]]:
    rows = claim_due(Delivery.WEBHOOK, limit) or []
    return Counter((row.app.slug, row.endpoint) for row in rows)


def add_empty_checks(app: App, count: int, *, servers: int, due_in: float = -60) -> None:
    """Checks as cancelled deliveries of `count` transactions leave them."""
    next_at = database_now() + timedelta(seconds=due_in)
    LaneCheck.objects.bulk_create(
        LaneCheck(
            app=app,
            type=Delivery.WEBHOOK,
            endpoint=f"https://s{number % servers}.example:443",
            next_at=next_at,
            transaction=-1 - number,
        )
        for number in range(count)
    )


def test_apps_take_turns(make_tenant: Callable[..., Tenant]) -> None:
    """A backlog of one app does not delay another's calls."""
    busy, quiet = make_tenant(slug="busy").app, make_tenant(slug="quiet").app
    queue_calls(busy, 50, age=3600)
    queue_calls(quiet, 2)

    taken = [claimed(4) for _ in range(2)]

    assert taken == [
        {("busy", GOOD): 2, ("quiet", GOOD): 2},
        {("busy", GOOD): 4},
    ]


def test_a_full_lane_is_checked_a_second_later(tenant: Tenant, settings: Any) -> None:
    settings.DELIVERY_ENDPOINT_CAP = 2
    queue_calls(tenant.app, 5)

    taken = [claimed(), claimed()]

    assert taken == [{(tenant.app.slug, GOOD): 2}, {}]
    assert checks() == [(tenant.app.slug, GOOD, FULL_PAUSE.seconds, True, False)]


def test_a_result_makes_a_full_lane_due(tenant: Tenant, settings: Any) -> None:
    settings.DELIVERY_ENDPOINT_CAP = 2
    queue_calls(tenant.app, 5)
    first = claim_due(Delivery.WEBHOOK, 10)

    record_results([(row, SendResult(ok=True)) for row in first])

    assert claimed() == {(tenant.app.slug, GOOD): 2}


def test_expired_leases_do_not_fill_their_lane(tenant: Tenant, settings: Any) -> None:
    settings.DELIVERY_ENDPOINT_CAP = 2
    queue_calls(tenant.app, 2)
    taken = claimed()
    past = timezone.now() - timedelta(seconds=1)
    Delivery.objects.update(next_at=past)
    LaneCheck.objects.update(next_at=past)

    again = claimed()

    assert taken == again == {(tenant.app.slug, GOOD): 2}


def test_a_lane_without_backlog_is_checked_when_its_lease_ends(tenant: Tenant) -> None:
    queue_calls(tenant.app, 2)

    assert claimed() == {(tenant.app.slug, GOOD): 2}
    assert checks() == [(tenant.app.slug, GOOD, LEASE.seconds, False, False)]


def test_a_lane_without_open_deliveries_has_no_check(tenant: Tenant) -> None:
    queue_calls(tenant.app, 1)
    record_results([(row, SendResult(ok=True)) for row in claim_due(Delivery.WEBHOOK, 10)])
    LaneCheck.objects.update(next_at=timezone.now() - timedelta(seconds=1))

    assert (claimed(), checks()) == ({}, [])


def test_an_open_breaker_costs_one_check(tenant: Tenant) -> None:
    opens = database_now() + timedelta(minutes=30)
    Endpoint.objects.create(address=BAD, failures=12, is_slow=True, open_until=opens)
    queue_calls(tenant.app, 20, BAD)
    queue_calls(tenant.app, 2, GOOD)

    assert claimed() == {(tenant.app.slug, GOOD): 2}
    assert checks() == [
        (tenant.app.slug, BAD, 1800, True, True),
        (tenant.app.slug, GOOD, LEASE.seconds, False, False),
    ]


def test_a_recovered_server_gets_the_calls_of_all_apps(make_tenant: Callable[..., Tenant]) -> None:
    apps = [make_tenant(slug=slug).app for slug in ("one", "two")]
    opens = database_now() + timedelta(minutes=30)
    for app in apps:
        queue_calls(app, 3, BAD)
    (probe,) = claim_due(Delivery.WEBHOOK, 1)
    Endpoint.objects.create(address=BAD, failures=12, is_slow=True, open_until=opens)
    LaneCheck.objects.update(next_at=timezone.now())
    while_open = claimed()

    record_results([(probe, SendResult(ok=True))])

    assert while_open == {}
    assert claimed() == {("one", BAD): 2, ("two", BAD): 3}


def test_the_lane_of_a_failed_call_is_checked_at_its_retry(tenant: Tenant) -> None:
    queue_calls(tenant.app, 1)
    (row,) = claim_due(Delivery.WEBHOOK, 1)

    record_results([(row, SendResult(ok=False, server_failed=True, error="No answer."))])

    row.refresh_from_db()
    assert next_check(Delivery.WEBHOOK) == row.next_at < database_now() + timedelta(seconds=7)


def request_booking(tenant: Tenant) -> Any:
    resource = tenant.make_resource(email="ada@example.com")
    start = (timezone.now() + timedelta(hours=30)).replace(microsecond=0)
    span = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    return tenant.book(resource_id=resource["id"], graph="confirm_decline", **span).data


@pytest.mark.django_db(transaction=True)
def test_mails_waiting_for_an_earlier_mail(tenant: Tenant, mails: MailSink) -> None:
    """The lane is checked after ten seconds at the latest, and at once after the earlier mail."""
    booking = request_booking(tenant)
    mails.answer = lambda to: "451 later" if to == "marty@example.com" else None
    run_dispatcher(Delivery.EMAIL)
    tenant.put(f"/bookings/{booking['id']}/decline")
    run_dispatcher(Delivery.EMAIL)
    held = checks()
    Delivery.objects.filter(kind="tentative", state="scheduled").update(next_at=timezone.now())
    mails.answer = lambda to: None
    run_dispatcher(Delivery.EMAIL)

    assert held[0] == (tenant.app.slug, "", HELD_PAUSE.seconds, True, True)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}


@pytest.mark.django_db(transaction=True)
def test_a_result_just_after_a_claim_frees_the_next_mail(
    tenant: Tenant, mails: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run goes on if the mail that holds another one back ends between a claim and its result."""
    booking = request_booking(tenant)
    tenant.put(f"/bookings/{booking['id']}/decline")
    is_sendable, finished = threading.Event(), threading.Semaphore(0)

    class Results(queue.SimpleQueue):
        def put(self, result: Any) -> None:
            super().put(result)
            finished.release()

    run = Dispatcher(Delivery.EMAIL)
    run.done = Results()

    def send_after_second_claim(*job: Any) -> SendResult:
        assert is_sendable.wait(10)
        return SendResult(ok=True)

    def claim(kind: str, limit: int) -> list[Delivery]:
        rows = claim_due(kind, limit)
        if not rows:
            is_sendable.set()
            assert all(finished.acquire(timeout=10) for _ in range(run.in_progress))
        return rows

    monkeypatch.setattr(dispatcher, "send_and_log", send_after_second_claim)
    monkeypatch.setattr(dispatcher, "claim_due", claim)
    monkeypatch.setattr(dispatcher, "FIRST_RESULT", 0.01)
    run.run()

    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}


def test_cap_per_app(tenant: Tenant, settings: Any) -> None:
    settings.DELIVERY_APP_CAP_MAX = 100
    settings.DELIVERY_ENDPOINT_CAP = 50
    queue_calls(tenant.app, 100)
    path = f"/apps/{tenant.app.slug}"
    default = sum(claimed(100).values())
    Delivery.objects.filter(state="sending").delete()
    queue_calls(tenant.app, 100)

    set_to = tenant.put(path, {"settings": {"delivery_cap": 3}})
    taken = claimed(100)
    refused = tenant.put(path, {"settings": {"delivery_cap": 101}})

    assert default == 50
    assert (set_to.status, set_to.data["settings"]["delivery_cap"]) == (200, 3)
    assert taken == {(tenant.app.slug, GOOD): 3}
    assert (refused.status, refused.json["errors"]) == (
        422,
        {"settings.delivery_cap": ["Must be at most 100."]},
    )


@pytest.mark.parametrize("cap", ["12", 0, -1, 2.5, True, None, [], {}])
def test_old_stored_cap_is_ignored(tenant: Tenant, cap: Any) -> None:
    App.objects.filter(pk=tenant.app.pk).update(settings={"delivery_cap": cap})
    queue_calls(tenant.app, 2)

    assert claimed() == {(tenant.app.slug, GOOD): 2}


def test_query_count_of_a_claim_is_constant(
    make_tenant: Callable[..., Tenant], settings: Any
) -> None:
    settings.DELIVERY_ENDPOINT_CAP = 100
    counts = []
    for apps, calls in ((1, 1), (8, 12)):
        for _ in range(apps):
            queue_calls(make_tenant().app, calls)
        with Queries(connection) as captured:
            taken = claim_due(Delivery.WEBHOOK, 16)
        counts.append((len(taken), len(captured.captured_queries)))

    assert counts == [(1, counts[0][1]), (16, counts[0][1])]


@pytest.mark.postgresql
@pytest.mark.parametrize("is_control", [False, True], ids=["claim", "control"])
def test_a_claim_reads_no_rows_of_another_lane(
    make_tenant: Callable[..., Tenant], settings: Any, is_control: bool
) -> None:
    """The control has an index by due time alone, which the planner prefers for one large lane."""
    settings.DELIVERY_ENDPOINT_CAP = 1
    if is_control:
        with connection.cursor() as cursor:
            cursor.execute(INDEX_BY_DUE_TIME)
    queue_calls(make_tenant().app, BACKLOG, age=3600)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE notifications_delivery")
    claim_due(Delivery.WEBHOOK, 16)  # finds the large lane full
    queue_calls(make_tenant().app, 3, BAD)

    with CaptureQueriesContext(connection) as captured:
        claim_due(Delivery.WEBHOOK, 16)

    reads = [query["sql"] for query in captured if '"notifications_delivery"' in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN_CLAIM)
    read = max(rows_read(explain(sql, None)) for sql in reads if sql.startswith("SELECT"))
    assert read >= BACKLOG if is_control else read < 10, read


BACKLOG = 3_000
INDEX_BY_DUE_TIME = """
CREATE INDEX by_due_time ON notifications_delivery (type, next_at, id) WHERE next_at IS NOT NULL
"""


def rows_read(plan: Mapping[str, Any]) -> int:
    """Return the most rows that one node of the plan reads from the deliveries."""
    return max(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes_of(plan)
        if node.get("Relation Name") == "notifications_delivery"
    )


def test_deliveries_that_an_update_makes_due_are_claimed(tenant: Tenant) -> None:
    """The database writes the checks of their lanes."""
    queue_calls(tenant.app, 3)
    assert len(claim_due(Delivery.WEBHOOK, 1)) == 1
    Delivery.objects.update(next_at=None, state="delivered", finished_at=timezone.now())
    LaneCheck.objects.all().delete()

    Delivery.objects.update(next_at=timezone.now(), state="scheduled", finished_at=None)

    assert claimed() == {(tenant.app.slug, GOOD): 3}


# --- Checks of lanes that are empty or of other apps ---------------------------------------------
@pytest.mark.parametrize("max_checks", [1000, 30], ids=["all are read", "some are read"])
@pytest.mark.parametrize("servers", [1, 40], ids=["one lane", "40 lanes"])
def test_empty_lanes_do_not_delay_other_apps(
    make_tenant: Callable[..., Tenant],
    monkeypatch: pytest.MonkeyPatch,
    servers: int,
    max_checks: int,
) -> None:
    """One claim takes a lane of each app, and of its lanes all the checks that it has read."""
    monkeypatch.setattr(lanes, "MAX_CHECKS", max_checks)
    cancelled, quiet = make_tenant(slug="cancelled").app, make_tenant(slug="quiet").app
    add_empty_checks(cancelled, 120, servers=servers)
    queue_calls(quiet, 1, age=1)

    assert claimed(10) == {("quiet", GOOD): 1}
    taken = {(1, 1000): 120, (1, 30): 30, (40, 1000): 9 * 3, (40, 30): 9}
    assert LaneCheck.objects.filter(app=cancelled).count() == 120 - taken[servers, max_checks]


def test_many_lanes_do_not_delay_other_apps(make_tenant: Callable[..., Tenant]) -> None:
    busy, quiet = make_tenant(slug="busy").app, make_tenant(slug="quiet").app
    for number in range(20):
        queue_calls(busy, 1, f"https://s{number}.example:443", age=3600 - number)
    queue_calls(quiet, 1, age=1)

    taken = claimed(4)

    assert taken == {
        ("busy", "https://s0.example:443"): 1,
        ("busy", "https://s1.example:443"): 1,
        ("busy", "https://s2.example:443"): 1,
        ("quiet", GOOD): 1,
    }


@pytest.mark.django_db(transaction=True)
def test_run_continues_after_empty_lanes(tenant: Tenant, settings: Any) -> None:
    settings.DELIVERY_THREADS = 1
    add_empty_checks(tenant.app, 3 * dispatcher.AHEAD, servers=3 * dispatcher.AHEAD)
    (row,) = queue_calls(tenant.app, 1, age=1)

    run_dispatcher(Delivery.WEBHOOK)

    row.refresh_from_db()
    assert (row.state, row.reason) == ("failed", NOT_RENDERED)  # it has neither body nor booking


def test_cancelled_reminders_leave_no_checks_of_empty_lanes(tenant: Tenant) -> None:
    resource = tenant.make_resource()
    servers = [f"https://s{number}.example" for number in range(3)]

    def book(hours: int, *urls: str) -> str:
        start = (timezone.now() + timedelta(hours=hours)).replace(microsecond=0)
        return tenant.book(
            resource_id=resource["id"],
            start=start.isoformat(),
            end=(start + timedelta(hours=1)).isoformat(),
            event_notifications=[
                {
                    "type": "webhook",
                    "settings": {"url": f"{url}/hook"},
                    "when": {"type": "before", "unit": "hours", "time": 1},
                }
                for url in urls
            ],
        ).data["id"]

    cancelled = [book(30, *servers), book(40, *servers)]
    book(50, servers[0])
    for booking_id in cancelled:
        tenant.put(f"/bookings/{booking_id}/cancel")

    left = set(LaneCheck.objects.filter(type="webhook").values_list("endpoint", flat=True))
    assert left == {f"{servers[0]}:443"}


def test_the_nightly_purge_deletes_future_checks_of_empty_lanes(tenant: Tenant) -> None:
    add_empty_checks(tenant.app, 5, servers=3, due_in=3600)
    queue_calls(tenant.app, 1, age=-3600)

    purge_deliveries()

    assert checks() == [(tenant.app.slug, GOOD, 3600, False, False)]


@pytest.mark.postgresql
@pytest.mark.deep
@pytest.mark.parametrize("servers", [1, 100_000], ids=["one lane", "100,000 lanes"])
def test_many_empty_checks_do_not_delay_other_apps(
    make_tenant: Callable[..., Tenant], servers: int
) -> None:
    cancelled, quiet = make_tenant(slug="cancelled").app, make_tenant(slug="quiet").app
    add_empty_checks(cancelled, 100_000, servers=servers)
    queue_calls(quiet, 1, age=1)

    assert claimed(64) == {("quiet", GOOD): 1}


# --- Too many failing servers ---------------------------------------------------------------------
def fail(row: Delivery) -> None:
    Delivery.objects.filter(id=row.id).update(
        state="sending", lease_token=uuid.uuid4(), next_at=timezone.now() + LEASE
    )
    row.refresh_from_db()
    record_results([(row, SendResult(ok=False, server_failed=True, error="No answer."))])
    row.refresh_from_db()


def test_number_of_failing_servers_per_app_is_limited(
    tenant: Tenant, make_tenant: Callable[..., Tenant], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bookings go on; another app and the known servers get their retries."""
    monkeypatch.setattr(circuit_breaker, "MAX_FAILING_SERVERS", 3)
    other = make_tenant().app
    addresses = [f"https://s{number}.example:443" for number in range(4)]
    calls = [queue_calls(tenant.app, 1, address)[0] for address in addresses]
    good = tenant.post("/webhooks", {"url": "https://s1.example/hook"})
    for row in calls:
        fail(row)
    again = queue_calls(tenant.app, 1, addresses[0])[0]
    others = queue_calls(other, 1, addresses[3])[0]
    for row in (again, others):
        fail(row)
    new = tenant.post("/webhooks", {"url": "https://new.example/hook"})
    moved = tenant.put(f"/webhooks/{good.data['id']}", {"url": "https://new.example/hook"})
    known = tenant.post("/webhooks", {"url": "https://s1.example/other"})

    sentence = circuit_breaker.TOO_MANY_FAILING
    assert [(row.state, row.reason) for row in calls] == [
        *[("scheduled", "No answer.")] * 3,
        ("skipped", sentence),
    ]
    assert [row.state for row in (again, others)] == ["scheduled"] * 2
    assert Endpoint.objects.filter(address=addresses[3]).get().failures == 1  # the other app's
    assert [(answer.status, answer.json.get("code")) for answer in (good, new, moved, known)] == [
        (201, None),
        (409, "policy"),
        (409, "policy"),
        (201, None),
    ]
    assert (new.error["policy"], new.error["limit"]) == ("failing_servers", 1000)


# --- Races ----------------------------------------------------------------------------------------
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_updated", [False, True], ids=["inserted", "control"])
def test_booking_committed_after_the_check_of_its_lane(tenant: Tenant, is_updated: bool) -> None:
    """The claim can't see its calls. The control has one row per lane, which the booking would only
    update if it were later: the claim then removes what the booking relies on."""
    queue_calls(tenant.app, 1)
    written, go_on = threading.Event(), threading.Event()

    def book() -> None:
        with transaction.atomic():
            queue_calls(tenant.app, 1, age=0)
            if is_updated:
                own = LaneCheck.objects.filter(next_at__gt=timezone.now() - timedelta(seconds=30))
                own.delete()
                LaneCheck.objects.filter(next_at__gt=timezone.now()).update(next_at=timezone.now())
            written.set()
            go_on.wait()
        connection.close()

    booking = threading.Thread(target=book)
    booking.start()
    written.wait()
    first = claim_due(Delivery.WEBHOOK, 10)
    record_results([(row, SendResult(ok=True)) for row in first])
    LaneCheck.objects.update(next_at=timezone.now())
    claim_due(Delivery.WEBHOOK, 10)
    go_on.set()
    booking.join()

    assert len(first) == 1
    assert sum(claimed().values()) == (0 if is_updated else 1)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_deliveries_locked_by_others_are_claimed_later(tenant: Tenant) -> None:
    rows = queue_calls(tenant.app, 3)
    held, go_on = threading.Event(), threading.Event()

    def lock() -> None:
        with transaction.atomic():
            list(Delivery.objects.filter(id=rows[0].id).select_for_update())
            held.set()
            go_on.wait()
        connection.close()

    locker = threading.Thread(target=lock)
    locker.start()
    held.wait()
    while_locked = len(claim_due(Delivery.WEBHOOK, 10))
    pause = next_check(Delivery.WEBHOOK) - database_now()
    go_on.set()
    locker.join()
    LaneCheck.objects.update(next_at=timezone.now())

    assert while_locked == 2
    assert pause <= LOCKED_PAUSE
    assert len(claim_due(Delivery.WEBHOOK, 10)) == 1


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_dispatchers_share_many_lanes(make_tenant: Callable[..., Tenant], settings: Any) -> None:
    """Four at once: each delivery is claimed once, and no app or server gets more than its cap."""
    settings.DELIVERY_ENDPOINT_CAP, settings.DELIVERY_APP_CAP = 4, 6
    settings.DELIVERY_APP_CAP_MAX = 6
    apps = [make_tenant().app for _ in range(4)]
    for app in apps:
        for server in (GOOD, BAD, f"https://{app.slug}.example:443"):
            queue_calls(app, 10, server)
    taken: list[Delivery] = []
    over: list[Any] = []
    until = datetime.now() + timedelta(seconds=20)

    def work() -> None:
        while datetime.now() < until:
            rows = claim_due(Delivery.WEBHOOK, 16) or []
            taken.extend(rows)
            flying = Delivery.objects.filter(state="sending").values_list("endpoint", "app_id")
            found = list(flying)
            over.extend(e for e, n in Counter(e for e, _ in found).items() if n > 4)
            over.extend(a for a, n in Counter(a for _, a in found).items() if n > 6)
            record_results([(row, SendResult(ok=True)) for row in rows])
            if not Delivery.objects.filter(next_at__isnull=False).exists():
                break
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert over == []
    assert len(taken) == len({row.id for row in taken}) == 120


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_held", [True, False], ids=["claim", "control"])
def test_lanes_of_a_concurrent_claim_are_skipped(
    make_tenant: Callable[..., Tenant], is_held: bool
) -> None:
    """While a claim has the busy app's lanes, another one finds the quiet app's. Without the first
    claim, the second one has lanes of both."""
    busy, quiet = make_tenant(slug="busy").app, make_tenant(slug="quiet").app
    for number in range(20):
        queue_calls(busy, 1, f"https://s{number}.example:443", age=3600)
    taken, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            assert len(take_lanes(Delivery.WEBHOOK, 2, database_now())) == 2
            taken.set()
            go_on.wait()
        connection.close()

    holder = threading.Thread(target=hold)
    if is_held:
        holder.start()
        taken.wait()
    queue_calls(quiet, 2, age=1)
    queue_calls(quiet, 2, BAD, age=1)
    rows = claim_due(Delivery.WEBHOOK, 4)
    go_on.set()
    if is_held:
        holder.join()

    slugs = {"busy", "quiet"} - ({"busy"} if is_held else set())
    assert {row.app.slug for row in rows} == slugs
    assert len(rows) == 4
