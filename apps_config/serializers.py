"""Apps and event notifications (api.md section 4)."""

import re
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps_config.models import App, EventNotification
from apps_config.public_limits import (
    LIMITS,
    MAX_LIMIT,
    OPEN_PER_EMAIL,
    PER_ADDRESS,
    PER_APP,
    PER_EMAIL,
)
from apps_config.signing_secrets import notification_secret
from common.api.fields import (
    CLEARABLE,
    ONE_LINE,
    WEB_ADDRESS,
    BoundedIntegerField,
    ChoiceField,
    EmailField,
    IdField,
    LanguageField,
    ListOf,
    MetaField,
    OneLineField,
    OutboundUrlField,
    StampField,
    StatusCodeField,
    StrictBooleanField,
    TextField,
    UrlField,
    ZoneField,
    array_as_object,
)
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer, SettingsSerializer
from common.email_address import canonical_pattern
from common.messages import Message
from common.openapi.component_registry import Json
from common.shipped_languages import SOURCE_LANGUAGE

COLOR = re.compile(r"#[0-9a-f]{6}")
YEAR = 365 * 86_400
MAX_NOTIFICATIONS = 20
WIDGET_KEY_EXAMPLE = "live_widget_key_1c2d3e4f_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw"


class EmailSettingsSerializer(SettingsSerializer):
    always = ("recipient",)
    keywords = {"title": "of an e-mail"}

    recipient = ChoiceField(EventNotification.RECIPIENTS)
    subject = OneLineField(200, required=False, allow_blank=True)


def case_insensitive_pattern(words: Iterable[str]) -> str:
    """A pattern that matches the words in any case."""
    spelt = ("".join(f"[{letter.upper()}{letter.lower()}]" for letter in word) for word in words)
    return f"^({'|'.join(spelt)})$"


class MethodField(ChoiceField):
    """An HTTP method in any case."""

    def to_internal_value(self, data: Any) -> str:
        return super().to_internal_value(data.lower() if isinstance(data, str) else data)


class WebhookSettingsSerializer(SettingsSerializer):
    always = ("url", "method")
    keywords = {"title": "of a webhook call"}

    url = OutboundUrlField()
    method = MethodField(EventNotification.METHODS, default="post")
    expected_response_code = StatusCodeField(help_text="Absent: any 2xx.", **CLEARABLE)


class RelativeTimeSerializer(ObjectSerializer):
    examples = {"type": "before", "unit": "mins", "time": 60}

    type = ChoiceField([EventNotification.BEFORE, EventNotification.AFTER])
    unit = ChoiceField(list(EventNotification.UNIT_SECONDS))
    time = BoundedIntegerField(0, YEAR)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given["time"] * EventNotification.UNIT_SECONDS[given["unit"]] > YEAR:
            raise serializers.ValidationError({"time": [Message("Must be at most one year.")]})
        return given


class NotificationSettingsSerializer(EmailSettingsSerializer, WebhookSettingsSerializer):
    """The keys of both types."""

    always = ()  # type: ignore[assignment]
    examples = None  # in bodies only


SETTINGS_OF_TYPE = {
    EventNotification.EMAIL: EmailSettingsSerializer,
    EventNotification.WEBHOOK: WebhookSettingsSerializer,
}


@extend_schema_field(
    {
        "type": "object",
        "description": "email: `recipient` and `subject`; webhook: `url`, `method` and"
        " `expected_response_code`. Keys of the other type are ignored.",
        "properties": {
            "recipient": {"type": "string", "enum": list(EventNotification.RECIPIENTS)},
            "subject": {"type": "string", "maxLength": 200, "pattern": ONE_LINE},
            "url": {"type": "string", "maxLength": 2048, "pattern": WEB_ADDRESS},
            "method": {
                "type": "string",
                "description": "Upper or lower case.",
                "pattern": case_insensitive_pattern(EventNotification.METHODS),
                "default": "post",
                "examples": list(EventNotification.METHODS),
            },
            "expected_response_code": {
                "type": ["integer", "string", "null"],
                "minimum": 100,
                "maximum": 599,
                "pattern": "^[1-5][0-9]{2}$",
                "description": "Absent: any 2xx.",
            },
        },
    }
)
class NotificationSettingsField(MetaField):
    """The settings of a notification; EventNotificationSerializer validates them by its type."""

    serializer = NotificationSettingsSerializer
    response_schema = {"anyOf": [EmailSettingsSerializer.schema, WebhookSettingsSerializer.schema]}


class EventNotificationSerializer(ObjectSerializer):
    """A reminder at a time relative to the booking's start."""

    # A body is read as the fields of an EventNotification.
    examples = {"settings": {"recipient": "customer", "subject": "See you soon"}}

    type = ChoiceField(list(SETTINGS_OF_TYPE))
    settings = NotificationSettingsField(required=False, default=dict)
    when = RelativeTimeSerializer()

    @classmethod
    def render(cls, row: EventNotification, *_: Any) -> Json:
        return row.as_json()

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        errors: dict[str, Any] = {}
        given: dict[str, Any] = {}
        try:
            given = super().to_internal_value(data)
        except serializers.ValidationError as error:
            errors |= error.detail if isinstance(error.detail, dict) else {}
        settings = self._read_settings(data, errors)
        if errors:
            raise serializers.ValidationError(errors)
        when = given["when"]
        return {
            "type": given["type"],
            **settings,
            "when_type": when["type"],
            "when_unit": when["unit"],
            "when_time": when["time"],
        }

    def _read_settings(self, data: Any, errors: dict[str, Any]) -> dict[str, Any]:
        """Validate the settings by the rules of the type; {} if the type is invalid."""
        kind = data.get("type") if isinstance(data, dict) else None
        if not isinstance(kind, str) or kind not in SETTINGS_OF_TYPE or "settings" in errors:
            return {}
        serializer = SETTINGS_OF_TYPE[kind](data=array_as_object(data.get("settings", {})))
        if not serializer.is_valid():
            errors["settings"] = serializer.errors
        return serializer.validated_data if not errors else {}


def notifications_field(**kwargs: Any) -> ListOf:
    return ListOf(EventNotificationSerializer(), MAX_NOTIFICATIONS, **kwargs)


def limit_field(kind: str, text: str) -> BoundedIntegerField:
    return BoundedIntegerField(
        0,
        MAX_LIMIT,
        initial=LIMITS[kind].default,
        help_text=f"{text} {LIMITS[kind].default} by default, 0 = no limit. Above it: 429"
        " `rate_limited`.",
        **CLEARABLE,
    )


MAX_DELIVERY_CAP = 100_000
EMAIL_SWITCHES = ("disable_emails", "disableEmails", "disableEmail", "disable_email")


class ColorField(OneLineField):
    """A colour as `#rrggbb`, in lower case."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(7, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data).lower()
        if not COLOR.fullmatch(text):
            raise serializers.ValidationError(Message("Must be a colour like #1f4f99."))
        return text


class AppSettingsSerializer(SettingsSerializer):
    """The known settings. Other keys are stored unchanged."""

    # The form of the back office and the table of the guide derive from these fields, too.
    is_open = True
    always = ("disable_emails",)

    disable_emails = StrictBooleanField(
        initial=False,
        help_text="Nobody gets an e-mail about a booking. Webhooks are still called.",
        **CLEARABLE,
    )
    from_name = OneLineField(
        200,
        allow_blank=True,
        help_text="The sender's name in e-mails. Null: the app's name.",
        **CLEARABLE,
    )
    from_email = EmailField(
        help_text="The sender of e-mails, if the operator allows its domain (`SENDER_DOMAINS`)."
        " Otherwise e-mails come from the service's address, and replies go to this one.",
        **CLEARABLE,
    )
    contact_name = OneLineField(
        200,
        allow_blank=True,
        help_text="The contact for customers, in e-mails and on pages.",
        **CLEARABLE,
    )
    contact_email = EmailField(
        help_text="The reply address of e-mails, which also gets the e-mails about bookings of"
        " resources without an address. Null: the sender's address.",
        **CLEARABLE,
    )
    callback = UrlField(allow_blank=True, help_text="An address of your own client.", **CLEARABLE)
    redirect_urls = ListOf(
        UrlField(),
        50,
        help_text="The only addresses to which links in e-mails and the consent pages of calendar"
        " providers can redirect.",
        **CLEARABLE,
    )
    default_timezone = ZoneField(
        initial="UTC",
        help_text="The IANA time zone of times that belong to no resource.",
        **CLEARABLE,
    )
    language = LanguageField(
        initial=SOURCE_LANGUAGE, help_text="The language of pages and e-mails.", **CLEARABLE
    )
    accent_color = ColorField(
        help_text="The colour of buttons and links on pages and in e-mails. It is darkened or"
        " lightened as far as it needs to be read.",
        **CLEARABLE,
    )
    cover_text = TextField(
        1000, allow_blank=True, help_text="A text at the top of booking pages.", **CLEARABLE
    )
    address = TextField(
        500,
        allow_blank=True,
        help_text="The postal address, at the bottom of pages and e-mails.",
        **CLEARABLE,
    )
    imprint_url = UrlField(
        help_text="The imprint: a link at the bottom of pages and e-mails.", **CLEARABLE
    )
    privacy_url = UrlField(
        help_text="The privacy notice: a link at the bottom of pages and e-mails.", **CLEARABLE
    )
    stale_calendars = ChoiceField(
        App.STALE_CALENDARS,
        initial=App.WARN,
        help_text="The effect of a stale calendar (not synced for too long). `warn` (the"
        " default): availability has a warning. `block`: the resource has no free time until"
        " the next sync.",
        **CLEARABLE,
    )
    external_edits = ChoiceField(
        App.EXTERNAL_EDITS,
        initial=App.WARN,
        help_text="The effect when the owner moves or removes a booking in a connected calendar."
        " `warn` (the default): the booking is unchanged, and `provider_event` reports the"
        " change. `follow`: the booking is moved or cancelled.",
        **CLEARABLE,
    )
    public_bookings_per_address_per_hour = limit_field(
        PER_ADDRESS,
        "Attempts with public keys to make or move a booking, per client address and hour. All"
        " addresses of an IPv6 /64 network are one.",
    )
    public_bookings_per_email_per_day = limit_field(
        PER_EMAIL,
        "Bookings made with public keys, per e-mail address and day. A solved challenge lifts this"
        " limit.",
    )
    public_open_bookings_per_email = limit_field(
        OPEN_PER_EMAIL, "Upcoming bookings that one e-mail address can have to book once more."
    )
    public_bookings_per_app_per_minute = limit_field(
        PER_APP,
        "Bookings, moves and holds made with public keys, per minute, of all customers. A solved"
        " challenge lifts this limit.",
    )
    blocked_customers = ListOf(
        OneLineField(254, validators=[canonical_pattern]),
        1000,
        help_text="E-mail addresses that can't book with public keys: 403. `*` stands for any"
        " text, as in `*@spam.example`. A `+tag` of a customer's address does not count.",
        **CLEARABLE,
    )
    public_challenge = ChoiceField(
        App.CHALLENGES,
        initial=App.NO_CHALLENGE,
        help_text="Proof of work of public keys. `altcha`: bookings, holds and moves need"
        " `challenge`, a solved challenge of GET /v2/challenge. `off` (the default): only above"
        " some limits.",
        **CLEARABLE,
    )
    delivery_cap = BoundedIntegerField(
        1,
        MAX_DELIVERY_CAP,
        help_text="How many e-mails, and how many webhook calls, are sent at once. The service has"
        " a default and a maximum (DELIVERY_APP_CAP, DELIVERY_APP_CAP_MAX).",
        **CLEARABLE,
    )
    publish_projects = StrictBooleanField(
        initial=True,
        help_text="Whether projects have a hosted page unless their own setting `published` says"
        " otherwise. True by default.",
        **CLEARABLE,
    )
    public_resources = StrictBooleanField(
        initial=False,
        help_text="Whether widget keys without `projects` may book resources that are in no"
        " project. False by default: widget keys book through a project.",
        **CLEARABLE,
    )
    strict_bodies = StrictBooleanField(
        initial=False,
        help_text="Whether unknown keys in request bodies are 422, except with widget keys. False"
        " by default: the header `Service-Ignored` names them.",
        **CLEARABLE,
    )

    @classmethod
    def render(cls, row: Any, *_: Any) -> Json:
        return {"disable_emails": False} | row

    def validate_delivery_cap(self, cap: int | None) -> int | None:
        if cap is not None and cap > settings.DELIVERY_APP_CAP_MAX:
            limit = settings.DELIVERY_APP_CAP_MAX
            raise serializers.ValidationError(Message("Must be at most %(limit)s.", limit=limit))
        return cap

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        others = MetaField().run_validation(data)
        known = {key: value for key, value in others.items() if key in self.fields}
        switches = [key for key in EMAIL_SWITCHES if key in others]
        if switches:
            known["disable_emails"] = others[switches[0]]
        others = {
            key: value
            for key, value in others.items()
            if key not in self.fields and key not in EMAIL_SWITCHES
        }
        return others | dict(super().to_internal_value(known))


@extend_schema_field({"type": "string", "pattern": "^[a-z0-9_-]+$"})
class SlugField(OneLineField):
    """Lower-case letters, digits, hyphens and underscores."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=100, **kwargs)
        self.validators.append(_check_slug)


def _check_slug(text: str) -> None:
    if not all(letter in SLUG_LETTERS for letter in text):
        raise serializers.ValidationError(
            Message("May have a to z, 0 to 9, hyphens and underscores.")
        )


SLUG_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


class AppSerializer(ObjectSerializer):
    only_at_creation = ("slug", "mode")
    on_request = ("signing_secret",)
    examples = {
        "signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
        "id": example_id(1),
        "slug": "demo",
        "name": "Demo",
        "settings": {"disable_emails": False, "default_timezone": "Europe/Berlin"},
    }

    id = IdField(read_only=True)
    slug = SlugField()
    name = OneLineField(200)
    mode = ChoiceField(
        [App.LIVE, App.TEST],
        default=App.LIVE,
        help_text="Can't be changed. A test app sends e-mails only to its members.",
    )
    settings = AppSettingsSerializer(required=False)
    event_notifications = notifications_field(required=False)
    created_at = StampField()
    updated_at = StampField()
    signing_secret = serializers.CharField(
        read_only=True,
        help_text="With include=signing_secret of GET /v2/app, for server keys and owners only: the"
        " secret that signs the calls of event notifications.",
    )

    @staticmethod
    def get_signing_secret(app: App) -> str:
        return notification_secret(app.id)
