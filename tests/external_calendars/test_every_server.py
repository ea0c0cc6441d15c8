"""The promises about connected calendars, on each server that can keep them: three real CalDAV
servers, a feed, and the fakes of Google and Microsoft.

`needs`: what the server has to be able to do; docs/external-calendars.md says who can't, and why.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.utils import timezone

from availability.models import Event
from external_calendars.models import Connection, ExternalObject
from external_calendars.sync.run import FAILED, SYNCED
from tests.external_calendars.accounts import ACCOUNTS
from tests.external_calendars.homes import EMAIL, CalendarHome, Shown
from tests.external_calendars.ical_homes import CyrusHome, FeedHome, RadicaleHome, XandikosHome
from tests.external_calendars.memory import look, spans_of
from tests.external_calendars.mirrored import copies, deliveries, make_due, write
from tests.external_calendars.test_invitations import send_mails
from tests.external_calendars.test_mirror import _at_home, act, book, move, span_of, times
from tests.external_calendars.test_mirror_privacy import entries, mails
from tests.sinks import MailSink
from tests.world import Tenant, at

__all__ = ["_at_home", "mails"]
pytestmark = pytest.mark.django_db(transaction=True)

HOMES: dict[str, Callable[[Any], CalendarHome]] = {
    home.name: home
    for home in (RadicaleHome, XandikosHome, CyrusHome, *ACCOUNTS.values(), FeedHome)
}
SERVER_OF = {"ics": "fake"}  # the fixtures of the others have their names
DAY = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=3)
NINE, TEN, ELEVEN = (DAY + timedelta(hours=hour) for hour in (9, 10, 11))
BERLIN = ZoneInfo("Europe/Berlin")


def needs(*abilities: str) -> pytest.MarkDecorator:
    return pytest.mark.needs(*abilities)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "home" in metafunc.fixturenames:
        needed = {name for mark in metafunc.definition.iter_markers("needs") for name in mark.args}
        able = [name for name, home in HOMES.items() if needed.isdisjoint(home.cannot)]
        metafunc.parametrize("home", able, indirect=True)


@pytest.fixture
def home(request: pytest.FixtureRequest) -> CalendarHome:
    name = request.param
    return HOMES[name](request.getfixturevalue(SERVER_OF.get(name, name)))


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada Lovelace", email=EMAIL, timezone="Europe/Berlin")


@pytest.fixture
def work(tenant: Tenant, ada: Any, home: CalendarHome) -> Connection:
    """Her calendar there, connected."""
    return home.connect(tenant, ada)


def sync(connection: Connection) -> None:
    assert look(connection) == SYNCED


def follow_edits(tenant: Tenant) -> None:
    answer = tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"external_edits": "follow"}})
    assert answer.status == 200, answer.json


def record_of(tenant: Tenant, booking: Any) -> Any:
    return tenant.get(f"/bookings/{booking['id']}?include=attributes,logs,provider_event").data


# --- What the documentation says ------------------------------------------------------------------
def test_documentation_says_what_a_server_can_not_do() -> None:
    page = (Path(settings.BASE_DIR) / "docs" / "external-calendars.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (`[^|]+`) \| ([^|]+\.) \|$", page, re.MULTILINE)

    documented = {ability: set(re.findall(r"`(\w+)`", names)) for ability, names, _ in rows}

    assert documented == {
        ability: {name for name, home in HOMES.items() if ability in home.cannot}
        for home in HOMES.values()
        for ability in home.cannot
    }


# --- Connecting and reading -----------------------------------------------------------------------
def test_connected_calendar_blocks_time_after_its_first_sync(
    tenant: Tenant, ada: Any, home: CalendarHome
) -> None:
    home.add("Lunch", NINE, TEN)
    home.add("Reminder", NINE, TEN, busy=False)
    home.add("Surgery", TEN, ELEVEN, private=True)
    day = DAY.date()
    home.add("Trip", day + timedelta(days=1), day + timedelta(days=3))

    work = home.connect(tenant, ada)
    shown = tenant.get(f"/calendars/{work.pk}").data
    sync(work)

    can_write = "write" not in home.cannot
    assert (shown["provider_access"], shown["provider_primary"], shown["synced_at"]) == (
        "writer" if can_write else "reader",
        can_write,
        None,
    )
    found = Event.objects.filter(calendar=work.pk).order_by("start", "what")
    assert list(found.values_list("what", "busy", "all_day", "start_date", "end_date")) == [
        ("Lunch", True, False, None, None),
        ("Reminder", False, False, None, None),
        ("Busy", True, False, None, None),
        ("Trip", True, True, day + timedelta(days=1), day + timedelta(days=3)),
    ]
    after = tenant.get(f"/calendars/{work.pk}").data
    assert (after["synced_at"] is None, after["problem"], after["unread"]) == (False, None, 0)
    project = tenant.make_project(ada["id"])
    taken = tenant.book(
        resource_id=ada["id"], project_id=project["id"], start=NINE.isoformat(), end=TEN.isoformat()
    )
    assert (taken.status, taken.json["code"]) == (409, "slot_taken")


def test_changes_are_followed(home: CalendarHome, work: Connection) -> None:
    moved = home.add("Moved", NINE, TEN)
    removed = home.add("Removed", NINE, TEN)
    home.add("Kept", TEN, ELEVEN)
    sync(work)
    kept = Event.objects.get(calendar=work.pk, what="Kept")

    home.move(moved, TEN, ELEVEN)
    home.remove(removed)
    home.add("New", NINE, TEN)
    sync(work)

    assert spans_of(work) == [
        f"New {NINE:%m-%d %H:%M}/{TEN:%H:%M}",
        f"Kept {TEN:%m-%d %H:%M}/{ELEVEN:%H:%M}",
        f"Moved {TEN:%m-%d %H:%M}/{ELEVEN:%H:%M}",
    ]
    assert Event.objects.get(calendar=work.pk, what="Kept").updated_at == kept.updated_at


def test_sync_without_changes_is_one_request(home: CalendarHome, work: Connection) -> None:
    home.add("Lunch", NINE, TEN, weekly=4)
    sync(work)
    before = home.count_requests()

    sync(work)

    assert home.count_requests() == before + 1


def test_series_keeps_its_wall_clock_and_its_exceptions_over_a_clock_change(
    home: CalendarHome, work: Connection
) -> None:
    """Summer time begins between the 24th and the 31st of March. Each exception is a change of its
    own, of which the next sync alone hears."""
    year = DAY.year + (DAY.month > 2)
    first = datetime(year, 3, 10, 9, tzinfo=BERLIN)
    series = home.add("Round", first, first + timedelta(hours=1), weekly=5)
    sync(work)
    assert spans_of(work) == [
        "Round 03-10 08:00/09:00",
        "Round 03-17 08:00/09:00",
        "Round 03-24 08:00/09:00",
        "Round 03-31 07:00/08:00",
        "Round 04-07 07:00/08:00",
    ]

    home.cancel_occurrence(series, first + timedelta(weeks=1))
    sync(work)
    moved = first + timedelta(weeks=3)
    home.move_occurrence(series, moved, moved + timedelta(hours=5))
    sync(work)

    assert spans_of(work) == [
        "Round 03-10 08:00/09:00",
        "Round 03-24 08:00/09:00",
        "Round 03-31 12:00/13:00",
        "Round 04-07 07:00/08:00",
    ]


@needs("marks")
def test_sync_reads_everything_anew_if_the_mark_has_ended(
    home: CalendarHome, work: Connection
) -> None:
    gone = home.add("Gone", NINE, TEN)
    series = home.add("Round", NINE, TEN, weekly=3)
    sync(work)
    home.cancel_occurrence(series, NINE + timedelta(weeks=1))
    home.remove(gone)
    home.forget_marks()

    sync(work)

    last = NINE + timedelta(weeks=2)
    assert spans_of(work) == [
        f"Round {NINE:%m-%d %H:%M}/{TEN:%H:%M}",
        f"Round {last:%m-%d %H:%M}/10:00",
    ]


# --- Writing --------------------------------------------------------------------------------------
@needs("write")
def test_booking_is_written_moved_and_removed(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    booking = book(tenant, ada, customer=home.guest, where="Harbour Street 5")
    write()
    assert home.events() == [Shown("Meeting", *span_of(times()), [home.guest["email"]])]

    sync(work)
    assert spans_of(work) == []  # the booking's own event blocks the time

    move(tenant, booking)
    write()
    assert home.events() == [Shown("Meeting", *span_of(times(2)), [home.guest["email"]])]

    act(tenant, booking, "cancel")
    write()
    assert home.events() == []
    sync(work)
    assert spans_of(work) == []
    assert copies() == [("removed", "")]
    assert {state for _, state, _ in deliveries()} == {"delivered"}


@needs("write")
def test_all_day_booking(tenant: Tenant, ada: Any, home: CalendarHome, work: Connection) -> None:
    booking = book(tenant, ada)
    start = at("2030-06-30 22:00")
    first = start.date() + timedelta(days=1)
    Event.objects.filter(bookings=booking["id"]).update(
        all_day=True,
        start=start,
        end=start + timedelta(days=2),
        start_date=first,
        end_date=first + timedelta(days=2),
    )
    write()

    [shown] = home.events()
    assert (shown.start, shown.end) == (first, first + timedelta(days=2))


@needs("write")
def test_lost_answer_makes_no_second_event(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    home.lose_answer()
    book(tenant, ada, customer=home.guest)

    write()
    home.recover()
    make_due()
    write()

    assert home.events() == [Shown("Meeting", *span_of(times()), [home.guest["email"]])]
    assert home.mails_to(home.guest["email"]) <= 1
    assert copies() == [("written", "")]


@needs("write")
def test_guests_of_the_owner_stay(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    booking = book(tenant, ada, customer=home.guest)
    write()
    home.add_guest(home.ids()[0], "friend@example.com")

    move(tenant, booking)
    write()

    [shown] = home.events()
    assert shown.guests == sorted(["friend@example.com", home.guest["email"]])


# --- Changes that the owner makes there -----------------------------------------------------------
@needs("write")
def test_owner_moves_and_removes_the_event(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    follow_edits(tenant)
    booking = book(tenant, ada)
    write()
    sync(work)

    home.move(home.ids()[0], *span_of(times(3)))
    sync(work)
    moved = record_of(tenant, booking)
    write()
    after_move = home.events()
    home.remove(home.ids()[0])
    sync(work)
    removed = record_of(tenant, booking)

    assert at(moved["attributes"]["event_info"]["start"]) == span_of(times(3))[0]
    assert (moved["logs"][-1]["source"], moved["provider_event"]["state"]) == (
        "calendar",
        "written",
    )
    assert after_move == [Shown("Meeting", *span_of(times(3)), ["marty@example.com"])]
    assert (removed["state"], removed["logs"][-1]["source"]) == ("cancelled", "calendar")
    write()
    assert home.events() == []


@needs("write")
def test_removed_event_stays_away_until_the_booking_changes(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    """With `external_edits: warn`, the default."""
    booking = book(tenant, ada, customer=home.guest)
    write()
    home.remove(home.ids()[0])
    sync(work)
    assert copies() == [
        ("removed_there", "Removed in the external calendar. The booking is unchanged.")
    ]
    assert (write(), home.events()) == (0, [])

    move(tenant, booking)
    write()

    assert home.events() == [Shown("Meeting", *span_of(times(2)), [home.guest["email"]])]
    assert copies() == [("written", "")]


# --- Guests ---------------------------------------------------------------------------------------
@needs("invite")
def test_server_invites_the_guest(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    book(tenant, ada, customer=home.guest)
    write()

    assert home.mails_to(home.guest["email"]) == 1
    assert copies() == [("written", "")]
    assert Connection.objects.get().last_write_invited is True


@needs("write")
def test_guest_gets_one_invitation(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection, mails: MailSink
) -> None:
    """From the server or by the service's e-mail. The booking is the second one in this calendar:
    what a CalDAV server does is known after the first."""
    address = home.guest["email"]

    def count_invitations() -> int:
        send_mails()
        write()
        return home.mails_to(address) + len(entries(mails)[address])

    book(tenant, ada, customer=home.guest)
    before = count_invitations()
    book(tenant, ada, customer=home.guest, **times(2))

    assert count_invitations() == before + 1


@needs("write")
def test_booking_without_invitations_has_no_attendees(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    book(tenant, ada, customer=home.guest, invite=False)
    write()

    assert home.events() == [Shown("Meeting", *span_of(times()), [])]
    assert home.mails_to(home.guest["email"]) == 0


def answer_of(tenant: Tenant, booking: Any) -> Any:
    [customer] = tenant.get(f"/bookings/{booking['id']}").data["customers"]
    return {name: customer[name] for name in ("response", "source")}


@needs("answers")
@pytest.mark.parametrize("answer", ["accepted", "tentative", "declined"])
def test_answer_of_a_guest_is_found_by_one_sync(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection, answer: str
) -> None:
    booking = book(tenant, ada, customer=home.guest)
    write()
    sync(work)
    assert answer_of(tenant, booking) == {"response": "needs_action", "source": None}

    home.answer(home.ids()[0], home.guest["email"], answer)
    sync(work)

    assert answer_of(tenant, booking) == {"response": answer, "source": "calendar"}
    assert record_of(tenant, booking)["state"] == "confirmed"
    assert copies() == [("written", "")]


@needs("answers")
def test_declined_invitation_cancels_once_if_the_project_wants_it(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    project = tenant.make_project(
        ada["id"], settings={"guest_declines": "cancel", "enforce_availability": False}
    )
    booking = book(tenant, ada, customer=home.guest, project_id=project["id"])
    write()
    sync(work)

    home.answer(home.ids()[0], home.guest["email"], "declined")
    for _ in range(2):
        sync(work)
        write()

    shown = record_of(tenant, booking)
    assert (shown["state"], home.events()) == ("cancelled_by_customer", [])
    assert [(log["action"], log["source"]) for log in shown["logs"][1:]] == [
        ("response", "calendar"),
        ("cancel_by_customer", "calendar"),
    ]


@needs("answers")
def test_moved_booking_asks_the_guest_again(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    booking = book(tenant, ada, customer=home.guest)
    write()
    home.answer(home.ids()[0], home.guest["email"], "accepted")
    sync(work)

    move(tenant, booking)
    write()
    sync(work)
    moved = answer_of(tenant, booking)
    home.answer(home.ids()[0], home.guest["email"], "declined")
    sync(work)

    assert moved == {"response": "needs_action", "source": None}
    assert answer_of(tenant, booking) == {"response": "declined", "source": "calendar"}


# --- Servers in trouble ---------------------------------------------------------------------------
def test_dead_server_keeps_what_was_read(home: CalendarHome, work: Connection) -> None:
    home.add("Lunch", NINE, TEN)
    sync(work)
    before = spans_of(work)

    home.fail()
    assert look(work) == FAILED
    assert (work.problem, work.is_stopped, spans_of(work)) == ("unreachable", False, before)
    home.recover()
    home.add("Later", TEN, ELEVEN)
    sync(work)

    assert (work.problem, work.failures) == ("", 0)
    assert spans_of(work) == [*before, f"Later {TEN:%m-%d %H:%M}/{ELEVEN:%H:%M}"]


@needs("write")
def test_dead_server_loses_no_write_and_no_invitation(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection, mails: MailSink
) -> None:
    """The customer's e-mail has the calendar file: nobody knows when the server invites."""
    home.fail()
    book(tenant, ada, customer=home.guest)
    write()
    send_mails()
    assert [state for _, state, _ in deliveries()] == ["scheduled"]
    assert copies()[0][0] == "pending"
    assert entries(mails)[home.guest["email"]] == ["REQUEST"]

    home.recover()
    make_due()
    write()

    assert home.events() == [Shown("Meeting", *span_of(times()), [home.guest["email"]])]
    assert copies() == [("written", "")]


def test_limits_delay_a_sync(home: CalendarHome, work: Connection) -> None:
    home.add("Lunch", NINE, TEN)
    home.throttle(times=1)

    assert look(work) == FAILED
    assert (work.problem, work.is_stopped) == ("rate_limited", False)
    sync(work)
    assert (work.problem, ExternalObject.objects.count()) == ("", 1)


@needs("write")
def test_limits_delay_a_write(
    tenant: Tenant, ada: Any, home: CalendarHome, work: Connection
) -> None:
    home.throttle(times=1)
    book(tenant, ada)
    write()
    assert [state for _, state, _ in deliveries()] == ["scheduled"]

    make_due()
    write()

    assert len(home.events()) == 1
