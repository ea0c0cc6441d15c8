"""Connected calendars and feeds."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from availability.models import Calendar
from availability.serializers.calendars import CalendarSerializer
from common.api.fields import CLEARABLE, ONE_LINE, OPTIONAL, OneLineField, StrictBooleanField
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer
from common.messages import Message, find_message
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import PROVIDER_ERRORS, ProviderError
from external_calendars.providers.urls import full_address

MAX_ADDRESS = 2000


@extend_schema_field({"type": "string", "enum": [Calendar.SERVICE, *PROVIDERS]})
class ProviderField(serializers.Field):
    """`service`, or the name of a provider."""

    default_error_messages = {"invalid": "Must be one of {kinds}."}

    def to_internal_value(self, data: Any) -> str:
        kinds = (Calendar.SERVICE, *PROVIDERS)
        if data not in kinds:
            self.fail("invalid", kinds=", ".join(kinds))
        return data


@extend_schema_field(
    {
        "type": "string",
        "pattern": ONE_LINE,
        "examples": ["https://dav.example.com/calendars/ada/work/", "dav.example.com"],
    }
)
class AddressField(OneLineField):
    """A web address in any form that `full_address` reads; SSRF is checked when it is called."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MAX_ADDRESS, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        # Other validators report blank and too long values.
        if not text or len(text) > MAX_ADDRESS:
            return text
        try:
            return full_address(text)
        except ProviderError as error:
            raise serializers.ValidationError(find_message(error)) from None


def username_field() -> OneLineField:
    return OneLineField(300, allow_blank=True, **CLEARABLE)


def calendar_password_field() -> OneLineField:
    return OneLineField(
        1000, allow_blank=True, write_only=True, help_text="Never shown.", **CLEARABLE
    )


class AccessSerializer(ObjectSerializer):
    """Address and credentials of a connected calendar."""

    address = AddressField(
        help_text="The address of a server, a calendar or a feed. The address of a feed is secret.",
        **OPTIONAL,
    )
    username = username_field()
    password = calendar_password_field()

    def validate_username(self, username: str | None) -> str | None:
        if ":" in (username or ""):
            raise serializers.ValidationError(Message("May not contain a colon."))  # RFC 7617
        return username


class CalendarKindSerializer(ObjectSerializer):
    """The provider of a new calendar. Read first, because it decides how the rest is read."""

    provider = ProviderField(default=Calendar.SERVICE)


@extend_schema_serializer(component_name="NewCalendar")
class ConnectSerializer(AccessSerializer, CalendarSerializer):
    """The body of POST /calendars for a connected calendar; also has the fields of an own one."""

    examples = None  # type: ignore[assignment]  # in bodies only
    provider = ProviderField(  # type: ignore[assignment]
        help_text="Absent: `service`, a calendar of the service.", **OPTIONAL
    )
    name = OneLineField(
        200,
        help_text="Required for a calendar of the service. Otherwise the default is the name"
        " at the provider.",
        **OPTIONAL,
    )
    provider_primary = StrictBooleanField(
        help_text="Whether the resource's bookings are written to this calendar. The default is"
        " true for the resource's first writable calendar.",
        **OPTIONAL,
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "address" not in given:
            raise serializers.ValidationError({"address": ["This field is required."]})
        return given


class CalendarFeedSerializer(ObjectSerializer):
    """Shown once. The service stores only a hash."""

    examples = {
        "url": f"https://booking.example.com/v2/calendars/{example_id(12)}/feed.ics"
        "?token=Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
        "token": "Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    }

    url = serializers.CharField(
        read_only=True,
        help_text="The URL for calendar programs. Anyone with this URL can read the calendar.",
    )
    token = serializers.CharField(read_only=True, help_text="The secret part of the URL.")
    details = StrictBooleanField(
        default=False,
        help_text="Whether the feed shows the names and contact data of customers.",
    )


@extend_schema_serializer(component_name="CalendarInput")
class ConnectedCalendarSerializer(AccessSerializer, CalendarSerializer):
    """The body of PUT /calendars/:id."""

    examples = None  # type: ignore[assignment]  # in bodies only

    provider_primary = StrictBooleanField(**OPTIONAL)


class CalendarTestSerializer(ObjectSerializer):
    examples = {
        "ok": True,
        "text": "The calendar can be used.",
        "access": Calendar.WRITER,
        "seconds": 0.214,
    }

    ok = serializers.BooleanField()
    problem = serializers.ChoiceField(
        list(PROVIDER_ERRORS),
        source="provider_error",
        allow_null=True,
        help_text="Why the calendar can't be used; null without a problem.",
    )
    text = serializers.CharField(help_text="The problem as a text for people.")
    access = serializers.ChoiceField(
        [Calendar.READER, Calendar.WRITER],
        allow_null=True,
        help_text="The access at the provider; null if unknown.",
    )
    seconds = serializers.FloatField(min_value=0)

    @staticmethod
    def get_ok(result: Any) -> bool:
        return not result.provider_error

    @staticmethod
    def get_seconds(result: Any) -> float:
        return round(result.seconds, 3)
