"""Who else of a project is free: for bookings whose resource is away."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from availability.core.intervals import Intervals
from availability.models import Project
from availability.reserve.policies import policy_query, project_buffers, public_policy_query
from availability.search.availability_query import (
    AvailabilityQuery,
    SearchResource,
    load_project_resources,
)
from availability.search.engine import free_intervals_of_resources, search_dates
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.pages.formatting import first_known_zone
from common.errors import Invalid
from common.time.instants import format_instant, local_date, local_midnight, to_datetime

MAX_PEOPLE = 50  # of a project that are searched
MAX_NAMED = 5  # of them in an e-mail
MAX_OFFERED = 4  # for one booking
MAX_SEARCHES = 10  # of projects
WITHIN = timedelta(days=7)


class Replacement(NamedTuple):
    """A free time of another resource for a booking."""

    resource: SearchResource
    start: datetime
    end: datetime

    def is_at(self, start: datetime) -> bool:
        return self.start == start


def names_of_others_free(booking: Booking, start: datetime, *, now: datetime) -> list[str]:
    """Return the names of the project's other resources that customers can still book on the local
    day of `start`; a few, in the project's order. [] for a project without a booking page.
    """
    project, zone = booking.project, first_known_zone(booking.resource.timezone)
    if project is None or start <= now or not _has_interchangeable_resources(booking, project):
        return []
    if not project.is_published:
        return []
    day = local_date(start, zone)
    begin, end = local_midnight(day, zone), local_midnight(day + timedelta(days=1), zone)
    others = _others(booking, project, now)
    try:
        query = _within(public_policy_query(project, others, now=now), max(begin, now), end)
        free = {resource.id for resource in search_dates(query, zone).get(day, ())}
    except Invalid:  # no range that can be searched: an e-mail does without the names
        return []
    return [resource.name for resource in others if resource.id in free][:MAX_NAMED]


def find_replacements(
    bookings: Sequence[Booking], *, now: datetime
) -> dict[uuid.UUID, list[Replacement]]:
    """Return, by booking, times of other resources: the same time, else their next one in a week.

    The best one first: at the same time, then the earliest; in the project's order. The first ones
    of several bookings do not overlap. The bookings are of one resource, with event and project.
    One search per project, of MAX_SEARCHES projects.
    """
    together: dict[Project, list[Booking]] = {}
    for booking in bookings:
        if booking.project and _has_interchangeable_resources(booking, booking.project):
            together.setdefault(booking.project, []).append(booking)
    taken: dict[uuid.UUID, list[tuple[int, int]]] = {}
    found = {}
    for project, of_project in list(together.items())[:MAX_SEARCHES]:
        free = _free_times(project, of_project, now)
        buffers = project_buffers(project)
        pad = max(buffers.before, buffers.after)
        for booking in of_project:
            found[booking.id] = offers = _offers(booking, free, taken, pad)
            if offers:
                span = int(offers[0].start.timestamp()), int(offers[0].end.timestamp())
                taken.setdefault(offers[0].resource.id, []).append(span)
    return found


def _has_interchangeable_resources(booking: Booking, project: Project) -> bool:
    """Return whether the booking takes one resource of the project, and could take another one."""
    chooses_several = booking.requires or booking.visit or project.derives_resources
    is_one = not (chooses_several or project.is_mutual)
    return is_one and not (GRAPHS[booking.graph].is_group or GRAPHS[booking.graph].is_seat)


def _others(booking: Booking, project: Project, now: datetime) -> list[SearchResource]:
    resources = load_project_resources(booking.app, project, now=now)
    return [each for each in resources if each.id != booking.resource_id][:MAX_PEOPLE]


def _within(query: AvailabilityQuery, start: datetime, end: datetime) -> AvailabilityQuery:
    terms = replace(query.terms, earliest=format_instant(start), latest=format_instant(end))
    return replace(query, terms=terms, bounds=query.own)


FreeTimes = Mapping[SearchResource, Intervals]


def _free_times(project: Project, bookings: Sequence[Booking], now: datetime) -> FreeTimes:
    starts = [booking.event.start for booking in bookings]
    query = policy_query(project, _others(bookings[0], project, now), now=now)
    query = replace(query, terms=replace(query.terms, length=None, lengths=()))
    try:
        query = _within(query, max(min(starts), now), max(starts) + WITHIN)
        return dict(free_intervals_of_resources(query))
    except Invalid:  # a range that can't be searched
        return {}


def _offers(
    booking: Booking,
    free: FreeTimes,
    taken: Mapping[uuid.UUID, Collection[tuple[int, int]]],
    pad: int,
) -> list[Replacement]:
    wanted = int(booking.event.start.timestamp())
    length = int(booking.event.end.timestamp()) - wanted
    offers = []
    for resource, intervals in free.items():
        busy = taken.get(resource.id, ())
        start = _first_start(intervals, busy, wanted, length, pad)
        if start is not None:
            end = start + length
            offers.append(Replacement(resource, to_datetime(start), to_datetime(end)))
    return sorted(offers, key=lambda offer: offer.start)[:MAX_OFFERED]


def _first_start(
    intervals: Intervals, busy: Collection[tuple[int, int]], wanted: int, length: int, pad: int
) -> int | None:
    """Return the first start from `wanted` on at which the length fits."""
    for begin, end in intervals:
        start = max(begin, wanted)
        for busy_start, busy_end in sorted(busy):
            if start < busy_end + pad and busy_start - pad < start + length:
                start = busy_end + pad
        if start + length <= end:
            return start
    return None
