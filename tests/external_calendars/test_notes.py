"""Internal notes leave the service nowhere: mails, calls, feeds, calendars, customers' pages."""

from ipaddress import ip_network
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from availability.models import Calendar
from booking_pages.own_bookings import begin_session
from notifications.models import Delivery
from notifications.outbox.dispatcher import run_dispatcher
from tests.external_calendars.mirrored import Memory
from tests.external_calendars.test_feed import fetch, make_feed
from tests.external_calendars.test_mirror import MARTY, _at_home, ada, book, memory, work
from tests.external_calendars.test_mirror_privacy import mails
from tests.sinks import MailSink, hook_sink
from tests.world import Tenant

__all__ = ["_at_home", "ada", "mails", "memory", "work"]
pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "toupee"


def send_all() -> None:
    for _ in range(2):  # what waits for the first
        for kind in ("email", "webhook", "calendar"):
            run_dispatcher(kind)


def test_no_note_leaves_the_service(
    tenant: Tenant, ada: Any, work: Calendar, memory: Memory, mails: MailSink, settings: Any
) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.WEBHOOK_HTTPS_ONLY = False
    feed = make_feed(tenant, ada["calendars"][0]["id"], details=True)
    tenant.make_project(ada["id"], settings={"published": True})
    with hook_sink() as hooks:
        kinds = ["booking.confirmed", "booking.updated", "booking.cancelled"]
        tenant.post("/webhooks", {"url": hooks.url(), "kinds": kinds})
        booking = book(tenant, ada, note=f"A {SECRET}.")
        path = f"/bookings/{booking['id']}"
        tenant.put("/customers/note", {"email": MARTY["email"], "note": f"Has a {SECRET}."})
        tenant.put(path, {"note": f"Wears a {SECRET}.", "where": "Room 2"})
        send_all()
        sent = [text for _, text in memory.objects.values()] + [fetch(feed).content.decode()]
        response = HttpResponse()
        begin_session(response, tenant.app, MARTY["email"], now=timezone.now())
        visitor = Client()
        visitor.cookies = response.cookies
        home = f"/book/{tenant.app.slug}/mine"
        pages = [visitor.get(f"{home}{end}") for end in ("", f"{path}", "/export")]
        tenant.put(f"{path}/cancel")
        send_all()

    assert [page.status_code for page in pages] == [200, 200, 200]
    sent += [b"".join(page) if page.streaming else page.content for page in pages]
    sent += [mail.content for mail in mails.mails] + [call.body for call in hooks.calls]
    sent += [str(mail.message.get_body(("html",)).get_content()) for mail in mails.mails]  # type: ignore[union-attr]
    sent += [mail.text for mail in mails.mails]
    assert (len(mails.mails), sorted(call.event for call in hooks.calls)) == (6, sorted(kinds))
    assert "Room 2" in str(sent)
    assert SECRET not in str(sent)
    assert list(Delivery.objects.exclude(state="delivered").values_list("type", "reason")) == []
