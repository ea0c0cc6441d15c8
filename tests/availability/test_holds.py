"""Holds as free time sees them: they block, are named, lapse by time alone; and their service."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction

from availability import tasks
from availability.models import Hold, Resource
from availability.reserve import holds as hold_lifecycle
from availability.reserve.checks import check_request
from availability.reserve.events import Place, SlotTaken, TimeRequest, lock_resources
from availability.reserve.holds import (
    HoldExpired,
    extend_hold,
    find_hold,
    purge_lapsed,
    release_hold,
    use_hold,
    write_hold,
)
from common.db.sql import database_now
from common.errors import NotFound
from tests.availability.queries import MONDAY, ask, lines, open_hours, segment_lines
from tests.bookings.booking_drafts import shown
from tests.queries import Queries
from tests.waiters import wait_for_a_waiter
from tests.world import NOW, Tenant, at

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]
TEN = {"start": f"{MONDAY}T10:00:00Z", "end": f"{MONDAY}T10:30:00Z"}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", **open_hours(9, 12))


def hold_of(tenant: Tenant, **given: Any) -> str:
    """The id of a hold of ten to half past ten on Monday."""
    answer = tenant.post("/bookings/reserve", {**TEN, **given})
    assert answer.status == 201, answer.json
    return answer.data["reservation_id"]


# --- What is offered ------------------------------------------------------------------------------
def test_a_held_time_is_not_offered(tenant: Tenant, ada: Any, clock: Any) -> None:
    hold_of(tenant, resource_id=ada["id"])
    clock.shift(29.9)

    held = ask(tenant, ada["id"])
    clock.shift(0.1)
    free = ask(tenant, ada["id"])

    assert lines(held) == [
        f"{MONDAY} 09:00-10:00 +00:00 Ada",
        f"{MONDAY} 10:30-11:30 +00:00 Ada",
    ]
    assert lines(free) == [
        f"{MONDAY} 09:00-10:00 +00:00 Ada",
        f"{MONDAY} 10:00-11:00 +00:00 Ada",
        f"{MONDAY} 11:00-12:00 +00:00 Ada",
    ]


def test_buffer_applies_around_a_hold(tenant: Tenant, ada: Any) -> None:
    hold_of(tenant, resource_id=ada["id"])

    found = lines(ask(tenant, ada["id"], buffer="15 minutes", length="45 minutes"))

    assert found == [f"{MONDAY} 09:00-09:45 +00:00 Ada", f"{MONDAY} 10:45-11:30 +00:00 Ada"]


@pytest.mark.parametrize("ignored", [False, True])
def test_hold_is_no_all_day_event(tenant: Tenant, ada: Any, ignored: bool) -> None:
    whole_day = {"start": f"{MONDAY}T00:00:00Z", "end": "2026-11-24T00:00:00Z"}
    hold_of(tenant, resource_id=ada["id"], **whole_day)

    assert ask(tenant, ada["id"], ignore_all_day_events=ignored).data == []


def test_hold_blocks_in_every_response(tenant: Tenant, ada: Any) -> None:
    hold_of(tenant, resource_id=ada["id"], start=f"{MONDAY}T09:00:00Z", end=f"{MONDAY}T12:00:00Z")
    query = {"resources": [ada["id"]], "from": f"{MONDAY}T09:00:00Z", "to": f"{MONDAY}T12:00:00Z"}
    older = {"resource_ids": [ada["id"]], "start": query["from"], "future": "3 hours"}

    assert tenant.post("/availability/dates", query).data == []
    assert tenant.post("/availability/count", query).data == []
    assert tenant.post("/findtime", older).data == []
    assert lines(tenant.post("/unavailable/slots", query)) == [f"{MONDAY} 09:00-12:00 +00:00 Ada"]


def test_hold_blocks_only_its_resource(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob", **open_hours(9, 12))
    hold_of(tenant, resource_id=bob["id"])
    tenant.make_event(ada["calendars"][0]["id"], f"{MONDAY}T09:00:00Z", f"{MONDAY}T10:00:00Z")

    found = {
        mode: lines(ask(tenant, ada["id"], bob["id"], mode=mode))
        for mode in ("mutual", "roundrobin_prioritized")
    }

    assert found == {
        "mutual": [f"{MONDAY} 10:30-11:30 +00:00 Ada, Bob"],
        "roundrobin_prioritized": [
            f"{MONDAY} 09:00-10:00 +00:00 Bob",
            f"{MONDAY} 10:00-11:00 +00:00 Ada",
            f"{MONDAY} 10:30-11:30 +00:00 Bob",
            f"{MONDAY} 11:00-12:00 +00:00 Ada",
        ],
    }


# --- Why not --------------------------------------------------------------------------------------
def test_explain_names_the_hold(tenant: Tenant, ada: Any, clock: Any) -> None:
    hold = hold_of(tenant, resource_id=ada["id"])
    query = {
        "resources": [ada["id"]],
        "from": f"{MONDAY}T09:00:00Z",
        "to": f"{MONDAY}T12:00:00Z",
        "buffer": "15 minutes",
    }

    (found,) = tenant.post("/availability/explain", query).data
    clock.shift(30)
    (later,) = tenant.post("/availability/explain", query).data

    assert segment_lines(found["segments"]) == [
        f"{MONDAY} 09:00-09:45 +00:00: free",
        f"{MONDAY} 09:45-10:00 +00:00: Within the buffer of 15 minutes around a hold.",
        f"{MONDAY} 10:00-10:30 +00:00: Held for another booking.",
        f"{MONDAY} 10:30-10:45 +00:00: Within the buffer of 15 minutes around a hold.",
        f"{MONDAY} 10:45-12:00 +00:00: free",
    ]
    assert found["segments"][2]["reasons"] == [
        {
            "type": "hold",
            "source": None,
            "reservation_id": hold,
            "text": "Held for another booking.",
        }
    ]
    assert segment_lines(later["segments"]) == [f"{MONDAY} 09:00-12:00 +00:00: free"]


def test_mutual_hold_has_one_id(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob")
    project = tenant.make_project(
        ada["id"], bob["id"], availability={"mode": "mutual", "length": "30 minutes"}
    )
    hold = hold_of(tenant, project_id=project["id"])
    query = {"resources": [ada["id"], bob["id"]], "from": TEN["start"], "to": TEN["end"]}

    found = tenant.post("/availability/explain", query).data

    reasons = [reason for one in found for part in one["segments"] for reason in part["reasons"]]
    assert [reason["reservation_id"] for reason in reasons] == [hold, hold]


# --- How much it costs ----------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["/availability", "/availability/explain"])
def test_query_count_is_constant_with_holds(tenant: Tenant, ada: Any, path: str) -> None:
    query = {"resources": [ada["id"]], "from": f"{MONDAY}T00:00:00Z", "to": "2026-12-20T00:00:00Z"}
    counts = []
    for count in (0, 1, 30):
        place_many(tenant, ada["id"], count)
        with Queries(connection) as queries:
            assert tenant.post(path, query).status == 200
        counts.append(len(queries))

    assert counts[0] <= 4
    assert counts == [counts[0]] * 3


def place_many(tenant: Tenant, resource_id: str, count: int) -> None:
    Hold.objects.bulk_create(
        Hold(
            app=tenant.app,
            resource_id=resource_id,
            start=at(f"{MONDAY} 00:00") + timedelta(hours=number),
            end=at(f"{MONDAY} 00:30") + timedelta(hours=number),
            expires_at=NOW + timedelta(seconds=30),
            created_at=NOW,
        )
        for number in range(count)
    )


# --- The service, at odd moments ------------------------------------------------------------------
@pytest.fixture
def hold_at(tenant: Tenant, ada: Any) -> Callable[[datetime], Hold]:
    """`hold_at(now)`: half a minute of that moment's hold of ten o'clock."""
    resource = Resource.objects.get(id=ada["id"])

    def place(now: datetime) -> Hold:
        claim = TimeRequest(at(f"{MONDAY} 10:00"), at(f"{MONDAY} 10:30"), True, True, now)
        check_request(claim, [resource.id])
        places = [Place(resource.calendars.get())]
        placed = write_hold(claim, app=tenant.app, project=None, places=places, seconds=30)
        return find_hold(tenant.app, placed.id)

    return place


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def test_hold_is_usable_until_it_expires(hold_at: Callable[..., Hold]) -> None:
    hold = hold_at(NOW)

    with pytest.raises(HoldExpired):
        use_hold(hold, now=NOW + seconds(30))
    use_hold(hold, now=NOW + seconds(29.999))

    assert Hold.objects.get().used_at == NOW + seconds(29.999)


def test_late_extension_after_a_new_hold_is_refused(hold_at: Callable[..., Hold]) -> None:
    """Asked in time, it waited so long for the lock that another has found the hold lapsed."""
    first = hold_at(NOW)
    hold_at(NOW + seconds(30))

    with pytest.raises(SlotTaken) as refusal:
        extend_hold(first, seconds=30, now=NOW + seconds(29.9))

    assert refusal.value.fields["conflicts"] == [shown("10:00", "10:30")]

    assert [row.expires_at for row in Hold.objects.order_by("created_at")] == [
        NOW + seconds(30),
        NOW + seconds(60),
    ]


@pytest.mark.postgresql  # in a test, SQLite's connections share one cache and its table locks
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_locked", [True, False], ids=["locked", "control"])
def test_extension_waits_for_a_concurrent_hold(
    hold_at: Callable[..., Hold], monkeypatch: pytest.MonkeyPatch, is_locked: bool
) -> None:
    """Asked in time; the other has found the hold lapsed, and is not committed yet."""
    first = hold_at(NOW)

    def extend() -> str:
        try:
            extend_hold(first, seconds=30, now=NOW + seconds(29.9))
        except SlotTaken:
            return "slot_taken"
        finally:
            connections.close_all()
        return "extended"

    if not is_locked:
        monkeypatch.setattr(hold_lifecycle, "lock_resources", lambda resource_ids: {})
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        lock_resources([first.resource_id])
        hold_at(NOW + seconds(30))
        extension = pool.submit(extend)
        if is_locked:
            wait_for_a_waiter()
        else:
            wait([extension])

    assert extension.result() == ("slot_taken" if is_locked else "extended")
    assert [row.expires_at for row in Hold.objects.order_by("created_at")] == [
        NOW + seconds(30 if is_locked else 59.9),
        NOW + seconds(60),
    ]


def test_extension_refuses_later_holds(hold_at: Callable[..., Hold]) -> None:
    first = hold_at(NOW)

    extend_hold(first, seconds=30, now=NOW + seconds(29.9))

    with pytest.raises(SlotTaken):
        hold_at(NOW + seconds(30))


def test_deleted_hold_is_not_found(hold_at: Callable[..., Hold]) -> None:
    hold = hold_at(NOW)
    Hold.objects.all().delete()

    for change in (use_hold, release_hold):
        with pytest.raises(NotFound):
            change(hold, now=NOW)
    with pytest.raises(NotFound):
        extend_hold(hold, seconds=30, now=NOW)


# --- What is forgotten ----------------------------------------------------------------------------
def test_holds_are_purged_a_day_after_their_end(tenant: Tenant, ada: Any, clock: Any) -> None:
    bob = tenant.make_resource("Bob")
    project = tenant.make_project(
        ada["id"], bob["id"], availability={"mode": "mutual", "length": "30 minutes"}
    )
    hold_of(tenant, project_id=project["id"])  # lapses after 30 seconds
    clock.shift(60)
    used = hold_of(tenant, resource_id=bob["id"])
    assert tenant.book(resource_id=bob["id"], reservation_id=used, **TEN).status == 201
    clock.shift(60)
    kept = hold_of(tenant, resource_id=ada["id"])
    too_early = list(purge_lapsed(now=NOW + timedelta(days=1, seconds=29)))
    purged = list(purge_lapsed(now=NOW + timedelta(days=1, seconds=90)))

    assert (too_early, purged) == ([], [2])
    assert [str(row.id) for row in Hold.objects.all()] == [kept]


def test_many_lapsed_holds_are_deleted_in_slices(
    tenant: Tenant, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hold over several resources goes as a whole, wherever its slice ends."""
    monkeypatch.setattr(hold_lifecycle, "PURGE_SLICE", 2)
    lapsed = {"app": tenant.app, "resource_id": ada["id"], "start": NOW, "end": NOW + seconds(60)}
    for _ in range(5):
        main = Hold.objects.create(**lapsed, expires_at=NOW, created_at=NOW)
        Hold.objects.create(**lapsed, expires_at=NOW, created_at=NOW, main=main)

    counts = list(purge_lapsed(now=NOW + timedelta(days=1)))

    assert (counts, Hold.objects.count()) == ([2, 2, 1], 0)


def test_long_purge_continues_in_another_task(
    tenant: Tenant, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    continued: list[dict[str, Any]] = []
    monkeypatch.setattr(hold_lifecycle, "PURGE_SLICE", 2)
    monkeypatch.setattr(tasks, "PURGE_SECONDS", 0)
    monkeypatch.setattr(
        tasks.purge_holds, "apply_async", lambda **options: continued.append(options)
    )
    lapsed = {"app": tenant.app, "resource_id": ada["id"], "start": NOW, "end": NOW + seconds(60)}
    Hold.objects.bulk_create(Hold(**lapsed, expires_at=NOW, created_at=NOW) for _ in range(3))
    monkeypatch.setattr(tasks, "database_now", lambda: NOW + timedelta(days=1))

    tasks.purge_holds()
    left = Hold.objects.count()
    tasks.purge_holds()
    tasks.purge_holds()

    assert (left, Hold.objects.count(), len(continued)) == (1, 0, 2)


@pytest.mark.postgresql
def test_purge_uses_the_clock_of_the_database(tenant: Tenant, ada: Any, clock: Any) -> None:
    Hold.objects.create(
        app=tenant.app,
        resource_id=ada["id"],
        start=NOW,
        end=NOW + seconds(60),
        expires_at=database_now() + seconds(60),
        created_at=NOW,
    )
    clock.move_to(NOW + timedelta(days=3650))

    tasks.purge_holds()

    assert Hold.objects.count() == 1
