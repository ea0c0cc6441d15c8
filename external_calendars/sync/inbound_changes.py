"""Changes made at the provider to mirrored events."""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from apps_config.models import App
from availability.conferences import CALENDAR_PROVIDERS, is_link
from availability.models import Calendar
from bookings.conferences import wanted_conference
from bookings.graphs import GRAPHS
from bookings.models import Booking, Customer
from bookings.pages.formatting import first_known_zone
from bookings.services import (
    Actor,
    Answer,
    apply_action,
    record_response,
    reschedule_booking,
    store_conference_link,
)
from bookings.services.responses import CANCELLED
from common.db.calls_outside_transaction import with_calls_outside_transaction
from common.errors import Refusal
from common.ical.occurrences import UnreadableCalendar
from common.messages import cut_message
from common.time.instants import check_year, format_instant, wall_to_utc_or_gap_end
from external_calendars.credentials import credentials_of
from external_calendars.event_formats.base import EventFormat, ForeignObject, RemoteEvent
from external_calendars.mirror.desired import MAX_ETAG
from external_calendars.mirror.server_invitations import invitation_problem
from external_calendars.models import Connection, ExternalObject, WrittenEvent
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import ProviderError, RemoteObject
from notifications.models import Delivery

logger = logging.getLogger(__name__)

FETCH_SECONDS = 15.0
REMOVED = "Removed in the external calendar"
MADE_RECURRING = "The event was made recurring in the external calendar."
CHANGED_ALL_DAY = "The event was changed to or from an all-day event in the external calendar."
UNREADABLE_TIME = "The event's time in the external calendar can't be read."
# How the owner cancels: the first action that the booking's graph offers.
ENDS = ("cancel", "cancel_by_owner", "decline")
# If at least this many events vanish at once and none is left, the calendar was emptied: nobody
# cancels all bookings that way.
EMPTIED = 5
# How long after the write the link of a video call is looked for.
LINK_AWAITED = timedelta(hours=1)
# States in which the event is believed to exist at the provider.
EXISTS_THERE = (WrittenEvent.WRITTEN, WrittenEvent.MOVED_THERE, WrittenEvent.REFUSED)

Span = tuple[datetime, datetime]


def apply_inbound_changes(connection: Connection, *, now: datetime) -> None:
    """Compare mirrored events with the last sync and follow the changes if the app wants that.

    Called after every complete sync, outside a transaction.

    1. Find the mirrored events whose object has another etag than ours, is gone, or is back.
    2. Fetch their current objects in one request, without a lock: a write may have changed them
       since the sync.
    3. Settle each in a transaction: lock, check that neither a write nor the booking has changed
       since step 1, compare, and move or cancel the booking, or record the reason for not doing so.

    An unsettled change (the server fails, a write is open) still differs at the next sync.
    """
    calendar = Calendar.objects.select_related("resource__app").get(id=connection.calendar_id)
    rows = list(_changed_rows(calendar, now))
    if not rows:
        return
    hrefs = [row.seen_at or row.href for row in rows]
    try:
        objects = _fetch(connection, calendar, [href for href in hrefs if href])
    except ProviderError as provider_error:
        logger.info("edits in calendar %s: %s", calendar.id, provider_error)
        return
    follows = calendar.resource.app.follows_edits
    missing = [row for row, href in zip(rows, hrefs, strict=True) if href not in objects]
    if (
        follows
        and len(missing) >= EMPTIED
        and len(missing) == _mirrored_events(calendar, now).count()
    ):
        logger.warning("calendar %s was emptied: no booking is cancelled", calendar.id)
        follows = False
    for row, href in zip(rows, hrefs, strict=True):
        _InboundChange(calendar, row, objects.get(href), now, follows).apply()


def _mirrored_events(calendar: Calendar, now: datetime) -> QuerySet[WrittenEvent]:
    """Return the mirrored events that have not ended; changes to others are ignored."""
    return WrittenEvent.objects.filter(
        calendar=calendar, state__in=EXISTS_THERE, event__end__gt=now
    )


def _changed_rows(calendar: Calendar, now: datetime) -> QuerySet:
    """Return rows whose object has another etag than ours or is gone, and rows that came back."""
    objects = ExternalObject.objects.filter(connection=calendar.id, uid=OuterRef("uid"))
    rows = WrittenEvent.objects.filter(calendar=calendar, event__end__gt=now).annotate(
        seen=Subquery(objects.values("etag")[:1]),
        seen_at=Subquery(objects.values("href")[:1]),
    )
    gone_or_other = Q(state__in=EXISTS_THERE) & (Q(seen_at=None) | ~Q(seen=F("etag")))
    back = Q(state=WrittenEvent.REMOVED_THERE, seen_at__isnull=False)
    # Video calls whose link came after the write, or was not stored because a process ended.
    lacks_link = Q(
        state=WrittenEvent.WRITTEN,
        written_at__gt=now - LINK_AWAITED,
        event__conference_provider__in=[
            kind for kind, maker in CALENDAR_PROVIDERS.items() if maker == calendar.provider
        ],
        event__conference_url="",
    )
    return rows.filter(gone_or_other | back | lacks_link).select_related("event").order_by("id")


def _customers_of(booking: Booking) -> QuerySet[Customer]:
    """Return the customers of the booking and of its seats that take place, in order of locking."""
    of_seats = Q(booking__owner_booking=booking, booking__completed=False)
    return Customer.objects.filter(Q(booking=booking) | of_seats).order_by("booking", "id")


def _fetch(
    connection: Connection, calendar: Calendar, hrefs: Sequence[str]
) -> Mapping[str, RemoteObject]:
    """Return href -> current object. Raises ProviderError."""
    provider = PROVIDERS[calendar.provider]
    batches = provider.fetch(credentials_of(connection), hrefs, deadline=FETCH_SECONDS)
    return (
        {remote_object.href: remote_object for batch in batches for remote_object in batch}
        if hrefs
        else {}
    )


@dataclass(frozen=True, slots=True)
class _InboundChange:
    """One mirrored event and its object at the provider; None if it is gone."""

    calendar: Calendar
    row: WrittenEvent
    remote_object: RemoteObject | None
    now: datetime
    follows: bool

    @property
    def app(self) -> App:
        return self.calendar.resource.app

    @property
    def _format(self) -> EventFormat:
        return PROVIDERS[self.calendar.provider].event_format

    @with_calls_outside_transaction
    def apply(self) -> None:
        """Apply or record the change, unless a write or the booking has changed meanwhile.

        If a move needs a free/busy check of other calendars, the transaction is rolled back, the
        check runs, and the change is settled again with its result.
        """
        event = self.row.event
        bookings = Booking.objects.filter(event=event.main_id or event.id, owner_booking=None)
        with transaction.atomic():
            # The booking first, then its rows: everything that changes bookings locks in this
            # order, so there is no deadlock.
            booking = bookings.select_for_update(no_key=True, of=("self",)).first()
            rows = WrittenEvent.objects.select_for_update()
            same = rows.filter(id=self.row.id, etag=self.row.etag, state=self.row.state).first()
            if booking is None or same is None or self._is_being_written(booking):
                return
            booking = bookings.select_related("event").get(id=booking.id)
            self._compare(booking)

    def _is_being_written(self, booking: Booking) -> bool:
        """Return whether a write of this event is open.

        The provider may already have the write while its result is not stored here. The difference
        would then be followed as if a person had made it.
        """
        ours = {"event_id": str(self.row.event_id), "calendar_id": str(self.calendar.id)}
        rows = Delivery.objects.open().filter(booking=booking, type=Delivery.CALENDAR)
        contents = rows.values_list("content", flat=True)
        return any(ours.items() <= content.items() for content in contents)

    def _compare(self, booking: Booking) -> None:
        try:
            remote_event = self._read_remote_event()
        except UnreadableCalendar:
            # Cannot tell whether it was moved or removed.
            self._store_result(self.row.state, self.row.reason, None)
            return
        if remote_event is None or remote_event.is_cancelled:
            self._apply_removal(booking)
            return
        self._store_link(booking)
        span = self._span_of(remote_event)
        if self._record_answers(booking):
            self._store_result(self.row.state, self.row.reason, span)
            return
        own = (booking.event.start, booking.event.end)
        is_other_kind = isinstance(remote_event.start, datetime) == booking.event.all_day
        if remote_event.is_recurring:
            self._store_result(WrittenEvent.MOVED_THERE, MADE_RECURRING, span)
        elif is_other_kind:
            self._store_result(WrittenEvent.MOVED_THERE, CHANGED_ALL_DAY, span)
        elif span == own:
            self._store_invitations(span)
        elif span == (self.row.start, self.row.end):
            self._store_result(self.row.state, self.row.reason, span)
        elif span is None:
            self._store_result(WrittenEvent.REFUSED, UNREADABLE_TIME, None)
        else:
            self._apply_move(booking, span)

    def _store_link(self, booking: Booking) -> None:
        text = self.remote_object.text if self.remote_object else ""
        link = self._format.read_conference_url(text)
        if wanted_conference(booking) and is_link(link):
            store_conference_link(self.row.event_id, link, now=self.now)

    def _read_remote_event(self) -> RemoteEvent | None:
        """Return the event at the provider; None if it is gone. Raises UnreadableCalendar."""
        if self.remote_object is None:
            return None
        try:
            return self._format.read_remote_event(self.remote_object.text, self.row.uid)
        except ForeignObject:
            return None

    def _span_of(self, remote_event: RemoteEvent) -> Span | None:
        """Return start and end; None if the length is not positive or the years are out of range.

        Dates and floating times are in the resource's zone.
        """
        zone_name = first_known_zone(self.calendar.resource.timezone)
        try:
            start, end = (
                _instant(moment, zone_name) for moment in (remote_event.start, remote_event.end)
            )
        except (ValueError, OverflowError):
            return None
        return (start, end) if start < end else None

    def _record_answers(self, booking: Booking) -> bool:
        """Store the answers that guests have given since the last sync, of a group those of its
        seats. Return whether one of them has cancelled the booking.
        """
        customers = defaultdict(list)
        for row in _customers_of(booking):
            customers[row.address].append(row)
        text = self.remote_object.text if self.remote_object else ""
        answers = self._format.read_answers(text, self.row.uid, customers)
        known = self.row.answers or {}
        results = [
            record_response(
                app=self.app,
                customer=customer,
                answer=Answer(answer.response, min(answer.at or self.now, self.now)),
                actor=self._actor,
                now=self.now,
            )
            for address, answer in answers.items()
            if answer.response != known.get(address)
            for customer in customers[address]
        ]
        self._update(answers={address: answer.response for address, answer in answers.items()})
        return booking.max_seats is None and CANCELLED in results

    # --- Actions ----------------------------------------------------------------------------------
    def _apply_move(self, booking: Booking, span: Span) -> None:
        when = format_instant(span[0], self.calendar.resource.timezone)
        moved = f"Moved to {when} in the external calendar"
        if not self.follows:
            reason = f"{moved}. The booking is unchanged."
            self._store_result(WrittenEvent.MOVED_THERE, reason, span)
            return
        # Before the move, so that the write that the move plans finds this row.
        self._store_result(WrittenEvent.WRITTEN, "", span)
        try:
            with transaction.atomic():
                reschedule_booking(
                    app=self.app,
                    booking_id=booking.id,
                    start=span[0],
                    end=span[1],
                    calendar=None,
                    actor=self._actor,
                    now=self.now,
                )
        except Refusal as refusal:
            reason = f"{moved}, but the booking can't be moved: {refusal.message}"
            self._store_result(WrittenEvent.REFUSED, reason, span)

    def _apply_removal(self, booking: Booking) -> None:
        if not self.follows:
            self._mark_copy_removed(f"{REMOVED}. The booking is unchanged.")
            return
        offered = GRAPHS[booking.graph].actions(booking.state)
        action = next((ending for ending in ENDS if ending in offered), None)
        if action is None:
            self._mark_copy_removed(f"{REMOVED}. The booking is {booking.state}.")
            return
        try:
            with transaction.atomic():
                apply_action(
                    app=self.app,
                    booking_id=booking.id,
                    action=action,
                    actor=self._actor,
                    now=self.now,
                )
        except Refusal as refusal:
            self._mark_copy_removed(
                f"{REMOVED}, but the booking can't be cancelled: {refusal.message}"
            )

    @property
    def _actor(self) -> Actor:
        return Actor(name=self.calendar.name, source="calendar")

    def _store_result(self, state: str, reason: str, span: Span | None) -> None:
        """Store the provider's object as known: it no longer counts as a change."""
        start, end = span or (self.row.start, self.row.end)
        self._update(
            state=state,
            reason=cut_message(reason, 300),
            start=start,
            end=end,
            href=self.remote_object.href if self.remote_object else "",
            etag=self.remote_object.etag[:MAX_ETAG] if self.remote_object else "",
        )

    def _store_invitations(self, span: Span) -> None:
        """Store the object, which is as the booking, and whom its server has invited meanwhile."""
        text, known = self.remote_object.text if self.remote_object else "", self.row.invitations
        invitations = self._format.read_invitations(text, self.row.uid, known) if known else {}
        self._store_result(WrittenEvent.WRITTEN, invitation_problem(invitations), span)
        self._update(invitations=invitations)

    def _mark_copy_removed(self, reason: str) -> None:
        self._update(
            state=WrittenEvent.REMOVED_THERE, reason=cut_message(reason, 300), href="", etag=""
        )

    def _update(self, **values: Any) -> None:
        WrittenEvent.objects.filter(id=self.row.id).update(**values)


def _instant(value: datetime | date, zone_name: str) -> datetime:
    """Return the instant in UTC and whole seconds. Raises ValueError, OverflowError."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    value = value.replace(microsecond=0)
    if value.tzinfo is None:
        return check_year(wall_to_utc_or_gap_end(value, zone_name))
    return check_year(value.astimezone(UTC))
