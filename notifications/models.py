"""The outbox: deliveries, their attempts, and the webhooks they call."""

from datetime import datetime, timedelta

from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import Case, Value, When
from django.db.models.functions import Coalesce

from apps_config.history import ChangeHistory
from apps_config.models import App, ParentsAppField
from bookings.models import Booking, Customer, StateChange
from common.db.ids import TenantIdField
from common.db.message_field import MessageField
from common.db.updated_at import StampedQuerySet, UpdatedAtField
from common.email_address import MAX_LENGTH
from common.observability.log_format import current_request_id
from common.observability.tracing import current_trace_parent


class EmailTemplate(models.Model):
    """An app's override of one mail template; without a row the default applies.

    Its text and HTML are the app's own, or are made from heading and body, which have no layout.
    """

    app = models.ForeignKey(App, models.CASCADE, related_name="email_templates")
    slug = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    text = models.TextField(max_length=20_000)
    html = models.TextField(max_length=100_000)
    heading = models.CharField(max_length=200, blank=True, default="", db_default="")
    body = models.TextField(max_length=20_000, blank=True, default="", db_default="")
    updated_at = UpdatedAtField()

    history = ChangeHistory()

    class Meta:
        verbose_name = "e-mail template"
        ordering = ["slug"]
        constraints = [
            models.UniqueConstraint(fields=["app", "slug"], name="email_template_once"),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_written(self) -> bool:
        """Whether text and HTML are made from heading and body; a blank one is the default's."""
        return bool(self.heading or self.body)


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def for_app(self, app: App) -> "WebhookQuerySet":
        return self.filter(app=app, deleted_at=None)


# Not in the history: the secrets, and columns that workers write.
WEBHOOK_SECRETS = ("secret", "previous_secret", "previous_until", "failures", "failing_since")


class Webhook(models.Model):
    """A subscription: changes that match its graph, states and kinds are sent to its URL."""

    METHODS = ("post", "put", "patch")
    STANDARD, THIN = FORMATS = ("standard", "thin")

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2048)
    method = models.CharField(
        max_length=5, choices=[(word, word) for word in METHODS], default="post"
    )
    graph = models.CharField(max_length=32, blank=True, help_text="empty: any")
    states = models.JSONField(default=list, blank=True, help_text="empty: any")
    kinds = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text="such as booking.updated; empty: all but that",
    )
    # Of the body: one of FORMATS; NULL: the object. For a column that has a value in every row,
    # SQLite would copy the table.
    format = models.CharField(max_length=8, null=True, blank=True)  # noqa: DJ001
    expected_response_code = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="empty: any 2xx"
    )
    description = models.TextField(max_length=8000, blank=True)
    active = models.BooleanField(default=True)
    disabled_reason = MessageField(blank=True)
    # Encrypted (common.encryption); the previous one signs too until it runs out.
    secret = models.TextField(editable=False)
    previous_secret = models.TextField(blank=True, editable=False)
    previous_until = models.DateTimeField(null=True, blank=True, editable=False)
    failures = models.PositiveIntegerField(
        default=0, editable=False, help_text="failed tries since the last success"
    )
    failing_since = models.DateTimeField(null=True, blank=True, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = UpdatedAtField()

    objects = WebhookQuerySet.as_manager()
    history = ChangeHistory(leave_out=["updated_at", *WEBHOOK_SECRETS])

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["app"], condition=models.Q(deleted_at=None), name="webhook_of_app"
            ),
        ]

    def __str__(self) -> str:
        return self.url


# The ends that somebody should know of; and how far behind its time an open one stands out.
FAILURES = ("failed", "expired")
LATE = timedelta(minutes=1)


class DeliveryQuerySet(StampedQuerySet["Delivery"]):
    def open(self) -> "DeliveryQuerySet":
        """Deliveries that are scheduled or being sent."""
        return self.filter(next_at__isnull=False)

    def overdue(self, now: datetime) -> "DeliveryQuerySet":
        """Open ones whose time has come (or whose lease has lapsed), the oldest first."""
        return self.filter(next_at__lte=now).order_by("next_at")

    def failed_since(self, moment: datetime) -> "DeliveryQuerySet":
        return self.filter(state__in=FAILURES, finished_at__gte=moment)


# SQL of the stored body of a call: its own, or that of its change's calls.
CALL_BODY = Case(
    When(webhook__isnull=False, body="", then=Coalesce("change__calls__body", Value(""))),
    default="body",
    output_field=models.TextField(),
)


class Delivery(models.Model):
    """One mail, one call or one write to a calendar elsewhere: planned with its booking's change,
    claimed by a worker, then final.

    `next_at` is when a worker may take it: its due time, the time of the next try, or, while it is
    being sent, the end of the worker's lease. Final rows have none.
    """

    EMAIL, WEBHOOK, CALENDAR = "email", "webhook", "calendar"
    TYPES = (EMAIL, WEBHOOK, CALENDAR)
    SCHEDULED, SENDING = "scheduled", "sending"
    DELIVERED, FAILED, CANCELLED = "delivered", "failed", "cancelled"
    SKIPPED, EXPIRED = "skipped", "expired"
    OPEN = (SCHEDULED, SENDING)
    STATES = (SCHEDULED, SENDING, DELIVERED, FAILED, CANCELLED, SKIPPED, EXPIRED)
    REMINDER = "reminder"  # the kind of what an event notification causes

    id = TenantIdField(primary_key=True)
    # No index of its own: the listing's begins with it.
    app = models.ForeignKey(App, models.CASCADE, related_name="deliveries", db_index=False)
    booking = models.ForeignKey(
        Booking, models.CASCADE, null=True, blank=True, related_name="deliveries"
    )
    change = models.ForeignKey(
        StateChange,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    number = models.PositiveSmallIntegerField(default=0, help_text="its place among the change's")
    # No index of its own: its log's begins with it.
    webhook = models.ForeignKey(
        Webhook,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="deliveries",
        db_index=False,
    )
    customer = models.ForeignKey(
        Customer, models.CASCADE, null=True, blank=True, related_name="+", db_index=False
    )
    type = models.CharField(max_length=8, choices=[(kind, kind) for kind in TYPES])
    kind = models.CharField(max_length=40, help_text="reminder, confirmed, rescheduled, test, ...")
    recipient = models.CharField(max_length=8, blank=True, help_text="customer or owner, of a mail")
    version = models.PositiveSmallIntegerField(
        default=0, help_text="how often the booking had been moved when this was planned"
    )
    # The facts of the change that a mail tells, or where and how an event notification calls.
    content = models.JSONField(default=dict, blank=True)
    # Empty for the calls of a change to webhooks: `ChangeCalls` has their common body.
    body = models.TextField(blank=True, help_text="of a call: the same on every try")
    endpoint = models.CharField(max_length=300, blank=True, help_text="scheme://host:port")
    state = models.CharField(
        max_length=9, choices=[(state, state) for state in STATES], default=SCHEDULED
    )
    reason = MessageField(blank=True)
    due_at = models.DateTimeField()
    next_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()
    tries = models.PositiveSmallIntegerField(default=0)
    lapses = models.PositiveSmallIntegerField(
        default=0, help_text="tries whose worker was never heard of again"
    )
    lease_token = models.UUIDField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField()
    updated_at = UpdatedAtField(db_default=TransactionNow())
    finished_at = models.DateTimeField(null=True, blank=True)
    # Of the request that caused it; empty: a timer did, or nothing is traced.
    request_id = models.CharField(
        max_length=100, blank=True, default=current_request_id, db_default="", editable=False
    )
    trace_parent = models.CharField(
        max_length=55, blank=True, default=current_trace_parent, db_default="", editable=False
    )

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-id"]
        indexes = [
            # The queue of one lane. No index in the order of `next_at` alone: the planner prefers
            # it, and reads the due rows of all other lanes in it.
            models.Index(
                fields=["type", "app", "endpoint", "next_at", "id"],
                condition=models.Q(next_at__isnull=False),
                name="delivery_lane",
            ),
            # How many are in flight to whom.
            models.Index(
                fields=["type", "endpoint", "app"],
                condition=models.Q(state="sending"),
                name="delivery_in_flight",
            ),
            models.Index(fields=["app", "-id"], name="delivery_listing"),
            models.Index(fields=["app", "type", "-id"], name="delivery_listing_by_type"),
            # Most deliveries are delivered: the list of those reads the index above.
            models.Index(
                fields=["app", "state", "-id"],
                condition=~models.Q(state="delivered"),
                name="delivery_listing_by_state",
            ),
            models.Index(fields=["app", "updated_at"], name="delivery_updated"),
            models.Index(
                fields=["webhook", "-id"],
                condition=models.Q(webhook__isnull=False),
                name="delivery_of_webhook",
            ),
            models.Index(
                fields=["finished_at"],
                condition=models.Q(finished_at__isnull=False),
                name="delivery_retention",
            ),
            models.Index(
                fields=["finished_at"],
                condition=models.Q(state__in=["failed", "expired"]),
                name="delivery_failures",
            ),
        ]
        constraints = [
            # A change is planned once.
            models.UniqueConstraint(fields=["change", "number"], name="delivery_of_change_once"),
            models.CheckConstraint(
                name="delivery_is_open_or_final",
                condition=models.Q(
                    state__in=["scheduled", "sending"],
                    next_at__isnull=False,
                    finished_at__isnull=True,
                )
                | models.Q(
                    state__in=["delivered", "failed", "cancelled", "skipped", "expired"],
                    next_at__isnull=True,
                    finished_at__isnull=False,
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.kind} {self.state}"

    @property
    def is_final(self) -> bool:
        return self.next_at is None


class ChangeCallsQuerySet(models.QuerySet["ChangeCalls"]):
    def pending(self) -> "ChangeCallsQuerySet":
        """Changes that no worker has expanded to deliveries yet."""
        return self.filter(waiting_since__isnull=False)

    def oldest_pending(self) -> datetime | None:
        """Return since when the oldest pending change waits; None: there is none."""
        rows = self.pending().order_by("waiting_since", "change")
        return rows.values_list("waiting_since", flat=True).first()


class ChangeCalls(models.Model):
    """The webhook calls of one change: their common body, as of the change.

    The change's transaction writes this row only; a worker expands it to one delivery per webhook.
    """

    change = models.OneToOneField(
        StateChange, models.CASCADE, primary_key=True, related_name="calls"
    )
    kind = models.CharField(max_length=40)
    version = models.PositiveSmallIntegerField(help_text="how often the booking had been moved")
    first_number = models.PositiveSmallIntegerField(help_text="of the deliveries to write")
    webhooks = models.JSONField(help_text="ids of the webhooks to call; empty once expanded")
    body = models.TextField(blank=True, help_text="of all calls; empty once erased")
    waiting_since = models.DateTimeField(null=True, blank=True)  # null once expanded
    # Of the request, for the deliveries.
    request_id = models.CharField(
        max_length=100, blank=True, default=current_request_id, editable=False
    )
    trace_parent = models.CharField(
        max_length=55, blank=True, default=current_trace_parent, editable=False
    )

    objects = ChangeCallsQuerySet.as_manager()

    class Meta:
        verbose_name = verbose_name_plural = "webhook calls"
        indexes = [
            models.Index(
                fields=["waiting_since", "change"],
                condition=models.Q(waiting_since__isnull=False),
                name="change_calls_pending",
            ),
        ]

    def __str__(self) -> str:
        return f"calls of {self.kind}"


class LaneCheck(models.Model):
    """A time at which a dispatcher has to check a lane: the deliveries of one type, app and server.

    Triggers (migrations/0001_release_1_0.*.sql) insert a row for each delivery that becomes due
    earlier than it was, at most one per lane and transaction. They never update a row, so bookings
    of one app don't wait for each other. A dispatcher that checks a lane leaves at most one row for
    its next check.
    """

    # No constraint in the database: the triggers would check it for each delivery.
    app = models.ForeignKey(
        App, models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    type = models.CharField(max_length=8)
    endpoint = models.CharField(max_length=300, blank=True)
    next_at = models.DateTimeField()
    waiting_since = models.DateTimeField(
        null=True, blank=True, help_text="When the oldest due delivery left in the lane was due."
    )
    is_held = models.BooleanField(
        default=False,
        db_default=False,
        help_text="A circuit breaker or an earlier delivery holds the due deliveries back.",
    )
    transaction = models.BigIntegerField(
        default=0, db_default=0, help_text="The id of the transaction that inserted the row."
    )

    class Meta:
        verbose_name = "delivery lane"
        ordering = ["next_at", "id"]
        indexes = [
            models.Index(fields=["type", "next_at", "id"], name="lane_check_due"),
            models.Index(fields=["app", "type", "endpoint", "next_at"], name="lane_check_of_lane"),
            models.Index(
                fields=["endpoint"],
                condition=models.Q(waiting_since__isnull=False),
                name="lane_check_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.endpoint} at {self.next_at}"


class Suppression(models.Model):
    """An address that an app sends no e-mails (bounced) or no reminders (unsubscribed) to."""

    BOUNCED, UNSUBSCRIBED = "bounced", "unsubscribed"
    REASONS = (
        (BOUNCED, "E-mails bounce: no e-mails"),
        (UNSUBSCRIBED, "Unsubscribed: no reminders"),
    )

    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    address = models.CharField(max_length=MAX_LENGTH)  # in its canonical form
    reason = models.CharField(max_length=12, choices=REASONS)
    detail = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = "suppressed address"
        verbose_name_plural = "suppressed addresses"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["app", "address", "reason"], name="suppression_once"),
        ]

    def __str__(self) -> str:
        return self.address


class Attempt(models.Model):
    """One attempt of a delivery."""

    # Unconfirmed: the mail server has not answered to a whole e-mail. Lost: the worker was lost.
    OK, FAILED, UNCONFIRMED, LOST = "ok", "failed", "unconfirmed", "lost"
    OUTCOMES = (OK, FAILED, UNCONFIRMED, LOST)

    id = TenantIdField(primary_key=True)
    app = ParentsAppField()
    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="attempts")
    at = models.DateTimeField()
    outcome = models.CharField(
        max_length=11,
        choices=[(outcome, outcome) for outcome in OUTCOMES],
        default=OK,
        db_default=OK,
    )
    response_code = models.PositiveSmallIntegerField(null=True, blank=True)
    seconds = models.FloatField()
    error = MessageField(blank=True)
    excerpt = models.TextField(blank=True, help_text="the beginning of the answer")

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["at"], name="attempt_recent")]

    def __str__(self) -> str:
        return self.error or str(self.response_code or "sent")


class SentEmail(models.Model):
    """What an e-mail said when it was sent, without its signed links (`notifications/mail/copies`).

    Written with the attempt, deleted after SENT_EMAIL_RETENTION_DAYS or with the data of a person
    in it. An e-mail about several bookings has a row for each, so that an erasure finds it; only
    the first has the content.
    """

    id = TenantIdField(primary_key=True)
    app = ParentsAppField()
    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="sent_emails")
    # No constraint: deliveries go with their booking, and an insert would lock the booking's row.
    booking = models.ForeignKey(
        Booking, models.DO_NOTHING, null=True, blank=True, related_name="+", db_constraint=False
    )
    sent_at = models.DateTimeField()
    content = models.BinaryField(blank=True, help_text="compressed JSON; empty: see the first row")

    class Meta:
        verbose_name = "sent e-mail"
        ordering = ["id"]
        indexes = [models.Index(fields=["sent_at"], name="sent_email_retention")]

    def __str__(self) -> str:
        return f"sent at {self.sent_at}"


class Endpoint(models.Model):
    """The circuit breaker of a server that failed or was slow lately. Other servers have no row."""

    address = models.CharField(max_length=300, primary_key=True, help_text="scheme://host:port")
    failures = models.PositiveIntegerField(default=0, help_text="in a row")
    is_slow = models.BooleanField(default=False, help_text="the last try failed or took over 2 s")
    open_until = models.DateTimeField(null=True, blank=True, help_text="no calls before")

    class Meta:
        verbose_name = "webhook server"

    def __str__(self) -> str:
        return self.address


class Heartbeat(models.Model):
    """When the last heartbeat of beat, or of the workers of a queue, was recorded."""

    BEAT = "beat"

    name = models.CharField(max_length=20, primary_key=True)
    seen_at = models.DateTimeField()

    class Meta:
        verbose_name = "process"
        verbose_name_plural = "system status"

    def __str__(self) -> str:
        return f"{self.name} at {self.seen_at}"


class TaskRun(models.Model):
    """When a daily or hourly task last started, and last succeeded (`overdue_periodic_tasks`)."""

    task = models.CharField(max_length=100, primary_key=True)
    started_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.task


class StoredMetrics(models.Model):
    """Metrics that are too dear for each scrape of /metrics: MINUTE is refreshed by workers about
    once a minute (`ops/stored_metrics.py`), NIGHTLY by the nightly check of deliveries.
    """

    MINUTE, NIGHTLY = "minute", "nightly"

    name = models.CharField(max_length=20, primary_key=True)
    # Metric -> [[labels, value], ...]
    samples = models.JSONField(default=dict)
    started_at = models.DateTimeField(null=True, blank=True)
    refreshed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "stored metrics"

    def __str__(self) -> str:
        return self.name
