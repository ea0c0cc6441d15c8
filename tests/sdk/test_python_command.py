"""The command `scheduling` of sdk/python, with a live service."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from scheduling_client import Client
from scheduling_client.cli import main

from tests.live import LiveApp, Rows
from tests.services import ROOT, Service

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
RULES: Any = [{"allow_weekdays": {}}, {"allow_hours": {"start": 9, "end": 17}}]
LENGTHS: Any = {"lengths": ["30 minutes", "1 hour"], "timeslot_increments": "30 minutes"}
WEEK: Any = {"from_": "2031-01-06T00:00:00Z", "to": "2031-01-11T00:00:00Z"}


Clients = Callable[[LiveApp], Client]


class Command:
    """Runs `scheduling` for an app: its exit status, what it printed, and the errors."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, app: LiveApp, *words: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        try:
            status = main(["--url", app.url, "--key", str(app.key), *words])
        except SystemExit as end:  # of argparse
            status = int(end.code or 0)
        return (status, *self._capsys.readouterr())


@pytest.fixture
def scheduling(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="session")
def clients() -> Iterator[Clients]:
    """Opens a client of an app; all are closed at the end."""
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(Client(app.url, app.key))


@pytest.fixture(scope="session")
def app(live_service: Service, clients: Clients) -> LiveApp:
    """With two projects that have the same name.

    Once in a session, as its slugs are of the whole service, and a worker may take up this module
    again after another one.
    """
    app = LiveApp(live_service)
    client = clients(app)
    ada = client.resources.create(
        name="Ada", timezone="Europe/Berlin", availability_constraints=RULES
    )
    for slug in ("desk-check-up", "desk-second-check-up"):
        client.projects.create(
            name="Check-up", slug=slug, resources=[ada.id], booking={"what": "Check-up"}
        )
    client.projects.create(
        name="Massage",
        slug="desk-massage",
        resources=[ada.id],
        availability=LENGTHS,
        booking={"what": "Massage"},
    )
    return app


# --- Bookings -------------------------------------------------------------------------------------
CUSTOMER = ("--name", "Marty McFly", "--email", "marty@example.com")


def test_slots_are_listed(app: LiveApp, scheduling: Command) -> None:
    words = ("slots", "desk-massage", "--length", "1 hour", "--from", "2031-01-06T08:00:00Z")

    status, said, errors = scheduling(app, *words, "--to", "2031-01-06T09:30:00Z")

    assert (status, errors) == (0, "")
    assert said.splitlines() == [
        "2031-01-06T08:00:00+00:00\t2031-01-06T09:00:00+00:00\tAda",
        "2031-01-06T08:30:00+00:00\t2031-01-06T09:30:00+00:00\tAda",
    ]


def test_booking_on_the_clock_of_the_resource_is_made_and_listed(
    app: LiveApp, scheduling: Command
) -> None:
    now = datetime.now(ZoneInfo("Europe/Berlin"))
    day = now + timedelta(days=8 - now.weekday())  # the next Tuesday
    at = day.replace(hour=10, minute=0, second=0, microsecond=0)
    words = ("--start", f"{at:%Y-%m-%d %H:%M}", "--resource", "ada")
    start, hour = at.astimezone(UTC), timedelta(hours=1)

    made = scheduling(app, "book", "desk-check-up", *words, *CUSTOMER)
    _, listed, _ = scheduling(app, "bookings", "--email", "marty@example.com")
    _, as_json, _ = scheduling(app, "bookings", "--project", "desk-check-up", "--json")
    again = scheduling(app, "book", "desk-check-up", *words, *CUSTOMER)

    id_ = made[1].split("\t")[0]
    free = ", ".join((start + count * hour).isoformat() for count in (1, 2, 3))
    assert made == (0, f"{id_}\tconfirmed\t{start.isoformat()}\n", "")
    assert listed == f"{id_}\tconfirmed\t{start.isoformat()}\tCheck-up\tMarty McFly\n"
    assert json.loads(as_json)["id"] == id_
    assert again == (
        1,
        "",
        f"scheduling: {words[1]} is not free. The next free times: {free}.\n",
    )


def test_first_free_time_is_booked(app: LiveApp, scheduling: Command) -> None:
    words = ("book", "desk-massage", "--first", "--length", "30 minutes", "--json", *CUSTOMER)

    status, said, _ = scheduling(app, *words)

    assert (status, json.loads(said)["state"]) == (0, "confirmed")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("Check-up", "--first"),
            "Several projects are called 'Check-up': choose one of desk-second-check-up,"
            " desk-check-up.",
        ),
        (
            ("Haircut", "--first"),
            "No project is called 'Haircut'. There are: desk-check-up, desk-massage,"
            " desk-second-check-up.",
        ),
        (
            ("desk-massage", "--first"),
            "There are several lengths: give --length, one of 30 minutes, 1 hour.",
        ),
        (
            ("desk-check-up", "--first", "--resource", "Bob"),
            "No resource is called 'Bob'. There are: Ada.",
        ),
        (("desk-check-up", "--start", "soon"), "Invalid isoformat string: 'soon'"),
    ],
)
def test_unclear_booking_is_explained(
    app: LiveApp, scheduling: Command, words: tuple[str, ...], text: str
) -> None:
    assert scheduling(app, "book", *words, *CUSTOMER) == (1, "", f"scheduling: {text}\n")


def test_refusal_is_explained(app: LiveApp, scheduling: Command) -> None:
    status, _, errors = scheduling(app, "slots", "desk-massage", "--length", "soon")

    assert status == 1
    assert errors.startswith("scheduling: invalid:\n  length: ")


def test_reader_that_ends_early_gets_no_error(app: LiveApp) -> None:
    reader, writer = os.pipe()
    os.close(reader)  # as `head -1` does after its line
    words = [sys.executable, "-m", "scheduling_client.cli", "--url", app.url, "--key", str(app.key)]

    with os.fdopen(writer, "w") as file:
        done = subprocess.run(
            [*words, "slots", "desk-massage", "--length", "1 hour"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "sdk" / "python")},
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (1, "")


def test_service_that_does_not_answer_is_explained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling_client.client.time.sleep", lambda seconds: None)

    status = main(["--url", "http://127.0.0.1:1", "--key", "key", "slots", "check-up"])

    refused = "ConnectError('[Errno 111] Connection refused')"
    text = (
        f"GET /v2/projects: no answer ({refused}). Is the address right (SCHEDULING_URL or --url)?"
    )
    assert (status, *capsys.readouterr()) == (1, "", f"scheduling: {text}\n")


def test_command_needs_an_address_and_a_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SCHEDULING_KEY", raising=False)

    with pytest.raises(SystemExit) as end:
        main(["--url", "http://127.0.0.1", "bookings"])

    assert end.value.code == 1
    assert "set SCHEDULING_URL and SCHEDULING_KEY" in capsys.readouterr().err


# --- Changes --------------------------------------------------------------------------------------
def test_changes_are_shown_once_with_a_cursor_file(
    app: LiveApp, clients: Clients, scheduling: Command, tmp_path: Path
) -> None:
    words = ("changes", "--types", "schedule", "--cursor-file", str(tmp_path / "cursor"))
    client = clients(app)

    before = scheduling(app, *words)
    hours = client.schedules.create(name="Hours")
    first = scheduling(app, *words)
    client.schedules.delete(hours.id)
    second = scheduling(app, *words)
    third = scheduling(app, *words)

    shown = [re.sub(r"^\S+\t", "", said) for _, said, _ in (before, first, second, third)]
    assert shown == ["", f"schedule\tcreated\t{hours.id}\n", f"schedule\tdeleted\t{hours.id}\n", ""]


def test_follower_stores_the_cursor_of_what_it_has_shown(
    app: LiveApp,
    clients: Clients,
    scheduling: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = clients(app)
    file = tmp_path / "cursor"
    waits: list[float] = []

    def make_a_schedule_and_stop(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt
        client.schedules.create(name="Followed")

    monkeypatch.setattr("scheduling_client.client.time.sleep", make_a_schedule_and_stop)

    words = ("changes", "--follow", "--interval", "9", "--json", "--cursor-file", str(file))
    status, said, _ = scheduling(app, *words)

    assert (status, waits) == (130, [9, 9])
    assert json.loads(said)["object"]["name"] == "Followed"
    assert file.read_text().strip() == json.loads(said)["cursor"]


# --- An app as a file -----------------------------------------------------------------------------
@pytest.fixture(scope="session")
def demo(live_service: Service) -> LiveApp:
    """The demo, and one of everything else that a file has."""
    live_service.manage("seed_demo", "--quiet")
    seed = json.loads((live_service.folder / "demo.json").read_text())
    app = LiveApp(live_service)
    app.slug, app.key = "demo", seed["api_key"]
    return app


@pytest.fixture(scope="session")
def secrets(demo: LiveApp, clients: Clients) -> list[str]:
    client = clients(demo)
    hours = client.schedules.create(name="Hours", availability_constraints=RULES)
    room = client.resources.create(name="Room 1", timezone="Europe/Berlin", schedule_id=hours.id)
    (check_up,) = client.projects.list(search="slug:check-up*")
    doctors = check_up.resources or []
    client.projects.create(
        name="Fair",
        slug="desk-fair",
        resources=doctors,
        availability={"mode": "roundrobin_fair", "weights": {doctors[0]: 3}},
    )
    client.projects.create(
        name="Operation",
        slug="desk-operation",
        requires=[
            {"name": "doctor", "any_of": doctors},
            {"name": "room", "any_of": [room.id]},
        ],
    )
    webhook = client.webhooks.create(url="https://example.com/hook", kinds=["booking.confirmed"])
    client.templates.update("confirmed_customer", subject="You are booked")
    paid = client.request("GET", "/v2/projects", query={"include": "payment_key"}).data
    signing = client.app.get(include="signing_secret").signing_secret
    stored = Rows(demo.service).read("SELECT * FROM apps_config_credential")
    found = [webhook.secret, room.api_token, demo.key, signing]
    found += [project["payment_key"] for project in paid]
    found += [value for row in stored for value in row if isinstance(value, str)]
    return [secret for secret in found if secret and len(secret) > 12]


def slots_of(client: Client) -> dict[str, list[Any]]:
    return {
        project.slug: [
            (slot.start, slot.end)
            for slot in client.availability.search(project_id=project.id, **WEEK)
        ]
        for project in client.projects.list()
    }


def without_app(text: str) -> Any:
    """As the tests' own apps have more settings."""
    return {name: section for name, section in yaml.safe_load(text).items() if name != "app"}


def test_exported_app_is_applied_to_an_empty_service(
    start_service: Callable[[], Service],
    demo: LiveApp,
    secrets: list[str],
    clients: Clients,
    scheduling: Command,
    tmp_path: Path,
) -> None:
    empty, file = LiveApp(start_service()), tmp_path / "app.yaml"
    status, exported, errors = scheduling(demo, "app", "export")
    file.write_text(exported)

    same = scheduling(demo, "app", "plan", "--prune", str(file))
    planned = scheduling(empty, "app", "plan", str(file))
    applied = scheduling(empty, "app", "apply", str(file))
    again = [scheduling(empty, "app", verb, "--prune", str(file)) for verb in ("plan", "apply")]
    _, copied, _ = scheduling(empty, "app", "export")

    assert (status, errors) == (0, "")
    assert (same, again) == ((0, "", ""), [(0, "", "")] * 2)
    assert (planned[0], applied) == (2, (0, planned[1], ""))
    assert without_app(copied) == without_app(exported)
    slots = slots_of(clients(demo))
    assert slots_of(clients(empty)) == slots
    assert all(slots.values())
    # No id and no secret of the database is in the file.
    assert UUID.findall(exported) == []
    assert len(secrets) > 8
    assert [secret for secret in secrets if secret in exported] == []


def test_plan_shows_each_value_and_apply_deletes_only_with_prune(
    live_service: Service, clients: Clients, scheduling: Command, tmp_path: Path
) -> None:
    app, file = LiveApp(live_service), tmp_path / "app.yaml"
    client = clients(app)
    client.resources.create(name="Ada", timezone="UTC", meta={"floor": 1, "room": "2"})
    client.resources.create(name="Bob", timezone="UTC")
    client.schedules.create(name="Hours")
    file.write_text(FILE)

    plan = scheduling(app, "app", "plan", str(file))
    pruning = scheduling(app, "app", "plan", "--prune", str(file))
    scheduling(app, "app", "apply", str(file))
    kept = [resource.name for resource in client.resources.list(orderBy="name", sortedBy="asc")]
    pruned = scheduling(app, "app", "apply", "--prune", str(file))

    differences = DIFFERENCES.replace("SLUG", app.slug)
    assert plan == (2, differences, "")
    assert pruning == (2, f"{differences}- resource Bob\n", "")
    assert kept == ["Ada", "Bob", "Cleo"]
    assert pruned == (0, "- resource Bob\n", "")
    # What the file leaves out stays: a key of an object, and a whole section.
    (ada,) = client.resources.list(search="name:Ada")
    assert (ada.meta, ada.capacity) == ({"floor": 2, "room": "2"}, 3)
    assert [schedule.name for schedule in client.schedules.list()] == ["Hours"]


def test_plan_shows_the_entries_that_differ_in_a_long_list(
    live_service: Service, clients: Clients, scheduling: Command, tmp_path: Path
) -> None:
    app, file = LiveApp(live_service), tmp_path / "app.yaml"
    rules: Any = [*RULES, {"block_hours": {"start": 12, "end": 13}}]
    client = clients(app)
    client.resources.create(name="Ada", timezone="UTC", availability_constraints=rules)
    longer = [
        {"allow_weekends": {}},
        rules[1],
        {"block_hours": {"start": 12, "end": 14}},
        {"block_weekends": {}},
    ]
    record = {"name": "Ada", "availability_constraints": longer}
    file.write_text(yaml.safe_dump({"resources": [record]}))

    assert scheduling(app, "app", "plan", str(file)) == (
        2,
        "~ resource Ada\n"
        "    availability_constraints.0: {'allow_weekdays': {}} -> {'allow_weekends': {}}\n"
        "    availability_constraints.2.block_hours.end: 13 -> 14\n"
        "    availability_constraints.3: None -> {'block_weekends': {}}\n",
        "",
    )


def test_refusal_of_an_object_names_it(
    live_service: Service, clients: Clients, scheduling: Command, tmp_path: Path
) -> None:
    app, file = LiveApp(live_service), tmp_path / "app.yaml"
    clients(app).resources.create(name="Ada", timezone="UTC")
    file.write_text("resources: [{name: Ada, capacity: 2}, {name: Bob, timezone: Mars}]")

    status, said, errors = scheduling(app, "app", "apply", str(file))

    assert (status, said) == (1, "~ resource Ada\n    capacity: 1 -> 2\n")
    assert errors == (
        "scheduling: resource Bob: invalid:\n"
        "  timezone: Must be a time zone such as Europe/Berlin.\n"
    )


FILE = """
app: {settings: {default_timezone: Europe/Berlin}}
resources:
- {name: Ada, timezone: UTC, capacity: 3, meta: {floor: 2}}
- {name: Cleo, timezone: UTC, schedule_id: "@schedule/Hours", email: null}
projects:
- {slug: desk-talk, name: Talk, resources: ["@resource/Cleo", "@resource/Ada"]}
"""
DIFFERENCES = """\
~ app SLUG
    settings.default_timezone: None -> 'Europe/Berlin'
~ resource Ada
    capacity: 1 -> 3
    meta.floor: 1 -> 2
+ resource Cleo
+ project desk-talk
"""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("- 1", "The file has no sections."),
        ("rooms: []", "Unknown sections: rooms."),
        ("app: 1", "app has no fields."),
        ("templates: []", "templates has no fields."),
        ("resources: {}", "resources is no list."),
        ("resources: [1]", "resources.0 has no fields."),
        ("resources: [{timezone: UTC}]", "resources.0 has no name."),
        ("resources: [{name: Ada, api_token: x}]", "resources.0 has unknown fields: api_token."),
        (
            "resources: [{name: Ada}, {name: Ada}]",
            "The file has several resources with the name 'Ada': a file tells objects apart by"
            " their names.",
        ),
        (
            'projects: [{slug: desk-talk, resources: ["@resource/Nobody"]}]',
            "Neither the file nor the app has @resource/Nobody.",
        ),
    ],
)
def test_wrong_file_changes_nothing(
    app: LiveApp, scheduling: Command, tmp_path: Path, content: str, text: str
) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(content)

    assert scheduling(app, "app", "apply", str(file)) == (1, "", f"scheduling: {text}\n")


def test_file_that_is_no_yaml_is_explained(
    app: LiveApp, scheduling: Command, tmp_path: Path
) -> None:
    (tmp_path / "app.yaml").write_text("resources: [")

    status, _, errors = scheduling(app, "app", "plan", str(tmp_path / "app.yaml"))

    assert status == 1
    assert "app.yaml is no YAML: " in errors


def test_two_resources_of_one_name_have_no_file(
    live_service: Service, clients: Clients, scheduling: Command
) -> None:
    app = LiveApp(live_service)
    client = clients(app)
    for _ in range(2):
        client.resources.create(name="Ada", timezone="UTC")

    assert scheduling(app, "app", "export") == (
        1,
        "",
        "scheduling: The app has several resources with the name 'Ada': a file tells objects apart"
        " by their names.\n",
    )


def test_objects_with_external_ids_are_told_apart_by_them(
    start_service: Callable[[], Service],
    live_service: Service,
    clients: Clients,
    scheduling: Command,
    tmp_path: Path,
) -> None:
    app, empty, file = LiveApp(live_service), LiveApp(start_service()), tmp_path / "app.yaml"
    client = clients(app)
    ids = [
        client.resources.create(name="Ada", timezone="UTC", external_id=each).id
        for each in ("crm:1", "crm:2")
    ]
    client.projects.create(name="Check-up", resources=ids, external_id="crm:3")
    _, exported, _ = scheduling(app, "app", "export")
    file.write_text(exported)

    applied = scheduling(empty, "app", "apply", str(file))
    file.write_text(exported.replace("name: Ada", "name: Eve", 1))
    renamed = scheduling(empty, "app", "apply", str(file))

    assert (applied[0], applied[2]) == (0, "")
    assert renamed == (0, "~ resource crm:1\n    name: 'Ada' -> 'Eve'\n", "")
    assert {each.external_id: each.name for each in clients(empty).resources.list()} == {
        "crm:1": "Eve",
        "crm:2": "Ada",
    }
    (project,) = clients(empty).projects.list()
    assert (project.external_id, len(project.resources)) == ("crm:3", 2)
