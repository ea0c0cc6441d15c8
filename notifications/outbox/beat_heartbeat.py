"""The heartbeat: a task scheduled by beat twice a minute and run by some worker."""

from datetime import datetime

from common.db.sql import database_now
from notifications.models import Heartbeat


def record_heartbeat() -> None:
    Heartbeat.objects.update_or_create(name=Heartbeat.BEAT, defaults={"seen_at": database_now()})


def last_heartbeat() -> datetime | None:
    """Return when the last heartbeat was recorded; None: never."""
    rows = Heartbeat.objects.filter(name=Heartbeat.BEAT)
    return rows.values_list("seen_at", flat=True).first()
