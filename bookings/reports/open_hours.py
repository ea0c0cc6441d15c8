"""Open hours per day, by the core of availability: the rules of a resource, less blocked time."""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from apps_config.models import App
from availability.core.constraints import open_windows
from availability.core.intervals import clip, subtract
from availability.core.zones import DAY, day_start, local_day_pieces
from availability.models import Event, Resource
from availability.search.availability_query import load_resources
from common.time.instants import local_date, to_datetime

MAX_DAYS = 53 * 7
MAX_OPEN_DAYS = MAX_DAYS * 500  # days times resources that one request computes

OpenSeconds = dict[tuple[uuid.UUID, date], int]


def find_open_seconds(
    app: App, ids: Sequence[uuid.UUID], first: date, last: date, zone: str, *, now: datetime
) -> OpenSeconds:
    """Return how long the app's resources are open on each local day of `zone`, times their
    capacity; closed days and those before the resource was made are left out.

    Time is open by the rules of the resource and its schedule, unless an event that belongs to no
    booking blocks it. Five queries, however many resources there are.
    """
    start, end = day_start(first, zone), day_start(last + timedelta(days=1), zone)
    pieces = local_day_pieces(start, end, zone)
    made = dict(Resource.objects.filter(id__in=ids).values_list("id", "created_at"))
    blocked = _blocked_times(ids, start, end)
    seconds: OpenSeconds = defaultdict(int)
    for resource in load_resources(app, ids, now=now):
        # Whole UTC days: expanded rules are cached.
        windows = open_windows(
            (resource.rules,), resource.zone, start // DAY * DAY, (end // DAY + 1) * DAY
        )
        left = subtract(clip(windows, start, end), blocked.get(resource.id, ()))
        since = local_date(made[resource.id], zone)
        for day, lo, hi in pieces:
            number = sum(until - begin for begin, until in clip(left, lo, hi))
            if number and day >= since:
                seconds[resource.id, day] += number * resource.capacity
    return seconds


def _blocked_times(
    ids: Sequence[uuid.UUID], start: int, end: int
) -> dict[uuid.UUID, list[tuple[int, int]]]:
    """Return the time of events without a booking that block, by resource, sorted by start."""
    events = Event.objects.filter(resource_id__in=ids, busy=True, main=None, bookings=None)
    rows = events.overlapping(to_datetime(start), to_datetime(end)).order_by("start")
    blocked = defaultdict(list)
    for resource_id, begin, until in rows.values_list("resource_id", "start", "end"):
        blocked[resource_id].append((int(begin.timestamp()), int(until.timestamp())))
    return blocked
