"""Connected calendars and feeds."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from availability.models import Calendar
from availability.serializers.calendars import CalendarSerializer
from common.api.fields import (
    CLEARABLE,
    ONE_LINE,
    OPTIONAL,
    ChoiceField,
    IdField,
    OneLineField,
    StrictBooleanField,
    UrlField,
)
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer
from common.messages import Message, find_message
from external_calendars.grants import callback_url
from external_calendars.providers import OAUTH_PROVIDERS, PROVIDERS
from external_calendars.providers.base import PROVIDER_ERRORS, ProviderError
from external_calendars.providers.urls import full_address

MAX_ADDRESS = 2000
NOT_FOR_PROVIDER = Message("This provider does not take it.")
ONE_OF_BOTH = Message("Give either resource_id or calendar_id.")


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


def wanted_field() -> OneLineField:
    return OneLineField(
        300,
        help_text="The name or id of one of the account's calendars. Absent: its main calendar.",
        **OPTIONAL,
    )


def primary_field() -> StrictBooleanField:
    return StrictBooleanField(
        help_text="Whether the resource's bookings are written to this calendar. The default is"
        " true for the resource's first writable calendar.",
        **OPTIONAL,
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
    grant_id = IdField(**OPTIONAL)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given["provider"] == Calendar.SERVICE and "grant_id" in given:
            raise serializers.ValidationError({"grant_id": [NOT_FOR_PROVIDER]})
        return given


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
    grant_id = IdField(
        help_text="Required for `google` and `microsoft`: the grant of another calendar of the"
        " account. `address` is then the name or id of a calendar of the account; absent: its main"
        " calendar. For a new account, use POST /calendars/connect.",
        **OPTIONAL,
    )
    provider_primary = primary_field()

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """With a grant, the address is the name or id of a calendar instead of a web address."""
        if not isinstance(data, dict) or str(data.get("provider")) not in OAUTH_PROVIDERS:
            return super().to_internal_value(data)
        others = {name: value for name, value in data.items() if name != "address"}
        given = super().to_internal_value(others)
        if "address" in data:
            try:
                given["address"] = wanted_field().run_validation(data["address"])
            except serializers.ValidationError as error:
                raise serializers.ValidationError({"address": error.detail}) from error
        return given

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        is_granted = given.get("provider") in OAUTH_PROVIDERS
        needed = "grant_id" if is_granted else "address"
        if needed not in given:
            raise serializers.ValidationError({needed: ["This field is required."]})
        for name in ("username", "password") if is_granted else ("grant_id",):
            if given.get(name):
                raise serializers.ValidationError({name: [NOT_FOR_PROVIDER]})
        return given


class ConsentSerializer(ObjectSerializer):
    """The body of POST /calendars/connect."""

    examples = {
        "provider": "google",
        "resource_id": example_id(11),
        "redirect_url": "https://app.example.com/settings/calendars",
    }

    provider = ChoiceField(list(OAUTH_PROVIDERS))
    resource_id = IdField(help_text="Whose calendar is connected.", **OPTIONAL)
    calendar_id = IdField(
        help_text="A connected calendar whose permission has ended; instead of `resource_id`.",
        **OPTIONAL,
    )
    redirect_url = UrlField(
        help_text="Where the person returns to, with `calendar_id` or `error` in the query. One of"
        " the app's `redirect_urls`, with any query."
    )
    name = wanted_field()
    provider_primary = primary_field()

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if ("resource_id" in given) == ("calendar_id" in given):
            raise serializers.ValidationError({"resource_id": [ONE_OF_BOTH]})
        return given


class ConsentUrlSerializer(ObjectSerializer):
    examples = {
        "url": "https://accounts.google.com/o/oauth2/v2/auth?client_id=...",
    }

    url = serializers.CharField(
        read_only=True,
        help_text="The provider's consent page: send the person there within ten minutes.",
    )


class NewProviderClientSerializer(ObjectSerializer):
    """The body of PUT /calendars/clients/:provider."""

    client_id = OneLineField(300, help_text="As the provider shows it.")
    client_secret = OneLineField(1000, write_only=True, help_text="Never shown.")


class ProviderClientSerializer(ObjectSerializer):
    """An OAuth client that the app has registered at a provider of calendars."""

    examples = {
        "provider": "google",
        "client_id": "407408718192-a1b2c3.apps.googleusercontent.com",
        "redirect_uri": "https://booking.example.com/v2/calendars/callback",
    }

    provider = ChoiceField(list(OAUTH_PROVIDERS), read_only=True)
    client_id = serializers.CharField(read_only=True)
    redirect_uri = serializers.CharField(
        read_only=True, help_text="The address to register at the provider."
    )

    @staticmethod
    def get_redirect_uri(client: Any) -> str:
        return callback_url()


class CalendarFeedSerializer(ObjectSerializer):
    """Shown once. The service stores only a hash."""

    examples = {
        "url": f"https://booking.example.com/v2/calendars/{example_id(12)}/feed.ics"
        "?token=Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
        "token": "Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    }
    on_request = ("secret_shown",)

    url = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The URL for calendar programs. Anyone with this URL can read the calendar.",
    )
    token = serializers.CharField(
        read_only=True, allow_null=True, help_text="The secret part of the URL."
    )
    secret_shown = serializers.BooleanField(
        read_only=True,
        help_text="Only in the response to a repeated request with an Idempotency-Key: the secret"
        " was in the first one.",
    )
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
    problem = ChoiceField(
        list(PROVIDER_ERRORS),
        source="provider_error",
        allow_null=True,
        help_text="Why the calendar can't be used; null without a problem.",
    )
    text = serializers.CharField(help_text="The problem as a text for people.")
    access = ChoiceField(
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
