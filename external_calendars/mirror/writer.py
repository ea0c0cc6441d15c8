"""Writes mirrored events to calendars at providers: from claimed deliveries to HTTP requests.

A delivery names an event and a calendar, not a change. The write follows the booking's state when
the delivery is claimed: the event exists at the provider with the current texts and times, or it
does not. Writes are therefore idempotent, and a worker may die between any two steps.
"""

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from django.db import transaction
from django.db.models import Count

from apps_config.models import App
from availability.conferences import is_link
from availability.models import Calendar, Event
from availability.reserve.destination_calendar import DestinationCalendars
from bookings.conferences import conference_url, is_made_by, wanted_conference
from bookings.models import Booking, Customer, StateChange
from bookings.pages.formatting import clean_lines, first_known_zone, to_one_line
from bookings.pages.trusted_texts import customer_name, trusted_text
from bookings.services import store_conference_link
from common.email_address import canonical_address, is_address
from common.ical.occurrences import UnreadableCalendar
from common.ical.writing import Guest
from common.messages import Message, cut_message, find_message
from common.time.instants import local_date
from external_calendars.credentials import credentials_of
from external_calendars.event_formats.base import (
    EventFormat,
    ForeignObject,
    MirroredEvent,
    canonical_addresses,
)
from external_calendars.grants import request_renewal
from external_calendars.mirror.desired import MAX_ETAG, MAX_HREF, should_be_mirrored
from external_calendars.mirror.server_invitations import all_invited, invitation_problem
from external_calendars.models import Connection, ExternalObject, WrittenEvent
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import (
    FINAL_ERRORS,
    NO_WRITE_ACCESS,
    TOKEN_REFUSED,
    CalendarAccess,
    PreconditionFailed,
    Provider,
    ProviderError,
    RemoteObject,
)
from notifications.mail.compose import contact_lines
from notifications.mail.recipients import Recipients
from notifications.mails_and_calls import check_app_is_open
from notifications.models import Delivery
from notifications.outbox.results import SendResult
from notifications.outbox.senders import SendCall, SkipDelivery, senders

# Seconds for an attempt with all its requests (shorter than a lease), and for one request.
TRY_DEADLINE, REQUEST_DEADLINE = 25.0, 15.0
# Retries within an attempt after the object was changed concurrently at the provider.
ROUNDS = 3
# How often an event is read again, and after how many seconds, for the link of its video call.
LINK_READS, LINK_PAUSE = 4, 1.5
SERVER_TROUBLES = frozenset({"unreachable", "rate_limited", "server_error", "bad_answer"})
TOO_LATE = Message("No response within the time limit.")
CHANGED = Message("The event was changed at the provider during every attempt to write it.")
UNREADABLE = Message("The event at the provider can't be read.")
NOT_OURS = Message("Another event already uses this address at the provider.")
FAILED = {"last_write_succeeded": False}  # what a failed attempt tells about the calendar


@senders.register
class CalendarWrites:
    """Sends a batch of calendar deliveries; loads each kind of row once."""

    types: ClassVar[Collection[str]] = (Delivery.CALENDAR,)

    def __init__(self, rows: Sequence[Delivery], now: datetime) -> None:
        self.now = now.replace(microsecond=0)
        self.apps = App.objects.in_bulk({row.app_id for row in rows})
        self.addressees = Recipients(self.apps.keys())
        self.bookings = _read_bookings(rows)
        ids = {_ids_of(row) for row in rows}
        self.events = Event.objects.in_bulk({event_id for event_id, _ in ids})
        self.targets = DestinationCalendars(self.events.values())
        calendars = Calendar.objects.select_related("connection__grant", "resource")
        self.calendars = calendars.in_bulk({calendar_id for _, calendar_id in ids})
        written = WrittenEvent.objects.filter(event__in=self.events, calendar__in=self.calendars)
        self.written = {(row.event_id, row.calendar_id): row for row in written}
        self.seen = _synced_hrefs(self.written.values())
        changes = StateChange.objects.filter(booking__in=self.bookings).order_by()
        self.changes = dict(changes.values_list("booking").annotate(Count("id")))

    def send_of(self, row: Delivery) -> SendCall:
        """Return the call that sends the delivery. Raises SkipDelivery."""
        app, booking = self.apps[row.app_id], self.bookings[row.booking_id]
        check_app_is_open(app)
        is_afresh = bool(row.content.get("afresh"))
        if booking.deleted_at and not is_afresh:
            raise SkipDelivery(Delivery.CANCELLED, Message("The booking was deleted."))
        event_id, calendar_id = _ids_of(row)
        calendar, written = self.calendars.get(calendar_id), self.written.get(_ids_of(row))
        if written is None or calendar is None or not _is_connected(calendar):
            raise SkipDelivery(Delivery.SKIPPED, Message("The calendar is no longer connected."))
        if not calendar.is_writable:
            raise SkipDelivery(Delivery.SKIPPED, Message("The calendar is read-only."))
        event = self.events[event_id]
        is_wanted = should_be_mirrored(booking) and self.targets.of(event) == calendar
        keep = CopyResult(written, (event.start, event.end), self.now)
        try:
            access = credentials_of(calendar.connection)
        except ProviderError as provider_error:
            # The operator's mistake: a failed attempt, retried until the operator has mended it.
            return partial(keep.failed, provider_error, 0.0)
        copy = _MirrorWrite(
            provider=PROVIDERS[calendar.provider],
            access=access,
            may_invite=calendar.provider_invites,
            uid=written.uid,
            href=written.href or self.seen.get((calendar.id, written.uid), ""),
            etag=written.etag,
            entry=self._entry(app, row, event, calendar, written.uid) if is_wanted else None,
            is_afresh=is_afresh,
        )
        return partial(write_copy, copy, keep)

    def store_rendered_bodies(self) -> None:
        """Do nothing: no work is deferred."""

    # --- The desired event ------------------------------------------------------------------------
    def _entry(
        self, app: App, row: Delivery, event: Event, calendar: Calendar, uid: str
    ) -> MirroredEvent:
        booking = self.bookings[row.booking_id]
        all_customers = _customers(booking, only_mirrored=False)
        customers = [customer for customer in _customers(booking) if customer.email]
        guests, organizer = self._guests(app, booking, event, calendar, customers)
        start, end = _entry_times(event, calendar.resource.timezone)
        where = to_one_line(_event_text_field(booking, event, "where", for_customers=bool(guests)))
        is_made_there = is_made_by(calendar, event)
        link = "" if is_made_there else conference_url(booking)
        is_offered = is_made_there and calendar.connection.makes_links is not False
        return MirroredEvent(
            uid=uid,
            sequence=self.changes.get(booking.id, 1) - 1,
            stamp=self.now,
            start=start,
            end=end,
            what=to_one_line(
                booking.counted(
                    _event_text_field(booking, event, "what", for_customers=bool(guests))
                )
            ),
            where=where or link,
            description=_description(booking, event, customers, guests, link),
            organizer=organizer,
            guests=guests,
            known=canonical_addresses(
                [*(guest.email for guest in all_customers), *row.content.get("former", ())]
            ),
            conference=wanted_conference(booking) if is_offered else "",
        )

    def _guests(
        self,
        app: App,
        booking: Booking,
        event: Event,
        calendar: Calendar,
        customers: Sequence[Customer],
    ) -> tuple[list[Guest], Guest | None]:
        """Return (attendees, organizer).

        A companion event has no attendees: the main event invites. A test app invites only its
        members. A server invites only for an organizer that is its user.
        """
        of_owner = self.addressees.of_owner(app, booking.resource)
        owners = [address for address in of_owner if is_address(address)]
        own = calendar.connection.user_addresses
        owner_addresses = canonical_addresses(owners)
        organizers = (
            [address for address in own if canonical_address(address) in owner_addresses]
            or own
            or owners
        )
        if not event.invite or event.main_id or not organizers:
            return [], None
        people = {
            customer.address: customer for customer in customers if is_address(customer.email)
        }
        hosts = owner_addresses | canonical_addresses(own)
        allowed = set(self.addressees.allowed(app, people)) - hosts
        guests = [
            Guest(customer_name(person.booking, person), person.email)
            for address, person in people.items()
            if address in allowed
        ]
        organizer = Guest(to_one_line(booking.resource.name), organizers[0])
        return guests, organizer if guests else None


def _read_bookings(rows: Sequence[Delivery]) -> dict[uuid.UUID | None, Booking]:
    """Return the deliveries' bookings by id, with customers, seats and the seats' customers."""
    bookings = Booking.objects.filter(id__in={row.booking_id for row in rows})
    whole = bookings.select_related("resource", "event", "project", "app")
    whole = whole.prefetch_related("customers", "seats__customers")
    return {booking.id: booking for booking in whole}


def _synced_hrefs(written: Iterable[WrittenEvent]) -> dict[tuple[uuid.UUID, str], str]:
    """Return (calendar id, UID) -> href of the synced objects for rows without an href.

    The calendar's owner may have accepted the event from a mail, and a server stores each UID once.
    """
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


def _customers(booking: Booking, *, only_mirrored: bool = True) -> list[Customer]:
    seats = [seat for seat in booking.seats.all() if should_be_mirrored(seat) or not only_mirrored]
    return [customer for seat in (booking, *seats) for customer in seat.customers.all()]


def _entry_times(event: Event, zone_name: str) -> tuple[datetime, datetime] | tuple:
    if not event.all_day:
        return event.start, event.end
    zone = first_known_zone(zone_name)
    return local_date(event.start, zone), local_date(event.end, zone)


def _event_text_field(booking: Booking, event: Event, field: str, *, for_customers: bool) -> str:
    """Return a text of the event: as customers read it if the event is shared with them."""
    return trusted_text(booking, field) if for_customers else getattr(event, field)


def _description(
    booking: Booking,
    event: Event,
    customers: Sequence[Customer],
    guests: Sequence[Guest],
    link: str,
) -> str:
    """Return the event's description, the link of the video call and the customers' contact data.

    Attendees can read all of them. So contact data is left out if there are several attendees, or
    if a public caller entered it.
    """
    contacts = [
        contact_lines(customer)
        for customer in (customers if len(guests) < 2 else ())
        if not (guests and customer.booking.is_public)
    ]
    description = clean_lines(
        _event_text_field(booking, event, "description", for_customers=bool(guests))
    )
    return "\n\n".join(filter(None, [description, link, *contacts]))


# --- Results --------------------------------------------------------------------------------------
class StoredObject(NamedTuple):
    """Where the object is stored at the provider; empty if it was removed.

    invitations, answers: of its attendees, as in WrittenEvent; invitations is None if it has none.
    link: of the video call that the provider has made.
    """

    href: str = ""
    etag: str = ""
    invitations: Mapping[str, str] | None = None
    answers: Mapping[str, str] = MappingProxyType({})
    link: str = ""


@dataclass(frozen=True, slots=True)
class CopyResult:
    """Turns an attempt's result into updates of the WrittenEvent row.

    `span`: (start, end) of the booking's event.
    """

    written: WrittenEvent
    span: tuple[datetime, datetime]
    now: datetime

    def done(self, stored: StoredObject, seconds: float) -> SendResult:
        start, end = self.span
        state = WrittenEvent.WRITTEN if stored.href else WrittenEvent.REMOVED
        reason = invitation_problem(stored.invitations or {})
        values: dict[str, Any] = {"state": state, "reason": reason, "written_at": self.now}
        values |= {"href": stored.href[:MAX_HREF], "etag": stored.etag[:MAX_ETAG]}
        learned: dict[str, Any] = {"last_write_succeeded": True}
        if stored.href:
            values |= {"start": start, "end": end, "invitations": stored.invitations or {}}
            values |= self._known_answers(stored)
        if stored.invitations is not None:
            learned["last_write_invited"] = all_invited(stored.invitations)
        keep = self._update(values, learned, link=stored.link)
        return SendResult(ok=True, seconds=seconds, keep=keep)

    def _known_answers(self, stored: StoredObject) -> dict[str, Any]:
        """Return the answers that need no look at the object any more.

        If a guest has answered since the last sync, the next one has to compare the object, so its
        etag is not stored.
        """
        was_at = (self.written.start, self.written.end)
        known = self.written.answers or {} if was_at == self.span else {}
        return {"answers": known} | ({"etag": ""} if stored.answers != known else {})

    def failed(self, provider_error: ProviderError, seconds: float = 0.0) -> SendResult:
        """Return a failed result, with a retry, and record errors that only a person can fix."""
        error = find_message(provider_error)
        return SendResult(
            ok=False,
            seconds=seconds,
            response_code=provider_error.status,
            error=error,
            retry_after=provider_error.retry_after,
            server_failed=provider_error.code in SERVER_TROUBLES,
            keep=self._update(
                {"reason": cut_message(error, 300)}, FAILED, problem=provider_error.code
            ),
        )

    def overwrite_refused(self, error: str, seconds: float, *, final: bool = False) -> SendResult:
        """Return a failed result: the server works, but the object can't be overwritten."""
        keep = self._update({"reason": error}, FAILED)
        return SendResult(ok=False, seconds=seconds, error=error, final=final, keep=keep)

    def _update(
        self,
        values: Mapping[str, Any],
        learned: Mapping[str, Any],
        *,
        problem: str = "",
        link: str = "",
    ) -> Callable[[], None]:
        """Return the function that stores `values` of the row and `learned` of its calendar."""

        def update() -> None:
            if link:
                # After the commit, because it locks bookings, which come before deliveries. If the
                # process ends in between, the next sync finds the link.
                store = partial(store_conference_link, self.written.event_id, link, now=self.now)
                transaction.on_commit(store, robust=True)
            WrittenEvent.objects.filter(id=self.written.id).update(**values)
            connection = Connection.objects.filter(calendar=self.written.calendar_id)
            connection.exclude(**learned).update(**learned)
            if learned["last_write_succeeded"]:
                kept_out = connection.filter(problem=NO_WRITE_ACCESS)
                kept_out.update(problem="", problem_since=None)
            elif problem == TOKEN_REFUSED:
                request_renewal(self.written.calendar_id)
            elif problem in FINAL_ERRORS:
                connection.filter(problem="").update(problem=problem, problem_since=self.now)

        return update


# --- Network --------------------------------------------------------------------------------------
def write_copy(copy: "_MirrorWrite", keep: CopyResult) -> SendResult:
    """Run one attempt with all its requests. Uses no database."""
    began = time.monotonic()
    copy.ends = began + TRY_DEADLINE
    try:
        stored = copy.put(copy.entry) if copy.entry else copy.remove()
    except ProviderError as provider_error:
        return keep.failed(provider_error, time.monotonic() - began)
    except UnreadableCalendar:
        return keep.overwrite_refused(UNREADABLE, time.monotonic() - began)
    except PreconditionFailed:
        return keep.overwrite_refused(CHANGED, time.monotonic() - began)
    except ForeignObject:
        return keep.overwrite_refused(NOT_OURS, time.monotonic() - began, final=True)
    return keep.done(stored, time.monotonic() - began)


@dataclass(slots=True)
class _MirrorWrite:
    """One write of a mirrored event.

    may_invite: the server may invite attendees. entry: the desired event; None: remove it. href,
    etag: as last known. is_afresh: keep nothing of the object at the provider.
    """

    provider: Provider
    access: CalendarAccess
    may_invite: bool
    uid: str
    href: str
    etag: str
    entry: MirroredEvent | None
    is_afresh: bool = False
    ends: float = 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds for the next request. Raises ProviderError if no time is left."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise ProviderError("unreachable", detail=TOO_LATE)
        return min(left, REQUEST_DEADLINE)

    def put(self, entry: MirroredEvent) -> StoredObject:
        """Create or update the object.

        Raises ProviderError, ForeignObject, and PreconditionFailed if it changed in every round.
        """
        if not self.href:
            self.href = self._locate()
            try:
                return self._create(entry)
            except PreconditionFailed:
                pass  # created by an attempt whose response was lost, or by the calendar's owner
        for _ in range(ROUNDS):
            try:
                return self._update_remote_event(entry)
            except PreconditionFailed:
                continue
        raise PreconditionFailed

    @property
    def _format(self) -> EventFormat:
        return self.provider.event_format

    def _locate(self) -> str:
        return self.provider.locate(self.access, self.uid, deadline=self.seconds_left)

    def _create(self, entry: MirroredEvent) -> StoredObject:
        return self._write(entry, self._format.compose_event(entry), etag="")

    def _update_remote_event(self, entry: MirroredEvent) -> StoredObject:
        remote_object = self.provider.read_object(
            self.access, self.href, deadline=self.seconds_left
        )
        if remote_object is None:
            self.href = self._locate()
            return self._create(entry)
        write = self._format.replace_event if self.is_afresh else self._format.update_event
        text = write(remote_object.text, entry)
        if text is None:
            return self._stored(entry, remote_object, remote_object.text)
        return self._write(entry, text, remote_object.etag)

    def _write(self, entry: MirroredEvent, text: str, etag: str) -> StoredObject:
        remote_object = self.provider.put(
            self.access, self.href, text, etag, deadline=self.seconds_left
        )
        if entry.guests and self.may_invite and not remote_object.text:
            with suppress(ProviderError):  # the write itself has succeeded
                found = self.provider.read_object(
                    self.access, remote_object.href, deadline=self.seconds_left
                )
                remote_object = remote_object._replace(text=found.text if found else "")
        if entry.conference:
            remote_object = self._with_link(remote_object)
        return self._stored(entry, remote_object, text)

    def _with_link(self, remote_object: RemoteObject) -> RemoteObject:
        """Read the event again until it has the link of its video call, for a few seconds.

        A link that comes later is found by the next sync.
        """
        for _ in range(LINK_READS):
            if self._format.read_conference_url(remote_object.text):
                break
            time.sleep(LINK_PAUSE)
            with suppress(ProviderError):
                found = self.provider.read_object(
                    self.access, remote_object.href, deadline=self.seconds_left
                )
                remote_object = found or remote_object
        return remote_object

    def _stored(self, entry: MirroredEvent, remote_object: RemoteObject, text: str) -> StoredObject:
        """Return the object with what the server says about its invitations, and the guests'
        answers. text: the written one, if the server did not return what it has stored.
        """
        link = self._format.read_conference_url(remote_object.text) if entry.conference else ""
        link = link if is_link(link) else ""
        if not entry.guests:
            return StoredObject(remote_object.href, remote_object.etag, link=link)
        guests = canonical_addresses(guest.address for guest in entry.guests)
        answers = self._format.read_answers(remote_object.text or text, self.uid, guests)
        return StoredObject(
            remote_object.href,
            remote_object.etag,
            self._format.read_invitations(remote_object.text, self.uid, guests),
            {address: answer.response for address, answer in answers.items()},
            link,
        )

    def remove(self) -> StoredObject:
        """Delete the object. Raises ProviderError, PreconditionFailed."""
        if self.href and self.etag:
            try:
                self.provider.delete(self.access, self.href, self.etag, deadline=self.seconds_left)
                return StoredObject()
            except PreconditionFailed:
                pass
        href = self.href or self._locate()
        if not href:
            return StoredObject()
        for _ in range(ROUNDS):
            remote_object = self.provider.read_object(self.access, href, deadline=self.seconds_left)
            if remote_object is None or not self._format.has_uid(remote_object.text, self.uid):
                return StoredObject()
            try:
                self.provider.delete(
                    self.access, href, remote_object.etag, deadline=self.seconds_left
                )
                return StoredObject()
            except PreconditionFailed:
                continue
        raise PreconditionFailed
