"""The pictures of reports: tables whose rows have a bar, and a heat map. A picture is its own
table, so both have the same numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from babel.numbers import format_percent
from django.utils.formats import number_format
from django.utils.translation import get_language, gettext, pgettext_lazy, to_locale
from django.utils.translation import gettext_lazy as _

from bookings.pages.formatting import (
    month_day_words,
    month_words,
    plain_date_words,
    short_month_words,
)
from bookings.reports.figures import MONTH, PROJECT, RESOURCE, TAG, WEEK
from office.base.lazy_text import LazyText

MAX_ROWS = 50
HEAT_STEPS = 5
NONE = "–"
Json = dict[str, Any]
Format = Callable[[Any], str]


def number_words(number: float | None) -> str:
    return NONE if number is None else number_format(number, force_grouping=True)


def decimal_words(number: float | None) -> str:
    return NONE if number is None else number_format(number, 1, force_grouping=True)


def rate_words(rate: float | None) -> str:
    return NONE if rate is None else format_percent(rate, locale=to_locale(get_language() or "en"))


def hours_words(seconds: float | None) -> str:
    return NONE if seconds is None else decimal_words(seconds / 3600)


class Column(NamedTuple):
    """A number of each row. colour: that of its part of the bar; empty: it has none."""

    name: str
    words: LazyText
    colour: str = ""
    write: Format = number_words


class Picture(NamedTuple):
    """figures: the numbers of the whole period, above the table."""

    report: str
    title: LazyText
    about: LazyText
    figures: Sequence[Column]
    columns: Sequence[Column]


LEAD_WORDS = (
    ("lead_1_day", _("Less than a day")),
    ("lead_3_days", _("1 to 3 days")),
    ("lead_1_week", _("3 to 7 days")),
    ("lead_2_weeks", _("1 to 2 weeks")),
    ("lead_4_weeks", _("2 to 4 weeks")),
    ("lead_longer", _("4 weeks or more")),
)
SOURCE_WORDS = (
    ("widget", _("Booking page")),
    ("admin", _("Back office")),
    ("api", _("API")),
    ("mcp", _("Agents")),
    ("link", _("Links in e-mails")),
    ("calendar", _("Connected calendars")),
    ("mail", _("E-mails")),
    ("timer", _("Automatically")),
)
BOOKINGS = Column("bookings", _("Bookings"))
PICTURES = (
    Picture(
        "outcomes",
        _("Cancellations and no-shows"),
        _("No-shows are counted of the bookings that took place."),
        (
            BOOKINGS,
            Column(
                "cancellation_rate",
                pgettext_lazy("share of bookings", "cancelled"),
                write=rate_words,
            ),
            Column(
                "no_show_rate", pgettext_lazy("share of bookings", "no-shows"), write=rate_words
            ),
        ),
        (
            BOOKINGS,
            Column("kept", pgettext_lazy("bookings", "Kept"), "step-4"),
            Column("pending", pgettext_lazy("bookings", "Pending"), "waiting"),
            Column("cancelled_by_customer", _("Cancelled by the customer"), "off"),
            Column("cancelled", _("Cancelled by staff"), "off-2"),
            Column("declined", pgettext_lazy("bookings", "Declined"), "done"),
            Column("unpaid", pgettext_lazy("bookings", "Not paid"), "done-2"),
            Column("no_show", _("No-shows")),
        ),
    ),
    Picture(
        "lead-time",
        _("How long ahead"),
        _("From the making of a booking to its start."),
        (Column("average_days", _("days on average"), write=decimal_words),),
        (
            Column("average_days", _("Average in days"), write=decimal_words),
            *(Column(name, words, f"step-{n}") for n, (name, words) in enumerate(LEAD_WORDS, 1)),
        ),
    ),
    Picture(
        "sources",
        _("Where bookings come from"),
        _("By the first entry in the history of each booking."),
        (),
        tuple(Column(name, words, f"kind-{n}") for n, (name, words) in enumerate(SOURCE_WORDS, 1)),
    ),
    Picture(
        "customers",
        _("New and returning customers"),
        _("A customer is an e-mail address, and counts in each booking."),
        (
            Column("new", _("new customers")),
            Column("new_rate", _("of all are new"), write=rate_words),
        ),
        (
            Column("new", pgettext_lazy("customers", "New"), "kind-1"),
            Column("returning", pgettext_lazy("customers", "Returning"), "kind-2"),
            Column("new_rate", _("Share of new"), write=rate_words),
        ),
    ),
)
GROUP_WORDS: Mapping[str, LazyText] = {
    WEEK: _("Week of"),
    MONTH: _("Month"),
    RESOURCE: _("Resource"),
    PROJECT: _("Project"),
    TAG: _("Tag"),
}
NO_PROJECT = _("Without a project")


def group_words(group: str, value: Any) -> str:
    """Return the name of a row's group."""
    if group == WEEK:
        return plain_date_words(date.fromisoformat(value))
    if group == MONTH:
        return month_words(date.fromisoformat(value))
    if value is None:
        return str(NO_PROJECT)
    return value if isinstance(value, str) else value["name"]


# --- Bars -----------------------------------------------------------------------------------------
class Bar(NamedTuple):
    """A part of a row's bar, in hundredths of the longest bar."""

    colour: str
    x: float
    width: float


class BarRow(NamedTuple):
    label: str
    bars: Sequence[Bar]
    cells: Sequence[str]


class BarTable(NamedTuple):
    heading: LazyText
    columns: Sequence[Column]
    rows: Sequence[BarRow]
    hidden: int  # further rows


def bar_table(picture: Picture, group: str, rows: Sequence[Json]) -> BarTable:
    """Return the table of a report by one group. Parts of bars that no row has are left out."""
    columns = [
        column
        for column in picture.columns
        if not column.colour or any(row[column.name] for row in rows)
    ]
    parts = [column for column in columns if column.colour]
    most = max([sum(row[part.name] for part in parts) for row in rows] + [1])
    shown = [
        BarRow(
            group_words(group, row[group]),
            _bars(row, parts, most),
            [column.write(row[column.name]) for column in columns],
        )
        for row in rows[:MAX_ROWS]
    ]
    return BarTable(GROUP_WORDS[group], columns, shown, max(0, len(rows) - MAX_ROWS))


def _bars(row: Json, parts: Sequence[Column], most: int) -> list[Bar]:
    bars, x = [], 0.0
    for part in parts:
        width = 100 * row[part.name] / most
        if width:
            bars.append(Bar(part.colour, round(x, 2), round(width, 2)))
        x += width
    return bars


# --- Heat map -------------------------------------------------------------------------------------
class HeatCell(NamedTuple):
    step: int  # 0 to HEAT_STEPS; -1: closed
    words: str
    note: str


class HeatRow(NamedTuple):
    label: str
    cells: Sequence[HeatCell]


class HeatMap(NamedTuple):
    heading: LazyText
    columns: Sequence[str]
    rows: Sequence[HeatRow]
    hidden: int


def heat_map(group: str, unit: str, starts: Sequence[date], rows: Sequence[Json]) -> HeatMap:
    """Return the utilisation by resource or tag and by week or month; rows: of both."""
    by_label: dict[str, tuple[str, dict[str, Json]]] = {}
    for row in rows:
        value = row[group]
        key = value if isinstance(value, str) else value["id"]
        by_label.setdefault(key, (group_words(group, value), {}))[1][row[unit]] = row
    shown = [
        HeatRow(label, [_heat_cell(cells.get(start.isoformat())) for start in starts])
        for label, cells in list(by_label.values())[:MAX_ROWS]
    ]
    is_one_year = starts[0].year == starts[-1].year
    of_month = short_month_words if is_one_year else month_words
    columns = [month_day_words(start) if unit == WEEK else of_month(start) for start in starts]
    return HeatMap(GROUP_WORDS[group], columns, shown, max(0, len(by_label) - MAX_ROWS))


def _heat_cell(row: Json | None) -> HeatCell:
    if row is None or (not row["open_seconds"] and not row["booked_seconds"]):
        return HeatCell(-1, NONE, gettext("closed"))
    note = gettext("%(booked)s of %(open)s hours") % {
        "booked": hours_words(row["booked_seconds"]),
        "open": hours_words(row["open_seconds"]),
    }
    rate = row["utilisation"]
    if rate is None:
        return HeatCell(HEAT_STEPS, note, note)
    step = min(HEAT_STEPS, -int(-rate * HEAT_STEPS // 1))
    return HeatCell(step, rate_words(rate), note)
