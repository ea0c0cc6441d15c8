"""Calendly (API v2): the owner of the token, with hours, event types and scheduled events.

Hours are those of the default availability schedule, as rules of the resource.
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

URL = "https://api.calendly.com"
COUNT = 100
STATES = {"active": "confirmed", "canceled": "cancelled"}
PLACES = ("join_url", "location")


def read_calendly(source: SourceClient, *, now: datetime, past: bool = False) -> Iterator[Record]:
    """Yield the person, the event types and the scheduled events; past: those that began before
    `now` too. Raises SourceFailed."""
    me = Fields(member(source.get("/users/me"), "resource", "/users/me"))
    mine = {"user": me.text("uri")}
    schedules = read_all(source, "/user_availability_schedules", mine)
    event_types = read_all(source, "/event_types", mine)
    since = {} if past else {"min_start_time": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    events = [
        {**row, "id": last_part(row.get("uri")), "invitees": invitees_of(source, row)}
        for row in read_all(source, "/scheduled_events", mine | since)
    ]
    named = [{**row, "id": last_part(row.get("uri"))} for row in event_types]
    person = [{**me.values, "id": last_part(me.text("uri"))}]
    yield from read_rows("resource", person, lambda row: person_of(row, schedules, now))
    yield from read_rows("service", named, lambda row: service_of(row, person[0]["id"]))
    yield from read_rows("booking", events, lambda row: booking_of(row, person[0]["id"]))


def read_all(source: SourceClient, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
    """Return the rows of all pages. The next page is named by its token alone: its address could
    lead the token of the person to another server."""
    rows: list[dict[str, Any]] = []
    token: str | None = None
    while True:
        page: dict[str, str | int] = {**query, "count": COUNT}
        page |= {"page_token": token} if token else {}
        answer = source.get(path, page)
        found = rows_of(member(answer, "collection", path), path)
        rows += [row for row in found if isinstance(row, dict)]
        check_number(rows, path)
        token = Fields(answer).object("pagination").optional_text("next_page_token")
        if token is None:
            return rows


def invitees_of(source: SourceClient, event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return who is invited; a cancelled event needs none."""
    id = last_part(event.get("uri"))
    if not id or event.get("status") != "active":
        return []
    return read_all(source, f"/scheduled_events/{id}/invitees", {"status": "active"})


def last_part(uri: Any) -> str:
    """Return the id at the end of an address, or an empty text if it is no plain word."""
    id = str(uri or "").rstrip("/").rpartition("/")[2]
    return id if id.isascii() and id.replace("-", "").replace("_", "").isalnum() else ""


def person_of(me: Fields, schedules: list[dict[str, Any]], now: datetime) -> Resource:
    rows = [Fields(row) for row in schedules]
    default = next((row for row in rows if row.flag("default")), None)
    zone = me.zone("timezone")
    return Resource(
        key=me.text("id"),
        name=me.text("name"),
        timezone=default.zone("timezone", zone) if default else zone,
        email=me.optional_text("email"),
        rules=rules_of(default, now) if default else (),
        note="Left out: further schedules." if len(rows) > 1 else "",
    )


def rules_of(schedule: Fields, now: datetime) -> Rules:
    """Read the rules of weekdays (`wday`) and dates. Raises Unusable."""
    weekly: dict[str, list[tuple[str, str]]] = {}
    dates: dict[str, list[tuple[str, str]]] = {}
    for rule in schedule.objects("rules"):
        windows = [window(each.text("from"), each.text("to")) for each in rule.objects("intervals")]
        if rule.text("type") == "wday":
            weekly.setdefault(day_name(rule.text("wday")), []).extend(windows)
        elif rule.text("type") == "date":
            dates.setdefault(date_text(rule.text("date")), []).extend(windows)
        else:
            raise Unusable(f"The rule {rule.text('type')} is unknown.")
    return make_rules(weekly, dates, since=now.date())


def service_of(row: Fields, me: str) -> Service | Skipped:
    key = row.text("id")
    if not row.flag("active"):
        return Skipped(kind="service", key=key, reason="It is not active.")
    if row.optional_text("pooling_type"):
        return Skipped(kind="service", key=key, reason="It is an event type of a team.")
    is_group = row.optional_text("kind") == "group"
    return Service(
        key=key,
        name=row.text("name"),
        resources=(me,),
        availability=slot_terms(
            row.length("duration"),
            lengths=[each for each in row.items("duration_options") if isinstance(each, int)],
            buffer_before=row.number("before_buffer"),
            buffer_after=row.number("after_buffer"),
            increments=row.number("start_time_increment") or None,
        ),
        description=row.optional_text("description_plain"),
        note="Left out: several invitees at once." if is_group else "",
    )


def booking_of(row: Fields, me: str) -> Booking:
    state = STATES.get(row.text("status"))
    if state is None:
        raise Unusable(f"Its `status` {row.text('status')} is unknown.")
    start, end = row.instant("start_time"), row.instant("end_time")
    check_order(start, end)
    people = tuple(map(invitee_of, row.objects("invitees")))
    place = row.object("location")
    return Booking(
        key=row.text("id"),
        resource=me,
        service=last_part(row.values.get("event_type")) or None,
        start=start,
        end=end,
        people=people or (() if state == "cancelled" else missing("invitees")),
        what=row.text("name"),
        where=next(filter(None, map(place.optional_text, PLACES)), None),
        internal_note=answers_of(row),
        state=state,  # type: ignore[arg-type]
    )


def invitee_of(row: Fields) -> Person:
    return Person(
        name=row.optional_text("name") or row.text("email"),
        email=row.text("email"),
        phone=row.optional_text("text_reminder_number"),
        timezone=row.optional_text("timezone"),
    )


def answers_of(row: Fields) -> str | None:
    """Return the questions of the form with their answers, a line each."""
    lines = [
        f"{each.optional_text('question')}: {each.optional_text('answer')}"
        for invitee in row.objects("invitees")
        for each in invitee.objects("questions_and_answers")
        if each.optional_text("answer")
    ]
    return "\n".join(lines) or None
