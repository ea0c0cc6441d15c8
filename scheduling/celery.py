"""The Celery application. It runs tasks and wake-ups; the tables hold the pending work."""

import gc
import os
from typing import Any

from celery import Celery
from celery.signals import worker_before_create_process
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["filesystem"] = "common.file_broker:Transport"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduling.settings")

app = Celery("scheduling")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_before_create_process.connect
def share_memory(**_: Any) -> None:
    """Keep garbage collections of a forked process from copying the pages of the loaded service."""
    gc.freeze()
