"""Schedules: rules that several resources share, below the resources' own."""

from typing import Any

import pytest

from availability.models import Resource, Schedule
from tests.availability.queries import MORNING, ask, lines, refusal, segment_lines
from tests.world import STAMP, Caller, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

HOURS = [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 17}}]
OPEN = {"open_period": {"start": "2026-11-28 10:00:00", "end": "2026-11-28 14:00:00"}}


def make_schedule(tenant: Tenant, *rules: dict[str, Any], name: str = "Practice hours") -> Any:
    return tenant.post("/schedules", {"name": name, "availability_constraints": list(rules)}).data


def test_create_update_and_delete(tenant: Tenant) -> None:
    made = tenant.post("/schedules", {"name": "Practice", "availability_constraints": HOURS})
    empty = tenant.post("/schedules", {"name": "Empty"})
    changed = tenant.put(f"/schedules/{made.data['id']}", {"availability_constraints": [OPEN]})
    named = tenant.put(f"/schedules/{made.data['id']}", {"name": "Later"})
    shown = tenant.get(f"/schedules/{made.data['id']}")
    listed = tenant.get("/schedules?search=name:late*")
    deleted = tenant.delete(f"/schedules/{made.data['id']}")

    schedule = {
        "id": made.data["id"],
        "name": "Practice",
        "availability_constraints": HOURS,
        "created_at": STAMP,
        "updated_at": STAMP,
    }
    assert (made.status, made.data) == (201, schedule)
    assert (empty.status, empty.data["availability_constraints"]) == (201, [])
    assert (changed.status, changed.data) == (
        200,
        schedule | {"availability_constraints": [OPEN]},
    )
    assert named.data == shown.data == changed.data | {"name": "Later"}
    assert listed.data == [shown.data]
    assert (deleted.status, tenant.get(f"/schedules/{made.data['id']}").status) == (204, 404)
    assert [each.name for each in Schedule.objects.all()] == ["Empty"]
    kinds = Schedule.history.order_by("history_id").values_list("name", "history_type")
    assert list(kinds) == [
        ("Practice", "+"), ("Empty", "+"), ("Practice", "~"), ("Later", "~"), ("Later", "-"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"name": "This field is required."}),
        ({"name": "a\nb"}, {"name": "May not contain control characters or line breaks."}),
        (
            {"name": "A", "availability_constraints": [{"allow_hours": {"start": 9, "end": 25}}]},
            {
                "availability_constraints__0__allow_hours__end": "Expected a time such as 9 or"
                ' "09:30", from 0 to 24.'
            },
        ),
    ],
)
def test_wrong_bodies_are_refused(tenant: Tenant, body: Any, errors: dict[str, str]) -> None:
    answer = tenant.post("/schedules", body)

    assert (answer.status, answer.error) == (422, refusal(**errors))
    assert not Schedule.objects.exists()


def test_schedule_of_a_resource_is_set_and_removed(tenant: Tenant) -> None:
    schedule = make_schedule(tenant, *HOURS)["id"]
    plain = tenant.post_resource("Bob")

    ada = tenant.post_resource("Ada", schedule_id=schedule)
    renamed = tenant.put(f"/resources/{ada['id']}", {"name": "Ada B"}).data
    used = tenant.delete(f"/schedules/{schedule}")
    freed = tenant.put(f"/resources/{ada['id']}", {"schedule_id": None}).data
    deleted = tenant.delete(f"/schedules/{schedule}")

    assert [each["schedule_id"] for each in (plain, ada, renamed, freed)] == [
        None, schedule, schedule, None,
    ]  # fmt: skip
    assert (used.status, used.error) == (
        409,
        {"error": "Resources have this schedule. Change them first.", "code": "in_use"},
    )
    assert deleted.status == 204


def test_a_deleted_resource_does_not_keep_its_schedule(tenant: Tenant) -> None:
    schedule = make_schedule(tenant)["id"]
    ada = tenant.post_resource("Ada", schedule_id=schedule)["id"]
    tenant.delete(f"/resources/{ada}")

    assert tenant.delete(f"/schedules/{schedule}").status == 204
    assert Resource.objects.get(id=ada).schedule is None


def test_unknown_schedules_are_refused(tenant: Tenant) -> None:
    theirs = make_schedule(Tenant("other"))["id"]
    ada = tenant.post_resource("Ada")["id"]

    for schedule in (theirs, ada):
        answers = [
            tenant.post("/resources", {"name": "B", "timezone": "UTC", "schedule_id": schedule}),
            tenant.put(f"/resources/{ada}", {"name": "B", "schedule_id": schedule}),
        ]
        fault = refusal(schedule_id="There is no such schedule.")
        assert [(each.status, each.error) for each in answers] == [(422, fault)] * 2
        assert tenant.get(f"/schedules/{schedule}").status == 404
    assert list(Resource.objects.values_list("name", flat=True)) == ["Ada"]


def test_resource_key_cannot_set_the_schedule(tenant: Tenant) -> None:
    schedule, other = make_schedule(tenant)["id"], make_schedule(tenant)["id"]
    ada = tenant.post_resource("Ada", email="ada@example.com", schedule_id=schedule)
    key = Caller(ada["api_token"], user="ada@example.com")

    kept = key.put(f"/resources/{ada['id']}", {"name": "A", "schedule_id": schedule})
    refused = key.put(f"/resources/{ada['id']}", {"name": "B", "schedule_id": other})

    assert (kept.status, kept.data["name"]) == (200, "A")
    assert (refused.status, refused.error["code"]) == (403, "forbidden")
    assert Resource.objects.get().name == "A"


WEEK = {"from": "2026-11-23T00:00:00Z", "to": "2026-11-30T00:00:00Z", "length": None}
MONDAY_TO_FRIDAY = [f"2026-11-{day} 09:00-17:00" for day in range(23, 28)]


@pytest.mark.parametrize(
    ("rules", "own", "expected"),
    [
        (HOURS, [], MONDAY_TO_FRIDAY),
        ([], [], ["2026-11-23 00:00+00:00 to 2026-11-30 00:00+00:00"]),
        (
            HOURS,
            [{"allow_hours": {"start": 12, "end": 20}}, {"block_day": {"day": "Monday"}}],
            [f"2026-11-{day} 12:00-17:00" for day in range(24, 28)],
        ),
        # Rules that open time close nothing: the schedule is under them.
        (HOURS, [OPEN], [*MONDAY_TO_FRIDAY, "2026-11-28 10:00-14:00"]),
        (
            [*HOURS, {"block_period": {"start": "2026-11-24", "end": "2026-11-30"}}],
            [OPEN, {"replace_day": {"date": "2026-11-25", "windows": [{"start": 8, "end": 9}]}}],
            ["2026-11-23 09:00-17:00", "2026-11-25 08:00-09:00", "2026-11-28 10:00-14:00"],
        ),
        (
            [*HOURS, OPEN],
            [{"block_weekends": {}}, {"block_hours": {"start": 9, "end": 16}}],
            [f"2026-11-{day} 16:00-17:00" for day in range(23, 28)],
        ),
        (
            [OPEN],
            [{"open_recurring": {"start": "2026-11-23 09:00:00", "duration": "1 hour",
                                 "rrule": "FREQ=WEEKLY"}},
             {"block_period": {"start": "2026-11-28 12:00:00", "end": "2026-11-29"}}],
            ["2026-11-23 09:00-10:00", "2026-11-28 10:00-12:00"],
        ),
    ],
)  # fmt: skip
def test_own_rules_apply_above_the_schedule(
    tenant: Tenant, rules: list[Any], own: list[Any], expected: list[str]
) -> None:
    schedule = make_schedule(tenant, *rules)["id"]
    ada = tenant.post_resource("Ada", schedule_id=schedule, availability_constraints=own)

    answer = ask(tenant, ada["id"], **WEEK)

    assert [line.removesuffix(" Ada").removesuffix(" +00:00") for line in lines(answer)] == expected


def test_update_applies_to_all_resources(tenant: Tenant) -> None:
    schedule = make_schedule(tenant, *HOURS)["id"]
    people = [tenant.post_resource(name, schedule_id=schedule)["id"] for name in "ABC"]
    project = tenant.post_project(*people, availability={"mode": "exclusive"})["id"]
    times = {"start": "2026-11-23T17:00:00Z", "end": "2026-11-23T18:00:00Z"}

    early = tenant.book(project_id=project, **times)
    rules = [{"allow_hours": {"start": 11, "end": 18}}]
    tenant.put(f"/schedules/{schedule}", {"availability_constraints": rules})
    found = tenant.post("/availability", {"project_id": project, **MORNING})
    booked = tenant.book(project_id=project, **times)

    assert [reason["text"] for reason in early.json["reasons"]] == [
        "Outside the schedule's opening hours: 09:00 to 17:00."
    ]
    assert lines(found) == ["2026-11-23 11:00-12:00 +00:00 A, B, C"]
    assert booked.status == 201


def test_explain_names_the_schedule(tenant: Tenant) -> None:
    schedule = make_schedule(tenant, {"block_hours": {"start": 9, "end": 10, "name": "Team"}})
    own = [{"allow_hours": {"start": 9, "end": 11}}]
    ada = tenant.post_resource("Ada", schedule_id=schedule["id"], availability_constraints=own)

    answer = tenant.post("/availability/explain", {"resources": [ada["id"]], **MORNING})

    segments = answer.data[0]["segments"]
    assert segment_lines(segments) == [
        "2026-11-23 09:00-10:00 +00:00: Blocked by the schedule's rule: Team (09:00 to 10:00"
        " every day).",
        "2026-11-23 10:00-11:00 +00:00: free",
        "2026-11-23 11:00-12:00 +00:00: Outside the resource's opening hours: 09:00 to 11:00.",
    ]
    assert segments[0]["reasons"][0] == {
        "type": "constraint",
        "source": "schedule",
        "constraint": {"block_hours": {"start": 9, "end": 10, "name": "Team"}},
        "text": "Blocked by the schedule's rule: Team (09:00 to 10:00 every day).",
    }
