"""Endpoints of groups: owners' bookings with seats."""

import uuid

from django.db.models import F, QuerySet
from rest_framework.response import Response

from bookings.filters import ORDERS, GroupFilter
from bookings.models import Booking
from bookings.records import (
    CURRENT_SEATS,
    BookingRecord,
    booking_record,
    booking_writer,
    with_includes,
)
from bookings.services import held_seats_column
from bookings.views.base import INCLUDE_QUERY, BookingScopedView
from common.api.filters import apply_filters
from common.api.ordering import BOUND, order_query_parameters, read_order
from common.api.search_conditions import exact_id, filter_by_search
from common.api.views import ApiRequest, found_or_404
from common.openapi.components import FLAG
from common.openapi.generator import data_object, describe_endpoint, page_of, search_of

GROUP_SEARCH = {
    "project.id": exact_id("project_id"),
    "resource.id": exact_id("resource_id"),
}
# Includes of a group by default.
ALWAYS = ("attributes", "available_actions", "resource")


class GroupScopedView(BookingScopedView):
    tag = "bookings"
    widget_methods = frozenset({"GET"})

    def groups(self) -> QuerySet[Booking]:
        return self.bookings().filter(max_seats__isnull=False)


class GroupBookingsView(GroupScopedView):
    paginated = True

    @describe_endpoint(
        summary="List groups with free seats",
        response=page_of(BookingRecord),
        description="Bookings of the graph group_owner that are not full, cancelled or completed,"
        " with attributes, available_actions and resource. `start` and `end`: groups that"
        " overlap the range. Absent: no limit. Widget keys see only groups of their projects"
        " that have not begun. With `full=true` also groups without a free seat; these have"
        " `full`: true.",
        query={
            "full": FLAG | {"description": "Also groups without a free seat."},
            "start": BOUND,
            "end": BOUND,
            "search": search_of(
                sorted(GROUP_SEARCH), "project.id:0193a4c2-0000-7000-8000-000000000014"
            ),
            **INCLUDE_QUERY,
            **order_query_parameters(ORDERS),
        },
    )
    def get(self, request: ApiRequest) -> Response:
        includes = self.includes(ALWAYS)
        order = read_order(self.query, ORDERS)
        rows = filter_by_search(self.groups(), self.query.search(GROUP_SEARCH), GROUP_SEARCH)
        values, zone = self.query.values, self.input_zone
        rows = apply_filters(GroupFilter, values, rows, zone=zone, now=self.now)
        rows = self.changed(rows)
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
            with_includes(rows.order_by(*order), includes),
            lambda group: write(group) | ({"full": True} if _is_full(group) else {}),
        )


def _is_full(group: Booking) -> bool:
    """Whether no seat is free, by the column of the list's query."""
    return vars(group)["free_seats"] <= 0


class GroupBookingView(GroupScopedView):
    @describe_endpoint(
        summary="A group",
        description="Also full or completed groups: see state and seats.",
        response=data_object(BookingRecord),
        query=INCLUDE_QUERY,
    )
    def get(self, request: ApiRequest, group_id: uuid.UUID) -> Response:
        includes = self.includes(ALWAYS)
        group = with_includes(self.groups(), includes).filter(id=group_id).first()
        group = found_or_404(group, "Booking")
        return Response({"data": booking_record(group, includes, self.zone)})
