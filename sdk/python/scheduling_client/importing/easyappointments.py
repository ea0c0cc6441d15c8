"""Easy!Appointments (REST API v1): providers, services, appointments and blocked time.

Times of Easy!Appointments are on the clock of the provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from scheduling_client.importing.fields import Fields, missing, read_rows
from scheduling_client.importing.hours import (
    DAYS,
    date_text,
    make_rules,
    slot_terms,
    window,
    without_breaks,
)
from scheduling_client.importing.reading import SourceClient, check_number, rows_of
from scheduling_client.importing.records import (
    Booking,
    Event,
    Person,
    Record,
    Resource,
    Rules,
    Service,
    Skipped,
    Unusable,
)
from scheduling_client.importing.times import check_order, instant_of

PAGE = 100
MAX_EXCEPTION_DAYS = 366
NOT_BOOKED = ("draft",)


def read_easyappointments(source: SourceClient, *, now: datetime) -> Iterator[Record]:
    """Yield providers, services, appointments, unavailabilities and blocked periods.

    source: at `.../index.php/api/v1`. Raises SourceFailed.
    """
    providers = read_all(source, "/providers")
    services = read_all(source, "/services")
    customers = {row.get("id"): row for row in read_all(source, "/customers")}
    names = {row.get("id"): row.get("name") for row in services}
    zones = {row.get("id"): row.get("timezone") or "UTC" for row in providers}
    offered: dict[Any, list[str]] = {}
    for row in providers:
        for service_id in row.get("services") or ():
            offered.setdefault(service_id, []).append(str(row.get("id")))
    yield from read_rows("resource", providers, lambda row: provider_of(row, now))
    yield from read_rows("service", services, lambda row: service_of(row, offered))
    appointments = [
        {
            **row,
            "service": names.get(row.get("serviceId")),
            "customer": customers.get(row.get("customerId")),
        }
        for row in read_all(source, "/appointments")
    ]
    yield from read_rows("booking", appointments, lambda row: appointment_of(row, zones))
    unavailabilities = read_all(source, "/unavailabilities")
    yield from read_rows("event", unavailabilities, lambda row: unavailability_of(row, zones))
    periods = read_all(source, "/blocked_periods", is_optional=True)
    for provider in zones:
        rows = [{**row, "providerId": provider} for row in periods]
        yield from read_rows("event", rows, lambda row: period_of(row, zones))


def read_all(source: SourceClient, path: str, *, is_optional: bool = False) -> list[dict[str, Any]]:
    """Return the rows of all pages. is_optional: older versions have no such path."""
    rows: list[dict[str, Any]] = []
    page = 1
    while True:
        query: dict[str, str | int] = {"page": page, "length": PAGE, "sort": "+id"}
        answer = source.get(path, query, is_optional=is_optional)
        found = rows_of([] if answer is None else answer, path)
        rows += [row for row in found if isinstance(row, dict)]
        check_number(rows, path)
        if len(found) < PAGE:
            return rows
        page += 1


def provider_of(row: Fields, now: datetime) -> Resource:
    names = [row.optional_text("firstName"), row.optional_text("lastName")]
    return Resource(
        key=row.text("id"),
        name=" ".join(name for name in names if name) or missing("lastName"),
        timezone=row.zone("timezone", "UTC"),
        email=row.optional_text("email"),
        rules=rules_of(row.object("settings"), now),
    )


def rules_of(settings: Fields, now: datetime) -> Rules:
    """Read `workingPlan` and `workingPlanExceptions`; a day that is null is closed."""
    plan = settings.object("workingPlan")
    weekly = {day: windows_of(plan.object(day.lower())) for day in DAYS}
    return make_rules(weekly, exceptions_of(settings), since=now.date())


def windows_of(day: Fields) -> tuple[tuple[str, str], ...]:
    """Return a day's windows: from `start` to `end` without the breaks. Raises Unusable."""
    if day.optional_text("start") is None:
        return ()
    whole = (window(day.text("start"), day.text("end")),)
    breaks = [window(each.text("start"), each.text("end")) for each in day.objects("breaks")]
    return without_breaks(whole, breaks)


def exceptions_of(settings: Fields) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the windows by date: of an object by date, or of a list of periods."""
    found = settings.values.get("workingPlanExceptions")
    if isinstance(found, Mapping):
        return {date_text(day): windows_of(Fields(each or {})) for day, each in found.items()}
    dates = {}
    for each in settings.objects("workingPlanExceptions"):
        first, last = date_text(each.text("startDate")), date_text(each.text("endDate"))
        named = {"start": each.values.get("startTime"), "end": each.values.get("endTime")}
        windows = windows_of(Fields({**named, "breaks": each.values.get("breaks")}))
        days = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).days + 1
        if days > MAX_EXCEPTION_DAYS:
            raise Unusable("An exception of the working plan is longer than a year.")
        for number in range(days):
            day = datetime.fromisoformat(first) + timedelta(days=number)
            dates[day.date().isoformat()] = windows
    return dates


def service_of(row: Fields, offered: Mapping[Any, list[str]]) -> Service:
    resources = tuple(offered.get(row.values.get("id"), ()))
    if not resources:
        raise Unusable("No provider offers it.")
    attendants = row.number("attendantsNumber", 1)
    return Service(
        key=row.text("id"),
        name=row.text("name"),
        resources=resources,
        availability=slot_terms(
            row.length("duration"), increments=row.number("slotInterval") or None
        ),
        description=row.optional_text("description"),
        where=row.optional_text("location"),
        note=f"Left out: {attendants} attendants at once." if attendants > 1 else "",
    )


def appointment_of(row: Fields, zones: Mapping[Any, str]) -> Booking | Skipped:
    """Read an appointment with its `customer` and the name of its `service`."""
    start, end = times_of(row, zones)
    status = (row.optional_text("status") or "").lower()
    if status in NOT_BOOKED:
        return Skipped(kind="booking", key=row.text("id"), reason=f"Its status is {status}.")
    customer = row.object("customer")
    names = [customer.optional_text("firstName"), customer.optional_text("lastName")]
    email = customer.text("email")
    person = Person(
        name=" ".join(name for name in names if name) or email,
        email=email,
        phone=customer.optional_text("phone"),
        timezone=customer.optional_text("timezone"),
    )
    return Booking(
        key=row.text("id"),
        resource=row.text("providerId"),
        service=row.text("serviceId"),
        start=start,
        end=end,
        people=(person,),
        what=row.text("service"),
        where=row.optional_text("meetingLink") or row.optional_text("location"),
        internal_note=row.optional_text("notes"),
        state="cancelled" if status.startswith("cancel") else "confirmed",
    )


def times_of(row: Fields, zones: Mapping[Any, str]) -> tuple[datetime, datetime]:
    """Return start and end, which the API writes on the provider's clock. Raises Unusable."""
    zone = zones.get(row.values.get("providerId")) or missing("providerId")
    start, end = (instant_of(read_wall_time(row.text(name)), zone) for name in ("start", "end"))
    check_order(start, end)
    return start, end


def read_wall_time(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S")
    except ValueError:
        raise Unusable(f"{text!r} is no time such as 2026-11-23 09:00:00.") from None


def unavailability_of(row: Fields, zones: Mapping[Any, str]) -> Event:
    start, end = times_of(row, zones)
    return Event(
        key=f"unavailability-{row.text('id')}",
        resource=row.text("providerId"),
        start=start,
        end=end,
        what=row.optional_text("notes") or "Unavailable",
    )


def period_of(row: Fields, zones: Mapping[Any, str]) -> Event:
    """A period in which nobody can be booked, as an event of one provider."""
    start, end = times_of(row, zones)
    provider = row.text("providerId")
    return Event(
        key=f"blocked-{row.text('id')}-{provider}",
        resource=provider,
        start=start,
        end=end,
        what=row.optional_text("name") or "Blocked",
    )
