"""CSV files of resources, services, bookings and events, with a line of column names.

Columns (those with * are needed; `--map bookings.email=Mail` reads the `email` of bookings from a
column `Mail`):

resources   id*, name*, timezone*, email, tags, capacity, hours
services    id*, name*, length*, resources*, description, where, buffer_before, buffer_after
bookings    id*, resource*, start*, end*, name*, email*, service, what, timezone, phone, where,
            description, note, state
events      id*, resource*, start*, end*, timezone, what

Lengths are minutes. `tags` and `resources` are lists with semicolons. `hours`: "Mon-Fri 9:00-12:00,
13:00-17:00; Sat 10:00-14:00"; without hours, a resource is always open. `resource` and `service`:
the id of a row, or the id, slug or name of an object in the app. A booking has a `service` or says
`what`. `start` and `end` without an offset are times in `timezone`, or in --timezone. `state`:
confirmed (the default), requested or cancelled.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from scheduling_client.importing.fields import Fields, missing, read_rows
from scheduling_client.importing.hours import DAYS, day_name, make_rules, slot_terms, window
from scheduling_client.importing.reading import MAX_ROWS, read_file
from scheduling_client.importing.records import (
    Booking,
    Event,
    Kind,
    Person,
    Record,
    Resource,
    Rules,
    Service,
    SourceFailed,
    Unusable,
)
from scheduling_client.importing.times import check_order, zone_name

COLUMNS: dict[Kind, dict[str, bool]] = {  # whether each is needed
    "resource": {
        **dict.fromkeys(("id", "name", "timezone"), True),
        **dict.fromkeys(("email", "tags", "capacity", "hours"), False),
    },
    "service": {
        **dict.fromkeys(("id", "name", "length", "resources"), True),
        **dict.fromkeys(("description", "where", "buffer_before", "buffer_after"), False),
    },
    "booking": {
        **dict.fromkeys(("id", "resource", "start", "end", "name", "email"), True),
        **dict.fromkeys(("service", "timezone", "phone", "what", "where"), False),
        **dict.fromkeys(("description", "note", "state"), False),
    },
    "event": {
        **dict.fromkeys(("id", "resource", "start", "end"), True),
        **dict.fromkeys(("timezone", "what"), False),
    },
}
STATES = ("confirmed", "requested", "cancelled")


def read_csv(
    files: Mapping[Kind, str],
    *,
    now: datetime,
    columns: Mapping[str, str] | None = None,
    timezone: str | None = None,
    delimiter: str = ",",
) -> Iterator[Record]:
    """Yield the rows of all files, in the order in which they refer to each other.

    columns: the name of a column in the files, by ours: `bookings.email`. timezone: of rows without
    one. Raises SourceFailed.
    """
    zone = zone_name(timezone) if timezone else None
    readers: dict[Kind, Callable[[Fields], Record]] = {
        "resource": lambda row: resource_of(row, zone, now),
        "service": service_of,
        "booking": lambda row: booking_of(row, zone),
        "event": lambda row: event_of(row, zone),
    }
    for kind in COLUMNS:
        if kind in files:
            needed = {name for name, is_needed in COLUMNS[kind].items() if is_needed}
            needed -= {"timezone"} if zone else set()
            rows = rows_of_file(files[kind], kind, columns or {}, needed, delimiter)
            yield from read_rows(kind, rows, readers[kind])


def rows_of_file(
    name: str, kind: Kind, columns: Mapping[str, str], needed: set[str], delimiter: str
) -> list[dict[str, str]]:
    """Return the rows with our names. Raises SourceFailed at a missing or unknown column."""
    try:
        text = read_file(Path(name)).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        head = list(reader.fieldnames or ())
        theirs = {ours: columns.get(f"{kind}s.{ours}", ours) for ours in COLUMNS[kind]}
        absent = sorted(theirs[ours] for ours in needed if theirs[ours] not in head)
        if absent:
            others = f", but {', '.join(head)}" if head else ""
            raise SourceFailed(f"{name} has no column {', '.join(absent)}{others}.")
        unknown = sorted(set(head) - set(theirs.values()))
        if unknown:
            known = ", ".join(COLUMNS[kind])
            raise SourceFailed(f"{name}: unknown column {', '.join(unknown)}. Known: {known}.")
        rows = [
            {ours: (row.get(column) or "") for ours, column in theirs.items()} for row in reader
        ]
    except UnicodeDecodeError:
        raise SourceFailed(f"{name} is no UTF-8.") from None
    except csv.Error as error:
        raise SourceFailed(f"{name} is no CSV: {error}.") from error
    if len(rows) > MAX_ROWS:
        raise SourceFailed(f"{name} has more than {MAX_ROWS} rows.")
    return rows


def resource_of(row: Fields, zone: str | None, now: datetime) -> Resource:
    hours = row.optional_text("hours")
    return Resource(
        key=row.text("id"),
        name=row.text("name"),
        timezone=row.zone("timezone", zone),
        email=row.optional_text("email"),
        tags=listed(row.optional_text("tags")),
        capacity=row.number("capacity", 1),
        rules=rules_of(hours, now) if hours else (),
    )


def service_of(row: Fields) -> Service:
    return Service(
        key=row.text("id"),
        name=row.text("name"),
        resources=listed(row.text("resources")),
        availability=slot_terms(
            row.length("length"),
            buffer_before=row.number("buffer_before"),
            buffer_after=row.number("buffer_after"),
        ),
        description=row.optional_text("description"),
        where=row.optional_text("where"),
    )


def booking_of(row: Fields, zone: str | None) -> Booking:
    own_zone = row.optional_text("timezone") or zone
    start, end = row.instant("start", own_zone), row.instant("end", own_zone)
    check_order(start, end)
    state = row.optional_text("state") or "confirmed"
    if state not in STATES:
        raise Unusable(f"`state` is none of {', '.join(STATES)}.")
    service = row.optional_text("service")
    person = Person(
        name=row.text("name"), email=row.text("email"), phone=row.optional_text("phone")
    )
    return Booking(
        key=row.text("id"),
        resource=row.text("resource"),
        service=service,
        start=start,
        end=end,
        people=(person,),
        what=row.optional_text("what") or (None if service else missing("what")),
        where=row.optional_text("where"),
        description=row.optional_text("description"),
        internal_note=row.optional_text("note"),
        state=state,  # type: ignore[arg-type]
    )


def event_of(row: Fields, zone: str | None) -> Event:
    own_zone = row.optional_text("timezone") or zone
    start, end = row.instant("start", own_zone), row.instant("end", own_zone)
    check_order(start, end)
    return Event(
        key=row.text("id"),
        resource=row.text("resource"),
        start=start,
        end=end,
        what=row.optional_text("what") or "Busy",
    )


def listed(text: str | None) -> tuple[str, ...]:
    return tuple(each.strip() for each in (text or "").split(";") if each.strip())


def rules_of(text: str, now: datetime) -> Rules:
    """Read "Mon-Fri 9:00-12:00, 13:00-17:00; Sat 10:00-14:00". Raises Unusable."""
    weekly: dict[str, list[tuple[str, str]]] = {}
    for part in listed(text):
        days, _, times = part.partition(" ")
        windows = [window_of(each) for each in times.split(",")]
        for day in days_of(days):
            weekly.setdefault(day, []).extend(windows)
    return make_rules(weekly, {}, since=now.date())


def days_of(text: str) -> list[str]:
    first, dash, last = text.partition("-")
    begin = DAYS.index(day_name(first))
    end = DAYS.index(day_name(last)) if dash else begin
    return [DAYS[(begin + step) % 7] for step in range((end - begin) % 7 + 1)]


def window_of(text: str) -> tuple[str, str]:
    start, dash, end = text.strip().partition("-")
    if not dash:
        raise Unusable(f"{text.strip()!r} is no time such as 9:00-17:00.")
    return window(start, end)
