"""What the tests in browsers share: an app in a live service, and axe-core."""

import pytest

from tests.accessibility import load_axe
from tests.live import LiveApp
from tests.services import Service


@pytest.fixture(scope="module")
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture(scope="module")
def axe() -> str:
    return load_axe()
