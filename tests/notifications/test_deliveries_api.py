"""/deliveries: the log, its filters, sending again; and what each change of a booking plans."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from notifications.models import CALL_BODY, Attempt, Delivery, Endpoint, Webhook
from notifications.outbox.serializers import EXCERPT
from notifications.webhooks.services import EXPIRES_AFTER, MAX_WEBHOOKS, disable_webhook
from tests.bookings.booking_drafts import MARTY, NINE, act, span
from tests.corpus import UNKNOWN_ID
from tests.test_queries import queries_of
from tests.world import NOW, STAMP, Tenant, call_body

URL = "https://example.com/hook"
ANN = {"name": "Ann", "email": "ann@example.com"}

pytestmark = [pytest.mark.usefixtures("clock", "expanded_calls"), pytest.mark.both_databases]


def stamp(time: str, day: str = "2026-11-23") -> str:
    return f"{day}T{time}:00+0000"


def reminder(time: int, unit: str = "hours", when: str = "before", **settings: Any) -> Any:
    """An event notification: a mail to the customer, unless the settings say otherwise."""
    kind = "webhook" if "url" in settings else "email"
    return {
        "type": kind,
        "settings": settings or {"recipient": "customer"},
        "when": {"type": when, "unit": unit, "time": time},
    }


@pytest.fixture
def resource_id(tenant: Tenant) -> str:
    return tenant.make_resource()["id"]


@pytest.fixture
def book(tenant: Tenant, resource_id: str) -> Callable[..., Any]:
    """book(**given): the record of a booking on that Monday at nine."""

    def make(**given: Any) -> Any:
        answer = tenant.book(resource_id=resource_id, **{**NINE, **given})
        assert answer.status == 201, answer.json
        return answer.data

    return make


# --- Paused servers -------------------------------------------------------------------------------
def test_scheduled_call_to_a_paused_server_says_until_when(
    tenant: Tenant, book: Callable[..., Any]
) -> None:
    webhook = tenant.post("/webhooks", {"url": URL}).data
    book(event_notifications=[])
    row = Delivery.objects.get(type="webhook")
    until = datetime(2999, 1, 2, 3, 4, 5, tzinfo=UTC)
    Endpoint.objects.create(address="https://example.com:443", failures=10, open_until=until)
    pause = "The server failed too often: it gets no calls before 2999-01-02T03:04:05Z."

    def reasons(**stored: Any) -> list[Any]:
        Delivery.objects.filter(id=row.id).update(**stored)
        (listed,) = tenant.get("/deliveries?type=webhook").data
        return [listed["reason"], tenant.get(f"/deliveries/{row.id}").data["reason"]]

    assert reasons() == [pause] * 2
    assert tenant.post(f"/webhooks/{webhook['id']}/test", {}).data["reason"] == pause
    Delivery.objects.exclude(id=row.id).delete()
    assert reasons(reason="The server returned 500.") == [f"The server returned 500. {pause}"] * 2
    Endpoint.objects.update(open_until=datetime(2026, 1, 1, tzinfo=UTC))
    assert reasons(reason="") == [None] * 2
    Endpoint.objects.update(open_until=until)
    assert reasons(state="delivered", next_at=None, finished_at=NOW) == [None] * 2


# --- What one looks like --------------------------------------------------------------------------
def test_record_of_a_call_with_attempts(tenant: Tenant, book: Callable[..., Any]) -> None:
    webhook = tenant.post("/webhooks", {"url": URL}).data
    booking = book(event_notifications=[])
    row = Delivery.objects.get(type="webhook")
    Attempt.objects.create(
        app=row.app, delivery=row, at=NOW, seconds=15.0, error="No answer in time."
    )
    Attempt.objects.create(
        app=row.app,
        delivery=row,
        at=NOW + timedelta(seconds=5),
        response_code=500,
        seconds=0.25,
        error="The server returned 500.",
        excerpt="ä" * 20_000,
    )
    Delivery.objects.filter(id=row.id).update(reason="The server returned 500.")

    record = {
        "id": str(row.id),
        "type": "webhook",
        "kind": "confirmed",
        "booking_id": booking["id"],
        "webhook_id": webhook["id"],
        "recipient": None,
        "state": "scheduled",
        "reason": "The server returned 500.",
        "due_at": STAMP,
        "next_at": STAMP,
        "attempts": [
            {
                "at": STAMP,
                "response_code": None,
                "seconds": 15.0,
                "error": "No answer in time.",
                "excerpt": None,
            },
            {
                "at": "2026-11-20T09:30:05+0000",
                "response_code": 500,
                "seconds": 0.25,
                "error": "The server returned 500.",
                "excerpt": "ä" * EXCERPT,
            },
        ],
        "created_at": STAMP,
        "updated_at": STAMP,
    }
    assert tenant.get("/deliveries?type=webhook").data == [record]
    assert tenant.get(f"/webhooks/{webhook['id']}/deliveries").data == [record]
    record["attempts"][1]["excerpt"] = "ä" * 20_000
    payload = call_body(tenant, booking["id"], "booking.confirmed")
    whole = tenant.get(f"/deliveries/{row.id}")
    assert (whole.status, whole.data) == (200, record | {"payload": payload})


def test_record_of_a_mail_hides_its_content(tenant: Tenant, book: Callable[..., Any]) -> None:
    booking = book(what="Private matters", notify_owner_by_email={"enabled": False})

    owner, customer = tenant.get("/deliveries").data

    record = {
        "id": customer["id"],
        "type": "email",
        "kind": "confirmed",
        "booking_id": booking["id"],
        "webhook_id": None,
        "recipient": "customer",
        "state": "scheduled",
        "reason": None,
        "due_at": STAMP,
        "next_at": STAMP,
        "attempts": [],
        "created_at": STAMP,
        "updated_at": STAMP,
    }
    skipped = {
        "recipient": "owner",
        "state": "skipped",
        "reason": "E-mails are disabled for this booking.",
        "next_at": None,
    }
    assert [owner, customer] == [record | {"id": owner["id"]} | skipped, record]
    assert tenant.get(f"/deliveries/{customer['id']}").data == record | {"payload": None}


def test_payload_of_a_call_is_that_of_its_change(tenant: Tenant, book: Callable[..., Any]) -> None:
    tenant.post("/webhooks", {"url": URL})
    booking = book()
    made = call_body(tenant, booking["id"], "booking.confirmed")
    tenant.post(
        f"/bookings/{booking['id']}/reschedule",
        {**span("11:00", "11:30"), "message": "The room is taken."},
    )
    before = {key: booking[key] for key in ("start", "end", "resource_id")} | {"resources": None}
    moved = call_body(tenant, booking["id"], "booking.rescheduled", before)

    act(tenant, booking, "cancel")

    cancelled = call_body(tenant, booking["id"], "booking.cancelled")
    ids = [one["id"] for one in tenant.get("/deliveries?type=webhook").data]
    payloads = [tenant.get(f"/deliveries/{identifier}").data["payload"] for identifier in ids]
    assert payloads == [cancelled, moved, made]
    assert [each["state"] for each in payloads] == ["cancelled", "confirmed", "confirmed"]
    assert (moved["change"]["message"], moved["change"]["previous"]) == (
        "The room is taken.",
        {
            "start": "2026-11-23T09:00:00+00:00",
            "end": "2026-11-23T10:00:00+00:00",
            "resource_id": booking["resource_id"],
            "resources": None,
        },
    )


def test_payload_names_the_previous_resource(tenant: Tenant, book: Callable[..., Any]) -> None:
    tenant.post("/webhooks", {"url": URL, "states": ["rescheduled"]})
    booking, other = book(), tenant.make_resource("Bob")

    tenant.post(f"/bookings/{booking['id']}/reschedule", {**NINE, "resource_id": other["id"]})

    (call,) = tenant.get("/deliveries?type=webhook").data
    payload = tenant.get(f"/deliveries/{call['id']}").data["payload"]
    assert payload["resource"]["id"] == other["id"]
    former = {"id": booking["resource_id"], "name": "Ada", "requirement": None}
    assert payload["change"]["previous"] == {
        "start": booking["start"],
        "end": booking["end"],
        "resource_id": booking["resource_id"],
        "resources": [former],
    }


# --- The listing ----------------------------------------------------------------------------------
def test_pages_are_newest_first(tenant: Tenant, book: Callable[..., Any]) -> None:
    tenant.post("/webhooks", {"url": URL})
    booking = book()
    act(tenant, booking, "cancel")
    ids = [
        str(delivery) for delivery in Delivery.objects.order_by("-id").values_list("id", flat=True)
    ]

    page = tenant.get(f"/deliveries?limit=2&page=2&booking={booking['id']}").json

    base = f"http://127.0.0.1:8000/v2/deliveries?booking={booking['id']}&limit=2&page="
    assert [one["id"] for one in page.pop("data")] == ids[2:4]
    assert page == {
        "total": 6,
        "per_page": "2",
        "current_page": 2,
        "last_page": 3,
        "first_page_url": f"{base}1",
        "last_page_url": f"{base}3",
        "next_page_url": f"{base}3",
        "prev_page_url": f"{base}1",
        "from": 3,
        "to": 4,
    }
    kinds = [(one["type"], one["kind"]) for one in tenant.get("/deliveries").data]
    assert kinds == [
        ("webhook", "cancelled"),
        ("email", "cancelled"),
        ("email", "cancelled"),
        ("webhook", "confirmed"),
        ("email", "confirmed"),
        ("email", "confirmed"),
    ]


def test_filters_narrow_together(tenant: Tenant, book: Callable[..., Any]) -> None:
    first = tenant.post("/webhooks", {"url": URL}).data
    second = tenant.post("/webhooks", {"url": f"{URL}/2", "states": ["cancelled"]}).data
    early = book()
    late = book(**span("11:00", "12:00"), notify_customer_by_email={"enabled": False})
    act(tenant, late, "cancel")
    names = {first["id"]: "first", second["id"]: "second", None: "mail"}
    bookings = {early["id"]: "early", late["id"]: "late"}

    def found(query: str, path: str = "/deliveries") -> list[str]:
        answer = tenant.get(f"{path}?{query}")
        assert answer.status == 200, answer.json
        return [
            " ".join([bookings[record["booking_id"]], record["kind"], names[record["webhook_id"]]])
            for record in answer.data
        ]

    mails = ["late cancelled mail"] * 2 + ["late confirmed mail"] * 2 + ["early confirmed mail"] * 2
    calls = ["late cancelled second", "late cancelled first"]
    calls += ["late confirmed first", "early confirmed first"]
    assert found("type=email") == mails
    assert found("type=webhook") == calls
    assert found(f"booking={early['id']}") == ["early confirmed first", *mails[-2:]]
    assert found(f"webhook={second['id']}") == calls[:1]
    assert found(f"webhook={first['id'].upper()}") == calls[1:]
    assert found("state=skipped") == ["late confirmed mail"]
    assert found("state=failed") == []
    assert found(f"type=webhook&booking={late['id']}&webhook={first['id']}") == calls[1:3]
    assert found(f"type=email&webhook={first['id']}") == []
    own = f"/webhooks/{first['id']}/deliveries"
    assert found("", own) == calls[1:]
    assert found(f"booking={early['id']}&type=webhook&state=scheduled", own) == calls[3:]
    assert found(f"webhook={second['id']}", own) == []


@pytest.mark.parametrize(
    ("query", "errors"),
    [
        ("booking=x", {"booking": ["Must be a UUID."]}),
        ("booking=", {"booking": ["May not be empty."]}),
        ("webhook=0193a4c200007000800000000000004a", {"webhook": ["Must be a UUID."]}),
        (
            "type=sms",
            {"type": ["Must be one of email, webhook, calendar."]},
        ),
        (
            "state=sent",
            {
                "state": [
                    "Must be one of scheduled, sending, delivered, failed, cancelled, skipped,"
                    " expired."
                ]
            },
        ),
        ("kind=reminder", {"kind": ["Is not a known query parameter."]}),
        ("search=state:failed", {"search": ["Is not a known query parameter."]}),
        ("type=email&type=webhook", {"type": ["Is given 2 times."]}),
        ("limit=0", {"limit": ["Must be one integer from 1 to 1000."]}),
    ],
)
def test_wrong_query_parameters_are_refused(tenant: Tenant, query: str, errors: Any) -> None:
    webhook = tenant.post("/webhooks", {"url": URL}).data

    answers = [
        tenant.get(f"{path}?{query}")
        for path in ("/deliveries", f"/webhooks/{webhook['id']}/deliveries")
    ]

    assert [(answer.status, answer.json["errors"]) for answer in answers] == [(422, errors)] * 2


def test_foreign_deliveries_are_not_found(
    tenant: Tenant, book: Callable[..., Any], make_tenant: Callable[..., Tenant]
) -> None:
    webhook = tenant.post("/webhooks", {"url": URL}).data
    booking = book()
    delivery = tenant.get("/deliveries").data[0]
    stranger = make_tenant()

    lists = [
        stranger.get(f"/deliveries?{query}").json["total"]
        for query in ("", f"booking={booking['id']}", f"webhook={webhook['id']}")
    ]
    answers = [
        stranger.call(method, f"/deliveries/{one}{tail}")
        for method, tail in (("GET", ""), ("POST", "/redeliver"))
        for one in (delivery["id"], UNKNOWN_ID)
    ]

    gone = {"error": "Delivery not found.", "code": "not_found", "model": "Delivery"}
    assert lists == [0, 0, 0]
    assert [(answer.status, answer.error) for answer in answers] == [(404, gone)] * 4


def test_query_count_is_constant(tenant: Tenant, book: Callable[..., Any]) -> None:
    webhook = tenant.post("/webhooks", {"url": URL}).data
    paths = ["/deliveries", f"/webhooks/{webhook['id']}/deliveries", "/webhooks"]
    counts = []

    for hour in (9, 10, 11):
        book(**span(f"{hour:02}:00", f"{hour:02}:30"))
        for row in Delivery.objects.all():
            Attempt.objects.create(app=row.app, delivery=row, at=NOW, seconds=1.0)
        one = tenant.get(paths[1]).data[0]["id"]
        everything = [*paths, f"/deliveries/{one}"]
        counts.append([queries_of(partial(tenant.get, path)) for path in everything])

    assert counts == [[4, 5, 2, 3]] * 3


# --- Sending again --------------------------------------------------------------------------------
@pytest.mark.parametrize("state", ["delivered", "failed", "cancelled", "skipped", "expired"])
def test_finished_delivery_is_redelivered_with_its_id(
    tenant: Tenant, book: Callable[..., Any], clock: Any, state: str
) -> None:
    webhook = tenant.post("/webhooks", {"url": URL}).data
    book()
    row = Delivery.objects.get(type="webhook")
    final = {"next_at": None, "finished_at": NOW, "tries": 10, "lapses": 2}
    Delivery.objects.filter(id=row.id).update(
        state=state, reason="The server returned 500.", **final
    )
    Attempt.objects.create(app=row.app, delivery=row, at=NOW, seconds=1.0, response_code=500)
    before = tenant.get(f"/deliveries/{row.id}").data
    tenant.put(f"/webhooks/{webhook['id']}", {"url": "http://other.example.com"})
    clock.shift(60)

    answer = tenant.post(f"/deliveries/{row.id}/redeliver")

    later = {"state": "scheduled", "reason": None} | dict.fromkeys(
        ("due_at", "next_at", "updated_at"), "2026-11-20T09:31:00+0000"
    )
    assert (answer.status, answer.data) == (200, before | later)
    now = NOW + timedelta(seconds=60)
    row = Delivery.objects.get(id=row.id)
    assert (row.next_at, row.expires_at) == (now, now + EXPIRES_AFTER)
    assert (row.tries, row.lapses, row.finished_at) == (0, 0, None)
    assert row.endpoint == "http://other.example.com:80"


def test_waiting_delivery_is_redelivered_now(tenant: Tenant, book: Callable[..., Any]) -> None:
    book()
    row = Delivery.objects.first()
    Delivery.objects.filter(id=row.id).update(next_at=NOW + timedelta(hours=5), tries=4)

    answer = tenant.post(f"/deliveries/{row.id}/redeliver")

    row.refresh_from_db()
    assert (answer.status, answer.data["state"]) == (200, "scheduled")
    assert (row.next_at, row.tries) == (NOW, 0)


def test_redelivery_keeps_a_delivery_being_sent(tenant: Tenant, book: Callable[..., Any]) -> None:
    book()
    row = Delivery.objects.first()
    lease = {"next_at": NOW + timedelta(seconds=40), "tries": 1, "lease_token": UNKNOWN_ID}
    Delivery.objects.filter(id=row.id).update(state="sending", **lease)
    before = Delivery.objects.filter(id=row.id).values().get()

    answer = tenant.post(f"/deliveries/{row.id}/redeliver")

    assert (answer.status, answer.data["state"]) == (200, "sending")
    assert Delivery.objects.filter(id=row.id).values().get() == before


def sent(row: Delivery) -> Delivery:
    Delivery.objects.filter(id=row.id).update(state="delivered", next_at=None, finished_at=NOW)
    return row


@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        ("confirmed", ("PUT", "/cancel"), "The booking is cancelled."),
        ("reminder", ("PUT", "/cancel"), "The booking is cancelled."),
        (
            "confirmed",
            ("POST", "/reschedule", span("14:00", "15:00")),
            "The booking was moved.",
        ),
        ("reminder", ("POST", "/reschedule", span("14:00", "15:00")), "The booking was moved."),
    ],
)
def test_outdated_mail_is_not_redelivered(
    tenant: Tenant, book: Callable[..., Any], kind: str, change: Any, reason: str
) -> None:
    booking = book(event_notifications=[reminder(1)])
    row = sent(Delivery.objects.get(kind=kind, recipient="customer"))
    method, path, *body = change
    assert tenant.call(method, f"/bookings/{booking['id']}{path}", *body).status == 200
    before = Delivery.objects.filter(id=row.id).values().get()

    answer = tenant.post(f"/deliveries/{row.id}/redeliver")

    error = {"error": f"This message is outdated. {reason}", "code": "outdated"}
    assert (answer.status, answer.error) == (409, error)
    assert Delivery.objects.filter(id=row.id).values().get() == before


def test_current_mail_is_redelivered(tenant: Tenant, book: Callable[..., Any]) -> None:
    booking = book()
    tenant.post(f"/bookings/{booking['id']}/reschedule", span("14:00", "15:00"))
    moved = sent(Delivery.objects.get(kind="rescheduled", recipient="customer"))
    answers = [tenant.post(f"/deliveries/{moved.id}/redeliver")]
    tenant.put(f"/bookings/{booking['id']}/complete")
    answers += [tenant.post(f"/deliveries/{sent(moved).id}/redeliver")]

    assert [(answer.status, answer.data["state"]) for answer in answers] == [(200, "scheduled")] * 2


def test_queued_mail_can_always_be_sent_now(tenant: Tenant, book: Callable[..., Any]) -> None:
    """It leaves before the one that takes it back: holding it up would hold up both."""
    booking = book()
    row = Delivery.objects.get(kind="confirmed", recipient="customer")
    Delivery.objects.filter(id=row.id).update(next_at=NOW + timedelta(hours=5), tries=4)
    tenant.put(f"/bookings/{booking['id']}/cancel")

    answer = tenant.post(f"/deliveries/{row.id}/redeliver")

    assert (answer.status, answer.data["next_at"]) == (200, STAMP)


@pytest.mark.parametrize(
    ("method", "body", "reason"),
    [
        ("PUT", {"active": False}, "The webhook is disabled."),
        ("DELETE", None, "The webhook was deleted."),
    ],
)
def test_call_of_a_disabled_webhook_is_not_redelivered(
    tenant: Tenant, book: Callable[..., Any], method: str, body: Any, reason: str
) -> None:
    webhook = tenant.post("/webhooks", {"url": URL}).data
    book()
    row = sent(Delivery.objects.get(type="webhook"))
    tenant.call(method, f"/webhooks/{webhook['id']}", body)

    answer = tenant.post(f"/deliveries/{row.id}/redeliver")

    error = {"error": f"This message is outdated. {reason}", "code": "outdated"}
    assert (answer.status, answer.error) == (409, error)


def test_call_is_redelivered_with_its_original_body(
    tenant: Tenant, book: Callable[..., Any]
) -> None:
    tenant.post("/webhooks", {"url": URL})
    booking = book()
    row = sent(Delivery.objects.get(type="webhook", kind="confirmed"))
    body = Delivery.objects.get(id=row.id).body
    tenant.put(f"/bookings/{booking['id']}/cancel")

    answer = tenant.post(f"/deliveries/{row.id}/redeliver")

    assert (answer.status, answer.data["payload"]["state"]) == (200, "confirmed")
    assert Delivery.objects.get(id=row.id).body == body


# --- What is planned ------------------------------------------------------------------------------
MAIL_FIELDS = ("recipient", "customer__name")


def planned(tenant: Tenant, query: str = "") -> list[str]:
    """Every delivery of GET /deliveries in the order of their making, in a line.

    `email confirmed customer Marty McFly scheduled`, `webhook confirmed /hook scheduled`, with
    its due time where that is not now.
    """
    webhooks = {one["id"]: one["url"] for one in tenant.get("/webhooks").data}
    lines = []
    for one in reversed(tenant.get(f"/deliveries?{query}").data):
        recipient, name = Delivery.objects.values_list(*MAIL_FIELDS).get(id=one["id"])
        to = webhooks.get(one["webhook_id"], "").removeprefix("https://example.com")
        due = "" if one["due_at"] == STAMP else one["due_at"].removesuffix(":00+0000")
        words = [one["type"], one["kind"], to, recipient, name, one["state"], due]
        lines.append(" ".join(filter(None, words)))
    return lines


MAILS_OF_STEPS: list[tuple[str, list[str], list[list[str]]]] = [
    ("instant", [], [["confirmed customer", "confirmed owner"]]),
    (
        "instant",
        ["cancel"],
        [["confirmed customer", "confirmed owner"], ["cancelled customer", "cancelled owner"]],
    ),
    (
        "instant",
        ["cancel_by_customer"],
        [
            ["confirmed customer", "confirmed owner"],
            ["cancelled_by_customer owner", "cancelled_by_customer customer"],
        ],
    ),
    ("instant", ["complete"], [["confirmed customer", "confirmed owner"], []]),
    ("confirm_decline", [], [["tentative owner", "tentative customer"]]),
    (
        "confirm_decline",
        ["confirm", "complete"],
        [
            ["tentative owner", "tentative customer"],
            ["confirmed customer", "confirmed owner"],
            [],
        ],
    ),
    (
        "confirm_decline",
        ["decline"],
        [["tentative owner", "tentative customer"], ["declined customer"]],
    ),
    (
        "confirm_decline",
        ["cancel"],
        [["tentative owner", "tentative customer"], ["cancelled customer", "cancelled owner"]],
    ),
]


@pytest.mark.parametrize(("graph", "actions", "expected"), MAILS_OF_STEPS)
def test_planned_mails_of_each_change(
    tenant: Tenant,
    book: Callable[..., Any],
    graph: str,
    actions: list[str],
    expected: list[list[str]],
) -> None:
    booking = book(graph=graph)
    for action in actions:
        assert act(tenant, booking, action).status == 200

    names = {"customer": "customer Marty McFly", "owner": "owner"}
    mails = [mail.split() for step in expected for mail in step]
    assert planned(tenant) == [f"email {kind} {names[who]} scheduled" for kind, who in mails]


def test_draft_plans_no_mails(tenant: Tenant, book: Callable[..., Any]) -> None:
    tenant.post("/webhooks", {"url": URL})
    booking = book(action="create", event_notifications=[reminder(1)])
    draft = planned(tenant)
    moved = tenant.post(f"/bookings/{booking['id']}/reschedule", span("11:00", "12:00"))
    moved_draft = planned(tenant)

    act(tenant, booking, "confirm")

    assert moved.status == 200
    assert draft == ["webhook initialized /hook scheduled"]
    assert moved_draft == [*draft, "webhook rescheduled /hook scheduled"]
    assert planned(tenant) == [
        *moved_draft,
        "email confirmed customer Marty McFly scheduled",
        "email confirmed owner scheduled",
        "email reminder customer Marty McFly scheduled 2026-11-23T10:00",
        "webhook confirmed /hook scheduled",
    ]


def test_every_customer_gets_mails(tenant: Tenant, resource_id: str) -> None:
    body = {"what": "Meeting", "resource_id": resource_id, "customers": [MARTY, ANN], **NINE}
    both = [reminder(1), reminder(1, recipient="owner")]

    tenant.post("/bookings", {**body, "event_notifications": both})

    assert planned(tenant) == [
        "email confirmed customer Marty McFly scheduled",
        "email confirmed customer Ann scheduled",
        "email confirmed owner scheduled",
        "email reminder customer Marty McFly scheduled 2026-11-23T08:00",
        "email reminder customer Ann scheduled 2026-11-23T08:00",
        "email reminder owner scheduled 2026-11-23T08:00",
    ]


@pytest.mark.parametrize(
    ("off", "states"),
    [
        ([], ["scheduled", "scheduled"]),
        (["customer"], ["skipped", "scheduled"]),
        (["owner"], ["scheduled", "skipped"]),
        (["customer", "owner"], ["skipped", "skipped"]),
    ],
)
def test_mails_of_one_booking_can_be_disabled(
    tenant: Tenant, book: Callable[..., Any], off: list[str], states: list[str]
) -> None:
    booking = book(
        **{f"notify_{who}_by_email": {"enabled": False} for who in off},
        event_notifications=[reminder(1)],
    )
    act(tenant, booking, "cancel")

    assert planned(tenant) == [
        f"email confirmed customer Marty McFly {states[0]}",
        f"email confirmed owner {states[1]}",
        "email reminder customer Marty McFly cancelled 2026-11-23T08:00",
        "email cancelled customer Marty McFly scheduled",
        "email cancelled owner scheduled",
    ]


# --- Reminders ------------------------------------------------------------------------------------
DUE = [
    ((0, "secs", "before"), "scheduled 2026-11-23T09:00"),
    ((60, "secs", "before"), "scheduled 2026-11-23T08:59"),
    ((45, "mins", "before"), "scheduled 2026-11-23T08:15"),
    ((10, "hours", "before"), "scheduled 2026-11-22T23:00"),
    ((2, "days", "before"), "scheduled 2026-11-21T09:00"),
    ((4290, "mins", "before"), "scheduled"),  # this very second
    ((257_401, "secs", "before"), "skipped 2026-11-20T09:29:59+0000"),
    ((3, "days", "before"), "skipped 2026-11-20T09:00"),
    ((365, "days", "before"), "skipped 2025-11-23T09:00"),
    ((0, "days", "after"), "scheduled 2026-11-23T09:00"),
    ((90, "mins", "after"), "scheduled 2026-11-23T10:30"),
    ((365, "days", "after"), "scheduled 2027-11-23T09:00"),
]


@pytest.mark.parametrize(("when", "expected"), DUE, ids=[str(when) for when, _ in DUE])
def test_due_time_of_a_reminder(
    tenant: Tenant, book: Callable[..., Any], when: tuple[int, str, str], expected: str
) -> None:
    book(event_notifications=[reminder(*when)])

    assert planned(tenant)[2:] == [f"email reminder customer Marty McFly {expected}"]
    reasons = {one["reason"] for one in tenant.get("/deliveries?state=skipped").data}
    assert reasons == ({"The planned time was already past."} if "skipped" in expected else set())


@pytest.mark.parametrize(
    ("zone", "start", "when", "due"),
    [
        # In Berlin, the clocks go forward on 28 March 2027 at 02:00, back on 31 October at 03:00.
        ("Europe/Berlin", "2027-03-28T09:00+02:00", (1, "days", "before"), "2027-03-27T08:00"),
        ("Europe/Berlin", "2027-03-28T09:00+02:00", (24, "hours", "before"), "2027-03-27T07:00"),
        ("Europe/Berlin", "2027-03-29T02:30+02:00", (1, "days", "before"), "2027-03-28T01:00"),
        ("Europe/Berlin", "2027-03-27T02:30+01:00", (1, "days", "after"), "2027-03-28T01:00"),
        ("Europe/Berlin", "2027-11-01T09:00+01:00", (2, "days", "before"), "2027-10-30T07:00"),
        ("Europe/Berlin", "2027-11-01T02:30+01:00", (1, "days", "before"), "2027-10-31T00:30"),
        ("Europe/Berlin", "2027-10-31T02:30+01:00", (0, "days", "before"), "2027-10-31T01:30"),
        ("Europe/Berlin", "2027-10-30T09:00+02:00", (1, "days", "after"), "2027-10-31T08:00"),
        # Half an hour back on 4 April 2027 at 02:00.
        (
            "Australia/Lord_Howe",
            "2027-04-04T09:00+10:30",
            (1, "days", "before"),
            "2027-04-02T22:00",
        ),
    ],
)
def test_days_of_a_reminder_are_counted_on_the_wall_clock(
    tenant: Tenant, zone: str, start: str, when: tuple[int, str, str], due: str
) -> None:
    resource = tenant.make_resource("Bea", timezone=zone)
    end = datetime.fromisoformat(start) + timedelta(minutes=30)
    tenant.book(
        resource_id=resource["id"],
        start=start,
        end=end.isoformat(),
        event_notifications=[reminder(*when)],
    )

    row = Delivery.objects.get(kind="reminder")

    assert row.due_at == datetime.fromisoformat(f"{due}+00:00")


def test_reminder_as_a_webhook_call(tenant: Tenant, book: Callable[..., Any]) -> None:
    call = reminder(1, url=f"{URL}/soon", method="PUT", expected_response_code="204")
    booking = book(event_notifications=[call])

    (listed,) = tenant.get("/deliveries?type=webhook").data

    row = Delivery.objects.get(type="webhook")
    assert listed == {
        "id": str(row.id),
        "type": "webhook",
        "kind": "reminder",
        "booking_id": booking["id"],
        "webhook_id": None,
        "recipient": None,
        "state": "scheduled",
        "reason": None,
        "due_at": stamp("08:00"),
        "next_at": stamp("08:00"),
        "attempts": [],
        "created_at": STAMP,
        "updated_at": STAMP,
    }
    assert tenant.get(f"/deliveries/{row.id}").data == listed | {"payload": None}
    assert (row.content, row.endpoint) == (
        {"url": f"{URL}/soon", "method": "put", "expected_response_code": 204},
        "https://example.com:443",
    )


def test_reminders_of_a_request_are_planned_at_confirmation(
    tenant: Tenant, book: Callable[..., Any], clock: Any
) -> None:
    notifications = [reminder(2, "days"), reminder(1), reminder(1, when="after")]
    booking = book(graph="confirm_decline", event_notifications=notifications)
    request = planned(tenant)
    clock.shift(86_399)

    act(tenant, booking, "confirm")

    assert request == [
        "email tentative owner scheduled",
        "email tentative customer Marty McFly scheduled",
    ]
    assert planned(tenant)[2:] == [
        "email confirmed customer Marty McFly scheduled 2026-11-21T09:29:59+0000",
        "email confirmed owner scheduled 2026-11-21T09:29:59+0000",
        "email reminder customer Marty McFly skipped 2026-11-21T09:00",
        "email reminder customer Marty McFly scheduled 2026-11-23T08:00",
        "email reminder customer Marty McFly scheduled 2026-11-23T10:00",
    ]


@pytest.mark.parametrize(
    ("action", "state"),
    [("cancel", "cancelled"), ("cancel_by_customer", "cancelled_by_customer")],
)
def test_cancellation_cancels_open_reminders(
    tenant: Tenant, book: Callable[..., Any], action: str, state: str
) -> None:
    call = reminder(2, url=URL, method="get")
    booking = book(event_notifications=[reminder(9, "days"), reminder(1), call])

    act(tenant, booking, action)

    reminders = [line for line in planned(tenant) if " reminder " in line]
    reasons = {one["reason"] for one in tenant.get("/deliveries?state=cancelled").data}
    assert reminders == [
        "email reminder customer Marty McFly skipped 2026-11-14T09:00",
        "email reminder customer Marty McFly cancelled 2026-11-23T08:00",
        "webhook reminder cancelled 2026-11-23T07:00",
    ]
    assert reasons == {f"The booking is {state}."}


def test_completion_keeps_open_reminders(tenant: Tenant, book: Callable[..., Any]) -> None:
    booking = book(event_notifications=[reminder(1), reminder(1, "days", "after")])

    act(tenant, booking, "complete")

    assert planned(tenant)[2:] == [
        "email reminder customer Marty McFly scheduled 2026-11-23T08:00",
        "email reminder customer Marty McFly scheduled 2026-11-24T09:00",
    ]


def test_reschedule_moves_the_reminders(tenant: Tenant, book: Callable[..., Any]) -> None:
    booking = book(event_notifications=[reminder(9, "days"), reminder(1)])
    path = f"/bookings/{booking['id']}/reschedule"
    before = planned(tenant)

    tenant.post(path, span("11:00", "12:00", day="2026-12-01"))
    once = planned(tenant)
    tenant.post(path, span("11:00", "12:00", day="2026-11-20"))

    old = [line.replace("scheduled", "cancelled") for line in before[2:]]
    moved = [
        "email rescheduled customer Marty McFly scheduled",
        "email rescheduled owner scheduled",
    ]
    assert before[2:] == [
        "email reminder customer Marty McFly skipped 2026-11-14T09:00",
        "email reminder customer Marty McFly scheduled 2026-11-23T08:00",
    ]
    assert once == [
        *before[:2],
        *old,
        *moved,
        "email reminder customer Marty McFly scheduled 2026-11-22T11:00",
        "email reminder customer Marty McFly scheduled 2026-12-01T10:00",
    ]
    assert planned(tenant) == [
        *once[:-2],
        *(line.replace("scheduled", "cancelled") for line in once[-2:]),
        *moved,
        "email reminder customer Marty McFly skipped 2026-11-11T11:00",
        "email reminder customer Marty McFly scheduled 2026-11-20T10:00",
    ]
    reasons = {one["reason"] for one in tenant.get("/deliveries?state=cancelled").data}
    assert reasons == {"The booking was moved."}


def test_refused_reschedule_keeps_the_deliveries(tenant: Tenant, book: Callable[..., Any]) -> None:
    tenant.post("/webhooks", {"url": URL})
    booking = book(event_notifications=[reminder(1)])
    book(**span("11:00", "12:00"))
    before = planned(tenant)

    refused = tenant.post(f"/bookings/{booking['id']}/reschedule", span("11:30", "12:30"))
    refused_again = act(tenant, booking, "decline")
    taken = tenant.book(resource_id=tenant.get("/resources").data[0]["id"], **NINE)

    assert [one.status for one in (refused, refused_again, taken)] == [409, 409, 409]
    assert planned(tenant) == before


APP, PROJECT, BOOKING = (reminder(hours) for hours in (1, 2, 3))
PRECEDENCE = [
    ([APP], None, None, ["08:00"]),
    ([APP], [PROJECT], None, ["07:00"]),
    ([APP], [], None, []),
    ([APP], [PROJECT], [BOOKING], ["06:00"]),
    ([APP], None, [BOOKING], ["06:00"]),
    ([APP], [PROJECT], [], []),
    ([], None, None, []),
    ([APP, PROJECT], None, None, ["08:00", "07:00"]),
]


@pytest.mark.parametrize(("app", "project", "booking", "due"), PRECEDENCE)
def test_reminders_of_booking_project_and_app_precedence(
    tenant: Tenant, resource_id: str, app: Any, project: Any, booking: Any, due: list[str]
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"event_notifications": app})
    given = {} if project is None else {"event_notifications": project}
    made = tenant.make_project(resource_id, **given)
    own = {} if booking is None else {"event_notifications": booking}

    answer = tenant.book(
        project_id=made["id"],
        resource_id=resource_id,
        settings={"enforce_availability": False},
        **NINE,
        **own,
    )
    tenant.put(f"/apps/{tenant.app.slug}", {"event_notifications": [reminder(9)]})

    assert answer.status == 201
    assert planned(tenant)[2:] == [
        f"email reminder customer Marty McFly scheduled 2026-11-23T{time}" for time in due
    ]


# --- Subscriptions --------------------------------------------------------------------------------
SUBSCRIPTIONS = {
    "/all": {},
    "/instant": {"graph": "instant"},
    "/requests": {"graph": "confirm_decline"},
    "/confirmed": {"states": ["confirmed"]},
    "/ends": {"states": ["cancelled", "declined", "completed"]},
    "/moves": {"states": ["rescheduled"]},
    "/both": {"graph": "confirm_decline", "states": ["tentative", "rescheduled"]},
    "/off": {"active": False},
}
# What happens after the making -> who is told what, in order.
TOLD = [
    ("instant", [], [("confirmed", "/all /instant /confirmed")]),
    (
        "instant",
        ["cancel"],
        [("confirmed", "/all /instant /confirmed"), ("cancelled", "/all /instant /ends")],
    ),
    (
        "instant",
        ["complete"],
        [("confirmed", "/all /instant /confirmed"), ("completed", "/all /instant /ends")],
    ),
    (
        "instant",
        ["reschedule"],
        [
            ("confirmed", "/all /instant /confirmed"),
            ("rescheduled", "/all /instant /confirmed /moves"),
        ],
    ),
    (
        "confirm_decline",
        ["confirm"],
        [("tentative", "/all /requests /both"), ("confirmed", "/all /requests /confirmed")],
    ),
    (
        "confirm_decline",
        ["decline"],
        [("tentative", "/all /requests /both"), ("declined", "/all /requests /ends")],
    ),
    (
        "confirm_decline",
        ["reschedule", "cancel_by_customer"],
        [
            ("tentative", "/all /requests /both"),
            ("rescheduled", "/all /requests /moves /both"),
            ("cancelled_by_customer", "/all /requests"),
        ],
    ),
]


@pytest.mark.parametrize(("graph", "actions", "expected"), TOLD)
def test_webhooks_are_filtered_by_graph_and_state(
    tenant: Tenant,
    book: Callable[..., Any],
    make_tenant: Callable[..., Tenant],
    graph: str,
    actions: list[str],
    expected: list[tuple[str, str]],
) -> None:
    make_tenant().post("/webhooks", {"url": URL})
    for path, given in SUBSCRIPTIONS.items():
        tenant.post("/webhooks", {"url": f"https://example.com{path}", **given})
    booking = book(graph=graph)
    for action in actions:
        if action == "reschedule":
            move = span("11:00", "12:00")
            assert tenant.post(f"/bookings/{booking['id']}/reschedule", move).status == 200
        else:
            assert act(tenant, booking, action).status == 200

    assert planned(tenant, "type=webhook") == [
        f"webhook {kind} {path} scheduled" for kind, paths in expected for path in paths.split()
    ]
    rows = Delivery.objects.filter(type="webhook").order_by("id")
    bodies = [json.loads(body) for body in rows.values_list(CALL_BODY, flat=True)]
    unmoved = {"rescheduled": booking["state"]}
    assert [body["state"] for body in bodies] == [
        unmoved.get(kind, kind) for kind, paths in expected for _ in paths.split()
    ]


def test_webhook_updates_apply_to_later_changes(tenant: Tenant, book: Callable[..., Any]) -> None:
    webhook = tenant.post("/webhooks", {"url": URL, "states": ["cancelled"]}).data
    booking = book()
    nothing = planned(tenant, "type=webhook")

    tenant.put(f"/webhooks/{webhook['id']}", {"states": []})
    tenant.post(f"/bookings/{booking['id']}/reschedule", span("11:00", "12:00"))
    disable_webhook(Webhook.objects.get(), "It is gone.", now=NOW)
    act(tenant, booking, "cancel")

    assert nothing == []
    assert planned(tenant, f"webhook={webhook['id']}") == [
        "webhook rescheduled /hook scheduled",
        "email webhook_disabled /hook owner scheduled",
    ]


def test_largest_number_of_deliveries_of_a_booking(tenant: Tenant, resource_id: str) -> None:
    """One statement writes them all: databases bound its parameters."""
    Webhook.objects.bulk_create(
        Webhook(app=tenant.app, url=URL, secret="x") for _ in range(MAX_WEBHOOKS)
    )
    body = {
        "what": "Meeting",
        "resource_id": resource_id,
        "customers": [{"name": f"C{n}", "email": f"c{n}@example.com"} for n in range(50)],
        "event_notifications": [reminder(hours) for hours in range(20)],
        **NINE,
    }

    answer = tenant.post("/bookings", body)

    assert answer.status == 201
    assert Delivery.objects.count() == 50 + 1 + 100 + 50 * 20
