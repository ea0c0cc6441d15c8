"""Client processes for race tests: each plays a list of requests, all begin at the same moment.

Run as a program of its own, because it forks and knows nothing of Django: it reads the job from
stdin and writes the answers to stdout.
"""

import contextlib
import http.client
import json
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

TIMEOUT = 60


class Request(NamedTuple):
    """`path` is relative to /v2."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    content: str

    @property
    def json(self) -> Any:
        return json.loads(self.content) if self.content else None

    @property
    def data(self) -> Any:
        """`json["data"]`, or a readable failure where there is none."""
        assert "data" in (self.json or {}), self
        return self.json["data"]

    @property
    def outcome(self) -> str:
        """`201`, `409 slot_taken`: what a test counts."""
        return str(self.status) if self.status < 400 else f"{self.status} {self.json['code']}"


def call(url: str, request: Request) -> Answer:
    """One request on a connection of its own. Raises OSError or HTTPException without an answer."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=TIMEOUT)
    body = None if request.body is None else json.dumps(request.body)
    with contextlib.closing(connection):
        connection.request(request.method, f"/v2{request.path}", body, dict(request.headers))
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read().decode())


def run_script(url: str, script: Sequence[Sequence[Any]]) -> list[Answer]:
    _start.wait(TIMEOUT)
    return [call(url, Request(*request)) for request in script]


def init_client(start: Any) -> None:
    global _start
    _start = start


def main() -> None:
    url, scripts = json.load(sys.stdin)
    context = multiprocessing.get_context("fork")
    start = context.Barrier(len(scripts))
    # Each process waits at the barrier with its first script, so each gets exactly one.
    with context.Pool(len(scripts), initializer=init_client, initargs=[start]) as pool:
        answers = pool.starmap(run_script, [(url, script) for script in scripts], chunksize=1)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
