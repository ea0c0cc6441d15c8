"""Internal notes and the details of customers on the pages of bookings and customers."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from bookings.models import AppCustomer, Booking, CustomerNote
from notifications.models import Delivery
from office.bookings.answers import labelled_values
from tests.office.conftest import Enter
from tests.office.staff import form_of, messages_of
from tests.world import Tenant

MARTY = {"name": "Marty McFly", "email": "marty@example.com", "phone": "1"}
QUESTIONS = {
    "comment": {"title": "What is it about?", "format": "textarea"},
    "insurance": {"title": "Insurance", "enum": ["Public", "Private"]},
    "first_visit": {"title": "First visit?", "format": "checkbox"},
}
ANSWERS = {"comment": "Left molar hurts", "insurance": "Private", "first_visit": True}


@pytest.fixture
def booking(tenant: Tenant) -> Booking:
    return make_booking(tenant)


def make_booking(tenant: Tenant, **given: Any) -> Booking:
    ada = tenant.make_resource("Ada")
    project = tenant.make_project(ada["id"], customer_fields=QUESTIONS)
    times = {"start": "2030-03-05T09:00:00Z", "end": "2030-03-05T09:30:00Z"}
    body = {"customer": MARTY | ANSWERS | {"shoe_size": 42}, "project_id": project["id"], **given}
    no_rules = {"enforce_availability": False}
    answer = tenant.book(resource_id=ada["id"], settings=no_rules, **times, **body)
    return Booking.objects.get(id=answer.data["id"])


def page_of(booking: Booking, name: str = "change") -> str:
    return reverse(f"admin:bookings_booking_{name}", args=[booking.id])


def person_page(name: str = "change") -> str:
    return reverse(f"admin:bookings_appcustomer_{name}", args=[AppCustomer.objects.get().pk])


def shown(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


# --- Answers --------------------------------------------------------------------------------------
def test_answers_are_labelled_by_the_question(booking: Booking) -> None:
    meta = booking.customers.get().meta

    assert labelled_values(meta, booking.project) == [
        ("What is it about?", "Left molar hurts"),
        ("Insurance", "Private"),
        ("First visit?", "yes"),
        ("Shoe size", "42"),
    ]
    assert labelled_values(["no object"], booking.project) == []


@pytest.mark.parametrize("questions", [None, [], "?", {"comment": "no question"}])
def test_answers_without_questions_have_their_key(booking: Booking, questions: Any) -> None:
    assert booking.project
    booking.project.customer_fields = questions

    assert labelled_values({"comment": "Left molar"}, booking.project) == [
        ("Comment", "Left molar")
    ]


def test_page_shows_the_questions(tenant: Tenant, booking: Booking, enter: Enter) -> None:
    page = shown(enter(tenant, "viewer"), page_of(booking))

    assert '<dt dir="auto">What is it about?</dt><dd dir="auto">Left molar hurts</dd>' in page
    assert "Comment" not in page


# --- Details --------------------------------------------------------------------------------------
def test_details_are_corrected(tenant: Tenant, booking: Booking, enter: Enter) -> None:
    client, customer = enter(tenant), booking.customers.get()
    fields = form_of(client, page_of(booking, "details"))
    prefix = f"customer-{customer.pk}"
    was = {name: value for name, value in fields.items() if not name.startswith("initial-")}
    changed = {
        f"{prefix}-name": "Martin McFly",
        f"{prefix}-email": "martin@example.com",
        f"{prefix}-answer-comment": "Left molar\r\nstill hurts",
        f"{prefix}-answer-insurance": "",
    }
    del fields[f"{prefix}-answer-first_visit"]  # an empty box is not sent

    answer = client.post(page_of(booking, "details"), fields | changed, follow=True)

    customer.refresh_from_db()
    assert was == {
        f"{prefix}-name": "Marty McFly",
        f"{prefix}-email": "marty@example.com",
        f"{prefix}-phone": "1",
        f"{prefix}-answer-comment": "Left molar hurts",
        f"{prefix}-answer-insurance": "Private",
        f"{prefix}-answer-first_visit": "on",
    }
    assert messages_of(answer) == ["The details were saved."]
    assert (customer.name, customer.email, customer.phone, customer.meta) == (
        "Martin McFly",
        "martin@example.com",
        "1",
        {"comment": "Left molar\nstill hurts", "first_visit": False, "shoe_size": 42},
    )
    log = booking.logs.last()
    assert log is not None
    assert (log.action, log.source, log.message) == (
        "update",
        "admin",
        "Changed: customer email, customer meta, customer name.",
    )
    kinds = Delivery.objects.filter(kind="updated", type="email").values_list(
        "recipient", flat=True
    )
    assert sorted(kinds) == ["customer", "owner"]


def test_unchanged_details_change_nothing(tenant: Tenant, booking: Booking, enter: Enter) -> None:
    """What somebody else has changed meanwhile stays too."""
    client = enter(tenant)
    fields = form_of(client, page_of(booking, "details"))
    tenant.put(f"/bookings/{booking.id}", {"customer": {"phone": "2", "comment": "New"}})
    logs = booking.logs.count()

    client.post(page_of(booking, "details"), fields)

    customer = booking.customers.get()
    assert (customer.phone, customer.meta["comment"], booking.logs.count()) == ("2", "New", logs)


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("name", "", "This field is required."),
        ("email", "nobody", "Must be an e-mail address."),
        ("phone", "x" * 201, "Ensure this value has at most 200 characters (it has 201)."),
        (
            "answer-comment",
            "x" * 2001,
            "Ensure this value has at most 2000 characters (it has 2001).",
        ),
    ],
)
def test_wrong_details_are_shown_at_their_field(
    tenant: Tenant, booking: Booking, enter: Enter, field: str, value: str, fault: str
) -> None:
    client, customer = enter(tenant), booking.customers.get()
    fields = form_of(client, page_of(booking, "details"))

    answer = client.post(
        page_of(booking, "details"), fields | {f"customer-{customer.pk}-{field}": value}
    )

    [form] = answer.context["customers"]
    assert list(form.errors) == [field]
    assert booking.logs.count() == 1
    assert list(form.errors[field]) == [fault]


def test_details_of_erased_customers_have_no_form(
    tenant: Tenant, booking: Booking, enter: Enter
) -> None:
    tenant.post("/customers/erase", {"email": MARTY["email"]})
    client = enter(tenant)

    assert form_of(client, page_of(booking, "details")) == {}
    assert page_of(booking, "details") not in shown(client, page_of(booking))


# --- Notes ----------------------------------------------------------------------------------------
def test_note_of_a_booking(tenant: Tenant, booking: Booking, enter: Enter) -> None:
    client, before = enter(tenant), Delivery.objects.count()

    answer = client.post(
        page_of(booking, "note"), {"note": " Afraid of needles.\r\nMornings "}, follow=True
    )

    booking.refresh_from_db()
    assert messages_of(answer) == ["The note was saved."]
    assert booking.note == "Afraid of needles.\nMornings"
    assert "\nAfraid of needles.\nMornings</textarea>" in answer.content.decode()
    assert Delivery.objects.count() == before
    client.post(page_of(booking, "note"), {"note": ""})
    booking.refresh_from_db()
    assert booking.note is None


def test_note_on_a_customer(tenant: Tenant, booking: Booking, enter: Enter) -> None:
    client = enter(tenant)

    answer = client.post(person_page("note"), {"note": "Pays late"}, follow=True)

    assert messages_of(answer) == ["The note was saved."]
    assert [(row.address, row.note) for row in CustomerNote.objects.all()] == [
        ("marty@example.com", "Pays late")
    ]
    assert page_of(booking, "details") in answer.content.decode()
    client.post(person_page("note"), {"note": " "})
    assert CustomerNote.objects.count() == 0


@pytest.mark.parametrize("path", ["booking", "customer"])
def test_refused_note_is_shown_again(
    tenant: Tenant, booking: Booking, enter: Enter, path: str
) -> None:
    page = page_of(booking, "note") if path == "booking" else person_page("note")

    answer = enter(tenant).post(page, {"note": "bell \a"})

    assert messages_of(answer) == ["May not contain control characters."]
    assert "bell \a</textarea>" in answer.content.decode()
    assert (Booking.objects.get().note, CustomerNote.objects.count()) == (None, 0)


def test_viewers_read_notes_and_change_nothing(
    tenant: Tenant, booking: Booking, enter: Enter
) -> None:
    tenant.put(f"/bookings/{booking.id}", {"note": "Afraid of needles"})
    tenant.put("/customers/note", {"email": MARTY["email"], "note": "Pays late"})
    client = enter(tenant, "viewer")

    pages = [shown(client, page_of(booking)), shown(client, person_page())]
    refused = [
        client.post(page_of(booking, "note"), {"note": "x"}),
        client.post(person_page("note"), {"note": "x"}),
        client.get(page_of(booking, "details")),
        client.post(page_of(booking, "details"), {}),
    ]

    assert ["Afraid of needles" in pages[0], "Pays late" in pages[1]] == [True, True]
    assert ["</textarea>" in page for page in pages] == [False, False]
    assert [answer.status_code for answer in refused] == [403] * 4
    assert Booking.objects.get().note == "Afraid of needles"


def test_pages_of_other_apps_are_not_found(
    make_tenant: Any, booking: Booking, enter: Enter
) -> None:
    client = enter(make_tenant())

    answers = [
        client.post(page_of(booking, "note"), {"note": "x"}),
        client.post(person_page("note"), {"note": "x"}),
        client.get(page_of(booking, "details")),
    ]

    assert [answer.status_code for answer in answers] == [404] * 3


# --- Actions --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("graph", "first", "more"),
    [
        ("confirm_decline", ["confirm", "decline"], ["cancel", "cancel_by_customer"]),
        ("instant", ["cancel", "cancel_by_customer"], []),
        ("instant_payment", ["pay", "cancel"], []),
    ],
)
def test_request_offers_its_answers_first(
    tenant: Tenant, enter: Enter, graph: str, first: list[str], more: list[str]
) -> None:
    booking = make_booking(tenant, graph=graph)

    context = enter(tenant).get(page_of(booking)).context

    assert [name for name, _, _ in context["actions"]] == first
    assert [name for name, _, _ in context["more_actions"]] == more
