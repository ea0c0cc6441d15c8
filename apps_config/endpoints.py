"""The base of every endpoint: who calls, what they may, how often, and at most once."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from django.conf import settings
from django.db import OperationalError
from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.response import Response

from apps_config.authentication import (
    Caller,
    authenticate,
    count_failed_login,
    count_request,
    count_stranger,
)
from apps_config.history import acting_as
from apps_config.idempotency import answer_once, hash_request, read_key
from apps_config.models import App, Credential, Membership
from scheduling.api.changes import changed_rows
from scheduling.api.errors import (
    Forbidden,
    Invalid,
    RateLimited,
    Unauthenticated,
    sqlstate_of,
    tolerated_outage,
)
from scheduling.api.headers import service_header
from scheduling.api.instants import ZONES, format_stamp
from scheduling.api.ordering import Orders, read_order
from scheduling.api.pagination import Page, envelope
from scheduling.api.query import QueryParams
from scheduling.api.rates import client_address
from scheduling.api.views import ApiView, render

_RANKS = {role: rank for rank, role in enumerate(Membership.ROLES)}
# Serialization failure and deadlock: nothing was done, and a second try usually succeeds.
_TRY_AGAIN = frozenset({"40001", "40P01"})


def mark_test_mode(response: Any, app: App | None) -> None:
    if app and app.mode == App.TEST:
        for prefix in settings.API_HEADER_PREFIXES:
            response.headers[f"{prefix}-TestMode"] = "true"


Rate = tuple[int, int, int]  # requests a minute, how many are left, seconds until the next minute


def count_hit(count: Callable[[], tuple[bool, int, int]]) -> tuple[bool, Rate | None]:
    """Whether the request is within the rate, and how that stands; None where none is limited."""
    if not settings.RATE_LIMIT_PER_MINUTE:
        return True, None
    allowed, remaining, reset = count()
    return allowed, (settings.RATE_LIMIT_PER_MINUTE, remaining, reset)


def mark_rate(response: Any, rate: Rate | None) -> None:
    if rate:
        limit, remaining, reset = rate
        response.headers["X-RateLimit-Limit"] = str(limit)
        response.headers["X-RateLimit-Remaining"] = str(remaining)
        response.headers["X-RateLimit-Reset"] = str(reset)


class PublicView(ApiView):
    """An endpoint that takes no key: strangers are counted by their address."""

    public = True
    query_names: ClassVar[Mapping[str, Sequence[str]]] = {}  # method -> its query parameters

    query: QueryParams
    rate: Rate | None = None
    app: App | None = None  # whose answer it turned out to be

    def admit(self, request: Any) -> None:
        self.now = timezone.now()
        allowed, self.rate = count_hit(partial(count_stranger, request))
        if not allowed:
            raise RateLimited(retry_after=self.rate[2])
        method = "GET" if request.method == "HEAD" else request.method
        self.query = QueryParams(request, self.query_names.get(method, ()))

    def decorate(self, response: Any) -> None:
        super().decorate(response)
        mark_rate(response, self.rate)
        mark_test_mode(response, self.app)


class TenantView(ApiView):
    """An endpoint of an app. Subclasses say who beside server keys and members may call what."""

    query_like: ClassVar[bool] = False  # its POST changes nothing: viewers may, no idempotency
    needs_app: ClassVar[bool] = True
    owner_methods: ClassVar[frozenset[str]] = frozenset()
    widget_methods: ClassVar[frozenset[str]] = frozenset()
    resource_methods: ClassVar[frozenset[str]] = frozenset()
    secret_methods: ClassVar[frozenset[str]] = frozenset()  # their answers carry a secret
    query_names: ClassVar[Mapping[str, Sequence[str]]] = {}  # method -> its query parameters

    caller: Caller
    query: QueryParams
    rate: Rate | None = None
    complete_until: datetime | None = None  # of a listing of changes
    zone: str
    keeps_answer = False  # the request has an Idempotency-Key

    def admit(self, request: Any) -> None:
        method = "GET" if request.method == "HEAD" else request.method
        self.now = timezone.now()
        self.caller = self._authenticate(request)
        self._count(request)
        self._check_rights(method)
        self.query = QueryParams(request, self.query_names.get(method, ()))
        self.zone = self._output_zone(request)

    def list_page(self, request: Any, rows: QuerySet, record: Callable[[Any], Any]) -> Response:
        """One page of an ordered query set in the contract's envelope."""
        page = Page.read(request)
        found = rows[page.start : page.stop]
        return Response(envelope(request, page, rows.count(), [record(row) for row in found]))

    def listed(
        self,
        rows: QuerySet,
        orders: Orders,
        default: str = "created_at",
        *,
        ascending: bool = False,
    ) -> QuerySet:
        """The rows changed since `updated_since`, as `orderBy` and `sortedBy` say."""
        order = read_order(self.query, orders, default, ascending=ascending)
        return self.changed(rows).order_by(*order)

    def changed(self, rows: QuerySet) -> QuerySet:
        """The rows that `updated_since` asks for; the answer's header says how far they go."""
        zone = self.input_zone if self.needs_app else self.zone
        since = self.query.bound("updated_since", zone, self.now)
        if since is not None:
            rows, self.complete_until = changed_rows(rows, since)
        return rows

    @property
    def app(self) -> App:
        if not self.caller.memberships:
            raise Forbidden("This account has no app.")
        if self.caller.app is None:
            raise Invalid.at("Service-App", "Say which app: this account has several.")
        return self.caller.app

    @property
    def input_zone(self) -> str:
        """Where wall times are read that belong to no single resource."""
        return self.asked_zone or self.app.default_timezone

    def is_repeatable(self, request: Any) -> bool:
        """With an Idempotency-Key the whole handler is one transaction."""
        has_key = "HTTP_IDEMPOTENCY_KEY" in request.META
        return super().is_repeatable(request) or self.query_like or has_key

    def run(self, request: Any, handler: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        with acting_as(self.caller.account_id, self.caller.actor):
            return self._run(request, handler, *args, **kwargs)

    def _run(self, request: Any, handler: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return self._run_once(request, handler, *args, **kwargs)
        except OperationalError as error:
            if sqlstate_of(error) not in _TRY_AGAIN:
                raise
            return self._run_once(request, handler, *args, **kwargs)

    def decorate(self, response: Any) -> None:
        super().decorate(response)
        mark_rate(response, self.rate)
        if self.complete_until:
            response.headers["Service-Complete-Until"] = format_stamp(self.complete_until)
        caller = getattr(self, "caller", None)
        mark_test_mode(response, caller and caller.app)

    def _authenticate(self, request: Any) -> Caller:
        try:
            return authenticate(
                request.META.get("HTTP_AUTHORIZATION"),
                service_header(request, "App"),
                now=self.now,
            )
        except Unauthenticated:
            if request.META.get("HTTP_AUTHORIZATION"):
                with tolerated_outage():
                    count_failed_login(client_address(request), now=self.now)
            raise

    def _count(self, request: Any) -> None:
        allowed, self.rate = count_hit(partial(count_request, self.caller, request))
        if not allowed:
            raise RateLimited(retry_after=self.rate[2])

    def _check_rights(self, method: str) -> None:
        caller = self.caller
        if caller.kind == Credential.WIDGET:
            allowed = method in self.widget_methods
        elif caller.kind == Credential.RESOURCE:
            allowed = method in self.resource_methods
        elif caller.kind == Credential.SERVER:
            allowed = True
        else:
            allowed = not self.needs_app or self._has_role(self._least_role(method))
        if not allowed:
            raise Forbidden()

    def _has_role(self, least: str) -> bool:
        """Of the account in the request's app: Invalid where it is not clear which."""
        return bool(self.app) and _RANKS[self.caller.role] >= _RANKS[least]

    def _least_role(self, method: str) -> str:
        if method in self.owner_methods:
            return Membership.OWNER
        reads = method == "GET" or (method == "POST" and self.query_like)
        return Membership.VIEWER if reads else Membership.EDITOR

    def who_may(self, method: str) -> str:
        """For the description: the kinds of key that may call the method."""
        kinds = ["server key", f"access token ({self._least_role(method)})"]
        kinds += ["widget key"] if method in self.widget_methods else []
        kinds += ["resource key"] if method in self.resource_methods else []
        return ", ".join(kinds)

    def _output_zone(self, request: Any) -> str:
        self.asked_zone = service_header(request, "Timezone")
        if self.asked_zone is not None and self.asked_zone not in ZONES:
            raise Invalid.at("Service-Timezone", "Is not a known IANA time zone.")
        return self.asked_zone or "UTC"

    def _run_once(self, request: Any, handler: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        key = request.META.get("HTTP_IDEMPOTENCY_KEY")
        if key is None or request.method not in ("POST", "PUT") or self.query_like:
            return handler(request, *args, **kwargs)
        if request.method in self.secret_methods:
            raise Invalid.at("Idempotency-Key", "This answer carries a secret and is not kept.")
        self.keeps_answer = True
        return answer_once(
            credential_id=self.caller.credential_id,
            app_id=self._app_of_key(),
            key=read_key(key),
            request_hash=hash_request(request.method, request.get_full_path(), request.body),
            answer=lambda: render(handler(request, *args, **kwargs)),
        )

    def _app_of_key(self) -> uuid.UUID | None:
        """The app that an Idempotency-Key belongs to, where the credential does not say which."""
        is_of_account = self.caller.kind == Credential.ACCESS and self.needs_app
        return self.app.id if is_of_account else None
