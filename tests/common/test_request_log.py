"""The access log and the histogram of requests."""

import json
import logging
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from prometheus_client import Metric, multiprocess

from common.observability import metrics
from common.observability.log_format import JsonFormatter
from tests.world import Tenant

Counts = dict[tuple[str, str, str], float]


def request_counts() -> Counts:
    """(method, route, status) -> requests of this process so far: other test processes share the
    folder.
    """
    file = metrics.FOLDER / f"histogram_{os.getpid()}.db"
    families = multiprocess.MultiProcessCollector.merge([str(file)] if file.exists() else [])
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for family in families
        for sample in family.samples
        if sample.name == "http_request_duration_seconds_count"
    }


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Captures lines in JSON, with the fields of their context."""
    caplog.set_level(logging.INFO, "access")
    caplog.handler.setFormatter(JsonFormatter())
    return caplog


def access_lines(log: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.text.splitlines()]
    return [line for line in lines if line["logger"] == "access"]


@pytest.mark.django_db
def test_access_line_has_the_route_and_no_query(log: pytest.LogCaptureFixture) -> None:
    headers = {"X-Request-Id": "r1", "User-Agent": "probe"}

    Client().get("/healthz?token=secret", headers=headers)

    (line,) = access_lines(log)
    assert (line.pop("ms") >= 0, line.pop("time")[-1], line.pop("process") > 0) == (True, "Z", True)
    assert line == {
        "level": "INFO",
        "logger": "access",
        "message": "request",
        "request_id": "r1",
        "method": "GET",
        "path": "/healthz",
        "route": "/healthz",
        "status": 200,
        "bytes": "15",
        "client": "127.0.0.1",
        "agent": "probe",
    }


def test_access_line_has_the_app(tenant: Tenant, log: pytest.LogCaptureFixture) -> None:
    tenant.call("GET", "/bookings", headers={"X-Request-Id": "r1"})
    tenant.call("GET", "/nowhere", headers={"X-Request-Id": "r2"})

    found = [
        (line["request_id"], line["route"], line["status"], line.get("app"))
        for line in access_lines(log)
    ]
    assert found == [
        ("r1", "/v2/bookings", 200, str(tenant.app.id)),
        ("r2", "unmatched", 404, None),
    ]


@pytest.mark.django_db
def test_requests_are_counted_by_route_and_not_by_path() -> None:
    before = request_counts()
    client = Client()

    for path in ("/healthz", "/healthz/nowhere", "/v2/nowhere", "/v2/bookings/1", "/v2/bookings/2"):
        client.get(path)
    client.generic("BREW", "/healthz")

    new = {key: count - before.get(key, 0) for key, count in request_counts().items()}
    assert {key: count for key, count in new.items() if count} == {
        ("GET", "/healthz", "2xx"): 1,
        ("GET", "unmatched", "4xx"): 4,
        ("other", "/healthz", "4xx"): 1,
    }


def test_files_of_ended_processes_are_removed() -> None:
    ended, own = metrics.FOLDER / "histogram_4194305.db", metrics.FOLDER / f"x_{os.getpid()}.db"
    for file in (ended, own):
        file.touch()

    metrics.remove_old_files()

    assert (ended.exists(), own.exists()) == (False, True)
    own.unlink()


def count_of_all_processes() -> float:
    [family] = [
        family
        for family in metrics.process_registry().collect()
        if family.name == "http_request_duration_seconds"
    ]
    return sum(row.value for row in family.samples if row.name.endswith("_count"))


@pytest.fixture
def counts_of_another_process() -> Iterator[Path]:
    """Their file, empty as yet."""
    file = metrics.FOLDER / f"histogram_another_{os.getpid()}.db"
    file.touch()
    yield file
    file.unlink(missing_ok=True)


def test_file_without_counts_is_skipped(counts_of_another_process: Path) -> None:
    Client().get("/healthz")

    assert count_of_all_processes() >= 1
    with pytest.raises(struct.error):  # a control: the library can't read it
        multiprocess.MultiProcessCollector.merge([str(counts_of_another_process)])


def test_concurrently_removed_file_is_skipped(
    counts_of_another_process: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Client().get("/healthz")
    counts_of_another_process.write_bytes(bytes(8))
    merge = multiprocess.MultiProcessCollector.merge
    errors = []

    def remove_and_merge(files: list[str]) -> Iterable[Metric]:
        counts_of_another_process.unlink(missing_ok=True)
        try:
            return merge(files)
        except FileNotFoundError as error:
            errors.append(Path(error.filename))
            raise

    monkeypatch.setattr(multiprocess.MultiProcessCollector, "merge", staticmethod(remove_and_merge))

    assert count_of_all_processes() >= 1
    assert errors == [counts_of_another_process]
