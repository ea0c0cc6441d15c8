"""Parse the body of POST /bookings into a new booking and its target."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from apps_config.authentication import Caller
from apps_config.models import App, Credential
from availability.core.matching import FixedChoice
from availability.core.visits import Visit
from availability.graph_names import DEFAULT_GRAPH
from availability.models import Calendar, CalendarQuerySet, Hold, Project, ProjectResource
from availability.public_access import (
    IN_PROJECT,
    check_max_length_without_project,
    check_project_is_named,
    check_quantity,
    check_resources_are_in_no_project,
    needs_project,
    visible_projects,
)
from availability.reserve.events import EVENT_WORDS, EventDetails
from availability.reserve.holds import find_hold, held_span, with_companions
from availability.search.availability_query import MAX_UNITS
from availability.search.requirements import check_fixed, resource_ids_of_requirements
from availability.search.visits import fixed_in_visit, requirements_of
from availability.serializers.projects import PROJECT_DEFAULTS
from bookings.booking_target import BookingTarget
from bookings.graphs import GRAPHS, INITIALIZED, Graph
from bookings.models import Booking, SeatHold
from bookings.serializers.bodies import (
    WIDGET_KEYS,
    BookingTargetSerializer,
    FlatBody,
    NewBookingSerializer,
    NewGroupSerializer,
    NewSeatSerializer,
)
from bookings.services import ON_CONFLICT, NewBooking, NewSeat, NewSeries
from bookings.services.create_seat import OWNER_PATH, check_place
from bookings.services.seat_holds import find_seat_hold
from common.api.fields import array_as_object
from common.db.compiled_query import FixedQuery
from common.errors import Forbidden, Invalid
from common.ical.rrule import RecurrenceRuleError, read_booking_rule
from common.messages import find_message

NOT_ASKED = ("id", "meta", "timezone")  # keys of a customer that no form asks for
GROUP_POLICIES = ("min_cancel_time", "min_booking_time", "max_booking_time")


def parse_new_booking(
    body: Any, *, app: App, caller: Caller, zone: str, now: datetime
) -> tuple[NewBooking | NewSeat, BookingTarget]:
    """Parse the body: check shapes, resolve ids within the app, apply defaults.

    `zone` is the zone of wall times if no single resource is named. Raises Invalid with paths as in
    the client's body.
    """
    check_may_send_requirements(body, caller)
    flat = FlatBody(body, only=WIDGET_KEYS if caller.is_widget else None)
    target = flat.read(BookingTargetSerializer)
    project = find_project(flat, app, caller, target)
    graph = _read_graph(target, project, caller)
    if graph.is_seat:
        return _read_seat(flat, target, project, graph, app=app, caller=caller, now=now)
    if (target.get("related") or {}).get("owner_booking_id"):
        raise Invalid.at(OWNER_PATH, "Only seats have a group: use the graph group_customer.")
    calendar = _find_bookable_calendar(flat, app, caller, project, target)
    holds = _find_holds(flat, app, caller, target)
    quantity = read_quantity(target, project, caller, holds)
    if graph.is_group and quantity > 1:
        raise Invalid.at("quantity", "A group takes one unit.")
    booking_target = BookingTarget(
        app=app,
        project=project,
        now=now,
        holds=holds,
        is_public=caller.is_widget,
        is_group=graph.is_group,
        quantity=quantity,
        party_size=target.get("party_size"),
        **target_resources(project, calendar, target),
    )
    check_named_resources(booking_target)
    if graph.is_group and booking_target.visit:
        raise Invalid.at("graph", "A group can't be a visit.")
    shape = NewGroupSerializer if graph.is_group else NewBookingSerializer
    given = flat.read(shape, zone=wall_time_zone(booking_target, zone))
    check_may_write_note(caller, given)
    caller.check_receivers(given.get("event_notifications"))
    check_max_length_without_project(caller, project, given["start"], given["end"])
    _check_holds(flat, booking_target, given)
    _check_customer_count(given, project, caller)
    _check_required_answers(flat, given, project, caller)
    return _new_booking(flat, given, graph, booking_target, caller), booking_target


def check_may_send_requirements(body: Any, caller: Caller) -> None:
    """Raise Forbidden for `requires` or `steps` by a key that chooses among the project's only."""
    body = array_as_object(body)
    for name in ("requires", "steps"):
        if caller.is_bound_to_projects and isinstance(body, Mapping) and body.get(name):
            raise Forbidden(f"This key can't send `{name}`: its projects have their own.")


def read_quantity(
    target: Mapping[str, Any], project: Project | None, caller: Caller, holds: Sequence[Hold] = ()
) -> int:
    """Return the units of a booking or hold: as sent, else those of its hold, else one.

    Raises Invalid for a place, which only seats have, and for several units where a booking takes
    several resources.
    """
    if target.get("place") is not None:
        raise Invalid.at("place", "Only seats have a place.")
    of_one_resource = len({row.resource_id for row in holds}) == 1 and not holds[0].step
    quantity = target.get("quantity") or (len(holds) if of_one_resource else 1)
    check_quantity(caller, project, quantity, most=MAX_UNITS)
    takes_several = target.get("requires") or target.get("steps")
    if project:
        takes_several = takes_several or project.derives_resources or project.is_mutual
    if quantity > 1 and takes_several:
        raise Invalid.at("quantity", "A booking of several resources takes one unit of each.")
    return quantity


def check_may_write_note(caller: Caller, given: Mapping[str, Any]) -> None:
    """Raise Invalid for a note by a resource's key, and Forbidden for one by a key with scopes that
    may not read it.
    """
    if given.get("note") is None:
        return
    if caller.resource_id:
        raise Invalid.at("note", "The key of a resource can't write notes.")
    caller.check_scopes(Credential.PEOPLE_READ)


def target_resources(
    project: Project | None, calendar: Calendar | None, target: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the calendar of a BookingTarget, or what is fixed of the project's requirements.

    Raises Invalid for `resources` without requirements.
    """
    chosen, requires = target.get("resources") or {}, target.get("requires")
    steps = None
    if target.get("steps"):
        if requires:
            raise Invalid.at("requires", "Is not used with `steps`.")
        steps = {"steps": target["steps"], "order": target.get("order")}
    if not (requires or steps or (project and project.derives_resources)):
        if chosen:
            raise Invalid.at("resources", "The project has no `requires`.")
        return {"calendar": calendar}
    anywhere = calendar.resource_id if calendar else None
    if any(anywhere in ids for ids in chosen.values()):
        anywhere = None
    fixed = FixedChoice(chosen, anywhere)
    own = {"requires": requires, "steps": steps}
    return {"calendar": None, "named": calendar, "fixed": fixed, **own}


def check_named_resources(target: BookingTarget) -> None:
    """Raise Invalid unless the named resources fit the requirements."""
    if target.visit:
        check_fixed(requirements_of(target.visit), target.fixed)
        fixed_in_visit(target.visit, target.fixed)
        return
    if not target.has_requirements:
        return
    check_fixed(target.alternatives, target.fixed)
    anywhere = target.fixed.anywhere
    if anywhere and anywhere not in resource_ids_of_requirements(target.alternatives):
        raise Invalid.at("resource_id", "Fits no requirement of the project.")


def public_body(body: Any) -> dict[str, Any]:
    """What counts of a valid body by a widget key, in its own form, without the hold."""
    names = {*WIDGET_KEYS, "event"} - {"reservation_id"}
    return {key: body[key] for key in body if key in names}


def find_booking_target(
    flat: FlatBody, app: App, caller: Caller, target: Mapping[str, Any]
) -> tuple[Project | None, Calendar | None]:
    """Return the named project and calendar, at least one of them. Raises Invalid."""
    project = find_project(flat, app, caller, target)
    return project, _find_bookable_calendar(flat, app, caller, project, target)


def _find_bookable_calendar(
    flat: FlatBody, app: App, caller: Caller, project: Project | None, target: Mapping[str, Any]
) -> Calendar | None:
    calendar = _find_calendar(flat, app, caller, project, target)
    is_open = target.get("requires") or target.get("steps")
    if calendar is None and project is None and not is_open:
        path = flat.path("calendar_id")
        raise Invalid.at(path, "A calendar, a resource or a project is required.")
    if calendar and project is None:
        check_resources_are_in_no_project(caller, [calendar.resource_id])
    return calendar


def find_project(
    flat: FlatBody, app: App, caller: Caller, target: Mapping[str, Any]
) -> Project | None:
    project_id = target.get("project_id")
    check_project_is_named(app, caller, project_id)
    if not project_id:
        return None
    project = visible_projects(app, caller).filter(id=project_id).first()
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
    """Return the named calendar, or the first of the named resource; None: the project chooses."""
    calendar_id, resource_id = target.get("calendar_id"), target.get("resource_id")
    only = caller.resource_id
    if calendar_id:
        name, calendar = "calendar", _find_app_calendar(app, calendar_id)
    elif wanted_id := resource_id or only:
        name, calendar = "resource", target_calendar(app, wanted_id)
    else:
        return None
    if calendar is None or only not in (None, calendar.resource_id):
        raise Invalid.at(flat.path(f"{name}_id"), f"There is no such {name}.")
    if resource_id and calendar.resource_id != resource_id:
        raise Invalid.at(flat.path("calendar_id"), "Belongs to another resource.")
    if calendar.is_connected and not calendar.is_writable:
        raise Invalid.at(
            flat.path("calendar_id"), "This calendar is read-only: choose a writable calendar."
        )
    if project and caller.is_bound_to_projects:
        check_is_of_project(project.id, calendar)
    if project and caller.is_widget and project.is_mutual:
        return None  # one resource alone would be less than the project offers
    return calendar


def check_is_of_project(project_id: uuid.UUID, calendar: Calendar) -> None:
    """Raise Invalid unless the project has the calendar's resource, as keys that keep to projects
    require.
    """
    own = ProjectResource.objects.filter(project_id=project_id, resource_id=calendar.resource_id)
    if not own.exists():
        raise Invalid.at("resource_id", "There is no such resource.")


def target_calendar(app: App, resource_id: uuid.UUID) -> Calendar | None:
    """Return the first own calendar of the app's resource, with the resource."""
    return next(iter(_OWN_CALENDARS(app.id, resource_id)), None)


def _find_app_calendar(app: App, calendar_id: uuid.UUID) -> Calendar | None:
    return next(iter(_CALENDAR(app.id, calendar_id)), None)


def _calendars_with_resource(app_id: uuid.UUID) -> CalendarQuerySet:
    return Calendar.objects.for_app(app_id).select_related("resource")


_CALENDAR = FixedQuery(lambda app, calendar: _calendars_with_resource(app).filter(id=calendar))
_OWN_CALENDARS = FixedQuery(
    lambda app, resource: (
        _calendars_with_resource(app).own().filter(resource=resource).order_by("created_at", "id")
    )
)


def _find_holds(
    flat: FlatBody, app: App, caller: Caller, target: Mapping[str, Any]
) -> Sequence[Hold]:
    """Return the rows of the named hold, the main one first."""
    if not target.get("reservation_id"):
        return ()
    hold = find_hold(app, target["reservation_id"], resource_id=caller.resource_id)
    if hold is None or not may_use_hold(app, caller, hold):
        raise Invalid.at(flat.path("reservation_id"), "There is no such hold.")
    return with_companions(hold)


def may_use_hold(app: App, caller: Caller, hold: Hold) -> bool:
    """Whether the hold's project is in the caller's scope; without a project, whether the caller
    needs none.
    """
    if hold.project_id is None:
        return not needs_project(app, caller)
    return caller.projects is None or hold.project_id in caller.projects


def _check_holds(flat: FlatBody, booking_target: BookingTarget, given: Mapping[str, Any]) -> None:
    """Raise Invalid unless the hold has the booking's resources and contains its time."""
    if not booking_target.holds:
        return
    held = {row.resource_id for row in booking_target.holds}
    if booking_target.calendar:
        is_held_resource = booking_target.calendar.resource_id in held
    else:
        bookable = set(booking_target.project_resource_ids)
        if booking_target.visit:
            is_held_resource = _holds_visit(booking_target, booking_target.visit)
        elif booking_target.alternatives:
            is_held_resource = booking_target.choose_held() is not None
        elif booking_target.mode == "mutual":
            is_held_resource = held == bookable
        else:
            is_held_resource = set(booking_target.held_resource_ids) <= bookable
    if not is_held_resource:
        raise Invalid.at(flat.path("reservation_id"), "The hold is for another resource.")
    start, end = held_span(booking_target.holds[0])
    is_same = given["start"] == start and given["end"] == end
    if given["start"] < start or given["end"] > end or (booking_target.visit and not is_same):
        raise Invalid.at(flat.path("reservation_id"), "The hold is for another time.")


def _holds_visit(target: BookingTarget, visit: Visit) -> bool:
    """Whether the hold has the steps of the visit, with resources that it may have."""
    known = {
        (step.name, requirement.name): requirement.ids
        for step in visit.steps
        for requirement in step.requirements
    }
    return {row.step for row in target.holds} == {step.name for step in visit.steps} and all(
        row.resource_id in known.get((row.step or "", row.requirement or ""), ())
        for row in target.holds
    )


def wall_time_zone(booking_target: BookingTarget, zone: str) -> str:
    """Return the zone of wall times: the resource's if there is just one, else `zone`."""
    if booking_target.calendar:
        return booking_target.calendar.resource.timezone
    zones = {zone for _, zone in booking_target.project_resource_zones}
    return zones.pop() if len(zones) == 1 else zone


def _new_booking(
    flat: FlatBody,
    given: Mapping[str, Any],
    graph: Graph,
    booking_target: BookingTarget,
    caller: Caller,
) -> NewBooking:
    project = booking_target.project
    texts = _read_texts(given, project, caller)
    if not texts["what"]:
        raise Invalid.at(flat.path("what"), "This field is required.")
    series = _read_series(given)
    if series and given.get("external_id") is not None:
        raise Invalid.at("external_id", "A series can't have an external id: its bookings can.")
    if series and booking_target.holds:
        raise Invalid.at("reservation_id", "A series can't use a hold.")
    kind: type[NewBooking] = NewSeries if series else NewBooking
    return kind(
        **series,
        start=given["start"],
        end=given["end"],
        details=EventDetails(
            **texts,
            participants=given.get("participants") or [],
            invite=given.get("invite") is not False,
        ),
        untrusted_texts=_untrusted_texts(given, texts, project) if caller.is_widget else None,
        **_booking_draft(given, graph),
        **parse_settings(given, project, caller),
    )


def _read_texts(
    given: Mapping[str, Any], project: Project | None, caller: Caller
) -> dict[str, str]:
    """Return `what`, `where` and `description`: of the request, else of the project.

    A widget key's count only where the project has none.
    """
    own = project.booking if project else {}
    texts = {name: given.get(name) for name in EVENT_WORDS}
    if caller.is_widget:
        fallback = {"what": project.name} if project else {}
        texts = {name: own.get(name) or texts[name] or fallback.get(name) for name in EVENT_WORDS}
    texts["what"] = texts["what"] or own.get("what")
    return {name: (own.get(name) or "") if text is None else text for name, text in texts.items()}


def _untrusted_texts(
    given: Mapping[str, Any], texts: Mapping[str, str], project: Project | None
) -> list[str]:
    """Return which of the texts are the caller's."""
    own = project.booking if project else {}
    return [
        name for name, text in texts.items() if text and text == given.get(name) != own.get(name)
    ]


def _read_series(given: Mapping[str, Any]) -> dict[str, Any]:
    if not given.get("recurrence"):
        return {}
    try:
        rule = read_booking_rule(given["recurrence"])
    except RecurrenceRuleError as error:
        raise Invalid.at("recurrence", find_message(error)) from error
    return {"rule": rule, "on_conflict": given.get("on_conflict") or ON_CONFLICT[0]}


def _booking_draft(given: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
    """Return the fields of a BookingDraft."""
    settings = given.get("settings") or {} if graph.is_group else {}
    return {
        "graph": graph,
        "action": _read_action(given, graph),
        "customers": [] if graph.is_group else given["customers"],
        "notifications": given.get("event_notifications"),
        "meta": {
            key: value for key, value in (given.get("meta") or {}).items() if value is not None
        },
        "external_id": given.get("external_id"),
        "note": given.get("note") or None,
        "suppress_mail_to": [
            recipient
            for recipient in ("customer", "owner")
            if (given.get(f"notify_{recipient}_by_email") or {}).get("enabled") is False
        ],
        "max_seats": settings.get("max_seats"),
        "places": settings.get("places") or None,
        "policies": {name: settings[name] for name in GROUP_POLICIES if settings.get(name)},
    }


def _check_required_answers(
    flat: FlatBody, given: Mapping[str, Any], project: Project | None, caller: Caller
) -> None:
    """Raise Invalid if a public caller leaves out the answer to a required question.

    A checkbox must be ticked. Readonly questions have the project's own answer.
    """
    if project is None or not caller.is_widget:
        return
    required = [
        key
        for key, question in project.customer_fields.items()
        if isinstance(question, Mapping) and question.get("required") is True
        if not question.get("readonly") and key not in NOT_ASKED
    ]
    path = "customer" if "customer" in flat.values else "customers.{}"
    errors = {
        f"{path.format(position)}.{key}": ["This field is required."]
        for position, customer in enumerate(given["customers"])
        for key in required
        if ({**customer["meta"], **customer}).get(key) in (None, "", False)
    }
    if errors:
        raise Invalid(errors)


def _read_seat(
    flat: FlatBody,
    target: Mapping[str, Any],
    project: Project | None,
    graph: Graph,
    *,
    app: App,
    caller: Caller,
    now: datetime,
) -> tuple[NewSeat, BookingTarget]:
    """Parse a seat in the group named by `related`, with the group's time and resource."""
    owner_id = (target.get("related") or {}).get("owner_booking_id")
    if owner_id is None:
        raise Invalid.at(OWNER_PATH, "This field is required.")
    owner = find_group(app, caller, owner_id, project, path=flat.path("project_id"))
    calendar = owner.event.calendar
    hold = _find_seat_hold(flat, app, owner, target)
    if target.get("calendar_id") not in (None, calendar.id):
        raise Invalid.at(flat.path("calendar_id"), "Must equal the group's value.")
    given = flat.read(NewSeatSerializer, zone=owner.resource.timezone)
    check_may_write_note(caller, given)
    caller.check_receivers(given.get("event_notifications"))
    if given.get("recurrence"):
        raise Invalid.at("recurrence", "A seat can't have a recurrence.")
    _check_customer_count(given, project, caller)
    _check_required_answers(flat, given, owner.project or project, caller)
    quantity = target.get("quantity") or (hold.quantity if hold else 1)
    check_quantity(caller, owner.project or project, quantity)
    place = target.get("place") or (hold.place if hold else None)
    check_place(owner, place)
    seat = NewSeat(
        owner_id=owner_id,
        quantity=quantity,
        place=place,
        hold=hold,
        start=given.get("start"),
        end=given.get("end"),
        resource_id=target.get("resource_id"),
        not_begun=caller.is_widget,
        untrusted_texts=[] if caller.is_widget else None,
        paths={name: flat.path(name) for name in ("start", "end", "resource_id")},
        **_booking_draft(given, graph),
    )
    booking_target = BookingTarget(
        app=app,
        project=owner.project or project,
        calendar=calendar,
        now=now,
        quantity=quantity,
    )
    return seat, booking_target


def _check_customer_count(
    given: Mapping[str, Any], project: Project | None, caller: Caller
) -> None:
    """Limit the customers of a booking by a widget key. Raises Invalid."""
    most = (project and project.settings.get("public_customers")) or PROJECT_DEFAULTS[
        "public_customers"
    ]
    if caller.is_widget and len(given.get("customers") or []) > most:
        raise Invalid.at("customers", f"Must have at most {most} item{'s' if most > 1 else ''}.")


def _check_group_is_in_no_project(caller: Caller, group: Booking) -> None:
    """Raise Forbidden if a public caller names a group of a project without the project."""
    if caller.is_widget and group.project_id:
        raise Forbidden(IN_PROJECT)
    check_resources_are_in_no_project(caller, [group.resource_id])


def _find_seat_hold(
    flat: FlatBody, app: App, group: Booking, target: Mapping[str, Any]
) -> SeatHold | None:
    """Return the named hold of seats of the group. Raises Invalid."""
    if not target.get("reservation_id"):
        return None
    hold = find_seat_hold(app, target["reservation_id"])
    if hold is None:
        raise Invalid.at(flat.path("reservation_id"), "There is no such hold.")
    if hold.group_id != group.id:
        raise Invalid.at(flat.path("reservation_id"), "The hold is for another group.")
    return hold


def find_group(
    app: App, caller: Caller, owner_id: uuid.UUID, project: Project | None, *, path: str
) -> Booking:
    """Return the owner's booking for new seats through `project`. Raises Invalid or Forbidden.

    path: of the project in the client's body.
    """
    owner = _visible_group(app, caller, owner_id)
    if project is None:
        _check_group_is_in_no_project(caller, owner)
    elif owner.project_id not in (None, project.id):
        raise Invalid.at(path, "Must equal the group's value.")
    if project and caller.is_bound_to_projects and owner.project_id is None:
        check_is_of_project(project.id, owner.event.calendar)
    return owner


def _visible_group(app: App, caller: Caller, owner_id: uuid.UUID) -> Booking:
    """Return the owner's booking if the caller may see it. Raises Invalid."""
    groups = Booking.objects.for_app(app).filter(id=owner_id, max_seats__isnull=False)
    if caller.resource_id:
        groups = groups.filter(resource_id=caller.resource_id)
    group = groups.select_related("project", "resource", "event__calendar__resource").first()
    if group is None:
        raise Invalid.at(OWNER_PATH, "There is no such group.")
    return group


def _read_graph(target: Mapping[str, Any], project: Project | None, caller: Caller) -> Graph:
    """Return the graph of the request, else of the project.

    A widget key can't override the project's graph or create a group, which would hold time without
    a customer. Raises Invalid.
    """
    own = project.booking.get("graph") if project else None
    requested = None if project and caller.is_widget else target.get("graph")
    name = requested or own or DEFAULT_GRAPH
    graph = GRAPHS.get(name) if isinstance(name, str) else None
    if graph is None:
        raise Invalid.at("graph", f"Must be one of {', '.join(GRAPHS)}.")
    if graph.is_group and caller.is_widget:
        raise Invalid.at("graph", "A widget key can book seats but not create groups.")
    return graph


def _read_action(given: Mapping[str, Any], graph: Graph) -> str:
    action = given.get("action") or graph.start
    if (INITIALIZED, action) not in graph.steps:
        starts = ", ".join(graph.actions(INITIALIZED))
        raise Invalid.at("action", f"The graph {graph.name} starts with: {starts}.")
    return action


def parse_settings(
    given: Mapping[str, Any], project: Project | None, caller: Caller
) -> dict[str, Any]:
    """Return the request's settings, else the project's, else the defaults.

    With a widget key the request's settings are ignored and rules are always enforced.
    """
    requested = {} if caller.is_widget else given.get("settings") or {}
    own = project.settings if project else {}

    def setting(name: str, default: bool) -> bool:
        value = requested.get(name)
        return bool(own.get(name, default) if value is None else value)

    enforced = setting("enforce_availability", project is not None)
    return {
        "allow_double_bookings": setting("allow_double_bookings", False),
        "enforce_availability": enforced or caller.is_widget,
    }
