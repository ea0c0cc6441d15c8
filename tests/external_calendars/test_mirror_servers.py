"""Bookings as written to real servers, and as other clients see and change them there."""

import signal
import threading
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import unquote

import pytest
from django.utils import timezone

from availability.models import Calendar
from external_calendars.models import Connection, WrittenEvent
from external_calendars.providers.base import PROVIDER_ERRORS
from external_calendars.sync.run import SYNCED
from notifications.models import Delivery, Endpoint
from notifications.outbox.dispatcher import run_dispatcher
from tests.bookings.booking_drafts import uid_of
from tests.external_calendars.front import Answer
from tests.external_calendars.killed_worker import Worker
from tests.external_calendars.memory import look as look_there
from tests.external_calendars.mirrored import (
    change,
    connect,
    copies,
    deliveries,
    make_due,
    shown,
    write,
)
from tests.external_calendars.servers import CalendarServer, Collection
from tests.external_calendars.test_mirror import _at_home, act, ada, book, move, span_of, times
from tests.sinks import Call
from tests.world import Tenant

__all__ = ["_at_home", "ada"]
pytestmark = pytest.mark.django_db(transaction=True)


# Where the front answers in the server's place, the second server adds nothing.
one_server = pytest.mark.parametrize(
    "server",
    ["radicale", *(pytest.param(name, marks=pytest.mark.deep) for name in ("xandikos", "cyrus"))],
    indirect=True,
)


@pytest.fixture
def home(server: CalendarServer) -> Collection:
    """An empty calendar, on each of the servers."""
    collection = server.make_calendar()
    server.front.forget()
    return collection


@pytest.fixture
def work(ada: Any, home: Collection) -> Calendar:
    return connect(ada, home.access)


def name_of(booking: Any) -> str:
    return f"{uid_of(booking)}@bookings.example.com.ics"


def names_in(home: Collection) -> list[str]:
    return [unquote(name) for name in home.names()]


def text_of(home: Collection, booking: Any) -> str:
    text = home.get(name_of(booking))
    assert text is not None
    return text


def look(calendar: Calendar) -> None:
    """As a worker does it, at once."""
    assert look_there(Connection.objects.get(calendar=calendar)) == SYNCED


def test_write_is_one_request(tenant: Tenant, ada: Any, work: Calendar, home: Collection) -> None:
    """Another one if the server does not return the ETag."""
    booking = book(tenant, ada)
    with home.server.front.counted() as requests:
        write()

    assert [line.split()[0] for line in requests] in (["PUT"], ["PUT", "PROPFIND"])
    assert names_in(home) == [name_of(booking)]
    assert shown(text_of(home, booking)).uid == f"{uid_of(booking)}@bookings.example.com"
    assert unquote(WrittenEvent.objects.get().href) == home.path + name_of(booking)
    with home.server.front.counted() as requests:
        look(work)
        assert write() == 0
    assert not any(line.startswith(("PUT", "GET", "DELETE")) for line in requests)


def test_reschedule_keeps_properties_of_other_clients(
    tenant: Tenant, ada: Any, work: Calendar, home: Collection
) -> None:
    booking = book(tenant, ada)
    write()
    answered = text_of(home, booking).replace("PARTSTAT=NEEDS-ACTION", "PARTSTAT=ACCEPTED")
    home.put(name_of(booking), change(answered, categories=["Important"]))

    move(tenant, booking)
    write()

    text = text_of(home, booking)
    assert shown(text)[1:4] == (*span_of(times(2)), "Meeting")
    assert "CATEGORIES:Important" in text
    # The guest had accepted another time.
    assert "PARTSTAT=NEEDS-ACTION" in text.replace("\r\n ", "").replace("\n ", "")
    row = WrittenEvent.objects.get()
    assert row.etag == home.etag(name_of(booking))


def test_event_imported_from_a_mail_is_taken_over(
    tenant: Tenant, ada: Any, work: Calendar, home: Collection
) -> None:
    """The owner took it over under another name: a UID is there once, so that one is taken."""
    booking = book(tenant, ada)
    write()
    text = text_of(home, booking)
    home.delete(name_of(booking))
    WrittenEvent.objects.update(state="pending", href="", etag="")
    home.put("invitation.ics", change(text, summary="From a mail"))
    look(work)
    move(tenant, booking)
    write()

    assert names_in(home) == ["invitation.ics"]
    assert shown(home.get("invitation.ics") or "")[1:4] == (*span_of(times(2)), "Meeting")


# --- The server in trouble ------------------------------------------------------------------------
SAID = [
    (Answer(401), PROVIDER_ERRORS["unauthorized"], False),
    (Answer(403), PROVIDER_ERRORS["no_write_access"], False),
    (Answer(429, headers={"Retry-After": "8"}), PROVIDER_ERRORS["rate_limited"], True),
    (Answer(500), "The server returned 500.", True),
]


@one_server
@pytest.mark.parametrize(("answer", "text", "is_servers"), SAID)
def test_write_error_is_retried(
    tenant: Tenant,
    ada: Any,
    work: Calendar,
    home: Collection,
    answer: Answer,
    text: str,
    is_servers: bool,
) -> None:
    booking = book(tenant, ada)
    home.server.front.answer = lambda call: answer if call.method == "PUT" else None
    write()

    assert deliveries() == [("confirmed", "scheduled", text)]
    assert copies() == [("pending", text)]
    assert Endpoint.objects.count() == is_servers
    assert names_in(home) == []

    home.server.front.answer = lambda call: None
    Endpoint.objects.all().delete()
    make_due()
    write()
    assert names_in(home) == [name_of(booking)]


def test_wrong_password_is_reported(tenant: Tenant, ada: Any, home: Collection) -> None:
    calendar = connect(ada, home.access._replace(password="wrong"))
    book(tenant, ada)
    write()

    assert deliveries() == [("confirmed", "scheduled", PROVIDER_ERRORS["unauthorized"])]
    assert Connection.objects.get(calendar=calendar).problem == "unauthorized"


def test_pending_writes_continue_with_the_right_password(
    tenant: Tenant, ada: Any, home: Collection
) -> None:
    """Connected again, nobody waits for the next try of the wrong one; also behind a breaker."""
    calendar = connect(ada, home.access._replace(password="wrong"))
    booking = book(tenant, ada)
    write()
    Endpoint.objects.create(
        address=home.server.url, failures=20, open_until=timezone.now() + timedelta(hours=1)
    )
    assert (write(), names_in(home)) == (0, [])

    answer = tenant.put(f"/calendars/{calendar.id}", {"password": home.access.password})

    assert answer.status == 200, answer.json
    assert write() == 1
    assert names_in(home) == [name_of(booking)]
    assert deliveries() == [("confirmed", "delivered", "")]
    assert not Endpoint.objects.exists()


@one_server
def test_server_is_asked_outside_the_transaction_of_if_match(
    tenant: Tenant, ada: Any, home: Collection
) -> None:
    path = f"/calendars/{connect(ada, home.access).id}"
    etag = tenant.get(path).headers["ETag"]
    change = {"name": "Home", "password": home.access.password}
    calls = len(home.server.front.calls)

    stale = tenant.put(path, change, **{"If-Match": '"other"'})
    calls_in_vain = len(home.server.front.calls)
    changed = tenant.put(path, change, **{"If-Match": etag})

    assert (stale.status, calls_in_vain) == (412, calls)
    assert (changed.status, changed.data["name"]) == (200, "Home")
    assert len(home.server.front.calls) > calls


@one_server
def test_missing_write_access_is_reported_until_a_write_succeeds(
    tenant: Tenant, ada: Any, work: Calendar, home: Collection
) -> None:
    """A look, which goes through all the while, knows nothing of it."""
    book(tenant, ada)
    home.server.front.answer = lambda call: Answer(403) if call.method == "PUT" else None
    write()
    said = Connection.objects.get(calendar=work)
    assert said.problem == "no_write_access"
    since = said.problem_since

    look(work)

    said.refresh_from_db()
    assert (said.problem, said.problem_since, said.failures) == ("no_write_access", since, 0)
    answer = tenant.post(f"/calendars/{work.id}/sync")
    assert (answer.status, answer.data["problem"]) == (200, None)  # somebody may have mended it
    make_due()
    write()
    said.refresh_from_db()
    assert said.problem == "no_write_access"
    home.server.front.answer = lambda call: None
    make_due()
    write()
    said.refresh_from_db()
    assert (said.problem, said.problem_since, len(names_in(home))) == ("", None, 1)


def test_concurrent_change_is_read_and_retried(
    tenant: Tenant, ada: Any, work: Calendar, home: Collection
) -> None:
    """412 from the server itself: what was written meanwhile is read, and kept."""
    booking = book(tenant, ada)
    write()
    name, quicker = name_of(booking), change(text_of(home, booking), categories=["Quicker"])
    met: list[str] = []

    def change_concurrently(call: Call) -> None:
        if call.method == "PUT" and not met:
            met.append(unquote(call.path))
            home.put(name, quicker)

    home.server.front.answer = change_concurrently
    move(tenant, booking)
    write()

    assert met == [home.path + name_of(booking)]
    assert "CATEGORIES:Quicker" in text_of(home, booking)
    assert shown(text_of(home, booking))[1:3] == span_of(times(2))
    assert deliveries()[-1] == ("rescheduled", "delivered", "")


@one_server
def test_a_redirect_to_a_private_address_is_not_followed(
    tenant: Tenant, ada: Any, work: Calendar, home: Collection
) -> None:
    book(tenant, ada)
    away = Answer(302, headers={"Location": "http://10.0.0.1/"})
    home.server.front.answer = lambda call: away if call.method == "PUT" else None
    with home.server.front.counted() as requests:
        write()

    assert [line.split()[0] for line in requests] == ["PUT"]
    assert [state for _, state, _ in deliveries()] == ["scheduled"]
    assert names_in(home) == []


# --- SIGKILL --------------------------------------------------------------------------------------
@pytest.mark.postgresql
@one_server
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize(
    "action", ["book", *(pytest.param(name, marks=pytest.mark.deep) for name in ("move", "cancel"))]
)
def test_killed_worker_leaves_one_event(
    tenant: Tenant, ada: Any, work: Calendar, home: Collection, action: str, is_done: bool
) -> None:
    """Before its write has reached the server, and right after."""
    booking = book(tenant, ada)
    if action != "book":
        write()
    if action == "move":
        move(tenant, booking)
    if action == "cancel":
        act(tenant, booking, "cancel")
    name = name_of(booking)  # read here: the server's thread has no database connection
    worker: list[Worker] = []
    started = threading.Event()

    def kill(call: Call) -> Answer | None:
        if call.method not in ("PUT", "DELETE"):
            return None
        started.wait(30)
        if is_done:
            known = {"If-None-Match": "*"} if action == "book" else {}
            type_ = {"Content-Type": "text/calendar; charset=utf-8"}
            answer = home.request(call.method, name, data=call.body, headers={**known, **type_})
            answer.raise_for_status()
        worker[0].kill()
        return Answer(500)

    home.server.front.answer = kill
    worker.append(Worker(partial(run_dispatcher, "calendar")))
    started.set()
    assert worker[0].wait() == -signal.SIGKILL
    home.server.front.answer = lambda call: None
    last = Delivery.objects.filter(type="calendar").latest("id")
    assert (last.state, last.tries) == ("sending", 1)

    make_due()
    write()

    assert names_in(home) == ([] if action == "cancel" else [name_of(booking)])
    if action != "cancel":
        expected = times(2) if action == "move" else times()
        assert shown(text_of(home, booking))[1:3] == span_of(expected)
        assert WrittenEvent.objects.get().etag == home.etag(name_of(booking))
    last.refresh_from_db()
    assert (last.state, last.lapses) == ("delivered", 1)
