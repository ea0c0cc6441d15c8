"""Constraints go in and come out: of resources, of projects, of queries (section 7)."""

from typing import Any

import pytest

from availability.models import Constraint
from tests.world import BERLIN, Tenant

pytestmark = pytest.mark.usefixtures("clock")

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def both(name: str, given: dict[str, Any], shown: dict[str, Any] | None = None) -> list[Any]:
    """The pair of a rule and how it is shown, for the allowing and the blocking one."""
    return [
        ({f"{verb}_{name}": given}, {f"{verb}_{name}": given if shown is None else shown})
        for verb in ("allow", "block")
    ]


ROUND_TRIPS = [
    *both("hours", {"start": 9, "end": 17}),
    *both("hours", {"start": "9", "end": "17"}, {"start": 9, "end": 17}),
    *both("hours", {"start": "09:30", "end": "17:05"}),
    *both("hours", {"start": "9:30", "end": "09:45"}, {"start": "09:30", "end": "09:45"}),
    *both("hours", {"start": "09:00", "end": "17:00"}, {"start": 9, "end": 17}),
    *both("hours", {"start": 9.0, "end": 17.0}, {"start": 9, "end": 17}),
    *both("hours", {"start": 0, "end": 24}),
    *both("hours", {"start": "0", "end": "24:00"}, {"start": 0, "end": 24}),
    *both("hours", {"start": "00:00", "end": "00:01"}, {"start": 0, "end": "00:01"}),
    *both("hours", {"start": "23:59", "end": 24}),
    *both("hours", {"start": 18, "end": 2}),
    *both("hours", {"start": 18, "end": 0}),
    *both("hours", {"start": 9, "end": 17, "day": "Monday"}, {"start": 9, "end": 17}),
    *both("day", {"day": "monday"}, {"day": "Monday"}),
    *both("day", {"day": "SUNDAY"}, {"day": "Sunday"}),
    *(pair for day in DAYS for pair in both("day", {"day": day})),
    *both("day_and_time", {"day": "Monday", "start": 9, "end": 17}),
    *both(
        "day_and_time",
        {"day": "friday", "start": "22:15", "end": "2"},
        {"day": "Friday", "start": "22:15", "end": 2},
    ),
    *both("period", {"start": "2026-08-01 00:00:00", "end": "2026-09-01 12:30:15"}),
    *both(
        "period",
        {"start": "2026-08-01", "end": "2026-08-02"},
        {"start": "2026-08-01 00:00:00", "end": "2026-08-02 00:00:00"},
    ),
    *both(
        "period",
        {"start": "2026-08-01T09:00:00", "end": "2026-08-01T10:00:00.5"},
        {"start": "2026-08-01 09:00:00", "end": "2026-08-01 10:00:00"},
    ),
    *both("period", {"start": "2026-08-01T00:00:00+02:00", "end": "2026-09-01T00:00:00-04:30"}),
    *both(
        "period",
        {"start": "2026-08-01T00:00:00Z", "end": "2026-09-01T00:00:00+0200"},
        {"start": "2026-08-01T00:00:00+00:00", "end": "2026-09-01T00:00:00+02:00"},
    ),
    *both("period", {"start": "2026-08-01 00:00:00", "end": "2026-08-01T00:00:00+00:00"}),
    *both("weekdays", {}),
    *both("weekends", {}),
    *((rule, {name: {}}) for rule in ({"allow_weekdays": []}, {"block_weekends": []})
      for name in rule),
]  # fmt: skip


@pytest.mark.parametrize(("given", "shown"), ROUND_TRIPS)
def test_every_rule_comes_back_as_it_went_in(tenant: Tenant, given: Any, shown: Any) -> None:
    resource = tenant.post(
        "/resources?include=availability_constraints",
        {"name": "Ada", "timezone": BERLIN, "availability_constraints": [given]},
    ).data
    project = tenant.make_project(availability_constraints=[given])

    again = tenant.put(
        f"/projects/{project['id']}",
        {"availability_constraints": project["availability_constraints"]},
    ).data

    assert resource["availability_constraints"] == [shown]
    assert project["availability_constraints"] == [shown]
    assert again["availability_constraints"] == [shown]


def test_rules_keep_their_order(tenant: Tenant) -> None:
    rules = [shown for _, shown in ROUND_TRIPS[::-1]] * 2

    project = tenant.make_project(availability_constraints=rules)

    assert project["availability_constraints"] == rules
    assert Constraint.objects.count() == len(rules)


TIME = 'Expected a time such as 9 or "09:30", from 0 to 24.'
START = "Expected a time from 0 to 23:59."
BOUND = (
    "Expected YYYY-MM-DD HH:MM:SS, a date, or an instant with its offset, "
    "in the years 1970 to 2199."
)
ONE_KEY = "Expected an object with exactly one key, the constraint's name."
DAY = "Expected a weekday such as Monday."
NEEDED = "This field is required."
WRONG = [
    ({}, {"0": ONE_KEY}),
    ([], {"0": ONE_KEY}),
    ("allow_weekdays", {"0": ONE_KEY}),
    (None, {"0": ONE_KEY}),
    ({"allow_weekdays": {}, "block_weekends": {}}, {"0": ONE_KEY}),
    ({"allow_month": {}}, {"0": "Unknown constraint."}),
    ({"Allow_hours": {"start": 9, "end": 10}}, {"0": "Unknown constraint."}),
    ({"allow_hours": 9}, {"0.allow_hours": "Expected an object."}),
    ({"allow_weekdays": "x"}, {"0.allow_weekdays": "Expected an object."}),
    ({"allow_hours": []}, {"0.allow_hours.start": NEEDED, "0.allow_hours.end": NEEDED}),
    ({"allow_hours": {"start": 9}}, {"0.allow_hours.end": NEEDED}),
    ({"allow_hours": {"start": 9, "end": 25}}, {"0.allow_hours.end": TIME}),
    ({"allow_hours": {"start": -1, "end": 9}}, {"0.allow_hours.start": TIME}),
    ({"allow_hours": {"start": 24, "end": 9}}, {"0.allow_hours.start": START}),
    ({"allow_hours": {"start": True, "end": 9}}, {"0.allow_hours.start": TIME}),
    ({"allow_hours": {"start": 9.5, "end": 10}}, {"0.allow_hours.start": TIME}),
    ({"allow_hours": {"start": "9:3", "end": "9:60"}},
     {"0.allow_hours.start": TIME, "0.allow_hours.end": TIME}),
    ({"allow_hours": {"start": "24:01", "end": " 9"}},
     {"0.allow_hours.start": TIME, "0.allow_hours.end": TIME}),
    ({"allow_hours": {"start": "٩", "end": None}},
     {"0.allow_hours.start": TIME, "0.allow_hours.end": TIME}),
    ({"allow_hours": {"start": 9, "end": 9}}, {"0.allow_hours.end": "Must differ from start."}),
    ({"allow_hours": {"start": 9, "end": "09:00"}},
     {"0.allow_hours.end": "Must differ from start."}),
    ({"allow_day": {}}, {"0.allow_day.day": NEEDED}),
    ({"allow_day": {"day": "Mon"}}, {"0.allow_day.day": DAY}),
    ({"allow_day": {"day": 1}}, {"0.allow_day.day": DAY}),
    ({"allow_day": {"day": ["Monday"]}}, {"0.allow_day.day": DAY}),
    ({"block_day_and_time": {"day": "Moonday", "start": 9}},
     {"0.block_day_and_time.day": DAY, "0.block_day_and_time.end": NEEDED}),
    ({"block_day_and_time": {"day": "Monday", "start": 9, "end": 9}},
     {"0.block_day_and_time.end": "Must differ from start."}),
    ({"allow_period": {"start": "2026-13-01", "end": 5}},
     {"0.allow_period.start": BOUND, "0.allow_period.end": BOUND}),
    ({"allow_period": {"start": "2026-02-29", "end": "2200-01-01"}},
     {"0.allow_period.start": BOUND, "0.allow_period.end": BOUND}),
    ({"block_period": {"start": "2026-08-02", "end": "2026-08-01"}},
     {"0.block_period.end": "Must be after start."}),
    ({"block_period": {"start": "2026-08-01", "end": "2026-08-01 00:00:00"}},
     {"0.block_period.end": "Must be after start."}),
    ({"block_period": {"start": "2026-08-01T02:00:00+02:00", "end": "2026-08-01T00:00:00Z"}},
     {"0.block_period.end": "Must be after start."}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "errors"), WRONG)
def test_faults_are_named_by_their_paths(tenant: Tenant, rule: Any, errors: dict[str, str]) -> None:
    resource = tenant.make_resource()["id"]

    answers = {
        "availability_constraints": [
            tenant.put(f"/resources/{resource}", {"availability_constraints": [rule]}),
            tenant.post("/projects", {"name": "A", "availability_constraints": [rule]}),
        ],
        "constraints": [
            tenant.post("/availability", {"resources": [resource], "constraints": [rule]}),
            tenant.post("/findtime", {"resources": [resource], "constraints": [rule]}),
        ],
    }

    for name, found in answers.items():
        expected = {f"{name}.{path}": [fault] for path, fault in errors.items()}
        assert [(one.status, one.json["errors"]) for one in found] == [(422, expected)] * 2
    assert not Constraint.objects.exists()


def test_every_faulty_rule_is_named(tenant: Tenant) -> None:
    """As in the contract: `constraints.2.allow_hours.end`."""
    rules = [
        {"allow_weekdays": {}},
        {"allow_day": {"day": "x"}},
        {"allow_hours": {"start": 9, "end": 25}},
    ]
    resource = tenant.make_resource()["id"]

    answer = tenant.post("/availability", {"resources": [resource], "constraints": rules})

    assert (answer.status, answer.error) == (
        422,
        {
            "error": f"constraints.1.allow_day.day: {DAY}",
            "code": "invalid",
            "errors": {
                "constraints.1.allow_day.day": [DAY],
                "constraints.2.allow_hours.end": [TIME],
            },
        },
    )


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ({}, "Expected a list of constraints."),
        ("x", "Expected a list of constraints."),
        ([{"allow_weekdays": {}}] * 201, "At most 200 constraints."),
    ],
)
def test_lists_that_are_wrong(tenant: Tenant, rules: Any, fault: str) -> None:
    answer = tenant.post("/projects", {"name": "A", "availability_constraints": rules})

    assert (answer.status, answer.json["errors"]) == (422, {"availability_constraints": [fault]})


def test_two_hundred_rules(tenant: Tenant) -> None:
    rules = [{"allow_day": {"day": "Monday"}}] * 200

    project = tenant.make_project(availability_constraints=rules)

    assert project["availability_constraints"] == rules


# The examples of section 7, as they open the week of Monday 2026-11-23.
MONDAY_TO_FRIDAY = ("23", "24", "25", "26", "27")
EXAMPLES = [
    (
        [
            {"block_weekends": {}},
            {"allow_hours": {"start": 9, "end": 17}},
            {"block_hours": {"start": 12, "end": 13}},
        ],
        [
            span
            for day in MONDAY_TO_FRIDAY
            for span in ((f"{day} 09", f"{day} 12"), (f"{day} 13", f"{day} 17"))
        ],
    ),
    (
        [{"allow_day": {"day": "Monday"}}, {"allow_day": {"day": "Tuesday"}}],
        [("23 00", "25 00")],
    ),
    (
        [
            {"allow_weekdays": {}},
            {"allow_day_and_time": {"day": "Saturday", "start": 10, "end": 12}},
        ],
        [],
    ),
    (
        [
            {"allow_period": {"start": "2026-11-24", "end": "2026-11-26"}},
            {"allow_hours": {"start": 9, "end": 17}},
        ],
        [("24 09", "24 17"), ("25 09", "25 17")],
    ),
    (
        [{"allow_weekdays": {}}, {"allow_hours": {"start": 18, "end": 2}}],
        [(f"{day} 18", f"{int(day) + 1} 02") for day in MONDAY_TO_FRIDAY],
    ),
    ([], [("23 00", "30 00")]),
    ([{"allow_weekdays": {}}, {"block_weekends": {}}], [("23 00", "28 00")]),
]


@pytest.mark.parametrize(("rules", "opened"), EXAMPLES)
@pytest.mark.parametrize("source", ["resource", "project", "request"])
def test_rules_mean_the_same_wherever_they_come_from(
    tenant: Tenant, source: str, rules: list[Any], opened: list[tuple[str, str]]
) -> None:
    lists = {"resource": [], "project": [], "request": [], source: rules}
    resource = tenant.make_resource(timezone=BERLIN, availability_constraints=lists["resource"])
    project = tenant.make_project(
        resource["id"], availability_constraints=lists["project"], availability={"length": None}
    )

    answer = tenant.post(
        "/availability",
        {
            "project_id": project["id"],
            "constraints": lists["request"],
            "from": "2026-11-23 00:00:00",
            "to": "2026-11-30 00:00:00",
            "output_timezone": BERLIN,
        },
    )

    found = [(span["start"][8:13], span["end"][8:13]) for span in answer.data]
    assert found == [(start.replace(" ", "T"), end.replace(" ", "T")) for start, end in opened]


def test_lists_of_all_sources_are_taken_together(tenant: Tenant) -> None:
    """Different lists intersect; blocks are taken away last."""
    resource = tenant.make_resource(
        availability_constraints=[{"allow_hours": {"start": 8, "end": 14}}]
    )
    project = tenant.make_project(
        resource["id"],
        availability_constraints=[{"allow_hours": {"start": 10, "end": 18}}],
        availability={"length": None},
    )

    answer = tenant.post(
        "/availability",
        {
            "project_id": project["id"],
            "constraints": [{"block_hours": {"start": 11, "end": 12}}],
            "from": "2026-11-23 00:00:00",
            "to": "2026-11-24 00:00:00",
        },
    )

    assert [(span["start"][11:16], span["end"][11:16]) for span in answer.data] == [
        ("10:00", "11:00"),
        ("12:00", "14:00"),
    ]
