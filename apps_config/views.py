"""Endpoints of the tenant: /app, /apps, /apps/:slug."""

from collections.abc import Collection, Mapping
from typing import Any, cast
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.authentication import WHOLE_BOOKINGS, Caller
from apps_config.base_views import TenantViewSet
from apps_config.models import Account, App
from apps_config.permissions import RANKS
from apps_config.serializers import AppSerializer, EventNotificationSerializer
from apps_config.services import archive_app, change_app, create_app
from common.api.serializers import read_body_as
from common.errors import Forbidden, NotFound
from common.openapi.component_registry import Json
from common.openapi.generator import named_examples, parameters
from common.openapi.parameters import include_of

APP_INCLUDES = ("signing_secret",)
APP_INCLUDE = {
    "include": include_of(
        APP_INCLUDES, note="signing_secret needs a server key or an owner's access token, else 403."
    )
}
RECEIVERS = frozenset({"contact_email", "from_email"})  # settings
SLUG = {"slug": {"type": "string", "description": "The app's slug.", "examples": ["demo"]}}


class CurrentAppViewSet(TenantViewSet):
    """The app of the credential."""

    serializer_class = AppSerializer
    is_singleton = True
    tag = "apps"

    @extend_schema(
        operation_id="retrieveCurrentApp",
        summary="The app of the credential",
        description="For an access token with several apps: the app in Service-App.",
        parameters=parameters(query=APP_INCLUDE),
    )
    def retrieve(self, request: Request) -> Response:
        includes = self.query.include(APP_INCLUDES)
        if includes and not self.acts_as_owner:
            raise Forbidden("Only server keys and owners can include signing_secret.")
        return Response({"data": app_record(self.app, self.caller, includes)})


def app_record(app: App, caller: Caller, includes: Collection[str] = ()) -> Json:
    """Render the app; a key that may not read people gets no `blocked_customers`."""
    record = AppSerializer.render(app, include=includes)
    if not caller.reads_people:
        record["settings"].pop("blocked_customers", None)
    return record


class AppPathViewSet(TenantViewSet):
    """Base of endpoints below /apps/:slug, whose role is checked in the app of the path."""

    needs_app = False

    def lock_object(self) -> None:
        """Lock the app of the path."""
        rows = App.objects.select_for_update(no_key=True).filter(slug=self.kwargs["slug"])
        rows.values("pk").first()

    def find_app(self, slug: str) -> App:
        """The app with this slug. Raises NotFound for non-members, Forbidden below the role that
        the action needs.
        """
        for role, app in self.caller.memberships:
            if app.slug == slug:
                if RANKS[role] < RANKS[self.access.role]:
                    raise Forbidden()
                return app
        raise NotFound("App")


class AppViewSet(AppPathViewSet):
    """The apps that the caller is a member of."""

    serializer_class = AppSerializer
    lookup_url_kwarg = "slug"
    lookup_value_converter = "str"
    ordering_fields = {name: name for name in ("created_at", "updated_at", "name", "slug")}

    @extend_schema(
        summary="List the caller's apps",
        description="A key's own app, or the apps in which the account is a member.",
    )
    def list(self, request: Request) -> Response:
        ids = [app.id for _, app in self.caller.memberships]
        apps = App.objects.open().filter(id__in=ids).prefetch_related("event_notifications")
        rows = self.filter_queryset(apps)
        return self.list_page(request, rows, lambda app: app_record(app, self.caller))

    @extend_schema(
        summary="Create an app",
        description="The account becomes its owner. 409 `already_exists` for a taken slug.",
        examples=named_examples(
            request={
                "a new app": {"slug": "harbour-dental", "name": "Harbour Dental"},
                "for trials": {
                    "slug": "harbour-trial",
                    "name": "Harbour Dental (trial)",
                    "mode": "test",
                    "settings": {"default_timezone": "Europe/Berlin"},
                },
            }
        ),
    )
    def create(self, request: Request) -> Response:
        if all(role != self.access.role for role, _ in self.caller.memberships):
            raise Forbidden("Only owners of an app can create apps.")
        given = read_body_as(AppSerializer, request)
        self.caller.check_receivers(given.get("event_notifications"))
        app = create_app(**given, owner=Account.objects.get(id=cast(UUID, self.caller.account_id)))
        return Response({"data": app_record(app, self.caller)}, status=201)

    @extend_schema(
        summary="An app",
        parameters=parameters(path=SLUG),
    )
    def retrieve(self, request: Request, slug: str) -> Response:
        return Response({"data": app_record(self.find_app(slug), self.caller)})

    @extend_schema(
        summary="Change an app",
        description="`settings` are merged key by key, and null removes a key."
        " `event_notifications` are replaced, `[]` clears them; they apply to new bookings.",
        parameters=parameters(path=SLUG),
        examples=named_examples(
            request={
                "disable all e-mails": {"settings": {"disable_emails": True}},
                "remind the customer": {
                    "event_notifications": [EventNotificationSerializer.example()]
                },
            }
        ),
    )
    def update(self, request: Request, slug: str) -> Response:
        app = self.find_app(slug)
        given = read_body_as(AppSerializer, request, partial=True)
        self.caller.check_receivers(given.get("event_notifications"))
        self._check_addresses(app, given.get("settings") or {})
        app = change_app(app, given)
        return Response({"data": app_record(app, self.caller)})

    def _check_addresses(self, app: App, given: Mapping[str, Any]) -> None:
        """Raise Forbidden for another address of mails about bookings, or of the replies to them,
        by a key that may not read these.
        """
        if any(given[name] != app.settings.get(name) for name in RECEIVERS & given.keys()):
            self.caller.check_scopes(*WHOLE_BOOKINGS)

    @extend_schema(
        summary="Archive an app: its keys are refused, its data stays",
        parameters=parameters(path=SLUG),
    )
    def destroy(self, request: Request, slug: str) -> Response:
        archive_app(self.find_app(slug), now=self.now)
        return Response(status=204)
