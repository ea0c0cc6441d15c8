"""Syncs that stop for good: an e-mail to the owner, and calls to the webhooks that want them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.utils import timezone, translation

from apps_config.models import Account, Membership
from availability.models import Calendar
from common.shipped_languages import shipped_languages
from external_calendars.grants import claim_renewals, renew_grant, restart_connections
from external_calendars.models import Connection, Grant
from external_calendars.providers.base import PROVIDER_ERRORS, ProviderError
from external_calendars.services import disconnect_calendar, request_sync
from external_calendars.sync.run import FAILED, SYNCED
from notifications.mail import compose_calendar_mail
from notifications.mail.bounces import addresses_of
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from tests.external_calendars.fakes.google import FakeGoogle
from tests.external_calendars.granted import connect_granted, make_grant
from tests.external_calendars.memory import Memory, connect, look, memory
from tests.notifications.conftest import hooks, mails
from tests.notifications.mails import DELIVERY_ID, html_of, make_app
from tests.sinks import HookSink, Mail, MailSink
from tests.world import Tenant

__all__ = ["hooks", "mails", "memory"]
pytestmark = pytest.mark.django_db(transaction=True)

URL = django_settings.PUBLIC_URL
EMAIL = "ada@example.com"


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource(email=EMAIL)


@pytest.fixture
def connection(ada: Any, memory: Memory) -> Connection:
    """Ada's calendar elsewhere."""
    return connect(ada["id"])


def fail(connection: Connection, memory: Memory, times: int, code: str = "unauthorized") -> None:
    """Sync it so many times in vain."""
    memory.trouble = ProviderError(code)
    for _ in range(times):
        assert look(connection) == FAILED


def announced() -> list[tuple[str, str, Mapping[str, Any]]]:
    rows = Delivery.objects.filter(kind="calendar_problem").order_by("id")
    return [(row.type, row.recipient, row.content) for row in rows]


def add_hook(tenant: Tenant, hooks: HookSink, **given: Any) -> None:
    tenant.post("/webhooks", {"url": hooks.url(), **given})


def text_of(mail: Mail) -> str:
    return mail.text.replace("\r\n", "\n")


WANTED = {"kinds": ["calendar.problem"]}


# --- A password -----------------------------------------------------------------------------------
def test_stop_is_mailed_to_the_owner(
    tenant: Tenant, connection: Connection, memory: Memory, mails: MailSink
) -> None:
    fail(connection, memory, 4)
    assert announced() == []

    fail(connection, memory, 1)
    run_dispatcher("email")

    (sent,) = mails.mails
    assert (sent.to, sent.subject) == ([EMAIL], "A calendar is no longer read")
    assert text_of(sent) == (
        "New events in this calendar do not block time until you connect it again.\n\n"
        "Calendar:  Elsewhere\n"
        "Reason:    The server refuses this user name and password.\n"
        f"App:       {tenant.app.name}\n\n"
        f"{URL}/admin/availability/calendar/{connection.pk}/change/\n"
    )


def test_stop_is_announced_once_and_a_second_one_again(
    connection: Connection, memory: Memory
) -> None:
    """Also if somebody tries to sync meanwhile."""
    fail(connection, memory, 5)
    request_sync(Calendar.objects.get(pk=connection.pk))
    fail(connection, memory, 3)
    assert len(announced()) == 1

    memory.trouble = None
    assert look(connection) == SYNCED
    assert connection.problem == ""
    fail(connection, memory, 4)
    assert len(announced()) == 1
    fail(connection, memory, 1)

    assert len(announced()) == 2
    assert connection.is_stopped


def test_errors_that_pass_are_not_announced(connection: Connection, memory: Memory) -> None:
    fail(connection, memory, 7, "unreachable")

    assert announced() == []


def test_webhooks_that_want_it_are_called(
    tenant: Tenant, connection: Connection, memory: Memory, hooks: HookSink
) -> None:
    """Whatever their filters of bookings are; without `kinds`, a webhook is about bookings."""
    add_hook(tenant, hooks)
    add_hook(tenant, hooks, kinds=["booking.confirmed"])
    add_hook(tenant, hooks, **WANTED, graph="instant", states=["cancelled"])

    fail(connection, memory, 5)
    run_dispatcher("webhook")

    (call,) = hooks.calls
    problem = {
        "code": "unauthorized",
        "text": "The server refuses this user name and password.",
        "since": call.json["problem"]["since"],
    }
    assert (call.method, call.event) == ("POST", "calendar.problem")
    assert "webhook-signature" in call.headers
    assert call.json == {
        "kind": "calendar.problem",
        "calendar": tenant.get(f"/calendars/{connection.pk}").data,
        "problem": problem,
        "cursor": call.json["cursor"],
    }
    assert call.json["calendar"]["problem"] == problem
    assert call.json["calendar"]["provider_sync"] is False


def test_webhook_that_was_disabled_is_not_called(
    tenant: Tenant, connection: Connection, memory: Memory, hooks: HookSink
) -> None:
    add_hook(tenant, hooks, **WANTED, active=False)

    fail(connection, memory, 5)

    assert [kind for kind, _, _ in announced()] == ["email"]


@pytest.mark.parametrize("end", ["disconnected", "restarted"])
def test_mail_about_a_problem_that_has_ended_is_not_sent(
    connection: Connection, memory: Memory, mails: MailSink, end: str
) -> None:
    fail(connection, memory, 5)
    calendar = Calendar.objects.get(pk=connection.pk)
    if end == "disconnected":
        disconnect_calendar(calendar, now=timezone.now())
    else:
        request_sync(calendar)

    run_dispatcher("email")

    delivery = Delivery.objects.get()
    assert (delivery.state, str(delivery.reason), mails.mails) == (
        "cancelled",
        "The calendar has no problem any more.",
        [],
    )


def test_recipients_are_those_of_bookings(tenant: Tenant, memory: Memory, mails: MailSink) -> None:
    """Without an address of the resource, the app's contact or else its owners."""
    account = Account.objects.create_user("boss@example.com")
    Membership.objects.create(account=account, app=tenant.app, role=Membership.OWNER)
    connection = connect(tenant.make_resource()["id"])

    fail(connection, memory, 5)
    run_dispatcher("email")

    assert [mail.to for mail in mails.mails] == [["boss@example.com"]]
    assert addresses_of(Delivery.objects.get()) == ["boss@example.com"]


def test_bounce_of_the_mail_is_of_the_resource(connection: Connection, memory: Memory) -> None:
    fail(connection, memory, 5)

    assert addresses_of(Delivery.objects.get()) == [EMAIL]


# --- A person's permission ------------------------------------------------------------------------
def end_grant(google: FakeGoogle) -> None:
    """The person ends it at Google, and a worker notices."""
    google.oauth.revoke(EMAIL)
    Grant.objects.update(renew_at=timezone.now() - timedelta(minutes=1))
    for grant in claim_renewals(10):
        renew_grant(grant)


@pytest.fixture
def granted(tenant: Tenant, ada: Any, google: FakeGoogle) -> list[Connection]:
    """Two calendars of one account."""
    google.add_account(EMAIL)
    google.add_calendar("Workshops", EMAIL)
    grant = make_grant(tenant.app, google, EMAIL)
    return [connect_granted(ada, grant, wanted) for wanted in ("", "Workshops")]


def test_ended_grant_is_one_mail_and_a_call_for_each_calendar(
    tenant: Tenant,
    google: FakeGoogle,
    granted: list[Connection],
    mails: MailSink,
    hooks: HookSink,
) -> None:
    add_hook(tenant, hooks, **WANTED)

    end_grant(google)
    run_dispatcher("email")
    run_dispatcher("webhook")

    (sent,) = mails.mails
    assert text_of(sent) == (
        "New events in this calendar do not block time until you connect it again.\n\n"
        "Calendar:  ada@example.com, Workshops\n"
        "Account:   ada@example.com\n"
        f"Reason:    {PROVIDER_ERRORS['grant_ended']}\n"
        f"App:       {tenant.app.name}\n\n"
        f"{URL}/admin/availability/calendar/{granted[0].pk}/change/\n"
    )
    assert {
        (call.json["calendar"]["id"], call.json["problem"]["code"]) for call in hooks.calls
    } == {(str(connection.pk), "grant_ended") for connection in granted}
    assert [connection.is_stopped for connection in Connection.objects.all()] == [True, True]


def test_ended_grant_of_two_owners_is_mailed_to_each(
    tenant: Tenant, ada: Any, google: FakeGoogle, granted: list[Connection]
) -> None:
    bob = tenant.make_resource("Bob", email="bob@example.com")
    google.add_calendar("Lectures", EMAIL)
    connect_granted(bob, granted[0].grant, "Lectures")

    end_grant(google)

    assert [content["calendars"] for _, _, content in announced()] == [
        ["ada@example.com", "Workshops"],
        ["Lectures"],
    ]


def test_grant_that_is_given_again_and_ends_again_is_announced_again(
    tenant: Tenant, google: FakeGoogle, granted: list[Connection]
) -> None:
    end_grant(google)
    end_grant(google)  # nothing is left to stop
    assert len(announced()) == 1

    grant = Grant.objects.get()
    restart_connections(grant, now=timezone.now())
    assert [connection.problem for connection in Connection.objects.all()] == ["", ""]
    end_grant(google)

    assert len(announced()) == 2


def test_calendar_that_another_problem_has_stopped_keeps_it(
    google: FakeGoogle, granted: list[Connection]
) -> None:
    stopped = granted[1]
    Connection.objects.filter(pk=stopped.pk).update(problem="not_a_calendar", next_at=None)

    end_grant(google)

    problems = Connection.objects.order_by("created_at").values_list("problem", flat=True)
    assert list(problems) == ["grant_ended", "not_a_calendar"]
    assert [content["calendars"] for _, _, content in announced()] == [["ada@example.com"]]


# --- In all languages -----------------------------------------------------------------------------
@pytest.mark.parametrize("language", shipped_languages()[1:])
def test_mail_is_translated(language: str) -> None:
    reason = PROVIDER_ERRORS["unauthorized"]
    facts = {
        "calendars": ["Work"],
        "calendar_id": "c",
        "account": EMAIL,
        "reason": reason,
    }
    words = {
        name: compose_calendar_mail(
            app=make_app(language=name), delivery_id=DELIVERY_ID, to=[EMAIL], facts=facts
        )
        for name in ("en", language)
    }

    assert "{{" not in html_of(words[language]) + words[language].body
    with translation.override(language):
        assert words[language].subject == translation.gettext(words["en"].subject)
        assert translation.gettext(reason) in words[language].body
    assert words["en"].subject != words[language].subject
    assert reason not in words[language].body
