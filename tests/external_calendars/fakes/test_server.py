"""The gateway of the fakes: hosts, log, faults, clock; and the sender of notifications."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import requests

from tests.external_calendars.fakes.notifications import Notification, NotificationSender
from tests.external_calendars.fakes.server import Clock, Gateway, Request, Response, Violation
from tests.sinks import Answer as HookAnswer
from tests.sinks import HookSink, hook_sink


class Echo:
    """Answers with what was asked; `seen` counts what was processed."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.meeting = threading.Barrier(3, timeout=10)

    def account_of(self, request: Request) -> str:
        return request.bearer

    def respond(self, request: Request) -> Response:
        self.seen.append(str(request))
        if request.path == "/unknown":
            raise Violation("Unknown path.")
        if request.path == "/broken":
            raise ZeroDivisionError
        if request.path == "/meet":
            self.meeting.wait()
        return Response(200, {"path": request.path, "query": request.query})

    def refuse(self, request: Request, sentence: str) -> Response:
        return Response(400, {"echo": sentence})


@pytest.fixture
def echo(gateway: Gateway) -> Echo:
    echo = Echo()
    gateway.serve("echo.example.com", echo)
    return echo


@pytest.fixture
def hooks() -> Iterator[HookSink]:
    with hook_sink() as sink:
        yield sink


def test_gateway_passes_the_real_path_to_the_fake_of_the_host(gateway: Gateway, echo: Echo) -> None:
    answer = requests.get(gateway.address("https://echo.example.com/a%40b/c?x=1&x=2&y="), timeout=5)

    assert answer.json() == {"path": "/a%40b/c", "query": {"x": ["1", "2"], "y": [""]}}
    assert [str(request) for request in gateway.requests] == ["GET echo.example.com/a%40b/c"]


def test_gateway_records_an_unknown_host(gateway: Gateway) -> None:
    answer = requests.get(gateway.address("https://nobody.example.com/"), timeout=5)

    assert answer.status_code == 400
    assert gateway.violations == ["GET nobody.example.com/: no fake has this host."]
    gateway.violations.clear()


def test_gateway_has_no_icon_and_logs_no_question_for_it(gateway: Gateway) -> None:
    assert requests.get(f"{gateway.url}/favicon.ico", timeout=5).status_code == 404
    assert gateway.requests == []


def test_gateway_records_a_violation_and_answers_in_the_words_of_the_fake(
    gateway: Gateway, echo: Echo
) -> None:
    answer = requests.get(gateway.address("https://echo.example.com/unknown"), timeout=5)

    assert (answer.status_code, answer.json()) == (400, {"echo": "Unknown path."})
    assert gateway.violations == ["GET echo.example.com/unknown: Unknown path."]
    gateway.violations.clear()


def test_gateway_records_a_fault_of_the_fake(gateway: Gateway, echo: Echo) -> None:
    answer = requests.get(gateway.address("https://echo.example.com/broken"), timeout=5)

    assert answer.status_code == 500
    [sentence] = gateway.violations
    assert sentence.startswith("GET echo.example.com/broken: Traceback")
    assert sentence.rstrip().endswith("ZeroDivisionError")
    gateway.violations.clear()


def test_fail_answers_the_next_matching_requests_unprocessed(gateway: Gateway, echo: Echo) -> None:
    gateway.fail("/a$", status=429, times=2, body={"slow": "down"}, headers={"Retry-After": "7"})
    url = gateway.address("https://echo.example.com/")

    answers = [requests.get(url + path, timeout=5) for path in ("b", "a", "a", "a")]

    assert [answer.status_code for answer in answers] == [200, 429, 429, 200]
    assert (answers[1].json(), answers[1].headers["Retry-After"]) == ({"slow": "down"}, "7")
    assert echo.seen == ["GET echo.example.com/b", "GET echo.example.com/a"]


def test_hang_up_ends_the_connection_before_or_after_the_work(gateway: Gateway, echo: Echo) -> None:
    url = gateway.address("https://echo.example.com/a")

    gateway.hang_up("/a", method="POST")
    with pytest.raises(requests.ConnectionError):
        requests.post(url, timeout=5)
    assert echo.seen == []

    gateway.lose_answer("/a", method="POST")
    with pytest.raises(requests.ConnectionError):
        requests.post(url, timeout=5)
    assert echo.seen == ["POST echo.example.com/a"]
    assert requests.post(url, timeout=5).status_code == 200


def test_gateway_counts_the_requests_of_an_account_at_a_time(gateway: Gateway, echo: Echo) -> None:
    url = gateway.address("https://echo.example.com/meet")
    headers = {"Authorization": "Bearer ada"}
    threads = [
        threading.Thread(target=requests.get, args=(url,), kwargs={"headers": headers})
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert gateway.most_concurrent == {"ada": 3}
    assert sorted(request.concurrent for request in gateway.requests) == [1, 2, 3]


def test_clock_stops_where_it_is_set_and_advances() -> None:
    clock = Clock()
    clock.set(datetime(2027, 1, 1, tzinfo=UTC))
    clock.advance(days=7, hours=1)

    assert clock.now() == datetime(2027, 1, 8, 1, tzinfo=UTC)


def test_notifications_are_lost_doubled_held_and_forged(hooks: HookSink) -> None:
    sender = NotificationSender()
    first, second, third, fourth = (
        Notification(hooks.url(f"/{name}"), {"X-Number": name}) for name in ("1", "2", "3", "4")
    )
    hooks.answers["/2"] = HookAnswer(503)

    sender.lose(1)
    sender.send(first)
    sender.double(1)
    sender.send(second)
    sender.wait()
    sender.is_holding = True
    sender.send(third)
    sender.send(fourth)
    before_release = [call.path for call in hooks.calls]
    statuses = sender.release()
    forged = sender.deliver(replace(first, headers={"X-Number": "forged"}))

    assert before_release == ["/2", "/2"]
    assert (statuses, forged) == ([200, 200], 200)
    assert sender.lost == [first]
    assert sender.sent[:2] == [(second, 503), (second, 503)]
    assert [call.headers["x-number"] for call in hooks.calls] == ["2", "2", "3", "4", "forged"]


def test_notification_to_nobody_is_sent_in_vain() -> None:
    sender = NotificationSender()
    notification = Notification("http://127.0.0.1:1/", {})

    sender.send(notification)
    sender.wait()

    assert sender.sent == [(notification, 0)]
