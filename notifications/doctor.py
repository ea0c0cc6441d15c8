"""What an operator would look at, one question after the other: each has its time and its answer.

A check runs in a thread of its own that is left behind when its time is up, so a server that takes
the connection and says nothing holds up nobody.
"""

import contextlib
import os
import shutil
import smtplib
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from celery import current_app
from django.conf import settings
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from availability.whole_days import find_shifted
from notifications.heartbeat import beat_seen_at
from notifications.lateness import oldest_late, oldest_uncompleted, seconds_since
from notifications.models import Delivery, Endpoint, Webhook
from scheduling.api.changes import MAX_TRANSACTION_AGE, oldest_transaction_age
from scheduling.api.reencryption import CURRENT, OLDER, UNREADABLE, look_at_secrets
from scheduling.api.sql import accepts_writes, database_now

OK, WARN, FAIL = "ok", "WARN", "FAIL"
LEAST_POSTGRESQL = 15
QUEUES = ("celery", *Delivery.TYPES)
BEAT_IS_LATE = 90.0  # seconds: three marks were missed
LATE, TOO_LATE = 60.0, 600.0  # seconds that a delivery or a completion may be overdue
MOST_SKEW = 2.0  # seconds between this machine's clock and the database's
SECRETS_SECONDS = ALL_DAY_SECONDS = 2.0
SOME_SPACE, LEAST_SPACE = 10**9, 10**8  # bytes
SMTP = "django.core.mail.backends.smtp.EmailBackend"
FILES = "django.core.mail.backends.filebased.EmailBackend"


class Finding(NamedTuple):
    """`fix` says in one sentence what to do where it is not ok."""

    level: str
    seen: str
    fix: str = ""


class Check(NamedTuple):
    name: str
    look: Callable[[], Finding]
    fix: str  # where it fails in a way that nobody foresaw, or does not end
    seconds: float = 5.0
    needs_database: bool = True


FURTHER: list[Check] = []


def adds_check(check: Check) -> None:
    """Have it asked after those below: the rooms above have parts of their own to look at."""
    FURTHER.append(check)


def find_all() -> Iterator[tuple[str, Finding]]:
    """Every check's name and finding; what needs a database that is away is not looked at."""
    database_is_there = True
    for check in (*CHECKS, *FURTHER):
        if check.needs_database and not database_is_there:
            yield check.name, Finding(WARN, "not looked at", "Bring the database back first.")
            continue
        finding = examine(check)
        if check.look is look_at_database and finding.level == FAIL:
            database_is_there = False
        yield check.name, finding


def examine(check: Check) -> Finding:
    """Its finding; an error, or no answer in time, is one too."""
    found: list[Finding] = []

    def look() -> None:
        try:
            found.append(check.look())
        except Exception as error:
            found.append(Finding(FAIL, told(error), check.fix))
        finally:
            connections.close_all()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(check.seconds)
    return found[0] if found else Finding(FAIL, f"no answer in {check.seconds:g} s", check.fix)


def told(error: Exception) -> str:
    """The first line, of an error that may have many."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]:.200}" if lines else type(error).__name__


# --- Database -------------------------------------------------------------------------------------
def look_at_database() -> Finding:
    if not accepts_writes():
        fix = "Make room on its disk, or point DATABASE_URL at the primary."
        return Finding(FAIL, "only reads", fix)
    if connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT sqlite_version()")
            (version,) = cursor.fetchone()
        return Finding(OK, f"SQLite {version}, {settings.DATABASES['default']['NAME']}")
    with connection.cursor() as cursor:
        cursor.execute("SELECT extname FROM pg_extension WHERE extname = 'btree_gist'")
        has_extension = cursor.fetchone() is not None
    major, minor = divmod(connection.pg_version, 10_000)
    seen = f"PostgreSQL {major}.{minor} on {connection.settings_dict['HOST'] or 'a local socket'}"
    if major < LEAST_POSTGRESQL:
        return Finding(FAIL, seen, f"Upgrade PostgreSQL to {LEAST_POSTGRESQL} or newer.")
    if not has_extension:
        fix = "Run CREATE EXTENSION btree_gist as a superuser, then manage.py migrate."
        return Finding(FAIL, f"{seen}, without btree_gist", fix)
    return Finding(OK, f"{seen}, with btree_gist")


def look_at_migrations() -> Finding:
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if waiting:
        first = waiting[0][0]
        seen = f"{len(waiting)} not applied, the first is {first}"
        return Finding(FAIL, seen, "Run manage.py migrate.")
    return Finding(OK, "all applied")


def look_at_clocks() -> Finding:
    """The database's, read between two looks at ours."""
    if connection.vendor != "postgresql":
        return Finding(OK, "the database has this machine's clock")
    database_now()
    before = timezone.now()
    theirs = database_now()
    ours = before + (timezone.now() - before) / 2
    skew = (ours - theirs).total_seconds()
    seen = f"this machine is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} the database"
    if abs(skew) > MOST_SKEW:
        return Finding(FAIL, seen, "Set both clocks by NTP.")
    return Finding(OK, seen)


def look_at_transactions() -> Finding:
    """A long one holds back what listings with `updated_since` show."""
    age, limit = oldest_transaction_age().total_seconds(), MAX_TRANSACTION_AGE.total_seconds()
    if age <= limit:
        return Finding(OK, f"none is older than {readable(limit)}")
    seen = f"the oldest is open for {readable(age)}: changes since then are not listed"
    return Finding(FAIL, seen, "End it: pg_stat_activity names its process.")


# --- Who works ------------------------------------------------------------------------------------
def look_at_broker() -> Finding:
    with current_app.connection_for_write(connect_timeout=2) as broker:
        if not settings.REDIS_URL:
            return _look_at_folder(settings.QUEUE_DIR)
        broker.connect()
        return Finding(OK, broker.as_uri())


def _look_at_folder(folder: Path) -> Finding:
    if os.access(folder / "messages", os.W_OK | os.X_OK):
        return Finding(OK, f"files in {folder}")
    return Finding(FAIL, f"{folder} can't be written", "Give the folder to the service's user.")


def look_at_beat() -> Finding:
    seen_at = beat_seen_at()
    fix = "Start one beat (celery -A scheduling beat) and a worker that takes the queue celery."
    if seen_at is None:
        return Finding(FAIL, "never seen", f"{fix} Its first mark comes after half a minute.")
    age = seconds_since(seen_at, database_now())
    seen = f"last seen {readable(age)} ago"
    return Finding(FAIL, seen, fix) if age > BEAT_IS_LATE else Finding(OK, seen)


def look_at_workers() -> Finding:
    answers = current_app.control.inspect(timeout=2.0).active_queues() or {}
    taken = {queue["name"] for queues in answers.values() for queue in queues}
    missing = [queue for queue in QUEUES if queue not in taken]
    if not answers:
        fix = "Start a worker (celery -A scheduling worker -O fair), or look into its log."
        return Finding(FAIL, "none answers", fix)
    workers = "1 worker answers" if len(answers) == 1 else f"{len(answers)} workers answer"
    if missing:
        seen = f"{workers}, but none takes {', '.join(missing)}"
        fix = f"Start a worker without -Q, or with -Q {','.join(missing)}."
        return Finding(FAIL, seen, fix)
    return Finding(OK, f"{workers}, taking {', '.join(sorted(taken))}")


# --- What waits -----------------------------------------------------------------------------------
def look_at_deliveries(kind: str) -> Finding:
    now = database_now()
    fix = f"See that workers take the queue {kind}, and start more if they all are busy."
    return _late(oldest_late(kind, now), now, fix)


def look_at_completions() -> Finding:
    now = database_now()
    return _late(oldest_uncompleted(now), now, "See that beat and a worker run, and read its log.")


def _late(since: datetime | None, now: datetime, fix: str) -> Finding:
    age = seconds_since(since, now)
    if age <= LATE:
        return Finding(OK, f"the oldest waits for {readable(age)}" if age else "nothing is overdue")
    level = FAIL if age > TOO_LATE else WARN
    return Finding(level, f"the oldest is overdue by {readable(age)}", fix)


def look_at_webhooks() -> Finding:
    switched_off = Webhook.objects.filter(active=False, deleted_at=None)
    count = switched_off.exclude(disabled_reason="").count()
    if count:
        fix = "Ask their owners, and switch them on in the admin when the servers answer again."
        return Finding(WARN, f"{count} switched off after failures", fix)
    return Finding(OK, "none is switched off after failures")


def look_at_breakers() -> Finding:
    paused = Endpoint.objects.filter(open_until__gt=database_now()).order_by("address")
    addresses = list(paused.values_list("address", flat=True)[:4])
    if addresses:
        named = ", ".join(addresses[:3]) + (", ..." if len(addresses) > 3 else "")
        fix = "Nothing, where their owners know: they are tried again by themselves."
        return Finding(WARN, f"not called now: {named}", fix)
    return Finding(OK, "every server is called")


# --- Around it ------------------------------------------------------------------------------------
def look_at_mail_server() -> Finding:
    if settings.EMAIL_BACKEND == FILES:
        return Finding(OK, f"skipped: mails are kept as files in {settings.EMAIL_FILE_PATH}")
    if settings.EMAIL_BACKEND != SMTP:
        return Finding(OK, f"skipped: {settings.EMAIL_BACKEND}")
    server = smtplib.SMTP_SSL if settings.EMAIL_USE_SSL else smtplib.SMTP
    with contextlib.closing(
        server(settings.EMAIL_HOST, settings.EMAIL_PORT, timeout=3)
    ) as connected:
        code, _ = connected.ehlo()
    seen = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT} answers EHLO with {code}"
    if code != 250:
        return Finding(FAIL, seen, "Look into the log of the mail server.")
    return Finding(OK, seen)


def look_at_disk() -> Finding:
    free = shutil.disk_usage(settings.VAR_DIR).free
    seen = f"{free / 10**9:.1f} GB free in {settings.VAR_DIR}"
    fix = "Make room, or point VAR_DIR at a larger disk."
    if free < LEAST_SPACE:
        return Finding(FAIL, seen, fix)
    return Finding(WARN, seen, fix) if free < SOME_SPACE else Finding(OK, seen)


def look_at_public_url() -> Finding:
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    if is_local and not settings.DEBUG:
        fix = "Set PUBLIC_URL to the address that the world sees: links in mails begin with it."
        return Finding(WARN, settings.PUBLIC_URL, fix)
    return Finding(OK, settings.PUBLIC_URL)


def look_at_secret_key() -> Finding:
    path = Path(settings.VAR_DIR) / "secret_key"
    if not path.exists():
        return Finding(OK, f"{len(settings.SECRET_KEY)} characters, of the environment")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Finding(FAIL, f"{path} may be read by others ({mode:o})", f"Run chmod 600 {path}.")
    is_used = path.read_text().strip() == settings.SECRET_KEY
    return Finding(OK, f"{path}, for its owner alone" if is_used else "of the environment")


def look_at_stored_secrets() -> Finding:
    """Of many, those that can be looked at in a few seconds."""
    ends = time.monotonic() + SECRETS_SECONDS
    states: Counter[str] = Counter()
    for found in look_at_secrets():
        states.update(secret.state for secret in found)
        if time.monotonic() > ends:
            break
    count = states[CURRENT] + states[OLDER] + states[UNREADABLE]
    if states[UNREADABLE]:
        fix = "Put the key that is missing back into ENCRYPTION_KEYS, or have those secrets given"
        again = "anew: manage.py reencrypt_secrets --dry-run names them."
        seen = f"{states[UNREADABLE]:,} of {count:,} can't be read"
        return Finding(FAIL, seen, f"{fix} {again}")
    if not count:
        return Finding(OK, "none is in use")
    where = f"{states[OLDER]:,} under an older key" if states[OLDER] else "all under the first key"
    return Finding(OK, f"{count:,} looked at, {where}")


def look_at_all_day_events() -> Finding:
    """Of many, those that can be looked at in a few seconds."""
    ends = time.monotonic() + ALL_DAY_SECONDS
    looked_at = shifted = 0
    for count, events in find_shifted(timezone.now()):
        looked_at, shifted = looked_at + count, shifted + len(events)
        if time.monotonic() > ends:
            break
    if shifted:
        seen = f"{shifted:,} of {looked_at:,} do not begin and end at midnight"
        fix = "The rules of a time zone have changed: run manage.py rederive_all_day_events."
        return Finding(WARN, seen, fix)
    return Finding(OK, f"{looked_at:,} looked at, all begin and end at midnight")


def readable(seconds: float) -> str:
    """`45 s`, `12 min`, `3.5 h` or `4 days`."""
    span = timedelta(seconds=seconds)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{span.days} days"


CHECKS = (
    Check(
        "database",
        look_at_database,
        "Start the database, or correct DATABASE_URL.",
        seconds=8,
        needs_database=False,
    ),
    Check("migrations", look_at_migrations, "Run manage.py migrate."),
    Check("clocks", look_at_clocks, "Look at the database."),
    Check("transactions", look_at_transactions, "Look at the database."),
    Check(
        "broker",
        look_at_broker,
        "Start Redis, or correct REDIS_URL; until then sweeps send what is due, seconds later.",
        seconds=2,
        needs_database=False,
    ),
    Check(
        "workers",
        look_at_workers,
        "Bring the broker back, then see that a worker runs.",
        seconds=4,
        needs_database=False,
    ),
    Check("beat", look_at_beat, "Look at the database."),
    *(
        Check(
            f"overdue {kind}s",
            lambda kind=kind: look_at_deliveries(kind),
            "Look at the database: this question takes it too long.",
        )
        for kind in Delivery.TYPES
    ),
    Check("completions", look_at_completions, "Look at the database."),
    Check("webhooks", look_at_webhooks, "Look at the database."),
    Check("breakers", look_at_breakers, "Look at the database."),
    Check(
        "e-mail server",
        look_at_mail_server,
        "Start the mail server, or correct EMAIL_URL; mails are tried again for three days.",
        needs_database=False,
    ),
    Check("disk", look_at_disk, "Look at the disk of VAR_DIR.", needs_database=False),
    Check("public address", look_at_public_url, "Correct PUBLIC_URL.", needs_database=False),
    Check("secret key", look_at_secret_key, "Look at the file in VAR_DIR.", needs_database=False),
    Check("stored secrets", look_at_stored_secrets, "Look at the database."),
    Check("all-day events", look_at_all_day_events, "Look at the database."),
)
