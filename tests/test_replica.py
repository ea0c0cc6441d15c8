"""A replica answers all listings but those of changes (api.md section 2)."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.live import CUSTOMER, LiveApp, LiveCaller
from tests.services import PostgreSQL, Replica, Service, make_database, with_database

pytestmark = pytest.mark.postgresql

UNAVAILABLE = {
    "error": "Changes are listed by the primary database only.",
    "code": "unavailable",
}
NAME = "booking"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start_web(stack: ExitStack, server: PostgreSQL, folder: Path) -> Service:
    folder.mkdir()
    service = Service(folder, with_database(server.url, NAME), {})
    stack.callback(service.stop)
    service.start_web(workers=1, threads=4)
    return service


def test_replica_refuses_listings_of_changes(stack: ExitStack, tmp_path: Path) -> None:
    primary = PostgreSQL()
    stack.callback(primary.stop)
    primary.start()
    make_database(primary, NAME, tmp_path)
    app = LiveApp(start_web(stack, primary, tmp_path / "primary"))
    resource = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data["id"]
    times = {"start": "2031-01-02 09:00:00", "end": "2031-01-02 09:30:00"}
    body = {"resource_id": resource, "what": "Check-up", "customer": CUSTOMER, **times}
    app.post("/v2/bookings", body)
    replica = Replica(primary)
    stack.callback(replica.stop)
    replica.start()
    reader = LiveCaller(start_web(stack, replica, tmp_path / "replica").url, app.key)

    listings = [f"/v2/{name}" for name in ("bookings", "resources", "deliveries", "credentials")]
    whole = [(app.get(path).json["data"], reader.get(path).json["data"]) for path in listings]
    refused = [reader.get(f"{path}?updated_since=2026-01-01") for path in listings]
    served = [app.get(f"{path}?updated_since=2026-01-01") for path in listings]

    assert [there == here for here, there in whole] == [True] * 4
    assert [(one.status, one.headers["Retry-After"]) for one in refused] == [(503, "1")] * 4
    assert [{key: one.json[key] for key in UNAVAILABLE} for one in refused] == [UNAVAILABLE] * 4
    assert [one.status for one in served] == [200] * 4
    assert all(one.headers["Service-Complete-Until"] for one in served)
