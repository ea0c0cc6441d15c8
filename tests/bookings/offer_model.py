"""The slow, obvious model of what can be booked through a project: one minute after the other.

Written from the sentences of sections 1, 5, 6 and 7 of the contract. Minutes and seconds are
counted from the epoch; rules, `from` and `to` are the JSON that was sent.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.availability.core_model import MINUTE, is_open, read_wall

ZONE_SPAN = 15 * 60  # no zone is further from UTC
UNITS = {"minute": 60, "hour": 3600}


@dataclass
class Diary:
    """A resource: its zone, its rules, what takes its time.

    busy: whatever blocks it, but events of whole days, which stand in `days`. booked: what counts
    for the limit of a day.
    """

    zone: str
    rules: list[Mapping[str, Any]]
    busy: list[tuple[int, int]] = field(default_factory=list)
    days: list[tuple[int, int]] = field(default_factory=list)
    booked: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Offer:
    """A project's own values and the moment of asking (epoch seconds). `length` and `buffer` are
    minutes."""

    now: int
    rules: list[Mapping[str, Any]]
    earliest: str
    latest: str
    length: int | None
    buffer: int
    ignores_days: bool
    max_per_day: int | None
    increment: int | None = None

    def takes(self, diary: Diary, start: int, end: int) -> bool:
        """Whether a booking from minute `start` to minute `end` is to be accepted."""
        return self.length in (None, end - start) and self.is_free(diary, start, end)

    def starts_on_grid(self, diaries: Sequence[Diary], start: int) -> bool:
        """Whether slots of these resources together start at that minute of open time: counted on
        the first one's clock, from the opening of the stretch or the local midnight in it.
        """
        if self.increment is None or self.length is None:
            return True
        zone = diaries[0].zone
        reading, first = read_wall(start, zone), start
        while read_wall(first - 1, zone).date() == reading.date() and all(
            is_open((diary.rules, self.rules), first - 1, diary.zone) for diary in diaries
        ):
            first -= 1
        passed = (reading - read_wall(first, zone)) // timedelta(minutes=1)
        return passed % self.increment == 0

    def is_free(self, diary: Diary, start: int, end: int) -> bool:
        """Whether the time is wholly free; how long it is does not matter."""
        return self.is_allowed(diary, start, end) and not any(
            first - self.buffer < end and start < last + self.buffer
            for first, last in self.blocking(diary)
        )

    def blocking(self, diary: Diary) -> list[tuple[int, int]]:
        return diary.busy if self.ignores_days else diary.busy + diary.days

    def overlaps(self, diary: Diary, start: int, end: int) -> bool:
        return any(first < end and start < last for first, last in self.blocking(diary))

    def is_allowed(self, diary: Diary, start: int, end: int) -> bool:
        """Whether nothing but events stands in the way."""
        notice = read_moment(self.earliest, self.now, diary.zone)
        horizon = read_moment(self.latest, self.now, diary.zone)
        full = self.full_days(diary)
        return (
            start * 60 >= max(self.now, notice)
            and end * 60 <= horizon
            and all(
                is_open((diary.rules, self.rules), minute, diary.zone)
                and read_wall(minute, diary.zone).date() not in full
                for minute in range(start, end)
            )
        )

    def full_days(self, diary: Diary) -> set[date]:
        """The local days on which there are as many bookings as there may be."""
        if self.max_per_day is None:
            return set()
        touched = [local_days(start, end, diary.zone) for start, end in diary.booked]
        days = set().union(*touched)
        return {day for day in days if sum(day in each for each in touched) >= self.max_per_day}


def local_days(start: int, end: int, zone: str) -> set[date]:
    return {read_wall(minute, zone).date() for minute in range(start, end)}


def midnight(day: date, zone: str) -> int:
    """The first minute of a local day; of a day that was skipped, the first after it."""
    return find_reading(datetime(day.year, day.month, day.day), zone)


def find_reading(wall: datetime, zone: str) -> int:
    """The first minute at which the clock shows `wall`, else the first at which it shows more."""
    guess = int(wall.replace(tzinfo=UTC).timestamp()) // 60
    around = range(guess - ZONE_SPAN, guess + ZONE_SPAN + 1)
    showing = (minute for minute in around if read_wall(minute, zone) == wall)
    past = (minute for minute in around if read_wall(minute, zone) > wall)
    return next(showing, None) or next(past)


def read_moment(text: str, now: int, zone: str) -> int:
    """`from` or `to` in epoch seconds, unrounded: "now", "tomorrow", "1 day 90 minutes", an
    instant, or wall time."""
    today = read_wall(now // 60, zone)
    if text == "now":
        return now
    if text == "tomorrow":
        return midnight(today.date() + timedelta(days=1), zone) * 60
    if text.endswith("Z"):
        return int(datetime.fromisoformat(text).timestamp())
    if text.startswith(("19", "20")):
        return find_reading(datetime.fromisoformat(text), zone) * 60
    terms = [(int(count), unit) for count, unit in re.findall(r"(-?\d+) (\w+?)s?\b", text)]
    days = sum(count for count, unit in terms if unit == "day")
    elapsed = sum(count * UNITS[unit] for count, unit in terms if unit != "day")
    return _days_later(now, days, zone) + elapsed if days else now + elapsed


def _days_later(now: int, days: int, zone: str) -> int:
    """The same wall clock time so many days on; in a gap, its end."""
    wall = read_wall(now // 60, zone) + timedelta(days=days)
    minute = find_reading(wall, zone)
    is_there = read_wall(minute, zone) == wall
    return minute * 60 + (now % 60 if is_there else 0)


def minute_of(text: str) -> int:
    """The minute in which an instant lies."""
    return int(datetime.fromisoformat(text).timestamp()) // 60


def minute_after(text: str) -> int:
    """The first minute that does not begin before the instant."""
    return -(-int(datetime.fromisoformat(text).timestamp()) // 60)


def to_text(minute: int) -> str:
    return (datetime(1970, 1, 1) + minute * MINUTE).strftime("%Y-%m-%dT%H:%M:%SZ")
