"""Local times on pages: texts without an offset, for calendar grids and input fields.

Only this module writes and parses them, so that days of 23 or 25 hours are right: skipped times do
not exist, and ambiguous ones carry the offset.
"""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from django.utils.translation import gettext as _

from availability.core.zones import day_start, offset_segments
from availability.search.queries import TimeSpan
from bookings.pages.formatting import (
    date_words,
    first_known_zone,
    is_ambiguous,
    offset_words,
    short_date_words,
    time_words,
)
from common.errors import Invalid
from common.messages import find_message
from common.time.instants import (
    InstantError,
    find_zone,
    local_date,
    local_midnight,
    parse_date,
    parse_instant,
)
from office.base.labels import reading_words


class LocalSpan(NamedTuple):
    """A time span in local time, `2026-11-23T09:00:00`."""

    start: str
    end: str


def local_text(instant: datetime, zone_name: str) -> str:
    return instant.astimezone(find_zone(zone_name)).strftime("%Y-%m-%dT%H:%M:%S")


def local_span(start: datetime, end: datetime, zone_name: str) -> LocalSpan:
    """Return the local span for a grid.

    If the clock is set back within the span, its local end may not be after its start: then the
    span gets its true length.
    """
    first, last = local_text(start, zone_name), local_text(end, zone_name)
    if last <= first:
        last = (datetime.fromisoformat(first) + (end - start)).isoformat()
    return LocalSpan(first, last)


def local_pieces(start: int, end: int, zone_name: str) -> list[LocalSpan]:
    """Split a span (epoch seconds) at offset changes, so that each piece has its true length."""
    return [
        LocalSpan(local_seconds_text(since + offset), local_seconds_text(until + offset))
        for since, until, offset in offset_segments(zone_name, start, end)
    ]


def skipped_pieces(start: int, end: int, zone_name: str) -> list[LocalSpan]:
    """Return the local times in the range (epoch seconds) that the clock skips in spring."""
    segments = offset_segments(zone_name, start, end)
    return [
        LocalSpan(local_seconds_text(at + before), local_seconds_text(at + after))
        for (_, at, before), (_, _, after) in pairwise(segments)
        if after > before
    ]


def local_seconds_text(local_seconds: int) -> str:
    return datetime.fromtimestamp(local_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def time_text(instant: datetime, zone_name: str) -> str:
    """Return `09:30`; with the UTC offset if ambiguous."""
    local = instant.astimezone(find_zone(zone_name))
    tail = f" {offset_words(local)}" if is_ambiguous(local) else ""
    return f"{time_words(local)}{tail}"


def span_text(start: datetime, end: datetime, zone_name: str) -> str:
    """Return `Tue 24 Nov 2026, 10:00 to 10:30`; with the end's date if it differs."""
    same_day = local_date(start, zone_name) == local_date(end, zone_name)
    last = time_text(end, zone_name) if same_day else reading_words(end, zone_name)
    return _("%(start)s to %(end)s") % {"start": reading_words(start, zone_name), "end": last}


def days_or_span_text(start: datetime, end: datetime, zone_name: str) -> str:
    """Return `Tue 24 Nov 2026` or `Tue 24 Nov 2026 to Thu 26 Nov 2026` of whole local days, else
    as `span_text`.
    """
    first, after = local_date(start, zone_name), local_date(end, zone_name)
    if (start, end) != (local_midnight(first, zone_name), local_midnight(after, zone_name)):
        return span_text(start, end, zone_name)
    last = after - timedelta(days=1)
    if first == last:
        return short_date_words(first)
    words = {"start": short_date_words(first), "end": short_date_words(last)}
    return _("%(start)s to %(end)s") % words


def day_and_clock(instant: datetime, zone_name: str) -> dict[str, str]:
    """Return the `day` and the `clock` time of an offered time: its heading and its button."""
    local = instant.astimezone(find_zone(zone_name))
    return {"day": date_words(local), "clock": time_text(instant, zone_name)}


def parse_moment(
    path: str, text: object, zone_name: str, *, after: datetime | None = None
) -> datetime:
    """Parse a local time, or a text with an offset. Raises Invalid at `path`.

    An ambiguous time is the first one, unless only the second is after `after`.
    """
    try:
        instant = parse_instant(str(text or ""), zone_name)
    except InstantError as error:
        raise Invalid.at(path, find_message(error)) from error
    if (
        after is not None
        and instant <= after
        and is_ambiguous(instant.astimezone(find_zone(zone_name)))
    ):
        second = instant.astimezone(find_zone(zone_name)).replace(fold=1).astimezone(UTC)
        return second if second > after else instant
    return instant


def parse_day(path: str, text: str) -> date:
    """Parse a date. Raises Invalid at `path`."""
    try:
        return parse_date(text)
    except InstantError as error:
        raise Invalid.at(path, find_message(error)) from error


def validate_zone_name(path: str, name: str) -> str:
    """Return the zone name. Raises Invalid at `path` if it is unknown."""
    try:
        find_zone(name)
    except InstantError as error:
        raise Invalid.at(path, find_message(error)) from error
    return name


def days_span(first: date, until: date, zone_name: str) -> TimeSpan:
    """Return the span from the start of the local day `first` to the start of `until`."""
    return TimeSpan(day_start(first, zone_name), day_start(until, zone_name))


def monday_of(day: date) -> date:
    return day - timedelta(days=day.weekday())


def today_in(zone_name: str, now: datetime) -> date:
    """Return the local date; in UTC if the zone is unknown, which the page reports itself."""
    return local_date(now, first_known_zone(zone_name))
