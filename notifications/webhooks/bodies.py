"""The bodies of calls: the booking, and of calls to webhooks also the change."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from rest_framework import serializers

from apps_config.changes import present_cursor
from bookings.graphs import STATES
from bookings.models import Booking, StateChange
from bookings.serializers.responses import (
    ALL_INCLUDES,
    INCLUDES,
    WHOLE_BOOKING_EXAMPLE,
    BookingSerializer,
    booking_record,
    find_booking,
    with_includes,
)
from bookings.services import Transition
from common.api.fields import IdField, InstantField
from common.api.response_schemas import example_id
from common.api.serializers import ObjectSerializer
from common.db.compiled_query import set_relation
from common.openapi.component_registry import Json
from common.openapi.components import SpanSerializer
from notifications.calendar_problems import CALENDAR_PROBLEM_EVENT
from notifications.models import Webhook

WHOLE_BOOKING = [INCLUDES[name] for name in ALL_INCLUDES]
TEST_EVENT = "webhook.test"


class PreviousResourceSerializer(ObjectSerializer):
    """A resource that a booking had before a move."""

    examples = {"id": example_id(11), "name": "Dr. Holm", "requirement": "dentist"}

    id = IdField()
    name = serializers.CharField()
    requirement = serializers.CharField(
        allow_null=True, help_text="The name of the requirement that it met; null without."
    )


class PreviousTimeSerializer(SpanSerializer):
    """The time and the resources of a booking before a move."""

    examples = {"resource_id": example_id(11)}

    resource_id = IdField(help_text="Of the main resource.")
    resources = PreviousResourceSerializer(
        many=True,
        allow_null=True,
        help_text="The former resources, the main one first; null if the move kept them.",
    )


class ChangeSerializer(ObjectSerializer):
    """The change that a call is about."""

    examples = {
        "kind": "booking.confirmed",
        "action": "confirm",
        "from_state": "tentative",
        "actor": "server key 0193a4c2",
        "source": "api",
    }

    kind = serializers.CharField(help_text="The value of `Service-Event`.")
    at = InstantField()
    action = serializers.CharField(help_text="`update` for changed fields.")
    from_state = serializers.ChoiceField(list(STATES))
    actor = serializers.CharField()
    source = serializers.ChoiceField(StateChange.SOURCES)  # type: ignore[assignment]  # as `data`
    message = serializers.CharField()
    previous = PreviousTimeSerializer(
        allow_null=True, help_text="null unless the booking was moved."
    )


class BookingCallSerializer(BookingSerializer):
    """The booking of GET /v2/bookings/:id, and the change that the call is about."""

    examples = {"cursor": "10481-5d0c7a19e2f44b83"}

    change = ChangeSerializer()
    cursor = serializers.CharField(
        help_text="GET /v2/changes lists this change, and perhaps some before it, after the cursor."
    )


CALL_EXAMPLE = WHOLE_BOOKING_EXAMPLE | {
    "change": ChangeSerializer.example(),
    "cursor": "10481-5d0c7a19e2f44b83",
}


class PreviousResource(NamedTuple):
    id: UUID
    name: str
    requirement: str | None


class PreviousTime(NamedTuple):
    start: datetime
    end: datetime
    resource_id: UUID
    resources: Sequence[PreviousResource] | None


class Change(NamedTuple):
    """The row of a ChangeSerializer."""

    kind: str
    at: datetime
    action: str
    from_state: str
    actor: str
    source: str
    message: str
    previous: PreviousTime | None

    @classmethod
    def of(cls, change: StateChange, kind: str, previous: PreviousTime | None = None) -> "Change":
        names = ("action", "from_state", "actor", "source", "message")
        values = {name: getattr(change, name) for name in names}
        return cls(kind=kind, at=change.created_at, previous=previous, **values)


def bodies_of_changes(kinds: Mapping[Transition, str]) -> dict[Transition, str]:
    """Return the bodies of the calls about transitions; kinds: values of `Service-Event`.

    Those of new bookings are rendered from the rows that the request has read and written: to read
    the whole booking again takes a fifth of the time of POST /bookings (docs/benchmarks.md, N1).
    """
    if not kinds:
        return {}
    read = _read_whole([each.booking for each in kinds if not each.is_first])
    cursor = present_cursor(next(iter(kinds)).booking.app_id)
    bodies = {}
    for transition, kind in kinds.items():
        booking = (
            _written_booking(transition) if transition.is_first else read[transition.booking.id]
        )
        change = Change.of(transition.change, kind, _previous_time(transition))
        bodies[transition] = render_call(booking, change, cursor)
    return bodies


def _previous_time(transition: Transition) -> PreviousTime | None:
    if transition.moved_from is None:
        return None
    moved = transition.reassigned
    if moved is None:
        return PreviousTime(*transition.moved_from, transition.booking.resource_id, None)
    former = [
        PreviousResource(resource.id, resource.name, name)
        for resource, name in zip(moved.before, moved.names_before, strict=True)
    ]
    return PreviousTime(*transition.moved_from, former[0].id, former)


def _written_booking(transition: Transition) -> Booking:
    """Return the new booking with the relations that its record needs."""
    booking: Any = transition.booking
    booking.current_seats = None if booking.max_seats is None else 0
    set_relation(booking, "customers", list(transition.customers))
    set_relation(booking, "event_notifications", list(transition.notifications))
    return booking


def _read_whole(bookings: Collection[Booking]) -> dict[UUID, Booking]:
    if len(bookings) == 1:
        (booking,) = bookings
        found: Sequence[Booking | None] = [find_booking(booking.app, booking.id, WHOLE_BOOKING)]
    else:
        ids = [booking.id for booking in bookings]
        found = [*with_includes(Booking.objects.filter(id__in=ids), WHOLE_BOOKING)] if ids else []
    return {booking.id: booking for booking in found if booking}


def body_of_test_call(newest: Booking | None) -> str:
    """Return the body of a test call: the newest booking with its last change, or examples."""
    if newest is None:
        return body_with_kind(_as_text(CALL_EXAMPLE), TEST_EVENT)
    change = newest.logs.latest("id")
    booking = _read_whole([newest])[newest.id]
    return render_call(booking, Change.of(change, TEST_EVENT), present_cursor(newest.app_id))


def render_body(booking: Booking) -> str:
    """Return the body: the current record of GET /bookings/:id in UTC, without its wrapper.

    booking: read with WHOLE_BOOKING.
    """
    return _as_text(booking_record(booking, WHOLE_BOOKING, "UTC"))


def render_call(booking: Booking, change: Change, cursor: str) -> str:
    """Return the body of a call to a webhook, with the change and the cursor before it."""
    record = booking_record(booking, WHOLE_BOOKING, "UTC")
    return _as_text(record | {"change": ChangeSerializer.render(change), "cursor": cursor})


def formatted(body: str, webhook_format: str | None, *, kind: str, at: datetime) -> str:
    """Return the body in the format of the webhook.

    kind: the value of `Service-Event`. at: the time of the change, unless the body has it.
    """
    if not webhook_format:
        return body
    record = json.loads(body)
    if webhook_format == Webhook.STANDARD:
        at = datetime.fromisoformat(record["at"]) if "at" in record else at
        return _as_text({"type": kind, "timestamp": at.isoformat(), "data": record})
    about = record.get("calendar", record) if kind == CALENDAR_PROBLEM_EVENT else record
    id_of_object = about.get("object_id", about["id"])
    return _as_text({"kind": kind, "id": id_of_object, "cursor": record.get("cursor")})


def body_with_kind(body: str, kind: str) -> str:
    """Return a rendered body of a change with another `kind`."""
    record = json.loads(body)
    return _as_text(record | {"change": record["change"] | {"kind": kind}})


def _as_text(record: Json) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))
