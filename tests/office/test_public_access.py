"""The back office on public requests: refusals, an unknown proxy, suppressed addresses."""

from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from apps_config.public_limits import PER_ADDRESS, count_refusal
from availability.models import Project
from notifications.mail.suppressions import suppress
from notifications.models import Suppression
from ops.doctor import FAIL, OK, Finding, check_proxies
from tests.office.conftest import Enter
from tests.office.staff import form_of, member
from tests.world import Tenant

pytestmark = pytest.mark.django_db
PROXY = "All customers share the limits of one network address"


def test_dashboard_counts_refused_requests_by_reason(
    tenant: Tenant, make_tenant: Any, enter: Enter
) -> None:
    now = timezone.now()
    for reason in (PER_ADDRESS, PER_ADDRESS, "blocked_customers"):
        count_refusal(tenant.app, reason, now=now)
    count_refusal(make_tenant().app, PER_ADDRESS, now=now)

    page = enter(tenant).get("/admin/")

    assert page.context["refusals"] == [
        (2, "over the limit per network address"),
        (1, "of blocked customers"),
    ]
    assert "Public requests refused in 24 hours" in page.content.decode()
    assert PROXY not in page.content.decode()


def test_dashboard_without_refused_requests(tenant: Tenant, enter: Enter) -> None:
    assert "Public requests refused" not in enter(tenant).get("/admin/").content.decode()


def test_dashboard_and_doctor_report_an_unknown_proxy(
    tenant: Tenant, enter: Enter, settings: Any
) -> None:
    """One client may have a header of its own; two come through a proxy."""
    widget, office, said = tenant.widget(), enter(tenant), []

    for client in ("203.0.113.1", "203.0.113.1", "203.0.113.2"):
        widget.post("/bookings", {}, **{"X-Forwarded-For": client})
        page = office.get("/admin/").content.decode()
        said.append((PROXY in page, check_proxies()))
    settings.TRUSTED_PROXIES = 1

    unseen = Finding(OK, "no proxy was seen in 24 hours")
    seen = Finding(
        FAIL,
        "a proxy forwards requests, but TRUSTED_PROXIES is 0:"
        " all customers share the limits of its address",
        "Set TRUSTED_PROXIES to the number of proxies.",
    )
    assert said == [(False, unseen), (False, unseen), (True, seen)]
    assert check_proxies() == Finding(OK, "TRUSTED_PROXIES=1")


def test_suppression_can_be_removed(tenant: Tenant, make_tenant: Any) -> None:
    for app in (tenant.app, make_tenant().app):
        suppress(app, "marty@example.com", "bounced", now=timezone.now(), detail="5.1.1")
    own = Suppression.objects.get(app=tenant.app)
    address = reverse("admin:notifications_suppression_changelist")
    form = {"action": "send_again", "_selected_action": [str(own.pk)]}

    shown = member(tenant.app, "viewer").get(address).content.decode()
    member(tenant.app, "viewer", "other@example.com").post(address, form)
    after_viewer = Suppression.objects.count()
    told = member(tenant.app, "editor").post(address, form, follow=True).content.decode()

    assert "marty@example.com" in shown
    assert "5.1.1" in shown
    assert after_viewer == 2
    assert "E-mails are sent again to: marty@example.com." in told
    assert [row.app_id for row in Suppression.objects.all()] != [tenant.app.id]
    assert Suppression.objects.count() == 1


def test_public_settings_of_a_project(tenant: Tenant) -> None:
    ada = tenant.make_resource("Ada")
    made = tenant.make_project(ada["id"], settings={"max_per_day": 3})["id"]
    editor = member(tenant.app, "editor")
    address = reverse("admin:availability_project_change", args=[made])
    form = form_of(editor, address)

    editor.post(address, form | {"verify_email": "on"})
    switched_on = Project.objects.get(id=made).settings
    form = form_of(editor, address)
    form.pop("verify_email")
    editor.post(address, form)

    assert switched_on == {"max_per_day": 3, "verify_email": True}
    assert Project.objects.get(id=made).settings == {"max_per_day": 3, "verify_email": False}
