"""Serializer fields that several bodies use."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from availability.core.constraints import ConstraintError, ConstraintRule, parse_constraints
from availability.search.parameters import MAX_RANGE
from availability.serializers.constraint_schema import CONSTRAINT_LIST
from common.api.fields import (
    OPTIONAL,
    BoundedIntegerField,
    IdField,
    InstantField,
    ListOf,
    OneLineField,
    array_as_object,
)
from common.api.serializers import ObjectSerializer
from common.messages import Message, find_message
from common.openapi.component_registry import Json
from common.openapi.components import ID
from common.time.durations import DurationError, resolve_time
from common.time.instants import InstantError, parse_date, parse_instant

MINUTE, DAY = 60, 86_400
MAX_QUANTITY = 1000
MAX_RESOURCES = 500


@extend_schema_field(CONSTRAINT_LIST)
class ConstraintsField(serializers.Field):
    """Parses the API's list of constraints (api.md section 7) into rules of the core."""

    response_schema = CONSTRAINT_LIST

    def to_internal_value(self, data: Any) -> tuple[ConstraintRule, ...]:
        try:
            return parse_constraints(data)
        except ConstraintError as error:
            raise serializers.ValidationError(error.errors) from error


@extend_schema_field(
    {
        "description": "Ids of resources, or tags: resources with one of them.",
        "anyOf": [
            {"type": "array", "minItems": 1, "maxItems": MAX_RESOURCES, "items": ID},
            {
                "type": "object",
                "required": ["tags"],
                "properties": {
                    "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}}
                },
            },
        ],
    }
)
class ResourcesOrTagsField(serializers.Field):
    """Resources by id, or by tag: `[ids]` or `{"tags": [texts]}`."""

    response_schema: Json = {}

    default_error_messages = {"invalid": "Must be a list of ids, or an object with `tags`."}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, list):
            ids = ListOf(IdField(), MAX_RESOURCES, allow_empty=False).run_validation(data)
            return [str(each) for each in ids]
        if not isinstance(data, Mapping):
            self.fail("invalid")
        tags = ListOf(OneLineField(200), 50, allow_empty=False)
        try:
            return {"tags": tags.run_validation(data.get("tags"))}
        except serializers.ValidationError as error:
            raise serializers.ValidationError({"tags": error.detail}) from error


class RequirementSerializer(ObjectSerializer):
    """One kind of resource that a booking needs."""

    examples = {"name": "room", "any_of": {"tags": ["room"]}}
    on_request = ("count",)

    name = OneLineField(100)
    any_of = ResourcesOrTagsField(help_text='Ids of resources, or `{"tags": [...]}`.')
    count = BoundedIntegerField(1, 100, **OPTIONAL)


class RequiresField(ListOf):
    """What a booking requires: a different resource for each."""

    default_error_messages = {"repeated": Message("Must not repeat a name.")}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(RequirementSerializer(), 10, allow_empty=False, **kwargs)

    def to_internal_value(self, data: Any) -> list[Any]:
        given = [dict(each) for each in super().to_internal_value(data)]
        if len({each["name"] for each in given}) < len(given):
            self.fail("repeated")
        return given


MAX_WEIGHT = 1000


@extend_schema_field(
    {
        "type": "object",
        "description": "Weights in the mode `roundrobin_fair`, by the id of the resource; 1 by"
        " default. 0: no bookings by turn.",
        "maxProperties": MAX_RESOURCES,
        "additionalProperties": {"type": "integer", "minimum": 0, "maximum": MAX_WEIGHT},
        "example": {"01a1f84a-95c0-8000-8000-000000000001": 2},
    }
)
class WeightsField(serializers.Field):
    """Weights by the id of the resource."""

    response_schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    default_error_messages = {
        "invalid": Message("Must be an object."),
        "keys": f"Must have at most {MAX_RESOURCES} keys.",
    }
    _key, _weight = IdField(), BoundedIntegerField(0, MAX_WEIGHT)

    def to_internal_value(self, data: Any) -> dict[str, int]:
        data = array_as_object(data)
        if not isinstance(data, dict):
            self.fail("invalid")
        if len(data) > MAX_RESOURCES:
            self.fail("keys")
        weights, errors = {}, {}
        for key, weight in data.items():
            try:
                weights[str(self._key.run_validation(key))] = self._weight.run_validation(weight)
            except serializers.ValidationError as error:
                errors[key] = error.detail
        if errors:
            raise serializers.ValidationError(errors)
        return weights


@extend_schema_field({"type": "string", "examples": ["2026-11-20T09:00:00+01:00"]})
class InstantTextField(serializers.Field):
    """An instant, in UTC unless it has an offset. Kept as sent."""

    default_error_messages = {"invalid": Message("Must be a string.")}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            parse_instant(data.strip(), "UTC")
        except InstantError as error:
            raise serializers.ValidationError(find_message(error)) from error
        return data.strip()


MOMENT = (
    "An instant, a date (its midnight), or a time relative to the request: `now`, `tomorrow` (the"
    " next midnight), or a duration. Days, weeks and months use the wall clock of the resource."
    " With `round_to_nearest_hour`, relative times are rounded up to the full hour."
)


@extend_schema_field(
    {
        "type": "string",
        "description": MOMENT,
        "examples": ["now", "2 days", "2026-11-20T09:00:00+01:00", "2026-11-20"],
    }
)
class MomentField(serializers.Field):
    """`from` or `to`: an instant, a date, or text relative to the request. Kept as sent."""

    default_error_messages = {"invalid": Message("Must be a string.")}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            # Whether the wall time exists is checked later, in the zone of each resource.
            resolve_time(data, timezone.now(), "UTC")
        except (DurationError, InstantError) as error:
            raise serializers.ValidationError(find_message(error)) from None
        return data


@extend_schema_field({"type": "string", "examples": ["2026-12-01T09:00:00+01:00", "2026-12-01"]})
class MomentOrDateField(InstantField):
    """An instant, or a date (for all-day events), returned as a datetime or a date."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid")
        try:
            if len(data) == len("2026-12-01"):
                return parse_date(data)
            return parse_instant(data, self.zone_name)
        except InstantError as error:
            raise serializers.ValidationError(find_message(error)) from None


def check_span(start: datetime, end: datetime, *, path: str = "end") -> None:
    """Raise a ValidationError at `path` unless `start < end <= start + 366 days`."""
    if end <= start:
        raise serializers.ValidationError({path: ["Must be after the start."]})
    if end - start > MAX_RANGE:
        raise serializers.ValidationError({path: ["Must be at most 366 days after the start."]})
