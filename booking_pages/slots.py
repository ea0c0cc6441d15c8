"""The free slots that a booking page shows, and their local days."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from availability.core.slots import Slot
from availability.search import AvailabilityQuery, search_first_slots
from bookings.formatting import clock_words, is_ambiguous
from common.instants import (
    InstantError,
    find_zone,
    format_instant,
    local_date,
    local_midnight,
    parse_date,
    to_datetime,
)

MAX_DAYS = 28
MAX_SLOTS = 3500  # a month of quarters of an hour


class OfferedSlots(NamedTuple):
    """Free slots (start, end in epoch seconds): all that begin from `since` to before `until`.
    There may be more from `earliest` to `since`, and from `until` to `horizon`.
    """

    slots: Sequence[Any]  # (start, end, ...)
    until: int
    horizon: int
    since: int = 0
    earliest: int = 0

    @property
    def has_more(self) -> bool:
        return self.until < self.horizon


def find_slots_to_offer(
    rules: AvailabilityQuery, *, zone_name: str, since: datetime
) -> OfferedSlots:
    """Return the free slots of the MAX_DAYS days from the first free day after `since`, and of the
    rest of its month.

    `rules`: all rules for a booking. Fewer days if there are more than MAX_SLOTS slots.
    """
    horizon = max((span.end for span in rules.bookable_spans.values()), default=0)
    earliest = min((span.start for span in rules.bookable_spans.values()), default=0)
    earliest = max(earliest, int(rules.now.timestamp()))
    began = int(since.timestamp())
    nothing = OfferedSlots([], horizon, horizon, began, earliest)
    if horizon <= began:
        return nothing
    slots = search_first_slots(
        _window(rules, since, to_datetime(horizon)), mode=_mode(rules), count=MAX_SLOTS
    )
    if not slots:
        return nothing
    until = min(_end_of_window(slots, zone_name), horizon)
    if len(slots) == MAX_SLOTS:
        until = min(until, slots[-1][0])
    return nothing._replace(
        slots=[(start, end) for start, end, _ in slots if start < until], until=until
    )


def _window(rules: AvailabilityQuery, start: datetime, end: datetime) -> AvailabilityQuery:
    """Return the same rules for a part of their range."""
    terms = replace(rules.terms, earliest=format_instant(start), latest=format_instant(end))
    return replace(rules, terms=terms, bounds=rules.own)


def _mode(rules: AvailabilityQuery) -> str:
    """Return the search mode: which resource is free does not matter here."""
    return "mutual" if rules.terms.mode == "mutual" else "roundrobin_prioritized"


def _end_of_window(slots: Sequence[Slot], zone_name: str) -> int:
    first = local_date(to_datetime(slots[0][0]), zone_name)
    # In the visitor's zone the first slot may be a day later, and the month may end a day later.
    after_month = month_after(first + timedelta(days=1)) + timedelta(days=2)
    end = max(first + timedelta(days=MAX_DAYS), after_month)
    return int(local_midnight(end, zone_name).timestamp())


def month_after(day: date) -> date:
    """Return the first day of the month after that of `day`."""
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


def parse_day_parameter(text: str) -> date | None:
    try:
        return parse_date(text)
    except InstantError:
        return None


def slots_by_day(slots: Sequence[Any], zone_name: str) -> dict[date, list[Any]]:
    """Return local date -> slots that start on it, in order."""
    days: dict[date, list[Any]] = {}
    for slot in slots:
        days.setdefault(local_date(to_datetime(slot[0]), zone_name), []).append(slot)
    return days


def slot_words(slot: Sequence[int], zone_name: str, *, with_end: bool) -> str:
    """Return `09:00`, or `09:00 – 12:00`; `02:30 UTC+02:00` if the local time is ambiguous."""
    instants = slot[: 2 if with_end else 1]
    zone = find_zone(zone_name)
    readings = [to_datetime(instant).astimezone(zone) for instant in instants]
    return " – ".join(
        clock_words(reading, with_offset=is_ambiguous(reading)) for reading in readings
    )
