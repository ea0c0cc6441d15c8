"""Endpoints of customers: list, export, erase."""

from django.http import StreamingHttpResponse
from rest_framework.response import Response

from apps_config.base_views import TenantView
from apps_config.listing_pages import fetch_page, tally_of
from apps_config.models import ListingTally
from bookings.models import Booking
from bookings.privacy import (
    CUSTOMER_SEARCH,
    PEOPLE_ORDERS,
    Person,
    customer_records,
    erase_person,
    search_customers,
    write_export,
)
from bookings.records import ErasedRecord, PersonExportRecord, PersonRecord
from bookings.serializers import AddressSerializer
from common.api.ordering import order_query_parameters, read_order
from common.api.pagination import Page, list_envelope
from common.api.validated_input import read_body_as, read_values_as
from common.api.views import ApiRequest
from common.openapi.components import text_response
from common.openapi.generator import data_object, describe_endpoint, page_of, search_of


class CustomersView(TenantView):
    paginated = True

    @describe_endpoint(
        summary="List customers",
        description="One entry per e-mail address, however it is typed, ordered by the"
        " last booking and then by the address. Name, phone and time zone are those of the"
        " newest booking. If one booking of a person matches, the entry counts all bookings"
        " of this person. Deleted bookings and erased customers do not count.",
        response=page_of(PersonRecord),
        query={
            "search": search_of(sorted(CUSTOMER_SEARCH), "email:*@example.com"),
            **order_query_parameters(PEOPLE_ORDERS),
        },
    )
    def get(self, request: ApiRequest) -> Response:
        page = Page.read(request)
        terms = self.query.search(CUSTOMER_SEARCH)
        order, _ = read_order(self.query, PEOPLE_ORDERS, "last_booking_at")
        changed = self.changed(Booking.objects.for_app(self.app))
        rows = search_customers(self.app, terms, changed if self.complete_until else None)
        is_filtered = terms or self.complete_until
        tally = None if is_filtered else tally_of(self.app, ListingTally.CUSTOMERS)
        total, found = fetch_page(page, rows.order_by(order, "address"), tally=tally)
        return Response(list_envelope(request, page, total, customer_records(found, self.now)))


class CustomerExportView(TenantView):
    operation_ids = {"GET": "exportCustomer"}

    @describe_endpoint(
        summary="Export all data about an e-mail address",
        description="Complete bookings with their history, including deleted bookings; other"
        " events that contain the address; e-mails to the person and to the owner,"
        " and calls. The data of other customers of the same bookings is omitted. The"
        " response is streamed and can be long. 404 if nothing is stored.",
        response=data_object(PersonExportRecord),
        query={
            "email": text_response(
                "In any letter case; the domain in Unicode or in ASCII.",
                format="email",
                required=True,
                examples=["marty@example.com"],
            )
        },
    )
    def get(self, request: ApiRequest) -> StreamingHttpResponse:
        given = read_values_as(AddressSerializer, self.query.values)
        pieces = write_export(Person(self.app, given["email"]), zone=self.zone)
        return StreamingHttpResponse(pieces, content_type="application/json")


class CustomerEraseView(TenantView):
    @describe_endpoint(
        summary="Erase a person's data",
        description="Empties names, addresses, numbers, meta, messages, the content of e-mails"
        " and calls, and the responses of receivers. Bookings, times and states stay: cancel"
        " future bookings first. Unsent deliveries with the person's data are cancelled. This"
        " can't be undone. The response counts the changed bookings, deliveries and log"
        " entries; a second call and an unknown address return zeros.",
        request=AddressSerializer,
        response=data_object(ErasedRecord),
        request_examples={"a person": {"email": "marty@example.com"}},
    )
    def post(self, request: ApiRequest) -> Response:
        given = read_body_as(AddressSerializer, request)
        counts = erase_person(app=self.app, email=given["email"], now=self.now)
        return Response({"data": counts})
