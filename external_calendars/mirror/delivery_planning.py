"""Plan the deliveries that mirror a booking's change to connected calendars."""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db import connection

from bookings.conferences import is_made_by
from bookings.graphs import GRAPHS
from bookings.services import CONFERENCE, Transition
from common.db.sql import id_param
from external_calendars.mirror.desired import COMPLETED, reconcile_copies
from notifications.models import Delivery
from notifications.planning import delivery_planners, event_of, new_delivery

WRITTEN_CHANGES = frozenset(
    {
        *("what", "where", "description", "quantity"),
        *("customer name", "customer email", "customer phone"),
        CONFERENCE,
    }
)


@delivery_planners.register
def plan_writes(transitions: Sequence[Transition]) -> Mapping[Transition, Sequence[Delivery]]:
    """Plan one delivery for each mirrored event that has to change.

    The transition of the event's own booking, or of the first of its seats, causes the delivery.
    The delivery belongs to the booking that owns the event, so that deliveries keep their order.
    """
    transitions_by_event: dict[uuid.UUID, Transition] = {}
    for transition in transitions:
        if _changes_copies(transition):
            event_id, is_seat = transition.booking.event_id, transition.booking.owner_booking_id
            transitions_by_event[event_id] = (
                transitions_by_event.get(event_id, transition) if is_seat else transition
            )
    if not transitions_by_event or not _has_connected(transitions[0].booking.app_id):
        return {}
    planned: dict[Transition, list[Delivery]] = defaultdict(list)
    for event_id, copies in reconcile_copies(transitions_by_event).items():
        transition = transitions_by_event[event_id]
        for copy in copies:
            if _adds_link(transition) and is_made_by(copy.row.calendar, copy.row.event):
                continue  # the event at the provider has the link already
            values = copy.delivery_values(transition.change.created_at)
            if transition.edit and transition.edit.former_addresses:
                values["content"] |= {"former": list(transition.edit.former_addresses)}
            row = new_delivery(transition, kind=event_of(transition), **values)
            row.booking_id = copy.booking_id
            planned[transition].append(row)
    return planned


def _adds_link(transition: Transition) -> bool:
    return transition.edit is not None and transition.edit.names == {CONFERENCE}


def _changes_copies(transition: Transition) -> bool:
    """Return whether the booking now takes place, or no longer does.

    Completions, and edits of values that are not mirrored, change nothing.
    """
    if transition.edit and transition.edit.names.isdisjoint(WRITTEN_CHANGES):
        return False
    graph, change = GRAPHS[transition.booking.graph], transition.change
    was_live = graph.is_live(change.from_state)
    return graph.is_live(change.to_state) or (was_live and change.to_state != COMPLETED)


# Raw SQL, because every booking runs it and most apps have no connected calendar
# (docs/benchmarks.md, P6).
_ANY_CONNECTED = """
SELECT 1 FROM availability_calendar calendar
JOIN availability_resource resource ON resource.id = calendar.resource_id
WHERE resource.app_id = %s AND calendar.deleted_at IS NULL AND NOT calendar.provider = 'service'
LIMIT 1
"""


def _has_connected(app_id: uuid.UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_ANY_CONNECTED, [id_param(app_id)])
        return cursor.fetchone() is not None
