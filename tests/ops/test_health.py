"""/healthz and /readyz: what a load balancer is told when something is missing."""

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from notifications.models import Delivery
from tests.bookings.booking_drafts import NINE
from tests.live import LiveCaller, Rows
from tests.queries import Queries
from tests.services import PostgreSQL, Service, make_database, migrated_template
from tests.world import Tenant

READY = {"status": "ok", "database": "ok", "migrations": "ok"}
UNREACHABLE = {
    "status": "unavailable",
    "database": "unreachable",
    "migrations": "unknown",
}
NOT_MIGRATED = UNREACHABLE | {"database": "ok", "migrations": "not applied"}


def test_healthz_checks_nothing() -> None:
    # No database is allowed in this test.
    response = Client().get("/healthz", headers={"Accept": "text/html"})

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_readyz_reads_no_queue(tenant: Tenant) -> None:
    """A backlog is in /metrics: restarting web processes would not shorten it."""
    assert tenant.book(resource_id=tenant.make_resource()["id"], **NINE).status == 201
    Delivery.objects.update(next_at=timezone.now() - timedelta(hours=1))
    Client().get("/readyz")

    with Queries(connection) as captured:
        answer = Client().get("/readyz").json()

    assert answer == READY
    assert not [query for query in captured.captured_queries if "notifications_" in query["sql"]]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("POST", 405), ("DELETE", 405)])
def test_health_accepts_only_get(db: None, path: str, method: str, status: int) -> None:
    response = Client().generic(method, path)

    assert response.status_code == status
    if status == 405:
        assert response.headers["Allow"] == "GET, HEAD, OPTIONS"
        assert response.json()["code"] == "method_not_allowed"


def test_readyz_fails_with_a_missing_migration(start_service: Callable[..., Service]) -> None:
    service = start_service(workers=1)
    caller, rows = LiveCaller(service.url), Rows(service)
    last = "id = (SELECT max(id) FROM django_migrations WHERE app = 'bookings')"

    ready = caller.get("/readyz")
    with rows.cursor() as cursor:
        cursor.execute(f"UPDATE django_migrations SET app = 'gone' WHERE {last}")
        cursor.connection.commit()
    missing = caller.get("/readyz")

    assert (ready.status, ready.json) == (200, READY)
    assert (missing.status, missing.json) == (503, NOT_MIGRATED)
    assert missing.headers["Retry-After"] == "5"
    assert caller.get("/healthz").status == 200


# --- A database that is not there -----------------------------------------------------------------
def check_outage(service: Service, bring_back: Callable[[], None]) -> None:
    """The service without its database, and with it again."""
    caller = LiveCaller(service.url, "live_api_key_00000000_" + "x" * 43)

    unready, refused, alive = (caller.get(path) for path in ("/readyz", "/v2/app", "/healthz"))
    bring_back()
    after = [caller.get("/readyz").json, caller.get("/v2/app").code]

    assert (unready.status, unready.json) == (503, UNREACHABLE)
    assert unready.headers["Retry-After"] == "5"
    assert refused.code == "503 unavailable"
    assert refused.headers["Retry-After"] == "1"
    assert alive.status == 200
    assert after == [READY, "401 unauthenticated"]
    assert "Traceback" not in service.log("web")


@pytest.fixture
def make_service(tmp_path: Path) -> Iterator[Callable[[str], Service]]:
    """`make_service(url)`: a service that is not started yet."""
    made = []

    def make(url: str) -> Service:
        folder = tmp_path / "service"
        folder.mkdir()
        made.append(Service(folder, url, {}))
        return made[-1]

    yield make
    for service in made:
        service.stop()


@pytest.mark.postgresql
@pytest.mark.skipif(not PostgreSQL.is_installed(), reason="PostgreSQL is not installed")
def test_readyz_fails_without_the_database_server(
    make_service: Callable[[str], Service], tmp_path: Path
) -> None:
    server = PostgreSQL()
    server.start()
    service = make_service(make_database(server, "service", tmp_path))
    service.start_web(workers=1)
    assert LiveCaller(service.url).get("/readyz").json == READY

    server.kill()
    check_outage(service, server.start)

    service.stop()
    server.stop()


@pytest.mark.sqlite
def test_readyz_fails_without_the_database_file(
    make_service: Callable[[str], Service], tmp_path: Path
) -> None:
    place = tmp_path / "data"
    service = make_service(f"sqlite:///{place / 'db.sqlite3'}")
    service.start_web(workers=1)

    def bring_back() -> None:
        place.mkdir()
        shutil.copyfile(migrated_template(), place / "db.sqlite3")

    check_outage(service, bring_back)
