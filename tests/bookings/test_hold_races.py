"""A hold is given once and used once: real client processes against real web processes.

What keeps holds apart is the lock alone: no guard of the database knows them. So every race comes
with its control, in which nothing is locked, and there it does go wrong.
"""

import base64
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bookings.race_clients import Answer, Request, call
from tests.bookings.race_tenant import LiveTenant, count_outcomes, count_overlaps, span
from tests.bookings.test_crashes import crash_by

pytestmark = pytest.mark.both_databases

CLIENTS = 8
MAKE_WIDGET_KEY = """
from apps_config.models import App
from apps_config.services import issue_key
print(issue_key("widget", app=App.objects.get(slug="{slug}"))[1])
"""
_HOLDS = 'SELECT resource_id, start, "end" FROM availability_hold WHERE used_at IS NULL'


def reserving(tenant: LiveTenant, **given: object) -> Request:
    """POST /bookings/reserve of ten o'clock for an hour, unless another time is given."""
    body = {**span(10), "reservation_time": 3600, **given}
    return tenant.request("POST", "/bookings/reserve", body)


def hold_of(tenant: LiveTenant, resource: str) -> str:
    """The id of a hold of ten o'clock, made without faults."""
    answer = call(tenant.service.url, reserving(tenant.with_faults(), resource_id=resource))
    assert answer.status == 201, answer
    return answer.data["reservation_id"]


def count_taken_twice(tenant: LiveTenant, resource: str) -> int:
    """How many pairs of holds, and of bookings, share an instant of the resource."""
    holds = [row for row in tenant.rows(_HOLDS) if str(row[0]) in (resource, tenant.id(resource))]
    return count_overlaps(holds) + count_overlaps(tenant.held([resource]))


# --- The races ------------------------------------------------------------------------------------
def race_to_hold(tenant: LiveTenant) -> Counter[str]:
    """Everyone wants to hold the same hour."""
    (resource,) = tenant.make_resources(1)

    answers = tenant.race_each([reserving(tenant, resource_id=resource)] * CLIENTS)

    return count_outcomes(answers) + Counter(overlaps=count_taken_twice(tenant, resource))


def race_to_hold_or_book(tenant: LiveTenant) -> Counter[str]:
    """Half of them hold the hour, half of them book it."""
    (resource,) = tenant.make_resources(1)
    holding = reserving(tenant, resource_id=resource)
    booking = tenant.booking(resource_id=resource, **span(10))

    answers = tenant.race_each([holding, booking] * (CLIENTS // 2))

    return count_outcomes(answers)


def race_to_use(tenant: LiveTenant) -> Counter[str]:
    """Everyone has the same reservation_id."""
    (resource,) = tenant.make_resources(1)
    hold = hold_of(tenant, resource)
    booking = tenant.booking(resource_id=resource, reservation_id=hold, **span(10))

    answers = tenant.race_each([booking] * CLIENTS)

    return count_outcomes(answers) + Counter(overlaps=count_taken_twice(tenant, resource))


def race_to_use_up(tenant: LiveTenant) -> Counter[str]:
    """The same, each for a part of the span of its own: no overlap could refuse them."""
    (resource,) = tenant.make_resources(1)
    hold = hold_of(tenant, resource)
    parts = [span(10 + n / CLIENTS, 1 / CLIENTS) for n in range(CLIENTS)]

    answers = tenant.race_each(
        [tenant.booking(resource_id=resource, reservation_id=hold, **part) for part in parts]
    )

    return count_outcomes(answers)


def race_of_a_public_page(tenant: LiveTenant) -> Counter[str]:
    """One address holds an hour of each of many resources, with a widget key of a fresh app."""
    page = LiveTenant(tenant.service)
    resources = page.make_resources(CLIENTS)
    project = page.make_project(resources, "exclusive")
    use_widget_key(page, tenant)

    answers = page.race_each(
        [
            reserving(page, project_id=project, resource_id=each_resource, reservation_time=30)
            for each_resource in resources
        ]
    )

    return count_outcomes(answers)


def use_widget_key(page: LiveTenant, tenant: LiveTenant) -> None:
    """Make the further requests of the app with a widget key, and with the faults of `tenant`."""
    make_key = MAKE_WIDGET_KEY.format(slug=page.slug)
    key = page.service.run(make_key).strip()
    token = base64.b64encode(f":{key}".encode()).decode()
    page.headers = {**tenant.headers, "Authorization": f"Basic {token}"}


def race_for_a_days_share(tenant: LiveTenant) -> Counter[str]:
    """Each holds the only hour of a resource of its own. A fifth of all hours are two."""
    page = LiveTenant(tenant.service)
    resources = page.make_resources(10)
    ten = [{"allow_hours": {"start": 10, "end": 11}}]
    project = page.make_project(resources, "exclusive", availability_constraints=ten)
    use_widget_key(page, tenant)

    answers = page.race_each(
        [
            reserving(page, project_id=project, resource_id=each_resource, reservation_time=30)
            for each_resource in resources[:CLIENTS]
        ]
    )

    return count_outcomes(answers)


def race_for_a_days_limit(tenant: LiveTenant) -> Counter[str]:
    """Different hours of a day, held or booked, on which the project allows three of them."""
    resources = tenant.make_resources(1)
    project = tenant.make_project(resources, "exclusive", settings={"max_per_day": 3})
    wanted = [
        tenant.booking(project_id=project, **span(hour))
        if hour % 2
        else reserving(tenant, project_id=project, **span(hour))
        for hour in range(10, 10 + CLIENTS)
    ]

    return count_outcomes(tenant.race_each(wanted))


# Every race, and what it ends in.
RACES = {
    race_to_hold: Counter({"201": 1, "409 slot_taken": 7}),
    race_to_hold_or_book: Counter({"201": 1, "409 slot_taken": 7}),
    race_to_use: Counter({"201": 1, "409 hold_expired": 7}),
    race_to_use_up: Counter({"201": 1, "409 hold_expired": 7}),
    race_of_a_public_page: Counter({"201": 5, "429 rate_limited": 3}),
    race_for_a_days_share: Counter({"201": 2, "429 rate_limited": 6}),
    race_for_a_days_limit: Counter({"201": 3, "409 not_available": 5}),
}


def of_races(*left_out: Callable[..., Any]) -> Any:
    races = [race for race in RACES if race not in left_out]
    return pytest.mark.parametrize("run_race", races, ids=[race.__name__ for race in races])


every_race = of_races()
RunRace = Callable[[LiveTenant], Counter[str]]


@pytest.mark.every_case
@every_race
def test_races_for_holds_have_the_expected_outcomes(
    live_tenant: LiveTenant, run_race: RunRace
) -> None:
    assert run_race(live_tenant) == RACES[run_race]


@pytest.mark.every_case
@every_race
def test_without_database_guard_hold_is_given_and_used_once(
    lock_only: LiveTenant, run_race: RunRace
) -> None:
    assert run_race(lock_only) == RACES[run_race]


# Those who use a hold for the same time are also kept apart by that time: it proves nothing here.
@pytest.mark.every_case
@of_races(race_to_use, race_for_a_days_share)
def test_control_without_lock_hold_is_given_and_used_twice(
    unprotected: LiveTenant, run_race: RunRace
) -> None:
    found = run_race(unprotected)

    assert found["201"] > RACES[run_race]["201"], found


@pytest.mark.postgresql
def test_control_without_lock_more_than_the_days_share_is_held(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    """Several have read the others' holds before the first one commits its own. SQLite has one
    writer at a time."""
    reads = r'SELECT "availability_hold"\."id"'
    unlocked = faulty_tenant.with_faults(unlocked=True, at=reads, do="meet", meet=str(tmp_path))

    found = race_for_a_days_share(unlocked)

    assert found["201"] > RACES[race_for_a_days_share]["201"], found


def test_holders_book_against_other_clients(live_tenant: LiveTenant) -> None:
    """Each of some hours is held; its holder and others book it at once: the holder gets it."""
    (resource,) = live_tenant.make_resources(1)
    own, others = [], []
    for hour in range(4):
        times = {"resource_id": resource, **span(hour)}
        held = live_tenant.call("POST", "/bookings/reserve", {**times, "reservation_time": 3600})
        own.append(live_tenant.booking(reservation_id=held.data["reservation_id"], **times))
        others += [live_tenant.booking(**times)] * 2

    answers = live_tenant.race_each([*own, *others])

    assert [answer.status for answer in answers[:4]] == [201] * 4
    assert count_outcomes(answers[4:]) == Counter({"409 slot_taken": 8})


# --- A service that dies, a statement that fails --------------------------------------------------
@pytest.fixture
def resource(faulty_tenant: LiveTenant) -> str:
    return faulty_tenant.make_resources(1)[0]


def use(tenant: LiveTenant, resource: str, hold: str) -> Request:
    return tenant.booking(resource_id=resource, reservation_id=hold, **span(10))


def use_twice(tenant: LiveTenant, resource: str, hold: str) -> list[str]:
    answers = [call(tenant.service.url, use(tenant, resource, hold)) for _ in range(2)]
    return [answer.outcome for answer in answers]


def test_crash_during_booking_keeps_the_hold(faulty_tenant: LiveTenant, resource: str) -> None:
    hold = hold_of(faulty_tenant, resource)
    deadly = faulty_tenant.with_faults(at='INSERT INTO "bookings_statechange"', do="kill")
    before = faulty_tenant.count_rows()

    crash_by(faulty_tenant, use(deadly, resource, hold))
    after = faulty_tenant.count_rows()
    others: Answer = faulty_tenant.call(
        "POST", "/bookings/reserve", {"resource_id": resource, **span(10)}
    )

    assert (after, others.outcome) == (before, "409 slot_taken")
    assert use_twice(faulty_tenant, resource, hold) == ["201", "409 hold_expired"]


@pytest.mark.parametrize(
    "write",
    ['UPDATE "availability_hold"', 'INSERT INTO "availability_event"', 'INSERT INTO "bookings_'],
)
def test_failed_booking_keeps_the_hold(
    faulty_tenant: LiveTenant, resource: str, write: str
) -> None:
    hold = hold_of(faulty_tenant, resource)
    failing = faulty_tenant.with_faults(at=write, do="raise")

    failed = call(faulty_tenant.service.url, use(failing, resource, hold))

    assert failed.outcome == "500 internal"
    assert use_twice(faulty_tenant, resource, hold) == ["201", "409 hold_expired"]


def test_crash_during_hold_leaves_no_rows(faulty_tenant: LiveTenant, resource: str) -> None:
    deadly = faulty_tenant.with_faults(at='INSERT INTO "availability_hold"', do="kill")
    before = faulty_tenant.count_rows()

    crash_by(faulty_tenant, reserving(deadly, resource_id=resource))

    after = faulty_tenant.count_rows()
    booked = call(
        faulty_tenant.service.url, faulty_tenant.booking(resource_id=resource, **span(10))
    )

    assert (after, booked.outcome) == (before, "201")
