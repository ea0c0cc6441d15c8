"""Reports: the numbers of the daily table are those of the bookings themselves."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from bookings.graphs import GRAPHS
from bookings.models import Booking, DailyTotal
from bookings.reports import counting
from tests.world import BERLIN, Answer, Tenant

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
    ada = berlin.make_resource()
    group = booked(
        berlin,
        ada,
        "2026-12-01T09:00",
        graph="group_owner",
        settings={"max_seats": 5},
        customer=None,
    )
    for number in range(3):
        customer = {"name": "C", "email": f"c{number}@example.com"}
        seat = {"related": {"owner_booking_id": group["id"]}, "graph": "group_customer"}
        assert berlin.post("/bookings", {**seat, "customer": customer}).status == 201
    count()

    assert report(berlin, "outcomes")[0]["kept"] == 3
    assert report(berlin, "utilisation")[0]["booked_seconds"] == 1800
    assert counted(berlin) == naive(berlin)
