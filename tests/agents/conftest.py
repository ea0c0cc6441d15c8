"""A tenant with a service, and agents with its keys."""

from typing import Any

import pytest

from apps_config.models import Credential
from apps_config.services import issue_key
from tests.agents.client import Agent
from tests.world import Tenant

START, END = "2026-11-23T09:00:00+00:00", "2026-11-23T09:30:00+00:00"
LATER, LATER_END = "2026-11-23T11:00:00+00:00", "2026-11-23T11:30:00+00:00"


@pytest.fixture
def service(tenant: Tenant) -> Any:
    ada = tenant.make_resource(email="ada@example.com")
    return tenant.make_project(
        ada["id"],
        availability={"length": "30 minutes"},
        booking={"what": "Check-up"},
        settings={"min_cancel_time": "1 day"},
    )


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return Agent(tenant.key)


@pytest.fixture
def asking_agent(tenant: Tenant) -> Agent:
    """An agent whose client shows forms to a person."""
    return Agent(tenant.key, {"elicitation": {}})


@pytest.fixture
def public_agent(tenant: Tenant) -> Agent:
    return Agent(issue_key(Credential.WIDGET, mode=tenant.app.mode, app=tenant.app)[1])


@pytest.fixture
def booking(tenant: Tenant, service: Any) -> Any:
    return tenant.book(project_id=service["id"], start=START, end=END).data
