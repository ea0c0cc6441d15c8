"""POST /availability/explain: why time is free or not, per resource."""

from itertools import pairwise
from typing import Any

import pytest

from availability.search import explaining as search
from tests.availability.queries import (
    MONDAY,
    MORNING,
    UNKNOWN,
    lines,
    open_hours,
    refusal,
    segment_lines,
)
from tests.world import BERLIN, Answer, Caller, at, hours

pytestmark = [pytest.mark.usefixtures("monday"), pytest.mark.both_databases]


def explain(caller: Caller, *resource_ids: str, **given: Any) -> Answer:
    body = {"resources": list(resource_ids), **MORNING, **given}
    return caller.post("/availability/explain", body)


def segments(answer: Answer, position: int = 0) -> list[str]:
    return segment_lines(answer.data[position]["segments"])


def read_span(record: dict[str, Any]) -> tuple[str, str]:
    return record["start"], record["end"]


def rules(*constraints: dict[str, Any]) -> dict[str, Any]:
    return {"availability_constraints": list(constraints)}


def test_whole_response(tenant):
    """Every key of every type of reason, in order; several hold at once."""
    ada = tenant.make_resource("Ada", **rules({"allow_hours": {"start": "08:30", "end": 17}}))
    event = tenant.make_event(
        ada["calendars"][0]["id"], f"{MONDAY}T10:00:00Z", f"{MONDAY}T10:30:00Z", what="Secret"
    )
    lunch = {"block_hours": {"start": "10:20", "end": 11}}
    project = tenant.make_project(
        ada["id"],
        availability={"from": "1 hour", "to": "3 hours", "buffer": "15 minutes"},
        **rules(lunch),
    )

    answer = tenant.post(
        "/availability/explain",
        {
            "project_id": project["id"],
            "from": f"{MONDAY}T08:00:00Z",
            "to": f"{MONDAY}T12:00:00Z",
            "constraints": [{"allow_weekdays": {}}, {"allow_day": {"day": "sunday"}},
                            {"block_period": {"start": "2026-11-23 11:30:00",
                                              "end": "2026-11-24"}}],
            "output_timezone": BERLIN,
        },
    )  # fmt: skip

    opening = {
        "type": "constraint",
        "source": "resource",
        "constraint": {"allow_hours": {"start": "08:30", "end": 17}},
        "text": "Outside the resource's opening hours: 08:30 to 17:00.",
    }
    past = {"type": "past", "source": None, "text": "Is in the past."}
    notice = {
        "type": "notice",
        "source": None,
        "text": "Starts within the minimum notice.",
    }
    buffer = {
        "type": "buffer",
        "source": None,
        "event_id": event["id"],
        "text": "Within the buffer of 15 minutes around an event.",
    }
    overlap = {
        "type": "event",
        "source": None,
        "event_id": event["id"],
        "text": "Overlaps an event.",
    }
    pause = {
        "type": "constraint",
        "source": "project",
        "constraint": lunch,
        "text": "Blocked by the project's rule: 10:20 to 11:00 every day.",
    }
    period = {
        "type": "constraint",
        "source": "request",
        "constraint": {
            "block_period": {"start": "2026-11-23 11:30:00", "end": "2026-11-24 00:00:00"}
        },
        "text": "Blocked by the request's rule: 2026-11-23 11:30:00 to 2026-11-24 00:00:00.",
    }
    horizon = {"type": "limit", "source": None, "text": "Beyond the booking window."}
    expected = [
        ("09:00", "09:10", [opening, notice, past]),
        ("09:10", "09:30", [opening, notice]),
        ("09:30", "10:10", [notice]),
        ("10:10", "10:45", []),
        ("10:45", "11:00", [buffer]),
        ("11:00", "11:20", [overlap]),
        ("11:20", "11:30", [pause, overlap]),
        ("11:30", "11:45", [pause, buffer]),
        ("11:45", "12:00", [pause]),
        ("12:00", "12:10", []),
        ("12:10", "12:30", [horizon]),
        ("12:30", "13:00", [period, horizon]),
    ]
    assert answer.status == 200
    assert answer.json == {
        "data": [
            {
                "resource": {"id": ada["id"], "name": "Ada", "timezone": "UTC"},
                "never_open": False,
                "segments": [
                    {
                        "start": f"2026-11-23T{start}:00+01:00",
                        "end": f"2026-11-23T{end}:00+01:00",
                        "available": not reasons,
                        "reasons": reasons,
                    }
                    for start, end, reasons in expected
                ],
            }
        ]
    }


def test_united_allowing_rules_are_named_together(tenant, ada):
    allowed = [{"allow_day": {"day": "Tuesday"}}, {"allow_weekends": {}}]

    answer = explain(tenant, ada["id"], constraints=allowed, to=f"{MONDAY}T10:00:00Z")

    assert answer.data[0]["segments"][0]["reasons"] == [
        {
            "type": "constraint",
            "source": "request",
            "constraints": allowed,
            "text": "Outside the request's days: Tuesdays and Saturday and Sunday.",
        }
    ]


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ({"allow_hours": {"start": 13, "end": 14}},
         "Outside the {}'s opening hours: 13:00 to 14:00."),
        ({"allow_day": {"day": "Tuesday"}}, "Outside the {}'s days: Tuesdays."),
        ({"allow_weekends": {}}, "Outside the {}'s days: Saturday and Sunday."),
        ({"allow_day_and_time": {"day": "Monday", "start": 13, "end": 24}},
         "Outside the {}'s opening hours: Mondays 13:00 to 24:00."),
        ({"allow_period": {"start": "2026-11-24 00:00:00", "end": "2026-11-25 00:00:00"}},
         "Outside the {}'s period: 2026-11-24 00:00:00 to 2026-11-25 00:00:00."),
        ({"block_hours": {"start": 9, "end": 12}},
         "Blocked by the {}'s rule: 09:00 to 12:00 every day."),
        ({"block_day": {"day": "Monday"}}, "Blocked by the {}'s rule: Mondays."),
        ({"block_weekdays": {}}, "Blocked by the {}'s rule: Monday to Friday."),
        ({"block_day_and_time": {"day": "Monday", "start": 8, "end": "12:30"}},
         "Blocked by the {}'s rule: Mondays 08:00 to 12:30."),
        ({"block_period": {"start": "2026-11-23T08:00:00+00:00",
                           "end": "2026-11-23T13:00:00+01:00"}},
         "Blocked by the {}'s rule: 2026-11-23T08:00:00+00:00 to 2026-11-23T13:00:00+01:00."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("source", ["resource", "project", "request"])
@pytest.mark.matrix
def test_constraint_of_each_source(tenant, source, constraint, text):
    own = {source: [constraint]}
    ada = tenant.make_resource("Ada", availability_constraints=own.get("resource", []))
    project = tenant.make_project(ada["id"], availability_constraints=own.get("project", []))
    body = {"project_id": project["id"], **MORNING, "constraints": own.get("request", [])}

    answer = tenant.post("/availability/explain", body)

    assert answer.data[0]["segments"] == [
        {
            "start": "2026-11-23T09:00:00+00:00",
            "end": "2026-11-23T12:00:00+00:00",
            "available": False,
            "reasons": [
                {
                    "type": "constraint",
                    "source": source,
                    "constraint": constraint,
                    "text": text.format(source),
                }
            ],
        }
    ]


def test_limit_of_a_day(tenant):
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(
        ada["id"], availability={"length": None}, settings={"max_per_day": 1}
    )
    booking = tenant.book(
        project_id=project["id"],
        start=f"{MONDAY}T10:00:00Z",
        end=f"{MONDAY}T11:00:00Z",
    ).data
    booking = tenant.get(f"/bookings/{booking['id']}?include=event").data
    span = {"from": f"{MONDAY}T09:30:00Z", "to": "2026-11-24T01:00:00Z"}

    answer = tenant.post("/availability/explain", {"project_id": project["id"], **span})

    assert segments(answer) == [
        "2026-11-23 09:30-10:00 +00:00: Daily limit reached.",
        "2026-11-23 10:00-11:00 +00:00: Overlaps an event. Daily limit reached.",
        "2026-11-23 11:00+00:00 to 2026-11-24 00:00+00:00: Daily limit reached.",
        "2026-11-24 00:00-01:00 +00:00: free",
    ]
    assert answer.data[0]["segments"][1]["reasons"] == [
        {
            "type": "event",
            "source": None,
            "event_id": booking["event"]["id"],
            "text": "Overlaps an event.",
        },
        {"type": "limit", "source": None, "text": "Daily limit reached."},
    ]


# --- Segments -------------------------------------------------------------------------------------
@pytest.fixture
def busy_three(tenant, three):
    """The three with a few more events: touching, overlapping, of a whole day."""
    for number, resource_id in enumerate(three):
        resource = tenant.get(f"/resources/{resource_id}?include=calendars").data
        calendar = resource["calendars"][0]["id"]
        tenant.make_event(calendar, f"{MONDAY}T10:0{number}:00Z", f"{MONDAY}T10:30:00Z")
        tenant.make_event(calendar, f"{MONDAY}T10:30:00Z", f"{MONDAY}T10:35:00Z")
        tenant.make_event(calendar, f"{MONDAY}T10:20:00Z", f"{MONDAY}T10:32:00Z")
        tenant.make_event(calendar, f"2026-11-2{4 + number}", None, all_day=True)
    return three


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"buffer": "7 minutes"},
        {"ignore_all_day_events": True},
        {"from": "-1 day", "include_past": True},
        {"from": "-1 day"},
        {"round_to_nearest_hour": False},
        {"length": "30 minutes"},
        {"constraints": [{"block_hours": {"start": 10, "end": "10:15"}}, {"block_weekends": []}]},
        {"output_timezone": "Asia/Kathmandu"},
    ],
)
def test_segments_cover_the_range_and_agree_with_availability(tenant, busy_three, given):
    body = {"resources": busy_three, "mode": "exclusive", "to": "4 days 3 minutes", **given}

    explained = tenant.post("/availability/explain", body).data
    slots = tenant.post("/availability", {**body, "length": None}).data
    taken = tenant.post("/unavailable/slots", body).data

    assert [one["resource"]["id"] for one in explained] == busy_three
    for one in explained:
        found = one["segments"]
        assert all(before["end"] == after["start"] for before, after in pairwise(found))
        assert all(before["reasons"] != after["reasons"] for before, after in pairwise(found))
        assert all(segment["available"] == (not segment["reasons"]) for segment in found)
        free, not_free = (
            [read_span(each) for each in answer if one["resource"] in each["resources"]]
            for answer in (slots, taken)
        )
        assert [read_span(each) for each in found if each["available"]] == free
        whole = sorted([*free, *not_free])
        assert (found[0]["start"], found[-1]["end"]) == (whole[0][0], whole[-1][1])


def test_free_range_is_one_segment(tenant):
    ada = tenant.make_resource("Ada")

    assert segments(explain(tenant, ada["id"])) == ["2026-11-23 09:00-12:00 +00:00: free"]


def test_events_beyond_the_range_are_named(tenant):
    ada = tenant.make_resource("Ada")
    calendar = ada["calendars"][0]["id"]
    tenant.make_event(calendar, "2026-11-22T08:00:00Z", f"{MONDAY}T09:01:00Z")
    tenant.make_event(calendar, f"{MONDAY}T11:59:00Z", "2026-11-25T13:00:00Z")
    tenant.make_event(calendar, f"{MONDAY}T12:01:00Z", "2026-11-25T13:00:00Z")

    assert segments(explain(tenant, ada["id"], buffer="2 minutes")) == [
        "2026-11-23 09:00-09:01 +00:00: Overlaps an event.",
        "2026-11-23 09:01-09:03 +00:00: Within the buffer of 2 minutes around an event.",
        "2026-11-23 09:03-11:57 +00:00: free",
        "2026-11-23 11:57-11:59 +00:00: Within the buffer of 2 minutes around an event.",
        "2026-11-23 11:59-12:00 +00:00: Overlaps an event. "
        "Within the buffer of 2 minutes around an event.",
    ]


def test_overlapping_events_are_both_named(tenant, ada):
    other = tenant.make_event(
        ada["calendars"][0]["id"], f"{MONDAY}T10:15:00Z", f"{MONDAY}T10:45:00Z"
    )

    found = explain(tenant, ada["id"]).data[0]["segments"]

    both = [reason["event_id"] for reason in found[2]["reasons"]]
    assert (found[2]["start"], found[2]["end"]) == (
        "2026-11-23T10:15:00+00:00",
        "2026-11-23T10:30:00+00:00",
    )
    assert both == [found[1]["reasons"][0]["event_id"], other["id"]]


# --- Never open -----------------------------------------------------------------------------------
def test_never_open_of_each_resource(tenant):
    ada = tenant.make_resource("Ada", **open_hours(9, 12))
    bob = tenant.make_resource("Bob")
    evening = {"constraints": [{"allow_hours": {"start": 18, "end": 20}}]}

    answer = explain(tenant, ada["id"], bob["id"], **evening, to="2026-12-23T12:00:00Z")

    never, often = answer.data
    assert never == {
        "resource": {"id": ada["id"], "name": "Ada", "timezone": "UTC"},
        "never_open": True,
        "text": "No time in this range satisfies all rules together.",
        "segments": never["segments"],
    }
    assert {one["available"] for one in never["segments"]} == {False}
    assert often == {
        "resource": {"id": bob["id"], "name": "Bob", "timezone": "UTC"},
        "never_open": False,
        "segments": often["segments"],
    }


@pytest.mark.parametrize(
    ("zone", "day", "constraint", "never"),
    [
        (BERLIN, "2025-03-30", {"allow_hours": {"start": 2, "end": 3}}, True),
        (BERLIN, "2025-03-31", {"allow_hours": {"start": 2, "end": 3}}, False),
        (BERLIN, "2025-10-26", {"allow_hours": {"start": 2, "end": 3}}, False),
        ("Africa/Cairo", "2025-04-25", {"allow_hours": {"start": 0, "end": 1}}, True),
        ("Pacific/Apia", "2011-12-30", {"allow_day": {"day": "Friday"}}, True),
        (BERLIN, "2025-03-31", {"allow_day": {"day": "Tuesday"}}, True),
    ],
)
def test_never_open_on_a_day(tenant, monday, zone, day, constraint, never):
    monday.move_to(at(day) - hours(48))
    rosa = tenant.make_resource("Rosa", zone, **rules(constraint))
    span = {"from": f"{day}T02:00:00Z", "to": f"{day}T21:59:59Z"}
    if zone != "Pacific/Apia":
        span = {"from": f"{day} 01:00:00", "to": f"{day} 23:59:59"}

    answer = explain(tenant, rosa["id"], **span)

    assert answer.data[0]["never_open"] is never
    assert ("text" in answer.data[0]) is never


def test_full_calendar_is_not_never_open(tenant):
    """The rules open the time; it is taken, which the segments say."""
    ada = tenant.make_resource("Ada")
    tenant.make_event(ada["calendars"][0]["id"], f"{MONDAY}T00:00:00Z", f"{MONDAY}T20:00:00Z")

    answer = explain(tenant, ada["id"])

    assert answer.data[0]["never_open"] is False
    assert segments(answer) == ["2026-11-23 09:00-12:00 +00:00: Overlaps an event."]


# --- Notice and horizon ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("terms", "given", "found"),
    [
        # The project's own range: nothing outside it is asked for.
        ({"from": "2 hours", "to": "1 day"}, {},
         ["2026-11-23 11:00+00:00 to 2026-11-24 08:10+00:00: free"]),
        # Whatever range is asked, notice and horizon are those of the project, unrounded.
        ({"from": "2 hours", "to": "1 day"},
         {"from": f"{MONDAY}T09:00:00Z", "to": "2026-11-24T10:00:00Z"},
         ["2026-11-23 09:00-10:10 +00:00: Starts within the minimum notice.",
          "2026-11-23 10:10+00:00 to 2026-11-24 08:10+00:00: free",
          "2026-11-24 08:10-10:00 +00:00: Beyond the booking window."]),
        ({"from": "2 days", "to": "3 days"}, MORNING,
         ["2026-11-23 09:00-12:00 +00:00: Starts within the minimum notice."]),
        ({"from": "now", "to": "1 hour"}, MORNING,
         ["2026-11-23 09:00-09:10 +00:00: free",
          "2026-11-23 09:10-12:00 +00:00: Beyond the booking window."]),
        ({"from": "tomorrow", "to": "2 days"},
         {"from": f"{MONDAY}T23:00:00Z", "to": "2026-11-24T01:00:00Z"},
         ["2026-11-23 23:00+00:00 to 2026-11-24 00:00+00:00: "
          "Starts within the minimum notice.",
          "2026-11-24 00:00-01:00 +00:00: free"]),
        ({"from": f"{MONDAY} 10:00:00", "to": f"{MONDAY}T11:00:00Z"}, MORNING,
         ["2026-11-23 09:00-10:00 +00:00: Starts within the minimum notice.",
          "2026-11-23 10:00-11:00 +00:00: free",
          "2026-11-23 11:00-12:00 +00:00: Beyond the booking window."]),
        # Without notice the past needs no second reason.
        ({}, {"from": f"{MONDAY}T08:00:00Z", "to": f"{MONDAY}T09:00:00Z"},
         ["2026-11-23 08:00-08:10 +00:00: Is in the past.",
          "2026-11-23 08:10-09:00 +00:00: free"]),
    ],
)  # fmt: skip
def test_notice_and_horizon_of_a_project(tenant, terms, given, found):
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(ada["id"], availability={"length": None, **terms})
    body = {"project_id": project["id"], **given}

    assert segments(tenant.post("/availability/explain", body)) == found


@pytest.mark.parametrize(
    ("windows", "found"),
    [
        ({"end_window": (9, 10)},
         ["2026-11-23 08:30-09:00 +00:00: Bookings can't end at this time.",
          "2026-11-23 09:00-10:00 +00:00: free",
          "2026-11-23 10:00-11:30 +00:00: Bookings can't end at this time."]),
        ({"start_window": (9, 10), "end_window": (8, 11)},
         ["2026-11-23 08:30-09:00 +00:00: Bookings can't start at this time.",
          "2026-11-23 09:00-10:00 +00:00: free",
          "2026-11-23 10:00-11:00 +00:00: Bookings can't start at this time.",
          "2026-11-23 11:00-11:30 +00:00: Bookings can't start at this time."
          " Bookings can't end at this time."]),
    ],
)  # fmt: skip
def test_windows_of_a_project(tenant, windows, found):
    ada = tenant.make_resource("Ada")
    terms = {
        name: [{"allow_hours": {"start": start, "end": end}}]
        for name, (start, end) in windows.items()
    }
    project = tenant.make_project(ada["id"], availability={"length": "30 mins", **terms})
    span = {"from": f"{MONDAY}T08:30:00Z", "to": f"{MONDAY}T11:30:00Z"}

    answer = tenant.post("/availability/explain", {"project_id": project["id"], **span})

    assert segments(answer) == found


def test_a_request_without_project_has_no_horizon(tenant, ada):
    answer = explain(tenant, ada["id"], to=f"{MONDAY}T09:30:00Z")

    assert segments(answer) == ["2026-11-23 09:00-09:30 +00:00: free"]


def test_include_past(tenant, ada):
    span = {"from": f"{MONDAY}T07:00:00Z", "to": f"{MONDAY}T09:00:00Z"}

    without = explain(tenant, ada["id"], **span)
    including = explain(tenant, ada["id"], **span, include_past=True)

    assert segments(without) == [
        "2026-11-23 07:00-08:10 +00:00: Is in the past.",
        "2026-11-23 08:10-09:00 +00:00: free",
    ]
    assert segments(including) == ["2026-11-23 07:00-09:00 +00:00: free"]


# --- Who asks, and what is refused ----------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"resources": "Required without a project."}),
        ({"resources": [UNKNOWN]}, {"resources__0": "There is no such resource."}),
        ({"project_id": UNKNOWN}, {"project_id": "There is no such project."}),
        ({"constraints": [{"allow_hours": {"start": 9}}]},
         {"constraints__0__allow_hours__end": "This field is required."}),
    ],
)  # fmt: skip
def test_wrong_bodies_are_refused(tenant, body, errors):
    answer = tenant.post("/availability/explain", body)

    assert (answer.status, answer.error) == (422, refusal(**errors))


def test_too_many_segments_are_refused(tenant, ada):
    """Two hundred rules, each of which begins and ends every day of a year."""
    many = [{"block_hours": {"start": "12:00", "end": f"12:{n % 59 + 1:02}"}} for n in range(200)]

    answer = explain(tenant, ada["id"], constraints=many, to="2027-11-20T00:00:00Z")

    assert (answer.status, answer.error) == (
        422,
        refusal(to="Too much to explain: request a shorter range."),
    )


TOO_MUCH = (422, refusal(to="Too much to explain: request a shorter range."))


def test_reasons_of_all_resources_together_are_limited(tenant, monkeypatch):
    """A weekend closes each resource once, and so does the booking window at the end."""
    rules = [{"allow_weekdays": {}}]
    ids = [tenant.make_resource(availability_constraints=rules)["id"] for _ in range(3)]
    range_ = {"from": "2026-11-28T00:00:00Z", "to": "2026-11-30T06:00:00Z"}

    def answers(limit):
        monkeypatch.setattr(search, "MAX_REASONS", limit)
        return [explain(tenant, *chosen, **range_) for chosen in (ids[:1], ids)]

    assert [answer.status for answer in answers(1)] == [200, 422]
    assert [answer.status for answer in answers(2)] == [200, 422]
    assert [answer.status for answer in answers(3)] == [200, 200]
    assert (answers(1)[1].status, answers(1)[1].error) == TOO_MUCH


def test_events_are_counted_before_they_are_read(tenant, ada, monkeypatch):
    calendar = ada["calendars"][0]["id"]
    for hour in (8, 9, 10):
        tenant.make_event(calendar, f"2026-11-23T{hour:02}:00:00Z", f"2026-11-23T{hour:02}:30:00Z")
    monkeypatch.setattr(search, "MAX_REASONS", 2)
    monkeypatch.setattr(search, "fetch_busy_items", None)

    answer = explain(tenant, ada["id"], to="2026-11-24T00:00:00Z")

    assert (answer.status, answer.error) == TOO_MUCH


def test_project_without_resources(tenant):
    project = tenant.make_project()

    answer = tenant.post("/availability/explain", {"project_id": project["id"]})

    assert (answer.status, answer.json) == (200, {"data": []})


def test_a_resource_key_sees_itself_only(tenant, ada):
    bob = tenant.make_resource("Bob", email="bob@example.com")
    caller = Caller(bob["api_token"], user="bob@example.com")

    own = caller.post("/availability/explain", MORNING)
    other = explain(caller, ada["id"])

    assert segments(own) == ["2026-11-23 09:00-12:00 +00:00: free"]
    assert other.error == refusal(resources__0="There is no such resource.")


def test_slots_agree_with_free_segments(tenant, ada):
    """The same zone formats both."""
    zone = {"output_timezone": "Asia/Kathmandu", "length": None}

    slots = tenant.post("/availability", {"resources": [ada["id"]], **MORNING, **zone})
    explained = explain(tenant, ada["id"], **zone)

    assert [row.removesuffix(" Ada") for row in lines(slots)] == [
        row.removesuffix(": free") for row in segments(explained) if row.endswith("free")
    ]


# --- Rules of dates -------------------------------------------------------------------------------
SATURDAY = {"from": "2026-11-28T09:00:00Z", "to": "2026-11-28T15:00:00Z"}
EXTRA = {"open_period": {"start": "2026-11-28 10:00:00", "end": "2026-11-28 14:00:00"}}


def test_explain_names_the_list_that_closes_an_extra_saturday(tenant):
    ada = tenant.make_resource("Ada", **rules({"allow_weekdays": {}}, EXTRA))
    project = tenant.make_project(ada["id"], **rules({"block_weekends": {}}))

    alone = explain(tenant, ada["id"], **SATURDAY)
    answer = explain(tenant, project_id=project["id"], resources=[ada["id"]], **SATURDAY)

    closed = "Outside the resource's days: Monday to Friday."
    assert segments(alone) == [
        f"2026-11-28 09:00-10:00 +00:00: {closed}",
        "2026-11-28 10:00-14:00 +00:00: free",
        f"2026-11-28 14:00-15:00 +00:00: {closed}",
    ]
    blocked = "Blocked by the project's rule: Saturday and Sunday."
    assert segments(answer) == [
        f"2026-11-28 09:00-10:00 +00:00: {closed} {blocked}",
        f"2026-11-28 10:00-14:00 +00:00: {blocked}",
        f"2026-11-28 14:00-15:00 +00:00: {closed} {blocked}",
    ]
    assert answer.data[0]["segments"][1]["reasons"] == [
        {
            "type": "constraint",
            "source": "project",
            "constraint": {"block_weekends": {}},
            "text": blocked,
        }
    ]


@pytest.mark.parametrize(
    ("constraints", "given", "expected"),
    [
        (
            [{"block_holidays": {"country": "DE", "subdivision": "BY"}}],
            {"from": "2026-12-24T22:00:00Z", "to": "2026-12-25T01:00:00Z"},
            [
                "2026-12-24 22:00+00:00 to 2026-12-25 00:00+00:00: free",
                "2026-12-25 00:00-01:00 +00:00: Blocked by the resource's rule: holidays of DE BY,"
                " public holiday: Christmas Day.",
            ],
        ),
        (
            [{"replace_day": {"date": "2026-11-23", "windows": [{"start": 9, "end": "10:30"}]}}],
            MORNING,
            [
                "2026-11-23 09:00-10:30 +00:00: free",
                "2026-11-23 10:30-12:00 +00:00: Outside the resource's hours of the day:"
                " 2026-11-23 09:00 to 10:30.",
            ],
        ),
        (
            [{"replace_day": {"date": "2026-11-23", "windows": [], "name": "Outing"}}],
            MORNING,
            [
                "2026-11-23 09:00-12:00 +00:00: Outside the resource's hours of the day:"
                " Outing (2026-11-23 closed).",
            ],
        ),
        (
            [
                {"open_recurring": {"start": "2026-11-09 10:00:00", "duration": "1 hour",
                                    "rrule": "FREQ=WEEKLY;INTERVAL=2", "name": "Late"}},
                EXTRA,
            ],
            MORNING,
            [
                f"2026-11-23 {times} +00:00: {text}"
                for text in ("Outside the resource's extra hours: Late (1 hour from"
                             " 2026-11-09 10:00:00, repeated: FREQ=WEEKLY;INTERVAL=2) and"
                             " 2026-11-28 10:00:00 to 2026-11-28 14:00:00.",)
                for times, text in (("09:00-10:00", text), ("10:00-11:00", "free"),
                                    ("11:00-12:00", text))
            ],
        ),
        (
            [{"block_recurring": {"start": "2026-11-02 11:00:00", "duration": "30 minutes",
                                  "rrule": "FREQ=MONTHLY;BYDAY=4MO,1MO", "name": "Team"}}],
            MORNING,
            [
                "2026-11-23 09:00-11:00 +00:00: free",
                "2026-11-23 11:00-11:30 +00:00: Blocked by the resource's rule: Team (30 minutes"
                " from 2026-11-02 11:00:00, repeated: FREQ=MONTHLY;BYDAY=4MO,1MO).",
                "2026-11-23 11:30-12:00 +00:00: free",
            ],
        ),
        (
            [{"allow_period": {"start": "2026-11-23 00:00:00", "end": "2026-11-23 10:00:00",
                               "name": "Season"}},
             {"block_hours": {"start": "09:30", "end": 10, "name": "Break"}}],
            MORNING,
            [
                "2026-11-23 09:00-09:30 +00:00: free",
                "2026-11-23 09:30-10:00 +00:00: Blocked by the resource's rule:"
                " Break (09:30 to 10:00 every day).",
                "2026-11-23 10:00-12:00 +00:00: Outside the resource's period:"
                " Season (2026-11-23 00:00:00 to 2026-11-23 10:00:00).",
            ],
        ),
    ],
)  # fmt: skip
def test_rules_of_dates(tenant, constraints, given, expected):
    ada = tenant.make_resource("Ada", **rules(*constraints))

    answer = explain(tenant, ada["id"], **given)

    assert segments(answer) == expected
    shown = [reason for one in answer.data[0]["segments"] for reason in one["reasons"]]
    known = [reason.get("constraint") or reason["constraints"] for reason in shown]
    assert all(one == constraints or one in constraints for one in known)


def test_public_refusal_does_not_name_the_rule(tenant):
    ada = tenant.make_resource("Ada")
    outing = {"block_period": {"start": "2026-11-24", "end": "2026-11-25", "name": "In hospital"}}
    project = tenant.make_project(ada["id"], availability={"length": "1 hour"}, **rules(outing))
    body = {
        "project_id": project["id"],
        "start": "2026-11-24T10:00:00Z",
        "end": "2026-11-24T11:00:00Z",
        "what": "A",
        "customer": {"name": "Marty", "email": "marty@example.com"},
    }

    public = tenant.widget().post("/bookings", body)
    own = tenant.post("/bookings", {**body, "settings": {"enforce_availability": True}})

    text = "2026-11-24 00:00:00 to 2026-11-25 00:00:00"
    assert [each.status for each in (public, own)] == [409, 409]
    assert public.json["reasons"] == [
        {"type": "constraint", "text": f"Blocked by the project's rule: {text}."}
    ]
    assert [reason["text"] for reason in own.json["reasons"]] == [
        f"Blocked by the project's rule: In hospital ({text})."
    ]
