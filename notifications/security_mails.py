"""E-mails about security events: a new key or owner, to an app's owners; and a log-in from a new
device, to the person.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from apps_config.models import Credential, Membership, SecurityEvent
from apps_config.security_events import on_security_event
from notifications.models import Delivery
from notifications.outbox.queueing import queue_delivery

NEW_KEY, NEW_OWNER, NEW_DEVICE = "new_key", "new_owner", "new_device"
SECURITY_MAILS = (NEW_KEY, NEW_OWNER, NEW_DEVICE)
EXPIRES_AFTER = timedelta(days=3)
# Keys of one resource come with each new resource, and give access to nothing else.
MAILED_KEYS = (Credential.SERVER, Credential.WIDGET)


@on_security_event.register
def plan_security_mail(event: SecurityEvent) -> None:
    """Queue the e-mail about the event, if there is one, in the event's transaction."""
    about = event.about
    if event.kind == SecurityEvent.KEY_MADE and about["key_kind"] in MAILED_KEYS:
        _mail_owners(event, NEW_KEY, {"prefix": about["prefix"]})
    elif event.kind == SecurityEvent.OWNER_ADDED:
        _mail_owners(event, NEW_OWNER, {"member": about["member"]})
    elif about.get("is_new_device") and event.account_id:
        _mail_person(event, event.account_id)


def _mail_owners(event: SecurityEvent, kind: str, facts: Mapping[str, Any]) -> None:
    owners = Membership.objects.filter(app=event.app_id, role=Membership.OWNER)
    if event.app_id and owners.filter(account__is_active=True).exists():
        _queue(event, event.app_id, kind, facts)


def _mail_person(event: SecurityEvent, account_id: UUID) -> None:
    """To an owner or platform staff, by the first of their apps: every e-mail is an app's."""
    members = Membership.objects.filter(account=account_id, app__archived_at=None)
    members = members.filter(Q(role=Membership.OWNER) | Q(account__is_staff=True))
    member = members.select_related("account").order_by("app__name", "id").first()
    if member:
        _queue(event, member.app_id, NEW_DEVICE, {"email": member.account.email})


def _queue(event: SecurityEvent, app_id: UUID, kind: str, facts: Mapping[str, Any]) -> None:
    now = timezone.now()
    queue_delivery(
        app_id=app_id,
        type=Delivery.EMAIL,
        kind=kind,
        recipient="owner",
        content={"actor": event.actor, "network": event.network, **facts},
        expires_at=now + EXPIRES_AFTER,
        now=now,
    )
