"""No URL of the corpus leads to a connection to an address that is not public (S08, S09, R21).

Every attempt to connect is seen and noted below the client. No packet leaves this machine: the
resolver is a table, and whoever connects to a public address is led to a receiver on loopback.
"""

import http.client
import os
import socket
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from common.net import safe_http
from common.net.ssrf import url_problem
from tests.common.hostile_servers import CORPUS, PUBLIC, Case, cases, corpus
from tests.notifications.receiver import OK, Receiver, Visit, fresh_network

CASES = list(cases())
PUBLIC_URLS = {
    "http://one.example/": [PUBLIC],
    "http://two.example:443/": ["1.1.1.1"],
    "http://three.example:8443/hook?a=b": ["8.8.8.8", "8.8.4.4"],
    "http://four.example./": ["9.255.255.255"],
    "http://UPPER.example/": ["11.0.0.0"],
    "http://bücher.example/": ["100.63.255.255"],
    "http://xn--mnchen-3ya.example/": ["100.128.0.0"],
    "http://under_score.example/": ["126.255.255.255"],
    "http://a-b.c-d.example/": ["128.0.0.1"],
    "http://localhost.example/": ["168.63.129.17"],
    "http://127.0.0.1.example/": ["169.253.255.255"],
    "http://edge-1.example/": ["172.15.255.255"],
    "http://edge-2.example/": ["172.32.0.0"],
    "http://edge-3.example/": ["192.167.255.255"],
    "http://edge-4.example/": ["192.169.0.0"],
    "http://edge-5.example/": ["198.17.255.255"],
    "http://edge-6.example/": ["198.20.0.0"],
    "http://last.example/": ["223.255.255.255"],
    "http://v6.example/": ["2606:4700:4700::1111"],
    "http://both.example/": ["2a00:1450:4001::1", "8.8.8.8"],
    "http://mapped.example/": ["::ffff:8.8.8.8"],
    "http://8.8.8.8/": ["8.8.8.8"],
    "http://134744072/": ["8.8.8.8"],
    "http://0x8080808/": ["8.8.8.8"],
    "http://[2001:4860:4860::8888]/": ["2001:4860:4860::8888"],
}


class Wire:
    """What would go out: the addresses somebody wanted to connect to, in order."""

    def __init__(self) -> None:
        self.wanted: list[str] = []
        self.lookups: list[tuple[str, ...]] = []
        self.receiver_port = 0  # where public addresses lead; 0: nobody answers

    def resolve(self, host: str, *args: object, **kwargs: object) -> list[tuple]:
        """The next answer of the case; its last one for ever."""
        answer = self.lookups.pop(0) if len(self.lookups) > 1 else self.lookups[0]
        return [
            (socket.AF_INET6 if ":" in text else socket.AF_INET, 1, 6, "", (text, 0))
            for text in answer
        ]

    def connect(self, sock: socket.socket, address: tuple) -> None:
        self.wanted.append(address[0])
        if not self.receiver_port:
            raise ConnectionRefusedError
        with socket.socket() as other:
            real_connect(other, ("127.0.0.1", self.receiver_port))
            os.dup2(other.fileno(), sock.fileno())


real_connect = socket.socket.connect


@pytest.fixture
def wire(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    settings.WEBHOOK_ALLOWED_NETWORKS, settings.WEBHOOK_HTTPS_ONLY = [], False
    wire = Wire()
    monkeypatch.setattr(socket.socket, "connect", lambda *args: wire.connect(*args))
    monkeypatch.setattr(socket, "getaddrinfo", wire.resolve)
    with fresh_network(monkeypatch):
        yield wire


def call(url: str) -> safe_http.CallResult:
    return safe_http.send_request(url, method="POST", headers={}, body=b"{}", deadline=5)


def of_kind(*kinds: str) -> list[Case]:
    return [case for case in CASES if case.kind.split()[0] in kinds]


def test_corpus_size():
    """If this fails: `python -m tests.common.hostile_servers`."""
    assert CORPUS.read_text() == corpus()
    assert len({case.line for case in CASES}) >= 300


@pytest.mark.parametrize("kind", ["literal", "spelling", "form"])
def test_hostile_urls_are_refused_on_save(wire, kind):
    assert [case.url for case in of_kind(kind) if url_problem(case.url) is None] == []


@pytest.mark.parametrize("kind", ["literal", "spelling", "form", "name", "mixed"])
def test_hostile_urls_are_not_called(wire, kind):
    answered = []
    for case in of_kind(kind):
        wire.lookups = list(case.lookups)
        reply = call(case.url)
        if reply.status is not None or not reply.error:
            answered.append(case.line)

    assert (answered, wire.wanted) == ([], [])


def test_error_for_a_name_does_not_reveal_the_address(wire):
    wire.lookups = [("10.1.2.3",)]

    assert call("http://evil.example/")._replace(seconds=0) == safe_http.CallResult(
        None, 0, "The address is not allowed."
    )


def test_control_without_policy_every_name_is_called(wire, monkeypatch):
    monkeypatch.setattr(safe_http, "addresses_problem", lambda *args: None)
    for case in of_kind("name"):
        wire.lookups = list(case.lookups)
        call(case.url)

    assert wire.wanted == [str(ip_address(case.lookups[0][0])) for case in of_kind("name")]


def test_control_connections_to_loopback_are_detected(wire):
    wire.lookups = [("127.0.0.1",)]
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", 9).connect()
    with socket.socket() as sock, pytest.raises(ConnectionRefusedError):
        sock.connect(("::1", 9))

    assert wire.wanted == ["127.0.0.1", "::1"]


def test_dns_rebinding_is_refused(wire):
    with Receiver(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n") as public:
        wire.receiver_port = public.port
        statuses = []
        for case in of_kind("rebinding"):
            wire.lookups = list(case.lookups)
            statuses += [call(case.url).status, call(case.url).status]

    count = len(of_kind("rebinding"))
    assert statuses == [200, None] * count
    assert wire.wanted == [PUBLIC] * count


def test_redirects_are_not_followed(wire):
    case = CASES[0]

    def redirect(visit: Visit) -> None:
        head = f"HTTP/1.1 {case.kind[-3:]} Moved\r\nLocation: {case.location}\r\n"
        visit.sock.sendall(f"{head}Content-Length: 0\r\n\r\n".encode())

    statuses = []
    with Receiver(redirect) as public:
        wire.receiver_port = public.port
        for case in of_kind("redirect"):
            wire.lookups = list(case.lookups)
            statuses.append(f"redirect {call(case.url).status}")

    assert statuses == [case.kind for case in of_kind("redirect")]
    assert [request.line for request in public.requests] == ["POST / HTTP/1.1"] * len(statuses)
    assert wire.wanted == [PUBLIC]


def test_public_addresses_are_called(wire):
    statuses = []
    with Receiver(OK) as public:
        wire.receiver_port = public.port
        for url, addresses in PUBLIC_URLS.items():
            wire.lookups = [tuple(addresses)]
            statuses.append((url_problem(url), call(url).status))

    assert statuses == [(None, 200)] * len(PUBLIC_URLS)
    assert wire.wanted == [str(ip_address(addresses[0])) for addresses in PUBLIC_URLS.values()]


def test_addresses_of_a_name_are_tried_in_their_order(wire):
    wire.lookups = [("1.1.1.1", "2606:4700::1", "8.8.8.8", "9.9.9.9")]

    reply = call("http://dead.example/")

    assert reply._replace(seconds=0) == safe_http.CallResult(None, 0, "The connection failed.")
    assert wire.wanted == ["1.1.1.1", "2606:4700::1", "8.8.8.8"]


def test_ports_are_checked_with_the_addresses(wire, settings):
    """A name on another port passes where networks are allowed, until its address is known."""
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("10.0.0.0/8")]
    wire.lookups = [("8.8.8.8",), ("10.0.0.1",), ("10.0.0.1", "8.8.8.8")]

    errors = [call("http://some.example:9000/").error for _ in range(3)]

    assert errors == [
        "The address is not allowed.",
        "The connection failed.",
        "The address is not allowed.",
    ]
    assert wire.wanted == ["10.0.0.1"]
