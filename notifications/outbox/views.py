"""Endpoints of deliveries, the delivery log."""

import uuid
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from apps_config.models import ListingTally
from apps_config.pagination import tally_of
from common.api.views import found_or_404
from common.openapi.generator import named_examples
from notifications.models import Delivery, Webhook
from notifications.outbox.delivery_list_filters import DeliveryFilter
from notifications.outbox.redeliver import redeliver
from notifications.outbox.serializers import (
    DeliverySerializer,
    whole_delivery_record,
    with_detail_rows,
    with_list_rows,
)

ORDERS = {"created_at": "id", "updated_at": "updated_at"}  # ids are in the order of creation


class DeliveryListViewSet(TenantViewSet):
    """What the list of all deliveries and that of a webhook have in common."""

    filterset_class = DeliveryFilter
    ordering_fields = ORDERS

    def get_queryset(self) -> QuerySet[Delivery]:
        return Delivery.objects.filter(app=self.app)

    def answer_list(self, request: Request, webhook: Webhook | None = None) -> Response:
        rows = (
            self.get_queryset() if webhook is None else self.get_queryset().filter(webhook=webhook)
        )
        rows = self.filter_queryset(with_list_rows(rows))
        values = self.query.values
        has_webhook = webhook is not None or "webhook" in values
        if has_webhook and values.get("type", Delivery.WEBHOOK) != Delivery.WEBHOOK:
            rows = rows.none()  # the database would read all calls of the webhook to find that out
        return self.list_page(request, rows, DeliverySerializer.render, tally=self._tally(webhook))

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


class DeliveryViewSet(DeliveryListViewSet):
    serializer_class = DeliverySerializer
    lookup_url_kwarg = "delivery_id"

    @extend_schema(
        summary="List deliveries",
        description="All e-mails, calls and calendar writes, newest first. All filters must match.",
    )
    def list(self, request: Request) -> Response:
        return self.answer_list(request)

    @extend_schema(
        summary="Get a delivery, with the body of the call",
        examples=named_examples(
            response={"a call": {"data": DeliverySerializer.example("payload")}}
        ),
    )
    def retrieve(self, request: Request, delivery_id: uuid.UUID) -> Response:
        return self.answer_whole(delivery_id)

    @extend_schema(
        operation_id="sendDeliveryAgain",
        summary="Send a delivery again",
        description="Sends the delivery now, with the same id and the full number of attempts. A"
        " delivery that is being sent does not change. 409 `outdated` for an e-mail or"
        " reminder whose booking was moved, cancelled or deleted, and for a disabled or"
        " deleted webhook. A webhook call carries the logged body; a calendar write carries"
        " the current state of the booking.",
        responses={200: DeliverySerializer},
        examples=named_examples(
            response={
                "on its way": {
                    "data": DeliverySerializer.example(
                        "payload",
                        state="scheduled",
                        due_at="2026-11-20T11:00:00+0000",
                        next_at="2026-11-20T11:00:00+0000",
                    )
                }
            }
        ),
    )
    @action(detail=True, methods=["post"])
    def redeliver(self, request: Request, delivery_id: uuid.UUID) -> Response:
        redeliver(self.find_delivery(delivery_id), now=self.now)
        return self.answer_whole(delivery_id)

    def answer_whole(self, delivery_id: uuid.UUID) -> Response:
        delivery = self.find_delivery(delivery_id)
        record = whole_delivery_record(delivery, links=self.caller.gets_customer_links)
        return Response({"data": record})

    def find_delivery(self, delivery_id: uuid.UUID) -> Delivery:
        return found_or_404(
            with_detail_rows(self.get_queryset()).filter(id=delivery_id).first(), "Delivery"
        )


class WebhookDeliveryViewSet(DeliveryListViewSet):
    """The deliveries of a webhook."""

    serializer_class = DeliverySerializer

    @extend_schema(
        summary="List the deliveries of a webhook",
        description="Newest first, with the same filters as all deliveries.",
    )
    def list(self, request: Request, webhook_id: uuid.UUID) -> Response:
        webhook = Webhook.objects.for_app(self.app).filter(id=webhook_id).first()
        return self.answer_list(request, found_or_404(webhook, "Webhook"))
