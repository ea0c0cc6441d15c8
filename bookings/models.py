"""What was agreed, and where it stands."""

import uuid

from django.db import models
from django.db.models.functions import Upper

from apps_config.models import App, EventNotification
from availability.models import Event, Owned, Project, Resource
from scheduling.api.ids import new_id


class BookingQuerySet(models.QuerySet):
    def for_app(self, app: App | uuid.UUID) -> "BookingQuerySet":
        return self.filter(app=app, deleted_at=None)


class Booking(Owned):
    """An agreement that runs through a graph of states; its time is its event's."""

    app = models.ForeignKey(App, models.CASCADE, related_name="bookings")
    project = models.ForeignKey(
        Project, models.PROTECT, null=True, blank=True, related_name="bookings"
    )
    resource = models.ForeignKey(Resource, models.PROTECT, related_name="bookings")
    event = models.OneToOneField(Event, models.PROTECT, related_name="booking")
    graph = models.CharField(max_length=32)
    state = models.CharField(max_length=32)
    completed = models.BooleanField(default=False, help_text="no action is left")
    allow_double_bookings = models.BooleanField(default=False)
    enforce_availability = models.BooleanField(default=False)
    completes_at = models.DateTimeField(
        null=True, blank=True, help_text="an hour after the end, while the booking is live"
    )
    reschedules = models.PositiveSmallIntegerField(default=0)
    meta = models.JSONField(default=dict, blank=True)
    # Kept by the services, not by Django: an action and its log line carry the same instant.
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = BookingQuerySet.as_manager()

    class Meta(Owned.Meta):
        abstract = False
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
                fields=["project"],
                condition=models.Q(project__isnull=False),
                name="booking_project",
            ),
            models.Index(
                fields=["app", "updated_at"],
                condition=models.Q(deleted_at=None),
                name="booking_updated",
            ),
            # The queue of those that complete by themselves.
            models.Index(
                fields=["completes_at"],
                condition=models.Q(completes_at__isnull=False),
                name="booking_completes",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.graph} {self.state} {self.id}"


class Customer(models.Model):
    """Who booked: a snapshot of the booking's moment."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    booking = models.ForeignKey(Booking, models.CASCADE, related_name="customers")
    position = models.PositiveSmallIntegerField(default=0)
    name = models.CharField(max_length=200)
    email = models.EmailField()
    phone = models.CharField(max_length=200, blank=True)
    voip = models.CharField(max_length=200, blank=True)
    timezone = models.CharField(max_length=64, blank=True)
    meta = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["position", "id"]
        indexes = [
            # Case-insensitive look-ups compare in upper case.
            models.Index(Upper("email"), name="customer_email"),
        ]

    def __str__(self) -> str:
        return self.name


class StateChange(models.Model):
    """One step of a booking: its history and what later sends are made from. Append-only."""

    SOURCES = ("api", "widget", "admin", "link", "timer")

    booking = models.ForeignKey(Booking, models.CASCADE, related_name="logs")
    from_state = models.CharField(max_length=32)
    to_state = models.CharField(max_length=32)
    action = models.CharField(max_length=32)
    actor = models.CharField(max_length=254, blank=True)
    source = models.CharField(max_length=6, choices=[(source, source) for source in SOURCES])
    message = models.TextField(max_length=8000, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.action}: {self.from_state} to {self.to_state}"


class BookingNotification(EventNotification):
    """A reminder of this booking: its own, else a copy of its project's or app's of that day."""

    booking = models.ForeignKey(Booking, models.CASCADE, related_name="event_notifications")

    class Meta(EventNotification.Meta):
        abstract = False


class BookingTally(models.Model):
    """How many bookings of an app are in a state: kept by triggers (migration 0002), read by lists.

    The exact total of a listing is the sum of a few rows instead of a count over all bookings.
    Spread over slots, so that clients that book at once do not queue for one row.
    """

    # No constraint in the database: the triggers also fire while an app is being deleted.
    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_constraint=False)
    state = models.CharField(max_length=32)
    slot = models.PositiveSmallIntegerField()
    count = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["app", "state", "slot"], name="booking_tally_once"),
        ]

    def __str__(self) -> str:
        return f"{self.state}: {self.count}"
