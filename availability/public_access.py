"""What a public caller, the holder of a widget key, may use: projects in the scope of the key, and
resources in no project if the app allows it. A server key with `projects` is no public caller, but
keeps to its projects in the same way.
"""

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import QuerySet

from apps_config.authentication import Caller
from apps_config.models import App
from availability.models import Project, ProjectResource
from availability.serializers.fields import MAX_QUANTITY
from availability.serializers.projects import PROJECT_DEFAULTS
from common.errors import Forbidden, Invalid
from common.messages import Message

MAX_LENGTH = timedelta(hours=24)
NEEDS_PROJECT = (
    "A widget key books through a project: send `project_id`. Without a project it can only book"
    " resources that are in no project, if the app's setting `public_resources` is on and the key"
    " is not bound to projects."
)
NEEDS_ONE_OF_ITS_PROJECTS = "This key works for its `projects` only: send `project_id`."
IN_PROJECT = "A widget key books this resource through a project: send `project_id`."


def visible_projects(app: App, caller: Caller) -> QuerySet[Project]:
    """The app's projects that the caller may use."""
    rows = Project.objects.for_app(app)
    return rows if caller.projects is None else rows.filter(id__in=caller.projects)


def needs_project(app: App, caller: Caller) -> bool:
    """Whether the caller can use no resource without a project."""
    if caller.projects is not None:
        return True
    return caller.is_widget and not app.allows_public_bookings_without_project


def check_project_is_named(app: App, caller: Caller, project_id: uuid.UUID | None) -> None:
    """Raise Forbidden if the caller has to name a project."""
    if project_id is None and needs_project(app, caller):
        raise Forbidden(NEEDS_PROJECT if caller.is_widget else NEEDS_ONE_OF_ITS_PROJECTS)


def check_resources_are_in_no_project(caller: Caller, resource_ids: Collection[uuid.UUID]) -> None:
    """Raise Forbidden if a public caller names resources of a project without the project."""
    if not caller.is_widget:
        return
    rows = ProjectResource.objects.filter(resource__in=resource_ids, project__deleted_at=None)
    if rows.exists():
        raise Forbidden(IN_PROJECT)


def check_quantity(
    caller: Caller, project: Project | None, quantity: int, *, most: int = MAX_QUANTITY
) -> None:
    """Raise Invalid for more than `most`, or than a public caller may take at once."""
    if caller.is_widget:
        own = project.settings.get("max_quantity") if project else None
        most = min(most, own or PROJECT_DEFAULTS["max_quantity"])
    if quantity > most:
        raise Invalid.at("quantity", Message("Must be at most %(limit)s.", limit=most))


def check_max_length_without_project(
    caller: Caller, project: Project | None, start: datetime, end: datetime
) -> None:
    """Raise Invalid if a public caller asks for more than 24 hours without a project."""
    if caller.is_widget and project is None and end - start > MAX_LENGTH:
        raise Invalid.at("end", "Must be at most 24 hours after the start.")
