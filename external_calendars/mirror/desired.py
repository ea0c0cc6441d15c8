"""Which events of bookings should be mirrored to which connected calendars."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Q

from availability.models import VISIT, Event
from availability.reserve.destination_calendar import DestinationCalendars
from bookings.graphs import GRAPHS
from bookings.models import Booking
from external_calendars.models import Connection, WrittenEvent
from external_calendars.providers import PROVIDERS
from notifications.mail.invitations import entry_uid
from notifications.models import Delivery
from notifications.outbox.circuit_breaker import endpoint_of

COMPLETED = "completed"
MAX_HREF, MAX_ETAG = 1000, 300  # as their columns
EXPIRES_AFTER = timedelta(hours=76)


class DesiredCopy(NamedTuple):
    """An event that should exist in a calendar (is_wanted) or be removed from it.

    booking_id: of a group's event, the group's booking, not a seat's.
    """

    booking_id: uuid.UUID
    row: WrittenEvent
    is_wanted: bool

    def delivery_values(self, now: datetime) -> dict[str, Any]:
        """Return the values common to all deliveries for this copy, whatever caused them."""
        row = self.row
        return {
            "type": Delivery.CALENDAR,
            "content": {"event_id": str(row.event_id), "calendar_id": str(row.calendar_id)},
            "endpoint": mirror_endpoint(row.calendar.connection),
            "expires_at": now + EXPIRES_AFTER,
        }


def mirror_endpoint(connection: Connection) -> str:
    """Return the lane of writes to the calendar: its server; with OAuth, the account there.

    Google and Microsoft limit each account, and the trouble of one account is not another's.
    """
    endpoint = endpoint_of(connection.calendar.provider_id)
    return f"{endpoint}/{connection.grant_id}" if connection.grant_id else endpoint


def should_be_mirrored(booking: Booking) -> bool:
    """Return whether the booking is live or completed, not just requested or awaiting payment."""
    return booking.state == COMPLETED or GRAPHS[booking.graph].is_live(booking.state)


def reconcile_copies(event_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, list[DesiredCopy]]:
    """Return main event id -> copies to remove or write, for each event and its companions.

    Creates the rows of new copies in the transaction of the change, because a sync must know our
    UIDs before the first byte is sent. Five statements, two more if copies are new or come back.
    """
    bookings = {
        booking.event_id: booking
        for booking in Booking.objects.filter(event__in=event_ids, owner_booking=None)
    }
    rows = Event.objects.filter(Q(id__in=bookings) | Q(main__in=bookings), is_further_unit=None)
    events = list(rows.order_by("id"))
    targets = DestinationCalendars(events)
    written_events = _written(events)
    copies: dict[uuid.UUID, list[DesiredCopy]] = defaultdict(list)
    new, back = [], []
    for event in events:
        main_id = event.main_id or event.id
        booking = bookings[main_id]
        is_mirrored = should_be_mirrored(booking) and event.step != VISIT
        target_calendar = targets.of(event) if is_mirrored else None
        row = None
        for each_row in written_events[event.id]:
            if each_row.calendar == target_calendar:
                row = each_row
            elif each_row.state != WrittenEvent.REMOVED and each_row.is_reachable:
                copies[main_id].append(DesiredCopy(booking.id, each_row, False))
        if target_calendar is None:
            continue
        if row is None:
            # The main event has the UID of the booking's invitations in mails.
            uid = entry_uid(event.id if event.main_id else booking.calendar_uid)
            uid = PROVIDERS[target_calendar.provider].new_uid(uid)
            row = WrittenEvent(event=event, calendar=target_calendar, uid=uid)
            new.append(row)
        elif row.state == WrittenEvent.REMOVED:
            row.state, row.href, row.etag, row.reason = WrittenEvent.PENDING, "", "", ""
            back.append(row)
        copies[main_id].append(DesiredCopy(booking.id, row, True))
    # Another transaction may have created the same row meanwhile.
    WrittenEvent.objects.bulk_create(new, ignore_conflicts=True)
    WrittenEvent.objects.bulk_update(back, ["state", "href", "etag", "reason"])
    return dict(copies)


def _written(events: Sequence[Event]) -> Mapping[uuid.UUID, list[WrittenEvent]]:
    rows = WrittenEvent.objects.filter(event__in=[event.id for event in events])
    events_by_id: dict[uuid.UUID, list[WrittenEvent]] = defaultdict(list)
    for row in rows.select_related("calendar__connection").order_by("id"):
        events_by_id[row.event_id].append(row)
    return events_by_id
