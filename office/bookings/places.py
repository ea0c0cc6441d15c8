"""The resources of a booking of several, each with its requirement and its part of the time."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from availability.models import Event, Resource
from availability.search.requirements import load_requirements, project_requirements
from bookings.models import Booking

MAX_OFFERED = 500


class Place(NamedTuple):
    """A resource of a booking. name: of its requirement, "" without; field: of the form that
    replaces it; start, end: None if they are the booking's.
    """

    name: str
    field: str
    resource: Resource
    start: datetime | None
    end: datetime | None


def places_of(booking: Booking) -> list[Place]:
    """Return the booking's resources, its own first. Prefetch `further_events()`."""
    main = booking.event
    return [
        Place(
            name=row.requirement or "",
            field=f"place-{number}",
            resource=booking.resource if row is main else row.resource,
            start=None if (row.start, row.end) == (main.start, main.end) else row.start,
            end=None if (row.start, row.end) == (main.start, main.end) else row.end,
        )
        for number, row in enumerate(_rows_of(booking))
    ]


def _rows_of(booking: Booking) -> list[Event]:
    return [booking.event, *sorted(booking.event.companions.all(), key=lambda row: row.id)]


def with_others(booking: Booking, places: Sequence[Place]) -> list[tuple[Place, list[Resource]]]:
    """Return each resource of a booking of several with those that can take its place, itself
    first; [] for a booking of one. At most two queries.
    """
    if len(places) < 2:
        return []
    ids_by_name: dict[str, dict[uuid.UUID, None]] = {}
    alternatives = (
        load_requirements(booking.app_id, booking.requires, is_new=False)
        if booking.requires
        else project_requirements(booking.project)
    )
    for each in chain.from_iterable(alternatives):
        ids_by_name.setdefault(each.name, {}).update(dict.fromkeys(each.ids))
    rows = Resource.objects.for_app(booking.app_id).order_by("name", "id")
    if alternatives:
        rows = rows.filter(id__in=list(chain.from_iterable(ids_by_name.values())))
    present = {place.resource.id for place in places}
    others = [row for row in rows[:MAX_OFFERED] if row.id not in present]
    return [
        (
            place,
            [
                place.resource,
                *(
                    each
                    for each in others
                    if not alternatives or each.id in ids_by_name.get(place.name, ())
                ),
            ],
        )
        for place in places
    ]


def chosen_resources(
    booking: Booking, values: Mapping[str, str]
) -> dict[str, tuple[uuid.UUID, ...]]:
    """Return the resources to replace, as `reschedule_booking` takes them: by the name of the
    requirement all of its resources, else by the present id the new one. Raises ValueError.
    """
    chosen: dict[str, list[uuid.UUID]] = {}
    changed: set[str] = set()
    for place in places_of(booking):
        key = place.name or str(place.resource.id)
        given = uuid.UUID(values.get(place.field) or str(place.resource.id))
        chosen.setdefault(key, []).append(given)
        if given != place.resource.id:
            changed.add(key)
    return {key: tuple(ids) for key, ids in chosen.items() if key in changed}
