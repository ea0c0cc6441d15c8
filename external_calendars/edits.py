"""What others did, in the calendar elsewhere, to the events that we wrote there."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery

from apps_config.models import App
from availability.models import Calendar
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.services import Actor, apply_action, reschedule
from bookings.wording import known_zone
from external_calendars.access import access_of
from external_calendars.copies import LONGEST_ETAG
from external_calendars.entries import NotOurs, Standing, read_standing
from external_calendars.models import Connection, ExternalObject, WrittenEvent
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import Object, Trouble
from external_calendars.reading import Unreadable
from notifications.models import Delivery
from scheduling.api.beforehand import asks_first
from scheduling.api.errors import Refusal
from scheduling.api.instants import check_year, format_instant, wall_to_utc_or_gap_end

logger = logging.getLogger(__name__)

FETCH_SECONDS = 15.0
# What the owner does when the meeting is off: the first that the booking's graph offers.
ENDS = ("cancel", "cancel_by_owner", "decline")
# A calendar from which so many vanish at once, and none is left, was emptied: nobody calls off
# all that he has to do.
EMPTIED = 5
# Those of which something stands there, as far as is known.
THERE = (WrittenEvent.WRITTEN, WrittenEvent.MOVED_THERE, WrittenEvent.REFUSED)

Span = tuple[datetime, datetime]


def follow_edits(connection: Connection, *, now: datetime) -> None:
    """Compare what was written with what the last look saw, and act as the app chose.

    Called after every look that went through to its end, outside of a transaction. Asks the server
    for what differs, and for nothing else: between the look and now we may have written ourselves.
    """
    calendar = Calendar.objects.select_related("resource__app").get(id=connection.calendar_id)
    rows = list(_differing(calendar, now))
    if not rows:
        return
    hrefs = [row.seen_at or row.href for row in rows]
    try:
        objects = _fetch(connection, calendar, [href for href in hrefs if href])
    except Trouble as trouble:
        logger.info("edits in calendar %s: %s", calendar.id, trouble)
        return  # the next look sees them again
    follows = calendar.resource.app.follows_edits
    gone = [row for row, href in zip(rows, hrefs, strict=True) if href not in objects]
    if follows and len(gone) >= EMPTIED and len(gone) == _written(calendar, now).count():
        logger.warning("calendar %s was emptied: no booking is cancelled", calendar.id)
        follows = False
    for row, href in zip(rows, hrefs, strict=True):
        _Edit(calendar, row, objects.get(href), now, follows).settle()


def _written(calendar: Calendar, now: datetime) -> Any:
    """Of bookings that have not ended: what is done to the others afterwards is tidying up."""
    return WrittenEvent.objects.filter(calendar=calendar, state__in=THERE, event__end__gt=now)


def _differing(calendar: Calendar, now: datetime) -> Any:
    """Rows whose object the last look saw otherwise, or not at all, and those that came back."""
    objects = ExternalObject.objects.filter(connection=calendar.id, uid=OuterRef("uid"))
    rows = WrittenEvent.objects.filter(calendar=calendar, event__end__gt=now).annotate(
        seen=Subquery(objects.values("etag")[:1]),
        seen_at=Subquery(objects.values("href")[:1]),
    )
    gone_or_other = Q(state__in=THERE) & (Q(seen_at=None) | ~Q(seen=F("etag")))
    back = Q(state=WrittenEvent.REMOVED_THERE, seen_at__isnull=False)
    return rows.filter(gone_or_other | back).select_related("event").order_by("id")


def _fetch(
    connection: Connection, calendar: Calendar, hrefs: Sequence[str]
) -> Mapping[str, Object]:
    """What stands there now. Raises Trouble."""
    provider = PROVIDERS[calendar.provider]
    batches = provider.fetch(access_of(connection), hrefs, deadline=FETCH_SECONDS)
    return {one.href: one for batch in batches for one in batch} if hrefs else {}


@dataclass(frozen=True, slots=True)
class _Edit:
    """One copy, and what stands there of it: None, where it is gone."""

    calendar: Calendar
    row: WrittenEvent
    there: Object | None
    now: datetime
    follows: bool

    @property
    def app(self) -> App:
        return self.calendar.resource.app

    @asks_first
    def settle(self) -> None:
        """Do what is to be done about it, if neither we nor the booking have gone on meanwhile.

        Where a move has to ask other calendars, the transaction is undone, they are asked, and the
        edit is settled once more with their answers.
        """
        event = self.row.event
        bookings = Booking.objects.filter(event=event.main_id or event.id, owner_booking=None)
        with transaction.atomic():
            # A booking first, what belongs to it then: as whoever changes it.
            booking = bookings.select_for_update(no_key=True, of=("self",)).first()
            rows = WrittenEvent.objects.select_for_update()
            same = rows.filter(id=self.row.id, etag=self.row.etag, state=self.row.state).first()
            if booking is None or same is None or self._is_being_written(booking):
                return
            booking = bookings.select_related("event").get(id=booking.id)
            self._compare(booking)

    def _is_being_written(self, booking: Booking) -> bool:
        ours = {"event_id": str(self.row.event_id), "calendar_id": str(self.calendar.id)}
        rows = Delivery.objects.open().filter(booking=booking, type=Delivery.CALENDAR)
        contents = rows.values_list("content", flat=True)
        return any(ours.items() <= content.items() for content in contents)

    def _compare(self, booking: Booking) -> None:
        try:
            standing = self._standing()
        except Unreadable:
            # Neither moved nor gone, as far as anybody can tell.
            self._keep(self.row.state, self.row.reason, None)
            return
        if standing is None or standing.is_cancelled:
            self._take_removal(booking)
            return
        span = self._span_of(standing)
        own = (booking.event.start, booking.event.end)
        is_other_kind = isinstance(standing.start, datetime) == booking.event.all_day
        if standing.is_recurring:
            self._keep(WrittenEvent.MOVED_THERE, "It is repeated there.", span)
        elif is_other_kind:
            self._keep(
                WrittenEvent.MOVED_THERE, "It takes whole days there, or does no more.", span
            )
        elif span == own:
            self._keep(WrittenEvent.WRITTEN, "", span)
        elif span == (self.row.start, self.row.end):
            self._keep(self.row.state, self.row.reason, span)
        elif span is None:
            self._keep(WrittenEvent.REFUSED, "Its time there can't be read.", None)
        else:
            self._take_move(booking, span)

    def _standing(self) -> Standing | None:
        """None where it is gone. Raises Unreadable."""
        if self.there is None:
            return None
        try:
            return read_standing(self.there.text, self.row.uid)
        except NotOurs:
            return None

    def _span_of(self, standing: Standing) -> Span | None:
        """Dates and floating times are those of the resource's wall clock; None: it has no length,
        or lies beyond the years that the service knows."""
        zone_name = known_zone(self.calendar.resource.timezone)
        try:
            start, end = (_instant(one, zone_name) for one in (standing.start, standing.end))
        except (ValueError, OverflowError):
            return None
        return (start, end) if start < end else None

    # --- What follows -----------------------------------------------------------------------------
    def _take_move(self, booking: Booking, span: Span) -> None:
        when = format_instant(span[0], self.calendar.resource.timezone)
        if not self.follows:
            reason = f"Moved there to {when}; the booking stays where it is."
            self._keep(WrittenEvent.MOVED_THERE, reason, span)
            return
        # First, so that what the move plans finds it: a write that settles the text.
        self._keep(WrittenEvent.WRITTEN, "", span)
        try:
            with transaction.atomic():
                reschedule(
                    app=self.app,
                    booking_id=booking.id,
                    start=span[0],
                    end=span[1],
                    calendar=None,
                    actor=self._actor,
                    now=self.now,
                )
        except Refusal as refusal:
            reason = f"Moved there to {when}, which can't be followed: {refusal.message}"
            self._keep(WrittenEvent.REFUSED, reason, span)

    def _take_removal(self, booking: Booking) -> None:
        if not self.follows:
            self._keep_removed(WrittenEvent.REMOVED_THERE, "Removed there; the booking stands.")
            return
        offered = GRAPHS[booking.graph].actions(booking.state)
        action = next((one for one in ENDS if one in offered), None)
        if action is None:
            self._keep_removed(
                WrittenEvent.REMOVED_THERE, f"Removed there; the booking is {booking.state}."
            )
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
            reason = f"Removed there, which can't be followed: {refusal.message}"
            self._keep_removed(WrittenEvent.REMOVED_THERE, reason)

    @property
    def _actor(self) -> Actor:
        return Actor(name=self.calendar.name, source="calendar")

    def _keep(self, state: str, reason: str, span: Span | None) -> None:
        """Nothing of what stands there is news any more."""
        start, end = span or (self.row.start, self.row.end)
        self._update(
            state=state,
            reason=reason[:300],
            start=start,
            end=end,
            href=self.there.href,
            etag=self.there.etag[:LONGEST_ETAG],
        )

    def _keep_removed(self, state: str, reason: str) -> None:
        self._update(state=state, reason=reason[:300], href="", etag="")

    def _update(self, **values: Any) -> None:
        WrittenEvent.objects.filter(id=self.row.id).update(**values)


def _instant(value: datetime | date, zone_name: str) -> datetime:
    """In UTC and whole seconds. Raises ValueError (InstantError is one), OverflowError."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    value = value.replace(microsecond=0)
    if value.tzinfo is None:
        return check_year(wall_to_utc_or_gap_end(value, zone_name))
    return check_year(value.astimezone(UTC))
