"""GET /v2: what a client can know of the service without a key."""

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.changes import KEPT_FOR as CHANGES_KEPT_FOR
from apps_config.idempotency import KEPT_FOR as ANSWERS_KEPT_FOR
from common.api.json import MAX_BYTES
from common.api.pagination import MAX_LIMIT
from common.api.serializers import ObjectSerializer
from common.api.views import PublicApiView
from common.openapi.generator import data_object


class ServiceLimitsSerializer(ObjectSerializer):
    """Limits of all requests."""

    examples = {
        "requests_per_minute": 6000,
        "body_bytes": MAX_BYTES,
        "page_rows": MAX_LIMIT,
        "idempotency_hours": 24,
        "changes_days": 30,
    }

    requests_per_minute = serializers.IntegerField(help_text="Of a key.")
    body_bytes = serializers.IntegerField(help_text="The largest body.")
    page_rows = serializers.IntegerField(help_text="The largest `limit` of a list.")
    idempotency_hours = serializers.IntegerField(
        help_text="How long the response to an Idempotency-Key is stored."
    )
    changes_days = serializers.IntegerField(help_text="How long GET /v2/changes goes back.")


class ServiceLinksSerializer(ObjectSerializer):
    """Addresses of the service."""

    examples = {
        "description": "https://booking.example.com/v2/openapi.json",
        "reference": "https://booking.example.com/docs",
        "guide": "https://booking.example.com/docs/guide/",
        "app": "https://booking.example.com/v2/app",
        "changes": "https://booking.example.com/v2/changes",
    }

    description = serializers.URLField(help_text="The OpenAPI document.")
    reference = serializers.URLField(help_text="The same for people.")
    guide = serializers.URLField()
    app = serializers.URLField(help_text="The app of a key.")
    changes = serializers.URLField(help_text="Every change of the app.")


class ServiceSerializer(ObjectSerializer):
    """The service."""

    examples = {"version": settings.VERSION}

    version = serializers.CharField(help_text="The version of the service.")
    limits = ServiceLimitsSerializer()
    links = ServiceLinksSerializer()


PATHS = {
    "description": "/v2/openapi.json",
    "reference": "/docs",
    "guide": "/docs/guide/",
    "app": "/v2/app",
    "changes": "/v2/changes",
}


class ApiRootView(PublicApiView):
    has_etag = True
    operation_ids = {"GET": "retrieveService"}
    tag = "service"

    @extend_schema(
        summary="Version, limits and links of the service",
        responses={200: data_object(ServiceSerializer)},
    )
    def get(self, request: Request) -> Response:
        limits = {
            "requests_per_minute": settings.RATE_LIMIT_PER_MINUTE,
            "body_bytes": MAX_BYTES,
            "page_rows": MAX_LIMIT,
            "idempotency_hours": int(ANSWERS_KEPT_FOR.total_seconds()) // 3600,
            "changes_days": CHANGES_KEPT_FOR.days,
        }
        links = {name: settings.PUBLIC_URL + path for name, path in PATHS.items()}
        return Response({"data": {"version": settings.VERSION, "limits": limits, "links": links}})
