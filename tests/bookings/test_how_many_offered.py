"""What is offered for a number of units or people can be booked by the same body, nothing else can.

Random projects with capacities, party sizes, windows for start and end, and pacing, over the API
and a real database, against a slow model with one list of bookings per minute; and random seats of
groups with places.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction
from hypothesis import event, given
from hypothesis import strategies as st

from tests.availability.core_model import is_open_in, read_wall
from tests.bookings.group_world import make_group, take_seat
from tests.bookings.random_projects import thorough
from tests.world import Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

ZONE = "Europe/Berlin"
FIRST = int(datetime(2026, 11, 23, tzinfo=UTC).timestamp()) // 60  # a minute
DAYS, STEP = 2, 30  # the range, and the distance of the times that are tried
CUSTOMER = {"name": "Ann", "email": "ann@example.com"}
Rules = list[dict[str, Any]]


def text(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).isoformat()


# --- The model ------------------------------------------------------------------------------------
@dataclass
class Thing:
    """A resource. taken: bookings and holds, each with its units."""

    id: str
    capacity: int
    party: tuple[int, int] | None
    rules: Rules
    taken: list[tuple[int, int, int]] = field(default_factory=list)

    def free_units(self, minute: int, distance: int) -> int:
        """The units that nothing takes at a minute, or so shortly before."""
        taken = sum(n for start, end, n in self.taken if start <= minute < end + distance)
        return self.capacity - taken


@dataclass
class Shop:
    """A project; times are minutes. windows: rules for start and end; None: no windows."""

    rules: Rules
    windows: tuple[Rules | None, Rules | None]
    buffer: int
    pace: tuple[int, int] | None

    def takes(self, thing: Thing, start: int, end: int, quantity: int, party: int | None) -> bool:
        if party and thing.party and not thing.party[0] <= party <= thing.party[1]:
            return False
        minutes = range(start, end + self.buffer)
        if any(thing.free_units(minute, self.buffer) < quantity for minute in minutes):
            return False
        return (
            all(self.is_usable(thing, minute) for minute in range(start, end))
            and self.may_start(start)
            and self.may_end(end)
        )

    @property
    def has_windows(self) -> bool:
        return self.windows != (None, None)

    def is_usable(self, thing: Thing, minute: int) -> bool:
        """Whether the time is open; with windows, whether no rule blocks it."""
        lists = [thing.rules, self.rules]
        if self.has_windows:
            lists = [
                [rule for rule in rules if next(iter(rule)).startswith("block")] for rules in lists
            ]
        return all(is_open(rules, minute) for rules in lists)

    def may_start(self, minute: int) -> bool:
        return self.windows[0] is None or is_open(self.windows[0], minute)

    def may_end(self, minute: int) -> bool:
        rules = self.windows[1]
        return rules is None or is_open(rules, minute) or is_open(rules, minute - 1)

    def has_room_for_a_start(self, things: Sequence[Thing], start: int, quantity: int) -> bool:
        """Whether no stretch of the pace that contains the start has too many starts with it."""
        if self.pace is None:
            return True
        most, length = self.pace
        starts = [first for thing in things for first, _, n in thing.taken for _ in range(n)]
        return all(
            sum(since <= each < since + length for each in starts) + quantity <= most
            for since in range(start - length + 1, start + 1)
        )


def is_blocking(rule: Mapping[str, Any]) -> bool:
    return all(name.startswith("block") for name in rule)


def is_open(rules: Sequence[Mapping[str, Any]], minute: int) -> bool:
    return is_open_in(rules, minute, read_wall(minute, ZONE), ZONE, None)


# --- What is drawn --------------------------------------------------------------------------------
RULES = st.lists(
    st.sampled_from(
        [
            {"allow_hours": {"start": 8, "end": 20}},
            {"allow_hours": {"start": 22, "end": 4}},
            {"allow_day": {"day": "Monday"}},
            {"block_hours": {"start": 12, "end": 13}},
            {"block_hours": {"start": 2, "end": 3}},
        ]
    ),
    max_size=2,
    unique_by=str,
)
WINDOW = st.one_of(st.none(), st.sampled_from([[], [{"allow_hours": {"start": 9, "end": 18}}],
    [{"allow_weekdays": {}}, {"block_hours": {"start": 6, "end": 10}}]]))  # fmt: skip
PARTY = st.sampled_from((None, (1, 2), (2, 4), (3, 8)))
BOOKED = st.tuples(
    st.integers(0, DAYS * 24 * 60 // STEP),
    st.sampled_from((30, 60, 600)),
    st.integers(1, 3),
    st.booleans(),
)


class World:
    def __init__(self, tenant: Tenant, draw: Any) -> None:
        self.tenant = tenant
        windows = draw(st.one_of(st.just((None, None)), st.tuples(WINDOW, WINDOW)), label="windows")
        buffer = draw(st.sampled_from((0, 0, 30)), label="buffer")
        pace = draw(st.sampled_from((None, None, (2, 60), (3, 90))), label="pace")
        self.shop = Shop(draw(RULES, label="rules"), windows, buffer, pace)
        self.length = draw(st.sampled_from((30, 120, 24 * 60)), label="length")
        self.things = [self._make_thing(draw) for _ in range(draw(st.integers(1, 2)))]
        terms = {
            "mode": "exclusive",
            "length": f"{self.length} minutes",
            "timeslot_increments": f"{STEP} minutes",
            "buffer": f"{buffer} minutes",
            "to": "2 weeks",
            **{
                name: rules
                for name, rules in zip(("start_window", "end_window"), windows, strict=True)
                if rules is not None
            },
            **({"max_starts": {"quantity": pace[0], "per": f"{pace[1]} minutes"}} if pace else {}),
        }
        ids = [thing.id for thing in self.things]
        self.project_id = tenant.make_project(
            *ids, availability=terms, availability_constraints=self.shop.rules
        )["id"]
        for thing in self.things:
            for booked in draw(st.lists(BOOKED, max_size=4), label="bookings"):
                self._take(thing, *booked)

    def _make_thing(self, draw: Any) -> Thing:
        capacity, party = draw(st.sampled_from((1, 3, 4))), draw(PARTY, label="party")
        rules = draw(RULES, label="rules of a resource")
        made = self.tenant.make_resource(
            "Thing",
            ZONE,
            capacity=capacity,
            party=party and {"min": party[0], "max": party[1]},
            availability_constraints=rules,
        )
        return Thing(made["id"], capacity, party, rules)

    def _take(self, thing: Thing, step: int, minutes: int, quantity: int, holds: bool) -> None:
        """A booking or hold that need not keep the rules."""
        start = FIRST + step * STEP
        body = {
            "resource_id": thing.id,
            "project_id": self.project_id,
            "start": text(start),
            "end": text(start + minutes),
            "quantity": quantity,
            "settings": {"enforce_availability": False},
        }
        if holds:
            answer = self.tenant.post("/bookings/reserve", {**body, "reservation_time": 3600})
        else:
            answer = self.tenant.post("/bookings", {**body, "what": "Ride", "customer": CUSTOMER})
        if answer.status == 201:
            thing.taken.append((start, start + minutes, quantity))

    def expected(self, start: int, quantity: int, party: int | None) -> list[str]:
        """The resources that can take it, in any order."""
        if not self.shop.has_room_for_a_start(self.things, start, quantity):
            return []
        span = start, start + self.length
        return [thing.id for thing in self.things if self.shop.takes(thing, *span, quantity, party)]


@thorough(deep=2000)
@given(data=st.data())
def test_offered_quantities_and_parties_are_bookable(tenant: Tenant, data: Any) -> None:
    with transaction.atomic():
        world = World(tenant, data.draw)
        quantity = data.draw(st.sampled_from((1, 1, 2, 3)), label="quantity")
        party = data.draw(st.sampled_from((None, 1, 2, 4, 9)), label="party size")
        terms = {"quantity": quantity, **({"party_size": party} if party else {})}
        last = FIRST + DAYS * 24 * 60
        offered = {
            slot["start"]: [each["id"] for each in slot["resources"]]
            for slot in tenant.post(
                "/availability",
                {"project_id": world.project_id, "from": text(FIRST), "to": text(last), **terms},
            ).data
        }
        model = {
            text(start): found
            for start in range(FIRST, last - world.length + 1, STEP)
            if (found := world.expected(start, quantity, party))
        }
        assert {start: sorted(ids) for start, ids in offered.items()} == {
            start: sorted(ids) for start, ids in model.items()
        }
        for ids in offered.values():
            ranks = [next(t.party for t in world.things if t.id == each) for each in ids]
            sizes = [99 if rank is None else rank[1] for rank in ranks]
            assert not party or sizes == sorted(sizes)
        event(f"offered: {bool(model)}")

        tried = data.draw(
            st.lists(st.integers(0, (last - world.length - FIRST) // STEP), max_size=4),
            label="tried",
        )
        some = [FIRST + step * STEP for step in tried]
        some += [int(datetime.fromisoformat(each).timestamp()) // 60 for each in list(model)[:2]]
        for start in some:
            body = {
                "project_id": world.project_id,
                "start": text(start),
                "end": text(start + world.length),
                "what": "Ride",
                "customer": CUSTOMER,
                **terms,
            }
            answer = tenant.post("/bookings", body)
            if text(start) in model:
                assert answer.status == 201, answer.json
                tenant.put(f"/bookings/{answer.data['id']}/cancel", {})
            else:
                assert answer.status == 409, (answer.json, text(start))
        transaction.set_rollback(True)


# --- Seats ----------------------------------------------------------------------------------------
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("book", "book", "hold", "use", "more", "cancel", "release")),
        st.sampled_from(("stalls", "balcony")),
        st.integers(1, 4),
    ),
    min_size=4,
    max_size=14,
)


@thorough(deep=2000)
@given(data=st.data())
def test_no_place_has_more_seats_than_it_has(tenant: Tenant, data: Any) -> None:
    with transaction.atomic():
        sizes = {"stalls": 7, "balcony": 3}
        settings_ = {"places": sizes, "max_seats": None}
        group = make_group(tenant, tenant.make_resource("Hall"), settings=settings_)
        booked: dict[str, tuple[str, int]] = {}
        held: dict[str, tuple[str, int]] = {}
        for action, place, number in data.draw(STEPS, label="steps"):
            taken = sum(n for where, n in (*booked.values(), *held.values()) if where == place)
            is_free = taken + number <= sizes[place]
            if action == "book":
                answer = take_seat(tenant, group, place=place, quantity=number)
                assert answer.status == (201 if is_free else 409), answer.json
                booked |= {answer.data["id"]: (place, number)} if is_free else {}
            elif action == "hold":
                related = {"related": {"owner_booking_id": group["id"]}}
                body = {**related, "place": place, "quantity": number, "reservation_time": 600}
                answer = tenant.post("/bookings/reserve", body)
                assert answer.status == (201 if is_free else 409), answer.json
                held |= {answer.data["reservation_id"]: (place, number)} if is_free else {}
            elif action in ("use", "release") and held:
                hold_id, seats = held.popitem()
                if action == "use":
                    answer = take_seat(tenant, group, reservation_id=hold_id)
                    assert answer.status == 201, answer.json
                    booked[answer.data["id"]] = seats
                else:
                    assert tenant.delete(f"/bookings/reserve/{hold_id}").status == 204
            elif action == "more" and booked:
                seat_id, (where, before) = next(iter(booked.items()))
                others = sum(n for at, n in (*booked.values(), *held.values()) if at == where)
                fits = others - before + number <= sizes[where]
                answer = tenant.put(f"/bookings/{seat_id}", {"quantity": number})
                assert answer.status == (200 if fits else 409), answer.json
                booked[seat_id] = (where, number) if fits else (where, before)
            elif action == "cancel" and booked:
                seat_id, _ = booked.popitem()
                assert tenant.put(f"/bookings/{seat_id}/cancel", {}).status == 200
        shown = tenant.get(f"/bookings/{group['id']}").data["attributes"]["group_booking"]
        assert shown["current_seats"] == sum(n for _, n in booked.values())
        transaction.set_rollback(True)
