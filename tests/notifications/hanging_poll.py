"""Workers whose poll for deliveries never returns. Included by the worker's command line."""

import logging
import threading

from notifications.outbox import poller


def hang(delivery_types: list[str]) -> None:
    logging.getLogger(__name__).warning("the poll hangs")
    threading.Event().wait()


poller.send_neglected_deliveries = hang
poller.EVERY = 0.1
