"""Queue one delivery that no change of a booking plans."""

from datetime import datetime
from typing import Any

from common.db.updated_at import transaction_start
from notifications.models import Delivery
from notifications.outbox.wakeup import wake_dispatchers_after_commit


def queue_delivery(*, now: datetime, **values: Any) -> Delivery:
    """Write a delivery that is due at once, and wake the dispatchers after the commit.

    now: the time of its creation. values: the other fields.
    """
    delivery = Delivery(
        due_at=transaction_start(), next_at=transaction_start(), created_at=now, **values
    )
    delivery.save(force_insert=True)
    wake_dispatchers_after_commit([delivery])
    return delivery
