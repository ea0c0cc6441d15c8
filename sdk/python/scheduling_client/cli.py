"""The command `scheduling`: book, list, follow changes, and an app as a file."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from zoneinfo import ZoneInfo

from scheduling_client import app_file
from scheduling_client.client import Client
from scheduling_client.errors import (
    ConnectionFailed,
    Invalid,
    NotAvailable,
    Refused,
    SchedulingError,
    SlotTaken,
)
from scheduling_client.importing.command import add_arguments
from scheduling_client.importing.command import run as run_import
from scheduling_client.model import Model
from scheduling_client.models import Event, ListedChange, Project, Resource, Slot
from scheduling_client.version import VERSION

try:
    import yaml
except ImportError:  # without the extra [cli]
    yaml = None  # type: ignore[assignment]

FAILED, DIFFERENT, INTERRUPTED = 1, 2, 130
DESCRIPTION = """A client of the scheduling and booking service. SCHEDULING_URL is its address,
SCHEDULING_KEY a server key. Exit status: 0 done, 1 refused or failed, 2 `app plan` has
differences."""


N = TypeVar("N", Project, Resource)  # what has a name


class Unclear(SchedulingError):
    """The command may mean several things, or nothing; the text says what to add."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """As 2 is the exit status of a plan with differences."""
        self.print_usage(sys.stderr)
        self.exit(FAILED, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = parser().parse_args(argv)
    if not options.url or not options.key:
        parser().error("set SCHEDULING_URL and SCHEDULING_KEY, or give --url and --key")
    try:
        with Client(options.url, options.key, app=options.app, timezone=options.timezone) as client:
            status: int = options.run(client, options)
            sys.stdout.flush()
            return status
    except BrokenPipeError:  # as of `scheduling slots check-up | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at the end
        return FAILED
    except (SchedulingError, ValueError, OSError) as error:
        print(f"scheduling: {explain(error)}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def parser() -> Parser:
    whole = Parser(prog="scheduling", description=DESCRIPTION)
    whole.add_argument("--version", action="version", version=VERSION)
    whole.add_argument("--url", default=os.environ.get("SCHEDULING_URL"))
    whole.add_argument("--key", default=os.environ.get("SCHEDULING_KEY"))
    whole.add_argument("--app", help="the app's slug, for keys of several apps")
    whole.add_argument("--timezone", help="the zone of printed times (UTC)")
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[Client, Any], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    slots = command("slots", show_slots, "Show the free times of a project.")
    add_slot_options(slots)
    slots.add_argument("--from", dest="from_", help="the earliest start, such as 2026-12-01")
    slots.add_argument("--to", help="the latest end, such as '2 weeks'")
    slots.add_argument("--json", action="store_true", help="print a line of JSON for each")

    book = command("book", book_slot, "Book a free time of a project.")
    add_slot_options(book)
    when = book.add_mutually_exclusive_group(required=True)
    when.add_argument("--start", help="such as '2026-12-01 09:00', on the clock of the resource")
    when.add_argument("--first", action="store_true", help="the first free time")
    book.add_argument("--name", required=True, help="the customer's name")
    book.add_argument("--email", required=True, help="the customer's e-mail address")
    book.add_argument("--json", action="store_true", help="print the booking as JSON")

    bookings = command("bookings", show_bookings, "List bookings, the newest first.")
    bookings.add_argument("--state", help="such as confirmed, or several with commas")
    bookings.add_argument("--email", help="the customer's e-mail address")
    bookings.add_argument("--project", help="its slug, id or name")
    bookings.add_argument("--from", dest="from_", help="bookings that end later")
    bookings.add_argument("--to", help="bookings that start earlier")
    bookings.add_argument("--json", action="store_true", help="print a line of JSON for each")

    changes = command("changes", show_changes, "Show changes; without a cursor, those from now on.")
    changes.add_argument("--follow", action="store_true", help="wait for further changes")
    place = changes.add_mutually_exclusive_group()
    place.add_argument("--cursor", help="the place to begin after")
    place.add_argument("--cursor-file", type=Path, help="begin after its cursor, and keep it there")
    changes.add_argument("--types", help="such as booking,customer")
    changes.add_argument("--interval", type=float, default=5.0, help="seconds between requests (5)")
    changes.add_argument("--json", action="store_true", help="print a line of JSON for each")

    importing = commands.add_parser("import", help="Import from another system, or from files.")
    add_arguments(importing)
    importing.set_defaults(run=run_import)

    app = commands.add_parser("app", help="An app as a file.").add_subparsers(
        required=True, metavar="COMMAND"
    )
    export = app.add_parser("export", help="Print the app as a file. It contains no secrets.")
    export.set_defaults(run=export_app)
    for name, run, text in (
        ("plan", plan_app, "Show what `apply` would do."),
        ("apply", apply_app, "Make the app as the file wants it."),
    ):
        added = app.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        added.add_argument("file", help="- for standard input")
        added.add_argument(
            "--prune", action="store_true", help="delete what the file's sections leave out"
        )
    return whole


def add_slot_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("project", help="its slug, id or name")
    command.add_argument("--resource", help="its id or name")
    command.add_argument("--length", help="such as '30 minutes'")


# --- Commands -------------------------------------------------------------------------------------
def show_slots(client: Client, options: Any) -> int:
    project = find_project(client, options.project)
    slots = search(client, project, options, from_=options.from_, to=options.to)
    show(
        slots,
        options.json,
        lambda slot: [
            slot.start.isoformat(),
            slot.end.isoformat(),
            ", ".join(each.name for each in slot.resources),
        ],
    )
    return 0


def book_slot(client: Client, options: Any) -> int:
    project = find_project(client, options.project)
    slot = choose_slot(client, project, options)
    body: dict[str, Any] = {"project_id": project.id, "start": slot.start, "end": slot.end}
    if options.resource:
        body["resource_id"] = slot.resources[0].id
    body["customer"] = {"name": options.name, "email": options.email}
    booking = client.bookings.create(**body)
    show([booking], options.json, lambda made: [made.id, made.state, made.start.isoformat()])
    return 0


def show_bookings(client: Client, options: Any) -> int:
    query = {
        "state": options.state,
        "customer_email": options.email,
        "project_id": find_project(client, options.project).id if options.project else None,
        "start": options.from_,
        "end": options.to,
    }
    given: Any = {name: value for name, value in query.items() if value}
    bookings = client.bookings.list(**given, include="event,customers")
    show(
        bookings,
        options.json,
        lambda booking: [
            booking.id,
            booking.state,
            booking.event.start.isoformat(),
            booking.event.what if isinstance(booking.event, Event) else "",
            ", ".join(customer.name for customer in booking.customers),
        ],
    )
    return 0


def show_changes(client: Client, options: Any) -> int:
    cursor = options.cursor
    file: Path | None = options.cursor_file
    if file and file.exists():
        cursor = file.read_text().strip()
    elif not cursor:
        cursor = client.changes.latest_cursor()
        store(file, cursor)
    for change in all_changes(client, cursor, options):
        show([change], options.json, change_cells)
        store(file, change.cursor)
    return 0


def change_cells(change: ListedChange) -> Sequence[str]:
    return [change.at.isoformat(), change.type, change.action, change.object_id]


def all_changes(client: Client, cursor: str, options: Any) -> Iterator[ListedChange]:
    types = options.types or ()
    if options.follow:
        yield from client.changes.follow(cursor, types=types, interval=options.interval)
        return
    has_more = True
    while has_more:
        page = client.changes.list(cursor, types=types)
        yield from page.changes
        cursor, has_more = page.cursor, page.has_more
    store(options.cursor_file, cursor)


def store(file: Path | None, cursor: str) -> None:
    """Replace the file at once: a crash leaves the earlier cursor or this one."""
    if file:
        beside = file.with_name(f"{file.name}.new")
        beside.write_text(f"{cursor}\n")
        beside.replace(file)


def export_app(client: Client, options: Any) -> int:
    need_yaml()
    content = app_file.read_app(client).content
    print(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100), end="")
    return 0


def plan_app(client: Client, options: Any) -> int:
    _, differences = compared(client, options)
    for each in differences:
        print(each)
    return DIFFERENT if differences else 0


def apply_app(client: Client, options: Any) -> int:
    present, differences = compared(client, options)
    for text in app_file.apply(client, present, differences):
        print(text, flush=True)
    return 0


def compared(client: Client, options: Any) -> tuple[app_file.Present, list[app_file.Difference]]:
    need_yaml()
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text()
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise app_file.AppFileError(f"{options.file} is no YAML: {error}") from None
    wanted = app_file.check_file(content)
    present = app_file.read_app(client)
    return present, app_file.compare(present, wanted, prune=options.prune)


def need_yaml() -> None:
    if yaml is None:
        raise SchedulingError("Files need PyYAML: pip install pyyaml")


# --- What the words mean --------------------------------------------------------------------------
def find_project(client: Client, text: str) -> Project:
    return find(client.projects.list(), text, "project", lambda each: (each.id, each.slug))


def find_resource(client: Client, text: str) -> Resource:
    return find(client.resources.list(), text, "resource", lambda each: (each.id,))


def find(objects: Iterable[N], text: str, kind: str, exact: Callable[[N], tuple[str, ...]]) -> N:
    """Return the object with this id or slug, else the only one with this name. Raises Unclear."""
    found = list(objects)
    fitting = [each for each in found if text in exact(each)] or [
        each for each in found if each.name.casefold() == text.casefold()
    ]
    if len(fitting) > 1:
        choices = ", ".join(exact(each)[-1] for each in fitting)
        raise Unclear(f"Several {kind}s are called {text!r}: choose one of {choices}.")
    if not fitting:
        choices = ", ".join(sorted(getattr(each, "slug", each.name) for each in found)[:20])
        raise Unclear(f"No {kind} is called {text!r}. There are: {choices or 'none'}.")
    return fitting[0]


def search(client: Client, project: Project, options: Any, **query: Any) -> Sequence[Slot]:
    query |= {"project_id": project.id, "length": options.length}
    if options.resource:
        query["resources"] = [find_resource(client, options.resource).id]
    return client.availability.search(**{key: value for key, value in query.items() if value})


def choose_slot(client: Client, project: Project, options: Any) -> Slot:
    """Raises Unclear if the time is not free, or has one of several lengths."""
    lengths = project.availability.lengths
    if lengths and len(lengths) > 1 and not options.length:
        raise Unclear(f"There are several lengths: give --length, one of {', '.join(lengths)}.")
    start = None if options.first else datetime.fromisoformat(options.start)
    end = start + timedelta(days=14) if start else None
    slots = search(client, project, options, from_=start, to=end)
    if not slots:
        raise Unclear("There is no free time.")
    if start is None:
        start = slots[0].start
    fitting = [slot for slot in slots if begins(slot, start)]
    if not fitting:
        times = ", ".join(slot.start.isoformat() for slot in slots[:3])
        raise Unclear(f"{options.start} is not free. The next free times: {times}.")
    return fitting[0]


def begins(slot: Slot, start: datetime) -> bool:
    """Whether the slot starts then; without a zone, on the clock of its resource."""
    if start.tzinfo:
        return slot.start == start
    zone = ZoneInfo(slot.resources[0].timezone)
    return slot.start.astimezone(zone).replace(tzinfo=None) == start


# --- Printing -------------------------------------------------------------------------------------
def show(objects: Iterable[Model], as_json: bool, cells: Callable[[Any], Sequence[str]]) -> None:
    """Print a line for each: its JSON, or cells between tabs, without control characters."""
    for each in objects:
        if as_json:
            print(json.dumps(each.to_dict()), flush=True)
        else:
            print("\t".join(printable(cell) for cell in cells(each)), flush=True)


def printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def explain(error: Exception) -> str:
    """Return what the person reads: first what the error is about, which is in its notes."""
    return ": ".join([*getattr(error, "__notes__", ()), explain_alone(error)])


def explain_alone(error: Exception) -> str:
    if isinstance(error, Invalid) and error.errors:
        places: Mapping[str, list[str]] = error.errors
        return "\n  ".join(
            ["invalid:", *(f"{place}: {' '.join(texts)}" for place, texts in places.items())]
        )
    if isinstance(error, (SlotTaken, NotAvailable)):
        reasons = error.reasons if isinstance(error, NotAvailable) else None
        times = ", ".join(other.start.isoformat() for other in error.alternatives or ())
        lines = [str(error), *(reason.text for reason in reasons or ())]
        return "\n  ".join([*lines, *([f"Free: {times}"] if times else [])])
    if isinstance(error, ConnectionFailed):
        return f"{error}. Is the address right (SCHEDULING_URL or --url)?"
    return f"{error} (request {error.request_id})" if isinstance(error, Refused) else str(error)


if __name__ == "__main__":
    sys.exit(main())
