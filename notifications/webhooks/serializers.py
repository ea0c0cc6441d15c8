"""The shapes of webhooks in bodies (api.md section 4)."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps_config.serializers import MethodField, case_insensitive_pattern
from availability.serializers.fields import CLEARABLE, OPTIONAL
from bookings.graphs import GRAPHS, STATES
from common.api.fields import (
    BoundedIntegerField,
    ListOf,
    ObjectSerializer,
    OutboundUrlField,
    StrictBooleanField,
    TextField,
)
from notifications.models import Webhook
from notifications.planning import KINDS, RESCHEDULED

# Events of a webhook: every state, and a reschedule, which changes no state.
EVENTS = (*STATES, RESCHEDULED)
CODES = (100, 599)


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


@extend_schema_field(
    {
        "type": ["integer", "string"],
        "minimum": CODES[0],
        "maximum": CODES[1],
        "pattern": "^[1-5][0-9]{2}$",
        "description": "The only status that counts as success; null: any 2xx.",
    }
)
class StatusCodeField(BoundedIntegerField):
    """An HTTP status as an integer or as digits."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(*CODES, allow_digits=True, **kwargs)


class WebhookSerializer(ObjectSerializer):
    """The body of PUT /webhooks/:id."""

    url = OutboundUrlField(**OPTIONAL)
    method = CallMethodField(**OPTIONAL)
    graph = serializers.ChoiceField(list(GRAPHS), help_text="null: any", **CLEARABLE)
    states = ListOf(
        serializers.ChoiceField(EVENTS), len(EVENTS), help_text="empty: any", **OPTIONAL
    )
    kinds = ListOf(
        serializers.ChoiceField(KINDS),
        len(KINDS),
        help_text="Only calls of these kinds (values of `Service-Event`). Empty: all except"
        " `booking.updated`.",
        **OPTIONAL,
    )
    expected_response_code = StatusCodeField(**CLEARABLE)
    active = StrictBooleanField(**OPTIONAL)
    description = TextField(8000, allow_blank=True, **CLEARABLE)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        for name in given.keys() & {"graph", "description"}:
            given[name] = given[name] or ""
        for name in given.keys() & {"states", "kinds"}:
            given[name] = list(dict.fromkeys(given[name]))
        return given


class NewWebhookSerializer(WebhookSerializer):
    """The body of POST /webhooks."""

    url = OutboundUrlField()
