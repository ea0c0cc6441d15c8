"""Commands in the search of every page: "block Friday 12-13 Dr. Berg", "cancel Marty".

A command opens the page that does it, with its fields filled in. Words that are no command, day or
time are a name; a command with a name that nobody has finds nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode

from babel import Locale
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import get_format
from django.utils.translation import get_language, gettext, pgettext, pgettext_lazy, to_locale
from django.utils.translation import gettext_lazy as _
from unfold.dataclasses import SearchResult

from apps_config.models import Membership
from availability.models import Resource
from bookings.graphs import GRAPHS
from bookings.models import Booking
from bookings.pages.formatting import short_date_words
from common.shipped_languages import SOURCE_LANGUAGE
from office.base.dates import days_span_in_zone, office_zone, parse_iso_day
from office.base.labels import booking_words
from office.base.lazy_text import LazyText
from office.base.local_time import today_in
from office.base.permissions import BLOCK, MAKE, MOVE, SEE, may_enter_absences, visible_resources
from office.base.scope import scope_of
from office.bookings.customer_search import search_customers
from office.bookings.periods import PERIOD, PERIODS
from office.bookings.tabs import CALLED_OFF

MAX_RESULTS = 3
MIN_LETTERS = 3  # of a customer's name: the index of names has groups of three letters
AWAY, BLOCK_TIME, CANCEL, NEW_BOOKING, LIST = "away", "block", "cancel", "new", ""
# Translators: what people type in the search to get something done. Phrases are separated by |.
PHRASES: Mapping[str, LazyText] = {
    AWAY: pgettext_lazy("command", "away|ill"),
    BLOCK_TIME: pgettext_lazy("command", "block|block time"),
    CANCEL: pgettext_lazy("command", "cancel|cancel booking"),
    NEW_BOOKING: pgettext_lazy("command", "new booking|book"),
}
# Lists and pages beside those of the menu: (title, words, page, query).
PLACES = (
    (_("No-shows"), _("missed absent"), "bookings_booking_changelist", "?outcome=no_show"),
    (_("Export as CSV"), _("export download spreadsheet excel"), "bookings_booking_export", ""),
)
DAY = timedelta(days=1)
CLOCK = r"(\d{1,2})(?:[:.h](\d{2}))?(am|pm)?"
SPAN = re.compile(f"{CLOCK}[-–]{CLOCK}")
MOMENT = re.compile(r"(\d{1,2})(?:[:.h](\d{2})(am|pm)?|()(am|pm))")


@dataclass
class Command:
    """What a text asks for: one of PHRASES or LIST, a day, a start and an end, and a name."""

    verb: str = LIST
    day: date | None = None
    start: time | None = None
    end: time | None = None
    names: list[str] = field(default_factory=list)


def find_commands(request: HttpRequest, term: str) -> Iterator[SearchResult]:
    """Yield what the term asks for, as far as the account may do it, then PLACES. At most one
    query, and one for the account's time zone.
    """
    command = read_command(term, today_in(office_zone(request), timezone.now()))
    yield from FINDERS[command.verb](request, command)
    if SEE.is_held(request):
        yield from _places(term.lower().split())


# --- Reading --------------------------------------------------------------------------------------
def read_command(text: str, today: date) -> Command:
    """Read the words in any order, but for the command, which is first or last.

    >>> read_command("block Friday 12-13 Dr. Berg", date(2026, 11, 25))
    Command('block', date(2026, 11, 27), time(12), time(13), ['dr.', 'berg'])
    """
    text = _with_dates(text.lower(), today)
    words = re.sub(r"(?<=[\dm])\s+[-–]\s+(?=\d)", "-", text).split()
    command = Command()
    command.verb, words = _take_verb(words)
    for word in words:
        if command.day is None and (day := _read_day(word, today)):
            command.day = day
        elif command.start is None and (times := _read_times(word)):
            command.start, command.end = times
        else:
            command.names.append(word)
    if command.verb and command.start:
        command.day = command.day or today
    return command


def _take_verb(words: list[str]) -> tuple[str, list[str]]:
    """Return the command and the other words."""
    for verb, phrases in PHRASES.items():
        for phrase in sorted(str(phrases).lower().split("|"), key=len, reverse=True):
            parts = phrase.split()
            if words[: len(parts)] == parts:
                return verb, words[len(parts) :]
            if words[-len(parts) :] == parts:
                return verb, words[: -len(parts)]
    return LIST, words


def _with_dates(text: str, today: date) -> str:
    """Return the text with dates instead of `today` and `tomorrow`, which are several words in some
    languages.
    """
    text = f" {text} ".replace("’", "'")
    for period, day in (("today", today), ("tomorrow", today + DAY)):
        words = str(PERIODS[period]).lower().replace("’", "'")
        text = text.replace(f" {words} ", f" {day.isoformat()} ")
    return text


def _read_day(word: str, today: date) -> date | None:
    """Return the day of `friday`, `fri` (the next one, today included), `2026-11-27`, or a date as
    the language's forms read it.
    """
    weekday = _weekdays(get_language() or SOURCE_LANGUAGE).get(word.rstrip(".,"))
    if weekday is not None:
        return today + (weekday - today.weekday()) % 7 * DAY
    for form in get_format("DATE_INPUT_FORMATS"):
        try:
            return parse_iso_day(datetime.strptime(word, form).date().isoformat())
        except ValueError:
            continue
    return None


@cache
def _weekdays(language: str) -> dict[str, int]:
    """Return name -> number (0 = Monday), long and short, in the language."""
    days = Locale.parse(to_locale(language)).days
    found = {}
    for context in ("format", "stand-alone"):
        for width in ("wide", "abbreviated"):
            for number, name in days[context][width].items():
                found[name.lower().rstrip(".")] = number
                found[name.lower().split("-")[0]] = number  # segunda-feira
    return found


def _read_times(word: str) -> tuple[time, time | None] | None:
    """Return the times of `12-13`, `9:30-12`, `9am-1pm`; the one of `9:30` or `9am`."""
    if found := SPAN.fullmatch(word):
        start, end = _clock(*found.groups()[:3]), _clock(*found.groups()[3:])
        return (start, end) if start and end else None
    if found := MOMENT.fullmatch(word):
        hour, minute, half, _empty, other_half = found.groups()
        start = _clock(hour, minute, half or other_half)
        return (start, None) if start else None
    return None


def _clock(hour: str, minute: str | None, half: str | None) -> time | None:
    shown = int(hour) % 12 + (12 if half == "pm" else 0) if half else int(hour)
    try:
        return time(shown, int(minute or 0))
    except ValueError:
        return None


# --- Finding --------------------------------------------------------------------------------------
def _places(words: list[str]) -> Iterator[SearchResult]:
    for title, keywords, page, query in PLACES:
        text = f"{title} {keywords}".lower()
        if all(len(word) > 1 and word in text for word in words):
            link = reverse(f"admin:{page}") + query
            yield SearchResult(str(title), gettext("Page"), link, "event_available")


def _block_time(request: HttpRequest, command: Command) -> Iterator[SearchResult]:
    if not BLOCK.is_held(request) or command == Command(BLOCK_TIME):  # the page itself is found
        return
    for resource in _resources(request, command):
        yield _result(_("Block time"), command, resource, "event_busy", "calendar_block", {})


def _away(request: HttpRequest, command: Command) -> Iterator[SearchResult]:
    if not may_enter_absences(request) or command == Command(AWAY):  # the page itself is found
        return
    for resource in _resources(request, command):
        query: dict[str, Any] = {}
        if resource:
            query |= {"app": str(resource.app_id), "resource": str(resource.pk)}
        if command.day:
            query["first_day"] = command.day.isoformat()
            times = {"start": command.start, "end": command.end}
            query |= {name: f"{clock:%H:%M}" for name, clock in times.items() if clock}
        words = _words(pgettext("person", "Away"), command, resource)
        yield SearchResult(words, gettext("Command"), _link("calendar_away", query), "event_busy")


def _new_booking(request: HttpRequest, command: Command) -> Iterator[SearchResult]:
    if not MAKE.is_held(request):
        return
    query = {"new": "1"}
    if command.day:
        query |= {"date": command.day.isoformat(), "view": "day"}
    for resource in _resources(request, command):
        yield _result(_("New booking"), command, resource, "add", "calendar", query)


def _cancel(request: HttpRequest, command: Command) -> Iterator[SearchResult]:
    """Yield the next bookings of the named customers: the question before each is cancelled."""
    name = " ".join(command.names)
    if len(name) < MIN_LETTERS or not MOVE.is_held(request):
        return
    rows = Booking.objects.filter(
        scope_of(request).rows("app", least=Membership.EDITOR),
        id__in=search_customers(name).values("booking_id"),
        event__end__gt=timezone.now(),
        completed=False,
        deleted_at=None,
    ).exclude(state__in=CALLED_OFF)
    if command.day:
        start, end = days_span_in_zone(command.day, command.day, office_zone(request))
        rows = rows.filter(event__start__gte=start, event__start__lt=end)
    rows = rows.select_related("event").prefetch_related("customers")
    for booking in rows.order_by("event__start", "id")[:MAX_RESULTS]:
        if GRAPHS[booking.graph].next_state(booking.state, "cancel") is not None:
            link = reverse("admin:bookings_booking_act", args=[booking.pk])
            title = gettext("Cancel: %(booking)s") % {"booking": booking_words(booking)}
            yield SearchResult(title, gettext("Command"), f"{link}?action=cancel", "event_busy")


def _bookings_of_day(request: HttpRequest, command: Command) -> Iterator[SearchResult]:
    if command.day is None or command.start or not SEE.is_held(request):
        return
    days_from_now = (command.day - today_in(office_zone(request), timezone.now())).days
    period = {0: "today", 1: "tomorrow"}.get(days_from_now)
    query = {PERIOD: period} if period else {"day": command.day.isoformat()}
    for resource in _resources(request, command, Membership.VIEWER):
        whose = {"resource__id__exact": str(resource.pk)} if resource else {}
        page = "bookings_booking_changelist"
        yield _result(_("Bookings"), command, resource, "event_available", page, query | whose)


FINDERS = {
    AWAY: _away,
    BLOCK_TIME: _block_time,
    CANCEL: _cancel,
    NEW_BOOKING: _new_booking,
    LIST: _bookings_of_day,
}


def _resources(
    request: HttpRequest, command: Command, least: str = Membership.EDITOR
) -> list[Resource | None]:
    """Return the resources with the name; [None] without a name."""
    if not command.names:
        return [None]
    rows = visible_resources(request, least=least)
    for word in command.names:
        rows = rows.filter(name__icontains=word)
    return list(rows.order_by("name", "id")[:MAX_RESULTS])


def _result(
    title: LazyText,
    command: Command,
    resource: Resource | None,
    icon: str,
    page: str,
    query: dict[str, Any],
) -> SearchResult:
    """Return the link to the page with the resource, the day and the times of the command."""
    if resource and page != "bookings_booking_changelist":
        query = query | {"app": str(resource.app_id), "resources": str(resource.pk)}
    for name, clock in (("start", command.start), ("end", command.end)):
        if command.day and clock:
            query = query | {name: f"{command.day}T{clock:%H:%M}"}
        elif command.day and page == "calendar_block" and name == "start":
            query = query | {name: command.day.isoformat()}
    words = _words(title, command, resource)
    return SearchResult(words, gettext("Command"), _link(page, query), icon)


def _words(title: LazyText, command: Command, resource: Resource | None) -> str:
    """Return the title with the resource, the day and the times of the command."""
    details = [resource.name] if resource else []
    if command.day:
        details.append(short_date_words(command.day))
    if command.start:
        details.append("–".join(f"{one:%H:%M}" for one in (command.start, command.end) if one))
    return f"{title}: {', '.join(details)}" if details else str(title)


def _link(page: str, query: Mapping[str, Any]) -> str:
    return reverse(f"admin:{page}") + (f"?{urlencode(query)}" if query else "")
