"""Deliveries are archived to files before retention deletes them."""

import gzip
import io
import json
import re
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from bookings.models import Booking
from notifications import tasks
from notifications.models import Attempt, Delivery, Plan
from notifications.outbox import archive, dispatcher
from notifications.outbox.archive import ArchiveBusy, ArchiveIncomplete, archive_outdated
from notifications.outbox.redeliver import redeliver
from tests.notifications.test_retention import age, cancelled_booking
from tests.services import ROOT
from tests.sinks import MailSink
from tests.world import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture(autouse=True)
def _ends_when_dry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "LINGER", 0)


@pytest.fixture
def outdated(tenant: Tenant, mails: MailSink) -> Booking:
    """A cancelled booking with four mails, finished 31 days ago."""
    booking = cancelled_booking(tenant)
    age(31)
    return booking


def run_archive(folder: Path) -> list[int]:
    return list(archive_outdated(timezone.now() - timedelta(days=30), folder))


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of all complete files, in their order."""
    files = sorted(folder.glob("*.jsonl.gz"))
    return [json.loads(line) for path in files for line in gzip.open(path).read().splitlines()]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def file_name(number: int, suffix: str = "") -> str:
    return f"deliveries-{timezone.now():%Y-%m-%d}-{number:04}.jsonl.gz{suffix}"


def left() -> tuple[int, int, set[tuple[int, int]]]:
    """The numbers of deliveries and attempts, and what the plans count."""
    plans = set(Plan.objects.values_list("planned", "purged"))
    return Delivery.objects.count(), Attempt.objects.count(), plans


# --- Archived -------------------------------------------------------------------------------------
def test_a_line_per_delivery_without_contents(outdated: Booking, tmp_path: Path) -> None:
    mail = Delivery.objects.select_related("change").filter(kind="confirmed").earliest("id")
    Delivery.objects.filter(id=mail.id).update(reason="550 <marty@example.com> unknown")
    attempt = mail.attempts.get()
    mail.refresh_from_db()

    assert run_archive(tmp_path) == [4]

    lines = lines_of(tmp_path)
    assert [line["id"] for line in lines] == sorted(line["id"] for line in lines)
    assert names_in(tmp_path) == [file_name(1)]
    assert left() == (0, 0, {(2, 2)})
    assert next(line for line in lines if line["id"] == str(mail.id)) == {
        "id": str(mail.id),
        "app_id": str(mail.app_id),
        "booking_id": str(outdated.id),
        "number": mail.number,
        "webhook_id": None,
        "customer_id": str(mail.customer_id) if mail.customer_id else None,
        "type": "email",
        "kind": "confirmed",
        "recipient": mail.recipient,
        "version": 0,
        "endpoint": "",
        "state": "delivered",
        "reason": "550 <[address]> unknown",
        "tries": 1,
        "lapses": 0,
        "due_at": mail.due_at.isoformat(),
        "expires_at": mail.expires_at.isoformat(),
        "created_at": mail.created_at.isoformat(),
        "updated_at": mail.updated_at.isoformat(),
        "finished_at": mail.finished_at.isoformat() if mail.finished_at else None,
        "request_id": mail.request_id,
        "change_uuid": str(mail.change_id),
        "attempts": [
            {
                "at": attempt.at.isoformat(),
                "response_code": attempt.response_code,
                "seconds": attempt.seconds,
                "error": "",
                "outcome": "ok",
            }
        ],
    }


def test_no_address_of_a_person_is_archived(outdated: Booking, tmp_path: Path) -> None:
    run_archive(tmp_path)

    assert "@" not in json.dumps(lines_of(tmp_path))


def test_what_is_not_outdated_stays(outdated: Booking, tmp_path: Path) -> None:
    age(29)

    assert run_archive(tmp_path) == []
    assert names_in(tmp_path) == []
    assert Delivery.objects.count() == 4


def test_many_make_several_files(
    outdated: Booking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = sorted(str(key) for key in Delivery.objects.values_list("id", flat=True))
    monkeypatch.setattr(archive, "MAX_LINES", 3)

    assert run_archive(tmp_path) == [3, 1]
    assert names_in(tmp_path) == [file_name(1), file_name(2)]
    assert [line["id"] for line in lines_of(tmp_path)] == ids


# --- Interrupted ----------------------------------------------------------------------------------
class Killed(BaseException):
    """Ends a run between two lines, as kill -9 would."""


def kill(*args: Any, **options: Any) -> Any:
    raise Killed


def test_killed_while_writing_nothing_is_deleted(
    outdated: Booking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(archive, "without_addresses", kill)
        with pytest.raises(Killed):
            run_archive(tmp_path)
    interrupted = names_in(tmp_path), Delivery.objects.count()

    again = run_archive(tmp_path)

    assert interrupted == ([file_name(1, ".part")], 4)
    assert (again, names_in(tmp_path), len(lines_of(tmp_path))) == ([4], [file_name(1)], 4)


def test_killed_before_deleting_the_next_run_goes_on(
    outdated: Booking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(archive, "delete_archived", kill)
        with pytest.raises(Killed):
            run_archive(tmp_path)
    interrupted = names_in(tmp_path), lines_of(tmp_path), Delivery.objects.count()

    again = run_archive(tmp_path)

    assert interrupted == ([file_name(1, ".verified")], [], 4)
    assert (again, names_in(tmp_path), len(lines_of(tmp_path))) == ([4], [file_name(1)], 4)
    assert left() == (0, 0, {(2, 2)})


def test_killed_between_batches_every_delivery_is_archived_once(
    outdated: Booking, tmp_path: Path
) -> None:
    run = archive_outdated(timezone.now() - timedelta(days=30), tmp_path, batch=3)
    first = next(run)
    run.close()

    again = run_archive(tmp_path)

    assert (first, again) == (3, [1])
    assert len({line["id"] for line in lines_of(tmp_path)}) == len(lines_of(tmp_path)) == 4


def test_a_file_that_lacks_a_line_deletes_nothing(
    outdated: Booking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_read_lines", lambda path: iter([b"{}"] * 3))

    with pytest.raises(ArchiveIncomplete, match="3 of 4 lines"):
        run_archive(tmp_path)

    assert (names_in(tmp_path), Delivery.objects.count()) == ([file_name(1, ".part")], 4)


def test_a_delivery_that_is_sent_again_meanwhile_stays(
    outdated: Booking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = archive.delete_archived
    row = Delivery.objects.filter(kind="cancelled").earliest("id")

    def delete_late(*args: Any) -> int:
        redeliver(row, now=timezone.now())
        return delete(*args)

    monkeypatch.setattr(archive, "delete_archived", delete_late)

    assert run_archive(tmp_path) == [3]
    assert [found.id for found in Delivery.objects.all()] == [row.id]


def test_one_run_at_a_time(outdated: Booking, tmp_path: Path) -> None:
    run = archive_outdated(timezone.now() - timedelta(days=30), tmp_path, batch=3)
    next(run)

    with pytest.raises(ArchiveBusy):
        run_archive(tmp_path)

    assert [*run] == [1]


# --- Command, task, restore -----------------------------------------------------------------------
def test_the_command(outdated: Booking, tmp_path: Path) -> None:
    out = io.StringIO()

    call_command("archive", to=str(tmp_path / "new"), stdout=out)

    assert out.getvalue().splitlines()[-1] == "4 deliveries archived."
    assert len(lines_of(tmp_path / "new")) == 4


@pytest.mark.parametrize("command", ["archive", "purge_deliveries"])
def test_commands_tell_why_nothing_is_archived(
    db: None, tmp_path: Path, settings: Any, command: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    settings.DELIVERY_ARCHIVE_DIR = str(file)
    options = {"to": str(file)} if command == "archive" else {}

    with pytest.raises(CommandError, match="File exists"):
        call_command(command, **options)


def test_the_command_needs_a_folder(db: None) -> None:
    with pytest.raises(CommandError, match="Name a folder"):
        call_command("archive")


@pytest.mark.parametrize(
    "purge", [tasks.purge_deliveries, lambda: call_command("purge_deliveries")]
)
def test_retention_archives_if_there_is_a_folder(
    outdated: Booking, tmp_path: Path, settings: Any, purge: Any
) -> None:
    settings.DELIVERY_ARCHIVE_DIR = str(tmp_path)

    purge()

    assert (len(lines_of(tmp_path)), Delivery.objects.count()) == (4, 0)


@pytest.mark.postgresql
def test_an_archived_day_is_restored_as_documented(outdated: Booking, tmp_path: Path) -> None:
    rows = set(Delivery.objects.values_list("id", "kind", "recipient", "finished_at"))
    run_archive(tmp_path)
    text = (ROOT / "docs/operations.md").read_text().partition("### Restoring an archive\n")[2]
    script = re.search(r"```sql\n(.*?)```", text, re.DOTALL)
    assert script
    script_text = script[1].replace("/archive/deliveries-2026-11-23-*", f"{tmp_path}/*")
    database = connection.get_connection_params()

    done = subprocess.run(
        [
            *("psql", "-v", "ON_ERROR_STOP=1", "-h", database["host"]),
            *("-p", str(database["port"]), "-U", database["user"], database["dbname"]),
        ],
        input=script_text,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, kind, recipient, finished_at FROM archived_delivery")
        restored = set(cursor.fetchall())
        cursor.execute("DROP TABLE archived_delivery")
    assert restored == rows
