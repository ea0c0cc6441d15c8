"""The shapes of calendars that may be kept elsewhere, in bodies."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from availability.models import Calendar
from availability.serializers.fields import CLEARABLE, OPTIONAL
from availability.serializers.resources import CalendarSerializer
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import Trouble
from external_calendars.providers.paths import full_address
from scheduling.api.fields import (
    ONE_LINE,
    IdField,
    ObjectSerializer,
    OneLineField,
    StrictBooleanField,
)


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
    """A web address in any of the forms in which people have it, as `full_address` reads them.

    Whether it may be called is judged when it is.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=2000, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        # Of a blank one and of one that is too long validators tell.
        if not text or len(text) > self.max_length:
            return text
        try:
            return full_address(text)
        except Trouble as trouble:
            raise serializers.ValidationError(str(trouble)) from None


def username_field() -> OneLineField:
    return OneLineField(300, allow_blank=True, **CLEARABLE)


def password_field() -> OneLineField:
    return OneLineField(
        1000, allow_blank=True, write_only=True, help_text="Shown in no answer.", **CLEARABLE
    )


class AccessSerializer(ObjectSerializer):
    """How a calendar elsewhere is reached: what is sent of it."""

    address = AddressField(
        help_text="Of a server, of one calendar at it, or of a feed; a feed's is kept secret.",
        **OPTIONAL,
    )
    username = username_field()
    password = password_field()

    def validate_username(self, username: str | None) -> str | None:
        if ":" in (username or ""):
            raise serializers.ValidationError("May not contain a colon.")  # RFC 7617
        return username


class KindSerializer(ObjectSerializer):
    """Where a new calendar is kept: read first, because it says what else is read."""

    provider = ProviderField(default=Calendar.SERVICE)


@extend_schema_serializer(component_name="NewCalendar")
class ConnectSerializer(AccessSerializer, CalendarSerializer):
    """The body of POST /calendars of one that is kept elsewhere; with what an own one takes."""

    resource_id = IdField()
    provider = ProviderField(help_text="Absent: `service`, kept here.", **OPTIONAL)
    name = OneLineField(
        200, help_text="Needed of an own one; else its name there, unless given.", **OPTIONAL
    )
    provider_primary = StrictBooleanField(
        help_text="Whether the resource's bookings are written to it. Absent: if it is the first"
        " of the resource's that can be written to.",
        **OPTIONAL,
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if "address" not in given:
            raise serializers.ValidationError({"address": ["This field is required."]})
        return given


@extend_schema_serializer(component_name="CalendarInput")
class ChangeSerializer(AccessSerializer, CalendarSerializer):
    """The body of PUT /calendars/:id."""

    provider_primary = StrictBooleanField(**OPTIONAL)
