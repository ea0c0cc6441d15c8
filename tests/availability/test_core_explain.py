from datetime import UTC, datetime

import pytest

from availability.core.busy_items import Buffers
from availability.core.constraints import parse_constraints
from availability.core.explain import (
    BusyItem,
    Reason,
    Segment,
    TooManySegments,
    explain,
    never_open,
)


def instant(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


FRIDAY = instant("2026-09-04")
HOUR = 3600


def rules_of(*lists):
    return tuple(map(parse_constraints, lists))


def explain_day(*lists, busy=(), **options):
    """Friday 4 September 2026 in UTC as (from, to, texts)."""
    segments = explain(
        zone="UTC",
        rules=rules_of(*lists),
        busy=busy,
        start=FRIDAY,
        end=FRIDAY + 24 * HOUR,
        **options,
    )
    return [
        (
            (segment.start - FRIDAY) / HOUR,
            (segment.end - FRIDAY) / HOUR,
            [reason.text for reason in segment.reasons],
        )
        for segment in segments
    ]


def at(start, end, type_="event", event_id=None):
    return BusyItem(FRIDAY + round(start * HOUR), FRIDAY + round(end * HOUR), type_, event_id)


def hours(start, end, verb="allow"):
    return {f"{verb}_hours": {"start": start, "end": end}}


def test_explain_gives_whole_reasons():
    (opening, lunch) = rules_of([hours(9, 24), hours(12, 13, "block")])[0]

    segments = explain(
        zone="Europe/Berlin",
        rules=((), (opening, lunch)),
        busy=[at(12, 13, event_id=7)],
        start=FRIDAY + 6 * HOUR,
        end=FRIDAY + 22 * HOUR,
        buffers=Buffers(600, 600),
    )

    outside = "Outside the project's opening hours: 09:00 to 24:00."
    blocked = "Blocked by the project's rule: 12:00 to 13:00 every day."
    closed = Reason("constraint", "project", (opening,), None, outside)
    noon = Reason("constraint", "project", (lunch,), None, blocked)
    event = Reason("event", None, (), 7, "Overlaps an event.")
    around = "Within the buffer of 10 minutes around an event."
    buffer = Reason("buffer", None, (), 7, around)
    assert segments == [
        Segment(FRIDAY + 6 * HOUR, FRIDAY + 7 * HOUR, False, (closed,)),
        Segment(FRIDAY + 7 * HOUR, FRIDAY + 10 * HOUR, True, ()),
        Segment(FRIDAY + 10 * HOUR, FRIDAY + 11 * HOUR, False, (noon,)),
        Segment(FRIDAY + 11 * HOUR, FRIDAY + 12 * HOUR - 600, True, ()),
        Segment(FRIDAY + 12 * HOUR - 600, FRIDAY + 12 * HOUR, False, (buffer,)),
        Segment(FRIDAY + 12 * HOUR, FRIDAY + 13 * HOUR, False, (event,)),
        Segment(FRIDAY + 13 * HOUR, FRIDAY + 13 * HOUR + 600, False, (buffer,)),
        Segment(FRIDAY + 13 * HOUR + 600, FRIDAY + 22 * HOUR, True, ()),
    ]


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (hours(12, 13, "block"), "12:00 to 13:00 every day"),
        ({"block_day": {"day": "friday"}}, "Fridays"),
        ({"block_weekdays": []}, "Monday to Friday"),
        (
            {"block_day_and_time": {"day": "Friday", "start": 9, "end": 10}},
            "Fridays 09:00 to 10:00",
        ),
        (
            {"block_period": {"start": "2026-09-01", "end": "2026-10-01T00:00:00Z"}},
            "2026-09-01 00:00:00 to 2026-10-01T00:00:00+00:00",
        ),
    ],
)
def test_texts_of_blocks(constraint, text):
    texts = {text for _, _, texts in explain_day([], [], [constraint]) for text in texts}

    assert texts == {f"Blocked by the request's rule: {text}."}


@pytest.mark.parametrize(
    ("constraints", "text"),
    [
        ([{"allow_weekends": []}], "days: Saturday and Sunday"),
        (
            [{"allow_day": {"day": "monday"}}, {"allow_weekends": []}],
            "days: Mondays and Saturday and Sunday",
        ),
        ([hours(9, 12), hours(13, 17)], "opening hours: 09:00 to 12:00 and 13:00 to 17:00"),
        (
            [{"allow_day_and_time": {"day": "Saturday", "start": 22, "end": 2}}],
            "opening hours: Saturdays 22:00 to 02:00",
        ),
        (
            [{"allow_period": {"start": "2026-10-01", "end": "2026-11-01"}}],
            "period: 2026-10-01 00:00:00 to 2026-11-01 00:00:00",
        ),
        (
            [hours(hour, hour + 1) for hour in range(7)],
            "opening hours: 00:00 to 01:00, 01:00 to 02:00, 02:00 to 03:00, 03:00 to 04:00, "
            "04:00 to 05:00 and 2 more",
        ),
    ],
)
def test_texts_of_allowing_rules(constraints, text):
    texts = {text for _, _, texts in explain_day(constraints) for text in texts}

    assert texts == {f"Outside the resource's {text}."}


DAYS = "Outside the resource's days: Saturday and Sunday."
EVENING = "Outside the resource's opening hours: 18:00 to 02:00."


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], [(0, 24, [])]),
        # the night from Thursday and the evening are inside the hours; the day is what refuses
        (
            [[{"allow_weekends": []}, hours(18, 2)]],
            [(0, 2, [DAYS]), (2, 18, [DAYS, EVENING]), (18, 24, [DAYS])],
        ),
        # 00:00 to 02:00 belongs to Thursday's window
        (
            [[{"allow_day": {"day": "Friday"}}, hours(18, 2)]],
            [
                (0, 2, ["Outside the resource's days: Fridays."]),
                (2, 18, [EVENING]),
                (18, 24, []),
            ],
        ),
        (
            [[{"allow_day": {"day": "Thursday"}}, hours(18, 2)]],
            [
                (0, 2, []),
                (2, 18, ["Outside the resource's days: Thursdays.", EVENING]),
                (18, 24, ["Outside the resource's days: Thursdays."]),
            ],
        ),
        (
            [[{"allow_weekdays": []}], [hours(9, 17)]],
            [
                (0, 9, ["Outside the project's opening hours: 09:00 to 17:00."]),
                (9, 17, []),
                (17, 24, ["Outside the project's opening hours: 09:00 to 17:00."]),
            ],
        ),
    ],
)
def test_explain_names_the_refusing_rule(lists, expected):
    assert explain_day(*lists) == expected


def test_explain_names_notice_window_and_limits():
    segments = explain_day(
        closed={
            "day": [(FRIDAY + 6 * HOUR, FRIDAY + 8 * HOUR)],
            "week": [(FRIDAY + 7 * HOUR, FRIDAY + 9 * HOUR)],
            "month": [(FRIDAY + 9 * HOUR, FRIDAY + 10 * HOUR)],
        },
        past_before=FRIDAY + HOUR,
        notice_before=FRIDAY + 2 * HOUR,
        horizon_after=FRIDAY + 20 * HOUR,
    )

    notice = "Starts within the minimum notice."
    assert segments == [
        (0, 1, [notice, "Is in the past."]),
        (1, 2, [notice]),
        (2, 6, []),
        (6, 7, ["Daily limit reached."]),
        (7, 8, ["Daily limit reached.", "Weekly limit reached."]),
        (8, 9, ["Weekly limit reached."]),
        (9, 10, ["Monthly limit reached."]),
        (10, 20, []),
        (20, 24, ["Beyond the booking window."]),
    ]


def test_explain_names_holds_and_earlier_events():
    busy = [at(-5, 1, event_id=1), at(0.5, 2, "hold"), at(23, 30, event_id=2)]

    segments = explain_day(busy=busy)

    assert segments == [
        (0, 0.5, ["Overlaps an event."]),
        (0.5, 1, ["Overlaps an event.", "Held for another booking."]),
        (1, 2, ["Held for another booking."]),
        (2, 23, []),
        (23, 24, ["Overlaps an event."]),
    ]


def test_adjacent_segments_with_equal_reasons_are_merged():
    busy = [at(1, 2), at(2, 3)]

    assert explain_day(busy=busy) == [(0, 1, []), (1, 3, ["Overlaps an event."]), (3, 24, [])]


@pytest.mark.parametrize(
    ("buffer", "text"),
    [
        (3600, "1 hour"),
        (7200, "2 hours"),
        (5400, "90 minutes"),
        (60, "1 minute"),
        (90, "90 seconds"),
    ],
)
def test_texts_of_buffers(buffer, text):
    (_, before, *_) = explain_day(busy=[at(12, 13)], buffers=Buffers(buffer, buffer))

    assert before[2] == [f"Within the buffer of {text} around an event."]


def test_the_longer_buffer_of_each_side_is_named():
    busy = [at(8, 9)._replace(before=7200, after=0), at(16, 17)]

    segments = explain_day(busy=busy, buffers=Buffers(after=3600))

    within = "Within the buffer of"
    assert segments == [
        (0, 6, []),
        (6, 8, [f"{within} 2 hours before an event."]),
        (8, 9, ["Overlaps an event."]),
        (9, 15, []),
        (15, 16, [f"{within} 1 hour around an event."]),
        (16, 17, ["Overlaps an event."]),
        (17, 18, [f"{within} 1 hour around an event."]),
        (18, 24, []),
    ]


def test_buffers_around_full_times():
    shared = [at(9, 10)._replace(capacity=2), at(9.5, 11)._replace(capacity=2)]
    (first, second), taken = shared, "All 2 places are taken."

    same = explain_day(busy=shared, buffers=Buffers(1800, 1800))
    own = explain_day(busy=[first, second._replace(before=7200, after=0)])

    within = "Within the buffer of 30 minutes around bookings that take all 2 places."
    assert same == [
        (0, 9, []),
        (9, 9.5, [within]),
        (9.5, 10, [taken]),
        (10, 10.5, [within]),
        (10.5, 24, []),
    ]
    assert own == [
        (0, 9, []),
        (9, 9.5, ["Within the buffers of bookings that take all 2 places."]),
        (9.5, 10, [taken]),
        (10, 24, []),
    ]


def test_explain_of_an_empty_range_is_empty():
    assert explain(zone="UTC", rules=(), busy=[], start=5, end=5) == []


def test_explain_refuses_more_reasons_than_the_limit():
    rules = rules_of([hours(9, 17), hours(12, 13, "block")])
    wanted = {"zone": "UTC", "rules": rules, "busy": [], "start": 0, "end": 30 * 24 * HOUR}

    assert len(explain(**wanted, limit=61)) == 121

    with pytest.raises(TooManySegments):
        explain(**wanted, limit=60)


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], False),
        ([[{"allow_weekdays": []}], [{"allow_weekends": []}]], True),
        ([[{"allow_weekends": []}]], True),
        ([[hours(9, 10)]], False),
        ([[hours(9, 10), hours(9, 10, "block")]], True),
    ],
)
def test_never_open_of_rules(lists, expected):
    assert never_open("UTC", rules_of(*lists), FRIDAY, FRIDAY + 24 * HOUR) is expected
