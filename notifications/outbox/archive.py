"""Archive: outdated deliveries as JSON lines (gzip), written before retention deletes them.

A file changes its name as it progresses, so a killed run leaves nothing that looks complete:

  *.jsonl.gz.part       being written; the next run removes it
  *.jsonl.gz.verified   read back and counted; the next run goes on deleting its deliveries
  *.jsonl.gz            its deliveries are deleted

Lines have no contents and no e-mail addresses, so that erasures of people need not reach them.
"""

import contextlib
import fcntl
import gzip
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models import F, Q

from common.sql import database_now
from notifications.mail.envelope import without_addresses
from notifications.models import Attempt
from notifications.outbox import retention
from notifications.outbox.retention import delete_archived, delete_outdated, outdated_deliveries

PART, VERIFIED = ".part", ".verified"
MAX_LINES = 20_000  # of a file: some seconds, after which a worker can be asked to stop
COLUMNS = (
    *("id", "app_id", "booking_id", "number", "webhook_id", "customer_id"),
    *("type", "kind", "recipient", "version", "endpoint", "state", "reason", "tries", "lapses"),
    *("due_at", "expires_at", "created_at", "updated_at", "finished_at", "request_id"),
)
ATTEMPT_COLUMNS = ("at", "outcome", "response_code", "seconds", "error")


class ArchiveBusy(Exception):
    """Another process archives to the folder."""


class ArchiveIncomplete(Exception):
    """A file lacks lines that were written to it. None of its deliveries was deleted."""


def purge_outdated(before: datetime, *, batch: int | None = None) -> Iterator[int]:
    """Delete outdated deliveries, with DELIVERY_ARCHIVE_DIR after they were archived."""
    if settings.DELIVERY_ARCHIVE_DIR:
        return archive_outdated(before, Path(settings.DELIVERY_ARCHIVE_DIR), batch=batch)
    return delete_outdated(before, batch=batch)


def archive_outdated(before: datetime, folder: Path, *, batch: int | None = None) -> Iterator[int]:
    """Write deliveries that are outdated `before` to files, then delete them.

    Yields the number of deleted deliveries of each batch. Can be interrupted at any time and
    repeated. Raises ArchiveBusy, ArchiveIncomplete, OSError.
    """
    batch = batch or retention.BATCH
    with _sole_use(folder):
        for part in folder.glob(f"*{PART}"):
            part.unlink()
        for verified in sorted(folder.glob(f"*{VERIFIED}")):
            yield from _delete_lines(verified, before, batch)
        rows = _outdated_rows(before, batch)
        while written := _write_file(folder, rows):
            yield from _delete_lines(written, before, batch)


@contextlib.contextmanager
def _sole_use(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ArchiveBusy(f"Another process archives to {folder}.") from error
        yield


# --- Writing --------------------------------------------------------------------------------------
def _write_file(folder: Path, rows: Iterator[dict[str, Any]]) -> Path | None:
    """Write the next MAX_LINES rows to a file and verify it; None: there are none."""
    part = _new_path(folder, PART)
    count = 0
    with open(part, "xb") as file:
        with gzip.open(file, "wb", compresslevel=6) as lines:
            for row in islice(rows, MAX_LINES):
                lines.write(orjson.dumps(row) + b"\n")
                count += 1
        file.flush()
        os.fsync(file.fileno())
    if not count:
        part.unlink()
        return None
    found = sum(1 for _ in _read_lines(part))
    if found != count:
        raise ArchiveIncomplete(f"{part} has {found} of {count} lines.")
    return _rename(part, part.with_suffix(VERIFIED))


def _new_path(folder: Path, suffix: str) -> Path:
    """Return the next path of the day: deliveries-2026-11-23-0001.jsonl.gz, with the suffix."""
    prefix = f"deliveries-{database_now():%Y-%m-%d}-"
    numbers = (path.name.removeprefix(prefix)[:4] for path in folder.glob(f"{prefix}*"))
    number = max(map(int, numbers), default=0) + 1
    return folder / f"{prefix}{number:04}.jsonl.gz{suffix}"


def _rename(path: Path, name: Path) -> Path:
    """Rename the file durably."""
    path.rename(name)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return name


def _outdated_rows(before: datetime, batch: int) -> Iterator[dict[str, Any]]:
    rows = outdated_deliveries(before).order_by("finished_at", "id")
    # Under the column's name: `change_id` is the counter of older releases.
    rows = rows.values(*COLUMNS, change_uuid=F("change"))
    found = list(rows[:batch])
    while found:
        attempts = _attempts_of([row["id"] for row in found])
        for row in found:
            row["reason"] = without_addresses(row["reason"])
            yield row | {"attempts": attempts[row["id"]]}
        end, key = found[-1]["finished_at"], found[-1]["id"]
        later = Q(finished_at__gt=end) | Q(finished_at=end, id__gt=key)
        found = list(rows.filter(later, finished_at__gte=end)[:batch])


def _attempts_of(ids: Sequence[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    rows = Attempt.objects.filter(delivery__in=ids).order_by("id")
    attempts = defaultdict(list)
    for row in rows.values("delivery_id", *ATTEMPT_COLUMNS):
        row["error"] = without_addresses(row["error"])
        attempts[row.pop("delivery_id")].append(row)
    return attempts


# --- Deleting -------------------------------------------------------------------------------------
def _delete_lines(verified: Path, before: datetime, batch: int) -> Iterator[int]:
    """Delete the deliveries of a verified file and give it its final name."""
    lines = _read_lines(verified)
    while found := [UUID(orjson.loads(line)["id"]) for line in islice(lines, batch)]:
        yield delete_archived(found, before)
    _rename(verified, verified.with_suffix(""))


def _read_lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rb") as lines:
        yield from lines
