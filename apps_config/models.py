"""The tenant: apps, accounts, memberships, credentials, notifications and idempotency records."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.contrib.postgres.functions import TransactionNow
from django.db import models, transaction
from django.db.models.functions import Now
from django.utils import timezone

from apps_config.history import ChangeHistory
from common.db.ids import TenantIdField, home_of_id, new_id
from common.db.updated_at import UpdatedAtField
from common.email_address import canonical_address, check_address

SECRET_LENGTH = 43  # 32 random bytes in base64url


class AccountManager(BaseUserManager["Account"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "Account":
        account = self.model(email=canonical_address(email.strip()), **fields)
        account.set_password(password)
        account.save(using=self._db)
        return account

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "Account":
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, email: str | None) -> "Account":
        return self.get(email=canonical_address((email or "").strip()))


class Account(AbstractBaseUser, PermissionsMixin):
    """A person who logs in with an e-mail address (stored in its canonical form)."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField(unique=True, validators=[check_address])
    name = models.CharField(max_length=200, blank=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AccountManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS = []

    class Meta:
        ordering = ["email"]

    def __str__(self) -> str:
        return self.email

    def save(self, **kwargs: Any) -> None:
        """Save in one transaction with what a new password ends (`access.password_changes`)."""
        with transaction.atomic(savepoint=False):
            super().save(**kwargs)

    def set_unusable_password(self) -> None:
        """Remove the password, which `save` treats like a new one."""
        super().set_unusable_password()
        self._password = ""


class AppQuerySet(models.QuerySet["App"]):
    def open(self) -> "AppQuerySet":
        """Apps that are not archived."""
        return self.filter(archived_at=None)


class App(models.Model):
    """A tenant. Every other row belongs to one, and every query starts from one."""

    LIVE, TEST = "live", "test"
    WARN, BLOCK, FOLLOW = "warn", "block", "follow"
    # What a stale connected calendar does to free time.
    STALE_CALENDARS = (WARN, BLOCK)
    # What happens to a booking whose event was moved or deleted in an external calendar.
    EXTERNAL_EDITS = (WARN, FOLLOW)
    NO_CHALLENGE, ALTCHA = "off", "altcha"
    # The proof of work that public keys need.
    CHALLENGES = (NO_CHALLENGE, ALTCHA)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.CharField(max_length=100, unique=True)
    name = models.CharField(max_length=200)
    mode = models.CharField(max_length=4, choices=[(LIVE, "live"), (TEST, "test")], default=LIVE)
    settings = models.JSONField(default=dict, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    first_steps_ended_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="since then, Today lists no first steps"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = UpdatedAtField()

    objects = AppQuerySet.as_manager()
    history = ChangeHistory(leave_out=("updated_at", "first_steps_ended_at"))

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=models.Q(mode__in=["live", "test"]), name="app_mode"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def default_timezone(self) -> str:
        return self.settings.get("default_timezone") or "UTC"

    @property
    def follows_edits(self) -> bool:
        """Whether bookings follow the changes of their events in external calendars."""
        return self.settings.get("external_edits") == self.FOLLOW

    @property
    def stale_calendars(self) -> str:
        return self.settings.get("stale_calendars") or self.WARN

    @property
    def allows_public_bookings_without_project(self) -> bool:
        """Whether public keys may book resources that are in no project."""
        return self.settings.get("public_resources") is True

    def publishes(self, project_settings: Mapping[str, Any]) -> bool:
        """Whether a project with these settings has a hosted page."""
        own = project_settings.get("published")
        return (self.settings.get("publish_projects") if own is None else own) is not False


class ParentsAppField(models.ForeignKey):
    """The app of a row's parent. The database checks it (migrations/0001_release_1_0.*.sql).

    The parent has a foreign key to the app. So this field needs no constraint, and its rows are
    deleted with their parent. A ForeignKey in migrations.
    """

    def __init__(self, to: Any = App, on_delete: Any = models.DO_NOTHING, **kwargs: Any) -> None:
        own = {"related_name": "+", "db_index": False, "db_constraint": False}
        super().__init__(to, on_delete, **{**own, **kwargs})

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignKey", args, kwargs


class Membership(models.Model):
    """An account's role in an app: a viewer reads, an editor writes, an owner may do everything."""

    VIEWER, EDITOR, OWNER = "viewer", "editor", "owner"
    ROLES = (VIEWER, EDITOR, OWNER)

    account = models.ForeignKey(Account, models.CASCADE, related_name="memberships")
    app = models.ForeignKey(App, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=6, choices=[(role, role) for role in ROLES], default=VIEWER)

    class Meta:
        verbose_name = "team member"
        verbose_name_plural = "team"
        constraints = [
            models.UniqueConstraint(fields=["account", "app"], name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=["viewer", "editor", "owner"]), name="membership_role"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.account} is {self.role} of {self.app}"


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self) -> "InvitationQuerySet":
        """Invitations that are neither accepted nor revoked. Some may have expired."""
        return self.filter(accepted_at=None, revoked_at=None)


class Invitation(models.Model):
    """An offer, by e-mail, of a role in an app.

    Its e-mail contains a signed link (`notifications/links/invitations.py`). Accepting it proves
    that the person reads the address.
    """

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(App, models.CASCADE, related_name="invitations")
    email = models.EmailField()  # in its canonical form
    role = models.CharField(max_length=6, choices=[(role, role) for role in Membership.ROLES])
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(help_text="when the latest e-mail was requested")
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["app", "email"],
                condition=models.Q(accepted_at=None, revoked_at=None),
                name="invitation_open_once",
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=Membership.ROLES), name="invitation_role"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} is invited to {self.app} as {self.role}"


class SavedFilter(models.Model):
    """A named filter of the back office's list of bookings. Each account sees only its own.

    query: filters, search and ordering as in the list's address, without the page.
    """

    MAX_QUERY = 2000

    id = TenantIdField(primary_key=True)
    account = models.ForeignKey(Account, models.CASCADE, related_name="saved_filters")
    app = models.ForeignKey(App, models.CASCADE, related_name="saved_filters")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=MAX_QUERY)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["account", "app", "name"], name="saved_filter_once")
        ]

    def __str__(self) -> str:
        return self.name


def digest_secret(secret: str) -> str:
    """SHA-256 of a secret in hex, as stored; 256 random bits need neither salt nor stretching."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Credential(models.Model):
    """A key. Its text is `prefix` (public, for look-up) followed by a secret of 43 characters.

    The prefix ends with two hex digits, the home of the key's app, and eight random ones.
    """

    SERVER, WIDGET, ACCESS, RESOURCE = "server", "widget", "access", "resource"
    KINDS = (SERVER, WIDGET, ACCESS, RESOURCE)
    AVAILABILITY_READ = "availability:read"
    BOOKINGS_READ, BOOKINGS_WRITE = "bookings:read", "bookings:write"
    PEOPLE_READ = "people:read"
    SETTINGS_READ, SETTINGS_WRITE = "settings:read", "settings:write"
    KEYS_WRITE = "keys:write"
    SCOPES = (
        *(AVAILABILITY_READ, BOOKINGS_READ, BOOKINGS_WRITE, PEOPLE_READ),
        *(SETTINGS_READ, SETTINGS_WRITE, KEYS_WRITE),
    )

    id = TenantIdField(primary_key=True)
    kind = models.CharField(max_length=8, choices=[(kind, kind) for kind in KINDS])
    app = models.ForeignKey(App, models.CASCADE, null=True, blank=True, related_name="credentials")
    account = models.ForeignKey(
        Account, models.CASCADE, null=True, blank=True, related_name="credentials"
    )
    resource = models.ForeignKey(
        "availability.Resource", models.CASCADE, null=True, blank=True, related_name="credentials"
    )
    prefix = models.CharField(max_length=40, unique=True, editable=False)
    secret_hash = models.CharField(max_length=64, editable=False)
    # Widget keys are public and stay readable; empty for all others.
    public_text = models.CharField(max_length=100, blank=True, editable=False)
    description = models.CharField(max_length=200, blank=True)
    # Of server and widget keys.
    projects = models.JSONField(
        null=True, blank=True, help_text="ids of the only projects that it may use; empty: any"
    )
    # Of widget keys.
    origins = models.JSONField(
        null=True, blank=True, help_text="the only web origins that may use it; empty: any"
    )
    # Of server keys and access tokens.
    scopes = models.JSONField(
        null=True, blank=True, help_text="what it may do, of SCOPES; empty: everything"
    )
    # Of server keys.
    addresses = models.JSONField(
        null=True, blank=True, help_text="the only networks that may use it; empty: any"
    )
    hosted_project = models.ForeignKey(
        "availability.Project",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        editable=False,
        help_text="the project whose hosted page hands it out",
    )
    # What a member allowed a program (`client_access`): an access token whose text nobody knows.
    client_id = models.CharField(
        max_length=100, blank=True, default="", db_default="", editable=False
    )
    only_app_id = models.UUIDField(null=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    # Recording the last use does not change it.
    updated_at = UpdatedAtField(db_default=TransactionNow())

    class Meta:
        verbose_name = "API key"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                name="credential_holder",
                condition=models.Q(
                    kind__in=["server", "widget"],
                    app__isnull=False,
                    account__isnull=True,
                    resource__isnull=True,
                )
                | models.Q(
                    kind="access", app__isnull=True, account__isnull=False, resource__isnull=True
                )
                | models.Q(
                    kind="resource", app__isnull=False, account__isnull=True, resource__isnull=False
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} key {self.prefix}…"


def make_key(credential: Credential, mode: str) -> str:
    """Set prefix and hash of an unsaved credential; returns the text, which can't be recovered
    later.

    A server key reads `live_api_key_<10 characters>_<43 characters>`, a widget key
    `test_widget_key_...`; the other two kinds have no leading words.
    """
    words = {Credential.SERVER: f"{mode}_api_key_", Credential.WIDGET: f"{mode}_widget_key_"}
    secret, home = secrets.token_urlsafe(32), home_of_id(credential.id)
    credential.prefix = f"{words.get(credential.kind, '')}{home:02x}{secrets.token_hex(4)}_"
    credential.secret_hash = digest_secret(secret)
    text = credential.prefix + secret
    if credential.kind == Credential.WIDGET:
        credential.public_text = text
    return text


_KEY_WITH_HOME = re.compile(r"(?:(?:live|test)_(?:api|widget)_key_)?([0-9a-f]{2})[0-9a-f]{8}_")


def home_of_key(text: str) -> int:
    """Return the home that a key's text names; 0 for other texts."""
    found = _KEY_WITH_HOME.match(text)
    return int(found[1], 16) if found else 0


class CacheEntry(models.Model):
    """A row of Django's DatabaseCache: an authorization code, or a code of a second factor that was
    used. All processes see it.
    """

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.cache_key


class DatabaseHome(models.Model):
    """A number that HOME_NUMBER may be for processes that use this database.

    There is one, except while a database is being split (docs/scaling.md).
    """

    number = models.PositiveSmallIntegerField(primary_key=True)

    def __str__(self) -> str:
        return str(self.number)


UNIT_WORDS = {"secs": "second", "mins": "minute", "hours": "hour", "days": "day"}


class EventNotification(models.Model):
    """A reminder by e-mail or webhook, at a time relative to the start (api.md section 4)."""

    EMAIL, WEBHOOK = "email", "webhook"
    BEFORE, AFTER = "before", "after"
    RECIPIENTS = ("customer", "owner")
    METHODS = ("post", "put", "patch", "get")
    DAYS = "days"
    UNIT_SECONDS = {"secs": 1, "mins": 60, "hours": 3600, DAYS: 86_400}

    position = models.PositiveSmallIntegerField(default=0)
    type = models.CharField(max_length=7, choices=[(EMAIL, "e-mail"), (WEBHOOK, "webhook")])
    recipient = models.CharField(
        max_length=8, blank=True, choices=[(word, word) for word in RECIPIENTS]
    )
    subject = models.CharField(max_length=200, blank=True)
    url = models.CharField(max_length=2048, blank=True)
    method = models.CharField(max_length=5, blank=True, choices=[(word, word) for word in METHODS])
    expected_response_code = models.PositiveSmallIntegerField(null=True, blank=True)
    when_type = models.CharField(max_length=6, choices=[(BEFORE, "before"), (AFTER, "after")])
    when_unit = models.CharField(max_length=5, choices=[(unit, unit) for unit in UNIT_SECONDS])
    when_time = models.PositiveIntegerField()

    class Meta:
        abstract = True
        ordering = ["position", "id"]

    def __str__(self) -> str:
        """`1 hour before the start, e-mail to the customer` (office/reminders.js says the same)."""
        unit = UNIT_WORDS.get(self.when_unit, self.when_unit)
        count = f"{self.when_time} {unit}{'' if self.when_time == 1 else 's'}"
        moment = f"{count} {self.when_type} the start" if self.when_time else "at the start"
        if self.type == self.WEBHOOK:
            return f"{moment}, {(self.method or 'post').upper()} to {self.url}"
        subject = f" “{self.subject}”" if self.subject else ""
        return f"{moment}, e-mail{subject} to the {self.recipient}"

    def as_json(self) -> dict[str, Any]:
        """The API's form; `settings` omits keys that were not given."""
        given: dict[str, str | int | None]
        if self.type == self.EMAIL:
            given = {"recipient": self.recipient, "subject": self.subject}
        else:
            given = {
                "url": self.url,
                "method": self.method,
                "expected_response_code": self.expected_response_code,
            }
        return {
            "type": self.type,
            "settings": {key: value for key, value in given.items() if value not in ("", None)},
            "when": {"type": self.when_type, "unit": self.when_unit, "time": self.when_time},
        }

    def values(self) -> dict[str, Any]:
        """The fields without the owner, to copy for a booking."""
        return {name: getattr(self, name) for name in NOTIFICATION_FIELDS}


NOTIFICATION_FIELDS = (
    "position",
    "type",
    "recipient",
    "subject",
    "url",
    "method",
    "expected_response_code",
    "when_type",
    "when_unit",
    "when_time",
)


class AppNotification(EventNotification):
    """A notification that each later booking of the app gets, unless project or booking have their
    own.
    """

    app = models.ForeignKey(App, models.CASCADE, related_name="event_notifications")

    class Meta(EventNotification.Meta):
        abstract = False


class StoredLogo(models.Model):
    """A logo. The app's settings have its digest as `setting`: pages need no query for it."""

    setting: ClassVar[str]
    content = models.BinaryField()
    type = models.CharField(max_length=32)
    digest = models.CharField(max_length=64)

    class Meta:
        abstract = True


class AppLogo(StoredLogo):
    """The app's logo on pages and in e-mails."""

    setting = "logo"
    app = models.OneToOneField(App, models.CASCADE, primary_key=True, related_name="logo")

    def __str__(self) -> str:
        return f"Logo of {self.app_id}"


class DarkLogo(StoredLogo):
    """The app's logo on dark pages; without one, they have the other."""

    setting = "dark_logo"
    app = models.OneToOneField(App, models.CASCADE, primary_key=True, related_name="dark_logo")

    def __str__(self) -> str:
        return f"Dark logo of {self.app_id}"


class IdempotencyRecord(models.Model):
    """The response to a request with an Idempotency-Key, written in the request's transaction."""

    credential = models.ForeignKey(Credential, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.BinaryField(null=True)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["credential", "key"], name="idempotency_key_once"),
        ]

    def __str__(self) -> str:
        return self.key


class FailedLogin(models.Model):
    """A number of log-ins until `minute`, shared by all web processes: of wrong keys, of attempts
    with a password and the wrong ones among them, of wrong codes, and of uses of a right code.

    `address`: a client address (wrong keys), or a kind and what is counted: see `log_in_limits`
    for passwords, `authentication` for codes. Unlike a `RequestCount`, it belongs to no app.
    """

    address = models.CharField(max_length=64)
    minute = models.PositiveIntegerField(help_text="minutes since 1970, UTC")
    count = models.PositiveIntegerField()
    last_at = models.DateTimeField(null=True, help_text="of the latest wrong password")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["address", "minute"], name="failed_login_once"),
        ]

    def __str__(self) -> str:
        return f"{self.address}: {self.count}"


class RequestCount(models.Model):
    """A number of requests until `expires_at`, shared by all web processes.

    `kind`: a limit of `public_limits`, or a reason of refusals. `subject`: a keyed digest of what
    is counted, such as an e-mail address; the kind itself if there is just one row.
    """

    # Without a constraint in the database, whose check would be a large part of the cost.
    app = models.ForeignKey(
        App, models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    kind = models.CharField(max_length=64)
    subject = models.CharField(max_length=64)
    expires_at = models.DateTimeField(db_index=True)
    count = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["app", "kind", "subject", "expires_at"], name="request_count_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.count}"


class ListingTally(models.Model):
    """Numbers of rows of long lists, kept by triggers (migrations/0001_release_1_0.*.sql).

    The total of a list is the sum of a few rows instead of a count. Counts are spread over slots,
    so that concurrent clients do not wait for the lock of one row.
    """

    BOOKINGS, CUSTOMERS, DELIVERIES = "bookings", "customers", "deliveries"

    # No constraint in the database: the triggers also fire while an app is being deleted.
    app = models.ForeignKey(
        App, models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    listing = models.CharField(max_length=12)
    part = models.CharField(max_length=60, help_text="what a filter names, such as a state")
    slot = models.PositiveSmallIntegerField()
    count = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["app", "listing", "part", "slot"], name="listing_tally_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.listing} {self.part}: {self.count}"


class ChangeFeed(models.Model):
    """The number of an app's last numbered change; its lock is held while changes are numbered."""

    # No constraint in the database, as for the changes.
    app = models.OneToOneField(
        App, models.CASCADE, primary_key=True, related_name="+", db_constraint=False
    )
    last_number = models.BigIntegerField(default=0)
    called_number = models.BigIntegerField(
        default=0, db_default=0, help_text="of the last change of which webhooks were told"
    )

    def __str__(self) -> str:
        return f"{self.app_id} up to {self.last_number}"


class Change(models.Model):
    """A change of an object, for GET /v2/changes. Append-only; written by triggers
    (migrations `*_changes.*.sql`), numbered by `apps_config/changes.py` once no change can come
    before it. It has no personal data: who made the change stands in the row that it refers to.
    """

    TYPES = (
        *("booking", "event", "resource", "project", "schedule", "calendar"),
        *("customer", "webhook", "delivery"),
    )
    CREATED, UPDATED, DELETED, ERASED = "created", "updated", "deleted", "erased"

    id = models.BigAutoField(primary_key=True)
    # No constraint in the database: the triggers also fire while an app is being deleted.
    app = models.ForeignKey(
        App, models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    type = models.CharField(max_length=8)
    action = models.CharField(max_length=32)
    at = models.DateTimeField()
    object_id = models.UUIDField()
    log_id = models.UUIDField(null=True, help_text="of a booking's log entry")
    history_id = models.IntegerField(null=True, help_text="of the object's change history")
    transaction = models.BigIntegerField(help_text="its id on PostgreSQL, else 0")
    number = models.BigIntegerField(null=True, help_text="its place in the app; null: not yet")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["app", "number"],
                condition=models.Q(number__isnull=False),
                name="change_number_once",
            ),
        ]
        indexes = [
            models.Index(
                fields=["app", "id"], condition=models.Q(number=None), name="change_pending"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.object_id} {self.action}"


class SecurityEvent(models.Model):
    """What somebody did to get or give access, or to take data out: who, when and from where.

    `app`: null if it concerns an account, such as a log-in. `about`: values such as a key's prefix.
    `count`: failed log-ins of an account within an hour are one row.
    """

    LOG_IN, LOG_IN_FAILED, LOG_IN_LOCKED = "log_in", "log_in_failed", "log_in_locked"
    LOG_OUT, SESSIONS_ENDED = "log_out", "sessions_ended"
    TOKEN_MADE, TOKENS_ENDED = "token_made", "tokens_ended"
    PASSWORD_CHANGED, PASSWORD_LINK_MADE = "password_changed", "password_link_made"
    SECOND_FACTOR_ADDED = "second_factor_added"
    SECOND_FACTOR_REMOVED = "second_factor_removed"
    KEY_MADE, KEY_REVOKED = "key_made", "key_revoked"
    MEMBER_INVITED, INVITATION_REVOKED = "member_invited", "invitation_revoked"
    MEMBER_ADDED, MEMBER_CHANGED = "member_added", "member_changed"
    MEMBER_REMOVED, OWNER_ADDED = "member_removed", "owner_added"
    STAFF_ADDED, STAFF_REMOVED = "staff_added", "staff_removed"
    CUSTOMER_EXPORTED, CUSTOMER_ERASED = "customer_exported", "customer_erased"
    BOOKINGS_EXPORTED = "bookings_exported"
    CALENDAR_CLIENT_STORED = "calendar_client_stored"
    CALENDAR_CLIENT_DELETED = "calendar_client_deleted"

    id = TenantIdField(primary_key=True)
    app = models.ForeignKey(
        App, models.CASCADE, null=True, blank=True, related_name="+", db_index=False
    )
    account = models.ForeignKey(
        Account, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    actor = models.CharField(max_length=254, help_text="an address, a key or a command")
    kind = models.CharField(max_length=24)
    network = models.CharField(max_length=45, blank=True)
    user_agent = models.CharField(max_length=200, blank=True)
    about = models.JSONField(default=dict, blank=True)
    count = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["app", "-id"], name="security_event_of_app"),
            # Also finds earlier log-ins of an account from a network.
            models.Index(fields=["account", "network", "-id"], name="security_event_of_account"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.actor}"
