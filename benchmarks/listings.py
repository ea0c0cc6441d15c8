"""Every listing with many rows (P7, P16), against itself with few, and plain counts."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from http.client import RemoteDisconnected
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import stage
from benchmarks.listing_request_urls import filter_requests, page_requests, wide_requests
from benchmarks.stage import Goal, HttpClient, Stage, milliseconds, own_postgres, time_each

FEW = 1_000
PAGE = 50


class Filled:
    """A service on a database with so many bookings and customers of one app."""

    def __init__(self, total: int, stack: ExitStack) -> None:
        self.url = stack.enter_context(own_postgres())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.stage = Stage(self.url, Path(folder))
        stack.callback(self.stage.stop)
        self.ids: Mapping[str, Any] = self.stage.script("benchmarks.listing_rows", str(total))
        self.stage.start()
        self.client: HttpClient = self.stage.client(self.ids["key"])

    def get(self, address: str) -> bytes:
        path = address.removeprefix("/v2")
        try:
            return self.client.call("GET", path)
        except RemoteDisconnected:  # it was idle while the other one was measured
            self.client = self.stage.client(self.ids["key"])
            return self.client.call("GET", path)


def measure() -> Iterator[Goal]:
    with ExitStack() as stack:
        few, many = (Filled(total, stack) for total in (FEW, stage.million()))
        yield from measure_bookings(many)
        yield from compare_with_few(few, many)
        yield from compare_with_plain_counts(many)
        yield from compare_pages(many)


def measure_bookings(many: Filled) -> list[Goal]:
    client = many.client
    last = many.ids["total"] // PAGE
    null = f"/null/{len(client.call('GET', '/bookings?page=1'))}"
    pages = {
        "first": "/bookings?page=1",
        "middle": f"/bookings?page={last // 2}",
        "last": f"/bookings?page={last}",
        "state": f"/bookings?state=completed&page={last // 10}",
    }
    runs = {name: lambda path=path: client.call("GET", path) for name, path in pages.items()}
    times = time_each({"null": lambda: client.call("GET", null), **runs})
    first = times["first"] / times["null"]
    goals = [
        Goal(
            "P7 page 1",
            "at most 10x null GET",
            first,
            f"{milliseconds(times['first'])} against {milliseconds(times['null'])}",
            first <= 10,
        )
    ]
    for name in ("middle", "last", "state"):
        goals.append(
            Goal(
                f"P7 GET {pages[name]}, {many.ids['total']:,} bookings",
                "at most 200 ms",
                times[name] / times["first"],
                f"{milliseconds(times[name])}, {milliseconds(times['first'])} for page 1",
                times[name] <= 0.2,
            )
        )
    return goals


def compare_with_few(few: Filled, many: Filled) -> Iterator[Goal]:
    """Yield the slowest request of each listing: page 1, and filters that few rows match."""
    requests = [
        list(zip(of_few(few.ids), of_many(many.ids), strict=True))
        for of_few, of_many in ((page_requests,) * 2, (filter_requests,) * 2)
    ]
    slowest: dict[str, Goal] = {}
    for in_few, in_many in chain(*requests):
        runs = {
            "many": partial(many.get, in_many.address),
            "few": partial(few.get, in_few.address),
        }
        times = time_each(runs, rounds=5, seconds=0.05)
        ratio = times["many"] / times["few"]
        goal = Goal(
            f"P16 GET {in_many.path}, {in_many.filter or 'page 1'} (the slowest filter)",
            "at most 5x itself with 1,000",
            ratio,
            f"{milliseconds(times['many'])} against {milliseconds(times['few'])}",
            ratio <= 5,
        )
        if in_many.path not in slowest or slowest[in_many.path].value < ratio:
            slowest[in_many.path] = goal
    yield from slowest.values()


def compare_with_plain_counts(many: Filled) -> Iterator[Goal]:
    with psycopg.connect(many.url, autocommit=True) as connection:
        for request in wide_requests(many.ids):
            runs = {
                "page": partial(many.get, request.address),
                "count": partial(connection.execute, request.count),
            }
            times = time_each(runs, rounds=3, seconds=0.05)
            ratio = times["page"] / times["count"]
            yield Goal(
                f"P16 wide filter: GET {request.name}",
                "reported",
                ratio,
                f"{milliseconds(times['page'])} against {milliseconds(times['count'])}",
            )


def compare_pages(many: Filled) -> Iterator[Goal]:
    """Yield the middle and the deepest page of the long listings."""
    total = many.ids["total"]
    lengths = {
        "/v2/bookings": total,
        "/v2/customers": total - total // 100,
        "/v2/deliveries": 3 * total,
        f"/v2/webhooks/{many.ids['webhook']}/deliveries": total - total // 100,
        "/v2/bookings?state=completed": total // 3 - 200,
    }
    for address, length in lengths.items():
        base = address + ("&" if "?" in address else "?") + "page="
        deepest = length // PAGE
        pages = {"first": 1, "middle": deepest // 2, "deepest": deepest}
        runs = {name: partial(many.get, f"{base}{page}") for name, page in pages.items()}
        times = time_each(runs, rounds=5, seconds=0.1)
        for name in ("middle", "deepest"):
            ratio = times[name] / times["first"]
            yield Goal(
                f"GET {address.replace(many.ids['webhook'], ':id')}, {name} page of {deepest}",
                "reported",
                ratio,
                f"{milliseconds(times[name])} against {milliseconds(times['first'])}",
            )
