"""Times in the back office: one format and one zone, named, on every page."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account, App, Membership
from notifications.models import Delivery
from office.base.dates import AccountTimeZone
from tests.office.conftest import Enter, Visit
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")

TIME = re.compile(r"\b\w{3} \d{1,2} \w{3} \d{4}, \d\d:\d\d(?::\d\d)?(?: [A-Z]{3,4})?")
OTHER_TIMES = re.compile(
    r"[ap]\.m\.|\bnoon\b|midnight|\w{3}\. \d+, \d{4}|\d\d:\d\d UTC|\d{4}-\d\d-\d\dT\d\d"
)
LISTS = [
    "bookings_booking",
    "availability_event",
    "availability_project",
    "apps_config_app",
    "apps_config_credential",
    "notifications_delivery",
    "notifications_webhook",
]


def zone_in(tenant: Tenant, name: str) -> None:
    App.objects.filter(pk=tenant.app.pk).update(settings={"default_timezone": name})


@pytest.fixture
def booking(tenant: Tenant) -> Any:
    resource = tenant.make_resource("Ada", timezone="Europe/Berlin", email="ada@example.com")
    tenant.make_project(resource["id"])
    tenant.post("/webhooks", {"url": "https://example.com/hook"})
    times = {"start": "2026-11-23 09:00:00", "end": "2026-11-23 10:00:00"}
    return tenant.book(resource_id=resource["id"], **times).data


def text_of(answer: Any) -> str:
    assert answer.status_code == 200
    return unescape(re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.mark.parametrize("name", LISTS)
def test_lists_show_times_in_one_format_with_zone(
    tenant: Tenant, booking: Any, enter: Enter, name: str
) -> None:
    zone_in(tenant, "Europe/Berlin")
    client = enter(tenant, Membership.OWNER)

    text = text_of(client.get(reverse(f"admin:{name}_changelist")))

    times = TIME.findall(text)
    assert times
    assert [time for time in times if not time.endswith(" CET")] == []
    assert OTHER_TIMES.findall(text) == []


def test_booking_and_event_show_the_same_time(tenant: Tenant, booking: Any, enter: Enter) -> None:
    client = enter(tenant)

    texts = [
        text_of(client.get(reverse(f"admin:{name}_changelist")))
        for name in ("bookings_booking", "availability_event")
    ]

    assert ["Mon 23 Nov 2026, 09:00 CET" in text for text in texts] == [True, True]


def test_detail_pages_show_times_in_one_format(tenant: Tenant, booking: Any, enter: Enter) -> None:
    client = enter(tenant, Membership.OWNER)
    delivery = Delivery.objects.filter(type="email").first()
    pages = [
        reverse("admin:notifications_delivery_change", args=[delivery.pk]),
        reverse("admin:bookings_booking_change", args=[booking["id"]]),
        reverse("admin:availability_resource_change", args=[tenant.app.resources.get().pk]),
        reverse("admin:availability_resource_history", args=[tenant.app.resources.get().pk]),
        reverse("admin:apps_config_app_change", args=[tenant.app.pk]),
    ]

    texts = [text_of(client.get(page)) for page in pages]

    assert "Fri 20 Nov 2026, 10:30:00 CET" in texts[0]
    assert ["Fri 20 Nov 2026, 10:30" in text for text in texts] == [True] * 5
    assert [OTHER_TIMES.findall(text) for text in texts] == [[]] * 5


@pytest.mark.parametrize(
    ("zones", "shown"),
    [
        (["Asia/Tokyo"], "Asia/Tokyo"),
        (["Asia/Tokyo", None], "Asia/Tokyo"),
        (["Asia/Tokyo", "Europe/Paris", "Europe/Paris"], "Europe/Paris"),
        ([None, None], "Europe/Berlin"),  # that of the resource
        (["Mars/Olympus"], "Europe/Berlin"),
    ],
)
def test_zone_of_several_apps_is_named(
    tenant: Tenant, booking: Any, enter: Enter, zones: list[str | None], shown: str
) -> None:
    client = enter(tenant)
    account = Account.objects.get(memberships__app=tenant.app)
    apps = [tenant, *(Tenant(f"app-{number}") for number in range(len(zones) - 1))]
    for app, zone in zip(apps, zones, strict=True):
        if zone:
            zone_in(app, zone)
        if app is not tenant:
            Membership.objects.create(app=app.app, account=account, role="viewer")

    today = client.get("/admin/")
    staff = enter().get("/admin/")

    assert (today.context["zone"], staff.context["zone"]) == (shown, shown)
    assert f"({shown})" in text_of(today)


def test_repeated_hour_names_its_zone(tenant: Tenant, booking: Any, enter: Enter) -> None:
    resource = tenant.app.resources.get()
    for hour in ("00", "01"):
        times = {"start": f"2026-10-25T{hour}:30:00Z", "end": f"2026-10-25T{hour}:45:00Z"}
        assert tenant.book(resource_id=str(resource.pk), **times).status == 201

    client = enter(tenant)
    texts = [
        text_of(client.get(reverse(f"admin:{name}_changelist")))
        for name in ("bookings_booking", "availability_event")
    ]

    for text in texts:
        assert "Sun 25 Oct 2026, 02:30 CEST" in text
        assert "Sun 25 Oct 2026, 02:30 CET" in text


def test_input_is_in_the_shown_zone(tenant: Tenant, booking: Any, enter: Enter) -> None:
    client = enter(tenant, Membership.OWNER)
    path = reverse("admin:apps_config_credential_add")
    form = {"app": str(tenant.app.pk), "kind": "server", "description": "till"}

    page = client.get(path)
    client.post(path, form | {"expires_at_0": "2026-12-01", "expires_at_1": "09:00:00"})

    key = tenant.app.credentials.get(description="till")
    assert "Time zone: Europe/Berlin." in text_of(page)
    assert key.expires_at.isoformat() == "2026-12-01T08:00:00+00:00"


def test_no_queries_if_no_time_is_shown(
    tenant: Tenant, rf: Any, django_assert_num_queries: Any
) -> None:
    request = rf.get("/admin/")

    with django_assert_num_queries(0), timezone.override(AccountTimeZone(request)):
        pass


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.deep), 390])
def test_lists_of_times_in_the_browser(
    visit: Callable[..., Visit], office: Tenant, ada: Any, editor: Account, width: int
) -> None:
    office.book(resource_id=ada["id"], start="2026-11-23 09:00:00", end="2026-11-23 10:00:00")
    for name in ("bookings_booking", "availability_event", "notifications_delivery"):
        shown = visit(editor, reverse(f"admin:{name}_changelist"), width=width)
        shown.page.wait_for("!!document.querySelector('#result_list')")
        shown.page.save_screenshot(f"times-{name}-{width}")
        assert "CET" in shown.page.evaluate("document.body.innerText")
