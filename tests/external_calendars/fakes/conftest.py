"""Microsoft Graph with Ada's account: `graph`, `client`, `calendar`."""

from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from tests.external_calendars.fakes.graph import FakeGraph
from tests.external_calendars.fakes.graph_client import ADA, CALLBACK, GraphClient
from tests.external_calendars.fakes.server import Gateway


@pytest.fixture
def graph(microsoft: FakeGraph) -> FakeGraph:
    """Its clock stands on Friday, 27 November 2026, 9:00 UTC."""
    microsoft.clock.set(datetime(2026, 11, 27, 9, tzinfo=UTC))
    microsoft.add_account(ADA, "Ada Lovelace")
    microsoft.add_client(CALLBACK)
    return microsoft


@pytest.fixture
def client(gateway: Gateway, graph: FakeGraph) -> GraphClient:
    return GraphClient(gateway, graph.access_token(ADA))


@pytest.fixture
def calendar(graph: FakeGraph) -> str:
    """The path of Ada's default calendar."""
    return f"/me/calendars/{quote(graph.mailboxes[ADA].default_calendar.id)}"
