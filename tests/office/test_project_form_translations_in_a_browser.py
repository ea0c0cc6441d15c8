"""A project's texts in further languages, in a real browser."""

from collections.abc import Callable

import pytest

from apps_config.models import Account
from availability.models import Project
from tests.accessibility import find_faults, load_axe
from tests.browser import viewports
from tests.office.conftest import Visit
from tests.world import Tenant

pytestmark = pytest.mark.django_db(transaction=True)

PART = "document.getElementById('part-languages')"
GERMAN = "document.querySelector('[name=translated_texts-de-0]')"


@pytest.mark.parametrize(("width", "scheme"), viewports())
def test_a_text_is_translated(
    visit: Callable[..., Visit], office: Tenant, editor: Account, width: int, scheme: str
) -> None:
    questions = {"insurance": {"title": "Insurance", "enum": ["Public", "Private"]}}
    project = office.make_project(customer_fields=questions)
    path = f"/admin/availability/project/{project['id']}/change/"
    page = visit(editor, path, width=width, height=1500, scheme=scheme).page

    is_closed = page.evaluate(f"!{GERMAN}.checkVisibility()")
    page.evaluate(f"{PART}.querySelector('details').open = true")
    page.evaluate(f"{GERMAN}.closest('details').open = true")
    page.evaluate(f"{GERMAN}.focus()")
    page.type("Kontrolle")
    page.evaluate(f"{PART}.scrollIntoView()")
    page.save_screenshot(f"translated_texts-{width}-{scheme}")
    faults = find_faults(page, load_axe(), PART)
    page.evaluate("window.isOld = true; document.querySelector('[name=_save]').click()")
    page.wait_for("window.isOld === undefined && document.readyState === 'complete'")

    assert (is_closed, faults) == (True, [])
    assert Project.objects.get().translations == {"de": {"name": "Kontrolle"}}
