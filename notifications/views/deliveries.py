"""Endpoints of deliveries: the log of what has left, and what is still to leave."""

import uuid
from typing import Any

from rest_framework.response import Response

from apps_config.endpoints import TenantView
from availability.views.scoped import found
from notifications.filters import FILTER_NAMES, DeliveryFilter
from notifications.models import Delivery
from notifications.records import delivery_record, listed, whole, whole_delivery_record
from notifications.schemas import DELIVERY, SENT_AGAIN, WHOLE_DELIVERY
from notifications.services import redeliver
from notifications.views.webhooks import WebhookScopedView
from scheduling.api.components import ID, text_of
from scheduling.api.filters import apply_filters
from scheduling.api.ordering import ORDER_NAMES, order_query, read_order
from scheduling.api.pagination import PAGE_NAMES
from scheduling.api.schema import described, one, page_of

LISTING = (*PAGE_NAMES, *FILTER_NAMES, *ORDER_NAMES)
ORDERS = {"created_at": "id"}  # ids are in the order of their making
FILTERS = {
    **order_query(ORDERS),
    "booking": ID | {"description": "Only deliveries of this booking."},
    "webhook": ID | {"description": "Only deliveries of this webhook."},
    "type": text_of(
        "Only mails, only calls, or only writes to connected calendars.", enum=list(Delivery.TYPES)
    ),
    "state": text_of("Only deliveries in this state.", enum=list(Delivery.STATES)),
}


class DeliveryScopedView(TenantView):
    def deliveries(self) -> Any:
        return Delivery.objects.filter(app=self.app)

    def find_delivery(self, delivery_id: uuid.UUID) -> Delivery:
        return found(whole(self.deliveries()).filter(id=delivery_id).first(), "Delivery")

    def answer_listing(self, request: Any, rows: Any) -> Response:
        values, zone = self.query.values, self.input_zone
        order, _ = read_order(self.query, ORDERS)
        rows = apply_filters(DeliveryFilter, values, rows, zone=zone, now=self.now)
        return self.list_page(request, listed(rows).order_by(order), delivery_record)


class DeliveriesView(DeliveryScopedView):
    paginated = True
    query_names = {"GET": LISTING}

    @described(
        summary="List deliveries",
        description="Every mail, every call and every write to a connected calendar, newest first."
        " Filters narrow together.",
        response=page_of(DELIVERY),
        query=FILTERS,
    )
    def get(self, request: Any) -> Response:
        return self.answer_listing(request, self.deliveries())


class WebhookDeliveriesView(DeliveryScopedView, WebhookScopedView):
    paginated = True
    query_names = {"GET": LISTING}

    @described(
        summary="List the deliveries of a webhook",
        description="Newest first, with the same filters as all deliveries.",
        response=page_of(DELIVERY),
        query=FILTERS,
    )
    def get(self, request: Any, webhook_id: uuid.UUID) -> Response:
        webhook = self.find_webhook(webhook_id)
        return self.answer_listing(request, self.deliveries().filter(webhook=webhook))


class DeliveryView(DeliveryScopedView):
    @described(
        summary="A delivery, with the body of the call",
        response=one(DELIVERY),
        examples={"a call": WHOLE_DELIVERY},
    )
    def get(self, request: Any, delivery_id: uuid.UUID) -> Response:
        return Response({"data": whole_delivery_record(self.find_delivery(delivery_id))})


class RedeliverView(DeliveryScopedView):
    @described(
        summary="Send a delivery again",
        description="Now, under the same id, with as many tries as a new one. One that is being"
        " sent stays as it is. 409 `outdated` for a mail or a reminder that no longer holds (the"
        " booking was moved, called off or deleted since), and for a webhook that is disabled or"
        " deleted. A call to a webhook carries the body that is logged; a calendar gets the booking"
        " as it is now.",
        response=one(DELIVERY),
        examples={"on its way": SENT_AGAIN},
    )
    def post(self, request: Any, delivery_id: uuid.UUID) -> Response:
        redeliver(self.find_delivery(delivery_id), now=self.now)
        return Response({"data": whole_delivery_record(self.find_delivery(delivery_id))})
