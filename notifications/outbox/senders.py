"""How claimed deliveries are sent: the protocol of senders, and their hook.

`prepare_batch` reads what a batch needs, in a number of queries that does not grow with it, and
returns for each delivery either the reason not to send it or a function that sends it. That
function uses the network only: it runs in a thread without database access.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import ClassVar, Protocol

from common.errors import is_outage
from common.hooks import Hook
from common.messages import Message
from notifications.models import Delivery
from notifications.outbox.results import FinalState, SendResult

logger = logging.getLogger(__name__)

SendCall = Callable[[], SendResult]

NOT_RENDERED = Message("The message could not be rendered.")


class SkipDelivery(Exception):
    """The delivery is not sent: its final state and the reason."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.final_state = FinalState(state, reason)


class SendBatch(Protocol):
    """Prepares the claimed rows of one batch. `types`: the types of deliveries it handles."""

    types: ClassVar[Collection[str]]

    def __init__(self, rows: Sequence[Delivery], now: datetime) -> None: ...

    def send_of(self, row: Delivery) -> SendCall:
        """Return the function that sends the row without the database. Raises SkipDelivery."""

    def store_rendered_bodies(self) -> None:
        """Called after all `send_of` calls, in the dispatcher's main thread."""


senders = Hook[type[SendBatch]]()


def prepare_batch(
    rows: Sequence[Delivery], *, now: datetime
) -> tuple[list[tuple[Delivery, SendCall]], list[tuple[Delivery, FinalState]]]:
    """Return (row, send function) pairs and (row, final state) pairs of rows of one type."""
    sender = next(sender for sender in senders if rows[0].type in sender.types)
    batch = sender(rows, now)
    sends, unsent = [], []
    for row in rows:
        try:
            sends.append((row, batch.send_of(row)))
        except SkipDelivery as skip:
            unsent.append((row, skip.final_state))
        except Exception as error:
            if is_outage(error):
                raise  # an outage affects all rows
            # A row that can't be prepared must not stop the others.
            logger.exception("delivery %s can't be prepared", row.id)
            unsent.append((row, FinalState(Delivery.FAILED, NOT_RENDERED)))
    batch.store_rendered_bodies()
    return sends, unsent
