"""Resources and schedules (api.md section 4)."""

from collections.abc import Collection
from typing import Any

from django.db.models import Prefetch, QuerySet
from rest_framework import serializers

from availability.core.parties import MAX_PARTY
from availability.models import Resource
from availability.serializers.calendars import CalendarSerializer, visible_calendars
from availability.serializers.fields import ConstraintsField, external_id_field
from common.api.fields import (
    CLEARABLE,
    OPTIONAL,
    BoundedIntegerField,
    EmailField,
    IdField,
    ListOf,
    MetaField,
    OneLineField,
    StampField,
    StringField,
    UrlField,
    ZoneField,
)
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer
from common.messages import Message

MAX_CAPACITY = 1000


def both_or_none(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return an object with all names, or {}. Raises ValidationError for some of them."""
    missing = [name for name in names if given.get(name) is None]
    if 0 < len(missing) < len(names):
        raise serializers.ValidationError({name: ["This field is required."] for name in missing})
    return {} if missing else given


class PartySerializer(ObjectSerializer):
    examples = {"min": 1, "max": 4}

    min = BoundedIntegerField(1, MAX_PARTY, **CLEARABLE)
    max = BoundedIntegerField(1, MAX_PARTY, **CLEARABLE)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        given = both_or_none(given, "min", "max")
        if given and given["min"] > given["max"]:
            fault = Message("Must not be less than `%(field)s`.", field="min")
            raise serializers.ValidationError({"max": [fault]})
        return given


def new_password_field(**kwargs: Any) -> StringField:
    return StringField(200, min_length=12, write_only=True, **kwargs)


class ResourceSerializer(ObjectSerializer):
    examples = {
        "id": example_id(11),
        "name": "Dr. Ada Berg",
        "first_name": "Ada",
        "last_name": "Berg",
        "email": "ada@example.com",
        "timezone": "Europe/Berlin",
        "tags": ["dentist"],
        "capacity": 1,
        "party": None,
        "meta": {"room": "2"},
        "api_token": "1c2d3e4f_Vb0GfXk1hJ3v8qz5WcYt7uR2nE6sLdA9oPiMxKjHgQw",
    }
    on_request = ("calendars", "availability_constraints", "api_token", "secret_shown")

    id = IdField(read_only=True)
    external_id = external_id_field(
        help_text="Its id in your own system: at most one resource of the app has it."
    )
    name = OneLineField(200)
    first_name = OneLineField(200, allow_blank=True, **CLEARABLE)
    last_name = OneLineField(200, allow_blank=True, **CLEARABLE)
    email = EmailField(**CLEARABLE)
    image = UrlField(allow_blank=True, **CLEARABLE)
    timezone = ZoneField(help_text="The IANA zone of the resource's rules.")
    schedule_id = IdField(
        help_text="The schedule under the resource's own rules. Null removes it.", **CLEARABLE
    )
    tags = ListOf(OneLineField(200), 50, **OPTIONAL)
    capacity = BoundedIntegerField(
        1,
        MAX_CAPACITY,
        help_text="So many bookings may overlap: 12 for a pool of twelve. A number below what is"
        " booked ahead: 409 `in_use`.",
        **OPTIONAL,
    )
    party = PartySerializer(
        allow_null=True,
        help_text="How many people it suits, such as a table: bookings and queries with"
        " `party_size` take a resource whose range contains it, or several whose sums do. Null: any"
        " number.",
        **OPTIONAL,
    )
    meta = MetaField(**OPTIONAL)
    password = new_password_field(
        help_text="The password for POST /v2/auth. Null removes it. A change ends the tokens of"
        " earlier log-ins.",
        **CLEARABLE,
    )
    created_at = StampField()
    updated_at = StampField()
    calendars = CalendarSerializer(
        many=True,
        read_only=True,
        source="shown_calendars",
        help_text="With include=calendars, and in the answer of POST /v2/resources.",
    )
    availability_constraints = ConstraintsField(**OPTIONAL)
    api_token = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="The resource's own key: only in the response of POST /v2/resources.",
    )
    secret_shown = serializers.BooleanField(
        read_only=True,
        help_text="Only in the response to a repeated request with an Idempotency-Key: the secret"
        " was in the first one.",
    )


RESOURCE_INCLUDES = ("calendars", "availability_constraints")
RESOURCE_EXAMPLE = ResourceSerializer.example()


def with_resource_includes(
    resources: QuerySet[Resource], includes: Collection[str]
) -> QuerySet[Resource]:
    """The rows that `ResourceSerializer` needs for the includes: one query each."""
    if "calendars" in includes:
        calendars: Prefetch = Prefetch("calendars", visible_calendars(), to_attr="shown_calendars")
        resources = resources.prefetch_related(calendars)
    return resources


class PublicResourceSerializer(ObjectSerializer):
    """A resource, as widget keys see it."""

    examples = {name: RESOURCE_EXAMPLE[name] for name in ("id", "name", "timezone")}

    id = IdField()
    name = serializers.CharField()
    image = serializers.CharField()
    timezone = serializers.CharField()


class ResourceZoneSerializer(ObjectSerializer):
    examples = {"timezone": "Europe/Berlin", "utc_offset": 1}

    timezone = serializers.CharField()
    utc_offset = serializers.FloatField(help_text="The current offset in hours.")


class ScheduleSerializer(ObjectSerializer):
    """Rules that several resources share."""

    examples = {
        "id": example_id(16),
        "name": "Practice hours",
        "availability_constraints": [
            {"allow_weekdays": {}},
            {"allow_hours": {"start": 9, "end": 17}},
        ],
    }

    id = IdField(read_only=True)
    name = OneLineField(200)
    availability_constraints = ConstraintsField(**OPTIONAL)
    created_at = StampField()
    updated_at = StampField()


class PasswordSerializer(ObjectSerializer):
    """The form of the page behind the link of a password-reset mail."""

    password = new_password_field()


class PasswordResetSerializer(ObjectSerializer):
    """The body of POST /resources/resetpassword."""

    email = EmailField()
