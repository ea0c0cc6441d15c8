"""Two processes complete the same bookings at once: each booking is completed once, and its
webhook called once.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bookings.race_tenant import LiveTenant, span
from tests.service_shell import Shell
from tests.services import FORK_SERVER, ROOT

pytestmark = pytest.mark.both_databases

BOOKINGS = 12
# Small transactions, so that the processes meet in the middle of the work.
COMPLETE = """
import contextlib, time
from datetime import timedelta
from pathlib import Path

from django.utils import timezone
from bookings.models import Booking
from bookings.services import complete_ended, transitions

folder, number, is_locked = Path({folder!r}), {number}, {is_locked}

def meet(place):
    (folder / f"{{place}}{{number}}").touch()
    ends = time.monotonic() + 30
    while len(list(folder.glob(f"{{place}}?"))) < 2 and time.monotonic() < ends:
        time.sleep(0.01)

def read_without_lock(app, ids, **options):
    rows = Booking.objects.filter(id__in=ids).order_by("id")
    rows = rows.select_related("event__calendar", "resource", "project", "app")
    found = list(rows.prefetch_related("event__companions"))
    meet("read")
    return found

transitions.MAX_TOGETHER = 2
if not is_locked:
    transitions.MAX_TOGETHER = 100
    transitions.lock_bookings = read_without_lock
    transitions.transaction.atomic = contextlib.nullcontext
meet("start")
print(complete_ended(now=timezone.now() + timedelta(days=400)))
"""


def complete_twice(tenant: LiveTenant, folder: Path, *, is_locked: bool) -> list[int]:
    """Run two processes; return how many bookings each has completed."""

    def complete(number: int) -> int:
        shell = Shell(FORK_SERVER, tenant.service.env, ROOT)
        code = COMPLETE.format(folder=str(folder), number=number, is_locked=is_locked)
        try:
            return int(shell.run(code))
        finally:
            shell.stop()

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(complete, (1, 2)))


def book_all(tenant: LiveTenant) -> list[str]:
    """Make bookings whose completion a webhook is told of."""
    tenant.call("POST", "/webhooks", {"url": "https://example.com/", "states": ["completed"]})
    (resource,) = tenant.make_resources(1)
    return [tenant.book(resource_id=resource, **span(hour))["id"] for hour in range(BOOKINGS)]


def count_calls(tenant: LiveTenant, booking: str) -> int:
    """How often the webhooks are told of the booking's completion."""
    key = booking.replace("-", "") if tenant.is_sqlite else booking
    calls = "notifications_changecalls JOIN bookings_statechange AS change ON change.id = change_id"
    counted = f"SELECT count(*) FROM {calls} WHERE kind = 'completed'"
    ((count,),) = tenant.rows(f"{counted} AND change.booking_id = '{key}'")
    return count


CREATED, COMPLETED = ("initialized", "confirm", "confirmed"), ("confirmed", "complete", "completed")


def test_each_booking_is_completed_by_one_process(live_tenant: LiveTenant, tmp_path: Path) -> None:
    bookings = book_all(live_tenant)

    done = complete_twice(live_tenant, tmp_path, is_locked=True)

    # SQLite's writers wait for each other, so one of them may find nothing left.
    assert sum(done) >= BOOKINGS
    for booking in bookings:
        assert live_tenant.steps_of(booking) == [CREATED, COMPLETED]
        assert count_calls(live_tenant, booking) == 1


def test_control_without_locks_bookings_are_completed_twice(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    """In a database that no other test audits."""
    bookings = book_all(faulty_tenant)

    complete_twice(faulty_tenant, tmp_path, is_locked=False)

    steps = [CREATED, COMPLETED, COMPLETED]
    twice = [booking for booking in bookings if faulty_tenant.steps_of(booking) == steps]
    assert twice
    assert [count_calls(faulty_tenant, booking) for booking in twice] == [2] * len(twice)
