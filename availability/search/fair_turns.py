"""The order of a project's resources in the mode `roundrobin_fair`, and costs of requirements."""

import random
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

from django.db.models import Count, QuerySet

from availability.core.fairness import Turn, find_turns
from availability.core.matching import FAIR as FAIR_REQUIREMENT
from availability.core.matching import (
    RANDOM,
    Alternatives,
    FixedChoice,
    Requirement,
    smallest_first,
)
from availability.graph_names import ENDED_EARLY
from availability.models import Hold, Project
from availability.search.availability_query import AvailabilityQuery
from availability.search.parameters import FAIR, SlotParameters
from common.time.instants import to_datetime


def with_fair_turns(
    query: AvailabilityQuery, project: Project | None, *, drops_others: bool = True
) -> AvailabilityQuery:
    """Return the query with its resources in turn, if its mode is `roundrobin_fair`.

    drops_others: leave out resources that get no bookings by turn. Without a project nothing is
    counted. At most three database queries. Of requirements, the costs are set instead.
    """
    if query.alternatives:
        alternatives = with_costs(query.alternatives, project, query.fixed, now=query.now)
        return replace(query, alternatives=alternatives)
    if query.terms.mode != FAIR:
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
    rows = _counted_bookings(project, terms.calibrate_from).values_list("resource_id")
    counts = Counter(dict(rows.annotate(number=Count("id"))))
    held = _lasting_holds(project, now).values_list("resource_id")
    counts.update(dict(held.annotate(number=Count("id"))))
    return counts


def _counted_bookings(project: Project, calibrate_from: int | None) -> QuerySet:
    since = project.created_at if calibrate_from is None else to_datetime(calibrate_from)
    bookings = project.bookings.filter(created_at__gte=since, deleted_at=None, owner_booking=None)
    return bookings.exclude(state__in=ENDED_EARLY).order_by()


def _lasting_holds(project: Project, now: datetime) -> QuerySet[Hold]:
    return Hold.objects.filter(project=project, used_at=None, expires_at__gt=now).order_by()


def has_fair_requirement(alternatives: Alternatives) -> bool:
    """Return whether a choice depends on the project's bookings."""
    return any(each.mode == FAIR_REQUIREMENT for each in chain.from_iterable(alternatives))


def with_costs(
    alternatives: Alternatives, project: Project | None, fixed: FixedChoice, *, now: datetime
) -> Alternatives:
    """Return the requirements with the costs of their modes, as of now, for a party behind those
    that put small resources first.

    In the mode fair a resource costs more than others by what it has above its share; without a
    project nothing is counted. Three database queries for each `calibrate_from` of fair ones.
    """
    counts: dict[int | None, Mapping[str, Counter[uuid.UUID]]] = {}

    def counts_of(requirement: Requirement) -> Counter[uuid.UUID]:
        since = requirement.calibrate_from
        if project and since not in counts:
            fair = [
                each.name
                for each in chain.from_iterable(alternatives)
                if each.mode == FAIR_REQUIREMENT and each.calibrate_from == since
            ]
            counts[since] = _count_by_requirement(project, fair, since, now)
        return counts.get(since, {}).get(requirement.name, Counter())

    def costed(requirement: Requirement) -> Requirement:
        if requirement.mode == RANDOM:
            order = random.sample(range(len(requirement.ids)), len(requirement.ids))
            return requirement._replace(costs=tuple(order))
        if requirement.mode == FAIR_REQUIREMENT:
            return _with_fair_costs(requirement, counts_of(requirement), fixed)
        return requirement

    return [
        smallest_first([costed(each) for each in requirements]) for requirements in alternatives
    ]


def _with_fair_costs(
    requirement: Requirement, counts: Counter[uuid.UUID], fixed: FixedChoice
) -> Requirement:
    """Return the requirement with costs in whole numbers: the distance from the share first, then
    the position. Resources without turns (weight 0) are left out, unless they are fixed.
    """
    named = {*fixed.named.get(requirement.name, ()), fixed.anywhere}
    turns = find_turns(requirement.ids, dict(requirement.weights), counts)
    ids = [each for each in requirement.ids if turns[each].position is not None or each in named]
    whole = sum(turn.weight for turn in turns.values()) or 1
    costs = [
        int((turns[each].bookings - turns[each].share) * whole) * len(ids) + position
        for position, each in enumerate(ids)
    ]
    return requirement._replace(ids=tuple(ids), costs=tuple(costs))


def _count_by_requirement(
    project: Project, names: Collection[str], calibrate_from: int | None, now: datetime
) -> dict[str, Counter[uuid.UUID]]:
    """Count the project's bookings and lasting holds by requirement and resource."""
    bookings = _counted_bookings(project, calibrate_from)
    mains = bookings.filter(event__requirement__in=names)
    companions = bookings.filter(event__companions__requirement__in=names)
    held = _lasting_holds(project, now).filter(requirement__in=names)
    counts: dict[str, Counter[uuid.UUID]] = {}
    for rows in (
        mains.values_list("event__requirement", "event__resource_id"),
        companions.values_list("event__companions__requirement", "event__companions__resource_id"),
        held.values_list("requirement", "resource_id"),
    ):
        for name, resource_id, number in rows.annotate(number=Count("id")):
            counts.setdefault(name, Counter())[resource_id] += number
    return counts
