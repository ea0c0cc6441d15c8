"""Links that open a booking in a calendar or on a map of somebody else; the service calls none."""

from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlencode

from common.time.instants import local_date

GOOGLE = "https://calendar.google.com/calendar/render"
# Personal accounts, and those of organisations: neither knows the other's.
OUTLOOK = "https://outlook.live.com/calendar/0/deeplink/compose"
MICROSOFT_365 = "https://outlook.office.com/calendar/0/deeplink/compose"
MAP = "https://www.openstreetmap.org/search"


class CalendarEntry(NamedTuple):
    """`all_day_zone`: the zone whose whole days the entry covers; "" with times."""

    what: str
    where: str
    start: datetime
    end: datetime
    all_day_zone: str = ""


def google_url(entry: CalendarEntry) -> str:
    if zone := entry.all_day_zone:
        days = (local_date(moment, zone) for moment in (entry.start, entry.end))
        dates = "/".join(f"{day:%Y%m%d}" for day in days)
    else:
        dates = "/".join(f"{_utc(moment):%Y%m%dT%H%M%SZ}" for moment in (entry.start, entry.end))
    values = {
        "action": "TEMPLATE",
        "text": entry.what,
        "dates": dates,
        "location": entry.where,
    }
    return f"{GOOGLE}?{urlencode(values)}"


def outlook_url(entry: CalendarEntry) -> str:
    return f"{OUTLOOK}?{_outlook_query(entry)}"


def microsoft_365_url(entry: CalendarEntry) -> str:
    return f"{MICROSOFT_365}?{_outlook_query(entry)}"


def _outlook_query(entry: CalendarEntry) -> str:
    if zone := entry.all_day_zone:
        times = [f"{local_date(moment, zone)}" for moment in (entry.start, entry.end)]
    else:
        times = [f"{_utc(moment):%Y-%m-%dT%H:%M:%SZ}" for moment in (entry.start, entry.end)]
    values = {
        "path": "/calendar/action/compose",
        "rru": "addevent",
        "subject": entry.what,
        "startdt": times[0],
        "enddt": times[1],
        "location": entry.where,
        **({"allday": "true"} if entry.all_day_zone else {}),
    }
    return urlencode(values)


def map_url(place: str) -> str:
    return f"{MAP}?{urlencode({'query': place})}"


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
