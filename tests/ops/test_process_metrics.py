"""Requests and tasks counted over real processes: web with two processes, and a worker."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.live import LiveCaller
from tests.services import Service, free_port

Samples = dict[tuple[str, ...], float]


def scrape(url: str, token: str) -> Samples:
    """(name, *label values in the order of their names) -> value."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as response:
        text = response.read().decode()
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def processes_of(service: Service, route: str) -> set[int]:
    """The processes of web that have answered requests to the route."""
    lines = [json.loads(line) for line in service.log("web").splitlines()]
    return {line["process"] for line in lines if line.get("route") == route}


def test_requests_are_summed_over_the_processes_of_web(
    start_service: Callable[..., Service],
) -> None:
    service = start_service(
        workers=2, threads=4, METRICS_TOKEN="t", LOG_LEVEL="INFO", LOG_FORMAT="json"
    )
    caller = LiveCaller(service.url, "nobody")
    count, deadline = 0, time.monotonic() + 60
    with ThreadPoolExecutor(8) as pool:
        while len(processes_of(service, "/v2/bookings")) < 2:
            assert time.monotonic() < deadline, service.log("web")
            list(pool.map(lambda _: caller.get("/v2/bookings"), range(40)))
            count += 40

    found = scrape(f"{service.url}/metrics", "t")

    assert found[("http_request_duration_seconds_count", "GET", "/v2/bookings", "4xx")] == count
    assert found[("http_requests_in_progress", "GET")] == 1  # the scrape
    assert found[("web_threads",)] == 8


def test_a_worker_serves_the_durations_of_its_tasks(start_service: Callable[..., Service]) -> None:
    address = f"127.0.0.1:{free_port()}"
    service = start_service(
        METRICS_TOKEN="t", WORKER_METRICS_ADDRESS=address, LOG_LEVEL="INFO", LOG_FORMAT="json"
    )
    service.start_worker()

    key = ("task_duration_seconds_count", "success", "notifications.tasks.record_heartbeat")
    deadline = time.monotonic() + 30
    while key not in scrape(f"http://{address}/metrics", "t"):
        assert time.monotonic() < deadline, service.log("worker")
        # Workers of other services of the session take tasks from the same Redis.
        service.run("from notifications.tasks import record_heartbeat; record_heartbeat.delay()")
        time.sleep(0.2)

    with pytest.raises(urllib.error.HTTPError, match="401"):
        scrape(f"http://{address}/metrics", "wrong")
    lines = [json.loads(line) for line in service.log("worker").splitlines() if line[:1] == "{"]
    assert {"celery.worker.strategy", "celery.app.trace"} <= {line["logger"] for line in lines}
