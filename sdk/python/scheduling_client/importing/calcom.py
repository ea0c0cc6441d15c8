"""Cal.com (API v2): the owner of the key, with schedules, event types and bookings.

Hours are those of the default schedule, as rules of the resource. If an event type has another
schedule, the hours are rules of the projects instead, each with its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from scheduling_client.importing.fields import Fields, missing, read_rows
from scheduling_client.importing.hours import date_text, day_name, make_rules, slot_terms, window
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

URL = "https://api.cal.com"
VERSIONS = {  # of each path, as `cal-api-version`
    "/v2/schedules": "2024-06-11",
    "/v2/event-types": "2024-06-14",
    "/v2/bookings": "2024-08-13",
}
TAKE = 100
DAY = 24 * 60  # minutes
STATES = {
    "accepted": "confirmed",
    "pending": "requested",
    "cancelled": "cancelled",
    "rejected": "cancelled",
}
STANDARD_QUESTIONS = frozenset(
    {"name", "email", "attendeePhoneNumber", "location", "title", "notes", "guests"}
    | {"rescheduleReason", "smsReminderNumber"}
)


def read_calcom(source: SourceClient, *, now: datetime) -> Iterator[Record]:
    """Yield the person, the event types and the bookings. Raises SourceFailed."""
    me = Fields(read(source, "/v2/me"))
    schedules = rows_of(read(source, "/v2/schedules"), "/v2/schedules")
    event_types = rows_of(read(source, "/v2/event-types"), "/v2/event-types")
    check_number(event_types, "/v2/event-types")
    bookings = read_bookings(source)
    hours = Schedules(schedules, me, now)
    owns = any(hours.is_own(row) for row in event_types)
    yield from read_rows("resource", [me.values], lambda row: person_of(row, hours, owns))

    def read_service(row: Fields) -> Record:
        return service_of(row, me.text("id"), hours.rules(row.values) if owns else ())

    yield from read_rows("service", event_types, read_service)
    yield from read_rows(
        "booking", bookings, lambda row: booking_of(row, me.text("id")), id_name="uid"
    )


def read(source: SourceClient, path: str, query: dict[str, Any] | None = None) -> Any:
    """Return the `data` of an answer."""
    version = VERSIONS.get(path)
    headers = {"cal-api-version": version} if version else None
    return member(source.get(path, query, headers), "data", path)


def read_bookings(source: SourceClient) -> list[Any]:
    path = "/v2/bookings"
    rows: list[Any] = []
    while True:
        found = rows_of(read(source, path, {"take": TAKE, "skip": len(rows)}), path)
        rows += found
        check_number(rows, path)
        if len(found) < TAKE:
            return rows


class Schedules:
    """The opening hours of the person. Raises Unusable where they can't be read."""

    def __init__(self, rows: list[Any], me: Fields, now: datetime) -> None:
        self.by_id = {row.get("id"): row for row in rows if isinstance(row, dict)}
        default = next((id for id, row in self.by_id.items() if row.get("isDefault")), None)
        self.default = me.values.get("defaultScheduleId") or default
        self.now = now
        self.me = me

    def is_own(self, event_type: Any) -> bool:
        own = event_type.get("scheduleId") if isinstance(event_type, dict) else None
        return own is not None and own != self.default

    def zone(self) -> str:
        """Return the zone of the default schedule, else that of the person."""
        schedule = Fields(self.by_id.get(self.default) or {})
        return schedule.zone("timeZone", self.me.optional_text("timeZone"))

    def rules(self, event_type: Any) -> Rules:
        """Return the rules of an event type's schedule, or of the default one."""
        id = event_type.get("scheduleId") or self.default
        schedule = Fields(self.by_id.get(id) or missing("scheduleId"))
        if schedule.zone("timeZone", self.zone()) != self.zone():
            raise Unusable("Its schedule has another time zone than the default schedule.")
        weekly: dict[str, list[tuple[str, str]]] = {}
        for part in schedule.objects("availability"):
            times = window(part.text("startTime"), part.text("endTime"))
            for day in part.items("days"):
                weekly.setdefault(day_name(str(day)), []).append(times)
        dates: dict[str, list[tuple[str, str]]] = {}
        for each in schedule.objects("overrides"):
            windows = dates.setdefault(date_text(each.text("date")), [])
            start, end = each.text("startTime"), each.text("endTime")
            if start != end:  # 00:00 to 00:00 closes the day
                windows.append(window(start, end))
        return make_rules(weekly, dates, since=self.now.date())


def person_of(me: Fields, hours: Schedules, owns: bool) -> Resource:
    return Resource(
        key=me.text("id"),
        name=me.optional_text("name") or me.text("username"),
        timezone=hours.zone(),
        email=me.optional_text("email"),
        rules=() if owns or not hours.by_id else hours.rules({}),
        note="Open at all times: its projects have the hours." if owns else "",
    )


def service_of(row: Fields, me: str, rules: Rules) -> Service:
    length = row.length("lengthInMinutes")
    policy = row.object("confirmationPolicy")
    confirmation = policy.optional_text("type") is not None and not policy.flag("disabled")
    return Service(
        key=row.text("id"),
        name=row.text("title"),
        resources=(me,),
        availability=slot_terms(
            length,
            lengths=[each for each in row.items("lengthInMinutesOptions") if isinstance(each, int)],
            buffer_before=row.number("beforeEventBuffer"),
            buffer_after=row.number("afterEventBuffer"),
            notice=row.number("minimumBookingNotice"),
            window=window_of(row.object("bookingWindow")),
            increments=row.number("slotInterval") or None,
        ),
        description=row.optional_text("description"),
        where=place_of(row),
        needs_confirmation=confirmation,
        rules=rules,
        note=left_out(row),
    )


def window_of(window: Fields) -> int | None:
    """Return the booking window in minutes, if it is a number of calendar days."""
    is_rolling = window.optional_text("type") == "calendarDays" and not window.flag("disabled")
    return window.length("value") * DAY if is_rolling else None


def place_of(row: Fields) -> str | None:
    """Return the first place that is an address, a link or a number."""
    for place in row.objects("locations"):
        for name in ("address", "link", "phone"):
            found = place.optional_text(name)
            if found:
                return found
    return None


def left_out(row: Fields) -> str:
    """Name what an event type has and the project does not get."""
    seats, limits = row.object("seats"), row.object("bookingLimitsCount")
    questions = [
        field.optional_text("slug") or "?"
        for field in row.objects("bookingFields")
        if field.optional_text("slug") not in STANDARD_QUESTIONS
    ]
    found = {
        "seats": bool(seats.values) and not seats.flag("disabled"),
        "recurrence": bool(row.object("recurrence").values)
        and not row.object("recurrence").flag("disabled"),
        "limits": bool(limits.values) and not limits.flag("disabled"),
        "price": bool(row.number("price")),
        f"questions ({', '.join(questions)})": bool(questions),
        "booking window": bool(row.object("bookingWindow").values)
        and not row.object("bookingWindow").flag("disabled")
        and window_of(row.object("bookingWindow")) is None,
    }
    names = [name for name, is_there in found.items() if is_there]
    return f"Left out: {', '.join(names)}." if names else ""


def booking_of(row: Fields, me: str) -> Booking | Skipped:
    key = row.text("uid")
    hosts = [host.text("id") for host in row.objects("hosts")]
    if hosts and me not in hosts:
        return Skipped(kind="booking", key=key, reason="It is of another person.")
    state = STATES.get(row.text("status"))
    if state is None:
        raise Unusable(f"Its `status` {row.text('status')} is unknown.")
    start, end = row.instant("start"), row.instant("end")
    check_order(start, end)
    people = tuple(
        Person(
            name=each.optional_text("name") or each.text("email"),
            email=each.text("email"),
            phone=each.optional_text("phoneNumber"),
            timezone=each.optional_text("timeZone"),
        )
        for each in row.objects("attendees")
    )
    return Booking(
        key=key,
        resource=me,
        service=row.object("eventType").optional_text("id") or row.optional_text("eventTypeId"),
        start=start,
        end=end,
        people=people or missing("attendees"),
        what=row.text("title"),
        where=row.optional_text("meetingUrl") or row.optional_text("location"),
        description=row.optional_text("description"),
        state=state,  # type: ignore[arg-type]
    )
