"""Who did what, and when a booking completes by itself."""

from datetime import datetime, timedelta
from typing import NamedTuple

from bookings.graphs import Graph
from bookings.models import Booking, StateChange
from scheduling.api.sql import insert_rows

COMPLETES_AFTER = timedelta(hours=1)


class Actor(NamedTuple):
    """Who changes a booking, through which door (one of StateChange.SOURCES)."""

    name: str
    source: str


TIMER = Actor(name="", source="timer")


def completes_at_of(graph: Graph, state: str, end: datetime) -> datetime | None:
    return end + COMPLETES_AFTER if graph.is_live(state) else None


def log_step(
    booking: Booking,
    action: str,
    from_state: str,
    actor: Actor,
    now: datetime,
    message: str = "",
) -> None:
    change = StateChange(
        booking=booking,
        from_state=from_state,
        to_state=booking.state,
        action=action,
        actor=actor.name,
        source=actor.source,
        message=message,
        created_at=now,
    )
    insert_rows([change])
