"""What the tests of groups share: a group of two seats on a Monday, and ways to take them."""

from typing import Any

from tests.availability.queries import refusal
from tests.bookings.booking_drafts import NINE
from tests.world import Answer, Tenant

ANN, BOB, CYD = (
    {"name": name.title(), "email": f"{name}@example.com"} for name in ("ann", "bob", "cyd")
)
NO_GROUP = (422, refusal(related__owner_booking_id="There is no such group."))


def make_group(tenant: Tenant, resource: Any, *, max_seats: int = 2, **given: Any) -> Any:
    """The record of an owner's booking of nine o'clock, unless another time is given."""
    settings = {"max_seats": max_seats, **given.pop("settings", {})}
    body = {
        "graph": "group_owner",
        "resource_id": resource["id"],
        "what": "Yoga",
        "where": "Hall 1",
        "settings": settings,
        **NINE,
        **given,
    }
    answer = tenant.post("/bookings", body)
    assert answer.status == 201, answer.json
    return answer.data


def take_seat(tenant: Any, group: Any, customer: Any = ANN, **given: Any) -> Answer:
    body = {
        "graph": "group_customer",
        "related": {"owner_booking_id": group["id"]},
        "customer": customer,
        **given,
    }
    return tenant.post("/bookings", body)


def seat_in(tenant: Any, group: Any, customer: Any = ANN, **given: Any) -> Any:
    """The record of a seat that is taken."""
    answer = take_seat(tenant, group, customer, **given)
    assert answer.status == 201, answer.json
    return answer.data


def seats_of(tenant: Tenant, group: Any) -> dict[str, int]:
    return tenant.get(f"/bookings/{group['id']}").data["attributes"]["group_booking"]


def invalid(**errors: str) -> tuple[int, Any]:
    """The refusal of wrong values; `__` in a path stands for a dot."""
    return 422, refusal(**errors)


def states(tenant: Tenant, *bookings: Any) -> list[str]:
    return [tenant.get(f"/bookings/{booking['id']}").data["state"] for booking in bookings]
