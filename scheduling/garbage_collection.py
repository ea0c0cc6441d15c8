"""When Python's garbage collector runs: rarely while the service loads, then as usual."""

import gc

USUAL = gc.get_threshold()


def collect_rarely() -> None:
    """Call it before Django is imported. To load the service makes some hundred thousand objects
    that stay: with Python's own threshold of 700, the collector takes a sixth of the start.
    """
    gc.set_threshold(10_000, 10, 10)


def freeze_loaded_service() -> None:
    """Call it before processes are forked: a garbage collection in one of them would write
    to every object of the loaded service, and so copy its page.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*USUAL)
