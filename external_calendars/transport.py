"""Writes to calendars elsewhere: from claimed deliveries to what goes over the network.

A delivery only says which copy to look after. What counts is the booking as it is when the delivery
is taken: its event is to stand there, with these texts and times, or it is not. So it does no harm
to do it twice, and a worker may die between any two steps.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django.db.models import Count

from apps_config.models import App
from availability.models import Calendar, Event
from availability.targets import Targets
from bookings.models import Booking, Customer, StateChange
from bookings.wording import known_zone, lines_of, one_line
from external_calendars.access import access_of
from external_calendars.copies import LONGEST_ETAG, LONGEST_HREF, stands
from external_calendars.entries import Entry, NotOurs, compose, is_of, lower, renew, revise
from external_calendars.models import Connection, ExternalObject, WrittenEvent
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import (
    FINAL_TROUBLES,
    NO_WRITE_ACCESS,
    Access,
    Changed,
    Provider,
    Trouble,
)
from external_calendars.reading import Unreadable
from notifications.addressees import Addressees
from notifications.mail.envelope import is_address
from notifications.mail.invitations import Guest
from notifications.mail.letters import contact_lines
from notifications.models import Delivery
from notifications.results import Outcome
from notifications.transports import Send, Unfit, check_app, transports
from scheduling.api.instants import zone

# Seconds: of a try with all its requests (a lease is longer), and of one request.
TRY_DEADLINE, REQUEST_DEADLINE = 25.0, 15.0
# How often somebody else may be quicker, in one try.
ROUNDS = 3
SERVER_TROUBLES = frozenset({"unreachable", "rate_limited", "server_error", "bad_answer"})
TOO_LATE = "No answer within the time limit."
CHANGED = "It was changed there again and again."
UNREADABLE = "What stands there can't be read."
NOT_OURS = "Another event stands at its address."


@transports(Delivery.CALENDAR)
class Writes:
    """The rows that a batch of writes needs, each kind read at once."""

    def __init__(self, rows: Sequence[Delivery], now: datetime) -> None:
        self.now = now.replace(microsecond=0)
        self.apps = App.objects.in_bulk({row.app_id for row in rows})
        self.addressees = Addressees(self.apps.keys())
        self.bookings = _read_bookings(rows)
        ids = {_ids_of(row) for row in rows}
        self.events = Event.objects.in_bulk({event_id for event_id, _ in ids})
        self.targets = Targets(self.events.values())
        calendars = Calendar.objects.select_related("connection", "resource")
        self.calendars = calendars.in_bulk({calendar_id for _, calendar_id in ids})
        written = WrittenEvent.objects.filter(event__in=self.events, calendar__in=self.calendars)
        self.written = {(row.event_id, row.calendar_id): row for row in written}
        self.seen = _read_seen(self.written.values())
        changes = StateChange.objects.filter(booking__in=self.bookings).order_by()
        self.changes = dict(changes.values_list("booking").annotate(Count("id")))

    def send_of(self, row: Delivery) -> Send:
        """What sends it. Raises Unfit."""
        app, booking = self.apps[row.app_id], self.bookings[row.booking_id]
        check_app(app)
        is_afresh = bool(row.content.get("afresh"))
        if booking.deleted_at and not is_afresh:
            raise Unfit(Delivery.CANCELLED, "The booking was deleted.")
        event_id, calendar_id = _ids_of(row)
        calendar, written = self.calendars.get(calendar_id), self.written.get(_ids_of(row))
        if written is None or calendar is None or not _is_connected(calendar):
            raise Unfit(Delivery.SKIPPED, "The calendar is not connected any more.")
        if not calendar.is_writable:
            raise Unfit(Delivery.SKIPPED, "The calendar can only be read.")
        event = self.events[event_id]
        is_wanted = stands(booking) and self.targets.of(event) == calendar
        keep = Keep(written, (event.start, event.end), self.now)
        try:
            access = access_of(calendar.connection)
        except Trouble as trouble:
            # The operator's mistake: a try that fails, and later ones when it is mended.
            return partial(keep.failed, trouble, 0.0)
        copy = _Copy(
            provider=PROVIDERS[calendar.provider],
            access=access,
            uid=written.uid,
            href=written.href or self.seen.get((calendar.id, written.uid), ""),
            etag=written.etag,
            entry=self._entry(app, row, event, calendar, written.uid) if is_wanted else None,
            is_afresh=is_afresh,
        )
        return partial(carry_out, copy, keep)

    def end(self) -> None:
        """Nothing of it is kept before it was sent."""

    # --- What is to stand there -------------------------------------------------------------------
    def _entry(self, app: App, row: Delivery, event: Event, calendar: Calendar, uid: str) -> Entry:
        booking = self.bookings[row.booking_id]
        everybody = _customers(booking, only_standing=False)
        customers = [one for one in _customers(booking) if one.email]
        guests, organizer = self._guests(app, booking, event, customers)
        start, end = _times(event, calendar.resource.timezone)
        return Entry(
            uid=uid,
            sequence=self.changes.get(booking.id, 1) - 1,
            stamp=self.now,
            start=start,
            end=end,
            what=one_line(event.what),
            where=one_line(event.where),
            description=_description(event, customers, is_shared=len(guests) > 1),
            organizer=organizer,
            guests=guests,
            known=lower([*(one.email for one in everybody), *row.content.get("former", ())]),
        )

    def _guests(
        self, app: App, booking: Booking, event: Event, customers: Sequence[Customer]
    ) -> tuple[list[Guest], Guest | None]:
        """Who is invited, by whom. Companions invite nobody: the main event does. A test app
        reaches its members only."""
        owners = [one for one in self.addressees.of_owner(app, booking) if is_address(one)]
        if not event.invite or event.main_id or not owners:
            return [], None
        people = {one.email.lower(): one for one in customers if is_address(one.email)}
        allowed = set(self.addressees.allowed(app, people)) - lower(owners)
        guests = [
            Guest(one_line(one.name), one.email)
            for address, one in people.items()
            if address in allowed
        ]
        return guests, Guest(one_line(booking.resource.name), owners[0]) if guests else None


def _read_bookings(rows: Sequence[Delivery]) -> dict[uuid.UUID, Booking]:
    """As they are now, with their customers, of a group those of its seats too."""
    bookings = Booking.objects.filter(id__in={row.booking_id for row in rows})
    whole = bookings.select_related("resource").prefetch_related("customers", "seats__customers")
    return {booking.id: booking for booking in whole}


def _read_seen(written: Iterable[WrittenEvent]) -> dict[tuple[uuid.UUID, str], str]:
    """By calendar and UID, where an object of it stands: its owner may have taken it over from a
    mail, and a server wants a UID once."""
    unplaced = [row for row in written if not row.href]
    objects = ExternalObject.objects.filter(
        connection__in={row.calendar_id for row in unplaced}, uid__in={row.uid for row in unplaced}
    )
    rows = objects.values_list("connection", "uid", "href") if unplaced else ()
    return {(calendar_id, uid): href for calendar_id, uid, href in rows}


def _ids_of(row: Delivery) -> tuple[uuid.UUID, uuid.UUID]:
    return uuid.UUID(row.content["event_id"]), uuid.UUID(row.content["calendar_id"])


def _is_connected(calendar: Calendar) -> bool:
    return calendar.deleted_at is None and hasattr(calendar, "connection")


def _customers(booking: Booking, *, only_standing: bool = True) -> list[Customer]:
    """The booking's, and those of its seats."""
    seats = [one for one in booking.seats.all() if stands(one) or not only_standing]
    return [customer for one in (booking, *seats) for customer in one.customers.all()]


def _times(event: Event, zone_name: str) -> tuple[datetime, datetime] | tuple:
    if not event.all_day:
        return event.start, event.end
    place = zone(known_zone(zone_name))
    return event.start.astimezone(place).date(), event.end.astimezone(place).date()


def _description(event: Event, customers: Sequence[Customer], *, is_shared: bool) -> str:
    """What the event says, and who booked: unless several are invited, who all read it."""
    contacts = [] if is_shared else [contact_lines(customer) for customer in customers]
    return "\n\n".join(filter(None, [lines_of(event.description), *contacts]))


# --- What is kept ---------------------------------------------------------------------------------
class Stored(NamedTuple):
    """Where it stands now; nowhere where it is gone."""

    href: str = ""
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Keep:
    """What becomes of a copy's row by a try; `span` is what the copy was to say."""

    written: WrittenEvent
    span: tuple[datetime, datetime]
    now: datetime

    def done(self, stored: Stored, seconds: float) -> Outcome:
        start, end = self.span
        state = WrittenEvent.WRITTEN if stored.href else WrittenEvent.REMOVED
        values: dict[str, Any] = {"state": state, "reason": "", "written_at": self.now}
        values |= {"href": stored.href[:LONGEST_HREF], "etag": stored.etag[:LONGEST_ETAG]}
        if stored.href:
            values |= {"start": start, "end": end}
        return Outcome(ok=True, seconds=seconds, keep=self._update(values, is_over=True))

    def failed(self, trouble: Trouble, seconds: float = 0.0) -> Outcome:
        """What only a person mends is said aloud, and tried again: it may be mended in time."""
        error = str(trouble)
        return Outcome(
            ok=False,
            seconds=seconds,
            response_code=trouble.status,
            error=error,
            retry_after=trouble.retry_after,
            server_failed=trouble.code in SERVER_TROUBLES,
            keep=self._update({"reason": error[:300]}, problem=trouble.code),
        )

    def in_the_way(self, error: str, seconds: float, *, final: bool = False) -> Outcome:
        """What stands there can't be written over; the server did its part."""
        keep = self._update({"reason": error})
        return Outcome(ok=False, seconds=seconds, error=error, final=final, keep=keep)

    def _update(
        self, values: dict[str, Any], problem: str = "", *, is_over: bool = False
    ) -> Callable[[], None]:
        def update() -> None:
            WrittenEvent.objects.filter(id=self.written.id).update(**values)
            connection = Connection.objects.filter(calendar=self.written.calendar_id)
            if problem in FINAL_TROUBLES:
                connection.filter(problem="").update(problem=problem, problem_since=self.now)
            elif is_over:
                kept_out = connection.filter(problem=NO_WRITE_ACCESS)
                kept_out.update(problem="", problem_since=None)

        return update


# --- Over the network -----------------------------------------------------------------------------
def carry_out(copy: "_Copy", keep: Keep) -> Outcome:
    """One try, with all its requests. Uses no database."""
    began = time.monotonic()
    copy.ends = began + TRY_DEADLINE
    try:
        stored = copy.put() if copy.entry else copy.remove()
    except Trouble as trouble:
        return keep.failed(trouble, time.monotonic() - began)
    except Unreadable:
        return keep.in_the_way(UNREADABLE, time.monotonic() - began)
    except Changed:
        return keep.in_the_way(CHANGED, time.monotonic() - began)
    except NotOurs:
        return keep.in_the_way(NOT_OURS, time.monotonic() - began, final=True)
    return keep.done(stored, time.monotonic() - began)


@dataclass(slots=True)
class _Copy:
    """The copy of an event at its server. entry: what it is to say; None: it is to go. href, etag:
    what is known of it. is_afresh: nothing that stands there is to be kept."""

    provider: Provider
    access: Access
    uid: str
    href: str
    etag: str
    entry: Entry | None
    is_afresh: bool = False
    ends: float = 0.0

    @property
    def deadline(self) -> float:
        """Seconds for the next request. Raises Trouble where none are left."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise Trouble("unreachable", detail=TOO_LATE)
        return min(left, REQUEST_DEADLINE)

    def put(self) -> Stored:
        """Have it stand there. Raises Trouble, Changed (by others, at every round), NotOurs."""
        if not self.href:
            self.href = self.provider.new_href(self.access, self.uid)
            try:
                return self._create()
            except Changed:
                pass  # by us, at a try whose end was never heard of, or by its owner
        for _ in range(ROUNDS):
            try:
                return self._bring_up_to_date()
            except Changed:
                continue
        raise Changed

    def _create(self) -> Stored:
        text = compose(self.entry)
        etag = self.provider.put(self.access, self.href, text, "", deadline=self.deadline)
        return Stored(self.href, etag)

    def _bring_up_to_date(self) -> Stored:
        there = self.provider.read(self.access, self.href, deadline=self.deadline)
        if there is None:
            return self._create()
        write = renew if self.is_afresh else revise
        text = write(there.text, self.entry)
        if text is None:
            return Stored(self.href, there.etag)
        etag = self.provider.put(self.access, self.href, text, there.etag, deadline=self.deadline)
        return Stored(self.href, etag)

    def remove(self) -> Stored:
        """Have it gone. Raises Trouble, Changed."""
        if self.href and self.etag:
            try:
                self.provider.delete(self.access, self.href, self.etag, deadline=self.deadline)
                return Stored()
            except Changed:
                pass
        href = self.href or self.provider.new_href(self.access, self.uid)
        for _ in range(ROUNDS):
            there = self.provider.read(self.access, href, deadline=self.deadline)
            if there is None or not is_of(there.text, self.uid):
                return Stored()
            try:
                self.provider.delete(self.access, href, there.etag, deadline=self.deadline)
                return Stored()
            except Changed:
                continue
        raise Changed
