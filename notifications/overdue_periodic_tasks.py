"""Daily and hourly tasks. Their last runs are in the database, so that runs that were missed are
made up for: beat, workers and the broker may restart at any time and lose what they store.
"""

from datetime import datetime, timedelta
from typing import Any

from celery import current_app, signals
from django.conf import settings
from django.db.models import Q

from common.db.sql import database_now
from notifications.models import TaskRun

# Until then a task that was started may still wait in its queue or run.
RETRY_AFTER = timedelta(hours=1)


def due_time(at: str, now: datetime) -> datetime:
    """Return the latest time, `now` or before, at which a task was to start.

    >>> due_time("03:17", datetime(2026, 11, 23, 2, 0))  # each day, in UTC
    datetime.datetime(2026, 11, 22, 3, 17)
    >>> due_time(":07", datetime(2026, 11, 23, 2, 0))  # each hour
    datetime.datetime(2026, 11, 23, 1, 7)
    """
    hour, _, minute = at.partition(":")
    period = timedelta(days=1) if hour else timedelta(hours=1)
    time = now.replace(minute=int(minute), second=0, microsecond=0)
    if hour:
        time = time.replace(hour=int(hour))
    return time if time <= now else time - period


def start_overdue_periodic_tasks(now: datetime) -> list[str]:
    """Publish the tasks of PERIODIC_TASKS that have not ended well since they were due, unless one
    was just started; return their names. Concurrent calls start each task once.
    """
    known_tasks = set(TaskRun.objects.values_list("task", flat=True))
    missing = [TaskRun(task=name) for name in settings.PERIODIC_TASKS if name not in known_tasks]
    TaskRun.objects.bulk_create(missing, ignore_conflicts=True)
    started = []
    for name, (at, queue) in settings.PERIODIC_TASKS.items():
        if _claim(name, due_time(at, now), now):
            _publish(name, queue, now)
            started.append(name)
    return started


def _claim(name: str, due: datetime, now: datetime) -> bool:
    idle = Q(started_at=None) | Q(started_at__lt=due) | Q(started_at__lt=now - RETRY_AFTER)
    unfinished = Q(succeeded_at=None) | Q(succeeded_at__lt=due)
    return bool(TaskRun.objects.filter(idle, unfinished, task=name).update(started_at=now))


def _publish(name: str, queue: str, now: datetime) -> None:
    expires = RETRY_AFTER.total_seconds()
    try:
        current_app.send_task(name, queue=queue, expires=expires, retry=False)
    except Exception:
        TaskRun.objects.filter(task=name, started_at=now).update(started_at=None)
        raise


@signals.task_success.connect
def record_success(sender: Any, **_: Any) -> None:
    if sender.name in settings.PERIODIC_TASKS:
        TaskRun.objects.filter(task=sender.name).update(succeeded_at=database_now())
