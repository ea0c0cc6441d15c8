"""Availability where clocks change. All changes lie in the past: no government can move them."""

from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.availability.queries import lines, refusal, starts
from tests.world import Answer, Tenant, at

# zone, the change in UTC, and the starts on a grid of 30 minutes from 90 minutes before to 90
# minutes after it, on the wall clock; the bar is the change.
CHANGES = [
    ("Europe/Berlin", "2025-03-30 01:00", "00:30 01:00 01:30 | 03:00 03:30 04:00"),
    ("Europe/Berlin", "2025-10-26 01:00", "01:30 02:00 02:30 | 02:00 02:30 03:00"),
    ("America/New_York", "2025-03-09 07:00", "00:30 01:00 01:30 | 03:00 03:30 04:00"),
    ("America/New_York", "2025-11-02 06:00", "00:30 01:00 01:30 | 01:00 01:30 02:00"),
    # No midnight in September; the hour before midnight twice in April.
    ("America/Santiago", "2025-09-07 04:00", "22:30 23:00 23:30 | 01:00 01:30 02:00"),
    ("America/Santiago", "2025-04-06 03:00", "22:30 23:00 23:30 | 23:00 23:30 00:00"),
    # Half an hour only.
    ("Australia/Lord_Howe", "2025-10-04 15:30", "00:30 01:00 01:30 | 02:30 03:00 03:30"),
    ("Australia/Lord_Howe", "2025-04-05 15:00", "00:30 01:00 01:30 | 01:30 02:00 02:30"),
    # A quarter of an hour, once and for all: 00:15 is no start, 23:30 to 00:15 is half an hour.
    ("Asia/Kathmandu", "1985-12-31 18:30", "22:30 23:00 23:30 | 00:30 01:00"),
    # A whole day: from Thursday to Saturday.
    ("Pacific/Apia", "2011-12-30 10:00", "22:30 23:00 23:30 | 00:00 00:30 01:00"),
    ("Pacific/Apia", "2012-03-31 14:00", "02:30 03:00 03:30 | 03:00 03:30 04:00"),
    ("Africa/Cairo", "2025-04-24 22:00", "22:30 23:00 23:30 | 01:00 01:30 02:00"),
    ("Africa/Cairo", "2025-10-30 21:00", "22:30 23:00 23:30 | 23:00 23:30 00:00"),
    # Back for the month of Ramadan, forth after it.
    ("Africa/Casablanca", "2025-02-23 02:00", "01:30 02:00 02:30 | 02:00 02:30 03:00"),
    ("Africa/Casablanca", "2025-04-06 02:00", "00:30 01:00 01:30 | 03:00 03:30 04:00"),
    ("Pacific/Chatham", "2025-09-27 14:00", "01:30 02:00 02:30 | 04:00 04:30"),
    ("Pacific/Chatham", "2025-04-05 14:00", "02:30 03:00 03:30 | 03:00 03:30"),
    # At one minute past midnight back into the day before.
    ("America/St_Johns", "2010-11-07 02:31", "23:00 23:30 00:00 | 23:30 00:00"),
    ("America/Havana", "2025-03-09 05:00", "22:30 23:00 23:30 | 01:00 01:30 02:00"),
    ("America/Havana", "2025-11-02 05:00", "23:30 00:00 00:30 | 00:00 00:30 01:00"),
    ("Asia/Tehran", "2022-03-21 20:30", "22:30 23:00 23:30 | 01:00 01:30 02:00"),
    # The hour before midnight is skipped, or it comes again.
    ("America/Nuuk", "2025-03-30 01:00", "21:30 22:00 22:30 | 00:00 00:30 01:00"),
    ("America/Nuuk", "2025-10-26 01:00", "22:30 23:00 23:30 | 23:00 23:30 00:00"),
    # Two hours.
    ("Antarctica/Troll", "2025-03-30 01:00", "23:30 00:00 00:30 | 03:00 03:30 04:00"),
    ("Antarctica/Troll", "2025-10-26 01:00", "01:30 02:00 02:30 | 01:00 01:30 02:00"),
]
INSTANTS = [(zone, change) for zone, change, _ in CHANGES]


def instant(change: str, minutes: int) -> str:
    """So many minutes after the change, as UTC."""
    return f"{at(change) + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


def stretch(change: str, first: int, last: int) -> dict[str, str]:
    return {"start": instant(change, first), "end": instant(change, last)}


def span(change: str, minutes: int) -> dict[str, str]:
    return {"from": instant(change, -minutes), "to": instant(change, minutes)}


@pytest.fixture
def rosa(tenant: Tenant, time_machine: Any) -> Any:
    """`rosa(zone, change)`: a resource in the zone, two days before its clock changes."""

    def make(zone: str, change: str, **given: Any) -> Any:
        time_machine.move_to(at(change) - timedelta(days=2), tick=False)
        return tenant.make_resource("Rosa", zone, **given)

    return make


def free(tenant: Tenant, rosa: Any, **given: Any) -> Answer:
    return tenant.post("/availability", {"resources": [rosa["id"]], "length": None, **given})


@pytest.mark.parametrize(("zone", "change", "shown"), CHANGES)
def test_grid_around_the_change(tenant, rosa, zone, change, shown):
    """What the clock skips is not offered, what it shows twice is offered twice."""
    someone = rosa(zone, change)
    halves = {"length": "30 minutes", "timeslot_increments": "30 minutes"}

    answer = free(tenant, someone, **halves, **span(change, 90), output_timezone=zone)

    found = starts(answer)
    before, after = (part.split() for part in shown.split("|"))
    assert [start[11:16] for start in found] == before + after
    assert len({start[16:] for start in found[: len(before)]}) == 1
    assert len({start[16:] for start in found[len(before) :]}) == 1
    # Half an hour has elapsed between all of them but where a start was skipped.
    lasting = {end - start for start, end in map(read_span, answer.data)}
    assert lasting == {timedelta(minutes=30)}


def read_span(slot: dict[str, Any]) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(slot["start"]), datetime.fromisoformat(slot["end"])


@pytest.mark.parametrize(("zone", "change"), INSTANTS)
def test_free_time_is_exact_around_the_change(tenant, rosa, zone, change):
    """One event began before the range, one ends after it, one lies around the change."""
    someone = rosa(zone, change)
    calendar = someone["calendars"][0]["id"]
    for first, last in ((-3000, -59), (-1, 1), (59, 3000)):
        tenant.make_event(calendar, **stretch(change, first, last))

    plain = free(tenant, someone, **span(change, 60))
    buffered = free(tenant, someone, **span(change, 60), buffer="1 minute")
    minutes = free(
        tenant, someone, **span(change, 60), length="1 minute", timeslot_increments="1 minute"
    )

    def found(*stretches: tuple[int, int]) -> list[str]:
        spans = [stretch(change, first, last) for first, last in stretches]
        return [
            {key: time.replace("Z", "+00:00") for key, time in each_span.items()}
            for each_span in spans
        ]

    assert times(plain) == found((-59, -1), (1, 59))
    assert times(buffered) == found((-58, -2), (2, 58))
    assert times(minutes) == found(
        *((n, n + 1) for n in range(-59, -1)), *((n, n + 1) for n in range(1, 59))
    )


def times(answer: Answer) -> list[dict[str, str]]:
    return [{"start": slot["start"], "end": slot["end"]} for slot in answer.data]


@pytest.mark.parametrize(("zone", "change"), INSTANTS)
def test_range_edges_at_the_change(tenant, rosa, zone, change):
    someone = rosa(zone, change)
    calendar = someone["calendars"][0]["id"]
    tenant.make_event(calendar, **stretch(change, 30, 31))

    until = free(tenant, someone, **{"from": instant(change, -60), "to": instant(change, 0)})
    since = free(tenant, someone, **{"from": instant(change, 0), "to": instant(change, 60)})

    assert [read_minutes(change, slot) for slot in until.data] == [(-60, 0)]
    assert [read_minutes(change, slot) for slot in since.data] == [(0, 30), (31, 60)]


def read_minutes(change: str, slot: dict[str, Any]) -> tuple[float, float]:
    start, end = (moment - at(change) for moment in read_span(slot))
    return start / timedelta(minutes=1), end / timedelta(minutes=1)


# --- Rules ----------------------------------------------------------------------------------------
def hours(start: Any, end: Any) -> dict[str, Any]:
    return {"allow_hours": {"start": start, "end": end}}


def day(name: str) -> dict[str, Any]:
    return {"allow_day": {"day": name}}


def period(start: str, end: str) -> dict[str, Any]:
    return {"allow_period": {"start": start, "end": end}}


@pytest.mark.parametrize(
    ("zone", "on", "rules", "found"),
    [
        # A window in the gap is empty, one around it is shorter.
        ("Europe/Berlin", "2025-03-30", [day("Sunday"), hours(2, 3)], []),
        ("Europe/Berlin", "2025-03-30", [day("Sunday"), hours(1, 4)],
         ["2025-03-30 01:00+01:00 to 2025-03-30 04:00+02:00"]),
        ("Europe/Berlin", "2025-03-30", [day("Sunday"), hours("02:30", "03:30")],
         ["2025-03-30 03:00-03:30 +02:00"]),
        ("Europe/Berlin", "2025-03-30", [day("Sunday"), hours("01:30", "02:30")],
         ["2025-03-30 01:30+01:00 to 2025-03-30 03:00+02:00"]),
        # In the repeated hour it holds twice.
        ("Europe/Berlin", "2025-10-26", [day("Sunday"), hours("02:00", "02:30")],
         ["2025-10-26 02:00-02:30 +02:00", "2025-10-26 02:00-02:30 +01:00"]),
        ("Europe/Berlin", "2025-10-26", [day("Sunday"), hours(2, 3)],
         ["2025-10-26 02:00+02:00 to 2025-10-26 03:00+01:00"]),
        ("Europe/Berlin", "2025-10-26", [day("Sunday"), hours("02:30", "03:30")],
         ["2025-10-26 02:30+02:00 to 2025-10-26 02:00+01:00",
          "2025-10-26 02:30-03:30 +01:00"]),
        ("Europe/Berlin", "2025-10-26",
         [day("Sunday"), {"block_hours": {"start": "02:15", "end": 24}}, hours(1, 4)],
         ["2025-10-26 01:00-02:15 +02:00", "2025-10-26 02:00-02:15 +01:00"]),
        # A day has the hours that it has.
        ("Europe/Berlin", "2025-03-30", [day("Sunday")],
         ["2025-03-30 00:00+01:00 to 2025-03-31 00:00+02:00"]),
        ("America/Santiago", "2025-09-07", [day("Sunday")],
         ["2025-09-07 01:00-03:00 to 2025-09-08 00:00-03:00"]),
        ("America/Santiago", "2025-04-05", [day("Saturday")],
         ["2025-04-05 00:00-03:00 to 2025-04-06 00:00-04:00"]),
        ("Africa/Cairo", "2025-04-25", [day("Friday")],
         ["2025-04-25 01:00+03:00 to 2025-04-26 00:00+03:00"]),
        ("Africa/Cairo", "2025-10-30", [day("Thursday")],
         ["2025-10-30 00:00+03:00 to 2025-10-31 00:00+02:00"]),
        ("Africa/Casablanca", "2025-02-23", [day("Sunday")],
         ["2025-02-23 00:00+01:00 to 2025-02-24 00:00+00:00"]),
        ("America/Havana", "2025-03-09", [day("Sunday")],
         ["2025-03-09 01:00-04:00 to 2025-03-10 00:00-04:00"]),
        ("America/Nuuk", "2025-03-29", [day("Saturday")],
         ["2025-03-29 00:00-02:00 to 2025-03-30 00:00-01:00"]),
        ("Pacific/Apia", "2011-12-30", [day("Friday")], []),
        ("Pacific/Apia", "2011-12-30", [hours(22, 2)],
         ["2011-12-28 22:00-10:00 to 2011-12-29 02:00-10:00",
          "2011-12-29 22:00-10:00 to 2011-12-31 02:00+14:00",
          "2011-12-31 22:00+14:00 to 2012-01-01 02:00+14:00",
          "2012-01-01 22:00+14:00 to 2012-01-02 02:00+14:00"]),
        # A minute of Sunday was there before the last hour of Saturday came again.
        ("America/St_Johns", "2010-11-07", [day("Saturday"), hours(23, 24)],
         ["2010-11-06 23:00-02:30 to 2010-11-07 00:00-02:30",
          "2010-11-06 23:01-03:30 to 2010-11-07 00:00-03:30"]),
        # Over midnight, where midnight is skipped and where its hour comes twice.
        ("America/Santiago", "2025-09-07", [day("Saturday"), hours(22, 2)],
         ["2025-09-06 22:00-04:00 to 2025-09-07 02:00-03:00"]),
        ("America/Santiago", "2025-04-05", [day("Saturday"), hours(22, 2)],
         ["2025-04-05 22:00-03:00 to 2025-04-06 02:00-04:00"]),
        ("Africa/Cairo", "2025-04-25", [day("Thursday"), hours(23, 1)],
         ["2025-04-24 23:00+02:00 to 2025-04-25 01:00+03:00"]),
        # Bounds of periods in a gap mean its end.
        ("Europe/Berlin", "2025-03-30", [period("2025-03-30 02:30:00", "2025-03-30 05:00:00")],
         ["2025-03-30 03:00-05:00 +02:00"]),
        ("Europe/Berlin", "2025-03-30", [period("2025-03-30 00:00:00", "2025-03-30 02:30:00")],
         ["2025-03-30 00:00+01:00 to 2025-03-30 03:00+02:00"]),
        ("Africa/Cairo", "2025-04-25", [period("2025-04-25", "2025-04-26")],
         ["2025-04-25 01:00+03:00 to 2025-04-26 00:00+03:00"]),
        ("Europe/Berlin", "2025-10-26",
         [period("2025-10-26T02:30:00+02:00", "2025-10-26T02:15:00+01:00")],
         ["2025-10-26 02:30+02:00 to 2025-10-26 02:15+01:00"]),
    ],
)  # fmt: skip
def test_rules_around_the_change(tenant, rosa, zone, on, rules, found):
    someone = rosa(zone, f"{on} 12:00", availability_constraints=rules)
    before, after = (date.fromisoformat(on) + timedelta(days=n) for n in (-1, 2))
    bounds = {"from": f"{before}T00:00:00Z", "to": f"{after}T12:00:00Z"}

    answer = free(tenant, someone, **bounds, output_timezone=zone)

    assert lines(answer) == [f"{row} Rosa" for row in found]


@pytest.mark.parametrize(
    ("zone", "on", "found"),
    [
        ("Europe/Berlin", "2025-03-30", "2025-03-30 00:00+01:00 to 2025-03-31 00:00+02:00"),
        ("Europe/Berlin", "2025-10-26", "2025-10-26 00:00+02:00 to 2025-10-27 00:00+01:00"),
        ("America/New_York", "2025-11-02", "2025-11-02 00:00-04:00 to 2025-11-03 00:00-05:00"),
        ("America/Santiago", "2025-09-07", "2025-09-07 01:00-03:00 to 2025-09-08 00:00-03:00"),
        ("America/Santiago", "2025-04-05", "2025-04-05 00:00-03:00 to 2025-04-06 00:00-04:00"),
        ("Australia/Lord_Howe", "2025-10-05", "2025-10-05 00:00+10:30 to 2025-10-06 00:00+11:00"),
        ("Australia/Lord_Howe", "2025-04-06", "2025-04-06 00:00+11:00 to 2025-04-07 00:00+10:30"),
        ("Asia/Kathmandu", "1986-01-01", "1986-01-01 00:15+05:45 to 1986-01-02 00:00+05:45"),
        ("Asia/Kathmandu", "2025-06-01", "2025-06-01 00:00+05:45 to 2025-06-02 00:00+05:45"),
        ("Pacific/Apia", "2011-12-29", "2011-12-29 00:00-10:00 to 2011-12-31 00:00+14:00"),
        ("Pacific/Apia", "2011-12-31", "2011-12-31 00:00+14:00 to 2012-01-01 00:00+14:00"),
        ("Africa/Cairo", "2025-04-25", "2025-04-25 01:00+03:00 to 2025-04-26 00:00+03:00"),
        ("Africa/Cairo", "2025-10-30", "2025-10-30 00:00+03:00 to 2025-10-31 00:00+02:00"),
        ("Africa/Casablanca", "2025-04-06", "2025-04-06 00:00+00:00 to 2025-04-07 00:00+01:00"),
        ("America/Havana", "2025-03-09", "2025-03-09 01:00-04:00 to 2025-03-10 00:00-04:00"),
        ("America/Havana", "2025-11-02", "2025-11-02 00:00-04:00 to 2025-11-03 00:00-05:00"),
        ("Pacific/Chatham", "2025-04-06", "2025-04-06 00:00+13:45 to 2025-04-07 00:00+12:45"),
        ("Antarctica/Troll", "2025-03-30", "2025-03-30 00:00+00:00 to 2025-03-31 00:00+02:00"),
    ],
)  # fmt: skip
def test_all_day_event_on_the_day_of_the_change(tenant, rosa, zone, on, found):
    """It blocks from one local midnight to the next, however many hours lie between."""
    someone = rosa(zone, f"{on} 12:00")
    tenant.make_event(someone["calendars"][0]["id"], on, on, all_day=True)
    before, after = (date.fromisoformat(on) + timedelta(days=n) for n in (-1, 2))
    bounds = {"from": f"{before}T00:00:00Z", "to": f"{after}T12:00:00Z"}
    body = {"resources": [someone["id"]], **bounds, "output_timezone": zone}

    assert lines(tenant.post("/unavailable/slots", body)) == [f"{found} Rosa"]


def test_event_on_a_skipped_day_is_refused(tenant, rosa):
    apia = rosa("Pacific/Apia", "2011-12-30 10:00")
    berlin = rosa("Europe/Berlin", "2011-12-30 10:00")
    tenant.make_event(berlin["calendars"][0]["id"], "2011-12-30", "2011-12-31", all_day=True)
    body = {"calendar_id": apia["calendars"][0]["id"], "what": "Nothing", "all_day": True}

    made = tenant.post("/events", {**body, "start": "2011-12-30", "end": "2011-12-31"})
    moved = tenant.put(f"/resources/{berlin['id']}", {"timezone": "Pacific/Apia"})

    none = "2011-12-30 does not exist in Pacific/Apia."
    assert (made.status, made.error) == (422, refusal(start=none))
    assert (moved.status, moved.error) == (422, refusal(timezone=none))


# --- The range ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("zone", "given", "found"),
    [
        # Of a wall time that comes twice the first.
        ("Europe/Berlin", {"from": "2025-10-26 02:30:00", "to": "2025-10-26 03:00:00"},
         "2025-10-26 02:30+02:00 to 2025-10-26 03:00+01:00"),
        ("Europe/Berlin", {"from": "2025-10-26 01:00:00", "to": "2025-10-26 02:59:00"},
         "2025-10-26 01:00-02:59 +02:00"),
        ("Africa/Cairo", {"from": "2025-10-30 23:30:00", "to": "2025-10-31 00:00:00"},
         "2025-10-30 23:30+03:00 to 2025-10-31 00:00+02:00"),
        ("Pacific/Apia", {"from": "2011-12-29 23:59:00", "to": "2011-12-31 00:01:00"},
         "2011-12-29 23:59-10:00 to 2011-12-31 00:01+14:00"),
        # A date is its midnight.
        ("Europe/Berlin", {"from": "2025-10-26", "to": "2025-10-27"},
         "2025-10-26 00:00+02:00 to 2025-10-27 00:00+01:00"),
        ("Africa/Cairo", {"from": "2025-04-25", "to": "2025-04-25 02:00:00"},
         "2025-04-25 01:00-02:00 +03:00"),
    ],
)  # fmt: skip
def test_wall_times_of_the_range(tenant, rosa, zone, given, found):
    someone = rosa(zone, f"{given['from'][:10]} 12:00")

    assert lines(free(tenant, someone, **given, output_timezone=zone)) == [f"{found} Rosa"]


def test_mutual_of_zones_with_different_change_dates(tenant, time_machine):
    """Between the second Sunday of March and the last, New York is an hour nearer to Berlin."""
    time_machine.move_to(at("2025-03-06 00:00"), tick=False)
    rules = [{"block_weekends": {}}, hours(9, 17)]
    ids = [
        tenant.make_resource(zone, zone, availability_constraints=rules)["id"]
        for zone in ("Europe/Berlin", "America/New_York")
    ]

    answer = tenant.post(
        "/availability",
        {"resources": ids, "mode": "mutual", "length": None, "output_timezone": "Europe/Berlin"},
    )

    assert [" ".join(line.split()[:3]) for line in lines(answer)] == [
        *(f"2025-03-{day:02} 15:00-17:00 +01:00" for day in (6, 7)),
        *(f"2025-03-{day} 14:00-17:00 +01:00" for day in (*range(10, 15), *range(17, 22))),
        *(f"2025-03-{day} 14:00-17:00 +01:00" for day in range(24, 29)),
        "2025-03-31 15:00-17:00 +02:00",
        *(f"2025-04-{day:02} 15:00-17:00 +02:00" for day in (1, 2)),
    ]


@pytest.mark.parametrize(("zone", "change"), INSTANTS)
def test_table_of_changes_matches_the_zones(zone, change):
    before, after = (at(change) - timedelta(seconds=1), at(change))

    offsets = [moment.astimezone(ZoneInfo(zone)).utcoffset() for moment in (before, after)]

    assert offsets[0] != offsets[1]
