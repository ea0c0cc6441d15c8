"""Instants (aware UTC, whole seconds), converted from and to text, epoch seconds and wall clocks.

Pure: no Django, no clock. Wall time becomes an instant only here (api.md section 1).
"""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

FIRST_YEAR, LAST_YEAR = 1970, 2199

ZONE_NAME = re.compile(r"[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*){0,2}")
# "Factory" is the tz database's placeholder for a machine whose zone was never set.
ZONES = frozenset(name for name in available_timezones() if ZONE_NAME.fullmatch(name)) - {"Factory"}

INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?"
    r"(?:([Zz])|([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class InstantError(ValueError):
    """A text that is no instant, or one out of bounds; the message is for the client."""


@cache
def find_zone(name: str) -> ZoneInfo:
    """Return the IANA zone with this exact name. Raises InstantError for unknown names."""
    if name not in ZONES:
        raise InstantError(f"{name!r:.80} is not a known time zone.")
    return ZoneInfo(name)


def parse_instant(text: str, zone_name: str) -> datetime:
    """Parse an ISO 8601 / RFC 3339 text into an instant (aware UTC, whole seconds).

    Without an offset it is wall time in `zone_name`; the first of two for a repeated time.
    Fractions are dropped. Raises InstantError for an invalid text, a time that does not exist, or a
    year outside 1970 to 2199.

    >>> parse_instant("2026-11-20 10:30:00", "Europe/Berlin").isoformat()
    '2026-11-20T09:30:00+00:00'
    """
    match = INSTANT.fullmatch(text)
    if match is None:
        raise InstantError("Must be a date and time such as 2026-11-20T10:30:00+01:00.")
    *parts, z, sign, hours, minutes = match.groups()
    wall = make_wall_time(*(int(part or 0) for part in parts))
    if z:
        return check_year(wall.replace(tzinfo=UTC))
    if sign:
        return check_year(wall.replace(tzinfo=parse_offset(sign, int(hours), int(minutes))))
    return check_year(wall_to_utc(wall, zone_name))


def make_wall_time(
    year: int, month: int, day: int, hour: int, minute: int, second: int
) -> datetime:
    # The year in UTC is checked later; this check only prevents overflows.
    check_bounds(year, FIRST_YEAR - 1, LAST_YEAR + 1)
    try:
        return datetime(year, month, day, hour, minute, second)
    except ValueError:
        raise InstantError("There is no such date or time.") from None


def parse_offset(sign: str, hours: int, minutes: int) -> timezone:
    if hours > 23 or minutes > 59:
        raise InstantError("There is no such offset from UTC.")
    span = timedelta(hours=hours, minutes=minutes)
    return timezone(span if sign == "+" else -span)


def check_bounds(year: int, first: int = FIRST_YEAR, last: int = LAST_YEAR) -> None:
    if not first <= year <= last:
        raise InstantError(f"The year must be from {FIRST_YEAR} to {LAST_YEAR}.")


def check_year(instant: datetime) -> datetime:
    """Return the instant in UTC. Raises InstantError outside 1970 to 2199 (UTC)."""
    instant = instant.astimezone(UTC)
    check_bounds(instant.year)
    return instant


def wall_to_utc(naive: datetime, zone_name: str) -> datetime:
    """Return a wall-clock reading's instant; of two, the first. Raises InstantError in a gap."""
    place = find_zone(zone_name)
    instant = naive.replace(tzinfo=place, fold=0).astimezone(UTC)
    if instant.astimezone(place).replace(tzinfo=None, fold=0) != naive:
        raise InstantError(f"{naive} does not exist in {zone_name}.")
    return instant


def wall_time(instant: datetime, zone_name: str) -> datetime:
    """Return the zone's wall-clock reading at the instant, naive. Raises InstantError."""
    return instant.astimezone(find_zone(zone_name)).replace(tzinfo=None, fold=0)


def local_date(instant: datetime, zone_name: str) -> date:
    """Return the zone's local date at the instant. Raises InstantError."""
    return instant.astimezone(find_zone(zone_name)).date()


def local_midnight(day: date, zone_name: str) -> datetime:
    """Return the first instant of a local day, or of the next day if the zone skips it."""
    return wall_to_utc_or_gap_end(datetime(day.year, day.month, day.day), zone_name)


def to_datetime(epoch: int) -> datetime:
    return datetime.fromtimestamp(epoch, UTC)


def to_aware(instant: datetime) -> datetime:
    """Add UTC to a datetime from a handwritten statement: SQLite returns it naive."""
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def utc_offset(instant: datetime) -> timedelta:
    return instant.utcoffset() or timedelta()


def wall_to_utc_or_gap_end(naive: datetime, zone_name: str) -> datetime:
    """Return the instant of a wall-clock reading (the first of two); in a gap, the gap's end."""
    place = find_zone(zone_name)
    instant = naive.replace(tzinfo=place, fold=0).astimezone(UTC)
    if instant.astimezone(place).replace(tzinfo=None, fold=0) == naive:
        return instant
    after = utc_offset(naive.replace(tzinfo=place, fold=1))
    before_change, behind_change = naive.replace(tzinfo=UTC) - after, instant
    # Bisect for the change; a gap of a whole day takes 17 steps.
    while behind_change - before_change > timedelta(seconds=1):
        middle = before_change + (behind_change - before_change) // 2
        middle = middle.replace(microsecond=0)
        if utc_offset(middle.astimezone(place)) == after:
            behind_change = middle
        else:
            before_change = middle
    return behind_change


def parse_date(text: str) -> date:
    """Parse a date `YYYY-MM-DD`. Raises InstantError."""
    if not DATE.fullmatch(text):
        raise InstantError("Must be a date such as 2026-11-20.")
    year, month, day = (int(part) for part in text.split("-"))
    check_bounds(year)
    return make_wall_time(year, month, day, 0, 0, 0).date()


def format_instant(instant: datetime, zone_name: str = "UTC") -> str:
    """Format an aware datetime as RFC 3339 in the zone: `2026-11-20T10:30:00+01:00`.

    RFC 3339 has no seconds in an offset (Africa/Monrovia had them until 1972): such an offset is
    cut to the minute and the reading adjusted, so that the instant stays.
    """
    local = instant.astimezone(UTC if zone_name == "UTC" else find_zone(zone_name))
    text = local.isoformat(timespec="seconds")
    if len(text) == 25:
        return text
    whole_minutes = timedelta(minutes=utc_offset(local) // timedelta(minutes=1))
    return local.astimezone(timezone(whole_minutes)).isoformat(timespec="seconds")


def format_stamp(instant: datetime) -> str:
    """Format an aware datetime like the API's created_at: `2026-11-20T09:30:00+0000` (UTC)."""
    text = instant.astimezone(UTC).isoformat(timespec="seconds")
    return text[:22] + text[23:]
