"""Projects (api.md section 4)."""

from collections.abc import Collection
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps_config.serializers import EventNotificationSerializer, SlugField, notifications_field
from availability.conferences import (
    JITSI,
    MAX_TEMPLATE,
    PROVIDERS,
    TEMPLATE,
    is_jitsi_template,
    is_template,
)
from availability.graph_names import DEFAULT_GRAPH, GRAPH_NAMES
from availability.models import Project, Resource
from availability.payment_links import PLACEHOLDERS, is_payment_template, payment_key
from availability.search.parameters import (
    MAX_RANGE,
    MODE_ALIASES,
    MODES,
    SlotParameters,
    merge_parameters,
    with_parameters,
)
from availability.serializers.fields import (
    DAY,
    MAX_RESOURCES,
    MINUTE,
    MOMENT,
    ConstraintsField,
    InstantTextField,
    MomentField,
    RequiresField,
    StepsField,
    WeightsField,
    external_id_field,
    order_field,
)
from availability.serializers.resources import RESOURCE_EXAMPLE, ResourceSerializer, both_or_none
from common.api.fields import (
    CLEARABLE,
    MAX_URL,
    META_KEYS,
    NOT_IN_URL,
    OPTIONAL,
    BoundedIntegerField,
    ChoiceField,
    DurationField,
    FewField,
    IdField,
    LanguageField,
    ListOf,
    MetaField,
    ObjectOf,
    OneLineField,
    OriginField,
    SecondsField,
    StampField,
    StrictBooleanField,
    TextField,
    UrlField,
)
from common.api.merge_patch import merge_keys
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer, SettingsSerializer
from common.messages import Message
from common.openapi.component_registry import Json
from common.openapi.components import ID
from common.time.durations import duration_in_words, resolve_time

SLOT_DEFAULTS = SlotParameters()
MAX_LENGTHS = 20
DERIVED = "Is derived from `requires`."
DERIVED_FROM_STEPS = "Is derived from `steps`."
NOT_WITH_STEPS = "Is not used with `steps`."
NEEDS_LENGTH = "Required with `requires`."


def check_lengths(terms: SlotParameters) -> None:
    """Raise ValidationError unless `lengths` are different and `length` is one of them."""
    lengths = terms.lengths
    if len(set(lengths)) < len(lengths):
        raise serializers.ValidationError({"lengths": ["Must not repeat a length."]})
    if lengths and terms.length not in lengths:
        raise serializers.ValidationError(
            {"lengths": [Message("Must contain `%(field)s`.", field="length")]}
        )


class MaxStartsSerializer(ObjectSerializer):
    examples = {"quantity": 4, "per": "15 minutes"}

    quantity = BoundedIntegerField(1, 1000, **CLEARABLE)
    per = DurationField(least=MINUTE, most=DAY, **CLEARABLE)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """Without both, it is none."""
        return both_or_none(given, "quantity", "per")


class TermsSerializer(ObjectSerializer):
    """A project's `availability`, and the parameters of a query (api.md section 6)."""

    from_ = MomentField(
        initial=SLOT_DEFAULTS.earliest,
        help_text=f"The earliest start of a slot: the minimum notice. {MOMENT}",
        **CLEARABLE,
    )
    mode = ChoiceField(
        [*MODES, *MODE_ALIASES],
        initial=SLOT_DEFAULTS.mode,
        help_text="`roundrobin_random`: one free resource per slot, at random."
        " `roundrobin_prioritized`: the first free resource per slot, in the given order."
        " `roundrobin_fair`: the free resource that is furthest behind its share of the project's"
        " bookings."
        " `mutual`: slots when all resources are free. `exclusive`: slots when at least one"
        " resource is free, with all free resources. `all_free`: another name of `exclusive`.",
        **CLEARABLE,
    )
    weights = WeightsField(
        help_text="Shares of the bookings in the mode `roundrobin_fair`, by the id of the resource."
        " Without an entry: 1. 0: no bookings by turn.",
        **CLEARABLE,
    )
    calibrate_from = InstantTextField(
        help_text="In the mode `roundrobin_fair`, bookings made before this instant do not count."
        " Null: the project's making. Without an offset: UTC.",
        **CLEARABLE,
    )
    length = DurationField(
        least=MINUTE,
        most=366 * DAY,
        initial=duration_in_words(SLOT_DEFAULTS.length or 0),
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
    to = MomentField(
        initial=SLOT_DEFAULTS.latest,
        help_text="The latest end of a slot: the booking window. The same values as `from`, at most"
        " 366 days after it.",
        **CLEARABLE,
    )
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
    start_window = ConstraintsField(
        help_text="Rules for when bookings may start. With `start_window` or `end_window`, the time"
        " between need not be open, such as a rental over night: it must be free and outside of"
        " blocking rules, and allowing rules do not count. Only of a project, and in the query of"
        " server keys.",
        **CLEARABLE,
    )
    end_window = ConstraintsField(
        help_text="Rules for when bookings may end: in their windows, or at the end of one. See"
        " `start_window`.",
        **CLEARABLE,
    )
    max_starts = MaxStartsSerializer(
        help_text="At most so many bookings of the project start within any time of this length,"
        " whatever their resources. Bookings that block and holds count, each with its `quantity`.",
        **CLEARABLE,
    )
    round_to_nearest_hour = StrictBooleanField(
        initial=SLOT_DEFAULTS.round_to_nearest_hour,
        help_text="Rounds a relative `from` up to the full hour; true by default.",
        **CLEARABLE,
    )
    ignore_all_day_events = StrictBooleanField(
        initial=SLOT_DEFAULTS.ignore_all_day_events,
        help_text="All-day events do not block time.",
        **CLEARABLE,
    )


class ProjectAvailabilitySerializer(SettingsSerializer, TermsSerializer):
    """The default parameters of availability queries for this project. Absent parameters have the
    general default."""

    null_is_a_value = ("length",)
    examples = {"from": "2 hours", "length": "30 minutes", "to": "4 weeks"}

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """Check what depends on several keys, after merging with the stored project
        (`context["project"]`) and the defaults.
        """
        if given.get("max_starts") == {}:
            given["max_starts"] = None
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
            fault = Message("Must be 1 s to 366 days after `%(field)s`.", field="from")
            raise serializers.ValidationError({"to": [fault]})
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


@extend_schema_field({"oneOf": [{"type": "boolean"}, {"type": "string", "maxLength": 100}]})
class ChooseResourceField(OneLineField):
    """true or false, or the name of a requirement."""

    default_error_messages = {"invalid": Message("Must be true, false or a requirement's name.")}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=100, **kwargs)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return data if isinstance(data, bool) else super().run_validation(data)

    def to_representation(self, value: Any) -> Any:
        return value


class BookingDefaultsSerializer(SettingsSerializer):
    """The default values of bookings of this project."""

    examples = {"graph": "instant", "what": "Check-up", "where": "Harbour Dental"}

    graph = GraphField(initial=DEFAULT_GRAPH, help_text="The workflow of bookings.", **CLEARABLE)
    what = OneLineField(200, help_text="The default title of bookings.", **CLEARABLE)
    where = OneLineField(
        200,
        allow_blank=True,
        help_text="The default place of bookings: an address, a room or a link. `{booking_id}`,"
        " `{start}` and `{end}` are filled in.",
        **CLEARABLE,
    )
    description = TextField(
        8000,
        allow_blank=True,
        help_text="The default description of bookings, on pages, in e-mails and in calendars.",
        **CLEARABLE,
    )
    rescheduling_url = UrlField(
        help_text="The page to which e-mails link for another time. Null: the service's page.",
        **CLEARABLE,
    )
    payment_url = UrlField(
        help_text="The payment page for graphs with payment; the service adds `booking_id` to the"
        " query, without a signature. `settings.pay_url` takes precedence.",
        **CLEARABLE,
    )


MAX_POSITION = 1000
MAX_CHOICES = 200
MAX_LANGUAGES = 50
MAX_PER_PERIOD = 10_000
MAX_ORIGINS = 50
PUBLIC_RESCHEDULE = ("link", "id")
NOTE_DECLINED, CANCEL_DECLINED = GUEST_DECLINES = ("note", "cancel")


class ConferenceSettingsSerializer(SettingsSerializer):
    """The video call of bookings. The link is made for the booking and stays with it."""

    examples = {"provider": "jitsi"}

    provider = ChoiceField(
        PROVIDERS,
        help_text="`meet`, `teams`: the calendar to which the booking is written makes the link: a"
        " connected calendar of Google for `meet`, of Microsoft 365 for `teams`. `jitsi`: a room"
        " with a random name. `template`: an address of your own.",
        **CLEARABLE,
    )
    template = OneLineField(
        MAX_TEMPLATE,
        help_text="An https address. For `template`: with `{booking_id}`, which is replaced by the"
        " id of the booking (of a seat: of the group). For `jitsi`: your own server; the random"
        " name of the room is added at its end, or replaces `{booking_id}`. Null:"
        " `https://meet.jit.si`. Others do not use it.",
        **CLEARABLE,
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """Check the object as it will be stored: merged with that of the project."""
        project = self.context.get("project")
        stored = project.settings.get("conference") if project else None
        merged = merge_keys(stored if isinstance(stored, dict) else {}, given)
        if "provider" in given and given["provider"] is None:
            return {}  # removed
        provider, template = merged.get("provider"), merged.get("template") or ""
        if provider is None:
            raise serializers.ValidationError({"provider": ["This field is required."]})
        if provider == TEMPLATE and not is_template(template):
            fault = Message(
                "Must be an https address with %(placeholder)s behind its host.",
                placeholder="{booking_id}",
            )
            raise serializers.ValidationError({"template": [fault]})
        if provider == JITSI and template and not is_jitsi_template(template):
            fault = Message("Must be the https address of a Jitsi server.")
            raise serializers.ValidationError({"template": [fault]})
        return given if stored else merge_keys({}, given)


class ProjectSettingsSerializer(SettingsSerializer):
    """Policies apply to widget keys and to actions of customers, but not to server keys.
    `max_reschedules` counts moves by the customer. `max_per_day`, `max_per_week` and
    `max_per_month` apply to everyone while availability is enforced; they count a resource's
    blocking bookings, completed bookings and holds. `max_per_customer_per_day` and
    `max_open_per_customer` apply to everyone, too, and to every seat of a group."""

    examples = {"min_cancel_time": "1 day"}

    allow_double_bookings = StrictBooleanField(
        initial=False,
        help_text="Bookings may overlap others; they still block time.",
        **CLEARABLE,
    )
    enforce_availability = StrictBooleanField(
        initial=True,
        help_text="Bookings must keep to opening hours and limits; those of public callers always"
        " must.",
        **CLEARABLE,
    )
    pending_blocks = StrictBooleanField(
        initial=False, help_text="Tentative bookings block time.", **CLEARABLE
    )
    pending_expires = DurationField(
        least=MINUTE,
        most=366 * DAY,
        help_text="A request of the graph `confirm_decline` that is not answered for so long is"
        " declined, with the usual e-mails. Null: requests do not expire.",
        **CLEARABLE,
    )
    min_cancel_time = DurationField(
        help_text="How long before the start customers can still cancel. Later: 409 `policy`.",
        **CLEARABLE,
    )
    min_reschedule_time = DurationField(
        help_text="How long before the start customers can still move a booking. Later: 409"
        " `policy`.",
        **CLEARABLE,
    )
    max_reschedules = BoundedIntegerField(
        0, 1000, initial=20, help_text="Moves of a booking by the customer.", **CLEARABLE
    )
    guest_declines = ChoiceField(
        GUEST_DECLINES,
        initial=NOTE_DECLINED,
        help_text="What happens if a customer declines the invitation in a calendar program."
        " `note` (the default): the answer is stored. `cancel`: it also cancels the booking like"
        " the action `cancel_by_customer`, if the customer is the only one or has a seat of a"
        " group.",
        **CLEARABLE,
    )
    max_per_day = BoundedIntegerField(
        1, 1000, help_text="Bookings of a resource per day in its time zone.", **CLEARABLE
    )
    max_per_week = BoundedIntegerField(
        1,
        MAX_PER_PERIOD,
        help_text="Bookings of a resource per ISO week (Monday to Sunday) in its time zone.",
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
        help_text="Bookings of an e-mail address per local day of the resource, without cancelled,"
        " declined and unpaid bookings. One more: 409 `policy`. Not checked when PUT changes the"
        " address of a booking.",
        **CLEARABLE,
    )
    max_open_per_customer = BoundedIntegerField(
        1,
        1000,
        help_text="Bookings of an e-mail address that have not ended. One more: 409 `policy`. Not"
        " checked when PUT changes the address of a booking.",
        **CLEARABLE,
    )
    check_external = StrictBooleanField(
        initial=False,
        help_text="Query the connected calendars directly before a booking is created or moved,"
        " for at most 3 seconds. If a calendar is busy: 409 `slot_taken`. If a calendar"
        " does not respond in time, its stored events count.",
        **CLEARABLE,
    )
    published = StrictBooleanField(
        help_text="Whether the project has a hosted page. Null: the app's `publish_projects`.",
        **CLEARABLE,
    )
    public_customers = FewField(
        1,
        5,
        initial=1,
        help_text="The number of customers that a booking with a widget key can have; 1 by"
        " default.",
        **CLEARABLE,
    )
    max_quantity = BoundedIntegerField(
        1,
        1000,
        initial=1,
        help_text="The units or seats that a widget key can book or hold at once; 1 by default.",
        **CLEARABLE,
    )
    show_remaining = StrictBooleanField(
        initial=False,
        help_text="Widget keys may ask with `include=remaining` how many units are free.",
        **CLEARABLE,
    )
    public_reschedule = ChoiceField(
        PUBLIC_RESCHEDULE,
        initial="link",
        help_text="What a widget key needs to move a booking. `link` (the default): the"
        " `signature` of a link in an e-mail. `id`: the booking's id.",
        **CLEARABLE,
    )
    choose_resource = ChooseResourceField(
        initial=False,
        help_text="Customers can choose the resource on the hosted page; with `requires`, that of"
        " the requirement with this name (true: of the first). Not in mode mutual.",
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
        initial=False,
        help_text="Bookings with widget keys wait for the code of an e-mail to the customer:"
        " POST /v2/bookings answers 202.",
        **CLEARABLE,
    )
    language = LanguageField(
        help_text="The language of pages and e-mails. Null: the app's language.", **CLEARABLE
    )
    conference = ConferenceSettingsSerializer(
        help_text="The video call of new bookings. Null: none.", **CLEARABLE
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """A video call without a provider is none."""
        if given.get("conference") == {}:
            given["conference"] = None
        return given


PROJECT_DEFAULTS = ProjectSettingsSerializer.defaults()


class CustomerFieldSerializer(SettingsSerializer):
    examples = {"title": "Name", "required": True}

    title = OneLineField(200, allow_blank=True, **OPTIONAL)
    format = OneLineField(32, **OPTIONAL)
    required = StrictBooleanField(**OPTIONAL)  # type: ignore[assignment]  # DRF takes it out
    readonly = StrictBooleanField(**OPTIONAL)
    prefilled = serializers.JSONField(help_text="Any value.", **OPTIONAL)
    enum = ListOf(OneLineField(200), MAX_CHOICES, **OPTIONAL)
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
    response_schema = {
        "type": "object",
        "additionalProperties": CustomerFieldSerializer.schema,
        "description": "The fields of the booking form, by key.",
    }

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


class QuestionTextsSerializer(SettingsSerializer):
    examples = {"title": "Versicherung", "choices": {"Public": "Gesetzlich"}}

    title = OneLineField(200, **CLEARABLE)
    choices = ObjectOf(
        OneLineField(200),
        MAX_CHOICES,
        key=OneLineField(200),
        help_text="The texts of the choices, by the choice: a value of `enum`.",
        **CLEARABLE,
    )


class ProjectTextsSerializer(SettingsSerializer):
    """The texts of a project in one language, each instead of the project's own. A text that is
    missing is the project's own. Null removes a text."""

    examples = {
        "name": "Kontrolle",
        "questions": {"insurance": QuestionTextsSerializer.example()},
    }

    name = OneLineField(200, **CLEARABLE)
    what = OneLineField(200, help_text="Instead of `booking.what`.", **CLEARABLE)
    description = TextField(8000, help_text="Instead of `booking.description`.", **CLEARABLE)
    where = OneLineField(
        200,
        help_text="Instead of `booking.where`, with the same placeholders.",
        **CLEARABLE,
    )
    submit_button = OneLineField(
        200, help_text="Instead of `ui.localization.submit_button`.", **CLEARABLE
    )
    success_message = TextField(
        8000, help_text="Instead of `ui.localization.success_message`.", **CLEARABLE
    )
    questions = ObjectOf(
        QuestionTextsSerializer(),
        META_KEYS,
        help_text="The texts of questions, by their key in `customer_fields`. At most 16 kB as"
        " JSON.",
        **CLEARABLE,
    )


class TranslationsField(ObjectOf):
    """The texts of a project in further languages: the code of a shipped language -> texts."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(ProjectTextsSerializer(), MAX_LANGUAGES, key=LanguageField(), **kwargs)


def resource_ids(project: Project) -> list[str]:
    return [str(resource.id) for resource in project.shown_resources]


def reservation_time_field(**kwargs: Any) -> SecondsField:
    return SecondsField(1, 3600, help_text="The length of a hold in seconds. Null: 30.", **kwargs)


class ResourcesOfProjectField(ListOf):
    """Ids in bodies and by default in responses, whole resources with `include=resources`."""

    response_schema = {"type": "array", "items": {"anyOf": [ID, ResourceSerializer.schema]}}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(IdField(), MAX_RESOURCES, **kwargs)


class ProjectSerializer(ObjectSerializer):
    examples = {
        "id": example_id(14),
        "slug": "check-up",
        "name": "Check-up",
        "resources": [RESOURCE_EXAMPLE["id"]],
        "availability_constraints": [
            {"block_weekends": {}},
            {"allow_hours": {"start": 9, "end": 17}},
        ],
        "customer_fields": {"name": CustomerFieldSerializer.example()},
        "event_notifications": [EventNotificationSerializer.example()],
    }
    on_request = ("payment_key",)

    id = IdField(read_only=True)
    external_id = external_id_field(
        help_text="Its id in your own system: at most one project of the app has it."
    )
    slug = SlugField(**OPTIONAL)
    name = OneLineField(200)
    resources = ResourcesOfProjectField(
        help_text="Ids, or complete resources with include=resources.", **OPTIONAL
    )
    requires = RequiresField(
        help_text="Each booking takes a different resource for each requirement (`count` of"
        " them). `resources` is then derived. Not with `mode`.",
        **CLEARABLE,
    )
    steps = StepsField(
        help_text="Each booking is a visit of several steps, instead of `requires`. `resources` is"
        " then derived. Not with `mode`, and `length` is not used.",
        **CLEARABLE,
    )
    order = order_field(**CLEARABLE)
    availability = ProjectAvailabilitySerializer(**OPTIONAL)
    availability_constraints = ConstraintsField(**OPTIONAL)
    booking = BookingDefaultsSerializer(**OPTIONAL)
    customer_fields = CustomerFieldsField(**OPTIONAL)
    ui = MetaField(**OPTIONAL)
    translations = TranslationsField(
        help_text="The project's texts in further languages, by language: on the booking page, on"
        " other pages for customers, and in e-mails to customers.",
        **OPTIONAL,
    )
    event_notifications = notifications_field(help_text="Null: the app's.", **CLEARABLE)
    reminders = notifications_field(
        write_only=True,
        help_text="An alias of `event_notifications`, which takes precedence.",
        **CLEARABLE,
    )
    settings = ProjectSettingsSerializer(**OPTIONAL)
    reservation_time = reservation_time_field(**CLEARABLE)
    meta = MetaField(**OPTIONAL)
    created_at = StampField()
    updated_at = StampField()
    payment_key = serializers.CharField(
        read_only=True,
        help_text="With include=payment_key, for server keys and owners only: the key in base64"
        " that signs payment links.",
    )

    get_resources = staticmethod(resource_ids)

    @staticmethod
    def get_payment_key(project: Project) -> str:
        return payment_key(project)

    @staticmethod
    def get_requires(project: Project) -> Any:
        """Without broken rows; None if nothing is left."""
        requires = project.requires
        if isinstance(requires, dict):
            return requires if isinstance(requires.get("alternatives"), list) else None
        stored = requires if isinstance(requires, list) else []
        return [row for row in stored if isinstance(row, dict)] or None

    @staticmethod
    def get_event_notifications(project: Project) -> Any:
        return project.event_notifications if project.replaces_notifications else None

    @classmethod
    def render(
        cls, row: Project, zone: str = "UTC", include: Collection[str] | None = None
    ) -> Json:
        response = super().render(row, zone, include)
        if include and "resources" in include:
            response["resources"] = [
                ResourceSerializer.render(each) for each in row.shown_resources
            ]
        return response

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "reminders" in given:
            given.setdefault("event_notifications", given.pop("reminders"))
        if given.get("requires") and "resources" in given:
            raise serializers.ValidationError({"resources": [DERIVED]})
        if given.get("steps") and "resources" in given:
            raise serializers.ValidationError({"resources": [DERIVED_FROM_STEPS]})
        if given.get("steps") and given.get("requires"):
            raise serializers.ValidationError({"requires": [NOT_WITH_STEPS]})
        return given


PROJECT_INCLUDES = ("resources", "availability_constraints", "payment_key")
PROJECT_EXAMPLE = ProjectSerializer.example()


def with_project_rows(
    projects: QuerySet[Project], include: Collection[str] = ()
) -> QuerySet[Project]:
    """The rows that `ProjectSerializer` needs: one query each, whatever the number of projects. Of
    resources only the ids, unless they are included: a project may have thousands.
    """
    rows = Resource.objects.filter(deleted_at=None).order_by(
        "project_resources__position", "project_resources__id"
    )
    if "resources" not in include:
        rows = rows.only("id")
    shown: Prefetch = Prefetch("resources", rows, to_attr="shown_resources")
    return projects.prefetch_related(shown, "event_notifications")


ID_LIST: Json = {"type": "array", "maxItems": MAX_RESOURCES, "items": ID}


class ResourceIdsSerializer(ObjectSerializer):
    """The body of PUT /projects/:id/resources, which may also be a bare list."""

    body_schema = {
        "anyOf": [
            {"type": "object", "required": ["resources"], "properties": {"resources": ID_LIST}},
            ID_LIST,
        ]
    }

    resources = ListOf(IdField(), MAX_RESOURCES)


class ResourceIdSerializer(ObjectSerializer):
    resource_id = IdField()
