import gc

# Before the first import of Django. To load the service makes some hundred thousand objects that
# stay: with Python's own threshold of 700, the collector takes a sixth of the start.
gc.set_threshold(10_000, 10, 10)

from scheduling.celery import app as celery_app  # noqa: E402

__all__ = ["celery_app"]
