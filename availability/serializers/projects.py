"""The shapes of projects in bodies (api.md section 4)."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps_config.serializers import SlugField, notifications_field
from availability.graph_names import GRAPH_NAMES
from availability.serializers.fields import (
    CLEARABLE,
    DAY,
    MAX_RESOURCES,
    MINUTE,
    OPTIONAL,
    ConstraintsField,
    MomentField,
)
from availability.terms import MAX_RANGE, MODES, Terms, with_values
from scheduling.api.durations import resolve
from scheduling.api.fields import (
    META_KEYS,
    DurationField,
    IdField,
    LanguageField,
    ListOf,
    MetaField,
    ObjectSerializer,
    OneLineField,
    SmallIntField,
    StrictBooleanField,
    TextField,
    UrlField,
)
from scheduling.api.merging import merge_keys


class TermsSerializer(ObjectSerializer):
    """A project's `availability`, and what a query may say of it (section 6)."""

    mode = serializers.ChoiceField(
        MODES,
        help_text="`roundrobin_random`: one resource per slot, in random order."
        " `roundrobin_prioritized`: one per slot, the first that is free in the order given."
        " `mutual`: slots where all are free. `exclusive`: slots where one is free, with all that"
        " are.",
        **CLEARABLE,
    )
    length = DurationField(
        least=MINUTE,
        most=366 * DAY,
        help_text="Of a slot, `1 hour` by default. Null: whole free intervals.",
        **CLEARABLE,
    )
    to = MomentField(**CLEARABLE)
    buffer = DurationField(
        least=0,
        most=366 * DAY,
        help_text="Kept free before and after every event that blocks.",
        **CLEARABLE,
    )
    timeslot_increments = DurationField(
        least=MINUTE,
        most=DAY,
        help_text="Distance of starts, counted from the day's openings. Without it slots are"
        " packed from the start of each free gap.",
        **CLEARABLE,
    )
    round_to_nearest_hour = StrictBooleanField(
        help_text="Rounds a relative `from` up to the full hour; true by default.", **CLEARABLE
    )
    ignore_all_day_events = StrictBooleanField(**CLEARABLE)

    def get_fields(self) -> dict[str, serializers.Field]:
        # `from` is a word of Python's.
        return {"from": MomentField(**CLEARABLE), **super().get_fields()}


class ProjectTermsSerializer(TermsSerializer):
    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """`from` and `to` must go together as they will stand: with what the project
        (`context["project"]`) keeps, and the defaults."""
        if not {"from", "to"} & given.keys():
            return given
        project, now = self.context.get("project"), timezone.now()
        terms = with_values(Terms(), merge_keys(project.availability if project else {}, given))
        start, end = (resolve(text, now, "UTC") for text in (terms.earliest, terms.latest))
        if not start < end <= start + MAX_RANGE:
            raise serializers.ValidationError({"to": ["Must lie 1 s to 366 days after `from`."]})
        return given


class GraphField(OneLineField):
    """The name of a graph that can be booked."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=32, **kwargs)
        choices = [*GRAPH_NAMES, None] if self.allow_null else GRAPH_NAMES
        extend_schema_field({"type": "string", "enum": choices})(self)

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if name not in GRAPH_NAMES:
            raise serializers.ValidationError(f"Must be one of {', '.join(GRAPH_NAMES)}.")
        return name


class BookingDefaultsSerializer(ObjectSerializer):
    graph = GraphField(**CLEARABLE)
    what = OneLineField(200, **CLEARABLE)
    where = OneLineField(200, allow_blank=True, **CLEARABLE)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    rescheduling_url = UrlField(**CLEARABLE)
    payment_url = UrlField(
        help_text="Where a customer pays for a booking of a graph with a payment; `booking_id` is"
        " added to its query. Without it the hosted page takes no such bookings.",
        **CLEARABLE,
    )


class ProjectSettingsSerializer(ObjectSerializer):
    """Policies and limits (section 4)."""

    allow_double_bookings = StrictBooleanField(**CLEARABLE)
    enforce_availability = StrictBooleanField(**CLEARABLE)
    pending_blocks = StrictBooleanField(
        help_text="A tentative booking keeps others out.", **CLEARABLE
    )
    min_cancel_time = DurationField(**CLEARABLE)
    min_reschedule_time = DurationField(**CLEARABLE)
    max_reschedules = SmallIntField(0, 1000, **CLEARABLE)
    max_per_day = SmallIntField(1, 1000, **CLEARABLE)
    check_external = StrictBooleanField(
        help_text="Connected calendars are asked once more just before a booking takes its time, 3"
        " seconds at most: what they are busy with is 409 `slot_taken`. One that does not answer"
        " in time is taken as it was last seen.",
        **CLEARABLE,
    )
    language = LanguageField(help_text="Of its pages and e-mails; null: the app's.", **CLEARABLE)


class CustomerFieldSerializer(ObjectSerializer):
    title = OneLineField(200, allow_blank=True, **OPTIONAL)
    format = OneLineField(32, **OPTIONAL)
    required = StrictBooleanField(**OPTIONAL)
    readonly = StrictBooleanField(**OPTIONAL)
    prefilled = serializers.JSONField(**OPTIONAL)
    enum = ListOf(OneLineField(200), 200, **OPTIONAL)
    split_name = StrictBooleanField(**OPTIONAL)


@extend_schema_field(
    {
        "type": "object",
        "description": "The questions of the booking form, by key; null removes one.",
        "maxProperties": META_KEYS,
        "additionalProperties": {
            "anyOf": [{"$ref": "#/components/schemas/CustomerField"}, {"type": "null"}]
        },
    }
)
class CustomerFieldsField(MetaField):
    """The questions of a booking form: key -> its description; null removes one."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        given = super().to_internal_value(data)
        errors: dict[str, Any] = {}
        for key, value in given.items():
            reader = CustomerFieldSerializer(data=value)
            if value is not None and not reader.is_valid():
                errors[key] = reader.errors
            elif value is not None:
                given[key] = dict(reader.validated_data)
        if errors:
            raise serializers.ValidationError(errors)
        return given


class ProjectSerializer(ObjectSerializer):
    """The body of PUT /projects/:id."""

    name = OneLineField(200, **OPTIONAL)
    slug = SlugField(**OPTIONAL)
    resources = ListOf(IdField(), MAX_RESOURCES, **OPTIONAL)
    availability = ProjectTermsSerializer(**OPTIONAL)
    availability_constraints = ConstraintsField(**OPTIONAL)
    booking = BookingDefaultsSerializer(**OPTIONAL)
    customer_fields = CustomerFieldsField(**OPTIONAL)
    ui = MetaField(**OPTIONAL)
    settings = ProjectSettingsSerializer(**OPTIONAL)
    event_notifications = notifications_field(**CLEARABLE)
    reminders = notifications_field(
        help_text="The same as `event_notifications`, which counts where both are given.",
        **CLEARABLE,
    )
    reservation_time = SmallIntField(
        1, 3600, help_text="Seconds that a hold lasts; null: 30.", **CLEARABLE
    )
    meta = MetaField(**OPTIONAL)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "reminders" in given:
            given.setdefault("event_notifications", given.pop("reminders"))
        return given


class NewProjectSerializer(ProjectSerializer):
    """The body of POST /projects."""

    name = OneLineField(200)


class ResourceIdsSerializer(ObjectSerializer):
    """The body of PUT /projects/:id/resources, which may also be the bare list."""

    resources = ListOf(IdField(), MAX_RESOURCES)


class ResourceIdSerializer(ObjectSerializer):
    resource_id = IdField()
