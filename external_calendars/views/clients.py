"""Endpoints of an app's own OAuth clients at calendar providers."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from common.api.serializers import read_body_as
from common.api.views import found_or_404
from common.errors import NotFound
from common.openapi.components import text_response
from common.openapi.generator import named_examples, parameters
from external_calendars.clients import delete_client, store_client
from external_calendars.models import ProviderClient
from external_calendars.providers import OAUTH_PROVIDERS
from external_calendars.serializers import NewProviderClientSerializer, ProviderClientSerializer

CLIENT_ID = ProviderClientSerializer.example()["client_id"]
PATH = {"provider": text_response("The provider.", enum=list(OAUTH_PROVIDERS))}


class ProviderClientViewSet(TenantViewSet):
    """The clients with which the app's people are asked for their calendars."""

    serializer_class = ProviderClientSerializer
    lookup_url_kwarg = "provider"
    lookup_value_converter = "str"
    tag = "calendars"
    refuses_unknown_keys = True
    unrepeatable_actions = frozenset({"update"})  # the body contains a secret
    pagination_class = None

    def get_queryset(self) -> QuerySet[ProviderClient]:
        return ProviderClient.objects.filter(app=self.app).order_by("provider")

    @extend_schema(
        operation_id="listCalendarClients",
        summary="List the app's clients at Google and Microsoft",
        description="The OAuth clients that the app has registered itself. Without one, the"
        " service's own client is used. Secrets are never shown.",
    )
    def list(self, request: Request) -> Response:
        rows = self.get_queryset()
        return Response({"data": [ProviderClientSerializer.render(client) for client in rows]})

    @extend_schema(
        operation_id="putCalendarClient",
        summary="Store the app's client at a provider",
        description="Creates or replaces it. Register `redirect_uri` at the provider first. With"
        " another `client_id`, the app's calendars at this provider stop with the problem"
        " `grant_ended` until their people connect them again. Takes no Idempotency-Key.",
        request=NewProviderClientSerializer,
        parameters=parameters(path=PATH),
        examples=named_examples(
            request={"from the provider": {"client_id": CLIENT_ID, "client_secret": "GOCSPX-..."}}
        ),
    )
    def update(self, request: Request, provider: str) -> Response:
        if provider not in OAUTH_PROVIDERS:
            raise NotFound("Provider")
        given = read_body_as(NewProviderClientSerializer, request)
        client = store_client(app=self.app, provider=provider, now=self.now, **given)
        return Response({"data": ProviderClientSerializer.render(client)})

    @extend_schema(
        operation_id="deleteCalendarClient",
        summary="Delete the app's client at a provider",
        description="The app uses the service's own client from now on. The calendars that use"
        " permissions of the deleted client stop with the problem `grant_ended` until their people"
        " connect them again.",
        parameters=parameters(path=PATH),
    )
    def destroy(self, request: Request, provider: str) -> Response:
        client = self.get_queryset().filter(provider=provider).first()
        delete_client(found_or_404(client, "Provider"), now=self.now)
        return Response(status=204)
