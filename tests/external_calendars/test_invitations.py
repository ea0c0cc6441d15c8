"""Who is invited by a calendar server, and who by e-mail: on Xandikos, a server that schedules."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone
from xandikos.store import STORE_TYPE_SCHEDULE_INBOX
from xandikos.store.git import TreeGitStore

from availability.models import Calendar, Resource
from external_calendars.event_formats.ical import read_invitations
from external_calendars.mirror.server_invitations import invitation_problem
from external_calendars.models import Connection, WrittenEvent
from external_calendars.services import connect_calendar
from notifications.outbox.dispatcher import run_dispatcher
from tests.external_calendars.front import Answer
from tests.external_calendars.ical_homes import name_user
from tests.external_calendars.mirrored import copies, events_of, make_due, write
from tests.external_calendars.servers import CalendarServer, Collection
from tests.external_calendars.test_mirror import _at_home, act, book, move, times
from tests.external_calendars.test_mirror_privacy import entries, mails
from tests.external_calendars.test_mirror_servers import look, name_of, text_of
from tests.sinks import MailSink
from tests.world import Tenant

__all__ = ["_at_home", "mails"]
pytestmark = pytest.mark.django_db(transaction=True)

ZOE = {"name": "Zoe", "email": "zoe@guests.example"}
STRANGER = {"name": "Marty McFly", "email": "marty@example.com"}


@pytest.fixture
def home(xandikos: CalendarServer) -> Iterator[Collection]:
    """The calendar of an account with two addresses, on a server that Zoe uses, too."""
    zoe, collection = xandikos.make_user(), xandikos.make_calendar()
    inbox = TreeGitStore.create(str(xandikos.folder / "store" / zoe / "inbox"))
    inbox.set_type(STORE_TYPE_SCHEDULE_INBOX)
    name_user(xandikos, zoe, ZOE["email"])
    name_user(xandikos, collection.user, "Ada@dav.example.com", "Reception@harbour.example")
    xandikos.front.forget()
    yield collection
    name_user(xandikos, zoe)  # the server is shared by tests


def make_resource(tenant: Tenant, email: str = "desk@harbour.example") -> Any:
    return tenant.make_resource("Harbour Dental", email=email)


def connected(resource: Any, home: Collection) -> Calendar:
    return connect_calendar(
        resource=Resource.objects.get(id=resource["id"]),
        provider="caldav",
        access=home.access,
        given={},
        now=timezone.now(),
    )


def send_mails() -> None:
    while run_dispatcher("email"):  # a person's mails leave one after another
        pass


def organizer_of(home: Collection, booking: Any) -> str:
    [event] = events_of(text_of(home, booking))
    return str(event["ORGANIZER"])


# --- Organizer ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("email", "organizer"),
    [
        ("desk@harbour.example", "mailto:Ada@dav.example.com"),
        ("reception@Harbour.example", "mailto:Reception@harbour.example"),
    ],
)
def test_organizer_is_an_address_of_the_account(
    tenant: Tenant, home: Collection, email: str, organizer: str
) -> None:
    resource = make_resource(tenant, email)
    calendar = connected(resource, home)
    booking = book(tenant, resource, customer=ZOE)
    write()

    assert calendar.connection.user_addresses == [
        "Ada@dav.example.com",
        "Reception@harbour.example",
    ]
    assert organizer_of(home, booking) == organizer
    assert WrittenEvent.objects.get().invitations == {ZOE["email"]: "2.0"}


# --- Calendar files -------------------------------------------------------------------------------
def test_mail_has_the_file_if_server_does_not_know_its_user(
    tenant: Tenant, xandikos: CalendarServer, mails: MailSink
) -> None:
    """It does not know who its user is."""
    home = xandikos.make_calendar()
    resource = make_resource(tenant)
    calendar = connected(resource, home)
    booking = book(tenant, resource)
    write()
    act(tenant, booking, "cancel")
    send_mails()

    assert (calendar.provider_invites, calendar.connection.user_addresses) == (True, [])
    assert entries(mails)["marty@example.com"] == ["REQUEST", "CANCEL"]


def test_mail_has_the_file_if_organizer_is_not_the_account(
    tenant: Tenant, home: Collection, mails: MailSink
) -> None:
    resource = make_resource(tenant)
    connected(resource, home)
    Connection.objects.update(user_addresses=[])
    book(tenant, resource, customer=ZOE)
    write()
    book(tenant, resource, customer=ZOE, **times(2))
    send_mails()

    assert WrittenEvent.objects.first().invitations == {ZOE["email"]: ""}
    assert entries(mails)[ZOE["email"]] == ["REQUEST", "REQUEST"]


def test_mail_has_no_file_if_the_server_invites(
    tenant: Tenant, home: Collection, mails: MailSink
) -> None:
    """The first mail has one: nothing is known of the calendar then."""
    resource = make_resource(tenant)
    connected(resource, home)
    first = book(tenant, resource, customer=ZOE)
    send_mails()
    write()
    of_first = entries(mails)
    move(tenant, first, **times(3))
    book(tenant, resource, customer=ZOE, **times(2))
    send_mails()

    assert of_first == {ZOE["email"]: ["REQUEST"], "desk@harbour.example": ["REQUEST"]}
    assert entries(mails) == of_first
    assert len(mails.mails) == 6


def test_mail_has_the_file_if_the_server_does_not_invite(
    tenant: Tenant, home: Collection, mails: MailSink
) -> None:
    resource = make_resource(tenant)
    connected(resource, home)
    booking = book(tenant, resource, customer=ZOE)
    write()
    stranger = book(tenant, resource, customer=STRANGER, **times(2))
    send_mails()
    before = entries(mails)
    write()
    act(tenant, booking, "cancel")
    act(tenant, stranger, "cancel")
    send_mails()

    problem = "it does not accept the e-mail address"
    assert copies() == [
        ("written", ""),
        ("written", f"The calendar server did not invite the customer: {problem}."),
    ]
    assert before == {ZOE["email"]: [], "marty@example.com": [], "desk@harbour.example": []}
    assert entries(mails) == {**before, "marty@example.com": ["CANCEL"]}
    record = tenant.get(f"/bookings/{stranger['id']}?include=provider_event").data
    assert record["provider_event"]["reason"].endswith(f"{problem}.")


def test_mails_have_files_while_the_server_is_down(
    tenant: Tenant, home: Collection, mails: MailSink
) -> None:
    resource = make_resource(tenant)
    connected(resource, home)
    book(tenant, resource, customer=ZOE)
    write()
    home.server.front.answer = lambda call: Answer(502)
    book(tenant, resource, customer=ZOE, **times(2))
    write()
    send_mails()
    down = entries(mails)
    home.server.front.forget()
    make_due()
    write()
    book(tenant, resource, customer=ZOE, **times(4))
    send_mails()

    assert down == {
        ZOE["email"]: ["REQUEST", "REQUEST"],
        "desk@harbour.example": ["REQUEST", "REQUEST"],
    }
    assert entries(mails) == down


def test_failed_reading_of_a_written_event_does_not_repeat_the_write(
    tenant: Tenant, home: Collection
) -> None:
    resource = make_resource(tenant)
    connected(resource, home)
    book(tenant, resource, customer=ZOE)
    home.server.front.answer = lambda call: Answer(502) if call.method == "GET" else None
    write()

    assert copies() == [("written", "")]
    connection = Connection.objects.get()
    assert (connection.last_write_succeeded, connection.last_write_invited) == (True, False)


def test_sync_stores_later_schedule_status(tenant: Tenant, home: Collection) -> None:
    resource = make_resource(tenant)
    calendar = connected(resource, home)
    booking = book(tenant, resource, customer=ZOE)
    write()
    text = text_of(home, booking).replace("\r\n ", "").replace("\n ", "")
    later = text.replace("2.0;Success", "5.1;Service unavailable")
    home.fill({name_of(booking): later})  # a PUT would make the server send again
    look(calendar)

    row = WrittenEvent.objects.get()
    assert (row.state, row.reason, row.invitations) == (
        "written",
        "The calendar server did not invite the customer: it could not deliver the invitation.",
        {ZOE["email"]: "5.1"},
    )


def test_erasure_removes_invitations(tenant: Tenant, home: Collection) -> None:
    resource = make_resource(tenant)
    connected(resource, home)
    booking = book(tenant, resource, customer=ZOE)
    write()
    act(tenant, booking, "cancel")
    write()
    before = WrittenEvent.objects.get().invitations
    tenant.post("/customers/erase", {"email": ZOE["email"]})

    assert (before, WrittenEvent.objects.get().invitations) == ({ZOE["email"]: "2.0"}, {})


# --- Texts ----------------------------------------------------------------------------------------
EVENT = """BEGIN:VCALENDAR
BEGIN:VEVENT
UID:a
{attendees}
END:VEVENT
END:VCALENDAR
"""


@pytest.mark.parametrize(
    ("attendees", "invitations"),
    [
        ("ATTENDEE;SCHEDULE-STATUS=1.1:mailto:Zoe@Guests.example", {ZOE["email"]: "1.1"}),
        ('ATTENDEE;SCHEDULE-STATUS="1.2,5.1":mailto:zoe@guests.example', {ZOE["email"]: "5.1"}),
        (
            'ATTENDEE;SCHEDULE-STATUS="2.0;Success":mailto:zoe@guests.example',
            {ZOE["email"]: "2.0"},
        ),
        ("ATTENDEE;SCHEDULE-STATUS=yes:mailto:zoe@guests.example", {ZOE["email"]: ""}),
        ("ATTENDEE:mailto:zoe@guests.example", {ZOE["email"]: ""}),
        ("ATTENDEE;SCHEDULE-STATUS=1.1:mailto:other@guests.example", {}),
        ("ATTENDEE;SCHEDULE-STATUS=1.1:urn:uuid:7", {}),
        ("SUMMARY:Nobody", {}),
    ],
)
def test_schedule_status_of_an_attendee(attendees: str, invitations: dict[str, str]) -> None:
    text = EVENT.format(attendees=attendees)

    assert read_invitations(text, "a", [ZOE["email"]]) == invitations
    assert read_invitations(text, "b", [ZOE["email"]]) == {}


@pytest.mark.parametrize(
    ("statuses", "problem"),
    [
        ([], ""),
        (["1.0", "1.1", "1.2", "2.0", ""], ""),
        (["3.7"], "the customer: it does not accept the e-mail address"),
        (["5.3"], "the customer: it refused the invitation"),
        (["1.2", "3.7", "5.1", ""], "2 of 4 customers: it could not deliver the invitation"),
    ],
)
def test_problem_names_uninvited_guests_and_reason(statuses: list[str], problem: str) -> None:
    found = invitation_problem({f"{at}@x.example": code for at, code in enumerate(statuses)})

    assert found == (f"The calendar server did not invite {problem}." if problem else "")
