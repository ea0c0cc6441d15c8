"""Request a password reset of a resource by e-mail."""

from datetime import datetime, timedelta

from django.db import transaction

from apps_config.models import App
from availability.models import Resource
from availability.resources_by_email import with_email
from common.db.ids import least_id
from notifications.links.resource_password_reset import LINK_LASTS, RESET_MAIL
from notifications.models import Delivery
from notifications.outbox.queueing import queue_delivery

MAX_PASSWORD_MAILS = 3  # per hour and resource


def request_password_reset(*, app: App, email: str, now: datetime) -> None:
    """Send a password reset link to the resource with that e-mail address.

    Does nothing without such a resource, or after MAX_PASSWORD_MAILS in the last hour. The link is
    created when the mail is sent, and is stored nowhere.
    """
    with transaction.atomic():
        rows = with_email(Resource.objects.for_app(app), email).select_for_update(no_key=True)
        resource = rows.first()
        if resource is None or _has_reached_mail_limit(resource, now):
            return
        queue_delivery(
            app=app,
            type=Delivery.EMAIL,
            kind=RESET_MAIL,
            recipient="owner",
            content={"resource_id": str(resource.id)},
            expires_at=now + LINK_LASTS,
            now=now,
        )


def _has_reached_mail_limit(resource: Resource, now: datetime) -> bool:
    since = now - timedelta(hours=1)
    recent_mails = Delivery.objects.filter(
        app=resource.app_id, id__gte=least_id(since), kind=RESET_MAIL
    )
    mails = recent_mails.filter(created_at__gt=since, content__resource_id=str(resource.id))
    return mails.count() >= MAX_PASSWORD_MAILS
