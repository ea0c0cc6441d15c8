"""Bookings in responses, and the rows that each include needs (api.md section 4)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import (
    Case,
    IntegerField,
    OuterRef,
    Prefetch,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
    prefetch_related_objects,
)
from django.db.models.functions import Coalesce
from rest_framework import serializers

from apps_config.models import App
from apps_config.serializers import EventNotificationSerializer
from availability.conferences import PROVIDERS
from availability.models import Resource
from availability.serializers.calendars import CalendarSerializer, visible_calendars
from availability.serializers.events import NO_EVENT_TEXTS, EventSerializer
from availability.serializers.projects import (
    PROJECT_EXAMPLE,
    BookingDefaultsSerializer,
    CustomerFieldsField,
    ProjectAvailabilitySerializer,
    ProjectSettingsSerializer,
)
from availability.serializers.resources import (
    RESOURCE_EXAMPLE,
    PublicResourceSerializer,
    ResourceSerializer,
)
from bookings.conferences import PROBLEMS, MissingLinks, conference_url, has_conference
from bookings.graphs import CUSTOMER_ACTIONS, GRAPHS, SEATED, STATES
from bookings.models import (
    OUTCOMES,
    BookedStep,
    Booking,
    Customer,
    Series,
    StateChange,
    further_events,
)
from bookings.pages.action_links import PAY, action_url, payment_address
from bookings.serializers.bodies import BookingSettingsSerializer
from bookings.serializers.customers import CustomerSerializer
from common.api.fields import IdField, InstantField, OneOfField, StampField
from common.api.response_schemas import END_EXAMPLE, START_EXAMPLE, example_id
from common.api.serializers import ALL, ObjectSerializer, Write, writer_of
from common.db.compiled_query import FixedQuery, prefetch_relation
from common.openapi.component_registry import Json
from common.openapi.components import ErrorOfOneField, SpanSerializer

# --- Parts of a booking ---------------------------------------------------------------------------
# Fields hidden from widget keys.
OWN_EVENT_INFO = ("description", "calendar_id", "invite", "participants")
OWN_ATTRIBUTES = ("customer", "settings")


class EventInfoSerializer(SpanSerializer):
    examples = {
        "what": "Check-up",
        "where": "Harbour Dental",
        "calendar_id": example_id(12),
        "invite": True,
    }
    on_request = by_default = in_example = OWN_EVENT_INFO

    what = serializers.CharField()
    where = serializers.CharField()
    description = serializers.CharField()
    calendar_id = IdField()
    invite = serializers.BooleanField()
    participants = serializers.ListField(child=serializers.CharField())


class GroupSeatsSerializer(ObjectSerializer):
    examples = {"max_seats": 8}
    on_request = ("places",)

    max_seats = serializers.IntegerField(min_value=1)
    current_seats = serializers.IntegerField(min_value=0, help_text="The number of booked seats.")
    places = serializers.DictField(
        child=serializers.IntegerField(min_value=1),
        help_text="The seats of each place. Absent without places.",
    )

    @classmethod
    def render(
        cls, row: Booking, zone: str = "UTC", include: Collection[str] | None = None
    ) -> Json:
        return super().render(row, zone, ["places"] if row.places else ())


def _itself(booking: Booking) -> Booking:
    return booking


def _group(booking: Booking) -> Booking | None:
    return None if booking.max_seats is None else booking


class BookingAttributesSerializer(ObjectSerializer):
    """Widget keys see only start, end, what and where of `event_info`."""

    examples = {"customer": CustomerSerializer.example()}
    on_request = by_default = in_example = OWN_ATTRIBUTES

    event_info = EventInfoSerializer(source="event")
    customer = CustomerSerializer(allow_null=True)
    settings = BookingSettingsSerializer()
    group_booking = GroupSeatsSerializer(
        allow_null=True, help_text="The seats of a group; null for other bookings."
    )

    get_settings = staticmethod(_itself)
    get_group_booking = staticmethod(_group)

    @staticmethod
    def get_customer(booking: Booking) -> Customer | None:
        return next(iter(booking.customers.all()), None)


class PublicEventSerializer(ObjectSerializer):
    """What a widget key sees of a booking's event."""

    examples = {"end": END_EXAMPLE}

    id = IdField()
    calendar_id = IdField()
    what = serializers.CharField()
    where = serializers.CharField()
    start = InstantField()
    end = InstantField()


class ProjectOfBookingSerializer(ObjectSerializer):
    examples = {"id": PROJECT_EXAMPLE["id"], "slug": "check-up", "name": "Check-up"}
    on_request = ("resources",)

    id = IdField()
    slug = serializers.CharField()
    name = serializers.CharField()
    availability = ProjectAvailabilitySerializer()
    booking = BookingDefaultsSerializer()
    customer_fields = CustomerFieldsField()
    ui = serializers.DictField()
    settings = ProjectSettingsSerializer()
    meta = serializers.DictField()
    created_at = StampField()
    updated_at = StampField()
    resources = ResourceSerializer(
        many=True, source="shown_resources", help_text="With include=project.resources."
    )


class LogEntrySerializer(ObjectSerializer):
    examples = {
        "from_state": "initialized",
        "to_state": "confirmed",
        "action": "confirm",
        "actor": "server key 0193a4c2",
    }

    from_state = serializers.ChoiceField(list(STATES))
    to_state = serializers.ChoiceField(list(STATES))
    action = serializers.CharField()
    actor = serializers.CharField()
    source = serializers.ChoiceField(StateChange.SOURCES)  # type: ignore[assignment]  # as `data`
    message = serializers.CharField()
    created_at = StampField()


class ProviderEventSerializer(ObjectSerializer):
    """The booking's event in a connected calendar; null without one."""

    examples = {
        "calendar_id": example_id(12),
        "provider": "caldav",
        "provider_id": f"{example_id(30)}@bookings.example.com",
        "state": "written",
        "start": START_EXAMPLE,
        "end": END_EXAMPLE,
        "written_at": "2026-11-20T09:30:02+0000",
    }

    calendar_id = IdField()
    provider = serializers.CharField(source="calendar.provider")
    provider_id = serializers.CharField(source="uid", help_text="The event's UID at the provider.")
    state = serializers.ChoiceField(
        ["pending", "written", "removed", "moved_there", "removed_there", "refused"],
        help_text="`moved_there`, `removed_there`: the event was moved or removed in the external"
        " calendar, and the booking is unchanged. `refused`: the booking could not be moved.",
    )
    reason = serializers.CharField(allow_null=True)
    start = InstantField(allow_null=True, help_text="The time in the external calendar.")
    end = InstantField(allow_null=True)
    written_at = StampField(allow_null=True)


class ConferenceSerializer(ObjectSerializer):
    """The video call of a booking that takes place; null without one."""

    examples = {
        "provider": "jitsi",
        "url": "https://meet.jit.si/5f2b9c7d0e4a41d8a6f3b1c2d4e5f607",
    }

    provider = serializers.ChoiceField(PROVIDERS)
    url = serializers.URLField(
        allow_null=True, help_text="The link; null until the connected calendar has made it."
    )
    problem = serializers.ChoiceField(
        PROBLEMS,
        allow_null=True,
        help_text="Why no link is on its way: `no_calendar`, the booking is not written to a"
        " connected calendar of the provider; `calendar_problem`, that calendar has a `problem`;"
        " `not_offered`, its account has no such video calls.",
    )


class Occurrence(NamedTuple):
    """One occurrence of a series: a booking, or the reason why there is none."""

    start: datetime
    end: datetime
    booking_id: UUID | None = None
    reason: str | None = None


class OccurrenceSerializer(SpanSerializer):
    examples = {"booking_id": example_id(30)}
    on_request = ("booking_id", "reason")

    booking_id = IdField()
    reason = serializers.CharField()

    @classmethod
    def render(cls, row: Occurrence, zone: str = "UTC", *_: Any) -> Json:
        return super().render(row, zone, ["booking_id" if row.booking_id else "reason"])


class SeriesSerializer(ObjectSerializer):
    examples = {
        "id": example_id(40),
        "rrule": "FREQ=WEEKLY;COUNT=2",
        "occurrences": [
            OccurrenceSerializer.example("booking_id"),
            {
                "start": "2026-11-30T09:00:00+01:00",
                "end": "2026-11-30T09:30:00+01:00",
                "reason": "slot_taken",
            },
        ],
    }

    id = IdField()
    rrule = serializers.CharField()
    occurrences = OccurrenceSerializer(
        many=True, help_text="Ordered by start: a booking, or the reason why there is none."
    )

    @staticmethod
    def get_occurrences(series: Series) -> list[Occurrence]:
        made = [
            Occurrence(booking.event.start, booking.event.end, booking_id=booking.id)
            for booking in series.shown_bookings
        ]
        skipped = [
            Occurrence(
                datetime.fromisoformat(each["start"]),
                datetime.fromisoformat(each["end"]),
                reason=each["reason"],
            )
            for each in series.skipped
        ]
        return sorted(made + skipped, key=attrgetter("start"))


# --- Bookings -------------------------------------------------------------------------------------
class BookingEntrySerializer(ObjectSerializer):
    """The seven fields of a booking in lists."""

    examples = {"id": example_id(30), "state": "confirmed", "graph": "instant"}

    id = IdField()
    external_id = serializers.CharField(
        allow_null=True, help_text="Its id in the client's own system."
    )
    state = serializers.ChoiceField(list(STATES))
    graph = serializers.ChoiceField(list(GRAPHS))
    completed = serializers.BooleanField(help_text="No action is possible.")
    created_at = StampField()
    updated_at = StampField()


class SeatSerializer(BookingEntrySerializer):
    """The seven fields of every booking, and whose it is."""

    customers = CustomerSerializer(many=True)


class BookedStepSerializer(ObjectSerializer):
    """A step of a visit."""

    examples = {"name": "cleaning", "end": END_EXAMPLE}

    name = serializers.CharField()
    start = InstantField()
    end = InstantField()
    resources = PublicResourceSerializer(many=True)


class BookingSerializer(BookingEntrySerializer):
    """Seven fields and the parts in `include`. Responses to requests that create or change a
    booking also contain `resource_id`, `project_id`, `start` and `end`."""

    examples = {
        "resource_id": RESOURCE_EXAMPLE["id"],
        "end": END_EXAMPLE,
        "event": EventSerializer.example(
            what="Check-up", where="Harbour Dental", start=START_EXAMPLE, end=END_EXAMPLE
        ),
        "quantity": 1,
        "party_size": None,
        "place": None,
        "available_actions": ["cancel", "cancel_by_customer", "complete"],
        "customer_action_links": {
            "cancel_by_customer": f"https://bookings.example.com/v2/bookings/{example_id(30)}"
            "/external_action/cancel_by_customer"
            "?signature=1795597200.W9hY0T0mC6nnAPGxQvDqWr6d2yPHVlNQn4gJ3EIh5xQ"
        },
        "project": None,
    }
    on_request = ALL

    resource_id = IdField()
    project_id = IdField(allow_null=True)
    start = InstantField(source="event.start")
    end = InstantField(source="event.end")
    attributes = BookingAttributesSerializer(source="*")
    event = OneOfField(EventSerializer(), PublicEventSerializer())
    calendar = CalendarSerializer(source="event.calendar")
    resource = OneOfField(ResourceSerializer(), PublicResourceSerializer())
    user = OneOfField(
        ResourceSerializer(),
        PublicResourceSerializer(),
        source="resource",
        help_text="An alias of `resource`.",
    )
    resources = serializers.ListField(
        child=OneOfField(ResourceSerializer(), PublicResourceSerializer()),
        help_text="Of a booking that needs several: all of them, in the order of the project's"
        " `requires`. Other bookings: `resource` alone.",
    )
    steps = BookedStepSerializer(
        many=True, help_text="Of a visit, in the order of their times; [] for other bookings."
    )
    customers = CustomerSerializer(many=True)
    project = ProjectOfBookingSerializer(allow_null=True)
    meta = serializers.DictField()
    note = serializers.CharField(
        allow_null=True, help_text="The internal note; null without one. Only with include=note."
    )
    outcome = serializers.ChoiceField(
        OUTCOMES, allow_null=True, help_text="Whether the customer came; null if unknown."
    )
    quantity = serializers.IntegerField(
        min_value=1, source="units", help_text="The units of the resource, or seats, that it takes."
    )
    party_size = serializers.IntegerField(
        allow_null=True, help_text="The people who come; null if not given."
    )
    place = serializers.CharField(
        allow_null=True, help_text="The place of its seats, in a group with places."
    )
    logs = LogEntrySerializer(many=True, help_text="Oldest first.")
    available_actions = serializers.ListField(child=serializers.CharField())
    customer_action_links = serializers.DictField(
        child=serializers.URLField(),
        help_text="By action: a signed link for the customer, valid until the end of the booking."
        " `pay`: the link to the project's payment page while the payment is awaited.",
    )
    event_notifications = EventNotificationSerializer(many=True)
    owner_booking = BookingEntrySerializer(
        allow_null=True, help_text="For a seat: the group's booking."
    )
    seats = SeatSerializer(
        many=True,
        allow_null=True,
        help_text="The seats of a group in all states, ordered by creation; null for other"
        " bookings.",
    )
    bulked_bookings = BookingEntrySerializer(
        many=True, help_text="The other related bookings of the bulk request."
    )
    series = SeriesSerializer(allow_null=True)
    full = serializers.BooleanField(
        help_text="In GET /v2/bookings/groups: no seat is free; else absent."
    )
    conference = ConferenceSerializer(allow_null=True)
    # `external_calendars` registers an include that renders it.
    provider_event = ProviderEventSerializer(allow_null=True)

    @staticmethod
    def get_resources(booking: Booking) -> Sequence[Resource]:
        return booking.all_resources()

    @staticmethod
    def get_steps(booking: Booking) -> list[BookedStep]:
        return booking.steps()

    @staticmethod
    def get_available_actions(booking: Booking) -> list[str]:
        return GRAPHS[booking.graph].actions(booking.state)

    @staticmethod
    def get_customer_action_links(booking: Booking) -> dict[str, str]:
        """Signed links for the customer's actions by action; none if the state has none."""
        payment = payment_address(booking)
        links = {PAY: payment} if payment else {}
        return links | {
            action: action_url(booking, action, booking.event.end)
            for action in GRAPHS[booking.graph].actions(booking.state)
            if action in CUSTOMER_ACTIONS
        }

    @staticmethod
    def get_owner_booking(booking: Booking) -> Booking | None:
        owner = booking.owner_booking
        return owner if owner and owner.deleted_at is None else None

    @staticmethod
    def get_seats(booking: Booking) -> Sequence[Booking] | None:
        return None if booking.max_seats is None else booking.shown_seats

    @staticmethod
    def get_bulked_bookings(booking: Booking) -> list[Booking]:
        others = booking.bulk.shown_bookings if booking.bulk else ()
        return [other for other in others if other.id != booking.id]

    @staticmethod
    def get_conference(booking: Booking) -> Json | None:
        if not has_conference(booking):
            return None
        return {
            "provider": booking.event.conference_provider,
            "url": conference_url(booking) or None,
            "problem": MissingLinks([booking]).problem(booking) or None,
        }

    @staticmethod
    def get_provider_event(booking: Booking) -> None:
        return None


# Also in the response of the request that created or changed the booking.
WRITTEN = ("resource_id", "project_id", "start", "end")
# Includes of GET /bookings/:id by default.
ALL_INCLUDES = (
    *("attributes", "event", "calendar", "resource", "customers", "project", "meta", "outcome"),
    *("quantity", "party_size", "place"),
    *("conference", "available_actions", "customer_action_links", "event_notifications"),
)
WHOLE_BOOKING_EXAMPLE = BookingSerializer.example(*ALL_INCLUDES)


class BulkOutcomeSerializer(ObjectSerializer):
    """A booking, or why there is none: one of the two."""

    examples = {"status": 201, "booking": BookingSerializer.example(*WRITTEN)}
    on_request = ("booking", "error")
    in_example = ("booking",)

    status = serializers.IntegerField(
        help_text="The status that a single request would have returned."
    )
    booking = BookingSerializer()
    error = ErrorOfOneField()


class UnverifiedSerializer(ObjectSerializer):
    """A hold until the customer's e-mail address is verified."""

    examples = {"reservation_id": example_id(41), "expires_at": "2026-11-20T10:45:00+01:00"}

    reservation_id = IdField(source="id")
    expires_at = InstantField()
    verification = serializers.ChoiceField(["email"])

    @staticmethod
    def get_verification(_: Any) -> str:
        return "email"


class PersonExportSerializer(ObjectSerializer):
    examples = {"email": "marty@example.com", "bookings": [WHOLE_BOOKING_EXAMPLE], "events": []}

    email = serializers.CharField(help_text="The requested address.")
    note = serializers.CharField(allow_null=True, help_text="The internal note on the customer.")
    bookings = BookingSerializer(
        many=True, help_text="Complete bookings with `logs`, with only this customer."
    )
    events = EventSerializer(
        many=True,
        help_text="Other events that contain the address, with only this participant.",
    )
    unverified_bookings = serializers.ListField(
        child=serializers.DictField(),
        help_text="What was typed for bookings that wait for the code of an e-mail, or were"
        " abandoned in the last day.",
    )
    deliveries = serializers.ListField(
        child=serializers.DictField(),
        help_text="As in GET /deliveries/:id, with `content`: the data of the e-mail, or the URL"
        " of the event notification.",
    )
    suppressions = serializers.ListField(
        child=serializers.DictField(),
        help_text="Why the address gets no e-mails, or no reminders.",
    )


# --- Includes -------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Include:
    """One name of `include`. Equal to itself only, so that queries are kept by their includes.

    key: the field of the booking. joins, prefetches, counts: what its query needs. write: renders
    the field from a booking and a zone if `BookingSerializer` does not.
    """

    key: str
    joins: Sequence[str] = ()
    prefetches: Sequence[Any] = ()
    counts: Mapping[str, Any] = dataclass_field(default_factory=dict)
    write: Write | None = None


def _calendars() -> Prefetch:
    return Prefetch("resource__calendars", visible_calendars(), to_attr="shown_calendars")


def _resources() -> Prefetch:
    rows = Resource.objects.filter(deleted_at=None).order_by(
        "project_resources__position", "project_resources__id"
    )
    return Prefetch("project__resources", rows, to_attr="shown_resources")


def _siblings(path: str) -> Prefetch:
    """Prefetch the bookings of the bulk or series that are not deleted, ordered by start."""
    rows = Booking.objects.filter(deleted_at=None).select_related("event")
    return Prefetch(path, rows.order_by("event__start", "id"), to_attr="shown_bookings")


def _group_seats() -> Prefetch:
    """Prefetch the seats that are not deleted, ordered by creation."""
    rows = Booking.objects.filter(deleted_at=None).prefetch_related("customers")
    return Prefetch("seats", rows.order_by("created_at", "id"), to_attr="shown_seats")


# The number of occupied seats of a group; NULL for other bookings.
CURRENT_SEATS: Mapping[str, Any] = {
    "current_seats": Case(
        When(
            max_seats__isnull=False,
            then=Coalesce(
                Subquery(
                    Booking.objects.filter(
                        owner_booking=OuterRef("id"), state__in=SEATED, deleted_at=None
                    )
                    .order_by()
                    .values("owner_booking")
                    .annotate(count=Sum(Coalesce("quantity", Value(1))))
                    .values("count")
                ),
                0,
            ),
        ),
        output_field=IntegerField(),
    )
}


def _resource_with_calendars(booking: Booking, zone: str) -> Json:
    return ResourceSerializer.render(booking.resource, include=("calendars",))


def _project_with_resources(booking: Booking, zone: str) -> Json | None:
    project = booking.project
    return ProjectOfBookingSerializer.render(project, include=("resources",)) if project else None


INCLUDES: dict[str, Include] = {
    "attributes": Include("attributes", ["event"], ["customers"], CURRENT_SEATS),
    "event": Include("event", ["event", "event__resource"]),
    "calendar": Include("calendar", ["event__calendar", "event__calendar__connection"]),
    "resource": Include("resource", ["resource"]),
    "resource.calendars": Include(
        "resource", ["resource"], [_calendars()], write=_resource_with_calendars
    ),
    "user": Include("user", ["resource"]),
    "resources": Include("resources", ["event", "resource"], [further_events()]),
    "steps": Include("steps", ["event", "resource"], [further_events()]),
    "customers": Include("customers", (), ["customers"]),
    "project": Include("project", ["project"]),
    "project.resources": Include(
        "project", ["project"], [_resources()], write=_project_with_resources
    ),
    "meta": Include("meta"),
    # On request alone: what contains a whole booking, such as a webhook call, has no note.
    "note": Include("note"),
    "outcome": Include("outcome"),
    "quantity": Include("quantity"),
    "party_size": Include("party_size"),
    "place": Include("place"),
    "logs": Include("logs", (), ["logs"]),
    "conference": Include("conference", ["event"]),
    "available_actions": Include("available_actions"),
    "customer_action_links": Include("customer_action_links", ["event", "project"]),
    "event_notifications": Include("event_notifications", (), ["event_notifications"]),
    "owner_booking": Include("owner_booking", ["owner_booking"]),
    "seats": Include("seats", (), [_group_seats()]),
    "bulked_bookings": Include("bulked_bookings", ["bulk"], [_siblings("bulk__bookings")]),
    "series": Include("series", ["series"], [_siblings("series__bookings")]),
    "provider_event": Include("provider_event"),
}


def register_include(include: Include) -> None:
    """Register an include of a layer above, which renders a key that is only declared here."""
    INCLUDES[include.key] = include


def _public_attributes(booking: Booking, zone: str) -> Json:
    """Render without customer data and free text: a widget key is used on public pages."""
    record = BookingAttributesSerializer.render(booking, zone, ())
    return record | {"event_info": EventInfoSerializer.render(booking.event, zone, ())}


def _public_resource(booking: Booking, zone: str) -> Json:
    return PublicResourceSerializer.render(booking.resource)


def _public_resources(booking: Booking, zone: str) -> list[Json]:
    return [PublicResourceSerializer.render(resource) for resource in booking.all_resources()]


def _public_event(booking: Booking, zone: str) -> Json:
    return PublicEventSerializer.render(booking.event, zone)


# The includes of widget keys, and their restricted content.
PUBLIC_INCLUDES: dict[str, Include] = {
    "attributes": Include("attributes", ["event"], (), CURRENT_SEATS, _public_attributes),
    "event": Include("event", ["event"], write=_public_event),
    "resource": Include("resource", ["resource"], write=_public_resource),
    "user": Include("user", ["resource"], write=_public_resource),
    "resources": Include(
        "resources", ["event", "resource"], [further_events()], write=_public_resources
    ),
    "steps": INCLUDES["steps"],
    "available_actions": INCLUDES["available_actions"],
    "quantity": INCLUDES["quantity"],
    "party_size": INCLUDES["party_size"],
    "place": INCLUDES["place"],
}


# --- Without people -------------------------------------------------------------------------------
# What a key without the scope `people:read` sees: no address, phone, note, answer or other text of
# a customer or about one, and no link that acts for them. Names stay.
NO_PERSON: Json = {"external_id": None, "email": "", "phone": "", "voip": "", "meta": {}}


def without_person(customer: Json | None) -> Json | None:
    """Return the record of a customer without what reaches or describes the person."""
    return customer and customer | NO_PERSON


def _attributes_without_people(attributes: Json) -> Json:
    return attributes | {
        "event_info": attributes["event_info"] | NO_EVENT_TEXTS,
        "customer": without_person(attributes["customer"]),
    }


def _seats_without_people(seats: list[Json] | None) -> list[Json] | None:
    return seats and [
        seat | {"customers": [without_person(customer) for customer in seat["customers"]]}
        for seat in seats
    ]


# Field -> what is left of its value.
WITHOUT_PEOPLE: Mapping[str, Callable[[Any], Any]] = {
    "attributes": _attributes_without_people,
    "event": lambda event: event | NO_EVENT_TEXTS,
    "customers": lambda customers: [without_person(customer) for customer in customers],
    "meta": lambda _: {},
    "logs": lambda logs: [entry | {"message": ""} for entry in logs],
    "seats": _seats_without_people,
}
NO_LINKS = replace(INCLUDES["customer_action_links"], write=lambda booking, zone: {})


@lru_cache(maxsize=128)  # equal to itself only, see `Include`
def without_people(include: Include) -> Include:
    """Return the include for a key that may not read people."""
    reduce = WITHOUT_PEOPLE.get(include.key)
    if reduce is None:
        return include
    write_field = writer_of(BookingSerializer, (include.key,))

    def write(booking: Booking, zone: str) -> Any:
        return reduce(write_field(booking, zone)[include.key])

    return replace(include, write=write)


def include_for(include: Include, *, people: bool, links: bool) -> Include:
    """Return the include for a caller. people: who may read them. links: who may act for them."""
    if include.key == NO_LINKS.key and not links:
        return NO_LINKS
    return include if people else without_people(include)


def with_includes(bookings: QuerySet[Booking], includes: Collection[Include]) -> QuerySet[Booking]:
    """Add what the includes need to the query: joins, else one query each."""
    joins = {join for include in includes for join in include.joins}
    lookups = dict.fromkeys(lookup for include in includes for lookup in include.prefetches)
    bookings = bookings.prefetch_related(*lookups)
    for include in includes:
        bookings = bookings.annotate(**include.counts)
    return bookings.select_related(*joins) if joins else bookings


def find_booking(app: App, booking_id: UUID, includes: Collection[Include]) -> Booking | None:
    """The app's booking that is not deleted, with what the includes need."""
    bookings = _booking_query(tuple(includes))(app.id, booking_id)
    if not bookings:
        return None
    lookups = dict.fromkeys(lookup for include in includes for lookup in include.prefetches)
    for name in lookups:
        if isinstance(name, str):
            prefetch_relation(bookings[0], name)
    prefetch_related_objects(bookings, *[each for each in lookups if not isinstance(each, str)])
    return bookings[0]


@lru_cache(maxsize=128)
def _booking_query(includes: tuple[Include, ...]) -> FixedQuery:
    def build(app_id: UUID, booking_id: UUID) -> QuerySet[Booking]:
        rows = Booking.objects.for_app(app_id).filter(id=booking_id).select_related("event")
        return with_includes(rows, includes).prefetch_related(None)

    return FixedQuery(build)


def booking_record(
    booking: Booking, includes: Collection[Include], zone: str, unasked: Collection[str] = ()
) -> Json:
    """Render the list fields, those in `unasked` and the includes; times in `zone`."""
    return booking_writer(includes, zone, unasked)(booking)


def booking_writer(
    includes: Collection[Include], zone: str, unasked: Collection[str] = ()
) -> Callable[[Booking], Json]:
    """Return a function that renders as `booking_record` does, for many bookings."""
    names = [*unasked, *[include.key for include in includes if include.write is None]]
    write_fields = writer_of(BookingSerializer, tuple(names))
    others = [(include.key, include.write) for include in includes if include.write]

    def write(booking: Booking) -> Json:
        record = write_fields(booking, zone)
        for key, write_value in others:
            record[key] = write_value(booking, zone)
        return record

    return write
