"""What a project's bookings need at once, in a real browser."""

from collections.abc import Callable

import pytest

from apps_config.models import Account
from availability.models import Project
from tests.accessibility import find_faults, load_axe
from tests.browser import viewports
from tests.office.conftest import Visit
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = (
    "[...document.querySelectorAll('#id_requirements .office-requirement input[name$=-name]')]"
    ".map((one) => `${one.name}=${one.value}`)"
)
LAST = "[...document.querySelectorAll('#id_requirements > :not([data-blank])')].at(-1)"


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_a_requirement_is_added_and_moved_up(
    visit: Callable[..., Visit], office: Tenant, editor: Account, width: int, scheme: str
) -> None:
    room = office.make_resource("Room 1")
    dentist = {"name": "dentist", "any_of": {"tags": ["dentist"]}}
    given = {"name": "Implant", "requires": [dentist]}
    path = f"/admin/availability/project/{office.post('/projects', given).data['id']}/change/"
    shown = visit(editor, path, width=width, height=1500, scheme=scheme)
    page = shown.page

    page.evaluate("document.querySelector('#id_requirements [data-blank] input').focus()")
    page.type("room")
    page.evaluate(f"{LAST}.querySelector('[type=checkbox]').click()")
    added = page.evaluate(ROWS)
    page.evaluate(f"{LAST}.querySelector('details').open = true")
    page.evaluate(f"{LAST}.querySelector('select[name$=-mode]').value = 'fair'")
    fields = (
        "[...document.querySelectorAll('#id_requirements .office-requirement select[name$=-mode]')]"
    )
    names_of_modes = page.evaluate(f"{fields}.map((one) => one.name)")
    page.evaluate(f"{LAST}.querySelector('[aria-label$=up]').click()")
    shown.page.save_screenshot(f"requirements-{width}-{scheme}")
    faults = find_faults(page, load_axe(), "document.getElementById('part-who')")
    page.evaluate("window.isOld = true; document.querySelector('[name=_save]').click()")
    page.wait_for("window.isOld === undefined && document.readyState === 'complete'")

    names = ("dentist", "room", "")
    assert added == [f"requirements-{row}-name={name}" for row, name in enumerate(names)]
    assert names_of_modes == [f"requirements-{row}-mode" for row in range(3)]
    assert faults == []
    fair = {"name": "room", "any_of": [room["id"]], "mode": "fair"}
    assert Project.objects.get().requires == [fair, dentist]
