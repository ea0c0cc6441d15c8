"""What a worker checks before it takes work."""

from typing import Any

from celery.signals import worker_init
from django.core.exceptions import ImproperlyConfigured

from apps_config.home_check import refuse_other_home


@worker_init.connect
def check_home(**_: Any) -> None:
    try:
        refuse_other_home()
    except ImproperlyConfigured as error:
        raise SystemExit(str(error)) from None  # Celery only logs other exceptions of a receiver
