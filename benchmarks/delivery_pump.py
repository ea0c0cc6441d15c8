"""The in-process half of benchmarks.deliveries: python -m benchmarks.delivery_pump PART PORT

rate    calls per second of a dispatcher, and of a bare pool of as many threads with the same client
depth   calls per second of a dispatcher with 10,000 and with 100,000 rows due
fill    rows that become due one after the other, 200 a second, for 15 seconds
"""

import json
import os
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
from notifications.outbox.mail_and_webhook_senders import send_call  # noqa: E402
from notifications.webhooks.services import create_webhook, signing_secrets  # noqa: E402

THREADS = 64
ROUNDS = 5
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
        cursor.execute("TRUNCATE notifications_delivery CASCADE")


def rate_of_pump(count: int) -> float:
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
        pairs.append((rate_of_pump(count), raw))
    return {
        "pump": median(pair[0] for pair in pairs),
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


def main() -> Iterator[Any]:
    part, port = sys.argv[1], sys.argv[2]
    url = f"http://127.0.0.1:{port}/"
    dispatcher.LINGER = 0
    settings.DELIVERY_THREADS = settings.DELIVERY_ENDPOINT_CAP = THREADS
    settings.DELIVERY_ENDPOINT_CAP = settings.DELIVERY_APP_CAP = THREADS * dispatcher.AHEAD
    if part == "rate":
        yield measure_rate(url, int(sys.argv[3]))
    elif part == "depth":
        yield measure_depth(url)
    else:
        clear()
        first = timezone.now() + timedelta(seconds=4)
        fill(make_webhook(url), 3000, due=first, step=1 / 200)
        rows = Delivery.objects.values_list("id", "due_at")
        yield {str(key): due.timestamp() for key, due in rows}


if __name__ == "__main__":
    for line in main():
        print(json.dumps(line))
