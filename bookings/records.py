"""Bookings and customers in answers, and the rows that each include needs (api.md section 4)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import (
    Case,
    Count,
    IntegerField,
    OuterRef,
    Prefetch,
    QuerySet,
    Subquery,
    When,
    prefetch_related_objects,
)
from django.db.models.functions import Coalesce

from apps_config.models import App
from apps_config.records import EventNotificationRecord
from availability.models import Resource
from availability.records import (
    PROJECT_EXAMPLE,
    QUESTIONS,
    RESOURCE_EXAMPLE,
    BookingDefaultsRecord,
    CalendarRecord,
    CustomerFieldRecord,
    EventRecord,
    ProjectAvailabilityRecord,
    ProjectSettingsRecord,
    PublicResourceRecord,
    ResourceRecord,
    visible_calendars,
)
from bookings.graphs import CUSTOMER_ACTIONS, GRAPHS, SEATED, STATES
from bookings.models import OUTCOMES, Booking, Series, StateChange, further_events
from bookings.pages.action_links import PAY, action_url, payment_address
from common.api.response_records import (
    END_EXAMPLE,
    START_EXAMPLE,
    Id,
    Json,
    Record,
    Stamp,
    Time,
    Write,
    example_id,
    field,
    writer_of,
)
from common.db.compiled_query import FixedQuery, prefetch_relation
from common.openapi.components import ErrorOfOneRecord, SpanRecord


# --- Parts of a booking ---------------------------------------------------------------------------
class CustomerRecord(Record):
    "A customer's data at the time of the booking."

    id: Id = field(example=example_id(31))
    name: str = field(example="Marty McFly")
    email: str = field(example="marty@example.com")
    phone: str = field(example="+1 555 0100")
    voip: str
    timezone: str = field(example="America/Los_Angeles")
    meta: Json = field("All other keys that the client sent.", example={"newsletter": True})


# Fields hidden from widget keys.
OWN_EVENT_INFO = ("description", "calendar_id", "invite", "participants")
OWN_ATTRIBUTES = ("customer", "settings")


class EventInfoRecord(Record, writes=OWN_EVENT_INFO, shows=OWN_EVENT_INFO):
    start: Time
    end: Time = field(example=END_EXAMPLE)
    what: str = field(example="Check-up")
    where: str = field(example="Harbour Dental")
    description: str = field(optional=True)
    calendar_id: Id = field(optional=True, example=example_id(12))
    invite: bool = field(optional=True, example=True)
    participants: list[str] = field(optional=True)


class BookingRulesRecord(Record):
    allow_double_bookings: bool
    enforce_availability: bool
    min_cancel_time: str = field("Only for groups with this setting.", optional=True)
    min_booking_time: str = field("Only for groups with this setting.", optional=True)
    max_booking_time: str = field("Only for groups with this setting.", optional=True)

    @classmethod
    def of(cls, row: Booking, *_: Any) -> Json:
        return super().of(row) | row.policies


class GroupSeatsRecord(Record):
    max_seats: int = field(minimum=1, example=8)
    current_seats: int = field("The number of booked seats.", minimum=0)


class BookingAttributesRecord(Record, writes=OWN_ATTRIBUTES, shows=OWN_ATTRIBUTES):
    "Widget keys see only start, end, what and where of `event_info`."

    event_info: EventInfoRecord = field(of="event", example=EventInfoRecord.example())
    customer: CustomerRecord | None = field(
        optional=True,
        of=lambda booking: next(iter(booking.customers.all()), None),
        example=CustomerRecord.example(),
    )
    settings: BookingRulesRecord = field(optional=True, of=lambda booking: booking)
    group_booking: GroupSeatsRecord | None = field(
        "The seats of a group; null for other bookings.",
        of=lambda booking: None if booking.max_seats is None else booking,
    )


class PublicEventRecord(Record):
    """What a widget key sees of a booking's event."""

    id: Id
    calendar_id: Id
    what: str
    where: str
    start: Time
    end: Time


class ProjectOfBookingRecord(Record):
    id: Id = field(example=PROJECT_EXAMPLE["id"])
    slug: str = field(example="check-up")
    name: str = field(example="Check-up")
    availability: ProjectAvailabilityRecord
    booking: BookingDefaultsRecord
    customer_fields: dict[str, CustomerFieldRecord] = field(QUESTIONS)
    ui: Json
    settings: ProjectSettingsRecord
    meta: Json
    created_at: Stamp
    updated_at: Stamp
    resources: list[ResourceRecord] = field(
        "With include=project.resources.", optional=True, of="shown_resources"
    )


class LogEntryRecord(Record):
    from_state: str = field(enum=list(STATES), example="initialized")
    to_state: str = field(enum=list(STATES), example="confirmed")
    action: str = field(example="confirm")
    actor: str = field(example="server key 0193a4c2")
    source: str = field(enum=StateChange.SOURCES)
    message: str
    created_at: Stamp


class ProviderEventRecord(Record):
    """The booking's event in a connected calendar; null without one."""

    calendar_id: Id = field(example=example_id(12))
    provider: str = field(of="calendar.provider", example="caldav")
    provider_id: str = field(
        "The event's UID at the provider.",
        of="uid",
        example=f"{example_id(30)}@bookings.example.com",
    )
    state: str = field(
        "`moved_there`, `removed_there`: the event was moved or removed in the external calendar,"
        " and the booking is unchanged. `refused`: the booking could not be moved.",
        enum=["pending", "written", "removed", "moved_there", "removed_there", "refused"],
        example="written",
    )
    reason: str | None
    start: Time | None = field("The time in the external calendar.", example=START_EXAMPLE)
    end: Time | None = field(example=END_EXAMPLE)
    written_at: Stamp | None = field(example="2026-11-20T09:30:02+0000")


class Occurrence(NamedTuple):
    """One occurrence of a series: a booking, or the reason why there is none."""

    start: datetime
    end: datetime
    booking_id: UUID | None = None
    reason: str | None = None


class OccurrenceRecord(SpanRecord):
    booking_id: Id = field(optional=True)
    reason: str = field(optional=True)

    @classmethod
    def of(cls, row: Occurrence, zone: str = "UTC", *_: Any) -> Json:
        return super().of(row, zone, ["booking_id" if row.booking_id else "reason"])


def _occurrences(series: Series) -> list[Occurrence]:
    """Return the occurrences ordered by start."""
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


class SeriesRecord(Record):
    id: Id = field(example=example_id(40))
    rrule: str = field(example="FREQ=WEEKLY;COUNT=2")
    occurrences: list[OccurrenceRecord] = field(
        "Ordered by start: a booking, or the reason why there is none.",
        of=_occurrences,
        example=[
            OccurrenceRecord.example(booking_id=example_id(30)),
            {
                "start": "2026-11-30T09:00:00+01:00",
                "end": "2026-11-30T09:30:00+01:00",
                "reason": "slot_taken",
            },
        ],
    )


# --- Bookings -------------------------------------------------------------------------------------
class BookingEntryRecord(Record):
    "The six fields of a booking in lists."

    id: Id = field(example=example_id(30))
    state: str = field(enum=list(STATES), example="confirmed")
    graph: str = field(enum=list(GRAPHS), example="instant")
    completed: bool = field("No action is possible.")
    created_at: Stamp
    updated_at: Stamp


class SeatRecord(BookingEntryRecord):
    """The six fields of every booking, and whose it is."""

    customers: list[CustomerRecord]


def _action_links(booking: Booking) -> dict[str, str]:
    """Return signed links for the customer's actions by action; none if the state has none."""
    payment = payment_address(booking)
    links = {PAY: payment} if payment else {}
    return links | {
        action: action_url(booking, action, booking.event.end)
        for action in GRAPHS[booking.graph].actions(booking.state)
        if action in CUSTOMER_ACTIONS
    }


def _owner_booking(booking: Booking) -> Booking | None:
    owner = booking.owner_booking
    return owner if owner and owner.deleted_at is None else None


def _related_by_bulk(booking: Booking) -> list[Booking]:
    """Return the other bookings of the bulk request."""
    others = booking.bulk.shown_bookings if booking.bulk else ()
    return [other for other in others if other.id != booking.id]


class BookingRecord(BookingEntryRecord, total=False):
    """Six fields and the parts in `include`. Responses to requests that create or change a booking
    also contain `resource_id`, `project_id`, `start` and `end`."""

    resource_id: Id = field(example=RESOURCE_EXAMPLE["id"])
    project_id: Id | None
    start: Time = field(of="event.start")
    end: Time = field(of="event.end", example=END_EXAMPLE)
    attributes: BookingAttributesRecord = field(
        of=lambda booking: booking, example=BookingAttributesRecord.example()
    )
    event: EventRecord | PublicEventRecord = field(
        example=EventRecord.example(
            what="Check-up", where="Harbour Dental", start=START_EXAMPLE, end=END_EXAMPLE
        )
    )
    calendar: CalendarRecord = field(of="event.calendar")
    resource: ResourceRecord | PublicResourceRecord
    user: ResourceRecord | PublicResourceRecord = field("An alias of `resource`.", of="resource")
    resources: list[ResourceRecord | PublicResourceRecord] = field(
        "Of a booking that needs several: all of them, in the order of the project's `requires`."
        " Other bookings: `resource` alone.",
        of=lambda booking: booking.all_resources(),
    )
    customers: list[CustomerRecord]
    project: ProjectOfBookingRecord | None
    meta: Json
    outcome: str | None = field("Whether the customer came; null if unknown.", enum=OUTCOMES)
    logs: list[LogEntryRecord] = field("Oldest first.")
    available_actions: list[str] = field(
        of=lambda booking: GRAPHS[booking.graph].actions(booking.state),
        example=["cancel", "cancel_by_customer", "complete"],
    )
    customer_action_links: dict[str, str] = field(
        "By action: a signed link for the customer, valid until the end of the booking. `pay`: the"
        " link to the project's payment page while the payment is awaited.",
        of=_action_links,
        additionalProperties={"type": "string", "format": "uri"},
        example={
            "cancel_by_customer": f"https://bookings.example.com/v2/bookings/{example_id(30)}"
            "/external_action/cancel_by_customer"
            "?signature=1795597200.W9hY0T0mC6nnAPGxQvDqWr6d2yPHVlNQn4gJ3EIh5xQ"
        },
    )
    event_notifications: list[EventNotificationRecord]
    owner_booking: BookingEntryRecord | None = field(
        "For a seat: the group's booking.", of=_owner_booking
    )
    seats: list[SeatRecord] | None = field(
        "The seats of a group in all states, ordered by creation; null for other bookings.",
        of=lambda booking: None if booking.max_seats is None else booking.shown_seats,
    )
    bulked_bookings: list[BookingEntryRecord] = field(
        "The other related bookings of the bulk request.", of=_related_by_bulk
    )
    series: SeriesRecord | None
    full: bool = field("In GET /v2/bookings/groups: no seat is free; else absent.")
    # `external_calendars` registers an include that renders it.
    provider_event: ProviderEventRecord | None = field(of=lambda booking: None)


# Also in the response of the request that created or changed the booking.
WRITTEN = ("resource_id", "project_id", "start", "end")
# Includes of GET /bookings/:id by default.
ALL_INCLUDES = (
    *("attributes", "event", "calendar", "resource", "customers", "project", "meta", "outcome"),
    *("available_actions", "customer_action_links", "event_notifications"),
)
WHOLE_BOOKING_EXAMPLE = BookingRecord.example(*ALL_INCLUDES)


class BulkOutcomeRecord(Record, shows=["booking"]):
    """A booking, or why there is none: one of the two."""

    status: int = field("The status that a single request would have returned.", example=201)
    booking: BookingRecord = field(optional=True, example=BookingRecord.example(*WRITTEN))
    error: ErrorOfOneRecord = field(optional=True)


# --- Includes -------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Include:
    """One name of `include`. Equal to itself only, so that queries are kept by their includes.

    key: the field of the booking. joins, prefetches, counts: what its query needs. write: renders
    the field from a booking and a zone if `BookingRecord` does not.
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
                    .annotate(count=Count("id"))
                    .values("count")
                ),
                0,
            ),
        ),
        output_field=IntegerField(),
    )
}


def _resource_with_calendars(booking: Booking, zone: str) -> Json:
    return ResourceRecord.of(booking.resource, include=("calendars",))


def _project_with_resources(booking: Booking, zone: str) -> Json | None:
    project = booking.project
    return ProjectOfBookingRecord.of(project, include=("resources",)) if project else None


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
    "customers": Include("customers", (), ["customers"]),
    "project": Include("project", ["project"]),
    "project.resources": Include(
        "project", ["project"], [_resources()], write=_project_with_resources
    ),
    "meta": Include("meta"),
    "outcome": Include("outcome"),
    "logs": Include("logs", (), ["logs"]),
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
    record = BookingAttributesRecord.of(booking, zone, ())
    return record | {"event_info": EventInfoRecord.of(booking.event, zone, ())}


def _public_resource(booking: Booking, zone: str) -> Json:
    return PublicResourceRecord.of(booking.resource)


def _public_resources(booking: Booking, zone: str) -> list[Json]:
    return [PublicResourceRecord.of(resource) for resource in booking.all_resources()]


def _public_event(booking: Booking, zone: str) -> Json:
    return PublicEventRecord.of(booking.event, zone)


# The includes of widget keys, and their restricted content.
PUBLIC_INCLUDES: dict[str, Include] = {
    "attributes": Include("attributes", ["event"], (), CURRENT_SEATS, _public_attributes),
    "event": Include("event", ["event"], write=_public_event),
    "resource": Include("resource", ["resource"], write=_public_resource),
    "user": Include("user", ["resource"], write=_public_resource),
    "resources": Include(
        "resources", ["event", "resource"], [further_events()], write=_public_resources
    ),
    "available_actions": INCLUDES["available_actions"],
}


def with_includes(bookings: QuerySet[Booking], includes: Collection[Include]) -> QuerySet[Booking]:
    """Add what the includes need to the query: joins, else one query each."""
    joins = {join for include in includes for join in include.joins}
    for include in includes:
        bookings = bookings.prefetch_related(*include.prefetches).annotate(**include.counts)
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
    write_fields = writer_of(BookingRecord, tuple(names))
    others = [(include.key, include.write) for include in includes if include.write]

    def write(booking: Booking) -> Json:
        record = write_fields(booking, zone)
        for key, write_value in others:
            record[key] = write_value(booking, zone)
        return record

    return write


# --- Customer data --------------------------------------------------------------------------------
class PersonRecord(Record):
    "All customers with the same e-mail address."

    email: str = field(of="latest.email", example="marty@example.com")
    name: str = field(of="latest.name", example="Marty McFly")
    phone: str = field(of="latest.phone", example="+1 555 0100")
    timezone: str = field(of="latest.timezone", example="America/Los_Angeles")
    bookings: int = field(minimum=0, example=3)
    upcoming: int = field(
        "The bookings that have not ended and are not completed.", minimum=0, example=1
    )
    first_booking_at: Stamp = field(
        "When the oldest booking was made.", of="first", example="2026-03-02T08:15:00+0000"
    )
    last_booking_at: Stamp = field("When the newest booking was made.", of="last")


class UnverifiedRecord(Record):
    """A hold until the customer's e-mail address is verified."""

    reservation_id: Id = field(of="id", example=example_id(41))
    expires_at: Time = field(example="2026-11-20T10:45:00+01:00")
    verification: str = field(enum=["email"], of=lambda row: "email")


class ChallengeRecord(Record):
    algorithm: str = field(enum=["SHA-256"])
    challenge: str = field("Hexadecimal.", example=64 * "a")
    maxnumber: int = field(minimum=1, example=50_000)
    salt: str = field(example="5f3c8b0e1d2a4c6e8f901234?expires=1795597200&")
    signature: str = field("Hexadecimal.", example=64 * "b")


class ChallengeAnswerRecord(ChallengeRecord):
    """The official ALTCHA widget reads the members at the top, other clients those of `data`."""

    data: ChallengeRecord


class PersonExportRecord(Record):
    email: str = field("The requested address.", example="marty@example.com")
    bookings: list[BookingRecord] = field(
        "Complete bookings with `logs`, with only this customer.", example=[WHOLE_BOOKING_EXAMPLE]
    )
    events: list[EventRecord] = field(
        "Other events that contain the address, with only this participant.", example=[]
    )
    unverified_bookings: list[Json] = field(
        "What was typed for bookings that wait for the code of an e-mail, or were abandoned in the"
        " last day."
    )
    deliveries: list[Json] = field(
        "As in GET /deliveries/:id, with `content`: the data of the e-mail, or the URL of the"
        " event notification."
    )
    suppressions: list[Json] = field("Why the address gets no e-mails, or no reminders.")


class ErasedRecord(Record):
    bookings: int = field(minimum=0, example=3)
    log_entries: int = field(minimum=0, example=4)
    unverified_bookings: int = field(minimum=0, example=0)
    deliveries: int = field(minimum=0, example=9)
    suppressions: int = field(minimum=0, example=0)
