"""The slow, obvious model of the availability core: one boolean per minute.

Written from the sentences of sections 6 and 7 of the contract and of part D of its additions, on
the JSON of the constraints, with zoneinfo asked for every single minute. Instants are counted in
whole minutes since the epoch.
"""

import re
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import combinations
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr
from holidays import country_holidays

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
MINUTE = timedelta(minutes=1)


@lru_cache(maxsize=100_000)
def read_wall(minute, zone):
    moment = datetime.fromtimestamp(minute * 60, UTC).astimezone(ZoneInfo(zone))
    return moment.replace(tzinfo=None, fold=0)


def read_time(value):
    hours, _, minutes = str(value).partition(":")
    return int(hours) * 60 + int(minutes or 0)


def is_in_window(params, wall, is_day_allowed):
    """Whether the reading lies in a window that starts on a day of the rule which is allowed."""
    start, end = read_time(params["start"]), read_time(params["end"])
    now = wall.hour * 60 + wall.minute
    starts_on = {DAYS.index(params["day"].lower())} if "day" in params else set(range(7))
    today = wall.weekday() in starts_on and is_day_allowed(wall.weekday())
    before = (wall.weekday() - 1) % 7
    yesterday = before in starts_on and is_day_allowed(before)
    if start < end:
        return today and start <= now < end
    return (today and start <= now) or (yesterday and now < end)


def is_in_period(params, minute, wall):
    def is_from(text):
        bound = datetime.fromisoformat(text)
        if bound.tzinfo:
            return datetime.fromtimestamp(minute * 60, UTC) >= bound
        return wall >= bound

    return is_from(params["start"]) and not is_from(params["end"])


def is_on_day(name, params, weekday):
    if name.endswith("weekdays"):
        return weekday < 5
    if name.endswith("weekends"):
        return weekday >= 5
    return DAYS[weekday] == params["day"].lower()


DAY_RULES = ("day", "weekdays", "weekends")


WEEKLY_KINDS = ("hours", "day_and_time", *DAY_RULES)


def rules_in(constraints, *names):
    """The parameters of the list's rules of these names."""
    return [params for each in constraints for name, params in each.items() if name in names]


def is_allowed(constraints, wall, *, is_over_schedule=False):
    """What one list allows by days and hours, without its blocks; nothing if it only opens."""
    rules = [item for each in constraints for item in each.items() if item[0].startswith("allow")]
    days = [rule for rule in rules if rule[0].removeprefix("allow_") in DAY_RULES]
    windows = {
        kind: [params for name, params in rules if name == kind]
        for kind in ("allow_hours", "allow_day_and_time")
    }

    def is_day_allowed(weekday):
        return not days or any(is_on_day(name, params, weekday) for name, params in days)

    opens = rules_in(constraints, "open_period", "open_recurring")
    if not rules and opens and not is_over_schedule:
        return False
    if not any(windows.values()):
        return is_day_allowed(wall.weekday())
    return all(
        any(is_in_window(params, wall, is_day_allowed) for params in kind)
        for kind in windows.values()
        if kind
    )


def is_blocked(name, params, minute, wall, zone):
    """Whether a block rule, by itself, blocks the minute."""
    kind = name.removeprefix("block_")
    if kind == "period":
        return is_in_period(params, minute, wall)
    if kind == "recurring":
        return is_in_recurrence(params, wall, zone)
    if kind == "holidays":
        return is_holiday(params, wall)
    if kind in DAY_RULES:
        return is_on_day(name, params, wall.weekday())
    return is_in_window(params, wall, lambda weekday: True)


UNITS = {"minutes": 1, "hours": 60, "days": 1440}


def is_in_recurrence(params, wall, zone):
    count, unit = params["duration"].split()
    length = int(count) * UNITS[unit] * MINUTE
    starts = find_starts(params["start"], params["rrule"], zone, wall.year + 1)
    position = bisect_right(starts, wall)
    return position > 0 and wall < starts[position - 1] + length


@lru_cache(maxsize=16)
def find_starts(start, rrule, zone, year):
    """All starts of a rule before the end of the year, counted from the first one."""
    until = re.search("UNTIL=([0-9]{8}T[0-9]{6}Z)", rrule)
    if until:
        last = datetime.strptime(until[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        rrule = rrule.replace(until[1], f"{last.astimezone(ZoneInfo(zone)):%Y%m%dT%H%M%S}")
    rrule = re.sub("(UNTIL=[0-9]{8})($|;)", r"\1T235959\2", rrule)  # the whole day
    first = datetime.fromisoformat(start)
    starts = rrulestr(rrule, dtstart=first)
    return starts.between(first, datetime(min(year, 9000) + 1, 1, 1), inc=True)


def is_holiday(params, wall):
    return wall.date() in holidays_of(**params, year=wall.year)


@lru_cache
def holidays_of(country, subdivision=None, *, year):
    """All days of the years around, so that a holiday observed in another year is known."""
    return frozenset(
        country_holidays(
            country, subdiv=subdivision, years=(year - 1, year, year + 1), expand=False
        )
    )


def replacement_hours(constraints, wall):
    """The windows of the rule for the reading's date; None without such a rule."""
    for params in rules_in(constraints, "replace_day"):
        if params["date"] == wall.date().isoformat():
            return params["windows"]
    return None


def is_in_replacement_hours(windows, wall):
    now = wall.hour * 60 + wall.minute
    return any(read_time(each["start"]) <= now < read_time(each["end"]) for each in windows)


def blocking(constraints, minute, wall, zone):
    """The block rules that keep a minute shut in their list: (name, parameters).

    Weekly blocks and holidays count where nothing that comes after them opens the time.
    """
    opened = is_in_any(rules_in(constraints, "open_period"), minute, wall)
    beside_dates = opened or replacement_hours(constraints, wall) is not None
    beside_week = beside_dates or repeats(constraints, wall, zone)
    for each in constraints:
        ((name, params),) = each.items()
        kind = name.removeprefix("block_")
        outdone = beside_week if kind in WEEKLY_KINDS else beside_dates and kind == "holidays"
        if (
            name.startswith("block")
            and not outdone
            and is_blocked(name, params, minute, wall, zone)
        ):
            yield name, params


def is_in_any(periods, minute, wall):
    return any(is_in_period(params, minute, wall) for params in periods)


def repeats(constraints, wall, zone):
    return any(
        is_in_recurrence(params, wall, zone) for params in rules_in(constraints, "open_recurring")
    )


def is_opened(constraints, minute, wall, zone):
    """Whether the rules of a list that allow or open time leave a minute open, its blocks aside."""
    if is_in_any(rules_in(constraints, "open_period"), minute, wall):
        return True
    periods = rules_in(constraints, "allow_period")
    if periods and not is_in_any(periods, minute, wall):
        return False
    windows = replacement_hours(constraints, wall)
    if windows is not None:
        return is_in_replacement_hours(windows, wall)
    return repeats(constraints, wall, zone) or is_allowed(constraints, wall)


def is_open_in(constraints, minute, wall, zone, schedule=None):
    """One list, in the seven steps of part D, from the last to the first.

    Over a schedule, the weekly time is that of the schedule, narrowed by the list's own.
    """
    blocks = [
        (name, params)
        for each in constraints
        for name, params in each.items()
        if name.startswith("block") and is_blocked(name, params, minute, wall, zone)
    ]
    if any(name in ("block_period", "block_recurring") for name, _ in blocks):
        return False
    if is_in_any(rules_in(constraints, "open_period"), minute, wall):
        return True
    periods = rules_in(constraints, "allow_period")
    if periods and not is_in_any(periods, minute, wall):
        return False
    windows = replacement_hours(constraints, wall)
    if windows is not None:
        return is_in_replacement_hours(windows, wall)
    if any(name == "block_holidays" for name, _ in blocks):
        return False
    if repeats(constraints, wall, zone):
        return True
    if schedule is not None and not is_open_in(schedule, minute, wall, zone):
        return False
    return not blocks and is_allowed(constraints, wall, is_over_schedule=schedule is not None)


def is_open(lists, minute, zone):
    wall = read_wall(minute, zone)
    return all(is_open_in(constraints, minute, wall, zone) for constraints in lists)


def open_minutes(lists, zone, start, end):
    return {minute for minute in range(start, end) if is_open(lists, minute, zone)}


def free_minutes(agenda, demand, opened):
    """What is free of the range: `opened` minus busy, minus closed."""
    taken = set()
    for start, end in agenda.busy:
        taken.update(
            range(max(start - demand.buffer, demand.start), min(end + demand.buffer, demand.end))
        )
    for start, end in agenda.closed:
        taken.update(range(max(start, demand.start), min(end, demand.end)))
    return {minute for minute in opened if demand.start <= minute < demand.end} - taken


def conflicts(one, other):
    """Whether two stretches (start, end, before, after) overlap or lie too close: between them lies
    at least the larger of the earlier one's `after` and the later one's `before`.
    """
    earlier, later = sorted((one, other))
    distance = later[0] - earlier[1]
    return distance < 0 or earlier[0] == later[0] or distance < max(earlier[3], later[2])


def fits(wanted, alone, units, capacity):
    """Whether a booking fits beside stretches that block alone and others that take a unit each.

    Not if as many as there are units keep it away and can't share a unit with each other either.
    """
    if any(conflicts(wanted, each) for each in alone):
        return False
    near = [each for each in units if conflicts(wanted, each)]
    return not any(
        all(conflicts(one, other) for one, other in combinations(chosen, 2))
        for chosen in combinations(near, capacity)
    )


def join_minutes(minutes):
    """Sorted (start, end) of the unbroken runs."""
    starts = sorted(minute for minute in minutes if minute - 1 not in minutes)
    ends = sorted(minute + 1 for minute in minutes if minute + 1 not in minutes)
    return list(zip(starts, ends, strict=True))


def is_start(minute, opened, zone, increment):
    """Whether a minute is on the grid of its local day."""
    opening = minute
    while opening - 1 in opened:
        opening -= 1
    wall, anchor = read_wall(minute, zone), read_wall(opening, zone)
    if anchor.date() != wall.date():
        anchor = datetime(wall.year, wall.month, wall.day)
    return (wall - anchor) // MINUTE % increment == 0


def find_spans(free, opened, zone, demand):
    """The slots of one agenda, or of several that are one in `mutual`."""
    gaps = join_minutes(free)
    earliest = demand.start if demand.not_before is None else demand.not_before
    if demand.length is None:
        return [(max(start, earliest), end) for start, end in gaps if end > earliest]
    if demand.increment is None:
        starts = [t for start, end in gaps for t in range(start, end, demand.length)]
    else:
        starts = [t for t in sorted(free) if is_start(t, opened, zone, demand.increment)]
    return [
        (t, t + demand.length)
        for t in starts
        if t >= earliest and all(m in free for m in range(t, t + demand.length))
    ]


def find_slots(mode, agendas, demand):
    """`agendas` carry rules as JSON and minutes for seconds; so does the demand."""
    reach = demand.start - 26 * 60, demand.end  # no local day is longer
    opened = [open_minutes(agenda.rules, agenda.zone, *reach) for agenda in agendas]
    free = [free_minutes(a, demand, o) for a, o in zip(agendas, opened, strict=True)]
    if mode == "mutual":
        spans = find_spans(
            set.intersection(*free), set.intersection(*opened), agendas[0].zone, demand
        )
        return [(*span, tuple(agenda.key for agenda in agendas)) for span in spans]
    keys = {}
    for agenda, its_free, its_opened in zip(agendas, free, opened, strict=True):
        for span in find_spans(its_free, its_opened, agenda.zone, demand):
            keys.setdefault(span, []).append(agenda.key)
    if mode == "exclusive":
        return [(*span, tuple(keys[span])) for span in sorted(keys)]
    return [(*span, (keys[span][0],)) for span in sorted(keys)]
