"""From when on a connected calendar is out of step: one rule, for sets of rows and for the search.

What was never in step is out of step at once: of what nobody has read yet nothing is known, and
nothing is offered unsaid that may not be free.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

# The same as `out_of_step`, of calendars that a statement calls `late`; its parameter is
# `stale_before`. Word for word what the index calendar_connected has: SQLite wants it so.
LATE = """late.deleted_at IS NULL AND NOT (late.provider = 'service')
    AND (late.synced_at IS NULL OR late.synced_at < %s)"""


def stale_before(now: datetime) -> datetime:
    """What was last in step before that is out of step."""
    return now - timedelta(seconds=settings.CALENDAR_STALE_SECONDS)


def out_of_step(now: datetime) -> Q:
    """Of calendars those that are out of step."""
    late = Q(synced_at=None) | Q(synced_at__lt=stale_before(now))
    return Q(deleted_at=None) & ~Q(provider="service") & late
