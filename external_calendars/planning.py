"""From a change of a booking to the deliveries that write it to calendars elsewhere."""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db import connection

from bookings.graphs import GRAPHS
from bookings.services import Step
from external_calendars.copies import COMPLETED, note_copies
from notifications.models import Delivery
from notifications.planning import event_of, new_delivery, plans
from scheduling.api.sql import raw_id

WRITTEN_CHANGES = frozenset(
    {
        *("what", "where", "description"),
        *("customer name", "customer email", "customer phone"),
    }
)


@plans
def plan_writes(steps: Sequence[Step]) -> Mapping[Step, Sequence[Delivery]]:
    """One delivery of each copy that has to change, caused by the step of its own booking, or by
    that of the first of its seats.

    The deliveries belong to the booking whose event it is, so that they leave in their order.
    """
    told: dict[uuid.UUID, Step] = {}
    for step in steps:
        if _changes_copies(step):
            event_id, is_seat = step.booking.event_id, step.booking.owner_booking_id
            told[event_id] = told.get(event_id, step) if is_seat else step
    if not told or not _has_connected(steps[0].booking.app_id):
        return {}
    planned: dict[Step, list[Delivery]] = defaultdict(list)
    for event_id, copies in note_copies(told).items():
        step = told[event_id]
        for copy in copies:
            values = copy.delivery_values(step.change.created_at)
            if step.edit and step.edit.former_addresses:
                values["content"] |= {"former": list(step.edit.former_addresses)}
            row = new_delivery(step, kind=event_of(step), **values)
            row.booking_id = copy.booking_id
            planned[step].append(row)
    return planned


def _changes_copies(step: Step) -> bool:
    """It takes place now, or does no more. What is over stays as it is, and so do entries that say
    nothing of what has changed."""
    if step.edit and step.edit.names.isdisjoint(WRITTEN_CHANGES):
        return False
    graph, change = GRAPHS[step.booking.graph], step.change
    was_live = graph.is_live(change.from_state)
    return graph.is_live(change.to_state) or (was_live and change.to_state != COMPLETED)


# By hand, because most apps have none and every booking asks (docs/benchmarks.md, P6).
_ANY_CONNECTED = """
SELECT 1 FROM availability_calendar calendar
JOIN availability_resource resource ON resource.id = calendar.resource_id
WHERE resource.app_id = %s AND calendar.deleted_at IS NULL AND NOT calendar.provider = 'service'
LIMIT 1
"""


def _has_connected(app_id: uuid.UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_ANY_CONNECTED, [raw_id(app_id)])
        return cursor.fetchone() is not None
