"""Redis for what a request can do without."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

Answer = TypeVar("Answer")

REDIS_SECONDS = 0.02  # a request waits no longer for Redis
REDIS_PAUSE = 10.0  # seconds without Redis after a failure


class OptionalRedis:
    """A client whose failures are answers; each is followed by a pause."""

    def __init__(self, url: str, seconds: float = REDIS_SECONDS) -> None:
        self.client = redis.Redis.from_url(
            url,
            socket_timeout=seconds,
            socket_connect_timeout=seconds,
            retry=Retry(NoBackoff(), 0),
            # The defaults cost a new connection three more round trips.
            protocol=2,
            driver_info=None,
        )
        self.paused_until = 0.0

    def ask(self, question: Callable[[Any], Answer]) -> Answer | None:
        """Return what Redis answers to the question, a function of the client; None: nothing."""
        if time.monotonic() < self.paused_until:
            return None
        try:
            return question(self.client)
        except (redis.RedisError, OSError):
            self.paused_until = time.monotonic() + REDIS_PAUSE
            return None
