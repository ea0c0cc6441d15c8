from typing import Any

import pytest

from tests.availability.queries import MONDAY, open_hours
from tests.world import BERLIN, Tenant, at


@pytest.fixture
def monday(time_machine: Any) -> Any:
    """The clock stands still at 08:10 UTC on a Monday; `monday.move_to(at(...))` sets it."""
    time_machine.move_to(at(f"{MONDAY} 08:10"), tick=False)
    return time_machine


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    """A resource in UTC, busy from 10:00 to 10:30."""
    ada = tenant.make_resource("Ada")
    tenant.make_event(ada["calendars"][0]["id"], f"{MONDAY}T10:00:00Z", f"{MONDAY}T10:30:00Z")
    return ada


@pytest.fixture
def three(tenant: Tenant) -> list[str]:
    """Ids of three resources in three zones: Ada, open 09:00-11:00 UTC; Bob, 09:00-12:00 and busy
    until 09:30; Cleo, 09:15-11:15."""
    ada = tenant.make_resource("Ada", **open_hours(9, 11))
    bob = tenant.make_resource("Bob", BERLIN, **open_hours(10, 13))
    tenant.make_event(bob["calendars"][0]["id"], f"{MONDAY}T09:00:00Z", f"{MONDAY}T09:30:00Z")
    cleo = tenant.make_resource("Cleo", "Asia/Kathmandu", **open_hours(15, 17))
    return [ada["id"], bob["id"], cleo["id"]]
