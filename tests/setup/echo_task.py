"""A task whose run can be seen from outside, for the round trips in test_services.py."""

import gc
from pathlib import Path

from scheduling.celery import app


@app.task
def write(path: str) -> None:
    """Write whether the loaded service is shared with the worker that has forked this process."""
    Path(path).write_text("shared" if gc.get_freeze_count() > 10_000 else "copied")
