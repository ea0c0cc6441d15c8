"""The form for a new key in a browser: each kind of key has its own fields."""

from collections.abc import Callable

import pytest

from apps_config.models import Credential
from tests.accessibility import find_faults, load_axe
from tests.browser import Page, viewports
from tests.office.conftest import Visit, member_of
from tests.office.test_row_choices import OPTION, SELECT2
from tests.world import Tenant

ADD = "/admin/apps_config/credential/add/"
FIELDS = ["resource", "access", "scopes", "projects", "networks", "web_sites"]


def choose(page: Page, field: str, value: str) -> None:
    page.evaluate(
        f"((select) => {{ select.value = {value!r};"
        " select.dispatchEvent(new Event('change', {bubbles: true})); })"
        f"(document.getElementById('id_{field}'))"
    )


def shown_fields(page: Page) -> list[str]:
    return [
        name
        for name in FIELDS
        if page.evaluate(f"!document.querySelector('.field-line.field-{name}').hidden")
    ]


def test_each_kind_has_its_fields(visit: Callable[..., Visit], office: Tenant) -> None:
    page = visit(member_of(office, "owner"), ADD).page

    shown = {}
    for kind in ("server", "widget", "resource"):
        choose(page, "kind", kind)
        shown[kind] = shown_fields(page)

    assert shown == {
        "server": ["access", "projects", "networks"],
        "widget": ["projects", "web_sites"],
        "resource": ["resource"],
    }


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_key_with_chosen_rights(
    visit: Callable[..., Visit], office: Tenant, width: int, scheme: str
) -> None:
    office.make_project(name="Consultation")
    project = office.make_project(name="Check-up")["id"]
    shown = visit(member_of(office, "owner"), ADD, width=width, scheme=scheme)
    shown.expected += SELECT2
    page = shown.page
    choose(page, "kind", "server")
    choose(page, "access", "chosen")
    page.click("[name=scopes][value='bookings:read']")
    page.evaluate("document.querySelector('.field-projects .select2-search__field').focus()")
    page.type("check")
    found = f"[...document.querySelectorAll({OPTION!r})].map(one => one.innerText).join('; ')"
    page.wait_for(f"{found} === 'Check-up'")
    page.press("Enter")
    page.wait_for("document.querySelector('.field-projects').innerText.includes('Check-up')")
    page.evaluate("document.getElementById('id_networks').value = '203.0.113.0/24'")
    page.save_screenshot(f"key-form-{width}-{scheme}", whole=True)
    faults = find_faults(page, load_axe())
    page.click("[name=_save]")
    page.wait_for("document.getElementById('secret') !== null")

    key = Credential.objects.latest("id")
    assert faults == []
    assert (key.scopes, key.projects) == (["bookings:read"], [project])
    assert key.addresses == ["203.0.113.0/24"]
    shown.go(ADD.replace("add/", ""))
    page.save_screenshot(f"keys-{width}-{scheme}", whole=True)
    assert find_faults(page, load_axe()) == []
    shown.go(ADD.replace("add", f"{key.pk}/change"))
    page.save_screenshot(f"key-{width}-{scheme}", whole=True)
    assert find_faults(page, load_axe()) == []


def test_hidden_rights_are_not_sent(visit: Callable[..., Visit], office: Tenant) -> None:
    page = visit(member_of(office, "owner"), ADD).page
    choose(page, "kind", "server")
    choose(page, "access", "chosen")
    page.click("[name=scopes][value='bookings:read']")
    choose(page, "access", "everything")

    page.click("[name=_save]")
    page.wait_for("document.getElementById('secret') !== null")

    assert Credential.objects.latest("id").scopes is None
