"""How many modules of the service one request enters: whoever follows a request reads them all.

The ceilings are lowered with each step that makes a request simpler.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.services import ROOT
from tests.world import Tenant

# The hour decides whether a booking at once goes into the next day.
pytestmark = pytest.mark.usefixtures("clock")
OUTSIDE = (ROOT / "tests", ROOT / ".venv")


@contextmanager
def entered_modules() -> Iterator[set[str]]:
    """The files of the service whose functions run inside the block, in this thread."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    profile = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(profile)
        files = {Path(name) for name in found}
        ours = {
            str(file.relative_to(ROOT))
            for file in files
            if file.is_relative_to(ROOT) and not any(map(file.is_relative_to, OUTSIDE))
        }
        found.clear()
        found |= ours


def search_free_time(tenant: Tenant, project: str) -> Any:
    return tenant.post("/availability", {"project_id": project})


def make_booking(tenant: Tenant, project: str) -> Any:
    slot = search_free_time(tenant, project).data[0]
    times = {"start": slot["start"], "end": slot["end"]}
    with entered_modules() as found:
        answer = tenant.book(project_id=project, **times)
    answer.entered = found
    return answer


def search_and_count(tenant: Tenant, project: str) -> Any:
    with entered_modules() as found:
        answer = search_free_time(tenant, project)
    answer.entered = found
    return answer


@pytest.mark.parametrize(
    ("call", "status", "ceiling"),
    [(search_and_count, 200, 48), (make_booking, 201, 79)],
    ids=["POST /availability", "POST /bookings"],
)
def test_a_request_enters_few_modules(
    tenant: Tenant, call: Callable[..., Any], status: int, ceiling: int
) -> None:
    ada = tenant.make_resource("Ada", email="ada@example.com")
    project = tenant.make_project(ada["id"], availability={"length": "30 minutes"})["id"]
    call(tenant, project)  # loads what is loaded once

    answer = call(tenant, project)

    assert answer.status == status
    assert len(answer.entered) <= ceiling, "\n".join(sorted(answer.entered))


def test_modules_are_counted(tenant: Tenant) -> None:
    with entered_modules() as found:
        tenant.get("/resources")

    assert {"apps_config/authentication.py", "availability/views/resources.py"} <= found
    assert not any(name.startswith(("tests/", ".venv/")) for name in found)
