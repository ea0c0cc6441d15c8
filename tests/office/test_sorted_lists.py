"""Lists that sort by any column: by an index all rows, else the newest rows that a list shows."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.views.main import ORDER_VAR
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account, Membership
from availability.models import Calendar, Event, Resource
from bookings.models import Booking
from notifications.models import Delivery
from office.base.change_list import CappedPaginator
from tests.office.conftest import Enter
from tests.world import Tenant

BOOKINGS = reverse("admin:bookings_booking_changelist")
DELIVERIES = reverse("admin:notifications_delivery_changelist")
CUSTOMERS = reverse("admin:bookings_appcustomer_changelist")
EVENTS = reverse("admin:availability_event_changelist")
DAYS = {"Cleo": "2026-12-03", "Ada": "2026-12-01", "Bob": "2026-12-02"}  # by creation

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def booked(tenant: Tenant) -> Tenant:
    """Cleo, Ada and Bob book what has their name, of a resource with their name."""
    for name, day in DAYS.items():
        customer = {"name": name, "email": f"{name.lower()}@example.com"}
        times = {"start": f"{day} 09:00:00", "end": f"{day} 10:00:00"}
        resource = tenant.make_resource(name, email=f"{name}@office.example.com")
        answer = tenant.book(resource_id=resource["id"], customer=customer, what=name, **times)
        assert answer.status == 201, answer.json
    return tenant


def columns_of(client: Client, path: str, **query: str) -> list[str]:
    return list(client.get(path, query).context["cl"].list_display)


def rows_at(client: Client, path: str, place: int, sign: str = "", **query: str) -> list[Any]:
    """The rows sorted by the column at that place."""
    page = client.get(path, query | {ORDER_VAR: f"{sign}{place}"})
    return list(page.context["cl"].result_list)


def rows_sorted(client: Client, path: str, column: str, sign: str = "", **query: str) -> list[Any]:
    place = columns_of(client, path, **query).index(column)
    return rows_at(client, path, place, sign, **query)


BY_NAME = [["Ada", "Bob", "Cleo"], ["Cleo", "Bob", "Ada"]]


def test_bookings_are_sorted_by_each_column(booked: Tenant, enter: Enter) -> None:
    client, wanted = enter(booked), ("starts", "customer", "what", "resource")
    columns = columns_of(client, BOOKINGS)

    ways = {
        column: [
            [row.event.what for row in rows_at(client, BOOKINGS, columns.index(column), sign)]
            for sign in ("", "-")
        ]
        for column in wanted
    }

    assert ways == dict.fromkeys(wanted, BY_NAME)


def test_events_are_sorted_by_each_column(booked: Tenant, enter: Enter) -> None:
    client, wanted = enter(booked), ("what", "resource", "starts", "ends")
    columns = columns_of(client, EVENTS)

    ways = {
        column: [
            [row.what for row in rows_at(client, EVENTS, columns.index(column), sign)]
            for sign in ("", "-")
        ]
        for column in wanted
    }

    assert ways == dict.fromkeys(wanted, BY_NAME)


def test_deliveries_are_sorted_by_each_column(booked: Tenant, enter: Enter) -> None:
    values: dict[str, Callable[[Any], Any]] = {
        "due": lambda row: row.due_at,
        "shown_kind": lambda row: row.kind,
        "receiver": lambda row: row.recipient + row.endpoint,
        "shown_state": lambda row: row.state,
        "shown_reason": lambda row: row.reason,
        "attempts_made": lambda row: row.tries,
        "shown_booking": lambda row: row.booking.event.start,
    }
    for number, delivery in enumerate(Delivery.objects.order_by("?")):
        delivery.tries, delivery.reason = number, f"Reason {number}"
        delivery.state = ("delivered", "failed")[number % 2]
        delivery.next_at, delivery.finished_at = None, delivery.due_at
        delivery.save()
    client = enter(booked)
    columns = columns_of(client, DELIVERIES)

    for column, value in values.items():
        first, last = (
            [value(row) for row in rows_at(client, DELIVERIES, columns.index(column), sign)]
            for sign in ("", "-")
        )

        assert len(first) == Delivery.objects.count() > 3
        assert (column, first) == (column, sorted(first))
        assert (column, last) == (column, sorted(first, reverse=True))


def test_a_column_without_an_index_sorts_the_newest_rows(
    booked: Tenant, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CappedPaginator, "MOST", 2)
    client = enter(booked)

    def shown(path: str, column: str) -> list[str]:
        return [getattr(row, "event", row).what for row in rows_sorted(client, path, column)]

    of_filter = rows_sorted(client, EVENTS, "what", q="Cleo")

    assert shown(BOOKINGS, "what") == ["Ada", "Bob"]
    assert shown(EVENTS, "what") == ["Ada", "Bob"]
    assert shown(EVENTS, "starts") == ["Ada", "Bob", "Cleo"]  # by an index
    assert [row.what for row in of_filter] == ["Cleo"]


def test_the_index_of_addresses_sorts_the_customers_of_one_app(
    booked: Tenant, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Staff see the customers of all apps, also if they are members of one."""
    monkeypatch.setattr(CappedPaginator, "MOST", 2)
    member, staff = enter(booked), enter()
    superuser = Account.objects.get(email="staff@example.com")
    Membership.objects.create(account=superuser, app=booked.app, role=Membership.OWNER)
    chosen = {"app__id__exact": str(booked.app.pk)}

    of_member, of_staff, of_chosen = (
        [row.address.lower() for row in rows_sorted(client, CUSTOMERS, "email", **query)]
        for client, query in ((member, {}), (staff, {}), (staff, chosen))
    )

    assert of_member == of_chosen == ["ada@example.com", "bob@example.com", "cleo@example.com"]
    assert of_staff == ["ada@example.com", "bob@example.com"]


def test_a_list_has_a_link_to_all_rows_if_a_filter_hides_some(booked: Tenant, enter: Enter) -> None:
    client = enter(booked)

    pages = [client.get(EVENTS, query).content.decode() for query in ({}, {"q": "Cleo"})]

    assert ["Show all" in page for page in pages] == [False, True]
    assert ["3 results" in pages[0], "1 result" in pages[1]] == [True, True]


@pytest.mark.usefixtures("expanded_calls")
def test_call_is_listed_with_its_url(booked: Tenant, enter: Enter) -> None:
    booked.post("/webhooks", {"url": "https://example.com/hook"})
    times = {"start": "2026-12-07 09:00:00", "end": "2026-12-07 10:00:00"}
    booked.book(resource_id=str(Resource.objects.get(name="Bob").pk), **times)

    page = enter(booked).get(DELIVERIES, {"type": "webhook"}).content.decode()

    assert "https://example.com" in page
    assert "---------" not in page.partition('id="result_list"')[2].partition("</table>")[0]


def test_the_export_has_all_rows_of_a_sorted_list(
    booked: Tenant, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CappedPaginator, "MOST", 2)
    client = enter(booked)
    place = client.get(BOOKINGS).context["cl"].list_display.index("what")

    page = client.get(reverse("admin:bookings_booking_export"), {ORDER_VAR: str(place)})
    rows = client.get(reverse("admin:bookings_booking_export_rows"), {ORDER_VAR: str(place)})

    assert (page.context["total"], rows.json()["count"]) == (3, 3)


def test_events_of_deleted_rows_are_behind_a_filter(booked: Tenant, enter: Enter) -> None:
    now, client = timezone.now(), enter(booked)
    Booking.objects.filter(event__what="Cleo").update(deleted_at=now)
    Calendar.objects.filter(resource__name="Ada").update(deleted_at=now)
    Resource.objects.filter(name="Dora").update(deleted_at=now)

    def shown(**query: str) -> list[str]:
        return sorted(row.what for row in client.get(EVENTS, query).context["cl"].result_list)

    before = shown(), shown(deleted="only"), shown(deleted="all")
    Resource.objects.filter(name="Bob").update(deleted_at=now)

    assert before == (["Bob"], ["Ada", "Cleo"], ["Ada", "Bob", "Cleo"])
    assert (shown(), shown(deleted="only")) == ([], ["Ada", "Bob", "Cleo"])


def test_the_further_event_of_a_deleted_booking_is_behind_the_filter(
    booked: Tenant, enter: Enter
) -> None:
    booking = Booking.objects.get(event__what="Ada")
    other = Event.objects.get(what="Bob")
    Event.objects.filter(pk=other.pk).update(main=booking.event)
    Booking.objects.filter(event=other).delete()
    Booking.objects.filter(pk=booking.pk).update(deleted_at=timezone.now())

    found = enter(booked).get(EVENTS, {"deleted": "only"}).context["cl"].result_list

    assert sorted(row.what for row in found) == ["Ada", "Bob"]
