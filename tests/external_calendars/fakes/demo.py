"""Accounts with some events around now, for a newcomer to connect."""

from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.fakes.graph import FakeGraph
from tests.external_calendars.fakes.microsoft.events import occurrence_id
from tests.external_calendars.fakes.server import Gateway

ZONE = "Europe/Berlin"  # of the demo's resources, whose addresses these are
ADA, LINUS = ("ada.berg@example.com", "Ada Berg"), ("linus.holm@example.com", "Linus Holm")


def add_google(gateway: Gateway, callback: str) -> FakeGoogle:
    """Add two accounts; the first has two calendars of its own and reads one of the second."""
    google = FakeGoogle(gateway)
    google.add_client(callback)
    monday = monday_of(google.clock.now())

    def at(days: int, hour: float) -> datetime:
        """So many days after Monday, on the clock in ZONE."""
        day = (monday + timedelta(days=days)).date()
        return datetime.combine(day, time(), ZoneInfo(ZONE)) + timedelta(hours=hour)

    ada = google.add_account(*ADA, time_zone=ZONE).calendar
    ada.add("Supplier visit", at(1, 10), at(1, 11.5), location="Warehouse")
    ada.add("Dentist", at(8, 15), at(8, 16), visibility="private")
    ada.add("Trade fair", at(14, 0).date(), at(17, 0).date(), eventType="outOfOffice")
    ada.add("Home office", at(4, 0).date(), at(5, 0).date(), eventType="workingLocation")
    ada.add("Reading", at(3, 9), at(3, 10), transparency="transparent")
    standup = ada.add(
        "Standup", at(0, 9), at(0, 9.25), recurrence=["RRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR"]
    )
    ada.cancel(ada.instance_id(standup, at(9, 9)))
    ada.change(ada.instance_id(standup, at(11, 9)), start=at(11, 14), end=at(11, 14.25))
    google.add_calendar("Workshops", ADA[0], ZONE).add("Pottery", at(5, 10), at(5, 13))

    linus = google.add_account(*LINUS, time_zone=ZONE).calendar
    linus.add("Planning", at(0, 13), at(0, 14), recurrence=["RRULE:FREQ=WEEKLY;INTERVAL=2"])
    linus.add("Flight to Oslo", at(9, 7), at(9, 11))
    google.share(linus, ADA[0], "reader")
    return google


def add_microsoft(gateway: Gateway, callback: str) -> FakeGraph:
    """Add an account at work, with two calendars of its own and one that it reads, and a personal
    one."""
    graph = FakeGraph(gateway)
    graph.add_client(callback)
    monday = monday_of(graph.clock.now()).date()

    def event(subject: str, days: int, hour: float, hours: float, **more: Any) -> dict[str, Any]:
        """So many days after Monday, on the clock in ZONE."""
        begin = datetime.combine(monday + timedelta(days=days), time()) + timedelta(hours=hour)
        times = {"start": begin, "end": begin + timedelta(hours=hours)}
        zone = "W. Europe Standard Time"
        return {
            "subject": subject,
            **{name: {"dateTime": at.isoformat(), "timeZone": zone} for name, at in times.items()},
            **more,
        }

    def weekly(interval: int, *days: str) -> dict[str, Any]:
        pattern = {"type": "weekly", "interval": interval, "daysOfWeek": list(days)}
        limits = {"type": "noEnd", "startDate": monday.isoformat()}
        return {"pattern": pattern, "range": limits}

    ada = graph.add_account(*ADA)
    place = {"displayName": "Warehouse"}
    graph.create(ADA[0], event("Supplier visit", 1, 10, 1.5, location=place))
    graph.create(ADA[0], event("Dentist", 8, 15, 1, sensitivity="private"))
    graph.create(ADA[0], event("Trade fair", 14, 0, 72, isAllDay=True, showAs="oof"))
    graph.create(ADA[0], event("Home office", 4, 0, 24, isAllDay=True, showAs="workingElsewhere"))
    graph.create(ADA[0], event("Reading", 3, 9, 1, showAs="free"))
    days = weekly(1, "monday", "wednesday", "friday")
    standup = graph.create(ADA[0], event("Standup", 0, 9, 0.25, recurrence=days))
    graph.remove(occurrence_id(standup.id, monday + timedelta(days=9)))
    graph.change(
        occurrence_id(standup.id, monday + timedelta(days=11)), event("Standup", 11, 14, 0.25)
    )
    workshops = ada.add_calendar("Workshops")
    graph.create(ADA[0], event("Pottery", 5, 10, 3), workshops)
    ada.add_calendar("Holidays of the team", can_edit=False, owner="office@example.com")

    graph.add_account(*LINUS, is_personal=True)
    graph.create(LINUS[0], event("Planning", 0, 13, 1, recurrence=weekly(2, "monday")))
    graph.create(LINUS[0], event("Flight to Oslo", 9, 7, 4))
    return graph


def monday_of(now: datetime) -> datetime:
    local = now.astimezone(ZoneInfo(ZONE))
    return local - timedelta(days=local.weekday())


# Each adds a provider to the gateway, with the service's redirect URI.
DEMOS: tuple[Callable[[Gateway, str], object], ...] = (add_google, add_microsoft)
