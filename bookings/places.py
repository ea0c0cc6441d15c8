"""Where a booking goes: a calendar that is named, or whichever resource of a project is free."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property

from apps_config.models import App
from availability.enforcement import enforced_query, taken_meanwhile, without_rules
from availability.models import Calendar, Hold, Project
from availability.placement import Claim
from availability.search import Elsewhere, Query, load_project_resources, load_resources
from availability.terms import MODES


class Place:
    """The calendar of a booking (None: one of the project's resources), and the rules there.

    The rows of the rules are read when they are first asked for: a booking that nothing is
    enforced for does not need them.
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
    ) -> None:
        """`others`: the further resources of a mutual booking that stands already. `holds`: what
        keeps the time for the booking, a row for each resource."""
        self.app = app
        self.project = project
        self.calendar = calendar
        self.now = now
        self.others = others
        self.holds = holds
        self.elsewhere: Elsewhere = {}  # what other calendars said when they were asked

    @cached_property
    def rules(self) -> Query:
        """The project's (or the resource's) own values, for the resources that come in question."""
        if self.calendar is None:
            resources = load_project_resources(self.app, self.project, now=self.now)
        else:
            ids = [self.calendar.resource_id, *self.others]
            resources = load_resources(self.app, ids, now=self.now)
        return enforced_query(self.project, resources, now=self.now)

    @property
    def mode(self) -> str:
        """How one of several resources is chosen, or that all are."""
        if self.calendar is not None:
            return "mutual" if self.others else "exclusive"
        return self.project.availability.get("mode") or MODES[0]

    @property
    def held_ids(self) -> list[uuid.UUID]:
        """The resources that the hold decides for where none is named."""
        held = [row.resource_id for row in self.holds]
        return held if self.mode == "mutual" else held[:1]

    @property
    def _held_by_these_rules(self) -> bool:
        """Whether the hold was made by the rules of this very project, or of none as here."""
        project_id = self.project.id if self.project else None
        return bool(self.holds) and self.holds[0].project_id == project_id

    @property
    def pending_blocks(self) -> bool:
        return bool(self.project and self.project.settings.get("pending_blocks"))

    @property
    def asks_outside(self) -> bool:
        """Whether other calendars are asked before time is taken here."""
        return bool(self.project and self.project.settings.get("check_external"))

    def choices(self, *, enforced: bool) -> Query:
        """The resources to choose from, with the rules where they are enforced."""
        return self.rules if enforced else self._without_rules

    @cached_property
    def _without_rules(self) -> Query:
        return without_rules(self.rules)

    @cached_property
    def meanwhile(self) -> Query:
        """The rules for a booking that stood by and begins to block."""
        return taken_meanwhile(self.rules)

    def query_of(self, claim: Claim) -> Query:
        """What the claim is judged by: its rules, else only what blocks."""
        return claim.rules or self._without_rules

    def claim(
        self,
        start: datetime,
        end: datetime,
        *,
        blocks: bool,
        allow_double_bookings: bool,
        rules: Query | None,
    ) -> Claim:
        """What a booking here wants; `rules` where they are enforced."""
        return Claim(
            start=start,
            end=end,
            blocks=blocks,
            exclusive=not allow_double_bookings,
            now=self.now,
            holds=[row.id for row in self.holds],
            is_in_time=self._held_by_these_rules,
            rules=rules,
            elsewhere=self.elsewhere,
            ignore_all_day=bool(
                self.project and self.project.availability.get("ignore_all_day_events")
            ),
        )
