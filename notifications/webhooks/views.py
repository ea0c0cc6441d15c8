"""Endpoints of webhooks."""

import uuid

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from common.api.serializers import read_body_as
from common.openapi.generator import named_examples
from notifications.models import Delivery, Webhook
from notifications.outbox.serializers import (
    DeliverySerializer,
    whole_delivery_record,
    with_detail_rows,
)
from notifications.webhooks.serializers import WebhookSerializer
from notifications.webhooks.services import (
    MAX_WEBHOOKS,
    change_webhook,
    create_webhook,
    delete_webhook,
    rotate_secret,
    send_test,
)

WEBHOOK_EXAMPLE = WebhookSerializer.example()
WITH_SECRET = {"with its secret": {"data": WebhookSerializer.example("secret")}}


class WebhookViewSet(TenantViewSet):
    serializer_class = WebhookSerializer
    lookup_url_kwarg = "webhook_id"
    refuses_unknown_keys = True
    secret_actions = {"create": ("secret",), "rotate": ("secret",)}
    pagination_class = None
    ordering_fields = {name: name for name in ("created_at", "updated_at", "url")}

    def get_queryset(self) -> QuerySet[Webhook]:
        return Webhook.objects.for_app(self.app)

    @extend_schema(
        summary="List webhooks",
        description="All webhooks, newest first.",
    )
    def list(self, request: Request) -> Response:
        rows = self.filter_queryset(self.get_queryset())
        return Response({"data": [WebhookSerializer.render(webhook) for webhook in rows]})

    @extend_schema(
        summary="Create a webhook",
        description="The service calls the URL at every change of a matching booking, signed as in"
        " Standard Webhooks with the `secret`, which only this response contains. The URL must be"
        f" public. An app has at most {MAX_WEBHOOKS} webhooks.",
        examples=named_examples(
            request={
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
            response=WITH_SECRET,
        ),
    )
    def create(self, request: Request) -> Response:
        given = read_body_as(WebhookSerializer, request)
        webhook, secret = create_webhook(app=self.app, given=given)
        return Response(
            {"data": WebhookSerializer.render(webhook) | {"secret": secret}}, status=201
        )

    @extend_schema(summary="A webhook")
    def retrieve(self, request: Request, webhook_id: uuid.UUID) -> Response:
        return Response({"data": WebhookSerializer.render(self.get_object())})

    @extend_schema(
        summary="Change a webhook",
        description="`active: true` enables a disabled webhook and clears `disabled_reason` and"
        " its failures.",
        examples=named_examples(
            request={
                "enable it again": {"active": True},
                "other changes": {"graph": None, "states": ["confirmed", "cancelled"]},
            }
        ),
    )
    def update(self, request: Request, webhook_id: uuid.UUID) -> Response:
        given = read_body_as(WebhookSerializer, request, partial=True)
        webhook = change_webhook(self.get_object(), given)
        return Response({"data": WebhookSerializer.render(webhook)})

    @extend_schema(
        summary="Delete a webhook",
        description="Scheduled calls are skipped. Its deliveries stay in the log.",
    )
    def destroy(self, request: Request, webhook_id: uuid.UUID) -> Response:
        delete_webhook(self.get_object(), now=self.now)
        return Response(status=204)

    @extend_schema(
        operation_id="rotateWebhookSecret",
        summary="Rotate the secret of a webhook",
        description="Calls are signed with both secrets for a day. Only this response contains"
        " the new secret.",
        responses={200: WebhookSerializer},
        examples=named_examples(response=WITH_SECRET),
    )
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, webhook_id: uuid.UUID) -> Response:
        webhook, secret = rotate_secret(self.get_object(), now=self.now)
        return Response({"data": WebhookSerializer.render(webhook) | {"secret": secret}})

    @extend_schema(
        summary="Send a test call",
        description="A delivery of the kind `test`. Its body is the app's newest booking, or an"
        " example booking."
        " For a disabled webhook, the delivery is skipped.",
        responses={201: DeliverySerializer},
        examples=named_examples(
            response={
                "on its way": {
                    "data": DeliverySerializer.example(
                        "payload",
                        kind="test",
                        state="scheduled",
                        next_at="2026-11-20T09:30:00+0000",
                        attempts=[],
                    )
                }
            }
        ),
    )
    @action(detail=True, methods=["post"])
    def test(self, request: Request, webhook_id: uuid.UUID) -> Response:
        sent = send_test(self.get_object(), now=self.now)
        delivery = with_detail_rows(Delivery.objects.filter(id=sent.id)).get()
        record = whole_delivery_record(delivery, links=self.caller.gets_customer_links)
        return Response({"data": record}, status=201)
