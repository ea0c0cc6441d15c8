"""Fields that the bodies of this room share."""

from datetime import date, datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from availability.core.constraints import ConstraintError, Rule, parse_constraints
from availability.terms import MAX_RANGE
from scheduling.api.durations import DurationError, resolve
from scheduling.api.instants import InstantError, parse_date, parse_instant

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
    """The contract's list of one-key objects (section 7) in, the core's rules out."""

    def to_internal_value(self, data: Any) -> tuple[Rule, ...]:
        try:
            return parse_constraints(data)
        except ConstraintError as error:
            raise serializers.ValidationError(error.errors) from error


@extend_schema_field(
    {
        "type": "string",
        "description": "An instant, or relative to the request's time: `now`, `tomorrow` (the next"
        " midnight), or a duration, in which days, weeks and months move on the wall clock of the"
        " resource. Relative times are rounded up to the full hour where"
        " `round_to_nearest_hour` says so.",
        "examples": ["now", "2 days", "2026-11-20T09:00:00+01:00"],
    }
)
class MomentField(serializers.Field):
    """`from` or `to`: an instant, or text relative to the request's time. Kept as it was sent."""

    default_error_messages = {"invalid": "Must be a string."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            # Whether a wall clock shows that time is asked of the resource's, once it is known.
            resolve(data, timezone.now(), "UTC")
        except (DurationError, InstantError) as error:
            raise serializers.ValidationError(str(error)) from None
        return data


@extend_schema_field({"type": "string", "examples": ["2026-12-01T09:00:00+01:00", "2026-12-01"]})
class MomentOrDateField(serializers.Field):
    """An instant, or a date alone (for events of whole days): kept as a datetime or a date."""

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
    """A time ends after it starts, lasts at most 366 days. Raises a ValidationError at `path`."""
    if end <= start:
        raise serializers.ValidationError({path: ["Must be after the start."]})
    if end - start > MAX_RANGE:
        raise serializers.ValidationError({path: ["Must be at most 366 days after the start."]})
