"""The first page: numbers that are the lengths of the lists they lead to."""

from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine

from notifications.models import Delivery
from tests.office.conftest import Enter
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


def test_numbers_are_the_lengths_of_their_lists(tenant: Tenant, day: Any, enter: Enter) -> None:
    client = enter(tenant)
    with time_machine.travel(NOON.replace(hour=13), tick=False):
        figures = client.get("/admin/").context["figures"]
        lengths = [client.get(figure.link).context["cl"].result_count for figure in figures]

    overdue = Delivery.objects.filter(app=tenant.app, next_at__isnull=False).count()
    assert [(figure.words, figure.number) for figure in figures] == [
        ("bookings today", "2"),
        ("pending requests", "1"),
        ("deliveries failed in 24 hours", "1"),
        ("deliveries overdue", str(overdue)),
        ("webhooks disabled", "1"),
        ("calendars need attention", "0"),
    ]
    # Of today's, the list shows the cancelled one too.
    assert [str(length) for length in lengths] == ["3", "1", "1", str(overdue), "1", "0"]
    assert overdue > 0


def test_lines_and_charts(tenant: Tenant, day: Any, enter: Enter) -> None:
    client = enter(tenant)
    with time_machine.travel(NOON, tick=False):
        context = client.get("/admin/").context

    def lines(name: str) -> list[tuple[str, str]]:
        return [(line["when"], line["link"]) for line in context[name]]

    assert context["zone"] == "Europe/Berlin"
    link = "/admin/bookings/booking/{}/change/"
    assert lines("next_bookings") == [
        ("Tue 5 Mar 2030, 23:15 CET", link.format(day["late"]["id"])),
    ]
    assert lines("requests") == [("Thu 7 Mar 2030, 09:00 CET", link.format(day["asked"]["id"]))]
    drawn = {bar.label: [part[3] for part in bar.parts] for bar in context["bookings_chart"]}
    labels = list(drawn)
    assert (labels[0], labels[-1], len(labels)) == ("Wed 27", "Tue 12", 14)
    assert {label: parts for label, parts in drawn.items() if parts} == {
        "Tue 5": ["2 confirmed, paid or sent", "1 cancelled or failed"],
        "Wed 6": ["1 confirmed, paid or sent"],
        "Thu 7": ["1 pending"],
    }
    sent = {bar.label: [part[3] for part in bar.parts] for bar in context["deliveries_chart"]}
    assert {label: parts for label, parts in sent.items() if parts} == {
        "13": ["1 cancelled or failed"],
    }


def test_another_app_is_not_counted(tenant: Tenant, day: Any, enter: Enter) -> None:
    other = Tenant("globex")
    with time_machine.travel(NOON, tick=False):
        context = enter(other).get("/admin/").context

    assert [one.number for one in context["figures"]] == ["0"] * 6
    assert (context["next_bookings"], context["requests"]) == ([], [])
    assert [bar.total for bar in context["bookings_chart"]] == [0] * 14
    assert [bar.total for bar in context["deliveries_chart"]] == [0] * 24


def test_apps_without_emails_are_named(tenant: Tenant, enter: Enter) -> None:
    client = enter(tenant)
    before = client.get("/admin/").context["apps_without_emails"]

    tenant.put(f"/apps/{tenant.app.slug}", {"settings": {"disable_emails": True}})

    page = client.get("/admin/")
    link = f"/admin/apps_config/app/{tenant.app.pk}/change/#part-e-mails"
    assert (before, page.context["apps_without_emails"]) == ([], [tenant.app])
    assert link in page.content.decode()
    assert enter(Tenant("globex")).get("/admin/").context["apps_without_emails"] == []
