"""What the tests of holds share: requests for nine o'clock on Monday, and how they are refused."""

from datetime import timedelta
from typing import Any

from tests.bookings.booking_drafts import MARTY, NINE, shown
from tests.world import NOW, Answer, Caller, Tenant

EXPIRED = {"error": "The hold has expired or was already used.", "code": "hold_expired"}


def make_project(tenant: Tenant, *resources: Any, **given: Any) -> str:
    """Its id."""
    return tenant.make_project(*(resource["id"] for resource in resources), **given)["id"]


def reserve(caller: Caller, **given: Any) -> Answer:
    """POST /bookings/reserve of nine o'clock on Monday, unless another time is given."""
    return caller.post("/bookings/reserve", {**NINE, **given})


def hold_of(caller: Caller, **given: Any) -> str:
    """The id of a hold that is placed."""
    answer = reserve(caller, **given)
    assert answer.status == 201, answer.json
    return answer.data["reservation_id"]


def extend(caller: Caller, hold: str, **given: Any) -> Answer:
    return caller.put("/bookings/reserve/extend", {"reservation_id": hold, **given})


def release(caller: Caller, hold: str) -> Answer:
    return caller.delete(f"/bookings/reserve/{hold}")


def book(caller: Caller, **given: Any) -> Answer:
    """POST /bookings of nine o'clock on Monday, unless another time is given."""
    return caller.post("/bookings", {"what": "Check-up", "customer": MARTY, **NINE, **given})


def at_second(second: int) -> str:
    """So many seconds after NOW, as an answer writes it."""
    return (NOW + timedelta(seconds=second)).isoformat()


def taken_answer(*alternatives: str) -> tuple[int, Any]:
    """The refusal of nine to ten; `10:00` is an alternative of an hour."""
    return 409, {
        "error": "The time is taken.",
        "code": "slot_taken",
        "conflicts": [shown("09:00", "10:00")],
        "alternatives": [
            shown(f"{alternative}:00", f"{int(alternative) + 1}:00") for alternative in alternatives
        ],
    }


TAKEN = taken_answer("10", "11", "12")
