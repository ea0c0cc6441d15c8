"""The page of a delivery: its content in words, JSON and ids below "Advanced"."""

import json
from typing import Any

import pytest
from django.urls import reverse

from notifications.models import Attempt, Delivery
from tests.office.conftest import Enter
from tests.office.test_crawl import UUID, PageTexts, enum_names, faults_of
from tests.world import NOW, Tenant

pytestmark = pytest.mark.usefixtures("clock")

SERIES = {"start": "2026-11-23 09:00:00", "end": "2026-11-23 10:00:00"}


def page_of(enter: Enter, tenant: Tenant, delivery: Delivery) -> Any:
    client = enter(tenant, "owner")
    return client.get(reverse("admin:notifications_delivery_change", args=[delivery.pk]))


def test_series_mail_shows_formatted_times(tenant: Tenant, enter: Enter) -> None:
    resource = tenant.make_resource("Ada", timezone="Europe/Berlin")
    tenant.book(resource_id=resource["id"], recurrence="FREQ=WEEKLY;COUNT=3", what="Yoga", **SERIES)
    mail = Delivery.objects.get(type="email", recipient="customer")

    page = page_of(enter, tenant, mail)

    assert page.context["facts"] == [
        ("What", "Yoga"),
        ("Start", "Mon 23 Nov 2026, 09:00 CET"),
        ("End", "Mon 23 Nov 2026, 10:00 CET"),
        ("Bookings in the series", "3"),
        ("Start of the last one", "Mon 7 Dec 2026, 09:00 CET"),
    ]
    shown = PageTexts(page.content.decode()).texts
    own = {str(mail.pk), mail.request_id}
    assert [text for text in shown if UUID.search(text) and text not in own] == []
    assert "occurrences" in page.context["further"]


@pytest.mark.usefixtures("expanded_calls")
def test_call_is_shown_without_links_that_act_for_customers(tenant: Tenant, enter: Enter) -> None:
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    booking = tenant.book(resource_id=tenant.make_resource()["id"], **SERIES).data
    call = Delivery.objects.get(type="webhook")

    payload = json.loads(page_of(enter, tenant, call).context["payload"])

    assert payload["id"] == booking["id"]
    assert payload["customer_action_links"] == {"cancel_by_customer": "[link]"}


def test_reschedule_mail_shows_old_and_new_times(tenant: Tenant, enter: Enter) -> None:
    resource = tenant.make_resource("Ada", timezone="Europe/Berlin")
    booking = tenant.book(resource_id=resource["id"], graph="confirm_decline", **SERIES).data
    later = {"start": "2026-11-24 09:00:00", "end": "2026-11-24 10:00:00"}
    tenant.put(f"/bookings/{booking['id']}/reschedule", later)
    mail = Delivery.objects.get(kind="rescheduled", recipient="customer", type="email")

    assert page_of(enter, tenant, mail).context["facts"] == [
        ("What", "Meeting"),
        ("Start", "Tue 24 Nov 2026, 09:00 CET"),
        ("End", "Tue 24 Nov 2026, 10:00 CET"),
        ("Previous start", "Mon 23 Nov 2026, 09:00 CET"),
        ("Previous end", "Mon 23 Nov 2026, 10:00 CET"),
        ("Previous state", "pending"),
    ]


@pytest.mark.usefixtures("expanded_calls")
def test_the_response_of_a_server_is_below_advanced(tenant: Tenant, enter: Enter) -> None:
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    tenant.book(resource_id=tenant.make_resource("Ada")["id"], **SERIES)
    call = Delivery.objects.get(type="webhook")
    Attempt.objects.create(
        app=tenant.app, delivery=call, at=NOW, seconds=0.2, response_code=400, excerpt='{"no": 1}'
    )

    page = page_of(enter, tenant, call).content.decode()

    assert "{&quot;no&quot;: 1}" in page
    assert [*faults_of(PageTexts(page), enum_names())] == []
