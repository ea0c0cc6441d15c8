"""Serializer fields that several bodies use."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from availability.core.constraints import ConstraintError, ConstraintRule, parse_constraints
from availability.core.matching import REQUIREMENT_MODES
from availability.models import MAX_EXTERNAL_ID
from availability.search.parameters import MAX_RANGE
from availability.search.requirements import MAX_REQUIREMENTS, MAX_RESOURCES
from availability.search.visits import MAX_STEPS, MIN_STEPS, ORDERS
from availability.serializers.constraint_schema import CONSTRAINT_LIST
from common.api.fields import (
    CLEARABLE,
    OPTIONAL,
    BoundedIntegerField,
    ChoiceField,
    DurationField,
    IdField,
    InstantField,
    ListOf,
    OneLineField,
    StrictBooleanField,
    array_as_object,
)
from common.api.serializers import ObjectSerializer
from common.messages import Message, find_message
from common.openapi.component_registry import Json
from common.openapi.components import ID
from common.time.durations import DurationError, elapsed_seconds, resolve_time
from common.time.instants import InstantError, parse_date, parse_instant

MINUTE, DAY = 60, 86_400
MAX_TAGS = 50  # of a requirement
MAX_QUANTITY = 1000


def external_id_field(**kwargs: Any) -> OneLineField:
    return OneLineField(MAX_EXTERNAL_ID, **(CLEARABLE | kwargs))


@extend_schema_field(CONSTRAINT_LIST)
class ConstraintsField(serializers.Field):
    """Parses the API's list of constraints (api.md section 7) into rules of the core."""

    response_schema = CONSTRAINT_LIST

    def to_internal_value(self, data: Any) -> tuple[ConstraintRule, ...]:
        try:
            return parse_constraints(data)
        except ConstraintError as error:
            raise serializers.ValidationError(error.errors) from error


_TAGS: Json = {"type": "array", "minItems": 1, "maxItems": MAX_TAGS, "items": {"type": "string"}}


@extend_schema_field(
    {
        "description": "Ids of resources, or tags.",
        "anyOf": [
            {"type": "array", "minItems": 1, "maxItems": MAX_RESOURCES, "items": ID},
            {
                "type": "object",
                "minProperties": 1,
                "properties": {"all": _TAGS, "any": _TAGS, "tags": _TAGS},
            },
        ],
    }
)
class ResourcesOrTagsField(serializers.Field):
    """Resources by id, or by tag: `[ids]` or `{"all": [texts], "any": [texts]}`."""

    response_schema: Json = {}

    default_error_messages = {
        "invalid": "Must be a list of ids, or an object with `all`, `any` or `tags`."
    }
    _kinds = ("all", "any", "tags")

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, list):
            ids = ListOf(IdField(), MAX_RESOURCES, allow_empty=False).run_validation(data)
            return [str(each) for each in ids]
        if not isinstance(data, Mapping) or not data.keys() & set(self._kinds):
            self.fail("invalid")
        tags = ListOf(OneLineField(200), MAX_TAGS, allow_empty=False)
        found, errors = {}, {}
        for kind in self._kinds:
            try:
                if kind in data:
                    found[kind] = tags.run_validation(data[kind])
            except serializers.ValidationError as error:
                errors[kind] = error.detail
        if errors:
            raise serializers.ValidationError(errors)
        return found


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


class RequirementSerializer(ObjectSerializer):
    """One kind of resource that a booking needs."""

    examples = {"name": "room", "any_of": {"tags": ["room"]}}
    on_request: ClassVar[Collection[str]] = (
        *("count", "mode", "weights", "calibrate_from"),
        *("offset", "length", "optional", "shown"),
    )

    name = OneLineField(100)
    any_of = ResourcesOrTagsField(
        help_text='Ids of resources, or tags: `{"any": [...]}` (one of them; also as `tags`),'
        ' `{"all": [...]}`, or both.'
    )
    count = BoundedIntegerField(1, 100, **OPTIONAL)
    mode = ChoiceField(
        REQUIREMENT_MODES,
        help_text="Which free resource is taken. `prioritized` (default): the first of `any_of`, of"
        " tags the first by name. `random`. `fair`: the one that has least of its share of the"
        " project's bookings, by `weights`.",
        **OPTIONAL,
    )
    weights = WeightsField(**OPTIONAL)
    calibrate_from = InstantTextField(
        help_text="The mode `fair` counts bookings made since then. The default is the project's"
        " making.",
        **CLEARABLE,
    )
    offset = DurationField(
        help_text="The resource is needed so long after the start of the booking. The default is"
        " its start.",
        **OPTIONAL,
    )
    length = DurationField(
        1,
        help_text="For how long. The default is the end of the booking; it may end later. A"
        " resource with an offset or a length keeps its own opening hours, and not the project's.",
        **CLEARABLE,
    )
    optional = StrictBooleanField(
        help_text="Bookings are made without it where no resource is free.", **OPTIONAL
    )
    shown = StrictBooleanField(
        help_text="The customer gets an e-mail if another resource is chosen. The default is true"
        " for the first requirement.",
        **OPTIONAL,
    )


class _RequirementsField(ListOf):
    """Requirements with different names, of which the first lasts as long as the booking."""

    default_error_messages = {
        "repeated": Message("Must not repeat a name."),
        "first": Message("The first requirement is needed for the whole booking."),
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(RequirementSerializer(), MAX_REQUIREMENTS, allow_empty=False, **kwargs)

    def to_internal_value(self, data: Any) -> list[Any]:
        given = [dict(each) for each in super().to_internal_value(data)]
        if len({each["name"] for each in given}) < len(given):
            self.fail("repeated")
        first = given[0]
        if first.get("optional") or first.get("length") or elapsed_seconds(first.get("offset", 0)):
            self.fail("first")
        return given


_REQUIREMENT_LIST: Json = {
    "type": "array",
    "minItems": 1,
    "maxItems": MAX_REQUIREMENTS,
    "items": RequirementSerializer.schema,
}
_REQUIREMENTS = _RequirementsField()
_ALTERNATIVES = ListOf(_RequirementsField(), MAX_REQUIREMENTS, allow_empty=False)


@extend_schema_field(
    {
        "oneOf": [
            _REQUIREMENT_LIST,
            {
                "type": "object",
                "required": ["alternatives"],
                "properties": {
                    "alternatives": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MAX_REQUIREMENTS,
                        "items": _REQUIREMENT_LIST,
                    }
                },
            },
        ]
    }
)
class RequiresField(serializers.Field):
    """What a booking requires, a different resource for each; or `{"alternatives": [...]}`: several
    such lists, of which the first that can be met is taken.
    """

    default_error_messages = {
        "invalid": Message("Must be a list, or an object with `alternatives`.")
    }

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, list):
            return _REQUIREMENTS.run_validation(data)
        if not isinstance(data, Mapping) or "alternatives" not in data:
            self.fail("invalid")
        try:
            return {"alternatives": _ALTERNATIVES.run_validation(data["alternatives"])}
        except serializers.ValidationError as error:
            raise serializers.ValidationError({"alternatives": error.detail}) from error


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


class StepRequirementSerializer(RequirementSerializer):
    """What a step of a visit needs for the whole step."""

    offset = length = optional = None  # type: ignore[assignment]  # leaves the fields out, says DRF
    on_request = ("count", "mode", "weights", "calibrate_from", "shown")


class GapSerializer(ObjectSerializer):
    """The time between a step and the one before."""

    examples = {}
    on_request = ("min", "max")

    min = DurationField(help_text="At least. The default is none.", **OPTIONAL)
    max = DurationField(help_text="At most. The default is `min`.", **CLEARABLE)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("max") is not None:
            least, most = elapsed_seconds(given.get("min") or 0), elapsed_seconds(given["max"])
            if most < least:
                raise serializers.ValidationError({"max": ["Must be at least `min`."]})
        return given


class StepSerializer(ObjectSerializer):
    """A step of a visit."""

    examples = {"name": "cleaning", "length": "30 mins"}
    on_request = ("requires", "resources", "gap", "same_as")

    name = OneLineField(100)
    length = DurationField(1)
    requires = ListOf(StepRequirementSerializer(), MAX_REQUIREMENTS, allow_empty=False, **OPTIONAL)
    resources = ListOf(
        IdField(),
        MAX_RESOURCES,
        allow_empty=False,
        help_text="Instead of `requires`: the step takes one of these.",
        **OPTIONAL,
    )
    gap = GapSerializer(help_text="Not used where the step is the first one.", **OPTIONAL)
    same_as = OneLineField(
        100,
        help_text="An earlier step: the (first) resource of that step does this one, too.",
        **OPTIONAL,
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if ("requires" in given) == ("resources" in given):
            raise serializers.ValidationError(
                {"requires": ["Send either `requires` or `resources`."]}
            )
        if "resources" in given:
            given["resources"] = [str(each) for each in given["resources"]]
        names = [each["name"] for each in given.get("requires", ())]
        if len(set(names)) < len(names):
            raise serializers.ValidationError({"requires": [Message("Must not repeat a name.")]})
        return given


class StepsField(ListOf):
    """The steps of a visit, with different names."""

    default_error_messages = {
        "repeated": Message("Must not repeat a name."),
        "too_few": f"Must have at least {MIN_STEPS} steps.",
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(StepSerializer(), MAX_STEPS, **kwargs)

    def to_internal_value(self, data: Any) -> list[Any]:
        given = [dict(each) for each in super().to_internal_value(data)]
        if len(given) < MIN_STEPS:
            self.fail("too_few")
        names = [each["name"] for each in given]
        if len(set(names)) < len(names):
            self.fail("repeated")
        for number, step in enumerate(given):
            if step.get("same_as", names[0]) not in names[: number or 1]:
                raise serializers.ValidationError(
                    {str(number): {"same_as": ["Must be the name of an earlier step."]}}
                )
        if "same_as" in given[0]:
            raise serializers.ValidationError(
                {"0": {"same_as": ["Must be the name of an earlier step."]}}
            )
        return given


def order_field(**kwargs: Any) -> ChoiceField:
    return ChoiceField(
        ORDERS,
        help_text="Whether the steps of a visit follow each other as given (the default), or in any"
        " order.",
        **kwargs,
    )


RESOURCE_CHOICE: Json = {
    "type": "object",
    "maxProperties": MAX_REQUIREMENTS,
    "additionalProperties": {
        "oneOf": [
            ID,
            {"type": "array", "minItems": 1, "maxItems": MAX_RESOURCES, "items": ID},
        ]
    },
    "description": "For a project with `requires`: the resources to take, by the name of the"
    " requirement: an id, or several to choose from. The service chooses the others.",
}


@extend_schema_field(RESOURCE_CHOICE)
class ResourceChoiceField(serializers.Field):
    """Resources by the name of their requirement: tuples of ids."""

    _ids = ListOf(IdField(), MAX_RESOURCES, allow_empty=False)

    def to_internal_value(self, data: Any) -> dict[str, tuple[Any, ...]]:
        data = array_as_object(data)
        if not isinstance(data, Mapping):
            raise serializers.ValidationError(Message("Must be an object."))
        if len(data) > MAX_REQUIREMENTS:
            raise serializers.ValidationError(f"Must have at most {MAX_REQUIREMENTS} keys.")
        errors, chosen = {}, {}
        for name, value in data.items():
            try:
                if isinstance(value, list):
                    chosen[name] = tuple(dict.fromkeys(self._ids.run_validation(value)))
                else:
                    chosen[name] = (IdField().run_validation(value),)
            except serializers.ValidationError as error:
                errors[name] = error.detail
        if errors:
            raise serializers.ValidationError(errors)
        return chosen
