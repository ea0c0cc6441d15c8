"""Times of a source as instants. What a clock shows twice, or never, is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

from scheduling_client.importing.records import Unusable


def zone_name(name: str) -> str:
    """Return an IANA name. Raises Unusable."""
    if name not in available_timezones():
        raise Unusable(f"{name!r} is no time zone of the IANA database.")
    return name


def instant(text: str, zone: str | None = None) -> datetime:
    """Return an ISO 8601 time in UTC; without an offset it is a wall time in `zone`.

    Raises Unusable, also for a wall time that occurs twice or never.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Unusable(f"{text!r} is no time such as 2026-11-23T09:00:00+01:00.") from None
    if at.tzinfo is None:
        if zone is None:
            raise Unusable(f"{text!r} has no offset, and its time zone is unknown.")
        return instant_of(at, zone)
    return at.astimezone(UTC).replace(microsecond=0)


def instant_of(wall_time: datetime, zone: str) -> datetime:
    """Return the only instant at which clocks in `zone` show `wall_time`. Raises Unusable."""
    place = ZoneInfo(zone_name(zone))
    first, second = (wall_time.replace(tzinfo=place, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        exists = first.astimezone(UTC).astimezone(place).replace(tzinfo=None) == wall_time
        count = "twice" if exists else "never"
        raise Unusable(f"{wall_time:%Y-%m-%d %H:%M} occurs {count} in {zone}: the clocks change.")
    return first.astimezone(UTC).replace(microsecond=0)


def check_order(start: datetime, end: datetime) -> None:
    if end <= start:
        raise Unusable("The end is not after the start.")
