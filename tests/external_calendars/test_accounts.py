"""What only accounts at providers with OAuth have: consent, tokens, several calendars.

The rest is in test_every_server.py.
"""

import os
import signal
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from availability.models import Event
from external_calendars import grants
from external_calendars.grants import claim_renewals, renew_grant
from external_calendars.models import Connection, ConsentRequest, Grant, WrittenEvent
from external_calendars.sync.leases import claim_connections, due_connections
from external_calendars.sync.run import FAILED, SYNCED
from tests.external_calendars.accounts import (
    EMAIL,
    AccountHome,
    GoogleHome,
    MicrosoftHome,
    Shown,
    allow_redirects,
    come_back,
    connect_account,
    connect_again,
    consent_url,
)
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.fakes.graph import FakeGraph
from tests.external_calendars.killed_worker import Worker
from tests.external_calendars.memory import look, spans_of
from tests.external_calendars.mirrored import events_of, write
from tests.external_calendars.test_invitations import send_mails
from tests.external_calendars.test_mirror import _at_home, book, span_of, times
from tests.external_calendars.test_mirror_privacy import entries, mails
from tests.external_calendars.test_stop_announcements import announced
from tests.sinks import MailSink
from tests.world import Tenant

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
    assert (grant.email, grant.provider, work.grant) == (EMAIL, account.name, grant)
    assert {
        name: shown[name]
        for name in ("provider", "account", "grant_id", "provider_access", "provider_primary")
    } == {
        "provider": account.name,
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
            "provider": account.name,
            "resource_id": ada["id"],
            "redirect_url": "https://elsewhere.example/",
        },
    )

    assert (answer.status, [*answer.json["errors"]]) == (422, ["redirect_url"])


def test_second_calendar_of_an_account_is_chosen_by_name(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    account.add_calendar("Holidays")
    body = {"provider": account.name, "resource_id": ada["id"], "grant_id": str(work.grant_id)}

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


# --- Writing --------------------------------------------------------------------------------------
def test_booking_without_invitations_has_no_attendees(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    book(tenant, ada, invite=False)
    write()

    assert account.events() == [Shown("Meeting", *span_of(times()), [])]
    written = [request.json for request in account.writes()]
    assert [event.get("attendees") or [] for event in written] == [[]]
    assert account.mails_to("marty@example.com") == 0


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


def test_sync_of_an_ended_grant_keeps_it_stopped_until_the_provider_allows_it(
    tenant: Tenant, account: AccountHome, work: Connection
) -> None:
    """As *Sync now* does; pressed twice, by somebody who hopes."""
    sync(work)
    account.revoke()
    look(work)
    renew()
    Grant.objects.update(access_ends_at=timezone.now())

    for _ in range(2):
        answer = tenant.post(f"/calendars/{work.pk}/sync")
        assert (answer.status, answer.data["problem"]["code"]) == (200, "grant_ended")
        work.refresh_from_db()
        assert (work.is_stopped, due_connections(timezone.now()).exists()) == (True, False)
    renew()
    work.refresh_from_db()

    assert (work.problem, work.is_stopped) == ("grant_ended", True)
    assert Grant.objects.get().renew_at is None
    assert len(announced()) == 1
    account.allow_again()
    tenant.post(f"/calendars/{work.pk}/sync")
    renew()
    work.refresh_from_db()
    assert (work.problem, work.is_stopped) == ("", False)
    sync(work)


def test_new_consent_restarts_the_calendar(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    account.add("Lunch", NINE, TEN)
    sync(work)
    account.revoke()
    look(work)
    renew()

    came = connect_again(tenant, account, work)
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


def renew_and_die() -> None:
    """As a worker that is killed between the provider's answer and its own commit."""
    answer_of = grants.refresh_tokens

    def refresh(*asked: Any) -> None:
        answer_of(*asked)
        os.kill(os.getpid(), signal.SIGKILL)

    pytest.MonkeyPatch().setattr(grants, "refresh_tokens", refresh)  # in its own process only
    renew()


def lose_new_tokens(work: Connection) -> None:
    Grant.objects.update(renew_at=timezone.now())
    assert Worker(renew_and_die).wait() == -signal.SIGKILL
    # The access token still works, and the lease keeps others from the grant for a minute.
    sync(work)
    assert (Grant.objects.get().lease_token is None, claim_renewals(10)) == (False, [])
    Grant.objects.update(renew_at=timezone.now())  # the lease expires


@pytest.mark.postgresql
def test_tokens_lost_with_a_killed_worker_are_replaced(
    account: AccountHome, work: Connection
) -> None:
    """Microsoft documents that a used refresh token stays valid; Google gives out no other one."""
    lose_new_tokens(work)

    renew()
    account.expire_tokens()
    Grant.objects.update(renew_at=timezone.now())
    renew()

    assert Grant.objects.get().failures == 0
    sync(work)
    assert announced() == []


@pytest.mark.postgresql
def test_lost_refresh_token_stops_the_calendar_with_one_mail(
    tenant: Tenant, ada: Any, microsoft: FakeGraph
) -> None:
    """If Microsoft refuses a used refresh token, against its documentation."""
    home = MicrosoftHome(microsoft)
    work = connect_account(tenant, home, ada)
    home.add("Lunch", NINE, TEN)
    lose_new_tokens(work)
    microsoft.retire_old_refresh_tokens()

    for _ in range(3):
        renew()
    work.refresh_from_db()

    assert (work.problem, work.is_stopped) == ("grant_ended", True)
    assert [(kind, to) for kind, to, _ in announced()] == [("email", "owner")]
    assert spans_of(work) == [f"Lunch {NINE:%m-%d %H:%M}/{TEN:%H:%M}"]
    connect_again(tenant, home, work)
    sync(work)


def test_two_workers_renew_a_grant_once(account: AccountHome, work: Connection) -> None:
    Grant.objects.update(renew_at=timezone.now())

    first, second = claim_renewals(10), claim_renewals(10)

    assert (len(first), len(second)) == (1, 0)


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


# --- Several calendars of one account -------------------------------------------------------------
def test_longest_due_calendar_of_an_account_comes_first_and_alone(
    tenant: Tenant, ada: Any, account: AccountHome, work: Connection
) -> None:
    account.add_calendar("Holidays")
    body = {"provider": account.name, "resource_id": ada["id"], "grant_id": str(work.grant_id)}
    second = tenant.post("/calendars", body | {"address": "Holidays"}).data["id"]
    Connection.objects.filter(pk=second).update(next_at=timezone.now() - timedelta(hours=1))
    Connection.objects.filter(pk=work.pk).update(next_at=timezone.now() - timedelta(hours=2))

    claims = [[row.pk for row in claim_connections(10)] for _ in range(2)]

    assert claims == [[work.pk], []]


# --- Kinds of events ------------------------------------------------------------------------------
def test_kinds_of_events_at_google_that_never_block(
    tenant: Tenant, ada: Any, google: FakeGoogle
) -> None:
    home = GoogleHome(google)
    for kind in ("workingLocation", "birthday", "outOfOffice", "focusTime", "default"):
        home.calendar.add(kind, NINE, TEN, eventType=kind)
    work = connect_account(tenant, home, ada)

    sync(work)

    busy = dict(Event.objects.filter(calendar=work.pk).values_list("what", "busy"))
    assert busy == {"outOfOffice": True, "focusTime": True, "default": True}


def test_kinds_of_events_at_microsoft_that_never_block(
    tenant: Tenant, ada: Any, microsoft: FakeGraph
) -> None:
    home = MicrosoftHome(microsoft)
    kinds = {"free": False, "workingElsewhere": False, "tentative": True, "busy": True, "oof": True}
    for kind in kinds:
        body = {
            "subject": kind,
            "start": {"dateTime": f"{NINE:%Y-%m-%dT%H:%M:%S}", "timeZone": "UTC"},
            "end": {"dateTime": f"{TEN:%Y-%m-%dT%H:%M:%S}", "timeZone": "UTC"},
        }
        microsoft.create(EMAIL, body | {"showAs": kind})
    work = connect_account(tenant, home, ada)

    sync(work)

    assert dict(Event.objects.filter(calendar=work.pk).values_list("what", "busy")) == kinds
