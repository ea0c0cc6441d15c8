"""Format bookings for people: language, dates and times."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from babel import Locale, UnknownLocaleError, localedata
from babel import dates as cldr_dates
from babel.units import format_unit
from django.utils import translation
from django.utils.dateformat import format as format_date
from django.utils.translation import gettext, pgettext, to_locale
from django.utils.translation.trans_real import parse_accept_lang_header

from apps_config.models import App
from bookings.models import BookedStep, Booking, Customer
from common.shipped_languages import SOURCE_LANGUAGE, closest_shipped
from common.time.durations import DurationError, read_terms
from common.time.instants import ZONES, find_zone, utc_offset
from common.time.zone_names import current_zone_name

LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
DAY = timedelta(days=1)
# Line breaks, blanks and control characters; `\s` does not match all of them.
BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
LINE_ENDS = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
LONE_SURROGATES = re.compile("[\ud800-\udfff]")
CUT = "…"
NO_BREAK_SPACE = "\u00a0"
THIN_SPACE = "\u2009"


def to_one_line(text: str, most: int = 200) -> str:
    """Return the text on one line: runs of breaks, controls and blanks become one blank."""
    if text.isprintable() and "  " not in text:  # most texts
        return shorten_text(text.strip(), most)
    return shorten_text(BREAKS.sub(" ", LONE_SURROGATES.sub("", text)).strip(), most)


def clean_lines(text: str, most: int = 8000) -> str:
    """Return the text with plain line breaks and without other control characters."""
    whole = LINE_ENDS.sub("\n", LONE_SURROGATES.sub("", text))
    return shorten_text(CONTROLS.sub("", whole).strip(), most)


def shorten_text(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + CUT


# --- Language -------------------------------------------------------------------------------------
def language_of(app: App | None, *preferred: Any) -> str:
    """Return the first of `preferred` and the app's language with a translation; else English.

    A regional variant without a translation falls back to its main language.
    """
    return _language_and_tag(app, *preferred)[0]


def _language_and_tag(app: App | None, *preferred: Any) -> tuple[str, str]:
    """Return the language as in `language_of`, and the tag that named it."""
    for code in (*preferred, app.settings.get("language") if app else None):
        is_code = isinstance(code, str) and LANGUAGE.fullmatch(code)
        if is_code and (language := closest_shipped(code)):
            return language, code
    return SOURCE_LANGUAGE, SOURCE_LANGUAGE


def language_tag_of(app: App, *preferred: Any) -> str:
    """Return the tag that names the language of `language_of`, such as `en-US`."""
    return _language_and_tag(app, *preferred)[1]


def languages_of(booking: Booking, customer: Customer | None = None) -> list[Any]:
    """Return the languages preferred over the app's: the customer's, then the project's."""
    project = booking.project
    return [customer_meta_language(customer), project.settings.get("language") if project else None]


def customer_meta_language(customer: Customer | None) -> Any:
    """Return what the customer's `meta` has as language, of any type."""
    return customer.meta.get("language") if customer else None


def accepted_languages(header: str) -> list[str]:
    """Return the languages of an Accept-Language header (RFC 9110, 12.5.4), preferred ones first.

    A malformed header accepts none.
    """
    return [language for language, quality in parse_accept_lang_header(header) if quality]


def text_language(app: App, *preferred: Any) -> str:
    """Return the language that an app or project has set for its texts; "" if neither has."""
    named = (*preferred, app.settings.get("language"))
    return language_of(None, *named) if any(isinstance(each, str) for each in named) else ""


@contextmanager
def activate_language_of(app: App, *preferred: Any) -> Iterator[str]:
    """Activate the language in the block, English in the style of its region; yield its code."""
    language, tag = _language_and_tag(app, *preferred)
    with translation.override(language), _active_style(style_of_region(tag)):
        yield language


# --- Clock ----------------------------------------------------------------------------------------
# By CLDR's time data of their regions; in the other shipped languages it is 24 hours alone.
TWO_CLOCK_LANGUAGES = frozenset({"ar", "en", "es", "ja"})


# --- English of a region --------------------------------------------------------------------------
class EnglishStyle(NamedTuple):
    """How English dates and times are written: `Monday, 23 November 2026, 09:00`, or as in the USA
    `Monday, November 23, 2026, 9:00 am`.
    """

    has_twelve_hours: bool = False
    is_month_first: bool = False


_BRITISH = EnglishStyle()
_english_style: ContextVar[EnglishStyle] = ContextVar("english_style", default=_BRITISH)
_AMERICAN = Locale("en", "US")


@contextmanager
def _active_style(style: EnglishStyle) -> Iterator[None]:
    token = _english_style.set(style)
    try:
        yield
    finally:
        _english_style.reset(token)


@contextmanager
def activate_english_of(accepted: Sequence[str]) -> Iterator[None]:
    """Write English dates and times in the block as is usual in the region of the first English
    language among `accepted`.
    """
    with _active_style(style_of_region(first_english(accepted))):
        yield


def first_english(accepted: Sequence[str]) -> str:
    """Return the first English language tag, such as `en-US`; "" without one."""
    tags = (code for code in accepted if code.split("-")[0].lower() == SOURCE_LANGUAGE)
    return to_locale(next(tags, "")).replace("_", "-")


def has_two_clocks() -> bool:
    """Return whether people who read the active language use clocks with 12 and with 24 hours."""
    language = translation.get_language() or SOURCE_LANGUAGE
    return _english_style.get().has_twelve_hours or language.split("-")[0] in TWO_CLOCK_LANGUAGES


@lru_cache(maxsize=128)
def style_of_region(tag: str) -> EnglishStyle:
    """Return the style of an English language tag's region: the first one above for `en`, `en-GB`
    and any other tag.
    """
    language, _, region = tag.replace("_", "-").partition("-")
    if language.lower() != SOURCE_LANGUAGE or not region:
        return _BRITISH
    try:
        locale = Locale.parse(f"{language}-{region}", sep="-")
    except (UnknownLocaleError, ValueError):
        return _BRITISH
    return EnglishStyle(
        has_twelve_hours="a" in locale.time_formats["short"].pattern,
        is_month_first=locale.date_formats["full"].pattern.startswith("EEEE, MMMM d"),
    )


def english_dates_tag() -> str:
    """Return the tag by which scripts write English dates in the active style."""
    return "en-US" if _english_style.get().is_month_first else "en-GB"


def has_twelve_hours() -> bool:
    """Return whether English times have 12 hours in the active style."""
    return _english_style.get().has_twelve_hours


# --- Time -----------------------------------------------------------------------------------------
def first_known_zone(*names: str) -> str:
    """Return the first name that is a time zone, by its current name; else UTC."""
    return current_zone_name(next((name for name in names if name in ZONES), "UTC"))


def date_words(day: date) -> str:
    """Format as `Monday, 23 November 2026`, in the active language."""
    locale = _date_locale()
    if locale:
        return cldr_dates.format_date(day, "full", locale)
    return f"{day:%A}, {day.day} {day:%B} {day.year}"


def short_date_words(day: date) -> str:
    """Format as `Mon 23 Nov 2026`, in the active language."""
    return _by_skeleton(day, "yMMMEd", "D j M Y")


def plain_date_words(day: date) -> str:
    """Format as `23 Nov 2026`, in the active language."""
    return _by_skeleton(day, "yMMMd", "j M Y")


def short_day_words(day: date) -> str:
    """Format as `Mon 23 Nov`, in the active language."""
    return _by_skeleton(day, "MMMEd", "D j M")


def month_day_words(day: date) -> str:
    """Format as `23 Nov`, in the active language."""
    return _by_skeleton(day, "MMMd", "j M")


def time_words(moment: datetime, *, with_seconds: bool = False) -> str:
    """Format as `09:00` or `09:00:00`, in the active language; as `9:00 am` in English with 12
    hours. Spaces are no-break spaces.
    """
    if locale := _active_locale():
        length = "medium" if with_seconds else "short"
        words = cldr_dates.format_time(moment.replace(tzinfo=None), length, locale=locale)
        return words.replace(" ", NO_BREAK_SPACE)
    if _english_style.get().has_twelve_hours:  # as the page's script does
        half = "am" if moment.hour < 12 else "pm"
        exact = f"{moment:%M:%S}" if with_seconds else f"{moment:%M}"
        return f"{moment.hour % 12 or 12}:{exact}{NO_BREAK_SPACE}{half}"
    return f"{moment:%H:%M:%S}" if with_seconds else f"{moment:%H:%M}"


def month_words(day: date) -> str:
    """Format as `November 2026`, in the active language."""
    return _by_skeleton(day, "yMMMM", "F Y")


def month_range_words(first: date, last: date) -> str:
    """Format as `November – December 2026`, in the active language; one month as `month_words`."""
    if (first.year, first.month) == (last.year, last.month):
        return month_words(first)
    if locale := _active_locale():
        words = cldr_dates.format_interval(first, last, "yMMMM", locale=locale)
        return words.replace(THIN_SPACE, " ")
    year = "" if first.year == last.year else f" {first.year}"
    return f"{first:%B}{year} – {last:%B} {last.year}"


def _by_skeleton(day: date, skeleton: str, english: str) -> str:
    """Format by CLDR's skeleton; English by Django's format."""
    locale = _date_locale()
    if locale is None:
        return format_date(day, english)
    # Babel reads the time zone of what it formats by a skeleton.
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return cldr_dates.format_skeleton(skeleton, noon, locale=locale)


def short_month_words(day: date) -> str:
    """Format as `Nov`, in the active language."""
    locale = _active_locale()
    return cldr_dates.format_date(day, "LLL", locale) if locale else format_date(day, "M")


def weekday_words(day: date) -> str:
    """Format as `Mon`, in the active language."""
    locale = _active_locale()
    return cldr_dates.format_date(day, "ccc", locale) if locale else format_date(day, "D")


def length_words(seconds: int | None) -> str:
    """Format as `1 h 30 min`, in the active language; "" for None."""
    hours, rest = divmod(seconds or 0, 3600)
    parts = [(hours, "hour", "h"), (rest // 60, "minute", "min"), (rest % 60, "second", "s")]
    return " ".join(_unit_words(*part) for part in parts if part[0])


def in_minutes_words(minutes: int) -> str:
    """Format as `in 4 minutes`, in the active language."""
    locale = _active_locale() or Locale(SOURCE_LANGUAGE)
    return cldr_dates.format_timedelta(
        timedelta(minutes=minutes), "minute", threshold=9, add_direction=True, locale=locale
    )


def notice_words(limit: Any) -> str:
    """Format a duration such as `1 day 12 hours` in the active language; others stay the same."""
    locale = _active_locale()
    try:
        terms = read_terms(limit.lower()) if locale and isinstance(limit, str) else []
    except DurationError:
        terms = []
    counts = [count for term in terms for count in _unit_counts(*term)]
    if not counts:
        return str(limit)
    return " ".join(
        format_unit(count, f"duration-{unit}", "long", locale=locale) for count, unit in counts
    )


def _unit_counts(months: int, days: int, seconds: int) -> Iterator[tuple[int, str]]:
    """Yield count and unit of each part that is not zero, in the largest unit that divides it."""
    sizes = [(months, (("month", 1),)), (days, (("week", 7), ("day", 1)))]
    sizes.append((seconds, (("hour", 3600), ("minute", 60), ("second", 1))))
    for total, units in sizes:
        if total:
            unit, size = next(each for each in units if total % each[1] == 0)
            yield total // size, unit


def short_start_words(start: datetime, *, all_day: bool) -> str:
    """Format a local time as `Mon 23 Nov, 09:00`, in the active language; whole days without the
    time.
    """
    day = short_day_words(start)
    return day if all_day else day_and_time(day, time_words(start))


def span_words(start: datetime, end: datetime, zone_name: str) -> str:
    """Format a time span in a named zone.

    `Monday, 23 November 2026, 09:00 – 09:30 (Europe/Berlin)`; both ends have the date if the dates
    differ. Across a change of the UTC offset, and at ambiguous local times, both ends have the UTC
    offset.
    """
    return f"{span_words_without_zone(start, end, zone_name)} ({zone_name})"


def span_words_without_zone(start: datetime, end: datetime, zone_name: str) -> str:
    """Format as `span_words`, for a page that names the zone once."""
    target = find_zone(zone_name)
    first, last = start.astimezone(target), end.astimezone(target)
    with_offset = needs_offsets(first, last)
    from_words, to_words = (clock_words(local, with_offset=with_offset) for local in (first, last))
    if first.date() != last.date():
        to_words = day_and_time(date_words(last), to_words)
    times = f"{from_words} – {to_words}"
    return day_and_time(date_words(first), times)


def days_words(first: date, end: date, zone_name: str) -> str:
    """Format whole days, `end` exclusive: `Monday, 23 November 2026, all day (Europe/Berlin)`."""
    last = end - DAY
    days = date_words(first)
    if last > first:
        days = f"{days} – {date_words(last)}"
    # Translators: behind one or several whole days.
    all_day = pgettext("whole days", "all day")
    return f"{day_and_time(days, all_day)} ({zone_name})"


def day_and_time(day: str, time: str) -> str:
    """Join a formatted day and time, in the active language."""
    return gettext("{day}, {time}").format(day=day, time=time)


def step_lines(steps: Iterable[BookedStep], zone_name: str) -> list[str]:
    """Return `09:00 – 09:30 cleaning (Hanna, Room 1)` of each step of a visit."""
    target = find_zone(zone_name)
    lines = []
    for step in steps:
        first, last = step.start.astimezone(target), step.end.astimezone(target)
        with_offset = needs_offsets(first, last)
        times = " – ".join(clock_words(local, with_offset=with_offset) for local in (first, last))
        names = ", ".join(to_one_line(resource.name) for resource in step.resources)
        lines.append(f"{times} {to_one_line(step.name)}{f' ({names})' if names else ''}")
    return lines


def clock_words(local: datetime, *, with_offset: bool) -> str:
    return f"{time_words(local)} {offset_words(local)}" if with_offset else time_words(local)


def instant_time_words(moment: datetime, zone_name: str) -> str:
    """Format an instant of today: `09:30`; with the UTC offset where the time occurs twice."""
    local = moment.astimezone(find_zone(zone_name))
    return clock_words(local, with_offset=is_ambiguous(local))


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


def _unit_words(count: int, unit: str, english: str) -> str:
    locale = _active_locale()
    if locale is None:
        return f"{count} {english}"
    # Babel has no short singular in Spanish and writes "1 horas"; short units are not inflected.
    return format_unit(100, f"duration-{unit}", "short", locale=locale).replace("100", str(count))


def _date_locale() -> Locale | None:
    """Return the locale of dates; None for English with the day first."""
    locale = _active_locale()
    return _AMERICAN if locale is None and _english_style.get().is_month_first else locale


def _active_locale() -> Locale | None:
    return _find_locale(translation.get_language() or SOURCE_LANGUAGE)


@lru_cache
def _find_locale(language: str) -> Locale | None:
    """Return CLDR's locale; None for English, whose formats are fixed, and for unknown ones.

    Babel writes Western digits in every language, like the times in the pages' scripts.
    """
    if language.split("-")[0] == SOURCE_LANGUAGE:
        return None
    try:
        locale = Locale.parse(to_locale(language))
    except (UnknownLocaleError, ValueError):
        return None
    # Babel stores resolved aliases in tables that languages share: after Arabic, months of other
    # languages would be Arabic (python-babel/babel#1234). A copy shares nothing.
    names = localedata.load(str(locale))
    names.update(deepcopy(names))
    return locale
