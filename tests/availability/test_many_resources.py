"""Many resources: busy time is read only while it can matter, reasons are found only if needed."""

import random
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from availability.core import slots
from availability.models import Project
from availability.reserve.checks import check_requests, find_free_resources, find_nearest_refusal
from availability.reserve.events import SlotTaken, TimeRequest
from availability.reserve.policies import policy_query, without_rules
from availability.search import engine as search
from availability.search.availability_query import AvailabilityQuery, load_project_resources
from tests.availability.queries import MONDAY, ask, lines, refusal
from tests.queries import Queries
from tests.world import Tenant, at

pytestmark = [pytest.mark.usefixtures("monday"), pytest.mark.both_databases]

GRID = {"length": "30 minutes", "timeslot_increments": "15 minutes", "buffer": "5 minutes"}
WEEKDAYS = [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 12}}]
LONG_DAYS = [{"allow_hours": {"start": "09:10", "end": 13}}]
TWO_DAYS = {"from": f"{MONDAY}T08:00:00Z", "to": "2026-11-25T00:00:00Z"}


def make_resources(tenant: Tenant, *kinds: dict[str, Any]) -> list[Any]:
    return [tenant.make_resource(f"R{number}", **kind) for number, kind in enumerate(kinds)]


def make_busy(tenant: Tenant, resource: Any, chance: random.Random, count: int) -> None:
    for _ in range(count):
        day, hour, minute = chance.choice((23, 24)), chance.randrange(8, 13), chance.randrange(58)
        span = (f"2026-11-{day}T{hour:02}:{minute:02}:00Z", f"2026-11-{day}T{hour:02}:59:00Z")
        tenant.make_event(resource["calendars"][0]["id"], *span)


HALF_HOURS, ANY_LENGTH = {"length": "30 minutes"}, {"length": None}
# With --deep each with each.
ALWAYS = ((1, GRID), (2, GRID), (32, GRID), (2, HALF_HOURS), (2, ANY_LENGTH))


@pytest.mark.parametrize(
    ("first_batch", "given"),
    [
        pytest.param(size, given, marks=() if (size, given) in ALWAYS else pytest.mark.deep)
        for size in (1, 2, 32)
        for given in (GRID, HALF_HOURS, ANY_LENGTH)
    ],
)
def test_each_slot_has_the_first_free_resource(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, first_batch: int, given: dict[str, Any]
) -> None:
    monkeypatch.setattr(search, "FIRST_BATCH", first_batch)
    alike, other = {"availability_constraints": WEEKDAYS}, {"availability_constraints": LONG_DAYS}
    abroad = {**alike, "timezone": "Asia/Kathmandu"}
    resources = make_resources(tenant, alike, alike, other, abroad, alike, other, abroad, alike)
    chance = random.Random(7)
    for number, resource in enumerate(resources):
        make_busy(tenant, resource, chance, 10 - number)
    ids = [resource["id"] for resource in resources]
    project = tenant.make_project(*ids, settings={"max_per_day": 1}, availability=GRID)["id"]
    for resource_id in ids[:2]:
        free = ask(tenant, resource_id, **TWO_DAYS, **GRID).data[0]
        booked = {"start": free["start"], "end": free["end"], "resource_id": resource_id}
        assert tenant.book(project_id=project, **booked).status == 201

    body = {"project_id": project, **TWO_DAYS, **given}
    first = tenant.post("/availability", {**body, "mode": "roundrobin_prioritized"}).data
    every = tenant.post("/availability", {**body, "mode": "exclusive"}).data

    assert first == [{**slot, "resources": slot["resources"][:1]} for slot in every]
    assert {slot["resources"][0]["name"] for slot in first} > {"R2", "R3"}


def count_queries(tenant: Tenant, resources: list[Any], **given: Any) -> int:
    with Queries(connection) as queries:
        ask(tenant, *(resource["id"] for resource in resources), **given)
    return len(queries)


def test_resources_without_new_slots_are_not_read(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FIRST_BATCH", 2)
    resources = make_resources(tenant, *[{}] * 12)
    count_queries(tenant, resources)

    assert count_queries(tenant, resources[:2], **GRID) == count_queries(tenant, resources, **GRID)

    # Batches of 2, 8 and 2.
    for resource in resources:
        tenant.make_event(resource["calendars"][0]["id"], f"{MONDAY}T09:00Z", f"{MONDAY}T12:00Z")
    few, many = (
        count_queries(tenant, resources[:2], **GRID),
        count_queries(tenant, resources, **GRID),
    )
    assert many == few + 2


# --- Free or not, and why -------------------------------------------------------------------------
def make_checked_project(tenant: Tenant, chance: random.Random) -> AvailabilityQuery:
    """Rules of a project with resources of a few kinds, some busy and some at their daily limit."""
    kinds = [{}, {"availability_constraints": WEEKDAYS}, {"availability_constraints": LONG_DAYS}]
    kinds += [{**kind, "timezone": "Asia/Kathmandu"} for kind in kinds]
    resources = make_resources(tenant, *(chance.choice(kinds) for _ in range(6)))
    ids = [resource["id"] for resource in resources]
    buffer = chance.choice(("0 minutes", "20 minutes"))
    given = {"availability": {"length": None, "buffer": buffer}, "settings": {"max_per_day": 1}}
    project = tenant.make_project(*ids, **given)["id"]
    for resource in chance.sample(resources, 4):
        make_busy(tenant, resource, chance, 3)
    for resource_id in chance.sample(ids, 2):
        tenant.book(
            project_id=project,
            resource_id=resource_id,
            start=f"{MONDAY}T10:00:00Z",
            end=f"{MONDAY}T10:30:00Z",
            settings={"enforce_availability": False},
        )
    project = Project.objects.get(id=project)
    return policy_query(project, load_project_resources(tenant.app, project, now=NOW), now=NOW)


NOW = at(f"{MONDAY} 08:10")


def describe(refusal: Any) -> Any:
    return refusal and (type(refusal), refusal.fields, getattr(refusal, "reasons", None))


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(3, 6))]
)
def test_quick_check_agrees_with_explain(tenant: Tenant, seed: int) -> None:
    """`check_requests` explains each resource; the choice of a resource explains at most one."""
    chance = random.Random(seed)
    rules = make_checked_project(tenant, chance)
    outcomes = set()
    for enforced in (rules, without_rules(rules)):
        for minutes in range(0, 7 * 60, 20):
            start = at(f"{MONDAY} 06:30") + timedelta(minutes=minutes)
            end = start + timedelta(minutes=chance.choice((10, 30, 60)))
            time_request = TimeRequest(start, end, True, chance.random() > 0.2, NOW, rules=enforced)

            free = find_free_resources(time_request, enforced)
            nearest = find_nearest_refusal(time_request, enforced)

            judged = check_requests([time_request], enforced)
            refusals = [refusal for (refusal,) in judged.values() if refusal]
            expected = [refusal for refusal in refusals if isinstance(refusal, SlotTaken)]
            assert [resource.id for resource in free] == [
                resource_id for resource_id, (refusal,) in judged.items() if not refusal
            ]
            if refusals:
                assert describe(nearest) == describe((expected or refusals)[0])
            outcomes.add((bool(free), bool(expected), bool(refusals)))
    assert len(outcomes) > 2


# --- Limits ---------------------------------------------------------------------------------------
# 24 hours a day, every five minutes: 288 starts a day, 8,059 in 28 days.
MANY_STARTS = {
    "from": f"{MONDAY}T00:00:00Z",
    "to": "2026-12-21T00:00:00Z",
    "length": "30 minutes",
    "timeslot_increments": "5 minutes",
    "include_past": True,
}


def test_round_robin_counts_each_slot_once(tenant: Tenant) -> None:
    """13 resources have more than 100,000 free times, but the answer has one of each."""
    ids = [resource["id"] for resource in make_resources(tenant, *[{}] * 13)]

    answers = {
        mode: ask(tenant, *ids, **MANY_STARTS, mode=mode)
        for mode in ("roundrobin_random", "roundrobin_prioritized", "exclusive", "mutual")
    }

    assert {mode: answer.status for mode, answer in answers.items()} == {
        "roundrobin_random": 200,
        "roundrobin_prioritized": 200,
        "exclusive": 422,
        "mutual": 422,
    }
    assert len(answers["roundrobin_random"].data) == 8_059
    assert {line[-2:] for line in lines(answers["roundrobin_prioritized"])} == {"R0"}
    many = "More than 100,000 slots: request a shorter range."
    assert answers["exclusive"].error == refusal(to=many)


def test_dates_count_pairs_of_date_and_resource(tenant: Tenant) -> None:
    """13 resources have more than 100,000 free times, on 13 times as many dates."""
    ids = [resource["id"] for resource in make_resources(tenant, *[{}] * 13)]

    answers = [
        tenant.post("/availability/dates", {"resources": ids, **MANY_STARTS, "mode": mode})
        for mode in ("roundrobin_random", "roundrobin_prioritized", "exclusive")
    ]

    slots = ask(tenant, ids[0], **MANY_STARTS).data
    expected = [{"date": day, "resources": ids} for day in sorted({s["start"][:10] for s in slots})]
    assert [answer.data for answer in answers] == [expected] * 3


def test_too_many_pairs_of_date_and_resource_are_refused(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_SLOTS", 11)
    ids = [resource["id"] for resource in make_resources(tenant, {}, {})]

    answers = [
        tenant.post("/availability/dates", {"resources": ids, "to": to})
        for to in ("4 days", "8 days")
    ]

    many = "More than 100,000 slots: request a shorter range."
    assert answers[0].status == 200
    assert answers[1].error == refusal(to=many)


def test_too_many_starts_are_refused(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer would be small enough, but every resource has to be looked at for it."""
    monkeypatch.setattr(slots, "MAX_STARTS_PER_SLOT", 0.2)  # 20,000 starts
    resources = make_resources(tenant, *[{}] * 3)
    for resource in resources:
        tenant.make_event(resource["calendars"][0]["id"], f"{MONDAY}T09:00Z", f"{MONDAY}T09:30Z")
    ids = [resource["id"] for resource in resources]

    answers = [ask(tenant, *ids[:count], **MANY_STARTS) for count in (1, 2, 3)]

    assert [answer.status for answer in answers] == [200, 200, 422]
    text = "Too many starts for so many resources: request a shorter range."
    assert answers[2].error == refusal(to=text)
