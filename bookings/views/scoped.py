"""What the endpoints of bookings share."""

import uuid
from typing import Any

from rest_framework.response import Response

from apps_config.endpoints import TenantView
from availability.answers import public_reason_record, reason_record
from availability.placement import NotAvailable
from bookings.models import Booking
from bookings.records import (
    INCLUDES,
    PUBLIC_INCLUDES,
    Include,
    changed_record,
    with_includes,
)
from bookings.services import Actor
from scheduling.api.errors import NotFound
from scheduling.api.schema import include_of

# What a resource's key may include: not the other resources of a project.
OTHERS = frozenset({"project.resources", "bulked_bookings", "series"})  # may show another's
INCLUDE_QUERY = {"include": include_of(INCLUDES)}
SERIES = INCLUDES["series"]


class BookingScopedView(TenantView):
    """What all booking endpoints share: whose bookings, which includes, who acts."""

    resource_methods = frozenset({"GET", "POST", "PUT", "DELETE"})

    def bookings(self) -> Any:
        """The bookings that the caller may see."""
        rows = Booking.objects.for_app(self.app)
        only = self.caller.resource_id
        return rows.filter(resource_id=only) if only else rows

    def known_includes(self) -> dict[str, Include]:
        if self.caller.resource_id:
            return {name: one for name, one in INCLUDES.items() if name not in OTHERS}
        return PUBLIC_INCLUDES if self.caller.is_widget else INCLUDES

    def includes(self, default: tuple[str, ...] = ()) -> list[Include]:
        known = self.known_includes()
        names = dict.fromkeys([*default, *self.query.include(known)])
        return [known[name] for name in names]

    def includes_of_new(self, booking: Booking, includes: list[Include]) -> list[Include]:
        """The first booking of a series shows the whole series unasked."""
        unasked = booking.series_id and SERIES not in includes
        return [*includes, SERIES] if unasked else includes

    @property
    def actor(self) -> Actor:
        return Actor(name=self.caller.actor, source=self.caller.source)

    def check_is_visible(self, booking_id: uuid.UUID) -> None:
        """A resource's key may touch that resource's bookings only."""
        if self.caller.resource_id and not self.bookings().filter(id=booking_id).exists():
            raise NotFound("Booking")

    def answer(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Reasons are written here: what they say depends on who asks."""
        try:
            return super().answer(request, *args, **kwargs)
        except NotAvailable as refusal:
            self.write_reasons(refusal)
            raise

    def write_reasons(self, refusal: NotAvailable) -> None:
        record = public_reason_record if self.caller.is_widget else reason_record
        refusal.fields["reasons"] = [record(reason) for reason in refusal.reasons]

    def answer_booking(self, booking: Booking, includes: list[Include], status: int) -> Response:
        """The answer to the request that made or changed it."""
        if includes:
            rows = with_includes(Booking.objects.select_related("event"), includes)
            booking = rows.get(id=booking.id)
        record = changed_record(booking, includes, self.zone)
        return Response({"data": record}, status=status)
