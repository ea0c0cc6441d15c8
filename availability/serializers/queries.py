"""The shapes of questions for time (api.md section 6)."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from availability.serializers.fields import (
    CLEARABLE,
    CONSTRAINT_LIST,
    DAY,
    MAX_RESOURCES,
    MINUTE,
    OPTIONAL,
    ConstraintsField,
    MomentField,
)
from availability.serializers.projects import TermsSerializer
from scheduling.api.fields import (
    DurationField,
    IdField,
    ListOf,
    ObjectSerializer,
    StrictBooleanField,
    ZoneField,
)


class QuerySerializer(TermsSerializer):
    """The body of POST /availability and its siblings."""

    project_id = IdField(
        help_text="Everything that is not said here is the project's; constraints add up.",
        **CLEARABLE,
    )
    resources = ListOf(
        IdField(),
        MAX_RESOURCES,
        allow_empty=False,
        error_messages={"empty": f"Must have 1 to {MAX_RESOURCES} items."},
        help_text="Needed without a project, else the project's by default.",
        **CLEARABLE,
    )
    constraints = ConstraintsField(**CLEARABLE)
    include_past = StrictBooleanField(
        help_text="Also slots that have begun; not for widget keys.", **CLEARABLE
    )
    output_timezone = ZoneField(
        help_text="IANA zone in which the answer is written; changes no instant.", **CLEARABLE
    )


_OLDER_FILTERS = {"type": ["array", "null"], "maxItems": 100, "items": {"type": "object"}}


@extend_schema_field(
    {
        "description": "A list of constraints, or the older filters: those in `or` unite, each in"
        " `and` narrows.",
        "anyOf": [
            CONSTRAINT_LIST,
            {"type": "object", "properties": {"or": _OLDER_FILTERS, "and": _OLDER_FILTERS}},
        ],
    }
)
class FiltersField(serializers.JSONField):
    """Any JSON: `findtime` reads it."""


class FindtimeSerializer(ObjectSerializer):
    """The body of POST /findtime; `findtime` reads `filters` and `constraints`, two names of one
    thing: where both are sent, both hold.
    """

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
    sort = serializers.ChoiceField(["asc", "desc"], **OPTIONAL)
    ignore_all_day_events = StrictBooleanField(**OPTIONAL)
    all_solutions = StrictBooleanField(**OPTIONAL)
    no_day_span = StrictBooleanField(**OPTIONAL)
