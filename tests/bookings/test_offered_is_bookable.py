"""Every slot that is offered for a project can be booked and held; what its rules exclude can't.

Random projects, rules, schedules, tags, weights, calendars and moments around the odd hours of the
world's clocks, over the API and a real database, against the slow model in `offer_model`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
import time_machine
from django.db import transaction
from django.db.models import Q
from hypothesis import event, given
from hypothesis import strategies as st

from availability.models import Event
from tests.availability.core_model import read_wall
from tests.availability.test_clock_changes import INSTANTS
from tests.availability.test_core_properties import constraints
from tests.bookings.offer_model import (
    Diary,
    Offer,
    find_choices,
    local_periods,
    midnight,
    minute_after,
    minute_of,
    order_by_turn,
    read_moment,
    to_text,
)
from tests.bookings.random_projects import thorough
from tests.world import Answer, Caller, Tenant, at

pytestmark = pytest.mark.both_databases

DAY = 1440
KINDS = ("roundrobin_random", "roundrobin_prioritized", "roundrobin_fair", "exclusive", "mutual",
         "requires")  # fmt: skip
LENGTHS = {None: None, "15 minutes": 15, "50 minutes": 50, "1 hour": 60, "3 hours": 180,
           "1 day": DAY}  # fmt: skip
LIMITED = {"day": "max_per_day", "week": "max_per_week", "month": "max_per_month"}
INCREMENTS = {None: None, "7 minutes": 7, "15 minutes": 15, "1 hour": 60}
BUFFERS = {"0 minutes": 0, "0 mins": 0, "10 minutes": 10, "61 minutes": 61}
# Sorted so that every `from` lies before every `to`, also where a zone skips a day.
EARLIEST = ("now", "now", "-3 hours", "30 minutes", "2 hours 10 minutes", "1 day", "tomorrow",
            "instant", "wall")  # fmt: skip
LATEST = ("2 days", "2 days 3 hours", "50 hours", "3 days 90 minutes", "7 days", "instant", "wall")


# --- What is drawn --------------------------------------------------------------------------------
def rule_lists(minute: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Often none, often mild ones, sometimes whatever there is."""
    mild = st.lists(
        st.sampled_from(
            [
                {"allow_hours": {"start": 6, "end": 22}},
                {"allow_hours": {"start": "21:30", "end": "03:15"}},
                {"block_hours": {"start": 12, "end": "12:45"}},
                {"block_hours": {"start": "01:30", "end": "02:30"}},
                {"block_hours": {"start": 23, "end": 1}},
                {"allow_weekdays": {}},
                {"block_day": {"day": "Wednesday"}},
            ]
        ),
        max_size=2,
    )
    return st.one_of(st.just([]), mild, mild, constraints(minute))


@st.composite
def moments(draw: Any, texts: tuple[str, ...], minute: int, zone: str, within: Any) -> str:
    """A `from` or `to`; of the absolute ones such as lie so many minutes on."""
    text = draw(st.sampled_from(texts))
    later = minute + draw(within)
    if text == "instant":
        return to_text(later)
    return f"{read_wall(later, zone):%Y-%m-%d %H:%M:%S}" if text == "wall" else text


stretches = st.tuples(st.integers(-300, 2 * DAY), st.sampled_from((1, 30, 60, 90, 200, 1500)))
happenings = st.one_of(
    st.tuples(st.sampled_from(("busy", "busy", "free")), stretches),
    st.tuples(st.just("days"), st.tuples(st.integers(0, 3), st.integers(1, 2))),
    st.tuples(st.sampled_from(("booked", "booked", "cancelled", "elsewhere", "other")), stretches),
    st.tuples(st.sampled_from(("held", "held", "released")), stretches),
)
calendars = st.lists(happenings, min_size=1, max_size=7)
BOTH = ["X-ray", "chair"]
some_tags = st.sampled_from((BOTH, BOTH, BOTH, BOTH[:1], BOTH[1:]))


class World:
    """A project with its resources, made over the API; beside each resource its diary."""

    def __init__(self, tenant: Tenant, kind: str, draw: Callable[..., Any]) -> None:
        self.tenant, self.kind, self.draw = tenant, kind, draw
        zone, change = draw(st.sampled_from(INSTANTS))
        seconds = draw(st.integers(-2 * DAY, DAY)) * 60 + draw(st.sampled_from((0, 0, 0, 30)))
        self.now = int(at(change).timestamp()) + seconds
        self.change = int(at(change).timestamp()) // 60
        others = st.sampled_from((zone, "Asia/Kathmandu"))
        least, most = (1, 2) if kind == "requires" else (0, 1)
        self.zones = [zone, *draw(st.lists(others, min_size=least, max_size=most))]

    @property
    def minute(self) -> int:
        return self.now // 60

    def fill(self) -> None:
        self.diaries = {}
        self.calendars = {}
        shared = self.draw(rule_lists(self.minute), label="rules of the schedule")
        body = {"name": "Hours", "availability_constraints": shared}
        schedule_id = self.tenant.post("/schedules", body).data["id"]
        for zone in self.zones:
            rules = self.draw(rule_lists(self.minute), label="rules of a resource")
            capacity = self.draw(st.sampled_from((1, 1, 2, 3)), label="capacity")
            has_schedule = self.draw(st.sampled_from((False, False, False, True)), label="schedule")
            made = self.tenant.make_resource(
                zone,
                zone,
                availability_constraints=rules,
                capacity=capacity,
                schedule_id=schedule_id if has_schedule else None,
            )
            self.diaries[made["id"]] = Diary(
                zone, rules, capacity, schedule=shared if has_schedule else None
            )
            self.calendars[made["id"]] = made["calendars"][0]["id"]
        self._make_project()
        self._make_other_project()
        for resource_id in self.diaries:
            for happening in self.draw(calendars, label="calendar"):
                self._put(resource_id, *happening)
        if self.draw(st.booleans(), label="other buffers"):
            self.offer.buffers = self._draw_buffers(given := {})
            self.tenant.put(f"/projects/{self.project_id}", {"availability": given})

    def _draw_buffers(self, terms: dict[str, Any]) -> tuple[int, int]:
        """Put buffers into the project's terms, and return them in minutes."""
        names = self.draw(st.sampled_from(list(product(BUFFERS, repeat=2))), label="buffers")
        if self.draw(st.booleans(), label="of both sides"):
            terms["buffer"] = names[0]
            return BUFFERS[names[0]], BUFFERS[names[0]]
        terms |= {"buffer_before": names[0], "buffer_after": names[1]}
        return BUFFERS[names[0]], BUFFERS[names[1]]

    def _make_other_project(self) -> None:
        self.other_buffers = self._draw_buffers(terms := {})
        self.other_id = self.tenant.make_project(*self.diaries, name="Other", availability=terms)[
            "id"
        ]

    def _draw_requirements(self) -> dict[str, Any]:
        """Two requirements, each of one or two of some resources, by id or by tag."""
        self._tag()
        ids = st.lists(st.sampled_from(list(self.diaries)), min_size=1, unique=True)
        by_tag = st.fixed_dictionaries({"tags": some_tags})
        counted = st.tuples(st.one_of(ids, by_tag), st.sampled_from((1, 1, 1, 2)))
        drawn = self.draw(st.tuples(counted, counted), label="requirements")
        return {
            "requires": [
                {"name": name, "any_of": any_of, "count": count}
                for name, (any_of, count) in zip(("person", "room"), drawn, strict=True)
            ]
        }

    def _tag(self) -> None:
        """Give most resources tags, instead of those that they have."""
        for resource_id, diary in self.diaries.items():
            diary.tags = self.draw(
                st.one_of(some_tags, some_tags, some_tags, st.just([])), label="tags"
            )
            self.tenant.put(f"/resources/{resource_id}", {"tags": diary.tags})

    def _find_any_of(self, any_of: Any) -> list[str]:
        if isinstance(any_of, list):
            return any_of
        wanted = set(any_of["tags"])
        return [each for each, diary in self.diaries.items() if wanted & set(diary.tags)]

    def _draw_weights(self) -> dict[str, int]:
        weight = st.sampled_from((None, 0, 1, 1, 2, 5))
        drawn = {each: self.draw(weight, label="weight") for each in self.diaries}
        return {each: given for each, given in drawn.items() if given is not None}

    def _make_project(self) -> None:
        zone = self.zones[0]
        rules = self.draw(rule_lists(self.minute), label="rules of the project")
        is_required = self.kind == "requires"
        length = self.draw(st.sampled_from([each for each in LENGTHS if each or not is_required]))
        others = st.lists(st.sampled_from([name for name in LENGTHS if name]), max_size=2)
        lengths = [*dict.fromkeys([length, *self.draw(others, label="lengths")])] if length else []
        self.lengths = lengths if len(lengths) > 1 else []
        soon, late = st.integers(-60, 1200), st.integers(2 * DAY, 4 * DAY)
        earliest = self.draw(moments(EARLIEST, self.minute, zone, soon))
        latest = self.draw(moments(LATEST, self.minute, zone, late))
        terms = {
            **({} if is_required else {"mode": self.kind}),
            "length": length,
            **({"lengths": self.lengths} if self.lengths else {}),
            "from": earliest,
            "to": latest,
            "timeslot_increments": self.draw(st.sampled_from(list(INCREMENTS))),
            "round_to_nearest_hour": self.draw(st.booleans()),
            "ignore_all_day_events": self.draw(st.booleans()),
        }
        self.is_fair = self.kind == "roundrobin_fair"
        self.weights: dict[str, int] = {}
        if self.is_fair:
            terms["weights"] = self.weights = self._draw_weights()
        buffers = self._draw_buffers(terms)
        limits = {unit: self.draw(st.sampled_from((None, 1, 2))) for unit in LIMITED}
        self.is_mutual = self.kind == "mutual"
        self.requirements: Sequence[Sequence[str]] = ()
        place = self._draw_requirements() if is_required else {"resources": list(self.diaries)}
        given = {
            "name": "Check-up",
            "availability": terms,
            "availability_constraints": rules,
            "settings": {LIMITED[unit]: most for unit, most in limits.items()},
        }
        self.project_id = self.tenant.post("/projects", given | place).data["id"]
        if is_required:
            self._tag()  # the project's resources follow
            self.requirements = [
                self._find_any_of(each["any_of"])
                for each in place["requires"]
                for _ in range(each["count"])
            ]
        self.offer = Offer(
            now=self.now,
            rules=rules,
            earliest=earliest,
            latest=latest,
            length=LENGTHS[length],
            lengths=[LENGTHS[each] or 0 for each in self.lengths],
            buffers=buffers,
            ignores_days=terms["ignore_all_day_events"],
            limits={unit: most for unit, most in limits.items() if most},
            increment=INCREMENTS[terms["timeslot_increments"]],
        )

    def _put(self, resource_id: str, kind: str, where: tuple[int, int]) -> None:
        diary = self.diaries[resource_id]
        if kind == "days":
            self._put_days(resource_id, diary, *where)
            return
        start = self.minute + where[0]
        blocking = [*diary.busy, *diary.taken]
        if blocking and self.draw(st.booleans(), label="touches the last"):
            start = blocking[-1][1] + self.draw(st.sampled_from((0, 0, 10)), label="after it")
        elif blocking and self.draw(st.booleans(), label="overlaps the last"):
            start = blocking[-1][0] + self.draw(st.sampled_from((-30, 0, 15)), label="later by")
        span = (start, start + where[1])
        if kind in ("busy", "free"):
            calendar = self.calendars[resource_id]
            self.tenant.make_event(calendar, *map(to_text, span), busy=kind == "busy")
            diary.busy += [span] if kind == "busy" else []
        elif kind in ("held", "released"):
            self._put_hold(resource_id, diary, kind, span)
        else:
            self._put_booking(resource_id, diary, kind, span)

    def _put_days(self, resource_id: str, diary: Diary, first: int, count: int) -> None:
        today = read_wall(self.minute, diary.zone).date()
        days = [today + timedelta(days=first), today + timedelta(days=first + count)]
        span = (midnight(days[0], diary.zone), midnight(days[1], diary.zone))
        if span[0] < span[1]:  # else the zone has skipped that day
            self.tenant.make_event(self.calendars[resource_id], *map(str, days), all_day=True)
            diary.days.append(span)

    def _put_hold(self, resource_id: str, diary: Diary, kind: str, span: tuple[int, int]) -> None:
        start, end = map(to_text, span)
        body = {"resource_id": resource_id, "start": start, "end": end}
        answer = self.tenant.post("/bookings/reserve", body)
        if answer.status == 409:
            return
        if kind == "held":
            diary.taken.append((*span, None, None))
        else:
            self.tenant.delete(f"/bookings/reserve/{answer.data['reservation_id']}")

    def _put_booking(
        self, resource_id: str, diary: Diary, kind: str, span: tuple[int, int]
    ) -> None:
        is_chosen = any(resource_id in ids for ids in self.requirements)
        if self.requirements and not is_chosen and kind != "other":
            kind = "elsewhere"
        projects = {"elsewhere": None, "other": self.other_id}
        answer = self.tenant.book(
            calendar_id=self.calendars[resource_id],
            project_id=projects.get(kind, self.project_id),
            start=to_text(span[0]),
            end=to_text(span[1]),
            settings={
                "enforce_availability": False,
                "allow_double_bookings": self.draw(st.booleans(), label="double"),
            },
        )
        if answer.status == 409:
            return
        if kind == "cancelled":
            self.tenant.put(f"/bookings/{answer.data['id']}/cancel")
            return
        buffers = {"elsewhere": (None, None), "other": self.other_buffers}
        for taken_id in self._resources_of(answer.data["id"]):
            self.diaries[taken_id].taken.append((*span, *buffers.get(kind, self.offer.buffers)))
            self.diaries[taken_id].booked += [span] if kind == "booked" else []

    def _resources_of(self, booking_id: str) -> list[str]:
        """The ids of the booking's resource and of its further ones."""
        events = Event.objects.filter(Q(bookings=booking_id) | Q(main__bookings=booking_id))
        return [str(resource_id) for resource_id in events.values_list("resource_id", flat=True)]

    def read_offered(self) -> list[dict[str, Any]]:
        """The slots, of one of the project's lengths."""
        query = {"project_id": self.project_id}
        if self.lengths:
            query["length"] = self.draw(st.sampled_from(self.lengths), label="asked length")
        return self.tenant.post("/availability", query).data

    def read_free(self) -> list[tuple[int, int]]:
        """The free intervals of each resource, to whole minutes inside them."""
        if self.requirements:  # they need a length
            return []
        whole = {"length": None, "mode": "exclusive", "round_to_nearest_hour": False}
        found = self.tenant.post("/availability", {"project_id": self.project_id, **whole}).data
        spans = [(minute_after(slot["start"]), minute_of(slot["end"])) for slot in found]
        return [span for span in spans if span[0] < span[1]]

    def edges(self, offered: list[dict[str, Any]]) -> st.SearchStrategy[int]:
        """Minutes at which something begins or ends: the range, what blocks, days, slots."""
        diaries = self.diaries.values()
        texts = (self.offer.earliest, self.offer.latest)
        bounds = {
            read_moment(text, self.now, diary.zone) // 60 for diary in diaries for text in texts
        }
        events = {
            edge
            for diary in diaries
            for first, last, *_ in (*diary.busy, *diary.taken, *diary.days)
            for edge in (
                first - max(self.offer.buffers),
                first,
                last,
                last + max(self.offer.buffers),
            )
        }
        midnights = {
            midnight(day + timedelta(days=after), diary.zone)
            for diary in diaries
            for span in diary.booked
            for unit, day in local_periods(*span, diary.zone)
            if unit == "day"
            for after in (0, 1)
        }
        slots = {minute_of(slot[key]) for slot in offered for key in ("start", "end")}
        kinds = (bounds | {self.minute, self.change}, events, midnights, slots)
        return st.one_of(*(st.sampled_from(sorted(kind)) for kind in kinds if kind))


class Clerk:
    """Tries bookings and holds of a world's project and takes each back."""

    def __init__(self, world: World, caller: Caller) -> None:
        self.world, self.caller = world, caller
        self.is_public = caller is not world.tenant

    def expects(self, diaries: Sequence[Diary], start: int, end: int) -> bool:
        """Whether the resources together are to be booked: a public caller keeps to the grid."""
        offer = self.world.offer
        is_free = all(offer.takes(diary, start, end) for diary in diaries)
        return is_free and (not self.is_public or offer.starts_on_grid(diaries, start))

    def try_booking(self, start: str, end: str, resource_id: str | None = None) -> Answer:
        customer = {"name": "Marty McFly", "email": "marty@example.com"}
        body = {"what": "Meeting", "customer": customer, "start": start, "end": end}
        body |= {"project_id": self.world.project_id, "resource_id": resource_id}
        with transaction.atomic():
            answer = self.caller.post("/bookings", body)
            transaction.set_rollback(True)
        assert answer.status in (201, 409), answer.json
        if resource_id is None:
            self.check_hold(body, answer)
        return answer

    def check_hold(self, body: dict[str, Any], booked: Answer) -> None:
        """What can be booked can be held and then booked; what can't be is refused in one way."""
        with transaction.atomic():
            held = self.caller.post("/bookings/reserve", body)
            assert held.status == booked.status
            if held.status == 409:
                assert held.error == booked.error
            else:
                own = {"reservation_id": held.data["reservation_id"]}
                used = self.caller.post("/bookings", {**body, **own})
                assert used.status == 201, used.json
            transaction.set_rollback(True)

    def accepts(self, start: str, end: str, resource_id: str | None = None) -> bool:
        return self.try_booking(start, end, resource_id).status == 201

    def explains_as_free(self, start: str, end: str, resource_id: str) -> bool:
        body = {"project_id": self.world.project_id, "from": start, "to": end}
        if not self.world.requirements:
            body["resources"] = [resource_id]
        answers = self.world.tenant.post("/availability/explain", body).data
        (answer,) = [each for each in answers if each["resource"]["id"] == resource_id]
        assert (answer["segments"][0]["start"], answer["segments"][-1]["end"]) == (
            start.replace("Z", "+00:00"),
            end.replace("Z", "+00:00"),
        )
        return all(segment["available"] for segment in answer["segments"])


@pytest.fixture
def open_world(make_tenant: Any) -> Callable[..., Any]:
    """`with open_world(data) as (world, clerk)`: all that an example writes is taken back."""
    tenant = make_tenant()
    callers = {"server key": tenant, "widget key": tenant.widget()}

    @contextmanager
    def make(data: Any, kind: str) -> Iterator[tuple[World, Clerk]]:
        world = World(tenant, kind, data.draw)
        now = datetime.fromtimestamp(world.now, UTC)
        with time_machine.travel(now, tick=False), transaction.atomic():
            world.fill()
            caller = data.draw(st.sampled_from(sorted(callers)), label="booked with")
            yield world, Clerk(world, callers[caller])
            transaction.set_rollback(True)

    return make


# --- What holds -----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@thorough(deep=2004, parts=len(KINDS))
@given(data=st.data())
def test_every_offered_slot_can_be_booked(open_world: Any, kind: str, data: Any) -> None:
    with open_world(data, kind) as (world, clerk):
        offered = world.read_offered()
        event(f"offers {min(len(offered), 20) // 10 * 10} slots or more")
        for _ in range(min(len(offered), 2)):
            slot = data.draw(st.sampled_from(offered), label="slot")
            check_offered(world, clerk, *choose_inside(data, world, slot), slot["resources"])
        if world.requirements:
            for _ in range(3):
                check_required(world, clerk, *choose_any(data, world, world.edges(offered)))
            return
        check_any(world, clerk, *choose_any(data, world, world.edges(offered)))
        free = world.read_free()
        for _ in range(3 if free else 0):
            check_any(world, clerk, *choose_verge(data, world, free))


def choose_inside(data: Any, world: World, slot: dict[str, Any]) -> tuple[str, str]:
    """The slot; of a whole free interval it, or some of its minutes."""
    first, last = minute_after(slot["start"]), minute_of(slot["end"])
    if world.offer.length or first >= last or data.draw(st.booleans(), label="whole"):
        return slot["start"], slot["end"]
    inside = data.draw(st.integers(first, last - 1), label="inside")
    return to_text(inside), to_text(data.draw(st.integers(inside + 1, last), label="until"))


def check_offered(
    world: World, clerk: Clerk, start: str, end: str, resources: list[dict[str, Any]]
) -> None:
    """Bookable by the project's name alone, and on each resource that is named."""
    assert clerk.accepts(start, end)
    for resource in resources:
        assert world.weights.get(resource["id"], 1) > 0
        assert clerk.accepts(start, end, resource["id"])
        assert clerk.explains_as_free(start, end, resource["id"])
        if start[17:19] == end[17:19] == "00":
            diary = world.diaries[resource["id"]]
            assert world.offer.takes(diary, minute_of(start), minute_of(end))


def check_required(world: World, clerk: Clerk, start: int, end: int) -> None:
    """Accepted if and only if the model finds a free resource for each requirement; named ones are
    among them."""
    leading = world.requirements[0]
    free = [
        each
        for each, diary in world.diaries.items()
        if world.offer.takes(diary, start, end)
        and (
            not clerk.is_public or each not in leading or world.offer.starts_on_grid([diary], start)
        )
    ]
    choices = find_choices(world.requirements, free)
    event(f"accepted: {bool(choices)}")
    assert clerk.accepts(to_text(start), to_text(end)) == bool(choices)
    for resource_id, diary in world.diaries.items():
        is_chosen = any(resource_id in choice for choice in choices)
        if any(resource_id in ids for ids in world.requirements):
            assert clerk.accepts(to_text(start), to_text(end), resource_id) == is_chosen
            explained = clerk.explains_as_free(to_text(start), to_text(end), resource_id)
            assert explained == world.offer.is_free(diary, start, end)


def choose_length(data: Any, world: World) -> int:
    """Minutes, most of them right."""
    usual = world.offer.length or data.draw(st.integers(1, 200), label="length")
    if world.offer.lengths:
        usual = data.draw(st.sampled_from(world.offer.lengths), label="chosen length")
    return max(1, usual + data.draw(st.sampled_from((0, 0, 0, 0, 0, -1, 1)), label="longer by"))


def choose_any(data: Any, world: World, edges: st.SearchStrategy[int]) -> tuple[int, int]:
    """A start and an end in minutes, somewhere about an edge."""
    length = choose_length(data, world)
    edge = data.draw(edges, label="edge") + data.draw(st.integers(-60, 60), label="beside")
    start = edge - (length if data.draw(st.booleans(), label="ends there") else 0)
    return start, start + length


def choose_verge(data: Any, world: World, free: list[tuple[int, int]]) -> tuple[int, int]:
    """At the very beginning or end of free time, or a minute beyond."""
    length = choose_length(data, world)
    first, last = data.draw(st.sampled_from(free), label="free")
    beyond = data.draw(st.integers(0, 1), label="beyond")
    is_late = data.draw(st.booleans(), label="at the end")
    start = last + beyond - length if is_late else first - beyond
    return start, start + length


def check_any(world: World, clerk: Clerk, start: int, end: int) -> None:
    """Accepted if and only if the model says that it is free, and explained so."""
    texts = to_text(start), to_text(end)
    diaries = [*world.diaries.values()]
    takes_all = world.is_mutual and clerk.is_public  # whichever resource is named
    for resource_id, diary in world.diaries.items():
        answer = clerk.try_booking(*texts, resource_id)
        is_accepted = clerk.expects(diaries if takes_all else [diary], start, end)
        event(f"accepted: {is_accepted}")
        assert (answer.status == 201) == is_accepted
        assert clerk.explains_as_free(*texts, resource_id) == world.offer.is_free(diary, start, end)
        if not is_accepted and not takes_all:
            check_refusal(world, clerk, answer, resource_id, start, end)
    if world.is_fair:
        check_turn(world, clerk, start, end)
        return
    together = [diaries] if world.is_mutual else [[diary] for diary in diaries]
    assert clerk.accepts(*texts) == any(clerk.expects(each, start, end) for each in together)


def check_turn(world: World, clerk: Clerk, start: int, end: int) -> None:
    """The booking goes to the free resource that is furthest behind its share."""
    order = order_by_turn(world.diaries, world.weights)
    free = [each for each in order if clerk.expects([world.diaries[each]], start, end)]
    answer = clerk.try_booking(to_text(start), to_text(end))
    event(f"in turn: {len(free)} of {len(order)}")
    assert (answer.status == 201) == bool(free)
    if free:
        assert answer.data["resource_id"] == free[0]


def check_refusal(
    world: World, clerk: Clerk, answer: Answer, resource_id: str, start: int, end: int
) -> None:
    """Taken, if nothing but another's time stands in the way; what is offered instead can be
    booked."""
    diary, offer = world.diaries[resource_id], world.offer
    is_only_taken = (
        offer.permits_length(end - start)
        and offer.is_allowed(diary, start, end)
        and offer.overlaps(diary, start, end)
        and (not clerk.is_public or offer.starts_on_grid([diary], start))
    )
    assert answer.json["code"] == ("slot_taken" if is_only_taken else "not_available")
    for other in answer.json["alternatives"][:1]:
        assert clerk.accepts(other["start"], other["end"], resource_id)


# --- By example -----------------------------------------------------------------------------------
NOTICE, PAST = "Starts within the minimum notice.", "Is in the past."
HORIZON = "Beyond the booking window."
BUFFER = "Within the buffer of 15 minutes around an event."
HOUR, HALF = "Must last exactly 60 minutes.", "Must last exactly 30 minutes."
DAY_AHEAD = {"from": "1 day", "to": "2 days"}


@pytest.mark.parametrize("caller", ["server key", "widget key"])
def test_grid_of_starts_applies_to_public_callers(tenant, time_machine, caller):
    time_machine.move_to(at("2026-11-23 08:10:05"), tick=False)
    rules = [{"block_hours": {"start": 0, "end": "09:20"}}]
    ada = tenant.make_resource("Ada", availability_constraints=rules)
    project = tenant.make_project(ada["id"], availability={"timeslot_increments": "30 minutes"})
    callers = {"server key": tenant, "widget key": tenant.widget()}
    customer = {"name": "Marty", "email": "marty@example.com"}
    body = {"project_id": project["id"], "what": "A", "customer": customer}

    answers = [
        callers[caller].post(
            "/bookings", {**body, "start": f"2026-11-{start}:00Z", "end": f"2026-11-{end}:00Z"}
        )
        for start, end in (("24T09:30", "24T10:30"), ("25T10:20", "25T11:20"))
    ]

    refused = [{"type": "limit", "text": "Must start at one of the offered times."}]
    assert [answer.status for answer in answers] == [409 if caller == "widget key" else 201, 201]
    if caller == "widget key":
        assert answers[0].json["reasons"] == refused
        assert answers[0].json["alternatives"][0]["start"] == "2026-11-24T09:50:00+00:00"


@pytest.mark.parametrize(
    ("terms", "start", "end", "refused"),
    [
        # An hour, from now on: the past to the second.
        ({}, "23T08:10:05", "23T09:10:05", None),
        ({}, "23T08:10:04", "23T09:10:04", [PAST]),
        ({}, "23T07:00:00", "23T08:00:00", [PAST]),
        # The grid of starts is not enforced for the owner, the length is.
        ({"timeslot_increments": "1 hour"}, "23T13:17:03", "23T14:17:03", None),
        ({}, "23T13:00:00", "23T13:59:59", [HOUR]),
        ({}, "23T13:00:00", "23T14:00:01", [HOUR]),
        ({"length": "30 minutes"}, "23T13:00:00", "23T14:00:00", [HALF]),
        ({"length": "150 secs"}, "23T13:00:00", "23T13:00:30",
         ["Must last exactly 2 minutes 30 seconds."]),
        ({"length": None}, "23T13:00:00", "23T13:00:01", None),
        # Notice and horizon, unrounded whatever the offer does.
        (DAY_AHEAD, "24T08:10:05", "24T09:10:05", None),
        (DAY_AHEAD, "24T08:10:04", "24T09:10:04", [NOTICE]),
        ({**DAY_AHEAD, "round_to_nearest_hour": False}, "24T08:10:04", "24T09:10:04", [NOTICE]),
        (DAY_AHEAD, "25T07:10:05", "25T08:10:05", None),
        (DAY_AHEAD, "25T07:10:06", "25T08:10:06", [HORIZON]),
        (DAY_AHEAD, "25T09:00:00", "25T10:00:00", [HORIZON]),
        ({"from": "2026-11-23T12:00:00Z"}, "23T11:59:59", "23T12:59:59", [NOTICE]),
        ({"from": "2026-11-23T12:00:00Z"}, "23T12:00:00", "23T13:00:00", None),
        # Ada is busy from 10:00 to 10:30.
        ({"buffer": "15 minutes"}, "23T10:45:00", "23T11:45:00", None),
        ({"buffer": "15 minutes"}, "23T10:44:59", "23T11:44:59", [BUFFER]),
        ({"buffer": "15 minutes"}, "23T08:45:00", "23T09:45:00", None),
        ({"buffer": "15 minutes"}, "23T08:45:01", "23T09:45:01", [BUFFER]),
        ({"length": None, "buffer": "15 minutes"}, "23T09:45:00", "23T09:50:00", [BUFFER]),
        # Closed from 18:00 on.
        ({}, "23T17:00:00", "23T18:00:00", None),
        ({}, "23T17:00:01", "23T18:00:01",
         ["Blocked by the project's rule: 18:00 to 20:00 every day."]),
        ({"length": "2 days"}, "27T19:30:00", "29T19:30:00",
         ["Blocked by the project's rule: 18:00 to 20:00 every day.",
          "Outside the resource's days: Monday to Friday."]),
    ],
)  # fmt: skip
def test_earlier_counterexamples(tenant, time_machine, terms, start, end, refused):
    time_machine.move_to(at("2026-11-23 08:10:05"), tick=False)
    ada = tenant.make_resource("Ada", availability_constraints=[{"allow_weekdays": {}}])
    tenant.make_event(ada["calendars"][0]["id"], "2026-11-23T10:00:00Z", "2026-11-23T10:30:00Z")
    project = tenant.make_project(
        ada["id"],
        availability=terms,
        availability_constraints=[{"block_hours": {"start": 18, "end": 20}}],
    )

    answer = tenant.book(project_id=project["id"], start=f"2026-11-{start}Z", end=f"2026-11-{end}Z")

    if refused is None:
        assert answer.status == 201
    else:
        assert (answer.status, answer.json["code"]) == (409, "not_available")
        assert [reason["text"] for reason in answer.json["reasons"]] == refused
