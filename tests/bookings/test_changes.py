"""`updated_since` skips nothing, whatever transactions are open (api.md section 2)."""

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from availability.models import Resource
from bookings.models import Booking
from common.db import updated_at
from tests.bookings.booking_drafts import MARTY
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

WRITERS = 8
SERIES = 366


def body(resource: str, day: datetime, **given: Any) -> dict[str, Any]:
    times = {"start": day.isoformat(), "end": (day + timedelta(minutes=30)).isoformat()}
    return {"resource_id": resource, "what": "A", "customer": MARTY, **times, **given}


def book(tenant: Tenant, given: dict[str, Any]) -> None:
    """Until it is made: a lock that is waited for too long is 503."""
    try:
        while (answer := tenant.post("/bookings", given)).status == 503:
            pass
        assert answer.status == 201, answer.json
    finally:
        connection.close()


class Reader:
    """Follows the newest `updated_at` that it has seen, as a client does."""

    def __init__(self, read: Callable[[str], list[tuple[str, str]]]) -> None:
        self.read = read
        self.since = "2000-01-01T00:00:00Z"
        self.seen: set[str] = set()

    def look(self) -> None:
        rows = self.read(self.since)
        self.seen |= {booking for booking, _ in rows}
        self.since = max([self.since, *(stamp for _, stamp in rows)], key=instant)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def through_the_api(tenant: Tenant) -> Callable[[str], list[tuple[str, str]]]:
    def read(since: str) -> list[tuple[str, str]]:
        query = {"updated_since": since, "limit": 1000}
        answer = tenant.client.get("/v2/bookings", query, headers=tenant.headers).json()
        assert answer["last_page"] == 1
        return [(row["id"], row["updated_at"]) for row in answer["data"]]

    return read


def naively(tenant: Tenant) -> Callable[[str], list[tuple[str, str]]]:
    """The control: all rows that are committed, those of open transactions' time too."""

    def read(since: str) -> list[tuple[str, str]]:
        rows = Booking.objects.filter(app=tenant.app, updated_at__gte=instant(since))
        found = rows.values_list("id", "updated_at")
        return [(str(key), stamp.replace(microsecond=0).isoformat()) for key, stamp in found]

    return read


# Of this database: each waiting process holds a lock of one of its tables.
WAITERS = """
SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND pid IN (
  SELECT pid FROM pg_locks JOIN pg_database ON oid = database WHERE datname = current_database())
"""


def wait_for_waiters(count: int) -> None:
    """Until so many transactions wait for a lock."""
    deadline = time.monotonic() + 20
    with connection.cursor() as cursor:
        while True:
            cursor.execute(WAITERS)
            if cursor.fetchone()[0] >= count:
                return
            assert time.monotonic() < deadline, f"fewer than {count} wait"
            time.sleep(0.01)


def count_lost_changes(tenant: Tenant) -> tuple[int, int]:
    """How many changes the two readers never see: of the API, and of the control.

    A series and eight writers have begun and wait for one resource's lock, while others commit.
    """
    busy, quiet = (tenant.make_resource()["id"] for _ in range(2))
    day = (timezone.now() + timedelta(days=2)).replace(hour=9, minute=0, second=0, microsecond=0)
    later = day + timedelta(hours=2)
    waiting = [body(busy, day, recurrence=f"FREQ=DAILY;COUNT={SERIES}")]
    waiting += [body(busy, later + timedelta(hours=hour)) for hour in range(WRITERS)]
    threads = [threading.Thread(target=book, args=(tenant, given)) for given in waiting]
    readers = [Reader(through_the_api(tenant)), Reader(naively(tenant))]

    def look_for(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for reader in readers:
                reader.look()

    with transaction.atomic():
        Resource.objects.select_for_update().get(id=busy)
        for thread in threads:
            thread.start()
        wait_for_waiters(len(threads))
        time.sleep(1.5)  # so that the other booking gets a later stamp, which is in whole seconds
        other = threading.Thread(target=book, args=(tenant, body(quiet, day)))
        other.start()
        other.join()
        # In this transaction no reader would see what others commit meanwhile as a client does.
        outside = threading.Thread(target=lambda: (look_for(0.5), connection.close()))
        outside.start()
        outside.join()
    while any(thread.is_alive() for thread in threads):
        look_for(0.1)
    look_for(0.1)
    made = {str(key) for key in Booking.objects.filter(app=tenant.app).values_list("id", flat=True)}
    assert len(made) == SERIES + WRITERS + 1
    api, naive = (len(made - reader.seen) for reader in readers)
    return api, naive


@pytest.mark.postgresql
@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.deep)])
def test_updated_since_skips_no_changes(make_tenant: Callable[..., Tenant], rounds: int) -> None:
    lost = [count_lost_changes(make_tenant()) for _ in range(rounds)]

    assert [api for api, _ in lost] == [0] * rounds
    assert all(naive > 0 for _, naive in lost), lost


@pytest.mark.postgresql
def test_changes_are_listed_up_to_the_oldest_open_transaction(tenant: Tenant) -> None:
    resource = tenant.make_resource()["id"]
    day = timezone.now() + timedelta(days=2)
    first = tenant.post("/bookings", body(resource, day)).data
    began, go_on = threading.Event(), threading.Event()
    starts: list[datetime] = []

    def stay_open() -> None:
        with transaction.atomic():
            starts.append(updated_at.transaction_start())
            began.set()
            go_on.wait(20)
        connection.close()

    thread = threading.Thread(target=stay_open)
    thread.start()
    began.wait(20)
    second = tenant.post("/bookings", body(resource, day + timedelta(hours=1))).data
    held = tenant.get("/bookings?updated_since=2000-01-01")
    unfiltered = tenant.get("/bookings")
    age = updated_at.oldest_transaction_age()
    go_on.set()
    thread.join()
    after = tenant.get("/bookings?updated_since=2000-01-01")

    assert [row["id"] for row in held.data] == [first["id"]]
    assert held.json["total"] == 1
    until = starts[0].strftime("%Y-%m-%dT%H:%M:%S+0000")
    assert held.headers["Service-Complete-Until"] == until
    assert [row["id"] for row in unfiltered.data] == [second["id"], first["id"]]
    assert "Service-Complete-Until" not in unfiltered.headers
    assert timedelta(0) < age < timedelta(seconds=20)
    assert [row["id"] for row in after.data] == [second["id"], first["id"]]
    assert updated_at.oldest_transaction_age() == timedelta(0)


@pytest.mark.postgresql
@pytest.mark.parametrize(("name", "delays"), [("pg_dump", False), ("psql", True)])
def test_backup_delays_no_changes(tenant: Tenant, name: str, delays: bool) -> None:
    began, go_on = threading.Event(), threading.Event()

    def read_for_long() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET application_name = '{name}'")
            began.set()
            go_on.wait(20)
        connection.close()

    thread = threading.Thread(target=read_for_long)
    thread.start()
    began.wait(20)
    resource = tenant.make_resource()["id"]
    booked = tenant.post("/bookings", body(resource, timezone.now() + timedelta(days=2))).data
    listed = tenant.get("/bookings?updated_since=2000-01-01")
    age = updated_at.oldest_transaction_age()
    go_on.set()
    thread.join()

    assert [row["id"] for row in listed.data] == ([] if delays else [booked["id"]])
    assert (age > timedelta(0)) == delays


def test_updated_at_is_the_start_of_the_transaction(tenant: Tenant) -> None:
    resource = tenant.make_resource()["id"]
    day = timezone.now() + timedelta(days=2)

    series = tenant.post("/bookings", body(resource, day, recurrence="FREQ=DAILY;COUNT=3")).data

    stamps = set(Booking.objects.values_list("updated_at", flat=True))
    stamps |= set(Booking.objects.values_list("event__updated_at", flat=True))
    assert len(stamps) == 1 or connection.vendor == "sqlite"
    answer = tenant.get("/bookings?updated_since=2000-01-01")
    assert answer.json["total"] == len(series["series"]["occurrences"]) == 3
    assert answer.headers["Service-Complete-Until"] >= max(row["updated_at"] for row in answer.data)


def test_rollback_resets_the_start_of_the_transaction(tenant: Tenant) -> None:
    starts = []
    for _ in range(2):
        with transaction.atomic():
            starts += [updated_at.transaction_start(), updated_at.transaction_start()]
            transaction.set_rollback(True)

    first, again, second, _ = starts
    assert (first == again or connection.vendor == "sqlite", second > first) == (True, True)
