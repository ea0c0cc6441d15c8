"""What the fields offer to choose from that query the rows one types."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps_config.models import Account, App, Membership
from availability.models import ProjectResource, Resource
from office.base.row_choices import CURRENT, OFFER, VISIBLE
from tests.accessibility import find_faults, load_axe
from tests.browser import Page
from tests.office.conftest import Enter, Visit
from tests.office.staff import member
from tests.world import Tenant

RESOURCES = "/admin/availability/resource/"
# It focuses a field that it hides, and a further letter ends the query of the one before.
SELECT2 = ("Blocked aria-hidden on an element", "net::ERR_ABORTED")
OPTION = ".select2-results__option[role=option]"


def offered(client: Client, model: Any, column: str, term: str = "", **query: str) -> list[str]:
    """What a field for this foreign key offers."""
    given = {"app_label": model._meta.app_label, "model_name": model._meta.model_name}
    given |= {"field_name": column, "term": term, **query}
    answer = client.get(reverse("admin:autocomplete"), given)
    assert answer.status_code == 200
    return [each["text"] for each in answer.json()["results"]]


@pytest.fixture
def both(tenant: Tenant, make_tenant: Callable[..., Tenant]) -> Client:
    """Owner of one app, viewer of another, and nothing in a third."""
    other, _ = make_tenant(), make_tenant()
    App.objects.filter(pk=tenant.app.pk).update(name="Clinic")
    App.objects.filter(pk=other.app.pk).update(name="Studio")
    client = member(tenant.app, Membership.OWNER)
    client.account.memberships.create(app=other.app, role=Membership.VIEWER)
    return client


def test_form_offers_apps_with_add_permission(both: Client) -> None:
    assert offered(both, Resource, "app") == ["Clinic"]
    assert offered(both, Resource, "app", **{OFFER: CURRENT}) == ["Clinic", "Studio"]
    assert offered(both, Resource, "app", "stud", **{OFFER: CURRENT}) == ["Studio"]


def test_archived_apps_are_not_offered(tenant: Tenant, enter: Enter) -> None:
    App.objects.create(slug="old", name="Old", archived_at=timezone.now())

    assert offered(enter(), Resource, "app") == [tenant.app.name]
    assert offered(enter(), Resource, "app", **{OFFER: CURRENT}) == [tenant.app.name]


def test_rows_name_their_app_for_members_of_several(
    tenant: Tenant, both: Client, enter: Enter
) -> None:
    ada = tenant.make_resource("Ada")
    tenant.make_resource("Bob")
    tenant.call("DELETE", f"/resources/{ada['id']}")
    of_one_app = enter(tenant, Membership.VIEWER)

    assert offered(of_one_app, ProjectResource, "resource") == ["Ada", "Bob"]
    assert offered(both, ProjectResource, "resource", "bo") == ["Bob (Clinic)"]
    visible, current = ({OFFER: offer} for offer in (VISIBLE, CURRENT))
    assert offered(both, ProjectResource, "resource", **visible) == [
        "Ada (Clinic)",
        "Bob (Clinic)",
    ]
    assert offered(both, ProjectResource, "resource", **current) == ["Bob (Clinic)"]


def test_model_without_a_form_is_forbidden(tenant: Tenant, enter: Enter) -> None:
    given = {"app_label": "availability", "model_name": "historicalresource", "field_name": "app"}

    assert enter().get(reverse("admin:autocomplete"), given).status_code == 403


@pytest.mark.parametrize("width", [1280, 390])
def test_an_app_is_found_by_keyboard(
    office: Tenant, ada: Any, visit: Callable[..., Visit], width: int
) -> None:
    studio = App.objects.create(slug="studio", name="Studio")
    App.objects.bulk_create(App(slug=f"copy-{n}", name=f"Copy {n}") for n in range(40))
    account = Account.objects.create_superuser("staff@example.com", "x" * 12)
    shown = visit(account, f"{RESOURCES}add/", width=width)
    shown.expected += SELECT2

    choose(shown, "#id_app + .select2-container [role=combobox]", "stud", "Studio")
    shown.page.save_screenshot(f"choose-app-{width}")
    form = shown.page.evaluate("document.getElementById('id_app').value")
    axe = find_faults(shown.page, load_axe())

    assert (form, axe) == (str(studio.pk), [])


@pytest.mark.parametrize("width", [1280, 390])
def test_a_list_is_filtered_by_an_app(
    office: Tenant, ada: Any, visit: Callable[..., Visit], width: int
) -> None:
    App.objects.bulk_create(App(slug=f"copy-{n}", name=f"Copy {n}") for n in range(40))
    Resource.objects.create(app=App.objects.get(slug="copy-7"), name="Grace")
    account = Account.objects.create_superuser("staff@example.com", "x" * 12)
    shown = visit(account, RESOURCES, width=width)
    shown.expected += SELECT2

    # Alpine has bound its listeners once the button's component has data.
    shown.page.wait_for(
        "!!document.querySelector('[x-on\\\\:click*=filterOpen]').closest('[x-data]')?._x_dataStack"
    )
    shown.page.click("[x-on\\:click*=filterOpen]")
    field = "[name=app__id__exact] + .select2-container [role=combobox]"
    shown.page.wait_for(f"document.querySelector({field!r}).offsetParent !== null")
    choose(shown, field, "Clin", "Clinic")
    shown.page.save_screenshot(f"filter-app-{width}")
    shown.page.evaluate("document.querySelector('[name=app__id__exact]').form.requestSubmit()")
    shown.page.wait_for("location.search.includes('app__id__exact=')")
    shown.page.wait_for("!!document.querySelector('#result_list')")

    names = "[...document.querySelectorAll('#result_list .field-name')].map(one => one.innerText)"
    assert [name.strip() for name in shown.page.evaluate(names)] == ["Ada"]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/admin/calendar/", ".cal-pick form [role=combobox]"),
        ("/admin/notifications/emailtemplate/", ".office-inline [role=combobox]"),
        ("/admin/why/", ".time-bar [role=combobox]"),
    ],
)
def test_a_page_is_opened_for_another_app(
    office: Tenant, ada: Any, visit: Callable[..., Visit], path: str, field: str, width: int
) -> None:
    other = Tenant("studio", name="Studio")
    grace = other.make_resource("Grace")
    App.objects.bulk_create(App(slug=f"copy-{n}", name=f"Copy {n}") for n in range(40))
    account = Account.objects.create_superuser("staff@example.com", "x" * 12)
    shown = visit(account, path, width=width)
    shown.expected += SELECT2
    page, name = shown.page, path.split("/")[-2]
    is_why = name == "why"

    if name == "calendar":
        page.click(".cal-pick summary")
    term, text = ("Gra", "Grace (Studio)") if is_why else ("Stu", "Studio")
    choose(shown, field, term, text, f"{name}-open-{width}", leaves=name != "emailtemplate")
    if name == "emailtemplate":
        page.click(".office-inline button")
    page.wait_for(f"location.href.includes('{grace['id'] if is_why else f'app={other.app.pk}'}')")
    page.wait_for("document.readyState === 'complete'")
    page.wait_for(f"!!document.querySelector({field!r})")
    shown.page.save_screenshot(f"{name}-{width}")
    chosen = page.evaluate(f"document.querySelector({field!r}).textContent.trim()")
    # A click on what stands inside a label moves the focus away from the list's search field.
    inside_a_label = page.evaluate("document.querySelectorAll('label .select2-selection').length")
    axe = find_faults(page, load_axe())

    assert (chosen, inside_a_label, axe) == (text, 0, [])


def search(page: Page, term: str) -> None:
    """Type into the open field, which takes the focus a moment after its list is shown."""
    page.wait_for("document.activeElement.matches('.select2-search__field')")
    page.type(term)


def choose(
    shown: Visit, field: str, term: str, text: str, name: str = "", *, leaves: bool = False
) -> None:
    """Open the field, type a part of a name, and take the only row that is found: by keyboard."""
    page = shown.page
    page.wait_for(f"!!document.querySelector({field!r})")
    page.evaluate(f"document.querySelector({field!r}).focus()")
    page.press("Enter")
    page.wait_for(f"document.querySelectorAll({OPTION!r}).length > 1")
    if name:
        shown.page.save_screenshot(name)
    search(page, term)
    found = f"[...document.querySelectorAll({OPTION!r})].map(one => one.innerText).join('; ')"
    page.wait_for(f"{found} === {text!r}")
    page.press("Enter")
    if not leaves:
        page.wait_for(f"document.querySelector({field!r}).innerText.includes({text!r})")
