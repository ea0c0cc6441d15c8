"""On which clock the back office counts days."""

from datetime import date, datetime, timedelta

from django.http import HttpRequest

from apps_config.scope import scope_of
from availability.core.zones import day_start
from availability.reading import to_datetime
from bookings.wording import known_zone

DAY = timedelta(days=1)


def zone_of(request: HttpRequest) -> str:
    """That of the app where the account sees one alone; else UTC."""
    apps = list(scope_of(request).apps()[:2])
    return known_zone(apps[0].default_timezone) if len(apps) == 1 else "UTC"


def span_of(first: date, last: date, zone_name: str) -> tuple[datetime, datetime]:
    """The instants at which the first day begins and the last one ends."""
    return (
        to_datetime(day_start(first, zone_name)),
        to_datetime(day_start(last + DAY, zone_name)),
    )
