"""Internal notes on bookings and customers: who reads and writes them, their export and erasure."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from bookings.models import Booking, CustomerNote
from bookings.privacy import erase_due_bookings
from notifications.models import ChangeCalls, Delivery
from tests.bookings.booking_drafts import MARTY, NINE, act, span
from tests.bookings.group_world import ANN, make_group, seat_in
from tests.bookings.test_privacy import dump, erase, export
from tests.queries import Queries
from tests.world import NOW, Caller, Tenant

pytestmark = pytest.mark.usefixtures("clock")

SECRET = "Wears a toupee.\nPays late"
MARTY_MAIL = {"email": MARTY["email"]}
NO_NOTES = {"note": ["The key of a resource can't write notes."]}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


def book(tenant: Caller, ada: Any, **given: Any) -> Any:
    who = {} if "customers" in given else {"customer": MARTY}
    body = {"what": "Meeting", "resource_id": ada["id"], **who, **NINE, **given}
    answer = tenant.post("/bookings", body)
    assert answer.status == 201, answer.json
    return answer.data


def note_of(caller: Caller, booking: Any) -> Any:
    return caller.get(f"/bookings/{booking['id']}?include=note").data["note"]


def notes_in(caller: Caller) -> dict[str, str | None]:
    return {person["email"]: person["note"] for person in caller.get("/customers").data}


def tables_with(text: str) -> set[str]:
    return {row.partition(":")[0] for row in dump().splitlines() if text in row}


# --- Of a booking ---------------------------------------------------------------------------------
def test_note_is_written_with_the_booking_and_changed_later(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada, note=SECRET)
    created = note_of(tenant, booking)
    path = f"/bookings/{booking['id']}"

    answers = [tenant.put(f"{path}?include=note", {"note": text}) for text in ("New", "", None)]

    assert created == SECRET
    assert [answer.data["note"] for answer in answers] == ["New", None, None]
    logs = tenant.get(f"{path}?include=logs").data["logs"]
    assert [log["message"] for log in logs] == ["", "Changed: note.", "Changed: note."]


@pytest.mark.parametrize("graph", ["series", "seat"])
def test_note_of_series_and_seats(tenant: Tenant, ada: Any, graph: str) -> None:
    if graph == "series":
        book(tenant, ada, note="Knee", recurrence="FREQ=DAILY;COUNT=2")
    else:
        group = make_group(tenant, ada, note="Hall key at the desk")
        seat_in(tenant, group, note="Knee")

    notes = Booking.objects.order_by("event__start", "id").values_list("note", flat=True)

    expected = ["Knee", "Knee"] if graph == "series" else ["Hall key at the desk", "Knee"]
    assert list(notes) == expected


def test_note_is_at_most_8000_characters(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada, note="x" * 8000)

    answer = tenant.put(f"/bookings/{booking['id']}", {"note": "x" * 8001})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"note": ["Ensure this field has no more than 8000 characters."]},
    )
    assert note_of(tenant, booking) == "x" * 8000


def test_changed_note_causes_no_mail_and_no_call(tenant: Tenant, ada: Any) -> None:
    hook = {"url": "https://example.com/hook", "kinds": ["booking.updated", "booking.confirmed"]}
    tenant.post("/webhooks", hook)
    booking = book(tenant, ada)
    before = (Delivery.objects.count(), ChangeCalls.objects.count())

    tenant.put(f"/bookings/{booking['id']}", {"note": SECRET})

    assert (Delivery.objects.count(), ChangeCalls.objects.count()) == before
    assert tables_with("toupee") == {"bookings_booking"}


def test_note_beside_other_changes_is_in_no_call(tenant: Tenant, ada: Any) -> None:
    tenant.post("/webhooks", {"url": "https://example.com/hook", "kinds": ["booking.updated"]})
    booking = book(tenant, ada, note=SECRET)

    tenant.put(f"/bookings/{booking['id']}", {"note": f"{SECRET}!", "what": "Cleaning"})

    logs = tenant.get(f"/bookings/{booking['id']}?include=logs").data["logs"]
    assert [log["message"] for log in logs] == ["", "Changed: note.", "Changed: what."]
    assert tables_with("toupee") == {"bookings_booking"}
    assert ["note" in body for body in ChangeCalls.objects.values_list("body", flat=True)] == [
        False
    ]


def test_unasked_responses_have_no_note(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada, note=SECRET)
    path = f"/bookings/{booking['id']}"

    answers = [
        tenant.get(path),
        tenant.get("/bookings?include=attributes,event,customers,meta,logs"),
        tenant.put(path, {"meta": {"a": 1}}),
        tenant.put(f"{path}/cancel"),
    ]

    assert ["note" in answer.content.decode() for answer in answers] == [False] * 4


# --- Who may read and write -----------------------------------------------------------------------
def test_members_read_and_editors_write(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada, note=SECRET)
    viewer = tenant.member("viewer@example.com", "viewer")
    editor = tenant.member("editor@example.com", "editor")
    path = f"/bookings/{booking['id']}"

    answers = [one.put(path, {"note": "Other"}).status for one in (viewer, editor)] + [
        one.put("/customers/note", {**MARTY_MAIL, "note": "Hers"}).status
        for one in (viewer, editor)
    ]

    assert answers == [403, 200, 403, 204]
    assert [note_of(one, booking) for one in (viewer, editor)] == ["Other", "Other"]
    assert [notes_in(one) for one in (viewer, editor)] == [{"marty@example.com": "Hers"}] * 2


def test_key_of_a_resource_neither_reads_nor_writes(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada, note=SECRET)
    key = Caller(ada["api_token"], user="ada@example.com")
    path = f"/bookings/{booking['id']}"
    new = {"what": "Meeting", "customer": MARTY, **span("11:00", "12:00")}

    answers = [
        key.get(f"{path}?include=note"),
        key.put(path, {"note": "Mine"}),
        key.post("/bookings", {**new, "note": "Mine"}),
        key.post("/bookings/bulk", {"bookings": [{**new, "note": "Mine"}]}),
        key.get("/customers"),
        key.put("/customers/note", {**MARTY_MAIL, "note": "Mine"}),
    ]

    assert [answer.status for answer in answers] == [422, 422, 422, 200, 403, 403]
    assert [answer.json["errors"] for answer in answers[1:3]] == [NO_NOTES] * 2
    assert answers[3].data[0]["error"]["errors"] == {"bookings.0.note": NO_NOTES["note"]}
    assert not any("toupee" in answer.content.decode() for answer in answers)
    assert note_of(tenant, booking) == SECRET
    assert Booking.objects.count() == 1


def test_widget_key_neither_reads_nor_writes(tenant: Tenant, ada: Any) -> None:
    project = tenant.make_project(ada["id"], booking={"what": "Check-up"})
    tenant.set_public_limits()
    widget = tenant.widget()
    group = make_group(tenant, ada, project_id=project["id"], note=SECRET, **span("14:00", "15:00"))
    body = {"project_id": project["id"], "customer": MARTY, **NINE, "note": "Mine"}

    answers = [
        widget.post("/bookings?include=attributes,event,resource", body),
        widget.get(f"/bookings/groups/{group['id']}?include=attributes,event"),
        widget.get("/bookings/groups"),
        widget.post("/bookings?include=note", {**body, **span("11:00", "11:30")}),
        widget.put("/customers/note", {**MARTY_MAIL, "note": "Mine"}),
    ]

    assert [answer.status for answer in answers] == [201, 200, 200, 422, 403]
    assert not any("toupee" in answer.content.decode() for answer in answers)
    made = Booking.objects.get(id=answers[0].data["id"])
    assert (made.note, made.customers.get().meta) == (None, {})


# --- On a customer --------------------------------------------------------------------------------
def test_note_on_a_customer_belongs_to_the_address(
    tenant: Tenant, ada: Any, make_tenant: Callable[..., Tenant]
) -> None:
    other = make_tenant()
    book(other, other.make_resource())
    book(tenant, ada)
    book(tenant, ada, customer=ANN, **span("10:00", "11:00"))

    answers = [
        tenant.put("/customers/note", {"email": "MARTY@Example.com", "note": SECRET}),
        tenant.put("/customers/note", {"email": "nobody@example.com", "note": SECRET}),
    ]

    assert [answer.status for answer in answers] == [204, 404]
    assert notes_in(tenant) == {"marty@example.com": SECRET, ANN["email"]: None}
    assert notes_in(other) == {"marty@example.com": None}
    assert tables_with("toupee") == {"bookings_customernote"}
    tenant.put("/customers/note", {**MARTY_MAIL, "note": ""})
    assert (notes_in(tenant)[MARTY["email"]], CustomerNote.objects.count()) == (None, 0)


@pytest.mark.both_databases
def test_corrected_address_keeps_the_note(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    tenant.put("/customers/note", {**MARTY_MAIL, "note": SECRET})

    tenant.put(f"/bookings/{booking['id']}", {"customer": {"email": "martin@example.com"}})

    assert notes_in(tenant) == {"martin@example.com": SECRET}


@pytest.mark.both_databases
def test_note_stays_with_the_other_bookings_of_the_address(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    book(tenant, ada, **span("10:00", "11:00"))
    tenant.put("/customers/note", {**MARTY_MAIL, "note": SECRET})

    tenant.put(f"/bookings/{booking['id']}", {"customer": {"email": "martin@example.com"}})

    assert notes_in(tenant) == {"marty@example.com": SECRET, "martin@example.com": None}


@pytest.mark.both_databases
def test_notes_of_two_addresses_become_one(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada)
    book(tenant, ada, customer=ANN, **span("10:00", "11:00"))
    tenant.put("/customers/note", {**MARTY_MAIL, "note": "Pays late"})
    tenant.put("/customers/note", {"email": ANN["email"], "note": "Mornings"})

    tenant.put(f"/bookings/{booking['id']}", {"customer": {"email": ANN["email"]}})

    assert notes_in(tenant) == {ANN["email"]: "Mornings\n\nPays late"}


def test_query_count_of_the_list_is_constant(tenant: Tenant, ada: Any) -> None:
    def count() -> int:
        with Queries(connection) as queries:
            tenant.get("/customers")
        return len(queries)

    book(tenant, ada)
    tenant.put("/customers/note", {**MARTY_MAIL, "note": SECRET})
    few = count()
    for hour in range(10, 14):
        who = {"name": "Ann", "email": f"ann{hour}@example.com"}
        book(tenant, ada, customer=who, **span(f"{hour}:00", f"{hour}:30"))
        tenant.put("/customers/note", {"email": who["email"], "note": SECRET})

    assert count() == few


# --- Personal data --------------------------------------------------------------------------------
def test_notes_are_exported(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada, note="Knee")
    tenant.put("/customers/note", {**MARTY_MAIL, "note": SECRET})

    data = export(tenant)[1]["data"]

    assert data["note"] == SECRET
    assert [(one["id"], one["note"]) for one in data["bookings"]] == [(booking["id"], "Knee")]


@pytest.mark.both_databases
def test_erasure_removes_notes(tenant: Tenant, ada: Any) -> None:
    """Of a booking that stays with somebody else only the person's name and address go."""
    book(tenant, ada, note=SECRET)
    shared = book(
        tenant,
        ada,
        customers=[MARTY, ANN],
        note="Ask Marty McFly for the key",
        **span("10:00", "11:00"),
    )
    others = book(
        tenant, ada, customer=ANN, note="Sent by marty@example.com", **span("11:00", "12:00")
    )
    tenant.put("/customers/note", {**MARTY_MAIL, "note": SECRET})
    tenant.put("/customers/note", {"email": ANN["email"], "note": "Friend of marty@example.com"})

    counts = erase(tenant)

    assert counts["bookings"] == 3
    assert (tables_with("toupee"), tables_with("marty@example.com")) == (set(), set())
    assert note_of(tenant, shared) == "Ask for the key"
    assert note_of(tenant, others) == "Sent by"
    assert notes_in(tenant) == {ANN["email"]: "Friend of"}


@pytest.mark.both_databases
def test_note_on_a_customer_goes_with_the_last_booking_that_is_erased(
    tenant: Tenant, ada: Any
) -> None:
    hidden = book(tenant, ada, note="Knee")
    tenant.put("/customers/note", {**MARTY_MAIL, "note": SECRET})
    act(tenant, hidden, "cancel")
    tenant.delete(f"/bookings/{hidden['id']}")
    kept = CustomerNote.objects.count()

    erase(tenant)

    assert (kept, CustomerNote.objects.count()) == (1, 0)
    assert tables_with("toupee") == tables_with("Knee") == set()


@pytest.mark.both_databases
def test_retention_erases_notes(tenant: Tenant, ada: Any) -> None:
    """Also of a group, and one that was written after the customer had been erased."""
    group = make_group(tenant, ada, note=SECRET)
    erased = book(tenant, ada, **span("11:00", "12:00"))
    erase(tenant)
    tenant.put(f"/bookings/{erased['id']}", {"note": SECRET})
    old = book(tenant, ada, note=SECRET, **span("12:00", "13:00"))
    young = book(tenant, ada, note="Knee", customer=ANN, **span("12:00", "13:00", "2026-12-23"))
    tenant.put("/customers/note", {**MARTY_MAIL, "note": SECRET})
    tenant.put("/customers/note", {"email": ANN["email"], "note": "Mornings"})

    purged = list(erase_due_bookings(NOW + timedelta(days=10)))

    assert [batch.bookings for batch in purged] == [3]
    assert tables_with("toupee") == set()
    notes = [note_of(tenant, one) for one in (group, erased, old, young)]
    assert notes == [None, None, None, "Knee"]
    assert notes_in(tenant) == {ANN["email"]: "Mornings"}
    assert [batch.bookings for batch in erase_due_bookings(NOW + timedelta(days=10))] == [0]
