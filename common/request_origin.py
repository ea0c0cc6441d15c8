"""Where the request comes from that this thread serves, for records of who did what."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from django.http import HttpRequest

from common.limits.rate_limit import customer_network

MAX_USER_AGENT = 200

_request: ContextVar[HttpRequest | None] = ContextVar("request", default=None)


class RequestOrigin(NamedTuple):
    network: str
    user_agent: str


@contextmanager
def serving(request: HttpRequest) -> Iterator[None]:
    """Name the request that this thread serves inside the block."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


def request_origin() -> RequestOrigin | None:
    """Return the network and the browser of the request; None outside of requests."""
    request = _request.get()
    if request is None:
        return None
    user_agent = request.META.get("HTTP_USER_AGENT", "").replace("\0", "")
    return RequestOrigin(customer_network(request), user_agent[:MAX_USER_AGENT])
