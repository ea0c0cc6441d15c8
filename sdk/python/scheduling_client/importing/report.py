"""The report of an import: a row for each row of the source, without keys and customers."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from scheduling_client.importing.records import Kind, SourceFailed

Outcome = Literal[
    "created", "updated", "unchanged", "skipped", "failed", "would create", "would update"
]
IN_SUMMARIES = {"would create": "would be created", "would update": "would be updated"}
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, kw_only=True)
class Row:
    """kind, external_id, name: of the row. id: of the object here. name of a booking or an event:
    its start. code: of the service's error. reason: why it was skipped or failed, or what the
    service does not have."""

    kind: Kind
    external_id: str
    name: str
    outcome: Outcome
    id: str = ""
    code: str = ""
    reason: str = ""


COLUMNS = [field.name for field in fields(Row)]


def write_report(path: Path, rows: Sequence[Row]) -> None:
    """Write CSV, or JSON if the name ends in .json. Raises SourceFailed if it can't be written."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            if path.suffix == ".json":
                json.dump([asdict(row) for row in rows], file, ensure_ascii=False, indent=1)
                return
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(
                {name: cell(value) for name, value in asdict(row).items()} for row in rows
            )
    except OSError as error:
        raise SourceFailed(f"{path}: {error.strerror}.") from error


def cell(text: str) -> str:
    """Return a text that a spreadsheet doesn't take for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def line(row: Row) -> str:
    """Return a row for the terminal, without control characters."""
    name = f" {row.name}" if row.name else ""
    reason = f": {row.code} {row.reason}".replace(":  ", ": ") if row.reason else ""
    text = f"{row.outcome:12} {row.kind} {row.external_id}{name}{reason}"
    return "".join(each if each.isprintable() else " " for each in text)


def summary(rows: Iterable[Row]) -> str:
    """Return "2 resources created, 1 booking failed", or "nothing to import"."""
    counts = Counter((row.kind, row.outcome) for row in rows)
    parts = [
        f"{count} {kind}{'' if count == 1 else 's'} {IN_SUMMARIES.get(outcome, outcome)}"
        for (kind, outcome), count in counts.items()
    ]
    return ", ".join(parts) or "nothing to import"
