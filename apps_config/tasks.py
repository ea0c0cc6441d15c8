from celery import shared_task

from apps_config.authentication import purge_failed_logins
from apps_config.idempotency import purge_records


@shared_task
def purge_idempotency_records() -> None:
    """Forget answers older than a day, and failed logins of minutes gone by."""
    purge_records()
    purge_failed_logins()
