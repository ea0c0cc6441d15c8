"""The rules that a booking must keep: those of its project, or the defaults without a project."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from availability.core.busy_items import Buffers
from availability.core.periods import UNITS, PeriodLimit
from availability.models import Calendar, Project
from availability.search.availability_query import (
    AvailabilityQuery,
    SearchResource,
    project_rules,
    with_party,
)
from availability.search.parameters import SlotParameters, read_buffers, with_parameters
from availability.search.requirements import project_requirements
from availability.search.visits import project_visit
from common.errors import Invalid

# Without a project: the resource's own constraints, and no time in the past.
DEFAULT_PARAMETERS = SlotParameters(length=None)
PUBLIC_WINDOW = SlotParameters(length=None, latest="366 days", round_to_nearest_hour=False)


def project_parameters(project: Project) -> SlotParameters:
    """The project's availability parameters, limits per period and constraints.

    Raises Invalid for stored values that are invalid, which only writes without the services can
    leave.
    """
    try:
        terms = with_parameters(SlotParameters(), project.availability)
    except ValueError as error:
        raise _invalid_parameters(error) from error
    if project.steps:
        terms = replace(terms, length=None, lengths=())  # those of the steps
    limits = [
        PeriodLimit(unit, most)
        for unit in UNITS
        if (most := limit_setting(project, f"max_per_{unit}")) is not None
    ]
    return replace(terms, limits=tuple(limits), constraints=project_rules(project))


def project_buffers(project: Project) -> Buffers:
    """The buffers that a booking of the project is made with. Raises Invalid as
    `project_parameters`.
    """
    try:
        return read_buffers(project.availability)
    except ValueError as error:
        raise _invalid_parameters(error) from error


def _invalid_parameters(error: ValueError) -> Invalid:
    return Invalid.at("availability", f"The project's availability: {error}")


def limit_setting(project: Project, key: str) -> int | None:
    """Return a limit of the project's settings; None: unlimited.

    Raises Invalid for a stored value that only writes without the services can leave.
    """
    most = project.settings.get(key)
    if most is not None and not isinstance(most, int):
        raise Invalid.at(f"settings.{key}", f"The project's {key} is not a number.")
    return most


def policy_query(
    project: Project | None, resources: Sequence[SearchResource], *, now: datetime
) -> AvailabilityQuery:
    """A query with all rules that a booking of `project` on `resources` must keep."""
    if project is None:
        return AvailabilityQuery(resources=resources, terms=DEFAULT_PARAMETERS, now=now)
    terms = project_parameters(project)
    return AvailabilityQuery(
        resources=resources,
        terms=terms,
        now=now,
        project_id=project.id,
        own=terms,
        alternatives=project_requirements(project),
        visit=project_visit(project) if project.steps else None,
    )


def public_policy_query(
    project: Project | None, resources: Sequence[SearchResource], *, now: datetime
) -> AvailabilityQuery:
    """The same for a public caller: the start must be one that the project offers. Without a
    project, the booking window is a year.
    """
    query = policy_query(project, resources, now=now)
    return replace(query, on_grid=True, own=query.own or PUBLIC_WINDOW)


def without_rules(query: AvailabilityQuery) -> AvailabilityQuery:
    """The query without rules: only busy time counts."""
    return replace(
        with_party(query, None),
        resources=[resource.without_rules() for resource in query.resources],
        terms=SlotParameters(
            length=None,
            include_past=True,
            ignore_all_day_events=query.terms.ignore_all_day_events,
            ignores_buffers=True,
        ),
        own=None,
        party_size=None,
    )


def without_notice_rules(query: AvailabilityQuery) -> AvailabilityQuery:
    """The query without minimum notice, past and booking window.

    A hold is checked against them when it is placed, and not again when it is booked.
    """
    return replace(query, terms=replace(query.terms, include_past=True), own=None)


def without_booking_terms(query: AvailabilityQuery) -> AvailabilityQuery:
    """The query without length, minimum notice and booking window, which are the customers'."""
    return replace(query, terms=replace(query.terms, length=None, lengths=()), own=None)


def conflicts_only_query(query: AvailabilityQuery) -> AvailabilityQuery:
    """The query with only what may have changed since the booking was made: busy time with the
    buffer, and limits.

    For a booking that starts to block later: opening hours, notice and length were checked when it
    was made, and the owner may confirm late.
    """
    return replace(
        with_party(query, None),
        resources=[resource.without_rules() for resource in query.resources],
        terms=replace(query.terms, length=None, include_past=True, constraints=(), windows=None),
        own=None,
        party_size=None,
    )


def first_own_calendars(resource_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, Calendar]:
    """The oldest own calendar of each resource, with it: the default calendar of its bookings."""
    own = Calendar.objects.own().select_related("resource")
    calendars = own.filter(resource_id__in=resource_ids, deleted_at=None)
    first_calendars: dict[uuid.UUID, Calendar] = {}
    for calendar in calendars.order_by("created_at", "id"):
        first_calendars.setdefault(calendar.resource_id, calendar)
    return first_calendars
