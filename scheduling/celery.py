"""The Celery application: it executes and wakes; the tables hold what is to be done."""

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["filesystem"] = "scheduling.file_broker:Transport"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduling.settings")

app = Celery("scheduling")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
