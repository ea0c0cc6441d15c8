"""Landmarks, links past the menu, and names without the words of icons; pages at 400 %."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account
from tests.accessibility import find_faults, load_axe
from tests.browser import Page
from tests.office.conftest import Visit, logged_in, member_of
from tests.world import Tenant

OPEN = [{"allow_hours": {"start": 0, "end": 24}}]
MOST_KEYS = 5
LISTS = [
    "/admin/bookings/booking/?tab=upcoming",
    "/admin/bookings/appcustomer/",
    "/admin/availability/resource/",
    "/admin/availability/project/",
    "/admin/availability/calendar/",
    "/admin/notifications/delivery/",
    "/admin/apps_config/credential/",
]


@pytest.fixture
def owner(office: Tenant) -> Account:
    return member_of(office, "owner")


@pytest.fixture
def booking(office: Tenant) -> Any:
    ada = office.make_resource("Ada", timezone="UTC", availability_constraints=OPEN)
    office.make_project(ada["id"])
    start = timezone.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=30)
    times = {"start": start.isoformat(), "end": (start + timedelta(minutes=30)).isoformat()}
    answer = office.book(resource_id=ada["id"], what="Check-up", **times)
    assert answer.status == 201, answer.json
    return answer.data


def keys_to(page: Page, selector: str) -> int:
    """Press Tab until the focus is inside of what the selector finds. A link past the menu that
    leads there is followed. Returns the count of keys.
    """
    before = page.presses
    inside = f"!!document.activeElement.closest({selector!r})"
    leads = (
        f"!!document.querySelector(document.activeElement.hash || 'none')?.matches({selector!r})"
    )
    while not page.evaluate(inside):
        page.press("Tab")
        if page.evaluate(leads):
            page.press("Enter")
            page.wait_for(f"location.hash && {inside}")
            page.press("Tab")
        assert page.presses - before < 100
    return page.presses - before


def test_lists_are_reached_by_five_keys(
    visit: Callable[..., Visit], owner: Account, booking: Any
) -> None:
    shown = visit(owner, "/admin/")
    counts = {}
    for path in LISTS:
        shown.go(path)
        counts[path] = keys_to(shown.page, "#rows")

    assert {path: count for path, count in counts.items() if count > MOST_KEYS} == {}


def test_first_stop_leads_to_the_content(
    visit: Callable[..., Visit], owner: Account, booking: Any
) -> None:
    page = visit(owner, "/admin/bookings/booking/?tab=upcoming").page

    page.press("Tab")
    first = page.evaluate("document.activeElement.innerText")
    shown = page.box("a.office-skip:focus")
    page.press("Enter")
    page.wait_for("document.activeElement.id === 'content'")
    page.press("Tab")

    assert first == "Skip to content"
    assert shown["width"] > 100
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_menu_and_logo_have_names_without_icon_words(
    visit: Callable[..., Visit], owner: Account, booking: Any
) -> None:
    page = visit(owner, "/admin/").page
    page.wait_for(
        "!document.querySelector('nav .material-symbols-outlined:not([aria-hidden], [role])')"
    )

    menu = page.evaluate("[...document.querySelectorAll('nav')].map(nav => nav.ariaLabel)")
    logo = page.evaluate("document.querySelector('nav a').ariaLabel")
    texts = page.evaluate(
        "[...document.querySelectorAll('#nav-sidebar-apps a')].slice(0, 3)"
        ".map(a => a.textContent.trim())"
    )

    assert (menu, logo) == (["Menu", "Days"], "Today")
    assert texts == ["Today", "Calendar", "Block time"]


def test_days_of_the_week_are_a_group_with_its_name(
    visit: Callable[..., Visit], office: Tenant, owner: Account, booking: Any
) -> None:
    page = visit(owner, f"/admin/availability/resource/{booking['resource_id']}/change/").page

    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    names = [
        (node["role"]["value"], node["name"]["value"])
        for node in nodes
        if not node.get("ignored") and node.get("name", {}).get("value")
    ]

    assert ("group", "Weekly hours") in names
    days = ("Monday", "Tuesday", "Sunday")
    assert [("textbox", day) in names for day in days] == [True] * 3


@pytest.mark.parametrize("width", [320, 1280])
def test_pages_have_one_heading_and_landmarks(
    visit: Callable[..., Visit], office: Tenant, owner: Account, booking: Any, width: int
) -> None:
    """At 320 px, which is 400 % of a window of 1,280 px, nothing scrolls sideways."""
    project = office.get("/projects").data[0]["id"]
    paths = [
        "/admin/",
        LISTS[0],
        "/admin/calendar/",
        "/admin/account/security/",
        f"/admin/bookings/booking/{booking['id']}/change/",
        f"/admin/availability/resource/{booking['resource_id']}/change/",
        f"/admin/availability/project/{project}/change/",
        f"/admin/apps_config/app/{office.app.pk}/change/",
    ]
    shown, axe, found = visit(owner, "/admin/", width=width), load_axe(), {}
    shown.expected.append("Blocked aria-hidden on an element")  # select2 on a focused field
    for path in paths:
        shown.go(path)
        shown.page.wait_for(
            "!document.querySelector('.material-symbols-outlined:not([aria-hidden], [role])')"
        )
        headings = shown.page.evaluate("document.querySelectorAll('h1').length")
        found[path] = (headings, find_faults(shown.page, axe) if width > 600 else [])
        shown.check()

    assert found == {path: (1, []) for path in paths}


def every_page() -> list[str]:
    """The addresses of every list, its form for a new row, and the form of its first row."""
    paths = ["/admin/", "/admin/calendar/", "/admin/why/", "/admin/reports/"]
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        paths += [reverse(f"{name}_changelist"), reverse(f"{name}_add")]
        if (first := model._default_manager.order_by("pk").first()) is not None:
            paths.append(reverse(f"{name}_change", args=[first.pk]))
    return paths


@pytest.mark.deep
@pytest.mark.parametrize("width", [320, 1280])
def test_every_page_is_accessible(
    visit: Callable[..., Visit], office: Tenant, settings: Any, tmp_path: Path, width: int
) -> None:
    settings.VAR_DIR = tmp_path
    call_command("seed_demo", quiet=True)
    operator = Account.objects.create_superuser("operator@example.com", "a long password of ours")
    client, axe, found = logged_in(operator), load_axe(), {}
    shown = visit(operator, "/admin/", width=width)
    shown.expected.append("Blocked aria-hidden on an element")
    paths = [path for path in every_page() if client.get(path).status_code == 200]
    for path in paths:
        shown.go(path)
        found[path] = find_faults(shown.page, axe) if width > 600 else []
        shown.check()

    assert len(paths) > 40
    assert [(path, each) for path, faults in found.items() for each in faults] == []
