"""Policies of a project: whom they bind, whom not (section 4)."""

from typing import Any

import pytest

from bookings.models import Booking
from bookings.services import customer_may_move
from tests.bookings.booking_drafts import MONDAY, NINE, answered, shown, signature_of, span, whole
from tests.world import Answer, Caller, Tenant, at

pytestmark = pytest.mark.usefixtures("clock")


class Desk:
    """A resource with a key, a project with policies, a booking of it on Monday at nine."""

    def __init__(self, tenant: Tenant, **settings: Any) -> None:
        self.tenant = tenant
        resource = tenant.make_resource("Ada", email="ada@example.com")
        settings = {"public_reschedule": "id", **settings}
        self.project = tenant.make_project(resource["id"], settings=settings)["id"]
        self.booking = tenant.book(project_id=self.project, **NINE).data
        self.path = f"/bookings/{self.booking['id']}"
        self.callers = {
            "server": tenant,
            "owner": tenant.member("owner@example.com"),
            "editor": tenant.member("editor@example.com", "editor"),
            "resource": Caller(resource["api_token"], user="ada@example.com"),
            "widget": tenant.widget(),
        }

    def move(self, caller: str, times: dict[str, str] | None = None) -> Answer:
        times = times or span("11:00", "12:00")
        return self.callers[caller].post(f"{self.path}/reschedule", times)

    def act(self, caller: str, action: str) -> Answer:
        return self.callers[caller].put(f"{self.path}/{action}")

    @property
    def start(self) -> str:
        return whole(self.tenant, self.booking)["attributes"]["event_info"]["start"]


def refusal(policy: str, limit: Any) -> tuple[int, dict[str, Any]]:
    return 409, {
        "error": f"The policy {policy} does not allow this.",
        "code": "policy",
        "policy": policy,
        "limit": limit,
    }


STAFF = ("server", "owner", "editor", "resource")


# --- min_cancel_time ------------------------------------------------------------------------------
@pytest.mark.matrix
@pytest.mark.parametrize("caller", STAFF)
@pytest.mark.parametrize(
    ("limit", "now", "allowed"),
    [
        ("1 day", f"{MONDAY} 09:00:01", False),
        ("1 day", "2026-11-22 09:00:01", False),
        ("1 day", "2026-11-22 09:00:00", True),
        ("2 hours 30 mins", f"{MONDAY} 06:30:00", True),
        ("2 hours 30 mins", f"{MONDAY} 06:30:01", False),
        ("1 week", "2026-11-20 09:30:00", False),
        ("0", f"{MONDAY} 09:00:00", True),
        ("0", f"{MONDAY} 09:00:01", False),
        (None, f"{MONDAY} 12:00:00", True),
    ],
)
def test_min_cancel_time_applies_to_the_customer(
    tenant: Tenant, clock: Any, caller: str, limit: str | None, now: str, allowed: bool
) -> None:
    """It binds the action, whoever carries it out."""
    desk = Desk(tenant, min_cancel_time=limit)
    clock.move_to(at(now))

    answer = desk.act(caller, "cancel_by_customer")

    if allowed:
        assert (answer.status, answer.data["state"]) == (200, "cancelled_by_customer")
    else:
        assert (answer.status, answer.error) == refusal("min_cancel_time", limit)
        assert whole(tenant, desk.booking)["state"] == "confirmed"


@pytest.mark.parametrize("caller", STAFF)
@pytest.mark.parametrize("action", ["cancel", "complete"])
def test_staff_ignore_min_cancel_time(tenant: Tenant, clock: Any, caller: str, action: str) -> None:
    desk = Desk(tenant, min_cancel_time="1 week")
    clock.move_to(at(f"{MONDAY} 09:30"))

    answer = desk.act(caller, action)

    now = {"updated_at": f"{MONDAY}T09:30:00+0000"}
    state = {"cancel": "cancelled", "complete": "completed"}[action]
    assert (answer.status, answer.json) == (200, {"data": answered(desk.booking, state, **now)})


def test_min_cancel_time_applies_to_tentative_bookings(tenant: Tenant) -> None:
    desk = Desk(tenant, min_cancel_time="1 week")
    pending = tenant.book(
        project_id=desk.project, graph="confirm_decline", **span("11:00", "12:00")
    ).data

    answers = [
        tenant.put(f"/bookings/{pending['id']}/{action}")
        for action in ("cancel_by_customer", "decline")
    ]

    assert (answers[0].status, answers[0].error) == refusal("min_cancel_time", "1 week")
    assert answers[1].status == 200


def test_graph_is_checked_before_policies(tenant: Tenant) -> None:
    desk = Desk(tenant, min_cancel_time="1 week")
    desk.act("server", "cancel")

    answer = desk.act("server", "cancel_by_customer")

    assert (answer.status, answer.json["code"]) == (409, "action_not_allowed")


def test_bookings_without_a_project_have_no_policies(tenant: Tenant, clock: Any) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"public_resources": True}})
    booking = tenant.book(resource_id=tenant.make_resource()["id"], **NINE).data
    move = {**span("11:00", "12:00"), "signature": signature_of(booking)}
    clock.move_to(at(f"{MONDAY} 08:59"))

    answers = [
        tenant.widget().post(f"/bookings/{booking['id']}/reschedule", move),
        tenant.put(f"/bookings/{booking['id']}/cancel_by_customer"),
    ]

    assert [answer.status for answer in answers] == [200, 200]


# --- min_reschedule_time --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("limit", "now", "allowed"),
    [
        ("1 day", "2026-11-22 09:00:01", False),
        ("1 day", "2026-11-22 09:00:00", True),
        ("90 minutes", f"{MONDAY} 07:30:01", False),
        (None, f"{MONDAY} 08:59:59", True),
    ],
)
def test_min_reschedule_time_applies_to_a_widget_key(
    tenant: Tenant, clock: Any, limit: str | None, now: str, allowed: bool
) -> None:
    desk = Desk(tenant, min_reschedule_time=limit)
    clock.move_to(at(now))

    answer = desk.move("widget")

    if allowed:
        assert (answer.status, desk.start) == (200, shown("11:00", "12:00")["start"])
    else:
        assert (answer.status, answer.error) == refusal("min_reschedule_time", limit)
        assert desk.start == shown("09:00", "10:00")["start"]


@pytest.mark.parametrize("caller", STAFF)
def test_staff_ignore_reschedule_policies(tenant: Tenant, clock: Any, caller: str) -> None:
    desk = Desk(tenant, min_reschedule_time="1 week", max_reschedules=0)
    clock.move_to(at(f"{MONDAY} 08:59"))

    answer = desk.move(caller)

    now = {"updated_at": f"{MONDAY}T08:59:00+0000"}
    assert (answer.status, answer.json) == (
        200,
        {"data": answered(desk.booking, "confirmed", **now)},
    )
    assert desk.start == shown("11:00", "12:00")["start"]


# --- max_reschedules ------------------------------------------------------------------------------
@pytest.mark.parametrize("most", [0, 1, 2])
def test_max_reschedules_applies_to_a_widget_key(tenant: Tenant, most: int) -> None:
    desk = Desk(tenant, max_reschedules=most)

    answers = [desk.move("widget", span(f"{11 + n}:00", f"{12 + n}:00")) for n in range(most + 1)]

    assert [answer.status for answer in answers] == [200] * most + [409]
    assert (answers[-1].status, answers[-1].error) == refusal("max_reschedules", most)


@pytest.mark.parametrize("staff", STAFF)
def test_staff_reschedules_do_not_count(tenant: Tenant, staff: str) -> None:
    desk = Desk(tenant, max_reschedules=1)

    statuses = [
        desk.move(caller, span(f"{hour}:00", f"{hour + 1}:00")).status
        for caller, hour in ((staff, 10), ("widget", 11), (staff, 12), ("widget", 13))
    ]

    assert statuses == [200, 200, 200, 409]


def test_reschedule_link_while_moves_are_left(tenant: Tenant) -> None:
    desk = Desk(tenant, max_reschedules=1)
    offered = []

    for caller, hour in (("server", 10), ("widget", 11)):
        desk.move(caller, span(f"{hour}:00", f"{hour + 1}:00"))
        offered.append(customer_may_move(Booking.objects.get(id=desk.booking["id"])))

    assert offered == [True, False]


def test_refused_reschedules_do_not_count(tenant: Tenant) -> None:
    desk = Desk(tenant, max_reschedules=1)
    tenant.book(project_id=desk.project, **span("11:00", "12:00"))

    answers = [desk.move("widget", span(f"{hour}:00", f"{hour + 1}:00")) for hour in (11, 13)]

    assert [answer.status for answer in answers] == [409, 200]
    assert answers[0].json["code"] == "slot_taken"


# --- They are those of today ----------------------------------------------------------------------
def test_current_policies_of_the_project_apply(tenant: Tenant) -> None:
    desk = Desk(tenant)
    settings = {"min_cancel_time": "1 week", "min_reschedule_time": "1 week"}

    tenant.put(f"/projects/{desk.project}", {"settings": settings})

    assert desk.move("widget").json["policy"] == "min_reschedule_time"
    assert desk.act("server", "cancel_by_customer").json["policy"] == "min_cancel_time"
    assert desk.act("server", "cancel").json == {"data": answered(desk.booking, "cancelled")}
