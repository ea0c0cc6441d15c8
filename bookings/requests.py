"""From the body of POST /bookings to a booking to be made and the place it goes to."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apps_config.authentication import Caller
from apps_config.models import App
from availability.models import Calendar, Project, ProjectResource
from availability.placement import Details
from bookings.graphs import GRAPHS, INITIALIZED, Graph
from bookings.places import Place
from bookings.serializers import WIDGET_KEYS, FlatBody, NewBookingSerializer, TargetSerializer
from bookings.services import NewBooking
from scheduling.api.errors import Invalid

DEFAULT_GRAPH = "instant"


def read_new_booking(
    body: Any, *, app: App, caller: Caller, zone: str, now: datetime
) -> tuple[NewBooking, Place]:
    """Shapes checked, ids resolved within the app, defaults filled in.

    `zone` reads wall times where no single resource is named. Raises Invalid with the paths that
    the client used.
    """
    flat = FlatBody(body, only=WIDGET_KEYS if caller.is_widget else None)
    target = flat.read(TargetSerializer)
    project = _find_project(flat, app, target)
    calendar = _find_calendar(flat, app, caller, project, target)
    if calendar is None and project is None:
        path = flat.path("calendar_id")
        raise Invalid.at(path, "A calendar, a resource or a project is needed.")
    place = Place(app=app, project=project, calendar=calendar, now=now)
    given = flat.read(NewBookingSerializer, zone=_wall_zone(place, zone))
    return _new_booking(flat, given, place, caller), place


def _find_project(flat: FlatBody, app: App, target: Mapping[str, Any]) -> Project | None:
    if not target.get("project_id"):
        return None
    project = Project.objects.for_app(app).filter(id=target["project_id"]).first()
    if project is None:
        raise Invalid.at(flat.path("project_id"), "There is no such project.")
    return project


def _find_calendar(
    flat: FlatBody,
    app: App,
    caller: Caller,
    project: Project | None,
    target: Mapping[str, Any],
) -> Calendar | None:
    """The calendar named, or the first of the resource named; None: the project's choice."""
    calendar_id, resource_id = target.get("calendar_id"), target.get("resource_id")
    only = caller.resource_id
    if calendar_id:
        name, wanted = "calendar", {"id": calendar_id}
    elif resource_id or only:
        name, wanted = "resource", {"resource_id": resource_id or only}
    else:
        return None
    calendar = first_calendar(app, **wanted)
    if calendar is None or only not in (None, calendar.resource_id):
        raise Invalid.at(flat.path(f"{name}_id"), f"There is no such {name}.")
    if resource_id and calendar.resource_id != resource_id:
        raise Invalid.at(flat.path("calendar_id"), "Belongs to another resource.")
    if project and caller.is_widget:
        check_is_of_project(project.id, calendar)
    return calendar


def check_is_of_project(project_id: uuid.UUID, calendar: Calendar) -> None:
    """A public key books a project's own resources only. Raises Invalid."""
    own = ProjectResource.objects.filter(project_id=project_id, resource_id=calendar.resource_id)
    if not own.exists():
        raise Invalid.at("resource_id", "There is no such resource.")


def first_calendar(app: App, **wanted: Any) -> Calendar | None:
    """The app's calendar of that id, or the first own one of that resource, with its resource."""
    calendars = Calendar.objects.for_app(app).select_related("resource").filter(**wanted)
    return calendars.order_by("created_at", "id").first()


def _wall_zone(place: Place, zone: str) -> str:
    """Where wall times are read: in the zone of the resource, if there is just one."""
    if place.calendar:
        return place.calendar.resource.timezone
    zones = {resource.zone for resource in place.rules.resources}
    return zones.pop() if len(zones) == 1 else zone


def _new_booking(
    flat: FlatBody, given: Mapping[str, Any], place: Place, caller: Caller
) -> NewBooking:
    project = place.project
    defaults = project.booking if project else {}
    what = given.get("what") or defaults.get("what")
    if not what:
        raise Invalid.at(flat.path("what"), "This field is required.")
    graph = _read_graph(given, defaults, project, caller)
    where = given.get("where")
    description = given.get("description")
    return NewBooking(
        start=given["start"],
        end=given["end"],
        details=Details(
            what=what,
            where=defaults.get("where", "") if where is None else where,
            description=defaults.get("description", "") if description is None else description,
            participants=given.get("participants") or [],
            invite=given.get("invite") is not False,
        ),
        graph=graph,
        action=_read_action(given, graph),
        customers=given["customers"],
        notifications=given.get("event_notifications"),
        meta={key: value for key, value in (given.get("meta") or {}).items() if value is not None},
        unmailed=[
            recipient
            for recipient in ("customer", "owner")
            if (given.get(f"notify_{recipient}_by_email") or {}).get("enabled") is False
        ],
        **_read_settings(given, project, caller),
    )


def _read_graph(
    given: Mapping[str, Any],
    defaults: Mapping[str, Any],
    project: Project | None,
    caller: Caller,
) -> Graph:
    """The request's, else the project's; a widget key can't choose another than the project's."""
    asked = None if project and caller.is_widget else given.get("graph")
    name = asked or defaults.get("graph") or DEFAULT_GRAPH
    graph = GRAPHS.get(name)
    if graph is None or not graph.bookable:
        names = ", ".join(graph.name for graph in GRAPHS.values() if graph.bookable)
        raise Invalid.at("graph", f"Must be one of {names}.")
    return graph


def _read_action(given: Mapping[str, Any], graph: Graph) -> str:
    action = given.get("action") or graph.start
    if (INITIALIZED, action) not in graph.steps:
        starts = ", ".join(graph.actions(INITIALIZED))
        raise Invalid.at("action", f"Can't start the graph {graph.name}; {starts} can.")
    return action


def _read_settings(
    given: Mapping[str, Any], project: Project | None, caller: Caller
) -> dict[str, bool]:
    """The request's settings, else the project's, else the contract's default. A widget key has
    no say: rules are always enforced."""
    asked = {} if caller.is_widget else given.get("settings") or {}
    own = project.settings if project else {}

    def setting(name: str, default: bool) -> bool:
        value = asked.get(name)
        return bool(own.get(name, default) if value is None else value)

    enforced = setting("enforce_availability", project is not None)
    return {
        "allow_double_bookings": setting("allow_double_bookings", False),
        "enforce_availability": enforced or caller.is_widget,
    }
