"""Endpoints of groups: owners' bookings with seats."""

import uuid

from django.db.models import F, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from bookings.filters import ORDERS, GroupFilter
from bookings.models import Booking
from bookings.serializers.responses import (
    CURRENT_SEATS,
    BookingSerializer,
    booking_record,
    booking_writer,
    with_includes,
)
from bookings.services import held_seats_column
from bookings.views.base import INCLUDE_QUERY, BookingScopedViewSet
from common.api.search_conditions import exact_id
from common.api.views import found_or_404
from common.openapi.components import FLAG
from common.openapi.generator import parameters

GROUP_SEARCH = {
    "project.id": exact_id("project_id"),
    "resource.id": exact_id("resource_id"),
}
# Includes of a group by default.
ALWAYS = ("attributes", "available_actions", "resource")


def _is_full(group: Booking) -> bool:
    """Whether no seat is free, by the column of the list's query."""
    return vars(group)["free_seats"] <= 0


class GroupViewSet(BookingScopedViewSet):
    """Owners' bookings with seats."""

    serializer_class = BookingSerializer
    lookup_url_kwarg = "group_id"
    tag = "bookings"
    search_fields = GROUP_SEARCH
    search_example = "project.id:0193a4c2-0000-7000-8000-000000000014"
    filterset_class = GroupFilter
    ordering_fields = ORDERS

    def groups(self) -> QuerySet[Booking]:
        return self.bookings().filter(max_seats__isnull=False)

    @extend_schema(
        summary="List groups with free seats",
        description="Bookings of the graph group_owner that are not full, cancelled or completed,"
        " with attributes, available_actions and resource. `start` and `end`: groups that"
        " overlap the range. Absent: no limit. Widget keys see only groups of their projects"
        " that have not begun. With `full=true` also groups without a free seat; these have"
        " `full`: true.",
        parameters=parameters(
            query={
                "full": FLAG | {"description": "Also groups without a free seat."},
                **INCLUDE_QUERY,
            }
        ),
    )
    def list(self, request: Request) -> Response:
        includes = self.includes(ALWAYS)
        rows = self.filter_queryset(self.groups())
        if self.caller.is_widget:
            rows = rows.filter(event__start__gt=self.now)
        rows = rows.filter(completed=False).annotate(
            **CURRENT_SEATS, held_seats=held_seats_column(self.now)
        )
        rows = rows.annotate(free_seats=F("max_seats") - F("current_seats") - F("held_seats"))
        if not self.query.boolean("full"):
            rows = rows.filter(free_seats__gt=0)
        write = booking_writer(includes, self.zone)
        return self.list_page(
            request,
            with_includes(rows, includes),
            lambda group: write(group) | ({"full": True} if _is_full(group) else {}),
        )

    @extend_schema(
        summary="A group",
        description="Also full or completed groups: see state and seats.",
        parameters=parameters(query=INCLUDE_QUERY),
    )
    def retrieve(self, request: Request, group_id: uuid.UUID) -> Response:
        includes = self.includes(ALWAYS)
        group = with_includes(self.groups(), includes).filter(id=group_id).first()
        group = found_or_404(group, "Booking")
        return Response({"data": booking_record(group, includes, self.zone)})
