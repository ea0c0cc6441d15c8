"""Endpoints of webhooks."""

import uuid

from rest_framework.response import Response

from apps_config.base_views import TenantView
from common.api.ordering import order_query_parameters
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest, found_or_404
from common.openapi.generator import data_list, data_object, describe_endpoint
from notifications.models import Delivery, Webhook
from notifications.records import (
    DeliveryRecord,
    WebhookRecord,
    whole_delivery_record,
    with_detail_rows,
)
from notifications.webhooks.serializers import NewWebhookSerializer, WebhookSerializer
from notifications.webhooks.services import (
    MAX_WEBHOOKS,
    change_webhook,
    create_webhook,
    delete_webhook,
    rotate_secret,
    send_test,
)

WEBHOOK_EXAMPLE = WebhookRecord.example()
WITH_SECRET = {"with its secret": {"data": WebhookRecord.example("secret")}}


class WebhookScopedView(TenantView):
    refuses_unknown_keys = True

    def find_webhook(self, webhook_id: uuid.UUID) -> Webhook:
        rows = Webhook.objects.for_app(self.app).filter(id=webhook_id)
        return found_or_404(rows.first(), "Webhook")


ORDERS = {name: name for name in ("created_at", "updated_at", "url")}


class WebhooksView(TenantView):
    refuses_unknown_keys = True
    secret_methods = frozenset({"POST"})

    @describe_endpoint(
        summary="List webhooks",
        description="All webhooks, newest first.",
        response=data_list(WebhookRecord),
        query=order_query_parameters(ORDERS),
    )
    def get(self, request: ApiRequest) -> Response:
        rows = self.filter_and_order(Webhook.objects.for_app(self.app), ORDERS)
        return Response({"data": [WebhookRecord.of(webhook) for webhook in rows]})

    @describe_endpoint(
        summary="Create a webhook",
        description="The service calls the URL at every change of a matching booking, signed as in"
        " Standard Webhooks with the `secret`, which only this response contains. The URL must be"
        f" public. An app has at most {MAX_WEBHOOKS} webhooks.",
        request=NewWebhookSerializer,
        response=data_object(WebhookRecord),
        status=201,
        examples=WITH_SECRET,
        request_examples={
            "whatever happens": {"url": WEBHOOK_EXAMPLE["url"]},
            "some changes": {
                "url": WEBHOOK_EXAMPLE["url"],
                "method": "put",
                "graph": "confirm_decline",
                "states": ["tentative", "confirmed", "rescheduled"],
                "expected_response_code": 202,
                "description": "The owner's phone",
            },
        },
    )
    def post(self, request: ApiRequest) -> Response:
        given = read_body_as(NewWebhookSerializer, request)
        webhook, secret = create_webhook(app=self.app, given=given)
        return Response({"data": WebhookRecord.of(webhook) | {"secret": secret}}, status=201)


class WebhookView(WebhookScopedView):
    @describe_endpoint(summary="A webhook", response=data_object(WebhookRecord))
    def get(self, request: ApiRequest, webhook_id: uuid.UUID) -> Response:
        return Response({"data": WebhookRecord.of(self.find_webhook(webhook_id))})

    @describe_endpoint(
        summary="Change a webhook",
        description="`active: true` enables a disabled webhook and clears `disabled_reason` and"
        " its failures.",
        request=WebhookSerializer,
        response=data_object(WebhookRecord),
        request_examples={
            "enable it again": {"active": True},
            "other changes": {"graph": None, "states": ["confirmed", "cancelled"]},
        },
    )
    def put(self, request: ApiRequest, webhook_id: uuid.UUID) -> Response:
        given = read_body_as(WebhookSerializer, request)
        webhook = change_webhook(self.find_webhook(webhook_id), given)
        return Response({"data": WebhookRecord.of(webhook)})

    @describe_endpoint(
        summary="Delete a webhook",
        description="Scheduled calls are skipped. Its deliveries stay in the log.",
        status=204,
    )
    def delete(self, request: ApiRequest, webhook_id: uuid.UUID) -> Response:
        delete_webhook(self.find_webhook(webhook_id), now=self.now)
        return Response(status=204)


class RotateView(WebhookScopedView):
    operation_ids = {"POST": "rotateWebhookSecret"}
    secret_methods = frozenset({"POST"})

    @describe_endpoint(
        summary="Rotate the secret of a webhook",
        description="Calls are signed with both secrets for a day. Only this response contains"
        " the new secret.",
        response=data_object(WebhookRecord),
        examples=WITH_SECRET,
    )
    def post(self, request: ApiRequest, webhook_id: uuid.UUID) -> Response:
        webhook, secret = rotate_secret(self.find_webhook(webhook_id), now=self.now)
        return Response({"data": WebhookRecord.of(webhook) | {"secret": secret}})


class TestDeliveryView(WebhookScopedView):
    @describe_endpoint(
        summary="Send a test call",
        description="A delivery of the kind `test`. Its body is the app's newest booking, or an"
        " example booking."
        " For a disabled webhook, the delivery is skipped.",
        response=data_object(DeliveryRecord),
        status=201,
        examples={
            "on its way": {
                "data": DeliveryRecord.example(
                    "payload",
                    kind="test",
                    state="scheduled",
                    next_at="2026-11-20T09:30:00+0000",
                    attempts=[],
                )
            }
        },
    )
    def post(self, request: ApiRequest, webhook_id: uuid.UUID) -> Response:
        sent = send_test(self.find_webhook(webhook_id), now=self.now)
        delivery = with_detail_rows(Delivery.objects.filter(id=sent.id)).get()
        return Response({"data": whole_delivery_record(delivery)}, status=201)
