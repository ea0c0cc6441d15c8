"""How resources, calendars, events and projects are written in answers."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet

from apps_config.models import Account, Credential
from availability.models import Calendar, Event, Hold, Project, Resource
from scheduling.api.instants import format_instant, format_stamp


def _stamps(row: Any) -> dict[str, str]:
    return {
        "created_at": format_stamp(row.created_at),
        "updated_at": format_stamp(row.updated_at),
    }


def calendar_record(calendar: Calendar) -> dict[str, Any]:
    """Of a connected calendar also how far it is in step: its `connection` has to be read too."""
    connection = getattr(calendar, "connection", None)
    return {
        "id": str(calendar.id),
        "resource_id": str(calendar.resource_id),
        "name": calendar.name,
        "description": calendar.description,
        "backgroundcolor": calendar.backgroundcolor,
        "foregroundcolor": calendar.foregroundcolor,
        "provider": calendar.provider,
        "provider_id": calendar.provider_id or None,
        "provider_access": calendar.provider_access or None,
        "provider_primary": calendar.provider_primary,
        "provider_sync": connection is not None and not connection.is_stopped,
        "synced_at": _stamp(calendar.synced_at),
        "problem": connection and connection.problem_record(),
        "progress": connection and connection.progress_record(),
        "unread": connection.unread if connection else 0,
        **_stamps(calendar),
    }


def credential_record(credential: Credential) -> dict[str, Any]:
    """Without its secret, unless everybody may read that."""
    shown = {"key": credential.public_text} if credential.public_text else {}
    return {
        "id": str(credential.id),
        "kind": credential.kind,
        "prefix": credential.prefix,
        **shown,
        "description": credential.description,
        "resource_id": credential.resource_id and str(credential.resource_id),
        "expires_at": _stamp(credential.expires_at),
        "revoked_at": _stamp(credential.revoked_at),
        "last_used_at": _stamp(credential.last_used_at),
        "created_at": format_stamp(credential.created_at),
    }


def _stamp(instant: datetime | None) -> str | None:
    return instant and format_stamp(instant)


def log_in_record(person: Account | Resource, credential: Credential, key: str) -> dict[str, Any]:
    return {
        "kind": credential.kind,
        "id": str(person.id),
        "name": person.name,
        "email": person.email,
        "api_token": key,
        "expires_at": _stamp(credential.expires_at),
    }


def shown_calendars() -> QuerySet[Calendar]:
    """The rows that `calendar_record` needs, of whichever resource, the oldest first."""
    calendars = Calendar.objects.filter(deleted_at=None).select_related("connection")
    return calendars.order_by("created_at", "id")


RESOURCE_INCLUDES = ("calendars", "availability_constraints")


def with_resource_includes(
    resources: QuerySet[Resource], includes: Collection[str]
) -> QuerySet[Resource]:
    """The rows that `resource_record` needs for the includes: one query each."""
    if "calendars" in includes:
        resources = resources.prefetch_related(
            Prefetch("calendars", shown_calendars(), to_attr="shown_calendars")
        )
    if "availability_constraints" in includes:
        resources = resources.prefetch_related("constraints")
    return resources


def resource_record(resource: Resource, includes: Collection[str] = ()) -> dict[str, Any]:
    record = {
        "id": str(resource.id),
        "name": resource.name,
        "first_name": resource.first_name,
        "last_name": resource.last_name,
        "email": resource.email,
        "image": resource.image,
        "timezone": resource.timezone,
        "tags": resource.tags,
        "meta": resource.meta,
        **_stamps(resource),
    }
    if "calendars" in includes:
        record["calendars"] = [calendar_record(one) for one in resource.shown_calendars]
    if "availability_constraints" in includes:
        record["availability_constraints"] = [one.as_json() for one in resource.constraints.all()]
    return record


def public_resource_record(resource: Resource) -> dict[str, Any]:
    """What a widget key sees of a resource: it stands in a public page."""
    return {
        "id": str(resource.id),
        "name": resource.name,
        "image": resource.image,
        "timezone": resource.timezone,
    }


def hold_record(
    hold: Hold, resource: Resource, zone: str, *, is_public: bool = False
) -> dict[str, Any]:
    """`zone`: in which the times are written. `is_public`: as a widget key sees it."""
    return {
        "reservation_id": str(hold.id),
        "start": format_instant(hold.start, zone),
        "end": format_instant(hold.end, zone),
        "resource": public_resource_record(resource) if is_public else resource_record(resource),
        "expires_at": format_instant(hold.expires_at, zone),
    }


def event_record(event: Event, zone: str) -> dict[str, Any]:
    """`zone`: in which the times are written; whole days are shown in the resource's own."""
    zone = event.resource.timezone if event.all_day else zone
    return {
        "id": str(event.id),
        "calendar_id": str(event.calendar_id),
        "what": event.what,
        "where": event.where,
        "description": event.description,
        "start": format_instant(event.start, zone),
        "end": format_instant(event.end, zone),
        "allDay": event.all_day,
        "rsvp": event.rsvp,
        "participants": event.participants,
        "busy": event.busy,
        "provider_id": event.provider_id or None,
        **_stamps(event),
    }


PROJECT_INCLUDES = ("resources", "availability_constraints")


def with_project_rows(projects: QuerySet[Project]) -> QuerySet[Project]:
    """The rows that `project_record` needs: one query each, whatever the number of projects."""
    shown = Resource.objects.filter(deleted_at=None).order_by(
        "project_resources__position", "project_resources__id"
    )
    return projects.prefetch_related(
        Prefetch("resources", shown, to_attr="shown_resources"),
        "constraints",
        "event_notifications",
    )


def project_record(project: Project, includes: Collection[str] = ()) -> dict[str, Any]:
    resources: Sequence[Resource] = project.shown_resources
    whole = "resources" in includes
    notifications = [one.as_json() for one in project.event_notifications.all()]
    return {
        "id": str(project.id),
        "slug": project.slug,
        "name": project.name,
        "resources": [resource_record(one) if whole else str(one.id) for one in resources],
        "availability": project.availability,
        "availability_constraints": [one.as_json() for one in project.constraints.all()],
        "booking": project.booking,
        "customer_fields": project.customer_fields,
        "ui": project.ui,
        "event_notifications": notifications if project.replaces_notifications else None,
        "settings": project.settings,
        "reservation_time": project.reservation_time,
        "meta": project.meta,
        **_stamps(project),
    }
