"""The checks of `manage.py doctor`: each part as it should be, broken, and mute."""

import time
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import current_app
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from bookings.models import Booking
from notifications.models import Delivery, Endpoint, Heartbeat, TaskRun, Webhook
from notifications.outbox.heartbeats import record_heartbeat
from notifications.webhooks.services import create_webhook, disable_webhook, send_test
from ops import doctor
from ops.doctor import Check, Finding, run_check
from ops.reencryption import scan_secrets
from tests.services import free_port
from tests.sinks import MailSink
from tests.world import Tenant

pytestmark = pytest.mark.both_databases

NAMES = [
    "version",
    "database",
    "migrations",
    "home",
    "clocks",
    "time-outs",
    "direct connection",
    "replica",
    "transactions",
    "broker",
    "redis",
    "workers",
    "beat",
    "overdue emails",
    "overdue webhooks",
    "overdue calendars",
    "planning",
    "completions",
    "webhooks",
    "breakers",
    "e-mail server",
    "senders",
    "disk",
    "backups",
    "public address",
    "proxies",
    "secret key",
    "stored secrets",
    "all-day events",
    "calendars",
    "push",
]


def test_each_check_has_a_finding_without_an_error(db: None, mails: MailSink) -> None:
    # Workers of other tests may answer.
    checks = [check for check in doctor.CHECKS if check.name != "workers"]
    levels = {check.name: check.run().level for check in checks}

    others = {"beat": "FAIL", "public address": "WARN"}
    assert levels == dict.fromkeys(set(NAMES) - {"workers"}, "ok") | others


def test_error_of_a_check_is_a_finding() -> None:
    def fall() -> Finding:
        raise ValueError("first\nsecond")

    def hang() -> Finding:
        time.sleep(0.5)
        return Finding("ok", "")

    checks = [Check("one", run, "Mend it.", seconds=0.1) for run in (fall, hang)]

    assert [run_check(check) for check in checks] == [
        Finding("FAIL", "ValueError: first", "Mend it."),
        Finding("FAIL", "no answer in 0.1 s", "Mend it."),
    ]


# --- Database -------------------------------------------------------------------------------------
@pytest.mark.postgresql
def test_check_of_postgresql(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    version = connection.pg_version
    seen = (
        f"PostgreSQL {version // 10_000}.{version % 10_000} on {connection.settings_dict['HOST']}"
    )
    good = doctor.check_database()
    monkeypatch.setattr(doctor, "MIN_POSTGRESQL", 99)
    old = doctor.check_database()

    assert good == Finding("ok", f"{seen}, with btree_gist")
    assert old == Finding("FAIL", seen, "Upgrade PostgreSQL to 99 or newer.")


def test_check_of_migrations(db: None) -> None:
    good = doctor.check_migrations()
    ((app, last),) = MigrationLoader(connection).graph.leaf_nodes("notifications")
    MigrationRecorder(connection).record_unapplied(app, last)

    assert good == Finding("ok", "all applied")
    assert doctor.check_migrations() == Finding(
        "FAIL", f"1 not applied, the first is notifications.{last}", "Run manage.py migrate."
    )


def test_check_of_home(tenant: Tenant, settings: Any) -> None:
    good = doctor.check_home()
    settings.HOME_NUMBER = 8
    bad = doctor.check_home()

    assert good == Finding("ok", "HOME_NUMBER=0, as in the database")
    assert bad == Finding(
        "FAIL",
        "HOME_NUMBER is 8, but this database belongs to home 0",
        "Set DATABASE_URL or HOME_NUMBER to those of this cell.",
    )


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("seconds", "level", "seen"),
    [
        (0, "ok", "this machine is 0.0 s ahead of the database"),
        (-1.5, "ok", "this machine is 1.5 s ahead of the database"),
        (10, "FAIL", "this machine is 10.0 s behind the database"),
    ],
)
def test_check_of_clocks(
    db: None, monkeypatch: pytest.MonkeyPatch, seconds: float, level: str, seen: str
) -> None:
    now = timezone.now()
    monkeypatch.setattr(doctor, "timezone", SimpleNamespace(now=lambda: now))
    monkeypatch.setattr(doctor, "database_now", lambda: now + timedelta(seconds=seconds))

    found = doctor.check_clocks()

    assert (
        found.level,
        found.seen.replace("behind", "ahead of") if not seconds else found.seen,
    ) == (
        level,
        seen,
    )


# --- Who works ------------------------------------------------------------------------------------
def test_check_of_beat(db: None) -> None:
    never = doctor.check_beat()
    record_heartbeat()
    good = doctor.check_beat()
    Heartbeat.objects.update(seen_at=timezone.now() - timedelta(minutes=5))
    late = doctor.check_beat()

    assert (never.level, never.seen) == ("FAIL", "never seen")
    assert good == Finding("ok", "last seen 0 s ago")
    assert late == Finding(
        "FAIL",
        "last seen 5 min ago",
        "Start one beat (celery -A scheduling.beat beat) and a worker for the queue celery.",
    )


def test_check_of_worker_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "a@x": [{"name": "email"}, {"name": "calendar"}],
        "b@x": [{"name": "email"}, {"name": "celery"}],
    }
    inspect = SimpleNamespace(active_queues=lambda: answers)
    monkeypatch.setattr(current_app.control, "inspect", lambda **options: inspect)

    assert doctor.check_workers() == Finding(
        "FAIL",
        "2 workers answer, but none processes webhook",
        "Start a worker without -Q, or with -Q webhook.",
    )


# --- What waits -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("seconds", "level", "seen"),
    [
        (-5, "ok", "nothing is overdue"),
        (20, "ok", "the oldest has waited 20 s"),
        (80, "WARN", "the oldest is overdue by 80 s"),
        (700, "FAIL", "the oldest is overdue by 12 min"),
        (7200, "FAIL", "the oldest is overdue by 2.0 h"),
        (300_000, "FAIL", "the oldest is overdue by 3 days"),
    ],
)
@pytest.mark.usefixtures("expanded_calls")
def test_check_of_overdue_work(tenant: Tenant, seconds: int, level: str, seen: str) -> None:
    webhook, _ = create_webhook(app=tenant.app, given={"url": "https://example.com/"})
    send_test(webhook, now=timezone.now())
    resource = tenant.make_resource()
    span = {"start": "2027-03-23 10:00:00", "end": "2027-03-23 11:00:00"}
    assert tenant.book(resource_id=resource["id"], **span).status == 201
    Delivery.objects.update(next_at=timezone.now() - timedelta(seconds=seconds))
    Booking.objects.update(completes_at=timezone.now() - timedelta(seconds=seconds))

    found = [doctor.check_deliveries("webhook"), doctor.check_completions()]

    assert [(one.level, one.seen, bool(one.fix)) for one in found] == [
        (level, seen, level != "ok")
    ] * 2


def test_check_of_webhooks_and_breakers(tenant: Tenant) -> None:
    webhook, _ = create_webhook(app=tenant.app, given={"url": "https://example.com/"})
    good = [doctor.check_webhooks(), doctor.check_breakers()]
    disable_webhook(webhook, "Gone.", now=timezone.now())
    for letter in "abcd":
        Endpoint.objects.create(
            address=f"https://{letter}.example:443",
            failures=10,
            open_until=timezone.now() + timedelta(minutes=1),
        )
    bad = [doctor.check_webhooks(), doctor.check_breakers()]

    assert good == [
        Finding("ok", "none is disabled after failures"),
        Finding("ok", "no server is paused"),
    ]
    assert [(one.level, one.seen) for one in bad] == [
        ("WARN", "1 disabled after failures"),
        (
            "WARN",
            "paused: https://a.example:443, https://b.example:443, https://c.example:443, ...",
        ),
    ]


# --- Around it ------------------------------------------------------------------------------------
def test_check_of_the_mail_server(db: None, mails: MailSink) -> None:
    good = doctor.check_mail_server()
    mails.stop()
    check = next(check for check in doctor.CHECKS if check.run is doctor.check_mail_server)
    gone = run_check(check)

    assert good == Finding("ok", f"127.0.0.1:{mails.port} answers EHLO with 250")
    assert (gone.level, gone.fix) == (
        "FAIL",
        "Start the mail server, or fix EMAIL_URL. E-mails are retried for three days.",
    )
    assert gone.seen.startswith("ConnectionRefusedError: ")


def test_mail_server_check_is_skipped_for_files(settings: Any) -> None:
    settings.EMAIL_BACKEND = doctor.FILES
    settings.EMAIL_FILE_PATH = "/var/outbox"

    assert doctor.check_mail_server() == Finding(
        "ok", "skipped: e-mails are stored as files in /var/outbox"
    )


@pytest.mark.parametrize(
    ("free", "level"), [(2 * 10**9, "ok"), (5 * 10**8, "WARN"), (10**7, "FAIL")]
)
def test_check_of_the_disk(
    monkeypatch: pytest.MonkeyPatch, settings: Any, free: int, level: str
) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))

    found = doctor.check_disk()

    assert (found.level, found.seen) == (
        level,
        f"{free / 10**9:.1f} GB free in {settings.VAR_DIR}",
    )


@pytest.mark.parametrize(
    ("hours", "level", "seen"),
    [
        (None, "ok", "deploy/backup/backup.sh has made none"),
        (25, "ok", "the last was made 25.0 h ago"),
        (27, "FAIL", "the last was made 27.0 h ago"),
    ],
)
def test_check_of_backups(db: None, hours: int | None, level: str, seen: str) -> None:
    if hours:
        made_at = timezone.now() - timedelta(hours=hours)
        TaskRun.objects.create(task="backup", succeeded_at=made_at)

    found = doctor.check_backups()

    assert (found.level, found.seen) == (level, seen)


@pytest.mark.parametrize(
    ("address", "debug", "level"),
    [
        ("http://localhost:8000", False, "WARN"),
        ("http://127.0.0.1:8000", False, "WARN"),
        ("http://[::1]:8000", False, "WARN"),
        ("http://127.0.0.1:8000", True, "ok"),
        ("https://book.example.com", False, "ok"),
    ],
)
def test_check_of_the_public_url(settings: Any, address: str, debug: bool, level: str) -> None:
    settings.PUBLIC_URL, settings.DEBUG = address, debug

    found = doctor.check_public_url()

    assert (found.level, found.seen, bool(found.fix)) == (level, address, level == "WARN")


def test_check_of_the_secret_key(settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR, settings.SECRET_KEY = tmp_path, "k" * 40
    none = doctor.check_secret_key_file()
    path = tmp_path / "secret_key"
    path.write_text(settings.SECRET_KEY)
    path.chmod(0o600)
    good = doctor.check_secret_key_file()
    path.chmod(0o644)
    bad = doctor.check_secret_key_file()

    assert none == Finding("ok", "40 characters, from the environment")
    assert good == Finding("ok", f"{path}, readable only by its owner")
    assert bad == Finding("FAIL", f"{path} may be read by others (644)", f"Run chmod 600 {path}.")


def test_check_of_secret_key_fallbacks(settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR, settings.SECRET_KEY = tmp_path, "k" * 40
    settings.SECRET_KEY_FALLBACKS = ["o" * 40]
    path = tmp_path / "secret_key"

    from_environment = doctor.check_secret_key()
    path.write_text("k" * 40)
    path.chmod(0o644)
    bad = doctor.check_secret_key()

    assert from_environment == Finding(
        "WARN",
        "40 characters, from the environment; 1 in SECRET_KEY_FALLBACKS",
        "Once the rotation is complete, remove the old keys (operations.md, Rotating SECRET_KEY).",
    )
    assert bad == Finding("FAIL", f"{path} may be read by others (644)", f"Run chmod 600 {path}.")


def test_check_of_stored_secrets(tenant: Tenant, settings: Any) -> None:
    old, new, lost = "the old key " * 3, "the new key " * 3, "the lost key " * 3
    none = doctor.check_stored_secrets()
    for key in (old, old, new):
        settings.ENCRYPTION_KEYS = [key]
        create_webhook(app=tenant.app, given={"url": "https://example.com/hook"})
    settings.ENCRYPTION_KEYS = [new, old]
    some = doctor.check_stored_secrets()
    settings.ENCRYPTION_KEYS = [lost, new]
    bad = doctor.check_stored_secrets()
    settings.ENCRYPTION_KEYS = [new, old]
    Webhook.objects.update(secret=Webhook.objects.latest("created_at").secret)
    all_new = doctor.check_stored_secrets()

    assert none == Finding("ok", "no secret is stored")
    assert some == Finding("ok", "3 checked, 2 use an older key")
    assert all_new == Finding("ok", "3 checked, all use the first key")
    assert bad == Finding(
        "FAIL",
        "2 of 3 can't be decrypted",
        "Add the missing key to ENCRYPTION_KEYS, or replace these secrets."
        " manage.py reencrypt_secrets --dry-run lists them.",
    )


def test_check_of_stored_secrets_has_a_time_limit(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        create_webhook(app=tenant.app, given={"url": "https://example.com/hook"})
    monkeypatch.setattr(doctor, "scan_secrets", partial(scan_secrets, batch=2))
    monkeypatch.setattr(doctor, "SECRETS_SECONDS", 0)

    assert doctor.check_stored_secrets() == Finding("ok", "2 checked, all use the first key")


def test_check_of_a_read_only_folder(tmp_path: Path) -> None:
    assert doctor._check_folder(tmp_path / "none") == Finding(
        "FAIL",
        f"{tmp_path / 'none'} is not writable",
        "Make the folder writable for the service's user.",
    )


@pytest.mark.redis
def test_check_of_an_unreachable_broker(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"redis://:secret@127.0.0.1:{free_port()}/0"
    connect = current_app.connection_for_write
    monkeypatch.setattr(
        current_app, "connection_for_write", lambda **options: connect(url, **options)
    )
    check = next(check for check in doctor.CHECKS if check.run is doctor.check_broker)

    found = run_check(check)

    assert (found.level, "secret" in found.seen) == ("FAIL", False)
    assert found.fix.startswith("Start the broker")


@pytest.mark.parametrize(
    ("broker_url", "uri", "seen"),
    [
        ("redis://:secret@r:6379/0", "redis://:**@r:6379/0", "Redis, redis://:**@r:6379/0"),
        ("amqp://a:secret@r:5672//", "amqp://a:**@r:5672//", "AMQP, amqp://a:**@r:5672//"),
    ],
)
def test_doctor_names_the_transport(
    settings: Any, monkeypatch: pytest.MonkeyPatch, broker_url: str, uri: str, seen: str
) -> None:
    broker = SimpleNamespace(connect=lambda: None, as_uri=lambda: uri)
    connect = nullcontext(broker)
    monkeypatch.setattr(current_app, "connection_for_write", lambda **options: connect)
    settings.MESSAGE_BROKER_URL = broker_url

    assert doctor.check_broker() == Finding("ok", seen)


@pytest.mark.redis
def test_check_of_redis_with_another_broker(settings: Any) -> None:
    check = next(check for check in doctor.CHECKS if check.run is doctor.check_redis)
    same = run_check(check)
    settings.MESSAGE_BROKER_URL = "amqp://r:5672//"
    answers = run_check(check)
    settings.REDIS_URL = f"redis://:secret@127.0.0.1:{free_port()}/0"
    away = run_check(check)
    settings.REDIS_URL = ""
    none = run_check(check)

    assert (same, answers, none) == (
        Finding("ok", "the broker"),
        Finding("ok", "answers"),
        Finding("ok", "none: each web process counts requests by itself"),
    )
    assert (away.level, "secret" in away.seen) == ("FAIL", False)


def test_check_of_open_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    ages = [timedelta(seconds=60), timedelta(seconds=61)]
    found = []
    for age in ages:
        monkeypatch.setattr(doctor, "oldest_transaction_age", lambda age=age: age)
        found.append(doctor.check_transactions())

    assert found == [
        Finding(doctor.OK, "no transaction is older than 60 s"),
        Finding(
            doctor.FAIL,
            "the oldest is open for 61 s: later changes are not listed",
            "Find its process in pg_stat_activity and end it.",
        ),
    ]
