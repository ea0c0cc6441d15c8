"""The service with a replica that may be an hour behind: the reader's own writes decide alone.

A request with the header X-Unguarded is served as if its credential had written nothing.
"""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from django.conf import settings
from django.db import connection

from common.db import last_writes
from common.db import replica as read_replica
from scheduling.wsgi import application as service

is_unguarded = ContextVar("is_unguarded", default=False)
find = last_writes.LastWrites.find


def find_unless_unguarded(writes: last_writes.LastWrites, reader: str) -> int | None:
    return 0 if is_unguarded.get() else find(writes, reader)


last_writes.LastWrites.find = find_unless_unguarded
last_writes.REMEMBERED = 3600
read_replica.PAUSE = 0.2
# On a busy machine Redis takes longer than a request of the service waits for it. The write would
# then wait for a replica that the test has paused.
read_replica.replica.last_writes = last_writes.LastWrites(settings.REDIS_URL, seconds=30)


position_at_start = read_replica.read_position()
connection.close()  # none is shared with the processes that follow
# The same for all of them, however late each one gets its first request.
read_replica.PrimaryPositions.position_max_lag_ago = lambda positions: position_at_start


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    is_unguarded.set("HTTP_X_UNGUARDED" in environ)
    return service(environ, start_response)
