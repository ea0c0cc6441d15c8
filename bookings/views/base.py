"""Base class of the booking endpoints."""

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from apps_config.base_views import TenantViewSet
from apps_config.models import Credential
from apps_config.public_limits import (
    count_booking_attempt,
    count_public_success,
    record_unknown_proxy,
)
from availability.public_access import needs_project
from availability.reserve.events import NotAvailable
from availability.search.rendering import public_reason_record, reason_record
from bookings.graphs import CUSTOMER_ACTIONS, GRAPHS
from bookings.models import Booking
from bookings.pages.action_links import CALENDAR, PAY, RESCHEDULE, action_url, payment_address
from bookings.public_booking_checks import (
    PublicRequest,
    check_public_request,
    count_public_refusal,
    read_emails,
    use_challenge,
)
from bookings.serializers.responses import (
    INCLUDES,
    PUBLIC_INCLUDES,
    WRITTEN,
    Include,
    booking_record,
    find_booking,
    include_for,
)
from bookings.services import Actor, customer_may_move
from common.api.views import Handler, found_or_404
from common.errors import NotFound, Refusal
from common.limits.rate_limit import customer_network
from common.openapi.component_registry import Json
from common.openapi.parameters import include_of

# Includes that a resource's key can't use: they may contain data of other resources, or are for
# staff alone.
OTHERS = frozenset({"resources", "project.resources", "bulked_bookings", "series", "note"})
INCLUDE_QUERY = {"include": include_of(INCLUDES)}
SERIES = INCLUDES["series"]


def _customer_links(booking: Booking, zone: str) -> Json:
    """Return signed links for the customer, by action: pay, cancel, reschedule, calendar."""
    graph = GRAPHS[booking.graph]
    actions = [action for action in graph.actions(booking.state) if action in CUSTOMER_ACTIONS]
    if customer_may_move(booking):
        actions.append(RESCHEDULE)
    if graph.takes_place(booking.state):
        actions.append(CALENDAR)
    payment = payment_address(booking)
    links = {PAY: payment} if payment else {}
    return links | {action: action_url(booking, action, booking.event.end) for action in actions}


# A public caller gets the links, also that of the video call, only in the response of the request
# that created the booking: with other bookings they would open what belongs to other customers.
CREATOR_INCLUDES = PUBLIC_INCLUDES | {
    "conference": INCLUDES["conference"],
    "customer_action_links": Include(
        "customer_action_links", ["event", "project"], write=_customer_links
    ),
}


class BookingScopedViewSet(TenantViewSet):
    """Visible bookings, includes and actor of a request."""

    # Actions of public callers that make something, so that they have limits and may need a
    # challenge; those that also count as attempts of the client's network; and those whose response
    # goes to the creator of the booking.
    limited_actions: ClassVar[frozenset[str]] = frozenset()
    counted_actions: ClassVar[frozenset[str]] = frozenset()
    creator_actions: ClassVar[frozenset[str]] = frozenset()
    has_solved_challenge = False  # a public caller's request has a solved challenge
    made_at_once = 1  # the units or seats of what the request makes, each of which counts

    def run(
        self, handler: Handler, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        is_limited = self.caller.is_widget and self.action in self.limited_actions
        if not is_limited or self.repeats_stored_answer(request):
            return super().run(handler, request, *args, **kwargs)
        try:
            self._admit_public(request)
            response = super().run(handler, request, *args, **kwargs)
        except Refusal as refusal:
            count_public_refusal(self.app, refusal, now=self.now)
            raise
        if "Idempotent-Replayed" not in response.headers:
            count_public_success(self.app, quantity=self.made_at_once, now=self.now)
        return response

    def _admit_public(self, request: Request) -> None:
        """Proof of work first: a request without it must not use up what others may do."""
        self.has_solved_challenge = use_challenge(self.app, request.data, now=self.now)
        if self.action in self.counted_actions:
            record_unknown_proxy(self.app, request, now=self.now)
            count_booking_attempt(self.app, network=customer_network(request), now=self.now)

    def check_public_limits(self, request: Request, *, holds: bool = False) -> PublicRequest | None:
        """Check the limits of a public caller whose body is valid; None for other callers."""
        if not self.caller.is_widget:
            return None
        public_request = PublicRequest(read_emails(request.data), self.has_solved_challenge)
        check_public_request(self.app, public_request, holds=holds, now=self.now)
        return public_request

    def bookings(self) -> QuerySet[Booking]:
        """The bookings that the caller may see."""
        return Booking.objects.for_app(self.app).filter(**self._scope())

    def _scope(self) -> dict[str, Any]:
        """The caller's restriction to some of the app's bookings."""
        caller = self.caller
        if caller.resource_id:
            return {"resource_id": caller.resource_id}
        if caller.projects is not None:
            return {"project__in": caller.projects}
        return {"project__isnull": False} if needs_project(self.app, caller) else {}

    def find_booking(self, booking_id: uuid.UUID, includes: list[Include]) -> Booking:
        """Return a booking that the caller may see, with its includes. Raises NotFound."""
        if self._scope() and not self.bookings().filter(id=booking_id).exists():
            raise NotFound("Booking")
        return found_or_404(find_booking(self.app, booking_id, includes), "Booking")

    def known_includes(self) -> Mapping[str, Include]:
        if self.caller.resource_id:
            return {name: include for name, include in INCLUDES.items() if name not in OTHERS}
        if self.caller.is_widget:
            return CREATOR_INCLUDES if self.action in self.creator_actions else PUBLIC_INCLUDES
        known = {
            name: include_for(
                include, people=self.caller.reads_people, links=self.caller.gets_customer_links
            )
            for name, include in INCLUDES.items()
        }
        if self.caller.projects is not None:
            del known["bulked_bookings"]  # of any project
        return known

    def includes(self, always: tuple[str, ...] = ()) -> list[Include]:
        """Return the includes of the request. Raises Invalid, and Forbidden for a note that the key
        may not read.
        """
        known = self.known_includes()
        names = dict.fromkeys([*always, *self.query.include(known)])
        if "note" in names:
            self.caller.check_scopes(Credential.PEOPLE_READ)
        return [known[name] for name in names]

    def includes_with_series(self, booking: Booking, includes: list[Include]) -> list[Include]:
        """Return the includes for a created booking: the first of a series includes the series."""
        unasked = booking.series_id and SERIES not in includes
        return [*includes, SERIES] if unasked else includes

    @property
    def actor(self) -> Actor:
        return Actor(name=self.caller.actor, source=self.caller.source)

    def check_is_visible(self, booking_id: uuid.UUID) -> None:
        """Raise NotFound if the booking is none that the caller may see."""
        if self._scope() and not self.bookings().filter(id=booking_id).exists():
            raise NotFound("Booking")

    def handle_exception(self, exc: Exception) -> Any:
        """Render the reasons of NotAvailable, which depend on the caller."""
        if isinstance(exc, NotAvailable):
            self.write_reasons(exc)
        return super().handle_exception(exc)

    def write_reasons(self, refusal: NotAvailable) -> None:
        record = public_reason_record if self.caller.is_bound_to_projects else reason_record
        refusal.fields["reasons"] = [record(reason) for reason in refusal.reasons]

    def answer_booking(self, booking: Booking, includes: list[Include], status: int) -> Response:
        """Return the response to the request that created or changed the booking."""
        if includes:
            booking = found_or_404(find_booking(self.app, booking.id, includes), "Booking")
        record = booking_record(booking, includes, self.zone, WRITTEN)
        return Response({"data": record}, status=status)
