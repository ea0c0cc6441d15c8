"""The number of queries of an answer does not grow with its rows, resources or events."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from hypothesis import settings

from apps_config.models import Account, Membership
from availability.core.constraints import parse_constraints
from availability.models import Calendar, Event, Resource
from availability.services import create_project, create_resource
from bookings.serializers.responses import INCLUDES
from notifications.models import Attempt, Delivery
from tests.bookings.group_world import make_group, seat_in
from tests.queries import Queries
from tests.world import Tenant

pytestmark = pytest.mark.both_databases

OPENING = [{"block_weekends": {}}, {"allow_hours": {"start": 9, "end": 17}}]
REMINDERS = [
    {
        "type": "email",
        "settings": {"recipient": recipient},
        "when": {"type": "before", "unit": "mins", "time": 60},
    }
    for recipient in ("customer", "owner")
]
START = datetime(2030, 1, 7, 9, tzinfo=UTC)


def make_resources(tenant: Tenant, count: int) -> list[Resource]:
    return [
        create_resource(
            app=tenant.app,
            given={
                "name": f"R{number}",
                "timezone": "Europe/Berlin",
                "availability_constraints": parse_constraints(OPENING),
            },
        )[0]
        for number in range(count)
    ]


def make_events(resources: list[Resource], count: int) -> None:
    for calendar in Calendar.objects.filter(resource__in=resources):
        Event.objects.bulk_create(
            Event(
                app_id=calendar.app_id,
                calendar=calendar,
                resource_id=calendar.resource_id,
                what="Busy",
                start=START + timedelta(hours=number),
                end=START + timedelta(hours=number, minutes=30),
            )
            for number in range(count)
        )


def connect_calendars(resources: list[Resource], count: int) -> None:
    """So many of each resource, all of them stale."""
    Calendar.objects.bulk_create(
        Calendar(app_id=resource.app_id, resource=resource, name=f"C{number}", provider="caldav")
        for resource in resources
        for number in range(count)
    )


def make_bookings(tenant: Tenant, count: int) -> None:
    """Each with two customers and two reminders, on a resource and a project of its own."""
    for number, resource in enumerate(make_resources(tenant, count)):
        project = create_project(
            app=tenant.app, given={"name": f"P{number}", "resources": [resource.id]}
        )
        people = [{"name": name, "email": f"{name}@example.com"} for name in ("ann", "bob")]
        answer = tenant.post(
            "/bookings",
            {
                "what": "Meeting",
                "project_id": str(project.id),
                "resource_id": str(resource.id),
                "start": START.isoformat(),
                "end": (START + timedelta(hours=1)).isoformat(),
                "customers": people,
                "event_notifications": REMINDERS,
                "settings": {"enforce_availability": False},
            },
        )
        assert answer.status == 201, answer.json


def queries_of(call: Callable[[], Any]) -> int:
    """How many queries an answer takes."""
    with Queries(connection) as queries:
        answer = call()
    assert answer.status == 200, answer.json
    return len(queries)


@pytest.fixture
def fill_tenant(make_tenant: Callable[..., Tenant]) -> Callable[..., Tenant]:
    """fill_tenant(make, rows): a tenant in which `make(tenant, rows)` was done."""

    def fill(make: Callable[[Tenant, int], Any], rows: int) -> Tenant:
        tenant = make_tenant()
        make(tenant, rows)
        tenant.get("/app")  # the minute's note of the key's use
        return tenant

    return fill


def make_some_events(tenant: Tenant, count: int) -> None:
    make_events(make_resources(tenant, 2), count)


def make_deliveries(tenant: Tenant, count: int) -> None:
    """Webhooks, and mails and calls of as many bookings, each with two tries."""
    for number in range(count):
        webhook = {"url": f"https://example.com/{number}", "states": ["confirmed"]}
        assert tenant.post("/webhooks", webhook).status == 201
    make_bookings(tenant, count)
    Attempt.objects.bulk_create(
        Attempt(
            app_id=delivery.app_id,
            delivery=delivery,
            at=START,
            seconds=0.1,
            error="The server returned 500.",
            excerpt="x",
        )
        for delivery in Delivery.objects.filter(app=tenant.app)
        for _ in range(2)
    )


def make_groups(tenant: Tenant, count: int) -> None:
    """Each with seats left, and with one to three taken."""
    for number, resource in enumerate(make_resources(tenant, count)):
        group = make_group(
            tenant,
            {"id": str(resource.id)},
            max_seats=count + 1,
            start=START.isoformat(),
            end=(START + timedelta(hours=1)).isoformat(),
        )
        for _ in range(min(number + 1, 3)):
            seat_in(tenant, group)


ROWS = (1, 3, 12) if settings().max_examples > 100 else (1, 3)  # more with --deep
LISTINGS = {
    make_resources: (
        "/resources",
        "/resources?include=calendars,availability_constraints",
        "/calendars",
    ),
    make_some_events: ("/events?start=2029-01-01T00:00:00Z&end=2031-01-01T00:00:00Z",),
    make_bookings: (
        "/projects",
        "/projects?include=resources,availability_constraints",
        "/bookings",
        "/bookings?state=confirmed",
        "/bookings?search=customer.email:ann@*&orderBy=event.start",
        "/customers",
        "/customers?search=email:ANN@*;name:a*",
        *(f"/bookings?include={name}" for name in INCLUDES),
        f"/bookings?include={','.join(INCLUDES)}",
    ),
    make_groups: (
        "/bookings/groups",
        f"/bookings/groups?include={','.join(INCLUDES)}",
        "/bookings?include=owner_booking",
    ),
    make_deliveries: ("/webhooks", "/deliveries", "/deliveries?type=webhook&state=scheduled"),
}


@pytest.mark.postgresql
def test_a_booking_takes_ten_statements(tenant: Tenant) -> None:
    """Key, calendar, lock, conflicts, event, booking, its rows, webhooks, calendars, deliveries.

    A booking with the app's reminders takes one more, which reads them.
    """
    resource = tenant.make_resource()
    body = {
        "resource_id": resource["id"],
        "start": "2030-01-07T09:00:00Z",
        "end": "2030-01-07T10:00:00Z",
        "what": "Check-up",
        "customer": {"name": "Marty", "email": "marty@example.com"},
        "event_notifications": [],
    }

    with Queries(connection) as queries:
        answer = tenant.post("/bookings", body)

    control = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
    sent = [query["sql"] for query in queries.captured_queries]
    assert answer.status == 201
    assert len([sql for sql in sent if not sql.startswith(control)]) == 10


@pytest.mark.parametrize("mode", ["mutual", "exclusive", "roundrobin_random"])
def test_query_count_of_a_project_booking_is_constant(tenant: Tenant, mode: str) -> None:
    counts = []
    for count in (2, 9):
        ids = [tenant.make_resource(f"Resource {number}")["id"] for number in range(count)]
        project = tenant.make_project(*ids, name=f"{count}", availability={"mode": mode})["id"]
        body = {
            "project_id": project,
            "start": "2030-01-07T09:00:00Z",
            "end": "2030-01-07T10:00:00Z",
            "what": "Check-up",
            "customer": {"name": "Marty", "email": "marty@example.com"},
            "settings": {"enforce_availability": False},
        }
        with Queries(connection) as queries:
            answer = tenant.post("/bookings", body)
        assert answer.status == 201, answer.json
        counts.append(len(queries))

    assert counts[0] == counts[1]


@pytest.mark.parametrize("make", LISTINGS)
def test_query_count_of_listings_is_constant(
    fill_tenant: Callable[..., Tenant], make: Callable[[Tenant, int], Any]
) -> None:
    counts: dict[str, list[int]] = {path: [] for path in LISTINGS[make]}

    for rows in ROWS:
        tenant = fill_tenant(make, rows)
        for path, found in counts.items():
            found.append(queries_of(partial(tenant.get, path)))

    assert counts == {path: [found[0]] * len(ROWS) for path, found in counts.items()}


def test_query_count_of_apps_is_constant(
    make_tenant: Callable[..., Tenant],
) -> None:
    counts = {}
    for rows in ROWS:
        tenant, email = make_tenant(), f"owner{rows}@example.com"
        member = tenant.member(email)
        for other in [make_tenant() for _ in range(rows - 1)]:
            Membership.objects.create(account=Account.objects.get(email=email), app=other.app)
            other.put(f"/apps/{other.app.slug}", {"event_notifications": REMINDERS})
        assert member.get("/apps").json["total"] == rows
        counts[rows] = queries_of(partial(member.get, "/apps"))

    assert counts == dict.fromkeys(ROWS, counts[1])


def test_query_count_of_project_resources_is_constant(
    fill_tenant: Callable[..., Tenant],
) -> None:
    def make(tenant: Tenant, count: int) -> None:
        tenant.make_project(*(str(resource.id) for resource in make_resources(tenant, count)))

    counts = {}
    for rows in ROWS:
        tenant = fill_tenant(make, rows)
        path = f"/projects/{tenant.app.projects.get().id}/resources"
        counts[rows] = queries_of(partial(tenant.get, path))

    assert counts == dict.fromkeys(ROWS, counts[1])


def test_each_include_takes_at_most_one_query(fill_tenant: Callable[..., Tenant]) -> None:
    tenant = fill_tenant(make_bookings, 2)
    plain = queries_of(partial(tenant.get, "/bookings"))

    extra = {
        name: queries_of(partial(tenant.get, f"/bookings?include={name}")) - plain
        for name in INCLUDES
    }

    assert {name: more for name, more in extra.items() if more > 1} == {}


def test_query_count_of_one_booking_is_constant(
    fill_tenant: Callable[..., Tenant],
) -> None:
    counts = {}
    for rows in (1, 3):
        tenant = fill_tenant(make_bookings, rows)
        path = f"/bookings/{tenant.get('/bookings?limit=1').data[0]['id']}"
        counts[rows] = queries_of(partial(tenant.get, path))

    assert counts == dict.fromkeys((1, 3), counts[1])


@pytest.mark.usefixtures("expanded_calls")
def test_query_count_of_deliveries_is_constant(
    fill_tenant: Callable[..., Tenant],
) -> None:
    counts = {}
    for rows in (1, 3):
        tenant = fill_tenant(make_deliveries, rows)
        webhook = tenant.get("/webhooks").data[-1]
        path = f"/webhooks/{webhook['id']}/deliveries"
        assert tenant.get(path).json["total"] == rows
        delivery = tenant.get(path).data[0]
        paths = (path, f"/deliveries/{delivery['id']}")
        counts[rows] = [queries_of(partial(tenant.get, path)) for path in paths]

    assert counts == dict.fromkeys((1, 3), counts[1])


# --- Many seats -----------------------------------------------------------------------------------
LATER = {
    "start": (START + timedelta(hours=3)).isoformat(),
    "end": (START + timedelta(hours=4)).isoformat(),
}


def make_big_group(tenant: Tenant, seats: int) -> str:
    """Its id; its owner and every customer are reminded, and a webhook hears of all."""
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    (resource,) = make_resources(tenant, 1)
    times = {"start": START.isoformat(), "end": (START + timedelta(hours=1)).isoformat()}
    group = make_group(
        tenant,
        {"id": str(resource.id)},
        max_seats=max(ROWS),
        event_notifications=REMINDERS,
        **times,
    )
    for _ in range(seats):
        seat_in(tenant, group, event_notifications=REMINDERS)
    return group["id"]


@pytest.mark.parametrize("step", ["reschedule", "cancel", "complete"])
def test_query_count_of_group_transitions_is_constant(
    make_tenant: Callable[..., Tenant], step: str
) -> None:
    counts = {}
    for seats in ROWS:
        tenant = make_tenant()
        path = f"/bookings/{make_big_group(tenant, seats)}/{step}"
        tenant.get("/app")
        counts[seats] = queries_of(partial(tenant.post, path, LATER))

    assert counts == dict.fromkeys(ROWS, counts[1])


# --- Free time ------------------------------------------------------------------------------------
ANSWERS = (
    "/availability",
    "/availability/dates",
    "/availability/count",
    "/availability/explain",
    "/unavailable/slots",
    "/findtime",
)
SIZES = ((1, 0), (1, 300), (3, 3), (12, 12))  # resources, and events of each


def question(path: str, ids: list[str]) -> dict[str, Any]:
    """Two weeks of those resources, as the path asks for them."""
    if path == "/findtime":
        return {"resource_ids": ids, "start": START.isoformat(), "future": "2 weeks"}
    end = START + timedelta(days=14)
    return {"resources": ids, "from": START.isoformat(), "to": end.isoformat()}


def test_query_count_of_availability_is_constant(
    make_tenant: Callable[..., Tenant],
) -> None:
    counts: dict[str, list[int]] = {path: [] for path in ANSWERS}

    for size, events in SIZES:
        tenant = make_tenant()
        resources = make_resources(tenant, size)
        make_events(resources, events)
        connect_calendars(resources, events)
        tenant.get("/app")
        for path, found in counts.items():
            body = question(path, [str(resource.id) for resource in resources])
            found.append(queries_of(partial(tenant.post, path, body)))

    assert counts == {path: [found[0]] * len(SIZES) for path, found in counts.items()}
    assert max(found[0] for found in counts.values()) <= 4


def test_query_count_of_project_slots_is_constant(
    fill_tenant: Callable[..., Tenant],
) -> None:
    def make(tenant: Tenant, count: int) -> None:
        resources = make_resources(tenant, count)
        make_events(resources, 10)
        tenant.make_project(*(str(resource.id) for resource in resources))

    counts = {}
    for rows in ROWS:
        tenant = fill_tenant(make, rows)
        body = {"project_id": str(tenant.app.projects.get().id)}
        counts[rows] = queries_of(partial(tenant.post, "/availability", body))

    assert counts == dict.fromkeys(ROWS, counts[1])


# --- Series ---------------------------------------------------------------------------------------
SERIES_CHANGES: dict[str, Callable[[Tenant, str], Any]] = {
    "move": lambda tenant, booking: tenant.post(
        f"/bookings/{booking}/reschedule",
        {"start": "2026-11-23T11:00:00Z", "end": "2026-11-23T11:30:00Z", "scope": "all"},
    ),
    "confirm": lambda tenant, booking: tenant.put(f"/bookings/{booking}/confirm", ALL),
    "cancel": lambda tenant, booking: tenant.put(f"/bookings/{booking}/cancel", ALL),
}
ALL = {"scope": "all"}


@pytest.mark.parametrize(
    ("mode", "longest"),
    [
        ("mutual", 36),
        pytest.param("mutual", 102, marks=pytest.mark.deep),
        pytest.param("mutual", 340, marks=pytest.mark.deep),
        pytest.param("exclusive", 340, marks=pytest.mark.deep),
    ],
)
@pytest.mark.usefixtures("clock")
def test_query_count_of_series_transitions_is_constant(
    tenant: Tenant, mode: str, longest: int
) -> None:
    """The tentative occurrences are moved, confirmed, moved again, cancelled."""
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    counts = {}
    for length in (12, longest):
        resources = [tenant.make_resource(name)["id"] for name in ("Ada", "Bob")]
        project = tenant.make_project(
            *resources,
            name=f"{mode} {length}",
            availability={
                "mode": mode,
                "length": "30 minutes",
                "to": "12 months",
                "buffer": "5 minutes",
            },
            settings={"max_per_day": 2},
            event_notifications=REMINDERS,
        )["id"]
        booking = tenant.book(
            project_id=project,
            graph="confirm_decline",
            start="2026-11-23T09:00:00Z",
            end="2026-11-23T09:30:00Z",
            recurrence=f"FREQ=DAILY;COUNT={length}",
        ).data["id"]
        for number, change in enumerate(("move", "confirm", "move", "cancel")):
            with Queries(connection) as queries:
                assert SERIES_CHANGES[change](tenant, booking).status == 200
            counts.setdefault((number, change), []).append(len(queries))

    assert {step: longer - shorter for step, (shorter, longer) in counts.items()} == dict.fromkeys(
        counts, 0
    )
