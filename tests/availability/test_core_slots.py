from datetime import UTC, datetime

import pytest

from availability.core.constraints import parse_constraints
from availability.core.slots import (
    MAX_STARTS_PER_SLOT,
    FirstFreeSlots,
    ResourceTimeline,
    SlotRequest,
    TooManySlots,
    TooManyStarts,
    find_slots,
    free_intervals,
)


def instant(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def clock(at):
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")


FRIDAY = instant("2026-09-04")
MINUTE, HOUR = 60, 3600
OFFICE = [{"allow_hours": {"start": 9, "end": 12}}]


def span(text, day=FRIDAY):
    """ "09:00-10:30" as instants of the day."""
    return tuple(day + int(part[:2]) * HOUR + int(part[3:]) * MINUTE for part in text.split("-"))


def agenda(key="ann", *, busy=(), closed=(), constraints=OFFICE, zone="UTC"):
    return ResourceTimeline(
        key, zone, (parse_constraints(constraints),), list(map(span, busy)), list(map(span, closed))
    )


def demand(length=60, *, within="00:00-24:00", **minutes):
    start, end = span(within)
    seconds = {name: value * MINUTE for name, value in minutes.items() if name != "not_before"}
    if "not_before" in minutes:
        seconds["not_before"] = span(f"{minutes['not_before']}-00:00")[0]
    return SlotRequest(start, end, length and length * MINUTE, **seconds)


def starts(slots):
    return [clock(start) for start, _, _ in slots]


@pytest.mark.parametrize(
    ("busy", "closed", "wanted", "expected"),
    [
        ([], [], demand(), ["09:00-12:00"]),
        (["10:00-10:30"], [], demand(), ["09:00-10:00", "10:30-12:00"]),
        (["10:00-10:30"], [], demand(buffer=10), ["09:00-09:50", "10:40-12:00"]),
        (["10:00-10:30"], [], demand(buffer=90), []),
        (["08:00-09:00", "12:00-13:00"], [], demand(), ["09:00-12:00"]),
        (["08:00-08:55", "12:05-13:00"], [], demand(buffer=10), ["09:05-11:55"]),
        (["00:00-10:00", "01:00-02:00"], [], demand(), ["10:00-12:00"]),
        (["10:00-10:30"], ["11:00-12:00"], demand(buffer=10), ["09:00-09:50", "10:40-11:00"]),
        ([], [], demand(within="09:30-11:59"), ["09:30-11:59"]),
        ([], [], demand(within="12:00-13:00"), []),
        ([], [], demand(not_before="10:01"), ["10:01-12:00"]),
        ([], [], demand(not_before="12:00"), []),
    ],
)
def test_free_intervals(busy, closed, wanted, expected):
    free = free_intervals(agenda(busy=busy, closed=closed), wanted)

    assert free == list(map(span, expected))


@pytest.mark.parametrize(
    ("busy", "wanted", "expected"),
    [
        # without increments: packed from the start of each free gap
        ([], demand(60), ["09:00", "10:00", "11:00"]),
        ([], demand(61), ["09:00", "10:01"]),
        ([], demand(180), ["09:00"]),
        ([], demand(181), []),
        (["09:50-10:05"], demand(30), ["09:00", "10:05", "10:35", "11:05"]),
        (["09:50-10:05"], demand(30, buffer=5), ["09:00", "10:10", "10:40", "11:10"]),
        ([], demand(60, within="09:20-11:30"), ["09:20", "10:20"]),
        ([], demand(50, not_before="10:00"), ["10:40"]),
        ([], demand(50, not_before="09:50"), ["09:50", "10:40"]),
        # with increments: counted from the day's opening, whatever is in the way
        ([], demand(60, increment=30), ["09:00", "09:30", "10:00", "10:30", "11:00"]),
        (["09:50-10:55"], demand(30, increment=15), ["09:00", "09:15", "11:00", "11:15", "11:30"]),
        (
            ["09:50-10:55"],
            demand(30, increment=15, buffer=5),
            ["09:00", "09:15", "11:00", "11:15", "11:30"],
        ),
        (["09:50-10:55"], demand(30, increment=15, buffer=6), ["09:00", "11:15", "11:30"]),
        ([], demand(60, within="09:20-11:30", increment=30), ["09:30", "10:00", "10:30"]),
        ([], demand(60, increment=45, not_before="09:45"), ["09:45", "10:30"]),
        ([], demand(60, increment=45, not_before="09:46"), ["10:30"]),
        ([], demand(60, increment=1440), ["09:00"]),
    ],
)
def test_starts_of_slots(busy, wanted, expected):
    slots = find_slots("roundrobin_prioritized", [agenda(busy=busy)], wanted)

    assert slots == [(start, start + wanted.length, ("ann",)) for start, _, _ in slots]
    assert starts(slots) == expected


@pytest.mark.parametrize(
    ("zone", "constraints", "within", "increment", "expected"),
    [
        # open already at midnight: counted from midnight, whatever the day before
        ("UTC", [], ("2026-09-04 22:00", "2026-09-05 03:00"), 100, ["23:20", "00:00", "01:40"]),
        (
            "UTC",
            [{"allow_hours": {"start": 21, "end": 2}}],
            ("2026-09-04 20:00", "2026-09-05 20:00"),
            50,
            ["21:00", "21:50", "22:40", "23:30", "00:00", "00:50"],
        ),
        # Berlin: 02:00 to 03:00 skipped, then repeated
        (
            "Europe/Berlin",
            [],
            ("2026-03-29 00:00", "2026-03-29 03:00"),
            45,
            ["00:30", "01:00", "01:45"],
        ),
        (
            "Europe/Berlin",
            [{"allow_hours": {"start": 1, "end": 5}}],
            ("2026-03-28 23:00", "2026-03-29 22:00"),
            30,
            ["00:00", "00:30", "01:00", "01:30", "02:00"],
        ),
        (
            "Europe/Berlin",
            [{"allow_hours": {"start": 1, "end": 4}}],
            ("2026-10-24 22:00", "2026-10-25 23:00"),
            40,
            ["23:00", "23:40", "00:20", "01:20", "02:00"],
        ),
        # Santiago's Sunday begins at 01:00: midnight's multiples all the same
        ("America/Santiago", [], ("2026-09-06 03:00", "2026-09-06 07:30"), 90, ["04:30", "06:00"]),
        (
            "Pacific/Apia",
            [],
            ("2011-12-30 08:00", "2011-12-30 13:00"),
            90,
            ["08:30", "10:00", "11:30"],
        ),
    ],
)
def test_the_grid_is_counted_on_the_wall_clock(zone, constraints, within, increment, expected):
    start, end = map(instant, within)
    wanted = SlotRequest(start, end, HOUR, increment=increment * MINUTE)

    slots = find_slots("exclusive", [agenda(constraints=constraints, zone=zone)], wanted)

    assert starts(slots) == expected


ANN = agenda("ann", busy=["09:00-10:00"])
BOB = agenda("bob", busy=["11:00-12:00"])
EVE = agenda("eve", constraints=[{"allow_hours": {"start": "10:30", "end": 13}}])


@pytest.mark.parametrize(
    ("mode", "agendas", "wanted", "expected"),
    [
        ("roundrobin_prioritized", [], demand(), []),
        (
            "roundrobin_prioritized",
            [ANN, BOB],
            demand(),
            [("09:00-10:00", "bob"), ("10:00-11:00", "ann"), ("11:00-12:00", "ann")],
        ),
        (
            "roundrobin_random",
            [BOB, ANN],
            demand(),
            [("09:00-10:00", "bob"), ("10:00-11:00", "bob"), ("11:00-12:00", "ann")],
        ),
        (
            "exclusive",
            [ANN, BOB],
            demand(),
            [("09:00-10:00", "bob"), ("10:00-11:00", "ann bob"), ("11:00-12:00", "ann")],
        ),
        (
            "exclusive",
            [ANN, EVE],
            demand(increment=60),
            [
                ("10:00-11:00", "ann"),
                ("10:30-11:30", "eve"),
                ("11:00-12:00", "ann"),
                ("11:30-12:30", "eve"),
            ],
        ),
        ("mutual", [ANN, BOB], demand(), [("10:00-11:00", "ann bob")]),
        ("mutual", [ANN, EVE], demand(), [("10:30-11:30", "ann eve")]),
        (
            "mutual",
            [ANN, EVE],
            demand(increment=20),
            [("10:30-11:30", "ann eve"), ("10:50-11:50", "ann eve")],
        ),
        ("mutual", [ANN, BOB, EVE], demand(), []),
        ("mutual", [ANN, BOB, EVE], demand(None), [("10:30-11:00", "ann bob eve")]),
        (
            "roundrobin_prioritized",
            [ANN, BOB, agenda("zoe", busy=["09:00-10:00"])],
            demand(None),
            [("09:00-11:00", "bob"), ("10:00-12:00", "ann")],
        ),
        (
            "exclusive",
            [ANN, BOB, agenda("zoe", busy=["09:00-10:00"])],
            demand(None, not_before="10:15"),
            [("10:15-11:00", "bob"), ("10:15-12:00", "ann zoe")],
        ),
    ],
)
def test_slots_of_each_mode(mode, agendas, wanted, expected):
    slots = find_slots(mode, agendas, wanted)

    assert slots == [(*span(times), tuple(keys.split())) for times, keys in expected]


@pytest.mark.parametrize("mode", ["mutual", "exclusive"])
@pytest.mark.parametrize(
    ("wanted", "pairs"),
    [(demand(1), 360), (demand(5, increment=1), 352), (demand(None), 2)],
)
def test_more_pairs_than_the_limit_are_refused(mode, wanted, pairs):
    agendas = [agenda("ann"), agenda("bob")]

    assert find_slots(mode, agendas, wanted, limit=pairs)

    with pytest.raises(TooManySlots):
        find_slots(mode, agendas, wanted, limit=pairs - 1)


@pytest.mark.parametrize(
    ("wanted", "slots"),
    [(demand(1), 240), (demand(5, increment=1), 236), (demand(None), 2)],
)
def test_round_robin_limit_counts_slots_of_the_response(wanted, slots):
    agendas = [agenda("ann"), agenda("bob"), agenda("eve", constraints=LATE)]

    assert len(find_slots("roundrobin_prioritized", agendas, wanted, limit=slots)) == slots

    with pytest.raises(TooManySlots):
        find_slots("roundrobin_prioritized", agendas, wanted, limit=slots - 1)


LATE = [{"allow_hours": {"start": 10, "end": 13}}]


@pytest.mark.parametrize("wanted", [demand(1), demand(1, increment=1)])
def test_too_many_starts_per_slot_are_refused(wanted):
    """The last minute is free for nobody, so each agenda has to be looked at."""
    busy = ["11:59-12:00"]
    enough = [agenda(number, busy=busy) for number in range(MAX_STARTS_PER_SLOT)]

    assert len(find_slots("roundrobin_prioritized", enough, wanted, limit=180)) == 179

    with pytest.raises(TooManyStarts):
        find_slots("roundrobin_prioritized", [*enough, *enough[:2]], wanted, limit=180)


def test_can_add_is_false_for_an_agenda_without_new_slots():
    found = FirstFreeSlots(demand(60, increment=60))
    ann, bob, late = agenda("ann"), agenda("bob"), agenda("late", constraints=LATE)

    assert [found.can_add(each) for each in (ann, bob, late)] == [True, True, True]
    found.add(agenda("ann", busy=["09:00-09:30"]))
    assert [found.can_add(each) for each in (ann, bob, late)] == [True, True, True]
    found.add(bob)
    assert [found.can_add(each) for each in (ann, bob, late)] == [False, False, True]
    found.add(late)
    assert [found.can_add(each) for each in (ann, bob, late)] == [False, False, False]
    assert [(clock(start), *keys) for start, _, keys in found.slots()] == [
        ("09:00", "bob"),
        ("10:00", "ann"),
        ("11:00", "ann"),
        ("12:00", "late"),
    ]
