"""The changes of an app, as GET /v2/changes lists them."""

from rest_framework import serializers

from apps_config.models import Change
from availability.serializers.calendars import CalendarSerializer
from availability.serializers.events import EventSerializer
from availability.serializers.projects import ProjectSerializer
from availability.serializers.resources import ResourceSerializer, ScheduleSerializer
from bookings.models import StateChange
from bookings.serializers.customers import CustomerSerializer
from bookings.serializers.responses import WHOLE_BOOKING_EXAMPLE, BookingSerializer
from common.api.fields import IdField, OneOfField, StampField
from common.api.serializers import ObjectSerializer
from notifications.outbox.serializers import DeliverySerializer
from notifications.webhooks.serializers import WebhookSerializer


class CustomerOfBookingSerializer(CustomerSerializer):
    """One of the `customers` of a booking."""

    examples = {"booking_id": WHOLE_BOOKING_EXAMPLE["id"]}

    booking_id = IdField(read_only=True)


class ListedChangeSerializer(ObjectSerializer):
    """A change of an object."""

    examples = {
        "id": "10482",
        "cursor": "10482-93f1c2d46b7a0e58",
        "type": "booking",
        "action": "confirm",
        "actor": "server key 0193a4c2",
        "source": "api",
        "object_id": WHOLE_BOOKING_EXAMPLE["id"],
        "object": WHOLE_BOOKING_EXAMPLE,
    }

    id = serializers.CharField(help_text="The change's number in the app.")
    cursor = serializers.CharField(help_text="GET /v2/changes lists the changes after this one.")
    type = serializers.ChoiceField(Change.TYPES)
    action = serializers.CharField(
        help_text="Of a booking: the action in its log, or `deleted` or `erased`. Of a delivery:"
        " its final state. Of others: `created`, `updated` or `deleted`."
    )
    at = StampField()
    actor = serializers.CharField(
        allow_null=True, help_text="Who made the change; null: it is not stored."
    )
    source = serializers.ChoiceField(  # type: ignore[assignment]  # as `data`
        StateChange.SOURCES, allow_null=True, help_text="The entry point; null: it is not stored."
    )
    object_id = IdField()
    object = OneOfField(
        BookingSerializer(),
        EventSerializer(),
        ResourceSerializer(),
        ProjectSerializer(),
        ScheduleSerializer(),
        CalendarSerializer(),
        CustomerOfBookingSerializer(),
        WebhookSerializer(),
        DeliverySerializer(),
        allow_null=True,
        help_text="The object as GET shows it now; null if it is deleted.",
    )
