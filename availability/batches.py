"""Judge many claims at once: the rows are read once, not for each claim.

A claim that can be had stands in the way of those after it, as its event will.
"""

import uuid
from collections.abc import Collection, Sequence
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


def find_refusal(
    claims: Sequence[tuple[Claim, Query]], *, without: Collection[uuid.UUID]
) -> tuple[int, SlotTaken | NotAvailable] | None:
    """The number of the first claim that can't have the time of every resource of its query, with
    the reason; None where each can.

    Unlike those of `judge_claims` the claims may be of several kinds. `without`: the events whose
    time they are to be. Two queries for each different query and kind of claim.
    """
    kinds: dict[tuple[int, bool, bool], list[tuple[Claim, Query]]] = {}
    for claim, query in claims:
        kinds.setdefault(_kind_of(claim, query), []).append((claim, query))
    judges = {kind: _judges_of(alike, without) for kind, alike in kinds.items()}
    everyone = [judge for found in judges.values() for judge in found]
    for number, (claim, query) in enumerate(claims):
        for judge in judges[_kind_of(claim, query)]:
            if verdict := judge.judge(claim):
                return number, verdict
        if claim.blocks:
            taken = {resource.id for resource in query.resources}
            for judge in everyone:
                if judge.resource.id in taken:
                    judge.take(claim, query.project_id)
    return None


def _kind_of(claim: Claim, query: Query) -> tuple[int, bool, bool]:
    return id(query), claim.blocks, claim.exclusive


def _judges_of(
    alike: Sequence[tuple[Claim, Query]], without: Collection[uuid.UUID]
) -> list["_Judge"]:
    """One for each resource; none where nothing can stand in the way of the claims."""
    claims, query = [claim for claim, _ in alike], alike[0][1]
    if not claims[0].rules and not claims[0].is_guarded:
        return []
    busy, counts = _read_rows(claims, query, without)
    return [
        _Judge(query, resource, busy.get(resource.id, []), counts.get(resource.id, {}))
        for resource in query.resources
    ]


def _read_rows(
    claims: Sequence[Claim], candidates: Query, without: Collection[uuid.UUID] = ()
) -> tuple[dict[uuid.UUID, list[Busy]], DayCounts]:
    terms, first = candidates.terms, claims[0]
    whole = Span(min(claim.span.start for claim in claims), max(claim.span.end for claim in claims))
    busy: dict[uuid.UUID, list[Busy]] = {}
    if first.exclusive:
        busy = read_busy_events(
            [resource.id for resource in candidates.resources],
            Span(whole.start - terms.buffer, whole.end + terms.buffer),
            now=candidates.now,
            ignore_all_day=terms.ignore_all_day_events,
            without=without,
        )
        add_elsewhere(busy, replace(candidates, elsewhere=first.elsewhere))
    if terms.max_per_day is None or candidates.project_id is None:
        return busy, {}
    zones = {resource.id: resource.zone for resource in candidates.resources}
    return busy, read_day_counts(
        zones, whole, project_id=candidates.project_id, now=candidates.now, without=without
    )


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
            verdict = self.judge(claim)
            verdicts.append(verdict)
            if verdict is None and claim.blocks:
                self.take(claim, self.query.project_id)
        return verdicts

    def judge(self, claim: Claim) -> Verdict:
        buffer, span = self.query.terms.buffer, claim.span
        near = [
            one
            for one in (self.busy if claim.exclusive else ())
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

    def take(self, claim: Claim, project_id: uuid.UUID | None) -> None:
        """Have a claim that can be had, of a booking through that project, stand in the way."""
        start, end = claim.span
        self.busy.append(Busy(start, end, "event", None))
        if project_id != self.query.project_id:
            return
        for day in local_days(start, end, self.resource.zone):
            self.days[day] = self.days.get(day, 0) + 1


def only(query: Query, resource_ids: Sequence[uuid.UUID]) -> Query:
    """The same question for some of the resources."""
    chosen = [resource for resource in query.resources if resource.id in resource_ids]
    return replace(query, resources=chosen)
