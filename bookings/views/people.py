"""Endpoints of the people who book: their list, what is held about one, and its erasure."""

from typing import Any

from django.http import StreamingHttpResponse
from rest_framework.response import Response

from apps_config.endpoints import TenantView
from bookings.models import Booking
from bookings.people import (
    CUSTOMER_SEARCH,
    PEOPLE_ORDERS,
    Person,
    erase_person,
    list_people,
    write_export,
)
from bookings.schemas import ERASED, EXPORT, PERSON
from bookings.serializers import AddressSerializer
from scheduling.api.bodies import read_body_as, read_values_as
from scheduling.api.components import text_of
from scheduling.api.ordering import ORDER_NAMES, UPDATED_SINCE, order_query, read_order
from scheduling.api.pagination import PAGE_NAMES, Page, envelope
from scheduling.api.schema import described, one, page_of, search_of


class CustomersView(TenantView):
    paginated = True
    query_names = {"GET": (*PAGE_NAMES, *ORDER_NAMES, "search", "updated_since")}

    @described(
        summary="List customers",
        description="One line for each e-mail address, in whatever case it was written: who booked"
        " last comes first, then by the address. Name, phone and time zone are those of the newest"
        " booking. A line that one of its bookings matches counts all of them; hidden bookings"
        " and customers whose data was erased do not count.",
        response=page_of(PERSON),
        query={
            "search": search_of(sorted(CUSTOMER_SEARCH), "email:*@example.com"),
            **order_query(PEOPLE_ORDERS),
            "updated_since": UPDATED_SINCE,
        },
    )
    def get(self, request: Any) -> Response:
        page = Page.read(request)
        terms = self.query.search(CUSTOMER_SEARCH)
        order, _ = read_order(self.query, PEOPLE_ORDERS, "last_booking_at")
        changes = self.changed(Booking.objects.for_app(self.app))
        changes = changes if self.complete_until else None
        total, records = list_people(self.app, terms, page, self.now, order=order, changes=changes)
        return Response(envelope(request, page, total, records))


class CustomerExportView(TenantView):
    query_names = {"GET": ("email",)}

    @described(
        summary="All that is held about an address",
        description="Bookings whole, with their history; other events that name the address;"
        " mails to the person and to the owner, and calls. Of bookings that the person shares"
        " with others, what the others gave stays out. Hidden bookings are there too. The answer"
        " is written while it is read, so it may be long. 404 where nothing is held.",
        response=one(EXPORT),
        query={
            "email": text_of(
                "In any case.", format="email", required=True, examples=["marty@example.com"]
            )
        },
    )
    def get(self, request: Any) -> StreamingHttpResponse:
        given = read_values_as(AddressSerializer, self.query.values)
        pieces = write_export(Person(self.app, given["email"]), zone=self.zone)
        return StreamingHttpResponse(pieces, content_type="application/json")


class CustomerEraseView(TenantView):
    @described(
        summary="Erase a person's data",
        description="Empties names, addresses, numbers, meta, messages, the bodies and payloads of"
        " mails and calls, and answers that they got; times and states stay, and so do the"
        " bookings: cancel those first that should not take place. What would still carry the"
        " person is cancelled. It can't be undone; a second call answers zeros, as an unknown"
        " address does. Counted are bookings, deliveries and log entries that lost anything.",
        request=AddressSerializer,
        response=one(ERASED),
        request_examples={"a person": {"email": "marty@example.com"}},
    )
    def post(self, request: Any) -> Response:
        given = read_body_as(AddressSerializer, request)
        counts = erase_person(app=self.app, email=given["email"], now=self.now)
        return Response({"data": counts})
