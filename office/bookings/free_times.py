"""Where and when a booking can be made or moved: resources, and their next free times."""

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from availability.models import Calendar, Project, Resource
from availability.reserve.events import find_alternatives
from availability.search.parameters import HOUR
from bookings.booking_input import check_named_resources, target_calendar, target_resources
from bookings.booking_target import BookingTarget
from bookings.models import Booking
from bookings.services.transitions import target_of
from common.errors import Invalid
from common.time.instants import local_date, local_midnight, parse_instant

MAX_OFFERED = 12
MAX_CHIPS = 8  # beside the form of a new booking
MAX_RESOURCES = 200


def find_other_calendar(booking: Booking, resource_id: object) -> Calendar | None:
    """Return the calendar of another resource; None: the booking stays in its calendar.

    Raises Invalid for a resource that the app does not have.
    """
    if not resource_id or str(resource_id) == str(booking.resource_id):
        return None
    try:
        wanted_id = uuid.UUID(str(resource_id))
    except ValueError:
        wanted_id = uuid.UUID(int=0)
    calendar = target_calendar(booking.app, resource_id=wanted_id)
    if calendar is None:
        raise Invalid.at("resource_id", _("There is no such resource."))
    return calendar


def resources_to_move_to(booking: Booking) -> list[Resource]:
    """Return the project's resources in their order, or the app's by name; the booking's own is
    among them. None can be chosen for a booking of several resources.
    """
    if booking.event.companions.exists():
        return []
    rows = Resource.objects.for_app(booking.app_id)
    if booking.project_id:
        rows = rows.filter(project_resources__project=booking.project_id)
        rows = rows.order_by("project_resources__position", "name")
    else:
        rows = rows.order_by("name", "id")
    resources = list(rows[:MAX_RESOURCES])
    return resources if booking.resource in resources else [booking.resource, *resources]


def find_free_times(
    booking: Booking, calendar: Calendar | None, *, start: datetime, now: datetime
) -> list[tuple[datetime, datetime]]:
    """Return the next free spans of the booking's length from the day of `start` on.

    They are in `calendar`, or in the booking's own. The booking itself counts as busy: its present
    time is not offered.
    """
    event, target = booking.event, target_of(booking, now, calendar)
    zone = booking.resource.timezone
    start = max(local_midnight(local_date(start, zone), zone), now)
    time_request = target.time_request(
        start,
        start + (event.end - event.start),
        blocks=event.busy,
        allow_double_bookings=booking.allow_double_bookings,
        rules=target.rules if booking.enforce_availability else None,
        event=event,
    )
    found = find_alternatives(
        time_request, target.rules.resources, mode=target.mode, now=now, count=MAX_OFFERED
    )
    return [
        (parse_instant(span["start"], "UTC"), parse_instant(span["end"], "UTC")) for span in found
    ]


def find_times_to_book(
    resource: Resource,
    project: Project | None,
    wanted: Mapping[str, Any],
    *,
    start: datetime,
    length: int | None,
    keeps_rules: bool,
    now: datetime,
) -> tuple[int, list[dict[str, str]]]:
    """Return the length in seconds, and the next free spans of the resource from `start` on.

    wanted: quantity, party_size and resources as in the API; `any_resource`: those of the project.
    The length is the project's, unless the project permits `length`; without a project `length`,
    or an hour; of a visit that of the first span. Raises Invalid for a resource without a calendar,
    or that fits no requirement of the project.
    """
    calendar = None
    if project is None or not wanted.get("any_resource"):
        calendar = target_calendar(resource.app, resource_id=resource.id)
        if calendar is None:
            raise Invalid.at("resource_id", _("The resource has no calendar."))
    target = BookingTarget(
        app=resource.app,
        project=project,
        now=now,
        quantity=wanted.get("quantity") or 1,
        party_size=wanted.get("party_size"),
        **target_resources(project, calendar, wanted),
    )
    check_named_resources(target)
    terms = target.policies.terms
    seconds = length if length and (project is None or terms.permits_length(length)) else None
    seconds = seconds or terms.length or HOUR
    time_request = target.time_request(
        start,
        start + timedelta(seconds=seconds),
        blocks=True,
        allow_double_bookings=target.allows_double_bookings,
        rules=target.rules if keeps_rules else None,
    )
    found = find_alternatives(
        time_request,
        target.rules.resources,
        mode=target.mode,
        now=now,
        count=MAX_CHIPS,
        alternatives=target.alternatives,
        visit=target.visit,
        fixed=target.fixed,
    )
    if target.visit and found:
        start, end = (parse_instant(found[0][name], "UTC") for name in ("start", "end"))
        seconds = int((end - start).total_seconds())
    return seconds, found
