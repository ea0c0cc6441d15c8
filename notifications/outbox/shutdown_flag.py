"""Whether this worker was asked to stop: set by its main process, read by its children.

A byte of shared memory without a lock, because a child killed while reading must not leave a lock
behind.
"""

from multiprocessing.sharedctypes import RawValue

_flag = RawValue("b", 0)


def request_shutdown() -> None:
    _flag.value = 1


def is_stopping() -> bool:
    return bool(_flag.value)
