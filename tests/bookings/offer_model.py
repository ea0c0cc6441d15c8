"""The slow, obvious model of what can be booked through a project: one minute after the other.

Written from the sentences of sections 1, 5, 6 and 7 of the contract. Minutes and seconds are
counted from the epoch; rules, `from` and `to` are the JSON that was sent.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from tests.availability.core_model import MINUTE, fits, is_open_in, read_wall

ZONE_SPAN = 15 * 60  # no zone is further from UTC
UNITS = {"minute": 60, "hour": 3600}


@dataclass
class Diary:
    """A resource: its zone, its rules and those of its schedule, its tags, what takes its time.

    busy: events without a booking, but those of whole days, which stand in `days`. taken: bookings
    and holds, of which as many as `capacity` may overlap; each with the buffers that it was made
    with, before and after: none without a project. booked: what counts for the limit of a day.
    """

    zone: str
    rules: list[Mapping[str, Any]]
    capacity: int = 1
    busy: list[tuple[int, int]] = field(default_factory=list)
    taken: list[tuple[int, int, int | None, int | None]] = field(default_factory=list)
    days: list[tuple[int, int]] = field(default_factory=list)
    booked: list[tuple[int, int]] = field(default_factory=list)
    schedule: list[Mapping[str, Any]] | None = None
    tags: Collection[str] = ()
    party: tuple[int, int] | None = None  # how many people it suits

    def is_open(self, minute: int, project_rules: Sequence[Mapping[str, Any]]) -> bool:
        wall = read_wall(minute, self.zone)
        return is_open_in(self.rules, minute, wall, self.zone, self.schedule) and is_open_in(
            project_rules, minute, wall, self.zone
        )


@dataclass
class Offer:
    """A project's own values and the moment of asking (epoch seconds). `length`, the `lengths` to
    choose from and the `buffers`, before and after, are minutes."""

    now: int
    rules: list[Mapping[str, Any]]
    earliest: str
    latest: str
    length: int | None
    buffers: tuple[int, int]
    ignores_days: bool
    limits: Mapping[str, int]  # bookings per "day", "week" and "month"
    increment: int | None = None
    lengths: Sequence[int] = ()

    def takes(self, diary: Diary, start: int, end: int) -> bool:
        """Whether a booking from minute `start` to minute `end` is to be accepted."""
        return self.permits_length(end - start) and self.is_free(diary, start, end)

    def permits_length(self, minutes: int) -> bool:
        return self.length in (None, minutes) or minutes in self.lengths

    def starts_on_grid(self, diaries: Sequence[Diary], start: int) -> bool:
        """Whether slots of these resources together start at that minute of open time: counted on
        the first one's clock, from the opening of the stretch, or from midnight where the stretch
        is open before the day. A clock may skip midnight: the count begins there all the same.
        """
        if self.increment is None or self.length is None:
            return True
        zone = diaries[0].zone
        reading, first = read_wall(start, zone), start
        while was_open := all(diary.is_open(first - 1, self.rules) for diary in diaries):
            if read_wall(first - 1, zone).date() != reading.date():
                break
            first -= 1
        midnight_reading = datetime.combine(reading.date(), time())
        opening = midnight_reading if was_open else read_wall(first, zone)
        return (reading - opening) // timedelta(minutes=1) % self.increment == 0

    def is_free(self, diary: Diary, start: int, end: int) -> bool:
        """Whether the time is wholly free; how long it is does not matter."""
        return self.has_room(diary, start, end) and self.is_allowed(diary, start, end)

    def has_room(self, diary: Diary, start: int, end: int) -> bool:
        """Whether nothing that is in the calendar stands in the way."""
        return fits(
            (start, end, *self.buffers),
            [(*span, *self.buffers) for span in self.closing(diary)],
            [(*each[:2], *(self.buffers if None in each else each[2:])) for each in diary.taken],
            diary.capacity,
        )

    def is_full(self, diary: Diary, start: int, end: int) -> bool:
        """Whether at some minute every place is taken."""
        return any(
            sum(first <= minute < last for first, last, *_ in diary.taken) >= diary.capacity
            for minute in range(start, end)
        )

    def closing(self, diary: Diary) -> list[tuple[int, int]]:
        return diary.busy if self.ignores_days else diary.busy + diary.days

    def overlaps(self, diary: Diary, start: int, end: int) -> bool:
        is_closed = any(first < end and start < last for first, last in self.closing(diary))
        return is_closed or self.is_full(diary, start, end)

    def is_allowed(self, diary: Diary, start: int, end: int) -> bool:
        """Whether nothing but events stands in the way."""
        notice = read_moment(self.earliest, self.now, diary.zone)
        horizon = read_moment(self.latest, self.now, diary.zone)
        full = self.full_periods(diary)
        return (
            start * 60 >= max(self.now, notice)
            and end * 60 <= horizon
            and all(
                diary.is_open(minute, self.rules)
                and not (full and full & local_periods(minute, minute + 1, diary.zone))
                for minute in range(start, end)
            )
        )

    def full_periods(self, diary: Diary) -> set[tuple[str, date]]:
        """The local days, weeks and months with as many bookings as there may be."""
        touched = [local_periods(start, end, diary.zone) for start, end in diary.booked]
        return {
            period
            for period in set().union(*touched)
            if period[0] in self.limits
            and sum(period in each for each in touched) >= self.limits[period[0]]
        }


def find_choices(requirements: Sequence[Collection[str]], free: Collection[str]) -> list[Any]:
    """All choices of a different free resource for each requirement."""
    choices = product(*([each for each in ids if each in free] for ids in requirements))
    return [choice for choice in choices if len(set(choice)) == len(choice)]


@dataclass
class Need:
    """A requirement: so many of the resources `ids`, best first, from `offset` minutes after the
    start on, for `length` minutes; None: the rest of the booking."""

    name: str
    ids: Sequence[str]
    count: int = 1
    offset: int = 0
    length: int | None = None
    optional: bool = False
    mode: str = "prioritized"

    def within(self, start: int, end: int) -> tuple[int, int]:
        first = start + self.offset
        return first, end if self.length is None else first + self.length

    @property
    def is_whole(self) -> bool:
        return not self.offset and self.length is None


# Who is chosen, by the name of the requirement.
Assignment = dict[str, tuple[str, ...]]


def find_assignments(
    offer: Offer,
    diaries: Mapping[str, Diary],
    alternatives: Sequence[Sequence[Need]],
    named: Mapping[str, Sequence[str]],
    start: int,
    end: int,
    *,
    party_size: int | None = None,
    on_grid: bool = False,
) -> tuple[Sequence[Need], list[Assignment]]:
    """The first alternative that can be met, and all its choices for a booking with those named
    resources; without optional requirements that no choice meets.

    on_grid: whether the resources of the first requirement have to start on their grid.
    """
    for needs in alternatives:
        if not named.keys() <= {need.name for need in needs}:
            continue
        free = {
            need.name: [
                each
                for each in need.ids
                if is_free_for(offer, diaries[each], need, start, end)
                and not (
                    on_grid
                    and need.is_whole
                    and each in needs[0].ids
                    and not offer.starts_on_grid([diaries[each]], start)
                )
            ]
            for need in needs
        }
        kept = [need for need in needs if not need.optional or need.name in named]
        found = _for_party(assign(kept, free, named), diaries, party_size)
        for need in needs if found else ():
            more = [each for each in needs if each in kept or each is need]
            with_optional = _for_party(assign(more, free, named), diaries, party_size)
            if need not in kept and with_optional:
                kept, found = more, with_optional
        if found:
            return kept, found
    return (), []


def _for_party(
    choices: list[Assignment], diaries: Mapping[str, Diary], size: int | None
) -> list[Assignment]:
    """The choices whose resources suit a party together: those for any number do not count."""
    return [choice for choice in choices if size is None or _suits(choice, diaries, size)]


def _suits(choice: Assignment, diaries: Mapping[str, Diary], size: int) -> bool:
    parties = [diaries[each].party for ids in choice.values() for each in ids]
    counted = [party for party in parties if party]
    return not counted or sum(p[0] for p in counted) <= size <= sum(p[1] for p in counted)


def is_free_for(offer: Offer, diary: Diary, need: Need, start: int, end: int) -> bool:
    """Whether the resource is free for its part of the booking. A part of the time follows the
    rules of its resource alone."""
    if need.is_whole:
        return offer.takes(diary, start, end)
    part = need.within(start, end)
    return offer.has_room(diary, *part) and all(diary.is_open(each, []) for each in range(*part))


def assign(
    needs: Sequence[Need],
    free: Mapping[str, Sequence[str]],
    named: Mapping[str, Sequence[str]],
) -> list[Assignment]:
    """All choices of different resources; of named ones as many as are needed, all if fewer."""
    chosen: list[Assignment] = [{}]
    for need in needs:
        own = set(named.get(need.name, ()))
        groups = [
            group
            for group in combinations(free[need.name], need.count)
            if len(own & set(group)) == min(len(own), need.count)
        ]
        chosen = [
            {**before, need.name: group}
            for before in chosen
            for group in groups
            if not set(group) & {each for taken in before.values() for each in taken}
        ]
    return chosen


def order_by_turn(diaries: Mapping[str, Diary], weights: Mapping[str, int]) -> list[str]:
    """The ids by how far each is behind its share of the bookings, without those of weight 0."""
    shared = {each: weights.get(each, 1) for each in diaries if weights.get(each, 1)}
    number = sum(len(diaries[each].booked) for each in shared)
    lead = {
        each: len(diaries[each].booked) - Fraction(weight * number, sum(shared.values()))
        for each, weight in shared.items()
    }
    return sorted(shared, key=lambda each: lead[each])


def local_periods(start: int, end: int, zone: str) -> set[tuple[str, date]]:
    """What the minutes touch: days, and weeks and months by their first day."""
    days = {read_wall(minute, zone).date() for minute in range(start, end)}
    mondays = {day - timedelta(days=day.isoweekday() - 1) for day in days}
    firsts = {date(day.year, day.month, 1) for day in days}
    kinds = {"day": days, "week": mondays, "month": firsts}
    return {(unit, day) for unit, found in kinds.items() for day in found}


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
