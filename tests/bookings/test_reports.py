"""Reports: the numbers of the daily table are those of the bookings themselves."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.utils import timezone

from bookings import graphs
from bookings.graphs import GRAPHS
from bookings.models import Booking, DailyTotal, ReportState, StateChange
from bookings.reports import columns, counting, figures
from bookings.reports.figures import REPORTS
from bookings.serializers.reports import ReportRowSerializer, SourcesSerializer
from tests.bookings.group_world import ANN, BOB, CYD, make_group, seat_in
from tests.queries import Queries
from tests.world import BERLIN, Answer, Caller, Tenant, at

pytestmark = pytest.mark.both_databases

WORKDAYS = [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 17}}]
RANGE = "from=2026-11-01&to=2027-01-01"
Count = Callable[[], None]


@pytest.fixture
def count(clock: Any, monkeypatch: pytest.MonkeyPatch) -> Count:
    """An hour later, the task has run."""
    monkeypatch.setattr(counting, "all_written_until", timezone.now)

    def count_later() -> None:
        clock.shift(3600)
        for _ in counting.count_reports(now=timezone.now()):
            pass

    return count_later


@pytest.fixture
def berlin(make_tenant: Callable[..., Tenant]) -> Tenant:
    tenant = make_tenant()
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": BERLIN}})
    tenant.app.refresh_from_db()
    return tenant


def booked(tenant: Tenant, resource: Any, start: str, minutes: int = 30, **given: Any) -> Any:
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    times = {"start": begin.isoformat(), "end": (begin + timedelta(minutes=minutes)).isoformat()}
    answer = tenant.book(resource_id=resource["id"], **times, **given)
    assert answer.status == 201, answer.json
    return answer.data


def report(tenant: Tenant, name: str, query: str = RANGE) -> Any:
    answer = tenant.get(f"/reports/{name}?{query}")
    assert answer.status == 200, answer.json
    return answer.data


def test_units_and_steps_are_counted_for_their_resources(tenant: Tenant, count: Count) -> None:
    """Three of four bikes for an hour; half an hour with Hanna, then an hour with Ada."""
    bikes, hanna, ada = (
        tenant.make_resource(name, "UTC", capacity=capacity, availability_constraints=WORKDAYS)
        for name, capacity in (("Bikes", 4), ("Hanna", 1), ("Ada", 1))
    )
    steps = [
        {"name": "cleaning", "length": "30 mins", "resources": [hanna["id"]]},
        {"name": "check-up", "length": "1 hour", "resources": [ada["id"]]},
    ]
    visit = tenant.post("/projects", {"name": "Visit", "steps": steps}).data
    booked(tenant, bikes, "2026-12-01T10:00", 60, quantity=3)
    hours = {"start": "2026-12-01T10:00:00Z", "end": "2026-12-01T11:30:00Z"}
    assert tenant.book(project_id=visit["id"], **hours).status == 201

    count()

    rows = DailyTotal.objects.filter(app=tenant.app).values_list(
        "resource_id", "bookings", "booked_seconds"
    )
    assert {str(resource): numbers for resource, *numbers in rows} == {
        bikes["id"]: [1, 3 * 3600],
        hanna["id"]: [1, 1800],
        ada["id"]: [0, 3600],
    }
    found = report(tenant, "utilisation", f"{RANGE}&by=resource")
    assert {row["resource"]["id"]: row["booked_seconds"] for row in found} == {
        bikes["id"]: 3 * 3600,
        hanna["id"]: 1800,
        ada["id"]: 3600,
    }


# --- The numbers ----------------------------------------------------------------------------------
def naive(tenant: Tenant) -> dict[tuple[date, str, str | None, str], Counter[str]]:
    """Every number, booking by booking."""
    zone = ZoneInfo(tenant.app.default_timezone)
    rows = Booking.objects.filter(app=tenant.app, deleted_at=None).order_by("created_at", "id")
    found: dict[Any, Counter[str]] = {}
    seen: set[str] = set()
    for row in rows.select_related("event").prefetch_related("customers", "logs"):
        day = row.event.start.astimezone(zone).date()
        people = [person for person in row.customers.order_by("id") if person.address]
        addresses = [person.address for person in people]
        is_new = [
            person not in {*seen, *addresses[:place]} for place, person in enumerate(addresses)
        ]
        seen.update(addresses)
        if row.state == "initialized":
            continue
        rest = (str(row.project_id or ""), row.logs.order_by("id")[0].source)
        key = (day, str(row.resource_id), *rest)
        numbers = found.setdefault(key, Counter())
        is_kept = GRAPHS[row.graph].takes_place(row.state)
        if row.owner_booking_id is None and is_kept:
            for event in [row.event, *row.event.companions.all()]:
                seconds = (event.end - event.start).total_seconds()
                of_resource = found.setdefault((day, str(event.resource_id), *rest), Counter())
                of_resource["booked_seconds"] += int(seconds)
        numbers["new_customers"] += is_new.count(True)
        numbers["returning_customers"] += is_new.count(False)
        if row.max_seats is not None:
            continue
        lead = max((row.event.start - row.created_at).total_seconds(), 0)
        numbers["bookings"] += 1
        numbers["lead_seconds"] += int(lead)
        for name, most in (
            ("1_day", 1),
            ("3_days", 3),
            ("1_week", 7),
            ("2_weeks", 14),
            ("4_weeks", 28),
        ):
            if lead < most * 86_400:
                numbers[f"lead_{name}"] += 1
                break
        numbers[row.outcome or "none"] += 1
        del numbers["none"]
        numbers["kept"] += is_kept
        state = {"cancelled_by_owner": "cancelled"}.get(row.state, row.state)
        numbers[state] += state in ("cancelled", "cancelled_by_customer", "declined", "unpaid")
    return {key: +numbers for key, numbers in found.items() if key and +numbers}


def counted(tenant: Tenant) -> dict[tuple[date, str, str | None, str], Counter[str]]:
    about = ("id", "app", "day", "resource", "project", "source")
    names = [field.name for field in DailyTotal._meta.concrete_fields if field.name not in about]
    return {
        (row.day, str(row.resource_id), str(row.project_id or ""), row.source): Counter(
            {name: getattr(row, name) for name in names if getattr(row, name)}
        )
        for row in DailyTotal.objects.filter(app=tenant.app)
    }


class World:
    """Random changes of a tenant's bookings, each by the API."""

    def __init__(self, tenant: Tenant, seed: int, clock: Any) -> None:
        self.tenant, self.random, self.clock = tenant, random.Random(seed), clock
        zones = (BERLIN, "America/New_York", "Asia/Tokyo")
        self.resources = [
            tenant.make_resource(f"R{number}", zone) for number, zone in enumerate(zones)
        ]
        ids = [row["id"] for row in self.resources]
        self.projects = [
            tenant.make_project(ids[0], booking={"graph": "confirm_decline"}),
            tenant.make_project(*ids[:2], availability={"mode": "mutual", "length": "1 hour"}),
            tenant.make_project(*ids, booking={"graph": "instant"}),
        ]
        self.bookings: list[str] = []

    def change(self) -> None:
        kind = self.random.choice([self.book] * 6 + [self.act] * 3 + [self.move, self.record] * 2)
        kind()
        self.random.choice([self.delete, self.readdress, self.erase, *[lambda: None] * 12])()
        self.clock.shift(self.random.randrange(1, 7200))

    def book(self) -> None:
        project = self.random.choice([*self.projects, None])
        where = {"project_id": project["id"]} if project else {}
        if project is not self.projects[1]:
            where["resource_id"] = self.resources[0 if project is self.projects[0] else 2]["id"]
        people = [self.customer() for _ in range(self.random.choice([1, 1, 1, 2]))]
        given = {**self.times(60), **where, "customers": people, "allow_double_bookings": True}
        answer = self.tenant.post("/bookings", {"what": "A", "graph": "instant", **given})
        if answer.status == 201:
            self.bookings.append(answer.data["id"])

    def act(self) -> None:
        action = self.random.choice(
            ["confirm", "decline", "cancel", "cancel_by_customer", "complete"]
        )
        self.put("", path=f"/{action}")

    def move(self) -> None:
        self.put("reschedule", body=self.times(60))

    def record(self) -> None:
        self.put("", body={"outcome": self.random.choice(["attended", "no_show", None])})

    def delete(self) -> None:
        if self.bookings:
            self.tenant.delete(f"/bookings/{self.random.choice(self.bookings)}")

    def readdress(self) -> None:
        self.put("", body={"customer": self.customer()})

    def erase(self) -> None:
        self.tenant.post("/customers/erase", {"email": self.customer()["email"]})

    def customer(self) -> dict[str, str]:
        number = self.random.randrange(6)
        return {"name": f"C{number}", "email": f"c{number}@example.com"}

    def times(self, minutes: int) -> dict[str, str]:
        start = timezone.now() + timedelta(minutes=30 * self.random.randrange(-96, 60 * 48))
        start = start.replace(minute=0, second=0, microsecond=0)
        return {"start": start.isoformat(), "end": (start + timedelta(minutes=minutes)).isoformat()}

    def put(self, action: str, *, path: str = "", body: Any = None) -> Answer | None:
        if not self.bookings:
            return None
        booking = self.random.choice(self.bookings)
        if action:
            return self.tenant.post(f"/bookings/{booking}/{action}", body)
        return self.tenant.put(f"/bookings/{booking}{path}", body)


@pytest.mark.parametrize("seed", range(4))
def test_daily_totals_equal_a_recount(berlin: Tenant, count: Count, clock: Any, seed: int) -> None:
    world = World(berlin, seed, clock)

    for _ in range(6):
        for _ in range(10):
            world.change()
        count()

        assert counted(berlin) == naive(berlin)


def test_moved_booking_leaves_its_former_day(berlin: Tenant, count: Count) -> None:
    ada = berlin.make_resource()
    booking = booked(berlin, ada, "2026-12-01T09:00")
    count()
    times = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
    berlin.post(f"/bookings/{booking['id']}/reschedule", times)
    count()

    days = DailyTotal.objects.values_list("day", "bookings", "booked_seconds")
    assert list(days) == [(date(2026, 12, 3), 1, 3600)]


def test_deleting_a_first_booking_makes_the_next_one_the_first(
    berlin: Tenant, count: Count
) -> None:
    ada = berlin.make_resource()
    first = booked(berlin, ada, "2026-12-01T09:00")
    booked(berlin, ada, "2026-12-02T09:00")
    count()
    before = report(berlin, "customers", f"{RANGE}&by=week")
    berlin.put(f"/bookings/{first['id']}/cancel")
    berlin.delete(f"/bookings/{first['id']}")
    count()

    assert [(row["new"], row["returning"]) for row in before if row["new"]] == [(1, 1)]
    assert [(row["new"], row["returning"]) for row in report(berlin, "customers")] == [(1, 0)]
    assert counted(berlin) == naive(berlin)


def test_another_zone_of_the_app_counts_all_days_anew(berlin: Tenant, count: Count) -> None:
    ada = berlin.make_resource()
    booked(berlin, ada, "2026-12-01T23:30")
    count()
    before = list(DailyTotal.objects.values_list("day", flat=True))
    berlin.put(f"/apps/{berlin.app.slug}", {"settings": {"default_timezone": "UTC"}})
    count()

    after = list(DailyTotal.objects.values_list("day", flat=True))
    assert (before, after) == ([date(2026, 12, 2)], [date(2026, 12, 1)])


def test_a_group_counts_its_seats_and_its_time_once(berlin: Tenant, count: Count) -> None:
    group = make_group(berlin, berlin.make_resource(), max_seats=5)
    for person in (ANN, BOB, CYD):
        seat_in(berlin, group, person)
    count()

    assert report(berlin, "outcomes")[0]["kept"] == 3
    assert report(berlin, "utilisation")[0]["booked_seconds"] == 3600
    assert counted(berlin) == naive(berlin)


# --- The endpoints --------------------------------------------------------------------------------
@pytest.fixture
def week(berlin: Tenant, count: Count) -> dict[str, Any]:
    """Two resources with a tag each, and bookings of one week in December."""
    ada = berlin.make_resource("Ada", BERLIN, availability_constraints=WORKDAYS, tags=["dentist"])
    room = berlin.make_resource("Room", BERLIN, availability_constraints=WORKDAYS, tags=["room"])
    project = berlin.make_project(ada["id"], availability={"length": "2 hours"})
    booked(berlin, ada, "2026-11-20T10:30", 60)
    booked(berlin, ada, "2026-12-01T09:00", 120, project_id=project["id"])
    cancelled = booked(berlin, ada, "2026-12-02T09:00")
    booked(berlin, room, "2026-12-02T09:00", customer={"name": "Eve", "email": "eve@example.com"})
    berlin.put(f"/bookings/{cancelled['id']}/cancel_by_customer")
    count()
    return {"ada": {"id": ada["id"], "name": "Ada"}, "room": {"id": room["id"], "name": "Room"}}


DECEMBER = "from=2026-11-30&to=2026-12-07"


def test_utilisation_by_resource_and_week(berlin: Tenant, week: dict[str, Any]) -> None:
    answer = berlin.get(f"/reports/utilisation?{DECEMBER}&by=resource,week")

    hours = {"week": "2026-11-30", "open_seconds": 5 * 8 * 3600}
    assert answer.json == {
        "data": [
            {"resource": week["ada"], **hours, "booked_seconds": 7200, "utilisation": 0.05},
            {"resource": week["room"], **hours, "booked_seconds": 1800, "utilisation": 0.0125},
        ],
        "from": "2026-11-30",
        "to": "2026-12-07",
        "timezone": BERLIN,
        "counted_until": "2026-11-20T10:30:00+0000",
    }


def test_outcomes_by_tag(berlin: Tenant, week: dict[str, Any]) -> None:
    zero = dict.fromkeys(
        ("cancelled", "declined", "unpaid", "pending", "attended", "no_show"), 0
    ) | {"no_show_rate": 0.0}
    assert report(berlin, "outcomes", f"{DECEMBER}&by=tag") == [
        {
            "tag": "dentist",
            "bookings": 2,
            "kept": 1,
            "cancelled_by_customer": 1,
            "cancellation_rate": 0.5,
            **zero,
        },
        {
            "tag": "room",
            "bookings": 1,
            "kept": 1,
            "cancelled_by_customer": 0,
            "cancellation_rate": 0.0,
            **zero,
        },
    ]


def test_lead_time_by_month(berlin: Tenant, week: dict[str, Any]) -> None:
    none = dict.fromkeys(
        ("lead_1_day", "lead_3_days", "lead_1_week", "lead_2_weeks", "lead_4_weeks", "lead_longer"),
        0,
    )
    # From Friday 09:30: one hour; eleven days without half an hour, and twice a day more.
    assert report(berlin, "lead-time", f"{RANGE}&by=month") == [
        {"month": "2026-11-01", "bookings": 1, "average_days": 0.04, **none, "lead_1_day": 1},
        {"month": "2026-12-01", "bookings": 3, "average_days": 11.65, **none, "lead_2_weeks": 3},
    ]


def test_sources_of_the_whole_period(berlin: Tenant, week: dict[str, Any]) -> None:
    assert report(berlin, "sources") == [
        {
            "bookings": 4,
            "api": 4,
            "widget": 0,
            "admin": 0,
            "link": 0,
            "timer": 0,
            "calendar": 0,
            "mail": 0,
            "mcp": 0,
        }
    ]


def test_customers_by_project(berlin: Tenant, week: dict[str, Any]) -> None:
    rows = report(berlin, "customers", f"{RANGE}&by=project")

    assert [
        (row["project"] and row["project"]["name"], row["new"], row["returning"]) for row in rows
    ] == [
        ("Check-up", 0, 1),
        (None, 2, 1),
    ]


def test_weeks_without_bookings_have_a_row(berlin: Tenant, week: dict[str, Any]) -> None:
    rows = report(berlin, "outcomes", "from=2026-11-20&to=2026-12-14&by=week")

    assert [(row["week"], row["bookings"]) for row in rows] == [
        ("2026-11-16", 1),
        ("2026-11-23", 0),
        ("2026-11-30", 3),
        ("2026-12-07", 0),
    ]


def test_a_project_has_no_open_hours(berlin: Tenant, week: dict[str, Any]) -> None:
    rows = report(berlin, "utilisation", f"{DECEMBER}&by=project")

    assert [(row["booked_seconds"], row["open_seconds"], row["utilisation"]) for row in rows] == [
        (7200, None, None),
        (1800, None, None),
    ]


def test_every_source_has_a_number() -> None:
    assert set(StateChange.SOURCES) == SourcesSerializer().fields.keys() - {
        *ReportRowSerializer().fields,
        "bookings",
    }


def test_every_early_end_has_a_column() -> None:
    counted_states = [state for states in columns.ENDED_EARLY.values() for state in states]

    assert sorted(counted_states) == sorted(graphs.ENDED_EARLY)


def test_nothing_is_counted_yet(tenant: Tenant) -> None:
    answer = tenant.get("/reports/customers?from=2026-11-01&to=2026-11-02").json

    assert answer == {
        "data": [{"new": 0, "returning": 0, "new_rate": None}],
        "from": "2026-11-01",
        "to": "2026-11-02",
        "timezone": "UTC",
        "counted_until": None,
    }


def test_the_default_period_is_the_last_28_days(tenant: Tenant, clock: Any) -> None:
    answer = tenant.get("/reports/outcomes").json

    assert (answer["from"], answer["to"]) == ("2026-10-24", "2026-11-21")


@pytest.mark.parametrize(
    ("report", "query", "path", "text"),
    [
        ("outcomes", "from=yesterday", "from", "Must be a date such as 2026-11-20."),
        ("outcomes", "from=2026-11-02&to=2026-11-02", "to", "Must be after `from`."),
        ("outcomes", "by=day", "by", "Must be one of resource, project, tag, week, month."),
        ("outcomes", "by=week,tag", "by", "Must be one of resource, project, tag, week, month."),
        (
            "outcomes",
            "from=2010-01-01&to=2026-01-01",
            "to",
            "Must be at most 10 years after `from`.",
        ),
        (
            "utilisation",
            "from=2026-01-01&to=2027-01-08",
            "to",
            "Must be at most 53 weeks after `from`.",
        ),
    ],
)
def test_wrong_values_are_refused(
    tenant: Tenant, report: str, query: str, path: str, text: str
) -> None:
    answer = tenant.get(f"/reports/{report}?{query}")

    assert (answer.status, answer.json["errors"]) == (422, {path: [text]})


def test_every_wrong_parameter_is_named(tenant: Tenant) -> None:
    answer = tenant.get("/reports/outcomes?from=monday&to=x&by=moon")

    assert (answer.status, sorted(answer.json["errors"])) == (422, ["by", "from", "to"])


def test_open_hours_of_too_many_days_are_refused(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.make_resource()
    monkeypatch.setattr(figures, "MAX_OPEN_DAYS", 10)
    answers = [
        tenant.get(f"/reports/utilisation?from=2077-01-01&to=2077-01-{last}") for last in (11, 12)
    ]

    text = "Too many days for so many resources: request a shorter range."
    assert [answer.status for answer in answers] == [200, 422]
    assert answers[1].json["errors"] == {"to": [text]}


def test_viewers_read_reports_and_public_keys_do_not(tenant: Tenant) -> None:
    token = tenant.make_resource(email="ada@example.com")["api_token"]
    callers = [
        tenant,
        tenant.member("viewer@example.com", "viewer"),
        tenant.widget(),
        Caller(token, user="ada@example.com"),
    ]

    assert [caller.get("/reports/outcomes").status for caller in callers] == [200, 200, 403, 403]


@pytest.mark.parametrize("name", REPORTS)
def test_queries_do_not_grow_with_rows(
    berlin: Tenant, week: dict[str, Any], count: Count, name: str
) -> None:
    def queries() -> int:
        with Queries(connection) as found:
            report(berlin, name, f"{RANGE}&by=resource,week")
        return len(found)

    before = queries()
    for number in range(3):
        other = berlin.make_resource(f"R{number}", BERLIN)
        booked(berlin, other, f"2026-12-{number + 10}T09:00")
    count()

    assert queries() == before


# --- Open hours -----------------------------------------------------------------------------------
def test_open_hours_of_past_days_stay_when_rules_change(
    berlin: Tenant, week: dict[str, Any], count: Count, clock: Any
) -> None:
    clock.shift(7 * 86_400)  # Friday, 27 November
    count()
    ada = berlin.put(
        f"/resources/{week['ada']['id']}", {"availability_constraints": [{"block_weekdays": {}}]}
    )
    assert ada.status == 200, ada.json
    rows = report(berlin, "utilisation", "from=2026-11-20&to=2026-12-07&by=resource,week")

    open_hours = [row["open_seconds"] / 3600 for row in rows if row["resource"] == week["ada"]]
    # Friday; Monday to Thursday of the old rules, and the week-end of the new ones; the new rules.
    assert open_hours == [8.0, 4 * 8 + 2 * 24, 2 * 24]


def test_open_hours_of_days_before_the_resource_was_made_are_none(
    berlin: Tenant, week: dict[str, Any]
) -> None:
    assert report(berlin, "utilisation", "from=2026-11-02&to=2026-11-20") == [
        {"booked_seconds": 0, "open_seconds": 0, "utilisation": None}
    ]


def test_blocked_time_is_not_open_and_capacity_counts(berlin: Tenant, clock: Any) -> None:
    room = berlin.post_resource("Room", BERLIN, availability_constraints=WORKDAYS, capacity=3)
    calendar = room["calendars"][0]["id"]
    berlin.make_event(calendar, "2026-12-01T08:00:00Z", "2026-12-01T10:00:00Z")

    row = report(berlin, "utilisation", "from=2026-12-01&to=2026-12-02")[0]
    assert row["open_seconds"] == 6 * 3600 * 3


# --- The task -------------------------------------------------------------------------------------
def test_a_second_count_changes_nothing(berlin: Tenant, week: dict[str, Any], count: Count) -> None:
    before = counted(berlin)
    rows = [list(DailyTotal.objects.values_list("id", flat=True))]
    count()
    rows.append(list(DailyTotal.objects.values_list("id", flat=True)))

    assert before == counted(berlin) == naive(berlin)
    assert rows[0] == rows[1]


def test_an_app_whose_bookings_cannot_be_counted_stops_no_other(
    make_tenant: Callable[..., Tenant],
    count: Count,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = make_tenant(), make_tenant()
    for tenant in (first, second):
        booked(tenant, tenant.make_resource(), "2026-12-01T09:00")
    count_days = counting.count_days

    def fail_for_first(app_id: Any, *days: Any) -> Any:
        if app_id == first.app.id:
            raise ValueError("broken")
        return count_days(app_id, *days)

    monkeypatch.setattr(counting, "count_days", fail_for_first)
    count()

    assert list(DailyTotal.objects.values_list("app", flat=True)) == [second.app.id]
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ValueError]

    monkeypatch.setattr(counting, "count_days", count_days)
    count()

    assert counted(first) == naive(first)


@pytest.mark.postgresql  # on SQLite, one transaction writes at a time
@pytest.mark.django_db(transaction=True)
def test_two_workers_do_not_count_one_app_at_once(make_tenant: Callable[..., Tenant]) -> None:
    tenant = make_tenant()
    booked(tenant, tenant.make_resource(), "2077-03-01T09:00")
    ReportState.objects.create(app=tenant.app)

    def count_elsewhere() -> list[tuple[date, int]]:
        def count() -> None:
            for _ in counting.count_app(tenant.app.id, until=at("2078-01-01"), now=timezone.now()):
                pass
            connection.close()

        worker = threading.Thread(target=count)
        worker.start()
        worker.join()
        return list(DailyTotal.objects.values_list("day", "bookings"))

    with transaction.atomic():
        ReportState.objects.select_for_update().get()
        during = count_elsewhere()

    assert (during, count_elsewhere()) == ([], [(date(2077, 3, 1), 1)])
