"""Base classes of the views of an app's objects: scope and order of the rows, external ids."""

import uuid
from abc import abstractmethod
from typing import Any, TypeVar

import django_filters
from django.db import transaction
from django.db.models import QuerySet
from rest_framework.request import Request

from apps_config.base_views import TenantViewSet
from apps_config.services import lock_app
from availability.models import Calendar, Event, EventQuerySet, Resource
from availability.serializers.fields import external_id_field
from availability.serializers.resources import RESOURCE_INCLUDES
from common.api.serializers import ObjectSerializer, read_values_as
from common.errors import Invalid, PreconditionFailed
from common.openapi.components import text_response
from common.openapi.parameters import include_of

Rows = TypeVar("Rows", bound=QuerySet)

STAMPS = {name: name for name in ("created_at", "updated_at")}
BY_NAME = STAMPS | {"name": "name"}
RESOURCE_INCLUDE = {"include": include_of(RESOURCE_INCLUDES)}


EXTERNAL_ID = {"external_id": text_response("As in the object.", examples=["crm/42"])}
BY_EXTERNAL_ID = "by-external-id/<path:external_id>"


class ExternalIdFilter(django_filters.FilterSet):
    examples = {"external_id": "crm/42"}

    external_id = django_filters.CharFilter(help_text="Only the object with this external id.")


class ExternalIdSerializer(ObjectSerializer):
    external_id = external_id_field(required=True, allow_null=False)


class ExternalIdViewSet(TenantViewSet):
    """`PUT by-external-id/:external_id` changes the object with this id, or creates it.

    The subclass has the action `put_by_external_id`, which calls `put_row`.
    """

    filterset_class = ExternalIdFilter

    @abstractmethod
    def read_given(self, request: Request, row: Any) -> dict[str, Any]:
        """Return the valid values of the body: for a change of the row, or if it is None, for a new
        object. Raises Invalid, and Forbidden for what the caller may not set.
        """

    @abstractmethod
    def create_row(self, given: dict[str, Any]) -> Any:
        """Create the object and return its row."""

    @abstractmethod
    def change_row(self, row: Any, given: dict[str, Any]) -> None:
        """Change the object."""

    def put_row(self, request: Request, external_id: str) -> tuple[uuid.UUID, int]:
        """Return the id of the changed or new object, and the status of the response.

        One creation at a time per app, so that of two requests the second one finds what the first
        one has made.
        """
        read_values_as(ExternalIdSerializer, {"external_id": external_id})
        row = self.with_external_id(external_id)
        if row is None:
            with transaction.atomic():
                lock_app(self.app)
                row = self.with_external_id(external_id)
                if row is None:
                    given = self._read_with_id(request, external_id, None)
                    return self.create_row(given).id, 201
        self.change_row(row, self._read_with_id(request, external_id, row))
        return row.id, 200

    def with_external_id(self, external_id: str) -> Any:
        return self.get_queryset().filter(external_id=external_id).first()

    def _read_with_id(self, request: Request, external_id: str, row: Any) -> dict[str, Any]:
        given = self.read_given(request, row)
        if given.get("external_id", external_id) != external_id:
            raise Invalid.at("external_id", "Must equal the id in the path.")
        return given | {"external_id": external_id}

    @property
    def is_conditional(self) -> bool:
        return super().is_conditional or self.action == "put_by_external_id"

    @property
    def object_kwargs(self) -> dict[str, Any]:
        """An If-Match is that of the object with the external id: without one, nothing matches."""
        if self.action != "put_by_external_id":
            return super().object_kwargs
        read_values_as(ExternalIdSerializer, self.kwargs)
        row = self.with_external_id(self.kwargs["external_id"])
        if row is None:
            raise PreconditionFailed
        return {self.lookup_url_kwarg or "pk": row.id}


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
