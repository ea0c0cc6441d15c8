"""Announce that the syncs of calendars have stopped, and that only a person can restart them."""

import uuid
from collections.abc import Collection
from datetime import datetime

from django.db.models import F, Q

from external_calendars.models import Connection, PushChannel
from notifications.calendar_problems import announce_calendar_problem


def announce_stops(calendar_ids: Collection[uuid.UUID], *, now: datetime) -> None:
    """Announce the stop of calendars of one account, in its transaction.

    Once for each problem: not again if somebody only tries to sync. Their push channels belong to a
    permission that may have ended, so they are replaced when the syncs start again.
    """
    PushChannel.objects.filter(connection__in=calendar_ids).update(renew_at=now)
    rows = Connection.objects.filter(
        Q(announced_at=None) | Q(announced_at__lt=F("problem_since")),
        pk__in=calendar_ids,
        calendar__deleted_at=None,
        calendar__resource__deleted_at=None,
    )
    stopped = list(rows.select_related("calendar__resource", "grant").order_by("pk"))
    if stopped:
        announce_calendar_problem([connection.calendar for connection in stopped], now=now)
        rows.update(announced_at=now)
