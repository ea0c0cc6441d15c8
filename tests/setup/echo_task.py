"""A task whose run can be seen from outside, for the round trips in test_services.py."""

from pathlib import Path

from scheduling.celery import app


@app.task
def write(path: str) -> None:
    Path(path).write_text("done")
