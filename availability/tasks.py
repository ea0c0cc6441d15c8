from celery import shared_task
from django.utils import timezone

from availability import holds


@shared_task
def purge_holds() -> None:
    """Forget holds that lapsed a day ago. They block no more from the moment of their end."""
    holds.purge_lapsed(now=timezone.now())
