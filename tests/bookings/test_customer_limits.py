"""The limits of one customer's bookings in a project."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest
from django.db import connections, transaction

from availability.models import Project
from bookings.models import Booking
from bookings.services import customer_limits
from bookings.services.verification import code_of
from tests.bookings.booking_drafts import MARTY, NINE, act, span
from tests.waiters import wait_for_a_waiter
from tests.world import Answer, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]

PER_DAY, OPEN = "max_per_customer_per_day", "max_open_per_customer"
DOC = {"name": "Doc Brown", "email": "doc@example.com"}
TOMORROW = "2026-11-24"


class Desk:
    """Two resources and a project with limits; bookings of Marty unless somebody else is named."""

    def __init__(self, tenant: Tenant, limits: dict[str, int], **project: Any) -> None:
        self.tenant = tenant
        self.ada = tenant.make_resource("Ada")["id"]
        self.ben = tenant.make_resource("Ben")["id"]
        project = {"availability": {"length": None}, "settings": limits} | project
        self.project = tenant.make_project(self.ada, self.ben, **project)["id"]

    def book(self, times: dict[str, str], customer: Any = MARTY, **given: Any) -> Answer:
        given = {"project_id": self.project, "resource_id": self.ada} | given
        return self.tenant.book(customer=customer, **times, **given)


def refusal(answer: Answer) -> tuple[int, Any]:
    return answer.status, {key: answer.json.get(key) for key in ("code", "policy", "limit")}


def by_policy(policy: str, limit: int) -> tuple[int, Any]:
    return 409, {"code": "policy", "policy": policy, "limit": limit}


def test_limit_of_bookings_per_customer_and_day(tenant: Tenant) -> None:
    desk = Desk(tenant, {"max_per_customer_per_day": 2})
    made = [desk.book(span("08:00", "09:00")), desk.book(NINE, resource_id=desk.ben)]

    same = desk.book(span("12:00", "13:00"), {**MARTY, "email": MARTY["email"].upper()})
    other = desk.book(span("12:00", "13:00"), DOC)
    next_day = desk.book(span("12:00", "13:00", TOMORROW))

    assert [answer.status for answer in (*made, other, next_day)] == [201] * 4
    assert refusal(same) == by_policy(PER_DAY, 2)
    assert same.json["error"] == "The policy max_per_customer_per_day does not allow this."
    assert Booking.objects.count() == 4


@pytest.mark.parametrize("limit", [PER_DAY, OPEN])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("u@straße.de", "u@straße.de"),
        ("u@müller.de", "u@müller.de"),
        ("u@müller.de", "U@MÜLLER.de"),
        ("u@MÜLLER.de", "u@xn--mller-kva.de"),
        ("marty+work@example.com", "Marty@example.com"),
        ("marty@example.com", "marty+a+b@example.com"),
        ("marty.mc.fly@gmail.com", "martymcfly+1@googlemail.com"),
    ],
)
def test_spellings_and_tags_of_an_address_are_one_customer(
    tenant: Tenant, limit: str, first: str, second: str
) -> None:
    desk = Desk(tenant, {limit: 1})
    made = desk.book(NINE, {"name": "U", "email": first})

    again = desk.book(span("12:00", "13:00"), {"name": "U", "email": second})

    assert (made.status, refusal(again)) == (201, by_policy(limit, 1))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("u@straße.de", "u@strasse.de"),
        ("victim@gmail.com", "victim@gmaıl.com"),
        ("marty.mcfly@example.com", "martymcfly@example.com"),
    ],
)
def test_lookalike_addresses_are_two_customers(tenant: Tenant, first: str, second: str) -> None:
    desk = Desk(tenant, {PER_DAY: 1, OPEN: 1})
    times = (NINE, span("12:00", "13:00"))

    made = [
        desk.book(given, {"name": "U", "email": email})
        for given, email in zip(times, (first, second), strict=True)
    ]

    assert [answer.status for answer in made] == [201, 201]
    emails = [row["email"] for row in tenant.get("/customers").data]
    assert sorted(emails) == sorted([first, second])


def test_limit_of_open_bookings_per_customer(tenant: Tenant) -> None:
    desk = Desk(tenant, {"max_open_per_customer": 1})
    first = desk.book(NINE).data

    refused = desk.book(span("12:00", "13:00", "2026-12-04"))
    act(tenant, first, "complete")
    then = desk.book(span("12:00", "13:00", "2026-12-04"))

    assert refusal(refused) == by_policy(OPEN, 1)
    assert then.status == 201


@pytest.mark.parametrize(
    ("action", "status"),
    [("complete", 409), ("cancel", 201), ("cancel_by_customer", 201)],
)
def test_day_limit_ignores_cancelled_bookings(tenant: Tenant, action: str, status: int) -> None:
    desk = Desk(tenant, {PER_DAY: 1})
    act(tenant, desk.book(NINE).data, action)

    assert desk.book(span("12:00", "13:00")).status == status


def test_requests_count_until_declined(tenant: Tenant) -> None:
    desk = Desk(tenant, {PER_DAY: 1}, booking={"graph": "confirm_decline"})
    asked = desk.book(NINE).data

    waiting = desk.book(span("12:00", "13:00"))
    act(tenant, asked, "decline")
    then = desk.book(span("12:00", "13:00"))

    assert (refusal(waiting), then.status) == (by_policy(PER_DAY, 1), 201)


def test_other_projects_and_apps_do_not_count(
    tenant: Tenant, make_tenant: Callable[[], Tenant]
) -> None:
    desk = Desk(tenant, {PER_DAY: 1, OPEN: 1})
    unlimited = tenant.make_project(desk.ada, availability={"length": None})["id"]
    stranger = Desk(make_tenant(), {PER_DAY: 1, OPEN: 1})

    answers = [
        desk.book(NINE, project_id=unlimited),
        stranger.book(NINE),
        desk.book(span("12:00", "13:00")),
    ]

    assert [answer.status for answer in answers] == [201] * 3


def test_day_is_in_the_zone_of_the_resource(tenant: Tenant) -> None:
    desk = Desk(tenant, {PER_DAY: 1})
    tenant.put(f"/resources/{desk.ada}", {"timezone": "Pacific/Auckland"})
    late = {"start": "2026-11-24T23:00:00+13:00", "end": "2026-11-24T23:30:00+13:00"}
    early = {"start": "2026-11-25T00:30:00+13:00", "end": "2026-11-25T01:00:00+13:00"}
    same_day = {"start": "2026-11-24T00:30:00+13:00", "end": "2026-11-24T01:00:00+13:00"}

    answers = [desk.book(times) for times in (late, early, same_day)]

    assert [answer.status for answer in answers] == [201, 201, 409]


def test_unenforced_rules_skip_customer_limits(tenant: Tenant) -> None:
    desk = Desk(tenant, {PER_DAY: 1, OPEN: 1, "enforce_availability": False})

    answers = [desk.book(NINE), desk.book(span("12:00", "13:00"))]

    assert [answer.status for answer in answers] == [201, 201]


def test_a_series_counts_each_occurrence(tenant: Tenant) -> None:
    desk = Desk(tenant, {OPEN: 5})

    six = desk.book(NINE, recurrence="FREQ=DAILY;COUNT=6")
    five = desk.book(NINE, recurrence="FREQ=DAILY;COUNT=5")

    assert (refusal(six), five.status, Booking.objects.count()) == (by_policy(OPEN, 5), 201, 5)


def test_every_customer_of_a_booking_counts(tenant: Tenant) -> None:
    desk = Desk(tenant, {OPEN: 1})
    both = tenant.post(
        "/bookings",
        {"project_id": desk.project, "customers": [MARTY, DOC], "what": "Talk", **NINE},
    )

    answer = desk.book(span("12:00", "13:00"), DOC)

    assert (both.status, refusal(answer)) == (201, by_policy(OPEN, 1))


def test_staff_may_change_a_booking_to_an_address_at_its_limits(tenant: Tenant) -> None:
    desk = Desk(tenant, {PER_DAY: 1, OPEN: 1})
    first = desk.book(NINE)
    second = desk.book(span("12:00", "13:00"), DOC)

    path = f"/bookings/{second.data['id']}?include=customers"
    changed = tenant.put(path, {"customer": {"email": MARTY["email"]}})
    third = desk.book(span("14:00", "15:00"))

    assert (first.status, changed.status) == (201, 200)
    assert [one["email"] for one in changed.data["customers"]] == [MARTY["email"]]
    assert refusal(third) == by_policy(OPEN, 1)


def test_reschedule_to_a_full_day_is_refused(tenant: Tenant) -> None:
    desk = Desk(tenant, {PER_DAY: 1, OPEN: 2})
    desk.book(NINE)
    second = desk.book(span("09:00", "10:00", TOMORROW)).data["id"]

    to_monday = tenant.post(f"/bookings/{second}/reschedule", span("12:00", "13:00"))
    same_day = tenant.post(f"/bookings/{second}/reschedule", span("12:00", "13:00", TOMORROW))

    row = Booking.objects.get(id=second)
    assert refusal(to_monday) == by_policy(PER_DAY, 1)
    assert (same_day.status, row.event.start.isoformat()) == (200, "2026-11-24T12:00:00+00:00")


@pytest.mark.postgresql  # in a test, SQLite's connections share one cache and its table locks
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_locked", [True, False], ids=["locked", "control"])
def test_concurrent_reschedules_of_a_customer_are_serialised(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, is_locked: bool
) -> None:
    """Both to the same day, with a resource each; the first one is not committed yet."""
    desk = Desk(tenant, {PER_DAY: 1})
    first = desk.book(NINE).data["id"]
    second = desk.book(span("09:00", "10:00", TOMORROW), resource_id=desk.ben).data["id"]

    def move(booking: str) -> Answer:
        times = span("12:00", "13:00", "2026-11-25")
        return tenant.post(f"/bookings/{booking}/reschedule", times)

    def move_in_thread(booking: str) -> Answer:
        try:
            return move(booking)
        finally:
            connections.close_all()

    if not is_locked:
        monkeypatch.setattr(customer_limits, "_lock_customers", lambda project, keys: None)
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        moved = move(first)
        other = pool.submit(move_in_thread, second)
        if is_locked:
            wait_for_a_waiter()
        else:
            wait([other])

    assert moved.status == 200
    assert (other.result().status, other.result().json.get("policy")) == (
        (409, PER_DAY) if is_locked else (200, None)
    )


def test_seats_count_towards_the_limit(tenant: Tenant) -> None:
    desk = Desk(tenant, {OPEN: 1}, booking={"graph": "group_customer"})
    groups = [
        tenant.post(
            "/bookings",
            {
                "graph": "group_owner",
                "project_id": desk.project,
                "resource_id": desk.ada,
                "what": "Course",
                "settings": {"max_seats": 9},
                **times,
            },
        ).data["id"]
        for times in (NINE, span("12:00", "13:00"))
    ]

    answers = [
        tenant.post(
            "/bookings",
            {
                "graph": "group_customer",
                "project_id": desk.project,
                "related": {"owner_booking_id": group},
                "customer": customer,
            },
        )
        for group, customer in ((groups[0], MARTY), (groups[1], MARTY), (groups[1], DOC))
    ]

    assert answers[0].status == 201
    assert refusal(answers[1]) == by_policy(OPEN, 1)
    assert answers[2].status == 201


@pytest.mark.parametrize("key", [PER_DAY, OPEN])
def test_unverified_booking_counts_towards_the_limit(tenant: Tenant, key: str) -> None:
    desk = Desk(tenant, {key: 1, "verify_email": True})
    desk.tenant.put(f"/projects/{desk.project}", {"availability": {"length": "1 hour"}})
    page = tenant.widget()
    body = {"project_id": desk.project, "customer": MARTY}

    waiting = page.post("/bookings", {**body, **NINE})
    second = page.post("/bookings", {**body, **span("12:00", "13:00")})
    direct = desk.book(span("12:00", "13:00"))
    reservation = waiting.data["reservation_id"]
    code = code_of(uuid.UUID(reservation))
    made = page.post(f"/bookings/reserve/{reservation}/verify", {"code": code})

    assert (waiting.status, made.status) == (202, 201)
    assert [refusal(answer) for answer in (second, direct)] == [by_policy(key, 1)] * 2


@pytest.mark.parametrize("key", [PER_DAY, OPEN])
def test_invalid_stored_limit_is_refused(tenant: Tenant, key: str) -> None:
    desk = Desk(tenant, {})
    Project.objects.filter(id=desk.project).update(settings={key: "many"})

    answer = desk.book(NINE)

    assert (answer.status, answer.json["errors"]) == (
        422,
        {f"settings.{key}": [f"The project's {key} is not a number."]},
    )
