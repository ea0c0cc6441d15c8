"""A task whose run can be seen from outside, for the round trips in test_services.py."""

import gc
from pathlib import Path

from scheduling.celery import app


@app.task
def write(path: str) -> None:
    """Write whether the loaded service is shared with the worker that has forked this process."""
    result, unfinished = Path(path), Path(f"{path}.unfinished")
    unfinished.write_text("shared" if gc.get_freeze_count() > 10_000 else "copied")
    unfinished.rename(result)  # a reader waits for the file, then takes it for whole
