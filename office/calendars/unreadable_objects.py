"""Unreadable objects of connected calendars, for staff.

Names and reasons come from the provider: each is shown as one short line that can't affect the rest
of the page.
"""

from typing import NamedTuple
from urllib.parse import unquote

from django.db.models import F
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from external_calendars.models import Connection, ExternalObject
from office.base.dates import moment_words

NAMED = 10
MAX_NAME, MAX_PROBLEM = 80, 200


class UnreadableObject(NamedTuple):
    """The number as text, the latest objects as (name, problem, since), and the number of
    others.
    """

    words: str
    named: list[tuple[str, str, str]]
    more: int


def list_unreadable(connection: Connection, *, is_feed: bool) -> UnreadableObject | None:
    """Return the unreadable objects; None without any. Two queries."""
    rows = connection.remote_objects.exclude(problem="")
    number = rows.count()
    latest = rows.order_by(F("problem_since").desc(nulls_last=True), "id")[:NAMED]
    latest = latest.only("connection", "href", "problem", "problem_since")
    named = [_object_texts(row, is_feed) for row in latest]
    return (
        UnreadableObject(unreadable_count_text(number), named, number - len(named))
        if number
        else None
    )


def unreadable_count_text(number: int) -> str:
    """Return `3 objects can't be read`; "" for none."""
    if not number:
        return ""
    words = ngettext("%(count)s object can't be read", "%(count)s objects can't be read", number)
    return words % {"count": number_format(number, force_grouping=True)}


def _object_texts(row: ExternalObject, is_feed: bool) -> tuple[str, str, str]:
    since = ""
    if row.problem_since:
        since = _("since %(moment)s") % {"moment": moment_words(row.problem_since)}
    name = row.href if is_feed else name_in_collection(row.href)
    return (
        printable_line(name, MAX_NAME) or _("without a name"),
        printable_line(row.problem, MAX_PROBLEM),
        since,
    )


def name_in_collection(href: str) -> str:
    """Return the decoded last segment: `/ada/work/B%C3%BCro.ics` is `Büro.ics`."""
    return unquote(href.rstrip("/").rpartition("/")[2])


def printable_line(text: str, longest: int) -> str:
    """Return the text with U+FFFD for each invisible or bidirectional control character, cut with
    "…" if it is longer than `longest`.
    """
    seen = "".join(
        character if character.isprintable() else "\ufffd" for character in text[: longest + 1]
    ).strip()
    return seen if len(text) <= longest else f"{seen[: longest - 1]}…"
