"""Endpoints of groups: owners' bookings in which seats can be taken."""

import uuid
from typing import Any

from django.db.models import F
from rest_framework.response import Response

from availability.filters import apply_search, by_id
from bookings.filters import GROUP_FILTER_NAMES, ORDERS, GroupFilter
from bookings.models import Booking
from bookings.records import CURRENT_SEATS, booking_record, with_includes
from bookings.schemas import BOOKING
from bookings.views.scoped import INCLUDE_QUERY, BookingScopedView
from scheduling.api.errors import NotFound
from scheduling.api.filters import apply_filters
from scheduling.api.ordering import BOUND, ORDER_NAMES, UPDATED_SINCE, order_query, read_order
from scheduling.api.pagination import PAGE_NAMES
from scheduling.api.schema import described, one, page_of, search_of

GROUP_SEARCH = {"project.id": by_id("project_id"), "resource.id": by_id("resource_id")}
# What a group carries unasked.
ALWAYS = ("attributes", "available_actions", "resource")


class GroupScopedView(BookingScopedView):
    tag = "bookings"
    widget_methods = frozenset({"GET"})

    def groups(self) -> Any:
        return self.bookings().filter(max_seats__isnull=False)


LISTING_NAMES = ("search", "include", "updated_since", *ORDER_NAMES)


class GroupsView(GroupScopedView):
    paginated = True
    query_names = {"GET": (*PAGE_NAMES, *GROUP_FILTER_NAMES, *LISTING_NAMES)}

    @described(
        summary="List groups with seats left",
        response=page_of(BOOKING),
        description="Bookings of the graph group_owner that are neither full nor cancelled nor"
        " over; with attributes, available_actions and resource. `start` and `end`: those that"
        " overlap the range, each bound open if absent. A widget key does not see those that have"
        " begun.",
        query={
            "start": BOUND,
            "end": BOUND,
            "updated_since": UPDATED_SINCE,
            "search": search_of(
                sorted(GROUP_SEARCH), "project.id:0193a4c2-0000-7000-8000-000000000014"
            ),
            **INCLUDE_QUERY,
            **order_query(ORDERS),
        },
    )
    def get(self, request: Any) -> Response:
        includes = self.includes(ALWAYS)
        order = read_order(self.query, ORDERS)
        rows = apply_search(self.groups(), self.query.search(GROUP_SEARCH), GROUP_SEARCH)
        values, zone = self.query.values, self.input_zone
        rows = apply_filters(GroupFilter, values, rows, zone=zone, now=self.now)
        rows = self.changed(rows)
        if self.caller.is_widget:
            rows = rows.filter(event__start__gt=self.now)
        rows = rows.filter(completed=False).annotate(**CURRENT_SEATS)
        rows = rows.filter(current_seats__lt=F("max_seats")).order_by(*order)
        return self.list_page(
            request,
            with_includes(rows, includes),
            lambda group: booking_record(group, includes, self.zone),
        )


class GroupView(GroupScopedView):
    query_names = {"GET": ("include",)}

    @described(
        summary="A group",
        description="Also one that is full or over: its state and its seats say so.",
        response=one(BOOKING),
        query=INCLUDE_QUERY,
    )
    def get(self, request: Any, group_id: uuid.UUID) -> Response:
        includes = self.includes(ALWAYS)
        group: Booking | None = with_includes(self.groups(), includes).filter(id=group_id).first()
        if group is None:
            raise NotFound("Booking")
        return Response({"data": booking_record(group, includes, self.zone)})
