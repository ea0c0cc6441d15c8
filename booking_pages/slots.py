"""The free slots that a booking page shows, and their local days."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from availability.core.slots import Slot
from availability.core.zones import DAY
from availability.search.availability_query import AvailabilityQuery
from availability.search.cost import public_days
from availability.search.engine import search_first_slots
from bookings.pages.formatting import clock_words, is_ambiguous
from common.time.instants import (
    InstantError,
    find_zone,
    format_instant,
    local_date,
    local_midnight,
    parse_date,
    to_datetime,
)

SHOWN_DAYS = 35  # five weeks
MAX_SLOTS = 3500  # five weeks of quarters of an hour
SOON = 7 * DAY  # of a first free slot: then one search finds the slots of all days


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
    """Return the free slots of the SHOWN_DAYS days from the first free day after `since`.

    `rules`: all rules for a booking. Fewer days if there are more than MAX_SLOTS slots. Looks as
    far ahead as a public caller may search at once.
    """
    horizon = max((span.end for span in rules.bookable_spans.values()), default=0)
    earliest = min((span.start for span in rules.bookable_spans.values()), default=0)
    earliest = max(earliest, int(rules.now.timestamp()))
    began = int(since.timestamp())
    start = max(began, earliest)
    last = min(horizon, start + public_days(len(rules.resources)) * DAY)
    no_slots = OfferedSlots([], max(began, last), horizon, began, earliest)
    if began >= last:
        return no_slots

    def end_of_slots(until: int) -> int:
        """A slot may end after the window; a free interval without a length anywhere."""
        return last if rules.terms.length is None else min(until + rules.terms.length, horizon)

    searched = min(last, end_of_slots(_end_of_window(start + SOON, zone_name)))
    slots = _find_first(rules, since, searched, count=MAX_SLOTS)
    if not slots and searched < last:
        slots = _find_first(rules, since, last, count=1)
    if not slots:
        return no_slots
    until = min(_end_of_window(slots[0][0], zone_name), horizon)
    end = end_of_slots(until)
    until = min(until, end)
    if end > searched:
        slots = _find_first(rules, since, end, count=MAX_SLOTS)
    if len(slots) == MAX_SLOTS:
        until = min(until, slots[-1][0])
    return no_slots._replace(
        slots=[(start, end) for start, end, _ in slots if start < until], until=until
    )


def _find_first(rules: AvailabilityQuery, since: datetime, end: int, *, count: int) -> list[Slot]:
    """Return the first `count` free slots from `since` to `end`."""
    earliest, latest = format_instant(since), format_instant(to_datetime(end))
    terms = replace(rules.terms, earliest=earliest, latest=latest)
    # Which resource is free does not matter here.
    mode = "mutual" if terms.mode == "mutual" else "roundrobin_prioritized"
    query = replace(rules, terms=terms, bounds=rules.own)
    return search_first_slots(query, mode=mode, count=count)


def _end_of_window(start: int, zone_name: str) -> int:
    first = local_date(to_datetime(start), zone_name)
    # In the visitor's zone the first slot may be a day later, and the last day may end a day later.
    end = first + timedelta(days=SHOWN_DAYS + 2)
    return int(local_midnight(end, zone_name).timestamp())


def week_of(day: date) -> date:
    """Return the Monday of the day's week."""
    return day - timedelta(days=day.weekday())


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
