"""What tools return of the API's records: chosen fields, and customers' texts apart from ours.

An agent reads all of it, and may take a sentence for an order. So what customers typed stands only
under `untrusted_text`.
"""

import unicodedata
from collections.abc import Mapping
from typing import Any

MAX_TEXT = 300

Json = dict[str, Any]


def clean_text(text: Any) -> str:
    """Return one line of at most MAX_TEXT characters, without control and format characters."""
    visible = (
        " " if unicodedata.category(character).startswith(("C", "Z")) else character
        for character in str(text)[: 4 * MAX_TEXT]
    )
    return " ".join("".join(visible).split())[:MAX_TEXT]


def mask_email(email: str) -> str:
    """
    >>> mask_email("marty@example.com")
    'm***@example.com'
    """
    name, _, domain = email.rpartition("@")
    return f"{name[:1]}***@{domain}"


def service_record(project: Json) -> Json:
    """A project, with what an agent needs to search and to book."""
    terms, defaults = project["availability"], project["booking"]
    return {
        "project_id": project["id"],
        "slug": project["slug"],
        "name": project["name"],
        "length": terms.get("length"),
        "lengths": terms.get("lengths"),
        "mode": terms.get("mode"),
        "graph": defaults.get("graph"),
        "where": defaults.get("where"),
        "description": defaults.get("description"),
        "customer_fields": project["customer_fields"],
    }


def resource_record(resource: Json) -> Json:
    return {
        "resource_id": resource["id"],
        "name": resource["name"],
        "timezone": resource["timezone"],
    }


def booking_record(booking: Json) -> Json:
    """A booking with the includes of `BOOKING`, as far as the key may see them."""
    event, project = booking.get("event") or booking, booking.get("project")
    resource, customers = booking.get("resource"), booking.get("customers", [])
    record = {
        "booking_id": booking["id"],
        "state": booking["state"],
        "graph": booking["graph"],
        "start": event["start"],
        "end": event["end"],
        "project": project and {"project_id": project["id"], "name": project["name"]},
        "resource": resource and {"resource_id": resource["id"], "name": resource["name"]},
        "outcome": booking.get("outcome"),
        "available_actions": booking.get("available_actions", []),
        "customers": [{name: each[name] for name in ("email", "phone")} for each in customers],
    }
    typed = _typed_texts(event, customers, (project or {}).get("customer_fields") or {})
    return record | {"untrusted_text": typed}


def _typed_texts(event: Json, customers: list[Json], fields: Mapping[str, Any]) -> Json:
    """Texts of the booking and, in the order of `customers`, of each customer."""
    typed = {
        name: clean_text(event[name])
        for name in ("what", "where", "description")
        if event.get(name)
    }
    return typed | {
        "customers": [
            {
                "name": clean_text(customer.get("name") or ""),
                "answers": {
                    field: clean_text(value)
                    for field, value in (customer.get("meta") or {}).items()
                    if field in fields
                },
            }
            for customer in customers
        ]
    }


# The includes that `booking_record` reads, for keys that see whole bookings.
BOOKING = "event,project,resource,customers,outcome,available_actions"
REFUSAL_FIELDS = ("code", "error", "errors", "alternatives")


def refusal_record(refusal: Json) -> Json:
    """An error of the API: its sentences are the service's own."""
    return {name: refusal[name] for name in REFUSAL_FIELDS if name in refusal}
