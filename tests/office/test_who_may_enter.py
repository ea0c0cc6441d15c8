"""axe-core finds nothing serious on the calendar, Why not?, and the pages with rules."""

from collections.abc import Callable
from typing import Any

import pytest

from apps_config.models import Account
from tests.accessibility import find_faults, load_axe
from tests.browser import viewports
from tests.office.conftest import Visit
from tests.world import Tenant


@pytest.mark.parametrize(("width", "scheme"), viewports(only="wide"))
def test_pages_are_accessible(
    visit: Callable[..., Visit],
    office: Tenant,
    ada: Any,
    bob: Any,
    editor: Account,
    width: int,
    scheme: str,
) -> None:
    for hour, graph in ((10, "instant"), (12, "confirm_decline"), (14, "instant")):
        day = "2030-01-07"
        times = {"start": f"{day} {hour}:00:00", "end": f"{day} {hour}:30:00"}
        booking = office.book(resource_id=ada["id"], graph=graph, **times).data
    office.put(f"/bookings/{booking['id']}/cancel")
    axe = load_axe()
    both = f"{ada['id']},{bob['id']}"

    calendar = visit(
        editor, f"/admin/calendar/?resources={both}&date=2030-01-07", width=width, scheme=scheme
    ).page
    calendar.wait_for("document.querySelector('#cal-grid').dataset.drawn >= 1")
    calendar.evaluate("document.querySelector('#cal-gone').click()")
    calendar.wait_for("!!document.querySelector('.ec-event.is-cancelled')")
    found = [find_faults(calendar, axe)]
    calendar.evaluate("document.querySelector('#cal-new').click()")
    found.append(find_faults(calendar, axe))
    why = visit(
        editor, f"/admin/why/{ada['id']}/?at=2030-01-07T10:00", width=width, scheme=scheme
    ).page
    why.wait_for("!!document.querySelector('.is-laid')")
    found.append(find_faults(why, axe))
    rules = visit(
        editor, f"/admin/availability/resource/{ada['id']}/change/", width=width, scheme=scheme
    ).page
    rules.wait_for("document.querySelector('.rules-picture').dataset.drawn >= 1")
    found.append(find_faults(rules, axe))

    assert found == [[], [], [], []]
