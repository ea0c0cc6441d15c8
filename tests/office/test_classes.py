"""A class: a project whose customers share dates; its dates, its participants, a message to all."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from availability.models import Project
from bookings.models import Booking, PostponedTask, StateChange
from bookings.services.postponed import carry_out_due, undo
from notifications.models import Delivery
from tests.bookings.group_world import ANN, BOB, CYD, seat_in, seats_of, take_seat
from tests.office.conftest import Enter
from tests.office.staff import faults, form_of, messages_of
from tests.queries import Queries
from tests.world import BERLIN, Tenant

pytestmark = pytest.mark.django_db
NEW = reverse("admin:availability_project_add")
ADMIN = "/admin/availability/project/"
BOOKING = "/admin/bookings/booking/"
EVENING = {"start": "2030-11-04T18:00:00+01:00", "end": "2030-11-04T19:00:00+01:00"}
DATES = {"seats": "12", "first_date": "2030-10-14T18:00", "repeat": "weekly"}
NO_MAIL = {"enabled": False}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    """Works until five: classes are later."""
    hours = [{"allow_hours": {"start": 9, "end": 17}}]
    return tenant.make_resource("Ada", timezone=BERLIN, availability_constraints=hours)


@pytest.fixture
def project(tenant: Tenant, ada: Any) -> Any:
    questions = {"shoes": {"title": "Shoe size"}}
    booking = {"graph": "group_customer", "what": "Yoga"}
    return tenant.make_project(ada["id"], name="Yoga", booking=booking, customer_fields=questions)


@pytest.fixture
def group(tenant: Tenant, ada: Any, project: Any) -> Any:
    settings = {"max_seats": 3, "enforce_availability": False}
    body = {"graph": "group_owner", "project_id": project["id"], "settings": settings, **EVENING}
    return tenant.post("/bookings", body).data


def dates_page(project: Any) -> str:
    return f"{ADMIN}{project['id']}/dates/"


def page_of(booking: Any, part: str = "change") -> str:
    return f"{BOOKING}{booking['id']}/{part}/"


def dates_of(project_id: Any) -> list[tuple[str, int | None]]:
    """The local times in Berlin, and the seats."""
    rows = Booking.objects.filter(project_id=project_id, max_seats__isnull=False)
    return [
        (f"{row.event.start.astimezone(row.event.start.tzinfo):%m-%d %H:%M}", row.max_seats)
        for row in rows.select_related("event").order_by("event__start")
    ]


# --- Dates ----------------------------------------------------------------------------------------
def test_a_class_is_made_with_its_dates(tenant: Tenant, ada: Any, enter: Enter) -> None:
    """At six by the wall clock, over the end of summer time, though Ada's hours end at five."""
    client = enter(tenant)
    given = form_of(client, NEW) | {"name": "Yoga", "graph": "group_customer"}
    answer = client.post(NEW, given | DATES | {"until": "2030-10-31"}, follow=True)

    project = Project.objects.get()
    assert project.booking == {"graph": "group_customer"}
    assert dates_of(project.id) == [("10-14 16:00", 12), ("10-21 16:00", 12), ("10-28 17:00", 12)]
    assert messages_of(answer)[1] == "3 dates were added."
    page = client.get(f"/book/{project.slug}").content.decode()
    assert "12 seats left" in page


def test_what_a_class_lacks_is_named_at_its_field(tenant: Tenant, ada: Any, enter: Enter) -> None:
    client = enter(tenant)
    given = form_of(client, NEW) | {"name": "Yoga", "graph": "group_customer", "length_unit": ""}
    answer = client.post(NEW, given | DATES | {"seats": "", "resources": []})

    assert faults(answer) == {
        "seats": ["How many people can take part?"],
        "until": ["Until when does it repeat?"],
        "resources": ["Who gives the class?"],
    }
    assert not Project.objects.exists()


def test_a_class_without_dates_says_so(tenant: Tenant, ada: Any, enter: Enter) -> None:
    client = enter(tenant)
    given = form_of(client, NEW) | {"name": "Yoga", "graph": "group_customer"}
    answer = client.post(NEW, given, follow=True)

    page = dates_page({"id": Project.objects.get().id})
    assert messages_of(answer)[1] == (
        f'There are no dates yet.<br><a class="office-link" href="{page}">All dates, add dates</a>'
    )


def test_a_class_of_nobody_asks_for_somebody(tenant: Tenant, ada: Any, enter: Enter) -> None:
    client = enter(tenant)
    given = form_of(client, NEW) | {"name": "Yoga", "graph": "group_customer", "resources": []}
    answer = client.post(NEW, given, follow=True)
    page = dates_page({"id": Project.objects.get().id})
    dates = client.get(page)

    assert messages_of(answer)[0] == (
        'Yoga was created. Now choose <a href="#part-who">who can be booked</a>.'
    )
    assert 'id="part-who"' in answer.content.decode()
    assert "First choose who gives the class, or the room." in dates.content.decode()


def test_the_dates_of_a_series_take_place(
    tenant: Tenant, ada: Any, project: Any, enter: Enter
) -> None:
    client = enter(tenant)
    body = form_of(client, dates_page(project)) | DATES | {"until": "2030-10-22"}
    client.post(dates_page(project), body)
    group = Booking.objects.order_by("event__start")[0]

    lines = client.get(page_of({"id": group.id})).context["occurrences"]
    assert [words for _, words in lines] == ["takes place", "takes place"]


def test_fields_of_a_class_are_ignored_for_another_kind(
    tenant: Tenant, ada: Any, enter: Enter
) -> None:
    client = enter(tenant)
    given = form_of(client, NEW) | {"name": "Check-up", "graph": "instant"}
    client.post(NEW, given | DATES)

    assert Project.objects.get().booking == {"graph": "instant"}
    assert not Booking.objects.exists()


def test_taken_dates_are_shown_on_the_page_of_dates(tenant: Tenant, ada: Any, enter: Enter) -> None:
    client = enter(tenant)
    taken = {"start": "2030-10-21T18:30:00+02:00", "end": "2030-10-21T19:30:00+02:00"}
    tenant.book(resource_id=ada["id"], **taken)
    given = form_of(client, NEW) | {"name": "Yoga", "graph": "group_customer"}
    answer = client.post(NEW, given | DATES | {"until": "2030-10-31"}, follow=True)

    project = Project.objects.get()
    assert answer.request["PATH_INFO"] == dates_page({"id": project.id})
    assert messages_of(answer)[1:] == ["The time is taken. Mon 21 Oct 2030, 18:00 to 19:00"]
    assert dates_of(project.id) == []

    shown = form_of(client, answer.request["PATH_INFO"] + "?" + answer.request["QUERY_STRING"])
    kept = {name: shown[name] for name in (*DATES, "until")}
    assert kept == DATES | {"until": "2030-10-31"}
    given = shown | {"skip_conflicts": "on"}
    answer = client.post(dates_page({"id": project.id}), given, follow=True)
    assert messages_of(answer) == [
        "2 dates were added.",
        "Left out, because they are taken: Mon 21 Oct 2030, 18:00 to 19:00",
    ]
    assert [date.when for date in answer.context["dates"]] == [
        "Mon 14 Oct 2030, 18:00 to 19:00",
        "Mon 28 Oct 2030, 18:00 to 19:00",
    ]


def test_viewer_sees_dates_and_adds_none(
    tenant: Tenant, project: Any, group: Any, enter: Enter
) -> None:
    client = enter(tenant, "viewer")
    answer = client.get(dates_page(project))
    refused = client.post(dates_page(project), DATES | {"until": "2030-10-31"})

    assert [date.seats for date in answer.context["dates"]] == ["0 of 3"]
    assert answer.context["form"] is None
    assert refused.status_code == 403
    assert len(dates_of(project["id"])) == 1


def test_pages_of_dates_are_of_the_apps_classes(
    tenant: Tenant, make_tenant: Any, ada: Any, project: Any, enter: Enter
) -> None:
    usual = tenant.make_project(ada["id"])

    other = make_tenant()
    assert enter(other).get(dates_page(project)).status_code == 404
    assert enter(tenant).get(dates_page(usual)).status_code == 404


def test_project_shows_its_coming_dates(
    tenant: Tenant, project: Any, group: Any, enter: Enter
) -> None:
    seat_in(tenant, group, project_id=project["id"])
    page = enter(tenant).get(f"{ADMIN}{project['id']}/change/").content.decode()

    assert "Mon 4 Nov 2030, 18:00 to 19:00</a> · 1 of 3" in page


def test_a_class_is_no_choice_of_a_new_booking(
    tenant: Tenant, ada: Any, project: Any, enter: Enter
) -> None:
    usual = tenant.make_project(ada["id"])
    answer = enter(tenant).get(reverse("admin:calendar"))

    assert [str(row.pk) for row in answer.context["projects"]] == [usual["id"]]


# --- Participants ---------------------------------------------------------------------------------
def test_participants_are_listed_with_the_seats_left(
    tenant: Tenant, project: Any, group: Any, enter: Enter
) -> None:
    seat_in(tenant, group, ANN, project_id=project["id"])
    gone = seat_in(tenant, group, BOB, project_id=project["id"])
    tenant.put(f"/bookings/{gone['id']}/cancel")
    answer = enter(tenant).get(page_of(group))

    participants = answer.context["participants"]
    assert participants.words == "1 of 3"
    assert [row.customers[0].name for row in participants.taken] == ["Ann"]
    assert [row.customers[0].name for row in participants.called_off] == ["Bob"]


def test_a_person_is_added(tenant: Tenant, project: Any, group: Any, enter: Enter) -> None:
    client = enter(tenant)
    path = page_of(group, "add")
    fields = form_of(client, path)
    name, email, phone, shoes = (key for key in fields if key.startswith("customer-"))
    given = fields | {name: "Cyd", email: "cyd@example.com", phone: "030 1", shoes: "41"}
    answer = client.post(path, given, follow=True)

    assert messages_of(answer) == ["Cyd has a seat."]
    seat = Booking.objects.get(owner_booking=group["id"])
    (customer,) = seat.customers.all()
    assert (customer.name, customer.email, customer.phone, customer.meta) == (
        "Cyd",
        "cyd@example.com",
        "030 1",
        {"shoes": "41"},
    )
    mails = Delivery.objects.filter(booking=seat, type="email")
    assert sorted(mails.values_list("kind", "recipient", "state")) == [
        ("confirmed", "customer", "scheduled"),
        ("confirmed", "owner", "scheduled"),
    ]


def test_a_person_is_added_without_mails(tenant: Tenant, group: Any, enter: Enter) -> None:
    client = enter(tenant)
    fields = form_of(client, page_of(group, "add"))
    name, email, *_ = (key for key in fields if key.startswith("customer-"))
    del fields["notify"]
    client.post(page_of(group, "add"), fields | {name: "Cyd", email: "cyd@example.com"})

    seat = Booking.objects.get(owner_booking=group["id"])
    assert set(Delivery.objects.filter(booking=seat).values_list("state", flat=True)) == {"skipped"}


def test_wrong_person_is_refused_at_the_field(tenant: Tenant, group: Any, enter: Enter) -> None:
    client = enter(tenant)
    fields = form_of(client, page_of(group, "add"))
    name, email, *_ = (key for key in fields if key.startswith("customer-"))
    answer = client.post(page_of(group, "add"), fields | {name: "Cyd", email: "cyd"})

    form = answer.context["form"]
    assert form.errors == {"email": ["Must be an e-mail address."]}
    assert not Booking.objects.filter(owner_booking=group["id"]).exists()


def test_nobody_is_added_to_a_full_class(
    tenant: Tenant, project: Any, group: Any, enter: Enter
) -> None:
    client = enter(tenant)
    fields = form_of(client, page_of(group, "add"))
    for person in (ANN, BOB, CYD):
        seat_in(tenant, group, person, project_id=project["id"])
    name, email, *_ = (key for key in fields if key.startswith("customer-"))
    answer = client.post(page_of(group, "add"), fields | {name: "Dan", email: "dan@example.com"})

    assert answer.context["form"].non_field_errors() == ["Every seat of the group is taken."]
    assert seats_of(tenant, group) == {"max_seats": 3, "current_seats": 3}


def test_seats_are_changed_down_to_those_taken(
    tenant: Tenant, project: Any, group: Any, enter: Enter
) -> None:
    for person in (ANN, BOB):
        seat_in(tenant, group, person, project_id=project["id"])
    client = enter(tenant)
    client.post(page_of(group, "seats"), {"seats": "2"})
    assert seats_of(tenant, group)["max_seats"] == 2

    refused = client.post(page_of(group, "seats"), {"seats": "1"}, follow=True)
    wrong = client.post(page_of(group, "seats"), {"seats": "two"}, follow=True)
    assert seats_of(tenant, group)["max_seats"] == 2
    assert [messages_of(answer)[-1] for answer in (refused, wrong)] == [
        "2 seats are taken.",
        "Must be an integer.",
    ]
    assert take_seat(tenant, group, CYD, project_id=project["id"]).status == 409


def test_the_list_is_printed_with_answers_and_notes(
    tenant: Tenant, project: Any, group: Any, enter: Enter
) -> None:
    ann = ANN | {"phone": "030 2", "shoes": "38"}
    seat = seat_in(tenant, group, ann, project_id=project["id"])
    tenant.put(f"/bookings/{seat['id']}", {"note": "Beginner"})
    answer = enter(tenant, "viewer").get(page_of(group, "print"))

    (row,) = answer.context["rows"]
    assert (row.name, row.phone, row.answers, row.note) == (
        "Ann",
        "030 2",
        [("Shoe size", "38")],
        "Beginner",
    )
    assert answer.context["count"] == "1 of 3"


def test_query_count_of_the_participants_is_constant(
    tenant: Tenant, project: Any, group: Any, enter: Enter
) -> None:
    client = enter(tenant)
    counts = []
    for person in (ANN, BOB, CYD):
        seat_in(tenant, group, person, project_id=project["id"])
        for part in ("change", "print"):
            with Queries(connection) as found:
                client.get(page_of(group, part))
            counts.append(len(found))

    assert counts[:2] == counts[2:4] == counts[4:]


def test_other_bookings_have_no_pages_of_a_class(tenant: Tenant, ada: Any, enter: Enter) -> None:
    booking = tenant.book(resource_id=ada["id"], **EVENING).data
    client = enter(tenant)
    parts = ("print", "add", "message")

    assert [client.get(page_of(booking, part)).status_code for part in parts] == [404] * 3
    assert client.post(page_of(booking, "seats"), {"seats": "2"}).status_code == 404


def test_viewer_changes_nothing_of_a_class(tenant: Tenant, group: Any, enter: Enter) -> None:
    client = enter(tenant, "viewer")
    given = {"seats": "9", "message": "Hi", "send": "yes"}

    parts = ("seats", "add", "message")
    assert [client.post(page_of(group, part), given).status_code for part in parts] == [403] * 3
    assert seats_of(tenant, group)["max_seats"] == 3


# --- A message to all -----------------------------------------------------------------------------
def carry_out() -> None:
    carry_out_due(now=timezone.now() + timedelta(seconds=11))


def messages_sent() -> list[tuple[str, str]]:
    rows = Delivery.objects.filter(kind="message").order_by("id")
    return [(row.customer.email, row.content["message"]) for row in rows.select_related("customer")]


@pytest.fixture
def ann_twice(tenant: Tenant, project: Any, group: Any) -> None:
    """Ann has two seats, Bob one."""
    for person in (ANN, ANN | {"name": "Ann's friend"}, BOB):
        seat_in(tenant, group, person, project_id=project["id"])


def test_a_message_goes_to_each_person_once(
    tenant: Tenant, group: Any, ann_twice: None, enter: Enter
) -> None:
    client = enter(tenant)
    given = {"message": "Room 2 today.\nBring water.", "send": "yes"}
    answer = client.post(page_of(group, "message"), given)
    task = PostponedTask.objects.get()
    before = messages_sent()
    carry_out()

    assert answer.url == reverse("admin:postponed", args=[task.pk])
    assert before == []
    text = "Room 2 today.\nBring water."
    assert messages_sent() == [("ann@example.com", text), ("bob@example.com", text)]
    logs = StateChange.objects.filter(action="message")
    columns = ("from_state", "to_state", "message")
    assert list(logs.values_list(*columns)) == [("confirmed", "confirmed", text)] * 2
    carry_out()
    assert len(messages_sent()) == 2


def test_a_form_that_is_sent_twice_sends_one_message(
    tenant: Tenant, group: Any, ann_twice: None, enter: Enter
) -> None:
    client = enter(tenant)
    given = {"message": "Room 2 today.", "send": "yes"}
    pages = {client.post(page_of(group, "message"), given).url for _ in range(2)}
    carry_out()

    assert pages == {reverse("admin:postponed", args=[PostponedTask.objects.get().pk])}
    assert messages_sent() == [
        ("ann@example.com", "Room 2 today."),
        ("bob@example.com", "Room 2 today."),
    ]


def test_an_undone_message_is_not_sent(
    tenant: Tenant, group: Any, ann_twice: None, enter: Enter
) -> None:
    enter(tenant).post(page_of(group, "message"), {"message": "Oops", "send": "yes"})
    task = PostponedTask.objects.get()

    assert undo(app=tenant.app, task_id=task.id) is True
    carry_out()
    assert messages_sent() == []


def test_nobody_who_cancelled_meanwhile_gets_the_message(
    tenant: Tenant, group: Any, ann_twice: None, enter: Enter
) -> None:
    enter(tenant).post(page_of(group, "message"), {"message": "See you", "send": "yes"})
    bob = Booking.objects.get(customers__email="bob@example.com")
    tenant.put(f"/bookings/{bob.id}/cancel")
    carry_out()

    assert messages_sent() == [("ann@example.com", "See you")]


def test_preview_sends_nothing(tenant: Tenant, group: Any, ann_twice: None, enter: Enter) -> None:
    given = {"message": "Room 2 today.", "preview": "yes"}
    answer = enter(tenant).post(page_of(group, "message"), given)

    preview = answer.context["preview"]
    assert preview.subject == "Message: Yoga, Mon 4 Nov, 18:00"
    assert "> Room 2 today." in preview.text
    assert answer.context["names"] == ["Ann", "Bob"]
    assert not PostponedTask.objects.exists()


def test_an_empty_message_is_refused(
    tenant: Tenant, group: Any, ann_twice: None, enter: Enter
) -> None:
    answer = enter(tenant).post(page_of(group, "message"), {"message": " ", "send": "yes"})

    assert answer.context["form"].errors == {"message": ["This field is required."]}
    assert not PostponedTask.objects.exists()


def test_no_message_while_the_apps_emails_are_off(
    tenant: Tenant, group: Any, ann_twice: None, enter: Enter
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"disable_emails": True}})
    client = enter(tenant)
    answer = client.post(page_of(group, "message"), {"message": "Hi", "send": "yes"})

    assert "No e-mail is sent. The app's e-mails are off." in answer.content.decode()
    assert not PostponedTask.objects.exists()


def test_several_seats_at_a_place_are_added(tenant: Tenant, project: Any, enter: Enter) -> None:
    settings = {"places": {"stalls": 2, "balcony": 3}, "enforce_availability": False}
    body = {"graph": "group_owner", "project_id": project["id"], "settings": settings, **EVENING}
    group = tenant.post("/bookings", body).data
    client = enter(tenant)
    path = page_of(group, "add")
    fields = form_of(client, path)
    name, email, *_ = (key for key in fields if key.startswith("customer-"))
    given = fields | {name: "Cyd", email: "cyd@example.com", "quantity": "3", "place": "balcony"}
    answer = client.post(path, given, follow=True)
    full = client.post(path, given)

    assert messages_of(answer) == ["Cyd has a seat."]
    assert list(
        Booking.objects.filter(owner_booking=group["id"]).values_list("quantity", "place")
    ) == [(3, "balcony")]
    assert full.context["form"].errors == {"__all__": ["Every seat of the group is taken."]}
    shown = client.get(page_of(group, "change"))
    assert shown.context["participants"].words == "3 of 5"
    assert "Cyd × 3 (balcony)" in " ".join(shown.content.decode().split())
