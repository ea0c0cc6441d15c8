from celery import shared_task

from notifications import sweeping  # noqa: F401  # its signals make every worker sweep
from notifications.pump import run_pump
from notifications.stopping import is_stopping
from notifications.waking import publish


@shared_task
def pump(kind: str) -> None:
    """Send what is due of one type; asks for a successor where there was work."""
    if run_pump(kind, stopping=is_stopping) and not is_stopping():
        publish(kind)
