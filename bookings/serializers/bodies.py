"""The bodies of bookings (api.md section 5): nested and flat, freely mixed."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from apps_config.serializers import notifications_field
from availability.core.parties import MAX_PARTY
from availability.serializers.fields import (
    RequiresField,
    ResourceChoiceField,
    StepsField,
    check_span,
    external_id_field,
    order_field,
)
from bookings.graphs import GRAPHS, INITIALIZED
from bookings.models import MAX_NOTE, MAX_PLACE, OUTCOMES, Booking
from bookings.serializers.customers import CustomerChangeSerializer, CustomerSerializer
from bookings.services import ON_CONFLICT, SCOPES
from common.api.fields import (
    CLEARABLE,
    LINES,
    META_KEYS,
    OPTIONAL,
    BoundedIntegerField,
    ChoiceField,
    DurationField,
    EmailField,
    IdField,
    InstantField,
    ListOf,
    MetaField,
    ObjectOf,
    OneLineField,
    StrictBooleanField,
    TextField,
    array_as_object,
)
from common.api.serializers import ObjectSerializer, read_values_as
from common.errors import Invalid
from common.ical.rrule import MAX_LENGTH
from common.messages import Message
from common.openapi.component_registry import Json
from common.time.durations import elapsed_seconds

MAX_CUSTOMERS = 50
MAX_SEATS = 1000
MAX_PLACES = 50
EVENT_KEYS = (
    "start",
    "end",
    "what",
    "where",
    "calendar_id",
    "description",
    "invite",
    "participants",
)
# All that counts of what a widget key sends; the rest is ignored.
WIDGET_KEYS = frozenset(
    {
        *("start", "end", "what", "where", "description", "customer", "customers"),
        *("project_id", "resource_id", "resources", "reservation_id", "graph", "related", "meta"),
        *("quantity", "party_size", "place"),
    }
)


START_ACTIONS = sorted(
    {action for graph in GRAPHS.values() for action in graph.actions(INITIALIZED)}
)


WINDOWS = ("min_cancel_time", "min_booking_time", "max_booking_time")


class BookingSettingsSerializer(ObjectSerializer):
    # Responses have the windows of groups that set them.
    on_request = WINDOWS
    never_null = (*WINDOWS, "allow_double_bookings", "enforce_availability")
    examples = {}

    allow_double_bookings = StrictBooleanField(
        help_text="The booking may overlap others, but blocks later bookings. False by default.",
        **CLEARABLE,
    )
    enforce_availability = StrictBooleanField(
        help_text="The rules of resource and project apply. True by default with a project and"
        " for a widget key.",
        **CLEARABLE,
    )
    max_seats = BoundedIntegerField(
        1,
        MAX_SEATS,
        write_only=True,
        help_text="Required for a group (graph `group_owner`) without `places`.",
        **CLEARABLE,
    )
    places = ObjectOf(
        BoundedIntegerField(1, MAX_SEATS),
        MAX_PLACES,
        key=OneLineField(MAX_PLACE),
        help_text="Of a group: the number of seats by the name of their place, such as"
        ' `{"stalls": 100, "balcony": 50}`. `max_seats` is their sum.',
        write_only=True,
        **CLEARABLE,
    )
    min_cancel_time = DurationField(
        help_text="The latest time before a group's start at which customers can cancel their"
        " seats.",
        **CLEARABLE,
    )
    min_booking_time = DurationField(
        help_text="The latest time before a group's start at which seats can be booked.",
        **CLEARABLE,
    )
    max_booking_time = DurationField(
        help_text="The earliest time before a group's start at which seats can be booked.",
        **CLEARABLE,
    )

    @classmethod
    def render(cls, row: Booking, *_: Any) -> Json:
        return super().render(row) | row.policies


@extend_schema_field(
    {
        "type": "string",
        "enum": [*GRAPHS, None],
        "description": "`instant` by default. With a widget key, the project's graph.",
    }
)
class GraphNameField(OneLineField):
    """Any name: which ones can be booked is asked later."""


class RelatedSerializer(ObjectSerializer):
    owner_booking_id = IdField(help_text="The group of the seat.", **CLEARABLE)


def booking_external_id_field() -> OneLineField:
    return external_id_field(
        help_text="Its id in your own system: at most one booking of the app has it. Not for widget"
        " keys."
    )


def note_field() -> TextField:
    return TextField(
        MAX_NOTE,
        allow_blank=True,
        help_text="An internal note. Only server keys and members read and write it; it is in no"
        " e-mail, calendar or webhook call.",
        **CLEARABLE,
    )


def challenge_field() -> TextField:
    return TextField(
        2000, help_text="A solved challenge of GET /v2/challenge, for widget keys.", **CLEARABLE
    )


def quantity_field(**kwargs: Any) -> BoundedIntegerField:
    return BoundedIntegerField(1, MAX_SEATS, **kwargs)


class TargetSerializer(ObjectSerializer):
    """Who or what is to be booked: read first, because its zone reads the times."""

    project_id = IdField(
        help_text="The project defines the defaults. Without a resource, the service chooses a"
        " free one.",
        **CLEARABLE,
    )
    resource_id = IdField(help_text="The booking goes into its first calendar.", **CLEARABLE)
    calendar_id = IdField(**CLEARABLE)
    resources = ResourceChoiceField(**CLEARABLE)
    requires = RequiresField(
        help_text="What the booking requires, instead of the project's `requires`, or without a"
        " project. Not for widget keys.",
        **CLEARABLE,
    )
    steps = StepsField(
        help_text="The steps of a visit, as `requires`.",
        **CLEARABLE,
    )
    order = order_field(**CLEARABLE)
    reservation_id = IdField(
        help_text="A hold of POST /v2/bookings/reserve for this time. It can be used once.",
        **CLEARABLE,
    )
    quantity = quantity_field(
        help_text="How many units of the resource's capacity, at most 100, or seats of the group to"
        " take together; 1 by default, with `reservation_id` as many as are held. With a widget"
        " key, at most the project's `max_quantity`.",
        **CLEARABLE,
    )
    party_size = BoundedIntegerField(
        1,
        MAX_PARTY,
        help_text="The people who come: only resources whose `party` contains it, the smallest"
        " first. The ranges of several resources add up.",
        **CLEARABLE,
    )
    place = OneLineField(
        MAX_PLACE,
        help_text="The place of the seats: required for a group with `places`.",
        **CLEARABLE,
    )
    challenge = challenge_field()


class BookingTargetSerializer(TargetSerializer):
    """And by which workflow: what else is needed depends on it."""

    graph = GraphNameField(32, **CLEARABLE)
    related = RelatedSerializer(help_text="Required for a seat in a group.", **CLEARABLE)


@extend_schema_field(
    {
        "type": "string",
        "enum": [*START_ACTIONS, None],
        "description": "The graph's start action by default. In the graph `instant`, `create`"
        " makes a draft, which does not block.",
    }
)
class StartActionField(OneLineField):
    """Any name: whether it starts the graph is asked later."""


class MailSwitchSerializer(ObjectSerializer):
    enabled = StrictBooleanField(help_text="False: no e-mail.", **CLEARABLE)


class NewBookingSerializer(ObjectSerializer):
    """The flat form; what may come from a project's defaults is not demanded here."""

    needs_customer = True

    start = InstantField()
    end = InstantField()
    what = OneLineField(200, **OPTIONAL)
    where = OneLineField(200, allow_blank=True, **CLEARABLE)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    invite = StrictBooleanField(**CLEARABLE)
    participants = ListOf(OneLineField(254), 100, **CLEARABLE)
    action = StartActionField(32, **CLEARABLE)
    customer = CustomerSerializer(**OPTIONAL)
    customers = ListOf(CustomerSerializer(), MAX_CUSTOMERS, allow_empty=False, **OPTIONAL)
    settings = BookingSettingsSerializer(**CLEARABLE)
    event_notifications = notifications_field(
        help_text="Replaces the list of project or app; `[]` means none.", **CLEARABLE
    )
    meta = MetaField(**CLEARABLE)
    external_id = booking_external_id_field()
    note = note_field()
    recurrence = OneLineField(
        MAX_LENGTH,
        help_text="An RFC 5545 rule such as `FREQ=WEEKLY;COUNT=52`: one booking per occurrence,"
        " on the resource's wall clock. DAILY to YEARLY with COUNT or UNTIL, at most 366"
        " occurrences within 10 years. `start` is the first occurrence.",
        **CLEARABLE,
    )
    on_conflict = ChoiceField(
        ON_CONFLICT,
        help_text="If an occurrence can't be booked: fail the series (the default) or skip the"
        " occurrence.",
        **CLEARABLE,
    )
    notify_customer_by_email = MailSwitchSerializer(
        help_text="Whether the customers get an e-mail about the new booking.", **CLEARABLE
    )
    notify_owner_by_email = MailSwitchSerializer(
        help_text="Whether the owner gets an e-mail about the new booking.", **CLEARABLE
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "start" in given and "end" in given:
            check_span(given["start"], given["end"])
        if "customer" in given and "customers" in given:
            raise serializers.ValidationError(
                {"customers": ["Send either `customer` or `customers`."]}
            )
        if "customer" in given:
            given["customers"] = [given.pop("customer")]
        if "customers" not in given and self.needs_customer:
            raise serializers.ValidationError({"customer": ["This field is required."]})
        return given


class NewGroupSerializer(NewBookingSerializer):
    """An owner's booking: it has seats, and no customer of its own."""

    needs_customer = False

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        given = super().validate(given)
        settings = given.get("settings") or {}
        if settings.get("places"):
            settings["max_seats"] = sum_of_places(settings)
        if not settings.get("max_seats"):
            raise serializers.ValidationError({"settings.max_seats": ["This field is required."]})
        check_seat_window(settings.get("max_booking_time"), settings.get("min_booking_time"))
        return given


def sum_of_places(settings: dict[str, Any]) -> int:
    """Return `max_seats`, the sum of `places`. Raises ValidationError."""
    settings["places"] = {
        name: seats for name, seats in settings["places"].items() if seats is not None
    }
    total = sum(settings["places"].values())
    if settings.get("max_seats") not in (None, total):
        fault = Message("Must be the sum of `places`: %(total)s.", total=total)
        raise serializers.ValidationError({"settings.max_seats": [fault]})
    if total > MAX_SEATS:
        fault = Message("Must have at most %(count)s seats together.", count=MAX_SEATS)
        raise serializers.ValidationError({"settings.places": [fault]})
    return total


def check_seat_window(opens: str | None, closes: str | None) -> None:
    """How long before the start seats can first be taken, and last. Raises ValidationError."""
    if opens and closes and elapsed_seconds(opens) < elapsed_seconds(closes):
        raise serializers.ValidationError(
            {"settings.max_booking_time": ["Must not be shorter than `min_booking_time`."]}
        )


class NewSeatSerializer(NewBookingSerializer):
    """A seat: its time, if it is given at all, is checked against the group's."""

    start = InstantField(**CLEARABLE)
    end = InstantField(**CLEARABLE)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        times = {name: given.pop(name) for name in ("start", "end") if name in given}
        return super().validate(given) | times


class BookingEventSerializer(BookingTargetSerializer, NewBookingSerializer):
    """The nested form, for the API's description: FlatBody reads it."""

    start = InstantField(**OPTIONAL)
    end = InstantField(**OPTIONAL)

    def get_fields(self) -> dict[str, serializers.Field]:
        fields = super().get_fields()
        return {name: fields[name] for name in EVENT_KEYS}


class BookingBodySerializer(BookingTargetSerializer, NewBookingSerializer):
    """Both forms, for the API's description: FlatBody reads them."""

    never_empty = True

    event = BookingEventSerializer(
        help_text="The nested form of the keys. Different values in both forms are 422.",
        **OPTIONAL,
    )
    start = InstantField(**OPTIONAL)
    end = InstantField(**OPTIONAL)


class FlatBody:
    """A create body with the keys of `event` beside the others, and where each came from."""

    def __init__(self, body: Any, *, only: frozenset[str] | None = None) -> None:
        """Raises Invalid: no object, or a key in both forms with two values.

        `only`: the keys that count.
        """
        body = array_as_object(body)
        if not isinstance(body, Mapping):
            raise Invalid.at("body", Message("Must be an object."))
        event = array_as_object(body.get("event"))
        if event is not None and not isinstance(event, Mapping):
            raise Invalid.at("event", Message("Must be an object."))
        self.is_nested = event is not None
        nested = {key: value for key, value in (event or {}).items() if key in EVENT_KEYS}
        clashes = {
            f"event.{key}": [f"Must equal the key `{key}` outside of `event`."]
            for key, value in nested.items()
            if key in body and body[key] != value
        }
        if clashes:
            raise Invalid(clashes)
        self.nested = frozenset(nested)
        self.is_public = only is not None
        values = {key: value for key, value in body.items() if key != "event"} | nested
        self.values = values if only is None else {k: values[k] for k in values if k in only}

    def read(self, serializer: type[ObjectSerializer], **context: Any) -> dict[str, Any]:
        """The valid values. Raises Invalid with the paths as the client wrote them."""
        try:
            return read_values_as(serializer, self.values, is_public=self.is_public, **context)
        except Invalid as error:
            raise self.invalid(error.fields["errors"]) from error

    def invalid(self, errors: Mapping[str, list[str]]) -> Invalid:
        return Invalid({self.path(key): messages for key, messages in errors.items()})

    def path(self, key: str) -> str:
        """`event.start` where the client used the nested form, for this key or at all."""
        head = key.split(".")[0]
        missing = head not in self.values
        nested = head in self.nested or (missing and self.is_nested and head in EVENT_KEYS)
        return f"event.{key}" if nested else key


class ScopeSerializer(ObjectSerializer):
    scope = ChoiceField(
        SCOPES,
        help_text="The affected bookings of a series: only `this` booking (the default), also the"
        " `following`, or `all`. Completed bookings do not change.",
        **CLEARABLE,
    )


class ActionBodySerializer(ScopeSerializer):
    """What stands beside an action's inputs."""

    apply_to_bulked_bookings = StrictBooleanField(
        help_text="Apply the change to the related bookings of a bulk request, to all or none."
        " True by default.",
        **CLEARABLE,
    )


ACTIONS = frozenset(action for graph in GRAPHS.values() for _, action in graph.steps)
ACTION_INPUT = {
    "type": ["object", "null"],
    "properties": {
        "message": {"type": ["string", "null"], "maxLength": 8000, "pattern": LINES},
    },
}


class ActionInputSerializer(ObjectSerializer):
    """What stands under an action's name."""

    message = TextField(8000, allow_blank=True, **CLEARABLE)


class ActionInputsSerializer(ObjectSerializer):
    """The inputs of all actions, each under the action's name."""

    def get_fields(self) -> dict[str, serializers.Field]:
        return super().get_fields() | {action: ActionInputSerializer() for action in ACTIONS}


@extend_schema_serializer(component_name="ActionBody")
class ActionRequestSerializer(ActionInputsSerializer, ActionBodySerializer):
    """All keys of the body of an action."""

    body_schema = {
        "type": "object",
        "description": "The input is under the action's name. `scope`: the affected bookings of a"
        " series, only `this` by default. `apply_to_bulked_bookings`: whether the action applies"
        " to the related bookings of a bulk request, to all or none; true by default.",
        "properties": {
            "scope": {"type": ["string", "null"], "enum": [*SCOPES, None]},
            "apply_to_bulked_bookings": {"type": ["boolean", "null"]},
            **dict.fromkeys(sorted(ACTIONS), ACTION_INPUT),
        },
    }


class RescheduleTargetSerializer(ObjectSerializer):
    resource_id = IdField(help_text="The new resource. Absent: the same resource.", **CLEARABLE)
    challenge = challenge_field()


class RescheduleSerializer(RescheduleTargetSerializer, ScopeSerializer):
    never_empty = True

    start = InstantField(help_text="Absent, with `end`: the same time.", **OPTIONAL)
    end = InstantField(**OPTIONAL)
    resources = ResourceChoiceField(
        help_text="Other resources, by the name of the requirement; of a booking without"
        " requirements by the id of the present resource. The others stay where they are free.",
        **CLEARABLE,
    )
    step = OneLineField(
        100,
        help_text="Of a visit: only this step moves, to `start`, within its gaps. `end` is not"
        " used.",
        **CLEARABLE,
    )
    message = TextField(8000, allow_blank=True, **CLEARABLE)
    signature = OneLineField(
        200,
        allow_blank=True,
        help_text="For a widget key: the `signature` of the link to move the booking, from an"
        " e-mail to the customer.",
        **CLEARABLE,
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("step"):
            if not (given.get("start") or given.get("resources")):
                raise serializers.ValidationError({"start": ["This field is required."]})
        elif "start" in given or "end" in given or not given.get("resources"):
            missing = [name for name in ("start", "end") if name not in given]
            if missing:
                raise serializers.ValidationError(
                    {name: ["This field is required."] for name in missing}
                )
            check_span(given["start"], given["end"])
        return given


class VerificationSerializer(ObjectSerializer):
    code = OneLineField(20, help_text="The six digits of the e-mail.")


class GroupChangeSerializer(ObjectSerializer):
    max_seats = BoundedIntegerField(
        1, MAX_SEATS, help_text="At least the seats that are taken.", **OPTIONAL
    )
    places = ObjectOf(
        BoundedIntegerField(1, MAX_SEATS),
        MAX_PLACES,
        key=OneLineField(MAX_PLACE),
        help_text="All places of the group, each with at least the seats that are taken there."
        " `max_seats` becomes their sum.",
        **OPTIONAL,
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "places" in given:
            if not given["places"]:
                raise serializers.ValidationError({"places": ["Must not be empty."]})
            given["max_seats"] = sum_of_places(given)
        return given

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        others = data.keys() - self.fields if isinstance(data, Mapping) else ()
        if others:
            raise serializers.ValidationError({name: ["Can't be changed here."] for name in others})
        return super().to_internal_value(data)


class BookingChangeSerializer(ObjectSerializer):
    """The body of PUT /bookings/:id."""

    customer = CustomerChangeSerializer(help_text="The first customer.", **OPTIONAL)
    customers = ListOf(
        CustomerChangeSerializer(),
        MAX_CUSTOMERS,
        help_text="Matched by `id`, else by position. Customers can't be added or removed.",
        **OPTIONAL,
    )
    what = OneLineField(200, **OPTIONAL)
    where = OneLineField(200, allow_blank=True, **CLEARABLE)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    meta = MetaField(**OPTIONAL)
    external_id = booking_external_id_field()
    note = note_field()
    outcome = ChoiceField(
        OUTCOMES,
        help_text="Whether the customer came. From one hour before the start. Null clears it.",
        **CLEARABLE,
    )
    quantity = quantity_field(
        help_text="How many units or seats the booking takes from now on: 409 if they are not"
        " free.",
        **OPTIONAL,
    )
    settings = GroupChangeSerializer(help_text="Of a group.", **OPTIONAL)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "customer" in given and "customers" in given:
            raise serializers.ValidationError(
                {"customers": ["Send either `customer` or `customers`."]}
            )
        if "customer" in given:
            given |= {"customers": [given.pop("customer")], "customers_path": "customer"}
        texts = {name: given[name] or "" for name in ("where", "description") if name in given}
        note = {"note": given["note"] or None} if "note" in given else {}
        return given | texts | note | given.pop("settings", {})


class AddressSerializer(ObjectSerializer):
    """Whose data it is about."""

    email = EmailField()


class CustomerNoteSerializer(AddressSerializer):
    """The body of PUT /customers/note."""

    note = TextField(
        MAX_NOTE, allow_blank=True, allow_null=True, help_text="Empty or null removes it."
    )


MAX_BULK = 100


class BulkBodySerializer(ObjectSerializer):
    message = TextField(
        8000,
        allow_blank=True,
        help_text="For the log and the e-mails of all bookings: the `message` of each new booking,"
        " and of each action without one of its own.",
        **CLEARABLE,
    )
    stop_on_first_error = StrictBooleanField(
        help_text="Do not attempt the bookings after the first failure.", **CLEARABLE
    )
    delete_all_on_error = StrictBooleanField(
        help_text="Roll back all bookings if one fails.", **CLEARABLE
    )


class AnyField(serializers.JSONField):
    """Read on its own, so that one that is wrong fails alone."""

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        """Also null, which is none of its values."""
        return (True, None) if data is None else super().validate_empty_values(data)


@extend_schema_field(BookingBodySerializer)
class BookingBodyField(AnyField):
    serializer = BookingBodySerializer


class BulkChangeSerializer(ScopeSerializer):
    """One change: of the meta, or an action with its inputs under the action's name."""

    id = IdField()
    meta = MetaField(**OPTIONAL)
    action = OneLineField(32, **OPTIONAL)
    apply_to_bulked_bookings = StrictBooleanField(**CLEARABLE)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if ("meta" in given) == ("action" in given):
            raise serializers.ValidationError({"action": ["Send either `meta` or `action`."]})
        return given


class BulkChangeRequestSerializer(ActionInputsSerializer, BulkChangeSerializer):
    """All keys of one change."""


@extend_schema_field(
    {
        "type": "object",
        "required": ["id"],
        "description": "`meta`, or an `action` with its input under the action's name.",
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "meta": {"type": "object", "additionalProperties": True, "maxProperties": META_KEYS},
            "action": {"type": "string", "enum": sorted(ACTIONS)},
            "scope": {
                "type": ["string", "null"],
                "enum": [*SCOPES, None],
                "description": "The affected bookings of a series, as for a single action.",
            },
            "apply_to_bulked_bookings": {
                "type": ["boolean", "null"],
                "description": "Apply the action to the related bookings. False by default here.",
            },
            **dict.fromkeys(sorted(ACTIONS), ACTION_INPUT),
        },
    }
)
class BulkChangeField(AnyField):
    serializer = BulkChangeRequestSerializer


class NewBulkSerializer(BulkBodySerializer):
    """The body of POST /bookings/bulk."""

    bookings = ListOf(BookingBodyField(), MAX_BULK, allow_empty=False)
    relate_bookings = StrictBooleanField(
        help_text="An action on one booking applies to all of them.", **CLEARABLE
    )


class BulkChangesSerializer(BulkBodySerializer):
    """The body of PUT /bookings/bulk."""

    bookings = ListOf(BulkChangeField(), MAX_BULK, allow_empty=False)
