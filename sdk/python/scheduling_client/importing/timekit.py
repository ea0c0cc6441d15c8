"""Timekit (API v2), and services with its wire format, such as this one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduling_client.importing.fields import Fields, missing, read_rows
from scheduling_client.importing.reading import SourceClient, check_number, member, rows_of
from scheduling_client.importing.records import (
    Booking,
    Person,
    Record,
    Resource,
    Rules,
    Service,
    Skipped,
    Unusable,
)
from scheduling_client.importing.times import check_order

URL = "https://api.timekit.io"
LIMIT = 100
STATES = {
    **dict.fromkeys(("confirmed", "paid", "completed"), "confirmed"),
    **dict.fromkeys(("tentative",), "requested"),
    **dict.fromkeys(
        ("cancelled", "cancelled_by_customer", "cancelled_by_owner", "declined", "unpaid"),
        "cancelled",
    ),
}
BOOKED = ("instant", "confirm_decline")
TERMS = ("length", "from", "to", "buffer", "timeslot_increments", "mode")
MODES = ("roundrobin_random", "roundrobin_prioritized")


def read_timekit(source: SourceClient) -> Iterator[Record]:
    """Yield resources, projects and bookings. Raises SourceFailed."""
    resources = read_all(source, "/v2/resources", include="availability_constraints")
    projects = read_all(source, "/v2/projects", include="resources")
    bookings = read_all(source, "/v2/bookings", include="event,customers,user,project")
    yield from read_rows("resource", resources, resource_of)
    yield from read_rows("service", projects, project_of)
    yield from read_rows("booking", bookings, booking_of)


def read_all(source: SourceClient, path: str, *, include: str) -> list[Any]:
    """Return the rows of all pages."""
    rows: list[Any] = []
    page = 1
    while True:
        answer = source.get(path, {"limit": LIMIT, "page": page, "include": include})
        found = rows_of(member(answer, "data", path), path)
        rows += found
        check_number(rows, path)
        if not found or page >= Fields(answer).number("last_page"):
            return rows
        page += 1


def resource_of(row: Fields) -> Resource:
    return Resource(
        key=row.text("id"),
        name=row.text("name"),
        timezone=row.zone("timezone"),
        email=row.optional_text("email"),
        tags=tuple(str(tag) for tag in row.items("tags")),
        capacity=row.number("capacity", 1),
        rules=constraints_of(row),
    )


def constraints_of(row: Fields) -> Rules:
    """Return the rules, which have the service's form: it checks them."""
    return tuple(each.values for each in row.objects("availability_constraints"))


def project_of(row: Fields) -> Service:
    terms = row.object("availability")
    mode = terms.optional_text("mode") or MODES[0]
    if mode not in MODES:
        raise Unusable(f"The mode {mode} is not imported.")
    booking = row.object("booking")
    graph = booking.optional_text("graph") or "instant"
    if graph not in BOOKED:
        raise Unusable(f"The graph {graph} is not imported.")
    resources = [
        each.get("id") if isinstance(each, dict) else each for each in row.items("resources")
    ]
    return Service(
        key=row.text("id"),
        name=row.text("name"),
        resources=tuple(str(each) for each in resources),
        availability={
            name: terms.values[name] for name in TERMS if terms.values.get(name) is not None
        },
        what=booking.optional_text("what"),
        description=booking.optional_text("description"),
        where=booking.optional_text("where"),
        needs_confirmation=graph == "confirm_decline",
        rules=constraints_of(row),
    )


def booking_of(row: Fields) -> Booking | Skipped:
    key = row.text("id")
    state, graph = STATES.get(row.text("state")), row.text("graph")
    if graph.startswith("group_"):
        return Skipped(kind="booking", key=key, reason="Groups and seats are not imported.")
    if state is None:
        return Skipped(kind="booking", key=key, reason=f"Its state is {row.text('state')}.")
    if graph == "instant_payment" and state == "requested":
        return Skipped(kind="booking", key=key, reason="It is not paid.")
    event = row.object("event")
    start, end = event.instant("start"), event.instant("end")
    check_order(start, end)
    people = tuple(
        Person(
            name=each.optional_text("name") or each.text("email"),
            email=each.text("email"),
            phone=each.optional_text("phone"),
            timezone=each.optional_text("timezone"),
        )
        for each in row.objects("customers")
    )
    return Booking(
        key=key,
        resource=row.object("user").text("id"),
        service=row.object("project").optional_text("id"),
        start=start,
        end=end,
        people=people or missing("customers"),
        what=event.text("what"),
        where=event.optional_text("where"),
        description=event.optional_text("description"),
        state=state,  # type: ignore[arg-type]
    )
