"""Time that is blocked for one or several resources at once: an event in each one's calendar."""

from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from apps_config.models import Membership
from availability.models import Calendar, Event
from tests.office.conftest import Enter
from tests.office.staff import messages_of
from tests.queries import Queries
from tests.world import Tenant

PAGE = reverse("admin:calendar_block")
LUNCH = {"first_day": "2030-11-29", "start": "12:00", "end": "13:00", "last_day": "", "what": ""}
BERLIN = {"timezone": "Europe/Berlin"}


@pytest.fixture
def people(tenant: Tenant) -> list[Any]:
    return [
        tenant.make_resource("Ada", tags=["dentist"], **BERLIN),
        tenant.make_resource("Bob", tags=["dentist", "monday"], timezone="America/New_York"),
        tenant.make_resource("Room", tags=["room"], **BERLIN),
    ]


def blocked(tenant: Tenant) -> list[tuple[Any, ...]]:
    rows = Event.objects.filter(app_id=tenant.app.id).order_by("resource__name", "id")
    return [
        (row.resource.name, row.what, row.start.isoformat(), row.end.isoformat(), row.busy)
        for row in rows.select_related("resource")
    ]


def booked(tenant: Tenant, resource: Any, start: str, **given: Any) -> Any:
    end = start.replace(":30:", ":59:").replace(":00:", ":29:", 1)
    times = {"start": f"2030-11-29T{start}Z", "end": f"2030-11-29T{end}Z"}
    return tenant.book(resource_id=resource, **times, **given).data


def test_lunch_of_everybody_is_on_each_ones_clock(
    tenant: Tenant, people: list[Any], enter: Enter
) -> None:
    answer = enter(tenant).post(PAGE, LUNCH | {"everybody": "on"}, follow=True)

    noon = ("2030-11-29T11:00:00+00:00", "2030-11-29T12:00:00+00:00", True)
    assert blocked(tenant) == [
        ("Ada", "Blocked", *noon),
        ("Bob", "Blocked", "2030-11-29T17:00:00+00:00", "2030-11-29T18:00:00+00:00", True),
        ("Room", "Blocked", *noon),
    ]
    assert answer.request["PATH_INFO"] == reverse("admin:calendar")
    assert messages_of(answer) == ["Blocked for 3 resources: Fri 29 Nov 2030, 12:00 to 13:00."]


def test_blocked_time_is_not_offered(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    query = {
        "resources": [people[0]["id"]],
        "from": "2030-11-29T11:00:00Z",
        "to": "2030-11-29T14:00:00Z",
        "length": "1 hour",
    }
    before = tenant.post("/availability", query).data

    enter(tenant).post(PAGE, LUNCH | {"resources": [people[0]["id"]]})

    assert [slot["start"][11:16] for slot in before] == ["11:00", "12:00", "13:00"]
    after = tenant.post("/availability", query).data
    assert [slot["start"][11:16] for slot in after] == ["12:00", "13:00"]


def test_people_by_tag_and_by_name_are_each_blocked_once(
    tenant: Tenant, people: list[Any], enter: Enter
) -> None:
    given = {"tags": ["monday", "room"], "resources": [people[1]["id"]], "what": " Cleaning "}

    enter(tenant).post(PAGE, LUNCH | given)

    assert [row[:2] for row in blocked(tenant)] == [("Bob", "Cleaning"), ("Room", "Cleaning")]


def test_whole_days_without_times(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    days = {"first_day": "2030-12-24", "last_day": "2030-12-26", "start": "", "end": ""}

    enter(tenant).post(PAGE, LUNCH | days | {"resources": [people[0]["id"]]})

    event = Event.objects.get(app_id=tenant.app.id)
    assert (event.all_day, str(event.start_date), str(event.end_date)) == (
        True,
        "2030-12-24",
        "2030-12-27",
    )
    assert event.start.isoformat() == "2030-12-23T23:00:00+00:00"


def test_bookings_in_the_time_stay_and_are_named(
    tenant: Tenant, people: list[Any], enter: Enter
) -> None:
    ada, room = people[0]["id"], people[2]["id"]
    inside = booked(tenant, ada, "11:30:00", what="Check-up")
    booked(tenant, room, "13:30:00")
    gone = booked(tenant, room, "11:00:00")
    tenant.put(f"/bookings/{gone['id']}/cancel")

    answer = enter(tenant).post(PAGE, LUNCH | {"resources": [ada, room]}, follow=True)

    assert tenant.get(f"/bookings/{inside['id']}").data["state"] == "confirmed"
    link = reverse("admin:bookings_booking_change", args=[inside["id"]])
    assert messages_of(answer)[1:] == [
        f'Bookings in this time stay as they are: <a href="{link}">Check-up, Ada,'
        " Fri 29 Nov 2030, 12:30 to 12:59</a>"
    ]


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        ({"resources": []}, {"resources": ["Select at least one resource."]}),
        ({"first_day": ""}, {"first_day": ["This field is required."]}),
        ({"end": ""}, {"end": ["Enter both times, or none for the whole day."]}),
        ({"last_day": "2030-11-28"}, {"last_day": ["Must not be before the first day."]}),
    ],
    ids=["nobody", "no day", "one time", "ends before it begins"],
)
def test_wrong_values_block_nothing(
    tenant: Tenant, people: list[Any], enter: Enter, given: Any, faults: Any
) -> None:
    form = LUNCH | {"resources": [people[0]["id"]]} | given

    answer = enter(tenant).post(PAGE, form)

    assert answer.status_code == 200
    assert answer.context["form"].errors == faults
    assert blocked(tenant) == []


def test_end_before_the_start_is_refused(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    form = LUNCH | {"resources": [people[0]["id"]], "start": "13:00", "end": "12:00"}

    answer = enter(tenant).post(PAGE, form, follow=True)

    assert messages_of(answer) == ["Ada: Must be after the start."]
    assert blocked(tenant) == []


def test_connected_calendars_are_left_to_their_provider(
    tenant: Tenant, people: list[Any], enter: Enter
) -> None:
    Calendar.objects.filter(resource=people[0]["id"]).update(provider="ical")
    form = LUNCH | {"resources": [people[0]["id"], people[2]["id"]]}

    answer = enter(tenant).post(PAGE, form, follow=True)

    assert messages_of(answer) == [
        "Ada: Has only connected calendars: block the time there.",
        "Blocked for 1 resource: Fri 29 Nov 2030, 12:00 to 13:00.",
    ]
    assert [row[0] for row in blocked(tenant)] == ["Room"]


def test_form_begins_with_the_dragged_time(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    dragged = {"start": "2030-12-02T09:00", "end": "2030-12-02T10:30"}

    page = enter(tenant).get(PAGE, dragged | {"resources": people[2]["id"]})

    initial = page.context["form"].initial
    assert page.context["chosen"] == {people[2]["id"]}
    assert (str(initial["first_day"]), initial["start"]) == ("2030-12-02", "09:00")
    assert (initial["last_day"], initial["end"]) == (None, "10:30")


def test_viewers_and_other_apps_are_refused(
    tenant: Tenant, make_tenant: Any, people: list[Any], enter: Enter
) -> None:
    other = make_tenant()
    form = LUNCH | {"resources": [people[0]["id"]]}

    viewer = enter(tenant, Membership.VIEWER).post(PAGE, form)
    stranger = enter(other).post(PAGE, form)

    assert viewer.status_code == 403
    assert stranger.status_code == 200
    assert list(stranger.context["form"].errors) == ["resources"]
    assert blocked(tenant) == []


# --- Free again -----------------------------------------------------------------------------------
def test_deleting_an_event_frees_the_time(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    client = enter(tenant)
    client.post(PAGE, LUNCH | {"resources": [people[0]["id"]]})
    event = Event.objects.get(app_id=tenant.app.id)
    path = reverse("admin:availability_event_delete", args=[event.pk])

    question = client.get(path)
    client.post(path, {"confirmed": "1"})

    assert question.context["title"] == "Delete Blocked, Ada, Fri 29 Nov 2030, 12:00 CET?"
    assert blocked(tenant) == []


def test_event_of_a_booking_is_not_deleted(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    booking = booked(tenant, people[0]["id"], "11:30:00")
    event = tenant.get(f"/bookings/{booking['id']}", include="event").data["event"]
    path = reverse("admin:availability_event_delete", args=[event["id"]])

    assert enter(tenant).post(path, {"confirmed": "1"}).status_code == 403
    assert len(blocked(tenant)) == 1


def test_plus_of_events_leads_to_the_page(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    answer = enter(tenant).get(reverse("admin:availability_event_add"))

    assert (answer.status_code, answer.headers["Location"]) == (302, PAGE)


def test_today_offers_to_block_time(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    link = f'href="{PAGE}"'

    assert link in enter(tenant).get(reverse("admin:index")).content.decode()
    viewer = enter(tenant, Membership.VIEWER).get(reverse("admin:index"))
    assert link not in viewer.content.decode()


def test_queries_do_not_grow_with_the_resources(
    tenant: Tenant, people: list[Any], enter: Enter
) -> None:
    client = enter(tenant)
    client.get(PAGE)
    with Queries(connection) as of_three:
        client.get(PAGE)
    for number in range(10):
        tenant.make_resource(f"Chair {number}", tags=[f"row {number}"])
    with Queries(connection) as of_thirteen:
        client.get(PAGE)

    assert len(of_thirteen) == len(of_three)
