"""On which clock the back office counts days and tells times."""

from collections import Counter
from datetime import date, datetime, time, timedelta, tzinfo
from functools import cached_property

from django.http import HttpRequest
from django.utils.dateformat import format as format_date
from django.utils.timezone import localtime

from apps_config.scope import scope_of
from scheduling.api.instants import FIRST_YEAR, LAST_YEAR, ZONES, wall_to_utc_or_gap_end, zone

DAY = timedelta(days=1)


MAX_SAMPLED = 1000


def zone_of(request: HttpRequest) -> str:
    """The time zone that most of the account's apps have; where none has one, that of most of their
    newest resources; else UTC. Read once a request."""
    found = getattr(request, "_office_zone", None)
    if found is None or found[0] != request.user.pk:  # a log-in changes who is asking
        found = request._office_zone = (request.user.pk, _read_zone(request))
    return found[1]


def _read_zone(request: HttpRequest) -> str:
    apps = scope_of(request).apps()
    of_apps = apps.values_list("settings__default_timezone", flat=True)
    of_resources = apps.filter(resources__deleted_at=None).order_by("-resources__id")
    for names in (of_apps, of_resources.values_list("resources__timezone", flat=True)):
        known = Counter(name for name in names[:MAX_SAMPLED] if name in ZONES)
        if known:
            return known.most_common(1)[0][0]
    return "UTC"


def moment_words(moment: datetime) -> str:
    """`Mon 23 Nov 2026, 09:00 CET`, on the clock of the back office."""
    local = localtime(moment)
    # Not by the format's own `T`, which is silent in the hour that comes twice.
    return f"{format_date(local, 'D j M Y, H:i')} {local.tzname()}"


class OfficeClock(tzinfo):
    """The zone of a request's account, looked up when the first time is told."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    def __str__(self) -> str:
        return zone_of(self._request)

    @cached_property
    def _zone(self) -> tzinfo:
        return zone(zone_of(self._request))

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return self._zone.utcoffset(moment)

    def dst(self, moment: datetime | None) -> timedelta | None:
        return self._zone.dst(moment)

    def tzname(self, moment: datetime | None) -> str | None:
        return self._zone.tzname(moment)

    def fromutc(self, moment: datetime) -> datetime:
        local = self._zone.fromutc(moment.replace(tzinfo=self._zone))
        return local.replace(tzinfo=self)


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
