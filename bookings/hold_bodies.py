"""The bodies of /bookings/reserve, and from them to a hold to be placed and where."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apps_config.authentication import Caller
from apps_config.models import App
from availability.holds import MOST_SECONDS, hold_seconds
from availability.models import Project
from availability.serializers.fields import CLEARABLE, check_span
from bookings.places import Place
from bookings.requests import find_target, read_settings, wall_zone
from bookings.serializers import BookingSettingsSerializer, FlatBody, TargetSerializer
from bookings.services import NewHold
from scheduling.api.errors import Invalid
from scheduling.api.fields import (
    IdField,
    InstantField,
    ObjectSerializer,
    SmallIntField,
    array_as_object,
)

WIDGET_KEYS = frozenset({"start", "end", "project_id", "resource_id", "reservation_time"})
KEYS = WIDGET_KEYS | {"calendar_id", "settings"}


class HoldTimeSerializer(ObjectSerializer):
    reservation_time = SmallIntField(
        1,
        MOST_SECONDS,
        help_text="Seconds from now; the project's `reservation_time` by default, else 30. A widget"
        " key may ask for no more than that.",
        **CLEARABLE,
    )


class NewHoldSerializer(HoldTimeSerializer):
    start = InstantField()
    end = InstantField()
    settings = BookingSettingsSerializer(
        help_text="As in the booking that is to follow.", **CLEARABLE
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        check_span(given["start"], given["end"])
        return given


class HoldBodySerializer(TargetSerializer, NewHoldSerializer):
    """The whole body, for the API's description."""

    reservation_id = None


class ExtensionSerializer(HoldTimeSerializer):
    reservation_id = IdField(help_text="Of the answer of POST /v2/bookings/reserve.")


def read_new_hold(
    body: Any, *, app: App, caller: Caller, client_address: str, zone: str, now: datetime
) -> tuple[NewHold, Place]:
    """Shapes checked, ids resolved within the app, defaults filled in, as for a booking.

    `zone` reads wall times where no single resource is named. Raises Invalid.
    """
    flat = FlatBody(_known(body, caller))
    project, calendar = find_target(flat, app, caller, flat.read(TargetSerializer))
    place = Place(app=app, project=project, calendar=calendar, now=now)
    given = flat.read(NewHoldSerializer, zone=wall_zone(place, zone))
    return NewHold(
        start=given["start"],
        end=given["end"],
        seconds=read_seconds(given, project, caller),
        client_address=client_address if caller.is_widget else "",
        **read_settings(given, project, caller),
    ), place


def _known(body: Any, caller: Caller) -> Any:
    body = array_as_object(body)
    if not isinstance(body, Mapping):
        return body
    keys = WIDGET_KEYS if caller.is_widget else KEYS
    return {key: body[key] for key in body if key in keys}


def read_seconds(given: Mapping[str, Any], project: Project | None, caller: Caller) -> int:
    """How long it is to last. Raises Invalid where a public page asks for more than it may."""
    usual = hold_seconds(project)
    asked = given.get("reservation_time") or usual
    if caller.is_widget and asked > usual:
        raise Invalid.at("reservation_time", f"Must be at most {usual}.")
    return asked
