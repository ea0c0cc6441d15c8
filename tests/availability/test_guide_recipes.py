"""The recipes of docs/guide for opening hours and buffers, executed as they stand there."""

import re
from collections import Counter
from typing import Any

import pytest

from tests.availability.queries import lines
from tests.guide import GUIDE, block_of_guide
from tests.services import ROOT
from tests.world import BERLIN, Tenant

pytestmark = [pytest.mark.usefixtures("monday"), pytest.mark.both_databases]


class Kitchen:
    """Executes recipes one after the other, with the names of the earlier ones."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.dentist = tenant.make_resource("Emmett", BERLIN)["id"]
        self.names: dict[str, Any] = {"call": self.call, "dentist": self.dentist}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """As the client of the guide; a text is sent and returned as iCalendar."""
        if isinstance(body, str):
            kind = {"Content-Type": "text/calendar"}
            answer = self.tenant.call(method, path, body.encode(), kind)
        else:
            answer = self.tenant.call(method, path, body)
        assert answer.status < 300, answer.json
        return answer.content.decode() if answer.json is None else answer.data

    def cook(self, *recipes: str) -> None:
        for name in recipes:
            exec(block_of_guide(f"python recipe-{name}"), self.names)

    def open_on(self, *days: str, resource: str = "") -> list[str]:
        """The open time of these local days."""
        found = []
        for day in days:
            answer = self.tenant.post(
                "/availability",
                {
                    "resources": [resource or self.dentist],
                    "from": f"{day}T00:00:00+01:00",
                    "to": f"{day}T23:59:59+01:00",
                    "length": None,
                    "output_timezone": BERLIN,
                },
            )
            found += [line.removesuffix(" +01:00 Emmett") for line in lines(answer)]
        return found


@pytest.fixture
def kitchen(tenant: Tenant) -> Kitchen:
    return Kitchen(tenant)


def test_recipe_extra_saturday(kitchen: Kitchen) -> None:
    kitchen.cook("extra-saturday")

    assert kitchen.open_on("2026-11-27", "2026-11-28", "2026-11-29", "2026-12-05") == [
        "2026-11-27 09:00-17:00",
        "2026-11-28 10:00-14:00",
    ]


def test_recipe_every_second_tuesday(kitchen: Kitchen) -> None:
    kitchen.cook("extra-saturday", "every-second-tuesday")

    days = ("2026-11-24", "2026-11-28", "2026-12-01", "2026-12-08", "2027-01-05", "2027-11-09")
    assert kitchen.open_on(*days) == [
        "2026-11-24 09:00-20:00",
        "2026-12-01 10:00-17:00",
        "2026-12-08 09:00-20:00",
        "2027-01-05 10:00-20:00",
        "2027-11-09 09:00-20:00",
    ]


def test_recipe_christmas(kitchen: Kitchen) -> None:
    kitchen.cook("extra-saturday", "christmas")

    days = [f"2026-12-{day}" for day in range(23, 32)] + ["2027-01-01", "2027-01-06", "2027-01-07"]
    assert kitchen.open_on(*days) == [
        "2026-12-23 09:00-17:00",
        "2026-12-24 09:00-12:00",
        "2026-12-28 09:00-17:00",
        "2026-12-29 09:00-17:00",
        "2026-12-30 09:00-17:00",
        "2027-01-07 09:00-17:00",
    ]


def test_recipe_one_schedule_for_five_people(kitchen: Kitchen) -> None:
    kitchen.cook("extra-saturday", "one-schedule-for-five-people")

    friday, saturday = "2026-11-27", "2026-11-28"
    found = [
        [text[11:22] for text in kitchen.open_on(friday, saturday, resource=person["id"])]
        for person in kitchen.names["people"]
    ]
    day = "08:00-17:00"
    assert found == [[day], [day, "10:00-14:00"], ["08:00-12:00"], [day], [day]]


def test_recipe_time_between_bookings(kitchen: Kitchen) -> None:
    kitchen.cook("extra-saturday")
    kitchen.cook("buffers")

    def free(project: str) -> list[str]:
        day = {"from": "2026-11-24T00:00:00+01:00", "to": "2026-11-24T23:59:59+01:00"}
        query = {"project_id": kitchen.names[project]["id"], "length": None, **day}
        answer = kitchen.tenant.post("/availability", {**query, "output_timezone": BERLIN})
        return [line.split()[1] for line in lines(answer)]

    assert free("check_up") == ["09:00-10:50", "12:30-17:00"]
    assert free("treatment") == ["09:00-10:30", "12:30-17:00"]


def test_recipe_fair_turns(kitchen: Kitchen) -> None:
    kitchen.cook("fair-turns")

    turns = [visit["resource_id"] for visit in kitchen.names["visits"]]
    assert Counter(turns) == {kitchen.dentist: 4, kitchen.names["jennifer"]["id"]: 2}


def test_recipe_half_an_hour_or_an_hour(kitchen: Kitchen) -> None:
    kitchen.cook("half-an-hour-or-an-hour")

    def slots(name: str) -> list[str]:
        return [f"{one['start'][11:16]}-{one['end'][11:16]}" for one in kitchen.names[name]]

    assert slots("hours") == ["15:00-16:00", "15:30-16:30", "16:00-17:00"]
    assert slots("halves") == ["15:00-15:30", "15:30-16:00", "16:00-16:30", "16:30-17:00"]
    booked = kitchen.names["shortest"]
    assert (booked["start"], booked["end"]) == (
        "2026-11-24T15:30:00+00:00",
        "2026-11-24T16:00:00+00:00",
    )


def test_every_recipe_is_executed() -> None:
    names = re.findall(r"^```python recipe-([\w-]+)$", GUIDE, re.M)
    here = (ROOT / "tests" / "availability" / "test_guide_recipes.py").read_text()

    assert [name for name in names if f'"{name}")' not in here] == []
