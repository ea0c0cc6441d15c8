"""On which clock the back office counts days."""

from datetime import date, datetime, time, timedelta

from django.http import HttpRequest

from apps_config.scope import scope_of
from scheduling.api.instants import FIRST_YEAR, LAST_YEAR, ZONES, wall_to_utc_or_gap_end

DAY = timedelta(days=1)


def zone_of(request: HttpRequest) -> str:
    """That of the app where the account sees one alone; else UTC."""
    apps = list(scope_of(request).apps()[:2])
    name = apps[0].default_timezone if len(apps) == 1 else "UTC"
    return name if name in ZONES else "UTC"


def span_of(first: date, last: date, zone_name: str) -> tuple[datetime, datetime]:
    """The instants at which the first day begins and the last one ends."""
    start, end = (datetime.combine(day, time()) for day in (first, last + DAY))
    return wall_to_utc_or_gap_end(start, zone_name), wall_to_utc_or_gap_end(end, zone_name)


def read_day(text: str | None) -> date | None:
    """A day written as 2026-11-23; None for anything else, and for years that no booking has."""
    try:
        day = date.fromisoformat(text or "")
    except ValueError:
        return None
    return day if FIRST_YEAR <= day.year <= LAST_YEAR else None
