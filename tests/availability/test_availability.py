"""POST /availability over the whole stack: every field of its table but the range (test_range)."""

import random

import pytest

from tests.availability.queries import (
    MONDAY,
    MORNING,
    UNKNOWN,
    ask,
    line,
    lines,
    open_hours,
    refusal,
    starts,
)
from tests.world import BERLIN

ONE_MODE = (
    "Must be one of roundrobin_random, roundrobin_prioritized, roundrobin_fair, mutual, exclusive,"
    " all_free."
)
NO_DURATION = "Must be a duration such as '30 minutes' or '3 days 2 weeks'."
KATHMANDU = "Asia/Kathmandu"

pytestmark = [pytest.mark.usefixtures("monday"), pytest.mark.both_databases]


# --- The answer -----------------------------------------------------------------------------------
def test_whole_response(tenant, ada):
    answer = ask(tenant, ada["id"], output_timezone=BERLIN)

    summary = {"id": ada["id"], "name": "Ada", "timezone": "UTC"}
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.json == {
        "data": [
            {
                "start": "2026-11-23T10:00:00+01:00",
                "end": "2026-11-23T11:00:00+01:00",
                "resources": [summary],
            },
            {
                "start": "2026-11-23T11:30:00+01:00",
                "end": "2026-11-23T12:30:00+01:00",
                "resources": [summary],
            },
        ]
    }


def test_defaults_are_hours_of_the_next_four_weeks(tenant, ada):
    answer = tenant.post("/availability", {"resources": [ada["id"]]})

    found = lines(answer)
    assert found[:3] == [
        "2026-11-23 09:00-10:00 +00:00 Ada",
        "2026-11-23 10:30-11:30 +00:00 Ada",
        "2026-11-23 11:30-12:30 +00:00 Ada",
    ]
    # From 10:30 on to 08:10 four weeks later, one after another.
    assert found[-1] == "2026-12-21 06:30-07:30 +00:00 Ada"
    assert len(found) == 1 + (4 * 7 * 24 - 3)


def test_null_is_the_default_except_for_length(tenant, ada):
    names = ["mode", "from", "to", "buffer", "timeslot_increments", "round_to_nearest_hour"]
    names += ["ignore_all_day_events", "constraints", "include_past", "output_timezone"]
    plain = tenant.post("/availability", {"resources": [ada["id"]]})

    nulls = dict.fromkeys([*names, "project_id"])
    answer = tenant.post("/availability", {"resources": [ada["id"]], **nulls})

    assert answer.json == plain.json


def test_unknown_keys_are_ignored(tenant, ada):
    assert ask(tenant, ada["id"], colour="red").json == ask(tenant, ada["id"]).json


def test_no_free_time_is_an_empty_list(tenant, ada):
    answer = ask(tenant, ada["id"], constraints=[{"allow_day": {"day": "Sunday"}}])

    assert (answer.status, answer.content) == (200, b'{"data":[]}')


@pytest.mark.parametrize("mode", ["roundrobin_random", "mutual", "exclusive"])
def test_project_without_resources_has_no_slots(tenant, mode):
    project = tenant.make_project(availability={"mode": mode})

    answer = tenant.post("/availability", {"project_id": project["id"]})

    assert (answer.status, answer.json) == (200, {"data": []})


# --- Each field -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ["09:00-10:00", "10:30-11:30"]),
        ({"length": "30 minutes"},
         ["09:00-09:30", "09:30-10:00", "10:30-11:00", "11:00-11:30", "11:30-12:00"]),
        ({"length": "1 minute", "to": f"{MONDAY}T09:02:30Z"}, ["09:00-09:01", "09:01-09:02"]),
        ({"length": "0 hours 90 mins"}, ["10:30-12:00"]),
        ({"length": "5400 secs"}, ["10:30-12:00"]),
        ({"length": "91 minutes"}, []),
        ({"length": "366 days"}, []),
        ({"length": None}, ["09:00-10:00", "10:30-12:00"]),
        ({"length": None, "timeslot_increments": "15 minutes"}, ["09:00-10:00", "10:30-12:00"]),
        ({"buffer": "15 minutes"}, ["10:45-11:45"]),
        ({"buffer": "15 minutes", "length": None}, ["09:00-09:45", "10:45-12:00"]),
        ({"buffer": "1 hour", "length": None}, ["11:30-12:00"]),
        ({"buffer": "366 days", "length": None}, []),
        ({"buffer": "0 minutes"}, ["09:00-10:00", "10:30-11:30"]),
        ({"buffer": 0}, ["09:00-10:00", "10:30-11:30"]),
        ({"buffer": "0"}, ["09:00-10:00", "10:30-11:30"]),
        ({"timeslot_increments": "15 minutes"},
         ["09:00-10:00", "10:30-11:30", "10:45-11:45", "11:00-12:00"]),
        ({"timeslot_increments": "1 hour"}, ["09:00-10:00", "11:00-12:00"]),
        ({"timeslot_increments": "24 hours"}, []),
        ({"timeslot_increments": "1 day", "from": f"{MONDAY}T23:00:00Z",
          "to": "2026-11-25T02:00:00Z"}, ["11-24 00:00-01:00", "11-25 00:00-01:00"]),
        ({"timeslot_increments": "1 minute", "length": "89 minutes"},
         ["10:30-11:59", "10:31-12:00"]),
        ({"from": f"{MONDAY}T09:00:30Z", "length": None}, ["09:00:30-10:00", "10:30-12:00"]),
        ({"from": f"{MONDAY}T09:17:00Z"}, ["10:30-11:30"]),
        ({"from": f"{MONDAY}T09:17:00Z", "timeslot_increments": "30 minutes",
          "length": "30 minutes"},
         ["09:30-10:00", "10:30-11:00", "11:00-11:30", "11:30-12:00"]),
        ({"to": f"{MONDAY}T11:29:59Z"}, ["09:00-10:00"]),
        ({"to": f"{MONDAY}T11:30:00Z"}, ["09:00-10:00", "10:30-11:30"]),
        ({"from": f"{MONDAY}T10:00:00+01:00", "to": f"{MONDAY}t12:30:00.999+0100"},
         ["09:00-10:00", "10:30-11:30"]),
        ({"from": f"{MONDAY} 09:00", "to": f"{MONDAY}T11:30"}, ["09:00-10:00", "10:30-11:30"]),
        ({"from": "50 minutes", "to": "200 minutes"}, ["09:00-10:00", "10:30-11:30"]),
        ({"from": "now", "to": "1 hour 50 minutes"}, ["09:00-10:00"]),
        ({"constraints": [{"block_hours": {"start": 9, "end": "09:30"}}], "length": None},
         ["09:30-10:00", "10:30-12:00"]),
        ({"constraints": []}, ["09:00-10:00", "10:30-11:30"]),
        ({"mode": "mutual"}, ["09:00-10:00", "10:30-11:30"]),
    ],
)  # fmt: skip
@pytest.mark.matrix
def test_each_field(tenant, ada, given, found):
    days = [row if len(row) > 11 and row[2] == "-" else f"11-23 {row}" for row in found]

    assert lines(ask(tenant, ada["id"], **given)) == [f"2026-{row} +00:00 Ada" for row in days]


LATE = "Must be at most 366 days after `from`."
NO_WEEKDAY = "Expected a weekday such as Monday."
NO_TIME = 'Expected a time such as 9 or "09:30", from 0 to 24.'
NO_INSTANT = "Must be a date and time such as 2026-11-20T10:30:00+01:00."


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"resources": []}, {"resources": "Must have 1 to 500 items."}),
        ({"resources": [UNKNOWN] * 501}, {"resources": "Must have at most 500 items."}),
        ({"resources": UNKNOWN}, {"resources": "Must be a list."}),
        ({"resources": {}}, {"resources": "The project has no `requires`."}),
        ({"resources": [7, "x", None]},
         {"resources__0": "Must be a UUID.", "resources__1": "Must be a UUID.",
          "resources__2": "This field may not be null."}),
        ({"resources": [UNKNOWN]}, {"resources__0": "There is no such resource."}),
        ({"project_id": 7}, {"project_id": "Must be a UUID."}),
        ({"project_id": UNKNOWN}, {"project_id": "There is no such project."}),
        ({"mode": "random"}, {"mode": ONE_MODE}),
        ({"mode": ["mutual"]}, {"mode": ONE_MODE}),
        ({"mode": ""}, {"mode": ONE_MODE}),
        ({"length": "59 secs"}, {"length": "Must be from 1 minute to 366 days."}),
        ({"length": "366 days 1 sec"}, {"length": "Must be from 1 minute to 366 days."}),
        ({"length": 0}, {"length": "Must be from 1 minute to 366 days."}),
        ({"length": "-1 hour"}, {"length": "Must be from 1 minute to 366 days."}),
        ({"length": "1 month"}, {"length": "Months are not allowed here."}),
        ({"length": 60}, {"length": NO_DURATION}),
        ({"length": "60"}, {"length": NO_DURATION}),
        ({"length": ""}, {"length": NO_DURATION}),
        ({"length": {}}, {"length": NO_DURATION}),
        ({"length": True}, {"length": NO_DURATION}),
        ({"length": "2 fortnights"},
         {"length": "fortnights is not a unit of time; "
                    "use secs, mins, hours, days, weeks or months."}),
        ({"buffer": "-1 sec"}, {"buffer": "Must be from 0 seconds to 366 days."}),
        ({"buffer": "367 days"}, {"buffer": "Must be from 0 seconds to 366 days."}),
        ({"buffer": 15}, {"buffer": NO_DURATION}),
        ({"buffer": 0.0}, {"buffer": NO_DURATION}),
        ({"buffer": False}, {"buffer": NO_DURATION}),
        ({"timeslot_increments": "59 secs"},
         {"timeslot_increments": "Must be from 1 minute to 1 day."}),
        ({"timeslot_increments": "24 hours 1 sec"},
         {"timeslot_increments": "Must be from 1 minute to 1 day."}),
        ({"timeslot_increments": 0}, {"timeslot_increments": "Must be from 1 minute to 1 day."}),
        ({"timeslot_increments": []}, {"timeslot_increments": NO_DURATION}),
        ({"round_to_nearest_hour": 1}, {"round_to_nearest_hour": "Must be true or false."}),
        ({"round_to_nearest_hour": "no"}, {"round_to_nearest_hour": "Must be true or false."}),
        ({"ignore_all_day_events": "true"}, {"ignore_all_day_events": "Must be true or false."}),
        ({"include_past": 0}, {"include_past": "Must be true or false."}),
        ({"output_timezone": "Berlin"},
         {"output_timezone": "Must be a time zone such as Europe/Berlin."}),
        ({"output_timezone": "../../etc/passwd"},
         {"output_timezone": "Must be a time zone such as Europe/Berlin."}),
        ({"output_timezone": "europe/berlin"},
         {"output_timezone": "Must be a time zone such as Europe/Berlin."}),
        ({"output_timezone": 1}, {"output_timezone": "Must be a string."}),
        ({"output_timezone": ""}, {"output_timezone": "This field may not be blank."}),
        ({"from": 1_795_000_000}, {"from": "Must be a string."}),
        ({"from": ["now"]}, {"from": "Must be a string."}),
        ({"from": ""}, {"from": NO_DURATION}),
        ({"from": "yesterday"}, {"from": NO_DURATION}),
        ({"from": "2026-11-2"}, {"from": NO_INSTANT}),
        ({"from": "2026-02-30"}, {"from": "There is no such date or time."}),
        ({"from": "2026-02-30 10:00:00"}, {"from": "There is no such date or time."}),
        ({"from": "2026-11-23T24:00:00Z"}, {"from": "There is no such date or time."}),
        ({"from": "1969-12-31T23:59:59Z"}, {"from": "The year must be from 1970 to 2199."}),
        ({"to": "2200-01-01T00:00:00Z"}, {"to": "The year must be from 1970 to 2199."}),
        ({"to": "201 weeks 200 years"},
         {"to": "years is not a unit of time; use secs, mins, hours, days, weeks or months."}),
        ({"to": False}, {"to": "Must be a string."}),
        ({"to": MORNING["from"]}, {"to": "Must be after `from`."}),
        ({"to": "now"}, {"to": "Must be after `from`."}),
        ({"from": "5 weeks", "to": None}, {"to": "Must be after `from`."}),
        ({"to": "2027-11-24T09:00:01Z"}, {"to": LATE}),
        ({"from": "now", "to": "367 days"}, {"to": LATE}),
        ({"constraints": {}}, {"constraints": "Expected a list of constraints."}),
        ({"constraints": [{"block_weekends": {}}] * 201},
         {"constraints": "At most 200 constraints."}),
        ({"constraints": [{}, {"block_weekends": [], "allow_weekdays": []}, 3]},
         {f"constraints__{n}": "Expected an object with exactly one key, the constraint's name."
          for n in range(3)}),
        ({"constraints": [{"allow_lunch": {}}]}, {"constraints__0": "Unknown constraint."}),
        ({"constraints": [{"block_weekends": []}, {"allow_day": {"day": "Caturday"}},
                          {"allow_hours": {"start": 9, "end": 25}},
                          {"allow_day_and_time": {"day": "monday", "start": 9, "end": "9:00"}}]},
         {"constraints__1__allow_day__day": NO_WEEKDAY,
          "constraints__2__allow_hours__end": NO_TIME,
          "constraints__3__allow_day_and_time__end": "Must differ from start."}),
        ({"to": 5, "mode": "any", "length": 5, "buffer": []},
         {"mode": ONE_MODE, "length": NO_DURATION,
          "to": "Must be a string.", "buffer": NO_DURATION}),
    ],
)  # fmt: skip
def test_wrong_fields_are_refused(tenant, ada, given, errors):
    answer = ask(tenant, ada["id"], **given)

    assert (answer.status, answer.error) == (422, refusal(**errors))


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (None, 422, refusal(resources="Required without a project.")),
        ({}, 422, refusal(resources="Required without a project.")),
        ([], 422, refusal(resources="Required without a project.")),
        ({"resources": None}, 422, refusal(resources="Required without a project.")),
        ([1], 422, refusal(body="Must be an object.")),
        ("now", 422, refusal(body="Must be an object.")),
    ],
)
def test_empty_bodies_are_refused(tenant, body, status, error):
    answer = tenant.post("/availability", body)

    assert (answer.status, answer.error) == (status, error)


def test_unknown_query_parameter_is_refused(tenant, ada):
    answer = tenant.post("/availability?length=30", {"resources": [ada["id"]]})

    assert (answer.status, answer.error["errors"]) == (
        422,
        {"length": ["Is not a known query parameter."]},
    )


def test_more_than_100000_pairs_are_refused(tenant, ada):
    minutes = {"from": "2027-01-01T00:00:00Z", "length": "1 minute"}
    many = "More than 100,000 slots: request a shorter range."

    most = ask(tenant, ada["id"], **minutes, to="2027-03-11T10:40:00Z")  # 100,000 minutes
    more = ask(tenant, ada["id"], **minutes, to="2027-03-11T10:41:00Z")

    assert (len(most.data), line(most.data[-1])) == (100_000, "2027-03-11 10:39-10:40 +00:00 Ada")
    assert (more.status, more.error) == (422, refusal(to=many))


def test_limit_of_pairs_counts_each_resource(tenant, ada):
    bob = tenant.make_resource("Bob")
    minutes = {"from": "2027-01-01T00:00:00Z", "length": "1 minute", "mode": "mutual"}

    most = ask(tenant, ada["id"], bob["id"], **minutes, to="2027-02-04T17:20:00Z")
    more = ask(tenant, ada["id"], bob["id"], **minutes, to="2027-02-04T17:21:00Z")

    assert (len(most.data), more.status) == (50_000, 422)


# --- Modes ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mode", "given", "found"),
    [
        ("roundrobin_prioritized", {},
         ["09:00-10:00 Ada", "09:15-10:15 Cleo", "09:30-10:30 Bob", "10:00-11:00 Ada",
          "10:15-11:15 Cleo", "10:30-11:30 Bob"]),
        ("roundrobin_prioritized", {"timeslot_increments": "30 minutes"},
         ["09:00-10:00 Ada", "09:15-10:15 Cleo", "09:30-10:30 Ada", "09:45-10:45 Cleo",
          "10:00-11:00 Ada", "10:15-11:15 Cleo", "10:30-11:30 Bob", "11:00-12:00 Bob"]),
        ("exclusive", {"timeslot_increments": "30 minutes"},
         ["09:00-10:00 Ada", "09:15-10:15 Cleo", "09:30-10:30 Ada, Bob", "09:45-10:45 Cleo",
          "10:00-11:00 Ada, Bob", "10:15-11:15 Cleo", "10:30-11:30 Bob", "11:00-12:00 Bob"]),
        ("mutual", {}, ["09:30-10:30 Ada, Bob, Cleo"]),
        # All have open from 09:15 to 11:00: on Ada's clock the starts are counted from 09:15.
        ("mutual", {"timeslot_increments": "30 minutes"}, ["09:45-10:45 Ada, Bob, Cleo"]),
        ("mutual", {"timeslot_increments": "15 minutes"},
         ["09:30-10:30 Ada, Bob, Cleo", "09:45-10:45 Ada, Bob, Cleo",
          "10:00-11:00 Ada, Bob, Cleo"]),
        ("mutual", {"length": None}, ["09:30-11:00 Ada, Bob, Cleo"]),
        ("exclusive", {"length": None},
         ["09:00-11:00 Ada", "09:15-11:15 Cleo", "09:30-12:00 Bob"]),
        ("roundrobin_prioritized", {"length": None},
         ["09:00-11:00 Ada", "09:15-11:15 Cleo", "09:30-12:00 Bob"]),
    ],
)  # fmt: skip
def test_each_mode(tenant, three, mode, given, found):
    rows = [f"2026-11-23 {row[:11]} +00:00 {row[12:]}" for row in found]

    assert lines(ask(tenant, *three, mode=mode, **given)) == rows


@pytest.mark.parametrize("length", ["1 hour", None])
def test_equal_slots_are_merged_per_mode(tenant, length):
    """The order of the request decides whom prioritized names, and how exclusive lists."""
    ada, bob = (tenant.make_resource(name)["id"] for name in ("Ada", "Bob"))
    hour = {"to": f"{MONDAY}T10:00:00Z", "length": length}

    answers = {
        mode: lines(ask(tenant, bob, ada, mode=mode, **hour))
        for mode in ("roundrobin_prioritized", "exclusive", "mutual")
    }

    assert answers == {
        "roundrobin_prioritized": ["2026-11-23 09:00-10:00 +00:00 Bob"],
        "exclusive": ["2026-11-23 09:00-10:00 +00:00 Bob, Ada"],
        "mutual": ["2026-11-23 09:00-10:00 +00:00 Bob, Ada"],
    }


def test_random_order_is_drawn_once_per_request(tenant):
    """Each slot names one resource; whoever comes first has every slot that it can have."""
    ids = [tenant.make_resource(name)["id"] for name in ("Ada", "Bob", "Cleo")]
    random.seed(7)

    answers = {tuple(lines(ask(tenant, *ids))) for _ in range(40)}

    hours = ("09:00-10:00", "10:00-11:00", "11:00-12:00")
    assert answers == {
        tuple(f"2026-11-23 {hour} +00:00 {name}" for hour in hours)
        for name in ("Ada", "Bob", "Cleo")
    }


def test_mode_is_random_by_default(tenant):
    ids = [tenant.make_resource(name)["id"] for name in ("Ada", "Bob")]
    random.seed(7)

    firsts = {ask(tenant, *ids).data[0]["resources"][0]["name"] for _ in range(40)}

    assert firsts == {"Ada", "Bob"}


def test_repeated_resource_counts_once(tenant, ada):
    ids = [ada["id"]] * 499

    assert lines(ask(tenant, *ids, ada["id"].upper(), mode="exclusive")) == [
        "2026-11-23 09:00-10:00 +00:00 Ada",
        "2026-11-23 10:30-11:30 +00:00 Ada",
    ]


# --- The grid -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rules", "given", "found"),
    [
        # Counted from where the day opens, not from `from`.
        ([{"allow_hours": {"start": "09:10", "end": 12}}], {}, ["09:10", "11:10"]),
        ([{"allow_hours": {"start": "09:10", "end": 12}}], {"from": f"{MONDAY}T09:15:00Z"},
         ["11:10"]),
        # Each opening counts anew.
        ([{"allow_hours": {"start": "09:10", "end": 10}},
          {"allow_hours": {"start": "10:35", "end": 12}}], {"length": "20 minutes"},
         ["09:10", "10:35", "11:35"]),
        # Windows that touch are one stretch.
        ([{"allow_hours": {"start": "09:10", "end": "09:40"}},
          {"allow_hours": {"start": "09:40", "end": 12}}], {}, ["09:10", "11:10"]),
        # The end of a block is an opening; that of an event is none.
        ([{"block_hours": {"start": "09:20", "end": "09:50"}}], {"length": "30 minutes"},
         ["10:50"]),
        ([], {"length": "30 minutes"}, ["09:00", "11:00"]),
        # Open since yesterday: counted from midnight, not from 22:20.
        ([{"allow_hours": {"start": "22:20", "end": 12}}], {}, ["09:00", "11:00"]),
        # Rules of the request open the day as well.
        ([], {"constraints": [{"allow_hours": {"start": "09:05", "end": 13}}],
              "length": "50 minutes"}, ["09:05", "11:05"]),
    ],
)  # fmt: skip
def test_grid_of_starts(tenant, ada, rules, given, found):
    """Ada is busy from 10:00 to 10:30."""
    tenant.put(f"/resources/{ada['id']}", {"availability_constraints": rules})
    hourly = {"timeslot_increments": "1 hour", "length": "45 minutes", **given}

    assert starts(ask(tenant, ada["id"], **hourly)) == [
        f"2026-11-23 {start}+00:00" for start in found
    ]


def test_grid_starts_anew_each_day(tenant):
    """Seven does not divide the day: every midnight counts anew."""
    ada = tenant.make_resource("Ada")
    hours = {"timeslot_increments": "7 hours", "from": f"{MONDAY}T12:00:00Z"}

    assert starts(ask(tenant, ada["id"], **hours, to="2026-11-25T00:00:00Z")) == [
        "2026-11-23 14:00+00:00",
        "2026-11-23 21:00+00:00",
        "2026-11-24 00:00+00:00",
        "2026-11-24 07:00+00:00",
        "2026-11-24 14:00+00:00",
        "2026-11-24 21:00+00:00",
    ]


def test_event_does_not_shift_the_grid(tenant):
    ada = tenant.make_resource("Ada", **open_hours(9, 12))
    tenant.make_event(ada["calendars"][0]["id"], f"{MONDAY}T10:00:00Z", f"{MONDAY}T10:55:00Z")

    halves = {"timeslot_increments": "30 minutes", "length": "30 minutes"}

    assert starts(ask(tenant, ada["id"], **halves)) == [
        f"2026-11-23 {start}+00:00" for start in ("09:00", "09:30", "11:00", "11:30")
    ]


# --- Events ---------------------------------------------------------------------------------------
def test_events_that_block(tenant):
    """Touching, overlapping, nested and outside; in any calendar; none that is not busy."""
    ada = tenant.make_resource("Ada")
    first = ada["calendars"][0]["id"]
    second = tenant.post("/calendars", {"name": "Home", "resource_id": ada["id"]}).data["id"]
    for calendar, start, end, busy in [
        (first, "07:00", "09:10", True),
        (second, "09:10", "09:20", True),
        (first, "09:40", "10:10", True),
        (second, "10:00", "10:30", True),
        (first, "10:05", "10:06", True),
        (first, "10:40", "11:00", False),
        (second, "11:55", "18:00", True),
        (first, "12:00", "13:00", True),
    ]:
        tenant.make_event(calendar, f"{MONDAY} {start}:00", f"{MONDAY} {end}:00", busy=busy)

    plain = ask(tenant, ada["id"], length=None)
    buffered = ask(tenant, ada["id"], length=None, buffer="5 minutes")

    assert lines(plain) == [
        "2026-11-23 09:20-09:40 +00:00 Ada",
        "2026-11-23 10:30-11:55 +00:00 Ada",
    ]
    assert lines(buffered) == [
        "2026-11-23 09:25-09:35 +00:00 Ada",
        "2026-11-23 10:35-11:50 +00:00 Ada",
    ]


def test_buffers_of_events_outside_the_range_block(tenant):
    ada = tenant.make_resource("Ada")
    calendar = ada["calendars"][0]["id"]
    tenant.make_event(calendar, f"{MONDAY}T08:00:00Z", f"{MONDAY}T08:50:00Z")
    tenant.make_event(calendar, f"{MONDAY}T12:05:00Z", f"{MONDAY}T13:00:00Z")

    assert lines(ask(tenant, ada["id"], length=None, buffer="15 minutes")) == [
        "2026-11-23 09:05-11:50 +00:00 Ada"
    ]


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ({"busy": True}, []),
        ({"busy": False}, ["2026-11-23 09:00-12:00 +00:00 Rosa"]),
    ],
)
def test_all_day_events(tenant, event, found):
    """They last from one local midnight to the next."""
    rosa = tenant.make_resource("Rosa", KATHMANDU)
    day = {"start": MONDAY, "end": MONDAY, "all_day": True, **event}
    tenant.make_event(rosa["calendars"][0]["id"], **day)
    around = {"from": "2026-11-22T12:00:00Z", "to": "2026-11-24T00:00:00Z", "include_past": True}

    blocked = ask(tenant, rosa["id"], length=None)
    ignored = ask(tenant, rosa["id"], length=None, ignore_all_day_events=True)
    wide = ask(tenant, rosa["id"], length=None, **around)

    assert lines(blocked) == found
    assert lines(ignored) == ["2026-11-23 09:00-12:00 +00:00 Rosa"]
    if event["busy"]:
        assert lines(wide) == [
            "2026-11-22 12:00-18:15 +00:00 Rosa",
            "2026-11-23 18:15+00:00 to 2026-11-24 00:00+00:00 Rosa",
        ]


def test_all_day_events_have_a_buffer(tenant):
    ada = tenant.make_resource("Ada")
    tenant.make_event(ada["calendars"][0]["id"], "2026-11-24", "2026-11-25", all_day=True)

    answer = ask(
        tenant, ada["id"], length=None, buffer="13 hours", to="2026-11-25T14:00:00Z"
    )  # fmt: skip

    assert lines(answer) == [
        "2026-11-23 09:00-11:00 +00:00 Ada",
        "2026-11-25 13:00-14:00 +00:00 Ada",
    ]


def test_a_booking_blocks_until_it_is_cancelled(tenant, ada):
    booking = tenant.book(
        resource_id=ada["id"], start=f"{MONDAY}T11:00:00Z", end=f"{MONDAY}T11:30:00Z"
    ).data

    booked = lines(ask(tenant, ada["id"], length=None))
    tenant.put(f"/bookings/{booking['id']}/cancel")
    cancelled = lines(ask(tenant, ada["id"], length=None))

    assert booked == [
        "2026-11-23 09:00-10:00 +00:00 Ada",
        "2026-11-23 10:30-11:00 +00:00 Ada",
        "2026-11-23 11:30-12:00 +00:00 Ada",
    ]
    assert cancelled == [
        "2026-11-23 09:00-10:00 +00:00 Ada",
        "2026-11-23 10:30-12:00 +00:00 Ada",
    ]


# --- Rules add up ---------------------------------------------------------------------------------
def test_constraints_of_resource_project_and_request_add_up(tenant):
    ada = tenant.make_resource("Ada", **open_hours(8, 11))
    project = tenant.make_project(
        ada["id"],
        availability={"length": None},
        availability_constraints=[{"block_hours": {"start": "09:30", "end": 10}}],
    )
    rules = [{"allow_hours": {"start": 9, "end": 17}}, {"allow_day": {"day": "MONDAY"}}]

    body = {"project_id": project["id"], **MORNING}
    of_project = lines(tenant.post("/availability", body))
    of_all = lines(tenant.post("/availability", {**body, "to": "3 days", "constraints": rules}))
    of_resource = lines(ask(tenant, ada["id"], length=None))

    assert of_resource == ["2026-11-23 09:00-11:00 +00:00 Ada"]
    assert of_project == [
        "2026-11-23 09:00-09:30 +00:00 Ada",
        "2026-11-23 10:00-11:00 +00:00 Ada",
    ]
    assert of_all == of_project


def test_rules_apply_in_the_zone_of_each_resource(tenant):
    ids = [tenant.make_resource(zone, zone)["id"] for zone in (BERLIN, KATHMANDU)]
    rules = [{"allow_hours": {"start": 9, "end": 10}}]

    answer = tenant.post(
        "/availability",
        {"resources": ids, "mode": "exclusive", "constraints": rules, "to": "2 days"},
    )

    assert lines(answer) == [
        "2026-11-24 03:15-04:15 +00:00 Asia/Kathmandu",
        "2026-11-24 08:00-09:00 +00:00 Europe/Berlin",
        "2026-11-25 03:15-04:15 +00:00 Asia/Kathmandu",
    ]


# --- Output ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "headers", "found"),
    [
        ({}, {}, "2026-11-23 20:00-21:00 +00:00"),
        ({"output_timezone": KATHMANDU}, {}, "2026-11-24 01:45-02:45 +05:45"),
        ({"output_timezone": "Pacific/Marquesas"}, {}, "2026-11-23 10:30-11:30 -09:30"),
        ({}, {"Service-Timezone": BERLIN}, "2026-11-23 21:00-22:00 +01:00"),
        ({"output_timezone": KATHMANDU}, {"Service-Timezone": BERLIN},
         "2026-11-24 01:45-02:45 +05:45"),
    ],
)  # fmt: skip
def test_output_timezone_changes_only_the_format(tenant, ada, given, headers, found):
    """It moves neither the range nor the rules, which are read in the zone of the resource."""
    body = {
        "resources": [ada["id"]],
        "from": f"{MONDAY} 19:30:00",
        "to": "23 hours",
        "constraints": [{"allow_hours": {"start": 20, "end": 21}}],
        **given,
    }

    assert lines(tenant.post("/availability", body, **headers)) == [f"{found} Ada"]
