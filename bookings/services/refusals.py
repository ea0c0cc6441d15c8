"""What is refused, and what is free instead."""

from typing import Any

from availability.placement import (
    Claim,
    NotAvailable,
    SlotTaken,
    find_alternatives,
    find_conflicts,
    render_span,
)
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.places import Place
from scheduling.api.errors import Refusal


class ActionNotAllowed(Refusal):
    """The graph does not lead on from the booking's state by this action."""

    code = "action_not_allowed"

    def __init__(self, booking: Booking, action: str) -> None:
        super().__init__(
            f"Cannot apply action '{action}' to current state '{booking.state}'",
            state=booking.state,
            available_actions=GRAPHS[booking.graph].actions(booking.state),
        )


class PolicyViolated(Refusal):
    """The project's policy does not let customers do this (any more)."""

    code = "policy"

    def __init__(self, policy: str, limit: Any) -> None:
        super().__init__(f"The policy {policy} does not allow this.", policy=policy, limit=limit)


def offer_alternatives(refusal: SlotTaken | NotAvailable, claim: Claim, place: Place) -> None:
    """Name the conflict and the next free times, now that the refused attempt is undone."""
    resources = place.rules.resources
    # The database's guard refuses without a word on what is in the way.
    if isinstance(refusal, SlotTaken) and not refusal.fields["conflicts"]:
        conflicts = find_conflicts(
            claim, [resource.id for resource in resources], without=claim.holds
        )
        refusal.fields["conflicts"] = [render_span(*conflict) for conflict in conflicts]
    refusal.fields["alternatives"] = find_alternatives(
        claim, resources, mode=place.mode, now=place.now
    )
