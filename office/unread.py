"""Objects of a calendar elsewhere that can't be read, told to staff.

Names and reasons are the other side's words: whatever stands in them, they are shown as one short
line that nothing else on the page is moved by.
"""

from typing import Any, NamedTuple
from urllib.parse import unquote

from django.db.models import F

from apps_config.days import moment_words
from external_calendars.models import Connection

NAMED = 10
LONGEST_NAME, LONGEST_PROBLEM = 80, 200


class Unread(NamedTuple):
    """How many there are in `words`, and of the latest of them (name, problem, since)."""

    words: str
    named: list[tuple[str, str, str]]
    more: int


def tell_unread(connection: Connection, *, is_feed: bool) -> Unread | None:
    """None where all can be read. Two queries."""
    rows = connection.remote_objects.exclude(problem="")
    number = rows.count()
    latest = rows.order_by(F("problem_since").desc(nulls_last=True), "id")[:NAMED]
    latest = latest.only("connection", "href", "problem", "problem_since")
    named = [_told(row, is_feed) for row in latest]
    return Unread(unread_words(number), named, number - len(named)) if number else None


def unread_words(number: int) -> str:
    """`3 objects can't be read`; "" for none."""
    noun = "object" if number == 1 else "objects"
    return f"{number:,} {noun} can't be read" if number else ""


def _told(row: Any, is_feed: bool) -> tuple[str, str, str]:
    since = f"since {moment_words(row.problem_since)}" if row.problem_since else ""
    name = row.href if is_feed else name_in_collection(row.href)
    return (
        one_line(name, LONGEST_NAME) or "without a name",
        one_line(row.problem, LONGEST_PROBLEM),
        since,
    )


def name_in_collection(href: str) -> str:
    """`/ada/work/B%C3%BCro.ics` is `Büro.ics`."""
    return unquote(href.rstrip("/").rpartition("/")[2])


def one_line(text: str, longest: int) -> str:
    """The text with a sign in the place of each character that can't be seen, or that would turn
    the rest of the line around; cut with "…" where it is longer."""
    seen = "".join(one if one.isprintable() else "\ufffd" for one in text[: longest + 1]).strip()
    return seen if len(text) <= longest else f"{seen[: longest - 1]}…"
