"""Parse the bodies of /bookings/reserve into a hold and its target."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from apps_config.authentication import Caller
from apps_config.models import App
from availability.models import Project
from availability.public_access import check_max_length_without_project, check_quantity
from availability.reserve.holds import MAX_SECONDS, hold_seconds
from availability.serializers.fields import check_span
from bookings.booking_input import (
    check_may_send_requirements,
    check_named_resources,
    find_booking_target,
    find_group,
    find_project,
    parse_settings,
    read_quantity,
    target_resources,
    wall_time_zone,
)
from bookings.booking_target import BookingTarget
from bookings.serializers.bodies import (
    BookingSettingsSerializer,
    FlatBody,
    RelatedSerializer,
    TargetSerializer,
)
from bookings.services import NewHold, NewSeatHold
from bookings.services.create_seat import check_place
from common.api.fields import (
    CLEARABLE,
    OPTIONAL,
    BoundedIntegerField,
    IdField,
    InstantField,
    array_as_object,
)
from common.api.serializers import ObjectSerializer
from common.errors import Invalid
from common.messages import Message

WIDGET_KEYS = frozenset(
    {
        *("start", "end", "project_id", "resource_id", "resources", "reservation_time"),
        *("quantity", "party_size", "place", "related"),
    }
)
KEYS = WIDGET_KEYS | {"calendar_id", "settings", "challenge", "requires", "steps", "order"}


class HoldTimeSerializer(ObjectSerializer):
    reservation_time = BoundedIntegerField(
        1,
        MAX_SECONDS,
        help_text="The length in seconds. The default is the project's `reservation_time`, or 30."
        " With a widget key, the default is also the maximum.",
        **CLEARABLE,
    )


class NewHoldSerializer(HoldTimeSerializer):
    start = InstantField()
    end = InstantField()
    settings = BookingSettingsSerializer(help_text="As in the later booking.", **CLEARABLE)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        check_span(given["start"], given["end"])
        return given


class HoldTargetSerializer(TargetSerializer):
    """What is held: a time, or seats of a group."""

    related = RelatedSerializer(
        help_text="The group whose seats are held; without `start` and `end`.", **CLEARABLE
    )


class HoldBodySerializer(HoldTargetSerializer, NewHoldSerializer):
    """The whole body, for the API's description."""

    never_empty = True

    reservation_id = None  # type: ignore[assignment]  # leaves the field out, says DRF
    start = InstantField(help_text="Required without `related`.", **OPTIONAL)
    end = InstantField(help_text="Required without `related`.", **OPTIONAL)


class ExtensionSerializer(HoldTimeSerializer):
    reservation_id = IdField(help_text="The `reservation_id` of POST /v2/bookings/reserve.")


def parse_new_hold(
    body: Any, *, app: App, caller: Caller, client_address: str, zone: str, now: datetime
) -> tuple[NewHold | NewSeatHold, BookingTarget]:
    """Parse the body: check shapes, resolve ids within the app, apply defaults, as for a booking.

    `zone` is the zone of wall times if no single resource is named. Raises Invalid.
    """
    check_may_send_requirements(body, caller)
    flat = FlatBody(_known_fields(body, caller))
    target_fields = flat.read(HoldTargetSerializer)
    group_id = (target_fields.get("related") or {}).get("owner_booking_id")
    if group_id:
        return _parse_seat_hold(
            flat, target_fields, group_id, app, caller, client_address=client_address, now=now
        )
    project, calendar = find_booking_target(flat, app, caller, target_fields)
    target = BookingTarget(
        app=app,
        project=project,
        now=now,
        is_public=caller.is_widget,
        quantity=read_quantity(target_fields, project, caller),
        party_size=target_fields.get("party_size"),
        **target_resources(project, calendar, target_fields),
    )
    check_named_resources(target)
    given = flat.read(NewHoldSerializer, zone=wall_time_zone(target, zone))
    check_max_length_without_project(caller, project, given["start"], given["end"])
    return NewHold(
        start=given["start"],
        end=given["end"],
        seconds=parse_hold_seconds(given, project, caller),
        client_address=client_address if caller.is_widget else "",
        **parse_settings(given, project, caller),
    ), target


def _parse_seat_hold(
    flat: FlatBody,
    target: Mapping[str, Any],
    group_id: UUID,
    app: App,
    caller: Caller,
    *,
    client_address: str,
    now: datetime,
) -> tuple[NewSeatHold, BookingTarget]:
    """Parse a hold of seats. Raises Invalid for keys that would hold a time."""
    names = ("start", "end", "resource_id", "resources", "calendar_id", "settings")
    if given := [name for name in names if flat.values.get(name) is not None]:
        raise Invalid({name: ["Not with `related`."] for name in given})
    project = find_project(flat, app, caller, target)
    group = find_group(app, caller, group_id, project, path="project_id")
    project = group.project or project
    quantity = target.get("quantity") or 1
    check_quantity(caller, project, quantity)
    place = target.get("place")
    check_place(group, place)
    new = NewSeatHold(
        group_id=group_id,
        quantity=quantity,
        place=place,
        seconds=parse_hold_seconds(flat.read(HoldTimeSerializer), project, caller),
        client_address=client_address if caller.is_widget else "",
        not_begun=caller.is_widget,
    )
    target_of_group = BookingTarget(
        app=app, project=project, calendar=group.event.calendar, now=now, quantity=quantity
    )
    return new, target_of_group


def _known_fields(body: Any, caller: Caller) -> Any:
    body = array_as_object(body)
    if not isinstance(body, Mapping):
        return body
    keys = WIDGET_KEYS if caller.is_widget else KEYS
    return {key: body[key] for key in body if key in keys}


def parse_hold_seconds(given: Mapping[str, Any], project: Project | None, caller: Caller) -> int:
    """Return the hold's length in seconds. Raises Invalid if a widget key exceeds the default."""
    usual = hold_seconds(project)
    requested = given.get("reservation_time") or usual
    if caller.is_widget and requested > usual:
        raise Invalid.at("reservation_time", Message("Must be at most %(limit)s.", limit=usual))
    return requested
