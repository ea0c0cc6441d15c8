"""The calendar file behind a signed link, and who gets such links."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from bookings.models import Booking
from bookings.pages.action_links import action_url
from tests.booking_pages.test_book_page import Shown, make_page
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")
NINE = {"start": "2026-11-23T09:00:00+01:00", "end": "2026-11-23T09:30:00+01:00"}
MARTY = {"name": "Marty McFly", "email": "marty@example.com"}


def book(tenant: Tenant, **given: Any) -> Any:
    project = tenant.app.projects.get()
    body = {"project_id": str(project.id), **NINE, "customer": MARTY}
    return tenant.widget().post("/bookings?include=customer_action_links", {**body, **given})


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


def test_file_equals_the_entry_of_the_confirmation(tenant: Tenant) -> None:
    make_page(tenant, booking={"where": "Quay 5", "description": "Look"})
    links = book(tenant).data["customer_action_links"]

    response = Client().get(path_of(links["calendar"]))

    row = Booking.objects.get()
    assert sorted(links) == ["calendar", "cancel_by_customer", "reschedule"]
    assert (response.status_code, response["Content-Type"], response["Content-Disposition"]) == (
        200,
        "text/calendar; charset=utf-8",
        'attachment; filename="booking.ics"',
    )
    lines = response.content.decode().split("\r\n")
    assert {
        "METHOD:PUBLISH",
        f"UID:{row.calendar_uid}@{urlsplit(links['calendar']).hostname}",
        "DTSTART:20261123T080000Z",
        "DTEND:20261123T083000Z",
        "SUMMARY:Check-up",
        "LOCATION:Quay 5",
        "DESCRIPTION:Look",
        "STATUS:CONFIRMED",
        f"URL:{links['calendar'].partition('/book/')[0]}/book/page-of-{tenant.app.slug}",
        "BEGIN:VALARM",
    } <= set(lines)
    assert "Marty" not in response.content.decode()


def test_cancelled_booking_has_no_file(tenant: Tenant) -> None:
    make_page(tenant)
    links = book(tenant).data["customer_action_links"]
    row = Booking.objects.get()
    tenant.put(f"/bookings/{row.id}/cancel", {})

    page = Shown(path_of(links["calendar"]))

    assert (page.status, page.visible_texts) == (
        409,
        ["This action is no longer possible", "The booking was cancelled."],
    )


def test_signature_of_another_link_is_refused(tenant: Tenant) -> None:
    make_page(tenant)
    book(tenant)
    row = Booking.objects.select_related("event").get()
    query = action_url(row, "cancel_by_customer", row.event.end).partition("?")[2]

    page = Shown(f"/book/bookings/{row.id}/calendar.ics?{query}")

    assert (page.status, page.visible_texts[0]) == (403, "This link does not work")


def test_unconfirmed_request_has_no_file(tenant: Tenant) -> None:
    make_page(tenant, booking={"graph": "confirm_decline"})

    assert sorted(book(tenant).data["customer_action_links"]) == [
        "cancel_by_customer",
        "reschedule",
    ]


def test_only_the_response_of_a_new_booking_has_links(tenant: Tenant) -> None:
    """Neither with a list of groups nor with a move."""
    make_page(tenant, settings={"public_reschedule": "id"})
    made = book(tenant).data
    widget = tenant.widget()
    later = {"start": "2026-11-24T09:00:00+01:00", "end": "2026-11-24T09:30:00+01:00"}
    links = "include=customer_action_links"

    listed = widget.get(f"/bookings/groups?{links}")
    moved = widget.post(f"/bookings/{made['id']}/reschedule?{links}", later)

    assert [answer.status for answer in (listed, moved)] == [422, 422]
