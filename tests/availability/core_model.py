"""The slow, obvious model of the availability core: one boolean per minute.

Written from the sentences of sections 6 and 7 of the contract, on the JSON of the constraints, with
zoneinfo asked for every single minute. Instants are counted in whole minutes since the epoch.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
MINUTE = timedelta(minutes=1)


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


def is_allowed(constraints, minute, wall):
    """What one list allows, its blocks aside."""
    rules = [item for each in constraints for item in each.items() if item[0].startswith("allow")]
    days = [rule for rule in rules if rule[0].removeprefix("allow_") in DAY_RULES]
    windows = {
        kind: [params for name, params in rules if name == kind]
        for kind in ("allow_hours", "allow_day_and_time")
    }
    periods = [params for name, params in rules if name == "allow_period"]

    def is_day_allowed(weekday):
        return not days or any(is_on_day(name, params, weekday) for name, params in days)

    if periods and not any(is_in_period(params, minute, wall) for params in periods):
        return False
    if not any(windows.values()):
        return is_day_allowed(wall.weekday())
    return all(
        any(is_in_window(params, wall, is_day_allowed) for params in kind)
        for kind in windows.values()
        if kind
    )


def is_blocked(name, params, minute, wall):
    kind = name.removeprefix("block_")
    if kind == "period":
        return is_in_period(params, minute, wall)
    if kind in DAY_RULES:
        return is_on_day(name, params, wall.weekday())
    return is_in_window(params, wall, lambda weekday: True)


def is_open(lists, minute, zone):
    wall = read_wall(minute, zone)
    return all(is_allowed(constraints, minute, wall) for constraints in lists) and not any(
        is_blocked(name, params, minute, wall)
        for constraints in lists
        for each in constraints
        for name, params in each.items()
        if name.startswith("block")
    )


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
