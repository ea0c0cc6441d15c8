"""Workers whose poll for deliveries has not returned for an hour. Included by the worker's command
line.
"""

import logging
import threading
import time

from notifications.outbox import poller


class AnHourLater(poller.LivenessFile):
    """As if the worker had started an hour ago; rounds that end now are recorded as they are."""

    def __init__(self, node: str, threads: int) -> None:
        super().__init__(node, threads)
        self._rounds = [time.time() - 3600] * threads


def hang(delivery_types: list[str]) -> None:
    logging.getLogger(__name__).warning("the poll hangs")
    threading.Event().wait()


poller.LivenessFile = AnHourLater
poller.send_neglected_deliveries = hang
poller.EVERY = 0.1
