"""Resources, projects and groups to book, and live services for race tests: as it is, with faults
on demand, without the database's guard."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bookings.group_world import make_group
from tests.bookings.hold_requests import make_project
from tests.bookings.race_tenant import DROP_GUARD, LiveTenant
from tests.services import ROOT, Service
from tests.world import Tenant

FAULTY = "tests.bookings.race_wsgi"
SCHEMA = ROOT / "availability/migrations/0001_release_1_0"
ON_SQLITE = re.findall(
    r"^CREATE TRIGGER slot_taken(?:_unit)?_on_.*?^END;",
    SCHEMA.with_suffix(".sqlite.sql").read_text(),
    re.MULTILINE | re.DOTALL,
)
ON_POSTGRESQL = re.findall(
    r"^ALTER TABLE availability_event ADD CONSTRAINT slot_taken.*?;",
    SCHEMA.with_suffix(".postgresql.sql").read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture
def ada(tenant: Tenant) -> Any:
    return tenant.make_resource("Ada", email="ada@example.com")


@pytest.fixture
def bob(tenant: Tenant) -> Any:
    return tenant.make_resource("Bob")


@pytest.fixture
def calendar(ada: Any) -> str:
    """The id of Ada's calendar."""
    return ada["calendars"][0]["id"]


@pytest.fixture
def mutual(tenant: Tenant, ada: Any, bob: Any) -> str:
    """The id of a project that books both."""
    return make_project(tenant, ada, bob, availability={"mode": "mutual"})


@pytest.fixture
def group(tenant: Tenant, ada: Any) -> Any:
    return make_group(tenant, ada)


@pytest.fixture
def classes(tenant: Tenant, ada: Any) -> str:
    """A project whose page sells seats."""
    return tenant.make_project(ada["id"], booking={"graph": "group_customer", "what": "Yoga"})["id"]


@pytest.fixture(scope="session")
def live_tenant(live_service: Service) -> LiveTenant:
    return LiveTenant(live_service)


@pytest.fixture(scope="session")
def faulty_tenant(start_shared_service: Callable[..., Service]) -> LiveTenant:
    """In a service that obeys the header `Fault`."""
    return LiveTenant(start_shared_service(wsgi=FAULTY))


@pytest.fixture
def unguarded_tenant(faulty_tenant: LiveTenant) -> Iterator[LiveTenant]:
    """The same, while its database has no guard on events."""
    for statement in DROP_GUARD[faulty_tenant.is_sqlite]:
        faulty_tenant.rows(statement)
    yield faulty_tenant
    # What overlaps by now can be guarded no more.
    faulty_tenant.rows("UPDATE availability_event SET exclusive = FALSE, unit = 0")
    for statement in ON_SQLITE if faulty_tenant.is_sqlite else ON_POSTGRESQL:
        faulty_tenant.rows(statement)


@pytest.fixture
def lock_only(unguarded_tenant: LiveTenant) -> LiveTenant:
    """Between the check and the write there is time for others to get in, if they could."""
    return unguarded_tenant.with_faults(pause=0.005)


@pytest.fixture
def guard_only(faulty_tenant: LiveTenant, tmp_path: Path) -> LiveTenant:
    """Several have passed the check before the first one writes."""
    return faulty_tenant.with_faults(unlocked=True, meet=str(tmp_path))


@pytest.fixture
def unprotected(unguarded_tenant: LiveTenant, tmp_path: Path) -> LiveTenant:
    return unguarded_tenant.with_faults(unlocked=True, meet=str(tmp_path))
