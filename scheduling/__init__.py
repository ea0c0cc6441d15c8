from scheduling.garbage_collection import collect_rarely

collect_rarely()

from scheduling.celery import app as celery_app  # noqa: E402

__all__ = ["celery_app"]
