"""The steps of a visit on a project's form, in a real browser."""

from collections.abc import Callable

import pytest

from apps_config.models import Account
from availability.models import Project
from tests.accessibility import find_faults, load_axe
from tests.browser import viewports
from tests.office.conftest import Visit
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)

BLANK = "document.querySelector('.office-step[data-blank]')"
LAST = "[...document.querySelectorAll('.office-step:not([data-blank])')].at(-1)"
NAMES = (
    "[...document.querySelectorAll('.office-step input[name$=-name]')]"
    ".filter((one) => one.value).map((one) => `${one.name}=${one.value}`)"
)


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_a_visit_of_two_steps_is_entered(
    visit: Callable[..., Visit], office: Tenant, editor: Account, width: int, scheme: str
) -> None:
    ada = office.make_resource("Ada")
    project = office.make_project(ada["id"])
    path = f"/admin/availability/project/{project['id']}/change/"
    shown = visit(editor, path, width=width, height=2200, scheme=scheme)
    page = shown.page
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    page.evaluate(f"{BLANK}.querySelector('input[name$=-name]').focus()")
    page.type("check-up")
    page.evaluate(f"{LAST}.querySelector('input[name$=-length]').value = '1'")
    page.evaluate(f"{LAST}.querySelector('select[name$=-length_unit]').value = 'hours'")
    page.evaluate(f"{LAST}.querySelector('[name$=-resources]').click()")
    page.evaluate(f"{BLANK}.querySelector('input[name$=-name]').focus()")
    page.type("cleaning")
    page.evaluate(f"{LAST}.querySelector('input[name$=-length]').value = '30'")
    page.evaluate(f"{LAST}.querySelector('details').open = true")
    for name, tag in (("nurse", "nurse"), ("room", "room")):
        need = f"{LAST}.querySelector('.office-requirement[data-blank]')"
        page.evaluate(f"{need}.querySelector('input[name$=-name]').focus()")
        page.type(name)
        filled = f"[...{LAST}.querySelectorAll('.office-requirement:not([data-blank])')].at(-1)"
        page.evaluate(f"{filled}.querySelector('input[name$=-tags]').value = '{tag}'")
    page.evaluate(f"{LAST}.querySelector(':scope > [data-row-buttons] [aria-label$=up]').click()")
    named = page.evaluate(NAMES)
    page.evaluate("document.querySelector('#id_visit_steps').scrollIntoView()")
    page.save_screenshot(f"steps-{width}-{scheme}")
    faults = find_faults(page, load_axe(), "document.getElementById('part-who')")
    page.evaluate("window.isOld = true; document.querySelector('[name=_save]').click()")
    page.wait_for("window.isOld === undefined && document.readyState === 'complete'")

    assert named == [
        "visit_steps-1-name=cleaning",
        "visit_steps-1-requires-0-name=nurse",
        "visit_steps-1-requires-1-name=room",
        "visit_steps-0-name=check-up",
    ]
    assert faults == []
    assert Project.objects.get().steps == [
        {
            "name": "cleaning",
            "length": "30 minutes",
            "requires": [
                {"name": "nurse", "any_of": {"tags": ["nurse"]}},
                {"name": "room", "any_of": {"tags": ["room"]}},
            ],
        },
        {"name": "check-up", "length": "1 hour", "resources": [ada["id"]]},
    ]
