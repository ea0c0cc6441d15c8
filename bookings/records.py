"""How a booking is written in answers, and which rows each include needs (api.md section 4)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import (
    Case,
    Count,
    IntegerField,
    OuterRef,
    Prefetch,
    QuerySet,
    Subquery,
    When,
)
from django.db.models.functions import Coalesce

from availability.models import Resource
from availability.records import (
    calendar_record,
    event_record,
    public_resource_record,
    resource_record,
    shown_calendars,
)
from bookings.graphs import CUSTOMER_ACTIONS, GRAPHS, SEATED
from bookings.links import action_url
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


def _customers(booking: Booking, zone: str) -> list[Record]:
    return [customer_record(customer) for customer in booking.customers.all()]


def _attributes(booking: Booking, zone: str) -> Record:
    customers = booking.customers.all()
    return {
        "event_info": _event_info(booking, zone),
        "customer": customer_record(customers[0]) if customers else None,
        "settings": {
            "allow_double_bookings": booking.allow_double_bookings,
            "enforce_availability": booking.enforce_availability,
            **booking.policies,
        },
        "group_booking": _group(booking),
    }


def _group(booking: Booking) -> Record | None:
    """The seats of a group's owner; null for every other booking."""
    if booking.max_seats is None:
        return None
    return {"max_seats": booking.max_seats, "current_seats": booking.current_seats}


def _action_links(booking: Booking, zone: str) -> dict[str, str]:
    """Signed addresses by which the customer can act; none where the state allows nothing."""
    return {
        action: action_url(booking, action, booking.event.end)
        for action in GRAPHS[booking.graph].actions(booking.state)
        if action in CUSTOMER_ACTIONS
    }


def _entry(booking: Booking) -> Record:
    """The six fields that every booking is written with."""
    return {
        "id": str(booking.id),
        "state": booking.state,
        "graph": booking.graph,
        "completed": booking.completed,
        "created_at": format_stamp(booking.created_at),
        "updated_at": format_stamp(booking.updated_at),
    }


def _owner_booking(booking: Booking, zone: str) -> Record | None:
    owner = booking.owner_booking
    return _entry(owner) if owner and owner.deleted_at is None else None


def _bulked_bookings(booking: Booking, zone: str) -> list[Record]:
    """The others that the bulk request related to it."""
    others = booking.bulk.shown_bookings if booking.bulk else ()
    return [_entry(other) for other in others if other.id != booking.id]


def _seats(booking: Booking, zone: str) -> list[Record] | None:
    """The seats of a group with their customers, in whatever state; null for other bookings."""
    if booking.max_seats is None:
        return None
    return [_entry(seat) | {"customers": _customers(seat, zone)} for seat in booking.shown_seats]


def _series(booking: Booking, zone: str) -> Record | None:
    """The occurrences in the order of their starts: a booking, or why there is none."""
    series = booking.series
    if series is None:
        return None
    made = [
        {
            "start": format_instant(one.event.start, zone),
            "end": format_instant(one.event.end, zone),
            "booking_id": str(one.id),
        }
        for one in series.shown_bookings
    ]
    skipped = [
        {
            "start": format_instant(datetime.fromisoformat(one["start"]), zone),
            "end": format_instant(datetime.fromisoformat(one["end"]), zone),
            "reason": one["reason"],
        }
        for one in series.skipped
    ]
    occurrences = sorted(made + skipped, key=lambda one: datetime.fromisoformat(one["start"]))
    return {"id": str(series.id), "rrule": series.rrule, "occurrences": occurrences}


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
    counts: Mapping[str, Any] = {}


def _calendars() -> Prefetch:
    return Prefetch("resource__calendars", shown_calendars(), to_attr="shown_calendars")


def _resources() -> Prefetch:
    rows = Resource.objects.filter(deleted_at=None).order_by(
        "project_resources__position", "project_resources__id"
    )
    return Prefetch("project__resources", rows, to_attr="shown_resources")


def _siblings(path: str) -> Prefetch:
    """The bookings of its bulk or series that are still there, in the order of their starts."""
    rows = Booking.objects.filter(deleted_at=None).select_related("event")
    return Prefetch(path, rows.order_by("event__start", "id"), to_attr="shown_bookings")


def _group_seats() -> Prefetch:
    """The seats that are not deleted, in the order in which they were taken."""
    rows = Booking.objects.filter(deleted_at=None).prefetch_related("customers")
    return Prefetch("seats", rows.order_by("created_at", "id"), to_attr="shown_seats")


# How many seats of a group are taken; nothing is counted for other bookings.
CURRENT_SEATS: Mapping[str, Any] = {
    "current_seats": Case(
        When(
            max_seats__isnull=False,
            then=Coalesce(
                Subquery(
                    Booking.objects.filter(
                        owner_booking=OuterRef("id"), state__in=SEATED, deleted_at=None
                    )
                    .order_by()
                    .values("owner_booking")
                    .annotate(count=Count("id"))
                    .values("count")
                ),
                0,
            ),
        ),
        output_field=IntegerField(),
    )
}


INCLUDES: dict[str, Include] = {
    "attributes": Include("attributes", _attributes, ["event"], ["customers"], CURRENT_SEATS),
    "event": Include(
        "event",
        lambda booking, zone: event_record(booking.event, zone),
        ["event", "event__resource"],
    ),
    "calendar": Include(
        "calendar",
        lambda booking, zone: calendar_record(booking.event.calendar),
        ["event__calendar", "event__calendar__connection"],
    ),
    "resource": Include(
        "resource", lambda booking, zone: resource_record(booking.resource), ["resource"]
    ),
    "resource.calendars": Include(
        "resource", _resource_with_calendars, ["resource"], [_calendars()]
    ),
    "user": Include("user", lambda booking, zone: resource_record(booking.resource), ["resource"]),
    "customers": Include("customers", _customers, (), ["customers"]),
    "project": Include("project", lambda booking, zone: _project(booking), ["project"]),
    "project.resources": Include("project", _project_with_resources, ["project"], [_resources()]),
    "meta": Include("meta", lambda booking, zone: booking.meta),
    "outcome": Include("outcome", lambda booking, zone: booking.outcome),
    "logs": Include(
        "logs", lambda booking, zone: [_log(change) for change in booking.logs.all()], (), ["logs"]
    ),
    "available_actions": Include(
        "available_actions",
        lambda booking, zone: GRAPHS[booking.graph].actions(booking.state),
    ),
    "customer_action_links": Include("customer_action_links", _action_links, ["event"]),
    "event_notifications": Include(
        "event_notifications",
        lambda booking, zone: [one.as_json() for one in booking.event_notifications.all()],
        (),
        ["event_notifications"],
    ),
    "owner_booking": Include("owner_booking", _owner_booking, ["owner_booking"]),
    "seats": Include("seats", _seats, (), [_group_seats()]),
    "bulked_bookings": Include(
        "bulked_bookings", _bulked_bookings, ["bulk"], [_siblings("bulk__bookings")]
    ),
    "series": Include("series", _series, ["series"], [_siblings("series__bookings")]),
    # The room that knows of connected calendars fills it.
    "provider_event": Include("provider_event", lambda booking, zone: None),
}


def fills_include(include: Include) -> None:
    """Have a room above write the value of a key that this one only names."""
    INCLUDES[include.key] = include


# What GET /bookings/:id carries unasked.
WHOLE = (
    "attributes",
    "event",
    "calendar",
    "resource",
    "customers",
    "project",
    "meta",
    "outcome",
    "available_actions",
    "customer_action_links",
    "event_notifications",
)


def _public_attributes(booking: Booking, zone: str) -> Record:
    """Without what other people wrote: a widget key stands in a public page."""
    info = _event_info(booking, zone)
    return {
        "event_info": {key: info[key] for key in ("start", "end", "what", "where")},
        "group_booking": _group(booking),
    }


def _public_resource(booking: Booking, zone: str) -> Record:
    return public_resource_record(booking.resource)


def _public_event(booking: Booking, zone: str) -> Record:
    info = _event_info(booking, zone)
    return {
        "id": str(booking.event_id),
        **{key: info[key] for key in ("calendar_id", "what", "where", "start", "end")},
    }


# What a widget key may include, and what it sees of it.
PUBLIC_INCLUDES: dict[str, Include] = {
    "attributes": Include("attributes", _public_attributes, ["event"], (), CURRENT_SEATS),
    "event": Include("event", _public_event, ["event"]),
    "resource": Include("resource", _public_resource, ["resource"]),
    "user": Include("user", _public_resource, ["resource"]),
    "available_actions": INCLUDES["available_actions"],
}


def with_includes(bookings: QuerySet[Booking], includes: Collection[Include]) -> QuerySet[Booking]:
    """The rows that the includes need: joined where there is one, else one query each."""
    joins = {join for include in includes for join in include.joins}
    for include in includes:
        bookings = bookings.prefetch_related(*include.prefetches).annotate(**include.counts)
    return bookings.select_related(*joins) if joins else bookings


def booking_record(booking: Booking, includes: Collection[Include], zone: str) -> Record:
    """The six fields of a list entry, and what is included; times of events in `zone`."""
    record = _entry(booking)
    for include in includes:
        record[include.key] = include.write(booking, zone)
    return record


def changed_record(booking: Booking, includes: Collection[Include], zone: str) -> Record:
    """What the request that made or changed a booking is answered: also where and when it is."""
    return booking_record(booking, includes, zone) | {
        "resource_id": str(booking.resource_id),
        "project_id": str(booking.project_id) if booking.project_id else None,
        "start": format_instant(booking.event.start, zone),
        "end": format_instant(booking.event.end, zone),
    }
