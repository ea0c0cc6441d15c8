"""Endpoints of customers: list, export, erase."""

from typing import cast

import django_filters
from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from apps_config.models import ListingTally
from apps_config.pagination import EnvelopePagination, tally_of
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
from bookings.serializers.bodies import AddressSerializer, CustomerNoteSerializer
from bookings.serializers.customers import ErasedSerializer, PersonSerializer
from bookings.serializers.responses import PersonExportSerializer
from bookings.services.customer_notes import set_customer_note
from common.api.ordering import read_order
from common.api.query import SearchTerm
from common.api.serializers import read_body_as, read_values_as
from common.errors import Invalid
from common.openapi.components import text_response
from common.openapi.generator import named_examples, parameters


class CustomerFilter(django_filters.FilterSet):
    """The filters of the list, which reads them itself: one entry stands for several rows."""

    external_id = django_filters.CharFilter(
        help_text="Only the customers with this external id, in any of their bookings."
    )


class CustomerViewSet(TenantViewSet):
    serializer_class = PersonSerializer
    filterset_class = CustomerFilter
    search_fields = CUSTOMER_SEARCH
    search_example = "email:*@example.com"
    ordering_fields = PEOPLE_ORDERS

    @extend_schema(
        summary="List customers",
        description="One entry per e-mail address, however it is typed, ordered by the"
        " last booking and then by the address. Name, phone and time zone are those of the"
        " newest booking. If one booking of a person matches, the entry counts all bookings"
        " of this person. Deleted bookings and erased customers do not count.",
    )
    def list(self, request: Request) -> Response:
        terms = [*self.query.search(CUSTOMER_SEARCH)]
        external_id = self.query.text("external_id")
        if external_id == "":
            raise Invalid.at("external_id", "May not be empty.")
        if external_id is not None:
            terms.append(SearchTerm("external_id", external_id, False, False))
        order, _ = read_order(self.query, PEOPLE_ORDERS, "last_booking_at")
        changed = self.changed(Booking.objects.for_app(self.app))
        rows = search_customers(self.app, terms, changed if self.complete_until else None)
        is_filtered = terms or self.complete_until
        tally = None if is_filtered else tally_of(self.app, ListingTally.CUSTOMERS)
        paginator = cast(EnvelopePagination, self.paginator)
        people = rows.order_by(order, "address")
        found = paginator.paginate_queryset(people, request, self, tally=tally)
        return paginator.get_paginated_response(customer_records(found, self.now))

    @extend_schema(
        operation_id="exportCustomer",
        summary="Export all data about an e-mail address",
        description="Complete bookings with their history, including deleted bookings; other"
        " events that contain the address; e-mails to the person and to the owner,"
        " and calls. The data of other customers of the same bookings is omitted. The"
        " response is streamed and can be long. 404 if nothing is stored.",
        responses={200: PersonExportSerializer},
        parameters=parameters(
            query={
                "email": text_response(
                    "In any letter case; the domain in Unicode or in ASCII.",
                    format="email",
                    required=True,
                    examples=["marty@example.com"],
                )
            }
        ),
    )
    @action(detail=False)
    def export(self, request: Request) -> StreamingHttpResponse:
        given = read_values_as(AddressSerializer, self.query.values)
        pieces = write_export(Person(self.app, given["email"]), zone=self.zone)
        return StreamingHttpResponse(pieces, content_type="application/json")

    @extend_schema(
        operation_id="setCustomerNote",
        summary="Change the internal note on a customer",
        description="The note belongs to the e-mail address. An empty one is removed. 404 if no"
        " booking has the address.",
        request=CustomerNoteSerializer,
        responses={204: None},
        examples=named_examples(
            request={"a note": {"email": "marty@example.com", "note": "Prefers mornings."}}
        ),
    )
    @action(detail=False, methods=["put"], url_path="note")
    def set_note(self, request: Request) -> Response:
        given = read_body_as(CustomerNoteSerializer, request)
        set_customer_note(app=self.app, email=given["email"], note=given["note"])
        return Response(status=204)

    @extend_schema(
        summary="Erase a person's data",
        description="Empties names, addresses, numbers, meta, messages, the content of e-mails"
        " and calls, and the responses of receivers. Bookings, times and states stay: cancel"
        " future bookings first. Unsent deliveries with the person's data are cancelled. This"
        " can't be undone. The response counts the changed bookings, deliveries and log"
        " entries; a second call and an unknown address return zeros.",
        request=AddressSerializer,
        responses={200: ErasedSerializer},
        examples=named_examples(request={"a person": {"email": "marty@example.com"}}),
    )
    @action(detail=False, methods=["post"])
    def erase(self, request: Request) -> Response:
        given = read_body_as(AddressSerializer, request)
        counts = erase_person(app=self.app, email=given["email"], now=self.now)
        return Response({"data": counts})
