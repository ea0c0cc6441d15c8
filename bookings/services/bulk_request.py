"""A request that changes bookings in several transactions; people get one e-mail about it."""

import uuid
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from common.hooks import Hook


class BulkRequest:
    """open_mails: the delivery of each e-mail that further bookings of the request may join."""

    def __init__(self) -> None:
        self.open_mails: dict[Hashable, uuid.UUID] = {}


_current: ContextVar[BulkRequest | None] = ContextVar("bulk_request", default=None)

# Called after the last change of a request, unless the request fails as a whole.
on_bulk_request_end = Hook[Callable[[BulkRequest], None]]()


def current_bulk_request() -> BulkRequest | None:
    return _current.get()


@contextmanager
def bulk_request() -> Iterator[None]:
    """The changes in the block are of one request."""
    request = BulkRequest()
    token = _current.set(request)
    try:
        yield
    finally:
        _current.reset(token)
    for listener in on_bulk_request_end:
        listener(request)
