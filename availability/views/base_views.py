"""Base classes of the views of an app's objects: scope and order of the rows."""

from typing import TypeVar

from django.db.models import QuerySet

from apps_config.base_views import TenantViewSet
from availability.models import Calendar, Event, EventQuerySet, Resource
from availability.serializers.resources import RESOURCE_INCLUDES
from common.openapi.parameters import include_of

Rows = TypeVar("Rows", bound=QuerySet)

STAMPS = {name: name for name in ("created_at", "updated_at")}
BY_NAME = STAMPS | {"name": "name"}
RESOURCE_INCLUDE = {"include": include_of(RESOURCE_INCLUDES)}


class ResourceScopedViewSet(TenantViewSet):
    """What a resource's own key may use, for that resource only."""

    def readable_resources(self) -> QuerySet[Resource]:
        return self._own(Resource.objects.for_app(self.app), "id")

    def readable_calendars(self) -> QuerySet[Calendar]:
        calendars = Calendar.objects.for_app(self.app).select_related("connection")
        return self._own(calendars, "resource_id")

    def readable_events(self) -> EventQuerySet:
        events = Event.objects.for_app(self.app).select_related("calendar", "resource")
        return self._own(events, "resource_id")

    def _own(self, rows: Rows, column: str) -> Rows:
        only = self.caller.resource_id
        return rows.filter(**{column: only}) if only else rows
