"""What a query for a visit offers can be booked by the same body, and nothing else.

Random steps with requirements, gaps and shared resources, in the given order or any, of a project
or of the request; over the API and a real database, against a slow model that tries every
arrangement in steps of a quarter of an hour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise, permutations, product
from typing import Any

import pytest
import time_machine
from django.db import transaction
from hypothesis import event, given
from hypothesis import strategies as st

from availability.models import Event
from tests.bookings.offer_model import Offer, minute_of, to_text
from tests.bookings.random_projects import thorough
from tests.bookings.test_required_is_bookable import KINDS, NOW, RULES, RememberingDiary, events_of
from tests.world import Tenant

pytestmark = pytest.mark.both_databases

QUARTER = 15
FIRST, LAST = NOW // 60, NOW // 60 + 6 * 60
GAPS = ((0, 0), (0, 30), (15, 45), (30, 30))
CUSTOMER = {"name": "Marty McFly", "email": "marty@example.com"}


@dataclass
class Step:
    """A step, its times in minutes. pools: the resources that meet each of its requirements."""

    name: str
    length: int
    gap: tuple[int, int]
    pools: Sequence[Sequence[str]]
    same_as: str | None


Arrangement = Mapping[str, tuple[int, tuple[str, ...]]]  # by step, its start and resources


class World:
    """Resources with their diaries, steps, and the body that asks for them."""

    def __init__(self, tenant: Tenant, draw: Any) -> None:
        self.tenant, self.draw = tenant, draw
        self.kind = draw(st.sampled_from(KINDS), label="kind")
        self.diaries: dict[str, RememberingDiary] = {}
        self.known: dict[tuple[str, int, bool], list[tuple[str, ...]]] = {}
        self.starts_on_grid = cache(self._starts_on_grid)
        for number in range(draw(st.integers(2, 3), label="resources")):
            self._make_resource(f"R{number}")
        self.is_ordered = draw(st.booleans(), label="in the given order")
        self.steps: list[Step] = []
        given_steps = [self._draw_step(number) for number in range(draw(st.integers(2, 4)))]
        sent = {"steps": given_steps, "order": "given" if self.is_ordered else "any"}
        rules: list[Any] = []
        if self.kind == "sent alone":
            self.body: dict[str, Any] = sent
        else:
            rules = draw(RULES, label="rules of the project")
            terms = {"timeslot_increments": "30 mins", "from": "now", "to": "6 hours"}
            made = {"name": "Visit", "availability": terms, "availability_constraints": rules}
            is_own = self.kind == "project"
            own = sent if is_own else {"resources": list(self.diaries)}
            project = tenant.post("/projects", made | own).data["id"]
            self.body = {"project_id": project} | ({} if is_own else sent)
        self.offer = Offer(
            now=NOW,
            rules=rules,
            earliest="now",
            latest="6 hours",
            length=QUARTER,  # of any: it only turns the grid on
            buffers=(0, 0),
            ignores_days=False,
            limits={},
            increment=30,
        )

    def _make_resource(self, name: str) -> None:
        rules = self.draw(RULES, label="rules of a resource")
        capacity = self.draw(st.sampled_from((1, 1, 2)), label="capacity")
        made = self.tenant.make_resource(name, availability_constraints=rules, capacity=capacity)
        diary = self.diaries[made["id"]] = RememberingDiary("UTC", rules, capacity)
        calendar = made["calendars"][0]["id"]
        spans = st.tuples(st.sampled_from(range(0, 300, 15)), st.sampled_from((15, 60)))
        for start, length in self.draw(st.lists(spans, max_size=3), label="busy"):
            span = FIRST + start, FIRST + start + length
            if self.draw(st.booleans(), label="is an event"):
                self.tenant.make_event(calendar, *map(to_text, span))
                diary.busy.append(span)
            elif (
                self.tenant.book(
                    calendar_id=calendar, start=to_text(span[0]), end=to_text(span[1])
                ).status
                == 201
            ):
                diary.taken.append((*span, None, None))

    def _draw_step(self, number: int) -> dict[str, Any]:
        ids = st.lists(st.sampled_from(list(self.diaries)), min_size=1, unique=True)
        pools = [self.draw(ids) for _ in range(self.draw(st.sampled_from((1, 1, 2))))]
        length = self.draw(st.sampled_from((15, 30, 60)), label="length")
        gap = self.draw(st.sampled_from(GAPS), label="gap")
        earlier = [None, None, *(step.name for step in self.steps)]
        same_as = self.draw(st.sampled_from(earlier), label="same as")
        self.steps.append(Step(f"step {number}", length, gap, pools, same_as))
        given: dict[str, Any] = {"name": f"step {number}", "length": f"{length} mins"}
        given["gap"] = {"min": f"{gap[0]} mins", "max": f"{gap[1]} mins"}
        if same_as:
            given["same_as"] = same_as
        mode = self.draw(st.sampled_from(("prioritized", "random", "fair")), label="mode")
        names = [f"{number}-{position}" for position in range(len(pools))]
        pairs = zip(names, pools, strict=True)
        needs = [{"name": name, "any_of": pool, "mode": mode} for name, pool in pairs]
        alone = len(pools) == 1 and mode == "prioritized"
        return given | ({"resources": pools[0]} if alone else {"requires": needs})

    # --- The model --------------------------------------------------------------------------------
    def is_free(self, resource_id: str, start: int, end: int, *, with_rules: bool) -> bool:
        diary = self.diaries[resource_id]
        if not self.offer.has_room(diary, start, end):
            return False
        return not with_rules or self.offer.is_allowed(diary, start, end)

    def choices(self, step: Step, start: int, *, with_rules: bool) -> list[tuple[str, ...]]:
        """All ways to meet the requirements of a step that starts then."""
        key = step.name, start, with_rules
        if key not in self.known:
            span = start, start + step.length
            free = [
                [each for each in pool if self.is_free(each, *span, with_rules=with_rules)]
                for pool in step.pools
            ]
            self.known[key] = [each for each in product(*free) if len(set(each)) == len(each)]
        return self.known[key]

    def is_possible(
        self, start: int, end: int | None = None, *, on_grid: bool = False, with_rules: bool = True
    ) -> bool:
        """Whether there is an arrangement from `start`, to `end` if one is named.

        on_grid: a resource of the first step has a slot then.
        """
        orders = [self.steps] if self.is_ordered else permutations(self.steps)
        return any(
            self._can_follow(order, [start], {}, end, with_rules)
            for order in orders
            if not on_grid or self._has_slot(order[0], start)
        )

    def _can_follow(
        self,
        steps: Sequence[Step],
        starts: Sequence[int],
        shared: Mapping[str, str],
        last: int | None,
        with_rules: bool,
    ) -> bool:
        """shared: by step, its first resource, which those of its group have too."""
        if not steps:
            return True
        step, *rest = steps
        for start in starts:
            end = start + step.length
            if not rest and last not in (None, end):
                continue
            after = range(end + rest[0].gap[0], end + rest[0].gap[1] + 1, QUARTER) if rest else ()
            firsts = {each[0] for each in self.choices(step, start, with_rules=with_rules)}
            for first in firsts & {shared.get(self.group_of(step), first) for first in firsts}:
                known = {**shared, self.group_of(step): first}
                if self._can_follow(rest, after, known, last, with_rules):
                    return True
        return False

    def group_of(self, step: Step) -> str:
        """The name of the step that all with the same resource refer to in the end."""
        by_name = {each.name: each for each in self.steps}
        while step.same_as:
            step = by_name[step.same_as]
        return step.name

    def _has_slot(self, step: Step, start: int) -> bool:
        return any(
            self.is_free(each, start, start + step.length, with_rules=True)
            and self.starts_on_grid(each, start)
            for each in step.pools[0]
        )

    def _starts_on_grid(self, resource_id: str, start: int) -> bool:
        return self.offer.starts_on_grid([self.diaries[resource_id]], start)

    def check_arrangement(self, arrangement: Arrangement, *, with_rules: bool = True) -> None:
        by_name = {step.name: step for step in self.steps}
        in_order = sorted(arrangement, key=lambda name: arrangement[name][0])
        assert sorted(in_order) == sorted(by_name)
        assert not self.is_ordered or in_order == list(by_name)
        for before, after in pairwise(in_order):
            end = arrangement[before][0] + by_name[before].length
            least, most = by_name[after].gap
            assert least <= arrangement[after][0] - end <= most
        shared: dict[str, set[str]] = {}
        for name, (start, ids) in arrangement.items():
            assert ids in self.choices(by_name[name], start, with_rules=with_rules)
            shared.setdefault(self.group_of(by_name[name]), set()).add(ids[0])
        assert all(len(ids) == 1 for ids in shared.values())

    # --- The API ----------------------------------------------------------------------------------
    def read_offered(self) -> list[dict[str, Any]]:
        query = dict(self.body)
        if self.kind == "sent alone":
            query |= {"from": "now", "to": "6 hours", "timeslot_increments": "30 mins"}
        return self.tenant.post("/availability", query).data

    def try_booking(self, start: int, end: int) -> tuple[int, Arrangement]:
        """The status, and the steps of the booking, which is taken back. What is bookable can be
        held."""
        body = {**self.body, "start": to_text(start), "end": to_text(end)}
        named = {**body, "what": "Visit", "customer": CUSTOMER}
        rows: list[Event] = []
        with transaction.atomic():
            answer = self.tenant.post("/bookings", named)
            assert answer.status in (201, 409), answer.json
            if answer.status == 201:
                found = events_of(answer.data["id"]).exclude(requirement=None)
                rows = list(found.order_by("requirement"))
            transaction.set_rollback(True)
        with transaction.atomic():
            held = self.tenant.post("/bookings/reserve", body)
            assert held.status == answer.status, held.json
            if held.status == 201:
                own = {"reservation_id": held.data["reservation_id"]}
                assert self.tenant.post("/bookings", {**named, **own}).status == 201
            transaction.set_rollback(True)
        made: dict[str, tuple[int, tuple[str, ...]]] = {}
        for row in rows:
            others = made.get(row.step or "", (0, ()))[1]
            start = minute_of(row.start.isoformat())
            made[row.step or ""] = start, (*others, str(row.resource_id))
        return answer.status, made


@thorough(deep=2000)
@given(data=st.data())
def test_what_a_visit_offers_can_be_booked(tenant: Tenant, data: Any) -> None:
    now = datetime.fromtimestamp(NOW, UTC)
    with time_machine.travel(now, tick=False), transaction.atomic():
        world = World(tenant, data.draw)
        offered = {minute_of(slot["start"]): slot for slot in world.read_offered()}
        event(f"{world.kind}: offers {min(len(offered), 10)} slots")
        grid = range(FIRST, LAST, QUARTER)
        possible = [start for start in grid if world.is_possible(start, on_grid=True)]
        assert sorted(offered) == possible
        for slot in offered.values():
            world.check_arrangement(
                {
                    step["name"]: (
                        minute_of(step["start"]),
                        tuple(each["id"] for each in step["resources"]),
                    )
                    for step in slot["steps"]
                }
            )
        with_rules = world.kind != "sent alone"
        if offered:
            slot = offered[data.draw(st.sampled_from(sorted(offered)), label="offered start")]
            span = minute_of(slot["start"]), minute_of(slot["end"])
            status, made = world.try_booking(*span)
            assert status == 201
            world.check_arrangement(made, with_rules=with_rules)
        start = data.draw(st.sampled_from(grid), label="start")
        shortest = sum(step.length for step in world.steps)
        end = start + shortest + data.draw(st.sampled_from((0, 15, 30)), label="longer by")
        status, made = world.try_booking(start, end)
        is_possible = world.is_possible(start, end, with_rules=with_rules)
        event(f"accepted: {is_possible}")
        assert (status == 201) == is_possible
        if made:
            world.check_arrangement(made, with_rules=with_rules)
        transaction.set_rollback(True)
