"""The objects and the authors of changes, read by type: a query count that no row adds to."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from apps_config.changes import Position
from apps_config.models import App, Change
from availability.models import Event, Project, Resource, Schedule
from availability.serializers.calendars import CalendarSerializer, visible_calendars
from availability.serializers.events import NO_EVENT_TEXTS, EventSerializer
from availability.serializers.projects import ProjectSerializer, with_project_rows
from availability.serializers.resources import ResourceSerializer, ScheduleSerializer
from bookings.models import Booking, Customer, StateChange
from bookings.serializers.responses import booking_writer, include_for, with_includes
from common.openapi.component_registry import Json
from notifications.changes.serializers import CustomerOfBookingSerializer
from notifications.models import Delivery, Webhook
from notifications.outbox.serializers import DeliverySerializer, with_list_rows
from notifications.webhooks.bodies import WHOLE_BOOKING
from notifications.webhooks.serializers import WebhookSerializer

HISTORIES: Mapping[str, Any] = {
    "resource": Resource,
    "schedule": Schedule,
    "project": Project,
    "webhook": Webhook,
}


class ListedChange(NamedTuple):
    """The row of a ListedChangeSerializer."""

    id: str
    cursor: str
    type: str
    action: str
    at: Any
    actor: str
    source: str
    object_id: UUID
    object: Json | None


def listed_changes(
    app: App, changes: Sequence[Change], zone: str, *, people: bool, links: bool
) -> list[ListedChange]:
    """Return the changes with their authors and with the objects as they are now. people: with what
    reaches or describes customers. links: with those that act for customers.
    """
    readers = _READERS | {
        "booking": partial(_bookings, people=people, links=links),
        "event": partial(_events, people=people),
    }
    objects = {
        kind: _read_objects(readers[kind](app, zone), changes, kind)
        for kind in {row.type for row in changes}
    }
    authors = _authors(changes)
    return [
        ListedChange(
            str(row.number),
            str(Position.after(row)),
            row.type,
            row.action,
            row.at,
            *authors.get(row.id, ("", "")),
            row.object_id,
            objects[row.type].get(row.object_id),
        )
        for row in changes
    ]


Reader = tuple[QuerySet, Callable[[Any], Json]]


def _read_objects(reader: Reader, changes: Sequence[Change], kind: str) -> dict[UUID, Json]:
    rows, render = reader
    ids = {row.object_id for row in changes if row.type == kind}
    return {row.id: render(row) for row in rows.filter(id__in=ids)}


def _bookings(app: App, zone: str, *, people: bool, links: bool) -> Reader:
    includes = [include_for(include, people=people, links=links) for include in WHOLE_BOOKING]
    rows = with_includes(Booking.objects.for_app(app), includes)
    return rows, booking_writer(includes, zone)


def _events(app: App, zone: str, *, people: bool) -> Reader:
    rows = Event.objects.for_app(app).select_related("calendar", "resource")
    hidden = {} if people else NO_EVENT_TEXTS
    return rows, lambda row: EventSerializer.render(row, zone) | hidden


def _customers(app: App, zone: str) -> Reader:
    rows = Customer.objects.filter(app=app, booking__deleted_at=None)
    return rows, CustomerOfBookingSerializer.render


def _calendars(app: App, zone: str) -> Reader:
    rows = visible_calendars().filter(resource__app=app, resource__deleted_at=None)
    return rows, CalendarSerializer.render


_READERS: dict[str, Callable[[App, str], Reader]] = {
    "customer": _customers,
    "calendar": _calendars,
    "resource": lambda app, zone: (Resource.objects.for_app(app), ResourceSerializer.render),
    "schedule": lambda app, zone: (Schedule.objects.for_app(app), ScheduleSerializer.render),
    "project": lambda app, zone: (
        with_project_rows(Project.objects.for_app(app)),
        ProjectSerializer.render,
    ),
    "webhook": lambda app, zone: (Webhook.objects.for_app(app), WebhookSerializer.render),
    "delivery": lambda app, zone: (
        with_list_rows(Delivery.objects.filter(app=app)),
        DeliverySerializer.render,
    ),
}


def _authors(changes: Sequence[Change]) -> dict[int, tuple[str, str]]:
    """Return actor and source by the id of the change, as far as they are stored."""
    entries = StateChange.objects.in_bulk([row.log_id for row in changes if row.log_id])
    authors = {
        row.id: (entry.actor, entry.source)
        for row in changes
        if row.log_id and (entry := entries.get(row.log_id))
    }
    for kind, model in HISTORIES.items():
        own = {row.history_id: row.id for row in changes if row.type == kind and row.history_id}
        if own:
            reasons = model.history.filter(history_id__in=own)
            found = reasons.values_list("history_id", "history_change_reason")
            authors |= {own[key]: (actor or "", "") for key, actor in found}
    return authors
