"""The mode `roundrobin_fair`: bookings go to the resource that is furthest behind its share."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from availability.models import Project
from bookings.models import Booking
from tests.bookings.booking_drafts import MARTY, NINE, act, span
from tests.world import Answer, Tenant

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.both_databases]


class Practice:
    """Ada, Ben and Cy in a project with fair turns."""

    def __init__(self, tenant: Tenant, **availability: Any) -> None:
        self.tenant = tenant
        self.resources = {name: tenant.make_resource(name) for name in ("Ada", "Ben", "Cy")}
        self.ids = {name: resource["id"] for name, resource in self.resources.items()}
        self.names = {resource_id: name for name, resource_id in self.ids.items()}
        terms = {"mode": "roundrobin_fair", "length": "1 hour", "to": "60 days", **availability}
        self.project = tenant.make_project(*self.ids.values(), availability=terms)["id"]

    def change(self, **availability: Any) -> Answer:
        return self.tenant.put(f"/projects/{self.project}", {"availability": availability})

    def ask(self, times: dict[str, str], **given: Any) -> Answer:
        return self.tenant.book(project_id=self.project, customer=MARTY, **times, **given)

    def book(self, times: dict[str, str], **given: Any) -> str:
        """The name of the resource that gets the booking."""
        return self.names[self.ask(times, **given).data["resource_id"]]

    def book_days(self, *days: int) -> list[str]:
        return [self.book(on(day)) for day in days]

    def explain(self) -> dict[str, Any]:
        body = {
            "project_id": self.project,
            "from": "2026-11-23 00:00:00",
            "to": "2026-11-24 00:00:00",
        }
        records = self.tenant.post("/availability/explain", body).data
        return {record["resource"]["name"]: record["turn"] for record in records}


def on(day: int) -> dict[str, str]:
    return span("09:00", "10:00", f"2026-12-{day:02}")


def test_bookings_take_turns(tenant: Tenant) -> None:
    assert Practice(tenant).book_days(1, 2, 3, 4) == ["Ada", "Ben", "Cy", "Ada"]


def test_named_resource_counts_as_a_turn(tenant: Tenant) -> None:
    practice = Practice(tenant)
    practice.book(on(1), resource_id=practice.ids["Ada"])
    practice.book(on(2), resource_id=practice.ids["Ada"])

    assert practice.book_days(3, 4, 5, 6, 7) == ["Ben", "Cy", "Ben", "Cy", "Ada"]


@pytest.mark.parametrize(("action", "then"), [("cancel", "Ada"), ("complete", "Ben")])
def test_cancelled_bookings_do_not_count(tenant: Tenant, action: str, then: str) -> None:
    practice = Practice(tenant)
    act(tenant, practice.ask(on(1)).data, action)

    assert practice.book(on(2)) == then


def test_weights_share_bookings(tenant: Tenant) -> None:
    practice = Practice(tenant)
    practice.change(weights={practice.ids["Ada"]: 2, practice.ids["Cy"]: 0})

    booked = Counter(practice.book_days(*range(1, 10)))
    named = practice.book(on(10), resource_id=practice.ids["Cy"])

    assert (booked, named) == ({"Ada": 6, "Ben": 3}, "Cy")


def test_busy_resource_is_skipped_and_catches_up(tenant: Tenant) -> None:
    practice = Practice(tenant)
    calendar = practice.resources["Ada"]["calendars"][0]["id"]
    tenant.make_event(calendar, "2026-12-01T00:00:00Z", "2026-12-05T00:00:00Z")

    booked = practice.book_days(1, 2, 3, 4, 7, 8, 9)

    assert booked == ["Ben", "Cy", "Ben", "Cy", "Ada", "Ada", "Ada"]


def test_calibrate_from_restarts_the_count(tenant: Tenant, time_machine: Any) -> None:
    practice = Practice(tenant)
    practice.book(on(1), resource_id=practice.ids["Ada"])
    practice.book(on(2), resource_id=practice.ids["Ben"])
    time_machine.shift(3600)
    changed = practice.change(calibrate_from="2026-11-20T10:00:00")

    assert (changed.status, practice.book_days(3, 4, 5)) == (200, ["Ada", "Ben", "Cy"])


def test_a_hold_takes_a_turn_until_it_expires(tenant: Tenant, time_machine: Any) -> None:
    practice = Practice(tenant)
    asked = {"project_id": practice.project, "reservation_time": 600}

    held = [tenant.post("/bookings/reserve", {**asked, **on(day)}).data for day in (1, 2)]
    names = [practice.names[hold["resource"]["id"]] for hold in held]
    own = practice.book(on(1), reservation_id=held[0]["reservation_id"])
    third = practice.book(on(3))
    time_machine.shift(601)

    assert (names, own, third) == (["Ada", "Ben"], "Ada", "Cy")
    assert practice.book(on(4)) == "Ben"


def test_slots_name_the_next_resource(tenant: Tenant) -> None:
    practice = Practice(tenant)
    practice.book(NINE)
    practice.change(weights={practice.ids["Ben"]: 0}, to="3 days")

    slots = tenant.post("/availability", {"project_id": practice.project}).data

    assert {resource["name"] for slot in slots for resource in slot["resources"]} == {"Cy"}


@pytest.mark.parametrize("caller", ["server", "widget"])
def test_zero_weights_offer_nothing(tenant: Tenant, caller: str) -> None:
    practice = Practice(tenant)
    practice.change(weights=dict.fromkeys(practice.ids.values(), 0))
    by = tenant.widget() if caller == "widget" else tenant
    body = {"project_id": practice.project, "customer": MARTY, "what": "Check-up", **NINE}

    slots = by.post("/availability", {"project_id": practice.project}).data
    answer = by.post("/bookings", body)

    assert (slots, answer.status, answer.json["code"]) == ([], 409, "not_available")


def test_series_goes_to_the_next_resource(tenant: Tenant) -> None:
    practice = Practice(tenant)
    practice.book(on(1))

    answer = practice.ask(on(2), recurrence="FREQ=DAILY;COUNT=4")

    rows = Booking.objects.exclude(series=None).values_list("resource__name", flat=True)
    assert (answer.status, list(rows), practice.book(on(9))) == (201, ["Ben"] * 4, "Cy")


def test_explain_shows_turns(tenant: Tenant) -> None:
    practice = Practice(tenant)
    practice.book_days(1, 2)
    practice.change(weights={practice.ids["Ben"]: 0, practice.ids["Cy"]: 3})

    turns = practice.explain()

    assert list(turns) == ["Cy", "Ada", "Ben"]
    assert turns["Cy"] == {
        "position": 1,
        "weight": 3,
        "bookings": 0,
        "share": 0.75,
        "text": "Is next: 0 of 0.8 bookings due.",
    }
    assert turns["Ada"]["text"] == "Number 2 in turn: 1 of 0.2 bookings due."
    assert turns["Ben"] == {
        "position": None,
        "weight": 0,
        "bookings": 1,
        "share": 0.0,
        "text": "Gets no bookings by turn (weight 0).",
    }


def test_all_free_is_an_alias_of_exclusive(tenant: Tenant) -> None:
    practice = Practice(tenant, mode="all_free", to="2 days")

    slots = tenant.post("/availability", {"project_id": practice.project}).data
    asked = {"project_id": practice.project, "mode": "exclusive"}

    assert slots == tenant.post("/availability", asked).data
    assert [each["name"] for each in slots[0]["resources"]] == ["Ada", "Ben", "Cy"]


ID = "01a1f84a-95c0-8000-8000-000000000001"


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({"weights": 5}, {"weights": ["Must be an object."]}),
        ({"weights": {"ada": 1}}, {"weights.ada": ["Must be a UUID."]}),
        ({"weights": {ID: "2"}}, {f"weights.{ID}": ["Must be an integer."]}),
        (
            {"weights": {ID: -1}},
            {f"weights.{ID}": ["Ensure this value is greater than or equal to 0."]},
        ),
        (
            {"weights": {ID: 1001}},
            {f"weights.{ID}": ["Ensure this value is less than or equal to 1000."]},
        ),
        ({"calibrate_from": 5}, {"calibrate_from": ["Must be a string."]}),
        (
            {"calibrate_from": "yesterday"},
            {"calibrate_from": ["Must be a date and time such as 2026-11-20T10:30:00+01:00."]},
        ),
    ],
)
def test_wrong_values_are_refused(tenant: Tenant, given: Any, errors: dict[str, Any]) -> None:
    project = tenant.make_project()

    answers = [
        tenant.put(f"/projects/{project['id']}", {"availability": given}),
        tenant.post("/availability", {"project_id": project["id"], **given}),
    ]

    prefixed = {f"availability.{path}": text for path, text in errors.items()}
    assert [answer.status for answer in answers] == [422, 422]
    assert [answer.json["errors"] for answer in answers] == [prefixed, errors]


def test_number_of_weights_is_limited(tenant: Tenant) -> None:
    project = tenant.make_project()["id"]
    keys = [f"01a1f84a-95c0-8000-8000-{number:012}" for number in range(501)]

    answers = [
        tenant.put(f"/projects/{project}", {"availability": {"weights": dict.fromkeys(part, 1)}})
        for part in (keys, keys[:500], keys[500:])
    ]

    assert [answer.status for answer in answers] == [422, 200, 422]
    assert len(Project.objects.get(id=project).availability["weights"]) == 500


def test_weights_of_foreign_ids_are_ignored(
    tenant: Tenant, make_tenant: Callable[[], Tenant]
) -> None:
    practice = Practice(tenant)
    foreign = make_tenant().make_resource("Eve")["id"]
    practice.change(weights={foreign: 9})

    assert (practice.book_days(1, 2), set(practice.explain())) == (["Ada", "Ben"], {*practice.ids})
