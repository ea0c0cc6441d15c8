"""The first page: numbers that are the lengths of the lists they lead to."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Permission
from django.utils import timezone

from apps_config.models import Account
from availability.models import Calendar
from external_calendars.models import Connection, PushChannel
from notifications.models import Delivery
from office.navigation import sidebar
from tests.external_calendars.memory import connect
from tests.office.conftest import Enter, logged_in
from tests.world import Tenant

NOON = datetime(2030, 3, 5, 12, tzinfo=UTC)


@pytest.fixture
def day(tenant: Tenant) -> Any:
    """A Tuesday in Berlin: two bookings today, one of them over, one cancelled, one tomorrow; one
    request; a webhook that is off; a mail that failed."""
    with time_machine.travel(NOON, tick=False):
        tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"default_timezone": "Europe/Berlin"}})
        tenant.app.refresh_from_db()
        ada = tenant.make_resource("Ada", timezone="Europe/Berlin")

        def book(start: str, end: str, **given: Any) -> Any:
            return tenant.book(resource_id=ada["id"], start=start, end=end, **given).data

        book("2030-03-05 08:00:00", "2030-03-05 09:00:00")
        late = book("2030-03-05 23:15:00", "2030-03-05 23:45:00")
        off = book("2030-03-05 15:00:00", "2030-03-05 16:00:00")
        tenant.put(f"/bookings/{off['id']}/cancel", {})
        book("2030-03-06 00:15:00", "2030-03-06 00:45:00")
        asked = book("2030-03-07 09:00:00", "2030-03-07 10:00:00", graph="confirm_decline")
        hook = tenant.post("/webhooks", {"url": "https://hooks.example.com/in"}).data
        tenant.put(f"/webhooks/{hook['id']}", {"active": False})
        failed = Delivery.objects.filter(booking_id=late["id"]).first()
        Delivery.objects.filter(id=failed.id).update(
            state="failed", next_at=None, finished_at=NOON, reason="no server"
        )
        yield {"late": late, "asked": asked}


def test_numbers_equal_the_lengths_of_their_lists(tenant: Tenant, day: Any, enter: Enter) -> None:
    client = enter(tenant)
    with time_machine.travel(NOON.replace(hour=13), tick=False):
        figures = client.get("/admin/").context["figures"]
        lengths = [client.get(figure.link).context["cl"].result_count for figure in figures]

    overdue = Delivery.objects.filter(app=tenant.app, next_at__isnull=False).count()
    assert [(figure.words, figure.number) for figure in figures] == [
        ("bookings today", "2"),
        ("pending request", "1"),
        ("deliveries failed in 24 hours", "1"),
        ("deliveries overdue", str(overdue)),
        ("webhooks disabled", "1"),
    ]
    # Of today's, the list shows the cancelled one too.
    assert [str(length) for length in lengths] == ["3", "1", "1", str(overdue), "1"]
    assert overdue > 0


def test_requests_can_be_answered(tenant: Tenant, day: Any, enter: Enter) -> None:
    client = enter(tenant)
    with time_machine.travel(NOON, tick=False):
        context = client.get("/admin/").context

    assert context["zone"] == "Europe/Berlin"
    assert [
        (line["when"], str(line["booking"].pk), [button.value for button in line["actions"]])
        for line in context["requests"]
    ] == [("Thu 7 Mar 2030, 09:00 CET", day["asked"]["id"], ["confirm", "decline"])]


def test_another_app_is_not_counted(tenant: Tenant, day: Any, enter: Enter) -> None:
    other = Tenant("globex")
    with time_machine.travel(NOON, tick=False):
        context = enter(other).get("/admin/").context

    assert [one.number for one in context["figures"]] == ["0"] * 2
    assert (context["desk"].columns, context["requests"]) == ([], [])


PARTS = {
    "bookings.view_booking": {"desk", "requests"},
    "notifications.view_delivery": set(),
    "notifications.view_webhook": set(),
    "availability.view_calendar": {"calendars", "first_syncs"},
    "apps_config.view_app": {
        *("refusals", "apps_without_emails", "links_of_apps_without_emails"),
        "is_behind_unknown_proxy",
    },
}
FIGURES = {
    "bookings.view_booking": ["bookings today", "pending request"],
    # Of machines only what is not zero.
    "notifications.view_delivery": ["deliveries failed in 24 hours", "deliveries overdue"],
    "notifications.view_webhook": ["webhooks disabled"],
}


@pytest.mark.parametrize("permission", [*PARTS, ""])
def test_staff_see_the_parts_of_their_permissions(
    tenant: Tenant, day: Any, permission: str
) -> None:
    clerk = Account.objects.create_user("clerk@example.com", "x" * 12, is_staff=True)
    label, _, codename = permission.partition(".")
    right = Permission.objects.filter(content_type__app_label=label, codename=codename)
    clerk.user_permissions.set(right)

    page = logged_in(clerk).get("/admin/")

    every = set().union(*PARTS.values())
    assert {name for name in every if name in page.context} == PARTS.get(permission, set())
    assert [one.words for one in page.context["figures"]] == FIGURES.get(permission, [])
    has_sentence = "Your account has no rights in the back office yet." in page.content.decode()
    assert has_sentence is (permission == "")
    pages = [item["link"] for group in sidebar(page.wsgi_request) for item in group["items"]]
    assert pages == [
        "/admin/",
        *(link.format(app=tenant.app.pk) for link in LINKS.get(permission, ())),
    ]


LINKS = {
    "bookings.view_booking": [
        *("/admin/calendar/", "/admin/bookings/booking/?tab=upcoming"),
        *("/admin/reports/", "/admin/why/"),
    ],
    "notifications.view_delivery": ["/admin/notifications/delivery/"],
    "notifications.view_webhook": ["/admin/notifications/webhook/"],
    "availability.view_calendar": ["/admin/availability/calendar/"],
    "apps_config.view_app": ["/admin/apps_config/app/", "/admin/apps_config/app/{app}/change/"],
}


def test_apps_without_emails_are_named(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)
    before = client.get("/admin/").context["apps_without_emails"]

    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"disable_emails": True}})

    page = client.get("/admin/")
    link = f"/admin/apps_config/app/{tenant.app.pk}/change/#part-e-mails"
    assert (before, page.context["apps_without_emails"]) == ([], [tenant.app])
    assert link in page.content.decode()
    assert enter(Tenant("globex")).get("/admin/").context["apps_without_emails"] == []


def test_calendars_without_push_are_listed(tenant: Tenant, enter: Enter, settings: Any) -> None:
    settings.CALENDAR_PROVIDER_GATEWAY = "http://127.0.0.1:9"
    old = timezone.now() - timedelta(days=2)
    silent, told = (connect(tenant.make_resource(name)["id"], "google") for name in ("Ada", "Bob"))
    Connection.objects.update(created_at=old, next_at=timezone.now() + timedelta(minutes=5))
    Calendar.objects.filter(connection__isnull=False).update(synced_at=timezone.now())
    PushChannel.objects.create(
        connection=told, channel_id="c", heard_at=old, renew_at=old, ends_at=timezone.now()
    )

    client = enter(tenant)

    page = client.get("/admin/")

    (line,) = page.context["silent_calendars"]
    assert line["link"] == f"/admin/availability/calendar/{silent.pk}/change/"
    assert "Calendars without push messages" in page.content.decode()
    settings.CALENDAR_PROVIDER_GATEWAY = ""
    assert client.get("/admin/").context["silent_calendars"] == []
