"""Recurrence rules that others wrote (RFC 5545, section 3.3.10), within bounds.

Bookings take few rules, calendars take all; the days of a rule are found by the same code. Only the
days between two bounds are looked at: libraries look for the next occurrence of a rule that nothing
fits until the year 9999, and at each second of a rule that counts in seconds.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, time, timedelta
from itertools import islice, product

from bookings.recurrence import DAYS, PARTS, DayFilter, Recurrence, at_positions, fitting_days
from scheduling.api.instants import LAST_YEAR

# A rule that counts is followed from its first day on.
EARLIEST_COUNTED = 1970
STEP = re.compile(r"[1-9]\d{0,3}", re.ASCII)
NUMBER = re.compile(r"[1-9]\d{0,8}", re.ASCII)
UNTIL = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII)
LISTS = ("BYDAY", "BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS", "WKST")
# Parts of the time of day -> how many there are of it.
TIMES: Mapping[str, int] = {"BYHOUR": 24, "BYMINUTE": 60, "BYSECOND": 61}
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY")


class BadRule(ValueError):
    """The rule can't be read, or repeats more often than every hour."""


class Rule(Recurrence):
    """`FREQ=WEEKLY;BYDAY=MO,TH`, as strange as they come.

    `until` is the last reading that may be a start, a date counting to its end; None: there is no
    last. Whether it is in UTC says `until_is_utc`.
    """

    def __init__(self, text: str) -> None:
        """Raises BadRule."""
        self.text = text
        self.parts = _read_parts(text)
        self.frequency = self.parts.get("FREQ", "")
        if self.frequency not in FREQUENCIES:
            raise BadRule(f"FREQ can't be {self.frequency:.20}.")
        self.interval = int(self.parts.get("INTERVAL", 1))
        self.count = int(self.parts["COUNT"]) if "COUNT" in self.parts else None
        self.week_start = DAYS.index(self.parts.get("WKST", "MO"))
        self.until, self.until_is_utc = _read_until(self.parts.get("UNTIL", ""))
        if "BYDAY" in self.parts and self.frequency not in ("MONTHLY", "YEARLY"):
            # A number has a meaning within months and years only.
            self.parts["BYDAY"] = ",".join(word[-2:] for word in self.parts["BYDAY"].split(","))
        self._check_pace()

    def _check_pace(self) -> None:
        hours, minutes, seconds = (len(self.numbers(part)) or 1 for part in TIMES)
        per_hour = minutes * seconds
        if per_hour > 1 if self.frequency == "HOURLY" else hours * per_hour > 24:
            raise BadRule("It repeats more often than every hour.")


def _read_parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for word in text.upper().split(";"):
        name, _, value = word.strip().partition("=")
        if not name or name.startswith("X-"):
            continue
        if name in parts or not _fits(name, value):
            raise BadRule(f"{name:.20} can't be {value:.40}.")
        parts[name] = value
    return parts


def _fits(name: str, value: str) -> bool:
    if name in LISTS:
        return PARTS[name](value)
    if name in TIMES:
        words = value.split(",")
        return all(word.isdecimal() and int(word[:3]) < TIMES[name] for word in words)
    if name == "INTERVAL":
        return STEP.fullmatch(value) is not None
    if name == "COUNT":
        return NUMBER.fullmatch(value) is not None
    return name in ("FREQ", "UNTIL", "RSCALE", "SKIP") and value not in ("BACKWARD", "FORWARD")


def _read_until(text: str) -> tuple[datetime | None, bool]:
    """One beyond the years that the service knows is none: many write 9999 for "for ever"."""
    if not text:
        return None, False
    match = UNTIL.fullmatch(text)
    if match is None:
        raise BadRule(f"UNTIL can't be {text:.40}.")
    day, clock, zulu = match.groups()
    try:
        until = datetime.strptime(f"{day}{clock or '235959'}", "%Y%m%d%H%M%S")
    except ValueError:
        raise BadRule(f"UNTIL can't be {text:.40}.") from None
    return (None, False) if until.year > LAST_YEAR else (until, bool(zulu))


def starts(
    rule: Rule, first: datetime, *, since: datetime, before: datetime, until: datetime | None
) -> Iterator[datetime]:
    """Readings of one wall clock (naive) at which the rule says that something starts, in order.

    Of those from `first` on, the ones in `since` to `before`, half-open, not after `until`. Whether
    `first` itself fits the rule is not asked. Raises BadRule.
    """
    if rule.count is not None and first.year < EARLIEST_COUNTED:
        raise BadRule("It counts from too long ago.")
    since = max(since, first)
    found = _readings(rule, first, first if rule.count is not None else since, before)
    found = (reading for reading in found if reading >= first)
    for reading in islice(found, rule.count):
        if reading >= before or (until is not None and reading > until):
            return
        if reading >= since:
            yield reading


def _readings(rule: Rule, first: datetime, since: datetime, before: datetime) -> Iterator[datetime]:
    if rule.frequency == "HOURLY":
        yield from _hourly(rule, first, since, before)
        return
    positions = rule.numbers("BYSETPOS")
    times = _times_of_day(rule, first.time())
    for days in fitting_days(rule, first.date(), before.date(), since=since.date()):
        found = [datetime.combine(*pair) for pair in product(days, times)]
        yield from at_positions(found, positions) if positions else found


def _times_of_day(rule: Rule, own: time) -> list[time]:
    hours = rule.numbers("BYHOUR") or {own.hour}
    minutes = rule.numbers("BYMINUTE") or {own.minute}
    seconds = {min(second, 59) for second in rule.numbers("BYSECOND")} or {own.second}
    return [time(*one) for one in product(sorted(hours), sorted(minutes), sorted(seconds))]


def _hourly(rule: Rule, first: datetime, since: datetime, before: datetime) -> Iterator[datetime]:
    """Every so many hours on the wall clock; its days and hours are filters here."""
    if "BYSETPOS" in rule.parts:
        raise BadRule("BYSETPOS has no place in an HOURLY rule.")
    for minute in rule.numbers("BYMINUTE"):
        first = first.replace(minute=minute)
    for second in rule.numbers("BYSECOND"):
        first = first.replace(second=min(second, 59))
    hours = rule.numbers("BYHOUR")
    fits = DayFilter(rule, first.date())
    step = timedelta(hours=rule.interval)
    reading = first + max(since - first, timedelta()) // step * step
    while reading < before:
        if (not hours or reading.hour in hours) and fits(reading.date()):
            yield reading
        reading += step
