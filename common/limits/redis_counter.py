"""Counts the requests of a key in Redis, for all processes."""

import redis

from common.limits.rate_limit import WINDOW, digest_key
from common.optional_redis import OptionalRedis


class RedisCounter(OptionalRedis):
    """Counts hits in Redis, for all processes."""

    def count(self, key: str, window: int, hits: int) -> int | None:
        """Count hits; the hits of all processes in the window. None if Redis does not answer."""
        name = f"rate-limit:{window}:{digest_key(key)}"

        def count_hits(client: redis.Redis) -> int:
            count = client.incrby(name, hits)
            if count == hits:
                client.expire(name, 2 * WINDOW)
            return count

        return self.ask(count_hits)
