"""What a page offers: the next free times by the rules of a project, and their days in a zone."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from availability.core.slots import Slot
from availability.reading import to_datetime
from availability.search import Query, search_first_slots
from bookings.wording import clock_words, is_ambiguous
from scheduling.api.instants import format_instant, wall_to_utc_or_gap_end, zone

DAYS_AT_ONCE = 28
SLOTS_AT_ONCE = 1000


class Offer(NamedTuple):
    """Free times (start, end in epoch seconds), all that begin before `until`; from there to
    `horizon` there may be more."""

    slots: Sequence[tuple[int, int]]
    until: int
    horizon: int

    @property
    def has_more(self) -> bool:
        return self.until < self.horizon


def find_offer(rules: Query, *, zone_name: str, since: datetime) -> Offer:
    """The free times of the four weeks that begin with the first free day after `since`.

    `rules`: all that a booking has to keep. Less than four weeks where they would be very many.
    """
    horizon = max((rules.own_span(one.zone).end for one in rules.resources), default=0)
    if horizon <= since.timestamp():
        return Offer([], horizon, horizon)
    slots = search_first_slots(
        _window(rules, since, to_datetime(horizon)), mode=_mode(rules), count=SLOTS_AT_ONCE
    )
    if not slots:
        return Offer([], horizon, horizon)
    until = min(_end_of_window(slots, zone_name), horizon)
    if len(slots) == SLOTS_AT_ONCE:
        until = min(until, slots[-1][0])
    return Offer([(start, end) for start, end, _ in slots if start < until], until, horizon)


def _window(rules: Query, start: datetime, end: datetime) -> Query:
    """The same rules for a part of their range."""
    texts = {"earliest": format_instant(start), "latest": format_instant(end)}
    return replace(rules, terms=replace(rules.terms, **texts), bounds=rules.own)


def _mode(rules: Query) -> str:
    """Who is free does not matter here, only whether enough are."""
    return "mutual" if rules.terms.mode == "mutual" else "exclusive"


def _end_of_window(slots: Sequence[Slot], zone_name: str) -> int:
    first = day_of(slots[0][0], zone_name)
    return int(midnight(first + timedelta(days=DAYS_AT_ONCE), zone_name).timestamp())


def midnight(day: date, zone_name: str) -> datetime:
    return wall_to_utc_or_gap_end(datetime(day.year, day.month, day.day), zone_name)


def local(instant: int, zone_name: str) -> datetime:
    return datetime.fromtimestamp(instant, UTC).astimezone(zone(zone_name))


def day_of(instant: int, zone_name: str) -> date:
    return local(instant, zone_name).date()


def by_day(slots: Sequence[tuple[int, int]], zone_name: str) -> dict[date, list[tuple[int, int]]]:
    """The slots by the local date of their start, in order."""
    days: dict[date, list[tuple[int, int]]] = {}
    for slot in slots:
        days.setdefault(day_of(slot[0], zone_name), []).append(slot)
    return days


def slot_words(slot: tuple[int, int], zone_name: str, *, with_end: bool) -> str:
    """`09:00`, or `09:00 – 12:00`; `02:30 UTC+02:00` where the clock shows that twice."""
    instants = slot if with_end else slot[:1]
    readings = [local(one, zone_name) for one in instants]
    return " – ".join(clock_words(one, exact=is_ambiguous(one)) for one in readings)
