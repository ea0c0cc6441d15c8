import itertools
from collections.abc import Callable
from typing import Any

import pytest

from apps_config import authentication
from scheduling.api.rates import RateWindow
from tests.browser import browser
from tests.world import NOW, Tenant

__all__ = ["browser"]  # one for the whole session

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def _fresh_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process counts in memory starts anew for every test."""
    monkeypatch.setattr(authentication, "_refused_minute", {})
    limit = authentication.request_rates.limit
    monkeypatch.setattr(authentication, "request_rates", RateWindow(limit))


@pytest.fixture
def clock(time_machine: Any) -> Any:
    """The clock stands still at NOW; `clock.shift(60)` moves it on."""
    time_machine.move_to(NOW, tick=False)
    return time_machine


@pytest.fixture
def make_tenant(db: None) -> Callable[..., Tenant]:
    """`make_tenant(mode="test")`: an app of its own slug, with a server key."""

    def make(**app: Any) -> Tenant:
        return Tenant(app.pop("slug", f"app-{next(_numbers)}"), **app)

    return make


@pytest.fixture
def tenant(make_tenant: Callable[..., Tenant]) -> Tenant:
    return make_tenant()
