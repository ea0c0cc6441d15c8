"""Opening hours and slot parameters in the form of the service."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from scheduling_client.importing.records import Rules, Unusable

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
BY_PREFIX = {day[:3].lower(): day for day in DAYS}
TIME_OF_DAY = re.compile(r"(\d\d?):(\d\d)(?::00)?", re.ASCII)
MAX_DATES = 366
MAX_WINDOW = 366 * 24 * 60  # minutes
Windows = tuple[tuple[str, str], ...]  # ("09:00", "12:30"); "24:00" ends the day


def make_rules(
    weekly: Mapping[str, Iterable[tuple[str, str]]],
    dates: Mapping[str, Iterable[tuple[str, str]]],
    *,
    since: date,
) -> Rules:
    """Return the rules for the windows of each weekday, such as "Monday", and of single dates.

    Other weekdays are closed; a date without windows is closed. Dates before `since` are left out.
    Raises Unusable.
    """
    rules: list[dict[str, Any]] = [
        {"allow_day_and_time": {"day": day, "start": start, "end": end}}
        for day in DAYS
        for start, end in merged(weekly.get(day, ()))
    ]
    rules = rules or [{"block_weekdays": {}}, {"block_weekends": {}}]
    coming = sorted(day for day in dates if day >= since.isoformat())
    if len(coming) > MAX_DATES:
        raise Unusable(f"More than {MAX_DATES} dates have hours of their own.")
    for day in coming:
        windows = [{"start": start, "end": end} for start, end in merged(dates[day])]
        rules.append({"replace_day": {"date": day, "windows": windows}})
    return tuple(rules)


def date_text(text: str) -> str:
    """Return a date such as 2026-12-24. Raises Unusable."""
    try:
        return date.fromisoformat(text.strip()[:10]).isoformat()
    except ValueError:
        raise Unusable(f"{text!r} is no date such as 2026-12-24.") from None


def day_name(text: str) -> str:
    """Return "Monday" for any of monday, MON, Mo. Raises Unusable."""
    word = text.strip().lower()
    day = BY_PREFIX.get(word[:3]) or next(
        (each for each in DAYS if len(word) == 2 and each.lower().startswith(word)), None
    )
    if day is None or not day.lower().startswith(word):
        raise Unusable(f"{text!r} is no weekday.")
    return day


def time_of_day(text: str) -> str:
    """Return "09:00" for 9:00, 09:00 and 09:00:00. Raises Unusable."""
    match = TIME_OF_DAY.fullmatch(text.strip())
    if match is None or (int(match[1]), int(match[2])) > (24, 0) or int(match[2]) > 59:
        raise Unusable(f"{text!r} is no time of day such as 09:00.")
    return f"{int(match[1]):02}:{match[2]}"


def window(start: str, end: str) -> tuple[str, str]:
    """Return a window of one day; an end at 00:00 is that of the day. Raises Unusable."""
    begin, finish = time_of_day(start), time_of_day(end)
    finish = "24:00" if finish == "00:00" else finish
    if finish <= begin:
        raise Unusable(f"The opening hours from {begin} to {finish} don't end after their start.")
    return begin, finish


def without_breaks(windows: Windows, breaks: Iterable[tuple[str, str]]) -> Windows:
    """Return what is left of the windows; breaks may overlap."""
    for pause_start, pause_end in breaks:
        windows = tuple(
            piece
            for start, end in windows
            for piece in (
                (start, min(end, pause_start)),
                (max(start, pause_end), end),
            )
            if piece[0] < piece[1]
        )
    return windows


def merged(windows: Iterable[tuple[str, str]]) -> Windows:
    """Return the windows in order; those that touch or overlap become one."""
    result: list[tuple[str, str]] = []
    for start, end in sorted(windows):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return tuple(result)


def slot_terms(
    length: int,
    *,
    lengths: Iterable[int] = (),
    buffer_before: int = 0,
    buffer_after: int = 0,
    notice: int = 0,
    window: int | None = None,
    increments: int | None = None,
) -> dict[str, Any]:
    """Return the slot parameters of a project; all arguments are minutes.

    notice: from the request to the earliest start. window: to the latest end.
    """
    found: dict[str, Any] = {
        "length": minutes(length),
        "buffer_before": minutes(buffer_before),
        "buffer_after": minutes(buffer_after),
        "from": minutes(notice) if notice else "now",
        "round_to_nearest_hour": False,
    }
    choices = sorted({length, *lengths})
    found |= {"lengths": [minutes(each) for each in choices]} if len(choices) > 1 else {}
    found |= {"to": minutes(min(window, MAX_WINDOW))} if window else {}
    return found | ({"timeslot_increments": minutes(increments)} if increments else {})


def minutes(number: int) -> str:
    return f"{number} minutes"
