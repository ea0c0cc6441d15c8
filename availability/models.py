"""Resources, their schedules, calendars and events, projects and holds."""

import uuid
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from django.contrib.postgres.fields import DateTimeRangeField
from django.contrib.postgres.lookups import Overlap
from django.db import connection, models
from django.db.models.fields.json import KeyTransform

from apps_config.history import ChangeHistory
from apps_config.models import App, EventNotification, ParentsAppField
from common.db.ids import TenantIdField
from common.db.updated_at import UpdatedAtField
from common.email_address import CanonicalAddressField

MAX_EXTERNAL_ID = 200


class ObjectField(models.JSONField):
    """A JSON object. Any other JSON value, written without the services, is read as `{}`."""

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        read = super().from_db_value(value, expression, connection)
        return read if isinstance(read, dict) or isinstance(expression, KeyTransform) else {}


def external_id_field() -> models.CharField:
    """The id of the row in a client's own system."""
    return models.CharField(max_length=MAX_EXTERNAL_ID, null=True, blank=True, editable=False)


def external_id_once(model: str) -> models.UniqueConstraint:
    """At most one row of an app that is not deleted has an external id."""
    return models.UniqueConstraint(
        fields=["app", "external_id"],
        condition=models.Q(deleted_at=None, external_id__isnull=False),
        name=f"{model}_external_id_once",
    )


class Owned(models.Model):
    """A row with a UUID primary key and the stamps `created_at` and `updated_at`."""

    id = TenantIdField(primary_key=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = UpdatedAtField()

    class Meta:
        abstract = True
        ordering = ["-created_at", "-id"]


class HasConstraints(models.Model):
    """A row with rules for when time is open, as written in the API: a list of objects with one
    key. Only the services write it: they store what `render_constraint` returns.
    """

    availability_constraints = models.JSONField("opening hours", default=list, blank=True)

    class Meta:
        abstract = True


class ResourceQuerySet(models.QuerySet["Resource"]):
    def for_app(self, app: App | uuid.UUID) -> "ResourceQuerySet":
        return self.filter(app=app, deleted_at=None)


class Resource(HasConstraints, Owned):
    """A person or thing that can be booked. Its constraints apply to the wall clock of its time
    zone.
    """

    app = models.ForeignKey(App, models.CASCADE, related_name="resources")
    external_id = external_id_field()
    name = models.CharField(max_length=200)
    first_name = models.CharField(max_length=200, blank=True)
    last_name = models.CharField(max_length=200, blank=True)
    email = models.EmailField(null=True, blank=True)  # noqa: DJ001 - null: several have none
    address = CanonicalAddressField(null=True)
    image = models.CharField(max_length=2048, blank=True)
    timezone = models.CharField(max_length=64, help_text="an IANA zone, such as Europe/Berlin")
    schedule = models.ForeignKey(
        "Schedule",
        models.RESTRICT,
        null=True,
        blank=True,
        db_index=False,  # resource_schedule
        related_name="resources",
        help_text="the rules below its own",
    )
    capacity = models.SmallIntegerField(
        default=1, db_default=1, help_text="so many bookings may overlap"
    )
    # How many people it suits; both NULL: any number.
    party_min = models.SmallIntegerField(null=True, blank=True)
    party_max = models.SmallIntegerField(null=True, blank=True)
    # In seconds; no booking or hold was made with a longer one. It never becomes smaller.
    longest_buffer = models.IntegerField(default=0, db_default=0, editable=False)
    tags = models.JSONField(default=list, blank=True)
    meta = ObjectField(default=dict, blank=True)
    password = models.CharField(
        max_length=128,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="hashed; for POST /auth",
    )
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Set by queries that prefetch the calendars:
    shown_calendars: Sequence["Calendar"]

    objects = ResourceQuerySet.as_manager()
    history = ChangeHistory(leave_out=["updated_at", "password", "longest_buffer", "address"])

    class Meta(Owned.Meta):
        abstract = False
        constraints = [
            models.UniqueConstraint(
                fields=["app", "address"],
                condition=models.Q(deleted_at=None, address__isnull=False),
                name="resource_email_once",
            ),
            external_id_once("resource"),
        ]
        indexes = [
            models.Index(fields=["app", "-created_at", "-id"], name="resource_listing"),
            models.Index(
                fields=["schedule"],
                condition=models.Q(schedule__isnull=False),
                name="resource_schedule",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def party(self) -> dict[str, int] | None:
        """How many people it suits, as in the API."""
        if self.party_min is None or self.party_max is None:
            return None
        return {"min": self.party_min, "max": self.party_max}


class ResourcePicture(models.Model):
    """The resource's picture on booking pages. Its own table: searches read many resources."""

    resource = models.OneToOneField(
        Resource, models.CASCADE, primary_key=True, related_name="picture"
    )
    content = models.BinaryField()
    type = models.CharField(max_length=32)
    digest = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"Picture of {self.resource_id}"


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    def for_app(self, app: App | uuid.UUID) -> "ScheduleQuerySet":
        return self.filter(app=app)


class Schedule(HasConstraints, Owned):
    """Rules that several resources share. The own rules of a resource lie over them."""

    app = models.ForeignKey(App, models.CASCADE, related_name="schedules")
    name = models.CharField(max_length=200)

    objects = ScheduleQuerySet.as_manager()
    history = ChangeHistory()

    class Meta(Owned.Meta):
        abstract = False
        indexes = [models.Index(fields=["app", "-created_at", "-id"], name="schedule_listing")]

    def __str__(self) -> str:
        return self.name


class CalendarQuerySet(models.QuerySet["Calendar"]):
    def for_app(self, app: App | uuid.UUID) -> "CalendarQuerySet":
        return self.filter(resource__app=app, resource__deleted_at=None, deleted_at=None)

    def own(self) -> "CalendarQuerySet":
        """Calendars that are not connected to a provider."""
        return self.filter(provider=Calendar.SERVICE)


class Calendar(Owned):
    """A list of events of one resource. A busy event in any calendar of a resource blocks the
    resource.

    The sync (external_calendars) stores the events of a connected calendar here, so that a search
    needs no request to a provider. `synced_at`: the last complete sync.
    """

    SERVICE = "service"
    READER, WRITER = "reader", "writer"
    ACCESS = (READER, WRITER)

    app = ParentsAppField()
    resource = models.ForeignKey(Resource, models.CASCADE, related_name="calendars")
    name = models.CharField(max_length=200)
    description = models.TextField(max_length=8000, blank=True)
    backgroundcolor = models.CharField(max_length=32, blank=True)
    foregroundcolor = models.CharField(max_length=32, blank=True)
    provider = models.CharField(max_length=20, default=SERVICE, db_default=SERVICE, editable=False)
    provider_id = models.CharField(
        max_length=2048,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="the collection's address",
    )
    provider_access = models.CharField(
        max_length=6,
        blank=True,
        default="",
        db_default="",
        editable=False,
        choices=[(word, word) for word in ACCESS],
    )
    provider_primary = models.BooleanField(
        default=False,
        db_default=False,
        help_text="the resource's bookings are written here, wherever they stand",
    )
    provider_invites = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="its server mails attendees by itself (RFC 6638)",
    )
    synced_at = models.DateTimeField(null=True, blank=True, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    capacity = 1  # of its resource; set by lock_resources_of_calendars

    objects = CalendarQuerySet.as_manager()

    class Meta(Owned.Meta):
        abstract = False
        constraints = [
            models.UniqueConstraint(
                fields=["resource"],
                condition=models.Q(provider_primary=True, deleted_at=None),
                name="calendar_primary_once",
            ),
        ]
        indexes = [
            # Every search for free time looks up stale calendars.
            models.Index(
                fields=["resource", "synced_at"],
                condition=models.Q(deleted_at=None) & ~models.Q(provider="service"),
                name="calendar_connected",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_connected(self) -> bool:
        """Whether the calendar belongs to an external provider."""
        return self.provider != self.SERVICE

    @property
    def is_writable(self) -> bool:
        """Whether bookings can be mirrored to the provider."""
        return self.is_connected and self.provider_access == self.WRITER


class TimeRange(models.Func):
    """A range of times, written as in the index `event_range`."""

    function = "tstzrange"
    output_field = DateTimeRangeField()


def overlap(start: datetime | None, end: datetime | None, path: str = "") -> models.Q:
    """Return the condition that an event overlaps [start, end); an absent bound is open.

    For queries across resources: those of one resource have an index of their own. Without a start,
    the index of `start` finds the events. path: the relation to the event, such as `event__`.
    """
    is_range = start is not None and (end is None or start < end)
    if connection.vendor != "postgresql" or not is_range:
        bounds = {f"{path}end__gt": start, f"{path}start__lt": end}
        return models.Q(**{name: bound for name, bound in bounds.items() if bound is not None})
    times = TimeRange(f"{path}start", f"{path}end")
    given = (models.Value(bound, models.DateTimeField()) for bound in (start, end))
    return models.Q(Overlap(times, TimeRange(*given)))


VISIT = ""  # the step of the event that is a visit as a whole


class EventQuerySet(models.QuerySet["Event"]):
    def for_app(self, app: App | uuid.UUID) -> "EventQuerySet":
        """The app's events, except those whose calendar, resource or booking is soft-deleted,
        copies that only ended seats have, and further units.
        """
        rows = self.filter(resource__app=app, resource__deleted_at=None, calendar__deleted_at=None)
        rows = rows.filter(of_ended_seats=False, is_further_unit=None)
        # An event of a group has the owner's booking and those of its seats: join the owner's only,
        # so that each event is at most one row.
        own = models.FilteredRelation(
            "bookings", condition=models.Q(bookings__owner_booking__isnull=True)
        )
        shown = rows.annotate(own_booking=own).filter(own_booking__deleted_at=None)
        return shown.filter(main__bookings__deleted_at=None)

    def without_whole_visits(self) -> "EventQuerySet":
        """Without the events of visits as a whole, whose steps have their own."""
        return self.exclude(step=VISIT)

    def overlapping(self, start: datetime, end: datetime) -> "EventQuerySet":
        """Events that overlap [start, end); touching is not overlapping."""
        return self.filter(start__lt=end, end__gt=start)

    def of_completed_bookings(self) -> "EventQuerySet":
        """Events of completed bookings: they no longer block, but count towards daily limits."""
        own = models.Q(
            bookings__state="completed",
            bookings__owner_booking=None,
            bookings__deleted_at=None,
        )
        of_main = models.Q(
            main__bookings__state="completed",
            main__bookings__owner_booking=None,
            main__bookings__deleted_at=None,
        )
        return self.filter(own | of_main, busy=False)


MAX_CONFERENCE_URL = 500


class Event(Owned):
    """A half-open stretch of time in a calendar.

    busy: it blocks its resource. exclusive (busy, of a normal booking): the database guarantees
    that no two exclusive events of a resource overlap (`slot_taken`). unit: of a resource with a
    capacity above 1, the one that the booking uses; if it is not 0, the event is not exclusive, and
    no two events of the unit overlap (`slot_taken_unit`). buffer_before, buffer_after: seconds,
    those of the project when the booking was made; null (no project): those of the project that
    asks.
    """

    app = ParentsAppField()
    calendar = models.ForeignKey(Calendar, models.CASCADE, related_name="events")
    # Copied from the calendar: conflicts are per resource, and one index finds them.
    resource = models.ForeignKey(Resource, models.CASCADE, related_name="events")
    # In a mutual booking, the event of the first resource has a companion in the calendar of each
    # other resource.
    main = models.ForeignKey(
        "self", models.CASCADE, null=True, blank=True, related_name="companions"
    )
    # True: a companion in the calendar of its main event, for one more unit of the resource. Only
    # searches for busy time see it. NULL for the others, as below.
    is_further_unit = models.BooleanField(null=True, editable=False)
    # The project of the booking, for the limit of bookings per day.
    project = models.ForeignKey(
        "Project", models.SET_NULL, null=True, blank=True, related_name="events"
    )
    start = models.DateTimeField()
    end = models.DateTimeField()
    all_day = models.BooleanField(default=False)
    start_date = models.DateField(null=True, blank=True)
    end_date = models.DateField(null=True, blank=True, help_text="exclusive")
    what = models.CharField(max_length=200)
    where = models.CharField(max_length=200, blank=True)
    description = models.TextField(max_length=8000, blank=True)
    participants = models.JSONField(default=list, blank=True)
    rsvp = models.CharField(max_length=32, blank=True)
    invite = models.BooleanField(default=True)
    busy = models.BooleanField(default=True)
    exclusive = models.BooleanField(default=False, editable=False)
    unit = models.SmallIntegerField(default=0, db_default=0, editable=False)
    # A copy that ended seats keep when the event of their group changes.
    of_ended_seats = models.BooleanField(default=False, db_default=False, editable=False)
    buffer_before = models.IntegerField(null=True, blank=True, editable=False)
    buffer_after = models.IntegerField(null=True, blank=True, editable=False)
    # The name of the requirement that its resource meets. NULL without, and in rows of version 1.0.
    requirement = models.CharField(  # noqa: DJ001
        max_length=100, null=True, blank=True, editable=False
    )
    # The name of the step of a visit. Empty in the event of the visit as a whole, which blocks
    # nothing: its companions are the steps. NULL in other bookings.
    step = models.CharField(max_length=100, null=True, blank=True, editable=False)  # noqa: DJ001
    provider_id = models.CharField(
        max_length=300,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="the UID in a connected calendar",
    )
    # Of a booking with a video call, of which a group's seats share the link. NULL without one: for
    # a column that has a value in every row, SQLite would copy the table and drop its triggers.
    conference_provider = models.CharField(  # noqa: DJ001
        max_length=8, null=True, blank=True, editable=False
    )
    conference_url = models.CharField(  # noqa: DJ001
        max_length=MAX_CONFERENCE_URL,
        null=True,
        blank=True,
        editable=False,
        help_text="empty: a connected calendar has not made it yet",
    )

    objects = EventQuerySet.as_manager()

    class Meta(Owned.Meta):
        abstract = False
        constraints = [
            models.CheckConstraint(
                condition=models.Q(end__gt=models.F("start")), name="event_end_after_start"
            ),
            models.CheckConstraint(
                condition=models.Q(exclusive=False) | models.Q(busy=True),
                name="event_exclusive_is_busy",
            ),
            models.CheckConstraint(
                condition=models.Q(all_day=False)
                | models.Q(start_date__isnull=False, end_date__gt=models.F("start_date")),
                name="event_all_day_has_dates",
            ),
        ]
        indexes = [
            # Free time: events that block a resource and end after the start of the range.
            models.Index(
                fields=["resource", "end"],
                include=["start", "all_day", "id"],
                condition=models.Q(busy=True),
                name="event_blocking",
            ),
            models.Index(fields=["calendar", "start"], name="event_calendar"),
            models.Index(
                fields=["calendar", "provider_id"],
                condition=~models.Q(provider_id=""),
                name="event_of_provider",
            ),
            # Events of a day across all resources.
            models.Index(fields=["start"], name="event_start"),
            models.Index(fields=["updated_at"], name="event_updated"),
            models.Index(
                fields=["project", "resource", "end"],
                condition=models.Q(busy=True, project__isnull=False),
                name="event_project",
            ),
            # The daily limit also counts completed bookings, whose events no longer block.
            models.Index(
                fields=["project", "resource", "end"],
                condition=models.Q(busy=False, project__isnull=False),
                name="event_project_ended",
            ),
            # All-day events, whose instants depend on the rules of their zone.
            models.Index(fields=["end"], condition=models.Q(all_day=True), name="event_all_day"),
        ]

    def __str__(self) -> str:
        return self.what

    @property
    def dates(self) -> tuple[date, date]:
        """The dates of an all-day event; the second is exclusive. Raises ValueError for other
        events.
        """
        if self.start_date is None or self.end_date is None:
            raise ValueError("no event of whole days")
        return self.start_date, self.end_date


class ProjectQuerySet(models.QuerySet["Project"]):
    def for_app(self, app: App | uuid.UUID) -> "ProjectQuerySet":
        return self.filter(app=app, deleted_at=None)


class Project(HasConstraints, Owned):
    """A bookable service: resources, availability parameters, constraints and booking defaults."""

    app = models.ForeignKey(App, models.CASCADE, related_name="projects")
    external_id = external_id_field()
    slug = models.CharField(max_length=100)
    name = models.CharField(max_length=200)
    resources = models.ManyToManyField(Resource, through="ProjectResource", related_name="projects")
    # As sent (availability/search/requirements.py); the resources are derived from it.
    requires = models.JSONField(null=True, blank=True)
    # As sent (availability/search/visits.py), instead of `requires`.
    steps = models.JSONField(null=True, blank=True)
    order = models.CharField(max_length=5, null=True, blank=True)  # noqa: DJ001
    availability = ObjectField(default=dict, blank=True)
    booking = ObjectField(default=dict, blank=True)
    customer_fields = ObjectField(default=dict, blank=True)
    ui = ObjectField(default=dict, blank=True)
    # Language -> texts (availability/project_texts.py).
    translations = ObjectField(default=dict, db_default={}, blank=True)
    settings = ObjectField(default=dict, blank=True)
    meta = ObjectField(default=dict, blank=True)
    replaces_notifications = models.BooleanField(
        default=False, help_text="its own event notifications, even none, instead of the app's"
    )
    reservation_time = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="seconds that a hold lasts; 30 where empty"
    )
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Set by queries that prefetch the resources:
    shown_resources: Sequence[Resource]

    objects = ProjectQuerySet.as_manager()
    history = ChangeHistory()

    class Meta(Owned.Meta):
        abstract = False
        constraints = [
            models.UniqueConstraint(
                fields=["slug"], condition=models.Q(deleted_at=None), name="project_slug_once"
            ),
            external_id_once("project"),
        ]
        indexes = [models.Index(fields=["app", "-created_at", "-id"], name="project_listing")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_mutual(self) -> bool:
        """Whether a booking takes all resources at once."""
        return not self.derives_resources and self.availability.get("mode") == "mutual"

    @property
    def derives_resources(self) -> bool:
        """Whether its resources follow from requirements or steps."""
        return bool(self.requires or self.steps)

    @property
    def is_published(self) -> bool:
        """Whether the project has a hosted page; reads the app."""
        return self.app.publishes(self.settings)


class Hold(models.Model):
    """Half-open time that is kept for a booking in progress, until `expires_at`.

    Expiry needs no job: every query for busy time checks `expires_at`. A hold on several resources
    (mode mutual) or units has one row for each; the others refer to the first as `main`.
    """

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="holds")
    resource = models.ForeignKey(Resource, models.CASCADE, related_name="holds")
    main = models.ForeignKey(
        "self", models.CASCADE, null=True, blank=True, related_name="companions"
    )
    project = models.ForeignKey(
        Project, models.CASCADE, null=True, blank=True, related_name="holds"
    )
    start = models.DateTimeField()
    end = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    # As those of an event.
    buffer_before = models.IntegerField(null=True, blank=True, editable=False)
    buffer_after = models.IntegerField(null=True, blank=True, editable=False)
    requirement = models.CharField(  # noqa: DJ001
        max_length=100, null=True, blank=True, editable=False
    )
    step = models.CharField(max_length=100, null=True, blank=True, editable=False)  # noqa: DJ001
    extensions = models.PositiveSmallIntegerField(default=0)
    client_address = models.CharField(
        max_length=64, blank=True, help_text="of a widget key's caller, who gets only a few"
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(end__gt=models.F("start")), name="hold_end_after_start"
            ),
        ]
        indexes = [
            models.Index(
                fields=["resource", "end"],
                condition=models.Q(used_at=None),
                name="hold_blocking",
            ),
            models.Index(
                fields=["client_address", "expires_at"],
                condition=~models.Q(client_address=""),
                name="hold_by_address",
            ),
            models.Index(fields=["expires_at"], name="hold_lapsed"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} until {self.expires_at}"

    place = None  # as holds of seats

    @property
    def quantity(self) -> int:
        """The units of its resource that it keeps."""
        rows = [self, *self.companions.all()]
        return sum(row.resource_id == self.resource_id for row in rows)

    @property
    def is_public(self) -> bool:
        """Whether a public caller placed it."""
        return bool(self.client_address)

    @property
    def is_released(self) -> bool:
        """Whether it was released, which sets `expires_at` to `created_at`."""
        return self.expires_at <= self.created_at


class ProjectResource(models.Model):
    """A resource of a project, in the project's order of preference."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="project_resources")
    resource = models.ForeignKey(Resource, models.CASCADE, related_name="project_resources")
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            models.UniqueConstraint(fields=["project", "resource"], name="project_resource_once"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} in {self.project}"


class ProjectNotification(EventNotification):
    """A notification that each booking of the project gets, unless the booking has its own."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="event_notifications")

    class Meta(EventNotification.Meta):
        abstract = False
