"""Serializers of resource and calendar bodies (api.md section 4)."""

from typing import Any

from availability.serializers.fields import CLEARABLE, OPTIONAL, ConstraintsField
from common.api.fields import (
    BoundedIntegerField,
    EmailField,
    IdField,
    ListOf,
    MetaField,
    ObjectSerializer,
    OneLineField,
    StringField,
    TextField,
    UrlField,
    ZoneField,
)

MAX_CAPACITY = 1000


def new_password_field(**kwargs: Any) -> StringField:
    return StringField(200, min_length=12, write_only=True, **kwargs)


class ResourceSerializer(ObjectSerializer):
    """The body of PUT /resources/:id."""

    name = OneLineField(200, **OPTIONAL)
    timezone = ZoneField(**OPTIONAL)
    first_name = OneLineField(200, allow_blank=True, **CLEARABLE)
    last_name = OneLineField(200, allow_blank=True, **CLEARABLE)
    email = EmailField(**CLEARABLE)
    image = UrlField(allow_blank=True, **CLEARABLE)
    tags = ListOf(OneLineField(200), 50, **OPTIONAL)
    capacity = BoundedIntegerField(
        1,
        MAX_CAPACITY,
        help_text="So many bookings may overlap: 12 for a pool of twelve. A number below what is"
        " booked ahead: 409 `in_use`.",
        **OPTIONAL,
    )
    meta = MetaField(**OPTIONAL)
    password = new_password_field(
        help_text="The password for POST /v2/auth. Null removes it. A change ends the tokens of"
        " earlier log-ins.",
        **CLEARABLE,
    )
    availability_constraints = ConstraintsField(**OPTIONAL)
    schedule_id = IdField(
        help_text="The schedule under the resource's own rules. Null removes it.", **CLEARABLE
    )


class ScheduleSerializer(ObjectSerializer):
    """The body of PUT /schedules/:id."""

    name = OneLineField(200, **OPTIONAL)
    availability_constraints = ConstraintsField(**OPTIONAL)


class NewScheduleSerializer(ScheduleSerializer):
    """The body of POST /schedules."""

    name = OneLineField(200)


class NewResourceSerializer(ResourceSerializer):
    """The body of POST /resources."""

    name = OneLineField(200)
    timezone = ZoneField()


class PasswordSerializer(ObjectSerializer):
    """The form of the page behind the link of a password-reset mail."""

    password = new_password_field()


class PasswordResetSerializer(ObjectSerializer):
    """The body of POST /resources/resetpassword."""

    email = EmailField()


class CalendarSerializer(ObjectSerializer):
    """The body of PUT /calendars/:id."""

    name = OneLineField(200, **OPTIONAL)
    description = TextField(8000, allow_blank=True, **CLEARABLE)
    backgroundcolor = OneLineField(32, allow_blank=True, **CLEARABLE)
    foregroundcolor = OneLineField(32, allow_blank=True, **CLEARABLE)


class NewCalendarSerializer(CalendarSerializer):
    """The body of POST /calendars."""

    name = OneLineField(200)
    resource_id = IdField()
