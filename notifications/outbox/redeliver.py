"""Send a delivery again, with its own id."""

from datetime import datetime

from django.db import transaction

from common.db.updated_at import transaction_start
from common.errors import NotFound, Outdated
from notifications.links.resource_password_reset import LINK_LASTS, RESET_MAIL
from notifications.models import Delivery
from notifications.outbox.circuit_breaker import endpoint_of
from notifications.outbox.outdated_reasons import outdated_reason
from notifications.outbox.wakeup import wake_dispatchers_after_commit
from notifications.planning import REMINDER_GRACE
from notifications.webhooks.services import EXPIRES_AFTER


def redeliver(delivery: Delivery, *, now: datetime) -> Delivery:
    """Schedule a delivery again for now, with its own id and a new set of attempts.

    It expires like a new delivery; a reminder expires when it is no longer useful. Raises NotFound
    if retention has deleted it, Outdated if it is final and its content no longer holds. Open
    deliveries are sent even if they are outdated: mails are sent in order, so the mail that
    corrects one follows it.
    """
    with transaction.atomic():
        rows = Delivery.objects.select_for_update(of=("self",), no_key=True)
        rows = rows.select_related("booking", "change", "webhook")
        current = rows.filter(id=delivery.id).first()
        if current is None:
            raise NotFound("Delivery")
        delivery = current
        if delivery.is_final and (reason := outdated_reason(delivery)):
            raise Outdated(f"This message is outdated. {reason}")
        if delivery.state != Delivery.SENDING:
            delivery.state, delivery.reason = Delivery.SCHEDULED, ""
            if delivery.webhook and delivery.type == Delivery.WEBHOOK:
                delivery.endpoint = endpoint_of(delivery.webhook.url)
            delivery.due_at = delivery.next_at = transaction_start()
            delivery.expires_at = _expiry_again(delivery, now)
            delivery.finished_at, delivery.tries, delivery.lapses = None, 0, 0
            delivery.save()
            wake_dispatchers_after_commit([delivery])
    return delivery


def _expiry_again(delivery: Delivery, now: datetime) -> datetime:
    if delivery.kind == RESET_MAIL:
        return now + LINK_LASTS
    if delivery.kind == Delivery.REMINDER and delivery.type == Delivery.EMAIL:
        return max(delivery.expires_at, now + REMINDER_GRACE)
    return now + EXPIRES_AFTER
