"""Commands in the search: how they are read, and the pages that they open."""

from collections.abc import Callable
from datetime import date, time, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.translation import override

from apps_config.models import Account, Membership
from bookings.services.postponed import carry_out_due
from office.commands import BLOCK_TIME, CANCEL, LIST, NEW_BOOKING, Command, read_command
from tests.office.conftest import Enter, Visit
from tests.office.test_tasks_in_a_browser import Person
from tests.world import Tenant

WEDNESDAY = date(2026, 11, 25)
FRIDAY = date(2026, 11, 27)


@pytest.mark.parametrize(
    ("language", "text", "command"),
    [
        (
            "en",
            "block Friday 12-13 Dr. Berg",
            Command(BLOCK_TIME, FRIDAY, time(12), time(13), ["dr.", "berg"]),
        ),
        (
            "en",
            "Berg fri 9am – 1pm block",
            Command(BLOCK_TIME, FRIDAY, time(9), time(13), ["berg"]),
        ),
        ("en", "block time 12:30-13", Command(BLOCK_TIME, WEDNESDAY, time(12, 30), time(13))),
        ("en", "block 25-26 Berg", Command(BLOCK_TIME, names=["25-26", "berg"])),
        ("en", "cancel Marty", Command(CANCEL, names=["marty"])),
        ("en", "new booking Room 2", Command(NEW_BOOKING, names=["room", "2"])),
        (
            "en",
            "book tomorrow 9:30 Berg",
            Command(NEW_BOOKING, date(2026, 11, 26), time(9, 30), None, ["berg"]),
        ),
        ("en", "2026-12-03 Berg", Command(LIST, date(2026, 12, 3), names=["berg"])),
        ("en", "wednesday", Command(LIST, WEDNESDAY)),
        ("en", "2026-13-03", Command(LIST, names=["2026-13-03"])),
        ("en", "", Command()),
        (
            "de",
            "Freitag 12-13 Dr. Berg sperren",
            Command(BLOCK_TIME, FRIDAY, time(12), time(13), ["dr.", "berg"]),
        ),
        ("de", "neuer Termin morgen", Command(NEW_BOOKING, date(2026, 11, 26))),
        (
            "sv",
            "ny bokning i morgon Berg",
            Command(NEW_BOOKING, date(2026, 11, 26), names=["berg"]),
        ),
        ("de", "Fr. Berg", Command(LIST, FRIDAY, names=["berg"])),
        ("de", "03.12.2026 Berg", Command(LIST, date(2026, 12, 3), names=["berg"])),
        ("pt-br", "bloquear sexta 12-13", Command(BLOCK_TIME, FRIDAY, time(12), time(13))),
        ("ja", "金曜日 田中", Command(LIST, FRIDAY, names=["田中"])),
        ("ar", "إلغاء مارتي", Command(CANCEL, names=["مارتي"])),
    ],
)
def test_commands_are_read(language: str, text: str, command: Command) -> None:
    with override(language):
        assert read_command(text, WEDNESDAY) == command


@pytest.fixture
def berg(tenant: Tenant) -> Any:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": "UTC"}})
    tenant.make_resource("Dr. Holm", timezone="UTC")
    return tenant.make_resource("Dr. Berg", timezone="UTC")


def found(client: Client, term: str) -> list[tuple[str, str, dict[str, str]]]:
    """(title, path, query) of each command and place that the search finds."""
    answer = client.get("/admin/search/", {"s": term, "extended": "1"})
    results = answer.context["results"] if answer.context else []
    links = [(result.title, urlsplit(result.link)) for result in results]
    return [
        (title, link.path, dict(parse_qsl(link.query)))
        for title, link in links
        if (link.query and "tab=" not in link.query) or link.path.endswith("/export/")
    ]


@pytest.mark.usefixtures("clock")
def test_commands_fill_in_the_pages(tenant: Tenant, berg: Any, enter: Enter) -> None:
    client = enter(tenant)
    whose = {"app": str(tenant.app.pk), "resources": berg["id"]}
    day = timezone.now().date() + timedelta(days=1)
    words = f"{day:%a} {day.day} {day:%b} {day.year}"
    block, calendar = "/admin/calendar/block", "/admin/calendar/"
    bookings = "/admin/bookings/booking/"

    assert found(client, "block tomorrow 12-13 berg") == [
        (
            f"Block time: Dr. Berg, {words}, 12:00–13:00",
            block,
            {**whose, "start": f"{day}T12:00", "end": f"{day}T13:00"},
        )
    ]
    assert found(client, "block tomorrow berg") == [
        (f"Block time: Dr. Berg, {words}", block, {**whose, "start": f"{day}"})
    ]
    absence = {"app": str(tenant.app.pk), "resource": berg["id"], "first_day": f"{day}"}
    away = "/admin/calendar/away"
    assert found(client, "away berg tomorrow") == [(f"Away: Dr. Berg, {words}", away, absence)]
    assert found(client, "ill berg tomorrow 12-13") == [
        (
            f"Away: Dr. Berg, {words}, 12:00–13:00",
            away,
            {**absence, "start": "12:00", "end": "13:00"},
        )
    ]
    assert found(client, "new booking berg tomorrow 9:30") == [
        (
            f"New booking: Dr. Berg, {words}, 09:30",
            calendar,
            {"new": "1", "date": f"{day}", "view": "day", **whose, "start": f"{day}T09:30"},
        )
    ]
    assert found(client, "tomorrow berg") == [
        (
            f"Bookings: Dr. Berg, {words}",
            bookings,
            {"period": "tomorrow", "resource__id__exact": berg["id"]},
        )
    ]
    assert found(client, "no show") == [("No-shows", bookings, {"outcome": "no_show"})]
    assert found(client, "export") == [("Export as CSV", f"{bookings}export/", {})]
    assert found(client, "block tomorrow nobody") == []


def test_filled_in_pages_have_the_values(tenant: Tenant, berg: Any, enter: Enter) -> None:
    client = enter(tenant)
    query = {"app": str(tenant.app.pk), "resources": berg["id"], "start": "2030-11-29"}

    form = client.get("/admin/calendar/block", query).context["form"]

    assert [str(pk) for pk in form["resources"].value()] == [berg["id"]]
    assert (form["first_day"].value(), form["start"].value()) == (date(2030, 11, 29), "")


def test_cancelling_asks_first(tenant: Tenant, berg: Any, enter: Enter) -> None:
    times = {"start": "2030-03-05 09:00:00", "end": "2030-03-05 09:30:00"}
    customer = {"name": "Marty McFly", "email": "marty@example.com"}
    booking = tenant.book(resource_id=berg["id"], customer=customer, what="Visit", **times).data
    later = {"start": "2030-03-06 09:00:00", "end": "2030-03-06 09:30:00"}
    tenant.book(resource_id=berg["id"], customer=customer, what="Later", **later)
    client = enter(tenant)
    act = f"/admin/bookings/booking/{booking['id']}/act/"

    [(title, path, query), *_] = found(client, "cancel marty")
    page = client.get(path, query)
    still = tenant.get(f"/bookings/{booking['id']}").data["state"]
    client.post(path, dict(page.context["fields"]))
    carry_out_due(now=timezone.now() + timedelta(seconds=11))

    assert (title, path, query) == (
        "Cancel: Marty McFly – Visit, Tue 5 Mar 2030, 09:00 UTC",
        act,
        {"action": "cancel"},
    )
    assert (page.context["title"], still) == ("Cancel this booking?", "confirmed")
    assert tenant.get(f"/bookings/{booking['id']}").data["state"] == "cancelled"


def test_a_link_changes_nothing_without_a_question(tenant: Tenant, berg: Any, enter: Enter) -> None:
    times = {"start": "2030-03-05 09:00:00", "end": "2030-03-05 09:30:00"}
    booking = tenant.book(resource_id=berg["id"], graph="confirm_decline", **times).data
    page = f"/admin/bookings/booking/{booking['id']}"

    answer = enter(tenant).get(f"{page}/act/", {"action": "confirm"})

    assert answer.status_code == 405
    assert tenant.get(f"/bookings/{booking['id']}").data["state"] == "tentative"


def test_viewers_find_no_commands_that_change(tenant: Tenant, berg: Any, enter: Enter) -> None:
    client = enter(tenant, Membership.VIEWER)
    terms = ("block tomorrow 12-13 berg", "away berg", "new booking berg", "cancel marty")

    assert [found(client, term) for term in terms] == [[]] * 4


def test_resources_of_other_apps_are_not_named(tenant: Tenant, berg: Any, enter: Enter) -> None:
    other = Tenant("other")

    assert found(enter(other), "block tomorrow 12-13 berg") == []


def test_bookings_of_a_person_tomorrow_take_two_clicks(
    visit: Callable[..., Visit], office: Tenant, viewer: Account, ada: Any, bob: Any
) -> None:
    office.put(f"/apps/{office.app.slug}", {"settings": {"default_timezone": "Europe/Berlin"}})
    shown = visit(viewer, "/admin/")
    shown.expected.append("net::ERR_ABORTED")  # a search whose answer nobody waits for
    person, page = Person(shown), shown.page
    page.wait_for(
        "!!document.querySelector('#search-input-command')?.closest('[x-data]')._x_dataStack"
    )

    person.click("[aria-keyshortcuts='Control+K']")
    page.wait_for("document.activeElement.id === 'search-input-command'")
    page.type("tomorrow ada")
    page.press("ArrowDown")
    page.wait_for("!!document.querySelector('#command-results-list a')")
    person.go("#command-results-list a")

    assert person.actions == 2
    assert page.texts(".office-list-chip[aria-current]") == [
        "Tomorrow\nRemove this filter",
        "Resource: Ada\nRemove this filter",
    ]
