"""PUT /bookings/:id: customers, words, meta, and what may not be changed there."""

from typing import Any

import pytest

from availability.models import Event
from notifications.models import CALL_BODY, Delivery, Webhook
from notifications.planning import KINDS
from tests.bookings.booking_drafts import MARTY, MONDAY, NINE, act, answered, span, whole
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.world import Caller, Tenant, at

pytestmark = pytest.mark.usefixtures("clock")

LATER = "2026-11-20T09:31:00+0000"
DOC = {"name": "Doc Brown", "email": "doc@example.com"}
NOT_HERE = ["Can't be changed here."]


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


@pytest.fixture
def booking(tenant: Tenant, ada: Any) -> Any:
    people = [{**MARTY, "phone": "1", "color": "red"}, DOC]
    return tenant.post(
        "/bookings", {"what": "Meeting", "resource_id": ada["id"], "customers": people, **NINE}
    ).data


def put(caller: Caller, booking: Any, body: Any) -> Any:
    return caller.put(f"/bookings/{booking['id']}", body)


def logged(tenant: Tenant, booking: Any) -> list[tuple[str, str, str, str]]:
    """Of the history all but how it began."""
    return [
        (log["from_state"], log["action"], log["to_state"], log["message"])
        for log in whole(tenant, booking)["logs"][1:]
    ]


def updates(booking: Any) -> list[tuple[str, str, str]]:
    """Type, recipient and address of the deliveries that an update has caused."""
    rows = Delivery.objects.filter(booking=booking["id"], kind="updated").order_by("number")
    return [(row.type, row.recipient, row.customer.email if row.customer else "") for row in rows]


BOTH = [
    ("email", "customer", "marty@example.com"),
    ("email", "customer", "doc@example.com"),
    ("email", "owner", ""),
]


# --- What can be changed --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "changed", "mails"),
    [
        ({"what": "Cleaning"}, {"what": "Cleaning"}, BOTH),
        ({"where": "Room 2"}, {"where": "Room 2"}, BOTH),
        ({"description": "Bring\nit."}, {"description": "Bring\nit."}, []),
        (
            {"what": "A", "where": "B", "description": "C"},
            {"what": "A", "where": "B", "description": "C"},
            BOTH,
        ),
    ],
)
def test_texts_of_the_event(
    tenant: Tenant, booking: Any, clock: Any, body: Any, changed: Any, mails: Any
) -> None:
    before = whole(tenant, booking)
    clock.shift(60)

    answer = put(tenant, booking, body)

    assert (answer.status, answer.json) == (
        200,
        {"data": answered(booking, "confirmed", updated_at=LATER)},
    )
    after = whole(tenant, booking)
    info = before["attributes"]["event_info"]
    assert after == {
        **before,
        "updated_at": LATER,
        "event": {**before["event"], **changed, "updated_at": LATER},
        "attributes": {**before["attributes"], "event_info": {**info, **changed}},
        "logs": after["logs"],
    }
    message = f"Changed: {', '.join(sorted(body))}."
    assert logged(tenant, booking) == [("confirmed", "update", "confirmed", message)]
    assert updates(booking) == mails


@pytest.mark.parametrize(
    ("body", "first", "second", "names", "mails"),
    [
        ({"customer": {"name": "Marty"}}, {"name": "Marty"}, {}, "name", []),
        (
            {"customer": {"phone": None, "voip": "v", "timezone": "Europe/Berlin"}},
            {"phone": "", "voip": "v", "timezone": "Europe/Berlin"},
            {},
            "phone, customer timezone, customer voip",
            [],
        ),
        (
            {"customer": {"meta": {"a": 1}, "color": None, "size": "L"}},
            {"meta": {"a": 1, "size": "L"}},
            {},
            "meta",
            [],
        ),
        (
            {"customers": [{}, {"email": "emmett@example.com"}]},
            {},
            {"email": "emmett@example.com"},
            "email",
            # Everybody's links have ended: everybody gets new ones.
            [
                ("email", "customer", "marty@example.com"),
                ("email", "customer", "emmett@example.com"),
                ("email", "owner", ""),
            ],
        ),
        (
            {"customer": {"email": "MARTY@example.com"}},
            {"email": "MARTY@example.com"},
            {},
            "email",
            [],
        ),
    ],
)
def test_updates_of_customers(
    tenant: Tenant,
    booking: Any,
    clock: Any,
    body: Any,
    first: Any,
    second: Any,
    names: str,
    mails: Any,
) -> None:
    marty, doc = whole(tenant, booking)["customers"]
    clock.shift(60)

    answer = put(tenant, booking, body)

    assert answer.status == 200
    assert whole(tenant, booking)["customers"] == [{**marty, **first}, {**doc, **second}]
    message = f"Changed: customer {names}."
    assert logged(tenant, booking) == [("confirmed", "update", "confirmed", message)]
    assert updates(booking) == mails


def test_a_customer_is_found_by_id(tenant: Tenant, booking: Any) -> None:
    marty, doc = whole(tenant, booking)["customers"]

    answer = put(tenant, booking, {"customers": [{"id": doc["id"], "name": "Emmett"}]})

    assert answer.status == 200
    assert whole(tenant, booking)["customers"] == [marty, {**doc, "name": "Emmett"}]


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        (
            {"customers": [{}, {}, {"name": "A"}]},
            {"customers.2": "The booking has no such customer."},
        ),
        (
            {"customers": [{"id": "0193a4c2-0000-7000-8000-000000000031"}]},
            {"customers.0.id": "The booking has no such customer."},
        ),
        ({"customer": {"name": None}}, {"customer.name": "This field may not be null."}),
        ({"customer": {"email": "x"}}, {"customer.email": "Must be an e-mail address."}),
        (
            {"customers": [{"timezone": "Mars"}]},
            {"customers.0.timezone": "Must be a time zone such as Europe/Berlin."},
        ),
        (
            {"customer": {}, "customers": []},
            {"customers": "Send either `customer` or `customers`."},
        ),
        ({"what": ""}, {"what": "This field may not be blank."}),
        ({"what": None}, {"what": "This field may not be null."}),
        (
            {"where": "a\nb"},
            {"where": "May not contain control characters or line breaks."},
        ),
    ],
)
def test_wrong_values_change_nothing(
    tenant: Tenant, booking: Any, body: Any, errors: dict[str, str]
) -> None:
    before = whole(tenant, booking)

    answer = put(tenant, booking, {"meta": {"a": 1}, **body})

    expected = {path: [text] for path, text in errors.items()}
    assert (answer.status, answer.json["errors"]) == (422, expected)
    assert whole(tenant, booking) == before


def test_repeated_customer_is_refused(tenant: Tenant, booking: Any) -> None:
    marty, _ = whole(tenant, booking)["customers"]

    answer = put(tenant, booking, {"customers": [{"name": "A"}, {"id": marty["id"], "name": "B"}]})

    assert (answer.status, answer.json["errors"]) == (
        422,
        {"customers.1": ["This customer appears twice."]},
    )
    assert whole(tenant, booking)["customers"][0] == marty


# --- What can't -----------------------------------------------------------------------------------
def test_response_of_get_can_be_sent_back(tenant: Tenant, booking: Any) -> None:
    includes = "logs,series,bulked_bookings,seats,resource.calendars,provider_event"
    shown = tenant.get(f"/bookings/{booking['id']}?include={includes}").data

    answer = put(tenant, booking, {**shown, **booking, "meta": {"invoice": "4711"}})

    assert answer.status == 200
    assert whole(tenant, booking)["meta"] == {"invoice": "4711"}
    assert logged(tenant, booking) == [("confirmed", "update", "confirmed", "Changed: meta.")]
    assert updates(booking) == []


@pytest.mark.parametrize(
    "others",
    [
        {"state": "cancelled"},
        {"start": f"{MONDAY}T10:00:00Z"},
        {"event": {"what": "Cleaning"}},
        {"resource_id": "0193a4c2-0000-7000-8000-000000000031", "graph": "confirm_decline"},
        {"series": {}},
        {"logs": []},
        {"notify_owner_by_email": {"enabled": False}},
    ],
)
def test_other_keys_are_refused(tenant: Tenant, booking: Any, others: Any) -> None:
    before = whole(tenant, booking)

    answer = put(tenant, booking, {"what": "Cleaning", **others})

    assert (answer.status, answer.json["code"], answer.json["errors"]) == (
        *(422, "invalid"),
        dict.fromkeys(others, NOT_HERE),
    )
    assert whole(tenant, booking) == before


def test_unknown_keys_are_refused(tenant: Tenant, booking: Any) -> None:
    before = whole(tenant, booking)

    answer = put(
        tenant, booking, {"what": "Cleaning", "colour": "red", "resource.calendars": [], "logs": []}
    )

    unknown = ["Is not a known key."]
    assert (answer.status, answer.json["errors"]) == (
        422,
        {"colour": unknown, "logs": NOT_HERE, "resource.calendars": unknown},
    )
    assert whole(tenant, booking) == before


@pytest.mark.parametrize("body", [{"customer": []}, {"customers": [[]]}, {"customers": [{}]}])
def test_empty_customer_changes_nothing(tenant: Tenant, booking: Any, body: Any) -> None:
    before = whole(tenant, booking)

    assert put(tenant, booking, body).status == 200
    assert whole(tenant, booking) == before


def test_update_without_changes_writes_no_log(tenant: Tenant, booking: Any) -> None:
    before = whole(tenant, booking)

    body = {"what": "Meeting", "where": None, "customers": before["customers"], "outcome": None}
    answer = put(tenant, booking, body)

    assert answer.status == 200
    assert whole(tenant, booking) == before
    assert updates(booking) == []


def test_permissions_of_each_role(tenant: Tenant, booking: Any, ada: Any) -> None:
    bob = tenant.make_resource("Bob", email="bob@example.com")
    widget, other = tenant.widget(), Caller(bob["api_token"], user="bob@example.com")
    own = Caller(ada["api_token"], user="ada@example.com")

    answers = [put(caller, booking, {"what": "A"}).status for caller in (widget, other, own)]

    assert answers == [403, 404, 200]


# --- Groups, and what is over ---------------------------------------------------------------------
def test_texts_of_a_group_apply_to_its_seats(tenant: Tenant, ada: Any) -> None:
    group = make_group(tenant, ada)
    seats = [seat_in(tenant, group, customer) for customer in (ANN, BOB)]
    gone = seat_in(tenant, make_group(tenant, ada, **span("11:00", "12:00")), ANN)

    refused = put(tenant, seats[0], {"where": "Hall 2", "customer": {"name": "Anna"}})
    answer = put(tenant, group, {"where": "Hall 2"})

    text = ["Belongs to the group: change the group's booking."]
    assert (refused.status, refused.json["errors"]) == (422, {"where": text})
    assert answer.status == 200
    assert [whole(tenant, seat)["event"]["where"] for seat in (group, *seats)] == ["Hall 2"] * 3
    assert [updates(seat) for seat in (group, *seats, gone)] == [
        [("email", "owner", "")],
        [("email", "customer", "ann@example.com")],
        [("email", "customer", "bob@example.com")],
        [],
    ]
    assert [len(logged(tenant, seat)) for seat in (group, *seats, gone)] == [1, 1, 1, 0]


def test_texts_apply_to_companion_events(tenant: Tenant, ada: Any) -> None:
    bob = tenant.make_resource("Bob")
    project = tenant.make_project(ada["id"], bob["id"], availability={"mode": "mutual"})["id"]
    booking = tenant.book(project_id=project, **NINE).data

    put(tenant, booking, {"what": "Cleaning", "where": "Room 2"})

    assert list(Event.objects.values_list("what", "where")) == [("Cleaning", "Room 2")] * 2


@pytest.mark.parametrize("end", ["cancel", "complete", "over"])
def test_update_of_an_ended_booking_sends_no_mail(
    tenant: Tenant, booking: Any, clock: Any, end: str
) -> None:
    if end == "over":
        clock.move_to(at(f"{MONDAY} 10:00"))
    else:
        act(tenant, booking, end)

    answer = put(tenant, booking, {"customer": {"email": "new@example.com"}, "where": "Room 2"})

    assert answer.status == 200
    assert len(logged(tenant, booking)) == (1 if end == "over" else 2)
    assert updates(booking) == []


# --- Webhooks -------------------------------------------------------------------------------------
@pytest.mark.usefixtures("expanded_calls")
def test_only_subscribed_webhooks_get_updates(tenant: Tenant, booking: Any) -> None:
    urls = {
        "https://example.com/any": {},
        "https://example.com/updates": {"kinds": ["booking.updated"]},
        "https://example.com/confirmed": {"kinds": ["booking.confirmed"]},
        "https://example.com/of-cancelled": {
            "kinds": ["booking.updated"],
            "states": ["cancelled"],
        },
        "https://example.com/both": {"kinds": ["booking.updated", "booking.cancelled"]},
    }
    made = [tenant.post("/webhooks", {"url": url, **given}).data for url, given in urls.items()]

    put(tenant, booking, {"description": "Words"})
    act(tenant, booking, "cancel")

    calls = Delivery.objects.filter(type="webhook").order_by("id")
    paths = [(call.kind, call.webhook.url.rpartition("/")[2]) for call in calls]
    assert [webhook["kinds"] for webhook in made] == [
        given.get("kinds", []) for given in urls.values()
    ]
    assert paths == [
        *(("updated", "updates"), ("updated", "both")),
        *(("cancelled", "any"), ("cancelled", "both")),
    ]
    assert '"description":"Words"' in calls.values_list(CALL_BODY, flat=True)[0]


def test_unknown_kinds_are_refused(tenant: Tenant) -> None:
    body = {"url": "https://example.com/a"}

    refused = tenant.post("/webhooks", {**body, "kinds": ["booking.gone"]})
    made = tenant.post("/webhooks", {**body, "kinds": ["booking.updated"] * 2}).data
    changed = tenant.put(f"/webhooks/{made['id']}", {"kinds": list(KINDS)})
    cleared = tenant.put(f"/webhooks/{made['id']}", {"kinds": []})

    assert (refused.status, list(refused.json["errors"])) == (422, ["kinds.0"])
    assert made["kinds"] == ["booking.updated"]
    assert (changed.data["kinds"], cleared.data["kinds"]) == (list(KINDS), [])
    assert Webhook.objects.get().kinds == []
