"""Times of events and the occurrences of series, by dateutil: apart from the service's own code."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.rrule import rrulestr

from tests.external_calendars.fakes.google.errors import ApiError

LINE = re.compile(r"(RRULE|EXRULE|RDATE|EXDATE)((?:;[^:]*)?):(.+)")


class Moment(NamedTuple):
    """The start or end of an event: a date, or an instant in UTC; with the event's own zone."""

    at: date | datetime
    zone: str

    @property
    def is_date(self) -> bool:
        return not isinstance(self.at, datetime)

    @property
    def wall(self) -> datetime:
        """On the clock of its zone, naive; a date at midnight."""
        if isinstance(self.at, datetime):
            return self.at.astimezone(ZoneInfo(self.zone)).replace(tzinfo=None)
        return datetime.combine(self.at, time())

    def instant(self, calendar_zone: str) -> datetime:
        """In UTC; a date begins at midnight in the calendar's zone."""
        if isinstance(self.at, datetime):
            return self.at
        return datetime.combine(self.at, time(), ZoneInfo(calendar_zone)).astimezone(UTC)

    @property
    def id(self) -> str:
        """As the end of an instance's id."""
        return f"{self.at:%Y%m%dT%H%M%SZ}" if not self.is_date else f"{self.at:%Y%m%d}"

    def with_wall(self, wall: datetime) -> "Moment":
        if self.is_date:
            return Moment(wall.date(), self.zone)
        return Moment(wall.replace(tzinfo=ZoneInfo(self.zone)).astimezone(UTC), self.zone)

    def plus(self, length: timedelta) -> "Moment":
        return Moment(self.at + length, self.zone)

    def as_json(self, shown_zone: str) -> dict[str, str]:
        """`shown_zone`: whose offset the time has; `timeZone` is the event's own."""
        if not isinstance(self.at, datetime):
            return {"date": self.at.isoformat()}
        shown = self.at.astimezone(ZoneInfo(shown_zone))
        text = shown.isoformat(timespec="seconds").replace("+00:00", "Z")
        return {"dateTime": text, "timeZone": self.zone}


def check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ApiError("invalid", f"Invalid time zone definition: {name}.") from error
    return name


def read_moment(value: Mapping[str, Any], calendar_zone: str, name: str) -> Moment:
    """Read an EventDateTime. Raises ApiError."""
    zone = check_zone(value.get("timeZone") or calendar_zone)
    is_date, is_time = value.get("date") is not None, value.get("dateTime") is not None
    if is_date == is_time:
        raise ApiError("invalid", f"Invalid {name} time.")
    if is_date:
        return Moment(date.fromisoformat(value["date"]), zone)
    at = datetime.fromisoformat(value["dateTime"])
    if at.tzinfo is None:
        if not value.get("timeZone"):
            raise ApiError("required", f"Missing time zone definition for {name} time.")
        at = at.replace(tzinfo=ZoneInfo(zone))
    return Moment(at.astimezone(UTC).replace(microsecond=0), zone)


def moment_of(at: date | datetime, zone: str) -> Moment:
    return Moment(at.astimezone(UTC) if isinstance(at, datetime) else at, zone)


def check_recurrence(lines: Sequence[str], start: Moment) -> None:
    """Raises ApiError for lines that are no recurrence."""
    if not any(line.startswith(("RRULE", "RDATE")) for line in lines):
        raise ApiError("invalid", "Invalid recurrence rule.")
    for line in lines:
        if not LINE.fullmatch(line):
            raise ApiError("invalid", "Invalid recurrence rule.")
    try:
        next(series_starts(lines, start), None)
    except ValueError as error:
        raise ApiError("invalid", "Invalid recurrence rule.") from error


def series_starts(lines: Sequence[str], start: Moment) -> Iterator[Moment]:
    """Yield the starts of a series in their order, without those of EXDATE; perhaps for ever."""
    rules: list[str] = []
    for line in lines:
        match = LINE.fullmatch(line)
        if match is None:
            raise ValueError(line)
        name, parameters, value = match.groups()
        if name in ("RRULE", "EXRULE"):
            rules.append(f"{name}:{_naive_until(value, start)}")
        else:
            walls = [_wall(text, parameters, start) for text in value.split(",")]
            texts = ",".join(f"{wall:%Y%m%dT%H%M%S}" for wall in walls)
            rules.append(f"{name}:{texts}")
    if not any(rule.startswith("RRULE") for rule in rules):
        rules.append(f"RDATE:{start.wall:%Y%m%dT%H%M%S}")  # which a rule generates
    series = rrulestr("\n".join(rules), dtstart=start.wall, forceset=True)
    last = None
    for wall in series:
        if wall != last:  # an RDATE may repeat an occurrence of the rule
            yield start.with_wall(wall)
        last = wall


def _naive_until(rule: str, start: Moment) -> str:
    """dateutil wants UNTIL on the same clock as the start."""

    def on_wall(match: re.Match[str]) -> str:
        return f"UNTIL={_wall(match[1], '', start):%Y%m%dT%H%M%S}"

    return re.sub(r"UNTIL=([0-9TZ]+)", on_wall, rule)


def _wall(text: str, parameters: str, start: Moment) -> datetime:
    """Return a value of UNTIL, RDATE or EXDATE on the clock of the start."""
    if re.fullmatch("[0-9]{8}", text):
        return datetime.strptime(text, "%Y%m%d")
    at = datetime.strptime(text.removesuffix("Z"), "%Y%m%dT%H%M%S")
    zone = re.search("TZID=([^;]+)", parameters)
    if not (text.endswith("Z") or zone) or start.is_date:
        return at
    source = ZoneInfo(zone[1]) if zone else UTC
    return at.replace(tzinfo=source).astimezone(ZoneInfo(start.zone)).replace(tzinfo=None)
