"""Health checks for operators: each has a time limit, a finding and a fix.

A check runs in its own thread, which is abandoned at the time limit: a server that accepts the
connection and never answers blocks nothing.
"""

import contextlib
import math
import os
import platform
import shutil
import smtplib
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import redis
from celery import current_app
from django.conf import settings
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Q
from django.utils import timezone

from apps_config.home_check import home_problem
from apps_config.models import App
from apps_config.public_limits import saw_unknown_proxy
from availability.all_day_event_recomputation import find_shifted
from availability.search.staleness import is_stale
from common.broker_address import TRANSPORTS
from common.db.connections import DIRECT, REPLICA, use_connection
from common.db.replica import MAX_LAG, replica_lag
from common.db.sql import accepts_writes, database_now
from common.db.updated_at import MAX_TRANSACTION_AGE, oldest_transaction_age
from common.email_address import is_address
from external_calendars.sync.health_queries import (
    SYNCED_AT,
    connected_calendars,
    in_first_sync,
    least_synced,
    without_push,
)
from notifications.delivery_check import find_delivery_faults
from notifications.mail.envelope import may_send_from
from notifications.models import Delivery, Endpoint, TaskRun, Webhook
from notifications.outbox.heartbeats import last_heartbeat
from notifications.outbox.overdue import oldest_overdue, oldest_uncompleted, seconds_since
from ops.reencryption import CURRENT, OLDER, UNREADABLE, scan_secrets

NAMED = 3

OK, WARN, FAIL = "ok", "WARN", "FAIL"
MIN_POSTGRESQL = 15
QUEUES = ("celery", *Delivery.TYPES)
BEAT_IS_LATE = 90.0  # seconds: three heartbeats were missed
BACKUP_IS_OLD = 26 * 3600.0  # seconds, as in the alert BackupOld
LATE, TOO_LATE = 60.0, 600.0  # seconds that a delivery or a completion may be overdue
MAX_SKEW = 2.0  # seconds between this machine's clock and the database's
SECRETS_SECONDS = ALL_DAY_SECONDS = 2.0
SOME_SPACE, MIN_SPACE = 10**9, 10**8  # bytes
SMTP = "notifications.mail.smtp_backend.SmtpBackend"
FILES = "django.core.mail.backends.filebased.EmailBackend"


class Finding(NamedTuple):
    """The result of a check. `fix`: what to do if it is not ok, in one sentence."""

    level: str
    seen: str
    fix: str = ""


class Check(NamedTuple):
    name: str
    run: Callable[[], Finding]
    fix: str  # for an unexpected error or a timeout
    seconds: float = 5.0
    needs_database: bool = True


def run_all_checks() -> Iterator[tuple[str, Finding]]:
    """Yield each check's name and finding. Without a database, checks that need it are skipped."""
    database_is_there = True
    for check in CHECKS:
        if check.needs_database and not database_is_there:
            yield check.name, Finding(WARN, "not checked", "Restore the database first.")
            continue
        finding = run_check(check)
        if check.run is check_database and finding.level == FAIL:
            database_is_there = False
        yield check.name, finding


def run_check(check: Check) -> Finding:
    """Return the check's finding; an error or a timeout also gives one."""
    findings: list[Finding] = []

    def run() -> None:
        try:
            findings.append(check.run())
        except Exception as error:
            findings.append(Finding(FAIL, first_line(error), check.fix))
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(check.seconds)
    return (
        findings[0] if findings else Finding(FAIL, f"no answer in {check.seconds:g} s", check.fix)
    )


def first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]:.200}" if lines else type(error).__name__


# --- Database -------------------------------------------------------------------------------------
def check_version() -> Finding:
    return Finding(OK, f"{settings.VERSION} on Python {platform.python_version()}")


def check_database() -> Finding:
    if not accepts_writes():
        fix = "Free disk space, or set DATABASE_URL to the primary."
        return Finding(FAIL, "read-only", fix)
    if connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT sqlite_version()")
            (version,) = cursor.fetchone()
        return Finding(OK, f"SQLite {version}, {settings.DATABASES['default']['NAME']}")
    with connection.cursor() as cursor:
        cursor.execute("SELECT extname FROM pg_extension WHERE extname = 'btree_gist'")
        has_extension = cursor.fetchone() is not None
        cursor.execute("SHOW server_version_num")
        major, minor = divmod(int(cursor.fetchone()[0]), 10_000)
    seen = f"PostgreSQL {major}.{minor} on {connection.settings_dict['HOST'] or 'a local socket'}"
    if major < MIN_POSTGRESQL:
        return Finding(FAIL, seen, f"Upgrade PostgreSQL to {MIN_POSTGRESQL} or newer.")
    if not has_extension:
        fix = "Run CREATE EXTENSION btree_gist as a superuser, then manage.py migrate."
        return Finding(FAIL, f"{seen}, without btree_gist", fix)
    return Finding(OK, f"{seen}, with btree_gist")


def check_migrations() -> Finding:
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if waiting:
        first = waiting[0][0]
        seen = f"{len(waiting)} not applied, the first is {first}"
        return Finding(FAIL, seen, "Run manage.py migrate.")
    return Finding(OK, "all applied")


def check_home() -> Finding:
    problem = home_problem()
    if problem:
        sentence, _, fix = problem.partition(". ")
        return Finding(FAIL, sentence, fix)
    return Finding(OK, f"HOME_NUMBER={settings.HOME_NUMBER}, as in the database")


def check_clocks() -> Finding:
    """Compare the clocks: the database's is read between two reads of this machine's."""
    if connection.vendor != "postgresql":
        return Finding(OK, "the database uses this machine's clock")
    database_now()
    before = timezone.now()
    theirs = database_now()
    ours = before + (timezone.now() - before) / 2
    skew = (ours - theirs).total_seconds()
    seen = f"this machine is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} the database"
    if abs(skew) > MAX_SKEW:
        return Finding(FAIL, seen, "Synchronise both clocks by NTP.")
    return Finding(OK, seen)


_TIMEOUTS = """
SELECT name, setting::int FROM pg_settings
WHERE name IN ('lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout')
ORDER BY name
"""


def check_timeouts() -> Finding:
    """Compare what the connection in use has: a pooler drops options of the start-up."""
    if connection.vendor != "postgresql":
        return Finding(OK, "SQLite waits 20 s for its lock")
    with connection.cursor() as cursor:
        cursor.execute(_TIMEOUTS)
        timeouts = dict(cursor.fetchall())  # in milliseconds
    missing = [name for name, milliseconds in timeouts.items() if not milliseconds]
    if missing and settings.DB_POOLED:
        fix = "Run manage.py migrate, then RECONNECT in the pooler's console."
        return Finding(FAIL, f"off: {', '.join(missing)}", fix)
    if missing:
        fix = "Remove them from the options of DATABASE_URL, or set DB_POOLED behind a pooler."
        return Finding(FAIL, f"off: {', '.join(missing)}", fix)
    named = (f"{name} {milliseconds / 1000:g} s" for name, milliseconds in timeouts.items())
    return Finding(OK, ", ".join(named))


def check_direct_connection() -> Finding:
    """Compare it with the default one: open transactions are found by their role."""
    if DIRECT not in settings.DATABASES:
        return Finding(OK, "none: DATABASE_DIRECT_URL is not set")
    found = _role_and_database()
    with use_connection(DIRECT):
        direct = _role_and_database()
    if direct != found:
        seen = f"{' in '.join(direct)}, but DATABASE_URL is {' in '.join(found)}"
        return Finding(FAIL, seen, "Use the same role and database in both.")
    return Finding(OK, f"{' in '.join(direct)}, as DATABASE_URL")


def _role_and_database() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, current_database()")
        return cursor.fetchone()


def check_replica() -> Finding:
    if REPLICA not in settings.DATABASES:
        return Finding(OK, "none: DATABASE_REPLICA_URL is not set")
    if not settings.REDIS_URL:
        return Finding(WARN, "not used without Redis", "Set REDIS_URL.")
    lag = replica_lag()
    if lag == math.inf:
        fix = "Start it, or point DATABASE_REPLICA_URL to a standby of the primary."
        return Finding(WARN, "no replica answers: the primary serves all reads", fix)
    if lag >= MAX_LAG:
        seen = f"{readable_age(lag)} behind: the primary serves all reads"
        return Finding(WARN, seen, "Check the load and the network of the replica.")
    return Finding(OK, f"less than {MAX_LAG:g} s behind")


def check_transactions() -> Finding:
    """Find long transactions: they delay later changes in listings with `updated_since`."""
    age, limit = oldest_transaction_age().total_seconds(), MAX_TRANSACTION_AGE.total_seconds()
    if age <= limit:
        return Finding(OK, f"no transaction is older than {readable_age(limit)}")
    seen = f"the oldest is open for {readable_age(age)}: later changes are not listed"
    return Finding(FAIL, seen, "Find its process in pg_stat_activity and end it.")


# --- Processes ------------------------------------------------------------------------------------
def check_broker() -> Finding:
    with current_app.connection_for_write(connect_timeout=2) as broker:
        if not settings.MESSAGE_BROKER_URL:
            return _check_folder(settings.QUEUE_DIR)
        broker.connect()
        transport = TRANSPORTS[urlsplit(settings.MESSAGE_BROKER_URL).scheme]
        return Finding(OK, f"{transport}, {broker.as_uri()}")


def _check_folder(folder: Path) -> Finding:
    if os.access(folder / "messages", os.W_OK | os.X_OK):
        return Finding(OK, f"files in {folder}")
    fix = "Make the folder writable for the service's user."
    return Finding(FAIL, f"{folder} is not writable", fix)


def check_redis() -> Finding:
    if not settings.REDIS_URL:
        return Finding(OK, "none: each web process counts requests by itself")
    if settings.REDIS_URL == settings.MESSAGE_BROKER_URL:
        return Finding(OK, "the broker")
    with contextlib.closing(redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2)) as client:
        client.ping()
    return Finding(OK, "answers")


def check_beat() -> Finding:
    seen_at = last_heartbeat()
    fix = "Start one beat (celery -A scheduling.beat beat) and a worker for the queue celery."
    if seen_at is None:
        return Finding(FAIL, "never seen", f"{fix} The first heartbeat takes 30 seconds.")
    age = seconds_since(seen_at, database_now())
    seen = f"last seen {readable_age(age)} ago"
    return Finding(FAIL, seen, fix) if age > BEAT_IS_LATE else Finding(OK, seen)


def check_workers() -> Finding:
    answers = current_app.control.inspect(timeout=2.0).active_queues() or {}
    taken = {queue["name"] for queues in answers.values() for queue in queues}
    missing = [queue for queue in QUEUES if queue not in taken]
    if not answers:
        fix = "Start a worker (celery -A scheduling worker -O fair), or check its log."
        return Finding(FAIL, "no worker answers", fix)
    workers = "1 worker answers" if len(answers) == 1 else f"{len(answers)} workers answer"
    if missing:
        seen = f"{workers}, but none processes {', '.join(missing)}"
        fix = f"Start a worker without -Q, or with -Q {','.join(missing)}."
        return Finding(FAIL, seen, fix)
    return Finding(OK, f"{workers}, processing {', '.join(sorted(taken))}")


# --- Deliveries and completions -------------------------------------------------------------------
def check_deliveries(kind: str) -> Finding:
    now = database_now()
    fix = f"Check that workers process the queue {kind}. If all are busy, start more."
    return _overdue_finding(oldest_overdue(kind, now), now, fix)


def check_completions() -> Finding:
    now = database_now()
    fix = "Check that beat and a worker run, and read the worker's log."
    return _overdue_finding(oldest_uncompleted(now), now, fix)


def _overdue_finding(since: datetime | None, now: datetime, fix: str) -> Finding:
    age = seconds_since(since, now)
    if age <= LATE:
        return Finding(
            OK, f"the oldest has waited {readable_age(age)}" if age else "nothing is overdue"
        )
    level = FAIL if age > TOO_LATE else WARN
    return Finding(level, f"the oldest is overdue by {readable_age(age)}", fix)


def check_planned_deliveries() -> Finding:
    faults = find_delivery_faults(database_now())
    if faults:
        shown = "; ".join(faults[:NAMED]) + ("; ..." if faults[NAMED:] else "")
        fix = "Report this as a bug. Send missing e-mails to these customers by hand."
        return Finding(FAIL, f"{len(faults):,} missing or duplicate: {shown}", fix)
    return Finding(OK, "none is missing or duplicate")


def check_webhooks() -> Finding:
    switched_off = Webhook.objects.filter(active=False, deleted_at=None)
    count = switched_off.exclude(disabled_reason="").count()
    if count:
        fix = "Contact their owners. Enable them in the back office when the servers work again."
        return Finding(WARN, f"{count} disabled after failures", fix)
    return Finding(OK, "none is disabled after failures")


def check_breakers() -> Finding:
    paused = Endpoint.objects.filter(open_until__gt=database_now()).order_by("address")
    addresses = list(paused.values_list("address", flat=True)[:4])
    if addresses:
        named = ", ".join(addresses[:3]) + (", ..." if len(addresses) > 3 else "")
        fix = "Inform their owners. Retries are automatic."
        return Finding(WARN, f"paused: {named}", fix)
    return Finding(OK, "no server is paused")


# --- Environment ----------------------------------------------------------------------------------
def check_mail_server() -> Finding:
    if settings.EMAIL_BACKEND == FILES:
        return Finding(OK, f"skipped: e-mails are stored as files in {settings.EMAIL_FILE_PATH}")
    if settings.EMAIL_BACKEND != SMTP:
        return Finding(OK, f"skipped: {settings.EMAIL_BACKEND}")
    server = smtplib.SMTP_SSL if settings.EMAIL_USE_SSL else smtplib.SMTP
    with contextlib.closing(
        server(settings.EMAIL_HOST, settings.EMAIL_PORT, timeout=3)
    ) as connected:
        code, _ = connected.ehlo()
    seen = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT} answers EHLO with {code}"
    if code != 250:
        return Finding(FAIL, seen, "Check the log of the mail server.")
    return Finding(OK, seen)


def check_senders() -> Finding:
    """Name the apps whose sender's address only gets the replies."""
    rows = App.objects.open().filter(settings__has_key="from_email").order_by("slug")
    named = [
        app.slug
        for app in rows.only("slug", "settings")
        if is_address(app.settings["from_email"]) and not may_send_from(app.settings["from_email"])
    ]
    if named:
        shown = ", ".join(named[:NAMED]) + (", ..." if named[NAMED:] else "")
        seen = f"`from_email` is outside of SENDER_DOMAINS and only gets replies: {shown}"
        fix = "Add domains that authorise the mail server, or change the apps' settings."
        return Finding(WARN, seen, fix)
    return Finding(OK, f"SENDER_DOMAINS={','.join(sorted(settings.SENDER_DOMAINS))}")


def check_disk() -> Finding:
    free = shutil.disk_usage(settings.VAR_DIR).free
    seen = f"{free / 10**9:.1f} GB free in {settings.VAR_DIR}"
    fix = "Free disk space, or move VAR_DIR to a larger disk."
    if free < MIN_SPACE:
        return Finding(FAIL, seen, fix)
    return Finding(WARN, seen, fix) if free < SOME_SPACE else Finding(OK, seen)


def check_backups() -> Finding:
    """The age of the last backup by deploy/backup/backup.sh; other backups are not known."""
    made_at = TaskRun.objects.filter(task="backup").values_list("succeeded_at", flat=True).first()
    if made_at is None:
        return Finding(OK, "deploy/backup/backup.sh has made none")
    age = seconds_since(made_at, database_now())
    seen = f"the last was made {readable_age(age)} ago"
    fix = "Read the log of the backup job, and run it by hand."
    return Finding(FAIL, seen, fix) if age > BACKUP_IS_OLD else Finding(OK, seen)


def check_public_url() -> Finding:
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    is_local = host in ("localhost", "::1") or host.startswith("127.")
    if is_local and not settings.DEBUG:
        fix = "Set PUBLIC_URL to the public address: links in e-mails use it."
        return Finding(WARN, settings.PUBLIC_URL, fix)
    return Finding(OK, settings.PUBLIC_URL)


def check_proxies() -> Finding:
    """Behind a proxy that is not counted, all customers seem to have one address."""
    if settings.TRUSTED_PROXIES:
        return Finding(OK, f"TRUSTED_PROXIES={settings.TRUSTED_PROXIES}")
    if saw_unknown_proxy(Q(), database_now()):
        seen = (
            "a proxy forwards requests, but TRUSTED_PROXIES is 0:"
            " all customers share the limits of its address"
        )
        return Finding(FAIL, seen, "Set TRUSTED_PROXIES to the number of proxies.")
    return Finding(OK, "no proxy was seen in 24 hours")


def check_secret_key() -> Finding:
    found = check_secret_key_file()
    if not settings.SECRET_KEY_FALLBACKS or found.level == FAIL:
        return found
    seen = f"{found.seen}; {len(settings.SECRET_KEY_FALLBACKS)} in SECRET_KEY_FALLBACKS"
    fix = "Once the rotation is complete, remove the old keys (operations.md, Rotating SECRET_KEY)."
    return Finding(WARN, seen, fix)


def check_secret_key_file() -> Finding:
    path = Path(settings.VAR_DIR) / "secret_key"
    if not path.exists():
        return Finding(OK, f"{len(settings.SECRET_KEY)} characters, from the environment")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Finding(FAIL, f"{path} may be read by others ({mode:o})", f"Run chmod 600 {path}.")
    is_used = path.read_text().strip() == settings.SECRET_KEY
    return Finding(OK, f"{path}, readable only by its owner" if is_used else "from the environment")


def check_stored_secrets() -> Finding:
    """Check as many secrets as possible in SECRETS_SECONDS."""
    ends = time.monotonic() + SECRETS_SECONDS
    states: Counter[str] = Counter()
    for found in scan_secrets():
        states.update(secret.state for secret in found)
        if time.monotonic() > ends:
            break
    count = states[CURRENT] + states[OLDER] + states[UNREADABLE]
    if states[UNREADABLE]:
        fix = "Add the missing key to ENCRYPTION_KEYS, or replace these secrets."
        which = "manage.py reencrypt_secrets --dry-run lists them."
        seen = f"{states[UNREADABLE]:,} of {count:,} can't be decrypted"
        return Finding(FAIL, seen, f"{fix} {which}")
    if not count:
        return Finding(OK, "no secret is stored")
    where = f"{states[OLDER]:,} use an older key" if states[OLDER] else "all use the first key"
    return Finding(OK, f"{count:,} checked, {where}")


def check_all_day_events() -> Finding:
    """Check as many events as possible in ALL_DAY_SECONDS."""
    ends = time.monotonic() + ALL_DAY_SECONDS
    checked = shifted = 0
    for count, events in find_shifted(timezone.now()):
        checked, shifted = checked + count, shifted + len(events)
        if time.monotonic() > ends:
            break
    if shifted:
        seen = f"{shifted:,} of {checked:,} do not start and end at midnight"
        fix = "A time zone has changed its rules: run manage.py recompute_all_day_events."
        return Finding(WARN, seen, fix)
    return Finding(OK, f"{checked:,} checked, all start and end at midnight")


def check_calendars() -> Finding:
    now = database_now()
    behind = connected_calendars().filter(is_stale(now)).exclude(in_first_sync(now))
    count = behind.count()
    if not count:
        return Finding(OK, _describe_connected(now))
    rows = behind.annotate(at=SYNCED_AT).order_by("at", "pk")
    names = rows.values_list("connection__problem", flat=True)[:NAMED]
    causes = ", ".join(sorted({problem or "not synced" for problem in names}))
    oldest = readable_age(seconds_since(least_synced(behind), now))
    seen = f"{count} stale, the oldest for {oldest} ({causes})"
    fix = "Check that workers process the queue calendar. The back office and GET /calendars show"
    return Finding(WARN, seen, f"{fix} problems that the owners must fix.")


def check_push() -> Finding:
    silent = connected_calendars().filter(without_push(database_now()))
    count = silent.count()
    if not count:
        return Finding(OK, "providers say when calendars have changed, or none can")
    providers = ", ".join(sorted(set(silent.values_list("provider", flat=True))))
    seen = f"{count} without a working channel for a day ({providers})"
    fix = "Check that the provider reaches PUBLIC_URL. The calendars are polled meanwhile; the log"
    return Finding(WARN, seen, f"{fix} of the workers says why a channel was refused.")


def _describe_connected(now: datetime) -> str:
    """Describe the calendars if none is stale except in its first sync."""
    found, first = (
        connected_calendars().count(),
        connected_calendars().filter(in_first_sync(now)).count(),
    )
    if not found:
        return "no calendar is connected"
    if first:
        return f"{found} connected, {first} in their first sync, the others up to date"
    return f"{found} connected, all up to date"


def readable_age(seconds: float) -> str:
    """Return `45 s`, `12 min`, `3.5 h` or `4 days`."""
    span = timedelta(seconds=seconds)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{span.days} days"


CHECKS = (
    Check("version", check_version, "Install the service again.", needs_database=False),
    Check(
        "database",
        check_database,
        "Start the database, or fix DATABASE_URL.",
        seconds=8,
        needs_database=False,
    ),
    Check("migrations", check_migrations, "Run manage.py migrate."),
    Check("home", check_home, "Run manage.py migrate."),
    Check("clocks", check_clocks, "Check the database."),
    Check("time-outs", check_timeouts, "Check the database."),
    Check("direct connection", check_direct_connection, "Fix DATABASE_DIRECT_URL."),
    Check("replica", check_replica, "Check the replica."),
    Check("transactions", check_transactions, "Check the database."),
    Check(
        "broker",
        check_broker,
        "Start the broker, or fix its address. Until then, workers poll and start seconds late.",
        seconds=2,
        needs_database=False,
    ),
    Check(
        "redis",
        check_redis,
        "Start Redis, or fix REDIS_URL. Until then, each web process counts requests by itself.",
        seconds=2,
        needs_database=False,
    ),
    Check(
        "workers",
        check_workers,
        "Restore the broker, then check that a worker runs.",
        seconds=4,
        needs_database=False,
    ),
    Check("beat", check_beat, "Check the database."),
    *(
        Check(
            f"overdue {kind}s",
            partial(check_deliveries, kind),
            "Check the database: this query takes too long.",
        )
        for kind in Delivery.TYPES
    ),
    Check(
        "planning",
        check_planned_deliveries,
        "Check the database: this query takes too long.",
    ),
    Check("completions", check_completions, "Check the database."),
    Check("webhooks", check_webhooks, "Check the database."),
    Check("breakers", check_breakers, "Check the database."),
    Check(
        "e-mail server",
        check_mail_server,
        "Start the mail server, or fix EMAIL_URL. E-mails are retried for three days.",
        needs_database=False,
    ),
    Check("senders", check_senders, "Check the database."),
    Check("disk", check_disk, "Check the disk of VAR_DIR.", needs_database=False),
    Check("backups", check_backups, "Check the database."),
    Check("public address", check_public_url, "Fix PUBLIC_URL.", needs_database=False),
    Check("proxies", check_proxies, "Check the database."),
    Check("secret key", check_secret_key, "Check the file in VAR_DIR.", needs_database=False),
    Check("stored secrets", check_stored_secrets, "Check the database."),
    Check("all-day events", check_all_day_events, "Check the database."),
    Check(
        "calendars",
        check_calendars,
        "Check the database: this query takes too long.",
    ),
    Check("push", check_push, "Check the database: this query takes too long."),
)
