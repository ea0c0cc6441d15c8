"""What Exchange allows and makes of an event that somebody writes."""

from datetime import datetime, timedelta
from typing import Any

from tests.external_calendars.fakes.microsoft.events import (
    NO_TIME,
    GraphError,
    Instance,
    Mailbox,
    Properties,
    instances_between,
    instant_of,
    original_start,
    zone_of,
)
from tests.external_calendars.fakes.microsoft.recurrence import check_recurrence
from tests.external_calendars.fakes.microsoft.requests import extended_id
from tests.external_calendars.fakes.microsoft.schema import WRITABLE, check_object
from tests.external_calendars.fakes.server import Violation

MAX_ATTENDEES = 500
# A change of these properties sends a meeting update to all attendees.
ANNOUNCED = {"body", "end", "isAllDay", "location", "recurrence", "start", "subject"}
# What moves a meeting in time: the attendees have to answer again.
TIMES = {"end", "isAllDay", "recurrence", "start"}


def check_event(body: Any) -> None:
    check_object("event", body, "event")
    if empty := [name for name in ("start", "end") if name in body and body[name] is None]:
        raise Violation(f"event has no {' and '.join(empty)}.")
    if read_only := sorted(body.keys() - WRITABLE):
        raise Violation(f"event: {', '.join(read_only)} can't be written.")
    for attendee in body.get("attendees") or []:
        if not (attendee.get("emailAddress") or {}).get("address"):
            raise Violation("event.attendees: an attendee has no address.")


def stored_properties(body: Properties, before: Properties) -> Properties:
    """Return the body as it is stored; `before`: the stored event, whose attendees keep their
    answers."""
    stored = dict(body)
    if stored.get("recurrence"):
        check_recurrence(stored["recurrence"])
    if "attendees" in stored:
        if len(stored["attendees"] or []) > MAX_ATTENDEES:
            message = f"An event has at most {MAX_ATTENDEES} attendees."
            raise GraphError(400, "ErrorInvalidRequest", message)
        stored["attendees"] = stored_attendees(stored["attendees"] or [], before)
    if stored.get("body"):
        content = stored["body"].get("content") or ""
        kind = stored["body"].get("contentType") or "text"
        stored["body"] = {"contentType": kind, "content": content}
    if stored.get("locations"):
        stored["location"] = stored["locations"][0]
    elif "location" in stored:
        place = stored["location"] or {"displayName": ""}
        stored["location"] = {"locationType": "default", **place}
        stored["locations"] = [stored["location"]] if place.get("displayName") else []
    if "singleValueExtendedProperties" in stored:
        kept = before.get("singleValueExtendedProperties") or []
        given = stored["singleValueExtendedProperties"] or []
        values = {each["id"]: each["value"] for each in kept}
        values |= {extended_id(each["id"]): each["value"] for each in given}
        stored["singleValueExtendedProperties"] = [
            {"id": name, "value": value} for name, value in values.items()
        ]
    return stored


def stored_attendees(given: list[Properties], before: Properties) -> list[Properties]:
    known = {
        each["emailAddress"]["address"].lower(): each["status"]
        for each in before.get("attendees") or []
    }
    unanswered = {"response": "none", "time": NO_TIME}
    return [
        {
            "type": each.get("type") or "required",
            "status": known.get(each["emailAddress"]["address"].lower(), unanswered),
            "emailAddress": {
                "name": each["emailAddress"].get("name") or each["emailAddress"]["address"],
                "address": each["emailAddress"]["address"],
            },
        }
        for each in given
    ]


def addresses_of(properties: Properties, mailbox: Mailbox) -> set[str]:
    """Return the addresses to which Exchange sends mails about the event: never the organiser's,
    and nothing about what somebody else organises."""
    if properties.get("isOrganizer") is False:
        return set()
    own = {mailbox.address.lower(), (mailbox.mail or "").lower()}
    found = {each["emailAddress"]["address"].lower() for each in properties.get("attendees") or []}
    return found - own


def check_times(properties: Properties) -> None:
    start, end = properties["start"], properties["end"]
    begin_at, end_at = instant_of(start), instant_of(end)
    if end_at < begin_at:
        raise GraphError(
            400,
            "ErrorCalendarEndDateIsEarlierThanStartDate",
            "The end date of the event is earlier than its start date.",
        )
    if properties.get("isAllDay"):
        walls = [datetime.fromisoformat(value["dateTime"]) for value in (start, end)]
        is_midnight = all(wall.time() == datetime.min.time() for wall in walls)
        if not is_midnight or start["timeZone"] != end["timeZone"] or walls[0] == walls[1]:
            message = "An all-day event starts and ends at midnight, in one time zone."
            raise GraphError(400, "ErrorPropertyValidationFailure", message)


def check_neighbours(instance: Instance, after: Properties) -> None:
    """Raise GraphError where an occurrence would be moved over another one of its series
    (https://learn.microsoft.com/graph/api/event-update)."""
    zone = zone_of(instance.item.properties["start"]["timeZone"])
    day = instant_of(after["start"]).astimezone(zone).date()
    begin = original_start(instance) - timedelta(days=400)
    others = [
        other.start.astimezone(zone).date()
        for other in instances_between(instance.item, begin, begin + timedelta(days=800))
        if other.day != instance.day
    ]
    own = instance.start.astimezone(zone).date()
    if any((other < own and day <= other) or (other > own and day >= other) for other in others):
        raise GraphError(
            400,
            "ErrorOccurrenceCrossingBoundary",
            "Modified occurrence is crossing or overlapping adjacent occurrence.",
        )


def changed_names(before: Properties, after: Properties) -> set[str]:
    """Return which of the announced properties differ; times by their instants."""
    return {
        name
        for name in ANNOUNCED
        if (
            instant_of(before[name]) != instant_of(after[name])
            if name in ("start", "end")
            else (before.get(name) or None) != (after.get(name) or None)
        )
    }
