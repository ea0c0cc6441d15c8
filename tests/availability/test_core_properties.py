"""The core against the slow model, around the odd hours of the world's clocks.

CORE_EXAMPLES sets the number of examples of each property (default 20; with --deep 40, and 760 sets
of rules): CORE_EXAMPLES=2000 for a long run.
"""

import os
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from availability.core.busy_items import Buffers, blocked_times
from availability.core.constraints import combine_with_schedule, open_windows, parse_constraints
from availability.core.explain import BusyItem, explain
from availability.core.slots import ResourceTimeline, SlotRequest, find_slots, free_intervals
from availability.core.zones import wall_to_instant
from tests.availability import core_model as model

IS_DEEP = settings().max_examples > 100
EXAMPLES = int(os.environ.get("CORE_EXAMPLES", 40 if IS_DEEP else 20))
thorough = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)
many_rules = settings(thorough, max_examples=max(EXAMPLES, 760 if IS_DEEP else 0))

ODD_TIMES = {  # changes of the clock, in UTC
    "America/Santiago": ["2026-04-05 03:00", "2026-09-06 04:00"],
    "Australia/Lord_Howe": ["2026-04-04 15:00", "2026-10-03 15:30", "1981-10-24 15:30"],
    "Asia/Kathmandu": ["1985-12-31 18:30"],
    "Pacific/Apia": ["2011-12-30 10:00", "2011-09-24 14:00", "2012-03-31 14:00"],
    "Africa/Cairo": [
        "2010-08-10 21:00",
        "2010-09-09 22:00",
        "2026-04-23 22:00",
        "2026-10-29 21:00",
    ],
    "Africa/Casablanca": ["2026-02-15 02:00", "2026-03-22 02:00", "2031-12-14 02:00"],
    "Europe/Berlin": ["2026-03-29 01:00", "2026-10-25 01:00"],
    "America/New_York": ["2026-03-08 07:00", "2026-11-01 06:00"],
    "Asia/Kolkata": ["2026-01-01 00:00"],
    "Pacific/Chatham": ["2026-04-04 14:00", "2026-09-26 14:00"],
    "America/St_Johns": [
        "1988-04-03 03:31",
        "1988-10-30 01:31",
        "2010-11-07 02:31",
        "2026-03-08 05:30",
    ],
    "UTC": ["2100-02-28 12:00", "2026-12-25 12:00", "2026-05-01 00:00"],
    "America/Havana": ["2026-03-08 05:00", "2026-11-01 05:00"],
    "Asia/Tehran": ["2022-03-21 20:30", "2022-09-21 19:30"],
}
DAY = 1440  # everything is counted in minutes here, and given to the core in seconds


def to_minute(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) // 60


def to_seconds(spans):
    return tuple((start * 60, end * 60) for start, end in spans)


@st.composite
def ranges(draw, longest=2 * DAY):
    """(zone, start, end): three in four of them around a change of the clock."""
    zone = draw(st.sampled_from(sorted(ODD_TIMES)))
    odd = to_minute(draw(st.sampled_from(ODD_TIMES[zone])))
    anywhere = st.integers(to_minute("1970-01-03 00:00"), to_minute("2199-12-01 00:00"))
    near = st.integers(odd - DAY - 90, odd + 90)
    start = draw(st.one_of(near, near, near, anywhere))
    return zone, start, start + draw(st.integers(1, longest))


times = st.one_of(
    st.integers(0, 23),
    st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from((0, 1, 15, 30, 45, 59))),
)
time_pairs = st.fixed_dictionaries({"start": times, "end": st.one_of(times, st.just(24))}).filter(
    lambda pair: model.read_time(pair["start"]) != model.read_time(pair["end"])
)
days = st.sampled_from([name.title() for name in model.DAYS])


@st.composite
def periods(draw, start):
    """Bounds near the start of the range, as wall-clock readings or as instants; mixed ones may be
    empty.
    """
    bounds = []
    for minute in sorted(
        draw(st.lists(st.integers(-DAY, 3 * DAY), min_size=2, max_size=2, unique=True))
    ):
        wall = datetime.fromtimestamp((start + minute) * 60, UTC)
        bounds.append(
            wall.isoformat() if draw(st.booleans()) else wall.strftime("%Y-%m-%d %H:%M:%S")
        )
    return {"start": bounds[0], "end": bounds[1]}


@st.composite
def recurrences(draw, start):
    """Rules that begin up to three years before the range or soon after; their start fits."""
    shift = draw(st.one_of(st.integers(-1100 * DAY, 2 * DAY), st.integers(-3 * DAY, DAY)))
    first = datetime.fromtimestamp(max(start + shift, 0) * 60, UTC).replace(tzinfo=None)
    day, place = first.strftime("%a").upper()[:2], (first.day - 1) // 7 + 1
    rule = draw(
        st.sampled_from(
            (
                "FREQ=DAILY",
                "FREQ=WEEKLY",
                f"FREQ=WEEKLY;BYDAY=MO,TH,{day}",
                f"FREQ=WEEKLY;BYDAY=SA,{day};WKST=SU",
                "FREQ=MONTHLY",
                f"FREQ=MONTHLY;BYDAY={place}{day}",
                f"FREQ=MONTHLY;BYDAY={day};BYSETPOS={place}",
                "FREQ=YEARLY",
            )
        )
    )
    rule += f";INTERVAL={draw(st.sampled_from((1, 1, 2, 3)))}"
    near = datetime.fromtimestamp(start * 60, UTC).replace(tzinfo=None)
    last = max(near + timedelta(minutes=draw(st.integers(-3 * DAY, 3 * DAY))), first)
    ends = ("", "", f";COUNT={draw(st.integers(1, 2))}", f";UNTIL={last:%Y%m%dT%H%M%S}")
    rule += draw(st.sampled_from((*ends, f";UNTIL={last:%Y%m%dT%H%M%S}Z", f";UNTIL={last:%Y%m%d}")))
    lengths = ("1 minutes", "45 minutes", "3 hours", "30 hours", "7 days")
    return {"start": f"{first}", "duration": draw(st.sampled_from(lengths)), "rrule": rule}


@st.composite
def replaced_days(draw, start):
    moment = datetime.fromtimestamp(start * 60, UTC) + timedelta(days=draw(st.integers(-2, 4)))
    clock = st.integers(0, 1440).map(lambda minutes: f"{minutes // 60:02}:{minutes % 60:02}")
    pair = st.lists(clock, min_size=2, max_size=2, unique=True).map(sorted)
    windows = draw(st.lists(pair, max_size=3))
    return {
        "date": f"{min(moment, datetime(2199, 12, 31, tzinfo=UTC)):%Y-%m-%d}",
        "windows": [{"start": one, "end": other} for one, other in windows],
    }


COUNTRIES = (
    {"country": "DE", "subdivision": "BY"},
    {"country": "US"},
    {"country": "JP"},
    {"country": "CL"},
    {"country": "EG"},
    {"country": "LK"},
    {"country": "IN"},
)


def countries_near(start):
    """Those with a holiday in the days around, if there are any."""
    day = datetime.fromtimestamp(start * 60, UTC).date()
    around = [day + timedelta(days=shift) for shift in range(-1, 4)]
    near = [
        each
        for each in COUNTRIES
        if any(day in model.holidays_of(**each, year=day.year) for day in around)
    ]
    return st.sampled_from(near or COUNTRIES)


def params_of(name, start):
    kind = name.split("_", 1)[1] if name.startswith(("allow", "block")) else name
    return {
        "hours": time_pairs,
        "day": st.fixed_dictionaries({"day": days}),
        "day_and_time": st.builds(lambda day, pair: {"day": day, **pair}, days, time_pairs),
        "period": periods(start),
        "weekdays": st.just({}),
        "weekends": st.just({}),
        "open_period": periods(start),
        "recurring": recurrences(start),
        "open_recurring": recurrences(start),
        "replace_day": replaced_days(start),
        "holidays": countries_near(start),
    }[kind]


WEEKLY_NAMES = ("hours", "hours", "day", "day_and_time", "period", "weekdays", "weekends")
NAMES = [f"{verb}_{kind}" for verb in ("allow", "block") for kind in WEEKLY_NAMES]
DATE_NAMES = [
    "open_period",
    "open_recurring",
    "block_recurring",
    "block_holidays",
    "replace_day",
    "replace_day",
]


@st.composite
def constraints(draw, start):
    """A list of up to five rules: in every other one, rules of dates are among them."""
    known = draw(st.sampled_from((NAMES, NAMES + 2 * DATE_NAMES)))
    names = draw(st.lists(st.sampled_from(known), max_size=5))
    rules = [{name: draw(params_of(name, start))} for name in names]
    dates = [rule["replace_day"]["date"] for rule in rules if "replace_day" in rule]
    return rules if len(dates) == len(set(dates)) else []


def lists_near(start):
    few = constraints(start)
    return st.one_of(
        st.just(([], [], [])),
        st.tuples(few, st.just([]), st.just([])),
        st.tuples(few, few, st.just([])),
        st.tuples(few, few, few),
        lists_with_dates(start),
        lists_with_dates(start),
    )


def spans_near(start, end, most):
    begin = st.integers(start - DAY, end + 60)
    span = st.builds(
        lambda at, length: (at, at + length), begin, st.sampled_from((1, 10, 60, 200, 1500))
    )
    return st.lists(span, max_size=most).map(sorted)


@st.composite
def lists_with_dates(draw, start):
    """One list with a rule of dates, and few others that could hide its effect."""
    name = draw(st.sampled_from(DATE_NAMES))
    rules = [{name: draw(params_of(name, start))}]
    if draw(st.booleans()):
        rules.append({"allow_hours": draw(time_pairs)})
    if draw(st.booleans()):
        other = draw(st.sampled_from([*DATE_NAMES[:-2], "block_day", "allow_period"]))
        rules.append({other: draw(params_of(other, start))})
    return (rules, [], [])


def first(lists):
    return lists[0]


def parse_lists(lists):
    return tuple(map(parse_constraints, lists))


@st.composite
def agendas_near(draw, zone, start, end, key):
    return ResourceTimeline(
        key,
        zone,
        draw(lists_near(start)),
        draw(spans_near(start, end, 6)),
        draw(st.one_of(st.just([]), spans_near(start, end, 1))),
    )


@st.composite
def demands(draw, start, end):
    return SlotRequest(
        start,
        end,
        draw(st.sampled_from((None, 1, 25, 30, 60, 120))),
        draw(st.sampled_from((0, 0, 10, 61))),
        draw(st.sampled_from((None, 7, 15, 45, 60, 1440))),
        draw(st.one_of(st.none(), st.integers(start - 100, end + 100))),
    )


def agenda_in_seconds(agenda):
    return agenda._replace(
        rules=parse_lists(agenda.rules),
        busy=to_seconds(agenda.busy),
        closed=to_seconds(agenda.closed),
    )


def demand_in_seconds(demand):
    return SlotRequest(*(None if value is None else value * 60 for value in demand))


@st.composite
def scenes(draw, most_agendas=1, longest=2 * DAY):
    """(agendas, demand) in minutes; several agendas share the range, not always the zone or the
    rules.
    """
    zone, start, end = draw(ranges(longest))
    agendas = [draw(agendas_near(zone, start, end, 0))]
    for key in range(1, draw(st.integers(1, most_agendas))):
        its_zone = draw(st.sampled_from((zone, zone, "Asia/Kathmandu", "Pacific/Apia")))
        other = draw(agendas_near(its_zone, start, end, key))
        if draw(st.booleans()):
            other = other._replace(rules=agendas[0].rules)
        agendas.append(other)
    return agendas, draw(demands(start, end))


@many_rules
@given(st.data())
def test_open_windows_agree_with_the_wall_clock_of_every_minute(data):
    zone, start, end = data.draw(ranges(4 * DAY))
    lists = data.draw(lists_near(start))

    windows = open_windows(parse_lists(lists), zone, start * 60, end * 60)

    expected = model.join_minutes(model.open_minutes(lists, zone, start, end))
    assert windows == to_seconds(expected)


@many_rules
@given(st.data())
def test_a_list_over_a_schedule_agrees_with_every_minute(data):
    zone, start, end = data.draw(ranges(3 * DAY))
    schedule = data.draw(st.one_of(constraints(start), lists_with_dates(start).map(first)))
    own = data.draw(st.one_of(constraints(start), lists_with_dates(start).map(first)))
    rules = (combine_with_schedule(*map(parse_constraints, (own, schedule))),)

    windows = open_windows(rules, zone, start * 60, end * 60)
    segments = explain(zone=zone, rules=rules, busy=(), start=start * 60, end=end * 60)

    opened = {
        minute
        for minute in range(start, end)
        if model.is_open_in(own, minute, model.read_wall(minute, zone), zone, schedule)
    }
    assert windows == to_seconds(model.join_minutes(opened))
    assert tuple((one.start, one.end) for one in segments if one.available) == windows


@thorough
@given(scenes())
def test_free_intervals_agree_with_every_minute(scene):
    (agenda,), demand = scene

    free = free_intervals(agenda_in_seconds(agenda), demand_in_seconds(demand))

    opened = model.open_minutes(agenda.rules, agenda.zone, demand.start, demand.end)
    whole = demand._replace(length=None)
    expected = model.find_spans(
        model.free_minutes(agenda, demand, opened), opened, agenda.zone, whole
    )
    assert tuple(free) == to_seconds(expected)


def check_slots(mode, scene):
    agendas, demand = scene
    slots = find_slots(mode, list(map(agenda_in_seconds, agendas)), demand_in_seconds(demand))
    expected = model.find_slots(mode, agendas, demand)
    assert slots == [(start * 60, end * 60, keys) for start, end, keys in expected]


sides = st.sampled_from((0, 0, 1, 10, 61, 200))
own_sides = st.one_of(st.none(), sides)
asked_buffers = st.one_of(
    st.builds(Buffers, sides, sides), sides.map(lambda one: Buffers(one, one))
)


one_place = st.just(1)


def items_near(start, end, most, capacities=one_place):
    """Events, in minutes: often with own buffers, often one right after another."""
    spans = st.tuples(st.integers(start - 300, end + 60), st.sampled_from((1, 10, 30, 60, 300)))

    def item(span, own, capacity, number):
        return BusyItem(span[0], sum(span), "event", number, capacity, *own)

    some = st.builds(item, spans, st.tuples(own_sides, own_sides), capacities, st.integers(0, 99))
    return st.lists(some, max_size=most, unique_by=lambda item: item.id).map(sorted)


def resolved(item, buffers):
    before = buffers.before if item.before is None else item.before
    return item.start, item.end, before, buffers.after if item.after is None else item.after


@many_rules
@given(st.data())
def test_blocked_times_keep_every_distance(data):
    """Of any length, with any buffers: a booking fits where no blocked time is, nowhere else."""
    capacity = data.draw(st.integers(2, 4))
    items = data.draw(items_near(0, 400, 9, st.sampled_from((1, capacity, capacity, capacity))))
    buffers = data.draw(asked_buffers)

    blocked = blocked_times(items, buffers)

    alone = [resolved(item, buffers) for item in items if item.capacity == 1]
    units = [resolved(item, buffers) for item in items if item.capacity > 1]
    for start in range(-600, 900, data.draw(st.sampled_from((1, 7)))):
        end = start + data.draw(st.sampled_from((1, 30, 200)))
        is_free = not any(lo < end and start < hi for lo, hi in blocked)
        assert is_free == model.fits((start, end, *buffers), alone, units, capacity), (start, end)


@thorough
@given(scenes(longest=DAY + 200))
def test_slots_of_one_agenda_agree_with_every_minute(scene):
    check_slots("roundrobin_random", scene)


@thorough
@given(scenes(most_agendas=3, longest=DAY))
def test_slots_of_several_agendas_agree_with_every_minute(scene):
    for mode in ("roundrobin_prioritized", "mutual", "exclusive"):
        check_slots(mode, scene)


@st.composite
def explained_scenes(draw, longest=2 * DAY):
    """A scene whose busy time are items, with their own buffers or those of the demand."""
    zone, start, end = draw(ranges(longest))
    agenda = draw(agendas_near(zone, start, end, 0))._replace(busy=[])
    return agenda, draw(demands(start, end)), draw(items_near(start, end, 6)), draw(asked_buffers)


def item_in_seconds(item):
    return BusyItem(
        item.start * 60,
        item.end * 60,
        item.type,
        item.id,
        before=None if item.before is None else item.before * 60,
        after=None if item.after is None else item.after * 60,
    )


def buffers_in_seconds(buffers):
    return Buffers(buffers.before * 60, buffers.after * 60)


def explain_in_seconds(agenda, demand, items, buffers):
    return explain(
        zone=agenda.zone,
        rules=parse_lists(agenda.rules),
        busy=[*map(item_in_seconds, items)],
        closed={"day": to_seconds(agenda.closed)},
        start=demand.start * 60,
        end=demand.end * 60,
        buffers=buffers_in_seconds(buffers),
        past_before=None if demand.not_before is None else demand.not_before * 60,
    )


@thorough
@given(explained_scenes())
def test_explain_agrees_with_free_intervals(scene):
    agenda, demand, items, buffers = scene

    segments = explain_in_seconds(*scene)

    edges = [demand.start * 60, *(segment.end for segment in segments)]
    assert edges == [*(segment.start for segment in segments), demand.end * 60]
    assert all(segment.available == (not segment.reasons) for segment in segments)
    assert all(one.reasons != other.reasons for one, other in pairwise(segments))
    available = [(segment.start, segment.end) for segment in segments if segment.available]
    blocked = blocked_times([*map(item_in_seconds, items)], buffers_in_seconds(buffers))
    timeline = agenda_in_seconds(agenda)
    timeline = timeline._replace(closed=sorted([*timeline.closed, *blocked]))
    assert available == free_intervals(timeline, demand_in_seconds(demand))


def expected_reasons(scene, minute):
    """(type, source, event or constraint) of all but the rules that allow or open time."""
    agenda, demand, items, buffers = scene
    wall = model.read_wall(minute, agenda.zone)
    for source, raw in zip(("resource", "project", "request"), agenda.rules, strict=True):
        for name, params in model.blocking(raw, minute, wall, agenda.zone):
            (rule,) = parse_constraints([{name: params}])
            yield "constraint", source, rule
    for item in items:
        if item.start <= minute < item.end:
            yield "event", None, item.id
        elif model.conflicts((minute, minute + 1, *buffers), resolved(item, buffers)):
            yield "buffer", None, item.id
    if demand.not_before is not None and minute < demand.not_before:
        yield "past", None, None
    if any(start <= minute < end for start, end in agenda.closed):
        yield "limit", None, None


@thorough
@given(explained_scenes(longest=DAY))
def test_explain_names_every_reason_at_every_minute(scene):
    agenda = scene[0]

    segments = explain_in_seconds(*scene)

    for segment in segments:
        given_reasons = {
            (reason.type, reason.source, reason.rules[0] if reason.rules else reason.event_id)
            for reason in segment.reasons
            if not (reason.rules and reason.rules[0].allow)
        }
        for minute in range(segment.start // 60, segment.end // 60):
            assert given_reasons == set(expected_reasons(scene, minute))
            wall = model.read_wall(minute, agenda.zone)
            refusing = {
                source
                for source, raw in zip(
                    ("resource", "project", "request"), agenda.rules, strict=True
                )
                if not model.is_opened(raw, minute, wall, agenda.zone)
            }
            assert refusing == {
                reason.source
                for reason in segment.reasons
                if reason.rules and reason.rules[0].allow
            }


@thorough
@given(st.sampled_from(sorted(ODD_TIMES)), st.integers(-2 * DAY, 2 * DAY), st.data())
def test_a_wall_time_is_read_back_or_skipped(zone, shift, data):
    odd = to_minute(data.draw(st.sampled_from(ODD_TIMES[zone])))
    wall = datetime(1970, 1, 1) + timedelta(minutes=odd + shift)

    instant = wall_to_instant(wall, zone, gap="end") // 60

    around = range(odd + shift - 2 * DAY, odd + shift + 2 * DAY)
    showing = [minute for minute in around if model.read_wall(minute, zone) == wall]
    jump = next(minute for minute in around if model.read_wall(minute, zone) > wall)
    assert instant == (showing[0] if showing else jump)
