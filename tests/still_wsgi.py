"""The service with a clock that stands still: what it counts by the minute meets no new minute."""

import time_machine

time_machine.travel("2026-11-20T09:30:00+00:00", tick=False).start()

from scheduling.wsgi import application  # noqa: E402

__all__ = ["application"]
