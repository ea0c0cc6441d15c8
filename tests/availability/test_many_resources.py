"""Round robin over many resources: busy time is read in batches, and only while it can matter."""

import random
from typing import Any

import pytest
from django.db import connection

from availability import search
from tests.availability.queries import MONDAY, ask, lines, refusal
from tests.queries import Queries
from tests.world import Tenant

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


@pytest.mark.parametrize("first_batch", [1, 2, 32])
@pytest.mark.parametrize("given", [GRID, {"length": "30 minutes"}, {"length": None}])
def test_each_slot_has_the_first_resource_that_is_free(
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


def test_resources_that_can_add_no_slot_are_not_read(
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
