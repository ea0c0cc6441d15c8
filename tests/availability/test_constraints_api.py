"""Constraints go in and come out: of resources, of projects, of queries (section 7)."""

from typing import Any

import pytest

from availability.models import Project, Resource
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
    *both("weekends", {"name": "Renovation „Süd“"}),
    *both("hours", {"start": 9, "end": 17, "name": "x" * 200}),
    *both("day", {"day": "Monday", "name": ""}, {"day": "Monday"}),
    *((rule, rule) for rule in (
        {"open_period": {"start": "2026-11-28 10:00:00", "end": "2026-11-28T14:00:00+01:00"}},
        {"open_recurring": {"start": "2026-11-24 14:00:00", "duration": "90 minutes",
                            "rrule": "FREQ=WEEKLY;INTERVAL=2", "name": "Late"}},
        {"block_recurring": {"start": "2026-11-24 00:00:00", "duration": "7 days",
                             "rrule": "FREQ=MONTHLY;BYDAY=4TU;COUNT=3"}},
        {"block_recurring": {"start": "2026-11-24 00:00:00", "duration": "1 minute",
                             "rrule": "FREQ=DAILY;UNTIL=20271231T225959Z"}},
        {"replace_day": {"date": "2026-12-24", "windows": []}},
        {"replace_day": {"date": "2026-12-31",
                         "windows": [{"start": 0, "end": "09:30"}, {"start": 20, "end": 24}]}},
        {"block_holidays": {"country": "DE"}},
        {"block_holidays": {"country": "DE", "subdivision": "BY",
                            "categories": ["public", "catholic"], "name": "Holidays"}},
    )),
    ({"open_recurring": {"start": "2026-11-24", "duration": "1 day 60 mins",
                         "rrule": "rrule:freq=daily"}},
     {"open_recurring": {"start": "2026-11-24 00:00:00", "duration": "25 hours",
                         "rrule": "FREQ=DAILY"}}),
    ({"replace_day": {"date": "2026-12-24",
                      "windows": [{"start": "13", "end": "17:00"}, {"start": 9.0, "end": 12}]}},
     {"replace_day": {"date": "2026-12-24",
                      "windows": [{"start": 9, "end": 12}, {"start": 13, "end": 17}]}}),
    ({"block_holidays": {"country": "de", "categories": []}},
     {"block_holidays": {"country": "DE"}}),
]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize(("given", "shown"), ROUND_TRIPS)
def test_every_rule_is_returned_as_stored(tenant: Tenant, given: Any, shown: Any) -> None:
    resource = tenant.post(
        "/resources?include=availability_constraints",
        {"name": "Ada", "timezone": BERLIN, "availability_constraints": [given]},
    ).data
    project = tenant.post_project(availability_constraints=[given])

    again = tenant.put(
        f"/projects/{project['id']}",
        {"availability_constraints": project["availability_constraints"]},
    ).data

    assert resource["availability_constraints"] == [shown]
    assert project["availability_constraints"] == [shown]
    assert again["availability_constraints"] == [shown]


def test_rules_keep_their_order(tenant: Tenant) -> None:
    rules = [shown for _, shown in ROUND_TRIPS[::-1] if "replace_day" not in shown] * 2

    project = tenant.post_project(availability_constraints=rules)

    assert project["availability_constraints"] == rules
    assert Project.objects.get().availability_constraints == rules


TIME = 'Expected a time such as 9 or "09:30", from 0 to 24.'
START = "Expected a time from 0 to 23:59."
BOUND = (
    "Expected YYYY-MM-DD HH:MM:SS, a date, or an instant with its offset, "
    "in the years 1970 to 2199."
)
ONE_KEY = "Expected an object with exactly one key, the constraint's name."
DAY = "Expected a weekday such as Monday."
NEEDED = "This field is required."
WALL = "Expected YYYY-MM-DD HH:MM:SS or a date, in the years 1970 to 2199."
DATE = "Expected a date such as 2026-12-24, in the years 1970 to 2199."
COUNTRY = "Unknown country. Expected a code such as DE."


def repeated(**given: Any) -> dict[str, Any]:
    """A block_recurring rule, valid but for what is given."""
    params = {"start": "2026-11-24", "duration": "1 hour", "rrule": "FREQ=DAILY"}
    return {"block_recurring": {**params, **given}}


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
    ({"block_weekends": {"name": 1}}, {"0.block_weekends.name": "Must be a string."}),
    ({"allow_day": {"day": "x", "name": "x" * 201}},
     {"0.allow_day.day": DAY, "0.allow_day.name": "Must have at most 200 characters."}),
    ({"allow_weekdays": {"name": "a\nb"}},
     {"0.allow_weekdays.name": "May not contain control characters or line breaks."}),
    ({"open_period": {"start": "2026-08-02", "end": "2026-08-01"}},
     {"0.open_period.end": "Must be after start."}),
    ({"open_hours": {"start": 9, "end": 10}}, {"0": "Unknown constraint."}),
    ({"open_recurring": {}},
     {f"0.open_recurring.{key}": NEEDED for key in ("start", "duration", "rrule")}),
    ({"open_recurring": {"start": "2026-11-24T09:00:00Z", "duration": "8 days",
                         "rrule": "FREQ=HOURLY"}},
     {"0.open_recurring.start": WALL,
      "0.open_recurring.duration": "Must be from 1 minute to 7 days.",
      "0.open_recurring.rrule": "FREQ can't be HOURLY."}),
    (repeated(start="2200-01-01", duration=2**40, rrule=7),
     {"0.block_recurring.start": WALL,
      "0.block_recurring.duration":
          "Must be a duration such as '30 minutes' or '3 days 2 weeks'.",
      "0.block_recurring.rrule": "Must be a string."}),
    (repeated(duration="0"),
     {"0.block_recurring.duration": "Must be from 1 minute to 7 days."}),
    (repeated(rrule="FREQ=DAILY;BYHOUR=9,10"),
     {"0.block_recurring.rrule": "BYHOUR is not supported."}),
    (repeated(rrule="FREQ=DAILY;COUNT=367"),
     {"0.block_recurring.rrule": "COUNT can't be 367."}),
    (repeated(rrule="FREQ=DAILY;COUNT=2;UNTIL=20261231"),
     {"0.block_recurring.rrule": "COUNT and UNTIL can't be combined."}),
    (repeated(rrule="FREQ=DAILY;UNTIL=20261122"),
     {"0.block_recurring.rrule": "UNTIL must not be before the start."}),
    (repeated(rrule="FREQ=YEARLY;COUNT=12"),
     {"0.block_recurring.rrule": "A rule with COUNT must end within 10 years."}),
    (repeated(rrule="FREQ=WEEKLY;BYDAY=MO"),
     {"0.block_recurring.start": "The start must be an occurrence of the rule."}),
    (repeated(rrule="FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
     {"0.block_recurring.start": "The start must be an occurrence of the rule."}),
    (repeated(rrule="FREQ=DAILY;INTERVAL=" + "9" * 600),
     {"0.block_recurring.rrule": "Must have at most 500 characters."}),
    ({"replace_day": {}},
     {"0.replace_day.date": NEEDED, "0.replace_day.windows": NEEDED}),
    ({"replace_day": {"date": "2026-12-24 00:00:00", "windows": {}}},
     {"0.replace_day.date": DATE, "0.replace_day.windows": "Expected a list of windows."}),
    ({"replace_day": {"date": "2026-02-29", "windows": [9]}},
     {"0.replace_day.date": DATE,
      "0.replace_day.windows.0": "Expected an object with start and end."}),
    ({"replace_day": {"date": "2026-12-24", "windows": [{"start": 9, "end": 10}, {"start": 11}]}},
     {"0.replace_day.windows.1.end": NEEDED}),
    ({"replace_day": {"date": "2026-12-24", "windows": [{"start": 18, "end": 2}]}},
     {"0.replace_day.windows.0.end": "Must be after start."}),
    ({"replace_day": {"date": "2026-12-24", "windows": [{"start": 24, "end": 24}]}},
     {"0.replace_day.windows.0.start": START}),
    ({"replace_day": {"date": "2026-12-24", "windows": [{"start": 0, "end": 1}] * 25}},
     {"0.replace_day.windows": "At most 24 windows."}),
    ({"block_holidays": {}}, {"0.block_holidays.country": NEEDED}),
    ({"block_holidays": {"country": "XX"}}, {"0.block_holidays.country": COUNTRY}),
    ({"block_holidays": {"country": "Germany"}}, {"0.block_holidays.country": COUNTRY}),
    ({"block_holidays": {"country": 49, "subdivision": ["BY"], "categories": "public"}},
     {"0.block_holidays.country": "Expected a code.",
      "0.block_holidays.subdivision": "Expected a code.",
      "0.block_holidays.categories": "Expected a list of categories."}),
    ({"block_holidays": {"country": "AT", "subdivision": "XX"}},
     {"0.block_holidays.subdivision":
          "Unknown subdivision. AT has: 1, 2, 3, 4, 5, 6, 7, 8, 9."}),
    ({"block_holidays": {"country": "DE", "categories": ["public", "bank"]}},
     {"0.block_holidays.categories.1":
          "Unknown category. DE has: catholic, public, school."}),
    ({"block_holidays": {"country": "DE", "categories": [{}]}},
     {"0.block_holidays.categories.0": "Must be a string."}),
    ({"block_holidays": {"country": "DE", "categories": ["public"] * 11}},
     {"0.block_holidays.categories": "At most 10 categories."}),
]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize(("rule", "errors"), WRONG)
def test_errors_are_named_by_their_paths(tenant: Tenant, rule: Any, errors: dict[str, str]) -> None:
    resource = tenant.post_resource()["id"]

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
    assert Resource.objects.get().availability_constraints == []
    assert not Project.objects.exists()


def test_every_faulty_rule_is_named(tenant: Tenant) -> None:
    """As in the contract: `constraints.2.allow_hours.end`."""
    rules = [
        {"allow_weekdays": {}},
        {"allow_day": {"day": "x"}},
        {"allow_hours": {"start": 9, "end": 25}},
    ]
    resource = tenant.post_resource()["id"]

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


def test_replace_day_of_one_date_twice_is_refused(tenant: Tenant) -> None:
    rule = {"replace_day": {"date": "2026-12-24", "windows": []}}
    other = {"replace_day": {"date": "2026-12-25", "windows": []}}

    answer = tenant.post(
        "/projects", {"name": "A", "availability_constraints": [rule, other, rule, rule]}
    )

    said = ["Another rule replaces this day."]
    assert (answer.status, answer.json["errors"]) == (
        422,
        {
            "availability_constraints.2.replace_day.date": said,
            "availability_constraints.3.replace_day.date": said,
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
def test_wrong_lists_are_refused(tenant: Tenant, rules: Any, fault: str) -> None:
    answer = tenant.post("/projects", {"name": "A", "availability_constraints": rules})

    assert (answer.status, answer.json["errors"]) == (422, {"availability_constraints": [fault]})


def test_two_hundred_rules_are_accepted(tenant: Tenant) -> None:
    rules = [{"allow_day": {"day": "Monday"}}] * 200

    project = tenant.post_project(availability_constraints=rules)

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
    # Rules of dates: an extra Saturday, also outside allow_period.
    (
        [
            {"allow_day": {"day": "Monday"}},
            {"allow_hours": {"start": 9, "end": 17}},
            {"allow_period": {"start": "2026-11-01", "end": "2026-11-24"}},
            {"open_period": {"start": "2026-11-28 10:00:00", "end": "2026-11-28 14:00:00"}},
        ],
        [("23 09", "23 17"), ("28 10", "28 14")],
    ),
    # Opening rules without an allowing rule: closed but for them, whatever is blocked.
    (
        [
            {"block_weekdays": {}},
            {"open_period": {"start": "2026-11-25 10:00:00", "end": "2026-11-25 14:00:00"}},
            {"open_recurring": {"start": "2025-11-27 22:00:00", "duration": "4 hours",
                                "rrule": "FREQ=WEEKLY;BYDAY=TH"}},
        ],
        [("25 10", "25 14"), ("26 22", "27 02")],
    ),
    # Blocks of dates come last; holidays only close what repeats, and a replaced day is itself.
    (
        [
            {"allow_hours": {"start": 20, "end": 4}},
            {"open_recurring": {"start": "2026-11-23 08:00:00", "duration": "1 hour",
                                "rrule": "FREQ=DAILY"}},
            {"replace_day": {"date": "2026-11-26", "windows": [{"start": 1, "end": 2}]}},
            {"replace_day": {"date": "2026-11-27", "windows": []}},
            {"open_period": {"start": "2026-11-27 12:00:00", "end": "2026-11-27 16:00:00"}},
            {"block_recurring": {"start": "2026-11-20 13:00:00", "duration": "1 hour",
                                 "rrule": "FREQ=WEEKLY"}},
            {"block_holidays": {"country": "US"}},
            {"block_period": {"start": "2026-11-28", "end": "2026-12-01"}},
        ],
        [
            ("23 00", "23 04"), ("23 08", "23 09"), ("23 20", "24 04"), ("24 08", "24 09"),
            ("24 20", "25 04"), ("25 08", "25 09"), ("25 20", "26 00"), ("26 01", "26 02"),
            ("27 12", "27 13"), ("27 14", "27 16"),
        ],
    ),
    (
        [
            {"allow_hours": {"start": 9, "end": 17}},
            {"open_recurring": {"start": "2026-11-23 18:00:00", "duration": "1 hour",
                                "rrule": "FREQ=DAILY"}},
            {"block_holidays": {"country": "US"}},
            {"allow_period": {"start": "2026-11-25", "end": "2026-11-28"}},
        ],
        [("25 09", "25 17"), ("25 18", "25 19"), ("27 09", "27 17"), ("27 18", "27 19")],
    ),
]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize(("rules", "opened"), EXAMPLES)
@pytest.mark.parametrize("source", ["resource", "project", "request"])
def test_rules_mean_the_same_from_each_source(
    tenant: Tenant, source: str, rules: list[Any], opened: list[tuple[str, str]]
) -> None:
    lists = {"resource": [], "project": [], "request": [], source: rules}
    resource = tenant.post_resource(timezone=BERLIN, availability_constraints=lists["resource"])
    project = tenant.post_project(
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


def test_rules_of_resource_project_and_request_are_combined(tenant: Tenant) -> None:
    """Different lists intersect; blocks are taken away last."""
    resource = tenant.post_resource(
        availability_constraints=[{"allow_hours": {"start": 8, "end": 14}}]
    )
    project = tenant.post_project(
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
