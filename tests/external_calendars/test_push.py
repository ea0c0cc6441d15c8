"""Push: channels at the fakes of Google and Microsoft, and their messages to this service."""

import dataclasses
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from availability.models import Event
from external_calendars import grants, push, services
from external_calendars.models import Connection, Grant, PushChannel
from external_calendars.providers import PROVIDERS
from external_calendars.services import disconnect_calendar, remove_calendar
from external_calendars.sync import leases, run
from external_calendars.sync.leases import SYNC_WAKEUP
from external_calendars.sync.run_all_due import sync_due_calendars
from notifications.outbox import wakeup
from ops import doctor
from ops.doctor import OK, WARN
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.fakes.graph import FakeGraph
from tests.external_calendars.fakes.notifications import Notification
from tests.external_calendars.fakes.server import Gateway
from tests.external_calendars.granted import calendar_of, connect_granted, make_grant
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

EMAIL = "ada@example.com"
GOOGLE_CALLS = "^www.googleapis.com/.*"
Fake = FakeGoogle | FakeGraph


class Account:
    """Ada's account at one of the fakes, with a connected calendar of the service."""

    def __init__(self, fake: Fake, clock: Any, connection: Connection) -> None:
        self.fake, self.clock, self.connection = fake, clock, connection

    def advance(self, **length: float) -> None:
        """Move all clocks: advance(hours=3)."""
        self.clock.shift(timedelta(**length))
        self.fake.clock.set(timezone.now())

    def add_event(self, name: str) -> None:
        """An event of tomorrow, by the person."""
        start = timezone.now() + timedelta(days=1)
        if isinstance(self.fake, FakeGoogle):
            self.fake.accounts[EMAIL].calendar.add(name, start, start + timedelta(hours=1))
        else:
            times = {"start": start, "end": start + timedelta(hours=1)}
            body = {
                key: {"dateTime": f"{at:%Y-%m-%dT%H:%M:%S}", "timeZone": "UTC"}
                for key, at in times.items()
            }
            self.fake.create(EMAIL, {"subject": name, **body})
        self.fake.sender.wait()

    def live(self) -> list[str]:
        """The ids of the channels that the provider calls now."""
        if isinstance(self.fake, FakeGoogle):
            return [channel.id for channel in self.fake.channels.live()]
        return [each.id for each in self.fake.subscriptions.of(self.fake.mailboxes[EMAIL])]

    def settle(self) -> None:
        """Sync until the channel has called, and once more after that."""
        self.sync()
        self.advance(minutes=6)
        self.sync()

    def sync(self) -> int:
        """Sync what is due; return how often."""
        count = sync_due_calendars()
        self.fake.sender.wait()
        self.connection.refresh_from_db()
        return count

    def titles(self) -> list[str]:
        rows = Event.objects.filter(calendar=self.connection.pk).order_by("start", "what")
        return list(rows.values_list("what", flat=True))

    def pause(self) -> timedelta:
        """The time from the last sync to the next."""
        self.connection.refresh_from_db()
        synced_at = calendar_of(self.connection).synced_at
        assert self.connection.next_at is not None and synced_at is not None
        return self.connection.next_at - synced_at

    def statuses(self) -> list[int]:
        """The answers of the service to all messages."""
        return [status for _, status in self.fake.sender.sent]


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What workers are woken for."""
    wake_ups: list[Any] = []
    monkeypatch.setattr(wakeup.wake_up_thread, "enqueue", wake_ups.extend)
    return wake_ups


@pytest.fixture
def make_account(
    tenant: Tenant,
    gateway: Gateway,
    clock: Any,
    live_server: Any,
    settings: Any,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    woken: list[Any],
) -> Callable[[str], Account]:
    """Connected and never synced; the clocks of service, database and provider are one."""
    settings.PUBLIC_URL = live_server.url
    for module in (grants, leases, push, run):
        monkeypatch.setattr(module, "database_now", timezone.now)
    gateway.clock.set(timezone.now())

    def make(provider: str) -> Account:
        fake = request.getfixturevalue(provider)
        fake.add_account(EMAIL)
        grant = make_grant(tenant.app, fake, EMAIL)
        resource = tenant.make_resource(email=EMAIL)
        return Account(fake, clock, connect_granted(resource, grant))

    return make


@pytest.fixture(params=["google", "microsoft"])
def account(request: pytest.FixtureRequest, make_account: Callable[[str], Account]) -> Account:
    return make_account(request.param)


@pytest.fixture
def google_account(make_account: Callable[[str], Account]) -> Account:
    return make_account("google")


@pytest.fixture
def microsoft_account(make_account: Callable[[str], Account]) -> Account:
    return make_account("microsoft")


# --- Channels -------------------------------------------------------------------------------------
def test_channel_after_the_first_sync(account: Account) -> None:
    """What changed before it was open is in a second sync, which follows at once."""
    assert account.sync() == 2

    channel = PushChannel.objects.get()
    lifetime = channel.ends_at - timezone.now()
    is_google = isinstance(account.fake, FakeGoogle)
    assert account.live() == [channel.channel_id]
    assert lifetime == (timedelta(days=7) if is_google else timedelta(minutes=4200))
    assert channel.renew_at == timezone.now() + lifetime / 2
    assert channel.heard_at == timezone.now()
    assert account.sync() == 0


def test_calendar_is_synced_at_once_after_a_message(account: Account, woken: list[Any]) -> None:
    account.settle()
    account.advance(minutes=7)
    woken.clear()

    account.add_event("Lunch")
    account.connection.refresh_from_db()

    assert account.connection.next_at == account.connection.notified_at == timezone.now()
    assert set(woken) == {SYNC_WAKEUP}
    assert (account.sync(), account.titles()) == (1, ["Lunch"])


def test_polling_is_rare_while_push_works(account: Account, settings: Any) -> None:
    account.settle()

    assert timedelta(minutes=27) <= account.pause() <= timedelta(minutes=33)

    # Stale calendars are still found by then.
    settings.CALENDAR_STALE_SECONDS = 1200
    account.add_event("Lunch")
    account.sync()
    assert timedelta(minutes=9) <= account.pause() <= timedelta(minutes=11)


def test_polling_stays_frequent_if_google_does_not_reach_the_service(
    google_account: Account,
) -> None:
    google_account.fake.sender.lose(1)

    google_account.settle()

    assert PushChannel.objects.get().heard_at is None
    assert google_account.pause() <= timedelta(seconds=330)
    # Any message shows that it is reached after all.
    google_account.add_event("Lunch")
    google_account.sync()
    assert google_account.pause() >= timedelta(minutes=27)


@pytest.mark.parametrize("hours", [18, pytest.param(6, marks=pytest.mark.deep)])
def test_thirty_days_without_a_gap(account: Account, hours: int) -> None:
    """Each change is told; channels overlap, and are never many."""
    account.sync()
    most = 0
    for number in range(30 * 24 // hours):
        account.advance(hours=hours)
        account.sync()  # the poll
        account.add_event(f"Event {number}")
        account.connection.refresh_from_db()
        assert account.connection.notified_at == timezone.now(), number
        assert account.sync() >= 1
        assert len(account.live()) in (1, 2)
        most = max(most, PushChannel.objects.count())
    assert set(account.statuses()) == {202}
    assert most <= 2
    assert [row.channel_id for row in PushChannel.objects.order_by("-pk")][:1] == account.live()[
        -1:
    ]


def test_google_renews_at_half_life_with_an_overlap(google_account: Account) -> None:
    google_account.sync()
    (old,) = google_account.live()
    google_account.advance(days=3, hours=11)
    google_account.sync()
    assert google_account.live() == [old]

    google_account.advance(hours=2)
    google_account.fake.sender.is_holding = True
    google_account.sync()
    _, new = google_account.live()

    # The old one stays until the new one has called; a change comes twice meanwhile.
    google_account.add_event("Lunch")
    assert google_account.fake.sender.release() == [202, 202, 202]
    google_account.fake.sender.is_holding = False
    assert (google_account.sync(), google_account.titles()) == (1, ["Lunch"])
    assert google_account.live() == [new]
    assert [row.channel_id for row in PushChannel.objects.all()] == [new]


def test_microsoft_extends_the_same_subscription(microsoft_account: Account) -> None:
    microsoft_account.sync()
    (same,) = microsoft_account.live()
    microsoft_account.advance(minutes=2101)

    microsoft_account.sync()

    assert microsoft_account.live() == [same]
    assert PushChannel.objects.get().ends_at == timezone.now() + timedelta(minutes=4200)
    assert [str(r.method) for r in microsoft_account.fake.gateway.requests_to("subscriptions")] == [
        "POST",
        "PATCH",
    ]


def test_watch_that_fails_is_tried_again_after_an_hour(account: Account) -> None:
    watched = "events/watch" if isinstance(account.fake, FakeGoogle) else "subscriptions"
    account.fake.gateway.fail(watched, status=503, times=100)

    assert account.sync() == 1
    assert (account.live(), account.connection.problem) == ([], "")
    assert account.pause() <= timedelta(seconds=330)
    account.advance(minutes=30)
    account.sync()
    assert len(account.fake.gateway.requests_to(watched)) == 1

    account.advance(minutes=31)
    account.fake.gateway.stop_faults()
    account.sync()
    assert [row.channel_id for row in PushChannel.objects.all()] == account.live() != []


def test_no_channel_without_https(google_account: Account, settings: Any) -> None:
    """The gateway is a fake's; Google itself calls https only."""
    settings.CALENDAR_PROVIDER_GATEWAY = ""
    assert push.push_address("google") == ""
    settings.HTTPS, settings.PUBLIC_URL = True, "https://bookings.example.com"
    assert push.push_address("google") == (
        "https://bookings.example.com/v2/calendars/notifications/google"
    )


def test_polling_finds_what_a_dead_push_does_not_tell(account: Account) -> None:
    account.settle()
    account.fake.sender.lose(100)

    account.add_event("Lunch")
    assert account.sync() == 0
    account.advance(minutes=34)

    assert (account.sync(), account.titles()) == (1, ["Lunch"])


def test_push_that_is_dead_for_a_day_is_reported(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "database_now", timezone.now)
    provider = calendar_of(account.connection).provider
    watched = "events/watch" if provider == "google" else "subscriptions"
    account.fake.gateway.fail(watched, status=403, times=100)
    account.sync()
    account.advance(hours=23)
    account.sync()
    assert doctor.check_push().level == OK

    account.advance(hours=1)
    account.sync()
    assert doctor.check_push()[:2] == (
        WARN,
        f"1 without a working channel for a day ({provider})",
    )

    account.fake.gateway.stop_faults()
    account.advance(hours=1)
    account.sync()
    assert doctor.check_push().level == OK


# --- The end of a connection ----------------------------------------------------------------------
@pytest.mark.parametrize("end", [disconnect_calendar, remove_calendar])
def test_channel_ends_with_the_connection(account: Account, end: Callable[..., Any]) -> None:
    account.sync()

    end(calendar_of(account.connection), now=timezone.now())

    assert account.live() == []
    assert PushChannel.objects.count() == 0


def test_disconnecting_does_not_need_the_provider(account: Account) -> None:
    account.sync()
    account.fake.gateway.hang_up(".", times=100)

    disconnect_calendar(calendar_of(account.connection), now=timezone.now())

    assert PushChannel.objects.count() == 0
    account.fake.gateway.stop_faults()
    account.add_event("Late")
    assert account.statuses()[-1] == 202
    assert not Connection.objects.exists()


def test_channel_of_a_calendar_that_was_disconnected_meanwhile_is_ended(
    google_account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider: Any = PROVIDERS["google"]
    watch = provider.watch

    def watch_and_disconnect(*args: Any, **given: Any) -> Any:
        watched = watch(*args, **given)
        disconnect_calendar(calendar_of(google_account.connection), now=timezone.now())
        return watched

    monkeypatch.setattr(provider, "watch", watch_and_disconnect)

    sync_due_calendars()

    assert google_account.live() == []


def test_reconnecting_to_another_calendar_ends_the_channel(google_account: Account) -> None:
    google_account.fake.add_calendar("Work", EMAIL)
    google_account.sync()
    (old,) = google_account.live()

    calendar = calendar_of(google_account.connection)
    services.reconnect_calendar(calendar, {"address": "Work"}, now=timezone.now())
    assert google_account.live() == []
    google_account.sync()

    (new,) = google_account.live()
    assert new != old


# --- Messages -------------------------------------------------------------------------------------
def snapshot() -> list[Any]:
    """All that a message may change."""
    rows = Connection.objects.values_list("next_at", "notified_at", "read_as", "lease_token")
    return [list(rows), list(PushChannel.objects.order_by("pk").values())]


def google_message(account: Account, **changed: str) -> Notification:
    assert isinstance(account.fake, FakeGoogle)
    (channel,) = account.fake.channels.live()
    message = account.fake.channels.message(channel)
    headers = dict(message.headers) | {
        name.replace("_", "-"): text for name, text in changed.items()
    }
    return dataclasses.replace(message, headers=headers)


def notices(account: Account, **changed: Any) -> Notification:
    assert isinstance(account.fake, FakeGraph)
    (subscription,) = account.fake.subscriptions.all.values()
    notice = {
        "subscriptionId": subscription.id,
        "clientState": subscription.properties["clientState"],
        "changeType": "updated",
        **changed,
    }
    url = subscription.properties["notificationUrl"]
    headers = {"Content-Type": "application/json; charset=utf-8"}
    return Notification(url, headers, json.dumps({"value": [notice]}).encode())


FORGED_HEADERS: tuple[dict[str, str], ...] = (
    {"X_Goog_Channel_Token": "guessed"},
    {"X_Goog_Channel_Token": ""},
    {"X_Goog_Channel_ID": "00000000-0000-4000-8000-000000000000"},
    {"X_Goog_Channel_ID": ""},
)


@pytest.mark.parametrize("forged", FORGED_HEADERS)
def test_forged_message_of_google_changes_nothing(
    google_account: Account, woken: list[Any], forged: dict[str, str]
) -> None:
    google_account.sync()
    google_account.advance(minutes=1)
    woken.clear()
    before = snapshot()

    status = google_account.fake.sender.deliver(google_message(google_account, **forged))

    assert (status, snapshot(), woken) == (202, before, [])


FORGED_NOTICES: tuple[dict[str, Any], ...] = (
    {"clientState": "guessed"},
    {"clientState": None},
    {"subscriptionId": "00000000-0000-4000-8000-000000000000"},
    {"subscriptionId": 5},
    {"lifecycleEvent": "invented"},
    {"lifecycleEvent": "missed", "clientState": "guessed"},
    {"lifecycleEvent": "subscriptionRemoved", "clientState": "guessed"},
)


@pytest.mark.parametrize("forged", FORGED_NOTICES)
def test_forged_notice_of_microsoft_changes_nothing(
    microsoft_account: Account, woken: list[Any], forged: dict[str, Any]
) -> None:
    microsoft_account.sync()
    microsoft_account.advance(minutes=1)
    woken.clear()
    before = snapshot()

    status = microsoft_account.fake.sender.deliver(notices(microsoft_account, **forged))

    assert (status, snapshot(), woken) == (202, before, [])


def test_late_message_of_an_ended_channel_changes_nothing(account: Account) -> None:
    account.sync()
    is_google = isinstance(account.fake, FakeGoogle)
    message = google_message(account) if is_google else notices(account)
    PushChannel.objects.update(ends_at=timezone.now())
    before = snapshot()

    assert (account.fake.sender.deliver(message), snapshot()) == (202, before)


def test_doubled_message_causes_one_sync(account: Account) -> None:
    account.sync()
    account.fake.sender.double(1)

    account.add_event("Lunch")

    assert account.statuses()[-2:] == [202, 202]
    assert (account.sync(), account.sync(), account.titles()) == (1, 0, ["Lunch"])


def test_message_during_a_sync_makes_it_repeat(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event was added after the provider had answered."""
    account.sync()
    account.advance(hours=1)
    provider: Any = PROVIDERS[calendar_of(account.connection).provider]
    list_changes = provider.list_changes

    def answer_before_the_change(*args: Any, **given: Any) -> Any:
        found = list_changes(*args, **given)
        monkeypatch.setattr(provider, "list_changes", list_changes)
        account.advance(seconds=1)
        account.add_event("Lunch")
        lease = Connection.objects.get()
        assert lease.lease_token is not None
        assert lease.next_at is not None and lease.next_at > timezone.now()
        return found

    monkeypatch.setattr(provider, "list_changes", answer_before_the_change)

    assert (account.sync(), account.titles()) == (2, ["Lunch"])
    assert account.pause() >= timedelta(minutes=27)


def test_message_does_not_shorten_the_pause_after_an_error(account: Account) -> None:
    account.sync()
    later = timezone.now() + timedelta(minutes=15)
    Connection.objects.update(next_at=later, failures=2, problem="rate_limited")

    account.add_event("Lunch")
    account.connection.refresh_from_db()

    assert (account.connection.next_at, account.connection.notified_at) == (later, timezone.now())


def test_message_does_not_start_a_stopped_calendar(account: Account) -> None:
    account.sync()
    Connection.objects.update(next_at=None, problem="grant_ended")

    account.add_event("Lunch")
    account.connection.refresh_from_db()

    assert account.connection.next_at is None


# --- Lifecycle of Microsoft's subscriptions -------------------------------------------------------
def send_lifecycle(account: Account, event: str) -> None:
    assert isinstance(account.fake, FakeGraph)
    (subscription,) = account.fake.subscriptions.all.values()
    account.advance(minutes=5)
    account.fake.subscriptions.notify_lifecycle(subscription, event)
    account.fake.sender.wait()


def test_subscription_is_reauthorized(microsoft_account: Account) -> None:
    microsoft_account.sync()
    (same,) = microsoft_account.live()

    send_lifecycle(microsoft_account, "reauthorizationRequired")
    microsoft_account.sync()

    assert microsoft_account.live() == [same]
    microsoft_account.add_event("Lunch")
    assert (microsoft_account.sync(), microsoft_account.titles()) == (1, ["Lunch"])


def test_removed_subscription_is_made_anew(microsoft_account: Account) -> None:
    microsoft_account.sync()
    (old,) = microsoft_account.live()

    send_lifecycle(microsoft_account, "subscriptionRemoved")
    microsoft_account.add_event("Not told")
    microsoft_account.sync()

    (new,) = microsoft_account.live()
    assert new != old
    assert microsoft_account.titles() == ["Not told"]
    microsoft_account.advance(minutes=1)
    microsoft_account.add_event("Told")
    assert (microsoft_account.sync(), microsoft_account.titles()) == (1, ["Not told", "Told"])


def test_missed_messages_cause_a_whole_sync(microsoft_account: Account) -> None:
    microsoft_account.add_event("Lunch")
    microsoft_account.sync()
    gateway = microsoft_account.fake.gateway
    before = len(gateway.requests_to("delta"))

    send_lifecycle(microsoft_account, "missed")

    assert (microsoft_account.sync(), microsoft_account.titles()) == (1, ["Lunch"])
    whole = gateway.requests_to("delta")[before]
    assert "startDateTime" in whole.query


def test_subscription_that_graph_has_forgotten_is_made_anew(microsoft_account: Account) -> None:
    microsoft_account.sync()
    assert isinstance(microsoft_account.fake, FakeGraph)
    microsoft_account.fake.subscriptions.all.clear()
    PushChannel.objects.update(renew_at=timezone.now())
    microsoft_account.advance(hours=1)

    microsoft_account.sync()

    (new,) = microsoft_account.live()
    assert [row.channel_id for row in PushChannel.objects.all()] == [new]


# --- The endpoint ---------------------------------------------------------------------------------
PATH = "/v2/calendars/notifications"


def test_validation_token_is_echoed_as_text() -> None:
    answer = Client().post(f"{PATH}/microsoft?validationToken=%3Cscript%3E%20%26%20%2B%20%C3%A9")

    assert (answer.status_code, answer.content.decode()) == (200, "<script> & + é")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_validation_token_may_not_be_long() -> None:
    answer = Client().post(f"{PATH}/microsoft?validationToken={'x' * 2001}")

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


@pytest.mark.parametrize("body", ["[]", "{}", '{"value": 5}', '{"value": [5]}', "{", ""])
def test_body_of_microsoft_that_is_no_list_of_notices(body: str) -> None:
    answer = Client().post(f"{PATH}/microsoft", body, content_type="application/json")

    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_body_has_at_most_64_kilobytes(provider: str) -> None:
    body = json.dumps({"value": [], "padding": "x" * (64 * 1024)})

    answer = Client().post(f"{PATH}/{provider}", body, content_type="application/json")

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_csrf_token_is_not_needed() -> None:
    answer = Client(enforce_csrf_checks=True).post(f"{PATH}/google")

    assert (answer.status_code, answer.content) == (202, b"")
    assert "RateLimit" in answer.headers


def test_other_providers_have_no_notifications() -> None:
    assert Client().post(f"{PATH}/caldav").status_code == 404
    assert Client().get(f"{PATH}/google").status_code == 405


def test_tokens_of_channels_are_not_stored(account: Account) -> None:
    account.sync()

    (row,) = PushChannel.objects.all()
    if isinstance(account.fake, FakeGoogle):
        token = account.fake.channels.all[0].token
    else:
        (subscription,) = account.fake.subscriptions.all.values()
        token = subscription.properties["clientState"]
    assert len(token) == 43
    assert row.token_hash == push._token_hash(token) != token


def test_grant_is_renewed_independently_of_polling(account: Account) -> None:
    account.sync()
    account.advance(minutes=46)

    account.sync()

    grant = Grant.objects.get()
    assert isinstance(grant.renew_at, datetime)
    assert grant.access_ends_at > timezone.now() + timedelta(minutes=50)
