"""The order of a project's resources in the mode `roundrobin_fair`."""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.db.models import Count

from availability.core.fairness import Turn, find_turns
from availability.graph_names import ENDED_EARLY
from availability.models import Hold, Project
from availability.search.engine import AvailabilityQuery
from availability.search.parameters import FAIR, SlotParameters
from common.time.instants import to_datetime


def with_fair_turns(
    query: AvailabilityQuery, project: Project | None, *, drops_others: bool = True
) -> AvailabilityQuery:
    """Return the query with its resources in turn, if its mode is `roundrobin_fair`.

    drops_others: leave out resources that get no bookings by turn. Without a project nothing is
    counted. At most three database queries.
    """
    if query.terms.mode != FAIR or query.requirements:
        return query
    if project is None:
        turns = find_turns([each.id for each in query.resources], dict(query.terms.weights), {})
    else:
        turns = fetch_turns(project, query.terms, now=query.now)
    place = {resource_id: number for number, resource_id in enumerate(turns)}
    resources = sorted(query.resources, key=lambda each: place.get(each.id, len(place)))
    if drops_others:
        resources = [each for each in resources if _may_be_chosen(turns.get(each.id))]
    return replace(query, resources=resources, turns=turns)


def _may_be_chosen(turn: Turn | None) -> bool:
    return turn is None or turn.position is not None


def fetch_turns(project: Project, terms: SlotParameters, *, now: datetime) -> dict[uuid.UUID, Turn]:
    """Return the turns of the project's resources, the next first.

    Counts bookings made since `calibrate_from` (default: the project's making), whoever chose the
    resource, without those that were cancelled, declined or not paid; and the holds that last.
    """
    links = project.project_resources.filter(resource__deleted_at=None)
    ids = links.order_by("position", "id").values_list("resource_id", flat=True)
    return find_turns(list(ids), dict(terms.weights), _count_bookings(project, terms, now))


def resources_by_turn(
    project: Project, terms: SlotParameters, *, now: datetime
) -> Sequence[uuid.UUID]:
    """Return the ids of the project's resources in turn, without those that have none."""
    turns = fetch_turns(project, terms, now=now)
    return [resource_id for resource_id, turn in turns.items() if _may_be_chosen(turn)]


def _count_bookings(project: Project, terms: SlotParameters, now: datetime) -> Counter[uuid.UUID]:
    since = project.created_at
    if terms.calibrate_from is not None:
        since = to_datetime(terms.calibrate_from)
    bookings = project.bookings.filter(created_at__gte=since, deleted_at=None, owner_booking=None)
    bookings = bookings.exclude(state__in=ENDED_EARLY).order_by()
    held = Hold.objects.filter(project=project, used_at=None, expires_at__gt=now).order_by()
    rows = bookings.values_list("resource_id").annotate(number=Count("id"))
    counts = Counter(dict(rows))
    counts.update(dict(held.values_list("resource_id").annotate(number=Count("id"))))
    return counts
