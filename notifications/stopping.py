"""Whether this worker has been asked to stop: told by its main process, read by its children.

A byte of shared memory without a lock, because a child that is killed while it reads must not
leave a lock behind.
"""

from multiprocessing.sharedctypes import RawValue

_flag = RawValue("b", 0)


def ask_to_stop() -> None:
    _flag.value = 1


def is_stopping() -> bool:
    return bool(_flag.value)
