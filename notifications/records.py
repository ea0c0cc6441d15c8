"""How webhooks and deliveries are written in answers (api.md section 4), and from which rows."""

import json
from typing import Any

from django.db.models import F, Prefetch, QuerySet
from django.db.models.functions import Left

from notifications.models import Attempt, Delivery, Webhook
from scheduling.api.instants import format_stamp

Record = dict[str, Any]

# Of each try's answer in a listing, in characters: a page holds thousands of tries.
EXCERPT = 1000


def webhook_record(webhook: Webhook) -> Record:
    return {
        "id": str(webhook.id),
        "url": webhook.url,
        "method": webhook.method,
        "graph": webhook.graph or None,
        "states": webhook.states,
        "kinds": webhook.kinds,
        "expected_response_code": webhook.expected_response_code,
        "active": webhook.active,
        "description": webhook.description,
        "disabled_reason": webhook.disabled_reason or None,
        "created_at": format_stamp(webhook.created_at),
        "updated_at": format_stamp(webhook.updated_at),
    }


def listed(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Newest first, with what `delivery_record` needs and no more: bodies stay where they are."""
    attempts = Attempt.objects.defer("excerpt").annotate(shown=Left("excerpt", EXCERPT))
    rows = deliveries.defer("body", "content").order_by("-id")
    return rows.prefetch_related(Prefetch("attempts", attempts))


def whole(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """With what `whole_delivery_record` needs."""
    attempts = Attempt.objects.annotate(shown=F("excerpt"))
    return deliveries.prefetch_related(Prefetch("attempts", attempts))


def delivery_record(delivery: Delivery) -> Record:
    return {
        "id": str(delivery.id),
        "type": delivery.type,
        "kind": delivery.kind,
        "booking_id": delivery.booking_id and str(delivery.booking_id),
        "webhook_id": delivery.webhook_id and str(delivery.webhook_id),
        "recipient": delivery.recipient or None,
        "state": delivery.state,
        "reason": delivery.reason or None,
        "due_at": format_stamp(delivery.due_at),
        "next_at": delivery.next_at and format_stamp(delivery.next_at),
        "attempts": [_attempt_record(attempt) for attempt in delivery.attempts.all()],
        "created_at": format_stamp(delivery.created_at),
    }


def whole_delivery_record(delivery: Delivery) -> Record:
    """With the JSON of a call: null for a mail, and for a call that is not rendered yet."""
    payload = json.loads(delivery.body) if delivery.body else None
    return delivery_record(delivery) | {"payload": payload}


def _attempt_record(attempt: Any) -> Record:
    return {
        "at": format_stamp(attempt.at),
        "response_code": attempt.response_code,
        "seconds": attempt.seconds,
        "error": attempt.error or None,
        "excerpt": attempt.shown or None,
    }
