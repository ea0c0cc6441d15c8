"""Webhooks (api.md section 4)."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps_config.serializers import MethodField, case_insensitive_pattern
from bookings.graphs import GRAPHS, STATES
from common.api.fields import (
    CLEARABLE,
    OPTIONAL,
    ChoiceField,
    IdField,
    ListOf,
    OutboundUrlField,
    StampField,
    StatusCodeField,
    StrictBooleanField,
    TextField,
)
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer
from notifications.models import Webhook
from notifications.planning import RESCHEDULED, WEBHOOK_KINDS

# Events of a webhook: every state, and a reschedule, which changes no state.
EVENTS = (*STATES, RESCHEDULED)


@extend_schema_field(
    {
        "type": "string",
        "description": "Upper or lower case.",
        "pattern": case_insensitive_pattern(Webhook.METHODS),
        "examples": list(Webhook.METHODS),
    }
)
class CallMethodField(MethodField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(Webhook.METHODS, **kwargs)


class WebhookSerializer(ObjectSerializer):
    """A subscription to changes of bookings."""

    examples = {
        "id": example_id(41),
        "url": "https://example.com/hooks/bookings",
        "states": ["confirmed", "cancelled", RESCHEDULED],
        "active": True,
        "description": "Our calendar display",
        "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
    }
    on_request = ("secret", "secret_shown")

    id = IdField(read_only=True)
    url = OutboundUrlField()
    method = CallMethodField(**OPTIONAL)
    graph = ChoiceField(list(GRAPHS), help_text="null: any.", **CLEARABLE)
    states = ListOf(
        ChoiceField(EVENTS),
        len(EVENTS),
        help_text="Empty: all states. A move matches `rescheduled` and the booking's current"
        " state.",
        **OPTIONAL,
    )
    kinds = ListOf(
        ChoiceField(WEBHOOK_KINDS),
        len(WEBHOOK_KINDS),
        help_text="Only calls of these kinds (values of `Service-Event`). Empty: all except"
        " `booking.reassigned`, `booking.updated`, `booking.response`, `calendar.problem`, and"
        " those of resources, projects and deliveries. A change of resources alone is"
        " `booking.rescheduled` for a webhook that does not name `booking.reassigned`.",
        **OPTIONAL,
    )
    format = ChoiceField(
        Webhook.FORMATS,
        help_text="`standard`: the body is `{type, timestamp, data}` as in Standard Webhooks."
        " `thin`: `{kind, id, cursor}` alone. null: the object, with `change`.",
        **CLEARABLE,
    )
    expected_response_code = StatusCodeField(
        help_text="The only status that counts as success; null: any 2xx.", **CLEARABLE
    )
    active = StrictBooleanField(**OPTIONAL)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    disabled_reason = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="Why the service has disabled the webhook: 410, or five days without success."
        " Enabling the webhook clears it.",
    )
    created_at = StampField()
    updated_at = StampField()
    secret = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The key that signs calls as in Standard Webhooks. Shown only when the webhook is"
        " created and when its secret is rotated.",
    )

    secret_shown = serializers.BooleanField(
        read_only=True,
        help_text="Only in the response to a repeated request with an Idempotency-Key: the secret"
        " was in the first one.",
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        for name in given.keys() & {"graph", "description"}:
            given[name] = given[name] or ""
        for name in given.keys() & {"states", "kinds"}:
            given[name] = list(dict.fromkeys(given[name]))
        return given
