"""POST /findtime and its plural forms: the earlier form, a translation into availability."""

from typing import Any

import pytest

from tests.availability.queries import MONDAY, UNKNOWN, lines, open_hours, refusal, starts
from tests.world import BERLIN, Answer, Caller, Tenant, at

pytestmark = pytest.mark.usefixtures("monday")

NOON = {"start": f"{MONDAY}T09:00:00Z", "future": "3 hours"}
NO_DURATION = "Must be a duration such as '30 minutes' or '3 days 2 weeks'."
NO_TIME = 'Expected a time such as 9 or "09:30", from 0 to 24.'
ONE_KEY = "Must be an object with exactly one key, the filter's name."


def find(caller: Caller, *resource_ids: str, **given: Any) -> Answer:
    return caller.post("/findtime", {"resource_ids": list(resource_ids), **NOON, **given})


def rows(*spans: str) -> list[str]:
    return [f"2026-11-23 {span} +00:00" for span in spans]


def calendar_of(tenant: Tenant, resource_id: str) -> str:
    return tenant.get(f"/resources/{resource_id}?include=calendars").data["calendars"][0]["id"]


def test_whole_response(tenant, ada):
    answer = find(tenant, ada["id"])

    assert (answer.status, answer.json) == (
        200,
        {
            "data": [
                {"start": "2026-11-23T09:00:00+00:00", "end": "2026-11-23T10:00:00+00:00"},
                {"start": "2026-11-23T10:30:00+00:00", "end": "2026-11-23T11:30:00+00:00"},
            ]
        },
    )
    assert (answer.headers["Deprecation"], answer.headers["Link"]) == (
        "@1767225600",
        '</v2/availability>; rel="successor-version"',
    )


def test_defaults(tenant, ada):
    """From now, unrounded, for four weeks; hours."""
    found = lines(tenant.post("/findtime", {"resource_ids": [ada["id"]]}))

    assert found[:2] == rows("08:10-09:10", "10:30-11:30")
    assert found[-1] == "2026-12-21 06:30-07:30 +00:00"
    assert len(found) == 1 + (4 * 7 * 24 - 3)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"length": "30 minutes", "future": "90 mins"}, ["09:00-09:30", "09:30-10:00"]),
        ({"start": "now", "future": "2 hours"}, ["08:10-09:10"]),
        ({"start": "2 hours", "future": "80 minutes"}, ["10:30-11:30"]),
        ({"start": f"{MONDAY} 10:00:00"}, ["10:30-11:30", "11:30-12:30"]),
        ({"start": f"{MONDAY}T11:00:00+01:00"}, ["10:30-11:30", "11:30-12:30"]),
        # `future` counts from `start`, unless it is an instant itself.
        ({"start": "tomorrow", "future": "2 hours"}, ["11-24 00:00-01:00", "11-24 01:00-02:00"]),
        ({"future": f"{MONDAY} 11:30:00"}, ["09:00-10:00", "10:30-11:30"]),
        ({"buffer": "10 minutes"}, ["10:40-11:40"]),
        ({"sort": "asc"}, ["09:00-10:00", "10:30-11:30"]),
        ({"sort": "desc"}, ["10:30-11:30", "09:00-10:00"]),
        ({"all_solutions": True},
         ["09:00-10:00", "10:30-11:30", "10:45-11:45", "11:00-12:00"]),
        ({"all_solutions": False}, ["09:00-10:00", "10:30-11:30"]),
        ({"all_solutions": True, "sort": "desc", "length": "80 minutes"},
         ["10:30-11:50"]),
        ({"no_day_span": False}, ["09:00-10:00", "10:30-11:30"]),
        ({"ignore_all_day_events": True}, ["09:00-10:00", "10:30-11:30"]),
        ({"filters": [], "constraints": [{"block_hours": {"start": 9, "end": "10:40"}}]},
         ["10:40-11:40"]),
        ({"filters": [{"block_hours": {"start": "9", "end": "10:40"}}]}, ["10:40-11:40"]),
        # Two names of one thing: where both are sent, both hold.
        ({"filters": [{"block_hours": {"start": 9, "end": 10}}],
          "constraints": [{"block_hours": {"start": 10, "end": "10:40"}}]},
         ["10:40-11:40"]),
        # Keys of the later form are not known here.
        ({"mode": "exclusive", "timeslot_increments": "1 minute", "round_to_nearest_hour": True,
          "output_timezone": BERLIN, "from": "1 week", "include_past": True, "timezone": "none"},
         ["09:00-10:00", "10:30-11:30"]),
    ],
)  # fmt: skip
def test_each_field(tenant, ada, given, found):
    expected = [row if len(row) > 11 else f"11-23 {row}" for row in found]

    assert lines(find(tenant, ada["id"], **given)) == [f"2026-{row} +00:00" for row in expected]


def test_all_day_events(tenant, ada):
    tenant.make_event(ada["calendars"][0]["id"], MONDAY, None, all_day=True)

    assert find(tenant, ada["id"]).json == {"data": []}
    assert lines(find(tenant, ada["id"], ignore_all_day_events=True)) == rows(
        "09:00-10:00", "10:30-11:30"
    )


def test_no_day_span_keeps_slots_within_a_day(tenant):
    """On the clock of the resource: Kathmandu's midnight is at 18:15 UTC. Midnight as an end is
    of the day before."""
    rosa = tenant.make_resource("Rosa", "Asia/Kathmandu")
    body = {"start": f"{MONDAY}T16:15:00Z", "future": "5 hours", "all_solutions": True}

    everything = lines(find(tenant, rosa["id"], **body, length="2 hours"))
    found = lines(find(tenant, rosa["id"], **body, length="2 hours", no_day_span=True))

    assert len(everything) == 13
    assert found == rows(
        "16:15-18:15", "18:15-20:15", "18:30-20:30", "18:45-20:45", "19:00-21:00", "19:15-21:15"
    )


# --- Whose time -----------------------------------------------------------------------------------
def test_several_resources_are_mutual(tenant, three):
    assert lines(find(tenant, *three)) == rows("09:30-10:30")
    assert lines(find(tenant, *three, length="45 minutes")) == rows("09:30-10:15", "10:15-11:00")


@pytest.mark.parametrize("name", ["resource_ids", "resources"])
def test_resources_by_each_parameter_name(tenant, ada, name):
    answer = tenant.post("/findtime", {name: [ada["id"]], **NOON})

    assert lines(answer) == rows("09:00-10:00", "10:30-11:30")


def test_calendar_ids_select_their_resources(tenant, three):
    """All calendars of the resource count, and all names of resources add up."""
    ada, bob, cleo = three
    other = tenant.post("/calendars", {"name": "Home", "resource_id": ada}).data["id"]
    tenant.make_event(other, f"{MONDAY}T10:00:00Z", f"{MONDAY}T11:00:00Z")
    first = calendar_of(tenant, ada)

    alone = tenant.post("/findtime", {"calendar_ids": [first], **NOON})
    both = tenant.post("/findtime", {"calendar_ids": [first, other], "resources": [bob], **NOON})
    all_three = find(tenant, cleo, resources=[bob], calendar_ids=[other], length="30 minutes")

    assert lines(alone) == rows("09:00-10:00")
    assert lines(both) == []
    assert lines(all_three) == rows("09:30-10:00")


def test_project(tenant, three):
    """Its resources and its rules; mode, length and buffer are those of the request."""
    project = tenant.make_project(
        *three[:2],
        availability={"mode": "exclusive", "length": "5 minutes", "buffer": "1 hour"},
        availability_constraints=[{"block_hours": {"start": 11, "end": 12}}],
    )
    body = {"project_id": project["id"], **NOON}

    # Bob's eleven o'clock is ten in UTC: 09:30 to 10:00 is all that they have in common.
    assert lines(tenant.post("/findtime", {**body, "length": "30 minutes"})) == rows("09:30-10:00")
    assert lines(tenant.post("/findtime", body)) == []


def test_wall_times_are_in_the_zone_of_the_resource(tenant):
    berta, ben, kiran = (
        tenant.make_resource(zone, zone)["id"] for zone in (BERLIN, BERLIN, "Asia/Kathmandu")
    )
    wall = {"start": "2026-11-25 09:00:00", "future": "1 hour"}

    assert starts(find(tenant, berta, **wall)) == ["2026-11-25 08:00+00:00"]
    assert starts(find(tenant, berta, ben, **wall)) == ["2026-11-25 08:00+00:00"]
    # Of several zones the header's, else the app's.
    assert starts(find(tenant, berta, kiran, **wall)) == ["2026-11-25 09:00+00:00"]
    header = {"Service-Timezone": "America/New_York"}
    body = {"resource_ids": [berta, kiran], **wall}
    assert starts(tenant.post("/findtime", body, **header)) == ["2026-11-25 09:00-05:00"]


def test_days_are_added_on_the_wall_clock(tenant, monday):
    """From noon to noon there are 23 hours when the clock goes forth."""
    monday.move_to(at("2025-03-29 11:00"))
    berta = tenant.make_resource("Berta", BERLIN)
    body = {"resource_ids": [berta["id"]], "start": "now", "future": "1 day", "length": "23 hours"}

    assert lines(tenant.post("/findtime", body, **{"Service-Timezone": BERLIN})) == [
        "2025-03-29 12:00+01:00 to 2025-03-30 12:00+02:00"
    ]


# --- Filters of the older names -------------------------------------------------------------------
TUESDAY = "2026-11-24"


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["11-23 00:00 to 11-30 00:00"]),
        ({"or": [], "and": []}, ["11-23 00:00 to 11-30 00:00"]),
        ({"or": None, "and": None}, ["11-23 00:00 to 11-30 00:00"]),
        ({"and": [{"specific_day": {"day": "Tuesday"}}]}, ["11-24 00:00 to 11-25 00:00"]),
        ({"or": [{"specific_day": {"day": "Tuesday"}}]}, ["11-24 00:00 to 11-25 00:00"]),
        # What stands in `or` unites, what stands in `and` intersects.
        ({"or": [{"specific_day": {"day": "TUESDAY"}}, {"specific_day": {"day": "friday"}}]},
         ["11-24 00:00 to 11-25 00:00", "11-27 00:00 to 11-28 00:00"]),
        ({"and": [{"specific_day": {"day": "Tuesday"}}, {"specific_day": {"day": "Friday"}}]}, []),
        ({"or": [{"specific_day": {"day": "Tuesday"}}, {"specific_day": {"day": "Friday"}}],
          "and": [{"specific_time": {"start": 9, "end": 12}}]},
         ["11-24 09:00 to 11-24 12:00", "11-27 09:00 to 11-27 12:00"]),
        ({"and": [{"specific_time": {"start": "9", "end": "12"}},
                  {"specific_time": {"start": "11:30", "end": 17}},
                  {"specific_day": {"day": "Monday"}}]}, ["11-23 11:30 to 11-23 12:00"]),
        ({"or": [{"specific_time": {"start": 9, "end": 10}},
                 {"specific_time": {"start": 10, "end": 11}}],
          "and": [{"specific_day": {"day": "Wednesday"}}]}, ["11-25 09:00 to 11-25 11:00"]),
        ({"or": [{"specific_day_and_time": {"day": "Monday", "start": 9, "end": 10}},
                 {"specific_day_and_time": {"day": "Tuesday", "start": "10", "end": "11"}}]},
         ["11-23 09:00 to 11-23 10:00", "11-24 10:00 to 11-24 11:00"]),
        ({"or": [{"specific_day": {"day": "Monday"}}, {"specific_time": {"start": 9, "end": 10}}],
          "and": [{"only_weekend": {}}]},
         ["11-28 09:00 to 11-28 10:00", "11-29 09:00 to 11-29 10:00"]),
        ({"and": [{"specific_time": {"start": 23, "end": 1}}, {"specific_day": {"day": "Sunday"}}]},
         ["11-29 00:00 to 11-29 01:00", "11-29 23:00 to 11-30 00:00"]),
        ({"and": [{"business_hours": {}}]},
         [f"11-{day} 09:00 to 11-{day} 17:00" for day in range(23, 28)]),
        ({"and": [{"daytime": {}}]},
         [f"11-{day} 08:00 to 11-{day} 20:00" for day in range(23, 30)]),
        ({"and": [{"only_weekend": {}}]}, ["11-28 00:00 to 11-30 00:00"]),
        ({"and": [{"exclude_weekend": {}}]}, ["11-23 00:00 to 11-28 00:00"]),
        ({"and": [{"exclude_weekends": []}]}, ["11-23 00:00 to 11-28 00:00"]),
        ({"and": [{"business_hours": None}, {"specific_day": {"day": "Friday"}}]},
         ["11-27 09:00 to 11-27 17:00"]),
        # A filter's own timezone is not honoured, as no rule has one.
        ({"and": [{"business_hours": {"timezone": "Asia/Tokyo"}},
                  {"specific_day": {"day": "Friday", "timezone": "Asia/Tokyo"}}]},
         ["11-27 09:00 to 11-27 17:00"]),
        ({"and": [{"between_timestamps": {"start": f"{TUESDAY} 10:00:00",
                                          "end": f"{TUESDAY}T12:30:00+01:00"}}]},
         ["11-24 10:00 to 11-24 11:30"]),
        ({"or": [{"between_timestamps": {"start": f"{TUESDAY} 10:00:00",
                                         "end": f"{TUESDAY} 11:00:00"}},
                 {"between_timestamps": {"start": "2026-11-25", "end": "2026-11-26"}}],
          "and": [{"business_hours": {}}]},
         ["11-24 10:00 to 11-24 11:00", "11-25 09:00 to 11-25 17:00"]),
        ({"or": [{"only_weekend": {}}], "nor": [{"daytime": {}}]}, ["11-28 00:00 to 11-30 00:00"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["filters", "constraints"])
def test_filters(tenant, monday, name, filters, found):
    """Minutes that are offered, joined, of the week from Monday on."""
    monday.move_to(at(MONDAY))
    ada = tenant.make_resource("Ada")
    body = {"resource_ids": [ada["id"]], "future": "1 week", "length": "30 minutes", name: filters}

    assert joined(tenant.post("/findtime", body)) == found


def joined(answer: Answer) -> list[str]:
    """Stretches of slots that touch, `11-24 10:00 to 11-24 11:30`."""
    stretches: list[list[str]] = []
    for slot in answer.data:
        start, end = (slot[key][5:16].replace("T", " ") for key in ("start", "end"))
        if stretches and stretches[-1][1] == start:
            stretches[-1][1] = end
        else:
            stretches.append([start, end])
    return [" to ".join(stretch) for stretch in stretches]


def test_filters_apply_in_the_zone_of_the_resource(tenant, monday):
    monday.move_to(at(MONDAY))
    kiran = tenant.make_resource("Kiran", "Asia/Kathmandu")
    filters = {"and": [{"business_hours": {}}]}

    answer = find(tenant, kiran["id"], filters=filters, start=f"{MONDAY}T00:00:00Z", future="1 day")

    assert joined(answer) == ["11-23 03:15 to 11-23 11:15"]


def test_filters_add_to_the_rules_of_resource_and_project(tenant):
    ada = tenant.make_resource("Ada", **open_hours(10, 18))
    project = tenant.make_project(
        ada["id"], availability_constraints=[{"block_hours": {"start": 12, "end": 13}}]
    )
    body = {
        "project_id": project["id"],
        "start": f"{TUESDAY}T00:00:00Z",
        "future": "1 day",
        "filters": {"and": [{"business_hours": {}}]},
    }

    assert joined(tenant.post("/findtime", body)) == [
        "11-24 10:00 to 11-24 12:00",
        "11-24 13:00 to 11-24 17:00",
    ]


# --- What is refused ------------------------------------------------------------------------------
@pytest.mark.matrix
@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"resource_ids": []}, {"resource_ids": "Required without a project."}),
        ({"resource_ids": [UNKNOWN]}, {"resource_ids__0": "There is no such resource."}),
        ({"resource_ids": [], "resources": [UNKNOWN]},
         {"resources__0": "There is no such resource."}),
        ({"resources": [UNKNOWN]}, {"resources__0": "There is no such resource."}),
        ({"calendar_ids": [UNKNOWN]}, {"calendar_ids__0": "There is no such calendar."}),
        ({"project_id": UNKNOWN}, {"project_id": "There is no such project."}),
        ({"resource_ids": "all"}, {"resource_ids": "Must be a list."}),
        ({"resource_ids": [3]}, {"resource_ids__0": "Must be a UUID."}),
        ({"calendar_ids": [3]}, {"calendar_ids__0": "Must be a UUID."}),
        ({"resource_ids": [UNKNOWN] * 501}, {"resource_ids": "Must have at most 500 items."}),
        ({"start": 5}, {"start": "Must be a string."}),
        ({"start": "soon"}, {"start": NO_DURATION}),
        ({"start": None}, {"start": "This field may not be null."}),
        ({"start": "2026-02-30 09:00:00"}, {"start": "There is no such date or time."}),
        ({"future": 5}, {"future": "Must be a string."}),
        ({"future": "2 fortnights"},
         {"future": "fortnights is not a unit of time; "
                    "use secs, mins, hours, days, weeks or months."}),
        ({"future": "0 days"}, {"future": "Must be after `from`."}),
        ({"future": "-1 hour"}, {"future": "Must be after `from`."}),
        ({"future": "367 days"}, {"future": "Must be at most 366 days after `from`."}),
        ({"start": "2070 months", "future": "12 months"},
         {"future": "The year must be from 1970 to 2199."}),
        ({"length": "1 minute", "future": "100 days"},
         {"future": "More than 100,000 slots: request a shorter range."}),
        ({"length": None}, {"length": "This field may not be null."}),
        ({"length": "59 secs"}, {"length": "Must be from 1 minute to 366 days."}),
        ({"buffer": "-1 min"}, {"buffer": "Must be from 0 seconds to 366 days."}),
        ({"sort": "down"}, {"sort": "Must be one of asc, desc."}),
        ({"all_solutions": 1}, {"all_solutions": "Must be true or false."}),
        ({"no_day_span": "yes"}, {"no_day_span": "Must be true or false."}),
        ({"ignore_all_day_events": 0}, {"ignore_all_day_events": "Must be true or false."}),
    ],
)  # fmt: skip
def test_wrong_bodies_are_refused(tenant, ada, given, errors):
    body = {"resource_ids": [ada["id"]], **given}
    if "resources" in given and "resource_ids" not in given:
        del body["resource_ids"]

    answer = tenant.post("/findtime", body)

    assert (answer.status, answer.error) == (422, refusal(**errors))


@pytest.mark.parametrize(
    ("name", "filters", "errors"),
    [
        ("filters", 5, {"filters": "Must be a list of constraints, "
                                   "or an object with `or` and `and`."}),
        ("filters", False, {"filters": "Must be a list of constraints, "
                                       "or an object with `or` and `and`."}),
        ("constraints", "", {"constraints": "Must be a list of constraints, "
                                            "or an object with `or` and `and`."}),
        ("constraints", [{"allow_hours": {"start": 9, "end": 25}}],
         {"constraints__0__allow_hours__end": NO_TIME}),
        ("filters", [{"business_hours": {}}], {"filters__0": "Unknown constraint."}),
        ("filters", {"or": {}}, {"filters__or": "Must be a list of at most 100 filters."}),
        ("filters", {"or": False}, {"filters__or": "Must be a list of at most 100 filters."}),
        ("filters", {"and": [{"daytime": {}}] * 101},
         {"filters__and": "Must be a list of at most 100 filters."}),
        ("filters", {"and": ["daytime"]}, {"filters__and__0": ONE_KEY}),
        ("filters", {"and": [{"daytime": {}, "only_weekend": {}}]}, {"filters__and__0": ONE_KEY}),
        ("filters", {"or": [{"daytime": {}}, {"nighttime": {}}]},
         {"filters__or__1": "nighttime is not a filter."}),
        ("constraints", {"or": [{"daytime": 5}]},
         {"constraints__or__0__daytime": "Must be an object."}),
        ("filters", {"and": [{"specific_day": {}}]},
         {"filters__and__0__specific_day__day": "Expected a weekday such as Monday."}),
        ("filters", {"and": [{"specific_time": {"start": "nine", "end": 17}}]},
         {"filters__and__0__specific_time__start": NO_TIME}),
        ("filters", {"and": [{"specific_day_and_time": {"day": "Monday", "start": 9}}]},
         {"filters__and__0__specific_day_and_time__end": NO_TIME}),
        ("filters", {"and": [{"between_timestamps": {"start": "2026-11-24", "end": "2026-11-23"}}]},
         {"filters__and__0__between_timestamps__end": "Must be after start."}),
        ("filters", {"or": [{"daytime": {}},
                            {"between_timestamps": {"start": "2026-11-24", "end": "2026-11-25"}}]},
         {"filters__or": "Timestamps can't be combined with days and times here."}),
    ],
)  # fmt: skip
@pytest.mark.matrix
def test_wrong_filters_are_refused(tenant, ada, name, filters, errors):
    answer = find(tenant, ada["id"], **{name: filters})
    beside_the_other = find(tenant, ada["id"], **{"filters": [], "constraints": [], name: filters})

    assert (answer.status, answer.error) == (422, refusal(**errors))
    assert beside_the_other.error == answer.error


def test_start_in_a_gap_is_refused(tenant, monday):
    monday.move_to(at("2026-03-27 10:00"))
    berta = tenant.make_resource("Berta", BERLIN)
    gap = "2026-03-29 02:30:00"

    started = find(tenant, berta["id"], start=gap)
    ended = find(tenant, berta["id"], start="now", future=gap)

    assert started.error == refusal(start=f"{gap} does not exist in Europe/Berlin.")
    assert ended.error == refusal(future=f"{gap} does not exist in Europe/Berlin.")


def test_foreign_ids_are_refused(tenant, make_tenant, ada):
    other = make_tenant()
    theirs = other.make_resource("Eve")

    resource = find(tenant, ada["id"], theirs["id"])
    calendar = find(tenant, ada["id"], calendar_ids=[theirs["calendars"][0]["id"]])

    assert resource.error == refusal(resource_ids__1="There is no such resource.")
    assert calendar.error == refusal(calendar_ids__0="There is no such calendar.")


# --- Many at once ---------------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["/findtime/bulk", "/findtime/team"])
def test_bulk_queries_are_answered_in_order(tenant, ada, path):
    bob = tenant.make_resource("Bob")
    queries = [
        {"resource_ids": [ada["id"]], **NOON},
        {"resource_ids": [bob["id"]], **NOON, "length": "90 minutes", "sort": "desc"},
        {"resources": [ada["id"], bob["id"]], **NOON, "length": "2 hours"},
    ]

    answer = tenant.post(path, {"queries": queries})

    def spans(*texts: str) -> list[dict[str, str]]:
        return [
            {"start": f"{MONDAY}T{text[:5]}:00+00:00", "end": f"{MONDAY}T{text[6:]}:00+00:00"}
            for text in texts
        ]

    assert (answer.status, answer.json) == (
        200,
        {
            "data": [
                spans("09:00-10:00", "10:30-11:30"),
                spans("10:30-12:00", "09:00-10:30"),
                [],
            ]
        },
    )
    assert (answer.headers["Deprecation"], answer.headers["Link"]) == (
        "@1767225600",
        '</v2/availability>; rel="successor-version"',
    )


@pytest.mark.parametrize("path", ["/findtime/bulk", "/findtime/team"])
@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"queries": "Must be a list of 1 to 20 queries."}),
        ([], {"queries": "Must be a list of 1 to 20 queries."}),
        ({"queries": []}, {"queries": "Must be a list of 1 to 20 queries."}),
        ({"queries": {}}, {"queries": "Must be a list of 1 to 20 queries."}),
        ({"queries": [{}] * 21}, {"queries": "Must be a list of 1 to 20 queries."}),
        ({"queries": [7]}, {"queries__0": "Must be an object."}),
        ({"queries": [{}]},
         {"queries__0__resource_ids": "Required without a project."}),
        ({"queries": [{"resources": [UNKNOWN]}]},
         {"queries__0__resources__0": "There is no such resource."}),
        ({"queries": [{"calendar_ids": [UNKNOWN], "future": "x"}]},
         {"queries__0__future": NO_DURATION}),
        ({"queries": [{"filters": {"or": [{"lunch": {}}]}}]},
         {"queries__0__filters__or__0": "lunch is not a filter."}),
    ],
)  # fmt: skip
def test_wrong_bulk_queries_are_refused(tenant, path, body, errors):
    answer = tenant.post(path, body)

    assert (answer.status, answer.error) == (422, refusal(**errors))


def test_wrong_query_of_a_bulk_is_named(tenant, ada):
    queries = [{"resource_ids": [ada["id"]]}, {"resource_ids": [ada["id"]], "future": "-2 days"}]

    answer = tenant.post("/findtime/bulk", {"queries": queries})

    assert answer.error == refusal(queries__1__future="Must be after `from`.")


# --- Who asks -------------------------------------------------------------------------------------
def test_a_widget_key_may_only_narrow(tenant):
    ada = tenant.make_resource("Ada", **open_hours(9, 12))
    bob = tenant.make_resource("Bob", **open_hours(10, 17))
    project = tenant.make_project(
        ada["id"],
        bob["id"],
        availability={"length": "30 minutes", "from": "1 day", "to": "2 days", "mode": "exclusive"},
    )
    widget = tenant.widget()
    body = {"project_id": project["id"], "future": "2 weeks"}

    found = widget.post("/findtime", {**body, "length": "2 hours", "all_solutions": True})
    narrowed = widget.post("/findtime", {**body, "filters": {"and": [{"specific_time": {
        "start": 11, "end": 12}}]}})  # fmt: skip
    other = widget.post("/findtime", {**body, "resource_ids": [tenant.make_resource()["id"]]})

    # Mutual, in the length and the range of the project.
    assert joined(found) == ["11-24 10:00 to 11-24 12:00"]
    assert lines(found)[0] == "2026-11-24 10:00-10:30 +00:00"
    assert joined(narrowed) == ["11-24 11:00 to 11-24 12:00"]
    assert other.error == refusal(resource_ids__0="There is no such resource.")


def test_a_resource_key_sees_itself_only(tenant, ada):
    bob = tenant.make_resource("Bob", email="bob@example.com")
    caller = Caller(bob["api_token"], user="bob@example.com")

    own = caller.post("/findtime", NOON)
    other = find(caller, bob["id"], ada["id"])
    calendar = caller.post("/findtime", {"calendar_ids": [ada["calendars"][0]["id"]], **NOON})

    assert lines(own) == rows("09:00-10:00", "10:00-11:00", "11:00-12:00")
    assert other.error == refusal(resource_ids__1="There is no such resource.")
    assert calendar.error == refusal(calendar_ids__0="There is no such calendar.")
