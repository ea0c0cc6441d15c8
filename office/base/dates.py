"""The back office's time zone and date formats."""

from collections import Counter
from datetime import date, datetime, timedelta, tzinfo
from functools import cached_property

from django.http import HttpRequest
from django.utils.timezone import localtime

from bookings.pages.formatting import day_and_time, short_date_words, time_words
from common.time.instants import FIRST_YEAR, LAST_YEAR, ZONES, find_zone, local_midnight
from common.time.zone_names import current_zone_name
from office.base.scope import read_once, scope_of

DAY = timedelta(days=1)
MAX_SAMPLED = 1000


@read_once
def office_zone(request: HttpRequest) -> str:
    """Return the most common zone of the account's apps, else of newest resources, else UTC."""
    apps = scope_of(request).apps().order_by("id")
    of_apps = apps.values_list("settings__default_timezone", flat=True)
    of_resources = apps.filter(resources__deleted_at=None).order_by("-resources__id")
    for names in (of_apps, of_resources.values_list("resources__timezone", flat=True)):
        counts = Counter(name for name in names[:MAX_SAMPLED] if name in ZONES)
        if counts:
            return current_zone_name(counts.most_common(1)[0][0])
    return "UTC"


def moment_words(moment: datetime | None) -> str:
    """Return `Mon 23 Nov 2026, 09:00 CET` in the current time zone; "" without a moment."""
    return _with_zone(moment, with_seconds=False)


def exact_moment_words(moment: datetime | None) -> str:
    """Return `Mon 23 Nov 2026, 09:00:00 CET` in the current time zone; "" without a moment."""
    return _with_zone(moment, with_seconds=True)


def _with_zone(moment: datetime | None, *, with_seconds: bool) -> str:
    if moment is None:
        return ""
    local = localtime(moment)
    time = time_words(local, with_seconds=with_seconds)
    return f"{day_and_time(short_date_words(local), time)} {local.tzname()}"


class AccountTimeZone(tzinfo):
    """The time zone of the request's account, read when first needed."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    def __str__(self) -> str:
        return office_zone(self._request)

    @cached_property
    def _zone(self) -> tzinfo:
        return find_zone(office_zone(self._request))

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return self._zone.utcoffset(moment)

    def dst(self, moment: datetime | None) -> timedelta | None:
        return self._zone.dst(moment)

    def tzname(self, moment: datetime | None) -> str | None:
        return self._zone.tzname(moment)

    def fromutc(self, moment: datetime) -> datetime:
        local = self._zone.fromutc(moment.replace(tzinfo=self._zone))
        return local.replace(tzinfo=self)


def days_span_in_zone(first: date, last: date, zone_name: str) -> tuple[datetime, datetime]:
    """Return the start of the first day and the end of the last one."""
    return local_midnight(first, zone_name), local_midnight(last + DAY, zone_name)


def parse_iso_day(text: str | None) -> date | None:
    """Parse a day such as 2026-11-23; None for other texts and years out of range."""
    try:
        day = date.fromisoformat(text or "")
    except ValueError:
        return None
    return day if FIRST_YEAR <= day.year <= LAST_YEAR else None
