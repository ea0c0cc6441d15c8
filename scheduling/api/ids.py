"""Identifiers: UUIDs of version 7 (RFC 9562), so that new rows land at the end of every index."""

import os
import threading
import time
import uuid
from datetime import datetime

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62
_COUNTER_BITS = 12


class _Clock(threading.local):
    """The last millisecond in which this thread made an id, and how many it made in it."""

    millisecond = 0
    count = 0


_clock = _Clock()


def new_id() -> uuid.UUID:
    """A fresh UUIDv7: Unix milliseconds, a counter within the millisecond, 62 random bits.

    The counter keeps the ids of one thread in the order of their making (RFC 9562, 6.2, method 1):
    rows that were written in the same instant are then listed in that order too.
    """
    now = time.time_ns() // 1_000_000
    if now == _clock.millisecond:
        _clock.count += 1
    else:
        _clock.millisecond, _clock.count = now, 0
    # Past 4,096 in a millisecond it counts on into the next.
    moment = (now << _COUNTER_BITS) + _clock.count
    millisecond, counter = divmod(moment, 1 << _COUNTER_BITS)
    random = int.from_bytes(os.urandom(8)) >> 2
    return uuid.UUID(int=millisecond << 80 | _VERSION_7 | counter << 64 | _VARIANT | random)


def least_id(instant: datetime) -> uuid.UUID:
    """Not above any id that `new_id` has made since: rows of late, by the index of their ids."""
    return uuid.UUID(int=int(instant.timestamp() * 1000) << 80)
