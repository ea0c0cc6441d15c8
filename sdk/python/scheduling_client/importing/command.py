"""`import`: resources, projects and bookings of another system, or of files."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scheduling_client.client import Client
from scheduling_client.errors import ConnectionFailed, Unauthenticated
from scheduling_client.importing import calcom, calendly, csv_files, timekit
from scheduling_client.importing.calcom import read_calcom
from scheduling_client.importing.calendly import read_calendly
from scheduling_client.importing.csv_files import read_csv
from scheduling_client.importing.easyappointments import read_easyappointments
from scheduling_client.importing.ics import Reader
from scheduling_client.importing.reading import SourceClient, read_secret
from scheduling_client.importing.records import Kind, Record, SourceFailed, Unusable
from scheduling_client.importing.report import Row, line, summary, write_report
from scheduling_client.importing.timekit import read_timekit
from scheduling_client.importing.times import instant, zone_name
from scheduling_client.importing.writing import Choices, Known, Writer

REPORTS = (".csv", ".json")
EXIT_ROWS_FAILED = 1
EXIT_FAILED = 2
TWO_YEARS = timedelta(days=730)
SOURCE_NAME = re.compile(r"[A-Za-z0-9_.@:-]{1,30}", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sources, each with its arguments."""
    common = common_arguments()
    sources = parser.add_subparsers(dest="source", required=True, metavar="source")
    for name, text, url in (
        ("calcom", "Cal.com, with the key in CALCOM_API_KEY", calcom.URL),
        ("calendly", "Calendly, with the token in CALENDLY_TOKEN", calendly.URL),
        ("timekit", "Timekit, with the key in TIMEKIT_API_KEY", timekit.URL),
        ("easyappointments", "Easy!Appointments, with the key in EASYAPPOINTMENTS_TOKEN", None),
    ):
        part = sources.add_parser(name, help=text, description=text + ".", parents=[common])
        shown = url or "such as https://example.com/index.php/api/v1"
        part.add_argument(
            "--from", dest="source_url", default=url, required=url is None, help=shown
        )
        part.add_argument("--key-file", help="the file with the key, instead of the variable")
        if name == "easyappointments":
            part.add_argument("--user", help="log in with this name; the key is the password")
    ics = sources.add_parser("ics", help="a calendar file", parents=[common])
    ics.add_argument("file")
    ics.add_argument("--resource", required=True, help="whose calendar: an id or a name")
    ics.add_argument("--as", dest="wanted", choices=("events", "bookings"), default="events")
    ics.add_argument(
        "--timezone", dest="source_zone", help="of times without a zone: by default the resource's"
    )
    ics.add_argument("--until", help="the end of recurring events, in two years by default")
    files = sources.add_parser(
        "csv",
        help="files of rows",
        description=csv_files.__doc__,
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for kind in csv_files.COLUMNS:
        files.add_argument(f"--{kind}s", dest=kind, metavar="FILE")
    files.add_argument("--map", action="append", default=[], metavar="OURS=THEIRS")
    files.add_argument("--timezone", dest="source_zone", help="of rows without one")
    files.add_argument("--delimiter", default=",")


def common_arguments() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    add = common.add_argument
    add("--dry-run", action="store_true", help="write nothing, and say what would happen")
    add(
        "--report",
        type=report_path,
        metavar="FILE",
        help="a row for each row of the source: .csv or .json",
    )
    add("--quiet", action="store_true", help="print only the failed rows and the sum")
    add("--past", action="store_true", help="import bookings and events that have ended, too")
    add("--send-mails", action="store_true", help="people get the usual e-mails")
    add("--publish", action="store_true", help="new projects may have a page on the web")
    add("--name", help="the beginning of the external ids, if there are two such sources")
    return common


def report_path(text: str) -> Path:
    path = Path(text)
    if path.suffix not in REPORTS:
        raise argparse.ArgumentTypeError(f"{text} ends in none of {', '.join(REPORTS)}")
    return path


def run(client: Client, arguments: argparse.Namespace) -> int:
    """Import, print the rows and write the report. Return the exit code: 0; 1 if rows failed; 2 if
    the import could not be made or was broken off."""
    now = datetime.now(UTC)
    rows: list[Row] = []
    try:
        choices = choices_of(arguments)
        if arguments.source == "ics":
            writer = Writer(client, choices, now=now)
            records = list(read_calendar_file(arguments, writer.resources, now))
        else:
            records = list(read_records(arguments, now))
            writer = Writer(client, choices, now=now)
        for row in writer.write(records):
            rows.append(row)
            if row.outcome == "failed" or not arguments.quiet:
                print(line(row))
        code = EXIT_ROWS_FAILED if any(row.outcome == "failed" for row in rows) else 0
    except (SourceFailed, Unusable, Unauthenticated, ConnectionFailed) as error:
        print(f"import: {error}", file=sys.stderr)
        code = EXIT_FAILED
    try:
        if arguments.report:
            write_report(arguments.report, rows)
    except SourceFailed as error:
        print(f"import: {error}", file=sys.stderr)
        code = EXIT_FAILED
    print(f"{'Dry run: ' if arguments.dry_run else ''}{summary(rows)}.")
    return code


def choices_of(arguments: argparse.Namespace) -> Choices:
    source = arguments.name or arguments.source
    if not SOURCE_NAME.fullmatch(source):
        raise SourceFailed("--name has at most 30 letters, digits, dots, hyphens and underscores.")
    return Choices(
        source=source,
        dry_run=arguments.dry_run,
        send_mails=arguments.send_mails,
        past=arguments.past,
        publish=arguments.publish,
    )


def read_records(arguments: argparse.Namespace, now: datetime) -> Iterable[Record]:
    """Return the records of the source. Raises SourceFailed and Unusable."""
    if arguments.source == "csv":
        return read_csv(
            csv_sources(arguments),
            now=now,
            columns=columns_of(arguments.map),
            timezone=arguments.source_zone,
            delimiter=arguments.delimiter,
        )
    return read_server(arguments, now)


def read_calendar_file(
    arguments: argparse.Namespace, resources: Known, now: datetime
) -> Iterable[Record]:
    """Return the records of the file. Raises SourceFailed, and Unusable if there is no such
    resource."""
    resource = resources.by_id[resources.id_of(arguments.resource, "resource")]
    zone = zone_name(arguments.source_zone or resource.timezone)
    until = instant(arguments.until, zone) if arguments.until else now + TWO_YEARS
    reader = Reader(
        resource=arguments.resource, wanted=arguments.wanted, zone=zone, now=now, until=until
    )
    return reader.read(arguments.file)


def read_server(arguments: argparse.Namespace, now: datetime) -> list[Record]:
    if arguments.source == "calcom":
        with SourceClient(
            without_version(arguments.source_url), headers=bearer("CALCOM_API_KEY", arguments)
        ) as source:
            return list(read_calcom(source, now=now))
    if arguments.source == "calendly":
        with SourceClient(
            arguments.source_url, headers=bearer("CALENDLY_TOKEN", arguments)
        ) as source:
            return list(read_calendly(source, now=now, past=arguments.past))
    if arguments.source == "timekit":
        auth = ("", read_secret("TIMEKIT_API_KEY", arguments.key_file))
        with SourceClient(without_version(arguments.source_url), auth=auth) as source:
            return list(read_timekit(source))
    if arguments.user:
        auth = (arguments.user, read_secret("EASYAPPOINTMENTS_TOKEN", arguments.key_file))
        with SourceClient(arguments.source_url, auth=auth) as source:
            return list(read_easyappointments(source, now=now))
    headers = bearer("EASYAPPOINTMENTS_TOKEN", arguments)
    with SourceClient(arguments.source_url, headers=headers) as source:
        return list(read_easyappointments(source, now=now))


def without_version(url: str) -> str:
    """Return `https://api.timekit.io` of `https://api.timekit.io/v2/`: the paths begin with it."""
    return url.rstrip("/").removesuffix("/v2")


def bearer(variable: str, arguments: argparse.Namespace) -> dict[str, str]:
    return {"Authorization": f"Bearer {read_secret(variable, arguments.key_file)}"}


def csv_sources(arguments: argparse.Namespace) -> dict[Kind, str]:
    found = {kind: getattr(arguments, kind) for kind in csv_files.COLUMNS}
    named = {kind: name for kind, name in found.items() if name}
    if not named:
        raise SourceFailed("Name a file with --resources, --services, --bookings or --events.")
    return named


def columns_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return the names of columns by ours, such as `bookings.email`. Raises SourceFailed."""
    known = {f"{kind}s.{name}" for kind, names in csv_files.COLUMNS.items() for name in names}
    found = {}
    for pair in pairs:
        ours, is_pair, theirs = pair.partition("=")
        if not is_pair or ours not in known:
            raise SourceFailed(f"--map {pair}: begin with a column such as bookings.email.")
        found[ours] = theirs
    return found
