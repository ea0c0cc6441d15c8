"""How connections are spread over the processes of web."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn

from scheduling import balanced_worker
from scheduling.balanced_worker import BalancedWorker
from tests.services import Service


class Process(BalancedWorker):
    """A process with one thread that counts its connections and serves none."""

    def __init__(self, listener: socket.socket, *, waiting: int, processes: int = 2) -> None:
        config = Config()
        config.set("threads", 1)
        config.set("workers", processes)
        super().__init__(1, 1, [listener], None, 30, config, Logger(config))
        self.tmp.close()
        self.nr_conns = waiting + 1

    def enqueue_req(self, conn: TConn) -> None:
        conn.sock.close()


@contextmanager
def connected() -> Iterator[socket.socket]:
    """A listening socket with one connection to accept."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.setblocking(False)
        with closing(socket.create_connection(listener.getsockname(), timeout=5)):
            yield listener


@pytest.mark.parametrize(
    ("waiting", "pause", "accepted"),
    [
        (3, 1.0, (0, 1)),
        (3, 0.0, (1, 0)),  # control: the first to see a connection takes it
        (1, 1.0, (1, 0)),  # as many as threads
    ],
)
def test_a_process_with_waiting_requests_leaves_a_connection_to_others(
    monkeypatch: pytest.MonkeyPatch, waiting: int, pause: float, accepted: tuple[int, int]
) -> None:
    monkeypatch.setattr(balanced_worker, "PAUSE", pause)
    monkeypatch.setattr(balanced_worker, "LONGEST_PAUSE", 10)
    with connected() as listener:
        first = Process(listener, waiting=waiting)
        other = Process(listener, waiting=-1)
        other.nr_conns = 0
        late = threading.Timer(0.3, other.accept, [listener])
        late.start()
        first.accept(listener)
        late.join()

    assert (first.nr_conns - waiting - 1, other.nr_conns) == accepted


@pytest.mark.parametrize(("processes", "pauses"), [(2, [0.05]), (1, [])])
def test_no_pause_is_long_and_a_single_process_makes_none(
    monkeypatch: pytest.MonkeyPatch, processes: int, pauses: list[float]
) -> None:
    made: list[float] = []
    monkeypatch.setattr(balanced_worker.time, "sleep", made.append)
    with connected() as listener:
        busy = Process(listener, waiting=1000, processes=processes)
        busy.accept(listener)

    assert (busy.nr_conns, made) == (1002, pauses)


def test_a_connection_is_closed_after_a_hundred_requests(
    start_service: Callable[..., Service],
) -> None:
    service = start_service()
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    kept = []
    for _ in range(100):
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"status":"ok"}')
        kept.append(answer.getheader("Connection"))
    service.stop()

    assert kept == ["keep-alive"] * 99 + ["close"]
