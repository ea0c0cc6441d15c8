"""What the tests of the calendar pages share: their addresses, and calendars that are connected."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils import timezone

from availability.models import Calendar
from external_calendars.models import Connection, ExternalObject
from tests.external_calendars.fake_provider import FakeCalendarServer
from tests.world import Tenant

LIST = reverse("admin:availability_calendar_changelist")
WORK = "https://dav.example.com/calendars/ada/work/"
HOME = "https://dav.example.com/calendars/ada/home/"
FEED = "https://feeds.example.com/private-5ecret/basic.ics"


def page_of(calendar: Any, part: str = "change") -> str:
    return reverse(f"admin:availability_calendar_{part}", args=[calendar.pk])


def connected(
    tenant: Tenant,
    fake_caldav: FakeCalendarServer,
    resource: Any = None,
    address: str = WORK,
    **given: Any,
) -> Calendar:
    """One that was connected through the API."""
    resource = resource or tenant.make_resource()
    if address not in fake_caldav.calendars:
        fake_caldav.put(address)
    body = {"resource_id": resource["id"], "provider": "caldav", "address": address}
    answer = tenant.post("/calendars", body | {"username": "ada", "password": "correct horse"})
    assert answer.status == 201, answer.json
    calendar = Calendar.objects.get(id=answer.data["id"])
    synced_at = given.pop("synced_at", timezone.now())
    Calendar.objects.filter(id=calendar.id).update(synced_at=synced_at)
    Connection.objects.filter(calendar=calendar).update(**given)
    return Calendar.objects.select_related("connection").get(id=calendar.id)


def history(client: Any, calendar: Calendar) -> list[str]:
    """What the log of the page says, in order."""
    entries = client.get(page_of(calendar, "history")).context["action_list"]
    return [entry.get_change_message() for entry in entries]


def leave_unread(calendar: Calendar, *hrefs: str, **given: Any) -> None:
    """Objects that could not be read, each a minute after the one before."""
    given = {"problem": "The text is not a calendar."} | given
    first = datetime(2030, 1, 1, 12, tzinfo=UTC)
    ExternalObject.objects.bulk_create(
        ExternalObject(
            connection=calendar.connection,
            href=href,
            uid=str(number),
            **{"problem_since": first + timedelta(minutes=number)} | given,
        )
        for number, href in enumerate(hrefs)
    )
    Connection.objects.filter(calendar=calendar).update(unread=len(hrefs))
