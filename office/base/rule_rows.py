"""Rows of the rule editor: a rule in the fields that people fill in, and the constraints behind it.

A constraint of the API has one row. A row with several stretches of hours has as many constraints.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from babel import Locale
from django.utils.dates import WEEKDAYS
from django.utils.translation import get_language, gettext, to_locale
from django.utils.translation import gettext_lazy as _
from holidays import country_holidays, list_supported_countries

from availability.core.constraints import (
    DAY_NAMES,
    ConstraintError,
    ConstraintRules,
    parse_constraints,
)
from bookings.pages.formatting import plain_date_words
from common.shipped_languages import SOURCE_LANGUAGE
from common.time.durations import elapsed_seconds
from office.base.lazy_text import LazyText
from office.base.message_translations import translate_message
from office.base.opening_hours_text import DaySpan, clock, read_spans

RuleRow = dict[str, str]

# RRULE of a repetition -> words; those without FREQ depend on the row's first day.
NTH_WEEKDAY, LAST_WEEKDAY = "nth_weekday", "last_weekday"
REPEATS: Mapping[str, LazyText] = {
    "FREQ=DAILY": _("every day"),
    "FREQ=WEEKLY": _("every week"),
    "FREQ=WEEKLY;INTERVAL=2": _("every 2 weeks"),
    "FREQ=WEEKLY;INTERVAL=3": _("every 3 weeks"),
    "FREQ=WEEKLY;INTERVAL=4": _("every 4 weeks"),
    "FREQ=MONTHLY": _("every month on this day"),
    NTH_WEEKDAY: _("every month on this weekday, such as the 2nd Tuesday"),
    LAST_WEEKDAY: _("every month on the last such weekday"),
    "FREQ=YEARLY": _("every year"),
}


class Kind(NamedTuple):
    """A kind of row. constraint: its name in the API; columns: the fields that it uses."""

    words: LazyText
    constraint: str
    columns: tuple[str, ...]


_DATES, _TIMES = ("date", "last_date"), ("start", "end")
_REPEATED = ("start", "end", "repeats", "last_date")
DATE_KINDS: Mapping[str, Kind] = {
    "closed_on": Kind(_("Closed on"), "block_period", _DATES),
    "extra_hours": Kind(_("Extra hours on"), "open_period", ("date", "hours")),
    "replace_day": Kind(_("Special hours on"), "replace_day", ("date", "hours")),
    "block_holidays": Kind(
        _("Closed on public holidays of"), "block_holidays", ("country", "subdivision")
    ),
    "open_recurring": Kind(_("Extra hours, repeated"), "open_recurring", _REPEATED),
    "block_recurring": Kind(_("Closed, repeated"), "block_recurring", _REPEATED),
    "block_period": Kind(_("Closed from – to"), "block_period", _TIMES),
    "open_period": Kind(_("Extra hours from – to"), "open_period", _TIMES),
    "allow_period": Kind(_("Open only from – to"), "allow_period", _TIMES),
}
WEEKLY_KINDS: Mapping[str, Kind] = {
    "allow_weekdays": Kind(_("Open Mon–Fri"), "allow_weekdays", ()),
    "allow_weekends": Kind(_("Open Sat–Sun"), "allow_weekends", ()),
    "allow_day": Kind(_("Open on (day)"), "allow_day", ("day",)),
    "allow_hours": Kind(_("Open from – to (hours)"), "allow_hours", _TIMES),
    "allow_day_and_time": Kind(_("Open on (day, hours)"), "allow_day_and_time", ("day", *_TIMES)),
    "block_weekdays": Kind(_("Closed Mon–Fri"), "block_weekdays", ()),
    "block_weekends": Kind(_("Closed Sat–Sun"), "block_weekends", ()),
    "block_day": Kind(_("Closed on (day)"), "block_day", ("day",)),
    "block_hours": Kind(_("Closed from – to (hours)"), "block_hours", _TIMES),
    "block_day_and_time": Kind(_("Closed on (day, hours)"), "block_day_and_time", ("day", *_TIMES)),
}
KINDS: Mapping[str, Kind] = {**WEEKLY_KINDS, **DATE_KINDS}
# `categories` (of public holidays) has no field; the row returns it as it was stored.
COLUMNS = (
    *("kind", "day", "date", "last_date", "hours", "start", "end", "country", "subdivision"),
    *("repeats", "label", "categories"),
)
# The column of a constraint's parameter, if they differ.
_COLUMN_OF: Mapping[str, Mapping[str, str]] = {
    "closed_on": {"start": "date", "end": "last_date"},
    "extra_hours": {"start": "date", "end": "hours"},
    "replace_day": {"windows": "hours"},
    "open_recurring": {"duration": "end", "rrule": "repeats"},
    "block_recurring": {"duration": "end", "rrule": "repeats"},
    "block_holidays": {"categories": "country"},
}

_WALL = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?)?")
_MIDNIGHT = "00:00"
_DAY = timedelta(days=1)
_MINUTE = 60
_NTH = ("", "1st", "2nd", "3rd", "4th", "5th")
_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
NO_DATE = _("Choose a date.")
NO_HOURS = _("Enter hours such as 10:00-14:00.")


class RowsError(ValueError):
    """Rows that are no rules. errors: position -> column -> messages; "" is the whole list."""

    def __init__(self, errors: Mapping[int | str, Mapping[str, list[str]]]) -> None:
        super().__init__(errors)
        self.errors = errors


class _WrongColumn(ValueError):
    def __init__(self, column: str, message: LazyText) -> None:
        super().__init__(message)
        self.column = column


# --- From constraints to rows ---------------------------------------------------------------------
def row_of_rule(rule: Mapping[str, Any]) -> RuleRow:
    """Return the row of a valid constraint, in the form that the API returns."""
    ((name, values),) = rule.items()
    row = dict.fromkeys(COLUMNS, "")
    row |= {key: str(values[key]) for key in ("day", "start", "end", "country") if key in values}
    row |= {"kind": name, "label": values.get("name", "")}
    row["subdivision"] = values.get("subdivision", "")
    row["categories"] = ",".join(values.get("categories", ()))
    if name in _ROW_OF_KIND:
        row |= _ROW_OF_KIND[name](values)
    return row


def _row_of_period(values: Mapping[str, Any]) -> RuleRow:
    return {key: _input_value(values[key]) for key in _TIMES}


def _row_of_block_period(values: Mapping[str, Any]) -> RuleRow:
    """Return a closed period as a first and last date if it covers whole days."""
    row = _row_of_period(values)
    start, end = (_wall_time(row[key]) for key in _TIMES)
    if start and end and start.time() == end.time() == datetime.min.time():
        last = end.date() - _DAY
        last_text = "" if last == start.date() else last.isoformat()
        dates = {"date": start.date().isoformat(), "last_date": last_text}
        return {"kind": "closed_on", "start": "", "end": "", **dates}
    return row


def _row_of_open_period(values: Mapping[str, Any]) -> RuleRow:
    """Return a period of at most a day as a date and hours, without seconds."""
    row = _row_of_period(values)
    start, end = (_wall_time(row[key]) for key in _TIMES)
    if not start or not end or start.second or end.second:
        return row
    lasts = int((end - datetime.combine(start, datetime.min.time())).total_seconds()) // _MINUTE
    if lasts > 1440:
        return row
    hours = f"{clock(start.hour * 60 + start.minute)}-{clock(lasts)}"
    dates = {"date": start.date().isoformat(), "hours": hours}
    return {"kind": "extra_hours", "start": "", "end": "", **dates}


def _row_of_replaced_day(values: Mapping[str, Any]) -> RuleRow:
    windows = [(_minutes(each["start"]), _minutes(each["end"])) for each in values["windows"]]
    hours = ", ".join(f"{clock(start)}-{clock(end)}" for start, end in windows)
    return {"date": values["date"], "hours": hours}


def _row_of_recurring(values: Mapping[str, Any]) -> RuleRow:
    start = datetime.fromisoformat(values["start"])
    end = start + timedelta(seconds=elapsed_seconds(values["duration"], least=0, most=10**6))
    repeats, last = _read_rrule(values["rrule"], start.date())
    times = {"start": _input_value(str(start)), "end": _input_value(str(end))}
    return {**times, "repeats": repeats, "last_date": last}


_ROW_OF_KIND: Mapping[str, Callable[[Mapping[str, Any]], RuleRow]] = {
    "allow_period": _row_of_period,
    "block_period": _row_of_block_period,
    "open_period": _row_of_open_period,
    "replace_day": _row_of_replaced_day,
    "open_recurring": _row_of_recurring,
    "block_recurring": _row_of_recurring,
}


def _read_rrule(rrule: str, first: date) -> tuple[str, str]:
    """Return the repetition and its last day; of any other rule the rule itself."""
    parts = dict(part.split("=", 1) for part in rrule.split(";"))
    until = parts.pop("UNTIL", "")
    if until and not re.fullmatch(r"\d{8}", until):
        return rrule, ""
    if parts.get("INTERVAL") == "1":
        del parts["INTERVAL"]
    if parts["FREQ"] == "WEEKLY" and parts.get("BYDAY") == _CODES[first.weekday()]:
        parts = {name: part for name, part in parts.items() if name not in ("BYDAY", "WKST")}
    for repeats in REPEATS:
        if dict(part.split("=", 1) for part in _rrule_of(repeats, first).split(";")) == parts:
            return repeats, f"{until[:4]}-{until[4:6]}-{until[6:]}" if until else ""
    return rrule, ""


def _rrule_of(repeats: str, first: date) -> str:
    code = _CODES[first.weekday()]
    if repeats == NTH_WEEKDAY:
        return f"FREQ=MONTHLY;BYDAY={(first.day + 6) // 7}{code}"
    return f"FREQ=MONTHLY;BYDAY=-1{code}" if repeats == LAST_WEEKDAY else repeats


def _input_value(text: str) -> str:
    """Return the value of a datetime-local input; an instant with its offset as it is."""
    matched = _WALL.fullmatch(text)
    if matched is None:
        return text
    seconds = "" if matched[3] in (None, ":00") else matched[3]
    return f"{matched[1]}T{matched[2] or _MIDNIGHT}{seconds}"


def _wall_time(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if _WALL.fullmatch(text) else None


def _minutes(value: int | str) -> int:
    hours, _, minutes = str(value).partition(":")
    return int(hours) * 60 + int(minutes or 0)


# --- From rows to constraints ---------------------------------------------------------------------
def read_rows(rows: Sequence[Mapping[str, str]]) -> ConstraintRules:
    """Return the rules of the rows. Raises RowsError."""
    raw: list[dict[str, Any]] = []
    places: list[int] = []
    errors: dict[int | str, dict[str, list[str]]] = {}
    for position, row in enumerate(rows):
        try:
            found = _constraints_of(row)
        except _WrongColumn as wrong:
            errors[position] = {wrong.column: [str(wrong)]}
            continue
        raw += found
        places += [position] * len(found)
    try:
        rules = parse_constraints(raw)
    except ConstraintError as error:
        _add_faults(error, rows, places, errors)
    if errors:
        raise RowsError(errors)
    return rules


def _add_faults(
    error: ConstraintError,
    rows: Sequence[Mapping[str, str]],
    places: Sequence[int],
    errors: dict[int | str, dict[str, list[str]]],
) -> None:
    for path, messages in error.errors.items():
        place, *steps = path.split(".")
        if not place:
            errors[""] = {"": messages}
            continue
        position = places[int(place)]
        param = steps[1] if len(steps) > 1 else "kind"
        kind = rows[position]["kind"]
        column = _COLUMN_OF.get(kind, {}).get(param, "label" if param == "name" else param)
        is_date = column == "date" and not rows[position].get("date")
        messages = [str(NO_DATE)] if is_date else list(map(translate_message, messages))
        at_row = errors.setdefault(position, {})
        at_row[column] = list(dict.fromkeys([*at_row.get(column, ()), *messages]))


def _constraints_of(row: Mapping[str, str]) -> list[dict[str, Any]]:
    kind = KINDS.get(row.get("kind", ""))
    if kind is None:
        raise _WrongColumn("kind", gettext("Choose a rule."))
    given = {column: row.get(column, "").strip() for column in COLUMNS}
    label = {"name": given["label"]} if given["label"] else {}
    read = _READ.get(given["kind"], _read_plain)
    return [{kind.constraint: values | label} for values in read(given, kind.columns)]


Values = list[dict[str, Any]]


def _read_plain(row: RuleRow, columns: Sequence[str]) -> Values:
    """The parameters have the names of the columns."""
    values = {}
    for column in columns:
        matched = _WALL.fullmatch(row[column])
        if row[column]:
            values[column] = _api_time(row[column]) if matched else row[column]
    return [values]


def _api_time(text: str) -> str:
    matched = _WALL.fullmatch(text)
    return f"{matched[1]} {matched[2] or _MIDNIGHT}{matched[3] or ':00'}" if matched else text


def _read_closed_on(row: RuleRow, columns: Sequence[str]) -> Values:
    last = _read_date(row, "last_date") if row["last_date"] else _read_date(row, "date")
    return [{"start": row["date"], "end": (last + _DAY).isoformat()}]


def _read_extra_hours(row: RuleRow, columns: Sequence[str]) -> Values:
    day = _read_date(row, "date")
    spans = _read_hours(row)
    if not spans:
        raise _WrongColumn("hours", NO_HOURS)
    return [
        {"start": _local_time_text(day, start), "end": _local_time_text(day, end)}
        for start, end in spans
    ]


def _read_replace_day(row: RuleRow, columns: Sequence[str]) -> Values:
    windows = [{"start": clock(start), "end": clock(end)} for start, end in _read_hours(row)]
    return [{"date": row["date"], "windows": windows}]


def _read_holidays(row: RuleRow, columns: Sequence[str]) -> Values:
    if not row["country"]:
        raise _WrongColumn("country", gettext("Choose a country."))
    values: dict[str, Any] = {"country": row["country"], "subdivision": row["subdivision"]}
    categories = [word for word in row["categories"].split(",") if word]
    return [values | ({"categories": categories} if categories else {})]


def _read_recurring(row: RuleRow, columns: Sequence[str]) -> Values:
    times = [_read_moment(row, column) for column in _TIMES]
    seconds = int((times[1] - times[0]).total_seconds())
    if seconds <= 0:
        raise _WrongColumn("end", gettext("Must be after start."))
    rrule = _rrule_of(row["repeats"] or "FREQ=WEEKLY", times[0].date())
    if row["last_date"]:
        rrule += f";UNTIL={_read_date(row, 'last_date'):%Y%m%d}"
    lasts = {"duration": f"{seconds // _MINUTE} minutes", "rrule": rrule}
    return [{"start": _api_time(row["start"]), **lasts}]


_READ: Mapping[str, Callable[[RuleRow, Sequence[str]], Values]] = {
    "closed_on": _read_closed_on,
    "extra_hours": _read_extra_hours,
    "replace_day": _read_replace_day,
    "block_holidays": _read_holidays,
    "open_recurring": _read_recurring,
    "block_recurring": _read_recurring,
}


def _read_hours(row: RuleRow) -> list[DaySpan]:
    try:
        return read_spans(row["hours"])
    except ValueError:
        raise _WrongColumn("hours", NO_HOURS) from None


def _read_date(row: RuleRow, column: str) -> date:
    try:
        found = date.fromisoformat(row[column])
        found + _DAY  # the last date of all has no next one
    except (ValueError, OverflowError):
        raise _WrongColumn(column, NO_DATE) from None
    return found


def _read_moment(row: RuleRow, column: str) -> datetime:
    try:
        return datetime.fromisoformat(row[column]).replace(tzinfo=None)
    except ValueError:
        raise _WrongColumn(column, gettext("Choose a date and a time.")) from None


def _local_time_text(day: date, minutes: int) -> str:
    return str(datetime.combine(day, datetime.min.time()) + timedelta(minutes=minutes))


# --- Words ----------------------------------------------------------------------------------------
def rule_text(rule: Mapping[str, Any]) -> str:
    """Return `Special hours on: 24 Dec 2026, 09:00-12:00`, `Open Tuesday 08:00-12:00`,
    `Closed Sat–Sun` of a constraint.
    """
    row = row_of_rule(rule)
    kind = KINDS[row["kind"]]
    if row["kind"] in WEEKLY_KINDS and kind.columns:
        return _weekly_rule_text(row, kind)
    texts = [_column_text(row, column) for column in kind.columns]
    if row["kind"] == "replace_day" and not row["hours"]:
        texts.append(gettext("closed"))
    given = ", ".join(filter(None, (*texts, row["label"])))
    if not given:
        return str(kind.words)
    return gettext("%(rule)s: %(values)s") % {"rule": kind.words, "values": given}


def _weekly_rule_text(row: RuleRow, kind: Kind) -> str:
    is_open = kind.constraint.startswith("allow_")
    hours = "-".join(clock(_minutes(row[column])) for column in _TIMES if column in kind.columns)
    when = " ".join(filter(None, (weekday_words(row["day"]), hours)))
    text = (gettext("Open %(when)s") if is_open else gettext("Closed %(when)s")) % {"when": when}
    return ", ".join(filter(None, (text, row["label"])))


def _column_text(row: RuleRow, column: str) -> str:
    value = row[column]
    if not value:
        return ""
    if column in _DATES:
        words = plain_date_words(date.fromisoformat(value))
        return gettext("until %(date)s") % {"date": words} if column == "last_date" else words
    if column == "country":
        return country_names().get(value, value)
    if column == "subdivision":
        return subdivision_names(row["country"]).get(value, value)
    return value.replace("T", " ") if column in _TIMES else str(REPEATS.get(value, value))


def country_names() -> dict[str, str]:
    """Return the countries with known holidays: code -> name, by name, in the active language."""
    return _country_names(get_language() or SOURCE_LANGUAGE)


@lru_cache(maxsize=16)
def _country_names(language: str) -> dict[str, str]:
    names = Locale.parse(to_locale(language)).territories
    found = {
        code: names.get(code, code) for code in list_supported_countries(include_aliases=False)
    }
    return dict(sorted(found.items(), key=lambda item: item[1]))


@lru_cache(maxsize=256)
def subdivision_names(country: str) -> dict[str, str]:
    """Return the country's subdivisions with their own holidays: code -> name, by name."""
    if country not in country_names():
        return {}
    known = country_holidays(country)
    aliases = known.get_subdivision_aliases()
    found = {code: (aliases.get(code) or [code])[0] for code in known.subdivisions}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def weekday_choices() -> list[tuple[str, str]]:
    return [("", gettext("Choose a day")), *((day, weekday_words(day)) for day in DAY_NAMES)]


def weekday_words(name: str) -> str:
    """Return the name of a day in the API in the active language; other texts unchanged."""
    return str(WEEKDAYS[DAY_NAMES.index(name)]) if name in DAY_NAMES else name
