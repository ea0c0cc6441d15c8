"""Bookings on their way into connected calendars: what is planned, and what stands there then."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apps_config.models import App
from availability.models import Calendar, Event
from bookings.models import Booking
from external_calendars.mirror.backfill import backfill
from external_calendars.models import Connection, ExternalObject, WrittenEvent
from external_calendars.providers import PROVIDERS
from external_calendars.providers.base import PROVIDER_ERRORS, ProviderError
from notifications.models import Attempt, Delivery, Endpoint
from notifications.outbox import dispatcher
from notifications.outbox.leases import claim_due
from notifications.outbox.redeliver import redeliver
from notifications.outbox.senders import prepare_batch
from tests.bookings.booking_drafts import uid_of
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.delivery_faults import delivery_faults
from tests.external_calendars.mirrored import (
    ADDRESS,
    Memory,
    change,
    connect,
    copies,
    deliveries,
    events_of,
    make_due,
    shown,
    write,
)
from tests.queries import Queries
from tests.world import Tenant, at

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

MARTY = {"name": "Marty McFly", "email": "marty@example.com", "phone": "+1 555 0100"}
OTHER = "https://other.example.com/ada/home/"


@pytest.fixture(autouse=True)
def _at_home(settings: Any) -> None:
    settings.PUBLIC_URL = "https://bookings.example.com"


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """In the place of CalDAV."""
    provider = Memory()
    monkeypatch.setitem(PROVIDERS, "caldav", provider)
    return provider


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada Lovelace", email="ada@example.com")


@pytest.fixture
def work(ada: Any, memory: Memory) -> Calendar:
    """Her primary calendar."""
    return connect(ada)


# One day for the whole run, which may pass midnight.
TODAY = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)


def times(day: int = 1, hour: int = 9, **length: float) -> dict[str, str]:
    """So many days from the day on which the run began."""
    start = TODAY + timedelta(days=day, hours=hour)
    return {
        "start": start.isoformat(),
        "end": (start + timedelta(**(length or {"hours": 1}))).isoformat(),
    }


def book(tenant: Tenant, resource: Any, **given: Any) -> Any:
    body = {"resource_id": resource["id"], "customer": MARTY, **times(), **given}
    answer = tenant.book(**body)
    assert answer.status == 201, answer.json
    return answer.data


def act(tenant: Tenant, booking: Any, action: str, **inputs: Any) -> None:
    answer = tenant.put(f"/bookings/{booking['id']}/{action}", inputs)
    assert answer.status == 200, answer.json


def move(tenant: Tenant, booking: Any, **given: Any) -> None:
    answer = tenant.post(f"/bookings/{booking['id']}/reschedule", {**times(2), **given})
    assert answer.status == 200, answer.json


def path_of(booking: Any, folder: str = "/ada/work/") -> str:
    return f"{folder}{uid_of(booking)}@bookings.example.com.ics"


def span_of(given: dict[str, str]) -> tuple[Any, Any]:
    return at(given["start"]), at(given["end"])


# --- One booking ----------------------------------------------------------------------------------
def test_write_move_and_remove_a_booking(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada, where="Harbour Street 5", description="Bring your card.")
    path = path_of(booking)
    assert copies() == [("pending", "")]

    assert write() == 1

    [event] = events_of(memory.text(path))
    assert shown(memory.text(path)) == (
        f"{uid_of(booking)}@bookings.example.com",
        *span_of(times()),
        "Meeting",
        ["marty@example.com"],
    )
    assert {name: str(event[name]) for name in ("LOCATION", "STATUS", "TRANSP", "ORGANIZER")} == {
        "LOCATION": "Harbour Street 5",
        "STATUS": "CONFIRMED",
        "TRANSP": "OPAQUE",
        "ORGANIZER": "mailto:ada@example.com",
    }
    assert str(event["DESCRIPTION"]) == (
        "Bring your card.\n\nMarty McFly\nmarty@example.com\n+1 555 0100"
    )
    row = WrittenEvent.objects.get()
    assert (row.state, row.href, row.etag) == ("written", path, memory.objects[path][0])
    assert (row.start, row.end) == span_of(times())
    assert memory.calls == [f"put {path}"]

    move(tenant, booking)
    assert write() == 1

    assert shown(memory.text(path))[1:3] == span_of(times(2))
    assert int(events_of(memory.text(path))[0]["SEQUENCE"]) == 1
    assert memory.calls[1:] == [f"read {path}", f"put {path}"]

    act(tenant, booking, "cancel")
    assert write() == 1

    assert memory.objects == {}
    assert memory.calls[3:] == [f"delete {path}"]
    assert copies() == [("removed", "")]
    assert deliveries() == [
        ("confirmed", "delivered", ""),
        ("rescheduled", "delivered", ""),
        ("cancelled", "delivered", ""),
    ]
    assert delivery_faults() == []


def test_event_without_invitations(tenant: Tenant, ada: Any, work: Calendar, memory: Any) -> None:
    booking = book(tenant, ada, invite=False)
    write()

    [event] = events_of(memory.text(path_of(booking)))
    assert ("ATTENDEE" in event, "ORGANIZER" in event) == (False, False)
    assert str(event["DESCRIPTION"]) == "Marty McFly\nmarty@example.com\n+1 555 0100"


def test_a_test_app_invites_its_members_only(make_tenant: Any, memory: Any) -> None:
    tenant = make_tenant(mode="test")
    tenant.member("ann@example.com")
    resource = tenant.make_resource(email="ada@example.com")
    connect(resource)
    customers = [MARTY, {"name": "Ann", "email": "Ann@example.com"}]
    booking = tenant.post(
        "/bookings",
        {"what": "Meeting", "resource_id": resource["id"], "customers": customers, **times()},
    ).data
    write()

    assert shown(memory.text(path_of(booking))).guests == ["Ann@example.com"]


def test_requests_are_written_when_confirmed(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada, graph="confirm_decline")
    draft = book(tenant, ada, graph="instant", action="create", **times(3))
    unpaid = book(tenant, ada, graph="instant_payment", **times(4))
    declined = book(tenant, ada, graph="confirm_decline", **times(5))
    act(tenant, declined, "decline")
    assert deliveries() == []

    act(tenant, booking, "confirm")
    act(tenant, draft, "confirm")
    act(tenant, unpaid, "pay")
    write()

    assert set(memory.objects) == {path_of(one) for one in (booking, draft, unpaid)}


def test_completed_booking_stays_written(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada)
    write()
    act(tenant, booking, "complete")

    assert write() == 0
    assert list(memory.objects) == [path_of(booking)]
    assert copies() == [("written", "")]


def test_booking_completed_before_the_write(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada)
    act(tenant, booking, "complete")
    write()

    assert list(memory.objects) == [path_of(booking)]


def test_booking_cancelled_before_the_write(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    """The first write finds that nothing is to stand there."""
    booking = book(tenant, ada)
    act(tenant, booking, "cancel")
    write()

    assert memory.calls == [f"read {path_of(booking)}"] * 2
    assert copies() == [("removed", "")]
    assert {state for _, state, _ in deliveries()} == {"delivered"}


def test_all_day_events(tenant: Tenant, memory: Any) -> None:
    resource = tenant.make_resource(timezone="Europe/Berlin")
    connect(resource)
    booking = book(tenant, resource)
    start = at("2030-06-30 22:00")
    event = Event.objects.get()
    Event.objects.filter(id=event.id).update(
        all_day=True,
        start=start,
        end=start + timedelta(days=2),
        start_date=start.date() + timedelta(days=1),
        end_date=start.date() + timedelta(days=3),
    )
    write()

    text = memory.text(path_of(booking))
    assert "DTSTART;VALUE=DATE:20300701\r\nDTEND;VALUE=DATE:20300703\r\n" in text


# --- Which calendar -------------------------------------------------------------------------------
def test_calendar_of_the_event_takes_precedence(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    home = connect(ada, OTHER, is_primary=False)
    booking = book(tenant, ada, calendar_id=str(home.id))
    other = book(tenant, ada, **times(2))
    write()

    assert set(memory.objects) == {path_of(booking, "/ada/home/"), path_of(other)}


def test_no_write_without_a_writable_calendar(tenant: Tenant, ada: Any, memory: Any) -> None:
    work = connect(ada, is_primary=False)
    book(tenant, ada)
    Calendar.objects.filter(id=work.id).update(provider_primary=True, provider_access="reader")
    book(tenant, ada, **times(2))

    assert (deliveries(), copies()) == ([], [])


def test_reschedule_to_another_resource(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    ben = tenant.make_resource("Ben", email="ben@example.com")
    connect(ben, "https://dav.example.com/ben/")
    cyd = tenant.make_resource("Cyd")
    booking = book(tenant, ada)
    write()

    move(tenant, booking, resource_id=ben["id"])
    write()
    assert set(memory.objects) == {path_of(booking, "/ben/")}
    assert copies() == [("removed", ""), ("written", "")]

    move(tenant, booking, resource_id=cyd["id"])
    write()
    assert memory.objects == {}

    move(tenant, booking, resource_id=ada["id"])
    write()
    assert set(memory.objects) == {path_of(booking)}
    assert copies() == [("written", ""), ("removed", "")]


def test_mutual_booking_is_written_for_each_resource(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    """The customer is invited once; a server that is away holds up no other."""
    ben = tenant.make_resource("Ben", email="ben@example.com")
    connect(ben, OTHER)
    cyd = tenant.make_resource("Cyd")
    project = tenant.make_project(
        ada["id"], ben["id"], cyd["id"], availability={"mode": "mutual", "length": None}
    )
    memory.before = fail_at("/ada/home/", ProviderError("unreachable"))
    answer = tenant.book(project_id=project["id"], **times())
    assert answer.status == 201, answer.json
    booking = answer.data
    write()

    assert set(memory.objects) == {path_of(booking)}
    assert copies() == [("written", ""), ("pending", PROVIDER_ERRORS["unreachable"])]

    memory.before = lambda call: None
    make_due()
    write()

    companion = Event.objects.get(main__isnull=False, resource=ben["id"])
    path = f"/ada/home/{companion.id}@bookings.example.com.ics"
    assert set(memory.objects) == {path_of(booking), path}
    assert shown(memory.text(path)) == (
        f"{companion.id}@bookings.example.com",
        *span_of(times()),
        "Meeting",
        [],
    )
    assert shown(memory.text(path_of(booking))).guests == ["marty@example.com"]

    act(tenant, booking, "cancel")
    write()
    assert memory.objects == {}


def test_required_resources_each_have_the_event(tenant: Tenant, memory: Any) -> None:
    """A move that needs another room takes the booking out of one calendar and into another."""
    ids = {}
    for name in ("dentist", "room1", "room2", "xray"):
        resource = tenant.make_resource(name)
        connect(resource, f"https://{name}.example.com/{name}/")
        ids[name] = resource["id"]
    requires = [
        {"name": "dentist", "any_of": [ids["dentist"]]},
        {"name": "room", "any_of": [ids["room1"], ids["room2"]]},
        {"name": "X-ray", "any_of": [ids["xray"]]},
    ]
    project = tenant.post("/projects", {"name": "Implant", "requires": requires}).data
    assert tenant.book(resource_id=ids["room1"], **times(2)).status == 201
    write()
    memory.objects.clear()

    answer = tenant.book(project_id=project["id"], customer=MARTY, **times())
    assert answer.status == 201, answer.json
    booking = answer.data
    write()
    first = written_events(memory)
    move(tenant, booking)
    write()
    moved = written_events(memory)
    act(tenant, booking, "cancel")
    write()

    def events_in(names: tuple[str, ...], day: int) -> dict[str, Any]:
        return {name: (*span_of(times(day)), "Meeting") for name in names}

    assert first == events_in(("dentist", "room1", "xray"), 1)
    assert moved == events_in(("dentist", "room2", "xray"), 2)
    assert memory.objects == {}


def written_events(memory: Any) -> dict[str, Any]:
    """Start, end and title of the only object of each folder."""
    found = [(path.split("/")[1], shown(memory.text(path))) for path in memory.objects]
    assert len(dict(found)) == len(found)
    return {folder: event[1:4] for folder, event in found}


def fail_at(part: str, trouble: BaseException) -> Any:
    """Raises it at every call that names the part."""

    def before(call: str) -> None:
        if part in call:
            raise trouble

    return before


# --- Several at once ------------------------------------------------------------------------------
def test_seats_are_guests_of_the_group_event(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    group = make_group(tenant, ada, **times())
    write()
    assert shown(memory.text(path_of(group))).guests == []

    ann = seat_in(tenant, group, ANN)
    seat_in(tenant, group, BOB)
    write()

    text = memory.text(path_of(group))
    assert shown(text).guests == ["ann@example.com", "bob@example.com"]
    # Who sits there is told by the guests: not one's telephone number to the other.
    assert "DESCRIPTION" not in events_of(text)[0]

    act(tenant, ann, "cancel_by_customer")
    write()
    assert shown(memory.text(path_of(group))).guests == ["bob@example.com"]

    act(tenant, group, "cancel")
    write()
    assert memory.objects == {}
    assert set(Delivery.objects.filter(type="calendar").values_list("booking")) == {
        (Booking.objects.get(id=group["id"]).id,)
    }
    assert [kind for kind, _, _ in deliveries()] == [
        *("tentative", "confirmed", "confirmed", "cancelled_by_customer", "cancelled"),
    ]


def test_series_is_written_as_single_events(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    book(tenant, ada, recurrence="FREQ=DAILY;COUNT=5")
    write()

    ids = Booking.objects.values_list("id", flat=True)
    assert set(memory.objects) == {path_of({"id": identifier}) for identifier in ids}
    starts = sorted(shown(text).start for _, text in memory.objects.values())
    first = at(times()["start"])
    assert starts == [first + timedelta(days=day) for day in range(5)]


def test_query_count_of_planning_and_preparing_is_constant(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    counts = []
    for number, length in ((1, 2), (20, 5)):
        with Queries(connection) as planned:
            book(tenant, ada, recurrence=f"FREQ=DAILY;COUNT={length}", **times(number))
        rows = claim_due("calendar", 100)
        with Queries(connection) as prepared:
            sends, unsent = prepare_batch(rows, now=timezone.now())
        assert (len(sends), unsent) == (length, [])
        counts.append((len(planned), len(prepared)))

    assert counts[0] == counts[1]


def test_one_additional_query_without_connections(tenant: Tenant, ada: Any, memory: Any) -> None:
    book(tenant, ada)
    with Queries(connection) as queries:
        book(tenant, ada, **times(2))

    mine = [
        query["sql"] for query in queries if "NOT calendar.provider = 'service'" in query["sql"]
    ]
    assert len(mine) == 1
    assert not any("writtenevent" in query["sql"] for query in queries)


# --- What others did there ------------------------------------------------------------------------
def test_reschedule_keeps_properties_of_other_clients(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada)
    write()
    path = path_of(booking)
    answered = memory.text(path).replace("PARTSTAT=NEEDS-ACTION", "PARTSTAT=ACCEPTED")
    memory.set(path, change(answered, categories=["Important"]))

    move(tenant, booking)
    write()

    text = memory.text(path)
    assert shown(text)[1:3] == span_of(times(2))
    assert "CATEGORIES:Important" in text
    # The guest had accepted another time.
    assert "PARTSTAT=NEEDS-ACTION" in text.replace("\r\n ", "")


def test_unchanged_event_is_not_written_again(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    book(tenant, ada)
    write()
    memory.calls.clear()
    delivery = Delivery.objects.get(type="calendar")

    redeliver(delivery, now=timezone.now())
    write()

    assert [call.split()[0] for call in memory.calls] == ["read"]


def test_concurrent_change_is_read_and_retried(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    """Between our look and our write: look again, a few times, then later."""
    booking = book(tenant, ada)
    write()
    path = path_of(booking)
    rounds: list[str] = []

    def change_concurrently(call: str) -> None:
        if call.startswith("put") and len(rounds) < most:
            rounds.append(call)
            memory.set(path, change(memory.text(path), categories=[f"Round {len(rounds)}"]))

    memory.before, most = change_concurrently, 2
    move(tenant, booking)
    write()
    assert "CATEGORIES:Round 2" in memory.text(path)
    assert shown(memory.text(path))[1:3] == span_of(times(2))

    most = 5
    move(tenant, booking, **times(3))
    write()
    assert deliveries()[-1] == (
        "rescheduled",
        "scheduled",
        "The event was changed at the provider during every attempt to write it.",
    )
    assert list(Endpoint.objects.all()) == []

    memory.before = lambda call: None
    make_due()
    write()
    assert shown(memory.text(path))[1:3] == span_of(times(3))


def test_cancelled_booking_is_removed_despite_remote_changes(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada)
    write()
    memory.set(path_of(booking), change(memory.text(path_of(booking)), summary="Mine"))
    act(tenant, booking, "cancel")
    write()

    assert memory.objects == {}


def test_already_removed_event(tenant: Tenant, ada: Any, work: Calendar, memory: Any) -> None:
    booking = book(tenant, ada)
    moved = book(tenant, ada, **times(5))
    write()
    memory.objects.clear()
    act(tenant, booking, "cancel")
    move(tenant, moved)
    write()

    assert list(memory.objects) == [path_of(moved)]
    assert {state for _, state, _ in deliveries()} == {"delivered"}


def test_foreign_event_at_the_same_path_is_kept(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    """It is nobody's to write over; nor to remove."""
    booking = book(tenant, ada)
    path = path_of(booking)
    foreign = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:x\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    memory.set(path, foreign)
    write()
    assert deliveries() == [
        ("confirmed", "failed", "Another event already uses this address at the provider.")
    ]

    act(tenant, booking, "cancel")
    write()
    assert memory.text(path) == foreign
    assert copies() == [("removed", "")]


def test_event_imported_from_a_mail_is_found_by_uid(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada)
    uid = f"{uid_of(booking)}@bookings.example.com"
    text = f"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:{uid}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    etag = memory.set("/ada/work/invitation.ics", text)
    ExternalObject.objects.create(
        connection=work.connection, href="/ada/work/invitation.ics", uid=uid, etag=etag
    )
    write()

    assert list(memory.objects) == ["/ada/work/invitation.ics"]
    assert shown(memory.text("/ada/work/invitation.ics"))[1:3] == span_of(times())


# --- Trouble --------------------------------------------------------------------------------------
TROUBLED = [
    ("unauthorized", 401, False),
    ("no_write_access", 403, False),
    ("not_a_calendar", 404, False),
    ("rate_limited", 429, True),
    ("server_error", 500, True),
    ("bad_answer", 200, True),
    ("unreachable", None, True),
    ("address_refused", None, False),
]


@pytest.mark.parametrize(("code", "status", "is_servers"), TROUBLED)
def test_write_error_is_retried(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any, code: str, status: Any, is_servers: bool
) -> None:
    """It is tried again; what only a person mends is said of the connection."""
    memory.before = fail_at("put", ProviderError(code, status=status))
    booking = book(tenant, ada)
    write()

    text = PROVIDER_ERRORS[code]
    assert deliveries() == [("confirmed", "scheduled", text)]
    assert copies() == [("pending", text)]
    assert list(Attempt.objects.values_list("response_code", "error", "excerpt")) == [
        (status, text, "")
    ]
    assert list(Endpoint.objects.values_list("address", "failures")) == (
        [("https://dav.example.com:443", 1)] if is_servers else []
    )
    said = code if code in {"unauthorized", "no_write_access", "not_a_calendar"} else ""
    said = "address_refused" if code == "address_refused" else said
    assert Connection.objects.get().problem == said

    memory.before = lambda call: None
    make_due()
    write()
    assert list(memory.objects) == [path_of(booking)]
    assert copies() == [("written", "")]


def test_retry_after_of_the_server(tenant: Tenant, ada: Any, work: Calendar, memory: Any) -> None:
    memory.before = fail_at("put", ProviderError("rate_limited", status=429, retry_after=8))
    book(tenant, ada)
    write()

    row = Delivery.objects.get(type="calendar")
    attempt = Attempt.objects.get()
    assert row.next_at - attempt.at >= timedelta(seconds=8)


def test_unreadable_event_at_the_provider(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada)
    write()
    memory.set(path_of(booking), "BEGIN:VCALENDAR garbage")
    move(tenant, booking)
    write()

    assert deliveries()[-1] == (
        "rescheduled",
        "scheduled",
        "The event at the provider can't be read.",
    )


def test_unreadable_secret(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any, settings: Any
) -> None:
    book(tenant, ada)
    settings.ENCRYPTION_KEYS = ["another"]
    write()

    assert deliveries() == [("confirmed", "scheduled", PROVIDER_ERRORS["secret_unreadable"])]
    assert Connection.objects.get().problem == "secret_unreadable"
    assert memory.calls == []


def test_calendar_disconnected_before_the_write(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada)
    deleted = book(tenant, ada, **times(4))
    act(tenant, deleted, "complete")
    tenant.delete(f"/bookings/{deleted['id']}")
    App.objects.update(archived_at=None)
    Connection.objects.all().delete()
    write()

    assert deliveries(booking=booking["id"]) == [
        ("confirmed", "skipped", "The calendar is no longer connected.")
    ]
    assert deliveries(booking=deleted["id"]) == [
        ("confirmed", "cancelled", "The booking was deleted.")
    ]
    assert memory.calls == []


def test_no_write_for_an_archived_app(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    book(tenant, ada)
    App.objects.update(archived_at=timezone.now())
    write()

    assert deliveries() == [("confirmed", "skipped", "The app is archived.")]


def test_writes_of_a_booking_are_in_order(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    """Behind one that failed, and behind one that a worker has in hand; another's do not."""
    memory.before = fail_at("put", ProviderError("server_error", status=500))
    booking = book(tenant, ada)
    write()
    memory.before = lambda call: None
    move(tenant, booking)
    other = book(tenant, ada, **times(5))
    write()
    assert list(memory.objects) == [path_of(other)]

    make_due()
    write()
    assert [state for _, state, _ in deliveries(booking=booking["id"])] == ["delivered"] * 2

    first, second = Delivery.objects.filter(booking=booking["id"], type="calendar").order_by("id")
    redeliver(second, now=timezone.now())
    lease = {"state": "sending", "lease_token": second.id, "finished_at": None}
    until = timezone.now() + timedelta(seconds=30)
    Delivery.objects.filter(id=second.id).update(next_at=until, **lease)
    redeliver(first, now=timezone.now())
    assert write() == 0

    Delivery.objects.filter(id=second.id).update(next_at=timezone.now())
    assert write() == 2


def test_mails_and_calls_do_not_wait_for_calendars(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    memory.before = fail_at("put", ProviderError("unreachable"))
    book(tenant, ada)
    write()

    dispatcher.run_dispatcher("email")

    states = Delivery.objects.filter(type="email").values_list("state", flat=True)
    assert set(states) == {"delivered"}
    assert Delivery.objects.count() == 3


# --- Connected later ------------------------------------------------------------------------------
def test_backfill_of_a_newly_connected_calendar(tenant: Tenant, ada: Any, memory: Any) -> None:
    """Gets what is still to come, and once."""
    first, second = book(tenant, ada), book(tenant, ada, **times(2))
    off = book(tenant, ada, **times(3))
    act(tenant, off, "cancel")
    book(tenant, ada, graph="confirm_decline", **times(4))
    over = book(tenant, ada, **times(-2))
    work = connect(ada)

    assert backfill(work, now=timezone.now()) == 2
    assert backfill(work, now=timezone.now()) == 0
    write()
    assert backfill(work, now=timezone.now()) == 0

    assert set(memory.objects) == {path_of(first), path_of(second)}
    assert path_of(over) not in memory.objects
    assert deliveries() == [("write", "delivered", "")] * 2
    assert delivery_faults() == []


def test_backfill_of_another_primary_calendar(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada)
    write()
    Calendar.objects.filter(id=work.id).update(provider_primary=False)
    home = connect(ada, OTHER)

    assert backfill(home, now=timezone.now()) == 2
    write()

    assert set(memory.objects) == {path_of(booking, "/ada/home/")}
    assert copies() == [("removed", ""), ("written", "")]


def test_backfill_of_companion_events(tenant: Tenant, ada: Any, memory: Any) -> None:
    ben = tenant.make_resource("Ben")
    project = tenant.make_project(
        ada["id"], ben["id"], availability={"mode": "mutual", "length": None}
    )
    assert tenant.book(project_id=project["id"], **times()).status == 201

    calendar = connect(ben)

    assert backfill(calendar, now=timezone.now()) == 1
    assert ADDRESS in calendar.provider_id


def test_query_count_of_backfill_is_constant(tenant: Tenant, ada: Any, memory: Any) -> None:
    book(tenant, ada, recurrence="FREQ=DAILY;COUNT=2")
    ben = tenant.make_resource("Ben")
    book(tenant, ben, recurrence="FREQ=DAILY;COUNT=9")
    counts = []
    for resource in (ada, ben):
        calendar = connect(resource, f"https://dav.example.com/{resource['id']}/")
        with Queries(connection) as queries:
            backfill(calendar, now=timezone.now())
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_update_is_written_and_removes_the_old_guest(
    tenant: Tenant, ada: Any, work: Calendar, memory: Any
) -> None:
    booking = book(tenant, ada)
    path = path_of(booking)
    write()

    tenant.put(f"/bookings/{booking['id']}", {"meta": {"a": 1}})
    unwritten = write()
    body = {"what": "Cleaning", "where": "Room 2", "customer": {"email": "new@example.com"}}
    answer = tenant.put(f"/bookings/{booking['id']}", body)

    assert (answer.status, unwritten, write()) == (200, 0, 1)
    [event] = events_of(memory.text(path))
    assert shown(memory.text(path)) == (
        f"{uid_of(booking)}@bookings.example.com",
        *span_of(times()),
        "Cleaning",
        ["new@example.com"],
    )
    assert (str(event["LOCATION"]), int(event["SEQUENCE"])) == ("Room 2", 2)


def test_booking_of_several_units_is_written_once(tenant: Tenant, memory: Any) -> None:
    bikes = tenant.make_resource("Bikes", capacity=3)
    connect(bikes)
    booking = book(tenant, bikes, quantity=3)

    assert write() == 1
    assert shown(memory.text(path_of(booking)))[3] == "3 × Meeting"
    assert copies() == [("written", "")]

    assert tenant.put(f"/bookings/{booking['id']}", {"quantity": 2}).status == 200
    assert write() == 1
    assert shown(memory.text(path_of(booking)))[3] == "2 × Meeting"
