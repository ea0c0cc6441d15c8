"""What the views of an app's objects share: whose rows, in which order."""

from typing import Any

from apps_config.endpoints import TenantView
from availability.models import Calendar, Event, Resource
from availability.records import RESOURCE_INCLUDES
from scheduling.api.errors import NotFound
from scheduling.api.ordering import ORDER_NAMES
from scheduling.api.pagination import PAGE_NAMES
from scheduling.api.schema import include_of

EVERY_METHOD = frozenset({"GET", "POST", "PUT", "DELETE"})
LISTING = (*PAGE_NAMES, "search", *ORDER_NAMES)
CHANGES = (*LISTING, "updated_since")
STAMPS = {name: name for name in ("created_at", "updated_at")}
BY_NAME = STAMPS | {"name": "name"}
RESOURCE_INCLUDE = {"include": include_of(RESOURCE_INCLUDES)}


def found(row: Any, model: str) -> Any:
    """The row, or NotFound where there is none."""
    if row is None:
        raise NotFound(model)
    return row


class ResourceScopedView(TenantView):
    """A view that a resource's own key may use, for that resource alone."""

    resource_methods = EVERY_METHOD

    def resources(self) -> Any:
        return self._own(Resource.objects.for_app(self.app), "id")

    def calendars(self) -> Any:
        calendars = Calendar.objects.for_app(self.app).select_related("connection")
        return self._own(calendars, "resource_id")

    def events(self) -> Any:
        events = Event.objects.for_app(self.app).select_related("calendar", "resource")
        return self._own(events, "resource_id")

    def _own(self, rows: Any, column: str) -> Any:
        only = self.caller.resource_id
        return rows.filter(**{column: only}) if only else rows
