"""The Celery application. It runs tasks and wake-ups; the tables hold the pending work."""

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["filesystem"] = "common.file_broker:Transport"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduling.settings")

app = Celery("scheduling")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
