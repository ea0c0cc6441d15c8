"""How a booking is written in answers, and which rows each include needs (api.md section 4)."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from django.db.models import Prefetch, QuerySet

from availability.models import Calendar, Resource
from availability.records import calendar_record, event_record, resource_record
from bookings.graphs import GRAPHS
from bookings.models import Booking, Customer, StateChange
from scheduling.api.instants import format_instant, format_stamp

Record = dict[str, Any]


def _event_info(booking: Booking, zone: str) -> Record:
    event = booking.event
    return {
        "start": format_instant(event.start, zone),
        "end": format_instant(event.end, zone),
        "what": event.what,
        "where": event.where,
        "description": event.description,
        "calendar_id": str(event.calendar_id),
        "invite": event.invite,
        "participants": event.participants,
    }


def customer_record(customer: Customer) -> Record:
    return {
        "id": str(customer.id),
        "name": customer.name,
        "email": customer.email,
        "phone": customer.phone,
        "voip": customer.voip,
        "timezone": customer.timezone,
        "meta": customer.meta,
    }


def _attributes(booking: Booking, zone: str) -> Record:
    customers = booking.customers.all()
    return {
        "event_info": _event_info(booking, zone),
        "customer": customer_record(customers[0]) if customers else None,
        "settings": {
            "allow_double_bookings": booking.allow_double_bookings,
            "enforce_availability": booking.enforce_availability,
        },
    }


def _log(change: StateChange) -> Record:
    return {
        "from_state": change.from_state,
        "to_state": change.to_state,
        "action": change.action,
        "actor": change.actor,
        "source": change.source,
        "message": change.message,
        "created_at": format_stamp(change.created_at),
    }


def _project(booking: Booking, resources: Sequence[Resource] | None = None) -> Record | None:
    """The project's own values; its resources where they are asked for."""
    project = booking.project
    if project is None:
        return None
    record = {
        "id": str(project.id),
        "slug": project.slug,
        "name": project.name,
        "availability": project.availability,
        "booking": project.booking,
        "customer_fields": project.customer_fields,
        "ui": project.ui,
        "settings": project.settings,
        "meta": project.meta,
        "created_at": format_stamp(project.created_at),
        "updated_at": format_stamp(project.updated_at),
    }
    if resources is not None:
        record["resources"] = [resource_record(resource) for resource in resources]
    return record


def _resource_with_calendars(booking: Booking, zone: str) -> Record:
    return resource_record(booking.resource, ("calendars",))


def _project_with_resources(booking: Booking, zone: str) -> Record | None:
    return _project(booking, booking.project.shown_resources if booking.project else None)


class Include(NamedTuple):
    """One name of `include`: the key and value that it writes, and the rows that it needs."""

    key: str
    write: Callable[[Booking, str], Any]
    joins: Sequence[str] = ()
    prefetches: Sequence[Any] = ()


def _calendars() -> Prefetch:
    rows = Calendar.objects.filter(deleted_at=None).order_by("created_at", "id")
    return Prefetch("resource__calendars", rows, to_attr="shown_calendars")


def _resources() -> Prefetch:
    rows = Resource.objects.filter(deleted_at=None).order_by(
        "project_resources__position", "project_resources__id"
    )
    return Prefetch("project__resources", rows, to_attr="shown_resources")


INCLUDES: dict[str, Include] = {
    "attributes": Include("attributes", _attributes, ["event"], ["customers"]),
    "event": Include(
        "event",
        lambda booking, zone: event_record(booking.event, zone),
        ["event", "event__resource"],
    ),
    "calendar": Include(
        "calendar",
        lambda booking, zone: calendar_record(booking.event.calendar),
        ["event__calendar"],
    ),
    "resource": Include(
        "resource", lambda booking, zone: resource_record(booking.resource), ["resource"]
    ),
    "resource.calendars": Include(
        "resource", _resource_with_calendars, ["resource"], [_calendars()]
    ),
    "user": Include("user", lambda booking, zone: resource_record(booking.resource), ["resource"]),
    "customers": Include(
        "customers",
        lambda booking, zone: [customer_record(one) for one in booking.customers.all()],
        (),
        ["customers"],
    ),
    "project": Include("project", lambda booking, zone: _project(booking), ["project"]),
    "project.resources": Include("project", _project_with_resources, ["project"], [_resources()]),
    "meta": Include("meta", lambda booking, zone: booking.meta),
    "logs": Include(
        "logs", lambda booking, zone: [_log(change) for change in booking.logs.all()], (), ["logs"]
    ),
    "available_actions": Include(
        "available_actions",
        lambda booking, zone: GRAPHS[booking.graph].actions(booking.state),
    ),
    "event_notifications": Include(
        "event_notifications",
        lambda booking, zone: [one.as_json() for one in booking.event_notifications.all()],
        (),
        ["event_notifications"],
    ),
}
# What GET /bookings/:id carries unasked.
WHOLE = (
    "attributes",
    "event",
    "calendar",
    "resource",
    "customers",
    "project",
    "meta",
    "available_actions",
    "event_notifications",
)


def _public_attributes(booking: Booking, zone: str) -> Record:
    """Without what other people wrote: a widget key stands in a public page."""
    info = _event_info(booking, zone)
    return {"event_info": {key: info[key] for key in ("start", "end", "what", "where")}}


def _public_resource(booking: Booking, zone: str) -> Record:
    resource = booking.resource
    return {
        "id": str(resource.id),
        "name": resource.name,
        "image": resource.image,
        "timezone": resource.timezone,
    }


def _public_event(booking: Booking, zone: str) -> Record:
    info = _event_info(booking, zone)
    return {
        "id": str(booking.event_id),
        **{key: info[key] for key in ("calendar_id", "what", "where", "start", "end")},
    }


# What a widget key may include, and what it sees of it.
PUBLIC_INCLUDES: dict[str, Include] = {
    "attributes": Include("attributes", _public_attributes, ["event"]),
    "event": Include("event", _public_event, ["event"]),
    "resource": Include("resource", _public_resource, ["resource"]),
    "user": Include("user", _public_resource, ["resource"]),
    "available_actions": INCLUDES["available_actions"],
}


def with_includes(bookings: QuerySet[Booking], includes: Collection[Include]) -> QuerySet[Booking]:
    """The rows that the includes need: joined where there is one, else one query each."""
    joins = {join for include in includes for join in include.joins}
    for include in includes:
        bookings = bookings.prefetch_related(*include.prefetches)
    return bookings.select_related(*joins) if joins else bookings


def booking_record(booking: Booking, includes: Collection[Include], zone: str) -> Record:
    """The six fields of a list entry, and what is included; times of events in `zone`."""
    record = {
        "id": str(booking.id),
        "state": booking.state,
        "graph": booking.graph,
        "completed": booking.completed,
        "created_at": format_stamp(booking.created_at),
        "updated_at": format_stamp(booking.updated_at),
    }
    for include in includes:
        record[include.key] = include.write(booking, zone)
    return record
