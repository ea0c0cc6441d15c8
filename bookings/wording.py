"""How a booking is put into words for a person: in which language, and when it takes place."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.utils import translation
from django.utils.dateformat import format as format_date
from django.utils.translation import pgettext

from apps_config.models import App
from bookings.models import Booking, Customer
from scheduling.api.instants import ZONES, offset_of, zone
from scheduling.api.languages import SOURCE_LANGUAGE, find_shipped

LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
DAY = timedelta(days=1)
# A break or a control character, written as `\s` does not know them all.
BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
LINE_ENDS = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
LONE_SURROGATES = re.compile("[\ud800-\udfff]")
CUT = "…"


def one_line(text: str, most: int = 200) -> str:
    """The text on one line: breaks, control characters and rows of blanks become one blank."""
    return shorten(BREAKS.sub(" ", LONE_SURROGATES.sub("", text)).strip(), most)


def lines_of(text: str, most: int = 8000) -> str:
    """The text with its lines, each ended by a plain line break, and no other control character."""
    whole = LINE_ENDS.sub("\n", LONE_SURROGATES.sub("", text))
    return shorten(CONTROLS.sub("", whole).strip(), most)


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT


# --- Language -------------------------------------------------------------------------------------
def language_of(app: App, *preferred: Any) -> str:
    """The first of the preferred ones and the app's that is shipped, or whose main part is; else
    English."""
    for wanted in (*preferred, app.settings.get("language")):
        if isinstance(wanted, str) and LANGUAGE.fullmatch(wanted):
            main_part = re.split("[-_]", wanted)[0]
            if found := find_shipped(wanted) or find_shipped(main_part):
                return found
    return SOURCE_LANGUAGE


def languages_of(booking: Booking, customer: Customer | None = None) -> list[Any]:
    """Those that go before the app's: of the customer, of the project."""
    project = booking.project
    of_customer = [customer.meta.get("language")] if customer else []
    return [*of_customer, project.settings.get("language") if project else None]


@contextmanager
def speaking_language_of(app: App, *preferred: Any) -> Iterator[str]:
    """Whatever is translated inside is in that language, whose code is given."""
    language = language_of(app, *preferred)
    with translation.override(language):
        yield language


# --- Time -----------------------------------------------------------------------------------------
def known_zone(*names: str) -> str:
    """The first name that is a time zone; UTC if none is."""
    return next((name for name in names if name in ZONES), "UTC")


def date_words(day: date) -> str:
    """`Monday, 23 November 2026`, in the active language."""
    # Translators: a date in the notation of Django's date filter.
    return format_date(day, pgettext("date format", "l, j F Y"))


def time_words(moment: datetime) -> str:
    """`09:00`, in the active language."""
    # Translators: a time of day in the notation of Django's date filter.
    return format_date(moment, pgettext("time format", "H:i"))


def span_words(start: datetime, end: datetime, zone_name: str) -> str:
    """When something takes place, read off the clock of a zone, which is named.

    `Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)`; the day stands at both ends where
    they differ. Where the clock is changed in between, or shows a reading twice, each reading
    carries its distance from UTC.
    """
    place = zone(zone_name)
    first, last = start.astimezone(place), end.astimezone(place)
    exact = needs_offsets(first, last)
    from_words, to_words = clock_words(first, exact=exact), clock_words(last, exact=exact)
    if first.date() != last.date():
        to_words = f"{date_words(last)}, {to_words}"
    return f"{date_words(first)}, {from_words} – {to_words} ({zone_name})"


def days_words(first: date, end: date, zone_name: str) -> str:
    """Whole days, `end` exclusive: `Monday, 23 November 2026, all day (Europe/Berlin)`."""
    last = end - DAY
    days = date_words(first)
    if last > first:
        days = f"{days} – {date_words(last)}"
    # Translators: behind one or several whole days.
    all_day = pgettext("whole days", "all day")
    return f"{days}, {all_day} ({zone_name})"


def clock_words(local: datetime, *, exact: bool) -> str:
    return f"{time_words(local)} {offset_words(local)}" if exact else time_words(local)


def offset_words(local: datetime) -> str:
    """`UTC+02:00`."""
    minutes = offset_of(local) // timedelta(minutes=1)
    sign = "-" if minutes < 0 else "+"
    return f"UTC{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def needs_offsets(first: datetime, last: datetime) -> bool:
    """Whether two readings of one clock alone could be misread."""
    is_changed = offset_of(first) != offset_of(last)
    is_short = last.astimezone(UTC) - first.astimezone(UTC) < DAY
    return (is_changed and is_short) or is_ambiguous(first) or is_ambiguous(last)


def is_ambiguous(local: datetime) -> bool:
    """Whether the clock shows this reading twice."""
    return offset_of(local.replace(fold=0)) > offset_of(local.replace(fold=1))
