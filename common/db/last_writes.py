"""The position in the primary's log after each reader's last write, in Redis for all processes."""

import redis

from common.optional_redis import OptionalRedis

REMEMBERED = 10  # seconds; after read_replica.MAX_LAG a write is in every replica that serves
MEMBER = "position"


class LastWrites(OptionalRedis):
    """The position after each reader's last write, in Redis: the score of a set's one member."""

    def store(self, reader: str, position: int) -> bool:
        """Store the position unless a later one is known: two writes may end in any order."""
        name = last_write_name(reader)

        def store_later(client: redis.Redis) -> bool:
            with client.pipeline(transaction=False) as commands:
                commands.zadd(name, {MEMBER: position}, gt=True)
                commands.expire(name, REMEMBERED)
                commands.execute()
            return True

        return self.ask(store_later) is True

    def find(self, reader: str) -> int | None:
        """Return the position, 0 if there was no write, or None if Redis does not answer."""
        name = last_write_name(reader)
        found = self.ask(lambda client: client.zscore(name, MEMBER) or 0.0)
        return None if found is None else int(found)


def last_write_name(reader: str) -> str:
    return f"last-write:{reader}"
