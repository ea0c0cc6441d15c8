"""The beat's mark: a task that it asks for, and some worker writes, twice a minute."""

from datetime import datetime

from notifications.models import Heartbeat
from scheduling.api.sql import database_now


def mark_beat() -> None:
    """The beat is there, and a worker that takes what it asks for."""
    Heartbeat.objects.update_or_create(name=Heartbeat.BEAT, defaults={"seen_at": database_now()})


def beat_seen_at() -> datetime | None:
    """When it was last there; None: never."""
    rows = Heartbeat.objects.filter(name=Heartbeat.BEAT)
    return rows.values_list("seen_at", flat=True).first()
