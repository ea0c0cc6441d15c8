"""`import csv`, and what all imports have in common."""

import csv
from hashlib import sha256
from pathlib import Path

import pytest

from tests.live import LiveApp, Rows
from tests.sdk.importing import Row, import_rows, imported, mails, row
from tests.services import Service

RESOURCES = """\
id,name,timezone,email,tags,capacity,hours
ada,Ada,Europe/Berlin,ada@example.com,dent; x-ray,,"Mon-Tue 9:00-12:00,13:00-17:00; Sat 10:00-14:00"
pool,Pool,Europe/Berlin,,,12,
bad,Bad,Middle/Earth,,,,
"""
SERVICES = """\
id,name,length,resources,buffer_after,where
check-up,Check-up,30,ada,10,Room 2
swim,Swim,60,pool,,
none,None,45,bad,,
"""
BOOKINGS = """\
id,resource,service,start,end,timezone,name,Mail,note
1,ada,check-up,2031-01-06 09:00,2031-01-06 09:30,Europe/Berlin,Marty McFly,marty@example.com,Pays
2,Pool,,2031-01-06T10:00:00Z,2031-01-06T11:00:00Z,,Jennifer,jennifer@example.com,
3,ada,check-up,2031-01-06 09:15,2031-01-06 09:45,Europe/Berlin,Biff,biff@example.com,
4,ada,check-up,2031-10-26 02:30,2031-10-26 03:30,Europe/Berlin,Biff,biff@example.com,
5,ada,check-up,2020-01-06 09:00,2020-01-06 09:30,Europe/Berlin,Biff,biff@example.com,
6,eve,check-up,2031-01-06 09:00,2031-01-06 09:30,Europe/Berlin,Biff,biff@example.com,
7,bad,check-up,2031-01-06 09:00,2031-01-06 09:30,Europe/Berlin,Biff,biff@example.com,
"""
EVENTS = """\
id,resource,start,end,timezone,what
1,ada,2031-01-07 09:00,2031-01-07 10:00,Europe/Berlin,Staff meeting
2,ada,2031-01-07 10:00,2031-01-07 09:00,Europe/Berlin,Turned around
"""
TERMS = {"buffer_before": "0 minutes", "from": "now", "round_to_nearest_hour": False}
BOOKED = {
    "external_id": "csv:1",
    "resource": "csv:ada",
    "project": "Check-up",
    "state": "confirmed",
    "start": "2031-01-06T08:00:00+00:00",
    "end": "2031-01-06T08:30:00+00:00",
    "what": "Check-up",
    "where": "Room 2",
    "description": "",
    "note": "Pays",
    "customers": [
        {"name": "Marty McFly", "email": "marty@example.com", "phone": "", "timezone": ""}
    ],
}


@pytest.fixture
def app(live_service: Service) -> LiveApp:
    return LiveApp(live_service)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    arguments = ["csv", "--map", "bookings.email=Mail"]
    for name, text in (
        ("resources", RESOURCES),
        ("services", SERVICES),
        ("bookings", BOOKINGS),
        ("events", EVENTS),
    ):
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        arguments += [f"--{name}", str(path)]
    return arguments


def result(outcome: str, taken: str) -> list[Row]:
    """The report. outcome: of good rows; taken: of the booking that overlaps another one."""
    clash = {"code": "slot_taken", "reason": "The time is taken."} if taken == "failed" else {}
    return [
        row("resource", "csv:ada", outcome, "Ada"),
        row("resource", "csv:pool", outcome, "Pool"),
        row(
            "resource",
            "csv:bad",
            "failed",
            reason="'Middle/Earth' is no time zone of the IANA database.",
        ),
        row("service", "csv:check-up", outcome, "Check-up"),
        row("service", "csv:swim", outcome, "Swim"),
        row("service", "csv:none", "skipped", "None", reason="The resource bad was not imported."),
        row("booking", "csv:1", outcome, "2031-01-06T08:00:00+00:00"),
        row("booking", "csv:2", "failed", reason="`what` is missing."),
        row("booking", "csv:3", taken, "2031-01-06T08:15:00+00:00", **clash),
        row(
            "booking",
            "csv:4",
            "failed",
            reason="2031-10-26 02:30 occurs twice in Europe/Berlin: the clocks change.",
        ),
        row(
            "booking",
            "csv:5",
            "skipped",
            "2020-01-06T08:00:00+00:00",
            reason="It is in the past: --past imports it.",
        ),
        row(
            "booking",
            "csv:6",
            "failed",
            "2031-01-06T08:00:00+00:00",
            reason="No resource has the id or name 'eve'.",
        ),
        row(
            "booking",
            "csv:7",
            "skipped",
            "2031-01-06T08:00:00+00:00",
            reason="The resource bad was not imported.",
        ),
        row("event", "csv:1", outcome, "2031-01-07T08:00:00+00:00"),
        row("event", "csv:2", "failed", reason="The end is not after the start."),
    ]


def test_files_are_imported_once(app: LiveApp, files: list[str], tmp_path: Path) -> None:
    first = import_rows(app, tmp_path, *files)
    rows = Rows(app.service).snapshot()
    second = import_rows(app, tmp_path, *files)

    assert first == (1, result("created", "failed"))
    assert second == (1, result("unchanged", "failed"))
    assert Rows(app.service).snapshot() == rows
    assert imported(app) == {
        "resources": [
            {
                "external_id": "csv:ada",
                "name": "Ada",
                "timezone": "Europe/Berlin",
                "email": "ada@example.com",
                "tags": ["dent", "x-ray"],
                "capacity": 1,
                "rules": [
                    {"allow_day_and_time": {"day": day, "start": start, "end": end}}
                    for day, start, end in (
                        ("Monday", 9, 12),
                        ("Monday", 13, 17),
                        ("Tuesday", 9, 12),
                        ("Tuesday", 13, 17),
                        ("Saturday", 10, 14),
                    )
                ],
            },
            {
                "external_id": "csv:pool",
                "name": "Pool",
                "timezone": "Europe/Berlin",
                "email": None,
                "tags": [],
                "capacity": 12,
                "rules": [],
            },
        ],
        "projects": [
            {
                "external_id": "csv:check-up",
                "name": "Check-up",
                "resources": ["csv:ada"],
                "availability": {**TERMS, "length": "30 minutes", "buffer_after": "10 minutes"},
                "rules": [],
                "booking": {"graph": "instant", "what": "Check-up", "where": "Room 2"},
                "published": False,
            },
            {
                "external_id": "csv:swim",
                "name": "Swim",
                "resources": ["csv:pool"],
                "availability": {**TERMS, "length": "60 minutes", "buffer_after": "0 minutes"},
                "rules": [],
                "booking": {"graph": "instant", "what": "Swim"},
                "published": False,
            },
        ],
        "bookings": [BOOKED],
    }


def test_dry_run_writes_nothing(app: LiveApp, files: list[str], tmp_path: Path) -> None:
    rows = Rows(app.service).snapshot()

    assert import_rows(app, tmp_path, *files, "--dry-run") == (
        1,
        result("would create", "would create"),
    )
    assert Rows(app.service).snapshot() == rows


def test_nobody_gets_an_email(app: LiveApp, files: list[str], tmp_path: Path) -> None:
    import_rows(app, tmp_path, *files)

    assert sorted((mail["recipient"], mail["state"], mail["reason"]) for mail in mails(app)) == [
        ("customer", "skipped", "E-mails are disabled for this booking."),
        ("owner", "skipped", "E-mails are disabled for this booking."),
    ]


def test_emails_are_sent_if_they_are_asked_for(
    app: LiveApp, files: list[str], tmp_path: Path
) -> None:
    import_rows(app, tmp_path, *files, "--send-mails")

    assert sorted((mail["recipient"], mail["kind"], mail["reason"]) for mail in mails(app)) == [
        ("customer", "confirmed", None),
        ("owner", "confirmed", None),
    ]


def test_changes_of_the_source_are_made(app: LiveApp, files: list[str], tmp_path: Path) -> None:
    import_rows(app, tmp_path, *files)
    for name, old, new in (
        ("resources", "ada,Ada,", "ada,Ada Berg,"),
        ("bookings", "09:00,2031-01-06 09:30", "14:00,2031-01-06 14:30"),
    ):
        path = tmp_path / f"{name}.csv"
        path.write_text(path.read_text().replace(old, new, 1))

    _, loud = import_rows(app, tmp_path, *files)
    app.owner().call("PUT", f"/v2/apps/{app.slug}", {"settings": {"disable_emails": True}})
    _, silent = import_rows(app, tmp_path, *files)

    moved = row("booking", "csv:1", "updated", "2031-01-06T13:00:00+00:00")
    assert loud[0] == row("resource", "csv:ada", "updated", "Ada Berg")
    assert loud[6] == moved | {
        "outcome": "skipped",
        "reason": "It has changed at the source. The service would send e-mails about it: repeat"
        " with --send-mails.",
    }
    assert (silent[0]["outcome"], silent[6]) == ("unchanged", moved)
    found = imported(app)
    times = {"start": "2031-01-06T13:00:00+00:00", "end": "2031-01-06T13:30:00+00:00"}
    assert found["resources"][0]["name"] == "Ada Berg"
    assert found["bookings"][0] == {**BOOKED, **times}


def test_what_people_change_here_stays(app: LiveApp, files: list[str], tmp_path: Path) -> None:
    import_rows(app, tmp_path, *files)
    (ada,) = app.get("/v2/resources?search=name:Ada").data
    app.call("PUT", f"/v2/resources/{ada['id']}", {"name": "Dr. Ada"})

    _, rows = import_rows(app, tmp_path, *files)

    assert rows == result("unchanged", "failed")
    assert imported(app)["resources"][0]["name"] == "Dr. Ada"


def test_any_id_of_the_source_is_found_again(app: LiveApp, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    long, broken = "x" * 200, "Ada\nBerg"
    ids = ["crm/42 %2F?*,-:ü", ".", long, broken]
    path.write_text("id,name,timezone\n" + "".join(f'"{id}",Ada,UTC\n' for id in ids))
    arguments = ["csv", "--resources", str(path)]

    first, second = import_rows(app, tmp_path, *arguments), import_rows(app, tmp_path, *arguments)

    digests = [sha256(id.encode()).hexdigest() for id in (long, broken)]
    stored = [f"csv:{id}" for id in (*ids[:2], *digests)]
    assert first == (0, [row("resource", id, "created", "Ada") for id in stored])
    assert second == (0, [row("resource", id, "unchanged", "Ada") for id in stored])
    found = app.get("/v2/resources").data
    assert sorted(each["external_id"] for each in found) == sorted(stored)


def test_object_with_the_external_id_is_updated(app: LiveApp, tmp_path: Path) -> None:
    """Another program has made it, with the same id."""
    path = tmp_path / "people.csv"
    path.write_text("id,name,timezone\nada,Ada,Europe/Berlin\n")
    body = {"name": "A.", "timezone": "UTC", "meta": {"room": "2"}}
    made = app.call("PUT", "/v2/resources/by-external-id/csv:ada", body).data

    code, rows = import_rows(app, tmp_path, "csv", "--resources", str(path))

    assert (code, rows) == (0, [row("resource", "csv:ada", "updated", "Ada")])
    (found,) = app.get("/v2/resources").data
    assert (found["id"], found["name"], found["timezone"]) == (made["id"], "Ada", "Europe/Berlin")
    assert found["meta"] == {"room": "2", "import_digest": found["meta"]["import_digest"]}


def test_deleted_booking_stays_deleted(app: LiveApp, files: list[str], tmp_path: Path) -> None:
    import_rows(app, tmp_path, *files)
    (booking,) = app.get("/v2/bookings").data
    assert app.call("PUT", f"/v2/bookings/{booking['id']}/cancel").code == "200"
    assert app.call("DELETE", f"/v2/bookings/{booking['id']}").code == "204"

    _, rows = import_rows(app, tmp_path, *files)

    assert rows[6] == row(
        "booking",
        "csv:1",
        "skipped",
        "2031-01-06T08:00:00+00:00",
        reason="It was imported within the last 24 hours, and deleted here.",
    )
    # Its time is free for the booking that overlapped it.
    assert [each["external_id"] for each in imported(app)["bookings"]] == ["csv:3"]


def test_past_bookings_are_imported_if_they_are_asked_for(
    app: LiveApp, files: list[str], tmp_path: Path
) -> None:
    _, rows = import_rows(app, tmp_path, *files, "--past")

    assert rows[10] == row("booking", "csv:5", "created", "2020-01-06T08:00:00+00:00")
    sent = {mail["state"] for mail in mails(app)}
    assert sent == {"skipped"}


def test_columns_and_delimiter_of_others(app: LiveApp, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Nr;Wer\n1;=Ada\n")
    report = tmp_path / "report.csv"
    columns = ["--map", "resources.id=Nr", "--map", "resources.name=Wer"]
    arguments = ["csv", "--resources", str(path), "--delimiter", ";", "--timezone", "Europe/Berlin"]

    code, rows = import_rows(app, tmp_path, *arguments, *columns, "--name", "hr")
    import_rows(app, tmp_path, *arguments, *columns, report=report)

    assert (code, rows) == (0, [row("resource", "hr:1", "created", "=Ada")])
    head, line = csv.reader(report.read_text().splitlines())
    assert head == ["kind", "external_id", "name", "outcome", "id", "code", "reason"]
    assert [*line[:4], *line[5:]] == ["resource", "csv:1", "'=Ada", "created", "", ""]


def test_report_is_csv_or_json(
    app: LiveApp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        import_rows(app, tmp_path, "csv", report=tmp_path / "report.txt")

    assert end.value.code == 1
    text = f"argument --report: {tmp_path / 'report.txt'} ends in none of .csv, .json"
    assert capsys.readouterr().err.endswith(f"{text}\n")


@pytest.mark.parametrize(
    ("text", "arguments", "reason"),
    [
        ("id,name\n", [], "{path} has no column timezone, but id, name."),
        ("id;name\n", [], "{path} has no column id, name, timezone, but id;name."),
        ("", [], "{path} has no column id, name, timezone."),
        (
            "id,name,timezone,colour\n",
            [],
            "{path}: unknown column colour. Known: id, name, timezone, email, tags, capacity,"
            " hours.",
        ),
        ("id,name\n", ["--timezone", "Mars"], "'Mars' is no time zone of the IANA database."),
        ('id,name,timezone\n"1', [], "{path} is no CSV: unexpected end of data."),
        (None, [], "{path}: No such file or directory."),
    ],
)
def test_unusable_file_is_refused(
    app: LiveApp,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    arguments: list[str],
    reason: str,
) -> None:
    path = tmp_path / "people.csv"
    if text is not None:
        path.write_text(text)

    code, rows = import_rows(app, tmp_path, "csv", "--resources", str(path), *arguments)

    assert (code, rows) == (2, [])
    assert capsys.readouterr().err == f"import: {reason.format(path=path)}\n"
