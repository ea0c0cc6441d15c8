import time

from celery import shared_task

from external_calendars.claims import LOOK, due
from external_calendars.layout import forget_old_events, lay_out_further
from external_calendars.rounds import LONGEST_RUN, run_round
from notifications.stopping import is_stopping
from notifications.sweeping import NEGLECTED, sweeps
from notifications.waking import publish
from scheduling.api.sql import database_now

LAY_OUT_SECONDS = 20.0  # of one task


@shared_task(soft_time_limit=LONGEST_RUN + 10, time_limit=LONGEST_RUN + 20)
def look_at_calendars() -> None:
    """Look at those that are due; a successor goes on with what is left."""
    if run_round(stopping=is_stopping) and not is_stopping():
        publish(LOOK)


@shared_task
def lay_out_calendars() -> None:
    """Once a day: what recurs is laid out further, what is long over is forgotten."""
    now = database_now()
    ends = time.monotonic() + LAY_OUT_SECONDS
    for work in (lay_out_further, forget_old_events):
        for _ in work(now):
            if is_stopping():
                return
            if time.monotonic() > ends:
                lay_out_calendars.apply_async(queue="calendar", expires=3600, retry=False)
                return


@sweeps("calendar")
def sweep_calendars() -> None:
    """Those that were due for a while, and that no task has taken."""
    if due(database_now() - NEGLECTED).exists():
        run_round(stopping=is_stopping)
