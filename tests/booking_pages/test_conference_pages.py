"""The link of a video call on pages for customers, and in the calendar file."""

from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from booking_pages.own_bookings import begin_session
from tests.booking_pages.test_book_page import Shown, make_page
from tests.booking_pages.test_calendar_file import book, path_of
from tests.world import NOW, Tenant

pytestmark = pytest.mark.usefixtures("clock")

CONFERENCE = {"provider": "template", "template": "https://video.example/?a=b&room={booking_id}"}


@pytest.fixture
def booking(tenant: Tenant) -> Any:
    make_page(tenant, settings={"conference": CONFERENCE})
    return book(tenant).data


def link_of(booking: Any) -> str:
    return f"https://video.example/?a=b&room={booking['id']}"


def anchor_of(booking: Any) -> str:
    address = link_of(booking).replace("&", "&amp;")
    return f'<a href="{address}">{address}</a>'


def test_page_of_a_link_has_the_video_call(booking: Any) -> None:
    page = Shown(path_of(booking["customer_action_links"]["cancel_by_customer"]))

    assert page.status == 200
    assert "Video call" in page.words("dt")
    assert anchor_of(booking) in page.html


def test_page_to_move_the_booking_has_the_video_call(booking: Any) -> None:
    page = Shown(path_of(booking["customer_action_links"]["reschedule"]))

    assert page.status == 200
    assert anchor_of(booking) in page.html


def test_own_bookings_have_the_video_call_until_the_cancellation(
    tenant: Tenant, booking: Any
) -> None:
    client = Client()
    begin_session(response := HttpResponse(), tenant.app, "marty@example.com", now=NOW)
    client.cookies = response.cookies
    home = f"/book/{tenant.app.slug}/mine"

    before = Shown.of(client.get(home))
    assert tenant.put(f"/bookings/{booking['id']}/cancel", {}).status == 200
    after = Shown.of(client.get(home))

    assert (before.status, after.status) == (200, 200)
    assert (anchor_of(booking) in before.html, "Video call" in after.html) == (True, False)


def test_calendar_file_has_the_video_call(booking: Any) -> None:
    response = Client().get(path_of(booking["customer_action_links"]["calendar"]))

    lines = response.content.decode().replace("\r\n ", "").split("\r\n")
    link = link_of(booking)
    assert {
        f"LOCATION:{link}",
        f"DESCRIPTION:Video call: {link}",
        f"URL:{link}",
        f'CONFERENCE;FEATURE="AUDIO,VIDEO";VALUE=URI:{link}',
    } <= set(lines)


def test_request_has_no_video_call_on_its_pages(tenant: Tenant) -> None:
    make_page(tenant, settings={"conference": CONFERENCE}, booking={"graph": "confirm_decline"})
    booking = book(tenant).data

    page = Shown(path_of(booking["customer_action_links"]["cancel_by_customer"]))

    assert (page.status, "Video call" in page.html) == (200, False)
