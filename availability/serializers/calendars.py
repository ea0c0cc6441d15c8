"""Calendars (api.md section 4)."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from availability.models import Calendar
from common.api.fields import CLEARABLE, IdField, OneLineField, StampField, TextField
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer


class ProblemSerializer(ObjectSerializer):
    examples = {}

    code = serializers.CharField(help_text="A stable code for programs.")
    text = serializers.CharField(help_text="A text for people.")
    since = StampField()


class ProgressSerializer(ObjectSerializer):
    examples = {}

    done = serializers.IntegerField(min_value=0)
    total = serializers.IntegerField(min_value=0)


def connection_of(calendar: Calendar) -> Any:
    """The connection of a calendar at a provider; None for a calendar of the service."""
    return getattr(calendar, "connection", None) if calendar.is_connected else None


class CalendarSerializer(ObjectSerializer):
    only_at_creation = ("resource_id",)
    examples = {
        "id": example_id(12),
        "resource_id": example_id(11),
        "name": "Bookings",
        "provider": Calendar.SERVICE,
    }

    id = IdField(read_only=True)
    resource_id = IdField()
    name = OneLineField(200)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    backgroundcolor = OneLineField(32, allow_blank=True, **CLEARABLE)
    foregroundcolor = OneLineField(32, allow_blank=True, **CLEARABLE)
    provider = serializers.CharField(
        read_only=True,
        help_text="`service` for a calendar of the service, otherwise the kind of provider.",
    )
    provider_id = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The calendar's URL at the provider; for a feed only its server, because its URL"
        " is a secret.",
    )
    provider_access = serializers.ChoiceField(
        Calendar.ACCESS,
        read_only=True,
        allow_null=True,
        help_text="The access at the provider; null for a calendar of the service.",
    )
    provider_primary = serializers.BooleanField(
        read_only=True, help_text="The resource's bookings are written to this calendar."
    )
    provider_sync = serializers.BooleanField(
        read_only=True, help_text="The calendar is connected and synced."
    )
    grant_id = IdField(
        read_only=True,
        allow_null=True,
        help_text="The permission of a person at Google or Microsoft that the calendar uses; null"
        " for other providers.",
    )
    account = serializers.CharField(
        read_only=True, allow_null=True, help_text="The e-mail address of this person's account."
    )
    synced_at = StampField(allow_null=True, help_text="The start of the last successful sync.")
    problem = ProblemSerializer(
        read_only=True, allow_null=True, help_text="Why syncs fail; null without a problem."
    )
    progress = ProgressSerializer(
        read_only=True, allow_null=True, help_text="The progress of the current sync, in objects."
    )
    unread = serializers.IntegerField(
        read_only=True, min_value=0, help_text="The number of unreadable objects in the last sync."
    )
    created_at = StampField()
    updated_at = StampField()

    @staticmethod
    def get_provider_sync(calendar: Calendar) -> bool:
        connection = connection_of(calendar)
        return connection is not None and not connection.is_stopped

    @staticmethod
    def get_grant_id(calendar: Calendar) -> Any:
        connection = connection_of(calendar)
        return connection and connection.grant_id

    @staticmethod
    def get_account(calendar: Calendar) -> str | None:
        connection = connection_of(calendar)
        return connection.grant.email or None if connection and connection.grant_id else None

    @staticmethod
    def get_problem(calendar: Calendar) -> dict[str, Any] | None:
        connection = connection_of(calendar)
        return connection and connection.problem_record()

    @staticmethod
    def get_progress(calendar: Calendar) -> dict[str, Any] | None:
        connection = connection_of(calendar)
        return connection and connection.progress_record()

    @staticmethod
    def get_unread(calendar: Calendar) -> int:
        connection = connection_of(calendar)
        return connection.unread if connection else 0


def visible_calendars() -> QuerySet[Calendar]:
    """The rows that `CalendarSerializer` needs, of whichever resource, the oldest first."""
    calendars = Calendar.objects.filter(deleted_at=None).select_related("connection__grant")
    return calendars.order_by("created_at", "id")
