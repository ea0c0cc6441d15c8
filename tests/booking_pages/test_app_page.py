"""The page of an app, the choice of a person and group sessions, before any script runs."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from apps_config.services import archive_app
from availability.models import Project
from tests.booking_pages.test_book_page import NINE_TO_NOON, NO_PAGE, Shown, make_page
from tests.world import Tenant

pytestmark = pytest.mark.usefixtures("clock")
OPEN = {"length": "30 minutes", "to": "2 weeks"}


# --- The page of an app ---------------------------------------------------------------------------
def test_the_apps_page_lists_its_published_projects(
    tenant: Tenant, django_assert_num_queries: Any
) -> None:
    app = tenant.app.slug
    make_page(tenant, slug="b-check", name="Check-up", booking={"description": "Look\nand talk"})
    tenant.make_project(slug="a-cut", name="A <b> cut", availability={"length": None})
    ada = tenant.make_resource("Ada")["id"]
    steps = [{"name": name, "length": "30 mins", "resources": [ada]} for name in ("a", "b")]
    tenant.post("/projects", {"slug": "c-visit", "name": "Visit", "steps": steps})
    tenant.make_project(slug="hidden", name="Hidden", settings={"published": False})
    tenant.make_project(slug="unpaid", name="Unpaid", booking={"graph": "instant_payment"})
    tenant.make_project(slug="owners", name="Owners", booking={"graph": "group_owner"})

    tenant.make_project(slug="broken", name="Broken")
    Project.objects.filter(slug="broken").update(booking={"graph": "nonsense"})

    with django_assert_num_queries(3):
        page = Shown(f"/book/{app}")

    assert (page.status, page.words("h1"), page.words("h2")) == (
        200,
        [tenant.app.name],
        ["Choose a service"],
    )
    assert re.findall(r'class="service" href="([^"]+)"', page.html) == [
        "/book/a-cut",
        "/book/b-check",
        "/book/c-visit",
    ]
    assert page.words("a", "service") == ["A <b> cut", "Check-up 30 minLook and talk", "Visit"]
    assert "X-Frame-Options" not in page.response.headers


def test_an_app_without_a_published_project_has_no_page(
    make_tenant: Callable[..., Tenant],
) -> None:
    empty, archived = make_tenant(), make_tenant()
    make_page(archived)
    archive_app(archived.app, now=timezone.now())

    pages = [Shown(f"/book/{each.app.slug}") for each in (empty, archived)]

    assert [(page.status, page.visible_texts) for page in pages] == [(404, NO_PAGE)] * 2


def test_project_slug_takes_precedence_over_app_slug(tenant: Tenant) -> None:
    make_page(tenant, slug=tenant.app.slug)

    assert Shown(f"/book/{tenant.app.slug}").words("h1") == ["Check-up"]


# --- The person -----------------------------------------------------------------------------------
def make_choice(tenant: Tenant, **settings: Any) -> tuple[str, dict[str, str]]:
    """The path of a project with Ada in the morning and Bo in the afternoon, and their ids."""
    hours = {"Dr. Ada Berg": (9, 10), "Bo": (14, 15)}
    ids = {
        name: tenant.make_resource(
            name,
            "Europe/Berlin",
            availability_constraints=[{"allow_hours": {"start": start, "end": end}}],
        )["id"]
        for name, (start, end) in hours.items()
    }
    project = tenant.make_project(*ids.values(), slug="choice", availability=OPEN, **settings)
    return f"/book/{project['slug']}", ids


def test_choose_resource_setting_offers_people(tenant: Tenant) -> None:
    path, ids = make_choice(tenant, settings={"choose_resource": True})

    anyone = Shown(f"{path}?date=2026-11-23&name=Marty")
    ada = Shown(f"{path}?date=2026-11-23&resource={ids['Dr. Ada Berg']}")
    foreign = Shown(f"{path}?date=2026-11-23&resource=01a200c0-0000-7000-8000-000000000000")

    assert anyone.words("a", "person") == ["Anyone", "ABDr. Ada Berg", "BBo"]
    links = re.findall(r'class="person" href="([^"]+)"', anyone.html)
    assert links[0] == "?date=2026-11-23&amp;name=Marty"
    assert links[1] == f"?date=2026-11-23&amp;name=Marty&amp;resource={ids['Dr. Ada Berg']}"
    assert anyone.words("span", "time") == ["09:00", "09:30", "14:00", "14:30"]
    assert ada.words("span", "time") == ["09:00", "09:30"]
    assert ada.words("dl", "facts") == ["Length30 minWithDr. Ada Berg"]
    assert [page.for_script["resource"] for page in (anyone, ada, foreign)] == [
        None,
        ids["Dr. Ada Berg"],
        None,
    ]


@pytest.mark.parametrize(
    ("chosen", "people"),
    [
        ("dentist", ["Anyone", "ABDr. Ada Berg", "BBo"]),
        (True, ["Anyone", "ABDr. Ada Berg", "BBo"]),
        ("room", []),
        ("nurse", []),
        (False, []),
    ],
)
def test_people_of_one_requirement_are_offered(
    tenant: Tenant, chosen: Any, people: list[str]
) -> None:
    path, ids = make_choice(tenant, settings={"choose_resource": chosen})
    room = tenant.make_resource("Room 1", timezone="Europe/Berlin")["id"]
    requires = [
        {"name": "dentist", "any_of": [*ids.values()]},
        {"name": "room", "any_of": [room]},
    ]
    project = tenant.app.projects.get()
    tenant.put(f"/projects/{project.id}", {"requires": requires})

    anyone = Shown(f"{path}?date=2026-11-23")
    ada = Shown(f"{path}?date=2026-11-23&resource={ids['Dr. Ada Berg']}")

    assert anyone.words("a", "person") == people
    all_times = ["09:00", "09:30", "14:00", "14:30"]
    assert anyone.words("span", "time") == all_times
    assert ada.words("span", "time") == (all_times[:2] if people else all_times)
    named = (ada.for_script["requirement"], ada.for_script["resource"])
    assert named == (("dentist", ids["Dr. Ada Berg"]) if people else (chosen or None, None))


@pytest.mark.parametrize("terms", [{}, {"mode": "mutual"}])
def test_no_choice_of_people_without_setting_or_in_mutual_mode(
    tenant: Tenant, terms: dict[str, str]
) -> None:
    settings = {"choose_resource": True} if terms else {}
    path, ids = make_choice(tenant, settings=settings)
    tenant.put(f"/projects/{tenant.app.projects.get().id}", {"availability": terms})

    page = Shown(f"{path}?resource={ids['Bo']}")

    assert page.words("a", "person") == []


# --- Group sessions -------------------------------------------------------------------------------
def make_group(tenant: Tenant, project_id: str, start: str, seats: int) -> Any:
    body = {
        "project_id": project_id,
        "graph": "group_owner",
        "start": f"{start}:00:00",
        "end": f"{start}:30:00",
        "what": "Yoga",
        "settings": {"max_seats": seats},
    }
    return tenant.book(**body).data


def test_group_sessions_show_free_seats(tenant: Tenant, django_assert_num_queries: Any) -> None:
    path = make_page(tenant, booking={"graph": "group_customer"}, rules=NINE_TO_NOON)
    project = str(tenant.app.projects.get().id)
    none = Shown(path)
    small = make_group(tenant, project, "2026-11-23 09", 1)
    large = make_group(tenant, project, "2026-11-23 10", 3)
    full = make_group(tenant, project, "2026-11-23 11", 1)
    for group in (large, full):
        tenant.book(graph="group_customer", related={"owner_booking_id": group["id"]})

    with django_assert_num_queries(4):
        page = Shown(path)

    assert none.visible_texts[1].startswith("There is no free time")
    assert page.words("span", "time") == ["09:00 1 seat left", "10:00 2 seats left"]
    assert page.for_script["offer"]["slots"] == [
        [1795420800, 1795422600, small["id"], 1, None],
        [1795424400, 1795426200, large["id"], 2, None],
    ]
    told = page.for_script
    assert (told["is_group"], told["max_seats"], told["hold"]) == (True, 1, 0)
    assert page.words("label")[1] == "Seats"
