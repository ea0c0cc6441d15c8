from datetime import UTC, date, datetime

import pytest

from availability.core.zones import (
    NonexistentTime,
    day_start,
    local_day,
    offset_segments,
    wall_to_instant,
)


def instant(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("zone", "start", "end", "changes"),
    [
        ("UTC", "2026-01-01", "2027-01-01", [("2026-01-01", 0)]),
        (
            "Europe/Berlin",
            "2026-01-01",
            "2027-01-01",
            [("2026-01-01", 60), ("2026-03-29 01:00", 120), ("2026-10-25 01:00", 60)],
        ),
        (
            "Pacific/Apia",
            "2011-12-29",
            "2012-01-02",
            [("2011-12-29", -600), ("2011-12-30 10:00", 840)],
        ),
        (
            "Australia/Lord_Howe",
            "2026-03-01",
            "2026-11-01",
            [("2026-03-01", 660), ("2026-04-04 15:00", 630), ("2026-10-03 15:30", 660)],
        ),
        (
            "Africa/Casablanca",
            "2026-02-01",
            "2026-04-01",
            [("2026-02-01", 60), ("2026-02-15 02:00", 0), ("2026-03-22 02:00", 60)],
        ),
        (
            "Asia/Kathmandu",
            "1985-12-31",
            "1986-01-02",
            [("1985-12-31", 330), ("1985-12-31 18:30", 345)],
        ),
        (
            "Africa/Monrovia",
            "1972-01-07",
            "1972-01-08",
            [("1972-01-07", -44.5), ("1972-01-07 00:44:30", 0)],
        ),
        (
            "Europe/Berlin",
            "2199-03-01",
            "2199-04-05",
            [("2199-03-01", 60), ("2199-03-31 01:00", 120)],
        ),
        ("Europe/Berlin", "2026-03-29 01:00", "2026-03-29 01:01", [("2026-03-29 01:00", 120)]),
        ("Europe/Berlin", "2026-03-29 00:59", "2026-03-29 01:00", [("2026-03-29 00:59", 60)]),
        (
            "Europe/Berlin",
            "2026-03-29 00:59:59",
            "2026-03-29 01:00:01",
            [("2026-03-29 00:59:59", 60), ("2026-03-29 01:00", 120)],
        ),
    ],
)
def test_offset_segments_change_at_the_second(zone, start, end, changes):
    starts = [instant(since) for since, _ in changes]
    ends = [*starts[1:], instant(end)]
    offsets = [round(minutes * 60) for _, minutes in changes]

    segments = offset_segments(zone, instant(start), instant(end))

    assert segments == list(zip(starts, ends, offsets, strict=True))


def test_offset_segments_of_an_empty_range():
    assert offset_segments("UTC", 5, 5) == []


@pytest.mark.parametrize(
    ("zone", "wall", "expected"),
    [
        ("Europe/Berlin", "2026-03-29 01:59:59", "2026-03-29 00:59:59"),
        ("Europe/Berlin", "2026-03-29 03:00", "2026-03-29 01:00"),
        ("Europe/Berlin", "2026-10-25 02:30", "2026-10-25 00:30"),
        ("Europe/Berlin", "2026-10-25 03:00", "2026-10-25 02:00"),
        ("Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04 14:45"),
        ("Pacific/Apia", "2011-12-31 00:00", "2011-12-30 10:00"),
        ("America/St_Johns", "2010-11-07 00:00:30", "2010-11-07 02:30:30"),
    ],
)
def test_wall_to_instant_takes_the_first_of_two(zone, wall, expected):
    assert wall_to_instant(datetime.fromisoformat(wall), zone) == instant(expected)


@pytest.mark.parametrize(
    ("zone", "wall", "gap_end"),
    [
        ("Europe/Berlin", "2026-03-29 02:00", "2026-03-29 01:00"),
        ("Europe/Berlin", "2026-03-29 02:59:59", "2026-03-29 01:00"),
        ("Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03 15:30"),
        ("America/Havana", "2026-03-08 00:00", "2026-03-08 05:00"),
        ("Pacific/Apia", "2011-12-30 00:00", "2011-12-30 10:00"),
        ("Pacific/Apia", "2011-12-30 23:59:59", "2011-12-30 10:00"),
    ],
)
def test_wall_to_instant_in_a_gap(zone, wall, gap_end):
    wall = datetime.fromisoformat(wall)

    with pytest.raises(NonexistentTime):
        wall_to_instant(wall, zone)

    assert wall_to_instant(wall, zone, gap="end") == instant(gap_end)


@pytest.mark.parametrize(
    ("zone", "day", "expected"),
    [
        ("UTC", "2026-11-20", "2026-11-20"),
        ("Asia/Kolkata", "2026-11-20", "2026-11-19 18:30"),
        ("America/Santiago", "2026-09-06", "2026-09-06 04:00"),
        ("America/Havana", "2026-11-01", "2026-11-01 04:00"),
        ("Africa/Cairo", "2026-10-30", "2026-10-29 22:00"),
        ("Pacific/Apia", "2011-12-30", "2011-12-30 10:00"),
        ("America/St_Johns", "2010-11-07", "2010-11-07 02:30"),
    ],
)
def test_day_start_is_the_first_instant_of_the_day(zone, day, expected):
    assert day_start(date.fromisoformat(day), zone) == instant(expected)


@pytest.mark.parametrize(
    ("zone", "at", "expected"),
    [
        ("Asia/Kolkata", "2026-11-19 18:29:59", "2026-11-19"),
        ("Asia/Kolkata", "2026-11-19 18:30", "2026-11-20"),
        ("Pacific/Apia", "2011-12-30 09:59:59", "2011-12-29"),
        ("Pacific/Apia", "2011-12-30 10:00", "2011-12-31"),
        ("America/New_York", "1970-01-01 00:00", "1969-12-31"),
    ],
)
def test_local_day_is_the_date_on_the_wall(zone, at, expected):
    assert local_day(instant(at), zone) == date.fromisoformat(expected)
