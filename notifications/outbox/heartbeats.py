"""Heartbeats: of beat, by a task that it schedules twice a minute and some worker runs; of the
workers of each queue, by a thread of their own.
"""

from collections.abc import Iterable
from datetime import datetime

from common.db.sql import database_now
from notifications.models import Heartbeat


def record_heartbeat() -> None:
    _record([Heartbeat.BEAT])


def record_workers(queues: Iterable[str]) -> None:
    """Record that a worker consumes the queues."""
    _record(map(worker_of, sorted(queues)))


def worker_of(queue: str) -> str:
    """Return the name of the heartbeat of a queue's workers."""
    return f"worker-{queue}"


def last_heartbeat() -> datetime | None:
    """Return when beat's last heartbeat was recorded; None: never."""
    return last_heartbeats().get(Heartbeat.BEAT)


def last_heartbeats() -> dict[str, datetime]:
    """Return when each heartbeat was last recorded, by its name."""
    return dict(Heartbeat.objects.values_list("name", "seen_at"))


def _record(names: Iterable[str]) -> None:
    now = database_now()
    for name in names:
        Heartbeat.objects.update_or_create(name=name, defaults={"seen_at": now})
