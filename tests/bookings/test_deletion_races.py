"""What is deleted or changed while another request is using it: one of the two comes first.

`paused_request` stops a request at a statement, so that the order of the two is fixed.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bookings.models import Booking
from bookings.services import transitions
from tests.bookings.race_clients import Answer, call
from tests.bookings.race_tenant import DAY, LiveTenant, span
from tests.world import Tenant

pytestmark = pytest.mark.both_databases


def race_booking_with_deletion(tenant: LiveTenant, pairs: int = 8) -> Counter[tuple[str, str]]:
    """Each resource is booked and deleted at once."""
    resources = tenant.make_resources(pairs)
    books = [tenant.booking(resource_id=resource, **span(10)) for resource in resources]
    deletions = [tenant.request("DELETE", f"/resources/{resource}") for resource in resources]

    return in_pairs(tenant.race_each([*books, *deletions]))


def in_pairs(answers: list[Answer]) -> Counter[tuple[str, str]]:
    """The outcomes of the first half, each with that of its partner in the second half."""
    outcomes, half = [answer.outcome for answer in answers], len(answers) // 2
    return Counter(zip(outcomes[:half], outcomes[half:], strict=True))


def test_concurrent_booking_and_deletion_of_a_resource(lock_only: LiveTenant) -> None:
    outcomes = race_booking_with_deletion(lock_only)

    assert outcomes.keys() <= {("201", "409 in_use"), ("422 invalid", "204")}
    assert outcomes.total() == 8


def test_control_without_lock_deleted_resource_is_booked(
    unguarded_tenant: LiveTenant, tmp_path: Path
) -> None:
    (resource,) = unguarded_tenant.make_resources(1)
    book = unguarded_tenant.booking(resource_id=resource, **span(10))
    writes = 'INSERT INTO "availability_event"'

    with unguarded_tenant.paused_request(book, at=writes, folder=tmp_path, unlocked=True) as booked:
        deleted = unguarded_tenant.call("DELETE", f"/resources/{resource}")

    assert (booked.result().outcome, deleted.outcome) == ("201", "204")


# What a request has looked up may be gone when it comes to lock it.
def test_booking_delayed_before_lock_finds_resource_deleted(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    (resource,) = faulty_tenant.make_resources(1)
    book = faulty_tenant.booking(resource_id=resource, **span(10))

    with faulty_tenant.paused_request(book, at=faulty_tenant.first_lock, folder=tmp_path) as booked:
        deleted = faulty_tenant.call("DELETE", f"/resources/{resource}")

    assert (booked.result().outcome, deleted.outcome) == ("422 invalid", "204")


def test_booking_delayed_before_lock_finds_calendar_deleted(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    calendar = make_second_calendar(faulty_tenant)
    book = faulty_tenant.booking(calendar_id=calendar, **span(10))

    with faulty_tenant.paused_request(book, at=faulty_tenant.first_lock, folder=tmp_path) as booked:
        deleted = faulty_tenant.call("DELETE", f"/calendars/{calendar}")

    assert (booked.result().outcome, deleted.outcome) == ("422 invalid", "204")


def test_event_delayed_before_lock_finds_calendar_deleted(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    calendar = make_second_calendar(faulty_tenant)
    event = {"calendar_id": calendar, "what": "By hand", **span(10)}
    add = faulty_tenant.request("POST", "/events", event)

    with faulty_tenant.paused_request(add, at=faulty_tenant.first_lock, folder=tmp_path) as added:
        deleted = faulty_tenant.call("DELETE", f"/calendars/{calendar}")

    assert (added.result().outcome, deleted.outcome) == ("422 invalid", "204")


def test_booking_delayed_before_lock_finds_project_deleted(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    project = faulty_tenant.make_project(faulty_tenant.make_resources(1), "mutual")
    book = faulty_tenant.booking(project_id=project, **span(10))

    with faulty_tenant.paused_request(book, at=faulty_tenant.first_lock, folder=tmp_path) as booked:
        deleted = faulty_tenant.call("DELETE", f"/projects/{project}")

    assert (booked.result().outcome, deleted.outcome) == ("422 invalid", "204")


@pytest.mark.postgresql  # on SQLite the deletion would wait at its first statement
def test_project_deletion_waits_for_a_concurrent_booking(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    project = faulty_tenant.make_project(faulty_tenant.make_resources(1), "mutual")
    book = faulty_tenant.booking(project_id=project, **span(10))
    delete = faulty_tenant.request("DELETE", f"/projects/{project}")
    writes = 'INSERT INTO "availability_event"'

    with (
        ThreadPoolExecutor(1) as pool,
        faulty_tenant.paused_request(book, at=writes, folder=tmp_path) as booked,
    ):
        deleted = pool.submit(call, faulty_tenant.service.url, delete)
        faulty_tenant.wait_for_a_waiter()

    assert (booked.result().outcome, deleted.result().outcome) == ("201", "409 in_use")


def test_update_delayed_before_lock_keeps_concurrent_update(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    calendar = faulty_tenant.make_resource()["calendars"][0]["id"]
    given = {"calendar_id": calendar, "what": "By hand", **span(10)}
    path = f"/events/{faulty_tenant.call('POST', '/events', given).data['id']}"
    rename = faulty_tenant.request("PUT", path, {"what": "Changed"})

    with faulty_tenant.paused_request(
        rename, at=faulty_tenant.first_lock, folder=tmp_path
    ) as renamed:
        faulty_tenant.call("PUT", path, {"busy": False})

    event = faulty_tenant.call("GET", path).data
    assert (renamed.result().outcome, event["what"], event["busy"]) == ("200", "Changed", False)


def test_update_delayed_before_lock_does_not_restore_event(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    calendar = faulty_tenant.make_resource()["calendars"][0]["id"]
    given = {"calendar_id": calendar, "what": "By hand", **span(10)}
    event = faulty_tenant.call("POST", "/events", given).data["id"]
    change = faulty_tenant.request("PUT", f"/events/{event}", {"what": "Changed"})

    with faulty_tenant.paused_request(
        change, at=faulty_tenant.first_lock, folder=tmp_path
    ) as changed:
        deleted = faulty_tenant.call("DELETE", f"/events/{event}")

    found = faulty_tenant.call("GET", f"/events/{event}")
    assert (changed.result().outcome, deleted.outcome) == ("404 not_found", "204")
    assert found.outcome == "404 not_found"


@pytest.mark.postgresql  # on SQLite a change keeps all other writers out from its beginning
def test_update_delayed_before_write_does_not_restore_calendar(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    calendar = make_second_calendar(faulty_tenant)
    change = faulty_tenant.request("PUT", f"/calendars/{calendar}", {"name": "Changed"})
    writes = 'UPDATE "availability_calendar"'

    with faulty_tenant.paused_request(change, at=writes, folder=tmp_path) as changed:
        deleted = faulty_tenant.call("DELETE", f"/calendars/{calendar}")

    found = faulty_tenant.call("GET", f"/calendars/{calendar}")
    assert (changed.result().outcome, deleted.outcome) == ("200", "204")
    assert found.outcome == "404 not_found"


@pytest.mark.postgresql  # SQLite looks only once it is alone
def test_booking_waiting_for_lock_finds_calendar_deleted(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    """The deletion has its locks; what the booking sees when it gets them is not what it saw."""
    calendar = make_second_calendar(faulty_tenant)
    delete = faulty_tenant.request("DELETE", f"/calendars/{calendar}")
    book = faulty_tenant.booking(calendar_id=calendar, **span(10))
    writes = 'UPDATE "availability_calendar"'

    with (
        ThreadPoolExecutor(1) as pool,
        faulty_tenant.paused_request(delete, at=writes, folder=tmp_path) as deleted,
    ):
        booked = pool.submit(call, faulty_tenant.service.url, book)
        faulty_tenant.wait_for_a_waiter()

    assert (booked.result().outcome, deleted.result().outcome) == ("422 invalid", "204")


@pytest.mark.postgresql
def test_round_robin_skips_a_concurrently_deleted_resource(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    first, second = faulty_tenant.make_resources(2)
    project = faulty_tenant.make_project([first, second], "roundrobin_prioritized")
    book = faulty_tenant.booking(project_id=project, **span(10))

    with faulty_tenant.paused_request(book, at="FOR NO KEY UPDATE", folder=tmp_path) as booked:
        deleted = faulty_tenant.call("DELETE", f"/resources/{first}")

    assert (booked.result().outcome, deleted.outcome) == ("201", "204")
    assert len(faulty_tenant.held([second])) == 1


def make_second_calendar(tenant: LiveTenant) -> str:
    """The id of one that may be deleted: a resource's last one may not."""
    body = {"resource_id": tenant.make_resource()["id"], "name": "Second"}
    return tenant.call("POST", "/calendars", body).data["id"]


def race_booking_with_event(tenant: LiveTenant, pairs: int = 8) -> Counter[tuple[str, str]]:
    """Each hour is booked and filled by hand at once."""
    resource = tenant.make_resource()
    calendar = resource["calendars"][0]["id"]
    event = {"calendar_id": calendar, "what": "By hand"}
    books = [tenant.booking(resource_id=resource["id"], **span(n)) for n in range(pairs)]
    events = [tenant.request("POST", "/events", {**event, **span(n)}) for n in range(pairs)]

    return in_pairs(tenant.race_each([*books, *events]))


def test_concurrent_event_and_booking_are_serialised(live_tenant: LiveTenant) -> None:
    """It may overlap anything, so both orders are legal; there is no control that could differ."""
    outcomes = race_booking_with_event(live_tenant)

    assert outcomes.keys() <= {("201", "201"), ("409 slot_taken", "201")}
    assert outcomes.total() == 8


def test_concurrently_deleted_booking_does_not_stop_completion(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone between being listed as due and being locked."""
    resource = tenant.make_resource()["id"]
    made = [tenant.book(resource_id=resource, **span(hour)).data["id"] for hour in (10, 11)]
    lock_bookings = transitions.lock_bookings

    def lock_after_others(*args: Any, **options: Any) -> list[Booking]:
        Booking.objects.filter(id=made[0]).update(deleted_at=DAY)
        return lock_bookings(*args, **options)

    monkeypatch.setattr(transitions, "lock_bookings", lock_after_others)

    done = transitions.complete_ended(now=DAY + timedelta(days=1))

    assert done == 1
    assert tenant.get(f"/bookings/{made[1]}").data["state"] == "completed"


def test_booking_of_a_deleted_calendar_blocks(tenant: Tenant) -> None:
    """It had ended, so the calendar could go; it was not completed, so it can be moved."""
    resource = tenant.make_resource()["id"]
    calendar = tenant.post("/calendars", {"resource_id": resource, "name": "Second"}).data["id"]
    past = {"start": "2020-01-01T10:00:00Z", "end": "2020-01-01T11:00:00Z"}
    booking = tenant.book(calendar_id=calendar, **past).data["id"]

    deleted = tenant.delete(f"/calendars/{calendar}")
    moved = tenant.post(f"/bookings/{booking}/reschedule", span(10))
    refused = tenant.book(resource_id=resource, **span(10))

    assert (deleted.status, moved.status, refused.status) == (204, 200, 409)
    assert refused.error["conflicts"] == [span(10)]
