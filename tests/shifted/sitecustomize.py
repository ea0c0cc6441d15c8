"""Every Python process of a run at the time that TEST_CLOCK names: see tests/services.py.

Python imports this module first where its folder is on PYTHONPATH.
"""

import os
from datetime import UTC, datetime, timedelta

import time_machine

SHIFT = timedelta(seconds=float(os.environ["TEST_CLOCK_SHIFT"]))
# The shifted clock begins to run when it is first read, which has to be now: PostgreSQL's is
# shifted by exactly as much.
time_machine.travel(datetime.now(UTC) + SHIFT, tick=True).start().time_ns()
