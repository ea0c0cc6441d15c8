"""Which copies of bookings' events are to stand in connected calendars, and which not any more."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Q

from availability.models import Event
from availability.targets import Targets
from bookings.graphs import GRAPHS
from bookings.models import Booking
from external_calendars.models import WrittenEvent
from notifications.breaker import endpoint_of
from notifications.mail.invitations import uid_of
from notifications.models import Delivery

COMPLETED = "completed"
LONGEST_HREF, LONGEST_ETAG = 1000, 300  # as their columns
EXPIRES_AFTER = timedelta(hours=76)


class Copy(NamedTuple):
    """The copy of an event in a calendar about which something is to be done: it is to stand there,
    as the booking says, or not any more. The booking of a group's event is its owner's."""

    booking_id: uuid.UUID
    row: WrittenEvent
    is_wanted: bool

    def delivery_values(self, now: datetime) -> dict[str, Any]:
        """What every delivery that does it says, whatever caused it."""
        row = self.row
        return {
            "type": Delivery.CALENDAR,
            "content": {"event_id": str(row.event_id), "calendar_id": str(row.calendar_id)},
            "endpoint": endpoint_of(row.calendar.provider_id),
            "expires_at": now + EXPIRES_AFTER,
        }


def stands(booking: Booking) -> bool:
    """Whether its event is to stand in calendars: it takes place, or has taken place. What is only
    asked for, or waits for its payment, does not."""
    return booking.state == COMPLETED or GRAPHS[booking.graph].is_live(booking.state)


def note_copies(event_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, list[Copy]]:
    """By event of a booking (its companions come with it), what is to be written and what to be
    taken away, the latter first; the rows of new copies are made.

    In the transaction of the change, so that whoever reads the calendar knows our UIDs before the
    first byte leaves. Five statements, and two more where copies are new or come back.
    """
    bookings = {
        booking.event_id: booking
        for booking in Booking.objects.filter(event__in=event_ids, owner_booking=None)
    }
    events = list(Event.objects.filter(Q(id__in=bookings) | Q(main__in=bookings)).order_by("id"))
    targets = Targets(events)
    there = _written(events)
    found: dict[uuid.UUID, list[Copy]] = defaultdict(list)
    new, back = [], []
    for event in events:
        main_id = event.main_id or event.id
        booking = bookings[main_id]
        wanted = targets.of(event) if stands(booking) else None
        row = None
        for one in there[event.id]:
            if one.calendar == wanted:
                row = one
            elif one.state != WrittenEvent.REMOVED and one.is_reachable:
                found[main_id].append(Copy(booking.id, one, False))
        if wanted is None:
            continue
        if row is None:
            # The main event's UID is that of the booking's entries in mails.
            uid = uid_of(event.id if event.main_id else booking.id)
            row = WrittenEvent(event=event, calendar=wanted, uid=uid)
            new.append(row)
        elif row.state == WrittenEvent.REMOVED:
            row.state, row.href, row.etag, row.reason = WrittenEvent.PENDING, "", "", ""
            back.append(row)
        found[main_id].append(Copy(booking.id, row, True))
    # Another transaction may have made the same row meanwhile: one is enough.
    WrittenEvent.objects.bulk_create(new, ignore_conflicts=True)
    WrittenEvent.objects.bulk_update(back, ["state", "href", "etag", "reason"])
    return dict(found)


def _written(events: Sequence[Event]) -> Mapping[uuid.UUID, list[WrittenEvent]]:
    rows = WrittenEvent.objects.filter(event__in=[event.id for event in events])
    found: dict[uuid.UUID, list[WrittenEvent]] = defaultdict(list)
    for row in rows.select_related("calendar__connection").order_by("id"):
        found[row.event_id].append(row)
    return found
