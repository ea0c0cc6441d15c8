"""Calendars at providers: grants, connections, synced objects, mirrored events, and feeds."""

from datetime import datetime

from django.db import models
from django.utils import timezone

from apps_config.models import Account, App
from availability.models import Calendar, Event, Resource
from common.db.ids import TenantIdField
from common.db.message_field import MessageField
from common.time.instants import format_stamp
from external_calendars.providers.base import PROVIDER_ERRORS


class ProviderClient(models.Model):
    """An app's own OAuth client at a provider. Other apps use the client of the settings."""

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="provider_clients")
    provider = models.CharField(max_length=16)
    client_id = models.CharField(max_length=300)
    client_secret = models.TextField(editable=False, help_text="encrypted")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["app", "provider"], name="provider_client_once"),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.client_id}"


class ConsentRequest(models.Model):
    """A person on the way to a provider's consent page; used once, within ten minutes.

    account: who began it in the back office, and has to come back; NULL if a program asked for it.
    calendar: to be connected anew. wanted: the name or id of a calendar; "": the person's main one.
    """

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="+")
    resource = models.ForeignKey(Resource, models.CASCADE, related_name="+")
    calendar = models.ForeignKey(Calendar, models.CASCADE, null=True, related_name="+")
    account = models.ForeignKey(Account, models.CASCADE, null=True, related_name="+")
    provider = models.CharField(max_length=16)
    state_hash = models.CharField(max_length=64, unique=True, editable=False)
    verifier = models.TextField(editable=False, help_text="encrypted")
    nonce = models.CharField(max_length=64, editable=False)
    redirect_url = models.CharField(max_length=2000)
    wanted = models.CharField(max_length=300, blank=True)
    is_primary = models.BooleanField(null=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.provider} for {self.resource_id}"


class Grant(models.Model):
    """What a person allowed at a provider, for one or several calendars of an app.

    `renew_at`: when a worker may get new tokens; while one does, the end of its lease; NULL if only
    the person can mend it.
    """

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="grants")
    provider = models.CharField(max_length=16)
    # Of the person at the provider: an id that never changes, and the e-mail address.
    subject = models.CharField(max_length=255)
    email = models.CharField(max_length=300, blank=True)
    client_id = models.CharField(max_length=300, editable=False)
    refresh_token = models.TextField(editable=False, help_text="encrypted")
    access_token = models.TextField(editable=False, help_text="encrypted")
    access_ends_at = models.DateTimeField(editable=False)
    renew_at = models.DateTimeField(null=True, editable=False)
    lease_token = models.UUIDField(null=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="in a row")
    # The end of the lease of a live free/busy check: one at a time asks the account.
    checked_until = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["app", "provider", "subject"], name="grant_once"),
        ]
        indexes = [
            models.Index(
                fields=["renew_at"],
                condition=models.Q(renew_at__isnull=False),
                name="grant_renewal_due",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email or self.subject} at {self.provider}"


class Connection(models.Model):
    """How a calendar is reached at its provider, and its sync state.

    `next_at`: when a worker may claim the sync; during a sync, the end of the lease; NULL if only a
    person can fix `problem` (a wrong password).
    """

    calendar = models.OneToOneField(
        Calendar, models.CASCADE, primary_key=True, related_name="connection"
    )
    # The discovered collection or feed. A feed's address is a secret, so calendar.provider_id has
    # only the server.
    address = models.TextField(editable=False, help_text="encrypted")
    username = models.CharField(max_length=300, blank=True)
    password = models.TextField(blank=True, editable=False, help_text="encrypted")
    # In place of user name and password, for providers with OAuth.
    grant = models.ForeignKey(
        Grant, models.PROTECT, null=True, editable=False, related_name="connections"
    )
    # Where the last sync ended: `way` and a sync token, a ctag, or a feed's ETag and Last-Modified.
    mark = models.JSONField(default=dict, blank=True, editable=False)
    # The zone and e-mail address with which texts were parsed; a change re-reads everything.
    read_as = models.CharField(max_length=400, blank=True, editable=False)
    problem = models.CharField(max_length=32, blank=True, editable=False)
    problem_since = models.DateTimeField(null=True, blank=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="in a row")
    # When it was announced that the problem has stopped the syncs.
    announced_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Progress of the running or last sync: stored objects of all objects.
    done = models.PositiveIntegerField(default=0, editable=False)
    total = models.PositiveIntegerField(default=0, editable=False)
    # Number of unreadable objects; each row has its problem.
    unread = models.PositiveIntegerField(default=0, editable=False)
    next_at = models.DateTimeField(null=True, blank=True, editable=False)
    lease_token = models.UUIDField(null=True, blank=True, editable=False)
    # The last message that something has changed: a sync that began before it is not the last.
    notified_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The e-mail addresses of the calendar's user at the provider, as it spells them.
    user_addresses = models.JSONField(default=list, blank=True, editable=False)
    # Of the last write; and of the last one with attendees, whether its server invited them all.
    last_write_succeeded = models.BooleanField(default=False, editable=False)
    last_write_invited = models.BooleanField(default=False, editable=False)
    # Whether the provider makes links of video calls in this calendar; NULL if it does not say so.
    makes_links = models.BooleanField(null=True, editable=False)
    checked_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        indexes = [
            models.Index(
                fields=["next_at"],
                condition=models.Q(next_at__isnull=False),
                name="connection_due",
            ),
            # Whose accounts are being asked: those have no other sync meanwhile.
            models.Index(
                fields=["grant"],
                condition=models.Q(lease_token__isnull=False, grant__isnull=False),
                name="connection_in_sync",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.calendar} at {self.calendar.provider_id}"

    @property
    def is_stopped(self) -> bool:
        """Whether only a person can restart the syncs."""
        return self.next_at is None

    def problem_record(self) -> dict[str, str] | None:
        if not self.problem or self.problem_since is None:
            return None
        return {
            "code": self.problem,
            "text": PROVIDER_ERRORS[self.problem],
            "since": format_stamp(self.problem_since),
        }

    def progress_record(self) -> dict[str, int] | None:
        """Return the API record of the running sync's progress; None without a running sync."""
        if self.lease_token is None or not self.total:
            return None
        return {"done": self.done, "total": self.total}


class PushChannelQuerySet(models.QuerySet["PushChannel"]):
    def working(self, at: datetime) -> "PushChannelQuerySet":
        """Those that have called and have not ended at this time."""
        return self.filter(heard_at__isnull=False, ends_at__gt=at)


class PushChannel(models.Model):
    """A channel on which a provider says that a calendar has changed.

    Before it ends, it is extended, or a new one takes its place; until then, both may call. One
    that could not be opened has ended, and its `renew_at` says when a worker tries again.
    """

    connection = models.ForeignKey(Connection, models.CASCADE, related_name="channels")
    # The channel's id at Google (ours), or the subscription's at Microsoft (theirs).
    channel_id = models.CharField(max_length=300, unique=True)
    token_hash = models.CharField(max_length=64, editable=False)
    # Google's id of the watched calendar, needed to end the channel.
    resource_id = models.CharField(max_length=300, blank=True, editable=False)
    renew_at = models.DateTimeField(editable=False)
    ends_at = models.DateTimeField(editable=False)
    # Its first message, which shows that the provider reaches this service.
    heard_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = PushChannelQuerySet.as_manager()

    def __str__(self) -> str:
        return self.channel_id


class ExternalObject(models.Model):
    """One object of a collection (RFC 4791 4.1), or one UID of a feed, as last synced.

    Its events are the calendar's Event rows with its UID as `provider_id`.
    """

    connection = models.ForeignKey(Connection, models.CASCADE, related_name="remote_objects")
    href = models.CharField(max_length=1000, help_text="the path at its server; a feed's: the UID")
    uid = models.CharField(max_length=300)
    etag = models.CharField(max_length=300, blank=True)
    # Only kept if it is needed again: to expand recurring events, to compare mirrored events.
    text = models.TextField(blank=True, help_text="iCalendar")
    is_recurring = models.BooleanField(default=False)
    # The end of the expanded window of a recurring object.
    expanded_until = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=200, blank=True, help_text="why it can't be read")
    problem_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["connection", "href"], name="external_object_once"),
        ]
        indexes = [
            models.Index(fields=["connection", "uid"], name="external_object_uid"),
            models.Index(
                fields=["expanded_until"],
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
    """The mirror of a booking's event in a connected calendar."""

    PENDING, WRITTEN, REMOVED = "pending", "written", "removed"
    MOVED_THERE, REMOVED_THERE, REFUSED = "moved_there", "removed_there", "refused"
    STATES = (PENDING, WRITTEN, REMOVED, MOVED_THERE, REMOVED_THERE, REFUSED)

    id = TenantIdField(primary_key=True, owner="event")
    event = models.ForeignKey(Event, models.CASCADE, related_name="written")
    calendar = models.ForeignKey(Calendar, models.CASCADE, related_name="written")
    uid = models.CharField(max_length=300)
    href = models.CharField(max_length=1000, blank=True)
    etag = models.CharField(max_length=300, blank=True)
    state = models.CharField(
        max_length=13, choices=[(state, state) for state in STATES], default=PENDING
    )
    reason = MessageField(blank=True)
    # The time at the provider when it was last written, or when a person had changed it.
    start = models.DateTimeField(null=True, blank=True)
    end = models.DateTimeField(null=True, blank=True)
    written_at = models.DateTimeField(null=True, blank=True)
    # The attendees of the last write, canonical address -> SCHEDULE-STATUS, "" without one.
    invitations = models.JSONField(default=dict, blank=True, editable=False)
    # The attendees' answers that were last found there: canonical address -> response.
    answers = models.JSONField(null=True, blank=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["event", "calendar"], name="written_event_once"),
        ]
        indexes = [models.Index(fields=["calendar", "uid"], name="written_event_uid")]

    def __str__(self) -> str:
        return f"{self.uid} {self.state}"

    @property
    def is_reachable(self) -> bool:
        """Whether the calendar is still connected. Select `calendar__connection` with the row."""
        return self.calendar.deleted_at is None and hasattr(self.calendar, "connection")


class Feed(models.Model):
    """The secret URL under which calendar programs read a calendar; one at a time."""

    calendar = models.OneToOneField(Calendar, models.CASCADE, primary_key=True, related_name="feed")
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    details = models.BooleanField(default=False, help_text="shows the customers of bookings")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return f"feed of {self.calendar}"
