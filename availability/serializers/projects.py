"""Serializers of project bodies (api.md section 4)."""

from typing import Any

from django.utils import timezone
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps_config.serializers import SlugField, notifications_field
from availability.graph_names import GRAPH_NAMES
from availability.payment_links import PLACEHOLDERS, is_payment_template
from availability.search.parameters import (
    MAX_RANGE,
    MODE_ALIASES,
    MODES,
    SlotParameters,
    merge_parameters,
    with_parameters,
)
from availability.serializers.fields import (
    CLEARABLE,
    DAY,
    MAX_RESOURCES,
    MINUTE,
    OPTIONAL,
    ConstraintsField,
    InstantTextField,
    MomentField,
    RequiresField,
    WeightsField,
)
from common.api.fields import (
    MAX_URL,
    META_KEYS,
    NOT_IN_URL,
    BoundedIntegerField,
    DurationField,
    IdField,
    LanguageField,
    ListOf,
    MetaField,
    ObjectSerializer,
    OneLineField,
    OriginField,
    StrictBooleanField,
    TextField,
    UrlField,
)
from common.time.durations import resolve_time

MAX_LENGTHS = 20
DERIVED = "Is derived from `requires`."
NEEDS_LENGTH = "Required with `requires`."


def check_lengths(terms: SlotParameters) -> None:
    """Raise ValidationError unless `lengths` are different and `length` is one of them."""
    lengths = terms.lengths
    if len(set(lengths)) < len(lengths):
        raise serializers.ValidationError({"lengths": ["Must not repeat a length."]})
    if lengths and terms.length not in lengths:
        raise serializers.ValidationError({"lengths": ["Must contain `length`."]})


class TermsSerializer(ObjectSerializer):
    """A project's `availability`, and the parameters of a query (api.md section 6)."""

    mode = serializers.ChoiceField(
        [*MODES, *MODE_ALIASES],
        help_text="`roundrobin_random`: one free resource per slot, at random."
        " `roundrobin_prioritized`: the first free resource per slot, in the given order."
        " `roundrobin_fair`: the free resource that is furthest behind its share of the project's"
        " bookings."
        " `mutual`: slots when all resources are free. `exclusive`: slots when at least one"
        " resource is free, with all free resources. `all_free`: another name of `exclusive`.",
        **CLEARABLE,
    )
    weights = WeightsField(**CLEARABLE)
    calibrate_from = InstantTextField(
        help_text="In the mode `roundrobin_fair`, bookings made before this instant do not count;"
        " the project's making by default. Without an offset: UTC.",
        **CLEARABLE,
    )
    length = DurationField(
        least=MINUTE,
        most=366 * DAY,
        help_text="The length of a slot, `1 hour` by default. Null: complete free intervals.",
        **CLEARABLE,
    )
    lengths = ListOf(
        DurationField(least=MINUTE, most=366 * DAY),
        MAX_LENGTHS,
        allow_empty=False,
        error_messages={"empty": f"Must have 1 to {MAX_LENGTHS} items."},
        help_text="The lengths that a query or a booking may choose from. `length` is one of them;"
        " without it, the first is the default.",
        **CLEARABLE,
    )
    to = MomentField(**CLEARABLE)
    buffer = DurationField(
        least=0,
        most=366 * DAY,
        help_text="Sets both `buffer_before` and `buffer_after`; each may still be given.",
        **CLEARABLE,
    )
    buffer_before = DurationField(
        least=0,
        most=366 * DAY,
        help_text="Free time before a booking. Between two bookings lies at least the larger of the"
        " earlier one's `buffer_after` and the later one's `buffer_before`. A booking keeps the"
        " buffers that it was made with; an event without a booking has those of the query.",
        **CLEARABLE,
    )
    buffer_after = DurationField(
        least=0,
        most=366 * DAY,
        help_text="Free time after a booking; see `buffer_before`.",
        **CLEARABLE,
    )
    timeslot_increments = DurationField(
        least=MINUTE,
        most=DAY,
        help_text="The distance between starts, counted from the opening times of the day."
        " Absent: slots follow each other from the start of each free interval.",
        **CLEARABLE,
    )
    round_to_nearest_hour = StrictBooleanField(
        help_text="Rounds a relative `from` up to the full hour; true by default.", **CLEARABLE
    )
    ignore_all_day_events = StrictBooleanField(**CLEARABLE)

    def get_fields(self) -> dict[str, serializers.Field]:
        # `from` is a Python keyword.
        return {"from": MomentField(**CLEARABLE), **super().get_fields()}


class ProjectTermsSerializer(TermsSerializer):
    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """Check what depends on several keys, after merging with the stored project
        (`context["project"]`) and the defaults.
        """
        if not {"from", "to", "length", "lengths", "weights"} & given.keys():
            return given
        project, now = self.context.get("project"), timezone.now()
        merged = merge_parameters(project.availability if project else {}, given)
        terms = with_parameters(SlotParameters(), merged)
        check_lengths(terms)
        if len(terms.weights) > MAX_RESOURCES:
            raise serializers.ValidationError(
                {"weights": [f"Must have at most {MAX_RESOURCES} keys."]}
            )
        start, end = (resolve_time(text, now, "UTC") for text in (terms.earliest, terms.latest))
        if not start < end <= start + MAX_RANGE:
            raise serializers.ValidationError({"to": ["Must be 1 s to 366 days after `from`."]})
        return given


class GraphField(OneLineField):
    """The name of a bookable graph."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=32, **kwargs)
        choices = [*GRAPH_NAMES, None] if self.allow_null else GRAPH_NAMES
        set_override(self, "field", {"type": "string", "enum": choices})

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        if name not in GRAPH_NAMES:
            raise serializers.ValidationError(f"Must be one of {', '.join(GRAPH_NAMES)}.")
        return name


PAY_URL_FAULT = (
    "Must be an http or https address whose placeholders are"
    f" {', '.join(f'{{{name}}}' for name in PLACEHOLDERS)}, none of them in the host."
)


class PayUrlField(OneLineField):
    """An http or https address with the placeholders of payment links."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MAX_URL, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text and (NOT_IN_URL.search(text) or not is_payment_template(text)):
            raise serializers.ValidationError(PAY_URL_FAULT)
        return text


class BookingDefaultsSerializer(ObjectSerializer):
    graph = GraphField(**CLEARABLE)
    what = OneLineField(200, **CLEARABLE)
    where = OneLineField(200, allow_blank=True, **CLEARABLE)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    rescheduling_url = UrlField(**CLEARABLE)
    payment_url = UrlField(
        help_text="The payment page for graphs with payment; the service adds `booking_id` to the"
        " query, without a signature. `settings.pay_url` takes precedence.",
        **CLEARABLE,
    )


MAX_PUBLIC_CUSTOMERS = 5
MAX_POSITION = 1000
MAX_PER_PERIOD = 10_000
MAX_ORIGINS = 50
PUBLIC_RESCHEDULE = ("link", "id")


class ProjectSettingsSerializer(ObjectSerializer):
    """A project's policies and limits (api.md section 4)."""

    allow_double_bookings = StrictBooleanField(**CLEARABLE)
    enforce_availability = StrictBooleanField(**CLEARABLE)
    pending_blocks = StrictBooleanField(help_text="Tentative bookings block time.", **CLEARABLE)
    pending_expires = DurationField(
        least=MINUTE,
        most=366 * DAY,
        help_text="A request of the graph `confirm_decline` that is not answered for so long is"
        " declined, with the usual e-mails. Null: requests do not expire.",
        **CLEARABLE,
    )
    min_cancel_time = DurationField(**CLEARABLE)
    min_reschedule_time = DurationField(**CLEARABLE)
    max_reschedules = BoundedIntegerField(0, 1000, **CLEARABLE)
    max_per_day = BoundedIntegerField(1, 1000, **CLEARABLE)
    max_per_week = BoundedIntegerField(
        1,
        MAX_PER_PERIOD,
        help_text="Bookings of a resource per ISO week in its time zone.",
        **CLEARABLE,
    )
    max_per_month = BoundedIntegerField(
        1,
        MAX_PER_PERIOD,
        help_text="Bookings of a resource per calendar month in its time zone.",
        **CLEARABLE,
    )
    max_per_customer_per_day = BoundedIntegerField(
        1,
        1000,
        help_text="Bookings of an e-mail address per local day of the resource. One more: 409"
        " `policy`.",
        **CLEARABLE,
    )
    max_open_per_customer = BoundedIntegerField(
        1,
        1000,
        help_text="Bookings of an e-mail address that have not ended. One more: 409 `policy`.",
        **CLEARABLE,
    )
    check_external = StrictBooleanField(
        help_text="Query the connected calendars directly before a booking is created or moved,"
        " for at most 3 seconds. If a calendar is busy: 409 `slot_taken`. If a calendar"
        " does not respond in time, its stored events count.",
        **CLEARABLE,
    )
    published = StrictBooleanField(
        help_text="Whether the project has a hosted page. Null: the app's `publish_projects`.",
        **CLEARABLE,
    )
    public_customers = BoundedIntegerField(
        1,
        MAX_PUBLIC_CUSTOMERS,
        help_text="The number of customers that a booking with a widget key can have; 1 by"
        " default.",
        **CLEARABLE,
    )
    public_reschedule = serializers.ChoiceField(
        PUBLIC_RESCHEDULE,
        help_text="What a widget key needs to move a booking. `link` (the default): the"
        " `signature` of a link in an e-mail. `id`: the booking's id.",
        **CLEARABLE,
    )
    choose_resource = StrictBooleanField(
        help_text="Customers can choose the resource on the hosted page. Not in mode mutual.",
        **CLEARABLE,
    )
    redirect_url = UrlField(
        help_text="Where the hosted page leads after a booking; the service adds `booking_id` to"
        " the query. Null: the page shows the booking.",
        **CLEARABLE,
    )
    pay_url = PayUrlField(
        help_text="The payment page for graphs with payment, with the placeholders `{booking_id}`,"
        " `{start}`, `{until}` (the deadline) and `{signature}`; the service adds `booking_id` and"
        " `signature` to the query if they are absent. Without it and without"
        " `booking.payment_url`, a project with payment can't be published.",
        **CLEARABLE,
    )
    embed_origins = ListOf(
        OriginField(),
        MAX_ORIGINS,
        allow_empty=False,
        help_text="The only web sites that may show the hosted page in a frame. Null: any.",
        **CLEARABLE,
    )
    verify_email = StrictBooleanField(
        help_text="Bookings with widget keys wait for the code of an e-mail to the customer:"
        " POST /v2/bookings answers 202.",
        **CLEARABLE,
    )
    language = LanguageField(
        help_text="The language of pages and e-mails. Null: the app's language.", **CLEARABLE
    )


class CustomerFieldSerializer(ObjectSerializer):
    title = OneLineField(200, allow_blank=True, **OPTIONAL)
    format = OneLineField(32, **OPTIONAL)
    required = StrictBooleanField(**OPTIONAL)  # type: ignore[assignment]  # DRF takes it out
    readonly = StrictBooleanField(**OPTIONAL)
    prefilled = serializers.JSONField(**OPTIONAL)
    enum = ListOf(OneLineField(200), 200, **OPTIONAL)
    split_name = StrictBooleanField(**OPTIONAL)
    position = BoundedIntegerField(
        0,
        MAX_POSITION,
        help_text="The order of the fields. Fields without a position: name and contact data come"
        " first, others last.",
        **OPTIONAL,
    )


@extend_schema_field(
    {
        "type": "object",
        "description": "The fields of the booking form, by key. Null removes a field.",
        "maxProperties": META_KEYS,
        "additionalProperties": {
            "anyOf": [{"$ref": "#/components/schemas/CustomerField"}, {"type": "null"}]
        },
    }
)
class CustomerFieldsField(MetaField):
    """The fields of a booking form: key -> description; null removes a field."""

    value_serializer = CustomerFieldSerializer

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
    requires = RequiresField(
        help_text="Each booking takes a different resource for each requirement (`count` of"
        " them). `resources` is then derived. Not with `mode`.",
        **CLEARABLE,
    )
    availability = ProjectTermsSerializer(**OPTIONAL)
    availability_constraints = ConstraintsField(**OPTIONAL)
    booking = BookingDefaultsSerializer(**OPTIONAL)
    customer_fields = CustomerFieldsField(**OPTIONAL)
    ui = MetaField(**OPTIONAL)
    settings = ProjectSettingsSerializer(**OPTIONAL)
    event_notifications = notifications_field(**CLEARABLE)
    reminders = notifications_field(
        help_text="An alias of `event_notifications`, which takes precedence.",
        **CLEARABLE,
    )
    reservation_time = BoundedIntegerField(
        1, 3600, help_text="The length of a hold in seconds. Null: 30.", **CLEARABLE
    )
    meta = MetaField(**OPTIONAL)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "reminders" in given:
            given.setdefault("event_notifications", given.pop("reminders"))
        if given.get("requires") and "resources" in given:
            raise serializers.ValidationError({"resources": [DERIVED]})
        return given


class NewProjectSerializer(ProjectSerializer):
    """The body of POST /projects."""

    name = OneLineField(200)


class ResourceIdsSerializer(ObjectSerializer):
    """The body of PUT /projects/:id/resources, which may also be a bare list."""

    resources = ListOf(IdField(), MAX_RESOURCES)


class ResourceIdSerializer(ObjectSerializer):
    resource_id = IdField()
