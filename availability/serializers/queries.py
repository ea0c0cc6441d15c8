"""Serializers of availability queries (api.md section 6)."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from availability.core.parties import MAX_PARTY
from availability.search.parameters import SlotParameters, with_parameters
from availability.serializers.fields import (
    CONSTRAINT_LIST,
    DAY,
    MAX_QUANTITY,
    MAX_RESOURCES,
    MINUTE,
    RESOURCE_CHOICE,
    ConstraintsField,
    MomentField,
    RequiresField,
    ResourceChoiceField,
    StepsField,
    order_field,
)
from availability.serializers.projects import (
    DERIVED,
    DERIVED_FROM_STEPS,
    NEEDS_LENGTH,
    NOT_WITH_STEPS,
    TermsSerializer,
    check_lengths,
)
from common.api.fields import (
    CLEARABLE,
    OPTIONAL,
    BoundedIntegerField,
    ChoiceField,
    DurationField,
    IdField,
    ListOf,
    StrictBooleanField,
    ZoneField,
)
from common.api.serializers import ObjectSerializer
from common.openapi.components import ID

MAX_QUERIES = 20  # of one request of POST /findtime/bulk

_IDS = ListOf(
    IdField(),
    MAX_RESOURCES,
    allow_empty=False,
    error_messages={"empty": f"Must have 1 to {MAX_RESOURCES} items."},
)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "array", "minItems": 1, "maxItems": MAX_RESOURCES, "items": ID},
            RESOURCE_CHOICE,
        ]
    }
)
class ResourcesToSearchField(serializers.Field):
    """A list of ids, or ids by the name of their requirement."""

    def to_internal_value(self, data: Any) -> Any:
        field = ResourceChoiceField() if isinstance(data, Mapping) else _IDS
        return field.run_validation(data)


class QuerySerializer(TermsSerializer):
    """The body of POST /availability and its siblings."""

    never_empty = True

    project_id = IdField(
        help_text="Absent parameters are the project's. All constraints apply.",
        **CLEARABLE,
    )
    resources = ResourcesToSearchField(
        help_text="Ids. Required without a project. The default is the project's resources. For"
        " `requires`, an object: resources by the name of their requirement.",
        **CLEARABLE,
    )
    requires = RequiresField(
        help_text="Slots with a different free resource for each requirement. Not with"
        " `resources`, and not for widget keys. The default is the project's.",
        **CLEARABLE,
    )
    steps = StepsField(
        help_text="Slots of a visit with these steps. Not with `resources` or `requires`, and not"
        " for widget keys. The default is the project's.",
        **CLEARABLE,
    )
    order = order_field(**CLEARABLE)
    constraints = ConstraintsField(**CLEARABLE)
    quantity = BoundedIntegerField(
        1,
        MAX_QUANTITY,
        help_text="The units of a resource's capacity that a booking takes: slots with so many free"
        " ones. 1 by default; with a widget key, at most the project's `max_quantity`.",
        **CLEARABLE,
    )
    party_size = BoundedIntegerField(
        1,
        MAX_PARTY,
        help_text="The people who come: only resources whose `party` contains it, the smallest"
        " first, whatever the mode. The ranges of several resources add up.",
        **CLEARABLE,
    )
    include_past = StrictBooleanField(
        help_text="Include slots that have begun. Not for widget keys.", **CLEARABLE
    )
    output_timezone = ZoneField(
        help_text="The IANA zone of the times in the response.", **CLEARABLE
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("steps"):
            if isinstance(given.get("resources"), list):
                raise serializers.ValidationError({"resources": [DERIVED_FROM_STEPS]})
            for name in ("requires", "mode"):
                if given.get(name):
                    raise serializers.ValidationError({name: [NOT_WITH_STEPS]})
        if given.get("requires"):
            if isinstance(given.get("resources"), list):
                raise serializers.ValidationError({"resources": [DERIVED]})
            if "length" in given and given["length"] is None:
                raise serializers.ValidationError({"length": [NEEDS_LENGTH]})
            if given.get("mode"):
                raise serializers.ValidationError({"mode": ["Is not used with `requires`."]})
        if given.get("lengths"):
            kept: dict[str, Any] = {
                name: given[name] for name in ("length", "lengths") if name in given
            }
            check_lengths(with_parameters(SlotParameters(), kept))
        return given


_OLDER_FILTERS = {"type": ["array", "null"], "maxItems": 100, "items": {"type": "object"}}


@extend_schema_field(
    {
        "description": "A list of constraints, or the older filters: a union in `or`, an"
        " intersection in `and`.",
        "anyOf": [
            CONSTRAINT_LIST,
            {"type": "object", "properties": {"or": _OLDER_FILTERS, "and": _OLDER_FILTERS}},
        ],
    }
)
class FiltersField(serializers.JSONField):
    """Any JSON; `read_filters` parses it."""


class FindtimeSerializer(ObjectSerializer):
    """The body of POST /findtime. `filters` and `constraints` are two names of one parameter; if
    both are sent, both apply.
    """

    never_empty = True

    resource_ids = ListOf(IdField(), MAX_RESOURCES, **OPTIONAL)
    resources = ListOf(IdField(), MAX_RESOURCES, **OPTIONAL)
    calendar_ids = ListOf(IdField(), MAX_RESOURCES, **OPTIONAL)
    project_id = IdField(**CLEARABLE)
    filters = FiltersField(**OPTIONAL)
    constraints = FiltersField(**OPTIONAL)
    start = MomentField(default="now")
    future = MomentField(default="4 weeks")
    length = DurationField(least=MINUTE, most=366 * DAY, default="1 hour")
    buffer = DurationField(least=0, most=366 * DAY, **OPTIONAL)
    sort = ChoiceField(["asc", "desc"], **OPTIONAL)
    ignore_all_day_events = StrictBooleanField(**OPTIONAL)
    all_solutions = StrictBooleanField(**OPTIONAL)
    no_day_span = StrictBooleanField(**OPTIONAL)


class FindtimeQueriesSerializer(ObjectSerializer):
    """The body of POST /findtime/bulk and /findtime/team."""

    queries = ListOf(FindtimeSerializer(), MAX_QUERIES, allow_empty=False)
