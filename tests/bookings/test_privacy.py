"""People's data: who booked, all that is held about one, and its erasure (api.md section 4)."""

import json
import re
import uuid
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account, IdempotencyRecord, SavedFilter
from bookings.models import Booking, Customer, CustomerNote, StateChange, UnverifiedBooking
from bookings.privacy import Redactor
from bookings.privacy import erase as erasing
from bookings.privacy import export as exporting
from notifications.mail.suppressions import suppress
from notifications.models import Delivery, Suppression
from tests.bookings.booking_drafts import MARTY, NINE, act, span, whole
from tests.bookings.group_world import make_group, seat_in
from tests.office.conftest import logged_in, member_of
from tests.queries import Queries
from tests.world import STAMP, Caller, Tenant, at

pytestmark = pytest.mark.usefixtures("clock")

BASE = "http://127.0.0.1:8000/v2/customers"
PHONE = "+1 555 0100"
WHOLE_MARTY = {**MARTY, "phone": PHONE, "voip": "sip:marty", "shoe_size": "elevenish"}
ANN = {"name": "Ann Lee", "email": "ann@example.com", "phone": "+44 20 7946 0000"}
NOTHING = {
    "bookings": 0,
    "log_entries": 0,
    "unverified_bookings": 0,
    "deliveries": 0,
    "suppressions": 0,
}
CIPHERTEXT = re.compile(r"gAAAA[\w=-]+")  # what `encrypt_text` returns
EMPTY = {**dict.fromkeys(("name", "email", "phone", "voip", "timezone"), ""), "meta": {}}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


def book(tenant: Tenant, resource: Any, hour: int = 9, **given: Any) -> Any:
    times = span(f"{hour:02}:00", f"{hour + 1:02}:00")
    who = {} if "customers" in given else {"customer": MARTY}
    body = {"what": "Meeting", "resource_id": resource["id"], **times, **who, **given}
    answer = tenant.post("/bookings", body)
    assert answer.status == 201, answer.json
    return answer.data


def export(tenant: Caller, email: str = MARTY["email"]) -> Any:
    response = tenant.client.get("/v2/customers/export", {"email": email}, headers=tenant.headers)
    assert response.streaming == (response.status_code == 200)
    body = b"".join(response) if response.streaming else response.content
    return response.status_code, json.loads(body)


def erase(tenant: Caller, email: str = MARTY["email"], **headers: str) -> Any:
    answer = tenant.post("/customers/erase", {"email": email}, **headers)
    assert answer.status == 200, answer.json
    return answer.data


def dump() -> str:
    """Every row of every table as text; without encrypted values, which contain any short word by
    chance."""
    lines = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            for row in cursor.fetchall():
                values = [
                    text_of_bytes(bytes(one)) if isinstance(one, bytes | memoryview) else str(one)
                    for one in row
                ]
                lines.append(f"{table}: {CIPHERTEXT.sub('<encrypted>', str(values))}")
    return "\n".join(lines)


def text_of_bytes(value: bytes) -> str:
    """The text of a binary column, also of a compressed one."""
    try:
        return zlib.decompress(value).decode()
    except zlib.error:
        return value.decode()


def rows_but_events() -> list[str]:
    """All rows, without the record of calls."""
    return [row for row in dump().splitlines() if "apps_config_securityevent" not in row]


def rows_containing(*words: str) -> list[str]:
    """The rows that hold one of the words, in any case."""
    return [
        row for row in dump().splitlines() if any(word.lower() in row.lower() for word in words)
    ]


# --- The list -------------------------------------------------------------------------------------
def line(**given: Any) -> dict[str, Any]:
    return {
        **{"name": MARTY["name"], "email": MARTY["email"], "phone": "", "timezone": ""},
        **{"bookings": 1, "upcoming": 1, "first_booking_at": STAMP, "last_booking_at": STAMP},
        **{"note": None, "external_id": None},
        **given,
    }


def test_list_has_one_row_per_address(tenant: Tenant, ada: Any, clock: Any) -> None:
    book(tenant, ada, 9)
    cancelled = book(tenant, ada, 10, customer=ANN)
    act(tenant, cancelled, "cancel")
    clock.shift(60)
    renamed = {"name": "Martin", "email": "MARTY@Example.com", "timezone": "Europe/Berlin"}
    book(tenant, ada, 11, customers=[renamed, {**MARTY, "phone": PHONE}])

    answer = tenant.get("/customers")

    assert answer.json == {
        "total": 2,
        "per_page": 50,
        "current_page": 1,
        "last_page": 1,
        "first_page_url": f"{BASE}?limit=50&page=1",
        "last_page_url": f"{BASE}?limit=50&page=1",
        "next_page_url": None,
        "prev_page_url": None,
        "from": 1,
        "to": 2,
        "data": [
            line(bookings=2, upcoming=2, phone=PHONE, last_booking_at="2026-11-20T09:31:00+0000"),
            line(**{key: ANN[key] for key in ("name", "email", "phone")}, upcoming=0),
        ],
    }


def test_order_is_total(tenant: Tenant, ada: Any, clock: Any) -> None:
    for number, letter in enumerate("cab"):
        book(tenant, ada, 9 + number, customer={"name": letter, "email": f"{letter}@example.com"})
    clock.shift(1)
    book(tenant, ada, 13, customer={"name": "z", "email": "z@example.com"})

    pages = [tenant.get(f"/customers?limit=1&page={page}").data for page in range(1, 6)]

    assert [[one["name"] for one in page] for page in pages] == [["z"], ["a"], ["b"], ["c"], []]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("email:marty@example.com", ["Marty McFly"]),
        ("email:MARTY@EXAMPLE.COM", ["Marty McFly"]),
        ("email:*@example.com", ["Ann Lee", "Marty McFly"]),
        ("email:ann*", ["Ann Lee"]),
        ("email:ann", []),
        ("name:marty*", ["Marty McFly"]),
        ("name:the doc", ["Marty McFly"]),  # as he called himself before
        ("phone:*7946*", ["Ann Lee"]),
        ("name:ann*;email:marty*", []),
    ],
)
def test_search(tenant: Tenant, ada: Any, clock: Any, search: str, found: list[str]) -> None:
    book(tenant, ada, 9, customer={**MARTY, "name": "The Doc"})
    clock.shift(1)
    book(tenant, ada, 10)
    book(tenant, ada, 11, customer=ANN)

    response = tenant.client.get("/v2/customers", {"search": search}, headers=tenant.headers)
    answer = response.json()

    assert sorted(one["name"] for one in answer["data"]) == found
    assert answer["total"] == len(found)
    assert {one["name"]: one["bookings"] for one in answer["data"]}.get("Marty McFly", 2) == 2


def test_hidden_bookings_and_other_apps_do_not_count(
    make_tenant: Callable[..., Tenant], tenant: Tenant, ada: Any
) -> None:
    hidden = book(tenant, ada)
    act(tenant, hidden, "cancel")
    tenant.delete(f"/bookings/{hidden['id']}")
    other = make_tenant()
    book(other, other.make_resource())

    assert (tenant.get("/customers").data, len(other.get("/customers").data)) == ([], 1)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/customers?search=shoe:5", "search"),
        ("/customers?limit=0", "limit"),
        ("/customers/export", "email"),
        ("/customers/export?email=", "email"),
        ("/customers/export?email=marty", "email"),
        ("/customers/export?email=marty@example.com&zone=UTC", "zone"),
    ],
)
def test_wrong_query_parameters_are_refused(tenant: Tenant, path: str, where: str) -> None:
    answer = tenant.get(path)

    assert (answer.status, list(answer.error["errors"])) == (422, [where])


@pytest.mark.parametrize("body", [{}, {"email": ""}, {"email": "marty"}, {"email": None}, [], 5])
def test_wrong_addresses_erase_nothing(tenant: Tenant, ada: Any, body: Any) -> None:
    book(tenant, ada)
    before = dump()

    answer = tenant.post("/customers/erase", body)

    assert (answer.status, answer.error["code"]) == (422, "invalid")
    assert dump() == before


# --- The export -----------------------------------------------------------------------------------
def test_unknown_address_is_not_found(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> None:
    other = make_tenant()
    book(other, other.make_resource())
    error = {"error": "Customer not found.", "code": "not_found", "model": "Customer"}

    status, body = export(tenant)

    assert (status, body) == (404, {**error, "request_id": body["request_id"]})
    assert erase(tenant) == NOTHING
    assert export(other)[0] == 200


def test_export_contents(tenant: Tenant, ada: Any) -> None:
    """Of a booking that is shared only what is the person's own."""
    alone = book(tenant, ada, 9, customer=WHOLE_MARTY, meta={"invoice": "4711"})
    shared = book(tenant, ada, 10, customers=[ANN, {**MARTY, "email": "Marty@Example.com"}])
    book(tenant, ada, 11, customer=ANN)
    event = tenant.make_event(
        ada["calendars"][0]["id"],
        **{"start": "2026-11-24T09:00:00Z", "end": "2026-11-24T10:00:00Z"},
        participants=["Marty <marty@example.com>", "ann@example.com"],
    )

    status, body = export(tenant, "MARTY@example.com")

    unlike_get = {"note": None, "customer_action_links": {}}
    expected = {one["id"]: whole(tenant, one) | unlike_get for one in (alone, shared)}
    theirs = [one for one in expected[shared["id"]]["customers"] if one["name"] != ANN["name"]]
    expected[shared["id"]] |= {"customers": theirs}
    expected[shared["id"]]["attributes"] |= {"customer": theirs[0]}
    rows = Delivery.objects.filter(booking__in=expected).exclude(customer__name=ANN["name"])
    assert (status, body) == (
        200,
        {
            "data": {
                "email": "MARTY@example.com",
                "note": None,
                "bookings": [expected[one["id"]] for one in (alone, shared)],
                "events": [event | {"participants": ["Marty <marty@example.com>"]}],
                "unverified_bookings": [],
                "suppressions": [],
                "deliveries": [
                    tenant.get(f"/deliveries/{row.id}").data | {"content": row.content}
                    for row in rows.order_by("id")
                ],
            }
        },
    )
    assert len(body["data"]["deliveries"]) == 4
    assert ANN["phone"] not in str(body)
    assert ANN["email"] not in str(body)


def test_hidden_bookings_are_exported_and_erased(tenant: Tenant, ada: Any) -> None:
    hidden = book(tenant, ada)
    act(tenant, hidden, "cancel")
    tenant.delete(f"/bookings/{hidden['id']}")

    assert [one["id"] for one in export(tenant)[1]["data"]["bookings"]] == [hidden["id"]]
    assert erase(tenant)["bookings"] == 1
    assert export(tenant)[0] == 404


def test_an_export_is_read_in_slices(
    tenant: Tenant, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "SLICE", 2)
    made = [book(tenant, ada, hour)["id"] for hour in range(9, 14)]

    with Queries(connection) as queries:
        found = [one["id"] for one in export(tenant)[1]["data"]["bookings"]]
    wholes = [query for query in queries if '"bookings_booking"."graph"' in query["sql"]]

    assert (found, len(wholes)) == (sorted(made), 3)


# --- Erasure --------------------------------------------------------------------------------------
def test_erasure_leaves_no_personal_data_in_any_table(tenant: Tenant, ada: Any) -> None:
    """Whatever they wrote, wherever it was kept; not even in answers kept for a second request."""
    reminder = {
        "type": "email",
        "settings": {"recipient": "owner", "subject": "Tomorrow: the flux capacitor"},
        "when": {"type": "before", "unit": "mins", "time": 60},
    }
    call = {
        "type": "webhook",
        "settings": {"url": "https://example.com/door?for=marty%40example.com"},
        "when": {"type": "before", "unit": "mins", "time": 30},
    }
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    answer = tenant.post(
        "/bookings?include=attributes,meta",
        {
            **NINE,
            "resource_id": ada["id"],
            "what": "Check-up of Marty McFly",
            "where": "9303 Lyon Drive",
            "description": "My back hurts. marty",
            "participants": ["marty@example.com", "lorraine@example.com"],
            "customer": WHOLE_MARTY,
            "meta": {"ward": "secretive"},
            "event_notifications": [reminder, call],
        },
        **{"Idempotency-Key": "first"},
    )
    booking = answer.data
    act(tenant, booking, "cancel", {"cancel": {"message": "I am ill. Marty"}})
    tenant.make_event(
        ada["calendars"][0]["id"],
        **{"start": "2026-11-24T09:00:00Z", "end": "2026-11-24T10:00:00Z"},
        description="Ask Marty@Example.com",
        participants=["Marty <marty@example.com>", "ann@example.com"],
    )
    book_in_public(tenant, ada)
    staff = name_in_the_office(tenant)
    words = (MARTY["email"], MARTY["name"], PHONE, "sip:marty", "elevenish", "secretive", "back")
    words += ("Lyon", "lorraine", "I am ill", "marty%40", "marty", "flux", "Hoverboard", "garage")
    assert dump().count("<encrypted>") == 1  # the webhook's secret
    assert {row.partition(":")[0] for row in rows_containing(*words)} == {
        "apps_config_idempotencyrecord",
        "apps_config_savedfilter",
        "availability_event",
        "bookings_appcustomer",
        "bookings_booking",
        "bookings_bookingnotification",
        "bookings_customer",
        "bookings_statechange",
        "notifications_changecalls",
        "notifications_delivery",
    }

    counts = erase(tenant, "Marty@EXAMPLE.com")

    assert counts == NOTHING | {"bookings": 2, "log_entries": 1, "deliveries": 11}
    assert rows_containing(*words) == []
    assert [row.name for row in staff.saved_filters.all()] == ["Today"]
    assert erase(tenant) == NOTHING


@pytest.mark.parametrize("spelling", ["u@müller.de", "U@MÜLLER.de", "u@XN--mller-kva.de"])
def test_person_is_found_by_every_spelling_of_the_domain(
    tenant: Tenant, ada: Any, spelling: str
) -> None:
    typed = ["u@müller.de", "U@xn--mller-kva.de"]
    for day, email in zip(("2026-11-23", "2026-11-24"), typed, strict=True):
        times = span("09:00", "10:00", day)
        tenant.book(resource_id=ada["id"], customer={"name": "U", "email": email}, **times)

    exported = tenant.get(f"/customers/export?email={spelling}").data["bookings"]
    by_filter = tenant.get(f"/bookings?customer_email={spelling}").data
    by_search = tenant.get(f"/bookings?search=customer.email:{spelling}").data
    people = tenant.get(f"/customers?search=email:{spelling}").data
    by_domain = tenant.get(f"/customers?search=email:*{spelling.lower()[1:]}").data
    counts = erase(tenant, spelling)

    assert [len(found) for found in (exported, by_filter, by_search)] == [2, 2, 2]
    assert [(person["email"], person["bookings"]) for person in people] == [(typed[1], 2)]
    assert by_domain == people
    assert (counts["bookings"], rows_containing("müller", "mller")) == (2, [])


def test_lookalike_addresses_are_two_people(tenant: Tenant, ada: Any) -> None:
    """PostgreSQL: UPPER('ı') = 'I'."""
    emails = ("victim@gmail.com", "victim@gmaıl.com")
    for day, email in zip(("2026-11-23", "2026-11-24"), emails, strict=True):
        times = span("09:00", "10:00", day)
        tenant.book(resource_id=ada["id"], customer={"name": "V", "email": email}, **times)

    exports = [tenant.get(f"/customers/export?email={email}").data for email in emails]
    filtered = [tenant.get(f"/bookings?customer_email={email}").data for email in emails]
    people = [tenant.get(f"/customers?search=email:{email}").data for email in emails]
    erase(tenant, emails[1])

    assert [len(found["bookings"]) for found in exports] == [1, 1]
    assert [len(found) for found in filtered] == [1, 1]
    assert [[person["email"] for person in rows] for rows in people] == [[each] for each in emails]
    assert [row["email"] for row in tenant.get("/customers").data] == [emails[0]]


def test_erasure_keeps_data_of_a_lookalike_address(tenant: Tenant, ada: Any) -> None:
    """`ı` is an `i` for PostgreSQL's UPPER and for Python's re.IGNORECASE."""
    victim, stranger = "victim@gmail.com", "victim@gmaıl.com"
    project = tenant.make_project(ada["id"], settings={"verify_email": True})["id"]
    waiting = {"project_id": project, "customer": {"name": "V", "email": victim}}
    held = tenant.widget().post("/bookings", {**waiting, **span("15:00", "16:00")})
    texts = {"what": f"Call {victim}", "participants": [victim], "meta": {"about": victim}}
    times = span("09:00", "10:00")
    named = tenant.book(resource_id=ada["id"], customer=MARTY, **texts, **times).data["id"]
    tenant.put(f"/bookings/{named}/cancel", {"cancel": {"message": f"Ask {victim}"}})
    tenant.book(
        resource_id=ada["id"],
        customer={"name": "S", "email": stranger},
        **span("11:00", "12:00"),
    )
    before = tenant.get(f"/bookings/{named}?include=logs").data

    exported = tenant.get(f"/customers/export?email={stranger}").data
    counts = erase(tenant, stranger)

    assert (held.status, exported["events"], exported["unverified_bookings"]) == (202, [], [])
    assert (counts["bookings"], counts["unverified_bookings"]) == (1, 0)
    assert tenant.get(f"/bookings/{named}?include=logs").data == before
    assert UnverifiedBooking.objects.get().email == victim


def test_event_of_ended_seats_is_redacted(tenant: Tenant, ada: Any) -> None:
    """Two ended seats share it: the other customer's name stays."""
    group = make_group(tenant, ada, max_seats=3, what="Course for Marty McFly, Doc and Ann")
    seats = [
        seat_in(tenant, group, customer)
        for customer in (MARTY, {"name": "Doc", "email": "doc@example.com"})
    ]
    for seat in seats:
        tenant.put(f"/bookings/{seat['id']}/cancel_by_customer", {})
    tenant.post(f"/bookings/{group['id']}/reschedule", span("14:00", "15:00"))
    tenant.put(f"/bookings/{group['id']}", {"what": "Course"})

    erase(tenant, MARTY["email"])

    shown = [tenant.get(f"/bookings/{seat['id']}").data["event"]["what"] for seat in seats]
    assert shown == ["Course for , Doc and Ann"] * 2


def book_in_public(tenant: Tenant, ada: Any) -> None:
    """A booking whose title a stranger typed."""
    project = tenant.make_project(ada["id"], event_notifications=[])
    texts = {"what": "Hoverboard", "where": "My garage", "description": "In my garage"}
    body = {**span("14:00", "15:00"), "project_id": project["id"], "customer": MARTY, **texts}
    made = tenant.widget().post("/bookings", body)
    assert made.status == 201, made.json
    owners = Delivery.objects.filter(booking=made.data["id"], recipient="owner", type="email")
    assert [row.content["what"] for row in owners] == ["Hoverboard"]


def name_in_the_office(tenant: Tenant) -> Account:
    """What staff noted: filters, and an address that gets e-mails again."""
    staff = member_of(tenant, "editor")
    queries = {
        "By address": "q=marty%40example.com",
        "By name": "tab=upcoming&q=Marty+McFly",
        "Marty McFly": "state=confirmed",
        "Today": "day=2026-11-20",
    }
    for name, query in queries.items():
        SavedFilter.objects.create(account=staff, app=tenant.app, name=name, query=query)
    suppress(tenant.app, MARTY["email"], "bounced", now=timezone.now())
    row = Suppression.objects.get()
    page = reverse("admin:notifications_suppression_delete", args=[row.pk])
    assert logged_in(staff).post(page, {"post": "yes"}).status_code == 302
    assert not Suppression.objects.exists()
    return staff


def test_erasure_keeps_times_and_states(tenant: Tenant, ada: Any, clock: Any) -> None:
    booking = book(tenant, ada, customer=WHOLE_MARTY, meta={"ward": 5}, description="My back")
    act(tenant, booking, "cancel", {"cancel": {"message": "Ill"}})
    before = whole(tenant, booking)
    clock.shift(60)

    erase(tenant)

    now = "2026-11-20T09:31:00+0000"
    customer = before["customers"][0] | EMPTY
    expected = before | {"meta": {}, "customers": [customer], "updated_at": now}
    expected["attributes"] |= {"customer": customer}
    expected["attributes"]["event_info"] |= {"description": ""}
    expected["event"] |= {"description": "", "updated_at": now}
    expected["logs"][1] |= {"message": ""}
    assert whole(tenant, booking) == expected
    assert tenant.get("/customers").data == []


def test_erasure_restores_texts_of_the_project(tenant: Tenant, ada: Any) -> None:
    project = tenant.make_project(
        ada["id"], booking={"what": "Check-up", "where": "Harbour", "description": "Bring a card."}
    )
    answer = tenant.book(
        **span("09:00", "10:00"),
        **{"project_id": project["id"], "where": "At home", "description": "It hurts"},
    )

    erase(tenant)

    info = whole(tenant, answer.data)["attributes"]["event_info"]
    assert [info[name] for name in ("what", "where", "description")] == [
        "Meeting",
        "Harbour",
        "Bring a card.",
    ]


def test_erasure_replaces_a_public_title_by_the_project_name(tenant: Tenant, ada: Any) -> None:
    reminder = {
        "type": "email",
        "settings": {"recipient": "owner", "subject": "Tomorrow"},
        "when": {"type": "before", "unit": "mins", "time": 60},
    }
    project = tenant.make_project(ada["id"], name="Repairs", event_notifications=[reminder])
    body = {**NINE, "project_id": project["id"], "what": "Hoverboard", "customer": MARTY}
    booking = tenant.widget().post("/bookings", body).data

    erase(tenant)

    after = whole(tenant, booking)
    rows = Delivery.objects.filter(booking=booking["id"], recipient="owner").order_by("id")
    assert after["attributes"]["event_info"]["what"] == "Repairs"
    assert [one["settings"]["subject"] for one in after["event_notifications"]] == ["Tomorrow"]
    assert [(row.kind, row.content.get("what"), row.content.get("subject")) for row in rows] == [
        ("confirmed", None, None),
        ("reminder", None, "Tomorrow"),
    ]
    assert [row.state for row in rows] == ["scheduled", "scheduled"]


def test_erasure_keeps_saved_filters_of_others(
    make_tenant: Callable[..., Tenant], tenant: Tenant, ada: Any
) -> None:
    book(tenant, ada)
    other = make_tenant()
    for one, query in ((tenant, "q=xmarty%40example.com"), (other, "q=marty%40example.com")):
        staff = member_of(one, "editor")
        SavedFilter.objects.create(account=staff, app=one.app, name="Mine", query=query)

    erase(tenant)

    assert SavedFilter.objects.count() == 2


def test_erasure_keeps_other_customers_of_a_shared_booking(tenant: Tenant, ada: Any) -> None:
    shared = book(
        tenant,
        ada,
        customers=[WHOLE_MARTY, ANN],
        what="Ann Lee meets Marty McFly",
        where="Harbour",
        description="Call Ann",
        participants=["marty@example.com", "bob@example.com"],
        meta={"of": "Ann Lee", "by": "Marty McFly"},
    )
    act(tenant, shared, "cancel", {"cancel": {"message": "Ann is ill, says Marty McFly."}})
    before = whole(tenant, shared)

    counts = erase(tenant)

    after = whole(tenant, shared)
    assert counts["bookings"] == 1
    assert after["customers"] == [before["customers"][0] | EMPTY, before["customers"][1]]
    assert after["meta"] == {"of": "Ann Lee", "by": ""}
    assert after["attributes"]["event_info"] == before["attributes"]["event_info"] | {
        "what": "Ann Lee meets",
        "participants": ["bob@example.com"],
    }
    assert after["logs"][1]["message"] == "Ann is ill, says ."
    assert rows_containing(MARTY["email"], PHONE, "McFly") == []


def test_erasure_keeps_data_of_other_apps(
    make_tenant: Callable[..., Tenant], tenant: Tenant, ada: Any
) -> None:
    other = make_tenant()
    theirs = book(other, other.make_resource())
    before = whole(other, theirs)
    book(tenant, ada)

    assert erase(tenant)["bookings"] == 1
    assert whole(other, theirs) == before


def test_erasure_keeps_addresses_with_the_same_ending(tenant: Tenant, ada: Any) -> None:
    joe = {"name": "Joe", "email": "a.marty@example.com"}
    booking = book(tenant, ada, customer=joe, participants=["xmarty@example.com"])
    before = rows_but_events()

    assert erase(tenant) == NOTHING
    assert export(tenant)[0] == 404
    assert rows_but_events() == before
    assert whole(tenant, booking)["customers"][0]["email"] == "a.marty@example.com"


def test_erasure_removes_a_participant(tenant: Tenant, ada: Any) -> None:
    booking = book(tenant, ada, customer=ANN, participants=["marty@example.com", "b@example.com"])
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    act(tenant, booking, "cancel")

    counts = erase(tenant)

    after = whole(tenant, booking)
    assert counts == NOTHING | {"bookings": 1, "deliveries": 1}
    assert after["attributes"]["event_info"]["participants"] == ["b@example.com"]
    assert after["customers"][0]["name"] == "Ann Lee"
    assert (rows_containing(MARTY["email"]), erase(tenant)) == ([], NOTHING)


def test_erasure_of_a_seat_keeps_the_event_of_the_group(tenant: Tenant, ada: Any) -> None:
    owner = book(tenant, ada, customer=ANN, description="Yoga, with Marty McFly")
    seat = book(tenant, ada, 10, graph="instant")
    row = Booking.objects.get(id=seat["id"])
    row.event_id, row.owner_booking_id = Booking.objects.get(id=owner["id"]).event_id, owner["id"]
    row.save()

    assert erase(tenant)["bookings"] == 1
    assert whole(tenant, owner)["event"]["description"] == "Yoga, with Marty McFly"
    assert whole(tenant, seat)["customers"][0]["name"] == ""


def test_erasure_removes_the_person_as_actor(tenant: Tenant, ada: Any) -> None:
    own, others = book(tenant, ada), book(tenant, ada, 10, customer=ANN)
    member = tenant.member(MARTY["email"], "editor")
    for booking in (own, others):
        member.put(f"/bookings/{booking['id']}/cancel")

    counts = erase(tenant)

    actors = [StateChange.objects.filter(booking=one["id"]).last().actor for one in (own, others)]
    assert (counts["log_entries"], actors) == (1, ["", MARTY["email"]])


def test_stored_response_is_replayed_without_personal_data(tenant: Tenant, ada: Any) -> None:
    """Or the second request would make a second booking, with the data that was erased."""
    body = {**NINE, "resource_id": ada["id"], "what": "Meeting", "customer": MARTY}
    headers = {"Idempotency-Key": "again"}
    first = tenant.post("/bookings?include=customers", body, **headers)
    erase(tenant)

    again = tenant.post("/bookings?include=customers", body, **headers)

    outline = {key: value for key, value in first.data.items() if key != "customers"}
    assert (again.status, again.data) == (201, outline)
    assert (Booking.objects.count(), IdempotencyRecord.objects.count()) == (1, 1)


def test_stored_responses_are_emptied_if_erasure_is_interrupted(
    tenant: Tenant, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {**NINE, "resource_id": ada["id"], "what": "Meeting", "customer": MARTY}
    tenant.post("/bookings?include=customers", body, **{"Idempotency-Key": "kept"})

    def stop(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(erasing, "erase_bookings", stop)
    with pytest.raises(KeyboardInterrupt):
        erase(tenant)

    assert "idempotencyrecord" not in str(rows_containing("marty"))


def test_erasing_with_an_idempotency_key(tenant: Tenant, ada: Any) -> None:
    book(tenant, ada)
    headers = {"Idempotency-Key": "erase"}

    first, again = erase(tenant, **headers), erase(tenant, **headers)

    assert first == again == NOTHING | {"bookings": 1, "deliveries": 1}


def test_erased_bookings_can_be_changed(tenant: Tenant, ada: Any) -> None:
    """The time stays taken, and whoever has the id may still move or cancel it."""
    booking = book(tenant, ada)
    erase(tenant)

    moved = tenant.post(f"/bookings/{booking['id']}/reschedule", span("14:00", "15:00"))
    refused = tenant.book(resource_id=ada["id"], **span("14:00", "15:00"))
    cancelled = act(tenant, booking, "cancel")

    assert (moved.status, refused.status, cancelled.data["state"]) == (200, 409, "cancelled")


def test_query_count_of_erasure_is_constant(
    make_tenant: Callable[..., Tenant],
) -> None:
    counts = {}
    for bookings in (1, 12):
        tenant = make_tenant()
        ada = tenant.make_resource(email=f"{uuid.uuid4()}@example.com")
        tenant.post("/webhooks", {"url": "https://example.com/hook"})
        for hour in range(bookings):
            book(tenant, ada, hour, customer=WHOLE_MARTY, description="x")
        with Queries(connection) as queries:
            assert erase(tenant)["bookings"] == bookings
        counts[bookings] = len(queries)

    assert counts == dict.fromkeys((1, 12), counts[1])


# --- The history is append-only -------------------------------------------------------------------
@pytest.mark.parametrize(
    "values",
    [
        {"from_state": "tentative"},
        {"to_state": "cancelled"},
        {"action": "cancel"},
        {"source": "timer"},
        {"created_at": at("2020-01-01 00:00")},
        {"message": "He said yes, on the telephone"},
        {"actor": "somebody.else.entirely@example.com"},
    ],
)
def test_database_refuses_updates_of_the_log(
    tenant: Tenant, ada: Any, values: dict[str, Any]
) -> None:
    booking = book(tenant, ada)
    before = whole(tenant, booking)

    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        StateChange.objects.update(**values)

    assert whole(tenant, booking) == before


# --- Names and addresses in texts -----------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "text", "left"),
    [
        (["Ann Lee"], "Check-up of Ann Lee", "Check-up of"),
        (["Ann Lee"], "ann lee, then Bob", ", then Bob"),
        (["Ann"], "Annual plan for Ann.", "Annual plan for ."),
        (["ann@a.example"], "To ann@a.example.", "To ."),
        (["ann@a.example"], "joann@a.example", "joann@a.example"),
        (["ann@a.example"], "jo.ann@a.example", "jo.ann@a.example"),
        (["ann@a.example"], "ann@a.example.org", "ann@a.example.org"),
        (["ann@a.example"], "ANN@A.Example", ""),
        (["ann@gmaıl.com"], "To ann@gmail.com.", "To ann@gmail.com."),
        (["ann@gmaıl.com"], "?to=ann%40gmail.com", "?to=ann%40gmail.com"),
        (["ann@gmail.com"], "To ann@gmaıl.com.", "To ann@gmaıl.com."),
        (["ann@kiſte.example"], "ann@kiste.example", "ann@kiste.example"),
        (["ann@a.example"], "https://b.example/?to=ann%40a.example&x=1", "https://b.example/?to=&x=1"),
        (["Ann Lee"], "https://b.example/?n=Ann+Lee", "https://b.example/?n="),
        (["+1 (555) 0100"], "Call +1 (555) 0100 now", "Call now"),
        (["王伟"], "和王伟见面", "和见面"),
        (["A", "", " "], "A room", "A room"),
        ([], "Anything", "Anything"),
        (["Ann"], {"Ann": ["Ann", 5, None, {"a": "of Ann"}]}, {"": ["", 5, None, {"a": "of"}]}),
    ],
)  # fmt: skip
def test_find_and_cut_out_personal_words(words: list[str], text: Any, left: Any) -> None:
    assert Redactor(words).cut(text) == left
    assert Redactor(words).are_in(text) == (text != left)


def test_every_text_column_is_classified() -> None:
    """A new column that may hold people's words needs a thought: is it emptied?"""
    known = {
        Booking: {
            *("graph", "state", "meta", "note", "policies", "outcome", "untrusted_texts"),
            *("requires", "visit", "places", "place", "external_id"),  # of the organizer
        },
        Customer: {
            *("name", "email", "address", "limit_key", "phone", "voip", "timezone", "meta"),
            *("response", "response_source", "external_id"),
        },
        CustomerNote: {"address", "note"},
        StateChange: {"from_state", "to_state", "action", "actor", "source", "message"},
        apps.get_model("availability.Event"): {
            *("what", "where", "description", "participants", "rsvp", "provider_id"),
            *("requirement", "step"),  # names of the project
            *("conference_provider", "conference_url"),  # made without data of customers
        },
        apps.get_model("notifications.Delivery"): {
            *("type", "kind", "recipient", "content", "body", "endpoint", "state", "reason"),
            *("request_id", "trace_parent"),
        },
        apps.get_model("notifications.Attempt"): {"outcome", "error", "excerpt"},
        apps.get_model("external_calendars.WrittenEvent"): {
            *("uid", "href", "etag", "state", "reason", "invitations", "answers"),
        },
        apps.get_model("external_calendars.ExternalObject"): {
            *("href", "uid", "etag", "text", "problem"),
        },
    }
    texts = ("CharField", "TextField", "JSONField", "EmailField", "BinaryField")

    found = {
        model: {
            field.name
            for field in model._meta.concrete_fields
            if field.get_internal_type() in texts
        }
        for model in known
    }

    assert found == known
