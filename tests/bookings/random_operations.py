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
from typing import Any, NamedTuple

from apps_config.models import App
from bookings.models import Booking
from bookings.services import complete_ended
from tests.bookings.race_clients import Request, call
from tests.bookings.race_tenant import CUSTOMER, DAY, run_program
from tests.services import Service
from tests.world import Caller

DAYS = 2
FRESH_AFTER = 25  # operations, then a process looks again which bookings there are
ACTIONS = ["confirm"] * 5 + ["cancel"] * 4 + ["decline", "complete"] * 2 + ["cancel_by_customer"]
START = "import django; django.setup(); from tests.bookings.random_operations import main; main()"
# (method, path, body) -> `ok`, or the code of the refusal.
Door = Callable[[str, str, Any], str]


class Job(NamedTuple):
    """Ids in text. `projects`: (id, whether a resource is named beside it)."""

    slug: str
    key: str
    url: str
    headers: dict[str, str]
    resources: list[str]
    projects: list[tuple[str, bool]]
    shares: list[int]  # operations of each process; the first one's go over HTTP
    seed: int


def run_operations(job: Job, service: Service) -> Counter[str]:
    """How often each outcome came: `book ok`, `move slot_taken`."""
    # `open_local_door` has the host of Django's test client.
    hosts = {"ALLOWED_HOSTS": "testserver"}
    env = {**service.env, "DJANGO_SETTINGS_MODULE": "scheduling.settings", **hosts}
    return Counter(run_program(["-c", START], job, seconds=3600, env=env))


def open_http_door(job: Job) -> Door:
    def ask(method: str, path: str, body: Any) -> str:
        answer = call(job.url, Request(method, path, body, job.headers))
        return "ok" if answer.status < 400 else answer.json["code"]

    return ask


def open_local_door(job: Job) -> Door:
    """The whole stack in this process. What is no answer but a bug ends the run."""
    caller = Caller(job.key)

    def ask(method: str, path: str, body: Any) -> str:
        answer = caller.call(method, path, body)
        return "ok" if answer.status < 400 else answer.json["code"]

    return ask


class Client:
    """One process: draws an operation, does it, counts what came of it."""

    def __init__(self, job: Job, number: int) -> None:
        self.job = job
        self.number = number
        self.random = random.Random(f"{job.seed} {number}")
        self.ask = open_local_door(job) if number else open_http_door(job)
        self.app = App.objects.get(slug=job.slug)
        self.open: list[uuid.UUID] = []
        self.completed: list[uuid.UUID] = []

    def work(self) -> Counter[str]:
        outcomes: Counter[str] = Counter()
        for number in range(self.job.shares[self.number]):
            if number % FRESH_AFTER == 0:
                self.look()
            (do,) = self.random.choices(
                [self.book, self.act, self.move, self.hide, self.resize, self.sweep],
                [400, 370, 190, 28, 10, 2],
            )
            outcomes[f"{do.__name__} {do()}"] += 1
        return outcomes

    def look(self) -> None:
        """Any of the bookings, so that the processes meet at them."""
        ids = Booking.objects.for_app(self.app).values_list("id", flat=True)
        self.open = list(ids.filter(completed=False).order_by("?")[:100])
        self.completed = list(ids.filter(completed=True).order_by("-created_at")[:50])

    def book(self) -> str:
        double = self.random.random() < 0.15
        body = {"what": "Random", "customer": CUSTOMER, **self.span(), **self.place()}
        body["graph"] = self.random.choice(["instant", "instant", "confirm_decline"])
        if body["graph"] == "instant" and self.random.random() < 0.05:
            body["action"] = "create"  # a draft
        body["settings"] = {"allow_double_bookings": double}
        return self.ask("POST", "/bookings", body)

    def act(self) -> str:
        if not self.open:
            return "nothing"
        booking, action = self.random.choice(self.open), self.random.choice(ACTIONS)
        return self.ask("PUT", f"/bookings/{booking}/{action}", {})

    def move(self) -> str:
        if not self.open:
            return "nothing"
        body = self.span()
        if self.random.random() < 0.2:
            body["resource_id"] = self.random.choice(self.job.resources)
        return self.ask("POST", f"/bookings/{self.random.choice(self.open)}/reschedule", body)

    def hide(self) -> str:
        if not self.completed:
            return "nothing"
        return self.ask("DELETE", f"/bookings/{self.random.choice(self.completed)}", None)

    def resize(self) -> str:
        """Change how many bookings of a resource may overlap."""
        path = f"/resources/{self.random.choice(self.job.resources)}"
        return self.ask("PUT", path, {"capacity": self.random.choice([1, 2, 3, 5])})

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
