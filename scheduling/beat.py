"""The Celery application of beat: the schedule alone, without models, views and tasks.

Beat sends tasks by their names. With the whole service in memory it would take twice as much.
"""

from celery import Celery
from celery.apps.beat import Beat
from celery.loaders.app import AppLoader
from celery.signals import setup_logging
from django.conf import settings
from django.utils.log import configure_logging

from common.observability import error_reports


class ScheduleLoader(AppLoader):
    """Imports no tasks; with them, Django would load every app."""

    def import_default_modules(self) -> list[object]:
        return []


@setup_logging.connect
def configure_log_lines(**_: object) -> None:
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)


error_reports.install()
app = Celery("scheduling", loader="scheduling.beat.ScheduleLoader")
app.config_from_object("django.conf:settings", namespace="CELERY")


def run(log_level: str) -> None:
    """Run beat until SIGTERM or SIGINT, without Celery's command line and its many imports."""
    Beat(app=app, loglevel=log_level, quiet=True).run()
