"""The target of a booking: a named calendar, or a free resource of a project."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

from apps_config.models import App
from availability.core.busy_items import Buffers
from availability.core.explain import Reason
from availability.core.matching import (
    NOTHING_FIXED,
    Alternatives,
    Chosen,
    FixedChoice,
    FreeIds,
    choose,
)
from availability.core.parties import Party
from availability.core.visits import Visit
from availability.models import Calendar, Event, Hold, Project, ProjectResource
from availability.reserve.events import NotAvailable, TimeRequest
from availability.reserve.policies import (
    conflicts_only_query,
    policy_query,
    project_buffers,
    public_policy_query,
    without_booking_terms,
    without_rules,
)
from availability.search.availability_query import (
    AvailabilityQuery,
    ExternalBusy,
    for_party,
    load_project_resources,
    load_resources,
    with_party,
)
from availability.search.fair_turns import (
    has_fair_requirement,
    resources_by_turn,
    with_costs,
    with_fair_turns,
)
from availability.search.parameters import FAIR, MODE_ALIASES, MODES
from availability.search.queries import fetch_parties, fetch_project_resource_zones
from availability.search.requirements import (
    load_requirements,
    requirements_for_party,
    resource_ids_of_requirements,
    stretches_of,
)
from availability.search.visits import fixed_in_visit, load_visit, requirements_of, visit_with_costs
from bookings.public_booking_checks import PublicRequest
from common.db.sql import to_uuid

NOT_OFFERED = Reason("limit", "project", (), None, "The project no longer offers these resources.")


class BookingTarget:
    """The calendar of a booking (None: one of the project's resources) and the rules there.

    The rules are queried on first use: a booking without enforced rules does not need them.
    """

    def __init__(
        self,
        *,
        app: App,
        project: Project | None,
        calendar: Calendar | None,
        now: datetime,
        others: Sequence[uuid.UUID] = (),
        holds: Sequence[Hold] = (),
        is_public: bool = False,
        is_group: bool = False,
        fixed: FixedChoice = NOTHING_FIXED,
        named: Calendar | None = None,
        requires: Any = None,
        steps: Mapping[str, Any] | None = None,
        quantity: int = 1,
        party_size: int | None = None,
        is_new: bool = True,
    ) -> None:
        """Store the target.

        others: the further resources of an existing mutual booking. holds: the holds that reserve
        the time for the booking, one row per resource. is_public: a public caller or a customer
        books or moves. is_group: the booking has seats; length, notice and booking window of the
        project are those of its customers. fixed: the resources that are named of those that the
        project requires; named: the calendar that is named among theirs. requires: the booking's
        own requirements, as stored, instead of the project's. steps: the same of a visit: its
        `steps` and `order`. quantity: the units that it takes of its resource. party_size: the
        people who come. is_new: false for a stored booking, whose requirements may name resources
        that are gone.
        """
        self.app = app
        self.project = project
        self.calendar = calendar
        self.now = now
        self.others = others
        self.holds = holds
        self.is_public = is_public
        self.is_group = is_group
        self.fixed = fixed
        self.named = named
        self.requires = requires
        self.steps = steps
        self.quantity = quantity
        self.party_size = party_size
        self.is_new = is_new
        self.external_busy: ExternalBusy = {}  # busy times from the live check
        # Whose limits count what is made; None: the caller has no limits.
        self.public_request: PublicRequest | None = None
        self._buffered: list[tuple[AvailabilityQuery, AvailabilityQuery]] = []

    def at(
        self,
        calendar: Calendar | None,
        *,
        others: Sequence[uuid.UUID] | None = None,
        fixed: FixedChoice = NOTHING_FIXED,
    ) -> "BookingTarget":
        """The target of the same booking in another calendar; None: to choose its resources anew.

        others: as in the constructor; None: the same.
        """
        return BookingTarget(
            app=self.app,
            project=self.project,
            calendar=calendar,
            now=self.now,
            others=self.others if others is None else others,
            is_public=self.is_public,
            is_group=self.is_group,
            fixed=fixed,
            requires=self.requires,
            steps=self.steps,
            quantity=self.quantity,
            party_size=self.party_size,
            is_new=self.is_new,
        )

    @property
    def has_requirements(self) -> bool:
        """Whether the booking's resources are chosen by requirements."""
        if self.is_visit:
            return False
        return bool(self.requires or (self.project and self.project.requires))

    @property
    def is_visit(self) -> bool:
        """Whether the booking has steps."""
        if self.steps:
            return True
        return bool(self.project and self.project.steps and not self.requires)

    @cached_property
    def policies(self) -> AvailabilityQuery:
        """The rules of the project, or the defaults, without resources."""
        query_of = public_policy_query if self.is_public else policy_query
        query = replace(
            query_of(self.project, (), now=self.now),
            quantity=self.quantity,
            party_size=self.party_size,
        )
        if self.requires:
            own = load_requirements(self.app.id, self.requires, is_new=self.is_new)
            query = replace(query, alternatives=own, visit=None)
        if self.steps:
            steps, order = self.steps["steps"], self.steps["order"]
            own_visit = load_visit(self.app.id, steps, order, is_new=self.is_new)
            query = replace(query, alternatives=(), visit=own_visit)
        if self.party_size and (query.alternatives or query.visit):
            lists = requirements_of(query.visit) or query.alternatives
            ranges = fetch_parties(self.app.id, resource_ids_of_requirements(lists))
            query = with_party(query, Party(self.party_size, ranges))
        return without_booking_terms(query) if self.is_group else query

    @cached_property
    def rules(self) -> AvailabilityQuery:
        """The rules of the project and the resources, for all candidate resources."""
        if self.alternatives:
            query = self.rules_of(resource_ids_of_requirements(self.alternatives))
            return replace(query, fixed=self.fixed)
        if self.visit:
            query = self.rules_of(resource_ids_of_requirements(requirements_of(self.visit)))
            return replace(query, fixed=fixed_in_visit(self.visit, self.fixed))
        if self.calendar or not self.project:
            ids = dict.fromkeys([self.named_calendar.resource_id, *self.others])
            return self.rules_of(list(ids))
        resources = load_project_resources(self.app, self.project, now=self.now)
        query = with_fair_turns(replace(self.policies, resources=resources), self.project)
        return for_party(query)

    def rules_of(self, resource_ids: Sequence[uuid.UUID]) -> AvailabilityQuery:
        """The rules for these resources of the app, in this order. One query."""
        resources = load_resources(self.app, resource_ids, now=self.now)
        return replace(self.policies, resources=resources)

    @cached_property
    def project_resource_zones(self) -> list[tuple[str, str]]:
        """The id, as text, and the time zone of each possible resource, in the project's order.

        Much cheaper than the resources with their rules, of which a booking needs few.
        """
        if self.alternatives or self.visit:
            return [(str(each.id), each.zone) for each in self.rules.resources]
        if self.project is None:
            raise ValueError("no project is named")
        return fetch_project_resource_zones(self.app.id, self.project.id)

    @property
    def project_resource_ids(self) -> list[uuid.UUID]:
        return [to_uuid(text) for text, _ in self.project_resource_zones]

    @cached_property
    def alternatives(self) -> Alternatives:
        """What a new booking requires; () for the calendars of an existing one."""
        return self.policies.alternatives if self.has_requirements and not self.calendar else ()

    @cached_property
    def visit(self) -> Visit | None:
        """The steps of a new booking; None for the calendars of an existing one."""
        return self.policies.visit if self.is_visit and not self.calendar else None

    def query_of_visit(self, *, enforced: bool) -> AvailabilityQuery:
        """The query for the visit, with the costs of its requirements as they are now."""
        query = self.candidate_query(enforced=enforced)
        if query.visit is None:
            raise ValueError("the booking is no visit")
        costed = visit_with_costs(query.visit, self.project, self.fixed, now=self.now)
        return replace(query, visit=costed)

    def choose(self, alternatives: Alternatives, free: FreeIds) -> list[Chosen] | None:
        """Return different free resources for its requirements, as the query to check it has them;
        None if there is no such choice.

        In the mode fair it depends on the project's bookings, as they are now.
        """
        costed = with_costs(alternatives, self.project, self.fixed, now=self.now)
        return choose(costed, free, self.fixed)

    def choose_held(self) -> list[Chosen] | None:
        """Return the held resources with the requirements that they are held for; None if they are
        not what the booking requires, for a party of any size.
        """
        held = {row.resource_id for row in self.holds}
        named: dict[str, tuple[uuid.UUID, ...]] = {}
        for row in self.holds:
            if row.requirement is not None:
                named[row.requirement] = (*named.get(row.requirement, ()), row.resource_id)
        alternatives = requirements_for_party(self.alternatives, None)
        free = dict.fromkeys(stretches_of(alternatives), held)
        chosen = choose(alternatives, free, FixedChoice({**named, **self.fixed.named}))
        return chosen if chosen and {each.id for each in chosen} == held else None

    @property
    def is_paced(self) -> bool:
        """Whether the project limits how many bookings start within a time."""
        return self.project is not None and self.policies.terms.pace is not None

    @property
    def is_by_turn(self) -> bool:
        """Whether the booking goes to the resource whose turn it is."""
        if self.calendar is not None or self.holds:
            return False
        required = requirements_of(self.visit) if self.visit else self.alternatives
        return self.mode == FAIR or (bool(required) and has_fair_requirement(required))

    def resources_by_turn(self) -> Sequence[uuid.UUID]:
        """The ids of the project's resources that get bookings by turn, the next first."""
        if self.project is None:
            raise ValueError("no project is named")
        return resources_by_turn(self.project, self.policies.terms, now=self.now)

    @property
    def mode(self) -> str:
        """How resources are chosen: exclusive (one), mutual (all), or the project's mode."""
        if self.calendar is not None:
            return "mutual" if self.others else "exclusive"
        if self.has_requirements or self.is_visit:
            return "mutual"
        mode = (self.project and self.project.availability.get("mode")) or MODES[0]
        return MODE_ALIASES.get(mode, mode)

    @property
    def named_calendar(self) -> Calendar:
        """The calendar. Raises ValueError if none is named."""
        if self.calendar is None:
            raise ValueError("no calendar is named")
        return self.calendar

    @property
    def held_resource_ids(self) -> list[uuid.UUID]:
        """The resources to book by the hold if no calendar is named."""
        held = [row.resource_id for row in self.holds]
        return held if self.mode == "mutual" else held[:1]

    @property
    def _hold_is_of_same_project(self) -> bool:
        """Whether the hold was made for the same project, or equally for none.

        The owner's holds may break rules, so they do not count for a public caller.
        """
        if not self.holds or (self.is_public and not self.holds[0].is_public):
            return False
        return self.holds[0].project_id == (self.project.id if self.project else None)

    def check_is_offered(self) -> None:
        """Raise NotAvailable unless the project still offers the resources, in mode mutual all of
        its resources.
        """
        if self.project is None:
            return
        rows = ProjectResource.objects.filter(
            project=self.project, project__deleted_at=None, resource__deleted_at=None
        )
        offered = set(rows.values_list("resource", flat=True))
        ids = {self.named_calendar.resource_id, *self.others}
        if not ids <= offered or (self.project.is_mutual and ids != offered):
            raise NotAvailable([NOT_OFFERED])

    @property
    def allows_double_bookings(self) -> bool:
        return bool(self.project and self.project.settings.get("allow_double_bookings"))

    @property
    def pending_blocks(self) -> bool:
        return bool(self.project and self.project.settings.get("pending_blocks"))

    @property
    def checks_external(self) -> bool:
        """Whether the project wants a live check of connected calendars before time is reserved."""
        return bool(self.project and self.project.settings.get("check_external"))

    def candidate_query(self, *, enforced: bool) -> AvailabilityQuery:
        """The candidate resources, with their rules if `enforced`."""
        return self.rules if enforced else self._query_without_rules

    @cached_property
    def _query_without_rules(self) -> AvailabilityQuery:
        return without_rules(self.rules)

    @cached_property
    def conflict_rules(self) -> AvailabilityQuery:
        """The rules for an existing booking that begins to block: conflicts only."""
        return conflicts_only_query(self.rules)

    def query_of(self, time_request: TimeRequest) -> AvailabilityQuery:
        """The query to check the time request with: its rules, else only conflicts."""
        return time_request.rules or self._query_without_rules

    @cached_property
    def buffers(self) -> Buffers | None:
        """The buffers that a new booking is made with; None without a project."""
        return project_buffers(self.project) if self.project else None

    @staticmethod
    def buffers_of(event: Event) -> Buffers | None:
        """The buffers that the booking of this event was made with; None if it has none of its
        own.
        """
        if event.buffer_before is None or event.buffer_after is None:
            return None
        return Buffers(event.buffer_before, event.buffer_after)

    def with_buffers(self, rules: AvailabilityQuery, buffers: Buffers | None) -> AvailabilityQuery:
        """The rules with the buffers of a booking, if it has its own; the same object each time, so
        that rows are read once for all bookings of a series.
        """
        if buffers is None or rules.terms.ignores_buffers or rules.terms.buffers == buffers:
            return rules
        for known_rules, buffered in self._buffered:
            if known_rules is rules and buffered.terms.buffers == buffers:
                return buffered
        buffered = replace(rules, terms=replace(rules.terms, buffers=buffers))
        self._buffered.append((rules, buffered))
        return buffered

    def time_request(
        self,
        start: datetime,
        end: datetime,
        *,
        blocks: bool,
        allow_double_bookings: bool,
        rules: AvailabilityQuery | None,
        event: Event | None = None,
    ) -> TimeRequest:
        """Return the time request of a booking at this target.

        rules: if they are enforced. event: of an existing booking, which keeps its buffers.
        """
        buffers = self.buffers_of(event) if event else self.buffers
        return TimeRequest(
            start=start,
            end=end,
            blocks=blocks,
            exclusive=not allow_double_bookings,
            now=self.now,
            holds=[row.id for row in self.holds],
            is_in_time=self._hold_is_of_same_project,
            rules=rules and self.with_buffers(rules, buffers),
            buffers=buffers,
            external_busy=self.external_busy,
            quantity=self.quantity,
            ignore_all_day=bool(
                self.project and self.project.availability.get("ignore_all_day_events")
            ),
        )
