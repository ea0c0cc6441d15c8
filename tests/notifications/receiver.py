"""An HTTP receiver on loopback that says exactly what a test wants said."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from common.net import safe_http

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Request(NamedTuple):
    line: str
    headers: dict[str, str]  # names in lower case
    body: bytes


class Visit:
    """One connection, and which of its requests is to be answered now (from 1)."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.count = sock, 0


class Receiver:
    """`Receiver(OK)` says it to every request; `Receiver(function)` lets `function(visit)` speak.

    A function that returns True ends the connection. `wrap` makes a TLS server of it.
    """

    def __init__(
        self,
        answer: bytes | Callable[[Visit], bool | None],
        wrap: Callable[[socket.socket], socket.socket] = lambda sock: sock,
    ) -> None:
        self.answer, self.wrap = answer, wrap
        self.requests: list[Request] = []
        self.visits: list[Visit] = []
        self.is_stopped = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"

    def __enter__(self) -> "Receiver":
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.is_stopped.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for visit in self.visits:
            with contextlib.suppress(OSError):
                visit.sock.shutdown(socket.SHUT_RDWR)

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock: socket.socket) -> None:
        visit = Visit(sock)
        self.visits.append(visit)
        with contextlib.suppress(OSError, ValueError):
            visit.sock = self.wrap(sock)
            with visit.sock.makefile("rb") as file:
                while request := read_request(file):
                    visit.count += 1
                    self.requests.append(request)
                    if self.speak(visit):
                        break
        visit.sock.close()

    def speak(self, visit: Visit) -> bool | None:
        if callable(self.answer):
            return self.answer(visit)
        visit.sock.sendall(self.answer)
        return None

    def drip(self, pieces: list[bytes], then: bytes) -> Callable[[Visit], bool]:
        """Says `pieces` at once, then `then` every 50 ms for as long as anybody listens."""

        def answer(visit: Visit) -> bool:
            visit.sock.sendall(b"".join(pieces))
            while not self.is_stopped.wait(0.05):
                visit.sock.sendall(then)
            return True

        return answer


def read_request(file: object) -> Request | None:
    lines = []
    while (line := file.readline()) not in (b"\r\n", b""):
        lines.append(line.decode().strip())
    if not lines:
        return None
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    return Request(lines[0], headers, file.read(int(headers.get("content-length", 0))))


@contextlib.contextmanager
def fresh_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No connection of an earlier test is used, and none is left behind."""
    network = safe_http.ConnectionPools()
    monkeypatch.setattr(safe_http, "_network", network)
    yield
    for key in network.pools.pools.keys():  # noqa: SIM118
        network.pools.pools[key].close()
