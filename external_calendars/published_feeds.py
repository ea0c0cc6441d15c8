"""Feeds: read-only iCalendar URLs of calendars."""

import hashlib
import hmac
import secrets
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce

from apps_config.models import digest_secret
from availability.models import Calendar, Event
from availability.reserve.events import lock_resources_of_calendars
from bookings.graphs import GRAPHS, INITIALIZED
from bookings.models import Customer, counted_title
from bookings.pages.formatting import to_one_line
from common.errors import NotFound
from common.ical.writing import PRODUCT
from external_calendars.models import Feed
from notifications.mail.compose import contact_lines
from notifications.mail.envelope import service_host

PAST, AHEAD = timedelta(days=31), timedelta(days=400)
LINE = 75  # octets
COMPLETED = "completed"
MAX_EVENTS = 10_000  # the earliest ones; limits a feed's memory
REFRESH = "PT15M"
# Bookings in these states are cancelled or not created yet: their events are left out.
LEFT_OUT = {INITIALIZED} | {
    state
    for graph in GRAPHS.values()
    for state in graph.steps.values()
    if graph.is_completed(state) and state != COMPLETED
}
# RFC 5545 3.3.11. icalendar's escaping would turn the `\N` in `C:\New` into a line break.
ESCAPES = str.maketrans({"\\": r"\\", ";": r"\;", ",": r"\,", "\n": r"\n", "\r": None})


# --- Tokens ---------------------------------------------------------------------------------------
def issue_feed_token(calendar: Calendar, *, details: bool = False, now: datetime) -> str:
    """Create a feed that replaces the calendar's old one; return its token, stored only as a hash.

    details: whether it shows the customers. Raises NotFound for a calendar that was just deleted.
    """
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        if not lock_resources_of_calendars([calendar]):
            raise NotFound("Calendar")
        values = {"token_hash": digest_secret(token), "details": details, "created_at": now}
        Feed.objects.update_or_create(calendar=calendar, defaults=values)
    return token


def revoke_feed(calendar: Calendar) -> None:
    """Delete the calendar's feed. Raises NotFound without one."""
    deleted, _ = Feed.objects.filter(calendar=calendar).delete()
    if not deleted:
        raise NotFound("Feed")


def feed_url(calendar: Calendar, token: str) -> str:
    return f"{settings.PUBLIC_URL}/v2/calendars/{calendar.id}/feed.ics?token={token}"


def find_feed_calendar(calendar_id: uuid.UUID, token: str) -> Calendar:
    """Return the calendar of a valid token, with its app. Raises NotFound in all other cases."""
    calendars = Calendar.objects.filter(
        id=calendar_id,
        deleted_at=None,
        resource__deleted_at=None,
        resource__app__archived_at=None,
    )
    calendar = calendars.select_related("feed", "resource__app").first()
    kept = getattr(getattr(calendar, "feed", None), "token_hash", "")
    # Compare in any case, so that the time it takes reveals nothing.
    is_theirs = hmac.compare_digest(kept, digest_secret(token))
    if calendar is None or not is_theirs:
        raise NotFound("Calendar")
    return calendar


# --- Events ---------------------------------------------------------------------------------------
class FeedEvent(NamedTuple):
    id: uuid.UUID
    main_id: uuid.UUID | None  # of the companion of a mutual booking
    updated_at: datetime
    state: str | None  # of the booking that is not cancelled, if any
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
    link: str  # of the video call
    quantity: int | None  # the units of its resource; None: one

    @property
    def is_tentative(self) -> bool:
        """Whether the booking is not confirmed yet."""
        if self.graph is None or self.state is None or self.state == COMPLETED:
            return False
        return not GRAPHS[self.graph].is_live(self.state)


def feed_events(calendar: Calendar, now: datetime) -> QuerySet:
    """Return events from 31 days ago to 400 days ahead, by start, without cancelled bookings."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    rows = Event.objects.for_app(calendar.resource.app_id).filter(calendar=calendar)
    rows = rows.without_whole_visits().overlapping(today - PAST, today + AHEAD)
    # A companion of a mutual booking takes the state of the main event's booking.
    rows = rows.annotate(
        state=Coalesce("own_booking__state", "main__bookings__state"),
        graph=Coalesce("own_booking__graph", "main__bookings__graph"),
        link=Coalesce("main__conference_url", "conference_url"),
        quantity=F("own_booking__quantity"),
    )
    rows = rows.filter(Q(state=None) | ~Q(state__in=LEFT_OUT))
    return rows.order_by("start", "id")[:MAX_EVENTS]


_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
_TIMED = FeedEvent(
    id=uuid.UUID(int=0),
    main_id=None,
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
    link="https://meet.jit.si/0",
    quantity=2,
)
# Rendered like other events, so that the ETag changes when the format does.
SPECIMENS = (
    _TIMED,
    _TIMED._replace(all_day=True, start_date=_MOMENT.date(), end_date=_MOMENT.date(), graph=None),
)


def feed_etag(calendar: Calendar, now: datetime) -> str:
    """Return a hash of the format and of the events' ids, changes and states, without rendering."""
    digest = hashlib.sha256("".join(_lines(calendar.name, SPECIMENS, details=True)).encode())
    rows = list(feed_events(calendar, now).values_list("id", "updated_at", "state", "main_id"))
    for row in rows:
        digest.update(repr(row).encode())
    if calendar.feed.details:
        contacts = read_contacts({main_id or event_id for event_id, *_, main_id in rows})
        digest.update(repr(sorted(contacts.items())).encode())
    return f'"{digest.hexdigest()[:32]}"'


def feed_text(calendar: Calendar, now: datetime) -> str:
    """Return the feed as iCalendar (RFC 5545), with CRLF.

    Written line by line: for MAX_EVENTS, icalendar takes 4.6 s of CPU time, this takes 0.4 s.
    """
    rows = feed_events(calendar, now).values_list(*FeedEvent._fields)
    entries: Iterable[FeedEvent] = map(_counted_entry, rows)
    if calendar.feed.details:
        entries = with_customers(list(entries))
    return "".join(_lines(calendar.name, entries, details=calendar.feed.details))


def _counted_entry(row: tuple[Any, ...]) -> FeedEvent:
    """Return the entry of a row, with its quantity in the title."""
    entry = FeedEvent._make(row)
    return entry._replace(what=counted_title(entry.what, entry.quantity))


def with_customers(entries: Sequence[FeedEvent]) -> Iterator[FeedEvent]:
    contacts = read_contacts({entry.main_id or entry.id for entry in entries})
    for entry in entries:
        yield with_contacts(entry, contacts.get(entry.main_id or entry.id, ()))


def read_contacts(event_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, list[tuple[str, str]]]:
    """Return (name, contact data) of the customers of each event, also of a group's seats.

    Without cancelled bookings and seats, and without people who were erased.
    """
    rows = Customer.objects.filter(booking__event__in=event_ids, booking__deleted_at=None)
    rows = rows.exclude(booking__state__in=LEFT_OUT).select_related("booking")
    contacts: dict[uuid.UUID, list[tuple[str, str]]] = defaultdict(list)
    for customer in rows.order_by("booking__created_at", "position", "id"):
        if lines := contact_lines(customer):
            contacts[customer.booking.event_id].append((to_one_line(customer.name), lines))
    return contacts


def with_contacts(entry: FeedEvent, people: Sequence[tuple[str, str]]) -> FeedEvent:
    """Return the entry with the name of a single customer in its title, and all contact data."""
    names = [name for name, _ in people]
    title = ": ".join(filter(None, [entry.what, *names])) if len(names) == 1 else entry.what
    texts = [entry.description, *(lines for _, lines in people)]
    return entry._replace(what=title, description="\n\n".join(filter(None, texts)))


def _lines(name: str, entries: Iterable[FeedEvent], *, details: bool) -> Iterator[str]:
    yield "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"
    yield f"PRODID:{PRODUCT}\r\nCALSCALE:GREGORIAN\r\nMETHOD:PUBLISH\r\n"
    yield _text("NAME", name)
    yield _text("X-WR-CALNAME", name)
    yield f"REFRESH-INTERVAL;VALUE=DURATION:{REFRESH}\r\nX-PUBLISHED-TTL:{REFRESH}\r\n"
    host = service_host()
    for entry in entries:
        yield from _entry_lines(
            entry, host, link=entry.link or "" if details and not entry.is_tentative else ""
        )
    yield "END:VCALENDAR\r\n"


def _entry_lines(entry: FeedEvent, host: str, *, link: str) -> Iterator[str]:
    stamp = _utc(entry.updated_at)
    yield f"BEGIN:VEVENT\r\nUID:{entry.id}@{host}\r\nDTSTAMP:{stamp}\r\n"
    yield f"CREATED:{_utc(entry.created_at)}\r\nLAST-MODIFIED:{stamp}\r\n"
    if entry.all_day:
        yield f"DTSTART;VALUE=DATE:{entry.start_date:%Y%m%d}\r\n"
        yield f"DTEND;VALUE=DATE:{entry.end_date:%Y%m%d}\r\n"
    else:
        yield f"DTSTART:{_utc(entry.start)}\r\nDTEND:{_utc(entry.end)}\r\n"
    yield _text("SUMMARY", entry.what)
    if where := entry.where or link:
        yield _text("LOCATION", where)
    if description := "\n\n".join(filter(None, [entry.description, link])):
        yield _text("DESCRIPTION", description)
    if link:
        yield fold_line(f"URL:{link}")
        yield fold_line(f'CONFERENCE;VALUE=URI;FEATURE="AUDIO,VIDEO":{link}')
    yield f"STATUS:{'TENTATIVE' if entry.is_tentative else 'CONFIRMED'}\r\n"
    yield f"TRANSP:{'OPAQUE' if entry.busy else 'TRANSPARENT'}\r\nEND:VEVENT\r\n"


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _text(name: str, value: str) -> str:
    return fold_line(f"{name}:{value.translate(ESCAPES)}")


def fold_line(line: str) -> str:
    """Fold a line into pieces of up to 75 octets of whole characters (RFC 5545 3.1), with CRLF."""
    rest = line.encode()
    pieces = []
    while len(rest) > LINE:
        end = LINE
        while rest[end] & 0xC0 == 0x80:  # within a character
            end -= 1
        pieces.append(rest[:end])
        rest = b" " + rest[end:]
    return b"\r\n".join([*pieces, rest, b""]).decode()
