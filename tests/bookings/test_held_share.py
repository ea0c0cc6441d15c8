"""Holds of public callers keep at most a fifth of the time that a project offers on a day."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.bookings.booking_drafts import MARTY, MONDAY, span
from tests.world import Answer, Caller, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]
# Eight hours a day: a fifth are 96 minutes.
OFFICE_HOURS = [{"allow_hours": {"start": 9, "end": 17}}]
TUESDAY = "2026-11-24"


@pytest.fixture
def widget(tenant: Tenant) -> Caller:
    return tenant.widget()


def make_project(tenant: Tenant, *resource_ids: str, **given: Any) -> str:
    """Of half hours in the office hours."""
    wanted = {
        "availability": {"length": "30 mins"},
        "availability_constraints": OFFICE_HOURS,
        "booking": {"what": "Check-up"},
        "reservation_time": 300,
    }
    return tenant.make_project(*resource_ids, **{**wanted, **given})["id"]


@pytest.fixture
def project(tenant: Tenant) -> str:
    return make_project(tenant, tenant.make_resource("Ada")["id"])


def hold(
    caller: Caller, project: str, start: str, end: str = "", day: str = MONDAY, **given: Any
) -> Answer:
    """Of half an hour from `start`, if no `end` is given."""
    hour, minute = start.split(":")
    end = end or (f"{hour}:30" if minute == "00" else f"{int(hour) + 1:02}:00")
    # Each from an address of its own: one address holds no more than five.
    numbers = [int(part) for part in (hour, minute, day[-2:])]
    caller.client.defaults["REMOTE_ADDR"] = f"10.{'.'.join(map(str, numbers))}"
    body = {"project_id": project, **span(start, end, day), **given}
    return caller.post("/bookings/reserve", body)


def statuses(answers: Sequence[Answer]) -> list[int]:
    return [answer.status for answer in answers]


def test_holds_above_a_fifth_of_a_day_are_refused(widget: Caller, project: str, clock: Any) -> None:
    first = hold(widget, project, "09:00")
    clock.shift(100)

    others = [hold(widget, project, start) for start in ("10:00", "11:00", "12:00")]
    tomorrow = hold(widget, project, "09:00", day=TUESDAY)
    clock.shift(200)
    later = hold(widget, project, "12:00")

    assert first.status == 201
    assert (statuses(others), tomorrow.status, later.status) == ([201, 201, 429], 201, 201)
    assert (others[2].error, others[2].headers["Retry-After"]) == (
        {
            "error": "Too much of this day is being held at the moment.",
            "code": "rate_limited",
        },
        "200",
    )


def test_released_or_booked_holds_do_not_count(widget: Caller, project: str) -> None:
    first, second, _ = (
        hold(widget, project, start).data["reservation_id"] for start in ("09:00", "10:00", "11:00")
    )
    widget.delete(f"/bookings/reserve/{first}")
    after_release = [hold(widget, project, start) for start in ("12:00", "13:00")]
    booking = {"project_id": project, "customer": MARTY, **span("10:00", "10:30")}
    booked = widget.post("/bookings", {**booking, "reservation_id": second})

    # Seven and a half hours are left to offer: 90 minutes.
    after_booking = [hold(widget, project, start) for start in ("14:00", "15:00")]

    assert statuses(after_release) == [201, 429]
    assert (booked.status, statuses(after_booking)) == (201, [201, 429])


def test_one_hold_is_always_possible(tenant: Tenant, widget: Caller) -> None:
    """Of a day with two times."""
    whole = make_project(
        tenant,
        tenant.make_resource("Ada")["id"],
        availability={"length": "4 hours"},
    )

    answers = [hold(widget, whole, "09:00", "13:00"), hold(widget, whole, "13:00", "17:00")]

    assert statuses(answers) == [201, 429]


def test_holds_of_the_owner_do_not_count(tenant: Tenant, widget: Caller, project: str) -> None:
    by_owner = [hold(tenant, project, f"{hour}:00") for hour in range(10, 16)]

    # Five hours are left to offer: an hour.
    public = [hold(widget, project, start) for start in ("09:00", "09:30", "16:00")]
    more = hold(tenant, project, "16:00")

    assert statuses(by_owner) == [201] * 6
    assert (statuses(public), more.status) == ([201, 201, 429], 201)


def test_share_counts_all_resources_and_places(tenant: Tenant, widget: Caller) -> None:
    """Three rooms for two: 48 hours, of which 576 minutes are 19 half hours."""
    rooms = [tenant.make_resource(name, capacity=2)["id"] for name in ("Ada", "Bob", "Cid")]
    project = make_project(tenant, *rooms)

    answers = [
        hold(widget, project, f"{hour:02}:{minute:02}")
        for hour in range(9, 17)
        for minute in (0, 30)
    ]
    again = [hold(widget, project, f"{hour:02}:00") for hour in range(9, 13)]

    assert (statuses(answers), statuses(again)) == ([201] * 16, [201, 201, 201, 429])


def test_projects_of_one_resource_share_its_time(tenant: Tenant, widget: Caller) -> None:
    """One hold of each project is always possible."""
    ada = tenant.make_resource("Ada")["id"]
    first, second, third = (make_project(tenant, ada, name=name) for name in ("A", "B", "C"))

    answers = [
        *(hold(widget, first, start) for start in ("09:00", "10:00", "11:00")),
        hold(widget, second, "12:00"),
        hold(widget, second, "13:00"),
        hold(widget, third, "14:00"),
        hold(widget, first, "15:00"),
    ]

    assert statuses(answers) == [201, 201, 201, 201, 429, 201, 429]


def test_unverified_seats_are_a_fifth_of_the_group(
    tenant: Tenant, widget: Caller, clock: Any
) -> None:
    ada = tenant.make_resource("Ada")["id"]
    project = make_project(
        tenant, ada, booking={"graph": "group_customer"}, settings={"verify_email": True}
    )
    body = {"graph": "group_owner", "resource_id": ada, "what": "Yoga", **span("09:00", "10:00")}
    groups = [
        tenant.post("/bookings", {**body, **times, "settings": {"max_seats": seats}}).data["id"]
        for seats, times in ((10, {}), (3, span("11:00", "12:00")))
    ]

    def ask(group: str, number: int) -> Answer:
        seat = {"graph": "group_customer", "related": {"owner_booking_id": group}}
        customer = {"name": "C", "email": f"c{number}@{group}.example"}
        return widget.post("/bookings", {**seat, "project_id": project, "customer": customer})

    answers = [[ask(group, number) for number in range(3)] for group in groups]
    clock.shift(900)
    later = ask(groups[0], 3)

    assert [statuses(each) for each in answers] == [[202, 202, 429], [202, 429, 429]]
    assert (later.status, answers[0][2].headers["Retry-After"]) == (202, "900")


def test_a_hold_on_several_resources_takes_time_of_each(tenant: Tenant, widget: Caller) -> None:
    """Sixteen hours of two resources, of which each hold takes an hour: three of them."""
    both = [tenant.make_resource(name)["id"] for name in ("Ada", "Bob")]
    mutual = make_project(tenant, *both, availability={"length": "30 mins", "mode": "mutual"})

    answers = [hold(widget, mutual, f"{hour:02}:00") for hour in range(9, 13)]

    assert statuses(answers) == [201, 201, 201, 429]


def test_day_is_in_the_zone_of_the_resource(tenant: Tenant, widget: Caller) -> None:
    """In Auckland, Monday ends at 11:00 UTC."""
    resource = tenant.make_resource("Ada", timezone="Pacific/Auckland")["id"]
    project = make_project(
        tenant, resource, availability_constraints=[], availability={"length": "4 hours"}
    )

    answers = [
        hold(widget, project, start, end)
        for start, end in (("03:00", "07:00"), ("07:00", "11:00"), ("11:00", "15:00"))
    ]

    assert statuses(answers) == [201, 429, 201]


def test_a_long_hold_takes_only_its_part_of_the_day(tenant: Tenant, widget: Caller) -> None:
    """Ten bicycles for three days each: two may be held for the same first day."""
    bicycles = [tenant.make_resource(f"Bicycle {number}")["id"] for number in range(10)]
    project = make_project(
        tenant, *bicycles, availability={"length": "3 days"}, availability_constraints=[]
    )
    days = {"start": f"{MONDAY}T00:00:00Z", "end": "2026-11-26T00:00:00Z"}

    answers = [widget.post("/bookings/reserve", {"project_id": project, **days}) for _ in range(3)]

    assert statuses(answers) == [201, 201, 429]


def test_unverified_bookings_count_as_holds(tenant: Tenant, widget: Caller) -> None:
    verifying = make_project(
        tenant, tenant.make_resource("Ada")["id"], settings={"verify_email": True}
    )
    held = [hold(widget, verifying, start) for start in ("09:00", "10:00")]

    def book(start: str, end: str, **given: Any) -> Answer:
        body = {"project_id": verifying, "customer": MARTY, **span(start, end), **given}
        return widget.post("/bookings", body)

    answers = [book("11:00", "11:30"), book("12:00", "12:30")]
    own = book("09:00", "09:30", reservation_id=held[0].data["reservation_id"])

    assert (statuses(answers), own.status) == ([202, 429], 202)
    assert tenant.get("/deliveries").json["total"] == 2


def test_a_resource_without_a_project_has_its_own_share(tenant: Tenant, widget: Caller) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_resources": True}})
    ada, bob = (
        tenant.make_resource(name, availability_constraints=OFFICE_HOURS)["id"]
        for name in ("Ada", "Bob")
    )

    answers = [
        widget.post("/bookings/reserve", {"resource_id": resource, **span(start, end)})
        for resource in (ada, bob)
        for start, end in (("09:00", "10:00"), ("10:00", "11:00"))
    ]

    assert statuses(answers) == [201, 429, 201, 429]
