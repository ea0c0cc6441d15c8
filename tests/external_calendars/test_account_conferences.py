"""Links of video calls that Google and Microsoft make with the event of a booking."""

from typing import Any

import pytest
from django.utils import timezone

from bookings.models import Booking
from external_calendars.models import Connection
from notifications.outbox.dispatcher import run_dispatcher
from tests.external_calendars.accounts import EMAIL, AccountHome, connect_account
from tests.external_calendars.mirrored import write
from tests.external_calendars.test_accounts import sync
from tests.external_calendars.test_mirror import _at_home, act, book
from tests.notifications.conftest import mails
from tests.sinks import MailSink
from tests.world import Tenant

__all__ = ["_at_home", "mails"]
pytestmark = pytest.mark.django_db(transaction=True)

FOLLOWS = "The link for the video call follows."
KINDS = {"google": "meet", "microsoft": "teams"}


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada Lovelace", email=EMAIL, timezone="Europe/Berlin")


@pytest.fixture
def work(tenant: Tenant, ada: Any, account: AccountHome) -> Connection:
    return connect_account(tenant, account, ada)


def book_call(tenant: Tenant, ada: Any, account: AccountHome) -> Any:
    """A new booking with a video call."""
    settings = {"conference": {"provider": KINDS[account.name]}}
    project = tenant.make_project(ada["id"], settings=settings)
    return book(tenant, ada, project_id=project["id"], enforce_availability=False)


@pytest.fixture
def booking(tenant: Tenant, ada: Any, account: AccountHome, work: Connection) -> Any:
    return book_call(tenant, ada, account)


def link_of(tenant: Tenant, booking: Any) -> str | None:
    return tenant.get(f"/bookings/{booking['id']}").data["conference"]["url"]


def texts_to_marty(mails: MailSink) -> list[str]:
    for _ in range(3):
        run_dispatcher("email")
    return [mail.text for mail in mails.mails if mail.to == ["marty@example.com"]]


def test_first_mail_has_the_link(
    tenant: Tenant, booking: Any, account: AccountHome, mails: MailSink
) -> None:
    assert texts_to_marty(mails) == []  # waits for the link

    write()

    link = link_of(tenant, booking)
    assert link in account.links()
    [text] = texts_to_marty(mails)
    assert (link in text, FOLLOWS in text) == (True, False)


def test_link_that_comes_later_is_found_by_the_next_sync(
    tenant: Tenant,
    booking: Any,
    account: AccountHome,
    work: Connection,
    mails: MailSink,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("external_calendars.mirror.writer.LINK_PAUSE", 0.0)
    account.delay_links()
    write()
    assert link_of(tenant, booking) is None
    Booking.objects.get(id=booking["id"]).deliveries.filter(type="email").update(
        next_at=timezone.now()
    )
    [first] = texts_to_marty(mails)
    assert FOLLOWS in first

    account.make_links()
    sync(work)

    link = link_of(tenant, booking)
    assert link in account.links()
    [_, second] = texts_to_marty(mails)
    assert link in second


def test_cancelled_booking_has_no_link(
    tenant: Tenant, booking: Any, account: AccountHome, mails: MailSink
) -> None:
    write()

    act(tenant, booking, "cancel")
    write()

    assert tenant.get(f"/bookings/{booking['id']}").data["conference"] is None
    assert account.events() == []


def test_account_without_video_calls(
    tenant: Tenant, ada: Any, account: AccountHome, mails: MailSink
) -> None:
    """The e-mails do not wait, and promise no link."""
    account.end_video_calls()
    work = connect_account(tenant, account, ada)
    booking = book_call(tenant, ada, account)

    [text] = texts_to_marty(mails)
    write()

    assert work.makes_links is False
    assert tenant.get(f"/bookings/{booking['id']}").data["conference"] == {
        "provider": KINDS[account.name],
        "url": None,
        "problem": "not_offered",
    }
    assert FOLLOWS not in text
    [written] = account.writes()
    assert not {"conferenceData", "isOnlineMeeting"} & written.json.keys()
