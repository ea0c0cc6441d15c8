"""Imports as tests make them: the command, its report, and a server that stands for a source."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from scheduling_client import Client
from scheduling_client.cli import main

from tests.live import LiveApp
from tests.sinks import Answer, HookSink

Row = dict[str, str]


def import_rows(
    app: LiveApp, folder: Path, *arguments: str, report: Path | None = None
) -> tuple[int, list[Row]]:
    """Run `import` and return its exit code and its report, without what is empty, and ids."""
    report = report or folder / "report.json"
    connection = ["--url", app.url, "--key", str(app.key)]
    code = main([*connection, "import", *arguments, "--report", str(report)])
    rows = json.loads(report.read_text()) if report.suffix == ".json" else []
    return code, [{key: row[key] for key in row if row[key] and key != "id"} for row in rows]


def row(kind: str, external_id: str, outcome: str, name: str = "", **more: str) -> Row:
    named = {"name": name} if name else {}
    return {"kind": kind, "external_id": external_id, "outcome": outcome, **named, **more}


class FakeSource(HookSink):
    """Answers the JSON that a test has written for each path and query."""

    def says(self, path: str, answer: Any, **query: str | int) -> None:
        text = f"?{urlencode(query)}" if query else ""
        self.answers[f"{path}{text}"] = Answer(
            headers={"Content-Type": "application/json"}, body=json.dumps(answer).encode()
        )


def imported(app: LiveApp) -> dict[str, list[dict[str, Any]]]:
    """What the app has, in the parts that imports write, by their external ids."""
    with Client(app.url, app.key) as client:
        resources = list(client.resources.list(include=["availability_constraints", "calendars"]))
        names = {each.id: each.external_id or each.name for each in resources}
        return {
            "resources": sorted(
                (
                    {
                        "external_id": each.external_id,
                        "name": each.name,
                        "timezone": each.timezone,
                        "email": each.email,
                        "tags": each.tags,
                        "capacity": each.capacity,
                        "rules": each.availability_constraints,
                    }
                    for each in resources
                    if each.external_id
                ),
                key=lambda each: each["external_id"],
            ),
            "projects": sorted(
                (
                    {
                        "external_id": each.external_id,
                        "name": each.name,
                        "resources": [names[str(id)] for id in each.resources],
                        "availability": each.availability.to_dict(),
                        "rules": each.availability_constraints,
                        "booking": each.booking.to_dict(),
                        "published": each.settings.published,
                    }
                    for each in client.projects.list()
                ),
                key=lambda each: each["external_id"],
            ),
            "bookings": sorted(
                (
                    booking_record(each.to_dict(), names)
                    for each in client.bookings.list(
                        include=["meta", "event", "resource", "project", "customers", "note"]
                    )
                ),
                key=lambda each: each["external_id"],
            ),
        }


def booking_record(booking: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    event, project = booking["event"], booking["project"]
    return {
        "external_id": booking["external_id"],
        "resource": names[booking["resource"]["id"]],
        "project": project["name"] if project else None,
        "state": booking["state"],
        **{name: event[name] for name in ("start", "end", "what", "where", "description")},
        "note": booking["note"],
        "customers": [
            {name: each[name] for name in ("name", "email", "phone", "timezone")}
            for each in booking["customers"]
        ],
    }


def mails(app: LiveApp) -> list[dict[str, Any]]:
    """The app's e-mails about bookings, sent and planned."""
    deliveries = app.get("/v2/deliveries?limit=100").data
    return [each for each in deliveries if each["type"] == "email" and each["booking_id"]]
