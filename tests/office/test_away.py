"""Away: the time is closed, and what becomes of the bookings in it waits for ten seconds."""

from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account, Membership
from availability.models import Calendar, Event
from bookings.models import Booking, PostponedStep, PostponedTask
from bookings.pages.formatting import short_date_words
from bookings.services.postponed import carry_out_due
from common.time.instants import find_zone, local_midnight
from notifications.models import Delivery
from tests.office.conftest import Enter
from tests.office.staff import messages_of
from tests.queries import Queries
from tests.world import Tenant

PAGE = reverse("admin:calendar_away")
BERLIN = {"timezone": "Europe/Berlin"}


def next_friday() -> date:
    today = timezone.now().date()
    return today + timedelta(days=(4 - today.weekday()) % 7 + 14)


FRIDAY = next_friday()
DAY = FRIDAY.isoformat()
WORDS = short_date_words(FRIDAY)


@pytest.fixture
def people(tenant: Tenant) -> list[Any]:
    return [tenant.make_resource(name, **BERLIN) for name in ("Ada", "Bob", "Eve")]


@pytest.fixture
def project(tenant: Tenant, people: list[Any]) -> Any:
    ids = [person["id"] for person in people]
    return tenant.make_project(
        *ids,
        availability={"mode": "roundrobin_prioritized", "to": "8 weeks", "length": "30 mins"},
    )


def booked(tenant: Tenant, person: Any, clock: str, name: str = "Marty", **given: Any) -> Any:
    hour, minute = map(int, clock.split(":"))
    end = f"{hour + (minute + 30) // 60:02}:{(minute + 30) % 60:02}"
    times = {"start": f"{DAY} {clock}:00", "end": f"{DAY} {end}:00"}
    customer = {"name": name, "email": f"{name.lower()}@example.com"}
    answer = tenant.book(resource_id=person["id"], customer=customer, **times, **given)
    assert answer.status == 201, answer.json
    return answer.data


def query(person: Any, **given: Any) -> dict[str, str]:
    span = {"first_day": DAY, "last_day": "", "start": "", "end": "", "reason": ""}
    return {"resource": person["id"], **span, **given}


def address(person: Any, **given: Any) -> str:
    return f"{PAGE}?{urlencode(query(person, **given))}"


def choices(answer: Any) -> list[tuple[str, list[str]]]:
    return [
        (line.customers, [str(words) for _, words in line.choices])
        for line in answer.context["plan"].lines()
    ]


def step_lines(answer: Any) -> list[tuple[str, str, str]]:
    return [(line.words, line.state, line.reason) for line in answer.context["lines"]]


def carry_out() -> None:
    carry_out_due(now=timezone.now() + timedelta(seconds=11))


def test_bookings_in_the_time_are_listed_with_their_choices(
    tenant: Tenant, people: list[Any], project: Any, enter: Enter
) -> None:
    ada, bob, _eve = people
    booked(tenant, ada, "10:00", "Ann", project_id=project["id"])
    booked(tenant, ada, "11:00", "Ben")  # of no project: nobody to move to, no link
    booked(tenant, ada, "10:30", "Cleo", project_id=project["id"])
    gone = booked(tenant, ada, "12:00", "Dan")
    tenant.put(f"/bookings/{gone['id']}/cancel")
    booked(tenant, bob, "10:00", "Eli")

    answer = enter(tenant).get(PAGE, query(ada))

    as_for_all, offer, cancel, keep = (
        *("As for all", "Offer new times by e-mail"),
        *("Cancel", "Leave as it is"),
    )
    assert answer.context["plan"].when == WORDS
    assert choices(answer) == [
        (
            "Ann",
            [
                as_for_all,
                "Move to Eve, same time",
                f"Move to Bob, {WORDS}, 10:30 to 11:00",
                *(offer, cancel, keep),
            ],
        ),
        (
            "Cleo",
            [
                as_for_all,
                "Move to Bob, same time",
                "Move to Eve, same time",
                *(offer, cancel, keep),
            ],
        ),
        ("Ben", [as_for_all, cancel, keep]),
    ]


def test_hours_of_the_persons_clock_limit_the_bookings(
    tenant: Tenant, people: list[Any], enter: Enter
) -> None:
    ada = people[0]
    booked(tenant, ada, "09:00", "Ann")
    booked(tenant, ada, "14:00", "Ben")

    answer = enter(tenant).get(PAGE, query(ada, start="13:00", end="18:00"))

    assert [line.customers for line in answer.context["plan"].lines()] == ["Ben"]


def test_time_is_closed_at_once_and_bookings_change_later(
    tenant: Tenant, people: list[Any], project: Any, enter: Enter
) -> None:
    ada, _bob, _eve = people
    ann = booked(tenant, ada, "10:00", "Ann", project_id=project["id"])
    ben = booked(tenant, ada, "11:00", "Ben", project_id=project["id"])
    cleo = booked(tenant, ada, "12:00", "Cleo", project_id=project["id"])
    dan = booked(tenant, ada, "13:00", "Dan", project_id=project["id"])
    client, page = enter(tenant), address(ada, reason="Flu")
    shown = client.get(page).context["plan"].lines()
    to_eve = next(value for value, words in shown[1].choices if "Eve" in words)
    Delivery.objects.all().delete()
    given = {
        "for_all": "cancel",
        "message": "Ada is ill, sorry.",
        f"booking-{ben['id']}": to_eve,
        f"booking-{cleo['id']}": "offer_new_times",
        f"booking-{dan['id']}": "keep",
        "save": "yes",
    }

    answer = client.post(page, given, follow=True)
    early = [tenant.get(f"/bookings/{one['id']}").data["state"] for one in (ann, ben, cleo, dan)]
    notice = client.get(reverse("admin:bookings_booking_change", args=[ann["id"]]))
    mails = Delivery.objects.count()
    carry_out()
    done = client.get(answer.request["PATH_INFO"])

    event = Event.objects.get(what="Flu")
    assert (event.resource.name, event.busy, event.all_day) == ("Ada", True, False)
    assert (event.start, event.end) == (
        local_midnight(FRIDAY, "Europe/Berlin"),
        local_midnight(FRIDAY + timedelta(days=1), "Europe/Berlin"),
    )
    words = ["Cancel", f"Move to Eve, {WORDS}, 11:00 to 11:30", "Offer new times"]
    assert step_lines(answer) == [(one, "pending", "") for one in words]
    assert (early, mails) == (["confirmed"] * 4, 0)
    assert "This booking is about to be changed." in notice.content.decode()
    assert step_lines(done) == [(one, "done", "") for one in words]
    states = [tenant.get(f"/bookings/{one['id']}").data["state"] for one in (ann, ben, cleo, dan)]
    assert states == ["cancelled", "confirmed", "confirmed", "confirmed"]
    assert Booking.objects.get(id=ben["id"]).resource.name == "Eve"
    to_customers = Delivery.objects.filter(type="email", recipient="customer").order_by("id")
    assert list(to_customers.values_list("booking", "kind", "content__message")) == [
        (Booking.objects.get(id=one["id"]).pk, kind, "Ada is ill, sorry.")
        for one, kind in ((ann, "cancelled"), (ben, "reassigned"), (cleo, "new_times"))
    ]


def test_undo_opens_the_time_again(
    tenant: Tenant, people: list[Any], project: Any, enter: Enter
) -> None:
    booking = booked(tenant, people[0], "10:00")
    client, page = enter(tenant), address(people[0])
    answer = client.post(page, {"save": "yes"}, follow=True)
    blocked = Event.objects.filter(what="Away").count()

    undone = client.post(answer.request["PATH_INFO"], follow=True)
    carry_out()

    assert blocked == 1
    assert messages_of(undone) == ["Undone. No booking was changed, and no e-mail was sent."]
    assert Event.objects.filter(what="Away").count() == PostponedTask.objects.count() == 0
    assert tenant.get(f"/bookings/{booking['id']}").data["state"] == "confirmed"


def test_late_undo_is_refused(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    booked(tenant, people[0], "10:00")
    client = enter(tenant)
    answer = client.post(address(people[0]), {"save": "yes"}, follow=True)
    carry_out()

    late = client.post(answer.request["PATH_INFO"], follow=True)

    assert messages_of(late) == ["Too late to undo: the changes are being made."]
    assert Event.objects.filter(what="Away").count() == 1


def test_moves_of_all_go_to_people_who_are_free(
    tenant: Tenant, people: list[Any], project: Any, enter: Enter
) -> None:
    """Two bookings are not moved to one time; who has no choice stays and is on record."""
    _ada, bob, eve = people
    booked(tenant, eve, "10:00", "Eli")
    room = tenant.make_resource("Room", capacity=2, **BERLIN)
    both = tenant.make_project(
        room["id"], bob["id"], name="Both", availability={"length": "30 mins"}
    )
    first = booked(tenant, room, "10:00", "Ann", project_id=both["id"])
    second = booked(tenant, room, "10:00", "Ben", project_id=both["id"])
    third = booked(tenant, room, "12:00", "Cleo")
    client = enter(tenant)

    answer = client.post(address(room), {"for_all": "move", "save": "yes"}, follow=True)
    before = step_lines(answer)
    carry_out()

    assert before == [
        (f"Move to Bob, {WORDS}, 10:00 to 10:30", "pending", ""),
        (f"Move to Bob, {WORDS}, 10:30 to 11:00", "pending", ""),
        ("Move", "not possible", "Nobody else is free."),
    ]
    rows = Booking.objects.select_related("event", "resource").in_bulk(
        [one["id"] for one in (first, second, third)]
    )
    berlin = find_zone("Europe/Berlin")
    starts = [
        (row.resource.name, f"{row.event.start.astimezone(berlin):%H:%M}") for row in rows.values()
    ]
    assert sorted(starts) == [("Bob", "10:00"), ("Bob", "10:30"), ("Room", "12:00")]


def test_move_that_was_taken_meanwhile_is_shown_on_today(
    tenant: Tenant, people: list[Any], project: Any, enter: Enter
) -> None:
    ada, bob, _eve = people
    ann = booked(tenant, ada, "10:00", "Ann", project_id=project["id"])
    client = enter(tenant)
    answer = client.post(address(ada), {"for_all": "move", "save": "yes"}, follow=True)
    booked(tenant, bob, "10:00", "Ben")

    carry_out()

    done = client.get(answer.request["PATH_INFO"])
    today = client.get(reverse("admin:index"))
    line = (f"Move to Bob, {WORDS}, 10:00 to 10:30", "not possible", "The time is taken.")
    assert step_lines(done) == [line]
    assert "Bookings that could not be changed" in today.content.decode()
    tenant.put(f"/bookings/{ann['id']}/cancel")
    assert "Bookings that could not be changed" not in client.get("/admin/").content.decode()


def test_preview_has_one_mail_of_each_kind(
    tenant: Tenant, people: list[Any], project: Any, enter: Enter
) -> None:
    ada = people[0]
    booked(tenant, ada, "10:00", "Ann", project_id=project["id"])
    ben = booked(tenant, ada, "11:00", "Ben", project_id=project["id"])
    booked(tenant, ada, "12:00", "Cleo", project_id=project["id"])
    given = {f"booking-{ben['id']}": "offer_new_times", "message": "Ada is ill.", "preview": "yes"}

    answer = enter(tenant).post(address(ada), given)

    previews = list(answer.context["plan"].previews())
    assert [mail.receiver for mail in previews] == ["Ann", "Ben"]
    assert "> Ada is ill." in previews[0].text
    assert "Free that day:  Bob, Eve" in previews[0].text
    assert "Please choose another time" in previews[1].text
    assert "signature=preview" in previews[1].text
    assert answer.context["plan"].message == "Ada is ill."
    assert PostponedTask.objects.count() == Event.objects.filter(what="Away").count() == 0


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        ({"resource": ""}, {"resource": ["This field is required."]}),
        ({"first_day": "x"}, {"first_day": ["Enter a valid date."]}),
        ({"end": "10:00"}, {"start": ["Enter both times, or none for the whole day."]}),
        (
            {"last_day": (FRIDAY - timedelta(days=1)).isoformat()},
            {"last_day": ["Must not be before the first day."]},
        ),
    ],
    ids=["nobody", "no day", "one time", "ends before it begins"],
)
def test_wrong_values_show_no_bookings(
    tenant: Tenant, people: list[Any], enter: Enter, given: Any, faults: Any
) -> None:
    answer = enter(tenant).get(PAGE, query(people[0]) | given)

    assert (answer.context["form"].errors, answer.context["plan"]) == (faults, None)


def test_end_before_the_start_is_refused(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    answer = enter(tenant).post(address(people[0], start="13:00", end="12:00"), {"save": "yes"})

    assert messages_of(answer) == ["Must be after the start."]
    assert Event.objects.count() == 0


def test_person_with_connected_calendars_only_stays_open(
    tenant: Tenant, people: list[Any], enter: Enter
) -> None:
    booked(tenant, people[0], "10:00")
    Calendar.objects.filter(resource=people[0]["id"]).update(provider="caldav")

    answer = enter(tenant).post(address(people[0]), {"message": "Ill.", "save": "yes"})

    assert messages_of(answer) == ["Has only connected calendars: block the time there."]
    assert answer.context["plan"].message == "Ill."
    assert PostponedTask.objects.count() == 0


def test_nobody_booked_closes_the_time_only(
    tenant: Tenant, people: list[Any], enter: Enter
) -> None:
    client = enter(tenant)
    shown = client.get(PAGE, query(people[0]))

    answer = client.post(address(people[0]), {"save": "yes"}, follow=True)

    assert shown.context["plan"].button == "Close the time"
    assert answer.context["closed"] == [f"Ada: {WORDS}"]
    assert step_lines(answer) == []


def test_viewers_and_other_apps_have_no_access(
    tenant: Tenant, make_tenant: Any, people: list[Any], enter: Enter
) -> None:
    booked(tenant, people[0], "10:00")
    task = enter(tenant).post(address(people[0]), {"save": "yes"})["Location"]
    other = make_tenant()
    stranger, viewer = enter(other), enter(tenant, Membership.VIEWER)

    assert [
        viewer.get(PAGE).status_code,
        viewer.get(task).status_code,
        viewer.post(task).status_code,
        stranger.get(PAGE, {"app": tenant.app.pk}).status_code,
        stranger.get(task).status_code,
        stranger.post(task).status_code,
    ] == [403, 403, 403, 404, 404, 404]
    foreign = stranger.get(PAGE, query(people[0]))
    assert foreign.context["plan"] is None
    assert PostponedTask.objects.count() == 1


def test_queries_do_not_grow_with_bookings(
    tenant: Tenant, people: list[Any], project: Any, enter: Enter
) -> None:
    client, page = enter(tenant), address(people[0])
    booked(tenant, people[0], "10:00", project_id=project["id"])
    client.get(page)
    with Queries(connection) as few:
        client.get(page)
    for hour in (11, 12, 13, 14):
        booked(tenant, people[0], f"{hour}:00", project_id=project["id"])

    with Queries(connection) as more:
        client.get(page)

    assert len(more) == len(few)


# --- Bulk actions of the list ---------------------------------------------------------------------
LIST = reverse("admin:bookings_booking_changelist")


def chosen(action: str, *bookings: Any) -> dict[str, Any]:
    return {"action": f"apply_{action}", "_selected_action": [one["id"] for one in bookings]}


def test_bulk_cancel_tells_everybody_and_closes_the_day(
    tenant: Tenant, people: list[Any], enter: Enter
) -> None:
    ada, bob, _ = people
    made = [
        booked(tenant, ada, "10:00"),
        booked(tenant, ada, "11:00"),
        booked(tenant, bob, "10:00"),
    ]
    client, given = enter(tenant), chosen("cancel", *made)
    asked = client.post(LIST, given)
    confirmed = given | {"confirmed": "yes", "message": " Closed, sorry. ", "close_days": "on"}

    answer = client.post(LIST, confirmed, follow=True)
    early = list(Booking.objects.values_list("state", flat=True))
    carry_out()

    assert (asked.context["button"], asked.context["back_words"]) == (
        "Cancel 3 bookings",
        "Keep the bookings",
    )
    day = WORDS
    assert sorted(answer.context["closed"]) == [f"Ada: {day}", f"Bob: {day}"]
    assert early == ["confirmed"] * 3
    assert list(Booking.objects.values_list("state", flat=True)) == ["cancelled"] * 3
    mails = Delivery.objects.filter(kind="cancelled", recipient="customer")
    assert list(mails.values_list("content__message", flat=True)) == ["Closed, sorry."] * 3


def test_bulk_decline_is_undone(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    made = booked(tenant, people[0], "10:00", graph="confirm_decline")
    client = enter(tenant)
    given = chosen("decline", made) | {"confirmed": "yes", "close_days": "on"}
    answer = client.post(LIST, given, follow=True)

    client.post(answer.request["PATH_INFO"])
    carry_out()

    assert Booking.objects.get().state == "tentative"
    assert Event.objects.filter(what="Closed").count() == PostponedStep.objects.count() == 0


def test_bulk_cancel_of_two_apps_makes_a_task_of_each(
    tenant: Tenant, make_tenant: Any, people: list[Any], enter: Enter
) -> None:
    other = make_tenant()
    foreign = booked(other, other.make_resource("Zoe", **BERLIN), "10:00")
    made = booked(tenant, people[0], "10:00")
    given = chosen("cancel", made, foreign) | {"confirmed": "yes"}

    answer = enter().post(LIST, given, follow=True)
    carry_out()

    tasks = PostponedTask.objects.select_related("app").order_by("id")
    assert sorted(messages_of(answer)) == sorted(
        f'{task.app.name}: <a href="{reverse("admin:postponed", args=[task.pk])}">show and undo</a>'
        for task in tasks
    )
    assert list(Booking.objects.values_list("state", flat=True)) == ["cancelled"] * 2
    assert Account.objects.get().email == tasks[0].actor


def test_who_has_arrived_is_not_concerned(tenant: Tenant, people: list[Any], enter: Enter) -> None:
    """Ill at noon: the patients of the morning have been seen."""
    ada = people[0]
    here = booked(tenant, ada, "10:00", "Ann")
    booked(tenant, ada, "11:00", "Bob")
    Booking.objects.filter(id=here["id"]).update(outcome="attended")

    answer = enter(tenant).get(address(ada))
    assert [who for who, _ in choices(answer)] == ["Bob"]
