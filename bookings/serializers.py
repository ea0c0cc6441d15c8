"""The shapes of a booking's bodies (api.md section 5): nested and flat, freely mixed."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps_config.serializers import notifications_field
from availability.serializers.fields import CLEARABLE, OPTIONAL, check_span
from bookings.graphs import GRAPHS, INITIALIZED
from scheduling.api.bodies import read_values_as
from scheduling.api.errors import Invalid
from scheduling.api.fields import (
    META_KEYS,
    EmailField,
    IdField,
    InstantField,
    ListOf,
    MetaField,
    ObjectSerializer,
    OneLineField,
    StrictBooleanField,
    TextField,
    ZoneField,
    array_as_object,
)

MAX_CUSTOMERS = 50
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
        *("participants", "project_id", "resource_id", "graph", "meta"),
    }
)


START_ACTIONS = sorted(
    {action for graph in GRAPHS.values() for action in graph.actions(INITIALIZED)}
)


class CustomerSerializer(ObjectSerializer):
    """Name and e-mail are needed; every key that is not known goes to `meta`."""

    name = OneLineField(200)
    email = EmailField()
    phone = OneLineField(200, allow_blank=True, **CLEARABLE)
    voip = OneLineField(200, allow_blank=True, **CLEARABLE)
    timezone = ZoneField(**CLEARABLE)
    meta = MetaField(**CLEARABLE)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        given = super().to_internal_value(data)
        others = {
            key: value
            for key, value in data.items()
            if key not in self.fields and key != "id" and value is not None
        }
        meta = {**others, **(given.get("meta") or {})}
        if len(meta) > META_KEYS:
            raise serializers.ValidationError({"meta": [f"Must have at most {META_KEYS} keys."]})
        texts = {key: given.get(key) or "" for key in ("phone", "voip", "timezone")}
        return {**given, **texts, "meta": MetaField().run_validation(meta)}


class BookingSettingsSerializer(ObjectSerializer):
    allow_double_bookings = StrictBooleanField(
        help_text="It may overlap others, but blocks later ones. False by default.", **CLEARABLE
    )
    enforce_availability = StrictBooleanField(
        help_text="The time must keep the rules of the resource and the project. True by default"
        " with a project and for a widget key.",
        **CLEARABLE,
    )


class TargetSerializer(ObjectSerializer):
    """Who or what is to be booked: read first, because its zone reads the times."""

    project_id = IdField(
        help_text="Gives what is missing here, and without a resource picks a free one.",
        **CLEARABLE,
    )
    resource_id = IdField(help_text="The booking goes into its first calendar.", **CLEARABLE)
    calendar_id = IdField(**CLEARABLE)


@extend_schema_field(
    {
        "type": "string",
        "enum": [*(graph.name for graph in GRAPHS.values() if graph.bookable), None],
        "description": "`instant` by default. A widget key takes its project's.",
    }
)
class GraphNameField(OneLineField):
    """Any name: which ones can be booked is asked later."""


@extend_schema_field(
    {
        "type": "string",
        "enum": [*START_ACTIONS, None],
        "description": "The graph's start action by default. With `create`, `instant` makes a"
        " draft, which blocks nothing.",
    }
)
class StartActionField(OneLineField):
    """Any name: whether it starts the graph is asked later."""


class MailSwitchSerializer(ObjectSerializer):
    enabled = StrictBooleanField(help_text="False: no such mail.", **CLEARABLE)


class NewBookingSerializer(ObjectSerializer):
    """The flat form; what may come from a project's defaults is not demanded here."""

    start = InstantField()
    end = InstantField()
    what = OneLineField(200, **OPTIONAL)
    where = OneLineField(200, allow_blank=True, **CLEARABLE)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    invite = StrictBooleanField(**CLEARABLE)
    participants = ListOf(OneLineField(254), 100, **CLEARABLE)
    graph = GraphNameField(32, **CLEARABLE)
    action = StartActionField(32, **CLEARABLE)
    customer = CustomerSerializer(**OPTIONAL)
    customers = ListOf(CustomerSerializer(), MAX_CUSTOMERS, allow_empty=False, **OPTIONAL)
    settings = BookingSettingsSerializer(**CLEARABLE)
    event_notifications = notifications_field(
        help_text="Instead of the project's or the app's; `[]` for none.", **CLEARABLE
    )
    meta = MetaField(**CLEARABLE)
    notify_customer_by_email = MailSwitchSerializer(
        help_text="Whether the customers are mailed about its making.", **CLEARABLE
    )
    notify_owner_by_email = MailSwitchSerializer(
        help_text="Whether the owner is mailed about its making.", **CLEARABLE
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        check_span(given["start"], given["end"])
        if "customer" in given and "customers" in given:
            raise serializers.ValidationError({"customers": ["Give `customer` or `customers`."]})
        if "customer" in given:
            given["customers"] = [given.pop("customer")]
        if "customers" not in given:
            raise serializers.ValidationError({"customer": ["This field is required."]})
        return given


class BookingEventSerializer(TargetSerializer, NewBookingSerializer):
    """The nested form, for the API's description: FlatBody reads it."""

    start = InstantField(**OPTIONAL)
    end = InstantField(**OPTIONAL)

    def get_fields(self) -> dict[str, serializers.Field]:
        fields = super().get_fields()
        return {name: fields[name] for name in EVENT_KEYS}


class BookingBodySerializer(TargetSerializer, NewBookingSerializer):
    """Both forms, for the API's description: FlatBody reads them."""

    event = BookingEventSerializer(
        help_text="The nested form of the same keys beside it; both given and different: 422.",
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
            raise Invalid.at("body", "Must be an object.")
        event = array_as_object(body.get("event"))
        if event is not None and not isinstance(event, Mapping):
            raise Invalid.at("event", "Must be an object.")
        self.is_nested = event is not None
        nested = {key: value for key, value in (event or {}).items() if key in EVENT_KEYS}
        clashes = {
            f"event.{key}": [f"Differs from `{key}` beside it."]
            for key, value in nested.items()
            if key in body and body[key] != value
        }
        if clashes:
            raise Invalid(clashes)
        self.nested = frozenset(nested)
        values = {key: value for key, value in body.items() if key != "event"} | nested
        self.values = values if only is None else {k: values[k] for k in values if k in only}

    def read(self, serializer: type[serializers.Serializer], **context: Any) -> dict[str, Any]:
        """The valid values. Raises Invalid with the paths as the client wrote them."""
        try:
            return read_values_as(serializer, self.values, **context)
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


class ActionInputSerializer(ObjectSerializer):
    """What stands under an action's name."""

    message = TextField(8000, allow_blank=True, **CLEARABLE)


class RescheduleTargetSerializer(ObjectSerializer):
    resource_id = IdField(help_text="Where it moves to; absent: it stays.", **CLEARABLE)


class RescheduleSerializer(RescheduleTargetSerializer):
    start = InstantField()
    end = InstantField()
    message = TextField(8000, allow_blank=True, **CLEARABLE)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        check_span(given["start"], given["end"])
        return given


class BookingChangeSerializer(ObjectSerializer):
    """The body of PUT /bookings/:id."""

    meta = MetaField(**OPTIONAL)
