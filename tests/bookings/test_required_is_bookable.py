"""What a query with requirements offers can be booked by the same body, and nothing else.

Random requirements with modes, tags, offsets, lengths, alternatives and optional ones, of a project
or of the request, with named resources and for parties; over the API and a real database, against
the slow model in `offer_model`, which tries every choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pytest
import time_machine
from django.db import transaction
from django.db.models import Q
from hypothesis import event, given
from hypothesis import strategies as st

from availability.models import Event
from tests.bookings.offer_model import (
    Assignment,
    Diary,
    Need,
    Offer,
    find_assignments,
    minute_of,
    to_text,
)
from tests.bookings.random_projects import thorough
from tests.world import Answer, Tenant, at

pytestmark = pytest.mark.both_databases

NOW = int(at("2026-11-23 08:00").timestamp())
# By a project, with its own requirements or those of the request; or by requirements alone.
KINDS = ("project", "sent within a project", "sent alone")
NAMES = ("person", "room", "car")
TAGS = ("a", "b")
PARTIES = (None, (1, 2), (2, 4), (3, 6))
ANY_TAGS = st.lists(st.sampled_from(TAGS), min_size=1, unique=True)
LENGTH, INCREMENT = 60, 30
DURATIONS = {None: None, "30 mins": 30, "45 mins": 45, "2 hours": 120}
OFFSETS = {None: 0, "0 mins": 0, "15 mins": 15, "30 mins": 30}
BUFFERS = {"0 mins": 0, "15 mins": 15}
RULES = st.lists(
    st.sampled_from(
        [
            {"allow_hours": {"start": 8, "end": 15}},
            {"block_hours": {"start": 12, "end": "12:45"}},
            {"allow_hours": {"start": "09:15", "end": 18}},
        ]
    ),
    max_size=1,
)


@dataclass
class RememberingDiary(Diary):
    """It is asked for the same minutes again and again, for one list of rules of the project."""

    known: dict[tuple[int, bool], bool] = field(default_factory=dict)

    def is_open(self, minute: int, project_rules: Sequence[Mapping[str, Any]]) -> bool:
        key = minute, bool(project_rules)
        if key not in self.known:
            self.known[key] = super().is_open(minute, project_rules)
        return self.known[key]


class World:
    """Resources with their diaries, requirements, and the body that asks for them."""

    def __init__(self, tenant: Tenant, draw: Any) -> None:
        self.tenant, self.draw = tenant, draw
        self.kind = draw(st.sampled_from(KINDS), label="kind")
        self.diaries: dict[str, Diary] = {}
        self.names: dict[str, str] = {}
        for number in range(draw(st.integers(2, 4), label="resources")):
            self._make_resource(f"R{number}")
        self.requires = self._draw_requires()
        self.alternatives = [
            [self._need_of(each) for each in requirements] for requirements in self._lists()
        ]
        self.named = self._draw_named()
        self.party_size = draw(st.sampled_from((None, None, 2, 3, 6)), label="party size")
        self.offer, self.body = self._make_offer()

    def _make_resource(self, name: str) -> None:
        rules = self.draw(RULES, label="rules of a resource")
        capacity = self.draw(st.sampled_from((1, 1, 2)), label="capacity")
        tags = self.draw(st.lists(st.sampled_from(TAGS), unique=True), label="tags")
        party = self.draw(st.sampled_from(PARTIES), label="party")
        made = self.tenant.make_resource(
            name,
            availability_constraints=rules,
            capacity=capacity,
            tags=tags,
            party=party and {"min": party[0], "max": party[1]},
        )
        diary = RememberingDiary("UTC", rules, capacity, tags=tags, party=party)
        self.diaries[made["id"]] = diary
        self.names[made["id"]] = name
        calendar = made["calendars"][0]["id"]
        spans = st.tuples(st.sampled_from(range(0, 600, 15)), st.sampled_from((15, 60, 90)))
        for first, length in self.draw(st.lists(spans, max_size=3), label="busy"):
            start = NOW // 60 + first
            times = to_text(start), to_text(start + length)
            if self.draw(st.booleans(), label="is an event"):
                self.tenant.make_event(calendar, *times)
                diary.busy.append((start, start + length))
            else:
                self._put_booking(calendar, diary, start, start + length)

    def _put_booking(self, calendar: str, diary: Diary, start: int, end: int) -> None:
        answer = self.tenant.book(calendar_id=calendar, start=to_text(start), end=to_text(end))
        if answer.status == 201:
            diary.taken.append((start, end, None, None))

    # --- Requirements -----------------------------------------------------------------------------
    def _draw_requires(self) -> Any:
        lists = [
            [self._draw_requirement(name, is_first=name == NAMES[0]) for name in NAMES[:number]]
            for number in self.draw(
                st.lists(st.integers(1, 3), min_size=1, max_size=2), label="requirements"
            )
        ]
        is_flat = len(lists) == 1 and self.draw(st.booleans(), label="is a list")
        return lists[0] if is_flat else {"alternatives": lists}

    def _lists(self) -> Sequence[Sequence[Mapping[str, Any]]]:
        is_flat = isinstance(self.requires, list)
        return [self.requires] if is_flat else self.requires["alternatives"]

    def _draw_requirement(self, name: str, *, is_first: bool) -> dict[str, Any]:
        ids = st.lists(st.sampled_from(list(self.diaries)), min_size=1, unique=True)
        tags = st.fixed_dictionaries({}, optional={"all": ANY_TAGS, "any": ANY_TAGS})
        any_of = self.draw(st.one_of(ids, tags.filter(bool)), label="any of")
        given: dict[str, Any] = {
            "name": name,
            "any_of": any_of,
            "count": self.draw(st.sampled_from((1, 1, 1, 2)), label="count"),
            "mode": self.draw(st.sampled_from(("prioritized", "random", "fair")), label="mode"),
        }
        if is_first:
            return given
        offset = self.draw(st.sampled_from(list(OFFSETS)), label="offset")
        length = self.draw(st.sampled_from(list(DURATIONS)), label="length")
        given["optional"] = self.draw(st.sampled_from((False, False, True)), label="optional")
        given["length"] = length
        return given | ({"offset": offset} if offset else {})

    def _need_of(self, given: Mapping[str, Any]) -> Need:
        return Need(
            name=given["name"],
            ids=self._find_any_of(given["any_of"]),
            count=given["count"],
            offset=OFFSETS[given.get("offset")],
            length=DURATIONS[given.get("length")],
            optional=given.get("optional", False),
            mode=given["mode"],
        )

    def _find_any_of(self, any_of: Any) -> list[str]:
        if isinstance(any_of, list):
            return any_of
        every, some = set(any_of.get("all", ())), set(any_of.get("any", TAGS))
        return [
            each
            for each, diary in self.diaries.items()
            if every <= set(diary.tags) and ("any" not in any_of or some & set(diary.tags))
        ]

    def _draw_named(self) -> dict[str, list[str]]:
        """The named resources: often none, of one requirement."""
        possible: dict[str, list[str]] = {}
        for need in chain.from_iterable(self.alternatives):
            possible.setdefault(need.name, []).extend(need.ids)
        name = self.draw(st.sampled_from((None, None, *possible)), label="named requirement")
        if name is None or not possible[name]:
            return {}
        ids = st.lists(st.sampled_from(possible[name]), min_size=1, max_size=3, unique=True)
        return {name: self.draw(ids, label="named resources")}

    # --- The project and the body -----------------------------------------------------------------
    def _make_offer(self) -> tuple[Offer, dict[str, Any]]:
        named: dict[str, Any] = {"resources": self.named} if self.named else {}
        named |= {"party_size": self.party_size} if self.party_size else {}
        latest = "12 hours"
        if self.kind == "sent alone":
            offer = self._offer([], "999 days", (0, 0))
            return offer, {"requires": self.requires, **named}
        rules = self.draw(RULES, label="rules of the project")
        buffer = self.draw(st.sampled_from(list(BUFFERS)), label="buffer")
        terms = {"length": "1 hour", "buffer": buffer, "from": "now", "to": latest}
        terms["timeslot_increments"] = "30 mins"
        given = {"name": "Job", "availability": terms, "availability_constraints": rules}
        is_own = self.kind == "project"
        place = {"requires": self.requires} if is_own else {"resources": list(self.diaries)}
        project = self.tenant.post("/projects", given | place).data["id"]
        sent = {} if is_own else {"requires": self.requires}
        offer = self._offer(rules, latest, (BUFFERS[buffer], BUFFERS[buffer]))
        return offer, {"project_id": project, **sent, **named}

    def _offer(self, rules: list[Any], latest: str, buffers: tuple[int, int]) -> Offer:
        return Offer(
            now=NOW,
            rules=rules,
            earliest="now",
            latest=latest,
            length=LENGTH,
            buffers=buffers,
            ignores_days=False,
            limits={},
            increment=INCREMENT,
        )

    def read_offered(self) -> list[dict[str, Any]]:
        query = dict(self.body)
        if self.kind == "sent alone":
            query |= {"length": "1 hour", "from": "now", "to": "12 hours"}
            query |= {"timeslot_increments": "30 mins"}
        return self.tenant.post("/availability", query).data

    def find(self, start: int, *, on_grid: bool = False) -> tuple[Sequence[Need], list[Assignment]]:
        """The requirements that can be met, and the model's choices for a booking of an hour.

        on_grid: for a query. A booking without a project keeps no opening hours, and its party
        does not count.
        """
        diaries, party_size = self.diaries, self.party_size
        if self.kind == "sent alone" and not on_grid:
            party_size = None
            diaries = {each: replace(diary, rules=[], known={}) for each, diary in diaries.items()}
        return find_assignments(
            self.offer,
            diaries,
            self.alternatives,
            self.named,
            start,
            start + LENGTH,
            party_size=party_size,
            on_grid=on_grid,
        )

    def try_booking(self, start: int) -> tuple[Answer, dict[str, set[tuple[str, int, int]]]]:
        """The answer, and (resource, start, end) of each requirement of the booking, which is taken
        back. What is bookable can be held."""
        customer = {"name": "Marty McFly", "email": "marty@example.com"}
        body = {**self.body, "what": "Job", "customer": customer}
        body |= {"start": to_text(start), "end": to_text(start + LENGTH)}
        made: dict[str, set[tuple[str, int, int]]] = {}
        with transaction.atomic():
            answer = self.tenant.post("/bookings", body)
            assert answer.status in (201, 409), answer.json
            for row in events_of(answer.data["id"]) if answer.status == 201 else ():
                span = minute_of(row.start.isoformat()), minute_of(row.end.isoformat())
                made.setdefault(row.requirement or "", set()).add((str(row.resource_id), *span))
            transaction.set_rollback(True)
        with transaction.atomic():
            held = self.tenant.post("/bookings/reserve", body)
            assert held.status == answer.status, held.json
            if held.status == 201:
                own = {"reservation_id": held.data["reservation_id"]}
                used = self.tenant.post("/bookings", {**body, **own})
                assert used.status == 201, used.json
            transaction.set_rollback(True)
        return answer, made


def events_of(booking_id: str) -> Any:
    return Event.objects.filter(Q(bookings=booking_id) | Q(main__bookings=booking_id))


@thorough(deep=3000)
@given(data=st.data())
def test_what_requirements_offer_can_be_booked(tenant: Tenant, data: Any) -> None:
    now = datetime.fromtimestamp(NOW, UTC)
    with time_machine.travel(now, tick=False), transaction.atomic():
        world = World(tenant, data.draw)
        offered = {minute_of(slot["start"]): slot for slot in world.read_offered()}
        event(f"{world.kind}: offers {min(len(offered), 10)} slots")
        grid = range(NOW // 60, NOW // 60 + 12 * 60, 15)
        check_offer(world, offered, grid)
        for _ in range(min(len(offered), 2)):
            some = st.sampled_from(sorted(offered))
            check_booking(world, data.draw(some, label="offered start"))
        for _ in range(2):
            check_booking(world, data.draw(st.sampled_from(grid), label="start"))
        transaction.set_rollback(True)


def check_offer(world: World, offered: Mapping[int, Any], grid: Sequence[int]) -> None:
    """Exactly the starts at which the model finds a choice, each with one of them."""
    latest = NOW // 60 + 12 * 60 - LENGTH
    expected = {
        start: found
        for start in grid
        if start <= latest and (found := world.find(start, on_grid=True)[1])
    }
    assert sorted(offered) == sorted(expected)
    for start, choices in expected.items():
        ids = [each["id"] for each in offered[start]["resources"]]
        assert sorted(ids) in [sorted(chain.from_iterable(each.values())) for each in choices]


def check_booking(world: World, start: int) -> None:
    """Made if and only if the model finds a choice; it is one of them, the best of prioritized
    ones: for a party the smallest."""
    needs, choices = world.find(start)
    answer, made = world.try_booking(start)
    event(f"accepted: {bool(choices)}")
    assert (answer.status == 201) == bool(choices)
    if not choices:
        return
    chosen = {name: tuple(sorted(each for each, *_ in rows)) for name, rows in made.items()}
    assert chosen in [
        {name: tuple(sorted(ids)) for name, ids in choice.items()} for choice in choices
    ]
    for need in needs:
        spans = {(first, last) for _, first, last in made.get(need.name, ())}
        assert spans <= {need.within(start, start + LENGTH)}
    if all(need.mode == "prioritized" for need in needs):
        costs = [cost_of(world, needs, choice) for choice in choices]
        assert cost_of(world, needs, chosen) == min(costs)


def cost_of(world: World, needs: Sequence[Need], choice: Assignment) -> tuple[int, int, int]:
    """For a party, how many people the chosen ones suit at most and at least; how far down the
    lists they stand together."""
    pairs = [(need, each) for need in needs for each in choice.get(need.name, ())]
    parties = [world.diaries[each].party or (0, 10_001) for _, each in pairs]
    place = sum(need.ids.index(each) for need, each in pairs)
    if world.party_size is None or world.kind == "sent alone":
        return 0, 0, place
    return sum(most for _, most in parties), sum(least for least, _ in parties), place
