"""Who is erased is erased there too; who has the event in a calendar gets no entry by mail."""

from typing import Any

import pytest
from django.utils import timezone

from availability.models import Calendar
from external_calendars.models import Connection, ExternalObject
from external_calendars.sync.inbound_changes import apply_inbound_changes
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from tests.bookings.group_world import ANN, BOB, make_group, seat_in
from tests.delivery_faults import delivery_faults
from tests.external_calendars.mirrored import (
    Memory,
    change,
    connect,
    copies,
    deliveries,
    look,
    shown,
    write,
)
from tests.external_calendars.test_mirror import (
    MARTY,
    _at_home,
    act,
    ada,
    book,
    memory,
    path_of,
    times,
    work,
)
from tests.sinks import MailSink, mail_sink
from tests.world import Tenant

__all__ = ["_at_home", "ada", "memory", "work"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mails(settings: Any) -> Any:
    """An SMTP server that this process sends its mails to."""
    with mail_sink() as sink:
        settings.EMAIL_BACKEND = "notifications.mail.smtp_backend.SmtpBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", sink.port
        yield sink


# --- Erased ---------------------------------------------------------------------------------------
def test_erasure_rewrites_the_event(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    """With everything: what a server or a person put beside them too."""
    booking = book(tenant, ada, description="Bring your card.")
    write()
    path = path_of(booking)
    memory.set(path, change(memory.text(path), comment="Marty is late"))
    look(work, memory.objects)

    counts = tenant.post("/customers/erase", {"email": MARTY["email"]}).data
    assert (counts["bookings"], set(counts)) == (
        1,
        {"bookings", "deliveries", "log_entries", "suppressions", "unverified_bookings"},
    )
    assert ExternalObject.objects.get().text == ""
    write()

    text = memory.text(path)
    assert shown(text).guests == []
    assert "arty" not in text and "0100" not in text and "ORGANIZER" not in text
    assert deliveries() == [("confirmed", "delivered", ""), ("write", "delivered", "")]
    assert copies() == [("written", "")]
    assert delivery_faults() == []


def test_erasure_of_a_seat_keeps_other_guests(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    group = make_group(tenant, ada, **times())
    seat_in(tenant, group, ANN)
    seat_in(tenant, group, BOB)
    write()
    tenant.post("/customers/erase", {"email": ANN["email"]})
    write()

    assert shown(memory.text(path_of(group))).guests == ["bob@example.com"]


def test_erasure_writes_no_missing_events(tenant: Tenant, ada: Any, memory: Memory) -> None:
    book(tenant, ada)
    work = connect(ada)
    cancelled = book(tenant, ada, **times(2))
    write()
    act(tenant, cancelled, "cancel")
    write()
    begin = Delivery.objects.count()

    tenant.post("/customers/erase", {"email": MARTY["email"]})

    assert Delivery.objects.count() == begin
    assert memory.objects == {}
    assert work.provider_primary is True


def test_erasure_does_not_restore_a_removed_event(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    book(tenant, ada)
    write()
    memory.objects.clear()
    look(work, memory.objects)
    apply_inbound_changes(work.connection, now=timezone.now())

    tenant.post("/customers/erase", {"email": MARTY["email"]})

    assert write() == 0
    assert [state for state, _ in copies()] == ["removed_there"]


def test_erasure_rewrites_the_event_of_a_deleted_booking(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = book(tenant, ada)
    write()
    act(tenant, booking, "complete")
    assert tenant.delete(f"/bookings/{booking['id']}").status == 204

    tenant.post("/customers/erase", {"email": MARTY["email"]})
    write()

    assert "arty" not in memory.text(path_of(booking))


# --- Mails ----------------------------------------------------------------------------------------
def entries(mails: MailSink) -> dict[str, list[str]]:
    """By recipient: the methods of the calendar entries that the mails carried."""
    found: dict[str, list[str]] = {}
    for mail in mails.mails:
        parts = [
            part.get_param("method")
            for part in mail.message.walk()
            if part.get_content_type() == "text/calendar"
        ]
        found.setdefault(mail.to[0], []).extend(parts)
    return found


@pytest.mark.parametrize(
    ("invites", "invite", "customers", "owners"),
    [
        (True, True, [], []),
        (True, False, ["REQUEST", "CANCEL"], []),
        (False, True, ["REQUEST", "CANCEL"], []),
    ],
)
def test_mail_has_no_file_if_the_provider_has_the_event(
    tenant: Tenant,
    ada: Any,
    memory: Memory,
    mails: MailSink,
    invites: bool,
    invite: bool,
    customers: list[str],
    owners: list[str],
) -> None:
    connect(ada)
    Connection.objects.update(last_write_succeeded=True, last_write_invited=invites)
    booking = book(tenant, ada, invite=invite)
    act(tenant, booking, "cancel")
    while run_dispatcher("email"):  # a person's mails leave one after another
        pass

    assert entries(mails) == {"marty@example.com": customers, "ada@example.com": owners}


def test_mails_have_files_without_a_writable_calendar(
    tenant: Tenant, ada: Any, memory: Memory, mails: MailSink
) -> None:
    connect(ada, is_primary=False)
    Connection.objects.update(last_write_succeeded=True, last_write_invited=True)
    book(tenant, ada)
    while run_dispatcher("email"):  # a person's mails leave one after another
        pass

    assert entries(mails) == {"marty@example.com": ["REQUEST"], "ada@example.com": ["REQUEST"]}


def test_erasure_removes_a_former_address(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory
) -> None:
    booking = book(tenant, ada)
    write()
    tenant.put(f"/bookings/{booking['id']}", {"customer": {"email": "new@example.com"}})
    former = [row.content.get("former") for row in Delivery.objects.filter(kind="updated")]
    write()

    tenant.post("/customers/erase", {"email": "new@example.com"})

    rows = Delivery.objects.filter(type="calendar")
    assert former.count(["marty@example.com"]) == 1
    assert [row for row in rows if "former" in row.content] == []
