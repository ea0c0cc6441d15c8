"""Refusals of the booking services, and the alternatives they carry."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from availability.reserve.events import (
    NotAvailable,
    SlotTaken,
    TimeRequest,
    find_alternatives,
    find_conflicts,
    span_record,
)
from bookings.booking_target import BookingTarget
from bookings.graphs import GRAPHS
from bookings.models import Booking
from common.errors import Refusal


class ActionNotAllowed(Refusal):
    """The graph has no transition for this action from the booking's state."""

    code = "action_not_allowed"

    def __init__(self, booking: Booking, action: str) -> None:
        super().__init__(
            f"Cannot apply action '{action}' to current state '{booking.state}'",
            state=booking.state,
            available_actions=GRAPHS[booking.graph].actions(booking.state),
        )


class ResourceDeleted(ActionNotAllowed):
    """The action needs time of a resource that was deleted."""

    def __init__(self, booking: Booking, action: str) -> None:
        super().__init__(booking, action)
        self.message = "The resource no longer exists."


class PolicyViolated(Refusal):
    """A policy of the project does not allow customers to do this, or no longer allows it."""

    code = "policy"

    def __init__(self, policy: str, limit: Any) -> None:
        super().__init__(f"The policy {policy} does not allow this.", policy=policy, limit=limit)


@contextmanager
def alternatives_on_refusal(time_request: TimeRequest, target: BookingTarget) -> Iterator[None]:
    """Add alternatives to a SlotTaken or NotAvailable raised in the block.

    The block itself must roll back what it has written.
    """
    try:
        yield
    except (SlotTaken, NotAvailable) as refusal:
        offer_alternatives(refusal, time_request, target)
        raise


def offer_alternatives(
    refusal: SlotTaken | NotAvailable, time_request: TimeRequest, target: BookingTarget
) -> None:
    """Add the conflicts and the next free times; call after the rollback of the refused attempt.

    An existing booking that chose its resources may choose others there.
    """
    if target.calendar and (target.has_requirements or target.is_visit):
        target = target.at(None)
    resources = target.rules.resources
    # The database's exclusion guard does not report conflicts.
    if isinstance(refusal, SlotTaken) and not refusal.fields["conflicts"]:
        conflicts = find_conflicts(time_request, [resource.id for resource in resources])
        refusal.fields["conflicts"] = [span_record(*conflict) for conflict in conflicts]
    refusal.fields["alternatives"] = find_alternatives(
        time_request,
        resources,
        mode=target.mode,
        now=target.now,
        alternatives=target.alternatives,
        visit=target.visit,
        fixed=target.fixed,
    )
