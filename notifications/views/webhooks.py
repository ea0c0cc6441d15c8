"""Endpoints of webhooks."""

import uuid
from typing import Any

from rest_framework.response import Response

from apps_config.endpoints import TenantView
from availability.views.scoped import found
from notifications.models import Webhook
from notifications.records import webhook_record, whole_delivery_record
from notifications.schemas import (
    DELIVERY,
    TEST_DELIVERY,
    WEBHOOK,
    WEBHOOK_EXAMPLE,
    WEBHOOK_WITH_SECRET,
)
from notifications.serializers.webhooks import NewWebhookSerializer, WebhookSerializer
from notifications.services import (
    MOST_WEBHOOKS,
    change_webhook,
    create_webhook,
    delete_webhook,
    rotate_secret,
    send_test,
)
from scheduling.api.bodies import read_body_as
from scheduling.api.ordering import ORDER_NAMES, UPDATED_SINCE, order_query
from scheduling.api.schema import described, many, one


class WebhookScopedView(TenantView):
    def find_webhook(self, webhook_id: uuid.UUID) -> Webhook:
        rows = Webhook.objects.for_app(self.app).filter(id=webhook_id)
        return found(rows.first(), "Webhook")


ORDERS = {name: name for name in ("created_at", "updated_at", "url")}


class WebhooksView(TenantView):
    secret_methods = frozenset({"POST"})
    query_names = {"GET": (*ORDER_NAMES, "updated_since")}

    @described(
        summary="List webhooks",
        description="All of them, newest first.",
        response=many(WEBHOOK),
        query={**order_query(ORDERS), "updated_since": UPDATED_SINCE},
    )
    def get(self, request: Any) -> Response:
        rows = self.listed(Webhook.objects.for_app(self.app), ORDERS)
        return Response({"data": [webhook_record(webhook) for webhook in rows]})

    @described(
        summary="Make a webhook",
        description="From now on each change of a matching booking is called out to its address,"
        " signed by Standard Webhooks with the `secret` that this answer shows once. The address"
        f" must be public. An app has at most {MOST_WEBHOOKS}.",
        request=NewWebhookSerializer,
        response=one(WEBHOOK),
        status=201,
        examples={"with its secret": WEBHOOK_WITH_SECRET},
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
    def post(self, request: Any) -> Response:
        given = read_body_as(NewWebhookSerializer, request)
        webhook, secret = create_webhook(app=self.app, given=given)
        return Response({"data": webhook_record(webhook) | {"secret": secret}}, status=201)


class WebhookView(WebhookScopedView):
    @described(summary="A webhook", response=one(WEBHOOK))
    def get(self, request: Any, webhook_id: uuid.UUID) -> Response:
        return Response({"data": webhook_record(self.find_webhook(webhook_id))})

    @described(
        summary="Change a webhook",
        description="Switched on again it starts with a clean slate: `disabled_reason` is null.",
        request=WebhookSerializer,
        response=one(WEBHOOK),
        request_examples={
            "switch it on again": {"active": True},
            "other changes": {"graph": None, "states": ["confirmed", "cancelled"]},
        },
    )
    def put(self, request: Any, webhook_id: uuid.UUID) -> Response:
        given = read_body_as(WebhookSerializer, request)
        webhook = change_webhook(self.find_webhook(webhook_id), given)
        return Response({"data": webhook_record(webhook)})

    @described(
        summary="Remove a webhook",
        description="What it has not been told yet is skipped; its deliveries stay in the log.",
        status=204,
    )
    def delete(self, request: Any, webhook_id: uuid.UUID) -> Response:
        delete_webhook(self.find_webhook(webhook_id), now=self.now)
        return Response(status=204)


class RotateView(WebhookScopedView):
    secret_methods = frozenset({"POST"})

    @described(
        summary="Give a webhook a new secret",
        description="For a day the one before signs too. The answer shows the new one once.",
        response=one(WEBHOOK),
        examples={"with its secret": WEBHOOK_WITH_SECRET},
    )
    def post(self, request: Any, webhook_id: uuid.UUID) -> Response:
        webhook, secret = rotate_secret(self.find_webhook(webhook_id), now=self.now)
        return Response({"data": webhook_record(webhook) | {"secret": secret}})


class TestView(WebhookScopedView):
    @described(
        summary="Call a webhook to try it",
        description="Through the queue like any other call, of kind `test`. Its body is the app's"
        " newest booking, or a made-up one where there is none. A webhook that is switched off is"
        " not called: the delivery is skipped.",
        response=one(DELIVERY),
        status=201,
        examples={"on its way": TEST_DELIVERY},
    )
    def post(self, request: Any, webhook_id: uuid.UUID) -> Response:
        delivery = send_test(self.find_webhook(webhook_id), now=self.now)
        return Response({"data": whole_delivery_record(delivery)}, status=201)
