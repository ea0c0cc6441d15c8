"""UUIDs of version 7 (RFC 9562), so that new rows are appended to every index."""

import os
import threading
import time
import uuid
from datetime import datetime

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62
_COUNTER_BITS = 12


class _Clock(threading.local):
    """The millisecond of the last id of this thread, and the number of ids made in it."""

    millisecond = 0
    count = 0


_clock = _Clock()


def new_id() -> uuid.UUID:
    """Make a UUIDv7: Unix milliseconds, a counter within the millisecond, 62 random bits.

    The counter keeps the ids of one thread in order (RFC 9562, 6.2, method 1), so that rows written
    in the same instant are listed in that order.
    """
    now = time.time_ns() // 1_000_000
    if now == _clock.millisecond:
        _clock.count += 1
    else:
        _clock.millisecond, _clock.count = now, 0
    # After 4,096 ids in a millisecond the counter overflows into the next.
    moment = (now << _COUNTER_BITS) + _clock.count
    millisecond, counter = divmod(moment, 1 << _COUNTER_BITS)
    random = int.from_bytes(os.urandom(8)) >> 2
    return uuid.UUID(int=millisecond << 80 | _VERSION_7 | counter << 64 | _VARIANT | random)


def least_id(instant: datetime) -> uuid.UUID:
    """Return a lower bound of the ids made since `instant`, to find recent rows by the index."""
    return uuid.UUID(int=int(instant.timestamp() * 1000) << 80)
