"""What a booking may ask of the time of resources: by a project's own values, or by none."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from availability.models import Calendar, Project
from availability.search import Bookable, Query, project_rules
from availability.terms import Terms, with_values
from scheduling.api.errors import Invalid

# Rules without a project: the resource's own constraints, and not in the past.
RESOURCE_TERMS = Terms(length=None)


def terms_of_project(project: Project) -> Terms:
    """The project's terms: its own values, its limit of bookings a day, its constraints.

    Raises Invalid where they were stored past the services and can't be used.
    """
    try:
        terms = with_values(Terms(), project.availability)
    except ValueError as error:
        raise Invalid.at("availability", f"The project's availability: {error}") from error
    max_per_day = project.settings.get("max_per_day")
    if max_per_day is not None and not isinstance(max_per_day, int):
        raise Invalid.at("settings.max_per_day", "The project's max_per_day is not a number.")
    return replace(terms, max_per_day=max_per_day, constraints=project_rules(project))


def enforced_query(
    project: Project | None, resources: Sequence[Bookable], *, now: datetime
) -> Query:
    """All the rules that a booking of `project` on one of `resources` has to keep."""
    if project is None:
        return Query(resources=resources, terms=RESOURCE_TERMS, now=now)
    terms = terms_of_project(project)
    return Query(resources=resources, terms=terms, now=now, project_id=project.id, own=terms)


def without_rules(query: Query) -> Query:
    """The same resources where nothing is enforced: only what blocks counts."""
    return replace(
        query,
        resources=[resource.without_rules() for resource in query.resources],
        terms=Terms(
            length=None,
            include_past=True,
            ignore_all_day_events=query.terms.ignore_all_day_events,
        ),
        own=None,
    )


def without_moment(query: Query) -> Query:
    """The same rules without notice, past and booking window.

    A hold was judged by them when it was made; they are not judged again when its holder books.
    """
    return replace(query, terms=replace(query.terms, include_past=True), own=None)


def taken_meanwhile(query: Query) -> Query:
    """What others may have taken since the booking was made: events with their buffer, limits.

    When a booking that stood by begins to block, the rules that it kept at its making (opening
    hours, notice, length) are not asked again: confirming late is the owner's right.
    """
    return replace(
        query,
        resources=[resource.without_rules() for resource in query.resources],
        terms=replace(query.terms, length=None, include_past=True, constraints=()),
        own=None,
    )


def first_calendars(resource_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, Calendar]:
    """Each resource's first own calendar: where its bookings go unless one is named."""
    calendars = Calendar.objects.own().filter(resource_id__in=resource_ids, deleted_at=None)
    found: dict[uuid.UUID, Calendar] = {}
    for calendar in calendars.order_by("created_at", "id"):
        found.setdefault(calendar.resource_id, calendar)
    return found
