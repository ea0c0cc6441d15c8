from datetime import UTC, datetime

import pytest

from availability.core.constraints import (
    ConstraintError,
    ConstraintRule,
    PeriodBound,
    open_windows,
    parse_constraints,
    render_constraint,
)


def instant(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def parse_one(raw):
    (rule,) = parse_constraints([raw])
    return rule


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"allow_hours": {"start": 9, "end": 17}},
            ConstraintRule(True, "hours", (), 540, 1020, "allow_hours"),
        ),
        (
            {"block_hours": {"start": "9", "end": "09:30"}},
            ConstraintRule(False, "hours", (), 540, 570, "block_hours"),
        ),
        (
            {"allow_hours": {"start": "23:59", "end": 24}},
            ConstraintRule(True, "hours", (), 1439, 1440, "allow_hours"),
        ),
        (
            {"allow_hours": {"start": 0.0, "end": "24:00"}},
            ConstraintRule(True, "hours", (), 0, 1440, "allow_hours"),
        ),
        (
            {"allow_hours": {"start": 18, "end": 0}},
            ConstraintRule(True, "hours", (), 1080, 0, "allow_hours"),
        ),
        (
            {"allow_day": {"day": "mONDAY"}},
            ConstraintRule(True, "day", (0,), None, None, "allow_day"),
        ),
        (
            {"block_day": {"day": "sunday"}},
            ConstraintRule(False, "day", (6,), None, None, "block_day"),
        ),
        (
            {"allow_day_and_time": {"day": "Friday", "start": 22, "end": 2}},
            ConstraintRule(True, "day_and_time", (4,), 1320, 120, "allow_day_and_time"),
        ),
        (
            {"allow_weekdays": {}},
            ConstraintRule(True, "day", (0, 1, 2, 3, 4), None, None, "allow_weekdays"),
        ),
        (
            {"block_weekends": []},
            ConstraintRule(False, "day", (5, 6), None, None, "block_weekends"),
        ),
        (
            {"block_period": {"start": "2026-08-01", "end": "2026-08-02T00:00:01"}},
            ConstraintRule(
                False,
                "period",
                (),
                PeriodBound(instant("2026-08-01")),
                PeriodBound(instant("2026-08-02 00:00:01")),
                "block_period",
            ),
        ),
        (
            {
                "allow_period": {
                    "start": "2026-08-01T00:00:00.5Z",
                    "end": "2026-08-01T02:00:00+0100",
                }
            },
            ConstraintRule(
                True,
                "period",
                (),
                PeriodBound(instant("2026-08-01"), 0),
                PeriodBound(instant("2026-08-01 01:00"), 3600),
                "allow_period",
            ),
        ),
        (
            {"block_weekdays": {"note": "unknown keys are ignored"}},
            ConstraintRule(False, "day", (0, 1, 2, 3, 4), None, None, "block_weekdays"),
        ),
    ],
)
def test_parse_reads(raw, expected):
    assert parse_one(raw) == expected


TIME = 'Expected a time such as 9 or "09:30", from 0 to 24.'
START = "Expected a time from 0 to 23:59."
BOUND = (
    "Expected YYYY-MM-DD HH:MM:SS, a date, or an instant with its offset, "
    "in the years 1970 to 2199."
)
ONE_KEY = "Expected an object with exactly one key, the constraint's name."
REQUIRED = "This field is required."


def hours_from(start):
    return {"allow_hours": {"start": start, "end": 17}}


def period_from(start, end="2026-09-01"):
    return {"allow_period": {"start": start, "end": end}}


@pytest.mark.parametrize(
    ("raw", "errors"),
    [
        ({}, {"0": [ONE_KEY]}),
        ([], {"0": [ONE_KEY]}),
        ("allow_weekdays", {"0": [ONE_KEY]}),
        ({"allow_weekdays": {}, "block_weekends": {}}, {"0": [ONE_KEY]}),
        ({"allow_noon": {}}, {"0": ["Unknown constraint."]}),
        ({"allow_weekdays": None}, {"0.allow_weekdays": ["Expected an object."]}),
        ({"allow_weekdays": [1]}, {"0.allow_weekdays": ["Expected an object."]}),
        ({"allow_day": []}, {"0.allow_day.day": [REQUIRED]}),
        (
            {"allow_hours": {}},
            {"0.allow_hours.start": [REQUIRED], "0.allow_hours.end": [REQUIRED]},
        ),
        (
            {"allow_hours": {"start": 9, "end": 9}},
            {"0.allow_hours.end": ["Must differ from start."]},
        ),
        (
            {"allow_day_and_time": {"day": "Mo", "start": 9, "end": "9:00"}},
            {"0.allow_day_and_time.day": ["Expected a weekday such as Monday."]},
        ),
        (
            {"block_day_and_time": {"day": "Monday", "start": 9, "end": "9:00"}},
            {"0.block_day_and_time.end": ["Must differ from start."]},
        ),
        (hours_from(24), {"0.allow_hours.start": [START]}),
        (hours_from("24:00"), {"0.allow_hours.start": [START]}),
        *[
            (hours_from(start), {"0.allow_hours.start": [TIME]})
            for start in (
                True, None, -1, 25, 9.5, float("inf"), 10**30, "", "9.5", "9:3", "09:60", " 9",
                "24:01", "٩", "９", "-1", "9\n", [], {},
            )
        ],
        *[
            (period_from(start), {"0.allow_period.start": [BOUND]})
            for start in (
                None, 0, "", "2026-08", "2026-02-29", "1969-12-31", "2200-01-01", "0001-01-01",
                "9999-12-31T23:59:59Z", "2026-08-01 24:00:00", "2026-08-01 23:59:60",
                "2026-08-01 10:00", "2026-08-01 10:00:00+24:00", "2026-08-01Z", "२०२६-08-01",
                "2026-08-01 10:00:00 +01:00", "2026-08-01\n",
            )
        ],
        (period_from("2026-09-01"), {"0.allow_period.end": ["Must be after start."]}),
        (
            period_from("2026-08-01T10:00:00+02:00", "2026-08-01T08:00:00Z"),
            {"0.allow_period.end": ["Must be after start."]},
        ),
    ],
)  # fmt: skip
def test_parse_refuses(raw, errors):
    with pytest.raises(ConstraintError) as caught:
        parse_constraints([raw])

    assert caught.value.errors == errors


def test_parse_collects_the_errors_of_all_rules():
    raw = [
        {"block_weekends": []},
        {"allow_day": {"day": 1}},
        {"allow_hours": {"start": 9, "end": 25}},
    ]

    with pytest.raises(ConstraintError) as caught:
        parse_constraints(raw)

    assert caught.value.errors == {
        "1.allow_day.day": ["Expected a weekday such as Monday."],
        "2.allow_hours.end": [TIME],
    }


@pytest.mark.parametrize("raw", [None, {}, "[]", 0])
def test_parse_requires_a_list(raw):
    with pytest.raises(ConstraintError) as caught:
        parse_constraints(raw)

    assert caught.value.errors == {"": ["Expected a list of constraints."]}


def test_parse_accepts_up_to_200_rules():
    assert len(parse_constraints([{"block_weekends": []}] * 200)) == 200

    with pytest.raises(ConstraintError) as caught:
        parse_constraints([{"block_weekends": []}] * 201)

    assert caught.value.errors == {"": ["At most 200 constraints."]}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"allow_hours": {"start": "9", "end": "17:30"}},
            {"allow_hours": {"start": 9, "end": "17:30"}},
        ),
        (
            {"block_hours": {"start": "00:05", "end": 24}},
            {"block_hours": {"start": "00:05", "end": 24}},
        ),
        ({"allow_hours": {"start": 18, "end": 0}}, {"allow_hours": {"start": 18, "end": 0}}),
        ({"allow_day": {"day": "TUESDAY"}}, {"allow_day": {"day": "Tuesday"}}),
        (
            {"block_day_and_time": {"end": 2, "start": "22:00", "day": "friday"}},
            {"block_day_and_time": {"day": "Friday", "start": 22, "end": 2}},
        ),
        ({"allow_weekdays": []}, {"allow_weekdays": {}}),
        ({"block_weekdays": []}, {"block_weekdays": {}}),
        ({"allow_weekends": []}, {"allow_weekends": {}}),
        ({"block_weekends": []}, {"block_weekends": {}}),
        (
            period_from("2026-08-01"),
            {"allow_period": {"start": "2026-08-01 00:00:00", "end": "2026-09-01 00:00:00"}},
        ),
        (
            period_from("1970-01-01T00:00:00+0530", "2199-12-31T23:59:59Z"),
            {
                "allow_period": {
                    "start": "1970-01-01T00:00:00+05:30",
                    "end": "2199-12-31T23:59:59+00:00",
                }
            },
        ),
    ],
)
def test_render_writes_what_parse_reads(raw, expected):
    rule = parse_one(raw)

    assert render_constraint(rule) == expected
    assert parse_one(expected) == rule


def hours(start, end, verb="allow"):
    return {f"{verb}_hours": {"start": start, "end": end}}


def day(name, verb="allow"):
    return {f"{verb}_day": {"day": name}}


def day_and_time(name, start, end, verb="allow"):
    return {f"{verb}_day_and_time": {"day": name, "start": start, "end": end}}


WEEKDAYS, NO_WEEKENDS = {"allow_weekdays": []}, {"block_weekends": []}


def windows_of(lists, zone, start, end):
    """Windows as "day hh:mm" in UTC."""
    parsed = tuple(map(parse_constraints, lists))
    windows = open_windows(parsed, zone, instant(start), instant(end))
    return [
        " - ".join(datetime.fromtimestamp(at, UTC).strftime("%d %H:%M") for at in window)
        for window in windows
    ]


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], ["04 00:00 - 08 00:00"]),
        ([[], [], []], ["04 00:00 - 08 00:00"]),
        ([[WEEKDAYS]], ["04 00:00 - 05 00:00", "07 00:00 - 08 00:00"]),
        ([[{"block_weekdays": []}]], ["05 00:00 - 07 00:00"]),
        ([[{"allow_weekends": []}]], ["05 00:00 - 07 00:00"]),
        ([[day("Friday"), day("Saturday")]], ["04 00:00 - 06 00:00"]),
        ([[day("Friday")], [day("Saturday")]], []),
        ([[day("Sunday", "block")]], ["04 00:00 - 06 00:00", "07 00:00 - 08 00:00"]),
        (
            [[NO_WEEKENDS, hours(9, 17), hours(12, 13, "block")]],
            [
                "04 09:00 - 04 12:00",
                "04 13:00 - 04 17:00",
                "07 09:00 - 07 12:00",
                "07 13:00 - 07 17:00",
            ],
        ),
        ([[WEEKDAYS, day_and_time("Saturday", 10, 12)]], []),
        ([[WEEKDAYS], [day_and_time("Saturday", 10, 12)]], []),
        (
            [[day_and_time("Friday", 9, 12), day_and_time("Saturday", 10, 12)]],
            ["04 09:00 - 04 12:00", "05 10:00 - 05 12:00"],
        ),
        ([[day("Friday"), hours(9, 12), hours(11, 14), hours(14, 15)]], ["04 09:00 - 04 15:00"]),
        ([[day("Friday"), hours(9, 12)], [hours(11, 14)]], ["04 11:00 - 04 12:00"]),
        ([[day("Friday"), hours(9, 12), day_and_time("Friday", 11, 14)]], ["04 11:00 - 04 12:00"]),
        ([[day("Friday"), hours(0, 24)]], ["04 00:00 - 05 00:00"]),
        # over midnight, days in the same list: a window belongs to the day on which it starts
        (
            [[WEEKDAYS, hours(18, 2)]],
            ["04 00:00 - 04 02:00", "04 18:00 - 05 02:00", "07 18:00 - 08 00:00"],
        ),
        ([[day("Friday"), hours(18, 0)]], ["04 18:00 - 05 00:00"]),
        ([[day("Friday"), day_and_time("Friday", 22, 3)]], ["04 22:00 - 05 03:00"]),
        ([[day("Saturday"), day_and_time("Friday", 22, 3)]], []),
        ([[day_and_time("Sunday", 22, 3)]], ["06 22:00 - 07 03:00"]),
        (
            [[day("Friday"), hours(18, 2), hours(1, 3)]],
            ["04 01:00 - 04 03:00", "04 18:00 - 05 02:00"],
        ),
        # days in another list, and blocks, go by the plain reading
        (
            [[WEEKDAYS], [hours(18, 2)]],
            [
                "04 00:00 - 04 02:00",
                "04 18:00 - 05 00:00",
                "07 00:00 - 07 02:00",
                "07 18:00 - 08 00:00",
            ],
        ),
        (
            [[NO_WEEKENDS, hours(18, 2)]],
            [
                "04 00:00 - 04 02:00",
                "04 18:00 - 05 00:00",
                "07 00:00 - 07 02:00",
                "07 18:00 - 08 00:00",
            ],
        ),
        ([[day("Saturday"), hours(22, 2, "block")]], ["05 02:00 - 05 22:00"]),
        ([[day("Saturday"), day_and_time("Friday", 22, 2, "block")]], ["05 02:00 - 06 00:00"]),
        ([[day("Saturday"), day_and_time("Saturday", 22, 2, "block")]], ["05 00:00 - 05 22:00"]),
        # periods
        (
            [
                [
                    {"allow_period": {"start": "2026-09-05", "end": "2026-09-06 12:00:00"}},
                    hours(10, 14),
                ]
            ],
            ["05 10:00 - 05 14:00", "06 10:00 - 06 12:00"],
        ),
        (
            [
                [
                    period_from("2026-09-04", "2026-09-05"),
                    period_from("2026-09-05", "2026-09-05 01:00:00"),
                ]
            ],
            ["04 00:00 - 05 01:00"],
        ),
        (
            [[period_from("2026-09-04", "2026-09-05")], [period_from("2026-09-05", "2026-09-06")]],
            [],
        ),
        (
            [
                [
                    {
                        "block_period": {
                            "start": "2026-09-04T12:00:00+02:00",
                            "end": "2026-09-07 23:30:00",
                        }
                    }
                ]
            ],
            ["04 00:00 - 04 10:00", "07 23:30 - 08 00:00"],
        ),
    ],
)
def test_open_windows_of_rules(lists, expected):
    """From Friday 4 to Monday 7 September 2026, in UTC."""
    assert windows_of(lists, "UTC", "2026-09-04", "2026-09-08") == expected


@pytest.mark.parametrize(
    ("zone", "lists", "start", "end", "expected"),
    [
        # the gap 02:00 to 03:00 and the repeated hour
        ("Europe/Berlin", [[hours(2, 3)]], "2026-03-28 23:00", "2026-03-29 22:00", []),
        (
            "Europe/Berlin",
            [[hours("01:30", "03:30")]],
            "2026-03-28 23:00",
            "2026-03-29 22:00",
            ["29 00:30 - 29 01:30"],
        ),
        (
            "Europe/Berlin",
            [[hours(2, 3)]],
            "2026-10-24 22:00",
            "2026-10-25 23:00",
            ["25 00:00 - 25 02:00"],
        ),
        (
            "Europe/Berlin",
            [[hours("02:15", "02:45")]],
            "2026-10-24 22:00",
            "2026-10-25 23:00",
            ["25 00:15 - 25 00:45", "25 01:15 - 25 01:45"],
        ),
        (
            "Europe/Berlin",
            [[hours("02:30", 9)]],
            "2026-10-24 22:00",
            "2026-10-25 23:00",
            ["25 00:30 - 25 01:00", "25 01:30 - 25 08:00"],
        ),
        (
            "Europe/Berlin",
            [[period_from("2026-03-29 02:10:00", "2026-03-29 04:00:00")]],
            "2026-03-28",
            "2026-03-30",
            ["29 01:00 - 29 02:00"],
        ),
        (
            "Europe/Berlin",
            [[period_from("2026-03-29 02:10:00", "2026-03-29 02:50:00")]],
            "2026-03-28",
            "2026-03-30",
            [],
        ),
        (
            "Europe/Berlin",
            [[period_from("2026-10-25T00:30:00Z", "2026-10-25 02:45:00")]],
            "2026-10-24",
            "2026-10-26",
            ["25 00:30 - 25 00:45", "25 01:00 - 25 01:45"],
        ),
        (
            "Australia/Lord_Howe",
            [[hours("01:30", 2)]],
            "2026-04-04",
            "2026-04-05",
            ["04 14:30 - 04 15:30"],
        ),
        ("Australia/Lord_Howe", [[hours(2, "02:30")]], "2026-10-03 14:00", "2026-10-04 14:00", []),
        # Apia went from Thursday 29 to Saturday 31 December 2011
        ("Pacific/Apia", [[day("Friday")]], "2011-12-28 10:00", "2012-01-02", []),
        (
            "Pacific/Apia",
            [[day("Saturday")]],
            "2011-12-28 10:00",
            "2012-01-02",
            ["30 10:00 - 31 10:00"],
        ),
        (
            "Pacific/Apia",
            [[day("Thursday"), hours(18, 2)]],
            "2011-12-28 10:00",
            "2012-01-02",
            ["30 04:00 - 30 10:00"],
        ),
        (
            "Pacific/Apia",
            [[day("Friday"), hours(18, 2)]],
            "2011-12-28 10:00",
            "2012-01-02",
            ["30 10:00 - 30 12:00"],
        ),
        (
            "America/Havana",
            [[day("Sunday"), hours(0, 1)]],
            "2026-11-01",
            "2026-11-02",
            ["01 04:00 - 01 06:00"],
        ),
        (
            "America/St_Johns",
            [[day("Saturday")]],
            "2010-11-07 02:00",
            "2010-11-08",
            ["07 02:00 - 07 02:30", "07 02:31 - 07 03:30"],
        ),
        ("Asia/Kathmandu", [[hours(9, 10)]], "2026-09-04", "2026-09-05", ["04 03:15 - 04 04:15"]),
    ],
)
def test_rules_follow_the_wall_clock(zone, lists, start, end, expected):
    assert windows_of(lists, zone, start, end) == expected


def test_many_windows_are_opened_exactly():
    raw = [
        hours(f"{n // 10:02}:{n % 10 * 6:02}", f"{n // 10:02}:{n % 10 * 6 + 3:02}")
        for n in range(200)
    ]

    windows = open_windows((parse_constraints(raw),), "UTC", 0, 366 * 86_400)

    expected = [
        (at, at + 180)
        for day in range(366)
        for at in range(day * 86_400, day * 86_400 + 72_000, 360)
    ]
    assert list(windows) == expected
