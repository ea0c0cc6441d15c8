"""A database that takes no more writes: reads go on, writes are put off, and it heals by itself."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from tests.live import CUSTOMER, LiveApp, LiveCaller, Rows
from tests.ops.test_health import READY
from tests.services import Service

pytestmark = pytest.mark.both_databases

CONNECTIONS = 4
REFUSED = {"error": "The service is busy, try again.", "code": "unavailable"}
FORGET_USE = "UPDATE apps_config_credential SET last_used_at = NULL"
END_SESSIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def run(service: Service, *statements: str) -> None:
    with Rows(service).cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        cursor.connection.commit()


@contextmanager
def read_only(service: Service) -> Iterator[None]:
    """PostgreSQL: as after a failover to a server that only reads, all old sessions ended.
    SQLite: no process of web can write another byte, as on a full disk."""
    if service.database_url.startswith("sqlite"):
        with no_room(service):
            yield
        return
    name = service.database_url.rpartition("/")[2]
    run(service, f"ALTER DATABASE {name} SET default_transaction_read_only = on", END_SESSIONS)
    try:
        yield
    finally:
        # The sessions that began meanwhile go on, and only read.
        reset = f"ALTER DATABASE {name} RESET default_transaction_read_only"
        run(service, "SET TRANSACTION READ WRITE", reset)


@contextmanager
def no_room(service: Service) -> Iterator[None]:
    web = psutil.Process(service.processes["web"].pid)
    processes = [web, *web.children(recursive=True)]
    for process in processes:
        process.rlimit(psutil.RLIMIT_FSIZE, (1, psutil.RLIM_INFINITY))
    try:
        yield
    finally:
        for process in processes:
            process.rlimit(psutil.RLIMIT_FSIZE, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))


def booking(app: LiveApp, resource_id: str, hour: int) -> Any:
    body = {
        "resource_id": resource_id,
        "what": "Check-up",
        "customer": CUSTOMER,
        "start": f"2031-01-02 {hour:02}:00:00",
        "end": f"2031-01-02 {hour:02}:30:00",
    }
    return app.post("/v2/bookings", body)


def test_read_only_database_serves_reads_and_refuses_writes(
    start_service: Callable[..., Service],
) -> None:
    service = start_service(workers=1, threads=CONNECTIONS)
    app = LiveApp(service)
    resource_id = app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data["id"]
    assert booking(app, resource_id, 8).status == 201
    stranger = LiveCaller(service.url, "live_api_key_00000000_" + "x" * 43)
    run(service, FORGET_USE)

    with read_only(service):
        reads = [app.get(f"/v2/{path}") for path in ("bookings", "resources", "projects", "app")]
        writes = [booking(app, resource_id, hour) for hour in range(9, 13)]
        writes += [app.call("PUT", f"/v2/resources/{resource_id}", {"name": "Eve"})]
        unknown = stranger.get("/v2/bookings")
        ready = LiveCaller(service.url).get("/readyz")
        healthy = LiveCaller(service.url).get("/healthz")
    after = LiveCaller(service.url).get("/readyz").json
    healed = [booking(app, resource_id, hour).code for hour in range(9, 18)]

    assert [read.status for read in reads] == [200] * 4
    assert [(write.status, write.headers["Retry-After"]) for write in writes] == [(503, "1")] * 5
    assert {key: writes[0].json[key] for key in REFUSED} == REFUSED
    assert unknown.code == "401 unauthenticated"
    assert (ready.status, ready.json["status"], ready.json["database"]) == (
        *(503, "unavailable", "read-only"),
    )
    assert healthy.status == 200
    assert (after, healed) == (READY, ["201"] * 9)
    assert app.get("/v2/bookings").json["total"] == 10
    assert "Traceback" not in service.log("web")
    if os.environ["TEST_ENGINE"] == "postgresql":
        assert "UNEXPECTED" not in service.log("web")
