"""Endpoints over HTTP, against a null endpoint (P4, P5, P8)."""

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from benchmarks.stage import Goal, HttpClient, Stage, milliseconds, own_postgres, time_each

WEEKS = {"to": "28 days", "length": "30 minutes", "timeslot_increments": "15 minutes"}
WEEKS |= {"buffer": "10 minutes", "output_timezone": "Europe/Berlin"}


def measure_availability(stage: Stage) -> list[Goal]:
    filled = stage.script("benchmarks.fill", "small")
    client = stage.client(filled["key"])
    one = {"resources": filled["resources"][:1], **WEEKS}
    hundred = {"resources": filled["resources"], **WEEKS}
    visit = {"steps": visit_steps(filled["resources"][:10]), **WEEKS, "to": "14 days"}
    visit.pop("length")
    thirds = [filled["resources"][number::3] for number in range(3)]
    required = {
        "requires": [{"name": str(n), "any_of": ids} for n, ids in enumerate(thirds)],
        **WEEKS,
    }
    answer = client.call("POST", "/availability", one)
    null = f"/null/{len(answer)}"
    times = time_each(
        {
            "null": lambda: client.call("POST", null, one),
            "one": lambda: client.call("POST", "/availability", one),
            "hundred": lambda: client.call("POST", "/availability", hundred),
            "visit": lambda: client.call("POST", "/availability", visit),
            "required": lambda: client.call("POST", "/availability", required),
        }
    )
    throughput, growth = times["null"] / times["one"], times["hundred"] / times["one"]
    slots = len(json.loads(answer)["data"])
    return [
        Goal(
            "P4 POST /availability, 1 resource, 28 days, 500 events",
            "at least 0.4 of null POST",
            throughput,
            f"{milliseconds(times['one'])} against {milliseconds(times['null'])}, {slots} slots",
            throughput >= 0.4,
        ),
        Goal(
            "P5 100 resources x 500 events",
            "at most 40x P4",
            growth,
            milliseconds(times["hundred"]),
            growth <= 40,
        ),
        Goal(
            "visit of four steps over ten people, two weeks",
            "at most 30x P4",
            times["visit"] / times["one"],
            milliseconds(times["visit"]),
            times["visit"] <= 30 * times["one"],
        ),
        Goal(
            "three requirements over 100 resources, 28 days",
            "at most 60x P4",
            times["required"] / times["one"],
            milliseconds(times["required"]),
            times["required"] <= 60 * times["one"],
        ),
        *measure_details(client, filled),
    ]


def visit_steps(people: list[str]) -> list[dict]:
    """Return four steps, each by any of the people, the last by the person of the first."""
    gap = {"max": "30 mins"}
    steps = [
        {"name": str(number), "length": "30 mins", "resources": people, "gap": gap}
        for number in range(4)
    ]
    return [*steps[:3], {**steps[3], "same_as": "0"}]


def measure_details(client: HttpClient, filled: dict) -> list[Goal]:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(days=400)
    body = {
        "resource_id": filled["resources"][0],
        "start": start.isoformat(),
        "end": (start + timedelta(hours=1)).isoformat(),
        "what": "Meeting",
        "customer": {"name": "Marty McFly", "email": "marty@example.com"},
        "event_notifications": [
            {
                "type": "email",
                "settings": {"recipient": "customer"},
                "when": {"type": "before", "unit": "mins", "time": 60},
            }
        ],
    }
    made = json.loads(client.call("POST", "/bookings", body, status=201))["data"]
    whole = f"/bookings/{made['id']}?include=" + quote("logs,user", safe=",")
    null = f"/null/{len(client.call('GET', whole))}"
    times = time_each(
        {
            "null": lambda: client.call("GET", null),
            "whole": lambda: client.call("GET", whole),
        }
    )
    ratio = times["whole"] / times["null"]
    return [
        Goal(
            "P8 GET /bookings/:id with everything",
            "at most 3x null GET",
            ratio,
            f"{milliseconds(times['whole'])} against {milliseconds(times['null'])}",
            ratio <= 3,
        )
    ]


def measure() -> list[Goal]:
    with own_postgres() as url, tempfile.TemporaryDirectory() as folder:
        stage = Stage(url, Path(folder))
        try:
            stage.start()
            return measure_availability(stage)
        finally:
            stage.stop()
