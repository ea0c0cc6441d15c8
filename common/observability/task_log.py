"""Log fields and durations of Celery's tasks. Connected by `CommonConfig.ready`."""

import logging
import time
from typing import Any

from celery import Task, signals

from common.observability import metrics
from common.observability.log_format import end_task_fields, start_task_fields


@signals.setup_logging.connect
def prevent_celery_logging_setup(loglevel: int | None = None, **_: Any) -> None:
    """Keep the handlers of the settings instead of Celery's; the more verbose level applies."""
    root = logging.getLogger()
    root.setLevel(min(root.level, loglevel or root.level))


@signals.task_prerun.connect
def begin_task(task_id: str, task: Task, **_: Any) -> None:
    start_task_fields(task=task.name, task_id=task_id)
    task.request.began = time.perf_counter()


@signals.task_postrun.connect
def finish_task(task: Task, state: str | None = None, **_: Any) -> None:
    began = getattr(task.request, "began", None)
    if began is not None:  # a task that was called as a function has none
        seconds = time.perf_counter() - began
        metrics.count_task(task.name, (state or "failure").lower(), seconds)
    end_task_fields()
