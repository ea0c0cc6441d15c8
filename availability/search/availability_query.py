"""A search for free time: its parameters, and the resources with their rules."""

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache

from apps_config.models import App
from availability.core.constraints import (
    ConstraintRule,
    combine_with_schedule,
    open_windows,
    parse_constraints,
    without_allowing_rules,
)
from availability.core.explain import Reason
from availability.core.fairness import Turn
from availability.core.intervals import complement
from availability.core.matching import (
    NOTHING_FIXED,
    WHOLE,
    Alternatives,
    FixedChoice,
    Stretch,
    choose,
    find_suited,
    smallest_first,
)
from availability.core.parties import Party, Range, join_ranges, party_rank, suits
from availability.core.slots import ZoneRules, starts_on_grid, starts_rules
from availability.core.visits import Visit
from availability.models import Project
from availability.search.parameters import SlotParameters, is_too_long
from availability.search.queries import (
    ResourceRow,
    StaleCalendar,
    TimeSpan,
    fetch_project_resources,
    fetch_resources,
)
from availability.search.requirements import requirements_for_party
from common.errors import Invalid
from common.messages import Message, find_message
from common.time.durations import DurationError
from common.time.instants import InstantError

MAX_UNITS = 100  # of a resource in one booking: each is a row


@dataclass(frozen=True, slots=True, eq=False)
class SearchResource:
    """A resource as the search needs it. Compares by identity, so that hashing is cheap.

    stale_calendars: its stale connected calendars. is_closed: these leave the resource no free time
    (`App.stale_calendars` is BLOCK). capacity: so many bookings may overlap. longest_buffer: no
    booking of it was made with a longer one. party: how many people it suits, at least and at most.
    """

    id: uuid.UUID
    name: str
    zone: str
    rules: tuple[ConstraintRule, ...]
    stale_calendars: tuple[StaleCalendar, ...] = ()
    is_closed: bool = False
    capacity: int = 1
    longest_buffer: int = 0
    party: tuple[int, int] | None = None

    def without_rules(self) -> "SearchResource":
        """Return a copy without rules: only busy time blocks it."""
        return replace(self, rules=(), is_closed=False)

    def closed_in(self, span: TimeSpan) -> list[tuple[int, int]]:
        return [span] if self.is_closed else []


@lru_cache(maxsize=4096)
def parse_stored_constraints(text: str) -> tuple[ConstraintRule, ...]:
    """Parse the JSON of stored constraints; cached."""
    return parse_constraints(json.loads(text))


@lru_cache(maxsize=4096)
def resource_rules(constraints: str, schedule: str | None) -> tuple[ConstraintRule, ...]:
    """Return a resource's rules, over those of its schedule (both JSON); cached."""
    own = parse_stored_constraints(constraints)
    if schedule is None:
        return own
    return combine_with_schedule(own, parse_stored_constraints(schedule))


def load_resources(app: App, ids: Sequence[uuid.UUID], *, now: datetime) -> list[SearchResource]:
    """Return the app's resources in the order of `ids`; unknown ids are left out."""
    return [_bookable(row, app) for row in fetch_resources(app.id, ids, now=now)]


def load_project_resources(app: App, project: Project, *, now: datetime) -> list[SearchResource]:
    """Return the resources of the app's project, in the project's order."""
    return [_bookable(row, app) for row in fetch_project_resources(app.id, project.id, now=now)]


def _bookable(row: ResourceRow, app: App) -> SearchResource:
    return SearchResource(
        row.id,
        row.name,
        row.zone,
        resource_rules(row.constraints, row.schedule),
        row.stale_calendars,
        bool(row.stale_calendars) and app.stale_calendars == App.BLOCK,
        row.capacity,
        row.longest_buffer,
        None if row.party_min is None or row.party_max is None else (row.party_min, row.party_max),
    )


def project_rules(project: Project) -> tuple[ConstraintRule, ...]:
    """Return the project's own constraints."""
    return parse_stored_constraints(json.dumps(project.availability_constraints))


ExternalBusy = Mapping[
    uuid.UUID, Sequence[TimeSpan]
]  # busy time from external calendars, by resource id


@dataclass(frozen=True)
class AvailabilityQuery:
    """The parameters of a search for free time.

    own: the project's parameters, whose `from` and `to` (minimum notice and booking window) a
    booking must keep. bounds: parameters whose range the request may only narrow (the project's,
    for a widget key); the request's rules then do not move the grid of starts. on_grid: a booking
    must start on the grid (a public caller's). without: ids of events and holds to ignore, such as
    those of a booking being moved. external_busy: busy time that has no rows in the database.
    turns: of the mode roundrobin_fair. alternatives: a slot needs a choice of the resources of one
    of them; `fixed` are among them. visit: a slot has its steps, whose lengths replace `length`.
    quantity: the units of a resource that a booking takes. party_size: the people who come, whom
    its resources have to suit together; the requirements know the party too.
    """

    resources: Sequence[SearchResource]
    terms: SlotParameters
    now: datetime
    project_id: uuid.UUID | None = None
    own: SlotParameters | None = None
    bounds: SlotParameters | None = None
    on_grid: bool = False
    without: Collection[uuid.UUID] = ()
    external_busy: ExternalBusy = field(default_factory=dict)
    turns: Mapping[uuid.UUID, Turn] = field(default_factory=dict)
    alternatives: Alternatives = ()
    visit: Visit | None = None
    fixed: FixedChoice = NOTHING_FIXED
    quantity: int = 1
    party_size: int | None = None

    @cached_property
    def spans(self) -> Mapping[str, TimeSpan]:
        """The range by zone of the resources. Raises Invalid on `from` or `to`."""
        return {zone: self._span(zone) for zone in self._zones}

    def _span(self, zone: str) -> TimeSpan:
        start, end = self._read_span(self.terms, zone)
        if self.bounds:
            return self._intersect_with_bounds(TimeSpan(start, end), self.bounds, zone)
        if end <= start:
            raise Invalid.at("to", "Must be after `from`.")
        if is_too_long(start, end, zone):
            raise Invalid.at("to", "Must be at most 366 days after `from`.")
        return TimeSpan(self.terms.rounded_range_start(start, end, zone), end)

    def _intersect_with_bounds(
        self, asked: TimeSpan, bounds: SlotParameters, zone: str
    ) -> TimeSpan:
        """Return the intersection of the requested range and that of `bounds`; it may be empty."""
        least, most = self._read_span(bounds, zone)
        least = bounds.rounded_range_start(least, most, zone)
        start = min(max(self.terms.rounded_range_start(*asked, zone), least), most)
        return TimeSpan(start, max(start, min(asked.end, most)))

    @cached_property
    def closed_by_request(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """By zone, what the rules of a request with `bounds` close; {} if there are none.

        As rules of each resource they would move the grid of starts, and the slots could not be
        booked. Expanded once for all resources of a zone.
        """
        whole = self.whole_span
        if not self.bounds or not any(self.terms.extra) or whole.start == whole.end:
            return {}
        return {
            zone: complement(open_windows(self.terms.extra, zone, *whole), *whole)
            for zone in self.spans
        }

    @property
    def whole_span(self) -> TimeSpan:
        """The range of all zones together. Raises Invalid as `spans`, ValueError without
        resources.
        """
        spans = self.spans.values()
        return TimeSpan(min(span.start for span in spans), max(span.end for span in spans))

    @cached_property
    def bookable_spans(self) -> Mapping[str, TimeSpan]:
        """The project's bookable range by zone, not rounded; {} without a project.

        From the minimum notice (0: none) to the end of the booking window. Raises Invalid on
        `from`.
        """
        if self.own is None:
            return {}
        spans = {zone: self._read_span(self.own, zone) for zone in self._zones}
        if self.own.earliest == "now":
            return {zone: span._replace(start=0) for zone, span in spans.items()}
        return spans

    @cached_property
    def is_common_start(self) -> Callable[[int], bool]:
        """Whether the grid of all resources together has the start: one answer for all of them."""
        rules = [self.start_rules(each) for each in self.resources]
        increment = self.terms.increment or 1
        return lru_cache(maxsize=None)(lambda start: starts_on_grid(rules, start, increment))

    @property
    def _zones(self) -> set[str]:
        return {resource.zone for resource in self.resources}

    def _read_span(self, terms: SlotParameters, zone: str) -> TimeSpan:
        try:
            return TimeSpan(*terms.span(self.now, zone))
        except (DurationError, InstantError) as error:
            raise Invalid({"from": [find_message(error)]}) from error

    @property
    def takes_several_resources(self) -> bool:
        """Whether a booking takes several resources at once, one unit of each."""
        return bool(self.alternatives or self.visit) or self.terms.mode == "mutual"

    def unfitness_of(self, resource: SearchResource) -> Reason | None:
        """Why the resource can take no such booking at any time; None if it can."""
        if self.quantity > resource.capacity:
            return too_small(resource.capacity)
        if not self.party_size or not resource.party:
            return None
        if self.alternatives or self.visit:
            return not_for_party(resource.party) if resource.id in self._unsuited_ids else None
        suited = self._joined_range if self.takes_several_resources else resource.party
        return None if suits(self.party_size, [suited]) else not_for_party(suited)

    @cached_property
    def _unsuited_ids(self) -> set[uuid.UUID]:
        """The resources that no list of requirements can take for the party."""
        lists = self.visit.requirements if self.visit else self.alternatives
        named = {key for one in lists for requirement in one for key in requirement.ids}
        return named.difference(*map(find_suited, lists))

    @cached_property
    def _joined_range(self) -> Range:
        return join_ranges(each.party for each in self.resources if each.party)

    def rule_lists(self, resource: SearchResource) -> tuple[tuple[ConstraintRule, ...], ...]:
        return (*self.grid_rules(resource), *self.terms.extra)

    def grid_rules(self, resource: SearchResource) -> tuple[tuple[ConstraintRule, ...], ...]:
        """The rules that a booking is checked by, without those of the request.

        With windows for start and end, the time between need not be open.
        """
        if self.terms.windows:
            lists = (resource.rules, self.terms.constraints)
            return tuple(without_allowing_rules(rules) for rules in lists)
        return (resource.rules, self.terms.constraints)

    def start_rules(self, resource: SearchResource) -> ZoneRules:
        """The rules from whose openings the grid of starts counts."""
        return starts_rules(self.grid_rules(resource), self.terms.windows), resource.zone


def too_small(capacity: int) -> Reason:
    """The reason why a resource never takes a booking of more units."""
    text = (
        Message("Has only one place.")
        if capacity == 1
        else Message("Has only %(count)s places.", count=capacity)
    )
    return Reason("capacity", "resource", (), None, text)


def not_for_party(party: Range) -> Reason:
    """The reason why a resource, or several together, take no booking of a party."""
    text = Message("Is for %(least)s to %(most)s people.", least=party[0], most=party[1])
    return Reason("limit", "resource", (), None, text)


def for_party(query: AvailabilityQuery) -> AvailabilityQuery:
    """Return the query with the resources for small parties first, if it is for a party. Raises
    Invalid as `requirements_for_party`.
    """
    if not query.party_size:
        return query
    ranges = {each.id: each.party for each in query.resources if each.party}
    query = with_party(query, Party(query.party_size, ranges))
    visit = query.visit
    if visit:
        visit = visit.with_requirements([smallest_first(each) for each in visit.requirements])
    return replace(
        query,
        resources=sorted(query.resources, key=lambda each: party_rank(each.party)),
        alternatives=[smallest_first(each) for each in query.alternatives],
        visit=visit,
    )


def with_party(query: AvailabilityQuery, party: Party | None) -> AvailabilityQuery:
    """Return the query with its requirements for the party; None: any resources will do. Raises
    Invalid as `requirements_for_party`.
    """
    visit = query.visit
    if visit:
        visit = visit.with_requirements(requirements_for_party(visit.requirements, party))
    alternatives = requirements_for_party(query.alternatives, party)
    return replace(query, alternatives=alternatives, visit=visit)


def party_limits(query: AvailabilityQuery) -> Range | None:
    """Return how many people a booking may be for at least and at most; None: any number."""
    ranges = {each.id: each.party for each in query.resources if each.party}
    if not ranges:
        return None
    possible = [*ranges.values()]
    if query.alternatives:
        possible = [
            join_ranges(
                each
                for requirement in requirements
                if (own := [ranges[key] for key in requirement.ids if key in ranges])
                for each in [(min(own)[0], max(most for _, most in own))] * requirement.number
            )
            for requirements in query.alternatives
        ]
    elif query.takes_several_resources and not query.visit:
        possible = [join_ranges(possible)]
    return min(least for least, _ in possible), max(most for _, most in possible)


def takes_party(query: AvailabilityQuery, size: int) -> bool:
    """Return whether some choice of the query's resources suits a party. Raises Invalid as
    `requirements_for_party`.
    """
    query = for_party(replace(query, party_size=size))
    if query.visit:
        return all(_has_choice([each]) for each in query.visit.requirements)
    if query.alternatives:
        return _has_choice(query.alternatives)
    if query.takes_several_resources:
        return suits(size, [each.party for each in query.resources if each.party])
    return any(each.party is None or suits(size, [each.party]) for each in query.resources)


def _has_choice(alternatives: Alternatives) -> bool:
    """Whether one of the alternatives can be met while all resources are free."""
    needed = [each for requirements in alternatives for each in requirements]
    everybody = {key for each in needed for key in each.ids}
    return choose(alternatives, {each.stretch: everybody for each in needed}) is not None


def is_leading(alternatives: Alternatives, resource_id: uuid.UUID) -> bool:
    """Whether the resource may meet a first requirement: only these keep to the grid of starts."""
    return any(resource_id in requirements[0].ids for requirements in alternatives)


def query_of_stretch(query: AvailabilityQuery, stretch: Stretch) -> AvailabilityQuery:
    """Return the query for the resources that are needed for this stretch of a booking.

    A part of a booking keeps the rules of its resource, not those of the project. The pace is for
    what begins with the booking.
    """
    if stretch == WHOLE:
        return query
    pace = None if stretch.offset else query.terms.pace
    if stretch.is_step:
        terms = replace(query.terms, length=None, lengths=(), pace=pace)
        return replace(query, terms=terms, on_grid=False, visit=None, party_size=None)
    terms = replace(
        query.terms,
        length=None,
        lengths=(),
        include_past=True,
        limits=(),
        constraints=(),
        extra=((),),
        pace=pace,
    )
    return replace(query, terms=terms, own=None, on_grid=False, alternatives=(), party_size=None)
