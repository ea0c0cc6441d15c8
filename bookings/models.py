"""Bookings, their customers and their log of state changes."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from django.db import models
from django.db.models import Value

from apps_config.models import App, EventNotification, ParentsAppField
from availability.models import Event, Owned, Project, Resource, external_id_field, external_id_once
from common.db.ids import TenantIdField
from common.db.message_field import MessageField
from common.email_address import MAX_LENGTH, CanonicalAddressField, LimitKeyField


class BookingQuerySet(models.QuerySet["Booking"]):
    def for_app(self, app: App | uuid.UUID) -> "BookingQuerySet":
        return self.filter(app=app, deleted_at=None)


class Series(models.Model):
    """A recurrence rule that created several bookings at once, one per occurrence."""

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="series")
    rrule = models.CharField(max_length=500, help_text="RFC 5545")
    # [{start, end, reason}] as in the response: the occurrences that were not booked.
    skipped = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField()
    # Set by prefetches:
    shown_bookings: Sequence["Booking"]

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "series"

    def __str__(self) -> str:
        return self.rrule


class Bulk(models.Model):
    """Relates the bookings of one bulk request."""

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="bulks")
    created_at = models.DateTimeField()
    # Set by prefetches:
    shown_bookings: Sequence["Booking"]

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return str(self.id)


MAX_NOTE = 8000
MAX_PLACE = 100
# Whether the customer came; set once a booking has begun, independent of the graph's states.
OUTCOMES = ("attended", "no_show")


def counted_title(what: str, quantity: int | None, place: str | None = None) -> str:
    """Return a title with the number of units or seats if there are several, and their place."""
    title = f"{quantity} × {what}" if (quantity or 1) > 1 else what
    return f"{title} ({place})" if place else title


def further_events() -> models.Prefetch:
    """The further events of bookings that need several resources, with these resources."""
    rows = Event.objects.filter(is_further_unit=None).select_related("resource")
    return models.Prefetch("event__companions", rows)


class BookedStep(NamedTuple):
    """A step of a visit."""

    name: str
    start: datetime
    end: datetime
    resources: list[Resource]


class Booking(Owned):
    """An agreement with a state in a graph; its time is its event's.

    A group is an owner's booking (`max_seats`) and its seats (`owner_booking`), which share the
    owner's event.
    """

    app = models.ForeignKey(App, models.CASCADE, related_name="bookings")
    external_id = external_id_field()
    project = models.ForeignKey(
        Project, models.PROTECT, null=True, blank=True, related_name="bookings"
    )
    resource = models.ForeignKey(Resource, models.PROTECT, related_name="bookings")
    event = models.ForeignKey(Event, models.PROTECT, related_name="bookings")
    owner_booking = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="seats", db_index=False
    )
    max_seats = models.PositiveSmallIntegerField(null=True, blank=True)
    quantity = models.SmallIntegerField(
        null=True, blank=True, help_text="units of the resource, or seats; empty: one"
    )
    party_size = models.SmallIntegerField(null=True, blank=True, help_text="people who come")
    # Of a group: place -> its seats, `max_seats` together. Of a seat: the name of its place.
    places = models.JSONField(null=True, blank=True)
    place = models.CharField(max_length=MAX_PLACE, null=True, blank=True)  # noqa: DJ001 (as in the API)
    # For a group's owner: min_cancel_time, min_booking_time, max_booking_time, as sent.
    policies = models.JSONField(default=dict, db_default=Value({}, models.JSONField()), blank=True)
    bulk = models.ForeignKey(
        Bulk, models.PROTECT, null=True, blank=True, related_name="bookings", db_index=False
    )
    series = models.ForeignKey(
        Series, models.PROTECT, null=True, blank=True, related_name="bookings", db_index=False
    )
    graph = models.CharField(max_length=32)
    state = models.CharField(max_length=32)
    completed = models.BooleanField(default=False, help_text="no action is left")
    allow_double_bookings = models.BooleanField(default=False)
    enforce_availability = models.BooleanField(default=False)
    completes_at = models.DateTimeField(
        null=True, blank=True, help_text="an hour after the end, while the booking is live"
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="when it times out, while a payment is awaited"
    )
    reschedules = models.PositiveSmallIntegerField(default=0)
    link_version = models.SmallIntegerField(
        default=0, db_default=0, editable=False, help_text="raised to end the links of its e-mails"
    )
    meta = models.JSONField(default=dict, blank=True)
    note = models.TextField(  # noqa: DJ001 (null as in the API)
        max_length=MAX_NOTE, null=True, blank=True, help_text="for staff alone"
    )
    # Customers read these texts nowhere: a public caller can enter anybody's address.
    requires = models.JSONField(
        null=True, blank=True, editable=False, help_text="its own; NULL: those of its project"
    )
    visit = models.JSONField(
        null=True, blank=True, editable=False, help_text="its own `steps` and `order`"
    )
    untrusted_texts = models.JSONField(
        null=True,
        blank=True,
        help_text="which texts of the event a public caller wrote; null: no public caller made it",
    )
    calendar_uid = models.UUIDField(
        default=uuid.uuid4, editable=False, help_text="names the booking in calendars"
    )
    outcome = models.CharField(  # noqa: DJ001 (null as in the API)
        max_length=8,
        null=True,
        blank=True,
        choices=[(outcome, outcome) for outcome in OUTCOMES],
        help_text="whether the customer came; empty: nobody has said",
    )
    # Set by the services, not by Django: an action and its log entry carry the same instant.
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Set by prefetches and annotations:
    shown_seats: Sequence["Booking"]
    current_seats: int

    objects = BookingQuerySet.as_manager()

    class Meta(Owned.Meta):
        abstract = False
        constraints = [
            models.UniqueConstraint(
                fields=["event"],
                condition=models.Q(owner_booking=None),
                name="booking_event_once",
            ),
            external_id_once("booking"),
        ]
        indexes = [
            models.Index(
                fields=["app", "-created_at", "-id"],
                condition=models.Q(deleted_at=None),
                name="booking_listing",
            ),
            models.Index(
                fields=["app", "state", "-created_at", "-id"],
                condition=models.Q(deleted_at=None),
                name="booking_listing_by_state",
            ),
            models.Index(fields=["resource", "-created_at"], name="booking_resource"),
            models.Index(
                fields=["project", "-created_at", "-id"],
                condition=models.Q(project__isnull=False),
                name="booking_listing_by_project",
            ),
            models.Index(
                fields=["app", "graph", "-created_at", "-id"],
                condition=models.Q(deleted_at=None),
                name="booking_listing_by_graph",
            ),
            # Bookings that an action can still change: a small part of all.
            models.Index(
                fields=["app", "-created_at", "-id"],
                condition=models.Q(completed=False, deleted_at=None),
                name="booking_listing_open",
            ),
            models.Index(
                fields=["app", "updated_at"],
                condition=models.Q(deleted_at=None),
                name="booking_updated",
            ),
            # Requests that await an answer.
            models.Index(
                fields=["graph", "-created_at", "-id"],
                condition=models.Q(state="tentative", deleted_at=None),
                name="booking_requests",
            ),
            # Bookings to complete.
            models.Index(
                fields=["completes_at"],
                condition=models.Q(completes_at__isnull=False),
                name="booking_completes",
            ),
            # Payments to time out.
            models.Index(
                fields=["expires_at"],
                condition=models.Q(expires_at__isnull=False),
                name="booking_expires",
            ),
            models.Index(
                fields=["owner_booking"],
                condition=models.Q(owner_booking__isnull=False),
                name="booking_seats",
            ),
            models.Index(
                fields=["app", "-created_at", "-id"],
                condition=models.Q(completed=False, max_seats__isnull=False, deleted_at=None),
                name="booking_open_groups",
            ),
            models.Index(
                fields=["bulk"], condition=models.Q(bulk__isnull=False), name="booking_bulk"
            ),
            models.Index(
                fields=["series"], condition=models.Q(series__isnull=False), name="booking_series"
            ),
            models.Index(
                fields=["app", "outcome", "-created_at", "-id"],
                condition=models.Q(outcome__isnull=False, deleted_at=None),
                name="booking_outcome",
            ),
            # The list of events leaves out those of deleted bookings.
            models.Index(
                fields=["event"],
                condition=models.Q(owner_booking=None, deleted_at__isnull=False),
                name="booking_deleted",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.graph} {self.state} {self.id}"

    @property
    def is_public(self) -> bool:
        """Whether a public caller made it."""
        return self.untrusted_texts is not None

    @property
    def units(self) -> int:
        """The units of its resource that it takes; of a seat's booking, the seats."""
        return self.quantity or 1

    def counted(self, what: str) -> str:
        """Return its title with the number and place: `3 × Bike`, `2 × Concert (stalls)`."""
        return counted_title(what, self.quantity, self.place)

    def all_resources(self) -> list[Resource]:
        """Return its resource, then the further ones in the order of the project's requirements, of
        a visit in that of the steps; each once.

        Prefetch `further_events()` for many bookings.
        """
        if self.event._state.adding:  # the example of a template
            return [self.resource]
        rows = (event for event in self.event.companions.all() if not event.is_further_unit)
        further = sorted(rows, key=lambda event: event.id)
        return list(dict.fromkeys([self.resource, *(event.resource for event in further)]))

    def steps(self) -> list[BookedStep]:
        """Return the steps of a visit in the order of their times; [] for other bookings.

        Prefetch `further_events()` for many bookings.
        """
        found: dict[str, BookedStep] = {}
        if not self.event._state.adding:
            for event in sorted(self.event.companions.all(), key=lambda row: (row.start, row.id)):
                if event.step:
                    new = BookedStep(event.step, event.start, event.end, [])
                    found.setdefault(event.step, new).resources.append(event.resource)
        return list(found.values())


class Customer(models.Model):
    """A customer of a booking: a snapshot taken when the booking was made; and the customer's
    answer to the invitation, which `bookings.services.responses` stores.
    """

    # RFC 5545, 3.2.12.
    ACCEPTED, TENTATIVE, DECLINED = RESPONSES = ("accepted", "tentative", "declined")
    NEEDS_ACTION = "needs_action"  # without an answer
    CALENDAR, MAIL = RESPONSE_SOURCES = ("calendar", "mail")
    NO_ANSWER: ClassVar[Mapping[str, None]] = {
        "response": None,
        "responded_at": None,
        "response_source": None,
    }

    id = TenantIdField(primary_key=True)
    app = ParentsAppField()
    booking = models.ForeignKey(Booking, models.CASCADE, related_name="customers")
    position = models.PositiveSmallIntegerField(default=0)
    external_id = external_id_field()  # the same in all bookings of a customer
    name = models.CharField(max_length=200)
    email = models.EmailField()  # as typed; e-mails go there
    address = CanonicalAddressField()
    limit_key = LimitKeyField()
    phone = models.CharField(max_length=200, blank=True)
    voip = models.CharField(max_length=200, blank=True)
    timezone = models.CharField(max_length=64, blank=True)
    meta = models.JSONField(default=dict, blank=True)
    response = models.CharField(  # noqa: DJ001 (SQLite adds a column that is not null by a copy)
        max_length=12,
        null=True,
        blank=True,
        editable=False,
        choices=[(response, response) for response in RESPONSES],
    )
    responded_at = models.DateTimeField(null=True, blank=True, editable=False)
    response_source = models.CharField(  # noqa: DJ001
        max_length=8,
        null=True,
        blank=True,
        editable=False,
        choices=[(source, source) for source in RESPONSE_SOURCES],
    )

    class Meta:
        verbose_name = "customer of a booking"
        verbose_name_plural = "customers of bookings"
        ordering = ["position", "id"]
        indexes = [
            models.Index(fields=["address"], name="customer_address"),
            models.Index(fields=["limit_key"], name="customer_limit_key"),
            models.Index(
                fields=["external_id"],
                condition=models.Q(external_id__isnull=False),
                name="customer_external_id",
            ),
            models.Index(
                fields=["app", "-responded_at"],
                condition=models.Q(response="declined"),
                name="customer_declined",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class StateChange(models.Model):
    """A log entry of a booking; later deliveries are composed from it. Append-only."""

    SOURCES = ("api", "widget", "admin", "link", "timer", "calendar", "mail", "mcp")

    id = TenantIdField(primary_key=True)
    app = ParentsAppField()
    booking = models.ForeignKey(Booking, models.CASCADE, related_name="logs")
    from_state = models.CharField(max_length=32)
    to_state = models.CharField(max_length=32)
    action = models.CharField(max_length=32)
    actor = models.CharField(max_length=254, blank=True)
    source = models.CharField(max_length=8, choices=[(source, source) for source in SOURCES])
    message = models.TextField(max_length=8000, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.action}: {self.from_state} to {self.to_state}"


class BookingNotification(EventNotification):
    """A reminder of this booking: its own, else a copy of its project's or app's at creation."""

    booking = models.ForeignKey(Booking, models.CASCADE, related_name="event_notifications")

    class Meta(EventNotification.Meta):
        abstract = False


class AppCustomer(models.Model):
    """A customer of an app: one row per e-mail address, kept by triggers (0001_release_1_0.*.sql).

    Counts the bookings that are not deleted; erased customers have no address, so no row.
    """

    # No constraint in the database: the triggers also fire while an app is being deleted.
    app = models.ForeignKey(
        App, models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    address = models.CharField(max_length=MAX_LENGTH)  # that of its rows of Customer
    bookings = models.PositiveIntegerField()
    first_booking_at = models.DateTimeField()
    last_booking_at = models.DateTimeField()

    class Meta:
        verbose_name = "customer"
        ordering = ["-last_booking_at", "address"]
        constraints = [
            models.UniqueConstraint(fields=["app", "address"], name="app_customer_once"),
        ]
        indexes = [
            models.Index(
                fields=["app", "-last_booking_at", "address"], name="app_customer_listing"
            ),
            # Platform staff see the customers of all apps.
            models.Index(fields=["-last_booking_at", "address"], name="app_customer_latest"),
        ]

    def __str__(self) -> str:
        return self.address


class CustomerNote(models.Model):
    """What staff note about a customer of an app; goes with the last data of the address.

    Not a column of AppCustomer: the triggers write its rows anew.
    """

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    address = models.CharField(max_length=MAX_LENGTH)  # that of its rows of Customer
    note = models.TextField(max_length=MAX_NOTE)

    class Meta:
        verbose_name = "note on a customer"
        verbose_name_plural = "notes on customers"
        constraints = [
            models.UniqueConstraint(fields=["app", "address"], name="customer_note_once"),
        ]

    def __str__(self) -> str:
        return self.address


class SeatHold(models.Model):
    """Seats of a group that are kept for a booking in progress, until `expires_at`.

    Not a hold of time, which the group's own booking takes. It is shown as one: `step` is the
    Hold's of a booking that is no visit.
    """

    step: ClassVar[None] = None

    id = TenantIdField(primary_key=True)
    # No constraint in the database: to add two would lock two tables that every booking writes.
    app = models.ForeignKey(
        App, models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    group = models.ForeignKey(Booking, models.CASCADE, related_name="seat_holds")
    quantity = models.SmallIntegerField()
    place = models.CharField(max_length=MAX_PLACE, null=True, blank=True)  # noqa: DJ001
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True, blank=True)
    extensions = models.PositiveSmallIntegerField(default=0)
    client_address = models.CharField(
        max_length=64, blank=True, help_text="of a widget key's caller, who gets only a few"
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["client_address", "expires_at"],
                condition=~models.Q(client_address=""),
                name="seat_hold_by_address",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} until {self.expires_at}"

    @property
    def start(self) -> datetime:
        return self.group.event.start

    @property
    def end(self) -> datetime:
        return self.group.event.end

    @property
    def resource(self) -> Resource:
        return self.group.resource


class UnverifiedBooking(models.Model):
    """What a public page has asked to book for an e-mail address that is not verified yet.

    `id`: that of the hold, which keeps the time; of its own for a seat, which the row itself keeps.
    The row is emptied when it ends: with the booking, after too many wrong codes, or by the
    customer.
    """

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    group = models.ForeignKey(Booking, models.CASCADE, null=True, blank=True, related_name="+")
    quantity = models.SmallIntegerField(
        null=True, blank=True, help_text="units or seats; empty: one"
    )
    place = models.CharField(max_length=MAX_PLACE, null=True, blank=True)  # noqa: DJ001
    email = models.EmailField(blank=True)
    limit_key = LimitKeyField(blank=True)
    body = models.JSONField(default=dict, help_text="of POST /bookings")
    zone = models.CharField(max_length=64, help_text="of wall times in the body")
    # Counts the codes that were mailed: the last one is valid.
    code_number = models.SmallIntegerField(default=1, db_default=1, editable=False)
    codes_tried = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            # Every public booking counts those of its address.
            models.Index(
                fields=["app", "limit_key"],
                condition=models.Q(ended_at=None),
                name="unverified_open",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def language(self) -> Any:
        """What the body has as the language of its first customer, of any type."""
        customers = self.body.get("customers") or [self.body.get("customer")]
        first = customers[0] if isinstance(customers, list) else None
        if not isinstance(first, dict):
            return None
        meta = first.get("meta")
        return first.get("language") or (meta.get("language") if isinstance(meta, dict) else None)


class PostponedTask(models.Model):
    """What staff decided about several bookings, carried out some seconds later: until then it can
    be undone, which deletes the row.
    """

    id = TenantIdField(primary_key=True)
    # No constraint in the database: to add two would lock two tables that every booking writes.
    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_constraint=False)
    actor = models.CharField(max_length=254)
    message = models.TextField(
        max_length=8000, blank=True, help_text="for everybody; emptied at the end"
    )
    event_ids = models.JSONField(
        default=list, blank=True, help_text="the events that closed the time at once"
    )
    created_at = models.DateTimeField()
    run_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True, help_text="from then on: no undo")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["run_at"], condition=models.Q(finished_at=None), name="postponed_open"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class PostponedStep(models.Model):
    """One booking of a task: what becomes of it, and what became of it."""

    CANCEL, DECLINE, MOVE, OFFER = "cancel", "decline", "move", "offer_new_times"
    MESSAGE = "message"
    CANCEL_FOR_CUSTOMER, CANCEL_FOR_OWNER = "cancel_by_customer", "cancel_by_owner"
    ACTIONS = (CANCEL, DECLINE, MOVE, OFFER, MESSAGE, CANCEL_FOR_CUSTOMER, CANCEL_FOR_OWNER)
    # Skipped: the booking has changed since. Refused: for the staff to look at.
    PENDING, DONE, SKIPPED, REFUSED = STATES = ("pending", "done", "skipped", "refused")

    task = models.ForeignKey(PostponedTask, models.CASCADE, related_name="steps")
    booking = models.ForeignKey(Booking, models.CASCADE, related_name="postponed_steps")
    action = models.CharField(max_length=32, choices=[(word, word) for word in ACTIONS])
    version = models.PositiveSmallIntegerField(help_text="the booking's moves at the decision")
    # Of a move; no foreign key, as for `PostponedTask.app`.
    start = models.DateTimeField(null=True, blank=True)
    end = models.DateTimeField(null=True, blank=True)
    resource_id = models.UUIDField(null=True, blank=True)
    state = models.CharField(
        max_length=8, choices=[(state, state) for state in STATES], default=PENDING
    )
    reason = MessageField(blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["task", "booking"], name="postponed_booking_once"),
        ]

    def __str__(self) -> str:
        return f"{self.action}: {self.state}"


class DailyTotal(models.Model):
    """Numbers of the bookings that start on a local day of the app's zone, for reports.

    A report is a sum over these rows. They count; they name no customer. Only
    `bookings.reports.counting` writes them: it replaces all rows of a day.
    """

    # Without constraints in the database, whose checks would be a large part of the cost.
    app = models.ForeignKey(
        App, models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField()
    resource = models.ForeignKey(
        Resource, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    project = models.ForeignKey(
        Project, models.DO_NOTHING, null=True, related_name="+", db_index=False, db_constraint=False
    )
    source = models.CharField(max_length=8, help_text="of the booking's first log entry")
    bookings = models.PositiveIntegerField(default=0, help_text="without drafts and groups' owners")
    kept = models.PositiveIntegerField(default=0, help_text="that take place or have taken place")
    cancelled = models.PositiveIntegerField(default=0, help_text="by staff")
    cancelled_by_customer = models.PositiveIntegerField(default=0)
    declined = models.PositiveIntegerField(default=0)
    unpaid = models.PositiveIntegerField(default=0)
    attended = models.PositiveIntegerField(default=0)
    no_show = models.PositiveIntegerField(default=0)
    booked_seconds = models.PositiveBigIntegerField(
        default=0, help_text="of kept bookings; a group counts once, each further resource too"
    )
    lead_seconds = models.PositiveBigIntegerField(
        default=0, help_text="from the making of the bookings to their start"
    )
    lead_1_day = models.PositiveIntegerField(default=0, help_text="made less than a day before")
    lead_3_days = models.PositiveIntegerField(default=0, help_text="1 to 3 days before")
    lead_1_week = models.PositiveIntegerField(default=0, help_text="3 to 7 days before")
    lead_2_weeks = models.PositiveIntegerField(default=0, help_text="1 to 2 weeks before")
    lead_4_weeks = models.PositiveIntegerField(default=0, help_text="2 to 4 weeks before")
    new_customers = models.PositiveIntegerField(
        default=0, help_text="customers whose address is in no earlier booking of the app"
    )
    returning_customers = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["app", "day", "resource", "project", "source"]
        constraints = [
            models.UniqueConstraint(
                fields=["app", "day", "resource", "project", "source"], name="daily_total_once"
            ),
            models.UniqueConstraint(
                fields=["app", "day", "resource", "source"],
                condition=models.Q(project=None),
                name="daily_total_once_without_project",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.bookings}"


class OpenDay(models.Model):
    """How long a resource was open on a local day of the app's zone, stored when the day is over:
    rules that change later do not rewrite the past.
    """

    app = models.ForeignKey(
        App, models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField()
    resource = models.ForeignKey(
        Resource, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    seconds = models.PositiveBigIntegerField(help_text="open and not blocked, times the capacity")

    class Meta:
        ordering = ["app", "day", "resource"]
        constraints = [
            models.UniqueConstraint(fields=["app", "day", "resource"], name="open_day_once"),
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.seconds} s"


class RecountRequest(models.Model):
    """The local day of an instant has to be counted anew. Several rows may name one day, so that no
    request waits for another.
    """

    app = models.ForeignKey(
        App, models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "id"]
        indexes = [models.Index(fields=["app", "at", "id"], name="recount_request_of_app")]

    def __str__(self) -> str:
        return str(self.at)


class ReportState(models.Model):
    """How far an app's bookings are counted. The lock of the row is the right to count them."""

    app = models.OneToOneField(
        App, models.CASCADE, primary_key=True, related_name="+", db_constraint=False
    )
    zone = models.CharField(max_length=64, blank=True, help_text="of the days; empty: none counted")
    read_until = models.DateTimeField(
        null=True, help_text="the days of bookings changed before are counted or requested"
    )
    counted_until = models.DateTimeField(
        null=True, help_text="the days of bookings changed before are counted"
    )
    open_until = models.DateField(null=True, help_text="the last day whose open hours are stored")

    class Meta:
        ordering = ["app"]

    def __str__(self) -> str:
        return f"{self.app_id}: {self.counted_until}"
