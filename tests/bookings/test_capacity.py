"""Resources that several bookings use at once: `capacity` of a resource."""

import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction

from availability.models import Event, Resource
from availability.reserve import units as capacity_units
from bookings.services import resource_assignment, transitions
from tests.bookings.race_tenant import count_overlaps
from tests.guide import block_of_guide
from tests.waiters import wait_for_a_waiter
from tests.world import Answer, Tenant, at

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

DAY = "2026-11-23"


def clock_time(hour: float) -> str:
    return f"{DAY}T{int(hour):02}:{round(hour % 1 * 60):02}:00+00:00"


def span(start: float, end: float) -> dict[str, str]:
    return {"start": clock_time(start), "end": clock_time(end)}


def book(tenant: Tenant, resource: Any, start: float, end: float, **given: Any) -> Answer:
    return tenant.book(resource_id=resource["id"], **span(start, end), **given)


def extend(tenant: Tenant, hold: Any) -> Answer:
    return tenant.put("/bookings/reserve/extend", {"reservation_id": hold["reservation_id"]})


def units(resource: Any) -> list[tuple[int, int, int]]:
    """(first hour, last hour, unit) of the events of normal bookings."""
    rows = Event.objects.filter(resource=resource["id"], busy=True)
    for row in rows:
        assert row.exclusive == (row.unit == 0)
    return sorted((row.start.hour, row.end.hour, row.unit) for row in rows)


def offered(tenant: Tenant, *resource_ids: str, **given: Any) -> list[tuple[str, str]]:
    """The free time of the day, as (start, end) without the date."""
    range_ = {"from": clock_time(8), "to": clock_time(18)}
    body = {"resources": resource_ids, "length": None, "mode": "exclusive", **range_, **given}
    return [
        (slot["start"][11:16], slot["end"][11:16])
        for slot in tenant.post("/availability", body).data
    ]


# --- Bookings -------------------------------------------------------------------------------------
def test_as_many_bookings_as_the_capacity_overlap(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=3)

    made = [book(tenant, pool, 10, 12).status for _ in range(3)]
    refused = book(tenant, pool, 11, 13)

    assert made == [201, 201, 201]
    assert units(pool) == [(10, 12, 0), (10, 12, 1), (10, 12, 2)]
    assert (refused.status, refused.error) == (
        409,
        {
            "error": "The time is taken.",
            "code": "slot_taken",
            "conflicts": [span(10, 12)],
            "alternatives": [span(12, 14), span(14, 16), span(16, 18)],
        },
    )
    assert book(tenant, pool, 12, 13).status == 201


def test_free_time_ends_when_all_places_are_taken(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    book(tenant, pool, 10, 13)
    book(tenant, pool, 12, 14)

    assert offered(tenant, pool["id"]) == [("08:00", "12:00"), ("13:00", "18:00")]
    assert book(tenant, pool, 11, 12.5).status == 409
    assert book(tenant, pool, 11, 12).status == 201


def test_buffer_takes_a_place(tenant: Tenant) -> None:
    """Two bookings with 30 minutes between them need two places; a third one finds none there."""
    pool = tenant.make_resource("Pool", capacity=2)
    book(tenant, pool, 10, 11)
    book(tenant, pool, 11.5, 12)
    project = tenant.make_project(pool["id"], availability={"length": None, "buffer": "1 hour"})

    free = offered(tenant, pool["id"], buffer="1 hour")
    answers = [
        tenant.book(project_id=project["id"], **span(*times)).status
        for times in ((8, 10.75), (8, 10.5))
    ]
    after = tenant.book(project_id=project["id"], **span(12, 13)).status

    assert free == [("08:00", "10:30"), ("12:00", "18:00")]
    assert answers == [409, 201]
    assert after == 201


def test_explain_names_full_capacity(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    for _ in range(2):
        book(tenant, pool, 10, 11)
    body = {"resources": [pool["id"]], "buffer": "30 minutes"}

    (answer,) = tenant.post(
        "/availability/explain", {**body, "from": clock_time(9), "to": clock_time(12)}
    ).data

    full = {"type": "capacity", "source": None, "text": "All 2 places are taken."}
    text = "Within the buffer of 30 minutes around bookings that take all 2 places."
    near = {"type": "buffer", "source": None, "text": text}
    assert [
        (one["start"][11:16], one["end"][11:16], one["reasons"]) for one in answer["segments"]
    ] == [
        ("09:00", "09:30", []),
        ("09:30", "10:00", [near]),
        ("10:00", "11:00", [full]),
        ("11:00", "11:30", [near]),
        ("11:30", "12:00", []),
    ]


def test_an_event_without_a_booking_closes_the_whole_resource(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=5)
    tenant.make_event(pool["calendars"][0]["id"], clock_time(10), clock_time(11))
    tenant.make_event(pool["calendars"][0]["id"], "2026-11-24", "2026-11-25", all_day=True)

    refused = book(tenant, pool, 10.5, 12)

    assert (refused.status, refused.error["conflicts"]) == (409, [span(10, 11)])
    assert offered(tenant, pool["id"]) == [("08:00", "10:00"), ("11:00", "18:00")]
    next_day = {"from": "2026-11-24T00:00:00Z", "to": "2026-11-25T00:00:00Z"}
    assert offered(tenant, pool["id"], **next_day) == []


def test_double_bookings_count_towards_capacity(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    double = {"settings": {"allow_double_bookings": True}}

    made = [book(tenant, pool, 10, 11, **double).status for _ in range(3)]

    assert made == [201, 201, 201]
    assert book(tenant, pool, 10, 11).status == 409
    assert offered(tenant, pool["id"]) == [("08:00", "10:00"), ("11:00", "18:00")]


def test_one_double_booking_leaves_a_place(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    book(tenant, pool, 10, 11, settings={"allow_double_bookings": True})

    assert [book(tenant, pool, 10, 11).status for _ in range(2)] == [201, 409]


def test_bookings_are_reassigned_to_other_units(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    for times in ((8, 10), (9, 11), (12, 14), (13, 15)):
        assert book(tenant, pool, *times).status == 201
    assert units(pool) == [(8, 10, 0), (9, 11, 1), (12, 14, 0), (13, 15, 1)]

    made = book(tenant, pool, 10, 13)

    assert made.status == 201
    taken = units(pool)
    assert [(first, last) for first, last, _ in taken] == [
        (8, 10),
        (9, 11),
        (10, 13),
        (12, 14),
        (13, 15),
    ]
    assert count_overlaps((unit, first, last) for first, last, unit in taken) == 0
    assert {unit for _, _, unit in taken} == {0, 1}


def cancel_while_units_are_written(
    tenant: Tenant, booking_id: str, monkeypatch: pytest.MonkeyPatch, *, is_locked: bool
) -> Future[Answer]:
    """Cancel the booking once units were read and before they are written; return its answer."""
    answer: Future[Answer] = Future()

    def cancel() -> None:
        try:
            answer.set_result(tenant.put(f"/bookings/{booking_id}/cancel"))
        finally:
            connections.close_all()

    def save_units(events: Sequence[Event]) -> None:
        Thread(target=cancel).start()
        if is_locked:
            wait_for_a_waiter()
        else:
            wait([answer])
        save(events)

    save = capacity_units._save_units
    monkeypatch.setattr(capacity_units, "_save_units", save_units)
    if not is_locked:
        monkeypatch.setattr(capacity_units, "_locked", lambda events: events)
    return answer


def book_each_in_a_unit_of_its_own(tenant: Tenant, pool: Any) -> str:
    """9 to 10 in unit 0, 10 to 11 in unit 1; return the id of the second booking."""
    book(tenant, pool, 9, 10)
    other = book(tenant, pool, 10, 11).data["id"]
    Event.objects.filter(end=at(clock_time(11))).update(unit=1, exclusive=False)
    return str(other)


@pytest.mark.postgresql  # SQLite lets one transaction write at a time
@pytest.mark.django_db(transaction=True)
def test_concurrent_reassignment_and_cancellation_are_serialised(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    first = book(tenant, pool, 9, 10)
    book(tenant, pool, 10, 11)
    cancelled = cancel_while_units_are_written(
        tenant, first.data["id"], monkeypatch, is_locked=True
    )
    Event.objects.filter(end=at(clock_time(11))).update(unit=1, exclusive=False)

    made = book(tenant, pool, 9, 11)

    assert (made.status, cancelled.result().status) == (201, 200)
    assert sorted(units(pool)) == [(9, 11, 1), (10, 11, 0)]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_concurrent_capacity_change_and_cancellation_are_serialised(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = tenant.make_resource("Pool", capacity=3)
    bookings = [book(tenant, pool, 10, 11).data["id"] for _ in range(2)]
    Event.objects.filter(unit=1).update(unit=2)
    cancelled = cancel_while_units_are_written(tenant, bookings[1], monkeypatch, is_locked=True)

    lowered = tenant.put(f"/resources/{pool['id']}", {"capacity": 2})

    assert (lowered.status, cancelled.result().status) == (200, 200)
    assert units(pool) == [(10, 11, 0)]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_control_without_lock_reassignment_fails(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    other = book_each_in_a_unit_of_its_own(tenant, pool)
    cancelled = cancel_while_units_are_written(tenant, other, monkeypatch, is_locked=False)

    with pytest.raises(IntegrityError, match="event_exclusive_is_busy"):
        book(tenant, pool, 9, 11)

    assert cancelled.result().status == 200


def test_reschedule_reassigns_units(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    for times in ((9, 11), (8, 10), (12, 14)):
        book(tenant, pool, *times)
    moved = book(tenant, pool, 15, 18).data["id"]
    book(tenant, pool, 15, 17)
    Event.objects.filter(start=at(clock_time(12))).update(exclusive=False, unit=1)

    answer = tenant.post(f"/bookings/{moved}/reschedule", span(10, 13))

    assert answer.status == 200
    taken = units(pool)
    assert [times[:2] for times in taken] == [(8, 10), (9, 11), (10, 13), (12, 14), (15, 17)]
    assert count_overlaps((unit, first, last) for first, last, unit in taken) == 0


def test_reschedule_finds_a_place(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    first, second, third = (book(tenant, pool, hour, hour + 1).data["id"] for hour in (8, 10, 12))

    answers = [
        tenant.post(f"/bookings/{booking}/reschedule", span(10, 11)) for booking in (first, third)
    ]

    assert [answer.status for answer in answers] == [200, 409]
    assert answers[1].error["conflicts"] == [span(10, 11)]
    assert tenant.post(f"/bookings/{second}/reschedule", span(10.5, 11)).status == 200


def test_confirm_finds_a_place(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    pending = [book(tenant, pool, 10, 11, graph="confirm_decline").data["id"] for _ in range(3)]

    answers = [tenant.put(f"/bookings/{booking}/confirm").status for booking in pending]
    tenant.put(f"/bookings/{pending[0]}/cancel")
    again = tenant.put(f"/bookings/{pending[2]}/confirm").status

    assert (answers, again) == ([200, 200, 409], 200)
    assert units(pool) == [(10, 11, 0), (10, 11, 1)]


def test_holds_take_places(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    body = {"resource_id": pool["id"], **span(10, 11)}
    first, second = (tenant.post("/bookings/reserve", body).data for _ in range(2))

    third = tenant.post("/bookings/reserve", body)
    booked = book(tenant, pool, 10, 11)
    used = book(tenant, pool, 10, 11, reservation_id=first["reservation_id"])
    extended = extend(tenant, second)

    assert (third.status, booked.status, used.status) == (409, 409, 201)
    assert third.error["conflicts"] == [span(10, 11)]
    assert extended.status == 200


def test_hold_is_not_extended_if_places_are_taken(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    hold = tenant.post("/bookings/reserve", {"resource_id": pool["id"], **span(10, 12)}).data
    double = {"settings": {"allow_double_bookings": True}}

    book(tenant, pool, 10, 11, **double)
    one_place = extend(tenant, hold)
    book(tenant, pool, 10, 11, **double)
    full = extend(tenant, hold)

    assert one_place.status == 200
    assert (full.status, full.error["conflicts"]) == (409, [span(10, 11)])


def test_a_series_takes_one_place_each_day(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    daily = {"recurrence": "FREQ=DAILY;COUNT=3"}

    answers = [book(tenant, pool, 10, 11, **daily) for _ in range(3)]
    overlapping = book(tenant, pool, 10, 20, recurrence="FREQ=HOURLY;COUNT=3")

    assert [answer.status for answer in answers] == [201, 201, 409]
    assert [row["reason"] for row in answers[2].error["occurrences"]] == ["slot_taken"] * 3
    assert overlapping.status in (409, 422)
    assert Counter(Event.objects.values_list("unit", flat=True)) == {0: 3, 1: 3}


def test_project_offers_a_pool_until_it_is_full(tenant: Tenant) -> None:
    """In every mode, and beside a resource without a capacity."""
    pool, guide = tenant.make_resource("Pool", capacity=2), tenant.make_resource("Guide")
    project = tenant.make_project(
        pool["id"], guide["id"], availability={"mode": "mutual", "length": "1 hour"}
    )
    for _ in range(2):
        book(tenant, pool, 10, 11)
    book(tenant, guide, 12, 13)

    together = tenant.post(
        "/availability",
        {"project_id": project["id"], "from": clock_time(9), "to": clock_time(14)},
    ).data
    either = tenant.post(
        "/availability",
        {
            "resources": [pool["id"], guide["id"]],
            "mode": "exclusive",
            "length": "1 hour",
            "from": clock_time(10),
            "to": clock_time(13),
        },
    ).data

    assert [slot["start"][11:16] for slot in together] == ["09:00", "11:00", "13:00"]
    assert [
        (slot["start"][11:16], [one["name"] for one in slot["resources"]]) for slot in either
    ] == [("10:00", ["Guide"]), ("11:00", ["Pool", "Guide"]), ("12:00", ["Pool"])]


# --- The number itself ----------------------------------------------------------------------------
@pytest.mark.parametrize("capacity", [0, -1, 1001, 10**9, "3", 2.5, True, None, [1]])
def test_wrong_capacity_is_refused(tenant: Tenant, capacity: Any) -> None:
    body = {"name": "Pool", "timezone": "UTC", "capacity": capacity}

    answer = tenant.post("/resources", body)

    assert (answer.status, list(answer.json["errors"])) == (422, ["capacity"])
    assert Resource.objects.count() == 0


def test_capacity_is_lowered_to_the_booked_places(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=4)
    first = book(tenant, pool, 10, 12).data["id"]
    for times in ((10, 12), (11, 13)):
        book(tenant, pool, *times)
    tenant.post("/bookings/reserve", {"resource_id": pool["id"], **span(11.5, 12)})

    refused = tenant.put(f"/resources/{pool['id']}", {"capacity": 3, "name": "Bath"})
    tenant.put(f"/bookings/{first}/cancel")
    lowered = tenant.put(f"/resources/{pool['id']}", {"capacity": 3})

    assert (refused.status, refused.error) == (
        409,
        {
            "error": "More than 3 bookings overlap at 2026-11-23T11:30:00+00:00.",
            "code": "in_use",
            "conflicts": [span(11.5, 12)],
        },
    )
    assert (lowered.status, lowered.data["capacity"], lowered.data["name"]) == (200, 3, "Pool")
    assert units(pool) == [(10, 12, 1), (11, 13, 2)]


def test_units_follow_a_lower_capacity(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool", capacity=3)
    bookings = [book(tenant, pool, 10, 11).data["id"] for _ in range(3)]
    for booking in bookings[:2]:
        tenant.put(f"/bookings/{booking}/cancel")

    lowered = tenant.put(f"/resources/{pool['id']}", {"capacity": 1})

    assert lowered.status == 200
    assert units(pool) == [(10, 11, 0)]
    assert book(tenant, pool, 10, 11).status == 409


def test_a_running_booking_keeps_its_unit_under_a_lower_capacity(
    tenant: Tenant, clock: Any
) -> None:
    pool = tenant.make_resource("Pool", capacity=3)
    book(tenant, pool, 10, 12)
    later = [book(tenant, pool, 11, 13).data["id"] for _ in range(2)]
    tenant.put(f"/bookings/{later[0]}/cancel")
    before = units(pool)
    clock.move_to(at(clock_time(10.5)))

    lowered = tenant.put(f"/resources/{pool['id']}", {"capacity": 2})

    assert (lowered.status, before) == (200, [(10, 12, 0), (11, 13, 2)])
    assert units(pool) == [(10, 12, 0), (11, 13, 1)]


def test_higher_capacity_offers_places(tenant: Tenant) -> None:
    pool = tenant.make_resource("Pool")
    book(tenant, pool, 10, 11)

    tenant.put(f"/resources/{pool['id']}", {"capacity": 2})

    assert [book(tenant, pool, 10, 11).status for _ in range(2)] == [201, 409]


def test_resources_are_found_by_tag(tenant: Tenant) -> None:
    for name, tags in (("Ada", ["X-ray", "Zahnärztin"]), ("Ben", ["x-rays"]), ("Cy", [])):
        tenant.make_resource(name, tags=tags)

    found = {
        search: sorted(row["name"] for row in tenant.get(f"/resources?search=tags:{search}").data)
        for search in ("x-ray", "X-RAY*", "*ray", "ZAHNÄRZTIN", "x_ray", "%25", "*")
    }

    assert found == {
        "x-ray": ["Ada"],
        "X-RAY*": ["Ada", "Ben"],
        "*ray": ["Ada"],
        "ZAHNÄRZTIN": ["Ada"],
        "x_ray": [],
        "%25": [],
        "*": ["Ada", "Ben"],
    }


# --- The database refuses one too many ------------------------------------------------------------
def raw_event(resource: Any, unit: int, **given: Any) -> Event:
    row = Resource.objects.get(id=resource["id"])
    times = {"start": at(clock_time(10)), "end": at(clock_time(11))}
    parents = {"resource": row, "calendar": row.calendars.get(), "app_id": row.app_id}
    return Event(what="Raw", exclusive=unit == 0, unit=unit, **parents, **times, **given)


@pytest.mark.parametrize("unit", [-1, 2, 3, 32767])
def test_database_refuses_an_unknown_unit(tenant: Tenant, unit: int) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    event = raw_event(pool, 1)
    event.save()

    with pytest.raises(IntegrityError, match="slot_taken"), transaction.atomic():
        raw_event(pool, unit).save()
    with pytest.raises(IntegrityError, match="slot_taken"), transaction.atomic():
        Event.objects.filter(id=event.id).update(unit=unit)


@pytest.mark.parametrize("unit", [0, 1])
def test_the_database_refuses_two_events_of_one_unit(tenant: Tenant, unit: int) -> None:
    pool = tenant.make_resource("Pool", capacity=2)
    raw_event(pool, unit).save()
    other = raw_event(pool, 1 - unit)
    other.save()

    with pytest.raises(IntegrityError, match="slot_taken"), transaction.atomic():
        raw_event(pool, unit).save()
    with pytest.raises(IntegrityError, match="slot_taken"), transaction.atomic():
        Event.objects.filter(id=other.id).update(unit=unit, exclusive=unit == 0)


def test_database_refuses_one_booking_too_many(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_assignment, "check_request", lambda *args, **kwargs: None)
    monkeypatch.setattr(transitions, "find_first_refusal", lambda *args, **kwargs: None)
    pool = tenant.make_resource("Pool", capacity=2)
    later = book(tenant, pool, 12, 13).data["id"]

    made = [book(tenant, pool, 10, 11) for _ in range(3)]
    moved = tenant.post(f"/bookings/{later}/reschedule", span(10, 11))

    assert [answer.status for answer in made] == [201, 201, 409]
    assert made[2].error["conflicts"] == [span(10, 11)]
    assert (moved.status, moved.error["code"]) == (409, "slot_taken")
    assert units(pool) == [(10, 11, 0), (10, 11, 1), (12, 13, 0)]


# --- The recipe of the guide ----------------------------------------------------------------------
def test_recipe_of_the_guide(tenant: Tenant) -> None:
    recipe = block_of_guide("json pool")
    known = {}
    for request in recipe.strip().split("\n\n"):
        line, _, body = request.partition("\n")
        for name, made in known.items():
            body = body.replace(f"<{name} id>", made["id"])
        path = line.removeprefix("POST /v2")
        answer = tenant.post(path, json.loads(body))
        assert answer.status == 201, answer.json
        known[path.strip("/").removesuffix("s")] = answer.data

    more = [tenant.post(path, json.loads(body)).status for _ in range(12)]
    assert more == [201] * 11 + [409]
