"""Endpoints of the tenant: /app, /apps, /apps/:slug."""

from typing import Any

from rest_framework.response import Response

from apps_config.endpoints import TenantView
from apps_config.models import Account, App, Credential, Membership
from apps_config.records import APP, APP_EXAMPLE, app_record
from apps_config.serializers import AppSerializer, NewAppSerializer
from apps_config.services import archive_app, change_app, create_app
from scheduling.api.bodies import read_body_as
from scheduling.api.errors import Forbidden, NotFound
from scheduling.api.ordering import ORDER_NAMES, UPDATED_SINCE, order_query
from scheduling.api.pagination import PAGE_NAMES
from scheduling.api.schema import described, one, page_of

SLUG = {"slug": {"type": "string", "description": "The app's slug.", "examples": ["demo"]}}


class CurrentAppView(TenantView):
    """The app of the credential."""

    tag = "apps"

    @described(
        summary="The app of the credential",
        description="For an access token with several apps: the one that Service-App names.",
        response=one(APP),
    )
    def get(self, request: Any) -> Response:
        return Response({"data": app_record(self.app)})


ORDERS = {name: name for name in ("created_at", "updated_at", "name", "slug")}


class AppsView(TenantView):
    """The apps that the caller has a part in."""

    needs_app = False
    paginated = True
    query_names = {"GET": (*PAGE_NAMES, *ORDER_NAMES, "updated_since")}

    def who_may(self, method: str) -> str:
        return "access token of an owner" if method == "POST" else super().who_may(method)

    @described(
        summary="List the caller's apps",
        description="A key's own app, or the apps in which the account is a member.",
        response=page_of(APP),
        query={**order_query(ORDERS), "updated_since": UPDATED_SINCE},
    )
    def get(self, request: Any) -> Response:
        ids = [app.id for _, app in self.caller.memberships]
        apps = App.objects.open().filter(id__in=ids).prefetch_related("event_notifications")
        return self.list_page(request, self.listed(apps, ORDERS), app_record)

    @described(
        summary="Make an app",
        description="The account becomes its owner. 409 `already_exists` for a taken slug.",
        request=NewAppSerializer,
        response=one(APP),
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
    def post(self, request: Any) -> Response:
        owns_one = any(role == Membership.OWNER for role, _ in self.caller.memberships)
        if self.caller.kind != Credential.ACCESS or not owns_one:
            raise Forbidden("Only an account that owns an app may make another.")
        given = read_body_as(NewAppSerializer, request)
        app = create_app(**given, owner=Account.objects.get(id=self.caller.account_id))
        return Response({"data": app_record(app)}, status=201)


class AppView(TenantView):
    """One app, by its slug."""

    needs_app = False
    owner_methods = frozenset({"DELETE"})

    @described(summary="An app", response=one(APP), path=SLUG)
    def get(self, request: Any, slug: str) -> Response:
        return Response({"data": app_record(self._find(slug, Membership.VIEWER))})

    @described(
        summary="Change an app",
        description="`settings` are merged key by key, null removes one;"
        " `event_notifications` are replaced whole, `[]` clears them, and hold for bookings made"
        " from then on.",
        request=AppSerializer,
        response=one(APP),
        path=SLUG,
        request_examples={
            "switch off all mails": {"settings": {"disable_emails": True}},
            "remind the customer": {"event_notifications": APP_EXAMPLE["event_notifications"]},
        },
    )
    def put(self, request: Any, slug: str) -> Response:
        app = self._find(slug, Membership.EDITOR)
        app = change_app(app, read_body_as(AppSerializer, request))
        return Response({"data": app_record(app)})

    @described(summary="Archive an app: its keys stop, its data stays", status=204, path=SLUG)
    def delete(self, request: Any, slug: str) -> Response:
        archive_app(self._find(slug, Membership.OWNER), now=self.now)
        return Response(status=204)

    def _find(self, slug: str, least_role: str) -> App:
        """The app of that slug, if the caller has at least that role in it."""
        for role, app in self.caller.memberships:
            if app.slug == slug:
                if Membership.ROLES.index(role) < Membership.ROLES.index(least_role):
                    raise Forbidden()
                return app
        raise NotFound("App")
