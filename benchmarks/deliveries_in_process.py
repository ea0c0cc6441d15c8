"""The in-process half of benchmarks.deliveries, which calls it with a part and a port.

rate    calls per second of a dispatcher, and of a bare pool of as many threads with the same client
depth   calls per second of a dispatcher with 10,000 and with 100,000 rows due
claims  a claim of some calls beside a million due calls that have to wait, and beside none
empty   the first claim of another app's call beside due checks of empty lanes
share   calls per second of PROCESSES dispatchers on one queue, and their waits for locks
fill    so many rows that become due one after the other, 200 a second
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from statistics import median
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from apps_config.services import create_app  # noqa: E402
from notifications.models import Delivery, Webhook  # noqa: E402
from notifications.outbox import dispatcher  # noqa: E402
from notifications.outbox.circuit_breaker import endpoint_of  # noqa: E402
from notifications.outbox.lanes import next_check  # noqa: E402
from notifications.outbox.leases import claim_due  # noqa: E402
from notifications.webhooks.call import send_call  # noqa: E402
from notifications.webhooks.services import create_webhook, signing_secrets  # noqa: E402

THREADS = 64
ROUNDS = 5
PROCESSES = 4
BATCH = 1000
BODY = json.dumps({"id": "0193a4c2-0000-7000-8000-000000000031", "text": "x" * 1500})


def make_webhook(url: str) -> Webhook:
    app = create_app(slug=f"bench-{time.time_ns()}", name="Bench")
    return create_webhook(app=app, given={"url": url})[0]


def fill(webhook: Webhook, count: int, *, due: Any = None, step: float = 0.0) -> None:
    """Insert rows that are due at once, or from `due` on, `step` seconds apart."""
    now = timezone.now()
    rows = [row_of(webhook, now, (due or now) + timedelta(seconds=step * n)) for n in range(count)]
    for first in range(0, count, BATCH):  # each in a transaction of its own, for the triggers
        Delivery.objects.bulk_create(rows[first : first + BATCH])


def row_of(webhook: Webhook, now: Any, due: Any) -> Delivery:
    return Delivery(
        app_id=webhook.app_id,
        webhook=webhook,
        type=Delivery.WEBHOOK,
        kind="test",
        body=BODY,
        endpoint=endpoint_of(webhook.url),
        due_at=due,
        next_at=due,
        expires_at=due + timedelta(days=3),
        created_at=now,
    )


def clear() -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE notifications_delivery, notifications_lanecheck CASCADE")


def rate_of_dispatcher(count: int) -> float:
    """Dispatch the `count` due rows; return rows per second."""
    began = time.perf_counter()
    sent = dispatcher.run_dispatcher("webhook")
    spent = time.perf_counter() - began
    assert sent == count, (sent, count)
    return sent / spent


def rate_of_pool(webhook: Webhook, count: int) -> float:
    """Make the same calls with the same client in as many threads; return calls per second."""
    secrets = signing_secrets(webhook, now=timezone.now())

    def call(number: int) -> bool:
        return send_call(number, "webhook.test", webhook.url, "post", BODY, None, secrets).ok

    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(call, range(count)))
    return count / (time.perf_counter() - began)


def measure_rate(url: str, count: int) -> dict[str, float]:
    webhook = make_webhook(url)
    rate_of_pool(webhook, 200)
    pairs = []
    for _ in range(ROUNDS):
        raw = rate_of_pool(webhook, count)
        fill(webhook, count)
        pairs.append((rate_of_dispatcher(count), raw))
    return {
        "dispatcher": median(pair[0] for pair in pairs),
        "pool": median(pair[1] for pair in pairs),
        "share": median(pair[0] / pair[1] for pair in pairs),
    }


def measure_depth(url: str) -> dict[str, float]:
    """Measure a dispatcher, stopped after some seconds, with a short and with a long queue."""
    webhook = make_webhook(url)
    rates: dict[int, list[float]] = {10_000: [], 100_000: []}
    for _ in range(2):
        for depth, found in rates.items():
            clear()
            fill(webhook, depth)
            until = time.monotonic() + 4
            began = time.perf_counter()
            sent = dispatcher.run_dispatcher(
                "webhook", stopping=lambda until=until: time.monotonic() > until
            )
            found.append(sent / (time.perf_counter() - began))
    return {str(depth): median(found) for depth, found in rates.items()}


BACKLOG = """
INSERT INTO notifications_delivery (id, app_id, number, type, kind, recipient, version, content,
    body, endpoint, state, reason, due_at, next_at, expires_at, tries, lapses, created_at)
SELECT gen_random_uuid(), %(app)s, 0, 'webhook', 'test', '', 0, '{}', '',
    %(url)s || (n * %(servers)s / %(backlog)s) || ':443',
    'scheduled', '', now() - interval '1 hour', now() - interval '1 hour',
    now() + interval '3 days',
    0, 0, now()
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
"""
OPEN_BREAKERS = """
INSERT INTO notifications_endpoint (address, failures, is_slow, open_until)
SELECT %s || n || ':443', 12, true, now() + interval '1 hour' FROM generate_series(0, %s) AS n
"""
# name -> (the app's own cap, servers with an open breaker among which the calls are spread)
BACKLOGS = {
    "an app over its cap": (1, 1, False),
    "a dead server": (None, 1, True),
    "70,000 servers with open breakers": (None, 70_000, True),
}


def measure_claims(backlog: int) -> dict[str, dict[str, float]]:
    """Measure a claim of 16 calls: before the backlog, beside it and after it."""
    webhook = make_webhook("https://good.example/hook")
    found = {}
    for name, (cap, servers, is_dead) in BACKLOGS.items():
        clear()
        empty = claim_seconds(webhook)
        app = create_app(slug=f"busy-{time.time_ns()}", name="Busy")
        app.settings = {"delivery_cap": cap}
        app.save()
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
            for first in range(0, backlog, 10 * BATCH):
                last = min(first + 10 * BATCH, backlog) - 1
                values = {"app": app.id, "url": "https://busy", "servers": servers}
                cursor.execute(
                    BACKLOG, {**values, "backlog": backlog, "first": first, "last": last}
                )
                if not first:
                    cursor.execute("ANALYZE notifications_lanecheck")  # for the plan in the trigger
            if is_dead:
                cursor.execute(OPEN_BREAKERS, ["https://busy", servers - 1])
            cursor.execute("VACUUM ANALYZE notifications_delivery, notifications_lanecheck")
        while (due := next_check("webhook")) and due <= timezone.now():
            claim_due("webhook", 256)
        beside = claim_seconds(webhook)
        clear()
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE notifications_endpoint")
        found[name] = {"beside": beside, "empty": median([empty, claim_seconds(webhook)])}
    return found


EMPTY_CHECKS = """
INSERT INTO notifications_lanecheck (app_id, type, endpoint, next_at, transaction)
SELECT %s, 'webhook', 'https://s' || (n %% %s) || ':443', now() - interval '1 hour', -n
FROM generate_series(1, %s) AS n
"""


def measure_empty_lanes(checks: int) -> dict[str, dict[str, float]]:
    """Measure, for one and for `checks` empty lanes of an app, the claim that takes another app's
    call, and all claims until no check of the app is due.
    """
    quiet = make_webhook("https://good.example/hook")
    found = {}
    for servers in (1, checks // 10, checks):
        clear()
        with connection.cursor() as cursor:
            cursor.execute(EMPTY_CHECKS, [make_webhook(quiet.url).app_id, servers, checks])
        fill(quiet, 1)
        began = time.perf_counter()
        rows = claim_due("webhook", 64)
        first = time.perf_counter() - began
        assert [row.app_id for row in rows or ()] == [quiet.app_id]
        while claim_due("webhook", 64) is not None:
            pass
        found[f"{servers:,}"] = {"first": first, "all": time.perf_counter() - began}
    return found


def claim_seconds(webhook: Webhook) -> float:
    """Return the median time of 100 claims."""
    times = []
    for _ in range(100):
        fill(webhook, 16)
        began = time.perf_counter()
        rows = claim_due("webhook", 256)
        times.append(time.perf_counter() - began)
        # The busy app may get a call back whose lease has ended.
        mine = [row for row in rows if row.app_id == webhook.app_id]
        assert (len(mine), len(rows) <= 17) == (16, True), len(rows)
        Delivery.objects.filter(app=webhook.app_id).delete()
    return median(times)


WAITING = """
SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'
"""


def measure_lock_waits(url: str, calls: int) -> dict[str, float]:
    """Run one dispatcher process, then PROCESSES at once, on the calls of 20 apps."""
    rates, waits = {}, {}
    for processes in (1, PROCESSES):
        clear()
        for _ in range(20):
            fill(make_webhook(url), calls // 20)
        command = [sys.executable, "-m", "benchmarks.deliveries_in_process", "run", "0"]
        began = time.perf_counter()
        running = [subprocess.Popen(command) for _ in range(processes)]
        samples = []
        while any(process.poll() is None for process in running):
            with connection.cursor() as cursor:
                cursor.execute(WAITING)
                samples.append(cursor.fetchone())
            time.sleep(0.02)
        rates[processes] = calls / (time.perf_counter() - began)
        waits[processes] = sum(row[0] for row in samples) / max(1, sum(row[1] for row in samples))
        assert not Delivery.objects.open().exists()
    return {
        "one": rates[1],
        "all": rates[PROCESSES],
        "waiting": waits[PROCESSES],
    }


def run_part() -> Iterator[Any]:
    part, port = sys.argv[1], sys.argv[2]
    url = f"http://127.0.0.1:{port}/"
    dispatcher.LINGER = 0
    settings.DELIVERY_THREADS = settings.DELIVERY_ENDPOINT_CAP = THREADS
    settings.DELIVERY_ENDPOINT_CAP = settings.DELIVERY_APP_CAP = THREADS * dispatcher.AHEAD
    if part == "rate":
        yield measure_rate(url, int(sys.argv[3]))
    elif part == "depth":
        yield measure_depth(url)
    elif part == "claims":
        yield measure_claims(int(sys.argv[3]))
    elif part == "empty":
        yield measure_empty_lanes(int(sys.argv[3]))
    elif part == "share":
        yield measure_lock_waits(url, int(sys.argv[3]))
    elif part == "run":
        while dispatcher.run_dispatcher("webhook"):
            pass
    else:
        clear()
        first = timezone.now() + timedelta(seconds=4)
        fill(make_webhook(url), int(sys.argv[3]), due=first, step=1 / 200)
        rows = Delivery.objects.values_list("id", "due_at")
        yield {str(key): due.timestamp() for key, due in rows}


if __name__ == "__main__":
    for line in run_part():
        print(json.dumps(line))
