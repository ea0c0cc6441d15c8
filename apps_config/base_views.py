"""Base classes of endpoints: what an app's endpoint knows of its caller, query and app."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar, TypeVar, cast

from django.conf import settings
from django.db.models import Model, QuerySet
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.authentication import Caller
from apps_config.conditional_writes import ConditionalWrites
from apps_config.history import change_actor
from apps_config.idempotent_actions import IdempotentActions
from apps_config.models import App, Credential, ListingTally, Membership
from apps_config.pagination import EnvelopePagination
from apps_config.permissions import ACCESS, RANKS, Access
from apps_config.replica_reads import ReplicaReads
from apps_config.throttling import NetworkThrottle, add_rate_headers
from common.api.lock_retry import LockRetry
from common.api.query import QueryParams, service_header
from common.api.views import ApiViewSet, Handler, PublicApiView
from common.db.updated_at import changed_rows
from common.errors import Invalid
from common.limits.rate_limit import CountedRequest
from common.messages import Message
from common.observability.log_format import add_log_fields
from common.time.instants import ZONES, format_stamp

Row = TypeVar("Row", bound=Model)


def add_test_mode_header(response: HttpResponseBase, app: App | None) -> None:
    if app and app.mode == App.TEST:
        for prefix in settings.API_HEADER_PREFIXES:
            response.headers[f"{prefix}-TestMode"] = "true"


class PublicView(PublicApiView):
    """An endpoint without a key; rate-limited by client network."""

    throttle_classes = (NetworkThrottle,)
    query: QueryParams
    rate: CountedRequest | None = None
    app: App | None = None  # the app of the response, once it is known

    def check_request(self, request: Request) -> None:
        self.query = QueryParams(request, self.query_names())

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        add_rate_headers(response, self.rate)
        add_test_mode_header(response, self.app)
        if self.app:
            add_log_fields(app=self.app.id)
        return super().finalize_response(request, response, *args, **kwargs)


class TenantViewSet(ReplicaReads, LockRetry, IdempotentActions, ConditionalWrites, ApiViewSet):
    """Endpoints for one kind of object of an app. `apps_config.permissions` says who may call them.

    The mixins run an action from left to right: a replica is chosen once, and each attempt after a
    deadlock is a transaction of its own with the Idempotency-Key.
    """

    # Whether the request is for one app. If not, the action checks `access.role` itself.
    needs_app: ClassVar[bool] = True
    caller: Caller
    query: QueryParams
    rate: CountedRequest | None = None
    complete_until: datetime | None = None  # of a list of changes
    zone: str

    @property
    def access(self) -> Access:
        return ACCESS[self.basename or ""][self.action]

    def perform_authentication(self, request: Request) -> None:
        self.caller = cast(Caller, request.user)

    def check_request(self, request: Request) -> None:
        self.query = QueryParams(request, self.query_names())
        self.zone = self._output_zone(request)

    def run(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        with change_actor(self.caller.account_id, self.caller.actor):
            return super().run(handler, request, *args, **kwargs)

    def list_page(
        self,
        request: Request,
        rows: QuerySet[Row],
        record: Callable[[Row], Any],
        *,
        tally: QuerySet[ListingTally] | None = None,
    ) -> Response:
        """One page of an ordered query set, each row written by `record`; see `fetch_page`."""
        paginator = cast(EnvelopePagination, self.paginator)
        found = paginator.paginate_queryset(rows, request, self, tally=tally)
        return paginator.get_paginated_response([record(row) for row in found])

    def changed(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """The rows changed since `updated_since`; sets `complete_until` for the response header."""
        zone = self.input_zone if self.needs_app else self.zone
        since = self.query.bound("updated_since", zone, self.now)
        if since is not None:
            rows, self.complete_until = changed_rows(rows, since)
        return rows

    def is_strict(self, request: Request) -> bool:
        """Also by the app's setting, which is not for keys of pages that nobody can change."""
        app = self.caller.app
        by_setting = app is not None and app.settings.get("strict_bodies") is True
        return (by_setting and not self.caller.is_widget) or super().is_strict(request)

    @property
    def app(self) -> App:
        return self.caller.only_app

    @property
    def input_zone(self) -> str:
        """The zone for wall times that belong to no single resource."""
        return self.asked_zone or self.app.default_timezone

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        add_rate_headers(response, self.rate)
        if self.complete_until:
            response.headers["Service-Complete-Until"] = format_stamp(self.complete_until)
        caller = getattr(self, "caller", None)
        add_test_mode_header(response, caller and caller.app)
        return super().finalize_response(request, response, *args, **kwargs)

    def has_role(self, least: str) -> bool:
        """Whether the account has the role in the request's app. Raises Invalid if the app is
        ambiguous.
        """
        return bool(self.app) and RANKS[self.caller.role] >= RANKS[least]

    @property
    def acts_as_owner(self) -> bool:
        """Whether the request has a server key or an owner's access token. Raises Forbidden for one
        that has scopes, but not that of keys.
        """
        self.caller.check_scopes(Credential.KEYS_WRITE)
        if self.caller.projects is not None:
            return False
        if self.caller.kind == Credential.SERVER:
            return True
        return self.caller.kind == Credential.ACCESS and self.has_role(Membership.OWNER)

    def _output_zone(self, request: Request) -> str:
        self.asked_zone = service_header(request, "Timezone")
        if self.asked_zone is not None and self.asked_zone not in ZONES:
            raise Invalid.at("Service-Timezone", Message("Is not a known IANA time zone."))
        return self.asked_zone or "UTC"
