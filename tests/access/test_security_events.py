"""The record of security events: by the API, in the back office, by links and by commands."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from access.invitations import invite_member
from apps_config.models import Account, Credential, SecurityEvent
from apps_config.security_events import KEPT, purge_security_events, record_event
from apps_config.services import issue_key
from booking_pages.own_bookings import begin_session
from bookings.models import AppCustomer
from notifications.links.invitations import invitation_url
from tests.booking_pages.test_book_page import make_page
from tests.booking_pages.test_own_bookings import Visitor
from tests.office.staff import member, superuser
from tests.world import NOW, Tenant

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
PASSWORD = "harbour-lights-7"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

Event = tuple[str, str, dict[str, Any]]


def events() -> list[Event]:
    """(kind, actor, about) of all events, the oldest first; forgets them."""
    rows = SecurityEvent.objects.order_by("id")
    found = [(row.kind, row.actor, row.about) for row in rows]
    rows.delete()
    return found


@pytest.fixture
def owner_client(tenant: Tenant) -> Any:
    """Calls the API with an access token; the events of its making are gone."""
    caller = tenant.member("owner@example.com")
    events()
    return caller


def test_event_records_account_time_and_network(tenant: Tenant, clock: Any) -> None:
    account = Account.objects.create_user("owner@example.com", PASSWORD)
    account.memberships.create(app=tenant.app, role="owner")
    client = Client(headers={"User-Agent": BROWSER * 3}, REMOTE_ADDR="2001:db8::17")
    client.force_login(account)
    events()

    key = tenant.app.credentials.get()
    client.post(f"/admin/apps_config/credential/{key.pk}/revoke/")

    assert list(SecurityEvent.objects.values()) == [
        {
            "id": SecurityEvent.objects.get().id,
            "app_id": tenant.app.id,
            "account_id": None,
            "actor": "owner@example.com",
            "kind": "key_revoked",
            "network": "2001:db8::/64",
            "user_agent": (BROWSER * 3)[:200],
            "about": {"key_kind": "server", "prefix": key.prefix},
            "count": 1,
            "created_at": NOW,
        }
    ]


def test_events_of_keys_through_the_api(tenant: Tenant, owner_client: Any) -> None:
    made = owner_client.post("/credentials", {"kind": "widget"}).data
    owner_client.delete(f"/credentials/{made['id']}")
    owner_client.delete(f"/credentials/{made['id']}")  # already revoked
    tenant.make_resource()
    resource_key = Credential.objects.get(kind="resource")
    about = {"key_kind": "widget", "prefix": made["prefix"]}
    of_resource = {"key_kind": "resource", "prefix": resource_key.prefix}

    assert events() == [
        ("key_made", "owner@example.com", about),
        ("key_revoked", "owner@example.com", about),
        ("key_made", "command", of_resource),
    ]


def test_events_of_commands(tenant: Tenant) -> None:
    tenant.member("owner@example.com")
    events()

    call_command("issue_key", tenant.app.slug)
    call_command("create_app", "harbour", owner="owner@example.com")

    key = Credential.objects.order_by("-id")[0]
    assert events() == [
        ("key_made", "command", {"key_kind": "server", "prefix": key.prefix}),
        ("owner_added", "command", {"member": "owner@example.com", "role": "owner"}),
    ]


def test_events_of_members(tenant: Tenant, owner_client: Any) -> None:
    path = f"/apps/{tenant.app.slug}/members"
    doc, bob = {"member": "doc@example.com", "role": "editor"}, {"member": "bob@example.com"}
    owner_client.post(path, {"email": "doc@example.com", "role": "editor"})
    stopped = owner_client.post(path, {"email": "bob@example.com"}).data
    owner_client.delete(f"{path}/{stopped['id']}")
    link = urlsplit(invitation_url(tenant.app.invitations.open().get()))
    passwords = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    Client().post(f"{link.path}?{link.query}", passwords)
    joined = Account.objects.get(email="doc@example.com")
    owner_client.delete(f"{path}/{joined.pk}")

    found = [event for event in events() if event[0] != "password_changed"]

    assert found == [
        ("member_invited", "owner@example.com", doc),
        ("member_invited", "owner@example.com", bob | {"role": "viewer"}),
        ("invitation_revoked", "owner@example.com", bob | {"role": "viewer"}),
        ("member_added", "doc@example.com", doc),
        ("member_removed", "owner@example.com", doc),
    ]


def test_event_of_a_new_owner_in_the_back_office(tenant: Tenant) -> None:
    owner_client = member(tenant.app, "owner", "ann@example.com")
    member(tenant.app, "editor", "bob@example.com")
    page = f"/admin/apps_config/membership/of/{tenant.app.pk}/"
    number = tenant.app.memberships.get(account__email="bob@example.com").pk
    events()

    owner_client.post(page, {"member": number, "role": "owner"})
    owner_client.post(page, {"member": number, "role": "owner"})  # no change
    owner_client.post(page, {"member": number, "role": "viewer"})

    bob = {"member": "bob@example.com"}
    assert events() == [
        ("owner_added", "ann@example.com", bob | {"role": "owner", "before": "editor"}),
        ("member_changed", "ann@example.com", bob | {"role": "viewer", "before": "owner"}),
    ]


def test_event_of_a_higher_role_through_an_invitation(tenant: Tenant) -> None:
    now = timezone.now()
    invited = invite_member(app=tenant.app, email="bob@example.com", role="owner", now=now)
    bob = Account.objects.create_user("bob@example.com", PASSWORD)
    tenant.app.memberships.create(account=bob, role="viewer")
    parts = urlsplit(invitation_url(invited))
    events()

    Client().post(f"{parts.path}?{parts.query}")

    about = {"member": "bob@example.com", "role": "owner", "before": "viewer"}
    assert events() == [("owner_added", "bob@example.com", about)]


@pytest.mark.usefixtures("clock")
def test_events_of_exports_and_erasures(tenant: Tenant) -> None:
    make_page(tenant)
    resource = tenant.get("/resources").data[0]["id"]
    times = {"start": "2026-12-01 09:00:00", "end": "2026-12-01 09:30:00"}
    ann = {"name": "Ann", "email": "ann@example.com"}
    booking = tenant.book(resource_id=resource, **times, customer=ann)
    customer, staff = Visitor(tenant), superuser()
    cookies = HttpResponse()
    begin_session(cookies, tenant.app, "ann@example.com", now=NOW)
    customer.client.cookies = cookies.cookies
    events()

    tenant.get("/customers/export?email=ann@example.com")
    staff.get(f"/admin/bookings/appcustomer/{AppCustomer.objects.get().pk}/export/")
    staff.get("/admin/bookings/booking/export/rows/")
    customer.client.get(f"{customer.home}/export")
    tenant.put(f"/bookings/{booking.data['id']}/cancel")
    customer.submit("/erase")
    tenant.post("/customers/erase", {"email": "ann@example.com"})

    key = f"server key {str(tenant.app.credentials.get(kind='server').id)[:8]}"
    assert events() == [
        ("customer_exported", key, {"bookings": 1}),
        ("customer_exported", "staff@example.com", {"bookings": 1}),
        ("bookings_exported", "staff@example.com", {"bookings": 1}),
        ("customer_exported", "customer", {}),
        ("customer_erased", "customer", {}),
        ("customer_erased", key, {}),
    ]


def test_event_is_rolled_back_with_its_change(tenant: Tenant) -> None:
    events()

    with transaction.atomic():
        issue_key(Credential.SERVER, app=tenant.app)
        transaction.set_rollback(True)

    assert events() == []


@pytest.mark.django_db(transaction=True)
def test_event_log_line_has_no_personal_data(
    make_tenant: Callable[..., Tenant], caplog: pytest.LogCaptureFixture
) -> None:
    tenant = make_tenant()
    owner_client = tenant.member("owner@example.com")
    caplog.clear()

    with caplog.at_level(logging.INFO, logger="security"):
        owner_client.post(f"/apps/{tenant.app.slug}/members", {"email": "doc@example.com"})

    lines = [record for record in caplog.records if record.name == "security"]
    assert [(line.getMessage(), line.fields) for line in lines] == [
        (
            "security",
            {
                "event": "member_invited",
                "actor": "owner@example.com",
                "account": "",
                "app": tenant.app.id,
                "network": "127.0.0.1",
            },
        )
    ]


def test_events_are_kept_for_400_days(clock: Any, db: None) -> None:
    assert timedelta(days=400) == KEPT
    record_event(SecurityEvent.LOG_OUT, actor="old")
    clock.shift(1)
    record_event(SecurityEvent.LOG_OUT, actor="new")

    clock.shift(400 * 86_400)
    purged = sum(purge_security_events(now=timezone.now()))

    assert (purged, events()) == (1, [("log_out", "new", {})])
