"""Judge many claims on the same resource at once: the rows are read once, not for each claim.

A claim that can be had stands in the way of those after it, as its event will.
"""

import uuid
from collections.abc import Sequence
from dataclasses import replace

from availability.core.explain import Busy
from availability.placement import CONFLICTS_NAMED, Claim, NotAvailable, SlotTaken
from availability.reading import (
    DayCounts,
    Span,
    closed_days,
    local_days,
    read_busy_events,
    read_day_counts,
    to_datetime,
)
from availability.search import Bookable, Obstacles, Query, add_elsewhere, find_reasons

Verdict = SlotTaken | NotAvailable | None


def judge_claims(claims: Sequence[Claim], candidates: Query) -> dict[uuid.UUID, list[Verdict]]:
    """For each resource of the candidates, why it can't have each claim; None: it can.

    The claims, in the order of their starts, differ in their times only, and are of one booking's
    kind. `candidates`: the resources, with the rules where the claims have some. Two queries.
    """
    first = claims[0]
    if not first.rules and not first.is_guarded:
        return {resource.id: [None] * len(claims) for resource in candidates.resources}
    busy, counts = _read_rows(claims, candidates)
    return {
        resource.id: _Judge(
            candidates, resource, busy.get(resource.id, []), counts.get(resource.id, {})
        ).judge_all(claims)
        for resource in candidates.resources
    }


def _read_rows(
    claims: Sequence[Claim], candidates: Query
) -> tuple[dict[uuid.UUID, list[Busy]], DayCounts]:
    terms, first = candidates.terms, claims[0]
    whole = Span(first.span.start, max(claim.span.end for claim in claims))
    busy: dict[uuid.UUID, list[Busy]] = {}
    if first.exclusive:
        busy = read_busy_events(
            [resource.id for resource in candidates.resources],
            Span(whole.start - terms.buffer, whole.end + terms.buffer),
            now=candidates.now,
            ignore_all_day=terms.ignore_all_day_events,
        )
        add_elsewhere(busy, replace(candidates, elsewhere=first.elsewhere))
    if terms.max_per_day is None or candidates.project_id is None:
        return busy, {}
    zones = {resource.id: resource.zone for resource in candidates.resources}
    return busy, read_day_counts(zones, whole, project_id=candidates.project_id, now=candidates.now)


class _Judge:
    """One resource, what takes its time, and how many bookings its days have."""

    def __init__(self, query: Query, resource: Bookable, busy: list[Busy], days: dict) -> None:
        self.query = query
        self.resource = resource
        self.busy = busy
        self.days = days

    def judge_all(self, claims: Sequence[Claim]) -> list[Verdict]:
        verdicts = []
        for claim in claims:
            verdict = self._judge(claim)
            verdicts.append(verdict)
            if verdict is None and claim.blocks:
                self._take(claim)
        return verdicts

    def _judge(self, claim: Claim) -> Verdict:
        buffer, span = self.query.terms.buffer, claim.span
        near = [
            one
            for one in self.busy
            if one.start < span.end + buffer and one.end > span.start - buffer
        ]
        obstacles = Obstacles({self.resource.id: near}, {self.resource.id: self._closed(claim)})
        reasons = find_reasons(self.query, self.resource, span, obstacles)
        if not reasons:
            return None
        overlaps = sorted(
            (one.start, one.end) for one in near if one.start < span.end and one.end > span.start
        )
        # A time that only overlaps breaks no rule.
        if overlaps and all(reason.type in ("event", "hold", "buffer") for reason in reasons):
            named = overlaps[:CONFLICTS_NAMED]
            return SlotTaken([(to_datetime(start), to_datetime(end)) for start, end in named])
        return NotAvailable(reasons)

    def _closed(self, claim: Claim) -> list[tuple[int, int]]:
        most = self.query.terms.max_per_day
        if most is None:
            return []
        days = local_days(*claim.span, self.resource.zone)
        return closed_days({day: self.days.get(day, 0) for day in days}, self.resource.zone, most)

    def _take(self, claim: Claim) -> None:
        start, end = claim.span
        if claim.exclusive:
            self.busy.append(Busy(start, end, "event", None))
        for day in local_days(start, end, self.resource.zone):
            self.days[day] = self.days.get(day, 0) + 1


def only(query: Query, resource_ids: Sequence[uuid.UUID]) -> Query:
    """The same question for some of the resources."""
    chosen = [resource for resource in query.resources if resource.id in resource_ids]
    return replace(query, resources=chosen)
