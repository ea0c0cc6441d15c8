"""Deliveries (api.md section 4), and the rows that their responses need."""

import json
from datetime import UTC
from typing import Any

from django.db.models import F, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Left, Now
from rest_framework import serializers

from bookings.serializers.responses import WHOLE_BOOKING_EXAMPLE
from common.api.fields import IdField, StampField
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer
from common.openapi.component_registry import Json
from notifications.hidden_links import hide_links_in_values
from notifications.models import CALL_BODY, Attempt, Delivery, Endpoint
from notifications.webhooks.serializers import WebhookSerializer

# Of each try's answer in a listing, in characters: a page holds thousands of tries.
EXCERPT = 1000


class AttemptSerializer(ObjectSerializer):
    examples = {"response_code": 200, "seconds": 0.127, "excerpt": "ok"}

    at = StampField()
    response_code = serializers.IntegerField(
        allow_null=True, help_text="HTTP status of a call, or the mail server's code."
    )
    seconds = serializers.FloatField(min_value=0)
    error = serializers.CharField(allow_null=True)
    excerpt = serializers.CharField(
        source="shown",
        allow_null=True,
        help_text="The beginning of the response: 20 kB, in lists 1,000 characters.",
    )


class DeliverySerializer(ObjectSerializer):
    """One e-mail, call or calendar write, with every attempt."""

    examples = {
        "id": example_id(42),
        "type": "webhook",
        "kind": "confirmed",
        "booking_id": WHOLE_BOOKING_EXAMPLE["id"],
        "webhook_id": WebhookSerializer.example()["id"],
        "state": "delivered",
        "payload": WHOLE_BOOKING_EXAMPLE,
    }
    on_request = ("payload",)

    id = IdField()
    type = serializers.ChoiceField(Delivery.TYPES)
    kind = serializers.CharField(
        help_text="The booking's new state, `rescheduled`, `reassigned` (a move of the resources"
        " alone), `unassigned` (to the former resource), `reminder` for an event notification,"
        " `test`, `webhook_disabled`, `new_key`, `new_owner`, `new_device`, `calendar_problem`,"
        " or `write` for a calendar that was connected after the booking was created."
    )
    booking_id = IdField(allow_null=True)
    webhook_id = IdField(
        allow_null=True, help_text="null for e-mails, event notifications and calendar writes."
    )
    recipient = serializers.ChoiceField(
        ["customer", "owner"],
        allow_null=True,
        help_text="The recipient of an e-mail; null for calls and calendar writes.",
    )
    state = serializers.ChoiceField(Delivery.STATES)
    reason = serializers.CharField(
        allow_null=True,
        help_text="The reason for the state. Of a scheduled call also until when its server gets"
        " no calls, after ten failures in a row.",
    )
    due_at = StampField()
    next_at = StampField(
        allow_null=True,
        help_text="The next attempt, or the end of the current lease; null for a final state.",
    )
    attempts = AttemptSerializer(many=True, help_text="Oldest first.")
    created_at = StampField()
    updated_at = StampField()
    payload = serializers.DictField(
        allow_null=True,
        help_text="Only for a single delivery: the body of the call, which is the booking at the"
        " change. null for e-mails, calendar writes, and calls that are rendered when they are"
        " due. For a caller that may not act for customers, `[link]` is in place of each signed"
        " link.",
    )

    @staticmethod
    def get_reason(delivery: Any) -> str:
        """The stored reason, and until when the server of the call gets none."""
        if delivery.state != Delivery.SCHEDULED or delivery.paused_until is None:
            return str(delivery.reason)
        until = delivery.paused_until.astimezone(UTC)
        pause = f"The server failed too often: it gets no calls before {until:%Y-%m-%dT%H:%M:%SZ}."
        return f"{delivery.reason} {pause}".lstrip()

    @staticmethod
    def get_payload(delivery: Any) -> Any:
        """The JSON of a call: null for a mail, and for a call that is not rendered yet."""
        return json.loads(delivery.call_body) if delivery.call_body else None


def with_list_rows(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return deliveries, newest first, with the rows that `DeliverySerializer` needs, and without
    bodies.
    """
    attempts = Attempt.objects.defer("excerpt").annotate(shown=Left("excerpt", EXCERPT))
    rows = _with_pauses(deliveries).defer("body", "content").order_by("-id")
    return rows.prefetch_related(Prefetch("attempts", attempts))


def with_detail_rows(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return deliveries with the bodies and rows that the record of a single delivery needs."""
    attempts = Attempt.objects.annotate(shown=F("excerpt"))
    rows = _with_pauses(deliveries).annotate(call_body=CALL_BODY)
    return rows.prefetch_related(Prefetch("attempts", attempts))


def _with_pauses(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return deliveries with `paused_until`: the end of the pause of the server (circuit breaker),
    or None.
    """
    paused = Endpoint.objects.filter(address=OuterRef("endpoint"), open_until__gt=Now())
    return deliveries.annotate(paused_until=Subquery(paused.values("open_until")))


def whole_delivery_record(delivery: Delivery, *, links: bool) -> Json:
    """Return the record of a delivery `with_detail_rows`, with the payload of a call. links: with
    those that act for customers; else `[link]` is in their place.
    """
    record = DeliverySerializer.render(delivery, include=("payload",))
    return record if links else record | {"payload": hide_links_in_values(record["payload"])}
