"""Create a series of visits: each occurrence has steps, and resources of its own."""

import uuid
from dataclasses import replace
from datetime import datetime

from availability.core.visits import Placement, Visit
from availability.reserve.checks import NO_RESOURCE, VisitChecks, find_visit_refusal
from availability.reserve.events import (
    NotAvailable,
    SlotTaken,
    TimeRequest,
    guarded_transaction,
    lock_resources_of_calendars,
    write_placed_events,
)
from availability.reserve.policies import first_own_calendars
from availability.search.availability_query import AvailabilityQuery, ExternalBusy
from availability.search.queries import TimeSpan
from availability.search.visit_slots import VisitSearch
from bookings.booking_target import BookingTarget
from bookings.models import Booking
from bookings.services.create_series import (
    FAIL,
    Conflict,
    NewSeries,
    expand_occurrences,
    lock_project_of_series,
    needs_live_check_of,
    occurrence_request,
    refusal_of_series,
    write_series,
)
from bookings.services.live_check import fetch_live_busy_for
from bookings.services.resource_assignment import chosen_for_steps, places_of_visit
from bookings.services.transition_log import Actor
from common.errors import Invalid


def create_visit_series(
    new: NewSeries, *, target: BookingTarget, actor: Actor, now: datetime
) -> Booking:
    """Create the series in one transaction; return its first booking.

    The visits have the resources of the first one where these are free, else others. Raises
    SlotTaken or NotAvailable with every occurrence in conflict; Invalid for a rule that can't be
    used.
    """
    target.external_busy = _live_busy(new, target)
    with guarded_transaction():
        lock_project_of_series(target)
        query = target.query_of_visit(enforced=new.enforce_availability)
        # Any of them may be chosen: a choice without the locks could be taken meanwhile.
        calendars = first_own_calendars([each.id for each in query.resources])
        if not calendars:
            raise NotAvailable([NO_RESOURCE])
        if not lock_resources_of_calendars([*calendars.values()]):
            raise Invalid.at("resource_id", "The resource no longer exists.")
        own = [each for each in query.resources if each.id in calendars]
        query = replace(query, resources=own, external_busy=target.external_busy)
        placed, conflicts = _place_occurrences(new, target, query)
        if conflicts and (new.on_conflict == FAIL or not placed):
            raise refusal_of_series(conflicts)
        visits = [
            (each, places_of_visit(chosen_for_steps(placement, each.span.start), calendars))
            for each, placement in placed
        ]
        events = write_placed_events(visits, details=new.details, project=target.project)
        return write_series(events, conflicts, new, target=target, actor=actor, now=now)


def _live_busy(new: NewSeries, target: BookingTarget) -> ExternalBusy:
    """Return the live busy times of all resources at the occurrences."""
    if not needs_live_check_of(new, target):
        return {}
    resources = target.rules.resources
    time_requests = [
        occurrence_request(new, target, times)
        for zone in {each.zone for each in resources}
        for times in expand_occurrences(new, zone)
    ]
    return fetch_live_busy_for(time_requests, {each.id for each in resources})


def _place_occurrences(
    new: NewSeries, target: BookingTarget, query: AvailabilityQuery
) -> tuple[list[tuple[TimeRequest, Placement]], list[Conflict]]:
    """Place each occurrence, those before it counted as taken; return also those in conflict.

    They are on the wall clock of the first resource of the first visit.
    """
    visit = query.visit or Visit([])
    by_zone = {each.zone: expand_occurrences(new, each.zone) for each in query.resources}
    requests = {
        zone: [occurrence_request(new, target, each) for each in times]
        for zone, times in by_zone.items()
    }
    every = [each for found in requests.values() for each in found]
    whole = TimeSpan(min(each.span.start for each in every), max(each.span.end for each in every))
    search = VisitSearch(query, whole, counts_busy=every[0].exclusive)
    first = search.place(visit, occurrence_request(new, target, (new.start, new.end)).span)
    zones = {each.id: each.zone for each in query.resources}
    zone = zones[first[0].chosen[0].id] if first else query.resources[0].zone
    checks = VisitChecks(requests[zone], query)
    placed: list[tuple[TimeRequest, Placement]] = []
    conflicts: list[Conflict] = []
    for time_request in requests[zone]:
        try:
            placement = _place_free(search, checks, visit, time_request)
        except (SlotTaken, NotAvailable) as refusal:
            conflicts.append(((time_request.start, time_request.end), refusal))
            continue
        if not placed:
            visit = visit.preferring(
                {(step.name, each.name, each.id) for step in placement for each in step.chosen}
            )
        placed.append((time_request, placement))
    return placed, conflicts


def _place_free(
    search: VisitSearch, checks: VisitChecks, visit: Visit, time_request: TimeRequest
) -> Placement:
    """Return the visit with free resources, whose time is then taken for those after it.

    Raises SlotTaken or NotAvailable.
    """
    refused: set[uuid.UUID] = set()
    refusal: SlotTaken | NotAvailable | None = None
    while placement := search.place(visit, time_request.span, without=refused):
        parts = [
            (each.id, time_request.of_stretch(stretch))
            for each, _, stretch in chosen_for_steps(placement, time_request.span.start)
        ]
        found = checks.find_refusal(parts)
        if found is None:
            checks.accept(time_request, parts)
            return placement
        # Limits, pace, and visits that overlap an earlier one of the series.
        refused.add(found[0])
        refusal = refusal or found[1]
    raise refusal or find_visit_refusal(time_request, search.query)
