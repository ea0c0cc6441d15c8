"""The rule for stale connected calendars, as a queryset filter and as SQL for the search.

A calendar that has never synced is stale at once: its busy time is unknown, so its resource must
not be offered without a warning.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

# The same rule as `is_stale`, for calendars aliased `late`; the parameter is `stale_before`. SQLite
# uses the index calendar_connected only if the wording matches its condition.
STALE_AFTER = """late.deleted_at IS NULL AND NOT (late.provider = 'service')
    AND (late.synced_at IS NULL OR late.synced_at < %s)"""


def stale_before(now: datetime) -> datetime:
    """A calendar that last synced before this instant is stale."""
    return now - timedelta(seconds=settings.CALENDAR_STALE_SECONDS)


def is_stale(now: datetime) -> Q:
    """A filter for stale calendars."""
    late = Q(synced_at=None) | Q(synced_at__lt=stale_before(now))
    return Q(deleted_at=None) & ~Q(provider="service") & late
