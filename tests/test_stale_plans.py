"""A column changes its type while web serves: the prepared statements no longer fit."""

import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.live import CUSTOMER, LiveAnswer, LiveApp, Rows
from tests.services import Service

pytestmark = pytest.mark.postgresql

CONNECTIONS = 4
REQUESTS = 60  # more than enough to have every connection prepare its statements


@pytest.fixture(scope="module")
def app(start_service: Callable[..., Service]) -> LiveApp:
    return LiveApp(start_service(workers=1, threads=CONNECTIONS))


@pytest.fixture
def resource_id(app: LiveApp) -> str:
    return app.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data["id"]


def change_type(app: LiveApp, column: str) -> None:
    table, _, name = column.partition(".")
    with Rows(app.service).cursor() as cursor:
        cursor.execute(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
            f" WHERE attrelid = '{table}'::regclass AND attname = '{name}'"
        )
        (before,) = cursor.fetchone()
        after = "text" if before != "text" else "varchar(200)"
        cursor.execute(f'ALTER TABLE {table} ALTER COLUMN "{name}" TYPE {after}')
        cursor.connection.commit()


def at_once(call: Callable[[int], LiveAnswer]) -> Counter[str]:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return Counter(answer.code for answer in pool.map(call, range(REQUESTS)))


def booking(resource_id: str) -> dict[str, Any]:
    return {
        "resource_id": resource_id,
        "what": "Check-up",
        "customer": CUSTOMER,
        "start": "2031-01-02 09:00:00",
        "end": "2031-01-02 09:30:00",
        "settings": {"allow_double_bookings": True},
    }


@pytest.mark.parametrize(
    "column", ["apps_config_app.slug", "availability_resource.name", "availability_resource.image"]
)
def test_reads_continue_after_a_type_change(app: LiveApp, resource_id: str, column: str) -> None:
    def read(number: int) -> LiveAnswer:
        return app.get(f"/v2/resources/{resource_id}")

    at_once(read)
    change_type(app, column)

    assert at_once(read) == {"200": REQUESTS}


def test_idempotent_writes_continue_after_a_type_change(app: LiveApp, resource_id: str) -> None:
    def write(number: int) -> LiveAnswer:
        key = {"Idempotency-Key": uuid.uuid4().hex}
        return app.call("POST", "/v2/bookings", booking(resource_id), key)

    at_once(write)
    change_type(app, "availability_resource.name")

    assert at_once(write) == {"201": REQUESTS}


def test_other_writes_fail_once_per_connection(app: LiveApp, resource_id: str) -> None:
    def write(number: int) -> LiveAnswer:
        return app.post("/v2/bookings", booking(resource_id))

    at_once(write)
    change_type(app, "availability_resource.name")
    codes = at_once(write)

    assert set(codes) <= {"201", "503 unavailable"}
    assert codes["503 unavailable"] <= CONNECTIONS
    assert at_once(write) == {"201": REQUESTS}


@pytest.mark.parametrize("path", ["/admin/login/", "/readyz"])
def test_pages_outside_the_api_recover_after_a_type_change(app: LiveApp, path: str) -> None:
    def look(number: int) -> LiveAnswer:
        return app.get(path)

    at_once(look)
    change_type(app, "django_migrations.name")

    assert at_once(look) == {"200": REQUESTS}
