"""The timeline of the calendar: one row for each of up to 200 resources, chosen as a group."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account, Membership
from bookings.models import Booking
from common.time.instants import find_zone
from tests.accessibility import find_faults, load_axe
from tests.browser import viewports
from tests.office.conftest import WORKDAYS, Enter, Visit, logged_in, member_of
from tests.office.test_calendar_page import DRAWN, MONDAY, book, event_place
from tests.queries import Queries
from tests.world import BERLIN, Tenant

PAGE, DATA = reverse("admin:calendar"), reverse("admin:calendar_events")
DAYS = {"start": MONDAY, "end": "2030-01-08"}
MAX_ABOVE = 120  # pixels of the page's content above the grid
HEADS = (
    "[...document.querySelectorAll('.ec-body .ec-row-head')]"
    ".map((one) => one.innerText.split('\\n').pop().trim())"
)
NAMES = "[...document.querySelectorAll('.ec-event[aria-label]')].map((one) => one.ariaLabel)"


@pytest.fixture
def clinic(office: Tenant) -> dict[str, Any]:
    """Eleven dentists and two rooms: more than fit side by side."""
    dentists = {f"Dr. {number:02}": ["dentist", "on call"] for number in range(11)}
    rooms = {"Room A": ["room"], "Room B": ["room"]}
    given = {"timezone": BERLIN, "availability_constraints": WORKDAYS}
    return {
        name: office.make_resource(name, tags=tags, **given)
        for name, tags in (dentists | rooms).items()
    }


def query(office: Tenant, group: str) -> dict[str, str]:
    return {"app": str(office.app.pk), "group": group}


def open_group(visit: Callable[..., Visit], account: Account, office: Tenant, **kind: Any) -> Visit:
    shown = visit(account, f"{PAGE}?app={office.app.pk}&group=all&date={MONDAY}", **kind)
    shown.page.wait_for(DRAWN)
    return shown


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("all", [*(f"Dr. {number:02}" for number in range(11)), "Room A", "Room B"]),
        ("tag:room", ["Room A", "Room B"]),
        ("tag:unknown", []),
    ],
)
def test_group_is_all_or_those_with_a_tag(
    office: Tenant, clinic: Any, enter: Enter, group: str, names: list[str]
) -> None:
    page = enter(office).get(PAGE, query(office, group))

    assert [row["name"] for row in page.context["page"]["resources"]] == names
    assert [(value, is_chosen) for value, _, is_chosen in page.context["groups"]] == [
        (value, value == group) for value in ("all", "tag:dentist", "tag:on call", "tag:room")
    ]


def test_group_of_another_app_is_hidden(office: Tenant, clinic: Any, enter: Enter) -> None:
    stranger = enter(Tenant("globex"))

    answers = [stranger.get(path, query(office, "all") | DAYS) for path in (PAGE, DATA)]

    assert [answer.status_code for answer in answers] == [404, 404]


def test_number_of_queries_is_constant(office: Tenant, clinic: Any) -> None:
    client = logged_in(member_of(office, Membership.VIEWER))
    for resource in clinic.values():
        book(office, resource, f"{MONDAY} 09:00:00", f"{MONDAY} 10:00:00")
    client.get(DATA, query(office, "all") | DAYS)
    with Queries(connection) as of_room:
        client.get(DATA, query(office, "tag:room") | DAYS)

    with Queries(connection) as of_all:
        answer = client.get(DATA, query(office, "all") | DAYS)

    assert len(answer.json()["data"]["events"]) == len(clinic)
    assert len(of_all) == len(of_room)


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_timeline_has_a_row_for_each_resource(
    visit: Callable[..., Visit],
    office: Tenant,
    clinic: Any,
    editor: Account,
    width: int,
    scheme: str,
) -> None:
    for name in ("Dr. 00", "Dr. 10", "Room B"):
        book(office, clinic[name], f"{MONDAY} 07:30:00", f"{MONDAY} 09:00:00", what=f"With {name}")

    shown = open_group(visit, editor, office, width=width, scheme=scheme)

    shown.page.save_screenshot(f"timeline-{width}-{scheme}")
    assert shown.page.evaluate(HEADS) == [
        *("dentist", *(f"Dr. {number:02}" for number in range(11))),
        *("room", "Room A", "Room B"),
    ]
    assert [name.split(", ")[0] for name in shown.page.evaluate(NAMES)] == [
        f"07:30 With {name} · Marty McFly" for name in ("Dr. 00", "Dr. 10", "Room B")
    ]
    assert find_faults(shown.page, load_axe(), "document.getElementById('content')") == []


def test_grid_begins_near_the_top(
    visit: Callable[..., Visit], office: Tenant, clinic: Any, editor: Account
) -> None:
    shown = open_group(visit, editor, office, width=1280)

    above = shown.page.evaluate(
        "document.querySelector('.ec-main').getBoundingClientRect().top"
        " - document.querySelector('.cal').getBoundingClientRect().top"
    )

    assert above <= MAX_ABOVE


def test_booking_is_dragged_to_another_row(
    visit: Callable[..., Visit], office: Tenant, clinic: Any, editor: Account
) -> None:
    made = book(
        office, clinic["Dr. 00"], f"{MONDAY} 07:30:00", f"{MONDAY} 09:00:00", what="Filling"
    )
    page = open_group(visit, editor, office, width=1280).page
    x, y = event_place(page, "Filling")
    target = page.evaluate(
        "[...document.querySelectorAll('.ec-body .ec-row-head')]"
        ".find((one) => one.innerText.trim() === 'Dr. 01').getBoundingClientRect().toJSON()"
    )

    page.drag((x, y), (x, target["y"] + target["height"] / 2))
    page.wait_for("!document.getElementById('cal-said').hidden")

    booking = Booking.objects.select_related("resource", "event").get(id=made["id"])
    assert booking.resource.name == "Dr. 01"
    assert booking.event.start.astimezone(find_zone(BERLIN)).isoformat() == (
        f"{MONDAY}T07:30:00+01:00"
    )


def test_timeline_of_today_begins_an_hour_ago(
    visit: Callable[..., Visit], office: Tenant, clinic: Any, editor: Account
) -> None:
    now = timezone.now().astimezone(find_zone(BERLIN))
    page = visit(editor, f"{PAGE}?app={office.app.pk}&group=all", width=1280).page
    page.wait_for(DRAWN)

    shown, most, hour = page.evaluate(
        "(() => { const one = document.querySelector('.ec-main');"
        " const width = document.querySelector('.ec-slots').getBoundingClientRect().width;"
        " return [one.scrollLeft, one.scrollWidth - one.clientWidth, width / 24]; })()"
    )

    assert abs(shown - min(most, max(0, now.hour - 1) * hour)) <= hour  # the hour may change
