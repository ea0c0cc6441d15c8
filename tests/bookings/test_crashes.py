"""A crash, a deadlock, a lock that does not come: all of a booking is left behind, or nothing."""

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from django.db import OperationalError

from bookings.models import Booking
from bookings.views import bookings as views
from tests.bookings.conftest import FAULTY
from tests.bookings.race_clients import Request, call
from tests.bookings.race_tenant import CUSTOMER, LiveTenant, open_database, span
from tests.world import Tenant

pytestmark = pytest.mark.both_databases

WRITES = [
    'INSERT INTO "?apps_config_idempotencyrecord',
    'INSERT INTO "availability_event"',
    'INSERT INTO "bookings_booking"',
    'INSERT INTO "bookings_customer"',
    'INSERT INTO "bookings_statechange"',
    'UPDATE "apps_config_idempotencyrecord"',
]


@pytest.fixture
def resource(faulty_tenant: LiveTenant) -> str:
    return faulty_tenant.make_resources(1)[0]


# --- The process dies -----------------------------------------------------------------------------
def crash_by(tenant: LiveTenant, request: Request) -> None:
    """Sends a request that kills the service, and starts it again."""
    with pytest.raises((OSError, http.client.HTTPException)):
        call(tenant.service.url, request)
    tenant.service.processes["web"].wait(30)
    tenant.service.start_web(wsgi=FAULTY)


def test_retry_after_lost_response_gets_the_same_booking(
    faulty_tenant: LiveTenant, resource: str
) -> None:
    headers = {"Idempotency_Key": "lost"}
    wanted = {"resource_id": resource, "headers": headers, **span(10)}

    crash_by(faulty_tenant, faulty_tenant.with_faults(do="kill_at_the_end").booking(**wanted))
    made = faulty_tenant.call("GET", f"/bookings?search=resource.id:{resource}").data
    again = call(faulty_tenant.service.url, faulty_tenant.booking(**wanted))

    assert (again.status, again.headers["Idempotent-Replayed"]) == (201, "true")
    assert made == [{name: again.data[name] for name in made[0]}]
    assert len(faulty_tenant.steps_of(again.data["id"])) == 1
    assert len(faulty_tenant.held([resource])) == 1


def test_crash_before_commit_leaves_no_rows(faulty_tenant: LiveTenant, resource: str) -> None:
    headers = {"Idempotency_Key": "torn"}
    wanted = {"resource_id": resource, "headers": headers, **span(10)}
    deadly = faulty_tenant.with_faults(at=WRITES[-1], do="kill")
    before = faulty_tenant.count_rows()

    crash_by(faulty_tenant, deadly.booking(**wanted))
    after = faulty_tenant.count_rows()
    again = call(faulty_tenant.service.url, faulty_tenant.booking(**wanted))

    assert after == before
    assert (again.status, again.headers.get("Idempotent-Replayed")) == (201, None)


# --- A statement in the middle fails --------------------------------------------------------------
@pytest.mark.every_case
@pytest.mark.parametrize("write", WRITES)
def test_error_between_writes_leaves_no_rows(
    faulty_tenant: LiveTenant, resource: str, write: str
) -> None:
    headers = {"Idempotency_Key": f"after {write}".replace(" ", "-")}
    wanted = {"resource_id": resource, "headers": headers, **span(10)}
    failing = faulty_tenant.with_faults(at=write, do="raise")
    before = faulty_tenant.count_rows()

    failed = call(faulty_tenant.service.url, failing.booking(**wanted))
    after = faulty_tenant.count_rows()
    again = call(faulty_tenant.service.url, faulty_tenant.booking(**wanted))

    assert (failed.outcome, after) == ("500 internal", before)
    assert (again.status, again.headers.get("Idempotent-Replayed")) == (201, None)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "write",
    [
        'UPDATE "availability_event"',
        'UPDATE "bookings_booking"',
        'INSERT INTO "bookings_statechange"',
    ],
)
@pytest.mark.parametrize("step", ["confirm", "reschedule"])
def test_error_during_a_transition_keeps_the_booking(
    faulty_tenant: LiveTenant, resource: str, step: str, write: str
) -> None:
    graph = "confirm_decline" if step == "confirm" else "instant"
    path = f"/bookings/{faulty_tenant.book(graph=graph, resource_id=resource, **span(10))['id']}"
    failing = faulty_tenant.with_faults(at=write, do="raise")
    method, body = ("PUT", {}) if step == "confirm" else ("POST", span(12))
    whole, held = f"{path}?include=logs", faulty_tenant.held([resource])
    before = faulty_tenant.call("GET", whole).data

    failed = failing.call(method, f"{path}/{step}", body)

    assert failed.outcome == "500 internal"
    assert faulty_tenant.call("GET", whole).data == before
    assert faulty_tenant.held([resource]) == held
    assert faulty_tenant.call(method, f"{path}/{step}", body).outcome == "200"


# --- A lock does not come -------------------------------------------------------------------------
@contextmanager
def row_locked(tenant: LiveTenant, table: str, row: str) -> Iterator[None]:
    """Another transaction holds the row (on SQLite: everything)."""
    with open_database(tenant.service.database_url) as other:
        if tenant.is_sqlite:
            other.execute("BEGIN IMMEDIATE")
        else:
            other.execute("BEGIN")
            other.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR UPDATE", [row])
        yield
        other.execute("ROLLBACK")


def requests_of(tenant: LiveTenant, resource: str, booking: str) -> dict[str, Request]:
    return {
        "book": tenant.booking(resource_id=resource, **span(12)),
        "confirm": tenant.act(booking, "confirm"),
        "decline": tenant.act(booking, "decline"),
        "move": tenant.move(booking, span(14)),
        "note": tenant.request("PUT", f"/bookings/{booking}", {"meta": {"a": 1}}),
        "delete": tenant.request("DELETE", f"/resources/{resource}"),
    }


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("book", "availability_resource"),
        ("confirm", "bookings_booking"),
        ("confirm", "availability_resource"),
        pytest.param("decline", "bookings_booking", marks=pytest.mark.deep),
        pytest.param("move", "bookings_booking", marks=pytest.mark.deep),
        ("move", "availability_resource"),
        ("note", "bookings_booking"),
        ("delete", "availability_resource"),
    ],
)
def test_lock_timeout_is_503_with_retry_after(
    faulty_tenant: LiveTenant, resource: str, name: str, table: str
) -> None:
    booking = faulty_tenant.book(graph="confirm_decline", resource_id=resource, **span(10))["id"]
    impatient = faulty_tenant.with_faults(patience=100)
    request = requests_of(impatient, resource, booking)[name]
    whole = f"/bookings/{booking}?include=logs"
    before = (faulty_tenant.count_rows(), faulty_tenant.call("GET", whole).data)

    row = {"availability_resource": resource, "bookings_booking": booking}[table]
    with row_locked(faulty_tenant, table, row):
        answer = call(faulty_tenant.service.url, request)

    assert (answer.outcome, answer.headers["Retry-After"]) == ("503 unavailable", "1")
    assert (faulty_tenant.count_rows(), faulty_tenant.call("GET", whole).data) == before
    expected = {"book": "201", "delete": "409 in_use"}.get(name, "200")
    assert call(faulty_tenant.service.url, request).outcome == expected


@pytest.mark.deep
def test_lock_timeout_of_the_service(live_tenant: LiveTenant) -> None:
    (resource,) = live_tenant.make_resources(1)
    book = live_tenant.booking(resource_id=resource, **span(10))

    with row_locked(live_tenant, "availability_resource", resource):
        answer = call(live_tenant.service.url, book)

    assert (answer.outcome, answer.headers["Retry-After"]) == ("503 unavailable", "1")
    assert call(live_tenant.service.url, book).outcome == "201"


# --- Two wait for each other ----------------------------------------------------------------------
@pytest.mark.postgresql  # SQLite has one lock
def test_deadlock_victim_is_retried(live_tenant: LiveTenant) -> None:
    """Another transaction holds the second resource and then asks for the first."""
    first, second = sorted(live_tenant.make_resources(2))
    project = live_tenant.make_project([first, second], "mutual")
    book = live_tenant.booking(project_id=project, **span(10))
    lock = "SELECT 1 FROM availability_resource WHERE id = %s FOR UPDATE"

    with open_database(live_tenant.service.database_url) as other, ThreadPoolExecutor(1) as pool:
        # The service is the one that finds the deadlock and gives way.
        other.execute("SET deadlock_timeout = '10min'")
        other.execute("BEGIN")
        other.execute(lock, [second])
        booked = pool.submit(call, live_tenant.service.url, book)
        live_tenant.wait_for_a_waiter()
        other.execute(lock, [first])
        other.execute("COMMIT")

    assert booked.result().outcome == "201"
    assert len(live_tenant.held([first, second])) == 2


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("sqlstate", "failures", "outcome", "tries"),
    [
        ("40P01", 1, 201, 2),  # deadlock
        ("40P01", 2, 201, 3),
        ("40P01", 3, 503, 3),
        ("40001", 1, 201, 2),  # serialization failure
        ("55P03", 1, 503, 1),  # lock not available
        ("57014", 1, 503, 1),  # statement timeout
    ],
)
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "again"}])
def test_deadlock_is_retried_twice(
    tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
    sqlstate: str,
    failures: int,
    outcome: int,
    tries: int,
) -> None:
    calls = []
    make_booking = views.make_booking

    def fail_first(*args: object, **kwargs: object) -> Booking:
        calls.append(args)
        if len(calls) <= failures:
            raise OperationalError("as asked") from psycopg.errors.lookup(sqlstate)()
        return make_booking(*args, **kwargs)

    monkeypatch.setattr(views, "make_booking", fail_first)
    resource = tenant.make_resource()["id"]
    body = {"what": "Race", "customer": CUSTOMER, "resource_id": resource, **span(10)}

    answer = tenant.post("/bookings", body, **headers)

    assert (answer.status, len(calls)) == (outcome, tries)
    assert answer.headers.get("Retry-After") == ("1" if outcome == 503 else None)
