"""Serializer fields that several bodies use."""

from datetime import date, datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from availability.core.constraints import ConstraintError, ConstraintRule, parse_constraints
from availability.parameters import MAX_RANGE
from common.durations import DurationError, resolve_time
from common.instants import InstantError, parse_date, parse_instant

MINUTE, DAY = 60, 86_400
MAX_RESOURCES = 500
OPTIONAL: dict[str, Any] = {"required": False}
CLEARABLE: dict[str, Any] = {"required": False, "allow_null": True}


CONSTRAINT_LIST = {
    "type": "array",
    "maxItems": 200,
    "items": {"$ref": "#/components/schemas/Constraint"},
}


@extend_schema_field(CONSTRAINT_LIST)
class ConstraintsField(serializers.Field):
    """Parses the API's list of constraints (api.md section 7) into rules of the core."""

    def to_internal_value(self, data: Any) -> tuple[ConstraintRule, ...]:
        try:
            return parse_constraints(data)
        except ConstraintError as error:
            raise serializers.ValidationError(error.errors) from error


@extend_schema_field(
    {
        "type": "string",
        "description": "An instant, or a time relative to the request: `now`, `tomorrow` (the"
        " next midnight), or a duration. Days, weeks and months use the wall clock of the"
        " resource. With `round_to_nearest_hour`, relative times are rounded up to the full"
        " hour.",
        "examples": ["now", "2 days", "2026-11-20T09:00:00+01:00"],
    }
)
class MomentField(serializers.Field):
    """`from` or `to`: an instant, or text relative to the time of the request. Kept as sent."""

    default_error_messages = {"invalid": "Must be a string."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            # Whether the wall time exists is checked later, in the zone of each resource.
            resolve_time(data, timezone.now(), "UTC")
        except (DurationError, InstantError) as error:
            raise serializers.ValidationError(str(error)) from None
        return data


@extend_schema_field({"type": "string", "examples": ["2026-12-01T09:00:00+01:00", "2026-12-01"]})
class MomentOrDateField(serializers.Field):
    """An instant, or a date (for all-day events), returned as a datetime or a date."""

    default_error_messages = {"invalid": "Must be a string."}

    def to_internal_value(self, data: Any) -> datetime | date:
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            if len(data) == len("2026-12-01"):
                return parse_date(data)
            return parse_instant(data, self.context.get("zone") or "UTC")
        except InstantError as error:
            raise serializers.ValidationError(str(error)) from None


def check_span(start: datetime, end: datetime, *, path: str = "end") -> None:
    """Raise a ValidationError at `path` unless `start < end <= start + 366 days`."""
    if end <= start:
        raise serializers.ValidationError({path: ["Must be after the start."]})
    if end - start > MAX_RANGE:
        raise serializers.ValidationError({path: ["Must be at most 366 days after the start."]})
