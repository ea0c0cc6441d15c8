"""The Celery application. It runs tasks and wake-ups; the tables hold the pending work."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init
from kombu.transport import TRANSPORT_ALIASES

from scheduling.garbage_collection import freeze_loaded_service

TRANSPORT_ALIASES["filesystem"] = "common.file_broker:Transport"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduling.settings")

app = Celery("scheduling")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add("notifications.outbox.poller:PollStep")


@worker_init.connect
def share_memory(**_: Any) -> None:
    """Freeze the loaded service before the pool is forked.

    `worker_before_create_process` is not sent by the pool of a broker without event loop.
    """
    freeze_loaded_service()
