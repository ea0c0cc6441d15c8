"""The free slots that a booking page shows, and their local days."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import NamedTuple

from availability.core.slots import Slot
from availability.search import AvailabilityQuery, search_first_slots
from bookings.formatting import clock_words, is_ambiguous
from common.instants import find_zone, format_instant, local_date, local_midnight, to_datetime

MAX_DAYS = 28
MAX_SLOTS = 1000


class OfferedSlots(NamedTuple):
    """Free slots (start, end in epoch seconds): all that begin before `until`. Between `until` and
    `horizon` there may be more.
    """

    slots: Sequence[tuple[int, int]]
    until: int
    horizon: int

    @property
    def has_more(self) -> bool:
        return self.until < self.horizon


def find_slots_to_offer(
    rules: AvailabilityQuery, *, zone_name: str, since: datetime
) -> OfferedSlots:
    """Return the free slots of the MAX_DAYS days from the first free day after `since`.

    `rules`: all rules for a booking. Fewer days if there are more than MAX_SLOTS slots.
    """
    horizon = max((span.end for span in rules.own_spans.values()), default=0)
    if horizon <= since.timestamp():
        return OfferedSlots([], horizon, horizon)
    slots = search_first_slots(
        _window(rules, since, to_datetime(horizon)), mode=_mode(rules), count=MAX_SLOTS
    )
    if not slots:
        return OfferedSlots([], horizon, horizon)
    until = min(_end_of_window(slots, zone_name), horizon)
    if len(slots) == MAX_SLOTS:
        until = min(until, slots[-1][0])
    return OfferedSlots([(start, end) for start, end, _ in slots if start < until], until, horizon)


def _window(rules: AvailabilityQuery, start: datetime, end: datetime) -> AvailabilityQuery:
    """Return the same rules for a part of their range."""
    terms = replace(rules.terms, earliest=format_instant(start), latest=format_instant(end))
    return replace(rules, terms=terms, bounds=rules.own)


def _mode(rules: AvailabilityQuery) -> str:
    """Return the search mode: which resource is free does not matter here."""
    return "mutual" if rules.terms.mode == "mutual" else "roundrobin_prioritized"


def _end_of_window(slots: Sequence[Slot], zone_name: str) -> int:
    first = local_date(to_datetime(slots[0][0]), zone_name)
    return int(local_midnight(first + timedelta(days=MAX_DAYS), zone_name).timestamp())


def slots_by_day(
    slots: Sequence[tuple[int, int]], zone_name: str
) -> dict[date, list[tuple[int, int]]]:
    """Return local date -> slots that start on it, in order."""
    days: dict[date, list[tuple[int, int]]] = {}
    for slot in slots:
        days.setdefault(local_date(to_datetime(slot[0]), zone_name), []).append(slot)
    return days


def slot_words(slot: tuple[int, int], zone_name: str, *, with_end: bool) -> str:
    """Return `09:00`, or `09:00 – 12:00`; `02:30 UTC+02:00` if the local time is ambiguous."""
    instants = slot if with_end else slot[:1]
    zone = find_zone(zone_name)
    readings = [to_datetime(instant).astimezone(zone) for instant in instants]
    return " – ".join(clock_words(reading, exact=is_ambiguous(reading)) for reading in readings)
