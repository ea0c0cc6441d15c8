"""Calendars of accounts at providers with OAuth: read, written, answered, and what goes wrong."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from availability.models import Event
from external_calendars.grants import claim_renewals, renew_grant
from external_calendars.models import (
    Connection,
    ConsentRequest,
    ExternalObject,
    Grant,
    WrittenEvent,
)
from external_calendars.sync.leases import claim_connections
from external_calendars.sync.run import FAILED, SYNCED
from tests.external_calendars.accounts import (
    EMAIL,
    AccountHome,
    Shown,
    allow_redirects,
    come_back,
    connect_account,
    consent_url,
)
from tests.external_calendars.memory import look, spans_of
from tests.external_calendars.mirrored import copies, deliveries, events_of, make_due, write
from tests.external_calendars.test_invitations import send_mails
from tests.external_calendars.test_mirror import _at_home, act, book, move, span_of, times
from tests.external_calendars.test_mirror_privacy import entries, mails
from tests.sinks import MailSink
from tests.world import Tenant, at

__all__ = ["_at_home", "mails"]
pytestmark = pytest.mark.django_db(transaction=True)

DAY = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=3)
NINE, TEN, ELEVEN = (DAY + timedelta(hours=hour) for hour in (9, 10, 11))


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada Lovelace", email=EMAIL, timezone="Europe/Berlin")


@pytest.fixture
def work(tenant: Tenant, ada: Any, account: AccountHome) -> Connection:
    """Her calendar there, connected."""
    return connect_account(tenant, account, ada)


def sync(connection: Connection) -> None:
    assert look(connection) == SYNCED


def renew() -> None:
    """As a worker does with the grants that are due."""
    for grant in claim_renewals(10):
        renew_grant(grant)


# --- Consent --------------------------------------------------------------------------------------
def test_consent_connects_the_main_calendar(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    shown = tenant.get(f"/calendars/{work.pk}").data

    grant = Grant.objects.get()
    assert (grant.email, grant.provider, work.grant) == (EMAIL, account.provider, grant)
    assert {
        name: shown[name]
        for name in ("provider", "account", "grant_id", "provider_access", "provider_primary")
    } == {
        "provider": account.provider,
        "account": EMAIL,
        "grant_id": str(grant.id),
        "provider_access": "writer",
        "provider_primary": True,
    }
    assert not ConsentRequest.objects.exists()


def test_consent_is_used_once(tenant: Tenant, ada: Any, account: AccountHome) -> None:
    allow_redirects(tenant)
    back = account.consent(consent_url(tenant, account, ada))
    come_back(tenant, back)

    again = tenant.client.get(f"/v2{back.partition('/v2')[2]}")

    assert again.status_code == 404
    assert "This request has ended" in again.content.decode()
    assert Connection.objects.count() == 1


def test_denied_consent_connects_nothing(tenant: Tenant, ada: Any, account: AccountHome) -> None:
    allow_redirects(tenant)

    came = come_back(tenant, account.consent(consent_url(tenant, account, ada), allow=False))

    assert came == {"error": "access_denied"}
    assert not Grant.objects.exists()


def test_consent_leads_to_addresses_of_the_app_only(
    tenant: Tenant, ada: Any, account: AccountHome
) -> None:
    answer = tenant.post(
        "/calendars/connect",
        {
            "provider": account.provider,
            "resource_id": ada["id"],
            "redirect_url": "https://elsewhere.example/",
        },
    )

    assert (answer.status, [*answer.json["errors"]]) == (422, ["redirect_url"])


def test_second_calendar_of_an_account_is_chosen_by_name(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    account.add_calendar("Holidays")
    body = {"provider": account.provider, "resource_id": ada["id"], "grant_id": str(work.grant_id)}

    unknown = tenant.post("/calendars", body | {"address": "Nowhere"})
    made = tenant.post("/calendars", body | {"address": "holidays"})
    twice = tenant.post("/calendars", body | {"address": "Holidays"})

    assert (unknown.status, unknown.json["problem"]) == (422, "not_a_calendar")
    assert (made.status, made.data["name"], made.data["account"]) == (201, "Holidays", EMAIL)
    assert (twice.status, twice.json["code"]) == (409, "already_exists")
    assert Grant.objects.count() == 1


def test_last_calendar_of_a_grant_ends_it(tenant: Tenant, work: Connection) -> None:
    answer = tenant.post(f"/calendars/{work.pk}/disconnect")

    assert (answer.status, answer.data["account"]) == (200, None)
    assert not Grant.objects.exists()


# --- Reading --------------------------------------------------------------------------------------
def test_events_block_time(account: AccountHome, work: Connection) -> None:
    account.add("Lunch", NINE, TEN)
    account.add("Reminder", NINE, TEN, busy=False)
    account.add("Surgery", TEN, ELEVEN, private=True)
    account.add("Trip", DAY.date() + timedelta(days=1), DAY.date() + timedelta(days=3))

    sync(work)

    found = Event.objects.filter(calendar=work.pk).order_by("start", "what")
    assert list(found.values_list("what", "busy", "all_day", "start_date", "end_date")) == [
        ("Lunch", True, False, None, None),
        ("Reminder", False, False, None, None),
        ("Busy", True, False, None, None),
        (
            "Trip",
            True,
            True,
            DAY.date() + timedelta(days=1),
            DAY.date() + timedelta(days=3),
        ),
    ]


def test_changes_are_followed(account: AccountHome, work: Connection) -> None:
    moved = account.add("Moved", NINE, TEN)
    removed = account.add("Removed", NINE, TEN)
    account.add("Kept", TEN, ELEVEN)
    sync(work)
    kept = Event.objects.get(calendar=work.pk, what="Kept")

    account.move(moved, TEN, ELEVEN)
    account.remove(removed)
    account.add("New", NINE, TEN)
    sync(work)

    assert spans_of(work) == [
        f"New {NINE:%m-%d %H:%M}/{TEN:%H:%M}",
        f"Kept {TEN:%m-%d %H:%M}/{ELEVEN:%H:%M}",
        f"Moved {TEN:%m-%d %H:%M}/{ELEVEN:%H:%M}",
    ]
    assert Event.objects.get(calendar=work.pk, what="Kept").updated_at == kept.updated_at


def test_sync_without_changes_is_one_request(account: AccountHome, work: Connection) -> None:
    account.add("Lunch", NINE, TEN, weekly=4)
    sync(work)
    account.gateway.forget()

    sync(work)

    assert len(account.gateway.requests) == 1


def test_series_keeps_its_wall_clock_over_a_clock_change(
    account: AccountHome, work: Connection
) -> None:
    """Summer time begins between the 24th and the 31st of March."""
    year = DAY.year + (DAY.month > 2)
    first = datetime(year, 3, 10, 9, tzinfo=ZoneInfo("Europe/Berlin"))
    account.add("Round", first, first + timedelta(hours=1), weekly=4)

    sync(work)

    assert spans_of(work) == [
        "Round 03-10 08:00/09:00",
        "Round 03-17 08:00/09:00",
        "Round 03-24 08:00/09:00",
        "Round 03-31 07:00/08:00",
    ]


def test_lone_exceptions_of_a_series(account: AccountHome, work: Connection) -> None:
    series = account.add("Round", NINE, TEN, weekly=4)
    sync(work)

    account.cancel_occurrence(series, NINE + timedelta(weeks=1))
    sync(work)
    account.move_occurrence(series, NINE + timedelta(weeks=2), TEN + timedelta(weeks=2))
    sync(work)

    expected = [NINE, TEN + timedelta(weeks=2), NINE + timedelta(weeks=3)]
    found = Event.objects.filter(calendar=work.pk).order_by("start")
    assert list(found.values_list("start", flat=True)) == expected

    account.forget_marks()
    sync(work)
    assert list(found.values_list("start", flat=True)) == expected


def test_sync_reads_everything_anew_if_the_mark_has_ended(
    account: AccountHome, work: Connection
) -> None:
    gone = account.add("Gone", NINE, TEN)
    account.add("Kept", TEN, ELEVEN)
    sync(work)
    account.remove(gone)
    account.forget_marks()

    sync(work)

    assert spans_of(work) == [f"Kept {TEN:%m-%d %H:%M}/{ELEVEN:%H:%M}"]
    assert ExternalObject.objects.count() == 1


# --- Writing --------------------------------------------------------------------------------------
def test_booking_is_written_moved_and_removed(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    booking = book(tenant, ada, where="Harbour Street 5")
    write()
    assert account.events() == [Shown("Meeting", *span_of(times()), ["marty@example.com"])]
    assert account.mails_to("marty@example.com") == 1

    sync(work)
    assert spans_of(work) == []  # the booking's own event blocks the time

    move(tenant, booking)
    write()
    assert account.events() == [Shown("Meeting", *span_of(times(2)), ["marty@example.com"])]

    act(tenant, booking, "cancel")
    write()
    assert account.events() == []
    sync(work)
    assert spans_of(work) == []
    assert {state for _, state, _ in deliveries()} == {"delivered"}


def test_booking_without_invitations_has_no_attendees(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    book(tenant, ada, invite=False)
    write()

    assert account.events() == [Shown("Meeting", *span_of(times()), [])]
    written = [request.json for request in account.writes()]
    assert [event.get("attendees") or [] for event in written] == [[]]
    assert account.mails_to("marty@example.com") == 0


def test_lost_answer_makes_no_second_event(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    account.gateway.lose_answer("/events", method="POST", times=2)
    book(tenant, ada)

    write()
    assert [state for _, state, _ in deliveries()] == ["scheduled"]
    make_due()
    write()

    assert account.events() == [Shown("Meeting", *span_of(times()), ["marty@example.com"])]
    assert account.mails_to("marty@example.com") == 1
    assert copies() == [("written", "")]


def test_removed_event_can_be_written_again(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    booking = book(tenant, ada)
    write()
    [event_id] = account.ids()
    account.remove(event_id)
    sync(work)
    assert copies()[0][0] == "removed_there"

    move(tenant, booking)
    write()

    assert account.events() == [Shown("Meeting", *span_of(times(2)), ["marty@example.com"])]
    assert copies() == [("written", "")]


def test_owner_moves_the_event(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"external_edits": "follow"}})
    booking = book(tenant, ada)
    write()
    sync(work)
    [event_id] = account.ids()

    account.move(event_id, *span_of(times(3)))
    sync(work)

    record = tenant.get(f"/bookings/{booking['id']}?include=attributes,logs").data
    assert at(record["attributes"]["event_info"]["start"]) == span_of(times(3))[0]
    assert record["logs"][-1]["source"] == "calendar"


def test_guests_of_the_owner_stay(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    booking = book(tenant, ada)
    write()
    [event_id] = account.ids()
    account.add_guest(event_id, "friend@example.com")
    account.answer(event_id, "marty@example.com", "accepted")

    move(tenant, booking)
    write()

    [shown] = account.events()
    assert shown.guests == ["friend@example.com", "marty@example.com"]


def test_all_day_booking(tenant: Tenant, account: AccountHome, ada: Any, work: Connection) -> None:
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

    [shown] = account.events()
    assert (shown.start, shown.end) == (first, first + timedelta(days=2))


# --- Tokens and limits ----------------------------------------------------------------------------
def test_refused_token_is_renewed(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    sync(work)
    account.expire_tokens()
    book(tenant, ada)

    assert look(work) == FAILED
    assert work.problem == "token_refused"
    write()
    renew()
    work.refresh_from_db()

    assert (work.problem, work.failures) == ("", 0)
    assert look(work) == SYNCED
    write()
    assert len(account.events()) == 1


def test_ended_grant_stops_the_calendar(account: AccountHome, work: Connection) -> None:
    sync(work)
    account.revoke()
    assert look(work) == FAILED

    renew()
    work.refresh_from_db()

    assert (work.problem, work.is_stopped) == ("grant_ended", True)
    assert Grant.objects.get().renew_at is None


def test_new_consent_restarts_the_calendar(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    account.add("Lunch", NINE, TEN)
    sync(work)
    account.revoke()
    look(work)
    renew()

    url = tenant.post(
        "/calendars/connect",
        {
            "provider": account.provider,
            "calendar_id": str(work.pk),
            "redirect_url": "https://app.example.com/settings",
        },
    ).data["url"]
    came = come_back(tenant, account.consent(url))
    work.refresh_from_db()

    assert came == {"calendar_id": str(work.pk)}
    assert (work.problem, work.is_stopped) == ("", False)
    sync(work)
    assert Event.objects.filter(calendar=work.pk).count() == 1


def test_rotated_refresh_token_is_kept(account: AccountHome, work: Connection) -> None:
    for _ in range(3):
        Grant.objects.update(renew_at=timezone.now())
        renew()

    assert Grant.objects.get().failures == 0
    sync(work)


def test_two_workers_renew_a_grant_once(account: AccountHome, work: Connection) -> None:
    Grant.objects.update(renew_at=timezone.now())

    first, second = claim_renewals(10), claim_renewals(10)

    assert (len(first), len(second)) == (1, 0)


def test_limits_are_waited_for(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    account.throttle(times=1)
    assert look(work) == FAILED
    assert work.problem == "rate_limited"
    sync(work)

    account.throttle(times=1)
    book(tenant, ada)
    write()
    assert [state for _, state, _ in deliveries()] == ["scheduled"]
    make_due()
    write()
    assert len(account.events()) == 1


# --- Invitations ----------------------------------------------------------------------------------
def test_provider_invites_and_the_mail_has_no_file(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection, mails: MailSink
) -> None:
    """Once in total: also for the first booking after the calendar was connected."""
    book(tenant, ada)
    send_mails()
    write()

    assert entries(mails) == {"marty@example.com": [], EMAIL: []}
    assert account.mails_to("marty@example.com") == 1


def test_mail_has_the_file_with_the_providers_uid_while_writes_fail(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection, mails: MailSink
) -> None:
    account.gateway.fail("/events", method="POST", status=503)
    book(tenant, ada)
    write()
    send_mails()

    [to_customer] = [mail for mail in mails.mails if mail.to == ["marty@example.com"]]
    [file] = [
        part.get_content()
        for part in to_customer.message.walk()
        if part.get_content_type() == "text/calendar"
    ]
    assert events_of(file)[0]["UID"] == WrittenEvent.objects.get().uid


# --- Answers of guests ----------------------------------------------------------------------------
def customer_of(tenant: Tenant, booking: Any) -> Any:
    [customer] = tenant.get(f"/bookings/{booking['id']}").data["customers"]
    return {name: customer[name] for name in ("response", "source")}


def test_answer_of_a_guest_is_heard(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    booking = book(tenant, ada)
    write()
    sync(work)
    assert customer_of(tenant, booking) == {"response": "needs_action", "source": None}

    account.answer(account.ids()[0], "marty@example.com", "declined")
    sync(work)

    assert customer_of(tenant, booking) == {"response": "declined", "source": "calendar"}
    assert tenant.get(f"/bookings/{booking['id']}").data["state"] == "confirmed"


def test_declined_invitation_cancels_once_if_the_project_wants_it(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    project = tenant.make_project(ada["id"], settings={"guest_declines": "cancel"})
    booking = book(tenant, ada, project_id=project["id"], enforce_availability=False)
    write()
    sync(work)

    account.answer(account.ids()[0], "marty@example.com", "declined")
    sync(work)
    write()
    sync(work)

    shown = tenant.get(f"/bookings/{booking['id']}?include=logs").data
    assert (shown["state"], account.events()) == ("cancelled_by_customer", [])
    assert [log["source"] for log in shown["logs"] if log["action"] == "cancel_by_customer"] == [
        "calendar"
    ]


# --- Several calendars of one account -------------------------------------------------------------
def test_longest_due_calendar_of_an_account_comes_first_and_alone(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    account.add_calendar("Holidays")
    body = {"provider": account.provider, "resource_id": ada["id"], "grant_id": str(work.grant_id)}
    second = tenant.post("/calendars", body | {"address": "Holidays"}).data["id"]
    Connection.objects.filter(pk=second).update(next_at=timezone.now() - timedelta(hours=1))
    Connection.objects.filter(pk=work.pk).update(next_at=timezone.now() - timedelta(hours=2))

    claims = [[row.pk for row in claim_connections(10)] for _ in range(2)]

    assert claims == [[work.pk], []]
