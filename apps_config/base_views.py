"""Base classes of endpoints: authentication, permissions, rate limits, idempotency."""

import uuid
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, TypeVar

from django.conf import settings
from django.db import OperationalError
from django.db.models import Model, QuerySet
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.response import Response

from apps_config.authentication import (
    Caller,
    authenticate,
    count_failed_login,
    count_request_with_key,
    count_request_without_key,
)
from apps_config.history import change_actor
from apps_config.idempotency import find_answer, hash_request, read_key, replay_answer, run_once
from apps_config.listing_pages import fetch_page
from apps_config.models import App, Credential, IdempotencyRecord, ListingTally, Membership
from common.api.ordering import Orders, read_order
from common.api.pagination import Page, list_envelope
from common.api.prefixed_request_headers import service_header
from common.api.query import QueryParams
from common.api.views import ApiRequest, ApiView, Handler, render_json_response
from common.db.replica import note_write, read_on_replica
from common.db.updated_at import changed_rows
from common.errors import (
    Forbidden,
    Invalid,
    RateLimited,
    Unauthenticated,
    ignore_database_outage,
    sqlstate_of,
)
from common.limits.rate_limit import WINDOW, CountedRequest, customer_network
from common.observability.log_format import add_log_fields
from common.time.instants import ZONES, format_stamp

Row = TypeVar("Row", bound=Model)

_RANKS = {role: rank for rank, role in enumerate(Membership.ROLES)}
# Serialization failure and deadlock: rolled back, and a retry usually succeeds.
_TRY_AGAIN = frozenset({"40001", "40P01"})


def add_test_mode_header(response: HttpResponseBase, app: App | None) -> None:
    if app and app.mode == App.TEST:
        for prefix in settings.API_HEADER_PREFIXES:
            response.headers[f"{prefix}-TestMode"] = "true"


def refuse_above_limit(rate: CountedRequest | None) -> None:
    """Raise RateLimited for a request above the limit of its key."""
    if rate and not rate.is_allowed:
        raise RateLimited(retry_after=rate.reset)


def finish_rate(response: HttpResponseBase, rate: CountedRequest | None) -> None:
    """Count the CPU time of the request, and add what is left of the limit to its response."""
    if rate:
        rate.count_cpu_time()
        response.headers["RateLimit-Policy"] = f'"requests";q={rate.limit};w={WINDOW}'
        response.headers["RateLimit"] = f'"requests";r={rate.remaining};t={rate.reset}'
        response.headers["X-RateLimit-Limit"] = str(rate.limit)
        response.headers["X-RateLimit-Remaining"] = str(rate.remaining)
        response.headers["X-RateLimit-Reset"] = str(rate.reset)


class PublicView(ApiView):
    """An endpoint without a key; rate-limited by client network."""

    public = True
    query: QueryParams
    rate: CountedRequest | None = None
    app: App | None = None  # the app of the response, once it is known

    def admit(self, request: ApiRequest) -> None:
        self.now = timezone.now()
        self.rate = count_request_without_key(request)
        refuse_above_limit(self.rate)
        method = "GET" if request.method == "HEAD" else request.method or ""
        self.query = QueryParams(request, self.query_names(method))

    def decorate(self, response: HttpResponseBase) -> None:
        super().decorate(response)
        finish_rate(response, self.rate)
        add_test_mode_header(response, self.app)
        if self.app:
            add_log_fields(app=self.app.id)


def secret_response() -> Invalid:
    """Return the refusal of an Idempotency-Key where the stored response would contain a secret."""
    return Invalid.at("Idempotency-Key", "Not supported here: the response contains a secret.")


class TenantView(ApiView):
    """An endpoint of an app. Subclasses set what keys besides server keys and members' may call."""

    query_like: ClassVar[bool] = (
        False  # its POST changes nothing: viewers may call it, no idempotency
    )
    # Its response may be a second old, so that a replica may read it; lists always may.
    reads_replica: ClassVar[bool] = False
    needs_app: ClassVar[bool] = True
    owner_methods: ClassVar[frozenset[str]] = frozenset()
    widget_methods: ClassVar[frozenset[str]] = frozenset()
    resource_methods: ClassVar[frozenset[str]] = frozenset()
    secret_methods: ClassVar[frozenset[str]] = frozenset()  # their responses contain a secret

    caller: Caller
    query: QueryParams
    rate: CountedRequest | None = None
    complete_until: datetime | None = None  # of a list of changes
    zone: str
    keeps_answer = False  # the request has an Idempotency-Key
    stored_answer: IdempotencyRecord | None = None  # see `repeats_stored_answer`

    def admit(self, request: ApiRequest) -> None:
        method = "GET" if request.method == "HEAD" else request.method or ""
        self.now = timezone.now()
        self.caller = self._authenticate(request)
        if self.caller.app:
            add_log_fields(app=self.caller.app.id)
        self.rate = count_request_with_key(self.caller, request)
        refuse_above_limit(self.rate)
        self._check_origin(request)
        self._check_rights(method)
        self.query = QueryParams(request, self.query_names(method))
        self.zone = self._output_zone(request)

    def list_page(
        self,
        request: ApiRequest,
        rows: QuerySet[Row],
        record: Callable[[Row], Any],
        *,
        tally: QuerySet[ListingTally] | None = None,
    ) -> Response:
        """One page of an ordered query set in the API's envelope; see `fetch_page`."""
        page = Page.read(request)
        total, found = fetch_page(page, rows, tally=tally)
        return Response(list_envelope(request, page, total, [record(row) for row in found]))

    def filter_and_order(
        self,
        rows: QuerySet[Row],
        orders: Orders,
        default: str = "created_at",
        *,
        ascending: bool = False,
    ) -> QuerySet[Row]:
        """The rows changed since `updated_since`, in the order of `orderBy` and `sortedBy`."""
        order = read_order(self.query, orders, default, ascending=ascending)
        return self.changed(rows).order_by(*order)

    def changed(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """The rows changed since `updated_since`; sets `complete_until` for the response header."""
        zone = self.input_zone if self.needs_app else self.zone
        since = self.query.bound("updated_since", zone, self.now)
        if since is not None:
            rows, self.complete_until = changed_rows(rows, since)
        return rows

    def is_strict(self, request: ApiRequest) -> bool:
        """Also by the app's setting, which is not for keys of pages that nobody can change."""
        app = self.caller.app
        by_setting = app is not None and app.settings.get("strict_bodies") is True
        return (by_setting and not self.caller.is_widget) or super().is_strict(request)

    @property
    def app(self) -> App:
        if not self.caller.memberships:
            raise Forbidden("This account has no app.")
        if self.caller.app is None:
            raise Invalid.at("Service-App", "Required: this account has several apps.")
        return self.caller.app

    @property
    def input_zone(self) -> str:
        """The zone for wall times that belong to no single resource."""
        return self.asked_zone or self.app.default_timezone

    def is_retry_safe(self, request: ApiRequest) -> bool:
        """With an Idempotency-Key the whole handler is one transaction."""
        has_key = "HTTP_IDEMPOTENCY_KEY" in request.META
        return self.query_like or has_key or super().is_retry_safe(request)

    def run_handler(
        self, request: ApiRequest, handler: Handler, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        answer = partial(self._run_with_retry, request, handler, *args, **kwargs)
        reader = f"credential-{self.caller.credential_id}"
        with change_actor(self.caller.account_id, self.caller.actor):
            if self.query_like or request.method in ("GET", "HEAD"):
                return read_on_replica(answer, reader) if self._may_read_replica() else answer()
            response = answer()
        note_write(reader)
        return response

    def _may_read_replica(self) -> bool:
        """Whether the view allows it; only the primary knows which changes are complete."""
        return (self.paginated or self.reads_replica) and "updated_since" not in self.query.values

    def _run_with_retry(
        self, request: ApiRequest, handler: Handler, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        try:
            return self._run_once(request, handler, *args, **kwargs)
        except OperationalError as error:
            if sqlstate_of(error) not in _TRY_AGAIN:
                raise
            return self._run_once(request, handler, *args, **kwargs)

    def decorate(self, response: HttpResponseBase) -> None:
        super().decorate(response)
        finish_rate(response, self.rate)
        if self.complete_until:
            response.headers["Service-Complete-Until"] = format_stamp(self.complete_until)
        caller = getattr(self, "caller", None)
        add_test_mode_header(response, caller and caller.app)

    def _authenticate(self, request: ApiRequest) -> Caller:
        try:
            return authenticate(
                request.META.get("HTTP_AUTHORIZATION"),
                service_header(request, "App"),
                now=self.now,
            )
        except Unauthenticated:
            if request.META.get("HTTP_AUTHORIZATION"):
                with ignore_database_outage():
                    count_failed_login(customer_network(request), now=self.now)
            raise

    def _check_origin(self, request: ApiRequest) -> None:
        if not self.caller.allows_origin(request.META.get("HTTP_ORIGIN")):
            raise Forbidden("This key can't be used on this web site: see `origins` of the key.")

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
        """Whether the account has the role in the request's app. Raises Invalid if the app is
        ambiguous.
        """
        return bool(self.app) and _RANKS[self.caller.role] >= _RANKS[least]

    @property
    def acts_as_owner(self) -> bool:
        """Whether the request has a server key or an owner's access token."""
        if self.caller.kind == Credential.SERVER:
            return True
        return self.caller.kind == Credential.ACCESS and self._has_role(Membership.OWNER)

    def _least_role(self, method: str) -> str:
        if method in self.owner_methods:
            return Membership.OWNER
        reads = method == "GET" or (method == "POST" and self.query_like)
        return Membership.VIEWER if reads else Membership.EDITOR

    def who_may(self, method: str) -> str:
        """The kinds of key that may call the method, for the API's description."""
        kinds = ["server key", f"access token ({self._least_role(method)})"]
        kinds += ["widget key"] if method in self.widget_methods else []
        kinds += ["resource key"] if method in self.resource_methods else []
        return ", ".join(kinds)

    def _output_zone(self, request: ApiRequest) -> str:
        self.asked_zone = service_header(request, "Timezone")
        if self.asked_zone is not None and self.asked_zone not in ZONES:
            raise Invalid.at("Service-Timezone", "Is not a known IANA time zone.")
        return self.asked_zone or "UTC"

    def _run_once(
        self, request: ApiRequest, handler: Handler, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        key = self._idempotency_key(request)
        if key is None:
            return handler(request, *args, **kwargs)
        if request.method in self.secret_methods:
            raise secret_response()
        self.keeps_answer = True
        request_hash = hash_request(request.method or "", request.get_full_path(), request.body)
        if self.stored_answer:
            return replay_answer(self.stored_answer, request_hash)
        return run_once(
            credential_id=self.caller.credential_id,
            app_id=self._app_of_idempotency_key(),
            key=read_key(key),
            request_hash=request_hash,
            answer=lambda: render_json_response(handler(request, *args, **kwargs)),
        )

    def repeats_stored_answer(self, request: ApiRequest) -> bool:
        """Whether the request repeats one that was answered, by its Idempotency-Key.

        If so, it gets this answer and its handler does not run, so that checks can be skipped. Only
        this query checks the answer's age: a second one could find it a day old, and run the
        handler without the checks.
        """
        key = self._idempotency_key(request)
        if key is not None and self.stored_answer is None:
            self.stored_answer = find_answer(
                credential_id=self.caller.credential_id,
                app_id=self._app_of_idempotency_key(),
                key=read_key(key),
                now=self.now,
            )
        return self.stored_answer is not None

    def _idempotency_key(self, request: ApiRequest) -> str | None:
        """The header's value; None if the request's method ignores it."""
        if request.method not in ("POST", "PUT") or self.query_like:
            return None
        return request.META.get("HTTP_IDEMPOTENCY_KEY")

    def _app_of_idempotency_key(self) -> uuid.UUID | None:
        """The app of an Idempotency-Key, if the credential may act in several apps."""
        is_of_account = self.caller.kind == Credential.ACCESS and self.needs_app
        return self.app.id if is_of_account else None
