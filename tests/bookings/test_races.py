"""No time is given twice: real client processes against real web processes, all at the same time.

Every race comes with its controls. `live_tenant` is the service as it is; `lock_only` lacks the
database's guard, `guard_only` the locks, and neither lets anything overlap. Without both the same
race does go wrong: a test that could not fail would prove nothing.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bookings.race_tenant import DAY, LiveTenant, count_outcomes, count_overlaps, span

pytestmark = pytest.mark.both_databases


class Result(NamedTuple):
    """What a race answered, and how much time is held by how many bookings afterwards."""

    outcomes: Counter[str]
    held: int
    overlaps: int


def result_of(
    tenant: LiveTenant, answers: list, resource_ids: list[str], capacity: int = 1
) -> Result:
    held = tenant.held(resource_ids)
    return Result(count_outcomes(answers), len(held), count_overlaps(held, capacity))


# --- The races ------------------------------------------------------------------------------------
def race_for_one_slot(tenant: LiveTenant, *, clients: int = 16, tries: int = 5) -> Result:
    (resource,) = tenant.make_resources(1)
    book = tenant.booking(resource_id=resource, **span(10))

    answers = tenant.race([[book] * tries] * clients)

    return result_of(tenant, answers, [resource])


def race_for_places(tenant: LiveTenant, *, clients: int = 12, tries: int = 2) -> Result:
    """Everyone wants one of the three places of an hour, the odd ones half an hour later."""
    ids = tenant.make_resources(1, capacity=3)
    scripts = [
        [tenant.booking(resource_id=ids[0], **span(10 + client % 2 / 2))] * tries
        for client in range(clients)
    ]

    return result_of(tenant, tenant.race(scripts), ids, capacity=3)


def race_for_required(tenant: LiveTenant, *, clients: int = 12, tries: int = 2) -> Result:
    """An hour of either of two dentists, and a place in the room for three."""
    dentists, room = tenant.make_resources(2), tenant.make_resources(1, capacity=3)
    requires = [{"name": "dentist", "any_of": dentists}, {"name": "room", "any_of": room}]
    project = tenant.call("POST", "/projects", {"name": "X-ray", "requires": requires}).data["id"]
    book = tenant.booking(project_id=project, **span(10))

    answers = tenant.race([[book] * tries] * clients)

    of_dentists = result_of(tenant, answers, dentists)
    of_room = result_of(tenant, answers, room, capacity=3)
    return of_dentists._replace(
        held=of_dentists.held + of_room.held, overlaps=of_dentists.overlaps + of_room.overlaps
    )


def race_for_visits(tenant: LiveTenant, *, clients: int = 12, tries: int = 2) -> Result:
    """Half an hour of either of two hygienists, then an hour of either of two dentists."""
    people = tenant.make_resources(4)
    steps = [
        {"name": "cleaning", "length": "30 mins", "resources": people[:2]},
        {"name": "check-up", "length": "1 hour", "resources": people[2:]},
    ]
    project = tenant.call("POST", "/projects", {"name": "Visit", "steps": steps}).data["id"]
    times = {"start": span(10)["start"], "end": span(10.5)["end"]}
    book = tenant.booking(project_id=project, **times)

    answers = tenant.race([[book] * tries] * clients)

    return result_of(tenant, answers, people)


def race_for_sent_requirements(tenant: LiveTenant, *, clients: int = 8, tries: int = 20) -> Result:
    """Four hours of either of two dentists; of the one room the first half of each is needed."""
    dentists, room = tenant.make_resources(2), tenant.make_resources(1)
    requires = [
        {"name": "dentist", "any_of": dentists},
        {"name": "room", "any_of": room, "length": "30 mins"},
    ]
    script = [
        tenant.booking(requires=requires, **span(10 + attempt % 4)) for attempt in range(tries)
    ]

    return result_of(tenant, tenant.race([script] * clients), [*dentists, *room])


def race_for_shifted_slots(tenant: LiveTenant, *, clients: int = 8, slots: int = 12) -> Result:
    """Every client wants every slot, the odd ones half an hour later."""
    (resource,) = tenant.make_resources(1)
    scripts = [
        [
            tenant.booking(resource_id=resource, **span(2 * slot + client % 2 / 2))
            for slot in range(slots)
        ]
        for client in range(clients)
    ]

    answers = tenant.race(scripts)

    return result_of(tenant, answers, [resource])


def race_to_confirm(tenant: LiveTenant, *, clients: int = 8) -> Result:
    """Tentative bookings of one slot, each confirmed by a client of its own."""
    (resource,) = tenant.make_resources(1)
    tentative = [
        tenant.book(graph="confirm_decline", resource_id=resource, **span(10))["id"]
        for _ in range(clients)
    ]

    answers = tenant.race_each([tenant.act(booking, "confirm") for booking in tentative])

    states = Counter(tenant.state_of(booking) for booking in tentative)
    confirmed = sum(answer.status == 200 for answer in answers)
    assert states == Counter(confirmed=confirmed, tentative=clients - confirmed)
    return result_of(tenant, answers, [resource])


def race_to_one_time(tenant: LiveTenant, *, clients: int = 8) -> Result:
    """Bookings of several times, all moved to the same one."""
    (resource,) = tenant.make_resources(1)
    old = [tenant.book(resource_id=resource, **span(12 + n))["id"] for n in range(clients)]

    answers = tenant.race_each([tenant.move(booking, span(10)) for booking in old])

    times = [tenant.call("GET", f"/bookings/{booking}").data["event"]["start"] for booking in old]
    assert times == [
        span(10 if answer.status == 200 else 12 + n)["start"] for n, answer in enumerate(answers)
    ]
    return result_of(tenant, answers, [resource])


def race_round_robin(
    tenant: LiveTenant, *, resources: int = 5, clients: int = 12, mode: str = "roundrobin_random"
) -> Result:
    """Clients book a project at one time; there are fewer resources than clients."""
    ids = tenant.make_resources(resources)
    project = tenant.make_project(ids, mode)

    answers = tenant.race_each([tenant.booking(project_id=project, **span(10))] * clients)

    return result_of(tenant, answers, ids)


def race_mutual(tenant: LiveTenant, *, rounds: int = 4, slots: int = 3) -> Result:
    """Three projects that want several resources each, every two of them one in common."""
    a, b, c, d = ids = tenant.make_resources(4)
    projects = [
        tenant.make_project(members, "mutual") for members in ([a, b, c], [c, b, d], [d, a, b])
    ]
    scripts = [
        [tenant.booking(project_id=project, **span(10 + slot)) for slot in range(slots)]
        for project in projects * rounds
    ]

    answers = tenant.race(scripts)

    return result_of(tenant, answers, ids)


def outcome(*, held: int, **counts: int) -> Result:
    """`outcome(held=1, made=1, refused=79)`: without overlaps."""
    names = {"made": "201", "done": "200", "refused": "409 slot_taken"}
    return Result(Counter({names[name]: count for name, count in counts.items()}), held, 0)


def race_of_series(tenant: LiveTenant, *, clients: int = 8) -> Result:
    """Series of three days are all moved to the same hours."""
    (resource,) = ids = tenant.make_resources(1)
    series = [
        tenant.book(resource_id=resource, **span(n), recurrence="FREQ=DAILY;COUNT=3")["id"]
        for n in range(clients)
    ]

    answers = tenant.race_each([tenant.move(one, span(12), scope="all") for one in series])

    return result_of(tenant, answers, ids)


# Every race with what it ends in where one of the two protections is there.
RACES = [
    (race_for_one_slot, outcome(made=1, refused=79, held=1)),
    (race_for_places, outcome(made=3, refused=21, held=3)),
    (race_for_required, outcome(made=2, refused=22, held=4)),
    (race_for_visits, outcome(made=2, refused=22, held=4)),
    (race_for_sent_requirements, outcome(made=4, refused=156, held=8)),
    (race_for_shifted_slots, outcome(made=12, refused=84, held=12)),
    (race_to_confirm, outcome(done=1, refused=7, held=1)),
    (race_to_one_time, outcome(done=1, refused=7, held=8)),
    (race_of_series, outcome(done=1, refused=7, held=24)),
    (race_round_robin, outcome(made=5, refused=7, held=5)),
    (race_mutual, outcome(made=3, refused=33, held=9)),
]
RunRace = Callable[[LiveTenant], Result]
every_race = pytest.mark.parametrize(
    ("run_race", "expected"), RACES, ids=[race.__name__ for race, _ in RACES]
)
# The others with one protection or none: with --deep.
IN_EVERY_RUN = (
    *(race_for_places, race_for_sent_requirements),
    *(race_to_confirm, race_round_robin),
)
some_races = pytest.mark.parametrize(
    ("run_race", "expected"),
    [
        pytest.param(race, result, marks=() if race in IN_EVERY_RUN else pytest.mark.deep)
        for race, result in RACES
    ],
    ids=[race.__name__ for race, _ in RACES],
)


@pytest.mark.every_case
@every_race
def test_concurrent_requests_book_a_time_once(
    live_tenant: LiveTenant, run_race: RunRace, expected: Result
) -> None:
    assert run_race(live_tenant) == expected


@some_races
def test_without_database_guard_time_is_booked_once(
    lock_only: LiveTenant, run_race: RunRace, expected: Result
) -> None:
    assert run_race(lock_only) == expected


@some_races
def test_without_locks_database_guard_prevents_overlaps(
    guard_only: LiveTenant, run_race: RunRace, expected: Result
) -> None:
    result = run_race(guard_only)

    # Without an order of locks PostgreSQL breaks deadlocks, whose victims may be told to try again.
    known = {*expected.outcomes, "503 unavailable"}
    assert (result.overlaps, result.outcomes.keys() - known) == (0, set()), result
    assert 0 < result.held <= expected.held


@some_races
def test_control_without_locks_and_guard_time_is_booked_twice(
    unprotected: LiveTenant, run_race: RunRace, expected: Result
) -> None:
    result = run_race(unprotected)

    assert result.overlaps > 0, result


# --- More of them, as the service is --------------------------------------------------------------
@pytest.mark.deep
def test_one_slot_is_booked_once_by_many(live_tenant: LiveTenant) -> None:
    result = race_for_one_slot(live_tenant, clients=64, tries=20)

    assert result == outcome(made=1, refused=1279, held=1)


@pytest.mark.deep
def test_places_are_booked_up_to_the_capacity(live_tenant: LiveTenant) -> None:
    result = race_for_places(live_tenant, clients=50, tries=20)

    assert result == outcome(made=3, refused=997, held=3)


@pytest.mark.deep
def test_fifty_clients_for_two_dentists_and_a_room(live_tenant: LiveTenant) -> None:
    result = race_for_required(live_tenant, clients=50, tries=20)

    assert result == outcome(made=2, refused=998, held=4)


@pytest.mark.deep
def test_shifted_slots_are_booked_once_by_many(live_tenant: LiveTenant) -> None:
    result = race_for_shifted_slots(live_tenant, clients=32, slots=50)

    assert result == outcome(made=50, refused=1550, held=50)


def test_refusals_name_conflicts_and_alternatives(live_tenant: LiveTenant) -> None:
    (resource,) = live_tenant.make_resources(1)
    book = live_tenant.booking(resource_id=resource, **span(10))

    answers = live_tenant.race_each([book] * 8)

    bodies = [answer.json for answer in answers if answer.status != 201]
    for body in bodies:
        del body["request_id"]
    assert (
        bodies
        == [
            {
                "error": "The time is taken.",
                "code": "slot_taken",
                "conflicts": [span(10)],
                "alternatives": [span(11), span(12), span(13)],
            }
        ]
        * 7
    )


def test_adjacent_slots_are_all_booked(live_tenant: LiveTenant) -> None:
    (resource,) = live_tenant.make_resources(1)
    hours = [10, 11, 9, 12, 8, 13, 7, 14]
    books = [live_tenant.booking(resource_id=resource, **span(hour)) for hour in hours]

    answers = live_tenant.race_each(books)

    assert result_of(live_tenant, answers, [resource]) == outcome(made=8, held=8)


@pytest.mark.parametrize("clients", [2, pytest.param(16, marks=pytest.mark.deep)])
def test_only_one_of_overlapping_requests_is_confirmed(
    live_tenant: LiveTenant, clients: int
) -> None:
    result = race_to_confirm(live_tenant, clients=clients)

    assert result == outcome(done=1, refused=clients - 1, held=1)


def test_bookings_that_swap_resources_all_move(live_tenant: LiveTenant) -> None:
    """Each move locks both resources; two in opposite directions must not wait for each other."""
    ada, ben = live_tenant.make_resources(2)
    moves = []
    for n in range(8):
        here, there = (ada, ben) if n % 2 else (ben, ada)
        booking = live_tenant.book(resource_id=here, **span(n))["id"]
        moves.append(live_tenant.move(booking, span(n + 10), resource_id=there))

    answers = live_tenant.race_each(moves)

    assert result_of(live_tenant, answers, [ada, ben]) == outcome(done=8, held=8)


def test_round_robin_by_priority_gives_every_resource_once(live_tenant: LiveTenant) -> None:
    result = race_round_robin(live_tenant, mode="roundrobin_prioritized")

    assert result == outcome(made=5, refused=7, held=5)


@pytest.mark.parametrize("tries", [13, pytest.param(125, marks=pytest.mark.deep)])
def test_fair_requirement_shares_concurrent_bookings(live_tenant: LiveTenant, tries: int) -> None:
    """Eight clients book different times, so that everybody is free for each of them."""
    clients = 8
    room, engineers = live_tenant.make_resources(1), live_tenant.make_resources(3)
    weights = {engineers[0]: 2}
    requires = [
        {"name": "room", "any_of": room},
        {"name": "engineer", "any_of": engineers, "mode": "fair", "weights": weights},
    ]
    terms = {"length": "15 mins"}
    given = {"name": "Interview", "requires": requires, "availability": terms}
    project = live_tenant.call("POST", "/projects", given).data["id"]
    scripts = [
        [
            live_tenant.booking(project_id=project, **span((attempt * clients + n) / 4, 0.25))
            for attempt in range(tries)
        ]
        for n in range(clients)
    ]

    answers = live_tenant.race(scripts)

    total = clients * tries
    shares = Counter(str(row[0]) for row in live_tenant.held(engineers))
    assert count_outcomes(answers) == {"201": total}
    assert [total // 2, total // 4, total // 4] == [
        pytest.approx(shares[each], abs=1) for each in engineers
    ]


# --- Rules that no guard knows: the lock alone decides --------------------------------------------
def race_for_a_days_limit(tenant: LiveTenant) -> Result:
    """A dozen different hours of a day on which the project allows three bookings."""
    ids = tenant.make_resources(1)
    limited = {"settings": {"max_per_day": 3}}
    project = tenant.make_project(ids, "roundrobin_random", **limited)
    books = [tenant.booking(project_id=project, **span(hour)) for hour in range(12)]

    return result_of(tenant, tenant.race_each(books), ids)


def race_for_turns(tenant: LiveTenant) -> Counter[int]:
    """Twelve different hours for three resources: how many bookings each gets."""
    ids = tenant.make_resources(3)
    project = tenant.make_project(ids, "roundrobin_fair")
    books = [tenant.booking(project_id=project, **span(hour)) for hour in range(12)]

    tenant.race_each(books)

    return Counter(len(tenant.held([resource])) for resource in ids)


def test_bookings_at_once_are_shared_fairly(live_tenant: LiveTenant) -> None:
    assert race_for_turns(live_tenant) == Counter({4: 3})


def test_control_without_lock_turns_repeat(unprotected: LiveTenant) -> None:
    assert race_for_turns(unprotected) != Counter({4: 3})


def race_for_a_customers_limit(tenant: LiveTenant) -> Counter[str]:
    """Six resources at once for one customer, whom the project allows two open bookings, and who
    types another `+tag` each time.
    """
    ids = tenant.make_resources(6)
    project = tenant.make_project(ids, "exclusive", settings={"max_open_per_customer": 2})
    books = [
        tenant.booking(
            project_id=project,
            resource_id=resource,
            customer={"name": "Marty", "email": f"marty+{hour}@example.com"},
            **span(hour),
        )
        for hour, resource in enumerate(ids)
    ]

    return count_outcomes(tenant.race_each(books))


def test_limit_per_customer_is_kept(live_tenant: LiveTenant) -> None:
    assert race_for_a_customers_limit(live_tenant) == Counter({"201": 2, "409 policy": 4})


# They change one row for several bookings, by chance of a tally.
LOCKING_TRIGGERS = (
    ("bookings_booking", "tally_bookings_insert"),
    ("bookings_appcustomer", "tally_customers"),
    ("notifications_delivery", "tally_deliveries"),
)


@pytest.mark.postgresql
def test_control_without_lock_limit_per_customer_is_exceeded(
    faulty_tenant: LiveTenant, tmp_path: Path
) -> None:
    """SQLite has one writer at a time."""
    counts = r'SELECT DISTINCT "bookings_customer"."limit_key"'
    for table, trigger in LOCKING_TRIGGERS:
        faulty_tenant.rows(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
    try:
        unlocked = faulty_tenant.with_faults(unlocked=True, at=counts, meet=str(tmp_path))
        outcomes = race_for_a_customers_limit(unlocked)
    finally:
        for table, trigger in LOCKING_TRIGGERS:
            faulty_tenant.rows(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")

    assert outcomes["201"] > 2  # as many as met before the count


def race_into_each_others_buffer(tenant: LiveTenant) -> Result:
    """Two hours that touch, where the project wants half an hour between two bookings.

    An earlier booking has raised the resource's longest buffer: the row that this writes would make
    the race's bookings wait for each other.
    """
    ids = tenant.make_resources(1)
    spaced = {"mode": "roundrobin_random", "buffer": "30 minutes"}
    project = tenant.make_project(ids, "", availability=spaced)
    tenant.book(project_id=project, **span(20))
    books = [tenant.booking(project_id=project, **span(10 + n % 2)) for n in range(12)]

    return result_of(tenant, tenant.race_each(books), ids)


def test_limit_per_day_is_kept(live_tenant: LiveTenant) -> None:
    result = race_for_a_days_limit(live_tenant)

    assert result == Result(Counter({"201": 3, "409 not_available": 9}), held=3, overlaps=0)


def test_control_without_lock_limit_per_day_is_exceeded(unprotected: LiveTenant) -> None:
    assert race_for_a_days_limit(unprotected).held > 3


def test_buffer_is_kept_between_concurrent_bookings(live_tenant: LiveTenant) -> None:
    result = race_into_each_others_buffer(live_tenant)

    outcomes = Counter({"201": 1, "409 slot_taken": 5, "409 not_available": 6})
    assert result == Result(outcomes, held=2, overlaps=0)


def test_control_without_lock_buffer_is_violated(unprotected: LiveTenant) -> None:
    assert race_into_each_others_buffer(unprotected).held > 2


def test_concurrent_meta_updates_are_all_kept(live_tenant: LiveTenant) -> None:
    (resource,) = live_tenant.make_resources(1)
    path = f"/bookings/{live_tenant.book(resource_id=resource, **span(10))['id']}"
    notes = {f"note {n}": f"text {n}" for n in range(12)}

    live_tenant.race_each(
        [live_tenant.request("PUT", path, {"meta": {key: text}}) for key, text in notes.items()]
    )

    assert live_tenant.call("GET", path).data["meta"] == notes


def test_day_of_the_races_is_offered(live_tenant: LiveTenant) -> None:
    project = live_tenant.make_project(live_tenant.make_resources(1), "mutual")

    slots = live_tenant.call("POST", "/availability", {"project_id": project}).data

    assert DAY.isoformat() in {slot["start"] for slot in slots}
