"""Kinds of webhook calls that are about changes in the feed, not about transitions of bookings."""

DELIVERY_FAILED = "delivery.failed"
# Types whose changes are told, with the actions.
TOLD_TYPES = ("resource", "project")
OBJECT_KINDS = (
    *(f"{kind}.{action}" for kind in TOLD_TYPES for action in ("created", "updated", "deleted")),
    DELIVERY_FAILED,
)
