"""POST /unavailable/slots: what is not free, per resource."""

from typing import Any

import pytest

from tests.availability.queries import MONDAY, MORNING, UNKNOWN, lines, open_hours, refusal
from tests.world import BERLIN, Answer, Caller, at

pytestmark = pytest.mark.usefixtures("monday")


def unavailable_times(caller: Caller, *resource_ids: str, **given: Any) -> Answer:
    body = {"resources": list(resource_ids), **MORNING, **given}
    return caller.post("/unavailable/slots", body)


def test_whole_response(tenant, ada):
    answer = unavailable_times(tenant, ada["id"], output_timezone=BERLIN)

    assert answer.status == 200
    assert answer.json == {
        "data": [
            {
                "start": "2026-11-23T11:00:00+01:00",
                "end": "2026-11-23T11:30:00+01:00",
                "resources": [{"id": ada["id"], "name": "Ada", "timezone": "UTC"}],
            }
        ]
    }


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ["10:00-10:30"]),
        # The length of a slot has no part in it, nor has the grid.
        ({"length": "3 hours"}, ["10:00-10:30"]),
        ({"length": None, "timeslot_increments": "1 hour"}, ["10:00-10:30"]),
        ({"buffer": "20 minutes"}, ["09:40-10:50"]),
        ({"buffer": "2 hours"}, ["09:00-12:00"]),
        ({"from": f"{MONDAY}T10:10:00Z"}, ["10:10-10:30"]),
        ({"to": f"{MONDAY}T10:00:01Z"}, ["10:00-10:00:01"]),
        ({"to": f"{MONDAY}T10:00:00Z"}, []),
        ({"from": f"{MONDAY}T10:30:00Z"}, []),
        ({"from": f"{MONDAY}T10:00:00Z", "to": f"{MONDAY}T10:30:00Z"}, ["10:00-10:30"]),
        ({"constraints": [{"block_hours": {"start": 11, "end": 24}}]},
         ["10:00-10:30", "11:00-12:00"]),
        ({"constraints": [{"block_hours": {"start": "10:30", "end": 11}}]}, ["10:00-11:00"]),
        ({"constraints": [{"allow_weekends": {}}]}, ["09:00-12:00"]),
        # What is past is not free.
        ({"from": f"{MONDAY}T08:00:00Z"}, ["08:00-08:10", "10:00-10:30"]),
        ({"from": f"{MONDAY}T08:00:00Z", "include_past": True}, ["10:00-10:30"]),
        ({"from": f"{MONDAY}T07:00:00Z", "to": f"{MONDAY}T08:00:00Z"}, ["07:00-08:00"]),
    ],
)  # fmt: skip
def test_each_field(tenant, ada, given, found):
    rows = [f"2026-11-23 {row} +00:00 Ada" for row in found]

    assert lines(unavailable_times(tenant, ada["id"], **given)) == rows


@pytest.mark.parametrize("mode", ["roundrobin_random", "mutual", "exclusive", None])
def test_intervals_are_per_resource(tenant, three, mode):
    """Whatever the mode; by start, then by end."""
    assert lines(unavailable_times(tenant, *three, mode=mode)) == [
        "2026-11-23 09:00-09:15 +00:00 Cleo",
        "2026-11-23 09:00-09:30 +00:00 Bob",
        "2026-11-23 11:00-12:00 +00:00 Ada",
        "2026-11-23 11:15-12:00 +00:00 Cleo",
    ]


def test_unavailable_is_the_complement_of_free(tenant, three):
    body = {
        "resources": three,
        "mode": "exclusive",
        "length": None,
        "buffer": "10 minutes",
        "from": "-3 hours",
        "to": "3 days 7 minutes",
        "round_to_nearest_hour": False,
        "constraints": [{"block_hours": {"start": "10:20", "end": "10:50"}}],
    }

    free = tenant.post("/availability", body).data
    not_free = tenant.post("/unavailable/slots", body).data

    for resource_id in three:
        spans = sorted(
            (slot["start"], slot["end"])
            for slot in (*free, *not_free)
            if resource_id in [one["id"] for one in slot["resources"]]
        )
        edges = (spans[0][0], spans[-1][1])
        assert edges == ("2026-11-23T05:10:00+00:00", "2026-11-26T08:17:00+00:00")
        assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]


def test_range_is_in_the_zone_of_each_resource(tenant):
    """`tomorrow` begins at another instant in each zone; before it nothing is said."""
    ids = [
        tenant.make_resource(zone, zone, **open_hours(0, 1))["id"]
        for zone in (BERLIN, "Asia/Kathmandu")
    ]

    answer = unavailable_times(tenant, *ids, **{"from": "tomorrow", "to": f"{MONDAY}T23:30:00Z"})

    assert lines(answer) == ["2026-11-23 19:15-23:30 +00:00 Asia/Kathmandu"]


def test_project_rules_and_limits_apply(tenant):
    """Its rules and its limit count; events of whole days where it says so."""
    ada = tenant.make_resource("Ada", **open_hours(9, 17))
    tenant.make_event(ada["calendars"][0]["id"], "2026-11-24", "2026-11-25", all_day=True)
    project = tenant.make_project(
        ada["id"],
        availability={"from": "now", "to": "3 days", "ignore_all_day_events": True},
        availability_constraints=[{"block_hours": {"start": 12, "end": 13}}],
        settings={"max_per_day": 1},
    )
    tenant.book(
        project_id=project["id"],
        start="2026-11-25T10:00:00Z",
        end="2026-11-25T11:00:00Z",
    )

    answer = tenant.post("/unavailable/slots", {"project_id": project["id"]})

    assert lines(answer) == [
        "2026-11-23 12:00-13:00 +00:00 Ada",
        "2026-11-23 17:00+00:00 to 2026-11-24 09:00+00:00 Ada",
        "2026-11-24 12:00-13:00 +00:00 Ada",
        "2026-11-24 17:00+00:00 to 2026-11-26 08:10+00:00 Ada",
    ]


def test_project_without_resources(tenant):
    project = tenant.make_project()

    answer = tenant.post("/unavailable/slots", {"project_id": project["id"]})

    assert (answer.status, answer.json) == (200, {"data": []})


def test_events_over_midnight_and_beyond_the_range(tenant, monday):
    monday.move_to(at("2026-11-20 00:00"))
    ada = tenant.make_resource("Ada")
    calendar = ada["calendars"][0]["id"]
    tenant.make_event(calendar, "2026-11-21T22:00:00Z", "2026-11-22T02:00:00Z")
    tenant.make_event(calendar, "2026-11-22T02:00:00Z", "2026-11-22T03:00:00Z")
    tenant.make_event(calendar, "2026-11-22T23:30:00Z", "2026-11-24T01:00:00Z")
    tenant.make_event(calendar, "2026-11-20T23:00:00Z", "2026-11-21T00:30:00Z")

    answer = unavailable_times(
        tenant, ada["id"], **{"from": "2026-11-21 00:00:00", "to": f"{MONDAY} 00:00:00"}
    )

    assert lines(answer) == [
        "2026-11-21 00:00-00:30 +00:00 Ada",
        "2026-11-21 22:00+00:00 to 2026-11-22 03:00+00:00 Ada",
        "2026-11-22 23:30+00:00 to 2026-11-23 00:00+00:00 Ada",
    ]


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"resources": "Required without a project."}),
        ({"resources": [UNKNOWN]}, {"resources__0": "There is no such resource."}),
        ({"project_id": UNKNOWN}, {"project_id": "There is no such project."}),
        ({"project_id": UNKNOWN, "to": 9}, {"to": "Must be a string."}),
        ({"include_past": "yes"}, {"include_past": "Must be true or false."}),
    ],
)
def test_wrong_bodies_are_refused(tenant, body, errors):
    answer = tenant.post("/unavailable/slots", body)

    assert (answer.status, answer.error) == (422, refusal(**errors))


def test_length_of_the_range_is_limited(tenant, ada):
    ends = {"to": MORNING["from"]}, {"from": "now", "to": "367 days"}

    short, long = (unavailable_times(tenant, ada["id"], **end) for end in ends)

    assert short.error == refusal(to="Must be after `from`.")
    assert long.error == refusal(to="Must be at most 366 days after `from`.")


def test_a_resource_key_sees_itself_only(tenant, ada):
    bob = tenant.make_resource("Bob", email="bob@example.com", **open_hours(9, 11))
    caller = Caller(bob["api_token"], user="bob@example.com")

    own = caller.post("/unavailable/slots", MORNING)
    other = unavailable_times(caller, ada["id"])

    assert lines(own) == ["2026-11-23 11:00-12:00 +00:00 Bob"]
    assert other.error == refusal(resources__0="There is no such resource.")
