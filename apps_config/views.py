"""Endpoints of the tenant: /app, /apps, /apps/:slug."""

from rest_framework.response import Response

from apps_config.base_views import TenantView
from apps_config.models import Account, App, Credential, Membership
from apps_config.records import AppRecord, EventNotificationRecord
from apps_config.serializers import AppSerializer, NewAppSerializer
from apps_config.services import archive_app, change_app, create_app
from common.api.ordering import order_query_parameters
from common.api.validated_input import read_body_as
from common.api.views import ApiRequest
from common.errors import Forbidden, NotFound
from common.openapi.generator import data_object, describe_endpoint, page_of

SLUG = {"slug": {"type": "string", "description": "The app's slug.", "examples": ["demo"]}}


class CurrentAppView(TenantView):
    """The app of the credential."""

    operation_ids = {"GET": "retrieveCurrentApp"}
    tag = "apps"

    @describe_endpoint(
        summary="The app of the credential",
        description="For an access token with several apps: the app in Service-App.",
        response=data_object(AppRecord),
    )
    def get(self, request: ApiRequest) -> Response:
        return Response({"data": AppRecord.of(self.app)})


ORDERS = {name: name for name in ("created_at", "updated_at", "name", "slug")}


class AppsView(TenantView):
    """The apps that the caller is a member of."""

    needs_app = False
    paginated = True

    def who_may(self, method: str) -> str:
        return "access token of an owner" if method == "POST" else super().who_may(method)

    @describe_endpoint(
        summary="List the caller's apps",
        description="A key's own app, or the apps in which the account is a member.",
        response=page_of(AppRecord),
        query=order_query_parameters(ORDERS),
    )
    def get(self, request: ApiRequest) -> Response:
        ids = [app.id for _, app in self.caller.memberships]
        apps = App.objects.open().filter(id__in=ids).prefetch_related("event_notifications")
        return self.list_page(request, self.filter_and_order(apps, ORDERS), AppRecord.of)

    @describe_endpoint(
        summary="Create an app",
        description="The account becomes its owner. 409 `already_exists` for a taken slug.",
        request=NewAppSerializer,
        response=data_object(AppRecord),
        status=201,
        request_examples={
            "a new app": {"slug": "harbour-dental", "name": "Harbour Dental"},
            "for trials": {
                "slug": "harbour-trial",
                "name": "Harbour Dental (trial)",
                "mode": "test",
                "settings": {"default_timezone": "Europe/Berlin"},
            },
        },
    )
    def post(self, request: ApiRequest) -> Response:
        owns_one = any(role == Membership.OWNER for role, _ in self.caller.memberships)
        account_id = self.caller.account_id
        if self.caller.kind != Credential.ACCESS or account_id is None or not owns_one:
            raise Forbidden("Only owners of an app can create apps.")
        given = read_body_as(NewAppSerializer, request)
        app = create_app(**given, owner=Account.objects.get(id=account_id))
        return Response({"data": AppRecord.of(app)}, status=201)


class AppScopedView(TenantView):
    """Base of endpoints below /apps/:slug."""

    needs_app = False

    def find_app(self, slug: str, least_role: str) -> App:
        """The app with this slug. Raises Forbidden below `least_role`, NotFound for non-members."""
        for role, app in self.caller.memberships:
            if app.slug == slug:
                if Membership.ROLES.index(role) < Membership.ROLES.index(least_role):
                    raise Forbidden()
                return app
        raise NotFound("App")


class AppBySlugView(AppScopedView):
    """One app, by its slug."""

    owner_methods = frozenset({"DELETE"})

    @describe_endpoint(summary="An app", response=data_object(AppRecord), path=SLUG)
    def get(self, request: ApiRequest, slug: str) -> Response:
        return Response({"data": AppRecord.of(self.find_app(slug, Membership.VIEWER))})

    @describe_endpoint(
        summary="Change an app",
        description="`settings` are merged key by key, and null removes a key."
        " `event_notifications` are replaced, `[]` clears them; they apply to new bookings.",
        request=AppSerializer,
        response=data_object(AppRecord),
        path=SLUG,
        request_examples={
            "disable all e-mails": {"settings": {"disable_emails": True}},
            "remind the customer": {"event_notifications": [EventNotificationRecord.example()]},
        },
    )
    def put(self, request: ApiRequest, slug: str) -> Response:
        app = self.find_app(slug, Membership.EDITOR)
        app = change_app(app, read_body_as(AppSerializer, request))
        return Response({"data": AppRecord.of(app)})

    @describe_endpoint(
        summary="Archive an app: its keys are refused, its data stays", status=204, path=SLUG
    )
    def delete(self, request: ApiRequest, slug: str) -> Response:
        archive_app(self.find_app(slug, Membership.OWNER), now=self.now)
        return Response(status=204)
