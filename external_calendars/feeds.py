"""The feed of a calendar: what any calendar program reads of it, under an address of its own."""

import hashlib
import hmac
import secrets
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from apps_config.models import digest_secret
from availability.models import Calendar, Event
from availability.placement import lock_calendars
from bookings.graphs import GRAPHS, INITIALIZED
from external_calendars.models import Feed
from notifications.mail.envelope import service_host
from notifications.mail.invitations import PRODUCT
from scheduling.api.errors import NotFound

PAST, AHEAD = timedelta(days=31), timedelta(days=400)
LINE = 75  # octets
COMPLETED = "completed"
MOST_EVENTS = 10_000  # the earliest of them, so that a feed never takes more memory than that
REFRESH = "PT15M"
# A booking in one of these is called off, or not made yet: its event stands in no feed.
LEFT_OUT = {INITIALIZED} | {
    state
    for graph in GRAPHS.values()
    for state in graph.steps.values()
    if graph.is_completed(state) and state != COMPLETED
}
# RFC 5545 3.3.11. icalendar's own would make a line break of the `\N` in `C:\New`.
ESCAPES = str.maketrans({"\\": r"\\", ";": r"\;", ",": r"\,", "\n": r"\n", "\r": None})


# --- Its address ----------------------------------------------------------------------------------
def make_feed(calendar: Calendar, *, now: datetime) -> str:
    """The token of a new feed, which is not to be had again; the one before it ends.

    Raises NotFound for a calendar that was just deleted.
    """
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        if not lock_calendars([calendar]):
            raise NotFound("Calendar")
        Feed.objects.update_or_create(
            calendar=calendar, defaults={"token_hash": digest_secret(token), "created_at": now}
        )
    return token


def revoke_feed(calendar: Calendar) -> None:
    """Raises NotFound where there is none."""
    deleted, _ = Feed.objects.filter(calendar=calendar).delete()
    if not deleted:
        raise NotFound("Feed")


def feed_url(calendar: Calendar, token: str) -> str:
    return f"{settings.PUBLIC_URL}/v2/calendars/{calendar.id}/feed.ics?token={token}"


def find_fed(calendar_id: uuid.UUID, token: str) -> Calendar:
    """The calendar that the token opens, with its app. Raises NotFound for whatever is wrong."""
    calendars = Calendar.objects.filter(
        id=calendar_id,
        deleted_at=None,
        resource__deleted_at=None,
        resource__app__archived_at=None,
    )
    calendar = calendars.select_related("feed", "resource__app").first()
    kept = getattr(getattr(calendar, "feed", None), "token_hash", "")
    # Compared in any case, so that the time it takes tells nothing.
    if not hmac.compare_digest(kept, digest_secret(token)):
        raise NotFound("Calendar")
    return calendar


# --- What stands in it ----------------------------------------------------------------------------
class Entry(NamedTuple):
    id: uuid.UUID
    updated_at: datetime
    state: str | None  # of its booking, if it has one, which runs through
    graph: str | None
    start: datetime
    end: datetime
    all_day: bool
    start_date: date | None
    end_date: date | None
    what: str
    where: str
    description: str
    busy: bool
    created_at: datetime

    @property
    def is_tentative(self) -> bool:
        """It is not known yet whether the booking takes place."""
        if self.graph is None or self.state == COMPLETED:
            return False
        return not GRAPHS[self.graph].is_live(self.state)


def shown_events(calendar: Calendar, now: datetime) -> QuerySet[Event]:
    """From a month ago to a year ahead, the earliest first; without what is called off."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    rows = Event.objects.for_app(calendar.resource.app_id).filter(calendar=calendar)
    rows = rows.overlapping(today - PAST, today + AHEAD)
    # Of a companion in a mutual booking the main event's booking decides.
    rows = rows.annotate(
        state=Coalesce("own_booking__state", "main__bookings__state"),
        graph=Coalesce("own_booking__graph", "main__bookings__graph"),
    )
    rows = rows.filter(Q(state=None) | ~Q(state__in=LEFT_OUT))
    return rows.order_by("start", "id")[:MOST_EVENTS]


_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
_TIMED = Entry(
    id=uuid.UUID(int=0),
    updated_at=_MOMENT,
    state="tentative",
    graph="confirm_decline",
    start=_MOMENT,
    end=_MOMENT,
    all_day=False,
    start_date=None,
    end_date=None,
    what="A title, so long that it is cut into several lines; of 75 octets each (Zürich)",
    where="Harbour Street 5",
    description="Several\nlines",
    busy=False,
    created_at=_MOMENT,
)
# Written as any other, so that a tag is another one where the writing is.
SPECIMENS = (
    _TIMED,
    _TIMED._replace(all_day=True, start_date=_MOMENT.date(), end_date=_MOMENT.date(), graph=None),
)


def feed_tag(calendar: Calendar, now: datetime) -> str:
    """The ETag: of what would be written and how, without reading or writing it."""
    digest = hashlib.sha256("".join(_lines(calendar.name, SPECIMENS)).encode())
    for row in shown_events(calendar, now).values_list("id", "updated_at", "state"):
        digest.update(repr(row).encode())
    return f'"{digest.hexdigest()[:32]}"'


def feed_text(calendar: Calendar, now: datetime) -> str:
    """All of it as iCalendar (RFC 5545), with CRLF.

    Written line by line: icalendar's objects take ten times as long, its folding alone twice.
    """
    rows = shown_events(calendar, now).values_list(*Entry._fields)
    return "".join(_lines(calendar.name, map(Entry._make, rows)))


def _lines(name: str, entries: Iterable[Entry]) -> Iterator[str]:
    yield "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"
    yield f"PRODID:{PRODUCT}\r\nCALSCALE:GREGORIAN\r\nMETHOD:PUBLISH\r\n"
    yield _text("NAME", name)
    yield _text("X-WR-CALNAME", name)
    yield f"REFRESH-INTERVAL;VALUE=DURATION:{REFRESH}\r\nX-PUBLISHED-TTL:{REFRESH}\r\n"
    host = service_host()
    for entry in entries:
        yield from _entry_lines(entry, host)
    yield "END:VCALENDAR\r\n"


def _entry_lines(entry: Entry, host: str) -> Iterator[str]:
    stamp = _utc(entry.updated_at)
    yield f"BEGIN:VEVENT\r\nUID:{entry.id}@{host}\r\nDTSTAMP:{stamp}\r\n"
    yield f"CREATED:{_utc(entry.created_at)}\r\nLAST-MODIFIED:{stamp}\r\n"
    if entry.all_day:
        yield f"DTSTART;VALUE=DATE:{entry.start_date:%Y%m%d}\r\n"
        yield f"DTEND;VALUE=DATE:{entry.end_date:%Y%m%d}\r\n"
    else:
        yield f"DTSTART:{_utc(entry.start)}\r\nDTEND:{_utc(entry.end)}\r\n"
    yield _text("SUMMARY", entry.what)
    if entry.where:
        yield _text("LOCATION", entry.where)
    if entry.description:
        yield _text("DESCRIPTION", entry.description)
    yield f"STATUS:{'TENTATIVE' if entry.is_tentative else 'CONFIRMED'}\r\n"
    yield f"TRANSP:{'OPAQUE' if entry.busy else 'TRANSPARENT'}\r\nEND:VEVENT\r\n"


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _text(name: str, value: str) -> str:
    return fold(f"{name}:{value.translate(ESCAPES)}")


def fold(line: str) -> str:
    """With its end, in pieces of up to 75 octets that split no character (RFC 5545 3.1)."""
    rest = line.encode()
    pieces = []
    while len(rest) > LINE:
        end = LINE
        while rest[end] & 0xC0 == 0x80:  # in the middle of one
            end -= 1
        pieces.append(rest[:end])
        rest = b" " + rest[end:]
    return b"\r\n".join([*pieces, rest, b""]).decode()
