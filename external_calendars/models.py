"""Calendars that live elsewhere: how they are reached, what stands in them, what was written."""

from django.db import models
from django.utils import timezone

from availability.models import Calendar, Event
from external_calendars.providers.base import TROUBLES
from scheduling.api.ids import new_id
from scheduling.api.instants import format_stamp
from scheduling.api.reencryption import keeps_secrets


class Connection(models.Model):
    """How one calendar is reached at its provider, and how far it is in step.

    `next_at` is when a worker may look there: the next turn, or, while one is at it, the end of its
    lease. A connection that can't go on without a person (a wrong password) has none, and says so
    in `problem`.
    """

    calendar = models.OneToOneField(
        Calendar, models.CASCADE, primary_key=True, related_name="connection"
    )
    # The collection or feed that was found where a person said. A feed's address is a secret in
    # itself, so that calendar.provider_id shows no more than its server.
    address = models.TextField(editable=False, help_text="encrypted")
    username = models.CharField(max_length=300, blank=True)
    password = models.TextField(blank=True, editable=False, help_text="encrypted")
    # Where the last look ended: a sync-token, a ctag, or a feed's ETag and Last-Modified, each with
    # the word for which of them it is.
    mark = models.JSONField(default=dict, blank=True, editable=False)
    # On whose wall clock, and as whose, what stands there was read: where that has changed, all is
    # read anew.
    read_as = models.CharField(max_length=400, blank=True, editable=False)
    problem = models.CharField(max_length=32, blank=True, editable=False)
    problem_since = models.DateTimeField(null=True, blank=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="in a row")
    # Of the look that is under way, or the last: how many objects of how many are in.
    done = models.PositiveIntegerField(default=0, editable=False)
    total = models.PositiveIntegerField(default=0, editable=False)
    # Objects there that can't be read; each says why.
    unread = models.PositiveIntegerField(default=0, editable=False)
    next_at = models.DateTimeField(null=True, blank=True, editable=False)
    lease_token = models.UUIDField(null=True, blank=True, editable=False)
    looked_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        indexes = [
            models.Index(
                fields=["next_at"],
                condition=models.Q(next_at__isnull=False),
                name="connection_due",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.calendar} at {self.calendar.provider_id}"

    @property
    def is_stopped(self) -> bool:
        """Whether nothing but a person gets it going again."""
        return self.next_at is None

    def problem_record(self) -> dict[str, str] | None:
        """Why it is not in step, as answers say it."""
        if not self.problem:
            return None
        return {
            "code": self.problem,
            "text": TROUBLES[self.problem],
            "since": format_stamp(self.problem_since),
        }

    def progress_record(self) -> dict[str, int] | None:
        """How far the look that is under way has come; None where there is none."""
        if self.lease_token is None or not self.total:
            return None
        return {"done": self.done, "total": self.total}


keeps_secrets(
    "calendar",
    Connection,
    "address",
    "password",
    in_use=models.Q(calendar__deleted_at=None, calendar__resource__deleted_at=None),
)


class ExternalObject(models.Model):
    """One object of a collection (RFC 4791 4.1), or all of one UID in a feed, as last seen.

    Its events are the Event rows of the calendar with its UID as `provider_id`.
    """

    connection = models.ForeignKey(Connection, models.CASCADE, related_name="remote_objects")
    href = models.CharField(max_length=1000, help_text="the path at its server; a feed's: the UID")
    uid = models.CharField(max_length=300)
    etag = models.CharField(max_length=300, blank=True)
    # Kept only where it is needed again without asking: to repeat what recurs, to compare our own.
    text = models.TextField(blank=True, help_text="iCalendar")
    is_recurring = models.BooleanField(default=False)
    # Until when what recurs is laid out in events.
    laid_out_until = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=200, blank=True, help_text="why it can't be read")
    problem_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["connection", "href"], name="external_object_once"),
        ]
        indexes = [
            models.Index(fields=["connection", "uid"], name="external_object_uid"),
            models.Index(
                fields=["laid_out_until"],
                condition=models.Q(is_recurring=True),
                name="external_object_recurring",
            ),
            models.Index(
                fields=["connection"],
                condition=~models.Q(problem=""),
                name="external_object_unread",
            ),
        ]

    def __str__(self) -> str:
        return self.href


class WrittenEvent(models.Model):
    """The copy of a booking's event in a connected calendar: what stands there by our hand."""

    PENDING, WRITTEN, REMOVED = "pending", "written", "removed"
    MOVED_THERE, REMOVED_THERE, REFUSED = "moved_there", "removed_there", "refused"
    STATES = (PENDING, WRITTEN, REMOVED, MOVED_THERE, REMOVED_THERE, REFUSED)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    event = models.ForeignKey(Event, models.CASCADE, related_name="written")
    calendar = models.ForeignKey(Calendar, models.CASCADE, related_name="written")
    uid = models.CharField(max_length=300)
    href = models.CharField(max_length=1000, blank=True)
    etag = models.CharField(max_length=300, blank=True)
    state = models.CharField(
        max_length=13, choices=[(state, state) for state in STATES], default=PENDING
    )
    reason = models.CharField(max_length=300, blank=True)
    # What it said when it was last written, or when somebody had changed it there.
    start = models.DateTimeField(null=True, blank=True)
    end = models.DateTimeField(null=True, blank=True)
    written_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["event", "calendar"], name="written_event_once"),
        ]
        indexes = [models.Index(fields=["calendar", "uid"], name="written_event_uid")]

    def __str__(self) -> str:
        return f"{self.uid} {self.state}"

    @property
    def is_reachable(self) -> bool:
        """Whether its calendar is connected still; read with `calendar__connection`."""
        return self.calendar.deleted_at is None and hasattr(self.calendar, "connection")


class Feed(models.Model):
    """The address under which a calendar can be read by any program: one, until it is revoked."""

    calendar = models.OneToOneField(Calendar, models.CASCADE, primary_key=True, related_name="feed")
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return f"feed of {self.calendar}"
