"""Random operations on bookings by several processes at once: `run_operations(job, service)`.

Most go through the views in processes that have the database to themselves, for the number of them;
the others over HTTP. A program of its own, because it forks: it reads the job from stdin.
"""

import json
import multiprocessing
import random
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from http.client import HTTPException
from typing import Any, NamedTuple

from apps_config.models import App
from bookings.models import Booking
from bookings.services import complete_ended
from tests.bookings.race_clients import Request, call
from tests.bookings.race_tenant import CUSTOMER, DAY, run_program
from tests.services import Service
from tests.world import Caller

DAYS = 2
REPEATS = 5
FRESH_AFTER = 10  # operations, then a process looks again which bookings there are
ACTIONS = ["confirm"] * 5 + ["cancel"] * 4 + ["decline", "complete"] * 2 + ["cancel_by_customer"]
CUSTOMERS = [CUSTOMER, *({"name": name, "email": f"{name}@example.com"} for name in ("ann", "bob"))]
START = "import django; django.setup(); from tests.bookings.random_operations import main; main()"


class Reply(NamedTuple):
    """`outcome`: `ok`, the code of the refusal, or `cut` without an answer."""

    outcome: str
    data: Any = None


# (method, path, body) -> what came of it.
Transport = Callable[[str, str, Any], Reply]


class Job(NamedTuple):
    """Ids in text. `projects`: (id, whether a resource is named beside it)."""

    slug: str
    key: str
    url: str
    headers: dict[str, str]
    resources: list[str]
    calendars: list[str]
    projects: list[tuple[str, bool]]
    shares: list[int]  # operations of each process
    over_http: int  # so many of the processes, the first ones
    seed: int


def run_operations(job: Job, service: Service) -> Counter[str]:
    """How often each outcome came: `book ok`, `move slot_taken`."""
    # `open_local_transport` has the host of Django's test client.
    hosts = {"ALLOWED_HOSTS": "testserver"}
    env = {**service.env, "DJANGO_SETTINGS_MODULE": "scheduling.settings", **hosts}
    return Counter(run_program(["-c", START], job, seconds=4 * 3600, env=env))


def open_http_transport(job: Job) -> Transport:
    def ask(method: str, path: str, body: Any) -> Reply:
        try:
            answer = call(job.url, Request(method, path, body, job.headers))
        except (OSError, HTTPException):
            return Reply("cut")
        return read_answer(answer.status, answer.json)

    return ask


def open_local_transport(job: Job) -> Transport:
    """The whole stack in this process. What is no answer but a bug ends the run."""
    caller = Caller(job.key)

    def ask(method: str, path: str, body: Any) -> Reply:
        answer = caller.call(method, path, body)
        return read_answer(answer.status, answer.json if answer.status != 204 else None)

    return ask


def repeated(ask: Transport) -> Transport:
    """Ask again after 503, as clients do: on a busy machine a lock may take longer than the service
    waits for it. Nothing was changed.
    """

    def ask_again(method: str, path: str, body: Any) -> Reply:
        for _ in range(REPEATS):
            reply = ask(method, path, body)
            if reply.outcome != "unavailable":
                break
        return reply

    return ask_again


def read_answer(status: int, content: Any) -> Reply:
    if status >= 400:
        return Reply(content["code"])
    return Reply("ok", (content or {}).get("data"))


class Client:
    """One process: draws an operation, does it, counts what came of it."""

    def __init__(self, job: Job, number: int) -> None:
        self.job = job
        self.number = number
        self.random = random.Random(f"{job.seed} {number}")
        self.ask = repeated(
            open_http_transport(job) if number < job.over_http else open_local_transport(job)
        )
        self.app = App.objects.get(slug=job.slug)
        self.open: list[uuid.UUID] = []
        self.completed: list[uuid.UUID] = []
        self.groups: list[uuid.UUID] = []
        self.holds: list[dict[str, Any]] = []  # what books them

    @property
    def kinds(self) -> dict[Callable[[], str], int]:
        """Every kind of operation, with its weight."""
        return {
            **{self.book: 330, self.act: 300, self.move: 160, self.edit: 30},
            **{self.hold: 50, self.use_hold: 40, self.book_in_bulk: 30, self.act_in_bulk: 20},
            **{self.open_group: 15, self.take_seat: 40, self.book_series: 15, self.block: 15},
            **{
                self.hide: 25,
                self.resize: 12,
                self.close_hours: 6,
                self.create_and_delete_resource: 15,
            },
            **{self.erase: 3, self.sweep: 2},
        }

    def work(self) -> Counter[str]:
        outcomes: Counter[str] = Counter()
        for number in range(self.job.shares[self.number]):
            if number % FRESH_AFTER == 0:
                self.look()
            (do,) = self.random.choices(list(self.kinds), list(self.kinds.values()))
            outcomes[f"{do.__name__} {do()}"] += 1
        return outcomes

    def look(self) -> None:
        """Any of the bookings, so that the processes meet at them."""
        ids = Booking.objects.for_app(self.app).values_list("id", flat=True)
        self.open = list(ids.filter(completed=False).order_by("?")[:100])
        self.completed = list(ids.filter(completed=True).order_by("-created_at")[:50])
        self.groups = list(ids.filter(graph="group_owner", completed=False)[:20])

    def book(self) -> str:
        return self.ask("POST", "/bookings", self.booking()).outcome

    def booking(self) -> dict[str, Any]:
        body = {"what": "Random", **self.span(), **self.place()}
        body["customer"] = self.random.choice(CUSTOMERS)
        body["graph"] = self.random.choice(["instant", "instant", "confirm_decline"])
        if body["graph"] == "instant" and self.random.random() < 0.05:
            body["action"] = "create"  # a draft
        body["settings"] = {"allow_double_bookings": self.random.random() < 0.15}
        return body

    def book_in_bulk(self) -> str:
        bookings = [self.booking() for _ in range(self.random.randint(2, 4))]
        body = {"bookings": bookings, "delete_all_on_error": self.random.random() < 0.5}
        return self.ask("POST", "/bookings/bulk", body).outcome

    def book_series(self) -> str:
        body = {**self.booking(), "recurrence": "FREQ=DAILY;COUNT=2"}
        return self.ask("POST", "/bookings", body | {"on_conflict": "skip"}).outcome

    def open_group(self) -> str:
        body = {"what": "Class", "graph": "group_owner", **self.span()}
        body |= {"resource_id": self.random.choice(self.job.resources)}
        return self.ask("POST", "/bookings", body | {"settings": {"max_seats": 2}}).outcome

    def take_seat(self) -> str:
        if not self.groups:
            return "nothing"
        body = {"graph": "group_customer", "customer": self.random.choice(CUSTOMERS)}
        group = str(self.random.choice(self.groups))
        return self.ask(
            "POST", "/bookings", body | {"related": {"owner_booking_id": group}}
        ).outcome

    def hold(self) -> str:
        body = {**self.span(), **self.place()}
        held = self.ask("POST", "/bookings/reserve", {**body, "reservation_time": 120})
        if held.outcome == "ok":
            self.holds.append({**body, "reservation_id": held.data["reservation_id"]})
        return held.outcome

    def use_hold(self) -> str:
        """Most are booked; others are prolonged or given back."""
        if not self.holds:
            return "nothing"
        held = self.holds.pop(self.random.randrange(len(self.holds)))
        hold, chance = {"reservation_id": held["reservation_id"]}, self.random.random()
        if chance < 0.7:
            body = {"what": "Held", "customer": self.random.choice(CUSTOMERS), **held}
            return self.ask("POST", "/bookings", body).outcome
        if chance < 0.85:
            self.holds.append(held)
            return self.ask("PUT", "/bookings/reserve/extend", hold).outcome
        return self.ask("DELETE", f"/bookings/reserve/{held['reservation_id']}", None).outcome

    def act(self) -> str:
        if not self.open:
            return "nothing"
        booking, action = self.random.choice(self.open), self.random.choice(ACTIONS)
        return self.ask("PUT", f"/bookings/{booking}/{action}", {}).outcome

    def act_in_bulk(self) -> str:
        if not self.open:
            return "nothing"
        action = self.random.choice(ACTIONS)
        changes = [{"id": str(self.random.choice(self.open)), "action": action} for _ in range(3)]
        body = {"bookings": changes, "delete_all_on_error": self.random.random() < 0.5}
        return self.ask("PUT", "/bookings/bulk", body).outcome

    def move(self) -> str:
        if not self.open:
            return "nothing"
        body = self.span()
        if self.random.random() < 0.2:
            body["resource_id"] = self.random.choice(self.job.resources)
        elif self.random.random() < 0.1:
            body["scope"] = "all"
        return self.ask(
            "POST", f"/bookings/{self.random.choice(self.open)}/reschedule", body
        ).outcome

    def edit(self) -> str:
        """A seat has no texts of its own: 422."""
        if not self.open:
            return "nothing"
        body = {"meta": {"note": self.random.random()}}
        if self.random.random() < 0.5:
            body |= {"what": "Renamed", "customer": self.random.choice(CUSTOMERS)}
        return self.ask("PUT", f"/bookings/{self.random.choice(self.open)}", body).outcome

    def block(self) -> str:
        """An event that is no booking; half of them go again."""
        body = {"calendar_id": self.random.choice(self.job.calendars), "what": "Away"}
        made = self.ask("POST", "/events", {**body, **self.span()})
        if made.outcome == "ok" and self.random.random() < 0.5:
            return self.ask("DELETE", f"/events/{made.data['id']}", None).outcome
        return made.outcome

    def close_hours(self) -> str:
        path = f"/resources/{self.random.choice(self.job.resources)}"
        hours = {"start": self.random.randrange(6), "end": 6}
        body = {"availability_constraints": [{"block_hours": hours}]}
        return self.ask("PUT", path, body).outcome

    def create_and_delete_resource(self) -> str:
        """A resource that is made, booked, and deleted once it is free."""
        made = self.ask("POST", "/resources", {"name": "Guest", "timezone": "UTC"})
        if made.outcome != "ok":
            return made.outcome
        body = {**self.booking(), "resource_id": made.data["id"]}
        body.pop("project_id", None)
        booked = self.ask("POST", "/bookings?include=attributes", body)
        if booked.outcome == "ok" and self.random.random() < 0.5:
            self.ask("PUT", f"/bookings/{booked.data['id']}/cancel", {})
        return self.ask("DELETE", f"/resources/{made.data['id']}", None).outcome

    def erase(self) -> str:
        email = self.random.choice(CUSTOMERS)["email"]
        return self.ask("POST", "/customers/erase", {"email": email}).outcome

    def hide(self) -> str:
        if not self.completed:
            return "nothing"
        return self.ask("DELETE", f"/bookings/{self.random.choice(self.completed)}", None).outcome

    def resize(self) -> str:
        """Change how many bookings of a resource may overlap."""
        path = f"/resources/{self.random.choice(self.job.resources)}"
        return self.ask("PUT", path, {"capacity": self.random.choice([1, 2, 3, 5])}).outcome

    def sweep(self) -> str:
        """The timer, in some hour of the first morning that is booked."""
        complete_ended(now=DAY + timedelta(hours=self.random.uniform(0, 12)))
        return "ok"

    def span(self) -> dict[str, str]:
        start = DAY + timedelta(minutes=30 * self.random.randrange(48 * DAYS))
        length = timedelta(minutes=self.random.choice([30, 60, 60, 60, 90, 180]))
        return {"start": start.isoformat(), "end": (start + length).isoformat()}

    def place(self) -> dict[str, str]:
        resource = {"resource_id": self.random.choice(self.job.resources)}
        if self.random.random() < 0.6:
            return resource
        project, is_with_resource = self.random.choice(self.job.projects)
        return {"project_id": project, **(resource if is_with_resource else {})}


def work(values: list[Any], number: int) -> Counter[str]:
    return Client(Job(*values), number).work()


def main() -> None:
    job = Job(*json.load(sys.stdin))
    # No connection to the database is open yet, so that none is shared.
    with multiprocessing.get_context("fork").Pool(len(job.shares)) as pool:
        numbers = range(len(job.shares))
        counts = pool.starmap(work, [(job, number) for number in numbers], chunksize=1)
    json.dump(sum(counts, Counter()), sys.stdout)
