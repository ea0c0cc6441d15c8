"""Endpoints of deliveries, the delivery log."""

import uuid
from typing import Any

from django.db.models import QuerySet
from rest_framework.response import Response

from apps_config.base_views import TenantView
from apps_config.listing_pages import tally_of
from apps_config.models import ListingTally
from common.api.filters import apply_filters
from common.api.ordering import order_query_parameters
from common.api.views import ApiRequest, found_or_404
from common.openapi.components import ID, text_response
from common.openapi.generator import data_object, describe_endpoint, page_of
from notifications.models import Delivery, Webhook
from notifications.outbox.delivery_list_filters import DeliveryFilter
from notifications.outbox.redeliver import redeliver
from notifications.records import (
    DeliveryRecord,
    whole_delivery_record,
    with_detail_rows,
    with_list_rows,
)
from notifications.webhooks.views import WebhookScopedView

ORDERS = {"created_at": "id", "updated_at": "updated_at"}  # ids are in the order of creation
FILTERS = {
    **order_query_parameters(ORDERS),
    "booking": ID | {"description": "Only deliveries of this booking."},
    "webhook": ID | {"description": "Only deliveries of this webhook."},
    "type": text_response(
        "Only e-mails, only calls, or only calendar writes.", enum=list(Delivery.TYPES)
    ),
    "state": text_response("Only deliveries in this state.", enum=list(Delivery.STATES)),
}


class DeliveryScopedView(TenantView):
    def deliveries(self) -> QuerySet[Delivery]:
        return Delivery.objects.filter(app=self.app)

    def find_delivery(self, delivery_id: uuid.UUID) -> Delivery:
        return found_or_404(
            with_detail_rows(self.deliveries()).filter(id=delivery_id).first(), "Delivery"
        )

    def answer_list(self, request: ApiRequest, webhook: Webhook | None = None) -> Response:
        rows = self.deliveries() if webhook is None else self.deliveries().filter(webhook=webhook)
        values, zone = self.query.values, self.input_zone
        rows = apply_filters(DeliveryFilter, values, rows, zone=zone, now=self.now)
        return self.list_page(
            request,
            self.filter_and_order(with_list_rows(rows), ORDERS),
            DeliveryRecord.of,
            tally=self._tally(webhook),
        )

    def _tally(self, webhook: Webhook | None) -> QuerySet[ListingTally] | None:
        """Return the tally that counts the deliveries of the query; None if there is none."""
        values = self.query.values
        if values.keys() & {"booking", "state", "updated_since"}:
            return None
        types = [values["type"]] if "type" in values else Delivery.TYPES
        webhooks = {uuid.UUID(values["webhook"])} if "webhook" in values else set()
        webhooks |= {webhook.id} if webhook else set()
        if len(webhooks) > 1:
            return None
        counted: dict[str, Any] = {}
        if webhooks:
            counted["part__in"] = [f"{kind}:{each.hex}" for kind in types for each in webhooks]
        elif "type" in values:
            counted["part__startswith"] = f"{values['type']}:"
        return tally_of(self.app, ListingTally.DELIVERIES, **counted)


class DeliveriesView(DeliveryScopedView):
    paginated = True

    @describe_endpoint(
        summary="List deliveries",
        description="All e-mails, calls and calendar writes, newest first. All filters must match.",
        response=page_of(DeliveryRecord),
        query=FILTERS,
    )
    def get(self, request: ApiRequest) -> Response:
        return self.answer_list(request)


class WebhookDeliveriesView(DeliveryScopedView, WebhookScopedView):
    paginated = True

    @describe_endpoint(
        summary="List the deliveries of a webhook",
        description="Newest first, with the same filters as all deliveries.",
        response=page_of(DeliveryRecord),
        query=FILTERS,
    )
    def get(self, request: ApiRequest, webhook_id: uuid.UUID) -> Response:
        return self.answer_list(request, self.find_webhook(webhook_id))


class DeliveryView(DeliveryScopedView):
    @describe_endpoint(
        summary="Get a delivery, with the body of the call",
        response=data_object(DeliveryRecord),
        examples={"a call": {"data": DeliveryRecord.example("payload")}},
    )
    def get(self, request: ApiRequest, delivery_id: uuid.UUID) -> Response:
        return Response({"data": whole_delivery_record(self.find_delivery(delivery_id))})


class RedeliverView(DeliveryScopedView):
    operation_ids = {"POST": "sendDeliveryAgain"}

    @describe_endpoint(
        summary="Send a delivery again",
        description="Sends the delivery now, with the same id and the full number of attempts. A"
        " delivery that is being sent does not change. 409 `outdated` for an e-mail or"
        " reminder whose booking was moved, cancelled or deleted, and for a disabled or"
        " deleted webhook. A webhook call carries the logged body; a calendar write carries"
        " the current state of the booking.",
        response=data_object(DeliveryRecord),
        examples={
            "on its way": {
                "data": DeliveryRecord.example(
                    "payload",
                    state="scheduled",
                    due_at="2026-11-20T11:00:00+0000",
                    next_at="2026-11-20T11:00:00+0000",
                )
            }
        },
    )
    def post(self, request: ApiRequest, delivery_id: uuid.UUID) -> Response:
        redeliver(self.find_delivery(delivery_id), now=self.now)
        return Response({"data": whole_delivery_record(self.find_delivery(delivery_id))})
