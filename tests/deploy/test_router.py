"""Three cells behind the shipped router answer as one installation does."""

import json
import re
import signal
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.deploy.cells import (
    API_HOST,
    CELLS,
    HOMES,
    NOT_SPLIT,
    SMALL,
    Answer,
    Client,
    cell_settings,
    host_of,
    routing,
)
from tests.deploy.proxies import HAPROXY, running
from tests.live import CUSTOMER, KEYS, SIGNED_LINK, UNSUBSCRIBE_LINK
from tests.services import Service, free_port

ONE_HOST = "alone.example.com"  # as long as a cell's
OLD_PREFIX = "live_api_key_ff345678_"
# A key as releases before homes made it, for the app.
OLD_KEY = """
from apps_config.models import App, Credential
from apps_config.services import issue_key
key, text = issue_key("server", app=App.objects.get(slug="{slug}"))
Credential.objects.filter(pk=key.pk).update(prefix="{prefix}")
print("{prefix}" + text[-43:])
"""
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Of now, as texts and as seconds: bookings are in 2031.
NOW = re.compile(
    rf"\b{datetime.now(UTC).year}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\+\d\d:?\d\d|Z)?|\b1[78]\d{{8}}\b"
)
# What differs with each key, each form and each signature.
SECRETS = re.compile(
    r"(?<=_key_)[0-9a-f]{10}_[\w-]{43}|[0-9a-f]{10}_[\w-]{43}"
    r"|(?<=signature=)[\w:%.-]+|(?<=token=)[\w:%.-]+"
    r'|(?<=csrfmiddlewaretoken" value=")\w+|(?<=nonce-)[\w+/=-]+|(?<=nonce=")[\w+/=-]+'
)
VOLATILE = {"date", "etag", "set-cookie"}


class Side:
    """An installation, or several cells, with the same three apps: `call` and what it answered."""

    def __init__(self, port: int, services: list[Service], hosts: list[str]) -> None:
        self.client = Client(port)
        self.hosts = hosts
        self.answers: list[Any] = []
        self.ids: dict[str, str] = {}
        made = [
            json.loads(service.run(KEYS.format(slug=f"app-{number}", mode="live")).splitlines()[-1])
            for number, service in enumerate(services)
        ]
        self.keys = [keys[0] for keys in made]
        self.widget_keys = [keys[1] for keys in made]
        old = OLD_KEY.format(slug="app-0", prefix=OLD_PREFIX)
        self.old_key = services[0].run(old).splitlines()[-1]
        self.worlds = [self.make_world(number) for number in range(len(services))]
        self.links = [
            self.sign_links(services[number], world) for number, world in enumerate(self.worlds)
        ]

    def post(self, number: int, path: str, body: Any) -> Any:
        return self.client.call("POST", path, body, key=self.keys[number]).data

    def make_world(self, number: int) -> dict[str, Any]:
        resource = self.post(number, "/v2/resources", {"name": "Ada", "timezone": "UTC"})
        project = {"name": "Check-up", "slug": f"check-up-{number}", "resources": [resource["id"]]}
        group = {
            "resource_id": resource["id"],
            "what": "Course",
            "graph": "group_owner",
            "settings": {"max_seats": 5},
            "start": "2031-01-04 09:00:00",
            "end": "2031-01-04 10:00:00",
        }
        calendar = resource["calendars"][0]["id"]
        return {
            "resource": resource["id"],
            "calendar": calendar,
            "project": self.post(number, "/v2/projects", project)["id"],
            "group": self.post(number, "/v2/bookings", group)["id"],
            "bookings": [self.book(number, resource["id"], hour) for hour in range(9, 12)],
            "feed": self.post(number, f"/v2/calendars/{calendar}/feed", {})["url"],
        }

    def book(self, number: int, resource: str, hour: int) -> str:
        return self.post(number, "/v2/bookings", booking(resource, 2, hour))["id"]

    def sign_links(self, service: Service, world: dict[str, Any]) -> list[str]:
        """Links as they stand in e-mails and calendars."""
        first = world["bookings"][0]
        made = [
            service.run(link.format(booking_id=first)).splitlines()[-1]
            for link in (SIGNED_LINK, UNSUBSCRIBE_LINK)
        ]
        return [*made, world["feed"]]

    def ask(self, *args: Any, **given: Any) -> Answer:
        """Call, and note the answer without ids, times and secrets."""
        answer = self.client.call(*args, **given)
        headers = [pair for pair in answer.headers.items() if pair[0] not in VOLATILE]
        text = json.dumps([answer.status, headers, answer.content.decode()])
        for host in self.hosts:
            text = text.replace(host, "cell.example.com")
        text = NOW.sub("NOW", SECRETS.sub("SECRET", text))
        self.answers.append(UUID.sub(self.name_of_id, text))
        return answer

    def name_of_id(self, found: re.Match[str]) -> str:
        """Ids by the order in which they were first answered."""
        return self.ids.setdefault(found[0], f"id {len(self.ids)}")


def booking(resource: str, day: int, hour: int) -> dict[str, Any]:
    return {
        "resource_id": resource,
        "what": "Check-up",
        "customer": CUSTOMER,
        "start": f"2031-02-{day:02} {hour:02}:00:00",
        "end": f"2031-02-{day:02} {hour:02}:30:00",
    }


def play(side: Side, requests: int) -> None:
    """A day of the three apps: the same requests for each side."""
    random = Random(2026)
    while len(side.answers) < requests:
        number = random.randrange(len(side.worlds))
        world, key, host = side.worlds[number], side.keys[number], side.hosts[number]
        kind = random.choice(KINDS)
        if kind == "book":
            wanted = booking(world["resource"], random.randrange(1, 27), random.randrange(8, 18))
            answer = side.ask("POST", "/v2/bookings", wanted, key=key)
            if answer.status == 201:
                world["bookings"].append(answer.data["id"])
        elif kind == "cancel":
            path = f"/v2/bookings/{random.choice(world['bookings'])}/cancel_by_customer"
            side.ask("PUT", path, {}, key=key)
        elif kind == "get":
            side.ask("GET", f"/v2/bookings/{random.choice(world['bookings'])}", key=key)
        elif kind == "list":
            side.ask("GET", f"/v2/bookings?limit=5&page={random.randrange(1, 4)}", key=key)
        elif kind == "availability":
            wanted = {"project_id": world["project"], "from": "2031-02-01", "to": "2 days"}
            keys = (key, side.widget_keys[number])
            side.ask("POST", "/v2/availability", wanted, key=random.choice(keys))
        elif kind == "bearer":
            side.ask("GET", "/v2/app", headers={"Authorization": f"Bearer {key}"})
        elif kind == "other app":
            other = side.worlds[(number + 1) % 3]["bookings"][0]
            side.ask("GET", f"/v2/bookings/{other}", key=key)
        elif kind == "wrong key":
            side.ask("GET", "/v2/app", key=random.choice([key[:-1], *WRONG_KEYS]))
        elif kind == "old key":
            side.ask("GET", "/v2/app", key=side.old_key)
        elif kind == "no key":
            path = random.choice(["bookings", f"bookings/{world['bookings'][0]}", "nowhere"])
            side.ask("GET", f"/v2/{path}")
        elif kind == "public":
            side.ask("GET", random.choice(PUBLIC))
        elif kind == "malformed":
            side.ask("POST", "/v2/bookings", b'{"what":', key=key)
        elif kind == "preflight":
            headers = {"Origin": "https://a.example", "Access-Control-Request-Method": "GET"}
            side.ask("OPTIONS", "/v2/bookings", headers=headers)
        elif kind == "page":
            path = random.choice([f"/book/check-up-{number}", "/book/nowhere", "/"])
            side.ask("GET", path, host=host)
        else:
            link = urlsplit(random.choice(side.links[number]))
            # The shared host finds the home by the id.
            hosts = (host, API_HOST)
            side.ask("GET", f"{link.path}?{link.query}", host=random.choice(hosts))


WRONG_KEYS = ("", "banana", "live_api_key_01345678_x", "live_api_key_f0f0f0f0f0_" + "x" * 43)
PUBLIC = ("/v2", "/docs", "/healthz", "/v2/nowhere/x", "/metrics")
KINDS = (
    *("book", "cancel", "get", "list", "availability", "bearer", "other app", "wrong key"),
    *("old key", "no key", "public", "malformed", "preflight", "page", "link"),
)


def first_difference(one: str, other: str) -> tuple[str, str]:
    """What both texts have from a bit before the place where they begin to differ."""
    same = (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    begin = max(0, next(same, 0) - 60)
    return one[begin : begin + 120], other[begin : begin + 120]


@pytest.mark.parametrize("requests", [150, pytest.param(2000, marks=pytest.mark.deep)])
def test_three_cells_answer_as_one_installation(
    start_service: Callable[..., Service], tmp_path: Path, requests: int
) -> None:
    """Byte for byte, but ids, times and the cells' own hosts."""
    cells = [start_service(**SMALL, **cell_settings(home)) for home in HOMES]
    one = start_service(**SMALL, **cell_settings(0, ONE_HOST))
    ports = {home: cell.port for home, cell in zip(HOMES, cells, strict=True)}
    alone = tmp_path / "alone"
    alone.mkdir()
    with (
        routing(tmp_path / "router", ports, NOT_SPLIT) as router,
        running("haproxy", alone, one.port) as proxy,
    ):
        several = Side(router.port, cells, [host_of(home) for home in HOMES])
        with closing(several.client):
            play(several, requests)
        single = Side(proxy.port, [one] * 3, [ONE_HOST] * 3)
        with closing(single.client):
            play(single, requests)

    pairs = zip(several.answers, single.answers, strict=True)
    differing = [first_difference(*pair) for pair in pairs if pair[0] != pair[1]]
    statuses = {json.loads(answer)[0] for answer in single.answers}
    assert differing == []
    assert statuses >= {200, 201, 400, 401, 404, 409}
    for service in (*cells, one):
        service.stop()


# --- A cell that is down, or not the right one ----------------------------------------------------
def test_dead_cell_is_answered_for_and_the_others_do_not_notice(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    cells = [start_service(**SMALL, **cell_settings(home)) for home in (0, 1)]
    keys = [
        json.loads(cell.run(KEYS.format(slug="harbour", mode="live")).splitlines()[-1])[0]
        for cell in cells
    ]
    ports = {0: cells[0].port, 1: cells[1].port, 2: free_port()}
    with (
        routing(tmp_path / "router", ports, NOT_SPLIT) as router,
        closing(Client(router.port)) as client,
    ):
        before = [client.call("GET", "/v2/app", key=key).status for key in keys]
        cells[0].kill("web", signal.SIGTERM)
        dead = [client.call("GET", "/v2/app", key=keys[0]) for _ in range(3)]
        page = client.call("GET", "/admin/login/", host=host_of(0))
        alive = [client.call("GET", "/v2/app", key=keys[1]).status for _ in range(20)]
        any_cell = client.call("GET", "/v2").status
    for cell in cells:
        cell.stop()

    assert before == [200, 200]
    for answer in (*dead, page):
        body = answer.json
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert UUID.fullmatch(body.pop("request_id"))
        assert body == {"error": "The service is busy, try again.", "code": "unavailable"}
    assert (alive, any_cell) == ([200] * 20, 200)


def test_cell_refuses_what_is_for_another_home(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    """The router takes it for home 1; the client's own header reaches no cell."""
    cell = start_service(**SMALL, **cell_settings(0))
    ports = {0: cell.port, 1: cell.port, 2: free_port()}
    with (
        routing(tmp_path / "router", ports, NOT_SPLIT) as router,
        closing(Client(router.port)) as client,
    ):
        wrong = client.call("GET", "/healthz", host=host_of(1), headers={"Service-Home": "0"})
        right = client.call("GET", "/healthz", host=host_of(0), headers={"Service-Home": "1"})
    cell.stop()

    assert (wrong.status, wrong.json["code"]) == (421, "misdirected")
    assert right.status == 200


# --- The shipped file -----------------------------------------------------------------------------
def test_router_has_the_limits_of_the_proxy_of_one_installation() -> None:
    """Its global part, defaults and frontend, in the same order."""
    lines = iter(CELLS.splitlines())
    limits = HAPROXY[HAPROXY.index("global\n") : HAPROXY.index("\tdefault_backend")]

    missing = [line for line in limits.splitlines() if line and line not in lines]

    assert missing == []
