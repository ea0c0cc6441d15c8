"""Who connects a calendar, or asks for a look, waits for no tick of beat; nor for Redis."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median
from typing import Any

import pytest
import redis
from django.db import transaction

from availability.models import Calendar
from external_calendars import tasks
from external_calendars.services import request_sync
from external_calendars.sync.leases import SYNC_WAKEUP
from notifications.outbox import wakeup
from notifications.outbox.wakeup import PAUSE, dispatcher_wakeup
from notifications.tasks import dispatch_deliveries
from tests.external_calendars.fake_provider import FakeCalendarServer, fake_caldav
from tests.external_calendars.front import Answer, Front
from tests.external_calendars.icalendars import one
from tests.external_calendars.test_calendars_api import WORK, connect
from tests.live import LiveApp, Rows
from tests.services import Redis, Service
from tests.world import Tenant

__all__ = ["fake_caldav"]


# --- Who asks -------------------------------------------------------------------------------------
@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the workers are woken for."""
    wake_ups: list[Any] = []
    monkeypatch.setattr(wakeup.wake_up_thread, "enqueue", wake_ups.extend)
    return wake_ups


def test_names_of_tasks() -> None:
    assert (SYNC_WAKEUP.task, dispatcher_wakeup("email").task) == (
        tasks.sync_calendars.name,
        dispatch_deliveries.name,
    )


@pytest.mark.django_db(transaction=True)
def test_sync_is_requested_after_the_commit(
    tenant: Tenant, fake_caldav: FakeCalendarServer, asked: list[Any]
) -> None:
    made = connect(tenant, tenant.make_resource(), fake_caldav.put(WORK)).data
    connected = list(asked)
    path = f"/calendars/{made['id']}"
    tenant.put(path, {"password": "another"})
    tenant.post(f"{path}/sync")
    with transaction.atomic():
        request_sync(Calendar.objects.get(id=made["id"]))
        before = len(asked)

    assert connected == [SYNC_WAKEUP]
    assert (before, asked) == (3, [SYNC_WAKEUP] * 4)


@pytest.mark.django_db(transaction=True)
def test_refused_requests_wake_no_worker(
    tenant: Tenant, fake_caldav: FakeCalendarServer, asked: list[Any]
) -> None:
    resource = tenant.make_resource()
    made = connect(tenant, resource, fake_caldav.put(WORK)).data
    asked.clear()

    again = connect(tenant, resource, WORK)
    nowhere = connect(tenant, resource, "https://dav.example.com/nothing/")
    renamed = tenant.put(f"/calendars/{made['id']}", {"name": "New"})
    with transaction.atomic():
        request_sync(Calendar.objects.get(id=made["id"]))
        transaction.set_rollback(True)

    assert (again.status, nowhere.status, renamed.status, asked) == (409, 422, 200, [])


# --- A service of real processes, without beat ----------------------------------------------------
# For so long whoever speaks to a Redis that says nothing waits (CELERY_BROKER_TRANSPORT_OPTIONS).
BROKER_SECONDS = 5
LEASED = "SELECT count(*) FROM external_calendars_connection WHERE lease_token IS NOT NULL"


class Deployment:
    """A service, its Redis, and a feed: each request for it is noted."""

    def __init__(self, service: Service, broker: Redis, feed: Front) -> None:
        self.service, self.redis, self.feed = service, broker, feed
        self.client = LiveApp(service)
        self.resource = self.client.post("/v2/resources", {"name": "Ada", "timezone": "UTC"}).data

    def connect(self) -> Any:
        body = {
            "resource_id": self.resource["id"],
            "provider": "ics",
            "address": f"{self.feed.url}/ada.ics",
        }
        answer = self.client.post("/v2/calendars", body)
        assert answer.status == 201, answer.content
        return answer.data

    def wait_for_calls(self, count: int, seconds: float) -> float:
        """Returns how long it took."""
        began = time.monotonic()
        while len(self.feed.calls) < count:
            assert time.monotonic() - began < seconds, self.service.log("worker")
            time.sleep(0.01)
        return time.monotonic() - began

    def wait_until_synced(self, calendar_id: str) -> Any:
        ends = time.monotonic() + 20
        while time.monotonic() < ends:
            shown = self.client.get(f"/v2/calendars/{calendar_id}").data
            if shown["synced_at"]:
                return shown
            time.sleep(0.05)
        raise AssertionError(self.service.log("worker"))

    def wait_until_given_back(self) -> None:
        """No look is under way any more."""
        self._wait(lambda: Rows(self.service).read(LEASED) == [(0,)])

    def wait_for_tasks(self, count: int) -> None:
        """So many messages have reached the worker; sweeps need none."""
        received = f"Task {SYNC_WAKEUP.task}["
        self._wait(lambda: self.service.log("worker").count(received) >= count)

    def _wait(self, is_so: Callable[[], bool]) -> None:
        ends = time.monotonic() + 20
        while not is_so():
            assert time.monotonic() < ends, self.service.log("worker")
            time.sleep(0.05)


@pytest.fixture
def deployment(start_service: Callable[..., Service]) -> Iterator[Deployment]:
    text = one("DTSTART:20301201T100000Z", "DURATION:PT1H")
    with ExitStack() as stack:
        feed, broker = Front(), Redis()
        stack.callback(feed.stop)
        stack.callback(broker.stop)
        feed.answer = lambda call: Answer(200, text.encode(), {"Content-Type": "text/calendar"})
        broker.start()
        service = start_service(
            workers=1,
            REDIS_URL=broker.url,
            WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8",
            WEBHOOK_HTTPS_ONLY="false",
        )
        stack.callback(service.stop)
        yield Deployment(service, broker, feed)


@pytest.mark.redis
@pytest.mark.django_db
def test_requested_sync_starts_at_once(deployment: Deployment) -> None:
    deployment.service.start_worker(queue="calendar")
    made = deployment.connect()
    waits = [deployment.wait_for_calls(2, 20)]
    deployment.wait_until_synced(made["id"])

    path = f"/v2/calendars/{made['id']}"
    assert deployment.client.call("PUT", path, {"username": "ada"}).status == 200
    waits.append(deployment.wait_for_calls(4, 20))
    deployment.wait_until_synced(made["id"])
    deployment.wait_until_given_back()
    assert deployment.client.post(f"{path}/sync", {}).status == 200
    waits.append(deployment.wait_for_calls(5, 20))

    print("a look begins after", ", ".join(f"{wait:.2f} s" for wait in waits))
    # There is no beat: each look was woken, and has asked for its successor.
    deployment.wait_for_tasks(6)


@pytest.mark.redis
@pytest.mark.django_db
def test_burst_of_requests_sends_few_expiring_messages(deployment: Deployment) -> None:
    path = f"/v2/calendars/{deployment.connect()['id']}/sync"
    began = time.monotonic()
    codes = {deployment.client.post(path, {}).code for _ in range(100)}
    time.sleep(2 * PAUSE)
    took = time.monotonic() - began

    with redis.Redis.from_url(deployment.redis.url) as broker:
        messages = [json.loads(message) for message in broker.lrange("calendar", 0, -1)]
    print(f"{len(messages)} messages of 100 requests in {took:.1f} s")
    assert codes == {"200"}
    assert {message["headers"]["task"] for message in messages} == {SYNC_WAKEUP.task}
    assert all(message["headers"]["expires"] for message in messages)
    assert 1 <= len(messages) <= took / PAUSE + 2


@pytest.mark.redis
@pytest.mark.django_db
@pytest.mark.parametrize(
    "is_mute",
    [
        pytest.param(False, id="away", marks=pytest.mark.deep),
        pytest.param(True, id="mute", marks=pytest.mark.deep),
    ],
)
def test_response_without_redis_is_equal_and_fast(deployment: Deployment, is_mute: bool) -> None:
    """The look follows by the worker's own sweep."""
    deployment.service.start_worker(queue="calendar")
    made = deployment.connect()
    known = deployment.wait_until_synced(made["id"])
    path = f"/v2/calendars/{made['id']}/sync"

    def ask() -> float:
        began = time.monotonic()
        answer = deployment.client.post(path, {})
        shown = {key: answer.data[key] for key in ("id", "name", "provider_sync", "problem")}
        assert (answer.status, shown) == (200, {key: known[key] for key in shown})
        return time.monotonic() - began

    there = median(ask() for _ in range(20))
    deployment.redis.kill()
    with ExitStack() as stack:
        if is_mute:
            address = ("127.0.0.1", deployment.redis.port)
            stack.enter_context(socket.create_server(address, backlog=512))
        deployment.wait_until_given_back()
        calls = len(deployment.feed.calls)
        times = [ask() for _ in range(20)]
        late = deployment.wait_for_calls(calls + 1, 30)

    away = median(times)
    print(f"there {there * 1000:.0f} ms, away {away * 1000:.0f} ms; look after {late:.1f} s")
    assert max(times) < BROKER_SECONDS, "a request has waited for Redis"
