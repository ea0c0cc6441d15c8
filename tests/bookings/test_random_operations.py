"""After any number of operations by any number of clients, everything still fits together."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

import psutil
import pytest

from bookings.graphs import GRAPHS, INITIALIZED
from bookings.services import COMPLETES_AFTER
from tests.bookings.race_tenant import (
    DAY,
    DROP_GUARD,
    LiveTenant,
    count_overlaps,
    open_database,
    span,
)
from tests.bookings.random_operations import Job, run_operations
from tests.delivery_faults import live_delivery_faults
from tests.services import Service

pytestmark = pytest.mark.both_databases

SEED = 20261120
REFUSALS = {
    *("slot_taken", "not_available", "action_not_allowed", "not_found", "invalid", "in_use"),
    *("group_full", "hold_expired", "policy"),
}
# What 400 operations are sure to contain, and what only many thousands are.
FREQUENT = {"book ok", "act ok", "move ok", "book slot_taken"}
RARE = {"hide ok", "resize ok", "sweep ok", "act slot_taken", "move slot_taken"}

# Of one unit of a resource: unit 0 is the exclusive events.
GUARDED = """
SELECT CAST(resource_id AS text) || ' ' || unit, start, "end" FROM availability_event
WHERE exclusive OR (busy AND unit > 0)
"""
WRONG_UNITS = """
SELECT event.id FROM availability_event AS event
JOIN availability_resource AS resource ON resource.id = event.resource_id
WHERE event.unit < 0 OR event.unit >= resource.capacity
   OR (event.unit > 0 AND (event.exclusive OR NOT event.busy))
"""
TORN_COMPANIONS = """
SELECT companion.id FROM availability_event AS companion
JOIN availability_event AS main ON main.id = companion.main_id
WHERE main.step IS NULL AND (
    companion.busy <> main.busy
    OR (companion.exclusive OR companion.unit > 0) <> (main.exclusive OR main.unit > 0)
    OR companion.requirement IS NULL
        AND (companion.start <> main.start OR companion."end" <> main."end")
)
"""
CROWDED_GROUPS = """
SELECT owner.id FROM bookings_booking AS seat
JOIN bookings_booking AS owner ON owner.id = seat.owner_booking_id
WHERE NOT seat.completed GROUP BY owner.id, owner.max_seats HAVING count(*) > owner.max_seats
"""
# The time of a seat is its group's: what blocks there is the owner's booking. Seats that had ended
# before their group was moved keep the old time, which blocks nothing.
BOOKINGS = """
SELECT booking.id, booking.graph, booking.state, booking.completed, booking.completes_at,
    booking.reschedules, COALESCE(owner.graph, booking.graph),
    COALESCE(owner.state, booking.state),
    COALESCE(owner.allow_double_bookings, booking.allow_double_bookings), project.settings,
    event.busy, event.exclusive OR event.unit > 0, event.of_ended_seats, event."end"
FROM bookings_booking AS booking
LEFT JOIN bookings_booking AS owner ON owner.id = booking.owner_booking_id
JOIN availability_event AS event ON event.id = booking.event_id
LEFT JOIN availability_project AS project ON project.id = booking.project_id
WHERE event.step IS NULL ORDER BY booking.id
"""
STEPS = """
SELECT booking_id, from_state, action, to_state FROM bookings_statechange ORDER BY booking_id, id
"""
LISTING_TALLIES = """
SELECT app_id, part, sum(count) FROM apps_config_listingtally WHERE listing = '{}'
GROUP BY app_id, part
"""
# The rows of each list, by app and part.
LISTED = {
    "bookings": """
SELECT app_id, state, count(*) FROM bookings_booking WHERE deleted_at IS NULL GROUP BY 1, 2
""",
    "customers": "SELECT app_id, '', count(*) FROM bookings_appcustomer GROUP BY 1",
    "deliveries": """
SELECT app_id, type || ':' || replace(coalesce(CAST(webhook_id AS text), ''), '-', ''), count(*)
FROM notifications_delivery GROUP BY 1, 2
""",
}
CUSTOMERS = """
SELECT app_id, address, bookings, first_booking_at, last_booking_at FROM bookings_appcustomer
"""
COUNTED_CUSTOMERS = """
SELECT booking.app_id, customer.address, count(DISTINCT booking.id),
    min(booking.created_at), max(booking.created_at)
FROM bookings_customer AS customer JOIN bookings_booking AS booking
    ON booking.id = customer.booking_id
WHERE customer.address <> '' AND booking.deleted_at IS NULL GROUP BY 1, 2
"""


Rows = Callable[[str], list[tuple[Any, ...]]]


def find_faults(rows: Rows) -> dict[str, Any]:
    """What does not fit together in the whole database; nothing where all is well."""
    steps: dict[Any, list] = {}
    for booking_id, *step in rows(STEPS):
        steps.setdefault(booking_id, []).append(step)
    faults: dict[str, Any] = {
        "overlaps": count_overlaps(rows(GUARDED)),
        "units": rows(WRONG_UNITS),
        "companions": rows(TORN_COMPANIONS),
        "groups": rows(CROWDED_GROUPS),
        "customers": set(rows(CUSTOMERS)) ^ set(rows(COUNTED_CUSTOMERS)),
    }
    for listing, counted in LISTED.items():
        tallied = rows(LISTING_TALLIES.format(listing))
        faults[f"list of {listing}"] = find_wrong_numbers(tallied, rows(counted))
    for booking_id, *booking in rows(BOOKINGS):
        for name in faults_of(booking, steps.get(booking_id, [])):
            faults.setdefault(name, []).append(booking_id)
    return {name: found for name, found in faults.items() if found}


def find_wrong_numbers(tallies: list[tuple], counts: list[tuple]) -> dict[Any, Any]:
    tallied = {tuple(key): number for *key, number in tallies if number}
    counted = {tuple(key): number for *key, number in counts}
    return {
        key: (tallied.get(key), counted.get(key))
        for key in tallied.keys() | counted.keys()
        if tallied.get(key) != counted.get(key)
    }


def faults_of(booking: list[Any], steps: list[list[str]]) -> list[str]:
    name, state, completed, completes_at, reschedules, *of_time, end = booking
    holder, holder_state, double, settings, busy, exclusive, of_ended_seats = of_time
    graph = GRAPHS[name]
    settings = json.loads(settings) if isinstance(settings, str) else settings or {}
    blocks = not of_ended_seats and GRAPHS[holder].blocks(
        holder_state, pending_blocks=bool(settings.get("pending_blocks"))
    )
    completes = instant(end) + COMPLETES_AFTER if graph.is_live(state) else None
    holds = {
        "busy": busy == blocks,
        "exclusive": exclusive == (blocks and not double),
        "completed": completed == graph.is_completed(state),
        "completes_at": (completes_at and instant(completes_at)) == completes,
        "history": [to for _, _, to in steps][-1:] == [state] and is_chain(steps, graph.steps),
        "reschedules": [action for _, action, _ in steps].count("reschedule") == reschedules,
    }
    return [name for name, is_so in holds.items() if not is_so]


KEEP_STATE = ("reschedule", "reassign", "update")


def is_chain(steps: list[list[str]], allowed: Any) -> bool:
    """Every step begins where the last one ended, and is one of the graph, a move or an edit."""
    states = [INITIALIZED, *(to for _, _, to in steps)]
    return all(
        start == before
        and (to == start if action in KEEP_STATE else allowed.get((start, action)) == to)
        for before, (start, action, to) in zip(states, steps, strict=False)
    )


def instant(value: datetime | str) -> datetime:
    """SQLite keeps instants as text without their zone, which is UTC."""
    return datetime.fromisoformat(value).replace(tzinfo=UTC) if isinstance(value, str) else value


def make_job(tenant: LiveTenant, operations: int, *, is_cut: bool = False) -> Job:
    """Eight resources of several capacities, projects of every mode that share some of them, and
    eight clients, one of them over HTTP; all of them if their requests are cut.
    """
    resources = [tenant.make_resource(capacity=number) for number in (1, 2, 1, 3, 1, 1, 5, 2)]
    ids = [resource["id"] for resource in resources]
    unruled = {"settings": {"enforce_availability": False}}
    pending = {"settings": {"enforce_availability": False, "pending_blocks": True}}
    return Job(
        slug=tenant.slug,
        key=tenant.key,
        url=tenant.service.url,
        headers=tenant.headers,
        resources=ids,
        calendars=[resource["calendars"][0]["id"] for resource in resources],
        projects=[
            (tenant.make_project(ids, "exclusive", **pending), True),
            (tenant.make_project(ids[:4], "roundrobin_random"), False),
            (tenant.make_project(ids[2:6], "roundrobin_prioritized", **unruled), False),
            (tenant.make_project(ids[:3], "mutual", **unruled), False),
            (tenant.make_project([ids[3], ids[2], ids[1]], "mutual", **pending), False),
        ],
        shares=[operations // 8] * 8,
        over_http=8 if is_cut else 1,
        seed=SEED,
    )


@pytest.mark.parametrize(
    "operations",
    [
        400,
        pytest.param(100_000, marks=[pytest.mark.deep, pytest.mark.postgresql]),
        pytest.param(20_000, marks=[pytest.mark.deep, pytest.mark.sqlite]),
    ],
)
def test_data_is_consistent_after_random_operations(live_service: Service, operations: int) -> None:
    tenant = LiveTenant(live_service)

    outcomes = run_operations(make_job(tenant, operations), live_service)

    print(sorted(outcomes.items()))
    kinds = Counter(outcome.split()[0] for outcome in outcomes.elements())
    refusals = {outcome.split()[1] for outcome in outcomes} - {"ok", "nothing"}
    assert find_faults(tenant.rows) == {}
    assert kinds.total() == operations
    assert refusals <= REFUSALS
    expected = FREQUENT if operations == 400 else FREQUENT | RARE
    assert expected <= outcomes.keys(), outcomes
    assert live_delivery_faults(live_service) == "[]"


@pytest.mark.deep
@pytest.mark.postgresql  # SQLite has one writer: its kills are those of test_crashes.py
def test_data_is_consistent_after_killed_workers(live_service: Service) -> None:
    """Web workers are killed while they serve; a request without an answer may have happened."""
    tenant = LiveTenant(live_service)
    job = make_job(tenant, 5000, is_cut=True)

    with killing_web_workers(live_service, every=2):
        outcomes = run_operations(job, live_service)

    print(sorted(outcomes.items()))
    refusals = {outcome.split()[1] for outcome in outcomes} - {"ok", "nothing"}
    assert find_faults(tenant.rows) == {}
    assert outcomes.total() == 5000
    assert "cut" in refusals <= REFUSALS | {"cut", "busy"}
    assert outcomes.keys() >= FREQUENT, outcomes
    assert live_delivery_faults(live_service) == "[]"


@contextmanager
def killing_web_workers(service: Service, every: float) -> Iterator[None]:
    """Inside the block, one web worker after another dies, each `every` seconds."""
    ended = Event()

    def kill() -> None:
        chosen = random.Random(SEED)
        while not ended.wait(every):
            workers = psutil.Process(service.processes["web"].pid).children()
            with suppress(psutil.NoSuchProcess, IndexError):
                chosen.choice(workers).kill()

    killer = Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        ended.set()
        killer.join()


# --- The control: what does not fit together is found ---------------------------------------------
BOOKING = "UPDATE bookings_booking SET {change} WHERE id = '{booking}'"
EVENT = "UPDATE availability_event SET {change} WHERE id = '{event}'"
STEP = "UPDATE bookings_statechange SET {change} WHERE booking_id = '{booking}'"
# On SQLite? Then this, else that: the history is append-only.
DROP_LOG_GUARD = {
    True: "DROP TRIGGER log_append_only",
    False: "DROP TRIGGER log_append_only ON bookings_statechange",
}
LISTING_TALLY = (
    "UPDATE apps_config_listingtally SET {change} WHERE id ="
    " (SELECT max(id) FROM apps_config_listingtally WHERE listing = '{}' AND count <> 0)"
)
CUSTOMER = "UPDATE bookings_appcustomer SET {change}"

CORRUPTIONS = [
    (EVENT, "busy = FALSE, exclusive = FALSE", {"busy", "companions", "exclusive"}),
    (EVENT, "exclusive = FALSE", {"companions", "exclusive"}),
    (EVENT, "busy = FALSE, exclusive = FALSE, unit = 1", {"busy", "companions", "units"}),
    (EVENT, "start = '{start}'", {"companions", "overlaps"}),
    (BOOKING, "completed = TRUE", {"completed"}),
    (BOOKING, "completes_at = NULL", {"completes_at"}),
    (BOOKING, "reschedules = 1", {"reschedules"}),
    (BOOKING, "reschedules = 1, completed = TRUE", {"completed", "reschedules"}),
    (STEP, "to_state = 'cancelled'", {"history"}),
    (STEP, "from_state = 'tentative'", {"history"}),
    (STEP, "action = 'cancel'", {"history"}),
    *(
        (LISTING_TALLY.format(listing, change="{change}"), change, {f"list of {listing}"})
        for listing in ("bookings", "customers", "deliveries")
        for change in ("count = count + 1", "part = 'other'")
    ),
    (CUSTOMER, "bookings = bookings + 1", {"customers"}),
    (CUSTOMER, "first_booking_at = '2020-01-01'", {"customers"}),
]


@pytest.fixture(scope="module")
def sound(live_tenant: LiveTenant) -> dict[str, Any]:
    """The ids of a mutual booking right after another of its resource, where all is well."""
    resources = live_tenant.make_resources(2)
    settings = {"enforce_availability": False}
    project = live_tenant.make_project(resources, "mutual", settings=settings)
    live_tenant.book(resource_id=resources[0], **span(10))
    booking = live_tenant.book(project_id=project, **span(11))["id"]
    find = "SELECT event_id FROM bookings_booking WHERE id = ?"
    ((event,),) = live_tenant.rows(find, live_tenant.id(booking))
    words = {"booking": live_tenant.id(booking), "event": event}
    words["start"] = (DAY + timedelta(hours=10.5)).strftime("%Y-%m-%d %H:%M:%S")
    assert find_faults(live_tenant.rows) == {}
    return words


@pytest.mark.every_case
@pytest.mark.parametrize(("statement", "change", "names"), CORRUPTIONS)
def test_control_inconsistent_data_is_found(
    live_tenant: LiveTenant,
    sound: dict[str, Any],
    statement: str,
    change: str,
    names: set[str],
) -> None:
    """In rows that are never committed."""
    with open_database(live_tenant.service.database_url) as database:
        database.execute("BEGIN")
        is_sqlite = live_tenant.is_sqlite
        for guard in (*DROP_GUARD[is_sqlite], DROP_LOG_GUARD[is_sqlite]):
            database.execute(guard)
        database.execute(statement.format(change=change, **sound).format(**sound))
        found = find_faults(lambda sql: database.execute(sql).fetchall())
        database.execute("ROLLBACK")

    assert found.keys() == names
