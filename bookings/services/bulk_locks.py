"""Lock what a bulk request names, before its first change.

A bulk request that is one transaction keeps the locks and counts of its first changes while later
ones wait for their resources. If the resources were locked one by one, two requests with another
order, or a bulk request and a booking, could wait for each other.
"""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from django.db.models import Q

from apps_config.models import App
from availability.models import Calendar, Event, Hold, Project, ProjectResource, Resource
from availability.reserve.events import lock_project, lock_resources
from availability.search.parameters import FAIR
from bookings.models import Booking


def lock_named_rows(app: App, bodies: Any) -> None:
    """Lock the app's projects, bookings and resources whose ids the bodies contain anywhere.

    Of projects all resources, as any of them may be chosen; of calendars, holds and bookings
    theirs. In the order of single requests: projects, bookings, resources, each by id. Not locked
    are the related bookings that an action with a `scope` changes too.
    """
    named = set(_ids_in(bodies))
    projects = Project.objects.for_app(app).filter(id__in=named).order_by("id")
    for project_id, availability in projects.values_list("id", "availability"):
        lock_project(project_id, exclusive=availability.get("mode") == FAIR)
    bookings = Booking.objects.for_app(app).filter(id__in=named).order_by("id")
    events = list(bookings.select_for_update(no_key=True).values_list("event", flat=True))
    of_bookings = Event.objects.filter(Q(id__in=events) | Q(main__in=events))
    resources = Resource.objects.for_app(app).filter(
        Q(id__in=named)
        | Q(id__in=Calendar.objects.filter(id__in=named).values("resource"))
        | Q(id__in=Hold.objects.filter(Q(id__in=named) | Q(main__in=named)).values("resource"))
        | Q(id__in=ProjectResource.objects.filter(project__in=named).values("resource"))
        | Q(id__in=of_bookings.values("resource"))
    )
    lock_resources(set(resources.values_list("id", flat=True)))


def _ids_in(value: Any) -> Iterator[uuid.UUID]:
    """Yield all texts of a JSON value that are ids."""
    if isinstance(value, str):
        with suppress(ValueError):
            yield uuid.UUID(value)
    elements = value.values() if isinstance(value, Mapping) else value
    for element in elements if isinstance(value, Mapping | list) else ():
        yield from _ids_in(element)
