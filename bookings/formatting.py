"""Format bookings for people: language, dates and times."""

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
from common.instants import ZONES, find_zone, utc_offset
from common.shipped_languages import SOURCE_LANGUAGE, find_shipped

LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
DAY = timedelta(days=1)
# Line breaks, blanks and control characters; `\s` does not match all of them.
BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
LINE_ENDS = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
LONE_SURROGATES = re.compile("[\ud800-\udfff]")
CUT = "…"


def to_one_line(text: str, most: int = 200) -> str:
    """Return the text on one line: runs of breaks, controls and blanks become one blank."""
    return shorten_text(BREAKS.sub(" ", LONE_SURROGATES.sub("", text)).strip(), most)


def clean_lines(text: str, most: int = 8000) -> str:
    """Return the text with plain line breaks and without other control characters."""
    whole = LINE_ENDS.sub("\n", LONE_SURROGATES.sub("", text))
    return shorten_text(CONTROLS.sub("", whole).strip(), most)


def shorten_text(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT


# --- Language -------------------------------------------------------------------------------------
def language_of(app: App, *preferred: Any) -> str:
    """Return the first of `preferred` and the app's language with a translation; else English.

    A regional variant without a translation falls back to its main language.
    """
    for wanted in (*preferred, app.settings.get("language")):
        if isinstance(wanted, str) and LANGUAGE.fullmatch(wanted):
            main_part = re.split("[-_]", wanted)[0]
            if found := find_shipped(wanted) or find_shipped(main_part):
                return found
    return SOURCE_LANGUAGE


def languages_of(booking: Booking, customer: Customer | None = None) -> list[Any]:
    """Return the languages preferred over the app's: the customer's, then the project's."""
    project = booking.project
    of_customer = [customer.meta.get("language")] if customer else []
    return [*of_customer, project.settings.get("language") if project else None]


@contextmanager
def activate_language_of(app: App, *preferred: Any) -> Iterator[str]:
    """Activate the language in the block; yield its code."""
    language = language_of(app, *preferred)
    with translation.override(language):
        yield language


# --- Time -----------------------------------------------------------------------------------------
def first_known_zone(*names: str) -> str:
    """Return the first name that is a time zone, else UTC."""
    return next((name for name in names if name in ZONES), "UTC")


def date_words(day: date) -> str:
    """Format as `Monday, 23 November 2026`, in the active language."""
    # Translators: a date in the notation of Django's date filter.
    return format_date(day, pgettext("date format", "l, j F Y"))


def time_words(moment: datetime) -> str:
    """Format as `09:00`, in the active language."""
    # Translators: a time of day in the notation of Django's date filter.
    return format_date(moment, pgettext("time format", "H:i"))


def span_words(start: datetime, end: datetime, zone_name: str) -> str:
    """Format a time span in a named zone.

    `Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)`; both ends have the date if the dates
    differ. Across a change of the UTC offset, and at ambiguous local times, both ends have the UTC
    offset.
    """
    target = find_zone(zone_name)
    first, last = start.astimezone(target), end.astimezone(target)
    exact = needs_offsets(first, last)
    from_words, to_words = clock_words(first, exact=exact), clock_words(last, exact=exact)
    if first.date() != last.date():
        to_words = f"{date_words(last)}, {to_words}"
    return f"{date_words(first)}, {from_words} – {to_words} ({zone_name})"


def days_words(first: date, end: date, zone_name: str) -> str:
    """Format whole days, `end` exclusive: `Monday, 23 November 2026, all day (Europe/Berlin)`."""
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
    """Format the UTC offset as `UTC+02:00`."""
    minutes = utc_offset(local) // timedelta(minutes=1)
    sign = "-" if minutes < 0 else "+"
    return f"UTC{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def needs_offsets(first: datetime, last: datetime) -> bool:
    """Return whether the local times are ambiguous without UTC offsets."""
    is_changed = utc_offset(first) != utc_offset(last)
    is_short = last.astimezone(UTC) - first.astimezone(UTC) < DAY
    return (is_changed and is_short) or is_ambiguous(first) or is_ambiguous(last)


def is_ambiguous(local: datetime) -> bool:
    """Return whether the local time occurs twice."""
    return utc_offset(local.replace(fold=0)) > utc_offset(local.replace(fold=1))
