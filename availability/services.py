"""Change resources, calendars, events and projects. Each function is one transaction."""

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from django.contrib.auth.hashers import make_password
from django.db import IntegrityError, models, transaction
from django.db.models import Max, Q
from django.utils.crypto import get_random_string
from django.utils.text import slugify

from apps_config.history import record_history
from apps_config.models import App, Credential
from apps_config.services import end_log_in_tokens, issue_key, replace_notifications, revoke_key
from availability.core.constraints import ConstraintRule, render_constraint
from availability.core.intervals import clip, find_overlaps
from availability.core.zones import day_start
from availability.models import (
    Calendar,
    Event,
    HasConstraints,
    Project,
    ProjectNotification,
    ProjectResource,
    Resource,
    ResourcePicture,
    Schedule,
)
from availability.payment_links import lacks_payment_link
from availability.reserve.events import (
    LAST_INSTANT,
    lock_resources,
    lock_resources_of_calendars,
    span_record,
)
from availability.reserve.holds import release_holds_of_project
from availability.reserve.units import lower_units
from availability.search.parameters import merge_parameters
from availability.search.queries import TimeSpan, fetch_busy_events
from availability.search.requirements import derive_resources, load_requirements
from availability.search.visits import derive_resources_by_tag, load_visit, requirements_of
from common.api.merge_patch import merge_free, merge_keys, without_empty
from common.db.updated_at import transaction_start
from common.errors import AlreadyExists, InUse, Invalid, NotFound, taken_external_id_is_refused
from common.images import SmallImage
from common.messages import Message
from common.time.instants import to_datetime

FIRST_CALENDAR = "Bookings"


def set_fields(row: models.Model, given: Mapping[str, Any], names: Iterable[str]) -> None:
    """Set the given fields on the row; null empties a text field."""
    for name in names:
        if name in given:
            empty = None if row._meta.get_field(name).null else ""
            setattr(row, name, empty if given[name] is None else given[name])


def set_constraints(owner: HasConstraints, given: Mapping[str, Any]) -> None:
    """Set the owner's rules if they are given."""
    if "availability_constraints" in given:
        rules: Sequence[ConstraintRule] = given["availability_constraints"]
        owner.availability_constraints = [render_constraint(rule) for rule in rules]


# --- Resources ------------------------------------------------------------------------------------
RESOURCE_FIELDS = (
    "external_id",
    "name",
    "timezone",
    "first_name",
    "last_name",
    "email",
    "image",
    "tags",
    "capacity",
)


def create_resource(
    *, app: App, given: Mapping[str, Any], issues_key: bool = True
) -> tuple[Resource, str | None]:
    """Create a resource with its first calendar and its API key, if it gets one; returns the key's
    text, shown once.

    Raises AlreadyExists if another resource of the app has the e-mail address or external id.
    """
    password = hash_password(given.get("password"))
    resource = Resource(app=app, meta=merge_keys({}, given.get("meta", {})), password=password)
    set_fields(resource, given, RESOURCE_FIELDS)
    _set_party(resource, given)
    set_constraints(resource, given)
    with transaction.atomic():
        _set_schedule(resource, given)
        _save_resource(resource)
        Calendar.objects.create(app_id=app.id, resource=resource, name=FIRST_CALENDAR)
        if resource.tags:
            derive_resources_by_tag(app)
        if not issues_key:
            return resource, None
        _, text = issue_key(Credential.RESOURCE, app=app, resource=resource)
    return resource, text


def _set_party(resource: Resource, given: Mapping[str, Any]) -> None:
    if "party" in given:
        party = given["party"] or {}
        resource.party_min, resource.party_max = party.get("min"), party.get("max")


def hash_password(text: str | None) -> str:
    """A slow hash of the password; "" if there is none."""
    return make_password(text) if text else ""


def change_resource(resource: Resource, given: Mapping[str, Any]) -> Resource:
    """Apply a partial change.

    A new time zone moves the resource's all-day events. A new password revokes the log-in tokens.
    Raises InUse for a capacity below what is booked or held ahead.
    """
    # Hash before the row is locked: hashing is slow.
    password = hash_password(given["password"]) if "password" in given else None
    with transaction.atomic():
        resource = Resource.objects.select_for_update(no_key=True).get(id=resource.id)
        old_zone, old_capacity = resource.timezone, resource.capacity
        old_tags = resource.tags
        set_fields(resource, given, RESOURCE_FIELDS)
        _set_party(resource, given)
        set_constraints(resource, given)
        if resource.capacity < old_capacity:
            _check_lower_capacity(resource, now=transaction_start())
            lower_units(resource.id, resource.capacity, now=transaction_start())
        resource.meta = merge_free(resource.meta, given.get("meta", {}), path="meta")
        _set_schedule(resource, given)
        if password is not None:
            resource.password = password
            end_log_in_tokens(resource.id)
        _save_resource(resource)
        if resource.timezone != old_zone:
            _move_whole_days(resource)
        if resource.tags != old_tags:
            derive_resources_by_tag(resource.app)
    return resource


def _set_schedule(resource: Resource, given: Mapping[str, Any]) -> None:
    """Lock the given schedule, so that nobody deletes it. Raises Invalid for an unknown one."""
    if "schedule_id" not in given:
        return
    schedule_id = given["schedule_id"]
    if schedule_id is not None:
        schedules = Schedule.objects.for_app(resource.app_id).filter(id=schedule_id)
        if not schedules.select_for_update(no_key=True).exists():
            raise Invalid.at("schedule_id", "There is no such schedule.")
    resource.schedule_id = schedule_id


def replace_password(resource: Resource, text: str, *, now: datetime) -> bool:
    """Set a password if the row's password and e-mail are still those of `resource`.

    Revokes the log-in tokens. Returns False, and changes nothing, if the row was changed meanwhile.
    """
    password = hash_password(text)
    with transaction.atomic():
        rows = Resource.objects.filter(
            id=resource.id, password=resource.password, email=resource.email, deleted_at=None
        )
        is_replaced = rows.update(password=password, updated_at=transaction_start()) == 1
        if is_replaced:
            end_log_in_tokens(resource.id)
    return is_replaced


def _check_lower_capacity(resource: Resource, *, now: datetime) -> None:
    """Raise InUse, with the first time, if more than `resource.capacity` bookings and holds overlap
    after `now`. The row still has the larger capacity.
    """
    ahead = TimeSpan(int(now.timestamp()), int(LAST_INSTANT.timestamp()))
    items = fetch_busy_events([resource.id], ahead, now=now).get(resource.id, [])
    spans = [item.span for item in items if item.capacity > 1]
    for first in clip(find_overlaps(spans, resource.capacity + 1), *ahead)[:1]:
        times = span_record(*map(to_datetime, first))
        raise InUse(
            f"More than {resource.capacity} bookings overlap at {times['start']}.",
            conflicts=[times],
        )


def _save_resource(resource: Resource) -> None:
    """Save the row and its history. After AlreadyExists, the caller's transaction ends."""
    try:
        with taken_external_id_is_refused("resource"), transaction.atomic(savepoint=False):
            resource.save()
    except IntegrityError as error:
        # PostgreSQL names the constraint, SQLite its columns.
        if not any(name in str(error) for name in ("resource_email_once", "resource.address")):
            raise
        raise AlreadyExists(Message("Another resource has this e-mail address.")) from error


def _move_whole_days(resource: Resource) -> None:
    events = list(resource.events.filter(all_day=True))
    for event in events:
        event.start, event.end = local_midnights(*event.dates, resource.timezone, path="timezone")
        event.updated_at = resource.updated_at
    Event.objects.bulk_update(events, ["start", "end", "updated_at"], batch_size=500)


def delete_resource(resource: Resource, *, now: datetime) -> None:
    """Soft-delete a resource, which frees its e-mail address and external id.

    Raises InUse while it is booked, and while a request awaits its answer, also a past one.
    """
    with transaction.atomic():
        lock_resources([resource.id])
        events = Event.objects.filter(resource=resource)
        _refuse_while_booked(events, "resource", now)
        # The clock completes past bookings, but not requests: one could be confirmed later.
        _refuse_if_any(events.filter(_has_booking(**UNFINISHED, completes_at=None)), "resource")
        Resource.objects.filter(id=resource.id).update(
            deleted_at=now, updated_at=transaction_start()
        )
        record_history(Resource.objects.filter(id=resource.id), "~")
        store_picture(resource, None)
        for credential in resource.credentials.all():
            revoke_key(credential)


def store_picture(resource: Resource, picture: SmallImage | None) -> None:
    """Replace the resource's picture; None removes it."""
    if picture is None:
        ResourcePicture.objects.filter(resource=resource).delete()
        return
    values = {**picture._asdict(), "digest": hashlib.sha256(picture.content).hexdigest()}
    ResourcePicture.objects.update_or_create(resource=resource, defaults=values)


UNFINISHED = {"completed": False, "deleted_at": None}


def _refuse_while_booked(events: models.QuerySet, name: str, now: datetime) -> None:
    """Raise InUse if one of the events ends after `now` and its booking is not completed."""
    _refuse_if_any(events.filter(_has_booking(**UNFINISHED), end__gt=now), name)


def _refuse_if_any(events: models.QuerySet, name: str) -> None:
    if events.exists():
        raise InUse(_BOOKED[name])


_BOOKED = {
    "resource": Message("The resource has bookings that are not completed."),
    "calendar": "The calendar has bookings that are not completed.",
    "project": "The project has bookings that are not completed.",
}


def _has_booking(**values: Any) -> Q:
    """Match events of a booking with these values, and their companions."""
    own_bookings = Q(**{f"bookings__{name}": value for name, value in values.items()})
    return own_bookings | Q(**{f"main__bookings__{name}": value for name, value in values.items()})


# --- Schedules ------------------------------------------------------------------------------------
def create_schedule(*, app: App, given: Mapping[str, Any]) -> Schedule:
    schedule = Schedule(app=app)
    _set_rules(schedule, given)
    with transaction.atomic():
        schedule.save(force_insert=True)
    return schedule


def change_schedule(schedule: Schedule, given: Mapping[str, Any]) -> Schedule:
    """Apply a partial change; the constraints are replaced. Raises NotFound if it was deleted."""
    with transaction.atomic():
        row = Schedule.objects.select_for_update(no_key=True).filter(id=schedule.id).first()
        if row is None:
            raise NotFound("Schedule")
        _set_rules(row, given)
        row.save()
    return row


def _set_rules(schedule: Schedule, given: Mapping[str, Any]) -> None:
    schedule.name = given.get("name", schedule.name)
    set_constraints(schedule, given)


def delete_schedule(schedule: Schedule) -> None:
    """Delete a schedule. Raises InUse while a resource has it, NotFound if it was deleted."""
    with transaction.atomic():
        row = Schedule.objects.select_for_update().filter(id=schedule.id).first()
        if row is None:
            raise NotFound("Schedule")
        users = Resource.objects.filter(schedule=row)
        if users.filter(deleted_at=None).exists():
            raise InUse(Message("Resources have this schedule. Change them first."))
        # Deleted resources do not keep it.
        users.update(schedule=None, updated_at=transaction_start())
        row.delete()


# --- Calendars ------------------------------------------------------------------------------------
CALENDAR_TEXTS = ("name", "description", "backgroundcolor", "foregroundcolor")


def create_calendar(*, resource: Resource, given: Mapping[str, Any]) -> Calendar:
    calendar = Calendar(app_id=resource.app_id, resource=resource)
    set_fields(calendar, given, CALENDAR_TEXTS)
    with transaction.atomic():
        calendar.save(force_insert=True)
    return calendar


def change_calendar(calendar: Calendar, given: Mapping[str, Any]) -> Calendar:
    set_fields(calendar, given, CALENDAR_TEXTS)
    # Save only the given fields: another request may be deleting the calendar.
    with transaction.atomic():
        calendar.save(update_fields=[*(given.keys() & set(CALENDAR_TEXTS)), "updated_at"])
    return calendar


def delete_calendar(calendar: Calendar, *, now: datetime) -> None:
    """Soft-delete a calendar; its events that no booking owns stop blocking.

    Raises InUse for a resource's last own calendar, and while it has bookings that are not
    completed.
    """
    with transaction.atomic():
        lock_resources([calendar.resource_id])
        others = Calendar.objects.own().filter(resource_id=calendar.resource_id, deleted_at=None)
        if not calendar.is_connected and not others.exclude(id=calendar.id).exists():
            raise InUse(Message("A resource must have at least one calendar."))
        _refuse_while_booked(calendar.events.all(), "calendar", now)
        # The event of a past booking keeps its time: the booking may still be rescheduled.
        calendar.events.filter(bookings=None, main=None).update(
            busy=False, exclusive=False, updated_at=transaction_start()
        )
        Calendar.objects.filter(id=calendar.id).update(
            deleted_at=now, updated_at=transaction_start()
        )


# --- Events ---------------------------------------------------------------------------------------
EVENT_TEXTS = ("what", "where", "description", "rsvp", "participants", "busy", "all_day")
EVENT_TIMES = ("start", "end", "start_date", "end_date")


def local_midnights(
    first: date, last: date, zone: str, *, path: str = "start"
) -> tuple[datetime, datetime]:
    """The local midnights of two dates, as instants.

    Raises Invalid at `path` for days that the zone skips (Pacific/Apia skipped 30 December 2011).
    """
    start, end = day_start(first, zone), day_start(last, zone)
    if start == end:
        raise Invalid.at(path, f"{first} does not exist in {zone}.")
    return to_datetime(start), to_datetime(end)


def create_event(*, calendar: Calendar, given: Mapping[str, Any]) -> Event:
    """Create an event in a calendar. It may overlap anything: no rule or conflict is checked.

    Raises Invalid for a connected calendar, or one deleted meanwhile.
    """
    if calendar.is_connected:
        raise Invalid.at(
            "calendar_id", "This calendar is connected: change its events at the provider."
        )
    event = Event(app_id=calendar.app_id, calendar=calendar, resource=calendar.resource)
    with transaction.atomic():
        if not lock_resources_of_calendars([calendar]):
            raise Invalid.at("calendar_id", "The calendar no longer exists.")
        _set_event(event, given)
        event.save(force_insert=True)
    return event


def change_event(event: Event, given: Mapping[str, Any]) -> Event:
    """Apply a partial change. Raises InUse for an event of a booking or of a connected calendar,
    and NotFound for one that has been deleted.
    """
    _refuse_booked_event(event)
    with transaction.atomic():
        lock_resources([event.resource_id])
        # Read the row again: concurrent changes are kept, and a deleted event is not saved back.
        rows = Event.objects.select_related("calendar", "resource").filter(id=event.id)
        rows = rows.filter(calendar__deleted_at=None, resource__deleted_at=None)
        current = rows.select_for_update(of=("self",), no_key=True).first()
        if current is None:
            raise NotFound("Event")
        _set_event(current, given)
        current.save()
    return current


def _set_event(event: Event, given: Mapping[str, Any]) -> None:
    set_fields(event, given, (*EVENT_TEXTS, *EVENT_TIMES))
    if event.all_day:
        zone = event.resource.timezone
        event.start, event.end = local_midnights(*event.dates, zone)
    else:
        event.start_date = event.end_date = None


def delete_event(event: Event) -> None:
    """Delete an event. Raises InUse for an event of a booking or of a connected calendar."""
    _refuse_booked_event(event)
    event.delete()


def _refuse_booked_event(event: Event) -> None:
    owner = event.main or event
    booking = owner.bookings.filter(owner_booking=None).first()
    if booking:
        raise InUse(f"The event belongs to booking {booking.id}.", booking_id=str(booking.id))
    if event.calendar.is_connected:
        raise InUse(
            Message("The event belongs to a connected calendar: change it at the provider.")
        )


# --- Projects -------------------------------------------------------------------------------------
def _with_stored_windows(availability: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a project as they are stored: rules as written in the API."""
    return {
        key: [render_constraint(rule) for rule in value]
        if key in ("start_window", "end_window") and value is not None
        else value
        for key, value in availability.items()
    }


PROJECT_OBJECTS = ("booking", "settings")
PROJECT_FREE_OBJECTS = ("customer_fields", "ui", "meta")


def create_project(*, app: App, given: Mapping[str, Any]) -> Project:
    """Create a project; without a slug, one is made from the name.

    Raises AlreadyExists for a taken slug or external id, Invalid for resources that the app does
    not have.
    """
    project = Project(
        app=app, name=given["name"], slug=given.get("slug") or _free_slug(given["name"])
    )
    with transaction.atomic():
        _set_project(project, given)
        _require_payment_link(project)
        _save_project(project)
        _set_project_rows(project, given)
    return project


def change_project(project: Project, given: Mapping[str, Any]) -> Project:
    """Apply a partial change: objects are merged key by key, lists are replaced."""
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(id=project.id)
        project.name = given.get("name", project.name)
        project.slug = given.get("slug", project.slug)
        _set_project(project, given)
        _require_payment_link(project)
        _save_project(project)
        _set_project_rows(project, given)
    return project


def _free_slug(name: str) -> str:
    """A slug of the name, with a random suffix if the plain one is taken or empty."""
    slug = slugify(name)[:80]
    if slug and not Project.objects.filter(slug=slug, deleted_at=None).exists():
        return slug
    tail = get_random_string(8, "abcdefghijklmnopqrstuvwxyz0123456789")
    return f"{slug or 'project'}-{tail}"


def _set_project(project: Project, given: Mapping[str, Any]) -> None:
    mode = project.availability.get("mode")
    set_constraints(project, given)
    project.availability = merge_parameters(
        project.availability, _with_stored_windows(given.get("availability", {}))
    )
    for name in PROJECT_OBJECTS:
        setattr(project, name, merge_keys(getattr(project, name), given.get(name, {})))
    for name in PROJECT_FREE_OBJECTS:
        merged = merge_free(getattr(project, name), given.get(name, {}), path=name)
        setattr(project, name, merged)
    project.translations = _merge_translations(project.translations, given.get("translations", {}))
    project.external_id = given.get("external_id", project.external_id)
    project.requires = given.get("requires", project.requires)
    project.steps = given.get("steps", project.steps)
    project.order = given.get("order", project.order)
    if project.requires and project.steps:
        name = "requires" if given.get("requires") else "steps"
        raise Invalid.at(name, "A project has either `requires` or `steps`.")
    if project.steps and project.availability.get("mode") != mode:
        raise Invalid.at("availability.mode", "Is not used with `steps`.")
    if project.requires and project.availability.get("length", "") is None:
        raise Invalid.at("availability.length", "Required with `requires`.")
    if project.requires and project.availability.get("mode") != mode:
        raise Invalid.at("availability.mode", "Is not used with `requires`.")
    project.reservation_time = given.get("reservation_time", project.reservation_time)
    if "event_notifications" in given:
        project.replaces_notifications = given["event_notifications"] is not None
    elif "replaces_notifications" in given:
        project.replaces_notifications = given["replaces_notifications"]


def _merge_translations(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merged texts by language, without removed ones. Raises Invalid."""
    merged = without_empty(merge_keys(kept, given))
    for language in given.keys() & merged.keys():
        questions = merged[language].get("questions", {})
        merge_free({}, questions, path=f"translations.{language}.questions")
    return merged


def cannot_be_paid(project: Project) -> bool:
    """Whether the project is explicitly published although its bookings can't be paid."""
    return project.settings.get("published") is True and lacks_payment_link(project)


def _require_payment_link(project: Project) -> None:
    if cannot_be_paid(project):
        raise Invalid.at("settings.pay_url", "Required to publish a project with payment.")


def _save_project(project: Project) -> None:
    """Save the row and its history. After AlreadyExists, the caller's transaction ends."""
    try:
        with taken_external_id_is_refused("project"), transaction.atomic(savepoint=False):
            project.save()
    except IntegrityError as error:
        if "slug" not in str(error):
            raise
        raise AlreadyExists(Message("Another project has this slug.")) from error


def _set_project_rows(project: Project, given: Mapping[str, Any]) -> None:
    if "event_notifications" in given:
        replace_notifications(
            ProjectNotification, given["event_notifications"] or (), project=project
        )
    if "resources" in given:
        set_project_resources(project, given["resources"])
    if given.get("requires"):
        derive_resources(project, load_requirements(project.app_id, given["requires"]))
    if given.get("steps"):
        visit = load_visit(project.app_id, given["steps"], project.order)
        derive_resources(project, requirements_of(visit))


def set_project_resources(project: Project, resource_ids: Sequence[uuid.UUID]) -> None:
    """Replace the project's resources, in this order. Raises Invalid on `resources.N` for unknown
    ids.
    """
    _refuse_derived_resources(project, "resources")
    unique = list(dict.fromkeys(resource_ids))
    rows = Resource.objects.for_app(project.app_id).filter(id__in=unique)
    found_ids = set(rows.values_list("id", flat=True))
    Invalid.check_known("resources", resource_ids, found_ids, "There is no such resource.")
    with transaction.atomic(savepoint=False):
        ProjectResource.objects.filter(project=project).delete()
        ProjectResource.objects.bulk_create(
            ProjectResource(project=project, resource_id=resource_id, position=position)
            for position, resource_id in enumerate(unique)
        )


def _refuse_derived_resources(project: Project, path: str) -> None:
    if project.derives_resources:
        name = "steps" if project.steps else "requires"
        raise Invalid.at(path, f"The project's resources are derived from `{name}`.")


def add_project_resource(project: Project, resource_id: uuid.UUID) -> None:
    """Append a resource; does nothing if the project has it already. Raises Invalid for an unknown
    id.
    """
    _refuse_derived_resources(project, "resource_id")
    if not Resource.objects.for_app(project.app_id).filter(id=resource_id).exists():
        raise Invalid.at("resource_id", "There is no such resource.")
    last = project.project_resources.aggregate(last=Max("position"))["last"]
    ProjectResource.objects.get_or_create(
        project=project,
        resource_id=resource_id,
        defaults={"position": 0 if last is None else last + 1},
    )


def remove_project_resource(project: Project, resource_id: uuid.UUID) -> None:
    """Remove a resource from the project. Raises NotFound if the project does not have it."""
    _refuse_derived_resources(project, "resource_id")
    deleted, _ = project.project_resources.filter(resource_id=resource_id).delete()
    if not deleted:
        raise NotFound("Resource")


def delete_project(project: Project, *, now: datetime) -> None:
    """Soft-delete a project, which frees its slug, its external id and the times of its holds.

    Raises InUse if it has bookings that are not completed.
    """
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(id=project.id)
        _refuse_while_booked(Event.objects.filter(project=project), "project", now)
        release_holds_of_project(project, now=now)
        Project.objects.filter(id=project.id).update(deleted_at=now, updated_at=transaction_start())
        record_history(Project.objects.filter(id=project.id), "~")
