"""What the tests of bookings share: a Monday, a customer, and records as the API writes them."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from availability.models import Event
from bookings.models import Booking, BookingNotification, Customer, StateChange
from bookings.pages.action_links import action_url
from common.time.instants import format_instant
from tests.world import STAMP, Answer, Tenant

MONDAY = "2026-11-23"  # three days after NOW
MARTY = {"name": "Marty McFly", "email": "marty@example.com"}
MODELS = (Booking, Event, Customer, StateChange, BookingNotification)
ACTIONS_OF = {
    ("instant", "initialized"): ["confirm", "create"],
    ("instant", "confirmed"): ["cancel", "cancel_by_customer", "complete"],
    ("confirm_decline", "tentative"): ["confirm", "decline", "cancel", "cancel_by_customer"],
    ("confirm_decline", "confirmed"): ["cancel", "cancel_by_customer", "complete"],
    ("instant_payment", "tentative"): ["pay", "timeout", "cancel"],
    ("instant_payment", "paid"): ["cancel", "cancel_by_customer", "complete"],
    ("group_owner", "tentative"): ["cancel", "complete"],
    ("group_customer", "confirmed"): ["cancel_by_customer", "cancel_by_owner", "complete"],
    ("group_customer_payment", "tentative"): ["pay", "timeout", "cancel", "cancel_by_owner"],
    ("group_customer_payment", "paid"): [
        *("cancel", "cancel_by_customer", "complete", "cancel_by_owner"),
    ],
}


def span(start: str, end: str, day: str = MONDAY) -> dict[str, str]:
    """`span("09:00", "10:00")`: start and end on that Monday, in UTC."""
    return {"start": f"{day}T{start}:00Z", "end": f"{day}T{end}:00Z"}


def shown(start: str, end: str, day: str = MONDAY) -> dict[str, str]:
    """The same as answers write it."""
    return {"start": f"{day}T{start}:00+00:00", "end": f"{day}T{end}:00+00:00"}


NINE = span("09:00", "10:00")


def entry(booking: Any, state: str, graph: str = "instant", **given: Any) -> dict[str, Any]:
    """A booking as it stands in a list."""
    return {
        "id": booking["id"],
        "external_id": None,
        "state": state,
        "graph": graph,
        "completed": (graph, state) not in ACTIONS_OF,
        "created_at": STAMP,
        "updated_at": STAMP,
        **given,
    }


def answered(booking: Any, state: str, graph: str = "instant", **given: Any) -> dict[str, Any]:
    """A booking as the request that made or changed it is answered."""
    row = Booking.objects.select_related("event").get(id=booking["id"])
    return entry(booking, state, graph, **given) | {
        "resource_id": str(row.resource_id),
        "project_id": str(row.project_id) if row.project_id else None,
        "start": format_instant(row.event.start),
        "end": format_instant(row.event.end),
    }


def uid_of(booking: Any) -> str:
    """The UID of a booking's entry in calendars, without the host."""
    return str(Booking.objects.get(id=booking["id"]).calendar_uid)


def booking_of(uid: str) -> str:
    """The id of the booking that an entry in a calendar stands for."""
    return str(Booking.objects.get(calendar_uid=uid.partition("@")[0]).id)


def signature_of(booking: Any) -> str:
    """What the link of a mail carries by which the customer moves the booking."""
    row = Booking.objects.select_related("event").get(id=booking["id"])
    query = urlsplit(action_url(row, "reschedule", row.event.end)).query
    return parse_qs(query)["signature"][0]


def links(booking: Any) -> dict[str, str]:
    """The addresses by which the customer of a live booking can act: they work until its end."""
    row = Booking.objects.select_related("event").get(id=booking["id"])
    return {"cancel_by_customer": action_url(row, "cancel_by_customer", row.event.end)}


def act(tenant: Tenant, booking: Any, action: str, body: Any = None) -> Answer:
    """PUT an action to a booking."""
    return tenant.put(f"/bookings/{booking['id']}/{action}", body)


def whole(tenant: Tenant, booking: Any) -> Any:
    """GET /bookings/:id with its history."""
    return tenant.get(f"/bookings/{booking['id']}?include=logs").data


def attributes_of(tenant: Tenant, answer: Answer) -> Any:
    assert answer.status == 201, answer.json
    return whole(tenant, answer.data)["attributes"]


def event_info(tenant: Tenant, answer: Answer) -> Any:
    return attributes_of(tenant, answer)["event_info"]


def steps(tenant: Tenant, booking: Any) -> list[tuple[str, str, str]]:
    """The history of a booking: from, action, to."""
    logs = whole(tenant, booking)["logs"]
    return [(log["from_state"], log["action"], log["to_state"]) for log in logs]


def busy_times(tenant: Tenant, *resource_ids: str, day: str = MONDAY) -> list[str]:
    """`09:00-10:00`: what is not free on a day, in UTC, of resources that have no rules."""
    query = {
        "resources": list(resource_ids),
        "from": f"{day}T00:00:00Z",
        "to": f"{day}T23:59:59Z",
    }
    spans = tenant.post("/unavailable/slots", query).data
    return [f"{each_span['start'][11:16]}-{each_span['end'][11:16]}" for each_span in spans]


def refused(answer: Answer) -> tuple[int, Any]:
    """The status and the whole error."""
    return answer.status, answer.error


def count_rows() -> dict[str, int]:
    """The rows of each table that a new booking writes to."""
    return {model.__name__: model.objects.count() for model in MODELS}
