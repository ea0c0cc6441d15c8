"""sdk/python with a live service: lists, changes, webhook calls."""

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from scheduling_client import AsyncClient, Client, InvalidSignature, errors, models, webhooks
from standardwebhooks import Webhook, WebhookVerificationError

from notifications.webhooks.bodies import formatted
from notifications.webhooks.signing import new_secret, signature_headers
from tests.live import CUSTOMER, LiveApp
from tests.services import Service


@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def client(app: LiveApp) -> Iterator[Client]:
    with Client(app.url, app.key, timezone="Europe/Berlin") as client:
        yield client


def booking_of(resource: models.Resource, hour: int) -> dict[str, Any]:
    return {
        "resource_id": resource.id,
        "what": "Check-up",
        "start": f"2031-01-02T{hour:02}:00:00+01:00",
        "end": f"2031-01-02T{hour:02}:30:00+01:00",
        "customer": CUSTOMER,
    }


# --- Requests -------------------------------------------------------------------------------------
def test_list_is_read_page_by_page(client: Client) -> None:
    names = [f"Room {number}" for number in range(5)]
    for name in names:
        client.resources.create(name=name, timezone="UTC")

    listed = client.resources.list(
        search="name:Room*", limit=2, orderBy="created_at", sortedBy="asc"
    )
    page = listed.page(3)

    assert [resource.name for resource in listed] == names
    assert [len(page.items) for page in listed.pages()] == [2, 2, 1]
    assert ([each.name for each in page.items], page.number, page.last, page.total) == (
        ["Room 4"],
        3,
        3,
        5,
    )


def test_iteration_skips_and_repeats_nothing_while_objects_come_and_go(client: Client) -> None:
    made = {
        name: client.resources.create(name=f"Seat {name}", timezone="UTC").id for name in "BCDEF"
    }
    listed = client.resources.list(search="name:Seat*", limit=2, orderBy="name", sortedBy="asc")
    read = []

    for resource in listed:
        read.append(resource.name)
        if resource.name == "Seat C":
            client.resources.delete(made["B"])
            client.resources.create(name="Seat A", timezone="UTC")
            client.resources.create(name="Seat G", timezone="UTC")

    assert read == [f"Seat {name}" for name in "BCDEFG"]
    from_page_two = client.resources.list(
        search="name:Seat*", limit=2, orderBy="name", sortedBy="asc", page=2
    )
    assert [resource.name for resource in from_page_two] == [f"Seat {name}" for name in "DEFG"]


def test_write_with_a_used_key_takes_effect_once(client: Client) -> None:
    first = client.resources.create(name="Once", timezone="UTC", idempotency_key="1")
    second = client.resources.create(name="Once", timezone="UTC", idempotency_key="1")
    with pytest.raises(errors.IdempotencyMismatch):
        client.resources.create(name="Linus", timezone="UTC", idempotency_key="1")

    assert (second.id, second.api_token, second.secret_shown) == (first.id, None, True)
    assert [resource.id for resource in client.resources.list(search="name:Once")] == [first.id]


def test_misspelt_key_is_refused(client: Client) -> None:
    body: dict[str, Any] = {"name": "Ada", "timezone": "UTC", "capacities": 2}

    with pytest.raises(errors.Invalid) as refused:
        client.resources.create(**body)

    assert list(refused.value.errors or ()) == ["capacities"]


def test_objects_are_written_by_the_ids_of_the_callers_system(client: Client) -> None:
    made = client.resources.put_by_external_id("crm/42 ü", name="Ada", timezone="UTC")
    changed = client.resources.put_by_external_id("crm/42 ü", name="Ada Berg")
    project = client.projects.put_by_external_id("crm/42 ü", name="Check-up", resources=[made.id])

    assert (changed.id, changed.name, changed.external_id) == (made.id, "Ada Berg", "crm/42 ü")
    assert client.projects.get(project.id).external_id == "crm/42 ü"
    assert [each.id for each in client.resources.list(external_id="crm/42 ü")] == [made.id]


def test_times_are_in_the_zone_of_the_client(client: Client) -> None:
    ada = client.resources.create(name="Ada", timezone="Europe/Berlin")

    booking = client.bookings.create(**booking_of(ada, 9), include="event")

    assert booking.start is not None
    assert booking.start.isoformat() == "2031-01-02T09:00:00+01:00"
    assert isinstance(booking.event, models.Event)
    assert booking.event.start == booking.start


def test_asynchronous_requests_run_side_by_side(app: LiveApp) -> None:
    async def book_all() -> tuple[list[str], list[str]]:
        async with AsyncClient(app.url, app.key) as client:
            ada = await client.resources.create(name="Ada", timezone="UTC", capacity=1)
            requests = [client.bookings.create(**booking_of(ada, 9)) for _ in range(4)]
            answers = await asyncio.gather(*requests, return_exceptions=True)
            listed = [each.state async for each in client.bookings.list(resource_id=ada.id)]
            return sorted(type(answer).__name__ for answer in answers), listed

    assert asyncio.run(book_all()) == (
        ["Booking", "SlotTaken", "SlotTaken", "SlotTaken"],
        ["confirmed"],
    )


# --- Changes --------------------------------------------------------------------------------------
def next_changes(client: Client, cursor: str, count: int) -> list[models.ListedChange]:
    changes = client.changes.follow(cursor, interval=0.05)
    return [next(changes) for _ in range(count)]


def test_changes_are_continued_after_any_of_them(app: LiveApp, client: Client) -> None:
    begin = client.changes.latest_cursor()
    made = app.make_ids()
    app.call("DELETE", f"/v2/events/{made['event_id']}")

    listed = client.changes.list(begin)
    changes = list(listed.changes)
    pieces, cursor = [], begin
    for _ in changes:
        pieces += next_changes(client, cursor, 1)
        cursor = pieces[-1].cursor

    assert pieces == changes
    assert (cursor, listed.has_more) == (listed.cursor, False)
    # Each object is of its own type; what is deleted is None.
    assert {(change.type, type(change.object).__name__) for change in changes} == {
        ("booking", "Booking"),
        ("calendar", "Calendar"),
        ("customer", "CustomerOfBooking"),
        ("event", "Event"),
        ("event", "NoneType"),
        ("project", "Project"),
        ("resource", "Resource"),
        ("schedule", "Schedule"),
        ("webhook", "Webhook"),
    }


def test_follower_waits_for_the_next_change(client: Client, monkeypatch: Any) -> None:
    begin = client.changes.latest_cursor()
    waits: list[float] = []

    def make_a_resource_at_the_third_wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            client.resources.create(name="Ada", timezone="UTC")

    monkeypatch.setattr("scheduling_client.client.time.sleep", make_a_resource_at_the_third_wait)

    change = next(client.changes.follow(begin, types=["resource"], interval=7))

    assert (change.type, change.action, waits) == ("resource", "created", [7, 7, 7])


def test_follower_with_a_lost_cursor_is_told(client: Client) -> None:
    with pytest.raises(errors.CursorExpired):
        next(client.changes.follow("99999-0123456789abcdef"))


# --- Webhook calls --------------------------------------------------------------------------------
BODY = json.dumps({"kind": "booking.confirmed", "id": "1", "cursor": "7-ab"}).encode()


def signed(*secrets: str, body: bytes = BODY, age: int = 0) -> dict[str, str]:
    """The headers of a call by the service, which names them in any case."""
    stamp = int(time.time()) - age
    headers = signature_headers(message_id="1", timestamp=stamp, body=body, secrets=list(secrets))
    return {"Service-Event": "booking.confirmed", **headers}


def test_event_notification_by_get_has_no_body() -> None:
    secret = new_secret()
    headers = signed(secret, body=b"") | {"Service-Event": "booking.reminder"}

    call = webhooks.verify(b"", headers, secret)

    assert call == webhooks.WebhookCall(
        id="1",
        kind="booking.reminder",
        sent_at=datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC),
        cursor=None,
        object=None,
        body={},
    )
    with pytest.raises(InvalidSignature):
        webhooks.verify(b"{}", headers, secret)


def test_event_notification_with_a_body_is_about_a_booking_without_change() -> None:
    secret = new_secret()
    record = {"id": "1", "state": "confirmed", "graph": "instant"}
    body = json.dumps(record).encode()

    call = webhooks.verify(body, signed(secret, body=body), secret)

    assert (call.object, call.cursor) == (models.Booking(record), None)


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "booking.cancelled", "id": "1", "cursor": "7-ab"},
        {"type": "booking.cancelled", "timestamp": "2026-11-20T09:30:00+00:00", "data": {}},
        {"id": "1", "graph": "instant", "change": {"kind": "booking.cancelled"}},
    ],
    ids=["thin", "standard", "plain"],
)
def test_kind_is_that_of_the_signed_body(body: dict[str, Any]) -> None:
    """The header is not signed."""
    secret = new_secret()
    content = json.dumps(body).encode()
    headers = signed(secret, body=content)

    call = webhooks.verify(content, headers, secret)

    assert (headers["Service-Event"], call.kind) == ("booking.confirmed", "booking.cancelled")


@pytest.mark.parametrize("upper", [False, True])
def test_call_is_verified_during_a_rotation(upper: bool) -> None:
    old, new, foreign = new_secret(), new_secret(), new_secret()
    headers = signed(new, old)
    headers = {name.title() if upper else name: value for name, value in headers.items()}

    calls = [webhooks.verify(BODY, headers, secrets) for secrets in (old, new, [foreign, old])]

    assert {(call.id, call.kind, call.cursor, call.object) for call in calls} == {
        ("1", "booking.confirmed", "7-ab", None)
    }
    assert abs(time.time() - calls[0].sent_at.timestamp()) < 60
    with pytest.raises(InvalidSignature):
        webhooks.verify(BODY, headers, [foreign])
    with pytest.raises(InvalidSignature):
        webhooks.verify(BODY + b" ", headers, old)


@pytest.mark.parametrize(("age", "is_right"), [(0, True), (290, True), (310, False), (-310, False)])
def test_tolerance_of_a_call_is_that_of_standard_webhooks(age: int, is_right: bool) -> None:
    secret = new_secret()
    headers = signed(secret, age=age)

    assert verifies(webhooks.verify, BODY, headers, secret) is is_right
    assert verifies(lambda *given: Webhook(secret).verify(*given[:2]), BODY, headers) is is_right


def test_old_call_is_accepted_with_a_longer_tolerance() -> None:
    secret = new_secret()

    call = webhooks.verify(BODY, signed(secret, age=3600), secret, tolerance=7200)

    assert call.kind == "booking.confirmed"


def verifies(verify: Any, *given: Any) -> bool:
    try:
        verify(*given)
    except (InvalidSignature, WebhookVerificationError):
        return False
    return True


def test_signatures_are_those_of_standard_webhooks() -> None:
    """Both ways."""
    secret, now = new_secret(), int(time.time())
    library = Webhook(secret)
    theirs = library.sign("1", datetime.fromtimestamp(now, UTC), BODY.decode())
    ours = webhooks.sign(b"1.%d." % now + BODY, secret)
    headers = {"webhook-id": "1", "webhook-timestamp": str(now)}

    assert ours == theirs
    assert webhooks.verify(BODY, headers | {"webhook-signature": theirs}, secret).id == "1"
    assert library.verify(BODY, headers | {"webhook-signature": ours}) == json.loads(BODY)


@pytest.mark.parametrize("left_out", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_call_without_its_headers_is_refused(left_out: str) -> None:
    secret = new_secret()
    headers = {name: value for name, value in signed(secret).items() if name != left_out}

    with pytest.raises(InvalidSignature, match="headers of a signed call are missing"):
        webhooks.verify(BODY, headers, secret)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook-timestamp", "soon"),
        ("webhook-timestamp", "1" * 400),
        ("webhook-timestamp", "1" * 5000),
        ("webhook-signature", "v1,ü"),
        ("webhook-signature", ""),
    ],
)
def test_nonsense_in_headers_is_refused(name: str, value: str) -> None:
    secret = new_secret()

    with pytest.raises(InvalidSignature):
        webhooks.verify(BODY, signed(secret) | {name: value}, secret)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_???"])
def test_what_is_no_secret_is_a_mistake(secret: str) -> None:
    with pytest.raises(ValueError, match="A webhook's secret is"):
        webhooks.verify(BODY, signed(new_secret()), secret)


@pytest.mark.parametrize("format_", [None, "standard", "thin"])
def test_body_of_each_format_is_read(app: LiveApp, client: Client, format_: Any) -> None:
    """The object is that of the delivery log."""
    webhook = client.webhooks.create(url="https://example.com/hook", format=format_)
    ada = client.resources.create(name="Ada", timezone="UTC")
    booking = client.bookings.create(**booking_of(ada, 9))
    app.service.run("from notifications.outbox.expansion import expand_changes; expand_changes()")
    (listed,) = client.deliveries.list(webhook=webhook.id)
    record = app.get(f"/v2/deliveries/{listed.id}").data["payload"]
    text = formatted(json.dumps(record), format_, kind="booking.confirmed", at=datetime.now(UTC))
    assert webhook.secret is not None
    headers = signed(webhook.secret, body=text.encode())

    call = webhooks.verify(text.encode(), headers, webhook.secret)

    assert (call.kind, call.cursor) == ("booking.confirmed", record["cursor"])
    if format_ == "thin":
        assert (call.object, call.body["id"]) == (None, booking.id)
    else:
        assert isinstance(call.object, models.BookingCall)
        assert call.object.to_dict() == record
        assert call.object.change.kind == "booking.confirmed"


def test_cursor_of_a_call_is_before_a_bookings_change_and_after_another_objects(
    app: LiveApp, client: Client
) -> None:
    kinds = ["booking.confirmed", "resource.created"]
    webhook = client.webhooks.create(url="https://example.com/hook", kinds=kinds)
    ada = client.resources.create(name="Ada", timezone="UTC")
    client.changes.latest_cursor()  # otherwise a worker numbers the changes
    booking = client.bookings.create(**booking_of(ada, 9))
    app.service.run(
        "from notifications.outbox.expansion import expand_changes; expand_changes()\n"
        "from notifications.tasks import number_and_tell_changes; number_and_tell_changes()"
    )
    assert webhook.secret is not None

    listed = {}
    for delivery in client.deliveries.list(webhook=webhook.id):
        payload = app.get(f"/v2/deliveries/{delivery.id}").data["payload"]
        body = json.dumps(payload).encode()
        call = webhooks.verify(body, signed(webhook.secret, body=body), webhook.secret)
        changes = client.changes.list(call.cursor).changes
        listed[type(call.object)] = {(change.type, change.object_id) for change in changes}

    made = ("booking", booking.id)
    assert listed[models.BookingCall] >= {made}
    assert listed[models.ObjectCall] >= {made}
    assert ("resource", ada.id) not in listed[models.ObjectCall]
